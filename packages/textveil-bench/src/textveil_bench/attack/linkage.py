"""Linkage: which of many texts a release was made from.

In: releases, and other texts to find the originals among. Out: top-1, MRR, and how many texts are
left.
Not here: whether a given text is the original (`membership`), and what its words were (`bayes`,
`window`).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import BeforeValidator, Field

from textveil.config import Rerank, make_options
from textveil.errors import ConfigError
from textveil.evaluate.attack.attack_contract import Outcome, ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import Case, View
from textveil.mechanism import PLACEHOLDER, Block, Placeholder
from textveil.pipeline import EvaluationRun
from textveil.randomness import Flags, Ids, Ints, Randomness, Values
from textveil.table import EmbeddingTable
from textveil.text import Kind, Released, check_texts

MAX_SCORED_PAIRS = 1 << 22
"""Pairs of release and candidate that are held at once: 32 MiB a score."""

RULED_OUT = -1e9
"""The score of a candidate with another mask: below any sum of cosines."""

SCORE_TOLERANCE = 1e-9
"""Scores that differ by less are one score."""


def _validate_decoys(decoys: object) -> object:
    """The decoys, if they are texts; a message does not repeat them."""
    check_texts(decoys, noun="decoy")  # type: ignore[arg-type]
    return decoys


COSINE_NOTE = "a lower bound: words are compared by their cosines, whatever each of them may spend"


@make_options()
class Linkage:
    """Finds the original of each release among other texts: the price of what is released besides the words.

    The mask follows from a text by public rules, so a candidate with another mask is ruled out, and
    one that is left
    alone is the original, whatever the mechanism did. The attacker computes the masks of all
    candidates with the
    program that made the releases, its detectors, groups and budgets, and compares, from less to
    more: the number of
    words (`length`); also which positions pass, and their strings (`skeleton`); also whitespace,
    and casing, groups and
    pieces where they are released (`mask`). `mask and words` then orders those left by the sum,
    over protected words
    and names, of the cosine between the released row and the candidate's.

    Candidates are the originals of the case and the decoys. Equal texts are one candidate. Each
    release has a pool of
    its own, drawn at random, that holds its original. Among candidates that look alike the attacker
    picks at random:
    values are expectations over that choice.

    Args:
        pools: how many candidates there are to find the original among; all texts, where there are
            fewer.
        decoys: other texts, of the same kind as the originals; as secret as they are.
    """

    name: ClassVar[str] = "linkage"
    pools: Annotated[
        tuple[Annotated[int, Field(ge=2, le=1_000_000, strict=True)], ...],
        Field(min_length=1, max_length=10),
    ] = (100, 10_000)
    decoys: Annotated[tuple[str, ...], BeforeValidator(_validate_decoys)] = Field(
        default=(), repr=False
    )

    def refusal(self, view: View) -> str:
        """Where there is no release, or no other text."""
        if not view.released:
            return "there are no texts"
        if len(view.released) == 1 and not self.decoys:
            return "it needs other texts to find the original among"
        return view.replay_refusal

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Top-1, MRR and texts left, for every pool, from each part of the mask and from all that is released.

        Raises:
            ConfigError: a release has another mask than the program gives its own original.
        """
        view = case.view
        candidates = list(dict.fromkeys((*case.truth.texts, *self.decoys)))
        number = {text: i for i, text in enumerate(candidates)}
        originals = np.fromiter(
            map(number.__getitem__, case.truth.texts), np.int64, len(case.truth.texts)
        )
        report("masks of candidates", 0, len(candidates))
        candidate_run = _compute_masks(view, candidates)
        theirs = [result.released for result in candidate_run.results]
        classes = {
            source: _assign_classes(part, view.released, theirs)
            for source, part in MASK_PARTS.items()
        }
        mismatches = sum(
            int((ours != candidate_classes[originals]).sum())
            for ours, candidate_classes in classes.values()
        )
        if mismatches:
            raise ConfigError(
                "linkage can say nothing of these releases: the program gives their own originals "
                "other masks; make "
                "them without a session"
            )
        sizes = list(dict.fromkeys(min(size, len(candidates)) for size in self.pools))
        places: dict[tuple[str, int], list[Ints]] = {}
        streams = rng.open(np.ones(len(originals), np.int64))
        for chunk, draws in streams.split_rows(max(1, MAX_SCORED_PAIRS // len(candidates))):
            report("linkage", chunk.start, len(originals))
            pools = list(_draw_pools(draws.uniform(len(candidates)), originals[chunk], sizes))
            for source, score in _score_candidates(view, candidate_run, classes, chunk):
                for size, pool in zip(sizes, pools, strict=True):
                    places.setdefault((source, size), []).append(
                        _rank_originals(score, originals[chunk], pool)
                    )
        return self._build_outcomes(
            {key: np.concatenate(parts, axis=1) for key, parts in places.items()}, len(candidates)
        )

    def _build_outcomes(
        self, places: dict[tuple[str, int], Ids], candidates: int
    ) -> Iterator[Outcome]:
        wanted = max(self.pools)
        for (source, size), (better, equal) in places.items():
            everything = source == MASK_AND_WORDS
            top, reciprocal = compute_expectations(better, equal)
            chance = compute_expectations(np.zeros(1, np.int64), np.array([size - 1]))
            mask_baselines = (
                [float(rates.mean()) for rates in compute_expectations(*places["mask", size])]
                if everything
                else None
            )
            baselines = mask_baselines or [float(rates[0]) for rates in chance]
            short = (
                f"there are {candidates:,} texts, not {wanted:,}"
                if size == candidates < wanted
                else ""
            )
            measures: list[tuple[str, Values, float | None]] = [
                ("top-1", top, baselines[0]),
                ("MRR", reciprocal, baselines[1]),
            ]
            if not everything:
                measures.append(
                    ("texts left", (better + equal + 1).astype(np.float64), float(size))
                )
            for metric, values, baseline in measures:
                yield Outcome(
                    source=self.name,
                    metric=metric,
                    setting={"from": source, "among": size},
                    unit="text",
                    where=np.arange(len(values)),
                    values=values,
                    baseline=baseline,
                    note="; ".join(filter(None, (short, COSINE_NOTE if everything else ""))),
                    share=metric != "texts left",
                    headline=source in ("mask", MASK_AND_WORDS) and metric != "texts left",
                )


def compute_expectations(better: Ids, equal: Ids) -> tuple[Values, Values]:
    """The chance of the first place, and the mean reciprocal rank, of a candidate in a list with random ties.

    Args:
        better: int64 [m], candidates with a higher score.
        equal: int64 [m], others with the same score.
    """
    top = np.where(better == 0, 1 / (equal + 1), 0.0)
    last = better + equal + 1
    harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, last.max(initial=0) + 1))))
    return top, (harmonic[last] - harmonic[better]) / (equal + 1)


# ---- masks -----------------------------------------------------------------------------------------


class ZeroMechanism(Placeholder):
    """Releases row 0 for every protected word: a pipeline around it computes masks, and draws nothing."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """Zeros [n]."""
        return np.zeros(len(parameter), np.int64)


def _compute_masks(view: View, texts: list[str]) -> EvaluationRun:
    """The texts with their masks and rows, by the program that made the releases; no word of them is drawn."""
    assert view.program is not None, "refused otherwise"
    words = view.words
    if (
        words.oov == "error"
    ):  # a decoy with an unknown word cannot be the original, and is no error either
        words = replace(words, oov="surrogate")
    mechanism = Placeholder() if _has_no_draws(view) else ZeroMechanism()
    program = view.program.with_parts(
        mechanism=mechanism, claim=mechanism.claim(view.table), words=words, rerank=Rerank()
    )
    return program.rehearse(texts)


def _has_no_draws(view: View) -> bool:
    return bool((view.output_rows == PLACEHOLDER).all())


def _get_length(released: Released) -> Hashable:
    return released.mask.words


def _get_skeleton(released: Released) -> Hashable:
    return tuple(
        (item.kind, item.text if item.kind is Kind.VERBATIM else "") for item in released.items
    )


def _get_mask(released: Released) -> Hashable:
    mask = released.mask
    return _get_skeleton(released), released.gaps, mask.groups, mask.casing, mask.pieces, mask.equal


MASK_PARTS: dict[str, Callable[[Released], Hashable]] = {
    "length": _get_length,
    "skeleton": _get_skeleton,
    "mask": _get_mask,
}
"""From less to more of the mask."""

MASK_AND_WORDS = "mask and words"


def _assign_classes(
    part: Callable[[Released], Hashable], *batches: Iterable[Released]
) -> list[Ids]:
    """The number of each release's class; those of one class show the same."""
    number: dict[Hashable, int] = {}
    return [
        np.array([number.setdefault(part(released), len(number)) for released in batch], np.int64)
        for batch in batches
    ]


# ---- scores ----------------------------------------------------------------------------------------


def _score_candidates(
    view: View, candidate_run: EvaluationRun, classes: dict[str, list[Ids]], chunk: slice
) -> Iterator[tuple[str, Values]]:
    """How well each candidate fits each release of a chunk, float64 [m, M], by what it is judged from."""
    for source, (ours, theirs) in classes.items():
        yield source, np.where(ours[chunk, None] == theirs, 0.0, RULED_OUT)
    if view.name_items is not None or not _has_no_draws(view):
        ours, theirs = classes["mask"]
        yield MASK_AND_WORDS, _sum_cosines(view, candidate_run, ours, theirs, chunk)


def _sum_cosines(
    view: View, candidate_run: EvaluationRun, ours: Ids, theirs: Ids, chunk: slice
) -> Values:
    """The sum of cosines of rows at the same place, for candidates with the mask of the release, else `RULED_OUT`."""
    layout = candidate_run.plan.block.layout
    rows = (
        []
        if _has_no_draws(view)
        else [
            (
                view.table,
                view.visible_rows,
                view.layout.sizes,
                candidate_run.plan.block.secret,
                layout.sizes,
            )
        ]
    )
    if view.name_items is not None:
        named = np.flatnonzero(candidate_run.protection.named)
        ours_named, theirs_named = (
            np.diff(np.searchsorted(items, documents))
            for items, documents in (
                (view.name_items.items, view.documents),
                (named, layout.documents),
            )
        )
        rows.append(
            (
                view.origin,
                view.name_items.output_rows,
                ours_named,
                candidate_run.plan.originals[named],
                theirs_named,
            )
        )
    score = np.full((chunk.stop - chunk.start, len(theirs)), RULED_OUT)
    for number in np.unique(ours[chunk]).tolist():
        releases, candidates = (
            np.flatnonzero(ours[chunk] == number),
            np.flatnonzero(theirs == number),
        )
        total = np.zeros((len(releases), len(candidates)))
        if len(candidates) > 1:
            for table, release_rows, sizes, secret, candidate_sizes in rows:
                places, begins = (
                    np.cumsum(sizes) - sizes,
                    np.cumsum(candidate_sizes) - candidate_sizes,
                )
                for j in range(sizes[chunk.start + releases[0]]):
                    released = _normalize_rows(
                        table, release_rows[places[chunk.start + releases] + j]
                    )
                    total += released @ _normalize_rows(table, secret[begins[candidates] + j]).T
        score[np.ix_(releases, candidates)] = total
    return score


def _normalize_rows(table: EmbeddingTable, rows: Ids) -> Values:
    """Unit rows, float64 [m, d]."""
    vectors = table.take(rows).astype(np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    return vectors


# ---- pools -----------------------------------------------------------------------------------------


def _draw_pools(keys: Values, originals: Ids, sizes: list[int]) -> Iterator[Flags]:
    """For every size, bool [m, M]: the original of each release and as many others as that makes, those of low keys."""
    keys[np.arange(len(originals)), originals] = -1.0
    for size in sizes:
        yield keys <= np.partition(keys, size - 1, axis=1)[:, size - 1, None]


def _rank_originals(score: Values, originals: Ids, pool: Flags) -> Ids:
    """How many of the pool have a higher score than the original, and how many others the same: int64 [2, m]."""
    lead = score - score[np.arange(len(originals)), originals][:, None]
    better = ((lead > SCORE_TOLERANCE) & pool).sum(axis=1)
    equal = ((np.abs(lead) <= SCORE_TOLERANCE) & pool).sum(axis=1) - 1
    return np.stack([better, equal]).astype(np.int64)
