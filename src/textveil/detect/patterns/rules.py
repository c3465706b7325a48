"""Rules: how to tell an identifier from other text.

In: patterns, checks, words. Out: `Rule`.
Not here: the identifiers (`accounts`, `net`, `secrets`, `people`, `addresses`), and how rules are applied (`patterns`).

Rules run on text in plain form: ASCII digits, dashes, quotes and spaces; in it, letters of scripts that need no space
between a word and a number (Chinese, Korean, Arabic, Hindi, ...) are one mark, `FOREIGN`, which ends words. Every loop
is bounded or possessive, so that the time is linear in the text.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import regex

from textveil.detect.patterns.checksums import compact
from textveil.detect.spans import NUMBERS
from textveil.text import Late

Pattern = regex.Pattern[str]
Check = Callable[[str], bool]

FOREIGN = "\x01"
"""Stands for every letter of a script that needs no space between a word and a number."""
_SCRIPTS = r"""\p{Han}\p{Hiragana}\p{Katakana}ー\uff70\uff9e\uff9f\p{Hangul}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}
    \p{Myanmar}\p{Arabic}\p{Hebrew}\p{Devanagari}\p{Bengali}\p{Tamil}\p{Telugu}\p{Gujarati}\p{Gurmukhi}\p{Kannada}
    \p{Malayalam}\p{Oriya}\p{Sinhala}""".replace("\n", "").replace(" ", "")
_LETTERS = Late(rf"(?V1)[[{_SCRIPTS}]&&[\p{{L}}\p{{M}}]]")

NUMBERED = NUMBERS | {"PLATE"}
"""Types that have figures in them."""
_COUNTED = frozenset(("1234567890" * 3)[:size] for size in range(10, 31)) | {"0123456789"}


def _joins(character: str) -> bool:
    """Whether a character beside a word makes it a part of a longer one."""
    return character.isalnum() and (character.isascii() or not _LETTERS.match(character))


_BASES = {
    code: base
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))
    if (base := unicodedata.normalize("NFD", chr(code).replace("đ", "d"))[0]).isascii()
    and base.isalpha()
}


def without_foreign(plain: str) -> str:
    """A text in plain form with `FOREIGN` for letters of scripts that need no spaces; of the same length."""
    return plain if plain.isascii() else _LETTERS.sub(FOREIGN, plain)


class Folded(NamedTuple):
    """A text in small letters with spaces for line ends, dashes and underscores, in which context words are sought.

    Args:
        text: the text.
        runs: the runs of letters and digits that it has, where letters of foreign scripts end a run.
    """

    text: str
    runs: frozenset[str]

    def __repr__(self) -> str:
        return "Folded()"


def folded(plain: str) -> Folded:
    """A text in plain form, folded."""
    text = _fold(plain)
    return Folded(text, frozenset(_RUN.findall(without_foreign(text))))


def _fold(plain: str) -> str:
    return plain.lower().translate(_BLANKS)


_RUN = re.compile(r"[^\W_]+")

_BLANKS = {**{ord(c): " " for c in "\n-_"}, ord("ı"): "i"}

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


@dataclass(frozen=True)
class Words:
    """Context words, separated by bars; a star stands for any letters before or after.

    A word of eight letters and more is also found without its accents. Words of scripts without spaces are found
    inside other words.
    """

    listed: str

    @cached_property
    def signs(self) -> dict[str, tuple[bool, bool]]:
        """Each word in folded form, and whether it must begin and end where it stands."""
        signs = {}
        for word in self.listed.split("|"):
            sign = _fold(word.strip("*"))
            begins, ends = word[0] != "*", word[-1] != "*"
            edges = begins and not _LETTERS.match(sign[0]), ends and not _LETTERS.match(sign[-1])
            signs[sign] = edges
            if len(sign) >= 8:
                signs.setdefault(sign.translate(_BASES), edges)
        return signs

    @cached_property
    def _by_run(self) -> dict[str, list[str]]:
        """Words by the run of letters that a text with them must have; those that may stand inside a run by none."""
        found: dict[str, list[str]] = {"": []}
        for sign, (begins, ends) in self.signs.items():
            first = _RUN.match(sign)
            whole = first is not None and begins and (first.end() < len(sign) or ends)
            found.setdefault(first[0] if whole and first else "", []).append(sign)
        return found

    @cached_property
    def _runs(self) -> frozenset[str]:
        return frozenset(self._by_run)

    @cached_property
    def _ascii(self) -> list[str]:
        """Words that may stand inside a run, those of ASCII."""
        return list(filter(str.isascii, self._by_run[""]))

    def find(self, folded: Folded) -> Iterator[tuple[int, int]]:
        """Starts and ends of the words in a folded text, word by word."""
        told = folded.text
        inside = self._ascii if told.isascii() else self._by_run[""]
        runs = sorted(self._runs & folded.runs)
        for sign in (*inside, *(sign for run in runs for sign in self._by_run[run])):
            stop = 0
            while (at := told.find(sign, stop)) >= 0:
                stop = at + len(sign)
                if self._stands_alone(sign, told, at, stop):
                    yield at, stop

    def _stands_alone(self, sign: str, told: str, at: int, stop: int) -> bool:
        """Whether a word begins and ends where it stands, as far as it must."""
        begins, ends = self.signs[sign]
        return not (begins and at and _joins(told[at - 1])) and not (
            ends and _joins(told[stop : stop + 1])
        )


class Rule(NamedTuple):
    """The form of one kind of identifier.

    Args:
        type: the type of its spans.
        pattern: the group `value` is the span; without that group, the whole match.
        score: 1 if a checksum or a distinctive form leaves no doubt.
        check: a further test of the span's text.
        context: words, one of which must be near.
        before: whether the identifier may also come before those words.
        linked: whether it must follow the words directly, as the pattern says from their end on.
        leads: for numbers with at most a few letters before their first digit: tried only where such a number starts.
        digits: digits the text must have for the rule to be tried; with `leads`, digits of the number that starts.
        signs: substrings in lower case, one of which the text must have for the rule to be tried.
        reach: how far before and behind a sign a match may reach: the rule is tried there only; None: in all the text.
        whole: whether it sees the letters of all scripts, and no `FOREIGN`.
        private: how probable it is that what was found is private; None: certain.
        guard: why it stays where it finds nothing on measured texts; empty if it earns its place (`make ablation`).
    """

    type: str
    pattern: Expression
    score: float = 1.0
    check: Check | None = None
    context: Words | None = None
    before: bool = False
    linked: bool = False
    leads: bool = False
    digits: int = 0
    signs: tuple[str, ...] = ("",)
    reach: tuple[int, int] | None = None
    whole: bool = False
    private: Callable[[str], float] | None = None
    guard: str = ""


def words(listed: str) -> dict[str, Any]:
    """A rule's context, from words separated by bars."""
    return {"context": Words(listed)}


def guarded(reason: str, *rules: Rule) -> tuple[Rule, ...]:
    """Says why rules stay though the texts that decide hold little that they find."""
    return tuple(rule._replace(guard=reason) for rule in rules)


def listed(names: str) -> frozenset[str]:
    """A set of words from a string."""
    return frozenset(names.split())


_NO_STANDARD = r"(?<! \b (?: gb | gb/t | iso | rfc | din | iec | jis | gost | гост ) [ ] )"


def keyed(
    type_: str,
    context: str,
    value: str,
    *,
    digits: int = 1,
    check: Check | None = None,
    score: float = 0.87,
    whole: bool = False,
) -> Rule:
    """A rule for a value that only the words before it give away."""
    return Rule(
        type_,
        Expression(rf"(?<!\w) {_NO_STANDARD} (?P<value>{value}) (?!\w)"),
        score=score,
        check=check,
        digits=digits,
        whole=whole,
        **words(context),
    )


LINK = rf"""
    [\s:\#=.,°ºª*|"'()\[\]><【】「」『』〔〕\-{FOREIGN}]{{0,12}}+
    (?: (?: (?: number | numbers | num | nummer | no | nos | nr | n | id | code | ref | is | was | are | ist | lautet
          | est | es | era | é | è | jest | to | to[ ]jest | номер | это | là | numarası | numaram | numaranız | no'su )
        (?!\w) | [№\#] ) [\s:\#=.,°ºª*|"'()\[\]><【】「」『』〔〕\-{FOREIGN}]{{0,12}}+ ){{0,3}}+
"""
"""What may stand between words and the number that they announce."""


def linked(
    type_: str,
    context: str,
    value: str,
    *,
    digits: int = 1,
    check: Check | None = None,
    score: float = 0.8,
) -> Rule:
    """A rule for a value that directly follows the words that announce it."""
    return Rule(
        type_,
        Expression(rf"{LINK} (?<!\w) (?P<value>{value}) (?!\w)"),
        score=score,
        check=check,
        digits=digits,
        linked=True,
        **words(context),
    )


def has_digit(value: str) -> bool:
    """Whether any character is a digit."""
    return any(c.isdigit() for c in value)


def has_digits(value: str) -> bool:
    """Whether it is as long as an issued number, with at least four digits that are at least a third of it."""
    count, whole = sum(c.isdigit() for c in value), len(compact(value))
    return count >= 4 and 3 * count >= whole and 5 <= whole <= 20


def is_measured(number: str) -> bool:
    """Whether figures are those of a table, and no number that was issued: 1 0 1 1, 8.1 33.8 515, 39.8534675789927."""
    groups, gaps = regex.findall(r"\d+", number), regex.findall(r"\D+", number)
    binary = len(groups) >= 8 and {*groups} <= {"0", "1"}
    return (
        binary or {".", " "} <= {*gaps} or regex.fullmatch(r"\d{1,4}\.\d{5,}", number) is not None
    )


def is_fraction(number: str) -> bool:
    """Whether it is a number below 1, or written with an exponent."""
    return regex.fullmatch(r"0\.\d+|\d(?:\.\d+)?e[+\-]\d{1,2}", number) is not None


def is_dummy(number: str) -> bool:
    """Whether a number stands for any: six zeros or more, or ten figures that count up."""
    figures = "".join(regex.findall(r"\d", number))
    return figures in _COUNTED or (len(figures) >= 6 and {*figures} == {"0"})
