"""Tables made from a model: they keep its tokenizer, and are drawn from in its pieces."""

import json
import pickle
import shutil
from typing import Any

import numpy as np
import pytest
from tests.models.conftest import SIZE, byte_level, metaspace, save, wordpiece
from tokenizers import Tokenizer, models

from textveil import cli
from textveil.config import resolve
from textveil.errors import ConfigError, TableError
from textveil.evaluate.risk import check_risk_options
from textveil.pipeline import Privatizer
from textveil.table import EmbeddingTable, load_table, recipes, store
from textveil.table.wordpiece import WordPieces, list_whole_words

GPT2 = {
    "n_embd": 16,
    "n_layer": 1,
    "n_head": 2,
    "n_positions": 64,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
TEXT = "Maria told the doctor that her old patient saw a rocket in Lisbon"
SURE: dict[str, Any] = {"epsilon": 10_000, "seed": 1}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Random models in folders, and a cache of a hub that holds one of them."""
    root = tmp_path_factory.mktemp("models")
    gpt2 = save(root / "gpt2", "GPT2LMHeadModel", byte_level(framed=False), **GPT2)
    snapshot = root / "hub" / "models--openai-community--gpt2" / "snapshots" / "abc"
    shutil.copytree(gpt2, snapshot)
    refs = snapshot.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text("abc")
    roberta = {**SIZE, "max_position_embeddings": 130, "type_vocab_size": 1}
    return {
        "gpt2": gpt2,
        "bert": save(root / "bert", "BertModel", wordpiece(), **SIZE, max_position_embeddings=64),
        "xlmr": save(root / "xlmr", "RobertaModel", metaspace(), **roberta),
        "hub": root / "hub",
    }


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run `textveil table build` in an empty folder: exit code and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str]:
        return cli.main(["table", "build", *map(str, arguments)]), capsys.readouterr().err

    return run


@pytest.mark.parametrize("family", ["gpt2", "bert", "xlmr"])
def test_a_table_of_a_model_is_drawn_from_in_its_pieces(run, folders, family):
    assert run(folders[family], "-o", "tab") == (0, "")
    released = Privatizer("noise", table="./tab", **SURE).privatize(TEXT)
    assert released.text == TEXT.lower()
    assert released.guarantee.unit == "wordpiece"
    assert store.read("tab").unit == "wordpiece"
    assert len(pickle.loads(pickle.dumps(load_table("./tab"))).tokenizer.get_vocab()) > 50
    assert check_risk_options(resolve(overrides={"epsilon": 5, "table.name": "./tab"})) == "unigram"


def test_whole_words_alone_for_pieces_of_a_model(run, folders):
    for family in ("gpt2", "bert", "xlmr"):
        assert run(folders[family], "-o", family, "--unit", "word") == (0, "")
        table = load_table(f"./{family}")
        assert not table.holds_pieces
        assert {"doctor", "lisbon"} <= {*table.words}
        assert all(map(str.isalnum, table.words))
        assert store.read(family).unit == "word"
        released = Privatizer("noise", table=f"./{family}", **SURE).privatize("Doctor Maria")
        assert released.text == "doctor maria"


def test_a_piece_that_a_word_is_cut_from_is_no_whole_word():
    """The test above can fail: without the cut, "##s" would pass as "s"."""
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "anna": 1, "##s": 2}, unk_token="[UNK]"))
    assert list_whole_words(tokenizer, {"anna": 1, "##s": 2}) == {"anna": 1}


def test_options_that_contradict_a_table_of_pieces_are_refused(run, folders, tmp_path):
    run(folders["gpt2"], "-o", "tab")
    with pytest.raises(ConfigError, match="holds word pieces and needs words"):
        Privatizer("noise", epsilon=5, table="./tab", words={"unit": "word"})
    assert "--unit word" in run(folders["gpt2"], "-o", "few", "--limit", "9")[1]
    (tmp_path / "some.txt").write_text("anna 1 2\nbank 2 1\n")
    assert (
        "--unit wordpiece must go with a model"
        in run("some.txt", "-o", "x", "--unit", "wordpiece")[1]
    )
    assert "-o (--output) must name the folder" in run("some.txt")[1]


def test_a_table_without_its_tokenizer_says_so(folders):
    """As tables made from models were before they kept it."""
    table = EmbeddingTable.build(
        name="old", words=["\u0120anna", "\u0120bank", "s"], vectors=np.eye(3) + 0.1
    )
    with pytest.raises(ConfigError, match="has no tokenizer of its own; set it to the folder"):
        Privatizer("noise", epsilon=5, table=table)
    assert Privatizer("noise", epsilon=5, table="minilm-wordpiece").words.unit == "wordpiece"
    assert Privatizer("noise", epsilon=5).words.unit == "word"


def test_a_stored_tokenizer_is_checked(run, folders, tmp_path):
    run(folders["bert"], "-o", "tab")
    path = tmp_path / "tab" / store.TOKENIZER
    content = path.read_text()
    path.write_text(content.replace("doctor", "doktor"))
    with pytest.raises(TableError, match=r"tokenizer\.json: its SHA-256 differs"):
        store.load("tab")
    path.write_text(content)
    manifest = tmp_path / "tab" / store.MANIFEST
    values = json.loads(manifest.read_text())
    assert values["textveil table"] == 2
    del values["unit"]
    manifest.write_text(json.dumps(values))
    with pytest.raises(TableError, match="is damaged"):
        store.load("tab")


def test_a_recipe_takes_a_model_from_the_cache_of_the_hub(run, folders, monkeypatch):
    import huggingface_hub
    import transformers.utils.hub

    for module, name in (
        (huggingface_hub.constants, "HF_HUB_CACHE"),
        (transformers.utils.hub, "TRANSFORMERS_CACHE"),
    ):
        monkeypatch.setattr(module, name, str(folders["hub"]), raising=False)
    assert run("gpt2") == (0, "")
    found = store.read("gpt2")
    assert (found.source, found.unit) == ("openai-community/gpt2", "wordpiece")
    assert Privatizer("noise", table="./gpt2", **SURE).privatize(TEXT).text == TEXT.lower()


def test_a_recipe_takes_a_file_of_its_name(run, tmp_path):
    code, err = run("glove")
    assert code == 2
    assert "fetch it from https://nlp.stanford.edu/data/glove.840B.300d.zip" in err
    text = "anna 1 2\nbank 2 1\ncase nan 1\n"  # the last one is broken
    path = tmp_path / "glove.840B.300d.txt"
    path.write_text(text)
    shutil.make_archive("glove.840B.300d", "zip", tmp_path, path.name)
    for name in ("glove.840B.300d.txt", "glove.840B.300d.zip"):
        assert run("glove", "--force") == (0, "")
        found = store.read("glove")
        assert (found.source, found.words, found.broken) == (name, 2, 1)
        path.unlink(missing_ok=True)
    (tmp_path / "wiki-news-300d-1M.vec").write_text("2 2\nanna 1 2\nbank 2 1\n")
    rows = b"2 2\n" + b"".join(
        word + b" " + np.array(row, "<f4").tobytes() + b"\n"
        for word, row in ((b"anna", (1, 2)), (b"bank", (2, 1)))
    )
    (tmp_path / "GoogleNews-vectors-negative300.bin").write_bytes(rows)
    for name in ("fasttext", "word2vec"):
        assert run(name) == (0, "")
        assert store.read(name).words == 2


def test_recipes_are_listed(run, capsys):
    assert cli.main(["table", "recipes", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {recipe["name"] for recipe in listed} == {*recipes.RECIPES}
    assert all(recipe["licence"] and recipe["size"] and recipe["command"] for recipe in listed)
    assert cli.main(["table", "recipes"]) == 0
    assert "CC BY-SA 3.0" in capsys.readouterr().out


def test_special_pieces_of_a_small_tokenizer_are_not_missed(run, folders):
    """Its own table lacks more than one in twenty of its pieces, which are special."""
    run(folders["bert"], "-o", "tab")
    table = load_table("./tab")
    assert WordPieces.load(None, table).table is table
    with pytest.raises(ConfigError, match="lacks"):
        WordPieces.load(str(folders["gpt2"]), table)
