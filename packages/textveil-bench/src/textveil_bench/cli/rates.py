"""Shared by `attack` and `measure`: reading labelled files, tables of rates.

In: a file's name, rows of plain data. Out: texts; tables on standard output.
Not here: the helpers of other commands (`textveil.cli.evaluation`), and the figures (`attack`,
`measure`).
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textveil.cli.evaluation import check_limit, read_rows, read_texts
from textveil.errors import ConfigError, InputError, quote, quote_file
from textveil.files import formats, text_streams

if TYPE_CHECKING:
    from rich.table import Table

    from textveil.config import Config
    from textveil.config.registry import RegistryKind

RateRow = Mapping[str, Any]

PANEL = "Evaluate"
"""The heading of these commands in `textveil --help`."""

TextFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE|-",
        help="Texts: .txt (one per line), .jsonl, .csv, .tsv, .parquet; - for lines of standard input.",
        show_default=False,
    ),
]
ByOption = Annotated[
    bool, typer.Option("--by", help="Also show rates by group, word frequency and text length.")
]

MAX_LISTED_RATES = 4
"""Maximum number of rates that a note about all of them lists."""


def read_other_texts(path: str, file: str, field: str | None) -> list[str]:
    """Reads the texts of another file, by the same field if possible.

    Args:
        path: the other file.
        file: the first one.
        field: the first file's field with the texts; used if both files have the same format.

    Raises:
        InputError, ConfigError: as for `read_texts`.
    """
    kinds = [suffix and suffix[0] for suffix in map(formats.parse_suffix, (file, path))]
    same_kind = kinds[0] == kinds[1] is not None and formats.load_format(kinds[1]).has_fields
    return read_texts(path, field if same_kind else None)


def read_labelled_texts(
    path: str, field: str | None, label: str, limit: int | None
) -> tuple[list[str], list[str]]:
    """Reads the texts of a file and their labels; skips incomplete rows.

    Args:
        path: a file with fields.
        field: the field with the texts.
        label: the field with the labels, which must be strings.
        limit: maximum number of texts.

    Raises:
        InputError: there is no such file, it cannot be read, or holds no labelled text.
        ConfigError: a field is missing or ambiguous, or the limit is below 1.
    """
    check_limit(limit)
    pairs = zip(read_rows(path, field), read_rows(path, label, "--label"), strict=True)
    labelled_texts = [
        (text, value) for text, value in pairs if text and text.strip() and value and value.strip()
    ][:limit]
    if not labelled_texts:
        raise InputError(f"{quote_file(path)} has no text with a label in the field {quote(label)}")
    return [text for text, _ in labelled_texts], [value for _, value in labelled_texts]


def require_judgeable(config: "Config") -> None:
    """Refuses options that attacks and measures do not support.

    Raises:
        ConfigError: says which options to change.
    """
    from textveil.evaluate.attack import attack_input

    attack_input.check_options(config.words, randomised=config.protect.labels == "randomised")
    if config.protect.has_groups and config.figures.types:
        raise ConfigError(
            "attacks and measures cannot judge figures that are moved: add -o figures.types=none"
        )


def list_default_names(kind: "RegistryKind") -> list[str]:
    """Lists the attacks or measures that run by default."""
    from textveil.config import registry

    return [
        name
        for name in registry.list_names(kind)
        if not getattr(registry.load(kind, name), "on_request", False)
    ]


def format_skipped(kind: "RegistryKind", names: Sequence[str], option: str) -> str:
    """Formats a note on the attacks or measures that were not requested.

    Empty if none was skipped.
    """
    from textveil.config import registry

    skipped = [name for name in registry.list_names(kind) if name not in names]
    return (
        f"Not run, because not asked for: {', '.join(skipped)}. {option} all runs them, too."
        if skipped
        else ""
    )


def build_run_info(config: "Config", file: str) -> dict[str, Any]:
    """Builds the header of findings: configuration without seed, file's name."""
    from textveil import __version__

    options = config.dump_public()
    seeded = options.pop("seed") is not None
    if library := config.texts.library:
        options["texts"]["library"] = Path(library).name
    if config.epsilon is not None and math.isinf(config.epsilon):
        options["epsilon"] = "infinite"
    return {
        "textveil": __version__,
        "file": "-" if file == "-" else Path(file).name,
        "configuration": options,
        "seeded": seeded,
    }


def print_rates(
    rows: Sequence[RateRow],
    *,
    by: bool = False,
    every: bool = False,
    first: str | None = None,
    baseline: bool = False,
    bounds: bool = False,
) -> None:
    """Prints rates as a table on standard output.

    Args:
        rows: with the fields of a report's JSON.
        by: whether to show those by group, word frequency and text length.
        every: whether to show minor rates.
        first: a field shown in a column before the metric.
        baseline: whether to show the rates without the released words.
        bounds: whether to show the notes, which say what epsilon allows.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading in (*([first] if first else []), "metric", *(["by", "part"] if by else [])):
        table.add_column(heading, overflow="fold")
    for heading in ("value", "95% interval", *(["without release"] if baseline else []), "n"):
        table.add_column(heading, justify="right", no_wrap=True)
    if bounds:
        table.add_column("what epsilon allows", overflow="fold")
    for row in rows:
        if (row["slice"] != "all" and not by) or not (row["headline"] or every):
            continue
        cells = [str(row[first])] if first else []
        cells.append(format_metric(row))
        if by:
            cells += ["" if row["slice"] == "all" else row["slice"], row["part"]]
        has_interval = (
            row["low"] is not None or row["high"] is not None
        )  # a single text has no interval
        cells += [
            format_number(row["value"]),
            f"{format_number(row['low'])} to {format_number(row['high'])}"
            if has_interval
            else "none",
        ]
        if baseline:
            cells.append("" if row["baseline"] is None else format_number(row["baseline"]))
        table.add_row(*cells, f"{row['n']:,}", *([row["note"]] if bounds else []))
    print_table(table)


def print_table(table: "Table") -> None:
    """Prints a table on standard output; full width unless on a terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(
            console.width,
            console.measure(table, options=console.options.update(width=1000)).maximum,
        )
    with text_streams.convert_write_errors():
        console.print(table)


def list_notes(document: Mapping[str, Any]) -> list[str]:
    """Lists notes on headline rates, and on private words outside all rates."""
    rows = document["rows"]
    metrics_by_note: dict[str, list[str]] = {}
    for row in rows:
        if row["note"] and row["headline"]:
            metrics_by_note.setdefault(row["note"], []).append(format_metric(row))
    headlines = sum(row["headline"] and row["slice"] == "all" for row in rows)
    lines = []
    for note, metrics in metrics_by_note.items():
        all_rates = len(metrics) == headlines > MAX_LISTED_RATES
        lines.append(f"{'All rates' if all_rates else ', '.join(metrics)}: {note}.")
    for count, fate in (
        (document["passed_unprotected"], "passed unchanged, so everyone can read them"),
        (
            document["placeholders"],
            "became placeholders, which reveal only their positions",
        ),
    ):
        if count:
            lines.append(
                f"{count:,} more private words are not counted in rates of words: they {fate}."
            )
    return lines


def format_metric(row: RateRow) -> str:
    """Formats a metric with the settings that distinguish it."""
    setting = ", ".join(
        [*(["names"] if row.get("unit") == "name" else []), *map(str, row["setting"].values())]
    )
    return f"{row['metric']} ({setting})" if setting else str(row["metric"])


def format_number(value: float | None) -> str:
    """Formats a number: three decimals below 10, else three significant digits."""
    if value is None:
        return "?"
    return (
        f"{value:.3f}"
        if abs(value) < 10
        else f"{value:,.3g}"
        if abs(value) < 1000
        else f"{value:,.0f}"
    )
