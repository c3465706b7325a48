"""The lexicon: marks by list, the longest match, and nothing across texts."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from textveil.models import lexicon
from textveil.models.lexicon import MARKS, NAME, PUBLIC, folded, marks


def of(*texts: str) -> list[list[int]]:
    words = [text.split() for text in texts]
    bounds = np.cumsum([0, *map(len, words)])
    found = marks([word for own in words for word in own], bounds)
    return [found[i:j].tolist() for i, j in pairwise(bounds)]


def test_names_and_what_is_public_are_marked_in_any_casing_and_without_accents():
    assert of("kowalski KOWALSKI José of table") == [[NAME, NAME, NAME, 0, 0]]
    assert of("python GOOGLE Brasília") == [[PUBLIC] * 3]
    assert of("albert einstein", "albert smith") == [[NAME | PUBLIC, PUBLIC], [NAME, NAME]]


def test_the_longest_entry_counts(monkeypatch):
    entries = {"names": ["york"], "public": ["new york", "new york times", "times square", "new"]}
    monkeypatch.setattr(lexicon, "_read", entries.__getitem__)
    lexicon._lists.cache_clear()
    try:
        assert of("New York Times Square new york x") == [[2, 3, 2, 0, 2, 3, 0]]
        assert of("York New", "York Times") == [[1, 2], [1, 0]]
    finally:
        lexicon._lists.cache_clear()


def test_no_entry_is_longer_than_said_and_all_are_as_they_are_looked_up():
    names, public, longest = lexicon._lists()
    assert len(names) > 40_000
    assert len(public) > 10_000
    assert max(longest.values()) == lexicon.LONGEST
    assert all(folded(entry) == entry and not entry.startswith("#") for entry in names | public)
    assert not any(" " in name for name in names)


@given(st.lists(st.lists(st.sampled_from(["new", "york", "Obama", "ann", "Paris", "united", "states", "of", "x"]))))
def test_a_text_is_marked_as_it_is_alone(texts):
    together = of(*(" ".join(text) for text in texts))
    assert together == [of(" ".join(text))[0] for text in texts]
    assert all(0 <= mark < MARKS for own in together for mark in own)
