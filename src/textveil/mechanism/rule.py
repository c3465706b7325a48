"""The exponential rule: its parameter from epsilon, and its exact draw.

In: private rows of a table, or distances [m, V], and a parameter per row. Out: drawn rows, integer
weights, the law.
Not here: distances and their bounds (`table`, `pairs`), constants (`constants`), draws by given
weights (`samplers`).
"""

import math
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.errors import ConfigError
from textveil.randomness import Draws, Flags, Floats, Ids, Ints, Values, choose_weighted
from textveil.table import EmbeddingTable

EXPONENT_CAP = 20.0
"""Largest value of c times the capped distance.

So every candidate keeps a weight of at least 2^21.
"""

# The largest weight that `choose_weighted` takes; float64 is exact up to it.
WEIGHT_SCALE = 2.0**50

LOG_RATIO_ROUNDING = 2 * math.log1p(math.exp(EXPONENT_CAP) / WEIGHT_SCALE)
"""Largest error of a log-ratio from rounding weights up."""

MAX_UPPER_WEIGHTS = 1 << 25
"""Upper weights held at once: 128 MiB."""

MAX_HELD_PAIRS = 256
"""Largest number of (row, parameter) pairs whose upper weights are held."""

BLOCK_CANDIDATES = 64
"""Candidates whose upper weights are summed first."""

MAX_COARSE_CANDIDATES = 1 << 15
"""Largest number of candidates with coarse upper weights.

float32 adds up a block of them exactly.
"""

ROWS_AT_ONCE = 1 << 13
"""Rows whose proposals are looked up at once.

A block for each: 16 MiB in float64.
"""

PROPOSALS = 8
"""Candidates proposed to each row.

With three in four accepted, one row in 65,000 refuses all of them.
"""

PROPOSAL_BITS = 53
PROPOSAL_RANGE = 1 << PROPOSAL_BITS
"""Exclusive limit of the random numbers for proposals."""


@make_options()
class Exponential:
    """The rule P(y | x) ~ exp(-c min(d(x, y), cap)).

    The cap is 20 / c; the arithmetic is of exact integers. The exact constant is c + max over x, x'
    of (ln Z_x' - ln Z_x) / d(x, x'), never more than 2c: it is that of the table's certified curve.

    Args:
        c: the parameter of all words; without it, it follows from epsilon.
        calibration: `exact`: the largest c whose constant on the public table is at most epsilon (a
            stored, certified curve, computed for small tables; else c = epsilon / 2). `paper`: c =
            epsilon / 2, as SanText has it.
    """

    parameter_name: ClassVar[str | None] = "c"

    c: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    calibration: Literal["exact", "paper"] = "exact"

    def compute_constant(self, table: EmbeddingTable, c: Values) -> Values:
        """Returns a certified bound [m] on the loss per unit of distance.

        Under c [m].
        """
        curve = table.curve
        return 2 * c if curve is None else np.minimum(curve.constant(c), 2 * c)

    def compute_local_dp_cap(self, table: EmbeddingTable, c: Values) -> Values:
        """Returns a certified bound [m] on the loss for any two words.

        Under c [m], whatever their distance. ln P(y | x) / P(y | x') is at most c times the longest
        capped distance, which is 20 or less, plus ln (max Z / min Z). The latter is at most what
        the constant is above c, times that distance, for the constant holds for the capped distance
        too; and at most ln V, for all weights are at most 1 and one is 1.
        """
        reach = np.minimum(c * table.diameter * table.lipschitz, EXPONENT_CAP)
        excess = (self.compute_constant(table, c) / c - 1) * reach
        return np.asarray(reach + np.minimum(excess, math.log(len(table))) + self.rounding)

    def find_parameter(self, table: EmbeddingTable, epsilon: Values) -> Values:
        """Returns the c [m] that epsilon [m] allows."""
        if self.calibration == "paper":
            return epsilon / 2
        curve = table.curve
        # Half of epsilon is always safe, for the constant is never more than 2c.
        return epsilon / 2 if curve is None else np.maximum(curve.solve(epsilon), epsilon / 2)

    def compute_weights(self, distances: Values, c: Values) -> Ints:
        """Returns ceil(2^50 exp(-c min(d, cap))) for every candidate.

        int64 [m, V].
        """
        return self._compute_weights(distances, c).astype(np.int64)

    def draw(
        self, draws: Draws, table: EmbeddingTable, rows: Ids, c: Values, among: Flags | None = None
    ) -> Ids:
        """Draws a candidate for every row, exactly by its weight.

        The probability is proportional to `compute_weights` of the distances of pairs. Candidates
        are proposed by whole numbers that are nowhere below their weights, made once for equal rows
        from bounds of their distances, and accepted with the probability weight / (upper weight).
        So the law is that of the weights whatever the bounds are, and the weight of a candidate is
        a function of two rows alone.

        Args:
            draws: m rows; each takes the values of its proposals, independent of the other rows.
            table: the candidates.
            rows: the private rows, int64 [m].
            c: the parameter of each row [m], 0 or more.
            among: rows of the table that may be released, bool [V]; None: all.

        Returns:
            rows of the table, int64 [m].

        Raises:
            ConfigError: no row may be released.
        """
        if among is not None and not among.any():
            raise ConfigError(
                "at least one row of the table must be a candidate, and none is: check the "
                "candidates"
            )
        # All values of a row are drawn at once, so that they do not depend on which proposals of
        # other rows are refused.
        values = draws.bits(2 * PROPOSALS)
        order, starts = _group_pairs(rows, c)
        candidates = np.full(len(rows), -1)
        size = min(MAX_HELD_PAIRS, max(1, MAX_UPPER_WEIGHTS // len(table)))
        for first in range(0, len(starts) - 1, size):
            bounds = starts[first : first + size + 1]
            part = order[bounds[0] : bounds[-1]]
            which = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
            representatives = order[bounds[:-1]]
            upper, sums = _compute_upper_weights(
                table,
                rows[representatives],
                c[representatives],
                among,
                self.compute_exponent_cap(len(table), c[representatives]),
            )
            for start in range(0, len(part), ROWS_AT_ONCE):
                chunk, lines = (
                    part[start : start + ROWS_AT_ONCE],
                    which[start : start + ROWS_AT_ONCE],
                )
                candidates[chunk] = self._find_accepted(
                    table, rows[chunk], c[chunk], values[chunk], lines, upper, sums
                )
        # A row that refused all proposals is drawn from its weights directly: the law is the same.
        all_rows = np.arange(len(table))
        for i in np.flatnonzero(candidates < 0).tolist():
            distances = table.pairs.compute_distances(np.full(len(table), rows[i]), all_rows)
            weights = self.compute_weights(self._cut(distances[None], c[[i]], len(table)), c[[i]])
            if among is not None:
                weights *= among
            candidates[i] = choose_weighted(draws.select(np.arange(len(rows)) == i), weights)[0]
        return candidates

    def _find_accepted(
        self,
        table: EmbeddingTable,
        rows: Ids,
        c: Values,
        values: Ints,
        which: Ids,
        upper: Floats,
        sums: Ints,
    ) -> Ids:
        """Finds the first accepted proposal of each row, or -1.

        Args:
            table: the candidates.
            rows: the private rows [m].
            c: their parameters [m].
            values: uniform in [0, 2^53), [m, 2 * PROPOSALS].
            which: the line of `upper` for each row [m].
            upper: whole numbers, float32 [p, blocks, `BLOCK_CANDIDATES`], filled up with zeros.
            sums: of its blocks, one line after another.
        """
        blocks = upper.reshape(-1, BLOCK_CANDIDATES)
        ends = np.cumsum(sums)  # below 2^63: `MAX_HELD_PAIRS` lines of at most 2^52
        width = upper.shape[1]
        before = np.concatenate(([0], ends[width - 1 :: width]))[which]
        total = ends[width - 1 :: width][which] - before
        shift = 50 - _find_bits(table)
        candidates = np.full(len(rows), -1)
        open_rows = np.arange(len(rows))
        for proposal in range(PROPOSALS):
            target = values[open_rows, 2 * proposal]
            # the last, incomplete run of remainders is refused
            is_complete = target < PROPOSAL_RANGE - PROPOSAL_RANGE % total[open_rows]
            target = before[open_rows] + target % total[open_rows]
            block = np.searchsorted(ends, target, side="right")
            remainder = target - (ends[block] - sums[block])
            inside = np.cumsum(blocks[block], axis=1, dtype=np.float64).astype(np.int64)
            place = (inside <= remainder[:, None]).sum(axis=1)
            lines = np.arange(len(open_rows))
            upper_weight = blocks[block, place].astype(np.int64)
            remainder -= inside[lines, place] - upper_weight
            candidate = (block % width) * BLOCK_CANDIDATES + place
            distances = table.pairs.compute_distances(rows[open_rows], candidate)[:, None]
            weight = self.compute_weights(
                self._cut(distances, c[open_rows], len(table)), c[open_rows]
            )[:, 0]
            # Accepting by weight / (upper weight) is exact only where that is at most 1.
            if (weight > upper_weight << shift).any():
                raise ArithmeticError("a bound of the exact draw does not hold")
            # Random low bits make the target uniform below the upper weight at full resolution.
            fine_target = (remainder << shift) + (
                values[open_rows, 2 * proposal + 1] >> (PROPOSAL_BITS - shift)
            )
            is_accepted = is_complete & (fine_target < weight)
            candidates[open_rows[is_accepted]] = candidate[is_accepted]
            open_rows = open_rows[~is_accepted]
            if not len(open_rows):
                break
        return candidates

    def log_probs(self, distances: Values, c: Values) -> Values:
        """Returns ln P(y | x) of the integer weights, float64 [m, V]."""
        weights = self._compute_weights(self._cut(distances, c, distances.shape[1]), c)
        totals = weights.sum(axis=1, keepdims=True)
        law = np.log(weights, out=weights)
        law -= np.log(totals)
        return law

    def compute_exponent_cap(self, size: int, c: Values) -> Values:
        """Returns the largest c times distance that counts, [m].

        In a table of `size` words.
        """
        return np.full(len(c), EXPONENT_CAP)

    def _cut(self, distances: Values, c: Values, size: int) -> Values:
        """Cuts distances [m, k] where a rule does so before the common cap."""
        return distances

    def _compute_weights(self, distances: Values, c: Values) -> Values:
        """Computes the weights as whole numbers in float64.

        In place, for there may be hundreds of millions of them.
        """
        weights: Values = distances * -c[:, None]
        np.maximum(weights, -EXPONENT_CAP, out=weights)
        np.exp(weights, out=weights)
        weights *= WEIGHT_SCALE
        return np.ceil(weights, out=weights)

    @property
    def rounding(self) -> float:
        """Largest error of a log-ratio from rounding weights up.

        Twice ln(1 + 2^-50 e^20).
        """
        return LOG_RATIO_ROUNDING


@make_options()
class TruncatedExponential(Exponential):
    """The rule P(y | x) ~ exp(-c min(d(x, y), gamma)): far words are all alike.

    It is the truncated exponential mechanism in one draw. The paper adds Gumbel noise to the scores
    of the words within gamma, and to one more score that stands for all others; the largest of such
    sums is a draw with weights exp(score), and the score of the others makes each weigh exp(-c
    gamma). As min(d, gamma) changes by at most d(x, x') with the word, 2c bounds the loss per unit
    of distance, and 2c gamma that of any two words.

    Args:
        gamma: the distance from which on words are alike; None: from `beta`.
        beta: the largest probability of all words beyond gamma together.

    Source: Carvalho et al. 2021, "TEM: High utility metric differential privacy on text".
    """

    gamma: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    beta: Annotated[float, Field(gt=0, lt=1)] = 0.001

    def compute_exponent_cap(self, size: int, c: Values) -> Values:
        """Returns c gamma [m], at most the common cap."""
        if self.gamma is not None:
            return np.minimum(self.gamma * c, EXPONENT_CAP)
        # All other words at weight exp(-c gamma) have a probability of beta beside the word's own.
        others = max(1, size - 1)
        limit = math.log(others) + math.log1p(-self.beta) - math.log(self.beta)
        return np.full(len(c), min(max(limit, 0.0), EXPONENT_CAP))

    def _cut(self, distances: Values, c: Values, size: int) -> Values:
        return np.minimum(distances, (self.compute_exponent_cap(size, c) / c)[:, None])

    def compute_constant(self, table: EmbeddingTable, c: Values) -> Values:
        """Returns 2c [m], the bound per unit of distance."""
        return 2 * c

    def find_parameter(self, table: EmbeddingTable, epsilon: Values) -> Values:
        """Returns the c [m] that epsilon [m] allows: half of it."""
        return epsilon / 2

    def compute_local_dp_cap(self, table: EmbeddingTable, c: Values) -> Values:
        """Returns a bound [m] on the loss for any two words: 2c gamma at most."""
        reach = np.minimum(
            c * table.diameter * table.lipschitz, self.compute_exponent_cap(len(table), c)
        )
        return np.asarray(reach + np.minimum(reach, math.log(len(table))) + self.rounding)


def _group_pairs(rows: Ids, c: Values) -> tuple[Ids, Ids]:
    """Groups equal pairs of a row and its parameter.

    Returns an order in which they are adjacent, and where each group begins and ends.
    """
    order = np.lexsort((c, rows))
    changes = (np.diff(rows[order]) != 0) | (np.diff(c[order]) != 0)
    return order, np.flatnonzero(np.concatenate(([True], changes, [True]))) if len(
        rows
    ) else np.zeros(1, np.int64)


def _find_bits(table: EmbeddingTable) -> int:
    """Returns the exponent of the largest upper weight, nearly.

    Sums over the table stay below 2^52. A weight is too large by one at most, which makes a quarter
    of the largest in all of a small table. And one is never less than what the cap leaves of the
    largest.
    """
    return 17 if len(table) <= MAX_COARSE_CANDIDATES else min(28, 51 - len(table).bit_length())


def _compute_upper_weights(
    table: EmbeddingTable,
    rows: Ids,
    c: Values,
    among: Flags | None,
    exponent_cap: Values | None = None,
) -> tuple[Floats, Ints]:
    """Bounds the weights of all candidates by whole numbers U.

    2^(50 - bits) U >= weight. Also returns their sums by blocks. A distance that is too short makes
    a weight that is too large. float32 may lose 2^-18 of it at exponents of up to 41; 2^-14 of it
    are added. No weight is below that of `exponent_cap` [p], where given.

    Returns:
        float32 [p, blocks, `BLOCK_CANDIDATES`], filled up with zeros; int64 [p * blocks].
    """
    largest = np.float32(_find_bits(table) + math.log2(1 + 2.0**-14))
    # sums of blocks of whole numbers, below 2^24 or 2^53
    exact = np.float32 if len(table) <= MAX_COARSE_CANDIDATES else np.float64
    width = -(-len(table) // BLOCK_CANDIDATES)
    upper = np.zeros((len(rows), width * BLOCK_CANDIDATES), np.float32)
    sums = np.empty((len(rows), width), np.int64)
    # A very large c overflows float32: minus infinity times distance 0 would be NaN.
    slope = np.maximum(-c * (table.pairs.length_scale / math.log(2)), -1e30).astype(np.float32)[
        :, None
    ]
    floor = None
    if exponent_cap is not None:
        floor = np.asarray(-exponent_cap / math.log(2), np.float32)[:, None]
    for lines, start, bounds in table.pairs.bound_distances(rows):
        stop = start + bounds.shape[1]
        bounds *= slope[lines]
        if floor is not None:
            np.maximum(bounds, floor[lines], out=bounds)
        bounds += largest
        weights = np.floor(np.exp2(bounds, out=bounds), out=upper[lines, start:stop])
        # Above the bound, and never 0: the distance cap leaves every candidate a weight.
        weights += 1
        if among is not None:
            weights *= among[start:stop]
        part = slice(start // BLOCK_CANDIDATES, -(-stop // BLOCK_CANDIDATES))
        blocks = upper[lines, part.start * BLOCK_CANDIDATES : part.stop * BLOCK_CANDIDATES].reshape(
            len(bounds), -1, BLOCK_CANDIDATES
        )
        sums[lines, part] = blocks.astype(exact, copy=False) @ np.ones(BLOCK_CANDIDATES, exact)
    return upper.reshape(len(rows), width, BLOCK_CANDIDATES), sums.ravel()
