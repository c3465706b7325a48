"""First int8 scores of the exact search, for very large tables.

In: the stored rows, perhaps mapped from disk, and queries. Out: scores of a batch of queries, with
bounds.
Not here: the search itself (`nearest`), the bound and rows that are kept as integers (`codes`), the
product (`engine`).

Rows become integers as they are read. They stay in their order and are not rotated, as that would
take longer than it saves. The rounding error is measured when a group of rows is first read: only
its largest error and its largest coordinate are kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from textveil.randomness import Floats, Ids, Values
from textveil.table.codes import (
    NEARLY,
    SCALING,
    GroupedScores,
    IntegerCodes,
    IntegerRun,
    Queries,
    Stored,
    norms,
    turning,
)
from textveil.table.engine import GROUP, IntegerQueries, quantizer, widened

PART = 1 << 9
"""Rows measured at once, so that they stay in a processor's cache."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StreamedCodes(IntegerCodes):
    """Unit rows that are quantized to int8 for every batch.

    Queries are int8, too.
    """

    def queries(self, queries: Values, lengths: Values) -> Queries:
        """Converts queries [b, d] with norms `lengths` [b] to int8."""
        asked = super().queries(queries, lengths)
        return asked._replace(low=IntegerQueries(asked.low, self.rows.stored.dtype))

    def scores(self, run: IntegerRun, asked: Queries) -> GroupedScores:
        """Computes the scores of a run."""
        each, groups = asked.low.maxima(run.low, run.unit)
        return GroupedScores(run=run, asked=asked, each=each, groups=groups)

    def place(self, row: Ids) -> Ids:
        """Returns the row: rows are in the table's order."""
        return row

    def row(self, place: Ids) -> Ids:
        """Returns the place: rows are in the table's order."""
        return place

    def spans(self, width: int) -> Iterator[IntegerRun]:
        """Yields all rows, `width` at a time, a multiple of `GROUP`."""
        for start in range(0, self.rows.size, width):
            low = np.ascontiguousarray(self.rows.stored[start : start + width])
            size = len(low)
            if short := -size % GROUP:
                low = np.pad(low, ((0, short), (0, 0)))
            if (known := self._sizes.get((start, width))) is None:
                parts = [
                    self._size(low[at : at + PART], min(PART, size - at))
                    for at in range(0, size, PART)
                ]
                unit, away = (np.concatenate(each) for each in zip(*parts, strict=True))
                known = self._sizes[start, width] = unit, away
            yield IntegerRun(start, size, low, unit=known[0], away=known[1])

    @cached_property
    def _sizes(self) -> dict[tuple[int, int], tuple[Floats, Values]]:
        """Results of `_size` by first row and number of rows."""
        return {}

    def _size(self, rows: Stored, size: int) -> tuple[Floats, Values]:
        """Measures the unit of each group [g] and its largest error [g].

        Only the first `size` rows count.
        """
        wide = widened(rows)
        groups = wide.reshape(-1, GROUP * wide.shape[1])
        unit = np.maximum(groups.max(axis=1), -groups.min(axis=1)) / np.float32(127)
        unit[unit == 0] = 1
        back = quantizer(wide.shape[1], rows.dtype)(rows, unit) * np.repeat(unit, GROUP)[:, None]
        lengths, away = (
            norms(vectors)[:size].astype(np.float64) for vectors in (wide, wide - back)
        )
        # rows of length 1 are meant
        away = away * self._rounded + np.abs(lengths - 1) + lengths * (self._rounded - 1)
        most = np.maximum.reduceat(away, np.arange(0, size, GROUP))
        return unit, most + self._turning + NEARLY[np.dtype(np.float32)] + SCALING

    def _turned(self, vectors: Values | Floats) -> Floats:
        return vectors.astype(np.float32, copy=False)

    @property
    def _turning(self) -> float:
        return turning(1)
