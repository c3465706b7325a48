"""Released examples: each is privatized as one text, then split into fields.

In: examples, a privatizer's results. Out: `ReleasedExample`s, each with one `ReleasedField` per
field.
Not here: how they are judged (`tasks`), and the attacks, which see the whole text (`attack`).

The fields of an example form one text, separated by an empty line: a question and its paragraph are
released together. If equal words of a text have equal releases, that holds across both.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Self

from textveil.errors import InputError
from textveil.pipeline import Result
from textveil.text import Item, Kind, Released, tokenize
from textveil_bench.examples import Example

FIELD_SEPARATOR = "\n\n"


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedField:
    """The release of one field. Secret: it contains the original.

    Attributes:
        items: the released items, with source words counted within the field.
        gaps: the whitespace before each item and after the last.
        original: the field's original text.
        starts: start of each word of the original, in characters.
        ends: end of each word.
    """

    items: tuple[Item, ...] = field(repr=False)
    gaps: tuple[str, ...]
    original: str = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)
    ends: tuple[int, ...] = field(repr=False)

    @cached_property
    def text(self) -> str:
        """The released text."""
        return "".join(
            gap + item
            for gap, item in zip(self.gaps, [*(i.text for i in self.items), ""], strict=True)
        )

    @cached_property
    def _item_ends(self) -> list[int]:
        """End of each item in the released text, in characters."""
        return list(
            accumulate(
                len(gap) + len(item.text) for gap, item in zip(self.gaps, self.items, strict=False)
            )
        )

    def find_original(self, start: int, end: int) -> str:
        """Returns the original text behind a span of the released text.

        Args:
            start: first character of the span in `text`.
            end: one past its last character.

        Returns:
            the original from the first to the last word that the span's items replace; "" if there
            is none.
        """
        overlapping_items = [
            item
            for item, stop in zip(self.items, self._item_ends, strict=True)
            if stop > start and stop - len(item.text) < end and item.end > item.start
        ]
        if not overlapping_items:
            return ""
        first, last = (
            min(item.start for item in overlapping_items),
            max(item.end for item in overlapping_items),
        )
        return self.original[self.starts[first] : self.ends[last - 1]]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedExample:
    """An example and its release. Secret: it contains the original.

    Attributes:
        example: the original.
        parts: one for each field.
    """

    example: Example
    parts: tuple[ReleasedField, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The released text of each field."""
        return tuple(part.text for part in self.parts)

    @classmethod
    def build_unchanged(cls, example: Example) -> Self:
        """Builds an example released without changes, for the baseline `identity`."""
        return cls(example=example, parts=tuple(map(_build_unchanged_field, example.texts)))


def join_fields(example: Example) -> str:
    """Joins the fields of an example into one text, which is privatized."""
    return FIELD_SEPARATOR.join(example.texts)


def split_releases(examples: Sequence[Example], results: Sequence[Result]) -> list[ReleasedExample]:
    """Splits releases into the fields of their examples.

    Args:
        examples: B examples.
        results: the release of each example's `join_fields`, with its original. An item that
            replaces several words counts as one word there, and as all of them in a field.

    Raises:
        InputError: an item replaces words of two fields.
    """
    return [
        ReleasedExample(
            example=example,
            parts=tuple(_split_fields(example, result.released, result.private.words)),
        )
        for example, result in zip(examples, results, strict=True)
    ]


def _split_fields(
    example: Example, released: Released, words: Sequence[str]
) -> list[ReleasedField]:
    """Splits a release into fields; `words` are the units that items count."""
    tokens = tokenize(example.texts)
    bounds = tokens.documents.tolist()
    places = find_source_places(join_fields(example), words)
    source_items = [
        item._replace(start=places[item.start], end=places[item.end]) for item in released.items
    ]
    owners = [bisect_right(bounds, item.start) - 1 for item in source_items]
    parts = []
    for b, (first, stop) in enumerate(pairwise(bounds)):
        indices = [i for i, owner in enumerate(owners) if owner == b]
        if any(source_items[i].end > stop for i in indices):
            raise InputError("an item replaces words of two fields; each must stay within one")
        items = tuple(
            source_items[i]._replace(
                start=source_items[i].start - first, end=source_items[i].end - first
            )
            for i in indices
        )
        gaps = ("", *(released.gaps[i] for i in indices[1:]), "") if indices else ("",)
        span = slice(first, stop)
        parts.append(
            ReleasedField(
                items=items,
                gaps=gaps,
                original=example.texts[b],
                starts=tuple(tokens.starts[span].tolist()),
                ends=tuple(tokens.ends[span].tolist()),
            )
        )
    return parts


def find_source_places(text: str, words: Sequence[str]) -> list[int]:
    """Finds the text word at which each released unit starts.

    Args:
        text: the original.
        words: units of the original, in order, covering all of it but whitespace; a unit may be
            several words.

    Returns:
        an index per unit, and the text's word count.
    """
    starts = tokenize([text]).starts.tolist()
    places, end = [], 0
    for word in words:
        begin = text.index(word, end)
        places.append(bisect_left(starts, begin))
        end = begin + len(word)
    return [*places, len(starts)]


def _build_unchanged_field(text: str) -> ReleasedField:
    tokens = tokenize([text])
    items = tuple(
        Item(text=word, kind=Kind.VERBATIM, group="", start=i, end=i + 1)
        for i, word in enumerate(tokens.words)
    )
    return ReleasedField(
        items=items,
        gaps=tuple(tokens.get_gaps(0)),
        original=text,
        starts=tuple(tokens.starts.tolist()),
        ends=tuple(tokens.ends.tolist()),
    )
