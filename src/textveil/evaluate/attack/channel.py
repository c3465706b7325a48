"""The channel: how probable a released row is for every private row.

In: a mechanism with its options, released rows. Out: ln P(released row | private row); the exact
best guesses.
Not here: what is known before a release (`prior`), and both together (`posterior`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from textveil.errors import ConfigError
from textveil.evaluate.attack import context_channel, sampled_channel
from textveil.evaluate.attack.attack_contract import ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import Case, View
from textveil.evaluate.log_math import slice_rows
from textveil.mechanism import PLACEHOLDER, Backward, Block, Law, Layout, Mechanism, Noisy, Windowed
from textveil.randomness import Draws, Flags, Floats, Ids, Randomness, Values
from textveil.table import EmbeddingTable, compute_shares

Evidence = Literal["exact", "estimated"]

PRIVATE_ROWS_AT_ONCE = 64
"""Private rows whose law is computed at once.

Few, so that intermediate results stay in the cache.
"""

MAX_LOG_PROBABILITIES = 1 << 27
"""Log-probabilities that are in memory at once: 512 MiB."""

POSITION_LINE_DIVISOR = 4
"""Divides `MAX_LOG_PROBABILITIES` where each position has a line and logits by itself."""

DRAWS_AT_ONCE = 4096
"""Noisy vectors that are drawn and decoded at once."""

MAX_DRAW_BLOCKS = 16
"""Blocks of draws that are held and sorted together.

100 MB at d = 384.
"""

DENSITIES_AT_ONCE = 256
"""Draws whose densities around all rows are held at once.

22 MB for 21,719 rows.
"""

RELEASED_ROW_SHARE = 0.8
"""The share of draws around the released rows themselves.

The other draws keep any single weight from being large.
"""

SAMPLED_ROW_SHARE = 0.4
"""The same share where nothing is known of the mechanism but its draws.

It may release words for others that are not near.
"""

MIN_SAMPLED_ROWS = 64
"""The least number of released rows for which such a mechanism draws."""

WEIGHED_DRAWS_DIVISOR = 3
"""Divides the draws that are weighed for one row.

Of all draws that became a row, at most the mean number per row divided by this is weighed: the
first.
"""

MISSED_ROW_FACTOR = 8
"""Multiplies the draws for rows that no draw hit."""

MIN_LOG_DENSITY = -80.0
"""The lowest log density, relative to the draw's largest.

float32 has no smaller numbers at full speed.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Likelihoods:
    """The channel at some positions of a view.

    Attributes:
        positions: int64 [p], protected positions.
        which: int64 [p, r], the line of what each of r releases drew at each position.
        lines: float32 [m, V], ln P(released row | each private row); where estimated, but for a
            constant of the line.
        evidence: whether the law was written down or estimated.
    """

    positions: Ids
    which: Ids
    lines: Floats = field(repr=False)
    evidence: Evidence


def explain_refusal(view: View) -> str:
    """Returns why the channel of single words cannot be had, or "".

    In words that go on "not run: ".
    """
    if not (view.output_rows != PLACEHOLDER).any():
        return ""
    if context_channel.is_contextual(view.mechanism, view.table):
        return context_channel.explain_refusal(view)
    if _is_mixing(view):
        return "the law of a released word depends on the words that are mixed with it"
    if isinstance(view.mechanism, Law) and not view.mechanism.claim(view.table).alone:
        return "the law of a released word may depend on other words than its own"
    return ""


def _is_mixing(view: View) -> bool:
    return isinstance(view.mechanism, Windowed) and view.mechanism.mix.L > 1


def is_sampled(view: View) -> bool:
    """Says whether the law is estimated from draws of words alone in their text.

    So it is where the mechanism does nothing but draw, or its options leave no closed form.
    """
    if explain_refusal(view) or context_channel.is_contextual(view.mechanism, view.table):
        return False
    if not (view.output_rows != PLACEHOLDER).any():
        return False
    is_noise = isinstance(view.mechanism, Noisy) and view.mechanism.claim(view.table).alone
    return not is_noise and not _has_explicit_law(view)


def _has_explicit_law(view: View) -> bool:
    """Says whether the mechanism has an explicit law for a single word.

    It is tried on one of the released words.
    """
    if not isinstance(view.mechanism, Law):
        return False
    first = int(np.flatnonzero(view.output_rows != PLACEHOLDER)[0])
    block = Block(layout=Layout.build(1), rows=np.zeros(1, np.int64))
    return view.mechanism.log_probs(view.table, block, view.parameter[[first]]) is not None


def check_law(case: Case) -> None:
    """Refuses releases that are impossible under the law.

    No guess from such a law would be worth anything.

    Args:
        case: releases; nothing is checked where the law of a word alone is not written down.

    Raises:
        ConfigError: a private word can never have become what was drawn for it.
    """
    view, positions = case.view, np.flatnonzero(case.view.output_rows != PLACEHOLDER)
    if (
        "fits" in view.memo
        or not len(positions)
        or not view.mechanism.claim(view.table).alone
        or not _has_explicit_law(view)
    ):
        return
    assert isinstance(view.mechanism, Law), "its law is written down"
    triples = np.stack(
        [case.truth.table_rows[positions], view.output_rows[positions], view.parameter[positions]]
    )
    distinct = positions[np.unique(triples, axis=1, return_index=True)[1]]
    for start in range(0, len(distinct), PRIVATE_ROWS_AT_ONCE):
        chunk = distinct[start : start + PRIVATE_ROWS_AT_ONCE]
        block = Block(
            layout=Layout.build(*np.ones_like(chunk).tolist()), rows=case.truth.table_rows[chunk]
        )
        law = view.mechanism.log_probs(view.table, block, view.parameter[chunk])
        if law is None or np.isneginf(law[np.arange(len(chunk)), view.output_rows[chunk]]).any():
            raise ConfigError(
                "under these options some of the released words are impossible; perhaps an "
                "earlier release of the session drew them under other options: make the "
                "releases without a session"
            )
    view.memo["fits"] = True


def describe_estimate(view: View, draws: int) -> str:
    """Returns the note of an attack whose channel is not exact."""
    method = f"from {draws} draws for each released word"
    if context_channel.is_contextual(view.mechanism, view.table):
        method = context_channel.describe_approximation(view)
    elif is_sampled(view):
        method += ", of words alone in their text, and pooled by distance"
    return f"a lower bound: the law was estimated {method}"


def yield_likelihoods(
    view: View, *, draws: int, rng: Randomness, report: ProgressCallback = ignore_progress
) -> Iterator[Likelihoods]:
    """Yields the channel at all protected positions, part by part.

    A channel of one part is kept in the view's memo.

    Equal released rows with equal parameters share a line. A part has one parameter, and at most
    `MAX_LOG_PROBABILITIES` numbers.

    Args:
        view: of a mechanism that does not mix words.
        draws: noisy vectors, or words, per line, where the law has to be estimated.
        rng: for these.
        report: callback for progress.
    """
    if context_channel.is_contextual(view.mechanism, view.table):
        yield from _yield_in_context(view, report)
        return
    for key in ("law", ("likelihoods", draws)):
        cache_entry = view.memo.get(key)
        if isinstance(cache_entry, Likelihoods):
            yield cache_entry
            return
    parts = list(_yield_parts(view))
    for positions in parts:
        rows, which = np.unique(view.release_rows[positions], return_inverse=True)
        lines, evidence = _compute_lines(
            view, rows, float(view.parameter[positions[0]]), draws, rng, report
        )
        which = which.reshape(len(positions), -1)
        part_likelihoods = Likelihoods(
            positions=positions, which=which, lines=lines, evidence=evidence
        )
        if len(parts) == 1:
            view.memo["likelihoods", draws] = part_likelihoods
        yield part_likelihoods


def share_channels(views: Sequence[View], report: ProgressCallback = ignore_progress) -> None:
    """Computes the common part of several views' channels once.

    It is kept in their memos.

    Of mechanisms that look at a context that is the distances of the table above all. Of others it
    is the whole law of the rows that are released in any view, where it is exact, has one
    parameter, and can be held.

    Args:
        views: on one table; of one mechanism, if it looks at each word alone.
        report: callback for progress.
    """
    if not context_channel.is_contextual(views[0].mechanism, views[0].table):
        _share_law(views, report)
        return
    releases = [release for view in views for release in (view, *view.other_releases)]
    all_lines = iter(
        context_channel.compute_lines(
            [(view, np.arange(len(view.output_rows))) for view in releases], report
        )
    )
    for view in views:
        view_lines = [next(all_lines) for _ in (view, *view.other_releases)]
        view.memo["in context"] = _build_per_position(
            view, np.arange(len(view.output_rows)), view_lines
        )


def _has_same_law(view: View, other: View) -> bool:
    return view.mechanism == other.mechanism and view.table is other.table


def _share_law(views: Sequence[View], report: ProgressCallback) -> None:
    first = views[0]
    # a law that is estimated is estimated for each
    if isinstance(first.mechanism, Noisy) or explain_refusal(first) or is_sampled(first):
        return
    if not all(map(partial(_has_same_law, first), views)):
        return
    pairs = [(view, view.release_rows != PLACEHOLDER) for view in views]
    rows = np.unique(np.concatenate([view.release_rows[is_word] for view, is_word in pairs]))
    parameters = np.unique(
        np.concatenate([view.parameter[is_word[:, 0]] for view, is_word in pairs])
    )
    if len(parameters) != 1 or len(rows) * len(first.table) > MAX_LOG_PROBABILITIES:
        return
    lines = compute_exact_lines(first.mechanism, first.table, rows, float(parameters[0]), report)
    if lines is None:
        return
    # a placeholder is as probable for every row
    lines = np.concatenate([np.zeros((1, len(first.table)), np.float32), lines])
    for view, is_word in pairs:
        which = np.where(is_word, np.searchsorted(rows, view.release_rows) + 1, 0)
        everywhere = np.arange(len(view.output_rows))
        view.memo["law"] = Likelihoods(
            positions=everywhere, which=which, lines=lines, evidence="exact"
        )


def _yield_in_context(view: View, report: ProgressCallback) -> Iterator[Likelihoods]:
    """Yields the channel of a context mechanism, one line for each position."""
    cache_entry = view.memo.get("in context")
    if isinstance(cache_entry, Likelihoods):
        yield cache_entry
        return
    releases = (view, *view.other_releases)
    limit = max(
        1, MAX_LOG_PROBABILITIES // (POSITION_LINE_DIVISOR * len(view.table) * len(releases))
    )
    for start in range(0, len(view.output_rows), limit):
        positions = np.arange(start, min(start + limit, len(view.output_rows)))
        likelihoods = _build_per_position(
            view,
            positions,
            context_channel.compute_lines([(release, positions) for release in releases], report),
        )
        if len(positions) == len(view.output_rows):
            view.memo["in context"] = likelihoods
        yield likelihoods


def _build_per_position(view: View, positions: Ids, lines: Sequence[Floats]) -> Likelihoods:
    evidence: Evidence = "estimated" if context_channel.describe_approximation(view) else "exact"
    which = np.arange(len(lines) * len(positions)).reshape(len(lines), -1).T
    joined = lines[0] if len(lines) == 1 else np.concatenate(lines)
    return Likelihoods(positions=positions, which=which, lines=joined, evidence=evidence)


def _yield_parts(view: View) -> Iterator[Ids]:
    """Yields positions of one parameter whose distinct released rows fit in memory."""
    limit = max(1, MAX_LOG_PROBABILITIES // len(view.table))
    # A placeholder tells the same under any parameter, so that all of them are one group.
    _, group = np.unique(
        np.where(view.output_rows == PLACEHOLDER, 0.0, view.parameter), return_inverse=True
    )
    for number in range(group.max(initial=-1) + 1):
        members = np.flatnonzero(group == number)
        distinct, line = np.unique(view.release_rows[members], return_inverse=True)
        if len(distinct) <= limit:
            yield members
        elif view.other_releases:  # a position needs the lines of all its releases
            step = max(1, limit // view.release_rows.shape[1])
            yield from (members[start : start + step] for start in range(0, len(members), step))
        else:
            for start in range(0, len(distinct), limit):
                yield members[(line.ravel() >= start) & (line.ravel() < start + limit)]


def _compute_lines(
    view: View, rows: Ids, parameter: float, draws: int, rng: Randomness, report: ProgressCallback
) -> tuple[Floats, Evidence]:
    """Returns the lines [m, V] of distinct released rows.

    A placeholder, always the first, is as probable for every row.
    """
    hidden = int(rows[0] == PLACEHOLDER)
    even = np.zeros((hidden, len(view.table)), np.float32)
    if hidden == len(rows):
        return even, "exact"
    mechanism, table, words = view.mechanism, view.table, rows[hidden:]
    evidence: Evidence = "estimated"
    lines: Floats | None
    if is_sampled(view):
        centres = _draw_proposals(
            table, words, draws * max(len(words), MIN_SAMPLED_ROWS), SAMPLED_ROW_SHARE, rng
        )
        lines = sampled_channel.estimate_by_drawing(
            mechanism, table, words, parameter, centres, rng=rng, report=report
        )
    elif (lines := compute_exact_lines(mechanism, table, words, parameter, report)) is not None:
        evidence = "exact"
    else:
        assert isinstance(mechanism, Noisy), "sampled otherwise"
        lines = estimate_lines(
            mechanism, table, words, parameter, draws=draws, rng=rng, report=report
        )
    return np.concatenate([even, lines]) if hidden else lines, evidence


# ---- laws that can be written down ---------------------------------------------------------------


def yield_laws(
    mechanism: Mechanism,
    table: EmbeddingTable,
    parameter: float,
    report: ProgressCallback = ignore_progress,
) -> Iterator[tuple[int, Values]]:
    """Yields ln P(y | x) [m, V] of consecutive private rows x.

    With the first of the rows; nothing where there is no law.

    Every row is a text by itself.
    """
    if not isinstance(mechanism, Law):
        return
    for start in range(0, len(table), PRIVATE_ROWS_AT_ONCE):
        rows = np.arange(start, min(start + PRIVATE_ROWS_AT_ONCE, len(table)))
        block = Block(layout=Layout.build(*np.ones_like(rows).tolist()), rows=rows)
        law = mechanism.log_probs(table, block, np.full(len(rows), parameter))
        if law is None:
            return
        report("laws", start, len(table))
        yield start, law


def compute_exact_lines(
    mechanism: Mechanism,
    table: EmbeddingTable,
    rows: Ids,
    parameter: float,
    report: ProgressCallback = ignore_progress,
) -> Floats | None:
    """Returns ln P(row | x) of released rows, if exact.

    For all x, float32 [m, V]; None where there is no law.
    """
    if (
        isinstance(mechanism, Backward)
        and (backward_lines := mechanism.log_likelihoods(table, rows, parameter)) is not None
    ):
        return backward_lines
    lines = None
    for start, law in yield_laws(mechanism, table, parameter, report):
        lines = np.empty((len(rows), len(table)), np.float32) if lines is None else lines
        lines[:, start : start + len(law)] = law[:, rows].T
    return lines


def find_exact_map(
    mechanism: Mechanism,
    table: EmbeddingTable,
    parameter: float,
    log_prior: Values,
    *,
    report: ProgressCallback = ignore_progress,
) -> tuple[Ids, float]:
    """Finds the best guess for every released row, and its success rate.

    With the uniform prior, ln(V * success) = ln sum_y max_x P(y | x) is a certified lower bound on
    the epsilon of local DP.

    Args:
        mechanism: has a law.
        table: its V rows are what can be private, and released.
        parameter: the mechanism's own, the same for all rows.
        log_prior: ln of the probability of each private row, float64 [V].
        report: callback for progress.

    Returns:
        guesses int64 [V], and sum_y max_x prior(x) P(y | x).

    Raises:
        ValueError: the mechanism has no law that could be written down.
    """
    best, guess = np.full(len(table), -np.inf), np.zeros(len(table), np.int64)
    has_law = False
    for start, law in yield_laws(mechanism, table, parameter, report):
        has_law = True
        law += log_prior[start : start + len(law), None]
        highest = law.max(axis=0)
        better = np.flatnonzero(highest > best)
        guess[better] = start + law[:, better].argmax(axis=0)
        best[better] = highest[better]
    if not has_law:
        raise ValueError("exact_map needs a mechanism with a law")
    return guess, float(np.exp(best).sum())


# ---- laws that have to be estimated --------------------------------------------------------------


def estimate_lines(
    mechanism: Noisy,
    table: EmbeddingTable,
    rows: Ids,
    parameter: float,
    *,
    draws: int,
    rng: Randomness,
    report: ProgressCallback = ignore_progress,
) -> Floats:
    """Estimates ln P(row | x) of released rows by importance sampling.

    float32 [m, V] for distinct released rows and all x, up to a constant of the row.

    Noisy vectors z are drawn around rows x', most of them around the released rows, a tenth around
    all rows, a tenth around rows as frequent as in public text, and decoded. With m_x' of them
    around x', the sum of f(z | x) / sum_x' m_x' f(z | x') over those that became y estimates P(y |
    x) without bias, for all x at once: the balance heuristic over the pooled draws. A row that none
    became is drawn around once more, and harder; if none becomes it then, its line is the density
    at its own vector, which orders rows by their distance to it.

    Where a word's own row is never released, z counts for its nearest row y and all x but y, and
    for its second nearest and x = y alone; some draw is around every row then, and all draws are
    weighed.

    Source: Veach and Guibas, "Optimally combining sampling techniques for Monte Carlo rendering",
    SIGGRAPH 1995.

    Args:
        mechanism: adds noise, and mixes no words.
        table: its V rows are what can be private.
        rows: the released rows.
        parameter: the noise's.
        draws: for each released row.
        rng: for the draws.
        report: callback for progress.
    """
    view = mechanism.get_view(table)
    pool = _DrawPool(
        mechanism=mechanism, table=table, view=view, parameter=parameter, rng=rng, report=report
    )
    budget = draws * len(rows)
    centres = _draw_proposals(table, rows, budget, RELEASED_ROW_SHARE, rng)
    # with little noise, a row is released for those that it is the nearest to
    if mechanism.exclude_original:
        centres = np.concatenate([centres, np.arange(len(table))])
    lines, hit = pool.estimate_lines(rows, centres)
    if not hit.all():
        missed = np.flatnonzero(~hit)
        draws_per_row = max(1, min(MISSED_ROW_FACTOR * draws, budget // len(missed)))
        retry_lines, hit = pool.estimate_lines(rows[missed], np.repeat(rows[missed], draws_per_row))
        retry_lines[~hit] = pool.log_density(view.take(rows[missed[~hit]]))
        lines[missed] = retry_lines
    if mechanism.exclude_original:
        lines[np.arange(len(rows)), rows] = -np.inf
    return lines


def _draw_proposals(
    table: EmbeddingTable, rows: Ids, budget: int, released_share: float, rng: Randomness
) -> Ids:
    """Draws the private rows that are tried: a share of them the released ones themselves."""
    share = max(1, int(released_share * budget) // len(rows))
    other_draws = budget - share * len(rows)
    cumulated = np.cumsum((1 / len(table) + compute_shares(table)) / 2)
    uniform = (
        [draws.uniform(1)[:, 0] for _, draws in rng.open([other_draws]).split_rows(other_draws)]
        if other_draws
        else []
    )
    other_rows = [
        np.minimum(np.searchsorted(cumulated, values), len(table) - 1) for values in uniform
    ]
    return np.concatenate([np.repeat(rows, share), *other_rows])


def _shuffle_order(size: int, rng: Randomness) -> Ids:
    """Returns a random order, in which any first draws are representative."""
    order: Ids = np.concatenate(
        [draws.uniform(1)[:, 0] for _, draws in rng.open([size]).split_rows(size)]
    ).argsort()
    return order


def weigh(log_density: Floats, counts: Floats) -> Floats:
    """Computes balance-heuristic weights of draws, in place.

    f(z | x) / sum_x' m_x' f(z | x') of draws z and all x [b, V], from ln f [b, V] and m [V].
    """
    for part in slice_rows(log_density):
        weights = log_density[part]
        # A factor of the draw cancels in the quotient below, and exp does not underflow.
        weights -= weights.max(axis=1, keepdims=True)
        np.exp(np.maximum(weights, MIN_LOG_DENSITY, out=weights), out=weights)
        weights /= (weights @ counts)[:, None]
    return log_density


@dataclass(frozen=True, kw_only=True, eq=False)
class _DrawPool:
    """A pool of draws around many rows, weighed for all rows."""

    mechanism: Noisy
    table: EmbeddingTable
    view: EmbeddingTable
    parameter: float
    rng: Randomness
    report: ProgressCallback

    def estimate_lines(self, rows: Ids, centres: Ids) -> tuple[Floats, Flags]:
        """Estimates lines [m, V] from pooled draws.

        float32, from one draw around each of the rows [D]. Returns also whether any draw became the
        row.
        """
        size = len(self.view)
        line_of = np.full(size, -1)
        line_of[rows] = np.arange(len(rows))
        counts = np.bincount(centres, minlength=size).astype(np.float32)
        max_weighed = (
            len(centres)
            if self.mechanism.exclude_original
            else -(-len(centres) // (WEIGHED_DRAWS_DIVISOR * len(rows)))
        )
        sums, hits = np.zeros((len(rows), size), np.float32), np.zeros(len(rows), np.int64)
        for noisy, line, only in self._yield_draws(
            centres[_shuffle_order(len(centres), self.rng)], line_of
        ):
            order = np.argsort(line, kind="stable")  # draws that became one row stand together
            number = (
                hits[line[order]]
                + np.arange(len(order))
                - np.searchsorted(line[order], line[order])
            )
            order = order[number < max_weighed]
            hits += np.bincount(line, minlength=len(rows))
            for start in range(0, len(order), DENSITIES_AT_ONCE):
                chunk = order[start : start + DENSITIES_AT_ONCE]
                weights = weigh(self.log_density(noisy[chunk]), counts)
                alone = np.flatnonzero(only[chunk] >= 0)
                only_rows = only[chunk[alone]]
                only_weights = weights[alone, only_rows]
                weights[alone] = 0
                weights[alone, only_rows] = only_weights
                first, last = int(line[chunk[0]]), int(line[chunk[-1]]) + 1
                member = line[chunk] == np.arange(first, last)[:, None]
                sums[first:last] += member.astype(np.float32) @ weights
        # Of many hits only the first were weighed; they stand for all.
        share = np.maximum(hits, 1) / np.clip(hits, 1, max_weighed)
        with np.errstate(divide="ignore"):
            np.log(sums, out=sums)
        sums += np.log(share, dtype=np.float32)[:, None]
        return sums, hits > 0

    def log_density(self, noisy: Floats) -> Floats:
        """Returns ln f [m, V] of noisy vectors around every row.

        Up to a constant.
        """
        return self.mechanism.log_density(self.table, noisy, self.parameter)

    def _yield_draws(self, centres: Ids, line_of: Ids) -> Iterator[tuple[Floats, Ids, Ids]]:
        """Yields the noisy vectors that became one of the requested rows.

        Yields:
            the vectors float32 [h, d], the lines of these rows [h], and the private row for which
                alone each became
            its row [h], -1 where for all.
        """
        draw_blocks: list[tuple[Floats, Ids, Ids]] = []
        draws: Draws
        for chunk, draws in self.rng.open([len(centres)]).split_rows(DRAWS_AT_ONCE):
            self.report("draws", chunk.start, len(centres))
            rows = centres[chunk]
            parameter = np.full(len(rows), self.parameter)
            noisy = self.mechanism.sample(draws, self.table, rows, parameter).astype(np.float32)
            nearest = self.view.nearest(noisy)
            line, only = line_of[nearest], np.full(len(rows), -1)
            if self.mechanism.exclude_original:
                second = self.view.nearest(noisy, exclude=nearest)
                noisy = np.tile(noisy, (2, 1))
                line = np.concatenate([line, line_of[second]])
                only = np.concatenate([only, nearest])
            draw_blocks.append((noisy[line >= 0], line[line >= 0], only[line >= 0]))
            if len(draw_blocks) == MAX_DRAW_BLOCKS or chunk.stop == len(centres):
                vectors, lines, single = zip(*draw_blocks, strict=True)
                yield np.concatenate(vectors), np.concatenate(lines), np.concatenate(single)
                draw_blocks = []
