"""Sentence vectors: the bundled encoder's and a folder's, long texts, empty ones, bad input."""

import numpy as np
import pytest

from textveil.encoder import Sentences, load_sentences
from textveil.errors import ConfigError, InputError, ModelError


@pytest.fixture(scope="module")
def sentences() -> Sentences:
    return load_sentences()


def test_texts_of_one_meaning_are_closer_than_others(sentences):
    doctor, physician, market = sentences.encode(
        ["A doctor spoke to a patient.", "The physician talked with the sick man.", "Stock markets fell."]
    )
    assert doctor @ physician > 0.5 > doctor @ market


def test_vectors_have_unit_length_and_a_text_without_words_has_none(sentences):
    found = sentences.encode(["one", "", " \n", "\N{GRINNING FACE}"])
    assert found.shape == (4, sentences.dimension == 384 and 384)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 0, 0, 1], abs=1e-5)


def test_no_texts_have_no_vectors(sentences):
    assert sentences.encode([]).shape == (0, 384)


def test_the_end_of_a_long_text_counts(sentences):
    long = "The weather was mild and the streets were quiet. " * 60
    one, other = sentences.encode([long, long + "The virus infected every patient of the hospital. " * 60])
    assert one @ other < 0.9


def test_a_plain_encoder_from_a_folder_has_the_mean_over_its_pieces(folders):
    model = load_sentences(folders["bert-encoder"])
    found = model.encode(["maria met john", "paris " * 300])
    assert found.shape == (2, 16)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_what_is_no_text_and_what_is_no_model_are_refused(sentences, tmp_path):
    with pytest.raises(InputError):
        sentences.encode("a single text")
    with pytest.raises(ConfigError, match="batch"):
        load_sentences(batch=0)
    with pytest.raises(ModelError, match="sentence encoder"):
        load_sentences(tmp_path)
    with pytest.raises(ModelError, match="neither"):
        load_sentences("nothing")
