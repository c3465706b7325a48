"""Times: dates in many languages, and dates of birth by nearby words.

In: nothing. Out: `RULES`.
Not here: ages and appointments (`ages`); times in JSON, CSV and the like, which have keys
(`keyvalue`).

Words are spelled as in the plain form of a text: the Turkish ı is an i there.
"""

from functools import cache

import regex

from textveil.detect.patterns import checksums as sums
from textveil.detect.patterns.rules import Expression, Rule, build_context
from textveil.text import LazyPattern, vocabulary

FIRST_BIRTH_YEAR = 1905
"""The first year of birth of anybody alive: earlier dates are history."""


def is_birth(value: str) -> bool:
    """True if a value can be the birth date of somebody alive.

    It has a valid month and day.
    """
    years = [int(year) for year in regex.findall(r"(?<!\d)[12]\d{3}(?!\d)", value)]
    return is_day(value) and not any(1000 <= year < FIRST_BIRTH_YEAR for year in years)


def is_day(value: str) -> bool:
    """True if a date has a valid month and day."""
    parts = [int(part) for part in regex.findall(r"\d+", value)]
    if value.isdigit() and len(value) == 8:
        year, month, day = value[:4], value[4:6], value[6:]
        return sums.is_date(int(year), int(month), int(day)) or sums.is_date(
            int(value[4:]), int(value[:2]), int(value[2:4])
        )
    if len(parts) != 3 or not all(parts):
        return len(parts) < 3  # with the month in words: a day and perhaps a year
    first, second, third = parts
    if first > 31:
        # `date` takes no year above 9999.
        return sums.is_date(min(first, 9999), second, third) or sums.is_date(
            min(first, 9999), third, second
        )
    return sums.is_short_date(third, second, first) or sums.is_short_date(third, first, second)


MONTHS = r"""
    (?: jan(?:uary|uari|uar|vier|eiro)? | feb(?:ruary|ruari|ruar|brero|braio|rero)? | f[ée]v(?:rier|ereiro)?
      | mar(?:ch|s|zo|[çc]o)? | m[äa]rz | maart | apr(?:il|ile)? | avr(?:il)? | abr(?:il)? | may | mai | mayo | maggio
      | maio | mei | june? | juni | juin | junio | giugno | junho | july? | juli | juillet | julio | luglio | julho
      | aug(?:ust|ustus)? | ao[ûu]t | agosto | sep(?:t(?:ember|iembre|embre)?|tiembre)? | settembre | setembro
      | oct(?:ober|obre|ubre)? | okt(?:ober)? | ottobre | outubro | nov(?:ember|iembre|embre|embro)?
      | dec(?:ember|embre)? | d[ée]c(?:embre)? | dez(?:ember|embro)? | dic(?:iembre|embre)? | enero | gennaio
      | stycznia | lutego | marca | kwietnia | maja | czerwca | lipca | sierpnia | wrze[śs]nia | pa[źz]dziernika
      | listopada | grudnia
      | ocak | [şs]ubat | mart | nisan | may[iı]s | haziran | temmuz | a[ğg]ustos | eyl[üu]l | ekim | kas[iı]m
      | aral[iı]k
      | январ[ья] | феврал[ья] | марта? | апрел[ья] | ма[йя] | июн[ья] | июл[ья] | августа? | сентябр[ья]
      | октябр[ья] | ноябр[ья] | декабр[ья]
      | يناير | فبراير | مارس | [أا]بريل | مايو | يونيو | يوليو | [أا]غسطس | سبتمبر | [أا]كتوبر | نوفمبر | ديسمبر
      | كانون[ ](?:الثاني|الأول) | شباط | [آا]ذار | نيسان | [أا]يار | حزيران | تموز | [آا]ب | [أا]يلول
      | تشرين[ ](?:الثاني|الأول) | غشت | شتنبر | نونبر | دجنبر | جانفي | فيفري | [أا]فريل | جوان | جويلية | [أا]وت
      | जनवरी | फ़?रवरी | फरवरी | मार्च | अप्रैल | मई | जून | जुलाई | अगस्त | सित(?:ं|म्)बर | अक्(?:टूबर|तूबर)
      | नव(?:ं|म्)बर | दिस(?:ं|म्)बर ) \.?
"""
UNSPACED_DATE = r"""
    (?:\d{4} | \d\d | (?:令和|平成|昭和|大正|民国|民國)[ ]?(?:\d{1,2}|元)) [ ]?[年년][ ]? \d{1,2} [ ]?[月월]
    (?: [ ]? \d{1,2} [ ]?[日号號일] )?
  | \d{1,2}[ ]?[月월][ ]?\d{1,2}[ ]?[日号號일]
"""
NUMERIC_DATE = r"""
    \d{4} [ ]?[\-/.][ ]? \d{1,2} [ ]?[\-/.][ ]? \d{1,2}
  | \d{1,2} [ ]?[\-/.][ ]? \d{1,2} [ ]?[\-/.][ ]? \d{2,4}
  | \d{1,2} [ ] \d{1,2} [ ] (?:19|20)\d\d | (?:19|20)\d{6} | [01]\d[0-3]\d(?:19|20)\d\d
  | (?:ngày[ ])? \d{1,2} [ ] tháng [ ] \d{1,2} (?: ,? [ ] (?:năm[ ])? (?:19|20)\d\d )?
"""


def build_worded_date(months: str) -> str:
    """Builds the expression of a date whose month is a word, from that of months."""
    return rf"""
    {months} [ ] (?: (?:of|de|del)[ ] )? (?:19|20)\d\d
  | \d{{1,2}} (?: st | nd | rd | th | er | º | \. )? [ \-]? (?: (?:of|de|di|del)[ ](?:the[ ])? )? {months}
    (?: ,? [ \-]? (?: (?:of|de|del|in)[ ] )? '?\d{{2,4}} )?
  | {months} [ \-]? (?:the[ ])? \d{{1,2}} (?: st | nd | rd | th )? (?: ,? [ \-]? (?: of[ ] )? (?:\d{{4}}|'\d\d) )?
"""


DATE = rf"{UNSPACED_DATE} | {NUMERIC_DATE} | {build_worded_date(MONTHS)}"
_NO_LOG = r"(?! (?<= (?:\A|\n) \[? (?:[A-Z]{4,8}[ ]{1,4})? ) \d{4}-\d\d-\d\d [ T] \d\d : (?![03]0:00) \d\d : \d\d )"
"""No line of a log begins here, with its date and time; midnight in some time zone may be written
that way."""
_WHOLE_DATE = rf"(?<![\w]) {_NO_LOG} (?:{DATE}) (?!(?!T\d\d:)(?<=\w)[^\W生생]) (?![/.\-]\d)"

_DATE = Expression(rf"(?<!\w) (?:{DATE}) (?!\w)")

LONGEST_DATE = 30
"""The length of the longest date, in characters."""


def extend_date(text: str, start: int, end: int) -> tuple[int, int]:
    """Returns the bounds of the whole date around a part.

    They include its month, and the first day of a range before it.
    """
    low, high = max(0, end - LONGEST_DATE), start + LONGEST_DATE
    for match in _DATE.compiled.finditer(text, low, high):
        if match.start() < end and match.end() > start:
            start, end = (
                min(start, match.start()),
                max(end, match.start() + len(match[0].rstrip("."))),
            )
    first = (
        _compile_first_day().search(text, max(0, start - LONGEST_DATE), start)
        if _DAY.match(text, start)
        else None
    )
    return (start if first is None else first.start()), end


_DAY = LazyPattern(r"\d{1,2}(?!\d)[^\d]{0,6}?\p{L}{3}")


@cache
def _compile_first_day() -> "regex.Pattern[str]":
    """Compiles the expression of the first day of a range, before its last day."""
    words = "|".join(sorted(map(regex.escape, vocabulary.get_words("between_dates"))))
    return regex.compile(
        rf"""(?<![\w.,:/\-]) \d{{1,2}} (?: st | nd | rd | th | er | \. )? [ ]?
        (?: [\-–] | (?: {words} ) [ ] ) [ ]? \Z""",
        regex.VERBOSE,
    )


_BORN = (
    "born|dob|d.o.b|birth|birthdate|birth date|date of birth|birthday|birthdays|b-day|bday"
    "|geboren|geborene|geb|geburtsdatum|geburtstag|né|née|né le|née "
    "le|naissance|anniversaire|nacido|nacida|nació"
    "|nacimiento|f. nac|fec. nac|fnac|cumpleaños|nascido|nascida|nascimento|nasceu|data nasc|dt. "
    "nasc|d.n|dn"
    "|aniversário|nato il|nata il|nato a|nata a|nato nel|nata nel|nascita|compleanno|geboortedatum"
    "|geb. datum|verjaardag"
    "|ur.|urodzony|urodzona|urodzenia|urodziny|urodzin|doğum|doğum günü|doğum "
    "tarihi|doğumlu|doğumluyum|d. tarihi"
    "|sinh|sinh ngày|ngày sinh|sinh nhật|д. р|д.р|др|рожд|рождения|родился|родилась|день "
    "рождения|г. р|г.р"
)
_BORN_UNSPACED = "出生|تولد|生日|生年月日|生まれ|誕生日|생년월일|생일|출생|태어|ميلاد|مواليد|ولد|وُلد|ازداد|الازدياد|जन्म"

BIRTHS = (
    Rule(
        "BIRTH_DATE",
        Expression(_WHOLE_DATE),
        score=0.9,
        check=is_birth,
        can_precede=True,
        digits=1,
        keep_scripts=True,
        **build_context(_BORN),
    ),
    Rule(
        "BIRTH_DATE",
        Expression(rf"(?<!\d) {_NO_LOG} (?:{DATE}) (?!\d)"),
        score=0.9,
        check=is_birth,
        can_precede=True,
        digits=1,
        keep_scripts=True,
        guard="dates of scripts without spaces",
        **build_context(_BORN_UNSPACED),
    ),
    Rule(
        "BIRTH_DATE",
        Expression(
            rf"(?: [(,;] [ ]? b\.? [ ]? | (?<=[\p{{L}})(,;.][ ]?) [*∗] [ ]? ) (?P<value>{DATE}) (?!\w)"
        ),
        score=0.9,
        check=is_birth,
        digits=3,
        triggers=("b.", "(b", "*", "∗"),
        guard="one sign or the year alone tells of a birth",
    ),
    Rule(
        "BIRTH_DATE",
        Expression(r"""(?<!\w) (?: i[ ]was[ ]born[ ]in | ich[ ](?:bin|wurde)(?=[^.\n]{0,30}geboren)
            | jahrgang | year[ ]of[ ]birth [ ]?:?
            | geburtsjahr [ ]?:? | je[ ]suis[ ]née?[ ]en | nac[íi][ ]en | nasci[ ]em | sono[ ]nat[oa][ ]nel
            | urodzi[łl][ae]m[ ]si[ęe][ ]w | sinh[ ]năm | я[ ]родил(?:ся|ась)[ ]в | rok[ ]urodzenia[ ]?:? )
            [ ]? (?P<value> (?:19|20)\d\d ) (?!\w)"""),
        score=0.8,
        digits=4,
        triggers=(
            "born",
            "jahr",
            "née",
            "né ",
            "nac",
            "nasci",
            "nat",
            "urodz",
            "sinh",
            "роди",
            "year",
        ),
        guard="one sign or the year alone tells of a birth",
    ),
    Rule(
        "BIRTH_DATE",
        Expression(r"""(?<!\d) (?P<value> (?:19|20)?\d\d [ ]?[年년] (?: [ ]?\d{1,2}[ ]?[月월]
            (?: [ ]?\d{1,2}[ ]?[日일] )? )? ) (?= [ ]? (?: 生まれ | 生れ | 出生 | 生(?!産|产) | 생 ) )"""),
        score=0.85,
        check=is_birth,
        digits=2,
        triggers=("年", "년"),
        keep_scripts=True,
    ),
)

RULES = BIRTHS
