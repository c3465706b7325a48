"""Keys of the gateway: who may use it, told apart by secrets.

In: a file, which several processes may use at once. Out: keys that are created, listed and revoked;
the owner of a key, and whether it may ask now.
Not here: the rights of a key (`policy`), and its spending (`session`).

A key has 256 random bits. That is why its plain SHA-256 is stored, and no slow hash such as for
passwords: nobody guesses 256 bits from a hash, however fast it is. The file is searched by the
hash. The time that this takes may reveal the length of a common prefix of two hashes, but nobody
can choose the hash of a key, so this leads to no key.

The file is read for each request: a key that is revoked is refused from the next request on, in all
processes. A running stream goes on to its end. The file is an SQLite database, for the processes of
one machine.
"""

import os
import re
import sqlite3
import time
import weakref
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from threading import Lock
from typing import Any

from textveil.errors import ConfigError, StoreError, UnknownName, quote
from textveil.randomness import read_entropy

KEY_PREFIX = "tv-"
"""Prefix of all keys, so that people and secret scanners recognize one."""

NAME_PATTERN = re.compile(r"[\w.@+/-]{1,64}")

APPLICATION_ID = 0x7476_6B31
"""SQLite application id that marks the file as a key file."""

DAY_SECONDS = 86_400

USE_RESOLUTION = 60
"""Seconds after which the use of a key is noted again."""

# The index allows a new key under the name of a revoked one.
CREATE_TABLE = """
create table keys (
    id text primary key, name text not null, hash blob not null unique, made integer not null, expires integer,
    revoked integer, used integer, tokens real, filled real
) strict;
create unique index names on keys (name) where revoked is null;
"""

# One statement, so that two processes never take the same token.
# max(0, ...), because the clock may be set back.
TAKE_TOKEN = """
update keys set filled = :now, tokens = min(:most, coalesce(tokens + max(0, :now - filled) * :most / 60, :most)) - 1
where id = :id and min(:most, coalesce(tokens + max(0, :now - filled) * :most / 60, :most)) >= 1 returning tokens
"""


@dataclass(frozen=True, kw_only=True)
class KeyRecord:
    """Stored facts about a key of the gateway, without the key itself.

    Times are seconds since 1970.

    Attributes:
        id: tells it from other keys that have or had the same name.
        name: the owner, as the operator calls it.
        made: time of creation.
        expires: time of expiry; None for never.
        revoked: time of revocation; None if it was not revoked.
        used: time of the last use, to a minute; None for never.
    """

    id: str
    name: str
    made: int
    expires: int | None
    revoked: int | None
    used: int | None

    @property
    def state(self) -> str:
        """State of the key: "valid", "expired" or "revoked"."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= time.time() else "valid"

    @property
    def account(self) -> str:
        """Account of the key's conversations and spending; no two keys share one."""
        return f"key-{self.name}-{self.id}"


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Sender of a request.

    Attributes:
        account: the account that the conversations belong to.
        key: the gateway key; None where the gateway has no keys, and the client's key is one of the
            upstream.
        header: the header in which the client sent a key; "" for none.
        secret: the client's key as it was sent.
    """

    account: str
    key: KeyRecord | None = None
    header: str = ""
    secret: str = field(default="", repr=False)

    @property
    def name(self) -> str | None:
        """Name of the gateway key; None without one."""
        return None if self.key is None else self.key.name


class GatewayKeys:
    """Key file of the gateway.

    Any number of threads and processes may use it.

    Args:
        path: the file.
        new: whether to create the file if it does not exist, readable for its owner only.

    Raises:
        ConfigError: the file is missing, or of another kind.
    """

    def __init__(self, path: str, *, new: bool = False) -> None:
        self._path, self._lock = path, Lock()
        if new and not os.path.lexists(path):
            self._create_file()
        self._open()

    # ---- the operator ----------------------------------------------------------------------------

    def create(self, name: str, *, days: float | None = None) -> str:
        """Creates a key and returns its secret, which cannot be shown again.

        Args:
            name: the owner of the key.
            days: days until it expires; None for never.

        Raises:
            ConfigError: the name is malformed, or has a key already.
        """
        if not NAME_PATTERN.fullmatch(name):
            raise ConfigError(
                "the name of a key must have 1 to 64 letters, digits and characters of ._-+@/, "
                f"got {quote(name)}"
            )
        if days is not None and not 0 < days <= 36_500:
            raise ConfigError("a key must expire after more than 0 and at most 36,500 days")
        key = KEY_PREFIX + urlsafe_b64encode(read_entropy(32)).decode().rstrip("=")
        now = int(time.time())
        ends = None if days is None else now + round(days * DAY_SECONDS)
        row = read_entropy(4).hex(), name, _hash(key), now, ends
        is_taken = False
        with self._connect(lasting=True) as connection:
            try:
                connection.execute(
                    "insert into keys (id, name, hash, made, expires) values (?, ?, ?, ?, ?)", row
                )
            except sqlite3.IntegrityError:
                is_taken = True
        if is_taken:
            raise ConfigError(
                f"a key named {quote(name)} exists already: revoke it first, or choose another name"
            )
        return key

    def list_keys(self) -> list[KeyRecord]:
        """Lists all keys by name and age, including revoked ones."""
        with self._connect() as connection:
            rows = connection.execute("select * from keys order by name, made, rowid")
            return [_read_row(row) for row in rows]

    def revoke(self, name: str) -> KeyRecord:
        """Revokes the key of a name, from now on.

        Raises:
            ConfigError: no valid key has this name.
        """
        with self._connect(lasting=True) as connection:
            statement = "update keys set revoked = ? where name = ? and revoked is null returning *"
            rows = connection.execute(statement, (int(time.time()), name)).fetchall()
        if not rows:
            valid = {key.name for key in self.list_keys() if key.revoked is None}
            raise ConfigError(
                f"{UnknownName('valid key', name, valid)}; `textveil gateway keys list` shows them"
            )
        return _read_row(rows[0])

    # ---- the gateway -----------------------------------------------------------------------------

    def find(self, key: str) -> KeyRecord | None:
        """Finds the record of a valid key; None for any other."""
        digest, now = _hash(key), int(time.time())
        with self._connect() as connection:
            row = connection.execute("select * from keys where hash = ?", (digest,)).fetchone()
            same = row is not None and compare_digest(row["hash"], digest)
            if not same or (record := _read_row(row)).state != "valid":
                return None
            if record.used is None or record.used + USE_RESOLUTION <= now:
                connection.execute("update keys set used = ? where id = ?", (now, record.id))
        return record

    def count_request(self, key: KeyRecord, requests: int) -> float:
        """Counts a request against the rate limit of a key (token bucket).

        The bucket holds `requests` tokens, and fills steadily within a minute.

        Args:
            key: the key that asks.
            requests: the number of requests that it may send in a minute.

        Returns:
            0, or the seconds that the key must wait; then nothing was counted.
        """
        now = time.time()
        with self._connect() as connection:
            parameters = {"id": key.id, "now": now, "most": float(requests)}
            if connection.execute(TAKE_TOKEN, parameters).fetchone() is not None:
                return 0.0
            query = "select tokens, filled from keys where id = ?"
            row = connection.execute(query, (key.id,)).fetchone()
        tokens = min(float(requests), row["tokens"] + max(0.0, now - row["filled"]) * requests / 60)
        # Never 0, which would say that the request was counted.
        return max(0.001, float(1 - tokens) * 60 / requests)

    # ---- the file --------------------------------------------------------------------------------

    def _create_file(self) -> None:
        """Creates the key file and its table, atomically."""
        temporary = f"{self._path}.{read_entropy(4).hex()}"
        with self._convert_errors():
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            try:
                connection = sqlite3.connect(temporary, isolation_level=None)
                settings = f"pragma application_id = {APPLICATION_ID}; pragma journal_mode = wal;"
                connection.executescript(f"{CREATE_TABLE} {settings}")
                connection.close()
                with suppress(FileExistsError):  # another process was faster
                    # A link fails where there is a file; a rename would replace the keys in it.
                    os.link(temporary, self._path)
            finally:
                os.unlink(temporary)

    def _open(self) -> None:
        with self._convert_errors():
            if not os.path.isfile(self._path):
                raise FileNotFoundError(
                    2, "there is no such file; `textveil gateway keys create` makes it"
                )
            identity = self._read_identity()
            connection = sqlite3.connect(
                self._path,
                timeout=5,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=16,
            )
            # A forked process must not close its parent's connection.
            weakref.finalize(self, connection.close).atexit = False
            connection.row_factory = sqlite3.Row
            (kind,) = connection.execute("pragma application_id").fetchone()
            if kind != APPLICATION_ID:
                connection.close()
                raise sqlite3.DatabaseError
            self._connection, self._opened = connection, identity

    def _read_identity(self) -> tuple[int, int, int]:
        """Identifies the file and the process.

        A connection that another process opened must not be used after a fork.
        """
        stat = os.stat(self._path)
        return stat.st_dev, stat.st_ino, os.getpid()

    @contextmanager
    def _connect(self, *, lasting: bool = False) -> Iterator[Any]:
        """Opens the key file, again where it was replaced.

        With `lasting`, a change waits until it is on the disk.
        """
        with self._lock, self._convert_errors():
            if self._read_identity() != self._opened:
                self._open()
            self._connection.execute(f"pragma synchronous = {'full' if lasting else 'normal'}")
            yield self._connection

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        name = repr(self._path)
        try:
            yield
            return
        except sqlite3.OperationalError as error:
            failure: Exception = StoreError(f"the file of keys {name} cannot be used: {error}")
        except sqlite3.DatabaseError:
            failure = ConfigError(f"{name} is not a file of gateway keys")
        except OSError as error:
            failure = ConfigError(f"the file of keys {name} cannot be used: {error.strerror}")
        raise failure


def _hash(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


def _read_row(row: Any) -> KeyRecord:
    names = ("id", "name", "made", "expires", "revoked", "used")
    return KeyRecord(**{name: row[name] for name in names})
