"""Budgets: which values are taken, and how unequal ones reach the words."""

import math

import numpy as np
import pytest

from textveil.config import resolve
from textveil.config.sections import WordsOptions
from textveil.errors import BudgetError, ConfigError
from textveil.protect import Grouped
from textveil.protect.budget import MAX_BUDGET, MIN_BUDGET, Uniform, check_range
from textveil.protect.protection import build_ungrouped, find_public_words

PROTECTION = build_ungrouped(find_public_words(["the", "river", "runs"], WordsOptions()))


@pytest.mark.parametrize("epsilon", [0, 0.0, -0.0, MIN_BUDGET, 0.5, 60, 1e6, MAX_BUDGET, math.inf])
def test_uniform_gives_every_word_the_same(epsilon):
    assigned = Uniform(epsilon).assign(PROTECTION)
    assert assigned.dtype == np.float64
    assert assigned.tolist() == [epsilon] * 3


@pytest.mark.parametrize(
    "epsilon",
    [
        math.nan,
        -1,
        -1e-300,
        -math.inf,
        5e-324,
        MIN_BUDGET * (1 - 1e-12),
        MAX_BUDGET * (1 + 1e-12),
        1e300,
    ],
)
def test_uniform_refuses(epsilon):
    with pytest.raises(
        BudgetError, match=r"^epsilon must be 0, infinite, or a number from 1e-06 to 1e\+06, got "
    ):
        Uniform(epsilon)


def test_the_error_is_one_line_and_a_config_error():
    with pytest.raises(ConfigError) as caught:
        Uniform(math.nan)
    assert "\n" not in str(caught.value)
    assert "got nan" in str(caught.value)


@pytest.mark.parametrize(
    "epsilon", ["sixty", 10**400, None, True], ids=["word", "huge", "none", "bool"]
)
def test_what_is_no_number_is_refused(epsilon):
    with pytest.raises(BudgetError):
        Uniform(epsilon)


@pytest.mark.parametrize("epsilon", [np.float32(60), np.int64(60), np.float64(60)])
def test_numbers_of_numpy_are_numbers(epsilon):
    assert Uniform(epsilon).assign(PROTECTION).tolist() == [60.0] * 3


def test_in_range_returns_the_values_untouched():
    values = np.array([0.0, 1.0, math.inf, MIN_BUDGET, MAX_BUDGET])
    assert check_range(values, "eta") is values
    assert check_range(np.empty(0), "eta").size == 0


@pytest.mark.parametrize("wrong", [math.nan, -0.5, -math.inf, 1e-9, 2e6])
def test_in_range_finds_one_wrong_value_among_many(wrong):
    values = np.full(1000, 3.0)
    values[617] = wrong
    with pytest.raises(BudgetError, match=r"^eta must be") as caught:
        check_range(values, "eta")
    assert f"{wrong:g}" in str(caught.value)


def test_uniform_is_frozen():
    with pytest.raises(AttributeError):
        Uniform(1.0).epsilon = 2.0  # type: ignore[misc]


def test_epsilon_with_a_profile_of_groups_is_the_largest_of_their_budgets():
    config = resolve(profile="document", overrides={"epsilon": 2.0})
    assert Grouped.build(config.groups, config.epsilon).budgets == (1.0, 0.5, 2.0, 1.5)
    assert config.names.epsilon == 6  # it has its own
