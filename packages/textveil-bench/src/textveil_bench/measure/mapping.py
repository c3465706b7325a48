"""Mapping sets: how many outputs a word may have. N_x of Cape; N_w and S_w of Feyisetan et al.

In: a case. Out: rows of figures, a value for each distinct private row that was looked at.
Not here: what was in fact released (`words`), and what a bound follows for these (`guarantee`).

With p_y the probability that the word x is released as y, its neighbours being as they stand:

    N_x = sum_y 1 - (1 - p_y)^draws    distinct outputs that are expected in so many draws of x
    N_w = p_x                          the probability that the word comes out as it was
    S_w = the size of the smallest set of outputs that holds probability 1 - DELTA

Where the law is written down they are exact. Else x is released so many times, and p_y is the share of y among the
outputs: N_x and N_w are then without bias, S_w is too small where it is not far below the number of draws.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

import numpy as np

from textveil.evaluate.attack import Case, Outcome, Report, quiet
from textveil.mechanism import Block, Law, Layout
from textveil.randomness import Ids, Randomness, SeededRandomness, Values
from textveil_bench.measure.contract import silent

DELTA = 0.05

STRETCH = 64
"""Positions of a text that are drawn together; longer texts are cut, and words at a cut lose neighbours behind it."""

POSITIONS = 1 << 14
"""Positions of one simulation, seconds of work."""

CELLS = 1 << 22
"""Probabilities that are held at once: 32 MiB."""

ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Sizes:
    """The three sizes of m words, float64 [m] each."""

    distinct: Values = field(repr=False)
    own: Values = field(repr=False)
    smallest: Values = field(repr=False)

    @classmethod
    def of_law(cls, law: Values, rows: Ids, draws: int) -> Self:
        """From probabilities [m, V], and the rows [m] of the words themselves."""
        with np.errstate(
            divide="ignore"
        ):  # an output of probability 1 is among the draws for certain
            distinct = -np.expm1(draws * np.log1p(-np.minimum(law, 1.0))).sum(axis=1)
        return cls(distinct=distinct, own=law[np.arange(len(rows)), rows], smallest=_smallest(law))

    @classmethod
    def of_draws(cls, outputs: Ids, rows: Ids) -> Self:
        """From outputs [m, draws], `PLACEHOLDER` among them, and the rows [m] of the words themselves."""
        m, draws = outputs.shape
        ordered = np.sort(outputs, axis=1)
        number = np.cumsum(np.diff(ordered, axis=1, prepend=ordered[:, :1]) != 0, axis=1)
        cells = (np.arange(m)[:, None] * draws + number).ravel()
        shares = np.bincount(cells, minlength=m * draws).reshape(m, draws) / draws
        return cls(
            distinct=number[:, -1] + 1.0,
            own=(outputs == rows[:, None]).mean(axis=1),
            smallest=_smallest(shares),
        )


@silent("no word is protected", wordwise=True, on_request=True)
def sets(
    case: Case, *, draws: int, words: int, rng: Randomness, report: Report = quiet
) -> Iterator[Outcome]:
    """N_x, N_w and S_w of distinct private rows, those of texts in random order, so many at most.

    Args:
        case: releases and their originals.
        draws: of each word, in thought or in fact.
        words: how many.
        rng: for mechanisms that have to be simulated.
        report: told of progress.
    """
    chosen = distinct(case, words)
    exact = True
    found: dict[str, list[Values]] = {"N_x": [], "N_w": [], "S_w": []}
    where: list[Ids] = []
    done = 0

    def told(drawn: int) -> None:
        report("mapping sets", done + len(part) * drawn // draws, len(chosen))

    for part in _parts(case, chosen):
        told(0)
        sizes = by_law(case, part, draws) if exact else None
        if sizes is None:
            exact, sizes = False, by_draws(case, part, draws, rng, told)
        where.append(part)
        done += len(part)
        for values, own in zip(
            found.values(), (sizes.distinct, sizes.own, sizes.smallest), strict=True
        ):
            values.append(own)
    if not where:
        return
    how = "exact, from the law" if exact else f"simulated, {draws:,} draws of each word"
    how += (
        ""
        if np.array_equal(case.view.drawn, case.view.shown)
        else "; of the words before they are re-ranked"
    )
    every = (
        f", of {len(case.view.table):,}" if case.view.out_of is None else ""
    )  # each list of names has its own
    notes = {
        "N_x": f"distinct outputs in {draws:,} draws of a word{every}; {how}",
        "N_w": f"probability that a word comes out as it was; {how}",
        "S_w": f"outputs that hold {1 - DELTA:.0%} of a word's probability; {how}"
        + ("" if exact else ", too small where it is not far below these"),
    }
    for metric, values in found.items():
        yield Outcome(
            source="mapping",
            metric=metric,
            setting={"draws": draws} if metric == "N_x" else {},
            where=np.concatenate(where),
            share=metric == "N_w",
            values=np.concatenate(values),
            note=notes[metric],
        )


def distinct(case: Case, words: int) -> Ids:
    """Where each of so many distinct private rows stands first, texts taken in `order`: int64 [m], rising."""
    place = np.argsort(order(len(case.view.released)))
    walk = np.argsort(place[case.view.text], kind="stable")
    first = np.unique(case.truth.coded[walk], return_index=True)[1]
    return np.sort(walk[np.sort(first)[:words]])


def order(texts: int) -> Ids:
    """The numbers of texts in a random order, always the same, so that figures of two mechanisms can be compared."""
    keys = [
        draws.uniform(1)[:, 0]
        for _, draws in SeededRandomness(0).open([texts]).chunks(max(1, texts))
    ]
    return np.argsort(np.concatenate([np.empty(0), *keys]), kind="stable")


def by_law(case: Case, chosen: Ids, draws: int) -> Sizes | None:
    """The sizes of these positions, from the law; None where it is not written down."""
    mechanism = case.view.mechanism
    if not isinstance(mechanism, Law):
        return None
    block, own = _block(case, chosen)
    law = mechanism.log_probs(
        case.view.table, block, case.view.parameter[own], case.view.drawn[own]
    )
    if law is None:
        return None
    return Sizes.of_law(np.exp(law[np.searchsorted(own, chosen)]), case.truth.coded[chosen], draws)


def by_draws(
    case: Case,
    chosen: Ids,
    draws: int,
    rng: Randomness,
    told: Callable[[int], None] = lambda drawn: None,
) -> Sizes:
    """The sizes of these positions, from releases of the stretches that they stand in; tells how many are drawn."""
    view = case.view
    outputs = np.empty((len(chosen), draws), np.int64)
    block, own = _block(case, chosen)
    at = np.searchsorted(own, chosen)
    step = max(1, POSITIONS // len(block.rows))
    for start in range(0, draws, step):
        told(start)
        copies = min(step, draws - start)
        parameter = np.tile(view.parameter[own], copies)
        drawn = view.mechanism.privatize(view.table, _copied(block, copies), parameter, rng=rng)
        outputs[:, start : start + copies] = drawn.reshape(copies, len(own))[:, at].T
    return Sizes.of_draws(outputs, case.truth.coded[chosen])


def _smallest(shares: Values) -> Values:
    """How many of the largest shares [m, k] hold 1 - DELTA."""
    held = np.cumsum(-np.sort(-shares, axis=1), axis=1)
    found: Values = (held < 1 - DELTA - ROUNDING).sum(axis=1) + 1.0
    return found


# ---- stretches of texts ------------------------------------------------------------------------------


def _stretches(layout: Layout) -> Ids:
    """Where each stretch begins, and where the last ends."""
    bounds = layout.documents.tolist()
    starts = [at for start, stop in pairwise(bounds) for at in range(start, stop, STRETCH)]
    return np.array([*starts, bounds[-1]], np.int64)


def _parts(case: Case, chosen: Ids) -> Iterator[Ids]:
    """The positions in parts, whose stretches are held at once."""
    layout = case.view.layout
    starts = _stretches(layout)
    stretch = np.searchsorted(starts, layout.positions[chosen], side="right") - 1
    used, which = np.unique(stretch, return_inverse=True)
    part = (np.cumsum(np.diff(starts)[used]) - 1) // max(1, CELLS // len(case.view.table))
    for number in np.unique(part).tolist():
        yield chosen[part[which] == number]


def _block(case: Case, chosen: Ids) -> tuple[Block, Ids]:
    """The stretches of some positions, each a text of its own, and which protected positions they have, rising."""
    view, layout = case.view, case.view.layout
    starts = _stretches(layout)
    used = np.unique(np.searchsorted(starts, layout.positions[chosen], side="right") - 1)
    taken = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in used.tolist()])
    rows = np.maximum(view.passed, 0)  # a hole has no row, and is in no window
    rows[layout.positions] = case.truth.coded
    made = Layout(
        roles=layout.roles[taken],
        documents=np.cumsum([0, *np.diff(starts)[used]], dtype=np.int64),
        unit_of=np.unique(layout.unit_of[taken], return_inverse=True)[1],
    )
    return Block(layout=made, rows=rows[taken]), np.flatnonzero(np.isin(layout.positions, taken))


def _copied(block: Block, copies: int) -> Block:
    """The texts of a block so many times over."""
    layout, shift = block.layout, np.arange(copies)[:, None]
    made = Layout(
        roles=np.tile(layout.roles, copies),
        documents=np.append(
            (shift * len(block.rows) + layout.documents[:-1]).ravel(), copies * len(block.rows)
        ),
        unit_of=(shift * (layout.unit_of.max() + 1) + layout.unit_of).ravel(),
    )
    return Block(layout=made, rows=np.tile(block.rows, copies))
