"""The lexicon: which words of texts are names of people, places, publicly known, or ordinary, by lists.

In: words of texts. Out: a mark for each word, which the bundled tagger reads beside the word's pieces and casing.
Not here: what the tagger makes of it (`textveil.models.entities`), and how the lists are made (`training/lexicon.py` of
the repository).

No list decides anything by itself: many people are called Paris, and many streets after somebody famous.
"""

import gzip
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from io import BytesIO
from zlib import crc32

import numpy as np

from textveil.randomness import Flags, Ints
from textveil.text.casing import folded
from textveil.text.tokens import tokenize

FOLDER = "data/lexicon"

NAME, PUBLIC, ORDINARY, PLACE = 1, 2, 4, 8
"""Marks of the lists; a word on several has their sum."""

MARKS = 16
"""Number of sums of marks."""

LONGEST = 6
"""Most words of an entry of the lists of what is public and of places, and most letters of a word that is looked for
where no spaces are."""

_UNSPACED = re.compile("([\u3005-\u3007\u3040-\u30ff\u3400-\u9fff]+)|[\uac00-\ud7a3]+")
"""Words of Chinese and Japanese (the group), and of Korean, which are written together with their endings."""


def hashed(words: Iterable[str]) -> Ints:
    """Folded words as the list of ordinary words holds them, int64: CRC-32 of their UTF-8."""
    return np.array([crc32(word.encode("utf-8", "surrogatepass")) for word in words], np.int64)


def marks(words: Sequence[str], documents: Ints) -> Ints:
    """The mark of each word, int64 [T], in time linear in their number.

    What is public, and places, are matched from left to right, the longest entry first, within a text.

    Args:
        words: the T words of all texts.
        documents: int64 [B+1]; text b has the words documents[b] to documents[b+1].
    """
    names, entries, longest = lists()
    distinct = list(set(words))
    spelled = [folded(word) for word in distinct]
    alone = ORDINARY * _on_ordinary(spelled) + NAME * np.array(
        [word in names for word in spelled], bool
    )
    number = {word: i for i, word in enumerate(distinct)}
    which = [number[word] for word in words]
    found: Ints = alone[which].astype(np.int64)
    told = [spelled[i] for i in which]
    found |= ORDINARY * _made_of_ordinary(told, documents)
    for start, end in zip(documents[:-1].tolist(), documents[1:].tolist(), strict=True):
        at = start
        while at < end:
            size, mark = _entry(told, at, end, entries, longest)
            found[at : at + size] |= mark
            at += size or 1
    return found


def all_ordinary(value: str) -> bool:
    """Whether a value has words, and all of them are on the list of ordinary words and none on that of names."""
    parts = tokenize([value])
    lettered = np.array([any(letter.isalpha() for letter in word) for word in parts.words], bool)
    own = marks(parts.words, parts.documents)[lettered]
    return bool(len(own) and (own & (ORDINARY | NAME) == ORDINARY).all())


def is_of_famous(word: str) -> bool:
    """Whether a word is the given or family name of somebody on the list of what is public."""
    return folded(word) in _of_famous()


def _on_ordinary(words: Sequence[str]) -> Flags:
    """Whether each folded word is on the list of ordinary words; of others, one in 12,000 is taken for one."""
    known, own = _ordinary(), hashed(words)
    found: Flags = known[np.searchsorted(known, own).clip(max=len(known) - 1)] == own
    return found


def _entry(
    words: Sequence[str], at: int, end: int, entries: Mapping[str, int], longest: Mapping[str, int]
) -> tuple[int, int]:
    """How many words from a place on are the longest entry there, and its mark; 0 and 0 for none."""
    for size in range(min(longest.get(words[at], 1), end - at), 0, -1):
        if mark := entries.get(" ".join(words[at : at + size]), 0):
            return size, mark
    return 0, 0


def _unspaced(words: Sequence[str], begins: set[int]) -> tuple[list[str], list[int]]:
    """The letters of words where no spaces are, with one before each run of them, and the word of each letter."""
    letters: list[str] = []
    owners: list[int] = []
    last = -1
    for i, word in enumerate(words):
        if shape := _UNSPACED.fullmatch(word):
            if shape[1] is None or last != i - 1 or i in begins:
                letters.append(" ")
                owners.append(i)
            letters.extend(word)
            owners.extend([i] * len(word))
            last = -1 if shape[1] is None else i
    return letters, owners


def _made_of_ordinary(words: Sequence[str], documents: Ints) -> Flags:
    """Which folded words, where no spaces are, are covered by ordinary words, matched across them, the longest first.

    A Korean word is covered together with its endings, alone; Chinese and Japanese words with those beside them.
    """
    if all(map(str.isascii, words)):
        return np.zeros(len(words), bool)
    letters, owners = _unspaced(words, {*documents.tolist()})
    text, covered = "".join(letters), np.zeros(len(words), bool)
    if not text:
        return covered
    pieces = [text[i : i + n] for n in range(1, LONGEST + 1) for i in range(len(text))]
    known = _on_ordinary(pieces).reshape(LONGEST, len(text)) * np.arange(1, LONGEST + 1)[:, None]
    longest = known.max(axis=0).tolist()
    bare = np.array(letters) != " "
    at = 0
    while at < len(text):
        bare[at : at + longest[at]] = False
        at += longest[at] or 1
    covered[owners] = True
    covered[np.array(owners)[bare]] = False
    return covered


@cache
def _ordinary() -> Ints:
    with _open("ordinary.npy") as file:
        known: Ints = np.load(file).astype(np.int64)
    return known


@cache
def lists() -> tuple[frozenset[str], dict[str, int], dict[str, int]]:
    """The names; entries of places and what is public with their marks; the longest of several words by their first."""
    entries = dict.fromkeys(_read("places"), PLACE)
    for entry in _read("public"):
        entries[entry] = entries.get(entry, 0) | PUBLIC
    longest: dict[str, int] = {}
    for entry in entries:
        if " " not in entry:  # most are one word
            continue
        first, _, rest = entry.partition(" ")
        size = rest.count(" ") + 2
        if size > longest.get(first, 0):
            longest[first] = size
    return frozenset(_read("names")), entries, longest


@cache
def _of_famous() -> frozenset[str]:
    """The words of the public entries of two words of which the other one is on the list of names."""
    names, entries, _ = lists()
    pairs = [
        entry.split() for entry, mark in entries.items() if mark & PUBLIC and entry.count(" ") == 1
    ]
    return frozenset(word for pair in pairs for word, other in (pair, pair[::-1]) if other in names)


def _open(name: str) -> BytesIO:
    return BytesIO(resources.files("textveil").joinpath(f"{FOLDER}/{name}").read_bytes())


def _read(name: str) -> list[str]:
    """The lines of a list, without the remarks at its head."""
    with _open(f"{name}.txt.gz") as file:
        lines = gzip.decompress(file.read()).decode().splitlines()
    return lines[next(i for i, line in enumerate(lines) if not line.startswith("#")) :]
