"""A linear estimate of words that a mechanism mixes with their neighbours.

It is learned from a simulation.

In: releases of a window, what is believed of the words around. Out: a score of every row for every
position.
Not here: all words of a text weighed together (`joint_posterior`), and mechanisms that change each word by
itself (`channel`).

A released row is near a weighted mean of several words. So the vector of one of them is estimated
by a weighted sum of the rows released around it, of words that passed, and of what its neighbours
are taken to be. The weights are those of least squares on releases that the attacker made (Wiener's
filter); how much a distance from the estimate counts is fitted there, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from textveil.evaluate.attack.attack_input import View
from textveil.evaluate.attack.chain import build_chain, find_neighbours
from textveil.evaluate.attack.ranking_model import fit_logistic
from textveil.mechanism import Windowed
from textveil.randomness import Floats, Ids, Values
from textveil.table import EmbeddingTable

MAX_EVIDENCE_DISTANCE = 6
"""The largest distance of words that are used."""

POSITIONS_AT_ONCE = 256
"""Positions whose vectors are held at once.

100 MB for a window of 13 words, d = 384 and two kinds of evidence.
"""

TRIAL_POSITIONS = 400
"""Positions on which the weight of the distance is fitted.

All rows are weighed for each.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedEvidence:
    """The evidence around n protected positions, as rows and expected vectors.

    Attributes:
        vectors: the table that the mechanism takes vectors from.
        rows: int64 [n, F], rows released or passed at each offset, -1 for none.
        neighbours: int64 [n, G], protected positions at each offset but 0, -1 for none.
        expected_vectors: float32 [n, d], the expected vector of each position; None if nothing is
            believed yet.
    """

    vectors: EmbeddingTable
    rows: Ids = field(repr=False)
    neighbours: Ids = field(repr=False)
    expected_vectors: Floats | None = field(default=None, repr=False)

    @classmethod
    def build(cls, view: View, expected_vectors: Floats | None = None) -> Self:
        """Collects the evidence around each position of windowed releases.

        Args:
            view: the releases.
            expected_vectors: float32 [n, d].
        """
        assert isinstance(view.mechanism, Windowed), "refused otherwise"
        chain = build_chain(
            view.mechanism, view.layout, view.output_rows, view.pass_rows, view.parameter
        )
        reach = min(MAX_EVIDENCE_DISTANCE, 2 * max(map(abs, chain.offsets)))
        positions = np.searchsorted(chain.place, view.layout.positions)
        number = np.full(len(chain.place), -1)
        number[positions] = np.arange(len(positions))
        rows, neighbours = list[Ids](), list[Ids]()
        for offset in range(-reach, reach + 1):
            place, inside = find_neighbours(chain.text, offset)
            for source_rows in (chain.output_rows, chain.pass_rows):
                if (source_rows >= 0).any():
                    rows.append(np.where(inside, source_rows[place], -1)[positions])
            if offset:
                neighbours.append(np.where(inside, number[place], -1)[positions])
        return cls(
            vectors=view.mechanism.get_view(view.table),
            rows=np.stack(rows, axis=1),
            neighbours=np.stack(neighbours, axis=1),
            expected_vectors=expected_vectors,
        )

    def yield_parts(self, centre: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yields slices of positions with their evidence vectors [p, F', d].

        `centre` is one of the vectors.
        """
        for start in range(0, len(self.rows), POSITIONS_AT_ONCE):
            part = slice(start, start + POSITIONS_AT_ONCE)
            evidence = [
                self.vectors.take(np.maximum(self.rows[part], 0))
                * (self.rows[part] >= 0)[:, :, None]
            ]
            if self.expected_vectors is not None:
                neighbours = self.neighbours[part]
                evidence.append(
                    self.expected_vectors[np.maximum(neighbours, 0)] * (neighbours >= 0)[:, :, None]
                )
            evidence.append(np.broadcast_to(centre, (len(evidence[0]), 1, len(centre))))
            yield part, np.concatenate(evidence, axis=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class WordEstimate:
    """A linear estimate of a word's vector from those around it.

    Attributes:
        weights: float64 [F'], of the vectors around.
        centre: float32 [d], the mean of private words.
        scale: by how much ln of the probability falls where half the squared distance from the
            estimate rises by 1.
    """

    weights: Values
    centre: Floats = field(repr=False)
    scale: float

    @classmethod
    def fit(cls, evidence: MixedEvidence, truth: Ids, log_prior: Values) -> Self:
        """Fits the least-squares estimate on releases whose words are known.

        Args:
            evidence: the evidence around n positions, n > 0.
            truth: int64 [n], the rows of the words there.
            log_prior: float64 [V], ln of the share of each row among private words.
        """
        table = evidence.vectors
        true_vectors = table.take(truth)
        centre = true_vectors.mean(axis=0)
        moments, shared = 0.0, 0.0
        for part, vectors in evidence.yield_parts(centre):
            moments = moments + np.einsum("pfd,pgd->fg", vectors, vectors, optimize=True).astype(
                np.float64
            )
            shared = shared + np.einsum(
                "pfd,pd->f", vectors, true_vectors[part], optimize=True
            ).astype(np.float64)
        weights = np.linalg.lstsq(np.asarray(moments), np.asarray(shared), rcond=1e-6)[0]
        rough = cls(weights=weights, centre=centre, scale=1.0)
        estimates = rough.estimate_vectors(evidence)
        spread = max(float(np.square(true_vectors - estimates).mean()), 1e-12)
        trials = np.linspace(0, len(truth) - 1, min(TRIAL_POSITIONS, len(truth))).astype(np.int64)
        features = np.zeros((len(trials), len(table), 3), np.float32)
        features[:, :, 0] = np.maximum(log_prior, log_prior[np.isfinite(log_prior)].min())
        features[:, :, 2] = rough.score_all_rows(table, estimates[trials]) / spread
        weight = max(float(fit_logistic(features, truth[trials])[2]), 0.0)
        return cls(weights=weights, centre=centre, scale=weight / spread)

    def estimate_vectors(self, evidence: MixedEvidence) -> Floats:
        """Estimates the vector of each position: float32 [n, d]."""
        estimates = np.empty((len(evidence.rows), len(self.centre)), np.float32)
        for part, vectors in evidence.yield_parts(self.centre):
            estimates[part] = np.einsum(
                "pfd,f->pd", vectors, self.weights.astype(np.float32), optimize=True
            )
        return estimates

    def score_all_rows(self, table: EmbeddingTable, estimates: Floats) -> Floats:
        """Returns the score of every row: float32 [p, V].

        For positions with the estimates [p, d].
        """
        # Half the squared distance, negative, without the estimate's own square, which is the same
        # for all rows.
        scores = [
            self.scale * (estimates @ rows.T - np.square(rows).sum(axis=1) / 2)
            for rows in table.yield_slabs()
        ]
        return np.concatenate(scores, axis=1).astype(np.float32, copy=False)

    def score_rows(self, table: EmbeddingTable, estimates: Floats, rows: Ids) -> Floats:
        """Returns the scores of given rows [n, K] of each position.

        float32 [n, K].
        """
        scores = np.empty(rows.shape, np.float32)
        for start in range(0, len(rows), POSITIONS_AT_ONCE):
            part = slice(start, start + POSITIONS_AT_ONCE)
            vectors = table.take(rows[part].ravel()).reshape(*rows[part].shape, -1)
            products = np.einsum("pkd,pd->pk", vectors, estimates[part], optimize=True)
            scores[part] = self.scale * (products - np.square(vectors).sum(axis=2) / 2)
        return scores


def compute_mean_vectors(table: EmbeddingTable, rows: Ids, probability: Values) -> Floats:
    """Computes the mean vector of rows [n, K] under probabilities.

    float32 [n, d].
    """
    means = np.empty((len(rows), table.dimension), np.float32)
    for start in range(0, len(rows), POSITIONS_AT_ONCE):
        part = slice(start, start + POSITIONS_AT_ONCE)
        vectors = table.take(rows[part].ravel()).reshape(*rows[part].shape, -1)
        means[part] = np.einsum(
            "pkd,pk->pd", vectors, probability[part].astype(np.float32), optimize=True
        )
    return means
