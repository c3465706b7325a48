"""Attackers who know the program, and the success of their guesses.

In: a case, that is releases and their originals, and attackers with options. Out: outcomes.
Not here: other attackers, and reports of what all of them found (`textveil_bench.attack`).
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

__all__ = [
    "DRAWS",
    "PRIORS",
    "Attack",
    "Bayes",
    "Case",
    "Learned",
    "Outcome",
    "PriorName",
    "Report",
    "StaticName",
    "Truth",
    "View",
    "checked",
    "language_model",
    "looks",
    "quiet",
    "static",
    "within",
]
