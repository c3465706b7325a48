"""Values: checks whether a value fits its key, and finds its limits.

In: a text, a place in it, the kind that the key announced. Out: the type and place of the value,
and whether it is likely on its own.
Not here: keys (`field_names`), and the influence of a value's neighbours (`keyvalue`).
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import regex

from textveil.detect.patterns.accounts import BIC, is_bic
from textveil.detect.patterns.checksums import mod97
from textveil.detect.patterns.rules import Expression
from textveil.text import LazyPattern, lookup_ranks, vocabulary
from textveil.text.lexicon import is_all_ordinary
from textveil.text.name_lists import load_names

_MAX_ORDINARY_RANK = 20_000
"""The rank above which a word of public text is rare; more frequent unlisted words are ordinary."""


class Value(NamedTuple):
    """A value that fits its key: its place, type and likelihood.

    Args:
        start: first character.
        end: one past the last.
        type: a type of spans.
        likely: whether the value is likely of its type without a key: for a name, that it looks
            like a person's.
    """

    start: int
    end: int
    type: str
    likely: bool


_TITLES = r"""(?: (?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Sir|Dame|Rev|Fr|Sr|Sra|Srta|Dra|Don|Doña|Herrn?|Frau|Hr|M|Mme|Mlle|Me|Pr
    |Sig|Sig\.ra|Sig\.na|Dott|Dott\.ssa|Avv|Ing|Arch|Dhr|Mevr|Mw|Pan|Pani|D|D\.ª|D\.ª|Doç|Öğr|Av|PC|Sgt|Capt|Lt|Col|Auntie
    |Uncle|Monsieur|Madame|Señor|Señora|Senhor|Senhora|Signor|Signora|Meneer|Mevrouw|dhr|mw|mevr|sig|sig\.ra|dott|avv
    |господин|госпожа|г-н|г-жа|д-р) \.? [ ] )"""
_CAPITAL = r"[\p{Lu}\p{Lt}][\p{L}\p{M}]*+(?:['’‘.\-]'?[\p{L}\p{M}]++)*+\.?"
_SMALL = (
    r"(?:de|da|do|dos|das|del|della|di|la|le|van|von|der|den|"
    r"ter|ten|el|al|bin|bint|ibn|y|e|zu|af|av|du|des|zum|dell')"
)
_COMMA = (
    r"(?: , (?! [ ] (?: DNI | NIE | NIF | NIP | CPF | RG | CURP | RFC | CUIT | SSN | SIN | NIN? | NINO | NHS | NIR"
    r" | BSN | PESEL | T\.?C\.? | TCKN | PAN | ID | IBAN | DOB | VAT | ИНН | СНИЛС )"
    r" (?!\w) ) )?"
)
"""A comma before a name's other half.

It is none before the key of a number: "Ana Sousa, CPF 52...".
"""
CASED = rf"""(?: {_TITLES}{{0,3}} (?:{_SMALL}[ ]){{0,3}} {_CAPITAL}
    (?: {_COMMA}[ ](?:{_SMALL}[ ]){{0,3}} {_CAPITAL} | [ ]\(\p{{Lu}}[\p{{L}}\p{{M}}]+\)
        | [ ]["“'«]\p{{Lu}}[\p{{L}}\p{{M}}]+["”'»] ){{0,5}} )"""
_CHARACTER = r"[\p{Han}\p{Hiragana}\p{Katakana}ー々ヶ･ﾞﾟｦ-ﾝ]"
_HAN = rf"(?:{_CHARACTER}{{1,12}}(?:[ 　・·･]{_CHARACTER}{{1,12}}){{0,3}})"
_HANGUL = r"(?:\p{Hangul}{1,8}(?:[ ]\p{Hangul}{1,6}){0,3})"
_OTHERS = r"""(?:[\p{Arabic}\p{M}]{2,}(?:[ ](?:[\p{Arabic}\p{M}]{2,})){0,5}
    | (?:स्व\.[ ])?[\p{Devanagari}\p{M}]{2,}(?:[ ][\p{Devanagari}\p{M}]{1,}){0,4})"""
_END = r"""(?= \s*$ | [ ]{2} | \t | [ ]?[,;:|/(<\[（、，。；/／)\]】」=!?！\n] | [ ][–—\-•·@]
        | [ ]? & | \.? $ | \.[ ] | ['\"’] | (?<=\)) | [ ](?:and|und|et|y|e|en|ve|i)[ ] )"""
PERSON_NAME = Expression(rf"(?: {CASED} | {_HAN} | {_HANGUL} | {_OTHERS} ) {_END}", regex.VERBOSE)
"""A run of words that looks like a person's name, with its title."""
_WHOLE_NAME = Expression(
    r"[\p{L}][\p{L}\p{M}'’.\-]*(?:[ 　・·,]{1,2}[\p{L}][\p{L}\p{M}'’.\-]*){0,5}", 0
)

_ASIDE = LazyPattern(r"(?<=\w)(?:,[ ][^,()]++|[ ]\([^()]++\))\Z")
"""A role behind a name: "Anna Weiss (Chair)", "Anna Weiss, Planning"."""
_CAMEL = LazyPattern(
    r"(?<!\b(?:Mc|Mac|De|Di|Du|Da|La|Le|Van|Von|Fitz|O|Al|El|St|Ní))(?<=\p{Ll})\p{Lu}"
)
_HONORIFICS = LazyPattern(
    r"[ 　]?(?:先生|女士|小姐|老师|様|さん|さま|君|ちゃん|殿|님|씨|교수|선생님|대리님|과장님|部長|課長)$"
)
_OFFICES = LazyPattern(r"(?:师|員|员|资格|公司|部|课|科|组|队|中心|係|室|課)$|\p{Han}{6}")
_LETTERS = LazyPattern(r"[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)?")
_LATIN = LazyPattern(r"[\p{Latin}\p{Cyrillic}\p{Greek}]")


@cache
def _load_known_names() -> frozenset[str]:
    return frozenset(word.lower() for word in load_names("PERSON").words)


@cache
def _load_country_names() -> frozenset[str]:
    places = load_names("LOCATION")
    return frozenset(
        w.lower() for w, kind in zip(places.words, places.kinds, strict=True) if kind == "country"
    ) | vocabulary.get_words("country_words")


def is_known(word: str) -> bool:
    """True if a word is on the public list of person names."""
    return word.lower() in _load_known_names()


def _split_words(value: str) -> list[str]:
    return [word.lower() for word in _LETTERS.findall(value)]


@lru_cache(maxsize=4096)
def is_ordinary(word: str) -> bool:
    """True if a word is frequent in public text and unlisted.

    The list is that of person names.
    """
    return not is_known(word) and lookup_ranks([word.lower()])[0] < _MAX_ORDINARY_RANK


def _is_filler(words: Sequence[str]) -> bool:
    """True if there are no words, or they are a placeholder.

    Forms and documents use such words for nobody.
    """
    return "_".join(words) in vocabulary.get_words("nobody_names") or all(
        word in vocabulary.get_words("fillers") for word in words
    )


def _is_office(value: str) -> bool:
    return _OFFICES.search(value) is not None and _HONORIFICS.search(value) is None


def is_no_name(value: str) -> bool:
    """True if a value cannot be a person's name.

    It holds a word that no name has, or is a filler of forms and documents.
    """
    words = _split_words(value)
    return (
        _is_filler(words)
        or not vocabulary.get_words("no_persons").isdisjoint(words)
        or _is_office(value)
        or (
            words[0] in ("your", "my", "the", "a", "an", "our", "no", "not")
            and value[len(words[0]) : len(words[0]) + 1] != "."
        )
    )


def is_likely_name(value: str) -> bool:
    """True if a value looks like a person's name without a key."""
    words = [word for word in _LETTERS.findall(value) if len(word) > 1]
    if not words or is_no_name(value):
        return False
    if not _LATIN.search(value):
        return len(words) > 1 or _is_eastern(value)
    if len(words) == 1 and (value.isupper() or "." not in value):
        return False
    return any(map(is_known, words))


def _is_eastern(value: str) -> bool:
    """True if a value is built like an East Asian name.

    It begins with a Chinese surname, or ends in a Chinese, Japanese or Korean honorific.
    """
    short = value[0] in vocabulary.get_words("surname_characters") and 2 <= len(value) <= 4
    return short or _HONORIFICS.search(value) is not None


def is_example(value: str) -> bool:
    """True if examples use a given name for nobody in particular."""
    return value.lower() in vocabulary.get_words("example_names")


def find_name(text: str, start: int, end: int, *, whole: bool, strong: bool) -> Value | None:
    """Finds a person's name at the start of a value.

    Args:
        text: the text.
        start: the start of the value.
        end: the latest possible end.
        whole: whether the value is in quotes or a cell, so that the name must be all of it.
        strong: whether the key can only mean a person, so that small letters are enough.
    """
    match = PERSON_NAME.compiled.match(text, start, end)
    if whole and not (match and _fills_field(match, text, end)):
        match = _WHOLE_NAME.compiled.fullmatch(text, start, end) if strong else None
    value = "" if match is None else _cut_aside(match.group().rstrip(" ,"))
    if (
        not value
        or _CAMEL.search(value)
        or (is_filler_or_phrase(value) if strong else is_no_name(value))
    ):
        return None
    return Value(start, start + len(value), "PERSON", is_likely_name(value))


def _cut_aside(value: str) -> str:
    aside = _ASIDE.search(value)
    return value if aside is None or not is_all_ordinary(aside[0]) else value[: aside.start()]


def _fills_field(match: regex.Match[str], text: str, end: int) -> bool:
    """True if a name is the whole value, apart from additions.

    Additions are a role, and a couple's other half.
    """
    remainder = text[match.end() : end].strip(" .,")
    if not remainder or text[match.end()] in "(,/<（" or remainder[0] in "(–—-·<":
        return True
    return (
        text[match.end()] == " " and remainder[0].isalpha() and is_known(match.group().split()[0])
    )


def is_filler_or_phrase(value: str) -> bool:
    """True if the value of a person's key is no name.

    It is a filler or a phrase.
    """
    words = _split_words(value)
    if value.islower() and value.isascii() and len(value) > 24:
        return True
    if _is_filler(words) or words[0] in ("your", "my", "the", "enter", "insert", "not", "no"):
        return True
    count = sum(word in vocabulary.get_words("no_persons") for word in words)
    return len(words) > 1 and (count > 1 or not vocabulary.get_words("links").isdisjoint(words))


_DATE = r"""(?: \d{1,4}[ ]?[\-/.][ ]?\d{1,2}[ ]?[\-/.][ ]?\d{1,4} | \d{8}
        | \d{1,2}(?:st|nd|rd|th|er|º|\.)?[ ](?:(?:de|of|di|do)[ ])?\p{L}{3,12}\.?
    (?:,?[ ](?:(?:de|del)[ ])?\d{2,4})? | \p{L}{3,12}\.?[ ]\d{1,2}(?:st|nd|rd|th)?(?:,?[ ]\d{4})?
  | [\p{Han}\p{Hangul}]{0,2}\d{1,4}[ ]?[年년][ ]?\d{1,2}[ ]?[月월](?:[ ]?\d{1,2}[ ]?[日일])?
        | \d{4}-\d\d-\d\dT[\d:.]+Z? )"""
_CODE = r"[\p{L}\d][\p{L}\d]*(?:[ ]?[\-/._·][ ]?[\p{L}\d]+|[ ](?=[\p{L}]{0,3}\d)[\p{L}\d]+)*"
_FORMS = {
    "phone": (
        "PHONE",
        r"(?:\+|00|\(\+?)?[\d(][\d().\-/–·　‐－~ ]{3,24}\d(?:[ ]?(?:x|ext\.?|\#)[ ]?\d{1,5})?",
        5,
        15,
    ),
    "extension": ("PHONE", r"\d[\d\-]{1,5}", 2, 6),
    "email": (
        "EMAIL",
        r"[^\s\"'<>,;:|@]{1,80}@[^\s\"'<>,;:|@]{3,120}"
        r"|[\w.+\-]{1,64}[ ]?[(\[][^\s()\[\]]{1,8}[)\]][ ]?[\w\-]{1,64}"
        r"(?:[ ]?[(\[.][^\s()\[\]]{0,8}[)\]]?[ ]?[\w\-]{1,30}){1,4}",
        0,
        99,
    ),
    "birth": ("BIRTH_DATE", _DATE, 1, 14),
    "date": ("DATE", _DATE, 1, 14),
    "age": (
        "AGE",
        r"\d{1,3}(?:[ ]?(?:years?(?:[ ]old)?|yrs?|yo|jahre|ans|años|anos|anni|jaar|lat|yaş"
        r"|tuổi|岁|歳|세|살|лет|год|года|سنة|عام|वर्ष|साल)(?![\p{L}]))?",
        1,
        3,
    ),
    "national": ("NATIONAL_ID", _CODE, 5, 24),
    "medical": ("MEDICAL_RECORD", _CODE, 3, 20),
    "licence": ("LICENCE", _CODE, 4, 20),
    "plate": (
        "PLATE",
        r"[\p{Lu}\p{Lo}\d]{1,5}(?:[ ·\-]{1,2}[\p{Lu}\p{Lo}\d]{1,6}){0,4}|[\p{Lu}\d]{4,9}",
        1,
        8,
    ),
    "vin": ("VIN", r"[A-HJ-NPR-Z\d]{17}", 3, 17),
    "iban": ("IBAN", r"[A-Z]{2}\d\d(?:[ ]?[A-Z\d]{1,4}){3,8}", 10, 32),
    "bic": ("ACCOUNT", BIC, 0, 7),
    "account": (
        "ACCOUNT",
        r"[A-Z]{0,2}\d[\d \-./]{3,32}\d|(?:0x|bc1)[0-9A-Za-z]{20,70}|[A-Z]{2}\d\d(?:[ ]?[A-Z\d]{2,4}){3,8}",
        6,
        34,
    ),
    "card": ("CARD", r"\d(?:[ \-]?\d){11,18}", 12, 19),
    "cvc": ("CARD", r"\d{3,4}(?!\d)", 3, 4),
    "expiry": ("CARD", r"\d\d[ ]?[/\-][ ]?(?:20)?\d\d", 4, 6),
    "ip": ("IP", r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d\d?)?|[0-9a-fA-F:]{2,4}:[0-9a-fA-F:]{2,36}", 3, 40),
    "mac": ("MAC", r"[0-9A-Fa-f]{2}(?:[:\-][0-9A-Fa-f]{2}){5}", 1, 12),
    "latitude": ("COORDINATES", r"-?\d{1,3}\.\d{3,}", 4, 20),
    "longitude": ("COORDINATES", r"-?\d{1,3}\.\d{3,}", 4, 20),
    "coordinates": (
        "COORDINATES",
        r"-?\d{1,3}\.\d{3,}[ ]?[,;/ ][ ]?-?\d{1,3}\.\d{3,}|\d{1,3}[ ]?(?:deg|°)[^\n;|]{8,50}[NSEWO](?!\w)",
        6,
        40,
    ),
    "booking": ("BOOKING", r"[A-Z\d]{5,8}(?!\w)|[A-Z\d]+(?:-[A-Z\d]+)+", 1, 20),
    "postcode": ("ADDRESS", r"[A-Z\d]{2,5}[ \-]?[A-Z\d]{2,4}", 2, 9),
    "house": (
        "ADDRESS",
        r"\d{1,5}[ ]?[\-/]?[ ]?[\p{L}\d]{0,4}(?![\p{L}\d])|[A-Z\d]{1,5}(?![\p{L}\d])",
        0,
        8,
    ),
}
"""Type, form, and least and largest number of digits, by kind."""

_DOMAIN = LazyPattern(r"[A-Z][\w.\-]{0,30}\\{1,2}(?=\w)")
"""A domain of Windows before a user name."""
_HANDLE = Expression(r"@?[\p{L}][\p{L}\d_.\-]{2,31}\d?|@[\w.]{2,30}", 0)
_ORGANIZATION = Expression(r"[\p{L}\d\"«„“][^\n\t|;<>{}\[\]=]{1,79}", 0)
_CUT = Expression(
    r",[ ]|[ ]{2}|\t|\||;|[ ]?\(|（|[ ][–—\-][ ]|,[ ]\p{L}+[ ]?[:=]|[.!?][ ]|，|、|。", 0
)
_ADDRESS_CUT = Expression(
    r"[ ]{2}|\t|\||;|（|[!?][ ]|。|[,.][ ]+(?!no\b|kat\b|k:|d:)"
    r"[\p{L} ]{2,24}[ ]?[:：=]|,[ ](?=(?:tel|phone|mob|dni|nif|pesel)\b)",
    regex.IGNORECASE,
)
_NO_ADDRESS = LazyPattern(r"\A(?:0x|[{\[$<])|@|://")
_PLACE = Expression(rf"(?:{CASED}|{_HAN}|{_HANGUL}|{_OTHERS})", regex.VERBOSE)
_EMPTY = LazyPattern(r"[xX*#.\-_?0 ]+|\$.*|[<{\[%].*")


def _is_empty(value: str) -> bool:
    """True if a value is a placeholder: crosses, a variable, a filler."""
    filler = value.lower() in vocabulary.get_words("fillers")
    return not value or filler or _EMPTY.fullmatch(value) is not None


def find_value(kind: str, text: str, start: int, end: int, *, whole: bool) -> Value | None:
    """Finds the value of a kind at the start of a range.

    Args:
        kind: a kind of `keys`, other than those of persons' names.
        text: the text.
        start: the start of the value.
        end: the latest possible end.
        whole: whether the value is in quotes or a cell, so that it must be all of the range.

    Returns:
        The value; None if the text there does not fit.
    """
    if _is_empty(text[start:end]):
        return None
    if kind == "ssid":
        return Value(start, end, "ID", True) if whole and end - start > 3 else None
    if kind in _FORMS or (kind == "party" and text[start] == "+"):
        return _read_form("phone" if kind == "party" else kind, text, start, end, whole=whole)
    reader = _READERS.get(kind)
    return None if reader is None else reader(text, start, end, whole=whole)


def get_value_type(kind: str) -> str | None:
    """Returns the type of the values of a kind that has a form; None for others."""
    return _FORMS[kind][0] if kind in _FORMS else None


def _count_digits(value: str) -> int:
    return sum(map(str.isdigit, value))


@cache
def _compile_form(kind: str) -> regex.Pattern[str]:
    return regex.compile(rf"(?:{_FORMS[kind][1]})(?![\p{{L}}\d]*@)", regex.VERBOSE)


def _read_form(kind: str, text: str, start: int, end: int, *, whole: bool) -> Value | None:
    type_, _, min_digits, max_digits = _FORMS[kind]
    match = _compile_form(kind).match(text, start, min(end, start + 200))
    if (
        match is None
        or match.end() == start
        or not min_digits <= _count_digits(match.group()) <= max_digits
    ):
        return None
    remainder = text[match.end() : end]
    partly = whole and kind not in ("phone", "national", "date", "birth") and remainder.strip(" .)")
    if remainder[:1].isalnum() or partly or not _is_plausible(kind, match.group()):
        return None
    stop = _find_iban_end(text, start, match.end()) if kind == "iban" else match.end()
    return Value(start, stop, type_, True)


_SHORTEST_IBAN = 15


def _find_iban_end(text: str, start: int, end: int) -> int:
    """Finds the end of an IBAN that a bank's code follows, by its check digits."""
    least = start + _SHORTEST_IBAN
    stops = [end, *(at for at in range(least, end) if text[at] == " ")]
    return next((stop for stop in sorted(stops)[::-1] if mod97(text[start:stop])), end)


def _is_plausible(kind: str, value: str) -> bool:
    """True if a value of the right form can be valid."""
    if kind == "age":
        return 0 < int("0" + "".join(filter(str.isdigit, value))) <= 120
    if kind in ("national", "medical", "licence"):
        return len(set(value)) > 2
    return kind != "bic" or is_bic(value)


_NUMBERS = Expression(rf"(?:{_CODE})", 0)


def _read_number(text: str, start: int, end: int, *, whole: bool) -> Value | None:
    """Reads an id: digits, or letters with digits.

    It is likely private if it is long enough to be unique.
    """
    begin = start + (text[start] in "#№")
    match = _NUMBERS.compiled.match(text, begin, min(end, begin + 64))
    if match is None or (whole and text[match.end() : end].strip(" .)")):
        return None
    value, count = match.group(), _count_digits(match.group())
    letters = sum(map(str.isalpha, value))
    sized = count >= 5 or (count >= 2 and letters >= max(1, 4 - count))
    if sized and letters <= 3 * count + 8:
        return Value(begin, match.end(), "ID", count >= 3)
    return Value(begin, match.end(), "ID", False) if count >= 3 and len(value) <= 24 else None


def _is_nobody(value: str) -> bool:
    """True if a user name belongs to no person.

    It is a system's, an example's, or a constant.
    """
    listed = vocabulary.get_words("nobody_users") | vocabulary.get_words("nobody_names")
    return value.lower() in listed or (value.isupper() and _count_digits(value) < 2)


def _read_handle(text: str, start: int, end: int, *, whole: bool) -> Value | None:
    if domain := _DOMAIN.match(text, start, end):
        start = domain.end()
    match = _HANDLE.compiled.match(text, start, min(end, start + 40))
    remainder = "" if match is None else text[match.end() : end]
    if match is None or (remainder and (whole or remainder[0] in "@([{$%/\\:*'’")):
        return None
    value = match.group().rstrip(".-")
    if _EMPTY.fullmatch(value) or _is_nobody(value):
        return None
    is_distinctive = not value.isalpha() or value != value.lower()
    return Value(start, start + len(value), "HANDLE", is_distinctive)


def _read_organization(text: str, start: int, end: int, *, whole: bool) -> Value | None:
    stop = end
    if not whole and (cut := _CUT.compiled.search(text, start, end)):
        stop = cut.start()
    match = _ORGANIZATION.compiled.match(text, start, stop)
    if match is None or (whole and match.end() < end) or text[start].islower():
        return None
    value = match.group().rstrip(" .,")
    if len(value) < 2 or value.isdigit() or len(value.split()) > 9:
        return None
    return Value(start, start + len(value), "ORGANIZATION", True)


def _read_town(text: str, start: int, end: int, *, whole: bool) -> Value | None:
    match = _PLACE.compiled.match(text, start, end)
    if match is None or match.end() == start or (whole and text[match.end() : end].strip(" .")):
        return None
    value = match.group().rstrip(" .,")
    if value.lower() in _load_country_names() or all(
        word in vocabulary.get_words("fillers") for word in _split_words(value)
    ):
        return None
    return Value(start, start + len(value), "LOCATION", True)


def _read_address(text: str, start: int, end: int, *, whole: bool) -> Value | None:
    stop = end
    if not whole and (cut := _ADDRESS_CUT.compiled.search(text, start, end)):
        stop = cut.start()
    value = text[start:stop].rstrip(" .,;")
    if not 4 <= len(value) <= 160 or _NO_ADDRESS.search(value):
        return None
    if not regex.search(r"\p{L}{2}", value) or (text[start].islower() and not _count_digits(value)):
        return None
    several = " " in value or not value.isascii()
    return Value(start, start + len(value), "ADDRESS", several and _count_digits(value) > 0)


_READERS: dict[str, Callable[..., Value | None]] = {
    "id": _read_number,
    "handle": _read_handle,
    "org": _read_organization,
    "place": _read_town,
    "street": _read_address,
    "address": _read_address,
}
"""The readers of kinds that have no form."""
