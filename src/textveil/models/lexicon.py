"""The lexicon: which words of texts are names of people, places, publicly known, or ordinary, by lists.

In: words of texts. Out: a mark for each word, which the bundled tagger reads beside the word's pieces and casing.
Not here: what the tagger makes of it (`entities`), and how the lists are made (`training/lexicon.py` of the
repository).

No list decides anything by itself: many people are called Paris, and many streets after somebody famous.
"""

import gzip
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from io import BytesIO
from zlib import crc32

import numpy as np

from textveil.randomness import Flags, Ints

FOLDER = "data/lexicon"

NAME, PUBLIC, ORDINARY, PLACE = 1, 2, 4, 8
"""Marks of the lists; a word on several has their sum."""

MARKS = 16
"""Number of sums of marks."""

LONGEST = 6
"""Most words of an entry of the lists of what is public and of places."""


def folded(word: str) -> str:
    """A word as the lists write it: in small letters, without accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word.lower())
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


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
    alone = ORDINARY * _is_ordinary(spelled) + NAME * np.array([word in names for word in spelled], bool)
    number = {word: i for i, word in enumerate(distinct)}
    which = [number[word] for word in words]
    found: Ints = alone[which].astype(np.int64)
    sizes = [longest.get(word, 0) for word in spelled]
    for start, end in zip(documents[:-1].tolist(), documents[1:].tolist(), strict=True):
        at = start
        while at < end:
            size = min(sizes[which[at]], end - at)
            while size and (mark := entries.get(" ".join(spelled[i] for i in which[at : at + size]), 0)) == 0:
                size -= 1
            if size:
                found[at : at + size] |= mark
            at += size or 1
    return found


def _is_ordinary(words: Sequence[str]) -> Flags:
    """Whether each folded word is on the list of ordinary words; of others, one in 15,000 is taken for one."""
    known, own = _ordinary(), hashed(words)
    found: Flags = known[np.searchsorted(known, own).clip(max=len(known) - 1)] == own
    return found


@cache
def _ordinary() -> Ints:
    with _open("ordinary.npy") as file:
        known: Ints = np.load(file).astype(np.int64)
    return known


@cache
def lists() -> tuple[frozenset[str], dict[str, int], dict[str, int]]:
    """The names; entries of places and what is public with their marks; the longest entry that each word begins."""
    entries = dict.fromkeys(_read("places"), PLACE)
    for entry in _read("public"):
        entries[entry] = entries.get(entry, 0) | PUBLIC
    longest: dict[str, int] = {}
    for entry in entries:
        first, size = entry.partition(" ")[0], entry.count(" ") + 1
        if size > longest.get(first, 0):
            longest[first] = size
    return frozenset(_read("names")), entries, longest


def _open(name: str) -> BytesIO:
    return BytesIO(resources.files("textveil").joinpath(f"{FOLDER}/{name}").read_bytes())


def _read(name: str) -> list[str]:
    with _open(f"{name}.txt.gz") as file:
        lines = gzip.decompress(file.read()).decode().splitlines()
    return [line for line in lines if not line.startswith("#")]
