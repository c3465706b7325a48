"""The Vickrey mechanism: noise on a word's vector, then one of the two nearest words.

In: a block, a parameter per protected word, randomness. Out: released rows; the claim.
Not here: the noise (`noise`), and how it is calibrated (`perturb`).
"""

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from textveil.config import dump_options, make_options
from textveil.guarantee import Claim
from textveil.mechanism.block import Block, Layout
from textveil.mechanism.noise import Mahalanobis, MultivariateLaplace
from textveil.mechanism.perturb import CHUNK_POSITIONS, Perturb
from textveil.randomness import Draws, Ids, Randomness, Values
from textveil.table import EmbeddingTable


@make_options()
class Vickrey:
    """Mechanism that releases the nearest or the second nearest word to a noisy vector.

    With distances a <= b of the noisy vector to them, the second is released with probability t a /
    (t a + (1 - t) b). That depends on the noisy vector alone, so the claim is that of the noise.

    Its output law is an integral that no part of the product computes: it offers none.

    Args:
        name: its name in statements.
        noise: the noise.
        t: 0 releases the nearest word, as `noise` does; 1 the second nearest.
        project: run on the table's k principal axes; None for the whole table.

    Source: Xu et al. 2021, "On a utilitarian approach to privacy preserving text generation".
    """

    name: str = "vickrey"
    noise: MultivariateLaplace | Mahalanobis
    t: Annotated[float, Field(ge=0, le=1)] = 0.5
    project: Annotated[int, Field(ge=1, strict=True)] | None = None

    @property
    def _base(self) -> Perturb:
        return Perturb(name=self.name, noise=self.noise, project=self.project)

    def claim(self, table: EmbeddingTable) -> Claim:
        """Returns the metric claim of the noise."""
        return replace(self._base.claim(table), options=dump_options(self))

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """Computes the noise's parameter [n] from epsilon [n]."""
        return self._base.calibrate(table, layout, epsilon)

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """Returns the noise's parameter [n], where set by name."""
        return self._base.parameters(table, layout)

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """Returns the epsilon [n] of the noise."""
        return self._base.spend(table, layout, parameter)

    def compute_local_dp_cap(
        self, table: EmbeddingTable, layout: Layout, parameter: Values
    ) -> Values:
        """Returns the cap [n] of the noise."""
        return self._base.compute_local_dp_cap(table, layout, parameter)

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """Draws the released rows [n]."""
        base = self._base
        view, secret = base.get_view(table), block.secret
        released = np.empty(len(secret), np.int64)
        draws: Draws
        for chunk, draws in rng.open(block.layout.sizes).split_rows(CHUNK_POSITIONS):
            noisy = base.sample(draws, table, secret[chunk], parameter[chunk])
            coin = draws.uniform(1)[:, 0]
            released[chunk] = self.choose(view, noisy, coin)
        return released

    def choose(self, view: EmbeddingTable, noisy: Values, coin: Values) -> Ids:
        """Chooses one of the two nearest rows of noisy vectors [m, d], [m].

        By coins [m] from 0 to 1. It sees no private word.
        """
        first = view.nearest(noisy)
        if len(view) < 2:
            return first
        second = view.nearest(noisy, exclude=first)
        near, far = (
            np.linalg.norm(view.take(rows).astype(np.float64) - noisy, axis=1)
            for rows in (first, second)
        )
        # As a product, for both may be 0.
        is_second = coin * (self.t * near + (1 - self.t) * far) < self.t * near
        return np.where(is_second, second, first)
