"""Fills the tables of the documents from the stored rows: no number in them is typed.

In: benchmarks/rows/speed.jsonl. Out: the newest row of every measurement, between marks like `<!-- bench decode -->`.
Not here: measuring (`run`).
"""

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows" / "speed.jsonl"
DOCUMENTS = tuple(sorted((HERE.parent / "docs" / "guide").glob("*.md")))
_MARKED = re.compile(r"(<!-- bench ([a-z]+) -->\n).*?(<!-- end of bench -->)", re.DOTALL)


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


def fill(text: str, rows: list[dict[str, Any]]) -> str:
    """A document with the tables of the rows between its marks."""
    return _MARKED.sub(lambda match: f"{match[1]}\n{table(rows, match[2])}\n{match[3]}", text)


def stored() -> list[dict[str, Any]]:
    """All rows, the oldest first."""
    return [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]


def write() -> None:
    """Fills all documents."""
    for document in DOCUMENTS:
        before = document.read_text(encoding="utf-8")
        after = fill(before, stored())
        if after != before:
            document.write_text(after, encoding="utf-8")


def _spell(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


if __name__ == "__main__":
    write()
