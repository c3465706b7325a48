"""The exact nearest row: low-precision scores with a proved error bound, then the few candidates again in float64.

In: the rows of a table, and queries. Out: for every query the row of the largest cosine or smallest distance.
Not here: which of the two a table wants, and what its rows are (`table`).

For a query q and a row v let q' and v' be their roundings, and s' the computed product of those. Then

    |s' - q.v|  <=  |q - q'| |v|  +  |q'| |v - v'|  +  d 2^-22 |q'| |v'|  +  2^-8 |s'|

by Cauchy-Schwarz twice, for d sums in float32 in any order, and for the rounding of the result to bfloat16. A row that
by this bound cannot reach the row of the largest s' is not the nearest. Rows are looked at in groups, of which only the
largest score counts; the rows of the groups that are left are scored again in float64. Nothing here is a matter of
chance: where more rows lie within the bound, more are scored again.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from textveil.errors import InputError

Ids = NDArray[np.int64]

GROUP = 16
"""Rows of which only the largest score is looked at first."""

KEPT, KEPT_SHAPE = 1 << 28, (1 << 15, 256)
"""Bytes up to which the low-precision rows are kept; then so many rows and queries are scored at once."""

MADE_SHAPE = 1 << 12, 1 << 10
"""The same where rows are brought into low precision anew for each batch: more queries share the work."""

PAIRS = 1 << 14
"""Queries and rows that are scored again at once."""

HALVES = 3
"""Columns that hold half a row's square: three bfloat16 numbers have the digits of a float32."""


def low_precision(device: torch.device) -> torch.dtype:
    """bfloat16 where the machine multiplies it faster than float32, else float32."""
    if device.type != "cpu":
        return torch.bfloat16
    capabilities = torch.cpu.get_capabilities()
    return torch.bfloat16 if capabilities.get("avx512_bf16") or capabilities.get("amx_bf16") else torch.float32


class _Bound(NamedTuple):
    """What the error bound needs to know of all rows; lengths of scaled rows, each at least the true one."""

    row: float
    low: float
    lost: float


class _Asked(NamedTuple):
    """A batch of queries: exact float64 [b, d], scaled in low precision [b, K], and each one's error e >= 0 [b]."""

    exact: torch.Tensor
    low: torch.Tensor
    error: torch.Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Nearest:
    """The rows of a table, ready to be searched.

    Attributes:
        stored: the rows as they are held, float32 or float16 [V, d], perhaps mapped from a file.
        take: gives rows of `stored` as float32 [n, d]: the very numbers that distances are about.
        by_direction: whether the largest cosine wins (rows are unit vectors), or the smallest distance.
        dtype: the low precision, bfloat16 or float32.
    """

    stored: torch.Tensor = field(repr=False)
    take: Callable[[slice | torch.Tensor], torch.Tensor] = field(repr=False)
    by_direction: bool
    dtype: torch.dtype

    @property
    def size(self) -> int:
        """V, the number of rows."""
        return len(self.stored)

    @property
    def device(self) -> torch.device:
        """Where the rows are, and queries go."""
        return self.stored.device

    def search(self, queries: torch.Tensor, exclude: Ids | None = None) -> Ids:
        """The nearest row of each query, ties to the lowest row.

        Args:
            queries: [n, d], finite.
            exclude: one row per query that may not be the answer.

        Returns:
            rows int64 [n]: those that float64 finds, up to the rounding of float64 itself.

        Raises:
            InputError: a query is not finite.
        """
        found = np.empty(len(queries), np.int64)
        for start in range(0, len(queries), self._shape[1]):
            part = slice(start, start + self._shape[1])
            own = None if exclude is None else torch.from_numpy(exclude[part]).to(self.device)
            found[part] = self._batch(queries[part].to(self.device, torch.float64), own).cpu().numpy()
        return found

    def _batch(self, queries: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
        asked = self._asked(queries)
        best = torch.full((len(queries),), -torch.inf, device=self.device)
        owners, rows, scores = [], [], []
        for start, low in self._spans():
            with _full_sums(self.device):
                found = low @ asked.low.T
            found[self.size - start :] = -torch.inf  # what fills the last run up
            if own is not None:
                _leave_out(found, own - start)
            groups = found.view(GROUP, -1, len(queries))  # row r is in group r mod the number of groups
            highest = groups.amax(dim=0)
            best = torch.maximum(best, highest.amax(dim=0).float())
            floor = self._floor(best, asked.error).to(self.dtype)  # no number of that type lies between the two
            group, i = (highest >= floor).nonzero(as_tuple=True)
            members = groups[:, group, i]
            place, hit = (members >= floor[i]).nonzero(as_tuple=True)
            owners.append(i[hit])
            rows.append(start + place * groups.shape[1] + group[hit])
            scores.append(members[place, hit].float())
        owner, row, score = torch.cat(owners), torch.cat(rows), torch.cat(scores)
        left = score >= self._floor(best, asked.error)[owner]
        return self._decide(asked.exact, owner[left], row[left], own)

    def _decide(
        self, queries: torch.Tensor, owner: torch.Tensor, row: torch.Tensor, own: torch.Tensor | None
    ) -> torch.Tensor:
        """The best row of every query among its candidates, each candidate a pair (owner, row)."""
        count = torch.bincount(owner, minlength=len(queries))
        answer = torch.zeros(len(queries), dtype=torch.int64, device=self.device)
        alone = count[owner] == 1
        answer[owner[alone]] = row[alone]
        owner, row = owner[~alone], row[~alone]
        if not len(owner):
            return answer
        parts = zip(torch.split(owner, PAIRS), torch.split(row, PAIRS), strict=True)
        exact = torch.cat([self._exact(queries[owners], rows) for owners, rows in parts])
        if own is not None:
            exact.masked_fill_(row == own[owner], -torch.inf)
        top = exact.new_full((len(queries),), -torch.inf).scatter_reduce_(0, owner, exact, "amax")
        tied = exact == top[owner]
        first = torch.full_like(answer, self.size).scatter_reduce_(0, owner[tied], row[tied], "amin")
        return torch.where(first < self.size, first, answer)

    def _exact(self, queries: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        rows = self.take(row).double()
        if self.by_direction:  # float32 rows are unit vectors only up to 1e-7
            return (queries * rows).sum(dim=1) / rows.norm(dim=1)
        return -(queries - rows).square_().sum(dim=1)

    # ---- queries and their error ---------------------------------------------------------------------

    def _asked(self, queries: torch.Tensor) -> _Asked:
        lengths = queries.norm(dim=1)
        if not bool(torch.isfinite(lengths).all()):
            raise InputError("a vector must be finite to have a nearest row, and one is not")
        if self.by_direction:
            size = torch.where(lengths > 0, lengths, 1.0)
        else:  # a power of two, because it is a number of the query too
            size = torch.exp2(torch.ceil(torch.log2((lengths * self._scale).clamp(min=1.0)))) / self._scale
        scaled = queries / size[:, None]
        low = scaled.to(self.dtype)
        constant = None if self.by_direction else (1 / (size * self._scale))
        lost = (scaled - low.double()).norm(dim=1)
        length = low.double().norm(dim=1)
        if constant is not None:
            low = torch.cat([low, -constant[:, None].expand(-1, HALVES).to(self.dtype)], dim=1)
            length = (length.square() + HALVES * constant.square()).sqrt()
        row, lower, away = self._bound
        error = lost * row + length * away + length * lower * low.shape[1] * self._sums + 1e-30
        return _Asked(queries, low.contiguous(), error * (1 + 1e-6))

    @property
    def _sums(self) -> float:
        """What a sum of products may lose per summand, relative to the lengths."""
        if self.dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest":
            return 2.0**-6  # then numbers may be cut to bfloat16 on the way
        return 2.0**-22

    def _floor(self, best: torch.Tensor, error: torch.Tensor) -> torch.Tensor:
        """The smallest score s' that a row can have whose true score reaches that of the best s'."""
        unit = 2.0**-8 if self.dtype == torch.bfloat16 else 2.0**-23
        least = best.double() - 1.01 * unit * best.double().abs() - 2 * error
        floor = torch.where(least >= 0, least / (1 + 1.01 * unit), least / (1 - 1.01 * unit))
        return (floor - 1e-6 * floor.abs()).float()

    # ---- rows in low precision -----------------------------------------------------------------------

    @property
    def _keeps(self) -> bool:
        return self.stored.numel() * self.dtype.itemsize <= KEPT

    @property
    def _shape(self) -> tuple[int, int]:
        return KEPT_SHAPE if self._keeps else MADE_SHAPE

    @cached_property
    def _scale(self) -> float:
        """A power of two that makes the longest row no longer than 1."""
        if self.by_direction:
            return 1.0
        longest = max(float(self._true(start).norm(dim=1).max()) for start in range(0, self.size, self._shape[0]))
        return 2.0 ** -math.ceil(math.log2(longest)) if longest > 0 else 1.0

    @cached_property
    def _bound(self) -> _Bound:
        sizes = [self._sizes(start, low) for start, low in self._spans()]
        return _Bound(*(max(column) * (1 + 1e-6) for column in zip(*sizes, strict=True)))

    def _sizes(self, start: int, low: torch.Tensor) -> _Bound:
        true, kept = self._true(start) * self._scale, low.double()[: self.size - start]
        if not self.by_direction:
            halves = true.square().sum(dim=1, keepdim=True) / 2
            lost = halves.sum(dim=1) - kept[:, -HALVES:].sum(dim=1)
            away = (true - kept[:, :-HALVES]).square().sum(dim=1) + lost.square()
            return _Bound(float(true.norm(dim=1).max()), float(kept.norm(dim=1).max()), float(away.max().sqrt()))
        return _Bound(*(float(each.norm(dim=1).max()) for each in (true, kept, true - kept)))

    def _true(self, start: int) -> torch.Tensor:
        rows = self.take(slice(start, start + self._shape[0])).double()
        return rows / rows.norm(dim=1, keepdim=True) if self.by_direction else rows

    def _spans(self) -> Iterator[tuple[int, torch.Tensor]]:
        """Runs of rows in low precision [w, K], each with its first row; w is a multiple of `GROUP`."""
        if self._keeps:
            yield from self._kept
        else:
            yield from self._made()

    @cached_property
    def _kept(self) -> list[tuple[int, torch.Tensor]]:
        return list(self._made())

    def _made(self) -> Iterator[tuple[int, torch.Tensor]]:
        for start in range(0, self.size, self._shape[0]):
            yield start, self._low(self.stored[start : start + self._shape[0]])

    def _low(self, rows: torch.Tensor) -> torch.Tensor:
        if not self.by_direction:
            scaled = rows.double() * self._scale
            left = scaled.square().sum(dim=1) / 2
            columns = [scaled.to(self.dtype)]
            for _ in range(HALVES):
                part = left.to(self.dtype)
                left = left - part.double()
                columns.append(part[:, None])
            rows = torch.cat(columns, dim=1)
        low = rows.to(self.dtype)
        short = -len(low) % GROUP
        return torch.nn.functional.pad(low, (0, 0, 0, short)) if short else low


def _leave_out(found: torch.Tensor, place: torch.Tensor) -> None:
    """Give one row of each query, where it is in this run of rows [w, b], the score -inf."""
    inside = ((place >= 0) & (place < len(found))).nonzero().squeeze(1)
    found[place[inside], inside] = -torch.inf


@contextmanager
def _full_sums(device: torch.device) -> Iterator[None]:
    """Have a GPU add in float32 throughout, as the bound has it."""
    if device.type != "cuda":
        yield
        return
    setting = torch.backends.cuda.matmul
    before = setting.allow_bf16_reduced_precision_reduction
    setting.allow_bf16_reduced_precision_reduction = False
    try:
        yield
    finally:
        setting.allow_bf16_reduced_precision_reduction = before
