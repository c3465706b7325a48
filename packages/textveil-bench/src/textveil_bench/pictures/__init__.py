"""Pictures of rates, value distributions, and mechanisms' utility against attack success.

In: plain data, as reports give it. Out: figures, as files or as SVG in a page.
Not here: the figures' data (`attack`, `measure`, `report`), and logits (`textveil.models`).
"""

from textveil_bench.pictures.rates import (
    MAX_BARS,
    draw_curves,
    draw_densities,
    draw_option,
    draw_rates,
)
from textveil_bench.pictures.style import (
    COLOURS,
    MARKERS,
    SUFFIXES,
    Look,
    check_name,
    draw_dash,
    draw_swatch,
    render_inline,
    save,
)
from textveil_bench.pictures.trade import (
    DASHES,
    MAX_CURVES,
    Curve,
    Map,
    Mark,
    Panel,
    Point,
    draw_figure,
    write_data,
)

__all__ = [
    "COLOURS",
    "DASHES",
    "MARKERS",
    "MAX_BARS",
    "MAX_CURVES",
    "SUFFIXES",
    "Curve",
    "Look",
    "Map",
    "Mark",
    "Panel",
    "Point",
    "check_name",
    "draw_curves",
    "draw_dash",
    "draw_densities",
    "draw_figure",
    "draw_option",
    "draw_rates",
    "draw_swatch",
    "render_inline",
    "save",
    "write_data",
]
