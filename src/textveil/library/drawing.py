"""Public draws of a library's texts: for all who know the seed the same.

In: how many texts of each cell, a public seed. Out: texts of the library.
Not here: anything private: what is drawn here follows from what was released.
"""

import numpy as np

from textveil.library.library import Level
from textveil.randomness import Ids, Ints, SeededRandomness, Values


def allocate(weights: Values, count: int) -> Ints:
    """Divides a number among bins in proportion to their weights, by largest remainders.

    Args:
        weights: float64 [bins], at least 0; all alike where they are 0.
        count: what is divided.

    Returns:
        int64 [bins], `count` in all; equal remainders go to the first.
    """
    total = weights.sum()
    shares = (weights / total if total > 0 else np.full(len(weights), 1 / len(weights))) * count
    amounts: Ints = np.floor(shares).astype(np.int64)
    order = np.argsort(amounts - shares, kind="stable")
    amounts[order[: count - int(amounts.sum())]] += 1
    return amounts


def draw_texts(level: Level, amounts: Ints, seed: int) -> tuple[Ids, Ids, Ids]:
    """Draws texts of cells in a public order, without replacement until a cell has no more.

    Args:
        level: the cells.
        amounts: int64 [L, K], how many texts of each cell get each label.
        seed: public; another one gives other texts.

    Returns:
        The texts, their labels and their cells, int64 [n] each, in a public order.
    """
    order = _shuffle(len(level.cells), seed, "texts")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    parts = []
    for cell, members in enumerate(level.members):
        labels = np.repeat(np.arange(len(amounts)), amounts[:, cell])
        shuffled = members[np.argsort(rank[members], kind="stable")]
        parts.append((np.resize(shuffled, len(labels)), labels, np.full(len(labels), cell)))
    texts, labels, cells = (
        np.concatenate(part).astype(np.int64) for part in zip(*parts, strict=True)
    )
    places = _shuffle(len(texts), seed, "places")
    return texts[places], labels[places], cells[places]


def _shuffle(n: int, seed: int, purpose: str) -> Ids:
    """Returns a public order of n things, int64 [n]."""
    if n == 0:
        return np.empty(0, np.int64)
    number = int.from_bytes(purpose.encode(), "big")
    streams = SeededRandomness(seed).derive_part(number % (1 << 31)).open([n])
    keys = np.concatenate([draws.bits(1)[:, 0] for _, draws in streams.split_rows(n)])
    order: Ids = np.argsort(keys, kind="stable").astype(np.int64)
    return order
