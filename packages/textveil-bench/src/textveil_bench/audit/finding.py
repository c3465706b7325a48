"""Findings: the claim, the proved or measured value, and the verdict.

In: numbers and a reason. Out: `AuditFinding`, also as plain data.
Not here: the checks (the other modules of this package), and the printing of findings (`cli`).
"""

import math
from dataclasses import asdict, dataclass
from typing import Literal

Evidence = Literal["proved", "lower bound", "observed"]
Verdict = Literal[
    "holds", "violated", "wasteful", "refuted", "no claim", "not applicable", "unchecked"
]

ALARM_RATE = 1e-6
"""The false-alarm probability of one check, shared by all its comparisons."""

FLOAT64_TOLERANCE = 1e-9
"""Allowed rounding error of an exact comparison in double precision."""

FLOAT32_TOLERANCE = 1e-6
"""Allowed rounding error of distances, because vectors are in single precision."""


@dataclass(frozen=True, kw_only=True)
class AuditFinding:
    """The outcome of one check of one mechanism.

    Attributes:
        check: its name, one of `CHECKS`.
        evidence: `proved`: computed exactly from the law; `lower bound`: from samples, wrong with
            probability `alarm`; `observed`: a behaviour that was or was not seen.
        verdict: `holds`, `violated`, `wasteful` (the claim holds, but part of the charge buys
            nothing), `refuted` (a paper's claim is false; no statement relies on it), `no claim`
            (nothing is promised), `not applicable` (the audit has a reason of its own), or
            `unchecked` (the mechanism or its claim could not be tested, so do not rely on it).
        why: one line for people.
        claimed: the promised number, in the unit of `why`; None without one.
        found: the measured number.
        alarm: the probability of a verdict `violated` for a mechanism that keeps its claim; 0 for
            exact checks.
        mechanism: its name.
        seconds: duration of the check.
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
        """True if the mechanism's own claim is refuted."""
        return self.verdict == "violated"

    @property
    def has_failed(self) -> bool:
        """True if the mechanism's own claim is refuted or cannot be checked."""
        return self.verdict in ("violated", "unchecked")

    def to_json(self) -> dict[str, object]:
        """Converts all fields to JSON types; infinite numbers become "infinite"."""
        return {
            name: "infinite" if isinstance(value, float) and math.isinf(value) else value
            for name, value in asdict(self).items()
        }


def make_skipped(check: str, why: str) -> AuditFinding:
    """Builds the finding of a check that does not apply."""
    return AuditFinding(check=check, evidence="observed", verdict="not applicable", why=why)


def make_unchecked(check: str, why: str) -> AuditFinding:
    """Builds the finding of a check that the mechanism makes impossible."""
    return AuditFinding(check=check, evidence="observed", verdict="unchecked", why=why)


def make_unclaimed(check: str, why: str, value: float | None = None) -> AuditFinding:
    """Builds the finding of a mechanism that promises nothing."""
    return AuditFinding(check=check, evidence="observed", verdict="no claim", why=why, found=value)
