"""Measures the selecting family's draws, lists of neighbours and setup: part of `make bench`.

In: the default table, and random tables of 221,642 and 2,196,017 rows of 300. Out: rows for `run.py`.
Not here: mechanisms with a language model (`contexts`); whether draws follow their law (tests/mechanism/test_rule.py).
"""

import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import contexts
import numpy as np

from textveil_bench.process_usage import (
    measure_best_run,
    measure_best_seconds,
    measure_run,
    read_peak_memory,
)

WORDS, DISTINCT = 10_000, (1_000, 5_000)
C = 6.0
NEIGHBOURS = 20
LISTED: dict[str, tuple[str, dict[str, Any]]] = {
    "rankcape": ("rankcape", {"k": NEIGHBOURS}),
    "custext": ("custext", {"k": NEIGHBOURS}),
    "custext, aggressive": ("custext", {"k": NEIGHBOURS, "mapping": "aggressive"}),
}
"""Mechanisms that draw from short lists, by what their rows are called."""

SHAPES = {"float32": (221_642, 300, 512), "float16": (2_196_017, 300, 128)}
"""Rows, dimension and distinct words of random tables, by how they are held."""


def words(size: int, distinct: int, total: int) -> np.ndarray:
    """So many rows, of which so many are distinct."""
    random = np.random.default_rng(1)
    rows = random.permutation(size)[:distinct]
    return np.concatenate([rows, random.choice(rows, total - distinct)])


def seconds(table: Any, rows: np.ndarray, repeat: int) -> float:
    """One draw of the exponential rule for every row."""
    from textveil.mechanism import Exponential
    from textveil.randomness.streams import SeededRandomness

    def draw() -> object:
        ((_, draws),) = SeededRandomness(1).open(np.array([len(rows)])).split_rows(len(rows))
        return Exponential().draw(draws, table, rows, np.full(len(rows), C))

    return measure_best_seconds(draw, repeat)


def default(repeat: int) -> Iterator[dict[str, Any]]:
    """Draws and neighbours at the default table's words."""
    from textveil.table.embedding import load_table

    table = load_table("minilm-s")
    shape = {"rows": len(table), "dimension": table.dimension}
    taken = [seconds(table, words(len(table), distinct, WORDS), repeat) for distinct in DISTINCT]
    for distinct, value in zip(DISTINCT, taken, strict=True):
        what = f"selection, exponential, {WORDS:,} words, {distinct:,} of them distinct"
        yield {"what": what, "unit": "s", "value": value, "c": C, **shape}
    one = (taken[1] - taken[0]) / (DISTINCT[1] - DISTINCT[0])
    value = 1e6 * (taken[0] - one * DISTINCT[0]) / WORDS
    yield {
        "what": "selection, exponential, a distinct word",
        "unit": "us",
        "value": 1e6 * one,
        "c": C,
        **shape,
    }
    yield {
        "what": "selection, exponential, a word beside",
        "unit": "us",
        "value": value,
        "c": C,
        **shape,
    }

    everything = np.arange(len(table))
    made, cpu = measure_best_run(lambda: table.pairs.find_nearest(everything, NEIGHBOURS), 1)
    what = f"selection, the {NEIGHBOURS} nearest rows of all rows"
    yield {"what": what, "unit": "s", "value": made, "cpu": cpu, "k": NEIGHBOURS, **shape}
    table.neighbours(everything, NEIGHBOURS)
    asked = words(len(table), DISTINCT[0], WORDS)
    value = measure_best_seconds(lambda: table.neighbours(asked, NEIGHBOURS), 5 * repeat) / WORDS
    what = f"selection, the {NEIGHBOURS} nearest rows, read again"
    yield {"what": what, "unit": "us/word", "value": 1e6 * value, "k": NEIGHBOURS, **shape}


def listed(repeat: int) -> Iterator[dict[str, Any]]:
    """Setup and draws of mechanisms whose candidates are short lists, or lists and all words."""
    from textveil import Privatizer
    from textveil.mechanism import Block, Layout
    from textveil.table.embedding import load_table

    given = contexts.texts(200, WORDS // 200)
    for name, (mechanism, options) in LISTED.items():
        table = replace(load_table("minilm-s"))  # one that has no lists yet
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of CusText, that its epsilon bounds nothing
            privatizer = Privatizer(mechanism, epsilon=8.0, table=table, **options)
        shape = {
            "rows": len(table),
            "dimension": table.dimension,
            "mechanism": mechanism,
            **options,
        }

        def draw(rows: np.ndarray, privatizer: Privatizer = privatizer) -> object:
            block = Block(layout=Layout.build(len(rows)), rows=rows)
            return privatizer.mechanism.privatize(
                privatizer.table, block, np.full(len(rows), 8.0), rng=privatizer.randomness
            )

        everything = np.arange(len(table))
        first = measure_run(lambda d=draw, e=everything: d(e))
        again = measure_best_run(lambda d=draw, e=everything: d(e), repeat)
        wall, cpu = (a - b for a, b in zip(first, again, strict=True))
        yield {
            "what": f"selection, {name}, setup for all words",
            "unit": "s",
            "value": wall,
            "cpu": cpu,
            **shape,
        }
        asked = words(len(table), DISTINCT[1], WORDS)
        wall, cpu = (
            1e6 * each / WORDS
            for each in measure_best_run(lambda d=draw, a=asked: d(a), 5 * repeat)
        )
        yield {
            "what": f"selection, {name}, a word",
            "unit": "us",
            "value": wall,
            "cpu": cpu,
            **shape,
        }
        spent = measure_best_run(
            lambda p=privatizer, g=given: sum(1 for _ in p.privatize_many(g)), repeat
        )
        wall, cpu = (1e6 * each / WORDS for each in spent)
        what = f"selection, {name}, a word of a text, with tokens, spelling and statement"
        yield {"what": what, "unit": "us", "value": wall, "cpu": cpu, "texts": len(given), **shape}


def random(repeat: int) -> Iterator[dict[str, Any]]:
    """Draws from large tables that are mapped from disk, each in a process of its own for its memory."""
    for held, (size, dimension, distinct) in SHAPES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.npy"
            rows = np.lib.format.open_memmap(path, "w+", np.dtype(held), (size, dimension))
            for start in range(0, size, 1 << 16):
                part = np.random.default_rng(start).normal(
                    size=(min(1 << 16, size - start), dimension)
                )
                rows[start : start + len(part)] = part / np.linalg.norm(part, axis=1, keepdims=True)
            rows.flush()
            del rows
            line = [sys.executable, __file__, str(path), str(distinct), str(repeat)]
            done = subprocess.run(line, check=True, capture_output=True, text=True)
            for row in json.loads(done.stdout):
                yield {**row, "rows": size, "dimension": dimension, "held": held, "c": C}


def mapped(path: str, distinct: int, repeat: int) -> list[dict[str, Any]]:
    """What one process measures; its memory is its own."""
    from textveil.table.embedding import EmbeddingTable

    rows = np.load(path, mmap_mode="c")
    table = EmbeddingTable.build(
        name="large", words=[str(i) for i in range(len(rows))], vectors=rows
    )
    ready = read_peak_memory()
    value = seconds(table, words(len(table), distinct, distinct), repeat) / distinct
    what = f"selection, exponential, {len(rows):,} rows in {rows.dtype.name}"
    return [
        {
            "what": f"{what}, a distinct word",
            "unit": "us",
            "value": 1e6 * value,
            "distinct": distinct,
        },
        {
            "what": f"{what}, peak memory",
            "unit": "MB",
            "value": read_peak_memory() / 1e6,
            "built": ready / 1e6,
        },
    ]


def measurements(repeat: int) -> Iterator[dict[str, Any]]:
    """One measurement at a time."""
    yield from default(repeat)
    yield from listed(repeat)
    yield from contexts.measurements(repeat)
    yield from random(repeat)


if __name__ == "__main__":
    print(json.dumps(mapped(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
