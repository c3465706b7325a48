"""Meaning: how near the best guesses come, word by word and as texts.

In: the best guess at every protected position. Out: cosines with the private words, and of texts with the originals.
Not here: how the guesses are made (`posterior`), and whether they are right (`bayes`).
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from textveil.attack.case import Case, View
from textveil.attack.contract import Outcome, Report, Unit, Values, quiet
from textveil.attack.neighbour import NOTHING_DRAWN
from textveil.attack.reconstruction import NEAR, cosines, fill, spell
from textveil.mechanism import PLACEHOLDER
from textveil.options import options
from textveil.rng import Randomness
from textveil.table import Ids

ROWS = "cosine of the guessed and the private row of the table"
SENTENCES = "cosine of the sentence vectors of the rebuilt and the original text"
BASELINE = "baseline: the released words taken as the guess"


@options()
class Semantic:
    """Takes the best guess of someone who knows the mechanism (`bayes`), and measures how near in meaning it comes.

    A guess may be wrong and still give the meaning away. The released words are measured beside it as if they were the
    guess, so that it shows what the attack adds; positions with a placeholder are left out.

    Args:
        threshold: the cosine of two rows from which on the guess counts as near.
        prior: what the attacker takes words to be before the release is seen.
        draws: how often the mechanism is simulated per word where its law has no closed form.
    """

    name: ClassVar[str] = "semantic"
    threshold: Annotated[float, Field(gt=0, le=1)] = NEAR
    prior: Literal["uniform", "unigram"] = "unigram"
    draws: Annotated[int, Field(ge=1, strict=True)] = 200

    def refusal(self, view: View) -> str:
        """Where all protected words are placeholders."""
        return "" if (view.drawn != PLACEHOLDER).any() else NOTHING_DRAWN

    def run(self, case: Case, *, rng: Randomness, report: Report = quiet) -> Iterator[Outcome]:
        """The share of near guesses, their mean cosine, and the cosine of the rebuilt texts with the originals."""
        from textveil.attack.posterior import posterior

        view = case.view
        ranking = posterior(view, prior=self.prior, k=1, draws=self.draws, rng=rng, report=report)
        drawn = np.flatnonzero(view.drawn != PLACEHOLDER)
        texts = np.unique(view.text[drawn])
        best = np.where(view.drawn != PLACEHOLDER, ranking.candidates[:, 0], PLACEHOLDER)
        means: dict[str, float] = {}
        for guess, rows, likeness in zip(
            ("released", "best"), (view.drawn, best), _likeness(case, texts, view.drawn, best), strict=True
        ):
            near = cosines(view.table, rows[drawn], case.truth.rows[drawn])
            found: list[tuple[str, Unit, Ids, Values, str]] = [
                (f"cosine >= {self.threshold:g}", "word", drawn, (near >= self.threshold).astype(np.float64), ROWS),
                ("mean cosine", "word", drawn, near, ROWS),
                ("cosine of texts", "text", texts, likeness, SENTENCES),
            ]
            for metric, unit, where, values, measure in found:
                yield Outcome(
                    attack=self.name,
                    metric=metric,
                    setting={"guess": guess} if guess == "released" else {"guess": guess, "prior": self.prior},
                    unit=unit,
                    where=where,
                    values=values,
                    baseline=means.get(metric),
                    note=measure if guess == "released" else f"{ranking.evidence}; {measure}; {BASELINE}",
                    headline=guess == "best" and values is found[0][3],
                )
                means[metric] = float(values.mean())


def _likeness(case: Case, texts: Ids, *guesses: Ids) -> list[Values]:
    """The cosine of each of these texts with its original, float64 [m], for each of several guesses [n]."""
    from textveil.encoder import load_sentences

    encoder = load_sentences()
    spelled = [case.truth.texts, *(spell(case.view, fill(case.view, rows)) for rows in guesses)]
    original, *rebuilt = (encoder.encode([every[b] for b in texts.tolist()]).astype(np.float64) for every in spelled)
    return [(vectors * original).sum(axis=1) for vectors in rebuilt]
