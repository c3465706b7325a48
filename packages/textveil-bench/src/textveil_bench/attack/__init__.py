"""Attacks: what an adversary gets from releases, with intervals.

In: a case, that is releases and their originals, and attackers with options. Out: outcomes, and a
report of them.
Not here: the attackers that `textveil risk` takes, cases, and what an attack is
(`textveil.evaluate.attack`); proofs
and tests of what is claimed (`audit`), and how useful a release is (`measure`).
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
