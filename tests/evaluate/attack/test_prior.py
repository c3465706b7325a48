"""Priors: what is usual, and what a small language model expects around released words."""

from typing import Any

import numpy as np
import pytest
from scipy import special
from tests.fixtures import NOUNS, gaussian_rows
from tests.models.conftest import SIZE, save, wordpiece

from textveil.evaluate.attack import Case, prior
from textveil.evaluate.attack.posterior import rank_candidates
from textveil.models import Ragged, load_context
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.table import row_frequency
from textveil.table.embedding import EmbeddingTable
from textveil_bench.attack.masked import Masked

TEXTS = ["The lemon, and the river-bridge.", "apple", "Was it a pillow in the garden?"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random masked language model that knows the 60 words."""
    return str(
        save(
            tmp_path_factory.mktemp("lm"),
            "BertForMaskedLM",
            wordpiece(),
            **SIZE,
            max_position_embeddings=64,
        )
    )


@pytest.fixture(scope="module")
def table():
    return EmbeddingTable.build(name="sixty", words=NOUNS, vectors=gaussian_rows(60, 8, 3))


@pytest.fixture(scope="module")
def view(table):
    return Case.create(Privatizer("noise", epsilon=3, table=table, seed=1), TEXTS).view


def test_static_priors(table):
    uniform, unigram = (
        np.exp(prior.get_static_prior(table, "uniform")),
        np.exp(prior.get_static_prior(table, "unigram")),
    )
    assert np.allclose(uniform, 1 / 60)
    assert unigram.sum() == pytest.approx(1)
    assert np.array_equal(np.argsort(unigram), np.argsort(row_frequency.compute_shares(table)))
    assert unigram.min() >= prior.UNIFORM_SHARE / 60


@pytest.mark.parametrize(("stopwords", "usual"), [("pass", "new"), ("protect", "the")])
def test_words_of_the_public_list_are_expected_where_they_are_protected(
    stopwords, usual, monkeypatch
):
    """By whoever guesses blindly: before single words, before mixed ones, and beside a language model."""
    monkeypatch.setattr(row_frequency, "load_counts", lambda: {"the": 100, "new": 10, "lemon": 3})
    words = ["lemon", "the", "new", "river"]
    table = EmbeddingTable.build(name="four", words=words, vectors=gaussian_rows(4, 3, 1))
    options: dict[str, Any] = {"table": table, "words": {"stopwords": stopwords}, "seed": 1}
    view = Case.create(Privatizer("exponential", epsilon=1.0, **options), ["lemon river"]).view
    mixed = Case.create(Privatizer("d-chi-stencil", L=3, eta=9.0, **options), ["lemon river"]).view
    for each in (view, mixed):
        found = rank_candidates(each, prior="unigram", k=2, rng=SeededRandomness(1))
        assert {words[row] for row in found.blind} == {usual}
    case = Case.create(Privatizer("exponential", epsilon=1.0, **options), ["new the"])
    outcome = next(iter(Masked(k=2).run(case, rng=SeededRandomness(1))))
    assert outcome.baseline == (0.5 if stopwords == "protect" else 1.0)


def test_rows_of_the_public_list_stand_for_words_outside_the_table_where_they_pass(monkeypatch):
    """The model's word for "the" is none that was protected; what falls on its row is: 4.5 of 20."""
    monkeypatch.setattr(
        row_frequency, "count_by_row", lambda table, listed=False: np.array([4, 4, 10, 0])
    )
    words = ["the", "lemon", "new", "river"]
    logits = np.array([[9.0, 2.0, 1.0, 0.0]], np.float32)
    found = {}
    for stopwords in ("pass", "protect"):
        table = EmbeddingTable.build(name="four", words=words, vectors=gaussian_rows(4, 3, 1))
        privatizer = Privatizer("noise", epsilon=1.0, table=table, words={"stopwords": stopwords})
        found[stopwords] = prior.convert_logits(Case.create(privatizer, ["lemon"]).view, logits)[0]
    others = special.softmax(logits[0, 1:]) * (1 - 4.5 / 20)
    assert np.allclose(found["pass"], [4.5 / 20, *others])
    assert np.allclose(found["protect"], special.softmax(logits[0]))


def test_a_model_sees_the_released_words_as_they_stand(view):
    seen = prior.get_released_words(view)
    assert list(seen.words) == list(view.items)
    assert [b - a for a, b in zip(seen.documents, seen.documents[1:], strict=False)] == [9, 1, 8]
    spaced = dict(zip(range(9), seen.spaced.tolist(), strict=False))
    assert [i for i in range(9) if not spaced[i]] == [2, 6, 7, 8], (
        "comma, hyphen, bridge, full stop"
    )


def test_a_placeholder_is_no_word(table):
    view = Case.create(Privatizer("placeholder", table=table), TEXTS).view
    assert [word for word in prior.get_released_words(view).words if word.startswith("[")] == []
    assert prior.get_released_words(view).words.count("") == len(view.output_rows)


def by_hand(view, folder, words):
    """The mixture from logits over words that are given."""
    model = load_context(view.table, folder)
    logits = model.compute_logits(
        Ragged(words=words, documents=view.documents, spaced=prior.get_released_words(view).spaced),
        view.item,
    )
    expected = special.softmax(prior.LOGIT_FACTOR * logits.astype(np.float64), axis=1)
    return (1 - prior.UNIGRAM_SHARE) * expected + prior.UNIGRAM_SHARE * np.exp(
        prior.get_static_prior(view.table, "unigram")
    )


def together(view, folder, positions):
    found = np.full((len(positions), 60), np.nan)
    for which, expected in prior.yield_context_prior(view, view.item[positions], folder):
        found[which] = np.exp(expected)
    return found


def test_context_is_the_tempered_model_and_what_is_usual(view, folder):
    everywhere = np.arange(len(view.output_rows))
    found = together(view, folder, everywhere)
    assert np.allclose(found.sum(axis=1), 1, atol=1e-5)
    assert np.allclose(found, by_hand(view, folder, list(view.items)), atol=1e-6)
    some = np.array([4, 0])
    assert np.allclose(together(view, folder, some), found[some], atol=1e-6)


def test_the_released_word_of_a_position_is_not_looked_at_and_its_neighbours_are(view, folder):
    found = together(view, folder, np.array([1]))
    hidden, beside = list(view.items), list(view.items)
    hidden[view.item[1]], beside[view.item[0]] = "ocean", "ocean"
    assert np.allclose(found, by_hand(view, folder, hidden)[1], atol=1e-6)
    assert not np.allclose(found, by_hand(view, folder, beside)[1], atol=1e-6)


def test_logits_of_many_positions_are_never_held_together(view, folder, monkeypatch):
    monkeypatch.setattr(prior, "MAX_PRIOR_LOGITS", 60 * 20)
    parts = [which for which, _ in prior.yield_context_prior(view, view.item, folder)]
    assert len(parts) > 1
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(view.output_rows)))


def test_pieces_have_no_language_model_prior(wordpiece_table):
    privatizer = Privatizer(
        "noise", epsilon=9, table=wordpiece_table, words={"unit": "wordpiece"}, seed=1
    )
    view = Case.create(privatizer, TEXTS).view
    assert "whole words" in prior.explain_refusal(view, "context")
    assert prior.explain_refusal(view, "unigram") == ""
