"""Released texts: items, gaps, and the mask of all else.

In: items, gaps, a mask. Out: `Released`, which is public: everything that later stages, attacks and
measures may see.
Not here: the private words (`tokens`), and how a release is made (`pipeline`).
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from textveil.errors import InputError
from textveil.text.expressions import LazyPattern

_WHITESPACE = LazyPattern(r"(?V1)\s*+")

OPENING, CLOSING = "(?:<|&lt;)", "(?:>|&gt;)"
"""Expressions for the brackets of a placeholder in texts and XML.

Documents of XML and HTML write them as entities.
"""

RELEASED = LazyPattern(f"{OPENING}([A-Z0-9_]++){CLOSING}")
"""A placeholder in a released text; the group is its name."""


class Kind(StrEnum):
    """The source of an item's string.

    A word of the table, a word of the text unchanged (except casing), a placeholder, a moved number
    or date.
    """

    WORD = "word"
    VERBATIM = "verbatim"
    PLACEHOLDER = "placeholder"
    NUMBER = "number"


class Item(NamedTuple):
    """One released item. Public.

    Args:
        text: the released string.
        kind: where the string comes from.
        group: the label of its budget group, or the type of the placeholder.
        start: the first source word that it replaces, counted within its text.
        end: one past the last source word.
    """

    text: str
    kind: Kind
    group: str
    start: int
    end: int


UNKNOWN_SHARE = "share of unknown words"
"""Field of every mask: the share of unknown words.

It is part of every statement and computed from the private text, hence listed with the mask.
"""


MASK_FIELDS = (
    "length",
    "verbatim words",
    "placeholder types",
    "moved numbers",
    "dropped words",
    "equal placeholders",
    "spellings",
    "equal words",
    "groups",
    "pieces per word",
    "casing",
    "spacing",
    UNKNOWN_SHARE,
)
"""All parts of a release besides its words, in statement order."""


@dataclass(frozen=True, kw_only=True)
class Mask:
    """The public part of a release besides the words, without any guarantee.

    It is computed from the private text.

    Args:
        words: number of words in the source text.
        verbatim: positions of items that are unchanged words of the text; their strings are in the
            items.
        placeholders: (position, type) of the placeholders.
        numbers: positions of items that are moved numbers or dates of the text.
        dropped: words of the source text that no item replaces.
        equal: classes of item positions that are known to replace equal words.
        numbered: whether placeholders have a session's numbers, which show equality within it, and
            which ones replace a part of another's name, or another spelling.
        consistent: whether equal words of a group have equal releases, within the text or a
            session, or had in an earlier release of the session that its statement covers.
        drawn_groups: whether groups were drawn at random with their own budget: the statement
            covers them.
        groups: budget group of each item; None if there is only one.
        pieces: number of pieces of each protected word, in the wordpiece unit; None in the word
            unit.
        casing: casing of each item (lower, title or upper); None if it is not re-applied.
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
        """Names of the released parts besides the words, in fixed order."""
        placeholders = {position for position, _ in self.placeholders}
        tied = set(chain.from_iterable(self.equal))
        present = (
            True,
            bool(self.verbatim),
            bool(self.placeholders),
            bool(self.numbers),
            bool(self.dropped),
            bool(tied & placeholders) or (self.numbered and bool(placeholders)),
            self.numbered and bool(placeholders),
            bool(tied - placeholders) or self.consistent,
            self.groups is not None and not self.drawn_groups,
            self.pieces is not None,
            self.casing is not None,
            self.spacing,
        )
        # Not strict: the share of unknown words is listed with the mask, but is no part of it.
        return tuple(name for name, is_there in zip(MASK_FIELDS, present, strict=False) if is_there)

    def to_json(self) -> dict[str, object]:
        """Returns the mask as JSON types, with the names of `fields`.

        None for parts that are not released.
        """
        return {
            "fields": list(self.fields),
            "words": self.words,
            "verbatim": list(self.verbatim),
            "placeholders": [
                {"item": position, "type": type_} for position, type_ in self.placeholders
            ],
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
    """One released text. Public.

    It is everything that later stages, attacks and measures may see.

    Args:
        items: the released items in order.
        gaps: the whitespace before each item and after the last (one more than items).
        mask: what is released besides the words; it must match `items`.

    Raises:
        InputError: lengths do not match, a gap is not whitespace, or the mask differs from the
            items.
    """

    items: tuple[Item, ...]
    gaps: tuple[str, ...]
    mask: Mask

    def __post_init__(self) -> None:
        count = len(self.items)
        if len(self.gaps) != count + 1:
            raise InputError(
                f"a release of {count} items must have {count + 1} gaps, got {len(self.gaps)}"
            )
        if _WHITESPACE.fullmatch("".join(self.gaps)) is None:
            raise InputError(
                "the gaps of a release must be whitespace; put all other characters in items"
            )
        for name, labels in (("groups", self.mask.groups), ("casing", self.mask.casing)):
            if labels is not None and len(labels) != count:
                raise InputError(
                    f"mask.{name} must have one entry per item ({count}), got {len(labels)}"
                )
        self._check_mask()

    def _check_mask(self) -> None:
        """Refuses an incomplete mask, which would make the statement false."""
        placeholders = [position for position, _ in self.mask.placeholders]
        kinds = [item.kind for item in self.items]
        for kind, listed, name, noun in (
            (Kind.VERBATIM, self.mask.verbatim, "mask.verbatim", "verbatim items"),
            (Kind.PLACEHOLDER, placeholders, "mask.placeholders", "placeholders"),
            (Kind.NUMBER, self.mask.numbers, "mask.numbers", "moved numbers"),
        ):
            if {i for i, other in enumerate(kinds) if other is kind} != set(listed):
                raise InputError(f"{name} must list the positions of exactly the {noun}")
        dropped = set(self.mask.dropped)
        if dropped and any(dropped & {*range(item.start, item.end)} for item in self.items):
            raise InputError("mask.dropped must not list a word that an item stands for")

    @property
    def text(self) -> str:
        """The released text: gaps and items alternating."""
        texts = [item.text for item in self.items]
        return "".join(chain.from_iterable(zip(self.gaps, [*texts, ""], strict=True)))

    def mark_equality(self) -> "Released":
        """Returns a copy whose mask says that equality shows.

        Equal words can be recognized, in this text or in others of the session.
        """
        return replace(self, mask=replace(self.mask, consistent=True))

    def to_json(self) -> dict[str, object]:
        """Returns text, items, gaps and mask as JSON types.

        A source range is [start, end) in words.
        """
        return {
            "text": self.text,
            "items": [item._asdict() | {"kind": item.kind.value} for item in self.items],
            "gaps": list(self.gaps),
            "mask": self.mask.to_json(),
        }
