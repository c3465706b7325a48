"""Name bounds: finds a name inside its span, without titles.

In: the text of a name's span. Out: its bounds; whether it names nobody.
Not here: which spellings count as the same name (`normalization`).

textveil's own detectors may return more than the name: two names joined by "and", or a word that an
apostrophe joins to a name (`split_names`).

The bounds leave out what does not identify the person: a title or form of address ("Herr Sauer",
"田中さん", "Ayşe Hanım"), a possessive, a Korean ending. So the sentence around a placeholder stays
whole, and the name is found again with another title. A title that may be a name is taken for a
name.
"""

from collections.abc import Iterator
from functools import cache

import regex

from textveil.detect import korean
from textveil.detect.spans import NAMES
from textveil.text import LazyPattern, vocabulary

TITLES_WITH_STOP = vocabulary.get_words("titles_with_stop")
"""Titles that may also be names, and titles that end with a full stop."""


@cache
def _list_titles() -> frozenset[str]:
    """Returns the titles that are never names."""
    return vocabulary.get_words("titles") - vocabulary.get_words("titles_or_names")


@cache
def _compile_titles() -> regex.Pattern[str]:
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
        sure=_list_titles(),
        short=TITLES_WITH_STOP,
        doubtful=vocabulary.get_words("titles_or_names"),
        ahead=vocabulary.get_words("titles_with_more"),
    )


@cache
def _compile_only_titles() -> regex.Pattern[str]:
    return regex.compile(
        r"(?x) (?: (?: (?i: \L<sure> ) | \L<small> ) (?: \.ª?[ ]*+ | [ ]++ | \Z ) )++",
        sure=_list_titles(),
        small=vocabulary.get_words("titles_in_small"),
    )


@cache
def _compile_forms_of_address() -> regex.Pattern[str]:
    """Compiles forms of address that follow a name, with grammatical endings."""
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
        japanese=vocabulary.get_words("titles_behind", "ja"),
        chinese=vocabulary.get_words("titles_behind", "zh"),
        korean=vocabulary.get_words("titles_behind", "ko"),
        hindi=vocabulary.get_words("titles_behind", "hi"),
        endings=vocabulary.get_words("title_endings", "ko"),
    )


_ENDING = LazyPattern(
    r"""(?x)
    (?: (?<= \p{Ll}{3} ) \.
      | (?<= \w ) ['’ʼ] (?: [sS] | ll | ve | re | d )
      | (?<= \p{Hangul}{3} ) (?: 이고요? | 이며 | 인데요? | 이에요 | 예요 )
      | (?<= \p{Hangul}{2} ) (?: 에게서? | 한테 | 께서 | 에서 | 으로 | 입니다 | 이라고 | 부터 | 까지 )
    ) \Z
    """
)
"""Endings that are never part of a name: a full stop, a possessive, a Korean particle."""
_TURKISH = LazyPattern(
    r"""(?x) (?<= \p{L}{3} ) ['’]
    (?: (?: y[ıiuüae] | n?[ıiuü]n | [dt][ae] (?: n | ki | y )? | y?l[ae] | l[ae]r ) (?: [dt][ıiuü]r )?
      | [dt][ıiuü]r ) \Z"""
)
"""Turkish endings behind a name, of two letters or more: one letter may be part of the name
("Mala'e")."""


_HANGUL = LazyPattern(r"\p{Hangul}{3,8}")

MAX_TITLE_OVERHANG = 3
"""The number of characters behind a span that a title may reach over."""


def find_name_bounds(type_: str, value: str, after: str = "") -> tuple[int, int]:
    """Finds a name in its span, without titles, possessive and endings.

    Args:
        type_: the span's type; only names are cut.
        value: the span's text.
        after: the text behind the span: a title may reach over its end.

    Returns:
        The start and end of the name in `value`.
    """
    start, end = 0, len(value)
    if type_ not in NAMES:
        return start, end
    ending = _ENDING.search(value)
    if ending is not None:
        end = ending.start()
    if type_ == "PERSON":
        for behind in _compile_forms_of_address().finditer(
            value[:end] + after[:MAX_TITLE_OVERHANG]
        ):
            if behind.start() < end <= behind.end() and any(
                map(str.isalpha, value[: behind.start()])
            ):
                end = behind.start()
        if _HANGUL.fullmatch(value, 0, end):
            end = len(korean.remove_particle(value[:end]))
        before = _compile_titles().match(value, 0, end)
        if before is not None and value[before.end() : end][:1].isalpha():
            start = before.end()
    return start, end


_NAME_SEPARATOR = LazyPattern(
    r"""(?x)
    (?<= \p{Ll}{4} ) ; [ ] (?= \p{Lu} \p{L} )
    | (?<= \w ) [ ] (?: and | und | et | y | e | i | en | ve | và | och | и | و ) [ ]
      (?: (?: a | o | da | do | de | di | la | el | het ) [ ] )? (?= \p{Lu} | \p{Arabic} )
    """
)
"""A separator between two people: a semicolon, or "and"."""
_NATIONAL = LazyPattern(r"N'(?=\p{L})")
"""The prefix of a Unicode string in SQL."""
_ELIDED = LazyPattern(
    r"(?: [dlnsjmtc] | qu | un | (?: de | a | da | ne | su ) ll ) ['’] (?=\p{Lu})", regex.VERBOSE
)
"""French and Italian words that lose their last vowel before a name."""


def split_names(type_: str, value: str, after: str = "") -> Iterator[tuple[int, int]]:
    """Finds each name in a span, split at "and" and elided articles.

    Common words at the ends stay inside: a family name may be one.

    Args:
        type_: the span's type.
        value: the span's text.
        after: the text behind the span.

    Yields:
        The start and end of each name in `value`.
    """
    joined = _ELIDED.match(value) or (_NATIONAL.match(value) if after[:1] == "'" else None)
    start = 0 if joined is None or type_ not in NAMES else joined.end()
    ends = (
        [(match.start(), match.end()) for match in _NAME_SEPARATOR.finditer(value)]
        if type_ == "PERSON"
        else []
    )
    for stop, following in [*ends, (len(value), len(value))]:
        ending = _TURKISH.search(value, start, stop) if type_ in NAMES else None
        yield start, stop if ending is None else ending.start()
        start = following


def is_titled_name(value: str) -> bool:
    """True if a value is a title and one word.

    It then names a person, even if it was tagged as an organization.
    """
    before = _compile_titles().match(value)
    return before is not None and _ONE_NAME.fullmatch(value, before.end()) is not None


_ONE_NAME = LazyPattern(r"\p{Lu}\p{Ll}++(?:-\p{Lu}\p{Ll}++)?")


def is_title(word: str) -> bool:
    """Says whether a word is a title, without its full stop."""
    return word.lower() in _list_titles() or word.lower() in TITLES_WITH_STOP


def is_nobody(value: str) -> bool:
    """True if a value is only titles ("Herr Dr.") or a pronoun, so nobody.

    None of the titles may be a name.
    """
    is_pronoun = value.lower() in vocabulary.get_words("pronouns")
    return is_pronoun or _compile_only_titles().fullmatch(value) is not None
