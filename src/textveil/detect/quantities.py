"""Quantities: reads dates, ages and amounts, and writes other values alike.

In: the text and type of a detected value. Out: its value, and a function that writes another value
in its form.
Not here: by how much a value is moved (`mechanism.moved_figures`), and the search for figures
(`patterns`, `keyvalue`).

A figure that cannot be read with certainty is not read. The written form shows the new value in the
form of the old value, and that form must never be one that only some values have: a leading zero
would reveal that a day is before the 10th, a thousands separator that an amount is above 999,
`Sept.` that a day is in that month, "21 год" that an age ends in 1. For the same reason a way of
writing is read for all of its values or for none.
"""

import unicodedata
from collections.abc import Callable
from datetime import date
from functools import cache
from typing import NamedTuple

import regex

from textveil.text import LazyPattern, vocabulary

DATES = ("DATE", "BIRTH_DATE")
"""Types of dates: a session moves all of them by the same number of days."""

AGE = "AGE"
"""The type of ages."""

MAX_AGE = 120
"""The highest age in years that is read or written; the lowest is 0."""


class Figure(NamedTuple):
    """A value and the form in which it is written. Secret.

    Args:
        value: a date as its day number, an age, or an amount in hundredths.
        write: writes another value in the same form, an amount rounded to its decimal places; None
            for a date whose year does not have four figures. Ages below 0 and above `MAX_AGE` and
            amounts below 0 are written as these.
    """

    value: int
    write: Callable[[int], str | None]

    def __repr__(self) -> str:
        return "Figure()"

    @property
    def key(self) -> str:
        """A key that is equal for equal values of a type."""
        return str(self.value)


def read(type_: str, text: str) -> Figure | None:
    """Reads a date, age or amount; None unless the value is certain.

    Args:
        type_: one of `DATES`, `AGE`, or another type, whose figures are amounts.
        text: a date, an age or an amount, with nothing around it but units.
    """
    reader = _read_date if type_ in DATES else _read_age if type_ == AGE else _read_amount
    return reader(text)


# ---- dates ---------------------------------------------------------------------------------------

_NUMERIC = LazyPattern(
    r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)"
    r"|(?P<year>\d{4})[ ]?[年년][ ]?(?P<month>\d\d?)[ ]?[月월][ ]?(?P<day>\d\d?)[ ]?[日号號일]"
    r"|(?P<day>\d\d?)(?P<mark>\.[ ]?)(?P<month>\d\d?)(?P=mark)(?P<year>\d{4})"
)
"""Numeric dates in which the form fixes the order of day and month. With slashes only a day above
the 12th would fix it, so a moved date would reveal that its day was one of these."""

_WORDED = LazyPattern(
    r"(?P<day>\d\d?)(?P<after>\.|st|nd|rd|th|er|[º°]|)(?P<link>[ ](?:(?:of|de)[ ])?)(?P<month>[\p{L}\p{M}]+)\.?"
    r"(?:(?P<comma>,?)[ ]|[ ]de[ ])(?P<year>\d{4})"
    r"|(?P<month>[\p{L}\p{M}]+)\.?[ ](?P<day>\d\d?)(?P<after>st|nd|rd|th|)(?P<comma>,?)[ ](?P<year>\d{4})"
)


def _name_month(month: int, language: str) -> str:
    """Returns the name of a month in a language, with a capital."""
    return vocabulary.get_words_by_language(f"months.{month}")[language][0].capitalize()


def _remove_accents(word: str) -> str:
    """Removes case and accents from a word."""
    return regex.sub(r"\p{M}", "", unicodedata.normalize("NFD", word.casefold()))


_FOREIGN = LazyPattern(r"(?![0-9])\d")
_ORDINALS = ("st", "nd", "rd", "th")


@cache
def map_months() -> dict[str, int]:
    """Maps month names of many languages, whole and short, to numbers."""
    numbers: dict[str, int] = {}
    # Exact spellings first: a spelling without accents never takes the place of one.
    for form in (str.casefold, _remove_accents):
        for month in range(1, 13):
            for word in sorted(vocabulary.get_words(f"months.{month}")):
                numbers.setdefault(form(word), month)
    return numbers


def _read_date(text: str) -> Figure | None:
    # `int` reads the digits of all scripts, but new values are written in ASCII.
    if _FOREIGN.search(text):
        return None
    match = _NUMERIC.fullmatch(text)
    if match is None:
        return _read_worded_date(text)
    # The width follows from the mark alone: one that follows from the day would reveal it.
    value, width = (
        _parse_day(match["year"], match["month"], match["day"]),
        2 if match["mark"] in ("-", "/", ".") else 1,
    )
    if value is None:
        return None

    def write(value: int) -> str | None:
        new_date = _convert_to_date(value)
        if new_date is None:
            return None
        return _replace_parts(
            text,
            {
                match.span("year"): str(new_date.year),
                match.span("month"): f"{new_date.month:0{width}}",
                match.span("day"): f"{new_date.day:0{width}}",
            },
        )

    return Figure(value, write)


def _read_worded_date(text: str) -> Figure | None:
    """Reads a date whose month is a word.

    The words of the new date follow from the order of the words, and not from the language of the
    month: some months of two languages are alike, so the language would reveal that the month is
    not one of these.
    """
    match = _WORDED.fullmatch(text)
    if match is None:
        return None
    month = map_months().get(unicodedata.normalize("NFC", match["month"]).casefold())
    value = None if month is None else _parse_day(match["year"], str(month), match["day"])
    if value is None:
        return None
    after, has_of, capital = match["after"], match["link"] == " of ", match["month"][0].isupper()

    def write(value: int) -> str | None:
        new_date = _convert_to_date(value)
        if new_date is None:
            return None
        day, english = str(new_date.day), _name_month(new_date.month, "en")
        ordinal = day + (_get_ordinal_suffix(new_date.day) if after in _ORDINALS else "")
        if match["link"] is None:
            return f"{english} {ordinal}{match['comma']} {new_date.year}"
        if has_of or after in _ORDINALS or (capital and not after and match["link"] == " "):
            return f"{ordinal}{match['link']}{english}{match['comma'] or ''} {new_date.year}"
        if capital and after == "." and match["link"] == " ":
            return (
                f"{day}. {_name_month(new_date.month, 'de')}{match['comma'] or ''} {new_date.year}"
            )
        return new_date.isoformat()

    return Figure(value, write)


def _get_ordinal_suffix(day: int) -> str:
    return "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _parse_day(year: str, month: str, day: str) -> int | None:
    try:
        return date(int(year), int(month), int(day)).toordinal()
    except ValueError:
        return None


def _convert_to_date(value: int) -> date | None:
    """Returns a day number's date, if its year has four digits."""
    first, last = date(1000, 1, 1).toordinal(), date.max.toordinal()
    return date.fromordinal(value) if first <= value <= last else None


def _replace_parts(text: str, new: dict[tuple[int, int], str]) -> str:
    """Replaces parts of a text, given by their places."""
    for (start, end), part in sorted(new.items(), reverse=True):
        text = text[:start] + part + text[end:]
    return text


# ---- ages ----------------------------------------------------------------------------------------


@cache
def _map_year_words() -> dict[str, tuple[str, ...]]:
    """Maps words for years of age to their forms by number.

    The forms are for 1, perhaps for a few, and for many.
    """
    alike = vocabulary.get_words("years_alike")
    declined = [
        forms
        for name in ("years", "years_old", "years_short")
        for forms in vocabulary.get_words_by_language(name).values()
    ]
    return {word: (word,) for word in alike} | {
        word.casefold(): forms for forms in declined for word in forms
    }


@cache
def _compile_age() -> regex.Pattern[str]:
    return regex.compile(
        r"(?P<years>[0-9]{1,3})(?:(?P<gap>[ \-]?)(?P<words>\L<words>))?",
        regex.IGNORECASE,
        words=_map_year_words(),
    )


@cache
def _compile_unit() -> regex.Pattern[str]:
    """Compiles the units that follow an age.

    With a unit of less than a year, it is no age in years.
    """
    return regex.compile(
        r"[ \-]?(?:\L<words>|(?P<part>months?|mos?|weeks?|wks?|days?|monaten?|wochen?|tagen?|mois|semaines?|jours?"
        r"|mes(?:es)?|semanas?|d[ií]as?|mês|mes[ei]|settiman[ae]|giorn[oi]|maand(?:en)?|weken|dagen|miesi[ąę]c\p{L}*"
        r"|tygod\p{L}+|dni|месяц\p{L}*|недел\p{L}+|дн(?:я|ей)|ay|aylık|hafta|haftalık|gün|tháng|tuần|ngày|شهر|أشهر|شهور|أسابيع|महीन\p{L}))"
        r"(?!\w)|[ ]?(?:[岁歲歳才세살]|(?P<part>个月|個月|[かヶカケ]月|週|周|天|개월|주))",
        regex.IGNORECASE,
        words=_map_year_words(),
    )


def find_age_end(text: str, start: int, end: int) -> int:
    """Finds the end of an age together with its unit behind.

    The form of the unit may reveal the number, so it belongs to the age.

    Args:
        text: any text.
        start: the start of the age in it.
        end: the end of the detected span.
    """
    match = _compile_unit().match(text, end)
    return match.end() if match and (match["part"] or _read_age(text[start : match.end()])) else end


def _read_age(text: str) -> Figure | None:
    match = _compile_age().fullmatch(text)
    if match is None or int(match["years"]) > MAX_AGE:
        return None
    age, gap, words = int(match["years"]), match["gap"] or "", match["words"] or ""
    forms = _map_year_words()[words.casefold()] if words else ("",)
    if words.casefold() != _choose_form(forms, age).casefold() and not words.casefold().startswith(
        "y"
    ):
        return None  # 34 an

    def write(value: int) -> str:
        years = min(max(value, 0), MAX_AGE)
        agreeing = _choose_form(forms, years)
        return f"{years}{gap}{agreeing.upper() if words.isupper() else agreeing}"

    return Figure(age, write)


def _choose_form(forms: tuple[str, ...], number: int) -> str:
    """Chooses the form of "years" that agrees with a number."""
    singular, *few, many = forms if len(forms) > 1 else forms * 2
    if number == 1 or (singular == "год" and number % 10 == 1 and number % 100 != 11):
        return singular
    return few[0] if few and number % 10 in (2, 3, 4) and number % 100 not in (12, 13, 14) else many


# ---- amounts -------------------------------------------------------------------------------------

_AMOUNT = LazyPattern(
    r"(?P<before>[^\d\-–−(+.,]{0,12})"
    r"(?P<whole>[0-9]{1,3}(?P<group>[ \u00a0\u202f'’])(?:[0-9]{2,3}(?P=group)){0,5}[0-9]{3}"
    r"(?:[.,][0-9]{3})?"
    r"|[0-9]{1,15}(?P<group>[.,])(?:[0-9]{2,3}(?P=group)){0,5}[0-9]{3}"
    r"(?:(?!(?P=group))[.,][0-9]{3})?"
    r"|[0-9]{1,15})"
    r"(?:(?P<mark>(?!(?P=group))[.,])(?P<rest>[0-9]{1,2}))?(?P<after>[^\d]{0,12})"
)
"""An amount. A sign or a bracket before it may make it negative.

Three digits behind a full stop or comma are always read as thousands: a writer of 950 also writes
1,250, and to read only one of them would reveal which it is. Where they are decimal places, all
amounts are read in thousandths.
"""


def _read_amount(text: str) -> Figure | None:
    match = _AMOUNT.fullmatch(text)
    if match is None or match["after"][:1] in tuple(".,-–−"):
        return None
    whole, decimals = regex.sub(r"\D", "", match["whole"]), match["rest"] or ""
    unit = 10 ** (2 - len(decimals))  # of the last decimal place, in hundredths

    def write(value: int) -> str:
        units = str((max(value, 0) + unit // 2) // unit).zfill(len(decimals) + 1)
        # Without separators of thousands, which only larger amounts have.
        number = (
            f"{units[: -len(decimals)]}{match['mark']}{units[-len(decimals) :]}"
            if decimals
            else units
        )
        return text[: match.start("whole")] + number + text[match.start("after") :]

    return Figure(int(whole + decimals) * unit, write)
