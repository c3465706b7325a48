"""Mask and fill: a language model rewrites the protected words.

It uses the rest of the release. In: the layout of a block. Out: released rows; the law; the claim.
Not here: what the model sees (`context`), and mechanisms that look at the word (`select`,
`perturb`).
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from textveil.config import dump_options, make_options
from textveil.guarantee import Claim
from textveil.mechanism.block import PLACEHOLDER, Block, Layout
from textveil.mechanism.context import Context
from textveil.mechanism.rule import WEIGHT_SCALE
from textveil.randomness import Flags, Floats, Ids, Randomness, Values, choose_weighted
from textveil.table import EmbeddingTable

MAX_WEIGHT_CELLS = 1 << 21
"""Candidates' weights held at once: 16 MiB in float64."""


@make_options()
class Fill:
    """Releases a language model's expectation at every protected position.

    Given the words around it in the release. It sees the words that pass, never a protected word:
    two texts with the same mask have the same law.

    Args:
        order: "together" asks once for all positions of a text; "in turn" shows the model its
            earlier words.
        temperature: 0 takes the likeliest word; else a word is drawn with a weight of exp(logit /
            temperature).
        model: the folder or hub id of a masked or causal language model; None for the bundled
            masked one.
    """

    name: str = "mask-and-fill"
    order: Literal["together", "in turn"] = "together"
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    model: str | None = None

    @property
    def context(self) -> Context:
        """The words that the model sees, and the order of filling."""
        return Context(mode="public" if self.order == "together" else "released", model=self.model)

    def claim(self, table: EmbeddingTable) -> Claim:
        """Returns local DP with epsilon 0; what remains is in the mask."""
        return Claim(
            mechanism=self.name,
            options=dump_options(self),
            kind="ldp",
            draws=self.temperature > 0,
            table=table.root.name,
            caveats=("words are guessed from the words that pass, which are released, too",),
        )

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """Returns zeros: there is no parameter to set."""
        return np.zeros(len(epsilon))

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """Returns zeros: no parameter is needed."""
        return np.zeros(len(layout.positions))

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """Returns zeros: no word spends anything."""
        return np.zeros(len(parameter))

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """Returns the released rows [n], wave after wave.

        Of the block it reads the public rows only.
        """
        # Epsilon 0 rests on this line: nothing below can see a private row.
        block = _remove_secret(block)
        layout, released = block.layout, np.full(len(parameter), PLACEHOLDER, np.int64)
        for wave in self.context.yield_waves(layout):
            if not self.temperature:
                for part in _split_wave(wave, table):
                    released[part] = self.context.compute_logits(
                        table, block, part, released
                    ).argmax(axis=1)
                continue
            sizes = np.bincount(layout.texts[wave], minlength=len(layout.sizes))
            for chunk, draws in rng.open(sizes).split_rows(max(1, MAX_WEIGHT_CELLS // len(table))):
                logits = self.context.compute_logits(table, block, wave[chunk], released)
                released[wave[chunk]] = choose_weighted(
                    draws, self._compute_weights(logits).astype(np.int64)
                )
        return released

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Values, released: Ids | None = None
    ) -> Values:
        """Returns ln Pr[row y] of every protected position, [n, V].

        Given the rows [n] that are released before it.
        """
        block = _remove_secret(block)
        before = np.full(len(parameter), PLACEHOLDER, np.int64) if released is None else released
        law = np.empty((len(parameter), len(table)))
        context_rows = np.full(len(parameter), PLACEHOLDER, np.int64)
        for wave in self.context.yield_waves(block.layout):
            for part in _split_wave(wave, table):
                weights = self._compute_weights(
                    self.context.compute_logits(table, block, part, context_rows)
                )
                with np.errstate(divide="ignore"):
                    law[part] = np.log(weights) - np.log(weights.sum(axis=1, keepdims=True))
            context_rows[wave] = before[wave]
        return law

    def _compute_weights(self, logits: Floats) -> Values:
        """Computes whole weights from 1 to 2^50 in float64, [m, V].

        At temperature 0, 1 for one word and 0 for all others.
        """
        if not self.temperature:
            best: Flags = np.arange(logits.shape[1]) == logits.argmax(axis=1)[:, None]
            return best.astype(np.float64)
        weights = logits.astype(np.float64)
        weights -= weights.max(axis=1, keepdims=True)
        weights /= self.temperature
        np.exp(weights, out=weights)
        weights *= WEIGHT_SCALE
        # At a low temperature exp underflows to 0; no word may become impossible by that.
        floored: Values = np.maximum(np.ceil(weights, out=weights), 1.0)
        return floored


def _remove_secret(block: Block) -> Block:
    """Removes the secret rows of a block: nothing may depend on them."""
    rows = block.rows.copy()
    rows[block.layout.positions] = PLACEHOLDER
    return Block(layout=block.layout, rows=rows)


def _split_wave(wave: Ids, table: EmbeddingTable) -> list[Ids]:
    step = max(1, MAX_WEIGHT_CELLS // len(table))
    return [wave[start : start + step] for start in range(0, len(wave), step)]
