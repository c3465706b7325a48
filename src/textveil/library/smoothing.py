"""Smoothing: a label for every text of a library, from noisy counts of labels in its cells.

In: a library, a level, counts [L, K] and the variance of their noise. Out: labels.
Not here: where the counts come from. Nothing private is read: what follows from a release is free.

A cell's counts are noisy, and its texts are not all of one label. So the rates of labels are taken
to be a linear function of what is known of a text (its sentence vector, its words, its hints): a
Gaussian process, observed in the means of cells. What is known counts as much as makes the counts
likeliest (empirical Bayes), so that labels about words follow words, and hints that mislead are
not followed: no text is labelled by a public label as such.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from textveil.errors import ConfigError
from textveil.library.features import TEXTS_AT_ONCE
from textveil.library.library import Level, Library
from textveil.randomness import Floats, Ids, Values

Smoothing = Literal["none", "vectors", "words", "both", "best"]

VIEWS: Mapping[str, tuple[str, ...]] = {
    "vectors": ("vectors",),
    "words": ("words",),
    "both": ("vectors", "words"),
    "best": ("vectors", "words", "hints"),
}
"""The views of a text that each kind of smoothing may use; the counts weigh them."""

LEAST_VARIATION = 0.05
"""The least squared variation of sizes of cells, by which counts are believed beside the mean."""

LEAST_SIZE = 0.1
"""The least number of documents of a cell, as a share of what a library like them would have."""

MEAN_LOG_WEIGHT, LOG_WEIGHT_PRECISION = -1.0, 0.05
"""Of the prior of log weights: wide, so that it only decides where the counts say nothing."""

MOST_LOG_WEIGHT = 7.0
"""Where the search for log weights ends: e^7 is as good as unbounded beside noise of this size."""

FIRST_STEP, LEAST_STEP = 2.0, 0.4
"""Steps of the search for log weights: finer ones change no label worth the time."""

LEAST_GAIN = 1e-3
"""The least gain of log likelihood that is one: far below what noise makes, far above rounding."""

SHARE_ROUNDS, SHARE_STEP, SHARE_DECAY, LEAST_SHARE_STEP = 100, 0.2, 0.97, 0.02
"""How offsets are moved until labels have their shares: at first fast, then finely."""


def smooth_labels(
    library: Library,
    level: Level,
    counts: Values,
    variance: float,
    *,
    how: Smoothing = "best",
    masses: Values,
    balance: bool = False,
) -> Ids:
    """Returns a label for every text of a library, int64 [N].

    Args:
        library: public texts.
        level: the cells that the counts are of.
        counts: float64 [L, K], unbiased estimates of how many documents each label and cell has.
        variance: of their noise.
        how: what is known of texts: their vectors, words, both; or "best", hints as well.
        masses: float64 [K], how much is drawn of each cell.
        balance: whether labels are taken to be equally frequent.

    Raises:
        ConfigError: the library knows no words.
    """
    views = get_views(library, how)
    if len(counts) == 1:  # nothing varies, so that no rate could be estimated
        return np.zeros(len(level.cells), np.int64)
    scores, prior = score_labels(counts, variance, level, views)
    if balance:
        scores += 1 / len(prior) - prior
    else:
        weights = (masses / level.sizes)[level.cells]
        weights /= weights.sum()
        target = estimate_shares(counts, variance, count_shares(scores, weights))
        scores += find_offsets(scores, weights, target)
    labels: Ids = scores.argmax(axis=1).astype(np.int64)
    return labels


def get_views(library: Library, how: Smoothing) -> list[Floats]:
    """Returns what is known of texts that a kind of smoothing may use.

    Raises:
        ConfigError: the library knows none of it.
    """
    views = [library.views[name] for name in VIEWS[how] if name in library.views]
    if not views:
        raise ConfigError("smooth must not be words: the texts of this library share none")
    return views


# ---- scores: a Gaussian process on the means of cells --------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _Evidence:
    """Rates of labels in cells, as counts show them, with their noise.

    Attributes:
        prior: pi, the shares of labels, [L].
        spread: v, the mean of pi (1 - pi): how much labels vary among texts.
        rates: Y, how much more often each cell has each label than the prior says, [K, L].
        noise: D, the variance of each cell's rates, [K].
    """

    prior: Values
    spread: float
    rates: Values
    noise: Values


def score_labels(
    counts: Values, variance: float, level: Level, views: Sequence[Floats]
) -> tuple[Values, Values]:
    """Returns the rates of labels of every text [N, L], and the prior [L].

    With M_j the means of view j over cells, C = v sum_j w_j M_j M_j' + diag D: a text with the
    features x_j has the rates pi + v sum_j w_j x_j M_j' C^-1 Y.
    """
    evidence = _weigh_evidence(counts, variance, level.sizes.astype(np.float64))
    means = [_average(view, level) for view in views]
    kernels = [evidence.spread * mean @ mean.T for mean in means]
    weights = np.exp(_find_log_weights(evidence, kernels))
    solved = np.linalg.solve(_add_up(evidence, kernels, weights), evidence.rates)
    scores = np.tile(evidence.prior, (len(level.cells), 1))
    for weight, view, mean in zip(weights, views, means, strict=True):
        slopes = evidence.spread * weight * (mean.T @ solved)
        for start in range(0, len(view), TEXTS_AT_ONCE):
            rows = slice(start, start + TEXTS_AT_ONCE)
            scores[rows] += view[rows].astype(np.float64) @ slopes
    return scores, evidence.prior


def _weigh_evidence(counts: Values, variance: float, sizes: Values) -> _Evidence:
    positive = np.maximum(counts, 0)
    totals = positive.sum(axis=0)
    prior = np.maximum(positive.sum(axis=1), 1)  # no label is ruled out
    prior /= prior.sum()
    spread = float((prior * (1 - prior)).mean())
    documents = _shrink_sizes(totals, sizes, len(counts) * variance)
    return _Evidence(
        prior=prior,
        spread=spread,
        rates=((positive - prior[:, None] * totals) / documents).T,
        noise=(documents * spread + variance * (1 - 1 / len(counts))) / documents**2,
    )


def _shrink_sizes(totals: Values, sizes: Values, variance: float) -> Values:
    """Estimates how many documents cells have: their counts, drawn to the shares of the library.

    With m the shares of the library and g the squared variation of sizes about it, by moments:
    m + g m^2 / (g m^2 + m + variance) (t - m).
    """
    expected = max(totals.sum(), 1.0) * sizes / sizes.sum()
    noise = expected + variance
    excess = ((totals - expected) ** 2).sum() - noise.sum()
    variation = max(excess / (expected**2).sum(), LEAST_VARIATION) * expected**2
    shrunk = expected + variation / (variation + noise) * (totals - expected)
    least = LEAST_SIZE * expected + 1e-6  # above 0: it divides
    result: Values = np.maximum(shrunk, least)
    return result


def _average(view: Floats, level: Level) -> Values:
    """Returns the mean of a view over each cell, float64 [K, d]."""
    order = np.argsort(level.cells, kind="stable")
    starts = np.cumsum([0, *level.sizes[:-1]])
    sums = np.add.reduceat(view[order].astype(np.float64), starts, axis=0)
    means: Values = sums / level.sizes[:, None]
    return means


def _add_up(evidence: _Evidence, kernels: Sequence[Values], weights: Values) -> Values:
    """Returns the covariance of the rates of cells."""
    covariance = np.diag(evidence.noise)
    for weight, kernel in zip(weights, kernels, strict=True):
        covariance += weight * kernel
    return covariance


def _find_log_weights(evidence: _Evidence, kernels: Sequence[Values]) -> Values:
    """Finds the log weights of views under which the rates are likeliest, one after the other.

    The negative log likelihood is (tr Y' C^-1 Y + (L - 1) ln det C) / 2, for rates sum to 0.
    """

    def measure(log_weights: Values) -> float:
        factor = np.linalg.cholesky(_add_up(evidence, kernels, np.exp(log_weights)))
        whitened = np.linalg.solve(factor, evidence.rates)
        fit = (whitened**2).sum() / 2
        size = (len(evidence.prior) - 1) * np.log(np.diag(factor)).sum()
        far = ((log_weights - MEAN_LOG_WEIGHT) ** 2).sum() * LOG_WEIGHT_PRECISION / 2
        return float(fit + size + far)

    best = np.full(len(kernels), MEAN_LOG_WEIGHT)
    least, step = measure(best), FIRST_STEP
    while step > LEAST_STEP:
        has_moved = False
        for move in (sign * step * axis for axis in np.eye(len(best)) for sign in (1, -1)):
            tried = best + move
            if np.abs(tried).max() <= MOST_LOG_WEIGHT:
                loss = measure(tried)
                if loss < least - LEAST_GAIN:
                    best, least, has_moved = tried, loss, True
        step = step if has_moved else step / 2
    return best


# ---- shares of labels ----------------------------------------------------------------------------


def count_shares(scores: Values, weights: Values) -> Values:
    """Returns the share of texts that each label gets, [L], of texts that weigh 1 in all."""
    labels = scores.argmax(axis=1)
    shares: Values = np.bincount(labels, weights, scores.shape[1]).astype(np.float64)
    return shares


def estimate_shares(counts: Values, variance: float, implied: Values) -> Values:
    """Estimates the shares of labels: those counted, drawn to those that scores imply.

    i + k (r - i), where k = max(0, 1 - V / mean (r - i)^2) and V is the variance of the counted
    shares r: K variance (1 - 1 / L) / N^2 (James and Stein).
    """
    labels, cells = counts.shape
    counted = np.maximum(counts.sum(axis=1), 0)
    if not counted.any():
        return implied
    counted /= counted.sum()
    documents = max(counts.sum(), 1.0)
    noise = cells * variance * (1 - 1 / labels) / documents**2
    distance = ((counted - implied) ** 2).mean()
    trust = max(0.0, 1 - noise / distance) if distance > 0 else 0.0
    shares: Values = implied + trust * (counted - implied)
    return shares


def find_offsets(scores: Values, weights: Values, target: Values) -> Values:
    """Finds what is to be added to the scores of labels for them to have given shares, [L]."""
    offsets, step = np.zeros(len(target)), SHARE_STEP
    for _ in range(SHARE_ROUNDS):
        offsets += step * (target - count_shares(scores + offsets, weights))
        step = max(step * SHARE_DECAY, LEAST_SHARE_STEP)
    return offsets
