"""Vehicles: registration plates and identification numbers.

In: nothing. Out: `RULES`.
Not here: driving licences (`people`).
"""

import regex

from textveil.detect.patterns import checksums as sums
from textveil.detect.patterns.rules import Expression, Rule, has_digit, has_digits, words


def is_plate(value: str) -> bool:
    """Whether it has the length of a plate, and both digits and letters."""
    whole = sums.compact(value)
    return 4 <= len(whole) <= 8 and has_digit(whole) and not whole.isdigit()


_SIGNS = (
    "license plate|licence plate|license plates|number plate|registration plate|vehicle plate|car plate|plate"
    "|plates|vehicle registration|car registration|vehicle reg|car reg|registration number|registration no"
    "|registration mark|registration|reg number|reg no|reg. no|reg|index|kennzeichen|kfz-kennzeichen|amtl. kennzeichen"
    "|nummernschild|plaque|plaque d'immatriculation|immatriculation|immatriculé|immatriculée|matrícula|matricula"
    "|targa|targata|placa|placas|chapa|patente|kenteken|nummerplaat|rejestracyjny|rejestracyjna|nr rej|rejestracj*"
    "|tablic*|plaka*|biển số*|biển kiểm soát|bks|госномер*|гос. номер*|г/н|номерной знак|номер машины|номер авто*"
)
_CARS = (
    _SIGNS
    + "|car|cars|vehicle|vehicles|van|truck|motorbike|motorcycle|parking|parked|auto|autos|wagen|pkw|lkw|fahrzeug"
    "|voiture|véhicule|coche|vehículo|carro|veículo|vettura|macchina|veicolo|automobile|wagen|voertuig|bestelbus"
    "|samochód"
    "|samochodu|samochodem|pojazd|pojazdu|araç|aracım|arabam|araba|servis|xe|ô tô|xe máy|blue|black|white|red"
    "|silver|grey"
)
_JAPANESE = "ナンバー|お車|車両番号|車のナンバー|登録番号"
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
    """Whether the number has letters, and the check digit of North America."""
    return has_digits(value) and not value.isdigit() and sums.is_vin(value)


def plate(form: str, score: float, context: str = "", *, whole: bool = False) -> Rule:
    """A rule for plates of a form, in capitals, alone or near context words; `whole` if it has other scripts in it."""
    end = "" if whole else r"(?!\w) (?! [\-/]\w | [.,]\d )"
    start = r"(?<![A-Za-z\d])" if whole else r"(?<![\w\-.])"
    return Rule(
        "PLATE",
        Expression(rf"{start} (?P<value>{form}) {end}", regex.VERBOSE),
        score=score,
        digits=2,
        whole=whole,
        before=bool(context),
        **(words(context) if context else {}),
    )


RULES = (
    Rule(
        "PLATE",
        Expression(
            r"(?<![\w\-])(?P<value>[A-Z0-9]{1,4}(?:[ \-·]{0,3}[A-Z0-9]{1,4}){0,3})(?![\w\-]|\.\d)",
            0,
        ),
        score=0.88,
        check=is_plate,
        digits=1,
        **words(_SIGNS),
    ),
    plate(_FORMS, 0.75, _CARS)._replace(check=has_digit),
    # two letters, age, three letters (United Kingdom)
    plate(r"[A-HJ-PR-Y][A-Y](?:0[2-9]|[12]\d|5[1-9]|[67]\d)[ ][A-HJ-PR-Z]{3}", 0.7),
    plate(rf"(?:{_STATES})[ \-]?\d{{1,2}}[ \-]?[A-Z]{{1,3}}[ \-]?\d{{4}}", 0.75),
    plate(r"[A-HJ-NP-TV-Z]{2}-\d{3}-[A-HJ-NP-TV-Z]{2}", 0.7),
    plate(
        r"[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼][A-Z][ ·・•.]?"
        r"(?=[A-Z]{0,3}\d)[A-Z\d]{4,5}[A-Z\d挂学警港澳](?![A-Za-z\d])",
        0.9,
        whole=True,
    ),
    plate(
        r"\d{2,3}[ ]?[가나다라마거너더러머버서어저고노도로모보소오조구누두루무부수우주아바사자배하허호][ ]?\d{4}"
        r"(?![\d억만원년,.])",
        0.75,
        whole=True,
    ),
    plate(
        r"(?<![\p{L}\d])\p{Arabic}(?:[ ]?\p{Arabic}){0,2}[ \-]{0,3}\d{1,4}(?!\w)"
        r"|(?<![\p{L}\d])\d{1,4}[ \-]{0,3}\p{Arabic}(?:[ ]\p{Arabic}){0,2}(?!\w)",
        0.7,
        _ARABIC,
        whole=True,
    ),
    Rule(
        "VIN",
        Expression(r"(?<![\w.\-]) [A-HJ-NPR-Z\d]{13}\d{4} (?!\w)"),
        score=0.85,
        check=is_checked,
        leads=True,
        digits=5,
    ),
    Rule(
        "VIN",
        Expression(r"(?<![\w.\-]) (?P<value>[A-HJ-NPR-Z\d]{17}) (?!\w)"),
        score=0.88,
        check=has_digits,
        digits=4,
        **words(
            "vin|vehicle identification|chassis|fahrgestellnummer|fahrgestell-nr|fahrgestell|fin|fgstnr"
            "|n° de châssis|châssis"
            "|numéro de série|bastidor|nº de bastidor|chassi|telaio|n. telaio|chassisnummer|vin-nummer|nadwozia|nr vin"
            "|şasi*|số khung|车架号*|車架號*|車台番号*|차대번호*|номер кузова|шасси|الشاسيه|الهيكل|चेसिस*|चैसिस*"
        ),
    ),
)
"""Plates and vehicle identification numbers."""
