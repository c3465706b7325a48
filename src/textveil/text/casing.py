"""The casing of words: read from one word, applied to another.

In: a word. Out: its casing, or the word in a given casing.
Not here: when casing is copied (`pipeline.release`).
"""

from typing import Literal

from textveil.errors import InputError

Casing = Literal["lower", "title", "upper"]


def casing_of(word: str) -> Casing:
    """The casing of a word: upper (all capitals, at least two), title (starts with a capital), else lower.

    Defined for any string: a single capital is title, and a script without case is lower.
    """
    cased = [letter for letter in word if letter.isupper() or letter.islower() or letter.istitle()]
    if not cased or cased[0].islower():
        return "lower"
    return "upper" if len(cased) > 1 and all(letter.isupper() for letter in cased) else "title"


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
