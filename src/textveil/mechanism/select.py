"""The selecting family: score candidates, draw one.

In: a block, a parameter per protected word, randomness. Out: released rows; the law; the claim.
Not here: the rule that turns scores into weights (`rule`), and the names in the papers (`papers`).
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from textveil.guarantee import Claim
from textveil.mechanism.block import PLACEHOLDER, Block, Ids, Layout
from textveil.mechanism.noise import lengthening
from textveil.mechanism.rule import Exponential
from textveil.options import options, plain
from textveil.rng import Randomness
from textveil.samplers import weighted_choice
from textveil.table import EmbeddingTable

Values = NDArray[np.float64]

CELLS = 1 << 22
"""Candidate scores held at once: 32 MiB each in float64 and int64."""


class Utility(Protocol):
    """How far each candidate is from a word, in the order in which the words are to be released."""

    def schedule(self, layout: Layout) -> Iterator[Ids]:
        """Waves of protected positions (numbers in 0..n-1); the scores of a wave may use the waves before it."""
        ...

    def distances(self, table: EmbeddingTable, block: Block, wave: Ids, released: Ids) -> Values:
        """Scores [len(wave), V] of all candidates, smaller is better, given what was released so far [n]."""
        ...


@options()
class Distance:
    """The table's distance; no context, so all positions are one wave."""

    def schedule(self, layout: Layout) -> Iterator[Ids]:  # noqa: D102
        yield np.arange(len(layout.positions))

    def distances(self, table: EmbeddingTable, block: Block, wave: Ids, released: Ids) -> Values:  # noqa: D102
        return table.distances(block.secret[wave])


@options()
class Select:
    """Select(utility, candidates, rule) over the whole vocabulary.

    Args:
        name: what statements call it.
        utility: the scores and the order of positions.
        rule: how one candidate is drawn.
        caveats: said with every statement.
    """

    name: str
    utility: Distance = Distance()
    rule: Exponential
    caveats: tuple[str, ...] = ()

    def claim(self, table: EmbeddingTable) -> Claim:
        """A metric claim in the table's distance, plus the rounding of the weights."""
        return Claim(
            mechanism=self.name,
            options=plain(self),
            kind="metric",
            metric=table.metric,
            table=table.root.name,
            view=table.seen,
            diameter=table.diameter,
            additive=self.rule.rounding,
            parameter="c",
            assumptions=("distances are computed in double precision; the draw from the integer weights is exact",),
            caveats=self.caveats + lengthening(table),
        )

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """c of every word."""
        return self.rule.parameter(table, epsilon / table.lipschitz)

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """c of every word, where it was set by name."""
        return None if self.rule.c is None else np.full(len(layout.positions), self.rule.c)

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """The exact or certified constant of every word, times what a renormalised view can lengthen."""
        return self.rule.constant(table, parameter) * table.lipschitz

    def privatize(self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness) -> Ids:
        """The released rows [n], wave after wave."""
        released = np.full(len(parameter), PLACEHOLDER, np.int64)
        limit = max(1, CELLS // len(table))
        texts = np.repeat(np.arange(len(block.layout.sizes)), block.layout.sizes)
        for wave in self.utility.schedule(block.layout):
            sizes = np.bincount(texts[wave], minlength=len(block.layout.sizes))
            for chunk, draws in rng.open(sizes).chunks(limit):
                part = wave[chunk]
                distances = self.utility.distances(table, block, part, released)
                released[part] = weighted_choice(draws, self.rule.weights(distances, parameter[part]))
        return released

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Values, released: Ids | None = None
    ) -> Values | None:
        """ln Pr[row y] of every protected position, [n, V]."""
        before = np.full(len(parameter), PLACEHOLDER, np.int64) if released is None else released
        law = np.empty((len(parameter), len(table)))
        for wave in self.utility.schedule(block.layout):
            law[wave] = self.rule.log_probs(self.utility.distances(table, block, wave, before), parameter[wave])
        return law


@options()
class Placeholder:
    """Releases a placeholder for every protected word: epsilon 0 for the value, whatever the budget."""

    name: str = "placeholder"

    def claim(self, table: EmbeddingTable) -> Claim:
        """Local DP with epsilon 0; what remains is in the mask."""
        return Claim(
            mechanism=self.name,
            options=plain(self),
            kind="ldp",
            draws=False,
            table=table.root.name,
            caveats=("position and type of a placeholder are in the mask",),
        )

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """There is nothing to set."""
        return np.zeros(len(epsilon))

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """No parameter is needed."""
        return np.zeros(len(layout.positions))

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """Nothing."""
        return np.zeros(len(parameter))

    def privatize(self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness) -> Ids:
        """A placeholder at every position, drawn from nothing."""
        return np.full(len(parameter), PLACEHOLDER, np.int64)
