"""Pictures of the bench: curves with intervals about every point, and maps of two options.

In: panels as plain data. Out: a figure for each.
Not here: which panels there are (`bench.report`), and how they are written (`style`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from textveil.errors import ConfigError
from textveil_bench.intervals import Interval
from textveil_bench.pictures.style import INK, Look, style, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 8
"""Curves in a panel; more of them hide one another."""

SIZE = (4.4, 3.4)
"""Inches: type of nine points is read on a telephone, too."""

HEADING = 70
"""Letters of a heading on a line."""

MARGINS = {"left": 0.15, "right": 0.96, "bottom": 0.14, "top": 0.98}

DASHES = ("6 3", "1.5 2", "6 2 1.5 2", "3 3")
"""Of horizontal marks: lengths of lines and gaps."""

WIDE = 20
"""Ends of an axis this many times as large as its beginnings stand on a scale of orders of magnitude."""


class Point(NamedTuple):
    """A point with what is known of it in both directions."""

    x: Interval
    y: Interval


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Points of one name, from left to right.

    Attributes:
        name: as the legend has it.
        look: its colour and its sign.
        points: at least one.
        joined: whether a line leads from each to the next.
    """

    name: str
    look: Look
    points: tuple[Point, ...]
    joined: bool = True


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A height that is no curve: a baseline.

    Attributes:
        name: as the legend has it.
        y: the height.
        dash: one of `DASHES`.
        x: where on the line it was measured; None where that is not known.
    """

    name: str
    y: float
    dash: str
    x: float | None = None


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Axes with curves.

    Attributes:
        title: what it is of.
        x: the name of the horizontal axis, with its unit.
        y: that of the vertical one.
        curves: from one to `MOST`.
        marks: horizontal lines.
        corner: whether the upper left corner is where one wants to be.
        ticks: names of the places 0, 1, 2 ... of the horizontal axis; empty where it has numbers.
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
        if not 1 <= len(self.curves) <= MOST:
            raise ConfigError(
                f"a panel must have from one to {MOST} curves, got {len(self.curves)}"
            )


@dataclass(frozen=True, kw_only=True)
class Map:
    """A value for each pair of two options.

    Attributes:
        title: what it is of.
        x: the option of the columns.
        y: that of the rows.
        columns: its values.
        rows: values of the other.
        cells: a value for each row and column; None where there is none.
        low: what has the darkest colour.
        high: what has the lightest.
    """

    title: str
    x: str
    y: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]
    low: float
    high: float


def draw(shown: Panel | Map, *, heading: str = "") -> "Figure":
    """A figure of a panel or a map.

    Args:
        shown: what is drawn.
        heading: of one that stands by itself; without it, it is for a page that has its title and its legend.
    """
    from matplotlib.figure import Figure

    with style():
        fixed = (
            isinstance(shown, Panel) and not heading
        )  # panels side by side have their axes at the same places
        figure = Figure(figsize=SIZE, layout=None if fixed else "constrained")
        axis = figure.subplots(gridspec_kw=MARGINS if fixed else None)
        if isinstance(shown, Map):
            _map(axis, shown)
        else:
            _panel(axis, shown)
        for name, label, room in ((axis.set_xlabel, shown.x, 54), (axis.set_ylabel, shown.y, 42)):
            name(label, fontsize=min(9, 9 * room / max(1, len(label))))
        axis.tick_params(labelsize=9)
        if heading:
            figure.set_size_inches(SIZE[0] * 1.4, SIZE[1] * 1.5)
            figure.suptitle(
                fill(heading, HEADING), x=0.01, ha="left", fontsize=11, fontweight="bold"
            )
            if isinstance(shown, Panel):
                figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def _panel(axis: "Axes", panel: Panel) -> None:
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
            xerr=_reach([point.x for point in curve.points]),
            yerr=_reach([point.y for point in curve.points]),
            color=curve.look.colour, marker=curve.look.marker, markerfacecolor=face, markersize=5.5, elinewidth=0.7,
            linewidth=1.4, linestyle="-" if curve.joined else "none", label=curve.name,
        )  # fmt: skip
    if panel.ticks:
        axis.set_xticks(range(len(panel.ticks)), panel.ticks)
        axis.set_xlim(-0.5, len(panel.ticks) - 0.5)
    elif panel.zero:
        axis.set_xlim(left=0)
    elif _wide(panel.curves):
        _orders(axis)
    if panel.corner:
        axis.margins(y=0.12)
        _corner(axis)
    tidy(axis)


def _orders(axis: "Axes") -> None:
    """A scale of orders of magnitude, with plain numbers."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _corner(axis: "Axes") -> None:
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


def _reach(intervals: Sequence[Interval]) -> Any:
    """How far intervals reach below and above their values; None where they do not reach at all."""
    ends = [
        [max(0.0, each.value - each.low) if math.isfinite(each.low) else 0.0 for each in intervals],
        [
            max(0.0, each.high - each.value) if math.isfinite(each.high) else 0.0
            for each in intervals
        ],
    ]
    return ends if any(map(any, ends)) else None


def _wide(curves: Sequence[Curve]) -> bool:
    found = [point.x.value for curve in curves for point in curve.points]
    return min(found) > 0 and max(found) >= WIDE * min(found)


def _map(axis: "Axes", shown: Map) -> None:
    import numpy as np
    from matplotlib import colormaps

    cells = np.array([[np.nan if value is None else value for value in row] for row in shown.cells])
    span = shown.high - shown.low or 1.0
    axis.pcolormesh(cells, cmap="cividis", vmin=shown.low, vmax=shown.low + span, edgecolors="none")
    for (row, column), value in np.ndenumerate(cells):
        if np.isnan(value):
            axis.text(column + 0.5, row + 0.5, "–", ha="center", va="center", fontsize=9)
            continue
        red, green, blue, _ = colormaps["cividis"](float(np.clip((value - shown.low) / span, 0, 1)))
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.45
        # not INK: in a page in the dark that would be white, on light cells too
        axis.text(
            column + 0.5, row + 0.5, f"{value:.2f}".replace("0.", ".", 1) if 0 <= value < 1 else f"{value:.2f}",
            ha="center", va="center", fontsize=9, color="#ffffff" if dark else "#111111",
        )  # fmt: skip
    axis.set_xticks(np.arange(len(shown.columns)) + 0.5, shown.columns)
    axis.set_yticks(np.arange(len(shown.rows)) + 0.5, shown.rows)
    axis.tick_params(length=0)
    axis.spines[["top", "right", "left", "bottom"]].set_visible(False)
