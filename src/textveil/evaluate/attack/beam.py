"""Beam search over whole texts under a trigram model of public texts.

In: what is known of the candidates of each word, what public text teaches. Out: how likely each
candidate is, over whole texts.
Not here: which words are candidates (`candidates`), and what stands around a word (`around`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from textveil.config.extras import needed
from textveil.evaluate.attack.around import Around
from textveil.evaluate.attack.knowledge import Knowledge, Neighbours, Sparse
from textveil.evaluate.logs import highest
from textveil.randomness import Ids, Values

LIKELIEST = 24
"""Candidates of each word that enter the beam search."""

WEIGHED = 0.5
"""The power of the trigram model's ratios.

Half, because the neighbours were already weighed before.
"""

LEAST = 1e-5
"""The lowest probability that a candidate is given."""

CELLS = 1 << 23
"""Probabilities that are in memory at once: 64 MiB."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trigrams:
    """Trigram likelihood ratios P(c | u, v) / P(c).

    Of word c behind v, which is behind u.

    Words are numbers below U, U is the edge of a text, and -1 a word that is not known, which tells
    nothing: the last line and column of every array.

    Attributes:
        one: of one word before: P(c | v) / P(c) = base[v] + ratio[v, c], both [U + 2, ...].
        pair: int64 [U + 2, U + 2], the number of each two words that stood side by side, from 1; 0
            for all others.
        two: of a pair before: P(c | u, v) / P(c) = base[pair] P(c | v) / P(c) + ratio[pair, c].
    """

    one: Neighbours
    pair: Sparse = field(repr=False)
    two: Neighbours

    @classmethod
    def count(cls, known: Knowledge) -> Self:
        """Counts the bigrams and trigrams of public texts."""
        with needed():
            from scipy import sparse

        edge, line, near = len(known), known.line, known.beside[-1]
        ratio, size = near.ratio.copy(), (edge + 2, edge + 2)
        ratio.resize(size)
        pair = sparse.csr_array(
            (np.arange(1, ratio.nnz + 1), ratio.indices, ratio.indptr), shape=size
        )
        before, third = pair[line[:-2], line[1:-1]], line[2:]
        kept = (before > 0) & (line[1:-1] != edge) & (third >= 0)
        count = sparse.coo_array(
            (np.ones(int(kept.sum())), (before[kept], third[kept])), shape=(ratio.nnz + 1, edge + 2)
        )
        return cls(
            one=Neighbours(ratio=ratio, base=np.append(near.base, 1.0)),
            pair=pair,
            two=Neighbours.of(count.tocsr(), known.share),
        )

    @property
    def edge(self) -> int:
        """U, the number that marks the edge of a text."""
        return len(self.one.base) - 2

    def ratios(self, u: Ids, v: Ids, c: Ids) -> Values:
        """Returns the ratios P(c | u, v) / P(c) of adjacent words.

        float64, of the shape to which u, v and c are broadcast.
        """
        pair = _read_entries(self.pair, u, v)
        held = self.two.base[pair] * (self.one.base[v] + _read_entries(self.one.ratio, v, c))
        return np.where(c < 0, 1.0, held + _read_entries(self.two.ratio, pair, c))


def _read_entries(table: Sparse, rows: Ids, columns: Ids) -> Any:
    """Returns single entries of a sparse array."""
    rows, columns = np.broadcast_arrays(rows, columns)
    return table[rows.ravel(), columns.ravel()].reshape(rows.shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class Beam:
    """The beam search: unigram probabilities times powers of trigram ratios.

    Attributes:
        trigrams: what goes on well.
        width: the number of texts that are kept at each word, 1 or more.
        weight: the power of what the trigram model says, 0 or more.
    """

    trigrams: Trigrams
    width: int
    weight: float = WEIGHED

    def scores(
        self, around: Around, candidates: Ids, probability: Values, positions: Ids
    ) -> Values:
        """Returns the log probability of each candidate over the kept texts.

        float64 [m, K].

        Args:
            around: the cells.
            candidates: int64 [m, K], numbers of words.
            probability: [m, K], of each by itself.
            positions: int64 [n], where the words stand among the T words.
        """
        best = highest(probability, min(LIKELIEST, probability.shape[1]))
        words = np.full((len(around.passed), best.shape[1]), -1)
        words[:, 0] = around.passed
        likely = np.zeros(words.shape)
        likely[:, 0] = 1.0
        words[positions] = np.take_along_axis(candidates, best, axis=1)[around.of]
        likely[positions] = np.take_along_axis(probability, best, axis=1)[around.of]
        said = np.log(np.maximum(self.decode(words, likely, around.documents)[positions], LEAST))
        found = np.full(probability.shape, np.log(LEAST))
        # of the positions of a cell
        mean = (around.members @ said) / np.diff(around.members.indptr)[:, None]
        np.put_along_axis(found, best, mean, axis=1)
        return found

    def decode(self, words: Ids, likely: Values, documents: Ids) -> Values:
        """Returns the probability of each candidate at each place.

        float64 [T, C], for C candidates at T places.

        Texts are written from left to right, many at once. Those that share their last two words go
        on alike, so they are one: `width` such pairs are kept at each word, the likeliest. From
        right to left each pair then learns how all that goes on from it fares (Baum and others,
        Annals of Mathematical Statistics 41, 1970).

        Args:
            words: int64 [T, C], -1 for those that are not known.
            likely: [T, C], how likely each is by itself, of each word one above 0.
            documents: int64 [B + 1], where each text starts.
        """
        t, c = words.shape
        words = np.concatenate([words, np.full((2, c), -1)])  # an edge, and nothing at all
        words[t, 0] = self.trigrams.edge
        likely = np.concatenate([likely, np.zeros((2, c))])
        likely[t:, 0] = 1.0
        found = np.empty((t + 2, c))
        sizes = np.diff(documents)
        order, start = np.argsort(-sizes, kind="stable"), 0
        while start < len(order):
            longest = int(sizes[order[start]]) + 1
            some = order[start : start + max(1, CELLS // (longest * min(self.width, c * c) * c))]
            start += len(some)
            place, size = np.arange(longest), sizes[some][:, None]
            at = np.where(place < size, documents[some][:, None] + place, t + (place > size))
            for which, each in self._yield_posteriors(words, likely, at):
                found[which] = each
        return found[:t]

    def _yield_posteriors(
        self, words: Ids, likely: Values, at: Ids
    ) -> Iterator[tuple[Ids, Values]]:
        """Yields places and posterior probabilities [R, C], from last to first.

        The beam runs forward, then backward, over the words `at` [R, L] of R texts.
        """
        r, c = len(at), words.shape[1]
        text = np.arange(r)[:, None]
        # pairs: C times the first, and the second
        kept = np.zeros((r, 1), np.int64)
        mass = np.ones((r, 1))
        # the words of both
        first = np.full((r, c), -1)
        second = np.full((r, c), self.trigrams.edge)
        steps = list[tuple[Ids, Values, Ids, Ids, Values]]()
        for place in at.T:
            last, own = kept % c, words[place]
            u, v = first[text, kept // c], second[text, last]
            goes = (
                self.trigrams.ratios(u[:, :, None], v[:, :, None], own[:, None, :]) ** self.weight
            )
            goes *= likely[place][:, None, :]
            into = ((text * c + last) * c)[:, :, None] + np.arange(c)
            reached = np.bincount(
                into.ravel(), (mass[:, :, None] * goes).ravel(), r * c * c
            ).reshape(r, c * c)
            kept = np.argpartition(reached, -min(self.width, c * c), axis=1)[
                :, -min(self.width, c * c) :
            ]
            reach = reached[text, kept]
            mass = reach / reach.sum(axis=1, keepdims=True)
            steps.append((place, goes, last, kept, mass))
            first, second = second, own
        onward = np.ones(mass.shape)
        for place, goes, last, kept, mass in reversed(steps):
            weighed = np.bincount(
                (text * c + kept % c).ravel(), (mass * onward).ravel(), r * c
            ).reshape(r, c)
            yield place, weighed / weighed.sum(axis=1, keepdims=True)
            ahead = np.zeros((r, c * c))
            ahead[text, kept] = onward
            further = (goes * ahead.reshape(r, c, c)[text, last]).sum(axis=2)
            onward = further / further.max(axis=1, keepdims=True)
