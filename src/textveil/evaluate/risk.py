"""Risk: how likely an attacker who knows the program finds each private word of a release.

In: a case. Out: one `Risk` per text, and a sentence about all of them. Both are for the owner alone: they tell which
guesses are right.
Not here: the attacker (`attack.posterior`), how risk is shown (`show.risk`), and the statement about a release
(`guarantee`).

The attacker sees one release, and knows the program with all its options, the public lists and the prior, but no seed.
Drawn words and names are guessed by Bayes' rule: the prior times the law of the draw, under the budget of the word's
group. A name is guessed among the names of its list. Its owner is told that it is named where the guess is the name
that stands for it on the list, so for a name that is on no list the risk is overstated. Equal words that are released
alike are one draw, and each is guessed from that draw alone, also where a session drew it earlier. A placeholder tells
nothing of its value. What earlier releases tell of the same words is not counted here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from textveil.config import Config, registry
from textveil.errors import ConfigError
from textveil.evaluate.attack import CHOOSING, DRAWS, Case, Learned, PriorName, Report, channel, checked, quiet, static
from textveil.evaluate.attack import case as cases
from textveil.evaluate.attack import prior as priors
from textveil.evaluate.attack.posterior import posterior
from textveil.evaluate.logs import log_sum
from textveil.mechanism import Contextual, Layout, Windowed
from textveil.protect import PUBLIC
from textveil.randomness import Flags, Ids, Randomness, SystemRandomness, Values
from textveil.text import Kind, Released

GUESSES = 100
"""Candidates per word whose probability is known, if the attacker has so many; for others a bound is shown."""

SIMULATED = 5000
"""Words that an attacker with public texts tries the mechanism on: enough for a few texts."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Risk:
    """What an attacker learns from one release. Secret, because it tells which guesses are right.

    Attributes:
        released: the release.
        probability: float64, one per item: how likely the attacker finds the private word; NaN for a public one. Where
            the word is not among the attacker's candidates, the most that it can be.
        named: bool, one per item: whether the attacker's best guess is the private word.
        evidence: `exact` where the mechanism's law is written down, `estimated` where it was sampled.
        prior: the attacker's prior; "learned" of one who learned from public texts.
    """

    released: Released
    probability: Values = field(repr=False)
    named: Flags = field(repr=False)
    evidence: str
    prior: str

    @property
    def private(self) -> Flags:
        """Whether each item stands for a private word."""
        return ~np.isnan(self.probability)

    @property
    def caution(self) -> str:
        """What to know before drawing again; empty where nothing was drawn."""
        return CHOOSING if any(item.kind in (Kind.WORD, Kind.NUMBER) for item in self.released.items) else ""

    def to_json(self) -> dict[str, object]:
        """As plain data, with None for public words."""
        return {
            "caution": self.caution or None,
            "recovered": int(self.named.sum()),
            "private": int(self.private.sum()),
            "evidence": self.evidence,
            "prior": self.prior,
            "probability": [None if np.isnan(p) else round(p, 6) for p in self.probability.tolist()],
            "named": [bool(named) if known else None for named, known in zip(self.named, self.private, strict=True)],
        }


def check(config: Config, prior: str = "unigram") -> PriorName:
    """Refuses what has no risk view, from the options alone: no table and no model is loaded.

    Args:
        config: what the texts are to be privatized with.
        prior: what the attacker expects before looking.

    Returns:
        The prior, as `assess` takes it.

    Raises:
        UnknownName: there is no such prior.
        ConfigError: says which options to change.
    """
    name = checked(prior)
    cases.check(config.words, randomised=config.protect.labels == "randomised")
    mechanism = registry.load("mechanism", config.mechanism.name)(**config.mechanism.options)
    mixes = isinstance(mechanism, Windowed) and mechanism.mix.L > 1
    if name == "context" and (mixes or config.words.unit == "wordpiece"):
        raise ConfigError("the prior `context` needs whole words released one by one: use unigram or uniform")
    if isinstance(mechanism, Contextual) and mechanism.context.mode == "original":
        raise ConfigError(
            "risk needs a mechanism whose language model sees only released words: set "
            "mechanism.context=released or public"
        )
    return name


def assess(
    case: Case,
    *,
    prior: PriorName = "unigram",
    public: Sequence[str] = (),
    draws: int = DRAWS,
    rng: Randomness | None = None,
    report: Report = quiet,
) -> list[Risk]:
    """The risk of every text of a case.

    Args:
        case: releases and their originals, from `Case.after(privatizer, rehearsal, names=True)`.
        prior: what the attacker expects before looking: all words alike (`uniform`), how often words stand in public
            text (`unigram`), or what a language model makes of the released words around (`context`).
        public: public texts of the same kind; drawn words are then guessed by an attacker who learned from them (the
            attack `learned`), and the prior is that of names alone.
        draws: noisy vectors per released row, where the mechanism's law has to be estimated.
        rng: for these draws.
        report: told of progress.

    Raises:
        ConfigError: such releases have no posterior under this prior, nothing can be learned from the public texts, or
            a private text is among them.
    """
    view = case.view
    here, given, evidence = _guessed(case, prior, public, draws, rng or SystemRandomness(), report)
    most = np.minimum(given[:, -1], np.maximum(1 - given.sum(axis=1), 0))  # for a word that is no candidate
    at_position = np.minimum(np.where(here.any(axis=1), np.where(here, given, 0.0).sum(axis=1), most), 1.0)
    first = here[:, 0]
    items = len(view.items)
    probability, named = np.ones(items), np.ones(items, bool)  # what is neither drawn nor hidden is there to read
    np.multiply.at(probability, view.item, at_position)  # a word of several pieces is named if all of them are
    np.logical_and.at(named, view.item, first)
    for where, likely, right in _names(case, prior, report):
        probability[where], named[where] = likely, right
    kinds = [item.kind for released in view.released for item in released.items]
    passing = np.array([item.group == PUBLIC for released in view.released for item in released.items], bool)
    hole = np.array([kind is Kind.PLACEHOLDER for kind in kinds], bool)
    drawn = np.zeros(items, bool)
    drawn[view.item] = True
    probability[hole & ~drawn], named[hole & ~drawn] = 0.0, False
    probability[passing], named[passing] = np.nan, False
    return [
        Risk(
            released=released,
            probability=probability[start:end],
            named=named[start:end],
            evidence=evidence,
            prior="learned" if public else prior,
        )
        for released, start, end in zip(view.released, view.documents[:-1], view.documents[1:], strict=True)
    ]


def _guessed(
    case: Case, prior: PriorName, public: Sequence[str], draws: int, rng: Randomness, report: Report
) -> tuple[Flags, Values, str]:
    """Which candidates of each drawn word are right, bool [n, k], their probabilities, and what they are known from."""
    view = case.view
    if public and len(view.drawn):
        attacker = Learned(public=tuple(public), candidates=GUESSES, simulated=SIMULATED, draws=draws)
        if reason := attacker.refusal(view):
            raise ConfigError(f"the attacker who learns from public texts has no guess here: {reason}")
        attacker.check(case)
        (guesses,) = attacker.guess(view, [1], rng=rng, report=report)
        right = guesses.words == guesses.known.ids(view.table, case.secret_words)[:, None]
        return right, guesses.probability, guesses.evidence
    ranking = posterior(view, prior=prior, k=GUESSES, draws=draws, rng=rng, report=report)
    return ranking.candidates == case.truth.rows[:, None], np.exp(ranking.log_probability), ranking.evidence


def _names(case: Case, prior: PriorName, report: Report) -> Iterator[tuple[Ids, Values, Flags]]:
    """Items that are names drawn from one list, the probability of each private name, and whether it is guessed."""
    named = case.view.named
    if named is None:
        return
    for label in dict.fromkeys(named.labels):
        own = np.array([each == label for each in named.labels])
        listing = named.names.lists[label]
        drawn, which = np.unique(np.searchsorted(listing.rows, named.drawn[own]), return_inverse=True)
        parameter = float(named.names.parameter(label, Layout.of(1))[0])
        law = channel.exact(named.names.mechanism, listing.table, drawn, parameter, report)
        assert law is not None, "names are drawn by a law that is written down"
        joint = law[which] + _expected(case, prior, named.items[own])[:, listing.rows]
        truth = case.truth.names[own]
        likely: Values = np.exp(joint[np.arange(len(truth)), truth] - log_sum(joint))
        yield named.items[own], likely, joint.argmax(axis=1) == truth


def _expected(case: Case, prior: PriorName, items: Ids) -> Values:
    """ln of the prior of every row in the place of some items, [m, V] or [1, V]."""
    view = case.view
    if prior != "context":
        return static(view.origin, prior, view.words.stopwords)[None]
    found = np.empty((len(items), len(view.origin)))
    for which, expected in priors.context(view, items):
        found[which] = expected
    return found


def sentence(risks: Sequence[Risk]) -> str:
    """How many private words an attacker recovers, in one sentence."""
    private = sum(int(risk.private.sum()) for risk in risks)
    named = sum(int(risk.named.sum()) for risk in risks)
    if not private:
        return "There is no private word to recover."
    words = "private word" if private == 1 else "private words"
    about = "none" if not named else f"about {named:,}"
    return f"An attacker who knows this program recovers {about} of your {private:,} {words}."


def caution(risks: Sequence[Risk]) -> str:
    """What to know before drawing any of the texts again; empty where nothing was drawn."""
    return max((risk.caution for risk in risks), default="")
