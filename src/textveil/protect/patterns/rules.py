"""Rules: how to tell an identifier from other text.

In: patterns, checks, words. Out: `Rule`.
Not here: the identifiers (`accounts`, `net`, `keys`, `people`, `addresses`), and how rules are applied (`patterns`).

Rules run on text in plain form: ASCII digits, dashes, quotes and spaces. Every loop is bounded or possessive, so that
the time is linear in the text.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import regex

from textveil.protect.patterns.checksums import compact

Pattern = regex.Pattern[str]
Check = Callable[[str], bool]

BEFORE = r"(?<![\w@])(?<!\d[.,\-/])"
AFTER = r"(?!\w)(?![.,\-/]\d)"
"""The edges of a number that is not part of a word or of a longer number."""


@dataclass(frozen=True)
class Expression:
    """A regular expression, compiled when it is first tried: most texts need few of them.

    Args:
        source: the expression.
        flags: of `regex`. As they are, spaces are layout, and capitals count as small letters.
    """

    source: str
    flags: int = regex.VERBOSE | regex.IGNORECASE

    @cached_property
    def compiled(self) -> Pattern:
        """The compiled expression."""
        return regex.compile(self.source, self.flags)


class Rule(NamedTuple):
    """The form of one kind of identifier.

    Args:
        type: the type of its spans.
        pattern: the group `value` is the span; without that group, the whole match.
        score: 1 if a checksum or a distinctive form leaves no doubt.
        check: a further test of the span's text.
        context: words, one of which must be near.
        before: whether the identifier may also come before those words.
        leads: for numbers with at most a few letters before their first digit: tried only where such a number starts.
        digits: digits the text must have for the rule to be tried; with `leads`, digits of the number that starts.
        signs: substrings in lower case, one of which the text must have for the rule to be tried.
    """

    type: str
    pattern: Expression
    score: float = 1.0
    check: Check | None = None
    context: Expression | None = None
    before: bool = False
    leads: bool = False
    digits: int = 0
    signs: tuple[str, ...] = ("",)


def words(listed: str) -> dict[str, Any]:
    """A rule's context and signs, from words separated by bars."""
    signs = tuple(listed.lower().split("|"))
    one = "|".join(regex.escape(sign, literal_spaces=True).replace(" ", r"\s") for sign in sorted(signs, key=len)[::-1])
    return {"context": Expression(rf"(?<!\w)(?:{one})(?!\w)", regex.IGNORECASE), "signs": signs}


def listed(names: str) -> frozenset[str]:
    """A set of words from a string."""
    return frozenset(names.split())


def keyed(type_: str, context: str, value: str, *, digits: int = 1, check: Check | None = None) -> Rule:
    """A rule for a value that only the words before it give away."""
    return Rule(
        type_,
        Expression(rf"(?<![\w]) (?P<value>{value}) (?!\w)"),
        score=0.87,
        check=check,
        digits=digits,
        **words(context),
    )


def has_digit(value: str) -> bool:
    """Whether any character is a digit."""
    return any(c.isdigit() for c in value)


def has_digits(value: str) -> bool:
    """Whether it is as long as an issued number, with at least four digits that are at least a third of it."""
    count, whole = sum(c.isdigit() for c in value), len(compact(value))
    return count >= 4 and 3 * count >= whole and 5 <= whole <= 20
