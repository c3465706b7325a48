"""The window: mixes the rows of neighbouring words before noise.

In: a public layout. Out: `Mixing`, a row-stochastic matrix with at most L entries a row.
Not here: the noise and its cost (`noise`), and the mixing of secret vectors (`perturb`).
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.errors import ConfigError
from textveil.mechanism.block import Layout, Role
from textveil.randomness import Ids, Values

SINKHORN_ROUNDS = 1000
"""Fixed number of Sinkhorn rounds.

So a text's weights do not depend on the texts beside it.
"""


class Mixing:
    """The matrix F of a layout, with the weights f_ij.

    Released row i is the mean of the rows j with weights f_ij.

    Attributes:
        columns: int64 [n, L], the position that each entry weighs.
        weights: float64 [n, L], f_ij >= 0, rows sum to 1; entries outside the text weigh 0.
    """

    def __init__(self, layout: Layout, columns: Ids, weights: Values) -> None:
        # Not the layout itself: it keeps this matrix, and a cycle would outlive the call.
        self.positions, self.size = layout.positions, len(layout.roles)
        self.columns, self.weights = columns, weights

    @property
    def identity(self) -> bool:
        """True if every released row is one word's row."""
        return bool(self.columns.shape[1] == 1)

    def sum_columns(self, rate: Values | None = None) -> Values:
        """Returns C_j for every position: float64 [T].

        The sum over released rows i of f_ij, or of rate_i f_ij.
        """
        shares = self.weights
        # entries outside the text weigh 0 and cost nothing, even at an infinite rate
        if rate is not None:
            shares = np.multiply(shares, rate[:, None], where=shares > 0, out=np.zeros_like(shares))
        sums = np.bincount(self.columns.ravel(), shares.ravel(), minlength=self.size)
        return sums.astype(np.float64)

    def spend(self, rate: Values) -> Values:
        """Returns epsilon_j for the protected positions j: float64 [n].

        The sum over released rows i of rate_i f_ij.
        """
        return self.sum_columns(rate)[self.positions]

    def compute_rates(self, epsilon: Values) -> Values:
        """Returns rates [n] that keep all positions within their epsilon.

        No protected position j spends more than epsilon_j: min of epsilon_j / C_j over a row. Safe
        because sum_i rate_i f_ij <= (epsilon_j / C_j) C_j. Exact for the identity.
        """
        # Words that pass have no budget, so that they bound no rate.
        quotient = np.full(self.size, np.inf)
        quotient[self.positions] = epsilon / self.sum_columns()[self.positions]
        rate: Values = np.where(self.weights > 0, quotient[self.columns], np.inf).min(
            axis=1, initial=np.inf
        )
        return rate


@make_options()
class Window:
    """A Gaussian window of L words.

    d-chi-STENCIL, section 3; weights as `scipy.signal.windows.gaussian(L, sigma)`. An odd L puts
    the top weight on the word itself. An even L is centred half a word aside, so that the word and
    one neighbour share the top weight. Weights are renormalised at the ends of a text.

    Args:
        L: words in the window, 1 to 1001; 1 mixes nothing.
        sigma: the Gaussian's standard deviation in words, 1e-3 to 1e6.
        side: the neighbour that an even window leans to, a convention.
        window_over: `protected`: the window closes up over protected words; `all`: words that pass
            stay in it.
        balanced: bring every protected word's weights to a sum near 1 over the released rows
            (Sinkhorn's iteration; exact in the limit, slow to converge for even L in long texts).
            Statements use the matrix as it is.
    """

    L: Annotated[int, Field(ge=1, le=1001, strict=True)] = 1
    sigma: Annotated[float, Field(ge=1e-3, le=1e6, allow_inf_nan=False)] = 0.75
    side: Literal["right", "left"] = "right"
    window_over: Literal["protected", "all"] = "protected"
    balanced: bool = False

    def __post_init__(self) -> None:
        if self.balanced and self.L == 2:
            raise ConfigError(
                "balanced needs L other than 2: a window of two words collapses to the word itself"
            )
        if self.balanced and self.window_over == "all":
            raise ConfigError(
                "balanced needs window_over=protected: words that pass would be weighted away"
            )

    def get_matrix(self, layout: Layout) -> Mixing:
        """Returns F for the protected positions of a layout.

        It depends on nothing secret.
        """
        if self not in layout.memo:
            layout.memo[self] = self._build_matrix(layout)
        matrix = layout.memo[self]
        assert isinstance(matrix, Mixing)
        return matrix

    def _build_matrix(self, layout: Layout) -> Mixing:
        positions = layout.positions
        if self.L == 1:
            return Mixing(layout, positions[:, None], np.ones((len(positions), 1)))
        members = (
            positions
            if self.window_over == "protected"
            else np.flatnonzero(layout.roles != Role.HOLE)
        )
        rank = np.searchsorted(members, positions)
        text = np.searchsorted(layout.documents, positions, side="right") - 1
        first = np.searchsorted(members, layout.documents[text])[:, None]
        end = np.searchsorted(members, layout.documents[text + 1])[:, None]
        offsets, weights = self._compute_gaussian()
        reach = rank[:, None] + offsets
        inside = (reach >= first) & (reach < end)
        # Beyond the ends of a text the word itself is a valid index; its weight there is 0.
        columns = members[np.where(inside, reach, rank[:, None])]
        entries = np.where(inside, weights, 0.0)
        if self.balanced:
            entries = _balance_weights(columns, entries, layout)
        return Mixing(layout, columns, entries / entries.sum(axis=1, keepdims=True))

    def _compute_gaussian(self) -> tuple[Ids, Values]:
        """Returns offsets and weights, with the word's weight 1.

        So there is no underflow for any sigma.
        """
        half = self.L // 2
        offsets = np.arange(-half, half + 1) if self.L % 2 else np.arange(-half + 1, half + 1)
        centre = 0.0 if self.L % 2 else 0.5
        exponent = ((offsets - centre) ** 2 - centre**2) / (2 * self.sigma**2)
        if self.side == "left":
            offsets = -offsets
        return offsets.astype(np.int64), np.exp(-exponent)


def _balance_weights(columns: Ids, weights: Values, layout: Layout) -> Values:
    """Runs Sinkhorn's iteration on the entries.

    The caller makes the rows sum to 1 once more.
    """
    for _ in range(SINKHORN_ROUNDS):
        weights = weights / weights.sum(axis=1, keepdims=True)
        sums = np.bincount(columns.ravel(), weights.ravel(), minlength=len(layout.roles))
        weights = weights / np.where(sums > 0, sums, 1.0)[columns]
    return weights
