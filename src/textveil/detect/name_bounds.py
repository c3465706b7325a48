"""Name bounds: where a name begins and ends in a span, without titles and forms of address.

In: the text of a name's span. Out: its bounds; whether it is nobody's name.
Not here: what counts as the same name (`normalization`).

What textveil itself takes for a name may reach further than the name: over "and", or over
what an apostrophe joins to a name (`names`).

What is left outside tells no name: a title or form of address ("Herr Sauer", "田中さん", "Ayşe Hanım"), a possessive,
an ending of Korean. The sentence around a placeholder stays whole, and the name is found again with another title.
A title that may be a name is taken for one.
"""

from collections.abc import Iterator
from functools import cache

import regex

from textveil.detect import korean
from textveil.detect.spans import NAMES
from textveil.text import Late, vocabulary

SHORT = vocabulary.words("titles_with_stop")
"""Titles that are names, too, and titles with a full stop behind them."""


@cache
def _sure() -> frozenset[str]:
    """Titles that are no names."""
    return vocabulary.words("titles") - vocabulary.words("titles_or_names")


@cache
def _before() -> regex.Pattern[str]:
    return regex.compile(
        r"""(?x)
    (?: (?: (?i: \L<sure> )
          | (?i: \L<short> ) (?= \. )
          | \L<doubtful> (?= [ ]++ .* [\p{Lu}\p{Lt}\p{Lo}] )
          | (?i: \L<doubtful> ) (?= [ ]++ (?i: \L<sure> ) [ .] )
          | (?i: \L<ahead> ) (?= [ ]++ \p{L} )
        ) (?: \.ª?[ ]*+ | :?[ ]++ | \Z )
    )++
    """,
        sure=_sure(),
        short=SHORT,
        doubtful=vocabulary.words("titles_or_names"),
        ahead=vocabulary.words("titles_with_more"),
    )


@cache
def _nobody() -> regex.Pattern[str]:
    return regex.compile(
        r"(?x) (?: (?: (?i: \L<sure> ) | \L<small> ) (?: \.ª?[ ]*+ | [ ]++ | \Z ) )++",
        sure=_sure(),
        small=vocabulary.words("titles_in_small"),
    )


@cache
def _behind() -> regex.Pattern[str]:
    """What people are called behind their name, with the endings of the language."""
    return regex.compile(
        r"""(?x)
    (?: (?<= [\p{Han}\p{Katakana}ー・] | \p{Hiragana}{2} ) [ 　]?
        \L<japanese>++ (?: です | から | より | [がはをにのもとへで] )?+
      | (?<= \p{Han} ) (?: \L<chinese> | 大 [哥姐叔婶嫂] )
      | (?: (?<= \p{Hangul} ) [ ] \L<korean> 님?+ | (?<= \p{Hangul}{2} ) (?: 씨 | 님 ) ) \L<endings>?+
      | [ ] (?: (?i: hanım | abla | teyze | dayı | amca ) | bey | abi | (?: Bey | Abi ) (?= ['’] ) )
        (?: ['’] \p{L}{1,5}+ )?+
      | [ ] \L<hindi>
    )++
    """,
        japanese=vocabulary.words("titles_behind", "ja"),
        chinese=vocabulary.words("titles_behind", "zh"),
        korean=vocabulary.words("titles_behind", "ko"),
        hindi=vocabulary.words("titles_behind", "hi"),
        endings=vocabulary.words("title_endings", "ko"),
    )


_ENDING = Late(
    r"""(?x)
    (?: (?<= \p{Ll}{3} ) \.
      | (?<= \w ) ['’ʼ] (?: [sS] | ll | ve | re | d )
      | (?<= \p{Hangul}{3} ) (?: 이고요? | 이며 | 인데요? | 이에요 | 예요 )
      | (?<= \p{Hangul}{2} ) (?: 에게서? | 한테 | 께서 | 에서 | 으로 | 입니다 | 이라고 | 부터 | 까지 )
    ) \Z
    """
)
"""What is no part of any name at its end: the full stop of a sentence, a possessive, a Korean particle."""
_TURKISH = Late(
    r"""(?x) (?<= \p{L}{3} ) ['’]
    (?: (?: y[ıiuüae] | n?[ıiuü]n | [dt][ae] (?: n | ki | y )? | y?l[ae] | l[ae]r ) (?: [dt][ıiuü]r )?
      | [dt][ıiuü]r ) \Z"""
)
"""Endings of Turkish behind a name, of two letters or more: one alone may be the name's own ("Mala'e")."""


_HANGUL = Late(r"\p{Hangul}{3,8}")

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
        for behind in _behind().finditer(value[:end] + after[:LONGEST]):
            if behind.start() < end <= behind.end() and any(
                map(str.isalpha, value[: behind.start()])
            ):
                end = behind.start()
        if _HANGUL.fullmatch(value, 0, end):
            end = len(korean.without_particle(value[:end]))
        before = _before().match(value, 0, end)
        if before is not None and value[before.end() : end][:1].isalpha():
            start = before.end()
    return start, end


_APART = Late(
    r"""(?x)
    (?<= \p{Ll}{4} ) ; [ ] (?= \p{Lu} \p{L} )
    | (?<= \w ) [ ] (?: and | und | et | y | e | i | en | ve | và | och | и | و ) [ ]
      (?: (?: a | o | da | do | de | di | la | el | het ) [ ] )? (?= \p{Lu} | \p{Arabic} )
    """
)
"""Between two people: a semicolon, or "and"."""
_NATIONAL = Late(r"N'(?=\p{L})")
"""What stands before a string of Unicode in SQL."""
_ELIDED = Late(
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
    before = _before().match(value)
    return before is not None and _ONE_NAME.fullmatch(value, before.end()) is not None


_ONE_NAME = Late(r"\p{Lu}\p{Ll}++(?:-\p{Lu}\p{Ll}++)?")


def is_title(word: str) -> bool:
    """Whether a word is a title that may have a full stop behind it."""
    return word.lower() in _sure() or word.lower() in SHORT


def is_nobody(value: str) -> bool:
    """Whether what was found is nobody: a title, or several, alone; none of them may be a name."""
    return _nobody().fullmatch(value) is not None
