"""The lexicon: lists of names, places, publicly known and ordinary words.

In: words of texts. Out: a mark for each word, which the bundled tagger reads beside the word's
pieces and casing.
Not here: how the tagger uses it (`textveil.models.entities`), and how the lists are made
(`training/lexicon.py` of the repository).

No list decides anything by itself: many people are called Paris, and many streets after somebody
famous.
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
from textveil.text.casing import fold_word
from textveil.text.tokens import tokenize

FOLDER = "data/lexicon"

NAME_MARK, PUBLIC_MARK, ORDINARY_MARK, PLACE_MARK = 1, 2, 4, 8
"""Marks of the lists; a word on two has their sum."""

MARK_COUNT = 16
"""Number of sums of marks."""

MAX_ENTRY_WORDS = 6
"""Most words of a public entry or place, and most letters.

The letters are those of a word that is searched where no spaces are.
"""

_UNSPACED = re.compile("([\u3005-\u3007\u3040-\u30ff\u3400-\u9fff]+)|[\uac00-\ud7a3]+")
"""Words of Chinese and Japanese (the group), and of Korean.

Korean words are written together with their endings.
"""


def hash_words(words: Iterable[str]) -> Ints:
    """Hashes folded words as the list of ordinary words does, int64.

    CRC-32 of their UTF-8.
    """
    return np.array([crc32(word.encode("utf-8", "surrogatepass")) for word in words], np.int64)


def mark_words(words: Sequence[str], documents: Ints) -> Ints:
    """Returns the mark of each word, int64 [T].

    In time linear in their number. Public entries and places are matched from left to right, the
    longest entry first, within a text.

    Args:
        words: the T words of all texts.
        documents: int64 [B+1]; text b has the words documents[b] to documents[b+1].
    """
    names, entries, longest = read_lists()
    distinct = list(set(words))
    spelled = [fold_word(word) for word in distinct]
    alone = ORDINARY_MARK * _is_listed_ordinary(spelled) + NAME_MARK * np.array(
        [word in names for word in spelled], bool
    )
    number = {word: i for i, word in enumerate(distinct)}
    which = [number[word] for word in words]
    word_marks: Ints = alone[which].astype(np.int64)
    folded_words = [spelled[i] for i in which]
    word_marks |= ORDINARY_MARK * _find_ordinary_cover(folded_words, documents)
    for start, end in zip(documents[:-1].tolist(), documents[1:].tolist(), strict=True):
        at = start
        while at < end:
            size, mark = _match_entry(folded_words, at, end, entries, longest)
            word_marks[at : at + size] |= mark
            at += size or 1
    return word_marks


def is_all_ordinary(value: str) -> bool:
    """Says whether a value consists of ordinary words and no names.

    It must have words, all on the list of ordinary words and none on that of names.
    """
    parts = tokenize([value])
    lettered = np.array([any(letter.isalpha() for letter in word) for word in parts.words], bool)
    word_marks = mark_words(parts.words, parts.documents)[lettered]
    return bool(
        len(word_marks) and (word_marks & (ORDINARY_MARK | NAME_MARK) == ORDINARY_MARK).all()
    )


def is_of_famous(word: str) -> bool:
    """Says whether a word is a famous person's given or family name.

    That is, of somebody on the public list.
    """
    return fold_word(word) in _find_famous()


def _is_listed_ordinary(words: Sequence[str]) -> Flags:
    """Says for each folded word whether it is listed as ordinary.

    One in 12,000 other words counts as ordinary by a hash collision.
    """
    hashes, queries = _read_ordinary(), hash_words(words)
    # Clipped, because a hash above all listed ones has an index past the end.
    listed: Flags = hashes[np.searchsorted(hashes, queries).clip(max=len(hashes) - 1)] == queries
    return listed


def _match_entry(
    words: Sequence[str], at: int, end: int, entries: Mapping[str, int], longest: Mapping[str, int]
) -> tuple[int, int]:
    """Finds the longest entry at a place, and its mark.

    Returns its number of words; 0 and 0 for none.
    """
    for size in range(min(longest.get(words[at], 1), end - at), 0, -1):
        if mark := entries.get(" ".join(words[at : at + size]), 0):
            return size, mark
    return 0, 0


def _collect_letters(words: Sequence[str], begins: set[int]) -> tuple[list[str], list[int]]:
    """Collects the letters of words without spaces between them.

    With a space before each run of them. Also returns the word of each letter.
    """
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
            # A Korean word is covered alone: the next one begins a run of its own.
            last = -1 if shape[1] is None else i
    return letters, owners


def _find_ordinary_cover(words: Sequence[str], documents: Ints) -> Flags:
    """Says which folded words without spaces are covered by ordinary words.

    Ordinary words are matched across them, the longest first. A Korean word is covered together
    with its endings, alone; Chinese and Japanese words with those beside them.
    """
    if all(map(str.isascii, words)):
        return np.zeros(len(words), bool)
    letters, owners = _collect_letters(words, {*documents.tolist()})
    text, covered = "".join(letters), np.zeros(len(words), bool)
    if not text:
        return covered
    pieces = [text[i : i + n] for n in range(1, MAX_ENTRY_WORDS + 1) for i in range(len(text))]
    lengths = (
        _is_listed_ordinary(pieces).reshape(MAX_ENTRY_WORDS, len(text))
        * np.arange(1, MAX_ENTRY_WORDS + 1)[:, None]
    )
    longest = lengths.max(axis=0).tolist()
    bare = np.array(letters) != " "
    at = 0
    while at < len(text):
        bare[at : at + longest[at]] = False
        at += longest[at] or 1
    # One bare letter is enough to leave its whole word uncovered.
    covered[owners] = True
    covered[np.array(owners)[bare]] = False
    return covered


@cache
def _read_ordinary() -> Ints:
    with _open("ordinary.npy") as file:
        hashes: Ints = np.load(file).astype(np.int64)
    return hashes


@cache
def read_lists() -> tuple[frozenset[str], dict[str, int], dict[str, int]]:
    """Reads the names, the entries with marks, and the longest entries.

    Entries are places and publicly known; the longest of the entries of more than one word are by
    their first word.
    """
    entries = dict.fromkeys(_read("places"), PLACE_MARK)
    for entry in _read("public"):
        entries[entry] = entries.get(entry, 0) | PUBLIC_MARK
    longest: dict[str, int] = {}
    for entry in entries:
        if " " not in entry:  # most are one word
            continue
        first, _, remainder = entry.partition(" ")
        size = remainder.count(" ") + 2
        if size > longest.get(first, 0):
            longest[first] = size
    return frozenset(_read("names")), entries, longest


@cache
def _find_famous() -> frozenset[str]:
    """Returns the words of public two-word entries that contain a name.

    The other word must be on the list of names.
    """
    names, entries, _ = read_lists()
    pairs = [
        entry.split()
        for entry, mark in entries.items()
        if mark & PUBLIC_MARK and entry.count(" ") == 1
    ]
    return frozenset(word for pair in pairs for word, other in (pair, pair[::-1]) if other in names)


def _open(name: str) -> BytesIO:
    return BytesIO(resources.files("textveil").joinpath(f"{FOLDER}/{name}").read_bytes())


def _read(name: str) -> list[str]:
    """Reads the lines of a list, without the remarks at its head."""
    with _open(f"{name}.txt.gz") as file:
        lines = gzip.decompress(file.read()).decode().splitlines()
    return lines[next(i for i, line in enumerate(lines) if not line.startswith("#")) :]
