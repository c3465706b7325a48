"""Identifiers that belong to nobody: telephone numbers, cards and others from reserved ranges.

In: an identifier, and the number of one of its range. Out: that one, written like the identifier.
Not here: which number a value gets, and that no other value gets it (`pipeline.surrogates`).

Each range is set aside by who issues such numbers, for examples, tests or drama, or is never
issued. A type without such a range has no surrogates. The sources stand beside the ranges.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

_DIGITS = re.compile(r"[0-9]")
_SIGNS = re.compile(r"[0-9A-Za-z]")


@dataclass(frozen=True)
class ReservedRange:
    """A range of reserved identifiers, by number.

    Args:
        size: how many there are.
        write: writes the one of a number from 0, in the form of the original; None if it cannot.
        keeps_form: whether different spellings of an original give different spellings.
    """

    size: int
    write: Callable[[int], str | None] = field(repr=False)
    keeps_form: bool = True


# ---- telephone numbers ---------------------------------------------------------------------------

_INTERNATIONAL = re.compile(r"\s*\(?\s*(?:\+|00)")
_AMERICAN = re.compile(r"(?:1[-. ])?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}")
"""North American numbers, as they are written there."""

_AREAS = ("202", "212", "213", "305", "312", "404", "415", "512", "617", "702")
_UK = ("113", "114", "115", "116", "117", "118", "121", "131", "141", "151", "161")

PHONE_RANGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    # 555-0100 to 555-0199 of each area: ATIS-0300115, "555 NXX Assignment Guidelines"; NANPA.
    ("1", tuple(f"{area}55501xx" for area in _AREAS)),
    # Ofcom, "Telephone numbers for use in TV and radio drama programmes".
    ("44", (*(f"{area}4960xxx" for area in _UK), "2079460xxx", "1632960xxx", "7700900xxx")),
    # Bundesnetzagentur, Mitteilung Nr. 148/2021 (Amtsblatt 7/2021), "Drama Numbers".
    ("49", ("3023125xxx", "6990009xxx", "4066969xxx", "2214710xxx", "8999998xxx")),
    # Arcep, decision 2018-0881, numbers for audiovisual works.
    ("33", ("19900xxxx", "26191xxxx", "35301xxxx", "46571xxxx", "53649xxxx", "63998xxxx")),
    # ACMA, "Phone numbers for use in TV shows, films and creative works".
    ("61", tuple(f"{area}{part}xxxx" for area in "2378" for part in ("5550", "7010"))),
    # ComReg, National Numbering Conventions: 020 91x xxxx for drama.
    ("353", ("2091xxxxx",)),
    # PTS, numbers for use in fiction.
    ("46", ("313900600+", "406280400+", "8465004xx", "980319200+", "701740605+")),
)
"""For each country its code and its ranges; x is any digit.

A number with + is the first of those up to its last two digits 99.
"""


def _count_range(pattern: str) -> int:
    if pattern.endswith("+"):
        return 100 - int(pattern[-3:-1])
    count: int = 10 ** pattern.count("x")
    return count


def _fill_range(pattern: str, number: int) -> str:
    if pattern.endswith("+"):
        return f"{pattern[:-3]}{int(pattern[-3:-1]) + number:02}"
    width = pattern.count("x")
    return pattern.rstrip("x") + f"{number:0{width}}"


def _find_phones(original: str) -> ReservedRange | None:
    digits = "".join(_DIGITS.findall(original))
    start = _INTERNATIONAL.match(original)
    codes = [code for code, _ in PHONE_RANGES]
    mine = [
        code for code in codes if start and digits[2 * ("+" not in start[0]) :].startswith(code)
    ]
    # A number without its country is nobody's in one country, and somebody's in another.
    if start is not None:
        begin = "" if "+" in start[0] else "00"
        choices = [_list_phones(begin, mine), _list_phones(begin, codes)]
    elif _AMERICAN.fullmatch(original):
        choices = [[(digits[:-10], pattern) for _, pattern in _list_phones("", ["1"])]]
    else:
        choices = []
    for ranges in choices:
        fitting = [
            (code, each) for code, each in ranges if len(code + each.rstrip("+")) == len(digits)
        ]
        if fitting:
            return _join_ranges(fitting, lambda number: _fill_form(_DIGITS, original, number))
    return _join_ranges(_list_phones("+", mine or codes), _space_number, keeps=False)


def _list_phones(begin: str, codes: Sequence[str]) -> list[tuple[str, str]]:
    """Lists the ranges of some countries, each behind what a caller dials first."""
    return [
        (begin + code, pattern)
        for code, patterns in PHONE_RANGES
        if code in codes
        for pattern in patterns
    ]


def _space_number(number: str) -> str:
    """Writes an international number with spaces, so that it reads as one."""
    code = next(code for code, _ in PHONE_RANGES if number.startswith(f"+{code}"))
    rest = number[1 + len(code) :]
    return f"+{code} {rest[:-7]} {rest[-7:-4]} {rest[-4:]}"


def _join_ranges(
    ranges: Sequence[tuple[str, str]],
    write: Callable[[str], str | None],
    *,
    keeps: bool = True,
) -> ReservedRange:
    ends = list(accumulate(_count_range(pattern) for _, pattern in ranges))

    def write_number(number: int) -> str | None:
        at = next(i for i, end in enumerate(ends) if number < end)
        start, pattern = ranges[at]
        return write(start + _fill_range(pattern, number - (ends[at - 1] if at else 0)))

    return ReservedRange(ends[-1], write_number, keeps)


# ---- cards and accounts --------------------------------------------------------------------------

TEST_CARDS = (
    # Published by processors for their test systems, where they stand for no card: Stripe,
    # "Test card numbers"; PayPal, "Test credit card account numbers"; Adyen, "Test card numbers".
    # Not those that everybody writes as an example (4242 4242 4242 4242, 4111 1111 1111 1111 and their like):
    # where a model writes one by itself, it would be restored as the user's.
    "4012888888881881", "4000056655665556", "4222222222222", "5105105105105100",
    "5200828282828210", "2223003122003222", "2223000048400011", "371449635398431",
    "378734493671000", "6011111111111117", "6011000990139424", "6011981111111113",
    "3056930009020004", "30569309025904", "36227206271667", "38520000023237",
    "3566002020360505", "3530111333300000", "6200000000000005", "6200000000000047",
)  # fmt: skip


def _find_cards(original: str) -> ReservedRange | None:
    size = len(_DIGITS.findall(original))
    cards = [card for card in TEST_CARDS if len(card) == size]
    return ReservedRange(len(cards), lambda number: _fill_form(_DIGITS, original, cards[number]))


IBAN_COUNTRY = "ZZ"
"""Country of invented IBANs: ISO 3166-1 leaves ZZ to its users and gives it to no country."""


def _find_ibans(original: str) -> ReservedRange | None:
    size = len(_SIGNS.findall(original)) - 4
    if not 11 <= size <= 30:  # ISO 13616
        return None

    def write(number: int) -> str | None:
        account = f"{number:0{size}}"
        # Remainder 1 of division by 97 as for real ones, so that a text stays plausible.
        check = 98 - int(f"{account}{_spell_letters(IBAN_COUNTRY)}00") % 97
        return _fill_form(_SIGNS, original, f"{IBAN_COUNTRY}{check:02}{account}")

    return ReservedRange(10 ** min(size, 18), write)


def _spell_letters(letters: str) -> str:
    return "".join(str(ord(letter) - ord("A") + 10) for letter in letters)


# ---- the net -------------------------------------------------------------------------------------

EXAMPLE_DOMAINS = ("example.org", "example.com", "example.net")
"""Second-level domains for examples: RFC 2606, section 3."""

EXAMPLE_NETS = ("192.0.2.", "198.51.100.", "203.0.113.")
"""Networks for documentation: RFC 5737."""

EXAMPLE_NET6 = "2001:db8::"
"""Network for documentation: RFC 3849."""


def _find_mail(original: str) -> ReservedRange | None:
    domains, users = EXAMPLE_DOMAINS, 90_000

    def write(number: int) -> str:
        return f"user{number // len(domains) + 10_000}@{domains[number % len(domains)]}"

    return ReservedRange(users * len(domains), write, keeps_form=False)


def _find_addresses(original: str) -> ReservedRange | None:
    try:
        version = ipaddress.ip_address(original).version
    except ValueError:
        return None
    if version == 4:
        hosts = 254
        return ReservedRange(
            hosts * len(EXAMPLE_NETS),
            lambda number: f"{EXAMPLE_NETS[number // hosts]}{number % hosts + 1}",
            keeps_form=False,
        )
    # Decimal digits only, so that it reads as a number.
    part = 9_000
    return ReservedRange(
        part * part,
        lambda number: f"{EXAMPLE_NET6}{number // part + 1_000}:{number % part + 1_000}",
        keeps_form=False,
    )


# ---- national numbers ----------------------------------------------------------------------------


def _write_ssn(number: int) -> str:
    # Area 666 was never assigned and is not: SSA, POMS RM 10201.035.
    return f"666{number // 9_999 + 1:02}{number % 9_999 + 1:04}"


def _write_nhs(number: int) -> str | None:
    # 999 is for tests: NHS England, "NHS numbers for test data".
    start = f"999{number:06}"
    check = 11 - sum(int(digit) * (10 - i) for i, digit in enumerate(start)) % 11
    return None if check == 10 else f"{start}{check % 11}"


def _write_nino(number: int) -> str:
    # No prefix has Q: HMRC, National Insurance Manual NIM39110.
    return f"QQ{number // 4:06}{'ABCD'[number % 4]}"


def _write_fodselsnummer(number: int) -> str | None:
    from stdnum.no import fodselsnummer

    # The month plus 80 is that of invented persons: Skatteetaten, "Tenor testdata".
    day, month, year = number % 28 + 1, number // 28 % 12 + 81, number // 336 % 100
    start = f"{day:02}{month}{year:02}{number // 33_600:03}"
    first = fodselsnummer.calc_check_digit1(start)
    second = fodselsnummer.calc_check_digit2(start + first)
    return start + first + second if len(first + second) == 2 else None


def _write_hetu(number: int) -> str:
    # 900 to 999 are temporary, for tests: Digital and Population Data Services Agency of Finland.
    day, month, year = number % 28 + 1, number // 28 % 12 + 1, number // 336 % 100
    start = f"{day:02}{month:02}{year:02}"
    person = 900 + number // 33_600
    return f"{start}{person}{'0123456789ABCDEFHJKLMNPRSTUVWXY'[int(f'{start}{person}') % 31]}"


_NATIONAL: tuple[tuple[str, str, re.Pattern[str], int, Callable[[int], str | None]], ...] = (
    ("us.ssn", "", re.compile(r"\d{3}([- ])\d{2}\1\d{4}"), 99 * 9_999, _write_ssn),
    ("gb.nhs", "", re.compile(r"\d{3}[- ]?\d{3}[- ]?\d{4}"), 1_000_000, _write_nhs),
    (
        "",
        "",
        re.compile(r"(?i)[A-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]"),
        4_000_000,
        _write_nino,
    ),
    ("no.fodselsnummer", "", re.compile(r"\d{6} ?\d{5}"), 33_600 * 1_000, _write_fodselsnummer),
    ("fi.hetu", "", re.compile(r"(?i)\d{6}[-+A-FU-Y]\d{3}[0-9A-Y]"), 33_600 * 100, _write_hetu),
)
"""National numbers with a range: a check of `stdnum`, their form, size of the range, and writer."""


def _find_national(original: str) -> ReservedRange | None:
    from importlib import import_module

    for check, _, form, size, write in _NATIONAL:
        if form.fullmatch(original) is None:
            continue
        module: Any = import_module(f"stdnum.{check}") if check else None
        if module is None or module.is_valid(original):
            signs = re.compile(r"[0-9A-Za-z]") if check != "fi.hetu" else _HETU_SIGNS
            return ReservedRange(size, _fill_with(write, signs, original))
    return None


_HETU_SIGNS = re.compile(r"[0-9]|(?<=[0-9])[0-9A-Za-z]\Z")
"""All signs but that of the century, which stays."""


def _fill_with(
    write: Callable[[int], str | None], signs: re.Pattern[str], original: str
) -> Callable[[int], str | None]:
    def fill(number: int) -> str | None:
        written = write(number)
        return None if written is None else _fill_form(signs, original, written)

    return fill


def _fill_form(signs: re.Pattern[str], original: str, written: str) -> str | None:
    """Writes signs in the places of an original's; None if there are not as many."""
    rest: Iterator[str] = iter(written)
    if len(signs.findall(original)) != len(written):
        return None
    return signs.sub(lambda _: next(rest), original)


_FINDERS: dict[str, Callable[[str], ReservedRange | None]] = {
    "CARD": _find_cards,
    "EMAIL": _find_mail,
    "IBAN": _find_ibans,
    "IP": _find_addresses,
    "NATIONAL_ID": _find_national,
    "PHONE": _find_phones,
}

RESERVED_TYPES = tuple(_FINDERS)
"""Types whose values may have surrogates."""


def find_range(type_: str, original: str) -> ReservedRange | None:
    """Finds the reserved range for an identifier; None if there is none.

    Args:
        type_: its type.
        original: the identifier as it is written.
    """
    find = _FINDERS.get(type_)
    found_range = None if find is None else find(original)
    return found_range if found_range is not None and found_range.size else None
