"""Vehicles: registration plates and identification numbers.

In: nothing. Out: `RULES`.
Not here: driving licences (`people`).
"""

import regex

from textveil.detect.patterns import checksums as sums
from textveil.detect.patterns.rules import (
    Expression,
    Rule,
    build_context,
    guard_rules,
    has_digit,
    has_digits,
    make_linked_rule,
)

_PLATES = (
    "license plate|licence plate|number plate|registration plate|vehicle registration|car registration"
    "|registration number|kennzeichen|nummernschild|immatriculation|matrícula|matricula|targa|placa"
    "|kenteken|rejestracyjny|rejestracyjna|rejestracyjnego|nr rej|nr rej.|registreringsnummer"
)
_CARS = (
    "license plate|licence plate|license plates|number plate|registration plate|vehicle plate|car "
    "plate|plate"
    "|plates|vehicle registration|car registration|vehicle reg|car reg|registration "
    "number|registration no"
    "|registration mark|registration|reg number|reg no|reg. "
    "no|reg|index|kennzeichen|kfz-kennzeichen|amtl. kennzeichen"
    "|nummernschild|plaque|plaque "
    "d'immatriculation|immatriculation|immatriculé|immatriculée|matrícula|matricula"
    "|targa|targata|placa|placas|chapa|patente|kenteken|nummerplaat|rejestracyjny|rejestracyjna|nr rej|rejestracj*"
    "|tablic*|plaka*|biển số*|biển kiểm soát|bks|госномер*|гос. номер*|г/н|номерной знак|номер "
    "машины|номер авто*"
    "|car|cars|vehicle|vehicles|van|truck|motorbike|motorcycle|parking|parked|auto|autos|wagen|pkw|lkw|fahrzeug"
    "|voiture|véhicule|coche|vehículo|carro|veículo|vettura|macchina|veicolo|automobile|wagen|voertuig|bestelbus"
    "|samochód"
    "|samochodu|samochodem|pojazd|pojazdu|araç|aracım|arabam|araba|servis|xe|ô tô|xe "
    "máy|blue|black|white|red"
    "|silver|grey"
)
_ARABIC = "لوحة|رقم السيارة|رقم اللوحة|سيارة"
_FORMS = r"""
    [A-Z]{2}\d{2}[ ]?[A-Z]{3} | [A-Z]{2}[ \-]\d{3}[ \-][A-Z]{2}
  | [A-Z]{2}\d{3}[A-Z]{2} | \d{4}[ \-]?[BCDFGHJ-NPR-TV-Z]{3}
  | [A-ZÄÖÜ]{1,3}[ \-·]{1,2}[A-Z]{1,2}[ ]?\d{1,4}[EH]? | [A-Z]{3}[ \-]?\d[A-Z\d]\d{2}
  | \d{2}[ ]?[A-Z]{1,3}[ ]?\d{2,5}
  | [A-Z]{2}-\d{2}-[A-Z]{2} | \d{2}-[A-Z]{2}-\d{2} | \d{1,2}-[A-Z]{2,3}-\d{1,2} | [A-Z]{1,2}-\d{2,3}-[A-Z]{1,2}
  | [A-Z]{2,3}[ ][A-Z\d]{4,5} | \d{2}[A-Z][\- ]?[A-Z\d]{0,2}[ \-]?\d{3}\.?\d{2}
  | \d{3}[ \-][A-Z]{3} | [A-Z]{3}[ \-]\d{3,4}
  | [A-Z]{2}[ ]?\d{3}[ ]?[A-Z]{1,2}
"""
_STATES = (
    "AN|AP|AR|AS|BR|CH|CG|DD|DL|DN|GA|GJ|HP|HR|JH|JK|"
    "KA|KL|LA|LD|MH|ML|MN|MP|MZ|NL|OD|OR|PB|PY|RJ|SK|TN|TR|TS|UK|UP|WB"
)


def is_checked(value: str) -> bool:
    """True if a number has letters and North America's check digit."""
    return has_digits(value) and not value.isdigit() and sums.is_vin(value)


def make_plate_rule(
    form: str, score: float, context: str = "", *, keep_scripts: bool = False
) -> Rule:
    """Makes a rule for plates of a form, in capitals.

    Args:
        form: the expression of the plate.
        score: the score of its matches.
        context: words, separated by bars, one of which must be near; "" if none must.
        keep_scripts: whether the form has letters of other scripts.
    """
    end = "" if keep_scripts else r"(?!\w) (?! [\-/]\w | [.,]\d )"
    start = r"(?<![A-Za-z\d])" if keep_scripts else r"(?<![\w\-.])"
    return Rule(
        "PLATE",
        Expression(rf"{start} (?P<value>{form}) {end}", regex.VERBOSE),
        score=score,
        digits=2,
        keep_scripts=keep_scripts,
        can_precede=bool(context),
        **(build_context(context) if context else {}),
    )


RULES = (
    make_plate_rule(_FORMS, 0.75, _CARS)._replace(check=has_digit),
    # whatever follows the word itself: Nr rej.: WX 22488B
    make_linked_rule(
        "PLATE",
        _PLATES,
        r"(?-i: [A-Z]{1,3} [ \-]? (?=[A-Z]{0,2}\d) [A-Z\d]{3,6} ) (?![ \-/]?\d)",
        digits=2,
        wordy=True,
    )._replace(guard="plates of any country behind their word"),
    # China, Korea
    make_plate_rule(
        r"[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼][A-Z][ ·・•.]?"
        r"(?=[A-Z]{0,3}\d)[A-Z\d]{4,5}[A-Z\d挂学警港澳](?![A-Za-z\d])"
        r"|\d{2,3}[ ]?[가나다라마거너더러머버서어저고노도로모보소오조구누두루무부수우주아바사자배하허호][ ]?\d{4}"
        r"(?![\d억만원년,.])",
        0.9,
        keep_scripts=True,
    ),
    *guard_rules(
        "a form that a country defines",
        # United Kingdom; India; France and Italy; Ireland
        make_plate_rule(
            rf"""[A-HJ-PR-Y][A-Y](?:0[2-9]|[12]\d|5[1-9]|[67]\d)[ ][A-HJ-PR-Z]{{3}}
            | (?:{_STATES})[ \-]?\d{{1,2}}[ \-]?[A-Z]{{1,3}}[ \-]?\d{{4}}
            | [A-HJ-NP-TV-Z]{{2}}-\d{{3}}-[A-HJ-NP-TV-Z]{{2}}
            | (?:9\d|0\d|1[0-2]|(?:1[3-9]|2\d)[12]) -
              (?: [CDGLTW] | C[ENW] | DL | K[EKY] | L[DHMSK] | M[HNO] | OY | RN | SO | T[NS] | W[HWX] ) - \d{{1,6}}""",
            0.75,
        ),
        make_plate_rule(
            r"(?<![\p{L}\d])\p{Arabic}(?:[ ]?\p{Arabic}){0,2}[ \-]{0,3}\d{1,4}(?!\w)"
            r"|(?<![\p{L}\d])\d{1,4}[ \-]{0,3}\p{Arabic}(?:[ ]\p{Arabic}){0,2}(?!\w)",
            0.7,
            _ARABIC,
            keep_scripts=True,
        ),
    ),
    *guard_rules(
        "check digits of North America",
        Rule(
            "VIN",
            Expression(r"(?<![\w.\-]) [A-HJ-NPR-Z\d]{13}\d{4} (?!\w)"),
            score=0.85,
            check=is_checked,
            numeric_prefix=True,
            digits=5,
        ),
    ),
)
"""Plates and vehicle identification numbers."""
