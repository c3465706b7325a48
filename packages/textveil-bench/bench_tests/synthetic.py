"""Rows as a sweep writes them, made up: curves of the usual shape, with noise that texts share.

In: how many texts, seeds and budgets. Out: rows. They are no results of anything.
Not here: what rows are (`textveil_bench.rows`).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np

RNG = np.random.default_rng


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One mechanism: at the budget `middle` half is kept; `edge` moves its curve to the good side."""

    name: str
    whose: str = "paper"
    path: str | None = "epsilon"
    budgets: tuple[Any, ...] = (4.0, 6.0, 8.0, 10.0, 14.0)
    middle: float = 8.0
    edge: float = 0.0
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    ldp: float | None = None


ENTRIES = (
    Entry(name="noise", path="mechanism.eta", budgets=(40, 60, 80, 120, 160), middle=80, ldp=2.0),
    Entry(name="santext+", edge=-0.02),
    Entry(name="custext+", edge=-0.04),
    Entry(name="cape", edge=0.03, ldp=1.5),
    Entry(name="wide staircase", whose="ours", edge=0.12, grid={"mechanism.k": (20, 200)}, ldp=1.0),
)

GRID = Entry(
    name="d-chi-stencil",
    path="mechanism.eta",
    budgets=(80, 120, 160, 240),
    middle=140,
    grid={"mechanism.L": (1, 2, 3, 4, 5, 8, 9), "mechanism.sigma": (0.5, 0.75, 1.0, 1.25)},
    ldp=2.0,
)

MANY = tuple(Entry(name=f"ours {i}", whose="ours", edge=0.01 * i) for i in range(9))


def rows(
    *,
    entries: tuple[Entry, ...] = ENTRIES,
    data: tuple[str, ...] = ("sst2", "squad"),
    texts: int = 60,
    seeds: tuple[int, ...] = (1, 2, 3),
    scores: int = 0,
) -> Iterator[dict[str, Any]]:
    """The rows of a sweep.

    Args:
        entries: mechanisms; the baselines are always there.
        data: names of data sets.
        texts: of each.
        seeds: of each cell.
        scores: more measures in each row, for rows of the usual size.
    """
    for name in data:
        rng = RNG(len(name))
        lengths = rng.integers(4, 40, texts)
        nature = rng.random(texts)  # how hard each text is, the same for all mechanisms
        shared: dict[str, Any] = {
            "name": name,
            "lengths": lengths,
            "nature": nature,
            "scores": scores,
        }
        for baseline, kept, risk in (
            ("identity", 1.0, 1.0),
            ("mask", 0.0, 0.004),
            ("uniform", 0.01, 0.01),
        ):
            for seed in seeds:
                entry = Entry(name=baseline, whose="baseline", path=None)
                yield _row(entry, {}, None, seed, kept, risk, **shared)
        for entry in entries:
            for point in (
                dict(zip(entry.grid, values, strict=True))
                for values in product(*entry.grid.values())
            ):
                for budget, seed in product(entry.budgets, seeds):
                    risk = _logistic(
                        3.2 * math.log(budget / entry.middle)
                        - 1.6
                        - 0.05 * point.get("mechanism.L", 0)
                    )
                    odd = 0.02 if point.get("mechanism.L", 0) % 2 else 0.0
                    kept = _logistic(2.4 * math.log(budget / entry.middle)) + entry.edge + odd
                    yield _row(
                        entry, point, budget, seed, float(np.clip(kept, 0, 1)), risk, **shared
                    )


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _row(
    entry: Entry,
    point: Mapping[str, Any],
    budget: Any,
    seed: int,
    kept: float,
    risk: float,
    *,
    name: str,
    lengths: Any,
    nature: Any,
    scores: int,
) -> dict[str, Any]:
    told = ", ".join(
        [entry.name, *(f"{path.rpartition('.')[2]} {value}" for path, value in point.items())]
    )
    rng = RNG(crc32(f"{name} {told} {budget} {seed}".encode()))
    texts = len(lengths)
    words = np.maximum(1, lengths // 2)
    chance, clean = (0.5, 0.85) if name == "sst2" else (0.05, 0.7)
    right = 0.7 * nature + 0.3 * rng.random(texts) < 0.15 + 0.7 * (
        chance + (clean - chance) * kept
    )  # about so often
    seen = texts * 2 // 3  # attacks look at the first texts only
    guessed = rng.binomial(words[:seen], risk) / words[:seen]
    task = ("head", "accuracy") if name == "sst2" else ("reader", "F1")
    context = np.clip(0.1 + 0.6 * risk + 0.1 * rng.normal(size=seen), 0, 1)
    found = [
        _score(*task, right.astype(float), headline=True, baseline=chance),
        _score("bayes", "exposed", guessed, {"prior": "unigram"}, words[:seen], headline=True),
        _score(
            "neighbour",
            "Pr@5",
            np.clip(guessed * 1.3, 0, 1),
            {},
            words[:seen],
            headline=True,
            baseline=0.01,
        ),
        _score("masked", "Rouge-L", context, headline=True),
        _score("meaning", "meaning", np.clip(kept + 0.1 * rng.normal(size=texts), -1, 1)),
        _score("retention", "retention", guessed, {}, words[:seen]),
        *(_score("mapping", f"measure {i}", rng.random(texts), {}, words) for i in range(scores)),
    ]
    inner: dict[str, Any] = {
        "mechanism": {"name": entry.name, **_inner(point)},
        "epsilon": None,
        "seed": seed,
    }
    if entry.path == "epsilon":
        inner["epsilon"] = budget
    elif entry.path is not None:
        inner["mechanism"][entry.path.removeprefix("mechanism.")] = budget
    return {
        "version": 1,
        "key": f"{name}/{told}/{budget}/{seed}",
        "sweep": "made-up",
        "entry": entry.name,
        "series": told,
        "family": entry.name,
        "whose": entry.whose,
        "point": dict(point),
        "seed": seed,
        "level": None,
        "data": {
            "name": name,
            "split": "test",
            "kind": "classification",
            "source": f"{name}/test.tsv",
            "digest": f"{name}-{texts}",
            "examples": texts,
            "remarks": ["answers are silver"] if name == "squad" else [],
        },
        "mechanism": entry.name,
        "table": "minilm-s",
        "configuration": None if entry.name == "identity" else inner,
        "budget": None if entry.path is None else {"path": entry.path, "value": budget},
        "epsilon": {
            "kind": "metric",
            "metric": "chord",
            "per_word": budget,
            "ldp": entry.ldp * budget,
        }
        if entry.ldp and budget
        else {"kind": "none", "metric": None, "per_word": "infinite", "ldp": "infinite"},
        "lengths": lengths.tolist(),
        "protected": words.tolist(),
        "scores": found,
        "not_run": {"window": "the mechanism mixes no neighbours"},
        "seconds": {"draw": 1.5, "attack": 20.0, "task": 2.5},
        "circumstances": {
            "time": "2026-11-20T10:00:00+00:00",
            "commit": "0123456789abcdef",
            "python": "3.11.7",
            "versions": {"textveil": "0.1.0", "numpy": "2.4.6"},
            "machine": "x86_64",
            "cores": 2,
            "threads": 1,
            "device": "cpu",
        },
    }


def _score(
    source: str,
    metric: str,
    values: Any,
    setting: Mapping[str, Any] | None = None,
    weights: Any = None,
    *,
    headline: bool = False,
    baseline: float | None = None,
) -> dict[str, Any]:
    value = float(np.average(values, weights=weights))
    return {
        "source": source,
        "metric": metric,
        "setting": dict(setting or {}),
        "unit": "text" if weights is None else "word",
        "value": value,
        "low": max(0.0, value - 0.04),
        "high": min(1.0, value + 0.04),
        "n": len(values) if weights is None else int(sum(weights)),
        "baseline": baseline,
        "note": "a lower bound" if metric in ("exposed", "Rouge-L") else "",
        "headline": headline,
        "geometric": False,
        "values": [round(float(each), 4) for each in values],
        "weights": None if weights is None else [int(each) for each in weights],
    }


def _inner(point: Mapping[str, Any]) -> dict[str, Any]:
    return {path.removeprefix("mechanism."): value for path, value in point.items()}
