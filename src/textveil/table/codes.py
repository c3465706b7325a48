"""Rows and queries in low precision, with what each of them lost: for the exact search.

In: rows as they are held, and queries in float64. Out: small numbers, fast to multiply, and bounds of their error.
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
"""Rows of which only the largest score is looked at first: a run has a multiple of it."""

SLAB = 1 << 12
"""Rows that are looked at together where a whole table is."""

HALVES = 3
"""Columns that hold half a row's square: three bfloat16 numbers have the digits of a float32."""

FEW = 16
"""One row in so many, those with the largest coordinates, has a scale of its own in int8."""

NEARLY = {torch.float16: 1e-2, torch.float32: 1e-6}
"""How far the length of a row may be from 1 to count as a unit vector that was rounded."""

ROUNDING = {torch.int32: 0.0, torch.bfloat16: 1.01 * 2.0**-8, torch.float32: 2.0**-23}
"""What a score of a type may have lost when it was rounded to it, relative to itself."""

SLACK = 1e-6
"""Relative slack for the arithmetic of the bound itself."""


def low_precision(device: torch.device, *, integers: bool) -> Precision:
    """What the machine multiplies fastest.

    Args:
        device: where the rows are.
        integers: whether eight-bit integers are of use: they are for unit rows that fit into memory twice.
    """
    if device.type != "cpu":
        return "bfloat16"
    has = torch.cpu.get_capabilities()
    if integers and (has.get("avx512_vnni") or has.get("amx_int8")) and _integers_are_exact():
        return "int8"
    return "bfloat16" if has.get("avx512_bf16") or has.get("amx_bf16") else "float32"


@cache
def _integers_are_exact() -> bool:
    """Whether products of integers are what they must be: where a setting keeps torch from VNNI, sums saturate."""
    numbers = torch.full((GROUP, 64), 127, dtype=torch.int8)
    numbers[1::2] = -127
    return torch.equal(torch._int_mm(numbers, numbers.T).long(), numbers.long() @ numbers.long().T)


def _lowered() -> bool:
    """Whether torch may cut float32 numbers to bfloat16 before it multiplies them."""
    try:
        return torch.get_float32_matmul_precision() != "highest"
    except RuntimeError:  # set in torch's newer way, of which this question knows nothing
        return True


class RowRun(NamedTuple):
    """A run of rows in low precision.

    Attributes:
        start: the place of the first one in the order that the rows are held in.
        size: how many there are.
        low: [w, K]; w is the next multiple of `GROUP`, what is behind the last row is zero.
        unit: what a score is multiplied by.
        row: at least the length of every (scaled) row.
        away: at least the length of what every row lost.
        length: at least the length of every row in low precision.
    """

    start: int
    size: int
    low: torch.Tensor
    unit: float
    row: float
    away: float
    length: float

    def error(self, asked: "Queries") -> torch.Tensor:
        """How far the score of a row of this run may be from the true one, for each query [b]."""
        return (asked.lost * self.row + asked.length * (self.away + asked.sums * self.length)) * (1 + SLACK) + 1e-30


class Queries(NamedTuple):
    """A batch of queries in low precision.

    Attributes:
        low: [b, K].
        unit: what its scores are multiplied by [b].
        length: at least the length of the (scaled) query in low precision [b].
        lost: at least the length of what it lost [b].
        sums: what the sums of a product may lose, relative to the lengths of its factors.
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
        stored: the rows as they are held, float32 or float16 [V, d], perhaps mapped from a file.
        take: gives rows of `stored` as float32 [n, d]: the very numbers that distances are about.
        by_direction: whether the largest cosine wins (rows are unit vectors), or the smallest distance.
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
        """Where the rows are, and queries go."""
        return self.stored.device

    def true(self, which: slice | torch.Tensor) -> torch.Tensor:
        """Rows as float64 [n, d]; unit vectors where direction counts, which float32 rows are only up to 1e-7."""
        rows = self.take(which).double()
        return rows / rows.norm(dim=1, keepdim=True) if self.by_direction else rows


@dataclass(frozen=True, kw_only=True, eq=False)
class FloatCodes:
    """Rows and queries in bfloat16 or float32.

    For distances the score is q.v - |v|^2 / 2: half the square of a row stands in `HALVES` columns more, and the query
    has -1 there. Rows and queries are scaled by powers of two, which costs nothing.
    """

    rows: Rows
    precision: Literal["bfloat16", "float32"]

    @property
    def dtype(self) -> torch.dtype:
        """Of the numbers in low precision."""
        return torch.bfloat16 if self.precision == "bfloat16" else torch.float32

    def queries(self, queries: torch.Tensor, lengths: torch.Tensor) -> Queries:
        """Queries [b, d] of these lengths [b] in low precision."""
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
        """Scores [w, b]; a GPU sums in float32 throughout only where the result is in float32 too."""
        if rows.dtype != self.scores:
            return torch.mm(rows, queries.T, out_dtype=self.scores)
        return rows @ queries.T

    @property
    def scores(self) -> torch.dtype:
        """The type of scores."""
        return torch.float32 if self.rows.device.type == "cuda" else self.dtype

    def comparable(self, score: torch.Tensor) -> torch.Tensor:
        """A bound as a number of the scores' own type: no other number of that type lies between the two."""
        return score.to(self.scores)

    def place(self, row: torch.Tensor) -> torch.Tensor:
        """Where a row of the table is held."""
        return row

    def row(self, place: torch.Tensor) -> torch.Tensor:
        """Which row of the table is held at a place."""
        return place

    def spans(self, width: int) -> Iterator[RowRun]:
        """All rows, so many at once."""
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
        """What `_size` found for the rows from a place on, so many of them."""
        return {}

    def _size(self, part: slice, low: torch.Tensor) -> tuple[float, float, float]:
        """The largest length of a row, of what a row lost, and of a row in low precision."""
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
        """No row is longer."""
        return 1 / self._scale

    @cached_property
    def _scale(self) -> float:
        """A power of two that makes the longest row no longer than 1."""
        if self.rows.by_direction:
            return 1.0
        parts = (self.rows.true(slice(start, start + SLAB)) for start in range(0, self.rows.size, SLAB))
        longest = max(map(_longest, parts))
        return 2.0 ** -math.ceil(math.log2(longest)) if longest > 0 else 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerCodes:
    """Unit rows and queries as eight-bit integers, after a rotation that leaves no coordinate much larger than others.

    Rows are held in the order of their largest coordinate. The few with a large one have a scale of their own, so that
    they do not cost the others their digits.
    """

    rows: Rows
    scores: torch.dtype = torch.int32

    def queries(self, queries: torch.Tensor, lengths: torch.Tensor) -> Queries:
        """Queries [b, d] of these lengths [b] in low precision."""
        size = torch.where(lengths > 0, lengths, 1.0)[:, None]
        turned = self._turn(queries / size, torch.float64 if _lowered() else torch.float32).double()
        low, unit = _integers(turned)
        back = low.double() * unit[:, None]
        d = queries.shape[1]
        turning = (d + 2) * d**0.5 * 2.0**-24  # what float32 may lose in the rotation
        lost = (turned - back).norm(dim=1) + turning
        return Queries(low=low, unit=unit, length=back.norm(dim=1), lost=lost, sums=0.0)

    def product(self, rows: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        """Scores [w, b], int32."""
        return torch._int_mm(rows, queries.T)

    def comparable(self, score: torch.Tensor) -> torch.Tensor:
        """A bound as an integer."""
        return torch.ceil(score).clamp(-(2.0**31), 2.0**31 - 1).to(torch.int32)

    def place(self, row: torch.Tensor) -> torch.Tensor:
        """Where a row of the table is held."""
        return self._places[row]

    def row(self, place: torch.Tensor) -> torch.Tensor:
        """Which row of the table is held at a place."""
        return self._order[place]

    def spans(self, width: int) -> Iterator[RowRun]:
        """All rows, so many at once."""
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
    """Vectors [n, d] as int8, and what each is multiplied by to be itself again, nearly [n]."""
    unit = vectors.abs().amax(dim=1) / 127
    unit = torch.where(unit > 0, unit, 1.0)
    return torch.round(vectors / unit[:, None]).to(torch.int8), unit


def _filled(low: torch.Tensor) -> torch.Tensor:
    """With rows of zeros behind, up to a multiple of `GROUP`."""
    short = -len(low) % GROUP
    return torch.nn.functional.pad(low, (0, 0, 0, short)) if short else low


def _longest(vectors: torch.Tensor) -> float:
    return float(vectors.norm(dim=1).max()) * (1 + SLACK)
