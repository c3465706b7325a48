"""Meaning: how near the best guesses come, word by word and as texts.

In: the best guess at every protected position. Out: cosines with the private words, and of texts with the originals.
Not here: how the guesses are made (`posterior`), and whether they are right (`bayes`).
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from textveil.config import options
from textveil.evaluate.attack.case import Case, View
from textveil.evaluate.attack.channel import check
from textveil.evaluate.attack.contract import Outcome, Report, Unit, quiet
from textveil.evaluate.attack.posterior import DRAWS, posterior, refusal
from textveil.evaluate.attack.prior import PriorName
from textveil.mechanism import PLACEHOLDER
from textveil.models import load_sentences
from textveil.randomness import Ids, Randomness, Values
from textveil_bench.attack.neighbour import NOTHING_DRAWN
from textveil_bench.attack.reconstruction import NEAR, cosines, fill, spell

ROWS = "cosine of the guessed and the private row of the table"
SENTENCES = "cosine of the sentence vectors of the rebuilt and the original text"


@options()
class Semantic:
    """Takes the best guess of someone who knows the mechanism (`bayes`), and measures how near in meaning it comes.

    A guess may be wrong and still give the meaning away. The released words are measured beside it as if they were the
    guess, so that it shows what the attack adds; positions with a placeholder are left out. The guess is the likeliest
    row, and not the one that is nearest on average, so that meaning may leak more than is found.

    Args:
        threshold: the cosine of two rows from which on the guess counts as near.
        prior: what the attacker takes words to be before the release is seen: uniform, unigram or context.
        draws: noisy vectors per distinct released row, where the law has to be estimated.
    """

    name: ClassVar[str] = "semantic"
    on_request: ClassVar[Literal[True]] = True
    wordwise: ClassVar[Literal[True]] = True
    threshold: Annotated[float, Field(gt=0, le=1)] = NEAR
    prior: PriorName = "unigram"
    draws: Annotated[int, Field(ge=2, le=1_000_000, strict=True)] = DRAWS

    def refusal(self, view: View) -> str:
        """Where all protected words are placeholders, or the mechanism's law is unknown."""
        return refusal(view, self.prior) if (view.drawn != PLACEHOLDER).any() else NOTHING_DRAWN

    def run(self, case: Case, *, rng: Randomness, report: Report = quiet) -> Iterator[Outcome]:
        """The share of near guesses, their mean cosine, and the cosine of the rebuilt texts with the originals."""
        check(case)
        view, drawn = case.view, np.flatnonzero(case.view.drawn != PLACEHOLDER)
        ranking = posterior(view, prior=self.prior, k=1, draws=self.draws, rng=rng, report=report)
        best, blind = np.full((2, len(view.drawn)), PLACEHOLDER)
        best[drawn], blind[drawn] = ranking.candidates[drawn, 0], ranking.blind[drawn]
        texts = np.unique(view.text[drawn])
        encoder = load_sentences()
        meant = encoder.encode([case.truth.texts[b] for b in texts.tolist()])

        def measure(rows: Ids) -> Iterator[tuple[str, Unit, Ids, Values, str]]:
            near = cosines(view.origin, rows[drawn], case.truth.rows[drawn])
            yield (
                f"cosine >= {self.threshold:g}",
                "word",
                drawn,
                (near >= self.threshold).astype(np.float64),
                ROWS,
            )
            yield "mean cosine", "word", drawn, near, ROWS
            rebuilt = spell(view, fill(view, rows))
            vectors = encoder.encode([rebuilt[b] for b in texts.tolist()])
            yield (
                "cosine of texts",
                "text",
                texts,
                (vectors * meant).sum(axis=1, dtype=np.float64),
                SENTENCES,
            )

        without = {metric: float(values.mean()) for metric, _, _, values, _ in measure(blind)}
        for guess, rows in (("best", best), ("released", view.shown_words)):
            attacked = guess == "best"
            likeliest = view.of_drawn(f"the likeliest row, {ranking.evidence} law")
            note = likeliest if attacked else "the released word taken as the guess"
            for metric, unit, where, values, kind in measure(rows):
                yield Outcome(
                    source=self.name,
                    metric=metric,
                    setting={"guess": guess, "prior": self.prior} if attacked else {"guess": guess},
                    unit=unit,
                    where=where,
                    values=values,
                    baseline=without[metric] if attacked else None,
                    note=f"{note}; {kind}",
                    headline=attacked and metric.startswith("cosine >="),
                )
