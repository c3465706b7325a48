"""Measures the privatization of a file of sentences, and the same mechanisms word by word: part of `make bench`.

In: the training sentences of SST-2, from a folder of corpora. Out: rows for `run.py`.
Not here: whether anything is private or useful.

The loops below are not the product: they do what reference code does, word by word. A loop draws with numpy and
compares one vector with the whole table; a few hundred words are enough to time it.
"""

import csv
import gzip
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from textveil.randomness import Values

ROWS, LOOPED = 20_000, 300
"""Sentences of the file, and words that a loop is timed over."""

BUDGETS = {"laplace": 5.0, "exponential": 8.0}
Draw = Callable[[list[Values], int], int]


def sentences(corpora: Path) -> list[str]:
    """The first sentences of SST-2's training part."""
    with gzip.open(corpora / "sst2" / "train.tsv.gz", "rt", encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, delimiter="\t")
        return [row["sentence"].strip() for row in islice(reader, ROWS)]


def loops(rows: Values) -> dict[str, Draw]:
    """Mechanisms as functions of a text's vectors and a place in it, without a batch anywhere."""
    rng = np.random.default_rng(0)
    d = rows.shape[1]

    def laplace(eta: float) -> Values:
        direction = rng.normal(size=d)
        return direction / np.linalg.norm(direction) * rng.gamma(d, 1 / eta)

    def window(text: list[Values], i: int) -> Values:
        near = [
            (j, np.exp(-((j - i) ** 2) / (2 * 0.75**2)))
            for j in range(i - 2, i + 3)
            if 0 <= j < len(text)
        ]
        return sum(weight * text[j] for j, weight in near) / sum(weight for _, weight in near)

    def nearest(vector: Values) -> int:
        return int(np.linalg.norm(rows - vector, axis=1).argmin())

    def cosine(vector: Values) -> int:
        return int((rows @ vector).argmax())

    def fisher(mean: Values, kappa: float) -> Values:
        b = (-2 * kappa + np.sqrt(4 * kappa**2 + (d - 1) ** 2)) / (d - 1)
        x = (1 - b) / (1 + b)
        c = kappa * x + (d - 1) * np.log(1 - x**2)
        while True:
            z = rng.beta((d - 1) / 2, (d - 1) / 2)
            w = (1 - (1 + b) * z) / (1 - (1 - b) * z)
            if kappa * w + (d - 1) * np.log(1 - x * w) - c >= np.log(rng.uniform()):
                break
        side = rng.normal(size=d)
        side -= side @ mean * mean
        return w * mean + np.sqrt(1 - w**2) * side / np.linalg.norm(side)

    def exponential(vector: Values) -> int:
        weight = np.exp(-8.0 / 2 * np.linalg.norm(rows - vector, axis=1))
        return int(rng.choice(len(rows), p=weight / weight.sum()))

    return {
        "noise": lambda text, i: nearest(text[i] + laplace(70.0)),
        "stencil": lambda text, i: nearest(window(text, i)),
        "d-chi-stencil": lambda text, i: nearest(window(text, i) + laplace(70.0)),
        "polar": lambda text, i: cosine(fisher(text[i], 70.0)),
        "laplace": lambda text, i: nearest(text[i] + rng.laplace(scale=1 / 5.0, size=d)),
        "exponential": lambda text, i: exponential(text[i]),
    }


def looped(draw: Draw, texts: list[list[Values]]) -> float:
    """Seconds a word of a loop."""
    start, done = time.perf_counter(), 0
    for text in texts:
        for i in range(len(text)):
            draw(text, i)
            done += 1
    return (time.perf_counter() - start) / done


def product(
    name: str, budget: float | None, source: Path, jobs: int, repeat: int
) -> Iterator[dict[str, Any]]:
    """Rows and protected words per second of one mechanism over the file; the best of some runs.

    The table is loaded already in this process; others load it.
    """
    from textveil.config.layers import resolve
    from textveil.config.option_sources import parse_assignments
    from textveil.corpus import RowOptions, run

    config = resolve(
        overrides=parse_assignments([], {"mechanism.name": name, "epsilon": budget and str(budget)})
    )
    best, words = float("inf"), 0
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            done = run(source, f"{folder}/out", config, RowOptions(ids="row"), jobs=jobs)
            best = min(best, time.perf_counter() - start)
            words = done.manifest["statement"]["guarantee"]["protected"]
    shared = {"mechanism": name, "epsilon": budget, "jobs": jobs, "rows": ROWS, "protected": words}
    which = f"files, {name}, jobs {jobs}"
    yield {"what": f"{which}, rows", "unit": "rows/s", "value": ROWS / best, **shared}
    yield {"what": f"{which}, protected words", "unit": "words/s", "value": words / best, **shared}


def measurements(repeat: int) -> Iterator[dict[str, Any]]:
    """Every mechanism over the file, and as a loop over words."""
    corpora = os.environ.get("TEXTVEIL_CORPORA")
    if not corpora:
        return
    from textveil.config import registry
    from textveil.table.embedding import load_table
    from textveil.text.tokens import tokenize

    table = load_table("minilm")
    lines = sentences(Path(corpora))
    few = [
        [word for word in tokenize([line]).words if word in table.row_of] for line in lines[:100]
    ]
    vectors = table.vectors.astype(np.float64)
    texts = [[vectors[table.row_of[word]] for word in words] for words in few if words]
    while sum(map(len, texts)) > LOOPED:
        texts.pop()
    plain = loops(vectors)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "sst2.txt"
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        for name in (
            each
            for each in registry.list_names("mechanism")
            if not registry.find_entry("mechanism", each).codes
        ):
            budget = None if name in ("stencil", "placeholder") else BUDGETS.get(name, 70.0)
            for jobs in (1, 2):
                yield from product(name, budget, source, jobs, repeat)
            if name in plain:
                seconds = looped(plain[name], texts)
                yield {
                    "what": f"files, {name}, a loop over words",
                    "unit": "words/s",
                    "value": 1 / seconds,
                }
