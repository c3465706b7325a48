"""Rouge-L and BLEU between originals and releases.

In: a case. Out: outcomes, a value for each text.
Not here: single words (`words`), and perplexity (`fluency`).

All words count, including unprotected ones, in lower case and as they were tokenized; texts without
words are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from textveil.evaluate.attack import Case, Outcome
from textveil.randomness import Ids, Values
from textveil_bench.measure.measure_contract import annotate_measure
from textveil_bench.overlap import rouge_l

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEUScore


@annotate_measure("no text has a word")
def rouge(case: Case) -> Iterator[Outcome]:
    """Measures Rouge-L F1 of each release with its original, 0 to 1."""
    where, originals, releases = _pair_texts(case)
    values = np.array(
        [rouge_l(release, original) for release, original in zip(releases, originals, strict=True)]
    )
    yield Outcome(source="rouge-l", metric="Rouge-L", unit="text", where=where, values=values)


@annotate_measure("no text has a word")
def bleu(case: Case) -> Iterator[Outcome]:
    """Measures BLEU of releases with originals, from 0 to 100.

    Once as the mean over texts, once over all texts as a corpus. By sacrebleu with tokenize=none
    and exponential smoothing; of single texts with effective_order, so that texts of fewer than
    four words are not 0. The corpus interval is the jackknife's over texts; it has no slices.

    Source: Post, A Call for Clarity in Reporting BLEU Scores (2018).
    """
    from sacrebleu.metrics.bleu import BLEU

    where, originals, releases = _pair_texts(case)
    if not len(where):
        return
    single = BLEU(tokenize="none", effective_order=True)
    scores = [
        single.sentence_score(" ".join(released), [" ".join(original)])
        for released, original in zip(releases, originals, strict=True)
    ]
    signature = "sacrebleu, tokenize=none, smoothing exp"
    outcome = Outcome(
        source="bleu",
        metric="BLEU",
        unit="text",
        where=where,
        values=np.array([score.score for score in scores]),
        share=False,
        note=f"mean over texts; {signature}, effective_order",
    )
    yield outcome
    note = f"all texts as one; {signature}"
    yield replace(
        outcome, metric="corpus BLEU", values=_compute_corpus_bleu(scores), note=note, sliced=False
    )


def _compute_corpus_bleu(scores: "Sequence[BLEUScore]") -> Values:
    """Computes jackknife pseudo-values of corpus BLEU, one per text.

    Their mean is corpus BLEU, and their spread gives its interval.
    """
    from sacrebleu.metrics.bleu import BLEU

    counts = np.array(
        [[*score.counts, *score.totals, score.sys_len, score.ref_len] for score in scores]
    )

    def compute_bleu(sums: Ids) -> float:
        correct, total = sums[:4].tolist(), sums[4:8].tolist()
        return BLEU.compute_bleu(
            correct, total, int(sums[8]), int(sums[9]), smooth_method="exp"
        ).score

    total_counts = counts.sum(axis=0)
    without = np.array([compute_bleu(total_counts - text_counts) for text_counts in counts])
    influence: Values = (len(scores) - 1) * (without.mean() - without)
    return compute_bleu(total_counts) + influence


def _pair_texts(case: Case) -> tuple[Ids, list[list[str]], list[list[str]]]:
    """Returns the indices of texts with words, and their words.

    Original and released words are in lower case.
    """
    bounds = case.view.documents.tolist()
    where = np.flatnonzero(case.lengths)
    spans = [slice(bounds[b], bounds[b + 1]) for b in where.tolist()]
    originals, releases = (
        [word.lower() for word in words] for words in (case.truth.words, case.view.items)
    )
    return where, [originals[span] for span in spans], [releases[span] for span in spans]
