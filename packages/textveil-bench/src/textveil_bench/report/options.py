"""Figures of options: single options, pairs, and odd against even windows.

In: a study. Out: groups of panels.
Not here: mechanisms against each other (`curves`).
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from textveil_bench.compare import Cell, DataSetKey, MetricKey, Series
from textveil_bench.estimates import Estimate, difference, mean
from textveil_bench.pictures import COLOURS, MARKERS, MAX_CURVES, Curve, Look, Map, Panel, Point
from textveil_bench.report.curves import (
    PanelGroup,
    build_exact_interval,
    get_axis_label,
    get_option_label,
)
from textveil_bench.report.html import format_budget
from textveil_bench.report.study import RISK_LEVELS, Study

WINDOW = "mechanism.L"

ODD, EVEN = Look(colour=COLOURS[0], marker="o"), Look(colour=COLOURS[1], marker="s", hollow=True)


def build_option_groups(study: Study) -> Iterator[PanelGroup]:
    """Yields figures of utility and risk over a family's varying options.

    Each panel has a curve for each budget.
    """
    for family, base in _find_families(study).items():
        for path in _list_varying_options(study, family):
            panels: list[Panel] = []
            for data, metric in _list_metrics(study):
                line = _select_series(study, family, base, data, path)
                if len(line) > 1:
                    panels += _build_panels(study, data, metric, path, line)
            if panels:
                fixed_options = _format_fixed_options(study, family, base, [path])
                yield PanelGroup(
                    title=f"{family}: {path}", text=fixed_options, panels=tuple(panels), paired=True
                )


def build_pair_groups(study: Study) -> Iterator[PanelGroup]:
    """Yields maps of utility and risk over a family's two numeric options.

    Each budget has a map; families with fewer than two varying numeric options are left out.
    """
    for family, base in _find_families(study).items():
        paths = [
            path
            for path in _list_varying_options(study, family)
            if _is_numeric(study, family, path)
        ]
        if len(paths) < 2:
            continue
        pair = sorted(paths, key=lambda path: -len(_list_values(study, family, path)))[:2]
        for data, metric in _list_metrics(study):
            panels = _build_maps(study, family, base, data, metric, pair)
            if panels:
                title = (
                    f"{family}: {pair[0]} and {pair[1]}, {metric.title} on "
                    f"{study.format_title(data)}"
                )
                scale = (
                    f"One scale for all maps, from {panels[0].low:.2f} (dark) to "
                    f"{panels[0].high:.2f} (light). "
                )
                text = scale + _format_fixed_options(study, family, base, pair)
                yield PanelGroup(title=title, text=text.strip(), panels=tuple(panels))


def build_parity_groups(study: Study) -> Iterator[PanelGroup]:
    """Yields figures of odd and even window lengths at equal attack success."""
    if study.risk is None:
        return
    for family, base in _find_families(study).items():
        if WINDOW not in _list_varying_options(study, family):
            continue
        panels, notes = [], []
        for data in study.data:
            line = _select_series(study, family, base, data, WINDOW)
            for figure, level in (
                (figure, level)
                for figure in study.list_utility_metrics(data)[:1]
                for level in RISK_LEVELS
            ):
                by_length = {
                    length: value
                    for length, series in line.items()
                    if isinstance(length, int)
                    and (value := series.estimate_at_risk(study.risk, figure, level)) is not None
                }
                sides = [
                    {size: v for size, v in by_length.items() if size % 2 == odd} for odd in (1, 0)
                ]
                if not all(sides):
                    continue
                panels.append(_build_parity_panel(study, data, figure, level, sides))
                gap = difference(*(mean(list(side.values())) for side in sides)).interval
                notes.append(
                    f"{study.format_title(data)} at {level:g}: {gap.value:+.3f} ({gap.low:+.3f} "
                    f"to {gap.high:+.3f})"
                )
        if panels:
            text = f"Mean of odd lengths minus mean of even ones, paired: {'; '.join(notes)}. "
            title = (
                f"{family}: odd and even windows where {study.risk.title} succeeds equally often"
            )
            yield PanelGroup(
                title=title,
                text=text + _format_fixed_options(study, family, base, [WINDOW]),
                panels=tuple(panels),
            )


# ---- families and their varying options -----------------------------------------------------------------


def _find_families(study: Study) -> dict[str, Series]:
    """Finds families with several series, each with its base series.

    The base series fixes the options that a figure does not vary.
    """
    families: dict[str, Series] = {}
    for data in study.data:
        for series in study.select_series(data):
            if series.name in study.best.values() and series.family not in families:
                families[series.family] = series
    return {
        family: base for family, base in families.items() if _list_varying_options(study, family)
    }


def _list_varying_options(study: Study, family: str) -> list[str]:
    """Lists options that differ within a family, in configuration order."""
    family_series = [
        series
        for data in study.data
        for series in study.select_series(data)
        if series.family == family
    ]
    paths = dict.fromkeys(path for series in family_series for path in series.settings)
    return [
        path
        for path in paths
        if len({repr(series.settings.get(path)) for series in family_series}) > 1
    ]


def _list_values(study: Study, family: str, path: str) -> list[Any]:
    family_series = [
        series
        for data in study.data
        for series in study.select_series(data)
        if series.family == family
    ]
    by_repr = {repr(value): value for value in (_get_value(item, path) for item in family_series)}
    return _sort_values(by_repr.values())


def _get_value(series: Series, path: str) -> Any:
    """Returns an option's value as a key: a list, which has no hash, as it is written."""
    value = series.settings.get(path)
    return value if isinstance(value, Hashable) else str(value)


def _sort_values(values: Any) -> list[Any]:
    return sorted(
        values,
        key=lambda value: (not _is_number(value), value if _is_number(value) else str(value)),
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_numeric(study: Study, family: str, path: str) -> bool:
    return all(map(_is_number, _list_values(study, family, path)))


def _format_fixed_options(study: Study, family: str, base: Series, paths: Sequence[str]) -> str:
    settings = [
        f"{path} {base.settings.get(path)}"
        for path in _list_varying_options(study, family)
        if path not in paths
    ]
    return f"At {', '.join(settings)}." if settings else ""


def _select_series(
    study: Study, family: str, base: Series, data: DataSetKey, *paths: str
) -> dict[Any, Series]:
    """Selects a family's series that differ from its base in given options.

    Returns them by the values of these options.
    """

    def get_other_settings(series: Series) -> Mapping[str, Any]:
        return {path: value for path, value in series.settings.items() if path not in paths}

    family_series = [
        series
        for series in study.select_series(data)
        if series.family == family and get_other_settings(series) == get_other_settings(base)
    ]
    by_values = {
        tuple(_get_value(series, path) for path in paths): series
        for series in family_series
        if series.path == base.path
    }
    if len(paths) > 1:
        return dict(by_values)
    return {value: by_values[(value,)] for value in _sort_values(value for (value,) in by_values)}


def _list_metrics(study: Study) -> Iterator[tuple[DataSetKey, MetricKey]]:
    for data in study.data:
        for metric in (
            *study.list_utility_metrics(data)[:1],
            *([] if study.risk is None else [study.risk]),
        ):
            yield data, metric


# ---- panels --------------------------------------------------------------------------------------------


def _get_budget_label(cell: Cell) -> str:
    """Returns the label that matches cells of neighbouring series by budget."""
    if cell.level is not None:
        return f"risk {cell.level:g}"
    return format_budget(cell.row["budget"]) or "no budget"


def _group_estimates(
    line: Mapping[Any, Series], metric: MetricKey
) -> dict[str, dict[Any, Estimate]]:
    """Groups a metric's estimates by budget, then by the option's value."""
    by_budget: dict[str, dict[Any, Estimate]] = {}
    for value, series in line.items():
        for cell, (estimate,) in series.list_points(metric):
            by_budget.setdefault(_get_budget_label(cell), {})[value] = estimate
    return by_budget


def _build_panels(
    study: Study, data: DataSetKey, metric: MetricKey, path: str, line: Mapping[Any, Series]
) -> Iterator[Panel]:
    numbers = all(map(_is_number, line))
    places = {value: float(value) if numbers else float(i) for i, value in enumerate(line)}
    curves = [
        (
            name,
            tuple(
                Point(x=build_exact_interval(places[value]), y=estimate.interval)
                for value, estimate in by_value.items()
            ),
        )
        for name, by_value in _group_estimates(line, metric).items()
    ]
    for start in range(0, len(curves), MAX_CURVES):
        yield Panel(
            title=f"{study.format_title(data)}: {metric.title}",
            x=get_option_label(path),
            y=get_axis_label(study, metric),
            curves=tuple(
                Curve(name=name, look=Look(colour=colour, marker=marker), points=points)
                for (name, points), colour, marker in zip(
                    curves[start : start + MAX_CURVES], COLOURS, MARKERS, strict=False
                )
            ),
            ticks=() if numbers else tuple(str(value) for value in line),
        )


def _build_maps(
    study: Study,
    family: str,
    base: Series,
    data: DataSetKey,
    metric: MetricKey,
    pair: Sequence[str],
) -> list[Map]:
    by_budget = _group_estimates(_select_series(study, family, base, data, *pair), metric)
    rows, columns = (_list_values(study, family, path) for path in pair)
    values = [estimate.value for cells in by_budget.values() for estimate in cells.values()]
    return [
        Map(
            title=name,
            x=get_option_label(pair[1]),
            y=get_option_label(pair[0]),
            columns=tuple(map(str, columns)),
            rows=tuple(map(str, rows)),
            cells=tuple(
                tuple(
                    None if (cell := cells.get((row, column))) is None else cell.value
                    for column in columns
                )
                for row in rows
            ),
            low=min(values),
            high=max(values),
        )
        for name, cells in by_budget.items()
        if len(cells) > 1
    ]


def _build_parity_panel(
    study: Study,
    data: DataSetKey,
    figure: MetricKey,
    level: float,
    sides: Sequence[Mapping[int, Estimate]],
) -> Panel:
    return Panel(
        title=f"{study.format_title(data)}: attack success {level:g}",
        x=get_option_label(WINDOW),
        y=get_axis_label(study, figure),
        curves=tuple(
            Curve(
                name=name,
                look=look,
                points=tuple(
                    Point(x=build_exact_interval(float(length)), y=value.interval)
                    for length, value in side.items()
                ),
                is_joined=False,
            )
            for name, look, side in zip(("odd", "even"), (ODD, EVEN), sides, strict=True)
        ),
    )
