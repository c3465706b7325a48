"""Data sets: those of the papers, and files of your own.

In: a name or a path. Out: `DataSet`s.
Not here: their releases (`trials`), and tasks on them (`tasks`).
"""

from textveil_bench.data.loading import is_file, load
from textveil_bench.data.own import SPLIT, Columns, get_data_name
from textveil_bench.data.sources import SOURCES

__all__ = ["SOURCES", "SPLIT", "Columns", "get_data_name", "is_file", "load"]
