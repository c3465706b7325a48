"""What a check found: what was claimed, what is proved or measured, and the verdict.

In: numbers and a reason. Out: `AuditFinding`, also as plain data.
Not here: the checks (the modules beside this one), and how findings are printed (`cli`).
"""

import math
from dataclasses import asdict, dataclass
from typing import Literal

Evidence = Literal["proved", "lower bound", "observed"]
Verdict = Literal[
    "holds", "violated", "wasteful", "refuted", "no claim", "not applicable", "unchecked"
]

ALARM_RATE = 1e-6
"""The probability with which one check accuses a mechanism that keeps its claim; all its comparisons share it."""

FLOAT64_TOLERANCE = 1e-9
"""How far double precision may carry an exact comparison."""

FLOAT32_TOLERANCE = 1e-6
"""Vectors are held in single precision: how far a distance may be off."""


@dataclass(frozen=True, kw_only=True)
class AuditFinding:
    """The outcome of one check of one mechanism.

    Attributes:
        check: its name, one of `CHECKS`.
        evidence: `proved`: computed exactly from the law, no chance involved; `lower bound`: from
            samples, true but
            with probability `alarm`; `observed`: something was seen to happen, or not.
        verdict: `holds`, `is_violated`, `wasteful` (the claim holds, but something is charged that
            buys nothing),
            `refuted` (what a paper claims is false; no statement rests on it), `no claim` (nothing
            is promised, so
            nothing can be broken), `not applicable` (the audit has a reason of its own), or
            `unchecked` (the mechanism
            or its claim left no way to look, so nobody should rely on it).
        why: one line for people.
        claimed: the number that is promised, in the unit of `why`; None where there is none.
        found: the number that was found.
        alarm: the probability of a verdict `is_violated` for a mechanism that keeps its claim; 0
            for exact checks.
        mechanism: its name.
        seconds: how long the check took.
    """

    check: str
    evidence: Evidence
    verdict: Verdict
    why: str
    claimed: float | None = None
    found: float | None = None
    alarm: float = 0.0
    mechanism: str = ""
    seconds: float = 0.0

    @property
    def is_violated(self) -> bool:
        """Whether the mechanism's own claim is refuted."""
        return self.verdict == "violated"

    @property
    def has_failed(self) -> bool:
        """Whether the mechanism's own claim is refuted, or cannot be checked at all."""
        return self.verdict in ("violated", "unchecked")

    def to_json(self) -> dict[str, object]:
        """All fields as JSON types; an infinite number is the string "infinite"."""
        return {
            name: "infinite" if isinstance(value, float) and math.isinf(value) else value
            for name, value in asdict(self).items()
        }


def make_skipped(check: str, why: str) -> AuditFinding:
    """A check that does not apply."""
    return AuditFinding(check=check, evidence="observed", verdict="not applicable", why=why)


def make_unchecked(check: str, why: str) -> AuditFinding:
    """A check that the mechanism or its claim makes impossible."""
    return AuditFinding(check=check, evidence="observed", verdict="unchecked", why=why)


def make_unclaimed(check: str, why: str, value: float | None = None) -> AuditFinding:
    """A check of a mechanism that promises nothing."""
    return AuditFinding(check=check, evidence="observed", verdict="no claim", why=why, found=value)
