"""Exact checks of claims: every triple of words, the certificate, the support.

In: a subject whose mechanism has `log_probs`. Out: findings without chance.
Not here: mechanisms without a closed-form law (`sampled`), and samplers that deviate from their law
(`fit`).
"""

import math
from collections.abc import Iterator

import numpy as np

from textveil.randomness import Flags, Ids, Values
from textveil.table import EmbeddingTable
from textveil_bench.audit.audit_target import (
    SLICE_FULL,
    InvalidLaw,
    Subject,
    build_singles,
    compute_distances,
    split_batches,
)
from textveil_bench.audit.finding import (
    FLOAT64_TOLERANCE,
    AuditFinding,
    make_skipped,
    make_unclaimed,
)


def check_log_ratio(subject: Subject) -> AuditFinding:
    """Checks the largest loss of every triple of words against the claim.

    The loss |ln P(y|x) - ln P(y|x')| must be at most epsilon d(x, x') + additive. The reported
    number is the epsilon per unit of distance that the worst pair needs. The full audit also takes
    a slice of inputs on the whole table, with all its words as outputs.
    """
    name = "log-ratio"
    worst, pairs, excess, claimed = 0.0, 0, -np.inf, 0.0
    for table, rows in list_inputs(subject):
        try:
            law = subject.compute_law(table, rows)
        except InvalidLaw as error:
            return AuditFinding(check=name, evidence="proved", verdict="violated", why=str(error))
        if law is None:
            return make_skipped(
                name, "the output law has no closed form; see `sampled` and `sampler`"
            )
        claim = subject.mechanism.claim(table)
        if claim.kind == "none":
            return make_unclaimed(
                name, f"nothing is claimed: {claim.reason}", float(compute_losses(law).max())
            )
        layout = build_singles(rows).layout
        epsilon = subject.compute_spent(table, layout, subject.compute_parameter(table, layout))
        away = ~np.eye(len(rows), dtype=bool)
        rate, surplus = compare_losses(
            compute_losses(law),
            compute_distances(table, claim, rows),
            epsilon,
            claim.additive,
            away,
        )
        worst, excess, claimed = (
            max(worst, rate),
            max(excess, surplus),
            max(claimed, float(epsilon.max())),
        )
        pairs += len(rows) * (len(rows) - 1) // 2
    return AuditFinding(
        check=name,
        evidence="proved",
        verdict="violated" if excess > FLOAT64_TOLERANCE else "holds",
        claimed=claimed,
        found=worst,
        why=f"texts of one word: every output for {pairs:,} pairs of words{format_excess(excess)}",
    )


def list_inputs(subject: Subject) -> Iterator[tuple[EmbeddingTable, Ids]]:
    """Yields tables and inputs: the slice, in full audits the whole table."""
    yield subject.slice, np.arange(len(subject.slice))
    if not subject.small and subject.slice is not subject.table:
        yield subject.table, subject.choose_rows(SLICE_FULL)


def compare_losses(
    pair_losses: Values, pair_distances: Values, epsilon: Values, additive: float, pairs: Flags
) -> tuple[float, float]:
    """Compares losses [m, m] of pairs with epsilon [m] times distance [m, m] + additive.

    Returns:
        the epsilon that the worst pair needs, and the largest excess over the allowed loss.
    """
    limits = np.maximum(epsilon[:, None], epsilon[None]) * pair_distances + additive
    surpluses = (pair_losses - limits * (1 + FLOAT64_TOLERANCE))[pairs & np.isfinite(limits)]
    return _find_largest_rate((pair_losses - additive)[pairs], pair_distances[pairs]), float(
        surpluses.max(initial=-np.inf)
    )


def format_excess(excess: float) -> str:
    """Formats the remark on a pair that loses too much; else empty."""
    if excess <= FLOAT64_TOLERANCE:
        return ""
    return (
        f"; a pair loses {'infinitely much' if math.isinf(excess) else f'{excess:.3g}'} more than "
        "it may"
    )


def compute_losses(law: Values) -> Values:
    """Computes max over y of |ln P(y|x) - ln P(y|x')|, [m, m].

    Infinite if only one of the two inputs can release y.
    """
    largest = np.zeros((len(law), len(law)))
    for i in range(len(law) - 1):
        with np.errstate(invalid="ignore"):
            gaps = np.abs(law[i + 1 :] - law[i])
        gaps[np.isnan(gaps)] = 0.0  # neither can release it
        largest[i, i + 1 :] = largest[i + 1 :, i] = gaps.max(axis=1)
    return largest


def _find_largest_rate(pair_losses: Values, pair_distances: Values) -> float:
    """Finds the largest loss per unit of distance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = pair_losses / pair_distances
    rates = np.where(np.isnan(rates) | (pair_losses <= FLOAT64_TOLERANCE), 0.0, rates)
    return float(rates.max(initial=0.0))


def check_certificate(subject: Subject) -> AuditFinding:
    """Checks the claimed local DP against ln sum_y max_x P(y|x).

    Local DP is at least that sum over the whole vocabulary, so a smaller claim is refuted. The sum
    is at most ln V, so the check uses a budget whose claim is at most half of that.
    """
    name = "certificate"
    table = subject.slice if subject.small else subject.table
    rows = np.arange(len(table))
    claim = subject.mechanism.claim(table)
    if claim.kind == "none":
        return make_unclaimed(name, f"nothing is claimed: {claim.reason}")
    scale = subject.find_scale(table, math.log(len(table)) / 2)
    claimed = subject.compute_local_dp(table, scale)
    if claimed >= math.log(len(table)):
        return make_skipped(
            name, f"{claimed:.3g} is claimed, and no law of {len(table):,} words can refute that"
        )
    best = np.full(len(table), -np.inf)
    for part in split_batches(rows, len(table)):
        law = subject.compute_law(table, part, scale)
        if law is None:
            return make_skipped(name, "the output law has no closed form; see `sampled`")
        np.maximum(best, law.max(axis=0), out=best)
    bound = float(np.log(np.exp(best).sum()))
    return AuditFinding(
        check=name,
        evidence="proved",
        verdict="violated"
        if bound > claimed * (1 + FLOAT64_TOLERANCE) + FLOAT64_TOLERANCE
        else "holds",
        claimed=claimed,
        found=bound,
        why=f"texts of one word, {len(table):,} words: local DP is at least ln of the sum of best guesses",
    )


def has_common_support(law: Values) -> bool:
    """True if all inputs can release the same words."""
    possible = np.isfinite(law)
    return bool((possible == possible[0]).all())


def compute_slice_law(subject: Subject) -> tuple[EmbeddingTable, Values | None]:
    """Computes the laws of all words of the slice."""
    table = subject.slice
    return table, subject.compute_law(table, np.arange(len(table)))
