"""Nearness in meaning: cosines of four words in a plane, by hand, and of texts under an encoder that counts words."""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from tests.fixtures import Stub

from textveil.errors import ConfigError
from textveil.evaluate.attack import Attack, Case
from textveil.mechanism import PLACEHOLDER, Block, Layout
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.table.embedding import EmbeddingTable
from textveil_bench.attack import semantic
from textveil_bench.attack.reconstruction import compute_cosines, fill, spell
from textveil_bench.attack.report import compute_rates, load
from textveil_bench.attack.semantic import Semantic

ANGLES = {"anchor": 0, "bridge": 50, "candle": 60, "dinner": 180}
ANCHOR, BRIDGE, CANDLE, DINNER = range(4)
RNG = SeededRandomness(1)


@pytest.fixture(scope="module")
def plane() -> EmbeddingTable:
    """Rows of several lengths at known angles."""
    turns = np.radians(list(ANGLES.values()))
    vectors = np.stack([np.cos(turns), np.sin(turns)], axis=1) * np.array(
        [[1.0], [2.0], [3.0], [4.0]]
    )
    return EmbeddingTable.build(
        name="plane", words=list(ANGLES), vectors=vectors, metric="euclidean"
    )


def case_of(table, texts, rows, **words) -> Case:
    release = Stub(release=lambda table, block: np.array(rows))
    return Case.create(Privatizer(release, epsilon=1.0, table=table, words=words), texts)


@dataclass(frozen=True)
class Counting:
    """Sentence vectors that count four words."""

    def encode(self, texts):
        counts = np.array(
            [[text.split().count(word) for word in ANGLES] for text in texts], np.float32
        )
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


@pytest.fixture
def rank(monkeypatch):
    """Plants the best guesses, and notes what was asked."""

    def do(rows, blind=0):
        asked = []

        def posterior(view, **options):
            asked.append((view, options))
            blinds = np.full(len(rows), blind)
            return SimpleNamespace(
                candidates=np.array(rows)[:, None], blind=blinds, evidence="exact"
            )

        monkeypatch.setattr(semantic, "rank_candidates", posterior)
        monkeypatch.setattr(semantic, "load_sentences", Counting)
        return asked

    return do


def outcomes(attack, case):
    return {
        (outcome.metric, outcome.setting["guess"]): outcome for outcome in attack.run(case, rng=RNG)
    }


def cos(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def test_cosines_of_words_by_hand(plane, rank):
    case = case_of(
        plane, ["the anchor and dinner", "anchor bridge"], [CANDLE, DINNER, CANDLE, CANDLE]
    )
    rank([BRIDGE, DINNER, DINNER, ANCHOR], blind=CANDLE)
    found = outcomes(Semantic(), case)
    best, released = [cos(50), 1, -1, cos(50)], [cos(60), 1, cos(60), cos(10)]
    assert found["mean cosine", "best"].values == pytest.approx(best, abs=1e-6)
    assert found["mean cosine", "released"].values == pytest.approx(released, abs=1e-6)
    assert found["cosine >= 0.6", "best"].values.tolist() == [1, 1, 0, 1]
    assert found["cosine >= 0.6", "released"].values.tolist() == [0, 1, 0, 1]
    without = [cos(60), cos(120), cos(60), cos(10)]
    assert found["mean cosine", "best"].baseline == pytest.approx(np.mean(without), abs=1e-6)
    assert found["cosine >= 0.6", "best"].baseline == pytest.approx(0.25)
    assert found["cosine >= 0.6", "released"].baseline is None
    assert outcomes(Semantic(threshold=0.65), case)["cosine >= 0.65", "best"].values.tolist() == [
        0,
        1,
        0,
        0,
    ]


def test_cosines_of_texts_by_hand(plane, rank):
    case = case_of(
        plane,
        ["anchor and dinner", "the", "anchor bridge candle"],
        [CANDLE, DINNER, CANDLE, CANDLE, CANDLE],
    )
    rank([ANCHOR, DINNER, ANCHOR, ANCHOR, CANDLE], blind=DINNER)
    found = outcomes(Semantic(), case)
    assert found["cosine of texts", "best"].where.tolist() == [0, 2]
    # (1,1) with itself; (2,0,1) with (1,1,1). Released: (0,0,1,1) with (1,0,0,1); (0,0,3) with (1,1,1).
    assert found["cosine of texts", "best"].values == pytest.approx(
        [1, 3 / math.sqrt(15)], abs=1e-6
    )
    assert found["cosine of texts", "released"].values == pytest.approx(
        [0.5, 1 / math.sqrt(3)], abs=1e-6
    )
    # without the release: (0,0,0,2) with (1,0,0,1); (0,0,0,3) with (1,1,1,0)
    assert found["cosine of texts", "best"].baseline == pytest.approx(
        1 / math.sqrt(2) / 2, abs=1e-6
    )


def test_positions_with_a_placeholder_are_left_out(plane, rank):
    case = case_of(plane, ["anchor bridge", "candle"], [CANDLE, PLACEHOLDER, PLACEHOLDER])
    rank([ANCHOR, ANCHOR, ANCHOR])
    found = outcomes(Semantic(), case)
    assert found["mean cosine", "best"].where.tolist() == [0]
    assert found["mean cosine", "best"].values == pytest.approx([1.0])
    assert found["cosine of texts", "best"].where.tolist() == [0]
    assert found["cosine of texts", "best"].values == pytest.approx(
        [1 / math.sqrt(2)]
    )  # "anchor <WORD>"


def test_without_a_drawn_word_it_is_refused(plane):
    assert "nothing was drawn" in Semantic().refusal(case_of(plane, ["anchor"], [PLACEHOLDER]).view)
    assert Semantic().refusal(case_of(plane, ["anchor"], [BRIDGE]).view) == ""
    known = Case.create(Privatizer("exponential", epsilon=1.0, table=plane), ["anchor"])
    assert Semantic().refusal(known.view) == ""


def test_the_ranking_is_asked_for_with_the_options(plane, rank):
    case = case_of(plane, ["anchor"], [BRIDGE])
    asked = rank([ANCHOR])
    found = list(Semantic(prior="uniform", draws=7).run(case, rng=RNG))
    ((view, options),) = asked
    assert view is case.view
    assert (options["prior"], options["k"], options["draws"], options["rng"]) == (
        "uniform",
        1,
        7,
        RNG,
    )
    best, released = {"guess": "best", "prior": "uniform"}, {"guess": "released"}
    assert [outcome.setting for outcome in found] == [best] * 3 + [released] * 3
    assert all("exact" in outcome.note for outcome in found[:3])
    assert [outcome.headline for outcome in found] == [True, False, False, False, False, False]


@pytest.mark.parametrize(
    "options", [{"threshold": 0}, {"threshold": 1.1}, {"draws": 0}, {"prior": "mine"}]
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ConfigError):
        Semantic(**options)


def test_it_is_registered_and_its_outcomes_become_rates(plane, rank):
    attack = load("semantic", {})
    assert isinstance(attack, Attack)
    case = case_of(plane, ["anchor bridge", "candle"], [CANDLE, BRIDGE, CANDLE])
    rank([ANCHOR, BRIDGE, CANDLE])
    values = [
        row.value
        for row in compute_rates(case, list(attack.run(case, rng=RNG)))
        if row.slice == "all"
    ]
    assert values == pytest.approx([1, 1, 1, 2 / 3, (cos(60) + 2) / 3, 3 / 4], abs=1e-6)


def test_exact_guesses_come_nearer_than_the_released_words(small_table, monkeypatch):
    """Rows 0 and 59 are all that is written; a released word then tells which of the two it was."""
    prior = np.full(len(small_table), 1e-9)
    prior[[0, 59]] = 0.5
    monkeypatch.setattr(
        "textveil.evaluate.attack.prior.get_static_prior",
        lambda table, name, stopwords="pass": np.log(prior),
    )
    monkeypatch.setattr(
        semantic,
        "load_sentences",
        lambda: SimpleNamespace(encode=lambda texts: np.ones((len(texts), 1))),
    )
    texts = [f"{small_table.words[0]} {small_table.words[59]}"] * 50
    case = Case.create(Privatizer("exponential", c=3.0, table=small_table, seed=1), texts)
    found = outcomes(Semantic(), case)
    best, released = (found["mean cosine", guess].values.mean() for guess in ("best", "released"))
    likeliest = exact(case, small_table)
    assert found["cosine >= 0.6", "best"].values.mean() == pytest.approx(
        (likeliest == case.truth.rows).mean()
    )
    assert best > released + 0.1


def exact(case, table):
    """The likelier of rows 0 and 59 at each position, from the written law."""
    rows = np.array([0, 59])
    layout = Layout.build(2)
    laws = case.view.mechanism.log_probs(
        table, Block(layout=layout, rows=rows), case.view.parameter[:2]
    )
    return rows[laws[:, case.view.output_rows].argmax(axis=0)]


# ---- reconstructions ------------------------------------------------------------------------------------------


def test_guesses_are_filled_in_where_words_were_protected(plane):
    case = case_of(
        plane, ["The anchor,\n and dinner", " bridge", ""], [CANDLE, PLACEHOLDER, DINNER]
    )
    words = fill(case.view, np.array([BRIDGE, ANCHOR, PLACEHOLDER]))
    assert words == ["the", "bridge", ",", "and", "anchor", "dinner"]
    assert spell(case.view, words) == ["the bridge,\n and anchor", " dinner", ""]
    assert spell(case.view, case.view.items) == [released.text for released in case.view.released]


def test_pieces_of_a_word_are_filled_in_together(wordpiece_table):
    row = wordpiece_table.row_of
    case = case_of(
        wordpiece_table,
        ["the anchoring river"],
        [row["a"], row["##b"], row["stone"]],
        unit="wordpiece",
    )
    assert case.view.item.tolist() == [1, 1, 2]
    assert fill(case.view, np.array([row["bridge"], row["##er"], row["ocean"]])) == [
        "the",
        "bridgeer",
        "ocean",
    ]
    assert fill(case.view, np.array([row["bridge"], PLACEHOLDER, row["ocean"]])) == [
        "the",
        "ab",
        "ocean",
    ]


def test_cosines_of_a_projection_are_those_of_the_whole_table(small_table, monkeypatch):
    vectors = small_table.take(slice(None)).astype(np.float64)
    one, other = np.arange(20), np.arange(20)[::-1].copy()
    monkeypatch.setattr("textveil_bench.attack.reconstruction.SLAB_ROWS", 7)
    expected = (vectors[one] * vectors[other]).sum(axis=1)
    assert compute_cosines(small_table.project(3), one, other) == pytest.approx(expected, abs=1e-6)
