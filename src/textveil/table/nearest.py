"""The exact nearest row: low-precision scores with a proven error bound, then the few candidates again in float64.

In: the rows of a table, and queries. Out: for each query the row with the largest cosine or smallest distance.
Not here: low precision and its error (`codes`); which of the two a table wants (`embedding`).

For a query q and a row v let q' and v' be their roundings, and s' the computed product of those. Then

    |s' - q.v|  <=  |q - q'| |v|  +  |q'| |v - v'|  +  d 2^-22 |q'| |v'|  +  2^-8 |s'|

by Cauchy-Schwarz twice, for d sums in float32 in any order, and for rounding the result to bfloat16; products of int8
have only the first two terms, and rounding in the rotation of q is part of |q - q'|. A row that cannot reach the best
row found under this bound is not the nearest. Rows are examined in groups, by their largest score; the remaining rows
are scored again in float64. Nothing here is probabilistic: if more rows are within the bound, more are scored again.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import torch

from textveil.errors import InputError
from textveil.randomness import Ids
from textveil.table.codes import (
    GROUP,
    NEARLY,
    ROUNDING,
    SLACK,
    FloatCodes,
    IntegerCodes,
    Precision,
    RowRun,
    Rows,
    low_precision,
)

KEPT, KEPT_SHAPE = 1 << 28, (1 << 15, 256)
"""Up to this many numbers, low-precision rows are cached; then the rows and queries scored at once."""

MADE_SHAPE = 1 << 12, 1 << 10
"""The same if rows are converted anew for each batch: more queries share the work."""

PAIRS = 1 << 14
"""Pairs of query and row scored again at once."""

HELD = 1 << 20
"""Pairs of query and row kept for scoring again; above this, they are scored before the search continues."""

Best = tuple[torch.Tensor, torch.Tensor]
"""The float64 score of each query's best row so far [b], and the row [b], V if there is none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Nearest:
    """The rows of a table, ready for searching.

    Attributes:
        rows: the rows.
        precision: of the first scores; None for what the machine multiplies fastest. int8 needs unit rows that can be
            cached; otherwise bfloat16 is used.
    """

    rows: Rows
    precision: Precision | None = None

    def search(self, queries: torch.Tensor, exclude: Ids | None = None) -> Ids:
        """The nearest row of each query, ties to the lowest row.

        Args:
            queries: [n, d], finite, and for distances shorter than 1e150.
            exclude: one row per query that is not allowed as the answer [n].

        Returns:
            rows int64 [n]: as found in float64, up to its own rounding.

        Raises:
            InputError: the queries are not as above, or there is not one excluded row for each.
        """
        if queries.ndim != 2 or queries.shape[1] != self.rows.dimension:
            raise InputError(f"queries must be [n, {self.rows.dimension}], got {list(queries.shape)}")
        if exclude is not None and exclude.shape != (len(queries),):
            raise InputError(f"exclude must be one row per query, [{len(queries)}], got {list(exclude.shape)}")
        found = np.empty(len(queries), np.int64)
        step = self._shape[1]
        device = self.rows.device
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            for start in range(0, len(queries), step):
                part = slice(start, start + step)
                own = None if exclude is None else torch.from_numpy(exclude[part]).to(device)
                found[part] = self._batch(queries[part].to(device, torch.float64), own).cpu().numpy()
        return found

    def _batch(self, queries: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
        queries, zero = self._checked(queries)
        lengths = queries.norm(dim=1)
        asked = self._coder.queries(queries, lengths)
        least = torch.full_like(lengths, -torch.inf)
        best = torch.full_like(lengths, -torch.inf), torch.full_like(lengths, self.rows.size, dtype=torch.int64)
        held: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        count = 0
        for span in self._spans():
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
            row = self._coder.row(span.start + place * groups.shape[1] + group[hit])
            held.append((i[hit], row, self._high_end(members[place, hit] * unit[i[hit]]) + error[i[hit]]))
            count += len(row)
            if count > HELD:
                best = self._better(queries, best, *self._left(queries / lengths[:, None], held, least))
                held, count = [], 0
        if held:
            best = self._better(queries, best, *self._left(queries / lengths[:, None], held, least), last=True)
        answer = best[1]
        if bool((answer == self.rows.size).any()):
            raise ArithmeticError("a bound of the exact search does not hold")
        if zero is not None:  # equally near to all rows
            answer[zero] = 0 if own is None else (own[zero] == 0).long()
        return answer

    def _checked(self, queries: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Queries scaled so that float64 holds their squares, and which of them are zero, if any."""
        peak = queries.abs().amax(dim=1, keepdim=True)
        if bool(((peak > 2.0**-400) & (peak < 2.0**400)).all()):
            return queries, None
        if not bool(torch.isfinite(peak).all()):
            raise InputError("queries must be finite, and one is not")
        if not self.rows.by_direction:
            if bool((peak > 1e150).any()):
                raise InputError("queries must be shorter than 1e150, and one is not")
            return queries, None
        queries = torch.where(peak < 2.0**-400, queries * 2.0**600, queries)
        queries = torch.where(peak > 2.0**400, queries * 2.0**-600, queries)
        zero = peak.squeeze(1) == 0
        return torch.where(zero[:, None], self.rows.true(slice(0, 1)), queries), zero

    def _left(
        self, unit: torch.Tensor, held: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]], least: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The candidates (owner, row) that can still be the best, of those kept with their highest possible scores."""
        owner, row, high = (torch.cat(each) for each in zip(*held, strict=True))
        left = high >= least[owner]
        owner, row = owner[left], row[left]
        if isinstance(self._coder, IntegerCodes) and self.rows.stored.dtype == torch.float32:
            return self._narrowed(unit, owner, row)
        return owner, row

    def _narrowed(
        self, unit: torch.Tensor, owner: torch.Tensor, row: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Fewer candidates, by float32 scores: int8 leaves about a dozen."""
        order = owner.argsort()
        owner, row = owner[order], row[order]
        score = _products(unit.float(), self.rows.stored, torch.bincount(owner, minlength=len(unit)), row)
        best = score.new_full((len(unit),), -torch.inf).scatter_reduce_(0, owner, score, "amax")
        error = (unit.shape[1] + 8) * 2.0**-23 + NEARLY[torch.float32]  # d sums, and rows of length 1 up to rounding
        left = score >= best[owner] - 2 * error
        return owner[left], row[left]

    def _better(
        self, queries: torch.Tensor, best: Best, owner: torch.Tensor, row: torch.Tensor, *, last: bool = False
    ) -> Best:
        """The best of the best rows so far and the candidates (owner, row); ties go to the lowest row.

        If only one candidate is left for a query at the end, its score is not computed.
        """
        score, answer = best
        if last:
            only = (torch.bincount(owner, minlength=len(queries)) == 1) & (answer == self.rows.size)
            alone = only[owner]
            answer[owner[alone]] = row[alone]
            owner, row = owner[~alone], row[~alone]
        if not len(owner):
            return score, answer
        parts = zip(torch.split(owner, PAIRS), torch.split(row, PAIRS), strict=True)
        exact = torch.cat([self._exact(queries[owners], rows) for owners, rows in parts])
        top = score.scatter_reduce(0, owner, exact, "amax")
        answer = torch.where(top > score, answer.new_full((), self.rows.size), answer)
        tied = exact == top[owner]
        return top, answer.scatter_reduce_(0, owner[tied], row[tied], "amin")

    def _exact(self, queries: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        rows = self.rows.true(row)
        if isinstance(self._coder, IntegerCodes) or self.rows.by_direction:
            return (queries * rows).sum(dim=1)
        # without the query's own square if it is so large that it would swallow the differences between rows
        far = queries.norm(dim=1) > 4 * self._coder.longest
        return torch.where(far, ((2 * queries - rows) * rows).sum(dim=1), -(queries - rows).square().sum(dim=1))

    # ---- what rounding may hide in a score -------------------------------------------------------------

    @property
    def _rounding(self) -> float:
        return ROUNDING[self._coder.scores]

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
    def _coder(self) -> "IntegerCodes | FloatCodes":
        # torch 2.13 multiplies integer matrices of one column wrongly
        integers = self.rows.by_direction and self._keeps and self.rows.dimension > 1
        precision = self.precision or low_precision(self.rows.device, integers=integers)
        if precision == "int8" and integers:
            return IntegerCodes(rows=self.rows)
        return FloatCodes(rows=self.rows, precision="bfloat16" if precision == "int8" else precision)

    def _spans(self) -> Iterator[RowRun]:
        yield from self._kept if self._keeps else self._coder.spans(self._shape[0])

    @cached_property
    def _kept(self) -> list[RowRun]:
        return list(self._coder.spans(self._shape[0]))


def _products(queries: torch.Tensor, rows: torch.Tensor, counts: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
    """The products of each query [b, d] with its `counts` [b] rows of [V, d], listed one after another in `row`."""
    _hear_of_beta()
    starts = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
    values = queries.new_zeros(len(row))
    pairs = torch.sparse_csr_tensor(starts, row, values, (len(queries), len(rows)), check_invariants=False)
    products: torch.Tensor = torch.sparse.sampled_addmm(pairs, queries, rows.T)
    return products.values()


@cache
def _hear_of_beta() -> None:
    """Triggers, silently, torch's once-per-process notice that this kind of matrix is in beta."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor(torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64), torch.tensor([]), (1, 1))


def _lowest(scores: torch.Tensor) -> float:
    return -torch.inf if scores.is_floating_point() else torch.iinfo(scores.dtype).min


def _leave_out(scores: torch.Tensor, place: torch.Tensor) -> None:
    """Gives one row of each query, if it is in this run of rows [w, b], the lowest score."""
    inside = ((place >= 0) & (place < len(scores))).nonzero().squeeze(1)
    scores[place[inside], inside] = _lowest(scores)
