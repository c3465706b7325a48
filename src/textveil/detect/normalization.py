"""Normalization: compares values however they are written, and splits names.

In: values and texts. Out: their atoms (runs of letters or digits, folded), and the roles of a
name's parts.
Not here: further occurrences of a value (`occurrences`), and the placeholders of parts
(`textveil.session`).
"""

import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Literal, NamedTuple

import regex

from textveil.detect.spans import LISTED_TYPE, NAMES
from textveil.text import LazyPattern, is_public, vocabulary

NameRole = Literal["", "GIVEN", "FAMILY", "PART"]
"""The role of a part in a name; "" is the whole name."""

LOOSE_TYPES = frozenset(
    (
        *NAMES,
        LISTED_TYPE,
        "ADDRESS",
        "PHONE",
        "CARD",
        "IBAN",
        "ACCOUNT",
        "NATIONAL_ID",
        "MEDICAL_RECORD",
        "PLATE",
    )
)
"""Types whose values are compared by letters and digits alone.

In other types, an e-mail address for example, punctuation counts.
"""

MAX_PARTED_ATOMS = 8
"""The most atoms of a name whose runs are all parts; a longer name has only its single words."""

MIN_PART_LETTERS = 2
"""Letters of the shortest part that is searched for."""

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー\uFF70\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_ATOM = LazyPattern(
    rf"(?V1)[{_UNSPACED}][{_UNSPACED}\p{{M}}]*+"
    rf"|[\p{{L}}--[{_UNSPACED}]](?:[[\p{{L}}\p{{M}}]--[{_UNSPACED}]]|\p{{Cf}}++(?=\p{{L}}))*+"
    r"|\p{N}++"
)
_IS_UNSPACED = LazyPattern(rf"(?V1)[{_UNSPACED}]")
_SYLLABIC = LazyPattern(r"(?V1)[\p{Han}\p{Hangul}]{3,4}")

# Accents and vowel points that may be left out, and invisible characters; other marks belong to
# their letters.
_DROPPED = LazyPattern(
    r"(?V1)[\u0300-\u036F\u0483-\u0487\u0591-\u05C7\u0610-\u061A\u064B-\u065F\u0670\u0640\p{Cf}\uFE00-\uFE0F]"
)
# Letters that Unicode does not decompose into a base letter and a mark.
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d"}
)


class Atom(NamedTuple):
    """A run of letters, or of digits, in a text. Secret.

    Args:
        start: its first character.
        end: one past its last.
        text: its folded form, by which it is compared.
        spaced: whether its script puts spaces between words, so that it is compared whole.
    """

    start: int
    end: int
    text: str
    spaced: bool

    def __repr__(self) -> str:
        return f"Atom({self.start}, {self.end})"


MAX_CACHED = 500
"""Most characters of a word or value that a cache keeps, so that its memory is bounded."""


@lru_cache(1 << 16)
def fold_word(word: str) -> str:
    """Removes case, accents, width and invisible characters from a word."""
    if word.isascii():
        return word.lower()
    # Folding case can undo the normal form, so it is restored behind it.
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", word).casefold())
    return unicodedata.normalize("NFC", _DROPPED.sub("", text)).translate(_LETTERS)


def split_atoms(text: str) -> list[Atom]:
    """Finds the runs of letters and of digits in a text."""
    return [
        Atom(
            match.start(),
            match.end(),
            fold_word(word) if len(word) <= MAX_CACHED else fold_word.__wrapped__(word),
            word.isascii() or _IS_UNSPACED.match(word) is None,
        )
        for match in _ATOM.finditer(text)
        for word in [match[0]]
    ]


def normalize_value(type_: str, value: str) -> str:
    """Returns the normalized form by which values of a type compare.

    Names, addresses and numbers are compared without case, accents, hyphens, spaces and invisible
    characters; other values without case, width and invisible characters.
    """
    return (_normalize_cached if len(value) <= MAX_CACHED else _normalize)(type_, value)


def _normalize(type_: str, value: str) -> str:
    joined = "".join([atom.text for atom in split_atoms(value)]) if type_ in LOOSE_TYPES else ""
    if joined:
        return joined
    normalized = unicodedata.normalize("NFKC", value).casefold()
    return " ".join(regex.sub(r"\p{Cf}+", "", normalized).split()) or value


_normalize_cached = lru_cache(1 << 15)(_normalize)


def find_core_atoms(type_: str, value: str) -> list[Atom]:
    """Returns the atoms of a value, without a person's titles and degrees."""
    units = split_atoms(value)
    if type_ == "PERSON":
        while len(units) > 1 and units[0].text in vocabulary.get_words("titles_only"):
            del units[0]
        while len(units) > 1 and units[-1].text in vocabulary.get_words("degrees"):
            del units[-1]
    return units


def may_be_name(word: str) -> bool:
    """True if a word beside a name may belong to it.

    Titles, greetings, months and weekdays do not.
    """
    return _list_no_names().isdisjoint(atom.text for atom in split_atoms(word))


@cache
def list_calendar_words() -> frozenset[str]:
    """Returns English months and weekdays, which have capitals without being names."""
    return vocabulary.get_words("weekdays", "en") | {
        vocabulary.get_words_by_language(f"months.{month}")["en"][0] for month in range(1, 13)
    }


@cache
def _list_no_names() -> frozenset[str]:
    return (
        vocabulary.get_words("titles_only")
        | vocabulary.get_words("greetings")
        | list_calendar_words()
    )


def find_name_parts(type_: str, value: str) -> Iterator[tuple[str, NameRole]]:
    """Finds the parts of a name, normalized, with their roles.

    The parts are the runs of its words, and its first and last word together.
    """
    if type_ not in NAMES:
        return
    units, person = find_core_atoms(type_, value), type_ == "PERSON"
    count = len(units)
    if count < 2:
        yield from _split_syllabic(units) if person else ()
        return
    turned = person and "," in value[units[0].end : units[1].start]
    for start, end in _list_runs(count):
        joined = "".join([atom.text for atom in units[start:end]])
        first, last = start == 0, end == count
        yield joined, _get_role(first, last, turned=turned, person=person)
    if person:
        ends = [units[0].text, units[-1].text]
        yield "".join(ends[::-1] if turned else ends), ""


def _list_runs(count: int) -> Iterator[tuple[int, int]]:
    """Lists the runs of `count` atoms as (first, past the last).

    A name of more than `MAX_PARTED_ATOMS` atoms has only runs of one.
    """
    # The number of runs grows with the square of the number of atoms.
    longest = count if count <= MAX_PARTED_ATOMS else 1
    for start in range(count):
        for end in range(start + 1, min(count, start + longest) + 1):
            yield start, end


def _split_syllabic(units: Sequence[Atom]) -> Iterator[tuple[str, NameRole]]:
    if units and _SYLLABIC.fullmatch(units[0].text):
        family, given_name = _split_syllables(units[0].text)
        yield given_name, "GIVEN"
        if len(family) > 1:
            yield family, "FAMILY"


def _get_role(first: bool, last: bool, *, turned: bool, person: bool) -> NameRole:
    """Returns the role of a run of words in a name.

    It follows from whether the run begins and ends the name. A turned name has the family name
    first.
    """
    if first and last:
        return ""
    if not person or not (first or last):
        return "PART"
    return "GIVEN" if first != turned else "FAMILY"


def find_identifying_words(type_: str, value: str) -> Iterator[Sequence[Atom]]:
    """Finds the identifying words of a name, each as its atoms.

    O'Brien is one word of two atoms; Anne-Marie is found as a whole and as both parts.
    """
    units, start = find_core_atoms(type_, value), 0
    for end in range(1, len(units) + 1):
        between = value[units[end - 1].end : units[end].start] if end < len(units) else " "
        if not any(map(str.isspace, between)):
            continue
        word, start = units[start:end], end
        hyphened = len(word) > 1 and not set("-‐‑–").isdisjoint(value[word[0].end : word[-1].start])
        for part in [word, *([[atom] for atom in word] if hyphened else [])]:
            if _is_identifying(type_, "".join([atom.text for atom in part])):
                yield part


def find_syllable_parts(type_: str, value: str) -> Iterator[str]:
    """Finds the identifying parts of a Chinese, Japanese or Korean name.

    These are its parts of two characters or more.
    """
    units = find_core_atoms(type_, value)
    if len(units) == 1 and type_ == "PERSON" and _SYLLABIC.fullmatch(units[0].text):
        yield from (part for part in _split_syllables(units[0].text) if len(part) > 1)


def _split_syllables(name: str) -> tuple[str, str]:
    """Splits a name into family name and two-character given name."""
    return name[:-2], name[-2:]


def _is_identifying(type_: str, word: str) -> bool:
    if (
        len(word) < MIN_PART_LETTERS
        or word in vocabulary.get_words("titles_only")
        or word in vocabulary.get_words("name_particles")
    ):
        return False
    return type_ == "PERSON" or not is_public(word)
