"""Attacks, measures and the risk view on releases over codes: words are guessed, not codes."""

import numpy as np
import pytest
from tests.fixtures import NOUNS, book_of, gaussian_rows

from textveil import Privatizer
from textveil.evaluate import risk
from textveil.evaluate.attack import Case
from textveil.evaluate.attack.bayes import Bayes
from textveil.evaluate.attack.posterior import rank_candidates
from textveil.randomness import SystemRandomness
from textveil.table import EmbeddingTable, compute_shares
from textveil_bench.attack.membership import Membership
from textveil_bench.attack.neighbour import Neighbour
from textveil_bench.measure.mapping import sets
from textveil_bench.measure.words import cosine, retention

CODES, EPSILON = 6, 3.0
TABLE = EmbeddingTable.build(name="small", words=NOUNS, vectors=gaussian_rows(60, 8, 7))
BOOK = book_of(TABLE, CODES)
COARSE = TABLE.coarsen(BOOK)
TEXTS = [" ".join(np.random.default_rng(seed).choice(NOUNS, 40)) for seed in range(10)]
RNG = SystemRandomness()


@pytest.fixture(scope="module")
def case():
    return Case.create(Privatizer("codebook", epsilon=EPSILON, table=COARSE), TEXTS, releases=2)


def test_the_truth_is_words_and_what_was_drawn_are_codes(case):
    assert case.truth.rows.tolist() == TABLE.lookup(case.secret_words)[0].tolist()
    assert case.truth.table_rows.tolist() == BOOK.codes[case.truth.rows].tolist()
    assert case.view.output_rows.max() < CODES
    assert case.view.visible_word_rows.tolist() == BOOK.spelling[case.view.output_rows].tolist()
    assert case.view.visible_rows.tolist() == case.view.output_rows.tolist()
    assert case.view.origin is TABLE


def test_the_posterior_is_bayes_rule_over_words(case):
    found = rank_candidates(case.view, prior="unigram", k=60, rng=RNG)
    prior = 0.5 / 60 + 0.5 * compute_shares(TABLE)
    kept = np.exp(EPSILON) / (np.exp(EPSILON) + CODES - 1)
    law = np.full((CODES, CODES), (1 - kept) / (CODES - 1))
    law[np.diag_indices(CODES)] = kept
    for i in range(20):
        joint = prior.copy()
        for drawn in case.view.release_rows[i].tolist():
            joint *= law[BOOK.codes, drawn]
        joint /= joint.sum()
        np.testing.assert_allclose(
            np.exp(found.log_probability[i]), np.sort(joint)[::-1], rtol=1e-5
        )
        np.testing.assert_allclose(joint[found.candidates[i]], np.sort(joint)[::-1], rtol=1e-5)


def test_words_of_one_code_are_as_likely_as_before(case):
    """Of two words of one code, no release tells which it was: their odds stay those of the prior."""
    found = rank_candidates(case.view, prior="uniform", k=60, rng=RNG)
    for i in range(20):
        given = np.empty(60)
        given[found.candidates[i]] = found.log_probability[i]
        for code in range(CODES):
            assert np.ptp(given[BOOK.codes == code]) < 1e-6


def test_words_are_named_no_more_often_than_their_codes_allow(case):
    top = {
        each.metric: each
        for each in Bayes(priors=("uniform",)).run(case, rng=RNG)
        if each.setting["releases"] == 1
    }
    assert (
        top["top-1"].values.mean() < 0.2
    )  # one word of ten; the code is right in four of five draws
    assert top["top-1"].baseline == 1 / 60


def test_other_attacks_measures_and_the_risk_view(case):
    for attack in (Neighbour(), Membership()):
        assert attack.refusal(case.view) == ""
        assert list(attack.run(case, rng=RNG))
    kept = next(retention(case))
    spelled = (
        np.isin(case.truth.rows, BOOK.spelling) & (case.view.visible_rows == case.truth.table_rows)
    ).mean()
    assert kept.values.mean() == pytest.approx(spelled)
    assert next(cosine(case)).values.max() <= 1 + 1e-6
    outputs = {each.metric: each.values for each in sets(case, draws=50, words=20, rng=RNG)}
    np.testing.assert_allclose(outputs["N_w"], np.exp(EPSILON) / (np.exp(EPSILON) + CODES - 1))
    privatizer = Privatizer("codebook", epsilon=EPSILON, table=COARSE)
    (found,) = risk.assess(
        Case.build(privatizer, privatizer.rehearse(TEXTS[:1]), names=True), prior="uniform"
    )
    assert np.nanmax(found.probability) <= 0.1


def test_words_that_were_mixed_as_codes_are_not_guessed_together():
    mixed = Case.create(Privatizer("d-chi-stencil", epsilon=9, table=COARSE), TEXTS[:1])
    assert "mixed as codes" in Bayes().refusal(mixed.view)
