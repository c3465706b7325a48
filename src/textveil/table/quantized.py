"""Low-precision rows and queries with their rounding errors, for the exact search.

In: the stored rows, and queries in float64. Out: scores that are quickly computed, and bounds on
their errors.
Not here: the search that these bounds make exact (`nearest`), products of integers (`int8`), rows
that become integers as they are read (`streamed`), GPUs (`cuda`).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from textveil.randomness import Floats, Ids, Values
from textveil.table.int8 import GROUP, IntegerRows, widen

Stored = NDArray[np.floating[Any]]
"""Rows of a table as stored: float32 or float16."""

SLAB_ROWS = 1 << 12
"""Rows per pass over a whole table."""

NORM_TOLERANCE = {np.dtype(np.float16): 1e-2, np.dtype(np.float32): 1e-6}
"""Largest deviation of a rounded unit vector's norm from 1."""

FLOAT32_ERROR = 2.0**-24
"""Relative rounding error of one operation in float32."""

BOUND_SLACK = 1e-6
"""Relative slack for the arithmetic of the bound itself."""

MAX_PAIRS = 1 << 12
"""Pairs of query and row multiplied in float32 at once."""

BLOCK_SIZES = range(16, 65)
"""Possible numbers of coordinates that are rotated together.

Enough to even them out, few enough to be quick.
"""

SCALING_ERROR = 4e-6
"""Error of float32 when integer scores are scaled and compared.

For scores of about 1, with slack.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """The rows of a table.

    Attributes:
        stored: the rows as stored [V, d], possibly memory-mapped.
        take: returns rows of `stored` as float32 [n, d], the numbers that distances refer to.
        by_direction: whether the largest cosine wins (unit rows), or the smallest distance.
    """

    stored: Stored = field(repr=False)
    take: Callable[[slice | Ids], Floats] = field(repr=False)
    by_direction: bool

    @property
    def size(self) -> int:
        """V, the number of rows."""
        return len(self.stored)

    @property
    def dimension(self) -> int:
        """d, the length of a row."""
        return int(self.stored.shape[1])

    def take_exact(self, which: slice | Ids) -> Values:
        """Returns rows as float64 [n, d], normalized if direction counts.

        Unit rows in float32 are only exact to 1e-7.
        """
        rows = self.take(which).astype(np.float64)
        if self.by_direction:
            rows /= compute_norms(rows)[:, None]
        return rows


class Queries(NamedTuple):
    """A batch of queries in low precision.

    Attributes:
        low: [b, K], of the type that the codes multiply.
        unit: factor for scores [b].
        length: upper bound on the norm of the (scaled) low-precision query [b].
        rounding_error: upper bound on the norm of its rounding error [b].
        sums: error of a product's sums, relative to the norms of its factors.
    """

    low: Any
    unit: Values
    length: Values
    rounding_error: Values
    sums: float


class RowRun(Protocol):
    """A run of rows in low precision."""

    @property
    def start(self) -> int:
        """Position of the first row in stored order."""
        ...

    @property
    def size(self) -> int:
        """Number of rows."""
        ...


class RunScores(Protocol):
    """The scores of a batch of queries for a run of rows."""

    def exclude(self, query: Ids, place: Ids) -> None:
        """Excludes some rows of the run, at most one for a query.

        It is called before any score is requested.
        """
        ...

    def compute_best(self) -> Values:
        """Returns a lower bound on each query's best true score [b]."""
        ...

    def find_candidates(self, thresholds: Values) -> tuple[Ids, Ids, Values]:
        """Finds the pairs whose true score may reach `thresholds` [b].

        Returns the query, the place in the run, and the highest possible score of each pair.
        """
        ...


class Engine(Protocol):
    """Computes the first scores of the search."""

    def convert_queries(self, queries: Values, lengths: Values) -> Queries:
        """Converts queries [b, d] with norms `lengths` [b] to low precision."""
        ...

    def yield_runs(self, width: int) -> Iterator[RowRun]:
        """Yields all rows, `width` at a time."""
        ...

    def score_run(self, run: Any, queries: Queries) -> RunScores:
        """Computes the scores of a run."""
        ...

    def get_place(self, row: Ids) -> Ids:
        """Returns the stored position of a row of the table."""
        ...

    def get_row(self, place: Ids) -> Ids:
        """Returns the row of the table at a stored position."""
        ...

    def filter_candidates(self, unit: Values, query: Ids, row: Ids) -> tuple[Ids, Ids]:
        """Reduces the candidates (query, row) for unit queries [b, d].

        No candidate that may be the best is left out.
        """
        ...


# ---- float32 -------------------------------------------------------------------------------------


class FloatRun(NamedTuple):
    """A run of rows in floating point.

    Attributes:
        start: position of the first row.
        size: number of rows.
        low: the rows in low precision.
        row: upper bound on the norms of the (scaled) rows.
        away: upper bound on the norms of the rows' rounding errors.
        length: upper bound on the norms of the low-precision rows.
    """

    start: int
    size: int
    low: Any
    row: float
    away: float
    length: float

    def compute_error(self, queries: Queries) -> Values:
        """Returns the largest score error in this run, for each query [b].

        Before the score is rounded.
        """
        return (
            queries.rounding_error * self.row
            + queries.length * (self.away + queries.sums * self.length)
        ) * (1 + BOUND_SLACK) + 1e-30


SCORE_ROUNDING = 2 * FLOAT32_ERROR + BOUND_SLACK
"""Relative rounding error of a float32 score itself, and slack."""


def compute_lower_bound(score: Values, error: Values) -> Values:
    """Returns a lower bound on a true score."""
    return score - SCORE_ROUNDING * np.abs(score) - error


def compute_upper_bound(score: Values, error: Values) -> Values:
    """Returns an upper bound on a true score."""
    return score + SCORE_ROUNDING * np.abs(score) + error


def compute_floor(thresholds: Values, error: Values) -> Floats:
    """Returns a float32 score below which no high end reaches `thresholds`.

    It is finite.
    """
    high = thresholds - error
    score = high / np.where(
        high >= 0, 1 + SCORE_ROUNDING + BOUND_SLACK, 1 - SCORE_ROUNDING - BOUND_SLACK
    )
    floor: Floats = score.astype(np.float32)
    # Rounded down: a floor too high would lose a candidate.
    floor = np.where(floor > score, np.nextafter(floor, np.float32(-np.inf)), floor)
    # Finite, so that excluded scores of minus infinity stay below it.
    return np.maximum(floor, np.finfo(np.float32).min)


@dataclass(frozen=True, kw_only=True, eq=False)
class FloatScores:
    """Unscaled scores, float32 [b, w], and their largest errors [b]."""

    scores: Floats
    error: Values

    def exclude(self, query: Ids, place: Ids) -> None:  # noqa: D102
        self.scores[query, place] = -np.inf

    def compute_best(self) -> Values:  # noqa: D102
        return compute_lower_bound(self.scores.max(axis=1).astype(np.float64), self.error)

    def find_candidates(self, thresholds: Values) -> tuple[Ids, Ids, Values]:  # noqa: D102
        hits = np.flatnonzero(self.scores >= compute_floor(thresholds, self.error)[:, None])
        query, place = np.divmod(hits, self.scores.shape[1])
        return (
            query,
            place,
            compute_upper_bound(self.scores.ravel()[hits].astype(np.float64), self.error[query]),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class FloatCodes:
    """Rows and queries in float32.

    For distances the score is q.v - |v|^2 / 2: one more column holds half a row's squared norm,
    where the query has -1. Rows and queries are scaled by powers of two, which is exact.
    """

    rows: Rows

    def convert_queries(self, queries: Values, lengths: Values) -> Queries:
        """Converts queries [b, d] with norms `lengths` [b] to low precision."""
        scaled, square_factor = self.scale_queries(queries, lengths)
        low = scaled.astype(np.float32)
        rounding_error, length = compute_norms(scaled - low), compute_norms(low.astype(np.float64))
        if square_factor is not None:
            low = np.column_stack([low, -square_factor.astype(np.float32)])
            length = np.hypot(length, square_factor)
        return Queries(
            low,
            unit=np.ones(len(low)),
            length=length,
            rounding_error=rounding_error,
            sums=low.shape[1] * 4 * FLOAT32_ERROR,
        )

    def scale_queries(self, queries: Values, lengths: Values) -> tuple[Values, Values | None]:
        """Scales queries [b, d] to a length of at most 1.

        For distances also returns the factor of a row's half squared norm [b], else None.
        """
        if self.rows.by_direction:
            return queries / np.where(lengths > 0, lengths, 1.0)[:, None], None
        size = np.exp2(np.ceil(np.log2(np.maximum(lengths * self.scale, 1.0)))) / self.scale
        return queries / size[:, None], 1 / (size * self.scale)

    def score_run(self, run: FloatRun, queries: Queries) -> FloatScores:
        """Computes the scores of a run."""
        return FloatScores(scores=queries.low @ run.low.T, error=run.compute_error(queries))

    def get_place(self, row: Ids) -> Ids:
        """Returns the row: rows are in the table's order."""
        return row

    def get_row(self, place: Ids) -> Ids:
        """Returns the place: rows are in the table's order."""
        return place

    def filter_candidates(self, unit: Values, query: Ids, row: Ids) -> tuple[Ids, Ids]:
        """Keeps all candidates: there are hardly more than the nearest."""
        return query, row

    def yield_runs(self, width: int) -> Iterator[FloatRun]:
        """Yields all rows, `width` at a time."""
        for start in range(0, self.rows.size, width):
            part = slice(start, start + width)
            low = self._convert_rows(part)
            if (sizes := self._sizes.get((start, width))) is None:
                sizes = self._sizes[start, width] = self._measure_run(part, low)
            row, away, length = sizes
            yield FloatRun(start, len(low), low, row=row, away=away, length=length)

    def _convert_rows(self, part: slice) -> Floats:
        if self.rows.by_direction:
            return widen(self.rows.stored[part])
        scaled = self.rows.stored[part].astype(np.float64) * self.scale
        return np.column_stack([scaled, compute_squares(scaled) / 2]).astype(np.float32)

    @cached_property
    def _sizes(self) -> dict[tuple[int, int], tuple[float, float, float]]:
        """Results of `_measure_run` by first row and number of rows."""
        return {}

    def _measure_run(self, part: slice, low: Floats) -> tuple[float, float, float]:
        """Finds the largest norms of a row, rounding error and low-precision row."""
        # in float32, which is fast: d squares and a root, and making unit vectors of rows
        if self.rows.by_direction:
            slack = (low.shape[1] + 8) * 2 * FLOAT32_ERROR
            lengths = compute_norms(low)
            longest = float(lengths.max()) * (1 + slack)
            return 1 + BOUND_SLACK, float(np.abs(lengths - 1).max()) + longest * slack, longest
        exact, lowered = self.rows.take_exact(part) * self.scale, low.astype(np.float64)
        away = np.column_stack([exact, compute_squares(exact) / 2]) - lowered
        return find_longest(exact), find_longest(away), find_longest(lowered)

    @cached_property
    def scale(self) -> float:
        """Power of two that scales the longest row to at most 1."""
        if self.rows.by_direction:
            return 1.0
        parts = (
            self.rows.take_exact(slice(start, start + SLAB_ROWS))
            for start in range(0, self.rows.size, SLAB_ROWS)
        )
        longest = max(map(find_longest, parts))
        return float(2.0 ** -math.ceil(math.log2(longest))) if longest > 0 else 1.0


# ---- int8 ----------------------------------------------------------------------------------------


class IntegerRun(NamedTuple):
    """A run of rows as integers, with one unit per `GROUP` rows.

    Attributes:
        start: position of the first row.
        size: number of rows.
        low: the integers, or the stored rows where these are quantized for each batch (`streamed`).
        unit: what integers are multiplied by, float32 [g].
        away: upper bound on the norms of the rows' rounding errors [g].
    """

    start: int
    size: int
    low: Any
    unit: Floats
    away: Values


EXCLUDED_PRODUCT = np.iinfo(np.int32).min


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedScores:
    """Integer products by group [b, g, `GROUP`], with maxima [b, g]."""

    run: IntegerRun
    queries: Queries
    products: NDArray[np.int32]
    groups: NDArray[np.int32]

    def __post_init__(self) -> None:
        if last := self.run.size % GROUP:  # padding of the last group
            self.products[:, -1, last:] = EXCLUDED_PRODUCT
            self.groups[:, -1] = self.products[:, -1].max(axis=1)

    def exclude(self, query: Ids, place: Ids) -> None:  # noqa: D102
        group, member = np.divmod(place, GROUP)
        self.products[query, group, member] = EXCLUDED_PRODUCT
        self.groups[query, group] = self.products[query, group].max(axis=1)

    def compute_best(self) -> Values:  # noqa: D102
        # Any row gives a lower bound; that of the group that seems best is a high one.
        group = self._scaled_maxima.argmax(axis=1)
        lengths, queries = np.arange(len(group)), self.queries
        score = (
            queries.unit * self._scaled_maxima[lengths, group]
            - queries.length * self.run.away[group]
        )
        return np.asarray(score - queries.rounding_error)

    def find_candidates(self, thresholds: Values) -> tuple[Ids, Ids, Values]:  # noqa: D102
        queries, run = self.queries, self.run
        floor = ((thresholds - queries.rounding_error) / queries.unit).astype(np.float32)[:, None]
        reach = (queries.length / queries.unit).astype(np.float32)[:, None] * run.away.astype(
            np.float32
        )
        hits = np.flatnonzero(self._scaled_maxima >= np.subtract(floor, reach, out=reach))
        query, group = np.divmod(hits, self.groups.shape[1])
        members = self.products[query, group]
        high = members * (queries.unit[query] * run.unit[group])[:, None]
        high += (queries.length[query] * run.away[group] + queries.rounding_error[query])[:, None]
        line, place = np.nonzero(
            (high >= thresholds[query][:, None]) & (members != EXCLUDED_PRODUCT)
        )
        return query[line], group[line] * GROUP + place, high[line, place]

    @cached_property
    def _scaled_maxima(self) -> Floats:
        return np.multiply(self.groups, self.run.unit, dtype=np.float32, casting="unsafe")


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerCodes:
    """Unit rows and queries as int8, rotated to even out their coordinates.

    Rows are stored by their largest coordinate, so that those of one group have nearly the same
    unit.
    """

    rows: Rows

    def convert_queries(self, queries: Values, lengths: Values) -> Queries:
        """Converts queries [b, d] with norms `lengths` [b] to int8."""
        turned = self._rotate(queries / np.where(lengths > 0, lengths, 1.0)[:, None])
        unit = np.abs(turned).max(axis=1) / np.float32(127)
        unit[unit == 0] = 1
        low, back = _quantize(turned, unit[:, None])
        length, away = (
            compute_norms(back) * self._norm_factor,
            compute_norms(turned - back) * self._norm_factor,
        )
        unit, length, away = (values.astype(np.float64) for values in (unit, length, away))
        return Queries(
            low,
            unit=unit,
            length=length,
            rounding_error=(away + self._rotation_error) * (1 + BOUND_SLACK),
            sums=0.0,
        )

    def score_run(self, run: IntegerRun, queries: Queries) -> GroupedScores:
        """Computes the scores of a run."""
        products, groups = run.low.maxima(queries.low)
        return GroupedScores(
            run=run, queries=queries, products=products.reshape(*groups.shape, GROUP), groups=groups
        )

    def get_place(self, row: Ids) -> Ids:
        """Returns the stored position of a row of the table."""
        return self._places[row]

    def get_row(self, place: Ids) -> Ids:
        """Returns the row of the table at a stored position."""
        return self._order[place]

    def filter_candidates(self, unit: Values, query: Ids, row: Ids) -> tuple[Ids, Ids]:
        """Reduces the candidates by float32 scores.

        int8 leaves a dozen, or hundreds where rows are not rotated.
        """
        order = query.argsort(kind="stable")
        query, row = query[order], row[order]
        score = self.compute_products(unit.astype(np.float32), query, row)
        starts = np.flatnonzero(np.diff(query, prepend=-1))
        best = np.repeat(np.maximum.reduceat(score, starts), np.diff(starts, append=len(query)))
        # d sums; rows of length 1 nearly
        error = (unit.shape[1] + 8) * 2 * FLOAT32_ERROR + NORM_TOLERANCE[score.dtype]
        # Twice, because the score of the best row may be wrong by as much.
        is_candidate = score >= best - np.float32(2 * error)
        return query[is_candidate], row[is_candidate]

    def compute_products(self, unit: Floats, query: Ids, row: Ids) -> Floats:
        """Computes products of pairs of unit query and unit row, in float32.

        Queries are [b, d].
        """
        products = np.empty(len(row), np.float32)
        for start in range(0, len(row), MAX_PAIRS):
            part = slice(start, start + MAX_PAIRS)
            rows = widen(self.rows.stored[row[part]])
            products[part] = np.einsum("ij,ij->i", unit[query[part]], rows)
            if self.rows.stored.dtype != np.float32:  # of length 1 only nearly
                products[part] /= compute_norms(rows)
        return products

    def yield_runs(self, width: int) -> Iterator[IntegerRun]:
        """Yields all rows, `width` at a time, a multiple of `GROUP`."""
        for start in range(0, self.rows.size, width):
            parts = [
                self._quantize_slab(at)
                for at in range(start, min(start + width, self.rows.size), SLAB_ROWS)
            ]
            whole, unit, away = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            yield IntegerRun(
                start, len(whole), IntegerRows(whole, grouped=True), unit=unit, away=away
            )

    def _quantize_slab(self, start: int) -> tuple[NDArray[np.int8], Floats, Values]:
        """Quantizes a slab of rows to integers.

        Also returns the unit and the largest error of each group.
        """
        turned = self._rotate(self.rows.take(self._order[start : start + SLAB_ROWS]))
        firsts = np.arange(0, len(turned), GROUP)
        unit = (np.maximum.reduceat(np.abs(turned).max(axis=1), firsts) / 127).astype(np.float32)
        unit[unit == 0] = 1
        whole, back = _quantize(turned, np.repeat(unit, GROUP)[: len(turned), None])
        away = np.maximum.reduceat(compute_norms(turned - back), firsts).astype(np.float64)
        return (
            whole,
            unit,
            away * self._norm_factor
            + self._rotation_error
            + NORM_TOLERANCE[turned.dtype]
            + SCALING_ERROR,
        )

    @cached_property
    def _order(self) -> Ids:
        parts = (
            self._rotate(self.rows.take(slice(start, start + SLAB_ROWS)))
            for start in range(0, self.rows.size, SLAB_ROWS)
        )
        return np.concatenate([np.abs(part).max(axis=1) for part in parts]).argsort(kind="stable")

    @cached_property
    def _places(self) -> Ids:
        return self._order.argsort()

    def _rotate(self, vectors: Values | Floats) -> Floats:
        return rotate(vectors.astype(np.float32, copy=False))

    @property
    def _rotation_error(self) -> float:
        return compute_rotation_error(self.rows.dimension)

    @property
    def _norm_factor(self) -> float:
        """Factor for norms that were computed in float32."""
        return 1 + (self.rows.dimension + 16) * 2 * FLOAT32_ERROR


def _quantize(vectors: Floats, unit: Floats | np.float32) -> tuple[NDArray[np.int8], Floats]:
    """Quantizes vectors [n, d] to int8 multiples of a unit.

    Also returns the vectors that the integers represent.
    """
    whole = np.rint(vectors / unit)
    return whole.astype(np.int8), whole * unit


def compute_squares(vectors: NDArray[Any]) -> NDArray[Any]:
    """Computes the squared norms of rows [n]."""
    squares: NDArray[Any] = np.einsum("ij,ij->i", vectors, vectors)
    return squares


def compute_norms(vectors: NDArray[Any]) -> NDArray[Any]:
    """Computes the norms of rows [n], in their precision."""
    return np.asarray(np.sqrt(compute_squares(vectors)))


def find_longest(vectors: Values) -> float:
    """Returns the largest norm of a row, rounded up."""
    return float(compute_norms(vectors).max()) * (1 + BOUND_SLACK)


# ---- the rotation --------------------------------------------------------------------------------


def rotate(vectors: Floats) -> Floats:
    """Rotates vectors [n, d] to even out their coordinates.

    Quantizing to integers then loses less of them.
    """
    turns = _build_rotation(vectors.shape[1])
    return np.asarray((vectors.reshape(-1, len(turns)) @ turns).reshape(vectors.shape))


def compute_rotation_error(dimension: int) -> float:
    """Bounds the float32 error of rotating a unit vector and dequantizing it."""
    d = len(_build_rotation(dimension))
    return float(((d + 2) * d**0.5 + 4) * FLOAT32_ERROR)


@cache
def _build_rotation(dimension: int) -> Floats:
    """Builds the rotation of one block of coordinates: the discrete sine transform.

    It is an orthogonal matrix.
    """
    d = max((size for size in BLOCK_SIZES if dimension % size == 0), default=dimension)
    n = np.arange(1, d + 1)
    turns = np.sin(np.outer(n, n) * (math.pi / (d + 1))) * math.sqrt(2 / (d + 1))
    rotation: Floats = turns.astype(np.float32)
    return rotation
