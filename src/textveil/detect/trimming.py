"""Trimming: cuts spans to the named value, and drops those of nobody.

In: spans of detectors, and their texts. Out: trimmed spans; or whether a span is to be dropped.
Not here: titles (`name_bounds`), names of illnesses (`context_cues`), and the order of steps
(`stages`).
"""

from collections.abc import Sequence
from functools import cache

import regex

from textveil.detect.context_cues import CUE_WINDOW, is_illness
from textveil.detect.keyvalue.field_names import classify_key
from textveil.detect.name_bounds import MAX_TITLE_OVERHANG as LONGEST_TITLE
from textveil.detect.name_bounds import (
    TITLES_WITH_STOP,
    find_name_bounds,
    is_nobody,
    is_titled_name,
    split_names,
)
from textveil.detect.patterns.times import extend_date
from textveil.detect.quantities import AGE, find_age_end
from textveil.detect.spans import GUESSING_DETECTOR, NAMES, NUMBER_TYPES, Span
from textveil.text import LazyPattern, lexicon, vocabulary

_LETTERS = LazyPattern(r"\p{L}+")
_FIGURE = LazyPattern(r"\d{1,3}(?!\d)")
"""The digits of an age, before its unit."""

_STOPPED = {
    "ADDRESS": regex.compile(r"(?<=[\p{L}\d])\.\Z"),
    **dict.fromkeys(("DATE", "BIRTH_DATE"), regex.compile(r"(?<=\p{L})\.\Z")),
}
"""The full stop of a sentence behind a value, by type."""

_NUMBER = LazyPattern(
    r"(?: \+ (?=\p{N}) | \+? \( (?=\+?\p{N}) \+? )? [\p{L}\p{N}]"
    r" (?: [^\n\r\v\f\x85\u2028\u2029]* [\p{L}\p{M}\p{N}] )?",
    regex.VERBOSE,
)
"""A number, including the leading signs of a telephone number."""


def is_only_title(span: Span, texts: Sequence[str]) -> bool:
    """True if a person span is only titles ("Herr Dr.").

    A title cut off before its full stop ("geom.") counts, too.
    """
    if span.type != "PERSON" or not (span.is_own or span.is_guess):
        return False
    text = texts[span.text]
    word = text[span.start : span.end]
    return is_nobody(word) or (word in TITLES_WITH_STOP and text[span.end : span.end + 2] == ". ")


_AMOUNT = LazyPattern(
    r"(?:0|[1-9]\d{0,2}(?:([,. '])\d{3})(?:\1\d{3})*+|[1-9]\d{0,8})(?!\1)[.,]\d\d"
)
"""A number with two decimals."""


def is_amount(span: Span, texts: Sequence[str]) -> bool:
    """True if a number is an amount with two decimals, and nobody's."""
    return (
        span.type in NUMBER_TYPES
        and span.is_own
        and _AMOUNT.fullmatch(texts[span.text], span.start, span.end) is not None
    )


_FORM_NUMBER = LazyPattern(r"[A-Z]{0,3}-?\d{1,4}(?:-\d{1,4})?(?:-?[A-Z]{1,4})?")


@cache
def _compile_form_words() -> regex.Pattern[str]:
    words = "|".join(map(regex.escape, sorted(vocabulary.get_words("form_words"), key=len)))
    return regex.compile(rf"(?<!\w)(?=\p{{Lu}})(?i:{words})\s{{1,3}}\Z")


_BOOK_NUMBER = LazyPattern(r"(?:97[89][- ]?)?\d{1,5}[- ]?\d{1,7}[- ]?\d{1,7}[- ]?[\dX]")
_BOOK_WORD = LazyPattern(r"(?i)\bISBN(?:-1[03])?\b\W{0,3}\Z")


def is_printed_number(span: Span, texts: Sequence[str]) -> bool:
    """True if a guess is the number of a printed form (Form W-2) or book (ISBN).

    In small letters, the word for a form may mean what somebody filled in.
    """
    if span.source != GUESSING_DETECTOR or span.type not in NUMBER_TYPES:
        return False
    text, start = texts[span.text], max(0, span.start - CUE_WINDOW)
    forms = (_FORM_NUMBER, _compile_form_words()), (_BOOK_NUMBER, _BOOK_WORD)
    return any(
        number.fullmatch(text, span.start, span.end) and word.search(text, start, span.start)
        for number, word in forms
    )


_ENUMERATED = LazyPattern(r"(?:\p{Lu}|\d{1,2}|[IVX]{1,5})[.)][ \t]{1,4}")
_UNCASED = LazyPattern(r"\p{Lo}")
_MAX_HEADING_CHARACTERS, _MIN_HEADING_LETTERS = 60, 3
"""The longest heading of a form, and the fewest letters of a word that proves it one."""


def is_heading(span: Span, texts: Sequence[str]) -> bool:
    """True if a guessed name is in a heading or a label of a form.

    A line is a label if it is a key, and a heading if it is in capitals and of ordinary words. A
    word that is none may be a name: lists of people are numbered and in capitals, too.
    """
    text = texts[span.text]
    if span.source != GUESSING_DETECTOR or span.type not in NAMES:
        return False
    start, stop = text.rfind("\n", 0, span.start) + 1, text.find("\n", span.end)
    line = text[start : stop if stop >= 0 else len(text)].strip(" \t\r:*#")
    if len(line) > _MAX_HEADING_CHARACTERS or "\n" in text[span.start : span.end]:
        return False
    if _UNCASED.search(line):  # scripts without capitals have no headings in capitals
        return False
    number = _ENUMERATED.match(line)
    title = line[number.end() :] if number else line
    if not title.isupper() and (number or title != text[span.start : span.end]):
        return False
    words = [word for word in _LETTERS.findall(title) if len(word) >= _MIN_HEADING_LETTERS]
    form_words = vocabulary.get_words("form_words")
    ordinary = sum(word.lower() in form_words or lexicon.is_all_ordinary(word) for word in words)
    is_key = classify_key(title) is not None and (len(words) == 1 or ordinary == len(words))
    return is_key or (title.isupper() and 0 < ordinary == len(words))


_MIN_FILLER_WORDS = 2
"""The fewest words of filler that stand near a further one."""


def is_filler(span: Span, texts: Sequence[str]) -> bool:
    """True if a guessed name is filler among more of it (Lorem ipsum)."""
    if span.source != GUESSING_DETECTOR or span.type not in NAMES:
        return False
    text, filler = texts[span.text], vocabulary.get_words("filler_words")
    own = _LETTERS.findall(text[span.start : span.end].lower())
    if not own or not filler.issuperset(own):
        return False
    around = (
        text[max(0, span.start - CUE_WINDOW) : span.start],
        text[span.end : span.end + CUE_WINDOW],
    )
    near = [word for part in around for word in _LETTERS.findall(part.lower())]
    return sum(word in filler for word in near) >= _MIN_FILLER_WORDS


def is_illness_name(span: Span, texts: Sequence[str]) -> bool:
    """True if a person span names an illness ("Hashimoto's disease")."""
    if span.type != "PERSON" or not span.is_own:
        return False
    text = texts[span.text]
    before, behind = (
        text[max(0, span.start - CUE_WINDOW) : span.start],
        text[span.end : span.end + CUE_WINDOW],
    )
    return is_illness(before, text[span.start : span.end], behind)


def trim(span: Span, texts: Sequence[str]) -> list[Span]:
    """Cuts a span to the value that it names; may split it.

    Names lose titles and possessives, ages their unit, and guessed numbers their punctuation; dates
    are completed; no value ends with the full stop of its sentence.
    """
    text = texts[span.text]
    if (
        span.type == "ORGANIZATION"
        and span.source == GUESSING_DETECTOR
        and is_titled_name(text[span.start : span.end])
    ):
        span = span._replace(type="PERSON")
    if span.type in NAMES:
        return _trim_name(span, text)
    if span.is_own:
        span = _trim_by_type(span, text)
    return _trim_number(span, text) if span.is_guess and span.type in NUMBER_TYPES else [span]


def _trim_by_type(span: Span, text: str) -> Span:
    stop = _STOPPED.get(span.type)
    if stop and stop.search(text[span.start : span.end]):
        span = span._replace(end=span.end - 1)
    if span.type == "DATE":
        start, end = extend_date(text, span.start, span.end)
        return span._replace(start=start, end=end)
    return _trim_age(span, text) if span.type == AGE and span.is_guess else span


def _trim_name(span: Span, text: str) -> list[Span]:
    value, after = text[span.start : span.end], text[span.end : span.end + LONGEST_TITLE]
    spans = []
    for first, last in split_names(span.type, value, after) if span.is_own else ((0, len(value)),):
        start, end = find_name_bounds(
            span.type, value[first:last], (value[last:] + after)[:LONGEST_TITLE]
        )
        at = span.start + first
        spans.append(span._replace(start=at + start, end=at + end))
    return spans


def _trim_age(span: Span, text: str) -> Span:
    figure = _FIGURE.match(text, span.start, span.end)
    if figure is None or find_age_end(text, span.start, figure.end()) < span.end:
        return span
    return span._replace(end=figure.end())


def _trim_number(span: Span, text: str) -> list[Span]:
    matches = _NUMBER.finditer(text[span.start : span.end])
    places = [(span.start + match.start(), span.start + match.end()) for match in matches]
    return [span._replace(start=start, end=end) for start, end in places] or [span]


_LAST_GROUP = LazyPattern(r"(\A|[ +.-])(?=[A-Za-z]*\d)[A-Za-z\d]{2,4}\Z")


def extend_groups(span: Span, texts: Sequence[str]) -> Span:
    """Extends a guessed number or a secret over further groups that are joined alike (22 85 50)."""
    text = texts[span.text]
    is_guess = span.source == GUESSING_DETECTOR and span.type in NUMBER_TYPES
    if not is_guess and span.type != "SECRET":
        return span
    last = _LAST_GROUP.search(text[max(span.start, span.end - 5) : span.end])
    if last is None:
        return span
    join = last[1] or " "  # the first group of several
    rest = regex.compile(
        rf"(?:{regex.escape(join)}(?=[A-Za-z]*\d)[A-Za-z\d]{{2,4}}(?!\w))*+"
    ).match(text, span.end)
    return span._replace(end=rest.end() if rest else span.end)


def extend_age(span: Span, texts: Sequence[str]) -> Span:
    """Extends the span of an age over its unit."""
    return span._replace(end=find_age_end(texts[span.text], span.start, span.end))
