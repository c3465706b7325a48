"""Gazetteers: the bundled lists of names in other scripts and languages, read when a text first needs them.

In: a script. Out: its sections: given and family names, words that look like names, famous people.
Not here: how the lists were made (`training/gazetteers.py`), and what is found with them (the modules beside).
"""

import gzip
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

CERTAIN, DOUBTFUL = 0.9, 0.6
"""Scores of a name; one that is doubtful needs a text that is about private persons."""


Words = list[tuple[str, int, int]]
"""Words of a text as they are compared, each with its first character and one past its last."""


class FoundName(NamedTuple):
    """A name in one text.

    Args:
        start: first character.
        end: one past the last.
        type: of `textveil.protect.spans.NAMES`.
        cue: whether a title, a label or the words around it say that this is a person one deals with.
        public: whether it is on a list of famous names.
        score: from 0 to 1.
    """

    start: int
    end: int
    type: str
    cue: bool
    public: bool
    score: float = CERTAIN


@cache
def gazetteer(script: str) -> Mapping[str, tuple[str, ...]]:
    """The sections of a bundled gazetteer.

    Source: Faker, the dictionaries of jieba and Janome, and lists written by hand; see `training/gazetteers.py`.
    """
    packed = files("textveil").joinpath("data", "names", f"{script}.txt.gz").read_bytes()
    sections: dict[str, tuple[str, ...]] = {}
    for part in gzip.decompress(packed).decode("utf-8").split("[")[1:]:
        name, _, items = part.partition("]\n")
        sections[name] = tuple(items.split("\n"))
    return sections


@cache
def names(script: str, *sections: str) -> frozenset[str]:
    """The items of some sections together."""
    return frozenset(item for section in sections for item in gazetteer(script)[section] if item)


def one_by_one(
    text: str, words: Words, at: Callable[[str, Words, int], tuple[FoundName | None, int]]
) -> list[FoundName]:
    """The names that begin at the words of a text, from the first word on.

    Args:
        text: the text.
        words: its words, each with its place.
        at: the name that begins at a word, if any, and the word to go on with.
    """
    found: list[FoundName] = []
    i = 0
    while i < len(words):
        name, i = at(text, words, i)
        if name is not None:
            found.append(name)
    return found
