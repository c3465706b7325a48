"""Phones: telephone numbers, international and as several countries write them.

In: a text in plain form. Out: the positions of telephone numbers in it, with scores.
Not here: numbering plans, which come from the library `phonenumbers`.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import regex

from textveil.protect.patterns.rules import Expression, Words

REGIONS = ("US", "GB", "DE", "FR", "ES", "IT", "NL", "SE", "AU", "IN", "BR", "JP")
"""Countries whose national format is recognized without a telling word nearby."""

_CANDIDATE = Expression(
    r"""(?<!\d:) (?<![\w.,\-$€£¥%@#=]) (?<! [$€£¥] [ ] )
    (?: (?: \+ | (?<!\d)00(?=[1-9]) ) [ ]? )? \(? \+? \d (?: [ .\-/()]{0,3}+ \d ){5,17}+
    (?P<extension> [ ]? (?: x | ext\.? | extension | durchwahl ) [ ]? \d{1,6} )? (?! [\w%€£$] | [.,:\-/] \d )"""
)
_WORDS = Words(
    "phone|phones|telephone|tel|telefon|telefonnummer|téléphone|tél|teléfono|telefono|telefoon|mobile|mobil|cell"
    "|cellphone|fax|call|calls|called|calling|call #|ring|dial|reach|reached|contact|text me|text him|text her"
    "|text us|texted|sms|whatsapp|signal|handy|handynummer|anrufen|erreichbar|portable|móvil|cellulare|desk|office"
    "|hotline|helpline|toll-free|toll free"
    "|callback|his number|her number|your number|my number|answering|message|messages|registered|landline"
    "|extension|voicemail"
)
_DATE = regex.compile(
    r"""(?:1\d|20)\d\d[.\-/ ][01]?\d[.\-/ ][0-3]?\d (?:[ ]\d{1,2})?
    | (?:[0-3]?\d[.\-/ ][01]?\d|[01]?\d[.\-/ ][0-3]?\d)[.\-/ ](?:19|20)?\d\d (?:[ ]*-[ ]*\d.*|[ ]\d{1,2})?
    | (?:1\d|20)\d\d[ ]?[\-/ ][ ]?(?:1\d|20)?\d\d | .*\((?:1\d|20)\d\d\)? | \d{1,3}[ ]?-[ ]?\d{1,3}
    | \d{1,3}(?:\.\d{1,3}){3}""",
    regex.VERBOSE,
)
"""Dates, ranges of years and small numbers, IP addresses: never telephone numbers, whatever words are near."""
_AMOUNT = regex.compile(r"\d{1,9}\.\d{1,9}|\d{1,3}(?:[. ]\d{3}){1,5}")
"""Decimals and thousands: telephone numbers only if nearby words say so."""
NEAR = 45


def are_regions(regions: Sequence[str]) -> bool:
    """Whether numbering plans are known for all of them."""
    if set(regions) <= {*REGIONS}:
        return True
    import phonenumbers

    return set(regions) <= phonenumbers.SUPPORTED_REGIONS


def find_phones(plain: str, folded: str, regions: Sequence[str]) -> Iterator[tuple[int, int, float]]:
    """Start, end and score of each telephone number in a text, given also in folded form for telling words.

    A number with a country code must be valid in that country. One without must be valid in one of the regions, and
    be grouped as is usual there or have a telling word nearby.
    """
    words: list[int] | None = None
    for match in _CANDIDATE.compiled.finditer(plain):
        if words is None:
            words = sorted(begin for begin, _ in _WORDS.find(folded))
        start, end = match.span()
        at = bisect_left(words, start - NEAR)
        told = at < len(words) and words[at] < end + 12
        found = _judge(plain, start, match, regions, told=told)
        if found is not None:
            yield found


def _judge(
    plain: str, start: int, match: regex.Match[str], regions: Sequence[str], *, told: bool
) -> tuple[int, int, float] | None:
    end, whole = match.end(), match.group()
    number = whole[: match.start("extension") - start] if match["extension"] else whole
    if whole[0] == "(" and ")" not in whole:
        start, number = start + 1, number[1:]
    if number.startswith(("+", "(+", "00")):
        for stop in _stops(number):
            if _is_valid(number[:stop], None):
                return start, end if stop == len(number) else start + stop, 0.95
    likely = not _DATE.fullmatch(number) and (told or not _AMOUNT.fullmatch(number))
    separated = not number.isdigit()
    if likely and (separated or told):
        for stop in _stops(number) if told else [len(number)]:
            shape = [len(group) for group in regex.findall(r"\d+", number[:stop])]
            if any(_is_valid(number[:stop], region, None if told else shape) for region in regions):
                return start, end if stop == len(number) else start + stop, 0.85 if told else 0.75
    count = sum(c.isdigit() for c in number)
    return (start, end, 0.7) if told and likely and 6 <= count <= 15 else None


def _stops(number: str) -> list[int]:
    """Where a number may end: at its end, or before one of its last three spaces."""
    return [len(number), *(m.start() for m in list(regex.finditer(r"(?<=\d)[ ]", number))[:-4:-1])]


def _is_valid(number: str, region: str | None, shape: list[int] | None = None) -> bool:
    """Whether the number is valid in a region, and grouped like `shape` if that is given."""
    import phonenumbers

    digits = sum(c.isdigit() for c in number)
    if not 6 <= digits <= 15:
        return False
    try:
        parsed = phonenumbers.parse(number if not number.startswith("00") else "+" + number[2:], region)
    except phonenumbers.NumberParseException:
        return False
    if not phonenumbers.is_valid_number(parsed):
        return False
    if shape is None:
        return True
    style = phonenumbers.PhoneNumberFormat.NATIONAL
    usual = [len(group) for group in regex.findall(r"\d+", phonenumbers.format_number(parsed, style))]
    return shape in (usual, [1, *usual])
