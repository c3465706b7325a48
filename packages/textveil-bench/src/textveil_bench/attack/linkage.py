"""Linkage: finds the original of a release among many texts.

In: releases, and other texts as candidates. Out: top-1, MRR, and the number of candidates left.
Not here: tests of a single candidate (`membership`), and guesses of words (`bayes`, `window`).
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
"""Release-candidate pairs held in memory at once: 32 MiB per score."""

RULED_OUT = -1e9
"""Score of a candidate with a different mask, below all others."""

SCORE_TOLERANCE = 1e-9
"""Scores that differ by less count as equal."""


def _validate_decoys(decoys: object) -> object:
    """Checks that the decoys are texts; error messages do not repeat them."""
    check_texts(decoys, noun="decoy")  # type: ignore[arg-type]
    return decoys


COSINE_NOTE = "a lower bound: words are compared by their cosines, whatever each of them may spend"


@make_options()
class Linkage:
    """Finds the original of each release among other texts.

    The mask follows from a text by public rules, so candidates with a different mask are ruled out;
    a single remaining candidate is the original, whatever the mechanism did. The attacker computes
    the masks of all candidates with the program that made the releases (its detectors, groups and
    budgets), and compares increasingly much: the number of words (`length`); also the positions and
    strings of public words (`skeleton`); also whitespace, and casing, groups and pieces where they
    are released (`mask`). `mask and words` then ranks the remaining candidates by the cosine
    between released and candidate row, summed over protected words and names.

    Candidates are the originals of the case and the decoys. Equal texts are one candidate. Each
    release has its own pool, drawn at random, that contains its original. Ties are broken at
    random: values are expectations over the tie-breaking.

    Args:
        pools: number of candidates in a pool; all texts if there are fewer.
        decoys: other texts of the same kind as the originals; kept as secret as they are.
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
        """Explains why the attack cannot run: no releases, or no other texts."""
        if not view.released:
            return "there are no texts"
        if len(view.released) == 1 and not self.decoys:
            return "it needs other texts to find the original among"
        return view.replay_refusal

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Yields top-1, MRR and candidates left, for each pool size and comparison.

        Raises:
            ConfigError: the program gives a release's original a different mask.
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
                "linkage cannot judge these releases: the program gives their own originals other "
                "masks; make them without a session"
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
    """Computes expected top-1 and reciprocal rank under random tie-breaking.

    Args:
        better: int64 [m], number of candidates with a higher score.
        equal: int64 [m], number of other candidates with the same score.

    Returns:
        float64 [m] each.
    """
    top = np.where(better == 0, 1 / (equal + 1), 0.0)
    last = better + equal + 1
    harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, last.max(initial=0) + 1))))
    return top, (harmonic[last] - harmonic[better]) / (equal + 1)


# ---- masks -----------------------------------------------------------------------------------------


class ZeroMechanism(Placeholder):
    """A mechanism that releases row 0, to compute masks without draws."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """Returns zeros [n]."""
        return np.zeros(len(parameter), np.int64)


def _compute_masks(view: View, texts: list[str]) -> EvaluationRun:
    """Computes masks and rows of texts with the releases' program, without draws."""
    assert view.program is not None, "refused otherwise"
    words = view.words
    if (
        words.oov == "error"
    ):  # a decoy with an unknown word cannot be the original, so it raises no error
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
"""The compared parts of the mask, from least to most."""

MASK_AND_WORDS = "mask and words"


def _assign_classes(
    part: Callable[[Released], Hashable], *batches: Iterable[Released]
) -> list[Ids]:
    """Numbers releases by class: equal mask parts get the same number."""
    number: dict[Hashable, int] = {}
    return [
        np.array([number.setdefault(part(released), len(number)) for released in batch], np.int64)
        for batch in batches
    ]


# ---- scores ----------------------------------------------------------------------------------------


def _score_candidates(
    view: View, candidate_run: EvaluationRun, classes: dict[str, list[Ids]], chunk: slice
) -> Iterator[tuple[str, Values]]:
    """Yields each comparison with its scores of candidates, float64 [m, M]."""
    for source, (ours, theirs) in classes.items():
        yield source, np.where(ours[chunk, None] == theirs, 0.0, RULED_OUT)
    if view.name_items is not None or not _has_no_draws(view):
        ours, theirs = classes["mask"]
        yield MASK_AND_WORDS, _sum_cosines(view, candidate_run, ours, theirs, chunk)


def _sum_cosines(
    view: View, candidate_run: EvaluationRun, ours: Ids, theirs: Ids, chunk: slice
) -> Values:
    """Sums the cosines of corresponding rows, float64 [m, M].

    Candidates whose mask differs from the release's get `RULED_OUT`.
    """
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
    """Loads rows as unit vectors, float64 [m, d]."""
    vectors = table.take(rows).astype(np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    return vectors


# ---- pools -----------------------------------------------------------------------------------------


def _draw_pools(keys: Values, originals: Ids, sizes: list[int]) -> Iterator[Flags]:
    """Yields for each size the pool of each release, bool [m, M].

    A pool is the original and the candidates with the lowest random keys.
    """
    keys[np.arange(len(originals)), originals] = -1.0
    for size in sizes:
        yield keys <= np.partition(keys, size - 1, axis=1)[:, size - 1, None]


def _rank_originals(score: Values, originals: Ids, pool: Flags) -> Ids:
    """Counts candidates above the original and tied with it: int64 [2, m]."""
    lead = score - score[np.arange(len(originals)), originals][:, None]
    better = ((lead > SCORE_TOLERANCE) & pool).sum(axis=1)
    equal = ((np.abs(lead) <= SCORE_TOLERANCE) & pool).sum(axis=1) - 1
    return np.stack([better, equal]).astype(np.int64)
