"""The curve of risk: the same attackers at other budgets, and what is scaled."""

import math

import numpy as np
import pytest

from tests.evaluate.attack.test_learned import PRIVATE, PUBLIC
from tests.fixtures import NOUNS, gaussian_rows
from textveil.config import resolve
from textveil.evaluate import curve as curves
from textveil.evaluate.attack import Case
from textveil.evaluate.curve import FACTORS, FEW_FACTORS, choose_factors, compute_curve
from textveil.evaluate.risk import assess
from textveil.guarantee import summarize
from textveil.pipeline import Privatizer
from textveil.protect import Grouped
from textveil.randomness.streams import SeededRandomness
from textveil.table.embedding import EmbeddingTable

TEXTS = ["The lemon and the castle, a river and an onion.", "A river by the castle."]


@pytest.fixture(scope="module")
def table():
    return EmbeddingTable.build(name="sixty", words=NOUNS, vectors=gaussian_rows(60, 8, 3))


def assessed(table, texts=TEXTS, prior="uniform", public=(), factor=1.0, **options):
    """What is assessed directly under some options, without a curve."""
    config = curves.scale_budgets(resolve(overrides=options), factor)
    privatizer = Privatizer.from_config(config, table=table)
    run = privatizer.rehearse(texts)
    case = Case.build(privatizer, run, names=True)
    risks = assess(case, prior=prior, public=public, rng=SeededRandomness(1))
    return config, risks, summarize([result.guarantee for result in run.results])


def share(risks):
    return np.nansum([np.nansum(risk.expected) for risk in risks]) / sum(
        int(risk.private.sum()) for risk in risks
    )


OPTIONS = {"mechanism": "exponential", "epsilon": 3.0, "seed": 3}


def test_each_point_is_what_the_same_attacker_is_expected_to_name_at_that_budget(table):
    config, risks, guarantee = assessed(table, **OPTIONS)
    points = compute_curve(config, TEXTS, risks, guarantee, prior="uniform", table=table)
    assert [point.factor for point in points] == [*FACTORS]
    assert [point.epsilon for point in points] == pytest.approx([3 * f for f in FACTORS], rel=1e-4)
    for point in points:
        _, direct, statement = assessed(table, factor=point.factor, **OPTIONS)
        assert point.shares == {"uniform": pytest.approx(share(direct), abs=1e-9)}
        assert point.bound == pytest.approx(statement.epsilon_ldp)
    shares = [point.shares["uniform"] for point in points]
    assert shares == sorted(shares)
    assert shares[-1] > shares[0] + 0.3
    # the twin at one budget only has other numbers
    assert max(shares) - share(risks) > 0.1


def test_the_attacker_who_learned_has_a_line_of_his_own_and_the_given_point_is_not_drawn_again(
    table,
):
    options = {"mechanism": "exponential", "epsilon": 6.0}
    config, risks, guarantee = assessed(
        table, texts=PRIVATE, prior="unigram", public=PUBLIC, **options
    )
    points = compute_curve(
        config,
        PRIVATE,
        risks,
        guarantee,
        prior="unigram",
        public=PUBLIC,
        table=table,
        factors=(1 / 4, 1.0),
        rng=SeededRandomness(1),
    )
    assert [set(point.shares) for point in points] == [{"unigram", "learned"}] * 2
    assert points[1].shares["learned"] == share(risks)
    assert points[1].shares["learned"] > points[0].shares["learned"]


def test_where_nothing_is_drawn_there_is_no_curve(table):
    for options in (
        {"mechanism": "placeholder"},
        {"mechanism": "exponential", "epsilon": math.inf},
    ):
        config, risks, guarantee = assessed(table, **options)
        assert compute_curve(config, TEXTS, risks, guarantee, prior="uniform", table=table) == []


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": "noise", "mechanism.eta": 4.0},
        {
            "mechanism": "rankcape",
            "mechanism.k": 5,
            "groups.budgets": "heuristic",
            "groups.base": 2,
        },
        {"mechanism": "exponential", "groups.budgets": (1.0, 2.0, 0.0, math.inf)},
        {"mechanism": "exponential", "groups.budgets": "table1.2", "groups.convention": "code"},
        {"profile": "document"},
    ],
)
def test_every_way_to_set_a_budget_is_multiplied(options):
    profile = options.pop("profile", None)
    config = resolve(profile=profile, overrides=options)
    scaled = curves.scale_budgets(config, 2)
    if "mechanism.eta" in options:
        assert scaled.mechanism.options["eta"] == 8
    else:
        before, after = (
            Grouped.build(each.groups, each.epsilon).budgets for each in (config, scaled)
        )
        assert after == pytest.approx([2 * budget for budget in before])
    assert scaled.names.epsilon == 2 * config.names.epsilon
    assert scaled.figures.day_epsilon == 2 * config.figures.day_epsilon
    assert curves.scale_budgets(scaled, 0.5).names == config.names


def test_few_points_where_one_takes_long():
    assert choose_factors(0.1) == FACTORS
    assert choose_factors(100) == FEW_FACTORS
    assert 1.0 in FEW_FACTORS
    assert 1.0 in FACTORS


def test_a_point_shows_no_text(table):
    config, risks, guarantee = assessed(table, **OPTIONS)
    points = compute_curve(config, TEXTS, risks, guarantee, prior="uniform", table=table)
    assert not any(noun in repr(points) for noun in ("lemon", "castle", "river", "onion"))
