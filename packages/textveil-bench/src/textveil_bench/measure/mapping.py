"""Mapping sets: how many outputs a word may have.

They are N_x of Cape; N_w and S_w of Feyisetan et al.

In: a case. Out: rows of figures, a value for each distinct private row examined.
Not here: the words that were released (`words`), and the resulting bounds (`guarantee`).

With p_y the probability that the word x is released as y, given its neighbours:

    N_x = sum_y 1 - (1 - p_y)^draws    expected number of distinct outputs in that many draws of x
    N_w = p_x                          probability that the word is released unchanged
    S_w = size of the smallest set of outputs with probability 1 - DELTA or more

They are exact if the mechanism gives its probabilities. Otherwise x is released `draws` times, and
p_y is the share of y among the outputs: N_x and N_w are then unbiased; S_w is too small unless it
is far below the number of draws.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

import numpy as np

from textveil.evaluate.attack import Case, Outcome, ProgressCallback, ignore_progress
from textveil.mechanism import Block, Law, Layout
from textveil.randomness import Ids, Randomness, SeededRandomness, Values
from textveil_bench.measure.measure_contract import annotate_measure

DELTA = 0.05

MAX_STRETCH_POSITIONS = 64
"""Largest number of positions of a text that are drawn together.

Longer texts are cut, and words at a cut lose their neighbours beyond it.
"""

MAX_SIMULATED_POSITIONS = 1 << 14
"""Largest number of positions of one simulation, seconds of work."""

MAX_PROBABILITIES = 1 << 22
"""Largest number of probabilities in memory at once: 32 MiB."""

ROUNDING_SLACK = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class MappingSizes:
    """N_x, N_w and S_w of m words, float64 [m] each."""

    distinct: Values = field(repr=False)
    unchanged: Values = field(repr=False)
    smallest: Values = field(repr=False)

    @classmethod
    def build_from_law(cls, law: Values, rows: Ids, draws: int) -> Self:
        """Computes the sizes from probabilities [m, V] and the words' rows [m]."""
        with np.errstate(divide="ignore"):  # an output of probability 1 is always drawn
            distinct = -np.expm1(draws * np.log1p(-np.minimum(law, 1.0))).sum(axis=1)
        return cls(
            distinct=distinct,
            unchanged=law[np.arange(len(rows)), rows],
            smallest=_count_smallest(law),
        )

    @classmethod
    def build_from_draws(cls, outputs: Ids, rows: Ids) -> Self:
        """Computes the sizes from outputs [m, draws] and the words' rows [m].

        Outputs may be `PLACEHOLDER`.
        """
        m, draws = outputs.shape
        ordered = np.sort(outputs, axis=1)
        number = np.cumsum(np.diff(ordered, axis=1, prepend=ordered[:, :1]) != 0, axis=1)
        cells = (np.arange(m)[:, None] * draws + number).ravel()
        shares = np.bincount(cells, minlength=m * draws).reshape(m, draws) / draws
        return cls(
            distinct=number[:, -1] + 1.0,
            unchanged=(outputs == rows[:, None]).mean(axis=1),
            smallest=_count_smallest(shares),
        )


@annotate_measure("no word is protected", wordwise=True, on_request=True)
def sets(
    case: Case,
    *,
    draws: int,
    words: int,
    rng: Randomness,
    report: ProgressCallback = ignore_progress,
) -> Iterator[Outcome]:
    """Measures mapping set sizes N_x, N_w and S_w of distinct private rows.

    Args:
        case: releases and their originals.
        draws: number of draws of each word, real or assumed.
        words: largest number of rows, from texts in random order.
        rng: source of draws for mechanisms that must be simulated.
        report: called with progress.
    """
    positions = find_distinct(case, words)
    exact = True
    values_by_metric: dict[str, list[Values]] = {"N_x": [], "N_w": [], "S_w": []}
    where: list[Ids] = []
    done = 0

    def report_draws(count: int) -> None:
        report("mapping sets", done + len(part) * count // draws, len(positions))

    for part in _split_positions(case, positions):
        report_draws(0)
        sizes = compute_sizes(case, part, draws) if exact else None
        if sizes is None:
            exact, sizes = False, simulate_sizes(case, part, draws, rng, report_draws)
        where.append(part)
        done += len(part)
        for values, metric_values in zip(
            values_by_metric.values(),
            (sizes.distinct, sizes.unchanged, sizes.smallest),
            strict=True,
        ):
            values.append(metric_values)
    if not where:
        return
    method = "exact, from the law" if exact else f"simulated, {draws:,} draws of each word"
    method += (
        ""
        if np.array_equal(case.view.output_rows, case.view.visible_rows)
        else "; of the words before re-ranking"
    )
    total = (
        f", of {len(case.view.table):,}" if case.view.source_table is None else ""
    )  # each list of names has its own table
    notes = {
        "N_x": f"distinct outputs in {draws:,} draws of a word{total}; {method}",
        "N_w": f"probability that a word is released unchanged; {method}",
        "S_w": f"smallest number of outputs with {1 - DELTA:.0%} of a word's probability; {method}"
        + ("" if exact else ", too small unless far below the number of draws"),
    }
    for metric, values in values_by_metric.items():
        yield Outcome(
            source="mapping",
            metric=metric,
            setting={"draws": draws} if metric == "N_x" else {},
            where=np.concatenate(where),
            share=metric == "N_w",
            values=np.concatenate(values),
            note=notes[metric],
        )


def find_distinct(case: Case, words: int) -> Ids:
    """Finds the first positions of distinct private rows, int64 [m], ascending.

    Texts are taken in the order of `shuffle_texts`; `words` is the largest number of rows.
    """
    rank = np.argsort(shuffle_texts(len(case.view.released)))
    walk = np.argsort(rank[case.view.text], kind="stable")
    first = np.unique(case.truth.table_rows[walk], return_index=True)[1]
    return np.sort(walk[np.sort(first)[:words]])


def shuffle_texts(texts: int) -> Ids:
    """Returns the numbers of texts in a fixed random order.

    The order is always the same, so that figures of two mechanisms can be compared.
    """
    keys = [
        draws.uniform(1)[:, 0]
        for _, draws in SeededRandomness(0).open([texts]).split_rows(max(1, texts))
    ]
    return np.argsort(np.concatenate([np.empty(0), *keys]), kind="stable")


def compute_sizes(case: Case, positions: Ids, draws: int) -> MappingSizes | None:
    """Computes sizes from the mechanism's probabilities; None if it gives none."""
    mechanism = case.view.mechanism
    if not isinstance(mechanism, Law):
        return None
    block, block_positions = _build_block(case, positions)
    law = mechanism.log_probs(
        case.view.table,
        block,
        case.view.parameter[block_positions],
        case.view.output_rows[block_positions],
    )
    if law is None:
        return None
    return MappingSizes.build_from_law(
        np.exp(law[np.searchsorted(block_positions, positions)]),
        case.truth.table_rows[positions],
        draws,
    )


def simulate_sizes(
    case: Case,
    positions: Ids,
    draws: int,
    rng: Randomness,
    report: Callable[[int], None] = lambda drawn: None,
) -> MappingSizes:
    """Computes sizes from simulated releases of the surrounding text stretches.

    `report` gets the number of draws done.
    """
    view = case.view
    outputs = np.empty((len(positions), draws), np.int64)
    block, block_positions = _build_block(case, positions)
    indices = np.searchsorted(block_positions, positions)
    step = max(1, MAX_SIMULATED_POSITIONS // len(block.rows))
    for start in range(0, draws, step):
        report(start)
        copies = min(step, draws - start)
        parameter = np.tile(view.parameter[block_positions], copies)
        batch = view.mechanism.privatize(
            view.table, _repeat_block(block, copies), parameter, rng=rng
        )
        outputs[:, start : start + copies] = batch.reshape(copies, len(block_positions))[
            :, indices
        ].T
    return MappingSizes.build_from_draws(outputs, case.truth.table_rows[positions])


def _count_smallest(shares: Values) -> Values:
    """Counts the largest shares [m, k] that sum to 1 - DELTA."""
    cumulative = np.cumsum(-np.sort(-shares, axis=1), axis=1)
    sizes: Values = (cumulative < 1 - DELTA - ROUNDING_SLACK).sum(axis=1) + 1.0
    return sizes


# ---- stretches of texts ------------------------------------------------------------------------------


def _find_stretches(layout: Layout) -> Ids:
    """Finds the start of each stretch, and the end of the last."""
    bounds = layout.documents.tolist()
    starts = [
        position
        for start, stop in pairwise(bounds)
        for position in range(start, stop, MAX_STRETCH_POSITIONS)
    ]
    return np.array([*starts, bounds[-1]], np.int64)


def _split_positions(case: Case, positions: Ids) -> Iterator[Ids]:
    """Splits positions into parts that fit in memory."""
    layout = case.view.layout
    starts = _find_stretches(layout)
    stretch = np.searchsorted(starts, layout.positions[positions], side="right") - 1
    used, stretch_indices = np.unique(stretch, return_inverse=True)
    part = (np.cumsum(np.diff(starts)[used]) - 1) // max(
        1, MAX_PROBABILITIES // len(case.view.table)
    )
    for number in np.unique(part).tolist():
        yield positions[part[stretch_indices] == number]


def _build_block(case: Case, positions: Ids) -> tuple[Block, Ids]:
    """Builds a block of the stretches around positions.

    Each stretch is a text of its own. Also returns the indices of the protected positions in it,
    ascending.
    """
    view, layout = case.view, case.view.layout
    starts = _find_stretches(layout)
    used = np.unique(np.searchsorted(starts, layout.positions[positions], side="right") - 1)
    indices = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in used.tolist()])
    rows = np.maximum(view.pass_rows, 0)  # a hole has no row and is in no window
    rows[layout.positions] = case.truth.table_rows
    block_layout = Layout(
        roles=layout.roles[indices],
        documents=np.cumsum([0, *np.diff(starts)[used]], dtype=np.int64),
        unit_of=np.unique(layout.unit_of[indices], return_inverse=True)[1],
    )
    return Block(layout=block_layout, rows=rows[indices]), np.flatnonzero(
        np.isin(layout.positions, indices)
    )


def _repeat_block(block: Block, copies: int) -> Block:
    """Repeats the texts of a block `copies` times."""
    layout, shift = block.layout, np.arange(copies)[:, None]
    repeated_layout = Layout(
        roles=np.tile(layout.roles, copies),
        documents=np.append(
            (shift * len(block.rows) + layout.documents[:-1]).ravel(), copies * len(block.rows)
        ),
        unit_of=(shift * (layout.unit_of.max() + 1) + layout.unit_of).ravel(),
    )
    return Block(layout=repeated_layout, rows=np.tile(block.rows, copies))
