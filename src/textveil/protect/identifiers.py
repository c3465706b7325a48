"""Identifiers: what structured identifiers look like, what must hold for them, and which words stand near.

In: nothing. Out: `RULES`, for every type but phone numbers and addresses of streets.
Not here: check digits (`checksums`), street addresses (`addresses`), phone numbers (`phones`), and how rules are
applied (`patterns`).

Rules see a text in plain form: ASCII digits, dashes, quotes and single spaces. Every loop is bounded or possessive.
"""

import ipaddress
from collections.abc import Callable
from typing import Any, NamedTuple

import regex

from textveil.protect import checksums as sums

Pattern = regex.Pattern[str]
Check = Callable[[str], bool]

BEFORE = r"(?<![\w@])(?<!\d[.,\-/])"
AFTER = r"(?!\w)(?![.,\-/]\d)"
"""The edges of a number: it is no part of a word or of a longer number."""


def compile_pattern(pattern: str) -> Pattern:
    """A pattern without regard to case, with spaces and comments in it."""
    return regex.compile(pattern, regex.VERBOSE | regex.IGNORECASE)


class Rule(NamedTuple):
    """What one kind of identifier looks like.

    Args:
        type: the type of its spans.
        pattern: the group `value` is the span, or the whole match if there is no such group.
        score: 1 where a checksum or a form of its own leaves no doubt.
        check: what must hold for the span's text.
        context: words of which one must stand near.
        before: whether the identifier may also stand before those words.
        leads: whether a digit follows its first few letters, if it has any there: it is tried only at such places.
        digits: how many digits a text has in which it can be.
        signs: a text in which it can be has one of these in it, in lower case.
    """

    type: str
    pattern: Pattern
    score: float = 1.0
    check: Check | None = None
    context: Pattern | None = None
    before: bool = False
    leads: bool = False
    digits: int = 0
    signs: tuple[str, ...] = ("",)


def words(listed: str) -> dict[str, Any]:
    """A rule's context and signs, from words with bars between them."""
    signs = tuple(listed.lower().split("|"))
    one = "|".join(regex.escape(sign, literal_spaces=True).replace(" ", r"\s") for sign in sorted(signs, key=len)[::-1])
    return {"context": regex.compile(rf"(?<!\w)(?:{one})(?!\w)", regex.IGNORECASE), "signs": signs}


def number(digits: str, check: Check | None = None, *, context: str = "", score: float = 1.0) -> Rule:
    """A national number: how many digits or what form, what must hold, which words must stand near.

    In a form, an underscore is where a separator may stand; a number of digits allows one before any digit.
    """
    if digits.replace(",", "").isdigit():
        low, high = (int(n) - 1 for n in (digits.split(",") * 2)[:2])
        form = rf"\d (?: [ .\-/]{{0,2}}+ \d ){{{low},{high}}}"
    else:
        form = digits.replace("_", r"[ .\-/]{0,2}+")
    return Rule(
        "NATIONAL_ID",
        compile_pattern(rf"{BEFORE} (?:{form}) {AFTER}"),
        score=score,
        check=check,
        before=True,
        leads=True,
        digits=6,
        **(words(context) if context else {}),
    )


def keyed(type_: str, context: str, value: str, *, digits: int = 1, check: Check | None = None) -> Rule:
    """Something that only the words before it tell."""
    return Rule(
        type_,
        compile_pattern(rf"(?<![\w]) (?P<value>{value}) (?!\w)"),
        score=0.87,
        check=check,
        digits=digits,
        **words(context),
    )


# ---- checks that are no checksums -------------------------------------------------------------------------------------


def is_address(value: str) -> bool:
    """Whether it is an IP address, perhaps with the length of a network."""
    try:
        ipaddress.ip_interface(value)
    except ValueError:
        return False
    return True


def is_ssn(value: str) -> bool:
    """Whether the US may have given it: no area 000, 666 or from 900, no group 00, no serial number 0000."""
    d = sums.compact(value)
    return d[:3] not in ("000", "666") and d[0] != "9" and d[3:5] != "00" and d[5:] != "0000"


def is_itin(value: str) -> bool:
    """Whether it is a US taxpayer's number: 9xx and a group that is given out."""
    d = sums.compact(value)
    group = int(d[3:5])
    return d[0] == "9" and (50 <= group <= 65 or 70 <= group <= 88 or 90 <= group <= 92 or 94 <= group <= 99)


def has_digits(value: str) -> bool:
    """Whether it has the length of a number that is given out, and four digits or more, a third of it at least."""
    count, whole = sum(c.isdigit() for c in value), len(sums.compact(value))
    return count >= 4 and 3 * count >= whole and 5 <= whole <= 20


def has_digit(value: str) -> bool:
    """Whether one of its characters is a digit."""
    return any(c.isdigit() for c in value)


def is_plate(value: str) -> bool:
    """Whether it has the length of a plate, digits, and letters."""
    whole = sums.compact(value)
    return 4 <= len(whole) <= 8 and has_digit(whole) and not whole.isdigit()


def is_password(value: str) -> bool:
    """Whether it is no word of a schema or of ordinary language."""
    bare = value.strip(".,;:!?()[]{}*_").lower()
    variable = bare.isidentifier() and not has_digit(bare) and any(sign in bare for sign in _NAMED)
    return len(bare) >= 4 and bare not in _NO_PASSWORDS and not variable and not bare.startswith(_NO_STARTS)


def is_code(value: str) -> bool:
    """Whether it has something that ordinary words have not: a digit, a sign, or capitals inside."""
    inner = value.strip(".,;:!?()[]{}*\"'")
    return (
        len(inner) >= 4
        and (has_digit(inner) or not inner.isalpha() or inner[1:] != inner[1:].lower())
        and not (inner.replace("-", "").replace("'", "").isalpha() and inner == inner.lower())
    )


def is_random(value: str) -> bool:
    """Whether it is as mixed as a key: hexadecimal or of letters in both cases and digits."""
    if not has_digit(value) or len(value) < 20:
        return False
    if set(value.lower()) <= set("0123456789abcdef-"):
        return len(value) >= 32 and sums.entropy(value) > 2.5
    return value != value.lower() and value != value.upper() and sums.entropy(value) > 3.5


def is_born(value: str) -> bool:
    """Whether a date in figures has a possible month and day."""
    parts = [int(part) for part in regex.findall(r"\d+", value)]
    if len(parts) == 1 and len(value) == 8:
        year, month, day = value[:4], value[4:6], value[6:]
        return sums.is_date(int(year), int(month), int(day)) or sums.is_date(
            int(value[4:]), int(value[:2]), int(value[2:4])
        )
    if len(parts) != 3 or not all(parts):
        return len(parts) < 3  # worded: a day and perhaps a year
    first, second, third = parts
    if first > 31:
        return sums.is_date(min(first, 9999), second, third) or sums.is_date(min(first, 9999), third, second)
    return sums.is_short_date(third, second, first) or sums.is_short_date(third, first, second)


_NO_STARTS = ("$", "<", "your", "process.env", "os.", "self.")
_NO_PASSWORDS = frozenset(
    """none null true false required optional string integer number text varchar bytes object undefined password
    passwort secret hidden incorrect wrong invalid correct expired missing empty reset changed forgotten stored hashed
    encrypted should must will cannot this that with from about policy manager protected field input value please
    enter change example unknown unset""".split()
)

# ---- cards, accounts, coins -------------------------------------------------------------------------------------------

_BBAN = {
    11: "NO", 12: "BE", 14: "DK|FO|FI|GL|NL|SD|FK", 15: "MK|SI", 16: "AT|BA|EE|KZ|XK|LT|LU|MN|SR",
    17: "HR|LV|LI|CH", 18: "BG|BH|CR|DE|GE|GB|IE|ME|RS|VA", 19: "AE|GI|IL|IQ|OM|TL|SO",
    20: "AD|CZ|MD|PK|RO|SA|SK|ES|SE|TN|VG", 21: "LY|PT|ST", 22: "IS|TR|BI|DJ", 23: "FR|GR|IT|MC|MR|SM",
    24: "AL|AZ|CY|DO|GT|HU|LB|PL|BY|SV|NI", 25: "BR|EG|PS|QA|UA", 26: "JO|KW|MU|YE", 27: "MT|SC", 28: "LC", 29: "RU",
}  # fmt: skip
"""Countries by how many characters their accounts have behind the check digits (IBAN registry)."""
_IBAN = "|".join(rf"(?:{names}) [ ]?\d [ ]?\d (?: [ .\-]?[A-Z0-9] ){{{n}}}" for n, names in _BBAN.items())
_CARD = r"(?: 4 | 5[0-8] | 6 | 2[0-7] | 3[04-9] | 1800 ) (?: [ .\-]{0,2}+ \d ){10,18}"

ACCOUNTS = (
    Rule("CARD", compile_pattern(rf"{BEFORE} {_CARD} {AFTER}"), check=sums.luhn, leads=True, digits=12),
    Rule("IBAN", compile_pattern(rf"(?<!\w) (?:{_IBAN}) (?!\w)"), check=sums.mod97, leads=True, digits=4),
    Rule(
        "CRYPTO",
        regex.compile(r"(?<!\w)[13][1-9A-HJ-NP-Za-km-z]{25,34}+(?!\w)"),
        check=sums.is_base58check,
        leads=True,
        digits=1,
    ),
    Rule("CRYPTO", compile_pattern(r"(?<!\w) (?:bc|tb|ltc)1 [02-9ac-hj-np-z]{8,87}+ (?!\w)"), check=sums.is_bech32),
    Rule("CRYPTO", compile_pattern(r"(?<!\w) 0x [0-9a-f]{40}+ (?!\w)"), score=0.95, signs=("0x",)),
)

# ---- the net ----------------------------------------------------------------------------------------------------------

_LOCAL = r"[\p{L}\p{N}\p{M}.!\#$%&'*+/=?^_`{|}~\-]"
_LABEL = r"[\p{L}\p{N}\p{M}](?:[\p{L}\p{N}\p{M}\-]{0,61}+(?<!-))?"
_TOP = (
    "com|org|net|edu|gov|mil|info|biz|io|ai|app|dev|xyz|online|shop|site|cloud|tech|blog|"
    "de|fr|uk|nl|eu|ch|ru|jp|cn|au|br|pl|se|cz|ca|dk|fi|pt|gr|hu|ro|kr|mx|nz|ie|tv"
)
_QUERY = r"(?:[a-z]*[_\-]?)?(?:token|key|apikey|sig|signature|password|passwd|pwd|secret|auth|code|session|sid|jwt)"
_CLOSE = r"[^\s<>\"|\\^`{}]"
IS_SECRET_URL = compile_pattern(
    rf":// [^/\s:@]{{1,200}}+ : [^/\s@]{{1,200}}+ @ | [?&\#;] {_QUERY} = [^&\s]{{2}} | ://hooks\.slack\.com/services/"
)
"""What makes a page's address a secret: a password, or a key among what is asked."""

NET = (
    Rule(
        "EMAIL",
        compile_pattern(
            rf"(?<!{_LOCAL}) [\p{{L}}\p{{N}}_] {_LOCAL}{{0,253}}+ (?<!\.) @ {_LABEL} (?: \.{_LABEL} ){{1,8}}+"
        ),
        score=0.95,
        signs=("@",),
    ),
    Rule(
        "EMAIL",
        compile_pattern(
            r"(?<![\w.]) [\p{L}\p{N}] [\p{L}\p{N}._+\-]{0,63}+ [ ]? [(\[] [ ]? at [ ]? [)\]] [ ]? [\p{L}\p{N}\-]{1,63}+"
            r" (?: [ ]? (?: \. | [(\[] [ ]? dot [ ]? [)\]] ) [ ]? [\p{L}\p{N}\-]{1,63}+ ){1,4}+"
        ),
        score=0.9,
        signs=("at",),
    ),
    Rule(
        "URL",
        compile_pattern(rf"(?<![\w]) [a-z][a-z0-9+.\-]{{1,20}}+ :// (?P<rest>{_CLOSE}{{1,4000}}+)"),
        score=0.95,
        signs=("://",),
    ),
    Rule(
        "URL",
        compile_pattern(rf"(?<![\w./@]) www\. (?P<rest>[\p{{L}}\p{{N}}] {_CLOSE}{{2,4000}}+)"),
        0.95,
        signs=("www.",),
    ),
    Rule(
        "URL",
        compile_pattern(
            rf"(?<![\w./@\-]) (?: [a-z0-9] [a-z0-9\-]{{0,62}}+ \. ){{1,5}} (?:{_TOP}) (?![\w@\-]|\.\w) (?: : \d{{2,5}}+ )?"
            rf" (?: [/?\#] {_CLOSE}{{0,4000}}+ )?"
        ),
        score=0.85,
        signs=tuple(f".{top}" for top in _TOP.split("|")),
    ),
    Rule(
        "IP",
        compile_pattern(
            r"(?<![\w.\-]) (?<! \b v \. | \b v[ ] | version[ ] | release[ ] | build[ ] | section[ ] | chapter[ ] | §[ ]? )"
            r" \d{1,3} (?: \.\d{1,3} ){3} (?: /\d{1,2} )? (?! [\w\-] | \.\d )"
        ),
        score=0.95,
        check=is_address,
        digits=4,
        signs=(".",),
    ),
    Rule(
        "IP",
        compile_pattern(
            r"(?<![\w:.]) (?=[0-9a-f:]*\d) (?: [0-9a-f]{1,4} : | :: ) [0-9a-f:]{1,38}+ (?: \.?\d{1,3} \.\d{1,3} \.\d{1,3} )?"
            r" (?: /\d{1,3} )? (?! [\w:] )"
        ),
        score=0.95,
        check=is_address,
        signs=(":",),
    ),
    Rule(
        "MAC",
        compile_pattern(
            r"(?<![\w:.\-]) (?: [0-9a-f]{2} ([:\-]) [0-9a-f]{2} (?: \1 [0-9a-f]{2} ){4} (?: (?:\1 [0-9a-f]{2}){2} )?"
            r" | [0-9a-f]{4} \. [0-9a-f]{4} \. [0-9a-f]{4} ) (?! [\w:\-] | \.\w )"
        ),
        check=has_digit,
    ),
)

# ---- secrets ----------------------------------------------------------------------------------------------------------

_PREFIXED = r"""
    sk-[A-Za-z0-9_\-]{16,200} | (?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,200} | gh[pousr]_[A-Za-z0-9]{30,255}
  | github_pat_\w{22,255} | glpat-[\w\-]{18,64} | (?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{16}
  | xox[a-z]-[A-Za-z0-9\-]{10,250} | xapp-[A-Za-z0-9\-]{10,250} | AIza[\w\-]{35} | ya29\.[\w\-]{20,500}
  | SG\.[\w\-]{16,32}\.[\w\-]{16,64} | hf_[A-Za-z0-9]{30,64} | npm_[A-Za-z0-9]{36} | pypi-[\w\-]{50,300}
  | dop_v1_[0-9a-f]{64} | shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32} | key-[0-9a-f]{32} | (?:AC|SK)[0-9a-f]{32}
  | EAAC[A-Za-z0-9]{40,300} | AGE-SECRET-KEY-1[A-Z0-9]{58} | \d{8,10}:AA[\w\-]{33} | r8_[A-Za-z0-9]{37}
  | eyJ[\w\-]{8,4000}\.[\w\-]{8,8000}(?:\.[\w\-]{0,4000})?
"""
_NAMES = r"""
    (?:[a-z0-9]{1,20}[_\-]){0,3}
    (?: pass(?:word|wd|phrase|code) | pwd | passwort | kennwort | mot[ ]de[ ]passe | contrase(?:ñ|n)a | parola[ ]d'ordine
      | api[ _\-]?key | (?:access|secret|private|account|encryption|master)[ _\-]?key
      | (?:access|auth|api|refresh|bearer|id|session|security)?[ _\-]?token | (?:client[ _\-]?)?secret | credentials? )
    (?:[_\-][a-z0-9]{1,20}){0,2}
"""
_NAMED = ("pass", "pwd", "kennwort", "contrase", "parola", "key", "token", "secret", "credential")
_BODY = r"""(?: (?P<value>[^\s"'`,;<>&]{4,300}+) | ["'`] (?P<value>[^"'`\n]{4,300}+) ["'`] )"""

SECRETS = (
    Rule("SECRET", regex.compile(rf"(?<![\w\-])(?:{_PREFIXED})(?![\w\-])", regex.VERBOSE)),
    Rule(
        "SECRET",
        compile_pattern(
            r"-----BEGIN[ ] [A-Z0-9 ]{0,30}+ PRIVATE[ ]KEY (?:[ ]BLOCK)? -----"
            r" (?: [^\-]*+ (?: -(?!----) [^\-]*+ ){0,200}+ -----END[ ][A-Z0-9 ]{1,60}+-----"
            r" | (?: (?: \s | \\[rn] ){1,4}+ [A-Za-z0-9+/=]{16,200}+ ){0,2000}+ )"
        ),
        signs=("private key",),
    ),
    Rule(
        "SECRET",
        compile_pattern(r"\b (?: Bearer | Authorization:[ ]Basic ) [ ] (?P<value>[\w.~+/\-]{12,4000}+=*+)"),
        check=has_digit,
    ),
    Rule(
        "SECRET",
        compile_pattern(rf"""(?<![\w\-]) {_NAMES} ["'`]? [ ]? (?: := | => | -> | [:=] ) [ ]? {_BODY}"""),
        score=0.9,
        check=is_password,
        signs=_NAMED,
    ),
    Rule(
        "SECRET",
        compile_pattern(
            rf"(?<![\w\-]) {_NAMES} [ ] (?: (?:is|was|will[ ]be|lautet|ist|est|es|[eè]) [ ] (?:now[ ])? )? {_BODY}"
        ),
        score=0.85,
        check=is_code,
        signs=_NAMED,
    ),
    keyed(
        "SECRET",
        "pin|pin code|cvv|cvv2|cvc|cvc2|otp|verification code|security code|access code|one-time code|passcode|geheimzahl",
        r"\d(?:[ ]?\d){2,7}(?!/)",
        digits=3,
    ),
    Rule(
        "SECRET",
        regex.compile(r"(?<![\w+/=\-])[\w+/\-]{20,200}+=*+(?![\w+/=])"),
        score=0.8,
        check=is_random,
        digits=1,
        **words("key|keys|token|tokens|secret|credential|credentials|auth|hash|bearer|schlüssel|clave|clé"),
    ),
)

# ---- people -----------------------------------------------------------------------------------------------------------

_FORM = (
    r"(?=[A-Z\-]{0,5}\d) [A-Z0-9]{1,20}+"
    r" (?: (?: [.\-/] | [ ](?=[A-Z]{0,2}\d\w) ) [A-Z0-9]{1,20}+ ){0,6}"
)
"""What a number looks like that only words tell: each part behind a space has figures near its start."""

_SSN = "ssn|social security|social sec|social|taxpayer|itin|tax id"
_DASHED = r"\d{3}([ \-])\d\d\1\d{4}"
_NIF = r"\d{8}-?[A-Z] | \d\d\.\d{3}\.\d{3}-?[A-Z] | [XYZ]-?\d{7}-?[A-Z]"
_CODICE = r"[A-Z]{3}_[A-Z]{3}_[\dL-NP-V]{2}[A-EHLMPRST][\dL-NP-V]{2}_[A-Z][\dL-NP-V]{3}[A-Z]"
_PNR = "personnummer|samordningsnummer|personal number|personal identity number"
NATIONAL = (
    number(_DASHED, is_ssn, score=0.9),
    number("9", is_ssn, context=_SSN, score=0.8),
    number(_DASHED, is_itin, score=0.9),
    number("9", is_itin, context=_SSN, score=0.8),
    number(r"\d{3}([ \-])\d{3}\1\d{4}", sums.is_nhs, score=0.85),
    number("10", sums.is_nhs, context="nhs|national health|patient"),
    number(r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]_\d\d_\d\d_\d\d_[A-D]", score=0.95),
    number(_NIF, sums.is_nif),
    number(_CODICE, sums.is_codice_fiscale),
    number(r"[1278]_\d\d_(?:0[1-9]|1[0-2]|[2-9]\d)_(?:\d\d|2[AB])_\d{3}_\d{3}_\d\d", sums.is_nir),
    number(r"[1-9]\d_\d{3}_\d{3}_\d{3}", sums.is_steuer_id),
    number("11", sums.is_pesel),
    number("9", sums.is_bsn, context="bsn|burgerservicenummer|sofinummer|sofi-nummer"),
    number(r"(?:19|20)?\d{6}[+\-]\d{4} | (?:19|20)\d{10}", sums.is_personnummer),
    number("10", sums.is_personnummer, context=_PNR),
    number(r"\d{6}[+\-A-FU-Y]\d{3}[0-9A-Y]", sums.is_hetu),
    number(r"\d{6}_\d{5}", sums.is_fodselsnummer),
    number(r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d | \d{11}", sums.is_rijksregister),
    number(r"756_\d{4}_\d{4}_\d\d", sums.is_ahv),
    number(r"[2-9]\d{3}([ \-])\d{4}\1\d{4}", sums.verhoeff),
    number("12", sums.verhoeff, context="aadhaar|aadhar|uidai"),
    number(r"[A-Z]{3}[ABCFGHLJPT][A-Z]\d{4}[A-Z]", score=0.9),
    number(r"[STFGM]_\d{7}_[A-Z]", sums.is_nric),
    number("8,9", sums.is_tfn, context="tfn|tax file"),
    number(r"\d\d_\d{3}_\d{3}_\d{3}", sums.is_abn),
    number(r"[2-6]\d{3}([ \-])\d{5}\1\d", sums.is_medicare),
    number(r"[2-6]\d{3}_\d{5}_\d(?:_\d)?", sums.is_medicare, context="medicare"),
    number(r"\d{3}\.?\d{3}\.?\d{3}-?\d\d", sums.is_cpf),
    number(r"\d\d\.\d{3}\.\d{3}/\d{4}-\d\d", sums.is_cnpj),
    number(r"\d{6}-?[1-8]\d{6}", sums.is_rrn),
    number(r"[1-9]\d{16}[\dX]", sums.is_resident_id),
    number("13", sums.is_south_african),
    number("9", sums.luhn, context="sin|social insurance"),
    number(r"[A-Z][AEIOUX][A-Z]{2}\d{6}[HM][A-Z]{5}[A-Z0-9]\d", score=0.95),
    number(r"\d{6}-\d{4}", context="cpr|cpr-nummer|cpr-nr|kennitala", score=0.8),
    keyed(
        "NATIONAL_ID",
        "passport|passports|passport no|reisepass|reisepassnummer|passeport|pasaporte|passaporto|paspoort",
        _FORM,
        digits=5,
        check=has_digits,
    ),
    keyed(
        "NATIONAL_ID",
        "national id|national identity|national identification|identity card|identity number|id card|id number|id no|id #"
        "|social security|personalausweis|personalausweisnummer|ausweisnummer|sozialversicherungsnummer|steuer-id"
        "|steuernummer|steueridentifikationsnummer|dni|nie|carte d'identité|carte nationale d'identité"
        "|numéro de sécurité sociale|carta d'identità|codice fiscale|documento de identidad|tax id|taxpayer id|tax number"
        "|taxpayer number|tin|ein|national insurance",
        _FORM,
        digits=4,
        check=has_digits,
    ),
)

RECORDS = (
    keyed(
        "MEDICAL_RECORD",
        "mrn|m.r.n|medical record|medical records|health record|patient id|patient number|patient no|patient #|patient-id"
        "|chart number|chart no|chart #|hospital number|hospital no|case number|case no|health plan|health insurance"
        "|member id|patientennummer|patienten-nr|fallnummer|krankenversichertennummer|versichertennummer|numéro de dossier"
        "|dossier médical|historia clínica|número de paciente|cartella clinica",
        _FORM,
        digits=3,
        check=has_digit,
    ),
    number("10", sums.is_npi, context="npi|national provider")._replace(type="LICENCE"),
    keyed("LICENCE", "dea", r"[A-Z][A-Z9]\d{7}", digits=7, check=sums.is_dea),
    Rule(
        "LICENCE",
        compile_pattern(rf"{BEFORE} [A-Z9]{{5}}[ ]?\d[0156]\d[0-3]\d\d[ ]?[A-Z9]{{2}}\d[A-Z]{{2}} {AFTER}"),
        score=0.9,
        check=lambda value: not value[:5].isdigit(),
        leads=True,
        digits=6,
    ),
    keyed(
        "LICENCE",
        "license|licence|driver license|drivers license|driver's license|driving licence|license number|licence number"
        "|license no|licence no|license #|dl number|dl no|dl #|dl:|driver id|driving permit|medical registration|bar number|gmc|führerschein"
        "|führerscheinnummer|permis de conduire|permiso de conducir|carné de conducir|licencia de conducir|patente"
        "|patente di guida|rijbewijs|rijbewijsnummer",
        _FORM,
        digits=4,
        check=has_digits,
    ),
    Rule(
        "PLATE",
        regex.compile(r"(?<![\w\-])(?P<value>[A-Z0-9]{1,4}(?:[ \-·]{0,3}[A-Z0-9]{1,4}){0,3})(?![\w\-])"),
        score=0.88,
        check=is_plate,
        **words(
            "license plate|licence plate|license plates|number plate|registration plate|vehicle plate|car plate|plate|plates"
            "|vehicle registration|car registration|vehicle reg|car reg|registration number|registration no|registration mark"
            "|reg number|reg no|reg. no|kennzeichen|nummernschild|plaque|plaque d'immatriculation|immatriculation"
            "|immatriculé|immatriculée|matrícula|matricula|targa|targata"
        ),
        digits=1,
    ),
    Rule(
        "PLATE",
        compile_pattern(r"(?<![\w.\-]) (?P<value>[A-HJ-NPR-Z0-9]{17}) (?!\w)"),
        score=0.8,
        check=has_digits,
        digits=4,
        **words("vin|vehicle identification|chassis"),
    ),
)

# ---- dates of birth ---------------------------------------------------------------------------------------------------

_MONTHS = r"""
    (?: jan(?:uary|uar|vier|eiro)? | feb(?:ruary|ruar|brero|braio|rero)? | f[ée]v(?:rier)? | mar(?:ch|s|zo)? | m[äa]rz
      | apr(?:il|ile)? | avr(?:il)? | abr(?:il)? | may | mai | mayo | maggio | june? | juni | juin | junio | giugno
      | july? | juli | juillet | julio | luglio | aug(?:ust)? | ao[ûu]t | agosto | sep(?:t(?:ember|iembre|embre)?|tiembre)?
      | settembre | oct(?:ober|obre|ubre)? | okt(?:ober)? | ottobre | nov(?:ember|iembre|embre)?
      | dec(?:ember|embre)? | d[ée]c(?:embre)? | dez(?:ember)? | dic(?:iembre|embre)? | enero | gennaio ) \.?
"""
_DATE = rf"""
    \d{{4}} [ ]?[\-/.][ ]? \d{{1,2}} [ ]?[\-/.][ ]? \d{{1,2}} | \d{{1,2}} [ ]?[\-/.][ ]? \d{{1,2}} [ ]?[\-/.][ ]? \d{{2,4}}
  | \d{{1,2}} [ ] \d{{1,2}} [ ] (?:19|20)\d\d | (?:19|20)\d{{6}} | [01]\d[0-3]\d(?:19|20)\d\d
  | \d{{1,2}} (?: st | nd | rd | th | er | º | \. )? [ \-]? (?: (?:of|de|di|del)[ ](?:the[ ])? )? {_MONTHS}
    (?: ,? [ \-]? (?: (?:of|de|del|in)[ ] )? '?\d{{2,4}} )?
  | {_MONTHS} [ \-]? (?:the[ ])? \d{{1,2}} (?: st | nd | rd | th )? (?: ,? [ \-]? (?: of[ ] )? (?:\d{{4}}|'\d\d) )?
"""
BIRTHS = (
    Rule(
        "BIRTH_DATE",
        compile_pattern(rf"(?<![\w]) (?:{_DATE}) (?!\w) (?![/.\-]\d)"),
        score=0.9,
        check=is_born,
        before=True,
        digits=1,
        **words(
            "born|dob|d.o.b|birth|birthdate|birth date|date of birth|birthday|birthdays|b-day|bday|geboren|geb|geburtsdatum"
            "|geburtstag|né le|née le|naissance|anniversaire|nacido|nacida|nació|nacimiento|cumpleaños|nato|nata|nascita"
            "|compleanno"
        ),
    ),
)

RULES: tuple[Rule, ...] = (*ACCOUNTS, *NET, *SECRETS, *NATIONAL, *RECORDS, *BIRTHS)
"""Every rule; which of two spans counts is their scores' and lengths' matter, not the order's."""
