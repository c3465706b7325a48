"""Pictures: of rates and how often values occur, and of what mechanisms cost and attackers get.

In: plain data, as reports give it. Out: figures, as files or as SVG in a page.
Not here: what is shown (`attack`, `measure`, `bench`), and logits (`encoder`).
"""

from textveil_bench.pictures.rates import BARS, curves, densities, rates, thresholds
from textveil_bench.pictures.style import (
    COLOURS,
    MARKERS,
    SUFFIXES,
    Look,
    check_name,
    dash,
    inline,
    save,
    swatch,
)
from textveil_bench.pictures.trade import DASHES, MOST, Curve, Map, Mark, Panel, Point, draw

__all__ = [
    "BARS",
    "COLOURS",
    "DASHES",
    "MARKERS",
    "MOST",
    "SUFFIXES",
    "Curve",
    "Look",
    "Map",
    "Mark",
    "Panel",
    "Point",
    "check_name",
    "curves",
    "dash",
    "densities",
    "draw",
    "inline",
    "rates",
    "save",
    "swatch",
    "thresholds",
]
