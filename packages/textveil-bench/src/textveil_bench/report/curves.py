"""Figures of trade-offs: utility against attacks, budget, and local DP.

In: a study. Out: groups of panels.
Not here: the effect of options (`options`), and how a panel is drawn (`textveil_bench.pictures`).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from textveil_bench.compare import Cell, DataSetKey, MetricKey, Series
from textveil_bench.estimates import Estimate
from textveil_bench.intervals import Interval
from textveil_bench.pictures import Curve, Map, Mark, Panel, Point
from textveil_bench.report.study import Study

AXIS_LABELS = {
    "epsilon": "epsilon per word and unit of distance",
    "mechanism.L": "mechanism.L, words in the window",
    "mechanism.k": "mechanism.k, words",
}
"""Axis labels of options whose path alone does not name the unit."""


@dataclass(frozen=True, kw_only=True)
class PanelGroup:
    """Panels with a common legend.

    Attributes:
        title: title of the group.
        text: note for readers.
        panels: at least one.
        paired: whether panels belong together in pairs.

    Attributes:
        title: title of the group.
        text: note for readers.
        panels: at least one.
        paired: whether panels belong together in twos.
    """

    title: str
    text: str
    panels: tuple[Panel | Map, ...]
    paired: bool = False

    @property
    def columns(self) -> int:
        """Number of panels side by side, at most three."""
        return 2 if self.paired or len(self.panels) == 2 or len(self.panels) % 3 == 1 else 3


@dataclass(frozen=True, kw_only=True)
class HorizontalAxis:
    """A horizontal axis.

    Attributes:
        name: label of the axis, with its unit.
        locate: returns a cell's position on it; None if it has none.
        corner: whether lower is better.
    """

    name: str
    locate: Callable[[Cell], Interval | None]
    corner: bool = False


def get_option_label(path: str) -> str:
    """Returns an option's axis label."""
    return AXIS_LABELS.get(path, path)


def get_axis_label(study: Study, metric: MetricKey) -> str:
    """Returns a metric's axis label."""
    return f"{metric.title}, mean over {study.find_unit(metric)}s"


def build_attack_groups(study: Study) -> Iterator[PanelGroup]:
    """Yields figures of utility against each attack.

    First the best series of each entry, then all series of entries with several. If there is a
    single entry, all its series come first: they are what is compared.
    """
    single_entry = len(study.best) == 1
    if single_entry:
        yield from build_entry_groups(study)
    for number, names in enumerate(study.overview, 1):
        part = _format_part(number, study.overview)
        yield from _join_groups(
            f"Against each attack{part}",
            [
                group
                for risk in study.risks
                for group in _build_groups(
                    study,
                    f"Against {risk.title}{part}",
                    "; ".join(study.list_notes(risk)),
                    _build_attack_axis(study, risk),
                    names,
                )
            ],
        )
    if not single_entry:
        yield from build_entry_groups(study)


def build_entry_groups(study: Study) -> Iterator[PanelGroup]:
    """Yields figures of utility against the first attack, per entry.

    Each shows all series of an entry that has several.
    """
    if study.risk is None:
        return
    for entry, parts in study.entry_groups.items():
        for setting, names in parts.items():
            title = f"{entry}: {setting or 'all options'}, against {study.risk.title}"
            yield from _build_groups(study, title, "", _build_attack_axis(study, study.risk), names)


def build_budget_groups(study: Study) -> Iterator[PanelGroup]:
    """Yields figures of utility against the budget, by the budget's option."""
    paths = [series.path for series in study.series if series.path is not None]
    axes = {
        path: HorizontalAxis(name=f"budget: {get_option_label(path)}", locate=_locate_budget)
        for path in dict.fromkeys(paths)
    }
    for path, scale in axes.items():
        for names in study.overview:
            path_names = {series.name for series in study.series if series.path == path}
            budget_names = [name for name in names if name in path_names]
            yield from _build_groups(
                study, f"Against {path}", "", scale, budget_names, min_points=2
            )


def build_paper_groups(study: Study, figures: Sequence[MetricKey]) -> Iterator[PanelGroup]:
    """Yields figures of metrics over budgets of any name, as in papers.

    A group for each metric, or one group for a single data set.
    """
    paths = dict.fromkeys(series.path for series in study.series if series.path is not None)
    x_axis = HorizontalAxis(name=f"budget: {' or '.join(paths)}", locate=_locate_budget)
    text = (
        "Budgets are labels here: what a word spends of privacy differs by mechanism."
        if len(paths) > 1
        else ""
    )
    for metrics in [figures] if len(study.data) == 1 else [[figure] for figure in figures]:
        for number, names in enumerate(study.overview, 1):
            title = (
                f"{', '.join(figure.title for figure in metrics)} over the "
                f"budget{_format_part(number, study.overview)}"
            )
            yield from _build_groups(
                study, title, text, x_axis, names, min_points=2, figures=metrics
            )


def build_local_dp_groups(study: Study) -> Iterator[PanelGroup]:
    """Yields figures of utility against the epsilon of local DP."""
    x_axis = HorizontalAxis(name="local DP: epsilon per word, at most", locate=_locate_local_dp)
    for number, names in enumerate(study.overview, 1):
        yield from _build_groups(
            study, f"Against local DP{_format_part(number, study.overview)}", "", x_axis, names
        )


def build_exact_interval(value: float) -> Interval:
    """Builds an interval without width."""
    return Interval(value=value, low=value, high=value)


# ---- panels --------------------------------------------------------------------------------------------


def _build_groups(
    study: Study,
    title: str,
    text: str,
    x_axis: HorizontalAxis,
    names: Sequence[str],
    *,
    min_points: int = 1,
    figures: Sequence[MetricKey] | None = None,
) -> Iterator[PanelGroup]:
    """Yields a group of panels, one per data set and figure.

    Curves have at least `min_points` points.
    """
    panels = []
    for data in study.data:
        for figure in study.list_utility_metrics(data) if figures is None else figures:
            curves = tuple(_build_curves(study, data, figure, x_axis, names, min_points))
            if curves:
                panels.append(
                    Panel(
                        title=f"{study.format_title(data)}: {figure.title}",
                        x=x_axis.name,
                        y=get_axis_label(study, figure),
                        curves=curves,
                        marks=tuple(_build_marks(study, data, figure, x_axis, curves)),
                        corner=x_axis.corner,
                        zero=x_axis.corner,
                    )
                )
    if panels:
        yield PanelGroup(title=title, text=text, panels=tuple(panels))


def _join_groups(title: str, groups: Sequence[PanelGroup]) -> Iterator[PanelGroup]:
    """Joins groups of one panel each into one with a common legend."""
    if any(len(group.panels) > 1 for group in groups) or len(groups) < 2:
        yield from groups
        return
    titles_by_note: dict[str, list[str]] = {}
    for group in groups:
        titles_by_note.setdefault(group.text, []).append(group.title.removeprefix("Against "))
    text = " ".join(
        f"{', '.join(titles)}: {note}." for note, titles in titles_by_note.items() if note
    )
    panels = tuple(
        replace(panel, title=f"{panel.title}, {group.title[0].lower()}{group.title[1:]}")
        for group in groups
        for panel in group.panels
    )
    yield PanelGroup(title=title, text=text, panels=panels)


def _build_curves(
    study: Study,
    data: DataSetKey,
    figure: MetricKey,
    x_axis: HorizontalAxis,
    names: Sequence[str],
    min_points: int,
) -> Iterator[Curve]:
    for name in names:
        series = study.find_series(name, data)
        points = [] if series is None else _build_points(series, figure, x_axis)
        if len(points) >= min_points:
            yield Curve(name=name, look=study.looks[name], points=tuple(points))


def _build_points(series: Series, figure: MetricKey, x_axis: HorizontalAxis) -> list[Point]:
    pairs = [(x_axis.locate(cell), cell.estimates.get(figure)) for cell in series.cells]
    return [
        Point(x=place, y=value.interval)
        for place, value in pairs
        if place is not None and value is not None
    ]


def _build_marks(
    study: Study,
    data: DataSetKey,
    figure: MetricKey,
    x_axis: HorizontalAxis,
    curves: Sequence[Curve],
) -> Iterator[Mark]:
    """Yields the baselines: lines, with a marker at positions inside the panel."""
    end = max(point.x.value for curve in curves for point in curve.points)
    for series in study.select_baselines(data):
        cell = series.cells[0]
        value = cell.estimates.get(figure)
        if value is not None:
            place = x_axis.locate(cell) if x_axis.corner else None
            x = place.value if place is not None and place.value <= end else None
            yield Mark(name=series.name, y=value.value, dash=study.dashes[series.name], x=x)


def _build_attack_axis(study: Study, risk: MetricKey) -> HorizontalAxis:
    def locate_risk(cell: Cell) -> Interval | None:
        estimate: Estimate | None = cell.estimates.get(risk)
        return None if estimate is None else estimate.interval

    return HorizontalAxis(
        name=f"attack: {get_axis_label(study, risk)}", locate=locate_risk, corner=True
    )


def _locate_budget(cell: Cell) -> Interval | None:
    number = isinstance(cell.budget, int | float) and math.isfinite(cell.budget)
    return build_exact_interval(float(cell.budget)) if number else None


def _locate_local_dp(cell: Cell) -> Interval | None:
    bound = (cell.row["epsilon"] or {}).get("ldp")
    return (
        build_exact_interval(float(bound))
        if isinstance(bound, int | float) and math.isfinite(bound)
        else None
    )


def _format_part(number: int, parts: Sequence[object]) -> str:
    return f" ({number} of {len(parts)})" if len(parts) > 1 else ""
