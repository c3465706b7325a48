"""The rows of a table compared with one another: cheap bounds on all distances, exact ones for the few that matter.

In: row numbers. Out: lower bounds on their distances to all rows, distances of pairs, the nearest neighbours.
Not here: the row nearest to any vector (`nearest`), and cached neighbour lists (`embedding`).

Let x and y be two rows about a common centre, x = |x| (u x' + e) with integers x' of at most 127. Then

    |x.y - |x||y| u_x u_y x'.y'|  <=  |x||y| (|e_x| + (1 + |e_x|) |e_y|)

by Cauchy-Schwarz twice, and |x - y|^2 = |x|^2 + |y|^2 - 2 x.y. Integers are multiplied exactly, and everything after is
element-wise: no bit of a bound depends on which other rows are in the batch.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from textveil.randomness import Floats, Ids, Values
from textveil.table.codes import GROUP, Rows, low_precision

SLAB = 1 << 12
"""Rows compared at once: with `BATCH` queries their bounds fit into the processor's cache."""

BATCH = 64
"""Best number of rows per call."""

KEPT = 1 << 30
"""Up to this many numbers, a byte each, low-precision rows are cached; beyond, they are recomputed for each call."""

ETA = 2.0**-19
"""Relative to |x|^2 + |y|^2: more than float32 loses in the dozen operations of a bound."""

PAIRS = 1 << 10
"""Pairs of rows whose distances are computed at once."""

HELD = 1 << 20
"""Pairs kept for measuring; above this, they are measured before the search continues."""

LARGEST = torch.finfo(torch.float32).max
"""A bound below which every row stays; the row itself, not its own neighbour, is at infinity."""

EXACT = 1 << 24
"""float32 holds all integers up to here."""


class Codes(NamedTuple):
    """Rows in low precision.

    Attributes:
        whole: x', int8 [w, d].
        unit: u, float32 [w].
        lost: at least |e|, float32 [w].
        length: |x|, float64 [w].
    """

    whole: torch.Tensor
    unit: torch.Tensor
    lost: torch.Tensor
    length: torch.Tensor


class Slab(NamedTuple):
    """A run of rows: the squared distance to row `start + j` is `middle[:, j]` up to `error[:, j]`.

    Both are float32 [m, w], in units of the square of `Pairs.reach`.
    """

    start: int
    middle: torch.Tensor
    error: torch.Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """The rows of a table, ready for comparison with one another; on the CPU, wherever they are.

    Attributes:
        rows: the rows.
    """

    rows: Rows

    def squares(self, asked: torch.Tensor) -> Iterator[Slab]:
        """Bounds on the squared distances between the requested rows, int64 [m], and all rows, a run at a time."""
        own = self._coded(asked)
        length = (own.length / self.reach).float()[:, None]
        turned, lost, square = (-2 * length * own.unit[:, None]), 2 * length * own.lost[:, None], length * length
        over = 2 * length * (1 + own.lost[:, None])
        left = self._factor(own.whole)
        for start, codes in self._slabs():
            sizes = (codes.length / self.reach).float()
            middle = self._product(left, codes.whole)
            middle.mul_(sizes * codes.unit).mul_(turned).add_(sizes * sizes).add_(square)
            error = (ETA * sizes * sizes).addcmul(lost, sizes).addcmul_(over, sizes * codes.lost).add_(ETA * square)
            yield Slab(start, middle, error)

    def shorter(self, asked: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """Lower bounds on the distances of the requested rows [m] to all rows, in units of `reach`.

        Yields:
            The first row of a run and float32 [m, w], run by run.
        """
        for start, middle, error in self.squares(asked):
            yield start, middle.sub_(error).clamp_(min=0).sqrt_().mul_(1 - ETA)

    def distances(self, rows: Ids, others: Ids) -> Values:
        """The distance of each row to the one paired with it, float64 [n], from their difference."""
        found = np.empty(len(rows))
        for start in range(0, len(rows), PAIRS):
            part = slice(start, start + PAIRS)
            own, other = (self._true(torch.from_numpy(each[part])) for each in (rows, others))
            found[part] = own.double().sub_(other).norm(dim=1).numpy()
        return found

    def nearest(self, rows: Ids, k: int) -> Ids:
        """Each row [m] and the k - 1 others nearest to it, int64 [m, k]; ties go to the lowest row."""
        found = np.empty((len(rows), k), np.int64)
        found[:, 0] = rows
        for start in range(0, len(rows) if k > 1 else 0, BATCH):
            part = slice(start, start + BATCH)
            found[part, 1:] = self._nearest(rows[part], k - 1)
        return found

    def _nearest(self, rows: Ids, k: int) -> Ids:
        """The k others nearest to each row [m, k].

        The k-th smallest upper bound of groups of rows is never below the k-th smallest distance, so a row with a
        larger lower bound is not among the nearest.
        """
        best = torch.full((len(rows), k), math.inf, dtype=torch.float32)  # the smallest upper bounds so far
        held: list[tuple[Ids, Ids, Floats]] = []
        asked, count = torch.from_numpy(rows), 0
        for start, low, error in self.squares(asked):
            high = low + error
            low -= error
            inside = ((asked >= start) & (asked < start + low.shape[1])).nonzero().squeeze(1)
            low[inside, asked[inside] - start] = high[inside, asked[inside] - start] = math.inf
            if short := -high.shape[1] % GROUP:
                high = torch.nn.functional.pad(high, (0, short), value=math.inf)
            groups = high.view(len(rows), GROUP, -1).amin(dim=1)
            best = torch.cat([best, groups], dim=1).topk(k, largest=False).values
            near = np.flatnonzero((low <= best[:, -1:].clamp(max=LARGEST)).numpy())  # faster than torch's nonzero
            owner, place = np.divmod(near, low.shape[1])
            held.append((owner, start + place, low.numpy().ravel()[near]))
            count += len(owner)
            if count > HELD:
                owners, others = self._closest(rows, held, best[:, -1].numpy(), k)
                held, count = [(owners, others, np.full(len(owners), -np.inf, np.float32))], len(owners)
        return self._closest(rows, held, best[:, -1].numpy(), k)[1].reshape(len(rows), k)

    def _closest(self, rows: Ids, held: list[tuple[Ids, Ids, Floats]], most: Floats, k: int) -> tuple[Ids, Ids]:
        """Of the kept pairs and their lower bounds, the k closest of each owner, in order."""
        owner, other, low = (np.concatenate(each) for each in zip(*held, strict=True))
        left = low <= most[owner]
        owner, other = owner[left], other[left]
        order = np.lexsort((other, self.distances(rows[owner], other), owner))
        owner, other = owner[order], other[order]
        first = np.arange(len(owner)) - np.searchsorted(owner, owner) < k
        return owner[first], other[first]

    @cached_property
    def reach(self) -> float:
        """A power of two that is at least the largest distance of a row from the centre."""
        longest = max(float((slab - self._centre).norm(dim=1).max()) for _, slab in self._parts())
        return 2.0 ** math.ceil(math.log2(longest * (1 + ETA))) if longest > 0 else 1.0

    @cached_property
    def _centre(self) -> torch.Tensor:
        """The mean row, which makes vectors short. Any centre would do, as long as it is the same for all."""
        return (sum((slab.double().sum(dim=0) for _, slab in self._parts()), torch.zeros(1)) / self.rows.size).float()

    def _parts(self) -> Iterator[tuple[int, torch.Tensor]]:
        for start in range(0, self.rows.size, SLAB):
            yield start, self._true(slice(start, start + SLAB))

    def _true(self, which: slice | torch.Tensor) -> torch.Tensor:
        """Rows as float32 [n, d], on the CPU."""
        return self.rows.take(which.to(self.rows.device) if isinstance(which, torch.Tensor) else which).cpu()

    def _slabs(self) -> Iterator[tuple[int, Codes]]:
        if self.rows.stored.numel() <= KEPT:
            return iter(self._kept)
        return ((start, _codes(slab - self._centre)) for start, slab in self._parts())

    @cached_property
    def _kept(self) -> list[tuple[int, Codes]]:
        return [(start, _codes(slab - self._centre)) for start, slab in self._parts()]

    def _coded(self, asked: torch.Tensor) -> Codes:
        return _codes(self._true(asked) - self._centre)

    # ---- exact products of integers --------------------------------------------------------------------

    @cached_property
    def _type(self) -> torch.dtype:
        # torch 2.13 multiplies integer matrices of one column wrongly
        if self.rows.dimension > 1 and low_precision(torch.device("cpu"), integers=True) == "int8":
            return torch.int8
        return torch.float32 if 127 * 127 * self.rows.dimension < EXACT else torch.float64

    def _factor(self, whole: torch.Tensor) -> torch.Tensor:
        return whole.to(self._type)

    def _product(self, left: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
        """x'.y' as float32 [m, w]."""
        right = self._factor(whole).T
        if self._type == torch.int8:
            return torch._int_mm(left, right).float()
        with torch.autocast("cpu", enabled=False):
            return (left @ right).float()


def _codes(rows: torch.Tensor) -> Codes:
    """Rows [w, d], float32, in low precision."""
    length = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
    some = torch.where(length > 0, length, 1.0).float()[:, None]
    rows = rows / some
    unit = rows.abs().amax(dim=1, keepdim=True) / 127
    unit = torch.where(unit > 0, unit, 1.0)
    whole = torch.round(rows / unit)
    lost = (rows - whole * unit).norm(dim=1)
    slack = (rows.shape[1] + 16) * 2.0**-24  # for a sum of d squares; 2^-20 for normalizing rows
    return Codes(whole.to(torch.int8), unit.squeeze(1), lost * (1 + 2 * slack) + 2.0**-20, length)
