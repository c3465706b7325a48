"""Distances between the rows of a table: cheap bounds, then exact ones.

In: row numbers. Out: lower bounds on their distances to all rows, distances of pairs, the nearest
neighbours. Exact distances are computed for the few pairs that matter.
Not here: the row nearest to any vector (`nearest`), and cached neighbour lists (`embedding`).

Let x and y be two rows about a common centre, x = |x| (u x' + e) with integers x' of at most 127.
Then

    |x.y - |x||y| u_x u_y x'.y'|  <=  |x||y| (|e_x| + (1 + |e_x|) |e_y|)

by Cauchy-Schwarz twice, and |x - y|^2 = |x|^2 + |y|^2 - 2 x.y. Integers are multiplied exactly, and
everything after is element-wise: no bit of a bound depends on which other rows are in the batch.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from textveil.randomness import Floats, Ids, Values
from textveil.table import int8
from textveil.table.int8 import GROUP, Bytes, IntegerRows
from textveil.table.quantized import Rows, compute_norms, compute_rotation_error, rotate

SLAB_ROWS = 1 << 12
"""Rows compared at once."""

BATCH_ROWS = 64
"""Rows whose neighbours are searched at once."""

LINES_AT_ONCE = 32
"""Requested rows whose lower bounds are computed at once.

With `SLAB_ROWS` others they stay in a processor's cache.
"""

MAX_CACHED_NUMBERS = 1 << 30
"""Largest number of cached low-precision numbers, a byte each.

Beyond, they are recomputed for each call.
"""

ETA = np.float32(2.0**-19)
"""Relative float32 error of a bound, in units of |x|^2 + |y|^2.

More than the dozen operations of a bound lose.
"""

MAX_PAIRS = 1 << 10
"""Pairs of rows whose distances are computed at once."""

MAX_GROUP_ROWS = 1 << 8
"""Rows compared at once inside their groups."""

MAX_CANDIDATES = 1 << 20
"""Largest number of pairs kept for measuring.

Above this, they are measured before the search continues.
"""

MAX_FINITE_BOUND = np.finfo(np.float32).max
"""Largest finite bound, so that only the row itself is excluded.

The row itself, not its neighbour, is at infinity.
"""

MAX_EXACT_INTEGER = 1 << 24
"""Largest integer up to which float32 holds all integers."""


Multiplier = Callable[[Bytes], Floats]
"""Function from integers of rows [m, d] to their products [m, w].

The products are float32, with all rows of a run.
"""


class RowCodes(NamedTuple):
    """Rows in low precision.

    Attributes:
        whole: x', int8 [w, d].
        unit: u, float32 [w].
        rounding_error: at least |e|, float32 [w].
        length: |x|, float64 [w].
    """

    whole: Bytes
    unit: Floats
    rounding_error: Floats
    length: Values

    def select(self, which: slice | Ids) -> "RowCodes":
        """Returns some of the rows."""
        return RowCodes(
            self.whole[which], self.unit[which], self.rounding_error[which], self.length[which]
        )


class Slab(NamedTuple):
    """A run of rows with the squared distances to the requested rows.

    The squared distance to row `start + j` is `middle[:, j]` up to `error[:, j]`. Both are float32
    [m, w], in units of the square of `Pairs.length_scale`.
    """

    start: int
    middle: Floats
    error: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """The rows of a table, ready for comparison with one another.

    Attributes:
        rows: the rows.
    """

    rows: Rows

    def bound_squares(self, row_numbers: Ids) -> Iterator[Slab]:
        """Bounds the squared distances of the requested rows to all rows.

        The requested rows are int64 [m]; the bounds come a run at a time.
        """
        query_codes = self._get_codes(row_numbers)
        length = self._scale_lengths(query_codes)[:, None]
        unit, mine = query_codes.unit[:, None], query_codes.rounding_error[:, None]
        turned = -2 * length * unit
        query_error = 2 * length * mine
        over = 2 * length * (1 + mine)
        square = length * length
        for start, codes, multiply in self._yield_slabs(self._build_plain):
            sizes = self._scale_lengths(codes)
            middle = multiply(query_codes.whole)
            middle *= turned
            middle += sizes * sizes
            middle += square
            error = query_error * sizes
            error += over * (sizes * codes.rounding_error)
            error += ETA * (sizes * sizes)
            error += ETA * square
            yield Slab(start, middle, error)

    def bound_distances(self, row_numbers: Ids) -> Iterator[tuple[slice, int, Floats]]:
        """Bounds the distances of the requested rows to all rows from below.

        The requested rows are [m]; distances are in units of `length_scale`.

        All requested rows are in one unit g here, which loses at most l of any of them. As 2 |x||y|
        <= |x|^2 + |y|^2,

            |x - y|^2  >=  |x|^2 (1 - |e|) + |y|^2 (1 - |e_y|) - 2 |y| l (1 + |e_y|)  -  2 g |y| u_y
            x'.y'

        with the largest |e| of any row, and all but the first term is one function of y for all x.

        Yields:
            The slice of the requested rows, the first row of a run, and float32 [l, w].
        """
        query_codes = self._get_codes(row_numbers)
        whole = np.rint(
            query_codes.whole
            * (query_codes.unit * query_codes.length / self._grid).astype(np.float32)[:, None]
        ).astype(np.int8)
        fixed = (
            self._scale_lengths(query_codes) ** 2
            * np.float32(1 - 2 * ETA - self._slab_maxima.rounding_error.max())
        )[:, None]
        for start, _, multiply in self._yield_slabs(self._build_lower):
            products = multiply(whole)
            for first in range(0, len(row_numbers), LINES_AT_ONCE):
                lines = slice(first, first + LINES_AT_ONCE)
                bounds = products[lines]
                bounds += fixed[lines]
                np.clip(bounds, 0, MAX_FINITE_BOUND, out=bounds)
                yield lines, start, np.sqrt(bounds, out=bounds)

    def _build_lower(self, codes: RowCodes) -> Multiplier:
        """Returns the function that computes the bound of `bound_distances`.

        Without the first term.
        """
        sizes, grid = self._scale_lengths(codes), self._grid / self.length_scale
        # the loss of converting integers to another unit
        again = grid * self.rows.dimension**0.5 / 2 * (1 + 1e-4)
        loss = np.float32(
            (self._slab_maxima.rounding_error * self._slab_maxima.length).max() / self.length_scale
            + again
        )
        added = sizes**2 * (1 - 2 * ETA - codes.rounding_error) - 2 * sizes * loss * (
            1 + codes.rounding_error
        )
        return self._build_multiplier(codes, np.float32(-2 * grid) * sizes * codes.unit, added)

    def _build_plain(self, codes: RowCodes) -> Multiplier:
        """Returns the function that computes |y| u_y x'.y'."""
        return self._build_multiplier(
            codes, self._scale_lengths(codes) * codes.unit, np.zeros(len(codes.unit), np.float32)
        )

    @cached_property
    def _grid(self) -> float:
        """The unit in which all rows are integers of at most 127."""
        return float((self._slab_maxima.unit * self._slab_maxima.length).max())

    def _scale_lengths(self, codes: RowCodes) -> Floats:
        """Returns the lengths in units of `length_scale`."""
        scaled: Floats = (codes.length / self.length_scale).astype(np.float32)
        return scaled

    @cached_property
    def _slab_maxima(self) -> RowCodes:
        """The largest unit, loss and length of each slab, without integers."""
        maxima = [
            (codes.unit.max(), codes.rounding_error.max(), codes.length.max())
            for _, codes in self._yield_codes()
        ]
        unit, errors, length = (np.array(column) for column in zip(*maxima, strict=True))
        return RowCodes(np.zeros((0, 0), np.int8), unit, errors, length)

    def compute_distances(self, rows: Ids, other_rows: Ids) -> Values:
        """Computes the distance of each pair of rows, float64 [n].

        From their difference.
        """
        distances = np.empty(len(rows))
        for start in range(0, len(rows), MAX_PAIRS):
            part = slice(start, start + MAX_PAIRS)
            distances[part] = compute_norms(
                self.rows.take(rows[part]).astype(np.float64) - self.rows.take(other_rows[part])
            )
        return distances

    def compute_group_distances(self, groups: Ids) -> Values:
        """Computes the distances inside each group [G, K], float64 [G, K, K].

        Infinite to -1.
        """
        k = groups.shape[1]
        distances = np.zeros((len(groups), k, k))
        step = max(1, MAX_GROUP_ROWS // k)
        for start in range(0, len(groups), step):
            group_rows, part = groups[start : start + step], distances[start : start + step]
            rows = (
                self.rows.take(group_rows.ravel()).astype(np.float64).reshape(*group_rows.shape, -1)
            )
            for member in range(k - 1):
                apart = rows[:, member, None] - rows[:, member + 1 :]
                apart = compute_norms(apart.reshape(-1, self.rows.dimension)).reshape(
                    len(group_rows), -1
                )
                part[:, member, member + 1 :] = part[:, member + 1 :, member] = apart
            part.transpose(0, 2, 1)[group_rows < 0] = np.inf
        return distances

    def find_nearest(self, rows: Ids, k: int) -> Ids:
        """Finds the k - 1 nearest other rows of each row [m].

        Returns int64 [m, k] with the row itself first; ties go to the lowest row.
        """
        nearest = np.empty((len(rows), k), np.int64)
        nearest[:, 0] = rows
        for start in range(0, len(rows) if k > 1 else 0, BATCH_ROWS):
            part = slice(start, start + BATCH_ROWS)
            nearest[part, 1:] = self._find_nearest(rows[part], k - 1)
        return nearest

    def _find_nearest(self, rows: Ids, k: int) -> Ids:
        """Finds the k nearest other rows of each row [m, k].

        The k-th smallest upper bound of groups of rows is never below the k-th smallest distance,
        so a row with a larger lower bound is not among the nearest.
        """
        best = np.full((len(rows), k), np.inf, np.float32)  # the smallest upper bounds so far
        candidates: list[tuple[Ids, Ids, Floats]] = []
        count = 0
        for start, low, error in self.bound_squares(rows):
            high = low + error
            low -= error
            inside = np.flatnonzero((rows >= start) & (rows < start + low.shape[1]))
            low[inside, rows[inside] - start] = high[inside, rows[inside] - start] = np.inf
            if short := -high.shape[1] % GROUP:
                high = np.pad(high, ((0, 0), (0, short)), constant_values=np.inf)
            best = np.column_stack([best, high.reshape(len(rows), GROUP, -1).min(axis=1)])
            best = np.partition(best, k - 1, axis=1)[:, :k]
            upper_bounds = best[:, k - 1].copy()
            owner, place = np.divmod(
                np.flatnonzero(low <= np.minimum(upper_bounds, MAX_FINITE_BOUND)[:, None]),
                low.shape[1],
            )
            candidates.append((owner, start + place, low[owner, place]))
            count += len(owner)
            if count > MAX_CANDIDATES:
                owners, closest = self._find_closest(rows, candidates, upper_bounds, k)
                # Minus infinity: these were measured, and stay candidates whatever the bound.
                candidates = [(owners, closest, np.full(len(owners), -np.inf, np.float32))]
                count = len(owners)
        return self._find_closest(rows, candidates, best[:, k - 1], k)[1].reshape(len(rows), k)

    def _find_closest(
        self, rows: Ids, candidates: list[tuple[Ids, Ids, Floats]], upper_bounds: Floats, k: int
    ) -> tuple[Ids, Ids]:
        """Finds each owner's k closest among the kept pairs, in order.

        The pairs are kept with their lower bounds.
        """
        owner, other, low = (np.concatenate(column) for column in zip(*candidates, strict=True))
        is_candidate = low <= upper_bounds[owner]
        owner, other = owner[is_candidate], other[is_candidate]
        order = np.lexsort((other, self.compute_distances(rows[owner], other), owner))
        owner, other = owner[order], other[order]
        first = np.arange(len(owner)) - np.searchsorted(owner, owner) < k
        return owner[first], other[first]

    @cached_property
    def length_scale(self) -> float:
        """A power of two above every row's distance from the centre."""
        longest = max(
            float(compute_norms((slab - self._centre).astype(np.float64)).max())
            for _, slab in self._yield_parts()
        )
        # A power of two scales without rounding.
        return float(2.0 ** math.ceil(math.log2(longest * (1 + 2.0**-19)))) if longest > 0 else 1.0

    @cached_property
    def _centre(self) -> Floats:
        """The mean row, which makes vectors short.

        Any centre would do, if it is the same for all.
        """
        sums = [slab.sum(axis=0, dtype=np.float64) for _, slab in self._yield_parts()]
        centre: Floats = (np.sum(sums, axis=0) / self.rows.size).astype(np.float32)
        return centre

    def _yield_parts(self) -> Iterator[tuple[int, Floats]]:
        for start in range(0, self.rows.size, SLAB_ROWS):
            yield start, self.rows.take(slice(start, start + SLAB_ROWS))

    def _yield_slabs(
        self, build: Callable[[RowCodes], Multiplier]
    ) -> Iterator[tuple[int, RowCodes, Multiplier]]:
        """Yields all rows in low precision, with the functions that multiply them."""
        if not self._can_cache:
            yield from ((start, codes, build(codes)) for start, codes in self._yield_codes())
        elif (slabs := self._cached_slabs.get(build.__name__)) is None:
            slabs = self._cached_slabs[build.__name__] = [
                (start, codes, build(codes)) for start, codes in self._yield_codes()
            ]
            yield from slabs
        else:
            yield from slabs

    @cached_property
    def _cached_slabs(self) -> dict[str, list[tuple[int, RowCodes, Multiplier]]]:
        return {}

    def _yield_codes(self) -> Iterator[tuple[int, RowCodes]]:
        for start, slab in self._yield_parts():
            if self._can_cache:
                yield start, self._cached_codes.select(slice(start, start + SLAB_ROWS))
            else:
                yield start, _quantize(slab - self._centre, even=False)

    @property
    def _can_cache(self) -> bool:
        return self.rows.stored.size <= MAX_CACHED_NUMBERS

    @cached_property
    def _cached_codes(self) -> RowCodes:
        parts = [_quantize(slab - self._centre, even=True) for _, slab in self._yield_parts()]
        return RowCodes(
            np.concatenate([part.whole for part in parts]),
            np.concatenate([part.unit for part in parts]),
            np.concatenate([part.rounding_error for part in parts]),
            np.concatenate([part.length for part in parts]),
        )

    def _get_codes(self, row_numbers: Ids) -> RowCodes:
        """Returns the requested rows in low precision.

        They are looked up where rows are kept: a rotation of few rows may differ from that of many
        in its last bits.
        """
        if self._can_cache:
            return self._cached_codes.select(row_numbers)
        return _quantize(self.rows.take(row_numbers) - self._centre, even=False)

    # ---- exact products of integers --------------------------------------------------------------

    @cached_property
    def _type(self) -> type[np.int8 | np.float32 | np.float64]:
        """The type that multiplies integers exactly and quickly here.

        Sessions of the engine are for rows that are kept.
        """
        if self._can_cache and int8.is_exact():
            return np.int8
        return np.float32 if 127 * 127 * self.rows.dimension < MAX_EXACT_INTEGER else np.float64

    def _build_multiplier(self, codes: RowCodes, factor: Floats, added: Floats) -> Multiplier:
        """Returns the function that computes exact products x'.y' [m, w].

        Times a factor for each y, plus a term [w].
        """
        if self._type is np.int8:
            return IntegerRows(codes.whole, scale=(factor, added)).multiply_scaled
        rows = codes.whole.astype(self._type)

        def multiply(whole: Bytes) -> Floats:
            products: Floats = (whole.astype(rows.dtype) @ rows.T).astype(np.float32, copy=False)
            products *= factor
            products += added
            return products

        return multiply


def _quantize(rows: Floats, *, even: bool) -> RowCodes:
    """Quantizes rows [w, d], float32, with or without evening out their coordinates."""
    length = compute_norms(rows.astype(np.float64))
    rows = rows / np.where(length > 0, length, 1.0).astype(np.float32)[:, None]
    if even:
        rows = rotate(rows)
    unit = np.abs(rows).max(axis=1) / np.float32(127)
    unit[unit == 0] = 1
    whole = np.rint(rows / unit[:, None])
    errors = compute_norms(rows - whole * unit[:, None])
    slack = (rows.shape[1] + 16) * 2.0**-24  # for a sum of d squares; 2^-20 for normalizing rows
    rounding = 2.0**-20 + compute_rotation_error(rows.shape[1])
    return RowCodes(
        whole.astype(np.int8),
        unit,
        errors * np.float32(1 + 2 * slack) + np.float32(rounding),
        length,
    )


def find_largest(values: Values, k: int) -> Ids:
    """Finds the places of each row's k largest values [m, V].

    Returns int64 [m, k] in order; ties go to the lowest place.
    """
    size = values.shape[1]
    thresholds = np.full(len(values), -np.inf)
    if k * GROUP <= size:  # the k-th largest of maxima is never above the k-th largest of all
        maxima = values[:, : size - size % GROUP].reshape(len(values), GROUP, -1).max(axis=1)
        thresholds = np.partition(maxima, -k, axis=1)[:, -k]
    line, place = np.divmod(np.flatnonzero(values >= thresholds[:, None]), size)
    order = np.lexsort((place, -values[line, place], line))
    line, place = line[order], place[order]
    first = np.arange(len(line)) - np.searchsorted(line, line) < k
    return place[first].reshape(len(values), k)
