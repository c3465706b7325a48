"""Two worlds: releases of each of two neighbours, and what tells them apart.

In: a program, and two inputs between which it promises an epsilon. Out: a score for every release,
and the bounds that follow from the epsilon.
Not here: what is concluded from the scores (`whole_texts`, the audit), and the programs.

The score is learned on the first half of the releases, and judged on the second: of many events
the one that happens to look worst would exceed the truth.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from textveil.errors import ConfigError
from textveil.randomness import Ids, Values

JOINT_DRAWS = 50
"""Releases for each distinct one, from which whole releases are counted, not their columns."""

MIN_TRIALS = 100


class Program(Protocol):
    """Releases one world many times, each time with fresh draws.

    What is released may be noisy counts, sets of codes, drawn cells or texts; whatever an attacker
    computes from it without the private texts may stand in its place.
    """

    def __call__(self, world: Any, many: int, /) -> NDArray[Any]:
        """Returns integers or strings [many] or [many, width]."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class WorldPair:
    """Two neighbours, and the program that must not tell them apart.

    Attributes:
        name: says in what the two differ ("one document more"), without a text.
        program: makes the releases.
        first: an input of it, whatever it takes. Secret.
        second: its neighbour. Secret.
        epsilon: promised between the two.
    """

    name: str
    program: Program = field(repr=False)
    first: Any = field(repr=False)
    second: Any = field(repr=False)
    epsilon: float


def draw_scores(pair: WorldPair, trials: int) -> tuple[Values, Values]:
    """Releases both worlds, and scores every release.

    The score is the logarithm of the ratio of both worlds' probabilities, high for the second: of
    the whole release where few different ones occur, else the sum over its columns.

    Returns:
        float64 [2, trials / 2] of both worlds: to choose events by, and to judge them by.
    """
    if trials < MIN_TRIALS:
        raise ConfigError(f"two worlds need at least {MIN_TRIALS} releases each, got {trials}")
    half = trials // 2
    worlds = [
        _make_columns(pair.program(world, 2 * half), 2 * half)
        for world in (pair.first, pair.second)
    ]
    codes = [
        np.unique(column, return_inverse=True)[1].reshape(2, -1)
        for column in np.concatenate(worlds).T
    ]
    scores = np.zeros((2, 2 * half))
    for column in _join_columns(codes, half // JOINT_DRAWS) or codes:
        scores += _learn_ratio(column, half)[column]
    return scores[:, :half], scores[:, half:]


def _join_columns(codes: list[Ids], limit: int) -> list[Ids]:
    """Numbers whole releases, or returns nothing if more than `limit` differ."""
    joint = np.zeros_like(codes[0])
    for column in codes:
        pairs = joint * (column.max() + 1) + column
        joint = np.unique(pairs, return_inverse=True)[1].reshape(pairs.shape)
        if joint.max() >= limit:
            return []
    return [joint]


def _make_columns(released: NDArray[Any], many: int) -> NDArray[Any]:
    array = np.asarray(released)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) != many:
        raise ConfigError(
            f"a program must return {many} releases, of equal width; got shape {array.shape}"
        )
    return array


def _learn_ratio(codes: Ids, half: int) -> Values:
    """Learns ln P(code | second) - ln P(code | first) from the first half."""
    counts = [np.bincount(world[:half], minlength=int(codes.max()) + 1) + 0.5 for world in codes]
    ratios: Values = np.log(counts[1]) - np.log(counts[0])
    return ratios


def bound_advantage(epsilon: float) -> float:
    """Bounds an attacker's advantage: right minus wrong, two worlds equally likely.

    tanh(epsilon / 2), which randomised response and discrete Laplace noise reach.

    Source: Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", 2015.
    """
    return math.tanh(epsilon / 2)


def bound_accuracy(share: float, epsilon: float) -> float:
    """Bounds the accuracy of guessing a label, the commonest with this share.

    With K labels, equally likely, it is e^epsilon / (e^epsilon + K - 1): that of k-ary randomised
    response.
    """
    return share / (share + (1 - share) * math.exp(-epsilon))
