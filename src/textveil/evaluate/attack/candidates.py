"""Candidates: the words that may be behind a released word.

They follow from the mechanism's law, public text, and words that passed.

In: releases, what public text teaches. Out: `Shortlist`, some dozens for every word to be guessed.
Not here: the law of released rows (`channel`), and how candidates are weighed by what stands around
(`learned`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from textveil.evaluate.attack import channel, context_channel, linear_estimate
from textveil.evaluate.attack.attack_contract import ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import View
from textveil.evaluate.attack.channel import Evidence
from textveil.evaluate.attack.context_features import WordContext
from textveil.evaluate.attack.knowledge import Knowledge
from textveil.evaluate.attack.linear_estimate import WordEstimate
from textveil.evaluate.log_math import find_highest
from textveil.mechanism import PLACEHOLDER
from textveil.randomness import Floats, Ids, Randomness

NEIGHBOUR_WEIGHT = 0.7
"""The weight of the nearest words in the choice of candidates.

These are the two before and the two behind, where they passed.
"""

NEAR_SIDES = 4
"""The number of sides that count as near."""

CELLS_AT_ONCE = 64
"""Cells whose candidates are chosen together.

For each of them all U words are held in memory.
"""

MIN_LOG_LIKELIHOOD = np.float32(-40.0)
"""The lowest log likelihood of a candidate, relative to the likeliest."""

OTHER_GROUP_SHARE = 0.05
"""The share of words whose group their context changes.

Alone, the word would be in another group.
"""

LARGE_TABLE_FACTOR = 20
"""The table size above which context laws are computed for candidates alone.

In multiples of the number of candidates.
"""

NEAR_ROW_SCORE = np.float32(100.0)
"""The score of rows near the released row in choosing candidates.

It outweighs everything else.
"""

CANDIDATE_FEATURES = ("prior", "usual", "law", "own")
"""Names of the features of a candidate.

ln of its share in public text and in the general word list, ln of the law, and whether the table
has the word.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shortlist:
    """The candidate words of m cells, with their features.

    Attributes:
        word_context: the cells, and their context.
        words: int64 [m, K], numbers of words.
        features: float32 [m, K, F], the features of each without its context.
        neighbour_ratios: float32 [m, K, S], what neighbours that passed say of each, at each side.
        evidence: whether the law was written down or estimated.
    """

    word_context: WordContext = field(repr=False)
    words: Ids = field(repr=False)
    features: Floats = field(repr=False)
    neighbour_ratios: Floats = field(repr=False)
    evidence: Evidence


def number_equal_draws(view: View) -> Ids:
    """Numbers positions [n], the same number for equal draws.

    Draws are equal where they are the same row in one text and one group.
    """
    n = len(view.output_rows)
    alone = np.where(view.output_rows == PLACEHOLDER, np.arange(n) + 1, 0)
    key = np.stack([view.text, view.group, alone, *view.release_rows.T])
    return np.unique(key, axis=1, return_inverse=True)[1].ravel()


def find_candidates(  # noqa: PLR0913 - most are options, given by keyword
    view: View,
    knowledge: Knowledge,
    cell_of: Ids,
    *,
    k: int,
    releases: int,
    draws: int,
    estimate: WordEstimate | None = None,
    rng: Randomness,
    report: ProgressCallback = ignore_progress,
) -> Shortlist:
    """Finds the candidates of every cell.

    Args:
        view: the releases.
        knowledge: what public text teaches.
        cell_of: int64 [n], the cell of each position.
        k: candidates for each.
        releases: how many releases are used; 0 for an attacker who sees nothing that was
            drawn.
        draws: noisy vectors per released row, where the law has to be estimated.
        estimate: takes the place of the law, where words were mixed.
        rng: for draws.
        report: callback for progress.
    """
    word_context = WordContext.build(view, knowledge, cell_of)
    m, k = len(word_context.text), min(k, int(knowledge.candidate.sum()))
    words, features = (
        np.zeros((m, k), np.int64),
        np.zeros((m, k, len(CANDIDATE_FEATURES)), np.float32),
    )
    _, first = np.unique(cell_of, return_index=True)
    expected = knowledge.log_prior.astype(np.float32) + _correct_for_groups(view, knowledge)
    evidence: Evidence = "exact"
    done = 0
    is_deferred = releases > 0 and _is_law_deferred(view, k)
    laws = _yield_laws(view, knowledge, first, 0 if is_deferred else releases, draws, rng, report)
    if estimate is not None:
        laws = _yield_estimates(view, knowledge, first, estimate)
    elif is_deferred:
        laws = _yield_nearest(view, knowledge, first, releases, k // 2)
    for cells, which, lines, law_evidence in laws:
        evidence = law_evidence if law_evidence == "estimated" else evidence
        peak = lines.max(axis=1, keepdims=True)
        law = np.maximum(lines - np.where(np.isfinite(peak), peak, 0), MIN_LOG_LIKELIHOOD)
        group = view.group[first[cells]]
        pairs, pair = np.unique(np.stack([which, group]), axis=1, return_inverse=True)
        score = (law[pairs[0]] + expected[pairs[1]])[pair.ravel()]
        score += NEIGHBOUR_WEIGHT * word_context.sum_word_ratios(cells, NEAR_SIDES)
        best = find_highest(score, k)
        words[cells] = best
        features[cells, :, 0] = expected[group[:, None], best]
        features[cells, :, 1] = knowledge.log_usual[best]
        features[cells, :, 2] = law[which[:, None], best]
        features[cells, :, 3] = knowledge.is_in_table[best]
        done += len(cells)
        report("candidates", done, m)
    if is_deferred:
        features[:, :, 2] = _compute_context_law(view, knowledge, first, releases, words, report)
        evidence = "estimated" if context_channel.describe_approximation(view) else "exact"
    return Shortlist(
        word_context=word_context,
        words=words,
        features=features,
        neighbour_ratios=word_context.compute_candidate_ratios(words),
        evidence=evidence,
    )


def _correct_for_groups(view: View, knowledge: Knowledge) -> Floats:
    """Returns the correction of the log prior by group: float32 [G, U].

    Words that alone would be in another group lose ln of `OTHER_GROUP_SHARE`.
    """
    result = np.zeros((len(view.groups), len(knowledge)), np.float32)
    if view.row_group is not None and len(view.row_group) == int(knowledge.is_in_table.sum()):
        for number in range(len(view.groups)):
            result[number, : len(view.row_group)][view.row_group != number] = np.log(
                OTHER_GROUP_SHARE
            )
    return result


def _yield_laws(
    view: View,
    knowledge: Knowledge,
    first: Ids,
    releases: int,
    draws: int,
    rng: Randomness,
    report: ProgressCallback,
) -> Iterator[tuple[Ids, Ids, Floats, Evidence]]:
    """Yields cells, the law line of each, and the lines [l, U].

    A line is ln of the law of all words, up to a constant.
    """
    if releases == 0:
        for start in range(0, len(first), CELLS_AT_ONCE):
            cells = np.arange(start, min(start + CELLS_AT_ONCE, len(first)))
            yield cells, np.zeros_like(cells), np.zeros((1, len(knowledge)), np.float32), "exact"
        return
    cell = np.full(len(view.output_rows), -1)
    cell[first] = np.arange(len(first))
    for part in channel.yield_likelihoods(view, draws=draws, rng=rng, report=report):
        members = np.flatnonzero(cell[part.positions] >= 0)
        draw_lines, which = np.unique(part.which[members, :releases], axis=0, return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")  # cells of one line stand together
        for start in range(0, len(members), CELLS_AT_ONCE):
            chunk = order[start : start + CELLS_AT_ONCE]
            draw_numbers, line = np.unique(which.ravel()[chunk], return_inverse=True)
            law = np.zeros((len(draw_numbers), part.lines.shape[1]), np.float32)
            for release_lines in draw_lines[draw_numbers].T:
                law += part.lines[release_lines]
            word_lines = view.table.spread(law)[:, knowledge.row].astype(np.float32, copy=False)
            yield cell[part.positions[members[chunk]]], line, word_lines, part.evidence


def _yield_estimates(
    view: View, knowledge: Knowledge, first: Ids, estimate: WordEstimate
) -> Iterator[tuple[Ids, Ids, Floats, Evidence]]:
    """Yields scores by an estimate of mixed words, one line per cell.

    The same format as `_yield_laws`.
    """
    evidence = linear_estimate.MixedEvidence.build(view)
    estimates = estimate.estimate_vectors(evidence)[first]
    for start in range(0, len(first), CELLS_AT_ONCE):
        cells = np.arange(start, min(start + CELLS_AT_ONCE, len(first)))
        lines = estimate.score_all_rows(evidence.vectors, estimates[cells])
        word_lines = view.table.spread(lines)[:, knowledge.row].astype(np.float32, copy=False)
        yield cells, np.arange(len(cells)), word_lines, "estimated"


def _is_law_deferred(view: View, k: int) -> bool:
    """Says whether the law is computed only after candidates are chosen.

    That is so where a context gives each position a separate law, and the table is large.
    """
    is_word_table = view.table is view.origin
    return (
        is_word_table
        and context_channel.is_contextual(view.mechanism, view.table)
        and len(view.table) > LARGE_TABLE_FACTOR * k
    )


def _yield_nearest(
    view: View, knowledge: Knowledge, first: Ids, releases: int, neighbour_count: int
) -> Iterator[tuple[Ids, Ids, Floats, Evidence]]:
    """Yields scores of the rows nearest to the released rows.

    They take the place of the law, in the format of `_yield_laws`.
    """
    for start in range(0, len(first), CELLS_AT_ONCE):
        cells = np.arange(start, min(start + CELLS_AT_ONCE, len(first)))
        lines = np.zeros((len(cells), len(view.table)), np.float32)
        for release_rows in view.release_rows[first[cells], :releases].T:
            word_cells = np.flatnonzero(release_rows != PLACEHOLDER)
            lines[
                word_cells[:, None],
                view.table.neighbours(
                    release_rows[word_cells], max(1, neighbour_count // releases)
                ),
            ] = NEAR_ROW_SCORE
        yield (
            cells,
            np.arange(len(cells)),
            np.where(knowledge.is_in_table, lines[:, knowledge.row], 0),
            "exact",
        )


def _compute_context_law(
    view: View,
    knowledge: Knowledge,
    first: Ids,
    releases: int,
    words: Ids,
    report: ProgressCallback,
) -> Floats:
    """Returns ln of the law of each candidate [m, K].

    Up to a constant of the cell.
    """
    law = np.zeros(words.shape, np.float32)
    order = np.argsort(first, kind="stable")
    for release in (view, *view.other_releases)[:releases]:
        law[order] += context_channel.compute_candidate_law(
            release, first[order], knowledge.row[words[order]], report
        )
    result: Floats = np.maximum(law - law.max(axis=1, keepdims=True), MIN_LOG_LIKELIHOOD)
    return result
