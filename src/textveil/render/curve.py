"""Curve of risk: what an attacker is expected to name, by the budget.

In: points of a curve. Out: a picture, and a table that says the same. For the owner alone.
Not here: how the points are computed (`evaluate.curve`).
"""

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

from textveil.evaluate.curve import CurvePoint
from textveil.guarantee import format_number
from textveil.render import page as pages
from textveil.render.picture import Picture, Shape

WIDTH, HEIGHT = 440, 256
LEFT, RIGHT, TOP, BOTTOM = 38, 18, 50, 212
"""The canvas, and the edges of the plot on it."""

Y_LIMITS = (0.1, 0.2, 0.5, 1.0)
"""The ends of the axis of shares; the smallest that fits is taken."""

ATTACKER_NAMES = {
    "uniform": "knows only the program",
    "unigram": "knows how often words occur",
    "context": "asks a language model",
    "learned": "learned from public texts",
}
"""Attackers in a few words."""

CURVE_NOTE = (
    "All budgets are multiplied together. A point without a bar is what is expected over all draws; "
    "one with a bar is estimated from a few, and the bar is its 95% interval. Dashes only join the "
    "points: between two the risk was not computed, and may rise steeply. A budget "
    "chosen from this curve depends on the private text: choose one on public texts of the same "
    "kind."
)
"""How to read a curve, and what not to do with it."""


def draw_curve(points: Sequence[CurvePoint]) -> Picture:
    """Draws the share of named words by epsilon, a line for each attacker.

    Args:
        points: at least two, in order of their budgets.
    """
    names = list(points[0].shares)
    highest = max(
        max([*point.shares.values(), *(high for _, high in point.intervals.values())])
        for point in points
    )
    limit = next(top for top in Y_LIMITS if highest <= top or top == Y_LIMITS[-1])
    xs, places = _place_points(points), range(len(points))
    shapes = [*_draw_axes(points, xs, limit)]
    for name, style in zip(names, ("first", "second"), strict=False):
        ys = [_find_height(point.shares[name], limit) for point in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
        shapes.append(Shape("polyline", {"points": line, "class": style}))
        for i in places:
            is_own = points[i].factor == 1
            size = "5" if is_own else "3"
            if name in points[i].intervals:
                low, high = (_find_height(end, limit) for end in points[i].intervals[name])
                # Two attackers' bars stand side by side.
                x = f"{xs[i] + (0 if len(names) == 1 else 1.5 if style == 'first' else -1.5):.1f}"
                ends = {"x1": x, "x2": x, "y1": f"{low:.1f}", "y2": f"{high:.1f}"}
                shapes.append(Shape("line", {**ends, "class": f"bar-{style}"}))
            where = {"cx": f"{xs[i]:.1f}", "cy": f"{ys[i]:.1f}", "r": size, "class": style}
            shapes.append(Shape("circle", where))
            if is_own:
                # Lines rise: there is room on the left above the upper one, and on the right below
                # the other.
                share = points[i].shares[name]
                below = share < max(points[i].shares.values())
                spot = {
                    "x": f"{xs[i] + (10 if below else -8):.1f}",
                    "y": f"{min(ys[i] + 13, BOTTOM - 3) if below else max(ys[i] - 7, TOP + 8):.1f}",
                    "text-anchor": "start" if below else "end",
                }
                shapes.append(Shape("text", {**spot, "class": style}, _format_share(share)))
    if len(names) > 1:
        shapes += _draw_legend(names)
    own = next((point for point in points if point.factor == 1), points[0])
    label = (
        f"Share of private words that are named, from {_name_place(points[0], points)} to "
        f"{_name_place(points[-1], points)}: "
        + "; ".join(
            f"an attacker who {ATTACKER_NAMES.get(name, name)} names "
            f"{_format_share(points[0].shares[name])} to {_format_share(points[-1].shares[name])}, "
            f"and {_format_share(own.shares[name])} at your budget"
            for name in names
        )
        + ". The table has all numbers."
    )
    return Picture(width=WIDTH, height=HEIGHT, label=label, shapes=shapes, style="risk-curve")


def build_table(points: Sequence[CurvePoint]) -> tuple[list[str], list[list[str]]]:
    """Builds the head and the rows of a table with the numbers of a curve."""
    has_bound = any(point.bound != point.epsilon for point in points)
    names = list(points[0].shares)
    head = [
        "epsilon" if _has_epsilons(points) else "budget",
        *(["for any two words"] if has_bound else []),
        *(f"named by an attacker who {ATTACKER_NAMES.get(name, name)}" for name in names),
    ]
    rows = [
        [
            _format_place(point, points) + (" (yours)" if point.factor == 1 else ""),
            *([format_number(point.bound)] if has_bound else []),
            *(_format_estimate(point, name) for name in names),
        ]
        for point in points
    ]
    return head, rows


def render_curve(points: Sequence[CurvePoint]) -> str:
    """Returns a curve with its table as HTML; empty for fewer than two points."""
    if len(points) < 2:
        return ""
    return f"""<h2>Risk at other budgets</h2>
<div class="curve-sides">{draw_curve(points).render_svg()}
{pages.render_table(*build_table(points))}</div>
<p class="how">{escape(CURVE_NOTE)}</p>"""


def dump_curve(points: Sequence[CurvePoint]) -> dict[str, Any] | None:
    """Returns a curve with its table as plain data; None for fewer than two points."""
    if len(points) < 2:
        return None
    head, rows = build_table(points)
    return {
        "picture": draw_curve(points).to_json(),
        "head": head,
        "rows": rows,
        "note": CURVE_NOTE,
    }


def _draw_axes(points: Sequence[CurvePoint], xs: Sequence[float], limit: float) -> list[Shape]:
    """Draws the grid, the numbers on both axes, and the chosen budget."""
    shapes = []
    for step in range(3):
        share = limit * step / 2
        y = f"{_find_height(share, limit):.1f}"
        ends = {"x1": str(LEFT), "x2": str(WIDTH - RIGHT), "y1": y, "y2": y, "class": "grid"}
        shapes.append(Shape("line", ends))
        place = {"x": str(LEFT - 6), "y": y, "text-anchor": "end", "dominant-baseline": "middle"}
        shapes.append(Shape("text", place, f"{share:.0%}"))
    for point, x in zip(points, xs, strict=True):
        is_own = point.factor == 1
        if is_own:
            top = {"x1": f"{x:.1f}", "x2": f"{x:.1f}", "y1": str(TOP - 4), "y2": str(BOTTOM)}
            shapes.append(Shape("line", {**top, "class": "own"}))
            above = {"x": f"{x:.1f}", "y": str(TOP - 9), "text-anchor": "middle"}
            shapes.append(Shape("text", {**above, "class": "own-text"}, "yours"))
        below = {"x": f"{x:.1f}", "y": str(BOTTOM + 16), "text-anchor": "middle"}
        style = {"class": "own-text"} if is_own else {}
        shapes.append(Shape("text", {**below, **style}, _format_place(point, points)))
    middle = {"x": str((LEFT + WIDTH - RIGHT) // 2), "y": str(BOTTOM + 36), "text-anchor": "middle"}
    title = "budgets, as a multiple of yours (log scale)"
    if _has_epsilons(points):
        # Where a bound for any two words differs, the mechanism's promise is by distance.
        is_metric = any(point.bound != point.epsilon for point in points)
        title = f"epsilon of a drawn word{' per unit of distance' if is_metric else ''} (log scale)"
    shapes.append(Shape("text", middle, title))
    corner = {"x": str(LEFT - 30), "y": "12", "text-anchor": "start"}
    return [*shapes, Shape("text", corner, "private words named")]


def _draw_legend(names: Sequence[str]) -> list[Shape]:
    """Draws which line is whose, above the plot on the right."""
    shapes = []
    for number, (name, style) in enumerate(zip(names, ("first", "second"), strict=False)):
        y = 7 + 13 * number
        ends = {"x1": "160", "x2": "182", "y1": str(y), "y2": str(y), "stroke-width": "2"}
        shapes.append(Shape("line", {**ends, "class": style}))
        place = {"x": "188", "y": str(y + 4), "class": style}
        shapes.append(Shape("text", place, ATTACKER_NAMES.get(name, name)))
    return shapes


def _place_points(points: Sequence[CurvePoint]) -> list[float]:
    """Returns where points stand on the axis, by the logarithm of their budgets."""
    logs = [math.log(point.factor) for point in points]
    width = WIDTH - RIGHT - LEFT - 40
    xs = [LEFT + 20 + width * (log - logs[0]) / (logs[-1] - logs[0]) for log in logs]
    assert all(left < right for left, right in pairwise(xs)), "points come in order"
    return xs


def _find_height(share: float, limit: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * min(share / limit, 1.0)


def _has_epsilons(points: Sequence[CurvePoint]) -> bool:
    return all(math.isfinite(point.epsilon) for point in points)


def _format_place(point: CurvePoint, points: Sequence[CurvePoint]) -> str:
    if _has_epsilons(points):
        return format_number(point.epsilon, 3)
    return f"{point.factor:.2g}×"


def _name_place(point: CurvePoint, points: Sequence[CurvePoint]) -> str:
    place = _format_place(point, points)
    return f"epsilon {place}" if _has_epsilons(points) else f"{place} your budget"


def _format_estimate(point: CurvePoint, name: str) -> str:
    share = _format_share(point.shares[name])
    if name not in point.intervals:
        return share
    low, high = point.intervals[name]
    return f"{share} ({low:.0%} to {high:.0%})"


def _format_share(share: float) -> str:
    return "under 1%" if 0 < share < 0.005 else f"{share:.0%}"
