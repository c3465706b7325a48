"""The headlines of rows, as a table for a terminal.

In: rows. Out: lines of text.
Not here: intervals over seeds and comparisons (`estimates`), and the page (`report`).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from textveil_bench.exposure import METRIC
from textveil_bench.rows import Row

WIDTH = 34
"""Width of a series name."""


def headlines(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each series and budget: the mean over seeds of the first figure of each judge and attack.

    Args:
        rows: of one sweep or several.
    """
    for data in dict.fromkeys(row["data"]["name"] for row in rows):
        own = [row for row in rows if row["data"]["name"] == data]
        columns = list(_first(own).values())
        yield f"{data}, {own[0]['data']['examples']:,} examples"
        yield f"  {'':{WIDTH}}{'budget':>10}{'local DP':>10}" + "".join(
            f"  {column}" for column in columns
        )
        for series, budget in dict.fromkeys((row["series"], _budget(row)) for row in own):
            cells = [row for row in own if (row["series"], _budget(row)) == (series, budget)]
            figures = "".join(f"  {_mean(cells, column):>{len(column)}}" for column in columns)
            yield f"  {_cut(series):{WIDTH}}{budget:>10}{_bound(cells[0]):>10}{figures}"


def _first(rows: Sequence[Row]) -> dict[str, str]:
    """The first headline of each judge, attack and measure; the page has all of them."""
    found: dict[str, str] = {}
    for score in (score for row in rows for score in row["scores"] if score["headline"]):
        if score["metric"] == METRIC or score["source"] not in found:
            found[score["source"]] = _name(score)
    return found


def _name(score: Row) -> str:
    setting = " ".join(map(str, score["setting"].values()))
    twice = score["source"] == score["metric"].lower()
    return " ".join(filter(None, (score["source"], "" if twice else score["metric"], setting)))


def _mean(cells: Sequence[Row], column: str) -> str:
    found = [score["value"] for row in cells for score in row["scores"] if _name(score) == column]
    known = [value for value in found if value is not None]
    return f"{np.mean(known):.3f}" if known else ""


def _budget(row: Row) -> str:
    value = (row["budget"] or {}).get("value", "")
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)


def _bound(row: Row) -> str:
    found = row["epsilon"]["ldp"]
    return found if isinstance(found, str) else f"{found:.4g}"


def _cut(name: str) -> str:
    return name if len(name) < WIDTH else name[: WIDTH - 4] + "..."
