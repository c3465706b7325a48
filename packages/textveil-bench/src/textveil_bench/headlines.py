"""A terminal table of the main metrics of rows.

In: rows. Out: lines of text.
Not here: intervals over seeds and comparisons (`estimates`), and the HTML page (`report`).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from textveil_bench.exposure import EXPOSURE_METRIC
from textveil_bench.rows import BenchRow

NAME_WIDTH = 34
"""Width of a series' name, in characters."""


def format_headlines(rows: Sequence[BenchRow], metrics: Sequence[str] = ()) -> Iterator[str]:
    """Yields a table's lines: means over seeds per series and budget.

    Each judge and attack has one column, its first headline metric.

    Args:
        rows: rows of one or several sweeps.
        metrics: names of metrics that have a column, too ("Pr@5"), in their first setting.
    """
    for data in dict.fromkeys(row["data"]["name"] for row in rows):
        data_rows = [row for row in rows if row["data"]["name"] == data]
        columns = list(_find_headlines(data_rows, metrics).values())
        yield f"{data}, {data_rows[0]['data']['examples']:,} examples"
        yield f"  {'':{NAME_WIDTH}}{'budget':>10}{'local DP':>10}" + "".join(
            f"  {column}" for column in columns
        )
        for series, budget in dict.fromkeys(
            (row["series"], _format_budget(row)) for row in data_rows
        ):
            cells = [
                row for row in data_rows if (row["series"], _format_budget(row)) == (series, budget)
            ]
            figures = "".join(
                f"  {_format_mean(cells, column):>{len(column)}}" for column in columns
            )
            yield f"  {_cut_name(series):{NAME_WIDTH}}{budget:>10}{_format_bound(cells[0]):>10}{figures}"


def _find_headlines(rows: Sequence[BenchRow], metrics: Sequence[str]) -> dict[str, str]:
    """Finds the first headline of each judge, attack and measure, and these metrics."""
    columns: dict[str, str] = {}
    for score in (score for row in rows for score in row["scores"] if score["metric"] in metrics):
        columns.setdefault(score["source"], _format_name(score))
    for score in (score for row in rows for score in row["scores"] if score["headline"]):
        if score["metric"] == EXPOSURE_METRIC or score["source"] not in columns:
            columns[score["source"]] = _format_name(score)
    return columns


def _format_name(score: BenchRow) -> str:
    setting = " ".join(map(str, score["setting"].values()))
    is_repeated = score["source"] == score["metric"].lower()
    return " ".join(
        filter(None, (score["source"], "" if is_repeated else score["metric"], setting))
    )


def _format_mean(cells: Sequence[BenchRow], column: str) -> str:
    values = [
        score["value"] for row in cells for score in row["scores"] if _format_name(score) == column
    ]
    numbers = [value for value in values if value is not None]
    return f"{np.mean(numbers):.3f}" if numbers else ""


def _format_budget(row: BenchRow) -> str:
    value = (row["budget"] or {}).get("value", "")
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)


def _format_bound(row: BenchRow) -> str:
    bound = row["epsilon"]["ldp"]
    return bound if isinstance(bound, str) else f"{bound:.4g}"


def _cut_name(name: str) -> str:
    return name if len(name) < NAME_WIDTH else name[: NAME_WIDTH - 4] + "..."
