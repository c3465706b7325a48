"""Labels: logits against the network run by hand, long texts, pairs, new heads, and bad input."""

import numpy as np
import pytest
import torch
import transformers
from tests.models.conftest import SIZE, byte_level, save, wordpiece

from textveil.errors import ConfigError, InputError, ModelError
from textveil.models.labels import load_labels
from textveil.models.networks import load, load_untrained

TEXT = "Maria met John at Acme corp in Paris today, near the old town."
NAMES = {
    "id2label": {0: "calm", 1: "angry", 2: "glad"},
    "label2id": {"calm": 0, "angry": 1, "glad": 2},
}
BERT = {**SIZE, "max_position_embeddings": 128, "num_labels": 3, **NAMES}


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory):
    """A folder for each family."""
    root = tmp_path_factory.mktemp("classifiers")
    framed = {
        **SIZE,
        "max_position_embeddings": 130,
        "type_vocab_size": 1,
        "num_labels": 3,
        **NAMES,
    }
    bare = {
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": 128,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    return {
        "bert": save(root / "bert", "BertForSequenceClassification", wordpiece(), **BERT),
        "roberta": save(
            root / "roberta", "RobertaForSequenceClassification", byte_level(framed=True), **framed
        ),
        "gpt2": save(
            root / "gpt2",
            "GPT2ForSequenceClassification",
            byte_level(framed=False),
            num_labels=3,
            **bare,
        ),
    }


@pytest.mark.parametrize(
    ("family", "texts"),
    [
        *(
            (family, [(TEXT,), ("paris",), ("the doctor saw a patient",)])
            for family in ("bert", "roberta", "gpt2")
        ),
        *((family, [(TEXT, "paris"), ("john", TEXT)]) for family in ("bert", "roberta")),
    ],
)
def test_logits_are_those_of_the_network_run_by_hand(family, texts, classifiers):
    tokenizer = transformers.AutoTokenizer.from_pretrained(classifiers[family])
    network = transformers.AutoModelForSequenceClassification.from_pretrained(
        classifiers[family]
    ).eval()
    found = load_labels(classifiers[family]).compute_logits(texts)
    assert found.shape == (len(texts), 3)
    for own, each in zip(found, texts, strict=True):
        encoded = tokenizer(*each, return_tensors="pt")
        if family == "bert" and len(each) == 2:
            second = [int(sequence == 1) for sequence in encoded.sequence_ids(0)]
            encoded["token_type_ids"] = torch.tensor([[*second[:-1], 1]])
        with torch.inference_mode():
            assert own == pytest.approx(network(**encoded).logits[0].numpy(), abs=1e-4)


def test_a_long_text_has_the_mean_of_its_windows(classifiers):
    classifier = load_labels(classifiers["bert"], window=10)
    words = ["maria", "john", "paris", "town"] * 3
    whole = classifier.compute_logits([(" ".join(words),)])[0]
    # 8 pieces beside the frame, of which 2 are shared: windows begin at 0 and 6.
    first, second = classifier.compute_logits([(" ".join(words[:8]),), (" ".join(words[6:]),)])
    assert whole == pytest.approx((8 * first + 6 * second) / 14, abs=1e-5)
    assert np.abs(first - second).max() > 1e-3


def test_every_window_of_a_second_text_stands_behind_the_whole_first(classifiers):
    classifier = load_labels(classifiers["bert"], window=16)
    words = ["maria", "john", "paris", "town", "old"] * 3
    shown = classifier.build_sequences([("the doctor", " ".join(words))])
    assert len(shown.rows) > 1
    assert all(row[:4] == shown.rows[0][:4] for row in shown.rows)
    assert shown.leads.tolist() == [4] * len(shown.rows)
    assert shown.lengths.max() <= 16


def test_texts_without_a_word_have_logits_too(classifiers):
    found = load_labels(classifiers["bert"]).compute_logits([("",), ("\x00",), ("maria",)])
    assert np.isfinite(found).all()
    assert load_labels(classifiers["bert"]).compute_logits([]).shape == (0, 3)


def test_the_names_of_labels_are_the_models_own(classifiers):
    assert load_labels(classifiers["bert"]).labels == ("calm", "angry", "glad")
    assert load_labels(classifiers["gpt2"]).labels == ("LABEL_0", "LABEL_1", "LABEL_2")


@pytest.mark.parametrize(
    "texts", [[("a", "b", "canary")], [("a",), ("b", "canary")], [()], [("\ud800canary",)]]
)
def test_what_is_neither_a_text_nor_a_pair_is_refused(texts, classifiers):
    with pytest.raises(InputError) as caught:
        load_labels(classifiers["bert"]).compute_logits(texts)
    assert "canary" not in str(caught.value)


def test_options_out_of_range_are_refused(classifiers):
    with pytest.raises(ConfigError, match="window must be at least 8"):
        load_labels(classifiers["bert"], window=7)
    with pytest.raises(ConfigError, match="batch at least 1"):
        load_labels(classifiers["bert"], batch=0)


# ---- new heads ---------------------------------------------------------------------------------------------


def test_a_new_head_is_named_by_what_the_encoder_lacks(folders):
    model, missing = load_untrained(folders["bert-encoder"], 4)
    assert missing == ("classifier.bias", "classifier.weight")
    assert load_labels(model).compute_logits([("maria",)]).shape == (1, 4)
    assert all(parameter.requires_grad for parameter in model.network.module.parameters())


def test_a_head_of_the_same_size_stays_and_one_of_another_size_does_not(classifiers):
    assert load_untrained(classifiers["bert"], 3)[1] == ()
    assert load_untrained(classifiers["bert"], 2)[1] == ("classifier.bias", "classifier.weight")


def test_the_bundled_encoder_takes_a_new_head():
    model, missing = load_untrained(None, 2)
    assert missing == ("classifier.bias", "classifier.weight")
    assert model.name == "all-MiniLM-L6-v2"


def test_a_model_without_a_head_is_no_classifier_yet(folders):
    with pytest.raises(ModelError, match="is not trained for classifier"):
        load("classifier", folders["bert-encoder"])
