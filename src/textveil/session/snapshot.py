"""What a session knows, and what one release adds to it.

In: values that became placeholders, names that were replaced, words that passed, rows that were drawn. Out: the
same placeholder for the same value, the same row for the same word; a `SessionDelta` with what is new.
Not here: who keeps it and lets threads take turns (`state`), and how an answer is searched (`restore`).
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
"""A type, and a value as it is compared."""

Source = Literal["user", "tool", "answer"]
"""Who wrote a text: the user or the system, a tool or somebody unknown, or a model. Only users name hosts that are
trusted, and nothing in an answer is a reason to restore anything."""

AMBIGUOUS = 0
"""In place of a number: a part that fits several names."""


class Replaced(NamedTuple):
    """A released name and the original that it stands for, both as they were first written. Secret."""

    shown: str
    original: str

    def __repr__(self) -> str:
        return "Replaced()"


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """What is remembered, by how it is compared (`fold`). Secret: it holds originals.

    What is committed does not change any more.

    Attributes:
        placeholders: by value, to the character.
        values: the number and part of each value, by (type, value as it is compared); see `detect.alike`.
        parts: the number and part of whatever may stand for a name, in the same way.
        forms: how many spellings there are, by (type, number, part).
        counts: the last number of each type, or how many there are where numbers follow from a key.
        private: what was found to be private, by (type, value as it is compared).
        targets: addresses of protected texts with their originals, where something was hidden in them; those of
            earlier versions with placeholders.
        hosts: internal hosts that a user or a system message named.
        stood: the kinds of places (`quoting`) where a value stood, the first one first, by value, to the character;
            of those values alone whose writing depends on the place.
        replaced: by (shown, original).
        owners: for released names that must lead back, the one original that they stand for.
        said: words that were released as they stood, as keys: in an answer they are themselves.
        spelled: names of placeholders that a text spelled itself, as keys; no value gets one of those.
        losses: what the values of each type have lost, by (type, what replaces them).
        drawn: table rows of words that are released alike, and what figures are moved by, by (law, word, group).
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
    """What one release adds to a session; false where it adds nothing.

    Attributes:
        since: the version of the snapshot that the release was made from.
    """

    since: int

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in FACTS)


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot(Facts):
    """What a session knew at one moment.

    Attributes:
        version: how many deltas came before.
    """

    version: int = 0

    def after(self, delta: SessionDelta) -> "Snapshot":
        """The next snapshot, which knows what the delta adds."""
        added = {name: getattr(delta, name) for name in FACTS}
        known = {name: _grown(getattr(self, name), new) for name, new in added.items() if new}
        made = replace(self, version=self.version + 1, **known)
        if "sought" in vars(self):  # or each release would go through all values again
            vars(made)["sought"] = sought = self.sought.copy()
            for value in delta.private.values():
                sought.add(value)
        return made

    def at(self, version: int) -> "Snapshot":
        """The same under another version."""
        return replace(self, version=version)

    @cached_property
    def tree(self) -> Node:
        """The keys to look for in an answer; those of placeholders grow when an answer spells their numbers."""
        loaded = cache(lambda name: tree(self.originals(self.given_as([name])), (), frozenset()))
        return numbered(tree({}, self.names(), self.said), self.counts, loaded)

    def names(self) -> list[Key]:
        """The names that were released in place of others, as keys to look for."""
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
        """Addresses of protected texts and hosts that users named, into which originals may be joined."""
        known = set(self.targets)
        for target in self.targets:
            if spelled_in(target):
                restorer = Restorer(self.tree, where="everywhere")
                known.add(restorer.feed(target) + restorer.close())
        return Trusted(targets=sorted(known), hosts=frozenset(self.hosts))

    @cached_property
    def sought(self) -> Sought:
        """What was found to be private, as it is looked for in further texts."""
        return Sought(self.private.values())

    def literals(self, text: str) -> list[tuple[int, int]]:
        """Where a text has placeholders of this session of its own: an answer would be restored wrongly there."""
        given = self.given_as(spelled_in(text))
        return KeyFinder(tree(self.originals(given), (), frozenset())).find(text) if given else []

    def sought_in(self, texts: Sequence[str], spans: Sequence[Span]) -> Sought:
        """What of all that was found to be private may stand in some texts; more can be added to it.

        Args:
            texts: any number of texts.
            spans: what detectors found in them.
        """
        return self.sought.copy()

    def given_as(self, names: Iterable[str]) -> list[Given]:
        """The placeholders whose names begin with some of these: `PERSON_1`."""
        return [given for name in names for given in self._names.get(name, ())]

    def hidden_in(self, text: str) -> Counter[str]:
        """How many values of each type have placeholders in a released text."""
        released = {match[1] for match in RELEASED.finditer(text)}
        return Counter(
            given.type for given in self.placeholders.values() if given.inner in released
        )

    def originals(self, placeholders: Collection[Given]) -> dict[str, str]:
        """What placeholders stand for; also those of parts of names, which an answer may use unasked."""
        found = {given.shown: given.value for given in placeholders}
        found |= {f"<{given.inner}>": given.value for given in placeholders if given.quoted}
        for given in placeholders:
            for shown, word in self._parts_of(given):
                found.setdefault(shown, word)
        return found

    def _parts_of(self, given: Given) -> Iterable[tuple[str, str]]:
        """Gives the placeholders of the parts of a name, given that of the whole."""
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
    """What one release adds to a snapshot, noted while the release is spelled. For one thread.

    Args:
        known: the snapshot. It stays as it is.
    """

    def __init__(self, known: Snapshot) -> None:
        self._since, self._given_as = known.version, known.given_as
        # What is new is written to the children.
        self._facts = Facts(**{name: getattr(known, name).new_child() for name in FACTS})

    def placeholder(self, type_: str, value: str) -> str:
        """The placeholder of a value; see `placeholders`."""
        return self.placeholders([Original(type_, value)])[0]

    def placeholders(self, values: Sequence[Original]) -> list[str]:
        """The placeholders of the values of one text: `<TYPE_1>`, `<TYPE_2>`, ... in order of first appearance.

        A part of a name gets the number of the whole, if only one name has it, and says which part it is; what is
        the same but written otherwise gets a letter. So each placeholder stands for exactly one string.

        Args:
            values: in order.
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
        """Number the values that are new. The longest decide first which are whole names and which are parts."""
        facts = self._facts
        new: dict[_Same, str] = {}
        for type_, value, _ in values:
            if (key := (type_, alike(type_, value))) not in facts.values:
                new.setdefault(key, value)
        owners: dict[_Same, tuple[int | _Same, str]] = {}
        inside: dict[_Same, tuple[int | _Same, str]] = {}
        for key in sorted(new, key=lambda key: -len(core(key[0], new[key]))):
            found = {facts.parts.get(key), inside.get(key)} - {None}
            owners[key] = (found.pop() if len(found) == 1 else None) or (AMBIGUOUS, "")
            if owners[key][0] == AMBIGUOUS:
                owners[key] = key, ""
                _divide_name(inside, key[0], new[key], key)
        numbers: dict[_Same, int] = {}
        for key in new:
            owner, part = owners[key]
            if not isinstance(owner, int):
                if owner not in numbers:
                    numbers[owner] = self._next_number(owner[0])
                    _divide_name(facts.parts, owner[0], new[owner], numbers[owner])
                owner = numbers[owner]
            facts.values[key] = owner, part

    def _next_number(self, type_: str) -> int:
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
        """Note placeholders that were given elsewhere; those that are known change nothing.

        Raises:
            InputError: one stands for another value, or its value has another one.
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
        """Note placeholders that a text itself spells: no value gets one of those from now on.

        Args:
            released: what of the text passes. Of words that do not, a placeholder's number would tell.
        """
        for name in sorted(spelled_in(released)):
            self._facts.spelled.setdefault(name, None)

    def found(self, values: Iterable[PrivateValue]) -> None:
        """Note what was found to be private: it is hidden in all further texts."""
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
        """Note the addresses of a text in which something was hidden, and the internal hosts that its writer named.

        Args:
            text: the release.
            values: those of its placeholders.
            names: those that were replaced in it.
            source: who wrote it. Of an answer nothing is noted: whoever wrote it may want originals sent away.
        """
        given = list(map(self._given, values))
        self.stand(places_of(text, given))
        if source == "answer":
            return
        keys = [Key(each.shown, each.original, "name") for each in names]
        self.put_in(targets_in(text, {each.shown: each.value for each in given}, keys))
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
        """Note addresses in which something was hidden."""
        for target in sorted(targets):
            self._facts.targets.setdefault(target, None)

    def stand(self, places: Iterable[tuple[str, str]]) -> None:
        """Note kinds of places where values stood, so that they go back to such places as they stood.

        Args:
            places: values with kinds of places.
        """
        places = list(places)
        expect(self._facts, stood=[value for value, _ in places])
        for value, kind in places:
            known = self._facts.stood.get(value, ())
            if kind not in known:
                self._facts.stood[value] = (*known, kind)

    def was_said(self, value: PrivateValue) -> bool:
        """Whether a word that tells of a value passed earlier."""
        return any(fold(word) in self._facts.said for word in value.telling)

    def stands(self, original: str, shown: str) -> bool:
        """Whether a name may stand for this original: if it has stood for no other yet, and was not said.

        That tells which originals are equal, so it may be asked only where the mask says that too: where equal words
        are released alike.
        """
        if _is_said(fold(shown), self._facts.said):
            return False
        return self._facts.owners.setdefault(fold(shown), fold(original)) == fold(original)

    def replaced(self, original: str, shown: str) -> None:
        """Note that a released name stands for another one.

        Args:
            original: the private name.
            shown: the name that is released in its place. It is restored as long as it stands for one original only,
                was not said, and is no word of the public list.
        """
        self._facts.replaced.setdefault((fold(shown), fold(original)), Replaced(shown, original))

    def said(self, words: Iterable[str]) -> None:
        """Note words that were released as they stood: in an answer they are themselves and no replacement."""
        keys = list(map(fold, words))
        expect(self._facts, said=keys)
        for key in keys:
            self._facts.said.setdefault(key, None)

    def consistent(
        self, law: str, keys: Sequence[tuple[str, str]], rows: Sequence[int]
    ) -> list[int]:
        """The row of each word: the one first drawn in this session, or the given one for words that are new.

        Args:
            law: what the rows were drawn by; rows of another law do not count.
            keys: (word, group) of each; letter case is ignored.
            rows: the rows to take for words that are new.
        """
        drawn = self._facts.drawn
        pairs = zip(self._draws(law, keys), rows, strict=True)
        return [drawn.setdefault(key, row) for key, row in pairs]

    def learn(self, drawn: Mapping[tuple[str, str, str], int]) -> None:
        """Note rows that other sessions of the same subject have drawn; what this one has drawn stays."""
        expect(self._facts, drawn=drawn)
        for key, row in drawn.items():
            self._facts.drawn.setdefault(key, row)

    def recalled(self, law: str, keys: Sequence[tuple[str, str]], rows: Sequence[int]) -> list[int]:
        """As `consistent`, but rows of words that are new are not noted."""
        drawn = self._facts.drawn
        return [drawn.get(key, row) for key, row in zip(self._draws(law, keys), rows, strict=True)]

    def were_drawn(self, law: str, keys: Sequence[tuple[str, str]]) -> list[bool]:
        """Whether `consistent` has a row for each of these already."""
        return [key in self._facts.drawn for key in self._draws(law, keys)]

    def _draws(self, law: str, keys: Sequence[tuple[str, str]]) -> list[tuple[str, str, str]]:
        """The keys of draws, which are looked up at once."""
        found = [(law, fold(word), group) for word, group in keys]
        expect(self._facts, drawn=found)
        return found

    def lost(
        self, label: str, by: str, spent: Sequence[float], released: int, *, alike: bool
    ) -> None:
        """Note what words of one type lose in one text.

        Args:
            label: the type.
            by: what replaces them; see `Loss`.
            spent: local DP of each word that was drawn for it.
            released: how many are released in it, also those that were drawn before.
            alike: whether equal ones are released alike.
        """
        before = self._losses.get((label, by), Loss(label, by))
        finite = [micro(each) for each in spent if math.isfinite(each)]
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
        """What the values of each type have lost until now."""
        return tuple(self._losses[of] for of in sorted(self._losses))

    @cached_property
    def _losses(self) -> dict[tuple[str, str], Loss]:
        return dict(self._facts.losses)

    def delta(self) -> SessionDelta:
        """What is new."""
        new = {name: ChainMap(dict(getattr(self._facts, name).maps[0])) for name in FACTS}
        return SessionDelta(since=self._since, **new)


def expect(facts: Facts, **keys: Iterable[Any]) -> None:
    """Look several facts up at once that are asked for next, where each look-up would cost (`sql`).

    Args:
        facts: what is known, with a child for what is new.
        **keys: which, by the names of facts.
    """
    asked = [(getattr(facts, kind).maps[-1], found) for kind, found in keys.items()]
    look_up = getattr(asked[0][0], "look_up", None)
    if look_up is not None:
        look_up(asked)


def _expect_given(facts: Facts, given: Sequence[Given]) -> None:
    """Looks up what is asked when placeholders are noted that were given elsewhere."""
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
    """What follows from placeholders that were given: facts about their values, parts and spellings."""
    facts = Facts()
    for each in given:
        _enter(facts, each)
    names = ("placeholders", "values", "forms", "counts", "parts")
    return {name: getattr(facts, name) for name in names}


def _enter(facts: Facts, given: Given) -> None:
    """Enter a placeholder that was given, and what follows from it."""
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
    """Enter what may stand for a name; what may stand for two names stands for neither."""
    for joined, part in parts(type_, value):
        known = into.get((type_, joined))
        if known is None:
            into[type_, joined] = owner, part
        elif known[0] != owner:
            into[type_, joined] = AMBIGUOUS, ""


def _grown(known: ChainMap[Any, Any], new: ChainMap[Any, Any]) -> ChainMap[Any, Any]:
    """Both maps as one, without copying what is known: there are few maps, each at least twice as large as the next.

    So a session of n entries costs n log n in all, and snapshots stay as they are.
    """
    maps = [*new.maps, *known.maps]
    while len(maps) > 1 and 2 * len(maps[0]) > len(maps[1]):
        maps[:2] = [{**maps[1], **maps[0]}]
    return ChainMap(*maps)


def places_of(text: str, given: Sequence[Given]) -> list[tuple[str, str]]:
    """The kinds of places where values stood, where that must be remembered; so for the words of each.

    Args:
        text: the release.
        given: its placeholders, in order.
    """
    found: list[tuple[str, str]] = []
    quoting, fed, awaited = Quoting(), 0, deque(given)
    for released in RELEASED.finditer(text):
        if not awaited or released[1] != awaited[0].inner:
            continue
        each, in_markup = awaited.popleft(), released[0][0] == "&"
        if is_plain(each.value):
            continue
        begin = released.start() - each.quoted * len("&quot;" if in_markup else '"')
        quoting.feed(text[fed:begin])
        fed, kinds = begin, [quoting.place().kind]
        if in_markup:
            kinds.append(markup(text[max(0, begin - BEHIND) : begin]))
        words = {each.value, *each.value.split()}
        found += [(word, kind) for word in words for kind in kinds if tells(word, kind)]
    return found


def _is_said(shown: str, said: Container[str]) -> bool:
    return is_public(shown) or shown in said or all(word in said for word in shown.split())
