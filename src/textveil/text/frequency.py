"""Frequencies: how often words occur in public text.

In: the package's list of counts. Out: counts and ranks of words, and which of them are ordinary.
Not here: how the list was made (`training/frequencies.py`), and counts for rows of a table (`table.frequency`).
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
def counts() -> Mapping[str, int]:
    """How often each word occurs in public text, the most frequent first.

    Words are those of `tokenize`, lower-cased, including words of the public list; words that occur fewer than five
    times are not listed.

    Source: 27,380 articles of the English Wikipedia of 2018 (training/README.md).
    """
    rows = (line.split("\t") for line in _lines())
    return MappingProxyType({word: int(count) for word, count in rows})


def _lines() -> list[str]:
    """The lines of the list, without the remarks at its head: a word, a tab, and its count."""
    packed = (files("textveil") / "data" / "frequencies" / "words.txt.gz").read_bytes()
    lines = gzip.decompress(packed).decode().splitlines()
    return lines[next(i for i, line in enumerate(lines) if not line.startswith("#")) :]


@cache
def _rank_of() -> Mapping[str, int]:
    return {word: rank for rank, word in enumerate(counts(), 1)}


def ranks(words: Sequence[str]) -> Ints:
    """The rank of each word on the list, ignoring case: int64 [n].

    1 is the most frequent word; a word not on the list has the rank after the last, `len(counts()) + 1`.
    """
    rank_of = _rank_of()
    return np.fromiter(
        (rank_of.get(word.lower(), len(rank_of) + 1) for word in words), np.int64, len(words)
    )


@cache
def _ordinary() -> frozenset[str]:
    packed = (files("textveil") / "data" / "frequencies" / "ordinary.bits").read_bytes()
    lines = _lines()
    bits = np.unpackbits(np.frombuffer(packed, np.uint8), count=len(lines)).tolist()
    return frozenset(line.partition("\t")[0] for line in compress(lines, bits))


def is_ordinary(word: str) -> bool:
    """Whether a word is one of the language, whatever else it names: "mark" and "rose" are, "robert" is not.

    That is a word on the list that is written in small letters in at least 4% of its places there. Case is ignored.
    """
    return word.lower() in _ordinary()
