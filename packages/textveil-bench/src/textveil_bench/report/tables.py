"""Tables of a report: equal risk, cells, text lengths, statements, refusals, times.

In: a study. Out: HTML.
Not here: figures (`curves`, `options`), and how a table is written (`html`).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from textveil_bench.compare import Cell, DataSetKey, MetricKey, Series
from textveil_bench.estimates import Estimate, difference, ratio
from textveil_bench.report.html import (
    Html,
    build_element,
    build_table,
    fold_content,
    format_budget,
    format_interval,
    join_parts,
)
from textveil_bench.report.study import MIN_CHANCE_MARGIN, REFERENCE_RISK, RISK_LEVELS, Study

ORIGIN_LABELS = {"paper": "as published", "ours": "ours", "baseline": "baseline"}


def render_equal_risk(study: Study) -> Html:
    """Renders each series' utility at equal attack success, against the best paper's."""
    if study.risk is None:
        return build_element("p", "No attack was run, so nothing can be compared at equal risk.")
    parts: list[str] = []
    for data in study.data:
        for figure in study.list_utility_metrics(data):
            parts.append(build_element("h3", f"{study.format_title(data)}: {figure.title}"))
            parts.append(build_element("p", _format_ends(study, data, figure)))
            parts.append(_render_comparison(study, data, figure, study.risk))
    return join_parts(parts)


def _format_ends(study: Study, data: DataSetKey, figure: MetricKey) -> str:
    """Describes the scores of the originals and of guessing."""
    clean, chance = study.find_original_score(data, figure), study.compute_chance(data, figure)
    text = (
        "The originals were not judged."
        if clean is None
        else f"The originals reach {clean.value:.3f}."
    )
    if chance is not None:
        text += f" Guessing without the texts reaches {chance:.3f}."
        if clean is not None and clean.value - chance < MIN_CHANCE_MARGIN:
            text += (
                f" They are less than {MIN_CHANCE_MARGIN} apart, so this task cannot compare "
                "mechanisms."
            )
    return text


def _render_comparison(study: Study, data: DataSetKey, figure: MetricKey, risk: MetricKey) -> Html:
    best = study.find_best_published(data, figure, REFERENCE_RISK)
    chance = study.compute_chance(data, figure)
    columns = ["series", "origin", *(f"{figure.metric} at {level:g}" for level in RISK_LEVELS)]
    if best is not None:
        columns += [
            f"minus {best[0].name}, at {REFERENCE_RISK:g}",
            f"above chance, ratio to {best[0].name}",
        ]
    lines: dict[str, tuple[float, list[str]]] = {}
    for series in study.select_series(data):
        values = [series.estimate_at_risk(risk, figure, level) for level in RISK_LEVELS]
        if any(value is not None for value in values):
            reference_value = values[RISK_LEVELS.index(REFERENCE_RISK)]
            cells = [
                series.name,
                ORIGIN_LABELS.get(series.whose, series.whose),
                *map(_format_interval, values),
            ]
            is_best = best is not None and best[0] is series
            lines[series.name] = (
                -1.0 if reference_value is None else reference_value.value,
                [*cells, *_compare_estimates(None if is_best else reference_value, best, chance)],
            )
    elsewhere = [
        _format_reach(series, risk)
        for series in study.select_series(data)
        if series.name not in lines
    ]
    unreached_note = (
        build_element("p", f"Never at these risks: {'; '.join(elsewhere)}.", class_="soft")
        if elsewhere
        else Html("")
    )
    if not lines:
        return unreached_note
    order = sorted(lines, key=lambda name: -lines[name][0])
    first = [name for name in order if name in study.best.values()]
    parts = [
        build_table(
            columns,
            [lines[name][1] for name in first],
            f"{figure.title}, the best series of each mechanism",
        )
    ]
    if len(first) < len(order):
        whole = build_table(columns, [lines[name][1] for name in order], "")
        parts.append(fold_content(f"All {len(order)} series", whole))
    return join_parts([*parts, unreached_note])


def _format_reach(series: Series, risk: MetricKey) -> str:
    """Formats a series and the range of an attack's success on it."""
    values = [cell.estimates[risk].value for cell in series.cells if risk in cell.estimates]
    if not values:
        return f"{series.name} (no attack)"
    low, high = min(values), max(values)
    return (
        f"{series.name} ({low:.3f})" if low == high else f"{series.name} ({low:.3f} to {high:.3f})"
    )


def _compare_estimates(
    estimate: Estimate | None, best: tuple[Series, Estimate] | None, chance: float | None
) -> list[str]:
    """Formats difference and above-chance ratio to the best series from a paper."""
    if best is None:
        return []
    if estimate is None:
        return [_format_interval(None)] * 2
    gap = difference(estimate, best[1])
    factor = None if chance is None else ratio(estimate.subtract(chance), best[1].subtract(chance))
    return [
        _format_interval(gap),
        _format_interval(None if factor is None or np.isnan(factor.value) else factor),
    ]


def render_cells(study: Study) -> Html:
    """Renders all cells with all headlines."""
    parts: list[str] = []
    for data in study.data:
        metrics = list(
            dict.fromkeys((*study.list_utility_metrics(data), *study.risks, *study.headlines))
        )
        rows = [
            [
                series.name,
                _format_budget(cell),
                str(len(cell.seeds)),
                *(_format_interval(cell.estimates.get(m)) for m in metrics),
            ]
            for series, cell in _yield_cells(study, data)
        ]
        columns = ["series", "budget", "seeds", *(metric.title for metric in metrics)]
        parts += [
            build_element("h3", study.format_title(data)),
            build_table(columns, rows, f"All cells of {study.format_title(data)}"),
        ]
    return join_parts(parts)


def render_measures(study: Study) -> Html:
    """Renders all cells with metrics that are not headlines."""
    metrics = [metric for metric in study.metrics if metric not in study.headlines]
    if not metrics:
        return build_element("p", "Nothing else was measured.")
    parts: list[str] = []
    for data in study.data:
        rows = [
            [
                series.name,
                _format_budget(cell),
                *(_format_interval(cell.estimates.get(metric)) for metric in metrics),
            ]
            for series, cell in _yield_cells(study, data)
        ]
        columns = ["series", "budget", *(metric.title for metric in metrics)]
        parts += [
            build_element("h3", study.format_title(data)),
            build_table(columns, rows, f"Measures on {study.format_title(data)}"),
        ]
    return join_parts(parts)


def render_by_length(study: Study) -> Html:
    """Renders headlines by text length quarter, near the reference risk."""
    parts: list[str] = []
    for data in study.data:
        rows: list[list[str]] = []
        quarters: dict[str, None] = {}
        pairs = [
            (series, study.find_nearest_cell(series))
            for series in (*study.select_baselines(data), *study.select_series(data))
        ]
        for _, cell in pairs:
            quarters |= dict.fromkeys(name for slices in cell.slices.values() for name, _ in slices)
        for series, cell in pairs:
            for metric in study.headlines:
                estimates = dict(cell.slices.get(metric, ()))
                if estimates:
                    cells = [_format_interval(estimates.get(quarter)) for quarter in quarters]
                    rows.append([series.name, _format_budget(cell), metric.title, *cells])
        columns = ["series", "budget", "metric", *quarters]
        parts += [
            build_element("h3", study.format_title(data)),
            build_table(columns, rows, f"By length on {study.format_title(data)}"),
        ]
    return join_parts(parts)


def render_statements(study: Study) -> Html:
    """Renders the guarantee of each cell."""
    rows = []
    for data in study.data:
        for series, cell in _yield_cells(study, data):
            bound = cell.row["epsilon"] or {}
            fields = [str(bound.get(name) or "–") for name in ("kind", "metric")]
            fields += [_format_bound(bound.get(name)) for name in ("per_word", "ldp")]
            rows.append([series.name, study.format_title(data), _format_budget(cell), *fields])
    return build_table(
        ["series", "data", "budget", "kind", "metric", "epsilon per word", "local DP"],
        rows,
        "Statements",
    )


def render_not_run(study: Study) -> Html:
    """Renders the judges and attacks that were not run, with reasons."""
    entries_by_reason: dict[tuple[str, str], dict[str, None]] = {}
    for series in study.series:
        for cell in series.cells:
            for name, reason in cell.not_run.items():
                entries_by_reason.setdefault((name, reason), {})[series.entry] = None
    if not entries_by_reason:
        return build_element("p", "Everything requested was run.")
    rows = [
        [name, reason, ", ".join(entries)] for (name, reason), entries in entries_by_reason.items()
    ]
    return build_table(["judge or attack", "reason", "mechanisms"], rows, "Not run")


def render_times(study: Study) -> Html:
    """Renders the mean time per cell over budgets and seeds, by step."""
    steps = tuple(
        dict.fromkeys(
            step for series in study.series for cell in series.cells for step in cell.seconds
        )
    )
    rows = []
    for data in study.data:
        for series in (*study.select_baselines(data), *study.select_series(data)):
            texts = len(series.cells[0].row["lengths"])
            means = [
                sum(cell.seconds.get(step, 0.0) for cell in series.cells) / len(series.cells)
                for step in steps
            ]
            rows.append(
                [
                    series.name,
                    study.format_title(data),
                    f"{texts:,}",
                    *(f"{value:,.1f}" for value in means),
                    f"{1000 * sum(means) / texts:,.0f}",
                ]
            )
    columns = [
        "series",
        "data",
        "texts",
        *(f"{step}, seconds" for step in steps),
        "total, ms per text",
    ]
    return build_table(columns, rows, "Time")


# ---- cells ---------------------------------------------------------------------------------------------


def _yield_cells(study: Study, data: DataSetKey) -> Iterator[tuple[Series, Cell]]:
    selection: Sequence[Series] = (*study.select_baselines(data), *study.select_series(data))
    return ((series, cell) for series in selection for cell in series.cells)


def _format_interval(estimate: Estimate | None) -> Html:
    return format_interval(None if estimate is None else estimate.interval)


def _format_budget(cell: Cell) -> str:
    suffix = "" if cell.level is None else f", for risk {cell.level:g}"
    return format_budget(cell.row["budget"]) + suffix or "–"


def _format_bound(value: Any) -> str:
    return "–" if value is None else value if isinstance(value, str) else f"{value:,.2f}"
