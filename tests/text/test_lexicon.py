"""The lexicon: marks by list, the longest match, and nothing across texts."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textveil.text import fold_word, lexicon
from textveil.text.lexicon import (
    MARK_COUNT,
    NAME_MARK,
    ORDINARY_MARK,
    PLACE_MARK,
    PUBLIC_MARK,
    mark_words,
)


def of(*texts: str) -> list[list[int]]:
    words = [text.split() for text in texts]
    bounds = np.cumsum([0, *map(len, words)])
    found = mark_words([word for own in words for word in own], bounds)
    return [found[i:j].tolist() for i, j in pairwise(bounds)]


def test_lists_are_read_in_any_casing_and_without_accents():
    assert of("kowalski KOWALSKI José Mietvertrag umowa zxqv") == [
        [NAME_MARK, NAME_MARK, NAME_MARK, ORDINARY_MARK, ORDINARY_MARK, 0]
    ]
    assert of("python GOOGLE Brasília") == [[PUBLIC_MARK, PUBLIC_MARK, PUBLIC_MARK | PLACE_MARK]]
    assert of("albert einstein", "jürgen einstein") == [
        [NAME_MARK | PUBLIC_MARK, PUBLIC_MARK],
        [NAME_MARK, PUBLIC_MARK],
    ]
    assert of("Bad Salzuflen", "Варшава") == [[PLACE_MARK, PLACE_MARK], [PLACE_MARK]]


def test_words_are_ordinary_where_no_spaces_are():
    assert of("김민수는 완벽하게 학교에서") == [[0, ORDINARY_MARK, ORDINARY_MARK]]
    found = of("王 小 明 在 工 作 。")[0]
    assert [bool(mark & ORDINARY_MARK) for mark in found] == [
        False,
        True,
        True,
        True,
        True,
        True,
        False,
    ]
    assert of("学", "校") == [[0], [0]], "nothing across texts"
    assert of("学 校") == [[ORDINARY_MARK, ORDINARY_MARK]]
    assert of("学 . 校") == [[0, 0, 0]]


def test_no_word_no_mark():
    assert of() == []
    assert of("", "") == [[], []]


@pytest.fixture
def few(monkeypatch):
    entries = {
        "names": ["york"],
        "places": ["new york", "bath"],
        "public": ["new york", "new york times", "times square", "new"],
    }
    monkeypatch.setattr(lexicon, "_read", entries.__getitem__)
    monkeypatch.setattr(lexicon, "_read_ordinary", lambda: lexicon.hash_words(["square"]))
    lexicon.read_lists.cache_clear()
    yield
    lexicon.read_lists.cache_clear()


def test_the_longest_entry_counts(few):
    both = PUBLIC_MARK | PLACE_MARK
    assert of("New York Times Square new york xq") == [
        [2, 3, 2, ORDINARY_MARK, both, both | NAME_MARK, 0]
    ]
    assert of("York New", "York Bath") == [[1, 2], [1, PLACE_MARK]]


def test_no_entry_is_longer_than_said_and_all_are_as_they_are_looked_up():
    names, entries, longest = lexicon.read_lists()
    assert len(names) > 40_000
    assert sum(mark & PUBLIC_MARK > 0 for mark in entries.values()) > 10_000
    assert sum(mark & PLACE_MARK > 0 for mark in entries.values()) > 40_000
    assert max(longest.values()) == lexicon.MAX_ENTRY_WORDS
    assert all(
        fold_word(entry) == entry and not entry.startswith("#") for entry in (*names, *entries)
    )
    assert not any(" " in name for name in names)


def test_ordinary_words_are_sorted_and_on_no_other_list_but_the_commonest():
    known = lexicon._read_ordinary()
    assert (np.diff(known) > 0).all()
    assert len(known) > 200_000
    names, entries, _ = lexicon.read_lists()
    others = lexicon.hash_words([*names, *entries])
    assert np.isin(others, known).sum() < 600
    assert of("la die Smith Paris") == [
        [
            NAME_MARK | ORDINARY_MARK,
            NAME_MARK | ORDINARY_MARK,
            NAME_MARK,
            NAME_MARK | PUBLIC_MARK | PLACE_MARK,
        ]
    ]


@given(
    st.lists(
        st.lists(
            st.sampled_from(["new", "york", "Obama", "ann", "Paris", "united", "states", "of", "x"])
        )
    )
)
def test_a_text_is_marked_as_it_is_alone(texts):
    together = of(*(" ".join(text) for text in texts))
    assert together == [of(" ".join(text))[0] for text in texts]
    assert all(0 <= mark < MARK_COUNT for own in together for mark in own)
