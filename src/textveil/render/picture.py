"""Pictures: drawings of lines, bars and words, as SVG or as data.

In: shapes with their attributes. Out: SVG text for a page; the same as JSON, from which the
playground builds it, because its page takes no markup.
Not here: what is drawn (`curve`, `bar`).

Colours are classes, whose rules are in `PICTURE_CSS`: one for light pages, one for dark ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple


class Shape(NamedTuple):
    """A shape of a picture.

    Args:
        tag: its name in SVG.
        attributes: of the element; numbers and names of classes, never a text of anybody.
        text: its words.
    """

    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """Shapes on a canvas.

    Attributes:
        width: of the canvas.
        height: of the canvas.
        label: a sentence for people who do not see it.
        shapes: from back to front.
        style: a class of the whole picture.
    """

    width: int
    height: int
    label: str
    shapes: Sequence[Shape]
    style: str

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of the whole picture."""
        stretched = {"preserveAspectRatio": "none"} if self.style == "statement-bar" else {}
        return {
            "viewBox": f"0 0 {self.width} {self.height}",
            "class": self.style,
            "role": "img",
            "aria-label": self.label,
            **stretched,
        }

    def render_svg(self) -> str:
        """Returns the picture as SVG."""
        content = "".join(_render(*shape) for shape in self.shapes)
        return f"<svg{_spell(self.attributes)}>{content}</svg>"

    def to_json(self) -> dict[str, Any]:
        """Returns the picture as plain data."""
        return {"attributes": self.attributes, "shapes": [list(shape) for shape in self.shapes]}


def _render(tag: str, attributes: dict[str, str], text: str) -> str:
    return f"<{tag}{_spell(attributes)}>{escape(text)}</{tag}>"


def _spell(attributes: dict[str, str]) -> str:
    return "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())


PICTURE_CSS = """
:root { --ink-drawn: #08519c; --ink-level: #6a9ccb; --ink-name: #7b3294; --ink-figure: #b28ac4; --ink-hole: #3f4248;
  --ink-bare: #c2410c; --ink-public: #c9c9c6; --ink-first: #08519c; --ink-second: #b03a00; --ink-grid: #dcdcd8;
  --ink-axis: #55585f; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink-drawn: #7db4ec; --ink-level: #3f76ad; --ink-name: #d3a5e6; --ink-figure: #8d5fa3; --ink-hole: #c4c8d0;
    --ink-bare: #ff9a5c; --ink-public: #4a4e57; --ink-first: #7db4ec; --ink-second: #ff9a5c; --ink-grid: #30333a;
    --ink-axis: #a9adb6; }
}
.risk-curve { display: block; width: 100%; max-width: 36rem; height: auto; overflow: visible;
  font: 11px system-ui, sans-serif; }
@media (max-width: 30rem) { .risk-curve { font-size: 14px; } }
.risk-curve text { fill: var(--ink-axis); }
.risk-curve .grid { stroke: var(--ink-grid); stroke-width: 1; }
.risk-curve .own { stroke: var(--ink-axis); stroke-width: 1; stroke-dasharray: 3 3; }
.risk-curve polyline { fill: none; stroke-width: 1; stroke-linejoin: round; }
.risk-curve .first { stroke: var(--ink-first); stroke-dasharray: 2 3; }
.risk-curve .second { stroke: var(--ink-second); stroke-dasharray: 6 3; }
.risk-curve .bar-first { stroke: var(--ink-first); stroke-width: 1.5; }
.risk-curve .bar-second { stroke: var(--ink-second); stroke-width: 1.5; }
.risk-curve circle.first { fill: var(--ink-first); stroke-dasharray: none; }
.risk-curve circle.second { fill: var(--ink-second); stroke-dasharray: none; }
.risk-curve text.first { fill: var(--ink-first); stroke: none; font-weight: 600; }
.risk-curve text.second { fill: var(--ink-second); stroke: none; font-weight: 600; }
.risk-curve text.own-text { font-weight: 600; }
.curve-sides { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 1rem 2rem;
  align-items: center; }
@media (max-width: 48rem) { .curve-sides { grid-template-columns: minmax(0, 1fr); } }
.numbers { border-collapse: collapse; font-size: .875rem; line-height: 1.4; width: 100%; }
.numbers th, .numbers td { display: table-cell; text-align: right; padding: .25rem 0 .25rem .8rem; font-weight: 400;
  vertical-align: bottom; border-bottom: 1px solid var(--line); white-space: normal; position: static; }
.numbers th:first-child { text-align: left; padding-left: 0; white-space: nowrap; }
.statement-bar { display: block; width: 100%; height: 1.9rem; border-radius: .35rem; }
.part-drawn { fill: var(--ink-drawn); } .part-level { fill: var(--ink-level); } .part-name { fill: var(--ink-name); }
.part-figure { fill: var(--ink-figure); } .part-placeholder { fill: var(--ink-hole); }
.part-unprotected { fill: var(--ink-bare); } .part-public { fill: var(--ink-public); }
.bar-legend { list-style: none; padding: 0; margin: .5rem 0 0; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem;
  font-size: .9rem; }
.bar-legend li { display: flex; align-items: center; gap: .4rem; }
.bar-legend svg { width: .8rem; height: .8rem; flex: none; border-radius: .15rem; margin: 0; }
.statement-bar, .bar-legend svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
@media (forced-colors: active) { .statement-bar, .bar-legend svg { forced-color-adjust: none; } }
"""
"""The style sheet of all pictures."""
