"""Texts written anew by a local model: statement, draws, refusals; tiny random models in folders."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.models.conftest import SIZE, byte_level, save, wordpiece

from textveil.cli import main
from textveil.errors import ConfigError, ModelError
from textveil.mechanism import TokenDraw
from textveil.pipeline import Paraphraser

CANARY = "zyqxorvian"
TEXTS = [f"the river {CANARY} runs", "a castle"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("writers")
    gpt2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 128, "bos_token_id": 0}
    t5: dict[str, Any] = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    made: dict[str, Path] = {
        "gpt2": save(
            root / "gpt2", "GPT2LMHeadModel", byte_level(framed=False), eos_token_id=0, **gpt2
        ),
        "t5": save(
            root / "t5",
            "T5ForConditionalGeneration",
            wordpiece(),
            decoder_start_token_id=0,
            eos_token_id=3,
            **t5,
        ),
        "bert": save(root / "bert", "BertModel", wordpiece(), max_position_embeddings=128, **SIZE),
    }
    return {name: str(folder) for name, folder in made.items()}


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_a_text_costs_at_most_its_epsilon(family: str, folders: dict[str, str]) -> None:
    paraphraser = Paraphraser(model=folders[family], epsilon=60.0, tokens=12, seed=3)
    first, second = paraphraser.paraphrase(TEXTS)
    assert first.epsilon == pytest.approx(60.0)
    assert first.epsilon == pytest.approx(12 * first.token_epsilon)
    assert first.text
    assert first.text != second.text
    assert "local DP 60" in first.summary()
    assert "at most 12 tokens" in first.summary()
    assert "repeated releases add up" in first.explain()
    again = Paraphraser(model=folders[family], epsilon=60.0, tokens=12, seed=3).paraphrase(TEXTS)
    assert [each.text for each in again] == [first.text, second.text]
    fresh = Paraphraser(model=folders[family], epsilon=60.0, tokens=12).paraphrase(TEXTS)
    assert [each.text for each in fresh] != [first.text, second.text]
    assert "no protection" not in fresh[0].explain()


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_every_token_is_drawn_from_clipped_logits(
    family: str, folders: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is drawn is what the model writes, and no more draws are made than charged."""
    asked: list[int] = []

    def draw(self: TokenDraw, draws: Any, logits: Any) -> int:
        assert logits.ndim == 1
        asked.append(len(asked))
        return 40 + len(asked)

    monkeypatch.setattr(TokenDraw, "draw", draw)
    paraphraser = Paraphraser(model=folders[family], temperature=1.0, tokens=5)
    (written,) = paraphraser.paraphrase([TEXTS[0]])
    assert len(asked) == 5
    tokenizer = paraphraser.generator.tokenizer
    assert written.text == " ".join(tokenizer.decode([41, 42, 43, 44, 45]).split())


def test_a_model_that_copies_is_bounded_all_the_same(folders: dict[str, str]) -> None:
    """Scaling the output layer by a thousand makes logits huge; clipping keeps the loss of a token."""
    paraphraser = Paraphraser(model=folders["gpt2"], temperature=5.0, tokens=3)
    network = paraphraser.generator.network
    seen: list[Any] = []

    def choose(logits: Any) -> int:
        seen.append(logits)
        return 5

    network.lm_head.weight.data *= 1000
    for text in TEXTS:
        paraphraser.generator.write("", text, "", tokens=1, choose=choose)
    laws = [paraphraser.draw.compute_weights(logits) for logits in seen]
    ratio = (laws[0] / laws[0].sum()) / (laws[1] / laws[1].sum())
    assert abs(seen[0] - seen[1]).max() > 2 * paraphraser.draw.loss
    assert max(ratio.max(), 1 / ratio.min()) <= 2.718281828**paraphraser.draw.loss


def test_a_long_text_is_cut_and_too_many_tokens_are_refused(folders: dict[str, str]) -> None:
    long = " ".join(TEXTS * 100)
    (written,) = Paraphraser(model=folders["gpt2"], temperature=1.0, tokens=5).paraphrase([long])
    assert isinstance(written.text, str)
    with pytest.raises(ModelError, match="no room for the text") as refused:
        Paraphraser(model=folders["gpt2"], temperature=1.0, tokens=127).paraphrase([TEXTS[0]])
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "epsilon or temperature"),
        ({"epsilon": 3.0, "temperature": 1.0}, "epsilon or temperature"),
        ({"epsilon": 0.0}, "epsilon must be above 0"),
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": 1.0, "width": -1.0}, "width"),
        ({"epsilon": 1.0, "bounds": (2.0, 1.0)}, "lower one first"),
        ({"temperature": 1.0, "tokens": 0}, "tokens must be 1 or more"),
        ({"temperature": 1.0, "prompt": "say it again"}, r"\{text\} once"),
    ],
)
def test_wrong_options_are_refused_before_a_model_is_loaded(
    options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        Paraphraser(model="no/such", **options)


def test_models_that_do_not_write_are_refused(folders: dict[str, str]) -> None:
    for model in (folders["bert"], "no/such-model", "/no/such"):
        with pytest.raises(ModelError) as refused:
            Paraphraser(model=model, temperature=1.0).paraphrase([TEXTS[0]])
        assert CANARY not in str(refused.value)


def test_the_verb(
    folders: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "texts.txt", tmp_path / "out.txt"
    source.write_text("\n".join(TEXTS) + "\n")
    options = ["--model", folders["t5"], "--epsilon", "50", "--tokens", "5", "--seed", "1"]
    assert main(["paraphrase", str(source), "--output", str(target), *options]) == 0
    assert len(target.read_text().splitlines()) == 2
    assert "local DP 50 for the whole text" in capsys.readouterr().err
    assert main(["paraphrase", TEXTS[0], "--json", *options]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["guarantee"]["epsilon"] == pytest.approx(50.0)
    assert main(["paraphrase", TEXTS[0], "--bounds", "1", *options]) == 2
    written = capsys.readouterr().err
    assert "two numbers" in written
    assert CANARY not in written
