"""Pictures of the bench: curves with intervals, and maps of two options.

In: panels as plain data. Out: a figure for each, and its data as a table.
Not here: the choice of panels (`report`), and how they are written (`style`).
"""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from textveil.errors import ConfigError
from textveil_bench.intervals import Interval
from textveil_bench.pictures.style import INK, Look, tidy, use_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_CURVES = 8
"""Largest number of curves in a panel, so that all stay visible."""

FIGURE_SIZE = (4.4, 3.4)
"""Size in inches; text of nine points stays readable on a phone."""

HEADING_WIDTH = 70
"""Largest number of characters in a line of a heading."""

MARGINS = {"left": 0.15, "right": 0.96, "bottom": 0.14, "top": 0.98}

DASHES = ("6 3", "1.5 2", "6 2 1.5 2", "3 3")
"""Dash patterns of horizontal marks: lengths of lines and gaps."""

LOG_SCALE_RATIO = 20
"""Ratio of largest to smallest value from which an axis is logarithmic."""


class Point(NamedTuple):
    """A point with an interval in both directions."""

    x: Interval
    y: Interval


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Points of one name, from left to right.

    Attributes:
        name: name in the legend.
        look: its colour and marker.
        points: at least one.
        is_joined: whether a line joins neighbouring points.
    """

    name: str
    look: Look
    points: tuple[Point, ...]
    is_joined: bool = True


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A horizontal line in a panel, for a baseline.

    Attributes:
        name: name in the legend.
        y: the height.
        dash: one of `DASHES`.
        x: position of the measured point on the line; None if unknown.
    """

    name: str
    y: float
    dash: str
    x: float | None = None


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Axes with curves.

    Attributes:
        title: title of the panel.
        x: label of the horizontal axis, with its unit.
        y: label of the vertical axis.
        curves: from one to `MAX_CURVES`.
        marks: horizontal lines.
        corner: whether the upper left corner is best.
        ticks: labels of the positions 0, 1, 2 ... of the horizontal axis; empty for numbers.
        zero: whether the horizontal axis begins at 0.
    """

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...] = ()
    corner: bool = False
    ticks: tuple[str, ...] = ()
    zero: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.curves) <= MAX_CURVES:
            raise ConfigError(
                f"a panel must have from one to {MAX_CURVES} curves, got {len(self.curves)}"
            )


@dataclass(frozen=True, kw_only=True)
class Map:
    """A value for each pair of two options.

    Attributes:
        title: title of the map.
        x: the option of the columns.
        y: the option of the rows.
        columns: values of the columns' option.
        rows: values of the rows' option.
        cells: a value for each row and column; None for no value.
        low: value with the darkest colour.
        high: value with the lightest colour.
    """

    title: str
    x: str
    y: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]
    low: float
    high: float


def draw_figure(content: Panel | Map, *, heading: str = "") -> "Figure":
    """Draws a panel or a map as a figure.

    Args:
        content: the panel or map.
        heading: title of a figure that stands alone, with its legend; empty for a page that adds
            both itself.
    """
    from matplotlib.figure import Figure

    with use_style():
        has_fixed_margins = (
            isinstance(content, Panel) and not heading
        )  # so that the axes of panels side by side are aligned
        figure = Figure(figsize=FIGURE_SIZE, layout=None if has_fixed_margins else "constrained")
        axis = figure.subplots(gridspec_kw=MARGINS if has_fixed_margins else None)
        if isinstance(content, Map):
            _draw_map(axis, content)
        else:
            _draw_panel(axis, content)
        for set_label, label, room in (
            (axis.set_xlabel, content.x, 54),
            (axis.set_ylabel, content.y, 42),
        ):
            set_label(label, fontsize=min(9, 9 * room / max(1, len(label))))
        axis.tick_params(labelsize=9)
        if heading:
            figure.set_size_inches(FIGURE_SIZE[0] * 1.4, FIGURE_SIZE[1] * 1.5)
            figure.suptitle(
                fill(heading, HEADING_WIDTH), x=0.01, ha="left", fontsize=11, fontweight="bold"
            )
            if isinstance(content, Panel):
                figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def write_data(content: Panel | Map, path: Path) -> None:
    """Writes the numbers of a panel or map as CSV, with intervals where there are any.

    A panel has a line for each point and mark, a map one for each cell with a value.
    """
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows(
            _yield_cells(content) if isinstance(content, Map) else _yield_points(content)
        )


def _yield_cells(content: Map) -> Iterator[tuple[Any, ...]]:
    yield content.y, content.x, content.title
    for row, values in zip(content.rows, content.cells, strict=True):
        for column, value in zip(content.columns, values, strict=True):
            if value is not None:
                yield row, column, value


def _yield_points(panel: Panel) -> Iterator[tuple[Any, ...]]:
    x, y = (f"{label} ({axis})" if panel.x == panel.y else label
            for label, axis in ((panel.x, "x"), (panel.y, "y")))  # fmt: skip
    yield "curve", x, f"{x}, low", f"{x}, high", y, f"{y}, low", f"{y}, high"
    for curve in panel.curves:
        for point in curve.points:
            place = panel.ticks[int(point.x.value)] if panel.ticks else point.x.value
            ends = ("", "") if panel.ticks else (point.x.low, point.x.high)
            yield curve.name, place, *ends, point.y.value, point.y.low, point.y.high
    for mark in panel.marks:
        yield mark.name, "" if mark.x is None else mark.x, "", "", mark.y, "", ""


def _draw_panel(axis: "Axes", panel: Panel) -> None:
    for mark in panel.marks:
        pattern = tuple(float(length) for length in mark.dash.split())
        axis.axhline(mark.y, color=INK, linewidth=1, linestyle=(0, pattern), label=mark.name)
        if mark.x is not None:
            axis.plot(
                mark.x, mark.y, "x", color=INK, markersize=6, markeredgewidth=1.4, clip_on=False
            )
    for curve in panel.curves:
        face = "none" if curve.look.hollow else curve.look.colour
        axis.errorbar(
            [point.x.value for point in curve.points],
            [point.y.value for point in curve.points],
            xerr=_compute_error_bars([point.x for point in curve.points]),
            yerr=_compute_error_bars([point.y for point in curve.points]),
            color=curve.look.colour, marker=curve.look.marker, markerfacecolor=face, markersize=5.5, elinewidth=0.7,
            linewidth=1.4, linestyle="-" if curve.is_joined else "none", label=curve.name,
        )  # fmt: skip
    if panel.ticks:
        axis.set_xticks(range(len(panel.ticks)), panel.ticks)
        axis.set_xlim(-0.5, len(panel.ticks) - 0.5)
    elif panel.zero:
        axis.set_xlim(left=0)
    elif _needs_log_scale(panel.curves):
        _use_log_scale(axis)
    if panel.corner:
        axis.margins(y=0.12)
        _draw_corner(axis)
    tidy(axis)


def _use_log_scale(axis: "Axes") -> None:
    """Sets a logarithmic horizontal axis with plain numbers."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _draw_corner(axis: "Axes") -> None:
    from matplotlib.patches import Circle

    green = "#009E73"
    axis.add_patch(
        Circle(
            (0, 1), 0.3, transform=axis.transAxes, color=green, alpha=0.16, linewidth=0, zorder=0
        )
    )
    axis.text(
        0.02,
        0.985,
        "good corner",
        transform=axis.transAxes,
        fontsize=8,
        va="top",
        ha="left",
        style="italic",
    )


def _compute_error_bars(intervals: Sequence[Interval]) -> Any:
    """Computes the intervals' lengths below and above; None if all are 0."""
    ends = [
        [
            max(0.0, interval.value - interval.low) if math.isfinite(interval.low) else 0.0
            for interval in intervals
        ],
        [
            max(0.0, interval.high - interval.value) if math.isfinite(interval.high) else 0.0
            for interval in intervals
        ],
    ]
    return ends if any(map(any, ends)) else None


def _needs_log_scale(curves: Sequence[Curve]) -> bool:
    values = [point.x.value for curve in curves for point in curve.points]
    return min(values) > 0 and max(values) >= LOG_SCALE_RATIO * min(values)


def _draw_map(axis: "Axes", content: Map) -> None:
    import numpy as np
    from matplotlib import colormaps

    cells = np.array(
        [[np.nan if value is None else value for value in row] for row in content.cells]
    )
    span = content.high - content.low or 1.0
    axis.pcolormesh(
        cells, cmap="cividis", vmin=content.low, vmax=content.low + span, edgecolors="none"
    )
    for (row, column), value in np.ndenumerate(cells):
        if np.isnan(value):
            axis.text(column + 0.5, row + 0.5, "–", ha="center", va="center", fontsize=9)
            continue
        red, green, blue, _ = colormaps["cividis"](
            float(np.clip((value - content.low) / span, 0, 1))
        )
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.45
        # not INK: in dark mode it would be white, even on light cells
        axis.text(
            column + 0.5, row + 0.5, f"{value:.2f}".replace("0.", ".", 1) if 0 <= value < 1 else f"{value:.2f}",
            ha="center", va="center", fontsize=9, color="#ffffff" if dark else "#111111",
        )  # fmt: skip
    axis.set_xticks(np.arange(len(content.columns)) + 0.5, content.columns)
    axis.set_yticks(np.arange(len(content.rows)) + 0.5, content.rows)
    axis.tick_params(length=0)
    axis.spines[["top", "right", "left", "bottom"]].set_visible(False)
