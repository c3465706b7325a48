"""Which mechanism keeps most where an attacker who learned gets the same.

`run` runs a `Comparison`, `choices` says what follows from its rows, `markdown` prints that.
"""

from textveil_bench.choose.jobs import format_costs, read, run
from textveil_bench.choose.plan import Comparison
from textveil_bench.choose.summary import Choice, build_choices, format_all_public, format_markdown

__all__ = [
    "Choice",
    "Comparison",
    "build_choices",
    "format_all_public",
    "format_costs",
    "format_markdown",
    "read",
    "run",
]
