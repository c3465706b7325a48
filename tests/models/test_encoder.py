"""The bundled encoders on ONNX Runtime: the numbers of the same network on torch, and the same bits in any company."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from textveil.models import (
    Ragged,
    bundled,
    load_context,
    load_reader,
    load_sentences,
    load_stored_bound,
    load_tagger,
    torch_networks,
)
from textveil.table.embedding import load_table
from textveil.text.tokens import tokenize

TEXTS = [
    "Maria Silva flew from Lisbon to Berlin on Monday, and met John Smith, who works for Siemens, at the airport.",
    "He was born in 1961.",
    "I owe the bank of Ireland 2,500 euros; what can I do?",
    "",
    "unbelievablyoverexaggeratedness \N{GRINNING FACE} ABBA",
    "He was born in 1962.",
]
ROWS = Path(__file__).parents[2] / "packages" / "textveil-bench" / "benchmarks" / "rows"
JOBS = ["masked-lm", "tagger", "reader"]


def batch(count: int, length: int, seed: int = 0) -> np.ndarray:
    ids = np.random.default_rng(seed).integers(1000, 30000, (count, length))
    ids[:, 0], ids[:, -1] = 101, 102
    return ids


@pytest.mark.parametrize("layers", [pytest.param(None, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize("job", JOBS)
def test_numbers_are_those_of_the_network_on_torch(job, layers):
    own = replace(bundled.load(job, layers), precision="float32")
    other = torch_networks.load_bundled_network(job, layers, "cpu")
    for count, length in ((1, 3), (3, 40), (2, 512 if layers else 100)):
        ids, lengths = batch(count, length), np.full(count, length)
        if job == "masked-lm":
            rows, bias = own.take_output()
            theirs, their_bias = torch_networks.load_bundled_network(
                job, layers, "cpu"
            ).take_output()
            assert (rows == theirs).all()
            assert (bias == their_bias).all()
            row, column = np.array([count - 1, 0]), np.array([1, length - 1])
            head = own.build_head(rows[:500], bias[:500])
            found = head.compute_logits(head.read(ids, lengths, row, column))
            expected = other.run(ids, lengths)[row, column][:, :500]
        else:
            types = np.random.default_rng(1).integers(0, own.type_count, ids.shape)
            found, expected = (each.run(ids, lengths, types) for each in (own, other))
            assert np.allclose(own.run(ids, lengths), other.run(ids, lengths), atol=1e-4)
        assert np.abs(found - expected).max() < 1e-4


@pytest.mark.slow
def test_sentence_vectors_are_those_of_sentence_transformers(monkeypatch, tmp_path):
    """The oracle gets the same weights: in a folder as transformers writes it."""
    module = torch_networks.load_bundled_network("sentences", None, "cpu").module
    module.save_pretrained(tmp_path)
    for name in ("tokenizer.json", "config.json"):
        (tmp_path / name).write_bytes((bundled.find_encoder_folder() / name).read_bytes())
    monkeypatch.setattr(bundled, "get_precision", lambda job: "float32")
    texts = [*TEXTS, "東京 is far [SEP] away", "The weather was mild. " * 40]
    expected = SentenceTransformer(str(tmp_path), device="cpu")
    expected.max_seq_length = 256
    expected.tokenizer.split_special_tokens = True
    found = load_sentences().encode(texts)
    full = [i for i, text in enumerate(texts) if text]
    vectors = expected.encode([texts[i] for i in full], normalize_embeddings=True)
    assert np.abs(found[full] - vectors).max() < 1e-5


@pytest.mark.parametrize("job", ["tagger", "masked-lm", "sentences"])
def test_numbers_in_int8_are_near(job):
    own = replace(bundled.load(job), precision="int8")
    ids, lengths = batch(4, 30), np.full(4, 30)
    found, expected = (
        each.read(ids, lengths, np.arange(4), np.arange(4))
        if job == "masked-lm"
        else each.run(ids, lengths)
        for each in (own, replace(own, precision="float32"))
    )
    assert 0.99 < (found * expected).sum() / np.linalg.norm(found) / np.linalg.norm(expected) < 1
    assert np.abs(found - expected).max() > 1e-3  # it is another precision


def test_stored_bounds_of_logits_hold_in_int8():
    """They are of float32 products, and those in int8 do not exceed them either."""
    table = load_table("minilm")
    context, texts = load_context(table), Ragged.build(tokenize(TEXTS))
    exact = replace(context.model.network, precision="float32")
    asked = np.arange(len(texts.words))
    head, bound = context.head, load_stored_bound(table)
    assert isinstance(head, bundled.BundledHead)
    assert bound is not None
    near, far = (
        replace(context, head=replace(head, network=each))
        for each in (context.model.network, exact)
    )
    one, other = near.compute_logits(texts, asked), far.compute_logits(texts, asked)
    assert np.abs(one.max(axis=1) - other.max(axis=1)).mean() < 0.25
    assert one.max() < bound + 0.25


def test_sums_of_two_products_fit_into_16_bits():
    """As on x86 without VNNI, which cuts off what does not fit: numbers are the same on every processor."""
    weights = bundled.build_graph(
        "tagger", 8, bundled.load("tagger").weights, "int8"
    ).weights.values()
    largest = {
        int(np.abs(weight.astype(np.int16)).max()) for weight in weights if weight.dtype == np.int8
    }
    assert largest == {bundled.MAX_INT8_WEIGHT}
    assert 2 * 255 * bundled.MAX_INT8_WEIGHT < 2**15


def saturated(states: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Products [n, m] of uint8 [n, d] and int8 [d, m] as VPMADDUBSW adds them: two at a time, in int16."""
    each = states.astype(np.int64)[:, :, None] * weights.astype(np.int64)[None]
    pairs = each[:, ::2] + each[:, 1::2]
    return pairs.clip(-(2**15), 2**15 - 1).sum(axis=1)


@pytest.mark.parametrize("job", ["tagger", "masked-lm", "sentences"])
def test_products_without_vnni_are_exact(job):
    """Weights of the whole range of int8 would be cut off: another package found nothing on such processors."""
    encoder = bundled.load(job)
    weight = encoder.weights["bert.encoder.layer.1.intermediate.dense.weight"]
    whole, _ = bundled.quantize_weight(weight[:50])
    states = np.random.default_rng(0).integers(0, 256, (4, whole.shape[1]), np.uint8)
    states[:2] = [[255], [0]]
    states[3] = np.where(whole[0] > 0, 255, 0)
    exact = states.astype(np.int64) @ whole.T.astype(np.int64)
    assert (saturated(states, whole.T) == exact).all()
    wide = np.rint(whole.astype(np.float32) * 127 / bundled.MAX_INT8_WEIGHT).astype(np.int8)
    wide[0] = 127
    assert (saturated(states, wide.T) != states.astype(np.int64) @ wide.T.astype(np.int64)).any()


@pytest.mark.parametrize("job", ["tagger", "masked-lm", "sentences"])
def test_precisions_are_those_that_the_stored_rows_allow(job):
    rows = [json.loads(line) for line in (ROWS / "precision.jsonl").read_text().splitlines()]
    own = [row for row in rows if row["job"] == job and "limit" in row]
    assert own
    # A set of some hundred sentences tells little alone: sets of one kind are judged together.
    for kind in {row["what"].rpartition(", ")[2] for row in own}:
        chosen = [row for row in own if row["what"].rpartition(", ")[2] == kind]
        lost = sum(row["n"] * (row["float32"] - row["int8"]) for row in chosen)
        limit = sum(row["n"] * row["limit"] for row in chosen)
        assert lost <= limit or bundled.PRECISIONS[job] == "float32", kind


# ---- the same bits alone and in any batch ----------------------------------------------------------------------------


def company(seed: int) -> Ragged:
    """Texts of many lengths, and the ones that are looked at among them."""
    words = load_table("minilm").words
    rng = np.random.default_rng(seed)
    others = [
        " ".join(words[i] for i in rng.integers(0, len(words), size))
        for size in rng.integers(1, 60, 8)
    ]
    return Ragged.build(tokenize([*others[:4], *TEXTS, *others[4:]]))


def parts(found: np.ndarray, texts: Ragged) -> list[np.ndarray]:
    """What was found for the words of each of the texts that are looked at."""
    return [found[texts.documents[4 + b] : texts.documents[5 + b]] for b in range(len(TEXTS))]


@pytest.fixture(scope="module", params=["float32", "int8"])
def asks(request) -> dict:
    """What leads to a law or to the mask, as a function of texts: numbers of each word."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundled, "get_precision", lambda job: request.param)
        tagger, context = load_tagger(), load_context(load_table("minilm"), window=32)
    return {
        "tagger": tagger.compute_label_probabilities,
        "masked-lm": lambda texts: context.compute_logits(texts, np.arange(len(texts.words))),
        "masked-lm, all hidden": lambda texts: context.compute_logits(
            texts, np.arange(len(texts.words)), np.ones(len(texts.words), bool)
        ),
    }


@pytest.mark.parametrize("job", ["tagger", "masked-lm", "masked-lm, all hidden"])
def test_a_text_has_the_same_bits_alone_and_among_others(job, asks):
    alone = [asks[job](Ragged.build(tokenize([text]))) for text in TEXTS]
    texts = company(0)
    for one, among in zip(alone, parts(asks[job](texts), texts), strict=True):
        assert np.array_equal(one, among)


def test_answers_and_sentence_vectors_have_the_same_bits_alone_and_among_others():
    reader, sentences = load_reader(), load_sentences()
    texts = [text for text in TEXTS if text]
    questions = ["Who is it?", "When was it, and where?", "Who?", "What is this about?", "When?"]
    assert reader.answer(questions, texts) == [
        reader.answer([question], [text])[0]
        for question, text in zip(questions, texts, strict=True)
    ]
    assert np.array_equal(
        sentences.encode(texts), np.concatenate([sentences.encode([text]) for text in texts])
    )


def test_a_network_that_pads_is_told_apart():
    """The broken twin: on torch the same text has other bits among longer ones."""
    twin = torch_networks.load_bundled_network("tagger", None, "cpu")
    ids = batch(2, 60)
    short = np.where(np.arange(60) < 23, ids[:1], 0)
    alone = twin.run(short[:, :23], np.array([23]))[0]
    among = twin.run(np.concatenate([ids[1:], short]), np.array([60, 23]))[1, :23]
    assert np.abs(alone - among).max() < 1e-4
    assert not np.array_equal(alone, among)


class OneScale(bundled.LayerBuilder):
    """The broken twin: states of all texts of a batch share a scale, as in ONNX Runtime's dynamic quantization."""

    def _quantize_rows(self, states: str) -> tuple[str, str]:
        graph = self.graph
        largest = graph.apply("ReduceMax", graph.apply("Abs", states), keepdims=0)
        scale = graph.apply("Mul", largest, graph.add_constant(1 / 127))
        integers = graph.apply(
            "QuantizeLinear", states, scale, graph.add_constant(np.array(128, np.uint8))
        )
        return integers, scale


def test_one_scale_for_a_whole_batch_lets_a_text_change_the_numbers_of_another(monkeypatch):
    network = replace(bundled.load("tagger"), precision="int8")
    ids, lengths = batch(8, 20), np.full(8, 20)

    def moved() -> bool:
        whole = replace(network).run(ids, lengths)
        return not np.array_equal(whole[:1], replace(network).run(ids[:1], lengths[:1]))

    assert not moved()
    monkeypatch.setattr(bundled, "LayerBuilder", OneScale)
    assert moved()


def test_a_batch_of_several_lengths_is_refused():
    with pytest.raises(ValueError, match="sequences of one length"):
        bundled.load("tagger").run(batch(2, 9), np.array([9, 8]))


def test_a_single_place_has_the_bits_that_it_has_among_others():
    """Products with one row are summed in another order by the library."""
    network = bundled.load("masked-lm")
    head = network.build_head(*network.take_output())
    ids, lengths = batch(4, 12), np.full(4, 12)
    whole = head.compute_logits(head.read(ids, lengths, np.arange(4), np.arange(4) + 1))
    for i in range(4):
        one = head.read(ids[i : i + 1], lengths[:1], np.array([0]), np.array([i + 1]))
        assert np.array_equal(head.compute_logits(one)[0], whole[i])


def test_the_tagger_says_at_places_what_it_says_everywhere():
    """Its last layer is computed for the first piece of each word only."""
    network, ids, lengths = bundled.load("tagger"), batch(3, 9), np.full(3, 9)
    row, column = np.array([0, 2, 2]), np.array([4, 0, 8])
    everywhere = network.run(ids, lengths)
    np.testing.assert_array_equal(
        network.run_at(ids, lengths, None, row, column), everywhere[row, column]
    )
    assert not len(network.run_at(ids, lengths, None, row[:0], column[:0]))
