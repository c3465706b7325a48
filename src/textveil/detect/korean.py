"""Korean names: what they are without the particles behind them.

In: a name as it stands in a text. Out: the name without the particle behind it.
Not here: which words are names (the tagger), and the lists (`gazetteers`).
"""

from functools import cache
from typing import NamedTuple

from textveil.detect.gazetteers import names
from textveil.text import vocabulary


class _Korean(NamedTuple):
    family: frozenset[str]
    given: frozenset[str]
    first: frozenset[str]
    second: frozenset[str]
    plain: frozenset[str]


@cache
def _lists() -> _Korean:
    sections = ("family", "given", "first", "second", "plain")
    return _Korean(*(names("hangul", section) for section in sections))


def _stems(word: str) -> list[str]:
    """A word as it stands, and without each particle that it may end with."""
    return [
        word,
        *(
            word[: -len(each)]
            for each in vocabulary.by_language("endings")["ko"]
            if word.endswith(each) and len(word) > len(each) + 1
        ),
    ]


def without_particle(word: str) -> str:
    """A name without the particle behind it, where a listed name is left; else the word as it is."""
    if word in _lists().given or _person(word, weak=True):
        return word
    return next(
        (stem for stem in _stems(word) if stem in _lists().given or _person(stem, weak=False)), word
    )


def _person(stem: str, *, weak: bool) -> bool:
    """Whether a word is a surname and a given name: a listed one, or if `weak` any of fitting syllables."""
    lists = _lists()
    for length in (2, 1):
        family, given = stem[:length], stem[length:]
        if family not in lists.family or stem in lists.plain:
            continue
        long = length == 2 and 1 <= len(given) <= 2 and given[-1] in lists.second
        if given in lists.given or long or (weak and _fits(family, given)):
            return True
    return False


def _fits(family: str, given: str) -> bool:
    """Whether a given name is made of syllables of given names, and its word no ordinary one."""
    first, second = _lists().first, _lists().second
    if len(given) == 2:
        return given[0] in first and given[1] in second
    word = family + given
    return len(word) == 2 and given in first | second and word not in vocabulary.words("no_names")
