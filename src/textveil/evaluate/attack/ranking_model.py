"""Feature weights by conditional logistic regression over candidates.

In: features of candidates, and which is right. Out: weights; probabilities of candidates.
Not here: what the features are (`candidates`, `context_features`, `linear_estimate`).
"""

import numpy as np

from textveil.evaluate.log_math import compute_log_sum
from textveil.randomness import Floats, Ids, Values

RIDGE = 1e-3
"""The ridge penalty per square of a weight, against the mean loss."""

SAMPLE_WORDS = 2000
"""The sample of words on which weights are fitted first, about."""

WORDS_AT_ONCE = 64
"""Words whose candidates are weighed together.

Few, so that they stay in the cache.
"""

MIN_LOSS_FALL = 1e-7
"""The fall of the loss at which the fit stops."""


def compute_probabilities(features: Floats, weights: Values) -> Values:
    """Computes probabilities of K candidates with features [m, K, F].

    float64 [m, K].
    """
    logits = (features @ weights.astype(np.float32)).astype(np.float64)
    probabilities: Values = np.exp(logits - compute_log_sum(logits)[:, None])
    return probabilities


def fit_logistic(features: Floats, right: Ids) -> Values:
    """Fits weights that make the right candidates the likeliest.

    By conditional logistic regression.

    Source: McFadden, "Conditional logit analysis of qualitative choice behavior", 1974.

    Args:
        features: [m, K, F].
        right: int64 [m], which of the K is right.

    Returns:
        weights float64 [F]; those of prior and law stay 1 where nothing is to be learned from.
    """
    start = np.zeros(features.shape[2])
    start[[0, 2]] = 1
    if not len(right):
        return start
    right_features = features[np.arange(len(right)), right]
    weights = start
    for step in (
        max(1, len(right) // SAMPLE_WORDS),
        1,
    ):  # what is found on a sample is a good start
        weights = _minimize_loss(features[::step], right_features[::step], start, weights)
    return weights


def _minimize_loss(
    features: Floats, right_features: Floats, start: Values, weights: Values
) -> Values:
    """Minimizes the loss by Newton's method from given weights.

    Steps that increase it are halved.
    """
    loss, gradient, curvature = _compute_loss(features, right_features, start, weights)
    step = np.linalg.solve(curvature, gradient)
    while gradient @ step > MIN_LOSS_FALL:
        trial = _compute_loss(features, right_features, start, weights - step)
        if trial[0] < loss:
            weights, (loss, gradient, curvature) = weights - step, trial
            step = np.linalg.solve(curvature, gradient)
        else:
            step = step / 2
    return weights


def _compute_loss(
    features: Floats, right_features: Floats, start: Values, weights: Values
) -> tuple[float, Values, Values]:
    """Computes the penalized mean loss, its gradient [F], and curvature [F, F]."""
    m, _, f = features.shape
    loss, gradient, curvature = 0.0, np.zeros(f), np.zeros((f, f))
    for at in range(0, m, WORDS_AT_ONCE):
        part = features[at : at + WORDS_AT_ONCE]
        logits = part @ weights.astype(np.float32)
        total = compute_log_sum(logits)
        weighed = part * np.exp(logits - total[:, None].astype(np.float32))[:, :, None]
        mean = weighed.sum(axis=1)
        loss += total.sum() / m
        gradient += mean.sum(axis=0, dtype=np.float64) / m
        curvature += (weighed.reshape(-1, f).T @ part.reshape(-1, f) - mean.T @ mean) / m
    usual, away = right_features.mean(axis=0, dtype=np.float64), weights - start
    loss += float(RIDGE * away @ away - usual @ weights)
    return loss, gradient - usual + 2 * RIDGE * away, curvature + 2 * RIDGE * np.eye(f)
