"""Conversations that a client sends again with every request: each message is released once, and sent again as it was.

In: the messages of a request, an account, what releases depend on. Out: a `MessageChain`: what of them was released
before, and a session that knows what those messages have assigned, in which the others are released.
Not here: how a message is released (`pipeline`), what a request is (`gateway`), rows in a database (`sql.links`).

A conversation needs no name. Each message is a link, and the name of a link is an HMAC of the link before it, the role
and the texts: conversations that begin alike share the links of what is alike, and a message that was changed begins a
branch that knows nothing of the other. Answers are links, too: a restored answer that the client sends back is sent on
as it came. Where no link is found (a clock in the first message, old messages that were dropped), what was drawn for
the same message of the same account is used again, and what was private in it is hidden again.
"""

import json
import time
from collections import ChainMap, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from itertools import takewhile
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model

from textveil.session.snapshot import FACTS, Facts, SessionDelta, Snapshot, Source
from textveil.session.spending import ALL, Spend, total
from textveil.session.sql.seal import derived
from textveil.session.state import Session

if TYPE_CHECKING:
    from textveil.session.sql.ledger import Ledger, Reservation

AGAIN = "again "
"""How the laws begin that draws of a message are kept under, by the digest of its text."""

KEEP = 86_400
"""Seconds for which links in memory are kept after they were used."""

MOST = 100_000
"""Links in memory; those that were used longest ago go first."""

HEADS = 200
"""Conversations in memory as they were read."""

USERS = ("user", "human", "system", "developer", "besides")
"""Roles of messages that a user wrote, or who wrote the program."""

MODELS = ("assistant", "ai", "model", "reasoning")
"""Roles of answers."""


class Utterance(NamedTuple):
    """A message. Secret.

    Args:
        role: who says it.
        texts: what is said, part by part.
        forms: how each text is written, "" for plain text; none at all where all are plain.
        sources: who wrote each text; none at all where the role says it of all.
    """

    role: str
    texts: tuple[str, ...]
    forms: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()

    def __repr__(self) -> str:
        return f"Utterance({len(self.texts)} texts)"

    def source(self, i: int) -> Source:
        """Who wrote a text: what the role says, and somebody unknown where it says nothing."""
        if self.sources:
            return self.sources[i]
        role = self.role.lower()
        if role in USERS:
            return "user"
        return "answer" if role in MODELS or role.endswith("_call") else "tool"

    @property
    def canonical(self) -> bytes:
        """The same bytes for the same message."""
        forms = [list(self.forms)] if any(self.forms) else []
        return json.dumps([self.role, *self.texts, *forms]).encode()


class Signed(NamedTuple):
    """A text that only its author may change. Secret.

    Args:
        signature: the author's.
        text: what is signed, or what became of it.
    """

    signature: str
    text: str

    def __repr__(self) -> str:
        return "Signed()"


class Links(Protocol):
    """Where the links of an account lie."""

    @property
    def ledger(self) -> "Ledger | None":
        """Counts what is spent; None where nothing does."""

    def name(self, *parts: bytes) -> bytes:
        """A name that follows from parts, and says nothing about them."""

    def get(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """What lies under some names, where something does."""

    def add(
        self,
        once: Mapping[bytes, bytes],
        anew: Mapping[bytes, bytes],
        reserved: Sequence["Reservation"] = (),
    ) -> None:
        """Keep rows, and confirm what was reserved for them, in one transaction.

        Args:
            once: rows that stay as they are where they exist.
            anew: rows that take the place of what was there.
            reserved: what was charged for them.
        """

    def swap(self, name: bytes, before: bytes | None, content: bytes) -> bool:
        """Keep a row in place of what was there, in one transaction; false, and nothing is kept, where it is not.

        Args:
            name: of the row.
            before: what was there, as `get` gave it; None for nothing.
            content: what is there from now on, and may be already.
        """


class MemoryLinks:
    """Links in this process.

    Args:
        key: what names are made with.
        rows: where they lie, of all accounts; those that were used last are at the end.
        lock: of the rows.
        ledger: counts what is spent; None where nothing does.
    """

    def __init__(
        self,
        key: bytes,
        rows: "OrderedDict[bytes, tuple[float, bytes]]",
        lock: Lock,
        ledger: "Ledger | None" = None,
    ) -> None:
        self._key, self._rows, self._lock, self.ledger = key, rows, lock, ledger

    def name(self, *parts: bytes) -> bytes:
        """See `Links`."""
        return derived(self._key, *parts)

    def get(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """See `Links`."""
        found = {}
        with self._lock:
            self._forget()
            for name in names:
                if name in self._rows:
                    found[name] = self._rows.pop(name)[1]
                    self._rows[name] = time.monotonic(), found[name]
        return found

    def add(
        self,
        once: Mapping[bytes, bytes],
        anew: Mapping[bytes, bytes],
        reserved: Sequence["Reservation"] = (),
    ) -> None:
        """See `Links`."""
        with self._lock:
            for name, content in {**once, **anew}.items():
                known = self._rows.pop(name, None)
                kept = known[1] if known is not None and name in once else content
                self._rows[name] = time.monotonic(), kept
            self._forget()
        for each in reserved:
            assert self.ledger is not None, "or nothing was charged"
            self.ledger.confirm(each)

    def swap(self, name: bytes, before: bytes | None, content: bytes) -> bool:
        """See `Links`."""
        with self._lock:
            known = self._rows.get(name, (0.0, None))[1]
            if known not in (before, content):
                return False
            self._rows.pop(name, None)
            self._rows[name] = time.monotonic(), content
            return True

    def _forget(self) -> None:
        while self._rows:
            name, (used, _) = next(iter(self._rows.items()))
            if len(self._rows) <= MOST and used > time.monotonic() - KEEP:
                return
            del self._rows[name]


class ChainSession(Session):
    """The session of one request: it knows what the messages before have assigned, and notes what is new.

    Args:
        owner: the account.
        known: what is known.
        ledger: counts what is spent; None where nothing does.
        summed: whether the sum over all kinds is charged, too, to an account of its own.

    Attributes:
        new: what the message that is being released has added.
        reserved: what was charged for it.
        spent: what all messages of the request spend that were released in it.
        key: what it is charged under, so that it is charged once; it follows from the message and all before. What is
            drawn for several parts of a message is charged part by part, in their order.
    """

    def __init__(
        self, owner: str, known: Snapshot, ledger: "Ledger | None", *, summed: bool = False
    ) -> None:
        super().__init__(owner)
        self.adopt(known)
        self._ledger, self._summed, self.counts_spending = ledger, summed, True
        self.new: list[SessionDelta] = []
        self.spent: list[Spend] = []
        self.reserved: list[Reservation] = []
        self.key: str | None = None

    def _commit(self, delta: SessionDelta) -> bool:
        made = super()._commit(delta)
        if made and delta:
            self.new.append(delta)
        return made

    def learn(self, facts: Mapping[str, Mapping[Any, Any]]) -> None:
        """Know some more facts."""
        self.commit(delta_of(facts, self.snapshot().version))

    def reserve(self, spends: Sequence[Spend]) -> None:
        """See `Session`. Requests that draw the same message at the same time are charged once: one draw is sent."""
        if self._ledger is None:
            self.spent += spends
            return
        charged = [*spends, total(spends)] if self._summed and spends else spends
        # As the ledger takes them; parts that spend alike are several.
        ordered = sorted(charged, key=lambda spend: (spend.metric, spend.table))
        key = None if self.key is None else f"{self.key} {len(self.reserved)}"
        made = self._ledger.reserve_all(self.owner, ordered, key=key)
        self.reserved += made
        new = [spend for spend, own in zip(ordered, made, strict=True) if not own.repeated]
        self.spent += [spend for spend in new if spend.table != ALL]


@dataclass(frozen=True, kw_only=True)
class Link:
    """What became of a message. Secret.

    Attributes:
        released: its texts as they were sent.
        promise: what was said about that; None for an answer.
        facts: what it added to the session, by kind.
    """

    released: tuple[str, ...] = field(repr=False)
    promise: dict[str, Any] | None
    facts: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict, repr=False)

    def written(self) -> bytes:
        """As bytes."""
        return json.dumps([self.released, self.promise, written(self.facts)]).encode()

    @classmethod
    def read(cls, content: bytes) -> "Link":
        """As it was written."""
        released, promise, facts = _link().validate_json(content)
        return cls(released=released, promise=promise, facts=_by_key(facts))


class Heads:
    """Conversations as requests found them, so that the next request of one reads only what is new in it.

    They are found by the rows that they were read from, so that they say nothing else than those do.

    Args:
        most: how many are kept; those that were used longest ago go first.
    """

    def __init__(self, most: int = HEADS) -> None:
        self._most, self._heads, self._lock = most, OrderedDict[bytes, _Head](), Lock()

    def find(self, names: Sequence[bytes], rows: Sequence[bytes]) -> "_Head":
        """The longest beginning of a conversation that is known.

        Args:
            names: of its links.
            rows: what it is read from: one for each link, behind what was there before them.
        """
        with self._lock:
            for i in range(len(names), 0, -1):
                head = self._heads.get(names[i - 1])
                if head is not None and head.rows == rows[: len(head.rows)]:
                    self._heads.move_to_end(names[i - 1])
                    return head
        return _Head((), (), Snapshot())

    def keep(self, name: bytes, head: "_Head") -> None:
        """Know the beginning of a conversation, by the name of its last link."""
        with self._lock:
            self._heads[name] = head
            self._heads.move_to_end(name)
            while len(self._heads) > self._most:
                self._heads.popitem(last=False)


class _Head(NamedTuple):
    """The beginning of a conversation: the rows that it was read from, its links, and what is known with them."""

    rows: Sequence[bytes]
    links: "Sequence[Link]"
    known: Snapshot

    def __repr__(self) -> str:
        return f"_Head({len(self.links)} links)"


class MessageChain:
    """The messages of one request, those that were released before and those that are new.

    Args:
        links: where the links of the account lie.
        account: whose they are; what is spent is charged to it.
        basis: all that releases depend on besides messages: a release under another basis is another one.
        messages: all of them, in order.
        besides: what else is said with the last message, and is no part of the conversation.
        after: the upstream's name of what it remembers itself, and these messages go on from; None where it remembers
            nothing.
        heads: conversations that were read before; None to read all of it.
        summed: whether what is spent is also charged in sum, to an account of the table `ALL`, which can be limited.

    Attributes:
        continues: whether it is known what `after` stands for, or there is none; else nothing must be sent.
        session: knows what the messages have assigned; restores the answer.
        links: what became of the messages, in order, and of what is said besides; before `release` only of those that
            are known.
        drawn: in how many of them `release` has drawn something.
        repeated: how many were released before, here or in another conversation, and in which nothing was drawn now.
    """

    def __init__(
        self,
        links: Links,
        account: str,
        basis: str,
        messages: Sequence[Utterance],
        besides: Sequence[Utterance] = (),
        *,
        after: str | None = None,
        heads: Heads | None = None,
        summed: bool = False,
    ) -> None:
        self._links, self._account, self._basis = links, account, basis
        self._messages = [*messages, *besides]
        before = [] if after is None else [self._remembered(after)]
        self._before = links.get(before)
        since = [self._before[name] for name in before if name in self._before]
        # What is remembered grows: so do placeholders.
        names = [links.name(b"chain", account.encode(), basis.encode(), *before, *since)]
        for message in messages:
            names.append(links.name(b"link", names[-1], message.canonical))
        self._last, self._said = names[-1], len(messages)
        for message in besides:
            names.append(links.name(b"besides", names[-1], message.canonical))
        self._names = names[1:]
        found = links.get(self._names)
        self.continues = len(since) == len(before)
        self.links: list[Link] = []
        known = Snapshot()
        if self.continues:
            rows = since + [found[name] for name in takewhile(found.__contains__, self._names)]
            known = self._read(rows, len(before), heads)
        self.session = ChainSession(account, known, links.ledger, summed=summed)
        self.drawn, self.repeated = 0, len(self.links)

    def _read(self, rows: Sequence[bytes], before: int, heads: Heads | None) -> Snapshot:
        """What is known with the links that are known, which are read.

        Args:
            rows: what they are read from; first what the upstream remembers, if it does.
            before: how many of them are no links.
            heads: conversations that were read before.
        """
        said = rows[: before + self._said]
        heads = Heads(0) if heads is None else heads
        head = heads.find(self._names[: len(said) - before], said)
        links, known = [*head.links], head.known
        for row in rows[len(head.rows) :]:
            link = Link.read(row)
            links.append(link)
            known = known.after(delta_of(link.facts, known.version))
            if len(links) == len(said) > before:
                _ = known.sought  # what is added to it later is added to copies
                heads.keep(self._names[len(said) - before - 1], _Head(said, tuple(links), known))
        self.links = links[before:]
        return known

    def release(
        self, release: "Callable[[Utterance, Session], tuple[Sequence[str], dict[str, Any]]]"
    ) -> None:
        """Release the messages that are new, one after the other; each is kept before the next is released.

        Args:
            release: makes the texts of a message and what is promised about them, in a session.
        """
        assert self.continues, "or placeholders that are remembered would be given to others"
        first = len(self.links)
        news = list(zip(self._messages[first:], self._names[first:], strict=True))
        basis = self._basis.encode()
        same = [self._links.name(b"message", basis, message.canonical) for message, _ in news]
        known = self._links.get(same)
        for (message, name), again in zip(news, same, strict=True):
            self._release(release, message, name, again, known.get(again))

    def _release(
        self,
        release: "Callable[[Utterance, Session], tuple[Sequence[str], dict[str, Any]]]",
        message: Utterance,
        name: bytes,
        again: bytes,
        row: bytes | None,
    ) -> None:
        """Releases one message.

        Args:
            release: makes its texts.
            message: which.
            name: of its link.
            again: the name of what is known of it wherever it stands.
            row: what that is; None for nothing.
        """
        before, session = self.session.snapshot(), self.session
        session.new, session.reserved = [], []
        session.repeats, session.key = message.role, name.hex()
        repeated = {} if row is None else read(row)
        session.learn(repeated)
        texts, promise = release(message, session)
        facts = _merged([repeated, *(vars(delta) for delta in session.new)])
        own = _draws(facts, again=True)
        facts["drawn"] = _draws(facts, again=False)
        made = Link(released=tuple(texts), promise=promise, facts=facts)
        standing, known_draws = self._standing(message.texts), repeated.get("drawn", {})
        link, anew = {name: made.written()}, {again: _row(standing, known_draws)}
        once, anew = (link | anew, {}) if row is None else (link, anew)
        self._links.add(once, anew, session.reserved)
        kept = Link.read(self._links.get([name]).get(name, made.written()))
        # The same message was released at the same time: there is one release.
        lost = kept.released != made.released
        if lost:
            made = kept
            session.adopt(before.after(delta_of(made.facts, before.version)))
        elif own != known_draws:  # only now: draws that were thrown away must not be released later
            self._links.add({}, {again: _row(standing, own)})
        draws = promise.get("drawn", 0) > 0 and not lost
        self.drawn += draws
        self.repeated += not draws and (row is not None or lost)
        self.links.append(made)

    @property
    def counts(self) -> dict[str, int]:
        """How many messages are new, in how many something was drawn, and how many are sent again as they were."""
        new = len(self.links) - self.repeated
        return {"new": new, "drawn": self.drawn, "repeated": self.repeated}

    @staticmethod
    def is_retry(links: Links, key: str, request: bytes) -> bool:
        """Whether a client's name of a request is new, or was given to this request before; it is kept.

        Args:
            links: those of the account.
            key: the name.
            request: all that what is sent depends on.
        """
        own = links.name(b"body", request).hex().encode()
        name = links.name(b"request", key.encode())
        links.add({name: own}, {})
        return links.get([name]).get(name, own).strip() == own

    def remember(self, name: str) -> None:
        """Keep what is known so far, since the upstream remembers it, too; a later chain goes on `after` it.

        Args:
            name: the upstream's.
        """
        self._links.add({}, {self._remembered(name): self._known()})

    def grow(self, name: str) -> bool:
        """The same for what grows with each request, before one is sent; false where another one came between.

        Then nothing is kept, and nothing may be sent: a placeholder could stand for two values.

        Args:
            name: what the chain goes on `after`, or a new one.
        """
        row = self._remembered(name)
        return self._links.swap(row, self._before.get(row), self._known())

    def _known(self) -> bytes:
        known = self.session.snapshot()
        facts = {kind: dict(getattr(known, kind)) for kind in FACTS}
        facts["drawn"] = _draws(facts, again=False)
        return Link(released=(), promise=None, facts=facts).written()

    def _remembered(self, name: str) -> bytes:
        return self._links.name(b"remembered", self._account.encode(), name.encode())

    def as_came(self, signed: Sequence[Signed]) -> list[str | None]:
        """Texts that a model signed as they came, in any conversation of the account.

        Args:
            signed: each as it was restored.

        Returns:
            None for a text that is not known, or that would say something else in this conversation.
        """
        names = [self._signed(each) for each in signed]
        known = self._links.get(names) if names else {}
        found = [json.loads(known[name]) if name in known else None for name in names]
        return [
            came if came is not None and self.session.restore(came) == each.text else None
            for came, each in zip(found, signed, strict=True)
        ]

    def _signed(self, signed: Signed) -> bytes:
        return self._links.name(
            b"signed", self._account.encode(), signed.signature.encode(), signed.text.encode()
        )

    def answered(
        self,
        answers: Iterable[tuple[Utterance, Utterance]],
        signed: Iterable[tuple[Signed, Signed]] = (),
        *,
        in_turn: bool = False,
    ) -> None:
        """Keep answers of the model, so that they are sent on as they came when the client sends them back.

        Args:
            answers: each as it came, and as it was restored.
            signed: the same of what the model signed in them.
            in_turn: whether they are said one after the other; else the client goes on with one of them.
        """
        once: dict[bytes, bytes] = {}
        anew: dict[bytes, bytes] = {}
        # Or nobody would know them in the next turn.
        facts = _merged([link.facts for link in self.links[self._said :]])
        last = self._last
        for came, message in answers:
            name = self._links.name(b"link", last, message.canonical)
            once[name] = Link(released=came.texts, promise=None, facts=facts).written()
            last = name if in_turn else last
            again = self._links.name(b"message", self._basis.encode(), message.canonical)
            anew[again] = _row(self._standing(message.texts), {})
        for came_signed, made in signed:
            once[self._signed(made)] = json.dumps(came_signed.text).encode()
        if once:
            self._links.add(once, anew)

    def _standing(self, texts: Sequence[str]) -> dict[Any, Any]:
        """What of all that is private stands in texts."""
        sought = self.session.snapshot().sought
        return {value.key: value for text in texts for value in sought.standing(text)}


def digest(repeats: str, text: str) -> str:
    """What draws of a text are kept under; see `Session.repeats`. Secret."""
    return sha256(f"{repeats}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()


def delta_of(facts: Mapping[str, Mapping[Any, Any]], since: int) -> SessionDelta:
    """Facts by kind as what a release adds."""
    return SessionDelta(since=since, **{kind: ChainMap(dict(more)) for kind, more in facts.items()})


def written(facts: Mapping[str, Mapping[Any, Any]]) -> dict[str, Any]:
    """Facts by kind, as plain data."""
    pairs: dict[str, Any] = {kind: list(more.items()) for kind, more in facts.items() if more}
    return _pairs().model_construct(**pairs).model_dump(mode="json", exclude_unset=True)


def read(content: bytes) -> dict[str, dict[Any, Any]]:
    """Facts by kind, as they were written, in JSON."""
    return _by_key(_pairs().model_validate_json(content))


def _row(private: Mapping[Any, Any], drawn: Mapping[Any, Any]) -> bytes:
    """What is known of a message wherever it stands: what in it is private, and what was drawn for it."""
    return json.dumps(written({"private": private, "drawn": drawn})).encode()


def _merged(several: Iterable[Mapping[str, Any]]) -> dict[str, dict[Any, Any]]:
    made: dict[str, dict[Any, Any]] = {}
    for facts in several:
        for kind in FACTS:
            if facts.get(kind):
                made.setdefault(kind, {}).update(facts[kind])
    return made


def _draws(facts: Mapping[str, Mapping[Any, Any]], *, again: bool) -> dict[Any, Any]:
    """Gives draws that are kept by the text of a message, or all others."""
    drawn = facts.get("drawn", {}).items()
    return {key: row for key, row in drawn if key[0].startswith(AGAIN) is again}


def _by_key(facts: BaseModel) -> dict[str, dict[Any, Any]]:
    return {kind: dict(pairs) for kind, pairs in vars(facts).items() if pairs}


@cache
def _pairs() -> type[BaseModel]:
    """What reads facts by kind as pairs."""
    hints = get_type_hints(Facts).items()
    pairs = {kind: tuple.__class_getitem__(get_args(hint)) for kind, hint in hints}
    kinds: dict[str, Any] = {kind: (list[pair], ()) for kind, pair in pairs.items()}  # type: ignore[valid-type]
    return create_model("Pairs", __config__=ConfigDict(extra="forbid"), **kinds)


@cache
def _link() -> TypeAdapter[Any]:
    written: Any = tuple.__class_getitem__((tuple[str, ...], dict[str, Any] | None, _pairs()))
    return TypeAdapter(written)
