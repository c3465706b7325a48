"""Converts real slices of GloVe and word2vec, and tables of the size of GloVe 840B, and checks and times them.

In: a folder of slices (emb_NAME/vectors.f16.npy and vocab.txt.gz), or none. Out: lines on standard output.
Not here: small files of every format, which the tests make; the speed of mechanisms (`run`).

Run: python benchmarks/tables.py slices FOLDER
     python benchmarks/tables.py large FOLDER [text|binary]   (needs 8 GB there, and deletes them)
"""

import gzip
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from textveil.randomness import Floats
from textveil.table import store, vectors

LARGE = (2_196_017, 300)


def write_text(path: Path, words: list[str], rows: Floats, *, header: bool) -> None:
    """GloVe's text, or with a header word2vec's and fastText's."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"{len(words)} {rows.shape[1]}\n" * header)
        for word, row in zip(words, rows, strict=True):
            file.write(f"{word} {' '.join(f'{x:.9g}' for x in row)}\n")


def write_binary(path: Path, words: list[str], rows: Floats) -> None:
    """word2vec's binary format."""
    with path.open("wb") as file:
        file.write(b"%d %d\n" % rows.shape)
        for word, row in zip(words, rows, strict=True):
            file.write(word.encode() + b" " + row.tobytes() + b"\n")


def convert(source: Path, folder: Path, **options: object) -> float:
    """Builds a table; returns the seconds it took."""
    began = time.monotonic()
    with vectors.open_vectors(str(source)) as found:
        store.build(found, folder, force=True, **options)  # type: ignore[arg-type]
    return time.monotonic() - began


def check_slice(folder: Path, scratch: Path) -> None:
    """Converts one slice in four formats; each table must hold its words and, up to rounding, its unit rows."""
    rows = np.load(folder / "vectors.f16.npy").astype(np.float32)
    with gzip.open(folder / "vocab.txt.gz", "rt", encoding="utf-8") as file:
        words = file.read().removesuffix("\n").split("\n")
    unit = rows / np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    writers: dict[str, Callable[[Path], None]] = {
        "glove": lambda path: write_text(path, words, rows, header=False),
        "vec": lambda path: write_text(path, words, rows, header=True),
        "word2vec": lambda path: write_binary(path, words, rows),
    }
    for name, write in writers.items():
        source = scratch / f"{folder.name}.{name}"
        write(source)
        for dtype, limit in (("float32", 2e-7), ("float16", 6e-4)):
            seconds = convert(source, scratch / "table", dtype=dtype, pairs=False)
            table = store.load(scratch / "table")
            off = float(np.abs(table.vectors - unit).max())
            right = (
                table.words == tuple(words)
                and off <= limit
                and store.read(scratch / "table").format == name
            )
            said = "as the original" if right else "WRONG"
            print(
                f"{folder.name:28} {name:8} {dtype}  {len(table):,} x {table.dimension}  {seconds:.1f} s  {said}"
            )
            assert right, f"{folder.name} as {name} in {dtype} differs by {off}"
    seconds = convert(source, scratch / "table")
    found = store.read(scratch / "table").constants
    print(
        f"{folder.name:28} all pairs in {seconds:.0f} s: diameter {found.diameter:.4f}, l1 {found.l1_diameter:.2f}"
    )


def slices(folder: Path) -> None:
    """Every slice of GloVe and word2vec in a folder."""
    found = sorted(path.parent for path in folder.glob("emb_*/vectors.f16.npy"))
    assert found, f"no slices (emb_*/vectors.f16.npy) in {folder}"
    for path in found:
        with tempfile.TemporaryDirectory() as scratch:
            check_slice(path, Path(scratch))


def large(folder: Path, kind: str) -> None:
    """A table of random rows, of the size of GloVe 840B: seconds and peak memory of the command."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        source = Path(scratch) / "large"
        write_large(source, kind)
        command = [
            sys.executable,
            "-m",
            "textveil",
            "table",
            "build",
            str(source),
            "-o",
            str(source) + ".table",
        ]
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds, size = time.monotonic() - began, source.stat().st_size / 1e6
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
        print(
            f"{kind}: {size:,.0f} MB in {seconds:.0f} s; peak of resident memory {peak:,.0f} MB, mapped pages included"
        )


def write_large(path: Path, kind: str) -> None:
    """Rows of a few thousand random halves, so that writing them takes no longer than reading."""
    count, width = LARGE
    halves = np.random.default_rng(0).normal(size=(2, 4000, width // 2)).astype(np.float32)
    if kind == "text":
        spelled = [[" ".join(f"{x:.5g}" for x in row).encode() for row in part] for part in halves]
        space, end = b" ", b"\n"
    else:
        spelled = [[row.tobytes() for row in part] for part in halves]
        space, end = b"", b""
    with path.open("wb", buffering=1 << 22) as file:
        file.write(b"" if kind == "text" else b"%d %d\n" % LARGE)
        for i in range(count):
            file.write(
                b"word%d " % i
                + spelled[0][i % 4000]
                + space
                + spelled[1][(i // 4000 + 7 * i) % 4000]
                + end
            )


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    if what == "slices":
        slices(Path(where))
    else:
        for chosen in rest or ("binary", "text"):
            large(Path(where), chosen)
