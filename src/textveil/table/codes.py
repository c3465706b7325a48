"""Low-precision rows and queries with their rounding errors, for the exact search.

In: the stored rows, and queries in float64. Out: scores that are quickly computed, and bounds on
their errors.
Not here: the search that these bounds make exact (`nearest`), products of integers (`engine`), rows
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
from textveil.table.engine import GROUP, IntegerRows, widened

Stored = NDArray[np.floating[Any]]
"""Rows of a table as stored: float32 or float16."""

SLAB = 1 << 12
"""Rows per pass over a whole table."""

NEARLY = {np.dtype(np.float16): 1e-2, np.dtype(np.float32): 1e-6}
"""Largest deviation of a rounded unit vector's norm from 1."""

HALF = 2.0**-24
"""Relative rounding error of one operation in float32."""

SLACK = 1e-6
"""Relative slack for the arithmetic of the bound itself."""

PAIRS = 1 << 12
"""Pairs of query and row multiplied in float32 at once."""

BLOCKS = range(16, 65)
"""Possible numbers of coordinates that are rotated together.

Enough to even them out, few enough to be quick.
"""

SCALING = 4e-6
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

    def true(self, which: slice | Ids) -> Values:
        """Returns rows as float64 [n, d], normalized if direction counts.

        Unit rows in float32 are only exact to 1e-7.
        """
        rows = self.take(which).astype(np.float64)
        if self.by_direction:
            rows /= norms(rows)[:, None]
        return rows


class Queries(NamedTuple):
    """A batch of queries in low precision.

    Attributes:
        low: [b, K], of the type that the codes multiply.
        unit: factor for scores [b].
        length: upper bound on the norm of the (scaled) low-precision query [b].
        lost: upper bound on the norm of its rounding error [b].
        sums: error of a product's sums, relative to the norms of its factors.
    """

    low: Any
    unit: Values
    length: Values
    lost: Values
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

    def leave_out(self, query: Ids, place: Ids) -> None:
        """Excludes some rows of the run, at most one for a query.

        It is called before any score is requested.
        """
        ...

    def best(self) -> Values:
        """Returns a lower bound on each query's best true score [b]."""
        ...

    def reaching(self, least: Values) -> tuple[Ids, Ids, Values]:
        """Finds the pairs whose true score may reach `least` [b].

        Returns the query, the place in the run, and the highest possible score of each pair.
        """
        ...


class Engine(Protocol):
    """Computes the first scores of the search."""

    def queries(self, queries: Values, lengths: Values) -> Queries:
        """Converts queries [b, d] with norms `lengths` [b] to low precision."""
        ...

    def spans(self, width: int) -> Iterator[RowRun]:
        """Yields all rows, `width` at a time."""
        ...

    def scores(self, run: Any, asked: Queries) -> RunScores:
        """Computes the scores of a run."""
        ...

    def place(self, row: Ids) -> Ids:
        """Returns the stored position of a row of the table."""
        ...

    def row(self, place: Ids) -> Ids:
        """Returns the row of the table at a stored position."""
        ...

    def narrowed(self, unit: Values, query: Ids, row: Ids) -> tuple[Ids, Ids]:
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

    def error(self, asked: Queries) -> Values:
        """Returns the largest score error in this run, for each query [b].

        Before the score is rounded.
        """
        return (asked.lost * self.row + asked.length * (self.away + asked.sums * self.length)) * (
            1 + SLACK
        ) + 1e-30


ROUNDED = 2 * HALF + SLACK
"""Relative rounding error of a float32 score itself, and slack."""


def low_end(score: Values, error: Values) -> Values:
    """Returns a lower bound on a true score."""
    return score - ROUNDED * np.abs(score) - error


def high_end(score: Values, error: Values) -> Values:
    """Returns an upper bound on a true score."""
    return score + ROUNDED * np.abs(score) + error


def floor_of(least: Values, error: Values) -> Floats:
    """Returns a float32 score below which no high end reaches `least`.

    It is finite.
    """
    high = least - error
    score = high / np.where(high >= 0, 1 + ROUNDED + SLACK, 1 - ROUNDED - SLACK)
    found: Floats = score.astype(np.float32)
    found = np.where(found > score, np.nextafter(found, np.float32(-np.inf)), found)
    return np.maximum(found, np.finfo(np.float32).min)


@dataclass(frozen=True, kw_only=True, eq=False)
class FloatScores:
    """Unscaled scores, float32 [b, w], and their largest errors [b]."""

    each: Floats
    error: Values

    def leave_out(self, query: Ids, place: Ids) -> None:  # noqa: D102
        self.each[query, place] = -np.inf

    def best(self) -> Values:  # noqa: D102
        return low_end(self.each.max(axis=1).astype(np.float64), self.error)

    def reaching(self, least: Values) -> tuple[Ids, Ids, Values]:  # noqa: D102
        hits = np.flatnonzero(self.each >= floor_of(least, self.error)[:, None])
        query, place = np.divmod(hits, self.each.shape[1])
        return query, place, high_end(self.each.ravel()[hits].astype(np.float64), self.error[query])


@dataclass(frozen=True, kw_only=True, eq=False)
class FloatCodes:
    """Rows and queries in float32.

    For distances the score is q.v - |v|^2 / 2: one more column holds half a row's squared norm,
    where the query has -1. Rows and queries are scaled by powers of two, which is exact.
    """

    rows: Rows

    def queries(self, queries: Values, lengths: Values) -> Queries:
        """Converts queries [b, d] with norms `lengths` [b] to low precision."""
        scaled, one = self.scaled(queries, lengths)
        low = scaled.astype(np.float32)
        lost, length = norms(scaled - low), norms(low.astype(np.float64))
        if one is not None:
            low = np.column_stack([low, -one.astype(np.float32)])
            length = np.hypot(length, one)
        return Queries(
            low, unit=np.ones(len(low)), length=length, lost=lost, sums=low.shape[1] * 4 * HALF
        )

    def scaled(self, queries: Values, lengths: Values) -> tuple[Values, Values | None]:
        """Scales queries [b, d] to a length of at most 1.

        For distances also returns the factor of a row's half squared norm [b], else None.
        """
        if self.rows.by_direction:
            return queries / np.where(lengths > 0, lengths, 1.0)[:, None], None
        size = np.exp2(np.ceil(np.log2(np.maximum(lengths * self.scale, 1.0)))) / self.scale
        return queries / size[:, None], 1 / (size * self.scale)

    def scores(self, run: FloatRun, asked: Queries) -> FloatScores:
        """Computes the scores of a run."""
        return FloatScores(each=asked.low @ run.low.T, error=run.error(asked))

    def place(self, row: Ids) -> Ids:
        """Returns the row: rows are in the table's order."""
        return row

    def row(self, place: Ids) -> Ids:
        """Returns the place: rows are in the table's order."""
        return place

    def narrowed(self, unit: Values, query: Ids, row: Ids) -> tuple[Ids, Ids]:
        """Keeps all candidates: there are hardly more than the nearest."""
        return query, row

    def spans(self, width: int) -> Iterator[FloatRun]:
        """Yields all rows, `width` at a time."""
        for start in range(0, self.rows.size, width):
            part = slice(start, start + width)
            low = self._low(part)
            if (known := self._sizes.get((start, width))) is None:
                known = self._sizes[start, width] = self._size(part, low)
            row, away, length = known
            yield FloatRun(start, len(low), low, row=row, away=away, length=length)

    def _low(self, part: slice) -> Floats:
        if self.rows.by_direction:
            return widened(self.rows.stored[part])
        scaled = self.rows.stored[part].astype(np.float64) * self.scale
        return np.column_stack([scaled, squares(scaled) / 2]).astype(np.float32)

    @cached_property
    def _sizes(self) -> dict[tuple[int, int], tuple[float, float, float]]:
        """Results of `_size` by first row and number of rows."""
        return {}

    def _size(self, part: slice, low: Floats) -> tuple[float, float, float]:
        """Finds the largest norms of a row, rounding error and low-precision row."""
        # in float32, which is fast: d squares and a root, and making unit vectors of rows
        if self.rows.by_direction:
            slack = (low.shape[1] + 8) * 2 * HALF
            lengths = norms(low)
            longest = float(lengths.max()) * (1 + slack)
            return 1 + SLACK, float(np.abs(lengths - 1).max()) + longest * slack, longest
        true, lowered = self.rows.true(part) * self.scale, low.astype(np.float64)
        away = np.column_stack([true, squares(true) / 2]) - lowered
        return longest_of(true), longest_of(away), longest_of(lowered)

    @cached_property
    def scale(self) -> float:
        """Power of two that scales the longest row to at most 1."""
        if self.rows.by_direction:
            return 1.0
        parts = (
            self.rows.true(slice(start, start + SLAB)) for start in range(0, self.rows.size, SLAB)
        )
        longest = max(map(longest_of, parts))
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


LEFT_OUT = np.iinfo(np.int32).min


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedScores:
    """Integer products by group [b, g, `GROUP`], with maxima [b, g]."""

    run: IntegerRun
    asked: Queries
    each: NDArray[np.int32]
    groups: NDArray[np.int32]

    def __post_init__(self) -> None:
        if last := self.run.size % GROUP:  # padding of the last group
            self.each[:, -1, last:] = LEFT_OUT
            self.groups[:, -1] = self.each[:, -1].max(axis=1)

    def leave_out(self, query: Ids, place: Ids) -> None:  # noqa: D102
        group, member = np.divmod(place, GROUP)
        self.each[query, group, member] = LEFT_OUT
        self.groups[query, group] = self.each[query, group].max(axis=1)

    def best(self) -> Values:  # noqa: D102
        group = self._scaled.argmax(axis=1)
        lengths, asked = np.arange(len(group)), self.asked
        score = asked.unit * self._scaled[lengths, group] - asked.length * self.run.away[group]
        return np.asarray(score - asked.lost)

    def reaching(self, least: Values) -> tuple[Ids, Ids, Values]:  # noqa: D102
        asked, run = self.asked, self.run
        floor = ((least - asked.lost) / asked.unit).astype(np.float32)[:, None]
        reach = (asked.length / asked.unit).astype(np.float32)[:, None] * run.away.astype(
            np.float32
        )
        hits = np.flatnonzero(self._scaled >= np.subtract(floor, reach, out=reach))
        query, group = np.divmod(hits, self.groups.shape[1])
        members = self.each[query, group]
        high = members * (asked.unit[query] * run.unit[group])[:, None]
        high += (asked.length[query] * run.away[group] + asked.lost[query])[:, None]
        line, place = np.nonzero((high >= least[query][:, None]) & (members != LEFT_OUT))
        return query[line], group[line] * GROUP + place, high[line, place]

    @cached_property
    def _scaled(self) -> Floats:
        return np.multiply(self.groups, self.run.unit, dtype=np.float32, casting="unsafe")


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerCodes:
    """Unit rows and queries as int8, rotated to even out their coordinates.

    Rows are stored by their largest coordinate, so that those of one group have nearly the same
    unit.
    """

    rows: Rows

    def queries(self, queries: Values, lengths: Values) -> Queries:
        """Converts queries [b, d] with norms `lengths` [b] to int8."""
        turned = self._turned(queries / np.where(lengths > 0, lengths, 1.0)[:, None])
        unit = np.abs(turned).max(axis=1) / np.float32(127)
        unit[unit == 0] = 1
        low, back = _quantize(turned, unit[:, None])
        length, away = norms(back) * self._rounded, norms(turned - back) * self._rounded
        unit, length, away = (each.astype(np.float64) for each in (unit, length, away))
        return Queries(
            low, unit=unit, length=length, lost=(away + self._turning) * (1 + SLACK), sums=0.0
        )

    def scores(self, run: IntegerRun, asked: Queries) -> GroupedScores:
        """Computes the scores of a run."""
        each, groups = run.low.maxima(asked.low)
        return GroupedScores(
            run=run, asked=asked, each=each.reshape(*groups.shape, GROUP), groups=groups
        )

    def place(self, row: Ids) -> Ids:
        """Returns the stored position of a row of the table."""
        return self._places[row]

    def row(self, place: Ids) -> Ids:
        """Returns the row of the table at a stored position."""
        return self._order[place]

    def narrowed(self, unit: Values, query: Ids, row: Ids) -> tuple[Ids, Ids]:
        """Reduces the candidates by float32 scores.

        int8 leaves a dozen, or hundreds where rows are not rotated.
        """
        order = query.argsort(kind="stable")
        query, row = query[order], row[order]
        score = self.products(unit.astype(np.float32), query, row)
        starts = np.flatnonzero(np.diff(query, prepend=-1))
        best = np.repeat(np.maximum.reduceat(score, starts), np.diff(starts, append=len(query)))
        # d sums; rows of length 1 nearly
        error = (unit.shape[1] + 8) * 2 * HALF + NEARLY[score.dtype]
        left = score >= best - np.float32(2 * error)
        return query[left], row[left]

    def products(self, unit: Floats, query: Ids, row: Ids) -> Floats:
        """Computes products of pairs of unit query and unit row, in float32.

        Queries are [b, d].
        """
        found = np.empty(len(row), np.float32)
        for start in range(0, len(row), PAIRS):
            part = slice(start, start + PAIRS)
            rows = widened(self.rows.stored[row[part]])
            found[part] = np.einsum("ij,ij->i", unit[query[part]], rows)
            if self.rows.stored.dtype != np.float32:  # of length 1 only nearly
                found[part] /= norms(rows)
        return found

    def spans(self, width: int) -> Iterator[IntegerRun]:
        """Yields all rows, `width` at a time, a multiple of `GROUP`."""
        for start in range(0, self.rows.size, width):
            parts = [
                self._coded(at) for at in range(start, min(start + width, self.rows.size), SLAB)
            ]
            whole, unit, away = (np.concatenate(each) for each in zip(*parts, strict=True))
            yield IntegerRun(
                start, len(whole), IntegerRows(whole, grouped=True), unit=unit, away=away
            )

    def _coded(self, start: int) -> tuple[NDArray[np.int8], Floats, Values]:
        """Quantizes a slab of rows to integers.

        Also returns the unit and the largest error of each group.
        """
        turned = self._turned(self.rows.take(self._order[start : start + SLAB]))
        firsts = np.arange(0, len(turned), GROUP)
        unit = (np.maximum.reduceat(np.abs(turned).max(axis=1), firsts) / 127).astype(np.float32)
        unit[unit == 0] = 1
        whole, back = _quantize(turned, np.repeat(unit, GROUP)[: len(turned), None])
        away = np.maximum.reduceat(norms(turned - back), firsts).astype(np.float64)
        return whole, unit, away * self._rounded + self._turning + NEARLY[turned.dtype] + SCALING

    @cached_property
    def _order(self) -> Ids:
        parts = (
            self._turned(self.rows.take(slice(start, start + SLAB)))
            for start in range(0, self.rows.size, SLAB)
        )
        return np.concatenate([np.abs(part).max(axis=1) for part in parts]).argsort(kind="stable")

    @cached_property
    def _places(self) -> Ids:
        return self._order.argsort()

    def _turned(self, vectors: Values | Floats) -> Floats:
        return rotated(vectors.astype(np.float32, copy=False))

    @property
    def _turning(self) -> float:
        return turning(self.rows.dimension)

    @property
    def _rounded(self) -> float:
        """Factor for norms that were computed in float32."""
        return 1 + (self.rows.dimension + 16) * 2 * HALF


def _quantize(vectors: Floats, unit: Floats | np.float32) -> tuple[NDArray[np.int8], Floats]:
    """Quantizes vectors [n, d] to int8 multiples of a unit.

    Also returns the vectors that the integers represent.
    """
    whole = np.rint(vectors / unit)
    return whole.astype(np.int8), whole * unit


def squares(vectors: NDArray[Any]) -> NDArray[Any]:
    """Computes the squared norms of rows [n]."""
    found: NDArray[Any] = np.einsum("ij,ij->i", vectors, vectors)
    return found


def norms(vectors: NDArray[Any]) -> NDArray[Any]:
    """Computes the norms of rows [n], in their precision."""
    return np.asarray(np.sqrt(squares(vectors)))


def longest_of(vectors: Values) -> float:
    """Returns the largest norm of a row, rounded up."""
    return float(norms(vectors).max()) * (1 + SLACK)


# ---- the rotation --------------------------------------------------------------------------------


def rotated(vectors: Floats) -> Floats:
    """Rotates vectors [n, d] to even out their coordinates.

    Quantizing to integers then loses less of them.
    """
    turns = _build_rotation(vectors.shape[1])
    return np.asarray((vectors.reshape(-1, len(turns)) @ turns).reshape(vectors.shape))


def turning(dimension: int) -> float:
    """Bounds the float32 error of rotating a unit vector and dequantizing it."""
    d = len(_build_rotation(dimension))
    return float(((d + 2) * d**0.5 + 4) * HALF)


@cache
def _build_rotation(dimension: int) -> Floats:
    """Builds the rotation of one block of coordinates: the discrete sine transform.

    It is an orthogonal matrix.
    """
    d = max((size for size in BLOCKS if dimension % size == 0), default=dimension)
    n = np.arange(1, d + 1)
    turns = np.sin(np.outer(n, n) * (math.pi / (d + 1))) * math.sqrt(2 / (d + 1))
    rotation: Floats = turns.astype(np.float32)
    return rotation
