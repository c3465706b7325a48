"""Cells: randomizes codes and counts of whole texts, exactly and for all rows at once.

In: integer codes or counts, one epsilon, draws. Out: drawn codes, drawn sets of codes, noisy counts.
Not here: which text has which code (`library`), and what statements say (`guarantee`).

Nothing here draws in floating point. Codes are drawn by two integer weights, `TRUE_WEIGHT` and
another that is rounded up, so that their ratio is never above exp(epsilon).
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import cache, cached_property

import numpy as np

from textveil.config import convert_number
from textveil.errors import BudgetError, ConfigError
from textveil.protect import MAX_BUDGET, MIN_BUDGET
from textveil.randomness import Draws, Flags, Ids, Ints, Values, discrete_laplace

TRUE_WEIGHT = 1 << 46
"""Weight of the true code, or of a set that holds it; the others have at most as much."""

MAX_CODES = 1 << 16
"""Largest number of codes: their weights sum to at most 2^62."""

MAX_COUNT = 1 << 53
"""Largest count that is taken, exact in JSON and far from the end of an int64."""

MAX_DOCUMENTS = 10_000
"""Largest number of documents counted of one subject: larger scales cannot be drawn exactly."""

SCALE_STEPS = 1 << 20
"""The scale of the noise is a multiple of one part in these."""

_DIGITS = 60


@dataclass(frozen=True)
class _WeighedCodes:
    """Weighs the true code, or sets that hold it, with exp(epsilon), and all others with 1."""

    codes: int
    epsilon: float

    def __post_init__(self) -> None:
        _check_codes(self.codes)
        _check_epsilon(self.epsilon)

    @property
    def other_weight(self) -> int:
        """The integer weight of what is not true, beside `TRUE_WEIGHT`."""
        return compute_other_weight(float(self.epsilon))

    @property
    def loss(self) -> float:
        """The logarithm of the ratio of the weights, at most epsilon."""
        return compute_weight_loss(float(self.epsilon))


@dataclass(frozen=True)
class RandomizedResponse(_WeighedCodes):
    """Releases the true code or another: k-ary randomised response.

    The true code has weight exp(epsilon), each of the others weight 1; both as integers. Local DP
    of `loss` for whatever the code is a function of.

    Args:
        codes: K, how many codes there are, 2 to 65,536.
        epsilon: 1e-6 to 1e6.

    Raises:
        ConfigError: the number of codes is out of range.
        BudgetError: epsilon is out of range.

    Source: Kairouz, Oh and Viswanath, "Extremal Mechanisms for Local Differential Privacy", 2016.
    """

    @property
    def total_weight(self) -> int:
        """The weight of all codes together."""
        return TRUE_WEIGHT + (self.codes - 1) * self.other_weight

    @property
    def true_rate(self) -> float:
        """The probability that the true code is drawn."""
        return TRUE_WEIGHT / self.total_weight

    def law(self) -> Values:
        """Returns P(drawn | true) of the integer weights, float64 [K, K]."""
        law = np.full((self.codes, self.codes), self.other_weight / self.total_weight)
        np.fill_diagonal(law, self.true_rate)
        return law

    def draw(self, draws: Draws, codes: Ids) -> Ids:
        """Draws a code for each row.

        Args:
            draws: m rows.
            codes: int64 [m], the true ones.

        Returns:
            int64 [m].
        """
        _check_rows(draws, codes, self.codes)
        place = draws.integers(np.full(draws.size, self.total_weight, np.int64)) - TRUE_WEIGHT
        drawn: Ids = np.where(place < 0, codes, _skip_code(place // self.other_weight, codes))
        return drawn


@dataclass(frozen=True)
class SubsetSelection(_WeighedCodes):
    """Releases a set of codes, which likely holds the true one.

    Every set of `size` codes that holds the true code has weight exp(epsilon), every other one
    weight 1; both as integers. Local DP of `loss`. Histograms are estimated from the sets without
    bias, and with less noise than from single codes where exp(epsilon) is below the number of
    codes.

    Args:
        codes: K, how many codes there are, 2 to 65,536.
        epsilon: 1e-6 to 1e6.

    Raises:
        ConfigError: the number of codes is out of range.
        BudgetError: epsilon is out of range.

    Source: Ye and Barg, "Optimal Schemes for Discrete Distribution Estimation under Locally
    Differential Privacy", 2018.
    """

    @cached_property
    def size(self) -> int:
        """How many codes a set has: K / (1 + exp(epsilon)), rounded, at least 1."""
        return max(1, round(self.codes / (1 + math.exp(min(self.epsilon, 700.0)))))

    @cached_property
    def hold_rate(self) -> Fraction:
        """The probability that a set holds the true code: the p of the estimate."""
        # sets with the code are to sets without it as `size` to the rest of the codes
        held = self.size * TRUE_WEIGHT
        return Fraction(held, held + (self.codes - self.size) * self.other_weight)

    @cached_property
    def other_rate(self) -> Fraction:
        """The probability that a set holds another given code: q."""
        return (self.size - self.hold_rate) / (self.codes - 1)

    def draw(self, draws: Draws, codes: Ids) -> Flags:
        """Draws a set of codes for each row.

        Args:
            draws: m rows.
            codes: int64 [m], the true ones.

        Returns:
            bool [m, K], `size` of them true in each row.
        """
        _check_rows(draws, codes, self.codes)
        rows, size, others = np.arange(draws.size), self.size, self.codes - 1
        held = self.hold_rate.numerator, self.hold_rate.denominator
        is_held = draws.integers(np.full(draws.size, held[1], np.int64)) < held[0]
        chosen = np.zeros((draws.size, self.codes), np.bool_)
        chosen[rows, codes] = is_held
        # Floyd's algorithm: in turn, a place up to `last`, or `last` itself if that one is taken.
        for last in range(others - size, others):
            place = _skip_code(draws.integers(np.full(draws.size, last + 1, np.int64)), codes)
            place = np.where(chosen[rows, place], _skip_code(np.int64(last), codes), place)
            # A set with the true code has one place less; all rows draw it, for time must not tell.
            chosen[rows, place] |= ~is_held if last == others - size else True
        return chosen

    def estimate(self, tally: Ints, reports: int) -> Values:
        """Estimates without bias how often each code is the true one.

        Args:
            tally: [K], how many sets hold each code.
            reports: how many sets there are.

        Returns:
            float64 [K], some of them below 0.
        """
        if np.shape(tally) != (self.codes,):
            raise ConfigError(f"a tally must have {self.codes} counts, one for each code")
        difference = float(self.hold_rate - self.other_rate)
        return (np.asarray(tally, np.float64) - reports * float(self.other_rate)) / difference

    def compute_variance(self, reports: int) -> float:
        """Computes the variance of the estimate for a rare code: n q (1 - q) / (p - q)^2."""
        rate, difference = self.other_rate, self.hold_rate - self.other_rate
        return float(reports * rate * (1 - rate) / difference**2)


@dataclass(frozen=True)
class NoisyCount:
    """Adds discrete Laplace noise to every count of a public list.

    Differential privacy of `loss` if one subject, with at most `per_subject` documents among the
    counts, is added or removed; of twice that if it is replaced by another.

    Args:
        epsilon: 1e-6 to 1e6, for one subject.
        per_subject: how many documents of one subject are counted at most, 1 to 10,000.

    Raises:
        BudgetError: epsilon is out of range.
        ConfigError: `per_subject` is out of range.

    Source: Ghosh, Roughgarden and Sundararajan, "Universally Utility-Maximizing Privacy
    Mechanisms", 2012.
    """

    epsilon: float
    per_subject: int = 1

    def __post_init__(self) -> None:
        _check_epsilon(self.epsilon)
        if not _is_whole(self.per_subject) or not 1 <= self.per_subject <= MAX_DOCUMENTS:
            raise ConfigError(
                f"the documents counted of one subject must be a whole number from 1 to "
                f"{MAX_DOCUMENTS}"
            )

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the noise, rounded up: at least `per_subject` / epsilon."""
        steps = math.ceil(SCALE_STEPS * self.per_subject / Fraction(float(self.epsilon)))
        return Fraction(steps, SCALE_STEPS)

    @property
    def loss(self) -> float:
        """The loss for one subject added or removed, rounded up, at most epsilon."""
        return _round_up(self.per_subject / self.scale)

    @property
    def variance(self) -> float:
        """The variance of the noise: 2a / (1 - a)^2, where a = exp(-1 / scale)."""
        ratio = math.exp(-float(1 / self.scale))
        return 2 * ratio / (1 - ratio) ** 2

    def log_probs(self, noise: Ints) -> Values:
        """Returns ln P of these values of the noise, float64 of their shape."""
        rate = float(1 / self.scale)
        return math.log(math.tanh(rate / 2)) - np.abs(noise) * rate

    def draw(self, draws: Draws, counts: Ints) -> Ints:
        """Draws a noisy count for every bin, also for the empty ones.

        Args:
            draws: one row for each bin.
            counts: int64 [bins], 0 to 2^53, of a list of bins that is public.

        Returns:
            int64 [bins], some of them below 0.
        """
        _check_rows(draws, counts, MAX_COUNT + 1)
        return counts + discrete_laplace(draws, self.scale)


@cache
def compute_other_weight(epsilon: float) -> int:
    """Returns the least weight with TRUE_WEIGHT / weight <= exp(epsilon).

    In decimals of 60 digits: no rounding of an exponential can make it smaller.
    """
    with localcontext(Context(prec=_DIGITS, rounding=ROUND_CEILING)):
        smallest = Decimal(-epsilon).exp().next_plus() * TRUE_WEIGHT
        return int(smallest.to_integral_value(ROUND_CEILING))


@cache
def compute_weight_loss(epsilon: float) -> float:
    """Returns ln(TRUE_WEIGHT / other weight), rounded up, at most epsilon."""
    with localcontext(Context(prec=_DIGITS, rounding=ROUND_CEILING)):
        log_ratio = (Decimal(TRUE_WEIGHT) / compute_other_weight(epsilon)).ln().next_plus()
    return min(_round_up(Fraction(log_ratio)), epsilon)


def _round_up(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _skip_code(places: Ids | np.int64, codes: Ids) -> Ids:
    """Maps places 0 to K - 2 to the codes other than the true one [m]."""
    skipped: Ids = places + (places >= codes)
    return skipped


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _check_codes(codes: int) -> None:
    if not _is_whole(codes) or not 2 <= codes <= MAX_CODES:
        raise ConfigError(
            f"the number of codes (labels times cells) must be a whole number from 2 to {MAX_CODES}"
        )


def _check_epsilon(epsilon: float) -> None:
    value = convert_number(epsilon, "epsilon")
    if not MIN_BUDGET <= value <= MAX_BUDGET:  # false for NaN
        raise BudgetError(
            f"epsilon must be a number from {MIN_BUDGET:g} to {MAX_BUDGET:g}, got {value:g}"
        )


def _check_rows(draws: Draws, values: Ints, limit: int) -> None:
    """Refuses values that are not one integer per row, below the limit."""
    if values.shape != (draws.size,) or values.dtype != np.int64:
        raise ConfigError(
            f"codes and counts must be {draws.size} int64 values, one per row; got {values.dtype} "
            f"of shape {values.shape}"
        )
    if ((values < 0) | (values >= limit)).any():
        raise ConfigError(f"codes and counts must be from 0 to {limit - 1}, and one is not")
