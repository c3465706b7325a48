"""Output laws in the plane by integration over one fixed grid: the oracle that contract tests compare with.

A grid of points is decoded once; the law of a centre is the density's mass on every word's points. Because the points
are the same for every centre, a bound on the density's log-ratio at each point carries over to the sums exactly: no
integration error can hide or fake a violation.
"""

from collections.abc import Callable

import numpy as np

from textveil.randomness import Ints, Values

CIRCLE, DISC = 5760, 1440
"""Angles of the grid on the circle, and of the grid in the disc, which has many radii at each."""

RADII = np.linspace(0, 5, 161)[1:] - 5 / 320


class Plane:
    """A density family over a fixed grid, decoded by a table."""

    def __init__(
        self, log_density: Callable[[Values, Values, float], Values], *, on_circle: bool
    ) -> None:
        angles = CIRCLE if on_circle else DISC
        angle = (np.arange(angles) + 0.5) * 2 * np.pi / angles
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        self.points = circle if on_circle else (RADII[:, None, None] * circle).reshape(-1, 2)
        self.area = np.ones(angles) if on_circle else np.repeat(RADII, angles)
        self.log_density = log_density

    def law(self, centre: Values, parameter: float, cells: Ints, words: int) -> Values:
        """P(word | centre), float64 [V]."""
        log = self.log_density(self.points, centre, parameter)
        mass = np.exp(log - log.max()) * self.area
        return np.bincount(cells, mass, minlength=words) / mass.sum()


def _laplace(points: Values, centre: Values, eta: float) -> Values:
    return -eta * np.sqrt(((points - centre) ** 2).sum(axis=1))


def _coordinates(points: Values, centre: Values, rate: float) -> Values:
    return -rate * np.abs(points - centre).sum(axis=1)


def _von_mises(points: Values, centre: Values, kappa: float) -> Values:
    out: Values = kappa * (points @ centre)
    return out


MULTIVARIATE = Plane(_laplace, on_circle=False)
COORDINATE = Plane(_coordinates, on_circle=False)
VON_MISES = Plane(_von_mises, on_circle=True)
