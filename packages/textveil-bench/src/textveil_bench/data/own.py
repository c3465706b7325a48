"""Files of your own as data sets, with options for their columns.

In: a path, a split, `Columns`. Out: a `DataSet` of all its rows.
Not here: named data sets (`sources`), and the rows within a limit (`loading`).
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from textveil.config import make_options
from textveil.errors import ConfigError, InputError, quote_short
from textveil.files import DEFAULT_FIELD, formats
from textveil_bench.data.records import (
    Record,
    add_location,
    get_field,
    parse_answers,
    read_label,
    read_text,
    require_answers,
)
from textveil_bench.examples import DataSet, Example, ExampleKind

SPLIT = "{split}"
"""Placeholder for the name of the split in a path."""

MAX_LABELS, MAX_LABEL_CHARACTERS = 100, 60
"""Maximum number of labels, and of characters in one.

More suggests texts, which must not appear in tables.
"""


@make_options()
class Columns:
    """The columns of a file of your own.

    With `label`, one text is classified, two are a pair, and of three or more the first is a
    question and the others are its options. With `answers`, the two texts are a question and its
    context. With neither, there is one text.

    Attributes:
        fields: the columns with texts, in order.
        label: the column with the label; for a choice, the name of the right option's field or its
            index from 0.
        labels: the names of all labels; empty: those in the files of all splits, sorted.
        answers: the column with the answers: a text, a list, or as in SQuAD.
        group: the column with the slice that a row belongs to.
    """

    fields: tuple[str, ...] = (DEFAULT_FIELD,)
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
    def kind(self) -> ExampleKind:
        """The kind of the examples."""
        if self.answers is not None:
            return "reading"
        if self.label is None:
            return "text"
        return ("classification", "pairs", "choice")[min(len(self.fields), 3) - 1]


def read_data_file(path: str, split: str, columns: Columns) -> DataSet:
    """Reads all rows of a file.

    Args:
        path: ends in the suffix of a format; contains `SPLIT` if each split has its own file.
        split: the name to insert there, or "test" for a path without it.
        columns: the columns to read.

    Raises:
        ConfigError: a split is requested but the path has one file for all; or the columns have no
            labels.
        InputError: the file or a row has the wrong form; no message shows its content.
    """
    if SPLIT not in path and split != "test":
        raise ConfigError(
            f"the split {quote_short(split)} needs its own file: use a path with {SPLIT} in it"
        )
    labels = columns.labels
    if columns.label is not None and not labels:
        labels = (
            columns.fields[1:]
            if columns.kind == "choice"
            else _list_labels(path, split, columns.label)
        )
    split_path = _fill_split(path, split)
    drop_counts: Counter[str] = Counter()
    return DataSet(
        name=get_data_name(path),
        split=split,
        kind=columns.kind,
        fields=columns.fields,
        labels=labels,
        examples=tuple(_read_examples(split_path, columns, labels, drop_counts)),
        source=Path(split_path).name,  # without the folder, which is private
        remarks=tuple(f"left out: {count} {reason}" for reason, count in drop_counts.items()),
    )


def get_data_name(path: str) -> str:
    """Returns a file's name for display, without folder, split and suffix."""
    stem = Path(path).name.partition(".")[0].replace(SPLIT, "").strip("-_ ")
    return stem or Path(path).resolve().parent.name


def _fill_split(path: str, split: str) -> str:
    return path.replace(SPLIT, split)


def _read_examples(
    path: str, columns: Columns, labels: tuple[str, ...], drop_counts: Counter[str]
) -> Iterator[Example]:
    """Yields all rows except those with an empty label, which are counted."""
    for location, record in _read_rows(path):
        with add_location(location):
            if columns.label is not None and not _read_value(record, columns.label).strip():
                drop_counts["without a label"] += 1
                continue
            texts = tuple(read_text(record, name) for name in columns.fields)
            yield Example(
                texts=texts,
                label=None if columns.label is None else _find_label(record, columns, labels),
                answers=require_answers(
                    parse_answers(get_field(record, columns.answers)), texts[-1]
                )
                if columns.answers
                else (),
                group=_read_value(record, columns.group) if columns.group else "",
            )


def _read_rows(path: str) -> Iterator[tuple[str, Record]]:
    name = Path(path).name
    name = name if formats.is_plain(name) else "the file"
    if not os.path.isfile(path):
        raise InputError(
            "there is no data set and no file of this name; give one of the known names, or a path"
        )
    with add_location(name):
        for number, record in enumerate(formats.read_records(Path(path)), 1):
            yield f"{name}, row {number}", record


def _read_value(record: Record, name: str) -> str:
    value = get_field(record, name)
    if isinstance(value, str | int | float):
        return str(value)
    raise InputError(f"the field {quote_short(name)} must hold a text or a number")


def _find_label(record: Record, columns: Columns, labels: tuple[str, ...]) -> int:
    assert columns.label is not None
    value = _read_value(record, columns.label)
    if value in labels:
        return labels.index(value)
    if columns.kind == "choice":
        return read_label(record, columns.label, labels)
    raise InputError(
        f"the field {quote_short(columns.label)} must hold a label: {', '.join(labels)}"
    )


def _list_labels(path: str, split: str, name: str) -> tuple[str, ...]:
    """Lists the labels in the files of all splits, numbers by value.

    A label so has the same index in each split.
    """
    places = {_fill_split(path, candidate) for candidate in (split, "train", "test")}
    labels: set[str] = set()
    for place in (
        candidate
        for candidate in places
        if os.path.isfile(candidate) or candidate == _fill_split(path, split)
    ):
        for location, record in _read_rows(place):
            with add_location(location):
                label = _read_value(record, name)
            if label.strip():
                labels.add(label)
            if len(labels) > MAX_LABELS or len(label) > MAX_LABEL_CHARACTERS:
                raise ConfigError(
                    f"label must have at most {MAX_LABELS} different values of at most "
                    f"{MAX_LABEL_CHARACTERS} characters; is it a text?"
                )
    return tuple(
        sorted(
            labels,
            key=lambda label: (
                not label.isdecimal(),
                int(label) if label.isdecimal() else 0,
                label,
            ),
        )
    )
