"""Database of a store: connections, transactions, and the sealed rows of sessions.

In: a URL, and where keys lie. Out: `Database`.
Not here: sessions (`session.database_store`), how rows are sealed (`encryption`) and looked up
(`lazy_snapshot`),
and the tables (`schema`).
"""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Lock, local
from typing import TYPE_CHECKING, Any

from textveil.config.extras import explain_missing, require
from textveil.errors import ConfigError, StoreError
from textveil.session.sql import schema
from textveil.session.sql.key_stores import open_key_store
from textveil.session.sql.lazy_snapshot import RowReader, SealedRow
from textveil.session.sql.row_store import SealedRowStore
from textveil.session.sql.statements import build_store_statements

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

LOCK_TIMEOUT_SECONDS = 60
"""Seconds that a transaction waits for those of other processes."""

POOL_SIZE = 16
"""Pooled connections."""

PAGE_CACHE_KIB = 16_384
"""SQLite page cache of a connection, in KiB.

It holds the index pages on the way to each of millions of rows.
"""

IDLE_SECONDS = 1
"""Seconds of idleness after which a server connection is tested before use."""

MAX_READ_ATTEMPTS, RETRY_SECONDS = 20, 0.05
"""Attempts to read a file that others write to, and seconds between."""

IDENTITY_SECONDS = 0.1
"""Seconds for which a server's database needs no new identity check.

The check asks whether it is still the database that was opened.
"""

MAX_LOOKUP_ROWS = 500
"""Most rows in one look-up query."""

SYNC_INTERVAL = 64
"""Entries between two links that are synced to the disk.

A synced link survives a power cut; the links between are stored without syncing.
"""

HEADS_KEY = "textveil heads"
"""Key in `connection.info` for the links that a transaction added."""

GONE_MESSAGE = (
    "the store was deleted, or another store is in its place: put it back, or restart with the new "
    "store"
)


class Database(SealedRowStore):
    """Database of sessions, safe for concurrent use by any number of processes.

    Args:
        url: as for `SQLStore`.
        keys: where keys lie.
        keep: how long a session is kept after something was added; None for ever.

    Attributes:
        tables: its tables.
        key_store: key store, which also holds the newest links of the ledger.
    """

    def __init__(
        self, url: str, keys: str | os.PathLike[str] | None, keep: timedelta | None
    ) -> None:
        self._keep = keep
        self._engine = _create_engine(url)
        self._read_engine = self._engine
        if self.dialect != "sqlite":  # SQLite begins no transaction by itself
            self._read_engine = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        # IMMEDIATE takes the lock at once: a transaction that reads first may fail to get it.
        self._write_engine = self._engine.execution_options(textveil_begins="BEGIN IMMEDIATE")
        self._snapshot_engine = self._engine.execution_options(textveil_begins="BEGIN")
        if self.dialect != "sqlite":
            self._snapshot_engine = self._engine.execution_options(
                isolation_level="REPEATABLE READ"
            )
        self._thread = _ThreadConnection()
        self.tables = schema.build_tables()
        self.key_store = open_key_store(keys)
        self._statements = build_store_statements(self.tables, self.dialect)
        self._lock = Lock()
        self._pid = os.getpid()
        self.name, self._identity_expiry = b"", 0.0
        self._file = None if self.dialect != "sqlite" else StoreFile(str(self._engine.url.database))

    # ---- transactions ----------------------------------------------------------------------------

    def convert_failures(self, action: str) -> AbstractContextManager[None]:
        """See `SealedRowStore`."""
        return convert_failures(action)

    @contextmanager
    def open_read(self) -> "Iterator[Connection]":
        """See `SealedRowStore`; each query is a separate transaction."""
        if self._thread.connection is not None:
            yield self._thread.connection
        else:
            with self._check_engine(self._read_engine).connect() as connection:
                self._require_same(connection)
                yield connection

    @contextmanager
    def open_snapshot(self) -> "Iterator[Connection]":
        """Yields a connection whose queries see one consistent moment."""
        with self._check_engine(self._snapshot_engine).begin() as connection:
            self._require_same(connection)
            yield connection

    @contextmanager
    def keep_connection(self) -> Iterator[None]:
        """See `SealedRowStore`."""
        with self.open_read() as connection:
            thread, former = self._thread, self._thread.connection
            thread.connection = connection
            try:
                yield
            finally:
                thread.connection = former

    @contextmanager
    def open_write(self) -> "Iterator[Connection]":
        """See `SealedRowStore`."""
        with self._check_engine(self._write_engine).begin() as connection:
            connection.info.pop(HEADS_KEY, None)  # left by a transaction that was rolled back
            self._require_same(connection)
            yield connection
            heads = connection.info.pop(HEADS_KEY, {})
        # Only after the commit: a link that the database lacks would look like an older copy.
        if heads:
            self.save_heads(heads)

    def read_head(self, account: bytes) -> bytes | None:
        """Reads an account's newest link from the key store, with its number.

        None where there is none.
        """
        return (
            self.key_store.get(self._format_head_name(account)) or None
        )  # empty after a power cut

    def _format_head_name(self, account: bytes) -> str:
        return f"{self.name.hex()}/{account.hex()}-ledger"

    def save_heads(self, heads: Mapping[bytes, tuple[int, bytes]]) -> None:
        """Stores newest links in the key store, after they are committed.

        A stored link may lag behind the database, but is never ahead.

        Args:
            heads: number and link by account.
        """
        for account, (number, link) in heads.items():
            content = number.to_bytes(8, "big") + link
            self.key_store.advance(
                self._format_head_name(account), content, sync=number % SYNC_INTERVAL == 1
            )

    def _require_same(self, connection: "Connection") -> None:
        """Raises `StoreError` unless the database is the one that was opened.

        Another database may have taken its file name.
        """
        now = time.monotonic()
        if not self.name or (self._file is None and now < self._identity_expiry):
            return
        # Asked in each transaction, so through the driver, without SQLAlchemy's overhead.
        driver: Any = connection.connection.driver_connection
        with suppress(self._engine.dialect.loaded_dbapi.Error):
            names = driver.execute("SELECT name FROM textveil_store").fetchall()
            if names == [(self.name,)]:
                self._identity_expiry = now + IDENTITY_SECONDS
                return
        raise StoreError(GONE_MESSAGE)

    def _check_engine(self, engine: "Engine") -> "Engine":
        """Returns the engine, after checks of file and process.

        Raises `StoreError` for another file; after a fork, it drops the parent's connections.
        """
        if self._file is not None:
            self._file.require(self.name)
        if os.getpid() != self._pid:
            with self._lock:
                # Not closed, because the parent still uses these connections.
                self._engine.dispose(close=False)
                self._thread = _ThreadConnection()
                self._pid = os.getpid()
        return engine

    @property
    def dialect(self) -> str:
        """Kind of the database."""
        return self._engine.dialect.name

    def close(self) -> None:
        """See `SessionStore`."""
        self._engine.dispose()

    # ---- rows ------------------------------------------------------------------------------------

    def read_version(
        self, connection: "Connection", number: int, *, lock: bool = False
    ) -> tuple[int, int]:
        """See `SealedRowStore`."""
        statement = self._statements.lock if lock else self._statements.version
        row = connection.execute(statement, {"of_session": number}).first()
        if row is None:
            raise StoreError("this session was forgotten; open a new one")
        return row.version, row.last

    def add_rows(
        self, connection: "Connection", number: int, version: int, rows: Sequence[SealedRow]
    ) -> int | None:
        """See `SealedRowStore`."""
        change = {
            "of_session": number,
            "since": version,
            "more_rows": len(rows),
            **self._build_usage(),
        }
        if connection.execute(self._statements.advance, change).rowcount != 1:
            # An error if the session was deleted; else somebody changed it, and the caller retries.
            self.read_version(connection, number)
            return None
        if rows:
            connection.execute(
                self._statements.upsert, [{"session": number, **row._asdict()} for row in rows]
            )
        return version + 1

    def delete_rows(self, connection: "Connection", number: int) -> None:
        """See `SealedRowStore`."""
        import sqlalchemy as sa

        facts = self.tables.facts
        connection.execute(sa.delete(facts).where(facts.c.session == number))

    def remove_rows(self, connection: "Connection", number: int, names: Sequence[bytes]) -> None:
        """See `SealedRowStore`."""
        import sqlalchemy as sa

        facts = self.tables.facts
        for first in range(0, len(names), MAX_LOOKUP_ROWS):
            chosen = facts.c.name.in_(names[first : first + MAX_LOOKUP_ROWS])
            connection.execute(sa.delete(facts).where(facts.c.session == number, chosen))

    def purge(self) -> bool:
        """See `SessionStore`.

        SQLite's log is written back and emptied, and the file written anew; PostgreSQL writes the
        table anew.
        """
        sqlite = ("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
        server = (f"VACUUM (FULL) {self.tables.facts.name}",)
        is_file, busy = self.dialect == "sqlite", False
        with suppress(StoreError), convert_failures("changed"), self.open_read() as connection:
            for statement in sqlite if is_file else server:
                result = connection.exec_driver_sql(statement)
                busy = bool(result.returns_rows and result.scalar())
                result.close()
            return not busy
        return False

    def put_rows(
        self,
        connection: "Connection",
        number: int,
        kind: str,
        rows: Mapping[bytes, bytes],
        tags: Mapping[bytes, bytes],
        *,
        replace: bool,
    ) -> None:
        """See `SealedRowStore`."""
        change = {"of_session": number, **self._build_usage()}
        if connection.execute(self._statements.touch, change).rowcount != 1:
            self.read_version(connection, number)
        if rows:
            statement = self._statements.upsert if replace else self._statements.insert
            row = {"session": number, "number": 0, "kind": kind}
            connection.execute(
                statement,
                [
                    {**row, "name": name, "tag": tags.get(name), "content": rows[name]}
                    for name in sorted(rows)
                ],
            )

    def read_row(self, connection: "Connection", number: int, name: bytes) -> bytes | None:
        """See `SealedRowStore`."""
        values = {"of_session": number, "values": [name]}
        row = connection.execute(self._statements.rows["name"], values).first()
        return None if row is None else SealedRow(*row).content

    def _build_usage(self) -> dict[str, int | None]:
        return {"now": self.get_time(), "expiry": self.compute_expiry()}

    def build_reader(self, number: int) -> RowReader:
        """See `SealedRowStore`."""
        rows = partial(self._read_rows, number)
        return RowReader(partial(rows, "name"), partial(rows, "tag"), partial(rows, ""))

    def _read_rows(
        self, number: int, column: str, values: Sequence[bytes] = (b"",)
    ) -> list[SealedRow]:
        """Reads a session's rows with some values in a column, or all."""
        sealed_rows: list[SealedRow] = []
        with convert_failures("read"), self.open_read() as connection:
            for first in range(0, len(values), MAX_LOOKUP_ROWS):
                value_filter = {"values": values[first : first + MAX_LOOKUP_ROWS]} if column else {}
                session_filter = {} if column == "tag" else {"of_session": number}
                result = connection.execute(
                    self._statements.rows[column], session_filter | value_filter
                )
                sealed_rows += [SealedRow(*row) for row in result]
        return sealed_rows


class StoreFile:
    """File of a store, with a check that it was not replaced.

    SQLite continues to use a deleted file, and what it has cached of it.

    Args:
        path: path of the file.
    """

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(path)
        self._uri = Path(self._path).as_uri()
        self._identity, self._last_state = self._read_status()

    def require(self, name: bytes) -> None:
        """Raises `StoreError` unless the path still holds the store of this name."""
        with suppress(OSError):
            identity, state = self._read_status()
            if identity == self._identity and (
                state == self._last_state or not name or self._has_name(name)
            ):
                self._last_state = state
                return
        raise StoreError(GONE_MESSAGE)

    def _read_status(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Returns the file's identity, and its size and time of change.

        These rarely change, since SQLite writes new pages to the log beside it first.
        """
        status = os.stat(self._path)
        return (status.st_dev, status.st_ino), (status.st_size, status.st_ctime_ns)

    def _has_name(self, name: bytes) -> bool:
        """Says whether the file itself holds the store's name.

        It retries while other processes write to the file.
        """
        for _ in range(MAX_READ_ATTEMPTS):
            with (
                suppress(sqlite3.Error),
                # Immutable: the file alone is read, without locks and without the log beside it.
                closing(sqlite3.connect(f"{self._uri}?immutable=1", uri=True)) as driver,
            ):
                return [(name,)] == driver.execute("SELECT name FROM textveil_store").fetchall()
            time.sleep(RETRY_SECONDS)
        return False


class _ThreadConnection(local):
    """Connection that a thread reads from, if it is fixed."""

    connection: "Connection | None" = None


@contextmanager
def convert_failures(action: str) -> Iterator[None]:
    """Converts database errors to `StoreError` without their text, which may hold rows."""
    with explain_missing():
        import sqlalchemy as sa
    try:
        yield
        return
    except sa.exc.SQLAlchemyError as error:
        reason = type(getattr(error, "orig", None) or error).__name__
        if isinstance(error, sa.exc.OperationalError):
            reason += (
                ": check that it exists, that you may write it, and that no other program locks it"
            )
    # Raised out here, or the error with the rows would be chained where `with` ends.
    raise StoreError(f"the store cannot be {action} ({reason})") from None


def _create_engine(url: str) -> "Engine":
    with explain_missing():
        import sqlalchemy as sa
    if url.startswith("postgresql://"):
        require("psycopg")
        url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    try:
        address = sa.make_url(url)
    except sa.exc.ArgumentError:
        address = None
    if address is None or not address.database or address.database == ":memory:":
        raise ConfigError(
            "a store needs the name of a database: sqlite:///NAME.db or postgresql://HOST/NAME"
        )
    # A thread that holds a transaction may read on a second connection, so no thread may have to
    # wait for one: overflow is unlimited.
    # Errors of SQLAlchemy would show the rows in their text, so their parameters are hidden.
    pool: dict[str, Any] = {"hide_parameters": True, "pool_size": POOL_SIZE, "max_overflow": -1}
    if address.get_backend_name() == "postgresql":
        return _ping_idle(sa.create_engine(address, **pool))
    path = address.database
    if os.path.isdir(path) or not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise StoreError("the URL of a store must name a file in an existing folder")
    try:
        # SQLite gives its other files the same mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(f"the store cannot be opened: {error.strerror}") from None
    engine = sa.create_engine(address, connect_args={"timeout": LOCK_TIMEOUT_SECONDS}, **pool)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin as `begin` says
        for setting in (
            "journal_mode=WAL",
            "synchronous=FULL",  # a power cut must not lose released commits
            "secure_delete=ON",  # a forgotten session's rows are overwritten with zeros
            "foreign_keys=ON",
            f"busy_timeout={LOCK_TIMEOUT_SECONDS * 1000}",
            f"cache_size={-PAGE_CACHE_KIB}",
        ):
            connection.execute(f"PRAGMA {setting}").close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        if begins := connection.get_execution_options().get("textveil_begins"):
            connection.exec_driver_sql(begins)

    return engine


def _ping_idle(engine: "Engine") -> "Engine":
    """Tests idle connections before use; lost ones are opened anew."""
    import sqlalchemy as sa

    @sa.event.listens_for(engine, "checkin")
    def note_checkin(_: Any, record: Any) -> None:
        record.info["idle since"] = time.monotonic()

    @sa.event.listens_for(engine, "checkout")
    def check_idle_connection(connection: Any, record: Any, _: Any) -> None:
        if time.monotonic() < record.info.get("idle since", time.monotonic()) + IDLE_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
            return
        except engine.dialect.loaded_dbapi.Error:
            pass
        raise sa.exc.DisconnectionError("the server has closed this connection")

    return engine
