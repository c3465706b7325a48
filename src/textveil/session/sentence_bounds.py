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
from textveil.detect.gazetteers import list_names
from textveil.session.escapes import fold
from textveil.text import is_ordinary, is_public, lexicon, load_names, vocabulary

Language = Literal["english", "german", "other"]
"""Language of a sentence, as far as rules differ.

German gives ordinary words capitals; for English a list of ordinary words is known.
"""

_CAPITALIZED_WORD = re.compile(r"(?<![^\W_])(?:[A-Z]|[^\W\d_\x00-\x7f])(?:[^\W_]|['’ʼ](?=\w))*")
_LETTER = re.compile(r"[^\W\d_]")
_SENTENCE_ENDS = "。！？\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Characters that end a sentence whatever follows them."""

_END_MARK = re.compile(rf"""[.!?…]+["'”’»)\]*_~`]*(?=\s|\Z)|[{_SENTENCE_ENDS}]""")
_WORD = re.compile(r"\w+")


def find_start(text: str) -> int:
    """Finds where the last sentence begins; -1 if it began earlier."""
    starts = [match.end() for match in _END_MARK.finditer(text)]
    if (
        starts and starts[-1] == len(text) and text[-1] not in _SENTENCE_ENDS
    ):  # no space follows it yet
        starts.pop()
    while starts and _is_abbreviation(text, starts[-1]):
        starts.pop()
    return starts[-1] if starts else -1


def find_end(text: str) -> int:
    """Finds where the first sentence ends; -1 if that is not certain.

    A mark at the very end of the text is not certain, because more text may follow.
    """
    for match in _END_MARK.finditer(text):
        is_certain = match.end() < len(text) or match[0] in _SENTENCE_ENDS
        if is_certain and not _is_abbreviation(text, match.end()):
            return match.start()
    return -1


@cache
def _build_abbreviations() -> re.Pattern[str]:
    """Returns the pattern of abbreviations: one letter, or a word cut short."""
    words = "|".join(sorted(vocabulary.get_words("abbreviations_anywhere")))
    return re.compile(
        rf"(?:^|[^\w])(?:[^\W\d_]|{words}|z\.\s?b|d\.\s?h|e\.g|i\.e)\Z", re.IGNORECASE
    )


def _is_abbreviation(text: str, end: int) -> bool:
    return text[end - 1] == "." and _build_abbreviations().search(text, 0, end - 1) is not None


def guess_language(text: str) -> Language:
    """Guesses the language of a sentence by its function words."""
    words = _WORD.findall(text.lower())
    german, english = (
        sum(map(vocabulary.get_words("function_words", code).__contains__, words))
        for code in ("de", "en")
    )
    return "german" if german > english else "english" if english else "other"


def list_capitalized(text: str) -> list[tuple[int, str]]:
    """Lists capitalised words of a sentence with their offsets."""
    return [
        (match.start(), match[0])
        for match in _CAPITALIZED_WORD.finditer(text)
        if match[0][0].isupper()
    ]


def is_first(text: str, place: int) -> bool:
    """True if no letter comes before an offset in a sentence."""
    return _LETTER.search(text, 0, place) is None


@lru_cache(4096)
def is_name_word(word: str, language: Language, *, is_first_word: bool, is_beside: bool) -> bool:
    """Says whether a capitalised word may belong to a name.

    Titles, greetings and ordinary words of the language do not.

    Args:
        word: the word.
        language: language of its sentence.
        is_first_word: True if it is the first of its sentence, where ordinary words have capitals,
            too.
        is_beside: True if it follows a name directly, where in most languages no ordinary word has
            a capital.
    """
    bare = re.sub(r"['’ʼ].*", "", word).replace("ß", "ss")
    if any(is_public(form) or not may_be_name(form) for form in (word, bare)):
        return False
    marks = int(lexicon.mark_words([bare], np.array([0, 1]))[0])
    if is_beside and (language != "german" or marks & lexicon.NAME_MARK):
        return True
    return _can_stand_alone(bare, marks, language, is_first_word=is_first_word)


def _can_stand_alone(bare: str, marks: int, language: Language, *, is_first_word: bool) -> bool:
    """Says whether a capitalised word that follows no name may be one.

    See `is_name_word`.
    """
    name_mark, ordinary_mark = marks & lexicon.NAME_MARK, marks & lexicon.ORDINARY_MARK
    if is_ordinary(bare) and (is_first_word or not name_mark):
        return False
    if language == "english" or (lexicon.is_of_famous(bare) and not (is_first_word and name_mark)):
        return True
    return not ordinary_mark and (bool(name_mark) or not _is_compound(bare.lower()))


@lru_cache(4096)
def can_be_part(name: str) -> bool:
    """Says whether a replaced name may be part of a person's name.

    It must be one word, and on no list of places or companies.
    """
    return len(name.split()) == 1 and _load_kinds().get(fold(name)) != "other"


@lru_cache(4096)
def can_be_given_name(word: str, surname: str) -> bool:
    """Says whether a capitalised word is the given name before a surname.

    Then the two may be somebody else, whatever else the word means: "Will Hernandez".
    """
    return (
        _load_kinds().get(fold(surname)) == "family"
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
    unsure = frozenset(map(fold, list_names("latin", "unsure"))) - vocabulary.get_words(
        "name_particles"
    )
    return unsure.union(map(fold, list_names("latin", "given")))


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
    marks = lexicon.mark_words(words, np.arange(len(words) + 1)) & lexicon.ORDINARY_MARK
    both = marks[0::2] & marks[1::2]
    return bool(both.any())
