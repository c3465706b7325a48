"""Language statistics of public text: vocabulary, frequencies and co-occurrence.

In: texts that anybody may read, a table. Out: `Knowledge`.
Not here: what a release tells (`channel`), and both together (`rerank`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from textveil.config import WordsOptions
from textveil.config.extras import explain_missing
from textveil.randomness import Flags, Ids, Values
from textveil.table import EmbeddingTable
from textveil.text import is_public, load_counts, tokenize

MAX_NEIGHBOUR_DISTANCE = 3
"""The largest distance at which neighbours are counted."""

SIDES = tuple(
    side for distance in range(1, MAX_NEIGHBOUR_DISTANCE + 1) for side in (-distance, distance)
)
"""Offsets of neighbours, the closest first: -2 is the second word before."""

MAX_OUTSIDE_WORDS = 50_000
"""The most frequent words outside the table that are known, at most."""

PRIOR_PSEUDO_COUNT = 10.0
"""The pseudo-count of the unigram prior beside neighbour counts.

One more is added for each distinct word that was seen beside the neighbour (Witten and Bell).
"""

GENERAL_LIST_SIZES = (10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5)
"""Candidate sizes, in words, of the general word list.

It is weighed beside the public text at the likeliest of these sizes.
"""

SEGMENT_WORDS = 100
"""The length in words of the parts of longer texts.

Co-occurrence is counted within a part.
"""

MIN_SHARED_PARTS = 2
"""The fewest shared text parts for two words to be associated."""

SparseArray = Any
"""A scipy sparse array in rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NeighbourRatios:
    """Likelihood ratios of words beside a neighbour: P(c | w) / P(c).

    They are base[w] + ratio[w, c], both [U + 1, ...].

    Word U is the edge of a text.

    Source: Witten and Bell, "The zero-frequency problem", IEEE Transactions on Information Theory
    37 (1991).
    """

    ratio: SparseArray = field(repr=False)
    base: Values = field(repr=False)

    @classmethod
    def build(cls, count: SparseArray, shares: Values) -> Self:
        """Builds the ratios from co-occurrence counts and word shares [U]."""
        distinct_counts, totals = np.diff(count.indptr), np.asarray(count.sum(axis=1)).ravel()
        pseudo_counts, share = distinct_counts + PRIOR_PSEUDO_COUNT, np.append(shares, 1.0)
        ratio = count.copy()
        ratio.data = (
            count.data / (share[count.indices] * np.repeat(totals + pseudo_counts, distinct_counts))
        ).astype(np.float32)
        return cls(ratio=ratio, base=pseudo_counts / (totals + pseudo_counts))


@dataclass(frozen=True, kw_only=True, eq=False)
class Knowledge:
    """The U known words with their public statistics.

    Attributes:
        words: those of the table, then those that public text has besides. As they stand in the
            table, else in small letters.
        row: int64 [U], the row that stands for each, in the table of words.
        is_in_table: bool [U], whether that row is the word itself.
        candidate: bool [U], whether it can be a private word: words of the public list cannot,
            where these always pass.
        share: float64 [U], the share of each among all words.
        log_prior: float64 [U], ln of the share of each among private words, -inf for no candidates.
        log_usual: float64 [U], the same from the general word list alone.
        neighbours: by distance and side (-1 is the word before), how much likelier words are beside
            each.
        associations: pointwise mutual information of words in one text, where positive: sparse [U +
            1, U + 1].
        line: int64, the words of all public texts in their order, with edges around each text; -1
            for a word that is not known.
    """

    words: tuple[str, ...] = field(repr=False)
    row: Ids = field(repr=False)
    is_in_table: Flags = field(repr=False)
    candidate: Flags = field(repr=False)
    share: Values = field(repr=False)
    log_prior: Values = field(repr=False)
    log_usual: Values = field(repr=False)
    neighbours: Mapping[int, NeighbourRatios] = field(repr=False)
    associations: SparseArray = field(repr=False)
    line: Ids = field(repr=False)

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each word."""
        return {word: i for i, word in enumerate(self.words)}

    @cached_property
    def log_ratios(self) -> SparseArray:
        """Log likelihood ratios of words beside visible neighbours.

        ln of P(c | w) / P(c), up to a constant: [S (U + 1) + 1, U + 1].

        The sides lie one below the other, in the order of `SIDES`; the last row is empty, for
        neighbours that tell nothing.
        """
        with explain_missing():
            from scipy import sparse

        parts = []
        for side in SIDES:
            neighbours = self.neighbours[side]
            part = neighbours.ratio.copy()
            part.data = np.log1p(
                part.data / np.repeat(neighbours.base, np.diff(part.indptr)).astype(np.float32)
            )
            parts.append(part)
        return sparse.vstack(
            [*parts, sparse.csr_array((1, len(self) + 1), dtype=np.float32)], format="csr"
        )

    @cached_property
    def ratios(self) -> SparseArray:
        """The ratios of all sides, and `associations`, joined.

        [U + 1, (S + 1) (U + 1)], in the order of `SIDES`.
        """
        with explain_missing():
            from scipy import sparse

        return sparse.hstack(
            [*(self.neighbours[side].ratio for side in SIDES), self.associations], format="csr"
        )

    @cached_property
    def bases(self) -> Values:
        """The bases of all sides: float64 [U + 1, S].

        In the order of `SIDES`.
        """
        return np.stack([self.neighbours[side].base for side in SIDES], axis=1)

    def __len__(self) -> int:
        """Returns U, the number of known words."""
        return len(self.words)

    def find_ids(self, table: EmbeddingTable, words: Sequence[str]) -> Ids:
        """Returns the number of each word of a text: int64 [n].

        -1 for a word that is not known.
        """
        return _number_words(table, words, self.number)


def learn(
    table: EmbeddingTable, options: WordsOptions, texts: Sequence[str], protected: float = 0.0
) -> Knowledge:
    """Learns word statistics from public texts.

    Args:
        table: of the releases.
        options: how texts become words there.
        texts: public texts.
        protected: where words of the public list pass, the share of them that is protected all the
            same, as a part of a name.
    """
    tokens = tokenize(texts)
    origin = table.origin
    count = Counter(tokens.words)
    normal_forms = dict(zip(count, _normalize_words(table, list(count)), strict=True))
    total: Counter[str] = Counter()
    for word, times in count.items():
        total[normal_forms[word]] += times
    inside = origin.row_of
    outside_words = [word for word, _ in total.most_common() if word not in inside][
        :MAX_OUTSIDE_WORDS
    ]
    words = (*origin.words, *outside_words)
    row = table.lookup(words)[0]
    is_in_table = np.arange(len(words)) < len(origin)
    is_passing = np.array([options.stopwords == "pass" and is_public(word) for word in words])
    weight = np.where(is_passing, protected, 1.0)
    number = {word: i for i, word in enumerate(words)}
    sequence = np.fromiter(
        (number.get(normal_forms[word], -1) for word in tokens.words), np.int64, len(tokens.words)
    )
    frequencies = np.bincount(sequence[sequence >= 0], minlength=len(words)).astype(np.float64)
    general_counts = load_counts()
    general = np.array([general_counts.get(word.lower(), 0) for word in words]) + 0.5
    everything = smooth_counts(frequencies, general)
    prior, usual = everything * weight, general * weight
    line = _join_texts(sequence, tokens.documents, len(words))
    with np.errstate(divide="ignore"):
        log_prior, log_usual = np.log(prior / prior.sum()), np.log(usual / usual.sum())
    return Knowledge(
        words=words,
        row=row,
        is_in_table=is_in_table,
        candidate=weight > 0,
        share=everything,
        log_prior=log_prior,
        log_usual=log_usual,
        neighbours=_count_neighbours(line, everything),
        associations=_associate_words(sequence, tokens.documents, len(words)),
        line=line,
    )


def smooth_counts(word_counts: Values, general: Values) -> Values:
    """Smooths word counts [U] with general frequencies, and returns shares.

    The general list counts as a text of the length under which each word is the likeliest given all
    others.
    """
    usual = general / general.sum()
    occurs, total = word_counts > 0, word_counts.sum()
    scores = [
        float(
            (
                word_counts[occurs]
                * np.log((word_counts[occurs] - 1 + size * usual[occurs]) / (total - 1 + size))
            ).sum()
        )
        for size in GENERAL_LIST_SIZES
    ]
    size = GENERAL_LIST_SIZES[int(np.argmax(scores))]
    shares: Values = (word_counts + size * usual) / (total + size)
    return shares


def _normalize_words(table: EmbeddingTable, words: Sequence[str]) -> list[str]:
    """Normalizes words as the mechanism does.

    To the word of the row, or to small letters where the word is outside the table.
    """
    rows = table.origin.find(words)
    table_words = table.origin.words
    return [
        table_words[row] if row >= 0 else word.lower()
        for row, word in zip(rows.tolist(), words, strict=True)
    ]


def _number_words(table: EmbeddingTable, words: Sequence[str], number: Mapping[str, int]) -> Ids:
    distinct = list(dict.fromkeys(words))
    numbers = {
        word: number.get(normal_form, -1)
        for word, normal_form in zip(distinct, _normalize_words(table, distinct), strict=True)
    }
    return np.fromiter((numbers[word] for word in words), np.int64, len(words))


def _join_texts(sequence: Ids, documents: Ids, edge: int) -> Ids:
    """Concatenates texts, padded with edges so that neighbours never cross texts."""
    sizes = np.diff(documents)
    line = np.full(len(sequence) + MAX_NEIGHBOUR_DISTANCE * (len(sizes) + 1), edge)
    line[
        np.arange(len(sequence))
        + MAX_NEIGHBOUR_DISTANCE * (1 + np.repeat(np.arange(len(sizes)), sizes))
    ] = sequence
    return line


def _count_neighbours(line: Ids, shares: Values) -> dict[int, NeighbourRatios]:
    """Counts word pairs at each distance before and behind.

    Beyond the end of a text the neighbour is the edge.
    """
    with explain_missing():
        from scipy import sparse

    edge = len(shares)
    result = {}
    for distance in range(1, MAX_NEIGHBOUR_DISTANCE + 1):
        before, behind = line[:-distance], line[distance:]
        mask = (before >= 0) & (behind >= 0) & ~((before == edge) & (behind == edge))
        count = sparse.coo_array(
            (np.ones(int(mask.sum())), (before[mask], behind[mask])), shape=(edge + 1, edge + 1)
        ).tocsr()
        result[-distance], result[distance] = (
            NeighbourRatios.build(table, shares) for table in (count, count.T.tocsr())
        )
    return result


def _associate_words(sequence: Ids, documents: Ids, words: int) -> SparseArray:
    """Computes positive pointwise mutual information of words within texts."""
    with explain_missing():
        from scipy import sparse

    sizes = np.diff(documents)
    text = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(sequence)) - np.repeat(documents[:-1], sizes)
    part = np.unique(np.stack([text, place // SEGMENT_WORDS]), axis=1, return_inverse=True)[
        1
    ].ravel()
    mask = sequence >= 0
    occurrences = sparse.coo_array(
        (np.ones(int(mask.sum()), np.float32), (part[mask], sequence[mask])),
        shape=(int(part.max(initial=0)) + 1, words + 1),
    ).tocsr()
    occurrences.data[:] = 1
    frequencies = np.asarray(occurrences.sum(axis=0)).ravel()
    frequent = frequencies > 0.1 * occurrences.shape[0]  # such words belong to every text
    occurrences = (occurrences @ sparse.diags_array((~frequent).astype(np.float32))).tocsr()
    both = (occurrences.T @ occurrences).tocoo()
    mask = (both.data >= MIN_SHARED_PARTS) & (both.row != both.col)
    row, column, pair_counts = both.row[mask], both.col[mask], both.data[mask]
    information = np.log(
        pair_counts * occurrences.shape[0] / (frequencies[row] * frequencies[column])
    )
    information *= pair_counts / (pair_counts + 1)
    is_positive = information > 0
    return sparse.coo_array(
        (information[is_positive].astype(np.float32), (row[is_positive], column[is_positive])),
        shape=(words + 1, words + 1),
    ).tocsr()
