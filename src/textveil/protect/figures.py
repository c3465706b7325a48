"""Figures: dates, ages and amounts as they are written, and the same form with another value.

In: what a detector found, its type. Out: its value, and the text with another value in its place.
Not here: by how much a value is moved (`mechanism.moved_figures`), and what finds figures (`patterns`, `structure`).

Whatever cannot be read with certainty is not read. Nothing is written that would not be read as what was meant.
"""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import regex

DATES = ("DATE", "BIRTH_DATE")
"""Types of dates: those of a session are all moved by the same number of days."""

AGE = "AGE"
"""The type of ages."""

OLDEST = 120
"""Ages are from 0 to this."""


class Figure(NamedTuple):
    """A value and its form. Secret.

    Args:
        value: a date as its day number, an age, or an amount in units of its last decimal place.
        places: how many decimal places an amount has; 0 for all others.
        write: writes another value in the same form; None where that is impossible, or would be read otherwise. Ages
            below 0 and above `OLDEST` and amounts below 0 are written as these.
    """

    value: int
    places: int
    write: Callable[[int], str | None]

    @property
    def key(self) -> str:
        """Equal for figures of a type that have the same value."""
        return f"{self.value}/{self.places}" if self.places else str(self.value)


def read(type_: str, text: str) -> Figure | None:
    """What is written there; None unless that is certain.

    Args:
        type_: one of `DATES`, `AGE`, or another type, whose figures are amounts.
        text: a date, an age or an amount, with nothing around it but units.
    """
    reader = _date if type_ in DATES else _age if type_ == AGE else _amount
    found = reader(text)
    if found is None:
        return None
    as_written = found.write

    def write(value: int) -> str | None:
        if type_ not in DATES:
            value = min(max(value, 0), OLDEST) if type_ == AGE else max(value, 0)
        moved = as_written(value)
        again = None if moved is None else reader(moved)
        return moved if again is not None and again.value == value else None

    return found._replace(write=write)


# ---- dates -----------------------------------------------------------------------------------------------------------

_NUMERIC = regex.compile(
    r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)"
    r"|(?P<year>\d{4})[ ]?[年년][ ]?(?P<month>\d\d?)[ ]?[月월][ ]?(?P<day>\d\d?)[ ]?[日号號일]"
    r"|(?P<day>\d\d?)(?P<mark>\.[ ]?)(?P<month>\d\d?)(?P=mark)(?P<year>\d{4})"
)
"""The order of day and month follows from the form."""

_SLASHED = regex.compile(r"(?P<first>\d\d?)(?P<mark>[/-])(?P<second>\d\d?)(?P=mark)(?P<year>\d{4})")
"""It follows only from a day above 12."""

_WORDED = regex.compile(
    r"(?P<day>\d\d?)(?P<after>\.|st|nd|rd|th)?(?P<link>[ ](?:(?:of|de)[ ])?)(?P<month>\p{L}+\.?)"
    r"(?:,?[ ]|[ ]de[ ])(?P<year>\d{4})"
    r"|(?P<month>\p{L}+\.?)[ ](?P<day>\d\d?)(?P<after>st|nd|rd|th)?,?[ ](?P<year>\d{4})"
)

_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "en short": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
}
"""Names of the months as they stand in a date, by language."""

_FOREIGN = regex.compile(r"(?![0-9])\d")
_ENGLISH = ("en", "en short")
_BARE = (*_ENGLISH, "fr", "it", "nl", "pl", "ru")
_LANGUAGES = {".": ("de",), " de ": ("es", "pt"), " of ": _ENGLISH}
"""Languages that write something between day and month; the others are `_BARE`."""


def _date(text: str) -> Figure | None:
    if _FOREIGN.search(text):
        return None
    match, order = _NUMERIC.fullmatch(text), ("year", "month", "day")
    if match is None and (match := _SLASHED.fullmatch(text)):
        first, second = int(match["first"]), int(match["second"])
        if (first > 12) == (second > 12):
            return None
        order = ("year", "second", "first") if first > 12 else ("year", "first", "second")
    if match is None:
        return _worded(text)
    year, month, day = (match[name] for name in order)
    value = _day(year, month, day)
    if value is None:
        return None
    spans = [match.span(name) for name in order]

    def write(value: int) -> str | None:
        moved = _moved(value)
        if moved is None:
            return None
        parts = str(moved.year), f"{moved.month:0{_width(month, day)}}", f"{moved.day:0{_width(day, month)}}"
        return _filled(text, dict(zip(spans, parts, strict=True)))

    return Figure(value, 0, write)


def _worded(text: str) -> Figure | None:
    """A date whose month is a word. All languages that it may be in must write the other date alike."""
    match = _WORDED.fullmatch(text)
    if match is None:
        return None
    word, dot, after = match["month"].removesuffix("."), match["month"][-1] == ".", match["after"] or ""
    english = not match["link"] or after.isalpha()
    languages = _ENGLISH if english else _LANGUAGES.get(after or match["link"], _BARE)
    found: dict[str, tuple[int, list[str]]] = {}  # by language: the month, and how all months are written
    for language in languages:
        for cased in (str, str.upper, str.lower):
            names = [cased(name) for name in _MONTHS[language].split()]
            if word in names and (language.endswith("short") or not dot):
                found.setdefault(language[:2], (names.index(word) + 1, names))
    months = {month for month, _ in found.values()}
    day = _day(match["year"], str(*months), match["day"]) if len(months) == 1 else None
    if day is None:
        return None

    def write(value: int) -> str | None:
        moved = _moved(value)
        words = set() if moved is None else {names[moved.month - 1] for _, names in found.values()}
        if moved is None or len(words) != 1:
            return None
        figures = f"{moved.day:02}" if match["day"][0] == "0" else str(moved.day)
        new = {"year": str(moved.year), "month": words.pop() + "." * dot, "day": figures}
        if after.isalpha():
            new["after"] = "th" if moved.day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(moved.day % 10, "th")
        return _filled(text, {match.span(name): part for name, part in new.items()})

    return Figure(day, 0, write)


def _day(year: str, month: str, day: str) -> int | None:
    try:
        return date(int(year), int(month), int(day)).toordinal()
    except ValueError:
        return None


def _moved(value: int) -> date | None:
    """The date of a day number, if its year has four figures."""
    first, last = date(1000, 1, 1).toordinal(), date.max.toordinal()
    return date.fromordinal(value) if first <= value <= last else None


def _width(written: str, other: str) -> int:
    """How many figures a day or month has at least; where it cannot be seen, as many as the other one of the date."""
    return 1 if len(written) == 1 or (written[0] != "0" and len(other) == 1) else 2


def _filled(text: str, new: dict[tuple[int, int], str]) -> str:
    """A text with something else at some of its places."""
    for (start, end), part in sorted(new.items(), reverse=True):
        text = text[:start] + part + text[end:]
    return text


# ---- ages ------------------------------------------------------------------------------------------------------------

_AGE = regex.compile(
    r"([0-9]{1,3})(?:[ \-]?(?:(?:years?|months?|weeks?)(?:[ \-]old)?|yrs?|y/?o|jahre?(?:[ ]alt)?|ans|años|anos|anni"
    r"|jaar|lat|lata|yaş|tuổi|岁|歲|歳|才|세|살|лет|год|года|سنة|عام|वर्ष|साल))?",
    regex.IGNORECASE,
)
"""Figures, and words that say nothing but that this is an age: "29F" says more."""


def _age(text: str) -> Figure | None:
    match = _AGE.fullmatch(text)
    if match is None or match[1] != str(int(match[1])) or int(match[1]) > OLDEST:
        return None
    return Figure(int(match[1]), 0, lambda value: str(value) + text[match.end(1) :])


# ---- amounts ---------------------------------------------------------------------------------------------------------

_AMOUNT = regex.compile(
    r"(?P<before>[^\d\-–−(+.,]{0,12})(?P<whole>[0-9]{1,3}(?P<group>[  '’])[0-9]{3}(?:(?P=group)[0-9]{3}){0,3}"
    r"|[0-9]{1,3}(?P<group>,)[0-9]{3}(?:,[0-9]{3}){0,3}(?=\.)|[0-9]{1,3}(?P<group>\.)[0-9]{3}(?:\.[0-9]{3}){0,3}(?=,)"
    r"|[0-9]{1,15})(?:(?P<mark>[.,])(?P<rest>[0-9]{1,2}))?(?P<after>[^\d]{0,12})"
)
"""A sign or a bracket before it may make it negative; "1,250" may be either of two numbers."""


def _amount(text: str) -> Figure | None:
    match = _AMOUNT.fullmatch(text)
    if match is None or match["after"][:1] in tuple(".,-–−"):
        return None
    whole, rest, group = regex.sub(r"\D", "", match["whole"]), match["rest"] or "", match["group"]
    if len(whole) > 1 and whole[0] == "0":
        return None
    places = len(rest)

    def write(value: int) -> str | None:
        figures, _, decimals = f"{Decimal(value).scaleb(-places):,.{places}f}".partition(".")
        number = figures.replace(",", group or "") + (match["mark"] + decimals if places else "")
        return text[: match.start("whole")] + number + text[match.start("after") :]

    return Figure(int(whole + rest), places, write)
