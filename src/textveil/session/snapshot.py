"""State of a session, and the delta that one release adds.

In: values that became placeholders, names that were replaced, words that passed, rows that were
drawn. Out: the same placeholder for the same value, the same row for the same word; a
`SessionDelta`.
Not here: how threads take turns (`state`), and how an answer is searched (`restore`).
"""

import math
import re
from collections import ChainMap, Counter, deque
from collections.abc import Collection, Container, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

from textveil.detect import (
    PrivateValue,
    Span,
    ValueIndex,
    find_core_atoms,
    find_name_parts,
    normalize_value,
)
from textveil.errors import InputError
from textveil.guarantee import Loss
from textveil.session.escapes import fold
from textveil.session.link_targets import Allowlist, find_internal_hosts, is_internal
from textveil.session.placeholders import (
    MIN_KEYED_NUMBER,
    Original,
    PlaceholderToken,
    find_placeholder_names,
    format_name,
)
from textveil.session.quoting import (
    CONTEXT_CHARACTERS,
    QuoteScanner,
    find_markup_kind,
    is_place_sensitive,
    is_plain,
)
from textveil.session.restore import (
    KeyFinder,
    Node,
    RestoreKey,
    Restorer,
    add_numbered,
    build_trie,
    find_targets,
)
from textveil.session.spending import convert_to_micros
from textveil.text import RELEASED, is_public

_ValueKey = tuple[str, str]
"""A type, and a value normalized for comparison."""

Source = Literal["user", "tool", "answer"]
"""Writer of a text: user or system, tool or unknown, or model.

Only users name hosts that are trusted, and no answer is a reason to restore a value.
"""

AMBIGUOUS = 0
"""Number of a name part that fits more than one name."""


class Replacement(NamedTuple):
    """A released name and its original, as first written. Secret."""

    shown: str
    original: str

    def __repr__(self) -> str:
        return "Replacement()"

    @property
    def is_value(self) -> bool:
        """True if it is no name: it has more digits than letters, or is an address."""
        digits = sum(map(str.isdigit, self.shown))
        return "@" in self.shown or digits > sum(map(str.isalpha, self.shown))

    def build_key(self, original: str | None) -> RestoreKey:
        """Builds the key to look for in an answer.

        The words around a value, unlike those around a name, do not make it another one.
        """
        return RestoreKey(self.shown, original, "value" if self.is_value else "name")


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """State of a session, by normalized keys (`fold`). Secret: it holds originals.

    Once committed, facts do not change any more.

    Attributes:
        placeholders: by value, to the character.
        values: the number and part of each value, by (type, normalized value); see `detect.alike`.
        parts: the number and part of every form that may stand for a name, with the same keys.
        forms: number of spellings, by (type, number, part).
        counts: the last number of each type, or the count of values where numbers follow from a
            key.
        private: values that were found to be private, by (type, normalized value).
        targets: addresses of protected texts with their originals, where something was hidden in
            them; those of earlier versions with placeholders.
        hosts: internal hosts that a user or a system message named.
        stood: the kinds of places (`quoting`) where a value occurred, the first one first, by
            value, to the character; only for values whose spelling depends on the place.
        replaced: by (shown, original).
        owners: the one original of each released name that must be restored.
        said: words that were released unchanged, as keys: in an answer they are not replaced.
        spelled: names of placeholders that occurred in a text before protection, as keys; no value
            gets one of those.
        losses: losses of the values of each type, by (type, kind of replacement).
        drawn: table rows of words that are released alike, and the shifts of figures, by (law,
            word, group).
    """

    placeholders: ChainMap[Original, PlaceholderToken] = field(default_factory=ChainMap, repr=False)
    values: ChainMap[tuple[str, str], tuple[int, str]] = field(default_factory=ChainMap, repr=False)
    parts: ChainMap[tuple[str, str], tuple[int, str]] = field(default_factory=ChainMap, repr=False)
    forms: ChainMap[tuple[str, int, str], int] = field(default_factory=ChainMap)
    counts: ChainMap[str, int] = field(default_factory=ChainMap)
    private: ChainMap[tuple[str, str], PrivateValue] = field(default_factory=ChainMap, repr=False)
    targets: ChainMap[str, None] = field(default_factory=ChainMap, repr=False)
    stood: ChainMap[str, tuple[str, ...]] = field(default_factory=ChainMap, repr=False)
    hosts: ChainMap[str, None] = field(default_factory=ChainMap, repr=False)
    replaced: ChainMap[tuple[str, str], Replacement] = field(default_factory=ChainMap, repr=False)
    owners: ChainMap[str, str] = field(default_factory=ChainMap, repr=False)
    said: ChainMap[str, None] = field(default_factory=ChainMap, repr=False)
    spelled: ChainMap[str, None] = field(default_factory=ChainMap)
    losses: ChainMap[tuple[str, str], Loss] = field(default_factory=ChainMap)
    drawn: ChainMap[tuple[str, str, str], int] = field(default_factory=ChainMap, repr=False)


FACT_KINDS = tuple(each.name for each in fields(Facts))


@dataclass(frozen=True, kw_only=True, eq=False)
class SessionDelta(Facts):
    """Facts that one release adds to a session; False if empty.

    Attributes:
        since: version of the snapshot that the release was built from.
    """

    since: int

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in FACT_KINDS)


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot(Facts):
    """State of a session at one moment.

    Attributes:
        version: number of deltas before it.
    """

    version: int = 0

    def apply(self, delta: SessionDelta) -> "Snapshot":
        """Returns the next snapshot, with the facts of a delta."""
        new_facts = {name: getattr(delta, name) for name in FACT_KINDS}
        merged = {
            name: _merge_maps(getattr(self, name), new) for name, new in new_facts.items() if new
        }
        following = replace(self, version=self.version + 1, **merged)
        if "sought" in vars(self):  # copied, or each release would rebuild it from all values
            vars(following)["sought"] = sought = self.sought.copy()
            for value in delta.private.values():
                sought.add(value)
        return following

    def replace_version(self, version: int) -> "Snapshot":
        """Returns the same state under another version."""
        return replace(self, version=version)

    @cached_property
    def trie(self) -> Node:
        """Trie of the keys to look for in an answer.

        Placeholders are loaded when an answer contains their numbers.
        """
        load_trie = cache(
            lambda name: build_trie(
                self.map_originals(self.find_placeholders([name])), (), frozenset()
            )
        )
        return add_numbered(build_trie({}, self.list_keys(), self.said), self.counts, load_trie)

    def list_keys(self) -> list[RestoreKey]:
        """Lists the names that replaced private names, as keys."""
        originals: dict[str, list[Replacement]] = {}
        for (form, _), pair in self.replaced.items():
            originals.setdefault(form, []).append(pair)
        keys = []
        for form, (first, *duplicates) in originals.items():
            is_certain = not duplicates and not _is_plain_name(form, self.said)
            keys.append(first.build_key(first.original if is_certain else None))
        return [*keys, *_list_respelled(keys)]

    @cached_property
    def allowlist(self) -> Allowlist:
        """Targets and hosts into which originals may be joined.

        They occurred in protected texts, or a user named them.
        """
        targets = set(self.targets)
        for target in self.targets:
            if find_placeholder_names(target):
                restorer = Restorer(self.trie, where="everywhere")
                targets.add(restorer.feed(target) + restorer.close())
        return Allowlist(targets=sorted(targets), hosts=frozenset(self.hosts))

    @cached_property
    def sought(self) -> ValueIndex:
        """Private values, as a matcher for further texts."""
        return ValueIndex(self.private.values())

    def find_own_placeholders(self, text: str) -> list[tuple[int, int]]:
        """Finds placeholders of this session that a text already contains.

        An answer would be restored wrongly there.

        Returns:
            Start and end offsets.
        """
        placeholders = self.find_placeholders(find_placeholder_names(text))
        return (
            KeyFinder(build_trie(self.map_originals(placeholders), (), frozenset())).find(text)
            if placeholders
            else []
        )

    def build_matcher(self, texts: Sequence[str], spans: Sequence[Span]) -> ValueIndex:
        """Returns a matcher of private values that may occur in some texts.

        More values can be added to it.

        Args:
            texts: any number of texts.
            spans: findings of the detectors in them.
        """
        return self.sought.copy()

    def find_placeholders(self, names: Iterable[str]) -> list[PlaceholderToken]:
        """Returns the placeholders that begin with one of some names: `PERSON_1`."""
        return [
            placeholder
            for name in names
            for placeholder in self._placeholders_by_name.get(name, ())
        ]

    def count_hidden(self, text: str) -> Counter[str]:
        """Counts the values of each type that have placeholders, or were invented, in a release."""
        names = {match[1] for match in RELEASED.finditer(text)}
        invented = {
            original
            for (_, original), pair in self.replaced.items()
            if pair.is_value and pair.shown in text
        }
        return Counter(
            placeholder.type
            for placeholder in self.placeholders.values()
            if placeholder.inner in names or (invented and fold(placeholder.value) in invented)
        )

    def map_originals(self, placeholders: Collection[PlaceholderToken]) -> dict[str, str]:
        """Maps placeholders to values, with parts of names.

        An answer may use the placeholder of a part on its initiative.
        """
        values = {placeholder.text: placeholder.value for placeholder in placeholders}
        values |= {
            f"<{placeholder.inner}>": placeholder.value
            for placeholder in placeholders
            if placeholder.quoted
        }
        for placeholder in placeholders:
            for text, word in self._find_parts(placeholder):
                values.setdefault(text, word)
        return values

    def _find_parts(self, placeholder: PlaceholderToken) -> Iterable[tuple[str, str]]:
        """Yields the placeholders of a name's parts, given that of the whole."""
        for word in () if placeholder.part or placeholder.form > 1 else placeholder.value.split():
            key = placeholder.type, normalize_value(placeholder.type, word)
            number, part = self.parts.get(key, (AMBIGUOUS, ""))
            part_placeholder = placeholder._replace(part=part, quoted=False)
            if number == placeholder.number and part and part_placeholder.inner not in self.spelled:
                yield part_placeholder.text, word

    @cached_property
    def _placeholders_by_name(self) -> dict[str, list[PlaceholderToken]]:
        names: dict[str, list[PlaceholderToken]] = {}
        for placeholder in self.placeholders.values():
            names.setdefault(placeholder.name, []).append(placeholder)
        return names


class Changes:
    """Facts that one release adds to a snapshot. For one thread.

    Args:
        snapshot: the snapshot. It stays unchanged.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._since, self._find_placeholders = snapshot.version, snapshot.find_placeholders
        # New facts are written to the children.
        self._facts = Facts(**{name: getattr(snapshot, name).new_child() for name in FACT_KINDS})

    def assign_placeholder(self, type_: str, value: str) -> str:
        """Returns the placeholder of a value; see `assign_placeholders`."""
        return self.assign_placeholders([Original(type_, value)])[0]

    def assign_placeholders(self, values: Sequence[Original]) -> list[str]:
        """Returns the placeholders of one text's values, in order of appearance.

        A part of a name gets the number of the whole, if only one name has it, and the part's kind;
        another spelling of a value gets a letter. So each placeholder stands for exactly one
        string.

        Args:
            values: the values, in order.
        """
        facts = self._facts
        keys = [(type_, normalize_value(type_, value)) for type_, value, _ in values]
        prefetch(
            facts, placeholders=values, values=keys, parts=keys, counts=[type_ for type_, _ in keys]
        )
        for type_ in {type_ for type_, _ in keys}:
            first = facts.counts.get(type_, 0) + 1
            prefetch(
                facts,
                spelled=[format_name(type_, number) for number in range(first, first + len(keys))],
            )
        self._divide_values(values)
        placeholders = [
            PlaceholderToken(key[0], facts.values[key][0], "", facts.values[key][1]) for key in keys
        ]
        forms = [
            (placeholder.type, placeholder.number, placeholder.part) for placeholder in placeholders
        ]
        prefetch(facts, forms=forms, spelled=[placeholder.inner for placeholder in placeholders])
        return [self._assign(value).text for value in values]

    def _divide_values(self, values: Iterable[Original]) -> None:
        """Numbers new values and assigns parts to whole names.

        The longest values come first, so that parts find their whole.
        """
        facts = self._facts
        new: dict[_ValueKey, str] = {}
        for type_, value, _ in values:
            if (key := (type_, normalize_value(type_, value))) not in facts.values:
                new.setdefault(key, value)
        owners: dict[_ValueKey, tuple[int | _ValueKey, str]] = {}
        new_parts: dict[_ValueKey, tuple[int | _ValueKey, str]] = {}
        for key in sorted(new, key=lambda key: -len(find_core_atoms(key[0], new[key]))):
            candidates = {facts.parts.get(key), new_parts.get(key)} - {None}
            owners[key] = (candidates.pop() if len(candidates) == 1 else None) or (AMBIGUOUS, "")
            if owners[key][0] == AMBIGUOUS:
                owners[key] = key, ""
                _divide_name(new_parts, key[0], new[key], key)
        numbers: dict[_ValueKey, int] = {}
        for key in new:
            owner, part = owners[key]
            if not isinstance(owner, int):
                if owner not in numbers:
                    numbers[owner] = self._take_number(owner[0])
                    _divide_name(facts.parts, owner[0], new[owner], numbers[owner])
                owner = numbers[owner]
            facts.values[key] = owner, part

    def _take_number(self, type_: str) -> int:
        number = self._facts.counts.get(type_, 0) + 1
        while format_name(type_, number) in self._facts.spelled:
            number += 1
        self._facts.counts[type_] = number
        return number

    def _assign(self, value: Original) -> PlaceholderToken:
        facts = self._facts
        if value not in facts.placeholders:
            type_, text, quoted = value
            number, part = facts.values[type_, normalize_value(type_, text)]
            placeholder = PlaceholderToken(
                type_, number, text, part, facts.forms.get((type_, number, part), 0) + 1, quoted
            )
            while placeholder.inner in facts.spelled:
                placeholder = placeholder._replace(form=placeholder.form + 1)
            facts.forms[type_, number, part] = placeholder.form
            facts.placeholders[value] = placeholder
        return facts.placeholders[value]

    def add_placeholders(self, placeholders: Sequence[PlaceholderToken]) -> None:
        """Adds placeholders that were assigned elsewhere; known ones change nothing.

        Raises:
            InputError: a placeholder already stands for another value, or its value already has
                another placeholder.
        """
        facts = self._facts
        _prefetch_placeholders(facts, placeholders)
        new = [
            placeholder
            for placeholder in placeholders
            if placeholder.original not in facts.placeholders
        ]
        originals = {
            other.inner: other.original
            for other in self._find_placeholders({placeholder.name for placeholder in new})
        }
        for placeholder in placeholders:
            if originals.setdefault(
                placeholder.inner, placeholder.original
            ) != placeholder.original or (
                facts.placeholders.get(placeholder.original, placeholder) != placeholder
            ):
                raise InputError(
                    "the session has other placeholders for some of these values: name another "
                    "session"
                )
            if placeholder.original not in facts.placeholders:
                _add_placeholder(facts, placeholder)

    def reserve_names(self, text: str) -> None:
        """Reserves placeholder names that occur in a text: no value gets them.

        Args:
            text: the text without the words that do not pass; a placeholder's number would
                reveal something about those.
        """
        # Sorted, because the order of a set changes from process to process.
        for name in sorted(find_placeholder_names(text)):
            self._facts.spelled.setdefault(name, None)

    def add_private(self, values: Iterable[PrivateValue]) -> None:
        """Adds private values; all further texts hide them."""
        values = list(values)
        prefetch(self._facts, private=[value.key for value in values])
        for value in values:
            self._facts.private.setdefault(value.key, value)

    def add_release(
        self,
        text: str,
        values: Sequence[Original],
        names: Iterable[Replacement] = (),
        source: Source = "user",
    ) -> None:
        """Adds a release's targets with originals, and internal hosts its writer named.

        Args:
            text: the release.
            values: values of its placeholders.
            names: names that were replaced in it.
            source: its writer. Of an answer no target is stored: an attacker who wrote it may want
                originals sent away.
        """
        placeholders = list(map(self._assign, values))
        self.add_places(find_places(text, placeholders))
        if source == "answer":
            return
        keys = [name.build_key(name.original) for name in names]
        self.add_targets(find_targets(text, {name.text: name.value for name in placeholders}, keys))
        if source == "user":
            hosts = find_internal_hosts(text).union(
                *(find_internal_hosts(value.text) for value in values)
            )
            hosts |= {
                value.text.lower()
                for value in values
                if value.type == "HOST" and is_internal(value.text)
            }
            for host in sorted(hosts):
                self._facts.hosts.setdefault(host, None)

    def add_targets(self, targets: Iterable[str]) -> None:
        """Adds addresses that contain hidden values."""
        for target in sorted(targets):
            self._facts.targets.setdefault(target, None)

    def add_places(self, places: Iterable[tuple[str, str]]) -> None:
        """Adds kinds of places of values, to restore them unchanged there.

        Args:
            places: values with kinds of places.
        """
        places = list(places)
        prefetch(self._facts, stood=[value for value, _ in places])
        for value, kind in places:
            kinds = self._facts.stood.get(value, ())
            if kind not in kinds:
                self._facts.stood[value] = (*kinds, kind)

    def is_revealed(self, value: PrivateValue) -> bool:
        """Says whether a word that reveals a value was released earlier."""
        return any(fold(word) in self._facts.said for word in value.identifying_words)

    def get_placeholder(self, value: Original) -> PlaceholderToken:
        """Returns the placeholder of a value that was given one."""
        return self._assign(value)

    def is_known(self, type_: str, text: str) -> bool:
        """Says whether a text is a private value, or was released unchanged."""
        if _is_plain_name(fold(text), self._facts.said):
            return True
        return (type_, normalize_value(type_, text)) in self._facts.private

    def claim_name(self, original: str, name: str) -> bool:
        """Says whether a name may stand for this original, and assigns it.

        It may if it has stood for no other, and was not released unchanged. The answer reveals
        which originals are equal, so it may be asked only where the mask shows that too: where
        equal words are released alike.
        """
        if _is_plain_name(fold(name), self._facts.said):
            return False
        return self._facts.owners.setdefault(fold(name), fold(original)) == fold(original)

    def add_replacement(self, original: str, name: str) -> None:
        """Adds a name that was released in place of a private one.

        Args:
            original: the private name.
            name: the name that is released in its place. It is restored as long as it stands for
                one original only, was not released unchanged, and is no word of the public list.
        """
        self._facts.replaced.setdefault((fold(name), fold(original)), Replacement(name, original))

    def add_plain_words(self, words: Iterable[str]) -> None:
        """Adds words that were released unchanged; an answer keeps them."""
        keys = list(map(fold, words))
        prefetch(self._facts, said=keys)
        for key in keys:
            self._facts.said.setdefault(key, None)

    def reuse_rows(
        self, law: str, keys: Sequence[tuple[str, str]], rows: Sequence[int]
    ) -> list[int]:
        """Returns each word's first row in this session, or its new row.

        Args:
            law: the law that the rows were drawn by; rows of another law do not count.
            keys: (word, group) of each; letter case is ignored.
            rows: the rows to take for words that are new.
        """
        draws = self._facts.drawn
        pairs = zip(self._build_draw_keys(law, keys), rows, strict=True)
        return [draws.setdefault(key, row) for key, row in pairs]

    def learn(self, draws: Mapping[tuple[str, str, str], int]) -> None:
        """Adds rows that other sessions of the subject drew; keeps existing rows."""
        prefetch(self._facts, drawn=draws)
        for key, row in draws.items():
            self._facts.drawn.setdefault(key, row)

    def lookup_rows(
        self, law: str, keys: Sequence[tuple[str, str]], rows: Sequence[int]
    ) -> list[int]:
        """Looks rows up like `reuse_rows`, without storing new ones."""
        draws = self._facts.drawn
        return [
            draws.get(key, row)
            for key, row in zip(self._build_draw_keys(law, keys), rows, strict=True)
        ]

    def has_rows(self, law: str, keys: Sequence[tuple[str, str]]) -> list[bool]:
        """Says for each key whether it has a row already."""
        return [key in self._facts.drawn for key in self._build_draw_keys(law, keys)]

    def _build_draw_keys(
        self, law: str, keys: Sequence[tuple[str, str]]
    ) -> list[tuple[str, str, str]]:
        """Builds the keys of draws and prefetches them together."""
        draw_keys = [(law, fold(word), group) for word, group in keys]
        prefetch(self._facts, drawn=draw_keys)
        return draw_keys

    def add_losses(
        self,
        label: str,
        replacement_kind: str,
        losses: Sequence[float],
        word_count: int,
        *,
        alike: bool,
    ) -> None:
        """Adds the losses of one type's words in one text.

        Args:
            label: the type.
            replacement_kind: kind of replacement; see `Loss`.
            losses: local DP of each word that was drawn for it.
            word_count: number of its released words, with those that were drawn before.
            alike: True if equal words are released alike.
        """
        former = self._losses.get((label, replacement_kind), Loss(label, replacement_kind))
        finite = [convert_to_micros(loss) for loss in losses if math.isfinite(loss)]
        self._losses[label, replacement_kind] = self._facts.losses[label, replacement_kind] = Loss(
            label,
            replacement_kind,
            drawn=former.drawn + len(losses),
            released=former.released + word_count,
            most=max([former.most, *finite]),
            total=former.total + sum(finite),
            infinite=former.infinite + len(losses) - len(finite),
            alike=former.alike or alike,
        )

    def list_losses(self) -> tuple[Loss, ...]:
        """Returns the losses of each type so far."""
        return tuple(self._losses[key] for key in sorted(self._losses))

    @cached_property
    def _losses(self) -> dict[tuple[str, str], Loss]:
        return dict(self._facts.losses)

    def build_delta(self) -> SessionDelta:
        """Returns the new facts as a delta."""
        new = {name: ChainMap(dict(getattr(self._facts, name).maps[0])) for name in FACT_KINDS}
        return SessionDelta(since=self._since, **new)


def prefetch(facts: Facts, **keys: Iterable[Any]) -> None:
    """Prefetches facts that are looked up next, in one query (`sql`).

    Args:
        facts: known facts, with a child for new ones.
        **keys: their keys, by the names of facts.
    """
    # Only in a stored session does the last map ask a database (`StoredFacts`).
    lookups = [(getattr(facts, kind).maps[-1], fact_keys) for kind, fact_keys in keys.items()]
    look_up = getattr(lookups[0][0], "look_up", None)
    if look_up is not None:
        look_up(lookups)


def _prefetch_placeholders(facts: Facts, placeholders: Sequence[PlaceholderToken]) -> None:
    """Prefetches the facts that `add_placeholders` looks up."""
    names = [
        (placeholder.type, form)
        for placeholder in placeholders
        for form, _ in find_name_parts(placeholder.type, placeholder.value)
    ]
    prefetch(
        facts,
        placeholders=[placeholder.original for placeholder in placeholders],
        values=[
            (placeholder.type, normalize_value(placeholder.type, placeholder.value))
            for placeholder in placeholders
        ],
        forms=[
            (placeholder.type, placeholder.number, placeholder.part) for placeholder in placeholders
        ],
        counts=[placeholder.type for placeholder in placeholders],
        parts=names,
    )


def derive_facts(placeholders: Iterable[PlaceholderToken]) -> dict[str, ChainMap[Any, Any]]:
    """Derives facts from assigned placeholders: values, parts and spellings."""
    facts = Facts()
    for placeholder in placeholders:
        _add_placeholder(facts, placeholder)
    names = ("placeholders", "values", "forms", "counts", "parts")
    return {name: getattr(facts, name) for name in names}


def _add_placeholder(facts: Facts, placeholder: PlaceholderToken) -> None:
    """Adds an assigned placeholder, and the facts derived from it."""
    type_, number, value, part, *_ = placeholder
    facts.placeholders[placeholder.original] = placeholder
    facts.values.setdefault((type_, normalize_value(type_, value)), (number, part))
    key, count = (type_, number, part), facts.counts.get(type_, 0)
    if number < MIN_KEYED_NUMBER:
        facts.counts[type_] = max(number, count)
    elif key not in facts.forms:
        facts.counts[type_] = count + 1
    facts.forms[key] = max(placeholder.form, facts.forms.get(key, 0))
    if not part:
        _divide_name(facts.parts, type_, value, number)


def _divide_name(
    owners: MutableMapping[_ValueKey, tuple[Any, str]],
    type_: str,
    value: str,
    owner: int | _ValueKey,
) -> None:
    """Adds the parts of a name; one of two names becomes ambiguous."""
    for form, part in find_name_parts(type_, value):
        former = owners.get((type_, form))
        if former is None:
            owners[type_, form] = owner, part
        elif former[0] != owner:
            owners[type_, form] = AMBIGUOUS, ""


def _merge_maps(old: ChainMap[Any, Any], new: ChainMap[Any, Any]) -> ChainMap[Any, Any]:
    """Merges maps without copying large ones.

    There are few maps, each at least twice as large as the next. So a session of n entries costs n
    log n in all, and snapshots stay unchanged.
    """
    maps = [*new.maps, *old.maps]
    while len(maps) > 1 and 2 * len(maps[0]) > len(maps[1]):
        maps[:2] = [{**maps[1], **maps[0]}]
    return ChainMap(*maps)


_SEPARATORS = re.compile(r"[ \-./()\u00a0]+")
_ADDRESS = re.compile(r"[0-9]+(?:\.[0-9]+){3}|.*[:@].*", re.DOTALL)
MIN_RESPELLED_CHARACTERS = 7
"""Least characters of an identifier that is found in an answer with other separators."""


def _list_respelled(keys: Sequence[RestoreKey]) -> list[RestoreKey]:
    """Lists replaced numbers with other separators, as a model may write them."""
    forms, respelled = {fold(key.form) for key in keys}, dict[str, RestoreKey]()
    for key in keys:
        if key.kind != "value" or key.original is None or _ADDRESS.fullmatch(key.form):
            continue
        for separator in ("", " ", "-", "."):
            form, original = (
                _SEPARATORS.sub(separator, text).strip(separator)
                if separator
                else _SEPARATORS.sub("", text)
                for text in (key.form, key.original)
            )
            if len(form) >= MIN_RESPELLED_CHARACTERS and fold(form) not in forms:
                other = respelled.setdefault(fold(form), RestoreKey(form, original, "value"))
                if other.original != original:
                    respelled[fold(form)] = RestoreKey(form, None, "value")
    return list(respelled.values())


def find_places(text: str, placeholders: Sequence[PlaceholderToken]) -> list[tuple[str, str]]:
    """Finds the kinds of places that values and their words occur at.

    Only where they must be stored (`quoting.tells`).

    Args:
        text: the release.
        placeholders: its placeholders, in order.
    """
    places: list[tuple[str, str]] = []
    quoting, position, queue = QuoteScanner(), 0, deque(placeholders)
    for match in RELEASED.finditer(text):
        # Others stood in the text before; those of this release come in order.
        if not queue or match[1] != queue[0].inner:
            continue
        placeholder, in_markup = queue.popleft(), match[0][0] == "&"
        if is_plain(placeholder.value):
            continue
        # The match leaves out the quotation marks that the placeholder brought along.
        begin = match.start() - placeholder.quoted * len("&quot;" if in_markup else '"')
        quoting.feed(text[position:begin])
        position, kinds = begin, [quoting.find_place().kind]
        if in_markup:
            kinds.append(find_markup_kind(text[max(0, begin - CONTEXT_CHARACTERS) : begin]))
        words = {placeholder.value, *placeholder.value.split()}
        places += [
            (word, kind) for word in words for kind in kinds if is_place_sensitive(word, kind)
        ]
    return places


def _is_plain_name(name: str, plain_words: Container[str]) -> bool:
    return (
        is_public(name) or name in plain_words or all(word in plain_words for word in name.split())
    )
