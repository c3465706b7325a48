"""What a released code tells of a word: exact values, beside the mechanism's own law written out over words."""

import numpy as np
import pytest
from tests.fixtures import NOUNS, book_of, gaussian_rows

from textveil import Privatizer
from textveil.errors import ConfigError
from textveil.mechanism import (
    Block,
    Law,
    Layout,
    compute_fitting_codes,
    compute_information,
    compute_information_limit,
    compute_keep_rate,
    entropy,
)
from textveil.table import EmbeddingTable

TABLE = EmbeddingTable.build(name="small", words=NOUNS, vectors=gaussian_rows(60, 8, 7))


def written_out(prior: np.ndarray, law: np.ndarray) -> float:
    """sum p(x) P(y|x) log2 P(y|x) / P(y), over all pairs."""
    joint = prior[:, None] * law
    return float((joint * np.log2(law / joint.sum(axis=0))).sum())


def test_two_codes_by_hand():
    """A binary symmetric channel that errs in one draw of four: 1 - H(1/4) bits."""
    assert compute_information(np.array([0.5, 0.5]), np.log(3)) == pytest.approx(
        1 - (2 - 0.75 * np.log2(3))
    )
    assert entropy(np.array([0.5, 0.25, 0.25])) == 1.5
    assert entropy(np.array([0.0, 3.0])) == 0
    assert compute_keep_rate(8, np.log(7)) == pytest.approx(0.5)


@pytest.mark.parametrize("codes", [2, 3, 40])
def test_nothing_at_epsilon_0_and_the_entropy_at_infinity(codes):
    shares = np.random.default_rng(codes).dirichlet(np.ones(codes)).astype(np.float32)
    assert compute_information(shares, 0) == pytest.approx(0, abs=1e-12)
    for epsilon in (60.0, 2000.0, np.inf):
        assert compute_information(shares, epsilon) == pytest.approx(entropy(shares), abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
@pytest.mark.parametrize("codes", [2, 6, 30])
def test_it_is_that_of_the_mechanism_over_words(codes, epsilon):
    """Unequal words, unequal codes: what the mechanism's law says of all 60 words, none of them left out."""
    prior = np.random.default_rng(1).dirichlet(np.full(60, 0.3))
    book = book_of(TABLE, codes)
    coarse = TABLE.coarsen(book)
    mechanism = Privatizer("codebook", epsilon=epsilon, table=coarse).mechanism
    assert isinstance(mechanism, Law)
    law = mechanism.log_probs(
        coarse,
        Block(layout=Layout.build(*[1] * 60), rows=coarse.lookup(NOUNS)[0]),
        np.full(60, epsilon),
    )
    assert law is not None
    masses = coarse.sum_by_row(prior)
    assert compute_information(masses, epsilon) == pytest.approx(
        written_out(prior, np.exp(law)), abs=1e-12
    )
    assert compute_information(5 * masses, epsilon) == pytest.approx(
        compute_information(masses, epsilon)
    )


def test_more_codes_are_worth_it_only_where_epsilon_is_large():
    few, many = np.full(4, 1 / 4), np.full(64, 1 / 64)
    assert compute_information(few, 2) > compute_information(many, 2)
    assert compute_information(few, 6) < compute_information(many, 6)


def rule(epsilon: float, words: int, outputs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A prior, and a random rule whose probabilities of one output have few values."""
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(words, 0.5))
    law = np.exp(epsilon * (rng.random((words, outputs)) < rng.random())) * rng.dirichlet(
        np.ones(outputs)
    )
    law /= law.sum(axis=1, keepdims=True)
    return prior, law


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 6.0])
def test_no_rule_tells_more_than_the_limit(epsilon):
    """Random rules, each held to the epsilon that it has; the limit of a tenth of it is often broken."""
    broken = 0
    for seed in range(200):
        prior, law = rule(epsilon, 12, 5, seed)
        own = float((np.log(law.max(axis=0)) - np.log(law.min(axis=0))).max())
        if own > 0:
            assert written_out(prior, law) <= compute_information_limit(own) + 1e-12
            broken += written_out(prior, law) > compute_information_limit(own / 10)
    assert broken > 100


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0, 8.0])
def test_randomised_response_reaches_the_limit_where_codes_are_as_many_as_is_best(epsilon):
    """Over so many codes that their number is whole; with half or twice as many it tells less."""
    from scipy.optimize import brentq

    codes = max(2, round(compute_fitting_codes(epsilon)))
    exact = brentq(lambda e: compute_fitting_codes(e) - codes, epsilon / 2, 2 * epsilon)
    assert compute_information(np.ones(codes), exact) == pytest.approx(
        compute_information_limit(exact), abs=1e-9
    )
    for other in (2 * codes, max(2, codes // 2)):
        if other != codes:
            assert compute_information(np.ones(other), exact) < 0.99 * compute_information_limit(
                exact
            )


@pytest.mark.parametrize("epsilon", [-1.0, np.nan])
def test_refused(epsilon):
    with pytest.raises(ConfigError, match="epsilon must be 0 or more"):
        compute_information(np.array([0.5, 0.5]), epsilon)
