"""Measures the exact search beside faiss and beside the bare matrix products: part of `make bench`.

In: the default table, one of 30,522 x 384, one of 2,196,017 x 300 mapped from disk, with noisy queries. Out: rows for
`run.py`, of processor time.
Not here: whether the answers are right (tests/test_nearest.py); here they are only counted against float64 once more.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textveil_bench.process_usage import measure_best_run, read_peak_memory

ROWS, BATCH = 30_522, 256
LARGE, FEW = (2_196_017, 300), 1_024
ETAS = (40.0, 80.0, 160.0)


def unit_rows(size: int, dimension: int, seed: int = 0) -> NDArray[np.float32]:
    """Random unit rows."""
    rows = np.random.default_rng(seed).standard_normal((size, dimension), np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def noisy(rows: NDArray[np.float32], n: int, eta: float) -> NDArray[np.float32]:
    """Rows with multivariate Laplace noise, as the mechanism `noise` asks for them."""
    from textveil.randomness.samplers import multivariate_laplace
    from textveil.randomness.streams import SeededRandomness

    ids = np.random.default_rng(1).integers(len(rows), size=n)
    ((_, draws),) = SeededRandomness(1).open(np.array([n])).split_rows(n)
    return (rows[ids] + multivariate_laplace(draws, np.full(n, eta), rows.shape[1])).astype(
        np.float32
    )


def in_memory(repeat: int) -> Iterator[dict[str, Any]]:
    """Microseconds a query for the product's own search, faiss, and the matrix products that bound it from below."""
    import faiss

    from textveil import load_table
    from textveil.runtime import count_threads
    from textveil.table.embedding import EmbeddingTable
    from textveil.table.int8 import IntegerRows

    faiss.omp_set_num_threads(count_threads())
    pieces = load_table("minilm-wordpiece")
    rows = np.concatenate([pieces.vectors, unit_rows(ROWS - len(pieces), pieces.dimension)])
    large = EmbeddingTable.build(name="large", words=[str(i) for i in range(ROWS)], vectors=rows)
    for table in (load_table(), large):
        name = f"decode, {len(table):,} x {table.dimension}"
        shape = {
            "unit": "us/query",
            "rows": len(table),
            "dimension": table.dimension,
            "batch": BATCH,
        }
        index = faiss.IndexFlatIP(table.dimension)
        index.add(table.vectors)
        for eta in ETAS:
            queries = noisy(table.take(slice(None)), 8 * BATCH, eta)
            batches = np.split(queries, 8)
            found = np.concatenate([table.nearest(batch) for batch in batches])
            truth = (queries.astype(np.float64) @ table.vectors.T).argmax(axis=1)
            for what, search in (
                ("textveil", lambda b, t=table: t.nearest(b)),
                ("faiss.IndexFlatIP", lambda b, i=index: i.search(b, 1)),
            ):
                seconds = measure_best_run(
                    lambda s=search, b=batches: [s(batch) for batch in b], repeat
                )[1] / len(queries)
                yield {
                    "what": f"{name}, {what}, eta {eta:g}",
                    "value": 1e6 * seconds,
                    "eta": eta,
                    **shape,
                }
            yield {
                **shape,
                "what": f"{name}, differs from float64, eta {eta:g}",
                "unit": "queries",
                "value": int((found != truth).sum()),
                "eta": eta,
                "queries": len(queries),
            }
        single = table.take(slice(None))
        whole = np.rint(single * (127 / np.abs(single).max())).astype(np.int8)
        held = IntegerRows(whole)
        for kind, multiply in (
            ("float32", lambda r=single: r[:BATCH] @ r.T),
            ("int8", lambda h=held, w=whole: h.products(w[:BATCH])),
        ):
            seconds = measure_best_run(multiply, 5 * repeat)[1] / BATCH
            yield {"what": f"{name}, bare product in {kind}", "value": 1e6 * seconds, **shape}


def mapped(repeat: int) -> Iterator[dict[str, Any]]:
    """The same for millions of rows that are mapped from disk, each in a process of its own for its memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        half = np.lib.format.open_memmap(path, "w+", np.float16, LARGE)
        for start in range(0, LARGE[0], 1 << 16):
            half[start : start + (1 << 16)] = unit_rows(1 << 16, LARGE[1], start)[
                : LARGE[0] - start
            ]
        half.flush()
        del half
        for what in ("textveil", "faiss.IndexFlatIP"):
            line = [sys.executable, __file__, str(path), what, str(repeat)]
            done = subprocess.run(line, check=True, capture_output=True, text=True)
            for row in json.loads(done.stdout):
                yield {**row, "rows": LARGE[0], "dimension": LARGE[1], "batch": FEW}


def mapped_rows(path: str, what: str, repeat: int) -> list[dict[str, Any]]:
    """What one process measures; its memory is its own."""
    from textveil.runtime import count_threads

    rows = np.load(path, mmap_mode="c")
    few = rows[:FEW].astype(np.float32)
    queries = noisy(few / np.linalg.norm(few, axis=1, keepdims=True), FEW, 100.0)
    out = []
    if what == "textveil":
        from textveil.table.embedding import EmbeddingTable

        table = EmbeddingTable.build(
            name="large", words=[str(i) for i in range(len(rows))], vectors=rows
        )
        search: Callable[[], Any] = lambda: table.nearest(queries)  # noqa: E731
    else:
        import faiss

        faiss.omp_set_num_threads(count_threads())
        index = faiss.IndexFlatIP(rows.shape[1])
        for start in range(0, len(rows), 1 << 16):
            index.add(rows[start : start + (1 << 16)].astype(np.float32))
        search = lambda: index.search(queries, 1)  # noqa: E731
    seconds = measure_best_run(search, repeat)[1]
    out.append(
        {
            "what": f"decode, {what}, millions of rows",
            "unit": "us/query",
            "value": 1e6 * seconds / FEW,
        }
    )
    peak = read_peak_memory() / 1e6
    out.append(
        {"what": f"decode, {what}, millions of rows, peak memory", "unit": "MB", "value": peak}
    )
    if what == "textveil":
        found, asked = search(), queries[:64].astype(np.float64)
        top, truth = np.full(64, -np.inf), np.zeros(64, np.int64)
        for start in range(0, len(rows), 1 << 16):
            part = rows[start : start + (1 << 16)].astype(np.float64)
            part = (part / np.linalg.norm(part, axis=1, keepdims=True)).astype(np.float32)
            scores = asked @ part.T.astype(np.float64)
            place, value = scores.argmax(axis=1), scores.max(axis=1)
            truth, top = np.where(value > top, start + place, truth), np.maximum(top, value)
        wrong = int((found[:64] != truth).sum())
        out.append(
            {
                "what": "decode, millions of rows, differs from float64",
                "unit": "queries",
                "value": wrong,
            }
        )
    return out


def measurements(repeat: int) -> Iterator[dict[str, Any]]:
    """One measurement at a time."""
    yield from in_memory(repeat)
    yield from mapped(repeat)


if __name__ == "__main__":
    print(json.dumps(mapped_rows(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
