"""A file of your own as a data set; options say which columns have texts, labels and answers.

In: a path, a split, `Columns`. Out: a `DataSet` of all its rows.
Not here: named data sets (`sources`), and which rows a limit takes (`loading`).
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from textveil.config import options
from textveil.errors import ConfigError, InputError, shown
from textveil.files import USUAL, formats
from textveil_bench.data.records import Record, answers, member, number, standing, text, within
from textveil_bench.examples import DataSet, Example, Kind

SPLIT = "{split}"
"""Stands for the name of the split in a path."""

MOST, LONGEST = 100, 60
"""Most different labels, and most characters in one: more suggests texts, which must not appear in tables."""


@options()
class Columns:
    """The columns of a file of your own.

    With `label`, one text is classified, two are a pair, and of three or more the first is a question and the others
    are its options. With `answers`, the two texts are a question and its context. With neither, there is one text.

    Attributes:
        fields: the columns with texts, in order.
        label: the column with the label; for a choice, the name of the right option's field or its index from 0.
        labels: the names of all labels; empty: those in the files of all splits, sorted.
        answers: the column with the answers: a text, a list, or as in SQuAD.
        group: the column with the slice that a row belongs to.
    """

    fields: tuple[str, ...] = (USUAL,)
    label: str | None = None
    labels: tuple[str, ...] = ()
    answers: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        if not self.fields or len(set(self.fields)) < len(self.fields):
            raise ConfigError("fields must name one or more different columns")
        if self.answers is not None and (self.label is not None or len(self.fields) != 2):
            raise ConfigError("answers needs two fields, a question and its context, and no label")
        if self.answers is None and self.label is None and len(self.fields) > 1:
            raise ConfigError("several fields need a label or answers")
        if self.labels and (self.label is None or len(self.labels) < 2):
            raise ConfigError("labels needs a label, and at least two names")

    @property
    def kind(self) -> Kind:
        """The kind of the examples."""
        if self.answers is not None:
            return "reading"
        if self.label is None:
            return "text"
        return ("classification", "pairs", "choice")[min(len(self.fields), 3) - 1]


def read_own(path: str, split: str, columns: Columns) -> DataSet:
    """All rows of a file.

    Args:
        path: ends in the suffix of a format; contains `SPLIT` if each split has its own file.
        split: what to insert there, or "test" for a path without it.
        columns: the columns to read.

    Raises:
        ConfigError: a split is requested but the path has one file for all; or the columns have no labels.
        InputError: the file or a row has the wrong form; no message shows its content.
    """
    if SPLIT not in path and split != "test":
        raise ConfigError(
            f"the split {shown(split)} needs its own file: use a path with {SPLIT} in it"
        )
    labels = columns.labels
    if columns.label is not None and not labels:
        labels = (
            columns.fields[1:] if columns.kind == "choice" else _labels(path, split, columns.label)
        )
    chosen = _place(path, split)
    left: Counter[str] = Counter()
    return DataSet(
        name=called(path),
        split=split,
        kind=columns.kind,
        fields=columns.fields,
        labels=labels,
        examples=tuple(_examples(chosen, columns, labels, left)),
        source=Path(chosen).name,  # without the folder, which is private
        remarks=tuple(f"left out: {count} {what}" for what, count in left.items()),
    )


def called(path: str) -> str:
    """A file's name in rows and on pages, without folder, split and suffix."""
    stem = Path(path).name.partition(".")[0].replace(SPLIT, "").strip("-_ ")
    return stem or Path(path).resolve().parent.name


def _place(path: str, split: str) -> str:
    return path.replace(SPLIT, split)


def _examples(
    path: str, columns: Columns, labels: tuple[str, ...], left: Counter[str]
) -> Iterator[Example]:
    """All rows except those with an empty label, which are counted."""
    for where, record in _rows(path):
        with within(where):
            if columns.label is not None and not _value(record, columns.label).strip():
                left["without a label"] += 1
                continue
            texts = tuple(text(record, name) for name in columns.fields)
            yield Example(
                texts=texts,
                label=None if columns.label is None else _number(record, columns, labels),
                answers=standing(answers(member(record, columns.answers)), texts[-1])
                if columns.answers
                else (),
                group=_value(record, columns.group) if columns.group else "",
            )


def _rows(path: str) -> Iterator[tuple[str, Record]]:
    name = Path(path).name
    name = name if formats.is_plain(name) else "the file"
    if not os.path.isfile(path):
        raise InputError(
            "there is no data set and no file of this name; give one of the known names, or a path"
        )
    with within(name):
        for number, record in enumerate(formats.records(Path(path)), 1):
            yield f"{name}, row {number}", record


def _value(record: Record, name: str) -> str:
    found = member(record, name)
    if isinstance(found, str | int | float):
        return str(found)
    raise InputError(f"the field {shown(name)} must hold a text or a number")


def _number(record: Record, columns: Columns, labels: tuple[str, ...]) -> int:
    assert columns.label is not None
    value = _value(record, columns.label)
    if value in labels:
        return labels.index(value)
    if columns.kind == "choice":
        return number(record, columns.label, labels)
    raise InputError(f"the field {shown(columns.label)} must hold a label: {', '.join(labels)}")


def _labels(path: str, split: str, name: str) -> tuple[str, ...]:
    """The labels in the files of all splits, so that a label has the same index in each; numbers by size."""
    places = {_place(path, each) for each in (split, "train", "test")}
    found: set[str] = set()
    for place in (each for each in places if os.path.isfile(each) or each == _place(path, split)):
        for where, record in _rows(place):
            with within(where):
                label = _value(record, name)
            if label.strip():
                found.add(label)
            if len(found) > MOST or len(label) > LONGEST:
                raise ConfigError(
                    f"label must have at most {MOST} different values of at most {LONGEST} characters; is it a text?"
                )
    return tuple(
        sorted(
            found,
            key=lambda label: (
                not label.isdecimal(),
                int(label) if label.isdecimal() else 0,
                label,
            ),
        )
    )
