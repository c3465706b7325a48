"""Measures how large textveil is: its wheel, an environment with its core, and clones of its repository.

In: this working tree, whose last commit is cloned. Out: rows in benchmarks/rows/speed.jsonl.
Not here: memory of commands (`startup`), and that the core stays small (`make core`).

Run: python benchmarks/sizes.py   (some minutes, most of them for installing)
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rowfiles
from report import ROOT, ROWS

from textveil_bench.circumstances import read_circumstances


def run(*command: str | Path) -> None:
    """Runs a command, which must succeed."""
    subprocess.run([*map(str, command)], check=True, cwd=ROOT)


def megabytes(place: Path) -> float:
    """The size of a file, or of all files of a folder, in millions of bytes."""
    files = [place] if place.is_file() else [each for each in place.rglob("*") if each.is_file()]
    return sum(each.stat().st_size for each in files if not each.is_symlink()) / 1e6


def measurements(place: Path) -> Iterator[dict[str, Any]]:
    """A row for each thing that somebody fetches or keeps."""
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", place / "wheel", ROOT)
    (wheel,) = (place / "wheel").glob("*.whl")
    yield {"what": "size, wheel", "value": megabytes(wheel)}
    run(sys.executable, "-m", "venv", place / "core")
    pinned = ("--constraint", ROOT / "constraints.txt")
    run(place / "core" / "bin" / "python", "-m", "pip", "install", "-q", *pinned, wheel)
    yield {"what": "size, core installed, pip included", "value": megabytes(place / "core")}
    for name, options in (("clone", ()), ("clone of the newest state alone", ("--depth", "1"))):
        run("git", "clone", "-q", "--bare", *options, f"file://{ROOT}", place / name)
        yield {"what": f"size, {name}", "value": megabytes(place / name)}


def main() -> None:
    """Stores the rows."""
    shared = {"unit": "MB", **read_circumstances()}
    with tempfile.TemporaryDirectory() as place:
        for row in measurements(Path(place)):
            print(f"{row['what']}: {row['value']:.1f} MB", flush=True)
            rowfiles.keep(ROWS, [row | shared])


if __name__ == "__main__":
    main()
