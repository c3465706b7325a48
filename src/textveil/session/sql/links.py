"""Links of conversations as sealed rows of a session in a database.

In: names and contents. Out: the same, for `session.conversations`.
Not here: what links are, and how rows are sealed (`encryption`).
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from textveil.session.forgetting import read_marks
from textveil.session.sql.encryption import RowCipher, join_parts
from textveil.session.sql.lazy_snapshot import SealedRow
from textveil.session.sql.ledger import Ledger, Reservation
from textveil.session.sql.row_store import SealedRowStore, WriteConflictError

LINK_KIND = "link"
"""Kind of the rows that hold links."""


class DatabaseLinkStore:
    """Links of an account in a database.

    Args:
        database: the database that holds them.
        ledger: counts spending.
        number: number of the session that holds them.
        cipher: cipher of its rows.
    """

    def __init__(
        self, database: SealedRowStore, ledger: Ledger, number: Any, cipher: RowCipher
    ) -> None:
        self._database, self.ledger, self._number, self._cipher = database, ledger, number, cipher

    def derive_name(self, *parts: bytes) -> bytes:
        """See `LinkStore`."""
        return self._cipher.derive_name(LINK_KIND, join_parts(parts))

    def get(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """See `LinkStore`; contents end with padding spaces."""
        return self._open(self._database.build_reader(self._number).read_names(names))

    def find_beside(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """See `LinkStore`."""
        return self._open(self._database.build_reader(self._number).read_tags(names))

    def list_rows(self) -> dict[bytes, bytes]:
        """See `LinkStore`."""
        rows = self._database.build_reader(self._number).read_all()
        return self._open(row for row in rows if row.kind == LINK_KIND)

    def rewrite(self, replacements: Mapping[bytes, tuple[bytes, bytes]]) -> None:
        """See `LinkStore`."""
        with self._database.convert_failures("changed"), self._database.open_write() as connection:
            self.lock(connection)
            new_rows: dict[bytes, bytes] = {}
            for name, (old_content, content) in replacements.items():
                ciphertext = self._database.read_row(connection, self._number, name)
                if ciphertext is None:
                    continue
                if self._cipher.open(LINK_KIND, name, ciphertext) == old_content:
                    new_rows[name] = content
            self.put(connection, new_rows, replace=True)

    def remove(self, connection: Any, names: Sequence[bytes]) -> None:
        """Removes rows in a transaction."""
        self._database.remove_rows(connection, self._number, names)

    def _open(self, rows: Iterable[SealedRow]) -> dict[bytes, bytes]:
        return {row.name: self._cipher.open(LINK_KIND, row.name, row.content) for row in rows}

    def get_child(self, name: bytes, parents: Mapping[bytes, bytes]) -> bytes | None:
        """See `LinkStore`; a database forgets all rows of an account, or none."""
        return self.get([name]).get(name)

    def lock(self, connection: Any) -> None:
        """Locks the links until the transaction ends."""
        self._database.read_version(connection, self._number, lock=True)

    def put(self, connection: Any, rows: Mapping[bytes, bytes], *, replace: bool = False) -> None:
        """Stores rows in a transaction.

        Args:
            connection: the transaction.
            rows: contents by name.
            replace: True to replace existing rows; False to keep them.
        """
        ciphertexts = {
            name: self._cipher.seal(LINK_KIND, name, content) for name, content in rows.items()
        }
        tags = {name: mark for name, row in rows.items() for mark in read_marks(row)[:1]}
        self._database.put_rows(
            connection, self._number, LINK_KIND, ciphertexts, tags, replace=replace
        )

    def add(
        self,
        new_rows: Mapping[bytes, bytes],
        replacements: Mapping[bytes, bytes],
        reservations: Sequence[Reservation] = (),
        parents: Mapping[bytes, bytes] | None = None,
    ) -> None:
        """See `LinkStore`."""
        with self._database.convert_failures("changed"), self._database.open_write() as connection:
            for rows, replace in ((new_rows, False), (replacements, True)):
                self.put(connection, rows, replace=replace)
            for reservation in reservations:
                self.ledger.confirm(reservation, connection)

    def swap(self, name: bytes, old_content: bytes | None, content: bytes) -> bool:
        """See `LinkStore`."""
        while True:  # a conflict means that the row has changed, so it is read again
            with suppress(WriteConflictError):
                return self._swap(name, old_content, content)

    def _swap(self, name: bytes, old_content: bytes | None, content: bytes) -> bool:
        with self._database.convert_failures("changed"), self._database.open_write() as connection:
            self.lock(connection)
            ciphertext = self._database.read_row(connection, self._number, name)
            stored = None if ciphertext is None else self._cipher.open(LINK_KIND, name, ciphertext)
            if stored != old_content and (stored is None or stored.rstrip() != content):
                return False
            self.put(connection, {name: content}, replace=True)
            return True
