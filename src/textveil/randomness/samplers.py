"""Samplers: noise, directions and exact choices, for all rows at once.

In: `Draws` of m rows and a parameter for each. Out: values [m, d], integers or columns [m]. Noise
is on vectors and integers, directions are on the sphere, choices are by weight.
Not here: where the draws come from (`streams`), and the parameter that a budget allows
(`mechanism.noise`).
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from textveil.errors import BudgetError, ConfigError
from textveil.randomness.arrays import Flags, Ints, Values
from textveil.randomness.streams import Draws

__all__ = [
    "LARGEST_RATIO",
    "choose_weighted",
    "coordinate_laplace",
    "discrete_laplace",
    "mean_resultant_length",
    "multivariate_laplace",
    "von_mises_fisher",
]

LARGEST_RATIO = 2**55
"""Largest numerator and denominator of a discrete scale.

Sums stay in an int64 unless a coin of 1/e is heads 255 times.
"""

_LIMB = np.int64(32)  # two limbs of 32 bits hold sums that an int64 cannot
_LOW = np.int64(2**32 - 1)
_BLOCK_COLUMNS = 256  # 256 weights of at most 2^50 sum to at most 2^58
_MAX_WEIGHT = 2**50
# A weight times a count is at most 2^81, and the high limbs of 4,096 of them fit an int64.
_MAX_COUNT, _MAX_COUNT_COLUMNS = 2**31 - 1, 4096
_MIN_SCALE = 1e-100  # outside 1e-100 to 1e100, squared distances to a noisy vector would overflow
_PROPOSALS = 4  # two in three are accepted, so one row in 81 needs a second round


def multivariate_laplace(draws: Draws, eta: ArrayLike, dimension: int) -> Values:
    """Draws noise with density proportional to exp(-eta * ||x||).

    It is a gamma radius times a uniform direction. Added to vectors, it gives metric differential
    privacy of eta per unit of Euclidean distance.

    Args:
        draws: m rows.
        eta: [m] or one value for all rows; 1e-100 to 1e100.
        dimension: d, 1 or more.

    Returns:
        [m, d] float64.

    Raises:
        BudgetError: an eta is out of range.

    Source: Feyisetan et al., "Privacy- and Utility-Preserving Textual Analysis via Calibrated
    Multivariate Perturbations", WSDM 2020, section 2.6.
    """
    eta = _broadcast_values(draws, eta, "eta", minimum=_MIN_SCALE, maximum=1.0 / _MIN_SCALE)
    noise = _draw_directions(draws, dimension)
    noise *= (draws.gamma(dimension) / eta)[:, None]
    return noise


def coordinate_laplace(draws: Draws, scale: ArrayLike, dimension: int) -> Values:
    """Draws noise with independent Laplace coordinates.

    Its density is proportional to exp(-||x||_1 / scale).

    Args:
        draws: m rows.
        scale: [m] or one value for all rows; 1e-100 to 1e100.
        dimension: d, 1 or more.

    Returns:
        [m, d] float64.

    Raises:
        BudgetError: a scale is out of range.
    """
    scale = _broadcast_values(draws, scale, "scale", minimum=_MIN_SCALE, maximum=1.0 / _MIN_SCALE)
    noise = draws.laplace(dimension)
    noise *= scale[:, None]
    return noise


def discrete_laplace(draws: Draws, scale: Fraction | Sequence[Fraction]) -> Ints:
    """Draws integers from the discrete Laplace distribution, exactly.

    k has probability (e - 1) / (e + 1) * e^-|k|, for e in place of exp(1 / scale). Uses uniform
    integers only, no floating point. Added to integers, it gives metric differential privacy of 1 /
    scale per unit. The standard deviation is close to 1.41 * scale for large scales.

    Args:
        draws: m rows.
        scale: one value for all rows or m of them, above 0; numerator and denominator at most 2^55.

    Returns:
        [m] int64.

    Raises:
        BudgetError: a scale is out of range.
        ConfigError: there are not as many scales as rows.

    Source: Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS
    2020, Algorithm 2 (arXiv:2004.00010).
    """
    scales = [scale] * draws.size if isinstance(scale, Fraction) else list(scale)
    if len(scales) != draws.size:
        raise ConfigError(
            f"scale must be one value or {draws.size}, one per row; got {len(scales)}"
        )
    if not all(value > 0 and max(value.as_integer_ratio()) <= LARGEST_RATIO for value in scales):
        raise BudgetError(
            "scales must be above 0, with numerators and denominators of at most 2^55; round the "
            "budget"
        )
    upper = np.array([value.numerator for value in scales], np.int64)
    lower = np.array([value.denominator for value in scales], np.int64)
    return _draw_discrete(draws, upper, lower)


def _draw_discrete(draws: Draws, upper: Ints, lower: Ints) -> Ints:
    """Draws `discrete_laplace` for scales upper / lower, [m] each."""
    if draws.size == 0:
        return np.zeros(0, np.int64)
    remainder = draws.integers(upper)
    is_accepted = _toss_coin(draws, remainder, upper)
    # geometric: heads of a coin of 1 / e before the first tails
    quotient = np.zeros(draws.size, np.int64)
    active = np.ones(draws.size, np.bool_)
    ones = np.ones(draws.size, np.int64)
    while active.any():
        active[active] = _toss_coin(draws.select(active), ones[active], ones[active])
        quotient += active
    size = (remainder + upper * quotient) // lower
    is_negative = draws.integers(2 * ones) == 1
    result = np.where(is_negative, -size, size)
    retry = ~is_accepted | (is_negative & (size == 0))  # else 0 would come twice
    if retry.any():
        result[retry] = _draw_discrete(draws.select(retry), upper[retry], lower[retry])
    return result


def _toss_coin(draws: Draws, upper: Ints, lower: Ints) -> Flags:
    """Tosses coins with heads of probability exactly exp(-upper / lower).

    For 0 <= upper <= lower (Algorithm 1 of the same paper).
    """
    heads = np.ones(draws.size, np.bool_)
    active = np.ones(draws.size, np.bool_)
    k = 1
    while active.any():
        part = draws.select(active)
        # upper / (lower * k) as a product, which does not overflow
        hit = (part.integers(lower[active]) < upper[active]) & (
            part.integers(np.full(part.size, k)) == 0
        )
        active[active] = hit
        # Heads after an even number of hits, because the series of exp(-x) alternates.
        heads[active] = ~heads[active]
        k += 1
    return heads


def von_mises_fisher(draws: Draws, mean: Values, kappa: ArrayLike) -> Values:
    """Draws unit vectors with density proportional to exp(kappa * <x, mean>).

    On the sphere. Uses Wood's rejection sampler for the cosine, in terms of 1 - cosine so that a
    large kappa keeps its precision, and a uniform tangent direction. All rows are drawn at once.

    Args:
        draws: m rows.
        mean: [m, d] rows of norm 1 (within 1e-6), d of 2 or more.
        kappa: [m] or one value for all rows; from 0 (uniform) to 1e100.

    Returns:
        [m, d] float64, rows of norm 1.

    Raises:
        BudgetError: a kappa is out of range.
        ConfigError: `mean` has another shape, or its rows do not have norm 1.

    Source: Wood, "Simulation of the von Mises Fisher distribution", Communications in Statistics 23
    (1994).
    """
    kappa = _broadcast_values(draws, kappa, "kappa", minimum=0.0, maximum=1.0 / _MIN_SCALE)
    mean = _normalize(draws, mean)
    versine = _draw_versines(draws, mean.shape[1], kappa)
    sample = _draw_directions(draws, mean.shape[1], normals=mean)
    # The sine, as (1 - cos)(1 + cos): 1 - cos^2 would cancel where kappa is large.
    sample *= np.sqrt(versine * (2.0 - versine))[:, None]
    sample += (1.0 - versine)[:, None] * mean
    sample /= np.sqrt(_multiply_rows(sample, sample))[:, None]
    return sample


def _draw_versines(draws: Draws, dimension: int, kappa: Values) -> Values:
    """Draws 1 - cosine of the angle to the mean direction, [m].

    By Wood's rejection sampler. Wood's proposal is w = (1 - (1 + b) z) / (1 - (1 - b) z) with z ~
    Beta((d-1)/2, (d-1)/2). With z as a ratio of gammas x / (x + y), 1 - w = 2 b x / (y + b x): no
    cancellation.
    """
    order = dimension - 1.0
    b = (order / (2.0 * kappa + np.hypot(2.0 * kappa, order)))[:, None]
    x, y = draws.gamma(order / 2.0, _PROPOSALS), draws.gamma(order / 2.0, _PROPOSALS)
    mixed = y + b * x
    versine = 2.0 * b * (x / mixed)
    log_ratio = kappa[:, None] * (2.0 * b / (1.0 + b) - versine)
    log_ratio += order * np.log((1.0 + b) * (x + y) / (2.0 * mixed))
    # The same number of proposals for each row: how much a document draws must not depend on its
    # neighbours.
    is_accepted = -draws.exponential(_PROPOSALS) <= log_ratio
    result: Values = versine[np.arange(draws.size), is_accepted.argmax(axis=1)]
    retry = ~np.asarray(is_accepted.any(axis=1))
    if retry.any():
        result[retry] = _draw_versines(draws.select(retry), dimension, kappa[retry])
    return result


def _draw_directions(draws: Draws, dimension: int, normals: Values | None = None) -> Values:
    """Draws unit vectors [m, d], uniform on the sphere.

    Or on its part orthogonal to the rows of `normals`.
    """
    if dimension < 1:
        raise ConfigError(f"the dimension must be 1 or more, got {dimension}; check the table")
    vectors = draws.normal(dimension)
    if normals is not None:
        vectors -= _multiply_rows(vectors, normals)[:, None] * normals
    norms = np.sqrt(_multiply_rows(vectors, vectors))
    # direction and norm are independent, so redrawing these does not change the distribution
    short = norms < 1e-6
    norms[short] = 1.0
    vectors /= norms[:, None]
    if short.any():
        vectors[short] = _draw_directions(
            draws.select(short), dimension, None if normals is None else normals[short]
        )
    return vectors


def choose_weighted(draws: Draws, weights: Ints, counts: Ints | None = None) -> Ints:
    """Draws a column for each row, exactly by weight.

    With probability weight / (sum of the row's weights). Uses no floating point, and the sum may
    exceed an int64, so every positive weight keeps its probability.

    Args:
        draws: m rows.
        weights: [m, V] int64, 0 to 2^50, at least one per row above 0.
        counts: [V] or [m, V] int64, 0 to 2^31 - 1: the number of candidates of this weight that a
            column represents, as in the levels of a staircase; None for one each. With counts, V is
            at most 4,096.

    Returns:
        [m] int64 columns; with counts, column k with probability counts_k * weights_k / (their
        sum).

    Raises:
        ConfigError: the weights or counts have another shape or type, or are out of range.
    """
    _check_weights(draws, weights)
    if counts is not None:
        _check_counts(weights, counts)
    if draws.size == 0:
        return np.zeros(0, dtype=np.int64)
    high, low = (
        _split_limbs(_sum_blocks(weights)) if counts is None else _multiply_limbs(weights, counts)
    )
    low = np.cumsum(low, axis=1)
    high = np.cumsum(high, axis=1) + (low >> _LIMB)
    low &= _LOW
    if not ((high[:, -1] > 0) | (low[:, -1] > 0)).all():
        raise ConfigError(
            "each row must have a weight above 0, but one row does not; check the utility"
        )
    target_high, target_low = _draw_limbs(draws, high[:, -1], low[:, -1])
    # At or below: a column of weight 0 has the sum of the one before it and is never chosen.
    is_below = (high < target_high[:, None]) | (
        (high == target_high[:, None]) & (low <= target_low[:, None])
    )
    block: Ints = is_below.sum(axis=1)
    if counts is not None:
        return block
    rows = np.arange(draws.size)
    before_high = np.where(block > 0, high[rows, block - 1], 0)
    before_low = np.where(block > 0, low[rows, block - 1], 0)
    # The rest is less than the sum of one block, 2^58, so an int64 holds it again.
    remainder = ((target_high - before_high) << _LIMB) + (target_low - before_low)
    start = block * _BLOCK_COLUMNS
    columns = start[:, None] + np.arange(min(_BLOCK_COLUMNS, weights.shape[1]))
    is_column = columns < weights.shape[1]
    block_weights = np.where(is_column, weights[rows[:, None], np.where(is_column, columns, 0)], 0)
    choice: Ints = start + (np.cumsum(block_weights, axis=1) <= remainder[:, None]).sum(axis=1)
    return choice


def _split_limbs(values: Ints) -> tuple[Ints, Ints]:
    return values >> _LIMB, values & _LOW


def _multiply_limbs(weights: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Multiplies weights by counts, up to 2^81, as limbs.

    The high limbs of up to 4,096 of them sum to at most 2^61.
    """
    high, low = _split_limbs(weights)
    # Below 2^32 * 2^31, so the product fits an int64.
    low = low * counts
    return high * counts + (low >> _LIMB), low & _LOW


def _sum_blocks(weights: Ints) -> Ints:
    """Sums blocks of consecutive columns: [m, ceil(V / _BLOCK)].

    The last block may be shorter.
    """
    m, columns = weights.shape
    whole = columns - columns % _BLOCK_COLUMNS
    sums = weights[:, :whole].reshape(m, whole // _BLOCK_COLUMNS, _BLOCK_COLUMNS).sum(axis=2)
    return np.column_stack((sums, weights[:, whole:].sum(axis=1))) if whole < columns else sums


def _draw_limbs(draws: Draws, high: Ints, low: Ints) -> tuple[Ints, Ints]:
    """Draws integers uniform in [0, high * 2^32 + low), as limbs.

    Pairs beyond the last, partial limb are redrawn.
    """
    # Without a high limb, the low one is drawn within its limit, and nothing is redrawn.
    first = draws.integers(high + 1)
    second = draws.integers(np.where(high > 0, _LOW + 1, low))
    retry: Flags = (first == high) & (second >= low)
    if retry.any():
        first[retry], second[retry] = _draw_limbs(draws.select(retry), high[retry], low[retry])
    return first, second


def mean_resultant_length(dimension: int, kappa: ArrayLike) -> Values:
    """Computes E<x, mean> of the von Mises-Fisher distribution.

    It is I_{d/2}(kappa) / I_{d/2-1}(kappa). By the continued fraction of the ratio, run backwards
    from an order where the start no longer matters; all its terms are positive, so nothing under-
    or overflows or cancels.

    Args:
        dimension: d, 2 or more (tested to 4,096).
        kappa: values of any shape, from 0 to 1e6.

    Returns:
        float64 of the shape of `kappa`, relative error below 1e-13.

    Raises:
        BudgetError: a kappa is out of range.

    Source: Amos, "Computation of modified Bessel functions and their ratios", Math. Comp. 28
    (1974).
    """
    kappa = np.asarray(kappa, dtype=np.float64)
    if dimension < 2:
        raise ConfigError(f"the dimension must be 2 or more, got {dimension}; check the table")
    if not ((kappa >= 0) & (kappa <= 1e6)).all():
        raise BudgetError(
            "kappa must be from 0 to 1e6, and a value is outside; pass a smaller budget"
        )
    values, back = np.unique(kappa, return_inverse=True)
    # From order v + N down to v, an error shrinks by about exp(-N^2 / kappa) or faster.
    # `unique` sorts, so the last value is the largest and needs the most terms.
    terms = 40 + int(6.0 * np.sqrt(values[-1])) if values.size else 0
    order = dimension / 2.0 + terms
    ratio = values / (order + np.hypot(order, values))
    for step in range(terms, -1, -1):
        ratio = values / (dimension + 2.0 * step + values * ratio)
    return cast(Values, ratio[back].reshape(kappa.shape))


def _broadcast_values(
    draws: Draws, values: ArrayLike, name: str, *, minimum: float, maximum: float
) -> Values:
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in ((), (draws.size,)):
        raise ConfigError(
            f"{name} must be one value or {draws.size}, one per row; got shape {array.shape}"
        )
    if not ((array >= minimum) & (array <= maximum)).all():  # false for NaN
        raise BudgetError(
            f"{name} must be from {minimum:g} to {maximum:g}, and a value is outside; check the "
            "budget"
        )
    return np.broadcast_to(array, (draws.size,))


def _normalize(draws: Draws, mean: Values) -> Values:
    mean = np.asarray(mean, dtype=np.float64)
    if mean.ndim != 2 or mean.shape[0] != draws.size or mean.shape[1] < 2:
        raise ConfigError(
            f"mean must be {draws.size} rows of 2 or more columns, one per draw; got shape "
            f"{mean.shape}"
        )
    norms = np.sqrt(_multiply_rows(mean, mean))
    if not (np.abs(norms - 1.0) <= 1e-6).all():
        raise ConfigError("the rows of mean must have norm 1; normalize the table (metric chord)")
    return mean / norms[:, None]


def _check_weights(draws: Draws, weights: Any) -> None:
    if not isinstance(weights, np.ndarray) or weights.dtype != np.int64 or weights.ndim != 2:
        raise ConfigError("weights must be a two-dimensional int64 array; convert them")
    if weights.shape[0] != draws.size or weights.shape[1] < 1:
        raise ConfigError(
            f"weights must be {draws.size} rows of 1 or more columns, one row per draw; got shape "
            f"{weights.shape}"
        )
    # as unsigned, a negative is 2^63 or more
    if weights.size and weights.view(np.uint64).max() > _MAX_WEIGHT:
        raise ConfigError("weights must be from 0 to 2^50, and a value is outside; scale them")


def _check_counts(weights: Ints, counts: Any) -> None:
    if not isinstance(counts, np.ndarray) or counts.dtype != np.int64:
        raise ConfigError("counts must be an int64 array; convert them")
    if (
        counts.shape not in (weights.shape, weights.shape[1:])
        or weights.shape[1] > _MAX_COUNT_COLUMNS
    ):
        raise ConfigError(
            f"counts must be one for each of {weights.shape[1]} columns and at most "
            f"{_MAX_COUNT_COLUMNS}; got shape {counts.shape}"
        )
    if counts.size and not 0 <= counts.min() <= counts.max() <= _MAX_COUNT:
        raise ConfigError("counts must be from 0 to 2^31 - 1, and a value is outside")


def _multiply_rows(left: Values, right: Values) -> Values:
    return cast(Values, np.einsum("ij,ij->i", left, right))
