"""Re-ranking: each drawn word gives way to the one of its nearest words that a masked language model expects there.

Where codes of a book are drawn, each is spelled by the one of its most frequent words that the model expects.

In: releases as they were drawn, and the rows of their drawn words. Out: the rows that are shown in their place.
Not here: private words. Whatever follows from the releases alone is post-processing and costs no epsilon.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from textveil.config import Rerank
from textveil.models import LanguageModel, Ragged, load_context
from textveil.randomness import Ids
from textveil.table import Book, EmbeddingTable, shares
from textveil.text import Kind, Released, is_public

CELLS = 1 << 25
"""Logits or distances that are held at once: 128 or 256 MiB."""

NOTE = "released words are re-ranked by a masked language model that sees the release only: post-processing"
SPELLED = (
    "a released code is spelled by the one of its frequent words that a masked language model expects, which sees the "
    "release only: post-processing; the book leads from the word back to the code"
)


def rerank(options: Rerank, table: EmbeddingTable, releases: Sequence[Released], rows: Ids) -> Ids:
    """The row of each drawn word's m nearest, itself among them, that the model expects most among the words around.

    Where a code was drawn, of the code's m most frequent words, the one that spells it among them.

    The words around are those that were drawn, and those that pass; a placeholder is hidden. The word itself is
    hidden too, so that it has no advantage but to be the nearest where two are expected alike. Every word is judged
    among words as they were drawn, not as they are shown in the end, so that their order plays no part.

    Args:
        options: how many candidates, and the model.
        table: whose rows were drawn.
        releases: the texts with the drawn words.
        rows: int64 [n], the rows of these words in the table's origin, those of kind `Kind.WORD` in order.

    Returns:
        int64 [n], rows of the origin; whatever they follow from is in the releases.

    Raises:
        ModelError: there is no such model.
    """
    if options.m < 2 or not len(rows):
        return rows
    texts = Ragged.released(releases)
    items = np.flatnonzero(
        [item.kind is Kind.WORD for released in releases for item in released.items]
    )
    book, origin = table.root.book, table.origin
    if book is None:
        near = table.neighbours(rows, min(options.m, len(table)))
    else:
        assert isinstance(book, Book), "options are checked"
        near = _frequent(table.root, options.m)[book.codes[rows]]
    hidden = np.array([not word for word in texts.words], bool)
    chosen = np.empty_like(rows)
    for places, logits in _model(origin, options.model).batches(texts, items, hidden):
        candidates = near[places]
        fit = np.take_along_axis(logits, candidates, axis=1)
        chosen[places] = candidates[np.arange(len(places)), fit.argmax(axis=1)]
    return chosen


@lru_cache(maxsize=8)
def _frequent(table: EmbeddingTable, m: int) -> Ids:
    """The m most frequent words of each code in general public text, its spelling first, int64 [C, m].

    Other words of the public list are none of them, so that a word that stands for a code is not taken for one that
    passed. Where a code has fewer words, its spelling stands for the rest.
    """
    book, origin = table.book, table.origin
    assert isinstance(book, Book), "it is a view by one book"
    first = np.zeros(len(origin), np.bool_)
    first[book.spelling] = True
    rows = np.flatnonzero(first | ~np.fromiter(map(is_public, origin.words), np.bool_, len(origin)))
    rows = rows[np.lexsort((-shares(origin)[rows], ~first[rows], book.codes[rows]))]
    sizes = np.bincount(book.codes[rows])
    rank = np.arange(min(m, int(sizes.max())))
    found: Ids = rows[
        (np.cumsum(sizes) - sizes)[:, None] + np.where(rank < sizes[:, None], rank, 0)
    ]
    return found


@lru_cache(maxsize=2)
def _model(table: EmbeddingTable, source: str | None) -> LanguageModel:
    context = load_context(table, source, kind="masked-lm", device=table.device)
    return replace(context, batch=max(1, min(context.batch, CELLS // len(table))))
