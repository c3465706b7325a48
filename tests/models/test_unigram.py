"""Words are cut into the very pieces into which the library's tokenizer cuts them, and pickled without them."""

import pickle
import unicodedata

import numpy as np
import pytest
from training.labels import hard_texts

from textveil.models import e5, unigram
from textveil.models.unigram import Unigram
from textveil.text import tokenize

ODD = [
    "",
    " ",
    "<s>",
    "</s>",
    "<unk>",
    "<unk>☃<unk>",
    '"',
    "\\",
    '\\"',
    '\0\1\2"',
    "a\1b\2c",
    "\u2581",
    "\u2581x",
]


@pytest.fixture(scope="module")
def library():
    tokenizer = e5.read_tokenizer()
    tokenizer.encode_special_tokens = True
    return lambda words: [
        each.ids for each in tokenizer.encode_batch_fast(words, add_special_tokens=False)
    ]


@pytest.fixture(scope="module")
def own():
    pieces = e5.build_splitter()
    return lambda words: [each.ids for each in pieces.encode_batch_fast(words)]


def drawn(letters: list[str], longest: int, count: int) -> list[str]:
    rng = np.random.default_rng(5)
    return [
        "".join(letters[i] for i in rng.integers(len(letters), size=size))
        for size in rng.integers(1, longest, size=count).tolist()
    ]


def test_words_of_texts_are_cut_as_by_the_library(library, own):
    texts = [text.text for text in hard_texts()][::23]
    words = sorted({word[: e5.MAX_WORD_CHARACTERS - 1] for word in tokenize(texts).words})
    assert len(words) > 10_000
    for given in (words, [f" {word}" for word in words], ODD):
        assert own(given) == library(given)


def test_words_that_come_again_are_cut_alike_and_few_are_kept(monkeypatch, library):
    monkeypatch.setattr(unigram, "MAX_KNOWN_WORDS", 4)
    pieces = e5.build_splitter()
    for words in (["Anna", "Grünwald", "Anna"], ["Grünwald", "STRA\u1e9eE", ""], ODD, ["Anna"]):
        assert [each.ids for each in pieces.encode_batch_fast(words)] == library(words)
        assert len(pieces._known) <= 4
    monkeypatch.setattr(pieces, "_cut_new", None)  # what is known is not cut again
    assert [each.ids for each in pieces.encode_batch_fast(["Anna"])] == library(["Anna"])


@pytest.mark.slow
def test_every_character_is_cut_as_by_the_library(library, own):
    characters = [chr(i) for i in range(0x20000) if not 0xD800 <= i < 0xE000]
    assert own(characters) == library(characters)


@pytest.mark.slow
def test_any_string_is_cut_as_by_the_library(library, own):
    """Ties, and what normalization makes of characters beside each other."""
    letters = [*' abcdefghinorst"<>s/\\éäµ…½ﬁ☃']
    for given in (
        drawn(letters, 30, 5_000),
        drawn([chr(i) for i in range(0x3100)], 9, 5_000),
        drawn(letters[1:4], 90, 500),
    ):
        assert own(given) == library(given)


def test_the_library_is_asked_only_about_late_characters(monkeypatch):
    pieces = e5.build_splitter()
    pieces.encode_batch_fast(["Grünwald", "“", "張偉", "\U0001f600", "\u0e33", *ODD])
    assert "_library" not in vars(pieces)
    assert unicodedata.category("\u1e9e") != "Cn"
    assert unicodedata.ucd_3_2_0.category("\u1e9e") == "Cn"
    pieces.encode_batch_fast(["STRA\u1e9eE"])
    assert "_library" in vars(pieces)


def test_no_two_pieces_have_one_hash():
    """Or the second would never be found."""
    pieces = e5.build_splitter()
    assert len(np.unique(pieces._hashes)) == len(e5.load_embeddings())


def test_what_differs_and_has_one_hash_is_no_piece(monkeypatch, own):
    pieces = e5.build_splitter()
    monkeypatch.setattr(unigram, "HASH_FACTOR", np.uint64(0))  # words' hashes are their last bytes
    pieces._hashes = np.full_like(pieces._hashes, ord("x"))
    assert pieces.encode_batch_fast(["x"])[0].ids in ([e5.UNKNOWN], own(["x"])[0])


def test_it_pickles_as_where_it_came_from(own):
    pieces = e5.build_splitter()
    carried = pickle.dumps(pieces)
    assert len(carried) < 1_000
    back: Unigram = pickle.loads(carried)
    assert [each.ids for each in back.encode_batch_fast(["Grünwald"])] == own(["Grünwald"])


def test_no_pieces_are_added():
    with pytest.raises(ValueError, match="no pieces are added"):
        e5.build_splitter().encode_batch_fast(["a"], add_special_tokens=True)


def test_the_least_likely_piece_is_what_is_said():
    pieces = e5.build_splitter()
    scores = pieces._read_scores(np.arange(len(e5.load_embeddings())))
    assert scores.min() == e5.MIN_LOG_PROBABILITY
