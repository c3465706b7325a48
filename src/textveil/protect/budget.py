"""Budget: the epsilon of each protected word.

In: a protection. Out: epsilon per word; 0 means a placeholder, infinity that the word passes, on
record.
Not here: which words are protected (`protection`), and the effect of an epsilon (`mechanism`).
"""

import math
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from textveil.config import GroupOptions, convert_number
from textveil.errors import BudgetError, UnknownName
from textveil.protect.protection import GROUPS, Protection
from textveil.randomness import Values

MIN_BUDGET, MAX_BUDGET = 1e-6, 1e6
"""Range of finite budgets.

Beyond it floating point cannot carry the noise, and no real setting needs it.
"""


class Budget(Protocol):
    """Rule that gives each word its epsilon."""

    def assign(self, protection: Protection) -> Values:
        """Returns epsilon per word, float64 [N]; values at public words are ignored."""
        ...


@dataclass(frozen=True)
class Uniform:
    """Rule with one epsilon for every protected word.

    Args:
        epsilon: 0, infinity, or between 1e-6 and 1e6.

    Raises:
        BudgetError: epsilon is anything else.
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_range(np.array([convert_number(self.epsilon, "epsilon")]), "epsilon")

    def assign(self, protection: Protection) -> Values:
        """Returns the one epsilon for every word, float64 [N]."""
        return np.full(len(protection.public), float(self.epsilon))


FourBudgets = tuple[float, float, float, float]

RULES: dict[str, FourBudgets] = {
    "uniform": (1, 1, 1, 1),
    "heuristic": (2, 1, 4, 3),
    "private-only": (1, 1, math.inf, math.inf),
    "private-low": (math.inf, 1, math.inf, math.inf),
    "all-but-important": (1, 1, math.inf, 1),
}
"""Multiples of the base for the four groups; infinity means passing.

2:1:4:3 is STAMP's (section 3.1); `private-low`, `private-only`, `all-but-important` and `uniform`
are its growing sets of protected groups {2}, {1,2}, {1,2,4} and all (figure 6).
"""

TABLE1: dict[str, FourBudgets] = {
    f"table1.{row}": (100.0 + 50 * row, 50.0 * row, 400.0 + 50 * row, 300.0 + 50 * row)
    for row in range(1, 6)
}
"""Five settings of table 1 in STAMP."""


@dataclass(frozen=True)
class Grouped:
    """Rule with one epsilon for each of STAMP's four groups, in order.

    Any other group gets 0: an unknown group is never protected less.

    Args:
        budgets: for sensitive and important, sensitive, important, and other words.

    Raises:
        BudgetError: one is neither 0, nor infinite, nor between 1e-6 and 1e6.
    """

    budgets: FourBudgets

    def __post_init__(self) -> None:
        if len(self.budgets) != len(GROUPS):
            raise BudgetError(
                f"group budgets must be {len(GROUPS)} numbers, got {len(self.budgets)}"
            )
        check_range(
            np.array([convert_number(budget, "a group budget") for budget in self.budgets]),
            "a group budget",
        )

    @classmethod
    def build(cls, options: GroupOptions, epsilon: float | None) -> Self:
        """Builds the budgets: largest finite one `epsilon`, or base `options.base`.

        Raises:
            UnknownName: there is no such rule.
            BudgetError: the scale is given twice, or not at all.
        """
        # The reference code of STAMP takes kappa = epsilon / pi.
        scale = 1 / math.pi if options.convention == "code" else 1.0
        ratios = _get_ratios(options.budgets)
        if options.has_fixed_budgets:
            if epsilon is not None or options.base is not None:
                raise BudgetError(
                    f"{'groups.base' if epsilon is None else 'epsilon'} has nothing to set, "
                    "because groups.budgets fixes the budget of every group: leave it out, or set "
                    "groups.budgets to a rule such as heuristic"
                )
            return cls(_scale(ratios, scale))
        if (epsilon is None) == (options.base is None):
            raise BudgetError(
                f"groups.budgets={options.budgets} needs either epsilon (its largest budget) or "
                "groups.base"
            )
        base = options.base
        if base is None:
            assert epsilon is not None, "checked above"
            base = epsilon / max(ratio for ratio in ratios if math.isfinite(ratio))
        return cls(_scale(ratios, base * scale))

    def assign(self, protection: Protection) -> Values:
        """Returns the epsilon of every word's group, float64 [N]."""
        epsilons = dict(zip(GROUPS, self.budgets, strict=True))
        return np.array([epsilons.get(label, 0.0) for label in protection.labels], np.float64)[
            protection.group
        ]


def has_importance_budget(options: GroupOptions) -> bool:
    """Says whether important words may get another budget than unimportant ones.

    Raises:
        UnknownName: there is no such rule.
    """
    sensitive_important, sensitive, important, other = _get_ratios(options.budgets)
    return sensitive_important != sensitive or important != other


def _get_ratios(rule: str | FourBudgets) -> FourBudgets:
    if not isinstance(rule, str):
        return rule
    if rule not in RULES | TABLE1:
        raise UnknownName("rule for groups.budgets", rule, [*RULES, *TABLE1])
    return (RULES | TABLE1)[rule]


def _scale(numbers: FourBudgets, factor: float) -> FourBudgets:
    first, second, third, fourth = (number * factor for number in numbers)
    return first, second, third, fourth


def check_range(values: Values, name: str) -> Values:
    """Returns the values if each is 0, infinite, or in range.

    Raises:
        BudgetError: one is negative, NaN or out of range.
    """
    wrong = ~(
        (values == 0) | (values == math.inf) | ((values >= MIN_BUDGET) & (values <= MAX_BUDGET))
    )
    if wrong.any():
        value = float(values[wrong][0])
        raise BudgetError(
            f"{name} must be 0, infinite, or a number from {MIN_BUDGET:g} to {MAX_BUDGET:g}, got "
            f"{value:g}"
        )
    return values
