"""Examples after release: an example is privatized as one text, and its fields are told apart again.

In: examples, a privatizer's results. Out: `ReleasedExample`s, each with one `ReleasedField` per field.
Not here: how a trial is judged (`tasks`), and the attacks, which see the one text (`attack`).

The fields of an example are one text, with an empty line between them: a question and its paragraph leave together, and
where equal words of a text have equal releases, they have them in both.
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

BETWEEN = "\n\n"


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedField:
    """What was released of one field. Secret: it knows the original.

    Attributes:
        items: the released items, with source words counted in the field.
        gaps: the whitespace before each item and after the last.
        original: the field's text as it was.
        starts: where each word of the original begins.
        ends: where it ends.
    """

    items: tuple[Item, ...] = field(repr=False)
    gaps: tuple[str, ...]
    original: str = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)
    ends: tuple[int, ...] = field(repr=False)

    @cached_property
    def text(self) -> str:
        """The released text."""
        return "".join(gap + item for gap, item in zip(self.gaps, [*(i.text for i in self.items), ""], strict=True))

    @cached_property
    def _places(self) -> list[int]:
        """Where each item ends in the released text."""
        return list(accumulate(len(gap) + len(item.text) for gap, item in zip(self.gaps, self.items, strict=False)))

    def behind(self, start: int, end: int) -> str:
        """What stood in the original where a span of the released text is: what the owner of the text reads there.

        Args:
            start: first character of the span in `text`.
            end: the character after its last.

        Returns:
            the original from the first to the last word that an item of the span stands for; "" where there is none.
        """
        touched = [
            item
            for item, stop in zip(self.items, self._places, strict=True)
            if stop > start and stop - len(item.text) < end and item.end > item.start
        ]
        if not touched:
            return ""
        first, last = min(item.start for item in touched), max(item.end for item in touched)
        return self.original[self.starts[first] : self.ends[last - 1]]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedExample:
    """An example and what was released of it. Secret.

    Attributes:
        example: as it was.
        parts: one for each field.
    """

    example: Example
    parts: tuple[ReleasedField, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The released text of each field."""
        return tuple(part.text for part in self.parts)

    @classmethod
    def untouched(cls, example: Example) -> Self:
        """An example of which everything is released as it was: the baseline `identity`."""
        return cls(example=example, parts=tuple(map(_as_it_was, example.texts)))


def joined(example: Example) -> str:
    """The fields of an example as the one text that is privatized."""
    return BETWEEN.join(example.texts)


def trials(examples: Sequence[Example], results: Sequence[Result]) -> list[ReleasedExample]:
    """Tells the fields apart again.

    Args:
        examples: B examples.
        results: what was released of `joined` of each, with its original. What stands for several words counts as
            one word there, and as all of them in a part.

    Raises:
        InputError: an item stands for words of two fields.
    """
    return [
        ReleasedExample(example=example, parts=tuple(_parts(example, result.released, result.private.words)))
        for example, result in zip(examples, results, strict=True)
    ]


def _parts(example: Example, released: Released, words: Sequence[str]) -> list[ReleasedField]:
    """The fields; `words` are those that items count, of which one may be several of the text's."""
    tokens = tokenize(example.texts)
    bounds = tokens.documents.tolist()
    places = source_places(joined(example), words)
    given = [item._replace(start=places[item.start], end=places[item.end]) for item in released.items]
    owners = [bisect_right(bounds, item.start) - 1 for item in given]
    parts = []
    for b, (first, stop) in enumerate(pairwise(bounds)):
        own = [i for i, owner in enumerate(owners) if owner == b]
        if any(given[i].end > stop for i in own):
            raise InputError("an item must stand for words of one field, and stands for words of two")
        items = tuple(given[i]._replace(start=given[i].start - first, end=given[i].end - first) for i in own)
        gaps = ("", *(released.gaps[i] for i in own[1:]), "") if own else ("",)
        inside = slice(first, stop)
        parts.append(
            ReleasedField(
                items=items,
                gaps=gaps,
                original=example.texts[b],
                starts=tuple(tokens.starts[inside].tolist()),
                ends=tuple(tokens.ends[inside].tolist()),
            )
        )
    return parts


def source_places(text: str, words: Sequence[str]) -> list[int]:
    """Which word of a text each word of a release begins at, and how many the text has: of those several may be one.

    Args:
        text: the original.
        words: of the original, in order; all of it but whitespace.
    """
    starts = tokenize([text]).starts.tolist()
    places, end = [], 0
    for word in words:
        begin = text.index(word, end)
        places.append(bisect_left(starts, begin))
        end = begin + len(word)
    return [*places, len(starts)]


def _as_it_was(text: str) -> ReleasedField:
    tokens = tokenize([text])
    items = tuple(
        Item(text=word, kind=Kind.VERBATIM, group="", start=i, end=i + 1) for i, word in enumerate(tokens.words)
    )
    return ReleasedField(
        items=items,
        gaps=tuple(tokens.gaps(0)),
        original=text,
        starts=tuple(tokens.starts.tolist()),
        ends=tuple(tokens.ends.tolist()),
    )
