"""Figures with intervals: a bootstrap over texts, with the same resamples for everything that is compared.

In: sums and sizes per text. Out: `Estimate`s; their differences, ratios, and values at equal risk.
Not here: rows (`compare`).

Efron's bootstrap (1979) over texts, with percentile intervals. All estimates over the same texts share their
resamples, so that everything computed from several of them is paired.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from textveil.errors import ConfigError
from textveil.randomness import Flags, SeededRandomness, Values
from textveil_bench.intervals import LEVEL, Interval

RESAMPLES = 2_000

SEED = 1979

CELLS = 1 << 22
"""Draws in memory at once: 32 MiB."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """A figure per text: its value is the sum over texts of `sums` divided by that of `sizes`.

    Attributes:
        texts: the texts' fingerprint; paired figures must share it.
        sums: float64 [B]; 0 if a text has no value.
        sizes: float64 [B], 0 or more: a text's weight in the figure.
        known: an interval for the case that all texts have the same value and so show no spread.
        geometric: whether the figure is exp of the value.
    """

    texts: str
    sums: Values = field(repr=False)
    sizes: Values = field(repr=False)
    known: tuple[float, float] | None = None
    geometric: bool = False

    def where(self, chosen: Flags) -> "Sample":
        """The same figure for some of the texts, without a known interval."""
        return Sample(
            texts=self.texts,
            sums=self.sums * chosen,
            sizes=self.sizes * chosen,
            geometric=self.geometric,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """A figure with its value in each resample of the texts.

    Attributes:
        texts: the texts' fingerprint.
        value: over all texts.
        draws: float64 [RESAMPLES]; NaN if a resample has no value.
        known: see `Sample`.
    """

    texts: str
    value: float
    draws: Values = field(repr=False)
    known: tuple[float, float] | None = None

    @cached_property
    def interval(self) -> Interval:
        """The 95% percentile interval; open if there is none."""
        found = self.draws[~np.isnan(self.draws)]
        if not len(found) or np.isinf(self.value):
            low, high = self.known or (-np.inf, np.inf)
        else:
            tail = (1 - LEVEL) / 2
            low, high = map(float, np.quantile(found, (tail, 1 - tail), method="nearest"))
            if low == high and self.known is not None:
                low, high = self.known
        return Interval(value=self.value, low=low, high=high)

    def minus(self, constant: float) -> "Estimate":
        """The figure minus a constant, such as the chance level."""
        known = None if self.known is None else (self.known[0] - constant, self.known[1] - constant)
        return Estimate(
            texts=self.texts, value=self.value - constant, draws=self.draws - constant, known=known
        )


@lru_cache(maxsize=4)
def resamples(count: int) -> Values:
    """How often each text is in each resample of `count` texts, drawn with replacement: float64 [RESAMPLES, count]."""
    found = np.empty((RESAMPLES, count))
    for rows, draws in SeededRandomness(SEED).open([RESAMPLES]).chunks(max(1, CELLS // count)):
        chosen = (draws.uniform(count) * count).astype(np.int64)
        chosen += count * np.arange(len(chosen))[:, None]
        found[rows] = np.bincount(chosen.ravel(), minlength=chosen.size).reshape(chosen.shape)
    found.setflags(write=False)
    return found


def estimates(samples: Sequence[Sample]) -> list[Estimate]:
    """The figures of samples of one data set, with their draws.

    Args:
        samples: all of the same texts, with sizes that are not all 0.

    Raises:
        ConfigError: they are of different texts.
    """
    if not samples:
        return []
    _same([sample.texts for sample in samples])
    counts = resamples(len(samples[0].sums))
    sums, sizes = (
        np.stack([getattr(each, part) for each in samples], axis=1) for part in ("sums", "sizes")
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        draws = (counts @ sums) / (counts @ sizes)
    values = sums.sum(axis=0) / sizes.sum(axis=0)
    return [
        Estimate(
            texts=sample.texts,
            value=float(np.exp(value)) if sample.geometric else float(value),
            draws=np.exp(drawn) if sample.geometric else drawn,
            known=sample.known,
        )
        for sample, value, drawn in zip(samples, values, draws.T, strict=True)
    ]


def difference(one: Estimate, other: Estimate) -> Estimate:
    """One figure minus the other, on the same texts.

    Raises:
        ConfigError: the texts differ.
    """
    _same([one.texts, other.texts])
    return Estimate(texts=one.texts, value=one.value - other.value, draws=one.draws - other.draws)


def ratio(one: Estimate, other: Estimate) -> Estimate:
    """One figure divided by the other, on the same texts; infinite if only the first is above 0, NaN if neither is.

    Raises:
        ConfigError: the texts differ.
    """
    _same([one.texts, other.texts])
    with np.errstate(divide="ignore", invalid="ignore"):
        draws = np.where(
            other.draws > 0, one.draws / other.draws, np.where(one.draws > 0, np.inf, np.nan)
        )
    value = one.value / other.value if other.value > 0 else np.inf if one.value > 0 else np.nan
    return Estimate(texts=one.texts, value=float(value), draws=draws)


def best(figures: Sequence[Estimate]) -> Estimate | None:
    """The largest of figures on the same texts, minus the bias of taking the largest; None without figures.

    The bias is the mean excess of the largest in a resample over its own value on all texts: Efron's optimism (1983).

    Raises:
        ConfigError: the texts differ.
    """
    if len(figures) < 2:
        return next(iter(figures), None)
    _same([each.texts for each in figures])
    first = max(figures, key=lambda each: each.value)
    draws = np.nan_to_num(np.stack([each.draws for each in figures]), nan=-np.inf)
    winner, every = draws.argmax(axis=0), np.arange(draws.shape[1])
    apart = draws[winner, every] - np.array([each.value for each in figures])[winner]
    chance = max(0.0, float(apart[np.isfinite(apart)].mean()))
    return Estimate(texts=first.texts, value=first.value - chance, draws=first.draws - chance)


def mean(figures: Sequence[Estimate]) -> Estimate:
    """The mean of one or more figures on the same texts.

    Raises:
        ConfigError: the texts differ.
    """
    _same([each.texts for each in figures])
    value = float(np.mean([each.value for each in figures]))
    return Estimate(
        texts=figures[0].texts, value=value, draws=np.mean([each.draws for each in figures], axis=0)
    )


def at(risks: Sequence[Estimate], figures: Sequence[Estimate], level: float) -> Estimate | None:
    """The figure where the risk is at a level, interpolated between the two neighbouring points.

    Risk and figure are resampled together. A resample whose curve does not reach the level counts with its nearest
    end.

    Args:
        risks: of the points of a curve.
        figures: of the same points.
        level: of the risk.

    Returns:
        None if the level is outside the curve.

    Raises:
        ConfigError: not all are of the same texts.
    """
    if not risks:
        return None
    _same([each.texts for each in (*risks, *figures)])
    x, y = (np.array([[each.value for each in side]]) for side in (risks, figures))
    if not x.min() <= level <= x.max():
        return None
    x_drawn, y_drawn = (
        np.stack([each.draws for each in side], axis=1) for side in (risks, figures)
    )
    draws = _read(x_drawn, y_drawn, level)
    return Estimate(texts=risks[0].texts, value=float(_read(x, y, level)[0]), draws=draws)


def _read(x: Values, y: Values, level: float) -> Values:
    """Each row's y [m] at x = level, between its points [m, K]; beyond them, the value at the end."""
    order = np.argsort(x, axis=1, kind="stable")
    x, y = np.take_along_axis(x, order, axis=1), np.take_along_axis(y, order, axis=1)
    right = np.minimum((x < level).sum(axis=1), x.shape[1] - 1)
    left = np.maximum(right - 1, 0)
    rows = np.arange(len(x))
    span = x[rows, right] - x[rows, left]
    share = np.divide(level - x[rows, left], span, out=np.ones(len(x)), where=span > 0).clip(0, 1)
    return np.asarray(y[rows, left] + (y[rows, right] - y[rows, left]) * share)


def _same(texts: Sequence[str]) -> None:
    if len(set(texts)) > 1:
        raise ConfigError(
            "only figures on the same texts can be compared, and these are on different ones; use rows of one data set"
        )
