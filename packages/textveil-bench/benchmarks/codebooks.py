"""Measures how near codebooks are to the limit, how spelled codes read, and what attackers then find: `make codebooks`.

In: the general books; the folder of corpora that $TEXTVEIL_CORPORA names (`sst2`, `ag_news`). Out: rows in
benchmarks/rows/codebooks.jsonl, the tables of the documents.
Not here: spelling itself (`pipeline.rerank`), what a code tells (`mechanism.information`), attacks and measures.

The limit: the rules that are best for words as they stand in general public text, among all with the same local DP, by
linear programs. One maximises how often the code itself comes out. The other maximises the mutual information: among
the extremal rules, of which each output has two probabilities only, for a set of codes and all others (Kairouz, Oh and
Viswanath 2014, theorem 2); there are 2^C such sets, so that it is solved for few codes.

Fluency is measured twice: as pseudo-perplexity by the masked language model that chose the words, where it falls by
construction, and as perplexity by a trigram model that had no part in it, that of PocketSphinx. Both spellings stand
for the same codes, so they are compared text by text. Draws are seeded, so that a row can be repeated.

Levels: what a level of a nested book keeps, beside a book of as many codes made for itself. Both are made from the
vectors alone: how much of the variance of the vectors their codes explain, words weighted as in the making, and how
many bits a released code tells of a word.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import report
import rowfiles
from attacks import news, sentences
from rich.console import Console

from textveil.randomness import Ids, Values
from textveil_bench.circumstances import read_circumstances

if TYPE_CHECKING:
    from pocketsphinx import NGramModel

    from textveil.evaluate.attack import Case

SEED = 1
TEXTS = 200
CODES, EPSILONS = (50, 400), (8.0, 4.0)
LIMITS = {8: True, 24: False, 50: False}
"""General books, and whether all sets of their codes are looked at."""

BUDGETS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
LEVELS, TOLD_AT = (8, 24, 50, 150, 400), 4.0
CANDIDATES = 20
"""Frequent words of a code, of which the expected one is taken."""

TYPICAL, EXPECTED = "typical word", "expected word"
PSEUDO, TRIGRAM = "pseudo-perplexity", "trigram perplexity"
TIMES = "times the {}'s"
UNKNOWN = -(1 << 29)
"""What the trigram model says of a word that it does not know; its logarithms have the base 1.0001."""


def limits() -> Iterator[dict[str, Any]]:
    """Rows of k-ary randomised response over the codes of books, and of the best rules with the same local DP."""
    from textveil.mechanism import compute_information, compute_information_limit, compute_keep_rate
    from textveil.table import find_book

    for codes, sets in LIMITS.items():
        masses = find_book(str(codes)).masses.astype(np.float64)
        masses /= masses.sum()
        for epsilon in BUDGETS:
            found = {
                "own code": compute_keep_rate(codes, epsilon),
                "own code, at most": most_kept(masses, epsilon),
            }
            found |= {"bits": compute_information(masses, epsilon)}
            if sets:
                found["bits, at most over these codes"] = most_told(masses, epsilon)
            found["bits, at most by any mechanism"] = compute_information_limit(epsilon)
            release = f"{codes} codes, epsilon {epsilon:g}"
            for metric, value in found.items():
                ends = {"value": value, "low": None, "high": None, "n": codes, "unit": "exact"}
                yield {
                    "what": f"limits, {release}: {metric}",
                    "release": release,
                    "metric": metric,
                    **ends,
                }


def most_kept(masses: Values, epsilon: float) -> float:
    """The largest sum of p(x) P(x | x) among rules P [C, C] with local DP epsilon.

    Variables are P, and the least probability m(y) of each output, which is at least exp(-epsilon) of all others.
    """
    from scipy.optimize import linprog
    from scipy.sparse import block_array, coo_array, eye_array, kron

    codes = len(masses)
    whole, ones = eye_array(codes * codes), np.ones((codes, 1))
    least = kron(ones, eye_array(codes))  # m(y) beside P(y | x)
    found = linprog(
        -np.concatenate([np.diag(masses).ravel(), np.zeros(codes)]),
        A_ub=block_array([[-whole, least], [whole, -np.exp(epsilon) * least]]),
        b_ub=np.zeros(2 * codes * codes),
        A_eq=block_array([[kron(eye_array(codes), ones.T), coo_array((codes, codes))]]),
        b_eq=np.ones(codes),
        method="highs",
    )
    return -float(found.fun)


def most_told(masses: Values, epsilon: float) -> float:
    """The largest mutual information, in bits, among rules with local DP epsilon, whatever they release.

    An output is a set of codes, of which each makes it exp(epsilon) times as likely as others do; variables are how
    likely it is for these. What it tells is linear in that.
    """
    from scipy.optimize import linprog

    codes = len(masses)
    inside = (np.arange(1 << codes)[:, None] >> np.arange(codes) & 1).astype(bool)
    likely = np.where(inside, np.exp(epsilon), 1.0)
    mean = likely @ masses
    told = (masses * likely * np.log2(likely / mean[:, None])).sum(axis=1)
    found = linprog(-told, A_eq=likely.T, b_eq=np.ones(codes), method="highs")
    return -float(found.fun)


def levels() -> Iterator[dict[str, Any]]:
    """Rows of the levels of a nested book, and of a book of as many codes each."""
    from textveil.mechanism import compute_information
    from textveil.table import compute_shares, load_table, make_books

    table = load_table("minilm")
    said: dict[str, Any] = {"kind": "general", "source": "the vectors of the table alone"}
    (nested,) = make_books(table, LEVELS[-1:], levels=LEVELS[:-1], **said)
    weights, rows = np.sqrt(compute_shares(table)), table.take(slice(None)).astype(np.float64)
    for codes, alone in zip(LEVELS, make_books(table, LEVELS, **said), strict=True):
        for name, book in (("level", nested.get_level(codes)), ("alone", alone)):
            found = {
                f"variance, {name}": explained(rows, weights, book.codes.astype(np.int64)),
                f"bits, {name}": compute_information(book.masses, TOLD_AT),
            }
            for metric, value in found.items():
                ends = {"value": value, "low": None, "high": None, "n": codes, "unit": "exact"}
                yield {
                    "what": f"levels, {codes} codes: {metric}",
                    "release": f"{codes} codes",
                    "metric": metric,
                    **ends,
                }


def explained(rows: Values, weights: Values, codes: Ids) -> float:
    """The share of the variance of rows [V, d] about their mean that lies between the means of their codes [V]."""
    gaps = rows - np.average(rows, axis=0, weights=weights)
    mass = np.bincount(codes, weights)
    means = np.zeros((len(mass), rows.shape[1]))
    np.add.at(means, codes, gaps * weights[:, None])
    means /= mass[:, None]
    between = mass @ np.einsum("ij,ij->i", means, means)
    return float(between / (weights @ np.einsum("ij,ij->i", gaps, gaps)))


def spelling(corpora: Path) -> Iterator[dict[str, Any]]:
    """Rows of all releases of both corpora."""
    from pocketsphinx import NGramModel, get_model_path

    from textveil import Privatizer
    from textveil.evaluate.attack import Case
    from textveil.table import load_table

    model = NGramModel.readfile(get_model_path("en-us/en-us.lm.bin"))
    chosen = {
        "AG News": news(corpora / "ag_news" / "test.shared.tsv.gz", TEXTS),
        "SST-2": sentences(corpora / "sst2" / "dev.shared.tsv.gz", TEXTS),
    }
    for data, texts in chosen.items():
        for codes in CODES:
            table = load_table(codes=str(codes))
            for epsilon in EPSILONS:
                typical, expected = (
                    Case.create(
                        Privatizer(
                            "codebook", epsilon=epsilon, table=table, seed=SEED, rerank={"m": m}
                        ),
                        texts,
                    )
                    for m in (0, CANDIDATES)
                )
                for name, metric, found in figures(typical, expected, model):
                    release = (
                        name
                        if name == "original"
                        else f"{codes} codes, epsilon {epsilon:g}, {name}"
                    )
                    what = f"spelling, {data}, {release}: {metric}"
                    yield {
                        "what": what,
                        "release": release,
                        "data": data,
                        "metric": metric,
                        "unit": "mean",
                        **found,
                    }


Figures = Iterator[tuple[str, str, dict[str, Any]]]


def figures(typical: "Case", expected: "Case", model: "NGramModel") -> Figures:
    """Whose, metric and figure of each measurement of two spellings of the same codes."""
    from textveil_bench.measure.fluency import perplexity

    cases = {TYPICAL: typical, EXPECTED: expected}
    pseudo = {
        name: {each.setting["of"]: each for each in perplexity(case)}
        for name, case in cases.items()
    }
    where = pseudo[TYPICAL]["original"].where
    masked = {"original": pseudo[TYPICAL]["original"].values}
    masked |= {name: found["released"].values for name, found in pseudo.items()}
    names = ["original", *cases]
    for name in names:
        yield name, PSEUDO, geometric(masked[name], where)
    texts, values = surprise(
        [typical.truth.words, typical.view.items, expected.view.items], typical, model
    )
    trigram = dict(zip(names, values, strict=True))
    for metric, found, own in ((PSEUDO, masked, where), (TRIGRAM, trigram, texts)):
        for name, other in ((TYPICAL, "original"), (EXPECTED, "original"), (EXPECTED, TYPICAL)):
            ratio = (
                found[name] - found[other]
            )  # at the same words, which differ from release to release
            yield name, f"{metric}, {TIMES.format(other)}", geometric(ratio, own)
    for name, case in cases.items():
        yield from guessed(name, case)


def surprise(
    versions: Sequence[Sequence[str]], case: "Case", model: "NGramModel"
) -> tuple[Ids, list[Values]]:
    """Of each version of the words of texts the mean of -ln p in every text, over words that are known in all.

    Each word stands after the two before it, or after as many as are known; signs are left out.

    Returns:
        The numbers of the texts that have such a word, and the means of each version there.
    """
    keep = [i for i, word in enumerate(case.view.items) if word[:1].isalnum()]
    text = (np.searchsorted(case.view.documents, keep, side="right") - 1).tolist()
    words = [[version[i].lower() for i in keep] for version in versions]
    fits = np.array([[model.prob([word]) > UNKNOWN for word in each] for each in words])
    known = np.flatnonzero(fits.all(axis=0))
    found = []
    for each, fit in zip(words, fits, strict=True):
        values = []
        for i in known.tolist():
            before: list[str] = []
            for j in (i - 1, i - 2):
                if j < 0 or text[j] != text[i]:
                    before.append("<s>")
                    break
                if not fit[j]:
                    break
                before.append(each[j])
            values.append(-model.prob([each[i], *before]) * math.log(1.0001))
        found.append(np.array(values))
    own, which = np.unique(np.array(text)[known], return_inverse=True)
    return own, [np.bincount(which, values) / np.bincount(which) for values in found]


def geometric(values: Values, where: Ids) -> dict[str, Any]:
    """The geometric mean over texts of exp of these values, with its interval."""
    from textveil_bench.intervals import mean

    found = mean(values, where, share=False)
    low, high = (math.exp(end) for end in (found.low, found.high))
    return {"value": math.exp(found.value), "low": low, "high": high, "n": len(values)}


def guessed(name: str, case: "Case") -> Figures:
    """How many words attackers name: by the law and public frequencies, with a language model besides, by the word."""
    from textveil.randomness import SeededRandomness
    from textveil_bench import attack

    attackers = [
        attack.load("bayes", {"priors": ("unigram", "context")}),
        attack.load("neighbour", {}),
    ]
    for row in attack.attack(case, attackers, rng=SeededRandomness(SEED).derive_part(2**100)).rows:
        if (
            row.slice == "all"
            and row.metric in ("top-1", "Pr@1")
            and row.setting.get("distance") != "euclidean"
        ):
            prior = f", {row.setting['prior']}" if "prior" in row.setting else ""
            yield (
                name,
                f"{row.source}{prior}",
                {"value": row.value, "low": row.low, "high": row.high, "n": row.n},
            )


def main() -> None:
    """Measures everything, adds the rows, and fills the documents."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", choices=("limits", "levels", "spelling"), help="one of them (default: all)"
    )
    only = parser.parse_args().only
    corpora = os.environ.get("TEXTVEIL_CORPORA")
    if corpora is None and only in (None, "spelling"):
        sys.exit(
            "codebooks: skipped, because $TEXTVEIL_CORPORA names no folder of corpora (sst2, ag_news)"
        )
    shared, console = (
        {
            **read_circumstances(*(["pocketsphinx"] if only in (None, "spelling") else [])),
            "seed": SEED,
        },
        Console(stderr=True),
    )
    parts: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {"limits": limits, "levels": levels}
    if corpora is not None:
        parts["spelling"] = partial(spelling, Path(corpora))
    rows = [part() for name, part in parts.items() if only in (None, name)]
    for row in chain.from_iterable(rows):
        console.print(f"{row['what']}: {row['value']:.3f}", highlight=False, soft_wrap=True)
        rowfiles.keep(report.CODEBOOKS, [{**row, **shared}])
    report.write_documents()


if __name__ == "__main__":
    main()
