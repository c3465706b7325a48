"""The exact nearest row: low-precision scores with a proved error bound, then the few candidates again in float64.

In: the rows of a table, and queries. Out: for every query the row of the largest cosine or smallest distance.
Not here: low precision and its error (`precision`); which of the two a table wants (`table`).

For a query q and a row v let q' and v' be their roundings, and s' the computed product of those. Then

    |s' - q.v|  <=  |q - q'| |v|  +  |q'| |v - v'|  +  d 2^-22 |q'| |v'|  +  2^-8 |s'|

by Cauchy-Schwarz twice, for d sums in float32 in any order, and for the rounding of the result to bfloat16; products of
eight-bit integers have only the first two terms. A row that by this bound cannot reach the best row found is not the
nearest. Rows are looked at in groups, of which only the largest score counts; the rows that are left are scored again
in float64. Nothing here is a matter of chance: where more rows lie within the bound, more are scored again.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from textveil.errors import InputError
from textveil.precision import GROUP, ROUNDING, SLACK, Floats, Integers, Precision, Rows, Span

Ids = NDArray[np.int64]

KEPT, KEPT_SHAPE = 1 << 28, (1 << 15, 256)
"""Numbers up to which the low-precision rows are kept; then so many rows and queries are scored at once."""

MADE_SHAPE = 1 << 12, 1 << 10
"""The same where rows are brought into low precision anew for each batch: more queries share the work."""

PAIRS = 1 << 14
"""Queries and rows that are scored again at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Nearest:
    """The rows of a table, ready to be searched.

    Attributes:
        rows: the rows.
        precision: what rows are scored in first. int8 is for unit rows that can be kept; else bfloat16 takes its place.
    """

    rows: Rows
    precision: Precision

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
            own = None if exclude is None else torch.from_numpy(exclude[part]).to(self.rows.device)
            found[part] = self._batch(queries[part].to(self.rows.device, torch.float64), own).cpu().numpy()
        return found

    def _batch(self, queries: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
        lengths = queries.norm(dim=1)
        if not bool(torch.isfinite(lengths).all()):
            raise InputError("a vector must be finite to have a nearest row, and one is not")
        asked = self._coder.queries(queries, lengths)
        least = torch.full((len(queries),), -torch.inf, dtype=torch.float64, device=self.rows.device)
        owners, rows, highs = [], [], []
        for span in self._spans():
            with _full_sums(self.rows.device):
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
        if isinstance(self._coder, Integers) and self.rows.stored.dtype == torch.float32:
            owner, row = self._narrowed(queries / lengths.clamp(min=1e-300)[:, None], owner, row)
        return self._decide(queries, owner, row, own)

    def _narrowed(
        self, queries: torch.Tensor, owner: torch.Tensor, row: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Fewer candidates, by scores in float32: eight-bit integers leave a dozen."""
        order = owner.argsort()
        owner, row = owner[order], row[order]
        score = _products(queries.float(), self.rows.stored, torch.bincount(owner, minlength=len(queries)), row)
        best = score.new_full((len(queries),), -torch.inf).scatter_reduce_(0, owner, score, "amax")
        error = (queries.shape[1] + 8) * 2.0**-23  # d sums, and rows and queries of length 1 but for a rounding
        left = score >= best[owner] - 2 * error
        return owner[left], row[left]

    def _decide(
        self, queries: torch.Tensor, owner: torch.Tensor, row: torch.Tensor, own: torch.Tensor | None
    ) -> torch.Tensor:
        """The best row of every query among its candidates, each candidate a pair (owner, row)."""
        count = torch.bincount(owner, minlength=len(queries))
        answer = torch.zeros(len(queries), dtype=torch.int64, device=self.rows.device)
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
        first = torch.full_like(answer, self.rows.size).scatter_reduce_(0, owner[tied], row[tied], "amin")
        return torch.where(first < self.rows.size, first, answer)

    def _exact(self, queries: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        rows = self.rows.true(row)
        return (queries * rows).sum(dim=1) if self.rows.by_direction else -(queries - rows).square_().sum(dim=1)

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
        return self.rows.stored.numel() <= KEPT // 2

    @property
    def _shape(self) -> tuple[int, int]:
        return KEPT_SHAPE if self._keeps else MADE_SHAPE

    @cached_property
    def _coder(self) -> "Integers | Floats":
        wide = self.rows.dimension > 1  # torch 2.13 multiplies integer matrices of one column wrongly
        if self.precision == "int8" and self.rows.by_direction and self._keeps and wide:
            return Integers(rows=self.rows)
        return Floats(rows=self.rows, precision="bfloat16" if self.precision == "int8" else self.precision)

    def _spans(self) -> Iterator[Span]:
        yield from self._kept if self._keeps else self._coder.spans(self._shape[0])

    @cached_property
    def _kept(self) -> list[Span]:
        return list(self._coder.spans(self._shape[0]))


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
