"""Figures of trade-offs: utility against attacks, against the budget, and against local DP.

In: a study. Out: groups of panels.
Not here: the effect of options (`options`), and how a panel is drawn (`textveil_bench.pictures`).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from textveil_bench.compare import Cell, Data, MetricKey, Series
from textveil_bench.estimates import Estimate
from textveil_bench.intervals import Interval
from textveil_bench.pictures import Curve, Map, Mark, Panel, Point
from textveil_bench.report.study import Study

NAMES = {
    "epsilon": "epsilon per word and unit of distance",
    "mechanism.L": "mechanism.L, words in the window",
    "mechanism.k": "mechanism.k, words",
}
"""Axis labels of options whose path alone does not tell the unit."""


@dataclass(frozen=True, kw_only=True)
class PanelGroup:
    """Panels with a common legend.

    Attributes:
        title: what they show.
        text: what else readers need to know.
        panels: at least one.
        paired: whether panels belong together in twos.
    """

    title: str
    text: str
    panels: tuple[Panel | Map, ...]
    paired: bool = False

    @property
    def columns(self) -> int:
        """Number of panels side by side if there is room for three."""
        return 2 if self.paired or len(self.panels) == 2 or len(self.panels) % 3 == 1 else 3


@dataclass(frozen=True, kw_only=True)
class Across:
    """A horizontal axis.

    Attributes:
        name: of the axis, with its unit.
        place: a cell's position on it; None if it has none.
        corner: whether lower is better.
    """

    name: str
    place: Callable[[Cell], Interval | None]
    corner: bool = False


def option(path: str) -> str:
    """An option's axis label."""
    return NAMES.get(path, path)


def axis(study: Study, metric: MetricKey) -> str:
    """A metric's axis label."""
    return f"{metric.title}, mean over {study.unit(metric)}s"


def against_attacks(study: Study) -> Iterator[PanelGroup]:
    """Utility against each attack: the best series of each entry, then all series of entries with several.

    If there is a single entry, all its series come first: they are what is compared.
    """
    alone = len(study.best) == 1
    if alone:
        yield from inside(study)
    for number, names in enumerate(study.overview, 1):
        part = _part(number, study.overview)
        yield from _together(
            f"Against each attack{part}",
            [
                group
                for risk in study.risks
                for group in _group(
                    study,
                    f"Against {risk.title}{part}",
                    "; ".join(study.notes(risk)),
                    _attack(study, risk),
                    names,
                )
            ],
        )
    if not alone:
        yield from inside(study)


def inside(study: Study) -> Iterator[PanelGroup]:
    """Utility against the first attack: all series of entries with several."""
    if study.risk is None:
        return
    for entry, parts in study.inside.items():
        for held, names in parts.items():
            title = f"{entry}: {held or 'all options'}, against {study.risk.title}"
            yield from _group(study, title, "", _attack(study, study.risk), names)


def against_budgets(study: Study) -> Iterator[PanelGroup]:
    """Utility against the budget, for mechanisms whose budget is the same option."""
    paths = [series.path for series in study.series if series.path is not None]
    across = {
        path: Across(name=f"budget: {option(path)}", place=_budget) for path in dict.fromkeys(paths)
    }
    for path, scale in across.items():
        for names in study.overview:
            same = {series.name for series in study.series if series.path == path}
            own = [name for name in names if name in same]
            yield from _group(study, f"Against {path}", "", scale, own, joined=2)


def over_budgets(study: Study, figures: Sequence[MetricKey]) -> Iterator[PanelGroup]:
    """Some metrics over budgets of any name, as in papers: a group for each, or one group for a single data set."""
    paths = dict.fromkeys(series.path for series in study.series if series.path is not None)
    across = Across(name=f"budget: {' or '.join(paths)}", place=_budget)
    text = (
        "Budgets are labels here: what a word spends of privacy differs by mechanism."
        if len(paths) > 1
        else ""
    )
    for own in [figures] if len(study.data) == 1 else [[figure] for figure in figures]:
        for number, names in enumerate(study.overview, 1):
            title = f"{', '.join(figure.title for figure in own)} over the budget{_part(number, study.overview)}"
            yield from _group(study, title, text, across, names, joined=2, figures=own)


def against_local_dp(study: Study) -> Iterator[PanelGroup]:
    """Utility against the epsilon of local DP, if a statement has one."""
    across = Across(name="local DP: epsilon per word, at most", place=_local)
    for number, names in enumerate(study.overview, 1):
        yield from _group(
            study, f"Against local DP{_part(number, study.overview)}", "", across, names
        )


def exactly(value: float) -> Interval:
    """A value without spread."""
    return Interval(value=value, low=value, high=value)


# ---- panels --------------------------------------------------------------------------------------------


def _group(
    study: Study,
    title: str,
    text: str,
    across: Across,
    names: Sequence[str],
    *,
    joined: int = 1,
    figures: Sequence[MetricKey] | None = None,
) -> Iterator[PanelGroup]:
    """A panel for each data set and figure with a curve of at least `joined` points."""
    panels = []
    for data in study.data:
        for figure in study.figures(data) if figures is None else figures:
            curves = tuple(_curves(study, data, figure, across, names, joined))
            if curves:
                panels.append(
                    Panel(
                        title=f"{study.title(data)}: {figure.title}",
                        x=across.name,
                        y=axis(study, figure),
                        curves=curves,
                        marks=tuple(_marks(study, data, figure, across, curves)),
                        corner=across.corner,
                        zero=across.corner,
                    )
                )
    if panels:
        yield PanelGroup(title=title, text=text, panels=tuple(panels))


def _together(title: str, groups: Sequence[PanelGroup]) -> Iterator[PanelGroup]:
    """Groups of the same curves; those with one panel each are placed side by side with one legend."""
    if any(len(group.panels) > 1 for group in groups) or len(groups) < 2:
        yield from groups
        return
    said: dict[str, list[str]] = {}
    for group in groups:
        said.setdefault(group.text, []).append(group.title.removeprefix("Against "))
    text = " ".join(f"{', '.join(titles)}: {note}." for note, titles in said.items() if note)
    panels = tuple(
        replace(panel, title=f"{panel.title}, {group.title[0].lower()}{group.title[1:]}")
        for group in groups
        for panel in group.panels
    )
    yield PanelGroup(title=title, text=text, panels=panels)


def _curves(
    study: Study, data: Data, figure: MetricKey, across: Across, names: Sequence[str], joined: int
) -> Iterator[Curve]:
    for name in names:
        series = study.named(name, data)
        points = [] if series is None else _points(series, figure, across)
        if len(points) >= joined:
            yield Curve(name=name, look=study.looks[name], points=tuple(points))


def _points(series: Series, figure: MetricKey, across: Across) -> list[Point]:
    places = [(across.place(cell), cell.estimates.get(figure)) for cell in series.cells]
    return [
        Point(x=place, y=value.interval)
        for place, value in places
        if place is not None and value is not None
    ]


def _marks(
    study: Study, data: Data, figure: MetricKey, across: Across, curves: Sequence[Curve]
) -> Iterator[Mark]:
    """The baselines: a line at their height, and a marker at their position if it is within the panel."""
    end = max(point.x.value for curve in curves for point in curve.points)
    for series in study.baselines(data):
        cell = series.cells[0]
        value = cell.estimates.get(figure)
        if value is not None:
            place = across.place(cell) if across.corner else None
            x = place.value if place is not None and place.value <= end else None
            yield Mark(name=series.name, y=value.value, dash=study.dashes[series.name], x=x)


def _attack(study: Study, risk: MetricKey) -> Across:
    def place(cell: Cell) -> Interval | None:
        found: Estimate | None = cell.estimates.get(risk)
        return None if found is None else found.interval

    return Across(name=f"attack: {axis(study, risk)}", place=place, corner=True)


def _budget(cell: Cell) -> Interval | None:
    number = isinstance(cell.budget, int | float) and math.isfinite(cell.budget)
    return exactly(float(cell.budget)) if number else None


def _local(cell: Cell) -> Interval | None:
    bound = (cell.row["epsilon"] or {}).get("ldp")
    return (
        exactly(float(bound)) if isinstance(bound, int | float) and math.isfinite(bound) else None
    )


def _part(number: int, parts: Sequence[object]) -> str:
    return f" ({number} of {len(parts)})" if len(parts) > 1 else ""
