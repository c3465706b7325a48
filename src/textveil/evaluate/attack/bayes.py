"""The Bayes attacker: guesses the word of highest posterior probability (MAP).

The attacker knows the mechanism and a prior of words.

In: a case. Out: how often the private row is the likeliest, and among the k likeliest, under each
prior.
Not here: the posterior itself (`posterior`), and guesses of several words together (`joint_posterior`).
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from textveil.config import make_options
from textveil.errors import ConfigError
from textveil.evaluate.attack.attack_contract import Outcome, ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import Case, View
from textveil.evaluate.attack.channel import check_law, describe_estimate, is_sampled
from textveil.evaluate.attack.posterior import (
    DEFAULT_DRAWS,
    Ranking,
    explain_refusal,
    is_mixing,
    rank_after_releases,
)
from textveil.evaluate.attack.prior import PRIORS, PriorName
from textveil.randomness import Randomness

NOTHING_PROTECTED = "no word is protected"

EXACT_NOTE = "exact law"
JOINT_NOTE = "a lower bound: words that were mixed are guessed together, approximately"

FEWER_DRAWS = 4
"""Divides the draws of a second attacker, whose success says what more draws would add."""

MEMORY_ANEW = "drawn anew"
MEMORY_ONCE = "drawn once"
"""Values of the setting `memory`.

Every release is drawn anew, or the first of them is given again.
"""

Setting = Mapping[str, str | int | float]


@make_options()
class Bayes:
    """Guesses the private word that is likeliest after Bayes: prior times the probability of the released word.

    No attacker who looks at one released word at a time, and has that prior, is right more often,
    where the law is known. Where it is estimated from draws, success is a lower bound. The prior is
    uniform over the table's rows; or the frequency of words in public text; or what a masked
    language model expects from the released words around.

    Of several releases of a text (`textveil attack --releases`), each drawn anew, the attacker
    combines the evidence of all. Where memory repeats the first release, the other releases add
    nothing.

    Args:
        priors: which of uniform, unigram and context.
        k: the number of guesses that count; where a mechanism mixes words, at most 9.
        draws: noisy vectors per distinct released row, where the law has to be estimated; of a
            mechanism that only draws, words. Too few make the attacker too sure, and the bound low;
            coordinate-wise Laplace noise in hundreds of dimensions takes many, and long.
        model: of the prior `context`: a folder or hub id of a masked language model; None is the
            bundled one.
    """

    name: ClassVar[str] = "bayes"
    wordwise: ClassVar[Literal[True]] = True
    averages: ClassVar[Literal[True]] = True
    priors: tuple[PriorName, ...] = PRIORS
    k: Annotated[int, Field(ge=2, le=1000, strict=True)] = 5
    draws: Annotated[int, Field(ge=2, le=1_000_000, strict=True)] = DEFAULT_DRAWS
    model: str | None = None

    def __post_init__(self) -> None:
        if not self.priors or len(set(self.priors)) < len(self.priors):
            raise ConfigError(
                "priors must name at least one of uniform, unigram and context, and each once"
            )

    def refusal(self, view: View) -> str:
        """Returns why no guess can be made, or "".

        That is where nothing is protected, the law depends on private words around, or no prior
        can be had.
        """
        if not len(view.output_rows):
            return NOTHING_PROTECTED
        reasons = [explain_refusal(view, prior) for prior in self.priors]
        return reasons[0] if all(reasons) else ""

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Yields top-1, top-k and stated success under each available prior.

        Of several releases after some of them, and after all where memory gave the first of them
        every time.
        """
        check_law(case)
        view, releases = case.view, len(case.view.other_releases) + 1
        release_counts = list_release_counts(releases)
        for prior in self.priors:
            if explain_refusal(view, prior):
                continue
            rank = partial(
                rank_after_releases,
                view,
                prior=prior,
                k=self.k,
                model=self.model,
                rng=rng,
                report=report,
            )
            rankings = rank(release_counts, draws=self.draws)
            if is_sampled(view):
                draws = max(2, self.draws // FEWER_DRAWS)
                (fewer,) = rank([1], draws=draws)
                yield self._build_outcome(
                    f"top-1 of {draws} draws",
                    {"prior": prior},
                    fewer.candidates[:, 0] == case.truth.rows,
                    view.note_reranking("if it is lower than top-1, more draws would name more"),
                )
            if releases == 1:
                yield from self._yield_outcomes(case, prior, rankings[0], {"prior": prior})
                continue
            for number, ranking in zip(release_counts, rankings, strict=True):
                yield from self._yield_outcomes(
                    case,
                    prior,
                    ranking,
                    {"prior": prior, "releases": number, "memory": MEMORY_ANEW},
                )
            yield from self._yield_outcomes(
                case,
                prior,
                rankings[0],
                {"prior": prior, "releases": releases, "memory": MEMORY_ONCE},
            )

    def _yield_outcomes(
        self, case: Case, prior: PriorName, ranking: Ranking, setting: Setting
    ) -> Iterator[Outcome]:
        view, secret = case.view, case.truth.rows
        right = ranking.candidates == secret[:, None]
        blind = (
            1 / len(view.origin) if prior == "uniform" else float((ranking.blind == secret).mean())
        )
        note = EXACT_NOTE if ranking.evidence == "exact" else describe_estimate(view, self.draws)
        note = view.note_reranking(JOINT_NOTE if is_mixing(view) else note)
        yield self._build_outcome("top-1", setting, right[:, 0], note, blind)
        yield self._build_outcome(f"top-{right.shape[1]}", setting, right.any(axis=1), note)
        stated = np.exp(ranking.log_probability[:, 0])
        stated_note = view.note_reranking("the probability that the attacker gives the first guess")
        yield self._build_outcome("stated top-1", setting, stated, stated_note)
        brier = np.square(stated - right[:, 0])
        yield self._build_outcome(
            "Brier score", setting, brier, view.note_reranking("of that probability; 0 is best")
        )

    def _build_outcome(
        self,
        metric: str,
        setting: Setting,
        values: NDArray[np.generic],
        note: str,
        baseline: float | None = None,
    ) -> Outcome:
        return Outcome(
            source=self.name,
            metric=metric,
            setting=setting,
            where=np.arange(len(values)),
            values=values.astype(np.float64),
            baseline=baseline,
            note=note,
            headline=metric == "top-1",
        )


def list_release_counts(releases: int) -> list[int]:
    """Returns the numbers of releases after which the attack is judged.

    1, 2, 3, 5, 8, 13, ... (Fibonacci), and all of them.
    """
    counts, next_count = [1], 2
    while next_count < releases:
        counts.append(next_count)
        next_count += counts[-2]
    return sorted({*counts, releases})
