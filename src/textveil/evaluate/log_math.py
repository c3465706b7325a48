"""Log-domain numbers: sums, shares, and the highest.

In: arrays. Out: arrays.
Not here: what the numbers are probabilities of (`attack`, `risk`).
"""

from collections.abc import Iterator

import numpy as np

from textveil.randomness import Floats, Ids, Values

NUMBERS_AT_ONCE = 1 << 16
"""Numbers that are worked on at once.

Few, so that they stay in the cache.
"""

SEARCH_BLOCKS = 32
"""The block width, in columns, of the search for the highest numbers."""


def slice_rows(values: Values | Floats) -> Iterator[slice]:
    """Returns slices of lines of [m, n] that fit the cache."""
    step = max(1, NUMBERS_AT_ONCE // max(1, values.shape[1]))
    return (slice(start, start + step) for start in range(0, len(values), step))


def compute_log_sum(values: Values | Floats) -> Values:
    """Computes ln of the sum of e^v over each line.

    Of [m, n], n > 0: float64 [m]; -inf where all are.
    """
    sums = np.empty(len(values))
    for part in slice_rows(values):
        peak = values[part].max(axis=1)
        # Minus infinity less itself would be NaN.
        peak[peak == -np.inf] = 0
        with np.errstate(divide="ignore"):
            sums[part] = peak + np.log(np.exp(values[part] - peak[:, None]).sum(axis=1))
    return sums


def softmax(logits: Floats) -> Floats:
    """Converts logits [m, n] to probabilities, float32 [m, n].

    In every line one logit is finite.
    """
    probabilities = np.empty_like(logits)
    for part in slice_rows(logits):
        exponents = np.subtract(
            logits[part], logits[part].max(axis=1, keepdims=True), out=probabilities[part]
        )
        np.exp(exponents, out=exponents)
        exponents /= exponents.sum(axis=1, keepdims=True)
    return probabilities


def find_highest(values: Values | Floats, k: int) -> Ids:
    """Returns the columns of the k highest numbers per line: [m, k].

    Of [m, n], the highest first, and the first of equals.

    Of [m, n], the highest first, and the first of equals.

    k maxima of blocks of columns are k numbers, so that no number below the least of them is among
    the k highest.
    """
    lines, columns = values.shape
    width = columns // SEARCH_BLOCKS
    if k > width:
        return np.argsort(-values, axis=1, kind="stable")[:, :k]
    maxima = values[:, : SEARCH_BLOCKS * width].reshape(lines, SEARCH_BLOCKS, width).max(axis=1)
    bounds = np.partition(maxima, width - k, axis=1)[:, width - k]
    result = np.empty((lines, k), np.int64)
    for line, bound, row in zip(values, bounds, result, strict=True):
        candidates = np.flatnonzero(line >= bound)
        row[:] = candidates[np.argsort(-line[candidates], kind="stable")[:k]]
    return result
