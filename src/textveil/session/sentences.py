"""Sentence bounds around a name, and capitalised words that could extend it.

In: the text before and behind a place. Out: offsets; whether a capitalised word may belong to a
name.
Not here: which names are restored (`restore`), and what is a title or a greeting (`protect`).
"""

import re
from functools import cache, lru_cache
from typing import Literal

import numpy as np

from textveil.detect import may_be_name
from textveil.detect.gazetteers import names
from textveil.session.reading import fold
from textveil.text import is_ordinary, is_public, lexicon, load_names, vocabulary

Language = Literal["english", "german", "other"]
"""Language of a sentence, as far as rules differ.

German gives ordinary words capitals; for English a list of ordinary words is known.
"""

_CAPITAL = re.compile(r"(?<![^\W_])(?:[A-Z]|[^\W\d_\x00-\x7f])(?:[^\W_]|['’ʼ](?=\w))*")
_LETTER = re.compile(r"[^\W\d_]")
_ALONE = "。！？\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Characters that end a sentence whatever follows them."""

_END = re.compile(rf"""[.!?…]+["'”’»)\]*_~`]*(?=\s|\Z)|[{_ALONE}]""")
_WORD = re.compile(r"\w+")


def began(text: str) -> int:
    """Finds where the last sentence begins; -1 if it began earlier."""
    starts = [match.end() for match in _END.finditer(text)]
    if starts and starts[-1] == len(text) and text[-1] not in _ALONE:  # no space follows it yet
        starts.pop()
    while starts and _is_abbreviation(text, starts[-1]):
        starts.pop()
    return starts[-1] if starts else -1


def ends(text: str) -> int:
    """Finds where the first sentence ends; -1 if that is not certain.

    A mark at the very end of the text is not certain, because more text may follow.
    """
    for match in _END.finditer(text):
        seen = match.end() < len(text) or match[0] in _ALONE
        if seen and not _is_abbreviation(text, match.end()):
            return match.start()
    return -1


@cache
def _abbreviations() -> re.Pattern[str]:
    """Returns the pattern of abbreviations: one letter, or a word cut short."""
    cut = "|".join(sorted(vocabulary.words("abbreviations_anywhere")))
    return re.compile(rf"(?:^|[^\w])(?:[^\W\d_]|{cut}|z\.\s?b|d\.\s?h|e\.g|i\.e)\Z", re.IGNORECASE)


def _is_abbreviation(text: str, end: int) -> bool:
    return text[end - 1] == "." and _abbreviations().search(text, 0, end - 1) is not None


def language(text: str) -> Language:
    """Guesses the language of a sentence by its function words."""
    words = _WORD.findall(text.lower())
    german, english = (
        sum(map(vocabulary.words("function_words", code).__contains__, words))
        for code in ("de", "en")
    )
    return "german" if german > english else "english" if english else "other"


def capitalised(text: str) -> list[tuple[int, str]]:
    """Lists capitalised words of a sentence with their offsets."""
    return [(match.start(), match[0]) for match in _CAPITAL.finditer(text) if match[0][0].isupper()]


def is_first(text: str, place: int) -> bool:
    """True if no letter comes before an offset in a sentence."""
    return _LETTER.search(text, 0, place) is None


@lru_cache(4096)
def is_name_word(word: str, language: Language, *, first: bool, beside: bool) -> bool:
    """Says whether a capitalised word may belong to a name.

    Titles, greetings and ordinary words of the language do not.

    Args:
        word: the word.
        language: language of its sentence.
        first: True if it is the first of its sentence, where ordinary words have capitals, too.
        beside: True if it follows a name directly, where in most languages no ordinary word has a
            capital.
    """
    bare = re.sub(r"['’ʼ].*", "", word).replace("ß", "ss")
    if any(is_public(form) or not may_be_name(form) for form in (word, bare)):
        return False
    marks = int(lexicon.marks([bare], np.array([0, 1]))[0])
    if beside and (language != "german" or marks & lexicon.NAME):
        return True
    return _may_stand_alone(bare, marks, language, first=first)


def _may_stand_alone(bare: str, marks: int, language: Language, *, first: bool) -> bool:
    """Says whether a capitalised word that follows no name may be one.

    See `is_name_word`.
    """
    on_names, ordinary = marks & lexicon.NAME, marks & lexicon.ORDINARY
    if is_ordinary(bare) and (first or not on_names):
        return False
    if language == "english" or (lexicon.is_of_famous(bare) and not (first and on_names)):
        return True
    return not ordinary and (bool(on_names) or not _is_compound(bare.lower()))


@lru_cache(4096)
def may_be_part(shown: str) -> bool:
    """Says whether a replaced name may be part of a person's name.

    It must be one word, and on no list of places or companies.
    """
    return len(shown.split()) == 1 and _load_kinds().get(fold(shown)) != "other"


@lru_cache(4096)
def may_be_given(word: str, shown: str) -> bool:
    """Says whether a capitalised word is the given name before a surname.

    Then the two may be somebody else, whatever else the word means: "Will Hernandez".
    """
    return (
        _load_kinds().get(fold(shown)) == "family"
        and fold(word) in _load_given_names()
        and may_be_name(word)
    )


@cache
def _load_kinds() -> dict[str, str]:
    """Maps folded replacement names to kinds; "other" for places and organizations alone."""
    types = ("LOCATION", "ORGANIZATION")
    kinds = {fold(word): "other" for type_ in types for word in load_names(type_).words}
    people = load_names("PERSON")
    return kinds | dict(zip(map(fold, people.words), people.kinds, strict=True))


@cache
def _load_given_names() -> frozenset[str]:
    unsure = frozenset(map(fold, names("latin", "unsure"))) - vocabulary.words("name_particles")
    return unsure.union(map(fold, names("latin", "given")))


def _is_compound(word: str) -> bool:
    """Says whether a word joins two ordinary words, as German does.

    The first may end with a linking s.
    """
    pairs = [
        (word[:at].removesuffix(s), word[at:]) for at in range(4, len(word) - 3) for s in ("", "s")
    ]
    words = [part for pair in pairs for part in pair]
    if not words:
        return False
    marks = lexicon.marks(words, np.arange(len(words) + 1)) & lexicon.ORDINARY
    both = marks[0::2] & marks[1::2]
    return bool(both.any())
