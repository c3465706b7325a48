"""Claims against samples: certified lower bounds of the loss, for mechanisms of which only draws can be had.

In: a subject. Out: findings that accuse an honest mechanism with probability `ALARM` at most.
Not here: laws that can be written down (`exact`), and the interval of Clopper and Pearson (`intervals`).

Events and guesses are chosen on one half of the draws and counted on the other: the largest of many estimated ratios
would be far above the largest ratio. What is searched over is paid for (Bonferroni).
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
from textveil_bench.audit.finding import ALARM, AuditFinding, skipped, unclaimed
from textveil_bench.audit.subject import Probe, Subject, distances, singles
from textveil_bench.intervals import clopper_pearson

TRIALS_SMALL, TRIALS_FULL = 8_000, 80_000
"""Texts drawn for each input."""

ALONE = 3
"""Times as many, of one word on a small table: they are cheap."""

FIRST, FEWEST = 100, 1_000
SECONDS_SMALL, SECONDS_FULL = 20.0, 120.0
"""A trial takes about so long: a mechanism that asks a language model gets fewer texts, and so a weaker bound. `FIRST`
texts are timed; no trial has less than `FEWEST`."""

AROUND = 1
"""The word that stands at the other positions."""

TEXTS = {
    "one word": (1.0,),
    "five words": (1.0,) * 5,
    "five words, the middle one with a quarter of the budget": (1.0, 1.0, 0.25, 1.0, 1.0),
    "two words, the last one varied": (1.0, 1.0),
}
"""What words stand in, by the share of the budget that each has: what is claimed must hold in longer texts too."""

THRESHOLDS = 24

MIXING_LDP = 8.0
"""Local DP at which texts are watched for one another: draws still differ, and rows still count."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """Draws of texts that differ in one word only.

    Attributes:
        name: what the texts look like.
        table: where they were drawn.
        claim: what is claimed there.
        epsilon: what the varied position is said to spend.
        inputs: the words that it takes, [k].
        outputs: what was released, [k, N, L]; the placeholder counts as the word after the last.
    """

    name: str
    table: EmbeddingTable
    claim: Claim
    epsilon: float
    inputs: Ids
    outputs: Ids

    @property
    def allowed(self) -> Values:
        """The largest loss between two inputs that the claim allows, [k, k]."""
        apart = distances(self.table, self.claim, self.inputs)
        found: Values = self.epsilon * apart + self.claim.additive
        return found


@lru_cache(maxsize=2)  # two checks look at the same draws
def trials(subject: Subject) -> tuple[Trial, ...]:
    """Draws on every probe table: one word; but for costly tables, two and five, with unequal budgets too."""
    return tuple(
        _trial(subject, probe, name, np.array(shares) * probe.scale)
        for probe in subject.probes
        for name, shares in TEXTS.items()
        if probe.longer or len(shares) == 1
    )


def _trial(subject: Subject, probe: Probe, name: str, scale: Values) -> Trial:
    table = probe.table
    many, length = TRIALS_SMALL if subject.small else TRIALS_FULL, len(scale)
    many *= ALONE if length == 1 and probe.longer else 1
    varied = length - 1 if length == 2 else length // 2
    one = Layout.of(length)
    spent = subject.spent(table, one, subject.parameter(table, one, scale))
    inputs = np.array(probe.varied)
    rows = np.full(length, AROUND)
    each = _seconds(subject, table, rows, scale) * len(inputs)
    many = min(many, max(FEWEST, int((SECONDS_SMALL if subject.small else SECONDS_FULL) / each)))
    outputs = np.empty((len(inputs), many, length), np.int64)
    for k, word in enumerate(inputs):
        rows[varied] = word
        outputs[k] = _draw(subject, table, rows, scale, many)
    return Trial(
        name=f"{name} ({table.name})",
        table=table,
        claim=subject.mechanism.claim(table),
        epsilon=float(spent[varied]),
        inputs=inputs,
        outputs=outputs,
    )


def _draw(subject: Subject, table: EmbeddingTable, rows: Ids, scale: Values, many: int) -> Ids:
    """What a text of these rows is released as, so many times, [N, L]."""
    layout = Layout.of(*[len(rows)] * many)
    parameter = subject.parameter(table, layout, np.tile(scale, many))
    drawn = subject.sample(table, Block(layout=layout, rows=np.tile(rows, many)), parameter)
    return np.where(drawn < 0, len(table), drawn).reshape(many, len(rows))


def _seconds(subject: Subject, table: EmbeddingTable, rows: Ids, scale: Values) -> float:
    """What a text takes once everything is loaded: the second time that some are drawn."""
    _draw(subject, table, rows, scale, FIRST)
    start = time.perf_counter()
    _draw(subject, table, rows, scale, FIRST)
    return (time.perf_counter() - start) / FIRST


def sampled(subject: Subject) -> AuditFinding:
    """Lower bounds of the loss: between nearby words, and by guessing the word from the output.

    For two words, the event is a threshold on the summed log-likelihood ratio of all released words of the text, so
    that a word that shows in several outputs is charged for all of them. The number found is in units of the claim.
    """
    name = "sampled"
    if subject.claim.kind == "none":
        return unclaimed(name, f"nothing is claimed: {subject.claim.reason}")
    if not subject.claim.draws:
        return skipped(name, "nothing is drawn")
    drawn = trials(subject)
    if _texts_mix(subject):
        return AuditFinding(
            check=name,
            evidence="observed",
            verdict="violated",
            why="under the same draws, the words of one text change what another text of the call is released as",
        )
    comparisons = sum(len(each.inputs) * (len(each.inputs) - 1) for each in drawn)
    worst = (-math.inf, 0.0, 0.0, "")
    for trial in drawn:
        if not math.isfinite(trial.epsilon):
            continue
        allowed = trial.allowed
        for a in range(len(trial.inputs)):
            for b in range(len(trial.inputs)):
                if a != b:
                    bound = _loss(trial, a, b, ALARM / 2 / comparisons)
                    apart = (
                        (allowed[a, b] - trial.claim.additive) / trial.epsilon
                        if trial.epsilon
                        else 0.0
                    )
                    lost = max(0.0, bound - trial.claim.additive)
                    rate = lost / apart if apart > 0 else math.inf if lost else 0.0
                    # by share of what is allowed, so that the pair is shown that comes nearest to breaking it
                    share = bound / max(float(allowed[a, b]), 1e-12)
                    worst = max(worst, (share, float(rate), trial.epsilon, trial.name))
    guessed, bound, claimed_ldp = _guessing(subject)
    broken = worst[0] > 1 or bound > claimed_ldp
    if bound / max(claimed_ldp, 1e-12) > max(worst[0], 1):
        worst = (bound / max(claimed_ldp, 1e-12), bound, claimed_ldp, guessed)
    return AuditFinding(
        check=name,
        evidence="lower bound",
        verdict="violated" if broken else "holds",
        claimed=worst[2],
        found=worst[1],
        alarm=ALARM,
        why=f"{comparisons + 1} bounds; nearest to its claim: {worst[3]}",
    )


def _texts_mix(subject: Subject) -> bool:
    """Whether a text's words change what another text of the same call is released as, draws being equal.

    Mechanisms that do not repeat themselves under a seed cannot be asked.
    """
    table, length, pairs = subject.slice, 3, 100
    layout = Layout.of(*[length] * (2 * pairs))
    parameter = subject.parameter(table, layout, subject.scale_within(table, MIXING_LDP))
    seen = []
    for word in (0, 0, len(table) - 1):
        rows = np.tile([AROUND] * length + [word] * length, pairs)
        drawn = subject.sample(
            table, Block(layout=layout, rows=rows), parameter, SeededRandomness(0)
        )
        seen.append(drawn.reshape(pairs, 2, length)[:, 0])
    return bool((seen[0] == seen[1]).all() and (seen[0] != seen[2]).any())


def _loss(trial: Trial, a: int, b: int, alarm: float) -> float:
    """A lower bound of ln P(E | a) - ln P(E | b) for an event E that the first half of the draws chose."""
    many, length = trial.outputs.shape[1:]
    half, width = many // 2, len(trial.table) + 1
    score = np.zeros((2, many))
    for i in range(length):
        counts = [np.bincount(trial.outputs[k, :half, i], minlength=width) + 0.5 for k in (a, b)]
        ratio = np.log(counts[0]) - np.log(counts[1])
        score += ratio[trial.outputs[[a, b], :, i]]
    learned, tested = score[:, :half], score[:, half:]
    cuts = np.unique(np.quantile(learned[0], np.linspace(0, 0.98, THRESHOLDS)))
    best = max(cuts.tolist(), key=lambda cut: _bound(learned, cut, alarm))
    return _bound(tested, best, alarm)


def _bound(scores: Values, cut: float, alarm: float) -> float:
    many = scores.shape[1]
    hits = (scores >= cut - 1e-12).sum(axis=1).tolist()
    low = clopper_pearson(hits[0], many, 1 - alarm)[0]  # each side fails with alarm / 2
    high = clopper_pearson(hits[1], many, 1 - alarm)[1]
    return math.log(low / high) if low > 0 else -math.inf


def _guessing(subject: Subject) -> tuple[str, float, float]:
    """What was done; ln(V * hit rate), a lower bound of local DP over the slice; and what is claimed there.

    A guess for every output is chosen on one half of the draws: the input that it was seen from most.
    """
    table = subject.slice
    words = len(table)
    scale = subject.scale_within(table, math.log(words) / 2)  # no guess shows more than ln V
    many = max(2, (TRIALS_SMALL if subject.small else TRIALS_FULL) * 2 // words // 2 * 2)
    block = singles(np.tile(np.arange(words), many))
    parameter = subject.parameter(table, block.layout, scale)
    claimed = subject.local_dp(table, scale)
    drawn = subject.sample(table, block, parameter)
    outputs = np.where(drawn < 0, words, drawn).reshape(many, words)
    seen = np.zeros((words + 1, words), np.int64)
    half = many // 2
    np.add.at(seen, (outputs[:half].ravel(), np.tile(np.arange(words), half)), 1)
    guess = seen.argmax(axis=1)
    hits = int((guess[outputs[half:]] == np.arange(words)).sum())
    low = clopper_pearson(hits, (many - half) * words, 1 - ALARM)[0]
    return "the best guess of the word", math.log(words * low) if low > 0 else 0.0, claimed


def unreached(subject: Subject) -> tuple[float, str]:
    """From samples: the largest share of a word's outputs that another word never has, though its claim demands it.

    The claim demands P(y | x) >= e^-allowed P(y | x'). Where x' shows y often enough, not to see it from x once has a
    probability below the alarm.
    """
    drawn = trials(subject)
    comparisons = sum(t.outputs.shape[2] * len(t.inputs) ** 2 * (len(t.table) + 1) for t in drawn)
    alarm = ALARM / comparisons
    worst, where = 0.0, ""
    for trial in drawn:
        if not math.isfinite(trial.epsilon):
            continue
        many, allowed = trial.outputs.shape[1], trial.allowed
        for i in range(trial.outputs.shape[2]):
            counts = [
                np.bincount(out[:, i], minlength=len(trial.table) + 1) for out in trial.outputs
            ]
            for a, own in enumerate(counts):
                for b, other in enumerate(counts):
                    never = np.where((own == 0) & (a != b), other, 0)
                    if not (most := int(never.max())):
                        continue
                    low = clopper_pearson(most, many, 1 - alarm)[0]
                    if many * math.log1p(-low * math.exp(-allowed[a, b])) < math.log(alarm / 2):
                        worst, where = max(worst, most / many), trial.name
    return worst, where
