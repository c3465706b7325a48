"""Stores: where sessions lie between calls, and how they are opened.

In: a URL; a subject and the name of a session. Out: `Session`s whose releases are committed before
they are handed out.
Not here: what a session does (`state`), and sessions in a database (`database_store`).
"""

import hmac
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic_core import CoreSchema, core_schema

from textveil.config import registry
from textveil.errors import ConfigError, InputError, StoreError, TextveilWarning, quote
from textveil.randomness import read_entropy
from textveil.session import session_file as file
from textveil.session.conversations import LinkStore
from textveil.session.forgetting import ForgottenReport
from textveil.session.link_forgetting import forget_in_links
from textveil.session.memory_links import MemoryLinkStore, MemoryRows
from textveil.session.snapshot import SessionDelta, Snapshot
from textveil.session.state import Session, check_names
from textveil.session.value_search import SoughtTexts

if TYPE_CHECKING:
    from textveil.session.sql.ledger import Ledger

T = TypeVar("T")

DEFAULT_SESSION = "default"
"""Default name of a session."""

CONVERSATIONS_SESSION = "conversations"
"""Name of the session that holds the links of an account."""

WORDS_SESSION = "lasting words"
"""Name of the session that holds the draws a subject's sessions share."""


NO_CONVERSATIONS_MESSAGE = (
    "conversations need a store in memory or in a database: memory:, sqlite:///NAME.db, "
    "postgresql://HOST/NAME or redis://HOST/0"
)


def build_session_error(subject: str, session: str) -> InputError:
    """Returns the error for a session that a store does not have."""
    name = quote(f"{subject}/{session}")
    hint = "`textveil session list` shows its sessions"
    return InputError(f"the store has no session {name}; {hint}")


@dataclass(frozen=True, kw_only=True)
class SessionInfo:
    """Metadata of a session in a store, for lists.

    Attributes:
        subject: the person, client or project it belongs to.
        session: its name.
        made: time of creation, in seconds since 1970.
        used: time of the last addition, in seconds since 1970.
        expires: time of deletion, in seconds since 1970; None for never.
    """

    subject: str
    session: str
    made: int
    used: int
    expires: int | None

    def to_json(self) -> dict[str, object]:
        """Returns the fields as plain data."""
        return dict(vars(self))


class SessionStore:
    """Store of sessions; `SessionStore(url)` builds the kind that the URL names.

    - `memory:`: in this process.
    - `file:lease.session`: one session in a file, in clear, as `textveil protect --session` writes
    it.
    - `sqlite:///veil.db` or `postgresql://HOST/NAME`: in a database, encrypted; see `SQLStore`.
    - `redis://HOST/0` or `rediss://HOST/0`: in Redis, encrypted, without a ledger; see `RedisStore`.

    Args:
        url: kind and place of the store.
        **options: of `SQLStore` or `RedisStore`.

    Other packages may add kinds, by the scheme of their URLs (`textveil.stores`).

    Raises:
        ConfigError: the URL names no store. StoreError: it cannot be opened.

    Attributes:
        refuses_spending: what is said of a release that spends; empty for a store that counts it,
            or whose sessions nobody counts.
        purge_failure: what is said where `purge` returns False.
    """

    refuses_spending = ""

    purge_failure = (
        "the log of the database still has old rows, sealed, because other programs use it: "
        "they go when those have ended"
    )

    def __new__(cls, url: str = "memory:", **options: Any) -> Self:
        """Creates a store of the kind that the URL's scheme names."""
        if cls is not SessionStore:
            return super().__new__(cls)
        scheme, colon, _ = url.partition(":")
        if not colon:
            raise ConfigError(
                "a store is named by a URL: memory:, file:NAME.session, sqlite:///NAME.db, "
                "postgresql://HOST/NAME or redis://HOST/0"
            )
        kind: Any = registry.load("store", scheme)
        store: Self = super().__new__(kind)
        return store

    def open(self, subject: str, session: str = DEFAULT_SESSION, *, new: bool = True) -> Session:
        """Opens a session, by default creating it where there is none.

        Args:
            subject: the person, client or project it belongs to. Any name.
            session: name of the session among those of the subject.
            new: True to create the session where there is none of that name.

        Raises:
            InputError: there is none. StoreError: it cannot be read, or its key is missing.
        """
        raise NotImplementedError

    def sessions(self) -> list[SessionInfo]:
        """Lists the sessions in the store."""
        raise NotImplementedError

    def ping(self) -> None:
        """Checks that the store can be read.

        Raises:
            StoreError: it cannot.
        """

    def forget(self, subject: str, session: str | None = None) -> int:
        """Deletes a session, or all of a subject. This cannot be undone.

        Answers to what they released cannot be restored any more.

        Returns:
            How many sessions there were.
        """
        raise NotImplementedError

    def forget_values(
        self, values: Iterable[str], subject: str | None = None, session: str | None = None
    ) -> list[ForgottenReport]:
        """Forgets values in sessions and conversations; see `Session.forget_values`.

        The ledger keeps its sums. Backups of before still hold the values.

        Args:
            values: the values.
            subject: whose sessions; None for all of the store.
            session: which of them; None for all.

        Returns:
            What went, for each session and account that held one of them.

        Raises:
            InputError: a value has fewer than two letters or digits, or there is no such session;
                nothing is forgotten.
        """
        texts = SoughtTexts(values)
        places = [(info.subject, info.session) for info in self.sessions()]
        wanted = [
            place for place in places if subject in (None, place[0]) and session in (None, place[1])
        ]
        if session is not None and not wanted:
            raise build_session_error(subject or "", session)
        reports = []
        for place in wanted:
            if place[1] not in (CONVERSATIONS_SESSION, WORDS_SESSION):
                report = self.open(*place, new=False).forget_values(texts)
                reports.append(replace(report, place="/".join(place)))
        if session in (None, CONVERSATIONS_SESSION):
            for account, links in self.list_links(subject):
                reports.append(replace(forget_in_links(links, texts), place=account))
        reports = [report for report in reports if report.count or report.found]
        if reports and not self.purge():
            warnings.warn(self.purge_failure, TextveilWarning, stacklevel=2)
        return reports

    def list_links(self, subject: str | None = None) -> "Sequence[tuple[str, LinkStore]]":
        """Lists the accounts that have conversations, with their links.

        Args:
            subject: only this account; None for all.
        """
        return ()

    def purge(self) -> bool:
        """Overwrites what was deleted or replaced, where it is kept; False if others hold it."""
        return True

    def links(self, account: str) -> "LinkStore":
        """Returns the conversation links of an account; see `MessageChain`.

        Raises:
            ConfigError: a store of this kind keeps no conversations.
        """
        raise ConfigError(NO_CONVERSATIONS_MESSAGE)

    def set_memory(self, max_bytes: int) -> None:
        """Sets the bytes that conversations may take in this process."""

    def pseudonym(self, secret: bytes) -> str:
        """Derives a stable pseudonym from a secret without revealing the secret.

        Raises:
            ConfigError: a store of this kind keeps no conversations.
        """
        raise ConfigError(NO_CONVERSATIONS_MESSAGE)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        """Returns a schema that accepts store instances unchanged."""
        return core_schema.is_instance_schema(SessionStore)

    @property
    def ledger(self) -> "Ledger":
        """Ledger of what releases have spent, and may spend.

        Raises:
            ConfigError: a store of this kind keeps no ledger.
        """
        raise ConfigError(
            "only a store in a database keeps a ledger: sqlite:///NAME.db or postgresql://HOST/NAME"
        )

    def __enter__(self) -> Self:
        """Returns the store."""
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases connections."""


class MemoryStore(SessionStore):
    """Sessions in this process; they end with it.

    Args:
        url: `memory:`.
        ledger: of another store, which counts what conversations spend; None to count nothing.
    """

    def __init__(self, url: str = "memory:", *, ledger: "Ledger | None" = None) -> None:
        self._lock, self._ledger = Lock(), ledger
        self._sessions: dict[tuple[str, str], Session] = {}
        self._key = read_entropy(32)
        self._links = MemoryRows()

    def links(self, account: str) -> MemoryLinkStore:
        """See `SessionStore`; links that are not used for a day are forgotten."""
        key = hmac.digest(self._key, b"account" + account.encode(), "sha256")
        return MemoryLinkStore(key, self._links, self._ledger)

    def list_links(self, subject: str | None = None) -> list[tuple[str, MemoryLinkStore]]:
        """See `SessionStore`; the names of accounts are not known here."""
        if subject is not None:
            return [(subject, self.links(subject))]
        return [("", MemoryLinkStore(b"", self._links, self._ledger))]

    def set_memory(self, max_bytes: int) -> None:
        """See `SessionStore`."""
        with self._links.lock:
            self._links.set_bound(max_bytes)

    @property
    def ledger(self) -> "Ledger":
        """See `SessionStore`."""
        return super().ledger if self._ledger is None else self._ledger

    def pseudonym(self, secret: bytes) -> str:
        """See `SessionStore`; the key is this process's, so another process differs."""
        return hmac.digest(self._key, b"pseudonym" + secret, "sha256").hex()[:16]

    def open(self, subject: str, session: str = DEFAULT_SESSION, *, new: bool = True) -> Session:
        """See `SessionStore`."""
        check_names(subject, session)
        if not new and (subject, session) not in self._sessions:
            raise build_session_error(subject, session)
        with self._lock:
            return self._sessions.setdefault((subject, session), Session(subject))

    def sessions(self) -> list[SessionInfo]:
        """See `SessionStore`; times are not known."""
        times: dict[str, Any] = {"made": 0, "used": 0, "expires": None}
        return [SessionInfo(subject=a, session=b, **times) for a, b in sorted(self._sessions)]

    def forget(self, subject: str, session: str | None = None) -> int:
        """See `SessionStore`."""
        with self._lock:
            candidates = [key for key in self._sessions if key[0] == subject]
            matches = [key for key in candidates if session in (None, key[1])]
            for key in matches:
                del self._sessions[key]
        return len(matches)


class FileStore(SessionStore):
    """One session in a file that only its owner can read, in clear; each commit writes it anew.

    Args:
        url: `file:` and the file's name.
    """

    def __init__(self, url: str) -> None:
        self._path = url.partition(":")[2]
        if not self._path:
            raise ConfigError("file: must be followed by the name of a file")

    def open(
        self, subject: str = "", session: str = DEFAULT_SESSION, *, new: bool = True
    ) -> Session:
        """See `SessionStore`; a file has one session of one subject."""
        check_names(subject or DEFAULT_SESSION, session)
        if not new and not os.path.lexists(self._path):
            raise build_session_error(subject, session)
        if session != DEFAULT_SESSION:
            raise ConfigError("a file holds one session; for several use sqlite:///NAME.db")
        return FileSession(self._path, subject)

    def sessions(self) -> list[SessionInfo]:
        """See `SessionStore`."""
        if not os.path.lexists(self._path):
            return []
        owner, used = file.load(self._path).owner, int(os.stat(self._path).st_mtime)
        return [
            SessionInfo(subject=owner, session=DEFAULT_SESSION, made=used, used=used, expires=None)
        ]

    def forget(self, subject: str, session: str | None = None) -> int:
        """See `SessionStore`.

        Copies of the file on the disk or in its backups are not erased.
        """
        candidates = [info for info in self.sessions() if info.subject == subject]
        matches = [info for info in candidates if session in (None, info.session)]
        for _ in matches:
            os.unlink(self._path)
        return len(matches)


class FileSession(Session):
    """Session of a file; each commit is on disk before it returns.

    Args:
        path: the file; a session is new where there is none.
        owner: the person or client it belongs to.
    """

    def __init__(self, path: str, owner: str = "") -> None:
        super().__init__(owner)
        self._path = path
        self._content: bytes | None = None
        self._reload()
        if owner and self.owner != owner:
            raise StoreError("the session file belongs to somebody else; use another file")

    def transaction(self, release: Callable[[Snapshot], tuple[T, SessionDelta]]) -> T:
        """See `Session`. It locks the file and reads other processes' changes first."""
        with self._lock, file.lock_file(self._path):
            self._reload()
            result, delta = release(self._snapshot)
            self._keep(delta)
            return result

    def commit(self, delta: SessionDelta) -> bool:
        """See `Session`."""
        with self._lock, file.lock_file(self._path):
            self._reload()
            return self._keep(delta)

    def rewrite(self, change: Callable[[Snapshot], tuple[Snapshot | None, T]]) -> T:
        """See `Session`. Copies of the file on the disk or in its backups are not erased."""
        with self._lock, file.lock_file(self._path):
            self._reload()
            old_snapshot = self._snapshot
            following, result = change(old_snapshot)
            if following is None:
                return result
            self._snapshot = following
            try:
                file.save(self, self._path)
            except BaseException:
                self._snapshot = old_snapshot
                raise
            self._content = file.read_content(self._path)
        return result

    def _keep(self, delta: SessionDelta) -> bool:
        old_snapshot = self._snapshot
        if not self._commit(delta):
            return False
        if delta:
            try:
                file.save(self, self._path)
            except BaseException:
                # A release that is not on the disk is not handed out, so nothing of it may stay.
                self._snapshot = old_snapshot
                raise
            # Else the next reload would take this write for that of another process.
            self._content = file.read_content(self._path)
        return True

    def _reload(self) -> None:
        content = file.read_content(self._path) if os.path.lexists(self._path) else None
        if content is None and self._content is not None:
            raise InputError("the session file was deleted meanwhile")
        if content is not None and content != self._content:
            stored = Session.from_json(content)
            # Not the file's, which is always 0: a delta built on the old state must not fit.
            version = self._snapshot.version + 1
            self.owner, self._snapshot = stored.owner, stored.snapshot().replace_version(version)
            self._content = content
