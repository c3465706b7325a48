"""Checksums: checks the digits and parts of numbers.

In: a number as written in a text, separators included. Out: whether its check digits and parts are
valid.
Not here: the search for numbers (`rules`).
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date
from functools import cache, reduce
from importlib import import_module
from types import ModuleType

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def list_digits(value: str) -> list[int]:
    """Returns the ASCII digits of a number."""
    return [ord(c) - 48 for c in value if "0" <= c <= "9"]


def compact(value: str) -> str:
    """Returns the ASCII letters, in upper case, and digits of a value."""
    return "".join(c for c in value if c.isascii() and c.isalnum()).upper()


def sum_weighted(values: Iterable[int], weights: Iterable[int]) -> int:
    """Returns the sum of products, up to the shorter one's end."""
    return sum(v * w for v, w in zip(values, weights, strict=False))


def is_date(year: int, month: int, day: int) -> bool:
    """True if year, month and day are a valid date."""
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def is_short_date(year: int, month: int, day: int) -> bool:
    """True if the date is valid in the 20th or 21st century."""
    return is_date(2000 + year % 100, month, day) or is_date(1900 + year % 100, month, day)


def is_short_birth(value: str) -> bool:
    """True if a number starts with day, month and two-digit year."""
    d = list_digits(value)
    return is_short_date(10 * d[4] + d[5], 10 * d[2] + d[3], 10 * d[0] + d[1])


# ---- schemes -------------------------------------------------------------------------------------


def _make_check(*modules: str) -> Callable[[str], bool]:
    """Makes a check by modules of python-stdnum.

    One of them must accept the number. They are loaded when a number is first checked.
    """

    def is_valid(value: str) -> bool:
        return any(_is_accepted(_load_module(name), compact(value)) for name in modules)

    is_valid.__name__ = f"is_{'_or_'.join(modules)}"
    return is_valid


@cache
def _load_module(name: str) -> ModuleType:
    """Loads a module of python-stdnum; a missing one fails detection."""
    return import_module(f"stdnum.{name}")


def _is_accepted(module: ModuleType, number: str) -> bool:
    try:
        return bool(module.is_valid(number))
    except (ValueError, LookupError):  # of what has another form than the module expects
        return False


luhn = _make_check("luhn")
"""ISO/IEC 7812-1, annex B: cards and many others."""
verhoeff = _make_check("verhoeff")
"""Verhoeff's scheme."""


def mod97(value: str) -> bool:
    """True if an IBAN is valid (ISO 7064 mod 97-10).

    The first four characters are moved to the end before the check.
    """
    whole = compact(value)
    return int("".join(str(int(c, 36)) for c in whole[4:] + whole[:4])) % 97 == 1


def is_base58check(value: str) -> bool:
    """True if a Bitcoin address is valid in base58check.

    The last four bytes are the start of a double SHA-256 of the others.
    """
    number = 0
    for c in value:
        number = number * 58 + BASE58.index(c)
    try:
        raw = number.to_bytes(25, "big")
    except OverflowError:
        # The number has more than the 25 bytes of an address.
        return False
    return hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]


def is_bech32(value: str) -> bool:
    """True if a Bitcoin address is valid (BIP 173, BIP 350)."""
    if value not in (value.lower(), value.upper()):
        return False
    prefix, _, data = value.lower().rpartition("1")
    if not prefix or len(data) < 6 or not set(data) <= set(BECH32):
        return False
    values = (
        [ord(c) >> 5 for c in prefix]
        + [0]
        + [ord(c) & 31 for c in prefix]
        + [BECH32.index(c) for c in data]
    )
    # The constants of bech32 and of bech32m.
    return reduce(_step_bech32, values, 1) in (1, 0x2BC830A3)


def _step_bech32(check: int, value: int) -> int:
    top, check = check >> 25, (check & 0x1FFFFFF) << 5 ^ value
    for i, factor in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
        check ^= factor if top >> i & 1 else 0
    return check


def entropy(value: str) -> float:
    """Returns the entropy of the characters, in bits per character."""
    return (
        -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())
        if value
        else 0.0
    )


# ---- national numbers ----------------------------------------------------------------------------

is_nif = _make_check("es.dni", "es.nie")
"""Spain: NIF and NIE."""
is_nhs = _make_check("gb.nhs")
"""England: NHS number."""
is_codice_fiscale = _make_check("it.codicefiscale")
"""Italy: codice fiscale."""
is_nir = _make_check("fr.nir")
"""France: NIR."""
is_steuer_id = _make_check("de.idnr")
"""Germany: Steuer-ID; among its first ten digits, one occurs two or three times and all others at
most once."""
is_pesel = _make_check("pl.pesel")
"""Poland: PESEL."""
is_bsn = _make_check("nl.bsn")
"""Netherlands: BSN."""
is_fodselsnummer = _make_check("no.fodselsnummer")
"""Norway: fødselsnummer."""
is_rijksregister = _make_check("be.nn", "be.bis")
"""Belgium: rijksregisternummer; for births since 2000, a 2 is put before the number."""
is_ahv = _make_check("ch.ssn")
"""Switzerland: AHV number, an EAN-13."""
is_abn = _make_check("au.abn")
"""Australia: business number."""
is_cpf = _make_check("br.cpf")
"""Brazil: CPF."""
is_cnpj = _make_check("br.cnpj")
"""Brazil: CNPJ."""
is_rrn = _make_check("kr.rrn")
"""Korea: resident registration number."""
is_portuguese_nif = _make_check("pt.nif")
"""Portugal: NIF."""
is_nip = _make_check("pl.nip")
"""Poland: NIP."""
is_regon = _make_check("pl.regon")
"""Poland: REGON, nine digits."""
is_tc_kimlik = _make_check("tr.tckimlik")
"""Turkey: T.C. kimlik number."""
is_my_number = _make_check("jp.in_")
"""Japan: individual number."""
is_inn = _make_check("ru.inn")
"""Russia: INN, ten or twelve digits."""
is_rut = _make_check("cl.rut")
"""Chile: RUT."""
is_routing_number = _make_check("us.rtn")
"""United States: routing number of a bank."""


def is_personnummer(value: str) -> bool:
    """True if a number can be Sweden's personnummer.

    So can a samordningsnummer, whose day is 60 too large.
    """
    d = list_digits(value)[-10:]
    day = (10 * d[4] + d[5]) % 60
    return is_short_date(10 * d[0] + d[1], 10 * d[2] + d[3], day) and luhn("".join(map(str, d)))


def is_tfn(value: str) -> bool:
    """True if a number can be Australia's tax file number.

    It has eight or nine digits.
    """
    d = list_digits(value)
    return (
        sum_weighted(d, (1, 4, 3, 7, 5, 8, 6, 9, 10) if len(d) == 9 else (10, 7, 8, 4, 6, 3, 5, 1))
        % 11
        == 0
    )


def is_hetu(value: str) -> bool:
    """True if a number can be Finland's henkilötunnus."""
    d = list_digits(value[:10])
    number = int("".join(map(str, d)))
    born = is_short_date(10 * d[4] + d[5], 10 * d[2] + d[3], 10 * d[0] + d[1])
    return born and "0123456789ABCDEFHJKLMNPRSTUVWXY"[number % 31] == value[-1].upper()


def is_pps(value: str) -> bool:
    """True if a number can be Ireland's PPS number.

    It ends with one or two letters.
    """
    whole = compact(value)
    total = sum_weighted(list_digits(whole), range(8, 1, -1)) + (
        9 * (ord(whole[8]) - 64) % 23 if len(whole) > 8 else 0
    )
    return "WABCDEFGHIJKLMNOPQRSTUV"[total % 23] == whole[7]


def is_south_african(value: str) -> bool:
    """True if a number can be South Africa's identity number."""
    d = list_digits(value)
    return is_short_date(10 * d[0] + d[1], 10 * d[2] + d[3], 10 * d[4] + d[5]) and luhn(value)


def is_nric(value: str) -> bool:
    """True if a number can be Singapore's NRIC or FIN."""
    whole = compact(value)
    total = sum_weighted(list_digits(whole), (2, 7, 6, 5, 4, 3, 2)) + {"T": 4, "G": 4, "M": 3}.get(
        whole[0], 0
    )
    series = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "XWUTRQPNJLK"}.get(
        whole[0], "XWUTRQPNMLK"
    )
    return series[total % 11] == whole[-1]


def is_medicare(value: str) -> bool:
    """True if a number can be that of Australia's Medicare card."""
    d = list_digits(value)
    return sum_weighted(d[:8], (1, 3, 7, 9, 1, 3, 7, 9)) % 10 == d[8]


def is_resident_id(value: str) -> bool:
    """True if a number can be China's resident identity number.

    Its check digit is after ISO 7064 mod 11-2.
    """
    whole = compact(value)
    d = list_digits(whole[:17])
    born = is_date(int(whole[6:10]), int(whole[10:12]), int(whole[12:14]))
    return (
        born
        and "10X98765432"[sum_weighted(d, [2 ** (17 - i) % 11 for i in range(17)]) % 11]
        == whole[-1]
    )


def is_dea(value: str) -> bool:
    """True if a number can be a US prescriber's DEA number."""
    d = list_digits(compact(value)[2:])
    return (d[0] + d[2] + d[4] + 2 * (d[1] + d[3] + d[5])) % 10 == d[6]


def is_npi(value: str) -> bool:
    """True if a number can be a US national provider identifier.

    It is a Luhn number when prefixed with 80840.
    """
    return luhn("80840" + value)


_CROSS = str.maketrans({letter: f"{place:02d}" for place, letter in enumerate(LETTERS, 1)})


def is_insurance_number(value: str) -> bool:
    """True if a number can be Germany's health insurance number.

    This is the Krankenversichertennummer.
    """
    d = list_digits(compact(value).translate(_CROSS))
    return (
        sum(sum(divmod(v * w, 10)) for v, w in zip(d[:-1], (1, 2) * 5, strict=True)) % 10 == d[-1]
    )


def is_pension_number(value: str) -> bool:
    """True if a number can be Germany's Rentenversicherungsnummer.

    It holds the date of birth.
    """
    d = list_digits(compact(value).translate(_CROSS))
    total = sum(
        sum(divmod(v * w, 10))
        for v, w in zip(d[:-1], (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True)
    )
    day = 10 * d[2] + d[3]
    born = is_short_date(10 * d[6] + d[7], 10 * d[4] + d[5], day - 50 if day > 50 else day)
    return born and total % 10 == d[-1]


def is_cccd(value: str) -> bool:
    """True if a number can be Vietnam's citizen number.

    It begins with the province, and sex with century.
    """
    d = list_digits(value)
    return 1 <= 100 * d[0] + 10 * d[1] + d[2] <= 96 and d[3] < 4


def has_valid_birth_date(value: str) -> bool:
    """True if China's resident number has a valid date.

    Any check digit passes.
    """
    whole = compact(value)
    return is_date(int(whole[6:10]), int(whole[10:12]), int(whole[12:14])) and whole[6:8] in (
        "18",
        "19",
        "20",
    )


def is_hkid(value: str) -> bool:
    """True if a number can be that of Hong Kong's identity card.

    It has one or two letters, six digits and a check digit.
    """
    whole = compact(value)
    # Before a single letter stands a blank, which counts 36.
    values = [36, *(int(c, 36) for c in whole)][-9:]
    return sum_weighted(values[:-1], range(9, 1, -1)) % 11 == -values[-1] % 11


def is_taiwanese(value: str) -> bool:
    """True if a number can be that of Taiwan's identity card."""
    whole = compact(value)
    place = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(whole[0]) + 10
    return (
        sum_weighted([*divmod(place, 10), *list_digits(whole)], (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1))
        % 10
        == 0
    )


def is_dated_rrn(value: str) -> bool:
    """True if Korea's resident registration number has a valid date.

    Any check digit passes: numbers issued since 2020 have none.
    """
    d = list_digits(value)
    return is_short_date(10 * d[0] + d[1], 10 * d[2] + d[3], 10 * d[4] + d[5])


def is_snils(value: str) -> bool:
    """True if a number can be Russia's SNILS."""
    d = list_digits(value)
    return any(d) and sum_weighted(d, range(9, 0, -1)) % 101 % 100 == 10 * d[9] + d[10]


def is_egyptian(value: str) -> bool:
    """True if a number can be Egypt's national number.

    It holds the century, the date of birth and the governorate.
    """
    d = list_digits(value)
    born = is_date(1700 + 100 * d[0] + 10 * d[1] + d[2], 10 * d[3] + d[4], 10 * d[5] + d[6])
    return born and (1 <= 10 * d[7] + d[8] <= 35 or d[7] == d[8] == 8)


def is_cuit(value: str) -> bool:
    """True if a number can be Argentina's CUIT or CUIL."""
    d = list_digits(value)
    return sum_weighted(d, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11 == -d[10] % 11


def is_nuss(value: str) -> bool:
    """True if a number can be Spain's social security number."""
    whole = "".join(map(str, list_digits(value)))
    number = int(whole[:2] + whole[3:10]) if whole[2] == "0" else int(whole[:10])
    return number % 97 == int(whole[10:])


_VALUES = dict(zip(LETTERS, map(int, "12345678012345070923456789"), strict=True))


def is_vin(value: str) -> bool:
    """True if a vehicle identification number has a valid check digit.

    North America demands that digit (49 CFR 565).
    """
    whole = compact(value)
    values = [int(c) if c.isdigit() else _VALUES[c] for c in whole]
    return (
        "0123456789X"[
            sum_weighted(values, (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)) % 11
        ]
        == whole[8]
    )
