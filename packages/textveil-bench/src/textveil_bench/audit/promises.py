"""Promises beside the statement: those for some pairs of words only, and those that a paper makes.

In: a subject whose mechanism is `Restricting` or `Published`. Out: the findings `restricted` and `paper`.
Not here: the claim that the statement prints (`exact`, `joint`, `sampled`).
"""

import numpy as np

from textveil.mechanism import Published, Restricting
from textveil_bench.audit import joint
from textveil_bench.audit.exact import hold, losses, too_much, worlds
from textveil_bench.audit.finding import (
    FLOAT32,
    ROUNDING,
    AuditFinding,
    skipped,
    unchecked,
    unclaimed,
)
from textveil_bench.audit.subject import FEW, NoLaw, Subject, distances, singles

LITTLE = 0.01
"""A paper's claim is also tried with this part of the budget, or the least that the mechanism can promise."""


def restricted(subject: Subject) -> AuditFinding:
    """The promise for some pairs only, against the law of every such pair of a slice."""
    name = "restricted"
    mechanism = subject.mechanism
    if subject.claim.restricted is None or not isinstance(mechanism, Restricting):
        return skipped(name, "nothing is promised for some pairs only")
    worst, excess, claimed, count, wide = 0.0, -np.inf, 0.0, 0, False
    for table, rows in worlds(subject):
        promise = mechanism.claim(table).restricted
        if promise is None:
            continue
        layout = singles(rows).layout
        parameter = subject.configured(table, layout)
        try:
            law = subject.law_under(table, rows, parameter)
        except NoLaw as error:
            return AuditFinding(check=name, evidence="proved", verdict="violated", why=str(error))
        if law is None:
            return unchecked(
                name,
                "the output law has no closed form, and samples are not held against such promises",
            )
        pairs = mechanism.pairs(table, rows) & ~np.eye(len(rows), dtype=bool)
        apart = distances(table, promise, rows)
        epsilon = mechanism.within(table, layout, parameter)
        found, over = hold(losses(law), apart, epsilon, promise.additive, pairs)
        wide |= promise.kind == "metric" and bool(
            (apart[pairs] > promise.diameter * (1 + FLOAT32)).any()
        )
        worst, excess, claimed = (
            max(worst, found),
            max(excess, over),
            max(claimed, float(epsilon.max())),
        )
        count += int((pairs | pairs.T).sum()) // 2
    if not count:
        return unchecked(name, f"no two words of the slice are {subject.claim.restricted.domain}")
    why = f"{count:,} pairs of words are {subject.claim.restricted.domain}{too_much(excess)}"
    if wide:
        why += "; some are farther apart than the diameter that is claimed"
    return AuditFinding(
        check=name,
        evidence="proved",
        verdict="violated" if excess > ROUNDING or wide else "holds",
        claimed=claimed,
        found=worst,
        why=why,
    )


def paper(subject: Subject) -> AuditFinding:
    """What the mechanism's paper claims, against the law: texts of one word on a slice, short texts on a few words.

    A claim that fails is `refuted`. That is no defect here: no statement rests on it. It is tried with the budget
    at hand, and with as little as there can be.
    """
    name = "paper"
    mechanism = subject.mechanism
    if not isinstance(mechanism, Published):
        return skipped(name, "no paper's claim is known")
    worst, excess, where, looked = (0.0, 0.0, 0.0), -np.inf, "", False
    tried = ((table, rows, scale) for table, rows in worlds(subject) for scale in (1.0, LITTLE))
    for table, rows, scale in tried:
        layout = singles(rows).layout
        parameter = (
            subject.configured(table, layout)
            if scale == 1
            else subject.parameter(table, layout, scale)
        )
        published = mechanism.published(table, layout, parameter)
        if published is None:
            continue
        looked = True
        claim, epsilon = published
        if claim.kind == "none":
            return unclaimed(name, f"the paper claims nothing: {claim.reason}")
        law = subject.law_under(table, rows, parameter)
        if law is None:
            return skipped(name, "the output law has no closed form")
        away = ~np.eye(len(rows), dtype=bool)
        found, over = hold(
            losses(law), distances(table, claim, rows), epsilon, claim.additive, away
        )
        claimed = float(epsilon.max())
        worst = max(worst, (found / max(claimed, 1e-12), found, claimed))
        if over > max(excess, ROUNDING):
            where = f"texts of one word, {len(table):,} words" + (
                ", a small budget" if scale < 1 else ""
            )
        excess = max(excess, over)
    if not looked:
        return skipped(name, "with these options it is not the mechanism of a paper")
    table = subject.few
    for change in joint.changes(subject) if joint.without_law(subject) is None else ():
        published = mechanism.published(table, change.layout, change.parameter)
        if published is None:
            continue
        claim, epsilon = published
        found, over = joint.held(
            change, distances(table, claim, np.arange(FEW)), epsilon, claim.additive
        )
        claimed = float(epsilon[change.word])
        worst = max(worst, (found / max(claimed, 1e-12), found, claimed))
        if over > max(excess, ROUNDING):
            where = f"texts of {len(epsilon)} words"
        excess = max(excess, over)
    return AuditFinding(
        check=name,
        evidence="proved",
        verdict="refuted" if excess > ROUNDING else "holds",
        claimed=worst[2],
        found=worst[1],
        why=f"the paper's claim, on which no statement rests here{too_much(excess)} ({where})"
        if excess > ROUNDING
        else "the paper's claim holds for every pair and output that was looked at",
    )
