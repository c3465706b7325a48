"""Attacks: what an adversary gets from releases.

In: a case, that is releases and their originals, and attackers with options. Out: outcomes, and a report of them.
Not here: proofs and tests of what is claimed (`audit`), and how useful a release is (`measure`).
"""

from textveil.attack.case import Case, Truth, View
from textveil.attack.contract import Attack, Outcome
from textveil.attack.report import Findings, attack, load

__all__ = ["Attack", "Case", "Findings", "Outcome", "Truth", "View", "attack", "load"]
