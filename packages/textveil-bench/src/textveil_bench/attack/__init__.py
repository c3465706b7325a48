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
from textveil_bench.attack.whole_texts import (
    TEXT_ATTACKS,
    TextAttack,
    TextCase,
    attack_texts,
    find_text_attack,
    load_text_attack,
)
from textveil_bench.attack.worlds import WorldPair, bound_accuracy, bound_advantage

__all__ = [
    "TEXT_ATTACKS",
    "Findings",
    "Rate",
    "TextAttack",
    "TextCase",
    "WorldPair",
    "attack",
    "attack_texts",
    "bound_accuracy",
    "bound_advantage",
    "compute_cosines",
    "compute_rates",
    "find_text_attack",
    "load",
    "load_text_attack",
    "merge_name_outcomes",
]
