"""State of a session, and the delta that one release adds.

In: values that became placeholders, names that were replaced, words that passed, rows that were
drawn. Out: the same placeholder for the same value, the same row for the same word; a
`SessionDelta`.
Not here: how threads take turns (`state`), and how an answer is searched (`restore`).
"""

import math
from collections import ChainMap, Counter, deque
from collections.abc import Collection, Container, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

from textveil.detect import PrivateValue, Sought, Span, alike, core, parts
from textveil.errors import InputError
from textveil.guarantee import Loss
from textveil.session.placeholders import KEYED, Given, Original, named, spelled_in
from textveil.session.quoting import BEHIND, Quoting, is_plain, markup, tells
from textveil.session.reading import fold
from textveil.session.restore import Key, KeyFinder, Node, Restorer, numbered, targets_in, tree
from textveil.session.spending import micro
from textveil.session.targets import Trusted, internal_hosts, is_internal
from textveil.text import RELEASED, is_public

_Same = tuple[str, str]
"""A type, and a value normalized for comparison."""

Source = Literal["user", "tool", "answer"]
"""Writer of a text: user or system, tool or unknown, or model.

Only users name hosts that are trusted, and no answer is a reason to restore a value.
"""

AMBIGUOUS = 0
"""Number of a name part that fits more than one name."""


class Replaced(NamedTuple):
    """A released name and its original, as first written. Secret."""

    shown: str
    original: str

    def __repr__(self) -> str:
        return "Replaced()"


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

    placeholders: ChainMap[Original, Given] = field(default_factory=ChainMap, repr=False)
    values: ChainMap[tuple[str, str], tuple[int, str]] = field(default_factory=ChainMap, repr=False)
    parts: ChainMap[tuple[str, str], tuple[int, str]] = field(default_factory=ChainMap, repr=False)
    forms: ChainMap[tuple[str, int, str], int] = field(default_factory=ChainMap)
    counts: ChainMap[str, int] = field(default_factory=ChainMap)
    private: ChainMap[tuple[str, str], PrivateValue] = field(default_factory=ChainMap, repr=False)
    targets: ChainMap[str, None] = field(default_factory=ChainMap, repr=False)
    stood: ChainMap[str, tuple[str, ...]] = field(default_factory=ChainMap, repr=False)
    hosts: ChainMap[str, None] = field(default_factory=ChainMap, repr=False)
    replaced: ChainMap[tuple[str, str], Replaced] = field(default_factory=ChainMap, repr=False)
    owners: ChainMap[str, str] = field(default_factory=ChainMap, repr=False)
    said: ChainMap[str, None] = field(default_factory=ChainMap, repr=False)
    spelled: ChainMap[str, None] = field(default_factory=ChainMap)
    losses: ChainMap[tuple[str, str], Loss] = field(default_factory=ChainMap)
    drawn: ChainMap[tuple[str, str, str], int] = field(default_factory=ChainMap, repr=False)


FACTS = tuple(each.name for each in fields(Facts))


@dataclass(frozen=True, kw_only=True, eq=False)
class SessionDelta(Facts):
    """Facts that one release adds to a session; False if empty.

    Attributes:
        since: version of the snapshot that the release was built from.
    """

    since: int

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in FACTS)


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot(Facts):
    """State of a session at one moment.

    Attributes:
        version: number of deltas before it.
    """

    version: int = 0

    def after(self, delta: SessionDelta) -> "Snapshot":
        """Returns the next snapshot, with the facts of a delta."""
        added = {name: getattr(delta, name) for name in FACTS}
        grown = {name: _merge_maps(getattr(self, name), new) for name, new in added.items() if new}
        following = replace(self, version=self.version + 1, **grown)
        if "sought" in vars(self):  # copied, or each release would rebuild it from all values
            vars(following)["sought"] = sought = self.sought.copy()
            for value in delta.private.values():
                sought.add(value)
        return following

    def at(self, version: int) -> "Snapshot":
        """Returns the same state under another version."""
        return replace(self, version=version)

    @cached_property
    def tree(self) -> Node:
        """Trie of the keys to look for in an answer.

        Placeholders are loaded when an answer contains their numbers.
        """
        loaded = cache(lambda name: tree(self.originals(self.given_as([name])), (), frozenset()))
        return numbered(tree({}, self.names(), self.said), self.counts, loaded)

    def names(self) -> list[Key]:
        """Lists the names that replaced private names, as keys."""
        originals: dict[str, list[Replaced]] = {}
        for (shown, _), pair in self.replaced.items():
            originals.setdefault(shown, []).append(pair)
        names = []
        for shown, (first, *others) in originals.items():
            certain = not others and not _is_said(shown, self.said)
            names.append(Key(first.shown, first.original if certain else None, "name"))
        return names

    @cached_property
    def trusted(self) -> Trusted:
        """Targets and hosts into which originals may be joined.

        They occurred in protected texts, or a user named them.
        """
        restored = set(self.targets)
        for target in self.targets:
            if spelled_in(target):
                restorer = Restorer(self.tree, where="everywhere")
                restored.add(restorer.feed(target) + restorer.close())
        return Trusted(targets=sorted(restored), hosts=frozenset(self.hosts))

    @cached_property
    def sought(self) -> Sought:
        """Private values, as a matcher for further texts."""
        return Sought(self.private.values())

    def literals(self, text: str) -> list[tuple[int, int]]:
        """Finds placeholders of this session that a text already contains.

        An answer would be restored wrongly there.

        Returns:
            Start and end offsets.
        """
        placeholders = self.given_as(spelled_in(text))
        return (
            KeyFinder(tree(self.originals(placeholders), (), frozenset())).find(text)
            if placeholders
            else []
        )

    def sought_in(self, texts: Sequence[str], spans: Sequence[Span]) -> Sought:
        """Returns a matcher of private values that may occur in some texts.

        More values can be added to it.

        Args:
            texts: any number of texts.
            spans: findings of the detectors in them.
        """
        return self.sought.copy()

    def given_as(self, names: Iterable[str]) -> list[Given]:
        """Returns the placeholders that begin with one of some names: `PERSON_1`."""
        return [given for name in names for given in self._names.get(name, ())]

    def hidden_in(self, text: str) -> Counter[str]:
        """Counts the values of each type that have placeholders in a release."""
        released = {match[1] for match in RELEASED.finditer(text)}
        return Counter(
            given.type for given in self.placeholders.values() if given.inner in released
        )

    def originals(self, placeholders: Collection[Given]) -> dict[str, str]:
        """Maps placeholders to values, with parts of names.

        An answer may use the placeholder of a part on its initiative.
        """
        values = {given.shown: given.value for given in placeholders}
        values |= {f"<{given.inner}>": given.value for given in placeholders if given.quoted}
        for given in placeholders:
            for shown, word in self._parts_of(given):
                values.setdefault(shown, word)
        return values

    def _parts_of(self, given: Given) -> Iterable[tuple[str, str]]:
        """Yields the placeholders of a name's parts, given that of the whole."""
        for word in () if given.part or given.form > 1 else given.value.split():
            key = given.type, alike(given.type, word)
            number, part = self.parts.get(key, (AMBIGUOUS, ""))
            whole = given._replace(part=part, quoted=False)
            if number == given.number and part and whole.inner not in self.spelled:
                yield whole.shown, word

    @cached_property
    def _names(self) -> dict[str, list[Given]]:
        names: dict[str, list[Given]] = {}
        for given in self.placeholders.values():
            names.setdefault(given.name, []).append(given)
        return names


class Notes:
    """Facts that one release adds to a snapshot. For one thread.

    Args:
        known: the snapshot. It stays unchanged.
    """

    def __init__(self, known: Snapshot) -> None:
        self._since, self._given_as = known.version, known.given_as
        # New facts are written to the children.
        self._facts = Facts(**{name: getattr(known, name).new_child() for name in FACTS})

    def placeholder(self, type_: str, value: str) -> str:
        """Returns the placeholder of a value; see `placeholders`."""
        return self.placeholders([Original(type_, value)])[0]

    def placeholders(self, values: Sequence[Original]) -> list[str]:
        """Returns the placeholders of one text's values, in order of appearance.

        A part of a name gets the number of the whole, if only one name has it, and the part's kind;
        another spelling of a value gets a letter. So each placeholder stands for exactly one
        string.

        Args:
            values: the values, in order.
        """
        facts = self._facts
        keys = [(type_, alike(type_, value)) for type_, value, _ in values]
        expect(
            facts, placeholders=values, values=keys, parts=keys, counts=[type_ for type_, _ in keys]
        )
        for type_ in {type_ for type_, _ in keys}:
            first = facts.counts.get(type_, 0) + 1
            expect(
                facts, spelled=[named(type_, number) for number in range(first, first + len(keys))]
            )
        self._divide(values)
        given = [Given(key[0], facts.values[key][0], "", facts.values[key][1]) for key in keys]
        forms = [(each.type, each.number, each.part) for each in given]
        expect(facts, forms=forms, spelled=[each.inner for each in given])
        return [self._given(value).shown for value in values]

    def _divide(self, values: Iterable[Original]) -> None:
        """Numbers new values and assigns parts to whole names.

        The longest values come first, so that parts find their whole.
        """
        facts = self._facts
        new: dict[_Same, str] = {}
        for type_, value, _ in values:
            if (key := (type_, alike(type_, value))) not in facts.values:
                new.setdefault(key, value)
        owners: dict[_Same, tuple[int | _Same, str]] = {}
        inside: dict[_Same, tuple[int | _Same, str]] = {}
        for key in sorted(new, key=lambda key: -len(core(key[0], new[key]))):
            candidates = {facts.parts.get(key), inside.get(key)} - {None}
            owners[key] = (candidates.pop() if len(candidates) == 1 else None) or (AMBIGUOUS, "")
            if owners[key][0] == AMBIGUOUS:
                owners[key] = key, ""
                _divide_name(inside, key[0], new[key], key)
        numbers: dict[_Same, int] = {}
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
        while named(type_, number) in self._facts.spelled:
            number += 1
        self._facts.counts[type_] = number
        return number

    def _given(self, value: Original) -> Given:
        facts = self._facts
        if value not in facts.placeholders:
            type_, text, quoted = value
            number, part = facts.values[type_, alike(type_, text)]
            given = Given(
                type_, number, text, part, facts.forms.get((type_, number, part), 0) + 1, quoted
            )
            while given.inner in facts.spelled:
                given = given._replace(form=given.form + 1)
            facts.forms[type_, number, part] = given.form
            facts.placeholders[value] = given
        return facts.placeholders[value]

    def take(self, given: Sequence[Given]) -> None:
        """Adds placeholders that were assigned elsewhere; known ones change nothing.

        Raises:
            InputError: a placeholder already stands for another value, or its value already has
                another placeholder.
        """
        facts = self._facts
        _expect_given(facts, given)
        new = [each for each in given if each.stands_for not in facts.placeholders]
        shown = {
            other.inner: other.stands_for for other in self._given_as({each.name for each in new})
        }
        for each in given:
            if shown.setdefault(each.inner, each.stands_for) != each.stands_for or (
                facts.placeholders.get(each.stands_for, each) != each
            ):
                raise InputError(
                    "the session has other placeholders for some of these values: name another session"
                )
            if each.stands_for not in facts.placeholders:
                _enter(facts, each)

    def spelled(self, released: str) -> None:
        """Reserves placeholder names that occur in a text: no value gets them.

        Args:
            released: the text without the words that do not pass; a placeholder's number would
                reveal something about those.
        """
        for name in sorted(spelled_in(released)):
            self._facts.spelled.setdefault(name, None)

    def found(self, values: Iterable[PrivateValue]) -> None:
        """Adds private values; all further texts hide them."""
        values = list(values)
        expect(self._facts, private=[value.key for value in values])
        for value in values:
            self._facts.private.setdefault(value.key, value)

    def put(
        self,
        text: str,
        values: Sequence[Original],
        names: Iterable[Replaced] = (),
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
        given = list(map(self._given, values))
        self.stand(places_of(text, given))
        if source == "answer":
            return
        keys = [Key(name.shown, name.original, "name") for name in names]
        self.put_in(targets_in(text, {name.shown: name.value for name in given}, keys))
        if source == "user":
            hosts = internal_hosts(text).union(*(internal_hosts(value.text) for value in values))
            hosts |= {
                value.text.lower()
                for value in values
                if value.type == "HOST" and is_internal(value.text)
            }
            for host in sorted(hosts):
                self._facts.hosts.setdefault(host, None)

    def put_in(self, targets: Iterable[str]) -> None:
        """Adds addresses that contain hidden values."""
        for target in sorted(targets):
            self._facts.targets.setdefault(target, None)

    def stand(self, places: Iterable[tuple[str, str]]) -> None:
        """Adds kinds of places of values, to restore them unchanged there.

        Args:
            places: values with kinds of places.
        """
        places = list(places)
        expect(self._facts, stood=[value for value, _ in places])
        for value, kind in places:
            kinds = self._facts.stood.get(value, ())
            if kind not in kinds:
                self._facts.stood[value] = (*kinds, kind)

    def was_said(self, value: PrivateValue) -> bool:
        """Says whether a word that reveals a value was released earlier."""
        return any(fold(word) in self._facts.said for word in value.telling)

    def stands(self, original: str, shown: str) -> bool:
        """Says whether a name may stand for this original, and assigns it.

        It may if it has stood for no other, and was not released unchanged. The answer reveals
        which originals are equal, so it may be asked only where the mask shows that too: where
        equal words are released alike.
        """
        if _is_said(fold(shown), self._facts.said):
            return False
        return self._facts.owners.setdefault(fold(shown), fold(original)) == fold(original)

    def replaced(self, original: str, shown: str) -> None:
        """Adds a name that was released in place of a private one.

        Args:
            original: the private name.
            shown: the name that is released in its place. It is restored as long as it stands for
                one original only, was not released unchanged, and is no word of the public list.
        """
        self._facts.replaced.setdefault((fold(shown), fold(original)), Replaced(shown, original))

    def said(self, words: Iterable[str]) -> None:
        """Adds words that were released unchanged; an answer keeps them."""
        keys = list(map(fold, words))
        expect(self._facts, said=keys)
        for key in keys:
            self._facts.said.setdefault(key, None)

    def consistent(
        self, law: str, keys: Sequence[tuple[str, str]], rows: Sequence[int]
    ) -> list[int]:
        """Returns each word's first row in this session, or its new row.

        Args:
            law: the law that the rows were drawn by; rows of another law do not count.
            keys: (word, group) of each; letter case is ignored.
            rows: the rows to take for words that are new.
        """
        drawn = self._facts.drawn
        pairs = zip(self._draws(law, keys), rows, strict=True)
        return [drawn.setdefault(key, row) for key, row in pairs]

    def learn(self, drawn: Mapping[tuple[str, str, str], int]) -> None:
        """Adds rows that other sessions of the subject drew; keeps existing rows."""
        expect(self._facts, drawn=drawn)
        for key, row in drawn.items():
            self._facts.drawn.setdefault(key, row)

    def recalled(self, law: str, keys: Sequence[tuple[str, str]], rows: Sequence[int]) -> list[int]:
        """Looks rows up like `consistent`, without storing new ones."""
        drawn = self._facts.drawn
        return [drawn.get(key, row) for key, row in zip(self._draws(law, keys), rows, strict=True)]

    def were_drawn(self, law: str, keys: Sequence[tuple[str, str]]) -> list[bool]:
        """Says for each key whether it has a row already."""
        return [key in self._facts.drawn for key in self._draws(law, keys)]

    def _draws(self, law: str, keys: Sequence[tuple[str, str]]) -> list[tuple[str, str, str]]:
        """Builds the keys of draws and prefetches them together."""
        draws = [(law, fold(word), group) for word, group in keys]
        expect(self._facts, drawn=draws)
        return draws

    def lost(
        self, label: str, by: str, spent: Sequence[float], released: int, *, alike: bool
    ) -> None:
        """Adds the losses of one type's words in one text.

        Args:
            label: the type.
            by: kind of replacement; see `Loss`.
            spent: local DP of each word that was drawn for it.
            released: number of its released words, with those that were drawn before.
            alike: True if equal words are released alike.
        """
        before = self._losses.get((label, by), Loss(label, by))
        finite = [micro(loss) for loss in spent if math.isfinite(loss)]
        self._losses[label, by] = self._facts.losses[label, by] = Loss(
            label,
            by,
            drawn=before.drawn + len(spent),
            released=before.released + released,
            most=max([before.most, *finite]),
            total=before.total + sum(finite),
            infinite=before.infinite + len(spent) - len(finite),
            alike=before.alike or alike,
        )

    def losses(self) -> tuple[Loss, ...]:
        """Returns the losses of each type so far."""
        return tuple(self._losses[of] for of in sorted(self._losses))

    @cached_property
    def _losses(self) -> dict[tuple[str, str], Loss]:
        return dict(self._facts.losses)

    def delta(self) -> SessionDelta:
        """Returns the new facts as a delta."""
        new = {name: ChainMap(dict(getattr(self._facts, name).maps[0])) for name in FACTS}
        return SessionDelta(since=self._since, **new)


def expect(facts: Facts, **keys: Iterable[Any]) -> None:
    """Prefetches facts that are looked up next, in one query (`sql`).

    Args:
        facts: known facts, with a child for new ones.
        **keys: their keys, by the names of facts.
    """
    lookups = [(getattr(facts, kind).maps[-1], found) for kind, found in keys.items()]
    look_up = getattr(lookups[0][0], "look_up", None)
    if look_up is not None:
        look_up(lookups)


def _expect_given(facts: Facts, given: Sequence[Given]) -> None:
    """Prefetches the facts that `take` looks up."""
    names = [(each.type, joined) for each in given for joined, _ in parts(each.type, each.value)]
    expect(
        facts,
        placeholders=[each.stands_for for each in given],
        values=[(each.type, alike(each.type, each.value)) for each in given],
        forms=[(each.type, each.number, each.part) for each in given],
        counts=[each.type for each in given],
        parts=names,
    )


def remembered(given: Iterable[Given]) -> dict[str, ChainMap[Any, Any]]:
    """Derives facts from assigned placeholders: values, parts and spellings."""
    facts = Facts()
    for placeholder in given:
        _enter(facts, placeholder)
    names = ("placeholders", "values", "forms", "counts", "parts")
    return {name: getattr(facts, name) for name in names}


def _enter(facts: Facts, given: Given) -> None:
    """Adds an assigned placeholder, and the facts derived from it."""
    type_, number, value, part, *_ = given
    facts.placeholders[given.stands_for] = given
    facts.values.setdefault((type_, alike(type_, value)), (number, part))
    key, count = (type_, number, part), facts.counts.get(type_, 0)
    if number < KEYED:
        facts.counts[type_] = max(number, count)
    elif key not in facts.forms:
        facts.counts[type_] = count + 1
    facts.forms[key] = max(given.form, facts.forms.get(key, 0))
    if not part:
        _divide_name(facts.parts, type_, value, number)


def _divide_name(
    into: MutableMapping[_Same, tuple[Any, str]], type_: str, value: str, owner: int | _Same
) -> None:
    """Adds the parts of a name; one of two names becomes ambiguous."""
    for joined, part in parts(type_, value):
        owned = into.get((type_, joined))
        if owned is None:
            into[type_, joined] = owner, part
        elif owned[0] != owner:
            into[type_, joined] = AMBIGUOUS, ""


def _merge_maps(known: ChainMap[Any, Any], new: ChainMap[Any, Any]) -> ChainMap[Any, Any]:
    """Merges maps without copying large ones.

    There are few maps, each at least twice as large as the next. So a session of n entries costs n
    log n in all, and snapshots stay unchanged.
    """
    maps = [*new.maps, *known.maps]
    while len(maps) > 1 and 2 * len(maps[0]) > len(maps[1]):
        maps[:2] = [{**maps[1], **maps[0]}]
    return ChainMap(*maps)


def places_of(text: str, given: Sequence[Given]) -> list[tuple[str, str]]:
    """Finds the kinds of places that values and their words occur at.

    Only where they must be stored (`quoting.tells`).

    Args:
        text: the release.
        given: its placeholders, in order.
    """
    places: list[tuple[str, str]] = []
    quoting, fed, awaited = Quoting(), 0, deque(given)
    for released in RELEASED.finditer(text):
        if not awaited or released[1] != awaited[0].inner:
            continue
        placeholder, in_markup = awaited.popleft(), released[0][0] == "&"
        if is_plain(placeholder.value):
            continue
        begin = released.start() - placeholder.quoted * len("&quot;" if in_markup else '"')
        quoting.feed(text[fed:begin])
        fed, kinds = begin, [quoting.place().kind]
        if in_markup:
            kinds.append(markup(text[max(0, begin - BEHIND) : begin]))
        words = {placeholder.value, *placeholder.value.split()}
        places += [(word, kind) for word in words for kind in kinds if tells(word, kind)]
    return places


def _is_said(shown: str, said: Container[str]) -> bool:
    return is_public(shown) or shown in said or all(word in said for word in shown.split())
