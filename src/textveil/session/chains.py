"""Conversations that clients resend with every request; each message is released once.

It is sent again as it was.

In: the messages of a request, an account, a digest of the configuration. Out: a `MessageChain`: the
earlier releases of its messages, and a session with the assignments of those messages, in which the
new ones are released.
Not here: how a message is released (`pipeline`), what a request is (`gateway`), rows in a database
(`sql.links`).

A conversation needs no name. Each message is a link, and the name of a link is an HMAC of the link
before it, the role and the texts: conversations that begin alike share the links of their common
part, and a message that was changed begins a branch that knows nothing of the other. Answers are
links, too: a restored answer that the client sends back is sent on as the model wrote it. Where no
link is found (a clock in the first message, old messages that were dropped), earlier draws for the
same message of the same account are used again, and its private values are hidden again.
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
"""Prefix of laws whose draws are stored by the message text's digest."""

KEEP = 86_400
"""Seconds that unused links stay in memory."""

MOST = 100_000
"""Most links in memory; those least recently used go first."""

HEADS = 200
"""Most parsed conversations in memory."""

USERS = ("user", "human", "system", "developer", "besides")
"""Roles of messages by a user, or by the program's author."""

MODELS = ("assistant", "ai", "model", "reasoning")
"""Roles of answers."""


class Utterance(NamedTuple):
    """A message. Secret.

    Args:
        role: role of the speaker.
        texts: its texts, part by part.
        forms: how each text is written, "" for plain text; empty where all are plain.
        sources: the writer of each text; empty where the role decides it for all.
    """

    role: str
    texts: tuple[str, ...]
    forms: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()

    def __repr__(self) -> str:
        return f"Utterance({len(self.texts)} texts)"

    def source(self, i: int) -> Source:
        """Returns the writer of a text; by default, the role decides.

        An unknown role counts as a tool.
        """
        if self.sources:
            return self.sources[i]
        role = self.role.lower()
        if role in USERS:
            return "user"
        return "answer" if role in MODELS or role.endswith("_call") else "tool"

    @property
    def canonical(self) -> bytes:
        """Canonical bytes, equal for equal messages."""
        forms = [list(self.forms)] if any(self.forms) else []
        return json.dumps([self.role, *self.texts, *forms]).encode()


class Signed(NamedTuple):
    """A text that only its author may change. Secret.

    Args:
        signature: the author's signature.
        text: the text that is signed, or its restored form.
    """

    signature: str
    text: str

    def __repr__(self) -> str:
        return "Signed()"


class Links(Protocol):
    """Store of the links of one account."""

    @property
    def ledger(self) -> "Ledger | None":
        """Ledger that counts spending; None where nothing does."""

    def name(self, *parts: bytes) -> bytes:
        """Derives a row name from parts, without revealing them."""

    def get(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """Returns the existing rows among some names."""

    def add(
        self,
        once: Mapping[bytes, bytes],
        anew: Mapping[bytes, bytes],
        reserved: Sequence["Reservation"] = (),
    ) -> None:
        """Stores rows and confirms their reservations in one transaction.

        Args:
            once: rows to add where the name is free.
            anew: rows that replace an earlier content.
            reserved: charges of the releases in these rows.
        """

    def swap(self, name: bytes, before: bytes | None, content: bytes) -> bool:
        """Replaces a row if its content is as expected; False if not.

        One transaction; where it returns False, nothing is stored.

        Args:
            name: name of the row.
            before: expected content, as `get` returned it; None for no row.
            content: new content, which may be there already.
        """


class MemoryLinks:
    """Links in this process.

    Args:
        key: HMAC key of the names.
        rows: rows of all accounts, the most recently used ones at the end.
        lock: lock of the rows.
        ledger: counts spending; None where nothing does.
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
        contents = {}
        with self._lock:
            self._forget()
            for name in names:
                if name in self._rows:
                    contents[name] = self._rows.pop(name)[1]
                    self._rows[name] = time.monotonic(), contents[name]
        return contents

    def add(
        self,
        once: Mapping[bytes, bytes],
        anew: Mapping[bytes, bytes],
        reserved: Sequence["Reservation"] = (),
    ) -> None:
        """See `Links`."""
        with self._lock:
            for name, content in {**once, **anew}.items():
                former = self._rows.pop(name, None)
                stored = former[1] if former is not None and name in once else content
                self._rows[name] = time.monotonic(), stored
            self._forget()
        for reservation in reserved:
            assert self.ledger is not None, "or nothing was charged"
            self.ledger.confirm(reservation)

    def swap(self, name: bytes, before: bytes | None, content: bytes) -> bool:
        """See `Links`."""
        with self._lock:
            former = self._rows.get(name, (0.0, None))[1]
            if former not in (before, content):
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
    """Session of one request, with earlier messages' assignments; collects the deltas.

    Args:
        owner: the account.
        known: state after the earlier messages.
        ledger: counts spending; None where nothing does.
        summed: True to charge the sum over all kinds, too, to a separate account.

    Attributes:
        new: deltas of the message that is being released.
        reserved: charges for that message.
        spent: spending of all messages that this request released.
        key: idempotency key of the charge, derived from the message and all before it, so that it
            is charged once. Draws for the parts of a message are charged part by part, in their
            order.
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
        committed = super()._commit(delta)
        if committed and delta:
            self.new.append(delta)
        return committed

    def learn(self, facts: Mapping[str, Mapping[Any, Any]]) -> None:
        """Adds facts to the session."""
        self.commit(delta_of(facts, self.snapshot().version))

    def reserve(self, spends: Sequence[Spend]) -> None:
        """See `Session`. Concurrent requests with the same message are charged once.

        Only one of their draws is sent.
        """
        if self._ledger is None:
            self.spent += spends
            return
        charged = [*spends, total(spends)] if self._summed and spends else spends
        # In the ledger's order; a counter in the key tells apart parts with equal spending.
        ordered = sorted(charged, key=lambda spend: (spend.metric, spend.table))
        key = None if self.key is None else f"{self.key} {len(self.reserved)}"
        reservations = self._ledger.reserve_all(self.owner, ordered, key=key)
        self.reserved += reservations
        new = [
            spend
            for spend, reservation in zip(ordered, reservations, strict=True)
            if not reservation.repeated
        ]
        self.spent += [spend for spend in new if spend.table != ALL]


@dataclass(frozen=True, kw_only=True)
class Link:
    """Stored release of a message. Secret.

    Attributes:
        released: its texts as they were sent.
        promise: the statement about the release; None for an answer.
        facts: additions to the session, by kind.
    """

    released: tuple[str, ...] = field(repr=False)
    promise: dict[str, Any] | None
    facts: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict, repr=False)

    def written(self) -> bytes:
        """Serializes the link."""
        return json.dumps([self.released, self.promise, written(self.facts)]).encode()

    @classmethod
    def read(cls, content: bytes) -> "Link":
        """Parses a link that `written` serialized."""
        released, promise, facts = _link_codec().validate_json(content)
        return cls(released=released, promise=promise, facts=_by_key(facts))


class Heads:
    """Cache of parsed conversations, so that a request reads only new rows.

    Entries match by the rows that they were read from, so they never disagree with them.

    Args:
        most: number of entries; those least recently used go first.
    """

    def __init__(self, most: int = HEADS) -> None:
        self._most, self._heads, self._lock = most, OrderedDict[bytes, _Head](), Lock()

    def find(self, names: Sequence[bytes], rows: Sequence[bytes]) -> "_Head":
        """Finds the longest cached prefix of a conversation.

        Args:
            names: names of its links.
            rows: the rows it is read from: one for each link, after those that precede them.
        """
        with self._lock:
            for i in range(len(names), 0, -1):
                head = self._heads.get(names[i - 1])
                if head is not None and head.rows == rows[: len(head.rows)]:
                    self._heads.move_to_end(names[i - 1])
                    return head
        return _Head((), (), Snapshot())

    def keep(self, name: bytes, head: "_Head") -> None:
        """Caches a conversation prefix by the name of its last link."""
        with self._lock:
            self._heads[name] = head
            self._heads.move_to_end(name)
            while len(self._heads) > self._most:
                self._heads.popitem(last=False)


class _Head(NamedTuple):
    """A conversation prefix: its rows, links, and session state."""

    rows: Sequence[bytes]
    links: "Sequence[Link]"
    known: Snapshot

    def __repr__(self) -> str:
        return f"_Head({len(self.links)} links)"


class MessageChain:
    """Messages of one request, released before or new.

    Args:
        links: store of the account's links.
        account: the account, which spending is charged to.
        basis: digest of all that releases depend on except messages: another basis, another
            release.
        messages: all messages, in order.
        besides: context that is sent with the last message, and is no part of the conversation.
        after: the upstream's name of the conversation that it stores itself, and that these
            messages continue; None where it stores nothing.
        heads: cache of parsed conversations; None to parse everything.
        summed: True to charge the sum, too, to an account of the table `ALL`, which can be limited.

    Attributes:
        continues: True if there is no `after`, or its state is known; else nothing must be sent.
        session: state with the assignments of the messages; restores the answer.
        links: releases of the messages, in order, and of `besides`; before `release` only those
            that are known.
        drawn: number of messages in which `release` has drawn something.
        repeated: number of messages that were released before, here or in another conversation, and
            in which nothing was drawn now.
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
        before = [] if after is None else [self._name_remembered(after)]
        self._before = links.get(before)
        since = [self._before[name] for name in before if name in self._before]
        # The upstream's state grows, and its placeholders with it: the names depend on its content.
        names = [links.name(b"chain", account.encode(), basis.encode(), *before, *since)]
        for message in messages:
            names.append(links.name(b"link", names[-1], message.canonical))
        self._last, self._said = names[-1], len(messages)
        for message in besides:
            names.append(links.name(b"besides", names[-1], message.canonical))
        self._names = names[1:]
        contents = links.get(self._names)
        self.continues = len(since) == len(before)
        self.links: list[Link] = []
        state = Snapshot()
        if self.continues:
            rows = since + [
                contents[name] for name in takewhile(contents.__contains__, self._names)
            ]
            state = self._read(rows, len(before), heads)
        self.session = ChainSession(account, state, links.ledger, summed=summed)
        self.drawn, self.repeated = 0, len(self.links)

    def _read(self, rows: Sequence[bytes], before: int, heads: Heads | None) -> Snapshot:
        """Reads the known links and returns the session state after them.

        Args:
            rows: their rows; first the upstream's state, if there is one.
            before: number of rows at the beginning that are no links.
            heads: cache of parsed conversations.
        """
        conversation = rows[: before + self._said]
        heads = Heads(0) if heads is None else heads
        head = heads.find(self._names[: len(conversation) - before], conversation)
        links, state = [*head.links], head.known
        for row in rows[len(head.rows) :]:
            link = Link.read(row)
            links.append(link)
            state = state.after(delta_of(link.facts, state.version))
            if len(links) == len(conversation) > before:
                _ = state.sought  # computed now; later snapshots extend copies of it
                heads.keep(
                    self._names[len(conversation) - before - 1],
                    _Head(conversation, tuple(links), state),
                )
        self.links = links[before:]
        return state

    def release(
        self, release: "Callable[[Utterance, Session], tuple[Sequence[str], dict[str, Any]]]"
    ) -> None:
        """Releases the new messages in order; each is stored before the next.

        Args:
            release: returns the texts of a message and the statement about them, in a session.
        """
        assert self.continues, "or placeholders that are remembered would be given to others"
        first = len(self.links)
        new_messages = list(zip(self._messages[first:], self._names[first:], strict=True))
        basis = self._basis.encode()
        same = [
            self._links.name(b"message", basis, message.canonical) for message, _ in new_messages
        ]
        rows = self._links.get(same)
        for (message, name), again in zip(new_messages, same, strict=True):
            self._release(release, message, name, again, rows.get(again))

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
            release: returns its texts and statement.
            message: the message.
            name: name of its link.
            again: name of the row for this message in any conversation.
            row: content of that row; None if there is none.
        """
        before, session = self.session.snapshot(), self.session
        session.new, session.reserved = [], []
        session.repeats, session.key = message.role, name.hex()
        repeated = {} if row is None else read(row)
        session.learn(repeated)
        texts, promise = release(message, session)
        facts = _merge([repeated, *(vars(delta) for delta in session.new)])
        text_draws = _select_draws(facts, again=True)
        facts["drawn"] = _select_draws(facts, again=False)
        link_made = Link(released=tuple(texts), promise=promise, facts=facts)
        standing, known_draws = self._find_private(message.texts), repeated.get("drawn", {})
        link, anew = {name: link_made.written()}, {again: _serialize_row(standing, known_draws)}
        once, anew = (link | anew, {}) if row is None else (link, anew)
        self._links.add(once, anew, session.reserved)
        stored = Link.read(self._links.get([name]).get(name, link_made.written()))
        # A concurrent request released the same message first: use its release.
        lost = stored.released != link_made.released
        if lost:
            link_made = stored
            session.adopt(before.after(delta_of(link_made.facts, before.version)))
        elif text_draws != known_draws:  # only now: discarded draws must never be released
            self._links.add({}, {again: _serialize_row(standing, text_draws)})
        draws = promise.get("drawn", 0) > 0 and not lost
        self.drawn += draws
        self.repeated += not draws and (row is not None or lost)
        self.links.append(link_made)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of messages: new, drawn, and repeated unchanged."""
        new = len(self.links) - self.repeated
        return {"new": new, "drawn": self.drawn, "repeated": self.repeated}

    @staticmethod
    def is_retry(links: Links, key: str, request: bytes) -> bool:
        """Says whether a request may use an idempotency key, and stores it.

        True if the key is new, or was stored for this request before.

        Args:
            links: those of the account.
            key: the client's idempotency key.
            request: all that the outgoing request depends on.
        """
        body = links.name(b"body", request).hex().encode()
        name = links.name(b"request", key.encode())
        links.add({name: body}, {})
        return links.get([name]).get(name, body).strip() == body

    def remember(self, name: str) -> None:
        """Stores the state under the upstream's name, to continue `after` it.

        Args:
            name: the upstream's name of its conversation.
        """
        self._links.add({}, {self._name_remembered(name): self._serialize_state()})

    def grow(self, name: str) -> bool:
        """Stores the state before sending; False if another request came between.

        Then nothing is stored, and nothing may be sent: a placeholder could stand for two values.

        Args:
            name: the name that the chain continues `after`, or a new one.
        """
        row = self._name_remembered(name)
        return self._links.swap(row, self._before.get(row), self._serialize_state())

    def _serialize_state(self) -> bytes:
        snapshot = self.session.snapshot()
        facts = {kind: dict(getattr(snapshot, kind)) for kind in FACTS}
        facts["drawn"] = _select_draws(facts, again=False)
        return Link(released=(), promise=None, facts=facts).written()

    def _name_remembered(self, name: str) -> bytes:
        return self._links.name(b"remembered", self._account.encode(), name.encode())

    def as_came(self, signed: Sequence[Signed]) -> list[str | None]:
        """Returns signed texts as the model sent them, in any conversation.

        Args:
            signed: the texts as they were restored.

        Returns:
            None for a text that is unknown, or that would restore differently in this conversation.
        """
        names = [self._name_signed(text) for text in signed]
        rows = self._links.get(names) if names else {}
        originals = [json.loads(rows[name]) if name in rows else None for name in names]
        return [
            original
            if original is not None and self.session.restore(original) == text.text
            else None
            for original, text in zip(originals, signed, strict=True)
        ]

    def _name_signed(self, signed: Signed) -> bytes:
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
        """Stores answers, so that they are sent on unchanged when they return.

        Args:
            answers: pairs of the answer as the model wrote it, and as it was restored.
            signed: the same pairs for the signed texts in them.
            in_turn: True if the answers follow one another; else the client continues with one of
                them.
        """
        once: dict[bytes, bytes] = {}
        anew: dict[bytes, bytes] = {}
        # The context messages are not sent again, so the answer's link keeps their facts.
        facts = _merge([link.facts for link in self.links[self._said :]])
        last = self._last
        for original, message in answers:
            name = self._links.name(b"link", last, message.canonical)
            once[name] = Link(released=original.texts, promise=None, facts=facts).written()
            last = name if in_turn else last
            again = self._links.name(b"message", self._basis.encode(), message.canonical)
            anew[again] = _serialize_row(self._find_private(message.texts), {})
        for came_signed, restored in signed:
            once[self._name_signed(restored)] = json.dumps(came_signed.text).encode()
        if once:
            self._links.add(once, anew)

    def _find_private(self, texts: Sequence[str]) -> dict[Any, Any]:
        """Returns the known private values that occur in these texts."""
        sought = self.session.snapshot().sought
        return {value.key: value for text in texts for value in sought.standing(text)}


def digest(repeats: str, text: str) -> str:
    """Hashes a text with its repeat marker, to look up its draws.

    See `Session.repeats`. The digest is secret.
    """
    return sha256(f"{repeats}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()


def delta_of(facts: Mapping[str, Mapping[Any, Any]], since: int) -> SessionDelta:
    """Builds the delta that adds facts by kind."""
    return SessionDelta(since=since, **{kind: ChainMap(dict(more)) for kind, more in facts.items()})


def written(facts: Mapping[str, Mapping[Any, Any]]) -> dict[str, Any]:
    """Converts facts by kind to plain data."""
    pairs: dict[str, Any] = {kind: list(more.items()) for kind, more in facts.items() if more}
    return _facts_model().model_construct(**pairs).model_dump(mode="json", exclude_unset=True)


def read(content: bytes) -> dict[str, dict[Any, Any]]:
    """Parses facts by kind from JSON."""
    return _by_key(_facts_model().model_validate_json(content))


def _serialize_row(private: Mapping[Any, Any], drawn: Mapping[Any, Any]) -> bytes:
    """Serializes a message's private values and draws, for any conversation."""
    return json.dumps(written({"private": private, "drawn": drawn})).encode()


def _merge(several: Iterable[Mapping[str, Any]]) -> dict[str, dict[Any, Any]]:
    merged: dict[str, dict[Any, Any]] = {}
    for facts in several:
        for kind in FACTS:
            if facts.get(kind):
                merged.setdefault(kind, {}).update(facts[kind])
    return merged


def _select_draws(facts: Mapping[str, Mapping[Any, Any]], *, again: bool) -> dict[Any, Any]:
    """Selects draws that are stored by message text, or all others."""
    drawn = facts.get("drawn", {}).items()
    return {key: row for key, row in drawn if key[0].startswith(AGAIN) is again}


def _by_key(facts: BaseModel) -> dict[str, dict[Any, Any]]:
    return {kind: dict(pairs) for kind, pairs in vars(facts).items() if pairs}


@cache
def _facts_model() -> type[BaseModel]:
    """Builds the model that parses facts by kind from pairs."""
    hints = get_type_hints(Facts).items()
    pairs = {kind: tuple.__class_getitem__(get_args(hint)) for kind, hint in hints}
    kinds: dict[str, Any] = {kind: (list[pair], ()) for kind, pair in pairs.items()}  # type: ignore[valid-type]
    return create_model("Pairs", __config__=ConfigDict(extra="forbid"), **kinds)


@cache
def _link_codec() -> TypeAdapter[Any]:
    written: Any = tuple.__class_getitem__((tuple[str, ...], dict[str, Any] | None, _facts_model()))
    return TypeAdapter(written)
