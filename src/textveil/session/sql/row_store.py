"""What sealed rows need of the place that keeps them, whichever kind of database that is.

In: sealed rows, and the version of the session that they follow. Out: the same rows; a new version.
Not here: what rows say (`lazy_snapshot`), and the databases (`database`, `session.redis_store`).
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from textveil.errors import StoreError
from textveil.session.sql.key_stores import KeyStore
from textveil.session.sql.lazy_snapshot import RowReader, SealedRow


class WriteConflictError(StoreError):
    """Another process committed first: nothing was stored, and the caller may try again."""


class SealedRowStore(ABC):
    """Sealed rows of sessions, safe for concurrent use by any number of processes.

    A session is named by the `number` that the store gave it. A `connection` is what `open_read`
    and `open_write` yield, and nobody else looks into it.

    Attributes:
        name: name of the store; empty until it is known.
        key_store: holds the key of the deployment.
    """

    name: bytes
    key_store: KeyStore
    _keep: timedelta | None

    @staticmethod
    def get_time() -> int:
        """Returns the time in seconds since 1970."""
        return int(time.time())

    def compute_expiry(self) -> int | None:
        """Returns when a session that is used now expires, None for never."""
        return (
            None
            if self._keep is None
            else self.get_time() + max(1, round(self._keep.total_seconds()))
        )

    @abstractmethod
    def convert_failures(self, action: str) -> AbstractContextManager[None]:
        """Converts errors of the database to `StoreError` without their text, which may hold rows.

        Args:
            action: what was not done: "read", "changed" or "opened".
        """

    @abstractmethod
    def open_read(self) -> AbstractContextManager[Any]:
        """Yields a connection to read from."""

    @abstractmethod
    def keep_connection(self) -> AbstractContextManager[None]:
        """Reads all of this thread's queries from one connection in the block."""

    @abstractmethod
    def open_write(self) -> AbstractContextManager[Any]:
        """Yields a write transaction, durable at the block's end or rolled back.

        Raises:
            WriteConflictError: what was read in it has changed; nothing is stored.
        """

    @abstractmethod
    def read_version(self, connection: Any, number: Any, *, lock: bool = False) -> tuple[int, int]:
        """Reads a session's version, and the last number of its rows.

        Args:
            connection: connection to read from.
            number: number of the session.
            lock: True to lock the session until the transaction ends.

        Raises:
            StoreError: the session was deleted.
        """

    @abstractmethod
    def add_rows(
        self, connection: Any, number: Any, version: int, rows: Sequence[SealedRow]
    ) -> int | None:
        """Adds rows to a session, or replaces them.

        Returns:
            The next version; None if the version changed meanwhile. Then nothing is added.
        """

    @abstractmethod
    def delete_rows(self, connection: Any, number: Any) -> None:
        """Deletes all rows of a session, which stays."""

    @abstractmethod
    def remove_rows(self, connection: Any, number: Any, names: Sequence[bytes]) -> None:
        """Deletes some rows of a session, by name; one that is not there is no error."""

    @abstractmethod
    def put_rows(
        self,
        connection: Any,
        number: Any,
        kind: str,
        rows: Mapping[bytes, bytes],
        tags: Mapping[bytes, bytes],
        *,
        replace: bool,
    ) -> None:
        """Adds rows that nothing else depends on, without raising the version.

        Args:
            connection: a transaction.
            number: number of the session.
            kind: kind of the rows.
            rows: sealed contents by name.
            tags: tags by name, of rows that are found by one.
            replace: True to replace existing rows; False to keep them.
        """

    @abstractmethod
    def read_row(self, connection: Any, number: Any, name: bytes) -> bytes | None:
        """Reads the sealed content of one row in a transaction, if any.

        At its end the row must still be the same.
        """

    @abstractmethod
    def build_reader(self, number: Any) -> RowReader:
        """Returns the reader of a session's rows."""
