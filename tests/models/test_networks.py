"""Loading: code that comes with a model, sources that are none, the hub, and models that cannot run."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from tests.models.conftest import LABELS, SIZE, build_hub_cache, save, wordpiece
from tokenizers import Tokenizer, models
from torch import nn
from transformers import PreTrainedTokenizerFast

from textveil.errors import ConfigError, ModelError
from textveil.models import load_context, load_reader, load_sentences, load_tagger
from textveil.models.networks import load
from textveil.models.torch_networks import count_positions
from textveil.table.embedding import load_table
from textveil.table.hub import NoModelError, fetch


@pytest.fixture
def folder(folders, tmp_path) -> Path:
    """A tagger that a test may spoil."""
    return Path(shutil.copytree(folders["bert-tagger"], tmp_path / "model"))


def edit(file: Path, **changes: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


# ---- code ------------------------------------------------------------------------------------------------


def test_code_that_comes_with_a_model_is_not_run_even_if_someone_says_yes(folder, monkeypatch):
    edit(
        folder / "config.json",
        model_type="own",
        auto_map={"AutoConfig": "own.Config", "AutoModelForTokenClassification": "own.Network"},
    )
    (folder / "own.py").write_text(
        f"open({str(folder / 'ran')!r}, 'w').close()\n"
        "from transformers import BertConfig as Config, BertForTokenClassification as Network\n"
    )
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(ModelError, match="as a transformers model for tagger"):
        load_tagger(folder)
    assert not (folder / "ran").exists()


def test_code_that_comes_with_a_sentence_encoder_is_not_run(folders, tmp_path, monkeypatch):
    folder = Path(shutil.copytree(folders["bert-encoder"], tmp_path / "model"))
    (folder / "modules.json").write_text(
        json.dumps([{"idx": 0, "name": "0", "path": "", "type": "own.Network"}])
    )
    (folder / "own.py").write_text(f"open({str(folder / 'ran')!r}, 'w').close()\n")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(ModelError, match="as a sentence encoder"):
        load_sentences(folder)
    assert not (folder / "ran").exists()


# ---- sources ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("Maria Silva has cancer", "like that"),
        ("maria@example.org", "like that"),
        ("canary" * 1000, "'canary.{71}[.]{3}'"),
        ("a/" + "canary" * 1000, "'a/canary.*[.]{3}'"),
        ("a\0b", r"'a\\x00b'"),
    ],
)
@pytest.mark.parametrize("loads", [load_tagger, load_sentences])
def test_a_text_in_the_place_of_a_source_is_refused_without_showing_it(source, said, loads):
    with pytest.raises(ModelError, match=f"and {said} is neither$"):
        loads(source)


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """What a hub that cannot be reached was asked for."""
    names: list[str] = []

    def refuse(self, name, **options):
        names.append(name)
        raise ConnectionError

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
    return names


def test_a_cached_model_of_another_kind_is_not_said_to_be_missing(
    folders, tmp_path, monkeypatch, asked
):
    build_hub_cache(tmp_path, {"a/writer": folders["gpt2-lm"]}, monkeypatch)

    def load_other(location, local):
        raise ValueError(location)

    with pytest.raises(ModelError, match="could not load 'a/writer' as a judge") as caught:
        fetch("a/writer", "judge", load_other)
    assert not isinstance(caught.value, NoModelError)
    with pytest.raises(NoModelError, match="no cached model"):
        fetch("a/other", "judge", load_other)
    assert asked == ["a/writer", "a/other"]


def test_a_hub_that_cannot_be_reached_is_asked_once_and_loading_is_not_tried(asked, capfd):
    tried = []

    def loads(where: str, local: bool) -> None:
        tried.append((where, local))
        raise OSError

    with pytest.raises(NoModelError, match=r"no folder and no cached model is named 'models/typo'"):
        fetch("models/typo", "model", loads)
    assert tried == [("models/typo", True)]
    with pytest.raises(NoModelError, match="no folder and no cached model"):
        load_context(load_table("minilm"), "models/typo")
    assert asked == ["models/typo"] * 2
    assert capfd.readouterr() == ("", "")


def test_a_model_in_the_cache_needs_no_hub_and_one_on_the_hub_is_loaded_from_there(
    asked, monkeypatch
):
    assert fetch("owner/name", "model", lambda where, local: local) == ("owner/name", True)
    assert asked == []
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *_, **__: None)

    def loads(where: str, local: bool) -> bool:
        if local:
            raise OSError
        return local

    assert fetch("owner/name", "model", loads) == ("owner/name", False)


# ---- models that cannot run ------------------------------------------------------------------------------


def test_a_device_that_holds_nothing_is_refused(folder):
    with pytest.raises(ConfigError, match="'meta' is not available"):
        load_tagger(folder, device="meta")


def test_a_piece_without_an_embedding_is_refused(folder):
    tokenizer = wordpiece()
    tokenizer.add_tokens(["canary"])
    tokenizer.save_pretrained(folder)
    with pytest.raises(ModelError, match="has no embedding for piece"):
        load_tagger(folder)


@pytest.mark.parametrize("limit", [-1, 0, 7])
def test_a_model_that_takes_too_few_pieces_is_refused(limit, folder, folders, tmp_path):
    edit(folder / "tokenizer_config.json", model_max_length=limit)
    with pytest.raises(ModelError, match=f"takes {limit} pieces at once; tagger needs 8"):
        load_tagger(folder)
    reader = Path(shutil.copytree(folders["bert-reader"], tmp_path / "reader"))
    edit(reader / "tokenizer_config.json", model_max_length=31)
    with pytest.raises(ModelError, match="takes 31 pieces at once; reader needs 32"):
        load_reader(reader)


@pytest.mark.parametrize(
    "kind", [models.WordLevel({"x": 0, "y": 1}), models.BPE({"x": 0, "y": 1}, [])]
)
def test_a_tokenizer_that_cannot_cut_a_letter_is_refused(kind, tmp_path):
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(kind), model_max_length=128, pad_token="x"
    )
    labels = {
        "id2label": dict(enumerate(LABELS)),
        "label2id": {label: i for i, label in enumerate(LABELS)},
    }
    save(
        tmp_path,
        "BertForTokenClassification",
        tokenizer,
        **SIZE,
        **labels,
        max_position_embeddings=128,
    )
    with pytest.raises(ModelError, match="failed on a word"):
        load_tagger(tmp_path)


@pytest.mark.parametrize(
    ("family", "job", "piece"),
    [
        ("bert-tagger", "tagger", "[UNK]"),
        ("xlmr-tagger", "tagger", "<unk>"),
        ("gpt2-lm", "causal-lm", "<|endoftext|>"),
    ],
)
def test_a_word_that_is_dropped_has_a_piece_that_is_no_word(family, job, piece, folders):
    model = load(job, folders[family])
    assert model.tokenizer.id_to_token(model.unknown) == piece


def test_a_network_that_says_it_has_no_limit_has_a_default():
    network = nn.Identity()
    network.config = SimpleNamespace(max_position_embeddings=-1)  # type: ignore[assignment]
    assert count_positions(network) == 512
