"""The posterior: probabilities of private rows given a released word (Bayes).

In: a view, a prior. Out: `Ranking`, the likeliest private rows of every protected position.
Not here: the parts (`prior`, `channel`, `joint_posterior`), and how guesses are judged (`bayes`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from textveil.errors import ConfigError
from textveil.evaluate.attack import channel, prior
from textveil.evaluate.attack.attack_contract import ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import View
from textveil.evaluate.attack.channel import Evidence
from textveil.evaluate.attack.joint_posterior import decode
from textveil.evaluate.attack.prior import PriorName, StaticName
from textveil.evaluate.log_math import compute_log_sum, find_highest
from textveil.mechanism import Windowed
from textveil.randomness import Ids, Randomness, Values

DEFAULT_DRAWS = 64
"""Noisy vectors, or words, per released row, where the channel has to be estimated."""

MAX_JOINT_CANDIDATES = 9
"""The most candidates per position where mixed words are guessed together."""

POSITIONS_AT_ONCE = 64
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

    def take_first(self, k: int) -> "Ranking":
        """Returns the ranking cut to the first k candidates."""
        return Ranking(
            candidates=self.candidates[:, :k],
            log_probability=self.log_probability[:, :k],
            blind=self.blind,
            evidence=self.evidence,
        )


def is_mixing(view: View) -> bool:
    """Says whether the mechanism mixes neighbouring words.

    They then have to be guessed together.
    """
    return isinstance(view.mechanism, Windowed) and view.mechanism.mix.L > 1


def explain_refusal(view: View, name: PriorName) -> str:
    """Returns why a view has no such posterior, or "".

    In words that go on "not run: ".
    """
    if is_mixing(view) and view.other_releases:
        return "words that were mixed are guessed together, from one release"
    if is_mixing(view) and view.table.root.book is not None:
        return "words that were mixed as codes are not guessed together"
    if is_mixing(view):
        if name != "context":
            return ""
        return "words that were mixed are guessed together, from one prior for all"
    return channel.explain_refusal(view) or prior.explain_refusal(view, name)


def rank_candidates(
    view: View,
    *,
    prior: PriorName,
    k: int = 5,
    draws: int = DEFAULT_DRAWS,
    model: str | None = None,
    rng: Randomness,
    report: ProgressCallback = ignore_progress,
) -> Ranking:
    """Returns the k likeliest private rows of every protected position.

    Under a prior and the mechanism's law.

    Of several releases all are weighed, see `rank_after_releases`. Computed once per view, prior,
    model and number of draws. A mechanism that mixes words is decoded jointly.

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
        ConfigError: such a view has no posterior; `explain_refusal` says why.
    """
    release_counts = [len(view.other_releases) + 1]
    return rank_after_releases(
        view, release_counts, prior=prior, k=k, draws=draws, model=model, rng=rng, report=report
    )[0]


def _yield_memoized(view: View, keys: Sequence[object], k: int) -> Iterator[Ranking]:
    """Yields memoized rankings that have at least k candidates."""
    for ranking in map(view.memo.get, keys):
        if isinstance(ranking, Ranking) and ranking.candidates.shape[1] >= k:
            yield ranking


def rank_after_releases(
    view: View,
    release_counts: Sequence[int],
    *,
    prior: PriorName,
    k: int = 5,
    draws: int = DEFAULT_DRAWS,
    model: str | None = None,
    rng: Randomness,
    report: ProgressCallback = ignore_progress,
) -> tuple[Ranking, ...]:
    """Returns the posterior after each requested number of releases.

    What is drawn anew is independent given the private row, so that each release adds its
    log-likelihood. The prior `context` is that of the words around in the first release.

    Args:
        view: what the attacker sees.
        release_counts: numbers of releases, rising, from 1 to as many as there are.
        prior: see `rank_candidates`; so are all others.
        k: candidates.
        draws: noisy vectors.
        model: of the prior `context`.
        rng: for the draws.
        report: callback for progress.

    Raises:
        ConfigError: such a view has no posterior; `explain_refusal` says why.
    """
    if reason := explain_refusal(view, prior):
        raise ConfigError(f"these releases have no posterior under this prior: {reason}")
    k = min(k, len(view.origin), MAX_JOINT_CANDIDATES if is_mixing(view) else k)
    # more guesses cost a joint decoding nothing
    candidate_count = min(MAX_JOINT_CANDIDATES, len(view.origin)) if is_mixing(view) else k
    key = ("posterior", prior, draws, model if prior == "context" else None)
    keys = [(*key, number) for number in release_counts]
    rankings = tuple(_yield_memoized(view, keys, k))
    if len(rankings) < len(keys):
        if is_mixing(view):
            rankings = (_rank_jointly(view, prior, candidate_count, rng, report),)
        else:
            rankings = _rank_singly(
                view, prior, candidate_count, release_counts, draws, model, rng, report
            )
        view.memo.update(zip(keys, rankings, strict=True))
    return tuple(ranking.take_first(k) for ranking in rankings)


def _rank_singly(
    view: View,
    name: PriorName,
    k: int,
    release_counts: Sequence[int],
    draws: int,
    model: str | None,
    rng: Randomness,
    report: ProgressCallback,
) -> tuple[Ranking, ...]:
    n = len(view.output_rows)
    candidates, scores = (
        np.empty((len(release_counts), n, k), np.int64),
        np.empty((len(release_counts), n, k)),
    )
    blind = np.empty(n, np.int64)
    evidence: Evidence = "exact"
    done = 0
    for part in channel.yield_likelihoods(view, draws=draws, rng=rng, report=report):
        evidence = "estimated" if part.evidence == "estimated" else evidence
        for which, log_prior in yield_priors(view, name, part.positions, model):
            positions = part.positions[which]
            joint = log_prior
            for number, lines in enumerate(part.which[which].T, start=1):
                joint = view.table.spread(part.lines[lines]) + joint
                if number in release_counts:
                    at, best = release_counts.index(number), find_highest(joint, k)
                    candidates[at, positions] = best
                    scores[at, positions] = (
                        np.take_along_axis(joint, best, axis=1) - compute_log_sum(joint)[:, None]
                    )
            blind[positions] = log_prior.argmax(axis=1)
            report(f"posterior, {name} prior", done, n)
            done += len(positions)
    return tuple(
        Ranking(candidates=rows, log_probability=logs, blind=blind, evidence=evidence)
        for rows, logs in zip(candidates, scores, strict=True)
    )


def yield_priors(
    view: View, name: PriorName, positions: Ids, model: str | None = None
) -> Iterator[tuple[Ids, Values]]:
    """Yields positions and their log priors, [m, V] or [1, V].

    A part of them at a time.
    """
    group = view.group[positions]
    if name != "context":
        view_prior = prior.compute_view_prior(view, name)[None]
        for number in np.unique(group).tolist():
            members, expected = (
                np.flatnonzero(group == number),
                prior.restrict_to_group(view, view_prior, number),
            )
            for start in range(0, len(members), POSITIONS_AT_ONCE):
                yield members[start : start + POSITIONS_AT_ONCE], expected
        return
    for which, log_prior in prior.yield_context_prior(view, view.item[positions], model):
        for number in np.unique(group[which]).tolist():
            members = np.flatnonzero(group[which] == number)
            for start in range(0, len(members), POSITIONS_AT_ONCE):
                chunk = members[start : start + POSITIONS_AT_ONCE]
                yield (
                    which[chunk],
                    prior.restrict_to_group(view, log_prior[chunk].astype(np.float64), number),
                )


def _rank_jointly(
    view: View, name: PriorName, k: int, rng: Randomness, report: ProgressCallback
) -> Ranking:
    assert isinstance(view.mechanism, Windowed)
    static = prior.get_static_prior(view.table, cast(StaticName, name), view.words.stopwords)
    candidates, scores = decode(
        view.mechanism,
        view.table,
        view.layout,
        view.parameter,
        view.output_rows,
        view.pass_rows,
        np.exp(static),
        k=k,
        rng=rng,
        report=report,
    )
    blind = np.full(len(view.output_rows), static.argmax())
    return Ranking(candidates=candidates, log_probability=scores, blind=blind, evidence="estimated")
