"""The sentence about a release, for every registered mechanism and rule: it counts every word, and states the bound."""

import re
import warnings
from typing import Any

import pytest

from tests.fixtures import fit
from textveil.config import registry
from textveil.errors import TextveilWarning
from textveil.guarantee import Guarantee, compose, format_number, summarize
from textveil.pipeline import Privatizer

TEXT = "The lemon, the castle and 12 Zyxqorvians: a river, a river."


def release(table, name="noise", **options) -> Guarantee:
    given: dict[str, Any] = (
        {}
        if "epsilon" in options or not registry.find_budget_parameter(name)[1]
        else {"epsilon": 6.0}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TextveilWarning)
        return (
            Privatizer(name, table=fit(name, table), **given, **options).privatize(TEXT).guarantee
        )


def check(guarantee: Guarantee) -> None:
    said = guarantee.summary()
    assert (
        sum(map(int, re.findall(r"(\d+) (?:common )?(?:word|punctuation mark)s?\b", said)))
        == guarantee.words
    )
    assert said.startswith("No guarantee") == (guarantee.kind == "none")
    assert (
        guarantee.kind == "none"
        or not guarantee.epsilon
        or format_number(guarantee.epsilon) in said
    )
    assert ("knows the seed" in said) == (
        guarantee.seeded and "knows the seed" in guarantee.headline()
    )
    assert "between" not in said.lower()  # nothing of a promise for some pairs
    for_one_release(guarantee)
    twice = summarize([guarantee, guarantee]).summary()
    assert twice.lower().startswith(
        "no guarantee in 2 texts" if guarantee.kind == "none" else "in 2 texts"
    )


def for_one_release(guarantee: Guarantee) -> None:
    """Every statement says what a second release amounts to."""
    assert guarantee.to_json()["statement"] == guarantee.headline() in guarantee.explain()
    said = guarantee.headline().splitlines()[-1]
    if guarantee.repeatable:
        assert "This is for one release. " in said
        assert "statements of seeded releases do not add up" in said
        return
    assert "This is for one release; repeated releases add up." in said
    assert (
        "This is for 2 releases together; repeated releases add up."
        in compose([guarantee, guarantee]).headline()
    )
    assert "for one release;" in summarize([guarantee, guarantee]).headline()


@pytest.mark.parametrize("name", registry.list_names("mechanism"))
def test_every_mechanism(small_table, name):
    check(release(small_table, name))
    check(release(small_table, name, seed=1))


@pytest.mark.parametrize("epsilon", [0.0, float("inf")])
def test_budgets_of_nothing_and_of_everything(small_table, epsilon):
    guarantee = release(small_table, epsilon=epsilon)
    check(guarantee)
    assert ("became placeholders" if epsilon == 0 else "passed unprotected") in guarantee.summary()


RULES = (
    {"oov": "keep"},
    {"oov": "placeholder"},
    {"oov": "uniform"},
    {"oov": "drop"},
    {"numbers": "add"},
    {"consistent": True},
    {"stopwords": "protect"},
)


@pytest.mark.parametrize("words", RULES, ids=str)
def test_every_rule_for_words(small_table, words):
    for name in ("noise", "custext", "rankcape", "placeholder"):
        guarantee = release(small_table, name, words=words)
        check(guarantee)
        drawn = name in ("noise", "rankcape")
        assert ("equal words alike" in guarantee.summary()) == (
            words == {"consistent": True} and drawn
        )
