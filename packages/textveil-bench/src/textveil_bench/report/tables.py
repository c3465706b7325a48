"""The tables of a report: equal risk, all cells, slices by length, statements, what was not run, time.

In: a study. Out: HTML.
Not here: figures (`curves`, `options`), and how a table is written (`markup`).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from textveil_bench.compare import Cell, Data, MetricKey, Series
from textveil_bench.estimates import Estimate, difference, ratio
from textveil_bench.report.markup import Html, budget, element, joined, spelled, table, unfolding
from textveil_bench.report.study import LEVELS, MARGIN, REFERENCE, Study

WHOSE = {"paper": "as published", "ours": "ours", "baseline": "baseline"}


def equal_risk(study: Study) -> Html:
    """What each series keeps where an attack succeeds equally often, compared with the best one from a paper."""
    if study.risk is None:
        return element("p", "No attack was run, so nothing can be compared at equal risk.")
    parts: list[str] = []
    for data in study.data:
        for figure in study.figures(data):
            parts.append(element("h3", f"{study.title(data)}: {figure.title}"))
            parts.append(element("p", _ends(study, data, figure)))
            parts.append(_equal(study, data, figure, study.risk))
    return joined(parts)


def _ends(study: Study, data: Data, figure: MetricKey) -> str:
    """What the originals and guessing reach."""
    clean, chance = study.clean(data, figure), study.chance(data, figure)
    said = (
        "The originals were not judged."
        if clean is None
        else f"The originals reach {clean.value:.3f}."
    )
    if chance is not None:
        said += f" Guessing without the texts reaches {chance:.3f}."
        if clean is not None and clean.value - chance < MARGIN:
            said += f" They are less than {MARGIN} apart, so this task cannot compare mechanisms."
    return said


def _equal(study: Study, data: Data, figure: MetricKey, risk: MetricKey) -> Html:
    best = study.best_paper(data, figure, REFERENCE)
    chance = study.chance(data, figure)
    columns = ["series", "whose", *(f"{figure.metric} at {level:g}" for level in LEVELS)]
    if best is not None:
        columns += [
            f"less {best[0].name}, at {REFERENCE:g}",
            f"above chance, times that of {best[0].name}",
        ]
    lines: dict[str, tuple[float, list[str]]] = {}
    for series in study.of(data):
        values = [series.at_risk(risk, figure, level) for level in LEVELS]
        if any(value is not None for value in values):
            at = values[LEVELS.index(REFERENCE)]
            cells = [series.name, WHOSE.get(series.whose, series.whose), *map(_interval, values)]
            own = best is not None and best[0] is series
            lines[series.name] = (
                -1.0 if at is None else at.value,
                [*cells, *_beside(None if own else at, best, chance)],
            )
    elsewhere = [_reach(series, risk) for series in study.of(data) if series.name not in lines]
    others = (
        element("p", f"Nowhere at these risks: {'; '.join(elsewhere)}.", class_="soft")
        if elsewhere
        else Html("")
    )
    if not lines:
        return others
    order = sorted(lines, key=lambda name: -lines[name][0])
    first = [name for name in order if name in study.best.values()]
    parts = [
        table(
            columns,
            [lines[name][1] for name in first],
            f"{figure.title}, the best series of each mechanism",
        )
    ]
    if len(first) < len(order):
        whole = table(columns, [lines[name][1] for name in order], "")
        parts.append(unfolding(f"All {len(order)} series", whole))
    return joined([*parts, others])


def _reach(series: Series, risk: MetricKey) -> str:
    """A series and the range of an attack's success on it."""
    found = [cell.estimates[risk].value for cell in series.cells if risk in cell.estimates]
    if not found:
        return f"{series.name} (no attack)"
    low, high = min(found), max(found)
    return (
        f"{series.name} ({low:.3f})" if low == high else f"{series.name} ({low:.3f} to {high:.3f})"
    )


def _beside(
    at: Estimate | None, best: tuple[Series, Estimate] | None, chance: float | None
) -> list[str]:
    """A figure compared with the best one from a paper: the difference, and the ratio of both above chance."""
    if best is None:
        return []
    if at is None:
        return [_interval(None)] * 2
    apart = difference(at, best[1])
    times = None if chance is None else ratio(at.minus(chance), best[1].minus(chance))
    return [_interval(apart), _interval(None if times is None or np.isnan(times.value) else times)]


def all_cells(study: Study) -> Html:
    """All cells with all headlines."""
    parts: list[str] = []
    for data in study.data:
        metrics = list(dict.fromkeys((*study.figures(data), *study.risks, *study.headlines)))
        rows = [
            [
                series.name,
                _budget(cell),
                str(len(cell.seeds)),
                *(_interval(cell.estimates.get(m)) for m in metrics),
            ]
            for series, cell in _all(study, data)
        ]
        columns = ["series", "budget", "seeds", *(metric.title for metric in metrics)]
        parts += [
            element("h3", study.title(data)),
            table(columns, rows, f"All cells of {study.title(data)}"),
        ]
    return joined(parts)


def measures(study: Study) -> Html:
    """All cells with metrics that are not headlines."""
    metrics = [metric for metric in study.metrics if metric not in study.headlines]
    if not metrics:
        return element("p", "Nothing else was measured.")
    parts: list[str] = []
    for data in study.data:
        rows = [
            [
                series.name,
                _budget(cell),
                *(_interval(cell.estimates.get(metric)) for metric in metrics),
            ]
            for series, cell in _all(study, data)
        ]
        columns = ["series", "budget", *(metric.title for metric in metrics)]
        parts += [
            element("h3", study.title(data)),
            table(columns, rows, f"Measures on {study.title(data)}"),
        ]
    return joined(parts)


def by_length(study: Study) -> Html:
    """Headlines in each quarter of the texts, at each series' budget nearest to the reference risk."""
    parts: list[str] = []
    for data in study.data:
        rows: list[list[str]] = []
        quarters: dict[str, None] = {}
        chosen = [
            (series, study.nearest(series)) for series in (*study.baselines(data), *study.of(data))
        ]
        for _, cell in chosen:
            quarters |= dict.fromkeys(name for parted in cell.slices.values() for name, _ in parted)
        for series, cell in chosen:
            for metric in study.headlines:
                found = dict(cell.slices.get(metric, ()))
                if found:
                    cells = [_interval(found.get(quarter)) for quarter in quarters]
                    rows.append([series.name, _budget(cell), metric.title, *cells])
        columns = ["series", "budget", "metric", *quarters]
        parts += [
            element("h3", study.title(data)),
            table(columns, rows, f"By length on {study.title(data)}"),
        ]
    return joined(parts)


def statements(study: Study) -> Html:
    """The guarantee of each cell."""
    rows = []
    for data in study.data:
        for series, cell in _all(study, data):
            bound = cell.row["epsilon"] or {}
            told = [str(bound.get(name) or "–") for name in ("kind", "metric")]
            told += [_bound(bound.get(name)) for name in ("per_word", "ldp")]
            rows.append([series.name, study.title(data), _budget(cell), *told])
    return table(
        ["series", "data", "budget", "kind", "metric", "epsilon per word", "local DP"],
        rows,
        "Statements",
    )


def not_run(study: Study) -> Html:
    """Judges and attacks that do not apply to some releases, and why."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for series in study.series:
        for cell in series.cells:
            for name, reason in cell.not_run.items():
                found.setdefault((name, reason), {})[series.entry] = None
    if not found:
        return element("p", "Everything requested was run.")
    rows = [[name, reason, ", ".join(entries)] for (name, reason), entries in found.items()]
    return table(["what", "not run", "on releases of"], rows, "Not run")


def seconds(study: Study) -> Html:
    """Time per cell, by step: the mean over budgets and seeds."""
    steps = tuple(
        dict.fromkeys(
            step for series in study.series for cell in series.cells for step in cell.seconds
        )
    )
    rows = []
    for data in study.data:
        for series in (*study.baselines(data), *study.of(data)):
            texts = len(series.cells[0].row["lengths"])
            means = [
                sum(cell.seconds.get(step, 0.0) for cell in series.cells) / len(series.cells)
                for step in steps
            ]
            rows.append(
                [
                    series.name,
                    study.title(data),
                    f"{texts:,}",
                    *(f"{value:,.1f}" for value in means),
                    f"{1000 * sum(means) / texts:,.0f}",
                ]
            )
    columns = ["series", "data", "texts", *(f"{step}, seconds" for step in steps), "all, ms a text"]
    return table(columns, rows, "Time")


# ---- cells ---------------------------------------------------------------------------------------------


def _all(study: Study, data: Data) -> Iterator[tuple[Series, Cell]]:
    own: Sequence[Series] = (*study.baselines(data), *study.of(data))
    return ((series, cell) for series in own for cell in series.cells)


def _interval(found: Estimate | None) -> Html:
    return spelled(None if found is None else found.interval)


def _budget(cell: Cell) -> str:
    chosen = "" if cell.level is None else f", for risk {cell.level:g}"
    return budget(cell.row["budget"]) + chosen or "–"


def _bound(value: Any) -> str:
    return "–" if value is None else value if isinstance(value, str) else f"{value:,.2f}"
