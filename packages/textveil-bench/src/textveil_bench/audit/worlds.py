"""Audits releases of whole texts: bounds the likelihood ratio of two worlds.

In: pairs of neighbours, each with its program and the epsilon that it promises. Out: a finding for
each.
Not here: the scores (`attack.worlds`), and audits of mechanisms over words (`run`).

Any program can be audited: texts in the place of texts, reports, noisy counts, or a corpus of which
an attacker counts what he likes. The ratio is judged and not the advantage, which would not find a
replacement sold at the price of an addition.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from textveil.randomness import Values
from textveil_bench.attack.worlds import WorldPair, draw_scores
from textveil_bench.audit.finding import ALARM_RATE, AuditFinding, make_unclaimed
from textveil_bench.audit.sampled import bound_log_ratio, choose_event
from textveil_bench.intervals import CONFIDENCE_LEVEL, clopper_pearson

CHECK = "worlds"
"""The name of the check."""

TRIALS = 40_000
"""Releases of each world, unless another number is asked for."""


def audit_worlds(
    pairs: Sequence[WorldPair], *, trials: int = TRIALS, alarm: float = ALARM_RATE
) -> Iterator[AuditFinding]:
    """Checks for each pair that no event is likelier by more than exp(epsilon).

    In both directions. The event is chosen on half of the releases, and counted on the other; the
    verdict is wrong about an honest program with probability `alarm` at most.

    Args:
        pairs: neighbours, each with its program.
        trials: releases of each world.
        alarm: the false-alarm probability of each finding.

    Yields:
        One finding per pair; `found` is the lower bound of the loss, and `why` has the 95% interval
            of the worse event.
    """
    for pair in pairs:
        start = time.perf_counter()
        finding = _audit_pair(pair, trials, alarm)
        yield replace(finding, mechanism=pair.name, seconds=round(time.perf_counter() - start, 3))


def _audit_pair(pair: WorldPair, trials: int, alarm: float) -> AuditFinding:
    if not math.isfinite(pair.epsilon):
        return make_unclaimed(CHECK, "nothing is claimed: epsilon is infinite")
    training, judged = draw_scores(pair, trials)
    worst, interval = -math.inf, (0.0, 0.0)
    for sign, order in ((1, [1, 0]), (-1, [0, 1])):
        cut = choose_event(sign * training[order], alarm / 2)
        scores = sign * judged[order]
        if (bound := bound_log_ratio(scores, cut, alarm / 2)) > worst:
            worst, interval = bound, _find_interval(scores, cut)
    found = max(0.0, worst)
    return AuditFinding(
        check=CHECK,
        evidence="lower bound",
        verdict="violated" if found > pair.epsilon else "holds",
        claimed=pair.epsilon,
        found=found,
        alarm=alarm,
        why=f"ln ratio of the worse event {interval[0]:.2f} to {interval[1]:.2f} at 95%",
    )


def _find_interval(scores: Values, cut: float) -> tuple[float, float]:
    """Returns the ends of ln P(E | one) - ln P(E | other), together at 95%."""
    hits = (scores >= cut - 1e-12).sum(axis=1).tolist()
    # each of the two probabilities fails with half of what both may
    level = 1 - (1 - CONFIDENCE_LEVEL) / 2
    one, other = (clopper_pearson(count, scores.shape[1], level) for count in hits)
    with np.errstate(divide="ignore"):
        logs = np.log([one, other])
    return float(logs[0, 0] - logs[1, 1]), float(logs[0, 1] - logs[1, 0])
