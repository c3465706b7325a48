"""A linear estimate of words that a mechanism mixes with their neighbours.

It is learned from a simulation.

In: releases of a window, what is believed of the words around. Out: a score of every row for every
position.
Not here: all words of a text weighed together (`joint`), and mechanisms that change each word by
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

from textveil.evaluate.attack.case import View
from textveil.evaluate.attack.chain import chain_of, neighbour
from textveil.evaluate.attack.weights import logistic
from textveil.mechanism import Windowed
from textveil.randomness import Floats, Ids, Values
from textveil.table import EmbeddingTable

REACH = 6
"""The largest distance of words that are used."""

TOGETHER = 256
"""Positions whose vectors are held at once.

100 MB for a window of 13 words, d = 384 and two kinds of evidence.
"""

TRIED = 400
"""Positions on which the weight of the distance is fitted.

All rows are weighed for each.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedEvidence:
    """The evidence around n protected positions, as rows and expected vectors.

    Attributes:
        vectors: the table that the mechanism takes vectors from.
        rows: int64 [n, F], rows released or passed at each offset, -1 for none.
        beside: int64 [n, G], protected positions at each offset but 0, -1 for none.
        expected: float32 [n, d], the expected vector of each position; None if nothing is believed
            yet.
    """

    vectors: EmbeddingTable
    rows: Ids = field(repr=False)
    beside: Ids = field(repr=False)
    expected: Floats | None = field(default=None, repr=False)

    @classmethod
    def of(cls, view: View, expected: Floats | None = None) -> Self:
        """Collects the evidence around each position of windowed releases.

        Args:
            view: the releases.
            expected: float32 [n, d].
        """
        assert isinstance(view.mechanism, Windowed), "refused otherwise"
        chain = chain_of(view.mechanism, view.layout, view.drawn, view.passed, view.parameter)
        reach = min(REACH, 2 * max(map(abs, chain.offsets)))
        own = np.searchsorted(chain.place, view.layout.positions)
        number = np.full(len(chain.place), -1)
        number[own] = np.arange(len(own))
        rows, beside = list[Ids](), list[Ids]()
        for offset in range(-reach, reach + 1):
            place, inside = neighbour(chain.text, offset)
            for known in (chain.drawn, chain.passed):
                if (known >= 0).any():
                    rows.append(np.where(inside, known[place], -1)[own])
            if offset:
                beside.append(np.where(inside, number[place], -1)[own])
        return cls(
            vectors=view.mechanism.view(view.table),
            rows=np.stack(rows, axis=1),
            beside=np.stack(beside, axis=1),
            expected=expected,
        )

    def parts(self, centre: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yields slices of positions with their evidence vectors [p, F', d].

        `centre` is one of the vectors.
        """
        for start in range(0, len(self.rows), TOGETHER):
            some = slice(start, start + TOGETHER)
            found = [
                self.vectors.take(np.maximum(self.rows[some], 0))
                * (self.rows[some] >= 0)[:, :, None]
            ]
            if self.expected is not None:
                here = self.beside[some]
                found.append(self.expected[np.maximum(here, 0)] * (here >= 0)[:, :, None])
            found.append(np.broadcast_to(centre, (len(found[0]), 1, len(centre))))
            yield some, np.concatenate(found, axis=1)


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
        own = table.take(truth)
        centre = own.mean(axis=0)
        moments, shared = 0.0, 0.0
        for some, around in evidence.parts(centre):
            moments = moments + np.einsum("pfd,pgd->fg", around, around, optimize=True).astype(
                np.float64
            )
            shared = shared + np.einsum("pfd,pd->f", around, own[some], optimize=True).astype(
                np.float64
            )
        found = np.linalg.lstsq(np.asarray(moments), np.asarray(shared), rcond=1e-6)[0]
        rough = cls(weights=found, centre=centre, scale=1.0)
        estimated = rough.vectors(evidence)
        spread = max(float(np.square(own - estimated).mean()), 1e-12)
        tried = np.linspace(0, len(truth) - 1, min(TRIED, len(truth))).astype(np.int64)
        features = np.zeros((len(tried), len(table), 3), np.float32)
        features[:, :, 0] = np.maximum(log_prior, log_prior[np.isfinite(log_prior)].min())
        features[:, :, 2] = rough.lines(table, estimated[tried]) / spread
        weight = max(float(logistic(features, truth[tried])[2]), 0.0)
        return cls(weights=found, centre=centre, scale=weight / spread)

    def vectors(self, evidence: MixedEvidence) -> Floats:
        """Estimates the vector of each position: float32 [n, d]."""
        found = np.empty((len(evidence.rows), len(self.centre)), np.float32)
        for some, around in evidence.parts(self.centre):
            found[some] = np.einsum(
                "pfd,f->pd", around, self.weights.astype(np.float32), optimize=True
            )
        return found

    def lines(self, table: EmbeddingTable, estimated: Floats) -> Floats:
        """Returns the score of every row: float32 [p, V].

        For positions with the estimates [p, d].
        """
        found = [
            self.scale * (estimated @ rows.T - np.square(rows).sum(axis=1) / 2)
            for rows in table.slabs()
        ]
        return np.concatenate(found, axis=1).astype(np.float32, copy=False)

    def scores(self, table: EmbeddingTable, estimated: Floats, rows: Ids) -> Floats:
        """Returns the scores of given rows [n, K] of each position.

        float32 [n, K].
        """
        found = np.empty(rows.shape, np.float32)
        for start in range(0, len(rows), TOGETHER):
            some = slice(start, start + TOGETHER)
            vectors = table.take(rows[some].ravel()).reshape(*rows[some].shape, -1)
            products = np.einsum("pkd,pd->pk", vectors, estimated[some], optimize=True)
            found[some] = self.scale * (products - np.square(vectors).sum(axis=2) / 2)
        return found


def expected(table: EmbeddingTable, rows: Ids, probability: Values) -> Floats:
    """Computes the mean vector of rows [n, K] under probabilities.

    float32 [n, d].
    """
    found = np.empty((len(rows), table.dimension), np.float32)
    for start in range(0, len(rows), TOGETHER):
        some = slice(start, start + TOGETHER)
        vectors = table.take(rows[some].ravel()).reshape(*rows[some].shape, -1)
        found[some] = np.einsum(
            "pkd,pk->pd", vectors, probability[some].astype(np.float32), optimize=True
        )
    return found
