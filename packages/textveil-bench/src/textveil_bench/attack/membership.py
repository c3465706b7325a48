"""Membership: whether a given word, or a given text, is what a release was made from.

In: releases, and rows drawn from a public prior to tell the private ones from. Out: AUC, and TPR at
low FPR.
Not here: the law of released rows (`channel`), and which of some texts is the original (`linkage`).
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.evaluate.attack import channel
from textveil.evaluate.attack.attack_contract import Outcome, ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import Case, View
from textveil.evaluate.attack.channel import Likelihoods
from textveil.evaluate.attack.posterior import DEFAULT_DRAWS, Ranking, is_mixing, rank_candidates
from textveil.evaluate.attack.prior import StaticName, compute_view_prior
from textveil.evaluate.logs import compute_log_sum
from textveil.protect import group_numbers
from textveil.randomness import Ids, Randomness, Values

MIN_NON_MEMBERS = 10_000
"""Non-members of either kind, at least: ten of them lie above the threshold of the lowest rate."""

FPR_BY_METRIC = {"TPR at 1% FPR": 0.01, "TPR at 0.1% FPR": 0.001}

MAX_SCORES = 1 << 20
"""Scores that are computed at once: 8 MiB."""

TOP_GUESSES = 9
"""Of words that were mixed, so many rows are told apart; all others are as likely as each other, but for the prior."""

EXACT_NOTE = "exact law"
JOINT_NOTE = f"a lower bound: of every mixed word, {TOP_GUESSES} rows are told apart"

MIN_MASS = 1e-300
"""Stands for no mass at all."""

LINE_BATCH = 64
"""Lines of the channel that are summed at once: few, so that they stay in the cache."""


@make_options()
class Membership:
    """Tells the private word or text from others, given its release: a likelihood-ratio test.

    The attacker holds a word x, sees the released word y in its place, and asks how much likelier y
    is if x was there
    than if a word drawn from a public prior was: ln P(y | x) - ln sum_x' prior(x') P(y | x'). For a text this is summed
    over its protected words. Members are the private words and texts. Non-members are rows drawn
    from the prior at the
    same positions; and texts with the same mask whose protected words are all drawn, 10,000 of
    either kind at least.
    No test that sees the same tells more members at the same rate of false alarms, where the law is
    known and the prior
    is that of the non-members. Where a mechanism mixes words, P(y | x) is that of all released rows
    of the text, as the
    joint attacker's posterior gives it for each word (`posterior`): a lower bound.

    AUC is the share of non-members below a member, ties half. TPR at a rate of false alarms (FPR)
    is the share of
    members above a threshold that no more than that share of the non-members exceeds. .5 and the
    rate itself are what
    guessing reaches.

    Source: Carlini et al., "Membership inference attacks from first principles", S&P 2022, on TPR
        at low FPR.

    Args:
        prior: of the non-members, which the attacker knows: the frequency of words in public text,
            or uniform.
        draws: noisy vectors per distinct released row, where the law has to be estimated.
    """

    name: ClassVar[str] = "membership"
    wordwise: ClassVar[Literal[True]] = True
    prior: StaticName = "unigram"
    draws: Annotated[int, Field(ge=2, le=1_000_000, strict=True)] = DEFAULT_DRAWS

    def refusal(self, view: View) -> str:
        """Where nothing is protected, or the law is not known."""
        if not len(view.output_rows):
            return "no word is protected"
        return "" if is_mixing(view) else channel.explain_refusal(view)

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """AUC and TPR at 1% and 0.1% FPR, of words, and of texts with the names that were drawn from lists."""
        parts = (case, *case.list_cases)
        texts = np.unique(np.concatenate([part.view.text for part in parts]))
        n = len(case.view.output_rows)
        text_draws, word_draws = -(-MIN_NON_MEMBERS // len(texts)), -(-MIN_NON_MEMBERS // n)
        # Column 0 holds the members, so that equal words give equal sums, whatever the rounding.
        totals = np.zeros((len(texts), 1 + text_draws))
        members, non_members = np.empty(n), []
        notes = []
        for part in parts:
            channel.check_law(part)
            text = np.searchsorted(texts, part.view.text)
            for positions, scores, note in self._score_positions(
                part, compute_view_prior(part.view, self.prior), text_draws, rng, report
            ):
                starts = np.flatnonzero(np.diff(text[positions], prepend=-1))
                totals[text[positions[starts]]] += np.add.reduceat(scores, starts, axis=0)
                notes.append(note)
                if part is case:
                    members[positions] = scores[:, 0]
                    non_members.append(scores[:, 1 : 1 + word_draws].ravel())
        note = case.view.note_reranking(
            max(notes, key=len)
        )  # some words may have an exact law, others not
        yield from self._build_outcomes(
            "word", np.arange(n), members, np.concatenate(non_members), note
        )
        yield from self._build_outcomes("text", texts, totals[:, 0], totals[:, 1:].ravel(), note)

    def _score_positions(
        self, case: Case, log_prior: Values, count: int, rng: Randomness, report: ProgressCallback
    ) -> Iterator[tuple[Ids, Values, str]]:
        """Some positions [p], rising; log-ratios [p, 1 + each] of their private row and of others; where from."""
        view, secret = case.view, case.truth.rows
        if is_mixing(view):
            ranking = rank_candidates(
                view, prior=self.prior, k=TOP_GUESSES, draws=self.draws, rng=rng, report=report
            )
            for positions, rows in _draw_rows(
                np.arange(len(secret)), secret, log_prior, count, rng
            ):
                yield positions, score_guesses(ranking, positions, rows, log_prior), JOINT_NOTE
            return
        coarse = view.table.root.book is not None
        row_prior = np.log(view.table.sum_by_row(np.exp(log_prior))) if coarse else log_prior
        for part in channel.yield_likelihoods(view, draws=self.draws, rng=rng, report=report):
            note = (
                EXACT_NOTE
                if part.evidence == "exact"
                else channel.describe_estimate(view, self.draws)
            )
            log_marginal = compute_log_marginals(part, row_prior)
            line = np.empty(len(secret), np.int64)
            line[part.positions] = part.which[:, 0]
            for positions, rows in _draw_rows(
                np.sort(part.positions), secret, log_prior, count, rng
            ):
                report("membership", int(positions[0]), len(secret))
                released_lines = line[positions, None]
                coded = view.table.map_rows(
                    rows, group_numbers(view.groups)[view.group[positions, None]]
                )
                likelihood = part.lines[released_lines, coded].astype(np.float64)
                yield positions, likelihood - log_marginal[released_lines], note

    def _build_outcomes(
        self,
        unit: Literal["word", "text"],
        where: Ids,
        members: Values,
        non_members: Values,
        note: str,
    ) -> Iterator[Outcome]:
        non_members = np.sort(non_members)
        metrics = [("AUC", rank_members(members, non_members), 0.5)]
        metrics += [
            (metric, compute_true_positives(members, non_members, rate), rate)
            for metric, rate in FPR_BY_METRIC.items()
        ]
        for metric, values, baseline in metrics:
            yield Outcome(
                source=self.name,
                metric=metric,
                setting={"of": f"{unit}s", "prior": self.prior},
                unit=unit,
                where=where,
                values=values,
                baseline=baseline,
                note=note,
            )


def rank_members(members: Values, non_members: Values) -> Values:
    """The share of the others [N], sorted, that each member [m] is above, ties half; its mean is the AUC."""
    below, through = (
        np.searchsorted(non_members, members, "left"),
        np.searchsorted(non_members, members, "right"),
    )
    share: Values = (below + through) / (2 * len(non_members))
    return share


def compute_true_positives(members: Values, non_members: Values, rate: float) -> Values:
    """Whether each member [m] is above the lowest of the others [N], sorted, that no more than the rate exceeds."""
    threshold = non_members[len(non_members) - 1 - int(rate * len(non_members))]
    hits: Values = (members > threshold).astype(np.float64)
    return hits


def compute_log_marginals(part: Likelihoods, log_prior: Values) -> Values:
    """ln sum_x prior(x) P(y | x) for the released row y of every line: float64 [m]."""
    starts = range(0, len(part.lines), LINE_BATCH)
    return np.concatenate(
        [compute_log_sum(part.lines[start : start + LINE_BATCH] + log_prior) for start in starts]
    )


def score_guesses(ranking: Ranking, positions: Ids, rows: Ids, log_prior: Values) -> Values:
    """ln of posterior over prior of rows [p, w] at positions [p]; rows that are no guesses share what is left."""
    guesses, log_posterior = ranking.candidates[positions], ranking.log_probability[positions]
    guess_prior = log_prior[guesses]
    rest_mass, rest_prior = (
        np.maximum(1 - np.exp(log_mass).sum(axis=1), MIN_MASS)
        for log_mass in (log_posterior, guess_prior)
    )
    scores: Values = np.broadcast_to(np.log(rest_mass / rest_prior)[:, None], rows.shape)
    for k in range(guesses.shape[1]):
        scores = np.where(
            rows == guesses[:, k, None], (log_posterior - guess_prior)[:, k, None], scores
        )
    return scores


def _draw_rows(
    positions: Ids, secret: Ids, log_prior: Values, count: int, rng: Randomness
) -> Iterator[tuple[Ids, Ids]]:
    """Some positions [p] at a time, with their private row and rows drawn from the prior, [p, 1 + each]."""
    cumulated = np.cumsum(np.exp(log_prior))
    for chunk, draws in rng.open([len(positions)]).split_rows(max(1, MAX_SCORES // (1 + count))):
        rows = np.searchsorted(cumulated, draws.uniform(count) * cumulated[-1], side="right")
        private = secret[positions[chunk], None]
        yield (
            positions[chunk],
            np.concatenate([private, np.minimum(rows, len(log_prior) - 1)], axis=1),
        )
