"""Pseudo-perplexity of texts under a masked language model, before and after.

In: a case. Out: rows of figures, a value for each text examined.
Not here: the language model (`textveil.models`), and the attack that uses it (`attack.masked`).

Each word of a text is masked in turn, and the model gives its probability among the words of the
table, from all other words of the text. The pseudo-perplexity of a text is exp(-mean ln p) over its
words. A word counts only if it is in the table and its release is a word, not a placeholder, so
that both versions have the same positions; unprotected words are included.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from textveil.evaluate.attack import (
    Case,
    Outcome,
    ProgressCallback,
    ignore_progress,
    load_language_model,
)
from textveil.evaluate.log_math import compute_log_sum
from textveil.models import LanguageModel, Ragged
from textveil.randomness import Ids, Values
from textveil.text import Kind
from textveil_bench.measure.mapping import shuffle_texts
from textveil_bench.measure.measure_contract import annotate_measure

MAX_HIDDEN_WORDS = 2_000
"""Largest number of masked words per version.

Texts are taken whole, in random order; only the last one may be cut.
"""

MAX_LOGITS = 1 << 25
"""Largest number of logits in memory at once: 128 MiB."""


@annotate_measure(
    "no position has a table word in both versions of a text, or the unit is wordpiece",
    on_request=True,
)
def perplexity(case: Case, *, report: ProgressCallback = ignore_progress) -> Iterator[Outcome]:
    """Measures the pseudo-perplexity of originals and releases, and their ratio.

    Each is a geometric mean over texts. Nothing is yielded for the unit wordpiece, whose table has
    no whole words.

    Source: Salazar et al., Masked Language Model Scoring (ACL 2020), section 2, by words.
    """
    if case.view.words.unit == "wordpiece":
        return
    private, released = _find_target_rows(case)
    items = _choose_items(case, np.flatnonzero((private >= 0) & (released >= 0)))
    if not len(items):
        return
    context = load_language_model(case.view.origin, None)
    context = replace(
        context, batch=max(1, min(context.batch, MAX_LOGITS // len(case.view.origin)))
    )
    kinds = [item.kind for document in case.view.released for item in document.items]
    shown_words = [
        "" if kind is Kind.PLACEHOLDER else word
        for word, kind in zip(case.view.items, kinds, strict=True)
    ]
    where, text_indices = np.unique(_find_texts(case, items), return_inverse=True)
    per_text = []
    for words, rows, step in (
        (case.truth.words, private, "original words"),
        (shown_words, released, "released words"),
    ):
        surprise = -_compute_log_probabilities(
            context, _build_ragged(case, words), items, rows[items], step, report
        )
        per_text.append(np.bincount(text_indices, surprise) / np.bincount(text_indices))
    original, release = per_text
    for version, values in (
        ("original", original),
        ("released", release),
        ("released / original", release - original),
    ):
        yield Outcome(
            source="perplexity",
            metric="pseudo-perplexity",
            setting={"of": version},
            unit="text",
            where=where,
            values=values,
            share=False,
            note=f"geometric mean over texts, {len(items):,} words in each version; {context.name}",
            geometric=True,
        )


def _find_target_rows(case: Case) -> tuple[Ids, Ids]:
    """Finds each word's table row, original and released; -1 for none."""
    view, words = case.view, case.truth.words
    indices = {word: i for i, word in enumerate(dict.fromkeys(words))}
    rows, in_table = view.origin.lookup(list(indices))
    private = (
        np.where(in_table, rows, -1)[[indices[word] for word in words]]
        if words
        else np.empty(0, np.int64)
    )
    kinds = [item.kind for document in view.released for item in document.items]
    released = np.where([kind is Kind.VERBATIM for kind in kinds], private, -1).astype(np.int64)
    released[view.item] = view.visible_word_rows
    return private, released


def _choose_items(case: Case, items: Ids) -> Ids:
    rank = np.argsort(shuffle_texts(len(case.view.released)))
    return np.sort(
        items[np.argsort(rank[_find_texts(case, items)], kind="stable")][:MAX_HIDDEN_WORDS]
    )


def _find_texts(case: Case, items: Ids) -> Ids:
    texts: Ids = np.searchsorted(case.view.documents, items, side="right") - 1
    return texts


def _build_ragged(case: Case, words: Sequence[str]) -> Ragged:
    """Places words at the items' positions; a text's first counts as spaced."""
    gaps = [
        gap
        for document in case.view.released
        for gap in (" ", *document.gaps[1:-1])[: len(document.items)]
    ]
    spaced = np.array([gap != "" for gap in gaps], bool)
    return Ragged(words=words, documents=case.view.documents, spaced=spaced)


def _compute_log_probabilities(
    context: LanguageModel,
    texts: Ragged,
    items: Ids,
    rows: Ids,
    step: str,
    report: ProgressCallback,
) -> Values:
    """Computes ln p of each row [m] at its masked word [m]."""
    values = np.empty(len(items))
    done = 0
    for indices, logits in context.yield_batches(texts, items):
        report(step, done, len(items))
        values[indices] = logits[np.arange(len(indices)), rows[indices]] - compute_log_sum(logits)
        done += len(indices)
    return values
