"""A few invented opinions, as a file of a user's own and as a data set."""

import csv
from pathlib import Path

import pytest

from textveil_bench.examples import DataSet, Example

GOOD = ("splendid", "charming", "delightful", "moving")
BAD = ("tedious", "dreadful", "clumsy", "dull")
THINGS = (
    "orchard film",
    "harbor novel",
    "winter concert",
    "garden play",
    "village opera",
    "island series",
)


def opinions() -> list[tuple[str, int]]:
    """48 invented opinions with their labels, 0 for bad."""
    pairs = [(word, label) for label, words in enumerate((BAD, GOOD)) for word in words]
    return [(f"What a {word} {thing} that was", label) for thing in THINGS for word, label in pairs]


@pytest.fixture
def rated() -> DataSet:
    examples = tuple(Example(texts=(text,), label=label) for text, label in opinions())
    return DataSet(
        name="opinions",
        split="test",
        kind="classification",
        fields=("text",),
        labels=("bad", "good"),
        examples=examples,
    )


@pytest.fixture
def rated_file(tmp_path: Path) -> Path:
    path = tmp_path / "opinions.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows([text, ("bad", "good")[label]] for text, label in opinions())
    return path
