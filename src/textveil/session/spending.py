"""Spending of a release, in whole millionths of an epsilon.

In: bounds of drawn words, statements about whole texts. Out: `Spend`.
Not here: which accounts there are and what they may spend (`sql.ledger`), and the bounds
(`pipeline`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from textveil.errors import GuaranteeError
from textveil.guarantee import MICRO, TextGuarantee

__all__ = ["ALL_TABLES", "MICRO", "Spend", "convert_to_micros", "spend_texts", "sum_spends"]

ALL_TABLES = "all tables"
"""Table name of the account that sums all tables of a subject.

That account counts in local DP.
"""


LIBRARY_DIGITS = 16
"""Digits of a library's digest in the name of its accounts."""


def convert_to_micros(epsilon: float) -> int:
    """Converts a finite epsilon to millionths, rounded up."""
    # Exact, because a product of floats may be rounded down.
    return math.ceil(Fraction(epsilon) * MICRO)


@dataclass(frozen=True, kw_only=True)
class Spend:
    """Spending of one release, for one metric and table.

    Attributes:
        metric: the unit of distance that the epsilon is per; "ldp" for local DP, "central" for a
            noisy count of whole texts.
        table: the table whose words are protected, or the library of whole texts.
        epsilon: the sum over the drawn words, in millionths.
        ldp: the equivalent local DP, summed, in millionths.
        words: number of drawn words; of whole texts the number of units that the bound is for.
        infinite: reason why no finite bound holds; "" where one does. Then the sums are 0.
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

    def subtract(self, charges: "Iterable[Spend]") -> "Spend | None":
        """Returns the part that is not charged yet; None if all is.

        Args:
            charges: earlier charges for the same release, of any metric and table.
        """
        matching = [
            spend for spend in charges if (spend.metric, spend.table) == (self.metric, self.table)
        ]
        if self.infinite:
            return None if any(spend.infinite for spend in matching) else self
        names = ("epsilon", "ldp", "words")
        sums = {name: sum(getattr(spend, name) for spend in matching) for name in names}
        remainder = {name: max(0, getattr(self, name) - spent) for name, spent in sums.items()}
        return replace(self, **remainder) if any(remainder.values()) else None


def sum_spends(spends: Sequence[Spend]) -> Spend:
    """Sums the spending of one release in local DP.

    The result is for the account of all tables (`ALL_TABLES`).
    """
    infinite = next((spend.infinite for spend in spends if spend.infinite), "")
    ldp = 0 if infinite else sum(spend.ldp for spend in spends)
    words = sum(spend.words for spend in spends)
    return Spend(
        metric="ldp", table=ALL_TABLES, epsilon=ldp, ldp=ldp, words=words, infinite=infinite
    )


def spend_texts(guarantee: TextGuarantee, units: int = 1) -> Spend:
    """Returns what a subject spends with whole texts.

    A central count costs epsilon in its own account, and twice that in local DP: there another
    text in place of a counted one is the neighbour.

    Args:
        guarantee: the statement about one release.
        units: how many documents or sentences of the subject are in it; 1 where the unit is a
            subject, whose bound is for all of them.

    Raises:
        GuaranteeError: the statement is about several releases.
    """
    if guarantee.releases > 1:
        raise GuaranteeError("each release is charged by itself, before it is drawn")
    if units < 1 or (guarantee.unit == "subject" and units > 1):
        raise ValueError("a subject has at least one unit, and is one itself")
    metric = "central" if guarantee.way == "counts" else "ldp"
    table = f"library {guarantee.library.digest[:LIBRARY_DIGITS]}"
    seed = "the draws follow from a seed" if guarantee.repeatable else ""
    infinite = "; ".join(guarantee.reasons) or seed
    if infinite:
        return Spend(metric=metric, table=table, epsilon=0, ldp=0, words=units, infinite=infinite)
    return Spend(
        metric=metric,
        table=table,
        epsilon=units * convert_to_micros(guarantee.epsilon),
        ldp=units * convert_to_micros(guarantee.epsilon_ldp),
        words=units,
    )
