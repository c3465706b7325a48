"""Samplers: what they refuse, and what no rows give. Their laws are in statistical/test_samplers.py."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from textveil.errors import BudgetError, ConfigError
from textveil.randomness.samplers import (
    choose_weighted,
    coordinate_laplace,
    discrete_laplace,
    mean_resultant_length,
    multivariate_laplace,
    von_mises_fisher,
)
from textveil.randomness.streams import SeededRandomness


@pytest.fixture
def three():
    return next(SeededRandomness(1).open([1, 2]).split_rows(3))[1]


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, 1e-101, 1e101])
def test_scales_are_positive_and_finite(three, value):
    for sampler in (multivariate_laplace, coordinate_laplace):
        with pytest.raises(BudgetError, match="must be from 1e-100 to 1e"):
            sampler(three, np.array([1.0, value, 1.0]), 4)


@pytest.mark.parametrize(
    "value", [Fraction(0), Fraction(-1, 2), Fraction(2**55 + 1), Fraction(1, 2**55 + 1)]
)
def test_discrete_scales_are_positive_and_not_too_exact(three, value):
    with pytest.raises(BudgetError, match="numerators and denominators of at most"):
        discrete_laplace(three, value)
    with pytest.raises(BudgetError, match="numerators and denominators of at most"):
        discrete_laplace(three, [Fraction(1), value, Fraction(1)])
    assert (discrete_laplace(three, Fraction(1, 2**55)) == 0).all()
    assert np.abs(discrete_laplace(three, Fraction(2**55))).max() > 2**40


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_kappa_is_finite_and_not_negative(three, value):
    with pytest.raises(BudgetError, match="kappa must be from 0"):
        von_mises_fisher(three, np.eye(3), np.array([1.0, value, 1.0]))
    with pytest.raises(BudgetError, match="kappa must be from 0 to 1e6"):
        mean_resultant_length(3, np.array([1.0, value]))


def test_mean_directions_are_unit_rows(three):
    for mean in (
        np.eye(3) * 1.01,
        np.zeros((3, 3)),
        np.full((3, 3), np.nan),
        np.eye(2),
        np.ones((3, 1)),
        np.ones(3),
    ):
        with pytest.raises(ConfigError, match="mean"):
            von_mises_fisher(three, mean, 1.0)
    single = (np.ones((3, 7)) / np.sqrt(7)).astype(np.float32).astype(np.float64)
    assert von_mises_fisher(three, single, 1.0).shape == (3, 7)


def test_values_fit_the_rows(three):
    with pytest.raises(ConfigError, match="one value or 3"):
        multivariate_laplace(three, np.ones(2), 4)
    with pytest.raises(ConfigError, match="one value or 3"):
        discrete_laplace(three, [Fraction(1)] * 2)
    with pytest.raises(ConfigError, match="dimension must be 1"):
        multivariate_laplace(three, 1.0, 0)
    with pytest.raises(ConfigError, match="dimension must be 2"):
        mean_resultant_length(1, 1.0)


def test_weights_are_capped_integers_with_a_positive_one(three):
    good = np.ones((3, 4), dtype=np.int64)
    wrong: list[Any] = [good.astype(float), good[:2], good[:, :0], good[0], good.tolist()]
    for bad in wrong:
        with pytest.raises(ConfigError, match="weights must be"):
            choose_weighted(three, bad)
    for value in (-1, 2**50 + 1, -(2**63)):
        bad = good.copy()
        bad[1, 2] = value
        with pytest.raises(ConfigError, match="from 0 to 2"):
            choose_weighted(three, bad)
    bad = good.copy()
    bad[1] = 0
    with pytest.raises(ConfigError, match="a weight above 0"):
        choose_weighted(three, bad)


def test_counts_are_integers_for_every_column(three):
    weights = np.ones((3, 4), dtype=np.int64)
    good = np.ones(4, dtype=np.int64)
    assert choose_weighted(three, weights, good).shape == (3,)
    wrong: list[Any] = [
        good.astype(float),
        good[:3],
        np.ones((2, 4), np.int64),
        good.tolist(),
        np.int64(1),
    ]
    wrong += [np.where(np.arange(4) == 2, value, 1) for value in (-1, 2**31, 2**62, -(2**63))]
    for bad in wrong:
        with pytest.raises(ConfigError, match="counts must be"):
            choose_weighted(three, weights, bad)
    with pytest.raises(ConfigError, match="at most 4096"):
        choose_weighted(three, np.ones((3, 4097), np.int64), np.ones(4097, np.int64))
    with pytest.raises(ConfigError, match="a weight above 0"):
        choose_weighted(three, weights, np.array([[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 1]]))
    none = three.select(np.zeros(3, dtype=bool))
    assert choose_weighted(none, weights[:0], good).shape == (0,)


def test_no_rows_give_no_values(three):
    none = three.select(np.zeros(3, dtype=bool))
    assert multivariate_laplace(none, np.zeros(0), 4).shape == (0, 4)
    assert coordinate_laplace(none, np.zeros(0), 4).shape == (0, 4)
    assert discrete_laplace(none, Fraction(1)).shape == discrete_laplace(none, []).shape == (0,)
    assert von_mises_fisher(none, np.zeros((0, 4)), np.zeros(0)).shape == (0, 4)
    assert choose_weighted(none, np.zeros((0, 4), dtype=np.int64)).shape == (0,)
    assert mean_resultant_length(4, np.zeros(0)).shape == (0,)
