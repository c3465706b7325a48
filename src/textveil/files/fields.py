"""Choosing a file's text field, and errors for missing fields.

Where a format knows what its fields can hold.

In: what each field can hold. Out: the field with the texts; `UnknownField`, which names one and
those that are there.
Not here: how a format finds out what a field can hold (`jsonl`, `parquet`).
"""

import re
from collections.abc import Sequence
from enum import Enum
from typing import Any

from textveil.errors import (
    ConfigError,
    UnknownName,
    find_nearest,
    has_private_form,
    list_names,
    quote,
    quote_file,
)
from textveil.files.format_contract import DEFAULT_FIELD

MAX_NAME_WORDS = 6
"""The most words of a column's name.

More are a text, which may be there where a file has no line of names.
"""


class UnknownField(UnknownName):
    """The error for a name that a file lacks or repeats.

    A file, or a line of it, does not have exactly one field of this name.

    Args:
        name: the field asked for.
        known_names: the fields that there are and may be shown.
        count: how many have the name.
        line: the line; None where the file says for all lines which columns there are.
        file: its path.
        option: the option that names the field.
    """

    def __init__(
        self,
        name: str,
        known_names: Sequence[str],
        count: int = 0,
        line: int | None = None,
        file: object = None,
        option: str = "",
    ) -> None:
        kind = "column" if line is None else "field"
        super().__init__(kind, name, known_names)
        self._details = (name, known_names, count, line)
        place = "the file" if file is None else quote_file(file)[1:-1]
        place = (
            place if line is None else f"line {line}" if file is None else f"line {line} of {place}"
        )
        near = find_nearest(name, known_names) if not count else None
        message = (
            f"{place} has {f'{count} {kind}s' if count else f'no {kind}'} "
            f"{quote(name)}{option and f' ({option})'}"
        )
        message += f"; did you mean {near!r}?" if near else "."
        self.args = (
            f"{message} {kind.capitalize()}s: {list_names(known_names)}"
            if known_names
            else message.rstrip("."),
        )

    def add_file(self, file: object, option: str) -> "UnknownField":
        """Returns the error with the file and the option named."""
        return UnknownField(*self._details, file, option)

    def __reduce__(self) -> Any:
        return UnknownField, self._details


def list_titles(names: Sequence[str]) -> list[str]:
    """Returns the columns of a first line that may be shown.

    None where it looks like a row and not like a line of names.
    """
    if any(has_private_form(name) or _NUMBER.fullmatch(name) for name in names):
        return []
    return [name for name in names if len(name.split()) <= MAX_NAME_WORDS]


_NUMBER = re.compile(r"\s*[-+]?[\d.,]+\s*")


class FieldContents(Enum):
    """The kinds of contents that a field can hold."""

    STRINGS = "strings"
    DOUBT = "strings, but not as texts stand in the format"
    OTHERS = "numbers and the like"


def find_only(fields: Sequence[tuple[str, FieldContents]]) -> str:
    """Returns the only field that can have strings.

    Raises:
        ConfigError: there is none, or more than one that can.
    """
    candidates = [(name, holds) for name, holds in fields if holds is not FieldContents.OTHERS]
    if len(candidates) != 1 or candidates[0][1] is not FieldContents.STRINGS:
        raise ConfigError(
            f"--field is needed: there is no field {DEFAULT_FIELD}, and not exactly one field with "
            f"strings ({len(candidates)} to choose from: "
            f"{list_names(name for name, _ in candidates)})"
        )
    return candidates[0][0]
