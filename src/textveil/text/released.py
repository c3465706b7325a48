"""Released texts: the items, the gaps between them, and the mask of what shows besides the words.

In: items, gaps, a mask. Out: `Released`, which is public: all that later stages, attacks and measures may see.
Not here: the private words (`tokens`), and how a release is made (`pipeline`).
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

import regex

from textveil.errors import InputError

_WHITESPACE = regex.compile(r"(?V1)\s*+")


class Kind(StrEnum):
    """What an item is: a word of the table, a word as it stood (but for its casing), a placeholder, a moved number."""

    WORD = "word"
    VERBATIM = "verbatim"
    PLACEHOLDER = "placeholder"
    NUMBER = "number"


class Item(NamedTuple):
    """One released item. Public.

    Args:
        text: the released string.
        kind: where the string comes from.
        group: the label of its budget group or the type of the placeholder.
        start: first source word it stands for, counted in its own text.
        end: the source word after the last.
    """

    text: str
    kind: Kind
    group: str
    start: int
    end: int


UNKNOWN_SHARE = "share of unknown words"
"""Stands in every statement, and is computed from the private text: so it is named with the mask."""


MASK_FIELDS = (
    "length",
    "verbatim words",
    "placeholder types",
    "moved numbers",
    "dropped words",
    "equal placeholders",
    "equal words",
    "groups",
    "pieces per word",
    "casing",
    "spacing",
    UNKNOWN_SHARE,
)
"""Everything that a release can show besides its words, in the order of statements."""


@dataclass(frozen=True, kw_only=True)
class Mask:
    """What a release shows besides the released words. Public; nothing is claimed about it.

    It is computed from the private text.

    Args:
        words: number of words of the source text.
        verbatim: positions of items that are words of the text as they stood; their strings are in the items.
        placeholders: (position, type) of the placeholders.
        numbers: positions of items that are a number of the text, moved up.
        dropped: words of the source text that no item stands for.
        equal: classes of item positions that are known to stand for equal words.
        numbered: whether placeholders carry a session's numbers, which show equality within it.
        consistent: whether equal words of a group have equal releases, within the text or a session.
        drawn_groups: whether groups were drawn at random under a budget of their own: the statement covers them.
        groups: budget group of each item; None when there is only one.
        pieces: number of pieces of each protected word in the wordpiece unit; None in the word unit.
        casing: casing of each item (lower, title or upper); None when it is not re-applied.
        spacing: whether the whitespace of the source is released.
    """

    words: int
    verbatim: tuple[int, ...] = ()
    placeholders: tuple[tuple[int, str], ...] = ()
    numbers: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    equal: tuple[tuple[int, ...], ...] = ()
    numbered: bool = False
    consistent: bool = False
    drawn_groups: bool = False
    groups: tuple[str, ...] | None = None
    pieces: tuple[int, ...] | None = None
    casing: tuple[str, ...] | None = None
    spacing: bool = True

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of what is in fact released besides the words, always in the same order."""
        placeholders = {position for position, _ in self.placeholders}
        tied = set(chain.from_iterable(self.equal))
        present = (
            True,
            bool(self.verbatim),
            bool(self.placeholders),
            bool(self.numbers),
            bool(self.dropped),
            bool(tied & placeholders) or (self.numbered and bool(placeholders)),
            bool(tied - placeholders) or self.consistent,
            self.groups is not None and not self.drawn_groups,
            self.pieces is not None,
            self.casing is not None,
            self.spacing,
        )
        return tuple(name for name, is_there in zip(MASK_FIELDS, present, strict=False) if is_there)

    def to_json(self) -> dict[str, object]:
        """All of it as JSON types, with the names of `fields`; None where a part is not released."""
        return {
            "fields": list(self.fields),
            "words": self.words,
            "verbatim": list(self.verbatim),
            "placeholders": [{"item": position, "type": type_} for position, type_ in self.placeholders],
            "numbers": list(self.numbers),
            "dropped": list(self.dropped),
            "equal": [list(positions) for positions in self.equal],
            "numbered": self.numbered,
            "consistent": self.consistent,
            "drawn_groups": self.drawn_groups,
            "groups": None if self.groups is None else list(self.groups),
            "pieces": None if self.pieces is None else list(self.pieces),
            "casing": None if self.casing is None else list(self.casing),
            "spacing": self.spacing,
        }


@dataclass(frozen=True, kw_only=True)
class Released:
    """One released text. Public: all that later stages, attacks and metrics may see.

    Args:
        items: the released items in order.
        gaps: the whitespace before each item and after the last (one more than items).
        mask: what is released besides the words; it must say the truth about `items`.

    Raises:
        InputError: lengths do not fit, a gap is not whitespace, or the mask differs from the items.
    """

    items: tuple[Item, ...]
    gaps: tuple[str, ...]
    mask: Mask

    def __post_init__(self) -> None:
        count = len(self.items)
        if len(self.gaps) != count + 1:
            raise InputError(f"a release of {count} items must have {count + 1} gaps; {len(self.gaps)} were given")
        if _WHITESPACE.fullmatch("".join(self.gaps)) is None:
            raise InputError("the gaps of a release must be whitespace; put every other character in an item")
        for name, labels in (("groups", self.mask.groups), ("casing", self.mask.casing)):
            if labels is not None and len(labels) != count:
                raise InputError(f"mask.{name} must have one entry per item ({count}); {len(labels)} were given")
        # A mask that leaves something out would make the printed statement untrue.
        if self._positions(Kind.VERBATIM) != set(self.mask.verbatim):
            raise InputError("mask.verbatim must list the positions of all verbatim items and of no others")
        if self._positions(Kind.PLACEHOLDER) != {position for position, _ in self.mask.placeholders}:
            raise InputError("mask.placeholders must list the positions of all placeholders and of no others")
        if self._positions(Kind.NUMBER) != set(self.mask.numbers):
            raise InputError("mask.numbers must list the positions of all numbers that were moved and of no others")
        dropped = set(self.mask.dropped)
        if dropped and any(not dropped.isdisjoint(range(item.start, item.end)) for item in self.items):
            raise InputError("mask.dropped must list no word that an item stands for")

    def _positions(self, kind: Kind) -> set[int]:
        return {i for i, item in enumerate(self.items) if item.kind is kind}

    @property
    def text(self) -> str:
        """The released text: gaps and items in turn."""
        texts = [item.text for item in self.items]
        return "".join(chain.from_iterable(zip(self.gaps, [*texts, ""], strict=True)))

    def to_json(self) -> dict[str, object]:
        """Text, items, gaps and mask as JSON types; a source range is [start, end) in words."""
        return {
            "text": self.text,
            "items": [item._asdict() | {"kind": item.kind.value} for item in self.items],
            "gaps": list(self.gaps),
            "mask": self.mask.to_json(),
        }
