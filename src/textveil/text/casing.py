"""The casing of words: read from one word, applied to another.

In: a word. Out: its casing, or the word written in one.
Not here: when casing is copied (`pipeline.release`).
"""

from typing import Literal

from textveil.errors import InputError

Casing = Literal["lower", "title", "upper"]


def casing_of(word: str) -> Casing:
    """The casing of a word: upper (all capitals, two at least), title (the first is a capital), else lower.

    Defined for every string: one capital alone is title, and a script without case is lower.
    """
    cased = [letter for letter in word if letter.isupper() or letter.islower() or letter.istitle()]
    if not cased or cased[0].islower():
        return "lower"
    return "upper" if len(cased) > 1 and all(letter.isupper() for letter in cased) else "title"


def apply_casing(word: str, casing: str) -> str:
    """Write a word in one of the casings; title makes the first cased letter a capital and the others small.

    Raises:
        InputError: the casing is none of the three.
    """
    if casing == "lower":
        return word.lower()
    if casing == "upper":
        return word.upper()
    if casing != "title":
        raise InputError("a casing must be lower, title or upper; use what casing_of returns")
    lowered = word.lower()
    first = next((i for i, letter in enumerate(lowered) if letter.title() != letter), len(lowered))
    return lowered[:first] + lowered[first : first + 1].title() + lowered[first + 1 :]
