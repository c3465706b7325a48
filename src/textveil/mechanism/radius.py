"""The length of Laplace noise on many coordinates: its law on a grid, for one who wants the law of RANTEXT.

In: the scale of each coordinate. Out: radii and their probabilities.
Not here: what is drawn within a radius (`confined`).
"""

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

BINS = 1 << 15
BODY = 96
TAILS = tuple(10.0**-k for k in range(2, 13))


def radii(scales: Values) -> tuple[Values, Values]:
    """Nodes of a quadrature over the Euclidean length of independent Laplace noise.

    The squared length is a sum of b_k^2 E^2, E standard exponential, whose laws are written on a grid of 32,768 steps
    and convolved by a Fourier transform; the nodes are the means of 96 equally likely parts and of finer ones in both
    tails, down to 1e-12.

    Args:
        scales: b_k > 0 of each coordinate, [d].

    Returns:
        radii and probabilities that sum to 1, float64 of some 120 values each.
    """
    variance = float((2 * scales**2).sum())
    largest = float(scales.max())
    # the sum is beyond this with probability below 1e-13: its mean, far deviations, and one large coordinate
    reach = variance + 9 * float(np.sqrt((20 * scales**4).sum())) + (34 * largest) ** 2
    step = reach / BINS
    edges = np.sqrt((np.arange(BINS + 1) - 0.5).clip(min=0) * step)
    distinct, counts = np.unique(scales, return_counts=True)
    total = np.zeros(2 * BINS // 2 + 1, np.complex128)
    for scale, count in zip(distinct, counts, strict=True):
        mass = -np.diff(np.exp(-edges / scale))
        total += count * np.log(np.fft.rfft(mass, 2 * BINS))
    law = np.fft.irfft(np.exp(total), 2 * BINS)[:BINS].clip(min=0)
    law /= law.sum()
    lengths = np.sqrt(np.maximum(np.arange(BINS), 0.25) * step)  # no length is 0
    below = np.cumsum(law)
    body = np.linspace(0, 1, BODY + 1)[1:-1]
    cuts = np.unique(np.concatenate((TAILS, body, 1 - np.array(TAILS))))
    part = np.searchsorted(cuts, below)
    masses: Values = np.bincount(part, law, minlength=len(cuts) + 1).astype(np.float64)
    means = np.bincount(part, law * lengths, minlength=len(cuts) + 1)
    there = masses > 0
    return means[there] / masses[there], masses[there]
