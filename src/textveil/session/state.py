"""Sessions: the only objects that remember anything between calls.

In: what a release adds. Out: a snapshot for the next release, and the way back for answers.
Not here: the snapshot and its queries (`snapshot`), how an answer is searched (`restore`),
sessions on the disk (`session_file`), and what is replaced (`pipeline`).
"""

from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError

from textveil.detect import PrivateValue
from textveil.errors import ConfigError, InputError
from textveil.guarantee import Loss
from textveil.session.escapes import fold
from textveil.session.forgetting import ForgottenReport, drop_texts, drop_values
from textveil.session.placeholders import PlaceholderToken
from textveil.session.restore import Escape, Restorer, RestoreScope
from textveil.session.snapshot import Changes, Replacement, SessionDelta, Snapshot, derive_facts
from textveil.session.spending import Spend
from textveil.session.value_search import SoughtTexts

T = TypeVar("T")

VERSION: Literal[6] = 6
"""Version of the session format.

It is raised when older versions cannot read a change.
"""

LASTING_PREFIX = "lasting "
"""Prefix of laws whose draws all sessions of a subject share (`words.lasting`)."""

UNDETECTED_TYPES = ("LITERAL", "TEXT", "WORD")
"""PlaceholderToken types for values that no detector found."""

MAX_ATTEMPTS = 3
"""Optimistic attempts at a release before it takes the lock.

An attempt fails where another thread committed in between; with the lock, the other threads wait.
"""

MAX_NAME_CHARACTERS = 200
"""Most characters in the name of a subject or a session."""


def check_names(subject: str, session: str) -> None:
    """Raises `ConfigError` unless both names have 1 to `MAX_NAME_CHARACTERS` printable characters."""
    for kind, name in (("subject", subject), ("session", session)):
        if not 0 < len(name) <= MAX_NAME_CHARACTERS or not name.isprintable():
            raise ConfigError(
                f"the name of a {kind} must have 1 to {MAX_NAME_CHARACTERS} printable characters"
            )


class Session:
    """PlaceholderToken numbers, replaced names, draws and originals in memory, for one owner.

    Within a session the same value gets the same placeholder, so which placeholders are equal is
    released with the text. Names are compared without case, accents, hyphens and spaces. A
    different spelling of the same name has another placeholder, `<PERSON_1_B>`, and so do parts of
    a name, `<PERSON_1_FAMILY>`: each restores to exactly the original characters. A value that was
    found to be private is hidden in all further texts. Two sessions never share a map. Safe to use
    from concurrent threads: what a release adds is committed in one step, before the release is
    handed out, and nothing of a release that fails.

    Args:
        owner: label of the person or client that the session belongs to; never released.
    """

    repeats = ""
    """Marker of who says a text, where clients send texts again.

    A text that was released before under the same marker is released by the same draws. "" where
    each release is drawn anew.
    """

    counts_spending = False
    """True if `reserve` counts spending: the session's store has a ledger."""

    refuses_spending = ""
    """See `SessionStore`."""

    def __init__(self, owner: str = "") -> None:
        self.owner = owner
        self._lock = Lock()
        self._snapshot = Snapshot()

    def __repr__(self) -> str:
        """Shows counts only, no contents."""
        snapshot = self.snapshot()
        names = len({form for form, _ in snapshot.replaced})
        return f"Session({len(snapshot.placeholders)} placeholders, {names} replacements)"

    def __enter__(self) -> Self:
        """Returns the session.

        The end of the block commits nothing: what a release adds is committed before it is handed
        out.
        """
        return self

    def __exit__(self, *error: object) -> None:
        """Does nothing; there is nothing to close."""

    # ---- what is remembered ----------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Returns the session's present state; later commits do not change it."""
        # Without the lock: a snapshot is replaced as a whole and never changed.
        return self._snapshot

    def adopt(self, known: Snapshot) -> None:
        """Replaces the session's state by another snapshot."""
        with self._lock:
            self._snapshot = known

    def commit(self, delta: SessionDelta) -> bool:
        """Commits what a release adds, all of it or nothing.

        Returns:
            True if it is committed; False if something else was committed since the snapshot that
            the release was built from. An empty delta always succeeds.
        """
        with self._lock:
            return self._commit(delta)

    def _commit(self, delta: SessionDelta) -> bool:
        if delta and delta.since != self._snapshot.version:
            return False
        if delta:
            self._snapshot = self._snapshot.apply(delta)
        return True

    def hide(self, values: Iterable[PrivateValue]) -> None:
        """Marks values as private, so that all further releases hide them."""
        private_values = tuple(values)

        def add_values(snapshot: Snapshot) -> tuple[None, SessionDelta]:
            changes = Changes(snapshot)
            changes.add_private(private_values)
            return None, changes.build_delta()

        self.transaction(add_values)

    def reserve(self, spends: Sequence[Spend]) -> None:
        """Charges the most that a release can spend, before it draws.

        Does nothing where the store keeps no ledger.

        Raises:
            LimitReached: it would spend more than its account may; nothing was charged.
        """

    def lasting(self, words: Sequence[tuple[str, str, str]]) -> Mapping[tuple[str, str, str], int]:
        """Returns earlier draws of words by any session of the subject.

        Args:
            words: by law, word and group.

        Returns:
            The drawn rows of those words that were drawn before.

        Raises:
            ConfigError: sessions of this kind do not last.
        """
        raise ConfigError(
            "words.lasting keeps one draw of a word for all sessions of a subject, and needs a "
            "session in a database: give --store and --session, or a session of "
            "SessionStore('sqlite:///NAME.db')"
        )

    def transaction(self, release: Callable[[Snapshot], tuple[T, SessionDelta]]) -> T:
        """Builds a release from a snapshot and commits it in one step.

        Args:
            release: builds the release from a snapshot and returns it with the delta that it adds.
                It is called again where another thread committed in between; after `MAX_ATTEMPTS`
                it runs under the lock, and other threads wait. If it raises, nothing is committed.
        """
        for _ in range(MAX_ATTEMPTS):
            result, delta = release(self._snapshot)
            if self.commit(delta):
                return result
        with self._lock:
            # Nobody else can commit now, so this attempt succeeds.
            result, delta = release(self._snapshot)
            self._commit(delta)
            return result

    def keep(self, given: Iterable[PlaceholderToken], targets: Iterable[str] = ()) -> None:
        """Adds placeholders that were assigned elsewhere (`KeyedPlaceholders`), so that answers restore.

        Adding them again changes nothing. Their values are hidden in all that this session releases
        from now on.

        Args:
            given: the placeholders.
            targets: targets of links, attributes and URLs in which they occur.

        Raises:
            InputError: a placeholder already stands for another value here, or its value already
                has another placeholder; nothing is kept.
        """
        placeholders, link_targets = list(given), list(targets)

        def add_placeholders(snapshot: Snapshot) -> tuple[None, SessionDelta]:
            changes = Changes(snapshot)
            changes.add_placeholders(placeholders)
            detections = (
                placeholder
                for placeholder in placeholders
                if placeholder.type not in UNDETECTED_TYPES
            )
            changes.add_private(
                PrivateValue(placeholder.type, placeholder.value, 0.0) for placeholder in detections
            )
            changes.add_targets(link_targets)
            return None, changes.build_delta()

        self.transaction(add_placeholders)

    def forget(self, names: Iterable[str]) -> int:
        """Forgets the originals of some placeholders, from now on and for good.

        Answers keep these placeholders as they are. A later text that holds such a value again is
        judged anew, and the value gets another placeholder. Values that hold a forgotten one as a
        whole are forgotten with it; an e-mail address with a part of a name is not. Caches of this
        process may hold values until it ends.

        Args:
            names: placeholders, such as `<PERSON_1>`, which stand for all parts and spellings of
                their values; or types, such as `PERSON`.

        Returns:
            How many values were forgotten.

        Raises:
            InputError: the session has no such placeholder; nothing is forgotten.
        """
        wanted = list(names)
        return self.rewrite(lambda snapshot: drop_values(snapshot, wanted))

    def forget_values(self, values: Iterable[str] | SoughtTexts) -> ForgottenReport:
        """Forgets values that are given as such, in all spellings and parts, from now on.

        As `forget` does; but values that hold a given one in another spelling go, too
        (maria.silva@example.org holds Maria Silva), and so do words that were replaced or drawn.
        It forgets values, not persons: what else the session knows stays.

        Args:
            values: the values.

        Returns:
            What went, and which other values the session still has.

        Raises:
            InputError: a value has fewer than two letters or digits; nothing is forgotten.
        """
        texts = values if isinstance(values, SoughtTexts) else SoughtTexts(values)
        return self.rewrite(lambda snapshot: drop_texts(snapshot, texts))

    def rewrite(self, change: Callable[[Snapshot], tuple[Snapshot | None, T]]) -> T:
        """Replaces the whole state by another one, which may know less.

        Each kind of session overrides this alone, so that nothing of the old state stays where it
        is kept. Other writers wait.

        Args:
            change: returns the following state, None to change nothing; and a result. If it
                raises, nothing changes.
        """
        with self._lock:
            following, result = change(self._snapshot)
            if following is not None:
                self._snapshot = following
        return result

    @contextmanager
    def noting(self) -> Iterator[Changes]:
        """Yields notes to fill by hand; commits them when the block succeeds.

        Raises:
            InputError: another thread committed in between; nothing of the notes is remembered.
        """
        changes = Changes(self.snapshot())
        yield changes
        if not self.commit(changes.build_delta()):
            raise InputError("the session changed while a release was written down; try again")

    # ---- the way back ----------------------------------------------------------------------------

    def restore(
        self,
        text: str,
        *,
        escape: Escape = "none",
        where: RestoreScope = "text",
        hosts: Collection[str] = (),
        value: bool = False,
    ) -> str:
        """Returns an answer with placeholders and unambiguous replaced names restored to originals.

        In strings of JSON, Python, JavaScript, shells and YAML in the answer, fenced or evident, an
        original that would break the string is escaped.

        Args:
            text: the answer.
            escape: "json" if the text is JSON, or the inside of a JSON string: the originals are
                then escaped.
            where: "text" leaves out an original that would be joined into an address in which it
                did not occur in a protected text, since an attacker who made the model write that
                address would receive it; "everywhere" leaves out nothing.
            hosts: into addresses of these hosts originals may be joined; `*.example.org` for all
                below a name.
            value: True if the text is one value, such as an argument of a tool.
        """
        restorer = self.restorer(escape=escape, where=where, hosts=hosts, value=value)
        return restorer.feed(text) + restorer.close()

    def restorer(
        self,
        *,
        escape: Escape = "none",
        where: RestoreScope = "text",
        hosts: Collection[str] = (),
        value: bool = False,
        exact: bool | None = None,
    ) -> Restorer:
        """Returns a streaming `Restorer` for an answer that comes in pieces.

        It uses the session's present state, and counts the keys that it left as they were.

        Args:
            escape: see `restore`.
            where: see `restore`.
            hosts: see `restore`.
            value: see `restore`.
            exact: True to keep the escapes of an original in prose, too: for arguments of tools,
                which may name the bytes of a file. By default only with "json".
        """
        snapshot = self.snapshot()
        allowlist = snapshot.allowlist
        if hosts:
            allowlist = replace(
                allowlist, hosts={*allowlist.hosts, *(host.lower() for host in hosts)}
            )
        return Restorer(
            snapshot.trie,
            escape,
            where,
            allowlist,
            snapshot.said,
            snapshot.stood,
            exact,
            value=value,
        )

    # ---- to be kept ------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Serializes the session as one JSON object, with the originals in clear."""
        snapshot = self.snapshot()
        draws: dict[str, list[_Draw]] = {}
        for (law, word, group), row in snapshot.drawn.items():
            draws.setdefault(law, []).append(_Draw(word=word, group=group, row=row))
        return _SessionFile(
            owner=self.owner,
            placeholders=[
                _Placeholder(**placeholder._asdict())
                for placeholder in snapshot.placeholders.values()
            ],
            replacements=[
                _Replacement(**pair._asdict(), owns=snapshot.owners.get(form) == original)
                for (form, original), pair in snapshot.replaced.items()
            ],
            said=sorted(snapshot.said),
            spelled=sorted(snapshot.spelled),
            private=[
                _Private(
                    type=private_value.type, text=private_value.text, score=private_value.score
                )
                for private_value in snapshot.private.values()
            ],
            targets=sorted(snapshot.targets),
            hosts=sorted(snapshot.hosts),
            stood={value: list(kinds) for value, kinds in sorted(snapshot.stood.items())},
            draws=draws,
            losses=[_Loss(**loss._asdict()) for loss in snapshot.losses.values()],
        ).model_dump_json(indent=1)

    @classmethod
    def from_json(cls, content: str | bytes) -> Self:
        """Reads a session that `to_json` wrote, also in an earlier version.

        Raises:
            InputError: the content is no session file, or a damaged one.
        """
        try:
            session_file = _SessionFile.model_validate_json(content)
        except ValidationError:
            session_file = None
        if session_file is None:  # raised out here, because pydantic's error holds the values
            raise InputError(
                f"not a textveil session file (versions 1 to {VERSION}), or a damaged one; give "
                "one that --session wrote"
            )
        session = cls(session_file.owner)
        session._snapshot = session_file.build_snapshot()
        return session


class _FilePart(BaseModel, strict=True, extra="forbid", frozen=True):
    def __repr_args__(self) -> list[tuple[str | None, object]]:
        return []  # the fields are private


class _Placeholder(_FilePart):
    type: str = Field(min_length=1)
    number: int = Field(ge=1)
    value: str
    part: Literal["", "GIVEN", "FAMILY", "PART"] = ""
    form: int = Field(default=1, ge=1)
    quoted: bool = False


class _Replacement(_FilePart):
    shown: str = Field(pattern=r"\S")
    original: str
    owns: bool


class _Private(_FilePart):
    type: str = Field(min_length=1)
    text: str
    score: float


class _Draw(_FilePart):
    word: str
    group: str
    row: int


class _Loss(_FilePart):
    label: str
    by: str
    drawn: int = Field(ge=0)
    released: int = Field(ge=0)
    most: int = Field(ge=0)
    total: int = Field(ge=0)
    infinite: int = Field(ge=0)
    alike: bool = True


class _SessionFile(_FilePart):
    format: Literal["textveil session"] = "textveil session"
    version: Literal[1, 2, 3, 4, 5, 6] = VERSION
    owner: str
    placeholders: list[_Placeholder]
    replacements: list[_Replacement]
    said: list[str]
    spelled: list[str] = []  # not stored by version 1
    private: list[_Private] | None = (
        None  # versions 1 and 2 stored only placeholders and replacements
    )
    targets: list[str] = []  # versions 1 to 5 stored them with placeholders
    hosts: list[str] = []  # versions 1 to 5 did not know a text's writer
    stood: dict[str, list[str]] = {}  # not stored by versions 1 to 5
    draws: dict[str, list[_Draw]]
    losses: list[_Loss] = []  # not stored by versions 1 to 4

    def build_snapshot(self) -> Snapshot:
        placeholders = [PlaceholderToken(**dict(item)) for item in self.placeholders]
        values, texts = (
            {item.original for item in placeholders},
            {item.text for item in placeholders},
        )
        if not len(placeholders) == len(values) == len(texts):
            raise InputError(
                "the session file is damaged: a placeholder must stand for one value, and a value "
                "must have one placeholder"
            )
        return Snapshot(
            version=0,
            **derive_facts(placeholders),
            **self._read_names(),
            private=ChainMap({value.key: value for value in self._read_private(placeholders)}),
            targets=ChainMap(dict.fromkeys(self.targets)),
            stood=ChainMap({value: tuple(kinds) for value, kinds in self.stood.items()}),
            hosts=ChainMap(dict.fromkeys(self.hosts)),
            said=ChainMap(dict.fromkeys(map(fold, self.said))),
            spelled=ChainMap(dict.fromkeys(item.strip("<>") for item in self.spelled)),
            losses=ChainMap({(item.label, item.by): Loss(**dict(item)) for item in self.losses}),
            drawn=ChainMap(self._read_draws()),
        )

    def _read_names(self) -> dict[str, ChainMap[Any, Any]]:
        names = [
            (fold(replacement.shown), fold(replacement.original), replacement)
            for replacement in self.replacements
        ]
        replaced = {
            (a, b): Replacement(replacement.shown, replacement.original)
            for a, b, replacement in names
        }
        owners = {form: original for form, original, replacement in names if replacement.owns}
        return {"replaced": ChainMap(replaced), "owners": ChainMap(owners)}

    def _read_draws(self) -> dict[tuple[str, str, str], int]:
        laws = self.draws.items()
        return {
            (law, fold(draw.word), draw.group): draw.row for law, draws in laws for draw in draws
        }

    def _read_private(self, placeholders: Sequence[PlaceholderToken]) -> list[PrivateValue]:
        """Returns the private values; old versions stored only placeholders and replacements."""
        if self.private is not None:
            return [PrivateValue(item.type, item.text, item.score) for item in self.private]
        values = [
            PrivateValue(item.type, item.value, 0.0)
            for item in placeholders
            if item.type not in UNDETECTED_TYPES
        ]
        return values + [PrivateValue("PERSON", name.original, 1.0) for name in self.replacements]
