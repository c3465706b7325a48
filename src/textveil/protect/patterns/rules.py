"""Rules: how an identifier is told from other text.

In: patterns, checks, words. Out: `Rule`.
Not here: the identifiers (`accounts`, `net`, `keys`, `people`, `addresses`), and how rules are applied (`patterns`).

Rules see a text in plain form: ASCII digits, dashes, quotes and spaces. Every loop is bounded or possessive, so that
the time is linear in the text.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import regex

from textveil.protect.patterns.checksums import compact

Pattern = regex.Pattern[str]
Check = Callable[[str], bool]

BEFORE = r"(?<![\w@])(?<!\d[.,\-/])"
AFTER = r"(?!\w)(?![.,\-/]\d)"
"""The edges of a number: it is no part of a word or of a longer number."""


def compile_pattern(pattern: str) -> Pattern:
    """A pattern without regard to case, with spaces and comments in it."""
    return regex.compile(pattern, regex.VERBOSE | regex.IGNORECASE)


class Rule(NamedTuple):
    """What one kind of identifier looks like.

    Args:
        type: the type of its spans.
        pattern: the group `value` is the span, or the whole match if there is no such group.
        score: 1 where a checksum or a form of its own leaves no doubt.
        check: what must hold for the span's text.
        context: words of which one must stand near.
        before: whether the identifier may also stand before those words.
        leads: whether a digit follows its first few letters, if it has any there: it is tried only at such places.
        digits: how many digits a text has in which it can be, or where `leads`, the run of groups with digits there.
        signs: a text in which it can be has one of these in it, in lower case.
    """

    type: str
    pattern: Pattern
    score: float = 1.0
    check: Check | None = None
    context: Pattern | None = None
    before: bool = False
    leads: bool = False
    digits: int = 0
    signs: tuple[str, ...] = ("",)


def words(listed: str) -> dict[str, Any]:
    """A rule's context and signs, from words with bars between them."""
    signs = tuple(listed.lower().split("|"))
    one = "|".join(regex.escape(sign, literal_spaces=True).replace(" ", r"\s") for sign in sorted(signs, key=len)[::-1])
    return {"context": regex.compile(rf"(?<!\w)(?:{one})(?!\w)", regex.IGNORECASE), "signs": signs}


def listed(names: str) -> frozenset[str]:
    """A set of words from a text."""
    return frozenset(names.split())


def keyed(type_: str, context: str, value: str, *, digits: int = 1, check: Check | None = None) -> Rule:
    """Something that only the words before it tell."""
    return Rule(
        type_,
        compile_pattern(rf"(?<![\w]) (?P<value>{value}) (?!\w)"),
        score=0.87,
        check=check,
        digits=digits,
        **words(context),
    )


def has_digit(value: str) -> bool:
    """Whether one of its characters is a digit."""
    return any(c.isdigit() for c in value)


def has_digits(value: str) -> bool:
    """Whether it has the length of a number that is given out, and four digits or more, a third of it at least."""
    count, whole = sum(c.isdigit() for c in value), len(compact(value))
    return count >= 4 and 3 * count >= whole and 5 <= whole <= 20
