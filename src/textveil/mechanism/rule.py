"""The exponential rule: how a parameter follows from epsilon, and how one candidate is drawn exactly.

In: distances [m, V] and a parameter per row. Out: integer weights, log-probabilities, the exact constant.
Not here: the distances (`select`), the constants of a table (`constants`), and the draw itself (`samplers`).
"""

import math
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from textveil.options import options
from textveil.table import EmbeddingTable

Values = NDArray[np.float64]
Weights = NDArray[np.int64]

EXPONENT_CAP = 20.0
"""c times the capped distance is at most this, so that every candidate keeps a weight of at least 2^21."""

SCALE = 2.0**50


@options()
class Exponential:
    """P(y | x) proportional to exp(-c min(d(x, y), cap)), cap = 20 / c, in exact integer arithmetic.

    The exact constant is c + max over x, x' of (ln Z_x' - ln Z_x) / d(x, x'), never more than 2c: what the table's
    certified curve says.

    Args:
        c: the parameter of all words; without it, it follows from epsilon.
        calibration: `exact`: the largest c whose constant on the public table is at most epsilon (a stored,
            certified curve, computed for small tables; else c = epsilon / 2). `paper`: c = epsilon / 2, as SanText
            has it.
    """

    c: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    calibration: Literal["exact", "paper"] = "exact"

    def constant(self, table: EmbeddingTable, c: Values) -> Values:
        """A certified bound [m] on the loss per unit of distance under c [m]."""
        curve = table.curve
        return 2 * c if curve is None else np.minimum(curve.constant(c), 2 * c)

    def parameter(self, table: EmbeddingTable, epsilon: Values) -> Values:
        """The c [m] that epsilon [m] allows."""
        if self.calibration == "paper":
            return epsilon / 2
        curve = table.curve
        return epsilon / 2 if curve is None else np.maximum(curve.solve(epsilon), epsilon / 2)

    def weights(self, distances: Values, c: Values) -> Weights:
        """ceil(2^50 exp(-c min(d, cap))) for every candidate, int64 [m, V]."""
        return self._whole(distances, c).astype(np.int64)

    def log_probs(self, distances: Values, c: Values) -> Values:
        """ln P(y | x) of the integer weights, float64 [m, V]."""
        weights = self._whole(distances, c)
        totals = weights.sum(axis=1, keepdims=True)
        law = np.log(weights, out=weights)
        law -= np.log(totals)
        return law

    def _whole(self, distances: Values, c: Values) -> Values:
        """The weights as whole numbers in float64; in place, for there may be hundreds of millions of them."""
        weights: Values = distances * -c[:, None]
        np.maximum(weights, -EXPONENT_CAP, out=weights)
        np.exp(weights, out=weights)
        weights *= SCALE
        return np.ceil(weights, out=weights)

    @property
    def rounding(self) -> float:
        """What rounding weights up adds to any log-ratio: twice ln(1 + 2^-50 e^20)."""
        return 2 * math.log1p(math.exp(EXPONENT_CAP) / SCALE)
