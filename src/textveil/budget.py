"""The budget: how much every protected word may spend.

In: a protection. Out: epsilon per word; 0 asks for a placeholder, infinity for a recorded pass-through.
Not here: which words are protected (`protect`), and what an epsilon buys (`mechanism`).
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from textveil.config import require_number
from textveil.errors import BudgetError
from textveil.protect import Protection

SMALLEST, LARGEST = 1e-6, 1e6
"""Finite budgets outside are refused: floating point cannot carry the noise, and nobody can mean them."""


class Budget(Protocol):
    """A rule that gives every word its epsilon."""

    def assign(self, protection: Protection) -> NDArray[np.float64]:
        """Epsilon per word, float64 [N]; what it says about public words is not used."""
        ...


@dataclass(frozen=True)
class Uniform:
    """The same epsilon for every protected word.

    Args:
        epsilon: 0, infinity, or between 1e-6 and 1e6.

    Raises:
        BudgetError: epsilon is anything else.
    """

    epsilon: float

    def __post_init__(self) -> None:
        in_range(np.array([require_number(self.epsilon, "epsilon")]), "epsilon")

    def assign(self, protection: Protection) -> NDArray[np.float64]:
        """Epsilon at every word."""
        return np.full(len(protection.public), float(self.epsilon))


def in_range(values: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """The values, if each is 0, infinite, or within what can be carried.

    Raises:
        BudgetError: one is negative, NaN or out of range.
    """
    wrong = ~((values == 0) | (values == math.inf) | ((values >= SMALLEST) & (values <= LARGEST)))
    if wrong.any():
        given = float(values[wrong][0])
        raise BudgetError(f"{name} must be 0, infinite, or a number from {SMALLEST:g} to {LARGEST:g}, got {given:g}")
    return values
