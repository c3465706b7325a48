"""The perturbing family: mix rows, add noise, release the nearest word.

In: a block, a parameter per protected word, randomness. Out: released rows; the claim of the
composition.
Not here: the parts (`window`, `noise`) and their names in the papers (`papers`).
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from textveil.config import dump_options, make_options
from textveil.errors import ConfigError
from textveil.guarantee import FLOATING_POINT, Claim
from textveil.mechanism.block import Block, Layout
from textveil.mechanism.noise import (
    CoordinateLaplace,
    Mahalanobis,
    MultivariateLaplace,
    NoiseName,
    NoNoise,
    VonMisesFisher,
    list_lengthening_caveats,
)
from textveil.mechanism.window import Mixing, Window
from textveil.randomness import Draws, Floats, Ids, Randomness, Values
from textveil.table import EmbeddingTable

Decode = Literal["metric", "cosine"]

COSINE_NOTE = (
    "the released word is the nearest by cosine to the noisy vector, which is post-processing: the "
    "noise and the bound are in {metric} distance"
)

CHUNK_POSITIONS = 4096
"""Positions that are mixed, noised and decoded together.

About 50 MB at d = 384.
"""


@make_options()
class Perturb:
    """Mechanism that mixes vectors, adds noise and releases the nearest word.

    Perturb(mix, noise, decode): a window mixes the vectors.

    The noisy vector of released row i is sum_j f_ij e(x_j) + noise(parameter_i); decoding it
    against a public table is post-processing. If word j changes by distance d_j, row i's centre
    moves by f_ij d_j, so word j spends the sum over released rows i of rate_i f_ij per unit of
    distance.

    Args:
        name: its name in statements.
        mix: the window; the default mixes nothing.
        noise: the noise.
        project: run on the table's k principal axes; None for the whole table.
        exclude_original: never release the word itself. This makes any mechanism's loss infinite.
        decode: what the nearest word is nearest by: the table's "metric", or the "cosine", which
            differs on raw rows.
        caveats: part of every statement.
    """

    name: str
    mix: Window = Window()
    noise: NoNoise | MultivariateLaplace | CoordinateLaplace | VonMisesFisher | Mahalanobis
    project: Annotated[int, Field(ge=1, strict=True)] | None = None
    exclude_original: bool = False
    decode: Decode = "metric"
    caveats: tuple[str, ...] = ()

    def get_view(self, table: EmbeddingTable) -> EmbeddingTable:
        """Returns the table of vectors and of decoding.

        Raises:
            ConfigError: the noise has no guarantee on it.
        """
        if self.project is not None:
            if isinstance(self.noise, CoordinateLaplace):
                raise ConfigError(
                    "laplace has no projected variant: a projection can lengthen l1 distances"
                )
            table = table.project(self.project, renormalize=isinstance(self.noise, VonMisesFisher))
        self.noise.check(table, mixed=self._is_mixing)
        return table.decode_by_cosine() if self.decode == "cosine" else table

    @property
    def _is_mixing(self) -> bool:
        return self.mix.L > 1

    def claim(self, table: EmbeddingTable) -> Claim:
        """Returns a metric claim in the noise's distance.

        No claim without noise or with `exclude_original`.
        """
        view = self.get_view(table)
        reason = ""
        if isinstance(self.noise, NoNoise):
            reason = "it adds no noise, so its output tells inputs apart with certainty"
        elif self.exclude_original:
            reason = "it never releases the word itself, so an output rules its own word out"
        caveats = list(self.caveats)
        if self.radius is not None:
            caveats.append(
                f"the radius costs epsilon {self.radius:g} over the table and cannot change the "
                "released word"
            )
        if view.by_cosine:
            caveats.append(COSINE_NOTE.format(metric=self.noise.get_metric(view)))
        caveats.extend(list_lengthening_caveats(view))
        options = dump_options(self)
        if (
            self.decode == "metric"
        ):  # repeatable draws follow from the options: an older law is left as it was
            del options["decode"]
        return Claim(
            mechanism=self.name,
            options=options,
            kind="none" if reason else "metric",
            metric=self.noise.get_metric(view),
            table=view.root.name,
            diameter=self.noise.get_diameter(view),
            view=view.axes_note,
            draws=not isinstance(self.noise, NoNoise),
            additive=self.radius or 0.0,
            parameter=self.noise.parameter_name,
            reason=reason,
            assumptions=() if reason else (FLOATING_POINT,),
            caveats=tuple(caveats),
            alone=self.mix.L == 1,
        )

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """Computes the largest parameter of every row within the budgets.

        All words in its window stay within their epsilon.
        """
        return self.noise.compute_parameter(
            self.get_view(table),
            self.mix.get_matrix(layout).compute_rates(epsilon),
            mixed=self._is_mixing,
        )

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """Returns the noise's parameter for all rows, where set by name."""
        if self.noise.setting is None and not isinstance(self.noise, NoNoise):
            return None
        # NaN without noise: there is no parameter, and epsilon must not be asked for one.
        return np.full(len(layout.positions), self.noise.setting or np.nan)

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """Returns epsilon_j, the sum of rate(parameter_i) f_ij over released rows i.

        Infinite with `exclude_original`.
        """
        if self.exclude_original:
            return np.full(len(parameter), np.inf)
        return self.mix.get_matrix(layout).spend(
            self.noise.compute_rate(self.get_view(table), parameter, mixed=self._is_mixing)
        )

    def compute_local_dp_cap(
        self, table: EmbeddingTable, layout: Layout, parameter: Values
    ) -> Values:
        """Returns what the noise's own shape bounds, for a word alone; else infinite."""
        if not isinstance(self.noise, Mahalanobis) or self._is_mixing or self.exclude_original:
            return np.full(len(parameter), np.inf)
        return self.noise.compute_local_dp_cap(self.get_view(table), parameter)

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """Returns the released rows [n], each drawn from its text's stream."""
        view = self.get_view(table)
        secret = block.secret
        released = np.empty(len(secret), np.int64)
        for chunk, noisy in self._add_noise(view, block, parameter, rng):
            released[chunk] = view.nearest(
                noisy, exclude=secret[chunk] if self.exclude_original else None
            )
        return released

    def _add_noise(
        self, view: EmbeddingTable, block: Block, parameter: Values, rng: Randomness
    ) -> Iterator[tuple[slice, Values]]:
        mixing = self.mix.get_matrix(block.layout)
        draws: Draws
        for chunk, draws in rng.open(block.layout.sizes).split_rows(CHUNK_POSITIONS):
            centres = _compute_centres(view, block, mixing, chunk)
            noisy = self.noise.sample(draws, view, centres, block.secret[chunk], parameter[chunk])
            yield chunk, noisy

    # ---- the noise, for estimates of the law -----------------------------------------------------

    @property
    def noise_law(self) -> NoiseName | None:
        """The textbook law of the noise; None for no noise."""
        return self.noise.law

    @property
    def radius(self) -> float | None:
        """The additional epsilon for the length of a word's vector.

        None where it is not drawn.
        """
        return self.noise.radius

    def compute_rate(self, table: EmbeddingTable, parameter: Values) -> Values:
        """Returns epsilon per unit of distance between two centres [m].

        Under the parameter [m] of each.
        """
        return self.noise.compute_rate(self.get_view(table), parameter, mixed=self._is_mixing)

    def sample(self, draws: Draws, table: EmbeddingTable, rows: Ids, parameter: Values) -> Values:
        """Draws noisy vectors [m, d] around words [m], without mixing."""
        view = self.get_view(table)
        return self.noise.sample(draws, view, view.take(rows).astype(np.float64), rows, parameter)

    def log_density(self, table: EmbeddingTable, noisy: Floats, parameter: float) -> Floats:
        """Returns ln of the density around every word's vector, [m, V].

        At noisy vectors [m, d], up to a constant.
        """
        view = self.get_view(table)
        return self.noise.log_density(view, noisy, view.take(slice(None)), parameter)

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Values, released: Ids | None = None
    ) -> Values | None:
        """Returns the law without noise: all mass on one row.

        With noise the law is an integral over a cell, so None.
        """
        if not isinstance(self.noise, NoNoise):
            return None
        view = self.get_view(table)
        n = len(block.secret)
        centres = _compute_centres(view, block, self.mix.get_matrix(block.layout), slice(0, n))
        law = np.full((n, len(view)), -np.inf)
        nearest = view.nearest(centres, exclude=block.secret if self.exclude_original else None)
        law[np.arange(n), nearest] = 0.0
        return law


def _compute_centres(view: EmbeddingTable, block: Block, mixing: Mixing, chunk: slice) -> Values:
    """Computes sum_j f_ij e(x_j) for the rows i of a chunk.

    float64 [m, d]; rows are normalised before, never after.
    """
    columns, weights = mixing.columns[chunk], mixing.weights[chunk]
    centres = np.zeros((len(columns), view.dimension))
    for offset in range(columns.shape[1]):
        centres += weights[:, offset, None] * view.take(block.rows[columns[:, offset]])
    return centres
