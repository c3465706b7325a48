"""People: national numbers and licences.

In: nothing. Out: `RULES`.
Not here: check digits (`checksums`), orders, cases and devices (`references`), vehicles
(`vehicles`), street addresses (`addresses`), telephone numbers (`phones`), dates of birth
(`times`).
"""

import regex

from textveil.detect.patterns import checksums as sums
from textveil.detect.patterns.rules import (
    NUMBER_END,
    NUMBER_START,
    Check,
    Expression,
    Rule,
    build_context,
    guard_rules,
    make_keyed_rule,
)


def make_number_rule(
    digits: str, check: Check | None = None, *, context: str = "", score: float = 1.0
) -> Rule:
    """Makes a rule for a national number.

    Args:
        digits: its number of digits, or its form. In a form, an underscore marks an optional
            separator; a plain number of digits allows one before any digit, but without context not
            as behind the area code of a telephone number.
        check: the check of its digits; None for none.
        context: words, separated by bars, one of which must be near; "" if none must.
        score: the score of its matches.
    """
    if digits.replace(",", "").isdigit():
        low, high = (int(n) - 1 for n in (digits.split(",") * 2)[:2])
        area = "" if context else r"(?! 0\d{1,4} [ /\-]{1,2} \d )"
        form = rf"{area} \d (?: [ .\-/]{{0,2}}+ \d ){{{low},{high}}}"
    else:
        form = digits.replace("_", r"[ .\-/]{0,2}+")
    return Rule(
        "NATIONAL_ID",
        Expression(rf"(?<!\+) {NUMBER_START} (?:{form}) {NUMBER_END}"),
        score=score,
        check=check,
        can_precede=True,
        numeric_prefix=True,
        digits=6,
        **(build_context(context) if context else {}),
    )


def is_taxpayer(value: str) -> bool:
    """True if the US can have issued the number.

    It is an SSN, or an ITIN: 9xx and a group in use.
    """
    d = sums.compact(value)
    group = int(d[3:5])
    if d[0] == "9":
        return 50 <= group <= 65 or 70 <= group <= 88 or 90 <= group <= 92 or 94 <= group <= 99
    return d[:3] not in ("000", "666") and group > 0 and d[5:] != "0000"


_NIF = r"\d{8}-?[A-Z] | \d\d\.\d{3}\.\d{3}-?[A-Z] | [XYZ]-?\d{7}-?[A-Z]"
_CODICE = r"[A-Z]{3}_[A-Z]{3}_[\dL-NP-V]{2}[A-EHLMPRST][\dL-NP-V]{2}_[A-Z][\dL-NP-V]{3}[A-Z]"
_INSURED = "krankenversicher*|kvnr|kv-nr|versichert*|krankenkass*|gesundheitskarte"
_CHINESE = "身份证*|身份證*|身分证*|身分證*|证件号*|公民身份*|resident id|id card"
_VIETNAMESE = "cccd|căn cước*|cmnd|chứng minh*|số định danh|định danh"
_PNR = "personnummer|samordningsnummer|personal number|personal identity number"
NATIONAL = (
    make_number_rule(r"\d{3}([ \-])\d\d\1\d{4}", is_taxpayer, score=0.9),
    make_number_rule(
        "9",
        is_taxpayer,
        context="ssn|social security|social sec|social|taxpayer|itin|tax id",
        score=0.8,
    ),
    make_number_rule("10", sums.is_nhs, context="nhs|national health|patient"),
    make_number_rule(
        r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]_\d\d_\d\d_\d\d_[A-D]",
        score=0.95,
    ),
    make_number_rule(_NIF, sums.is_nif),
    make_number_rule(_CODICE, sums.is_codice_fiscale),
    make_number_rule(
        r"[1278]_\d\d_(?:0[1-9]|1[0-2]|[2-9]\d)_(?:\d\d|2[AB])_\d{3}_\d{3}_\d\d", sums.is_nir
    ),
    make_number_rule(r"[1-9]\d_\d{3}_\d{3}_\d{3}", sums.is_steuer_id),
    make_number_rule("11", sums.is_pesel),
    make_number_rule("9", sums.is_bsn, context="bsn|burgerservicenummer|sofinummer|sofi-nummer"),
    make_number_rule(r"(?:19|20)?\d{6}[+\-]\d{4} | (?:19|20)\d{10}", sums.is_personnummer),
    make_number_rule("10", sums.is_personnummer, context=_PNR),
    make_number_rule(r"\d{6}[+\-A-FU-Y]\d{3}[0-9A-Y]", sums.is_hetu),
    make_number_rule(r"\d{6}_\d{5}", sums.is_fodselsnummer),
    make_number_rule(r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d | \d{11}", sums.is_rijksregister),
    make_number_rule(r"756_\d{4}_\d{4}_\d\d", sums.is_ahv),
    make_number_rule(r"(?<!\d{4}[ \-])[2-9]\d{3}([ \-])\d{4}\1\d{4}(?![ ]\d{4})", sums.verhoeff),
    make_number_rule("12", sums.verhoeff, context="aadhaar|aadhar|uidai"),
    make_number_rule(r"[STFGM]_\d{7}_[A-Z]", sums.is_nric),
    make_number_rule("8,9", sums.is_tfn, context="tfn|tax file"),
    make_number_rule(r"\d\d_\d{3}_\d{3}_\d{3}", sums.is_abn),
    make_number_rule(r"[2-6]\d{3}([ \-])\d{5}\1\d", sums.is_medicare),
    make_number_rule(r"[2-6]\d{3}_\d{5}_\d(?:_\d)?", sums.is_medicare, context="medicare"),
    make_number_rule(r"\d{3}\.?\d{3}\.?\d{3}-?\d\d", sums.is_cpf),
    make_number_rule(r"\d\d\.\d{3}\.\d{3}/\d{4}-\d\d", sums.is_cnpj),
    make_number_rule(r"\d{6}[1-8]\d{6}", sums.is_rrn),
    make_number_rule(r"[1-9]\d{16}[\dX]", sums.is_resident_id),
    make_number_rule("13", sums.is_south_african),
    make_number_rule("9", sums.luhn, context="sin|social insurance"),
    make_number_rule(
        r"\d{6}-?\d{4}", sums.is_short_birth, context="cpr|cpr-nummer|cpr-nr|kennitala", score=0.8
    ),
    make_number_rule(r"\d\d_\d{6}_[A-Z]_\d{3}", sums.is_pension_number),
    make_number_rule(r"[A-Z]_\d{3}_\d{3}_\d{3}", sums.is_insurance_number, context=_INSURED),
    make_number_rule("9", sums.is_portuguese_nif, context="nif|contribuinte"),
    make_number_rule(r"\d{7}[A-W][A-IW]?", sums.is_pps),
    make_number_rule(r"\d{3}_\d{3}_\d\d_\d\d", sums.is_nip, context="nip"),
    make_number_rule(r"\d{3}-\d{3}-\d\d-\d\d", sums.is_nip),
    make_number_rule("9", sums.is_regon, context="regon"),
    make_number_rule("11", sums.is_tc_kimlik),
    make_number_rule(r"[A-Z]{1,2}\d{6}\([\dA]\)?", sums.is_hkid),
    make_number_rule(
        r"[A-Z]{1,2}\d{6}[\dA]", sums.is_hkid, context="hkid|hk id|hong kong|身份證|身分證|香港"
    ),
    make_number_rule(r"[A-Z][12]\d{8}", sums.is_taiwanese),
    make_number_rule(r"\d{6}-[1-8]\d{6}", sums.is_dated_rrn, score=0.9),
    make_number_rule("12", sums.is_my_number, context="マイナンバー|個人番号|my number|mynumber"),
    make_number_rule(r"\d{10} | \d{12}", sums.is_inn, context="инн|inn"),
    make_number_rule(r"\d{3}-\d{3}-\d{3}_\d\d", sums.is_snils),
    make_number_rule("11", sums.is_snils, context="снилс|snils"),
    make_number_rule(r"[23]\d{13}", sums.is_egyptian, score=0.9),
    make_number_rule(r"784-?(?:19|20)\d\d-?\d{7}-?\d", sums.luhn),
    make_number_rule(
        r"[12]\d{9}", sums.luhn, context="الهوية|هوية|الإقامة|إقامة|iqama|saudi id|national id"
    ),
    make_number_rule(r"\d{1,2}\.\d{3}\.\d{3}-[\dK] | \d{7,8}-[\dK]", sums.is_rut),
    make_number_rule(r"(?:20|2[3-7]|3[034])-\d{8}-\d", sums.is_cuit),
    make_number_rule(r"\d\d/\d{7,8}/\d\d", sums.is_nuss),
    make_number_rule("12", sums.is_nuss, context="nuss|naf|seguridad social"),
    make_number_rule(r"[1-9]\d{16}[\dX]", sums.has_valid_birth_date, context=_CHINESE, score=0.9),
    make_number_rule(r"\d{12}", sums.is_cccd, context=_VIETNAMESE, score=0.9),
    *guard_rules(
        "a form that a country defines",
        # the tax number of India, the citizen card of Portugal, the readable zone of a passport
        make_number_rule(r"[A-Z]{3}[ABCFGHLJPT][A-Z]\d{4}[A-Z]", score=0.9)._replace(digits=4),
        make_number_rule(r"\d{8}[ \-]\d[ \-]?[A-Z][A-Z\d]\d", score=0.9),
        Rule(
            "NATIONAL_ID",
            Expression(
                r"(?<![\w<]) (?=[A-Z0-9<]{0,40}<<) (?= (?:<*[A-Z0-9]){8} ) [A-Z0-9<]{28,44}+ (?![\w<])",
                regex.VERBOSE,
            ),
            score=0.95,
            triggers=("<<",),
            window=(46, 46),
        ),
    ),
)

LICENCES = (
    make_number_rule("10", sums.is_npi, context="npi|national provider")._replace(type="LICENCE"),
    make_keyed_rule("LICENCE", "dea", r"[A-Z][A-Z9]\d{7}", digits=7, check=sums.is_dea),
)

RULES = (*NATIONAL, *LICENCES)
