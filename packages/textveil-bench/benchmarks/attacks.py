"""Attacks releases of real sentences: what adversaries get. Part of `make bench`.

In: the folder of corpora that $TEXTVEIL_CORPORA names (`sst2`, `synthetic_reddit_attributes`). Out: one rate at a time.
Not here: the attacks themselves (`textveil_bench.attack`), and speed.

Draws are seeded, so that a row can be repeated: the statement of such a release holds against nobody who knows the
seed, and no attacker here uses it.
"""

import csv
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

SEED = 1
DECOYS = 20_000
LABELS = ("sex", "age", "income_level", "relationship_status")

RELEASES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("placeholder", {}),
    ("noise", {"epsilon": 60}),
    ("noise", {"epsilon": 80}),
    ("polar", {"epsilon": 80}),
    ("exponential", {"epsilon": 7}),
    ("exponential", {"epsilon": 8}),
    ("d-chi-stencil", {"L": 4, "sigma": 0.75, "eta": 240}),
    ("stencil", {"L": 1, "exclude_original": True}),
)
ATTACKS = ("neighbour", "masked", "bayes", "window", "semantic", "membership", "linkage")


def title(mechanism: str, options: Mapping[str, Any]) -> str:
    """A release as a table names it."""
    own = (name if value is True else f"{name} {value:g}" for name, value in options.items())
    return " ".join((mechanism, *own))


def sentences(path: Path, count: int | None = None) -> list[str]:
    """The first sentences of a part of SST-2."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return [
            row["sentence"].strip() for row in islice(csv.DictReader(file, delimiter="\t"), count)
        ]


def news(path: Path, count: int | None = None) -> list[str]:
    """The first descriptions of AG News."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return [
            row["description"].strip()
            for row in islice(csv.DictReader(file, delimiter="\t"), count)
        ]


EXACT = """
import json, time
import numpy as np
from textveil_bench.process_usage import read_peak_memory
from textveil.evaluate.attack.channel import find_exact_map
from textveil.mechanism.papers import exponential
from textveil.table import load_table

table = load_table("minilm-s")
start = time.perf_counter()
_, success = find_exact_map(exponential(c=6.0), table, 6.0, np.full(len(table), -np.log(len(table))))
print(json.dumps({"seconds": time.perf_counter() - start, "bytes": read_peak_memory(), "success": success}))
"""


def speed() -> Iterator[dict[str, Any]]:
    """The exact best guesses for all words of a table: time, and memory of a process of its own."""
    line = [sys.executable, "-c", EXACT]
    done = subprocess.run(
        line, check=True, capture_output=True, text=True, cwd=Path(__file__).parent
    )
    found = json.loads(done.stdout)
    what = "attacks, exact MAP of exponential (c 6), 21,719 x 21,719 words"
    yield {"what": what, "unit": "s", "value": found["seconds"], "success": found["success"]}
    yield {
        "what": f"{what}: peak memory of the process",
        "unit": "MB",
        "value": found["bytes"] / 1e6,
    }


def measurements() -> Iterator[dict[str, Any]]:
    """Speed, then one rate at a time; only the first where there are no corpora."""
    yield from speed()
    if "TEXTVEIL_CORPORA" not in os.environ:
        return
    corpora = Path(os.environ["TEXTVEIL_CORPORA"])
    from textveil import Privatizer
    from textveil.evaluate.attack import Case
    from textveil.randomness.streams import SeededRandomness
    from textveil_bench import attack

    texts = sentences(corpora / "sst2" / "dev.shared.tsv.gz")
    decoys = tuple(sentences(corpora / "sst2" / "train.tsv.gz", DECOYS))
    for mechanism, options in RELEASES:
        privatizer = Privatizer(mechanism, table="minilm-s", seed=SEED, **options)
        case = Case.create(privatizer, texts)
        for name in ATTACKS:
            attacker = attack.load(name, {"decoys": decoys} if name == "linkage" else {})
            start = time.perf_counter()
            found = attack.attack(case, [attacker], rng=SeededRandomness(SEED).derive_part(2**100))
            yield from rows(
                found.to_json()["rows"],
                title(mechanism, options),
                "SST-2 dev",
                time.perf_counter() - start,
            )
    yield from attributes(corpora / "synthetic_reddit_attributes" / "synth.shared.jsonl.gz")


def attributes(path: Path) -> Iterator[dict[str, Any]]:
    """Attributes of the authors of synthetic posts."""
    from textveil import Privatizer
    from textveil.evaluate.attack import Case
    from textveil.randomness.streams import SeededRandomness
    from textveil_bench import attack

    with gzip.open(path, "rt", encoding="utf-8") as lines:
        posts = [json.loads(line) for line in lines]
    texts = [post["response"] for post in posts]
    for mechanism, options in RELEASES:
        privatizer = Privatizer(mechanism, table="minilm-s", seed=SEED, **options)
        case = Case.create(privatizer, texts)
        for label in LABELS:
            labels = tuple(_label(post["personality"][label]) for post in posts)
            start = time.perf_counter()
            attacker = attack.load("attribute", {"labels": labels})
            found = attack.attack(case, [attacker], rng=SeededRandomness(SEED).derive_part(2**100))
            seconds = time.perf_counter() - start
            yield from rows(
                found.to_json()["rows"], title(mechanism, options), f"posts, {label}", seconds
            )


def _label(value: object) -> str:
    """Ages by decade, others as they are."""
    return f"{value // 10 * 10}s" if isinstance(value, int) else str(value)


def rows(
    found: list[dict[str, Any]], release: str, data: str, seconds: float
) -> Iterator[dict[str, Any]]:
    """The rates over everything, as rows of the bench."""
    for row in found:
        if row["slice"] == "all":
            setting = ", ".join(str(value) for value in row["setting"].values())
            metric = f"{row['metric']} ({setting})" if setting else row["metric"]
            yield {
                "what": f"attacks, {data}, {release}, {row['attack']}: {metric}",
                "unit": "mean",
                "release": release,
                "data": data,
                "metric": f"{row['attack']}: {metric}",
                "seed": SEED,
                "seconds": round(seconds, 1),
                **{
                    name: row[name]
                    for name in ("value", "low", "high", "n", "baseline", "note", "headline")
                },
            }
