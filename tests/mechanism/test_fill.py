"""Mask and fill: the release follows from what passes alone, and the draws follow the written law."""

from typing import Any

import numpy as np
import pytest
import torch
from tests.models.conftest import SIZE, save, wordpiece

from textveil.errors import ConfigError
from textveil.mechanism import Block, Fill, Layout, Role
from textveil.models.context import load_context
from textveil.models.ragged import Ragged
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.table.embedding import EmbeddingTable

WORDS = [
    "apple",
    "butter",
    "castle",
    "doctor",
    "lantern",
    "market",
    "meadow",
    "needle",
    "river",
    "stone",
]
TABLE = EmbeddingTable.build(
    name="ten", words=WORDS, vectors=np.random.default_rng(3).normal(size=(10, 6))
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    torch.manual_seed(4)
    folder = tmp_path_factory.mktemp("fill")
    return str(save(folder, "BertForMaskedLM", wordpiece(), **SIZE, max_position_embeddings=64))


def text_of(*words: str, passing: tuple[int, ...] = ()) -> Block:
    """One text in which the words at some places pass."""
    roles = np.full(len(words), Role.PROTECT, np.int8)
    roles[list(passing)] = Role.PASS
    layout = Layout(
        roles=roles,
        documents=np.array([0, len(words)]),
        unit_of=np.arange(len(words)),
        verbatim=tuple(word if i in passing else "" for i, word in enumerate(words)),
    )
    return Block(
        layout=layout, rows=np.array([WORDS.index(word) if word in WORDS else 0 for word in words])
    )


def expected(model: str, words: list[str], at: int, unseen: list[int]) -> np.ndarray:
    """What the model says at a place, asked directly."""
    hidden = np.zeros(len(words), bool)
    hidden[unseen] = True
    texts = Ragged(
        words=words, documents=np.array([0, len(words)]), spaced=np.ones(len(words), bool)
    )
    return load_context(TABLE, model).compute_logits(texts, np.array([at]), hidden=hidden)[0]


def filled(fill: Fill, block: Block, seed: int = 1) -> list[int]:
    return fill.privatize(
        TABLE, block, np.zeros(len(block.layout.positions)), rng=SeededRandomness(seed)
    ).tolist()


def test_the_likeliest_word_is_taken_from_left_to_right(model: str) -> None:
    block = text_of("stone", "the", "river", passing=(1,))
    first = int(expected(model, ["stone", "the", "river"], 0, [2]).argmax())
    second = int(expected(model, [WORDS[first], "the", "river"], 2, []).argmax())
    assert filled(Fill(model=model, order="in turn"), block) == [first, second]


def test_together_every_place_sees_what_passes_alone(model: str) -> None:
    block = text_of("stone", "the", "river", passing=(1,))
    alone = [int(expected(model, ["x", "the", "x"], at, [2 - at]).argmax()) for at in (0, 2)]
    assert filled(Fill(model=model), block) == alone


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_no_protected_word_is_looked_at(model: str, temperature: float) -> None:
    fill = Fill(model=model, temperature=temperature)
    blocks = [
        text_of(a, "the", b, passing=(1,)) for a, b in (("stone", "river"), ("apple", "needle"))
    ]
    assert filled(fill, blocks[0]) == filled(fill, blocks[1])
    laws = [fill.log_probs(TABLE, block, np.zeros(2)) for block in blocks]
    assert (laws[0] == laws[1]).all()
    other = text_of("stone", "a", "river", passing=(1,))
    other_law = fill.log_probs(TABLE, other, np.zeros(2))
    if temperature:  # the twin: what passes is looked at
        assert np.abs(other_law - laws[0]).max() > 1e-4


def test_the_law_is_a_softmax_of_the_logits_given_what_was_released(model: str) -> None:
    block = text_of("stone", "the", "river", passing=(1,))
    law = Fill(model=model, order="in turn", temperature=0.5).log_probs(
        TABLE, block, np.zeros(2), np.array([7, 3])
    )
    for line, logits in zip(
        law,
        (
            expected(model, ["x", "the", "x"], 0, [2]),
            expected(model, ["needle", "the", "x"], 2, []),
        ),
        strict=True,
    ):
        scaled = logits.astype(np.float64) / 0.5
        assert line == pytest.approx(scaled - np.log(np.exp(scaled).sum()), abs=1e-5)


@pytest.mark.slow
def test_draws_follow_the_law(model: str) -> None:
    from scipy import stats

    n = 20_000
    fill, one = Fill(model=model, temperature=4.0), text_of("stone")
    law = np.exp(fill.log_probs(TABLE, one, np.zeros(1))[0])
    many = Block(layout=Layout.build(*[1] * n), rows=np.zeros(n, np.int64))
    counts = np.bincount(filled(fill, many), minlength=len(WORDS))
    assert law.min() * n > 5
    assert stats.chisquare(counts, law / law.sum() * n).pvalue > 1e-6
    assert stats.chisquare(np.roll(counts, 1), law / law.sum() * n).pvalue < 1e-6


def test_the_statement_is_epsilon_0_and_says_what_remains(model: str) -> None:
    privatizer = Privatizer("mask-and-fill", table=TABLE, model=model)
    result = privatizer.privatize("The doctor saw the river")
    said = result.guarantee.explain()
    assert (result.guarantee.kind, result.guarantee.epsilon, result.guarantee.placeholders) == (
        "ldp",
        0.0,
        0,
    )
    assert "epsilon at most 0 for any two words (local DP)" in said
    assert "Nothing is drawn" in said
    assert "guessed from the words that pass" in said
    assert [item.kind.value for item in result.released.items].count("word") == 3


@pytest.mark.parametrize(("temperature", "draws"), [(0.0, False), (0.1, True)])
def test_whether_anything_is_drawn_follows_from_the_temperature(
    temperature: float, draws: bool
) -> None:
    claim = Fill(temperature=temperature).claim(TABLE)
    assert (claim.draws, claim.kind) == (draws, "ldp")
    assert claim.options["temperature"] == temperature


@pytest.mark.parametrize("value", [-0.1, float("inf"), float("nan")])
def test_a_temperature_is_no_less_than_0(value: Any) -> None:
    with pytest.raises(ConfigError, match="temperature"):
        Fill(temperature=value)
