"""Korean names: removes the particles behind them.

In: a name from a text. Out: the name without the particle behind it.
Not here: the search for names (the tagger), and the lists (`gazetteers`).
"""

from functools import cache
from typing import NamedTuple

from textveil.detect.gazetteers import list_names
from textveil.text import vocabulary


class _Korean(NamedTuple):
    family_names: frozenset[str]
    given_names: frozenset[str]
    first: frozenset[str]
    second: frozenset[str]
    plain: frozenset[str]


@cache
def _load_lists() -> _Korean:
    sections = ("family", "given", "first", "second", "plain")
    return _Korean(*(list_names("hangul", section) for section in sections))


def _list_stems(word: str) -> list[str]:
    """Returns a word, and the word without each possible particle."""
    return [
        word,
        *(
            word[: -len(particle)]
            for particle in vocabulary.get_words_by_language("endings")["ko"]
            if word.endswith(particle) and len(word) > len(particle) + 1
        ),
    ]


def remove_particle(word: str) -> str:
    """Removes the particle behind a Korean name, if a listed name remains.

    Otherwise the word is returned unchanged.
    """
    if word in _load_lists().given_names or _is_person(word, weak=True):
        return word
    return next(
        (
            stem
            for stem in _list_stems(word)
            if stem in _load_lists().given_names or _is_person(stem, weak=False)
        ),
        word,
    )


def _is_person(stem: str, *, weak: bool) -> bool:
    """True if a word is a surname followed by a given name.

    The given name must be listed; with `weak`, any given name of fitting syllables counts.
    """
    lists = _load_lists()
    for length in (2, 1):
        family, given_name = stem[:length], stem[length:]
        if family not in lists.family_names or stem in lists.plain:
            continue
        long = length == 2 and 1 <= len(given_name) <= 2 and given_name[-1] in lists.second
        if (
            given_name in lists.given_names
            or long
            or (weak and _has_name_syllables(family, given_name))
        ):
            return True
    return False


def _has_name_syllables(family: str, given_name: str) -> bool:
    """True if a given name has name syllables and is no word."""
    first, second = _load_lists().first, _load_lists().second
    if len(given_name) == 2:
        return given_name[0] in first and given_name[1] in second
    word = family + given_name
    return (
        len(word) == 2
        and given_name in first | second
        and word not in vocabulary.get_words("no_names")
    )
