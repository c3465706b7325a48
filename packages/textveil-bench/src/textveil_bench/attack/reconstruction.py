"""Reconstructions: texts with guesses inserted, and the guesses' cosines.

In: a view, and a row for each protected position. Out: words, texts, cosines.
Not here: the guesses (`masked`, `semantic`, `llm`).
"""

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

from textveil.evaluate.attack.attack_input import View
from textveil.mechanism import PLACEHOLDER
from textveil.randomness import Ids, Values
from textveil.table import SLAB_ROWS, EmbeddingTable, WordPieces

NEAR_COSINE = 0.6
"""Minimum cosine for a guess to count as near in meaning."""


def fill(view: View, rows: Ids) -> list[str]:
    """Replaces the protected words of all texts by rows [n].

    A word keeps its released form if one of its rows is `PLACEHOLDER`. In the unit wordpiece the
    pieces of a word are joined as in a release.

    Returns:
        all N words.
    """
    words = list(view.items)
    first = np.flatnonzero(np.diff(view.item, prepend=-1))
    parts = np.split(rows, first[1:]) if len(first) else []
    guessed = [
        (i, part)
        for i, part in zip(view.item[first].tolist(), parts, strict=True)
        if PLACEHOLDER not in part
    ]
    if view.words.unit == "wordpiece":
        spelled = WordPieces.load(view.words.tokenizer, view.table).join(
            [part for _, part in guessed]
        )
    else:
        spelled = [view.origin.words[part[0]] for _, part in guessed]
    for (i, _), word in zip(guessed, spelled, strict=True):
        words[i] = word
    return words


def spell(view: View, words: Sequence[str]) -> list[str]:
    """Joins words into the B texts, with the whitespace of the releases."""
    texts = []
    for released, (start, stop) in zip(
        view.released, pairwise(view.documents.tolist()), strict=True
    ):
        texts.append(
            "".join(chain.from_iterable(zip(released.gaps, [*words[start:stop], ""], strict=True)))
        )
    return texts


def find_protected_texts(view: View) -> Ids:
    """Finds texts with a protected word or a name from a list."""
    return np.unique(np.concatenate([view.text, view.text_of_name]))


def compute_cosines(table: EmbeddingTable, first: Ids, second: Ids) -> Values:
    """Computes the cosine of corresponding rows [n] in the full-dimensional table."""
    root = table.root
    values = np.empty(len(first))
    for start in range(0, len(first), SLAB_ROWS):
        part = slice(start, start + SLAB_ROWS)
        a, b = (root.take(rows[part]).astype(np.float64) for rows in (first, second))
        sizes = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        values[part] = np.einsum("ij,ij->i", a, b) / np.maximum(sizes, 1e-300)
    return values
