"""The cost of mechanisms, as in Cape's table 7: setup, time per text, memory.

In: `conf/efficiency.yaml`. Out: a table.
Not here: how it is measured (`efficiency`).
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import yaml

from textveil_bench.efficiency import Load, MeasuredSetup, measure
from textveil_bench.reproduce.computed import ComputeOptions, Table

CONF = files("textveil_bench") / "conf" / "efficiency.yaml"

COLUMNS: Mapping[str, tuple[str, float]] = {
    "setup, s": ("setup", 1.0),
    "of which the table, s": ("setup: table", 1.0),
    "of which the mechanism, s": ("setup: mechanism", 1.0),
    "one text, s": ("one text", 1.0),
    "a text of two, s": ("a text of two", 1.0),
    "a private word of many texts, us": ("a word of many", 1.0),
    "memory, GB": ("memory", 1e-3),
    "of which packages, GB": ("memory: packages", 1e-3),
}
"""Headings, the figures below them, and the factors for units."""

QUICK = Load(texts=2, batch=4)


def efficiency(asked: ComputeOptions) -> Table:
    """All mechanisms, without and with a language model."""
    return _table(asked, list(_subjects()))


def paper(asked: ComputeOptions) -> Table:
    """The mechanisms of Cape's table 7."""
    return _table(asked, _given()["paper"])


def _given() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(CONF.read_text(encoding="utf-8"))
    return found


def _subjects() -> dict[str, MeasuredSetup]:
    given = _given()
    return {
        each["name"]: MeasuredSetup(name=each["name"], set={**given["common"], **each["set"]})
        for each in given["subjects"]
    }


def _table(asked: ComputeOptions, names: Sequence[str]) -> Table:
    quick = asked.scale == "quick"
    subjects = [
        each
        for name, each in _subjects().items()
        if name in names and (not quick or name in _given()["quick"])
    ]
    load = QUICK if quick else Load()
    figures: dict[str, dict[str, float]] = {}
    for row in measure(subjects, load, report=asked.report):
        figures.setdefault(row["entry"], {})[row["metric"]] = row["value"]
    return Table(
        title=f"Setup, time and memory; texts of {load.words} words, the table minilm-s",
        columns=("mechanism", *COLUMNS),
        rows=tuple(
            (name, *(own[metric] * factor for metric, factor in COLUMNS.values()))
            for name, own in figures.items()
        ),
        notes=(
            "Setup is all that comes before a first text is out, importing packages included. Memory is the most that "
            "was resident of a process, mapped files included.",
        ),
    )
