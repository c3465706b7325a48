"""Event dates: finds every date, whatever it is of.

In: texts. Out: spans of days, of months with a year, and of years.
Not here: personal dates, which words beside them tell (`patterns`), and the option `protect.dates`
(`stages`).

A year alone is a number like others. It counts where a word of time or a bracket stands before it,
where another year stands beside it, and where a line or cell begins with it; not behind a name that
it belongs to, as in the title of a law.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

import regex

from textveil.detect.liveness import signal_progress
from textveil.detect.patterns import convert_to_plain, times
from textveil.detect.patterns.rules import NUMBER_END, NUMBER_START
from textveil.detect.quantities import map_months
from textveil.detect.spans import Span
from textveil.text import vocabulary

DATE_SCORE = 0.8
"""The score of a date: sure enough to be moved, and below that of a date of birth."""

MIN_CLEAR_LETTERS = 5
"""The fewest letters of a month that no other word is: shorter ones need a day and a year."""

_DIGIT = regex.compile(r"\d")


def _spell_plain(words: Iterable[str]) -> frozenset[str]:
    """Spells words as in the plain form of a text, in small letters."""
    composed = (unicodedata.normalize("NFC", word) for word in words)
    return frozenset(convert_to_plain(word)[0].lower() for word in composed)


@cache
def _compile() -> "regex.Pattern[str]":
    """Compiles the expression of all dates, in small letters."""
    months = _spell_plain(
        {*map_months(), *chain(*map(vocabulary.get_words, vocabulary.list_names("months")))}
    )
    clear = regex.compile(rf"{times.MONTHS} | .{{{MIN_CLEAR_LETTERS},}}", regex.VERBOSE)
    spaced = r"(?!\p{L}) \.?"
    other_scripts = rf"(?=[\p{{Arabic}}\p{{Devanagari}}]) {times.MONTHS}"
    month = rf"(?: \L<clear_months> {spaced} | {other_scripts} )"
    any_month = rf"(?: \L<months> {spaced} | {other_scripts} )"
    day = r"\d{1,2} (?: st | nd | rd | th | er | º | \.[ºª]? )?"
    link = r"(?: [ ]?[\-/][ ]? | [ ]\L<between>[ ] )"
    year = r"(?:1[89]|20)\d\d"
    further_year = rf"(?: {link} | ,[ ] (?: \L<between>[ ] )? ) {year}"
    years = rf"{year} (?: {further_year} | [/\-]\d\d(?!\d) )*+"
    no_unit = r"(?! [ ]? (?: [%‰€$£¥°] | (?:eur|usd|gbp|chf|euros?|km|kg|mg|ml|cm|mm|m|g|l|kwh?|hours|hrs)\b ) )"
    of = r"(?: (?:of|de|del)[ ] )?"
    return regex.compile(
        rf"""
    (?<!\d) (?P<date> {times.UNSPACED_DATE} ) (?!\d)
  | (?<!\d) {year}[ ]?[年년]
  | {NUMBER_START}
    (?: \L<weekdays> (?: ,[ ]? | [ ] ) (?: \p{{L}}{{1,3}}[ ] )? )?+
    (?:
        (?: (?: {day},[ ] ){{0,4}} (?: {day} (?:[ ]?{month})? | {month} ) {link} )?
        (?P<date> {times.build_worded_date(month)} ) {NUMBER_END}
      | (?: \d\d?[./] (?:\d\d?[./]?)? {link} )?
        (?! \d\.\d\d?\.\d\d(?!\d) | \d\d\.\d\.\d\d(?!\d) )
        (?P<date> {times.NUMERIC_DATE} ) (?! (?!t\d\d:)\w ) (?![/.\-]\d)
      | (?: {day} [ ./\-]{{1,2}} {of} {any_month} [ ,/\-]{{0,2}} {of}
          | {any_month} [ ] {day} ,? [ ] ) {year} {NUMBER_END}
      | {year}[.,]? [ ] (?: \p{{L}}{{1,5}}\.?[ ] )?
        (?: {month} (?: [ ]{day} )? | {day} [ ]{month} ) {NUMBER_END} (?![ ]\d{{4}})
      | q[1-4] [ ./\-]? {year} {NUMBER_END}
      | {year} (?: {further_year} )++ {NUMBER_END} {no_unit}
      | {years} {NUMBER_END} (?= [ ]\L<behind>\b | '\p{{L}} )
    )
  | (?<!\w) \L<before> [ '] (?: {NUMBER_START} (?P<value> {years} ) {NUMBER_END} {no_unit}
        | (?P<value> (?P<date> \d\d?\.\d\d?\.(?:\d\d)? ) ) (?=[\s,;)]|\Z) )
  | (?<!\w) \L<articles> [ ] (?P<value> (?P<attribute> {years} ) ) (?= [ ]\p{{L}} ) {no_unit}
  | (?=\d{{4}}) (?<= [(\[] | [(\[][^()\[\]\n]{{1,60}},[ ] ) (?P<value> {years} ) (?= [)\];,] )
  | (?: ^ | \|[ ]*+ ) [ ]*+ (?P<value> {years} ) (?= [ ]*+ (?: $ | [:|] | -[ ] ) )
    """,
        regex.VERBOSE | regex.MULTILINE,
        months=months,
        clear_months=frozenset(filter(clear.fullmatch, months)),
        before=_spell_plain(vocabulary.get_words("before_dates")),
        behind=_spell_plain(vocabulary.get_words("after_years")),
        between=_spell_plain(vocabulary.get_words("between_dates")),
        articles=_spell_plain(vocabulary.get_words("year_articles")),
        weekdays=_spell_plain(vocabulary.get_words("weekdays")),
    )


@dataclass(frozen=True, kw_only=True)
class EventDates:
    """A detector of all dates: days, months with a year, and years.

    Its time is linear in the text.
    """

    name: str = field(default="dates", init=False)

    def find(self, texts: Sequence[str]) -> list[Span]:
        """Finds the dates of all texts, by text and start."""
        return [
            Span(number, start, end, "DATE", DATE_SCORE, self.name)
            for number, text in enumerate(texts)
            for start, end in _find_dates(text)
        ]


def _find_dates(text: str) -> Iterator[tuple[int, int]]:
    """Finds the places of all dates in a text."""
    signal_progress()
    plain, places = convert_to_plain(text)
    if not _DIGIT.search(plain):
        return
    at, small = 0, plain.lower()
    while match := _compile().search(small, at):
        # A number that is no date may have one behind its first sign.
        at = match.start() + 1
        start, end = match.span("value" if match["value"] else 0)
        if (match["date"] and not times.is_day(match["date"])) or (
            match["attribute"] and plain[end + 1].isupper()
        ):
            continue
        end -= small[end - 1] == "." and small[end - 2].isalpha()
        at = end
        yield (start, end) if places is None else (places[start], places[end - 1] + 1)
