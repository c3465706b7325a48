"""How far two readers agree on what is private: those of a tenth of the labelled corpora and of 80 written texts.

In: the labels of `training.labels`, both readers'. Out: one rate at a time, with its interval over texts.
Not here: what is made of the labels (`prompts`).
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from textveil_bench.intervals import CONFIDENCE_LEVEL, Interval, mean

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from training.labels import HERE, Label, hard_texts

Pair = tuple[list[Label], list[Label]]
"""A text's labels by either reader."""

SOURCES = ("prompts", "pupa", "hard")


def pairs(source: str) -> list[Pair]:
    """The texts that both have read."""
    written = source == "hard"
    first = (
        {each.id: each.labels for each in hard_texts()}
        if written
        else _read(HERE / f"{source}.jsonl")
    )
    return [(first[name], labels) for name, labels in second(source).items() if name in first]


def second(source: str) -> dict[str, list[Label]]:
    """The second reader's labels, by text."""
    return _read(HERE / f"{source}-second.jsonl")


def _read(path: Path) -> dict[str, list[Label]]:
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return {str(row["id"]): [Label(*label) for label in row["labels"]] for row in rows}


def f1(read: Sequence[Pair], *, exact: bool) -> tuple[Interval, int]:
    """Of the spans of either, how many the other has, with the same type: the F1 of one by the other; and their number.

    Args:
        read: the texts.
        exact: with the same ends; else where they overlap.
    """
    found, texts = [], []
    for number, (one, other) in enumerate(read):
        for own, others in ((one, other), (other, one)):
            for label in own:
                same = [each for each in others if each.type == label.type]
                if exact:
                    hit = any(each[:2] == label[:2] for each in same)
                else:
                    hit = any(each.start < label.end and label.start < each.end for each in same)
                found.append(float(hit))
                texts.append(number)
    return mean(np.array(found), np.array(texts)), len(found)


def kappa(read: Sequence[Pair]) -> tuple[Interval, int]:
    """Cohen's kappa of private or not, over the spans that both have with the same ends; and their number.

    The interval is the jackknife's, over texts.

    Source: Cohen, Educational and Psychological Measurement 20 (1960).
    """
    from scipy.stats import t

    tables = np.array([_table(*pair) for pair in read], float)
    tables = tables[tables.sum(axis=(1, 2)) > 0]
    whole, texts = tables.sum(axis=0), len(tables)
    left = np.array([_kappa(whole - each) for each in tables])
    error = float(np.sqrt((texts - 1) / texts * np.square(left - left.mean()).sum()))
    reach = float(t.ppf((1 + CONFIDENCE_LEVEL) / 2, texts - 1)) * error
    value = _kappa(whole)
    return Interval(value=value, low=max(-1.0, value - reach), high=min(1.0, value + reach)), int(
        whole.sum()
    )


def _table(one: Sequence[Label], other: Sequence[Label]) -> list[list[int]]:
    """How many spans of a text are private for both, for one, for neither."""
    table = [[0, 0], [0, 0]]
    theirs = {label[:2]: label for label in other}
    for label in one:
        if (same := theirs.get(label[:2])) is not None:
            table[label.standing == "private"][same.standing == "private"] += 1
    return table


def _kappa(table: "np.ndarray[Any, np.dtype[np.float64]]") -> float:
    total = table.sum()
    agreed = np.trace(table) / total
    chance = (table.sum(axis=0) * table.sum(axis=1)).sum() / total**2
    return float((agreed - chance) / (1 - chance)) if chance < 1 else 1.0


def measurements() -> Iterator[dict[str, Any]]:
    """Every rate of each source, and of all."""
    by_source = {source: pairs(source) for source in SOURCES}
    for source, read in {
        **by_source,
        "all": [pair for each in by_source.values() for pair in each],
    }.items():
        for metric, (interval, count) in (
            ("span F1, same ends", f1(read, exact=True)),
            ("span F1, overlapping", f1(read, exact=False)),
            ("kappa of private", kappa(read)),
        ):
            yield {
                "what": f"prompts, readers, {source}: {metric}",
                "unit": "share",
                "release": "readers",
                "source": source,
                "metric": metric,
                "value": interval.value,
                "low": interval.low,
                "high": interval.high,
                "half_width": (interval.high - interval.low) / 2,
                "n": count,
                "texts": len(read),
            }
