"""Claims: what a mechanism promises on a table, apart from any text.

In: what a mechanism knows of itself. Out: `Claim`, and `Restricted` for promises between some words only.
Not here: the statement about a released text (`guarantee`), and the proofs (docs/understand/guarantees.md).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np

from textveil.randomness import Values

Kind = Literal["metric", "ldp", "none"]


FLOATING_POINT = "the vectors are drawn and compared in floating point; only words are released, never a vector"


@dataclass(frozen=True, kw_only=True)
class Restricted:
    """A promise for some pairs of words only. It stands beside the claim and never takes its place.

    Attributes:
        domain: the pairs that it is for, as "two words of one group".
        kind: `metric` or `ldp`, as in `Claim`.
        metric: the distance of a metric promise.
        diameter: the largest distance between two words of the domain in that metric.
        additive: what a metric promise loses besides, whatever the distance.
    """

    domain: str
    kind: Literal["metric", "ldp"]
    metric: str | None = None
    diameter: float = math.inf
    additive: float = 0.0

    def ldp(self, epsilon: float) -> float:
        """Local DP between two words of the domain, of a word that spends so much."""
        return epsilon if self.kind == "ldp" or epsilon == 0 else epsilon * self.diameter + self.additive


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a mechanism with its options promises on a table, apart from any text.

    Attributes:
        mechanism: its registered name.
        kind: `metric` (epsilon per unit of distance), `ldp` (epsilon for any two words), or `none`.
        metric: the distance of a metric claim: `chord`, `euclidean` or `l1`.
        table: the table whose rows are the inputs.
        diameter: the largest distance between two rows in that metric; turns a metric claim into local DP.
        additive: what is lost besides, whatever the distance (rounding; the budget of a radius).
        options: the mechanism's parts and their options, as plain data: the claim follows from them.
        view: says of a projection in how many axes the diameter was taken ("in 32 axes").
        draws: whether anything is drawn at random.
        parameter: the mechanism's own parameter, by the name that the papers use.
        reason: why the kind is `none`.
        assumptions: what the proof needs beyond the text's mask.
        caveats: what a reader should know before comparing.
        restricted: a promise for some pairs only, whatever the kind.
        alone: whether the law of a position depends on the word there alone, and on no other word.
    """

    mechanism: str
    kind: Kind
    metric: str | None = None
    table: str
    diameter: float = math.inf
    options: Mapping[str, object] = field(default_factory=dict)
    view: str = ""
    additive: float = 0.0
    draws: bool = True
    parameter: str | None = None
    reason: str = ""
    assumptions: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    restricted: Restricted | None = None
    alone: bool = False

    def induced(self) -> Self:
        """The claim as one about any two words: what it means in local DP, whatever the distance."""
        if self.kind != "metric":
            return self
        note = f"the mechanism's own promise is per unit of {self.metric} distance; it is stated as local DP here"
        return replace(
            self, kind="ldp", metric=None, diameter=math.inf, additive=0.0, view="", caveats=(*self.caveats, note)
        )

    def ldp(self, epsilon: Values) -> Values:
        """Local DP of words that spend so much: epsilon * diameter, plus what is lost besides."""
        if self.kind == "none":
            return np.where(epsilon > 0, math.inf, 0.0)
        if self.kind == "ldp":
            return epsilon
        return np.where(epsilon > 0, epsilon * self.diameter + self.additive, 0.0)

    def times(self, pieces: int) -> Self:
        """The claim about a word of so many pieces, each of which pays what is lost besides."""
        promise = self.restricted and replace(self.restricted, additive=self.restricted.additive * pieces)
        return replace(self, additive=self.additive * pieces, restricted=promise)
