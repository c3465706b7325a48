"""Sums, shares and the highest of numbers held as logarithms, against scipy and sorting."""

import numpy as np
import pytest
from scipy import special

from textveil.evaluate import log_math
from textveil.evaluate.log_math import compute_log_sum, find_highest, softmax


@pytest.fixture(params=[1, 1 << 16])
def values(request, monkeypatch):
    """Lines of several kinds, worked on one by one, or together."""
    monkeypatch.setattr(log_math, "NUMBERS_AT_ONCE", request.param)
    found = np.random.default_rng(0).normal(size=(7, 900)) * 300
    found[1], found[2, ::2], found[3] = 5.0, -np.inf, np.round(found[3] / 300)
    return found


def test_sums_and_shares_are_those_of_scipy(values):
    assert np.allclose(compute_log_sum(values), special.logsumexp(values, axis=1), rtol=1e-14)
    single = values.astype(np.float32)
    assert np.allclose(
        softmax(single), special.softmax(single.astype(np.float64), axis=1), atol=1e-6
    )
    assert softmax(single).dtype == np.float32


def test_the_sum_of_nothing_is_minus_infinity():
    assert compute_log_sum(np.full((2, 3), -np.inf)).tolist() == [-np.inf, -np.inf]
    assert compute_log_sum(np.empty((0, 3))).shape == (0,)


@pytest.mark.parametrize("k", [1, 5, 28, 29, 900])
def test_the_highest_are_the_first_of_a_sorted_line(values, k):
    assert np.array_equal(
        find_highest(values, k), np.argsort(-values, axis=1, kind="stable")[:, :k]
    )
    assert find_highest(values[:0], k).shape == (0, k)
