"""Exposure: words that pass count as guessed, placeholders are guessed by what is usual."""

import numpy as np
import pytest

from textveil import Privatizer
from textveil.evaluate.attack import Case
from textveil.evaluate.attack.bayes import Bayes
from textveil.randomness.streams import SeededRandomness
from textveil_bench.exposure import measure_exposure

TEXT = "the anchor of the harbor was in the garden with a lantern"


def attacked(budgets, text=TEXT, **options):
    protect = {"importance": "list", "important": ["anchor", "garden"]}
    privatizer = Privatizer(
        "krr", table="minilm-s", protect=protect, groups={"budgets": budgets}, seed=1, **options
    )
    case = Case.create(privatizer, [text])
    outcomes = Bayes(priors=("unigram",), k=2).run(case, rng=SeededRandomness(1))
    top = next(outcome for outcome in outcomes if outcome.metric == "top-1")
    return top, *measure_exposure(case, top)


@pytest.mark.slow
def test_where_all_is_drawn_nothing_is_added():
    top, everything, owners = attacked((60, 60, 60, 60))
    assert everything.values.tolist() == top.values.tolist() == [1, 1, 1, 1]
    assert owners.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(("budgets", "rate"), [((1, 1, np.inf, 1e-6), 0.5), ((1, 1, 60, 0), 0.5)])
def test_words_that_pass_are_guessed_and_placeholders_are_not(budgets, rate):
    top, everything, _ = attacked(budgets)
    assert len(top.values) == 2
    assert len(everything.values) == 4, "anchor, harbor, garden, lantern"
    assert everything.values.mean() == rate


def test_the_most_usual_word_behind_a_placeholder_is_guessed():
    from textveil.evaluate.attack.prior import get_static_prior
    from textveil.table.embedding import load_table

    table = load_table("minilm-s")
    usual = table.words[int(get_static_prior(table, "unigram").argmax())]
    _, everything, _ = attacked((1, 1, 60, 0), text=f"the anchor and {usual} and lantern")
    assert everything.values.tolist() == [1, 1, 0]


def test_behind_a_placeholder_nobody_guesses_a_word_of_another_group():
    """The most usual word is on the list: a placeholder of a word that is not is none of it."""
    from textveil.evaluate.attack.prior import get_static_prior
    from textveil.table.embedding import load_table

    table = load_table("minilm-s")
    first, second = (
        table.words[i] for i in (-get_static_prior(table, "unigram")).argsort()[:2].tolist()
    )
    protect = {"importance": "list", "important": [first, "anchor"]}
    privatizer = Privatizer(
        "krr", table="minilm-s", protect=protect, groups={"budgets": (1, 1, 60, 0)}, seed=1
    )
    case = Case.create(privatizer, [f"the anchor and {second} and {first}"])
    outcomes = Bayes(priors=("unigram",), k=2).run(case, rng=SeededRandomness(1))
    everything, _ = measure_exposure(
        case, next(outcome for outcome in outcomes if outcome.metric == "top-1")
    )
    assert sorted(everything.values.tolist()) == [1, 1, 1], (
        "the second most usual word is guessed behind its placeholder"
    )


def test_joined_words_count_as_many_as_they_are_alone():
    """A part that becomes one placeholder has as many words as where each of them is drawn; its "+" passes there."""

    def values(sensitive, **protect):
        privatizer = Privatizer(
            "krr",
            table="minilm-s",
            protect={"detectors": ["patterns"], **protect},
            groups={"budgets": (sensitive, sensitive, 60, 60)},
            seed=1,
        )
        case = Case.create(privatizer, ["call +49 30 901820 in the harbor"])
        outcomes = Bayes(priors=("unigram",), k=2).run(case, rng=SeededRandomness(1))
        found, owners = measure_exposure(
            case, next(outcome for outcome in outcomes if outcome.metric == "top-1")
        )
        assert len(owners) == len(found.values)
        return len(case.view.released[0].items), len(found.values)

    assert values(60, placeholders=[]) == (8, 5), "call, 49, 30, 901820, harbor"
    assert values(0) == (5, 5)
