"""Figures of options: the effect of each, of two at once, and odd against even windows.

In: a study. Out: groups of panels.
Not here: mechanisms against each other (`curves`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from textveil_bench.compare import Cell, Data, MetricKey, Series
from textveil_bench.estimates import Estimate, difference, mean
from textveil_bench.pictures import COLOURS, MARKERS, MOST, Curve, Look, Map, Panel, Point
from textveil_bench.report.curves import PanelGroup, axis, exactly, option
from textveil_bench.report.markup import budget
from textveil_bench.report.study import LEVELS, Study

WINDOW = "mechanism.L"

ODD, EVEN = Look(colour=COLOURS[0], marker="o"), Look(colour=COLOURS[1], marker="s", hollow=True)


def single(study: Study) -> Iterator[PanelGroup]:
    """For each option that varies within a family: figure and risk over it, a curve for each budget."""
    for family, base in _families(study).items():
        for path in _varying(study, family):
            panels: list[Panel] = []
            for data, metric in _shown(study):
                line = _line(study, family, base, data, path)
                if len(line) > 1:
                    panels += _panels(study, data, metric, path, line)
            if panels:
                others = _others(study, family, base, [path])
                yield PanelGroup(
                    title=f"{family}: {path}", text=others, panels=tuple(panels), paired=True
                )


def pairs(study: Study) -> Iterator[PanelGroup]:
    """For each family with two varying numeric options: maps of figure and risk, one for each budget."""
    for family, base in _families(study).items():
        paths = [path for path in _varying(study, family) if _numeric(study, family, path)]
        if len(paths) < 2:
            continue
        pair = sorted(paths, key=lambda path: -len(_values(study, family, path)))[:2]
        for data, metric in _shown(study):
            panels = _maps(study, family, base, data, metric, pair)
            if panels:
                title = f"{family}: {pair[0]} and {pair[1]}, {metric.title} on {study.title(data)}"
                scale = f"One scale for all maps, from {panels[0].low:.2f} (dark) to {panels[0].high:.2f} (light). "
                text = scale + _others(study, family, base, pair)
                yield PanelGroup(title=title, text=text.strip(), panels=tuple(panels))


def parity(study: Study) -> Iterator[PanelGroup]:
    """Windows of odd and even length where an attack succeeds equally often."""
    if study.risk is None:
        return
    for family, base in _families(study).items():
        if WINDOW not in _varying(study, family):
            continue
        panels, said = [], []
        for data in study.data:
            line = _line(study, family, base, data, WINDOW)
            for figure, level in (
                (figure, level) for figure in study.figures(data)[:1] for level in LEVELS
            ):
                found = {
                    length: value
                    for length, series in line.items()
                    if isinstance(length, int)
                    and (value := series.at_risk(study.risk, figure, level)) is not None
                }
                sides = [{at: v for at, v in found.items() if at % 2 == odd} for odd in (1, 0)]
                if not all(sides):
                    continue
                panels.append(_sides(study, data, figure, level, sides))
                apart = difference(*(mean(list(side.values())) for side in sides)).interval
                said.append(
                    f"{study.title(data)} at {level:g}: {apart.value:+.3f} ({apart.low:+.3f} to {apart.high:+.3f})"
                )
        if panels:
            text = f"Mean of odd lengths minus mean of even ones, paired: {'; '.join(said)}. "
            title = (
                f"{family}: odd and even windows where {study.risk.title} succeeds equally often"
            )
            yield PanelGroup(
                title=title,
                text=text + _others(study, family, base, [WINDOW]),
                panels=tuple(panels),
            )


# ---- families, and what varies in them -----------------------------------------------------------------


def _families(study: Study) -> dict[str, Series]:
    """The families with several series, each with the series that fixes the other options."""
    found: dict[str, Series] = {}
    for data in study.data:
        for each in study.of(data):
            if each.name in study.best.values() and each.family not in found:
                found[each.family] = each
    return {family: base for family, base in found.items() if _varying(study, family)}


def _varying(study: Study, family: str) -> list[str]:
    """Options that differ between series of a family, in configuration order."""
    own = [each for data in study.data for each in study.of(data) if each.family == family]
    paths = dict.fromkeys(path for each in own for path in each.settings)
    return [path for path in paths if len({repr(each.settings.get(path)) for each in own}) > 1]


def _values(study: Study, family: str, path: str) -> list[Any]:
    own = [each for data in study.data for each in study.of(data) if each.family == family]
    found = {repr(each.settings.get(path)): each.settings.get(path) for each in own}
    return _sorted(found.values())


def _sorted(values: Any) -> list[Any]:
    return sorted(
        values,
        key=lambda value: (not _is_number(value), value if _is_number(value) else str(value)),
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numeric(study: Study, family: str, path: str) -> bool:
    return all(map(_is_number, _values(study, family, path)))


def _others(study: Study, family: str, base: Series, paths: Sequence[str]) -> str:
    held = [
        f"{path} {base.settings.get(path)}" for path in _varying(study, family) if path not in paths
    ]
    return f"At {', '.join(held)}." if held else ""


def _line(study: Study, family: str, base: Series, data: Data, *paths: str) -> dict[Any, Series]:
    """The series of a family that differ from its base only in these options, by their values."""

    def rest(series: Series) -> Mapping[str, Any]:
        return {path: value for path, value in series.settings.items() if path not in paths}

    own = [each for each in study.of(data) if each.family == family and rest(each) == rest(base)]
    found = {
        tuple(each.settings.get(path) for path in paths): each
        for each in own
        if each.path == base.path
    }
    if len(paths) > 1:
        return dict(found)
    return {value: found[(value,)] for value in _sorted(value for (value,) in found)}


def _shown(study: Study) -> Iterator[tuple[Data, MetricKey]]:
    for data in study.data:
        for metric in (*study.figures(data)[:1], *([] if study.risk is None else [study.risk])):
            yield data, metric


# ---- panels --------------------------------------------------------------------------------------------


def _budget(cell: Cell) -> str:
    """What distinguishes cells of one series, and is the same in neighbouring series."""
    if cell.level is not None:
        return f"risk {cell.level:g}"
    return budget(cell.row["budget"]) or "no budget"


def _cells(line: Mapping[Any, Series], metric: MetricKey) -> dict[str, dict[Any, Estimate]]:
    """By budget, the metric for each value of the option."""
    found: dict[str, dict[Any, Estimate]] = {}
    for value, series in line.items():
        for cell, (estimate,) in series.curve(metric):
            found.setdefault(_budget(cell), {})[value] = estimate
    return found


def _panels(
    study: Study, data: Data, metric: MetricKey, path: str, line: Mapping[Any, Series]
) -> Iterator[Panel]:
    numbers = all(map(_is_number, line))
    places = {value: float(value) if numbers else float(i) for i, value in enumerate(line)}
    curves = [
        (
            name,
            tuple(
                Point(x=exactly(places[value]), y=each.interval) for value, each in by_value.items()
            ),
        )
        for name, by_value in _cells(line, metric).items()
    ]
    for start in range(0, len(curves), MOST):
        yield Panel(
            title=f"{study.title(data)}: {metric.title}",
            x=option(path),
            y=axis(study, metric),
            curves=tuple(
                Curve(name=name, look=Look(colour=colour, marker=marker), points=points)
                for (name, points), colour, marker in zip(
                    curves[start : start + MOST], COLOURS, MARKERS, strict=False
                )
            ),
            ticks=() if numbers else tuple(str(value) for value in line),
        )


def _maps(
    study: Study, family: str, base: Series, data: Data, metric: MetricKey, pair: Sequence[str]
) -> list[Map]:
    by_budget = _cells(_line(study, family, base, data, *pair), metric)
    rows, columns = (_values(study, family, path) for path in pair)
    values = [each.value for cells in by_budget.values() for each in cells.values()]
    return [
        Map(
            title=name,
            x=option(pair[1]),
            y=option(pair[0]),
            columns=tuple(map(str, columns)),
            rows=tuple(map(str, rows)),
            cells=tuple(
                tuple(
                    None if (found := cells.get((row, column))) is None else found.value
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


def _sides(
    study: Study,
    data: Data,
    figure: MetricKey,
    level: float,
    sides: Sequence[Mapping[int, Estimate]],
) -> Panel:
    return Panel(
        title=f"{study.title(data)}: attack success {level:g}",
        x=option(WINDOW),
        y=axis(study, figure),
        curves=tuple(
            Curve(
                name=name,
                look=look,
                points=tuple(
                    Point(x=exactly(float(at)), y=value.interval) for at, value in side.items()
                ),
                joined=False,
            )
            for name, look, side in zip(("odd", "even"), (ODD, EVEN), sides, strict=True)
        ),
    )
