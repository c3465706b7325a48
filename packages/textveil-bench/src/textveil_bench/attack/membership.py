"""Membership: whether a given word, or a given text, is what a release was made from.

In: releases, and rows drawn from a public prior to tell the private ones from. Out: AUC, and TPR at low FPR.
Not here: the law of released rows (`channel`), and which of some texts is the original (`linkage`).
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from textveil.config import options
from textveil.evaluate.attack import channel
from textveil.evaluate.attack.case import Case, View
from textveil.evaluate.attack.channel import Likelihoods
from textveil.evaluate.attack.contract import Outcome, Report, quiet
from textveil.evaluate.attack.posterior import DRAWS, Ranking, mixes, posterior
from textveil.evaluate.attack.prior import StaticName, usual
from textveil.evaluate.logs import log_sum
from textveil.protect import group_numbers
from textveil.randomness import Ids, Randomness, Values

NON_MEMBERS = 10_000
"""Non-members of either kind, at least: ten of them lie above the threshold of the lowest rate."""

RATES = {"TPR at 1% FPR": 0.01, "TPR at 0.1% FPR": 0.001}

CELLS = 1 << 20
"""Scores that are computed at once: 8 MiB."""

GUESSES = 9
"""Of words that were mixed, so many rows are told apart; all others are as likely as each other, but for the prior."""

EXACT = "exact law"
JOINTLY = f"a lower bound: of every mixed word, {GUESSES} rows are told apart"

TINY = 1e-300
"""Stands for no mass at all."""

LINES = 64
"""Lines of the channel that are summed at once: few, so that they stay in the cache."""


@options()
class Membership:
    """Tells the private word or text from others, given its release: a likelihood-ratio test.

    The attacker holds a word x, sees the released word y in its place, and asks how much likelier y is if x was there
    than if a word drawn from a public prior was: ln P(y | x) - ln sum_x' prior(x') P(y | x'). For a text this is summed
    over its protected words. Members are the private words and texts. Non-members are rows drawn from the prior at the
    same positions; and texts with the same mask whose protected words are all drawn, 10,000 of either kind at least.
    No test that sees the same tells more members at the same rate of false alarms, where the law is known and the prior
    is that of the non-members. Where a mechanism mixes words, P(y | x) is that of all released rows of the text, as the
    joint attacker's posterior gives it for each word (`posterior`): a lower bound.

    AUC is the share of non-members below a member, ties half. TPR at a rate of false alarms (FPR) is the share of
    members above a threshold that no more than that share of the non-members exceeds. .5 and the rate itself are what
    guessing reaches.

    Source: Carlini et al., "Membership inference attacks from first principles", S&P 2022, on TPR at low FPR.

    Args:
        prior: of the non-members, which the attacker knows: the frequency of words in public text, or uniform.
        draws: noisy vectors per distinct released row, where the law has to be estimated.
    """

    name: ClassVar[str] = "membership"
    wordwise: ClassVar[Literal[True]] = True
    prior: StaticName = "unigram"
    draws: Annotated[int, Field(ge=2, le=1_000_000, strict=True)] = DRAWS

    def refusal(self, view: View) -> str:
        """Where nothing is protected, or the law is not known."""
        if not len(view.drawn):
            return "no word is protected"
        return "" if mixes(view) else channel.refusal(view)

    def run(self, case: Case, *, rng: Randomness, report: Report = quiet) -> Iterator[Outcome]:
        """AUC and TPR at 1% and 0.1% FPR, of words, and of texts with the names that were drawn from lists."""
        parts = (case, *case.lists)
        texts = np.unique(np.concatenate([part.view.text for part in parts]))
        n = len(case.view.drawn)
        each, few = -(-NON_MEMBERS // len(texts)), -(-NON_MEMBERS // n)
        # Column 0 holds the members, so that equal words give equal sums, whatever the rounding.
        totals = np.zeros((len(texts), 1 + each))
        members, others = np.empty(n), []
        notes = []
        for part in parts:
            channel.check(part)
            text = np.searchsorted(texts, part.view.text)
            for positions, scores, note in self._scores(
                part, usual(part.view, self.prior), each, rng, report
            ):
                starts = np.flatnonzero(np.diff(text[positions], prepend=-1))
                totals[text[positions[starts]]] += np.add.reduceat(scores, starts, axis=0)
                notes.append(note)
                if part is case:
                    members[positions] = scores[:, 0]
                    others.append(scores[:, 1 : 1 + few].ravel())
        note = case.view.of_drawn(
            max(notes, key=len)
        )  # some words may have an exact law, others not
        yield from self._outcomes("word", np.arange(n), members, np.concatenate(others), note)
        yield from self._outcomes("text", texts, totals[:, 0], totals[:, 1:].ravel(), note)

    def _scores(
        self, case: Case, log_prior: Values, each: int, rng: Randomness, report: Report
    ) -> Iterator[tuple[Ids, Values, str]]:
        """Some positions [p], rising; log-ratios [p, 1 + each] of their private row and of others; where from."""
        view, secret = case.view, case.truth.rows
        if mixes(view):
            found = posterior(
                view, prior=self.prior, k=GUESSES, draws=self.draws, rng=rng, report=report
            )
            for positions, rows in _tried(np.arange(len(secret)), secret, log_prior, each, rng):
                yield positions, of_guesses(found, positions, rows, log_prior), JOINTLY
            return
        coarse = view.table.root.book is not None
        of_rows = np.log(view.table.gathered(np.exp(log_prior))) if coarse else log_prior
        for part in channel.likelihoods(view, draws=self.draws, rng=rng, report=report):
            note = EXACT if part.evidence == "exact" else channel.estimated(view, self.draws)
            before = expected(part, of_rows)
            line = np.empty(len(secret), np.int64)
            line[part.positions] = part.which[:, 0]
            for positions, rows in _tried(np.sort(part.positions), secret, log_prior, each, rng):
                report("membership", int(positions[0]), len(secret))
                own = line[positions, None]
                coded = view.table.coded(
                    rows, group_numbers(view.groups)[view.group[positions, None]]
                )
                likelihood = part.lines[own, coded].astype(np.float64)
                yield positions, likelihood - before[own], note

    def _outcomes(
        self, unit: Literal["word", "text"], where: Ids, members: Values, others: Values, note: str
    ) -> Iterator[Outcome]:
        others = np.sort(others)
        found = [("AUC", overtaken(members, others), 0.5)]
        found += [(metric, above(members, others, rate), rate) for metric, rate in RATES.items()]
        for metric, values, baseline in found:
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


def overtaken(members: Values, others: Values) -> Values:
    """The share of the others [N], sorted, that each member [m] is above, ties half; its mean is the AUC."""
    below, up_to = (
        np.searchsorted(others, members, "left"),
        np.searchsorted(others, members, "right"),
    )
    share: Values = (below + up_to) / (2 * len(others))
    return share


def above(members: Values, others: Values, rate: float) -> Values:
    """Whether each member [m] is above the lowest of the others [N], sorted, that no more than the rate exceeds."""
    threshold = others[len(others) - 1 - int(rate * len(others))]
    found: Values = (members > threshold).astype(np.float64)
    return found


def expected(part: Likelihoods, log_prior: Values) -> Values:
    """ln sum_x prior(x) P(y | x) for the released row y of every line: float64 [m]."""
    starts = range(0, len(part.lines), LINES)
    return np.concatenate(
        [log_sum(part.lines[start : start + LINES] + log_prior) for start in starts]
    )


def of_guesses(found: Ranking, positions: Ids, rows: Ids, log_prior: Values) -> Values:
    """ln of posterior over prior of rows [p, w] at positions [p]; rows that are no guesses share what is left."""
    guesses, log_posterior = found.candidates[positions], found.log_probability[positions]
    before = log_prior[guesses]
    rest, rest_before = (
        np.maximum(1 - np.exp(each).sum(axis=1), TINY) for each in (log_posterior, before)
    )
    scores: Values = np.broadcast_to(np.log(rest / rest_before)[:, None], rows.shape)
    for k in range(guesses.shape[1]):
        scores = np.where(rows == guesses[:, k, None], (log_posterior - before)[:, k, None], scores)
    return scores


def _tried(
    positions: Ids, secret: Ids, log_prior: Values, each: int, rng: Randomness
) -> Iterator[tuple[Ids, Ids]]:
    """Some positions [p] at a time, with their private row and rows drawn from the prior, [p, 1 + each]."""
    cumulated = np.cumsum(np.exp(log_prior))
    for chunk, draws in rng.open([len(positions)]).chunks(max(1, CELLS // (1 + each))):
        drawn = np.searchsorted(cumulated, draws.uniform(each) * cumulated[-1], side="right")
        private = secret[positions[chunk], None]
        yield (
            positions[chunk],
            np.concatenate([private, np.minimum(drawn, len(log_prior) - 1)], axis=1),
        )
