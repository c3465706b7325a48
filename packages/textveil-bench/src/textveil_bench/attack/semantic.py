"""Semantic similarity of the best guesses to the private words and texts.

In: the best guess at every protected position. Out: cosines with the private words, and of texts
with the originals.
Not here: the guesses (`posterior`), and their accuracy (`bayes`).
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.evaluate.attack.attack_contract import (
    Outcome,
    ProgressCallback,
    Unit,
    ignore_progress,
)
from textveil.evaluate.attack.attack_input import Case, View
from textveil.evaluate.attack.channel import check_law
from textveil.evaluate.attack.posterior import DEFAULT_DRAWS, explain_refusal, rank_candidates
from textveil.evaluate.attack.prior import PriorName
from textveil.mechanism import PLACEHOLDER
from textveil.models import load_sentences
from textveil.randomness import Ids, Randomness, Values
from textveil_bench.attack.neighbour import NOTHING_DRAWN
from textveil_bench.attack.reconstruction import NEAR_COSINE, compute_cosines, fill, spell

ROW_COSINE = "cosine of the guessed and the private row of the table"
SENTENCE_COSINE = "cosine of the sentence vectors of the rebuilt and the original text"


@make_options()
class Semantic:
    """Measures how near in meaning the Bayes attacker's best guesses are.

    A guess may be wrong and still give the meaning away. For comparison the released words are
    measured as if they were the guesses; positions with a placeholder are left out. The guess is
    the most likely row, not the one with the best expected cosine, so meaning may leak more than is
    measured.

    Args:
        threshold: minimum cosine of two rows for the guess to count as near.
        prior: the attacker's prior over words: uniform, unigram or context.
        draws: noisy vectors per distinct released row, if the distribution must be estimated.
    """

    name: ClassVar[str] = "semantic"
    on_request: ClassVar[Literal[True]] = True
    wordwise: ClassVar[Literal[True]] = True
    threshold: Annotated[float, Field(gt=0, le=1)] = NEAR_COSINE
    prior: PriorName = "unigram"
    draws: Annotated[int, Field(ge=2, le=1_000_000, strict=True)] = DEFAULT_DRAWS

    def refusal(self, view: View) -> str:
        """Explains why the attack cannot run: only placeholders, or no known distribution."""
        return (
            explain_refusal(view, self.prior)
            if (view.output_rows != PLACEHOLDER).any()
            else NOTHING_DRAWN
        )

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Yields the share of near guesses, their mean cosine, and texts' cosines."""
        check_law(case)
        view, positions = case.view, np.flatnonzero(case.view.output_rows != PLACEHOLDER)
        ranking = rank_candidates(
            view, prior=self.prior, k=1, draws=self.draws, rng=rng, report=report
        )
        best, blind = np.full((2, len(view.output_rows)), PLACEHOLDER)
        best[positions], blind[positions] = (
            ranking.candidates[positions, 0],
            ranking.blind[positions],
        )
        texts = np.unique(view.text[positions])
        encoder = load_sentences()
        original_vectors = encoder.encode([case.truth.texts[b] for b in texts.tolist()])

        def measure(rows: Ids) -> Iterator[tuple[str, Unit, Ids, Values, str]]:
            near = compute_cosines(view.origin, rows[positions], case.truth.rows[positions])
            yield (
                f"cosine >= {self.threshold:g}",
                "word",
                positions,
                (near >= self.threshold).astype(np.float64),
                ROW_COSINE,
            )
            yield "mean cosine", "word", positions, near, ROW_COSINE
            rebuilt = spell(view, fill(view, rows))
            vectors = encoder.encode([rebuilt[b] for b in texts.tolist()])
            yield (
                "cosine of texts",
                "text",
                texts,
                (vectors * original_vectors).sum(axis=1, dtype=np.float64),
                SENTENCE_COSINE,
            )

        blind_means = {metric: float(values.mean()) for metric, _, _, values, _ in measure(blind)}
        for guess, rows in (("best", best), ("released", view.visible_word_rows)):
            attacked = guess == "best"
            likeliest = view.note_reranking(f"the likeliest row, {ranking.evidence} law")
            note = likeliest if attacked else "the released word taken as the guess"
            for metric, unit, where, values, kind in measure(rows):
                yield Outcome(
                    source=self.name,
                    metric=metric,
                    setting={"guess": guess, "prior": self.prior} if attacked else {"guess": guess},
                    unit=unit,
                    where=where,
                    values=values,
                    baseline=blind_means[metric] if attacked else None,
                    note=f"{note}; {kind}",
                    headline=attacked and metric.startswith("cosine >="),
                )
