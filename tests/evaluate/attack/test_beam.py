"""Beam search over whole texts, beside the sum over all of them."""

from itertools import pairwise, product

import numpy as np
import pytest
from tests.fixtures import NOUNS

from textveil.config import WordsOptions
from textveil.evaluate.attack.beam import Beam, TrigramRatios
from textveil.evaluate.attack.knowledge import learn

C = 3
"""Candidates of each word."""

DOCUMENTS = np.array([0, 4, 4, 6, 7])


@pytest.fixture(scope="module")
def trigrams(small_table):
    """Of few words, so that some of their pairs and triples were seen."""
    draw = np.random.default_rng(1)
    texts = [" ".join(draw.choice(NOUNS[:5], 6)) for _ in range(8)]
    return TrigramRatios.count(learn(small_table, WordsOptions(), texts))


@pytest.fixture(scope="module")
def texts():
    """Candidates [T, C], how likely each is, and where texts start; one is not known, and one is the only one."""
    draw = np.random.default_rng(2)
    found, likely = (
        draw.integers(0, 6, (DOCUMENTS[-1], C)),
        draw.uniform(0.1, 1, (DOCUMENTS[-1], C)),
    )
    found[2, 0] = -1
    likely[5, 1:] = 0
    return found, likely, DOCUMENTS


def over_all(trigrams, weight, words, likely, documents):
    """The probability of each candidate over every text that can be written."""
    found = np.zeros(words.shape)
    for start, end in pairwise(documents.tolist()):
        for chosen in product(range(C), repeat=end - start):
            at = np.arange(start, end), np.array(chosen, int)
            line = np.array([-1, trigrams.edge, *words[at], trigrams.edge])
            found[at] += (
                likely[at].prod()
                * (trigrams.compute_ratios(line[:-2], line[1:-1], line[2:]) ** weight).prod()
            )
    return found / found.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("weight", [0.0, 0.7, 1.5])
def test_a_wide_beam_is_the_sum_over_all_texts(trigrams, texts, weight):
    found = Beam(trigrams=trigrams, width=C * C, weight=weight).decode(*texts)
    assert np.allclose(found, over_all(trigrams, weight, *texts), rtol=0, atol=1e-12)


def test_a_narrow_beam_misses_some_texts_and_one_text_is_certain(trigrams, texts):
    right = over_all(trigrams, 1.0, *texts)
    away = []
    for width in (1, 4, C * C):
        found = Beam(trigrams=trigrams, width=width, weight=1.0).decode(*texts)
        assert np.allclose(found.sum(axis=1), 1)
        if width == 1:
            assert np.isin(found, (0.0, 1.0)).all()
        away.append(np.abs(found - right).max())
    assert away[0] > away[1] > away[2]


def test_without_texts_nothing_is_decoded(trigrams):
    empty = np.empty((0, C), np.int64), np.empty((0, C))
    for documents in ([0], [0, 0]):
        assert Beam(trigrams=trigrams, width=5).decode(*empty, np.array(documents)).shape == (0, C)


def test_what_was_counted_is_a_probability_of_each_word(small_table):
    texts = ["apple river stone", "apple river apple", "zqword river stone castle"]
    known = learn(small_table, WordsOptions(), texts)
    trigrams = TrigramRatios.count(known)
    apple, river, stone, castle, new = known.find_ids(
        small_table, ["apple", "river", "stone", "castle", "zqword"]
    ).tolist()
    every = np.arange(len(known))

    def ratio(*words):
        return trigrams.compute_ratios(*map(np.array, words))

    def told(first, second):
        return known.share @ ratio(first, second, every)

    for first, second in (
        (apple, river),
        (new, river),
        (castle, river),
    ):  # no text ends behind these
        assert told(first, second) == pytest.approx(1)
    assert told(river, stone) < 1  # one does

    assert ratio(apple, river, apple) > ratio(castle, river, apple) > ratio(new, river, apple)
    assert ratio(-1, river, stone) == ratio(castle, river, stone)  # never seen, or not known
    assert ratio(apple, river, -1) == 1
    assert ratio(river, stone, trigrams.edge) > ratio(apple, river, trigrams.edge)
