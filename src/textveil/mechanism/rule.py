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

from textveil.config import options
from textveil.errors import ConfigError
from textveil.randomness import Draws, Flags, Floats, Ids, Ints, Values, weighted_choice
from textveil.table import EmbeddingTable

EXPONENT_CAP = 20.0
"""Largest value of c times the capped distance.

So every candidate keeps a weight of at least 2^21.
"""

SCALE = 2.0**50

ROUNDING = 2 * math.log1p(math.exp(EXPONENT_CAP) / SCALE)
"""Largest error of a log-ratio from rounding weights up."""

CELLS = 1 << 25
"""Upper weights held at once: 128 MiB."""

BATCH = 256
"""Largest number of (row, parameter) pairs whose upper weights are held."""

BLOCK = 64
"""Candidates whose upper weights are summed first."""

SMALL = 1 << 15
"""Largest number of candidates with coarse upper weights.

float32 adds up a block of them exactly.
"""

AT_ONCE = 1 << 13
"""Rows whose proposals are looked up at once.

A block for each: 16 MiB in float64.
"""

PROPOSALS = 8
"""Candidates proposed to each row.

With three in four accepted, one row in 65,000 refuses all of them.
"""

BITS = 53
MOST = 1 << BITS
"""Exclusive limit of the random numbers for proposals."""


@options()
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

    def constant(self, table: EmbeddingTable, c: Values) -> Values:
        """Returns a certified bound [m] on the loss per unit of distance.

        Under c [m].
        """
        curve = table.curve
        return 2 * c if curve is None else np.minimum(curve.constant(c), 2 * c)

    def most(self, table: EmbeddingTable, c: Values) -> Values:
        """Returns a certified bound [m] on the loss for any two words.

        Under c [m], whatever their distance. ln P(y | x) / P(y | x') is at most c times the longest
        capped distance, which is 20 or less, plus ln (max Z / min Z). The latter is at most what
        the constant is above c, times that distance, for the constant holds for the capped distance
        too; and at most ln V, for all weights are at most 1 and one is 1.
        """
        reach = np.minimum(c * table.diameter * table.lipschitz, EXPONENT_CAP)
        excess = (self.constant(table, c) / c - 1) * reach
        return np.asarray(reach + np.minimum(excess, math.log(len(table))) + self.rounding)

    def parameter(self, table: EmbeddingTable, epsilon: Values) -> Values:
        """Returns the c [m] that epsilon [m] allows."""
        if self.calibration == "paper":
            return epsilon / 2
        curve = table.curve
        return epsilon / 2 if curve is None else np.maximum(curve.solve(epsilon), epsilon / 2)

    def weights(self, distances: Values, c: Values) -> Ints:
        """Returns ceil(2^50 exp(-c min(d, cap))) for every candidate.

        int64 [m, V].
        """
        return self._compute_weights(distances, c).astype(np.int64)

    def draw(
        self, draws: Draws, table: EmbeddingTable, rows: Ids, c: Values, among: Flags | None = None
    ) -> Ids:
        """Draws a candidate for every row, exactly by its weight.

        The probability is proportional to `weights` of the distances of pairs. Candidates are
        proposed by whole numbers that are nowhere below their weights, made once for equal rows
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
                "at least one row of the table must be a candidate, and none is: check the candidates"
            )
        values = draws.bits(2 * PROPOSALS)
        order, starts = _group(rows, c)
        chosen = np.full(len(rows), -1)
        size = min(BATCH, max(1, CELLS // len(table)))
        for first in range(0, len(starts) - 1, size):
            bounds = starts[first : first + size + 1]
            part = order[bounds[0] : bounds[-1]]
            which = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
            one = order[bounds[:-1]]
            upper, sums = _bound_weights(table, rows[one], c[one], among)
            for start in range(0, len(part), AT_ONCE):
                run, lines = part[start : start + AT_ONCE], which[start : start + AT_ONCE]
                chosen[run] = self._accept(
                    table, rows[run], c[run], values[run], lines, upper, sums
                )
        everything = np.arange(len(table))
        for i in np.flatnonzero(chosen < 0).tolist():
            distances = table.pairs.distances(np.full(len(table), rows[i]), everything)
            weights = self.weights(distances[None], c[[i]])
            if among is not None:
                weights *= among
            chosen[i] = weighted_choice(draws.at(np.arange(len(rows)) == i), weights)[0]
        return chosen

    def _accept(
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
            upper: whole numbers, float32 [p, blocks, `BLOCK`], filled up with zeros.
            sums: of its blocks, one line after another.
        """
        blocks = upper.reshape(-1, BLOCK)
        ends = np.cumsum(sums)  # below 2^63: `BATCH` lines of at most 2^52
        width = upper.shape[1]
        before = np.concatenate(([0], ends[width - 1 :: width]))[which]
        total = ends[width - 1 :: width][which] - before
        shift = 50 - _find_bits(table)
        chosen = np.full(len(rows), -1)
        left = np.arange(len(rows))
        for proposal in range(PROPOSALS):
            target = values[left, 2 * proposal]
            # the last, incomplete run of remainders is refused
            whole = target < MOST - MOST % total[left]
            target = before[left] + target % total[left]
            block = np.searchsorted(ends, target, side="right")
            rest = target - (ends[block] - sums[block])
            inside = np.cumsum(blocks[block], axis=1, dtype=np.float64).astype(np.int64)
            place = (inside <= rest[:, None]).sum(axis=1)
            lines = np.arange(len(left))
            most = blocks[block, place].astype(np.int64)
            rest -= inside[lines, place] - most
            candidate = (block % width) * BLOCK + place
            weight = self.weights(table.pairs.distances(rows[left], candidate)[:, None], c[left])[
                :, 0
            ]
            if (weight > most << shift).any():
                raise ArithmeticError("a bound of the exact draw does not hold")
            fine = (rest << shift) + (values[left, 2 * proposal + 1] >> (BITS - shift))
            accepted = whole & (fine < weight)
            chosen[left[accepted]] = candidate[accepted]
            left = left[~accepted]
            if not len(left):
                break
        return chosen

    def log_probs(self, distances: Values, c: Values) -> Values:
        """Returns ln P(y | x) of the integer weights, float64 [m, V]."""
        weights = self._compute_weights(distances, c)
        totals = weights.sum(axis=1, keepdims=True)
        law = np.log(weights, out=weights)
        law -= np.log(totals)
        return law

    def _compute_weights(self, distances: Values, c: Values) -> Values:
        """Computes the weights as whole numbers in float64.

        In place, for there may be hundreds of millions of them.
        """
        weights: Values = distances * -c[:, None]
        np.maximum(weights, -EXPONENT_CAP, out=weights)
        np.exp(weights, out=weights)
        weights *= SCALE
        return np.ceil(weights, out=weights)

    @property
    def rounding(self) -> float:
        """Largest error of a log-ratio from rounding weights up.

        Twice ln(1 + 2^-50 e^20).
        """
        return ROUNDING


def _group(rows: Ids, c: Values) -> tuple[Ids, Ids]:
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
    return 17 if len(table) <= SMALL else min(28, 51 - len(table).bit_length())


def _bound_weights(
    table: EmbeddingTable, rows: Ids, c: Values, among: Flags | None
) -> tuple[Floats, Ints]:
    """Bounds the weights of all candidates by whole numbers U.

    2^(50 - bits) U >= weight. Also returns their sums by blocks. A distance that is too short makes
    a weight that is too large. float32 may lose 2^-18 of it at exponents of up to 41; 2^-14 of it
    are added.

    Returns:
        float32 [p, blocks, `BLOCK`], filled up with zeros; int64 [p * blocks].
    """
    largest = np.float32(_find_bits(table) + math.log2(1 + 2.0**-14))
    # sums of blocks of whole numbers, below 2^24 or 2^53
    exact = np.float32 if len(table) <= SMALL else np.float64
    width = -(-len(table) // BLOCK)
    upper = np.zeros((len(rows), width * BLOCK), np.float32)
    sums = np.empty((len(rows), width), np.int64)
    slope = np.maximum(-c * (table.pairs.reach / math.log(2)), -1e30).astype(np.float32)[:, None]
    for lines, start, bounds in table.pairs.shorter(rows):
        stop = start + bounds.shape[1]
        bounds *= slope[lines]
        bounds += largest
        weights = np.floor(np.exp2(bounds, out=bounds), out=upper[lines, start:stop])
        weights += 1
        if among is not None:
            weights *= among[start:stop]
        part = slice(start // BLOCK, -(-stop // BLOCK))
        blocks = upper[lines, part.start * BLOCK : part.stop * BLOCK].reshape(
            len(bounds), -1, BLOCK
        )
        sums[lines, part] = blocks.astype(exact, copy=False) @ np.ones(BLOCK, exact)
    return upper.reshape(len(rows), width, BLOCK), sums.ravel()
