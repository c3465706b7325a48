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
    listed,
    looks_private,
    nearest,
    quote,
    quote_file,
)
from textveil.files.contract import USUAL

WORDS = 6
"""The most words of a column's name.

More are a text, which may be there where a file has no line of names.
"""


class UnknownField(UnknownName):
    """The error for a name that a file lacks or repeats.

    A file, or a line of it, does not have exactly one field of this name.

    Args:
        name: the field asked for.
        known: the fields that there are and may be shown.
        count: how many have the name.
        line: the line; None where the file says for all lines which columns there are.
        file: its path.
        option: the option that names the field.
    """

    def __init__(
        self,
        name: str,
        known: Sequence[str],
        count: int = 0,
        line: int | None = None,
        file: object = None,
        option: str = "",
    ) -> None:
        what = "column" if line is None else "field"
        super().__init__(what, name, known)
        self._found = (name, known, count, line)
        there = "the file" if file is None else quote_file(file)[1:-1]
        there = (
            there if line is None else f"line {line}" if file is None else f"line {line} of {there}"
        )
        near = nearest(name, known) if not count else None
        said = f"{there} has {f'{count} {what}s' if count else f'no {what}'} {quote(name)}{option and f' ({option})'}"
        said += f"; did you mean {near!r}?" if near else "."
        self.args = (
            f"{said} {what.capitalize()}s: {listed(known)}" if known else said.rstrip("."),
        )

    def at(self, file: object, option: str) -> "UnknownField":
        """Returns the error with the file and the option named."""
        return UnknownField(*self._found, file, option)

    def __reduce__(self) -> Any:
        return UnknownField, self._found


def titles(names: Sequence[str]) -> list[str]:
    """Returns the columns of a first line that may be shown.

    None where it looks like a row and not like a line of names.
    """
    if any(looks_private(name) or _NUMBER.fullmatch(name) for name in names):
        return []
    return [name for name in names if len(name.split()) <= WORDS]


_NUMBER = re.compile(r"\s*[-+]?[\d.,]+\s*")


class Holds(Enum):
    """The kinds of contents that a field can hold."""

    STRINGS = "strings"
    DOUBT = "strings, but not as texts stand in the format"
    OTHERS = "numbers and the like"


def only(fields: Sequence[tuple[str, Holds]]) -> str:
    """Returns the only field that can have strings.

    Raises:
        ConfigError: there is none, or more than one that can.
    """
    found = [(name, holds) for name, holds in fields if holds is not Holds.OTHERS]
    if len(found) != 1 or found[0][1] is not Holds.STRINGS:
        raise ConfigError(
            f"--field is needed: there is no field {USUAL}, and more or less than one field with strings "
            f"({len(found)} to choose from: {listed(name for name, _ in found)})"
        )
    return found[0][0]
