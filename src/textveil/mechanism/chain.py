"""Draws along public lists of words, as 1-Diffractor does.

In: a block, a parameter per protected word, randomness. Out: released rows; the law; the claim.
Not here: mechanisms that draw by the distance of vectors (`select`, `perturb`).
"""

from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from textveil.config import dump_options, make_options
from textveil.guarantee import Claim, Restricted
from textveil.mechanism.block import Block, Layout
from textveil.mechanism.rule import EXPONENT_CAP, LOG_RATIO_ROUNDING, WEIGHT_SCALE
from textveil.randomness import (
    Draws,
    Flags,
    Ids,
    Randomness,
    Values,
    choose_weighted,
    discrete_laplace,
)
from textveil.table import EmbeddingTable

MAX_POSITIONS = 1 << 16
"""Positions drawn at once."""

RATE_GRAIN = 1 << 42
"""Inverse of the unit of the rates that are drawn with: so fine that the least epsilon, 1e-6, pays
for every place of a table of four million words."""

MAX_RATE = 4096.0
"""The largest rate; at a hundredth of it all other places together have less than 1e-17."""

NEIGHBOURS = 50
"""Nearest words among which a list goes on, as in the authors' package."""


@make_options()
class WordChain:
    """Moves a word along a public list in which neighbours are alike.

    The list begins at some row and goes on to the nearest row that it does not hold yet.
    `geometric` adds two-sided geometric noise to the word's place, cut off at both ends: a place k
    further away has a probability that is exp(-nominal k) times as large. `TEM` draws a place with
    a weight of exp(-nominal min(k, gamma) / 2). With several lists, one is drawn for each word,
    whatever the word.

    For two words k places apart in every list the loss is at most nominal k. So it is local DP
    nominal (V - 1) for `geometric`, which is attained at the ends; and nominal gamma for `TEM`.

    Args:
        name: its name in statements.
        nominal: the paper's epsilon of a place; without it, it follows from epsilon.
        method: how a place is drawn.
        gamma: places that TEM tells apart.
        lists: number of lists; they begin at rows that are spread evenly over the table.
        near: the restricted promise is for words at most so many places apart.

    Source: Meisenbacher, Chevli and Matthes 2024, "1-Diffractor: efficient and utility-preserving
    text obfuscation leveraging word-level metric differential privacy".
    """

    name: str = "1-diffractor"
    nominal: Annotated[float, Field(ge=1e-6, le=MAX_RATE, allow_inf_nan=False)] | None = None
    method: Literal["geometric", "TEM"] = "geometric"
    gamma: Annotated[int, Field(ge=1, strict=True)] = 5
    lists: Annotated[int, Field(ge=1, le=16, strict=True)] = 1
    near: Annotated[int, Field(ge=1, strict=True)] = 10

    def claim(self, table: EmbeddingTable) -> Claim:
        """Returns local DP for all words, and less for words that are near in the lists."""
        return Claim(
            mechanism=self.name,
            options=dump_options(self),
            kind="ldp",
            table=table.root.name,
            parameter="nominal",
            restricted=Restricted(
                domain=f"two words at most {self.near} places apart in every list", kind="ldp"
            ),
            caveats=(
                "the nominal epsilon is per place of a list of the table's words; words that are "
                "alike may be far apart in it",
            ),
            alone=True,
        )

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """Returns the largest nominal epsilon [n] that costs at most epsilon [n]."""
        rate = (epsilon - self._rounding) / self._count_places(table)
        grains: Values = np.floor(np.minimum(rate, MAX_RATE) * RATE_GRAIN)
        return np.maximum(grains, 1) / RATE_GRAIN

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """Returns the nominal epsilon [n], where it was set by name."""
        return None if self.nominal is None else np.full(len(layout.positions), self.nominal)

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """Returns the local DP [n] of any two words."""
        return self._compute_loss(parameter, self._count_places(table))

    def compute_restricted_epsilon(
        self, table: EmbeddingTable, layout: Layout, parameter: Values
    ) -> Values:
        """Returns the local DP [n] of two words that are near in every list."""
        return self._compute_loss(parameter, min(self.near, self._count_places(table)))

    def mark_restricted_pairs(self, table: EmbeddingTable, rows: Ids) -> Flags:
        """Says which rows [m] are near in every list, [m, m]."""
        places = self._get_lists(table)[1][:, rows]
        gaps = np.abs(places[:, :, None] - places[:, None, :]).max(axis=0)
        near: Flags = gaps <= self.near
        return near

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """Draws the released rows [n]."""
        secret = block.secret
        released = np.empty(len(secret), np.int64)
        order, places = self._get_lists(table)
        draws: Draws
        for chunk, draws in rng.open(block.layout.sizes).split_rows(MAX_POSITIONS):
            which = draws.integers(np.full(len(secret[chunk]), self.lists))
            place = places[which, secret[chunk]]
            if self.method == "TEM":
                drawn = self._draw_truncated(draws, place, parameter[chunk], len(table))
            else:
                scales = [1 / Fraction(rate) for rate in _round_rates(parameter[chunk]).tolist()]
                drawn = np.clip(place + discrete_laplace(draws, scales), 0, len(table) - 1)
            released[chunk] = order[which, drawn]
        return released

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Values, released: Ids | None = None
    ) -> Values:
        """Returns ln Pr[row y] of every protected position, [n, V]."""
        order, places = self._get_lists(table)
        secret = block.secret
        law = np.full((len(secret), len(table)), -np.inf)
        for number in range(self.lists):
            gaps = np.abs(np.arange(len(table)) - places[number, secret][:, None])
            part = np.empty_like(law)
            part[:, order[number]] = (
                self._compute_truncated_law(gaps, parameter)
                if self.method == "TEM"
                else _compute_clipped_law(gaps, _round_rates(parameter))
            )
            law = np.logaddexp(law, part - np.log(self.lists))
        return law

    # ---- one list --------------------------------------------------------------------------------

    def _get_lists(self, table: EmbeddingTable) -> tuple[Ids, Ids]:
        return _build_lists(table.root, self.lists)

    def _count_places(self, table: EmbeddingTable) -> int:
        """Counts the places between which a law still changes."""
        return min(self.gamma, len(table)) if self.method == "TEM" else max(1, len(table) - 1)

    @property
    def _rounding(self) -> float:
        return LOG_RATIO_ROUNDING if self.method == "TEM" else 0.0

    def _compute_loss(self, parameter: Values, places: int) -> Values:
        if self.method == "geometric":
            return _round_rates(parameter) * places
        # Weights never differ by more than their cap, nor do their sums.
        loss: Values = np.minimum(parameter * min(places, self.gamma), 2 * EXPONENT_CAP)
        return loss + self._rounding

    def _compute_weights(self, parameter: Values, gaps: Values | Ids) -> Values:
        exponent = np.minimum(parameter / 2 * np.minimum(gaps, self.gamma), EXPONENT_CAP)
        weights: Values = np.ceil(WEIGHT_SCALE * np.exp(-exponent))
        return weights

    def _draw_truncated(self, draws: Draws, place: Ids, parameter: Values, size: int) -> Ids:
        """Draws a place by its distance, then one of all at that distance."""
        gap = np.arange(self.gamma)
        below = place[:, None] - gap >= 0
        above = (place[:, None] + gap < size) & (gap > 0)
        counts = np.column_stack([below.astype(np.int64) + above, np.zeros(len(place), np.int64)])
        counts[:, -1] = size - counts.sum(axis=1)
        weights = self._compute_weights(parameter[:, None], np.arange(self.gamma + 1))
        level = choose_weighted(draws, weights.astype(np.int64), counts)
        lines = np.arange(len(place))
        number = draws.integers(counts[lines, level])
        inner = np.minimum(level, self.gamma - 1)
        near = np.where((number == 0) & below[lines, inner], place - inner, place + inner)
        # All places nearer than gamma form one run; the others lie before and behind it.
        start = np.maximum(place - self.gamma + 1, 0)
        width = np.minimum(place + self.gamma, size) - start
        return np.where(level < self.gamma, near, number + np.where(number < start, 0, width))

    def _compute_truncated_law(self, gaps: Ids, parameter: Values) -> Values:
        weights = self._compute_weights(parameter[:, None], gaps)
        law: Values = np.log(weights) - np.log(weights.sum(axis=1, keepdims=True))
        return law


def _round_rates(parameter: Values) -> Values:
    """Rounds rates to multiples of 2^-42, whose inverse is an exact fraction."""
    return np.maximum(np.rint(parameter * RATE_GRAIN), 1) / RATE_GRAIN


def _compute_clipped_law(gaps: Ids, rate: Values) -> Values:
    """Computes the two-sided geometric law of places, cut off at both ends.

    [n, V] from distances of places and rates [n]. An end has the mass of all places beyond it, too.
    """
    if gaps.shape[1] == 1:
        return np.zeros(gaps.shape)
    law: Values = -rate[:, None] * gaps + np.log(np.tanh(rate / 2))[:, None]
    law[:, [0, -1]] -= np.log(-np.expm1(-rate))[:, None]
    return law


@lru_cache(maxsize=8)
def _build_lists(table: EmbeddingTable, lists: int) -> tuple[Ids, Ids]:
    """Builds public lists of a table: the rows in order, and each row's place.

    int64 [lists, V] each. Seconds for 20,000 words.
    """
    starts = np.arange(lists) * len(table) // lists
    neighbours = table.neighbours(np.arange(len(table)), min(NEIGHBOURS, len(table)))
    order = np.stack([_walk(neighbours, int(start)) for start in starts])
    return order, np.argsort(order, axis=1)


def _walk(neighbours: Ids, start: int) -> Ids:
    """Walks from a row to its nearest neighbour not yet visited, until all rows are.

    From neighbours [V, k]; where all of them are visited, it goes on at the lowest other row.
    """
    free = [True] * len(neighbours)
    lowest, order = 0, []
    for _ in range(len(neighbours)):
        order.append(start)
        free[start] = False
        while lowest < len(free) and not free[lowest]:
            lowest += 1
        start = next((row for row in neighbours[start].tolist() if free[row]), lowest)
    return np.array(order, np.int64)
