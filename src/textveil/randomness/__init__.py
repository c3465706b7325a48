"""Randomness: the streams behind every draw, samplers, and array types.

In: the operating system's entropy, or a seed. Out: `Randomness`, which opens streams; draws.
Not here: what the draws are for (`mechanism`).
"""

from textveil.randomness.arrays import Flags, Floats, Ids, Ints, Values
from textveil.randomness.samplers import (
    LARGEST_RATIO,
    choose_weighted,
    coordinate_laplace,
    discrete_laplace,
    mean_resultant_length,
    multivariate_laplace,
    von_mises_fisher,
)
from textveil.randomness.streams import (
    Draws,
    KeyedRandomness,
    Randomness,
    SeededRandomness,
    Streams,
    SystemRandomness,
    make_unique_name,
    read_entropy,
)

__all__ = [
    "LARGEST_RATIO",
    "Draws",
    "Flags",
    "Floats",
    "Ids",
    "Ints",
    "KeyedRandomness",
    "Randomness",
    "SeededRandomness",
    "Streams",
    "SystemRandomness",
    "Values",
    "choose_weighted",
    "coordinate_laplace",
    "discrete_laplace",
    "make_unique_name",
    "mean_resultant_length",
    "multivariate_laplace",
    "read_entropy",
    "von_mises_fisher",
]
