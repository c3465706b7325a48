"""What a session knows, and what one release adds to it.

In: values that became placeholders, names that were replaced, words that passed, rows that were drawn. Out: the
same placeholder for the same value, the same row for the same word; a `SessionDelta` with what is new.
Not here: who keeps it and lets threads take turns (`state`), and how an answer is searched (`restore`).
"""

import re
from collections import ChainMap
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

from textveil.session.restore import Key, Node, fold, tree
from textveil.text import is_public

_SPELLED = re.compile(r"<[A-Z0-9_]+_[0-9]+>")


class Given(NamedTuple):
    """A placeholder and the value that it stands for. Secret.

    Args:
        type: what stands there, upper-case ("PERSON").
        number: counted for each type from 1.
        value: as it was first written.
    """

    type: str
    number: int
    value: str

    @property
    def shown(self) -> str:
        """The placeholder: `<PERSON_1>`."""
        return f"<{self.type}_{self.number}>"


class Replaced(NamedTuple):
    """A released name and the original that it stands for, both as they were first written. Secret."""

    shown: str
    original: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """What is remembered, by how it is compared (`fold`). Secret: it holds originals.

    What is committed does not change any more.

    Attributes:
        placeholders: by (type, value).
        counts: the last number of each type.
        replaced: by (shown, original).
        owners: for released names that must lead back, the one original that they stand for.
        said: words that were released as they stood, as keys: in an answer they are themselves.
        spelled: placeholders that a text spelled itself, as keys; no value gets one of those.
        drawn: table rows of words that are released alike, by (law, word, group).
    """

    placeholders: ChainMap[tuple[str, str], Given] = field(default_factory=ChainMap, repr=False)
    counts: ChainMap[str, int] = field(default_factory=ChainMap)
    replaced: ChainMap[tuple[str, str], Replaced] = field(default_factory=ChainMap, repr=False)
    owners: ChainMap[str, str] = field(default_factory=ChainMap, repr=False)
    said: ChainMap[str, None] = field(default_factory=ChainMap, repr=False)
    spelled: ChainMap[str, None] = field(default_factory=ChainMap)
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
        known = {name: _grown(getattr(self, name), new) for name in FACTS if (new := getattr(delta, name))}
        return replace(self, version=self.version + 1, **known)

    @cached_property
    def tree(self) -> Node:
        """The keys to look for in an answer."""
        originals: dict[str, list[Replaced]] = {}
        for (shown, _), pair in self.replaced.items():
            originals.setdefault(shown, []).append(pair)
        names = []
        for shown, (first, *others) in originals.items():
            certain = not others and not _is_said(shown, self.said)
            names.append(Key(first.shown, first.original if certain else None, "name"))
        values = {given.shown: given.value for given in self.placeholders.values()}
        return tree(values, names, frozenset(self.said))


class Notes:
    """What one release adds to a snapshot, noted while the release is spelled. For one thread.

    Args:
        known: the snapshot. It stays as it is.
    """

    def __init__(self, known: Snapshot) -> None:
        self._since = known.version
        # What is new is written to the children.
        self._facts = Facts(**{name: getattr(known, name).new_child() for name in FACTS})

    def placeholder(self, type_: str, value: str) -> str:
        """The placeholder of a value: `<TYPE_1>`, `<TYPE_2>`, ... in order of first appearance.

        Args:
            type_: what stands there, upper-case ("PERSON").
            value: the private text; the first spelling of a value is the one that comes back.
        """
        facts, key = self._facts, (type_, fold(value))
        if key not in facts.placeholders:
            given = Given(type_, facts.counts.get(type_, 0) + 1, value)
            while given.shown in facts.spelled:
                given = given._replace(number=given.number + 1)
            facts.counts[type_] = given.number
            facts.placeholders[key] = given
        return facts.placeholders[key].shown

    def spelled(self, released: str) -> None:
        """Note placeholders that a text itself spells: no value gets one of those from now on.

        Args:
            released: what of the text passes. Of words that do not, a placeholder's number would tell.
        """
        for found in _SPELLED.findall(released.upper()):
            self._facts.spelled.setdefault(found, None)

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
        for word in words:
            self._facts.said.setdefault(fold(word), None)

    def consistent(self, law: str, keys: Sequence[tuple[str, str]], rows: Sequence[int]) -> list[int]:
        """The row of each word: the one first drawn in this session, or the given one for words that are new.

        Args:
            law: what the rows were drawn by; rows of another law do not count.
            keys: (word, group) of each; letter case is ignored.
            rows: the rows to take for words that are new.
        """
        drawn = self._facts.drawn
        return [drawn.setdefault((law, fold(word), group), row) for (word, group), row in zip(keys, rows, strict=True)]

    def delta(self) -> SessionDelta:
        """What is new."""
        new = {name: ChainMap(dict(getattr(self._facts, name).maps[0])) for name in FACTS}
        return SessionDelta(since=self._since, **new)


def _grown(known: ChainMap[Any, Any], new: ChainMap[Any, Any]) -> ChainMap[Any, Any]:
    """Both maps as one, without copying what is known: there are few maps, each at least twice as large as the next.

    So a session of n entries costs n log n in all, and snapshots stay as they are.
    """
    maps = [*new.maps, *known.maps]
    while len(maps) > 1 and 2 * len(maps[0]) > len(maps[1]):
        maps[:2] = [{**maps[1], **maps[0]}]
    return ChainMap(*maps)


def _is_said(shown: str, said: Container[str]) -> bool:
    return is_public(shown) or shown in said or all(word in said for word in shown.split())
