"""Low-precision rows and queries with their rounding errors, for the exact search.

In: the stored rows, and queries in float64. Out: small numbers that multiply fast, and bounds on their errors.
Not here: the search that these bounds make exact (`nearest`).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import torch

Precision = Literal["int8", "bfloat16", "float32"]

GROUP = 16
"""Rows per group; at first only the largest score of a group is looked at. A run is a multiple of it."""

SLAB = 1 << 12
"""Rows per pass over a whole table."""

HALVES = 3
"""Extra columns that hold half a row's squared norm: three bfloat16 numbers have the digits of a float32."""

FEW = 16
"""One in this many rows, those with the largest coordinates, have their own scale in int8."""

NEARLY = {torch.float16: 1e-2, torch.float32: 1e-6}
"""How far a row's norm may be from 1 to count as a rounded unit vector."""

ROUNDING = {torch.int32: 0.0, torch.bfloat16: 1.01 * 2.0**-8, torch.float32: 2.0**-23}
"""Relative rounding error of a score, by type."""

SLACK = 1e-6
"""Relative slack for the arithmetic of the bound itself."""


def low_precision(device: torch.device, *, integers: bool) -> Precision:
    """The type this machine multiplies fastest.

    Args:
        device: where the rows are.
        integers: whether int8 helps: it does for unit rows that fit into memory twice.
    """
    if device.type != "cpu":
        return "bfloat16"
    has = torch.cpu.get_capabilities()
    if integers and (has.get("avx512_vnni") or has.get("amx_int8")) and _integers_are_exact():
        return "int8"
    return "bfloat16" if has.get("avx512_bf16") or has.get("amx_bf16") else "float32"


@cache
def _integers_are_exact() -> bool:
    """Whether integer products are exact: if a setting keeps torch from VNNI, sums saturate."""
    numbers = torch.full((GROUP, 64), 127, dtype=torch.int8)
    numbers[1::2] = -127
    return torch.equal(torch._int_mm(numbers, numbers.T).long(), numbers.long() @ numbers.long().T)


def _lowered() -> bool:
    """Whether torch may round float32 to bfloat16 before multiplying."""
    try:
        return torch.get_float32_matmul_precision() != "highest"
    except RuntimeError:  # set through torch's newer interface, which this query does not support
        return True


class RowRun(NamedTuple):
    """A run of rows in low precision.

    Attributes:
        start: position of the first row in stored order.
        size: number of rows.
        low: [w, K]; w is rounded up to a multiple of `GROUP`, with zeros after the last row.
        unit: factor for scores.
        row: upper bound on the norms of the (scaled) rows.
        away: upper bound on the norms of the rows' rounding errors.
        length: upper bound on the norms of the low-precision rows.
    """

    start: int
    size: int
    low: torch.Tensor
    unit: float
    row: float
    away: float
    length: float

    def error(self, asked: "Queries") -> torch.Tensor:
        """Largest error of a score in this run, for each query [b]."""
        return (asked.lost * self.row + asked.length * (self.away + asked.sums * self.length)) * (1 + SLACK) + 1e-30


class Queries(NamedTuple):
    """A batch of queries in low precision.

    Attributes:
        low: [b, K].
        unit: factor for scores [b].
        length: upper bound on the norm of the (scaled) low-precision query [b].
        lost: upper bound on the norm of its rounding error [b].
        sums: error of a product's sums, relative to the norms of its factors.
    """

    low: torch.Tensor
    unit: torch.Tensor
    length: torch.Tensor
    lost: torch.Tensor
    sums: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """The rows of a table.

    Attributes:
        stored: the rows as stored, float32 or float16 [V, d], possibly memory-mapped.
        take: returns rows of `stored` as float32 [n, d], the numbers that distances refer to.
        by_direction: whether the largest cosine wins (unit rows), or the smallest distance.
    """

    stored: torch.Tensor = field(repr=False)
    take: Callable[[slice | torch.Tensor], torch.Tensor] = field(repr=False)
    by_direction: bool

    @property
    def size(self) -> int:
        """V, the number of rows."""
        return len(self.stored)

    @property
    def dimension(self) -> int:
        """d, the length of a row."""
        return int(self.stored.shape[1])

    @property
    def device(self) -> torch.device:
        """Where the rows are; queries are moved there."""
        return self.stored.device

    def true(self, which: slice | torch.Tensor) -> torch.Tensor:
        """Rows as float64 [n, d]; normalized if direction counts, as float32 unit rows are only exact to 1e-7."""
        rows = self.take(which).double()
        return rows / rows.norm(dim=1, keepdim=True) if self.by_direction else rows


@dataclass(frozen=True, kw_only=True, eq=False)
class FloatCodes:
    """Rows and queries in bfloat16 or float32.

    For distances the score is q.v - |v|^2 / 2: `HALVES` more columns hold half a row's squared norm, where the query
    has -1. Rows and queries are scaled by powers of two, which is exact.
    """

    rows: Rows
    precision: Literal["bfloat16", "float32"]

    @property
    def dtype(self) -> torch.dtype:
        """The low-precision type."""
        return torch.bfloat16 if self.precision == "bfloat16" else torch.float32

    def queries(self, queries: torch.Tensor, lengths: torch.Tensor) -> Queries:
        """Queries [b, d] with norms `lengths` [b] in low precision."""
        if self.rows.by_direction:
            size = torch.where(lengths > 0, lengths, 1.0)
        else:
            size = torch.exp2(torch.ceil(torch.log2((lengths * self._scale).clamp(min=1.0)))) / self._scale
        scaled = queries / size[:, None]
        low = scaled.to(self.dtype)
        lost, length = (scaled - low.double()).norm(dim=1), low.double().norm(dim=1)
        if not self.rows.by_direction:
            one = 1 / (size * self._scale)
            low = torch.cat([low, -one[:, None].expand(-1, HALVES).to(self.dtype)], dim=1)
            length = (length.square() + HALVES * one.square()).sqrt()
        cut = 2.0**-6 if self.precision == "float32" and _lowered() else 0.0
        sums = low.shape[1] * 2.0**-22 + cut
        return Queries(low=low, unit=torch.ones_like(size), length=length, lost=lost, sums=sums)

    def product(self, rows: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        """Scores [w, b]; a GPU accumulates in float32 only if the result is float32 too."""
        if rows.dtype != self.scores:
            return torch.mm(rows, queries.T, out_dtype=self.scores)
        return rows @ queries.T

    @property
    def scores(self) -> torch.dtype:
        """The type of scores."""
        return torch.float32 if self.rows.device.type == "cuda" else self.dtype

    def comparable(self, score: torch.Tensor) -> torch.Tensor:
        """A bound rounded to the scores' type, so that no score lies between the two."""
        return score.to(self.scores)

    def place(self, row: torch.Tensor) -> torch.Tensor:
        """The stored position of a row of the table."""
        return row

    def row(self, place: torch.Tensor) -> torch.Tensor:
        """The row of the table at a stored position."""
        return place

    def spans(self, width: int) -> Iterator[RowRun]:
        """All rows, `width` at a time."""
        for start in range(0, self.rows.size, width):
            part = slice(start, start + width)
            low = self._low(self.rows.stored[part])
            if (known := self._sizes.get((start, width))) is None:
                known = self._sizes[start, width] = self._size(part, low)
            row, away, length = known
            yield RowRun(start, len(low), _filled(low), unit=1.0, row=row, away=away, length=length)

    def _low(self, rows: torch.Tensor) -> torch.Tensor:
        if self.rows.by_direction:
            return rows.to(self.dtype)
        scaled = rows.double() * self._scale
        left = scaled.square().sum(dim=1, keepdim=True) / 2
        columns = [scaled.to(self.dtype)]
        for _ in range(HALVES):
            columns.append(left.to(self.dtype))
            left = left - columns[-1].double()
        return torch.cat(columns, dim=1)

    @cached_property
    def _sizes(self) -> dict[tuple[int, int], tuple[float, float, float]]:
        """Results of `_size` by first row and number of rows."""
        return {}

    def _size(self, part: slice, low: torch.Tensor) -> tuple[float, float, float]:
        """The largest norm of a row, of a rounding error, and of a low-precision row."""
        if self.rows.by_direction:  # in float32, which is fast: d squares and a root, and making unit vectors of rows
            stored = self.rows.stored[part].float()
            slack = (stored.shape[1] + 8) * 2.0**-23
            lengths, lost = stored.norm(dim=1), _longest(stored - low.float()) * (1 + slack)
            longest = float(lengths.max()) * (1 + slack)
            return 1 + SLACK, lost + float((lengths - 1).abs().max()) + longest * slack, longest + lost
        true, lowered = self.rows.true(part) * self._scale, low.double()
        halves = true.square().sum(dim=1) / 2 - lowered[:, -HALVES:].sum(dim=1)
        away = torch.cat([true - lowered[:, : true.shape[1]], halves[:, None]], dim=1)
        return _longest(true), _longest(away), _longest(lowered)

    @property
    def longest(self) -> float:
        """The largest norm of a row."""
        return 1 / self._scale

    @cached_property
    def _scale(self) -> float:
        """A power of two that scales the longest row to at most 1."""
        if self.rows.by_direction:
            return 1.0
        parts = (self.rows.true(slice(start, start + SLAB)) for start in range(0, self.rows.size, SLAB))
        longest = max(map(_longest, parts))
        return 2.0 ** -math.ceil(math.log2(longest)) if longest > 0 else 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerCodes:
    """Unit rows and queries as int8, after a rotation that evens out their coordinates.

    Rows are stored by their largest coordinate. The few with a large one have their own scale, so that they do not
    cost the others precision.
    """

    rows: Rows
    scores: torch.dtype = torch.int32

    def queries(self, queries: torch.Tensor, lengths: torch.Tensor) -> Queries:
        """Queries [b, d] with norms `lengths` [b] in low precision."""
        size = torch.where(lengths > 0, lengths, 1.0)[:, None]
        turned = self._turn(queries / size, torch.float64 if _lowered() else torch.float32).double()
        low, unit = _integers(turned)
        back = low.double() * unit[:, None]
        d = queries.shape[1]
        turning = (d + 2) * d**0.5 * 2.0**-24  # float32 rounding in the rotation
        lost = (turned - back).norm(dim=1) + turning
        return Queries(low=low, unit=unit, length=back.norm(dim=1), lost=lost, sums=0.0)

    def product(self, rows: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        """Scores [w, b], int32."""
        return torch._int_mm(rows, queries.T)

    def comparable(self, score: torch.Tensor) -> torch.Tensor:
        """A bound as an integer."""
        return torch.ceil(score).clamp(-(2.0**31), 2.0**31 - 1).to(torch.int32)

    def place(self, row: torch.Tensor) -> torch.Tensor:
        """The stored position of a row of the table."""
        return self._places[row]

    def row(self, place: torch.Tensor) -> torch.Tensor:
        """The row of the table at a stored position."""
        return self._order[place]

    def spans(self, width: int) -> Iterator[RowRun]:
        """All rows, `width` at a time."""
        few = self.rows.size - self.rows.size // FEW
        bounds = [*range(0, few, width), *range(few, self.rows.size, width), self.rows.size]
        for start, end in pairwise(bounds):
            true = self._true(self._order[start:end])
            low, unit = _integers(true.flatten()[None])
            low = low.view(true.shape)
            away = true - low.double() * unit
            yield RowRun(
                start, len(low), _filled(low), float(unit), row=_longest(true), away=_longest(away), length=0.0
            )

    def _true(self, rows: torch.Tensor) -> torch.Tensor:
        return self._turn(self.rows.true(rows), torch.float64)

    @cached_property
    def _order(self) -> torch.Tensor:
        rows = torch.arange(self.rows.size, device=self.rows.device)
        return torch.cat([self.rows.true(part).abs().amax(dim=1) for part in torch.split(rows, SLAB)]).argsort()

    @cached_property
    def _places(self) -> torch.Tensor:
        return self._order.argsort()

    def _turn(self, vectors: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return vectors.to(dtype) @ self._rotation.to(dtype)

    @cached_property
    def _rotation(self) -> torch.Tensor:
        """The discrete sine transform, an orthogonal matrix [d, d]."""
        d = self.rows.dimension
        n = torch.arange(1, d + 1, dtype=torch.float64, device=self.rows.device)
        return torch.sin(torch.outer(n, n) * (math.pi / (d + 1))) * math.sqrt(2 / (d + 1))


def _integers(vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors [n, d] as int8, and the factors [n] that approximately restore them."""
    unit = vectors.abs().amax(dim=1) / 127
    unit = torch.where(unit > 0, unit, 1.0)
    return torch.round(vectors / unit[:, None]).to(torch.int8), unit


def _filled(low: torch.Tensor) -> torch.Tensor:
    """Padded with zero rows to a multiple of `GROUP`."""
    short = -len(low) % GROUP
    return torch.nn.functional.pad(low, (0, 0, 0, short)) if short else low


def _longest(vectors: torch.Tensor) -> float:
    return float(vectors.norm(dim=1).max()) * (1 + SLACK)
