"""Fills the tables of the documents from the stored rows: no number in them is typed.

In: benchmarks/rows/*.jsonl. Out: the newest row of every measurement, between marks like `<!-- bench decode -->`.
Not here: measuring (`run`).
"""

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows" / "speed.jsonl"
RATES = HERE / "rows" / "rates.jsonl"
DOCUMENTS = tuple(sorted((HERE.parent / "docs" / "guide").glob("*.md")))
_MARKED = re.compile(r"(<!-- bench ([a-z]+) -->\n).*?(<!-- end of bench -->)", re.DOTALL)
_RATES = re.compile(r"(<!-- rates ([^|\n]+)\|([^\n]+?) -->\n).*?(<!-- end of bench -->)", re.DOTALL)


def newest(rows: list[dict[str, Any]], part: str) -> list[dict[str, Any]]:
    """Of every measurement of a part ("decode, ..."), the row that was written last, in the order of the first ones."""
    latest = {row["what"]: row for row in rows if row["what"].startswith(f"{part}, ")}
    return list(latest.values())


def table(rows: list[dict[str, Any]], part: str) -> str:
    """The newest rows of a part as a Markdown table."""
    lines = ["| what | value | unit | threads | commit |", "|---|---|---|---|---|"]
    lines += [
        f"| {row['what'].removeprefix(f'{part}, ')} | {_spell(row['value'])} | {row['unit']} | {row['threads']} "
        f"| {row['commit'][:7]}{'+' * row['commit'].endswith('+')} |"
        for row in newest(rows, part)
    ]
    return "\n".join(lines) + "\n"


def matrix(rows: list[dict[str, Any]], part: str, columns: list[str]) -> str:
    """Newest rows of a part as a Markdown table: a line for each release, a column for each metric."""
    found = newest(rows, part)
    lines = [f"| release | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]
    for release in dict.fromkeys(row["release"] for row in found):
        cells = {row["metric"]: row for row in found if row["release"] == release}
        lines.append(f"| {release} | {' | '.join(_rate(cells.get(column)) for column in columns)} |")
    return "\n".join(lines) + "\n"


def fill(text: str, rows: list[dict[str, Any]]) -> str:
    """A document with the tables of the rows between its marks.

    `<!-- bench decode -->` is a table of a part; `<!-- rates attacks, SST-2 dev | metric | metric -->` a matrix of one.
    """
    text = _MARKED.sub(lambda match: f"{match[1]}\n{table(rows, match[2])}\n{match[3]}", text)
    return _RATES.sub(
        lambda match: f"{match[1]}\n{matrix(rows, match[2].strip(), _columns(match[3]))}\n{match[4]}", text
    )


def stored() -> list[dict[str, Any]]:
    """All rows, the oldest first."""
    files = [path for path in (ROWS, RATES) if path.exists()]
    return [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]


def write() -> None:
    """Fills all documents."""
    for document in DOCUMENTS:
        before = document.read_text(encoding="utf-8")
        after = fill(before, stored())
        if after != before:
            document.write_text(after, encoding="utf-8")


def _columns(typed: str) -> list[str]:
    return [column.strip() for column in typed.split("|")]


def _rate(row: dict[str, Any] | None) -> str:
    """A rate with its interval."""
    if row is None:
        return ""
    digits = 3 if abs(row["value"]) < 10 else 1
    ends = "" if row["low"] is None else f" ({row['low']:.{digits}f} to {row['high']:.{digits}f})"
    return f"{row['value']:.{digits}f}{ends}"


def _spell(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


if __name__ == "__main__":
    write()
