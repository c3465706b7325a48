"""Which mechanism keeps most where an attacker who learned gets the same.

`run` runs a `Comparison`, `choices` says what follows from its rows, `markdown` prints that.
"""

from textveil_bench.choose.jobs import cost, read, run
from textveil_bench.choose.plan import Comparison
from textveil_bench.choose.summary import Choice, all_public, choices, markdown

__all__ = ["Choice", "Comparison", "all_public", "choices", "cost", "markdown", "read", "run"]
