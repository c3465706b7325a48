"""Loss histograms of documents and subjects, without saying which lost what.

In: statements of texts. Out: `LossHistogram`, which add up in any order, so that their size does
not grow with the texts.
Not here: the statement of a corpus (`statement`), and what one text loses (`guarantee`).
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from textveil.guarantee import MICRO, Guarantee, TextGuarantee
from textveil.randomness import Ints, Values

LOSS_DIGITS = 3
"""The leading digits of a counted amount; the rest is rounded up."""


def _read_losses(guarantee: Guarantee) -> tuple[Values, Ints]:
    """Returns the local DP of words, and their numbers.

    Infinite where no bound holds.
    """
    spent, claim = guarantee.epsilon_per_word, guarantee.claim
    bounds = (
        np.where(spent > 0, math.inf, 0.0) if claim.kind == "none" else claim.compute_ldp(spent)
    )
    counts = np.ones(len(spent), np.int64) if guarantee.counts is None else guarantee.counts
    return np.where(np.isinf(spent), math.inf, bounds), counts


def compute_loss(guarantee: Guarantee | TextGuarantee) -> tuple[int, int]:
    """Computes the total loss of one text.

    Returns:
        The sum over its words, or over its sentences where whole texts are released, of their local
            DP in millionths, rounded up; and for how many words no bound holds.
    """
    if isinstance(guarantee, TextGuarantee):
        units = 1 if guarantee.sentences is None else guarantee.sentences.total
        return _round_to_micro(guarantee.epsilon_ldp * units), 0
    values, counts = _read_losses(guarantee)
    finite = np.isfinite(values)
    return _round_to_micro(float(values[finite] @ counts[finite])), int(counts[~finite].sum())


def count_word_losses(guarantee: Guarantee) -> "LossHistogram":
    """Counts the loss of each protected word."""
    histogram = LossHistogram()
    for value, many in zip(*(array.tolist() for array in _read_losses(guarantee)), strict=True):
        histogram.counts[0 if math.isinf(value) else _round_to_micro(value)] += many
        histogram.unbounded += many if math.isinf(value) else 0
    histogram.largest = max(histogram.counts, default=0)
    return histogram


@dataclass(kw_only=True)
class LossHistogram:
    """A histogram of losses.

    Attributes:
        counts: how many there are of each amount, in millionths of local DP, rounded up to
            `LOSS_DIGITS` digits.
        largest: the largest amount, in millionths.
        unbounded: how many have a word, or are one, for which no bound holds; what their other
            words lose is among the amounts.
    """

    counts: Counter[int] = field(default_factory=Counter)
    largest: int = 0
    unbounded: int = 0

    def add(self, amounts: Iterable[tuple[int, int]]) -> None:
        """Counts losses: an amount, and the number of unbounded words."""
        for amount, words in amounts:
            self.counts[_round_up(amount)] += 1
            self.largest = max(self.largest, amount)
            self.unbounded += words > 0

    def merge(self, other: Self) -> None:
        """Adds the counts of another histogram."""
        self.counts.update(other.counts)
        self.largest, self.unbounded = (
            max(self.largest, other.largest),
            self.unbounded + other.unbounded,
        )

    @property
    def number(self) -> int:
        """The number of losses counted."""
        return sum(self.counts.values())

    @property
    def median(self) -> int:
        """An upper bound on the median loss, in millionths.

        0 where nothing was counted.
        """
        rank = (self.number + 1) // 2
        for amount in sorted(self.counts):
            rank -= self.counts[amount]
            if rank <= 0:
                # Amounts are rounded up, so the last one may lie above the exact largest.
                return min(amount, self.largest)
        return 0

    def to_json(self) -> dict[str, Any]:
        """Returns the histogram's summary for a statement, in epsilons.

        No amount where some have no bound.
        """
        return {
            "number": self.number,
            "largest_epsilon_ldp": None if self.unbounded else self.largest / MICRO,
            "median_epsilon_ldp": None if self.unbounded else self.median / MICRO,
            "without_bound": self.unbounded,
        }

    def pack(self) -> dict[str, Any]:
        """Returns the histogram as plain data, for `unpack`."""
        return {
            "counts": sorted(self.counts.items()),
            "largest": self.largest,
            "open": self.unbounded,
        }

    @classmethod
    def unpack(cls, packed: dict[str, Any]) -> Self:
        """Reads a histogram from the output of `pack`."""
        counts = Counter({int(amount): int(n) for amount, n in packed["counts"]})
        return cls(counts=counts, largest=packed["largest"], unbounded=packed["open"])


def _round_to_micro(epsilon: float) -> int:
    """Rounds a finite epsilon up to millionths.

    But for floating-point error.
    """
    return math.ceil(round(epsilon * MICRO, 3))


def _round_up(amount: int) -> int:
    """Rounds an amount up to `LOSS_DIGITS` leading digits."""
    unit = int(10 ** max(0, len(str(amount)) - LOSS_DIGITS))
    return -(-amount // unit) * unit
