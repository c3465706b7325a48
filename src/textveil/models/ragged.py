"""Texts as pieces (subword tokens), and windows of pieces.

A network sees one window at a time.

In: the words of many texts. Out: their pieces, concatenated, and windows of bounded length.
Not here: what a network makes of a window.

Nothing is truncated: a text longer than a window is read in several.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from textveil.errors import InputError, ModelError
from textveil.models.networks import SPACE_MARKS, Model
from textveil.randomness import Flags, Ints
from textveil.text import Kind, Released, Tokens, check_texts, lexicon

WordKey = tuple[str, bool]
"""A word, and whether whitespace precedes it."""

PieceKey = WordKey | int | None
"""A word that is cut, the piece that a word is, or None for a hidden word."""

PROGRESS_LISTENER: ContextVar[Callable[[int, int], None] | None] = ContextVar(
    "listener", default=None
)
"""The callback for progress: the pieces read, and their total."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Ragged:
    """The words of B texts, concatenated. Secret.

    Private ones, released ones, or both.

    Attributes:
        words: T words.
        documents: int64 [B+1]; text b has the words documents[b] to documents[b+1].
        spaced: bool [T], whether whitespace precedes the word.
        ids: int64 [T], the model's piece that a word is, -1 for a word that is cut into pieces;
            None: all are cut.
    """

    words: Sequence[str]
    documents: Ints
    spaced: Flags
    ids: Ints | None = None

    def __post_init__(self) -> None:
        ends = self.documents
        is_valid = ends.ndim == 1 and len(ends) > 0 and ends[0] == 0 and ends[-1] == len(self.words)
        if not (is_valid and (np.diff(ends) >= 0).all() and len(self.spaced) == len(self.words)):
            raise InputError(
                "documents must rise from 0 to the number of words, and spaced have one entry a "
                "word"
            )
        if self.ids is not None and self.ids.shape != (len(self.words),):
            raise InputError("ids must have one entry a word")

    @cached_property
    def marks(self) -> Ints:
        """The lexicon's marks of each word: int64 [T]."""
        return lexicon.mark_words(self.words, self.documents)

    def __repr__(self) -> str:
        return f"Ragged(texts={len(self.documents) - 1}, words={len(self.words)})"

    @classmethod
    def build(cls, tokens: Tokens) -> Self:
        """Collects the words of tokenized texts.

        Raises:
            InputError: `tokens` is not a `Tokens`.
        """
        if not isinstance(tokens, Tokens):
            raise InputError(f"tokens must be Tokens (tokenize), got {type(tokens).__name__}")
        return cls(words=tokens.words, documents=tokens.documents, spaced=tokens.space_flags)

    @classmethod
    def build_released(cls, texts: Sequence[Released]) -> Self:
        """Collects the words of releases.

        A placeholder becomes an empty word, as models have no word for it.
        """
        items = [item for text in texts for item in text.items]
        gaps = [gap for text in texts for gap in ("\n", *text.gaps[1:-1])[: len(text.items)]]
        return cls(
            words=["" if item.kind is Kind.PLACEHOLDER else item.text for item in items],
            documents=np.cumsum([0, *(len(text.items) for text in texts)], dtype=np.int64),
            spaced=np.array([gap != "" for gap in gaps], bool),
        )

    @classmethod
    def join(cls, texts: Sequence[Sequence[str]]) -> Self:
        """Joins texts given as lists of words.

        There is whitespace between all of them.

        Raises:
            InputError: a text is not a list of valid Unicode strings.
        """
        for text in texts:
            check_texts(text, noun="word")
        words = [word for text in texts for word in text]
        documents = np.concatenate(
            [[0], np.cumsum([len(text) for text in texts], dtype=np.int64)]
        ).astype(np.int64)
        return cls(words=words, documents=documents, spaced=np.ones(len(words), bool))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PieceSequence:
    """Words split into pieces, at least one each except for hidden words.

    Attributes:
        ids: int64 [P], the pieces.
        words: int64 [T+1]; word t has the pieces words[t] to words[t+1].
        documents: int64 [B+1]; text b has the pieces documents[b] to documents[b+1].
    """

    ids: Ints
    words: Ints
    documents: Ints = field(repr=False)

    @classmethod
    def build(cls, model: Model, texts: Ragged, hidden: Flags | None = None) -> Self:
        """Splits each word by itself; equal words once.

        Args:
            model: whose tokenizer is used.
            texts: the words.
            hidden: bool [T], words that are not read: each becomes one mask piece, or nothing if
                the model has none.

        Raises:
            InputError: `texts` is not a `Ragged`, or `hidden` is not bool [T].
            ModelError: the tokenizer fails on a word.
        """
        if not isinstance(texts, Ragged):
            raise InputError(
                "texts must be Ragged.of(tokenize(texts)) or Ragged.join(words), got "
                f"{type(texts).__name__}"
            )
        keys: list[PieceKey] = [*zip(texts.words, texts.spaced.tolist(), strict=True)]
        if texts.ids is not None:
            ids = texts.ids.tolist()
            keys = [key if id < 0 else id for key, id in zip(keys, ids, strict=True)]
        if hidden is not None:
            keys = _hide_words(keys, hidden)
        distinct = dict.fromkeys(keys)
        words = [key for key in distinct if isinstance(key, tuple)]
        single = [key for key in distinct if isinstance(key, int)]
        place: dict[PieceKey, int] = {key: i for i, key in enumerate((None, *words, *single))}
        pieces = [
            [] if model.mask is None else [model.mask],
            *cut_words(model, words),
            *([id] for id in single),
        ]
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        which = np.fromiter((place[key] for key in keys), np.int64, len(keys))
        bounds = np.concatenate([[0], np.cumsum(lengths[which])]).astype(np.int64)
        flat = np.fromiter(
            (piece for word_ids in pieces for piece in word_ids), np.int64, int(lengths.sum())
        )
        begins = np.concatenate([[0], np.cumsum(lengths)])[:-1]
        flat_ids = flat[expand_ranges(begins[which], lengths[which])]
        return cls(ids=flat_ids, words=bounds, documents=bounds[texts.documents])


def _hide_words(keys: Sequence[PieceKey], hidden: Flags) -> list[PieceKey]:
    """Replaces hidden words by None."""
    if getattr(hidden, "dtype", None) != np.dtype(bool) or hidden.shape != (len(keys),):
        raise InputError(f"hidden must be bool, with one entry for each of the {len(keys)} words")
    return [
        None if is_hidden else key for key, is_hidden in zip(keys, hidden.tolist(), strict=True)
    ]


def cut_words(model: Model, words: Iterable[WordKey]) -> list[list[int]]:
    """Splits each word into pieces, at least one.

    Words come with whether whitespace precedes them.
    """
    words = list(words)
    keeps_space = model.spaces == "given"
    spellings = [
        (" " * (keeps_space and spaced) + word)[: model.max_characters] for word, spaced in words
    ]
    encodings = None
    with suppress(Exception):  # the Rust side raises bare Exception, which may quote the word
        encodings = model.tokenizer.encode_batch_fast(spellings, add_special_tokens=False)
    if encodings is None:
        raise ModelError(
            f"the tokenizer of {model.name} failed on a word; give it an unknown token"
        )
    pieces = [encoding.ids or [model.unknown] for encoding in encodings]
    if model.spaces != "added":
        return pieces
    space_pieces = {model.tokenizer.token_to_id(space) for space in SPACE_MARKS}
    is_bare = [not spaced and len(ids) > 1 for ids, (_, spaced) in zip(pieces, words, strict=True)]
    return [
        # False is 0 and cuts nothing; True cuts the piece of the space
        ids[is_cut and ids[0] in space_pieces :]
        for ids, is_cut in zip(pieces, is_bare, strict=True)
    ]


def expand_ranges(begins: Ints, lengths: Ints) -> Ints:
    """Concatenates ranges of lengths[i] numbers from begins[i] on."""
    total = int(lengths.sum())
    shift = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths)
    numbers: Ints = shift + np.arange(total)
    return numbers


def find_distinct(rows: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Finds the distinct rows among sequences [n, L].

    Returns their first indices int64 [m] in order, and each row's number [n].
    """
    # What lies behind the end of a sequence must not tell two equal ones apart.
    bare_rows = np.where(np.arange(rows.shape[1]) < lengths[:, None], rows, -1)
    _, first, numbers = np.unique(bare_rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    # Some versions of NumPy return the inverse with two axes.
    return first[order], np.argsort(order)[numbers.reshape(-1)]


def yield_batches(lengths: Ints, pieces: int, *, equal_lengths: bool = False) -> Iterator[Ints]:
    """Yields indices of sequences in batches of similar length.

    Of about `pieces` pieces, including padding.

    `PROGRESS_LISTENER` is told of each batch when the next one is asked for.

    Args:
        lengths: int64 [n], pieces of each sequence.
        pieces: of a batch, at least one sequence.
        equal_lengths: whether all sequences of a batch must have one length.
    """
    order = np.argsort(-lengths, kind="stable")
    listener, piece_counts = PROGRESS_LISTENER.get(), np.cumsum(lengths[order])
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        step = max(1, pieces // max(1, longest))
        if equal_lengths:
            step = min(step, int(np.searchsorted(-lengths[order[start:]], -longest, side="right")))
        yield order[start : start + step]
        start = min(start + step, len(order))  # the last batch may have room for more
        if listener is not None:
            listener(int(piece_counts[start - 1]), int(piece_counts[-1]))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PieceWindows:
    """Overlapping windows over texts.

    Attributes:
        begins: int64 [n], the first piece of each window.
        lengths: int64 [n], its pieces without special tokens.
        owner: int64 [P], the window that decides on a piece: the one where it is farthest from an
            edge.
        documents: int64 [n], the text of each window.
    """

    begins: Ints
    lengths: Ints
    owner: Ints
    documents: Ints

    @classmethod
    def build(cls, documents: Ints, longest: int, overlap: int) -> Self:
        """Covers all pieces with windows of at most `longest` pieces.

        Neighbours share `overlap` of them.
        """
        sizes = np.diff(documents)
        stride = longest - overlap
        counts = np.where(sizes > 0, np.maximum(1, -(-(sizes - overlap) // stride)), 0)
        text = np.repeat(np.arange(len(sizes)), counts)
        number = expand_ranges(np.zeros(len(sizes), np.int64), counts)
        begins = documents[:-1][text] + number * stride
        lengths = np.minimum(longest, documents[1:][text] - begins)
        piece = np.arange(int(documents[-1]))
        home = np.repeat(np.arange(len(sizes)), sizes)
        inside = piece - documents[:-1][home]
        window_number = np.clip((inside - overlap // 2) // stride, 0, counts[home] - 1)
        owner = (np.cumsum(counts) - counts)[home] + window_number
        return cls(begins=begins, lengths=lengths, owner=owner, documents=text)

    def build_rows(self, model: Model, ids: Ints, which: Ints) -> tuple[Ints, Ints]:
        """Returns selected windows with special tokens.

        Pieces int64 [m, L] (padded with 0) and lengths int64 [m].
        """
        lengths = self.lengths[which]
        lead, tail = len(model.before), len(model.after)
        whole = lengths + lead + tail
        rows = np.zeros((len(which), int(whole.max(initial=0))), np.int64)
        place = np.repeat(np.arange(len(which)), lengths)
        rows[place, expand_ranges(np.full(len(which), lead), lengths)] = ids[
            expand_ranges(self.begins[which], lengths)
        ]
        rows[:, :lead] = model.before
        for i, piece in enumerate(model.after):
            rows[np.arange(len(which)), lead + lengths + i] = piece
        return rows, whole
