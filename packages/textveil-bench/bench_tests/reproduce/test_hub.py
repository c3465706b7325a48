"""Reproductions with --hub, with tiny random models in place of a hub's, in a cache of its form."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from textveil.cli import demo
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


@pytest.fixture
def textveil(tmp_path):
    """Runs a command in a folder of its own, with the cache in place of a hub."""
    cache = build_hub_cache(
        tmp_path / "hub", {"openai-community/gpt2": save_gpt2(tmp_path / "saved")}
    )
    (tmp_path / "work").mkdir()
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
