"""Spellings: what counts as the same value however it is written, and the parts of a name.

In: values and texts. Out: their atoms (runs of letters or digits, folded), and the roles of a name's parts.
Not here: where a value stands again in a text (`spread`), and the placeholders of parts (`textveil.session`).
"""

import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import regex

from textveil.detect.spans import LISTED, NAMES
from textveil.text import is_public

Part = Literal["", "GIVEN", "FAMILY", "PART"]
"""What a part of a name is; "" is the whole name."""

LOOSE = frozenset(
    (
        *NAMES,
        LISTED,
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
"""Types whose values are compared by letters and digits alone; in others, an address say, punctuation counts."""

TITLES = frozenset(
    regex.findall(
        r"\w+",
        """
        mr mrs ms miss mx dr prof professor sir madam herr frau fraulein monsieur madame mademoiselle mme mlle senor
        senora senorita sr sra srta signor signora signorina sig dott ing dipl mag doc mgr meneer mevrouw dhr
        mevr pani doktor
        """,
    )
)
"""Words before a name that are no part of it, folded."""

CALENDAR = frozenset(
    regex.findall(
        r"\w+",
        """
        january february march april may june july august september october november december monday tuesday
        wednesday thursday friday saturday sunday
        """,
    )
)
"""Words that are written with a capital without being names."""

GREETINGS = frozenset(
    regex.findall(
        r"\w+",
        """
        dear hi hello hey hallo liebe lieber cher chere querida querido cara caro ciao hola ola thanks
        beste geachte szanowna szanowny droga drogi prezada prezado
        """,
    )
)
"""Words that a name follows, folded."""

SUFFIXES = frozenset(
    regex.findall(
        r"\w+",
        """
        jr sr ii iii iv phd md esq msc mba
        """,
    )
)
"""Words after a name that are no part of it, folded."""

PARTICLES = frozenset(
    regex.findall(
        r"\w+",
        """
        de da do dos das di del della dello der den dem des van von vom zu zum zur la le les lo du el al bin ibn ben
        abu bint ter ten op af av st san the and und et जी
        """,
    )
)
"""Words inside names that tell nothing alone."""

MOST = 8
"""How many atoms of a name may form parts; a longer one has only its single words."""

SHORTEST = 2
"""Letters of the shortest part that is looked for."""

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー\uFF70\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_ATOM = regex.compile(
    rf"(?V1)[{_UNSPACED}][{_UNSPACED}\p{{M}}]*+"
    rf"|[\p{{L}}--[{_UNSPACED}]](?:[[\p{{L}}\p{{M}}]--[{_UNSPACED}]]|\p{{Cf}}++(?=\p{{L}}))*+"
    r"|\p{N}++"
)
_IS_UNSPACED = regex.compile(rf"(?V1)[{_UNSPACED}]")
_SYLLABIC = regex.compile(r"(?V1)[\p{Han}\p{Hangul}]{3,4}")

# Accents and vowel points that may be left out, and characters that are not seen; other marks are letters' own.
_DROPPED = regex.compile(
    r"(?V1)[\u0300-\u036F\u0483-\u0487\u0591-\u05C7\u0610-\u061A\u064B-\u065F\u0670\u0640\p{Cf}\uFE00-\uFE0F]"
)
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d"}
)


class Atom(NamedTuple):
    """A run of letters, or of digits, in a text. Secret.

    Args:
        start: its first character.
        end: one past its last.
        text: how it is compared.
        spaced: whether words of its script stand apart, so that it is compared whole.
    """

    start: int
    end: int
    text: str
    spaced: bool

    def __repr__(self) -> str:
        return f"Atom({self.start}, {self.end})"


@lru_cache(1 << 16)
def folded(word: str) -> str:
    """A word without case, accents, width and characters that are not seen."""
    if word.isascii():
        return word.lower()
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", word).casefold())
    return unicodedata.normalize("NFC", _DROPPED.sub("", text)).translate(_LETTERS)


def atoms(text: str) -> list[Atom]:
    """The runs of letters and of digits in a text, in order."""
    return [
        Atom(
            found.start(),
            found.end(),
            folded(word),
            word.isascii() or _IS_UNSPACED.match(word) is None,
        )
        for found in _ATOM.finditer(text)
        for word in [found[0]]
    ]


@lru_cache(1 << 15)
def alike(type_: str, value: str) -> str:
    """A value as it is compared: two of a type are the same if this is equal.

    Names, addresses and numbers are compared without case, accents, hyphens, spaces and characters that are not seen;
    other values without case, width and the latter.
    """
    joined = "".join([atom.text for atom in atoms(value)]) if type_ in LOOSE else ""
    if joined:
        return joined
    seen = unicodedata.normalize("NFKC", value).casefold()
    return " ".join(regex.sub(r"\p{Cf}+", "", seen).split()) or value


def core(type_: str, value: str) -> list[Atom]:
    """The atoms of a value; of a person's name those without titles before it and degrees after it."""
    found = atoms(value)
    if type_ == "PERSON":
        while len(found) > 1 and found[0].text in TITLES:
            del found[0]
        while len(found) > 1 and found[-1].text in SUFFIXES:
            del found[-1]
    return found


def may_be_name(word: str) -> bool:
    """Whether a word beside a name may be another part of it, and is no title, greeting, month or weekday."""
    return not any(
        atom.text in TITLES or atom.text in GREETINGS or atom.text in CALENDAR
        for atom in atoms(word)
    )


def parts(type_: str, value: str) -> Iterator[tuple[str, Part]]:
    """What may stand for a name, as it is compared, and which part of it that is: runs of its words, first and last."""
    if type_ not in NAMES:
        return
    found = core(type_, value)
    count = len(found)
    if count == 1 and type_ == "PERSON" and _SYLLABIC.fullmatch(found[0].text):
        family, given = _syllables(found[0].text)
        yield given, "GIVEN"
        if len(family) > 1:
            yield family, "FAMILY"
    if count < 2:
        return
    turned = type_ == "PERSON" and "," in value[found[0].end : found[1].start]
    longest = count if count <= MOST else 1
    for start in range(count):
        for end in range(start + 1, min(count, start + longest) + 1):
            first, last = start == 0, end == count
            joined = "".join([atom.text for atom in found[start:end]])
            if first and last:
                yield joined, ""
            elif type_ != "PERSON" or not (first or last):
                yield joined, "PART"
            else:
                yield joined, "GIVEN" if first != turned else "FAMILY"
    if type_ == "PERSON":
        yield (found[-1].text + found[0].text if turned else found[0].text + found[-1].text), ""


def words(type_: str, value: str) -> Iterator[Sequence[Atom]]:
    """The words of a name that tell of it, each as its atoms: O'Brien is one of two; Anne-Marie, and both its parts."""
    found = core(type_, value)
    start = 0
    for end in range(1, len(found) + 1):
        if end < len(found) and not any(
            map(str.isspace, value[found[end - 1].end : found[end].start])
        ):
            continue
        word = found[start:end]
        hyphened = len(word) > 1 and any(
            mark in value[word[0].end : word[-1].start] for mark in "-‐‑–"
        )
        for each in [word, *([[atom] for atom in word] if hyphened else [])]:
            if _tells(type_, "".join([atom.text for atom in each])):
                yield each
        start = end


def syllables(type_: str, value: str) -> Iterator[str]:
    """The parts of a Chinese, Japanese or Korean name that tell of it: those of two characters."""
    found = core(type_, value)
    if len(found) == 1 and type_ == "PERSON" and _SYLLABIC.fullmatch(found[0].text):
        yield from (part for part in _syllables(found[0].text) if len(part) > 1)


def _syllables(name: str) -> tuple[str, str]:
    """The family and the given name; the given name has two characters."""
    return name[:-2], name[-2:]


def _tells(type_: str, word: str) -> bool:
    if len(word) < SHORTEST or word in PARTICLES or word in TITLES:
        return False
    return type_ == "PERSON" or not is_public(word)
