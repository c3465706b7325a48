"""The search for budgets: levels that can be reached are, others are left out, and no budget is tried twice."""

import numpy as np
import pytest

from textveil import Privatizer
from textveil_bench import calibrate


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


def test_levels_outside_of_what_a_mechanism_can_do_have_the_budget_that_comes_nearest():
    def share(budget):
        return 0.08 + 0.1 / (1 + np.exp(-(budget - 12)))

    budgets = found(share, (0.05, 0.1, 0.3))
    assert share(budgets[0.05]) == pytest.approx(0.08, abs=0.002)
    assert budgets[0.1] == pytest.approx(10.6, abs=0.65)
    assert share(budgets[0.3]) == pytest.approx(0.18, abs=0.002)


def test_levels_that_a_share_jumps_past_have_the_nearer_side():
    budgets = found(lambda b: 0.9 if b > 7 else 0.01, (0.05, 0.6))
    assert budgets[0.05] < 7 < budgets[0.6]


def test_budgets_that_cannot_be_are_not_found():
    assert found(lambda b: 1.0, (0.05,)) == {0.05: None}


def test_a_budget_for_several_levels_is_there_once(monkeypatch):
    monkeypatch.setattr(calibrate, "share", lambda make, texts, prior, budget, *_: 0.3 if budget > 7 else 0.01)
    budgets = calibrate.budgets(lambda _: pytest.fail("unused"), [], (0.1, 0.25, 0.4), start=10, prior="uniform")
    assert sorted(budgets) == [0.1, 0.25]


def test_the_share_at_the_budget_is_that_of_the_attack():
    texts = ["the anchor saw a lantern in the harbor"] * 40

    def make(budget):
        return Privatizer("krr", epsilon=budget, table="minilm-s", seed=3)

    out = calibrate.budgets(make, texts, (0.3,), start=8, prior="uniform")
    kept = np.exp(out[0.3]) / (np.exp(out[0.3]) + 21_718)
    assert kept == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / 120) + 0.04), "of 120 words; five standard errors and NEAR"
    assert calibrate.share(make, texts, "uniform", 0.001) < 0.05
