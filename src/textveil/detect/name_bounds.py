"""Titles: where a name begins and ends in what was found, without the words by which people are called.

In: the text of a name's span. Out: its bounds; whether it is nobody's name.
Not here: what counts as the same name (`spelling`).

What textveil itself takes for a name may reach further than the name: over "and", or over
what an apostrophe joins to a name (`names`).

What is left outside tells no name: a title or form of address ("Herr Sauer", "田中さん", "Ayşe Hanım"), a possessive,
an ending of Korean. The sentence around a placeholder stays whole, and the name is found again with another title.
A title that may be a name is taken for one.
"""

from collections.abc import Iterator

import regex

from textveil.detect import korean
from textveil.detect.normalization import TITLES
from textveil.detect.spans import NAMES

_DOUBTFUL = """
    rev judge captain brother sister tonton juf opa oma bruder doc mag ing maître don doña dona lic tio zio tía tío tia
    zia nonna avv geom sig gentile heer pani pana panu pan pat bayan bay av doç anh chú bác em cậu bạn cháu bé
"""
"""Titles that are names, too: a title only in small letters, as an abbreviation, or before another title."""

_AHEAD = """
    ông bà chị cô thầy cụ dì mợ thím السيد المهندس الحاج الحاجة श्री स्व
    صديقي صديقتي زميلي زميلتي أختي والدي والدتي زوجي زوجتي ابنتي مديري مديرتي جاري جارتي
    خالتي عمتي عمي خالي جدي جدتي نسيبي جوزي لجوزي
"""
"""Titles and words for relatives in one language, that are names, too: a title only with a further name behind it."""

_SURE = """
    revd reverend auntie uncle grandma grandpa smt
    bjr hr herrn dipl-ing schwester tante onkel kollege kollegin mutter vater tochter patentante patenonkel patenkind
    kassierer kassiererin vorsitzender vorsitzende
    docteur riverain riveraine
    dra pcte estimado estimada tutora maestra
    senhor senhora eng
    dottor dottoressa dott.ssa suor nonno prof.ssa sig.ra egregio
    mw drs voorzitter penningmeester
    adw panią panie państwo prezes skarbnik
    bs sayın
    господин господину господина госпожа госпоже госпожу г-н г-на г-ну г-жа г-же г-жу гражданин гражданка
    доктор дядя тётя пациент пациентка оператор директор
    السيدة الآنسة الأستاذ الأستاذة الدكتور الدكتورة المهندسة مدام المريض المريضة العميل العميلة
    श्रीमती सुश्री डॉ डॉक्टर श्रीमान सिस्टर प्रबंधक
"""
"""Words before a name that are hardly ever one, besides `TITLES`: titles, forms of address, what somebody is to
others."""

SHORT = ("rev", "lic", "avv", "geom", "av", "doc", "mag", "ing", "sig", "doç")
"""Those of the doubtful ones that are titles with a full stop behind them."""

_SMALL = """
    brother sister tio zio tía tío ông bà chị cô thầy bác cậu dì bạn cháu bé
"""
"""Those of the doubtful ones that are nobody in small letters."""

_JAPANESE = tuple(
    """
    様 氏 殿 先生 先輩 後輩 課長 部長 係長 次長 主任 主査 社長 専務 常務 店長 院長 所長 校長 教頭 会長 班長 組長 教授 准教授 講師 医師 看護師
    弁護士 税理士 司法書士 行政書士 巡査 刑事 選手 監督 議員 夫妻 夫人 婦長 師長 室長 本部長 支店長 工場長 君 嬢 家
    """.split()
)

_CHINESE = frozenset(
    """
    先生 女士 小姐 太太 夫人 老师 老師 师傅 師傅 经理 经 总监 主任 主管 组长 班长 院长 校长 局长 科长 处长 部长 厂长 店长 队长 医生 大夫 护士
    教授 博士 律师 法官 警官 会计 同学 师兄 师姐 阿姨 叔叔 大爷 大妈 奶奶 爷爷 伯伯 姐 哥 总 妈妈 爸爸 家长 同志 教练 司机 助理 秘书 顾问 专员
    客服 医师 药师
    """.split()
)
"""What follows a name."""

_TITLES = sorted({*TITLES, *_SURE.split()} - {*_DOUBTFUL.split()})

_BEFORE = regex.compile(
    r"""(?x)
    (?: (?: (?i: \L<sure> )
          | (?i: \L<short> ) (?= \. )
          | \L<doubtful> (?= [ ]++ .* [\p{Lu}\p{Lt}\p{Lo}] )
          | (?i: \L<doubtful> ) (?= [ ]++ (?i: \L<sure> ) [ .] )
          | (?i: \L<ahead> ) (?= [ ]++ \p{L} )
        ) (?: \.ª?[ ]*+ | :?[ ]++ | \Z )
    )++
    """,
    sure=_TITLES,
    short=SHORT,
    doubtful=_DOUBTFUL.split(),
    ahead=_AHEAD.split(),
)
_NOBODY = regex.compile(
    r"(?x) (?: (?: (?i: \L<sure> ) | \L<small> ) (?: \.ª?[ ]*+ | [ ]++ | \Z ) )++",
    sure=_TITLES,
    small=_SMALL.split(),
)

_BEHIND = regex.compile(
    r"""(?x)
    (?: (?<= [\p{Han}\p{Katakana}ー・] | \p{Hiragana}{2} ) [ 　]?
        (?: さん | さま | くん | ちゃん | \L<japanese> )++ (?: です | から | より | [がはをにのもとへで] )?+
      | (?<= \p{Han} ) (?: \L<chinese> | 大 [哥姐叔婶嫂] )
      | (?: (?<= \p{Hangul} ) [ ] \L<korean> 님?+ | (?<= \p{Hangul}{2} ) (?: 씨 | 님 ) ) \L<endings>?+
      | [ ] (?: (?i: hanım | abla | teyze | dayı | amca ) | bey | abi | (?: Bey | Abi ) (?= ['’] ) )
        (?: ['’] \p{L}{1,5}+ )?+
      | [ ] (?: जी | साहब | साहिब | साब | भाई | भैया | दीदी | अंकल | आंटी | सर | मैडम | मैम | चाचा | काका | काकी | चाची )
    )++
    """,
    japanese=[title for title in _JAPANESE if title != "家"],
    chinese=[title for title in _CHINESE if title not in ("经", "哥")],
    korean=korean.RANKS,
    endings="""
    은 는 이 가 을 를 의 께 께서 에게 한테 입니다 이고 과 와
    """.split(),
)
"""What people are called behind their name, with the endings of the language."""

_ENDING = regex.compile(
    r"""(?x)
    (?: (?<= \p{Ll}{3} ) \.
      | (?<= \w ) ['’ʼ] (?: [sS] | ll | ve | re | d )
      | (?<= \p{Hangul}{3} ) (?: 이고요? | 이며 | 인데요? | 이에요 | 예요 )
      | (?<= \p{Hangul}{2} ) (?: 에게서? | 한테 | 께서 | 에서 | 으로 | 입니다 | 이라고 | 부터 | 까지 )
    ) \Z
    """
)
"""What is no part of any name at its end: the full stop of a sentence, a possessive, a Korean particle."""
_TURKISH = regex.compile(
    r"""(?x) (?<= \p{L}{3} ) ['’]
    (?: (?: y[ıiuüae] | n?[ıiuü]n | [dt][ae] (?: n | ki | y )? | y?l[ae] | l[ae]r ) (?: [dt][ıiuü]r )?
      | [dt][ıiuü]r ) \Z"""
)
"""Endings of Turkish behind a name, of two letters or more: one alone may be the name's own ("Mala'e")."""


_HANGUL = regex.compile(r"\p{Hangul}{3,8}")

LONGEST = 3
"""Characters behind a span that a title may reach over."""


def bounds(type_: str, value: str, after: str = "") -> tuple[int, int]:
    """Where a name begins and ends in the text of its span: without titles, forms of address, possessive and endings.

    Args:
        type_: of a span; only names have such words.
        value: its text.
        after: what follows: a title may reach over the end of the span.
    """
    start, end = 0, len(value)
    if type_ not in NAMES:
        return start, end
    ending = _ENDING.search(value)
    if ending is not None:
        end = ending.start()
    if type_ == "PERSON":
        for behind in _BEHIND.finditer(value[:end] + after[:LONGEST]):
            if behind.start() < end <= behind.end() and any(
                map(str.isalpha, value[: behind.start()])
            ):
                end = behind.start()
        if _HANGUL.fullmatch(value, 0, end):
            end = len(korean.without_particle(value[:end]))
        before = _BEFORE.match(value, 0, end)
        if before is not None and value[before.end() : end][:1].isalpha():
            start = before.end()
    return start, end


_APART = regex.compile(
    r"""(?x)
    (?<= \p{Ll}{4} ) ; [ ] (?= \p{Lu} \p{L} )
    | (?<= \w ) [ ] (?: and | und | et | y | e | i | en | ve | và | och | и | و ) [ ]
      (?: (?: a | o | da | do | de | di | la | el | het ) [ ] )? (?= \p{Lu} | \p{Arabic} )
    """
)
"""Between two people: a semicolon, or "and"."""
_NATIONAL = regex.compile(r"N'(?=\p{L})")
"""What stands before a string of Unicode in SQL."""
_ELIDED = regex.compile(
    r"(?: [dlnsjmtc] | qu | un | (?: de | a | da | ne | su ) ll ) ['’] (?=\p{Lu})", regex.VERBOSE
)
"""French and Italian words that have lost their last vowel before a name."""


def names(type_: str, value: str, after: str = "") -> Iterator[tuple[int, int]]:
    """The bounds of each name in what textveil took for one: nothing between two people or only joined to it.

    Common words at the ends stay inside: a family name may be one.

    Args:
        type_: of a span.
        value: its text.
        after: what follows.
    """
    joined = _ELIDED.match(value) or (_NATIONAL.match(value) if after[:1] == "'" else None)
    start = 0 if joined is None or type_ not in NAMES else joined.end()
    ends = (
        [(each.start(), each.end()) for each in _APART.finditer(value)] if type_ == "PERSON" else []
    )
    for stop, following in [*ends, (len(value), len(value))]:
        ending = _TURKISH.search(value, start, stop) if type_ in NAMES else None
        yield start, stop if ending is None else ending.start()
        start = following


def is_called(value: str) -> bool:
    """Whether it is a title with one word behind it: somebody, even where it was taken for an organization."""
    before = _BEFORE.match(value)
    return before is not None and _ONE_NAME.fullmatch(value, before.end()) is not None


_ONE_NAME = regex.compile(r"\p{Lu}\p{Ll}++(?:-\p{Lu}\p{Ll}++)?")


def is_title(word: str) -> bool:
    """Whether a word is a title that may have a full stop behind it."""
    return word.lower() in _STOPPED


_STOPPED = frozenset((*_TITLES, *SHORT))


def is_nobody(value: str) -> bool:
    """Whether what was found is nobody: a title, or several, alone; none of them may be a name."""
    return _NOBODY.fullmatch(value) is not None
