"""Comparison of mechanisms: utility at equal success of a trained attacker.

`run` runs a `Comparison`, `build_choices` evaluates its rows, `format_markdown` prints the results.
"""

from textveil_bench.choose.jobs import format_costs, read, run
from textveil_bench.choose.plan import Comparison
from textveil_bench.choose.summary import (
    Choice,
    build_choices,
    collect_units,
    format_all_public,
    format_markdown,
    format_units,
)

__all__ = [
    "Choice",
    "Comparison",
    "build_choices",
    "collect_units",
    "format_all_public",
    "format_costs",
    "format_markdown",
    "format_units",
    "read",
    "run",
]
