"""First int8 scores of the exact search, for very large tables.

In: the stored rows, perhaps mapped from disk, and queries. Out: scores of a batch of queries, with
bounds.
Not here: the search itself (`nearest`), the bound and rows that are kept as integers (`quantized`),
the
product (`int8`).

Rows become integers as they are read. They stay in their order and are not rotated, as that would
take longer than it saves. The rounding error is measured when a group of rows is first read: only
its largest error and its largest coordinate are kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from textveil.randomness import Floats, Ids, Values
from textveil.table.int8 import GROUP, IntegerQueries, build_quantizer, widen
from textveil.table.quantized import (
    NORM_TOLERANCE,
    SCALING_ERROR,
    GroupedScores,
    IntegerCodes,
    IntegerRun,
    Queries,
    Stored,
    compute_norms,
    compute_rotation_error,
)

MEASURED_ROWS = 1 << 9
"""Rows measured at once, so that they stay in a processor's cache."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StreamedCodes(IntegerCodes):
    """Unit rows that are quantized to int8 for every batch.

    Queries are int8, too.
    """

    def convert_queries(self, queries: Values, lengths: Values) -> Queries:
        """Converts queries [b, d] with norms `lengths` [b] to int8."""
        converted = super().convert_queries(queries, lengths)
        return converted._replace(low=IntegerQueries(converted.low, self.rows.stored.dtype))

    def score_run(self, run: IntegerRun, queries: Queries) -> GroupedScores:
        """Computes the scores of a run."""
        products, groups = queries.low.maxima(run.low, run.unit)
        return GroupedScores(run=run, queries=queries, products=products, groups=groups)

    def get_place(self, row: Ids) -> Ids:
        """Returns the row: rows are in the table's order."""
        return row

    def get_row(self, place: Ids) -> Ids:
        """Returns the place: rows are in the table's order."""
        return place

    def yield_runs(self, width: int) -> Iterator[IntegerRun]:
        """Yields all rows, `width` at a time, a multiple of `GROUP`."""
        for start in range(0, self.rows.size, width):
            low = np.ascontiguousarray(self.rows.stored[start : start + width])
            size = len(low)
            if short := -size % GROUP:
                low = np.pad(low, ((0, short), (0, 0)))
            if (sizes := self._sizes.get((start, width))) is None:
                parts = [
                    self._measure_groups(
                        low[at : at + MEASURED_ROWS], min(MEASURED_ROWS, size - at)
                    )
                    for at in range(0, size, MEASURED_ROWS)
                ]
                unit, away = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
                sizes = self._sizes[start, width] = unit, away
            yield IntegerRun(start, size, low, unit=sizes[0], away=sizes[1])

    @cached_property
    def _sizes(self) -> dict[tuple[int, int], tuple[Floats, Values]]:
        """Results of `_measure_groups` by first row and number of rows."""
        return {}

    def _measure_groups(self, rows: Stored, size: int) -> tuple[Floats, Values]:
        """Measures the unit of each group [g] and its largest error [g].

        Only the first `size` rows count.
        """
        wide = widen(rows)
        groups = wide.reshape(-1, GROUP * wide.shape[1])
        unit = np.maximum(groups.max(axis=1), -groups.min(axis=1)) / np.float32(127)
        unit[unit == 0] = 1
        back = (
            build_quantizer(wide.shape[1], rows.dtype)(rows, unit) * np.repeat(unit, GROUP)[:, None]
        )
        lengths, away = (
            compute_norms(vectors)[:size].astype(np.float64) for vectors in (wide, wide - back)
        )
        # rows of length 1 are meant
        away = away * self._norm_factor + np.abs(lengths - 1) + lengths * (self._norm_factor - 1)
        errors = np.maximum.reduceat(away, np.arange(0, size, GROUP))
        return unit, errors + self._rotation_error + NORM_TOLERANCE[
            np.dtype(np.float32)
        ] + SCALING_ERROR

    def _rotate(self, vectors: Values | Floats) -> Floats:
        return vectors.astype(np.float32, copy=False)

    @property
    def _rotation_error(self) -> float:
        # Rows are not rotated here; what is left is the error of dequantizing.
        return compute_rotation_error(1)
