"""What the verbs that judge releases share: the texts and labels of a file, and tables of rates.

In: a file's name, rows of plain data. Out: texts; tables on standard output.
Not here: what other verbs share with them (`textveil.cli.evaluation`), and what is measured
(`attack`, `measure`).
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textveil.cli.evaluation import check_limit, read_rows, read_texts
from textveil.errors import ConfigError, InputError, quote, quote_file
from textveil.files import formats, streams

if TYPE_CHECKING:
    from rich.table import Table

    from textveil.config import Config
    from textveil.config.registry import RegistryKind

RateRow = Mapping[str, Any]

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
ByOption = Annotated[
    bool, typer.Option("--by", help="Also by group, word frequency and text length.")
]

MAX_LISTED_RATES = 4
"""A note on all of more rates does not list them."""


def read_other_texts(path: str, file: str, field: str | None) -> list[str]:
    """The texts of another file; of the field that the first one has them in, where both are files of one kind.

    Args:
        path: the other file.
        file: the first one.
        field: which of its fields has the texts.

    Raises:
        InputError, ConfigError: as for `texts`.
    """
    kinds = [suffix and suffix[0] for suffix in map(formats.parse_suffix, (file, path))]
    same_kind = kinds[0] == kinds[1] is not None and formats.load_format(kinds[1]).has_fields
    return read_texts(path, field if same_kind else None)


def read_labelled_texts(
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
    pairs = zip(read_rows(path, field), read_rows(path, label, "--label"), strict=True)
    labelled_texts = [
        (text, value) for text, value in pairs if text and text.strip() and value and value.strip()
    ][:limit]
    if not labelled_texts:
        raise InputError(f"{quote_file(path)} has no text with a label in the field {quote(label)}")
    return [text for text, _ in labelled_texts], [value for _, value in labelled_texts]


def require_judgeable(config: "Config") -> None:
    """Refuse what attacks and measures cannot judge, before anything is loaded.

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
    """The attacks or measures that are run where none is named."""
    from textveil.config import registry

    return [
        name
        for name in registry.list_names(kind)
        if not getattr(registry.load(kind, name), "on_request", False)
    ]


def format_skipped(kind: "RegistryKind", names: Sequence[str], option: str) -> str:
    """Says which attacks or measures were left out because nobody asked for them; nothing if none was."""
    from textveil.config import registry

    skipped = [name for name in registry.list_names(kind) if name not in names]
    return (
        f"Not run, because not asked for: {', '.join(skipped)}. {option} all runs them, too."
        if skipped
        else ""
    )


def build_run_info(config: "Config", file: str) -> dict[str, Any]:
    """What findings say of themselves: the configuration without its seed, and the file's name."""
    from textveil import __version__

    options = config.dump_public()
    seeded = options.pop("seed") is not None
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
        cells.append(format_metric(row))
        if by:
            cells += ["" if row["slice"] == "all" else row["slice"], row["part"]]
        has_interval = (
            row["low"] is not None or row["high"] is not None
        )  # of a single text no interval follows
        cells += [
            format_number(row["value"]),
            f"{format_number(row['low'])} to {format_number(row['high'])}"
            if has_interval
            else "none",
        ]
        if baseline:
            cells.append("" if row["baseline"] is None else format_number(row["baseline"]))
        table.add_row(*cells, f"{row['n']:,}")
    print_table(table)


def print_table(table: "Table") -> None:
    """Print a table on standard output, as wide as it is where nobody sees an edge."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(
            console.width,
            console.measure(table, options=console.options.update(width=1000)).maximum,
        )
    with streams.convert_write_errors():
        console.print(table)


def list_notes(document: Mapping[str, Any]) -> list[str]:
    """What one has to know about the headline rates, each said once, and about private words that no rate counts."""
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
        (document["passed_unprotected"], "passed as they were, so everyone has them"),
        (
            document["placeholders"],
            "became placeholders, so nobody learns more than where they stood",
        ),
    ):
        if count:
            lines.append(
                f"{count:,} more private words are not counted in rates of words: they {fate}."
            )
    return lines


def format_metric(row: RateRow) -> str:
    """A metric with what tells it from others of the same name."""
    setting = ", ".join(
        [*(["names"] if row.get("unit") == "name" else []), *map(str, row["setting"].values())]
    )
    return f"{row['metric']} ({setting})" if setting else str(row["metric"])


def format_number(value: float | None) -> str:
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
