"""Result of a reproduction as a plain document, for display and storage.

In: `ReproductionResult`. Out: plain data, without per-text values.
Not here: how it is judged (`verdict`), and how it is printed on a terminal (`cli.reproduce`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from textveil_bench.compare import Cell, Series
from textveil_bench.intervals import Interval
from textveil_bench.reproduce.differs import format_differences
from textveil_bench.reproduce.run import ReproductionResult
from textveil_bench.reproduce.targets import AtRisk, Target, WantedMetric
from textveil_bench.reproduce.verdict import TIME_SOURCE, ComparedValue, Verdict, find_key

VERSION = 2
"""Version of the document format; raised when a field changes its meaning."""

OURS_PREFIX = "ours: "
"""Prefix of claims that are ours, not a paper's."""

Plain = dict[str, Any]


def build_document(result: ReproductionResult) -> Plain:
    """Builds the document of a target's result."""
    target = result.target
    return {
        "version": VERSION,
        "target": target.name,
        "title": target.title,
        "paper": target.paper,
        "shows": target.shows,
        "scale": result.scale,
        "cells": [item for series in result.series for item in _yield_cells(target, series)],
        "published": [_dump_compared_value(item) for item in result.compared_values],
        "claims": [_dump_verdict(item) for item in result.verdicts],
        "tables": [{"name": name, **asdict(table)} for name, table in result.tables.items()],
        "not_run": dict(result.not_run),
        "differs": list(format_differences(result)),
        "contradicts": list(result.contradictions),
        "circumstances": dict(result.circumstances),
    }


def find_repeated_claims(documents: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], str]:
    """Finds claims that repeat another claim's comparison, so that each counts once.

    A paper's first claim counts; if there is none, our first one.

    Args:
        documents: of targets, in order.

    Returns:
        by target and position of each repeated claim, the target of the claim that counts.
    """
    claims = [
        (item["target"], i, claim) for item in documents for i, claim in enumerate(item["claims"])
    ]
    claims.sort(key=lambda item: item[2]["claim"].startswith(OURS_PREFIX))
    first: dict[str, str] = {}
    repeats: dict[tuple[str, int], str] = {}
    for target, i, claim in claims:
        if claim["comparison"] in first:
            repeats[target, i] = first[claim["comparison"]]
        else:
            first[claim["comparison"]] = target
    return repeats


def list_metrics(target: Target) -> list[WantedMetric]:
    """Lists each metric of a target's values and claims, once."""
    candidates = [
        *(item.metric for item in target.published),
        *(item.metric for item in target.expect),
    ]
    candidates += [item.at.risk for item in target.expect if isinstance(item.at, AtRisk)]
    distinct = {
        (item.metric, item.source, str(item.setting)): item
        for item in candidates
        if item.source != TIME_SOURCE
    }
    return list(distinct.values())


def _yield_cells(target: Target, series: Series) -> Iterator[Plain]:
    for cell in series.cells:
        yield {
            "data": series.data.name,
            "examples": cell.row["data"]["examples"],
            "entry": series.entry,
            "series": series.name,
            "whose": series.whose,
            "budget": cell.budget,
            "level": cell.level,
            "seeds": list(cell.seeds),
            "epsilon": cell.row["epsilon"],
            "seconds": dict(cell.seconds),
            "figures": list(_yield_figures(target, cell)),
            "not_run": dict(cell.not_run),
        }


def _yield_figures(target: Target, cell: Cell) -> Iterator[Plain]:
    """Yields the figures of values and claims, and whatever else the judges found."""
    keys = {
        metric.title: key
        for metric in list_metrics(target)
        if (key := find_key(metric, cell)) is not None
    }
    for key in cell.scores:
        if key.role == "task" and key not in keys.values():
            title = WantedMetric(metric=key.metric, setting=dict(key.setting)).title
            keys[key.title if title in keys else title] = key
    for title, key in keys.items():
        yield {"metric": title, **_dump_interval(cell.estimates[key].interval)}


def _dump_interval(interval: Interval) -> Plain:
    """Converts an interval to plain data; an open end is None."""
    return {name: value if np.isfinite(value) else None for name, value in asdict(interval).items()}


def _dump_compared_value(compared: ComparedValue) -> Plain:
    published = compared.published
    ours: Mapping[str, Any] = {"value": None, "low": None, "high": None}
    return {
        "series": compared.name,
        "where": dict(published.where),
        "metric": published.metric.title,
        "published": published.value,
        "source": published.source,
        **(ours if compared.ours is None else _dump_interval(compared.ours)),
        "says": compared.summary,
    }


def _dump_verdict(verdict: Verdict) -> Plain:
    return {
        "claim": verdict.expectation.claim,
        "source": verdict.expectation.source,
        "data": verdict.data,
        "metric": verdict.expectation.metric.title,
        "answer": verdict.answer,
        "comparison": verdict.comparison,
        "says": verdict.summary,
        "gaps": [_dump_interval(gap) for gap in verdict.gaps],
        "places": [
            {
                "place": place.name,
                "one": place.first,
                "other": place.second,
                **_dump_interval(place.gap),
            }
            for place in verdict.places
        ],
    }
