"""Rouge-L and matching words against a longest common subsequence that is worked out by the textbook's recursion."""

from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textveil_bench.overlap import match_words, rouge_l

WORDS = st.lists(st.sampled_from(["the", "a", "river", "stone", "b"]), max_size=8)


def longest(one, other):
    @cache
    def length(i: int, j: int) -> int:
        if i == len(one) or j == len(other):
            return 0
        if one[i] == other[j]:
            return 1 + length(i + 1, j + 1)
        return max(length(i + 1, j), length(i, j + 1))

    return length(0, 0)


@pytest.mark.parametrize(
    ("one", "other", "f1"),
    [
        # Lin (2004), section 3.1: "police killed the gunman" and two candidates; P = R = 3/4 and 2/4
        ("police killed the gunman", "police kill the gunman", 0.75),
        ("police killed the gunman", "the gunman kill police", 0.5),
        ("the river", "the river of stone", 2 / 3),  # P = 1, R = 1/2
        ("The RIVER", "the river", 1.0),
        ("straße", "STRASSE", 1.0),
        ("river", "stone", 0.0),
        ("river", "", 0.0),
        ("", "", 1.0),
    ],
)
def test_rouge_l_by_hand(one, other, f1):
    assert rouge_l(one.split(), other.split()) == pytest.approx(f1, abs=1e-12)


@given(WORDS, WORDS)
def test_rouge_l_is_twice_the_longest_common_subsequence_over_both_lengths(one, other):
    if one or other:
        assert rouge_l(one, other) == pytest.approx(
            2 * longest(one, other) / (len(one) + len(other))
        )


@given(WORDS, WORDS)
def test_matches_are_a_longest_common_subsequence(one, other):
    pairs = match_words(one, other)
    assert len(pairs) == longest(one, other)
    assert all(one[i] == other[j] for i, j in pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))
