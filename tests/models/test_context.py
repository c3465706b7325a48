"""Context: logits against the whole network run by hand, windows, hidden words, and bad input."""

import shutil
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fixtures import NOUNS
from tests.models.conftest import SIZE, byte_level, save, wordpiece

from textveil.errors import ConfigError, InputError, ModelError
from textveil.models import LanguageModel, Ragged, context, load_context
from textveil.models.ragged import PieceSequence, PieceWindows, find_distinct, yield_batches
from textveil.table.embedding import EmbeddingTable

WORDS = ["lisbon", "anchor", "doctor", "unheardof"]


@pytest.fixture(scope="module")
def table() -> EmbeddingTable:
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 4))
    return EmbeddingTable.build(name="words", words=WORDS, vectors=vectors)


@pytest.mark.parametrize("family", ["bert-lm", "roberta-lm", "gpt2-lm", "llama-lm"])
def test_logits_are_those_of_the_whole_network_run_by_hand(family, folders, table):
    texts = [["the", "doctor", "saw", "anchor"], ["maria"], ["old", "Lisbon", "town"]]
    found = load_context(table, folders[family]).compute_logits(
        Ragged.join(texts), np.array([7, 1, 4, 0])
    )

    tokenizer = transformers.AutoTokenizer.from_pretrained(folders[family])
    causal = family in ("gpt2-lm", "llama-lm")
    kind = transformers.AutoModelForCausalLM if causal else transformers.AutoModelForMaskedLM
    network = kind.from_pretrained(folders[family]).eval()
    space = " " if family in ("roberta-lm", "gpt2-lm") else ""

    def ids(word: str) -> list[int]:
        return list(tokenizer(space + word, add_special_tokens=False)["input_ids"])

    for row, (b, i) in enumerate([(2, 2), (0, 1), (1, 0), (0, 0)]):
        left = [piece for word in texts[b][:i] for piece in ids(word)]
        right = [piece for word in texts[b][i + 1 :] for piece in ids(word)]
        if causal:
            whole = [network.config.bos_token_id, *left]
            at = len(whole) - 1
        else:
            start, end = tokenizer.cls_token_id, tokenizer.sep_token_id
            whole = [start, *left, tokenizer.mask_token_id, *right, end]
            at = 1 + len(left)
        with torch.inference_mode():
            logits = network(input_ids=torch.tensor([whole])).logits[0, at]
        expected = torch.stack([logits[ids(word)].mean() for word in WORDS])
        assert np.allclose(found[row], expected, atol=1e-4)


@pytest.mark.parametrize("family", ["bert-lm", "roberta-lm", "gpt2-lm"])
def test_the_word_at_a_position_is_not_looked_at(family, folders, table):
    model = load_context(table, folders[family])
    logits = [
        model.compute_logits(Ragged.join([["the", word, "saw", "maria"]]), np.array([1]))
        for word in ("doctor", "incomprehensibilities", "\N{GRINNING FACE}", "")
    ]
    assert all(np.array_equal(logits[0], other) for other in logits[1:])


def test_a_causal_model_sees_nothing_of_what_follows_and_a_masked_one_does(folders, table):
    for family, same in (("gpt2-lm", True), ("bert-lm", False)):
        model = load_context(table, folders[family])
        one, other = (
            model.compute_logits(Ragged.join([["the", "x", word]]), np.array([1]))
            for word in ("doctor", "anchor")
        )
        assert np.array_equal(one, other) is same


def test_a_word_far_outside_the_window_changes_nothing_and_one_inside_does(folders, table):
    model = load_context(table, folders["bert-lm"], window=16)
    far, near = ["doctor"] + ["the"] * 60, ["the"] * 27 + ["doctor"] + ["the"] * 33
    base, one, other = (
        model.compute_logits(Ragged.join([words]), np.array([30]))
        for words in (["the"] * 61, far, near)
    )
    assert np.array_equal(base, one)
    assert not np.allclose(base, other, atol=1e-3)


def test_a_window_at_the_edge_of_a_text_uses_the_room_of_the_other_side(folders, table):
    model = load_context(table, folders["bert-lm"], window=16)
    words = ["the"] * 40
    for position, reach in ((0, 12), (39, 27)):
        changed = list(words)
        changed[reach] = "doctor"
        one, other = (
            model.compute_logits(Ragged.join([text]), np.array([position]))
            for text in (words, changed)
        )
        assert not np.allclose(one, other, atol=1e-3)


# ---- hidden words --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert-lm", "roberta-lm", "gpt2-lm", "llama-lm"])
@pytest.mark.parametrize("length", [6, 60])
def test_hidden_words_change_no_digit_whatever_they_are(family, length, folders, table):
    model = load_context(table, folders[family], window=16)
    hidden = np.arange(length) % 3 == 1
    positions = np.arange(length)
    secrets = (
        "doctor",
        "incomprehensibilities",
        "\N{GRINNING FACE}",
        "",
        "\x00",
        "[MASK]",
        "a b c",
    )

    def logits(at: int, word: str, hidden: np.ndarray) -> np.ndarray:
        words = ["the", "doctor", "saw"] * (length // 3)
        words[at] = word
        return model.compute_logits(
            Ragged.join([["old", "town"], words, ["maria"]]),
            positions + 2,
            np.r_[[False] * 2, hidden, False],
        )

    first = logits(4, secrets[0], hidden)
    for word in secrets[1:]:
        assert np.array_equal(logits(4, word, hidden), first)
    assert not np.array_equal(
        logits(3, "incomprehensibilities", hidden), first
    )  # a word that is seen
    assert not np.array_equal(
        logits(4, "incomprehensibilities", hidden & False), logits(4, "doctor", hidden & False)
    )


@pytest.mark.parametrize("family", ["bert-lm", "gpt2-lm"])
def test_words_that_no_tokenizer_could_cut_are_never_given_to_it_where_they_are_hidden(
    family, folders, table
):
    model = load_context(table, folders[family])
    seen: list[str] = []

    class Listening:
        def encode_batch_fast(self, words, **options):
            seen.extend(words)
            return model.model.tokenizer.encode_batch_fast(words, **options)

    listening = replace(model, model=replace(model.model, tokenizer=cast(Any, Listening())))
    texts = Ragged.join([["the", "canary", "saw", "canary"]])
    listening.compute_logits(texts, np.arange(4), np.array([False, True, False, True]))
    assert [word.strip() for word in seen] == ["the", "saw"]


def test_hidden_words_are_mask_pieces_to_a_masked_model(folders, table):
    words, hidden = (
        ["the", "incomprehensibilities", "saw", "maria"],
        np.array([False, True, False, True]),
    )
    found = load_context(table, folders["bert-lm"]).compute_logits(
        Ragged.join([words]), np.array([3, 0, 1]), hidden
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["bert-lm"])
    network = transformers.AutoModelForMaskedLM.from_pretrained(folders["bert-lm"]).eval()
    for row, text, at in zip(
        found,
        ["the [MASK] saw [MASK]", "[MASK] [MASK] saw [MASK]", "the [MASK] saw [MASK]"],
        [3, 0, 1],
        strict=True,
    ):
        with torch.inference_mode():
            logits = network(input_ids=torch.tensor([tokenizer(text)["input_ids"]])).logits[
                0, 1 + at
            ]
        pieces = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in WORDS]
        assert np.allclose(row, torch.stack([logits[ids].mean() for ids in pieces]), atol=1e-4)


def test_hidden_words_are_left_out_for_a_causal_model(folders, table):
    model = load_context(table, folders["gpt2-lm"])
    hidden = np.array([True, False, True, False])
    found = model.compute_logits(
        Ragged.join([["the", "doctor", "saw", "maria"]]), np.arange(4), hidden
    )
    short = model.compute_logits(Ragged.join([["doctor", "maria"]]), np.array([0, 1]))
    assert np.allclose(found, short[[0, 0, 1, 1]], atol=1e-4)
    every = model.compute_logits(Ragged.join([["the", "doctor"]]), np.arange(2), np.ones(2, bool))
    assert np.allclose(every, short[[0, 0]], atol=1e-4)


def test_hidden_words_are_asked_in_one_run_and_long_texts_in_one_for_every_half_a_window(
    folders, table
):
    model = load_context(table, folders["bert-lm"], window=16)
    runs: list[int] = []

    class Counting:
        def read(self, ids, *given):
            runs.append(len(ids))
            return model.head.read(ids, *given)

        def compute_logits(self, states):
            return model.head.compute_logits(states)

    counting = replace(model, head=Counting())

    def cost(length: int, hidden: bool) -> int:
        runs.clear()
        words = (["the", "doctor", "maria", "saw", "john"] * length)[:length]
        counting.compute_logits(
            Ragged.join([words, words]), np.arange(2 * length), np.full(2 * length, hidden)
        )
        return sum(runs)

    assert cost(14, hidden=True) == 1  # both texts are one: nothing of them is seen
    assert cost(14, hidden=False) == 14  # both texts are equal
    assert cost(14 + 5 * 7, hidden=True) == 1  # six windows, all of them of [MASK] alone


def test_every_hidden_word_of_a_long_text_has_a_quarter_of_the_window_on_either_side(
    folders, table
):
    model, length = load_context(table, folders["bert-lm"], window=18), 61
    hidden = np.arange(length) % 2 == 0
    words = np.where(hidden, "canary", "the").tolist()
    base = model.compute_logits(Ragged.join([words]), np.flatnonzero(hidden), hidden)
    for row, position in enumerate(np.flatnonzero(hidden)):
        for other in (position - 3, position + 3):
            if 0 <= other < length:
                changed = [*words[:other], "doctor", *words[other + 1 :]]
                found = model.compute_logits(Ragged.join([changed]), np.array([position]), hidden)
                assert not np.allclose(found[0], base[row], atol=1e-4)
        far = [
            "doctor" if abs(i - position) > 16 and not hidden[i] else word
            for i, word in enumerate(words)
        ]
        found = model.compute_logits(Ragged.join([far]), np.array([position]), hidden)
        assert np.allclose(found[0], base[row], atol=1e-4)


@pytest.mark.parametrize(
    "hidden", [[True, False], np.array([1, 0]), np.array([True]), np.array([[True, False]])]
)
def test_hidden_words_must_be_told_for_every_word(hidden, folders, table):
    with pytest.raises(
        InputError, match=r"^hidden must be bool, with one entry for each of the 2 words$"
    ):
        load_context(table, folders["bert-lm"]).compute_logits(
            Ragged.join([["canary", "the"]]), np.array([0]), hidden
        )


def test_logits_are_held_in_parts(folders, table, monkeypatch):
    monkeypatch.setattr(context, "MAX_LOGITS", 3 * len(WORDS))
    model = load_context(table, folders["bert-lm"])
    texts, hidden = Ragged.join([["the", "doctor", "saw", "maria"]] * 2), np.ones(8, bool)
    parts = list(model.yield_batches(texts, np.arange(8), hidden))
    assert [len(logits) for _, logits in parts] == [3, 3, 2]
    assert np.sort(np.concatenate([which for which, _ in parts])).tolist() == list(range(8))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=30))
def test_distinct_sequences_are_the_first_of_their_like(sequences):
    lengths = np.array([len(each) for each in sequences])
    rows = np.array([[*each, *[9] * (4 - len(each))] for each in sequences])
    rows[np.arange(4) >= lengths[:, None]] = np.arange(
        (4 - lengths).sum()
    )  # what lies behind an end is nothing
    first, like = find_distinct(rows, lengths)
    assert first.tolist() == [i for i, each in enumerate(sequences) if each not in sequences[:i]]
    assert [sequences[first[i]] for i in like] == sequences


# ---- many at once --------------------------------------------------------------------------------------------


def test_positions_of_many_texts_at_once_have_the_logits_of_each_alone(folders, table):
    texts = [["the", "doctor"] * n for n in (1, 20, 3)]
    model = load_context(table, folders["bert-lm"], batch=64)
    positions = np.arange(48)
    together = model.compute_logits(Ragged.join(texts), positions)
    alone = np.concatenate(
        [model.compute_logits(Ragged.join([text]), np.arange(len(text))) for text in texts]
    )
    assert np.allclose(together, alone, atol=1e-4)


def test_more_positions_than_are_laid_out_at_once_are_all_answered(folders, table, monkeypatch):
    model = load_context(table, folders["bert-lm"])
    texts, positions = Ragged.join([["the", "doctor", "saw"] * 5]), np.arange(15)
    whole = model.compute_logits(texts, positions)
    monkeypatch.setattr(context, "PIECES_AT_ONCE", 4 * model.window)
    assert np.allclose(model.compute_logits(texts, positions), whole, atol=1e-4)


def test_what_is_laid_out_at_once_is_counted_in_pieces_and_no_wider_than_needed(
    folders, table, monkeypatch
):
    model = load_context(table, folders["bert-lm"], window=64)
    monkeypatch.setattr(context, "PIECES_AT_ONCE", 128)
    laid: list[tuple[int, ...]] = []
    lay = LanguageModel._build_sequences

    def noted(self, *given):
        rows, lengths, at = lay(self, *given)
        laid.append((*rows.shape, int(lengths.max())))
        return rows, lengths, at

    monkeypatch.setattr(LanguageModel, "_build_sequences", noted)
    model.compute_logits(Ragged.join([["the", "doctor"]] * 4), np.arange(8))
    assert laid == [(2, 4, 4)] * 4


def test_the_callers_torch_is_as_it_was_between_the_parts(folders, table):
    parts = load_context(table, folders["bert-lm"], batch=1).yield_batches(
        Ragged.join([["the", "doctor"]]), np.arange(2)
    )
    next(parts)
    assert not torch.is_inference_mode_enabled()


def test_a_model_saved_in_half_precision_runs_in_full(folders, table, tmp_path):
    folder = shutil.copytree(folders["bert-lm"], tmp_path / "half")
    transformers.AutoModelForMaskedLM.from_pretrained(folder).half().save_pretrained(folder)
    texts, positions = Ragged.join([["the", "doctor", "saw"]]), np.array([1])
    half, full = (
        load_context(table, source).compute_logits(texts, positions)
        for source in (folder, folders["bert-lm"])
    )
    assert half.dtype == np.float32
    assert np.allclose(half, full, atol=0.1)


def test_no_positions_and_no_texts_give_no_rows(folders, table):
    model = load_context(table, folders["bert-lm"])
    assert model.compute_logits(Ragged.join([["the"]]), np.array([], np.int64)).shape == (0, 4)
    assert model.compute_logits(Ragged.join([]), np.array([], np.int64)).shape == (0, 4)


@pytest.mark.parametrize("position", [-1, 2])
def test_positions_outside_the_texts_are_refused(position, folders, table):
    with pytest.raises(
        InputError, match="positions must be indices of the 2 words, counted from 0"
    ):
        load_context(table, folders["bert-lm"]).compute_logits(
            Ragged.join([["the"], ["canary"]]), np.array([position])
        )


@pytest.mark.parametrize("positions", [[False, True], [0.9], [[0]], ["canary"]])
def test_positions_that_are_no_list_of_whole_numbers_are_refused(positions, folders, table):
    with pytest.raises(InputError, match=r"^positions must be whole numbers$"):
        load_context(table, folders["bert-lm"]).compute_logits(
            Ragged.join([["the", "doctor"]]), positions
        )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kind": "foo"}, "masked-lm, causal-lm"),
        ({"window": 7}, "window"),
        ({"batch": 0}, "batch"),
        ({"device": "cuda:99"}, "not available"),
    ],
)
def test_options_out_of_range_are_refused(options, says, folders, table):
    with pytest.raises(ConfigError, match=says):
        load_context(table, folders["bert-lm"], **options)


def test_what_is_no_table_and_no_ragged_is_refused(folders, table):
    with pytest.raises(
        ConfigError, match=r"table must be an embedding table \(load_table\), got str"
    ):
        load_context("minilm", folders["bert-lm"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"texts must be Ragged\.of") as caught:
        load_context(table, folders["bert-lm"]).compute_logits([["canary"]], [0])  # type: ignore[arg-type]
    assert "canary" not in str(caught.value)


def test_a_model_without_the_head_is_refused_and_not_drawn_at_random(folders, table):
    with pytest.raises(ModelError, match="is not trained for masked-lm"):
        load_context(table, folders["bert-encoder"], kind="masked-lm")
    with pytest.raises(ModelError, match="neither"):
        load_context(table, "no-such-model")


def test_without_a_kind_both_are_named_where_neither_fits(folders, table):
    with pytest.raises(ModelError, match=r"trained for masked-lm: .*; .* trained for causal-lm: "):
        load_context(table, folders["bert-encoder"])


def test_the_bundled_masked_lm_does_not_stand_in_for_a_causal_one(table):
    with pytest.raises(ConfigError, match="no model for causal-lm"):
        load_context(table, kind="causal-lm")


def test_a_masked_lm_is_refused_as_a_causal_one(folders, table, tmp_path):
    with pytest.raises(ModelError, match="looks at what follows"):
        load_context(table, folders["bert-lm"], kind="causal-lm")
    bare = wordpiece()
    bare.mask_token = None
    folder = save(tmp_path, "BertForMaskedLM", bare, **SIZE, max_position_embeddings=128)
    with pytest.raises(ModelError, match=r"has no mask piece.*; .*looks at what follows"):
        load_context(table, folder)


def test_an_output_layer_that_is_not_the_last_thing_done_is_refused(table, tmp_path):
    heads = {"num_key_value_heads": 2, "head_dim": 8, "bos_token_id": 0, "eos_token_id": 0}
    capped = save(
        tmp_path / "capped",
        "Gemma2ForCausalLM",
        byte_level(framed=False),
        **SIZE,
        **heads,
        final_logit_softcapping=5.0,
    )
    with pytest.raises(ModelError, match="output layer of capped must be linear and the last step"):
        load_context(table, capped)
    split = save(tmp_path / "split", "MobileBertForMaskedLM", wordpiece(), **SIZE, embedding_size=8)
    with pytest.raises(ModelError, match="output layer of split"):
        load_context(table, split, kind="masked-lm")


def test_a_folder_that_holds_no_model_is_refused_by_name(tmp_path, table):
    with pytest.raises(ModelError, match="as a transformers model for masked-lm"):
        load_context(table, tmp_path, kind="masked-lm")


def test_secret_words_are_in_no_repr(folders, table):
    texts = Ragged.join([["canary"]])
    model = load_context(table, folders["bert-lm"])
    assert "canary" not in f"{texts!r}{PieceSequence.build(model.model, texts)!r}{model!r}"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=6), st.integers(4, 20), st.integers(0, 3))
def test_windows_hold_every_piece_and_each_belongs_to_the_window_where_it_is_farthest_from_an_edge(
    sizes, longest, overlap
):
    documents = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    windows = PieceWindows.build(documents, longest, overlap)
    assert (windows.lengths <= longest).all()
    text = np.repeat(np.arange(len(sizes)), sizes)
    for piece in range(int(documents[-1])):
        own = windows.owner[piece]
        inside = piece - windows.begins[own]
        assert 0 <= inside < windows.lengths[own]
        assert windows.documents[own] == text[piece]
        if windows.begins[own] > documents[text[piece]]:
            assert inside >= overlap // 2
        if windows.begins[own] + windows.lengths[own] < documents[text[piece] + 1]:
            assert windows.lengths[own] - inside > overlap // 2 - (overlap % 2 == 0)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 200))
def test_batches_hold_every_sequence_once_and_are_bounded(lengths, pieces):
    found = list(yield_batches(np.array(lengths, np.int64), pieces))
    assert sorted(np.concatenate([np.zeros(0, np.int64), *found]).tolist()) == list(
        range(len(lengths))
    )
    assert all(len(b) == 1 or len(b) * max(lengths[i] for i in b) <= pieces for b in found)


def test_every_noun_is_cut_into_at_least_one_piece(folders, table):
    model = load_context(table, folders["bert-lm"]).model
    cut = PieceSequence.build(model, Ragged.join([[*NOUNS, "\x00", "\u200b"]]))
    assert (np.diff(cut.words) >= 1).all()
    assert cut.documents.tolist() == [0, len(cut.ids)]
