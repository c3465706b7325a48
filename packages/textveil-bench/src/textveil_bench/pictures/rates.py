"""Pictures of rates, overall and by property, and of value distributions.

In: rows or counts of plain data, as reports give them. Out: a figure.
Not here: the rates themselves (`attack`, `measure`), and how figures are written (`style`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textveil.errors import ConfigError
from textveil_bench.pictures.style import COLOURS, MARKERS, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FigureRow = Mapping[str, Any]

SLICES = {"group": "budget group", "frequency": "word frequency", "length": "text length"}

MAX_SLICED_LINES = 4
"""Largest number of visible lines in a panel by property."""

MAX_BARS = 60
"""Largest number of bars in a histogram; neighbouring cells are joined."""


def draw_rates(
    rows: Sequence[FigureRow], *, title: str, subtitle: str = "", scale: str = "share"
) -> "Figure":
    """Draws rates with intervals: overall (left) and by property (right).

    Args:
        rows: rows of one attack, with the fields of its JSON; only headlines are drawn, at most
            eight. The properties are group, word frequency and text length.
        title: title, naming the attacked data and the attack.
        subtitle: a second, smaller line.
        scale: label of the value axis.

    Raises:
        ConfigError: no row is a headline.
    """
    from matplotlib.figure import Figure

    headlines = [row for row in rows if row["headline"]]
    lines = list(dict.fromkeys(map(_name_line, headlines)))[: len(COLOURS)]
    if not lines:
        raise ConfigError("a picture needs at least one headline rate")
    parts = [
        name
        for name in SLICES
        if any(
            row["slice"] == name and _name_line(row) in lines[:MAX_SLICED_LINES]
            for row in headlines
        )
    ]
    height = max(3.4, 1.6 + 0.36 * len(lines))
    figure = Figure(figsize=(4.6 + 3.0 * len(parts), height), layout="constrained")
    axes = figure.subplots(
        1, 1 + len(parts), width_ratios=[1.5, *([1.0] * len(parts))], squeeze=False
    )[0]
    _draw_overall(axes[0], headlines, lines, scale)
    for axis, name in zip(axes[1:], parts, strict=True):
        _draw_slices(
            axis, [row for row in headlines if row["slice"] == name], lines[:MAX_SLICED_LINES], name
        )
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    if subtitle:
        figure.text(0.01, 0.0, subtitle, ha="left", va="top", fontsize=8, color="#555555")
    return figure


def draw_densities(
    counts: Mapping[str, Sequence[int]],
    *,
    lowest: float,
    width: float,
    mark: tuple[str, float],
    title: str,
    scale: str,
) -> "Figure":
    """Draws a histogram per kind of value, with one value marked.

    Args:
        counts: for each kind, the number of values in each cell; at least one value per kind.
        lowest: start of the first cell.
        width: width of a cell.
        mark: label and position of the marked value.
        title: title, naming the values.
        scale: label of the value axis.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axis = figure.subplots()
    for (name, cells), colour in zip(counts.items(), COLOURS, strict=False):
        step = -(-len(cells) // MAX_BARS)
        joined = [
            sum(cells[i : i + step]) / (step * width * sum(cells))
            for i in range(0, len(cells), step)
        ]
        edges = [lowest + step * width * i for i in range(len(joined) + 1)]
        axis.stairs(joined, edges, label=name, color=colour, fill=True, alpha=0.5)
    axis.axvline(
        mark[1], color="#555555", linestyle="--", linewidth=1.2, label=f"{mark[0]}: {mark[1]:.2f}"
    )
    axis.set_xlabel(scale, fontsize=8)
    axis.set_ylabel("density", fontsize=8)
    axis.tick_params(labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure


def draw_curves(
    panels: Sequence[tuple[str, Mapping[str, Sequence[tuple[float, float]]]]],
    *,
    title: str,
    scale: str,
    columns: int | None = None,
) -> "Figure":
    """Draws a panel for each risk, with a curve for each mechanism.

    Args:
        panels: label of each horizontal axis, and the points of each curve in it, from left to
            right; at most eight curves. A name has the same colour in all panels.
        title: title of the figure.
        scale: label of the vertical axis.
        columns: panels side by side; None for all.
    """
    from matplotlib.figure import Figure

    columns = columns or len(panels)
    lines = -(-len(panels) // columns)
    figure = Figure(figsize=(1.6 + 4.2 * columns, 1 + 3.6 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, sharey=True, squeeze=False)
    names = list(dict.fromkeys(name for _, panel_curves in panels for name in panel_curves))
    handles: dict[str, Any] = {}
    for axis, (risk, panel_curves) in zip(axes.flat, panels, strict=False):
        for name, colour, marker in zip(names, COLOURS, MARKERS, strict=False):
            if name in panel_curves:
                x, y = zip(*panel_curves[name], strict=True)
                handles[name] = axis.plot(
                    x, y, marker=marker, color=colour, markersize=5, linewidth=1.2
                )[0]
        axis.set_xlabel(risk, fontsize=9)
        axis.tick_params(labelsize=8)
        axis.set_xlim(left=0)
        tidy(axis)
    for axis in axes[:, 0]:
        axis.set_ylabel(scale, fontsize=9)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    legend_handles = {name: handles[name] for name in names if name in handles}
    figure.legend(
        legend_handles.values(),
        legend_handles,
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=8,
    )
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure


def draw_option(rows: Sequence[FigureRow], *, option: str, title: str) -> "Figure":
    """Draws similarity, kept words, groups and success of attacks over an option's values.

    Args:
        rows: rows of a sweep of an option, with the fields of its JSON, in the order to be drawn.
        option: the option's name.
        title: title, naming the texts and the mechanism.
    """
    from matplotlib.figure import Figure

    panels: dict[str, dict[str, list[FigureRow]]] = {
        "mean cosine of original and release\n(sentence vectors, 95% interval)": {
            "": [{**row, "value": row["similarity"]} for row in rows]
        },
        "share of drawn words": _collect_lines([{"kept": row["kept"]} for row in rows]),
        "share of words that are not public": _collect_lines([row["shares"] for row in rows]),
        "success of an attack (95% interval)": _collect_lines([row["attacks"] for row in rows]),
    }
    panels = {label: lines for label, lines in panels.items() if lines}
    figure = Figure(figsize=(4.2 * len(panels), 3.6), layout="constrained")
    places = _place_values([row["value"] for row in rows])
    for axis, (label, lines) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for (name, points), colour, marker in zip(lines.items(), COLOURS, MARKERS, strict=False):
            axis.errorbar(
                places, [point["value"] for point in points],
                yerr=[[_compute_error_bars(point)[k][0] for point in points] for k in (0, 1)],
                marker=marker, color=colour, capsize=3, markersize=5, linewidth=1.2, label=name,
            )  # fmt: skip
        if any(lines):
            axis.set_ylim(0, 1.02)
            axis.legend(frameon=False, fontsize=8)
        axis.set_ylabel(label, fontsize=9)
        axis.set_xlabel(option, fontsize=9)
        axis.set_xticks(places, [row["value"] for row in rows])
        axis.tick_params(labelsize=8)
        tidy(axis)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    return figure


def _collect_lines(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[FigureRow]]:
    """Collects the points of each name that all rows have: numbers, or rates with intervals."""
    names = [name for name in rows[0] if all(row.get(name) is not None for row in rows)]
    return {
        name: [
            row[name]
            if isinstance(row[name], Mapping)
            else {"value": row[name], "low": None, "high": None}
            for row in rows
        ]
        for name in names
    }


def _place_values(values: Sequence[str]) -> list[float]:
    """Places values on an axis: numbers where they are, anything else side by side."""
    try:
        places = [float(value) for value in values]
    except ValueError:
        places = [math.nan]
    return places if all(map(math.isfinite, places)) else [float(i) for i in range(len(values))]


def _name_line(row: FigureRow) -> str:
    setting = ", ".join(
        [*(["names"] if row.get("unit") == "name" else []), *map(str, row["setting"].values())]
    )
    return f"{row['metric']} ({setting})" if setting else str(row["metric"])


def _draw_overall(
    axis: "Axes", rows: Sequence[FigureRow], lines: Sequence[str], scale: str
) -> None:
    places = {line: -i for i, line in enumerate(lines)}
    has_baseline = False
    for row in rows:
        line = _name_line(row)
        if row["slice"] != "all" or line not in places:
            continue
        i = -places[line]
        axis.errorbar(
            row["value"],
            places[line],
            xerr=_compute_error_bars(row),
            fmt=MARKERS[i],
            color=COLOURS[i],
            capsize=3,
        )
        if row["baseline"] is not None:
            axis.plot(
                row["baseline"],
                places[line],
                "|",
                color="#555555",
                markersize=14,
                markeredgewidth=2,
            )
            has_baseline = True
    axis.set_yticks(list(places.values()), list(places))
    axis.set_ylim(-len(lines) + 0.4, 0.6)
    axis.set_xlabel(
        f"{scale}, 95% interval" + (";  | without the released words" if has_baseline else ""),
        fontsize=8,
    )
    axis.tick_params(labelsize=8)
    _set_limits(axis.set_xlim, rows)
    tidy(axis, "x")


def _draw_slices(axis: "Axes", rows: Sequence[FigureRow], lines: Sequence[str], name: str) -> None:
    parts = list(dict.fromkeys(row["part"] for row in rows))
    for i, line in enumerate(lines):
        line_rows = [row for row in rows if _name_line(row) == line]
        if line_rows:
            x = [parts.index(row["part"]) + (i - len(lines) / 2) * 0.05 for row in line_rows]
            reach = [[_compute_error_bars(row)[k][0] for row in line_rows] for k in (0, 1)]
            style = {"linestyle": "none"} if name == "group" else {"linewidth": 1.2}
            axis.errorbar(
                x, [row["value"] for row in line_rows], yerr=reach, marker=MARKERS[i], color=COLOURS[i], capsize=2,
                markersize=5, **style,
            )  # fmt: skip
    labels = [part.partition(" (")[0].removesuffix(" quarter") for part in parts]
    axis.set_xticks(
        range(len(parts)), labels, fontsize=8, rotation=20, ha="right", rotation_mode="anchor"
    )
    axis.set_title(f"by {SLICES[name]}", fontsize=9, loc="left")
    axis.tick_params(labelsize=8)
    _set_limits(axis.set_ylim, [row for row in rows if _name_line(row) in lines])
    tidy(axis, "y")


def _compute_error_bars(row: FigureRow) -> list[list[float]]:
    """Computes the interval's lengths below and above the value; 0 if unknown."""
    low, high = (
        end if isinstance(end, int | float) else row["value"] for end in (row["low"], row["high"])
    )  # an open end is None, or a word
    return [[max(0.0, row["value"] - low)], [max(0.0, high - row["value"])]]


def _set_limits(limit: Any, rows: Sequence[FigureRow]) -> None:
    """Sets axis limits: 0 to 1, or lower if shares are small."""
    ends = [
        row[name] for row in rows for name in ("value", "high", "baseline") if row[name] is not None
    ]
    highest = max(ends)
    lowest = min(row["value"] if row["low"] is None else row["low"] for row in rows)
    limit(min(0.0, lowest * 1.05), 1.02 if 0.4 < highest <= 1 else highest * 1.1 or 1.0)
