"""What a trigram model is asked, and what becomes of its answers."""

from types import SimpleNamespace

import numpy as np
import pytest

from textveil.evaluate.attack import trigram

WORDS = ["The", "Cat", ",", "sat", "down", ".", "zzz", "dogs"]
DOCUMENTS = np.array([0, 6, 8])


@pytest.fixture
def asked(monkeypatch):
    """A model that does not know zzz, and likes short words; and what it was asked."""
    found = []

    def prob(words):
        found.append(tuple(words))
        return (
            trigram.UNKNOWN_LOG_SCORE if words[0] == "zzz" else -10_000 * len(words[0]) * len(words)
        )

    monkeypatch.setattr(trigram, "load", lambda: SimpleNamespace(prob=prob))
    return found


def test_a_word_stands_between_its_neighbours_and_signs_are_left_out(asked):
    found = trigram.score_choices(WORDS, DOCUMENTS, np.array([1]), [["Lynx", "Ox", "zzz"]])
    for word in ("lynx", "ox"):
        for question in ((word, "the", "<s>"), ("sat", word, "the"), ("down", "sat", word)):
            assert question in asked
    assert {question for question in asked if len(question) > 1 and "zzz" in question} == set()
    assert found.shape == (1, 3, 3)
    own = (
        trigram.LOG_UNIT * 10_000 * np.array([3.0, -3.0])
    )  # four letters and two, each asked with two words before it
    assert np.allclose(found[0, :2, 0], -own)
    assert not found[0, :, 1:].any()  # the same of both
    assert not found[0, 2].any()


def test_nothing_is_asked_beyond_an_unknown_word_or_the_end(asked):
    found = trigram.score_choices(WORDS, DOCUMENTS, np.array([0, 4, 7]), [["a", "bb"]] * 3)
    several = {question for question in asked if len(question) > 1}
    for word in ("a", "bb"):
        assert {question for question in several if word in question} == {
            (word, "<s>"),
            ("cat", word, "<s>"),
            ("sat", "cat", word),
            (word, "sat", "cat"),
            ("</s>", word, "sat"),
            ("</s>", word),  # behind an unknown word, which is not told
        }
    assert (word,) in asked
    assert (found[:, 0, 0] > found[:, 1, 0]).all()


def test_the_model_of_english_knows_what_follows():
    pytest.importorskip("pocketsphinx")
    words = ["I", "drank", "a", "cup", "of", "tea", "this", "morning", "."]
    found = trigram.score_choices(
        words, np.array([0, len(words)]), np.array([3, 5]), [["cup", "dog"], ["tea", "war"]]
    )
    assert (found[:, 0].sum(axis=1) > found[:, 1].sum(axis=1) + 2).all()
    assert trigram.score_choices(words, np.array([0, len(words)]), np.array([], int), []).shape == (
        0,
        0,
        3,
    )
