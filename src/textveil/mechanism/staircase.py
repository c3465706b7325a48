"""The rank staircase: draws candidates by rank alone, for unbounded scores.

In: scores, epsilon per position. Out: one candidate; the law.
Not here: where scores come from (`utility`).

Candidates are sorted by score and cut into levels of fixed public sizes; a candidate of level k has
the fixed public weight W_k. Whatever the scores are, the probabilities are the same numbers in
another order, so the ratio of any two of them is at most W_1 / W_K.
"""

import math
from itertools import pairwise
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.errors import ConfigError
from textveil.mechanism.rule import WEIGHT_SCALE
from textveil.mechanism.utility import Scores
from textveil.randomness import Draws, Flags, Floats, Ids, Ints, Values, choose_weighted
from textveil.table import MAX_CACHED_NEIGHBOURS, EmbeddingTable

MAX_LEVELS = 1000

ROWS_AT_ONCE = 64
"""Released rows whose distances to all others are held at once.

11 MB for 21,719 rows.
"""

LISTING_SHARE = 1 / 4
"""Share of all rows from which all nearest rows are listed.

From there listing costs less, and the lists are kept.
"""

TIE_TOLERANCE = 1e-5
"""Largest difference of distances that are computed again.

They are then computed as exactly as ranks are decided.
"""


@make_options()
class Staircase:
    """Levels of ranks with fixed weights, for drawing candidates.

    A candidate of level k is drawn with probability W_k / sum_k n_k W_k. W_k = exp(-epsilon (1 -
    height_k)), rounded up to a multiple of 2^-50, so that the loss is at most epsilon.

    Args:
        sizes: the number of candidates of each level but the last, the best first; the last holds
            all others.
        heights: from 1 (the first level) to 0 (the last), falling; None: in equal steps.

    Raises:
        ConfigError: heights do not fall from 1 to 0, or are not one more than sizes.
    """

    parameter_name: ClassVar[str | None] = None

    sizes: tuple[Annotated[int, Field(ge=1, strict=True)], ...] = (20,)
    heights: tuple[Annotated[float, Field(ge=0, le=1)], ...] | None = None

    def __post_init__(self) -> None:
        heights = self.heights
        if not 1 <= len(self.sizes) <= MAX_LEVELS:
            raise ConfigError(
                f"a staircase needs the sizes of 1 to {MAX_LEVELS} levels, got {len(self.sizes)}"
            )
        if heights is not None and not (
            len(heights) == len(self.sizes) + 1
            and heights[0] == 1
            and heights[-1] == 0
            and all(a >= b for a, b in pairwise(heights))
        ):
            raise ConfigError(
                f"heights must fall from 1 to 0, one for each of the {len(self.sizes) + 1} levels "
                "(sizes and the rest)"
            )

    def compute_weights(self, epsilon: Values) -> Ints:
        """Returns W_k as multiples of 2^-50, int64 [m, K]."""
        heights = (
            np.linspace(1, 0, len(self.sizes) + 1)
            if self.heights is None
            else np.array(self.heights)
        )
        # At a very large epsilon exp is 0, and the last level would lose its words.
        return np.maximum(
            np.ceil(WEIGHT_SCALE * np.exp(-epsilon[:, None] * (1 - heights))), 1
        ).astype(np.int64)

    def compute_level_ends(self, table: EmbeddingTable) -> Ids:
        """Returns the rank after the last of each level, int64 [K].

        A small table has no more ranks than words.
        """
        return np.append(np.minimum(np.cumsum(self.sizes), len(table)), len(table))

    def compute_loss(self, epsilon: Values) -> Values:
        """Returns ln(W_1 / W_K) [m], the loss.

        A hair below epsilon, for weights were rounded up.
        """
        return np.minimum(
            epsilon, math.log(WEIGHT_SCALE) - np.log(self.compute_weights(epsilon)[:, -1])
        )

    def draw(self, draws: Draws, table: EmbeddingTable, scores: Scores, epsilon: Values) -> Ids:
        """Draws one candidate for each row, int64 [m].

        The law is a mixture of uniform draws from the best of the first level, of the first two,
        ..., of all.
        """
        ends, weights = self.compute_level_ends(table), self.compute_weights(epsilon)
        steps = weights - np.append(weights[:, 1:], np.zeros((len(weights), 1), np.int64), axis=1)
        level = choose_weighted(draws, steps, counts=ends)
        rank: Ids = draws.integers(ends[level])
        # for all rows, drawn from or not: time must not reveal the draw
        best = scores.find_best(int(ends[-2]))
        is_ranked = level < len(ends) - 1
        candidates: Ids = np.where(
            is_ranked, best[np.arange(len(rank)), np.where(is_ranked, rank, 0)], rank
        )
        return candidates

    def log_probs(self, table: EmbeddingTable, scores: Scores, epsilon: Values) -> Values:
        """Returns ln P(candidate) [m, V]."""
        ends, weights = (
            self.compute_level_ends(table),
            self.compute_weights(epsilon).astype(np.float64),
        )
        sizes = np.diff(ends, prepend=0)
        logs = np.log(weights) - np.log(weights @ sizes)[:, None]
        law = np.repeat(logs[:, -1:], len(table), axis=1)
        best = scores.find_best(int(ends[-2]))
        np.put_along_axis(law, best, np.repeat(logs[:, :-1], sizes[:-1], axis=1), axis=1)
        return law

    def log_likelihoods(self, table: EmbeddingTable, rows: Ids, epsilon: float) -> Floats:
        """Returns ln P(row | private row) of released rows, float32 [m, V].

        For all private rows, where nearness is the score. A row is on the level of its rank among
        the words near the private one. For many rows that is read from lists of the nearest; for
        few, it takes only their distance, and that of the last word of each level.

        Args:
            table: of V rows.
            rows: int64 [m], distinct.
            epsilon: the loss.
        """
        ends, weights = (
            self.compute_level_ends(table),
            self.compute_weights(np.array([epsilon]))[0].astype(np.float64),
        )
        logs = (np.log(weights) - math.log(weights @ np.diff(ends, prepend=0))).astype(np.float32)
        all_rows, last_rank = np.arange(len(table)), int(ends[-2])
        if len(table) * last_rank <= MAX_CACHED_NEIGHBOURS and (
            len(rows) > LISTING_SHARE * len(table) or table.has_lists(last_rank)
        ):
            near, line = table.neighbours(all_rows, last_rank), np.full(len(table), -1)
            line[rows] = np.arange(len(rows))
            private, rank = np.nonzero(line[near] >= 0)
            law = np.full((len(rows), len(table)), logs[-1])
            level = np.repeat(np.arange(len(ends) - 1), np.diff(ends[:-1], prepend=0))
            law[line[near[private, rank]], private] = logs[level[rank]]
            return law
        law = np.empty((len(rows), len(table)), np.float32)
        lasts = [(int(end), table.find_kth(int(end))) for end in ends[:-1]]
        reaches = [table.pairs.compute_distances(all_rows, last) for _, last in lasts]
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = rows[start : start + ROWS_AT_ONCE]
            level = np.zeros((len(part), len(table)), np.int64)
            distances = table.distances(part)
            for (end, last), reach in zip(lasts, reaches, strict=True):
                level += _is_beyond(table, part, distances, end, last, reach)
            law[start : start + ROWS_AT_ONCE] = logs[level]
        return law


def _is_beyond(
    table: EmbeddingTable, rows: Ids, distances: Values, end: int, last: Ids, reach: Values
) -> Flags:
    """Says whether each row is outside the `end` nearest of private rows.

    bool [m, V].

    Args:
        table: of V rows.
        rows: int64 [m].
        distances: their distances to all rows, float64 [m, V].
        end: how many are near, the private row itself included.
        last: int64 [V], the last of them for each private row.
        reach: float64 [V], the distance of that one.
    """
    is_outside: Flags = distances > reach
    which, private = np.nonzero(np.abs(distances - reach) < TIE_TOLERANCE)
    # the rule for ranks: ties go to the lowest row
    exact = table.pairs.compute_distances(private, rows[which])
    is_tied_outside = (exact > reach[private]) | (
        (exact == reach[private]) & (rows[which] > last[private])
    )
    # The one nearest word is the private row itself, so that all others are outside.
    is_outside[which, private] = True if end == 1 else is_tied_outside
    is_outside[np.arange(len(rows)), rows] = False  # a row is the nearest to itself
    return is_outside
