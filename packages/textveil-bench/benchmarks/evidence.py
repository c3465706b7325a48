"""Compares mechanisms on real sentences, at equal risk: `make evidence`.

In: the folder of corpora that $TEXTVEIL_CORPORA names (`sst2`, `ag_news`). Out: rows in
benchmarks/rows/evidence.jsonl.gz, the tables of the documents, docs/assets/evidence.svg.
Not here: the attacks and measures themselves (`textveil`), and how tables are filled (`report`).

The table is that of the 8,192 most frequent of minilm-s's words, so that all is exact and takes minutes; what of the
text is not among them has a surrogate. Draws are seeded, so that a row can be repeated: the statement of such a release
holds against nobody who knows the seed, and no attacker here uses it.
"""

import argparse
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import report
import rowfiles
from attacks import news, sentences
from numpy.typing import NDArray
from run import ROOT

from textveil.randomness import Floats, Ints, Values
from textveil_bench.circumstances import read_circumstances

if TYPE_CHECKING:
    from textveil.evaluate.attack import Case
    from textveil.evaluate.attack.prior import PriorName
    from textveil.pipeline.privatizer import Privatizer
    from textveil.table.embedding import EmbeddingTable

SEED = 1
WORDS = 8192
TEXTS = {"SST-2": 400, "AG News": 200}
"""Of mechanisms whose law is the same at all positions; the others are attacked position by position."""

IN_CONTEXT = {"SST-2": 40, "AG News": 15}
EPSILON = "true epsilon"

PRIORS: tuple["PriorName", ...] = ("uniform", "unigram", "context")
"""The last one for mechanisms in context only, whose sample is small."""

MEANT = 100
"""Texts of a corpus whose sentence vectors are compared."""

PICTURE = ROOT / "docs" / "assets" / "evidence.svg"
PICTURED = {
    "noise": "noise",
    "exponential": "exponential",
    "cape": "cape, static",
    "cape, public context": "cape, context public",
    "rankcape, k=5": "rankcape, k=5, static",
    "rankcape, k=20": "rankcape, k=20, static",
    "rankcape, k=20, public context, lambda_L=0.1": "rankcape, k=20, context public, lambda_L=0.1",
    "krr": "krr",
}


@dataclass(frozen=True, kw_only=True)
class Series:
    """A mechanism with its options, at several budgets."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    parameter: str = "epsilon"
    budgets: tuple[float, ...]

    @property
    def title(self) -> str:
        """As tables name it."""
        options = dict(self.options)
        words = [self.name, *(f"k={options.pop('k')}" for _ in range("k" in options))]
        if self.name in ("cape", "rankcape"):
            mode = options.pop("context", "none")
            words.append("static" if mode == "none" else f"context {mode}")
        return ", ".join([*words, *(f"{option}={value}" for option, value in options.items())])

    @property
    def contextual(self) -> bool:
        """Whether a language model is asked."""
        return "context" in self.options


RANKS = (*((20, weight, (5.5, 7.0, 9.0)) for weight in (0.5, 1.0, 0.1)), (5, 0.5, (6.5, 8.0, 10.5)))
"""Of rankcape in context: k, the weight of the logits, budgets."""

MODES = ("public", "released")

SERIES: tuple[Series, ...] = (
    Series(name="noise", parameter="eta", budgets=(40, 47, 54, 61, 70)),
    Series(name="exponential", parameter="c", budgets=(4.4, 4.9, 5.4, 5.9, 6.5)),
    Series(name="santext", budgets=(8.8, 9.8, 10.8, 11.8, 13)),
    Series(name="cape", parameter="nominal", budgets=(0, 1, 2, 3.5, 6)),
    Series(name="rankcape", options={"k": 2}, budgets=(6, 7, 8, 9, 11)),
    Series(name="rankcape", options={"k": 5}, budgets=(5.5, 6.5, 7.5, 8.5, 10.5)),
    Series(name="rankcape", options={"k": 10}, budgets=(5, 6, 7, 8, 10)),
    Series(name="rankcape", options={"k": 20}, budgets=(4.5, 5.5, 6.5, 8, 10)),
    Series(name="rankcape", options={"k": 200}, budgets=(2, 3.5, 5, 7, 9)),
    Series(name="krr", budgets=(6.1, 7, 7.6, 8.2, 9)),
    Series(name="custext", parameter="nominal", budgets=(0.5, 2, 3.5, 5, 6.5)),
    Series(name="santext+", budgets=(6, 9, 12)),
    Series(name="rantext", parameter="nominal", budgets=(1, 6, 12)),
    *(
        Series(
            name="rankcape", options={"k": k, "context": mode, "lambda_L": weight}, budgets=budgets
        )
        for mode in MODES
        for k, weight, budgets in RANKS
    ),
    *(
        Series(name="cape", options={"context": mode}, parameter="nominal", budgets=(5, 15, 30))
        for mode in MODES
    ),
)


# ---- the table and the texts -------------------------------------------------------------------------


def frequent(stored: Mapping[str, object] | None = None) -> "EmbeddingTable":
    """The most frequent words of minilm-s as a table of their own, with its constants where they are known."""
    from textveil.table.constants import TableConstants
    from textveil.table.embedding import EmbeddingTable, load_table
    from textveil.text import frequency

    whole = load_table("minilm-s")
    row = {word: i for i, word in enumerate(whole.words)}
    rows = sorted(
        row[word] for word in islice(filter(row.__contains__, frequency.load_counts()), WORDS)
    )
    vectors = whole.take(slice(None)) * whole.norms[:, None]
    return EmbeddingTable.build(
        name=f"minilm-s-{WORDS}",
        words=[whole.words[i] for i in rows],
        vectors=vectors[rows],
        pieces=whole.pieces,
        stored=None if stored is None else TableConstants.from_json(dict(stored)),
    )


@cache
def texts(corpora: str, contextual: bool, part: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts, and the corpus of each."""
    sizes = {
        name: math.ceil(part * size) for name, size in (IN_CONTEXT if contextual else TEXTS).items()
    }
    found = {
        "SST-2": sentences(Path(corpora) / "sst2" / "dev.shared.tsv.gz", sizes["SST-2"]),
        "AG News": news(Path(corpora) / "ag_news" / "test.shared.tsv.gz", sizes["AG News"]),
    }
    return (
        tuple(text for name in found for text in found[name]),
        tuple(name for name in found for _ in found[name]),
    )


# ---- one series --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Values of a metric, and the text that each is of."""

    metric: str
    values: Values
    texts: Ints
    note: str = ""
    share: bool = True


def measure(
    series: Series, corpora: str, part: float, stored: Mapping[str, object]
) -> list[dict[str, Any]]:
    """All rows of a series."""
    warnings.simplefilter(
        "ignore"
    )  # that epsilon bounds nothing under some mechanisms is in the documents
    start = time.perf_counter()
    table = _table(json.dumps(stored))
    chosen, corpus = texts(corpora, series.contextual, part)
    privatizers = [_privatizer(series, table, budget) for budget in series.budgets]
    found = list(_figures(series, privatizers, chosen, corpus))
    seconds = time.perf_counter() - start
    return [
        row
        for budget, privatizer, (figures, epsilon) in zip(
            series.budgets, privatizers, found, strict=True
        )
        for row in _rows(series, budget, privatizer, figures, epsilon, np.array(corpus), seconds)
    ]


@cache
def _table(stored: str) -> "EmbeddingTable":
    return frequent(json.loads(stored))


def _privatizer(series: Series, table: "EmbeddingTable", budget: float) -> "Privatizer":
    from textveil import Privatizer
    from textveil.models.calibration import load_stored_range
    from textveil.table.embedding import load_table

    options = {**series.options, series.parameter: budget}
    if series.contextual:
        logits = load_stored_range(load_table("minilm-s"))
        assert logits is not None
        options |= {"floor": logits.compute_quantiles()["candidates"][0.5], "bound": logits.largest}
    return Privatizer(series.name, table=table, seed=SEED, **options)


def _figures(
    series: Series,
    privatizers: Sequence["Privatizer"],
    chosen: Sequence[str],
    corpus: Sequence[str],
) -> Iterator[tuple[list[Figure], float | None]]:
    """The figures of each budget, and its epsilon of local DP, None where there is none."""
    from textveil.evaluate.attack import Case, channel
    from textveil.pipeline import sweep

    if not series.contextual:
        meant = [i for i, name in enumerate(corpus) if i - corpus.index(name) < MEANT]
        for privatizer in privatizers:
            case = Case.create(privatizer, chosen)
            yield list(_of_case(case, meant=meant)), _epsilon(privatizer)
        return
    parts: list[list[Figure]] = [[] for _ in privatizers]
    first = 0
    for rehearsals in sweep(privatizers, chosen):
        cases = [Case.build(*pair) for pair in zip(privatizers, rehearsals, strict=True)]
        channel.share_channels([case.view for case in cases])
        for part, case in zip(parts, cases, strict=True):
            part.extend(_of_case(case, first))
        first += len(cases[0].view.released)
    for part, privatizer in zip(parts, privatizers, strict=True):
        joined = []
        for metric in dict.fromkeys(figure.metric for figure in part):
            own = [figure for figure in part if figure.metric == metric]
            joined.append(
                Figure(
                    metric=metric,
                    values=np.concatenate([figure.values for figure in own]),
                    texts=np.concatenate([figure.texts for figure in own]),
                    note=own[0].note,
                    share=own[0].share,
                )
            )
        yield joined, _epsilon(privatizer)


def _epsilon(privatizer: "Privatizer") -> float | None:
    """Epsilon of local DP of the statement; that of Cape's buckets without context is exact, computed here."""
    from textveil.mechanism import compute_exact_loss

    exact = compute_exact_loss(privatizer.mechanism, privatizer.table)
    if exact is not None:
        return exact
    printed = privatizer.privatize("river").guarantee.epsilon_ldp
    return printed if math.isfinite(printed) else None


def _of_case(case: "Case", first: int = 0, meant: Sequence[int] | None = None) -> Iterator[Figure]:
    """What becomes of the words, and what attackers get.

    Texts are numbered from `first` on. Of `meant` sentence vectors are compared, of all where it is not given.
    """
    from textveil.evaluate.attack.context_channel import is_contextual
    from textveil.evaluate.attack.posterior import rank_candidates
    from textveil.models import load_sentences
    from textveil.randomness.streams import SeededRandomness
    from textveil_bench.attack.neighbour import rank
    from textveil_bench.attack.reconstruction import compute_cosines

    view, secret = case.view, case.truth.rows
    of = first + view.text
    for prior in PRIORS if is_contextual(view.mechanism, view.table) else PRIORS[:2]:
        found = rank_candidates(
            view, prior=prior, k=1, rng=SeededRandomness(SEED).derive_part(2**100)
        )
        note = "" if found.evidence == "exact" else "a lower bound: the law was estimated"
        right = (found.candidates[:, 0] == secret).astype(np.float64)
        yield Figure(metric=f"MAP {prior}", values=right, texts=of, note=note)
    nearer = rank(view.origin, view.visible_word_rows, secret, "cosine")
    yield Figure(metric="KNN-1", values=(nearer < 1).astype(np.float64), texts=of)
    yield Figure(metric="KNN-10", values=(nearer < 10).astype(np.float64), texts=of)
    yield Figure(
        metric="retention", values=(view.visible_word_rows == secret).astype(np.float64), texts=of
    )
    yield Figure(
        metric="cosine",
        values=compute_cosines(view.origin, view.visible_word_rows, secret),
        texts=of,
        share=False,
    )
    own = range(len(case.truth.texts)) if meant is None else meant
    one = _meaning(tuple(case.truth.texts[b] for b in own))
    other = load_sentences().encode([view.released[b].text for b in own])
    near = (one * other).sum(axis=1, dtype=np.float64)
    yield Figure(metric="sentence cosine", values=near, texts=first + np.array(own), share=False)


@lru_cache(maxsize=2)
def _meaning(chosen: tuple[str, ...]) -> Floats:
    from textveil.models import load_sentences

    return load_sentences().encode(list(chosen))


def _rows(
    series: Series,
    budget: float,
    privatizer: "Privatizer",
    figures: Sequence[Figure],
    epsilon: float | None,
    corpus: NDArray[np.str_],
    seconds: float,
) -> Iterator[dict[str, Any]]:
    from textveil.config.frozen import dump_options
    from textveil_bench.intervals import mean

    release = f"{series.title}, {series.parameter} {budget:g}"
    shared = {
        "series": series.title,
        "release": release,
        "budget": budget,
        "mechanism": dump_options(privatizer.mechanism),
        "table": privatizer.table.name,
        "seed": SEED,
        "seconds": round(seconds, 1),
        "headline": True,
        "baseline": None,
    }
    for data in TEXTS:
        named = {**shared, "data": data, "unit": "mean"}
        if epsilon is not None:
            ends = {"value": epsilon, "low": None, "high": None, "n": 0, "note": "of the statement"}
            yield {
                **named,
                **ends,
                "metric": EPSILON,
                "what": f"evidence, {data}, {release}: {EPSILON}",
            }
        for figure in figures:
            own = corpus[figure.texts] == data
            found = mean(figure.values[own], figure.texts[own], share=figure.share)
            ends = {"value": found.value, "low": found.low, "high": found.high, "n": int(own.sum())}
            what = f"evidence, {data}, {release}: {figure.metric}"
            yield {**named, **ends, "metric": figure.metric, "note": figure.note, "what": what}


# ---- the run -----------------------------------------------------------------------------------------


def main() -> None:
    """Measures all series in two processes, appends the rows, fills the documents and draws the picture."""
    from rich.console import Console
    from rich.progress import track

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="+", help="series whose names begin so (default: all)", default=[""]
    )
    parser.add_argument(
        "--part", type=float, help="of the sample, for a first look (default 1)", default=1.0
    )
    parser.add_argument(
        "--processes", type=int, default=2, help="processes, a thread each (default 2)"
    )
    options = parser.parse_args()
    corpora = os.environ.get("TEXTVEIL_CORPORA")
    if corpora is None:
        sys.exit(
            "evidence: skipped, because $TEXTVEIL_CORPORA names no folder of corpora (sst2, ag_news)"
        )
    from textveil.table import constants

    stored = constants.compute(frequent().vectors, "chord").to_json()
    chosen = [series for series in SERIES if series.title.startswith(tuple(options.only))]
    shared = {**read_circumstances(), "run": time.time_ns(), "threads": 1}
    os.environ["OMP_NUM_THREADS"] = "1"  # read by each process when it starts
    context = get_context("spawn")
    with ProcessPoolExecutor(options.processes, mp_context=context) as pool:
        jobs = [pool.submit(measure, series, corpora, options.part, stored) for series in chosen]
        console = Console(stderr=True)
        done = track(as_completed(jobs), total=len(jobs), console=console, refresh_per_second=0.2)
        try:
            for job in done:  # written as they come: a long run that is cut short keeps what it has
                rowfiles.keep(report.EVIDENCE, ({**row, **shared} for row in job.result()))
        finally:
            pool.shutdown(cancel_futures=True)
    report.write()
    draw()


def draw() -> None:
    """The picture of the newest rows."""
    from textveil_bench import pictures

    rows = report.newest(report.stored(), "evidence, SST-2")
    panels = []
    for risk, name in (("MAP uniform", "MAP, uniform prior"), ("KNN-10", "KNN-10")):
        curves = {
            title: report.curve(rows, series, risk, "cosine") for title, series in PICTURED.items()
        }
        panels.append((name, {title: curve for title, curve in curves.items() if curve}))
    figure = pictures.draw_curves(
        panels,
        title="Utility at equal risk: SST-2",
        scale="mean cosine of released and private word",
    )
    pictures.save(figure, PICTURE)


if __name__ == "__main__":
    main()
