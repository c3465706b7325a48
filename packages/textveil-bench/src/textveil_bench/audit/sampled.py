"""Tests claims on samples: certified lower bounds of the privacy loss.

In: a subject. Out: findings with a false-alarm probability of at most `ALARM_RATE`.
Not here: closed-form laws (`exact`), and the interval of Clopper and Pearson (`intervals`).

Events and guesses are chosen on one half of the draws and counted on the other, because the largest
of many estimated ratios would far exceed the largest true ratio. Multiple comparisons are corrected
(Bonferroni).
"""

import math
import time
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from textveil.guarantee import Claim
from textveil.mechanism import Block, Layout
from textveil.randomness import Ids, SeededRandomness, Values
from textveil.table import EmbeddingTable
from textveil_bench.audit.audit_target import Probe, Subject, build_singles, compute_distances
from textveil_bench.audit.finding import ALARM_RATE, AuditFinding, make_skipped, make_unclaimed
from textveil_bench.intervals import clopper_pearson

TRIALS_SMALL, TRIALS_FULL = 8_000, 80_000
"""Texts drawn for each input."""

SINGLE_WORD_FACTOR = 3
"""Factor on the number of one-word texts, which are cheap.

On small tables only.
"""

TIMED_TEXTS, MIN_TRIALS = 100, 1_000
SECONDS_SMALL, SECONDS_FULL = 20.0, 120.0
"""Approximate seconds of a trial; a slow mechanism gets fewer texts.

Its bound is then weaker. `TIMED_TEXTS` texts are timed; no trial has fewer than `MIN_TRIALS`.
"""

CONTEXT_WORD = 1
"""The word at all other positions."""

TRIAL_SHARES = {
    "one word": (1.0,),
    "five words": (1.0,) * 5,
    "five words, the middle one with a quarter of the budget": (1.0, 1.0, 0.25, 1.0, 1.0),
    "two words, the last one varied": (1.0, 1.0),
}
"""Kinds of texts, with each word's share of the budget.

Claims must hold in longer texts too.
"""

THRESHOLD_COUNT = 24

MIXING_LDP = 8.0
"""Local DP at which influence between texts is tested.

Draws still differ, and rows still matter.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """Draws of texts that differ in one word only.

    Attributes:
        name: describes the texts.
        table: the table they were drawn on.
        claim: the mechanism's claim there.
        epsilon: the stated spending at the varied position.
        inputs: the words at that position, [k].
        outputs: the released rows, [k, N, L]; the placeholder is the row after the last.
    """

    name: str
    table: EmbeddingTable
    claim: Claim
    epsilon: float
    inputs: Ids
    outputs: Ids

    @property
    def max_losses(self) -> Values:
        """The largest loss between two inputs that the claim allows, [k, k]."""
        pair_distances = compute_distances(self.table, self.claim, self.inputs)
        limits: Values = self.epsilon * pair_distances + self.claim.additive
        return limits


@lru_cache(maxsize=2)  # two checks use the same draws
def draw_trials(subject: Subject) -> tuple[Trial, ...]:
    """Draws texts of one, two and five words on every probe table.

    Two and five words also with unequal budgets, except on costly tables.
    """
    return tuple(
        _draw_trial(subject, probe, name, np.array(shares) * probe.scale)
        for probe in subject.probes
        for name, shares in TRIAL_SHARES.items()
        if probe.has_longer_texts or len(shares) == 1
    )


def _draw_trial(subject: Subject, probe: Probe, name: str, scale: Values) -> Trial:
    table = probe.table
    many, length = TRIALS_SMALL if subject.small else TRIALS_FULL, len(scale)
    many *= SINGLE_WORD_FACTOR if length == 1 and probe.has_longer_texts else 1
    varied = length - 1 if length == 2 else length // 2
    layout = Layout.build(length)
    spent = subject.compute_spent(table, layout, subject.compute_parameter(table, layout, scale))
    inputs = np.array(probe.varied)
    rows = np.full(length, CONTEXT_WORD)
    seconds = _measure_seconds(subject, table, rows, scale) * len(inputs)
    many = min(
        many, max(MIN_TRIALS, int((SECONDS_SMALL if subject.small else SECONDS_FULL) / seconds))
    )
    outputs = np.empty((len(inputs), many, length), np.int64)
    for k, word in enumerate(inputs):
        rows[varied] = word
        outputs[k] = _draw_texts(subject, table, rows, scale, many)
    return Trial(
        name=f"{name} ({table.name})",
        table=table,
        claim=subject.mechanism.claim(table),
        epsilon=float(spent[varied]),
        inputs=inputs,
        outputs=outputs,
    )


def _draw_texts(
    subject: Subject, table: EmbeddingTable, rows: Ids, scale: Values, many: int
) -> Ids:
    """Draws `many` releases of a text of these rows, [N, L]."""
    layout = Layout.build(*[len(rows)] * many)
    parameter = subject.compute_parameter(table, layout, np.tile(scale, many))
    released = subject.sample(table, Block(layout=layout, rows=np.tile(rows, many)), parameter)
    return np.where(released < 0, len(table), released).reshape(many, len(rows))


def _measure_seconds(subject: Subject, table: EmbeddingTable, rows: Ids, scale: Values) -> float:
    """Measures the seconds per text, after everything is loaded."""
    _draw_texts(subject, table, rows, scale, TIMED_TEXTS)
    start = time.perf_counter()
    _draw_texts(subject, table, rows, scale, TIMED_TEXTS)
    return (time.perf_counter() - start) / TIMED_TEXTS


def check_samples(subject: Subject) -> AuditFinding:
    """Checks lower bounds of the loss, between nearby words and by guessing.

    For two words, the event is a threshold on the summed log-likelihood ratio of all released words
    of the text, so that a word that influences several outputs is charged for all of them. The
    reported number is in units of the claim.
    """
    name = "sampled"
    if subject.claim.kind == "none":
        return make_unclaimed(name, f"nothing is claimed: {subject.claim.reason}")
    if not subject.claim.draws:
        return make_skipped(name, "nothing is drawn")
    all_trials = draw_trials(subject)
    if _has_text_mixing(subject):
        return AuditFinding(
            check=name,
            evidence="observed",
            verdict="violated",
            why="under the same draws, the words of one text change the release of another text of the call",
        )
    comparisons = sum(len(item.inputs) * (len(item.inputs) - 1) for item in all_trials)
    worst = (-math.inf, 0.0, 0.0, "")
    for trial in all_trials:
        if not math.isfinite(trial.epsilon):
            continue
        max_losses = trial.max_losses
        for a in range(len(trial.inputs)):
            for b in range(len(trial.inputs)):
                if a != b:
                    bound = _estimate_loss(trial, a, b, ALARM_RATE / 2 / comparisons)
                    distance = (
                        (max_losses[a, b] - trial.claim.additive) / trial.epsilon
                        if trial.epsilon
                        else 0.0
                    )
                    loss = max(0.0, bound - trial.claim.additive)
                    rate = loss / distance if distance > 0 else math.inf if loss else 0.0
                    # relative to the allowed loss, to show the pair nearest to a violation
                    share = bound / max(float(max_losses[a, b]), 1e-12)
                    worst = max(worst, (share, float(rate), trial.epsilon, trial.name))
    guess_label, bound, claimed_ldp = _measure_guessing(subject)
    broken = worst[0] > 1 or bound > claimed_ldp
    if bound / max(claimed_ldp, 1e-12) > max(worst[0], 1):
        worst = (bound / max(claimed_ldp, 1e-12), bound, claimed_ldp, guess_label)
    return AuditFinding(
        check=name,
        evidence="lower bound",
        verdict="violated" if broken else "holds",
        claimed=worst[2],
        found=worst[1],
        alarm=ALARM_RATE,
        why=f"{comparisons + 1} bounds; nearest to its claim: {worst[3]}",
    )


def _has_text_mixing(subject: Subject) -> bool:
    """True if a text's words influence another text's release in a call.

    Tested with equal draws; mechanisms that do not repeat under a seed cannot be tested.
    """
    table, length, pairs = subject.slice, 3, 100
    layout = Layout.build(*[length] * (2 * pairs))
    parameter = subject.compute_parameter(table, layout, subject.find_scale(table, MIXING_LDP))
    releases = []
    for word in (0, 0, len(table) - 1):
        rows = np.tile([CONTEXT_WORD] * length + [word] * length, pairs)
        released = subject.sample(
            table, Block(layout=layout, rows=rows), parameter, SeededRandomness(0)
        )
        releases.append(released.reshape(pairs, 2, length)[:, 0])
    return bool((releases[0] == releases[1]).all() and (releases[0] != releases[2]).any())


def _estimate_loss(trial: Trial, a: int, b: int, alarm: float) -> float:
    """Bounds ln P(E | a) - ln P(E | b) from below.

    The event E is chosen on the first half of the draws.
    """
    many, length = trial.outputs.shape[1:]
    half, width = many // 2, len(trial.table) + 1
    score = np.zeros((2, many))
    for i in range(length):
        counts = [np.bincount(trial.outputs[k, :half, i], minlength=width) + 0.5 for k in (a, b)]
        ratio = np.log(counts[0]) - np.log(counts[1])
        score += ratio[trial.outputs[[a, b], :, i]]
    training, held_out = score[:, :half], score[:, half:]
    return bound_log_ratio(held_out, choose_event(training, alarm), alarm)


def choose_event(scores: Values, alarm: float) -> float:
    """Chooses the threshold of the scores [2, N] with the largest bound."""
    cuts = np.unique(np.quantile(scores[0], np.linspace(0, 0.98, THRESHOLD_COUNT)))
    thresholds: list[float] = cuts.tolist()
    return max(thresholds, key=lambda cut: bound_log_ratio(scores, cut, alarm))


def bound_log_ratio(scores: Values, cut: float, alarm: float) -> float:
    """Bounds ln P(score >= cut) of the first row over the second from below.

    Args:
        scores: float64 [2, N], of releases of two inputs.
        cut: chosen on other releases.
        alarm: the probability that the bound is wrong.
    """
    many = scores.shape[1]
    hits = (scores >= cut - 1e-12).sum(axis=1).tolist()
    low = clopper_pearson(hits[0], many, 1 - alarm)[0]  # each side fails with alarm / 2
    high = clopper_pearson(hits[1], many, 1 - alarm)[1]
    return math.log(low / high) if low > 0 else -math.inf


def _measure_guessing(subject: Subject) -> tuple[str, float, float]:
    """Measures a lower bound of local DP: ln(V * hit rate).

    The guess for every output is chosen on one half of the draws: its most frequent input.

    Returns:
        a label, the bound, and the claimed local DP.
    """
    table = subject.slice
    words = len(table)
    scale = subject.find_scale(table, math.log(words) / 2)  # no guess shows more than ln V
    many = max(2, (TRIALS_SMALL if subject.small else TRIALS_FULL) * 2 // words // 2 * 2)
    block = build_singles(np.tile(np.arange(words), many))
    parameter = subject.compute_parameter(table, block.layout, scale)
    claimed = subject.compute_local_dp(table, scale)
    released = subject.sample(table, block, parameter)
    outputs = np.where(released < 0, words, released).reshape(many, words)
    counts = np.zeros((words + 1, words), np.int64)
    half = many // 2
    np.add.at(counts, (outputs[:half].ravel(), np.tile(np.arange(words), half)), 1)
    guess = counts.argmax(axis=1)
    hits = int((guess[outputs[half:]] == np.arange(words)).sum())
    low = clopper_pearson(hits, (many - half) * words, 1 - ALARM_RATE)[0]
    return "the best guess of the word", math.log(words * low) if low > 0 else 0.0, claimed


def measure_unreached(subject: Subject) -> tuple[float, str]:
    """Measures the largest output share that another word never releases.

    The claim demands P(y | x) >= e^-allowed P(y | x'). If x' releases y often enough, the
    probability that x never does is below the alarm rate.

    Returns:
        the share, and the name of the trial.
    """
    all_trials = draw_trials(subject)
    comparisons = sum(
        t.outputs.shape[2] * len(t.inputs) ** 2 * (len(t.table) + 1) for t in all_trials
    )
    alarm = ALARM_RATE / comparisons
    worst, where = 0.0, ""
    for trial in all_trials:
        if not math.isfinite(trial.epsilon):
            continue
        many, max_losses = trial.outputs.shape[1], trial.max_losses
        for i in range(trial.outputs.shape[2]):
            counts = [
                np.bincount(out[:, i], minlength=len(trial.table) + 1) for out in trial.outputs
            ]
            for a, word_counts in enumerate(counts):
                for b, other in enumerate(counts):
                    never = np.where((word_counts == 0) & (a != b), other, 0)
                    if not (largest := int(never.max())):
                        continue
                    low = clopper_pearson(largest, many, 1 - alarm)[0]
                    if many * math.log1p(-low * math.exp(-max_losses[a, b])) < math.log(alarm / 2):
                        worst, where = max(worst, largest / many), trial.name
    return worst, where
