"""Data sets by name, for the registry: one attribute for each of `SOURCES`.

In: a name. Out: a callable that loads its splits.
Not here: the table of data sets (`sources`), and reading them (`loading`).
"""

from collections.abc import Callable

from textveil_bench.data.loading import load
from textveil_bench.data.sources import SOURCES
from textveil_bench.examples import DataSet


def __getattr__(name: str) -> Callable[..., DataSet]:
    if name not in SOURCES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    source = SOURCES[name]

    def read(*, split: str = "test") -> DataSet:
        return load(name, split=split)

    read.__doc__ = f"Examples for {source.kind}: {', '.join(source.fields)}."
    return read
