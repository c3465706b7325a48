"""Sentence vectors: the bundled encoder's and a folder's, long texts, empty ones, bad input."""

import shutil

import numpy as np
import pytest
import torch
import transformers
from tests.models.conftest import SIZE, build_hub_cache, byte_level, save, wordpiece

from textveil.errors import ConfigError, InputError, ModelError
from textveil.models import SentenceModel, load_sentences


@pytest.fixture(scope="module")
def sentences() -> SentenceModel:
    return load_sentences()


def test_texts_of_one_meaning_are_closer_than_others(sentences):
    doctor, physician, market = sentences.encode(
        [
            "A doctor spoke to a patient.",
            "The physician talked with the sick man.",
            "Stock markets fell.",
        ]
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
    one, other = sentences.encode(
        [long, long + "The virus infected every patient of the hospital. " * 60]
    )
    assert one @ other < 0.9


@pytest.mark.parametrize("text", ["maria met john", "maria [SEP] john", "paris " * 100])
def test_a_plain_encoder_from_a_folder_has_the_mean_over_its_pieces(text, folders):
    """Letters that look like a mark of the model are letters."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["bert-encoder"])
    network = transformers.AutoModel.from_pretrained(folders["bert-encoder"]).eval()
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    whole = torch.tensor([[tokenizer.cls_token_id, *ids, tokenizer.sep_token_id]])
    with torch.inference_mode():
        mean = network(input_ids=whole).last_hidden_state[0].mean(dim=0)
    (found,) = load_sentences(folders["bert-encoder"]).encode([text])
    assert np.allclose(found, mean / mean.norm(), atol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "unbelievablyoverexaggeratedness " * 200,
        "x" * 5000,
        "\N{FAMILY} " * 2000,
        " " * 9 + "one two " * 500,
        "東京" * 999,
    ],
)
def test_every_part_of_a_long_text_fits_and_nothing_is_left_out(text, sentences):
    parts = list(sentences._split_text(text))
    assert "".join(part for part, _ in parts) == text
    for part, size in parts:
        whole = len(sentences.tokenizer.encode(part).ids)
        assert whole == size + 2
        assert whole <= sentences.window + 2


def test_parts_begin_with_words_where_there_are_words(sentences):
    parts = [part for part, _ in sentences._split_text("unbelievablyoverexaggeratedness " * 200)]
    assert len(parts) > 1
    assert all(part.startswith("unbelievably") for part in parts)


def test_a_model_whose_tokenizer_knows_no_limit_has_that_of_its_places(tmp_path):
    tokenizer = byte_level(framed=True)
    tokenizer.model_max_length = 10**30
    folder = save(
        tmp_path, "RobertaModel", tokenizer, **SIZE, max_position_embeddings=130, type_vocab_size=1
    )
    model = load_sentences(folder)
    assert model.window == 126
    assert np.isfinite(model.encode(["maria met john " * 100])).all()


def test_an_encoder_saved_in_half_precision_runs_in_full(folders, tmp_path):
    folder = shutil.copytree(folders["bert-encoder"], tmp_path / "half")
    transformers.AutoModel.from_pretrained(folder).bfloat16().save_pretrained(folder)
    assert {each.dtype for each in load_sentences(folder).network.parameters()} == {torch.float32}


def test_what_cannot_run_is_refused_at_once(folders):
    for device in ("cuda:99", "nothing", "meta"):
        with pytest.raises(ConfigError, match="not available"):
            load_sentences(device=device)
    with pytest.raises(ModelError, match="with a padding piece"):
        load_sentences(folders["gpt2-lm"])


def test_what_is_no_text_and_what_is_no_model_are_refused(sentences, tmp_path):
    with pytest.raises(InputError):
        sentences.encode("a single text")
    with pytest.raises(ConfigError, match="batch"):
        load_sentences(batch=0)
    with pytest.raises(ModelError, match="sentence encoder"):
        load_sentences(tmp_path)
    with pytest.raises(ModelError, match="neither"):
        load_sentences("nothing")


def pool_by_hand(folder, text: str, pooling: str) -> np.ndarray:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        output = network(**tokenizer(text, return_tensors="pt"))
    states = output.last_hidden_state[0]
    vector = {"mean": states.mean(dim=0), "cls": states[0], "pooler": output.pooler_output[0]}[
        pooling
    ]
    return (vector / vector.norm()).numpy()


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_the_pooling_of_a_plain_encoder_is_the_one_that_is_named(pooling, folders):
    texts = ["maria met john", "the doctor saw a patient in the old town", "paris"]
    model = load_sentences(f"{folders['bert-encoder']}@{pooling}", batch=2)
    assert model.name == f"bert-encoder ({pooling})"
    found = model.encode(texts)
    for vector, text in zip(found, texts, strict=True):
        assert vector == pytest.approx(
            pool_by_hand(folders["bert-encoder"], text, pooling), abs=1e-5
        )
    others = {"mean", "cls", "pooler"} - {pooling}
    for other in others:  # the twins
        by_hand = pool_by_hand(folders["bert-encoder"], texts[0], other)
        assert np.abs(found[0] - by_hand).max() > 0.01
    assert np.linalg.norm(model.encode(["", "paris " * 500]), axis=1) == pytest.approx([0, 1])


@pytest.mark.parametrize(
    ("name", "pooling"),
    [
        ("princeton-nlp/sup-simcse-bert-base-uncased", "pooler"),
        ("princeton-nlp/unsup-simcse-bert-base-uncased", "cls"),
    ],
)
def test_simcse_of_a_hub_is_pooled_as_published(name, pooling, folders, tmp_path, monkeypatch):
    build_hub_cache(tmp_path, {name: folders["bert-encoder"]}, monkeypatch)
    model = load_sentences(name)
    assert model.name == f"{name} ({pooling})"
    (found,) = model.encode(["maria met john"])
    by_hand = pool_by_hand(folders["bert-encoder"], "maria met john", pooling)
    assert found == pytest.approx(by_hand, abs=1e-5)


def test_a_pooler_that_was_never_trained_is_refused(folders, tmp_path):
    with pytest.raises(ModelError, match=r"no trained weights for .*pooler"):
        load_sentences(f"{folders['bert-lm']}@pooler")
    assert np.isfinite(load_sentences(f"{folders['bert-lm']}@cls").encode(["paris"])).all()
    with pytest.raises(ConfigError, match="its pooling, one of mean, cls, pooler"):
        load_sentences(f"{folders['bert-encoder']}@sum")
    with pytest.raises(ModelError, match="neither"):
        load_sentences("nothing@cls")
    folder = shutil.copytree(folders["bert-encoder"], tmp_path / "named@cls")
    assert load_sentences(folder).name == "named@cls"
    small = save(tmp_path / "small", "BertModel", wordpiece(), **SIZE, max_position_embeddings=8)
    with pytest.raises(ModelError, match="at least 8"):
        load_sentences(f"{small}@cls")
