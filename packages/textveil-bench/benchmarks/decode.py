"""Measures the exact search beside faiss and beside the bare matrix products: part of `make bench`.

In: a table of 30,522 x 384 with noisy queries, and one of 2,196,017 x 300 mapped from disk. Out: rows for `run.py`.
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
import torch

from textveil_bench.process import best, peak_memory

SHAPE, BATCH = (30_522, 384), 256
LARGE, FEW = (2_196_017, 300), 1_024
ETAS = (40.0, 80.0, 160.0)


def unit_rows(size: int, dimension: int, seed: int = 0) -> torch.Tensor:
    """Random unit rows, float32."""
    rows = torch.randn(size, dimension, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(rows, dim=1)


def noisy(rows: torch.Tensor, n: int, eta: float) -> torch.Tensor:
    """Rows with multivariate Laplace noise, as the mechanism `noise` asks for them."""
    from textveil.randomness.samplers import multivariate_laplace
    from textveil.randomness.streams import SeededRandomness

    ids = np.random.default_rng(1).integers(len(rows), size=n)
    ((_, draws),) = SeededRandomness(1).open(np.array([n])).chunks(n)
    noise = multivariate_laplace(draws, np.full(n, eta), rows.shape[1])
    return rows[ids] + torch.from_numpy(noise).float()


def in_memory(repeat: int) -> Iterator[dict[str, Any]]:
    """Microseconds a query for the product's own search, faiss, and the matrix products that bound it from below."""
    import faiss

    from textveil import load_table
    from textveil.table.embedding import EmbeddingTable

    pieces = load_table("minilm-wordpiece")
    short = SHAPE[0] - len(pieces)
    rows = torch.cat([pieces.vectors, unit_rows(short, SHAPE[1])])
    table = EmbeddingTable.build(name="30,522 x 384", words=[str(i) for i in range(SHAPE[0])], vectors=rows)
    index = faiss.IndexFlatIP(SHAPE[1])
    index.add(table.vectors)
    faiss.omp_set_num_threads(torch.get_num_threads())
    unit = "us/query"
    shape = {"rows": SHAPE[0], "dimension": SHAPE[1], "batch": BATCH}
    for eta in ETAS:
        queries = noisy(table.vectors, 8 * BATCH, eta)
        batches = queries.split(BATCH)
        found = np.concatenate([table.nearest(batch) for batch in batches])
        truth = (queries.double() @ table.vectors.astype(np.float64).T).argmax(dim=1).numpy()
        ours = best(lambda b=batches: [table.nearest(batch) for batch in b], repeat) / len(queries)
        plain = best(lambda b=batches: [(q @ table.vectors.T).argmax(dim=1) for q in b], repeat) / len(queries)
        theirs = best(lambda b=batches: [index.search(batch.numpy(), 1) for batch in b], repeat) / len(queries)
        for what, value in (("textveil", ours), ("faiss.IndexFlatIP", theirs), ("torch float32, argmax", plain)):
            yield {"what": f"decode, {what}, eta {eta:g}", "unit": unit, "value": 1e6 * value, "eta": eta, **shape}
        yield {
            "what": f"decode, differs from float64, eta {eta:g}",
            "unit": "queries",
            "value": int((found != truth).sum()),
            "eta": eta,
            "queries": len(queries),
            **shape,
        }
    one = queries[:BATCH]
    for dtype in (torch.float32, torch.bfloat16, torch.int8):
        low, asked = (table.vectors * 127).to(dtype), (one * 127).clamp(-127, 127).to(dtype)
        multiply = torch._int_mm if dtype == torch.int8 else torch.mm
        seconds = best(lambda m=multiply, a=low, b=asked: m(a, b.T), 5 * repeat) / BATCH
        name = str(dtype).removeprefix("torch.")
        yield {"what": f"decode, bare product in {name}", "unit": unit, "value": 1e6 * seconds, **shape}


def mapped(repeat: int) -> Iterator[dict[str, Any]]:
    """The same for millions of rows that are mapped from disk, each in a process of its own for its memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        half = np.lib.format.open_memmap(path, "w+", np.float16, LARGE)
        for start in range(0, LARGE[0], 1 << 16):
            half[start : start + (1 << 16)] = unit_rows(1 << 16, LARGE[1], start)[: LARGE[0] - start].numpy()
        half.flush()
        del half
        for what in ("textveil", "faiss.IndexFlatIP"):
            line = [sys.executable, __file__, str(path), what, str(repeat)]
            done = subprocess.run(line, check=True, capture_output=True, text=True)
            for row in json.loads(done.stdout):
                yield {**row, "rows": LARGE[0], "dimension": LARGE[1], "batch": FEW}


def mapped_rows(path: str, what: str, repeat: int) -> list[dict[str, Any]]:
    """What one process measures; its memory is its own."""
    rows = torch.from_numpy(np.load(path, mmap_mode="c"))
    queries = noisy(torch.nn.functional.normalize(rows[:FEW].float(), dim=1), FEW, 100.0)
    out = []
    if what == "textveil":
        from textveil.table.embedding import EmbeddingTable

        table = EmbeddingTable.build(name="large", words=[str(i) for i in range(len(rows))], vectors=rows)
        search: Callable[[], Any] = lambda: table.nearest(queries)  # noqa: E731
    else:
        import faiss

        faiss.omp_set_num_threads(torch.get_num_threads())
        index = faiss.IndexFlatIP(rows.shape[1])
        for part in rows.split(1 << 16):
            index.add(part.float().numpy())
        search = lambda: index.search(queries.numpy(), 1)  # noqa: E731
    seconds = best(search, repeat)
    out.append({"what": f"decode, {what}, millions of rows", "unit": "us/query", "value": 1e6 * seconds / FEW})
    peak = peak_memory() / 1e6
    out.append({"what": f"decode, {what}, millions of rows, peak memory", "unit": "MB", "value": peak})
    if what == "textveil":
        found, few = search(), slice(0, 64)
        top = torch.full((64,), -torch.inf, dtype=torch.float64)
        truth = torch.zeros(64, dtype=torch.int64)
        for start in range(0, len(rows), 1 << 16):
            part = torch.nn.functional.normalize(rows[start : start + (1 << 16)].double(), dim=1).float().double()
            value, place = (queries[few].double() @ part.T).max(dim=1)
            truth, top = torch.where(value > top, start + place, truth), torch.maximum(top, value)
        wrong = int((torch.from_numpy(found[few]) != truth).sum())
        out.append({"what": "decode, millions of rows, differs from float64", "unit": "queries", "value": wrong})
    return out


def measurements(repeat: int) -> Iterator[dict[str, Any]]:
    """One measurement at a time."""
    yield from in_memory(repeat)
    yield from mapped(repeat)


if __name__ == "__main__":
    print(json.dumps(mapped_rows(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
