"""A context over a model's own word pieces: logits by hand, draws by their law, statements that are true and sharp.

The models are small and random, and their tables are made as a user makes them. Each check has a broken twin.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from textveil.errors import ConfigError
from textveil.evaluate.attack.attack_input import Case
from textveil.evaluate.attack.posterior import rank_candidates
from textveil.mechanism import PLACEHOLDER, Block, Context, Fill, Layout, Role
from textveil.mechanism import context as context_module
from textveil.models import Ragged, load_context, measure_logits
from textveil.pipeline import Privatizer, draw
from textveil.randomness import Floats, Ids
from textveil.randomness.streams import SeededRandomness
from textveil.table import EmbeddingTable, WordPieces, load_table, store, vectors

MODELS = ("bert-lm", "gpt2-lm")
WORDS = ["maria", "lisbontown", "anchorx", "john"]
"""Two of them have several pieces in either tokenizer."""

OPTIONS: dict[str, Any] = {"bound": 4.0, "floor": -1.0}


@pytest.fixture(scope="module")
def tables(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The table of each model, with its word pieces."""
    root = tmp_path_factory.mktemp("tables")
    found = {}
    for name in MODELS:
        with vectors.open_vectors(str(folders[name])) as source:
            store.build(source, root / name, neighbours=0)
        found[name] = load_table(str(root / name))
    return found


def build_block(
    folder: Path, table: EmbeddingTable, words: list[str], roles: list[Role] | None = None
) -> Block:
    """The pieces of one text's words."""
    pieces, _ = WordPieces.load(str(folder), table).split(words)
    counts = [len(rows) for rows in pieces]
    roles = roles or [Role.PROTECT] * len(words)
    layout = Layout(
        roles=np.repeat(np.array(roles, np.int8), counts),
        documents=np.array([0, sum(counts)]),
        unit_of=np.repeat(np.arange(len(words)), counts),
        verbatim=tuple(
            word if role == Role.PASS else ""
            for word, role, count in zip(words, roles, counts, strict=True)
            for _ in range(count)
        ),
    )
    return Block(layout=layout, rows=np.concatenate(pieces))


def by_hand(folder: Path, table: EmbeddingTable, ids: list[int | None], at: int) -> Floats:
    """The model's logits of all rows at a position; None is what it does not see."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if tokenizer.mask_token_id is None:
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        seen = [tokenizer.bos_token_id, *(i for i in ids[:at] if i is not None)]
        place = len(seen) - 1
    else:
        model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
        shown = [None if i == at else piece for i, piece in enumerate(ids)]
        mask = tokenizer.mask_token_id
        middle = [mask if piece is None else piece for piece in shown]
        seen, place = [tokenizer.cls_token_id, *middle, tokenizer.sep_token_id], at + 1
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([seen])).logits[0, place].numpy()
    vocabulary = tokenizer.get_vocab()
    rows: Floats = logits[[vocabulary[word] for word in table.words]]
    return rows


def find_ids(folder: Path, table: EmbeddingTable, rows: Ids) -> list[int | None]:
    vocabulary = transformers.AutoTokenizer.from_pretrained(folder).get_vocab()
    return [vocabulary[table.words[row]] for row in rows.tolist()]


@pytest.mark.parametrize("mode", ["original", "released", "public"])
@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_the_models_own_pieces(
    name: str, mode: Any, folders: dict[str, Path], tables: dict[str, Any]
) -> None:
    table, folder = tables[name], folders[name]
    block = build_block(folder, table, WORDS)
    n = len(block.rows)
    assert n > len(WORDS)
    released = (block.rows + 5) % len(table)
    ids = find_ids(folder, table, block.rows if mode == "original" else released)
    for at in range(n):
        seen = [
            piece if mode == "original" or (mode == "released" and i < at) else None
            for i, piece in enumerate(ids)
        ]
        before = np.where(np.arange(n) < at, released, PLACEHOLDER)
        context = Context(mode=mode, model=str(folder))
        (found,) = context.compute_logits(table, block, np.array([at]), before)
        assert found == pytest.approx(by_hand(folder, table, seen, at), abs=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_a_word_that_passes_is_cut_by_the_model_and_a_placeholder_shows_no_number_of_pieces(
    name: str,
    folders: dict[str, Path],
    tables: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, folder = tables[name], folders[name]
    roles = [Role.PASS, Role.HOLE, Role.PROTECT]
    context = Context(mode="original", model=str(folder))

    def ask(hidden: str) -> Floats:
        block = build_block(folder, table, ["lisbontown", hidden, "john"], roles)
        (logits,) = context.compute_logits(table, block, np.array([0]), np.array([PLACEHOLDER]))
        return logits

    passing = build_block(folder, table, ["lisbontown"]).rows
    seen = [*find_ids(folder, table, passing), None, None]
    assert len(seen) > 3
    expected = by_hand(folder, table, seen, len(seen) - 1)
    assert ask("maria") == pytest.approx(expected, abs=1e-3)
    assert (ask("maria") == ask("marialisbon")).all()
    # The twin: every position is shown.
    monkeypatch.setattr(
        context_module, "_list_shown", lambda layout, *_: np.arange(len(layout.roles))
    )
    if name == "bert-lm":  # a causal model sees nothing of it anyway
        assert np.abs(ask("maria") - ask("marialisbon")).max() > 1e-3
    assert np.abs(ask("maria") - expected).max() > 1e-3


def make(
    name: str, folders: dict[str, Path], tables: dict[str, Any], mechanism: str, **options: Any
) -> Privatizer:
    return Privatizer(
        mechanism,
        table=tables[name],
        words={"unit": "wordpiece", "tokenizer": str(folders[name]), "stopwords": "protect"},
        **{
            "model": str(folders[name]),
            **({} if mechanism == "mask-and-fill" else OPTIONS),
            **options,
        },
    )


@pytest.mark.parametrize(
    ("mechanism", "options"), [("cape", {"nominal": 60.0}), ("rankcape", {"epsilon": 60.0})]
)
@pytest.mark.parametrize("mode", ["original", "released"])
@pytest.mark.parametrize("name", MODELS)
def test_the_pipeline_draws_by_the_law(
    name: str,
    mode: str,
    mechanism: str,
    options: dict[str, Any],
    folders: dict[str, Path],
    tables: dict[str, Any],
) -> None:
    privatizer = make(name, folders, tables, mechanism, context=mode, **options)
    run = privatizer.rehearse(["maria met lisbontown"] * 150)
    block, table, drawn = run.plan.block, privatizer.table, run.drawn_rows
    assert len(drawn) > 3 * 150

    def measure(law: Any) -> float:
        """How far the draws are from a law, in standard deviations."""
        chance = np.exp(law)
        mean = (chance * law).sum(axis=1)
        variance = (chance * law**2).sum(axis=1) - mean**2
        likelihood = law[np.arange(len(drawn)), drawn]
        return float((likelihood - mean).sum() / np.sqrt(variance.sum()))

    law = privatizer.mechanism.log_probs(table, block, run.parameter, drawn)  # type: ignore[attr-defined]
    assert np.exp(law).sum(axis=1) == pytest.approx(np.ones(len(law)), abs=1e-9)
    assert abs(measure(law)) < 4
    # The twin: a law that reads other words.
    moved = replace(block, rows=(block.rows + 7) % len(table))
    other = privatizer.mechanism.log_probs(table, moved, run.parameter, (drawn + 7) % len(table))  # type: ignore[attr-defined]
    assert abs(measure(other)) > 8


@pytest.mark.parametrize("name", MODELS)
def test_the_statement_of_a_word_of_several_pieces_is_true_and_sharp(
    name: str,
    folders: dict[str, Path],
    tables: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All pieces of a word change at once, and so do the laws of all positions."""
    privatizer = make(name, folders, tables, "rankcape", context="original", epsilon=12.0, k=3)
    run = privatizer.rehearse(["lisbontown maria"])
    block, table = run.plan.block, privatizer.table
    pieces = int(run.plan.counts[0])
    assert pieces > 1
    rng, largest = np.random.default_rng(3), 0.0
    law: Any = privatizer.mechanism.log_probs(table, block, run.parameter)  # type: ignore[attr-defined]
    for _ in range(60):
        rows = block.rows.copy()
        rows[:pieces] = rng.integers(len(table), size=pieces)
        other: Any = privatizer.mechanism.log_probs(  # type: ignore[attr-defined]
            table, replace(block, rows=rows), run.parameter
        )
        largest = max(largest, float((law - other).max(axis=1).sum()))
    spent = run.results[0].guarantee.epsilon_per_word
    assert spent == pytest.approx([12.0, 12.0], abs=1e-9)
    assert largest <= 12 * (1 + 1e-9)
    if name == "gpt2-lm":  # the last word is not seen by those before it
        assert largest > 6
    else:
        assert largest > 11
    # The twins: a word that is charged for its own positions only, and one that is charged twice.
    alone = run.parameter[0] * pieces
    assert largest > alone or name == "gpt2-lm"
    monkeypatch.setattr(draw, "looks_at_all", lambda mechanism: False)
    twice = make(name, folders, tables, "cape", context="original", nominal=9.0)
    first = twice.privatize("lisbontown maria").guarantee.epsilon_per_word
    monkeypatch.undo()
    once = twice.privatize("lisbontown maria").guarantee.epsilon_per_word
    assert first[0] == pytest.approx(pieces * once[0])
    assert once[0] == pytest.approx(once[1])


@pytest.mark.parametrize(
    ("name", "mechanism"), [("bert-lm", "cape"), ("bert-lm", "rankcape"), ("gpt2-lm", "rankcape")]
)
def test_the_bayes_attacker_reads_the_context_of_pieces(
    name: str, mechanism: str, folders: dict[str, Path], tables: dict[str, Any]
) -> None:
    """Its posterior is that of all private rows, one after the other."""
    options = {"nominal": 40.0} if mechanism == "cape" else {"epsilon": 9.0}
    privatizer = make(name, folders, tables, mechanism, context="released", **options)
    case = Case.create(privatizer, ["lisbontown maria"])
    view, table = case.view, privatizer.table
    n, size = len(view.output_rows), len(table)
    ranking = rank_candidates(view, prior="uniform", k=3, rng=SeededRandomness(1))
    assert ranking.evidence == "exact"
    for at in range(n):
        # A text for each private row, whose other words are whatever they are.
        rows = np.where(np.arange(n) == at, np.arange(size)[:, None], 0)
        block = Block(layout=Layout.build(*[n] * size), rows=rows.ravel())
        law: Any = privatizer.mechanism.log_probs(  # type: ignore[attr-defined]
            table, block, np.tile(view.parameter, size), np.tile(view.output_rows, size)
        )
        likelihood = law[at::n, view.output_rows[at]]
        expected = likelihood - np.logaddexp.reduce(likelihood)
        best = np.sort(expected)[::-1][:3]
        assert ranking.log_probability[at] == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_the_bound_is_measured_at_hidden_pieces(
    name: str, folders: dict[str, Path], tables: dict[str, Any]
) -> None:
    table, folder = tables[name], folders[name]
    context = load_context(table, folder)
    texts = Ragged.join([WORDS])
    found = measure_logits(context, texts, positions=np.array([1, 3]))
    cut, owners = context.split_words(texts)
    assert cut.ids is not None
    ids: list[int | None] = [*cut.ids.tolist()]
    logits = [
        by_hand(folder, table, ids, at) for at, word in enumerate(owners.tolist()) if word in (1, 3)
    ]
    assert len(logits) > 2
    assert found.positions == len(logits)
    assert found.largest == pytest.approx(np.max(logits), abs=1e-3)
    with pytest.raises(ValueError, match="indices of the 4 words"):
        measure_logits(context, texts, positions=np.array([4]))


@pytest.mark.parametrize("order", ["together", "in turn"])
@pytest.mark.parametrize("name", MODELS)
def test_mask_and_fill_fills_pieces_and_sees_no_private_one(
    name: str, order: Any, folders: dict[str, Path], tables: dict[str, Any]
) -> None:
    privatizer = make(name, folders, tables, "mask-and-fill", order=order)
    result = privatizer.privatize("lisbontown maria")
    assert (result.guarantee.kind, result.guarantee.epsilon) == ("ldp", 0)
    block = build_block(folders[name], tables[name], ["lisbontown", "maria"])
    fill = Fill(order=order, model=str(folders[name]))
    law = fill.log_probs(tables[name], block, np.zeros(len(block.rows)))
    other = Block(layout=block.layout, rows=(block.rows + 3) % len(tables[name]))
    assert (law == fill.log_probs(tables[name], other, np.zeros(len(block.rows)))).all()


def test_the_pieces_of_another_model_are_refused(
    folders: dict[str, Path], tables: dict[str, Any]
) -> None:
    for name, other in (MODELS, MODELS[::-1]):
        with pytest.raises(ConfigError, match="the model's own table"):
            load_context(tables[name], folders[other])


def test_a_table_of_whole_words_has_no_pieces(folders: dict[str, Path]) -> None:
    words = ["maria", "john", "lisbon"]
    table = EmbeddingTable.build(name="words", words=words, vectors=np.eye(3, dtype=np.float32))
    for name in MODELS:
        assert load_context(table, folders[name]).row_pieces is None


def test_the_registered_table_of_pieces_has_a_context() -> None:
    privatizer = Privatizer(
        "rankcape",
        table="minilm-wordpiece",
        words={"unit": "wordpiece"},
        context="original",
        epsilon=40.0,
        seed=1,
    )
    result = privatizer.privatize("Oskarowitzki met the lawyer.")
    assert result.guarantee.epsilon == pytest.approx(40)
