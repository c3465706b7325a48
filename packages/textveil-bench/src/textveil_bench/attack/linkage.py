"""Linkage: which of many texts a release was made from.

In: releases, and other texts to find the originals among. Out: top-1, MRR, and how many texts are left.
Not here: whether a given text is the original (`membership`), and what its words were (`bayes`, `window`).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import BeforeValidator, Field

from textveil.config import Rerank, options
from textveil.errors import ConfigError
from textveil.evaluate.attack.case import Case, View
from textveil.evaluate.attack.contract import Outcome, Report, quiet
from textveil.mechanism import PLACEHOLDER, Block, Placeholder
from textveil.pipeline import Rehearsal
from textveil.randomness import Flags, Ids, Ints, Randomness, Values
from textveil.table import EmbeddingTable
from textveil.text import Kind, Released, check_texts

CELLS = 1 << 22
"""Pairs of release and candidate that are held at once: 32 MiB a score."""

RULED_OUT = -1e9
"""The score of a candidate with another mask: below any sum of cosines."""

ROUNDING = 1e-9
"""Scores that differ by less are one score."""


def _texts(decoys: object) -> object:
    """The decoys, if they are texts; a message does not repeat them."""
    check_texts(decoys, what="decoy")  # type: ignore[arg-type]
    return decoys


BY_COSINE = "a lower bound: words are compared by their cosines, whatever each of them may spend"


@options()
class Linkage:
    """Finds the original of each release among other texts: the price of what is released besides the words.

    The mask follows from a text by public rules, so a candidate with another mask is ruled out, and one that is left
    alone is the original, whatever the mechanism did. The attacker computes the masks of all candidates with the
    program that made the releases, its detectors, groups and budgets, and compares, from less to more: the number of
    words (`length`); also which positions pass, and their strings (`skeleton`); also whitespace, and casing, groups and
    pieces where they are released (`mask`). `mask and words` then orders those left by the sum, over protected words
    and names, of the cosine between the released row and the candidate's.

    Candidates are the originals of the case and the decoys. Equal texts are one candidate. Each release has a pool of
    its own, drawn at random, that holds its original. Among candidates that look alike the attacker picks at random:
    values are expectations over that choice.

    Args:
        pools: how many candidates there are to find the original among; all texts, where there are fewer.
        decoys: other texts, of the same kind as the originals; as secret as they are.
    """

    name: ClassVar[str] = "linkage"
    pools: Annotated[
        tuple[Annotated[int, Field(ge=2, le=1_000_000, strict=True)], ...],
        Field(min_length=1, max_length=10),
    ] = (100, 10_000)
    decoys: Annotated[tuple[str, ...], BeforeValidator(_texts)] = Field(default=(), repr=False)

    def refusal(self, view: View) -> str:
        """Where there is no release, or no other text."""
        if not view.released:
            return "there are no texts"
        if len(view.released) == 1 and not self.decoys:
            return "it needs other texts to find the original among"
        return view.untold

    def run(self, case: Case, *, rng: Randomness, report: Report = quiet) -> Iterator[Outcome]:
        """Top-1, MRR and texts left, for every pool, from each part of the mask and from all that is released.

        Raises:
            ConfigError: a release has another mask than the program gives its own original.
        """
        view = case.view
        candidates = list(dict.fromkeys((*case.truth.texts, *self.decoys)))
        number = {text: i for i, text in enumerate(candidates)}
        own = np.fromiter(
            map(number.__getitem__, case.truth.texts), np.int64, len(case.truth.texts)
        )
        report("masks of candidates", 0, len(candidates))
        known = _masked(view, candidates)
        theirs = [result.released for result in known.results]
        classes = {source: _classes(part, view.released, theirs) for source, part in PARTS.items()}
        lost = sum(int((ours != others[own]).sum()) for ours, others in classes.values())
        if lost:
            raise ConfigError(
                "linkage can say nothing of these releases: the program gives their own originals other masks; make "
                "them without a session"
            )
        sizes = list(dict.fromkeys(min(size, len(candidates)) for size in self.pools))
        places: dict[tuple[str, int], list[Ints]] = {}
        streams = rng.open(np.ones(len(own), np.int64))
        for chunk, draws in streams.chunks(max(1, CELLS // len(candidates))):
            report("linkage", chunk.start, len(own))
            pools = list(_pools(draws.uniform(len(candidates)), own[chunk], sizes))
            for source, score in _scores(view, known, classes, chunk):
                for size, pool in zip(sizes, pools, strict=True):
                    places.setdefault((source, size), []).append(_places(score, own[chunk], pool))
        return self._outcomes(
            {key: np.concatenate(parts, axis=1) for key, parts in places.items()}, len(candidates)
        )

    def _outcomes(self, places: dict[tuple[str, int], Ids], candidates: int) -> Iterator[Outcome]:
        wanted = max(self.pools)
        for (source, size), (better, equal) in places.items():
            everything = source == WORDS
            top, reciprocal = expected(better, equal)
            chance = expected(np.zeros(1, np.int64), np.array([size - 1]))
            before = (
                [float(found.mean()) for found in expected(*places["mask", size])]
                if everything
                else None
            )
            baselines = before or [float(found[0]) for found in chance]
            short = (
                f"there are {candidates:,} texts, not {wanted:,}"
                if size == candidates < wanted
                else ""
            )
            measured: list[tuple[str, Values, float | None]] = [
                ("top-1", top, baselines[0]),
                ("MRR", reciprocal, baselines[1]),
            ]
            if not everything:
                measured.append(
                    ("texts left", (better + equal + 1).astype(np.float64), float(size))
                )
            for metric, values, baseline in measured:
                yield Outcome(
                    source=self.name,
                    metric=metric,
                    setting={"from": source, "among": size},
                    unit="text",
                    where=np.arange(len(values)),
                    values=values,
                    baseline=baseline,
                    note="; ".join(filter(None, (short, BY_COSINE if everything else ""))),
                    share=metric != "texts left",
                    headline=source in ("mask", WORDS) and metric != "texts left",
                )


def expected(better: Ids, equal: Ids) -> tuple[Values, Values]:
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


class Still(Placeholder):
    """Releases row 0 for every protected word: a pipeline around it computes masks, and draws nothing."""

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """Zeros [n]."""
        return np.zeros(len(parameter), np.int64)


def _masked(view: View, texts: list[str]) -> Rehearsal:
    """The texts with their masks and rows, by the program that made the releases; no word of them is drawn."""
    assert view.program is not None, "refused otherwise"
    words = view.words
    if (
        words.oov == "error"
    ):  # a decoy with an unknown word cannot be the original, and is no error either
        words = replace(words, oov="surrogate")
    still = Placeholder() if _nothing_drawn(view) else Still()
    program = view.program.with_parts(
        mechanism=still, claim=still.claim(view.table), words=words, rerank=Rerank()
    )
    return program.rehearse(texts)


def _nothing_drawn(view: View) -> bool:
    return bool((view.drawn == PLACEHOLDER).all())


def _length(released: Released) -> Hashable:
    return released.mask.words


def _skeleton(released: Released) -> Hashable:
    return tuple(
        (item.kind, item.text if item.kind is Kind.VERBATIM else "") for item in released.items
    )


def _mask(released: Released) -> Hashable:
    mask = released.mask
    return _skeleton(released), released.gaps, mask.groups, mask.casing, mask.pieces, mask.equal


PARTS: dict[str, Callable[[Released], Hashable]] = {
    "length": _length,
    "skeleton": _skeleton,
    "mask": _mask,
}
"""From less to more of the mask."""

WORDS = "mask and words"


def _classes(part: Callable[[Released], Hashable], *batches: Iterable[Released]) -> list[Ids]:
    """The number of each release's class; those of one class show the same."""
    number: dict[Hashable, int] = {}
    return [
        np.array([number.setdefault(part(released), len(number)) for released in batch], np.int64)
        for batch in batches
    ]


# ---- scores ----------------------------------------------------------------------------------------


def _scores(
    view: View, known: Rehearsal, classes: dict[str, list[Ids]], chunk: slice
) -> Iterator[tuple[str, Values]]:
    """How well each candidate fits each release of a chunk, float64 [m, M], by what it is judged from."""
    for source, (ours, theirs) in classes.items():
        yield source, np.where(ours[chunk, None] == theirs, 0.0, RULED_OUT)
    if view.named is not None or not _nothing_drawn(view):
        ours, theirs = classes["mask"]
        yield WORDS, _similar(view, known, ours, theirs, chunk)


def _similar(view: View, known: Rehearsal, ours: Ids, theirs: Ids, chunk: slice) -> Values:
    """The sum of cosines of rows at the same place, for candidates with the mask of the release, else `RULED_OUT`."""
    layout = known.plan.block.layout
    rows = (
        []
        if _nothing_drawn(view)
        else [(view.table, view.shown, view.layout.sizes, known.plan.block.secret, layout.sizes)]
    )
    if view.named is not None:
        named = np.flatnonzero(known.protection.named)
        ours_named, theirs_named = (
            np.diff(np.searchsorted(items, documents))
            for items, documents in ((view.named.items, view.documents), (named, layout.documents))
        )
        rows.append(
            (view.origin, view.named.drawn, ours_named, known.plan.originals[named], theirs_named)
        )
    score = np.full((chunk.stop - chunk.start, len(theirs)), RULED_OUT)
    for number in np.unique(ours[chunk]).tolist():
        releases, candidates = (
            np.flatnonzero(ours[chunk] == number),
            np.flatnonzero(theirs == number),
        )
        total = np.zeros((len(releases), len(candidates)))
        if len(candidates) > 1:
            for table, shown, sizes, secret, others in rows:
                places, begins = np.cumsum(sizes) - sizes, np.cumsum(others) - others
                for j in range(sizes[chunk.start + releases[0]]):
                    released = _directions(table, shown[places[chunk.start + releases] + j])
                    total += released @ _directions(table, secret[begins[candidates] + j]).T
        score[np.ix_(releases, candidates)] = total
    return score


def _directions(table: EmbeddingTable, rows: Ids) -> Values:
    """Unit rows, float64 [m, d]."""
    vectors = table.take(rows).astype(np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    return vectors


# ---- pools -----------------------------------------------------------------------------------------


def _pools(keys: Values, own: Ids, sizes: list[int]) -> Iterator[Flags]:
    """For every size, bool [m, M]: the original of each release and as many others as that makes, those of low keys."""
    keys[np.arange(len(own)), own] = -1.0
    for size in sizes:
        yield keys <= np.partition(keys, size - 1, axis=1)[:, size - 1, None]


def _places(score: Values, own: Ids, pool: Flags) -> Ids:
    """How many of the pool have a higher score than the original, and how many others the same: int64 [2, m]."""
    lead = score - score[np.arange(len(own)), own][:, None]
    better = ((lead > ROUNDING) & pool).sum(axis=1)
    equal = ((np.abs(lead) <= ROUNDING) & pool).sum(axis=1) - 1
    return np.stack([better, equal]).astype(np.int64)
