"""The nearest-neighbour attacks: Pr@k and KNN@k.

In: released rows. Out: whether the private row is among the k nearest rows of the released one.
Not here: attackers who know the mechanism (`bayes`, `window`).
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field

from textveil.attack.case import Case, View
from textveil.attack.contract import Outcome, Report, quiet
from textveil.mechanism import PLACEHOLDER
from textveil.options import options
from textveil.rng import Randomness
from textveil.table import SLAB, EmbeddingTable, Ids

CELLS = 1 << 24
"""Distances that are held at once: 128 MiB."""

ROUNDING = 1e-12
"""Distances that differ by less are one distance."""

NOTHING_DRAWN = "nothing was drawn: all protected words are placeholders, or none is there"

Distance = Literal["cosine", "euclidean"]
DISTANCES: tuple[Distance, ...] = ("cosine", "euclidean")


@options()
class Neighbour:
    """Looks for the private word among the nearest words of the released one.

    The released word is its own nearest, so Pr@1 is the share of words that came out as they were. Pr@5 is the
    reconstruction rate of d-chi-STENCIL (section 4.2), KNN@10 the attack of Cape (section 5, after Song and Raghunathan
    2020); they differ in k only. Of the words that were changed, it is told apart how many are among the k nearest
    others. Cosine compares directions, Euclidean the raw vectors.

    Args:
        k: the largest number of neighbours that counts.
    """

    name: ClassVar[str] = "neighbour"
    k: Annotated[int, Field(ge=6, le=1000, strict=True)] = 10

    def refusal(self, view: View) -> str:
        """Where all protected words are placeholders."""
        return "" if (view.shown != PLACEHOLDER).any() else NOTHING_DRAWN

    def run(self, case: Case, *, rng: Randomness, report: Report = quiet) -> Iterator[Outcome]:
        """Pr@1, Pr@5, KNN@k in both distances, and KNN@k of the changed words."""
        drawn = np.flatnonzero(case.view.shown != PLACEHOLDER)
        released, private = case.view.shown[drawn], case.truth.rows[drawn]
        changed = drawn[released != private]
        for distance in DISTANCES:
            nearer = rank(case.view.table, released, private, distance, report)
            setting = {"distance": distance}
            for metric, k in (("Pr@1", 1), ("Pr@5", 5), (f"KNN@{self.k}", self.k)):
                hits = (nearer < k).astype(np.float64)
                yield Outcome(source=self.name, metric=metric, setting=setting, where=drawn, values=hits)
            yield Outcome(
                source=self.name,
                metric=f"KNN@{self.k} of changed words",
                setting=setting,
                where=changed,
                values=(nearer[released != private] <= self.k).astype(np.float64),
                headline=False,
            )


def rank(table: EmbeddingTable, released: Ids, private: Ids, distance: Distance, report: Report = quiet) -> Ids:
    """How many rows are nearer to each released row [n] than the private row [n] is: 0 where both are one row.

    Rows that are as near as the private one, but for rounding, do not count.
    """
    nearer = np.zeros(len(released), np.int64)
    distinct, which = np.unique(released, return_inverse=True)
    order = np.argsort(which, kind="stable")
    bounds = np.searchsorted(which[order], np.arange(len(distinct) + 1))
    step = max(1, CELLS // len(table))
    for start in range(0, len(distinct), step):
        report("neighbours", start, len(distinct))
        part = torch.from_numpy(distinct[start : start + step])
        gaps = _gaps(table, part, distance)
        for first in range(bounds[start], bounds[min(start + step, len(distinct))], step):
            own = order[first : min(first + step, bounds[min(start + step, len(distinct))])]
            rows = gaps[torch.from_numpy(which[own] - start)]
            limit = rows.gather(1, torch.from_numpy(private[own])[:, None])
            nearer[own] = (rows < limit - ROUNDING).sum(dim=1).cpu().numpy()
    nearer[released == private] = 0
    return nearer


def _gaps(table: EmbeddingTable, rows: torch.Tensor, distance: Distance) -> torch.Tensor:
    """How far every row of the table is from these rows, float64 [m, V]; any measure that orders as the distance."""
    found = []
    own = _rows(table, rows, distance)
    for start in range(0, len(table), SLAB):
        part = _rows(table, torch.arange(start, min(start + SLAB, len(table))), distance)
        products = own @ part.T
        found.append(-products if distance == "cosine" else part.square().sum(dim=1) - 2 * products)
    return torch.cat(found, dim=1)


def _rows(table: EmbeddingTable, rows: torch.Tensor, distance: Distance) -> torch.Tensor:
    """Unit rows for the cosine, raw rows for the Euclidean distance, float64."""
    vectors = table.take(rows.to(table.device)).double().cpu()
    if distance == "cosine":
        vectors /= vectors.norm(dim=1, keepdim=True).clamp(min=1e-300)
    elif table.unit_rows:
        vectors *= table.norms[rows].double().cpu()[:, None]
    return vectors
