"""Writes the constants of the tables that ship with textveil, into src/textveil/data/constants/.

In: the tables themselves (`table`). Out: one small file each, on the safe side; progress on stderr.
Not here: what the constants mean and how they are proved (src/textveil/constants.py).

Run: python benchmarks/constants.py [NAME-METRIC ... | cape | kth | groups]   (about half an hour for all on two cores)
"""

import json
import sys
import time
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np

from textveil.randomness import Floats
from textveil.table.constants import Progress, TableConstants, compute

FOLDER = Path(__file__).resolve().parents[3] / "src" / "textveil" / "data" / "constants"
TABLES = ("minilm-s", "minilm", "minilm-wordpiece")
STEPS = (20, 100)
"""The steps of staircases whose last ranks are stored: the default one, and that of the profile `document`."""
METRICS: tuple[Literal["chord", "euclidean"], ...] = ("chord", "euclidean")


def meter(label: str) -> Progress:
    """A progress callback that rewrites one line of stderr, at most once a second."""
    last = 0.0

    def show(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= 1 or done == total:
            last = time.monotonic()
            print(f"\r{label}: {done} of {total} blocks", end="", file=sys.stderr, flush=True)

    return show


def text(found: TableConstants) -> str:
    """JSON with sorted keys, one to a line at the two upper levels, so that a difference can be read."""

    def lines(values: dict[str, object], indent: str) -> str:
        rows = []
        for key, value in sorted(values.items()):
            inner = lines(value, indent + "  ") if isinstance(value, dict) else json.dumps(value)
            rows.append(f"{indent}  {json.dumps(key)}: {inner}")
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"

    return lines(found.to_json(), "") + "\n"


def write(name: str, metric: str, vectors: Floats) -> Path:
    """Computes the constants of one table (the curve for the chord metric) and writes its file."""
    began = time.monotonic()
    found = compute(vectors, metric, curve=metric == "chord", progress=meter(f"{name}-{metric}"))
    target = FOLDER / f"{name}-{metric}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text(found), encoding="utf-8")
    seconds = time.monotonic() - began
    print(f"\r{target.name}: {found.words} x {found.dimension} in {seconds:.0f} s", file=sys.stderr)
    return target


def write_cape(names: tuple[str, ...] = TABLES[:2]) -> Path:
    """Computes what Cape without context really loses on the tables of words, and writes it into cape.json."""
    from textveil.mechanism.buckets import (
        NOMINAL_EPSILONS,
        BucketRule,
        build_constant_key,
        compute_losses,
    )
    from textveil.mechanism.utility import Hybrid
    from textveil.table.embedding import load_table

    target = FOLDER / "cape.json"
    known = json.loads(target.read_text(encoding="utf-8")) if target.is_file() else {}
    rule = BucketRule()
    for name, distance in product(names, METRICS):
        utility, table = Hybrid(distance=distance), load_table(name)
        label = build_constant_key(table, utility, rule)
        found = compute_losses(
            table, utility, rule, np.array(NOMINAL_EPSILONS), progress=meter(label)
        )
        safe = (
            np.ceil(found * (1 + 1e-7) * 1e6) / 1e6
        ).tolist()  # other machines round distances otherwise
        known[label] = {"loss": safe, "nominal": list(NOMINAL_EPSILONS)}
        rows = [
            f"  {json.dumps(each)}: {json.dumps(known[each], sort_keys=True)}"
            for each in sorted(known)
        ]
        target.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    return target


def write_kth(names: tuple[str, ...] = TABLES[:2]) -> Path:
    """Finds the k-th nearest row of every row, for the steps that rankcape and the profiles have, into kth.npz."""
    from textveil.table.embedding import load_table

    target = FOLDER / "kth.npz"
    found = {}
    for name in names:
        table = load_table(name)
        ranked = table.neighbours(np.arange(len(table)), max(STEPS))  # the nearest first
        found |= {f"{name}-chord-{k}": ranked[:, k - 1].astype(np.uint16) for k in STEPS}
    np.savez_compressed(target, **found)
    return target


def write_groups(names: tuple[str, ...] = TABLES[:2]) -> Path:
    """Makes the groups of the mechanism custext, with the number of words that it has unless told, into groups.npz."""
    from textveil.mechanism.confined import NearestLists, partition
    from textveil.table.embedding import load_table

    target, k = FOLDER / "groups.npz", NearestLists().k
    made = {
        f"{name}-chord-{k}": partition(load_table(name), k).astype(np.uint16) for name in names
    }  # -1 to 65535
    np.savez_compressed(target, **made)
    return target


def main() -> None:
    """Writes the files named on the command line, or all of them."""
    from textveil.table.embedding import load_table

    for name, metric in product(TABLES, METRICS):
        if not sys.argv[1:] or f"{name}-{metric}" in sys.argv[1:]:
            # a table refuses constants of other rows
            (FOLDER / f"{name}-{metric}.json").unlink(missing_ok=True)
            write(name, metric, load_table(name, metric=metric).vectors)
    if not sys.argv[1:] or "cape" in sys.argv[1:]:
        write_cape()
    if not sys.argv[1:] or "kth" in sys.argv[1:]:
        write_kth()
    if not sys.argv[1:] or "groups" in sys.argv[1:]:
        write_groups()


if __name__ == "__main__":
    main()
