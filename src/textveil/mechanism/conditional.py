"""Law of selecting rules given a language model's logits at a position.

In: a rule, a utility, the logits at a position. Out: ln P(released row | private row) for many
private words at once, as `Contextual` has it.
Not here: the law of one private word, and draws (`select`), and who knows the logits
(`evaluate.attack.context`).

The logits are the same for all private rows; only the distance depends on the private row.
"""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from textveil.mechanism.buckets import Bucketized, Buckets
from textveil.mechanism.staircase import Staircase
from textveil.mechanism.utility import Hybrid
from textveil.randomness import Floats, Ids, Values
from textveil.table import EmbeddingTable

FIRST = 512
"""Number of best liked candidates that are ranked first."""

KNOWN = 512
"""Number of best liked candidates that are counted exactly in buckets."""

COUNTED = 512
"""Number of sampled candidates that represent the remaining ones."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Near:
    """Distance part of the scores of some private rows.

    Attributes:
        rows: int64 [m].
        itself: float64 [m], of each row to itself.
        others: float64 [V, m], of each row to all others; to itself it is less than any of them.
        best: float64 [m], the largest of them.
    """

    rows: Ids
    itself: Values
    others: Values
    best: Values

    def to(self, candidates: Ids) -> Values:
        """Returns the distance part for some candidates, [c, m]."""
        return np.where(candidates[:, None] == self.rows, self.itself, self.others[candidates])


@dataclass(frozen=True, kw_only=True, eq=False)
class _Given:
    """A utility, and the logits' part of the scores of all candidates.

    Attributes:
        utility: joins the distance and the logits to a score.
        table: its words are the candidates.
        liked: float64 [V], the logits' part of a score.
        order: int32 [V], the candidates from the best liked on.
    """

    utility: Hybrid
    table: EmbeddingTable
    liked: Values = field(repr=False)
    order: NDArray[np.int32] = field(repr=False)

    @property
    def kind(self) -> tuple[str, str, float]:
        """Key of laws that have the same `near`."""
        return self.utility.distance, self.utility.form, self.utility.lambda_D

    def near(self, rows: Ids) -> Near:
        """Computes the distance part of the scores of private rows [m]."""
        others = np.ascontiguousarray(self.utility.near(self.table, rows).T)
        each = np.arange(len(rows))
        itself = others[rows, each]
        others[rows, each] = -np.inf if self.utility.form == "additive" else 0.0
        return Near(rows=rows, itself=itself, others=others, best=others.max(axis=0))


@dataclass(frozen=True, kw_only=True, eq=False)
class RanksGiven(_Given):
    """The exact law of a staircase, given logits."""

    rule: Staircase

    @classmethod
    def of(cls, rule: Staircase, utility: Hybrid, table: EmbeddingTable, logits: Floats) -> Self:
        """Builds the law for a language model's logits [V]."""
        liked = utility.liked(table, logits)
        order = np.argsort(-liked, kind="stable").astype(np.int32)
        return cls(rule=rule, utility=utility, table=table, liked=liked, order=order)

    def log_probs(self, near: Near, released: Ids, parameter: Values) -> Values:
        """Returns ln P(released row [q] | private row), [q, m].

        Under the parameter [q] of each released row.
        """
        ends = self.rule.ends(self.table)
        weights = self.rule.weights(parameter).astype(np.float64)
        logs = np.log(weights) - np.log(weights @ np.diff(ends, prepend=0))[:, None]
        ranks = np.stack([self._count_ranks(near, row, int(ends[-2])) for row in released.tolist()])
        law: Values = np.take_along_axis(
            logs, np.searchsorted(ends[:-1], ranks, side="right"), axis=1
        )
        return law

    def _count_ranks(self, near: Near, row: int, most: int) -> Ids:
        """Counts the candidates that score higher than a released row [m].

        One count for each private row; counting may stop at `most`. Candidates are visited from the
        best liked on. None of the rest can score higher than the best liked of them would as the
        nearest neighbour of the private row.
        """
        join, liked = self.utility.join, self.liked
        released_scores = join(near.to(np.array([row]))[0], liked[row])
        ranks: Ids = (join(near.itself, liked[near.rows]) > released_scores).astype(np.int64)
        left, start, size = np.arange(len(released_scores)), 0, FIRST
        while len(left) and start < len(liked):
            some = self.order[start : start + size]
            scores = (
                near.others[some]
                if len(left) == len(released_scores)
                else near.others[np.ix_(some, left)]
            )
            ranks[left] += (join(scores, liked[some, None]) > released_scores[left]).sum(axis=0)
            start, size = start + size, 2 * size
            if start < len(liked):
                left = left[
                    (ranks[left] < most)
                    & (join(near.best[left], liked[self.order[start]]) > released_scores[left])
                ]
        return ranks


@dataclass(frozen=True, kw_only=True, eq=False)
class BucketsGiven(_Given):
    """The law of Cape's buckets, given logits.

    In large tables a sample represents the candidates that are not liked best.
    """

    rule: Bucketized

    @classmethod
    def of(cls, rule: Bucketized, utility: Hybrid, table: EmbeddingTable, logits: Floats) -> Self:
        """Builds the law for a language model's logits [V]."""
        liked = utility.liked(table, logits)
        order = np.argsort(-liked, kind="stable").astype(np.int32)
        return cls(rule=rule, utility=utility, table=table, liked=liked, order=order)

    @staticmethod
    def approximation(table: EmbeddingTable) -> str:
        """Describes how the law is estimated.

        Empty where all candidates are counted.
        """
        return "" if len(table) <= KNOWN else "from some of the candidates in each bucket"

    def log_probs(self, near: Near, released: Ids, parameter: Values) -> Values:
        """Returns ln P(released row [q] | private row), [q, m].

        Under the parameter [q] of each released row.
        """
        join, liked, rule = self.utility.join, self.liked, self.rule
        known = np.union1d(self.order[:KNOWN], released)
        rest = self.order[~np.isin(self.order, known)]
        step = max(1, len(rest) // COUNTED)
        some = rest[step // 2 :: step]
        kept = np.concatenate([known, some])
        stands = np.concatenate(
            [np.ones(len(known)), np.full(len(some), len(rest) / max(1, len(some)))]
        )
        itself = join(near.itself, liked[near.rows])
        scores = np.concatenate([join(near.to(kept), liked[kept, None]), itself[None]])
        # the row itself comes last, and once
        counted = np.where(kept[:, None] == near.rows, 0.0, stands[:, None])
        counted = np.concatenate([counted, np.ones((1, len(itself)))])
        ends = self.utility.ends(self.table) if rule.edges == "public" else None
        cut = Buckets.of(scores.T, rule.buckets, ends, counted=counted.T)
        rates = rule.rate(self.table, self.utility, parameter)
        numbers = cut.number[:, np.searchsorted(known, released)]
        each = np.arange(len(itself))
        return np.stack(
            [
                cut.log_probs(np.full(len(each), rate))[each, numbers[:, q]]
                for q, rate in enumerate(rates)
            ]
        )
