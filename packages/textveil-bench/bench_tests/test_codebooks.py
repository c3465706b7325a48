"""The best rules with an epsilon, by linear programs, beside those that are known; figures of a trigram model."""

import sys
from importlib import import_module
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from textveil.mechanism import compute_information, compute_information_limit, compute_keep_rate
from textveil.table import EmbeddingTable

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
codebooks = import_module("codebooks")


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_of_equally_frequent_codes_randomised_response_is_the_best(epsilon):
    """Kairouz, Oh and Viswanath 2014: it keeps most, and of two codes it tells most."""
    for codes in (2, 3, 6):
        assert codebooks.most_kept(np.full(codes, 1 / codes), epsilon) == pytest.approx(
            compute_keep_rate(codes, epsilon)
        )
    even = np.full(2, 0.5)
    assert codebooks.most_told(even, epsilon) == pytest.approx(compute_information(even, epsilon))


def test_of_unequal_codes_it_is_the_best_that_any_mixture_of_sharp_rules_reaches():
    """Three codes, of which one is rare: the best of all rules that answer one of some codes, by hand."""
    masses, epsilon = np.array([0.6, 0.35, 0.05]), 1.0
    e = np.exp(epsilon)
    two = (0.6 * e + 0.35 * e) / (1 + e)  # the rare code is never released
    three = e / (e + 2)
    assert codebooks.most_kept(masses, epsilon) == pytest.approx(max(0.6, two, three))
    assert codebooks.most_kept(masses, 5.0) == pytest.approx(compute_keep_rate(3, 5.0))


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_what_is_told_at_most_lies_between_randomised_response_and_the_limit(epsilon):
    for seed in range(5):
        masses = np.random.default_rng(seed).dirichlet(np.full(5, 0.7))
        told = codebooks.most_told(masses, epsilon)
        assert (
            compute_information(masses, epsilon) - 1e-9
            <= told
            <= compute_information_limit(epsilon) + 1e-9
        )
        law = np.exp(
            epsilon * np.array(list(product((0, 1), repeat=5)))[1:-1].T
        )  # every set of codes, at random
        law /= law.sum(axis=1, keepdims=True)
        joint = masses[:, None] * law
        assert float((joint * np.log2(law / joint.sum(axis=0))).sum()) <= told + 1e-9


def test_surprise_is_the_mean_over_words_that_all_versions_know():
    """Two texts, a model that counts: what it is asked, and the mean of each text."""
    asked = []

    def prob(words):
        asked.append(tuple(words))
        return codebooks.UNKNOWN if words[0] == "zzz" else -10_000 * len(words)

    items = ("a", "zzz", "b", ",", "c", "d")
    case = SimpleNamespace(view=SimpleNamespace(items=items, documents=np.array([0, 4, 6])))
    where, (one, other) = codebooks.surprise(
        [items, ("A", "x", "zzz", ",", "e", "f")], case, SimpleNamespace(prob=prob)
    )
    assert where.tolist() == [0, 1]
    np.testing.assert_allclose(
        [one, other], 10_000 * np.log(1.0001) * np.array([[2, 2.5], [2, 2.5]])
    )
    assert ("a", "<s>") in asked  # the second and third words are unknown to one of both
    assert ("d", "c", "<s>") in asked
    assert not any(len(words) > 1 and words[0] == "b" for words in asked)


def test_what_is_explained_is_what_lies_between_the_means():
    """Four words in a line, one of them three times as heavy, by hand."""
    rows, weights, codes = (
        np.array([[0.0], [2.0], [6.0], [8.0]]),
        np.array([1.0, 1.0, 1.0, 3.0]),
        np.array([0, 0, 1, 1]),
    )
    mean = (0 + 2 + 6 + 3 * 8) / 6
    whole = (0 - mean) ** 2 + (2 - mean) ** 2 + (6 - mean) ** 2 + 3 * (8 - mean) ** 2
    between = 2 * (1 - mean) ** 2 + 4 * (7.5 - mean) ** 2
    assert codebooks.explained(rows, weights, codes) == pytest.approx(between / whole)
    assert codebooks.explained(rows, weights, np.arange(4)) == pytest.approx(1)
    assert codebooks.explained(rows, weights, np.zeros(4, np.int64)) == pytest.approx(0)


@pytest.mark.slow
def test_levels_stand_beside_books_of_their_own(monkeypatch):
    """The coarsest level is the book that it would be alone; a finer one explains more than a coarser one."""
    words = tuple(f"{a}{b}" for a in "abcdefghij" for b in "uvwxyz")
    rows = np.random.default_rng(1).normal(size=(60, 5))
    small = EmbeddingTable.build(name="small", words=words, vectors=rows)
    monkeypatch.setattr("textveil.table.load_table", lambda name: small)
    monkeypatch.setattr(codebooks, "LEVELS", (3, 7, 20))
    found = {(row["release"], row["metric"]): row["value"] for row in codebooks.levels()}
    assert len(found) == 12
    for metric in ("variance", "bits"):
        assert found["3 codes", f"{metric}, level"] == found["3 codes", f"{metric}, alone"]
    for name in ("level", "alone"):
        shares = [found[f"{codes} codes", f"variance, {name}"] for codes in (3, 7, 20)]
        assert 0 < shares[0] < shares[1] < shares[2] < 1
