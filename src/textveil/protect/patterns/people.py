"""People: national numbers, records, licences and plates.

In: nothing. Out: `RULES`.
Not here: check digits (`checksums`), street addresses (`addresses`), telephone numbers (`phones`), dates of birth
(`times`).
"""

from textveil.protect.patterns import checksums as sums
from textveil.protect.patterns.rules import (
    AFTER,
    BEFORE,
    Check,
    Expression,
    Rule,
    has_digit,
    has_digits,
    keyed,
    words,
)


def number(digits: str, check: Check | None = None, *, context: str = "", score: float = 1.0) -> Rule:
    """A rule for a national number: its number of digits or its form, its check, and context words.

    In a form, an underscore marks an optional separator; a plain number of digits allows one before any digit.
    """
    if digits.replace(",", "").isdigit():
        low, high = (int(n) - 1 for n in (digits.split(",") * 2)[:2])
        form = rf"\d (?: [ .\-/]{{0,2}}+ \d ){{{low},{high}}}"
    else:
        form = digits.replace("_", r"[ .\-/]{0,2}+")
    return Rule(
        "NATIONAL_ID",
        Expression(rf"{BEFORE} (?:{form}) {AFTER}"),
        score=score,
        check=check,
        before=True,
        leads=True,
        digits=6,
        **(words(context) if context else {}),
    )


def is_ssn(value: str) -> bool:
    """Whether the US can have issued it: no area 000, 666 or 900 and up, no group 00, no serial number 0000."""
    d = sums.compact(value)
    return d[:3] not in ("000", "666") and d[0] != "9" and d[3:5] != "00" and d[5:] != "0000"


def is_itin(value: str) -> bool:
    """Whether it is a US taxpayer number: 9xx and a group in use."""
    d = sums.compact(value)
    group = int(d[3:5])
    return d[0] == "9" and (50 <= group <= 65 or 70 <= group <= 88 or 90 <= group <= 92 or 94 <= group <= 99)


def is_plate(value: str) -> bool:
    """Whether it has the length of a plate, and both digits and letters."""
    whole = sums.compact(value)
    return 4 <= len(whole) <= 8 and has_digit(whole) and not whole.isdigit()


_FORM = (
    r"(?=[A-Z\-]{0,5}\d) [A-Z0-9]{1,20}+"
    r" (?: (?: [.\-/] | [ ](?=[A-Z]{0,2}\d\w) ) [A-Z0-9]{1,20}+ ){0,6}"
)
"""A number known only by the words near it: after each space it must have a digit near its start."""

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
    number(r"\d{3}[ ]\d{3}[ ]\d{4}", sums.is_nhs, score=0.7),
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
    number(r"[A-Z]{3}[ABCFGHLJPT][A-Z]\d{4}[A-Z]", score=0.9)._replace(digits=4),
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
        "national id|national identity|national identification|identity card|identity number|id card|id number|id no"
        "|id #|social security|personalausweis|personalausweisnummer|ausweisnummer|sozialversicherungsnummer"
        "|steuer-id|steuernummer|steueridentifikationsnummer|dni|nie|carte d'identité|carte nationale d'identité"
        "|numéro de sécurité sociale|carta d'identità|codice fiscale|documento de identidad|tax id|taxpayer id"
        "|tax number|taxpayer number|tin|ein|national insurance",
        _FORM,
        digits=4,
        check=has_digits,
    ),
)

RECORDS = (
    keyed(
        "MEDICAL_RECORD",
        "mrn|m.r.n|medical record|medical records|health record|patient id|patient number|patient no|patient #"
        "|patient-id|chart number|chart no|chart #|hospital number|hospital no|case number|case no|health plan"
        "|health insurance|member id|medicaid|patientennummer|patienten-nr|fallnummer|krankenversichertennummer"
        "|versichertennummer|numéro de dossier|dossier médical|historia clínica|número de paciente|cartella clinica",
        _FORM,
        digits=3,
        check=has_digit,
    ),
    number("10", sums.is_npi, context="npi|national provider")._replace(type="LICENCE"),
    keyed("LICENCE", "dea", r"[A-Z][A-Z9]\d{7}", digits=7, check=sums.is_dea),
    Rule(
        "LICENCE",
        Expression(rf"{BEFORE} [A-Z9]{{5}}[ ]?\d[0156]\d[0-3]\d\d[ ]?[A-Z9]{{2}}\d[A-Z]{{2}} {AFTER}"),
        score=0.9,
        check=lambda value: not value[:5].isdigit(),
        leads=True,
        digits=6,
    ),
    keyed(
        "LICENCE",
        "license|licence|driver license|drivers license|driver's license|driving licence|license number"
        "|licence number|license no|licence no|license #|dl number|dl no|dl #|dl#|dl:|driver id|driving permit"
        "|medical registration|bar number|gmc|führerschein|führerscheinnummer|permis de conduire|permiso de conducir"
        "|carné de conducir|licencia de conducir|patente|patente di guida|rijbewijs|rijbewijsnummer",
        _FORM,
        digits=4,
        check=has_digits,
    ),
    Rule(
        "PLATE",
        Expression(r"(?<![\w\-])(?P<value>[A-Z0-9]{1,4}(?:[ \-·]{0,3}[A-Z0-9]{1,4}){0,3})(?![\w\-])", 0),
        score=0.88,
        check=is_plate,
        **words(
            "license plate|licence plate|license plates|number plate|registration plate|vehicle plate|car plate|plate"
            "|plates|vehicle registration|car registration|vehicle reg|car reg|registration number|registration no"
            "|registration mark|reg number|reg no|reg. no|kennzeichen|nummernschild|plaque|plaque d'immatriculation"
            "|immatriculation|immatriculé|immatriculée|matrícula|matricula|targa|targata"
        ),
        digits=1,
    ),
    Rule(
        "PLATE",
        Expression(r"(?<![\w.\-]) (?P<value>[A-HJ-NPR-Z0-9]{17}) (?!\w)"),
        score=0.8,
        check=has_digits,
        digits=4,
        **words("vin|vehicle identification|chassis"),
    ),
)

RULES = (*NATIONAL, *RECORDS)
