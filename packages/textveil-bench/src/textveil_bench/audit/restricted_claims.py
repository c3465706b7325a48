"""Claims beside the statement: for some pairs only, and of papers.

In: a subject whose mechanism is `Restricting` or `Published`. Out: the findings `restricted` and
`paper`.
Not here: the claim that the statement prints (`exact`, `joint_law`, `sampled`).
"""

import numpy as np

from textveil.mechanism import Published, Restricting
from textveil_bench.audit import joint_law
from textveil_bench.audit.audit_target import (
    TINY_TABLE_WORDS,
    InvalidLaw,
    Subject,
    build_singles,
    compute_distances,
)
from textveil_bench.audit.exact import compare_losses, compute_losses, format_excess, list_inputs
from textveil_bench.audit.finding import (
    FLOAT32_TOLERANCE,
    FLOAT64_TOLERANCE,
    AuditFinding,
    make_skipped,
    make_unchecked,
    make_unclaimed,
)

SMALL_BUDGET = 0.01
"""Share of the budget at which a paper's claim is also tested.

Or the smallest budget that the mechanism can keep to.
"""


def check_restricted(subject: Subject) -> AuditFinding:
    """Checks the claim for some pairs against the laws of a slice."""
    name = "restricted"
    mechanism = subject.mechanism
    if subject.claim.restricted is None or not isinstance(mechanism, Restricting):
        return make_skipped(name, "nothing is promised for some pairs only")
    worst, excess, claimed, count, wide = 0.0, -np.inf, 0.0, 0, False
    for table, rows in list_inputs(subject):
        promise = mechanism.claim(table).restricted
        if promise is None:
            continue
        layout = build_singles(rows).layout
        parameter = subject.get_parameter(table, layout)
        try:
            law = subject.compute_law_at(table, rows, parameter)
        except InvalidLaw as error:
            return AuditFinding(check=name, evidence="proved", verdict="violated", why=str(error))
        if law is None:
            return make_unchecked(
                name,
                (
                    "the output law has no closed form, and samples are not compared with such "
                    "promises"
                ),
            )
        pairs = mechanism.mark_restricted_pairs(table, rows) & ~np.eye(len(rows), dtype=bool)
        pair_distances = compute_distances(table, promise, rows)
        epsilon = mechanism.compute_restricted_epsilon(table, layout, parameter)
        rate, surplus = compare_losses(
            compute_losses(law), pair_distances, epsilon, promise.additive, pairs
        )
        wide |= promise.kind == "metric" and bool(
            (pair_distances[pairs] > promise.diameter * (1 + FLOAT32_TOLERANCE)).any()
        )
        worst, excess, claimed = (
            max(worst, rate),
            max(excess, surplus),
            max(claimed, float(epsilon.max())),
        )
        count += int((pairs | pairs.T).sum()) // 2
    if not count:
        return make_unchecked(
            name, f"no two words of the slice are {subject.claim.restricted.domain}"
        )
    why = f"{count:,} pairs of words are {subject.claim.restricted.domain}{format_excess(excess)}"
    if wide:
        why += "; some are farther apart than the diameter that is claimed"
    return AuditFinding(
        check=name,
        evidence="proved",
        verdict="violated" if excess > FLOAT64_TOLERANCE or wide else "holds",
        claimed=claimed,
        found=worst,
        why=why,
    )


def check_paper(subject: Subject) -> AuditFinding:
    """Checks the paper's claim against the law of one-word and short texts.

    A claim that fails is `refuted`. That is no defect here: no statement relies on it. It is tested
    with the given budget, and with a very small one.
    """
    name = "paper"
    mechanism = subject.mechanism
    if not isinstance(mechanism, Published):
        return make_skipped(name, "no paper's claim is known")
    worst, excess, where, has_claim = (0.0, 0.0, 0.0), -np.inf, "", False
    trials = (
        (table, rows, scale)
        for table, rows in list_inputs(subject)
        for scale in (1.0, SMALL_BUDGET)
    )
    for table, rows, scale in trials:
        layout = build_singles(rows).layout
        parameter = (
            subject.get_parameter(table, layout)
            if scale == 1
            else subject.compute_parameter(table, layout, scale)
        )
        published = mechanism.build_paper_claim(table, layout, parameter)
        if published is None:
            continue
        has_claim = True
        claim, epsilon = published
        if claim.kind == "none":
            return make_unclaimed(name, f"the paper claims nothing: {claim.reason}")
        law = subject.compute_law_at(table, rows, parameter)
        if law is None:
            return make_skipped(name, "the output law has no closed form")
        away = ~np.eye(len(rows), dtype=bool)
        rate, surplus = compare_losses(
            compute_losses(law),
            compute_distances(table, claim, rows),
            epsilon,
            claim.additive,
            away,
        )
        claimed = float(epsilon.max())
        worst = max(worst, (rate / max(claimed, 1e-12), rate, claimed))
        if surplus > max(excess, FLOAT64_TOLERANCE):
            where = f"texts of one word, {len(table):,} words" + (
                ", a small budget" if scale < 1 else ""
            )
        excess = max(excess, surplus)
    if not has_claim:
        return make_skipped(name, "with these options it is not the mechanism of a paper")
    table = subject.tiny_table
    for change in (
        joint_law.compute_changes(subject) if joint_law.explain_missing_law(subject) is None else ()
    ):
        published = mechanism.build_paper_claim(table, change.layout, change.parameter)
        if published is None:
            continue
        claim, epsilon = published
        rate, surplus = joint_law.compare_change(
            change,
            compute_distances(table, claim, np.arange(TINY_TABLE_WORDS)),
            epsilon,
            claim.additive,
        )
        claimed = float(epsilon[change.word])
        worst = max(worst, (rate / max(claimed, 1e-12), rate, claimed))
        if surplus > max(excess, FLOAT64_TOLERANCE):
            where = f"texts of {len(epsilon)} words"
        excess = max(excess, surplus)
    return AuditFinding(
        check=name,
        evidence="proved",
        verdict="refuted" if excess > FLOAT64_TOLERANCE else "holds",
        claimed=worst[2],
        found=worst[1],
        why=f"the paper's claim fails; no statement here relies on it{format_excess(excess)} ({where})"
        if excess > FLOAT64_TOLERANCE
        else "the paper's claim holds for every tested pair and output",
    )
