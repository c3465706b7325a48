"""First scores of the exact search on a GPU, in bfloat16.

In: the rows of a table and queries, as numpy arrays. Out: scores on the device, of which only those
that reach a bound come back.
Not here: the search itself (`nearest`), which scores the few candidates again in float64.

Needs the extra `torch`. Any device of torch will do; on the CPU it is slow, and there for tests.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from textveil.config import extras
from textveil.errors import ConfigError
from textveil.randomness import Ids, Values
from textveil.table.codes import (
    HALF,
    FloatCodes,
    FloatRun,
    Queries,
    Rows,
    floor_of,
    high_end,
    longest_of,
    low_end,
    norms,
    squares,
)

HALVES = 3
"""Extra columns that hold half a row's squared norm.

Three bfloat16 numbers have the digits of a float32.
"""

EXACT_AT_ONCE = 1 << 16
"""Candidates whose products are computed at once on the device."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceScores:
    """Float32 scores [w, b] on the device, and their largest errors [b]."""

    each: Any
    error: Values

    def leave_out(self, query: Ids, place: Ids) -> None:  # noqa: D102
        torch = _torch()
        self.each[torch.from_numpy(place), torch.from_numpy(query)] = -torch.inf

    def best(self) -> Values:  # noqa: D102
        return low_end(self.each.amax(dim=0).double().cpu().numpy(), self.error)

    def reaching(self, least: Values) -> tuple[Ids, Ids, Values]:  # noqa: D102
        floor = _torch().from_numpy(floor_of(least, self.error)).to(self.each.device)
        hits = (self.each >= floor).nonzero(as_tuple=True)
        score = self.each[hits].double().cpu().numpy()
        place, query = (each.cpu().numpy() for each in hits)
        return query, place, high_end(score, self.error[query])


@dataclass(frozen=True, kw_only=True, eq=False)
class TorchCodes:
    """Rows and queries in bfloat16 on a device of torch.

    For distances the score is q.v - |v|^2 / 2: `HALVES` more columns hold half a row's squared
    norm, where the query has -1. Rows and queries are scaled by powers of two, which is exact.
    """

    rows: Rows
    device: str

    def queries(self, queries: Values, lengths: Values) -> Queries:
        """Converts queries [b, d] with norms `lengths` [b] to bfloat16.

        They lie on the device.
        """
        scaled, one = self._floats.scaled(queries, lengths)
        low, back = self._lowered(scaled)
        lost, length = norms(scaled - back), norms(back)
        if one is not None:
            low = _torch().cat(
                [low, self._lowered(np.repeat(-one[:, None], HALVES, axis=1))[0]], dim=1
            )
            length = np.sqrt(length**2 + HALVES * one**2)
        return Queries(
            low, unit=np.ones(len(back)), length=length, lost=lost, sums=low.shape[1] * 4 * HALF
        )

    def scores(self, run: FloatRun, asked: Queries) -> DeviceScores:
        """Computes the scores of a run, in float32.

        A GPU adds up to float32; the CPU has no such product.
        """
        torch = _torch()
        with torch.no_grad(), torch.autocast(run.low.device.type, enabled=False):
            if run.low.device.type == "cuda":
                each = torch.mm(run.low, asked.low.T, out_dtype=torch.float32)
            else:
                each = run.low.double().mm(asked.low.T.double()).float()
        return DeviceScores(each=each, error=run.error(asked))

    def place(self, row: Ids) -> Ids:
        """Returns the row: rows are in the table's order."""
        return row

    def row(self, place: Ids) -> Ids:
        """Returns the place: rows are in the table's order."""
        return place

    def narrowed(self, unit: Values, query: Ids, row: Ids) -> tuple[Ids, Ids]:
        """Reduces the candidates, by products in float64 on the device."""
        if not self.rows.by_direction or self.rows.stored.dtype != np.float32 or not len(query):
            return query, row
        torch = _torch()
        asked, stored = torch.from_numpy(unit).to(self.device), self._stored
        owner, other = (torch.from_numpy(each).to(self.device) for each in (query, row))
        parts = zip(owner.split(EXACT_AT_ONCE), other.split(EXACT_AT_ONCE), strict=True)
        score = torch.cat([(asked[a] * stored[b].double()).sum(dim=1) for a, b in parts])
        best = torch.full((len(unit),), -torch.inf, dtype=score.dtype, device=score.device)
        best.scatter_reduce_(0, owner, score, "amax")
        left = (score >= best[owner] - 4e-6).cpu().numpy()  # rows have length 1 up to 1e-6
        return query[left], row[left]

    def spans(self, width: int) -> Iterator[FloatRun]:
        """Yields all rows, `width` at a time."""
        for start in range(0, self.rows.size, width):
            part = slice(start, start + width)
            true = self.rows.true(part) * self._floats.scale
            low, back = self._lowered(true)
            away = true - back
            if not self.rows.by_direction:
                left = squares(true) / 2
                for _ in range(HALVES):
                    column, rounded = self._lowered(left[:, None])
                    low, back = _torch().cat([low, column], dim=1), np.column_stack([back, rounded])
                    left = left - rounded[:, 0]
                away = np.column_stack([away, left])
            sizes = (longest_of(each) for each in (true, away, back))
            yield FloatRun(start, len(true), low, *sizes)

    def _lowered(self, values: Values) -> tuple[Any, Values]:
        """Converts numbers to bfloat16 on the device.

        Also returns the numbers that these represent, float64.
        """
        torch = _torch()
        low = torch.from_numpy(np.ascontiguousarray(values)).to(torch.bfloat16)
        return low.to(self.device), low.double().numpy()

    @cached_property
    def _stored(self) -> Any:
        return _torch().from_numpy(np.asarray(self.rows.stored)).to(self.device)

    @cached_property
    def _floats(self) -> FloatCodes:
        return FloatCodes(rows=self.rows)


def _torch() -> Any:
    return extras.library("torch")


def check_device(device: str) -> None:
    """Refuses a device that is not available.

    Raises:
        MissingExtra: torch is not installed.
        ConfigError: torch has no such device here.
    """
    try:
        _torch().empty(1, device=device)
        return
    except (RuntimeError, AssertionError):  # torch raises either
        pass
    raise ConfigError(f"table.device {device!r} is not available here")
