"""The bundled adapters: what they can do at least, and every way in which their files can be wrong."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from textveil.errors import ConfigError, ModelError
from textveil.models import (
    LanguageModel,
    Ragged,
    SpanReader,
    TokenClassifier,
    adapters,
    bundled,
    load_context,
    load_reader,
    load_tagger,
    networks,
)
from textveil.models.ragged import PieceSequence
from textveil.table import minilm
from textveil.table.embedding import load_table
from textveil.text.tokens import tokenize

TEXT = "Maria Silva flew from Lisbon to Berlin on Monday, and met John Smith, who works for Siemens, at the airport."


@pytest.fixture(scope="module")
def tagger() -> TokenClassifier:
    return load_tagger()


@pytest.fixture(scope="module")
def reader() -> SpanReader:
    return load_reader()


@pytest.fixture(scope="module")
def context() -> LanguageModel:
    return load_context(load_table("minilm"))


# ---- jobs ------------------------------------------------------------------------------------------------


def test_the_tagger_finds_persons_places_and_organizations(tagger):
    tokens = tokenize([TEXT])
    found = {
        " ".join(tokens.words[e.start : e.end]): e.type for e in tagger.find(Ragged.build(tokens))
    }
    assert found == {
        "Maria Silva": "PERSON",
        "Lisbon": "LOCATION",
        "Berlin": "LOCATION",
        "John Smith": "PERSON",
        "Siemens": "ORGANIZATION",
    }


@pytest.mark.slow
def test_the_tagger_finds_a_name_at_the_end_of_a_very_long_text(tagger):
    tokens = tokenize(["the weather was mild and nothing happened . " * 500 + TEXT])
    found = {" ".join(tokens.words[e.start : e.end]) for e in tagger.find(Ragged.build(tokens))}
    assert {"Maria Silva", "Lisbon", "John Smith"} <= found


def test_capitals_matter_to_the_tagger(tagger):
    low, high = (
        tagger.compute_label_probabilities(Ragged.build(tokenize([f"I met {name} yesterday."])))[
            2, 0
        ]
        for name in ("rose", "Rose")
    )
    assert high < low


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Where did Maria Silva fly from?", "Lisbon"),
        ("Who did Maria Silva meet?", "John Smith"),
        ("When?", "Monday"),
    ],
)
def test_the_reader_finds_answers(question, answer, reader):
    (found,) = reader.answer([question], [TEXT])
    assert answer in found.text
    assert TEXT[found.start : found.end] == found.text


def test_the_masked_lm_expects_words_that_fit(context):
    table = load_table("minilm")
    texts = [
        ("He was born in the city of", "paris", "because"),
        ("She plays the piano and", "sings", "paris"),
        ("The match ended in a one to one", "draw", "piano"),
        ("He was elected to the United States", "senate", "piano"),
    ]
    ragged = Ragged.join([[*text.split(), "x", "."] for text, *_ in texts])
    logits = context.compute_logits(ragged, ragged.documents[1:] - 2)
    for row, (_, fits, other) in zip(logits, texts, strict=True):
        assert row[table.row_of[fits]] > row[table.row_of[other]]


def test_the_masked_lm_is_right_about_frequent_words(context):
    words = [
        "the",
        "capital",
        "of",
        "france",
        "is",
        "one",
        "of",
        "the",
        "largest",
        "cities",
        "in",
        "the",
        "world",
        "and",
        "it",
        "has",
        "been",
        "so",
        "for",
        "a",
        "long",
        "time",
    ]
    table = load_table("minilm")
    known = [i for i, word in enumerate(words) if word in table.row_of]
    ranks = np.argsort(-context.compute_logits(Ragged.join([words]), np.array(known)), axis=1)[
        :, :10
    ]
    hits = [table.row_of[words[i]] in row.tolist() for i, row in zip(known, ranks, strict=True)]
    assert np.mean(hits) > 0.5


@pytest.mark.slow
def test_the_first_layers_alone_are_a_model_of_their_own(context):
    table = load_table("minilm")
    ragged = Ragged.join([["the", "match", "ended", "in", "a", "draw", "."]])
    whole, all_six, three = (
        found.compute_logits(ragged, np.array([5]))
        for found in (context, load_context(table, "bundled:6"), load_context(table, "bundled:3"))
    )
    assert (all_six == whole).all()
    assert not np.allclose(three, whole, atol=1.0)
    short = networks.load("masked-lm", "bundled:3")
    assert short.name == "all-MiniLM-L6-v2 (3 of 6 layers) + masked-lm"
    assert short.network.layers == 3


def test_more_layers_than_there_are_cannot_be_asked_for():
    with pytest.raises(ConfigError, match="has 6 layers, got bundled:7"):
        networks.load("masked-lm", "bundled:7")


def test_a_job_without_a_bundled_model_says_so():
    with pytest.raises(ConfigError, match="give a folder or a hub id"):
        networks.load("causal-lm")


OFFLINE = """
import socket

def refuse(*args, **options):
    raise AssertionError("a connection was tried")

socket.socket.connect = socket.getaddrinfo = refuse
from textveil import load_table
from textveil.models import Ragged, load_context, load_reader, load_sentences, load_tagger

texts = Ragged.join([["Maria", "met", "John"]])
load_context(load_table("minilm")).compute_logits(texts, [1])
load_tagger().find(texts)
load_reader().answer(["who"], ["Maria met John"])
load_sentences().encode(["Maria met John"])
"""


@pytest.mark.slow
def test_the_bundled_models_never_touch_the_network_and_print_nothing():
    without = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HF_", "TRANSFORMERS_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE], capture_output=True, text=True, env=without, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# ---- files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["masked-lm", "tagger", "reader"])
def test_files_are_small_and_whole(name):
    files = adapters.read_manifest(name)["files"]
    sizes = [len(adapters._locate_folder().joinpath(file).read_bytes()) for file in files]
    assert max(sizes) < 4 * 2**20
    assert sum(sizes) < (15.2e6 if name == "tagger" else 5e6)
    assert all(np.isfinite(tensor).all() for tensor in adapters.read_tensors(name).values())


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of adapters with one that a test may spoil."""
    data = save(
        {"a.weight.up": np.ones((3, 1), np.float16), "a.weight.down": np.ones((1, 2), np.float16)}
    )
    (tmp_path / "one.safetensors").write_bytes(data)
    about = {
        "base": minilm.SHA256["model.safetensors"],
        "config": {},
        "files": {"one.safetensors": hashlib.sha256(data).hexdigest()},
    }
    (tmp_path / "one.json").write_text(json.dumps(about))
    monkeypatch.setattr(adapters, "_locate_folder", lambda: tmp_path)
    return tmp_path


def test_a_change_is_added_to_its_weight_and_any_other_tensor_stands_as_it_is(shelf):
    base = {"a.weight": np.zeros((3, 2), np.float32), "b": np.zeros(1, np.float32)}
    merged = adapters.MergedWeights(
        base, {**adapters.read_tensors("one"), "c": np.full(1, 7, np.float32)}
    )
    assert list(merged) == ["a.weight", "b", "c"]
    assert (merged["a.weight"] == np.ones((3, 2))).all()
    assert merged["b"] == 0
    assert merged["c"] == 7
    assert (base["a.weight"] == 0).all()


def test_a_change_of_a_weight_that_is_not_there_is_refused(shelf):
    with pytest.raises(ModelError, match=r"changes a\.weight"):
        adapters.MergedWeights({}, adapters.read_tensors("one"))


def test_a_change_without_its_other_factor_is_refused(shelf):
    for lost, left in (("down", "up"), ("up", "down")):
        changes = adapters.read_tensors("one")
        del changes[f"a.weight.{lost}"]
        with pytest.raises(ModelError, match=rf"a\.weight\.{left} without a\.weight\.{lost}"):
            adapters.MergedWeights({"a.weight": np.zeros((3, 2), np.float32)}, changes)


@pytest.mark.parametrize("key", ["base", "config", "files"])
def test_a_manifest_that_leaves_something_out_is_refused(key, shelf):
    about = json.loads((shelf / "one.json").read_text())
    del about[key]
    for text in (json.dumps(about), "[]"):
        (shelf / "one.json").write_text(text)
        with pytest.raises(ModelError, match="cannot read the manifest of the adapter 'one'"):
            adapters.read_tensors("one")


def test_one_changed_byte_is_noticed(shelf):
    data = bytearray((shelf / "one.safetensors").read_bytes())
    data[-1] ^= 1
    (shelf / "one.safetensors").write_bytes(data)
    with pytest.raises(ModelError, match=r"one\.safetensors must have sha256"):
        adapters.read_tensors("one")


def test_a_file_with_the_right_checksum_that_is_no_safetensors_file_is_refused(shelf):
    (shelf / "one.safetensors").write_bytes(b"nothing")
    about = json.loads((shelf / "one.json").read_text())
    about["files"]["one.safetensors"] = hashlib.sha256(b"nothing").hexdigest()
    (shelf / "one.json").write_text(json.dumps(about))
    with pytest.raises(ModelError, match="is not a valid safetensors file"):
        adapters.read_tensors("one")


def test_missing_files_are_named(shelf):
    (shelf / "one.safetensors").unlink()
    with pytest.raises(ModelError, match=r"one\.safetensors of the adapter 'one' is missing"):
        adapters.read_tensors("one")
    with pytest.raises(ModelError, match="manifest of the adapter 'two'"):
        adapters.read_tensors("two")


def test_an_adapter_of_another_base_is_refused(shelf):
    about = json.loads((shelf / "one.json").read_text())
    (shelf / "one.json").write_text(json.dumps({**about, "base": "0" * 64}))
    with pytest.raises(ModelError, match="needs the base model"):
        adapters.read_tensors("one")


def test_an_adapter_that_leaves_its_head_out_is_refused(monkeypatch):
    changes = adapters.read_tensors("tagger")
    monkeypatch.setattr(
        adapters,
        "read_tensors",
        lambda name: {k: v for k, v in changes.items() if "classifier" not in k},
    )
    with pytest.raises(ModelError, match="classifier"):
        networks.load("tagger")


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ("layer.7.output.dense.bias", "layer.7.output"),
        ("layer.0.output.dense.weight.scale", "other part"),
    ],
)
def test_a_tagger_that_leaves_a_part_out_is_refused(left_out, said, monkeypatch):
    changes = {
        name: each
        for name, each in adapters.read_tensors("tagger").items()
        if not name.endswith(left_out)
    }
    monkeypatch.setattr(adapters, "read_tensors", lambda name: changes)
    with pytest.raises(ModelError, match=said):
        networks.load("tagger")


def test_an_adapter_with_more_than_the_encoder_has_is_refused(monkeypatch):
    name = "bert.encoder.layer.8.output.dense.bias"
    changes = adapters.read_tensors("tagger") | {name: np.zeros(384, np.float32)}
    monkeypatch.setattr(adapters, "read_tensors", lambda _: changes)
    with pytest.raises(ModelError, match=name):
        networks.load("tagger")


def test_a_blob_of_letters_costs_no_more_than_a_word():
    tagger = load_tagger()
    blob = "ab" * 100_000
    texts = Ragged.join([["Maria", "met", blob, "and", "John"]])
    assert len(PieceSequence.build(tagger.model, texts).ids) < 120
    assert {texts.words[entity.start] for entity in tagger.find(texts)} >= {"Maria", "John"}


def test_weights_in_int8_are_taken_as_they_are_stored():
    """The same integers and scales, bit for bit, as of the floats that they stand for."""
    weights = bundled.load("tagger").weights
    assert isinstance(weights, adapters.MergedWeights)
    stored = [name for name in weights if weights.get_integers(name) is not None]
    assert len(stored) == 6 * bundled.LAYERS["tagger"]
    for name in stored:
        kept, (whole, scale) = weights.get_integers(name), bundled.get_quantized(weights, name)
        expected, scales = bundled.quantize_weight(weights[name])
        np.testing.assert_array_equal(whole, expected)
        np.testing.assert_array_equal(scale.view(np.uint32), scales.view(np.uint32))
        assert kept is not None
        assert np.shares_memory(whole, kept[0])


def test_weights_of_other_scales_are_rounded_anew():
    weight = np.array([[60, -3], [0, 0]], np.int8)
    scale = np.array([0.5, 1e-30], np.float32)
    weights = adapters.MergedWeights({}, {"w": weight, "w.scale": scale})
    whole, scales = bundled.get_quantized(weights, "w")
    np.testing.assert_array_equal(whole, bundled.quantize_weight(weights["w"])[0])
    np.testing.assert_array_equal(scales, bundled.quantize_weight(weights["w"])[1])
    assert bundled.get_quantized({"w": weight.astype(np.float32)}, "w")[0].tolist() == [
        [63, -3],
        [0, 0],
    ]
