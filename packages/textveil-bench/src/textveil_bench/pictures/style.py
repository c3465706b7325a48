"""Style of pictures: colours, markers, axes, and output formats.

In: figures. Out: files; SVG for a page, with the page's colours and fonts.
Not here: what is drawn (the modules beside this one).
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from textveil.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, RULE = "#1a1a1a", "#dddddd"
"""Colours of text and grid lines.

A page replaces them by its own, also in dark mode.
"""

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", INK, "#8C8C00")
MARKERS = "osD^vP*X"
"""Okabe-Ito colours (2008), distinct for colour-blind readers, each with a marker."""

SUFFIXES = (".svg", ".png", ".pdf")

_TYPE: Any = {  # matplotlib types options by a literal of all names
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.parse_math": False,  # names may have a dollar sign
    "axes.unicode_minus": False,
}


@dataclass(frozen=True, kw_only=True)
class Look:
    """Colour and marker of a curve.

    Attributes:
        colour: one of `COLOURS`.
        marker: one of `MARKERS`.
        hollow: whether markers are outlines.
    """

    colour: str
    marker: str
    hollow: bool = False


@contextmanager
def use_style() -> Iterator[None]:
    """Applies the text and axis style to figures created inside this context."""
    from matplotlib import rc_context

    with rc_context(_TYPE):
        yield


def tidy(axis: "Axes", lines: Literal["both", "x", "y"] = "both") -> None:
    """Adds a light grid to axes; removes top and right borders."""
    axis.grid(axis=lines, color=RULE)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def check_name(path: Path) -> None:
    """Checks before any work that a file name has a picture format.

    Raises:
        ConfigError: it does not.
    """
    if path.suffix not in SUFFIXES:
        raise ConfigError(
            f"a picture's name must end in {', '.join(SUFFIXES)}, got {path.suffix!r}"
        )


def save(figure: "Figure", path: Path) -> None:
    """Writes a figure in the format of its file name.

    Equal figures give equal files.

    Raises:
        ConfigError: the name ends in no picture format.
    """
    from matplotlib import rc_context

    check_name(path)
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    with rc_context({"svg.hashsalt": "textveil"}):  # else ids in the SVG are random
        figure.savefig(path, dpi=150, bbox_inches="tight", metadata=metadata)


def render_inline(figure: "Figure", name: str, label: str) -> str:
    """Renders a figure as SVG for HTML, in the page's style.

    Args:
        figure: made within `use_style`.
        name: prefix of ids, of letters and digits, unique in the page.
        label: description for screen readers.
    """
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "textveil"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))
    svg = re.sub(
        r"<!--.*?-->|<metadata>.*?</metadata>|<style .*?</style>", "", svg, flags=re.DOTALL
    )
    svg = re.sub(
        r' id="([^"]+)"', lambda match: f' id="{name}-{match[1]}"' if match[1] in used else "", svg
    )
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", svg).replace("xlink:href", "href")
    svg = re.sub(r"font-family: [^;\"]*;? ?", "", svg)  # the page sets the font
    svg = re.sub(r' d="[^"]+"', lambda match: re.sub(r"(\.\d\d)\d+", r"\1", match[0]), svg)
    svg = svg.replace(INK, "currentColor").replace(RULE, "var(--rule)")
    box = re.search(r'viewBox="[^"]+"', svg)
    opening = f'<svg {box[0] if box else ""} role="img" aria-label="{escape(label)}">'
    return re.sub(r"\n\s*", "\n", opening + svg[svg.index(">") + 1 :])


def draw_swatch(look: Look) -> str:
    """Draws a curve's line and marker as SVG, for legends in HTML."""
    from matplotlib.markers import MarkerStyle
    from matplotlib.transforms import Affine2D

    marker = MarkerStyle(look.marker)
    outline = marker.get_path().transformed(
        Affine2D(marker.get_transform().get_matrix()).scale(5, -5).translate(14, 7)
    )
    letters = {1: "M", 2: "L", 3: "Q", 4: "C", 79: "Z"}
    steps = (
        letters[int(code)] + ("" if code == 79 else " ".join(f"{number:.2f}" for number in points))
        for points, code in outline.iter_segments()
    )
    colour = look.colour.replace(INK, "currentColor")
    fill = "none" if look.hollow else colour
    line = "" if look.hollow else f'<path d="M0 7H28" stroke="{colour}" stroke-width="1.6"/>'
    return (
        f'<svg class="swatch" viewBox="0 0 28 14" aria-hidden="true">{line}'
        f'<path d="{"".join(steps)}" fill="{fill}" stroke="{colour}" stroke-width="1.2"/></svg>'
    )


def draw_dash(pattern: str) -> str:
    """Draws a horizontal dashed line as SVG, for legends in HTML."""
    return (
        '<svg class="swatch" viewBox="0 0 28 14" aria-hidden="true">'
        f'<path d="M0 7H28" stroke="currentColor" stroke-width="1.4" stroke-dasharray="{pattern}"/></svg>'
    )
