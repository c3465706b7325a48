"""The exact nearest row: low-precision scores with a proved error bound, then the few candidates again in float64.

In: the rows of a table, and queries. Out: for every query the row of the largest cosine or smallest distance.
Not here: which of the two a table wants, and what its rows are (`table`).

For a query q and a row v let q' and v' be their roundings, and s' the computed product of those. Then

    |s' - q.v|  <=  |q - q'| |v|  +  |q'| |v - v'|  +  d 2^-22 |q'| |v'|  +  2^-8 |s'|

by Cauchy-Schwarz twice, for d sums in float32 in any order, and for the rounding of the result to bfloat16; products of
eight-bit integers have only the first two terms. A row that by this bound cannot reach the best row found is not the
nearest. Rows are looked at in groups, of which only the largest score counts; the rows that are left are scored again
in float64. Nothing here is a matter of chance: where more rows lie within the bound, more are scored again.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from textveil.errors import InputError

Ids = NDArray[np.int64]
Precision = Literal["int8", "bfloat16", "float32"]

GROUP = 16
"""Rows of which only the largest score is looked at first."""

KEPT, KEPT_SHAPE = 1 << 28, (1 << 15, 256)
"""Numbers up to which the low-precision rows are kept; then so many rows and queries are scored at once."""

MADE_SHAPE = 1 << 12, 1 << 10
"""The same where rows are brought into low precision anew for each batch: more queries share the work."""

PAIRS = 1 << 14
"""Queries and rows that are scored again at once."""

HALVES = 3
"""Columns that hold half a row's square: three bfloat16 numbers have the digits of a float32."""

FEW = 16
"""One row in so many, those with the largest coordinates, has a scale of its own in int8."""

ROUNDING = {"int8": 0.0, "bfloat16": 1.01 * 2.0**-8, "float32": 2.0**-23}
"""What the result of a product of vectors may lose, relative to itself."""

SLACK = 1e-6
"""Relative slack for the arithmetic of the bound itself."""


def low_precision(device: torch.device) -> Precision:
    """What the machine multiplies fastest, of what is of use for unit rows that fit into memory twice."""
    if device.type != "cpu":
        return "bfloat16"
    has = torch.cpu.get_capabilities()
    if has.get("avx512_vnni") or has.get("amx_int8"):
        return "int8"
    return "bfloat16" if has.get("avx512_bf16") or has.get("amx_bf16") else "float32"


class Span(NamedTuple):
    """A run of rows in low precision.

    Attributes:
        start: the place of the first one in the order that the rows are held in.
        size: how many there are.
        low: [w, K]; w is the next multiple of `GROUP`, what is behind the last row is zero.
        unit: what a score is multiplied by.
        row: at least the length of every (scaled) row.
        away: at least the length of what every row lost.
        sums: what sums may lose for a query of length 1.
    """

    start: int
    size: int
    low: torch.Tensor
    unit: float
    row: float
    away: float
    sums: float

    def error(self, asked: "Asked") -> torch.Tensor:
        """How far the score of a row of this run may be from the true one, for each query [b]."""
        return (asked.lost * self.row + asked.length * (self.away + self.sums)) * (1 + SLACK) + 1e-30


class Asked(NamedTuple):
    """A batch of queries in low precision.

    Attributes:
        low: [b, K].
        unit: what its scores are multiplied by [b].
        length: at least the length of the (scaled) query in low precision [b].
        lost: at least the length of what it lost [b].
    """

    low: torch.Tensor
    unit: torch.Tensor
    length: torch.Tensor
    lost: torch.Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Nearest:
    """The rows of a table, ready to be searched.

    Attributes:
        stored: the rows as they are held, float32 or float16 [V, d], perhaps mapped from a file.
        take: gives rows of `stored` as float32 [n, d]: the very numbers that distances are about.
        by_direction: whether the largest cosine wins (rows are unit vectors), or the smallest distance.
        precision: what rows are scored in first. int8 is for unit rows that can be kept; else bfloat16 takes its place.
    """

    stored: torch.Tensor = field(repr=False)
    take: Callable[[slice | torch.Tensor], torch.Tensor] = field(repr=False)
    by_direction: bool
    precision: Precision

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
        step = self._shape[1]
        for start in range(0, len(queries), step):
            part = slice(start, start + step)
            own = None if exclude is None else torch.from_numpy(exclude[part]).to(self.device)
            found[part] = self._batch(queries[part].to(self.device, torch.float64), own).cpu().numpy()
        return found

    def _batch(self, queries: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
        lengths = queries.norm(dim=1)
        if not bool(torch.isfinite(lengths).all()):
            raise InputError("a vector must be finite to have a nearest row, and one is not")
        asked = self._coder.queries(queries, lengths)
        least = torch.full((len(queries),), -torch.inf, dtype=torch.float64, device=self.device)
        owners, rows, highs = [], [], []
        for span in self._spans():
            with _full_sums(self.device):
                scores = self._coder.product(span.low, asked.low)
            scores[span.size :] = _lowest(scores)
            if own is not None:
                _leave_out(scores, self._coder.place(own) - span.start)
            unit, error = asked.unit * span.unit, span.error(asked)
            groups = scores.view(GROUP, -1, len(queries))  # row r is in group r mod the number of groups
            highest = groups.amax(dim=0)
            least = torch.maximum(least, self._low_end(highest.amax(dim=0) * unit) - error)
            floor = self._coder.comparable(self._from(least - error) / unit)
            group, i = (highest >= floor).nonzero(as_tuple=True)
            members = groups[:, group, i]
            place, hit = (members >= floor[i]).nonzero(as_tuple=True)
            owners.append(i[hit])
            rows.append(self._coder.row(span.start + place * groups.shape[1] + group[hit]))
            highs.append(self._high_end(members[place, hit] * unit[i[hit]]) + error[i[hit]])
        owner, row = torch.cat(owners), torch.cat(rows)
        left = torch.cat(highs) >= least[owner]
        owner, row = owner[left], row[left]
        if isinstance(self._coder, Integers) and self.stored.dtype == torch.float32:
            owner, row = self._narrowed(queries / lengths.clamp(min=1e-300)[:, None], owner, row)
        return self._decide(queries, owner, row, own)

    def _narrowed(
        self, queries: torch.Tensor, owner: torch.Tensor, row: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Fewer candidates, by scores in float32: eight-bit integers leave a dozen."""
        order = owner.argsort()
        owner, row = owner[order], row[order]
        score = _products(queries.float(), self.stored, torch.bincount(owner, minlength=len(queries)), row)
        best = score.new_full((len(queries),), -torch.inf).scatter_reduce_(0, owner, score, "amax")
        error = (queries.shape[1] + 8) * 2.0**-23  # d sums, and rows and queries of length 1 but for a rounding
        left = score >= best[owner] - 2 * error
        return owner[left], row[left]

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
            return torch.div((queries * rows).sum(dim=1), rows.norm(dim=1))
        return -(queries - rows).square_().sum(dim=1)

    # ---- what the rounding of a score may hide ---------------------------------------------------------

    @property
    def _rounding(self) -> float:
        return ROUNDING[self._coder.precision]

    def _low_end(self, score: torch.Tensor) -> torch.Tensor:
        return score.double() - (self._rounding + SLACK) * score.double().abs()

    def _high_end(self, score: torch.Tensor) -> torch.Tensor:
        return score.double() + (self._rounding + SLACK) * score.double().abs()

    def _from(self, high: torch.Tensor) -> torch.Tensor:
        """The smallest score whose high end is `high`."""
        share = self._rounding + 2 * SLACK
        return torch.where(high >= 0, high / (1 + share), high / (1 - share))

    # ---- rows in low precision -----------------------------------------------------------------------

    @property
    def _keeps(self) -> bool:
        return self.stored.numel() <= KEPT // 2

    @property
    def _shape(self) -> tuple[int, int]:
        return KEPT_SHAPE if self._keeps else MADE_SHAPE

    @cached_property
    def _coder(self) -> "Integers | Floats":
        wide = self.stored.shape[1] > 1  # torch 2.13 multiplies integer matrices of one column wrongly
        if self.precision == "int8" and self.by_direction and self._keeps and wide:
            return Integers(nearest=self)
        return Floats(nearest=self, precision="bfloat16" if self.precision == "int8" else self.precision)

    def _spans(self) -> Iterator[Span]:
        yield from self._kept if self._keeps else self._coder.spans(self._shape[0])

    @cached_property
    def _kept(self) -> list[Span]:
        return list(self._coder.spans(self._shape[0]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Floats:
    """Rows and queries in bfloat16 or float32.

    For distances the score is q.v - |v|^2 / 2: half the square of a row stands in `HALVES` columns more, and the query
    has -1 there. Rows and queries are scaled by powers of two, which costs nothing.
    """

    nearest: Nearest
    precision: Literal["bfloat16", "float32"]

    @property
    def dtype(self) -> torch.dtype:
        """Of the numbers in low precision."""
        return torch.bfloat16 if self.precision == "bfloat16" else torch.float32

    def queries(self, queries: torch.Tensor, lengths: torch.Tensor) -> Asked:
        """Queries [b, d] of these lengths [b] in low precision."""
        if self.nearest.by_direction:
            size = torch.where(lengths > 0, lengths, 1.0)
        else:
            size = torch.exp2(torch.ceil(torch.log2((lengths * self._scale).clamp(min=1.0)))) / self._scale
        scaled = queries / size[:, None]
        low = scaled.to(self.dtype)
        lost, length = (scaled - low.double()).norm(dim=1), low.double().norm(dim=1)
        if not self.nearest.by_direction:
            one = 1 / (size * self._scale)
            low = torch.cat([low, -one[:, None].expand(-1, HALVES).to(self.dtype)], dim=1)
            length = (length.square() + HALVES * one.square()).sqrt()
        return Asked(low=low, unit=torch.ones_like(size), length=length, lost=lost)

    def product(self, rows: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        """Scores [w, b]."""
        return rows @ queries.T

    def comparable(self, score: torch.Tensor) -> torch.Tensor:
        """A bound as a number of the scores' own type: no other number of that type lies between the two."""
        return score.to(self.dtype)

    def place(self, row: torch.Tensor) -> torch.Tensor:
        """Where a row of the table is held."""
        return row

    def row(self, place: torch.Tensor) -> torch.Tensor:
        """Which row of the table is held at a place."""
        return place

    def spans(self, width: int) -> Iterator[Span]:
        """All rows, so many at once."""
        lowered = self.precision == "float32" and torch.get_float32_matmul_precision() != "highest"
        lost = 2.0**-6 if lowered else 2.0**-22  # then numbers may be cut to bfloat16 on the way
        for number, start in enumerate(range(0, self.nearest.size, width)):
            low = self._low(self.nearest.stored[start : start + width])
            row, away, length = self._sizes(width)[number]
            sums = length * low.shape[1] * lost
            yield Span(start, len(low), _filled(low), unit=1.0, row=row, away=away, sums=sums)

    def _low(self, rows: torch.Tensor) -> torch.Tensor:
        if self.nearest.by_direction:
            return rows.to(self.dtype)
        scaled = rows.double() * self._scale
        left = scaled.square().sum(dim=1, keepdim=True) / 2
        columns = [scaled.to(self.dtype)]
        for _ in range(HALVES):
            columns.append(left.to(self.dtype))
            left = left - columns[-1].double()
        return torch.cat(columns, dim=1)

    def _sizes(self, width: int) -> list[tuple[float, float, float]]:
        """For every span the largest length of a row, of what a row lost, and of a row in low precision."""
        if (known := self._known.get(width)) is None:
            starts = range(0, self.nearest.size, width)
            known = self._known[width] = [self._size(slice(start, start + width)) for start in starts]
        return known

    @cached_property
    def _known(self) -> dict[int, list[tuple[float, float, float]]]:
        return {}

    def _size(self, part: slice) -> tuple[float, float, float]:
        true, low = self._true(part) * self._scale, self._low(self.nearest.stored[part]).double()
        away = true - low[:, : true.shape[1]]
        if not self.nearest.by_direction:
            halves = true.square().sum(dim=1) / 2 - low[:, -HALVES:].sum(dim=1)
            away = torch.cat([away, halves[:, None]], dim=1)
        return _longest(true), _longest(away), _longest(low)

    def _true(self, part: slice) -> torch.Tensor:
        rows = self.nearest.take(part).double()
        return rows / rows.norm(dim=1, keepdim=True) if self.nearest.by_direction else rows

    @cached_property
    def _scale(self) -> float:
        """A power of two that makes the longest row no longer than 1."""
        if self.nearest.by_direction:
            return 1.0
        width = MADE_SHAPE[0]
        longest = max(_longest(self._true(slice(start, start + width))) for start in range(0, self.nearest.size, width))
        return 2.0 ** -math.ceil(math.log2(longest)) if longest > 0 else 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Integers:
    """Unit rows and queries as eight-bit integers, after a rotation that leaves no coordinate much larger than others.

    Rows are held in the order of their largest coordinate. The few with a large one have a scale of their own, so that
    they do not cost the others their digits.
    """

    nearest: Nearest
    precision: Literal["int8"] = "int8"

    def queries(self, queries: torch.Tensor, lengths: torch.Tensor) -> Asked:
        """Queries [b, d] of these lengths [b] in low precision."""
        size = torch.where(lengths > 0, lengths, 1.0)[:, None]
        exact = torch.get_float32_matmul_precision() != "highest"
        turned = self._turn(queries / size, torch.float64 if exact else torch.float32).double()
        low, unit = _integers(turned)
        back = low.double() * unit[:, None]
        d = queries.shape[1]
        turning = d**1.5 * 2.0**-24  # what float32 may lose in the rotation
        return Asked(low=low, unit=unit, length=back.norm(dim=1), lost=(turned - back).norm(dim=1) + turning)

    def product(self, rows: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        """Scores [w, b], int32."""
        return torch._int_mm(rows, queries.T)

    def comparable(self, score: torch.Tensor) -> torch.Tensor:
        """A bound as an integer."""
        return torch.ceil(score).clamp(-(2.0**31), 2.0**31 - 1).to(torch.int32)

    def place(self, row: torch.Tensor) -> torch.Tensor:
        """Where a row of the table is held."""
        return self._order.argsort()[row]

    def row(self, place: torch.Tensor) -> torch.Tensor:
        """Which row of the table is held at a place."""
        return self._order[place]

    def spans(self, width: int) -> Iterator[Span]:
        """All rows, so many at once."""
        few = self.nearest.size - self.nearest.size // FEW
        bounds = [*range(0, few, width), *range(few, self.nearest.size, width), self.nearest.size]
        for start, end in pairwise(bounds):
            true = self._true(self._order[start:end])
            low, unit = _integers(true.flatten()[None])
            low = low.view(true.shape)
            away = true - low.double() * unit
            yield Span(start, len(low), _filled(low), float(unit), row=_longest(true), away=_longest(away), sums=0.0)

    def _true(self, rows: torch.Tensor) -> torch.Tensor:
        taken = self.nearest.take(rows).double()
        return self._turn(taken / taken.norm(dim=1, keepdim=True), torch.float64)

    @cached_property
    def _order(self) -> torch.Tensor:
        rows = torch.arange(self.nearest.size, device=self.nearest.device)
        return torch.cat([self._true(part).abs().amax(dim=1) for part in torch.split(rows, MADE_SHAPE[0])]).argsort()

    def _turn(self, vectors: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return vectors.to(dtype) @ self._rotation.to(dtype)

    @cached_property
    def _rotation(self) -> torch.Tensor:
        """The discrete sine transform, an orthogonal matrix [d, d]."""
        d = self.nearest.stored.shape[1]
        n = torch.arange(1, d + 1, dtype=torch.float64, device=self.nearest.device)
        return torch.sin(torch.outer(n, n) * (math.pi / (d + 1))) * math.sqrt(2 / (d + 1))


def _products(queries: torch.Tensor, rows: torch.Tensor, counts: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
    """The product of every query [b, d] with `counts` [b] of the rows [V, d], listed in `row`, one after another."""
    starts = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        pairs = torch.sparse_csr_tensor(
            starts, row, queries.new_zeros(len(row)), (len(queries), len(rows)), check_invariants=False
        )
        products: torch.Tensor = torch.sparse.sampled_addmm(pairs, queries, rows.T)
        return products.values()


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


def _lowest(scores: torch.Tensor) -> float:
    return -torch.inf if scores.is_floating_point() else torch.iinfo(scores.dtype).min


def _leave_out(scores: torch.Tensor, place: torch.Tensor) -> None:
    """Give one row of each query, where it is in this run of rows [w, b], the lowest score."""
    inside = ((place >= 0) & (place < len(scores))).nonzero().squeeze(1)
    scores[place[inside], inside] = _lowest(scores)


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
