"""Context features: how likely a word is beside the words around it.

In: releases, what public text teaches. Out: how likely each word is beside its neighbours, as far
as these are known.
Not here: what public text teaches (`knowledge`), which words are candidates (`candidates`), and how
much weight each neighbour has (`learned`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from textveil.config.extras import needed
from textveil.evaluate.attack.case import View
from textveil.evaluate.attack.contract import Report, quiet
from textveil.evaluate.attack.knowledge import SIDES, Knowledge, Sparse
from textveil.evaluate.logs import highest
from textveil.randomness import Flags, Floats, Ids, Values

BELIEVED = 16
"""Likeliest candidates of an unseen neighbour that its message sums over."""

TOGETHER = 1 << 14
"""Cells that are worked on together."""

BLOCK = 256
"""Lines that are summed together.

Few, so that they stay in the cache.
"""

TEXTS = 64
"""Texts whose topics are worked on together.

For each of them all U words are held in memory.
"""

FEATURES = (*(f"beside {side}" for side in SIDES), "topic", "mean topic", "again", "surely again")
"""Names of the context features; see `features`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Around:
    """The words around the words to be guessed.

    m cells are guessed: a cell is one protected position, or several that have the same word. The
    cells are in the order of their texts. There are S sides, in the order of `SIDES`.

    Attributes:
        known: what public text teaches.
        of: int64 [n], the cell of each protected position.
        members: which positions each cell has, sparse [m, n].
        text: int64 [m], the text of each cell.
        documents: int64 [B + 1], where each text starts among the T words of all texts.
        passed: int64 [T], the number of each word that passed; -1 for all others.
        told: int64 [n, S], the row of `known.told` that the neighbour at each side has; the last
            one, which is empty, where it did not pass.
        beside: int64 [n, S], the cell of the neighbour at each side; -1 where it is none.
    """

    known: Knowledge
    of: Ids
    members: Sparse = field(repr=False)
    text: Ids
    documents: Ids
    passed: Ids = field(repr=False)
    told: Ids = field(repr=False)
    beside: Ids = field(repr=False)

    @classmethod
    def look(cls, view: View, known: Knowledge, of: Ids) -> "Around":
        """Builds the context from the words that passed.

        The drawn words are not used.

        Args:
            view: the releases.
            known: what public text teaches.
            of: the cell of each position.
        """
        layout, total, edge = view.layout, len(view.layout.roles), len(known)
        shown = np.flatnonzero(view.passed >= 0)
        passed = np.full(total, -1)
        passed[shown] = known.ids(
            view.table, [view.items[i] for i in layout.unit_of[shown].tolist()]
        )
        at = layout.positions[:, None] + np.array(SIDES)
        start, end = layout.documents[view.text], layout.documents[view.text + 1]
        at = np.where((at >= start[:, None]) & (at < end[:, None]), at, total)
        word = np.append(passed, edge)[at]
        cell = np.full(total + 1, -1)
        cell[layout.positions] = of
        cells = int(of.max(initial=-1)) + 1
        text = np.zeros(cells, np.int64)
        text[of] = view.text
        return cls(
            known=known,
            of=of,
            members=_build_sparse(np.ones(len(of)), of, np.arange(len(of)), (cells, len(of))),
            text=text,
            documents=layout.documents,
            passed=passed,
            told=np.where(
                word >= 0, word + np.arange(len(SIDES)) * (edge + 1), len(SIDES) * (edge + 1)
            ),
            beside=cell[at],
        )

    def close(self, cells: Ids, sides: int) -> Floats:
        """Returns log likelihood ratios of all words from neighbours that passed.

        float32 [c, U], up to a constant. The ratios of all positions of a cell are added up.

        Args:
            cells: int64 [c].
            sides: the number of sides that are used, the closest first.
        """
        with needed():
            from scipy import sparse

        members = self.members[cells]
        said = self.known.told[self.told[members.indices, :sides].ravel()]
        ends = said.indptr[::sides][members.indptr]
        shape = (len(cells), said.shape[1])
        found: Floats = sparse.csr_array((said.data, said.indices, ends), shape=shape).toarray()[
            :, :-1
        ]
        return found

    def passing(self, candidates: Ids) -> Floats:
        """Returns the log likelihood ratio of each candidate at each side.

        float32 [m, K, S], from neighbours that passed.

        Args:
            candidates: int64 [m, K], numbers of words.
        """
        told = self.known.told
        found = np.empty((*candidates.shape, len(SIDES)), np.float32)
        for cells, position, side in self._slice_cells(self.told < told.shape[0] - 1):
            row = self.told[position, side]
            weights = _build_sparse(
                np.ones(len(row)), np.arange(len(row)), row, (len(row), told.shape[0])
            )
            found[cells] = self._sum_by_cell(
                cells, position, side, asked(weights, told, candidates[self.of[position]])
            )
        return found

    def features(
        self, candidates: Ids, probability: Values, passing: Floats, report: Report = quiet
    ) -> Floats:
        """Returns the context features of each candidate: float32 [m, K, F].

        The candidates of hidden neighbours are weighted by their current probabilities.

        Neighbours at each side and distance; the words that are in one text with it, by the sum and
        the mean of their pointwise mutual information; and whether it is in the text again. A
        neighbour that did not pass is summed over: sum_w q(w) P(x | w) / P(x).

        Args:
            candidates: int64 [m, K], numbers of words.
            probability: [m, K].
            passing: what neighbours that passed say of each.
            report: callback for progress.
        """
        known, sides, words = self.known, len(SIDES), len(self.known) + 1
        m, k = candidates.shape
        best = highest(probability, min(BELIEVED, k))
        likely = np.take_along_axis(probability, best, axis=1)
        held = _build_sparse(
            likely,
            np.repeat(np.arange(m), best.shape[1]),
            np.take_along_axis(candidates, best, axis=1),
            (m, words),
        )
        usual = held @ known.bases + np.maximum(0, 1 - likely.sum(axis=1))[:, None]
        found = np.empty((m, k, len(FEATURES)), np.float32)
        found[:, :, :sides] = passing
        topic = np.empty((m, k), np.float32)
        for cells, position, side in self._slice_cells(self.beside >= 0):
            cell, own = self.beside[position, side], np.arange(m)[cells]
            columns = candidates[np.append(self.of[position], own)]
            columns += (np.append(side, np.full(len(own), sides)) * words)[:, None]
            said = asked(held[np.append(cell, own)], known.ratios, columns)
            topic[cells] = said[len(cell) :]
            said = np.log1p(said[: len(cell)] / usual[cell, side].astype(np.float32)[:, None])
            found[cells, :, :sides] += self._sum_by_cell(cells, position, side, said)
            report("what stands around", cells.stop, m)
        times = np.diff(self.members.indptr).astype(np.float32)[:, None]
        again = np.zeros((m, k), np.float32)
        np.put_along_axis(again, best, likely.astype(np.float32), axis=1)
        self._fill_text_features(
            held, candidates, times * topic, times * again, found[:, :, sides:]
        )
        return found

    def _fill_text_features(
        self, held: Sparse, candidates: Ids, topic: Floats, again: Floats, found: Floats
    ) -> None:
        """Fills in the features of whole texts: topics and repeated words.

        The cell's own shares, `topic` and `again`, are subtracted.
        """
        texts = len(self.documents) - 1
        shown = np.flatnonzero(self.passed >= 0)
        shape = (texts, held.shape[1])
        document = np.searchsorted(self.documents, shown, side="right") - 1
        bags = _build_sparse(np.ones(len(shown)), document, self.passed[shown], shape)
        bags += (
            _build_sparse(
                np.diff(self.members.indptr),
                self.text,
                np.arange(len(self.text)),
                (texts, held.shape[0]),
            )
            @ held
        )
        sizes = np.sqrt(np.maximum(1, np.diff(self.documents)))
        for start in range(0, texts, TEXTS):
            own = slice(*np.searchsorted(self.text, [start, start + TEXTS]))
            some, which = candidates[own], (self.text[own] - start)[:, None]
            bag = bags[start : start + TEXTS]
            here = (bag @ self.known.together).toarray()[which, some] - topic[own]
            found[own, :, 0] = here / 10
            found[own, :, 1] = here / sizes[self.text[own]][:, None]
            there = bag.toarray()[which, some] - again[own]
            found[own, :, 2] = np.clip(there, 0, 1)
            found[own, :, 3] = there > 0.5

    def _slice_cells(self, which: Flags) -> Iterator[tuple[slice, Ids, Ids]]:
        """Yields slices of cells with the selected positions and sides.

        `which` selects from [n, S].
        """
        m = len(self.text)
        for start in range(0, m, TOGETHER):
            cells = slice(start, min(start + TOGETHER, m))
            inside = (self.of >= cells.start) & (self.of < cells.stop)
            position, side = np.nonzero(which & inside[:, None])
            yield cells, position, side

    def _sum_by_cell(self, cells: slice, position: Ids, side: Ids, said: Floats) -> Floats:
        """Sums values [r, K] by cell and side: float32 [c, K, S]."""
        count, sides = cells.stop - cells.start, len(SIDES)
        rows = (self.of[position] - cells.start) * sides + side
        total = (
            _build_sparse(
                np.ones(len(rows)), rows, np.arange(len(rows)), (count * sides, len(rows))
            )
            @ said
        )
        result: Floats = total.reshape(count, sides, said.shape[1]).transpose(0, 2, 1)
        return result


def asked(weights: Sparse, rows: Sparse, columns: Ids) -> Floats:
    """Multiplies `weights @ rows` in the requested columns only.

    float32 [r, K].

    Args:
        weights: [r, W]; no line has two entries in one column.
        rows: [W, X].
        columns: int64 [r, K], which columns of each line.
    """
    lines = weights.tocsc()
    found, spread = np.zeros(columns.shape, np.float32), np.zeros(rows.shape[1], np.float32)
    both = np.flatnonzero((np.diff(lines.indptr) > 0) & (np.diff(rows.indptr) > 0))
    for first, last, start, end in np.stack(
        [lines.indptr[both], lines.indptr[both + 1], rows.indptr[both], rows.indptr[both + 1]],
        axis=1,
    ).tolist():
        filled = rows.indices[start:end]
        spread[filled] = rows.data[start:end]
        for part in range(first, last, BLOCK):
            own = slice(part, min(part + BLOCK, last))
            line = lines.indices[own]
            found[line] += lines.data[own, None] * spread.take(columns[line])
        spread[filled] = 0
    return found


def _build_sparse(values: Any, rows: Ids, columns: Ids, shape: tuple[int, int]) -> Sparse:
    with needed():
        from scipy import sparse

    held = (np.asarray(values, np.float32).ravel(), (rows.ravel(), columns.ravel()))
    return sparse.coo_array(held, shape=shape).tocsr()
