"""The shares of public text that fall on a table's rows."""

import numpy as np
import pytest

from textveil.table import row_frequency
from textveil.table.embedding import EmbeddingTable
from textveil.text.frequency import load_counts
from textveil.text.public import get_stopwords, is_public


def table_of(*words: str) -> EmbeddingTable:
    """A table whose rows are at right angles, so that the mean of some rows is nearest to one of them."""
    return EmbeddingTable.build(
        name="square", words=words, vectors=np.eye(len(words), dtype=np.float32)
    )


# ---- shares ------------------------------------------------------------------------------------------------


def test_shares_are_the_counts_of_private_words_where_lookup_puts_them_plus_one_half(monkeypatch):
    listed = {"the": 100, "apple": 10, "windwindmill": 4, "wind": 3, "'s": 2, "It's": 1}
    monkeypatch.setattr(row_frequency, "load_counts", lambda: listed)
    table = table_of("apple", "bridge", "the", "wind", "mill")
    # windwindmill is cut into wind, wind and mill, whose mean is nearest to wind; the, 's and It's are public.
    expected = np.array([10.5, 0.5, 0.5, 7.5, 0.5]) / 19.5
    assert np.allclose(row_frequency.compute_shares(table), expected, rtol=1e-15, atol=0)


def test_words_of_the_public_list_count_where_they_are_protected(monkeypatch):
    monkeypatch.setattr(
        row_frequency, "load_counts", lambda: {"the": 100, "apple": 10, "wind": 3, "It": 1}
    )
    table = table_of("apple", "the", "wind", "it")
    assert np.allclose(
        row_frequency.compute_shares(table, listed=True),
        np.array([10.5, 100.5, 3.5, 1.5]) / 116,
        rtol=1e-15,
    )
    assert np.allclose(
        row_frequency.compute_shares(table), np.array([10.5, 0.5, 3.5, 0.5]) / 15, rtol=1e-15
    )


@pytest.mark.slow
def test_of_the_whole_list_every_row_gets_its_own_word_and_one_half_at_least(pieces_table):
    found = row_frequency.compute_shares(pieces_table)
    assert found.shape == (60,)
    assert found.dtype == np.float64
    assert found.sum() == pytest.approx(1, abs=1e-12)
    listed = load_counts()
    public = {"'s", *get_stopwords()}
    total = sum(count for word, count in listed.items() if word.replace("’", "'") not in public)
    own = np.array([listed.get(word, 0) for word in pieces_table.words])
    assert (found * (total + 60 / 2) >= own + 0.499).all()


def test_a_projection_has_the_shares_of_its_root_which_are_computed_once(monkeypatch):
    monkeypatch.setattr(row_frequency, "load_counts", lambda: {"apple": 7, "windmill": 1})
    table = table_of("apple", "wind", "mill")
    once = row_frequency.compute_shares(table)
    assert row_frequency.compute_shares(table) is once
    assert row_frequency.compute_shares(table.project(2)) is once
    with pytest.raises(ValueError, match="read-only"):
        once[0] = 1.0


def test_tables_of_the_same_words_do_not_share_a_prior(monkeypatch):
    monkeypatch.setattr(row_frequency, "load_counts", lambda: {"applewind": 8})
    first, second = table_of("apple", "wind", "mill"), table_of("wind", "apple", "mill")
    # A tie of two rows goes to the lower one.
    assert (
        row_frequency.compute_shares(first).argmax()
        == row_frequency.compute_shares(second).argmax()
        == 0
    )
    assert first.words[0] != second.words[0]


def test_in_the_default_words_a_frequent_word_has_a_larger_share_than_a_rare_one(minilm_s):
    found = row_frequency.compute_shares(minilm_s)
    new, university, lantern = (
        found[minilm_s.row_of[word]] for word in ("new", "university", "lantern")
    )
    assert new > university > 10 * lantern > 0
    assert found[minilm_s.row_of["the"]] < university / 10  # what falls on it are surrogates only


@pytest.mark.slow
def test_what_ships_for_the_default_table_is_what_its_lookup_gives(minilm_s, monkeypatch):
    """A tenth of the list, to be quick: the whole of it falls nowhere else."""
    some = dict(list(load_counts().items())[::10])
    found = row_frequency._load_stored(minilm_s)
    assert found is not None
    assert found.sum() == sum(count for word, count in load_counts().items() if not is_public(word))
    monkeypatch.setattr(row_frequency, "load_counts", lambda: some)
    part = row_frequency.count_by_row(minilm_s)
    assert (part <= found).all()
    assert 0 < part.sum() < found.sum()


def test_another_table_of_the_same_name_gets_its_own_shares(minilm_s):
    other = EmbeddingTable.build(
        name="minilm-s", words=["apple", "wind"], vectors=np.eye(2, dtype=np.float32)
    )
    assert row_frequency.compute_shares(other).shape == (2,)
