"""The unit wordpiece: cutting, joining, what a word costs, and what the mask says."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fixtures import NOUNS, gaussian_rows
from tokenizers import Tokenizer

from textveil.config.sections import WordsOptions
from textveil.errors import ConfigError, VocabularyError
from textveil.pipeline.privatizer import Privatizer
from textveil.table import wordpiece
from textveil.table.embedding import EmbeddingTable
from textveil.table.wordpiece import WordPieces
from textveil.text.released import Kind
from textveil.text.tokens import tokenize

UNIT = WordsOptions(unit="wordpiece")
COPY = WordsOptions(unit="wordpiece", casing="copy")
NOUN_AND_ENDING = [f"{noun}{ending}" for noun in NOUNS[:8] for ending in ("", "s", "ing", "ers")]


@pytest.fixture(scope="session", params=["wordpiece_table", "bpe_table"])
def any_table(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch):
    """The exponential mechanism's exact constant is not the point here, and takes seconds."""
    monkeypatch.setattr("textveil.table.constants.SMALL_TABLE", 0)


# ---- cutting and joining ---------------------------------------------------------------------------------


def test_wordpiece_cuts(wordpiece_table):
    pieces = WordPieces.load(None, wordpiece_table)
    cut, known = pieces.split(["river", "Rivering", "qx", "7"])
    assert [[wordpiece_table.words[row] for row in rows] for rows in cut] == [
        ["river"],
        ["river", "##ing"],
        ["q", "##x"],
        ["7"],
    ]
    assert known.tolist() == [True] * 4


def test_bpe_cuts_with_the_space_before_the_word(bpe_table):
    cut, known = WordPieces.load(None, bpe_table).split(["apple", "apples", "é"])
    assert [[bpe_table.words[row] for row in rows] for rows in cut] == [
        ["Ġapple"],
        ["Ġapple", "s"],
        ["Ġ", "Ã", "©"],
    ]
    assert known.all()


def test_cutting_nothing(any_table):
    cut, known = WordPieces.load(None, any_table).split([])
    assert sum(map(len, cut)) == 0
    assert WordPieces.load(None, any_table).join([]) == []
    assert known.dtype == bool


@pytest.mark.parametrize("name", ["wordpiece_table", "bpe_table"])
def test_joining_what_was_cut_gives_the_word(name, request):
    pieces = WordPieces.load(None, request.getfixturevalue(name))
    cut, known = pieces.split(NOUN_AND_ENDING)
    assert known.all()
    assert pieces.join(cut) == NOUN_AND_ENDING


def test_bpe_joins_any_unicode(bpe_table):
    """Bytes cover every string, so nothing is unknown and everything comes back."""
    words = ["é", "日", "😀", "👩‍👩‍👧‍👦", "e\u0301", "مرحبا", "\x00", "Zyxqorvian", "a" * 3000]
    pieces = WordPieces.load(None, bpe_table)
    cut, known = pieces.split(words)
    assert known.all()
    assert pieces.join(cut) == words


def test_joined_words_are_never_empty_and_hold_no_outer_space(any_table):
    pieces = WordPieces.load(None, any_table)
    rows = [np.array([row]) for row in range(len(any_table))]
    texts = pieces.join(rows)
    assert all(texts)
    assert all(text == text.strip() for text in texts)


def test_a_continuation_alone_loses_its_mark(wordpiece_table):
    pieces = WordPieces.load(None, wordpiece_table)
    row_of = wordpiece_table.row_of
    assert pieces.join([np.array([row_of["##ing"]])]) == ["ing"]
    assert pieces.join([np.array([row_of["##ing"], row_of["##s"]])]) == ["ings"]


def test_what_a_tokenizer_drops_is_one_unknown_piece(wordpiece_table, wordpiece_tokenizer):
    dropped = ["\x00", "\x01\x7f", "\u200b", "\u202e"]
    for word in dropped:
        assert wordpiece_tokenizer.encode(word, add_special_tokens=False).ids == []
    cut, known = WordPieces.load(None, wordpiece_table).split(["river", *dropped, "river"])
    assert [len(rows) for rows in cut] == [1] * 6
    assert known.tolist() == [True, *[False] * 4, True]
    assert all(0 <= rows[0] < len(wordpiece_table) for rows in cut)


def test_a_piece_that_the_table_has_not_gets_its_surrogate(wordpiece_table):
    """[UNK] is no row: words that the tokenizer does not know share the row that its spelling gets."""
    cut, known = WordPieces.load(None, wordpiece_table).split(["日", "☃", "q" * 101])
    assert not known.any()
    assert [rows.tolist() for rows in cut] == [wordpiece_table.lookup(["[UNK]"])[0].tolist()] * 3


def test_cutting_does_not_depend_on_other_words(any_table):
    words = [*NOUN_AND_ENDING, "日", "\x00", "Zyxqorvian", "😀", "☃", "a" * 3000]
    pieces = WordPieces.load(None, any_table)
    together, known = pieces.split(words)
    for word, rows, is_known in zip(words, together, known.tolist(), strict=True):
        alone, alone_known = pieces.split([word])
        assert alone[0].tolist() == rows.tolist()
        assert alone_known.tolist() == [is_known]


def test_rows_that_the_tokenizer_has_not_keep_their_own_spelling(bpe_tokenizer, bpe_table):
    """Two different released rows never become one string."""
    words = [*bpe_table.words, "extra", "other"]
    table = EmbeddingTable.build(name="wide", words=words, vectors=gaussian_rows(len(words), 8, 19))
    pieces = WordPieces(tokenizer=bpe_tokenizer, table=table)
    assert pieces.join([np.array([len(words) - 2]), np.array([len(words) - 1])]) == [
        "extra",
        "other",
    ]


# ---- loading ---------------------------------------------------------------------------------------------


def test_from_a_folder_and_a_file(bpe_table, bpe_tokenizer, tmp_path):
    bpe_tokenizer.save(str(tmp_path / "tokenizer.json"))
    bare = EmbeddingTable.build(name="bare", words=bpe_table.words, vectors=bpe_table.vectors)
    for source in (tmp_path, tmp_path / "tokenizer.json"):
        pieces = WordPieces.load(str(source), bare)
        assert [len(rows) for rows in pieces.split(["apple", "xy"])[0]] == [1, 3]


def test_truncation_and_padding_are_switched_off(bpe_table, bpe_tokenizer, tmp_path):
    own = Tokenizer.from_str(bpe_tokenizer.to_str())
    own.enable_truncation(2)
    own.enable_padding(length=16)
    own.save(str(tmp_path / "tokenizer.json"))
    cut, _ = WordPieces.load(str(tmp_path), bpe_table).split(["zbcdefgh", "z"])
    assert [len(rows) for rows in cut] == [9, 2]


def test_a_table_without_tokenizer_needs_one(small_table):
    with pytest.raises(ConfigError, match=r"words\.tokenizer"):
        Privatizer("noise", epsilon=5, table=small_table, words=UNIT)


def test_a_tokenizer_that_does_not_match_the_table(small_table, bpe_tokenizer, tmp_path):
    bpe_tokenizer.save(str(tmp_path / "tokenizer.json"))
    options = WordsOptions(unit="wordpiece", tokenizer=str(tmp_path))
    with pytest.raises(ConfigError, match=r"lacks [\d,]+ of the tokenizer's pieces"):
        Privatizer("noise", epsilon=5, table=small_table, words=options)


def test_a_file_that_is_no_tokenizer(bpe_table, tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"a": 1}), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"cannot read the tokenizer") as caught:
        WordPieces.load(str(tmp_path), bpe_table)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_tokenizer(bpe_table, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConfigError, match=r"words\.tokenizer must be a folder"):
        WordPieces.load(str(tmp_path), bpe_table)


# ---- the pipeline ----------------------------------------------------------------------------------------


def test_spans_round_trip(any_table, echo):
    """A mechanism that changes nothing gives the text back, word by word and space by space."""
    text = "  Apples, anchor's\n\tBUTTERS bridge \n"
    result = Privatizer(echo, epsilon=6, table=any_table, words=COPY).privatize(text)
    assert result.text == text
    assert [item[3:] for item in result.released.items] == [
        (i, i + 1) for i in range(len(result.released.items))
    ]


def test_pieces_of_every_protected_word_are_in_the_mask(wordpiece_table, echo):
    text = "The rivering qxq of river, stones"
    result = Privatizer(echo, epsilon=6, table=wordpiece_table, words=UNIT).privatize(text)
    assert result.released.mask.pieces == (2, 3, 1, 2)
    assert "pieces per word" in result.guarantee.mask
    assert result.guarantee.unit == "wordpiece"
    assert len(result.guarantee.epsilon_per_word) == 4


def test_the_unit_word_releases_no_piece_counts(pieces_table, echo):
    result = Privatizer(echo, epsilon=6, table=pieces_table).privatize("rivering")
    assert result.released.mask.pieces is None
    assert "pieces per word" not in result.guarantee.mask


@pytest.mark.parametrize("mechanism", ["noise", "d-chi-stencil", "polar", "laplace", "exponential"])
def test_epsilon_of_a_word_is_the_sum_over_its_pieces(any_table, mechanism):
    privatizer = Privatizer(mechanism, epsilon=6.0, table=any_table, words=UNIT)
    texts = ["apple applesqx the anchor", "qxqxqx", "the bridge ; qq " * 5]
    for result in privatizer.privatize_many(texts):
        spent = result.guarantee.epsilon_per_word
        pieces = result.released.mask.pieces or ()
        assert len(spent) == len(pieces)
        assert (spent <= 6.0 * (1 + 1e-12)).all()
        assert (spent > 0).all()
        assert result.guarantee.epsilon <= 6.0 * (1 + 1e-12)
        if mechanism in ("noise", "polar", "laplace"):
            np.testing.assert_allclose(spent, 6.0)
            shares = 6.0 / np.repeat(pieces, pieces)
            scale = {"noise": 1.0, "polar": 1.0, "laplace": any_table.l1_diameter}[mechanism]
            np.testing.assert_allclose(result.guarantee.parameter, shares * scale)


def test_a_parameter_by_name_is_spent_once_per_piece(wordpiece_table):
    result = Privatizer("noise", eta=2.5, table=wordpiece_table, words=UNIT).privatize(
        "river rivering qxqx"
    )
    np.testing.assert_allclose(result.guarantee.epsilon_per_word, [2.5, 5.0, 10.0])
    assert result.guarantee.epsilon == pytest.approx(10.0)
    assert result.guarantee.epsilon_ldp == pytest.approx(10.0 * wordpiece_table.diameter)


@pytest.mark.parametrize("mechanism", ["polar", "exponential"])
def test_what_a_piece_costs_besides_is_counted_for_every_piece(wordpiece_table, mechanism):
    """The radius of `polar` and the rounding of `exponential` are spent once per draw, that is, per piece."""
    options: dict[str, Any] = {"kappa": 3.0, "radius": 1.5} if mechanism == "polar" else {"c": 3.0}
    one, four = Privatizer(mechanism, table=wordpiece_table, words=UNIT, **options).privatize_many(
        ["river", "qxqx"]
    )
    assert four.released.mask.pieces == (4,)
    assert four.guarantee.epsilon_ldp >= 4 * one.guarantee.epsilon_ldp * (1 - 1e-12)


def test_one_released_word_per_word(any_table):
    text = "apple applesqx anchor qxqxqx 😀日 \x01"
    words = tokenize([text]).words
    result = Privatizer("noise", epsilon=2, table=any_table, words=UNIT, seed=5).privatize(text)
    assert [item.kind for item in result.released.items] == [Kind.WORD] * len(words)
    assert all(item.text.strip() == item.text != "" for item in result.released.items)
    assert len(result.released.gaps) == len(words) + 1


def test_casing_is_copied_to_the_joined_word(wordpiece_table, echo):
    result = Privatizer(echo, epsilon=2, table=wordpiece_table, words=COPY).privatize(
        "Rivering QXS rivers"
    )
    assert result.text == "Rivering QXS rivers"
    assert result.released.mask.casing == ("title", "upper", "lower")


@pytest.mark.parametrize("word", ["\x01", "日", "☃"])
def test_unknown_words_never_pass(wordpiece_table, echo, word):
    result = Privatizer(echo, epsilon=2, table=wordpiece_table, words=UNIT).privatize(
        f"river {word} stone"
    )
    assert word not in result.text
    assert result.released.items[1].kind is Kind.WORD
    assert result.oov_share == pytest.approx(1 / 3)
    assert np.isfinite(result.guarantee.epsilon_per_word).all()


def test_placeholder_for_unknown_words(wordpiece_table, echo):
    options = WordsOptions(unit="wordpiece", oov="placeholder")
    result = Privatizer(echo, epsilon=2, table=wordpiece_table, words=options).privatize(
        "rivers \x01 stone"
    )
    assert result.text == "rivers <WORD> stone"
    assert result.guarantee.epsilon_per_word.tolist() == [2.0, 0.0, 2.0]
    assert result.released.mask.pieces == (2, 0, 1)


def test_error_for_unknown_words(wordpiece_table, echo):
    privatizer = Privatizer(
        echo, epsilon=2, table=wordpiece_table, words=WordsOptions(unit="wordpiece", oov="error")
    )
    assert privatizer.privatize("rivers qxqx").text == "rivers qxqx"
    with pytest.raises(VocabularyError, match="1 of 3 words") as caught:
        privatizer.privatize("rivers ☃ stone")
    assert "☃" not in str(caught.value)


def test_keep_for_unknown_words(wordpiece_table, echo):
    options = WordsOptions(unit="wordpiece", oov="keep")
    result = Privatizer(echo, epsilon=2, table=wordpiece_table, words=options).privatize(
        "rivers ☃ stone"
    )
    assert result.text == "rivers ☃ stone"
    assert [item.kind for item in result.released.items] == [Kind.WORD, Kind.VERBATIM, Kind.WORD]
    assert result.guarantee.epsilon == np.inf
    assert result.guarantee.kind == "none"


@pytest.mark.parametrize("text", ["", " \n", "the", "the of . !", "river"])
def test_short_texts(any_table, text):
    for mechanism in ("noise", "exponential", "placeholder", "d-chi-stencil"):
        epsilon = None if mechanism == "placeholder" else 4.0
        result = Privatizer(mechanism, epsilon=epsilon, table=any_table, words=UNIT).privatize(text)
        assert len(result.released.items) == len(text.split())
        protected = mechanism != "placeholder" and text == "river"
        assert (0 < result.guarantee.epsilon <= 4.0 * (1 + 1e-12)) == protected


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=60))
@example(text="\x00\x01 \u200b")
@example(text="日本 at 12:30 😀")
def test_any_text_has_one_item_per_word(any_table, text):
    privatizer = Privatizer("noise", epsilon=4.0, table=any_table, words=UNIT)
    result = privatizer.privatize(text)
    words = tokenize([text]).words
    assert len(result.released.items) == len(words)
    assert all(item.text for item in result.released.items)
    assert (result.guarantee.epsilon_per_word <= 4.0 * (1 + 1e-12)).all()
    assert result.released.mask.pieces is not None
    assert len(result.released.mask.pieces) == len(result.guarantee.epsilon_per_word)


# ---- the hub ---------------------------------------------------------------------------------------------


def test_a_mistyped_folder_is_not_sent_to_a_hub(bpe_table, monkeypatch):
    monkeypatch.setattr(wordpiece, "download", lambda *names: pytest.fail("the hub was asked"))
    for source in ("nope", "./no/such", "/no/such/tokenizer.json", "a/b/c"):
        with pytest.raises(ConfigError, match="got '"):
            WordPieces.load(source, bpe_table)


def test_a_hub_id_is_fetched(bpe_table, bpe_tokenizer, monkeypatch, tmp_path):
    bpe_tokenizer.save(str(tmp_path / "tokenizer.json"))
    asked = []

    def fetch(repository, file):
        asked.append((repository, file))
        return tmp_path / file

    monkeypatch.setattr(wordpiece, "download", fetch)
    assert WordPieces.load("owner/model-1", bpe_table).split(["river"])[1].tolist() == [True]
    assert asked == [("owner/model-1", "tokenizer.json")]


def test_units_and_tables_that_do_not_fit_are_refused(wordpiece_table, small_table):
    with pytest.raises(ConfigError, match=r"words\.unit=wordpiece"):
        Privatizer("noise", eta=5.0, table=wordpiece_table, words={"unit": "word"})
    assert wordpiece_table.pieces is not None
    own = EmbeddingTable.build(
        name="words",
        words=small_table.words,
        vectors=small_table.vectors,
        pieces=wordpiece_table.pieces,
    )
    with pytest.raises(ConfigError, match="of the tokenizer's pieces"):
        Privatizer("noise", eta=5.0, table=own, words={"unit": "wordpiece"})
