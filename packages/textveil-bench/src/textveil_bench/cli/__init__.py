"""The verbs that the bench adds to the command line: `bench`, `reproduce`, `sweep`.

In: arguments. Out: rows, pages, tables.
Not here: what they do (`textveil_bench`), and the shared options (`textveil.cli`).
"""

from textveil_bench.cli import bench, lm_eval, report, reproduce, sweep  # each adds its verbs to the application

__all__ = ["bench", "lm_eval", "report", "reproduce", "sweep"]
