"""Several releases of one text: what an attacker gets who weighs them all, with memory and without."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats
from tests.fixtures import NOUNS, gaussian_rows

from textveil.errors import ConfigError
from textveil.evaluate.attack import Bayes, Case
from textveil.evaluate.attack.bayes import list_release_counts
from textveil.evaluate.attack.posterior import rank_after_releases, rank_candidates
from textveil.pipeline.consistent import Replay
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.session import Session
from textveil.table import EmbeddingTable
from textveil_bench.attack import attack
from textveil_bench.attack.neighbour import Neighbour

EPSILON = 1.5
SIZE = 4
RNG = SeededRandomness(5)
UNIFORM = Bayes(priors=("uniform",), k=2)


@pytest.fixture(scope="module")
def four():
    return EmbeddingTable.build(name="four", words=NOUNS[:SIZE], vectors=gaussian_rows(SIZE, 8, 7))


def case_of(table, texts, name="krr", *, session=None, releases=1, **options):
    privatizer = Privatizer(name, table=table, seed=2, **(options or {"epsilon": EPSILON}))
    return Case.create(privatizer, texts, releases=releases, session=session)


def randomised_response():
    """P(y | x) [4, 4] in closed form."""
    law = np.ones((SIZE, SIZE))
    np.fill_diagonal(law, np.exp(EPSILON))
    return law / law.sum(axis=1, keepdims=True)


def promised(releases):
    """How often the best guess is right, summed over everything that can be released."""
    law = randomised_response()
    each = (
        np.prod([law[:, y] for y in drawn], axis=0)
        for drawn in product(range(SIZE), repeat=releases)
    )
    return sum(joint.max() for joint in each) / SIZE


def top1(case, memory="drawn anew"):
    """The share named after each number of releases."""
    found = attack(case, [UNIFORM], rng=RNG)
    rows = [row for row in found.rows if row.metric == "top-1" and row.slice == "all"]
    return {row.setting["releases"]: row.value for row in rows if row.setting["memory"] == memory}


def test_the_posterior_of_everything_three_releases_can_say(four):
    """All 64 outcomes of randomised response over four words."""
    case = case_of(four, [" ".join(NOUNS[:SIZE])] * 16, releases=3)
    drawn = np.array(list(product(range(SIZE), repeat=3)))
    views = [
        replace(view, output_rows=rows, visible_word_rows=rows)
        for view, rows in zip(case.view.other_releases, drawn.T[1:], strict=True)
    ]
    view = replace(
        case.view,
        output_rows=drawn[:, 0],
        visible_word_rows=drawn[:, 0],
        other_releases=tuple(views),
    )
    for number, found in zip(
        (1, 2, 3),
        rank_after_releases(view, [1, 2, 3], prior="uniform", k=SIZE, rng=RNG),
        strict=True,
    ):
        joint = np.prod(randomised_response()[:, drawn[:, :number]], axis=2).T
        expected = joint / joint.sum(axis=1, keepdims=True)
        got = np.empty_like(expected)
        np.put_along_axis(got, found.candidates, np.exp(found.log_probability), axis=1)
        assert np.allclose(got, expected, atol=1e-6)
        assert found.evidence == "exact"


def test_success_is_what_enumeration_promises(four):
    """4,000 words; false alarm below 1e-5 for each of three numbers of releases."""
    words = np.random.default_rng(3).choice(NOUNS[:SIZE], 4000)
    found = top1(case_of(four, [" ".join(words)], releases=3))
    for number, value in found.items():
        low, high = stats.binom.ppf([5e-6, 1 - 5e-6], 4000, promised(number)) / 4000
        assert low <= value <= high
    assert sorted(found) == [1, 2, 3]


def test_more_releases_tell_more(four):
    """Two say no more than one: where they differ, the guess is one of both."""
    assert promised(1) == pytest.approx(promised(2))
    assert promised(2) < promised(3) < promised(4) < promised(5)
    words = np.random.default_rng(4).choice(NOUNS[:SIZE], 4000)
    found = top1(case_of(four, [" ".join(words)], releases=8))
    assert found[2] < found[3] < found[5] < found[8]


@pytest.mark.parametrize(("name", "options"), [("krr", {"epsilon": 3.0}), ("noise", {"eta": 9.0})])
def test_the_first_release_is_attacked_as_one_alone(small_table, name, options):
    texts = [" ".join(NOUNS)] * 3
    one, several = (case_of(small_table, texts, name, releases=n, **options) for n in (1, 3))
    first = replace(several, view=replace(several.view, other_releases=()))
    found = [attack(case, [UNIFORM], rng=SeededRandomness(1)).to_json() for case in (one, first)]
    assert found[0] == found[1]
    assert {tuple(row["setting"]) for row in found[0]["rows"]} == {("prior",)}


class Anew(Replay):
    """The twin of memory: it knows what was drawn before, and releases the new draw."""

    def apply(self, release):
        return release


@pytest.mark.parametrize("twin", [False, True])
def test_memory_keeps_twelve_releases_at_the_value_of_one(four, monkeypatch, twin):
    """1,600 words; the test that twelve tell more than one accuses memory never, and misses the twin below 1e-6."""
    if twin:
        monkeypatch.setattr("textveil.pipeline.privatizer.Replay", Anew)
    session = Session()
    session.repeats = "user"
    words = np.random.default_rng(6).choice(NOUNS[:SIZE], 1600)
    case = case_of(four, [" ".join(words)], releases=12, session=session)
    found = top1(case)
    alarm = stats.binom.ppf(1 - 1e-6, 1600, promised(1)) / 1600
    assert (found[12] > alarm) == twin
    assert (np.ptp(case.view.release_rows, axis=1) > 0).any() == twin
    assert top1(case, "drawn once") == {12: found[1]}


def test_a_law_that_is_estimated_is_summed_too(small_table):
    """Where the law is estimated, several releases still tell more, and it is said that this is a lower bound."""
    case = case_of(small_table, [" ".join(NOUNS)] * 4, "noise", releases=5, eta=9.0)
    found = top1(case)
    assert found[5] > found[1] + 0.1
    rows = attack(case, [UNIFORM], rng=RNG).rows
    assert all(
        row.note.startswith("a lower bound")
        for row in rows
        if row.metric == "top-1" and row.slice == "all"
    )


def test_parts_give_what_the_whole_gives(small_table, monkeypatch):
    case = case_of(small_table, [" ".join(NOUNS)] * 3, "exponential", releases=3, c=2.5)
    whole = rank_candidates(replace(case.view), prior="uniform", k=3, rng=RNG)
    monkeypatch.setattr("textveil.evaluate.attack.channel.MAX_LOG_PROBABILITIES", 60 * 7)
    parts = rank_candidates(replace(case.view), prior="uniform", k=3, rng=RNG)
    assert np.array_equal(whole.candidates, parts.candidates)
    assert np.allclose(whole.log_probability, parts.log_probability)


def test_who_looks_at_one_release_says_so(four, small_table):
    found = attack(
        case_of(four, [" ".join(NOUNS[:SIZE])], releases=2), [UNIFORM, Neighbour()], rng=RNG
    )
    assert found.refused == {"neighbour": "this attack uses only one release of a text"}
    assert found.to_json()["releases"] == 2
    mixed = case_of(
        small_table, [" ".join(NOUNS)], "d-chi-stencil", releases=2, L=3, sigma=0.75, eta=20.0
    )
    assert "from one release" in attack(mixed, [UNIFORM], rng=RNG).refused["bayes"]


def test_there_is_at_least_one_release(four):
    with pytest.raises(ConfigError, match="1 or more, got 0"):
        case_of(four, ["a"], releases=0)


def test_steps_end_with_all_releases():
    assert [list_release_counts(n) for n in (1, 2, 4, 12)] == [
        [1],
        [1, 2],
        [1, 2, 3, 4],
        [1, 2, 3, 5, 8, 12],
    ]
