"""Mechanisms that only draw: what their attacker names beside who knows the law, and twins that draw otherwise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from tests.fixtures import NOUNS, Opaque, Stub

from textveil.evaluate.attack import Bayes, Case, sampled_channel
from textveil.evaluate.attack.attack_contract import ignore_progress
from textveil.evaluate.attack.channel import explain_refusal, is_sampled, yield_likelihoods
from textveil.evaluate.attack.posterior import rank_candidates
from textveil.evaluate.attack.sampled_channel import estimate_by_drawing
from textveil.mechanism import Block, Layout, papers
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness

FEW = 1e-6
"""The false-alarm rate of tests that count."""

TEXTS = [" ".join(NOUNS)] * 20
RNG = SeededRandomness(3)


def shift(rows):
    """Every word is another: the broken twin's draws are of other words."""
    return (rows + 1) % len(NOUNS)


@pytest.fixture(scope="module")
def case(small_table):
    return Case.create(Privatizer("exponential", c=3.0, table=small_table, seed=3), TEXTS)


def top_1(case, mechanism, **options):
    """The rate of the Bayes attacker who believes in a mechanism."""
    view = replace(case.view, mechanism=mechanism)
    ranking = rank_candidates(view, prior="uniform", rng=RNG, **options)
    return float((ranking.candidates[:, 0] == case.truth.rows).mean()), ranking.evidence


def interval(rate, n):
    """Where a share of n lies but with probability `FEW`."""
    return binom.ppf(FEW / 2, n, rate) / n, binom.isf(FEW / 2, n, rate) / n


def test_draws_name_as_many_words_as_the_law(case):
    law, evidence = top_1(case, case.view.mechanism)
    assert evidence == "exact"
    low, high = interval(law, len(case.truth.rows))
    assert 0.1 < low < law < high < 0.8, "neither nothing nor all is named"
    drawn, evidence = top_1(case, Opaque(case.view.mechanism))
    assert evidence == "estimated"
    assert low <= drawn <= high
    twin, _ = top_1(case, Opaque(case.view.mechanism, shift))
    assert twin < low, "the broken twin: draws for other words name fewer"


def test_a_law_that_has_nothing_to_do_with_distances_is_learned_from_the_draws(small_table):
    """Nearly every word is released as one that is not near: the pool of equal distances is worth nothing."""
    mechanism = Opaque(papers.exponential(c=30.0), shift)
    case = Case.create(Privatizer(mechanism, table=small_table, seed=3), TEXTS)
    released = case.view.output_rows
    assert (released == case.truth.rows).mean() < 0.1
    assert top_1(case, mechanism)[0] > 0.9
    assert top_1(case, mechanism, draws=2)[0] > 0.5
    assert top_1(case, Opaque(papers.exponential(c=30.0)))[0] < 0.1


def test_many_draws_are_the_law(small_table):
    """By the largest total variation from it."""
    mechanism, rows = papers.exponential(c=3.0), np.arange(60)
    block = Block(layout=Layout.build(*np.ones_like(rows)), rows=rows)
    written = mechanism.log_probs(small_table, block, np.full(60, 3.0))
    assert written is not None
    law = np.exp(written)

    def find_variation(drawn, count):
        found = np.exp(
            estimate_by_drawing(
                drawn,
                small_table,
                rows,
                3.0,
                np.repeat(rows, count),
                rng=RNG,
                report=ignore_progress,
            ).T
        )
        assert np.isfinite(found).all()
        assert (found > 0).all()
        return np.abs(found - law).sum(axis=1).max() / 2

    few, many = (find_variation(Opaque(mechanism), count) for count in (4, 400))
    alone = np.sqrt(60 / 400) / 2  # the most that counts without a pool are off by, on average
    assert many < alone < few < 0.5
    assert find_variation(Opaque(mechanism, shift), 400) > 2 * alone


def test_a_row_that_no_draw_became_is_ordered_by_the_pool(small_table):
    """All that is known of it is which distances are usual."""
    never = Stub(release=lambda table, block: np.where(block.secret == 5, 6, block.secret))
    lines = estimate_by_drawing(
        never,
        small_table,
        np.array([5, 7]),
        1.0,
        np.repeat(np.arange(60), 9),
        rng=RNG,
        report=ignore_progress,
    )
    assert lines.argmax(axis=1).tolist() == [5, 7]


def test_the_outcome_says_that_it_was_estimated(case):
    opaque = replace(case, view=replace(case.view, mechanism=Opaque(case.view.mechanism)))
    assert is_sampled(opaque.view)
    assert explain_refusal(opaque.view) == ""
    outcomes = {
        outcome.metric: outcome for outcome in Bayes(priors=("uniform",)).run(opaque, rng=RNG)
    }
    assert outcomes["top-1"].note == (
        "a lower bound: the law was estimated from 64 draws for each released word, of words "
        "alone in their text, and pooled by distance"
    )
    fewer = outcomes["top-1 of 16 draws"]
    assert not fewer.headline
    assert fewer.values.mean() <= outcomes["top-1"].values.mean() + 0.05
    (exact, *_) = Bayes(priors=("uniform",)).run(case, rng=RNG)
    assert exact.metric == "top-1"


def test_placeholders_that_a_mechanism_draws_tell_nothing(small_table):
    halves = Stub(release=lambda table, block: np.where(block.secret % 2, -1, block.secret))
    case = Case.create(Privatizer(halves, epsilon=1.0, table=small_table), TEXTS[:1])
    lines = np.full((60, 60), np.nan)
    for part in yield_likelihoods(case.view, draws=64, rng=RNG):
        lines[part.positions] = part.lines[part.which[:, 0]]
    hidden = case.view.output_rows == -1
    assert hidden.any()
    assert not lines[hidden].any()
    assert (lines[~hidden].argmax(axis=1) == case.truth.rows[~hidden]).all()


def test_equal_rows_and_large_tables_need_no_ranks(small_table, monkeypatch):
    monkeypatch.setattr(sampled_channel, "MAX_RANKED_ROWS", 10)
    mechanism = Opaque(papers.exponential(c=9.0))
    case = Case.create(Privatizer(mechanism, table=small_table, seed=1), TEXTS)
    unranked = top_1(case, mechanism)[0]
    monkeypatch.undo()
    assert unranked == pytest.approx(top_1(case, mechanism)[0], abs=0.05)
