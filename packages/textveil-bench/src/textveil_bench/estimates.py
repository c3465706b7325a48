"""Figures with intervals: a bootstrap over texts with shared resamples.

In: sums and sizes per text. Out: `Estimate`s; their differences, ratios, and values at equal risk.
Not here: rows (`compare`).

Efron's bootstrap (1979) over texts, with percentile intervals. All estimates over the same texts
share their resamples, so that everything computed from several of them is paired.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from textveil.errors import ConfigError
from textveil.randomness import Flags, SeededRandomness, Values
from textveil_bench.intervals import CONFIDENCE_LEVEL, Interval

RESAMPLES = 2_000

SEED = 1979

MAX_RESAMPLE_CELLS = 1 << 22
"""Draws in memory at once: 32 MiB."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """A figure per text; its value is `sums` divided by `sizes`, totalled.

    Attributes:
        texts: the texts' fingerprint; paired figures must share it.
        sums: float64 [B]; 0 if a text has no value.
        sizes: float64 [B], 0 or more: a text's weight in the figure.
        fallback_interval: the interval if all texts have the same value and so show no spread.
        geometric: whether the figure is exp of the value.
    """

    texts: str
    sums: Values = field(repr=False)
    sizes: Values = field(repr=False)
    fallback_interval: tuple[float, float] | None = None
    geometric: bool = False

    def select_texts(self, mask: Flags) -> "Sample":
        """Selects some of the texts; drops the fallback interval."""
        return Sample(
            texts=self.texts,
            sums=self.sums * mask,
            sizes=self.sizes * mask,
            geometric=self.geometric,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """A figure with its value in each resample of the texts.

    Attributes:
        texts: the texts' fingerprint.
        value: over all texts.
        draws: float64 [RESAMPLES]; NaN if a resample has no value.
        fallback_interval: see `Sample`.
    """

    texts: str
    value: float
    draws: Values = field(repr=False)
    fallback_interval: tuple[float, float] | None = None

    @cached_property
    def interval(self) -> Interval:
        """The 95% percentile interval; infinite ends without one."""
        valid_draws = self.draws[~np.isnan(self.draws)]
        if not len(valid_draws) or np.isinf(self.value):
            low, high = self.fallback_interval or (-np.inf, np.inf)
        else:
            tail = (1 - CONFIDENCE_LEVEL) / 2
            low, high = map(float, np.quantile(valid_draws, (tail, 1 - tail), method="nearest"))
            if low == high and self.fallback_interval is not None:
                low, high = self.fallback_interval
        return Interval(value=self.value, low=low, high=high)

    def subtract(self, constant: float) -> "Estimate":
        """Subtracts a constant, such as the chance level."""
        fallback = (
            None
            if self.fallback_interval is None
            else (self.fallback_interval[0] - constant, self.fallback_interval[1] - constant)
        )
        return Estimate(
            texts=self.texts,
            value=self.value - constant,
            draws=self.draws - constant,
            fallback_interval=fallback,
        )


@lru_cache(maxsize=4)
def draw_resamples(count: int) -> Values:
    """Draws bootstrap counts of `count` texts: float64 [RESAMPLES, count].

    A row is the number of times that each text occurs in a resample.
    """
    counts = np.empty((RESAMPLES, count))
    for rows, draws in (
        SeededRandomness(SEED).open([RESAMPLES]).split_rows(max(1, MAX_RESAMPLE_CELLS // count))
    ):
        indices = (draws.uniform(count) * count).astype(np.int64)
        indices += count * np.arange(len(indices))[:, None]
        counts[rows] = np.bincount(indices.ravel(), minlength=indices.size).reshape(indices.shape)
    counts.setflags(write=False)
    return counts


def compute_estimates(samples: Sequence[Sample]) -> list[Estimate]:
    """Computes the figures of samples of one data set, with their draws.

    Args:
        samples: of the same texts, with sizes that are not all 0.

    Raises:
        ConfigError: the texts differ.
    """
    if not samples:
        return []
    _require_same_texts([sample.texts for sample in samples])
    counts = draw_resamples(len(samples[0].sums))
    sums, sizes = (
        np.stack([getattr(item, part) for item in samples], axis=1) for part in ("sums", "sizes")
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        draws = (counts @ sums) / (counts @ sizes)
    values = sums.sum(axis=0) / sizes.sum(axis=0)
    return [
        Estimate(
            texts=sample.texts,
            value=float(np.exp(value)) if sample.geometric else float(value),
            draws=np.exp(sample_draws) if sample.geometric else sample_draws,
            fallback_interval=sample.fallback_interval,
        )
        for sample, value, sample_draws in zip(samples, values, draws.T, strict=True)
    ]


def difference(first: Estimate, second: Estimate) -> Estimate:
    """Computes one figure minus another on the same texts.

    Raises:
        ConfigError: the texts differ.
    """
    _require_same_texts([first.texts, second.texts])
    return Estimate(
        texts=first.texts, value=first.value - second.value, draws=first.draws - second.draws
    )


def ratio(first: Estimate, second: Estimate) -> Estimate:
    """Computes one figure divided by another on the same texts.

    Infinite if only the first is above 0, NaN if neither is.

    Raises:
        ConfigError: the texts differ.
    """
    _require_same_texts([first.texts, second.texts])
    with np.errstate(divide="ignore", invalid="ignore"):
        draws = np.where(
            second.draws > 0, first.draws / second.draws, np.where(first.draws > 0, np.inf, np.nan)
        )
    value = (
        first.value / second.value if second.value > 0 else np.inf if first.value > 0 else np.nan
    )
    return Estimate(texts=first.texts, value=float(value), draws=draws)


def estimate_best(figures: Sequence[Estimate]) -> Estimate | None:
    """Estimates the largest of figures, corrected for the selection bias.

    None without figures. The bias is the mean excess of the largest in a resample over its own
    value on all texts: Efron's optimism (1983).

    Raises:
        ConfigError: the texts differ.
    """
    if len(figures) < 2:
        return next(iter(figures), None)
    _require_same_texts([figure.texts for figure in figures])
    first = max(figures, key=lambda figure: figure.value)
    draws = np.nan_to_num(np.stack([figure.draws for figure in figures]), nan=-np.inf)
    winner, columns = draws.argmax(axis=0), np.arange(draws.shape[1])
    excess = draws[winner, columns] - np.array([figure.value for figure in figures])[winner]
    chance = max(0.0, float(excess[np.isfinite(excess)].mean()))
    return Estimate(texts=first.texts, value=first.value - chance, draws=first.draws - chance)


def mean(figures: Sequence[Estimate]) -> Estimate:
    """Computes the mean of one or more figures on the same texts.

    Raises:
        ConfigError: the texts differ.
    """
    _require_same_texts([figure.texts for figure in figures])
    value = float(np.mean([figure.value for figure in figures]))
    return Estimate(
        texts=figures[0].texts,
        value=value,
        draws=np.mean([figure.draws for figure in figures], axis=0),
    )


def interpolate(
    risks: Sequence[Estimate], figures: Sequence[Estimate], level: float
) -> Estimate | None:
    """Interpolates a figure at a level of risk between neighbouring points.

    Risk and figure are resampled together. A resample whose curve does not reach the level counts
    with its nearest end.

    Args:
        risks: of the points of a curve.
        figures: of the same points.
        level: of the risk.

    Returns:
        None if the level is outside the curve.

    Raises:
        ConfigError: the texts differ.
    """
    if not risks:
        return None
    _require_same_texts([estimate.texts for estimate in (*risks, *figures)])
    x, y = (np.array([[estimate.value for estimate in side]]) for side in (risks, figures))
    if not x.min() <= level <= x.max():
        return None
    x_drawn, y_drawn = (
        np.stack([estimate.draws for estimate in side], axis=1) for side in (risks, figures)
    )
    draws = _interpolate_rows(x_drawn, y_drawn, level)
    return Estimate(
        texts=risks[0].texts, value=float(_interpolate_rows(x, y, level)[0]), draws=draws
    )


def _interpolate_rows(x: Values, y: Values, level: float) -> Values:
    """Interpolates each row's y [m] at x = level, between points [m, K].

    Beyond the points, the value at the end.
    """
    order = np.argsort(x, axis=1, kind="stable")
    x, y = np.take_along_axis(x, order, axis=1), np.take_along_axis(y, order, axis=1)
    upper = np.minimum((x < level).sum(axis=1), x.shape[1] - 1)
    lower = np.maximum(upper - 1, 0)
    rows = np.arange(len(x))
    span = x[rows, upper] - x[rows, lower]
    share = np.divide(level - x[rows, lower], span, out=np.ones(len(x)), where=span > 0).clip(0, 1)
    return np.asarray(y[rows, lower] + (y[rows, upper] - y[rows, lower]) * share)


def _require_same_texts(texts: Sequence[str]) -> None:
    if len(set(texts)) > 1:
        raise ConfigError(
            "only figures on the same texts can be compared, and these are on different ones; use "
            "rows of one data set"
        )
