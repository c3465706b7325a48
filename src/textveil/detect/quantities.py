"""Quantities: dates, ages and amounts as they are written, and the same form with another value.

In: what a detector found, its type. Out: its value, and the text with another value in its place.
Not here: by how much a value is moved (`mechanism.moved_figures`), and what finds figures (`patterns`, `keyvalue`).

What cannot be read with certainty is not read. What is written shows the other value and the form of the first, and
the form is never one that only some values have: a leading zero would tell that a day is before the 10th, a thousands
separator that an amount is above 999, `Sept.` that a day is in that month, "21 год" that an age ends in 1. For the same
reason all values are read that somebody writes in a way of which some are.
"""

import unicodedata
from collections.abc import Callable
from datetime import date
from functools import cache
from typing import NamedTuple

import regex

from textveil.text import Late, vocabulary

DATES = ("DATE", "BIRTH_DATE")
"""Types of dates: those of a session are all moved by the same number of days."""

AGE = "AGE"
"""The type of ages."""

OLDEST = 120
"""Ages are from 0 to this."""


class Figure(NamedTuple):
    """A value and its form. Secret.

    Args:
        value: a date as its day number, an age, or an amount in hundredths.
        write: writes another value in the same form, an amount rounded to its decimal places; None for a date whose
            year does not have four figures. Ages below 0 and above `OLDEST` and amounts below 0 are written as these.
    """

    value: int
    write: Callable[[int], str | None]

    def __repr__(self) -> str:
        return "Figure()"

    @property
    def key(self) -> str:
        """Equal for figures of a type that have the same value."""
        return str(self.value)


def read(type_: str, text: str) -> Figure | None:
    """What is written there; None unless that is certain.

    Args:
        type_: one of `DATES`, `AGE`, or another type, whose figures are amounts.
        text: a date, an age or an amount, with nothing around it but units.
    """
    reader = _date if type_ in DATES else _age if type_ == AGE else _amount
    return reader(text)


# ---- dates -----------------------------------------------------------------------------------------------------------

_NUMERIC = Late(
    r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)"
    r"|(?P<year>\d{4})[ ]?[年년][ ]?(?P<month>\d\d?)[ ]?[月월][ ]?(?P<day>\d\d?)[ ]?[日号號일]"
    r"|(?P<day>\d\d?)(?P<mark>\.[ ]?)(?P<month>\d\d?)(?P=mark)(?P<year>\d{4})"
)
"""The order of day and month follows from the form. With slashes it would follow only from a day above the 12th, so
that a moved date would tell that its day was one of these."""

_WORDED = Late(
    r"(?P<day>\d\d?)(?P<after>\.|st|nd|rd|th|er|[º°]|)(?P<link>[ ](?:(?:of|de)[ ])?)(?P<month>[\p{L}\p{M}]+)\.?"
    r"(?:(?P<comma>,?)[ ]|[ ]de[ ])(?P<year>\d{4})"
    r"|(?P<month>[\p{L}\p{M}]+)\.?[ ](?P<day>\d\d?)(?P<after>st|nd|rd|th|)(?P<comma>,?)[ ](?P<year>\d{4})"
)


def _called(month: int, language: str) -> str:
    """A month as it is called alone."""
    return vocabulary.by_language(f"months.{month}")[language][0].capitalize()


def _plain(word: str) -> str:
    """A word in small letters, without accents."""
    return regex.sub(r"\p{M}", "", unicodedata.normalize("NFD", word.casefold()))


_FOREIGN = Late(r"(?![0-9])\d")
_ORDINALS = ("st", "nd", "rd", "th")


@cache
def _months() -> dict[str, int]:
    """The months by the words of many languages, whole and short, in small letters."""
    found: dict[str, int] = {}
    for form in (str.casefold, _plain):
        for month in range(1, 13):
            for word in sorted(vocabulary.words(f"months.{month}")):
                found.setdefault(form(word), month)
    return found


def _date(text: str) -> Figure | None:
    if _FOREIGN.search(text):
        return None
    match = _NUMERIC.fullmatch(text)
    if match is None:
        return _worded(text)
    value, width = (
        _day(match["year"], match["month"], match["day"]),
        2 if match["mark"] in ("-", "/", ".") else 1,
    )
    if value is None:
        return None

    def write(value: int) -> str | None:
        moved = _moved(value)
        if moved is None:
            return None
        return _filled(
            text,
            {
                match.span("year"): str(moved.year),
                match.span("month"): f"{moved.month:0{width}}",
                match.span("day"): f"{moved.day:0{width}}",
            },
        )

    return Figure(value, write)


def _worded(text: str) -> Figure | None:
    """A date whose month is a word.

    In which words another one is written follows from how the words stand, and not from the language of the month: some
    months of two languages are alike, so that the language would tell the others.
    """
    match = _WORDED.fullmatch(text)
    if match is None:
        return None
    month = _months().get(unicodedata.normalize("NFC", match["month"]).casefold())
    value = None if month is None else _day(match["year"], str(month), match["day"])
    if value is None:
        return None
    after, of, capital = match["after"], match["link"] == " of ", match["month"][0].isupper()

    def write(value: int) -> str | None:
        moved = _moved(value)
        if moved is None:
            return None
        day, english = str(moved.day), _called(moved.month, "en")
        ordinal = day + (_ordinal(moved.day) if after in _ORDINALS else "")
        if match["link"] is None:
            return f"{english} {ordinal}{match['comma']} {moved.year}"
        if of or after in _ORDINALS or (capital and not after and match["link"] == " "):
            return f"{ordinal}{match['link']}{english}{match['comma'] or ''} {moved.year}"
        if capital and after == "." and match["link"] == " ":
            return f"{day}. {_called(moved.month, 'de')}{match['comma'] or ''} {moved.year}"
        return moved.isoformat()

    return Figure(value, write)


def _ordinal(day: int) -> str:
    return "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _day(year: str, month: str, day: str) -> int | None:
    try:
        return date(int(year), int(month), int(day)).toordinal()
    except ValueError:
        return None


def _moved(value: int) -> date | None:
    """The date of a day number, if its year has four figures."""
    first, last = date(1000, 1, 1).toordinal(), date.max.toordinal()
    return date.fromordinal(value) if first <= value <= last else None


def _filled(text: str, new: dict[tuple[int, int], str]) -> str:
    """A text with something else at some of its places."""
    for (start, end), part in sorted(new.items(), reverse=True):
        text = text[:start] + part + text[end:]
    return text


# ---- ages ------------------------------------------------------------------------------------------------------------


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    """Words that say nothing but that this is an age in years: each with its forms for 1, perhaps a few, and many."""
    alike = vocabulary.words("years_alike")
    declined = [
        forms
        for name in ("years", "years_old", "years_short")
        for forms in vocabulary.by_language(name).values()
    ]
    return {word: (word,) for word in alike} | {
        word.casefold(): forms for forms in declined for word in forms
    }


@cache
def _aged() -> regex.Pattern[str]:
    return regex.compile(
        r"(?P<years>[0-9]{1,3})(?:(?P<gap>[ \-]?)(?P<words>\L<words>))?",
        regex.IGNORECASE,
        words=_forms(),
    )


@cache
def _behind() -> regex.Pattern[str]:
    """What goes on with an age; a part of a year makes it none in years."""
    return regex.compile(
        r"[ \-]?(?:\L<words>|(?P<part>months?|mos?|weeks?|wks?|days?|monaten?|wochen?|tagen?|mois|semaines?|jours?"
        r"|mes(?:es)?|semanas?|d[ií]as?|mês|mes[ei]|settiman[ae]|giorn[oi]|maand(?:en)?|weken|dagen|miesi[ąę]c\p{L}*"
        r"|tygod\p{L}+|dni|месяц\p{L}*|недел\p{L}+|дн(?:я|ей)|ay|aylık|hafta|haftalık|gün|tháng|tuần|ngày|شهر|أشهر|شهور|أسابيع|महीन\p{L}))"
        r"(?!\w)|[ ]?(?:[岁歲歳才세살]|(?P<part>个月|個月|[かヶカケ]月|週|周|天|개월|주))",
        regex.IGNORECASE,
        words=_forms(),
    )


def age_end(text: str, start: int, end: int) -> int:
    """Where an age ends together with the words for its unit behind it, which may tell of its number.

    Args:
        text: any text.
        start: where an age starts in it.
        end: where what was found ends.
    """
    match = _behind().match(text, end)
    return match.end() if match and (match["part"] or _age(text[start : match.end()])) else end


def _age(text: str) -> Figure | None:
    match = _aged().fullmatch(text)
    if match is None or int(match["years"]) > OLDEST:
        return None
    age, gap, words = int(match["years"]), match["gap"] or "", match["words"] or ""
    forms = _forms()[words.casefold()] if words else ("",)
    if words.casefold() != _agreeing(forms, age).casefold() and not words.casefold().startswith(
        "y"
    ):
        return None  # 34 an

    def write(value: int) -> str:
        years = min(max(value, 0), OLDEST)
        agreeing = _agreeing(forms, years)
        return f"{years}{gap}{agreeing.upper() if words.isupper() else agreeing}"

    return Figure(age, write)


def _agreeing(forms: tuple[str, ...], number: int) -> str:
    """The word for years beside a number."""
    one, *few, many = forms if len(forms) > 1 else forms * 2
    if number == 1 or (one == "год" and number % 10 == 1 and number % 100 != 11):
        return one
    return few[0] if few and number % 10 in (2, 3, 4) and number % 100 not in (12, 13, 14) else many


# ---- amounts ---------------------------------------------------------------------------------------------------------

_AMOUNT = Late(
    r"(?P<before>[^\d\-–−(+.,]{0,12})"
    r"(?P<whole>[0-9]{1,3}(?P<group>[ \u00a0\u202f'’])(?:[0-9]{2,3}(?P=group)){0,5}[0-9]{3}"
    r"(?:[.,][0-9]{3})?"
    r"|[0-9]{1,15}(?P<group>[.,])(?:[0-9]{2,3}(?P=group)){0,5}[0-9]{3}"
    r"(?:(?!(?P=group))[.,][0-9]{3})?"
    r"|[0-9]{1,15})"
    r"(?:(?P<mark>(?!(?P=group))[.,])(?P<rest>[0-9]{1,2}))?(?P<after>[^\d]{0,12})"
)
"""A sign or a bracket before it may make it negative. Three figures behind a full stop or comma are read as thousands,
always: who writes 950 writes 1,250, and to read only one of them would tell which it is. Where they are decimal places,
all amounts are read in thousandths."""


def _amount(text: str) -> Figure | None:
    match = _AMOUNT.fullmatch(text)
    if match is None or match["after"][:1] in tuple(".,-–−"):
        return None
    whole, rest = regex.sub(r"\D", "", match["whole"]), match["rest"] or ""
    one = 10 ** (2 - len(rest))  # of the last decimal place, in hundredths

    def write(value: int) -> str:
        units = str((max(value, 0) + one // 2) // one).zfill(len(rest) + 1)
        number = f"{units[: -len(rest)]}{match['mark']}{units[-len(rest) :]}" if rest else units
        return text[: match.start("whole")] + number + text[match.start("after") :]

    return Figure(int(whole + rest) * one, write)
