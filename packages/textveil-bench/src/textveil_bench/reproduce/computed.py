"""Computed tables: derived from a mechanism and table, or measured without sweep.

In: a name, options. Out: a `Table` of plain values.
Not here: sweeps (`run`), and how tables are shown (`document`, `page`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Any, Self

from textveil.errors import UnknownName
from textveil.models import Prompts
from textveil_bench.reproduce.targets import Scale
from textveil_bench.run import Folders

COMPUTED_TABLES: dict[str, str] = {
    "stamp-budgets": "textveil_bench.reproduce.stamp:budgets",
    "stamp-means": "textveil_bench.reproduce.stamp:means",
    "stamp-repaired": "textveil_bench.reproduce.stamp:repaired",
    "stamp-repaired-answers": "textveil_bench.reproduce.stamp:repaired_answers",
    "cape-vocabularies": "textveil_bench.reproduce.cape:vocabularies",
    "cape-statements": "textveil_bench.reproduce.cape:statements",
    "cape-tail": "textveil_bench.reproduce.cape:tail",
    "cape-logits": "textveil_bench.reproduce.cape:logits",
    "cape-distances": "textveil_bench.reproduce.cape:distances",
    "cape-costs": "textveil_bench.reproduce.costs:paper",
    "efficiency": "textveil_bench.reproduce.costs:efficiency",
}
"""Function of each table, by name, as "module:function".

It takes `ComputeOptions` and returns a `Table`.
"""

TableValue = str | int | float | None


@dataclass(frozen=True, kw_only=True)
class ComputeOptions:
    """Options of a computed table.

    Attributes:
        scale: usual, quick or full.
        places: folders of the data.
        hub: whether to use the paper's own models and tables instead of ours.
        endpoint: options of `Endpoint`; None for no endpoint.
        prompts: wordings of what language models are asked; None for ours.
        is_preview: whether requests are only counted: nothing is drawn, and nothing else is judged.
        report: called with the name of a step, the amount done and the total.
    """

    scale: Scale = "usual"
    places: Folders = field(default_factory=Folders)
    hub: bool = False
    endpoint: Mapping[str, Any] | None = None
    prompts: Prompts | None = None
    is_preview: bool = False
    report: Callable[[str, int, int], None] = lambda step, done, total: None


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A table drawn as lines.

    Args:
        x: label of the horizontal axis, with its unit.
        y: label of the vertical axis.
        lines: by name, points (x, y) from left to right; at most eight lines.
    """

    x: str
    y: str
    lines: Mapping[str, tuple[tuple[float, float], ...]]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Plain values in columns.

    Attributes:
        title: title of the table.
        columns: their headings, with units.
        rows: a value for each column; None for no value.
        notes: notes for readers.
        drawing: the table as lines; None if a table is clearer.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[TableValue, ...], ...]
    notes: tuple[str, ...] = ()
    drawing: Drawing | None = None

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """Builds a table from its form in a document."""
        drawing_values = values.get("drawing")
        return cls(
            title=values["title"],
            columns=tuple(values["columns"]),
            rows=tuple(map(tuple, values["rows"])),
            notes=tuple(values["notes"]),
            drawing=None
            if drawing_values is None
            else Drawing(
                x=drawing_values["x"], y=drawing_values["y"], lines=drawing_values["lines"]
            ),
        )


def compute(name: str, options: ComputeOptions) -> Table:
    """Computes a table by name.

    Raises:
        UnknownName: there is no such table.
    """
    if name not in COMPUTED_TABLES:
        raise UnknownName("computed table", name, COMPUTED_TABLES)
    table: Table = EntryPoint(name, COMPUTED_TABLES[name], "textveil").load()(options)
    return table
