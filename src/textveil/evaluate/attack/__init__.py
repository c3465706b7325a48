"""Attacks: what an adversary gets from releases.

In: a case, that is releases and their originals, and attackers with options. Out: outcomes, and a report of them.
Not here: proofs and tests of what is claimed (`audit`), and how useful a release is (`measure`).
"""

from textveil.evaluate.attack.bayes import Bayes
from textveil.evaluate.attack.case import Case, Truth, View
from textveil.evaluate.attack.context import looks
from textveil.evaluate.attack.contract import Attack, Outcome, Report, quiet
from textveil.evaluate.attack.learned import Learned
from textveil.evaluate.attack.posterior import DRAWS
from textveil.evaluate.attack.prior import (
    PRIORS,
    PriorName,
    StaticName,
    checked,
    language_model,
    static,
    within,
)
from textveil.evaluate.attack.reconstruction import cosines
from textveil.evaluate.attack.report import CHOOSING, Findings, Rate, attack, load, of_names, rates

__all__ = [
    "CHOOSING",
    "DRAWS",
    "PRIORS",
    "Attack",
    "Bayes",
    "Case",
    "Findings",
    "Learned",
    "Outcome",
    "PriorName",
    "Rate",
    "Report",
    "StaticName",
    "Truth",
    "View",
    "attack",
    "checked",
    "cosines",
    "language_model",
    "load",
    "looks",
    "of_names",
    "quiet",
    "rates",
    "static",
    "within",
]
