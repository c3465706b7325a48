"""Loss histograms of documents and subjects, without saying which lost what.

In: statements of texts. Out: `Amounts`, which add up in any order, so that their size does not grow
with the texts.
Not here: the statement of a corpus (`statement`), and what one text loses (`guarantee`).
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from textveil.guarantee import MICRO, Guarantee
from textveil.randomness import Ints, Values

DIGITS = 3
"""The leading digits of a counted amount; the rest is rounded up."""


def _read_losses(guarantee: Guarantee) -> tuple[Values, Ints]:
    """Returns the local DP of words, and their numbers.

    Infinite where no bound holds.
    """
    spent, claim = guarantee.epsilon_per_word, guarantee.claim
    bounds = np.where(spent > 0, math.inf, 0.0) if claim.kind == "none" else claim.ldp(spent)
    counts = np.ones(len(spent), np.int64) if guarantee.counts is None else guarantee.counts
    return np.where(np.isinf(spent), math.inf, bounds), counts


def loss(guarantee: Guarantee) -> tuple[int, int]:
    """Computes the total loss of one text.

    Returns:
        The sum over its words of their local DP in millionths, rounded up; and for how many words
            no bound holds.
    """
    values, counts = _read_losses(guarantee)
    finite = np.isfinite(values)
    return _to_micro(float(values[finite] @ counts[finite])), int(counts[~finite].sum())


def per_word(guarantee: Guarantee) -> "Amounts":
    """Counts the loss of each protected word."""
    made = Amounts()
    for value, many in zip(*(each.tolist() for each in _read_losses(guarantee)), strict=True):
        made.counts[0 if math.isinf(value) else _to_micro(value)] += many
        made.open += many if math.isinf(value) else 0
    made.largest = max(made.counts, default=0)
    return made


@dataclass(kw_only=True)
class Amounts:
    """A histogram of losses.

    Attributes:
        counts: how many there are of each amount, in millionths of local DP, rounded up to `DIGITS`
            digits.
        largest: the largest amount, in millionths.
        open: how many have a word, or are one, for which no bound holds; what their other words
            lose is among the amounts.
    """

    counts: Counter[int] = field(default_factory=Counter)
    largest: int = 0
    open: int = 0

    def add(self, amounts: Iterable[tuple[int, int]]) -> None:
        """Counts losses: an amount, and the number of unbounded words."""
        for amount, words in amounts:
            self.counts[_round_up(amount)] += 1
            self.largest = max(self.largest, amount)
            self.open += words > 0

    def merge(self, other: Self) -> None:
        """Adds the counts of another histogram."""
        self.counts.update(other.counts)
        self.largest, self.open = max(self.largest, other.largest), self.open + other.open

    @property
    def number(self) -> int:
        """The number of losses counted."""
        return sum(self.counts.values())

    @property
    def median(self) -> int:
        """An upper bound on the median loss, in millionths.

        0 where nothing was counted.
        """
        left = (self.number + 1) // 2
        for amount in sorted(self.counts):
            left -= self.counts[amount]
            if left <= 0:
                return min(amount, self.largest)
        return 0

    def to_json(self) -> dict[str, Any]:
        """Returns the histogram's summary for a statement, in epsilons.

        No amount where some have no bound.
        """
        return {
            "number": self.number,
            "largest_epsilon_ldp": None if self.open else self.largest / MICRO,
            "median_epsilon_ldp": None if self.open else self.median / MICRO,
            "without_bound": self.open,
        }

    def pack(self) -> dict[str, Any]:
        """Returns the histogram as plain data, for `unpack`."""
        return {"counts": sorted(self.counts.items()), "largest": self.largest, "open": self.open}

    @classmethod
    def unpack(cls, packed: dict[str, Any]) -> Self:
        """Reads a histogram from the output of `pack`."""
        counts = Counter({int(amount): int(n) for amount, n in packed["counts"]})
        return cls(counts=counts, largest=packed["largest"], open=packed["open"])


def _to_micro(epsilon: float) -> int:
    """Rounds a finite epsilon up to millionths.

    But for floating-point error.
    """
    return math.ceil(round(epsilon * MICRO, 3))


def _round_up(amount: int) -> int:
    """Rounds an amount up to `DIGITS` leading digits."""
    unit = int(10 ** max(0, len(str(amount)) - DIGITS))
    return -(-amount // unit) * unit
