"""One token from clipped logits, as DP-Prompt draws it.

In: a language model's logits. Out: a token, drawn by whole numbers, and what a draw costs.
Not here: the language model (`models`), and what is made of the tokens (`pipeline.paraphrase`).
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.errors import ConfigError, ModelError
from textveil.mechanism.rule import EXPONENT_CAP, LOG_RATIO_ROUNDING, WEIGHT_SCALE
from textveil.randomness import Draws, Floats, Values, choose_weighted

Finite = Annotated[float, Field(allow_inf_nan=False)]


@make_options()
class TokenDraw:
    """Draws a token with weight exp(clipped logit / temperature).

    All weights lie within a factor of exp(width / temperature) of each other, whatever the model
    read. So a draw loses at most 2 width / temperature.

    Args:
        temperature: the larger, the more random.
        width: logits further below the largest are raised to this distance from it.
        bounds: the paper's clipping instead: logits are clipped to these two numbers.

    Source: Utpala, Hooker and Chen 2023, "Locally differentially private document generation using
    zero shot prompting".
    """

    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    width: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 10.0
    bounds: tuple[Finite, Finite] | None = None

    def __post_init__(self) -> None:
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            raise ConfigError("bounds must be two numbers, the lower one first")

    @property
    def reach(self) -> float:
        """The distance between the lowest and the highest clipped logit."""
        return self.width if self.bounds is None else self.bounds[1] - self.bounds[0]

    @property
    def loss(self) -> float:
        """Epsilon of a draw."""
        return 2 * min(self.reach / self.temperature, EXPONENT_CAP) + LOG_RATIO_ROUNDING

    def draw(self, draws: Draws, logits: Floats) -> int:
        """Draws a token for logits [V], exactly by its weight.

        Raises:
            ModelError: a logit is no number.
        """
        return int(choose_weighted(draws, self.compute_weights(logits)[None].astype(np.int64))[0])

    def compute_weights(self, logits: Floats) -> Values:
        """Computes whole weights of at most 2^50 for logits [V], in float64."""
        if np.isnan(logits).any() or np.isposinf(logits).any():
            raise ModelError("the model's logits must be numbers, and one is not")
        if self.bounds is None:
            high = float(logits.max())
            if not np.isfinite(high):
                raise ModelError("the model's logits must be numbers, and none is")
            low = high - self.width
        else:
            low, high = self.bounds
        exponent = (np.clip(logits, low, high, dtype=np.float64) - high) / self.temperature
        weights: Values = np.ceil(WEIGHT_SCALE * np.exp(np.maximum(exponent, -EXPONENT_CAP)))
        return weights


def find_temperature(
    epsilon: float, tokens: int, *, width: float, bounds: tuple[float, float] | None
) -> float:
    """Finds the temperature at which so many tokens cost at most epsilon.

    Raises:
        ConfigError: rounding alone costs more.
    """
    reach = width if bounds is None else bounds[1] - bounds[0]
    share = epsilon / tokens - LOG_RATIO_ROUNDING
    if share <= 0:
        raise ConfigError(
            f"epsilon must be above {LOG_RATIO_ROUNDING * tokens:.2g} for {tokens:,} tokens"
        )
    return 2 * reach / share
