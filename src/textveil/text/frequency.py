"""Frequencies of words in public text.

In: the package's list of counts. Out: counts and ranks of words, and the ordinary words.
Not here: how the list was made (`training/frequencies.py`), and counts for rows of a table
(`table.row_frequency`).
"""

import gzip
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import compress
from types import MappingProxyType

import numpy as np

from textveil.randomness import Ints


@cache
def load_counts() -> Mapping[str, int]:
    """Returns the count of each word in public text, most frequent first.

    Words are those of `tokenize`, lower-cased, including words of the public list; words that occur
    fewer than five times are not listed.

    Source: 27,380 articles of the English Wikipedia of 2018 (training/README.md).
    """
    rows = (line.split("\t") for line in _read_lines())
    return MappingProxyType({word: int(count) for word, count in rows})


def _read_lines() -> list[str]:
    """Reads the list's lines: a word, a tab, and its count.

    Without the remarks at its head.
    """
    packed = (files("textveil") / "data" / "frequencies" / "words.txt.gz").read_bytes()
    lines = gzip.decompress(packed).decode().splitlines()
    return lines[next(i for i, line in enumerate(lines) if not line.startswith("#")) :]


@cache
def _rank_words() -> Mapping[str, int]:
    return {word: rank for rank, word in enumerate(load_counts(), 1)}


def lookup_ranks(words: Sequence[str]) -> Ints:
    """Returns each word's rank on the list, ignoring case: int64 [n].

    1 is the most frequent word; a word not on the list has the rank after the last, `len(counts())
    + 1`.
    """
    rank_of = _rank_words()
    return np.fromiter(
        (rank_of.get(word.lower(), len(rank_of) + 1) for word in words), np.int64, len(words)
    )


@cache
def _read_ordinary() -> frozenset[str]:
    packed = (files("textveil") / "data" / "frequencies" / "ordinary.bits").read_bytes()
    lines = _read_lines()
    bits = np.unpackbits(np.frombuffer(packed, np.uint8), count=len(lines)).tolist()
    return frozenset(line.partition("\t")[0] for line in compress(lines, bits))


def is_ordinary(word: str) -> bool:
    """Says whether a word is an ordinary word of the language.

    "mark" and "rose" are, although they are names; "robert" is not. An ordinary word is on the list
    and written in small letters in at least 4% of its places there. Case is ignored.
    """
    return word.lower() in _read_ordinary()
