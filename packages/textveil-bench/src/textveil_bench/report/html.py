"""HTML building blocks: tables, figures with legends, folded parts.

In: plain data. Out: HTML, in which every text is escaped.
Not here: the content (`tables`, `curves`, `options`, `gallery`), and the page around it
(`textveil.render`).
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from textveil_bench import pictures
from textveil_bench.intervals import Interval
from textveil_bench.pictures import Look, Mark, Panel

MAX_OPEN_LINES = 14
"""Number of lines above which a table is folded."""


class Html(str):
    """A string that is already HTML; all others are escaped on insertion."""

    __slots__ = ()


def escape_html(text: str) -> str:
    """Escapes a text, unless it is HTML already."""
    return text if isinstance(text, Html) else escape(text)


def build_element(name: str, content: str, **attributes: str) -> Html:
    """Builds an element around a text."""
    attribute_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{attribute_text}>{escape_html(content)}</{name}>")


def join_parts(parts: Iterable[str], separator: str = "\n") -> Html:
    """Joins parts with a separator."""
    return Html(separator.join(map(escape_html, parts)))


def build_table(columns: Sequence[str], rows: Sequence[Sequence[str]], summary: str) -> Html:
    """Builds a table in a scrolling box; a long one is folded.

    Args:
        columns: their headings.
        rows: cells, from left to right; the first one is the row's heading.
        summary: its title when folded; empty to never fold it.
    """
    head = join_parts(build_element("th", column, scope="col") for column in columns)
    body = join_parts(
        build_element(
            "tr",
            join_parts(
                (
                    build_element("th", row[0], scope="row"),
                    *(build_element("td", cell) for cell in row[1:]),
                ),
                "",
            ),
        )
        for row in rows
    )
    content = build_element("thead", build_element("tr", head)) + build_element("tbody", body)
    box = build_element("div", build_element("table", Html(content)), class_="scroll", tabindex="0")
    return (
        fold_content(f"{summary}, {len(rows):,} lines", box)
        if summary and len(rows) > MAX_OPEN_LINES
        else box
    )


def fold_content(summary: str, content: str) -> Html:
    """Builds a part that is folded until it is opened."""
    return Html(
        f"<details><summary>{escape_html(summary)}</summary>{escape_html(content)}</details>"
    )


def build_figure(drawing: str, caption: str) -> Html:
    """Builds a figure from a drawing and a caption."""
    return Html(f"<figure>{drawing}<figcaption>{escape_html(caption)}</figcaption></figure>")


def build_legend(panels: Iterable[object]) -> Html:
    """Builds the legend of panels; empty for maps."""
    curves: dict[str, Look] = {}
    marks: dict[str, Mark] = {}
    for panel in panels:
        if isinstance(panel, Panel):
            curves |= {curve.name: curve.look for curve in panel.curves}
            marks |= {mark.name: mark for mark in panel.marks}
    items = [
        Html(f"<li>{pictures.draw_swatch(look)}{escape(name)}</li>")
        for name, look in curves.items()
    ]
    items += [
        Html(f"<li>{pictures.draw_dash(mark.dash)}{escape(name)}</li>")
        for name, mark in marks.items()
    ]
    return build_element("ul", join_parts(items), class_="legend") if items else Html("")


def format_interval(interval: Interval | None) -> Html:
    """Formats a value with its interval; an open end becomes "?"."""
    if interval is None or not math.isfinite(interval.value):
        return Html("–")
    digits = 3 if abs(interval.value) < 10 else 1
    value = f"{interval.value:.{digits}f}"
    if interval.low == interval.high or not (
        math.isfinite(interval.low) or math.isfinite(interval.high)
    ):
        return Html(value)
    low, high = (
        f"{end:.{digits}f}" if math.isfinite(end) else "?" for end in (interval.low, interval.high)
    )
    return Html(f"{value} <small>{low} to {high}</small>")


def format_budget(row_budget: Mapping[str, Any] | None) -> str:
    """Formats a row's budget with its option: "eta 80"; "" for none."""
    if row_budget is None:
        return ""
    value = row_budget["value"]
    return (
        f"{row_budget['path'].rpartition('.')[2]} "
        f"{f'{value:.4g}' if isinstance(value, float) else value}"
    )


def make_slug(text: str) -> str:
    """Converts a text to a form for file names and anchors."""
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:80] or "figure"
