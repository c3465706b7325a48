"""Masked-token inference: a masked language model predicts each word from its context.

In: released words. Out: whether the private row is the model's first guess, or among its first k;
Rouge-L.
Not here: attackers that use the released word itself (`neighbour`, `bayes`), and the model's input
(`prior`).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.evaluate.attack.attack_contract import Outcome, ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import Case, View
from textveil.evaluate.attack.bayes import NOTHING_PROTECTED
from textveil.evaluate.attack.prior import convert_logits, get_released_words, load_language_model
from textveil.evaluate.log_math import find_highest
from textveil.models import LanguageModel
from textveil.randomness import Ids, Randomness, Values
from textveil.table import compute_shares
from textveil_bench.attack.reconstruction import fill, find_protected_texts
from textveil_bench.overlap import rouge_l

MAX_LOGITS = 1 << 26
"""Logits held in memory at once: 256 MiB."""

PIECES_REFUSAL = (
    "a language model predicts whole words, and with the unit wordpiece each piece is guessed "
    "separately"
)


@make_options()
class Masked:
    """Predicts each protected word from its context by a masked language model.

    The model sees the released words around the position, not the released word itself;
    placeholders are unknown words to it. Candidates are the rows of the table. If words of the
    public list pass, their rows stand only for words outside the table, with the frequency of these
    in public text. A guess is compared with the private row of the position. The result is what the
    context gives away, whatever the mechanism did to the word itself.

    Source: Yue et al., Findings of ACL-IJCNLP 2021, section 5 (mask token inference); Cape, section
        5.

    Args:
        model: a folder or hub id of a masked language model; None for the bundled one.
        k: number of guesses that count.
        batch: tokens per run of the network; fewer for tables of more than 16,000 rows.
    """

    name: ClassVar[str] = "masked"
    on_request: ClassVar[Literal[True]] = True
    wordwise: ClassVar[Literal[True]] = True
    model: str | None = None
    k: Annotated[int, Field(ge=2, le=1000, strict=True)] = 10
    batch: Annotated[int, Field(ge=1, strict=True)] = 4096

    def refusal(self, view: View) -> str:
        """Explains why the attack cannot run: word pieces, or no protected word."""
        if view.words.unit == "wordpiece":
            return PIECES_REFUSAL
        return "" if len(view.output_rows) else NOTHING_PROTECTED

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Yields top-1, top-k, and Rouge-L of the texts with the first guesses."""
        view, private = case.view, case.truth.rows
        context = load_language_model(view.vocabulary, self.model)
        guesses = self.guess(view, context, report)
        frequencies = view.restrict(
            compute_shares(view.vocabulary, listed=view.words.stopwords == "protect")
        )
        usual = np.argsort(-frequencies, kind="stable")[: self.k]
        hits, usual_hits = (rows == private[:, None] for rows in (guesses, usual))
        note = f"{context.name}, from the released words around each position"
        everywhere = np.arange(len(private))
        for metric, k in (("top-1", 1), (f"top-{self.k}", self.k)):
            yield Outcome(
                source=self.name,
                metric=metric,
                where=everywhere,
                values=hits[:, :k].any(axis=1).astype(np.float64),
                baseline=float(usual_hits[:, :k].any(axis=1).mean()),
                note=f"{note}; baseline: always the {'word' if k == 1 else f'{k} words'} most frequent in public text",
                headline=k == 1,
            )
        texts = find_protected_texts(view)
        yield Outcome(
            source=self.name,
            metric="Rouge-L",
            unit="text",
            where=texts,
            values=_compute_overlap(case, guesses[:, 0])[texts],
            baseline=float(_compute_overlap(case, np.full(len(private), usual[0]))[texts].mean()),
            note=f"{note}; words that pass count as found; baseline: always the word most frequent in public text",
            headline=False,
        )

    def guess(
        self, view: View, context: LanguageModel, report: ProgressCallback = ignore_progress
    ) -> Ids:
        """Finds the k most likely rows at each position: int64 [n, min(k, V)].

        Rows are sorted by decreasing likelihood.
        """
        n, rows = len(view.output_rows), len(view.origin)
        guesses = np.empty((n, min(self.k, rows)), np.int64)
        limited = replace(
            context, batch=max(1, min(self.batch, MAX_LOGITS // len(view.vocabulary)))
        )
        done = 0
        for which, logits in limited.yield_batches(get_released_words(view), view.item):
            report("hidden words", done, n)
            guesses[which] = find_highest(convert_logits(view, logits), guesses.shape[1])
            done += len(which)
        return guesses


def _compute_overlap(case: Case, rows: Ids) -> Values:
    """Computes Rouge-L [B] between originals and texts with these rows [n] inserted."""
    words, originals = fill(case.view, rows), case.truth.words
    spans = pairwise(case.view.documents.tolist())
    return np.array([rouge_l(words[start:stop], originals[start:stop]) for start, stop in spans])
