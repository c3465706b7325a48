"""A light unigram tokenizer: cuts words into the tagger's pieces.

It cuts as the library's tokenizer does, without making one.

In: the file of a unigram tokenizer, words. Out: the pieces of each word.
Not here: which file that is (`e5`), and what is done with pieces (`ragged`).

The library's tokenizer takes a third of a second and 100 MB to be made from 109,254 pieces, more
than a short text needs altogether. Here the file stays as it is: a piece is found by a hash of its
bytes, and compared. Of all ways to cut a word the likeliest counts, found from its beginning to its
end, with the same sums in the same order, so that ties fall alike. A word with characters that came
to Unicode late is given to the library, whose tables may be older or newer than those of this
Python.

Source: Kudo, "Subword Regularization" (2018); encode_optimized of the package tokenizers.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

SPACE_MARK = "\u2581".encode()
"""The character that marks a space in pieces, as bytes."""

UNKNOWN_PENALTY = 10.0
"""The log-probability penalty of unknown characters.

They are less likely than the least likely piece by this much.
"""

MAX_KNOWN_WORDS = 1 << 14
"""The number of words whose pieces are remembered, a few megabytes; then it begins anew."""

HASH_FACTOR = np.uint64(0x9E37_79B9_7F4A_7C15)
"""The factor of the hash, mod 2^64.

Hashes only find pieces; bytes are compared.
"""

_ESCAPES = bytes.maketrans(b'"\\\0\1\2', b"\1\2\0\0\0")
"""The translation of a word's bytes to those in the file.

Quotes and backslashes are escaped there; 0 stands for bytes that no piece has.
"""


PieceHit = tuple[int, int, int, float]
"""A piece in a text: place, bytes, number, log probability."""


class CutWord(NamedTuple):
    """The pieces of a word."""

    ids: list[int]


class Unigram:
    """The part of a tokenizer that cuts words.

    Thread-safe. A pickle holds its arguments alone, and reads the file again. Words come again and
    again, so the pieces of those met last are remembered.

    Args:
        read: reads the tokenizer's file, whose layout is that of the package `tokenizers`: a list
            of pieces with their log probabilities behind `"vocab":`, normalization NFKC, and spaces
            that are a part of pieces.
        make: makes the library's tokenizer of it.
        unknown: the number of the piece for what is none.
        min_log_probability: the log probability of the least likely piece.
    """

    def __init__(
        self,
        read: Callable[[], bytes],
        make: Callable[[], Tokenizer],
        *,
        unknown: int,
        min_log_probability: float,
    ) -> None:
        self._arguments = read, make, unknown, min_log_probability
        self._make, self._unknown, self._unlikely = (
            make,
            unknown,
            min_log_probability - UNKNOWN_PENALTY,
        )
        content = read()
        begin = content.index(b'"vocab":[') + len(b'"vocab":[')
        self._text = (
            content[begin : content.rindex(b"]]") + 1]
            # backslashes first: the second of a pair escapes no quote
            .replace(b"\\\\", b"\2")
            .replace(b'\\"', b"\1")
        )
        text = np.frombuffer(self._text, np.uint8)
        # Escaped quotes are replaced above, so every quote left begins or ends a piece.
        quotes = np.flatnonzero(text == ord('"')).astype(np.int32)
        self._begins, self._ends = quotes[::2] + 1, quotes[1::2]
        hashes = _hash_parts(text, self._begins, self._ends)
        self._order = np.argsort(hashes, kind="stable").astype(np.int32)
        self._hashes = hashes[self._order]
        self._longest = int((self._ends - self._begins).max())
        self._scores = np.full(len(hashes), np.nan)
        self._known: dict[str, CutWord] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, self._arguments

    def encode_batch_fast(
        self, words: Sequence[str], add_special_tokens: bool = False
    ) -> list[CutWord]:
        """Cuts each word into pieces; an empty one has none.

        Args:
            words: each is cut on its own.
            add_special_tokens: there are none to add.
        """
        if add_special_tokens:
            raise ValueError("no pieces are added to words")
        known = self._known  # another thread may begin anew meanwhile, with another one
        new = [word for word in dict.fromkeys(words) if word not in known]
        known.update(zip(new, self._cut_new(new) if new else (), strict=True))
        if len(known) > MAX_KNOWN_WORDS:
            self._known = {}
        return [known[word] for word in words]

    def _cut_new(self, words: Sequence[str]) -> list[CutWord]:
        """Cuts words that were not cut before."""
        plain = [_normalize(word) for word in words]
        cut_words = iter(self._cut_words([text for text in plain if text is not None]))
        library_words = [word for word, text in zip(words, plain, strict=True) if text is None]
        library_pieces = iter(
            self._library.encode_batch_fast(library_words, add_special_tokens=False)
            if library_words
            else ()
        )
        return [
            CutWord(next(library_pieces).ids if text is None else next(cut_words)) for text in plain
        ]

    @cached_property
    def _library(self) -> Tokenizer:
        result = self._make()
        result.encode_special_tokens = True  # "</s>" in a text is just these letters
        return result

    def _cut_words(self, words: Sequence[bytes]) -> Iterator[list[int]]:
        """Cuts words that are spelled in the bytes of pieces."""
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        ends = np.cumsum(lengths)
        hits = self._find_pieces(b"".join(words), np.repeat(ends, lengths))
        at, begin = 0, 0
        for word in words:
            pieces, at = self._find_likeliest(word, begin, hits, at)
            yield pieces
            begin += len(word)

    def _find_pieces(self, text: bytes, ends: NDArray[np.int64]) -> list[PieceHit]:
        """Finds the pieces in a text, by place and size.

        One hit that is no piece comes last.

        Args:
            text: words.
            ends: of each byte the end of its word.
        """
        codes = np.frombuffer(text, np.uint8)
        first = np.append(codes & 0xC0 != 0x80, True)  # where a character begins, or the text ends
        at = np.flatnonzero(first[:-1])
        hashed = np.zeros(len(at), np.uint64)
        matches = [np.zeros((0, 3), np.int64)]
        for size in range(1, self._longest + 1):
            fits = at + size <= ends[at]
            at, hashed = at[fits], hashed[fits]
            if not len(at):
                break
            hashed = hashed * HASH_FACTOR + codes[at + (size - 1)]
            whole = np.flatnonzero(first[at + size])
            place = np.searchsorted(self._hashes, hashed[whole])
            # Any valid place will do: the comparison below refuses another hash.
            place[place == len(self._hashes)] = 0
            same = np.flatnonzero(self._hashes[place] == hashed[whole])
            begins = at[whole[same]]
            matches.append(
                np.stack([begins, np.full(len(same), size), self._order[place[same]]], axis=1)
            )
        starts, sizes, pieces = np.concatenate(matches).T
        order = np.lexsort((sizes, starts))
        starts, sizes, pieces = starts[order], sizes[order], pieces[order]
        columns = starts, sizes, pieces, self._begins[pieces], self._read_scores(pieces)
        hits = zip(*(column.tolist() for column in columns), strict=True)
        return [
            (start, size, piece, score)
            for start, size, piece, begin, score in hits
            if text[start : start + size] == self._text[begin : begin + size]
        ] + [(-1, 0, 0, 0.0)]

    def _find_likeliest(
        self, word: bytes, begin: int, hits: Sequence[PieceHit], at: int
    ) -> tuple[list[int], int]:
        """Finds the likeliest cut of a word, and the next hit.

        The next hit is the first one behind the word.

        Args:
            word: its bytes.
            begin: where it stands in the text of the hits.
            hits: pieces by place and size.
            at: the first of them in this word.
        """
        scores: list[float | None] = [0.0, *[None] * len(word)]
        steps = [(0, 0)] * (len(word) + 1)  # to each place: from where, by which piece
        start, end = 0, len(word)
        while start < end:
            before = scores[start]
            assert before is not None, "each character is a step"
            character = _count_bytes(word[start])
            alone = False
            while hits[at][0] == begin + start:
                _, size, piece, score = hits[at]
                at += 1
                alone = alone or size == character
                score += before
                other = scores[start + size]
                # Only a better score replaces: ties must fall as in the library.
                if other is None or score > other:
                    scores[start + size], steps[start + size] = score, (start, piece)
            if not alone:
                score = self._unlikely + before
                other = scores[start + character]
                if other is None or score > other:
                    scores[start + character] = score
                    steps[start + character] = start, self._unknown
            start += character
        pieces: list[int] = []
        while end > 0:
            end, piece = steps[end]
            if not (piece == self._unknown and pieces and pieces[-1] == piece):
                pieces.append(piece)  # unknown ones beside each other are one
        return pieces[::-1], at

    def _read_scores(self, pieces: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the log probabilities of pieces.

        Each is read when it is first met.
        """
        new = np.unique(pieces[np.isnan(self._scores[pieces])])
        for piece, end in zip(new.tolist(), self._ends[new].tolist(), strict=True):
            begin = end + len('",')
            self._scores[piece] = float(self._text[begin : self._text.index(b"]", begin)])
        return self._scores[pieces]


def _rebuild(
    read: Callable[[], bytes],
    make: Callable[[], Tokenizer],
    unknown: int,
    min_log_probability: float,
) -> Unigram:
    return Unigram(read, make, unknown=unknown, min_log_probability=min_log_probability)


def _count_bytes(first: int) -> int:
    """Returns a character's number of bytes, from its first byte."""
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def _hash_parts(
    text: NDArray[np.uint8], begins: NDArray[np.int32], ends: NDArray[np.int32]
) -> NDArray[np.uint64]:
    """Hashes each part of a text."""
    result = np.zeros(len(begins), np.uint64)
    sizes = ends - begins
    by_size = np.argsort(-sizes, kind="stable")
    longer = np.searchsorted(-sizes[by_size], -np.arange(1, int(sizes.max(initial=0)) + 1), "right")
    for i, count in enumerate(longer.tolist()):  # so many have a byte i
        longer_parts = by_size[:count]
        result[longer_parts] = result[longer_parts] * HASH_FACTOR + text[begins[longer_parts] + i]
    return result


def _normalize(word: str) -> bytes | None:
    """Normalizes a word to the bytes that pieces have.

    None where normalization may depend on the version of Unicode.
    """
    if not word.isascii():
        if not all(map(_is_settled, word)):
            return None
        word = unicodedata.normalize("NFKC", word)
    return word.encode().translate(_ESCAPES).replace(b" ", SPACE_MARK)


@lru_cache(maxsize=1 << 12)
def _is_settled(char: str) -> bool:
    """Says whether all Unicode versions normalize a character alike.

    It was there in Unicode 3.2, or it is a plain picture.
    """
    if unicodedata.ucd_3_2_0.category(char) != "Cn":
        return True
    return 0x1F300 <= ord(char) < 0x1FB00 and not unicodedata.decomposition(char)
