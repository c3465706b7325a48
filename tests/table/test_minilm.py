"""The default tables: their rows, their constants, and every way in which their files can be wrong."""

import hashlib
import pickle
import subprocess
import sys
from pathlib import Path

import hatch_build
import numpy as np
import pytest
from safetensors.numpy import load, save, save_file

from textveil.errors import TableError
from textveil.models import adapters
from textveil.table import minilm
from textveil.table.embedding import EmbeddingTable, load_table

FILE = "model.safetensors"


@pytest.fixture(scope="module")
def model() -> Path:
    """The installed model's folder."""
    return minilm.locate()


def tiny(folder: Path, model: Path, tensors: dict[str, np.ndarray]) -> str:
    """A folder like the model's with other tensors; returns the checksum of its file."""
    (folder / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    save_file(tensors, folder / "model.safetensors")
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


# ---- what is in the tables -------------------------------------------------------------------------------


def test_minilm_s_is_the_slice_of_the_published_constants(minilm_s):
    assert (len(minilm_s), minilm_s.dimension, minilm_s.metric, minilm_s.name) == (
        21_719,
        384,
        "chord",
        "minilm-s",
    )
    assert all(word.isascii() and word.isalpha() and len(word) > 1 for word in minilm_s.words)
    assert minilm_s.words == tuple(word.lower() for word in minilm_s.words)


def test_minilm_s_is_complete_and_in_the_order_of_the_vocabulary(minilm_s, model):
    vocabulary = minilm.read_tokenizer(model).get_vocab()
    wanted = [w for w in vocabulary if w.isascii() and w.isalpha() and len(w) > 1]
    assert list(minilm_s.words) == sorted(wanted, key=vocabulary.__getitem__)


def test_minilm_adds_numerals():
    table, numerals = load_table("minilm"), ("12", "1984", "7")
    assert len(table) == 22_580
    extra = set(table.words) - set(load_table("minilm-s").words)
    assert len(extra) == 861
    assert all(word.isascii() and word.isdigit() for word in extra)
    assert extra > set(numerals)
    assert table.lookup(numerals)[1].all()


def test_minilm_wordpiece_is_all_but_special_pieces():
    table = load_table("minilm-wordpiece")
    assert len(table) == 29_523
    assert {"the", "##ing", "[", "]", "日", "a", "!"} <= set(table.words)
    assert not {"[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]", "[unused0]", "[unused993]"} & set(
        table.words
    )


def test_rows_are_the_models_own(minilm_s, model):
    raw = minilm._read_rows(model)
    vocabulary = minilm.read_tokenizer(model).get_vocab()
    assert raw.shape == (30_522, 384)
    chosen = ["king", "queen", "zoo"]
    rows = minilm_s.vectors[[minilm_s.row_of[word] for word in chosen]]
    expected = raw[[vocabulary[word] for word in chosen]].astype(np.float64)
    np.testing.assert_allclose(
        rows, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-7
    )
    near = minilm_s.distances(np.array([minilm_s.row_of["king"]]))[0].argsort()
    assert "kings" in {minilm_s.words[row] for row in near[1:4]}


def test_raw_rows_for_the_euclidean_metric(minilm_s, model):
    table = minilm.minilm_s(metric="euclidean")
    raw = minilm._read_rows(model)
    assert table.words == minilm_s.words
    vocabulary = minilm.read_tokenizer(model).get_vocab()
    np.testing.assert_array_equal(table.vectors[100], raw[vocabulary[table.words[100]]])


def test_diameter_of_minilm_s(minilm_s):
    """Oracle: maximum chord 1.651."""
    assert minilm_s.diameter == pytest.approx(1.651, abs=5e-4)


def test_lookup_does_not_depend_on_other_words(minilm_s):
    words = [
        "Zyxqorvian",
        "日本",
        "😀",
        "naïve",
        "3.14",
        "qx" * 100,
        "\x00",
        "x" * 100_000,
        "مرحبا",
        "covid",
    ]
    together, known = minilm_s.lookup(words)
    assert not known.any()
    assert [minilm_s.lookup([word])[0].item() for word in words] == together.tolist()
    assert minilm_s.lookup(words[::-1])[0][::-1].tolist() == together.tolist()


def test_rows_are_read_when_they_are_asked_for(monkeypatch, minilm_s):
    assert minilm_s.vectors.shape == (21_719, 384)  # read by now, too
    read, rows = [], minilm._read_rows

    def noted(folder):
        read.append(folder)
        return rows(folder)

    monkeypatch.setattr(minilm, "_read_rows", noted)
    table = minilm.minilm_s()
    assert (
        table.find(["king", "Queen", "zyxq"]).tolist()
        == minilm_s.find(["king", "queen", "zyxq"]).tolist()
    )
    assert (len(table), table.holds_pieces, table.parent, table.book) == (21_719, False, None, None)
    assert not read
    np.testing.assert_array_equal(table.vectors, minilm_s.vectors)
    np.testing.assert_array_equal(table.norms, minilm_s.norms)
    assert (table.stored, table.digest) == (minilm_s.stored, minilm_s.digest)
    assert table.pieces is not None
    assert len(read) == 1


def test_a_table_that_is_read_later_pickles_and_has_views_as_another():
    table = minilm.minilm_s()
    back = pickle.loads(pickle.dumps(table))
    assert (back.words, back.metric, back.unit_rows) == (table.words, "chord", True)
    np.testing.assert_array_equal(back.vectors, table.vectors)
    view = table.project(3)
    assert (view.dimension, view.parent, view.stored, view.root) == (3, table, None, table)


# ---- what can be wrong with the files --------------------------------------------------------------------


def test_a_changed_file_is_refused(monkeypatch, tmp_path, model):
    found = tiny(tmp_path, model, {minilm.EMBEDDINGS: np.ones((30_522, 2), np.float32)})
    monkeypatch.setattr(minilm, "locate", lambda: tmp_path)
    with pytest.raises(TableError, match=f"must have sha256 {minilm.SHA256[FILE]}, got {found}"):
        minilm.minilm_s().vectors  # noqa: B018


def test_one_flipped_bit_is_refused(tmp_path, model):
    content = bytearray((model / "model.safetensors").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(TableError, match="sha256"):
        minilm._read_rows(tmp_path)


def test_the_build_makes_weights_smaller():
    """Word rows are the nearest in float16; other matrices are off by half a step of their block at most."""
    rng = np.random.default_rng(0)
    rows, matrix, bias = (
        rng.normal(0, 0.05, shape).astype(np.float32) for shape in ((9, 4), (6, 64), 6)
    )
    matrix[1] *= 1e-6  # too small for a scale in half precision
    matrix[2, :32] = 0
    matrix[3, 40] = 5  # the other block of this row keeps its small steps
    given = {minilm.EMBEDDINGS: rows, "layer.weight": matrix, "layer.bias": bias}
    made = load(hatch_build.smaller(save({**given, "places": np.arange(3)})))
    assert set(made) == {*given, "layer.weight.scale"}
    assert made[minilm.EMBEDDINGS].dtype == np.float16
    np.testing.assert_allclose(made[minilm.EMBEDDINGS], rows, rtol=2**-11, atol=2**-25)
    whole = adapters.MergedWeights(made, {})["layer.weight"]
    step = np.maximum(abs(matrix).reshape(6, 2, 32).max(axis=2) / 127, 2**-14) * 1.001
    assert (abs(whole - matrix).reshape(6, 2, 32) <= step[:, :, None] / 2).all()
    np.testing.assert_array_equal(made["layer.bias"], bias)


def test_a_model_without_the_embeddings(monkeypatch, tmp_path, model):
    monkeypatch.setitem(
        minilm.SHA256, FILE, tiny(tmp_path, model, {"other": np.ones((4, 2), np.float32)})
    )
    monkeypatch.setattr(minilm, "locate", lambda: tmp_path)
    with pytest.raises(TableError, match="lacks the tensor"):
        minilm.minilm_s().norms  # noqa: B018


def test_a_model_of_another_tokenizer(monkeypatch, tmp_path, model):
    monkeypatch.setitem(
        minilm.SHA256,
        FILE,
        tiny(tmp_path, model, {minilm.EMBEDDINGS: np.ones((100, 2), np.float32)}),
    )
    monkeypatch.setattr(minilm, "locate", lambda: tmp_path)
    with pytest.raises(TableError, match="does not match its 100 rows"):
        minilm.minilm_s().norms  # noqa: B018


def test_missing_files(monkeypatch, tmp_path, model):
    monkeypatch.setattr(minilm, "locate", lambda: tmp_path)
    with pytest.raises(TableError, match="tokenizer"):
        minilm.minilm_s()
    (tmp_path / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    with pytest.raises(TableError, match=r"cannot read model\.safetensors"):
        minilm.minilm_s().vectors  # noqa: B018
    (tmp_path / "tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(TableError, match="tokenizer"):
        minilm.minilm_s()


def test_an_installation_without_the_model(monkeypatch, tmp_path):
    monkeypatch.setattr(minilm, "locate", lambda: tmp_path / "minilm")
    with pytest.raises(
        TableError, match="cannot read the tokenizer of all-MiniLM-L6-v2; reinstall textveil"
    ):
        minilm.minilm_s()


PROGRAM = """
import sys
from textveil.table import constants
from textveil.pipeline import Privatizer
constants.diameter = lambda vectors: 1.651  # another test computes it
result = Privatizer("noise", epsilon=60, table="minilm-s").privatize("Zyxqorvian met the mayor of Paris.")
assert result.guarantee.epsilon == 60, result.guarantee.epsilon
heavy = {"transformers", "sentence_transformers", "huggingface_hub", "scipy", "sklearn"}
print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
"""


def test_no_model_library_is_imported():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_another_vocabulary_is_refused(monkeypatch):
    """It would give other words the same rows."""
    monkeypatch.setattr(minilm, "VOCABULARY_SHA256", "0" * 64)
    with pytest.raises(TableError, match="vocabulary"):
        minilm.minilm_s()


def test_constants_of_other_rows_are_refused(minilm_s):
    moved = minilm_s.vectors[np.arange(100)]
    with pytest.raises(TableError, match="do not fit"):
        EmbeddingTable.build(
            name="minilm-s", words=minilm_s.words[:100], vectors=moved, stored=minilm_s.stored
        )
