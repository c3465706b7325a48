"""Law of the length of Laplace noise on many coordinates, for RANTEXT.

It lies on a grid.
In: the scale of each coordinate. Out: radii and their probabilities.
Not here: what is drawn within a radius (`confined`).
"""

import numpy as np

from textveil.randomness import Values

GRID_BINS = 1 << 15
GRID_REFINEMENT = 64
"""Factor by which a finer grid refines the lowest part."""

DAMPING = 15.0
MIN_PROBABILITY = 1e-12
CUT_PROBABILITIES = 1 / (1 + np.exp(-np.linspace(-27.6, 27.6, 277)))
"""Probabilities at which lengths are cut into parts, down to `MIN_PROBABILITY`.

Odds in steps of 20 per cent, so that rare lengths have separate parts.
"""


def compute_length_law(scales: Values) -> tuple[Values, Values, Values]:
    """Computes quadrature nodes over the length of independent Laplace noise.

    The length is Euclidean. The squared length is a sum of b_k^2 E^2, E standard exponential, whose
    laws are written on a grid of 32,768 steps and convolved by a Fourier transform; for few
    coordinates, whose length may be near 0, on finer grids below it. The nodes are the means of
    parts whose ends have odds 20 per cent apart, down to 1e-12 in both tails.

    Args:
        scales: b_k > 0 of each coordinate, [d].

    Returns:
        radii [n], their probabilities, which sum to 1, and the ends of their parts [n + 1]; n is
        some 280.
    """
    largest = float(scales.max())
    # the sum is beyond this with probability below 1e-13:
    # its mean, far deviations, and one large coordinate
    max_square = (
        float((2 * scales**2).sum())
        + 9 * float(np.sqrt((20 * scales**4).sum()))
        + (34 * largest) ** 2
    )
    law = _compute_law(scales, max_square, 0.0)
    law /= law.sum()
    grid_lengths = np.sqrt(np.arange(GRID_BINS) * (max_square / GRID_BINS))
    while (low_mass := law[: GRID_BINS // GRID_REFINEMENT].sum()) > MIN_PROBABILITY:
        max_square /= GRID_REFINEMENT
        fine_law = _compute_law(scales, max_square, DAMPING)
        law = np.concatenate(
            (fine_law * (low_mass / fine_law.sum()), law[GRID_BINS // GRID_REFINEMENT :])
        )
        grid_lengths = np.concatenate(
            (
                np.sqrt(np.arange(GRID_BINS) * (max_square / GRID_BINS)),
                grid_lengths[GRID_BINS // GRID_REFINEMENT :],
            )
        )
    part = np.searchsorted(CUT_PROBABILITIES, np.cumsum(law))
    starts = np.flatnonzero(np.diff(part, prepend=-1))
    masses = np.add.reduceat(law, starts)
    means: Values = np.add.reduceat(law * grid_lengths, starts) / masses
    ends = np.concatenate(
        ([0.0], (grid_lengths[starts[1:] - 1] + grid_lengths[starts[1:]]) / 2, grid_lengths[-1:])
    )
    return means, masses, ends


def _compute_law(scales: Values, max_square: float, damping: float) -> Values:
    """Computes the probabilities of the squared length below `max_square`.

    float64 [BINS]. Where sums reach beyond the end, they would wrap round to the beginning:
    probabilities are damped before the transform, and raised again after it.
    """
    step = max_square / GRID_BINS
    ends = np.sqrt(np.arange(GRID_BINS + 1) * step)
    damping_weights = np.exp(-damping / GRID_BINS * np.arange(GRID_BINS))
    distinct, counts = np.unique(scales, return_counts=True)
    total = np.zeros(GRID_BINS + 1, np.complex128)
    for scale, count in zip(distinct, counts, strict=True):
        # `expm1` keeps the digits of the lowest bins, where 1 - exp(-x) would cancel.
        inside = np.diff(-np.expm1(-ends / scale))
        means = np.divide(
            np.diff(2 * scale**2 * _compute_gamma_cdf(ends / scale)),
            inside,
            out=np.zeros(GRID_BINS),
            where=inside > 0,
        )
        # mass between two points keeps its mean
        share = np.clip(means / step - np.arange(GRID_BINS), 0, 1)
        mass = inside * (1 - share)
        mass[1:] += (inside * share)[:-1]
        # Equal scales at once: a product of transforms is a sum of logarithms. Counts are whole, so
        # the branch of a complex logarithm does not matter.
        total += count * np.log(np.fft.rfft(mass * damping_weights, 2 * GRID_BINS))
    law: Values = (
        np.fft.irfft(np.exp(total), 2 * GRID_BINS)[:GRID_BINS].clip(min=0) / damping_weights
    )
    return law


def _compute_gamma_cdf(x: Values) -> Values:
    """Computes the distribution function of a gamma variable of shape 3.

    Where x is small, by its series.
    """
    near = np.minimum(x, 0.05)
    series = near**3 / 6 * (1 - near * (3 / 4 - near * (3 / 10 - near * (1 / 12 - near / 56))))
    # The closed form subtracts nearly equal numbers near 0.
    probability: Values = np.where(x < 0.05, series, 1 - np.exp(-x) * (1 + x + x * x / 2))
    return probability
