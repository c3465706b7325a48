"""The posterior: probabilities of private rows given a released word (Bayes).

In: a view, a prior. Out: `Ranking`, the likeliest private rows of every protected position.
Not here: the parts (`prior`, `channel`, `joint`), and how guesses are judged (`bayes`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from textveil.errors import ConfigError
from textveil.evaluate.attack import channel, prior
from textveil.evaluate.attack.case import View
from textveil.evaluate.attack.channel import Evidence
from textveil.evaluate.attack.contract import Report, quiet
from textveil.evaluate.attack.joint import decode
from textveil.evaluate.attack.prior import PriorName, StaticName
from textveil.evaluate.logs import highest, log_sum
from textveil.mechanism import Windowed
from textveil.randomness import Ids, Randomness, Values

DRAWS = 64
"""Noisy vectors per released row, where the channel has to be estimated."""

MOST = 9
"""The most candidates per position where mixed words are guessed together."""

RANKED = 64
"""Positions whose rows are ranked at once.

Few, so that they stay in the cache.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranking:
    """The likeliest private rows of the n protected positions.

    Attributes:
        candidates: int64 [n, k], best first.
        log_probability: float64 [n, k], ln of the posterior probability, normalised over all rows.
        blind: int64 [n], the best guess of the prior alone.
        evidence: whether the channel was exact, or estimated from draws or, of mixed words, by an
            approximation; then success is a lower bound of the best attacker's.
    """

    candidates: Ids = field(repr=False)
    log_probability: Values = field(repr=False)
    blind: Ids = field(repr=False)
    evidence: Evidence

    def first(self, k: int) -> "Ranking":
        """Returns the ranking cut to the first k candidates."""
        return Ranking(
            candidates=self.candidates[:, :k],
            log_probability=self.log_probability[:, :k],
            blind=self.blind,
            evidence=self.evidence,
        )


def mixes(view: View) -> bool:
    """Says whether the mechanism mixes neighbouring words.

    They then have to be guessed together.
    """
    return isinstance(view.mechanism, Windowed) and view.mechanism.mix.L > 1


def refusal(view: View, name: PriorName) -> str:
    """Returns why a view has no such posterior, or "".

    In words that go on "not run: ".
    """
    if mixes(view) and view.others:
        return "words that were mixed are guessed together, from one release"
    if mixes(view) and view.table.root.book is not None:
        return "words that were mixed as codes are not guessed together"
    if mixes(view):
        if name != "context":
            return ""
        return "words that were mixed are guessed together, from one prior for all"
    return channel.refusal(view) or prior.refusal(view, name)


def posterior(
    view: View,
    *,
    prior: PriorName,
    k: int = 5,
    draws: int = DRAWS,
    model: str | None = None,
    rng: Randomness,
    report: Report = quiet,
) -> Ranking:
    """Returns the k likeliest private rows of every protected position.

    Under a prior and the mechanism's law.

    Of several releases all are weighed, see `after`. Computed once per view, prior, model and
    number of draws. A mechanism that mixes words is decoded jointly.

    Args:
        view: what the attacker sees.
        prior: what is expected before.
        k: candidates per position; no more than the table has rows are given, and of mixed words no
            more than 9.
        draws: noisy vectors per released row, where the channel has to be estimated.
        model: of the prior `context`; None is the bundled one.
        rng: for the draws.
        report: callback for progress.

    Raises:
        ConfigError: such a view has no posterior; `refusal` says why.
    """
    seen = [len(view.others) + 1]
    return after(view, seen, prior=prior, k=k, draws=draws, model=model, rng=rng, report=report)[0]


def _find_memoized(view: View, keys: Sequence[object], k: int) -> Iterator[Ranking]:
    """Yields memoized rankings that have at least k candidates."""
    for each in map(view.memo.get, keys):
        if isinstance(each, Ranking) and each.candidates.shape[1] >= k:
            yield each


def after(
    view: View,
    seen: Sequence[int],
    *,
    prior: PriorName,
    k: int = 5,
    draws: int = DRAWS,
    model: str | None = None,
    rng: Randomness,
    report: Report = quiet,
) -> tuple[Ranking, ...]:
    """Returns the posterior after each requested number of releases.

    What is drawn anew is independent given the private row, so that each release adds its
    log-likelihood. The prior `context` is that of the words around in the first release.

    Args:
        view: what the attacker sees.
        seen: numbers of releases, rising, from 1 to as many as there are.
        prior: see `posterior`; so are all others.
        k: candidates.
        draws: noisy vectors.
        model: of the prior `context`.
        rng: for the draws.
        report: callback for progress.

    Raises:
        ConfigError: such a view has no posterior; `refusal` says why.
    """
    if reason := refusal(view, prior):
        raise ConfigError(f"these releases have no posterior under this prior: {reason}")
    k = min(k, len(view.origin), MOST if mixes(view) else k)
    # more guesses cost a joint decoding nothing
    looked = min(MOST, len(view.origin)) if mixes(view) else k
    key = ("posterior", prior, draws, model if prior == "context" else None)
    keys = [(*key, number) for number in seen]
    found = tuple(_find_memoized(view, keys, k))
    if len(found) < len(keys):
        if mixes(view):
            found = (_rank_jointly(view, prior, looked, rng, report),)
        else:
            found = _rank_singly(view, prior, looked, seen, draws, model, rng, report)
        view.memo.update(zip(keys, found, strict=True))
    return tuple(each.first(k) for each in found)


def _rank_singly(
    view: View,
    name: PriorName,
    k: int,
    seen: Sequence[int],
    draws: int,
    model: str | None,
    rng: Randomness,
    report: Report,
) -> tuple[Ranking, ...]:
    n = len(view.drawn)
    candidates, scores = np.empty((len(seen), n, k), np.int64), np.empty((len(seen), n, k))
    blind = np.empty(n, np.int64)
    evidence: Evidence = "exact"
    done = 0
    for part in channel.likelihoods(view, draws=draws, rng=rng, report=report):
        evidence = "estimated" if part.evidence == "estimated" else evidence
        for which, log_prior in priors(view, name, part.positions, model):
            own = part.positions[which]
            joint = log_prior
            for number, lines in enumerate(part.which[which].T, start=1):
                joint = view.table.spread(part.lines[lines]) + joint
                if number in seen:
                    at, best = seen.index(number), highest(joint, k)
                    candidates[at, own] = best
                    scores[at, own] = (
                        np.take_along_axis(joint, best, axis=1) - log_sum(joint)[:, None]
                    )
            blind[own] = log_prior.argmax(axis=1)
            report(f"posterior, {name} prior", done, n)
            done += len(own)
    return tuple(
        Ranking(candidates=rows, log_probability=logs, blind=blind, evidence=evidence)
        for rows, logs in zip(candidates, scores, strict=True)
    )


def priors(
    view: View, name: PriorName, positions: Ids, model: str | None = None
) -> Iterator[tuple[Ids, Values]]:
    """Yields positions and their log priors, [m, V] or [1, V].

    A part of them at a time.
    """
    group = view.group[positions]
    if name != "context":
        same = prior.usual(view, name)[None]
        for number in np.unique(group).tolist():
            own, expected = np.flatnonzero(group == number), prior.within(view, same, number)
            for start in range(0, len(own), RANKED):
                yield own[start : start + RANKED], expected
        return
    for which, found in prior.context(view, view.item[positions], model):
        for number in np.unique(group[which]).tolist():
            own = np.flatnonzero(group[which] == number)
            for start in range(0, len(own), RANKED):
                some = own[start : start + RANKED]
                yield which[some], prior.within(view, found[some].astype(np.float64), number)


def _rank_jointly(view: View, name: PriorName, k: int, rng: Randomness, report: Report) -> Ranking:
    assert isinstance(view.mechanism, Windowed)
    static = prior.static(view.table, cast(StaticName, name), view.words.stopwords)
    candidates, scores = decode(
        view.mechanism,
        view.table,
        view.layout,
        view.parameter,
        view.drawn,
        view.passed,
        np.exp(static),
        k=k,
        rng=rng,
        report=report,
    )
    blind = np.full(len(view.drawn), static.argmax())
    return Ranking(candidates=candidates, log_probability=scores, blind=blind, evidence="estimated")
