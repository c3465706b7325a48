"""The bucketized exponential rule of Cape: a bucket by its mean score, then a candidate of it, each as likely.

In: scores, the nominal epsilon per position. Out: one candidate; the law; what it really loses.
Not here: where scores come from (`utility`).

The paper's bound, epsilon + ln(max|B| / min|B|), misses that words have different numbers of non-empty buckets, and
that these sizes differ from word to word. True, for a fixed context: with N non-empty buckets, no candidate is less
likely than e^(-epsilon/2) / (N |B|), and none is more likely than 1.
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

from textveil.config import options
from textveil.errors import BudgetError
from textveil.mechanism.rule import EXPONENT_CAP, ROUNDING, SCALE
from textveil.mechanism.utility import Hybrid
from textveil.randomness import Draws, Ids, Ints, Values, weighted_choice
from textveil.table import EmbeddingTable, Progress, ships

SMALL_TABLE = 2048
"""Up to this many rows the exact loss is computed, in seconds."""

NOMINALS = tuple(np.arange(0, 20.5, 0.5).tolist())
"""Where the exact loss is known; between, it changes by no more than the nominal epsilon does."""

PART = 256

HELD = 1 << 26
"""Bytes of bucket numbers that a call holds, so that words that come again are not scored again."""

SLAB = 8
"""Rows that are cut at once: their numbers stay in a processor's own cache."""


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
    def of(
        cls,
        scores: Values,
        buckets: int,
        ends: tuple[float, float] | None = None,
        counted: Values | None = None,
    ) -> "Buckets":
        """Cuts scores [m, V] between two ends; None: between the smallest and the largest of each row.

        `counted` [m, V] is how many candidates a score stands for, where it is not one.
        """
        number = np.empty(scores.shape, np.int16)
        counts = np.empty((len(scores), buckets), np.int64)
        means = np.empty((len(scores), buckets))
        for start in range(0, len(scores), SLAB):
            part = slice(start, start + SLAB)
            own = scores[part]
            low, high = ends or (own.min(axis=1, keepdims=True), own.max(axis=1, keepdims=True))
            width = np.asarray(high - low)
            place = own - low
            place *= buckets / np.where(width > 0, width, 1)
            which = np.clip(place.astype(np.int64), 0, buckets - 1)
            number[part] = which
            which += np.arange(len(own))[:, None] * buckets
            each = None if counted is None else counted[part]
            many = np.bincount(
                which.ravel(), each if each is None else each.ravel(), len(own) * buckets
            )
            sums = np.bincount(
                which.ravel(), (own if each is None else own * each).ravel(), len(own) * buckets
            )
            counts[part] = np.ceil(many).reshape(-1, buckets)
            means[part] = (sums / np.where(many > 0, many, 1)).reshape(-1, buckets)
        return cls(number=number, counts=counts, means=means)

    @classmethod
    def room(cls, rows: int, candidates: int, buckets: int) -> "Buckets":
        """Room for m rows, with anything in it."""
        return cls(
            number=np.empty((rows, candidates), np.int16),
            counts=np.empty((rows, buckets), np.int64),
            means=np.empty((rows, buckets)),
        )

    def put(self, lines: slice, other: "Buckets") -> None:
        """Puts other rows in the place of some."""
        self.number[lines], self.counts[lines] = other.number, other.counts
        self.means[lines] = other.means

    def take(self, lines: Ids) -> "Buckets":
        """Some of the rows, in any order, and as often as wanted."""
        return Buckets(
            number=self.number[lines], counts=self.counts[lines], means=self.means[lines]
        )

    def weights(self, rate: Values) -> Ints:
        """ceil(2^50 exp(rate (mean - largest mean))), 0 for empty buckets, int64 [m, N], from rate [m]."""
        full = self.counts > 0
        top = np.where(full, self.means, -np.inf).max(axis=1, keepdims=True)
        exponent = np.maximum(rate[:, None] * (self.means - top), -EXPONENT_CAP)
        return np.where(full, np.ceil(SCALE * np.exp(np.minimum(exponent, 0.0))), 0).astype(
            np.int64
        )

    def log_probs(self, rate: Values) -> Values:
        """ln of a candidate's probability in each bucket, [m, N]; minus infinity where there is none."""
        weights = self.weights(rate).astype(np.float64)
        shares = weights / (weights.sum(axis=1, keepdims=True) * np.maximum(self.counts, 1))
        with np.errstate(divide="ignore"):
            logs: Values = np.log(shares)
        return logs


class KnownCuts:
    """The buckets of rows where no context counts, each row cut once. Secret: it tells which rows were asked for.

    Args:
        rule: cuts.
        table: the candidates.
        utility: a static one.
        most: how many rows are held; where there is no room for more, all are forgotten.
    """

    def __init__(
        self, rule: "Bucketized", table: EmbeddingTable, utility: Hybrid, most: int | None = None
    ) -> None:
        self.rule, self._table, self._utility = rule, table, utility
        self._most = max(1, HELD // (2 * len(table))) if most is None else most
        self._cut = Buckets.room(0, len(table), rule.buckets)
        self._place = np.full(len(table), -1)
        self._held = 0

    def __repr__(self) -> str:
        return f"KnownCuts({self._held} rows)"

    def of(self, rows: Ids) -> Buckets:
        """The buckets of some rows [m]."""
        asked = np.unique(rows)
        missing = asked[self._place[asked] < 0]
        if self._held + len(missing) > len(self._cut.counts):
            self._make_room(len(missing), len(asked))
            missing = asked[self._place[asked] < 0]
        if len(missing):
            own = slice(self._held, self._held + len(missing))
            scores = self._utility.given(self._table, missing, None).values()
            self._cut.put(own, self.rule.cut(self._table, self._utility, scores))
            self._place[missing] = np.arange(own.start, own.stop)
            self._held = own.stop
        return self._cut.take(self._place[rows])

    def _make_room(self, missing: int, asked: int) -> None:
        """Twice the room, or as much as there may be; then everything is forgotten."""
        if self._held + missing > self._most:
            self._held, missing = 0, asked
            self._place[:] = -1
        room = min(max(2 * len(self._cut.counts), self._held + missing), max(self._most, asked))
        if room > len(self._cut.counts):
            more = Buckets.room(room, len(self._table), self.rule.buckets)
            more.put(slice(0, self._held), self._cut.take(np.arange(self._held)))
            self._cut = more


@options()
class Bucketized:
    """P(bucket) proportional to exp(nominal mean / (2 R)), R the range that scores can have; uniform inside a bucket.

    Args:
        buckets: N_b, of equal width; empty ones are skipped.
        edges: whether they lie between the smallest and the largest score at the position (`scores`), or between the
            smallest and the largest that there can be (`public`).
        nominal: the paper's epsilon for all words; without it, it follows from epsilon.

    Source: Cape, section 4.1.2, Algorithms 1 and 2.
    """

    parameter_name: ClassVar[str | None] = "nominal"

    buckets: Annotated[int, Field(ge=1, le=4096, strict=True)] = 50
    edges: Literal["scores", "public"] = "scores"
    nominal: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None

    def cut(self, table: EmbeddingTable, utility: Hybrid, scores: Values) -> Buckets:
        """Scores [m, V] in buckets."""
        return Buckets.of(
            scores, self.buckets, utility.ends(table) if self.edges == "public" else None
        )

    def constant(self, table: EmbeddingTable, utility: Hybrid, nominal: Values) -> Values:
        """The loss [m] at one position under nominal [m], its context being fixed: exact, certified, or a bound."""
        bound: Values = np.minimum(nominal / 2, EXPONENT_CAP) + self._spread(table)
        curve = self.curve(table, utility)
        if curve is not None:
            at, losses = curve
            bound = np.minimum(
                bound, (losses + np.abs(nominal[:, None] - at)).min(axis=1) + ROUNDING
            )
        return bound

    def parameter(self, table: EmbeddingTable, utility: Hybrid, epsilon: Values) -> Values:
        """The largest nominal [m] known to cost no more than epsilon [m].

        Raises:
            BudgetError: even the nominal epsilon 0 costs more.
        """
        nominal = 2 * (epsilon - self._spread(table))
        curve = self.curve(table, utility)
        if curve is not None:
            at, losses = curve
            left = epsilon[:, None] - ROUNDING - losses
            nominal = np.maximum(nominal, np.where(left >= 0, at + left, -np.inf).max(axis=1))
        if (nominal < 0).any():
            floor = float(self.constant(table, utility, np.zeros(1))[0])
            raise BudgetError(
                f"cape cannot promise less than epsilon {math.ceil(floor * 1000) / 1000:g} at a position, whatever its "
                f"nominal epsilon, and has {float(epsilon.min()):.4g}: raise epsilon, set mechanism.nominal, or take "
                "rankcape"
            )
        return nominal

    def _spread(self, table: EmbeddingTable) -> float:
        """The largest ln(N |B|) that there can be, N buckets and one of size |B|; and the rounding of weights."""
        most = min(self.buckets, (len(table) + 1) // 2)  # N (V - N + 1) rises up to here
        return math.log(most * (len(table) - most + 1)) + ROUNDING

    def curve(self, table: EmbeddingTable, utility: Hybrid) -> tuple[Values, Values] | None:
        """Without context: nominal epsilons [g], and what they really cost [g]; None where that is not known."""
        return _curve(table, utility, self) if utility.static else None

    def rate(self, table: EmbeddingTable, utility: Hybrid, nominal: Values) -> Values:
        """What a score is multiplied by: nominal / (2 R)."""
        low, high = utility.ends(table)
        return nominal / (2 * (high - low)) if high > low else np.zeros_like(nominal)

    def published(self, table: EmbeddingTable, utility: Hybrid, nominal: Values) -> Values | None:
        """The paper's bound, epsilon + ln(max|B| / min|B|), for a small table and a static utility."""
        if not (utility.static and len(table) <= SMALL_TABLE):
            return None
        counts = self.cut(
            table, utility, utility.given(table, np.arange(len(table)), None).values()
        ).counts
        found: Values = nominal + math.log(counts.max() / counts[counts > 0].min())
        return found

    def draw(self, draws: Draws, cut: Buckets, rate: Values) -> Ids:
        """One candidate for each row."""
        bucket = weighted_choice(draws, cut.weights(rate))
        sizes = cut.counts[np.arange(len(bucket)), bucket]
        place = draws.integers(sizes)
        inside = np.flatnonzero(cut.number == bucket.astype(np.int16)[:, None])  # row after row
        found: Ids = inside[np.cumsum(sizes) - sizes + place] % cut.number.shape[1]
        return found

    def log_probs(self, cut: Buckets, rate: Values) -> Values:
        """ln P(candidate) [m, V]."""
        return np.take_along_axis(cut.log_probs(rate), cut.number, axis=1)


def losses(
    table: EmbeddingTable,
    utility: Hybrid,
    rule: Bucketized,
    nominals: Values,
    *,
    progress: Progress | None = None,
) -> Values:
    """The exact loss [g] of a static utility on a table, for nominal epsilons [g]; V^2 work for each.

    The largest ln P(y | x) - ln P(y | x') over all words x, x' and outputs y.
    """
    high = np.full((len(nominals), len(table)), -np.inf)
    low = -high
    rates = rule.rate(table, utility, nominals)
    for start in range(0, len(table), PART):
        if progress is not None:
            progress(start, len(table))
        rows = np.arange(start, min(start + PART, len(table)))
        cut = rule.cut(table, utility, utility.given(table, rows, None).values())
        number = cut.number.astype(np.int64)
        for g, rate in enumerate(rates):
            law = np.take_along_axis(cut.log_probs(np.full(len(rows), rate)), number, axis=1)
            np.maximum(high[g], law.max(axis=0), out=high[g])
            np.minimum(low[g], law.min(axis=0), out=low[g])
    worst: Values = (high - low).max(axis=1)
    return worst


@lru_cache(maxsize=16)
def _curve(
    table: EmbeddingTable, utility: Hybrid, rule: Bucketized
) -> tuple[Values, Values] | None:
    if len(table) <= SMALL_TABLE:
        at = np.array(sorted({*NOMINALS, *([] if rule.nominal is None else [rule.nominal])}))
        return at, losses(table, utility, rule, at) * (1 + 1e-9)
    found = _stored().get(key(table, utility, rule)) if ships(table) else None
    return None if found is None else (np.array(found["nominal"]), np.array(found["loss"]))


def key(table: EmbeddingTable, utility: Hybrid, rule: Bucketized) -> str:
    """What the stored losses of a table and its options are called."""
    scored = f"{utility.distance} {utility.form} lambda_D={utility.lambda_D!r}"
    return f"{table.name} {scored} buckets={rule.buckets} edges={rule.edges}"


@lru_cache(maxsize=1)
def _stored() -> dict[str, dict[str, list[float]]]:
    source = files("textveil") / "data" / "constants" / "cape.json"
    found: dict[str, dict[str, list[float]]] = json.loads(source.read_text(encoding="utf-8"))
    return found
