"""Nearest-neighbour attacks: Pr@k and KNN@k.

In: released rows. Out: whether the private row is among the k nearest rows of the released one.
Not here: attackers that know the mechanism (`bayes`, `window`).
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
"""Distances held in memory at once: 32 MiB."""

DISTANCE_TOLERANCE = 1e-12
"""Relative difference below which distances count as equal.

In units of the rows' squared lengths.
"""

NOTHING_DRAWN = "nothing was drawn: no word is protected, or all protected words are placeholders"

Distance = Literal["cosine", "euclidean"]
DISTANCES: tuple[Distance, ...] = ("cosine", "euclidean")


@make_options()
class Neighbour:
    """Looks for the private word among the released word's nearest neighbours.

    A word is its own nearest neighbour, so Pr@1 is the share of unchanged words. Pr@5 is the
    reconstruction rate of d-chi-STENCIL (section 4.2), KNN@10 the attack of Cape (section 5, after
    Song and Raghunathan 2020); they differ in k only. A separate rate counts the changed words
    whose original is among the k nearest other words. Cosine compares directions, Euclidean the raw
    vectors.

    Args:
        k: maximum number of neighbours that count.
    """

    name: ClassVar[str] = "neighbour"
    wordwise: ClassVar[Literal[True]] = True
    k: Annotated[int, Field(ge=6, le=1000, strict=True)] = 10

    def refusal(self, view: View) -> str:
        """Explains why the attack cannot run: all protected words are placeholders."""
        return "" if (view.visible_rows != PLACEHOLDER).any() else NOTHING_DRAWN

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Yields Pr@1, Pr@5, KNN@k, and KNN@k of changed words, by distance."""
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
    """Counts the rows nearer to each released row [n] than the private.

    The count is 0 if the two rows are the same. Ties within rounding do not count.
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
            part = place[
                first : first + step
            ]  # sorted, so it is a contiguous range of the distinct rows
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
    """Computes the gap to the private row, less a rounding margin [n].

    Rows with a smaller gap are nearer. A gap orders rows as the distance does: the negative dot
    product, or the squared distance without the term common to all rows.
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
    """Loads unit rows for the cosine, raw rows for Euclidean distances: float64."""
    vectors = table.take(numbers).astype(np.float64)
    if distance == "cosine":
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    elif table.unit_rows:
        vectors *= table.norms[numbers][:, None]
    return vectors
