"""What a release spends, in whole millionths of an epsilon.

In: bounds of drawn words. Out: `Spend`.
Not here: which accounts there are and what they may spend (`sql.ledger`), and the bounds (`pipeline`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from textveil.guarantee import MICRO

__all__ = ["ALL", "MICRO", "Spend", "micro", "total"]

ALL = "all tables"
"""The table of an account that counts the sum of all others of its subject, in local DP."""


def micro(epsilon: float) -> int:
    """A finite epsilon in millionths, rounded up."""
    return math.ceil(Fraction(epsilon) * MICRO)


@dataclass(frozen=True, kw_only=True)
class Spend:
    """What one release spends of one kind.

    Attributes:
        metric: what its epsilon is per unit of; "ldp" for local DP.
        table: the table whose words are protected.
        epsilon: the sum over the drawn words, in millionths.
        ldp: the sum of the local DP that it amounts to, in millionths.
        words: how many words were drawn.
        infinite: why no finite bound holds; "" where one does. Then the sums are 0.
    """

    metric: str
    table: str
    epsilon: int
    ldp: int
    words: int
    infinite: str = ""

    def __post_init__(self) -> None:
        if min(self.epsilon, self.ldp, self.words) < 0:
            raise ValueError("a spend must not be negative")

    def beyond(self, charged: "Iterable[Spend]") -> "Spend | None":
        """What of this is not charged yet; None where all of it is.

        Args:
            charged: what was charged for the same release, of any kind.
        """
        same = [each for each in charged if (each.metric, each.table) == (self.metric, self.table)]
        if self.infinite:
            return None if any(each.infinite for each in same) else self
        names = ("epsilon", "ldp", "words")
        sums = {name: sum(getattr(each, name) for each in same) for name in names}
        rest = {name: max(0, getattr(self, name) - spent) for name, spent in sums.items()}
        return replace(self, **rest) if any(rest.values()) else None


def total(spends: Sequence[Spend]) -> Spend:
    """What several spends of one release come to, in local DP, for the account of the sum."""
    infinite = next((each.infinite for each in spends if each.infinite), "")
    ldp = 0 if infinite else sum(each.ldp for each in spends)
    words = sum(each.words for each in spends)
    return Spend(metric="ldp", table=ALL, epsilon=ldp, ldp=ldp, words=words, infinite=infinite)
