"""Tables that are no sweep: what follows from a mechanism and a public table alone, or is measured in another way.

In: a name, what is asked. Out: a `Table` of plain values.
Not here: sweeps (`run`), and how tables are shown (`document`, `page`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Any, Self

from textveil.errors import UnknownName
from textveil_bench.reproduce.targets import Scale
from textveil_bench.run import Folders

COMPUTED: dict[str, str] = {
    "stamp-budgets": "textveil_bench.reproduce.stamp:budgets",
    "stamp-repaired": "textveil_bench.reproduce.stamp:repaired",
    "cape-vocabularies": "textveil_bench.reproduce.cape:vocabularies",
    "cape-statements": "textveil_bench.reproduce.cape:statements",
    "cape-tail": "textveil_bench.reproduce.cape:tail",
    "cape-logits": "textveil_bench.reproduce.cape:logits",
    "cape-distances": "textveil_bench.reproduce.cape:distances",
    "cape-costs": "textveil_bench.reproduce.costs:paper",
    "efficiency": "textveil_bench.reproduce.costs:efficiency",
}
"""Where the function of each name is written, as "module:function"; it takes `ComputeOptions`, and gives a `Table`."""

Value = str | int | float | None


@dataclass(frozen=True, kw_only=True)
class ComputeOptions:
    """How a table is asked for.

    Attributes:
        scale: usual, quick or full.
        places: where data is.
        endpoint: options of `Endpoint`; None where there is none.
        report: told of progress: a step, how much is done, how much there is.
    """

    scale: Scale = "usual"
    places: Folders = field(default_factory=Folders)
    endpoint: Mapping[str, Any] | None = None
    report: Callable[[str, int, int], None] = lambda step, done, total: None


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """How a table is drawn as lines.

    Args:
        x: the name of the horizontal axis, with its unit.
        y: that of the vertical one.
        lines: by name the points (x, y), from left to right; at most eight lines.
    """

    x: str
    y: str
    lines: Mapping[str, tuple[tuple[float, float], ...]]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Plain values in columns.

    Attributes:
        title: what it shows.
        columns: their headings, with units.
        rows: as many values as columns each; None where there is none.
        notes: what a reader has to know.
        drawing: the same as lines; None where a table says more.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()
    drawing: Drawing | None = None

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """A table of a document."""
        drawn = values.get("drawing")
        return cls(
            title=values["title"],
            columns=tuple(values["columns"]),
            rows=tuple(map(tuple, values["rows"])),
            notes=tuple(values["notes"]),
            drawing=None if drawn is None else Drawing(x=drawn["x"], y=drawn["y"], lines=drawn["lines"]),
        )


def compute(name: str, asked: ComputeOptions) -> Table:
    """The table of a name.

    Raises:
        UnknownName: there is none.
    """
    if name not in COMPUTED:
        raise UnknownName("computed table", name, COMPUTED)
    made: Table = EntryPoint(name, COMPUTED[name], "textveil").load()(asked)
    return made
