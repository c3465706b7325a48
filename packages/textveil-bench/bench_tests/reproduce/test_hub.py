"""Reproductions with --hub, with tiny random models in place of a hub's, in a cache of its form."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from textveil.cli import demo
from textveil_bench.data import load
from textveil_bench.reproduce.targets import load_target

EXTRA = "transformers"
WIDTH = 16


def build_hub_cache(folder: Path, models: dict[str, Path]) -> Path:
    """Links models' folders into a cache as huggingface_hub keeps it, by hub id."""
    for name, source in models.items():
        place = folder / f"models--{name.replace('/', '--')}"
        (place / "refs").mkdir(parents=True)
        (place / "refs" / "main").write_text("0" * 40, encoding="utf-8")
        (place / "snapshots").mkdir()
        (place / "snapshots" / ("0" * 40)).symlink_to(source, target_is_directory=True)
    return folder


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


def list_texts() -> list[str]:
    """Lists the texts of the packaged data set, of which tokenizers and vectors are made."""
    examples = [
        each for split in ("train", "test") for each in load("opinions", split=split).examples
    ]
    return [text for example in examples for text in example.texts]


def save_bert(folder: Path) -> Path:
    """Saves a random BERT with word pieces of the packaged data set."""
    transformers = pytest.importorskip(EXTRA)
    torch = pytest.importorskip("torch")
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=500, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(list_texts(), trainer)
    end, start = (tokenizer.token_to_id(name) or 0 for name in ("[SEP]", "[CLS]"))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", end), ("[CLS]", start))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=128,
    )
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    transformers.BertTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=128
    ).save_pretrained(folder)
    return folder


def write_glove(folder: Path) -> None:
    """Writes random vectors in the form and under the name of GloVe's."""
    words = sorted(
        {word.strip(".,").lower() for text in list_texts() for word in text.split()} - {""}
    )
    vectors = np.random.default_rng(0).normal(size=(len(words), WIDTH))
    lines = [
        f"{word} {' '.join(f'{x:.4f}' for x in row)}\n"
        for word, row in zip(words, vectors, strict=True)
    ]
    with zipfile.ZipFile(folder / "glove.840B.300d.zip", "w") as archive:
        archive.writestr("glove.840B.300d.txt", "".join(lines))


@pytest.fixture
def textveil(tmp_path):
    """Runs a command in a folder of its own, with the cache in place of a hub."""
    saved = {
        "openai-community/gpt2": save_gpt2(tmp_path / "saved"),
        "google-bert/bert-base-uncased": save_bert(tmp_path / "saved-bert"),
    }
    cache = build_hub_cache(tmp_path / "hub", saved)
    (tmp_path / "work").mkdir()
    write_glove(tmp_path / "work")
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stamp-table1", "stamp-fig6", "stamp-fig7-10"])
def test_stamp_runs_on_the_table_of_gpt2_as_its_authors_did(name, textveil, tmp_path):
    for sentence in load_target(name).hub_first:
        _, command, _ = sentence.split("`")
        textveil(*command.split()[1:])
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


@pytest.mark.slow
def test_cape_runs_on_the_pieces_of_its_own_model(textveil, tmp_path):
    for sentence in load_target("cape-fig5").hub_first:
        for command in sentence.split("`")[1::2]:
            textveil(*command.split()[1:])
    textveil("reproduce", "cape-fig5", "--hub", "--quick", "--processes", "1", "--output", "out")
    document = json.loads(
        (tmp_path / "work" / "out" / "cape-fig5-quick-hub.json").read_text("utf-8")
    )
    differs = " ".join(document["differs"])
    assert "Tables here: bert-base-uncased, glove.840B.300d" in differs
    assert "Language models of the context here: google-bert/bert-base-uncased." in differs
    lines = (tmp_path / "work" / "out" / "rows.jsonl").read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["entry"] == "cape"]
    assert rows
    for row in rows:
        assert row["table"] == "bert-base-uncased"
        assert row["configuration"]["mechanism"]["context"] == "original"
        assert any(score["metric"] == "accuracy" for score in row["scores"])
