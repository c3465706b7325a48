"""Bar: a statement as one bar, whose parts are words that were treated alike.

In: a statement about words. Out: a picture with its legend, which says the same in words.
Not here: what the parts are (`guarantee.parts`).
"""

from html import escape
from itertools import accumulate
from typing import Any

from textveil.guarantee import Guarantee, StatementPart, format_count, list_parts
from textveil.render.picture import Picture, Shape

WIDTH, HEIGHT, GAP = 720, 30, 2
"""The size of a bar, and the gap between its parts."""


def draw_bar(parts: list[StatementPart]) -> Picture:
    """Draws the parts of a statement, each as wide as its share of all words."""
    total = sum(part.words for part in parts)
    ends = [WIDTH * end / total for end in accumulate(part.words for part in parts)]
    shapes = [
        Shape(
            "rect",
            {
                "x": f"{start:.1f}",
                "y": "0",
                "width": f"{max(1.0, end - start - (GAP if end < WIDTH else 0)):.1f}",
                "height": str(HEIGHT),
                "class": f"part-{style}",
            },
        )
        for start, end, style in zip([0.0, *ends], ends, _choose_styles(parts), strict=False)
    ]
    return Picture(
        width=WIDTH,
        height=HEIGHT,
        label=f"Of {format_count(total, 'word')} and marks: {'; '.join(map(_describe, parts))}.",
        shapes=shapes,
        style="statement-bar",
    )


def render_bar(guarantee: Guarantee) -> str:
    """Returns the bar of a statement with its legend as HTML; empty without words."""
    if not (parts := list_parts(guarantee)):
        return ""
    items = "".join(
        f'<li><svg viewBox="0 0 1 1" aria-hidden="true"><rect width="1" height="1" '
        f'class="part-{style}"/></svg>{escape(_describe(part))}</li>'
        for part, style in zip(parts, _choose_styles(parts), strict=True)
    )
    return f'{draw_bar(parts).render_svg()}\n<ul class="bar-legend">{items}</ul>'


def dump_bar(guarantee: Guarantee) -> dict[str, Any] | None:
    """Returns the bar of a statement with its legend as plain data; None without words."""
    if not (parts := list_parts(guarantee)):
        return None
    return {
        "picture": draw_bar(parts).to_json(),
        "legend": [
            {"look": f"part-{style}", "says": _describe(part)}
            for part, style in zip(parts, _choose_styles(parts), strict=True)
        ],
    }


def _describe(part: StatementPart) -> str:
    return f"{part.words:,} {part.meaning}"


def _choose_styles(parts: list[StatementPart]) -> list[str]:
    """Chooses the colour of each part; drawn words of a smaller epsilon are lighter."""
    drawn = [part for part in parts if part.treatment == "drawn"]
    return ["level" if part in drawn[:-1] else part.treatment for part in parts]
