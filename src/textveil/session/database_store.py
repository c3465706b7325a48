"""Sessions in a database, shared by any number of processes.

In: a URL, keys, how long sessions are kept. Out: `SQLStore`, which opens `StoredSession`s.
Not here: how rows are sealed (`sql.encryption`), looked up (`sql.view`), and transactions
(`sql.database`).
"""

import json
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from threading import local
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlencode

from textveil.config.extras import require
from textveil.errors import ConfigError, InputError, StoreError
from textveil.randomness import read_entropy
from textveil.session.snapshot import FACT_KINDS, SessionDelta, Snapshot
from textveil.session.spending import Spend
from textveil.session.sql import schema
from textveil.session.sql.database import Database
from textveil.session.sql.encryption import NAME_BYTES, Cipher, RowCipher, derive
from textveil.session.sql.key_stores import KEY_BYTES, KeyStore, read_deployment_key
from textveil.session.sql.lazy_snapshot import NO_ROWS, SealedRow, StoredSnapshot
from textveil.session.sql.ledger import Ledger, Reservation
from textveil.session.sql.links import DatabaseLinkStore
from textveil.session.sql.row_store import SealedRowStore, WriteConflictError
from textveil.session.sql.statements import build_insert
from textveil.session.state import LASTING_PREFIX, MAX_ATTEMPTS, Session, check_names
from textveil.session.stores import (
    CONVERSATIONS_SESSION,
    DEFAULT_SESSION,
    WORDS_SESSION,
    SessionInfo,
    SessionStore,
    build_session_error,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")

SWEEP_LIMIT = 20
"""Most expired sessions to delete when one is opened."""

PROOF_TEXT = b"textveil"
"""Plaintext that is sealed in the store to check the deployment key."""


class SealedStore(SealedRowStore, SessionStore):
    """Sessions whose rows are sealed, wherever a `SealedRowStore` keeps them.

    What a session knows is encrypted with a key of its own, which is sealed with the key of the
    deployment. A kind of store says how sessions are found, created and destroyed.

    Attributes:
        session_keys: where the sealed keys of sessions lie.
    """

    session_keys: KeyStore
    _deployment: bytes

    @property
    def charger(self) -> Ledger:
        """Ledger that charges releases, or an object that refuses all that spend."""
        return self.ledger

    @abstractmethod
    def _list_places(self, account: bytes) -> Sequence[bytes]:
        """Lists the sessions of a subject, by derived name."""

    @abstractmethod
    def _find_number(self, place: bytes) -> Any:
        """Returns what names a session's rows in this store; None where there is none."""

    @abstractmethod
    def _create(self, account: bytes, place: bytes, label: bytes) -> Any:
        """Creates a session unless another process did, and returns what names its rows.

        Args:
            account: derived name of the subject.
            place: derived name of the session.
            label: sealed names of both.
        """

    @abstractmethod
    def _delete_rows_of(self, place: bytes) -> None:
        """Deletes a session whose key is destroyed."""

    @abstractmethod
    def _list_expired(self, first: bytes) -> Sequence[bytes]:
        """Lists expired sessions: the one being opened, and at most `SWEEP_LIMIT` more."""

    # ---- sessions --------------------------------------------------------------------------------

    def open(
        self, subject: str, session: str = DEFAULT_SESSION, *, new: bool = True
    ) -> "StoredSession":
        """See `SessionStore`."""
        check_names(subject, session)
        account, place = self._derive_account(subject), self._derive_place(subject, session)
        with self.convert_failures("opened"), self.keep_connection():
            # Before it is looked up, or an expired session would be continued.
            self._delete_expired(place)
            number = self._find_number(place)
            if number is None and not new:
                raise build_session_error(subject, session)
            # The key before the row: a row without a key could not be opened any more.
            key = self._open_key(account, place, make=number is None)
            if number is None:
                label = self._build_label_cipher().seal(
                    json.dumps([subject, session]).encode(), account, place
                )
                number = self._create(account, place, label)
        cipher = RowCipher(self.name, account, place, self._derive_account_key(subject), key)
        return StoredSession(self, subject, number, cipher)

    def forget(self, subject: str, session: str | None = None) -> int:
        """See `SessionStore`. The key is destroyed first, then the rows."""
        check_names(subject, session or DEFAULT_SESSION)
        with self.convert_failures("changed"):
            places = self._list_places(self._derive_account(subject))
            if session is not None:
                places = [each for each in places if each == self._derive_place(subject, session)]
            for place in places:
                self._destroy(place)
        return len(places)

    def list_links(self, subject: str | None = None) -> list[tuple[str, DatabaseLinkStore]]:
        """See `SessionStore`."""
        places = [(info.subject, info.session) for info in self.sessions()]
        return [
            (account, self.links(account))
            for account, session in places
            if session == CONVERSATIONS_SESSION and subject in (None, account)
        ]

    def has_session(self, subject: str, session: str) -> bool:
        """Says whether there is a session of this name."""
        return self._find_number(self._derive_place(subject, session)) is not None

    def links(self, account: str) -> DatabaseLinkStore:
        """See `SessionStore`."""
        session = self.open(account, CONVERSATIONS_SESSION)
        return DatabaseLinkStore(self, self.charger, session.number, session.cipher)

    def pseudonym(self, secret: bytes) -> str:
        """See `SessionStore`; all processes with the deployment key return the same."""
        return derive(self._deployment, b"pseudonym", self.name, secret).hex()[:16]

    def take(
        self, content: str | bytes, subject: str, session: str = DEFAULT_SESSION
    ) -> "StoredSession":
        """Imports a session that `Session.to_json` wrote, under a free name.

        Raises:
            InputError: the content is no session, or the name is taken.
        """
        source = Session.from_json(content).snapshot()
        target = self.open(subject, session)
        snapshot = target.snapshot()
        delta = SessionDelta(
            since=snapshot.version, **{kind: getattr(source, kind) for kind in FACT_KINDS}
        )
        if snapshot.version or not target.commit(delta):
            raise InputError(
                "a session of this name exists already; choose another name, or forget that "
                "session first"
            )
        return target

    # ---- keys ------------------------------------------------------------------------------------

    def _derive_account(self, subject: str) -> bytes:
        return derive(self._deployment, b"account", self.name, subject.encode())[:NAME_BYTES]

    def _derive_account_key(self, subject: str) -> bytes:
        return derive(self._deployment, b"key of account", self.name, subject.encode())

    def _derive_place(self, subject: str, session: str) -> bytes:
        return derive(self._derive_account_key(subject), b"session", session.encode())[:NAME_BYTES]

    def _open_key(self, account: bytes, place: bytes, *, make: bool) -> bytes:
        """Returns the key of a session, opened with the deployment key.

        Args:
            account: derived name of the subject.
            place: derived name of the session.
            make: True to create a key where there is none.

        Raises:
            StoreError: the key is missing.
        """
        cipher = Cipher(derive(self._deployment, b"keys", self.name), self.name, account)
        name = f"{self.name.hex()}/{place.hex()}"
        ciphertext = self.session_keys.get(name)
        if ciphertext is None and make:
            ciphertext = self.session_keys.add(name, cipher.seal(read_entropy(KEY_BYTES), place))
        if ciphertext is None:
            raise StoreError(
                "the key of this session is missing: put it back into the key store "
                "(TEXTVEIL_KEYS); if it was destroyed, remove the rest of the session with "
                "`textveil session forget`. Nothing was read or written"
            )
        return cipher.open(ciphertext, place)[:KEY_BYTES]

    def _destroy(self, place: bytes) -> None:
        self.session_keys.destroy(f"{self.name.hex()}/{place.hex()}")
        self._delete_rows_of(place)

    def _delete_expired(self, first: bytes) -> None:
        for place in self._list_expired(first):
            self._destroy(place)

    def _unlock(self, name: bytes, proof: bytes) -> None:
        """Takes the store's name after checking the deployment key against its proof.

        Raises:
            StoreError: the key is that of another store.
        """
        Cipher(derive(self._deployment, b"proof"), name).open(proof)
        self.name = name

    def _seal_proof(self, name: bytes) -> bytes:
        return Cipher(derive(self._deployment, b"proof"), name).seal(PROOF_TEXT)

    def _build_label_cipher(self) -> Cipher:
        return Cipher(derive(self._deployment, b"labels", self.name), self.name)

    def _read_metadata(self, row: Any) -> SessionInfo:
        subject, session = json.loads(
            self._build_label_cipher().open(row.label, row.account, row.place)
        )
        return SessionInfo(
            subject=subject, session=session, made=row.made, used=row.used, expires=row.expires
        )


class ReleaseCharges(local):
    """Charges and transaction of the release in progress, one set per thread."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Starts the next release with no charges."""
        self.spends: list[Spend] = []
        self.reservations: list[Reservation] = []
        self.connection: Any = None


class StoredSession(Session):
    """A session of a `SQLStore`, read on demand, extended row by row.

    Args:
        store: the store that holds it.
        subject: the person or client it belongs to.
        number: what names its rows in the store.
        cipher: cipher of its rows.
    """

    counts_spending = True

    def __init__(self, store: SealedStore, subject: str, number: Any, cipher: RowCipher) -> None:
        super().__init__(subject)
        self._store, self.number, self.cipher = store, number, cipher
        self._view: StoredSnapshot | None = None
        self._charges = ReleaseCharges()
        self._word_store: DatabaseLinkStore | None = None
        self.refuses_spending = store.refuses_spending

    def __repr__(self) -> str:
        return "StoredSession()"

    def snapshot(self) -> StoredSnapshot:
        """See `Session`. The snapshot looks up rows on demand."""
        with self._store.convert_failures("read"), self._store.open_read() as connection:
            return self._update_view(*self._store.read_version(connection, self.number))

    def restore(self, text: str, **options: Any) -> str:
        """See `Session`."""
        with self._store.convert_failures("read"), self._store.keep_connection():
            return super().restore(text, **options)

    def commit(self, delta: SessionDelta) -> bool:
        """See `Session`."""
        return self._commit_after(self.snapshot(), delta)

    def reserve(self, spends: Sequence[Spend]) -> None:
        """See `Session`. A repeated release pays only what it spends in addition.

        A release is repeated because another process committed first. What was charged for the
        first try stays charged, also where the other process has drawn some of its words.
        """
        charges = self._charges
        missing = [
            remainder
            for spend in spends
            if (remainder := spend.subtract(charges.spends)) is not None
        ]
        charges.reservations += self._store.charger.reserve_all(
            self.owner, missing, connection=charges.connection
        )
        charges.spends += missing

    def transaction(self, release: Callable[[Snapshot], tuple[T, SessionDelta]]) -> T:
        """See `Session`; other processes count like other threads."""
        try:
            with self._store.convert_failures("read"), self._store.keep_connection():
                return self._run_transaction(release)
        finally:
            self._charges.clear()

    def _run_transaction(self, release: Callable[[Snapshot], tuple[T, SessionDelta]]) -> T:
        for _ in range(MAX_ATTEMPTS):
            snapshot = self.snapshot()
            result, delta = release(snapshot)
            if self._commit_after(snapshot, delta):
                return result
        with self._store.convert_failures("changed"), self._store.open_write() as connection:
            # The ledger charges in this transaction: a second one would wait for it.
            self._charges.connection = connection
            # The words before the session, as in `_commit_after`, so that two never deadlock.
            if self._word_store is not None:
                self._word_store.lock(connection)
            snapshot = self._update_view(
                *self._store.read_version(connection, self.number, lock=True)
            )
            result, delta = release(snapshot)
            rows, new_facts = snapshot.seal_rows(delta)
            version = self._store.add_rows(connection, self.number, snapshot.version, rows)
            assert version is not None, "or it was not locked"
            self._keep(connection, self._select_shared(delta))
            self._confirm(connection)
        self._view = snapshot.advance(version, len(rows), new_facts)
        return result

    def rewrite(self, change: Callable[[Snapshot], tuple[Snapshot | None, T]]) -> T:
        """See `Session`. All rows are written anew; those that were there are overwritten.

        Backups of the database from before still hold the values, as long as the key of the session
        exists. Draws that go are no longer shared with other sessions of the subject, either
        (`words.lasting`).
        """
        words = self._find_word_store()
        with self._store.convert_failures("changed"), self._store.open_write() as connection:
            # The words before the session, as in `_commit_after`, so that two never deadlock.
            if words is not None:
                words.lock(connection)
            version, last = self._store.read_version(connection, self.number, lock=True)
            self._view = None
            snapshot = self._update_view(version, last).read_all()
            following, result = change(snapshot)
            if following is None:
                return result
            delta = SessionDelta(
                since=version, **{kind: getattr(following, kind) for kind in FACT_KINDS}
            )
            self._store.delete_rows(connection, self.number)
            # From a view that knows no row, so that all are written.
            empty = StoredSnapshot.build(version, last, self.cipher, NO_ROWS)
            rows, _ = empty.seal_rows(delta)
            self._store.add_rows(connection, self.number, version, rows)
            if words is not None:
                gone = [key for key in snapshot.drawn if key not in following.drawn]
                words.remove(connection, [_derive_row_name(words, key) for key in gone])
        self._view = None
        return result

    def _find_word_store(self) -> DatabaseLinkStore | None:
        """Returns the draws that sessions of the subject share; None if there are none."""
        if self._word_store is None and self._store.has_session(self.owner, WORDS_SESSION):
            self._word_store = self._open_word_store()
        return self._word_store

    def _open_word_store(self) -> DatabaseLinkStore:
        ledger = self._store.ledger  # first, so that nothing is created where there is none
        session = self._store.open(self.owner, WORDS_SESSION)
        return DatabaseLinkStore(self._store, ledger, session.number, session.cipher)

    def lasting(self, words: Sequence[tuple[str, str, str]]) -> dict[tuple[str, str, str], int]:
        """See `Session`. The release is repeated where another session drew first."""
        if self._word_store is None:
            self._word_store = self._open_word_store()
        names = {_derive_row_name(self._word_store, key): key for key in words}
        return {names[name]: int(row) for name, row in self._word_store.get(list(names)).items()}

    def _select_shared(self, delta: SessionDelta) -> dict[bytes, int]:
        """Selects the draws that all sessions of the subject share, by row."""
        common_draws = {
            key: row for key, row in delta.drawn.items() if key[0].startswith(LASTING_PREFIX)
        }
        if self._word_store is None:
            return {}
        return {_derive_row_name(self._word_store, key): row for key, row in common_draws.items()}

    def _keep(self, connection: "Connection", common_draws: Mapping[bytes, int]) -> None:
        if self._word_store is not None and common_draws:
            self._word_store.put(
                connection, {name: b"%d" % row for name, row in common_draws.items()}
            )

    def _confirm(self, connection: "Connection") -> None:
        for reservation in self._charges.reservations:
            self._store.ledger.confirm(reservation, connection)

    def to_json(self) -> str:
        """See `Session`. Reads all rows."""
        session = Session(self.owner)
        session.adopt(self.snapshot().read_all())
        return session.to_json()

    def _update_view(self, version: int, last: int) -> StoredSnapshot:
        view = self._view
        if view is None or view.version != version or view.is_full:
            view = StoredSnapshot.build(
                version, last, self.cipher, self._store.build_reader(self.number)
            )
            self._view = view
        return view

    def _commit_after(self, snapshot: StoredSnapshot, delta: SessionDelta) -> bool:
        if not delta:
            # The release added nothing, but it was drawn, so its charges are confirmed.
            if self._charges.reservations:
                with (
                    self._store.convert_failures("changed"),
                    self._store.open_write() as connection,
                ):
                    self._confirm(connection)
            return True
        if delta.since != snapshot.version:
            return False
        rows, new_facts = snapshot.seal_rows(delta)
        with suppress(WriteConflictError):
            version = self._add(snapshot.version, rows, self._select_shared(delta))
            if version is not None:
                self._view = snapshot.advance(version, len(rows), new_facts)
                return True
        return False

    def _add(
        self, version: int, rows: Sequence[SealedRow], common_draws: Mapping[bytes, int]
    ) -> int | None:
        """Adds rows to the session at a version, with the draws that others share.

        Returns:
            The next version; None if others committed first.
        """
        with self._store.convert_failures("changed"), self._store.open_write() as connection:
            if self._word_store is not None and common_draws:
                # Locked before the session, as everywhere, so that two processes never deadlock.
                self._word_store.lock(connection)
                if any(
                    int(row) != common_draws[name]
                    for name, row in self._word_store.get(list(common_draws)).items()
                ):
                    # Another session drew a word first: the release repeats with its draw.
                    return None
            following = self._store.add_rows(connection, self.number, version, rows)
            if following is not None:
                self._keep(connection, common_draws)
                self._confirm(connection)
        return following


def _derive_row_name(words: DatabaseLinkStore, key: tuple[str, str, str]) -> bytes:
    """Derives the name of a word's row from law, word and group."""
    return words.derive_name(*(part.encode("utf-8", "surrogatepass") for part in key))


class SQLStore(Database, SealedStore):
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
        session_keys: str = "apart",
        keep: timedelta | None = None,
    ) -> None:
        require("sqlalchemy", "alembic", "cryptography")
        url, session_keys, keep = read_options(url, session_keys, keep)
        Database.__init__(self, url, keys, keep)
        with self.convert_failures("opened"):
            self._prepare()
        self.session_keys = self.key_store if session_keys == "apart" else DatabaseKeyStore(self)

    def __repr__(self) -> str:
        return f"SQLStore({self._engine.dialect.name})"

    @property
    def ledger(self) -> Ledger:
        """Ledger of what releases have spent, and may spend."""
        return self._ledger

    def sessions(self) -> list[SessionInfo]:
        """See `SessionStore`."""
        import sqlalchemy as sa

        table = self.tables.sessions
        with self.convert_failures("read"), self.open_read() as connection:
            rows = connection.execute(sa.select(table).order_by(table.c.number)).all()
        return [self._read_metadata(row) for row in rows]

    def ping(self) -> None:
        """See `SessionStore`."""
        import sqlalchemy as sa

        with self.convert_failures("read"), self.open_read() as connection:
            connection.execute(sa.select(self.tables.sessions.c.number).limit(1)).all()

    def _list_places(self, account: bytes) -> Sequence[bytes]:
        """See `SealedStore`."""
        import sqlalchemy as sa

        table = self.tables.sessions
        with self.open_read() as connection:
            return (
                connection.execute(sa.select(table.c.place).where(table.c.account == account))
                .scalars()
                .all()
            )

    def _find_number(self, place: bytes) -> int | None:
        """See `SealedStore`."""
        import sqlalchemy as sa

        table = self.tables.sessions
        with self.open_read() as connection:
            number: int | None = connection.execute(
                sa.select(table.c.number).where(table.c.place == place)
            ).scalar()
        return number

    def _create(self, account: bytes, place: bytes, label: bytes) -> int:
        """See `SealedStore`."""
        values = {"account": account, "place": place, "label": label, "version": 0, "last": 0}
        with self.open_write() as connection:
            times = {
                "made": self.get_time(),
                "used": self.get_time(),
                "expires": self.compute_expiry(),
            }
            row = build_insert(self.tables.sessions, self.dialect).values(values | times)
            # Another process may create the session at the same time; its row is then taken.
            connection.execute(row.on_conflict_do_nothing())
        number = self._find_number(place)
        if number is None:
            raise StoreError("the session was forgotten while it was created; try again")
        return number

    def _delete_rows_of(self, place: bytes) -> None:
        """See `SealedStore`."""
        import sqlalchemy as sa

        sessions, facts = self.tables.sessions, self.tables.facts
        with self.open_write() as connection:
            number = connection.execute(
                sa.select(sessions.c.number).where(sessions.c.place == place)
            ).scalar()
            connection.execute(sa.delete(facts).where(facts.c.session == number))
            connection.execute(sa.delete(sessions).where(sessions.c.number == number))

    def _list_expired(self, first: bytes) -> Sequence[bytes]:
        """See `SealedStore`."""
        import sqlalchemy as sa

        table = self.tables.sessions
        expired = sa.select(table.c.place).where(table.c.expires <= self.get_time())
        with self.open_read() as connection:
            return [
                *connection.execute(expired.where(table.c.place == first)).scalars(),
                *connection.execute(
                    expired.where(table.c.place != first).limit(SWEEP_LIMIT)
                ).scalars(),
            ]

    def _prepare(self) -> None:
        """Reads the store's name, checks the deployment key, and migrates the tables."""
        import sqlalchemy as sa

        store = self.tables.store
        with self.open_read() as connection:
            revision = schema.read_revision(connection)
            store_row = None if revision is None else connection.execute(sa.select(store)).first()
        self._deployment = read_deployment_key(self.key_store, make=store_row is None)
        if store_row is not None:
            self._open_ledger(store_row)
        if store_row is None or revision != schema.LAST_REVISION:
            with self.open_write() as connection:
                old_revision = schema.migrate_tables(connection)
                row = connection.execute(sa.select(store)).first()
                if row is None:
                    name = read_entropy(NAME_BYTES)
                    statement = sa.insert(store).values(
                        name=name, proof=self._seal_proof(name), made=self.get_time()
                    )
                    row = connection.execute(statement.returning(store)).one()
                self._open_ledger(row)
                if old_revision in schema.SEALLESS_REVISIONS:
                    self._ledger.bind(connection)
        # So that the name is in the file itself, and not only in the write-ahead log.
        if self._file is not None:
            with self.open_read() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)").close()

    def _open_ledger(self, store_row: Any) -> None:
        self._unlock(store_row.name, store_row.proof)
        self._ledger = Ledger(self, self._deployment)


class DatabaseKeyStore(KeyStore):
    """Sealed keys in the database itself; see `KeyStore`.

    Args:
        store: the store that holds them.
    """

    def __init__(self, store: SQLStore) -> None:
        self._store = store
        self._table = schema.build_tables().keys

    def get(self, name: str) -> bytes | None:
        """See `KeyStore`."""
        import sqlalchemy as sa

        with self._store.open_read() as connection:
            statement = sa.select(self._table.c.content).where(self._table.c.name == name)
            content: bytes | None = connection.execute(statement).scalar()
        return content

    def add(self, name: str, content: bytes) -> bytes:
        """See `KeyStore`."""
        with self._store.open_write() as connection:
            insert = build_insert(self._table, self._store.dialect).values(
                name=name, content=content
            )
            connection.execute(insert.on_conflict_do_nothing())
        return self.get(name) or content

    def put(self, name: str, content: bytes) -> None:
        """See `KeyStore`."""
        with self._store.open_write() as connection:
            insert = build_insert(self._table, self._store.dialect).values(
                name=name, content=content
            )
            connection.execute(
                insert.on_conflict_do_update(index_elements=["name"], set_={"content": content})
            )

    def destroy(self, name: str) -> None:
        """See `KeyStore`."""
        import sqlalchemy as sa

        with self._store.open_write() as connection:
            connection.execute(sa.delete(self._table).where(self._table.c.name == name))


def read_options(
    url: str, session_keys: str, keep: timedelta | None
) -> tuple[str, str, timedelta | None]:
    """Reads the options of a store from its URL, where they are there.

    Args:
        url: the URL of a store.
        session_keys: where the URL does not say it.
        keep: where the URL does not say it.

    Returns:
        The URL without them, and both.

    Raises:
        ConfigError: one of them is wrong.
    """
    url, options = _split_options(url)
    session_keys, keep = options.get("session_keys", session_keys), options.get("keep", keep)
    if session_keys not in ("apart", "database"):
        raise ConfigError("session_keys must be apart or database")
    if keep is not None and keep <= timedelta(0):
        raise ConfigError("keep must be a time longer than 0")
    return url, session_keys, keep


def _split_options(url: str) -> tuple[str, dict[str, Any]]:
    """Splits a URL into the database address and the options of `SQLStore`."""
    address, _, query = url.partition("?")
    options: dict[str, Any] = {}
    parameters: list[tuple[str, str]] = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "keep":
            try:
                options["keep"] = timedelta(days=float(value))
            except (ValueError, OverflowError):
                options["keep"] = timedelta(0)  # the constructor refuses it
        elif name == "session_keys":
            options["session_keys"] = value
        else:
            parameters.append((name, value))
    return address + ("?" + urlencode(parameters) if parameters else ""), options
