"""Candidates: the words that may be behind a released word.

They follow from the mechanism's law, public text, and words that passed.

In: releases, what public text teaches. Out: `Shortlist`, some dozens for every word to be guessed.
Not here: the law of released rows (`channel`), and how candidates are weighed by what stands around
(`learned`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from textveil.evaluate.attack import channel, context, unmixing
from textveil.evaluate.attack.around import Around
from textveil.evaluate.attack.case import View
from textveil.evaluate.attack.channel import Evidence
from textveil.evaluate.attack.contract import Report, quiet
from textveil.evaluate.attack.knowledge import Knowledge
from textveil.evaluate.attack.unmixing import WordEstimate
from textveil.evaluate.logs import highest
from textveil.mechanism import PLACEHOLDER
from textveil.randomness import Floats, Ids, Randomness

TRUST = 0.7
"""The weight of the nearest words in the choice of candidates.

These are the two before and the two behind, where they passed.
"""

CLOSE = 4
"""The number of sides that count as near."""

TOGETHER = 64
"""Cells whose candidates are chosen together.

For each of them all U words are held in memory.
"""

LEAST = np.float32(-40.0)
"""The lowest log likelihood of a candidate, relative to the likeliest."""

ELSEWHERE = 0.05
"""The share of words whose group their context changes.

Alone, the word would be in another group.
"""

LARGER = 20
"""The table size above which context laws are computed for candidates alone.

In multiples of the number of candidates.
"""

NEAR = np.float32(100.0)
"""The score of rows near the released row in choosing candidates.

It outweighs everything else.
"""

FEATURES = ("prior", "usual", "law", "own")
"""Names of the features of a candidate.

ln of its share in public text and in the general word list, ln of the law, and whether the table
has the word.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shortlist:
    """The candidate words of m cells, with their features.

    Attributes:
        around: the cells, and their context.
        words: int64 [m, K], numbers of words.
        features: float32 [m, K, F], the features of each without its context.
        passing: float32 [m, K, S], what neighbours that passed say of each, at each side.
        evidence: whether the law was written down or estimated.
    """

    around: Around = field(repr=False)
    words: Ids = field(repr=False)
    features: Floats = field(repr=False)
    passing: Floats = field(repr=False)
    evidence: Evidence


def alike(view: View) -> Ids:
    """Numbers positions [n], the same number for equal draws.

    Draws are equal where they are the same row in one text and one group.
    """
    n = len(view.drawn)
    alone = np.where(view.drawn == PLACEHOLDER, np.arange(n) + 1, 0)
    key = np.stack([view.text, view.group, alone, *view.draws.T])
    return np.unique(key, axis=1, return_inverse=True)[1].ravel()


def find(
    view: View,
    known: Knowledge,
    of: Ids,
    *,
    k: int,
    releases: int,
    draws: int,
    estimate: WordEstimate | None = None,
    rng: Randomness,
    report: Report = quiet,
) -> Shortlist:
    """Finds the candidates of every cell.

    Args:
        view: the releases.
        known: what public text teaches.
        of: int64 [n], the cell of each position.
        k: candidates for each.
        releases: how many releases are used; 0 for an attacker who sees nothing that was
            drawn.
        draws: noisy vectors per released row, where the law has to be estimated.
        estimate: takes the place of the law, where words were mixed.
        rng: for draws.
        report: callback for progress.
    """
    around = Around.look(view, known, of)
    m, k = len(around.text), min(k, int(known.candidate.sum()))
    words, features = np.zeros((m, k), np.int64), np.zeros((m, k, len(FEATURES)), np.float32)
    _, first = np.unique(of, return_index=True)
    expected = known.log_prior.astype(np.float32) + _correct_for_groups(view, known)
    evidence: Evidence = "exact"
    done = 0
    later = releases > 0 and _is_law_deferred(view, k)
    laws = _yield_laws(view, known, first, 0 if later else releases, draws, rng, report)
    if estimate is not None:
        laws = _yield_estimates(view, known, first, estimate)
    elif later:
        laws = _yield_nearest(view, known, first, releases, k // 2)
    for cells, which, lines, how in laws:
        evidence = how if how == "estimated" else evidence
        peak = lines.max(axis=1, keepdims=True)
        law = np.maximum(lines - np.where(np.isfinite(peak), peak, 0), LEAST)
        group = view.group[first[cells]]
        pairs, pair = np.unique(np.stack([which, group]), axis=1, return_inverse=True)
        score = (law[pairs[0]] + expected[pairs[1]])[pair.ravel()]
        score += TRUST * around.close(cells, CLOSE)
        best = highest(score, k)
        words[cells] = best
        features[cells, :, 0] = expected[group[:, None], best]
        features[cells, :, 1] = known.log_usual[best]
        features[cells, :, 2] = law[which[:, None], best]
        features[cells, :, 3] = known.own[best]
        done += len(cells)
        report("candidates", done, m)
    if later:
        features[:, :, 2] = _compute_context_law(view, known, first, releases, words, report)
        evidence = "estimated" if context.approximation(view) else "exact"
    return Shortlist(
        around=around,
        words=words,
        features=features,
        passing=around.passing(words),
        evidence=evidence,
    )


def _correct_for_groups(view: View, known: Knowledge) -> Floats:
    """Returns the correction of the log prior by group: float32 [G, U].

    Words that alone would be in another group lose ln of `ELSEWHERE`.
    """
    result = np.zeros((len(view.groups), len(known)), np.float32)
    if view.row_group is not None and len(view.row_group) == int(known.own.sum()):
        for number in range(len(view.groups)):
            result[number, : len(view.row_group)][view.row_group != number] = np.log(ELSEWHERE)
    return result


def _yield_laws(
    view: View,
    known: Knowledge,
    first: Ids,
    releases: int,
    draws: int,
    rng: Randomness,
    report: Report,
) -> Iterator[tuple[Ids, Ids, Floats, Evidence]]:
    """Yields cells, the law line of each, and the lines [l, U].

    A line is ln of the law of all words, up to a constant.
    """
    if releases == 0:
        for start in range(0, len(first), TOGETHER):
            cells = np.arange(start, min(start + TOGETHER, len(first)))
            yield cells, np.zeros_like(cells), np.zeros((1, len(known)), np.float32), "exact"
        return
    cell = np.full(len(view.drawn), -1)
    cell[first] = np.arange(len(first))
    for part in channel.likelihoods(view, draws=draws, rng=rng, report=report):
        own = np.flatnonzero(cell[part.positions] >= 0)
        drawn, which = np.unique(part.which[own, :releases], axis=0, return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")  # cells of one line stand together
        for start in range(0, len(own), TOGETHER):
            some = order[start : start + TOGETHER]
            here, line = np.unique(which.ravel()[some], return_inverse=True)
            law = np.zeros((len(here), part.lines.shape[1]), np.float32)
            for each in drawn[here].T:
                law += part.lines[each]
            of_words = view.table.spread(law)[:, known.row].astype(np.float32, copy=False)
            yield cell[part.positions[own[some]]], line, of_words, part.evidence


def _yield_estimates(
    view: View, known: Knowledge, first: Ids, estimate: WordEstimate
) -> Iterator[tuple[Ids, Ids, Floats, Evidence]]:
    """Yields scores by an estimate of mixed words, one line per cell.

    The same format as `_yield_laws`.
    """
    around = unmixing.MixedEvidence.of(view)
    estimated = estimate.vectors(around)[first]
    for start in range(0, len(first), TOGETHER):
        cells = np.arange(start, min(start + TOGETHER, len(first)))
        lines = estimate.lines(around.vectors, estimated[cells])
        of_words = view.table.spread(lines)[:, known.row].astype(np.float32, copy=False)
        yield cells, np.arange(len(cells)), of_words, "estimated"


def _is_law_deferred(view: View, k: int) -> bool:
    """Says whether the law is computed only after candidates are chosen.

    That is so where a context gives each position a separate law, and the table is large.
    """
    one = view.table is view.origin
    return one and context.looks(view.mechanism, view.table) and len(view.table) > LARGER * k


def _yield_nearest(
    view: View, known: Knowledge, first: Ids, releases: int, near: int
) -> Iterator[tuple[Ids, Ids, Floats, Evidence]]:
    """Yields scores of the rows nearest to the released rows.

    They take the place of the law, in the format of `_yield_laws`.
    """
    for start in range(0, len(first), TOGETHER):
        cells = np.arange(start, min(start + TOGETHER, len(first)))
        lines = np.zeros((len(cells), len(view.table)), np.float32)
        for drawn in view.draws[first[cells], :releases].T:
            there = np.flatnonzero(drawn != PLACEHOLDER)
            lines[there[:, None], view.table.neighbours(drawn[there], max(1, near // releases))] = (
                NEAR
            )
        yield cells, np.arange(len(cells)), np.where(known.own, lines[:, known.row], 0), "exact"


def _compute_context_law(
    view: View, known: Knowledge, first: Ids, releases: int, words: Ids, report: Report
) -> Floats:
    """Returns ln of the law of each candidate [m, K].

    Up to a constant of the cell.
    """
    law = np.zeros(words.shape, np.float32)
    order = np.argsort(first, kind="stable")
    for each in (view, *view.others)[:releases]:
        law[order] += context.of_candidates(each, first[order], known.row[words[order]], report)
    result: Floats = np.maximum(law - law.max(axis=1, keepdims=True), LEAST)
    return result
