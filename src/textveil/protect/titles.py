"""Titles: where a name begins and ends in what was found, without the words by which people are called.

In: the text of a name's span. Out: its bounds; whether it is nobody's name.
Not here: what counts as the same name (`spelling`), and names that titles tell (`scripts`).

What is left outside tells no name: a title or form of address ("Herr Sauer", "田中さん", "Ayşe Hanım"), a possessive,
an ending of Korean. The sentence around a placeholder stays whole, and the name is found again with another title.
"""

import regex

from textveil.protect.scripts import han, hangul, japanese
from textveil.protect.spans import NAMES
from textveil.protect.spelling import TITLES

_ADDRESS = """
    rev revd reverend auntie uncle grandma grandpa smt
    hr dipl-ing schwester tante onkel opa kollege kollegin
    maître docteur tonton
    doña dra lic pcte estimado estimada
    dona senhor senhora
    dottor dottoressa dott.ssa avv geom suor nonna nonno prof.ssa sig.ra gentile egregio
    heer mw drs juf
    pana panu panią panie państwo
    sayın bayan av
    ông bà chị cô thầy bs
    господин господину господина госпожа госпоже госпожу г-н г-на г-ну г-жа г-же г-жу гражданин гражданка
    доктор дядя тётя пациент пациентка оператор директор
    السيد السيدة الآنسة الأستاذ الأستاذة الدكتور الدكتورة المهندس المهندسة الحاج الحاجة مدام المريض المريضة العميل
    العميلة
    श्री श्रीमती सुश्री डॉ डॉक्टर स्व श्रीमान
"""
"""Words before a name, besides `TITLES`: titles, forms of address, and what somebody is to others."""

_SMALL = """
    judge captain brother sister bruder don tia tio zia zio tía tío oma pat ing doç bay pan anh chú bác em cậu dì bạn
    cháu bé
"""
"""The same; with a capital they may be names."""

_TITLES = regex.compile(
    r"(?x) (?: (?: (?i: \L<titles> ) | \L<small> ) (?: \.ª?[ ]*+ | [ ]++ | \Z ) )++",
    titles=[*TITLES, *_ADDRESS.split()],
    small=_SMALL.split(),
)

_BEHIND = regex.compile(
    r"""(?x)
    (?: (?<= [\p{Han}\p{Katakana}ー・] | \p{Hiragana}{2} ) [ 　]?
        (?: さん | さま | くん | ちゃん | \L<japanese> )++ (?: です | から | より | [がはをにのもとへで] )?+
      | (?<= \p{Han} ) (?: \L<chinese> | 大 [哥姐叔婶嫂] )
      | (?: (?<= \p{Hangul} ) [ ] \L<korean> 님?+ | (?<= \p{Hangul}{2} ) (?: 씨 | 님 ) ) \L<endings>?+
      | [ ] (?i: bey | hanım | abi | abla | teyze ) (?: ['’] \p{L}{1,5}+ )?+
      | [ ] (?: जी | साहब | साहिब | साब | भाई | भैया | दीदी | अंकल | आंटी | सर | मैडम | मैम | चाचा | काका )
    )++
    """,
    japanese=[title for title in japanese.TITLES if title != "家"],
    chinese=[title for title in han.TITLES if title not in ("经", "哥")],
    korean=hangul.RANKS,
    endings=["은", "는", "이", "가", "을", "를", "의", "께", "께서", "에게", "한테", "입니다", "이고", "과", "와"],
)
"""What people are called behind their name, with the endings of the language."""

_ENDING = regex.compile(
    r"""(?x)
    (?: (?<= \w ) ['’ʼ] [sS]
      | (?<= \p{Hangul}{2} ) (?: 에게서? | 한테 | 께서 | 에서 | 으로 | 입니다 | 이라고 | 부터 | 까지 )
    ) \Z
    """
)
"""What is no part of any name at its end."""


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
            if behind.start() < end <= behind.end() and any(map(str.isalpha, value[: behind.start()])):
                end = behind.start()
        before = _TITLES.match(value, 0, end)
        if before is not None and value[before.end() : end][:1].isalpha():
            start = before.end()
    return start, end


def is_nobody(value: str) -> bool:
    """Whether what was found is nobody: a title, or several, alone."""
    return _TITLES.fullmatch(value) is not None
