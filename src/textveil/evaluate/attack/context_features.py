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

from textveil.config.extras import explain_missing
from textveil.evaluate.attack.attack_contract import ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import View
from textveil.evaluate.attack.knowledge import SIDES, Knowledge, SparseArray
from textveil.evaluate.log_math import find_highest
from textveil.randomness import Flags, Floats, Ids, Values

NEIGHBOUR_CANDIDATES = 16
"""Likeliest candidates of an unseen neighbour that its message sums over."""

CELLS_AT_ONCE = 1 << 14
"""Cells that are worked on together."""

LINES_AT_ONCE = 256
"""Lines that are summed together.

Few, so that they stay in the cache.
"""

TEXTS_AT_ONCE = 64
"""Texts whose topics are worked on together.

For each of them all U words are held in memory.
"""

CONTEXT_FEATURES = (
    *(f"beside {side}" for side in SIDES),
    "topic",
    "mean topic",
    "again",
    "surely again",
)
"""Names of the context features; see `compute_features`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WordContext:
    """The words around the words to be guessed.

    m cells are guessed: a cell is one protected position, or several that have the same word. The
    cells are in the order of their texts. There are S sides, in the order of `SIDES`.

    Attributes:
        knowledge: what public text teaches.
        cell_of: int64 [n], the cell of each protected position.
        members: which positions each cell has, sparse [m, n].
        text: int64 [m], the text of each cell.
        documents: int64 [B + 1], where each text starts among the T words of all texts.
        visible_words: int64 [T], the number of each word that passed; -1 for all others.
        ratio_row: int64 [n, S], the row of `knowledge.ratio_row` that the neighbour at each side
            has; the last one, which is empty, where it did not pass.
        neighbour_cell: int64 [n, S], the cell of the neighbour at each side; -1 where it is none.
    """

    knowledge: Knowledge
    cell_of: Ids
    members: SparseArray = field(repr=False)
    text: Ids
    documents: Ids
    visible_words: Ids = field(repr=False)
    ratio_row: Ids = field(repr=False)
    neighbour_cell: Ids = field(repr=False)

    @classmethod
    def build(cls, view: View, knowledge: Knowledge, cell_of: Ids) -> "WordContext":
        """Builds the context from the words that passed.

        The drawn words are not used.

        Args:
            view: the releases.
            knowledge: what public text teaches.
            cell_of: the cell of each position.
        """
        layout, total, edge = view.layout, len(view.layout.roles), len(knowledge)
        places = np.flatnonzero(view.pass_rows >= 0)
        visible_words = np.full(total, -1)
        visible_words[places] = knowledge.find_ids(
            view.table, [view.items[i] for i in layout.unit_of[places].tolist()]
        )
        at = layout.positions[:, None] + np.array(SIDES)
        start, end = layout.documents[view.text], layout.documents[view.text + 1]
        at = np.where((at >= start[:, None]) & (at < end[:, None]), at, total)
        word = np.append(visible_words, edge)[at]
        cell = np.full(total + 1, -1)
        cell[layout.positions] = cell_of
        cells = int(cell_of.max(initial=-1)) + 1
        text = np.zeros(cells, np.int64)
        text[cell_of] = view.text
        return cls(
            knowledge=knowledge,
            cell_of=cell_of,
            members=_build_sparse(
                np.ones(len(cell_of)), cell_of, np.arange(len(cell_of)), (cells, len(cell_of))
            ),
            text=text,
            documents=layout.documents,
            visible_words=visible_words,
            ratio_row=np.where(
                word >= 0, word + np.arange(len(SIDES)) * (edge + 1), len(SIDES) * (edge + 1)
            ),
            neighbour_cell=cell[at],
        )

    def sum_word_ratios(self, cells: Ids, sides: int) -> Floats:
        """Returns log likelihood ratios of all words from neighbours that passed.

        float32 [c, U], up to a constant. The ratios of all positions of a cell are added up.

        Args:
            cells: int64 [c].
            sides: the number of sides that are used, the closest first.
        """
        with explain_missing():
            from scipy import sparse

        members = self.members[cells]
        ratios = self.knowledge.log_ratios[self.ratio_row[members.indices, :sides].ravel()]
        ends = ratios.indptr[::sides][members.indptr]
        shape = (len(cells), ratios.shape[1])
        sums: Floats = sparse.csr_array((ratios.data, ratios.indices, ends), shape=shape).toarray()[
            :, :-1
        ]
        return sums

    def compute_candidate_ratios(self, candidates: Ids) -> Floats:
        """Returns the log likelihood ratio of each candidate at each side.

        float32 [m, K, S], from neighbours that passed.

        Args:
            candidates: int64 [m, K], numbers of words.
        """
        log_ratios = self.knowledge.log_ratios
        ratios = np.empty((*candidates.shape, len(SIDES)), np.float32)
        for cells, position, side in self._slice_cells(self.ratio_row < log_ratios.shape[0] - 1):
            row = self.ratio_row[position, side]
            weights = _build_sparse(
                np.ones(len(row)), np.arange(len(row)), row, (len(row), log_ratios.shape[0])
            )
            ratios[cells] = self._sum_by_cell(
                cells,
                position,
                side,
                multiply_columns(weights, log_ratios, candidates[self.cell_of[position]]),
            )
        return ratios

    def compute_features(
        self,
        candidates: Ids,
        probability: Values,
        neighbour_ratios: Floats,
        report: ProgressCallback = ignore_progress,
    ) -> Floats:
        """Returns the context features of each candidate: float32 [m, K, F].

        The candidates of hidden neighbours are weighted by their current probabilities.

        Neighbours at each side and distance; the words that are in one text with it, by the sum and
        the mean of their pointwise mutual information; and whether it is in the text again. A
        neighbour that did not pass is summed over: sum_w q(w) P(x | w) / P(x).

        Args:
            candidates: int64 [m, K], numbers of words.
            probability: [m, K].
            neighbour_ratios: what neighbours that passed say of each.
            report: callback for progress.
        """
        knowledge, sides, words = self.knowledge, len(SIDES), len(self.knowledge) + 1
        m, k = candidates.shape
        best = find_highest(probability, min(NEIGHBOUR_CANDIDATES, k))
        likely = np.take_along_axis(probability, best, axis=1)
        beliefs = _build_sparse(
            likely,
            np.repeat(np.arange(m), best.shape[1]),
            np.take_along_axis(candidates, best, axis=1),
            (m, words),
        )
        usual = beliefs @ knowledge.bases + np.maximum(0, 1 - likely.sum(axis=1))[:, None]
        features = np.empty((m, k, len(CONTEXT_FEATURES)), np.float32)
        features[:, :, :sides] = neighbour_ratios
        topic = np.empty((m, k), np.float32)
        for cells, position, side in self._slice_cells(self.neighbour_cell >= 0):
            cell, centre_cells = self.neighbour_cell[position, side], np.arange(m)[cells]
            columns = candidates[np.append(self.cell_of[position], centre_cells)]
            columns += (np.append(side, np.full(len(centre_cells), sides)) * words)[:, None]
            ratios = multiply_columns(
                beliefs[np.append(cell, centre_cells)], knowledge.ratios, columns
            )
            topic[cells] = ratios[len(cell) :]
            ratios = np.log1p(ratios[: len(cell)] / usual[cell, side].astype(np.float32)[:, None])
            features[cells, :, :sides] += self._sum_by_cell(cells, position, side, ratios)
            report("what stands around", cells.stop, m)
        times = np.diff(self.members.indptr).astype(np.float32)[:, None]
        repeats = np.zeros((m, k), np.float32)
        np.put_along_axis(repeats, best, likely.astype(np.float32), axis=1)
        self._fill_text_features(
            beliefs, candidates, times * topic, times * repeats, features[:, :, sides:]
        )
        return features

    def _fill_text_features(
        self,
        beliefs: SparseArray,
        candidates: Ids,
        topic: Floats,
        repeats: Floats,
        features: Floats,
    ) -> None:
        """Fills in the features of whole texts: topics and repeated words.

        The cell's own shares, `topic` and `repeats`, are subtracted.
        """
        texts = len(self.documents) - 1
        places = np.flatnonzero(self.visible_words >= 0)
        shape = (texts, beliefs.shape[1])
        document = np.searchsorted(self.documents, places, side="right") - 1
        bags = _build_sparse(np.ones(len(places)), document, self.visible_words[places], shape)
        bags += (
            _build_sparse(
                np.diff(self.members.indptr),
                self.text,
                np.arange(len(self.text)),
                (texts, beliefs.shape[0]),
            )
            @ beliefs
        )
        sizes = np.sqrt(np.maximum(1, np.diff(self.documents)))
        for start in range(0, texts, TEXTS_AT_ONCE):
            cells = slice(*np.searchsorted(self.text, [start, start + TEXTS_AT_ONCE]))
            words, which = candidates[cells], (self.text[cells] - start)[:, None]
            bag = bags[start : start + TEXTS_AT_ONCE]
            associations = (bag @ self.knowledge.associations).toarray()[which, words] - topic[
                cells
            ]
            features[cells, :, 0] = associations / 10
            features[cells, :, 1] = associations / sizes[self.text[cells]][:, None]
            occurrences = bag.toarray()[which, words] - repeats[cells]
            features[cells, :, 2] = np.clip(occurrences, 0, 1)
            features[cells, :, 3] = occurrences > 0.5

    def _slice_cells(self, which: Flags) -> Iterator[tuple[slice, Ids, Ids]]:
        """Yields slices of cells with the selected positions and sides.

        `which` selects from [n, S].
        """
        m = len(self.text)
        for start in range(0, m, CELLS_AT_ONCE):
            cells = slice(start, min(start + CELLS_AT_ONCE, m))
            inside = (self.cell_of >= cells.start) & (self.cell_of < cells.stop)
            position, side = np.nonzero(which & inside[:, None])
            yield cells, position, side

    def _sum_by_cell(self, cells: slice, position: Ids, side: Ids, values: Floats) -> Floats:
        """Sums values [r, K] by cell and side: float32 [c, K, S]."""
        count, sides = cells.stop - cells.start, len(SIDES)
        rows = (self.cell_of[position] - cells.start) * sides + side
        total = (
            _build_sparse(
                np.ones(len(rows)), rows, np.arange(len(rows)), (count * sides, len(rows))
            )
            @ values
        )
        result: Floats = total.reshape(count, sides, values.shape[1]).transpose(0, 2, 1)
        return result


def multiply_columns(weights: SparseArray, rows: SparseArray, columns: Ids) -> Floats:
    """Multiplies `weights @ rows` in the requested columns only.

    float32 [r, K].

    Args:
        weights: [r, W]; no line has two entries in one column.
        rows: [W, X].
        columns: int64 [r, K], which columns of each line.
    """
    lines = weights.tocsc()
    products, spread = np.zeros(columns.shape, np.float32), np.zeros(rows.shape[1], np.float32)
    both = np.flatnonzero((np.diff(lines.indptr) > 0) & (np.diff(rows.indptr) > 0))
    for first, last, start, end in np.stack(
        [lines.indptr[both], lines.indptr[both + 1], rows.indptr[both], rows.indptr[both + 1]],
        axis=1,
    ).tolist():
        filled = rows.indices[start:end]
        spread[filled] = rows.data[start:end]
        for part in range(first, last, LINES_AT_ONCE):
            chunk = slice(part, min(part + LINES_AT_ONCE, last))
            line = lines.indices[chunk]
            products[line] += lines.data[chunk, None] * spread.take(columns[line])
        spread[filled] = 0
    return products


def _build_sparse(values: Any, rows: Ids, columns: Ids, shape: tuple[int, int]) -> SparseArray:
    with explain_missing():
        from scipy import sparse

    entries = (np.asarray(values, np.float32).ravel(), (rows.ravel(), columns.ravel()))
    return sparse.coo_array(entries, shape=shape).tocsr()
