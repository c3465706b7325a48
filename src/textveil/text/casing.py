"""The casing of words: read from one word, applied to another.

In: a word. Out: its casing, the word in a given casing, or its lookup form without casing.
Not here: when casing is copied (`pipeline.release`).
"""

import unicodedata
from typing import Literal

from textveil.errors import InputError

Casing = Literal["lower", "title", "upper"]


def get_casing(word: str) -> Casing:
    """Returns the casing of a word: upper, title or lower.

    upper: all capitals, at least two; title: starts with a capital; else lower. Defined for any
    string: a single capital is title, and a script without case is lower.
    """
    if word.islower():
        return "lower"
    cased = list(filter(_has_case, word))
    if not cased or cased[0].islower():
        return "lower"
    return "upper" if len(cased) > 1 and all(map(str.isupper, cased)) else "title"


def _has_case(letter: str) -> bool:
    return letter.isupper() or letter.islower() or letter.istitle()


def apply_casing(word: str, casing: str) -> str:
    """Returns a word in one of the casings.

    title capitalizes the first cased letter and lowers the others.

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
    # Some letters have a title form that is not their capital: ǆ, ǅ, Ǆ.
    first = next((i for i, letter in enumerate(lowered) if letter.title() != letter), len(lowered))
    return lowered[:first] + lowered[first : first + 1].title() + lowered[first + 1 :]


def fold_word(word: str) -> str:
    """Folds a word to lower case without accents, as in the lists."""
    if word.isascii():
        return word.lower()
    # NFKD also takes Hangul syllables apart; NFC puts them together again.
    parts = unicodedata.normalize("NFKD", word.lower())
    return unicodedata.normalize(
        "NFC", "".join(letter for letter in parts if not unicodedata.combining(letter))
    )
