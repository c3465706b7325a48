"""Beam search over whole texts under a trigram model of public texts.

In: what is known of the candidates of each word, what public text teaches. Out: how likely each
candidate is, over whole texts.
Not here: which words are candidates (`candidates`), and what stands around a word
(`context_features`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from textveil.config.extras import explain_missing
from textveil.evaluate.attack.context_features import WordContext
from textveil.evaluate.attack.knowledge import Knowledge, NeighbourRatios, SparseArray
from textveil.evaluate.log_math import find_highest
from textveil.randomness import Ids, Values

BEAM_CANDIDATES = 24
"""Candidates of each word that enter the beam search."""

TRIGRAM_POWER = 0.5
"""The power of the trigram model's ratios.

Half, because the neighbours were already weighed before.
"""

MIN_PROBABILITY = 1e-5
"""The lowest probability that a candidate is given."""

MAX_BEAM_PROBABILITIES = 1 << 23
"""Probabilities that are in memory at once: 64 MiB."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrigramRatios:
    """Trigram likelihood ratios P(c | u, v) / P(c).

    Of word c behind v, which is behind u.

    Words are numbers below U, U is the edge of a text, and -1 a word that is not known, which tells
    nothing: the last line and column of every array.

    Attributes:
        word_ratios: of one word before: P(c | v) / P(c) = base[v] + ratio[v, c], both [U + 2, ...].
        pair: int64 [U + 2, U + 2], the number of each two words that stood side by side, from 1; 0
            for all others.
        pair_ratios: of a pair before: P(c | u, v) / P(c) = base[pair] P(c | v) / P(c) + ratio[pair, c].
    """

    word_ratios: NeighbourRatios
    pair: SparseArray = field(repr=False)
    pair_ratios: NeighbourRatios

    @classmethod
    def count(cls, knowledge: Knowledge) -> Self:
        """Counts the bigrams and trigrams of public texts."""
        with explain_missing():
            from scipy import sparse

        edge, line, neighbours = len(knowledge), knowledge.line, knowledge.neighbours[-1]
        ratio, size = neighbours.ratio.copy(), (edge + 2, edge + 2)
        ratio.resize(size)
        pair = sparse.csr_array(
            (np.arange(1, ratio.nnz + 1), ratio.indices, ratio.indptr), shape=size
        )
        before, third = pair[line[:-2], line[1:-1]], line[2:]
        mask = (before > 0) & (line[1:-1] != edge) & (third >= 0)
        count = sparse.coo_array(
            (np.ones(int(mask.sum())), (before[mask], third[mask])), shape=(ratio.nnz + 1, edge + 2)
        )
        return cls(
            word_ratios=NeighbourRatios(ratio=ratio, base=np.append(neighbours.base, 1.0)),
            pair=pair,
            pair_ratios=NeighbourRatios.build(count.tocsr(), knowledge.share),
        )

    @property
    def edge(self) -> int:
        """U, the number that marks the edge of a text."""
        return len(self.word_ratios.base) - 2

    def compute_ratios(self, u: Ids, v: Ids, c: Ids) -> Values:
        """Returns the ratios P(c | u, v) / P(c) of adjacent words.

        float64, of the shape to which u, v and c are broadcast.
        """
        pair = _read_entries(self.pair, u, v)
        backoff = self.pair_ratios.base[pair] * (
            self.word_ratios.base[v] + _read_entries(self.word_ratios.ratio, v, c)
        )
        return np.where(c < 0, 1.0, backoff + _read_entries(self.pair_ratios.ratio, pair, c))


def _read_entries(table: SparseArray, rows: Ids, columns: Ids) -> Any:
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

    trigrams: TrigramRatios
    width: int
    weight: float = TRIGRAM_POWER

    def score_candidates(
        self, word_context: WordContext, candidates: Ids, probability: Values, positions: Ids
    ) -> Values:
        """Returns the log probability of each candidate over the kept texts.

        float64 [m, K].

        Args:
            word_context: the cells.
            candidates: int64 [m, K], numbers of words.
            probability: [m, K], of each by itself.
            positions: int64 [n], where the words stand among the T words.
        """
        best = find_highest(probability, min(BEAM_CANDIDATES, probability.shape[1]))
        words = np.full((len(word_context.visible_words), best.shape[1]), -1)
        words[:, 0] = word_context.visible_words
        likely = np.zeros(words.shape)
        likely[:, 0] = 1.0
        words[positions] = np.take_along_axis(candidates, best, axis=1)[word_context.cell_of]
        likely[positions] = np.take_along_axis(probability, best, axis=1)[word_context.cell_of]
        log_scores = np.log(
            np.maximum(
                self.decode(words, likely, word_context.documents)[positions], MIN_PROBABILITY
            )
        )
        scores = np.full(probability.shape, np.log(MIN_PROBABILITY))
        # of the positions of a cell
        mean = (word_context.members @ log_scores) / np.diff(word_context.members.indptr)[:, None]
        np.put_along_axis(scores, best, mean, axis=1)
        return scores

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
        posteriors = np.empty((t + 2, c))
        sizes = np.diff(documents)
        order, start = np.argsort(-sizes, kind="stable"), 0
        while start < len(order):
            longest = int(sizes[order[start]]) + 1
            batch = order[
                start : start
                + max(1, MAX_BEAM_PROBABILITIES // (longest * min(self.width, c * c) * c))
            ]
            start += len(batch)
            place, size = np.arange(longest), sizes[batch][:, None]
            at = np.where(place < size, documents[batch][:, None] + place, t + (place > size))
            for which, posterior in self._yield_posteriors(words, likely, at):
                posteriors[which] = posterior
        return posteriors[:t]

    def _yield_posteriors(
        self, words: Ids, likely: Values, at: Ids
    ) -> Iterator[tuple[Ids, Values]]:
        """Yields places and posterior probabilities [R, C], from last to first.

        The beam runs forward, then backward, over the words `at` [R, L] of R texts.
        """
        r, c = len(at), words.shape[1]
        text = np.arange(r)[:, None]
        # pairs: C times the first, and the second
        pairs = np.zeros((r, 1), np.int64)
        mass = np.ones((r, 1))
        # the words of both
        first = np.full((r, c), -1)
        second = np.full((r, c), self.trigrams.edge)
        steps = list[tuple[Ids, Values, Ids, Ids, Values]]()
        for place in at.T:
            last, candidates = pairs % c, words[place]
            u, v = first[text, pairs // c], second[text, last]
            transitions = (
                self.trigrams.compute_ratios(u[:, :, None], v[:, :, None], candidates[:, None, :])
                ** self.weight
            )
            transitions *= likely[place][:, None, :]
            targets = ((text * c + last) * c)[:, :, None] + np.arange(c)
            pair_mass = np.bincount(
                targets.ravel(), (mass[:, :, None] * transitions).ravel(), r * c * c
            ).reshape(r, c * c)
            pairs = np.argpartition(pair_mass, -min(self.width, c * c), axis=1)[
                :, -min(self.width, c * c) :
            ]
            beam_mass = pair_mass[text, pairs]
            mass = beam_mass / beam_mass.sum(axis=1, keepdims=True)
            steps.append((place, transitions, last, pairs, mass))
            first, second = second, candidates
        backward_mass = np.ones(mass.shape)
        for place, transitions, last, pairs, mass in reversed(steps):
            posterior_mass = np.bincount(
                (text * c + pairs % c).ravel(), (mass * backward_mass).ravel(), r * c
            ).reshape(r, c)
            yield place, posterior_mass / posterior_mass.sum(axis=1, keepdims=True)
            next_mass = np.zeros((r, c * c))
            next_mass[text, pairs] = backward_mass
            backward_sums = (transitions * next_mass.reshape(r, c, c)[text, last]).sum(axis=2)
            backward_mass = backward_sums / backward_sums.max(axis=1, keepdims=True)
