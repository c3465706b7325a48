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
from collections import ChainMap, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from itertools import takewhile
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model

from textveil.detect import may_hold
from textveil.session.forgetting import ForgottenValues, drop_forgotten, read_marks
from textveil.session.snapshot import FACT_KINDS, Facts, SessionDelta, Snapshot, Source
from textveil.session.spending import ALL_TABLES, Spend, sum_spends
from textveil.session.state import Session

if TYPE_CHECKING:
    from textveil.session.sql.ledger import Ledger, Reservation

REPEAT_PREFIX = "again "
"""Prefix of laws whose draws are stored by the message text's digest."""

MAX_PREFIXES = 200
"""Most parsed conversations in memory."""

MAX_PREFIX_BYTES = 64_000_000
"""Bytes of parsed conversations in memory, if nobody says otherwise."""

PARSED_BYTES = 4
"""Bytes that a parsed conversation takes, for each byte of its rows."""

USER_ROLES = ("user", "human", "system", "developer", "besides")
"""Roles of messages by a user, or by the program's author."""

MODEL_ROLES = ("assistant", "ai", "model", "reasoning")
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

    def get_source(self, i: int) -> Source:
        """Returns the writer of a text; by default, the role decides.

        An unknown role counts as a tool.
        """
        if self.sources:
            return self.sources[i]
        role = self.role.lower()
        if role in USER_ROLES:
            return "user"
        return "answer" if role in MODEL_ROLES or role.endswith("_call") else "tool"

    @property
    def canonical(self) -> bytes:
        """Canonical bytes, equal for equal messages."""
        forms = [list(self.forms)] if any(self.forms) else []
        return json.dumps([self.role, *self.texts, *forms]).encode()


class SignedText(NamedTuple):
    """A text that only its author may change. Secret.

    Args:
        signature: the author's signature.
        text: the text that is signed, or its restored form.
    """

    signature: str
    text: str

    def __repr__(self) -> str:
        return "SignedText()"


class LinkStore(Protocol):
    """Store of the links of one account."""

    @property
    def ledger(self) -> "Ledger | None":
        """Ledger that counts spending; None where nothing does."""

    def derive_name(self, *parts: bytes) -> bytes:
        """Derives a row name from parts, without revealing them."""

    def get(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """Returns the existing rows among some names, those of a chain in order."""

    def find_beside(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """Returns the rows whose first mark is one of some names; see `read_marks`."""

    def list_rows(self) -> dict[bytes, bytes]:
        """Returns all rows, in no order; it does not count as a use."""

    def rewrite(self, replacements: Mapping[bytes, tuple[bytes, bytes]]) -> None:
        """Replaces rows where they are still as they were; it does not count as a use.

        Args:
            replacements: for each name the content as it was listed, and the new one.
        """

    def get_child(self, name: bytes, parents: Mapping[bytes, bytes]) -> bytes | None:
        """Returns a row that follows others; None if they have changed.

        Args:
            name: name of the row.
            parents: all rows before it in its chain, in order, as they were read or stored.
        """

    def add(
        self,
        new_rows: Mapping[bytes, bytes],
        replacements: Mapping[bytes, bytes],
        reservations: Sequence["Reservation"] = (),
        parents: Mapping[bytes, bytes] | None = None,
    ) -> None:
        """Stores rows and confirms their reservations in one transaction.

        Args:
            new_rows: rows to add where the name is free.
            replacements: rows that replace an earlier content.
            reservations: charges of the releases in these rows.
            parents: rows of the chain that the new rows follow, in order. A store that has
                forgotten one of them, or has another, does not store the new rows.
        """

    def swap(self, name: bytes, old_content: bytes | None, content: bytes) -> bool:
        """Replaces a row if its content is as expected; False if not.

        One transaction; where it returns False, nothing is stored.

        Args:
            name: name of the row.
            old_content: expected content, as `get` returned it; None for no row.
            content: new content, which may be there already.
        """


class ChainSession(Session):
    """Session of one request, with earlier messages' assignments; collects the deltas.

    Args:
        owner: the account.
        snapshot: state after the earlier messages.
        ledger: counts spending; None where nothing does.
        charge_total: True to charge the sum over all kinds, too, to a separate account.

    Attributes:
        deltas: deltas of the message that is being released.
        reservations: charges for that message.
        spends: spending of all messages that this request released.
        charge_key: idempotency key of the charge, derived from the message and all before it, so
            that it is charged once. Draws for the parts of a message are charged part by part, in
            their order.
    """

    def __init__(
        self, owner: str, snapshot: Snapshot, ledger: "Ledger | None", *, charge_total: bool = False
    ) -> None:
        super().__init__(owner)
        self.adopt(snapshot)
        self._ledger, self._charge_total, self.counts_spending = ledger, charge_total, True
        self.deltas: list[SessionDelta] = []
        self.spends: list[Spend] = []
        self.reservations: list[Reservation] = []
        self.charge_key: str | None = None

    def _commit(self, delta: SessionDelta) -> bool:
        success = super()._commit(delta)
        if success and delta:
            self.deltas.append(delta)
        return success

    def learn(self, facts: Mapping[str, Mapping[Any, Any]]) -> None:
        """Adds facts to the session."""
        self.commit(build_delta(facts, self.snapshot().version))

    def reserve(self, spends: Sequence[Spend]) -> None:
        """See `Session`. Concurrent requests with the same message are charged once.

        Only one of their draws is sent.
        """
        if self._ledger is None:
            self.spends += spends
            return
        charges = [*spends, sum_spends(spends)] if self._charge_total and spends else spends
        # In the ledger's order; a counter in the key tells apart parts with equal spending.
        sorted_charges = sorted(charges, key=lambda spend: (spend.metric, spend.table))
        key = None if self.charge_key is None else f"{self.charge_key} {len(self.reservations)}"
        reservations = self._ledger.reserve_all(self.owner, sorted_charges, key=key)
        self.reservations += reservations
        new_charges = [
            spend
            for spend, reservation in zip(sorted_charges, reservations, strict=True)
            if not reservation.is_repeat
        ]
        self.spends += [spend for spend in new_charges if spend.table != ALL_TABLES]


@dataclass(frozen=True, kw_only=True)
class Link:
    """Stored release of a message. Secret.

    Attributes:
        texts: its texts as they were sent.
        statement: the statement about the release; None for an answer.
        facts: additions to the session, by kind.
        marks: of a context or an answer, whose names later requests cannot derive: the names of
            the message it stands behind, and of the row that repeats it; so `forget` finds them.
            A context that is sent again has the digest of the rows before it, too.
    """

    texts: tuple[str, ...] = field(repr=False)
    statement: dict[str, Any] | None
    facts: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict, repr=False)
    marks: tuple[bytes, ...] = ()

    def dump(self) -> bytes:
        """Serializes the link."""
        content = json.dumps([self.texts, self.statement, dump_facts(self.facts)])
        return "".join([*(f"{mark.hex()} " for mark in self.marks), content]).encode()

    @classmethod
    def read(cls, content: bytes) -> "Link":
        """Parses a link that `dump` serialized."""
        codec, marks = _build_link_codec(), read_marks(content)
        texts, statement, facts = codec.validate_json(content[content.index(b"[") :])
        return cls(texts=texts, statement=statement, facts=_build_maps(facts), marks=marks)


class PrefixCache:
    """Cache of parsed conversations, so that a request reads only new rows.

    Entries match by the rows that they were read from, so they never disagree with them.

    Args:
        max_entries: number of entries; those least recently used go first.
        max_bytes: bytes of all entries, about.
    """

    def __init__(self, max_entries: int = MAX_PREFIXES, max_bytes: int = MAX_PREFIX_BYTES) -> None:
        self._max_entries, self._max_bytes, self.used_bytes = max_entries, max_bytes, 0
        self._prefixes, self._lock = OrderedDict[bytes, _Prefix](), Lock()

    def find(self, names: Sequence[bytes], rows: Sequence[bytes]) -> "_Prefix":
        """Finds the longest cached prefix of a conversation.

        Args:
            names: names of its links.
            rows: the rows it is read from: one for each link, after those that precede them.
        """
        with self._lock:
            for i in range(len(names), 0, -1):
                prefix = self._prefixes.get(names[i - 1])
                if prefix is not None and prefix.rows == rows[: len(prefix.rows)]:
                    self._prefixes.move_to_end(names[i - 1])
                    return prefix
        return _Prefix((), (), Snapshot())

    def clear(self) -> None:
        """Forgets all prefixes."""
        with self._lock:
            self._prefixes.clear()
            self.used_bytes = 0

    def keep(self, name: bytes, prefix: "_Prefix") -> None:
        """Caches a conversation prefix by the name of its last link."""
        with self._lock:
            former = self._prefixes.pop(name, None)
            self.used_bytes += prefix.size - (0 if former is None else former.size)
            self._prefixes[name] = prefix
            while len(self._prefixes) > self._max_entries or self.used_bytes > self._max_bytes:
                self.used_bytes -= self._prefixes.popitem(last=False)[1].size


class _Prefix(NamedTuple):
    """A conversation prefix: its rows, links, and session state."""

    rows: Sequence[bytes]
    links: "Sequence[Link]"
    snapshot: Snapshot

    def __repr__(self) -> str:
        return f"_Prefix({len(self.links)} links)"

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        return PARSED_BYTES * sum(map(len, self.rows))


class MessageChain:
    """Messages of one request, released before or new.

    Args:
        store: store of the account's links.
        account: the account, which spending is charged to.
        config_digest: digest of all that releases depend on except messages: another basis, another
            release.
        messages: all messages, in order.
        context: context that is sent with the last message, and is no part of the conversation.
        upstream_name: the upstream's name of the conversation that it stores itself, and that these
            messages continue; None where it stores nothing.
        cache: cache of parsed conversations; None to parse everything.
        charge_total: True to charge the sum, too, to an account of the table `ALL`, which can be
            limited.

    Attributes:
        can_continue: True if there is no `upstream_name`, or its state is known; else nothing must
            be sent.
        session: state with the assignments of the messages; restores the answer.
        store: releases of the messages, in order, and of `context`; before `release` only those
            that are known.
    """

    def __init__(
        self,
        store: LinkStore,
        account: str,
        config_digest: str,
        messages: Sequence[Utterance],
        context: Sequence[Utterance] = (),
        *,
        upstream_name: str | None = None,
        cache: PrefixCache | None = None,
        charge_total: bool = False,
    ) -> None:
        self._store, self._account, self._config_digest = store, account, config_digest
        self._messages, self._cache = [*messages, *context], cache
        state_names = [] if upstream_name is None else [self._derive_state_name(upstream_name)]
        self._state_rows = store.get(state_names)
        state_rows = [self._state_rows[name] for name in state_names if name in self._state_rows]
        # The upstream's state grows, and its placeholders with it: the names depend on its content.
        names = [
            store.derive_name(
                b"chain", account.encode(), config_digest.encode(), *state_names, *state_rows
            )
        ]
        for message in messages:
            names.append(store.derive_name(b"link", names[-1], message.canonical))
        # Answers follow the last message: the context is not sent again.
        self._last_name, self._message_count = names[-1], len(messages)
        self._context_names = [
            store.derive_name(b"behind", names[min(1, len(messages))], message.canonical)
            for message in context
        ]
        for message in context:
            names.append(store.derive_name(b"besides", names[-1], message.canonical))
        self._names = names[1:]
        contents = store.get(self._names)
        self.can_continue = len(state_rows) == len(state_names)
        self.links: list[Link] = []
        # The row of each link; None for a link that has none in this chain.
        self._rows: list[bytes | None] = []
        self._digests: dict[int, bytes] = {}
        state = Snapshot()
        if self.can_continue:
            rows = state_rows + [
                # Up to the first unknown link: the state behind it would lack that message.
                contents[name]
                for name in takewhile(contents.__contains__, self._names)
            ]
            state = self._read(rows, len(state_names), cache)
            self._rows += rows[len(state_names) :]
        self.session = ChainSession(account, state, store.ledger, charge_total=charge_total)
        # For each link: was something drawn now, and is it sent again unchanged?
        self._outcomes = [(False, True)] * len(self.links)

    def _read(self, rows: Sequence[bytes], state_count: int, cache: PrefixCache | None) -> Snapshot:
        """Reads the known links and returns the session state after them.

        Args:
            rows: their rows; first the upstream's state, if there is one.
            state_count: number of rows at the beginning that are no links.
            cache: cache of parsed conversations.
        """
        conversation = rows[: state_count + self._message_count]
        cache = PrefixCache(0) if cache is None else cache
        prefix = cache.find(self._names[: len(conversation) - state_count], conversation)
        links, state = [*prefix.links], prefix.snapshot
        for row in rows[len(prefix.rows) :]:
            link = Link.read(row)
            links.append(link)
            state = state.apply(build_delta(link.facts, state.version))
            if len(links) == len(conversation) > state_count:
                _ = state.sought  # computed now; later snapshots extend copies of it
                cache.keep(
                    self._names[len(conversation) - state_count - 1],
                    _Prefix(conversation, tuple(links), state),
                )
        self.links = links[state_count:]
        return state

    def release(
        self, release: "Callable[[Utterance, Session], tuple[Sequence[str], dict[str, Any]]]"
    ) -> None:
        """Releases the new messages in order; each is stored before the next.

        Args:
            release: returns the texts of a message and the statement about them, in a session.
        """
        assert self.can_continue, "or placeholders that are remembered would be given to others"
        first = len(self.links)
        new_messages = list(zip(self._messages[first:], self._names[first:], strict=True))
        config_digest = self._config_digest.encode()
        repeat_names = [
            self._store.derive_name(b"message", config_digest, message.canonical)
            for message, _ in new_messages
        ]
        rows = self._store.get([*repeat_names, *self._context_names])
        for (message, name), repeat_name in zip(new_messages, repeat_names, strict=True):
            if not self._repeat_context(message, rows):
                self._release_message(release, message, name, repeat_name, rows.get(repeat_name))

    def forget(self, names: Iterable[str]) -> int:
        """Forgets the originals of some placeholders, in this conversation and from now on.

        The rows of its messages are written anew, without them, and so are those behind them:
        earlier contexts, and answers in each form in which a client may send them back.
        Conversations that begin alike share those. Answers keep the placeholders as they are. Where
        such a value occurs in a new message, it is judged anew and gets another placeholder. Call
        it after `release`.

        Args:
            names: see `Session.forget`.

        Returns:
            How many values were forgotten.

        Raises:
            InputError: the conversation has no such placeholder; nothing is forgotten.
        """
        session, names = self.session, list(names)
        forgotten = ForgottenValues(session.snapshot().placeholders.values(), names)
        replacements: dict[bytes, bytes] = {}
        for i, link in enumerate(self.links):
            facts = forgotten.filter_facts(link.facts)
            if facts == link.facts:
                continue
            self.links[i] = replace(link, facts=facts)
            if self._rows[i] is not None:
                self._rows[i] = replacements[self._names[i]] = self.links[i].dump()
        beside = self._store.find_beside(self._names[: self._message_count])
        replacements = self._filter_beside(beside, forgotten, names) | replacements
        self._digests.clear()
        if self._cache is not None:
            self._cache.clear()
        self._store.add({}, replacements)
        # So that the first message counts as the last used, and each row before those behind it.
        self._store.get([*self._names, *reversed(beside)])
        session.adopt(drop_forgotten(session.snapshot(), forgotten))
        return len(forgotten.names)

    def _filter_beside(
        self, beside: Mapping[bytes, bytes], forgotten: ForgottenValues, names: Sequence[str]
    ) -> dict[bytes, bytes]:
        """Returns other rows that held a value: contexts, other forms of answers, and repeats.

        Args:
            beside: contexts and answers behind any of the messages.
            forgotten: the values.
            names: what the client named. A context that was sent at another time may have other
                spellings of a value, or more of a type.
        """
        known = set(self.session.snapshot().placeholders.values())
        digest = self._config_digest.encode()
        repeats = {
            self._store.derive_name(b"message", digest, message.canonical): forgotten
            for message in self._messages
        }
        filtered: dict[bytes, bytes] = {}
        for name, row in beside.items():
            link = Link.read(row)
            more = {*link.facts.get("placeholders", {}).values()} - known
            values = ForgottenValues(known | more, names) if more else forgotten
            facts = values.filter_facts(link.facts)
            if facts != link.facts:
                filtered[name] = replace(link, facts=facts).dump()
            repeats[link.marks[1]] = values
        return filtered | self._filter_repeats(repeats)

    def _filter_repeats(self, repeats: Mapping[bytes, ForgottenValues]) -> dict[bytes, bytes]:
        """Returns the rows that repeat messages, without the values to forget in each."""
        filtered: dict[bytes, bytes] = {}
        for name, row in self._store.get(list(repeats)).items():
            facts = repeats[name].filter_facts(parse_facts(row))
            filtered[name] = dump_row(facts.get("private", {}), facts.get("drawn", {}))
        return filtered

    def _repeat_context(self, message: Utterance, rows: Mapping[bytes, bytes]) -> bool:
        """Sends a context as it was sent in this conversation before; False if that is unsafe.

        Providers recognize the beginning of a conversation by its bytes, and agents send their
        tools with each request. It is safe if it follows the same rows, the conversation still
        knows all that the release assigned, and no value was learned since that may stand in it.
        """
        number = len(self.links) - self._message_count
        if number < 0 or self._context_names[number] not in rows:
            return False
        link = Link.read(rows[self._context_names[number]])
        last_name, _, digest = link.marks
        names = self._names[: self._message_count]
        since = names.index(last_name) + 1 if last_name in names else len(names)
        snapshot = self.session.snapshot()
        private = link.facts.get("private", {})
        learned = [
            value
            for later in self.links[since:]
            for key, value in later.facts.get("private", {}).items()
            if key not in private
        ]
        if (
            last_name not in names
            or self._digest_rows(since) != digest
            or not _knows(snapshot, link.facts)
            or any(may_hold(text, learned) for text in message.texts)
        ):
            return False
        self._outcomes.append((False, True))
        self.links.append(replace(link, facts={}))
        self._rows.append(None)
        return True

    def _release_message(
        self,
        release: "Callable[[Utterance, Session], tuple[Sequence[str], dict[str, Any]]]",
        message: Utterance,
        name: bytes,
        repeat_name: bytes,
        row: bytes | None,
    ) -> None:
        """Releases one message.

        Args:
            release: returns its texts and statement.
            message: the message.
            name: name of its link.
            repeat_name: name of the row for this message in any conversation.
            row: content of that row; None if there is none.
        """
        start_snapshot, session = self.session.snapshot(), self.session
        session.deltas, session.reservations = [], []
        session.repeats, session.charge_key = message.role, name.hex()
        repeat_facts = {} if row is None else parse_facts(row)
        session.learn(repeat_facts)
        texts, statement = release(message, session)
        facts = _merge_facts([repeat_facts, *(vars(delta) for delta in session.deltas)])
        text_draws = _select_draws(facts, text_keyed=True)
        facts["drawn"] = _select_draws(facts, text_keyed=False)
        number = len(self.links) - self._message_count
        marks = (self._last_name, repeat_name) if number >= 0 else ()
        new_link = Link(texts=tuple(texts), statement=statement, facts=facts, marks=marks)
        private_values, old_draws = self._find_private(message.texts), repeat_facts.get("drawn", {})
        link_row, replacements = (
            {name: new_link.dump()},
            {repeat_name: dump_row(private_values, old_draws)},
        )
        new_rows, replacements = (
            # A first row for any conversation gives way to that of a concurrent request, too.
            (link_row | replacements, {}) if row is None else (link_row, replacements)
        )
        if number >= 0:
            known = _merge_facts(
                [*(link.facts for link in self.links[self._message_count :]), new_link.facts]
            )
            replacements = replacements | {
                self._context_names[number]: replace(
                    new_link,
                    facts=known,
                    marks=(*new_link.marks, self._digest_rows(self._message_count)),
                ).dump()
            }
        parents = self._get_parents(len(self.links))
        self._store.add(new_rows, replacements, session.reservations, parents)
        stored_row = self._store.get_child(name, parents) or new_link.dump()
        stored_link = Link.read(stored_row)
        self._rows.append(stored_row)
        # A concurrent request released the same message first: use its release.
        is_late = stored_link.texts != new_link.texts
        if is_late:
            new_link = stored_link
            # What this process assigned was never sent, so it must not stay in the session.
            session.adopt(start_snapshot.apply(build_delta(new_link.facts, start_snapshot.version)))
        elif text_draws != old_draws:  # only now: discarded draws must never be released
            self._store.add({}, {repeat_name: dump_row(private_values, text_draws)})
        has_draws = statement.get("drawn", 0) > 0 and not is_late
        self._outcomes.append((has_draws, not has_draws and (row is not None or is_late)))
        self.links.append(new_link)

    def _digest_rows(self, count: int) -> bytes:
        """Hashes the rows of the first messages, with which their placeholders are given."""
        if count not in self._digests:
            rows = (b"" if row is None else row for row in self._rows[:count])
            self._digests[count] = sha256(b"\0".join(rows)).digest()
        return self._digests[count]

    def _get_parents(self, count: int) -> dict[bytes, bytes]:
        """Returns the rows of the first links, by name, in order."""
        pairs = zip(self._names[:count], self._rows, strict=False)
        return {name: row for name, row in pairs if row is not None}

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of messages: new, drawn, and repeated unchanged.

        All context counts as one message. A repeated message was released before, here or in
        another conversation, and nothing was drawn in it now.
        """
        outcomes = self._outcomes[: self._message_count]
        if context := self._outcomes[self._message_count :]:
            drawn, repeated = zip(*context, strict=True)
            outcomes.append((any(drawn), all(repeated)))
        drawn_count, repeat_count = (
            (sum(column) for column in zip(*outcomes, strict=True)) if outcomes else (0, 0)
        )
        return {"new": len(outcomes) - repeat_count, "drawn": drawn_count, "repeated": repeat_count}

    @staticmethod
    def claim_idempotency_key(store: LinkStore, key: str, request: bytes) -> bool:
        """Says whether a request may use an idempotency key, and stores it.

        True if the key is new, or was stored for this request before.

        Args:
            store: those of the account.
            key: the client's idempotency key.
            request: all that the outgoing request depends on.
        """
        body = store.derive_name(b"body", request).hex().encode()
        name = store.derive_name(b"request", key.encode())
        # `add` keeps an earlier row, so what is there afterwards tells who came first.
        store.add({name: body}, {})
        # A database pads contents with spaces.
        return store.get([name]).get(name, body).strip() == body

    def save_state(self, name: str) -> None:
        """Stores the state under the upstream's name, to continue `upstream_name` it.

        Args:
            name: the upstream's name of its conversation.
        """
        self._store.add({}, {self._derive_state_name(name): self._dump_state()})

    def swap_state(self, name: str) -> bool:
        """Stores the state before sending; False if another request came between.

        Then nothing is stored, and nothing may be sent: a placeholder could stand for two values.

        Args:
            name: the name that the chain continues `upstream_name`, or a new one.
        """
        row = self._derive_state_name(name)
        return self._store.swap(row, self._state_rows.get(row), self._dump_state())

    def _dump_state(self) -> bytes:
        snapshot = self.session.snapshot()
        facts = {kind: dict(getattr(snapshot, kind)) for kind in FACT_KINDS}
        facts["drawn"] = _select_draws(facts, text_keyed=False)
        return Link(texts=(), statement=None, facts=facts).dump()

    def _derive_state_name(self, name: str) -> bytes:
        return self._store.derive_name(b"remembered", self._account.encode(), name.encode())

    def lookup_signed(self, signed_texts: Sequence[SignedText]) -> list[str | None]:
        """Returns signed texts as the model sent them, in any conversation.

        Args:
            signed_texts: the texts as they were restored.

        Returns:
            None for a text that is unknown, or that would restore differently in this conversation.
        """
        names = [self._derive_signed_name(text) for text in signed_texts]
        rows = self._store.get(names) if names else {}
        originals = [json.loads(rows[name]) if name in rows else None for name in names]
        return [
            original
            if original is not None and self.session.restore(original) == text.text
            else None
            for original, text in zip(originals, signed_texts, strict=True)
        ]

    def _derive_signed_name(self, signed_text: SignedText) -> bytes:
        return self._store.derive_name(
            b"signed",
            self._account.encode(),
            signed_text.signature.encode(),
            signed_text.text.encode(),
        )

    def save_answers(
        self,
        answers: Iterable[tuple[Utterance, Utterance]],
        signed_pairs: Iterable[tuple[SignedText, SignedText]] = (),
        *,
        consecutive: bool = False,
    ) -> None:
        """Stores answers, so that they are sent on unchanged when they return.

        Args:
            answers: pairs of the answer as the model wrote it, and as it was restored.
            signed_pairs: the same pairs for the signed texts in them.
            consecutive: True if the answers follow one another; else the client continues with one
                of them.
        """
        new_rows: dict[bytes, bytes] = {}
        replacements: dict[bytes, bytes] = {}
        # The context messages are not sent again, so the answer's link keeps their facts.
        facts = _merge_facts([link.facts for link in self.links[self._message_count :]])
        last_name = self._last_name
        for original, message in answers:
            name = self._store.derive_name(b"link", last_name, message.canonical)
            repeat_name = self._store.derive_name(
                b"message", self._config_digest.encode(), message.canonical
            )
            marks = self._last_name, repeat_name
            new_rows[name] = Link(
                texts=original.texts, statement=None, facts=facts, marks=marks
            ).dump()
            last_name = name if consecutive else last_name
            replacements[repeat_name] = dump_row(self._find_private(message.texts), {})
        for sent_text, restored_text in signed_pairs:
            new_rows[self._derive_signed_name(restored_text)] = json.dumps(sent_text.text).encode()
        if new_rows:
            parents = self._get_parents(self._message_count)
            self._store.add(new_rows, replacements, parents=parents)

    def _find_private(self, texts: Sequence[str]) -> dict[Any, Any]:
        """Returns the known private values that occur in these texts."""
        sought = self.session.snapshot().sought
        return {value.key: value for text in texts for value in sought.find_values(text)}


def hash_text(repeats: str, text: str) -> str:
    """Hashes a text with its repeat marker, to look up its draws.

    See `Session.repeats`. The digest is secret.
    """
    return sha256(f"{repeats}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()


def build_delta(facts: Mapping[str, Mapping[Any, Any]], since: int) -> SessionDelta:
    """Builds the delta that adds facts by kind."""
    return SessionDelta(
        since=since, **{kind: ChainMap(dict(entries)) for kind, entries in facts.items()}
    )


def dump_facts(facts: Mapping[str, Mapping[Any, Any]]) -> dict[str, Any]:
    """Converts facts by kind to plain data."""
    pairs: dict[str, Any] = {
        kind: list(entries.items()) for kind, entries in facts.items() if entries
    }
    return _build_facts_model().model_construct(**pairs).model_dump(mode="json", exclude_unset=True)


def parse_facts(content: bytes) -> dict[str, dict[Any, Any]]:
    """Parses facts by kind from JSON."""
    return _build_maps(_build_facts_model().model_validate_json(content))


def dump_row(private: Mapping[Any, Any], draws: Mapping[Any, Any]) -> bytes:
    """Serializes a message's private values and draws, for any conversation."""
    return json.dumps(dump_facts({"private": private, "drawn": draws})).encode()


def _knows(snapshot: Snapshot, facts: Mapping[str, Mapping[Any, Any]]) -> bool:
    """True if a state has the placeholders, replacements and taken names of some facts."""
    return all(
        key in getattr(snapshot, kind) and getattr(snapshot, kind)[key] == value
        for kind in ("placeholders", "replaced", "owners", "spelled")
        for key, value in facts.get(kind, {}).items()
    )


def _merge_facts(fact_maps: Iterable[Mapping[str, Any]]) -> dict[str, dict[Any, Any]]:
    result: dict[str, dict[Any, Any]] = {}
    for facts in fact_maps:
        for kind in FACT_KINDS:
            if facts.get(kind):
                result.setdefault(kind, {}).update(facts[kind])
    return result


def _select_draws(facts: Mapping[str, Mapping[Any, Any]], *, text_keyed: bool) -> dict[Any, Any]:
    """Selects draws that are stored by message text, or all others."""
    draws = facts.get("drawn", {}).items()
    return {key: row for key, row in draws if key[0].startswith(REPEAT_PREFIX) is text_keyed}


def _build_maps(facts: BaseModel) -> dict[str, dict[Any, Any]]:
    return {kind: dict(pairs) for kind, pairs in vars(facts).items() if pairs}


@cache
def _build_facts_model() -> type[BaseModel]:
    """Builds the model that parses facts by kind from pairs."""
    hints = get_type_hints(Facts).items()
    pairs = {kind: tuple.__class_getitem__(get_args(hint)) for kind, hint in hints}
    kinds: dict[str, Any] = {kind: (list[pair], ()) for kind, pair in pairs.items()}  # type: ignore[valid-type]
    return create_model("Pairs", __config__=ConfigDict(extra="forbid"), **kinds)


@cache
def _build_link_codec() -> TypeAdapter[Any]:
    layout: Any = tuple.__class_getitem__(
        (tuple[str, ...], dict[str, Any] | None, _build_facts_model())
    )
    return TypeAdapter(layout)
