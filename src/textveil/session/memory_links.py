"""Links of conversations in this process, within a number of bytes.

In: rows by name, and the rows that they follow. Out: the rows that are still known.
Not here: what a row says (`conversations`), and rows in a database (`sql.links`).

A row never outlives one that it follows: the last ones of a conversation are forgotten first. Else
a message that is released anew could be followed by an old release, in which a placeholder stands
for another value.
"""

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from textveil.session.forgetting import read_marks
from textveil.session.sql.encryption import derive

if TYPE_CHECKING:
    from textveil.session.sql.ledger import Ledger, Reservation

LINK_SECONDS = 86_400
"""Seconds that unused links stay in memory."""

MAX_BYTES = 192_000_000
"""Bytes of the rows in memory, if nobody says otherwise."""

ROW_BYTES = 400
"""Bytes that Python needs for a row besides its name and its content."""


TAG_BYTES = 8
"""Bytes at the beginning of a row's name that are its account's."""


class MemoryRows:
    """Rows of all accounts, the most recently used ones at the end.

    Hold `lock` when calling a method.

    Args:
        max_bytes: bytes of all rows; those least recently used go first.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.lock, self._max_bytes, self.used_bytes = Lock(), max_bytes, 0
        self._rows: OrderedDict[bytes, tuple[float, bytes]] = OrderedDict()

    def __repr__(self) -> str:
        return f"MemoryRows({len(self._rows)} rows)"

    def set_bound(self, max_bytes: int) -> None:
        """Sets the bytes of all rows."""
        self._max_bytes = max_bytes
        self.forget()

    def peek(self, name: bytes) -> bytes | None:
        """Returns a row, which does not count as a use; None if unknown."""
        return self._rows.get(name, (0.0, None))[1]

    def list_beside(self, names: frozenset[bytes]) -> dict[bytes, bytes]:
        """Returns the rows whose first mark is one of some names; it does not count as a use."""
        rows = ((name, content) for name, (_, content) in self._rows.items())
        return {name: row for name, row in rows if not names.isdisjoint(read_marks(row)[:1])}

    def list_rows(self, tag: bytes) -> dict[bytes, bytes]:
        """Returns the rows whose names begin with a tag; it does not count as a use."""
        rows = self._rows.items()
        return {name: content for name, (_, content) in rows if name.startswith(tag)}

    def rewrite(self, name: bytes, old_content: bytes, content: bytes) -> None:
        """Replaces a row that is still as it was, in its place."""
        last_use, present = self._rows.get(name, (0.0, None))
        if present == old_content:
            self._rows[name] = last_use, content
            self.used_bytes += len(content) - len(old_content)

    def touch(self, names: Sequence[bytes]) -> None:
        """Notes a use of rows; the first name counts as the last used.

        So a row goes before those that it follows.
        """
        for name in reversed(names):
            if name in self._rows:
                _, content = self._rows.pop(name)
                self._rows[name] = time.monotonic(), content

    def put(self, name: bytes, content: bytes) -> bool:
        """Stores a row; False if it is larger than all may be together."""
        self._drop(name)
        size = _count_bytes(name, content)
        if size > self._max_bytes:  # it would drive out all others, and then go itself
            return False
        self._rows[name] = time.monotonic(), content
        self.used_bytes += size
        return True

    def forget(self) -> None:
        """Forgets rows that are too many, or were not used for long."""
        oldest_use = time.monotonic() - LINK_SECONDS
        while self._rows:
            name, (last_use, _) = next(iter(self._rows.items()))
            if self.used_bytes <= self._max_bytes and last_use > oldest_use:
                return
            self._drop(name)

    def _drop(self, name: bytes) -> None:
        if name in self._rows:
            self.used_bytes -= _count_bytes(name, self._rows.pop(name)[1])


class MemoryLinkStore:
    """Links in this process.

    Args:
        key: HMAC key of the names; empty to see the rows of all accounts, and name none.
        rows: rows of all accounts.
        ledger: counts spending; None where nothing does.
    """

    def __init__(self, key: bytes, rows: MemoryRows, ledger: "Ledger | None" = None) -> None:
        self._key, self._rows, self.ledger = key, rows, ledger
        self._tag = derive(key, b"account tag")[:TAG_BYTES] if key else b""

    def derive_name(self, *parts: bytes) -> bytes:
        """See `LinkStore`; names of one account begin alike."""
        return self._tag + derive(self._key, *parts)

    def list_rows(self) -> dict[bytes, bytes]:
        """See `LinkStore`."""
        with self._rows.lock:
            return self._rows.list_rows(self._tag)

    def get(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """See `LinkStore`."""
        with self._rows.lock:
            self._rows.forget()
            self._rows.touch(names)
            rows = {name: self._rows.peek(name) for name in names}
        return {name: content for name, content in rows.items() if content is not None}

    def find_beside(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """See `LinkStore`."""
        with self._rows.lock:
            return self._rows.list_beside(frozenset(names))

    def rewrite(self, replacements: Mapping[bytes, tuple[bytes, bytes]]) -> None:
        """See `LinkStore`."""
        with self._rows.lock:
            for name, (old_content, content) in replacements.items():
                self._rows.rewrite(name, old_content, content)

    def get_child(self, name: bytes, parents: Mapping[bytes, bytes]) -> bytes | None:
        """See `LinkStore`."""
        rows = self.get([*parents, name])
        content = rows.pop(name, None)
        return content if rows == dict(parents) else None

    def add(
        self,
        new_rows: Mapping[bytes, bytes],
        replacements: Mapping[bytes, bytes],
        reservations: Sequence["Reservation"] = (),
        parents: Mapping[bytes, bytes] | None = None,
    ) -> None:
        """See `LinkStore`."""
        parents = parents or {}
        with self._rows.lock:
            if all(self._rows.peek(name) == content for name, content in parents.items()):
                for name, content in new_rows.items():
                    # The first release of a message stays, because it may have been sent already.
                    if self._rows.peek(name) is None and not self._rows.put(name, content):
                        break  # what follows a row that is not kept is not kept, either
                self._rows.touch([*parents, *new_rows])
            for name, content in replacements.items():
                self._rows.put(name, content)
            self._rows.forget()
        # After the rows: what a crash leaves unconfirmed counts as spent.
        for reservation in reservations:
            assert self.ledger is not None, "or nothing was charged"
            self.ledger.confirm(reservation)

    def swap(self, name: bytes, old_content: bytes | None, content: bytes) -> bool:
        """See `LinkStore`."""
        with self._rows.lock:
            if self._rows.peek(name) not in (old_content, content):
                return False
            self._rows.put(name, content)
            self._rows.forget()
            return True


def _count_bytes(name: bytes, content: bytes) -> int:
    return len(name) + len(content) + ROW_BYTES
