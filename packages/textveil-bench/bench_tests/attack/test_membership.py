"""Membership: AUC against scikit-learn, thresholds by counting, and laws small enough to sum over all texts."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from tests.fixtures import NOUNS, Opaque, gaussian_rows

from textveil.evaluate.attack.attack_input import Case
from textveil.evaluate.attack.posterior import Ranking
from textveil.evaluate.attack.prior import get_static_prior
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.table import row_frequency
from textveil.table.embedding import EmbeddingTable
from textveil_bench.attack import membership as module
from textveil_bench.attack.membership import (
    Membership,
    compute_true_positives,
    rank_members,
    score_guesses,
)

FEW = 1e-6
"""The false-alarm rate of tests that count."""

ROWS = gaussian_rows(6, 3, 2)
TABLE = EmbeddingTable.build(name="six", words=NOUNS[:6], vectors=ROWS)
TEXTS = [f"{first} and {second}" for first, second in product(NOUNS[:6], NOUNS[:6])]
PRIORS = {"unigram": np.array([0.5, 0.02, 0.3, 0.05, 0.03, 0.1]), "uniform": np.full(6, 1 / 6)}


@dataclass(frozen=True)
class Alternating:
    """One epsilon for words at even places, another for those at odd ones."""

    even: float
    odd: float

    def assign(self, protection):
        return np.where(np.cumsum(~protection.public) % 2, self.even, self.odd)


def test_auc_is_that_of_scikit_learn():
    random = np.random.default_rng(0)
    members, others = random.integers(3, 12, 200) / 4, random.integers(0, 10, 900) / 4
    truth = np.repeat([1, 0], [200, 900])
    found = rank_members(members, np.sort(others)).mean()
    assert found == pytest.approx(
        roc_auc_score(truth, np.concatenate([members, others])), abs=1e-12
    )


def test_a_threshold_lets_no_more_through_than_the_rate():
    others = np.arange(1000.0)
    members = np.array([988.0, 989.0, 989.5, 990.0])
    assert compute_true_positives(members, others, 0.01).tolist() == [
        0.0,
        0.0,
        1.0,
        1.0,
    ]  # ten of the others are above 989
    for seed in range(20):
        others = np.sort(np.random.default_rng(seed).integers(0, 30, 1234) / 7)
        passing = [value for value in others if (others > value).sum() <= 0.01 * 1234]
        members = np.linspace(0, 5, 100)
        assert (
            compute_true_positives(members, others, 0.01).tolist()
            == (members > min(passing)).astype(float).tolist()
        )


def law(epsilon):
    """ln P(y | x) of the exponential mechanism, [x, y], from its definition."""
    unit = ROWS.astype(np.float64) / np.linalg.norm(ROWS.astype(np.float64), axis=1, keepdims=True)
    gaps = np.linalg.norm(unit[:, None] - unit[None], axis=2)
    parameter = Privatizer("exponential", epsilon=epsilon, table=TABLE)
    c = parameter.mechanism.calibrate(
        TABLE, Case.create(parameter, ["anchor"]).view.layout, np.array([epsilon])
    )[0]
    weights = -c * gaps
    return weights - np.log(np.exp(weights).sum(axis=1, keepdims=True))


def statistic(epsilon, prior):
    """ln P(y | x) - ln sum_x' prior(x') P(y | x'), [y, x]."""
    written = law(epsilon)
    return (written - np.log(np.exp(written).T @ prior)).T


def share_below(value, scores, weights):
    """The share of scores below a value, ties half."""
    return weights[scores < value - 1e-9].sum() + weights[np.abs(scores - value) <= 1e-9].sum() / 2


def wrong(case, prior_name, even, odd):
    """How far the AUC of words and of texts is from what sums over all words and texts give."""
    prior = PRIORS[prior_name]
    ratios = [statistic(even, prior), statistic(odd, prior)]
    drawn, secret = case.view.output_rows.reshape(-1, 2), case.truth.rows.reshape(-1, 2)
    count = len(drawn)
    scores: dict[str, list] = {"word": [], "text": []}
    weights: dict[str, list] = {"word": [], "text": []}
    members: dict[str, list] = {"word": [], "text": []}
    for b in range(count):
        both = [ratios[j][drawn[b, j]] for j in range(2)]
        members["word"] += [both[j][secret[b, j]] for j in range(2)]
        members["text"].append(sum(both[j][secret[b, j]] for j in range(2)))
        for each in both:
            scores["word"].append(each)
            weights["word"].append(prior / (2 * count))
        scores["text"].append((both[0][:, None] + both[1]).ravel())
        weights["text"].append(np.outer(prior, prior).ravel() / count)
    found = {
        o.unit: o.values
        for o in Membership(prior=prior_name).run(case, rng=SeededRandomness(5))
        if o.metric == "AUC"
    }
    return max(
        np.abs(
            found[unit]
            - [
                share_below(m, np.concatenate(scores[unit]), np.concatenate(weights[unit]))
                for m in members[unit]
            ]
        ).max()
        for unit in ("word", "text")
    )


MANY = 200_000
TOLERANCE = np.sqrt(np.log(4 * 3 * len(TEXTS) / FEW) / (2 * MANY))
"""Hoeffding: one of the shares of MANY non-members below, and not above, 3 * 36 members is off by more with FEW."""


@pytest.fixture
def many(monkeypatch):
    """So many non-members that a share of them is nearly a probability; and words that are unlike in frequency."""
    monkeypatch.setattr(module, "MIN_NON_MEMBERS", MANY)
    monkeypatch.setattr(module, "compute_view_prior", lambda view, name: np.log(PRIORS[name]))


@pytest.mark.parametrize("prior", ["unigram", "uniform"])
@pytest.mark.parametrize(("even", "odd"), [(2.0, 2.0), (1.0, 6.0)])
def test_auc_is_that_of_sums_over_all_words_and_texts(many, prior, even, odd):
    privatizer = Privatizer("exponential", budget=Alternating(even, odd), table=TABLE, seed=3)
    assert wrong(Case.create(privatizer, TEXTS), prior, even, odd) < TOLERANCE


def forgets(monkeypatch):
    """Leaves out how likely the release was anyway."""
    monkeypatch.setattr(
        module, "compute_log_marginals", lambda part, log_prior: np.zeros(len(part.lines))
    )


def draws_otherwise(monkeypatch):
    """Draws non-members that are not from the prior."""
    flat = np.full(len(TABLE), -np.log(len(TABLE)))
    real = module._draw_rows
    monkeypatch.setattr(
        module,
        "_draw_rows",
        lambda places, secret, _, each, rng: real(places, secret, flat, each, rng),
    )


@pytest.mark.parametrize("twin", [forgets, draws_otherwise])
def test_broken_twins_are_found(many, twin, monkeypatch):
    case = Case.create(
        Privatizer("exponential", budget=Alternating(1.0, 6.0), table=TABLE, seed=3), TEXTS
    )
    twin(monkeypatch)
    assert wrong(case, "unigram", 1.0, 6.0) > TOLERANCE


def test_placeholders_are_told_from_nothing():
    case = Case.create(Privatizer("placeholder", table=TABLE), TEXTS)
    for outcome in Membership().run(case, rng=SeededRandomness(1)):
        assert set(outcome.values) == ({0.5} if outcome.metric == "AUC" else {0.0})


def test_every_word_and_text_with_a_protected_word_has_a_value():
    case = Case.create(
        Privatizer("exponential", epsilon=4.0, table=TABLE),
        ["the and", "anchor the apple", "", "autumn"],
    )
    outcomes = list(Membership().run(case, rng=SeededRandomness(1)))
    assert {(o.unit, o.metric) for o in outcomes} == set(
        product(["word", "text"], ["AUC", "TPR at 1% FPR", "TPR at 0.1% FPR"])
    )
    for outcome in outcomes:
        assert outcome.where.tolist() == ([0, 1, 2] if outcome.unit == "word" else [1, 3])
        assert outcome.note == "exact law"


def test_non_members_are_words_of_the_public_list_too_where_these_are_protected(monkeypatch):
    """Hardly any word is like another to the law; so a member is above a non-member but where both are one word."""
    monkeypatch.setattr(row_frequency, "load_counts", lambda: {"the": 10_000_000})
    table = EmbeddingTable.build(name="three", words=["the", *NOUNS[:2]], vectors=np.eye(3))
    auc = {}
    for stopwords in ("pass", "protect"):
        words = {"stopwords": stopwords}
        case = Case.create(
            Privatizer("exponential", c=10.0, table=table, words=words, seed=1), ["apple"] * 200
        )
        auc[stopwords] = next(iter(Membership().run(case, rng=SeededRandomness(1)))).values.mean()
    # of non-members a third of all, and half of that, are the member's own word
    assert auc["pass"] == pytest.approx(1 - 1 / 6, abs=0.02)
    assert auc["protect"] == pytest.approx(1 - 1 / 12, abs=0.02)


def test_chunks_change_nothing(monkeypatch):
    case = Case.create(Privatizer("exponential", epsilon=4.0, table=TABLE), TEXTS)
    whole = list(Membership().run(case, rng=SeededRandomness(1)))
    case.view.memo.clear()
    monkeypatch.setattr(module, "MAX_SCORES", 700)
    for one, other in zip(whole, Membership().run(case, rng=SeededRandomness(1)), strict=True):
        # sums of two words, taken in other pieces, round otherwise; ties then break
        np.testing.assert_allclose(one.values, other.values, atol=0.02 if one.unit == "text" else 0)


def test_noise_is_a_lower_bound_and_grows_with_eta():
    rates = []
    for eta in (1.0, 10.0, 100.0):
        case = Case.create(Privatizer("noise", eta=eta, table=TABLE, seed=2), TEXTS)
        outcomes = list(Membership(draws=500).run(case, rng=SeededRandomness(1)))
        assert all(o.note.startswith("a lower bound") for o in outcomes)
        rates.append([o.values.mean() for o in outcomes if o.metric == "AUC"])
    assert rates == sorted(rates)
    words, texts = rates[-1]
    # Words come out as they were. The statistic is -ln prior(y) for all who name y, so that a member is below those
    # non-members that name a rarer y, rightly, and level with those that name its own.
    prior = np.exp(get_static_prior(TABLE, "unigram"))
    missed = [(prior[prior < each].sum() + each / 2) / len(prior) for each in prior]
    assert words == pytest.approx(1 - np.mean(missed), abs=0.01)
    assert texts > words


def test_guesses_become_ratios_of_posterior_to_prior():
    prior = np.array([0.4, 0.1, 0.2, 0.2, 0.1])
    found = Ranking(
        candidates=np.array([[2, 0], [3, 1]]),
        log_probability=np.log([[0.6, 0.2], [0.5, 0.3]]),
        blind=np.zeros(2, np.int64),
        evidence="estimated",
    )
    rows = np.array([[2, 0, 1, 3, 4], [4, 3, 2, 1, 0]])
    wanted = [
        [0.6 / 0.2, 0.2 / 0.4, 0.5, 0.5, 0.5],
        [0.2 / 0.7, 0.5 / 0.2, 0.2 / 0.7, 0.3 / 0.1, 0.2 / 0.7],
    ]
    scores = score_guesses(found, np.array([0, 1]), rows, np.log(prior))
    np.testing.assert_allclose(np.exp(scores), wanted)


def test_words_that_were_mixed_are_judged_by_joint_guesses(monkeypatch):
    case = Case.create(Privatizer("d-chi-stencil", eta=10.0, L=3, table=TABLE), TEXTS)
    secret = case.truth.rows
    guesses = np.stack([secret, (secret + 1) % len(TABLE)], axis=1)
    guesses[::2] = guesses[::2, ::-1]  # every other word is the second guess only
    ranking = Ranking(
        candidates=guesses,
        log_probability=np.log(np.tile([0.7, 0.2], (len(secret), 1))),
        blind=secret,
        evidence="estimated",
    )
    monkeypatch.setattr(module, "rank_candidates", lambda view, **_: ranking)
    outcomes = list(Membership(prior="uniform").run(case, rng=SeededRandomness(1)))
    words = next(o for o in outcomes if o.unit == "word" and o.metric == "AUC")
    # of six equally frequent rows one is the first guess, one the second, and four are none; ties count half
    np.testing.assert_allclose(words.values[1::2], 1 - 1 / 12, atol=0.03)
    np.testing.assert_allclose(words.values[::2], 1 - 1 / 4, atol=0.03)
    assert words.note.startswith("a lower bound")
    assert not Membership().refusal(case.view)


def test_refusals(small_table):
    mixed = Case.create(Privatizer("d-chi-stencil", L=3, eta=9.0, table=TABLE), TEXTS)
    assert Membership().refusal(mixed.view) == ""
    assert Membership().refusal(Case.create(Privatizer("placeholder", table=TABLE), ["the"]).view)
    nothing = Case.create(Privatizer("noise", epsilon=0.0, table=TABLE), TEXTS)
    assert Membership().refusal(nothing.view) == "no word is protected"
    assert not Membership().refusal(
        Case.create(Privatizer("noise", eta=1.0, table=TABLE), TEXTS).view
    )


def test_of_a_mechanism_that_only_draws_as_many_are_told_apart_as_by_its_law():
    case = Case.create(Privatizer("exponential", c=2.0, table=TABLE, seed=2), TEXTS)

    def words(mechanism):
        known = replace(case, view=replace(case.view, mechanism=mechanism))
        outcomes = Membership(prior="uniform", draws=256).run(known, rng=SeededRandomness(1))
        found = next(o for o in outcomes if o.unit == "word" and o.metric == "AUC")
        return found.values.mean(), found.note

    exact, _ = words(case.view.mechanism)
    drawn, note = words(Opaque(case.view.mechanism))
    twin, _ = words(Opaque(case.view.mechanism, lambda rows: (rows + 1) % len(TABLE)))
    assert exact - 0.02 < drawn < exact + 0.02
    assert note.startswith("a lower bound: the law was estimated from 256 draws")
    assert twin < 0.5 < 0.6 < exact, "the broken twin: another mechanism is drawn"
