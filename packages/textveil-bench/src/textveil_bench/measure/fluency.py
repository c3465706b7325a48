"""How a text reads: its pseudo-perplexity under a masked language model, before and after.

In: a case. Out: rows of figures, a value for each text that was looked at.
Not here: what the model says of a position (`encoder.context`), and what attackers make of it (`attack.masked`).

Each word of a text is hidden in turn, and the model gives its probability among the words of the table, from all other
words of the text. The pseudo-perplexity of a text is exp(-mean ln p) over its words. A word counts only where it is in
the table and a word, not a placeholder, is released for it, so that both versions have the same positions; words that
pass are among them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from textveil.evaluate.attack import Case, Outcome, Report, language_model, quiet
from textveil.evaluate.logs import log_sum
from textveil.models import LanguageModel, Ragged
from textveil.randomness import Ids, Values
from textveil.text import Kind
from textveil_bench.measure.contract import silent
from textveil_bench.measure.mapping import order

WORDS = 2_000
"""Words that are hidden in each version at most, those of whole texts in random order, of the last text a part."""

CELLS = 1 << 25
"""Logits that are held at once: 128 MiB."""


@silent(
    "no word of the table stands in both versions of a text, or the unit is wordpiece",
    on_request=True,
)
def perplexity(case: Case, *, report: Report = quiet) -> Iterator[Outcome]:
    """The geometric mean over texts of the pseudo-perplexity of the original and of the release, and of their ratio.

    Nothing in the unit wordpiece, where the table has no whole words.

    Source: Salazar et al., Masked Language Model Scoring (ACL 2020), section 2, by words.
    """
    if case.view.words.unit == "wordpiece":
        return
    private, released = _targets(case)
    items = _chosen(case, np.flatnonzero((private >= 0) & (released >= 0)))
    if not len(items):
        return
    context = language_model(case.view.origin, None)
    context = replace(context, batch=max(1, min(context.batch, CELLS // len(case.view.origin))))
    kinds = [item.kind for each in case.view.released for item in each.items]
    shown = [
        "" if kind is Kind.PLACEHOLDER else word
        for word, kind in zip(case.view.items, kinds, strict=True)
    ]
    where, which = np.unique(_text(case, items), return_inverse=True)
    per_text = []
    for words, rows, step in (
        (case.truth.words, private, "original words"),
        (shown, released, "released words"),
    ):
        surprise = -_log_probabilities(
            context, _ragged(case, words), items, rows[items], step, report
        )
        per_text.append(np.bincount(which, surprise) / np.bincount(which))
    original, release = per_text
    for of, values in (
        ("original", original),
        ("released", release),
        ("released / original", release - original),
    ):
        yield Outcome(
            source="perplexity",
            metric="pseudo-perplexity",
            setting={"of": of},
            unit="text",
            where=where,
            values=values,
            share=False,
            note=f"geometric mean over texts, {len(items):,} words in each version; {context.name}",
            geometric=True,
        )


def _targets(case: Case) -> tuple[Ids, Ids]:
    """The row of each of the N words in the original and in the release, -1 where it has none of its own."""
    view, words = case.view, case.truth.words
    place = {word: i for i, word in enumerate(dict.fromkeys(words))}
    rows, known = view.origin.lookup(list(place))
    private = (
        np.where(known, rows, -1)[[place[word] for word in words]]
        if words
        else np.empty(0, np.int64)
    )
    kinds = [item.kind for each in view.released for item in each.items]
    released = np.where([kind is Kind.VERBATIM for kind in kinds], private, -1).astype(np.int64)
    released[view.item] = view.shown_words
    return private, released


def _chosen(case: Case, items: Ids) -> Ids:
    place = np.argsort(order(len(case.view.released)))
    return np.sort(items[np.argsort(place[_text(case, items)], kind="stable")][:WORDS])


def _text(case: Case, items: Ids) -> Ids:
    found: Ids = np.searchsorted(case.view.documents, items, side="right") - 1
    return found


def _ragged(case: Case, words: Sequence[str]) -> Ragged:
    """Words in the places of the items; the first of a text counts as spaced."""
    gaps = [
        gap for each in case.view.released for gap in (" ", *each.gaps[1:-1])[: len(each.items)]
    ]
    spaced = np.array([gap != "" for gap in gaps], bool)
    return Ragged(words=words, documents=case.view.documents, spaced=spaced)


def _log_probabilities(
    context: LanguageModel, texts: Ragged, items: Ids, rows: Ids, step: str, report: Report
) -> Values:
    """ln p of each of these rows [m] at its word [m], hidden."""
    found = np.empty(len(items))
    done = 0
    for which, logits in context.batches(texts, items):
        report(step, done, len(items))
        found[which] = logits[np.arange(len(which)), rows[which]] - log_sum(logits)
        done += len(which)
    return found
