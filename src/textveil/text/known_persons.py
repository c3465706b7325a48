"""Known persons: says whether a name is that of somebody publicly known.

In: a name as it stands in a text. Out: whether it is on the list.
Not here: how the list is made (`training/known_persons.py`), and what follows from a name on it
(`textveil.detect`).

The list is exact: there are no false hits. It has full names; a single name is on it only where
people ask about somebody by that name alone. A listed name may be anybody's: it says who may be
public, never who is.
"""

import gzip
from bisect import bisect_left
from functools import cache
from importlib import resources

import numpy as np
import regex

from textveil.randomness import Ints
from textveil.text.casing import fold_word
from textveil.text.vocabulary import get_words

_SEPARATOR = regex.compile(r"[\s\p{P}\p{S}]+")
_POSSESSIVE = regex.compile(r"['’]s?\s*\Z")
_APOSTROPHE = regex.compile(r"(?<=\p{L})['’ʼ](?=\p{L})")
_SWAPPED = regex.compile(r"(\p{L}[\p{L}\p{M}'’ -]*),\s+(\p{L}[^,]*)")
"""A family name, a comma, and the rest of the name."""

SUFFIXES = frozenset(("jr", "sr", "ii", "iii", "iv"))
"""What stands behind a family name and tells only the son from the father."""


def fold_name(name: str) -> str:
    """Folds a name: small letters without accents, one space between words."""
    words = _SEPARATOR.split(_APOSTROPHE.sub("", fold_word(_POSSESSIVE.sub("", name))))
    return " ".join(filter(None, words))


def shorten_name(name: str) -> str:
    """Omits titles, initials and suffixes from a folded name; two words stay at least."""
    words = name.split()
    while len(words) > 2 and words[0] in _list_titles():
        words = words[1:]
    short = [word for word in words if len(word) > 1 and word not in SUFFIXES]
    return " ".join(short if len(short) > 1 else words)


def is_known_person(name: str) -> bool:
    """Says whether a name is on the list of known persons.

    With or without titles and middle names, and with the family name first and a comma.
    """
    swapped = _SWAPPED.fullmatch(name)
    whole = fold_name(name if swapped is None else f"{swapped[2]} {swapped[1]}")
    short = shorten_name(whole)
    words = short.split()
    forms = {whole, short, " ".join(words[:: max(1, len(words) - 1)])}
    return any(map(_is_listed, forms))


@cache
def _list_titles() -> frozenset[str]:
    return frozenset(
        fold_name(title)
        for name in ("titles", "titles_with_stop", "titles_or_names")
        for title in get_words(name)
    )


def _is_listed(folded: str) -> bool:
    """Says whether a folded name is on the list."""
    names, starts = _read()
    name = folded.encode()

    def get_name(number: int) -> bytes:
        return names[starts[number] : starts[number + 1] - 1]

    count = len(starts) - 1
    number = bisect_left(range(count), name, key=get_name)
    return number < count and get_name(number) == name


@cache
def _read() -> tuple[bytes, Ints]:
    """Reads the list: its sorted lines, and where each begins.

    As lines and not as strings, it takes a fifth of the memory and of the time to read.
    """
    file = resources.files("textveil").joinpath("data/lexicon/known_persons.txt.gz")
    lines = gzip.decompress(file.read_bytes())
    names = lines[lines.rindex(b"\n#") + 1 :].partition(b"\n")[2]  # without the remarks at its head
    ends = np.flatnonzero(np.frombuffer(names, np.uint8) == ord("\n"))
    return names, np.concatenate(([0], ends + 1))
