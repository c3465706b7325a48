"""Spending: budgets must change the law, be kept to, and be printed.

In: a subject. Out: the findings `budget`, `overcharge` and `statement`.
Not here: whether the charge covers the loss (`exact`, `sampled`).
"""

import math

import numpy as np

from textveil.guarantee import format_number
from textveil.mechanism import SINKHORN_ROUNDS, Layout, Noisy, Window, Windowed
from textveil.randomness import Ids, Values
from textveil.table import EmbeddingTable
from textveil_bench.audit import sampled
from textveil_bench.audit.audit_target import (
    METRICS,
    SLICE_SMALL,
    Subject,
    build_singles,
    split_batches,
)
from textveil_bench.audit.finding import (
    ALARM_RATE,
    FLOAT32_TOLERANCE,
    FLOAT64_TOLERANCE,
    AuditFinding,
    make_skipped,
    make_unclaimed,
)
from textveil_bench.audit.fresh_draws import build_text

MIN_SPENT_SHARE = 0.5
"""Minimum share of the budget spent on a single word.

Less is undisclosed waste.
"""

STAY_PROBABILITY = 0.999
"""Probability of unchanged words above which a larger budget cannot be tested."""

SMALL_SHARE = 1 / 16
"""Share of a budget at which the law of one that is used up differs."""

MAX_ALL_PAIRS_WORDS = 2_500
"""Largest table in which every pair is measured."""


# ---- a budget changes the law ----------------------------------------------------------------------------


def check_budget(subject: Subject) -> AuditFinding:
    """Checks that doubling the budget changes the law."""
    name = "budget"
    if not subject.claim.draws:
        return make_skipped(name, "nothing is drawn")
    if subject.claim.kind == "none":
        return make_unclaimed(name, f"nothing is claimed: {subject.claim.reason}")
    if _is_free(subject):
        return make_skipped(name, "nothing is spent")
    table = subject.slice
    rows = np.arange(len(table))
    law, doubled_law = subject.compute_law(table, rows), subject.compute_law(table, rows, 2.0)
    if law is not None and doubled_law is not None:
        if law.max(axis=1).min() > np.log(STAY_PROBABILITY):
            return make_skipped(name, "at this budget nearly every word stays; take a smaller one")
        largest_change = float(np.abs(np.exp(law) - np.exp(doubled_law)).max())
        small_law = subject.compute_law(table, rows, SMALL_SHARE)
        if (
            largest_change <= FLOAT64_TOLERANCE
            and small_law is not None
            and np.abs(np.exp(law) - np.exp(small_law)).max() > FLOAT64_TOLERANCE
        ):
            return make_skipped(name, "at this budget more changes nothing; take a smaller one")
        return AuditFinding(
            check=name,
            evidence="proved",
            verdict="holds" if largest_change > FLOAT64_TOLERANCE else "violated",
            found=largest_change,
            why="largest change of a probability when the budget is doubled",
        )
    smallest = 1.0
    for probe in subject.probes:
        counts, doubled_counts = (
            _count_releases(subject, probe.table, sampled.CONTEXT_WORD, probe.scale * fold)
            for fold in (1, 2)
        )
        smallest = min(smallest, _compare_counts(counts, doubled_counts))
    return AuditFinding(
        check=name,
        evidence="observed",
        verdict="holds" if smallest < ALARM_RATE else "violated",
        found=smallest,
        claimed=ALARM_RATE,
        why="p-value of the same law before and after the budget is doubled",
    )


def _is_free(subject: Subject) -> bool:
    """True if the mechanism needs no budget and spends none."""
    layout = Layout.build(1)
    parameter = subject.compute_parameter(subject.table, layout)
    return (
        subject.privatizer.budget is None
        and not subject.compute_spent(subject.table, layout, parameter).any()
    )


def _count_releases(subject: Subject, table: EmbeddingTable, word: int, scale: float) -> Ids:
    many = sampled.TRIALS_SMALL if subject.small else sampled.TRIALS_FULL
    block = build_singles(np.full(many, word))
    released = subject.sample(table, block, subject.compute_parameter(table, block.layout, scale))
    return np.bincount(np.where(released < 0, len(table), released), minlength=len(table) + 1)


def _compare_counts(first: Ids, second: Ids) -> float:
    """Computes the chi-square p-value that two equal-sized samples share a law."""
    from scipy.special import chdtrc

    totals = first + second
    frequent = totals >= 2 * 5
    if frequent.sum() < 2:
        return 1.0
    return float(
        chdtrc(frequent.sum() - 1, ((first - second)[frequent] ** 2 / totals[frequent]).sum())
    )


# ---- neither exceeded nor wasted -------------------------------------------------------------------------


def check_overcharge(subject: Subject) -> AuditFinding:
    """Checks that a budget's parameter spends that budget, without waste."""
    name = "overcharge"
    if subject.claim.kind == "none":
        return make_unclaimed(name, f"nothing is claimed: {subject.claim.reason}")
    if _is_free(subject):
        return make_skipped(name, "nothing is spent")
    layout = Layout.build(1)
    spent = float(
        subject.compute_spent(
            subject.table, layout, subject.compute_parameter(subject.table, layout)
        )[0]
    )
    share = spent / subject.epsilon
    problems = []
    is_exceeded = share > 1 + FLOAT64_TOLERANCE
    if is_exceeded:
        problems.append(f"{share:.4g} times the budget is spent")
    if share < MIN_SPENT_SHARE:
        problems.append(f"only {share:.4g} of the budget is spent")
    alarm = 0.0
    mechanism = subject.mechanism
    radius = mechanism.radius if isinstance(mechanism, Noisy) else None
    if radius is not None:  # other additional charges may buy something these tests do not cover
        alarm = ALARM_RATE
        if not _has_length_effect(subject):
            problems.append(
                f"{radius:g} is charged in addition, and words that differ only in length "
                "are released alike"
            )
    return AuditFinding(
        check=name,
        evidence="observed" if alarm else "proved",
        verdict="violated" if is_exceeded else "wasteful" if problems else "holds",
        claimed=subject.epsilon,
        found=spent,
        alarm=alarm,
        why="; ".join(problems) or f"{share:.1%} of the budget is spent on one word alone",
    )


def _has_length_effect(subject: Subject) -> bool:
    """True if the length of a word's vector alone changes the output."""
    angle = np.arange(8) * 0.3
    rows = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    rows = np.concatenate((rows, rows * 3.0))  # the same directions, three times as long
    words = [f"length{letter}" for letter in "abcdefghijklmnop"]
    table = EmbeddingTable.build(name="lengths", words=words, vectors=rows)
    short, long = _count_releases(subject, table, 3, 1.0), _count_releases(subject, table, 11, 1.0)
    return _compare_counts(short, long) < ALARM_RATE


# ---- what is printed -------------------------------------------------------------------------------------


def check_statement(subject: Subject) -> AuditFinding:
    """Checks that the printed bound is the largest spending.

    The claim must be in a metric, and a window must charge its weights.
    """
    name = "statement"
    result = subject.privatizer.privatize(build_text(subject))
    guarantee, claim = result.guarantee, subject.claim
    printed = guarantee.to_json()["epsilon"]
    largest = float(guarantee.epsilon_per_word.max(initial=0.0))
    problems = []
    if claim.kind == "none":
        is_denied = "no finite bound" in guarantee.headline() and guarantee.summary().startswith(
            "No guarantee"
        )
        if printed != "infinite" or not is_denied:
            problems.append("nothing is claimed, but a number is printed")
        if not problems:
            return make_unclaimed(name, f"and the statement says so: {claim.reason}", math.inf)
    elif guarantee.kind != "none":
        sentences = [guarantee.headline()] + [guarantee.summary()] * (
            largest > 0
        )  # it omits an epsilon of 0
        if printed != largest or any(
            format_number(largest) not in sentence for sentence in sentences
        ):
            problems.append("the printed bound is not the largest that is spent")
        if claim.kind == "metric" and claim.metric == "cosine":
            problems.append("the cosine distance is no metric, so no statement can be made in it")
        if _get_requested_budget(subject) < largest * (1 - FLOAT64_TOLERANCE):
            problems.append("more is spent than was asked for")
        if (
            claim.kind == "metric"
            and claim.metric in METRICS
            and _find_diameter(subject) > claim.diameter * (1 + FLOAT32_TOLERANCE)
        ):
            problems.append(
                "two words of the table are farther apart than the diameter that is claimed"
            )
        local_dp = (
            largest
            if claim.kind == "ldp"
            else largest * claim.diameter + claim.additive * (largest > 0)
        )
        local_dp = min(local_dp, subject.compute_cap(subject.table))
        if guarantee.epsilon_ldp < local_dp * (1 - FLOAT64_TOLERANCE):
            problems.append("the printed local DP is less than the bound makes it")
    has_window, charge, why = _check_window(subject)
    problems += [why] if why else []
    return AuditFinding(
        check=name,
        evidence="observed",
        verdict="violated" if problems else "holds",
        claimed=printed if isinstance(printed, float) else None,
        found=charge if why else largest,
        why="; ".join(problems)
        or "the printed bound is the largest that is spent"
        + (", and the window's columns are charged as they weigh" if has_window else ""),
    )


def _find_diameter(subject: Subject) -> float:
    """Finds the largest distance between two words.

    Exact in small tables; in others, the farthest word from each of some words, and once more from
    there. A projection is measured in its own axes, by the distance that it stands for.
    """
    from scipy.spatial.distance import cdist

    mechanism = subject.mechanism
    table = (
        mechanism.get_view(subject.table) if isinstance(mechanism, Noisy) else subject.table.root
    )
    metric = METRICS[subject.claim.metric or ""]
    vectors = table.take(slice(None)).astype(np.float64)
    rows = (
        np.arange(len(table))
        if len(table) <= MAX_ALL_PAIRS_WORDS
        else subject.choose_rows(SLICE_SMALL)
    )
    largest = 0.0
    for _ in range(1 if len(table) <= MAX_ALL_PAIRS_WORDS else 2):
        ends = []
        for part in split_batches(rows, len(table)):
            distances = cdist(vectors[part], vectors, metric)
            largest = max(largest, float(distances.max()))
            ends.append(distances.argmax(axis=1))
        rows = np.unique(np.concatenate(ends))
    return largest / table.lipschitz


def _get_requested_budget(subject: Subject) -> float:
    return subject.epsilon if subject.privatizer.budget is not None else math.inf


def _get_window(subject: Subject) -> Window | None:
    mechanism = subject.mechanism
    return mechanism.mix if isinstance(mechanism, Windowed) and mechanism.mix.L > 1 else None


def _check_window(subject: Subject) -> tuple[bool, float, str]:
    """Checks a window's spending with equal and unequal parameters: sum_i rate_i f_ij.

    Returns:
        whether there is a window to check; the first wrong charge and the reason, or 0 and "".
    """
    window, table = _get_window(subject), subject.table
    if window is None or subject.claim.kind == "none":
        return False, 0.0, ""
    single = Layout.build(1)
    high, low = (subject.compute_parameter(table, single, scale)[0] for scale in (1.0, 0.25))
    rate = {
        value: float(subject.compute_spent(table, single, np.array([value]))[0])
        for value in (high, low)
    }
    for length in (1, 2, 3, window.L, 3 * window.L):
        layout = Layout.build(length)
        parameter = np.full(length, high)
        parameter[length // 2 :: window.L + 1] = low
        spent = subject.compute_spent(table, layout, parameter)
        expected = _compute_weights(window, length).T @ np.array(
            [rate[value] for value in parameter]
        )
        if (spent < expected * (1 - FLOAT64_TOLERANCE)).any():
            j = int((expected / spent).argmax())
            return (
                True,
                float(spent[j]),
                f"word {j} of {length} is charged {spent[j]:.4g} and spends {expected[j]:.4g}",
            )
    return True, 0.0, ""


def _compute_weights(window: Window, length: int) -> Values:
    """Computes the window's matrix from scipy's Gaussian.

    f_ij is the weight of word j in output i.
    """
    from scipy.signal.windows import gaussian

    weights = gaussian(window.L, window.sigma)
    offset = (window.L - 1) // 2
    if window.side == "left" and window.L % 2 == 0:
        offset += 1
    matrix = np.zeros((length, length))
    for i in range(length):
        for k, weight in enumerate(weights):
            if 0 <= (j := i - offset + k) < length:
                matrix[i, j] = weight
        matrix[i] /= matrix[i].sum()
    for _ in range(SINKHORN_ROUNDS if window.balanced else 0):
        matrix /= matrix.sum(axis=0)
        matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix
