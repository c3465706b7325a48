"""The Bayes attacker: the best guess of someone who knows the mechanism, and what is usually written (MAP).

In: a case. Out: how often the private row is the likeliest, and among the k likeliest, under each prior.
Not here: the posterior itself (`posterior`), and guesses of several words together (`window`).
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from textveil.config import options
from textveil.errors import ConfigError
from textveil.evaluate.attack.case import Case, View
from textveil.evaluate.attack.channel import estimated
from textveil.evaluate.attack.contract import Outcome, Report, quiet
from textveil.evaluate.attack.posterior import DRAWS, mixes, posterior, refusal
from textveil.evaluate.attack.prior import PRIORS, PriorName
from textveil.randomness import Randomness

NOTHING_PROTECTED = "no word is protected"

EXACT = "exact law"
JOINTLY = "a lower bound: words that were mixed are guessed together, approximately"


@options()
class Bayes:
    """Guesses the private word that is likeliest after Bayes: prior times the probability of the released word.

    No attacker who looks at one released word at a time, and has that prior, is right more often, where the law is
    known. Where it is estimated from draws, success is a lower bound. The prior is uniform over the table's rows; or
    the frequency of words in public text; or what a masked language model expects from the released words around.

    Args:
        priors: which of uniform, unigram and context.
        k: the number of guesses that count; where a mechanism mixes words, at most 9.
        draws: noisy vectors per distinct released row, where the law has to be estimated. Too few make the attacker too
            sure, and the bound low; coordinate-wise Laplace noise in hundreds of dimensions takes many, and long.
        model: of the prior `context`: a folder or hub id of a masked language model; None is the bundled one.
    """

    name: ClassVar[str] = "bayes"
    priors: tuple[PriorName, ...] = PRIORS
    k: Annotated[int, Field(ge=2, le=1000, strict=True)] = 5
    draws: Annotated[int, Field(ge=2, le=1_000_000, strict=True)] = DRAWS
    model: str | None = None

    def __post_init__(self) -> None:
        if not self.priors or len(set(self.priors)) < len(self.priors):
            raise ConfigError("priors must name at least one of uniform, unigram and context, and each once")

    def refusal(self, view: View) -> str:
        """Where nothing is protected, or the mechanism's law is unknown, or no prior can be had."""
        if not len(view.drawn):
            return NOTHING_PROTECTED
        reasons = [refusal(view, prior) for prior in self.priors]
        return reasons[0] if all(reasons) else ""

    def run(self, case: Case, *, rng: Randomness, report: Report = quiet) -> Iterator[Outcome]:
        """top-1, top-k and the attacker's own probability of being right, under each prior that can be had."""
        view, secret = case.view, case.truth.rows
        for prior in self.priors:
            if refusal(view, prior):
                continue
            found = posterior(view, prior=prior, k=self.k, draws=self.draws, model=self.model, rng=rng, report=report)
            right = found.candidates == secret[:, None]
            blind = 1 / len(view.table) if prior == "uniform" else float((found.blind == secret).mean())
            note = EXACT if found.evidence == "exact" else estimated(view, self.draws)
            note = view.of_drawn(JOINTLY if mixes(view) else note)
            yield self._outcome("top-1", prior, right[:, 0], note, blind)
            yield self._outcome(f"top-{right.shape[1]}", prior, right.any(axis=1), note)
            stated = np.exp(found.log_probability[:, 0])
            says = view.of_drawn("the probability that the attacker gives the first guess")
            yield self._outcome("stated top-1", prior, stated, says)
            brier = np.square(stated - right[:, 0])
            yield self._outcome("Brier score", prior, brier, view.of_drawn("of that probability; 0 is best"))

    def _outcome(
        self, metric: str, prior: PriorName, values: NDArray[np.generic], note: str, baseline: float | None = None
    ) -> Outcome:
        return Outcome(
            source=self.name,
            metric=metric,
            setting={"prior": prior},
            where=np.arange(len(values)),
            values=values.astype(np.float64),
            baseline=baseline,
            note=note,
            headline=metric == "top-1",
        )
