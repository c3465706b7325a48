"""Attackers who know the program, and the success of their guesses.

In: a case, that is releases and their originals, and attackers with options. Out: outcomes.
Not here: other attackers, and reports of what all of them found (`textveil_bench.attack`).
"""

from textveil.evaluate.attack.attack_contract import (
    Attack,
    Outcome,
    ProgressCallback,
    ignore_progress,
)
from textveil.evaluate.attack.attack_input import Case, Truth, View
from textveil.evaluate.attack.bayes import Bayes
from textveil.evaluate.attack.context_channel import is_contextual
from textveil.evaluate.attack.learned import Learned
from textveil.evaluate.attack.posterior import DEFAULT_DRAWS
from textveil.evaluate.attack.prior import (
    PRIORS,
    PriorName,
    StaticName,
    check_prior_name,
    get_static_prior,
    load_language_model,
    restrict_to_group,
)

__all__ = [
    "DEFAULT_DRAWS",
    "PRIORS",
    "Attack",
    "Bayes",
    "Case",
    "Learned",
    "Outcome",
    "PriorName",
    "ProgressCallback",
    "StaticName",
    "Truth",
    "View",
    "check_prior_name",
    "get_static_prior",
    "ignore_progress",
    "is_contextual",
    "load_language_model",
    "restrict_to_group",
]
