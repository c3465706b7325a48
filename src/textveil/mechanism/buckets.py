"""The bucketized exponential rule of Cape: draws a bucket, then a candidate.

In: scores, the nominal epsilon per position. Out: one candidate; the law; its true loss. A bucket
is drawn by its mean score, and all candidates of it are equally likely.
Not here: where scores come from (`utility`).

The paper's bound, epsilon + ln(max|B| / min|B|), misses that words have different numbers of
non-empty buckets, and that these sizes differ from word to word. True, for a fixed context: with N
non-empty buckets, no candidate is less likely than e^(-epsilon/2) / (N |B|), and none is more
likely than 1.
"""

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from textveil.config import make_options
from textveil.errors import BudgetError
from textveil.mechanism.rule import EXPONENT_CAP, LOG_RATIO_ROUNDING, WEIGHT_SCALE
from textveil.mechanism.utility import Hybrid
from textveil.randomness import Draws, Ids, Ints, Values, choose_weighted
from textveil.table import EmbeddingTable, Progress, is_shipped

SMALL_TABLE = 2048
"""Largest number of rows whose exact loss is computed, in seconds."""

NOMINAL_EPSILONS = tuple(np.arange(0, 20.5, 0.5).tolist())
"""Nominal epsilons at which the exact loss is known.

Between them it changes by no more than the nominal epsilon does.
"""

ROWS_AT_ONCE = 256

MAX_CACHE_BYTES = 1 << 26
"""Bytes of bucket numbers that a call holds.

Repeated words are then not scored again.
"""

SLAB_ROWS = 8
"""Rows bucketed at once, so that they stay in a processor's cache."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Buckets:
    """Scores of m rows in N buckets of equal width.

    Attributes:
        number: int16 [m, V], the bucket of each candidate.
        counts: int64 [m, N].
        means: float64 [m, N], the mean score in each bucket that is not empty.
    """

    number: NDArray[np.int16]
    counts: Ids
    means: Values

    @classmethod
    def build(
        cls,
        scores: Values,
        buckets: int,
        ends: tuple[float, float] | None = None,
        multiplicity: Values | None = None,
    ) -> "Buckets":
        """Assigns scores [m, V] to buckets between two ends.

        Without ends: between the smallest and the largest score of each row. `multiplicity` [m, V]
        is the number of candidates that a score represents, where it is not one.
        """
        number = np.empty(scores.shape, np.int16)
        counts = np.empty((len(scores), buckets), np.int64)
        means = np.empty((len(scores), buckets))
        for start in range(0, len(scores), SLAB_ROWS):
            part = slice(start, start + SLAB_ROWS)
            part_scores = scores[part]
            low, high = ends or (
                part_scores.min(axis=1, keepdims=True),
                part_scores.max(axis=1, keepdims=True),
            )
            width = np.asarray(high - low)
            place = part_scores - low
            place *= buckets / np.where(width > 0, width, 1)
            # The largest score lies on the upper end, which belongs to the last bucket.
            which = np.clip(place.astype(np.int64), 0, buckets - 1)
            number[part] = which
            which += np.arange(len(part_scores))[:, None] * buckets
            part_multiplicity = None if multiplicity is None else multiplicity[part]
            bucket_counts = np.bincount(
                which.ravel(),
                part_multiplicity if part_multiplicity is None else part_multiplicity.ravel(),
                len(part_scores) * buckets,
            )
            sums = np.bincount(
                which.ravel(),
                (
                    part_scores if part_multiplicity is None else part_scores * part_multiplicity
                ).ravel(),
                len(part_scores) * buckets,
            )
            # A multiplicity need not be whole, and a bucket of less than one candidate is not
            # empty.
            counts[part] = np.ceil(bucket_counts).reshape(-1, buckets)
            means[part] = (sums / np.where(bucket_counts > 0, bucket_counts, 1)).reshape(
                -1, buckets
            )
        return cls(number=number, counts=counts, means=means)

    @classmethod
    def allocate(cls, rows: int, candidates: int, buckets: int) -> "Buckets":
        """Allocates space for m rows, with undefined content."""
        return cls(
            number=np.empty((rows, candidates), np.int16),
            counts=np.empty((rows, buckets), np.int64),
            means=np.empty((rows, buckets)),
        )

    def put(self, lines: slice, other: "Buckets") -> None:
        """Overwrites some rows by those of another object."""
        self.number[lines], self.counts[lines] = other.number, other.counts
        self.means[lines] = other.means

    def take(self, lines: Ids) -> "Buckets":
        """Returns some of the rows, in any order and with repetitions."""
        return Buckets(
            number=self.number[lines], counts=self.counts[lines], means=self.means[lines]
        )

    def compute_weights(self, rate: Values) -> Ints:
        """Returns ceil(2^50 exp(rate (mean - largest mean))) of each bucket.

        int64 [m, N] from rate [m]; 0 for empty buckets.
        """
        is_filled = self.counts > 0
        top = np.where(is_filled, self.means, -np.inf).max(axis=1, keepdims=True)
        exponent = np.maximum(rate[:, None] * (self.means - top), -EXPONENT_CAP)
        # Only the mean of an empty bucket can be above the top: cut off, so that exp cannot
        # overflow.
        return np.where(
            is_filled, np.ceil(WEIGHT_SCALE * np.exp(np.minimum(exponent, 0.0))), 0
        ).astype(np.int64)

    def log_probs(self, rate: Values) -> Values:
        """Returns ln of a candidate's probability in each bucket, [m, N].

        Minus infinity for empty buckets.
        """
        weights = self.compute_weights(rate).astype(np.float64)
        shares = weights / (weights.sum(axis=1, keepdims=True) * np.maximum(self.counts, 1))
        with np.errstate(divide="ignore"):
            logs: Values = np.log(shares)
        return logs


class BucketCache:
    """Cached buckets of rows where no context counts. Secret.

    Each row is bucketized once; the cache reveals which rows were requested.

    Args:
        rule: cuts.
        table: the candidates.
        utility: a static one.
        max_rows: the largest number of rows held; where there is no space for more, all are
            dropped.
    """

    def __init__(
        self,
        rule: "BucketRule",
        table: EmbeddingTable,
        utility: Hybrid,
        max_rows: int | None = None,
    ) -> None:
        self.rule, self._table, self._utility = rule, table, utility
        self._max_rows = (
            max(1, MAX_CACHE_BYTES // (2 * len(table))) if max_rows is None else max_rows
        )
        self._buckets = Buckets.allocate(0, len(table), rule.buckets)
        self._place = np.full(len(table), -1)
        self._row_count = 0

    def __repr__(self) -> str:
        return f"BucketCache({self._row_count} rows)"

    def get(self, rows: Ids) -> Buckets:
        """Returns the buckets of some rows [m]."""
        distinct_rows = np.unique(rows)
        missing = distinct_rows[self._place[distinct_rows] < 0]
        if self._row_count + len(missing) > len(self._buckets.counts):
            self._make_room(len(missing), len(distinct_rows))
            missing = distinct_rows[self._place[distinct_rows] < 0]
        if len(missing):
            new_lines = slice(self._row_count, self._row_count + len(missing))
            scores = self._utility.score_rows(self._table, missing, None).get_values()
            self._buckets.put(
                new_lines, self.rule.assign_buckets(self._table, self._utility, scores)
            )
            self._place[missing] = np.arange(new_lines.start, new_lines.stop)
            self._row_count = new_lines.stop
        return self._buckets.take(self._place[rows])

    def _make_room(self, missing: int, distinct_count: int) -> None:
        """Doubles the space, up to the limit; then drops all rows."""
        if self._row_count + missing > self._max_rows:
            # This call's rows that were held go, too, so all of its rows are missing now.
            self._row_count, missing = 0, distinct_count
            self._place[:] = -1
        room = min(
            max(2 * len(self._buckets.counts), self._row_count + missing),
            max(self._max_rows, distinct_count),
        )
        if room > len(self._buckets.counts):
            larger = Buckets.allocate(room, len(self._table), self.rule.buckets)
            larger.put(slice(0, self._row_count), self._buckets.take(np.arange(self._row_count)))
            self._buckets = larger


@make_options()
class BucketRule:
    """The rule P(bucket) ~ exp(nominal mean / (2 R)).

    Candidates inside a bucket are equally likely. R is the range that scores can have.

    Args:
        buckets: N_b, of equal width; empty ones are skipped.
        edges: whether they lie between the smallest and the largest score at the position
            (`scores`), or between the smallest and the largest possible score (`public`).
        nominal: the paper's epsilon for all words; without it, it follows from epsilon.

    Source: Cape, section 4.1.2, Algorithms 1 and 2.
    """

    parameter_name: ClassVar[str | None] = "nominal"

    buckets: Annotated[int, Field(ge=1, le=4096, strict=True)] = 50
    edges: Literal["scores", "public"] = "scores"
    nominal: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None

    def assign_buckets(self, table: EmbeddingTable, utility: Hybrid, scores: Values) -> Buckets:
        """Assigns scores [m, V] to buckets."""
        return Buckets.build(
            scores, self.buckets, utility.get_score_range(table) if self.edges == "public" else None
        )

    def compute_loss(self, table: EmbeddingTable, utility: Hybrid, nominal: Values) -> Values:
        """Returns the loss [m] at one position under nominal [m].

        For a fixed context: exact, certified, or a bound.
        """
        bound: Values = np.minimum(nominal / 2, EXPONENT_CAP) + self._compute_max_spread(table)
        curve = self.load_curve(table, utility)
        if curve is not None:
            at, losses = curve
            bound = np.minimum(
                bound, (losses + np.abs(nominal[:, None] - at)).min(axis=1) + LOG_RATIO_ROUNDING
            )
        return bound

    def find_parameter(self, table: EmbeddingTable, utility: Hybrid, epsilon: Values) -> Values:
        """Finds the largest nominal [m] known to cost at most epsilon [m].

        Raises:
            BudgetError: even the nominal epsilon 0 costs more.
        """
        nominal = 2 * (epsilon - self._compute_max_spread(table))
        curve = self.load_curve(table, utility)
        if curve is not None:
            at, losses = curve
            remaining = epsilon[:, None] - LOG_RATIO_ROUNDING - losses
            nominal = np.maximum(
                nominal, np.where(remaining >= 0, at + remaining, -np.inf).max(axis=1)
            )
        if (nominal < 0).any():
            floor = float(self.compute_loss(table, utility, np.zeros(1))[0])
            raise BudgetError(
                f"cape cannot promise less than epsilon {math.ceil(floor * 1000) / 1000:g} at "
                f"a position, whatever its nominal epsilon, got {float(epsilon.min()):.4g}: "
                "raise epsilon, set mechanism.nominal, or take rankcape"
            )
        return nominal

    def _compute_max_spread(self, table: EmbeddingTable) -> float:
        """Returns the largest possible ln(N |B|), with the rounding of weights.

        For N buckets of which one has size |B|.
        """
        bucket_count = min(self.buckets, (len(table) + 1) // 2)  # N (V - N + 1) rises up to here
        return math.log(bucket_count * (len(table) - bucket_count + 1)) + LOG_RATIO_ROUNDING

    def load_curve(self, table: EmbeddingTable, utility: Hybrid) -> tuple[Values, Values] | None:
        """Returns nominal epsilons [g] with their true losses [g], without context.

        None where these are not known.
        """
        return _load_curve(table, utility, self) if utility.static else None

    def compute_rate(self, table: EmbeddingTable, utility: Hybrid, nominal: Values) -> Values:
        """Returns the factor of scores: nominal / (2 R)."""
        low, high = utility.get_score_range(table)
        return nominal / (2 * (high - low)) if high > low else np.zeros_like(nominal)

    def compute_paper_bound(
        self, table: EmbeddingTable, utility: Hybrid, nominal: Values
    ) -> Values | None:
        """Returns the paper's bound, epsilon + ln(max|B| / min|B|).

        Only for a small table and a static utility; else None.
        """
        if not (utility.static and len(table) <= SMALL_TABLE):
            return None
        counts = self.assign_buckets(
            table, utility, utility.score_rows(table, np.arange(len(table)), None).get_values()
        ).counts
        bounds: Values = nominal + math.log(counts.max() / counts[counts > 0].min())
        return bounds

    def draw(self, draws: Draws, cut: Buckets, rate: Values) -> Ids:
        """Draws one candidate for each row."""
        bucket = choose_weighted(draws, cut.compute_weights(rate))
        sizes = cut.counts[np.arange(len(bucket)), bucket]
        place = draws.integers(sizes)
        inside = np.flatnonzero(cut.number == bucket.astype(np.int16)[:, None])  # row after row
        candidates: Ids = inside[np.cumsum(sizes) - sizes + place] % cut.number.shape[1]
        return candidates

    def log_probs(self, cut: Buckets, rate: Values) -> Values:
        """Returns ln P(candidate) [m, V]."""
        return np.take_along_axis(cut.log_probs(rate), cut.number, axis=1)


def compute_losses(
    table: EmbeddingTable,
    utility: Hybrid,
    rule: BucketRule,
    nominals: Values,
    *,
    progress: Progress | None = None,
) -> Values:
    """Computes the exact loss [g] of a static utility on a table.

    For nominal epsilons [g], with V^2 work for each. It is the largest ln P(y | x) - ln P(y | x')
    over all words x, x' and outputs y.
    """
    high = np.full((len(nominals), len(table)), -np.inf)
    low = -high
    rates = rule.compute_rate(table, utility, nominals)
    for start in range(0, len(table), ROWS_AT_ONCE):
        if progress is not None:
            progress(start, len(table))
        rows = np.arange(start, min(start + ROWS_AT_ONCE, len(table)))
        cut = rule.assign_buckets(
            table, utility, utility.score_rows(table, rows, None).get_values()
        )
        number = cut.number.astype(np.int64)
        for g, rate in enumerate(rates):
            law = np.take_along_axis(cut.log_probs(np.full(len(rows), rate)), number, axis=1)
            np.maximum(high[g], law.max(axis=0), out=high[g])
            np.minimum(low[g], law.min(axis=0), out=low[g])
    worst: Values = (high - low).max(axis=1)
    return worst


@lru_cache(maxsize=16)
def _load_curve(
    table: EmbeddingTable, utility: Hybrid, rule: BucketRule
) -> tuple[Values, Values] | None:
    if len(table) <= SMALL_TABLE:
        at = np.array(
            sorted({*NOMINAL_EPSILONS, *([] if rule.nominal is None else [rule.nominal])})
        )
        return at, compute_losses(table, utility, rule, at) * (1 + 1e-9)
    stored = (
        _read_stored().get(build_constant_key(table, utility, rule)) if is_shipped(table) else None
    )
    return None if stored is None else (np.array(stored["nominal"]), np.array(stored["loss"]))


def build_constant_key(table: EmbeddingTable, utility: Hybrid, rule: BucketRule) -> str:
    """Returns the name of the stored losses for a table's options."""
    utility_name = f"{utility.distance} {utility.form} lambda_D={utility.lambda_D!r}"
    return f"{table.name} {utility_name} buckets={rule.buckets} edges={rule.edges}"


@lru_cache(maxsize=1)
def _read_stored() -> dict[str, dict[str, list[float]]]:
    source = files("textveil") / "data" / "constants" / "cape.json"
    curves: dict[str, dict[str, list[float]]] = json.loads(source.read_text(encoding="utf-8"))
    return curves
