"""The nearest-neighbour attacks: Pr@k and KNN@k.

In: released rows. Out: whether the private row is among the k nearest rows of the released one.
Not here: attackers who know the mechanism (`bayes`, `window`).
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.evaluate.attack.attack_contract import Outcome, ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import Case, View
from textveil.mechanism import PLACEHOLDER
from textveil.randomness import Ids, Randomness, Values
from textveil.table import SLAB_ROWS, EmbeddingTable

MAX_DISTANCES = 1 << 22
"""Distances that are held at once: 32 MiB."""

DISTANCE_TOLERANCE = 1e-12
"""Distances that differ by less, in units of the rows' squared lengths, are one distance."""

NOTHING_DRAWN = "nothing was drawn: all protected words are placeholders, or none is there"

Distance = Literal["cosine", "euclidean"]
DISTANCES: tuple[Distance, ...] = ("cosine", "euclidean")


@make_options()
class Neighbour:
    """Looks for the private word among the nearest words of the released one.

    The released word is its own nearest, so Pr@1 is the share of words that came out as they were.
    Pr@5 is the
    reconstruction rate of d-chi-STENCIL (section 4.2), KNN@10 the attack of Cape (section 5, after
    Song and Raghunathan
    2020); they differ in k only. Of the words that were changed, it is told apart how many are
    among the k nearest
    others. Cosine compares directions, Euclidean the raw vectors.

    Args:
        k: the largest number of neighbours that counts.
    """

    name: ClassVar[str] = "neighbour"
    wordwise: ClassVar[Literal[True]] = True
    k: Annotated[int, Field(ge=6, le=1000, strict=True)] = 10

    def refusal(self, view: View) -> str:
        """Where all protected words are placeholders."""
        return "" if (view.visible_rows != PLACEHOLDER).any() else NOTHING_DRAWN

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Pr@1, Pr@5, KNN@k in both distances, and KNN@k of the changed words."""
        positions = np.flatnonzero(case.view.visible_rows != PLACEHOLDER)
        released, private = case.view.visible_word_rows[positions], case.truth.rows[positions]
        changed = positions[released != private]
        for distance in DISTANCES:
            nearer = rank(case.view.origin, released, private, distance, report)
            setting = {"distance": distance}
            for metric, k in (("Pr@1", 1), ("Pr@5", 5), (f"KNN@{self.k}", self.k)):
                hits = (nearer < k).astype(np.float64)
                yield Outcome(
                    source=self.name, metric=metric, setting=setting, where=positions, values=hits
                )
            yield Outcome(
                source=self.name,
                metric=f"KNN@{self.k} of changed words",
                setting=setting,
                where=changed,
                values=(nearer[released != private] <= self.k).astype(np.float64),
                headline=False,
            )


def rank(
    table: EmbeddingTable,
    released: Ids,
    private: Ids,
    distance: Distance,
    report: ProgressCallback = ignore_progress,
) -> Ids:
    """How many rows are nearer to each released row [n] than the private row [n] is: 0 where both are one row.

    Rows that are as near as the private one, but for rounding, do not count.
    """
    nearer = np.zeros(len(released), np.int64)
    changed = np.flatnonzero(released != private)
    changed = changed[np.argsort(released[changed], kind="stable")]
    distinct, which = np.unique(released[changed], return_inverse=True)
    distinct_vectors, place = _load_vectors(table, distinct, distance), which
    limits = _compute_limits(table, distinct_vectors, place, private[changed], distance)
    counts = np.zeros(len(changed), np.int64)
    for start in range(0, len(table), SLAB_ROWS):
        slab = _load_vectors(table, np.arange(start, min(start + SLAB_ROWS, len(table))), distance)
        squares = None if distance == "cosine" else np.einsum("ij,ij->i", slab, slab)
        step = max(1, MAX_DISTANCES // len(slab))
        for first in range(0, len(changed), step):
            report(
                "neighbours", start * len(changed) + first * len(slab), len(changed) * len(table)
            )
            part = place[first : first + step]  # sorted, so that it is a range of the distinct rows
            low = int(part[0])
            gaps = distinct_vectors[low : int(part[-1]) + 1] @ slab.T
            gaps *= -1 if squares is None else -2
            if squares is not None:
                gaps += squares
            rows = gaps if len(gaps) == len(part) else gaps[part - low]
            counts[first : first + step] += np.count_nonzero(
                rows < limits[first : first + step, None], axis=1
            )
    nearer[changed] = counts
    return nearer


def _compute_limits(
    table: EmbeddingTable, distinct_vectors: Values, place: Ids, private: Ids, distance: Distance
) -> Values:
    """What a row's gap must be below to be nearer than the private row, float64 [n].

    A gap is any measure that orders rows as the distance does: the product with its sign turned, or
    the squared
    distance less the part that all rows have.
    """
    limits = np.empty(len(private))
    step = max(1, MAX_DISTANCES // distinct_vectors.shape[1])
    for first in range(0, len(private), step):
        released_vectors = distinct_vectors[place[first : first + step]]
        private_vectors = _load_vectors(table, private[first : first + step], distance)
        products, squares = (
            np.einsum("ij,ij->i", vectors, private_vectors)
            for vectors in (released_vectors, private_vectors)
        )
        gaps = -products if distance == "cosine" else squares - 2 * products
        scale = np.einsum("ij,ij->i", released_vectors, released_vectors) + squares
        limits[first : first + step] = gaps - DISTANCE_TOLERANCE * scale
    return limits


def _load_vectors(table: EmbeddingTable, numbers: Ids, distance: Distance) -> Values:
    """Unit rows for the cosine, raw rows for the Euclidean distance, float64."""
    vectors = table.take(numbers).astype(np.float64)
    if distance == "cosine":
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    elif table.unit_rows:
        vectors *= table.norms[numbers][:, None]
    return vectors
