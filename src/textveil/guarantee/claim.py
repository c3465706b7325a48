"""Claims: promises of a mechanism on a table, without any text.

In: a mechanism's properties. Out: `Claim`, and `Restricted` for promises between some words only.
Not here: the statement about a released text (`guarantee`), and the proofs
(docs/understand/proofs.md).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np

from textveil.errors import ConfigError
from textveil.randomness import Values

ClaimKind = Literal["metric", "ldp", "none"]


FLOATING_POINT = (
    "the vectors are drawn and compared in floating point; only words are released, never a vector"
)


@dataclass(frozen=True, kw_only=True)
class Restricted:
    """A promise for some pairs of words only.

    It is printed beside the claim, never in its place.

    Attributes:
        domain: the pairs of words, as in "two words of one group".
        kind: `metric` or `compute_ldp`, as in `Claim`.
        metric: the distance of a metric promise.
        diameter: the largest distance between two words of the domain in that metric.
        additive: the additional cost of a metric promise, for any distance.
    """

    domain: str
    kind: Literal["metric", "ldp"]
    metric: str | None = None
    diameter: float = math.inf
    additive: float = 0.0

    def compute_ldp(self, epsilon: float) -> float:
        """Returns the bound for any two words of the domain.

        For a word that spends this epsilon.
        """
        if self.kind == "ldp" or epsilon == 0:
            return epsilon
        return epsilon * self.diameter + self.additive


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The promise of a mechanism on a table, without any text.

    Attributes:
        mechanism: its registered name.
        kind: `metric` (epsilon per unit of distance), `compute_ldp` (epsilon for any two words), or
            `none`.
        metric: the distance of a metric claim: `chord`, `euclidean` or `l1`.
        table: the table whose rows are the inputs.
        diameter: the largest distance between two rows in that metric, which turns a metric claim
            into local DP.
        additive: the additional cost of a word, for any distance (rounding; the budget of a
            radius).
        most: the largest cost of a word in local DP, the additive part included, where the
            mechanism bounds it in another way than by the diameter; else infinite.
        options: the mechanism's parts and their options as plain data. The claim follows from them.
        view: for projected rows, the number of axes of the diameter ("in 32 axes").
        draws: whether anything is drawn at random.
        parameter: the mechanism's parameter, by its name in the papers.
        reason: the reason of the kind `none`, which must have one.
        assumptions: the assumptions of the proof, in addition to the mask.
        caveats: cautions for comparing numbers.
        restricted: a promise for some pairs of words only.
        codes: the number of codes in a coarse view, where the loss of two words of one code is 0;
            with books by group, the number for each group in order. Empty where every word is a
            separate value.
        nested: SHA-256 of the nested book whose levels these codes are, in hexadecimal: words of
            one code share a code at all coarser levels. Empty where there is none.
        found: the way the budget was found, where it was not given.
        alone: whether the draw at a position depends on the word there and on no other word.
    """

    mechanism: str
    kind: ClaimKind
    metric: str | None = None
    table: str
    diameter: float = math.inf
    options: Mapping[str, object] = field(default_factory=dict)
    view: str = ""
    additive: float = 0.0
    most: float = math.inf
    draws: bool = True
    parameter: str | None = None
    reason: str = ""
    assumptions: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    restricted: Restricted | None = None
    codes: tuple[int, ...] = ()
    nested: str = ""
    found: str = ""
    alone: bool = False

    def __post_init__(self) -> None:
        if self.kind == "none" and not self.reason.strip():
            raise ConfigError(
                f"the claim of {self.mechanism} is of kind none and must have a reason: set reason"
                " to words that go on from 'no finite bound holds, because'"
            )

    def convert_to_ldp(self) -> Self:
        """Returns the same claim as local DP.

        About any two words, whatever their distance.
        """
        if self.kind != "metric":
            return self
        note = (
            f"the mechanism's own promise is per unit of {self.metric} distance; here it is "
            "stated as local DP"
        )
        return replace(
            self,
            kind="ldp",
            metric=None,
            diameter=math.inf,
            additive=0.0,
            most=math.inf,
            view="",
            caveats=(*self.caveats, note),
        )

    def compute_ldp(self, epsilon: Values) -> Values:
        """Returns the local DP of words that spend these epsilons.

        It is epsilon * diameter plus the additive part, at most `most`.
        """
        if self.kind == "none":
            return np.where(epsilon > 0, math.inf, 0.0)
        if self.kind == "ldp":
            return epsilon
        # A word that passes loses everything: the mechanism's cap, `most`, must not hide that.
        bound = np.where(
            np.isfinite(epsilon),
            np.minimum(epsilon * self.diameter + self.additive, self.most),
            math.inf,
        )
        # A placeholder spends nothing, not even the additive part.
        return np.where(epsilon > 0, bound, 0.0)

    def scale_pieces(self, pieces: int) -> Self:
        """Returns the claim about a word of some pieces.

        The additive part and `most` count once for each piece.
        """
        promise = self.restricted and replace(
            self.restricted, additive=self.restricted.additive * pieces
        )
        return replace(
            self, additive=self.additive * pieces, most=self.most * pieces, restricted=promise
        )
