"""A user's own file as a data set: which columns have texts, labels and answers is told by options.

In: a path, a split, `Columns`. Out: a `DataSet` of all its rows.
Not here: the data sets that are known by name (`sources`), and which rows a limit takes (`loading`).
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
"""What a path has where the name of the split belongs."""

MOST, LONGEST = 100, 60
"""Different labels at most, and their characters: others are texts, and would stand in tables."""


@options()
class Columns:
    """Where a file of one's own has what.

    With `label`, one text is classified, two are a pair, and with three and more the first is a question and the others
    are its options. With `answers`, two texts are a question and what it is about. With neither there is one text.

    Attributes:
        fields: those with the texts, in order.
        label: the field with the label: of a choice the name of the right option's field, or its number from 0 on.
        labels: the names of all labels; empty: what stands in the files of all splits, sorted.
        answers: the field with the answers: a text, a list, or as SQuAD spells them.
        group: the field that says which slice a row belongs to.
    """

    fields: tuple[str, ...] = (USUAL,)
    label: str | None = None
    labels: tuple[str, ...] = ()
    answers: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        if not self.fields or len(set(self.fields)) < len(self.fields):
            raise ConfigError("fields must name a field at least, and none twice")
        if self.answers is not None and (self.label is not None or len(self.fields) != 2):
            raise ConfigError("answers goes with two texts, a question and what it is about, and no label")
        if self.answers is None and self.label is None and len(self.fields) > 1:
            raise ConfigError("several texts need a label or answers")
        if self.labels and (self.label is None or len(self.labels) < 2):
            raise ConfigError("labels goes with label, and names two labels at least")

    @property
    def kind(self) -> Kind:
        """What an example is."""
        if self.answers is not None:
            return "reading"
        if self.label is None:
            return "text"
        return ("classification", "pairs", "choice")[min(len(self.fields), 3) - 1]


def read_own(path: str, split: str, columns: Columns) -> DataSet:
    """All rows of a file.

    Args:
        path: ends in the name of a format; has `SPLIT` in it where each split has a file of its own.
        split: whatever stands there, or "test" for a path without.
        columns: what stands where.

    Raises:
        ConfigError: a split is asked for, and the path names one file for all; or the columns have no labels.
        InputError: the file, or a row of it, is not what it has to be; no message shows what is in it.
    """
    if SPLIT not in path and split != "test":
        raise ConfigError(f"the split {shown(split)} needs a file of its own: a path with {SPLIT} in it")
    labels = columns.labels
    if columns.label is not None and not labels:
        labels = columns.fields[1:] if columns.kind == "choice" else _labels(path, split, columns.label)
    chosen = _place(path, split)
    left: Counter[str] = Counter()
    return DataSet(
        name=called(path),
        split=split,
        kind=columns.kind,
        fields=columns.fields,
        labels=labels,
        examples=tuple(_examples(chosen, columns, labels, left)),
        source=Path(chosen).name,  # where it lies is nobody's business
        remarks=tuple(f"left out: {count} {what}" for what, count in left.items()),
    )


def called(path: str) -> str:
    """What a file is called in rows and on pages: its name, without the folder, the split and the ending."""
    stem = Path(path).name.partition(".")[0].replace(SPLIT, "").strip("-_ ")
    return stem or Path(path).resolve().parent.name


def _place(path: str, split: str) -> str:
    return path.replace(SPLIT, split)


def _examples(path: str, columns: Columns, labels: tuple[str, ...], left: Counter[str]) -> Iterator[Example]:
    """All rows but those with an empty label, which are counted."""
    for where, record in _rows(path):
        with within(where):
            if columns.label is not None and not _value(record, columns.label).strip():
                left["without a label"] += 1
                continue
            texts = tuple(text(record, name) for name in columns.fields)
            yield Example(
                texts=texts,
                label=None if columns.label is None else _number(record, columns, labels),
                answers=standing(answers(member(record, columns.answers)), texts[-1]) if columns.answers else (),
                group=_value(record, columns.group) if columns.group else "",
            )


def _rows(path: str) -> Iterator[tuple[str, Record]]:
    name = Path(path).name
    name = name if formats.is_plain(name) else "the file"
    if not os.path.isfile(path):
        raise InputError("a data set must be one of those known by name, or a file; no file is there under this name")
    with within(name):
        for number, record in enumerate(formats.records(Path(path)), 1):
            yield f"{name}, row {number}", record


def _value(record: Record, name: str) -> str:
    found = member(record, name)
    if isinstance(found, str | int | float):
        return str(found)
    raise InputError(f"the field {shown(name)} must have a text or a number")


def _number(record: Record, columns: Columns, labels: tuple[str, ...]) -> int:
    assert columns.label is not None
    value = _value(record, columns.label)
    if value in labels:
        return labels.index(value)
    if columns.kind == "choice":
        return number(record, columns.label, labels)
    raise InputError(f"the field {shown(columns.label)} must have a label: {', '.join(labels)}")


def _labels(path: str, split: str, name: str) -> tuple[str, ...]:
    """The labels in the files of all splits, so that a label has the same number in each; numbers by their size."""
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
                    f"label must have {MOST} different values at most, none above {LONGEST} characters; is it a text?"
                )
    return tuple(
        sorted(found, key=lambda label: (not label.isdecimal(), int(label) if label.isdecimal() else 0, label))
    )
