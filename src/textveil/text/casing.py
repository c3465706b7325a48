"""The casing of words: read from one word, applied to another, or taken away.

In: a word. Out: its casing, the word in a given casing, or as it is looked up.
Not here: when casing is copied (`pipeline.release`).
"""

import unicodedata
from typing import Literal

from textveil.errors import InputError

Casing = Literal["lower", "title", "upper"]


def casing_of(word: str) -> Casing:
    """The casing of a word: upper (all capitals, at least two), title (starts with a capital), else lower.

    Defined for any string: a single capital is title, and a script without case is lower.
    """
    if word.islower():
        return "lower"
    cased = list(filter(_is_cased, word))
    if not cased or cased[0].islower():
        return "lower"
    return "upper" if len(cased) > 1 and all(map(str.isupper, cased)) else "title"


def _is_cased(letter: str) -> bool:
    return letter.isupper() or letter.islower() or letter.istitle()


def apply_casing(word: str, casing: str) -> str:
    """A word in one of the casings; title capitalizes the first cased letter and lowers the others.

    Raises:
        InputError: the casing is none of the three.
    """
    if casing == "lower":
        return word.lower()
    if casing == "upper":
        return word.upper()
    if casing != "title":
        raise InputError("a casing must be lower, title or upper; use one from casing_of")
    lowered = word.lower()
    first = next((i for i, letter in enumerate(lowered) if letter.title() != letter), len(lowered))
    return lowered[:first] + lowered[first : first + 1].title() + lowered[first + 1 :]


def folded(word: str) -> str:
    """A word as lists write it: in small letters, without accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word.lower())
    return unicodedata.normalize(
        "NFC", "".join(letter for letter in parts if not unicodedata.combining(letter))
    )
