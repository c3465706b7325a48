"""The channel of mechanisms that look at the words around a position: it differs from position to position.

In: views of releases. Out: ln P(released row | private row) at every protected position.
Not here: the channel of mechanisms that do not (`channel`).

The attacker knows what the language model saw, and so its logits: the words that passed, and in the mode `released` the
words released before. Only the distance between two words is a matter of the private one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import torch
from numpy.typing import NDArray

from textveil.evaluate.attack.case import View
from textveil.evaluate.attack.contract import Report, quiet
from textveil.mechanism import PLACEHOLDER, Block, Bucketized, Buckets, Context, Hybrid, Mechanism, Select, Staircase
from textveil.randomness import Floats, Ids, Values
from textveil.table import EmbeddingTable

ROWS = 256
"""Private rows whose distances are held at once: 44 MB for 21,719 candidates."""

FIRST = 512
"""Candidates, the best liked ones, that are ranked first."""

KNOWN = 512
"""Candidates, the best liked ones, that are counted one by one in buckets."""

COUNTED = 512
"""So many of all others stand for all of them."""


ESTIMATED = "from some of the candidates in each bucket"


def looks(mechanism: Mechanism) -> bool:
    """Whether the law at a position depends on what a language model says of it."""
    return isinstance(mechanism, Select) and not mechanism.local


def refusal(mechanism: Mechanism) -> str:
    """Why the channel cannot be had, in words that go on "not run: "; empty if it can."""
    assert isinstance(mechanism, Select)
    if mechanism.utility.context.mode == "original":
        return "the law of a released word depends on the private words around it, which the attacker does not know"
    return ""


def exactly(view: View) -> bool:
    """Whether the law is written down; the sizes of buckets are estimated where the table is large."""
    rule = view.mechanism.rule if isinstance(view.mechanism, Select) else None
    return not isinstance(rule, Bucketized) or len(view.table) <= KNOWN


def lines(asked: Sequence[tuple[View, Ids]], report: Report = quiet) -> list[torch.Tensor]:
    """ln P(released row | each private row) at some positions of views on one table: float32 [p, V] for each view.

    Distances are computed once for all views, ranks and buckets once for all whose context says the same of a position.
    On 21,719 rows a core takes some 30 seconds for the distances, then a tenth of a second a position for a staircase,
    and a second for buckets. At most a few hundred MB are held besides logits and lines.

    Args:
        asked: views of mechanisms that look at a context, and protected positions of each, rising.
        report: told of progress.
    """
    found = [torch.zeros(len(positions), len(view.table)) for view, positions in asked]
    questions = list(_questions(asked))
    table = asked[0][0].table
    for start in range(0, len(table), ROWS):
        report("laws in context", start, len(table))
        rows = np.arange(start, min(start + ROWS, len(table)))
        for kind in {each.kind for each in questions}:
            own = [each for each in questions if each.kind == kind]
            near = _Near.of(own[0].utility, table, rows)
            for question in own:
                law = question.law(table, near)
                for line, (number, place) in zip(law, question.places, strict=True):
                    found[number][place, start : start + len(rows)] = torch.from_numpy(line)
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class _Near:
    """What the distance makes of the scores of some private rows.

    Attributes:
        rows: int64 [m].
        itself: float64 [m], of each row to itself.
        others: float64 [V, m], of each row to all others; to itself it is less than any of them.
        best: float64 [m], the largest of them.
    """

    rows: Ids
    itself: Values
    others: Values
    best: Values

    @classmethod
    def of(cls, utility: Hybrid, table: EmbeddingTable, rows: Ids) -> "_Near":
        others = np.ascontiguousarray(utility.near(table, rows).T)
        each = np.arange(len(rows))
        itself = others[rows, each]
        others[rows, each] = -np.inf if utility.form == "additive" else 0.0
        return cls(rows=rows, itself=itself, others=others, best=others.max(axis=0))

    def to(self, candidates: Ids) -> Values:
        """To some candidates, [c, m]."""
        return np.where(candidates[:, None] == self.rows, self.itself, self.others[candidates])


@dataclass(frozen=True, kw_only=True, eq=False)
class _Question:
    """What is asked of one context: the probabilities of some released rows, each under a parameter of its own."""

    mechanism: Select
    liked: Values = field(repr=False)
    order: NDArray[np.int32] = field(repr=False)
    released: list[int] = field(default_factory=list, repr=False)
    parameter: list[float] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)

    @property
    def utility(self) -> Hybrid:
        assert isinstance(self.mechanism.utility, Hybrid)
        return self.mechanism.utility

    @property
    def kind(self) -> tuple[str, str, float]:
        """Questions of one kind have the same `near`."""
        return self.utility.distance, self.utility.form, self.utility.lambda_D

    def law(self, table: EmbeddingTable, near: _Near) -> Values:
        """ln P of each released row for the private rows, [q, m]."""
        rule = self.mechanism.rule
        if isinstance(rule, Bucketized):
            return self._of_buckets(table, near, rule)
        assert isinstance(rule, Staircase)
        ends = rule.ends(table)
        weights = rule.weights(np.array(self.parameter)).astype(np.float64)
        logs = np.log(weights) - np.log(weights @ np.diff(ends, prepend=0))[:, None]
        ranks = np.stack([self._ranks(near, row, int(ends[-2])) for row in self.released])
        law: Values = np.take_along_axis(logs, np.searchsorted(ends[:-1], ranks, side="right"), axis=1)
        return law

    def _ranks(self, near: _Near, row: int, most: int) -> Ids:
        """How many candidates score higher than a released row for each private row [m]; at least `most` if so many.

        Candidates are gone through from the best liked on. None that is left can score higher than the best liked of
        them would as the nearest neighbour of the private row.
        """
        join, liked = self.utility.join, self.liked
        own = join(near.to(np.array([row]))[0], liked[row])
        ranks: Ids = (join(near.itself, liked[near.rows]) > own).astype(np.int64)
        left, start, size = np.arange(len(own)), 0, FIRST
        while len(left) and start < len(liked):
            some = self.order[start : start + size]
            scores = near.others[some] if len(left) == len(own) else near.others[np.ix_(some, left)]
            ranks[left] += (join(scores, liked[some, None]) > own[left]).sum(axis=0)
            start, size = start + size, 2 * size
            if start < len(liked):
                left = left[(ranks[left] < most) & (join(near.best[left], liked[self.order[start]]) > own[left])]
        return ranks

    def _of_buckets(self, table: EmbeddingTable, near: _Near, rule: Bucketized) -> Values:
        """As the rule has it, but that some candidates stand for all of those that are not liked best."""
        join, liked = self.utility.join, self.liked
        released = np.array(self.released)
        known = np.union1d(self.order[:KNOWN], released)
        rest = self.order[~np.isin(self.order, known)]
        step = max(1, len(rest) // COUNTED)
        some = rest[step // 2 :: step]
        kept = np.concatenate([known, some])
        stands = np.concatenate([np.ones(len(known)), np.full(len(some), len(rest) / max(1, len(some)))])
        itself = join(near.itself, liked[near.rows])
        scores = np.concatenate([join(near.to(kept), liked[kept, None]), itself[None]])
        counted = np.where(kept[:, None] == near.rows, 0.0, stands[:, None])  # the row itself comes last, and once
        counted = np.concatenate([counted, np.ones((1, len(itself)))])
        ends = self.utility.ends(table) if rule.edges == "public" else None
        cut = Buckets.of(scores.T, rule.buckets, ends, counted=counted.T)
        rates = rule.rate(table, self.utility, np.array(self.parameter))
        numbers = cut.number[:, np.searchsorted(known, released)]
        each = np.arange(len(itself))
        return np.stack([cut.log_probs(np.full(len(each), rate))[each, numbers[:, q]] for q, rate in enumerate(rates)])


def _questions(asked: Sequence[tuple[View, Ids]]) -> Iterator[_Question]:
    """One for each mechanism and context, whatever the number of views in which it occurs."""
    held: dict[object, _Question] = {}
    memos: dict[object, dict[object, object]] = {}  # of what a language model says of the same texts
    for number, (view, positions) in enumerate(asked):
        mechanism, layout = view.mechanism, view.layout
        assert isinstance(mechanism, Select)
        assert isinstance(mechanism.utility, Hybrid)
        memo = memos.setdefault((layout.verbatim, layout.documents.tobytes()), {})
        for place, i, logits in _logits(view, mechanism.utility.context, positions, memo):
            key = mechanism, blake2b(logits.tobytes()).digest()
            if key not in held:
                liked = mechanism.utility.liked(view.table, logits)
                order = np.argsort(-liked, kind="stable").astype(np.int32)
                held[key] = _Question(mechanism=mechanism, liked=liked, order=order)
            held[key].released.append(int(view.drawn[i]))
            held[key].parameter.append(float(view.parameter[i]))
            held[key].places.append((number, place))
    yield from held.values()


def _logits(
    view: View, context: Context, positions: Ids, memo: dict[object, object]
) -> Iterator[tuple[int, int, Floats]]:
    """Of each position its place among those asked for, its number, and what the language model expects there [V]."""
    block = Block(layout=view.layout, rows=view.passed, memo=memo)  # no protected row is looked at
    released = np.full(len(view.drawn), PLACEHOLDER)
    for wave in context.schedule(view.layout):
        part = wave[np.isin(wave, positions)]
        if len(part):
            logits = context.logits(view.table, block, part, released)
            yield from zip(np.searchsorted(positions, part).tolist(), part.tolist(), logits, strict=True)
        released[wave] = view.drawn[wave]
