"""Re-ranking: each drawn word gives way to the one of its nearest words that a masked language model expects there.

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
from textveil.table import EmbeddingTable
from textveil.text import Kind, Released

CELLS = 1 << 25
"""Logits or distances that are held at once: 128 or 256 MiB."""

NOTE = "released words are re-ranked by a masked language model that sees the release only: post-processing"


def rerank(options: Rerank, table: EmbeddingTable, releases: Sequence[Released], rows: Ids) -> Ids:
    """The row of each drawn word's m nearest, itself among them, that the model expects most among the words around.

    The words around are those that were drawn, and those that pass; a placeholder is hidden. The word itself is
    hidden too, so that it has no advantage but to be the nearest where two are expected alike. Every word is judged
    among words as they were drawn, not as they are shown in the end, so that their order plays no part.

    Args:
        options: how many candidates, and the model.
        table: whose words were drawn.
        releases: the texts with the drawn words.
        rows: int64 [n], the rows of these words, those of kind `Kind.WORD` in order.

    Returns:
        int64 [n]; whatever they follow from is in the releases.

    Raises:
        ModelError: there is no such model.
    """
    if options.m < 2 or not len(rows):
        return rows
    texts = Ragged.released(releases)
    items = np.flatnonzero([item.kind is Kind.WORD for released in releases for item in released.items])
    near = table.neighbours(rows, min(options.m, len(table)))
    hidden = np.array([not word for word in texts.words], bool)
    chosen = np.empty_like(rows)
    for places, logits in _model(table, options.model).batches(texts, items, hidden):
        candidates = near[places]
        fit = np.take_along_axis(logits, candidates, axis=1)
        chosen[places] = candidates[np.arange(len(places)), fit.argmax(axis=1)]
    return chosen


@lru_cache(maxsize=2)
def _model(table: EmbeddingTable, source: str | None) -> LanguageModel:
    context = load_context(table, source, kind="masked-lm", device=table.device)
    return replace(context, batch=max(1, min(context.batch, CELLS // len(table))))
