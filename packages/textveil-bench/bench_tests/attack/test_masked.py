"""Masked-token inference: guesses against a whole network run by hand, positions, candidates, and what is seen."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
import transformers
from tests.fixtures import NOUNS, Stub
from tests.models.conftest import SIZE, save, wordpiece

from textveil.evaluate.attack import Attack, Case
from textveil.mechanism import PLACEHOLDER
from textveil.models import load_context
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.table.embedding import EmbeddingTable
from textveil_bench.attack import masked
from textveil_bench.attack.masked import Masked
from textveil_bench.attack.report import compute_rates, load

TEXTS = ["The anchor, and the river.", "and", "A Copper kettle in the summer", "needle and ocean"]
RNG = SeededRandomness(1)


def shifted(table, block):
    """Releases the row that lies 7 further on."""
    return (block.secret + 7) % len(table)


def case_of(table, texts=TEXTS, release=shifted, **words) -> Case:
    return Case.create(
        Privatizer(Stub(release=release), epsilon=1.0, table=table, words=words), texts
    )


@dataclass(frozen=True)
class Planted:
    """A language model that expects these rows at the n positions, best first; answers in parts, the last one first."""

    rows: np.ndarray
    size: int
    name: str = "planted"
    batch: int = 0
    asked: list = field(default_factory=list)

    def yield_batches(self, texts, positions):
        self.asked.append((texts, positions, self.batch))
        logits = np.zeros((len(positions), self.size), np.float32)
        for place in range(self.rows.shape[1]):
            logits[np.arange(len(positions)), self.rows[:, place]] = 10.0 - place
        for which in np.array_split(np.arange(len(positions)), 3)[::-1]:
            yield which, logits[which]


@pytest.fixture
def plant(monkeypatch):
    def do(rows, table, usual=0):
        rows = np.asarray(rows)
        model = Planted(rows=rows[:, None] if rows.ndim == 1 else rows, size=len(table))
        prior = np.full(len(table), 1e-3)
        prior[usual] = 1.0
        monkeypatch.setattr(masked, "load_language_model", lambda table, source: model)
        monkeypatch.setattr(masked, "compute_shares", lambda table, listed: prior)
        return model

    return do


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    sizes = {**SIZE, "max_position_embeddings": 128}
    return save(tmp_path_factory.mktemp("bert"), "BertForMaskedLM", wordpiece(), **sizes)


def outcomes(attack, case):
    return {outcome.metric: outcome for outcome in attack.run(case, rng=RNG)}


# ---- guesses ---------------------------------------------------------------------------------------------------------


def test_guesses_and_hits_are_those_of_the_whole_network_run_by_hand(folder, small_table):
    texts = [" ".join(["the", *NOUNS[i : i + 6], "and", NOUNS[-i - 1]]) for i in range(12)]
    case = case_of(small_table, texts)
    attack = Masked(model=str(folder), k=10)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    candidates = tokenizer.convert_tokens_to_ids(NOUNS)

    best = []
    for text in texts:
        words = [
            NOUNS[(NOUNS.index(word) + 7) % 60] if word in NOUNS else word for word in text.split()
        ]
        for i, word in enumerate(text.split()):
            if word in NOUNS:
                whole = " ".join([*words[:i], tokenizer.mask_token, *words[i + 1 :]])
                inputs = tokenizer(whole, return_tensors="pt")
                at = inputs.input_ids[0].tolist().index(tokenizer.mask_token_id)
                with torch.inference_mode():
                    best.append(
                        network(**inputs)
                        .logits[0, at, candidates]
                        .argsort(descending=True)[:10]
                        .numpy()
                    )
    private = np.array(
        [NOUNS.index(word) for text in texts for word in text.split() if word in NOUNS]
    )

    assert np.array_equal(attack.guess(case.view, load_context(small_table, folder)), best)
    found = outcomes(attack, case)
    hits = np.array(best) == private[:, None]
    assert 0 < hits[:, 0].sum() < hits.any(axis=1).sum() < len(hits)
    assert np.array_equal(found["top-1"].values, hits[:, 0])
    assert np.array_equal(found["top-10"].values, hits.any(axis=1))


def test_parts_of_bounded_size_give_the_same_guesses(folder, small_table, monkeypatch):
    case, attack, context = case_of(small_table), Masked(), load_context(small_table, folder)
    whole = attack.guess(case.view, context)
    monkeypatch.setattr(masked, "MAX_LOGITS", 1)
    assert np.array_equal(attack.guess(case.view, context), whole)


@pytest.mark.parametrize(("cells", "batch"), [(60 * 40, 40), (60 * 4096, 4000), (1, 1)])
def test_logits_held_at_once_are_bounded(cells, batch, small_table, monkeypatch, plant):
    monkeypatch.setattr(masked, "MAX_LOGITS", cells)
    case = case_of(small_table)
    model = plant(case.truth.rows, small_table)
    outcomes(Masked(batch=4000), case)
    assert (
        model.asked[0][2] == batch
    )  # a sequence has one piece at least, and gives one row of logits


def test_what_was_released_at_a_position_does_not_matter_there(folder, small_table):
    context = load_context(small_table, folder)
    one, other = (
        Masked().guess(
            case_of(
                small_table, ["the anchor and"], lambda table, block, row=row: np.array([row])
            ).view,
            context,
        )
        for row in (3, 40)
    )
    assert np.array_equal(one, other)


# ---- judged by position ----------------------------------------------------------------------------------------------


def by_document(case, guesses):
    """The documented error of two public benchmarks: predictions of a text are held against the word whose number is
    the text's."""
    return guesses == case.truth.rows[case.view.text]


def test_guesses_are_judged_at_their_own_positions_and_the_broken_twin_is_not(small_table, plant):
    case = case_of(small_table)
    plant(case.truth.rows, small_table)
    assert len(case.truth.rows) == 7
    assert outcomes(Masked(), case)["top-1"].values.tolist() == [1.0] * 7
    assert by_document(case, case.truth.rows).mean() < 0.5

    constant = np.full(
        7, case.truth.rows[0]
    )  # and it would reward one who always says the first word
    plant(constant, small_table)
    assert outcomes(Masked(), case)["top-1"].values.tolist() == [1.0] + [0.0] * 6
    assert by_document(case, constant).mean() == pytest.approx(2 / 7)


def test_only_the_first_k_guesses_count(small_table, plant):
    case = case_of(small_table)
    n = len(case.truth.rows)
    ranked = (case.truth.rows[:, None] + np.arange(1, 5)) % 60  # right from the second on, by turns
    for i in range(n):
        ranked[i, i % 4] = case.truth.rows[i]
    plant(ranked, small_table)
    found = outcomes(Masked(k=3), case)
    assert found["top-1"].values.tolist() == [float(i % 4 == 0) for i in range(n)]
    assert found["top-3"].values.tolist() == [float(i % 4 < 3) for i in range(n)]


def test_the_baseline_always_says_the_most_frequent_rows(small_table, plant):
    case = case_of(small_table, ["anchor anchor river", "anchor stone"])
    plant(case.truth.rows, small_table, usual=NOUNS.index("anchor"))
    found = outcomes(Masked(k=2), case)
    assert found["top-1"].baseline == pytest.approx(3 / 5)
    assert found["top-2"].baseline == pytest.approx(
        3 / 5
    )  # the second is "apple", the first row of the rest
    assert found["Rouge-L"].baseline == pytest.approx((2 * 2 / 6 + 2 * 1 / 4) / 2)
    assert found["top-1"].headline
    assert not found["top-2"].headline


def test_rouge_l_of_the_predicted_texts_by_hand(small_table, plant):
    case = case_of(small_table)
    rows = case.truth.rows.copy()
    rows[[0, 4]] = NOUNS.index("window")  # anchor, and summer
    plant(rows, small_table)
    found = outcomes(Masked(), case)["Rouge-L"]
    # the window , and the river .: 6 of 7; "and" has nothing protected; A Copper kettle in the window: 5 of 6; all
    assert found.where.tolist() == [0, 2, 3]
    assert found.values == pytest.approx([6 / 7, 5 / 6, 1.0])


# ---- candidates, and what the model sees ----------------------------------------------------------------------


@pytest.mark.parametrize(("stopwords", "guess"), [("pass", "river"), ("protect", "the")])
def test_words_of_the_public_list_are_candidates_only_where_they_are_protected(
    stopwords, guess, plant
):
    words = ["the", "anchor", "river", "stone"]
    table = EmbeddingTable.build(name="four", words=words, vectors=np.eye(4))
    case = case_of(table, ["anchor"], lambda table, block: block.secret, stopwords=stopwords)
    model = plant([[0, 2]], table)
    assert words[Masked(k=2).guess(case.view, model)[0, 0]] == guess


def test_a_row_of_the_public_list_is_named_where_most_words_outside_the_table_fall_on_it(
    plant, monkeypatch
):
    """Its share is 9/11, whatever the model says; a masked row could never be named."""
    monkeypatch.setattr(
        "textveil.table.row_frequency.count_by_row",
        lambda table, listed=False: np.array([8.5, 0, 0, 0.5]),
    )
    table = EmbeddingTable.build(
        name="four", words=["the", "anchor", "river", "stone"], vectors=np.eye(4)
    )
    case = case_of(table, ["anchor"], lambda table, block: block.secret)
    assert Masked(k=2).guess(case.view, plant([[2, 0]], table)).tolist() == [[0, 2]]


def test_the_model_sees_released_words_and_nothing_for_placeholders(small_table, plant):
    def release(table, block):
        rows = shifted(table, block)
        rows[1] = PLACEHOLDER
        return rows

    case = case_of(small_table, ["The anchor, river", "(stone) and lemon"], release)
    model = plant(case.truth.rows, small_table)
    outcomes(Masked(), case)
    texts, positions, _ = model.asked[0]
    assert list(texts.words) == [
        *("the", NOUNS[(NOUNS.index("anchor") + 7) % 60], ",", ""),
        *(
            "(",
            NOUNS[(NOUNS.index("stone") + 7) % 60],
            ")",
            "and",
            NOUNS[(NOUNS.index("lemon") + 7) % 60],
        ),
    ]
    assert texts.documents.tolist() == [0, 4, 9]
    assert texts.spaced.tolist() == [True, True, False, True, True, False, False, True, True]
    assert positions.tolist() == [1, 3, 5, 8]


def test_all_placeholders_are_guessed_too(folder, small_table):
    case = case_of(
        small_table, release=lambda table, block: np.full(len(block.secret), PLACEHOLDER)
    )
    assert Masked().refusal(case.view) == ""
    assert len(outcomes(Masked(model=str(folder)), case)["top-1"].values) == 7


def test_pieces_and_texts_without_protected_words_are_refused(small_table, wordpiece_table):
    pieces = case_of(wordpiece_table, unit="wordpiece")
    assert "whole words" in Masked().refusal(pieces.view)
    assert "no word is protected" in Masked().refusal(case_of(small_table, ["and the"]).view)
    assert Masked().refusal(case_of(small_table).view) == ""


def test_it_is_registered_and_its_outcomes_become_rates(small_table, plant):
    attack = load("masked", {"k": 2})
    assert isinstance(attack, Attack)
    case = case_of(small_table)
    plant(case.truth.rows, small_table)
    rows = [
        row for row in compute_rates(case, list(attack.run(case, rng=RNG))) if row.slice == "all"
    ]
    assert [(row.metric, row.unit, row.value, row.n) for row in rows] == [
        ("top-1", "word", 1.0, 7),
        ("top-2", "word", 1.0, 7),
        ("Rouge-L", "text", 1.0, 3),
    ]
