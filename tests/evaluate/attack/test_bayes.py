"""The Bayes attacker against posteriors by hand, and success against what the law promises."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.evaluate.attack.test_channel import law_by_hand
from tests.fixtures import NOUNS
from tests.models.conftest import SIZE, save, wordpiece

from textveil.errors import ConfigError, UnknownName
from textveil.evaluate.attack import Case, prior
from textveil.evaluate.attack.bayes import Bayes
from textveil.evaluate.attack.channel import find_exact_map
from textveil.evaluate.attack.joint_posterior import decode
from textveil.evaluate.attack.posterior import rank_candidates
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil_bench.attack import attack

C = 2.5
CANARY = "zzcanaryzz"
RNG = SeededRandomness(5)


def case_of(table, name="exponential", texts=None, **options):
    return Case.create(
        Privatizer(name, table=table, seed=2, **options), texts or [" ".join(NOUNS)] * 5
    )


@pytest.fixture(scope="module")
def case(small_table):
    return case_of(small_table, c=C)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(
        save(
            tmp_path_factory.mktemp("lm"),
            "BertForMaskedLM",
            wordpiece(),
            **SIZE,
            max_position_embeddings=128,
        )
    )


def by_hand(view, priors):
    """Posterior [n, V] from priors [n, V] or [V]."""
    joint = priors * law_by_hand(view.table, C)[:, view.output_rows].T
    return joint / joint.sum(axis=1, keepdims=True)


def priors_by_hand(view, name, folder):
    if name != "context":
        return np.exp(prior.get_static_prior(view.table, name))
    found = np.empty((len(view.output_rows), len(view.table)))
    for which, expected in prior.yield_context_prior(
        view, np.arange(len(view.output_rows)), folder
    ):
        found[which] = np.exp(expected)
    return found


@pytest.mark.parametrize("name", prior.PRIORS)
def test_the_posterior_is_that_of_bayes(case, folder, name):
    view = replace(case.view)
    found = rank_candidates(view, prior=name, k=4, model=folder, rng=RNG)
    priors = priors_by_hand(view, name, folder)
    expected = by_hand(view, priors)
    assert found.evidence == "exact"
    assert found.candidates.tolist() == np.argsort(-expected, axis=1)[:, :4].tolist()
    assert np.allclose(np.exp(found.log_probability), -np.sort(-expected, axis=1)[:, :4], atol=1e-5)
    assert np.array_equal(found.blind, np.broadcast_to(priors, expected.shape).argmax(axis=1))


def test_the_context_changes_guesses(case, folder):
    one, other = (
        rank_candidates(case.view, prior=name, model=folder, rng=RNG)
        for name in ("unigram", "context")
    )
    assert (one.candidates[:, 0] != other.candidates[:, 0]).any()


def test_a_posterior_is_computed_once_and_again_for_more_candidates(case):
    view = replace(case.view)
    first, second = (rank_candidates(view, prior="unigram", k=k, rng=RNG) for k in (5, 3))
    assert np.shares_memory(first.candidates, second.candidates)
    more = rank_candidates(view, prior="unigram", k=600, rng=RNG)
    assert more.candidates.shape == (300, 60)
    assert np.array_equal(more.candidates[:, :5], first.candidates)


def test_outcomes_are_shares_of_guesses(case, folder):
    outcomes = {
        (each.setting["prior"], each.metric): each
        for each in Bayes(k=3, model=folder).run(case, rng=RNG)
    }
    assert len(outcomes) == 12
    for name in prior.PRIORS:
        priors = priors_by_hand(case.view, name, folder)
        expected = by_hand(case.view, priors)
        order, secret = np.argsort(-expected, axis=1), case.truth.rows[:, None]
        first, within = outcomes[name, "top-1"], outcomes[name, "top-3"]
        assert first.values.tolist() == (order[:, :1] == secret)[:, 0].tolist()
        assert within.values.tolist() == (order[:, :3] == secret).any(axis=1).tolist()
        blind = np.broadcast_to(priors, expected.shape).argmax(axis=1)
        usual = 1 / 60 if name == "uniform" else np.mean(blind == secret[:, 0])
        assert first.baseline == pytest.approx(usual)
        assert first.note == within.note == "exact law"
        stated, brier = outcomes[name, "stated top-1"].values, outcomes[name, "Brier score"].values
        assert np.allclose(stated, expected.max(axis=1), atol=1e-5)
        assert np.allclose(brier, (stated - first.values) ** 2)
        assert [each.headline for each in outcomes.values()].count(True) == 3


def test_success_is_what_the_law_promises_and_what_the_attacker_states(small_table):
    """12,000 words drawn evenly; false alarm 1e-6. The twin, who takes c for half of it, states another rate."""
    words = np.random.default_rng(3).choice(NOUNS, 12_000)
    case = case_of(small_table, c=C, texts=[" ".join(words)])
    _, promised = find_exact_map(case.view.mechanism, small_table, C, np.full(60, -np.log(60)))
    found = rank_candidates(case.view, prior="uniform", rng=RNG)
    right = found.candidates[:, 0] == case.truth.rows
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], len(right), promised) / len(right)
    assert low <= right.mean() <= high
    twin = rank_candidates(
        replace(case.view, parameter=case.view.parameter / 2), prior="uniform", rng=RNG
    )
    for ranking, honest in ((found, True), (twin, False)):
        surprise = right.mean() - np.exp(ranking.log_probability[:, 0]).mean()
        assert (abs(surprise) <= (high - low) / 2) == honest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("noise", {"eta": 9.0}),
        pytest.param("polar", {"kappa": 9.0}, marks=pytest.mark.slow),
        pytest.param("laplace", {"nominal": 20.0}, marks=pytest.mark.slow),
    ],
)
def test_an_estimated_channel_says_so_and_loses_little(small_table, name, options):
    """As often right as the best guess from 2,000 simulations of every row."""
    case = case_of(small_table, name, texts=[" ".join(NOUNS)] * 20, **options)
    rng = SeededRandomness(9)
    first, *_ = Bayes(priors=("uniform",), draws=400).run(case, rng=rng)
    assert first.note.startswith("a lower bound")
    assert "400" in first.note
    simulated = case_of(small_table, name, texts=[" ".join(NOUNS)] * 2000, **options)
    counts = np.zeros((60, 60))
    np.add.at(counts, (simulated.truth.rows, simulated.view.output_rows), 1)
    ideal = counts.argmax(axis=0)[case.view.output_rows] == case.truth.rows
    assert 0.1 < ideal.mean() < 0.95
    assert abs(first.values.mean() - ideal.mean()) < 0.05


def test_a_placeholder_is_guessed_from_the_prior_alone(small_table):
    case = case_of(small_table, "placeholder")
    found = rank_candidates(case.view, prior="unigram", k=60, rng=RNG)
    unigram = prior.get_static_prior(small_table, "unigram")
    assert (found.candidates == np.argsort(-unigram)).all()
    assert np.allclose(found.log_probability, -np.sort(-unigram))
    rows = attack(case, [Bayes(priors=("unigram",))]).rows
    assert next(row for row in rows if row.metric == "top-1").value == pytest.approx(1 / 60)


def test_a_deterministic_mechanism_hides_nothing(small_table):
    case = case_of(small_table, "stencil", L=1)
    first, *_ = Bayes(priors=("unigram",)).run(case, rng=RNG)
    assert first.values.mean() == 1.0
    assert first.note == "exact law"


@pytest.mark.slow
def test_mixed_words_are_guessed_together(small_table):
    case = case_of(small_table, "d-chi-stencil", L=3, eta=20.0)
    outcomes = list(Bayes(k=20).run(case, rng=SeededRandomness(6)))
    view, even = case.view, np.full(60, 1 / 60)
    seen = (
        view.mechanism,
        view.table,
        view.layout,
        view.parameter,
        view.output_rows,
        view.pass_rows,
    )
    guesses, _ = decode(*seen, even, k=9, rng=SeededRandomness(6))
    assert {each.setting["prior"] for each in outcomes} == {"uniform", "unigram"}
    first, within, *_ = outcomes
    assert (first.metric, within.metric) == ("top-1", "top-9")
    assert (
        first.note
        == within.note
        == "a lower bound: words that were mixed are guessed together, approximately"
    )
    right = guesses == case.truth.rows[:, None]
    assert first.values.tolist() == right[:, 0].tolist()
    assert within.values.tolist() == right.any(axis=1).tolist()


def test_what_cannot_be_guessed_is_refused(small_table, wordpiece_table):
    empty = case_of(small_table, "noise", texts=["the of and"], epsilon=3.0)
    assert "no word" in attack(empty, [Bayes()]).refused["bayes"]
    privatizer = Privatizer(
        "noise", epsilon=9, table=wordpiece_table, words={"unit": "wordpiece"}, seed=1
    )
    pieces = Case.create(privatizer, [f"lemon {CANARY}"])
    assert {each.setting["prior"] for each in Bayes(draws=4).run(pieces, rng=RNG)} == {
        "uniform",
        "unigram",
    }
    with pytest.raises(ConfigError) as caught:
        rank_candidates(pieces.view, prior="context", rng=RNG)
    assert CANARY not in str(caught.value)


def test_nothing_of_a_text_is_in_a_repr(small_table):
    case = case_of(small_table, texts=[f"lemon {CANARY}"], c=C)
    found = rank_candidates(case.view, prior="uniform", rng=RNG)
    assert CANARY not in repr(found)
    assert "array" not in repr(found)


def test_options():
    with pytest.raises(ConfigError):
        Bayes(priors=())
    with pytest.raises(ConfigError):
        Bayes(priors=("unigram", "unigram"))
    with pytest.raises(ConfigError):
        Bayes(priors=("zipf",))  # type: ignore[arg-type]
    with pytest.raises(UnknownName):
        Bayes(prior="unigram")  # type: ignore[call-arg]


def test_an_attacker_knows_the_public_list_that_makes_the_groups():
    """Of two listed words the right one is guessed about every second time, however little the draw tells."""
    from textveil import Privatizer

    words = ["anchor", "lantern"]
    privatizer = Privatizer(
        "krr",
        table="minilm-s",
        seed=5,
        protect={"importance": "list", "important": words},
        groups={"budgets": (0, 0, 1e-6, 0)},
    )
    case = Case.create(privatizer, [f"the {word} and the harbor" for word in words * 150])
    assert case.view.row_group is not None
    assert (case.view.row_group == case.view.group[0]).sum() == 2
    outcomes = Bayes(priors=("uniform",), k=2).run(case, rng=SeededRandomness(1))
    found = {outcome.metric: outcome for outcome in outcomes}
    assert len(found["top-1"].values) == 300
    assert found["top-1"].values.mean() == pytest.approx(0.5, abs=5 * (0.25 / 300) ** 0.5)
    assert found["top-2"].values.mean() == 1
    assert found["stated top-1"].values.mean() == pytest.approx(0.475, abs=0.01)
