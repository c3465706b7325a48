"""Several privatizers over the same texts: the same results as one by one, and a language model that is asked once."""

from typing import Any

import pytest
from tests.models.conftest import SIZE, save, wordpiece

from textveil.models.context import LanguageModel
from textveil.pipeline import Privatizer, sweep
from textveil.pipeline.results import EvaluationRun
from textveil.table.embedding import EmbeddingTable

TEXTS = [
    "the doctor saw a river in the old castle",
    "apple, butter and the lantern",
    "",
    "market near the Ocean with a silver needle",
    "a meadow of stone",
]
EPSILONS = (9.0, 12.0, 20.0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("sweep")
    return str(save(folder, "BertForMaskedLM", wordpiece(), **SIZE, max_position_embeddings=64))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many positions the language model was asked about, call by call."""
    found: list[int] = []
    logits = LanguageModel.compute_logits

    def counting(self: LanguageModel, texts: Any, positions: Any, hidden: Any = None) -> Any:
        found.append(len(positions))
        return logits(self, texts, positions, hidden)

    monkeypatch.setattr(LanguageModel, "compute_logits", counting)
    return found


def several(
    table: EmbeddingTable, model: str, mode: str, name: str = "cape", **words: Any
) -> list[Privatizer]:
    return [
        Privatizer(
            name,
            table=table,
            epsilon=epsilon * 9,
            seed=4,
            context=mode,
            model=model,
            bound=3.0,
            floor=-1.0,
            words=words,
        )
        for epsilon in EPSILONS
    ]


def same(one: EvaluationRun, other: EvaluationRun) -> bool:
    return (
        [result.text for result in one.results] == [result.text for result in other.results]
        and [result.guarantee.to_json() for result in one.results]
        == [r.guarantee.to_json() for r in other.results]
        and bool((one.drawn_rows == other.drawn_rows).all())
        and bool((one.parameter == other.parameter).all())
    )


@pytest.mark.parametrize("name", ["cape", "rankcape"])
@pytest.mark.parametrize("mode", ["original", "public", "released"])
def test_a_sweep_is_what_single_rehearsals_are(
    mode: str, name: str, small_table: EmbeddingTable, model: str
) -> None:
    swept = list(sweep(several(small_table, model, mode, name), TEXTS))
    assert len(swept) == 1
    single = [privatizer.rehearse(TEXTS) for privatizer in several(small_table, model, mode, name)]
    assert all(same(one, other) for one, other in zip(swept[0], single, strict=True))
    assert not same(swept[0][0], swept[0][1])


@pytest.mark.parametrize("mode", ["original", "public", "released"])
def test_the_language_model_is_asked_once_for_all_budgets(
    mode: str, small_table: EmbeddingTable, model: str, asked: list[int]
) -> None:
    (swept,) = sweep(several(small_table, model, mode), TEXTS)
    layout = swept[0].plan.block.layout
    words, longest = len(layout.positions), int(layout.sizes.max())
    assert sum(asked) == words * (len(EPSILONS) if mode == "released" else 1)
    assert len(asked) == (len(EPSILONS) * longest if mode == "released" else 1)
    asked.clear()
    for privatizer in several(small_table, model, mode):
        privatizer.rehearse(TEXTS)
    assert sum(asked) == words * len(EPSILONS)


def test_every_part_is_asked_about_once(
    small_table: EmbeddingTable, model: str, asked: list[int]
) -> None:
    """Parts of at most ten words; a longer text is a part of its own."""
    parts = list(sweep(several(small_table, model, "public"), TEXTS, part=10))
    assert [len(part[0].results) for part in parts] == [1, 2, 2] or len(parts) > 2
    assert [result.private.text for part in parts for result in part[0].results] == TEXTS
    assert sum(asked) == sum(len(part[0].plan.block.layout.positions) for part in parts)
    singles = several(small_table, model, "public")
    for part in parts:
        own = [result.private.text for result in part[0].results]
        assert all(
            same(one, privatizer.rehearse(own))
            for one, privatizer in zip(part, singles, strict=True)
        )


def test_what_is_kept_is_not_taken_for_other_words(small_table: EmbeddingTable, model: str) -> None:
    """One memo, and texts of the same shape: what passes and, in `original`, what is protected is another."""
    memo: dict[object, object] = {}
    for mode in ("original", "public"):
        for text in ("the river is a castle", "a river was the castle", "the garden is a market"):
            for casing in ("lower", "copy"):
                kept = several(small_table, model, mode, casing=casing)[0].rehearse(
                    [text], memo=memo
                )
                assert same(
                    kept, several(small_table, model, mode, casing=casing)[0].rehearse([text])
                )


def test_no_texts_are_no_parts(small_table: EmbeddingTable, model: str) -> None:
    assert list(sweep(several(small_table, model, "public"), [])) == []
