"""Cost of mechanisms, as in Cape's table 7: setup, time, memory.

In: `conf/efficiency.yaml`. Out: a table.
Not here: how it is measured (`efficiency`).
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import yaml

from textveil_bench.efficiency import MeasuredSetup, Workload, measure
from textveil_bench.reproduce.computed import ComputeOptions, Table

EFFICIENCY_FILE = files("textveil_bench") / "conf" / "efficiency.yaml"

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
"""Headings, with the metric of each and the factor for its unit."""

QUICK_LOAD = Workload(texts=2, batch=4)


def efficiency(options: ComputeOptions) -> Table:
    """Tabulates the cost of all mechanisms, without and with a language model."""
    return _build_table(options, list(_load_subjects()))


def paper(options: ComputeOptions) -> Table:
    """Tabulates the cost of the mechanisms of Cape's table 7."""
    return _build_table(options, _load_settings()["paper"])


def _load_settings() -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load(EFFICIENCY_FILE.read_text(encoding="utf-8"))
    return settings


def _load_subjects() -> dict[str, MeasuredSetup]:
    settings = _load_settings()
    return {
        subject["name"]: MeasuredSetup(
            name=subject["name"], set={**settings["common"], **subject["set"]}
        )
        for subject in settings["subjects"]
    }


def _build_table(options: ComputeOptions, names: Sequence[str]) -> Table:
    quick = options.scale == "quick"
    subjects = [
        subject
        for name, subject in _load_subjects().items()
        if name in names and (not quick or name in _load_settings()["quick"])
    ]
    load = QUICK_LOAD if quick else Workload()
    figures: dict[str, dict[str, float]] = {}
    for row in measure(subjects, load, report=options.report):
        figures.setdefault(row["entry"], {})[row["metric"]] = row["value"]
    return Table(
        title=f"Setup, time and memory; texts of {load.words} words, the table minilm-s",
        columns=("mechanism", *COLUMNS),
        rows=tuple(
            (name, *(values[metric] * factor for metric, factor in COLUMNS.values()))
            for name, values in figures.items()
        ),
        notes=(
            "Setup is everything before the first release, including imports of packages. Memory "
            "is the most that was resident of a process, mapped files included.",
        ),
    )
