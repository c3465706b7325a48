"""Sessions in a database, shared by any number of processes.

In: a URL, keys, how long sessions are kept. Out: `SQLStore`, which opens `StoredSession`s.
Not here: how rows are sealed (`sql.seal`), looked up (`sql.view`), and transactions
(`sql.database`).
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from threading import local
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import parse_qsl, urlencode

from textveil.config.extras import require
from textveil.errors import ConfigError, InputError, StoreError
from textveil.randomness import os_entropy
from textveil.session.snapshot import FACTS, SessionDelta, Snapshot
from textveil.session.spending import Spend
from textveil.session.sql import schema
from textveil.session.sql.database import Database, failures
from textveil.session.sql.keys import LENGTH, Drawer, deployment
from textveil.session.sql.ledger import Ledger, Reservation
from textveil.session.sql.links import StoredLinks
from textveil.session.sql.seal import NAME, Cipher, Seal, derived
from textveil.session.sql.statements import inserted
from textveil.session.sql.view import StoredSnapshot
from textveil.session.state import ATTEMPTS, LASTING, Session, check
from textveil.session.stores import DEFAULT, KeptSession, SessionStore, no_session

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")

SWEPT = 20
"""Most expired sessions to delete when one is opened."""

CONVERSATIONS = "conversations"
"""Name of the session that holds the links of an account."""

WORDS = "lasting words"
"""Name of the session that holds the draws a subject's sessions share."""

PROOF = b"textveil"
"""Plaintext that is sealed in the store to check the deployment key."""


class SQLStore(Database, SessionStore):
    """Sessions in SQLite or PostgreSQL, encrypted; for any number of processes, with PostgreSQL on several machines.

    What a session knows is encrypted with a key of its own, which lies in the key folder or
    keyring, sealed with the key of the deployment. The database shows how many sessions and rows
    there are, of which kinds, and when they came. To forget a session destroys its key first:
    copies of the database that remain cannot be read any more.

    Args:
        url: `sqlite:///veil.db`, or `postgresql://USER@HOST/NAME`.
        keys: where keys lie: a folder, or "keyring"; else what the environment variable
            TEXTVEIL_KEYS says, or `~/.local/share/textveil/keys`. The key of the deployment is that
            of TEXTVEIL_STORE_KEY, where it is set.
        session_keys: "apart", where the key of the deployment lies; or "database", for several
            machines without a folder in common: then a session that is forgotten can still be read
            in backups from before.
        keep: how long a session is kept after something was added; None for ever.

    The last two may be in the URL, too, keep in days:
    `sqlite:///veil.db?keep=30&session_keys=database`.

    Raises:
        StoreError: the database cannot be opened, or the key is missing or wrong; nothing was
            written.
    """

    def __init__(
        self,
        url: str,
        *,
        keys: str | os.PathLike[str] | None = None,
        session_keys: Literal["apart", "database"] = "apart",
        keep: timedelta | None = None,
    ) -> None:
        require("sqlalchemy", "alembic", "cryptography")
        url, options = _split_options(url)
        session_keys, keep = options.get("session_keys", session_keys), options.get("keep", keep)
        if session_keys not in ("apart", "database"):
            raise ConfigError("session_keys must be apart or database")
        if keep is not None and keep <= timedelta(0):
            raise ConfigError("keep must be a time longer than 0")
        Database.__init__(self, url, keys, keep)
        with failures("opened"):
            self._prepare()
        self._keys: Drawer = self.drawer if session_keys == "apart" else Shelf(self)

    def __repr__(self) -> str:
        return f"SQLStore({self._engine.dialect.name})"

    @property
    def ledger(self) -> Ledger:
        """Ledger of what releases have spent, and may spend."""
        return self._ledger

    # ---- sessions --------------------------------------------------------------------------------

    def open(self, subject: str, session: str = DEFAULT, *, new: bool = True) -> "StoredSession":
        """See `SessionStore`."""
        check(subject, session)
        account, place = self._derive_account(subject), self._derive_place(subject, session)
        with failures("opened"), self.reading_often():
            self._sweep(place)
            number = self._find_number(place)
            if number is None and not new:
                raise no_session(subject, session)
            key = self._open_key(account, place, make=number is None)
            if number is None:
                number = self._create(subject, session)
        seal = Seal(self.name, account, place, self._derive_account_key(subject), key)
        return StoredSession(self, subject, number, seal)

    def sessions(self) -> list[KeptSession]:
        """See `SessionStore`."""
        import sqlalchemy as sa

        table = self.tables.sessions
        with failures("read"), self.reading() as connection:
            rows = connection.execute(sa.select(table).order_by(table.c.number)).all()
        return [self._read_metadata(row) for row in rows]

    def ping(self) -> None:
        """See `SessionStore`."""
        import sqlalchemy as sa

        with failures("read"), self.reading() as connection:
            connection.execute(sa.select(self.tables.sessions.c.number).limit(1)).all()

    def forget(self, subject: str, session: str | None = None) -> int:
        """See `SessionStore`. The key is destroyed first, then the rows."""
        import sqlalchemy as sa

        check(subject, session or DEFAULT)
        table = self.tables.sessions
        which = table.c.account == self._derive_account(subject)
        if session is not None:
            which &= table.c.place == self._derive_place(subject, session)
        with failures("changed"):
            with self.reading() as connection:
                places = connection.execute(sa.select(table.c.place).where(which)).scalars().all()
            for place in places:
                self._destroy(place)
        return len(places)

    def links(self, account: str) -> StoredLinks:
        """See `SessionStore`."""
        session = self.open(account, CONVERSATIONS)
        return StoredLinks(self, self.ledger, session.number, session.seal)

    def pseudonym(self, secret: bytes) -> str:
        """See `SessionStore`; all processes with the deployment key return the same."""
        return derived(self._deployment, b"pseudonym", self.name, secret).hex()[:16]

    def take(self, content: str | bytes, subject: str, session: str = DEFAULT) -> "StoredSession":
        """Imports a session that `Session.to_json` wrote, under a free name.

        Raises:
            InputError: the content is no session, or the name is taken.
        """
        read = Session.from_json(content).snapshot()
        opened = self.open(subject, session)
        snapshot = opened.snapshot()
        delta = SessionDelta(
            since=snapshot.version, **{kind: getattr(read, kind) for kind in FACTS}
        )
        if snapshot.version or not opened.commit(delta):
            raise InputError(
                "there is a session of this name already; choose another name, or forget that one first"
            )
        return opened

    # ---- keys ------------------------------------------------------------------------------------

    def _derive_account(self, subject: str) -> bytes:
        return derived(self._deployment, b"account", self.name, subject.encode())[:NAME]

    def _derive_account_key(self, subject: str) -> bytes:
        return derived(self._deployment, b"key of account", self.name, subject.encode())

    def _derive_place(self, subject: str, session: str) -> bytes:
        return derived(self._derive_account_key(subject), b"session", session.encode())[:NAME]

    def _open_key(self, account: bytes, place: bytes, *, make: bool) -> bytes:
        """Returns the key of a session, opened with the deployment key.

        Args:
            account: derived name of the subject.
            place: derived name of the session.
            make: True to create a key where there is none.

        Raises:
            StoreError: the key is missing.
        """
        cipher = Cipher(derived(self._deployment, b"keys", self.name), self.name, account)
        name = f"{self.name.hex()}/{place.hex()}"
        sealed = self._keys.get(name)
        if sealed is None and make:
            sealed = self._keys.add(name, cipher.seal(os_entropy(LENGTH), place))
        if sealed is None:
            raise StoreError(
                "the key of this session is missing: put it back where keys lie (TEXTVEIL_KEYS), or, if it was "
                "destroyed, remove what is left with `textveil session forget`. Nothing was read or written"
            )
        return cipher.open(sealed, place)[:LENGTH]

    def _destroy(self, place: bytes) -> None:
        import sqlalchemy as sa

        sessions, facts = self.tables.sessions, self.tables.facts
        self._keys.destroy(f"{self.name.hex()}/{place.hex()}")
        with self.writing() as connection:
            number = connection.execute(
                sa.select(sessions.c.number).where(sessions.c.place == place)
            ).scalar()
            connection.execute(sa.delete(facts).where(facts.c.session == number))
            connection.execute(sa.delete(sessions).where(sessions.c.number == number))

    # ---- rows ------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Reads the store's name, checks the deployment key, and migrates the tables."""
        import sqlalchemy as sa

        store = self.tables.store
        with self.reading() as connection:
            revision = schema.revision(connection)
            stored = None if revision is None else connection.execute(sa.select(store)).first()
        self._deployment = deployment(self.drawer, make=stored is None)
        if stored is not None:
            self._unlock(stored)
        if stored is None or revision != schema.HEAD:
            with self.writing() as connection:
                former = schema.prepare(connection)
                row = connection.execute(sa.select(store)).first()
                if row is None:
                    name = os_entropy(NAME)
                    proof = Cipher(derived(self._deployment, b"proof"), name).seal(PROOF)
                    statement = sa.insert(store).values(name=name, proof=proof, made=self.now())
                    row = connection.execute(statement.returning(store)).one()
                self._unlock(row)
                if former in schema.UNSEALED:
                    self._ledger.bind(connection)
        # So that the name is in the file itself, and not only in the write-ahead log.
        if self._file is not None:
            with self.reading() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)").close()

    def _unlock(self, known: Any) -> None:
        """Checks the deployment key against the store's proof, and opens the ledger.

        Raises:
            StoreError: the key is that of another store.
        """
        Cipher(derived(self._deployment, b"proof"), known.name).open(known.proof)
        self.name = known.name
        self._ledger = Ledger(self, self._deployment)

    def _find_number(self, place: bytes) -> int | None:
        import sqlalchemy as sa

        table = self.tables.sessions
        with self.reading() as connection:
            number: int | None = connection.execute(
                sa.select(table.c.number).where(table.c.place == place)
            ).scalar()
        return number

    def _create(self, subject: str, session: str) -> int:
        account, place = self._derive_account(subject), self._derive_place(subject, session)
        label = self._label_cipher().seal(json.dumps([subject, session]).encode(), account, place)
        values = {"account": account, "place": place, "label": label, "version": 0, "last": 0}
        with self.writing() as connection:
            times = {"made": self.now(), "used": self.now(), "expires": self.expiry()}
            row = inserted(self.tables.sessions, self.dialect).values(values | times)
            connection.execute(row.on_conflict_do_nothing())
        number = self._find_number(place)
        if number is None:
            raise StoreError("the session was forgotten while it was made; try again")
        return number

    def _label_cipher(self) -> Cipher:
        return Cipher(derived(self._deployment, b"labels", self.name), self.name)

    def _read_metadata(self, row: Any) -> KeptSession:
        subject, session = json.loads(self._label_cipher().open(row.label, row.account, row.place))
        return KeptSession(
            subject=subject, session=session, made=row.made, used=row.used, expires=row.expires
        )

    def _sweep(self, first: bytes) -> None:
        """Deletes expired sessions: the one being opened, and at most `SWEPT` more."""
        import sqlalchemy as sa

        table = self.tables.sessions
        over = sa.select(table.c.place).where(table.c.expires <= self.now())
        with self.reading() as connection:
            places = [
                *connection.execute(over.where(table.c.place == first)).scalars(),
                *connection.execute(over.where(table.c.place != first).limit(SWEPT)).scalars(),
            ]
        for place in places:
            self._destroy(place)


class Charged(local):
    """Charges and transaction of the release in progress, one set per thread."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Starts the next release with no charges."""
        self.spends: list[Spend] = []
        self.reserved: list[Reservation] = []
        self.connection: Any = None


class StoredSession(Session):
    """A session of a `SQLStore`, read on demand, extended row by row.

    Args:
        store: the store that holds it.
        subject: the person or client it belongs to.
        number: its row number.
        seal: cipher of its rows.
    """

    counts_spending = True

    def __init__(self, store: SQLStore, subject: str, number: int, seal: Seal) -> None:
        super().__init__(subject)
        self._store, self.number, self.seal = store, number, seal
        self._view: StoredSnapshot | None = None
        self._charged = Charged()
        self._words: StoredLinks | None = None

    def __repr__(self) -> str:
        return "StoredSession()"

    def snapshot(self) -> StoredSnapshot:
        """See `Session`. The snapshot looks up rows on demand."""
        with failures("read"), self._store.reading() as connection:
            return self._update_view(*self._store.version(connection, self.number))

    def restore(self, text: str, **options: Any) -> str:
        """See `Session`."""
        with failures("read"), self._store.reading_often():
            return super().restore(text, **options)

    def commit(self, delta: SessionDelta) -> bool:
        """See `Session`."""
        return self._commit_after(self.snapshot(), delta)

    def reserve(self, spends: Sequence[Spend]) -> None:
        """See `Session`. A repeated release pays only what it spends in addition.

        A release is repeated because another process committed first. What was charged for the
        first try stays charged, also where the other process has drawn some of its words.

        What was charged for the first try stays charged, also where the other process has drawn
        some of its words.
        """
        charged = self._charged
        missing = [rest for spend in spends if (rest := spend.beyond(charged.spends)) is not None]
        charged.reserved += self._store.ledger.reserve_all(
            self.owner, missing, connection=charged.connection
        )
        charged.spends += missing

    def transaction(self, release: Callable[[Snapshot], tuple[T, SessionDelta]]) -> T:
        """See `Session`; other processes count like other threads."""
        try:
            with failures("read"), self._store.reading_often():
                return self._transaction(release)
        finally:
            self._charged.clear()

    def _transaction(self, release: Callable[[Snapshot], tuple[T, SessionDelta]]) -> T:
        for _ in range(ATTEMPTS):
            snapshot = self.snapshot()
            result, delta = release(snapshot)
            if self._commit_after(snapshot, delta):
                return result
        with failures("changed"), self._store.writing() as connection:
            self._charged.connection = connection
            if self._words is not None:
                self._words.alone(connection)
            snapshot = self._update_view(*self._store.version(connection, self.number, alone=True))
            result, delta = release(snapshot)
            rows, added = snapshot.rows(delta)
            self._store.add(connection, self.number, snapshot.version, rows)
            self._keep(connection, self._select_shared(delta))
            self._confirm(connection)
        self._view = snapshot.with_written(len(rows), added)
        return result

    def lasting(self, words: Sequence[tuple[str, str, str]]) -> dict[tuple[str, str, str], int]:
        """See `Session`. The release is repeated where another session drew first."""
        if self._words is None:
            session = self._store.open(self.owner, WORDS)
            self._words = StoredLinks(self._store, self._store.ledger, session.number, session.seal)
        names = {_name_row(self._words, key): key for key in words}
        return {names[name]: int(row) for name, row in self._words.get(list(names)).items()}

    def _select_shared(self, delta: SessionDelta) -> dict[bytes, int]:
        """Selects the draws that all sessions of the subject share, by row."""
        shared = {key: row for key, row in delta.drawn.items() if key[0].startswith(LASTING)}
        if self._words is None:
            return {}
        return {_name_row(self._words, key): row for key, row in shared.items()}

    def _keep(self, connection: "Connection", shared: Mapping[bytes, int]) -> None:
        if self._words is not None and shared:
            self._words.put(connection, {name: b"%d" % row for name, row in shared.items()})

    def _confirm(self, connection: "Connection") -> None:
        for reservation in self._charged.reserved:
            self._store.ledger.confirm(reservation, connection)

    def to_json(self) -> str:
        """See `Session`. Reads all rows."""
        session = Session(self.owner)
        session.adopt(self.snapshot().whole())
        return session.to_json()

    def _update_view(self, version: int, last: int) -> StoredSnapshot:
        view = self._view
        if view is None or view.version != version or view.full:
            view = StoredSnapshot.of(version, last, self.seal, self._store.reader(self.number))
            self._view = view
        return view

    def _commit_after(self, known: StoredSnapshot, delta: SessionDelta) -> bool:
        if not delta:
            if self._charged.reserved:
                with failures("changed"), self._store.writing() as connection:
                    self._confirm(connection)
            return True
        if delta.since != known.version:
            return False
        rows, added = known.rows(delta)
        shared = self._select_shared(delta)
        with failures("changed"), self._store.writing() as connection:
            if self._words is not None and shared:
                # Locked before the session, as everywhere, so that two processes never deadlock.
                self._words.alone(connection)
                if any(
                    int(row) != shared[name] for name, row in self._words.get(list(shared)).items()
                ):
                    return False
            if not self._store.add(connection, self.number, known.version, rows):
                return False
            self._keep(connection, shared)
            self._confirm(connection)
        self._view = known.with_written(len(rows), added)
        return True


def _name_row(words: StoredLinks, key: tuple[str, str, str]) -> bytes:
    """Derives the name of a word's row from law, word and group."""
    return words.name(*(part.encode("utf-8", "surrogatepass") for part in key))


class Shelf(Drawer):
    """Sealed keys in the database itself; see `Drawer`.

    Args:
        store: the store that holds them.
    """

    def __init__(self, store: SQLStore) -> None:
        self._store = store
        self._table = schema.tables().keys

    def get(self, name: str) -> bytes | None:
        """See `Drawer`."""
        import sqlalchemy as sa

        with self._store.reading() as connection:
            statement = sa.select(self._table.c.content).where(self._table.c.name == name)
            content: bytes | None = connection.execute(statement).scalar()
        return content

    def add(self, name: str, content: bytes) -> bytes:
        """See `Drawer`."""
        with self._store.writing() as connection:
            insert = inserted(self._table, self._store.dialect).values(name=name, content=content)
            connection.execute(insert.on_conflict_do_nothing())
        return self.get(name) or content

    def put(self, name: str, content: bytes) -> None:
        """See `Drawer`."""
        with self._store.writing() as connection:
            insert = inserted(self._table, self._store.dialect).values(name=name, content=content)
            connection.execute(
                insert.on_conflict_do_update(index_elements=["name"], set_={"content": content})
            )

    def destroy(self, name: str) -> None:
        """See `Drawer`."""
        import sqlalchemy as sa

        with self._store.writing() as connection:
            connection.execute(sa.delete(self._table).where(self._table.c.name == name))


def _split_options(url: str) -> tuple[str, dict[str, Any]]:
    """Splits a URL into the database address and the options of `SQLStore`."""
    address, _, query = url.partition("?")
    options: dict[str, Any] = {}
    rest: list[tuple[str, str]] = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "keep":
            try:
                options["keep"] = timedelta(days=float(value))
            except (ValueError, OverflowError):
                options["keep"] = timedelta(0)  # the constructor refuses it
        elif name == "session_keys":
            options["session_keys"] = value
        else:
            rest.append((name, value))
    return address + ("?" + urlencode(rest) if rest else ""), options
