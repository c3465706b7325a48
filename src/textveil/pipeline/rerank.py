"""Re-ranking: a masked language model chooses among each drawn word's neighbours.

Where codes of a book are drawn, it chooses among the most frequent words of each.

In: releases as they were drawn, and the rows of their drawn words. Out: the rows that are shown in
their place.
Not here: private words. All that is computed from the releases alone is post-processing and costs
no epsilon.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from textveil.config import Rerank
from textveil.models import LanguageModel, Ragged, load_context
from textveil.randomness import Ids
from textveil.table import Book, EmbeddingTable, compute_shares
from textveil.text import Kind, Released, is_public

MAX_LOGIT_CELLS = 1 << 25
"""Logits or distances in memory together: 128 or 256 MiB."""

RERANK_NOTE = (
    "released words are re-ranked by a masked language model that sees the release only: "
    "post-processing"
)
CODE_SPELLING_NOTE = (
    "a released code is written as one of its frequent words, chosen by a masked language "
    "model that sees the release only: post-processing; the book leads from the word back to "
    "the code"
)


def rerank(options: Rerank, table: EmbeddingTable, releases: Sequence[Released], rows: Ids) -> Ids:
    """Replaces each drawn row by the candidate that the model expects most.

    The candidates are the word and its nearest, m in all; for a code, its m most frequent words
    with its spelling.

    The context is the drawn and passing words; placeholders are masked. The word itself is masked
    too, so that its only advantage is to come first where two candidates tie. Every word is judged
    in the context as it was drawn, not as it is shown in the end, so that their order has no
    effect.

    Args:
        options: number of candidates, and the model.
        table: table of the drawn rows.
        releases: the texts with the drawn words.
        rows: int64 [n], the rows of these words in the table's origin, those of kind `Kind.WORD` in
            order.

    Returns:
        int64 [n], rows of the origin, computed from the releases alone.

    Raises:
        ModelError: there is no such model.
    """
    if options.m < 2 or not len(rows):
        return rows
    texts = Ragged.build_released(releases)
    items = np.flatnonzero(
        [item.kind is Kind.WORD for released in releases for item in released.items]
    )
    book, origin = table.root.book, table.origin
    if book is None:
        nearest = table.neighbours(rows, min(options.m, len(table)))
    else:
        assert isinstance(book, Book), "options are checked"
        nearest = _find_frequent(table.root, options.m)[book.codes[rows]]
    is_masked = np.array([not word for word in texts.words], bool)
    best_rows = np.empty_like(rows)
    for places, logits in _load_model(origin, options.model).yield_batches(texts, items, is_masked):
        candidates = nearest[places]
        fit = np.take_along_axis(logits, candidates, axis=1)
        best_rows[places] = candidates[np.arange(len(places)), fit.argmax(axis=1)]
    return best_rows


@lru_cache(maxsize=8)
def _find_frequent(table: EmbeddingTable, m: int) -> Ids:
    """Returns each code's m most frequent words, spelling first, int64 [C, m].

    Words of the public list are left out, so that a word for a code is not mistaken for one that
    passed. Where a code has fewer words, its spelling fills the rest.
    """
    book, origin = table.book, table.origin
    assert isinstance(book, Book), "it is a view by one book"
    first = np.zeros(len(origin), np.bool_)
    first[book.spelling] = True
    rows = np.flatnonzero(first | ~np.fromiter(map(is_public, origin.words), np.bool_, len(origin)))
    rows = rows[np.lexsort((-compute_shares(origin)[rows], ~first[rows], book.codes[rows]))]
    sizes = np.bincount(book.codes[rows])
    rank = np.arange(min(m, int(sizes.max())))
    frequent: Ids = rows[
        (np.cumsum(sizes) - sizes)[:, None] + np.where(rank < sizes[:, None], rank, 0)
    ]
    return frequent


@lru_cache(maxsize=2)
def _load_model(table: EmbeddingTable, source: str | None) -> LanguageModel:
    context = load_context(table, source, kind="masked-lm", device=table.device)
    return replace(context, batch=max(1, min(context.batch, MAX_LOGIT_CELLS // len(table))))
