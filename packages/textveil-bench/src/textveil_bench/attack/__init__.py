"""Attacks: how much an adversary recovers from releases, with confidence intervals.

In: a case (releases and their originals), and attackers with options. Out: outcomes, and a report.
Not here: the attackers of `textveil risk`, cases, and the contract of an attack
(`textveil.evaluate.attack`); proofs and tests of claims (`audit`); usefulness (`measure`).
"""

from textveil_bench.attack.reconstruction import compute_cosines
from textveil_bench.attack.report import (
    Findings,
    Rate,
    attack,
    compute_rates,
    load,
    merge_name_outcomes,
)

__all__ = [
    "Findings",
    "Rate",
    "attack",
    "compute_cosines",
    "compute_rates",
    "load",
    "merge_name_outcomes",
]
