"""Sweep: privatizers on the same texts, sharing a language model's output.

In: privatizers, texts. Out: rehearsals, part by part.
Not here: how one text is privatized (`privatizer`).
"""

from collections.abc import Iterator, Sequence

from textveil.pipeline.privatizer import Privatizer
from textveil.pipeline.results import EvaluationRun
from textveil.text import tokenize

SWEEP_WORDS = 1024
"""Words whose logits are held together: 90 MB at 21,719 candidates."""


def sweep(
    privatizers: Sequence[Privatizer],
    texts: Sequence[str],
    queries: Sequence[str] | None = None,
    *,
    part: int = SWEEP_WORDS,
) -> Iterator[tuple[EvaluationRun, ...]]:
    """Rehearses the same texts with each privatizer, part by part.

    The output of the language model is computed once. All budgets of mechanisms whose context does
    not depend on the release (`original`, `public`), on the same table, share it.

    Args:
        privatizers: at least one.
        texts: any number.
        queries: the purpose of each text, see `Privatizer.privatize`.
        part: words of a part; the logits of all of them are held together, 4 bytes a candidate.

    Yields:
        For every part of the texts, in order, a rehearsal by each privatizer. A part has up to this
        number of words or is one text.
    """
    first = words = 0
    for stop, text in enumerate(texts):
        count = len(tokenize([text]).words)
        if first < stop and words + count > part:
            yield _rehearse_part(privatizers, texts, queries, slice(first, stop))
            first, words = stop, 0
        words += count
    if first < len(texts):
        yield _rehearse_part(privatizers, texts, queries, slice(first, len(texts)))


def _rehearse_part(
    privatizers: Sequence[Privatizer],
    texts: Sequence[str],
    queries: Sequence[str] | None,
    part: slice,
) -> tuple[EvaluationRun, ...]:
    memo: dict[object, object] = {}
    part_queries = None if queries is None else queries[part]
    return tuple(
        privatizer.rehearse(texts[part], memo=memo, queries=part_queries)
        for privatizer in privatizers
    )
