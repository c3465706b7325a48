"""Reproductions with --hub, with tiny random models in place of a hub's, in a cache of its form."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.models.conftest import write_hub_cache

from bench_tests.reproduce.corpora import write_corpora
from textveil.cli import demo
from textveil_bench.reproduce.targets import load_target

EXTRA = "transformers"
WIDTH = 16


def save_gpt2(folder: Path) -> Path:
    """Saves a random GPT-2 with a tokenizer of a few hundred pieces."""
    transformers = pytest.importorskip(EXTRA)
    torch = pytest.importorskip("torch")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([demo.read_letter()] * 3, trainer)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=128,
        bos_token="<|endoftext|>",
        eos_token="<|endoftext|>",
    )
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(fast),
        n_embd=WIDTH,
        n_layer=1,
        n_head=2,
        n_positions=128,
        bos_token_id=0,
        eos_token_id=0,
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def save_bert(folder: Path, kind: str, **config: int) -> Path:
    """Saves a random model of BERT's family with a tokenizer of a few hundred word pieces."""
    transformers = pytest.importorskip(EXTRA)
    torch = pytest.importorskip("torch")
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(lowercase=True)
    tokenizer.train_from_iterator([demo.read_letter()] * 3, vocab_size=600, show_progress=False)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer._tokenizer,
        model_max_length=128,
        **{f"{role}_token": f"[{role.upper()}]" for role in ("pad", "unk", "cls", "sep", "mask")},
    )
    torch.manual_seed(0)
    network = getattr(transformers, kind)
    settings = network.config_class(vocab_size=len(fast), max_position_embeddings=128, **config)
    network(settings).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def save_models(folder: Path) -> dict[str, Path]:
    """Saves a model for each of those that the papers name, by hub id."""
    bert = {
        "hidden_size": WIDTH,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": WIDTH,
    }
    small = {"dim": WIDTH, "n_layers": 1, "n_heads": 2, "hidden_dim": WIDTH}
    return {
        "openai-community/gpt2": save_gpt2(folder / "gpt2"),
        "google-bert/bert-base-uncased": save_bert(folder / "bert", "BertForMaskedLM", **bert),
        "distilbert/distilbert-base-uncased": save_bert(
            folder / "distilbert", "DistilBertForMaskedLM", **small
        ),
        "princeton-nlp/sup-simcse-bert-base-uncased": save_bert(
            folder / "simcse", "BertModel", **bert
        ),
    }


def write_glove(path: Path) -> None:
    """Writes a file in the form of GloVe's, of the letter's words."""
    words = sorted(set(re.findall("[a-z]+", demo.read_letter().lower())))
    rows = np.random.default_rng(0).normal(size=(len(words), WIDTH))
    with zipfile.ZipFile(path, "w") as archive:
        lines = (
            f"{word} {' '.join(f'{x:.4f}' for x in row)}\n"
            for word, row in zip(words, rows, strict=True)
        )
        archive.writestr("glove.840B.300d.txt", "".join(lines))


@pytest.fixture
def textveil(tmp_path):
    """Runs a command in a folder of its own, with the cache in place of a hub."""
    cache = tmp_path / "hub"
    write_hub_cache(cache, save_models(tmp_path / "saved"))
    (tmp_path / "work").mkdir()
    write_glove(tmp_path / "work" / "glove.840B.300d.zip")
    environment = {
        **{name: value for name, value in os.environ.items() if name != "TEXTVEIL_CORPORA"},
        "HF_HUB_CACHE": str(cache),
        "HF_HUB_OFFLINE": "1",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "textveil", *arguments],
            cwd=tmp_path / "work",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def build_tables(name: str, textveil) -> None:
    """Runs the commands that a target says to run first."""
    for sentence in load_target(name).hub_first:
        for command in re.findall("`textveil ([^`]+)`", sentence):
            textveil(*command.split())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stamp-table1", "stamp-fig6", "stamp-fig7-10"])
def test_stamp_runs_on_the_table_of_gpt2_as_its_authors_did(name, textveil, tmp_path):
    build_tables(name, textveil)
    textveil("reproduce", name, "--hub", "--quick", "--processes", "1", "--output", "out")
    document = json.loads((tmp_path / "work" / "out" / f"{name}-quick-hub.json").read_text("utf-8"))
    differs = " ".join(document["differs"])
    assert "Tables here: gpt2" in differs  # with gpt2-raw, where Laplace noise has a part
    assert "minilm-s" not in differs
    assert all(cell["figures"] for cell in document["cells"])
    lines = (tmp_path / "work" / "out" / "rows.jsonl").read_text("utf-8").splitlines()
    released = [row for row in map(json.loads, lines) if row["table"]]
    assert {row["table"] for row in released} <= {"gpt2", "gpt2-raw"}
    units = {row["configuration"]["words"]["unit"] for row in released}
    assert units <= {"auto", "wordpiece"}, "auto is that of the table, whose tokenizer has pieces"
    assert {row["configuration"]["words"]["stopwords"] for row in released} == {"protect"}


BERT, DISTILBERT, GPT2 = (
    {"google-bert/bert-base-uncased": "bert-base-uncased"},
    {"distilbert/distilbert-base-uncased": "distilbert-base-uncased"},
    {"openai-community/gpt2": "gpt2"},
)
"""Tables of models: the pieces that Cape draws are those of its context."""


CAPE = {
    "cape-fig5": BERT | GPT2,
    "cape-table5": BERT | GPT2,
    "cape-fig6": BERT | GPT2,
    "cape-table6": BERT | GPT2,
    "cape-fig8": BERT,
    "cape-table8": BERT | DISTILBERT,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CAPE))
def test_cape_draws_the_pieces_of_its_context(name, textveil, tmp_path, openai_server):
    write_corpora(tmp_path / "corpora")
    asking = ["--hub", "--quick", "--folder", str(tmp_path / "corpora"), "--upstream"]
    asking += [openai_server, "--model", "echo", "--local-url", openai_server]
    asking += ["--local-model", "draft", "--output", "out"]
    first = textveil("reproduce", name, *asking, "--dry-run")
    assert "first: Cape's table" in first
    assert "not counted:" in first, "there are no tables yet"
    build_tables(name, textveil)
    assert "not counted:" not in textveil("reproduce", name, *asking, "--dry-run")
    textveil("reproduce", name, *asking, "--processes", "1")
    folder = tmp_path / "work" / "out"
    lines = (folder / "rows.jsonl").read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["family"] == "cape"]
    mechanisms = [(row["configuration"]["mechanism"], row["table"]) for row in rows]
    drawn = {(each["model"], table) for each, table in mechanisms if "context" in each}
    assert drawn == {*CAPE[name].items()}
    assert all(each["bound"] > 0 for each, _ in mechanisms if "context" in each), "measured"
    assert {row["configuration"]["words"]["unit"] for row in rows} == {"auto"}
    document = json.loads((folder / f"{name}-quick-hub.json").read_text("utf-8"))
    bare = {cell["data"] for cell in document["cells"] if not cell["figures"]}
    assert bare == ({"opinions"} if name == "cape-table6" else set()), "which is of continuations"
    differs = " ".join(document["differs"])
    assert "bundled masked" not in differs
    assert "stands for DistilBERT" not in differs
    assert ("minilm-s" in differs) <= any(
        row["table"] == "minilm-s" for row in map(json.loads, lines)
    )
    has_gone_unrun = any("masked" in row["not_run"] for row in rows)
    assert ("MTI here guesses whole words only" in differs) is (
        has_gone_unrun and name == "cape-fig5"
    )
