"""The search for budgets: levels that can be reached are, others are left out, and no budget is tried twice."""

import numpy as np
import pytest

from textveil import Privatizer
from textveil.bench import calibrate


def found(share, levels, start=10.0):
    tried: dict[float, float] = {}
    calls: list[float] = []

    def look(budget):
        calls.append(budget)
        return share(budget)

    out = {level: calibrate._search(look, level, start, tried) for level in levels}
    assert len(calls) == len(set(calls))
    return out


@pytest.mark.parametrize("start", [0.02, 1, 10, 900])
def test_every_level_of_a_rising_share_is_found(start):
    levels = (0.05, 0.1, 0.2, 0.5)
    for level, budget in found(lambda b: 1 / (1 + np.exp(-(b - 12) / 3)), levels, start).items():
        assert budget is not None
        assert 1 / (1 + np.exp(-(budget - 12) / 3)) == pytest.approx(level, rel=0.12)


def test_levels_outside_of_what_a_mechanism_can_do_are_left_out():
    def share(budget):
        return 0.08 + 0.1 / (1 + np.exp(-(budget - 12)))

    assert found(share, (0.05, 0.1, 0.3)) == {0.05: None, 0.1: pytest.approx(10.6, abs=0.65), 0.3: None}


def test_levels_that_a_share_jumps_past_are_left_out():
    assert found(lambda b: 0.9 if b > 7 else 0.01, (0.05, 0.1)) == {0.05: None, 0.1: None}


def test_the_share_at_the_budget_is_that_of_the_attack():
    texts = ["the anchor saw a lantern in the harbor"] * 40

    def make(budget):
        return Privatizer("krr", epsilon=budget, table="minilm-s", seed=3)

    out = calibrate.budgets(make, texts, (0.3,), start=8, prior="uniform")
    kept = np.exp(out[0.3]) / (np.exp(out[0.3]) + 21_718)
    assert kept == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / 120) + 0.04), "of 120 words; five standard errors and NEAR"
    assert calibrate.share(make, texts, "uniform", 0.001) < 0.05
