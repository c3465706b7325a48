"""Rules: how to tell an identifier from other text.

In: patterns, checks, words. Out: `Rule`.
Not here: the identifiers (`accounts`, `net`, `secrets`, `people`, `addresses`), and applying rules
(`patterns`).

Rules run on text in plain form: ASCII digits, dashes, quotes and spaces; in it, letters of scripts
that need no space between a word and a number (Chinese, Korean, Arabic, Hindi, ...) are one mark,
`FOREIGN`, which ends words. Every loop is bounded or possessive, so that the time is linear in the
text.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import regex

from textveil.detect.patterns.checksums import compact
from textveil.detect.spans import NUMBER_TYPES
from textveil.text import LazyPattern, vocabulary

Pattern = regex.Pattern[str]
Check = Callable[[str], bool]

FOREIGN = "\x01"
"""The mark for letters of scripts that need no spaces between words."""
_SCRIPTS = r"""\p{Han}\p{Hiragana}\p{Katakana}ー\uff70\uff9e\uff9f\p{Hangul}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}
    \p{Myanmar}\p{Arabic}\p{Hebrew}\p{Devanagari}\p{Bengali}\p{Tamil}\p{Telugu}\p{Gujarati}\p{Gurmukhi}\p{Kannada}
    \p{Malayalam}\p{Oriya}\p{Sinhala}""".replace("\n", "").replace(" ", "")
_LETTERS = LazyPattern(rf"(?V1)[[{_SCRIPTS}]&&[\p{{L}}\p{{M}}]]")

NUMBERED_TYPES = NUMBER_TYPES | {"PLATE"}
"""Types whose values have digits."""
_COUNTING_NUMBERS = frozenset(("1234567890" * 3)[:size] for size in range(10, 31)) | {"0123456789"}


def _is_part_of_word(character: str) -> bool:
    """True if a character beside a word makes it longer."""
    return character.isalnum() and (character.isascii() or not _LETTERS.match(character))


_BASES = {
    code: base
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))
    # Unicode does not decompose đ.
    if (base := unicodedata.normalize("NFD", chr(code).replace("đ", "d"))[0]).isascii()
    and base.isalpha()
}


def mask_foreign_letters(plain: str) -> str:
    """Replaces letters of scripts that need no spaces by `FOREIGN`.

    The text, in plain form, keeps its length.
    """
    return plain if plain.isascii() else _LETTERS.sub(FOREIGN, plain)


class FoldedText(NamedTuple):
    """A text prepared for the search of context words.

    It is in small letters, with spaces for line ends, dashes and underscores.

    Args:
        text: the text.
        runs: its runs of letters and digits; letters of foreign scripts end a run.
        lower: the text in small letters only.
    """

    text: str
    runs: frozenset[str]
    lower: str

    def __repr__(self) -> str:
        return "FoldedText()"


def fold_text(plain: str) -> FoldedText:
    """Folds a text in plain form for the search of context words."""
    lower = plain.lower()
    text = lower.translate(_BLANKS)
    return FoldedText(text, frozenset(_RUN.findall(mask_foreign_letters(text))), lower)


def _fold_case(plain: str) -> str:
    return plain.lower().translate(_BLANKS)


_RUN = re.compile(r"[^\W_]+")

_BLANKS = {**{ord(c): " " for c in "\n-_"}, ord("ı"): "i"}

NUMBER_START = r"(?<![\w@])(?<!\d[.,\-/])"
NUMBER_END = r"(?!\w)(?![.,\-/]\d)"
"""The edges of a number outside of words and longer numbers."""


@dataclass(frozen=True)
class Expression:
    """A regular expression that is compiled when first used.

    Most texts need few of them.

    Args:
        source: the expression.
        flags: flags of `regex`. By default, spaces are layout, and case is ignored.
    """

    source: str
    flags: int = regex.VERBOSE | regex.IGNORECASE

    @cached_property
    def compiled(self) -> Pattern:
        """The compiled expression."""
        return regex.compile(self.source, self.flags)


@dataclass(frozen=True)
class ContextWords:
    """Context words, separated by bars.

    A star stands for any letters before or after. A word of eight letters and more is also found
    without its accents. Words of scripts without spaces are found inside other words.
    """

    words: str

    @cached_property
    def edges_by_word(self) -> dict[str, tuple[bool, bool]]:
        """The folded words, each with whether it begins and ends a word."""
        signs = {}
        for word in self.words.split("|"):
            sign = _fold_case(word.strip("*"))
            begins, ends = word[0] != "*", word[-1] != "*"
            edges = begins and not _LETTERS.match(sign[0]), ends and not _LETTERS.match(sign[-1])
            signs[sign] = edges
            if len(sign) >= 8:
                signs.setdefault(sign.translate(_BASES), edges)
        return signs

    @cached_property
    def _words_by_run(self) -> dict[str, list[str]]:
        """The words, grouped by a run of letters that they need.

        A text without that run has none of them. Words that may stand inside a run are under "".
        """
        groups: dict[str, list[str]] = {"": []}
        for sign, (begins, ends) in self.edges_by_word.items():
            first = _RUN.match(sign)
            whole = first is not None and begins and (first.end() < len(sign) or ends)
            groups.setdefault(first[0] if whole and first else "", []).append(sign)
        return groups

    @cached_property
    def runs(self) -> frozenset[str]:
        """The runs of letters of which a text must have one, unless it has an inner word."""
        return frozenset(self._words_by_run) - {""}

    @property
    def inner_words(self) -> Sequence[str]:
        """The words that may stand inside a run of letters."""
        return self._words_by_run[""]

    @cached_property
    def _ascii_words(self) -> list[str]:
        """The ASCII words that may stand inside a run."""
        return list(filter(str.isascii, self._words_by_run[""]))

    def find(self, folded: FoldedText) -> Iterator[tuple[int, int]]:
        """Finds the words in a folded text, word by word.

        Yields the start and end of each.
        """
        text = folded.text
        inside = self._ascii_words if text.isascii() else self._words_by_run[""]
        runs = sorted(self.runs & folded.runs)
        for sign in (*inside, *(sign for run in runs for sign in self._words_by_run[run])):
            stop = 0
            while (at := text.find(sign, stop)) >= 0:
                stop = at + len(sign)
                if self._is_whole_word(sign, text, at, stop):
                    yield at, stop

    def _is_whole_word(self, sign: str, text: str, at: int, stop: int) -> bool:
        """True if a word begins and ends where it must."""
        begins, ends = self.edges_by_word[sign]
        return not (begins and at and _is_part_of_word(text[at - 1])) and not (
            ends and _is_part_of_word(text[stop : stop + 1])
        )


class Rule(NamedTuple):
    """The form of one kind of identifier.

    Args:
        type: the type of its spans.
        pattern: the group `value` is the span; without that group, the whole match.
        score: 1 if a checksum or a distinctive form leaves no doubt.
        check: a further test of the span's text.
        context: words, one of which must be near.
        can_precede: whether the identifier may also come before those words.
        adjacent: whether it must follow the words directly, as the pattern says from their end on.
        numeric_prefix: whether it is tried only where a number starts, with at most a few letters
            before its first digit.
        digits: digits that the text must have for the rule to be tried; with `numeric_prefix`,
            digits of the number that starts.
        triggers: substrings in lower case, one of which the text must have for the rule to be
            tried.
        window: characters before and behind a sign that a match may reach: the rule is tried only
            there; None for the whole text.
        keep_scripts: whether it reads the letters of all scripts, instead of `FOREIGN`.
        score_privacy: returns the probability that a match is private; None if it is certain.
        guard: the reason to keep it although it finds nothing on measured texts; empty if it
            improves detection there (`make ablation`).
    """

    type: str
    pattern: Expression
    score: float = 1.0
    check: Check | None = None
    context: ContextWords | None = None
    can_precede: bool = False
    adjacent: bool = False
    numeric_prefix: bool = False
    digits: int = 0
    triggers: tuple[str, ...] = ("",)
    window: tuple[int, int] | None = None
    keep_scripts: bool = False
    score_privacy: Callable[[str], float] | None = None
    guard: str = ""


class Signs(NamedTuple):
    """Words that some rules need, each with the set of these rules, as bits of an integer.

    Args:
        inside: context words that may stand inside a run of letters.
        triggers: triggers.
    """

    inside: tuple[tuple[str, int], ...]
    triggers: tuple[tuple[str, int], ...]


class RuleIndex:
    """Selects the rules that can match in a text, by its digits, signs and context words.

    Most texts have few of them, and then most rules need not be tried one by one.

    Args:
        rules: all rules.
        types: the types of those that are wanted.
    """

    def __init__(self, rules: Sequence[Rule], types: Collection[str]) -> None:
        self.source = rules
        self._rules = [rule for rule in rules if rule.type in types]
        # Sets of rules are bits of an integer, lowest first.
        self._by_digits = [
            sum(1 << i for i, rule in enumerate(self._rules) if rule.digits <= digits)
            for digits in range(1 + max((rule.digits for rule in self._rules), default=0))
        ]
        self._by_run, inside = dict[str, int](), dict[str, int]()
        by_trigger = dict[str, int]()
        self._without_context = 0
        for i, rule in enumerate(self._rules):
            if rule.context is None:
                self._without_context |= 1 << i
            else:
                for run in rule.context.runs:
                    self._by_run[run] = self._by_run.get(run, 0) | 1 << i
                for sign in rule.context.inner_words:
                    inside[sign] = inside.get(sign, 0) | 1 << i
            for trigger in rule.triggers:
                by_trigger[trigger] = by_trigger.get(trigger, 0) | 1 << i
        self._without_trigger = by_trigger.pop("", 0)
        self._signs = Signs(tuple(inside.items()), tuple(by_trigger.items()))
        self._ascii_signs = Signs(
            *(tuple(item for item in signs if item[0].isascii()) for signs in self._signs)
        )

    def find_signs(self, texts: Sequence[FoldedText]) -> Signs:
        """Finds the signs that stand in any of several texts: of each, no others need be sought."""
        lower = "\n".join(text.lower for text in texts)
        folded = "\n".join(text.text for text in texts)
        signs = self._ascii_signs if lower.isascii() and folded.isascii() else self._signs
        return Signs(
            tuple(item for item in signs.inside if item[0] in folded),
            tuple(item for item in signs.triggers if item[0] in lower),
        )

    def select(self, text: FoldedText, digits: int, signs: Signs) -> Iterator[Rule]:
        """Yields the rules that can match in a text, in order.

        Args:
            text: the text.
            digits: the number of digits in it.
            signs: signs of this text and others; see `find_signs`.
        """
        possible, triggered = self._without_context, self._without_trigger
        for run in text.runs:
            possible |= self._by_run.get(run, 0)
        for sign, bits in signs.inside:
            if sign in text.text:
                possible |= bits
        for sign, bits in signs.triggers:
            if sign in text.lower:
                triggered |= bits
        selected = possible & triggered & self._by_digits[min(digits, len(self._by_digits) - 1)]
        while selected:
            lowest = selected & -selected
            yield self._rules[lowest.bit_length() - 1]
            selected ^= lowest


def build_context(words: str) -> dict[str, Any]:
    """Returns a rule's context field, from words separated by bars."""
    return {"context": ContextWords(words)}


def guard_rules(reason: str, *rules: Rule) -> tuple[Rule, ...]:
    """Sets the reason to keep rules that are rarely measured.

    The measured texts hold little that these rules find.
    """
    return tuple(rule._replace(guard=reason) for rule in rules)


def make_word_set(names: str) -> frozenset[str]:
    """Splits a string of words into a set."""
    return frozenset(names.split())


_NO_STANDARD = r"(?<! \b (?: gb | gb/t | iso | rfc | din | iec | jis | gost | гост ) [ ] )"


def make_keyed_rule(
    type_: str,
    context: str,
    value: str,
    *,
    digits: int = 1,
    check: Check | None = None,
    score: float = 0.87,
    keep_scripts: bool = False,
) -> Rule:
    """Makes a rule for a value that only words before it reveal."""
    return Rule(
        type_,
        Expression(rf"(?<!\w) {_NO_STANDARD} (?P<value>{value}) (?!\w)"),
        score=score,
        check=check,
        digits=digits,
        keep_scripts=keep_scripts,
        **build_context(context),
    )


LINK = rf"""
    [\s:\#=.,°ºª*|"'()\[\]><【】「」『』〔〕\-{FOREIGN}]{{0,12}}+
    (?: (?: (?: number | numbers | num | nummer | no | nos | nr | n | id | code | ref | is | was | are | ist | lautet
          | est | es | era | é | è | jest | to | to[ ]jest | номер | это | là | numarası | numaram | numaranız | no'su )
        (?!\w) | [№\#] ) [\s:\#=.,°ºª*|"'()\[\]><【】「」『』〔〕\-{FOREIGN}]{{0,12}}+ ){{0,3}}+
"""
"""The text between words and the number that they announce."""


def make_linked_rule(
    type_: str,
    context: str,
    value: str,
    *,
    digits: int = 1,
    check: Check | None = None,
    score: float = 0.8,
    wordy: bool = False,
) -> Rule:
    """Makes a rule for a value directly behind its context words.

    With `wordy`, further words may stand before a colon or a cell's end ("VIN of the car: ").
    """
    # A line separator stands for that of two cells.
    words = r"(?: [^\n:;,.|\u2028]{0,30} [:|\u2028] )?" if wordy else ""
    return Rule(
        type_,
        Expression(rf"{words} {LINK} (?<!\w) (?P<value>{value}) (?!\w)"),
        score=score,
        check=check,
        digits=digits,
        adjacent=True,
        **build_context(context),
    )


def make_choice(name: str, *, stop: str = r"\.?") -> str:
    """Makes an expression for the words of a vocabulary list.

    Accents may lack. `stop` is what may follow a word that is written without a full stop.
    """
    words = vocabulary.get_words(name)
    words |= {word.translate(_BASES) for word in words}
    stopped, others = (
        "|".join(
            regex.escape(word).replace(r"\ ", "[ ]?")
            for word in sorted(words, key=lambda word: (-len(word), word))
            if word.endswith((".", "/")) == has_stop
        )
        for has_stop in (True, False)
    )
    return rf"(?: {stopped or '(?!)'} | (?: {others or '(?!)'} ) {stop} )"


def list_triggers(name: str) -> tuple[str, ...]:
    """Lists the triggers for the words of a vocabulary list.

    Short words are triggers between spaces only.
    """
    words = vocabulary.get_words(name)
    words |= {word.translate(_BASES) for word in words}
    return tuple(
        sorted(
            trigger
            for word in words
            for trigger in (
                (word,)
                if len(word) > 3 or word.endswith((".", "/"))
                else (f" {word} ", f"{word}.")
                if len(word) < 2
                else (f"{word} ", f"{word}.")
            )
        )
    )


def has_digit(value: str) -> bool:
    """True if any character is a digit."""
    return any(c.isdigit() for c in value)


def has_digits(value: str) -> bool:
    """True if a value is as long as an issued number.

    At least four characters, and a third of all, are digits.
    """
    count, whole = sum(c.isdigit() for c in value), len(compact(value))
    return count >= 4 and 3 * count >= whole and 5 <= whole <= 20


def is_measurement(number: str) -> bool:
    """True if digits are measured values of a table.

    Issued numbers do not look like 1 0 1 1, 8.1 33.8 515, 39.8534675789927.
    """
    groups, gaps = regex.findall(r"\d+", number), regex.findall(r"\D+", number)
    binary = len(groups) >= 8 and {*groups} <= {"0", "1"}
    return (
        binary or {".", " "} <= {*gaps} or regex.fullmatch(r"\d{1,4}\.\d{5,}", number) is not None
    )


def is_fraction(number: str) -> bool:
    """True if a number is below 1, or has an exponent."""
    return regex.fullmatch(r"0\.\d+|\d(?:\.\d+)?e[+\-]\d{1,2}", number) is not None


def is_dummy(number: str) -> bool:
    """True if a number is a dummy.

    It has six zeros or more, or ten digits that count up.
    """
    figures = "".join(regex.findall(r"\d", number))
    return figures in _COUNTING_NUMBERS or (len(figures) >= 6 and {*figures} == {"0"})
