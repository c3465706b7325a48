"""The lexicon: which words of texts are on a list of given and family names, and which name what is publicly known.

In: words of texts. Out: a mark for each word, which the bundled tagger reads beside the word's pieces and casing.
Not here: what the tagger makes of it (`entities`), and how the lists are made (`training/lexicon.py` of the
repository).

Neither list decides anything by itself: many people are called Paris, and many streets after somebody famous.
"""

import gzip
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib import resources

import numpy as np

from textveil.randomness import Ints

FOLDER = "data/lexicon"

MARKS = 4
"""Number of marks: 0 on no list, 1 on the list of names, 2 part of something public, 3 both."""

NAME, PUBLIC = 1, 2

LONGEST = 6
"""Most words of an entry of the public list."""


def folded(word: str) -> str:
    """A word as the lists write it: in small letters, without accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word.lower())
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def marks(words: Sequence[str], documents: Ints) -> Ints:
    """The mark of each word, int64 [T], in time linear in their number.

    What is public is matched from left to right, the longest entry first, within a text.

    Args:
        words: the T words of all texts.
        documents: int64 [B+1]; text b has the words documents[b] to documents[b+1].
    """
    names, public, longest = _lists()
    spelled = {word: folded(word) for word in set(words)}
    own = [spelled[word] for word in words]
    found = [NAME if word in names else 0 for word in own]
    for start, end in zip(documents[:-1].tolist(), documents[1:].tolist(), strict=True):
        at = start
        while at < end:
            size = min(longest.get(own[at], 0), end - at)
            while size and " ".join(own[at : at + size]) not in public:
                size -= 1
            for place in range(at, at + size):
                found[place] |= PUBLIC
            at += size or 1
    return np.array(found, np.int64)


@cache
def _lists() -> tuple[frozenset[str], frozenset[str], dict[str, int]]:
    """The list of names, the public list, and for each word the length of the longest entry that it begins."""
    names, public = (frozenset(_read(name)) for name in ("names", "public"))
    longest: dict[str, int] = {}
    for entry in public:
        first, size = entry.partition(" ")[0], entry.count(" ") + 1
        longest[first] = max(size, longest.get(first, 0))
    return names, public, longest


def _read(name: str) -> list[str]:
    data = resources.files("textveil").joinpath(f"{FOLDER}/{name}.txt.gz").read_bytes()
    return [line for line in gzip.decompress(data).decode().splitlines() if not line.startswith("#")]
