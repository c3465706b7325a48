"""Small worlds of whole texts, released by honest laws and by twins with one defect each.

In: a world (codes of documents), how many releases, a seed. Out: integers [many, width]; `TWINS`, which pairs each
defect with its honest law, at one claim, between two worlds that are neighbours.
Not here: the tests that have to find them (`test_cells`, the audit of the bench).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from textveil.mechanism import NoisyCount, RandomizedResponse, SubsetSelection
from textveil.mechanism.cells import TRUE_WEIGHT, compute_other_weight
from textveil.randomness import Draws, Ints, SeededRandomness, choose_weighted

BINS = 6
World = tuple[int, ...]
Release = Callable[[World, int, int], Ints]


def open_draws(n: int, seed: int) -> Draws:
    return next(SeededRandomness(seed).open([n]).split_rows(n))[1]


def count_documents(world: World) -> Ints:
    return np.bincount(np.array(world, np.int64), minlength=BINS)


@dataclass(frozen=True)
class Counted:
    """C: one noisy count of all documents, or with one defect.

    Attributes:
        mechanism: the noise.
        most: documents of the one subject that are counted; the subject's are all that lie in bin 5.
        noiseless: no noise at all.
        seen_only: noise on bins that occur.
    """

    mechanism: NoisyCount
    most: int | None = None
    noiseless: bool = False
    seen_only: bool = False

    def __call__(self, world: World, many: int, seed: int) -> Ints:
        counts = count_documents(world)
        if self.most is not None:
            counts[5] = min(counts[5], self.most)
        exact = np.tile(counts, many)
        if self.noiseless:
            return exact.reshape(many, BINS)
        noisy = self.mechanism.draw(open_draws(exact.size, seed), exact)
        return np.where((exact > 0) | (not self.seen_only), noisy, 0).reshape(many, BINS)


@dataclass(frozen=True)
class Responded:
    """L: a cell, and a public text of the drawn cell, by a public choice that overlaps."""

    mechanism: RandomizedResponse

    def __call__(self, world: World, many: int, seed: int) -> Ints:
        drawn = self.mechanism.draw(open_draws(many, seed), np.full(many, world[0]))
        # the list of each cell: its own text, and that of the next
        step = open_draws(many, seed + 1).integers(np.full(many, 2))
        return ((drawn + step) % self.mechanism.codes)[:, None]


@dataclass(frozen=True)
class Reported:
    """V: a set of codes."""

    mechanism: SubsetSelection

    def __call__(self, world: World, many: int, seed: int) -> Ints:
        codes = np.full(many, world[0])
        return self.mechanism.draw(open_draws(many, seed), codes).astype(np.int64)


PLACES = np.array([0, 1, 2, 3, 4, 20, 40, 60, 80, 100, 101, 102])
"""Public texts on a line: many near the first, few near the last."""


@dataclass(frozen=True)
class Ball:
    """A public text, likelier if it is one of the nearest, or, as a defect, if it is within a radius."""

    epsilon: float
    nearest: int = 3
    radius: float | None = None

    def compute_weights(self, text: int) -> Ints:
        distances = np.abs(PLACES - PLACES[text])
        near = distances.argsort(kind="stable").argsort() < self.nearest
        if self.radius is not None:
            near = distances <= self.radius
        return np.where(near, TRUE_WEIGHT, compute_other_weight(self.epsilon))

    def __call__(self, world: World, many: int, seed: int) -> Ints:
        weights = np.tile(self.compute_weights(world[0]), (many, 1))
        return choose_weighted(open_draws(many, seed), weights)[:, None]


@dataclass(frozen=True, kw_only=True)
class TextTwin:
    """A defect, its honest law, and two neighbours between which both claim the same epsilon."""

    defect: str
    broken: Release
    honest: Release
    epsilon: float
    first: World
    second: World


OTHERS: World = (0, 0, 0, 1, 1, 2, 3)
ONE = Counted(NoisyCount(1.0))
_ADDED: dict[str, Any] = {"honest": ONE, "epsilon": 1.0, "first": OTHERS, "second": (*OTHERS, 4)}

TWINS = [
    TextTwin(defect="no noise", broken=replace(ONE, noiseless=True), **_ADDED),
    TextTwin(defect="noise on seen bins only", broken=replace(ONE, seen_only=True), **_ADDED),
    TextTwin(
        defect="a subject with five documents charged once",
        broken=ONE,
        honest=replace(ONE, most=1),
        epsilon=1.0,
        first=OTHERS,
        second=(*OTHERS, 5, 5, 5, 5, 5),
    ),
    TextTwin(
        defect="replaced at the price of added or removed",
        broken=ONE,
        honest=Counted(NoisyCount(0.5)),
        epsilon=1.0,
        first=(*OTHERS, 4),
        second=(*OTHERS, 5),
    ),
    TextTwin(
        defect="a ball by radius",
        broken=Ball(2.0, radius=4),
        honest=Ball(2.0),
        epsilon=2.0,
        first=(6,),
        second=(2,),
    ),
]
