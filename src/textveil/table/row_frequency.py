"""Distribution of public text over the rows of a table.

In: a table. Out: shares [V], the public prior of attackers.
Not here: word counts of public text (`text.frequency`).
"""

import gzip
import io
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from textveil.randomness import Ints, Values
from textveil.text import is_public, load_counts

if TYPE_CHECKING:
    from textveil.table.embedding import EmbeddingTable


SMOOTHING = 0.5
"""Pseudo-count of each row, so that none is impossible: Jeffreys' prior."""


def compute_shares(table: "EmbeddingTable", *, listed: bool = False) -> Values:
    """Returns the share of public text that maps to each row.

    float64 [V], positive, summing to 1, read-only. Words are mapped by `table.lookup`, so those
    outside the table count for their surrogates. 1/2 is added to each row's count. The word list is
    lower-case, so a row whose word has capitals gets only what it receives as surrogate.

    Stored for packaged tables, otherwise computed once per table, in seconds for tens of thousands
    of rows; a projection has the shares of its root, and a coarse view the sums of its words'
    shares.

    Args:
        table: the table of the rows.
        listed: whether words of the public list count: they are secrets to guess only if they are
            protected.
    """
    return _compute_shares(table.root, listed)


@lru_cache(maxsize=16)
def _compute_shares(table: "EmbeddingTable", listed: bool) -> Values:
    if table.book is not None:
        gathered = table.sum_by_row(_compute_shares(table.origin, listed))
        gathered.flags.writeable = False
        return gathered
    counted = _load_stored(table)
    counted = count_by_row(table) if counted is None else counted
    smoothed = counted + (count_by_row(table, listed=True) if listed else 0) + SMOOTHING
    prior: Values = smoothed / smoothed.sum()
    prior.flags.writeable = False
    return prior


def compute_shares_from(
    table: "EmbeddingTable", counted: Mapping[str, int], *, listed: bool = False
) -> Values:
    """Computes `compute_shares` from other public text.

    float64 [V], positive, summing to 1.

    Args:
        table: the table of the rows.
        counted: how often each word occurs there.
        listed: whether words of the public list count.
    """
    smoothed = (
        count_by_row(table, counted=counted)
        + (count_by_row(table, listed=True, counted=counted) if listed else 0)
        + SMOOTHING
    )
    text_shares: Values = smoothed / smoothed.sum()
    return text_shares


def count_by_row(
    table: "EmbeddingTable", *, listed: bool = False, counted: Mapping[str, int] | None = None
) -> Ints:
    """Counts the words of public text per row: int64 [V].

    Either the words of the public list or all others. The text is the package's, unless counts of
    another one are given.
    """
    every = load_counts() if counted is None else counted
    falling = {word: count for word, count in every.items() if is_public(word) == listed}
    rows, _ = table.lookup(list(falling))
    sums = np.zeros(len(table), np.int64)
    np.add.at(sums, rows, np.fromiter(falling.values(), np.int64, len(falling)))
    return sums


def _load_stored(table: "EmbeddingTable") -> Ints | None:
    """Returns the packaged result of `count_by_row` for exactly these rows, or None."""
    source = files("textveil").joinpath(
        "data", "frequencies", f"{table.name}-{table.metric}.npy.gz"
    )
    if table.stored is None or not source.is_file():
        return None
    sums: Ints = np.load(io.BytesIO(gzip.decompress(source.read_bytes())), allow_pickle=False)
    return sums.astype(np.int64) if sums.shape == (len(table),) else None
