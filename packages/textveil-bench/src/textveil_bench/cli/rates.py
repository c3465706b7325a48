"""What the verbs that judge releases share: the texts and labels of a file, and tables of rates.

In: a file's name, rows of plain data. Out: texts; tables on standard output.
Not here: what other verbs share with them (`textveil.cli.evaluation`), and what is measured (`attack`, `measure`).
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textveil.cli.evaluation import check_limit, rows, texts
from textveil.errors import ConfigError, InputError, quote, quote_file
from textveil.files import formats, streams

if TYPE_CHECKING:
    from rich.table import Table

    from textveil.config import Config
    from textveil.config.registry import KindOfName

Row = Mapping[str, Any]

PANEL = "Evaluate"
"""The heading under which `textveil --help` lists these verbs."""

TextFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE|-",
        help="Texts: .txt (one per line), .jsonl, .csv, .tsv, .parquet; - for lines of standard input.",
        show_default=False,
    ),
]
By = Annotated[bool, typer.Option("--by", help="Also by group, word frequency and text length.")]

LISTED = 4
"""A note on all of more rates does not list them."""


def others(path: str, file: str, field: str | None) -> list[str]:
    """The texts of another file; of the field that the first one has them in, where both are files of one kind.

    Args:
        path: the other file.
        file: the first one.
        field: which of its fields has the texts.

    Raises:
        InputError, ConfigError: as for `texts`.
    """
    kinds = [found and found[0] for found in map(formats.suffix, (file, path))]
    same = kinds[0] == kinds[1] is not None and formats.load(kinds[1]).fields
    return texts(path, field if same else None)


def texts_with_labels(
    path: str, field: str | None, label: str, limit: int | None
) -> tuple[list[str], list[str]]:
    """The texts of a file and the label of each; rows that lack one of them are left out.

    Args:
        path: a file with fields.
        field: which of them has the texts.
        label: which of them has the labels, which must be strings.
        limit: take only so many.

    Raises:
        InputError: there is no such file, it cannot be read, or holds no labelled text.
        ConfigError: a field is not there or not clear, or the limit is below 1.
    """
    check_limit(limit)
    pairs = zip(rows(path, field), rows(path, label, "--label"), strict=True)
    both = [
        (text, value) for text, value in pairs if text and text.strip() and value and value.strip()
    ][:limit]
    if not both:
        raise InputError(f"{quote_file(path)} has no text with a label in the field {quote(label)}")
    return [text for text, _ in both], [value for _, value in both]


def check(config: "Config") -> None:
    """Refuse what attacks and measures cannot judge, before anything is loaded.

    Raises:
        ConfigError: says which options to change.
    """
    from textveil.evaluate.attack import case

    case.check(config.words, randomised=config.protect.labels == "randomised")
    if config.protect.asked and config.figures.types:
        raise ConfigError(
            "attacks and measures cannot judge figures that are moved: add -o figures.types=none"
        )


def quick(kind: "KindOfName") -> list[str]:
    """The attacks or measures that are run where none is named."""
    from textveil.config import registry

    return [
        name
        for name in registry.names(kind)
        if not getattr(registry.load(kind, name), "on_request", False)
    ]


def left_out(kind: "KindOfName", chosen: Sequence[str], option: str) -> str:
    """Says which attacks or measures were left out because nobody asked for them; nothing if none was."""
    from textveil.config import registry

    others = [name for name in registry.names(kind) if name not in chosen]
    return (
        f"Not run, because not asked for: {', '.join(others)}. {option} all runs them, too."
        if others
        else ""
    )


def circumstances(config: "Config", file: str) -> dict[str, Any]:
    """What findings say of themselves: the configuration without its seed, and the file's name."""
    from textveil import __version__

    options = config.public()
    seeded = options.pop("seed") is not None
    if config.epsilon is not None and math.isinf(config.epsilon):
        options["epsilon"] = "infinite"
    return {
        "textveil": __version__,
        "file": "-" if file == "-" else Path(file).name,
        "configuration": options,
        "seeded": seeded,
    }


def show(
    rows: Sequence[Row],
    *,
    by: bool = False,
    every: bool = False,
    first: str | None = None,
    baseline: bool = False,
) -> None:
    """Print rates as a table on standard output.

    Args:
        rows: with the fields of a report's JSON.
        by: also those by group, word frequency and text length.
        every: also those that are no headlines.
        first: a field that stands in a column before the metric.
        baseline: whether to show what is reached without the released words.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading in (*([first] if first else []), "metric", *(["by", "part"] if by else [])):
        table.add_column(heading, overflow="fold")
    for heading in ("value", "95% interval", *(["without release"] if baseline else []), "n"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        if (row["slice"] != "all" and not by) or not (row["headline"] or every):
            continue
        cells = [str(row[first])] if first else []
        cells.append(metric(row))
        if by:
            cells += ["" if row["slice"] == "all" else row["slice"], row["part"]]
        known = (
            row["low"] is not None or row["high"] is not None
        )  # of a single text no interval follows
        cells += [
            number(row["value"]),
            f"{number(row['low'])} to {number(row['high'])}" if known else "none",
        ]
        if baseline:
            cells.append("" if row["baseline"] is None else number(row["baseline"]))
        table.add_row(*cells, f"{row['n']:,}")
    draw(table)


def draw(table: "Table") -> None:
    """Print a table on standard output, as wide as it is where nobody sees an edge."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(
            console.width,
            console.measure(table, options=console.options.update(width=1000)).maximum,
        )
    with streams.writing():
        console.print(table)


def notes(document: Mapping[str, Any]) -> list[str]:
    """What one has to know about the headline rates, each said once, and about private words that no rate counts."""
    rows = document["rows"]
    said: dict[str, list[str]] = {}
    for row in rows:
        if row["note"] and row["headline"]:
            said.setdefault(row["note"], []).append(metric(row))
    headlines = sum(row["headline"] and row["slice"] == "all" for row in rows)
    found = []
    for note, metrics in said.items():
        every = len(metrics) == headlines > LISTED
        found.append(f"{'All rates' if every else ', '.join(metrics)}: {note}.")
    for count, fate in (
        (document["passed_unprotected"], "passed as they were, so everyone has them"),
        (
            document["placeholders"],
            "became placeholders, so nobody learns more than where they stood",
        ),
    ):
        if count:
            found.append(
                f"{count:,} more private words are not counted in rates of words: they {fate}."
            )
    return found


def metric(row: Row) -> str:
    """A metric with what tells it from others of the same name."""
    setting = ", ".join(
        [*(["names"] if row.get("unit") == "name" else []), *map(str, row["setting"].values())]
    )
    return f"{row['metric']} ({setting})" if setting else str(row["metric"])


def number(value: float | None) -> str:
    """Three digits behind the point for shares, three in all for what is larger."""
    if value is None:
        return "?"
    return (
        f"{value:.3f}"
        if abs(value) < 10
        else f"{value:,.3g}"
        if abs(value) < 1000
        else f"{value:,.0f}"
    )
