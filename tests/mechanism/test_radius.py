"""The law of the length of Laplace noise, against closed forms of one and two coordinates, and against simulation."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import integrate, special, stats

from textveil.mechanism.radius import compute_length_law

RATE = 1e-6


def one(radius: float) -> float:
    """P(|noise| < radius) of one coordinate of scale 1."""
    return float(-np.expm1(-radius))


def two(radius: float) -> float:
    """P(length < radius) of two coordinates of scale 1: exp(-x - y) over a quarter of a disc, in polar coordinates."""

    def sector(angle: float) -> float:
        slope = np.cos(angle) + np.sin(angle)
        return float(special.gammainc(2, radius * slope) / slope**2)

    return float(integrate.quad(sector, 0, np.pi / 2, epsabs=1e-14)[0])


@pytest.mark.parametrize(("dimension", "closed"), [(1, one), (2, two)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 70.0])
def test_nodes_stand_where_the_closed_form_has_their_part(
    dimension: int, closed: Callable[[float], float], scale: float
) -> None:
    nodes, masses, _ = compute_length_law(np.full(dimension, scale))
    assert masses.sum() == pytest.approx(1)
    assert (nodes > 0).all()
    ends = np.concatenate(([0], np.cumsum(masses[:-1]), [1]))
    for node, low, high in zip(nodes / scale, ends[:-1], ends[1:], strict=True):
        assert (
            low - 1e-4 * min(low + 1e-12, 1 - low)
            <= closed(node)
            <= high + 1e-3 * min(high, 1 - low)
        )


@pytest.mark.parametrize("dimension", [1, 2, 3, 8])
def test_no_radius_is_zero_however_few_coordinates_there_are(dimension: int) -> None:
    """The smallest is about where a share of 1e-12 lies below: 2^d times the volume of a ball's part in one octant."""
    nodes, masses, _ = compute_length_law(np.ones(dimension))
    octant = np.pi ** (dimension / 2) / special.gamma(dimension / 2 + 1) / 2**dimension
    edge = (masses[0] / octant) ** (1 / dimension)
    assert 0.4 * edge < nodes[0] < 1.1 * edge


@pytest.mark.slow
def test_means_and_spreads_are_those_of_simulated_lengths() -> None:
    """Unequal scales; the mean of 20,000 lengths within its interval, and a hundredth in either tail."""
    rng = np.random.default_rng(1)
    few = (np.array([3.0]), np.array([1.0, 0.1]), rng.uniform(0.2, 2, size=8))
    for scales in (*few, rng.uniform(0.01, 1, size=200)):
        nodes, masses, _ = compute_length_law(scales)
        drawn = np.linalg.norm(rng.laplace(size=(20_000, len(scales))) * scales, axis=1)
        within = stats.norm.isf(RATE / 2) / np.sqrt(len(drawn))
        assert nodes @ masses == pytest.approx(drawn.mean(), abs=within * drawn.std())
        ends = np.quantile(drawn, [0.01, 0.99])
        assert masses[nodes < ends[0]].sum() == pytest.approx(0.01, abs=0.0125)
        assert masses[nodes > ends[1]].sum() == pytest.approx(0.01, abs=0.0125)
        if len(scales) == 200:
            assert nodes @ masses * 1.007 != pytest.approx(drawn.mean(), abs=within * drawn.std())


def test_in_384_coordinates_the_length_is_nearly_the_same_for_all_words() -> None:
    """sd / mean: by the delta method sqrt(var E^4) / (2 sqrt(d) mean E^2) = sqrt(20) / (4 sqrt(d)), 5.7 per cent."""
    nodes, masses, _ = compute_length_law(np.ones(384))
    mean = nodes @ masses
    spread = np.sqrt(masses @ np.square(nodes - mean)) / mean
    assert spread == pytest.approx(np.sqrt(20) / 4 / np.sqrt(384), rel=0.01)
    assert 0.055 < spread < 0.06
