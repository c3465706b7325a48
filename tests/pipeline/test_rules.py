"""Which options exclude which: every rule of the table has an example that breaks it, and it alone speaks."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.fixtures import NOUNS, Stub, book_of, gaussian_rows

from textveil.guarantee import Restricted as Restrict
from textveil.pipeline import option_rules
from textveil.pipeline.privatizer import Privatizer
from textveil.protect.budget import Uniform
from textveil.table import Books
from textveil.table.embedding import EmbeddingTable

LABELS = {"labels": "randomised", "label_epsilon": 1.0, "always": ["apple"]}
FINITE = {"budgets": (1, 1, 2, 2)}
NAMES = {"types": "PERSON"}
STUB = Stub(release=lambda table, block: block.secret.copy())
PIECES = [*NOUNS[:9], "##ing"]
WORDS = EmbeddingTable.build(name="words", words=NOUNS, vectors=gaussian_rows(60, 8, 7))
CODES = WORDS.coarsen(book_of(WORDS))
BY_GROUP = WORDS.coarsen(Books.build([book_of(WORDS, many) for many in (3, 3, 12, 6)]))


class Restricted(Stub):
    """Claims more for some pairs of words, and does not say for which."""

    def claim(self, table):
        return replace(
            super().claim(table), restricted=Restrict(domain="two words of one group", kind="ldp")
        )


FIGURES: dict[str, Any] = {"types": ["AGE"]}
EXAMPLES: dict[str, dict[str, Any]] = {
    "options go with a mechanism's name": {"mechanism": STUB, "k": 3},
    "a table is a table": {"table": 3},
    "a mechanism is a mechanism": {"mechanism": Stub},
    "a restricted claim has its methods": {"mechanism": Restricted(release=STUB.release)},
    "a table of pieces takes pieces": {
        "table": EmbeddingTable.build(name="pieces", words=PIECES, vectors=gaussian_rows(10, 8, 7)),
        "words": {"unit": "word"},
    },
    "re-ranking takes whole words": {"rerank": {"m": 2}, "words": {"unit": "wordpiece"}},
    "re-ranking tells equal words apart": {"rerank": {"m": 2}, "words": {"consistent": True}},
    "codebook needs codes": {"mechanism": "codebook"},
    "books by group need groups": {"table": BY_GROUP},
    "books by group take each word alone": {
        "mechanism": "d-chi-stencil",
        "table": BY_GROUP,
        "protect": {"always": ["apple"]},
    },
    "codes are of whole words": {"table": CODES, "words": {"unit": "wordpiece"}},
    "codes have no spelling to choose": {
        "table": WORDS.coarsen(book_of(WORDS), spelling="code"),
        "rerank": {"m": 2},
    },
    "one book is re-ranked": {
        "table": BY_GROUP,
        "protect": {"always": ["apple"]},
        "rerank": {"m": 2},
    },
    "names need a detector": {"names": NAMES},
    "drawn labels show no names": {
        "names": NAMES,
        "protect": LABELS,
        "groups": FINITE,
        "epsilon": None,
    },
    "figures need a detector": {"figures": FIGURES},
    "drawn labels show no figures": {
        "figures": FIGURES,
        "protect": LABELS,
        "groups": FINITE,
        "epsilon": None,
    },
    "equal figures are moved alike": {"figures": FIGURES, "protect": {"always": ["apple"]}},
    "identifiers need a detector": {"identifiers": {"types": ["all"]}},
    "equal identifiers have one surrogate": {
        "identifiers": {"types": ["all"]},
        "protect": {"always": ["apple"]},
    },
    "amounts have a unit": {"figures": {"unit": 10}, "protect": {"always": ["apple"]}},
    "budgets of groups need groups": {"groups": FINITE, "epsilon": None},
    "groups leave no word to a paper's rule": {
        "protect": {"always": ["apple"]},
        "words": {"oov": "drop"},
    },
    "names are whole words": {
        "protect": {"always": ["apple"]},
        "names": NAMES,
        "words": {"unit": "wordpiece"},
    },
    "drawn labels need a guarantee": {"mechanism": "stencil", "protect": LABELS},
    "drawn labels leave no trace in the mask": {"protect": LABELS, "words": {"oov": "keep"}},
    "groups or a budget": {
        "protect": {"always": ["apple"]},
        "groups": FINITE,
        "budget": Uniform(3),
        "epsilon": None,
    },
    "drawn labels need finite budgets": {"protect": LABELS},
    "equal words are drawn alone": {"mechanism": "d-chi-stencil", "words": {"consistent": True}},
    "lasting words are equal words": {"words": {"lasting": True}},
    "epsilon or a budget": {"budget": Uniform(3)},
    "a budget assigns": {"budget": 3, "epsilon": None},
    "something says what a word may spend": {"epsilon": None},
    "epsilon or the mechanism's parameter": {"eta": 2.0},
}


@pytest.fixture
def given(small_table):
    """The options of an example."""
    return lambda name: (
        {"mechanism": "noise", "epsilon": 3.0, "table": small_table} | EXAMPLES[name]
    )


def test_every_rule_has_an_example():
    assert [rule.name for rule in option_rules.EXCLUSIONS] == list(EXAMPLES)


@pytest.mark.parametrize("rule", option_rules.EXCLUSIONS, ids=lambda rule: rule.name)
def test_its_example_is_refused_by_this_rule(rule, given, monkeypatch):
    with pytest.raises(rule.error) as caught:
        Privatizer(**given(rule.name))
    assert len(str(caught.value)) > 40
    assert "\n" not in str(caught.value)

    def naming(each):
        return replace(each, say=lambda _: each.name)

    named = tuple(map(naming, option_rules.EXCLUSIONS))
    monkeypatch.setattr(option_rules, "EXCLUSIONS", named)
    with pytest.raises(rule.error) as caught:
        Privatizer(**given(rule.name))
    assert str(caught.value) == rule.name


def test_what_keeps_the_rules_is_built(given):
    """Or the rules would refuse everything."""
    for options in (
        {},
        {"rerank": {"m": 2}},
        {"words": {"consistent": True}},
        {"protect": {"always": ["apple"]}, "groups": FINITE, "epsilon": None},
        {"mechanism": "rankcape", "k": 5, "protect": LABELS, "groups": FINITE, "epsilon": None},
        {"budget": Uniform(3), "epsilon": None},
        {"eta": 2.0, "epsilon": None},
    ):
        made = Privatizer(**{**given("epsilon or a budget"), "budget": None, **options})
        assert np.isfinite(made.privatize("river apple").guarantee.epsilon), options
