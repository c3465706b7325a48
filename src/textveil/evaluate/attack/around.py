"""What stands around a released word, and what that says of the private one.

In: releases, what public text teaches. Out: how likely each word is beside its neighbours, as far as these are known.
Not here: what public text teaches (`knowledge`), which words are candidates (`candidates`), and how much weight each
neighbour has (`learned`).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from textveil.config.extras import needed
from textveil.evaluate.attack.case import View
from textveil.evaluate.attack.contract import Report, quiet
from textveil.evaluate.attack.knowledge import REACH, Knowledge, Sparse
from textveil.evaluate.logs import highest
from textveil.randomness import Floats, Ids, Values

BELIEVED = 16
"""Of so many candidates of a neighbour it is weighed what they would say of a word."""

TOGETHER = 256
"""Cells that are looked at together: for each all U words are held."""

SIDES = tuple(side for distance in range(1, REACH + 1) for side in (-distance, distance))
"""Neighbours by side and distance: -2 is the second word before."""

FEATURES = (*(f"beside {side}" for side in SIDES), "topic", "mean topic", "again", "surely again")
"""What stands around, as numbers; see `features`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Beliefs:
    """What each of T words, and the edge of a text, is taken to be.

    Attributes:
        held: the probability of each word, sparse [T + 1, U + 1].
        rest: float64 [T + 1], that of anything else.
    """

    held: Sparse = field(repr=False)
    rest: Values = field(repr=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Around:
    """Which words stand around the words to be guessed.

    m cells are guessed: a cell is one protected position, or several that have the same word.

    Attributes:
        known: what public text teaches.
        of: int64 [n], the cell of each protected position.
        members: which positions each cell has, sparse [m, n].
        text: int64 [m], the text of each cell.
        places: int64 [n], where each position is among the T words of all texts.
        passed: int64 [T], the number of each word that passed; -1 for all others.
        neighbour: by side int64 [n], the place of the neighbour; T beyond the edge.
        documents: int64 [B + 1], where each text starts.
    """

    known: Knowledge
    of: Ids
    members: Sparse = field(repr=False)
    text: Ids
    places: Ids
    passed: Ids = field(repr=False)
    neighbour: dict[int, Ids] = field(repr=False)
    documents: Ids

    @classmethod
    def look(cls, view: View, known: Knowledge, of: Ids) -> "Around":
        """What stands around in releases; nothing that was drawn is looked at.

        Args:
            view: the releases.
            known: what public text teaches.
            of: the cell of each position.
        """
        layout, total = view.layout, len(view.layout.roles)
        shown = np.flatnonzero(view.passed >= 0)
        passed = np.full(total, -1)
        passed[shown] = known.ids(view.table, [view.items[i] for i in layout.unit_of[shown].tolist()])
        neighbour = {}
        for side in SIDES:
            at = layout.positions + side
            inside = (at >= layout.documents[view.text]) & (at < layout.documents[view.text + 1])
            neighbour[side] = np.where(inside, at, total)
        cells = int(of.max(initial=-1)) + 1
        text = np.zeros(cells, np.int64)
        text[of] = view.text
        return cls(
            known=known,
            of=of,
            members=_sparse(np.ones(len(of)), of, np.arange(len(of)), (cells, len(of))),
            text=text,
            places=layout.positions,
            passed=passed,
            neighbour=neighbour,
            documents=layout.documents,
        )

    def beliefs(self, candidates: Ids | None = None, probability: Values | None = None) -> Beliefs:
        """What is believed of all words: those that passed are known, the others are candidates, if these are given.

        Args:
            candidates: int64 [m, K], numbers of words.
            probability: [m, K].
        """
        total, edge = len(self.passed), len(self.known)
        certain = np.flatnonzero(self.passed >= 0)
        row, column = np.append(certain, total), np.append(self.passed[certain], edge)
        weight = np.ones(len(row))
        if candidates is not None and probability is not None:
            best = highest(probability, min(BELIEVED, probability.shape[1]))
            words, weights = (np.take_along_axis(each, best, axis=1)[self.of] for each in (candidates, probability))
            row = np.append(row, np.repeat(self.places, best.shape[1]))
            column, weight = np.append(column, words), np.append(weight, weights)
        held = _sparse(weight, row, column, (total + 1, edge + 1))
        return Beliefs(held=held, rest=np.maximum(0, 1 - np.asarray(held.sum(axis=1)).ravel()))

    def beside(self, beliefs: Beliefs, side: int, cells: Ids) -> Floats:
        """ln of how much likelier each word is for the neighbours on a side, but for a constant: float32 [c, U].

        The neighbour is summed over: sum_w q(w) P(x | w) / P(x). What several positions of a cell say is added up.
        """
        members = self.members[cells]
        at = self.neighbour[side][members.indices]
        held, beside = beliefs.held[at], self.known.beside[side]
        usual = held @ beside.base + beliefs.rest[at]
        said = held @ beside.ratio
        said.data = np.log1p(said.data / np.repeat(usual, np.diff(said.indptr)).astype(np.float32))
        if len(at) > len(cells):
            rows = np.repeat(np.arange(len(cells)), np.diff(members.indptr))
            said = _sparse(np.ones(len(at)), rows, np.arange(len(at)), (len(cells), len(at))) @ said
        found: Floats = said.toarray()[:, :-1]
        return found

    def features(self, candidates: Ids, probability: Values, report: Report = quiet) -> Floats:
        """What stands around says of each candidate, when words are what is believed so far: float32 [m, K, F].

        Neighbours at each side and distance; the words that are in one text with it, by the sum and the mean of their
        pointwise mutual information; and whether it is in the text again.

        Args:
            candidates: int64 [m, K], numbers of words.
            probability: [m, K].
            report: told of progress.
        """
        beliefs = self.beliefs(candidates, probability)
        held, together = beliefs.held[:-1], self.known.together
        m, texts, total = len(self.text), len(self.documents) - 1, len(self.passed)
        document = np.repeat(np.arange(texts), np.diff(self.documents))
        bags = _sparse(np.ones(total), document, np.arange(total), (texts, total)) @ held
        own = _sparse(np.ones(len(self.of)), self.of, self.places, (m, total)) @ held
        sizes = np.sqrt(np.maximum(1, np.diff(self.documents)))
        found = np.empty((m, candidates.shape[1], len(FEATURES)), np.float32)
        for start in range(0, m, TOGETHER):
            cells = np.arange(start, min(start + TOGETHER, m))
            some, part = candidates[cells], found[cells[0] : cells[-1] + 1]
            for i, side in enumerate(SIDES):
                part[:, :, i] = np.take_along_axis(self.beside(beliefs, side, cells), some, axis=1)
            text = self.text[cells]
            here, which = np.unique(text, return_inverse=True)
            topic = (bags[here] @ together).toarray()[which] - (own[cells] @ together).toarray()
            part[:, :, -4] = np.take_along_axis(topic, some, axis=1) / 10
            part[:, :, -3] = 10 * part[:, :, -4] / sizes[text][:, None]
            again = np.take_along_axis(bags[here].toarray()[which] - own[cells].toarray(), some, axis=1)
            part[:, :, -2] = np.clip(again, 0, 1)
            part[:, :, -1] = again > 0.5
            report("what stands around", start, m)
        return found


def _sparse(values: Any, rows: Ids, columns: Ids, shape: tuple[int, int]) -> Sparse:
    with needed():
        from scipy import sparse

    return sparse.coo_array((np.asarray(values, np.float32), (rows, columns)), shape=shape).tocsr()
