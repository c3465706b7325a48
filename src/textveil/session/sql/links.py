"""Links of conversations as rows of a session in a database, sealed like all others.

In: names and contents. Out: the same, for `session.chains`.
Not here: what links are, and how rows are sealed (`seal`).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textveil.session.chains import joined

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from textveil.session.sql.ledger import Reservation
    from textveil.session.sql.seal import Seal
    from textveil.session.sql.store import SQLStore

LINK = "link"
"""The kind of such rows."""


class StoredLinks:
    """The links of an account.

    Args:
        store: where they lie.
        number: of the session that holds them.
        seal: of its rows.
    """

    def __init__(self, store: "SQLStore", number: int, seal: "Seal") -> None:
        self._store, self._number, self._seal = store, number, seal
        self.ledger = store.ledger

    def name(self, *parts: bytes) -> bytes:
        """See `Links`."""
        return self._seal.name(LINK, joined(parts))

    def get(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """See `Links`; contents have spaces at their end."""
        rows = self._store.reader(self._number).named(names)
        return {row.name: self._seal.open(LINK, row.name, row.content) for row in rows}

    def alone(self, connection: "Connection") -> None:
        """Let nobody else add anything before a transaction ends."""
        self._store.version(connection, self._number, alone=True)

    def put(
        self, connection: "Connection", rows: Mapping[bytes, bytes], *, replaced: bool = False
    ) -> None:
        """Keep rows in a transaction.

        Args:
            connection: the transaction.
            rows: contents by name.
            replaced: whether they take the place of rows that are there; else those stay.
        """
        sealed = {name: self._seal.close(LINK, name, content) for name, content in rows.items()}
        self._store.put(connection, self._number, LINK, sealed, replaced=replaced)

    def add(
        self,
        once: Mapping[bytes, bytes],
        anew: Mapping[bytes, bytes],
        reserved: Sequence["Reservation"] = (),
    ) -> None:
        """See `Links`."""
        from textveil.session.sql.store import failures

        with failures("changed"), self._store.writing() as connection:
            for rows, replaced in ((once, False), (anew, True)):
                self.put(connection, rows, replaced=replaced)
            for each in reserved:
                self._store.ledger.confirm(each, connection)

    def swap(self, name: bytes, before: bytes | None, content: bytes) -> bool:
        """See `Links`."""
        from textveil.session.sql.store import failures

        with failures("changed"), self._store.writing() as connection:
            self.alone(connection)
            sealed = self._store.row(connection, self._number, name)
            known = None if sealed is None else self._seal.open(LINK, name, sealed)
            if known != before and (known is None or known.rstrip() != content):
                return False
            self.put(connection, {name: content}, replaced=True)
            return True
