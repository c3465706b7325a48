"""Typical words of cells, by which a person knows what a cell is about.

In: a library, a level. Out: the words of each cell.
Not here: the texts that are typical of a cell (`library`), and its name, if it has one.
"""

from collections import Counter

import numpy as np
import regex

from textveil.library.library import Level, Library

_WORD = regex.compile(r"\p{L}{3,}")


def find_typical_words(library: Library, level: Level, count: int = 6) -> list[tuple[str, ...]]:
    """Finds the words of each cell that stand in more of its texts than elsewhere.

    Args:
        library: the public texts.
        level: its cells.
        count: the most words of a cell.

    Returns:
        For each cell its words, the most typical first.
    """
    counts = [Counter[str]() for _ in level.sizes]
    for text, cell in zip(library.texts, level.cells.tolist(), strict=True):
        counts[cell].update(set(_WORD.findall(text.lower())))
    words = sorted(set().union(*counts))
    table = np.array([[each[word] for word in words] for each in counts], np.float64)
    sizes = level.sizes[:, None].astype(np.float64)
    elsewhere = (table.sum(axis=0) - table) / np.maximum(1, len(library) - sizes)
    inside = table / sizes
    # how much more frequent, in steps that do not praise a word of one text
    scores = np.maximum(inside - elsewhere, 0) * np.log(
        (inside * sizes + 1) / (elsewhere * sizes + 1)
    )
    return [
        tuple(words[i] for i in np.argsort(-row, kind="stable")[:count] if row[i] > 0)
        for row in scores
    ]
