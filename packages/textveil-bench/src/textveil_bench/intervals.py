"""Confidence intervals of rates and means, for values that come in clusters.

In: values, and the text that each belongs to. Out: an estimate with its interval.
Not here: the quantities that are measured (`attack`, `measure`, `audit`).
"""

from dataclasses import dataclass

import numpy as np

from textveil.errors import ConfigError
from textveil.randomness import Ids, Values

CONFIDENCE_LEVEL = 0.95

MIN_CLUSTERS = 10
"""Smallest number of clusters from which their variance is estimated."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with the two ends of its confidence interval."""

    value: float
    low: float
    high: float


def clopper_pearson(
    hits: float, trials: float, level: float = CONFIDENCE_LEVEL
) -> tuple[float, float]:
    """Computes the exact two-sided confidence interval of a probability.

    Args:
        hits: successes, from 0 to `trials`; effective sample sizes need not be whole numbers.
        trials: independent trials, above 0.
        level: smallest coverage probability of the interval, above 0 and below 1.

    Raises:
        ConfigError: an argument is out of range.

    Source: Clopper and Pearson, Biometrika 26 (1934).
    """
    if not (0 <= hits <= trials and trials > 0 and 0 < level < 1):
        raise ConfigError(
            "an interval needs 0 <= hits <= trials, trials above 0 and a level between 0 and 1"
        )
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return low, high


def mean(
    values: Values, clusters: Ids, level: float = CONFIDENCE_LEVEL, *, share: bool = True
) -> Interval:
    """Computes the mean of clustered values (words in texts) with its interval.

    The variance is that of the cluster sums about the mean (linearised ratio). Values that are all
    0 or 1 get the Clopper-Pearson interval for the effective sample size, so that it stays within 0
    and 1; others get Student's. With fewer than `MIN_CLUSTERS` clusters, the variance between
    clusters cannot be estimated: the values then count as independent, and the interval applies to
    these texts only, not to similar ones. Intervals of non-negative values end at 0, and those of
    shares at 1.

    Args:
        values: float64 [m], m of 1 or more.
        clusters: int64 [m], the number of each value's cluster.
        level: confidence level.
        share: whether values from 0 to 1 are shares; if not, values that are all 0 or 1 get
            Student's interval too.

    Raises:
        ConfigError: there are no values.

    Source: Korn and Graubard, Survey Methodology 24 (1998), for proportions.
    """
    m = len(values)
    if m == 0:
        raise ConfigError("a mean needs one value at least")
    from scipy.special import stdtrit

    _, cluster_indices = np.unique(clusters, return_inverse=True)
    few_clusters = cluster_indices.max() + 1 < MIN_CLUSTERS
    if few_clusters:
        cluster_indices = np.arange(m)
    value = float(values.mean())
    deviations = np.bincount(cluster_indices, values - value)
    groups = len(deviations)
    variance = float(np.square(deviations).sum()) / m**2 * groups / max(1, groups - 1)
    quantile = float(stdtrit(max(1, groups - 1), (1 + level) / 2))
    if share and np.isin(values, (0.0, 1.0)).all():
        size = float(m)
        if value in (0.0, 1.0) and not few_clusters:
            size = float(
                groups
            )  # equal values do not show the correlation within clusters: assume full correlation
        elif variance > 0 and not few_clusters:
            independent = float(stdtrit(m - 1, (1 + level) / 2))
            size = min(size, value * (1 - value) / variance * (independent / quantile) ** 2)
        low, high = clopper_pearson(value * size, size, level)
        return Interval(value=value, low=low, high=high)
    if groups == 1:
        return Interval(value=value, low=-np.inf, high=np.inf)
    half_width = quantile * variance**0.5
    low, high = value - half_width, value + half_width
    if values.min() >= 0:
        low = max(low, 0.0)
    if share and values.min() >= 0 and values.max() <= 1:
        high = min(high, 1.0)
    return Interval(value=value, low=low, high=high)
