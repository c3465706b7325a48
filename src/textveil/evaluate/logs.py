"""Log-domain numbers: sums, shares, and the highest.

In: arrays. Out: arrays.
Not here: what the numbers are probabilities of (`attack`, `risk`).
"""

from collections.abc import Iterator

import numpy as np

from textveil.randomness import Floats, Ids, Values

TOGETHER = 1 << 16
"""Numbers that are worked on at once.

Few, so that they stay in the cache.
"""

BLOCKS = 32
"""The block width, in columns, of the search for the highest numbers."""


def runs(values: Values | Floats) -> Iterator[slice]:
    """Returns slices of lines of [m, n] that fit the cache."""
    step = max(1, TOGETHER // max(1, values.shape[1]))
    return (slice(start, start + step) for start in range(0, len(values), step))


def log_sum(values: Values | Floats) -> Values:
    """Computes ln of the sum of e^v over each line.

    Of [m, n], n > 0: float64 [m]; -inf where all are.
    """
    found = np.empty(len(values))
    for part in runs(values):
        peak = values[part].max(axis=1)
        peak[peak == -np.inf] = 0
        with np.errstate(divide="ignore"):
            found[part] = peak + np.log(np.exp(values[part] - peak[:, None]).sum(axis=1))
    return found


def softmax(logits: Floats) -> Floats:
    """Converts logits [m, n] to probabilities, float32 [m, n].

    In every line one logit is finite.
    """
    found = np.empty_like(logits)
    for part in runs(logits):
        own = np.subtract(logits[part], logits[part].max(axis=1, keepdims=True), out=found[part])
        np.exp(own, out=own)
        own /= own.sum(axis=1, keepdims=True)
    return found


def highest(values: Values | Floats, k: int) -> Ids:
    """Returns the columns of the k highest numbers per line: [m, k].

    Of [m, n], the highest first, and the first of equals.

    Of [m, n], the highest first, and the first of equals.

    k maxima of blocks of columns are k numbers, so that no number below the least of them is among
    the k highest.
    """
    lines, columns = values.shape
    wide = columns // BLOCKS
    if k > wide:
        return np.argsort(-values, axis=1, kind="stable")[:, :k]
    maxima = values[:, : BLOCKS * wide].reshape(lines, BLOCKS, wide).max(axis=1)
    least = np.partition(maxima, wide - k, axis=1)[:, wide - k]
    found = np.empty((lines, k), np.int64)
    for line, bound, row in zip(values, least, found, strict=True):
        reach = np.flatnonzero(line >= bound)
        row[:] = reach[np.argsort(-line[reach], kind="stable")[:k]]
    return found
