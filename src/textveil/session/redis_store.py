"""Sessions in a Redis server, shared by any number of processes.

In: a URL, keys, how long sessions are kept. Out: `RedisStore`, which opens `StoredSession`s.
Not here: how rows are sealed and read (`sql`), and what sessions do with them (`database_store`).

There is no ledger: its entries would have to outlive restarts and failovers, which few servers
promise. So a release that spends anything is refused.
"""

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from textveil.config.extras import import_library, require
from textveil.errors import ConfigError, LimitReached, StoreError, TextveilWarning
from textveil.randomness import read_entropy
from textveil.session import redis_scripts
from textveil.session.database_store import (
    SWEEP_LIMIT,
    SealedStore,
    read_options,
)
from textveil.session.spending import Spend
from textveil.session.sql.encryption import NAME_BYTES
from textveil.session.sql.key_stores import KeyStore, open_key_store, read_deployment_key
from textveil.session.sql.lazy_snapshot import RowReader, SealedRow
from textveil.session.sql.row_store import WriteConflictError
from textveil.session.stores import SessionInfo

PREFIX = b"{textveil}:"
"""Beginning of all keys; in a cluster the braces put them on one server."""

STORE_KEY = PREFIX + b"store"
"""Key of the hash with the store's name and proof."""

TIMEOUT_SECONDS, RETRIES = 10, 4
"""Seconds that a call may take, and how often it is repeated after a lost connection."""

LOCK_SECONDS, LOCK_WAIT_SECONDS = 60, 0.005
"""Seconds for which a transaction may lock a session, and between two looks of those who wait."""

VERSION_BYTES = 7
"""Bytes of a version. It is drawn: a server that lost commits never has a known one again."""

NO_TAG = bytes(NAME_BYTES)
"""Tag of rows that are not found by one."""

SCAN_COUNT = 1000
"""Keys that the server looks at in one step of a scan."""

PURGE_SECONDS, PURGE_WAIT_SECONDS = 120, 0.05
"""Seconds in which the server may write its files anew, and between two looks."""

WRITING = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")
"""What the server says while it writes a file."""

NO_LEDGER_MESSAGE = (
    "a store in Redis keeps no ledger, so nothing that spends an epsilon can be released with it: "
    "keep the sessions in sqlite:///NAME.db or postgresql://HOST/NAME, or protect without drawing "
    "words. Nothing was drawn"
)


class RowPlace(NamedTuple):
    """Name of a session's rows in the server.

    Args:
        place: derived name of the session.
        number: drawn when it was created, so that a session of the same name is another one.
    """

    place: bytes
    number: bytes


class SessionRow(NamedTuple):
    """Fields of a session that the server shows.

    Args:
        account: derived name of the subject.
        place: derived name of the session.
        label: sealed names of both.
        made: time of creation, in seconds since 1970.
        used: time of the last addition.
        expires: time of deletion; None for never.
    """

    account: bytes
    place: bytes
    label: bytes
    made: int
    used: int
    expires: int | None


class NoLedger:
    """Takes the place of a ledger, and refuses whatever spends."""

    def reserve_all(self, subject: str, spends: Sequence[Spend], **options: Any) -> list[Any]:
        """Refuses spending, like a ledger in which nobody may spend anything."""
        if spends:
            raise LimitReached(NO_LEDGER_MESSAGE)
        return []

    def limit(
        self, subject: str, metric: str, table: str, epsilon: float | None, **options: Any
    ) -> None:
        """Refuses limits; without one there is nothing to do."""
        if epsilon is not None:
            raise ConfigError(NO_LEDGER_MESSAGE)


@dataclass(kw_only=True)
class Transaction:
    """Changes to one session, sent to the server in one step.

    Attributes:
        holder: drawn name of the transaction, under which it may lock the session.
        at: the session; None where nothing is read or changed yet.
        since: version that must still hold; None where any may.
        version: next version; None where it stays.
        expected: a row that must still have its content, by field of the hash.
        more_rows: rows that the version adds.
        is_locked: True if the session is locked.
        is_cleared: True to delete all earlier rows.
        is_touched: True if there is anything to send.
        rows: what to do, name and packed content of each row, one after another: 0 to add it, 1 to
            replace it, - to remove it.
    """

    holder: bytes = field(default_factory=lambda: read_entropy(NAME_BYTES))
    at: RowPlace | None = None
    since: int | None = None
    version: int | None = None
    expected: tuple[bytes, bytes] = (b"", b"")
    more_rows: int = 0
    is_locked: bool = False
    is_cleared: bool = False
    is_touched: bool = False
    rows: list[bytes] = field(default_factory=list, repr=False)

    def add(self, rows: Sequence[SealedRow], *, replace: bool) -> None:
        """Adds rows to what is sent."""
        for row in rows:
            self.rows += [b"%d" % replace, row.name, _pack(row)]
        self.is_touched = True

    def remove(self, names: Sequence[bytes]) -> None:
        """Removes rows with what is sent."""
        for name in names:
            self.rows += [b"-", name, b""]
        self.is_touched = True


class RedisStore(SealedStore):
    """Sessions in Redis, encrypted; for any number of processes on several machines.

    What is encrypted, and with which keys, is as in `SQLStore`. Each session is one key of the
    server. It keeps no ledger, so a release that spends an epsilon is refused.

    Args:
        url: `redis://HOST:6379/0`, or `rediss://` for TLS.
        keys: see `SQLStore`.
        session_keys: see `SQLStore`; "database" means the server.
        keep: how long a session is kept after something was added; None for ever. After it the
            server deletes the session by itself.

    Warns:
        TextveilWarning: the server may throw sessions out, or lose them when it restarts.

    Raises:
        StoreError: the server cannot be reached, or the key is missing or wrong; nothing was
            written.
    """

    refuses_spending = NO_LEDGER_MESSAGE
    purge_failure = (
        "the server's files, append-only file and snapshot, may still have old rows, sealed, because "
        "it did not write them anew: run BGREWRITEAOF and BGSAVE there"
    )

    def __init__(
        self,
        url: str,
        *,
        keys: str | os.PathLike[str] | None = None,
        session_keys: str = "apart",
        keep: timedelta | None = None,
    ) -> None:
        require("redis", "cryptography")
        url, session_keys, self._keep = read_options(url, session_keys, keep)
        self._client, self.name = _connect(url), b""
        self.key_store = open_key_store(keys)
        with self.convert_failures("opened"):
            self._scripts = {
                name: self._client.register_script(getattr(redis_scripts, name))
                for name in ("OPEN_STORE", "CREATE", "LOCK", "UNLOCK", "WRITE")
            }
            self._prepare()
            self._warn_of_losses()
        self.session_keys = self.key_store if session_keys == "apart" else RedisKeyStore(self)

    def __repr__(self) -> str:
        return "RedisStore()"

    def _prepare(self) -> None:
        """Reads the store's name, or names a new one, and checks the deployment key."""
        name, proof = self._client.hmget(STORE_KEY, ["name", "proof"])
        self._deployment = read_deployment_key(self.key_store, make=proof is None)
        if proof is None:
            name = read_entropy(NAME_BYTES)
            name, proof = self._scripts["OPEN_STORE"](
                keys=[STORE_KEY], args=[name, self._seal_proof(name)]
            )
        self._unlock(name, proof)

    def _warn_of_losses(self) -> None:
        try:
            info = {**self._client.info("memory"), **self._client.info("persistence")}
        except import_library("redis").ResponseError:  # which some servers allow to nobody
            return
        losses = []
        if info.get("maxmemory_policy", "noeviction") != "noeviction":
            losses.append(
                "throw sessions out when its memory is full (set maxmemory-policy noeviction)"
            )
        if not info.get("aof_enabled", 1):
            losses.append("lose what was added last when it restarts (set appendonly yes)")
        if losses:
            warnings.warn(
                f"the Redis server may {' and '.join(losses)}: answers to it cannot be restored then",
                TextveilWarning,
                stacklevel=4,
            )

    # ---- keys of the server ----------------------------------------------------------------------

    def build_key(self, kind: str, name: bytes = b"") -> bytes:
        """Returns a key of the server.

        Args:
            kind: "session", "key" or "ends".
            name: derived name of what it holds.
        """
        return PREFIX + f"{self.name.hex()}:{kind}:{name.hex()}".encode()

    def _list_keys(self, place: bytes) -> list[bytes]:
        """Lists the keys that scripts about a session take."""
        return [
            self.build_key("session", place),
            STORE_KEY,
            self.build_key("ends"),
            self.build_key("key", place),
        ]

    # ---- sessions --------------------------------------------------------------------------------

    def sessions(self) -> list[SessionInfo]:
        """See `SessionStore`."""
        with self.convert_failures("read"):
            rows = [row for _, row in self._scan()]
        return sorted(map(self._read_metadata, rows), key=lambda info: (info.made, info.session))

    def ping(self) -> None:
        """See `SessionStore`."""
        with self.convert_failures("read"):
            if self._client.hget(STORE_KEY, "name") != self.name:
                raise StoreError(GONE_MESSAGE)

    @property
    def ledger(self) -> Any:
        """See `SessionStore`; there is none."""
        raise ConfigError(NO_LEDGER_MESSAGE)

    @property
    def charger(self) -> Any:
        """See `SealedStore`; it refuses all that spend."""
        return NoLedger()

    def _scan(self) -> Iterator[tuple[bytes, SessionRow]]:
        """Yields all sessions, by derived name."""
        fields = ["account", "label", "made", "used", "expires"]
        pattern = self.build_key("session") + b"*"
        for key in set(self._client.scan_iter(pattern, count=SCAN_COUNT)):
            account, label, made, used, expires = self._client.hmget(key, fields)
            if label is not None:
                place = bytes.fromhex(key.rpartition(b":")[2].decode())
                yield (
                    place,
                    SessionRow(
                        account,
                        place,
                        label,
                        int(made),
                        int(used),
                        int(expires) if expires else None,
                    ),
                )

    def _list_places(self, account: bytes) -> Sequence[bytes]:
        """See `SealedStore`."""
        # By a scan and not by an index, which a server could throw out.
        return [place for place, row in self._scan() if row.account == account]

    def _find_number(self, place: bytes) -> RowPlace | None:
        """See `SealedStore`."""
        number = self._client.hget(self.build_key("session", place), "number")
        return None if number is None else RowPlace(place, number)

    def _create(self, account: bytes, place: bytes, label: bytes) -> RowPlace:
        """See `SealedStore`."""
        now, expires = self.get_time(), self.compute_expiry()
        values: dict[str, Any] = {"number": read_entropy(NAME_BYTES), "account": account}
        values |= {"label": label, "version": 0, "last": 0, "made": now, "used": now}
        values["expires"] = "" if expires is None else expires
        pairs = [part for pair in values.items() for part in pair]
        number = self._scripts["CREATE"](
            keys=self._list_keys(place), args=[self.name, values["expires"], place, *pairs]
        )
        if number is None:
            raise StoreError(GONE_MESSAGE)
        return RowPlace(place, number)

    def _delete_rows_of(self, place: bytes) -> None:
        """See `SealedStore`."""
        session, _, ends, key = self._list_keys(place)
        self._client.delete(session, key)
        self._client.zrem(ends, place)

    def _list_expired(self, first: bytes) -> Sequence[bytes]:
        """See `SealedStore`."""
        ends, now = self.build_key("ends"), self.get_time()
        places: list[bytes] = self._client.zrangebyscore(ends, "-inf", now, 0, SWEEP_LIMIT)
        expiry = self._client.zscore(ends, first)
        return [*places, *([first] if expiry is not None and expiry <= now else [])]

    # ---- rows ------------------------------------------------------------------------------------

    def convert_failures(self, action: str) -> AbstractContextManager[None]:
        """See `SealedRowStore`."""
        return convert_failures(action)

    def open_read(self) -> AbstractContextManager[Any]:
        """See `SealedRowStore`; the client has connections of its own."""
        return nullcontext()

    def keep_connection(self) -> AbstractContextManager[None]:
        """See `SealedRowStore`."""
        return nullcontext()

    @contextmanager
    def open_write(self) -> Iterator[Transaction]:
        """See `SealedRowStore`; nothing is sent before the block's end, but for locks."""
        transaction = Transaction()
        try:
            yield transaction
            if transaction.is_touched:
                self._send(transaction)
                transaction.is_locked = False
        finally:
            if transaction.is_locked:
                assert transaction.at is not None, "what is locked"
                self._scripts["UNLOCK"](
                    keys=self._list_keys(transaction.at.place), args=[transaction.holder]
                )

    def _send(self, transaction: Transaction) -> None:
        assert transaction.at is not None, "what is changed"
        place, number = transaction.at
        expires = self.compute_expiry()
        arguments = [
            self.name,
            number,
            transaction.holder,
            "" if transaction.since is None else transaction.since,
            "" if transaction.version is None else transaction.version,
            transaction.more_rows,
            self.get_time(),
            "" if expires is None else expires,
            *transaction.expected,
            int(transaction.is_cleared),
            place,
            *transaction.rows,
        ]
        self._run("WRITE", place, arguments)

    def _run(self, script: str, place: bytes, arguments: Sequence[Any]) -> None:
        """Runs a script about a session, after those who hold it.

        Raises:
            WriteConflictError: the session is another than it was. StoreError: it was deleted, or
                is held for too long.
        """
        end = time.monotonic() + LOCK_SECONDS
        while (
            answer := self._scripts[script](keys=self._list_keys(place), args=arguments)
        ) == b"held":
            if time.monotonic() > end:
                raise StoreError("another process holds this session; try again")
            time.sleep(LOCK_WAIT_SECONDS)
        if answer == b"changed":
            raise WriteConflictError("another process changed this session meanwhile; try again")
        if answer != b"done":
            raise StoreError(FORGOTTEN_MESSAGE if answer == b"forgotten" else GONE_MESSAGE)

    def read_version(
        self, connection: Transaction | None, number: RowPlace, *, lock: bool = False
    ) -> tuple[int, int]:
        """See `SealedRowStore`."""
        if lock:
            assert connection is not None, "only a transaction locks"
            connection.at = number
            self._run("LOCK", number.place, [number.number, connection.holder, LOCK_SECONDS])
            connection.is_locked = True
        found, version, last = self._client.hmget(
            self.build_key("session", number.place), ["number", "version", "last"]
        )
        if found != number.number:
            raise StoreError(FORGOTTEN_MESSAGE)
        return int(version), int(last)

    def add_rows(
        self, connection: Transaction, number: RowPlace, version: int, rows: Sequence[SealedRow]
    ) -> int | None:
        """See `SealedRowStore`; that others committed first is known at the end of the transaction."""
        following = 1 + int.from_bytes(read_entropy(VERSION_BYTES), "big")
        connection.at, connection.since, connection.version = number, version, following
        connection.more_rows = len(rows)
        connection.add(rows, replace=True)
        return following

    def delete_rows(self, connection: Transaction, number: RowPlace) -> None:
        """See `SealedRowStore`."""
        connection.at, connection.is_cleared, connection.is_touched = number, True, True

    def remove_rows(
        self, connection: Transaction, number: RowPlace, names: Sequence[bytes]
    ) -> None:
        """See `SealedRowStore`."""
        connection.at = number
        connection.remove(names)

    def purge(self) -> bool:
        """See `SessionStore`; the server writes its files anew, as far as it is allowed to.

        Files of before are deleted, not overwritten. Replicas have files of their own.
        """
        with suppress(StoreError), self.convert_failures("changed"):
            self._rewrite_files()
            return True
        return False

    def _rewrite_files(self) -> None:
        """Writes the server's append-only file and snapshot anew, where it keeps them.

        Raises:
            StoreError: it failed, or took too long. Errors of the server: it is not allowed.
        """
        saves = bool(self._client.config_get("save")["save"])
        for is_kept, write, status in (
            (self._wait_for_files()["aof_enabled"], "bgrewriteaof", "aof_last_bgrewrite_status"),
            (saves, "bgsave", "rdb_last_bgsave_status"),
        ):
            if is_kept:
                getattr(self._client, write)()
                if self._wait_for_files()[status] != "ok":
                    raise StoreError("the server could not write its files")

    def _wait_for_files(self) -> dict[str, Any]:
        """Waits until the server writes no files, which may still be those of before."""
        end = time.monotonic() + PURGE_SECONDS
        while time.monotonic() < end:
            info: dict[str, Any] = self._client.info("persistence")
            if not any(info.get(name) for name in WRITING):
                return info
            time.sleep(PURGE_WAIT_SECONDS)
        raise StoreError("the server takes too long to write its files")

    def put_rows(
        self,
        connection: Transaction,
        number: RowPlace,
        kind: str,
        rows: Mapping[bytes, bytes],
        tags: Mapping[bytes, bytes],
        *,
        replace: bool,
    ) -> None:
        """See `SealedRowStore`."""
        connection.at = number
        connection.add(
            [SealedRow(name, 0, kind, tags.get(name), rows[name]) for name in sorted(rows)],
            replace=replace,
        )

    def read_row(self, connection: Transaction, number: RowPlace, name: bytes) -> bytes | None:
        """See `SealedRowStore`."""
        row = self._client.hget(self.build_key("session", number.place), b"r" + name)
        connection.expected = b"r" + name, row or b""
        return None if row is None else _unpack(name, row).content

    def build_reader(self, number: RowPlace) -> RowReader:
        """See `SealedRowStore`."""
        key = self.build_key("session", number.place)
        return RowReader(
            partial(self._read_names, key),
            partial(self._read_tags, key),
            partial(self._read_all, key),
        )

    def _read_names(self, key: bytes, names: Sequence[bytes]) -> list[SealedRow]:
        if not names:
            return []
        with self.convert_failures("read"):
            rows = self._client.hmget(key, [b"r" + name for name in names])
        return [
            _unpack(name, row) for name, row in zip(names, rows, strict=True) if row is not None
        ]

    def _read_tags(self, key: bytes, tags: Sequence[bytes]) -> list[SealedRow]:
        if not tags:
            return []
        with self.convert_failures("read"):
            lists = self._client.hmget(key, [b"t" + tag for tag in tags])
        names = {
            row[i : i + NAME_BYTES]: None
            for row in lists
            if row is not None
            for i in range(0, len(row), NAME_BYTES)
        }
        # A row that was replaced may have another tag now.
        return [row for row in self._read_names(key, list(names)) if row.tag in tags]

    def _read_all(self, key: bytes) -> list[SealedRow]:
        with self.convert_failures("read"):
            fields = self._client.hgetall(key)
        return [
            _unpack(name[1:], row)
            for name, row in fields.items()
            if len(name) == NAME_BYTES + 1 and name[:1] == b"r"
        ]

    def close(self) -> None:
        """See `SessionStore`."""
        self._client.close()

    @property
    def client(self) -> Any:
        """Connections to the server."""
        return self._client


class RedisKeyStore(KeyStore):
    """Sealed keys in the server itself, which deletes them with their sessions.

    Args:
        store: the store that holds them.
    """

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    def _build_key(self, name: str) -> bytes:
        return self._store.build_key("key", bytes.fromhex(name.rpartition("/")[2]))

    def get(self, name: str) -> bytes | None:
        """See `KeyStore`."""
        content: bytes | None = self._store.client.get(self._build_key(name))
        return content

    def add(self, name: str, content: bytes) -> bytes:
        """See `KeyStore`."""
        self._store.client.setnx(self._build_key(name), content)
        return self.get(name) or content

    def put(self, name: str, content: bytes) -> None:
        """See `KeyStore`."""
        self._store.client.set(self._build_key(name), content)

    def destroy(self, name: str) -> None:
        """See `KeyStore`."""
        self._store.client.delete(self._build_key(name))


@contextmanager
def convert_failures(action: str) -> Iterator[None]:
    """Converts errors of the server to `StoreError` without their text, which may hold rows."""
    redis = import_library("redis")
    try:
        yield
        return
    except redis.RedisError as error:
        reason = type(error).__name__
        hint = next((hint for kind, hint in HINTS.items() if kind in reason), "")
    # Raised out here, or the error with the rows would be chained where `with` ends.
    raise StoreError(f"the store cannot be {action} ({reason}){hint}") from None


HINTS = {
    "OutOfMemory": ": the memory of the server is full",
    "Authentication": ": check the user and the password in the URL",
    "NoPermission": ": the user needs all commands on keys that begin with {textveil}:",
    "ReadOnly": ": it is a replica; name the server that is written to",
    "Connection": ": check that the server runs, and its address in the URL",
    "Timeout": ": the server does not answer",
}
"""What to do about an error of the server, by a part of its name."""

GONE_MESSAGE = (
    "the server has lost the store, or another store is in its place: put it back, or restart with "
    "the new store"
)
FORGOTTEN_MESSAGE = "this session was forgotten; open a new one"


def _connect(url: str) -> Any:
    """Returns a client that connects anew where a connection was lost.

    Raises:
        ConfigError: the URL names no server. It is not shown, since it may hold a password.
    """
    redis = import_library("redis")
    retry = import_library("redis.retry").Retry(
        import_library("redis.backoff").ExponentialBackoff(cap=1, base=0.05), RETRIES
    )
    try:
        client = redis.Redis.from_url(
            url,
            decode_responses=False,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            health_check_interval=30,
            retry=retry,
            retry_on_error=[redis.ConnectionError, redis.TimeoutError],
        )
        client.connection_pool.make_connection()  # connects to nothing yet
        return client
    except (TypeError, ValueError):
        pass
    raise ConfigError(
        "a store in Redis is named by redis://HOST:6379/0, or rediss:// for TLS; behind ? may stand "
        "keep, session_keys and the options of redis-py"
    )


def _pack(row: SealedRow) -> bytes:
    kind = row.kind.encode()
    return b"".join(
        [row.tag or NO_TAG, row.number.to_bytes(8, "big"), bytes([len(kind)]), kind, row.content]
    )


def _unpack(name: bytes, packed: bytes) -> SealedRow:
    tag, start = packed[:NAME_BYTES], NAME_BYTES + 9
    end = start + packed[start - 1]
    return SealedRow(
        name,
        int.from_bytes(packed[NAME_BYTES : start - 1], "big"),
        packed[start:end].decode(),
        None if tag == NO_TAG else tag,
        packed[end:],
    )
