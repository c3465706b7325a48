"""Noise on vectors: the draws, and their cost per unit of distance.

In: centres [m, d], a parameter per row, a stream of draws. Out: noisy vectors, their densities;
rates of epsilon.
Not here: the samplers (`samplers`), the mixing of words (`window`), and the sum over a window
(`Mixing.spend`).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Literal, Protocol

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.errors import ConfigError
from textveil.randomness import (
    Draws,
    Floats,
    Ints,
    Values,
    coordinate_laplace,
    mean_resultant_length,
    multivariate_laplace,
    von_mises_fisher,
)
from textveil.table import EmbeddingTable

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]

EIGEN_TOLERANCE = 1e-9
"""Relative error that is allowed for computed eigenvalues, on the safe side."""

NoiseName = Literal["multivariate-laplace", "coordinate-laplace", "von-mises-fisher"]
"""Textbook laws of noise."""


class Noise(Protocol):
    """A family of noise with one parameter per row.

    `compute_rate` and `compute_parameter` are inverse to one another.

    Attributes:
        parameter_name: the parameter's name in the papers.
        law: the textbook law that is drawn; None for no noise.
        radius: the additional epsilon for the length of a word's vector; None where it is not
            released.
    """

    parameter_name: ClassVar[str | None]

    @property
    def law(self) -> NoiseName | None:
        """The textbook law, see the class."""
        ...

    @property
    def radius(self) -> float | None:
        """The additional epsilon, see the class."""
        ...

    @property
    def setting(self) -> float | None:
        """The parameter of all rows where it was set by name."""
        ...

    def check(self, table: EmbeddingTable, *, mixed: bool) -> None:
        """Raises ConfigError where this noise has no guarantee on the table.

        `mixed`: centres are means of rows.
        """
        ...

    def get_metric(self, table: EmbeddingTable) -> str:
        """Names the distance in whose units rates are."""
        ...

    def get_diameter(self, table: EmbeddingTable) -> float:
        """Returns the largest such distance between two rows of the table."""
        ...

    def compute_rate(self, table: EmbeddingTable, parameter: Values, *, mixed: bool) -> Values:
        """Returns epsilon per unit of distance between two centres, [m]."""
        ...

    def compute_parameter(self, table: EmbeddingTable, rate: Values, *, mixed: bool) -> Values:
        """Returns the parameter that costs a rate, [m]."""
        ...

    def sample(
        self, draws: Draws, table: EmbeddingTable, centres: Values, rows: Ints, parameter: Values
    ) -> Values:
        """Draws noisy vectors [m, d] around centres [m, d].

        `rows` [m] are their words.
        """
        ...

    def log_density(
        self, table: EmbeddingTable, noisy: Floats, centres: Floats, parameter: float
    ) -> Floats:
        """Returns ln of the density around centres [k, d], [m, k].

        At noisy vectors [m, d], up to a constant of the parameter.
        """
        ...


@make_options()
class NoNoise:
    """No noise at all: the centre itself.

    Deterministic, so no statement holds.
    """

    parameter_name: ClassVar[str | None] = None
    law: ClassVar[NoiseName | None] = None
    radius: ClassVar[float | None] = None
    setting: ClassVar[float | None] = None

    def check(self, table: EmbeddingTable, *, mixed: bool) -> None:  # noqa: D102
        return

    def get_metric(self, table: EmbeddingTable) -> str:  # noqa: D102
        return table.metric

    def get_diameter(self, table: EmbeddingTable) -> float:  # noqa: D102
        return table.diameter

    def compute_rate(self, table: EmbeddingTable, parameter: Values, *, mixed: bool) -> Values:  # noqa: D102
        return np.full(len(parameter), np.inf)

    def compute_parameter(self, table: EmbeddingTable, rate: Values, *, mixed: bool) -> Values:  # noqa: D102
        return np.full(len(rate), np.inf)

    def sample(  # noqa: D102
        self, draws: Draws, table: EmbeddingTable, centres: Values, rows: Ints, parameter: Values
    ) -> Values:
        return centres

    def log_density(
        self, table: EmbeddingTable, noisy: Floats, centres: Floats, parameter: float
    ) -> Floats:
        """Returns 0 at the centre itself, minus infinity elsewhere: [m, k]."""
        densities = np.full((len(noisy), len(centres)), -np.inf, noisy.dtype)
        for line, row in zip(densities, noisy, strict=True):
            line[(centres == row).all(axis=1)] = 0
        return densities


@make_options()
class MultivariateLaplace:
    """Noise of density proportional to exp(-eta |z|).

    Feyisetan et al. 2020; Qu et al. 2021. A Gamma(d, 1/eta) radius times a uniform direction. Costs
    eta per unit of Euclidean distance, sharp.

    Args:
        eta: the parameter of all rows; without it, it follows from epsilon.
    """

    eta: Positive | None = None
    parameter_name: ClassVar[str | None] = "eta"
    law: ClassVar[NoiseName | None] = "multivariate-laplace"
    radius: ClassVar[float | None] = None

    @property
    def setting(self) -> float | None:  # noqa: D102
        return self.eta

    def check(self, table: EmbeddingTable, *, mixed: bool) -> None:  # noqa: D102
        return

    def get_metric(self, table: EmbeddingTable) -> str:  # noqa: D102
        return table.metric

    def get_diameter(self, table: EmbeddingTable) -> float:  # noqa: D102
        return table.diameter

    def compute_rate(self, table: EmbeddingTable, parameter: Values, *, mixed: bool) -> Values:  # noqa: D102
        return parameter * table.lipschitz

    def compute_parameter(self, table: EmbeddingTable, rate: Values, *, mixed: bool) -> Values:  # noqa: D102
        return rate / table.lipschitz

    def sample(  # noqa: D102
        self, draws: Draws, table: EmbeddingTable, centres: Values, rows: Ints, parameter: Values
    ) -> Values:
        return centres + multivariate_laplace(draws, parameter, table.dimension)

    def log_density(
        self, table: EmbeddingTable, noisy: Floats, centres: Floats, parameter: float
    ) -> Floats:
        """Returns ln of the density around centres [k, d], [m, k].

        At noisy vectors [m, d], up to a constant of the parameter.
        """
        # |z - c|^2 by a matrix product, for [m, k, d] would not fit; rounding may make it negative.
        densities: Floats = noisy @ centres.T
        densities *= -2
        densities += np.einsum("ij,ij->i", noisy, noisy)[:, None] + np.einsum(
            "ij,ij->i", centres, centres
        )
        np.sqrt(np.maximum(densities, 0, out=densities), out=densities)
        densities *= -parameter
        return densities


@make_options()
class CoordinateLaplace:
    """Independent Laplace noise on every coordinate.

    It costs 1/scale per unit of l1 distance.

    Args:
        nominal: an epsilon for the whole table, turned into a scale by `calibration`; without it
            the scale is 1/epsilon, with epsilon per unit of l1 distance.
        calibration: `honest`: scale = l1 diameter / nominal, so that `nominal` is the local DP
            spent. `paper`: scale = (sum of the coordinates' ranges) / nominal, as STAMP's baseline
            has it; it spends less than it says, and the statement prints what it really spends.
    """

    nominal: Positive | None = None
    calibration: Literal["honest", "paper"] = "honest"
    parameter_name: ClassVar[str | None] = "nominal"
    law: ClassVar[NoiseName | None] = "coordinate-laplace"
    radius: ClassVar[float | None] = None

    @property
    def setting(self) -> float | None:  # noqa: D102
        return self.nominal

    def check(self, table: EmbeddingTable, *, mixed: bool) -> None:  # noqa: D102
        if table.is_projection:
            raise ConfigError(
                "laplace works on the table's own coordinates: a projection can lengthen l1 "
                "distances; drop `project`"
            )

    def get_metric(self, table: EmbeddingTable) -> str:  # noqa: D102
        return "l1"

    def get_diameter(self, table: EmbeddingTable) -> float:  # noqa: D102
        return table.l1_diameter

    def _compute_range(self, table: EmbeddingTable) -> float:
        return table.l1_diameter if self.calibration == "honest" else table.coordinate_range

    def compute_rate(self, table: EmbeddingTable, parameter: Values, *, mixed: bool) -> Values:  # noqa: D102
        return parameter / self._compute_range(table)

    def compute_parameter(self, table: EmbeddingTable, rate: Values, *, mixed: bool) -> Values:  # noqa: D102
        return rate * self._compute_range(table)

    def sample(  # noqa: D102
        self, draws: Draws, table: EmbeddingTable, centres: Values, rows: Ints, parameter: Values
    ) -> Values:
        return centres + coordinate_laplace(
            draws, self._compute_range(table) / parameter, table.dimension
        )

    def log_density(
        self, table: EmbeddingTable, noisy: Floats, centres: Floats, parameter: float
    ) -> Floats:
        """Returns ln of the density around centres [k, d], [m, k].

        At noisy vectors [m, d], up to a constant of the parameter.
        """
        densities = np.empty((len(noisy), len(centres)), noisy.dtype)
        # No matrix product gives the l1 distance: row after row, so that [m, k, d] is never held.
        for line, row in zip(densities, noisy, strict=True):
            np.abs(centres - row).sum(axis=1, out=line)
        densities *= -parameter / self._compute_range(table)
        return densities


@make_options()
class VonMisesFisher:
    """A direction of density proportional to exp(kappa <direction, centre>).

    STAMP, section 4. Unit centres cost kappa per unit of chord, sharp. Centres that are means of
    unit rows (a window) cost kappa (1 + A_d(kappa)), A_d = I_{d/2} / I_{d/2-1}: with r, r' in the
    unit ball the normaliser moves by at most kappa A_d(kappa) |r - r'|, because its logarithm has
    the gradient kappa A_d(kappa |r|).

    Args:
        kappa: the parameter of all rows; without it, it follows from epsilon.
        radius: also privatize the row's original length with this epsilon (Laplace noise, clamped
            above zero). The nearest word by cosine does not depend on it: it is charged, and
            useless.
    """

    kappa: Positive | None = None
    radius: Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)] | None = None
    parameter_name: ClassVar[str | None] = "kappa"
    law: ClassVar[NoiseName | None] = "von-mises-fisher"

    @property
    def setting(self) -> float | None:  # noqa: D102
        return self.kappa

    def check(self, table: EmbeddingTable, *, mixed: bool) -> None:  # noqa: D102
        if not table.unit_rows:
            raise ConfigError(
                "the polar mechanism needs unit rows: use table.metric=chord (a projection is "
                "renormalised)"
            )
        if table.dimension < 2:
            raise ConfigError(
                "the polar mechanism needs at least two dimensions: a direction in one is a sign"
            )
        if self.radius is not None and (mixed or table.is_projection):
            raise ConfigError(
                "radius is defined for a word's own row: drop the window, the projection or the "
                "radius"
            )

    def get_metric(self, table: EmbeddingTable) -> str:  # noqa: D102
        return table.metric

    def get_diameter(self, table: EmbeddingTable) -> float:  # noqa: D102
        return table.diameter

    def compute_rate(self, table: EmbeddingTable, parameter: Values, *, mixed: bool) -> Values:  # noqa: D102
        if mixed:
            parameter = parameter * (1 + mean_resultant_length(table.dimension, parameter))
        return parameter * table.lipschitz

    def compute_parameter(self, table: EmbeddingTable, rate: Values, *, mixed: bool) -> Values:  # noqa: D102
        target = rate / table.lipschitz
        return _find_largest_kappa(table.dimension, target) if mixed else target

    def sample(  # noqa: D102
        self, draws: Draws, table: EmbeddingTable, centres: Values, rows: Ints, parameter: Values
    ) -> Values:
        lengths = np.linalg.norm(centres, axis=1)
        nonzero = np.maximum(lengths, np.finfo(np.float64).tiny)[:, None]
        # A mean of opposite rows can be 0. Any direction will do then: kappa * 0 draws uniformly.
        directions = np.where(lengths[:, None] > 0, centres / nonzero, np.eye(1, table.dimension))
        noisy = von_mises_fisher(draws, directions, parameter * lengths)
        if self.radius is None:
            return noisy
        norms = table.norms.astype(np.float64)
        scale = np.full(len(rows), (norms.max() - norms.min()) / self.radius)
        length = norms[rows] + (coordinate_laplace(draws, scale, 1)[:, 0] if scale.any() else 0.0)
        # A negative length would turn the direction round.
        return noisy * np.maximum(length, np.finfo(np.float32).tiny)[:, None]

    def log_density(
        self, table: EmbeddingTable, noisy: Floats, centres: Floats, parameter: float
    ) -> Floats:
        """Returns ln of the density around unit centres [k, d], [m, k].

        At the directions of noisy vectors [m, d], up to a constant of the parameter. A privatized
        radius is left out: it cannot change the released word.
        """
        lengths = np.maximum(np.linalg.norm(noisy, axis=1, keepdims=True), 1e-12)
        densities: Floats = (noisy / lengths) @ centres.T
        densities *= parameter
        return densities


@make_options()
class Mahalanobis:
    """Noise of density proportional to exp(-eta |z|_M): longer where the table's rows spread.

    |z|_M^2 = z^T (lambda S + (1 - lambda) I)^-1 z, with S the covariance of the table's rows,
    scaled to a trace of d. A draw is multivariate Laplace noise times the root of that matrix.
    Costs eta per unit of |.|_M, sharp, and eta / root of the matrix's smallest eigenvalue per unit
    of Euclidean distance.

    Args:
        eta: the parameter of all rows; without it, it follows from epsilon.
        lambda_M: the weight of the covariance; 0 is `MultivariateLaplace`.

    Source: Xu et al. 2020, "A differentially private text perturbation method using regularized
    Mahalanobis metric".
    """

    eta: Positive | None = None
    lambda_M: Annotated[float, Field(ge=0, lt=1)] = 0.2  # noqa: N815 (the paper's name)
    parameter_name: ClassVar[str | None] = "eta"
    law: ClassVar[NoiseName | None] = None
    radius: ClassVar[float | None] = None

    @property
    def setting(self) -> float | None:  # noqa: D102
        return self.eta

    def check(self, table: EmbeddingTable, *, mixed: bool) -> None:  # noqa: D102
        return

    def get_metric(self, table: EmbeddingTable) -> str:  # noqa: D102
        return table.metric

    def get_diameter(self, table: EmbeddingTable) -> float:  # noqa: D102
        return table.diameter

    def compute_rate(self, table: EmbeddingTable, parameter: Values, *, mixed: bool) -> Values:  # noqa: D102
        return parameter * table.lipschitz / self._get_shape(table).shortest

    def compute_parameter(self, table: EmbeddingTable, rate: Values, *, mixed: bool) -> Values:  # noqa: D102
        return rate / table.lipschitz * self._get_shape(table).shortest

    def compute_local_dp_cap(self, table: EmbeddingTable, parameter: Values) -> Values:
        """Returns eta times a bound on the largest |.|_M between two rows, [m]."""
        return parameter * self._get_shape(table).reach

    def sample(  # noqa: D102
        self, draws: Draws, table: EmbeddingTable, centres: Values, rows: Ints, parameter: Values
    ) -> Values:
        noise = multivariate_laplace(draws, parameter, table.dimension)
        return centres + noise @ self._get_shape(table).root

    def log_density(
        self, table: EmbeddingTable, noisy: Floats, centres: Floats, parameter: float
    ) -> Floats:
        """Returns ln of the density around centres [k, d], [m, k].

        At noisy vectors [m, d], up to a constant of the parameter.
        """
        inverse = self._get_shape(table).inverse
        noisy, centres = ((rows @ inverse).astype(rows.dtype) for rows in (noisy, centres))
        return MultivariateLaplace().log_density(table, noisy, centres, parameter)

    def _get_shape(self, table: EmbeddingTable) -> "_Shape":
        return _compute_shape(table, self.lambda_M)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Shape:
    """A root of lambda S + (1 - lambda) I, and lengths in it.

    Attributes:
        root: float64 [d, d], symmetric; `inverse` is its inverse.
        shortest: the root's smallest eigenvalue.
        reach: a bound on |x - x'|_M of any two rows.
    """

    root: Values
    inverse: Values
    shortest: float
    reach: float


@lru_cache(maxsize=8)
def _compute_shape(table: EmbeddingTable, weight: float) -> _Shape:
    """Computes the root for a table: two passes over its rows, and eigenvectors."""
    total, products = np.zeros(table.dimension), np.zeros((table.dimension, table.dimension))
    for slab in table.yield_slabs():
        total += slab.sum(axis=0, dtype=np.float64)
    mean = total / len(table)
    for slab in table.yield_slabs():
        centred = slab.astype(np.float64) - mean
        products += centred.T @ centred
    trace = float(np.trace(products))
    covariance = products * (table.dimension / trace) if trace > 0 else np.eye(table.dimension)
    eigenvalues, vectors = np.linalg.eigh(
        weight * covariance + (1 - weight) * np.eye(table.dimension)
    )
    lengths = np.sqrt(np.maximum(eigenvalues, 1 - weight))
    inverse: Values = (vectors / lengths) @ vectors.T
    radius = max(
        float(np.linalg.norm((slab.astype(np.float64) - mean) @ inverse, axis=1).max())
        for slab in table.yield_slabs()
    )
    return _Shape(
        root=(vectors * lengths) @ vectors.T,
        inverse=inverse,
        shortest=float(lengths.min()) * (1 - EIGEN_TOLERANCE),
        reach=2 * radius * (1 + EIGEN_TOLERANCE),
    )


def _find_largest_kappa(dimension: int, target: Values) -> Values:
    """Finds the kappa with kappa (1 + A_d(kappa)) = wanted, from below.

    Bisection, at most 1e-12 relative short.
    """
    # A_d is between 0 and 1, so that kappa is between these two.
    low, high = target / 2, target.copy()
    for _ in range(48):
        middle = (low + high) / 2
        fits = middle * (1 + mean_resultant_length(dimension, middle)) <= target
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low


def list_lengthening_caveats(table: EmbeddingTable) -> tuple[str, ...]:
    """Returns the caveat of a table whose distances are lengthened.

    That is, longer than those in which statements are made.
    """
    if table.lipschitz == 1.0:
        return ()
    return (
        (
            f"renormalising the projection can lengthen distances by {table.lipschitz:.4g}, which "
            "is charged"
        ),
    )
