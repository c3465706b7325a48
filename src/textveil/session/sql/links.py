"""Links of conversations as sealed rows of a session in a database.

In: names and contents. Out: the same, for `session.chains`.
Not here: what links are, and how rows are sealed (`seal`).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textveil.session.sql.database import Database, failures
from textveil.session.sql.ledger import Ledger, Reservation
from textveil.session.sql.seal import Seal, joined

if TYPE_CHECKING:
    from sqlalchemy import Connection

LINK = "link"
"""Kind of the rows that hold links."""


class StoredLinks:
    """Links of an account in a database.

    Args:
        database: the database that holds them.
        ledger: counts spending.
        number: number of the session that holds them.
        seal: cipher of its rows.
    """

    def __init__(self, database: Database, ledger: Ledger, number: int, seal: Seal) -> None:
        self._database, self.ledger, self._number, self._seal = database, ledger, number, seal

    def name(self, *parts: bytes) -> bytes:
        """See `Links`."""
        return self._seal.name(LINK, joined(parts))

    def get(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """See `Links`; contents end with padding spaces."""
        rows = self._database.reader(self._number).named(names)
        return {row.name: self._seal.open(LINK, row.name, row.content) for row in rows}

    def alone(self, connection: "Connection") -> None:
        """Locks the links until the transaction ends."""
        self._database.version(connection, self._number, alone=True)

    def put(
        self, connection: "Connection", rows: Mapping[bytes, bytes], *, replaced: bool = False
    ) -> None:
        """Stores rows in a transaction.

        Args:
            connection: the transaction.
            rows: contents by name.
            replaced: True to replace existing rows; False to keep them.
        """
        sealed = {name: self._seal.close(LINK, name, content) for name, content in rows.items()}
        self._database.put(connection, self._number, LINK, sealed, replaced=replaced)

    def add(
        self,
        once: Mapping[bytes, bytes],
        anew: Mapping[bytes, bytes],
        reserved: Sequence[Reservation] = (),
    ) -> None:
        """See `Links`."""
        with failures("changed"), self._database.writing() as connection:
            for rows, replaced in ((once, False), (anew, True)):
                self.put(connection, rows, replaced=replaced)
            for reservation in reserved:
                self.ledger.confirm(reservation, connection)

    def swap(self, name: bytes, before: bytes | None, content: bytes) -> bool:
        """See `Links`."""
        with failures("changed"), self._database.writing() as connection:
            self.alone(connection)
            sealed = self._database.row(connection, self._number, name)
            stored = None if sealed is None else self._seal.open(LINK, name, sealed)
            if stored != before and (stored is None or stored.rstrip() != content):
                return False
            self.put(connection, {name: content}, replaced=True)
            return True
