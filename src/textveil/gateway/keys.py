"""Keys of the gateway's own: who may use it, told apart by what they send.

In: a file, which several processes may use at once. Out: keys that are made, listed and revoked; whose a key is, and
whether it may ask now.
Not here: what whoever has a key may do (`policy`), and what is spent (`session`).

A key has 256 random bits. That is why its plain SHA-256 is kept, and no slow hash such as for passwords: nobody guesses
256 bits from a hash, however fast it is. The file is searched by the hash. How long that takes may tell how far two
hashes agree, but nobody can choose the hash of what he sends, so that this leads to no key.

The file is looked at for each request: a key that is revoked is refused from the next request on, in all processes. A
stream that runs goes on to its end. It is a database of SQLite, for the processes of one machine.
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
from textveil.randomness import os_entropy

BEGINS = "tv-"
"""How keys begin, so that people and programs that look for secrets know one."""

NAME = re.compile(r"[\w.@+/-]{1,64}")

KIND = 0x7476_6B31
"""Marks the file as one of keys."""

DAY = 86_400

USED = 60
"""Seconds after which it is noted again that a key is used."""

TABLE = """
create table keys (
    id text primary key, name text not null, hash blob not null unique, made integer not null, expires integer,
    revoked integer, used integer, tokens real, filled real
) strict;
create unique index names on keys (name) where revoked is null;
"""

TAKE = """
update keys set filled = :now, tokens = min(:most, coalesce(tokens + max(0, :now - filled) * :most / 60, :most)) - 1
where id = :id and min(:most, coalesce(tokens + max(0, :now - filled) * :most / 60, :most)) >= 1 returning tokens
"""


@dataclass(frozen=True, kw_only=True)
class OwnKey:
    """What is known of a key; the key itself is not. Times are seconds since 1970.

    Attributes:
        id: tells it from others that have or had the same name.
        name: whose it is, as the operator says.
        made: when.
        expires: when it ends; None for never.
        revoked: when it was revoked; None if it was not.
        used: when it was last used, to a minute; None for never.
    """

    id: str
    name: str
    made: int
    expires: int | None
    revoked: int | None
    used: int | None

    @property
    def state(self) -> str:
        """Whether it can be used."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= time.time() else "valid"

    @property
    def account(self) -> str:
        """To whom its conversations belong, and what they spend is charged: two keys share none."""
        return f"key-{self.name}-{self.id}"


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who asks.

    Attributes:
        account: to whom conversations belong.
        key: of the gateway's own; None where it has none, and the client's key is the upstream's.
        header: the header in which the client sent a key; "" for none.
        secret: the client's key as it was sent.
    """

    account: str
    key: OwnKey | None = None
    header: str = ""
    secret: str = field(default="", repr=False)

    @property
    def name(self) -> str | None:
        """The name of the gateway's own key."""
        return None if self.key is None else self.key.name


class GatewayKeys:
    """The file of the gateway's keys. Any number of threads and processes may use it.

    Args:
        path: the file.
        new: whether it is made where there is none, for its owner only.

    Raises:
        ConfigError: it is missing, or another kind of file.
    """

    def __init__(self, path: str, *, new: bool = False) -> None:
        self._path, self._lock = path, Lock()
        if new and not os.path.lexists(path):
            self._make()
        self._open()

    # ---- the operator --------------------------------------------------------------------------------------------

    def create(self, name: str, *, days: float | None = None) -> str:
        """A new key. It is nowhere else, and cannot be shown again.

        Args:
            name: whose it is.
            days: after which it ends; None for never.

        Raises:
            ConfigError: the name is no name, or has a key already.
        """
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"the name of a key must have 1 to 64 letters, digits and characters of ._-+@/, got {quote(name)}"
            )
        if days is not None and not 0 < days <= 36_500:
            raise ConfigError("a key must end after more than 0 and at most 36,500 days")
        key = BEGINS + urlsafe_b64encode(os_entropy(32)).decode().rstrip("=")
        now = int(time.time())
        ends = None if days is None else now + round(days * DAY)
        row = os_entropy(4).hex(), name, _hash(key), now, ends
        taken = False
        with self._using(lasting=True) as connection:
            try:
                connection.execute(
                    "insert into keys (id, name, hash, made, expires) values (?, ?, ?, ?, ?)", row
                )
            except sqlite3.IntegrityError:
                taken = True
        if taken:
            raise ConfigError(
                f"there is a key named {quote(name)}: revoke it first, or take another name"
            )
        return key

    def listed(self) -> list[OwnKey]:
        """All keys, also those that were revoked, by name and age."""
        with self._using() as connection:
            rows = connection.execute("select * from keys order by name, made, rowid")
            return [_known(row) for row in rows]

    def revoke(self, name: str) -> OwnKey:
        """Refuse a key from now on.

        Raises:
            ConfigError: no key has this name, or it was revoked.
        """
        with self._using(lasting=True) as connection:
            asked = "update keys set revoked = ? where name = ? and revoked is null returning *"
            rows = connection.execute(asked, (int(time.time()), name)).fetchall()
        if not rows:
            known = {each.name for each in self.listed() if each.revoked is None}
            raise ConfigError(
                f"{UnknownName('valid key', name, known)}; `textveil gateway keys list` shows them"
            )
        return _known(rows[0])

    # ---- the gateway -----------------------------------------------------------------------------------------------

    def find(self, key: str) -> OwnKey | None:
        """Whose a key is, if it may be used."""
        hashed, now = _hash(key), int(time.time())
        with self._using() as connection:
            row = connection.execute("select * from keys where hash = ?", (hashed,)).fetchone()
            same = row is not None and compare_digest(row["hash"], hashed)
            if not same or (known := _known(row)).state != "valid":
                return None
            if known.used is None or known.used + USED <= now:
                connection.execute("update keys set used = ? where id = ?", (now, known.id))
        return known

    def take(self, key: OwnKey, requests: int) -> float:
        """Count a request against what a key may ask in a minute: a bucket that holds as many, and fills steadily.

        Args:
            key: whose request it is.
            requests: how many it may send in a minute.

        Returns:
            0, or for how many seconds the key must wait; then nothing was counted.
        """
        now = time.time()
        with self._using() as connection:
            given = {"id": key.id, "now": now, "most": float(requests)}
            if connection.execute(TAKE, given).fetchone() is not None:
                return 0.0
            asked = "select tokens, filled from keys where id = ?"
            row = connection.execute(asked, (key.id,)).fetchone()
        left = min(float(requests), row["tokens"] + max(0.0, now - row["filled"]) * requests / 60)
        return max(0.001, float(1 - left) * 60 / requests)

    # ---- the file --------------------------------------------------------------------------------------------------

    def _make(self) -> None:
        """The file, and what is in a new one. It is there when it is whole."""
        beside = f"{self._path}.{os_entropy(4).hex()}"
        with self._failures():
            os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            try:
                connection = sqlite3.connect(beside, isolation_level=None)
                settings = f"pragma application_id = {KIND}; pragma journal_mode = wal;"
                connection.executescript(f"{TABLE} {settings}")
                connection.close()
                with suppress(FileExistsError):  # another process was faster
                    os.link(beside, self._path)
            finally:
                os.unlink(beside)

    def _open(self) -> None:
        with self._failures():
            if not os.path.isfile(self._path):
                raise FileNotFoundError(
                    2, "there is no such file; `textveil gateway keys create` makes it"
                )
            there = self._identity()
            connection = sqlite3.connect(
                self._path,
                timeout=5,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=16,
            )
            # A fork must not close what is not its own.
            weakref.finalize(self, connection.close).atexit = False
            connection.row_factory = sqlite3.Row
            (kind,) = connection.execute("pragma application_id").fetchone()
            if kind != KIND:
                connection.close()
                raise sqlite3.DatabaseError
            self._connection, self._opened = connection, there

    def _identity(self) -> tuple[int, int, int]:
        """Which file is open, and in which process: what another one opened must not be used after a fork."""
        there = os.stat(self._path)
        return there.st_dev, there.st_ino, os.getpid()

    @contextmanager
    def _using(self, *, lasting: bool = False) -> Iterator[Any]:
        """The file as it is now; `lasting` waits until a change is on the disk."""
        with self._lock, self._failures():
            if self._identity() != self._opened:
                self._open()
            self._connection.execute(f"pragma synchronous = {'full' if lasting else 'normal'}")
            yield self._connection

    @contextmanager
    def _failures(self) -> Iterator[None]:
        name = repr(self._path)
        try:
            yield
            return
        except sqlite3.OperationalError as error:
            failure: Exception = StoreError(f"the file of keys {name} cannot be used: {error}")
        except sqlite3.DatabaseError:
            failure = ConfigError(f"{name} is no file of the gateway's keys")
        except OSError as error:
            failure = ConfigError(f"the file of keys {name} cannot be used: {error.strerror}")
        raise failure


def _hash(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


def _known(row: Any) -> OwnKey:
    names = ("id", "name", "made", "expires", "revoked", "used")
    return OwnKey(**{name: row[name] for name in names})
