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
from textveil.table import engine
from textveil.table.codes import Rows, norms, rotated, turning
from textveil.table.engine import GROUP, Bytes, IntegerRows

SLAB = 1 << 12
"""Rows compared at once."""

BATCH = 64
"""Rows whose neighbours are searched at once."""

LINES = 32
"""Requested rows whose lower bounds are computed at once.

With `SLAB` others they stay in a processor's cache.
"""

KEPT = 1 << 30
"""Largest number of cached low-precision numbers, a byte each.

Beyond, they are recomputed for each call.
"""

ETA = np.float32(2.0**-19)
"""Relative float32 error of a bound, in units of |x|^2 + |y|^2.

More than the dozen operations of a bound lose.
"""

PAIRS = 1 << 10
"""Pairs of rows whose distances are computed at once."""

INSIDE = 1 << 8
"""Rows compared at once inside their groups."""

HELD = 1 << 20
"""Largest number of pairs kept for measuring.

Above this, they are measured before the search continues.
"""

LARGEST = np.finfo(np.float32).max
"""Largest finite bound, so that only the row itself is excluded.

The row itself, not its neighbour, is at infinity.
"""

EXACT = 1 << 24
"""Largest integer up to which float32 holds all integers."""


Multiplied = Callable[[Bytes], Floats]
"""Function from integers of rows [m, d] to their products [m, w].

The products are float32, with all rows of a run.
"""


class Codes(NamedTuple):
    """Rows in low precision.

    Attributes:
        whole: x', int8 [w, d].
        unit: u, float32 [w].
        lost: at least |e|, float32 [w].
        length: |x|, float64 [w].
    """

    whole: Bytes
    unit: Floats
    lost: Floats
    length: Values

    def part(self, which: slice | Ids) -> "Codes":
        """Returns some of the rows."""
        return Codes(self.whole[which], self.unit[which], self.lost[which], self.length[which])


class Slab(NamedTuple):
    """A run of rows with the squared distances to the requested rows.

    The squared distance to row `start + j` is `middle[:, j]` up to `error[:, j]`. Both are float32
    [m, w], in units of the square of `Pairs.reach`.
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

    def squares(self, asked: Ids) -> Iterator[Slab]:
        """Bounds the squared distances of the requested rows to all rows.

        The requested rows are int64 [m]; the bounds come a run at a time.
        """
        own = self._coded(asked)
        length = self._scaled(own)[:, None]
        unit, mine = own.unit[:, None], own.lost[:, None]
        turned = -2 * length * unit
        lost = 2 * length * mine
        over = 2 * length * (1 + mine)
        square = length * length
        for start, codes, multiplied in self._slabs(self._plain):
            sizes = self._scaled(codes)
            middle = multiplied(own.whole)
            middle *= turned
            middle += sizes * sizes
            middle += square
            error = lost * sizes
            error += over * (sizes * codes.lost)
            error += ETA * (sizes * sizes)
            error += ETA * square
            yield Slab(start, middle, error)

    def shorter(self, asked: Ids) -> Iterator[tuple[slice, int, Floats]]:
        """Bounds the distances of the requested rows to all rows from below.

        The requested rows are [m]; distances are in units of `reach`.

        All requested rows are in one unit g here, which loses at most l of any of them. As 2 |x||y|
        <= |x|^2 + |y|^2,

            |x - y|^2  >=  |x|^2 (1 - |e|) + |y|^2 (1 - |e_y|) - 2 |y| l (1 + |e_y|)  -  2 g |y| u_y
            x'.y'

        with the largest |e| of any row, and all but the first term is one function of y for all x.

        Yields:
            The slice of the requested rows, the first row of a run, and float32 [l, w].
        """
        own = self._coded(asked)
        whole = np.rint(
            own.whole * (own.unit * own.length / self._grid).astype(np.float32)[:, None]
        ).astype(np.int8)
        fixed = (self._scaled(own) ** 2 * np.float32(1 - 2 * ETA - self._most.lost.max()))[:, None]
        for start, _, multiplied in self._slabs(self._lower):
            products = multiplied(whole)
            for first in range(0, len(asked), LINES):
                lines = slice(first, first + LINES)
                found = products[lines]
                found += fixed[lines]
                np.clip(found, 0, LARGEST, out=found)
                yield lines, start, np.sqrt(found, out=found)

    def _lower(self, codes: Codes) -> Multiplied:
        """Returns the function that computes the bound of `shorter`.

        Without the first term.
        """
        sizes, grid = self._scaled(codes), self._grid / self.reach
        # the loss of converting integers to another unit
        again = grid * self.rows.dimension**0.5 / 2 * (1 + 1e-4)
        lost = np.float32((self._most.lost * self._most.length).max() / self.reach + again)
        added = sizes**2 * (1 - 2 * ETA - codes.lost) - 2 * sizes * lost * (1 + codes.lost)
        return self._multiplied(codes, np.float32(-2 * grid) * sizes * codes.unit, added)

    def _plain(self, codes: Codes) -> Multiplied:
        """Returns the function that computes |y| u_y x'.y'."""
        return self._multiplied(
            codes, self._scaled(codes) * codes.unit, np.zeros(len(codes.unit), np.float32)
        )

    @cached_property
    def _grid(self) -> float:
        """The unit in which all rows are integers of at most 127."""
        return float((self._most.unit * self._most.length).max())

    def _scaled(self, codes: Codes) -> Floats:
        """Returns the lengths in units of `reach`."""
        scaled: Floats = (codes.length / self.reach).astype(np.float32)
        return scaled

    @cached_property
    def _most(self) -> Codes:
        """The largest unit, loss and length of each slab, without integers."""
        most = [
            (codes.unit.max(), codes.lost.max(), codes.length.max()) for _, codes in self._codes()
        ]
        unit, lost, length = (np.array(column) for column in zip(*most, strict=True))
        return Codes(np.zeros((0, 0), np.int8), unit, lost, length)

    def distances(self, rows: Ids, others: Ids) -> Values:
        """Computes the distance of each pair of rows, float64 [n].

        From their difference.
        """
        found = np.empty(len(rows))
        for start in range(0, len(rows), PAIRS):
            part = slice(start, start + PAIRS)
            found[part] = norms(
                self.rows.take(rows[part]).astype(np.float64) - self.rows.take(others[part])
            )
        return found

    def inside(self, groups: Ids) -> Values:
        """Computes the distances inside each group [G, K], float64 [G, K, K].

        Infinite to -1.
        """
        k = groups.shape[1]
        found = np.zeros((len(groups), k, k))
        step = max(1, INSIDE // k)
        for start in range(0, len(groups), step):
            some, part = groups[start : start + step], found[start : start + step]
            rows = self.rows.take(some.ravel()).astype(np.float64).reshape(*some.shape, -1)
            for one in range(k - 1):
                apart = rows[:, one, None] - rows[:, one + 1 :]
                apart = norms(apart.reshape(-1, self.rows.dimension)).reshape(len(some), -1)
                part[:, one, one + 1 :] = part[:, one + 1 :, one] = apart
            part.transpose(0, 2, 1)[some < 0] = np.inf
        return found

    def nearest(self, rows: Ids, k: int) -> Ids:
        """Finds the k - 1 nearest other rows of each row [m].

        Returns int64 [m, k] with the row itself first; ties go to the lowest row.
        """
        found = np.empty((len(rows), k), np.int64)
        found[:, 0] = rows
        for start in range(0, len(rows) if k > 1 else 0, BATCH):
            part = slice(start, start + BATCH)
            found[part, 1:] = self._nearest(rows[part], k - 1)
        return found

    def _nearest(self, rows: Ids, k: int) -> Ids:
        """Finds the k nearest other rows of each row [m, k].

        The k-th smallest upper bound of groups of rows is never below the k-th smallest distance,
        so a row with a larger lower bound is not among the nearest.
        """
        best = np.full((len(rows), k), np.inf, np.float32)  # the smallest upper bounds so far
        held: list[tuple[Ids, Ids, Floats]] = []
        count = 0
        for start, low, error in self.squares(rows):
            high = low + error
            low -= error
            inside = np.flatnonzero((rows >= start) & (rows < start + low.shape[1]))
            low[inside, rows[inside] - start] = high[inside, rows[inside] - start] = np.inf
            if short := -high.shape[1] % GROUP:
                high = np.pad(high, ((0, 0), (0, short)), constant_values=np.inf)
            best = np.column_stack([best, high.reshape(len(rows), GROUP, -1).min(axis=1)])
            best = np.partition(best, k - 1, axis=1)[:, :k]
            most = best[:, k - 1].copy()
            owner, place = np.divmod(
                np.flatnonzero(low <= np.minimum(most, LARGEST)[:, None]), low.shape[1]
            )
            held.append((owner, start + place, low[owner, place]))
            count += len(owner)
            if count > HELD:
                owners, others = self._closest(rows, held, most, k)
                held = [(owners, others, np.full(len(owners), -np.inf, np.float32))]
                count = len(owners)
        return self._closest(rows, held, best[:, k - 1], k)[1].reshape(len(rows), k)

    def _closest(
        self, rows: Ids, held: list[tuple[Ids, Ids, Floats]], most: Floats, k: int
    ) -> tuple[Ids, Ids]:
        """Finds each owner's k closest among the kept pairs, in order.

        The pairs are kept with their lower bounds.
        """
        owner, other, low = (np.concatenate(column) for column in zip(*held, strict=True))
        left = low <= most[owner]
        owner, other = owner[left], other[left]
        order = np.lexsort((other, self.distances(rows[owner], other), owner))
        owner, other = owner[order], other[order]
        first = np.arange(len(owner)) - np.searchsorted(owner, owner) < k
        return owner[first], other[first]

    @cached_property
    def reach(self) -> float:
        """A power of two above every row's distance from the centre."""
        longest = max(
            float(norms((slab - self._centre).astype(np.float64)).max())
            for _, slab in self._parts()
        )
        return float(2.0 ** math.ceil(math.log2(longest * (1 + 2.0**-19)))) if longest > 0 else 1.0

    @cached_property
    def _centre(self) -> Floats:
        """The mean row, which makes vectors short.

        Any centre would do, if it is the same for all.
        """
        sums = [slab.sum(axis=0, dtype=np.float64) for _, slab in self._parts()]
        centre: Floats = (np.sum(sums, axis=0) / self.rows.size).astype(np.float32)
        return centre

    def _parts(self) -> Iterator[tuple[int, Floats]]:
        for start in range(0, self.rows.size, SLAB):
            yield start, self.rows.take(slice(start, start + SLAB))

    def _slabs(self, how: Callable[[Codes], Multiplied]) -> Iterator[tuple[int, Codes, Multiplied]]:
        """Yields all rows in low precision, with the functions that multiply them."""
        if not self._keeps:
            yield from ((start, codes, how(codes)) for start, codes in self._codes())
        elif (slabs := self._made.get(how.__name__)) is None:
            slabs = self._made[how.__name__] = [
                (start, codes, how(codes)) for start, codes in self._codes()
            ]
            yield from slabs
        else:
            yield from slabs

    @cached_property
    def _made(self) -> dict[str, list[tuple[int, Codes, Multiplied]]]:
        return {}

    def _codes(self) -> Iterator[tuple[int, Codes]]:
        for start, slab in self._parts():
            if self._keeps:
                yield start, self._kept.part(slice(start, start + SLAB))
            else:
                yield start, _codes(slab - self._centre, even=False)

    @property
    def _keeps(self) -> bool:
        return self.rows.stored.size <= KEPT

    @cached_property
    def _kept(self) -> Codes:
        parts = [_codes(slab - self._centre, even=True) for _, slab in self._parts()]
        return Codes(
            np.concatenate([part.whole for part in parts]),
            np.concatenate([part.unit for part in parts]),
            np.concatenate([part.lost for part in parts]),
            np.concatenate([part.length for part in parts]),
        )

    def _coded(self, asked: Ids) -> Codes:
        """Returns the requested rows in low precision.

        They are looked up where rows are kept: a rotation of few rows may differ from that of many
        in its last bits.
        """
        if self._keeps:
            return self._kept.part(asked)
        return _codes(self.rows.take(asked) - self._centre, even=False)

    # ---- exact products of integers --------------------------------------------------------------

    @cached_property
    def _type(self) -> type[np.int8 | np.float32 | np.float64]:
        """The type that multiplies integers exactly and quickly here.

        Sessions of the engine are for rows that are kept.
        """
        if self._keeps and engine.exact():
            return np.int8
        return np.float32 if 127 * 127 * self.rows.dimension < EXACT else np.float64

    def _multiplied(self, codes: Codes, factor: Floats, added: Floats) -> Multiplied:
        """Returns the function that computes exact products x'.y' [m, w].

        Times a factor for each y, plus a term [w].
        """
        if self._type is np.int8:
            return IntegerRows(codes.whole, scale=(factor, added)).scaled
        rows = codes.whole.astype(self._type)

        def multiplied(whole: Bytes) -> Floats:
            products: Floats = (whole.astype(rows.dtype) @ rows.T).astype(np.float32, copy=False)
            products *= factor
            products += added
            return products

        return multiplied


def _codes(rows: Floats, *, even: bool) -> Codes:
    """Quantizes rows [w, d], float32, with or without evening out their coordinates."""
    length = norms(rows.astype(np.float64))
    rows = rows / np.where(length > 0, length, 1.0).astype(np.float32)[:, None]
    if even:
        rows = rotated(rows)
    unit = np.abs(rows).max(axis=1) / np.float32(127)
    unit[unit == 0] = 1
    whole = np.rint(rows / unit[:, None])
    lost = norms(rows - whole * unit[:, None])
    slack = (rows.shape[1] + 16) * 2.0**-24  # for a sum of d squares; 2^-20 for normalizing rows
    rounding = 2.0**-20 + turning(rows.shape[1])
    return Codes(
        whole.astype(np.int8), unit, lost * np.float32(1 + 2 * slack) + np.float32(rounding), length
    )


def largest(values: Values, k: int) -> Ids:
    """Finds the places of each row's k largest values [m, V].

    Returns int64 [m, k] in order; ties go to the lowest place.
    """
    size = values.shape[1]
    least = np.full(len(values), -np.inf)
    if k * GROUP <= size:  # the k-th largest of maxima is never above the k-th largest of all
        maxima = values[:, : size - size % GROUP].reshape(len(values), GROUP, -1).max(axis=1)
        least = np.partition(maxima, -k, axis=1)[:, -k]
    line, place = np.divmod(np.flatnonzero(values >= least[:, None]), size)
    order = np.lexsort((place, -values[line, place], line))
    line, place = line[order], place[order]
    first = np.arange(len(line)) - np.searchsorted(line, line) < k
    return place[first].reshape(len(values), k)
