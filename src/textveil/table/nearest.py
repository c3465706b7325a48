"""The exact nearest row: low-precision scores with proven bounds, then float64.

In: the rows of a table, and queries. Out: for each query the row with the largest cosine or
smallest distance.
Not here: low precision and its error (`quantized`, `streamed`, `cuda`); which of cosine and
distance a
table wants (`embedding`).

For a query q and a row v let q' and v' be their roundings, and s' the computed product of those.
Then

    |s' - q.v|  <=  |q - q'| |v|  +  |q'| |v - v'|  +  d 2^-22 |q'| |v'|  +  2^-23 |s'|

by Cauchy-Schwarz twice, for d sums in float32 in any order, and for rounding the result; products
of int8 have only the first two terms, and rounding in the rotation of q is part of |q - q'|. A row
that cannot reach the best row found under this bound is not the nearest. The remaining rows are
scored again in float64. Nothing here is probabilistic: if more rows are within the bound, more are
scored again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from textveil.errors import InputError
from textveil.randomness import Floats, Ids, Values
from textveil.table import int8
from textveil.table.cuda import TorchCodes
from textveil.table.quantized import (
    Engine,
    FloatCodes,
    IntegerCodes,
    RowRun,
    Rows,
    compute_norms,
    compute_squares,
    find_longest,
)
from textveil.table.streamed import StreamedCodes

MAX_CACHED_NUMBERS, CACHED_SHAPE = 1 << 28, (1 << 15, 256)
"""Largest number of cached low-precision numbers, and the shape of a batch.

The shape is rows and queries scored at once.
"""

MAX_DEVICE_NUMBERS = 1 << 32
"""Largest number of cached numbers on another device: 8 GiB in bfloat16."""

STREAMED_SHAPE = 1 << 12, 1 << 10
"""Shape of a batch if rows are converted anew for each batch.

More queries share the work.
"""

MAX_FLOAT_QUERIES = 512
"""Queries answered in float32 before rows are quantized."""

MAX_PAIRS = 1 << 14
"""Pairs of query and row scored again at once."""

MAX_CANDIDATES = 1 << 20
"""Largest number of pairs kept for scoring again.

Above this, they are scored before the search continues.
"""

Best = tuple[Values, Ids]
"""The best float64 score of each query so far, and its row.

Both are [b]; the row is V if there is none.
"""

Candidates = list[tuple[Ids, Ids, Values]]
"""Candidates: query, row, and the highest score that it can have."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Nearest:
    """The rows of a table, ready for searching.

    Attributes:
        rows: the rows.
        device: "cpu", or a torch device that computes the first scores, such as "cuda"; needs the
            extra `torch`.
        precision: of the first scores on the CPU; None for the faster of int8 and float32.
    """

    rows: Rows
    device: str = "cpu"
    precision: Literal["float32"] | None = None

    def search(self, queries: Values | Floats, exclude: Ids | None = None) -> Ids:
        """Finds each query's nearest row; ties go to the lowest row.

        Args:
            queries: [n, d], finite, and for distances shorter than 1e150.
            exclude: one row per query that is not allowed as the answer [n].

        Returns:
            rows int64 [n]: as computed in float64, up to rounding.

        Raises:
            InputError: the queries break these conditions, or some lack an excluded row.
        """
        if queries.ndim != 2 or queries.shape[1] != self.rows.dimension:
            raise InputError(
                f"queries must be [n, {self.rows.dimension}], got {list(queries.shape)}"
            )
        if exclude is not None and exclude.shape != (len(queries),):
            raise InputError(
                f"exclude must be one row per query, [{len(queries)}], got {list(exclude.shape)}"
            )
        if self._is_few(len(queries)):
            return self._float_search.search(queries, exclude)
        nearest_rows = np.empty(len(queries), np.int64)
        step = self._shape[1]
        for start in range(0, len(queries), step):
            part = slice(start, start + step)
            nearest_rows[part] = self._search_batch(
                queries[part].astype(np.float64), None if exclude is None else exclude[part]
            )
        return nearest_rows

    def _is_few(self, count: int) -> bool:
        """Says whether too few queries came yet to pay for quantizing."""
        # A cached property lies there once it is computed: the rows are quantized already.
        if "_codes" in self.__dict__ or not self._integers or not self._can_cache:
            return False
        total = self.__dict__["_asked"] = self.__dict__.get("_asked", 0) + count
        return bool(total <= MAX_FLOAT_QUERIES)

    @cached_property
    def _float_search(self) -> "Nearest":
        return Nearest(rows=self.rows, precision="float32")

    def _search_batch(self, queries: Values, exclude: Ids | None) -> Ids:
        queries, zero = self._scale_queries(queries)
        lengths = compute_norms(queries)
        unit = queries / np.where(lengths > 0, lengths, 1.0)[:, None]
        low_queries = self._codes.convert_queries(queries, lengths)
        lower_bounds = np.full(len(queries), -np.inf)
        best = np.full(len(queries), -np.inf), np.full(len(queries), self.rows.size)
        candidates: Candidates = []
        count = 0
        for run in self._yield_runs():
            scores = self._codes.score_run(run, low_queries)
            if exclude is not None:
                place = self._codes.get_place(exclude) - run.start
                inside = np.flatnonzero((place >= 0) & (place < run.size))
                scores.exclude(inside, place[inside])
            # The bounds first: the run's own best rows leave fewer candidates in it.
            lower_bounds = np.maximum(lower_bounds, scores.compute_best())
            query, place, high = scores.find_candidates(lower_bounds)
            candidates.append((query, self._codes.get_row(run.start + place), high))
            count += len(query)
            if count > MAX_CANDIDATES:
                best = self._update_best(
                    queries, best, *self._filter_candidates(unit, candidates, lower_bounds)
                )
                candidates, count = [], 0
        if candidates:
            best = self._update_best(
                queries, best, *self._filter_candidates(unit, candidates, lower_bounds), last=True
            )
        answer = best[1]
        # The best row is always a candidate if all bounds hold; never answer with a wrong one.
        if (answer == self.rows.size).any():
            raise ArithmeticError("a bound of the exact search does not hold")
        if zero is not None:  # equally near to all rows
            answer[zero] = 0 if exclude is None else exclude[zero] == 0
        return answer

    def _scale_queries(self, queries: Values) -> tuple[Values, Ids | None]:
        """Scales queries so that float64 holds their squares.

        Also returns which of them are zero, if any.
        """
        peak = np.maximum(queries.max(axis=1), -queries.min(axis=1))[:, None]
        if ((peak > 2.0**-400) & (peak < 2.0**400)).all():
            return queries, None
        if not np.isfinite(peak).all():
            raise InputError("queries must be finite, and one is not")
        if not self.rows.by_direction:
            if (peak > 1e150).any():
                raise InputError("queries must be shorter than 1e150, and one is not")
            return queries, None
        # Powers of two change no digit, and a direction does not depend on the length.
        queries = queries * np.where(
            peak < 2.0**-400, 2.0**600, np.where(peak > 2.0**400, 2.0**-600, 1.0)
        )
        zero = np.flatnonzero(peak == 0)
        # Any direction will do: the answers to zero queries are set at the end.
        queries[zero] = self.rows.take_exact(slice(0, 1))
        return queries, zero

    def _filter_candidates(
        self, unit: Values, candidates: Candidates, lower_bounds: Values
    ) -> tuple[Ids, Ids]:
        """Filters the kept candidates (query, row) that can still be the best.

        They were kept with their highest possible scores.
        """
        query, row, high = (np.concatenate(column) for column in zip(*candidates, strict=True))
        # The bounds may have risen since these candidates were kept.
        is_candidate = high >= lower_bounds[query]
        return self._codes.filter_candidates(unit, query[is_candidate], row[is_candidate])

    def _update_best(
        self, queries: Values, best: Best, query: Ids, row: Ids, *, last: bool = False
    ) -> Best:
        """Updates the best rows with the candidates (query, row).

        Ties go to the lowest row. If only one candidate is left for a query at the end, its score
        is not computed.
        """
        score, answer = best
        if last:
            only = (np.bincount(query, minlength=len(queries)) == 1) & (answer == self.rows.size)
            alone = only[query]
            answer[query[alone]] = row[alone]
            query, row = query[~alone], row[~alone]
        parts = [slice(start, start + MAX_PAIRS) for start in range(0, len(query), MAX_PAIRS)]
        if not parts:
            return score, answer
        exact = np.concatenate(
            [self._score_exactly(queries[query[part]], row[part]) for part in parts]
        )
        # By query, falling score and row: the first of each query is its best, ties by lowest row.
        order = np.lexsort((row, -exact, query))
        query, row, exact = query[order], row[order], exact[order]
        first = np.flatnonzero(np.diff(query, prepend=-1))
        query, row, exact = query[first], row[first], exact[first]
        wins = (exact > score[query]) | ((exact == score[query]) & (row < answer[query]))
        score[query[wins]], answer[query[wins]] = exact[wins], row[wins]
        return score, answer

    def _score_exactly(self, queries: Values, row: Ids) -> Values:
        rows = self.rows.take_exact(row)
        if self.rows.by_direction:
            products: Values = np.einsum("ij,ij->i", queries, rows)
            return products
        # leave out the query's square where it would swallow the differences between rows
        far = compute_norms(queries) > 4 * self._longest
        return np.where(
            far, np.einsum("ij,ij->i", 2 * queries - rows, rows), -compute_squares(queries - rows)
        )

    @cached_property
    def _longest(self) -> float:
        return max(find_longest(self.rows.take_exact(run)) for run in self._yield_slices())

    # ---- rows in low precision -------------------------------------------------------------------

    @property
    def _can_cache(self) -> bool:
        return self.rows.stored.size <= (
            MAX_CACHED_NUMBERS // 2 if self.device == "cpu" else MAX_DEVICE_NUMBERS
        )

    @property
    def _shape(self) -> tuple[int, int]:
        return CACHED_SHAPE if self._can_cache else STREAMED_SHAPE

    @cached_property
    def _codes(self) -> Engine:
        if self.device != "cpu":
            return TorchCodes(rows=self.rows, device=self.device)
        if not self._integers:
            return FloatCodes(rows=self.rows)
        return IntegerCodes(rows=self.rows) if self._can_cache else StreamedCodes(rows=self.rows)

    @property
    def _integers(self) -> bool:
        """True if int8 is quickest: unit rows on the CPU, if exact."""
        return (
            self.device == "cpu"
            and self.precision != "float32"
            and self.rows.by_direction
            and int8.is_exact()
        )

    def _yield_slices(self) -> Iterator[slice]:
        return (
            slice(start, start + self._shape[0])
            for start in range(0, self.rows.size, self._shape[0])
        )

    def _yield_runs(self) -> Iterator[RowRun]:
        yield from self._cached_runs if self._can_cache else self._codes.yield_runs(self._shape[0])

    @cached_property
    def _cached_runs(self) -> list[RowRun]:
        return list(self._codes.yield_runs(self._shape[0]))
