"""Phones: telephone numbers, international and as several countries write them.

In: a text in plain form. Out: the positions of telephone numbers in it, with scores.
Not here: numbering plans, which come from the library `phonenumbers`; extensions alone
(`references`).
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np
import regex

from textveil.detect.patterns.rules import FOREIGN, ContextWords, Expression, FoldedText
from textveil.text import LazyPattern, lexicon

PLANS = ("US", "GB", "DE", "FR", "ES", "IT", "NL", "SE", "AU", "IN", "BR", "JP")
"""Countries whose numbering plan is used without a context word nearby."""
_TRUNK = (
    *(
        "GB",
        "DE",
        "FR",
        "IT",
        "NL",
        "SE",
        "AU",
        "IN",
        "BR",
        "JP",
        "TR",
        "VN",
        "KR",
        "CN",
        "EG",
        "SA",
        "AE",
        "MA",
        "LB",
    ),
    *(
        "BE",
        "CH",
        "AT",
        "IE",
        "FI",
        "UA",
        "ZA",
        "NG",
        "KE",
        "PK",
        "BD",
        "ID",
        "PH",
        "TH",
        "MY",
        "NZ",
        "IL",
        "TW",
    ),
)
"""Countries whose national numbers begin with a zero."""
REGIONS = tuple(dict.fromkeys((*PLANS, *_TRUNK, "PL", "PT", "RU", "CA", "MX")))
"""Countries whose national format is recognized without a context word nearby."""

_CANDIDATE = Expression(
    r"""(?<!\d:) (?<!\d,) (?<![\w.\-$€£¥₩₹₽%@#/]) (?<! [$€£¥₩₹₽] [ ] )
    (?: (?: \+ | (?<!\d)00(?=[1-9]) ) [ ]? )? \(? \+? \d (?: [ .\-/()]{0,3}+ \d ){5,17}+
    (?P<extension> [ ]? (?: x | ext\.? | extension | durchwahl | доб\.? ) [ ]? \d{1,6} )?
    (?! [\w%€£$¥₩₹₽°] | [.:\-/] \d | ,\d{3}(?!\d) )"""
)
_WORDS = ContextWords(
    "phone|phones|mob|mob.|cel|cel.|cél|fono|tlf|tfno|línea|móv|telephone|tel|telefon*|téléphone*|tél|teléfono|teléfonos"
    "|telefoon|telefoonnummer|mobile|mobil|mobiel"
    "|cell|cellphone|fax|call|calls|called|calling|call #|ring|dial|reach|reached|contact|text "
    "me|text him|text her"
    "|text us|texted|sms|whatsapp|signal|handy|handynummer|anrufen|rufen|ruf|rufe|ruft|angerufen|erreichst|erreichbar"
    "|portable|móvil|celular|cellulare|desk|office"
    "|hotline|helpline|toll-free|toll free|callback|his number|her number|your number|my "
    "number|answering|message"
    "|messages|registered|landline|extension|voicemail|viber|telegram|satispay|bizum|pix|blik|mb "
    "way|mbway"
    "|zelle|venmo|paypay|twint|swish|vipps|m-pesa|mpesa|momo|bkash|upi|gpay|bel|bellen|rückruf|durchwahl"
    "|appeler|appelle|appelez|joindre|joignable|fixe|mon numéro|son "
    "numéro|llamar|llama|llámame|mi número|su número"
    "|telemóvel|telemovel|contacto|contato|ligar|liga|ligue|ligou|fone|wpp|zap|recapito|cell.|chiamare|chiama"
    "|chiamami|chiamatemi|mio numero|numero di telefono"
    "|gsm|komórka|komórkę|kom.|dzwonić|dzwoń|dzwoni|dzwonił*|zadzwoń|komórki|komórce|wewnętrzny|zadzwonić"
    "|kontakt|numer|nr tel|cep|ara|arayın|aradı|numaram|numarası"
    "|ulaşabilirsiniz|irtibat|điện thoại|đt|sđt|sdt|dt|số máy|di động|gọi|zalo|hotline|liên hệ"
    "|电话|電話|直线|直線|專線|轉數快|手机|手機|联系方式|联系人|联系|聯絡|传真|致电|拨打|微信|座机|携帯|連絡先"
    "|ファックス|内線|전화"
    "|휴대폰|휴대전화|연락처|핸드폰|팩스|문자"
    "|телефон*|тел|моб|моб.|сотовый|звонить|звоните|звонил*|перезвон*|позвон*|набери*|факс|ватсап|вотсап|номер"
    "|هاتف|الهاتف|جوال|الجوال|موبايل|المحمول|محمول|تلفون|تليفون|رقمي|رقمها|رقمه|اتصل*|يتصل|تتصل|نتصل|الاتصال"
    "|نمرته|نمرتها|رقم|للتواصل|واتساب|فاكس"
    "|फोन|फ़ोन|मोबाइल|दूरभाष|संपर्क|सम्पर्क|व्हाट्सएप|कॉल|नंबर"
)
_CALLED = LazyPattern(
    r"""(?<!\w)
    (?: tel(?:\.|efon\w*|ephone|éfono|éphone|efono|efone)? | (?:mobile|cell)?[ ]?phone | mobil\w* | mob\.? | cell
      | cellulare | celular | móvil | portable | fax | handy\w* | gsm | komórka | cep | whatsapp | sms | durchwahl
      | (?:call|ring|text|dial) (?:[ ](?:me|us|him|her|them))?
      | ruf\w* (?:[ ](?:mich|uns|ihn|sie|ihr))? (?:[ ]\p{L}+){0,2} [ ]an | anrufen | erreichbar
      | appel\w+(?:-moi)? | llám\w+ | chiam\w+ | bel[ ]\p{L}+ | (?:za)?dzwoń\w* | liga\w* | ara(?:yın)?
      | (?:по)?звони\w* | тел\.? | телефон\w* | моб\.? | điện[ ]thoại | sđt | gọi )
    (?: [ ]? (?:no|nr|number|nummer)\.? )?
    [ ]? [:=(\-]? [ ]? (?: (?:unter|at|on|al|au|en|sur|op|pod|по)[ ] )? [ ]? \(? \Z
    | (?: 电话 | 手机 | 電話 | 携帯 | 전화 | 휴대폰 | هاتف | جوال | फ़ोन | फोन | मोबाइल ) [ ]? [:：]? [ ]? \Z""",
    regex.VERBOSE | regex.IGNORECASE,
)
"""Words right before a number that prove it a telephone's."""
_DATE = LazyPattern(
    r"""(?:1\d|20)\d\d[.\-/ ][01]?\d[.\-/ ][0-3]?\d (?:[ ]\d{1,2})?
    | (?:[0-3]?\d[.\-/ ][01]?\d|[01]?\d[.\-/ ][0-3]?\d)[.\-/ ](?:19|20)?\d\d (?:[ ]*-[ ]*\d.*|[ ]\d{1,2})?
    | (?:1\d|20)\d\d[ ]?[\-/ ][ ]?(?:1\d|20)?\d\d
    | \d{1,6}/\d{1,2}/(?:19|20)\d\d
    | (?:0?[1-9]|1[0-2])[ ]?[./][ ]?(?:19|20)\d\d | .*\((?:1\d|20)\d\d\)? | \d{1,3}[ ]?-[ ]?\d{1,3}
    | (?:[01]?\d|2[0-4])[.:][0-5]\d[ ]?-[ ]?(?:[01]?\d|2[0-4])[.:][0-5]\d
    | \d{1,3}(?:\.\d{1,3}){3}""",
    regex.VERBOSE,
)
"""No telephone numbers in any context.

They are dates, months, numbers of papers with their year, hours, ranges of years and of small
numbers, and IP addresses.
"""
_DECIMALS = LazyPattern(r"(?:.*\D)?\d\.\d+(?:[ (),\-].*)?")
"""A decimal with one digit before its point, and its neighbours in a table."""
_AMOUNT = LazyPattern(r"\d{1,9}\.\d{1,9}|(?!0\d[ ])\d{1,3}(?:[. ]\d{3}){1,5}")
"""Decimals and thousands: telephone numbers only if nearby words say so."""
_GROUPED = {
    # with the zero of the trunk: 0176 80 112 543, (0216) 540 88 13, 010-7734-2086;
    # one slash, behind the area
    _TRUNK: r"""\(?0[1-9]\d{0,4}\)? [ ]?[ .\-/]?[ ]? (?!(?:19|20)\d\d/) \d{2,9} (?:[ .\-]{1,2}\d{2,4}){0,4}""",
    ("PL", "PT", "ES"): r"[4-9]\d\d-\d{3}-\d{3}",
    (
        "PL",
        "ES",
        "TR",
        "RU",
    ): r"[2-9]\d{1,3} (?:[ .\-]?\d{2,3}(?=[ .\-]))? [ .\-]\d\d[ .\-]\d\d (?:[ .\-]\d\d)?",
    # an area in brackets: (03478) 2-41-09, (0343) 15 482 663
    (*_TRUNK, "RU"): r"""\(0[1-9]\d{0,4}\) [ ]? \d{1,8} (?:[ .\-]\d{2,4}){0,3}""",
    ("LB",): r"0[1-9][ \-/]\d{3}[ .\-]\d{3}",
    ("BR",): r"\(?[1-9]\d\)?[ ]?9[ .]?\d{4}[ .\-]?\d{4}",
    ("RU",): r"8[ \-]?\(?\d{3,5}\)?[ \-]?\d{1,3}[ \-]?\d\d[ \-]?\d\d",
    ("IT",): r"3\d\d[ .\-/]\d{6,7}(?<!000)",
    (
        "IN",
    ): r"[6-9]\d{4}[ \-]\d{5} | [6-9]\d{3}[ \-]\d{3}[ \-]\d{3} | [6-9]\d\d[ \-]\d{3}[ \-]\d{4}",
    ("CN",): r"1[3-9]\d[ \-]\d{4}[ \-]\d{4} | 0\d{2,3}-\d{3,4}[ \-]?\d{4}",
    ("US", "CA"): r"\(\d{3}\)[ ]?\d{3}[ .\-]\d{4}|\d{3}[.\-]\d{3}[.\-]\d{4}",
    ("MX",): r"\(?[2-9]\d{1,2}\)?[ \-]\d{3,4}[ \-]\d{4}",
}
"""Countries, and numbers grouped as is usual there."""
_BARE = {
    _TRUNK: (r"0[1-9]\d{8,9}", ""),
    ("RU",): (r"8[3489]\d{9}", "\\p{Cyrillic}"),
    ("CN",): (r"1[3-9]\d{9}", FOREIGN),
    ("IN",): (r"[6-9]\d{9}", FOREIGN),
    ("TR",): (r"5[0-5]\d{8}", "[ğşĞŞ]"),
}
"""Countries, numbers without separators, and letters near that tell them."""
_CONTEXT_FORMS = (
    r"[2-9]\d\d[ .\-]?\d{3}[ .\-]?\d{3} | [2-9]\d{3}[ .\-]?\d{4} | "
    r"\d\d(?:[ .\-]\d\d){3} | 0[1-9][ \-]?\d{3}[ \-]?\d{3}"
)
_MASKED = Expression(r"(?<![\w*•]) \+?\d{2,6}+ (?: [*•]{3,8} | (?-i:X{2,6}) ) \d{2,4} (?![\w*•])")
_NOBODYS = Expression(
    r"""\+?\d{0,3}0{7,} | (\d)\1{8,} | \d{3}1234567 | 02079460000 | \+?442079460000 | \+?1?5555550100
    | 800\d{6} | 808\d{6} | 900\d{6} | 0800\d{3,8} | 0180[1-7]\d{3,8} | 0120\d{6}
    | 0850\d{7} | 8800\d{7} | 1[89]00\d{4,6} | 400\d{7} | \+?1[ .\-]8(?:00|33|44|55|66|77|88)[ .\-][\d.\-]{7,8}
    | \(?8(?:00|33|44|55|66|77|88)\)?[ .\-]{1,2}\d{3}[ .\-]\d{4}"""
)
"""Dummies, and numbers that cost nothing or a fee: the hotlines of firms and offices."""
_SEQUENCE = ("0123456789", "01234567890", "0987654321")
_CONTINUED = LazyPattern(r"(?:[ ]\d{4}){2}(?!\d)")
"""The rest of an account's number, in groups of four."""
_BETWEEN = LazyPattern(r"(?<=\d{5})[ ][\-/][ ](?=[\d(]{3})")
_HEAD = LazyPattern(
    r"(?:\A|\n)[ \t>*•\-]{0,6}+((?:\p{Lu}[\p{L}\p{M}'.\-]*+[ ]?){1,4})[:,;(\- ]{0,3}\Z"
)
"""The name at the start of a line, before a number."""
_LINE_END = LazyPattern(r"[ \t)]*+(?:\n|\Z)")
Hit = tuple[int, int, float]
"""The start, end and score of a number."""
MIN_LISTED_DIGITS, MAX_LISTED_DIGITS = 8, 11
"""Digits of a number that stands alone behind a name."""
WORD_DISTANCE = 45
MAX_ANNOUNCED_CHARACTERS = 17
"""The longest number, in characters, that words right before it prove a telephone's."""


def are_regions(regions: Sequence[str]) -> bool:
    """True if the numbering plans of all these regions are known."""
    if set(regions) <= {*REGIONS}:
        return True
    import phonenumbers

    return set(regions) <= phonenumbers.SUPPORTED_REGIONS


def find_phones(plain: str, folded: FoldedText, regions: Sequence[str]) -> Iterator[Hit]:
    """Finds the telephone numbers of a text.

    A number with a country code must be possible in that country. A number without must be grouped
    as is usual in one of the regions, or have a context word nearby.

    Args:
        plain: the text in plain form.
        folded: the same text, folded for context words.
        regions: countries whose national format is recognized.

    Yields:
        The start, end and score of each number.
    """
    words: list[int] | None = None
    entries: list[tuple[int, str, Hit]] = []
    for match in _CANDIDATE.compiled.finditer(plain):
        if words is None:
            words = sorted(begin for begin, _ in _WORDS.find(folded))
        start, end = match.span()
        at = bisect_left(words, start - WORD_DISTANCE)
        has_word = at < len(words) and words[at] < end + 12
        hit = _match_phone(plain, start, match, regions, has_word=has_word)
        if hit is not None and _CONTINUED.match(plain, hit[1]):
            continue
        if hit is None and (link := _BETWEEN.search(match.group())):  # two numbers
            at = start + link.end()
            if second := _CANDIDATE.compiled.match(plain, at):
                hit = _match_phone(plain, at, second, regions, has_word=has_word)
        if hit is None and (head := _HEAD.search(plain, max(0, start - 80), start)):
            # Nothing is near but a name: the whole list says whether it is one of persons.
            digits = sum(map(str.isdigit, match.group()))
            if (
                MIN_LISTED_DIGITS <= digits <= MAX_LISTED_DIGITS
                and _LINE_END.match(plain, end)
                and (listed := _match_phone(plain, start, match, regions, has_word=True))
            ):
                entries.append((head.start(), head[1], listed))
            continue
        if hit is not None and not _is_public(plain[hit[0] : hit[1]]):
            first, last, score = hit
            named = (
                has_word
                and last - first <= MAX_ANNOUNCED_CHARACTERS
                and _CALLED.search(plain, max(0, first - WORD_DISTANCE), first)
            )
            yield first, last, 1.0 if named else score
    for match in _MASKED.compiled.finditer(plain):
        yield *match.span(), 0.8
    yield from _select_contacts(plain, entries)


def _select_contacts(plain: str, entries: Sequence[tuple[int, str, Hit]]) -> Iterator[Hit]:
    """Selects the numbers of lists in which most lines begin with a person's name."""
    lists: list[list[tuple[int, str, Hit]]] = []
    for entry in entries:
        if lists and not plain[lists[-1][-1][2][1] : entry[0] + 1].strip(" \t)\n"):
            lists[-1].append(entry)
        else:
            lists.append([entry])
    for lines in lists:
        if 2 * sum(_begins_with_name(head) for _, head, _ in lines) >= len(lines):
            yield from (hit for *_, hit in lines if not _is_public(plain[hit[0] : hit[1]]))


def _begins_with_name(head: str) -> bool:
    """True if the first word is a person's name, and no place or ordinary word."""
    first = head.split()[0].strip(".,")
    mark = int(lexicon.mark_words([first], np.array([0, 1], np.int64))[0])
    return mark & ~lexicon.PUBLIC_MARK == lexicon.NAME_MARK


def _is_public(number: str) -> bool:
    """True if a number, or its digits, is a dummy or hotline."""
    return any(map(_NOBODYS.compiled.fullmatch, (number, regex.sub(r"[^+\d]", "", number))))


def _match_phone(
    plain: str, start: int, match: regex.Match[str], regions: Sequence[str], *, has_word: bool
) -> Hit | None:
    end, whole = match.end(), match.group()
    number = whole[: match.start("extension") - start] if match["extension"] else whole
    if _DECIMALS.fullmatch(number) and number[0] != "(":
        return None
    if whole[0] == "(" and ")" not in whole:
        start, number = start + 1, number[1:]
    if number.startswith(("+", "(+", "00")):
        # A valid number, wherever it ends, goes before one that is only possible.
        for is_plausible in (_is_valid, _is_possible):
            for stop in _list_ends(number):
                if is_plausible(number[:stop]):
                    return (
                        start,
                        end if stop == len(number) else start + stop,
                        0.95 if is_plausible is _is_valid else 0.8,
                    )
    if plain[end : end + 1] == "," and plain[end + 1 : end + 2].isdigit() and len(number) < 9:
        return None
    for stop in _list_ends(number):
        part = number[:stop]
        if not _DATE.fullmatch(part) and (
            score := _score_national(part, plain, start, regions, has_word=has_word)
        ):
            return start, end if stop == len(number) else start + stop, score
    return None


def _score_national(
    number: str, plain: str, start: int, regions: Sequence[str], *, has_word: bool
) -> float | None:
    """Scores a number without a country code; None if it is none."""
    count, separated = sum(c.isdigit() for c in number), not number.isdigit()
    round_ = not separated and number[0] != "0" and (count < 7 or number.endswith("000"))
    if round_ or (not has_word and _AMOUNT.fullmatch(number)):
        return None
    if separated or has_word:
        shape = [len(group) for group in regex.findall(r"\d+", number)]
        plans = [region for region in regions if region in PLANS or region not in REGIONS]
        if any(_is_valid(number, region, None if has_word else shape) for region in plans):
            return 0.85 if has_word else 0.75
    if separated and 8 <= count <= 12:
        for countries, form in _GROUPED.items():
            if not {*countries}.isdisjoint(regions) and regex.fullmatch(
                form, number, regex.VERBOSE
            ):
                return 0.85 if has_word else 0.75
    if not separated and number not in _SEQUENCE:
        around = plain[max(0, start - 200) : start + 200]
        for countries, (form, letters) in _BARE.items():
            if not {*countries}.isdisjoint(regions) and regex.fullmatch(form, number):
                isbn = "isbn" in plain[max(0, start - 60) : start + 12].lower()
                if has_word or (not isbn and (not letters or regex.search(letters, around))):
                    return 0.7
    if has_word and regex.fullmatch(_CONTEXT_FORMS, number, regex.VERBOSE):
        return 0.75
    certain = has_word and not _AMOUNT.fullmatch(number) and not number.endswith("000")
    return 0.7 if certain and (6 if separated else 7) <= count <= 15 else None


def _list_ends(number: str) -> list[int]:
    """Lists the possible ends of a number.

    They are its end, and its last three spaces.
    """
    return [len(number), *(m.start() for m in list(regex.finditer(r"(?<=\d)[ ]", number))[:-4:-1])]


def _is_possible(number: str) -> bool:
    """True if a number with a country code is possible.

    Its length fits the country, and it is no round number.
    """
    import phonenumbers

    digits = sum(c.isdigit() for c in number)
    if not 8 <= digits <= 15 or number.endswith("000"):
        return False
    try:
        parsed = phonenumbers.parse("+" + number[2:] if number.startswith("00") else number, None)
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.is_possible_number(parsed)


def _is_valid(number: str, region: str | None = None, shape: list[int] | None = None) -> bool:
    """True if a number is valid in a region.

    With `shape`, it must also be grouped like that.
    """
    import phonenumbers

    digits = sum(c.isdigit() for c in number)
    if not 6 <= digits <= 15:
        return False
    try:
        parsed = phonenumbers.parse(
            number if not number.startswith("00") else "+" + number[2:], region
        )
    except phonenumbers.NumberParseException:
        return False
    if not phonenumbers.is_valid_number(parsed):
        return False
    if shape is None:
        return True
    style = phonenumbers.PhoneNumberFormat.NATIONAL
    usual = [
        len(group) for group in regex.findall(r"\d+", phonenumbers.format_number(parsed, style))
    ]
    return shape in (usual, [1, *usual])
