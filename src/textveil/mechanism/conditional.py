"""Law of selecting rules given a language model's logits at a position.

In: a rule, a utility, the logits at a position. Out: ln P(released row | private row) for many
private words at once, as `Contextual` has it.
Not here: the law of one private word, and draws (`select`), and who knows the logits
(`evaluate.attack.context_channel`).

The logits are the same for all private rows; only the distance depends on the private row.
"""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from textveil.mechanism.buckets import BucketRule, Buckets
from textveil.mechanism.staircase import Staircase
from textveil.mechanism.utility import Hybrid
from textveil.randomness import Floats, Ids, Values
from textveil.table import EmbeddingTable

FIRST_RANKED = 512
"""Number of best liked candidates that are ranked first."""

EXACT_CANDIDATES = 512
"""Number of best liked candidates that are counted exactly in buckets."""

SAMPLED_CANDIDATES = 512
"""Number of sampled candidates that represent the remaining ones."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DistanceScores:
    """Distance part of the scores of some private rows.

    Attributes:
        rows: int64 [m].
        self_scores: float64 [m], of each row to itself.
        other_scores: float64 [V, m], of each row to all others; to itself it is less than any of
            them.
        best: float64 [m], the largest of them.
    """

    rows: Ids
    self_scores: Values
    other_scores: Values
    best: Values

    def select(self, candidates: Ids) -> Values:
        """Returns the distance part for some candidates, [c, m]."""
        return np.where(
            candidates[:, None] == self.rows, self.self_scores, self.other_scores[candidates]
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _ConditionalLaw:
    """A utility, and the logits' part of the scores of all candidates.

    Attributes:
        utility: joins the distance and the logits to a score.
        table: its words are the candidates.
        logit_scores: float64 [V], the logits' part of a score.
        order: int32 [V], the candidates from the best liked on.
    """

    utility: Hybrid
    table: EmbeddingTable
    logit_scores: Values = field(repr=False)
    order: NDArray[np.int32] = field(repr=False)

    @property
    def kind(self) -> tuple[str, str, float]:
        """Key of laws that have the same `score_distances`."""
        return self.utility.distance, self.utility.form, self.utility.lambda_D

    def score_distances(self, rows: Ids) -> DistanceScores:
        """Computes the distance part of the scores of private rows [m]."""
        other_scores = np.ascontiguousarray(self.utility.score_distances(self.table, rows).T)
        lines = np.arange(len(rows))
        self_scores = other_scores[rows, lines]
        other_scores[rows, lines] = -np.inf if self.utility.form == "additive" else 0.0
        return DistanceScores(
            rows=rows,
            self_scores=self_scores,
            other_scores=other_scores,
            best=other_scores.max(axis=0),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ConditionalRanks(_ConditionalLaw):
    """The exact law of a staircase, given logits."""

    rule: Staircase

    @classmethod
    def build(cls, rule: Staircase, utility: Hybrid, table: EmbeddingTable, logits: Floats) -> Self:
        """Builds the law for a language model's logits [V]."""
        logit_scores = utility.score_logits(table, logits)
        order = np.argsort(-logit_scores, kind="stable").astype(np.int32)
        return cls(rule=rule, utility=utility, table=table, logit_scores=logit_scores, order=order)

    def log_probs(
        self, distance_scores: DistanceScores, released: Ids, parameter: Values
    ) -> Values:
        """Returns ln P(released row [q] | private row), [q, m].

        Under the parameter [q] of each released row.
        """
        ends = self.rule.compute_level_ends(self.table)
        weights = self.rule.compute_weights(parameter).astype(np.float64)
        logs = np.log(weights) - np.log(weights @ np.diff(ends, prepend=0))[:, None]
        ranks = np.stack(
            [self._count_ranks(distance_scores, row, int(ends[-2])) for row in released.tolist()]
        )
        law: Values = np.take_along_axis(
            logs, np.searchsorted(ends[:-1], ranks, side="right"), axis=1
        )
        return law

    def _count_ranks(self, distance_scores: DistanceScores, row: int, max_rank: int) -> Ids:
        """Counts the candidates that score higher than a released row [m].

        One count for each private row; counting may stop at `max_rank`. Candidates are visited from
        the best liked on. None of the rest can score higher than the best liked of them would as
        the nearest neighbour of the private row.
        """
        join, logit_scores = self.utility.join, self.logit_scores
        released_scores = join(distance_scores.select(np.array([row]))[0], logit_scores[row])
        ranks: Ids = (
            join(distance_scores.self_scores, logit_scores[distance_scores.rows]) > released_scores
        ).astype(np.int64)
        open_rows, start, size = np.arange(len(released_scores)), 0, FIRST_RANKED
        while len(open_rows) and start < len(logit_scores):
            chunk = self.order[start : start + size]
            scores = (
                distance_scores.other_scores[chunk]
                if len(open_rows) == len(released_scores)
                else distance_scores.other_scores[np.ix_(chunk, open_rows)]
            )
            ranks[open_rows] += (
                join(scores, logit_scores[chunk, None]) > released_scores[open_rows]
            ).sum(axis=0)
            start, size = start + size, 2 * size
            if start < len(logit_scores):
                open_rows = open_rows[
                    (ranks[open_rows] < max_rank)
                    & (
                        join(distance_scores.best[open_rows], logit_scores[self.order[start]])
                        > released_scores[open_rows]
                    )
                ]
        return ranks


@dataclass(frozen=True, kw_only=True, eq=False)
class ConditionalBuckets(_ConditionalLaw):
    """The law of Cape's buckets, given logits.

    In large tables a sample represents the candidates that are not liked best.
    """

    rule: BucketRule

    @classmethod
    def build(
        cls, rule: BucketRule, utility: Hybrid, table: EmbeddingTable, logits: Floats
    ) -> Self:
        """Builds the law for a language model's logits [V]."""
        logit_scores = utility.score_logits(table, logits)
        order = np.argsort(-logit_scores, kind="stable").astype(np.int32)
        return cls(rule=rule, utility=utility, table=table, logit_scores=logit_scores, order=order)

    @staticmethod
    def describe_approximation(table: EmbeddingTable) -> str:
        """Describes how the law is estimated.

        Empty where all candidates are counted.
        """
        return (
            "" if len(table) <= EXACT_CANDIDATES else "from some of the candidates in each bucket"
        )

    def log_probs(
        self, distance_scores: DistanceScores, released: Ids, parameter: Values
    ) -> Values:
        """Returns ln P(released row [q] | private row), [q, m].

        Under the parameter [q] of each released row.
        """
        join, logit_scores, rule = self.utility.join, self.logit_scores, self.rule
        exact_candidates = np.union1d(self.order[:EXACT_CANDIDATES], released)
        other_candidates = self.order[~np.isin(self.order, exact_candidates)]
        step = max(1, len(other_candidates) // SAMPLED_CANDIDATES)
        sample = other_candidates[step // 2 :: step]
        candidates = np.concatenate([exact_candidates, sample])
        weights = np.concatenate(
            [
                np.ones(len(exact_candidates)),
                np.full(len(sample), len(other_candidates) / max(1, len(sample))),
            ]
        )
        self_scores = join(distance_scores.self_scores, logit_scores[distance_scores.rows])
        scores = np.concatenate(
            [
                join(distance_scores.select(candidates), logit_scores[candidates, None]),
                self_scores[None],
            ]
        )
        # the row itself comes last, and once
        multiplicity = np.where(candidates[:, None] == distance_scores.rows, 0.0, weights[:, None])
        multiplicity = np.concatenate([multiplicity, np.ones((1, len(self_scores)))])
        ends = self.utility.get_score_range(self.table) if rule.edges == "public" else None
        cut = Buckets.build(scores.T, rule.buckets, ends, multiplicity=multiplicity.T)
        rates = rule.compute_rate(self.table, self.utility, parameter)
        numbers = cut.number[:, np.searchsorted(exact_candidates, released)]
        lines = np.arange(len(self_scores))
        return np.stack(
            [
                cut.log_probs(np.full(len(lines), rate))[lines, numbers[:, q]]
                for q, rate in enumerate(rates)
            ]
        )
