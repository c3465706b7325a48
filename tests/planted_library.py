"""A public library of invented texts whose words and vectors say different things.

In: nothing. Out: `PlantedLibrary`, with the kind of each text that its words tell, and the one that its vector tells.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest import mock

import numpy as np

from textveil.library import Level, Library, make_library, making
from textveil.randomness import Floats, Ids, Ints

KINDS, TEXTS, WORDS = 3, 960, 40
VIEWS = ("words", "vectors")


@dataclass(frozen=True)
class PlantedLibrary:
    """A library with the truths that are planted in it.

    Attributes:
        library: with one level of 24 cells by both views, and a level of public labels.
        kinds: by view, the kind of each text that this view tells and the other does not.
    """

    library: Library
    kinds: dict[str, Ids]

    @property
    def level(self) -> Level:
        return self.library.get_level("24")

    def count(self, labels: Ids, documents: int, seed: int = 0) -> Ints:
        """Counts documents like the library's by label and cell, without noise."""
        chosen = np.random.default_rng(seed).integers(0, TEXTS, documents)
        counts = np.zeros((int(labels.max()) + 1, len(self.level)), np.int64)
        np.add.at(counts, (labels[chosen], self.level.cells[chosen]), 1)
        return counts


@cache
def make_planted_library(*, labels: bool = True) -> PlantedLibrary:
    """Makes the library; public labels are the kinds that words tell."""
    rng = np.random.default_rng(5)
    kinds = {view: rng.integers(0, KINDS, TEXTS) for view in VIEWS}
    texts = [
        " ".join(f"word{kind}x{number}" for number in rng.integers(0, WORDS, 12))
        for kind in kinds["words"].tolist()
    ]

    def encode(model: Any, _texts: Any, _report: Any) -> Floats:
        vectors = rng.normal(size=(TEXTS, model.dimension)) / np.sqrt(model.dimension)
        vectors[np.arange(TEXTS), kinds["vectors"]] += 1
        unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit.astype(np.float32)

    with mock.patch.object(making, "_encode", encode):
        library = make_library(
            texts,
            labels=[f"kind {kind}" for kind in kinds["words"].tolist()] if labels else None,
            levels=(24,),
            source="nobody wrote it",
            licence="CC0 1.0",
        )
    assert len(library) == TEXTS
    return PlantedLibrary(library, kinds)
