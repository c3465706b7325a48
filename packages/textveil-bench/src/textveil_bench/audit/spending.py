"""What is charged: a budget must change the law, and be neither exceeded nor wasted; statements print what is spent.

In: a subject. Out: the findings `budget`, `overcharge` and `statement`.
Not here: whether what is charged covers the loss (`exact`, `sampled`).
"""

import math

import numpy as np

from textveil.guarantee import number
from textveil.mechanism import SINKHORN_ROUNDS, Layout, Noisy, Window, Windowed
from textveil.randomness import Ids, Values
from textveil.table import EmbeddingTable
from textveil_bench.audit import sampled
from textveil_bench.audit.finding import ALARM, FLOAT32, ROUNDING, AuditFinding, skipped, unclaimed
from textveil_bench.audit.streams import text_of
from textveil_bench.audit.subject import METRICS, SLICE_SMALL, Subject, batches, singles

SHARE = 0.5
"""Of the budget at least so much is spent on one word alone; less is a waste that nobody was told of."""

STAYS = 0.999
"""A law that releases every word as itself so often has no room for a larger budget."""

ALL_PAIRS = 2_500
"""In tables of so many words every pair is measured."""


# ---- a budget changes the law ----------------------------------------------------------------------------


def budget(subject: Subject) -> AuditFinding:
    """Twice the budget must give another law; a scale of noise that does not depend on it does not."""
    name = "budget"
    if not subject.claim.draws:
        return skipped(name, "nothing is drawn")
    if subject.claim.kind == "none":
        return unclaimed(name, f"nothing is claimed: {subject.claim.reason}")
    if _is_free(subject):
        return skipped(name, "nothing is spent")
    table = subject.slice
    rows = np.arange(len(table))
    one, two = subject.law(table, rows), subject.law(table, rows, 2.0)
    if one is not None and two is not None:
        if one.max(axis=1).min() > np.log(STAYS):
            return skipped(name, "at this budget nearly every word stays; take a smaller one")
        moved = float(np.abs(np.exp(one) - np.exp(two)).max())
        return AuditFinding(
            check=name,
            evidence="proved",
            verdict="holds" if moved > ROUNDING else "violated",
            found=moved,
            why="largest change of a probability when the budget is doubled",
        )
    smallest = 1.0
    for probe in subject.probes:
        one_fold, two_fold = (
            _counts(subject, probe.table, sampled.AROUND, probe.scale * fold) for fold in (1, 2)
        )
        smallest = min(smallest, _differ(one_fold, two_fold))
    return AuditFinding(
        check=name,
        evidence="observed",
        verdict="holds" if smallest < ALARM else "violated",
        found=smallest,
        claimed=ALARM,
        why="p-value of the same law before and after the budget is doubled",
    )


def _is_free(subject: Subject) -> bool:
    """Whether the mechanism needs no budget, and spends none."""
    layout = Layout.of(1)
    parameter = subject.parameter(subject.table, layout)
    return (
        subject.privatizer.budget is None
        and not subject.spent(subject.table, layout, parameter).any()
    )


def _counts(subject: Subject, table: EmbeddingTable, word: int, scale: float) -> Ids:
    many = sampled.TRIALS_SMALL if subject.small else sampled.TRIALS_FULL
    block = singles(np.full(many, word))
    drawn = subject.sample(table, block, subject.parameter(table, block.layout, scale))
    return np.bincount(np.where(drawn < 0, len(table), drawn), minlength=len(table) + 1)


def _differ(one: Ids, two: Ids) -> float:
    """The p-value of two samples of equal size from one law (chi-square of a table of two rows)."""
    from scipy.special import chdtrc

    both = one + two
    kept = both >= 2 * 5
    if kept.sum() < 2:
        return 1.0
    return float(chdtrc(kept.sum() - 1, ((one - two)[kept] ** 2 / both[kept]).sum()))


# ---- neither exceeded nor wasted -------------------------------------------------------------------------


def overcharge(subject: Subject) -> AuditFinding:
    """The parameter of a budget spends that budget, not more and not needlessly less; every charge buys something."""
    name = "overcharge"
    if subject.claim.kind == "none":
        return unclaimed(name, f"nothing is claimed: {subject.claim.reason}")
    if _is_free(subject):
        return skipped(name, "nothing is spent")
    layout = Layout.of(1)
    spent = float(subject.spent(subject.table, layout, subject.parameter(subject.table, layout))[0])
    share = spent / subject.epsilon
    problems = []
    over = share > 1 + ROUNDING
    if over:
        problems.append(f"{share:.4g} times the budget is spent")
    if share < SHARE:
        problems.append(f"only {share:.4g} of the budget is spent")
    alarm = 0.0
    mechanism = subject.mechanism
    radius = mechanism.radius if isinstance(mechanism, Noisy) else None
    if radius is not None:  # what else is charged besides may buy what no test here knows of
        alarm = ALARM
        if not _lengths_tell(subject):
            problems.append(
                f"{radius:g} is charged besides, and words that differ in length only come out alike"
            )
    return AuditFinding(
        check=name,
        evidence="observed" if alarm else "proved",
        verdict="violated" if over else "wasteful" if problems else "holds",
        claimed=subject.epsilon,
        found=spent,
        alarm=alarm,
        why="; ".join(problems) or f"{share:.1%} of the budget is spent on one word alone",
    )


def _lengths_tell(subject: Subject) -> bool:
    """Whether the length of a word's vector, and nothing else, changes what comes out."""
    angle = np.arange(8) * 0.3
    rows = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    rows = np.concatenate((rows, rows * 3.0))  # the same directions, three times as long
    words = [f"length{letter}" for letter in "abcdefghijklmnop"]
    table = EmbeddingTable.build(name="lengths", words=words, vectors=rows)
    short, long = _counts(subject, table, 3, 1.0), _counts(subject, table, 11, 1.0)
    return _differ(short, long) < ALARM


# ---- what is printed -------------------------------------------------------------------------------------


def statement(subject: Subject) -> AuditFinding:
    """The printed bound is the largest that is spent, in a metric; and a window charges what its weights say."""
    name = "statement"
    result = subject.privatizer.privatize(text_of(subject))
    guarantee, claim = result.guarantee, subject.claim
    printed = guarantee.to_json()["epsilon"]
    largest = float(guarantee.epsilon_per_word.max(initial=0.0))
    problems = []
    if claim.kind == "none":
        denied = "no finite bound" in guarantee.headline() and guarantee.summary().startswith(
            "No guarantee"
        )
        if printed != "infinite" or not denied:
            problems.append("nothing is claimed, and a number is printed")
        if not problems:
            return unclaimed(name, f"and the statement says so: {claim.reason}", math.inf)
    elif guarantee.kind != "none":
        said = [guarantee.headline()] + [guarantee.summary()] * (
            largest > 0
        )  # which names no epsilon of 0
        if printed != largest or any(number(largest) not in each for each in said):
            problems.append("the printed bound is not the largest that is spent")
        if claim.kind == "metric" and claim.metric == "cosine":
            problems.append("the cosine distance is no metric, so no statement can be made in it")
        if _asked(subject) < largest * (1 - ROUNDING):
            problems.append("more is spent than was asked for")
        if (
            claim.kind == "metric"
            and claim.metric in METRICS
            and _farthest(subject) > claim.diameter * (1 + FLOAT32)
        ):
            problems.append(
                "two words of the table are farther apart than the diameter that is claimed"
            )
        local_dp = (
            largest
            if claim.kind == "ldp"
            else largest * claim.diameter + claim.additive * (largest > 0)
        )
        local_dp = min(local_dp, subject.most(subject.table))
        if guarantee.epsilon_ldp < local_dp * (1 - ROUNDING):
            problems.append("the printed local DP is less than the bound makes it")
    looked, found, why = _window(subject)
    problems += [why] if why else []
    return AuditFinding(
        check=name,
        evidence="observed",
        verdict="violated" if problems else "holds",
        claimed=printed if isinstance(printed, float) else None,
        found=found if why else largest,
        why="; ".join(problems)
        or "the printed bound is the largest that is spent"
        + (", and the window's columns are charged as they weigh" if looked else ""),
    )


def _farthest(subject: Subject) -> float:
    """The largest distance between two words, in small tables; in others, one that is found from some of the words.

    From every chosen word to the word that is farthest of all, and once more from there. A projection is measured in
    its own axes, by the distance that it stands for.
    """
    from scipy.spatial.distance import cdist

    mechanism = subject.mechanism
    table = mechanism.view(subject.table) if isinstance(mechanism, Noisy) else subject.table.root
    metric = METRICS[subject.claim.metric or ""]
    vectors = table.take(slice(None)).astype(np.float64)
    rows = np.arange(len(table)) if len(table) <= ALL_PAIRS else subject.chosen(SLICE_SMALL)
    largest = 0.0
    for _ in range(1 if len(table) <= ALL_PAIRS else 2):
        ends = []
        for part in batches(rows, len(table)):
            apart = cdist(vectors[part], vectors, metric)
            largest = max(largest, float(apart.max()))
            ends.append(apart.argmax(axis=1))
        rows = np.unique(np.concatenate(ends))
    return largest / table.lipschitz


def _asked(subject: Subject) -> float:
    return subject.epsilon if subject.privatizer.budget is not None else math.inf


def _windowed(subject: Subject) -> Window | None:
    mechanism = subject.mechanism
    return mechanism.mix if isinstance(mechanism, Windowed) and mechanism.mix.L > 1 else None


def _window(subject: Subject) -> tuple[bool, float, str]:
    """What a word spends in texts with equal and unequal parameters, summed by hand: sum_i rate_i f_ij.

    Whether there was anything to sum; the first number and reason that are off, 0 and nothing if all agree.
    """
    window, table = _windowed(subject), subject.table
    if window is None or subject.claim.kind == "none":
        return False, 0.0, ""
    one = Layout.of(1)
    high, low = (subject.parameter(table, one, scale)[0] for scale in (1.0, 0.25))
    rate = {each: float(subject.spent(table, one, np.array([each]))[0]) for each in (high, low)}
    for length in (1, 2, 3, window.L, 3 * window.L):
        layout = Layout.of(length)
        parameter = np.full(length, high)
        parameter[length // 2 :: window.L + 1] = low
        spent = subject.spent(table, layout, parameter)
        due = _weights(window, length).T @ np.array([rate[each] for each in parameter])
        if (spent < due * (1 - ROUNDING)).any():
            j = int((due / spent).argmax())
            return (
                True,
                float(spent[j]),
                f"word {j} of {length} is charged {spent[j]:.4g} and spends {due[j]:.4g}",
            )
    return True, 0.0, ""


def _weights(window: Window, length: int) -> Values:
    """The window's matrix, row by row, from scipy's Gaussian: f_ij is what word j weighs in output i."""
    from scipy.signal.windows import gaussian

    weights = gaussian(window.L, window.sigma)
    left = (window.L - 1) // 2
    if window.side == "left" and window.L % 2 == 0:
        left += 1
    matrix = np.zeros((length, length))
    for i in range(length):
        for k, weight in enumerate(weights):
            if 0 <= (j := i - left + k) < length:
                matrix[i, j] = weight
        matrix[i] /= matrix[i].sum()
    for _ in range(SINKHORN_ROUNDS if window.balanced else 0):
        matrix /= matrix.sum(axis=0)
        matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix
