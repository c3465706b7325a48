"""Membership inference: tests if a word or text is a release's original.

In: releases, and rows drawn from a public prior as non-members. Out: AUC, and TPR at low FPR.
Not here: the distribution of released rows (`channel`), and the choice among texts (`linkage`).
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
from textveil.evaluate.log_math import compute_log_sum
from textveil.protect import group_numbers
from textveil.randomness import Ids, Randomness, Values

MIN_NON_MEMBERS = 10_000
"""Minimum number of non-member words, and of non-member texts.

Ten of them lie above the threshold of the lowest false-positive rate.
"""

FPR_BY_METRIC = {"TPR at 1% FPR": 0.01, "TPR at 0.1% FPR": 0.001}

MAX_SCORES = 1 << 20
"""Scores computed at once: 8 MiB."""

TOP_GUESSES = 9
"""Rows distinguished for each mixed word.

All other rows share the remaining mass in proportion to the prior.
"""

EXACT_NOTE = "exact law"
JOINT_NOTE = f"a lower bound: of every mixed word, {TOP_GUESSES} rows are told apart"

MIN_MASS = 1e-300
"""Smallest probability mass, so that its logarithm is finite."""

LINE_BATCH = 64
"""Channel rows summed at once; few, to stay in the CPU cache."""


@make_options()
class Membership:
    """Tells the private word or text from others by a likelihood-ratio test.

    The attacker has a word x and the released word y, and computes how much more likely y is given
    x than given a word drawn from a public prior: ln P(y | x) - ln sum_x' prior(x') P(y | x'). For
    a text this is summed over its protected words. Members are the private words and texts.
    Non-members are rows drawn from the prior at the same positions, and texts with the same mask
    whose protected words are all drawn; at least 10,000 of each. If the distribution is known and
    the prior is that of the non-members, no other test detects more members at the same
    false-positive rate. If a mechanism mixes words, P(y | x) is that of all released rows of the
    text, from the joint attacker's posterior of each word (`posterior`): a lower bound.

    AUC is the share of non-members below a member; ties count half. TPR at a false-positive rate
    (FPR) is the share of members above the threshold that at most this share of non-members
    exceeds. Random guessing reaches an AUC of .5 and a TPR equal to the FPR.

    Source: Carlini et al., "Membership inference attacks from first principles", S&P 2022, on TPR
        at low FPR.

    Args:
        prior: distribution of the non-members, known to the attacker: word frequency in public
            text, or uniform.
        draws: noisy vectors per distinct released row, if the distribution must be estimated.
    """

    name: ClassVar[str] = "membership"
    wordwise: ClassVar[Literal[True]] = True
    prior: StaticName = "unigram"
    draws: Annotated[int, Field(ge=2, le=1_000_000, strict=True)] = DEFAULT_DRAWS

    def refusal(self, view: View) -> str:
        """Explains why the attack cannot run: no protected word, or unknown distribution."""
        if not len(view.output_rows):
            return "no word is protected"
        return "" if is_mixing(view) else channel.explain_refusal(view)

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Yields AUC and TPR at 1% and 0.1% FPR.

        Words and texts are members; names drawn from lists count in the texts.
        """
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
        )  # the distribution may be exact for some words only
        yield from self._build_outcomes(
            "word", np.arange(n), members, np.concatenate(non_members), note
        )
        yield from self._build_outcomes("text", texts, totals[:, 0], totals[:, 1:].ravel(), note)

    def _score_positions(
        self, case: Case, log_prior: Values, count: int, rng: Randomness, report: ProgressCallback
    ) -> Iterator[tuple[Ids, Values, str]]:
        """Yields positions [p], their log-ratios [p, 1 + count], and the evidence.

        Positions increase; column 0 is the private row, the others are drawn rows.
        """
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
    """Computes the share of sorted non-members [N] below each member [m].

    Ties count half; the mean is the AUC.
    """
    below, through = (
        np.searchsorted(non_members, members, "left"),
        np.searchsorted(non_members, members, "right"),
    )
    share: Values = (below + through) / (2 * len(non_members))
    return share


def compute_true_positives(members: Values, non_members: Values, rate: float) -> Values:
    """Flags the members [m] above the threshold of a false-positive rate.

    The threshold is the lowest of the sorted non-members [N] that at most this share of them
    exceeds.
    """
    threshold = non_members[len(non_members) - 1 - int(rate * len(non_members))]
    hits: Values = (members > threshold).astype(np.float64)
    return hits


def compute_log_marginals(part: Likelihoods, log_prior: Values) -> Values:
    """Computes ln sum_x prior(x) P(y | x) per released y: float64 [m]."""
    starts = range(0, len(part.lines), LINE_BATCH)
    return np.concatenate(
        [compute_log_sum(part.lines[start : start + LINE_BATCH] + log_prior) for start in starts]
    )


def score_guesses(ranking: Ranking, positions: Ids, rows: Ids, log_prior: Values) -> Values:
    """Computes ln(posterior / prior) of rows [p, w] at positions [p].

    Rows outside the guesses share the remaining mass.
    """
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
    """Yields positions [p] with their private and drawn rows, [p, 1 + count]."""
    cumulated = np.cumsum(np.exp(log_prior))
    for chunk, draws in rng.open([len(positions)]).split_rows(max(1, MAX_SCORES // (1 + count))):
        rows = np.searchsorted(cumulated, draws.uniform(count) * cumulated[-1], side="right")
        private = secret[positions[chunk], None]
        yield (
            positions[chunk],
            np.concatenate([private, np.minimum(rows, len(log_prior) - 1)], axis=1),
        )
