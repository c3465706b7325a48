"""Files of rows in which each measurement has its newest row, and no older one: those are in the history of git.

In: rows. Out: JSON lines, compressed where the file's name ends in .gz.
Not here: what a row says (`textveil_bench.circumstances` has when and where), and who measures.
"""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def read(path: Path) -> list[Row]:
    """The rows of a file in its order; none if there is no file."""
    if not path.exists():
        return []
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    return [json.loads(line) for line in content.decode().splitlines()]


def keep(path: Path, rows: Iterable[Row], key: tuple[str, ...] = ("what",)) -> None:
    """Puts rows into a file: each in the place of the one that has its key, new ones at the end.

    The file is replaced whole: a run that is cut short leaves the old one or the new one.
    """
    held = {tuple(row[name] for name in key): row for row in [*read(path), *rows]}
    lines = "".join(
        json.dumps(row, sort_keys=True, ensure_ascii=False) + "\n" for row in held.values()
    ).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    beside.write_bytes(gzip.compress(lines, mtime=0) if path.suffix == ".gz" else lines)
    beside.replace(path)
