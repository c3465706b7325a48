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
from textveil.table.quantized import (
    FLOAT32_ERROR,
    FloatCodes,
    FloatRun,
    Queries,
    Rows,
    compute_floor,
    compute_lower_bound,
    compute_norms,
    compute_squares,
    compute_upper_bound,
    find_longest,
)

SQUARE_COLUMNS = 3
"""Extra columns that hold half a row's squared norm.

Three bfloat16 numbers have the digits of a float32.
"""

MAX_EXACT_CANDIDATES = 1 << 16
"""Candidates whose products are computed at once on the device."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceScores:
    """Float32 scores [w, b] on the device, and their largest errors [b]."""

    scores: Any
    error: Values

    def exclude(self, query: Ids, place: Ids) -> None:  # noqa: D102
        torch = _load_torch()
        self.scores[torch.from_numpy(place), torch.from_numpy(query)] = -torch.inf

    def compute_best(self) -> Values:  # noqa: D102
        return compute_lower_bound(self.scores.amax(dim=0).double().cpu().numpy(), self.error)

    def find_candidates(self, thresholds: Values) -> tuple[Ids, Ids, Values]:  # noqa: D102
        floor = (
            _load_torch().from_numpy(compute_floor(thresholds, self.error)).to(self.scores.device)
        )
        hits = (self.scores >= floor).nonzero(as_tuple=True)
        score = self.scores[hits].double().cpu().numpy()
        place, query = (indices.cpu().numpy() for indices in hits)
        return query, place, compute_upper_bound(score, self.error[query])


@dataclass(frozen=True, kw_only=True, eq=False)
class TorchCodes:
    """Rows and queries in bfloat16 on a device of torch.

    For distances the score is q.v - |v|^2 / 2: `SQUARE_COLUMNS` more columns hold half a row's squared
    norm, where the query has -1. Rows and queries are scaled by powers of two, which is exact.
    """

    rows: Rows
    device: str

    def convert_queries(self, queries: Values, lengths: Values) -> Queries:
        """Converts queries [b, d] with norms `lengths` [b] to bfloat16.

        They lie on the device.
        """
        scaled, square_factor = self._floats.scale_queries(queries, lengths)
        low, back = self._convert(scaled)
        rounding_error, length = compute_norms(scaled - back), compute_norms(back)
        if square_factor is not None:
            low = _load_torch().cat(
                [low, self._convert(np.repeat(-square_factor[:, None], SQUARE_COLUMNS, axis=1))[0]],
                dim=1,
            )
            length = np.sqrt(length**2 + SQUARE_COLUMNS * square_factor**2)
        return Queries(
            low,
            unit=np.ones(len(back)),
            length=length,
            rounding_error=rounding_error,
            sums=low.shape[1] * 4 * FLOAT32_ERROR,
        )

    def score_run(self, run: FloatRun, queries: Queries) -> DeviceScores:
        """Computes the scores of a run, in float32.

        A GPU adds up to float32; the CPU has no such product.
        """
        torch = _load_torch()
        # A caller's autocast would lower the precision below what the error bounds assume.
        with torch.no_grad(), torch.autocast(run.low.device.type, enabled=False):
            if run.low.device.type == "cuda":
                scores = torch.mm(run.low, queries.low.T, out_dtype=torch.float32)
            else:
                scores = run.low.double().mm(queries.low.T.double()).float()
        return DeviceScores(scores=scores, error=run.compute_error(queries))

    def get_place(self, row: Ids) -> Ids:
        """Returns the row: rows are in the table's order."""
        return row

    def get_row(self, place: Ids) -> Ids:
        """Returns the place: rows are in the table's order."""
        return place

    def filter_candidates(self, unit: Values, query: Ids, row: Ids) -> tuple[Ids, Ids]:
        """Reduces the candidates, by products in float64 on the device."""
        if not self.rows.by_direction or self.rows.stored.dtype != np.float32 or not len(query):
            return query, row
        torch = _load_torch()
        unit_queries, stored = torch.from_numpy(unit).to(self.device), self._device_rows
        owner, other = (torch.from_numpy(indices).to(self.device) for indices in (query, row))
        parts = zip(
            owner.split(MAX_EXACT_CANDIDATES), other.split(MAX_EXACT_CANDIDATES), strict=True
        )
        score = torch.cat([(unit_queries[a] * stored[b].double()).sum(dim=1) for a, b in parts])
        best = torch.full((len(unit),), -torch.inf, dtype=score.dtype, device=score.device)
        best.scatter_reduce_(0, owner, score, "amax")
        is_candidate = (score >= best[owner] - 4e-6).cpu().numpy()  # rows have length 1 up to 1e-6
        return query[is_candidate], row[is_candidate]

    def yield_runs(self, width: int) -> Iterator[FloatRun]:
        """Yields all rows, `width` at a time."""
        for start in range(0, self.rows.size, width):
            part = slice(start, start + width)
            exact = self.rows.take_exact(part) * self._floats.scale
            low, back = self._convert(exact)
            away = exact - back
            if not self.rows.by_direction:
                remainder = compute_squares(exact) / 2
                for _ in range(SQUARE_COLUMNS):
                    column, rounded = self._convert(remainder[:, None])
                    low, back = (
                        _load_torch().cat([low, column], dim=1),
                        np.column_stack([back, rounded]),
                    )
                    remainder = remainder - rounded[:, 0]
                away = np.column_stack([away, remainder])
            sizes = (find_longest(vectors) for vectors in (exact, away, back))
            yield FloatRun(start, len(exact), low, *sizes)

    def _convert(self, values: Values) -> tuple[Any, Values]:
        """Converts numbers to bfloat16 on the device.

        Also returns the numbers that these represent, float64.
        """
        torch = _load_torch()
        low = torch.from_numpy(np.ascontiguousarray(values)).to(torch.bfloat16)
        return low.to(self.device), low.double().numpy()

    @cached_property
    def _device_rows(self) -> Any:
        return _load_torch().from_numpy(np.asarray(self.rows.stored)).to(self.device)

    @cached_property
    def _floats(self) -> FloatCodes:
        return FloatCodes(rows=self.rows)


def _load_torch() -> Any:
    return extras.import_library("torch")


def check_device(device: str) -> None:
    """Refuses a device that is not available.

    Raises:
        MissingExtra: torch is not installed.
        ConfigError: torch has no such device here.
    """
    try:
        _load_torch().empty(1, device=device)
        return
    except (RuntimeError, AssertionError):  # torch raises either
        pass
    raise ConfigError(f"table.device {device!r} is not available here")
