"""Risk: how probably an attacker who knows the program names each private word of a release.

In: a case. Out: one `Risk` per text; coloured text for a terminal, a page, JSON. All of it is for the owner alone: it
tells which guesses are right.
Not here: the attacker (`attack.posterior`), and the statement about a release (`guarantee`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from textveil.evaluate.attack import DRAWS, Case, PriorName, Report, quiet
from textveil.evaluate.attack.posterior import posterior
from textveil.protect import PUBLIC
from textveil.randomness import Flags, Randomness, SystemRandomness, Values
from textveil.text import Kind, Released

GUESSES = 100
"""Candidates whose probability is looked at, where the attacker gives so many; of others a bound is shown."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Risk:
    """What an attacker makes of one release. Secret, as it tells which guesses are right.

    Attributes:
        released: the release.
        probability: float64, one per item: the probability that the attacker gives to the private word; NaN for a
            public one, and for one that is not among the attacker's candidates the most that it can be.
        named: bool, one per item: whether the private word is the attacker's best guess.
        evidence: `exact` where the mechanism's law is written down, else `estimated` from draws.
        prior: what the attacker knows of the words before the release.
    """

    released: Released
    probability: Values = field(repr=False)
    named: Flags = field(repr=False)
    evidence: str
    prior: str

    @property
    def private(self) -> Flags:
        """Which items stand for private words."""
        return ~np.isnan(self.probability)

    def to_json(self) -> dict[str, object]:
        """As plain data; None for public words."""
        return {
            "recovered": int(self.named.sum()),
            "private": int(self.private.sum()),
            "evidence": self.evidence,
            "prior": self.prior,
            "probability": [None if np.isnan(p) else round(p, 6) for p in self.probability.tolist()],
            "named": [bool(named) if known else None for named, known in zip(self.named, self.private, strict=True)],
        }


def assess(
    case: Case,
    *,
    prior: PriorName = "unigram",
    draws: int = DRAWS,
    rng: Randomness | None = None,
    report: Report = quiet,
) -> list[Risk]:
    """The risk of every text of a case.

    Args:
        case: releases and their originals.
        prior: what the attacker knows before.
        draws: noisy vectors per released row, where the mechanism's law has to be estimated.
        rng: for these draws.
        report: told of progress.
    """
    view = case.view
    ranking = posterior(view, prior=prior, k=GUESSES, draws=draws, rng=rng or SystemRandomness(), report=report)
    here = ranking.candidates == case.truth.rows[:, None]
    given = np.exp(ranking.log_probability)
    most = np.minimum(given[:, -1], np.maximum(1 - given.sum(axis=1), 0))  # for a word that is no candidate
    at_position = np.minimum(np.where(here.any(axis=1), np.where(here, given, 0.0).sum(axis=1), most), 1.0)
    first = here[:, 0]
    items = len(view.items)
    probability, named = np.ones(items), np.ones(items, bool)
    np.multiply.at(probability, view.item, at_position)  # a word of several pieces is named if all of them are
    np.logical_and.at(named, view.item, first)
    kinds = [item.kind for released in view.released for item in released.items]
    public = np.array([item.group == PUBLIC for released in view.released for item in released.items], bool)
    hole = np.array([kind is Kind.PLACEHOLDER for kind in kinds], bool)
    drawn = np.zeros(items, bool)
    drawn[view.item] = True
    probability[hole & ~drawn], named[hole & ~drawn] = 0.0, False
    probability[public], named[public] = np.nan, False
    return [
        Risk(
            released=released,
            probability=probability[start:end],
            named=named[start:end],
            evidence=ranking.evidence,
            prior=prior,
        )
        for released, start, end in zip(view.released, view.documents[:-1], view.documents[1:], strict=True)
    ]


def sentence(risks: Sequence[Risk]) -> str:
    """What it comes to, in one sentence."""
    private = sum(int(risk.private.sum()) for risk in risks)
    named = sum(int(risk.named.sum()) for risk in risks)
    if not private:
        return "There is no private word to recover."
    words = "private word" if private == 1 else "private words"
    about = "none" if not named else f"about {named:,}"
    return f"An attacker who knows this program recovers {about} of your {private:,} {words}."


# ---- on a terminal ---------------------------------------------------------------------------------


# ---- as a page -------------------------------------------------------------------------------------
