"""The result of a reproduction as one plain document, which is shown and saved next to the rows.

In: `Reproduced`. Out: plain data, without per-text values.
Not here: how it is judged (`verdict`), and how it is shown on a terminal (`cli.reproduce`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from textveil_bench.compare import Cell, Series
from textveil_bench.intervals import Interval
from textveil_bench.reproduce.run import Reproduced
from textveil_bench.reproduce.targets import AtRisk, Target, WantedMetric
from textveil_bench.reproduce.verdict import SECONDS, Beside, Judged, figure

VERSION = 2
"""Version of the document format; raised when a field changes its meaning."""

OURS = "ours: "
"""How a claim begins that no paper makes."""

Plain = dict[str, Any]


def document(made: Reproduced) -> Plain:
    """Everything found for a target."""
    target = made.target
    return {
        "version": VERSION,
        "target": target.name,
        "title": target.title,
        "paper": target.paper,
        "shows": target.shows,
        "scale": made.scale,
        "cells": [each for series in made.series for each in _cells(target, series)],
        "published": [_beside(each) for each in made.beside],
        "claims": [_judged(each) for each in made.judged],
        "tables": [{"name": name, **asdict(table)} for name, table in made.tables.items()],
        "not_run": dict(made.not_run),
        "differs": list(target.differs),
        "contradicts": list(made.contradicts),
        "circumstances": dict(made.circumstances),
    }


def repeated(documents: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], str]:
    """The claims whose comparison another claim has made already, so that it counts once.

    The first claim counts that a paper makes; if none does, the first of ours.

    Args:
        documents: of targets, in order.

    Returns:
        the target of the claim that counts, by target and position of each other one.
    """
    claims = [
        (each["target"], i, claim) for each in documents for i, claim in enumerate(each["claims"])
    ]
    claims.sort(key=lambda each: each[2]["claim"].startswith(OURS))
    first: dict[str, str] = {}
    found: dict[tuple[str, int], str] = {}
    for target, i, claim in claims:
        if claim["comparison"] in first:
            found[target, i] = first[claim["comparison"]]
        else:
            first[claim["comparison"]] = target
    return found


def metrics(target: Target) -> list[WantedMetric]:
    """Every metric of a target's values and claims, once."""
    named = [*(each.metric for each in target.published), *(each.metric for each in target.expect)]
    named += [each.at.risk for each in target.expect if isinstance(each.at, AtRisk)]
    kept = {
        (each.metric, each.source, str(each.setting)): each
        for each in named
        if each.source != SECONDS
    }
    return list(kept.values())


def _cells(target: Target, series: Series) -> Iterator[Plain]:
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
            "figures": list(_figures(target, cell)),
            "not_run": dict(cell.not_run),
        }


def _figures(target: Target, cell: Cell) -> Iterator[Plain]:
    for metric in metrics(target):
        found = figure(metric, cell)
        if found is not None:
            yield {"metric": metric.title, **_interval(found.interval)}


def _interval(found: Interval) -> Plain:
    """An interval; an open end is None."""
    return {name: value if np.isfinite(value) else None for name, value in asdict(found).items()}


def _beside(found: Beside) -> Plain:
    published = found.published
    ours: Mapping[str, Any] = {"value": None, "low": None, "high": None}
    return {
        "series": found.name,
        "where": dict(published.where),
        "metric": published.metric.title,
        "published": published.value,
        "source": published.source,
        **(ours if found.ours is None else _interval(found.ours)),
        "says": found.says,
    }


def _judged(found: Judged) -> Plain:
    return {
        "claim": found.expectation.claim,
        "source": found.expectation.source,
        "data": found.data,
        "metric": found.expectation.metric.title,
        "answer": found.answer,
        "comparison": found.comparison,
        "says": found.says,
        "gaps": [_interval(gap) for gap in found.gaps],
        "places": [
            {"place": place.name, "one": place.one, "other": place.other, **_interval(place.gap)}
            for place in found.places
        ],
    }
