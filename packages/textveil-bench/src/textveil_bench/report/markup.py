"""HTML building blocks: tables, figures with legends, folded parts.

In: plain data. Out: HTML, in which every text is escaped.
Not here: what they show (`tables`, `curves`, `options`, `gallery`), and the page around them (`textveil.show`).
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from textveil_bench import pictures
from textveil_bench.intervals import Interval
from textveil_bench.pictures import Look, Mark, Panel

LONG = 14
"""Number of lines above which a table is folded."""


class Html(str):
    """A string that is already HTML; all others are escaped when they are inserted."""

    __slots__ = ()


def html(text: str) -> str:
    """A text as HTML."""
    return text if isinstance(text, Html) else escape(text)


def element(name: str, content: str, **attributes: str) -> Html:
    """An element around a text."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{told}>{html(content)}</{name}>")


def joined(parts: Iterable[str], between: str = "\n") -> Html:
    """Parts joined by a separator."""
    return Html(between.join(map(html, parts)))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], summary: str) -> Html:
    """A table in a scrolling box; a long one is folded.

    Args:
        columns: their headings.
        rows: cells, from left to right; the first one is the row's heading.
        summary: its title when folded; empty to never fold it.
    """
    head = joined(element("th", column, scope="col") for column in columns)
    body = joined(
        element(
            "tr",
            joined(
                (element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:])), ""
            ),
        )
        for row in rows
    )
    content = element("thead", element("tr", head)) + element("tbody", body)
    found = element("div", element("table", Html(content)), class_="scroll", tabindex="0")
    return (
        unfolding(f"{summary}, {len(rows):,} lines", found)
        if summary and len(rows) > LONG
        else found
    )


def unfolding(summary: str, content: str) -> Html:
    """A part that is folded until it is opened."""
    return Html(f"<details><summary>{html(summary)}</summary>{html(content)}</details>")


def figure(drawing: str, caption: str) -> Html:
    """A drawing with a caption."""
    return Html(f"<figure>{drawing}<figcaption>{html(caption)}</figcaption></figure>")


def legend(panels: Iterable[object]) -> Html:
    """The legend of panels; empty for maps."""
    curves: dict[str, Look] = {}
    marks: dict[str, Mark] = {}
    for panel in panels:
        if isinstance(panel, Panel):
            curves |= {curve.name: curve.look for curve in panel.curves}
            marks |= {mark.name: mark for mark in panel.marks}
    items = [
        Html(f"<li>{pictures.swatch(look)}{escape(name)}</li>") for name, look in curves.items()
    ]
    items += [
        Html(f"<li>{pictures.dash(mark.dash)}{escape(name)}</li>") for name, mark in marks.items()
    ]
    return element("ul", joined(items), class_="legend") if items else Html("")


def spelled(found: Interval | None) -> Html:
    """A value with its interval; an open end is left out."""
    if found is None or not math.isfinite(found.value):
        return Html("–")
    digits = 3 if abs(found.value) < 10 else 1
    value = f"{found.value:.{digits}f}"
    if found.low == found.high or not (math.isfinite(found.low) or math.isfinite(found.high)):
        return Html(value)
    low, high = (
        f"{end:.{digits}f}" if math.isfinite(end) else "?" for end in (found.low, found.high)
    )
    return Html(f"{value} <small>{low} to {high}</small>")


def budget(given: Mapping[str, Any] | None) -> str:
    """A budget with the name of its option, as in rows: "eta 80"; empty for none."""
    if given is None:
        return ""
    value = given["value"]
    return f"{given['path'].rpartition('.')[2]} {f'{value:.4g}' if isinstance(value, float) else value}"


def slug(text: str) -> str:
    """A text in a form for file names and anchors."""
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:80] or "figure"
