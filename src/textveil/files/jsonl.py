"""The format .jsonl: a JSON object per line.

One of its fields is the text.

In: a file and which field of it. Out: its texts; the file with others, byte for byte the same
around them.
Not here: how files are opened and found (`formats`).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, ClassVar

from textveil.errors import ConfigError, InputError, listed, quote
from textveil.files.contract import USUAL, TextColumns
from textveil.files.fields import Holds, UnknownField, only
from textveil.files.pieces import FieldCell, FileHead, Numbered, Pieces, Row, lines
from textveil.files.streams import json_line

Member = tuple[Any, Any, int, int]
"""A field: its name, its value, and the value's bounds."""


class JsonLines(Pieces):
    """JSON lines; blank lines are copied, and rows may differ in their fields."""

    fields: ClassVar[bool] = True

    def field(self, file: BinaryIO, wanted: str | None) -> str | None:
        """Returns the wanted field, or the first row's text field.

        That is `text`, or the only one with strings.
        """
        for number, line in lines(file)[1]:
            if wanted is None and not _is_blank(line):
                members = _read_members(line, number)  # each row is checked when it is read
                found = [(str(name), _classify(line[start])) for name, _, start, _ in members]
                return USUAL if USUAL in dict(found) else only(found)
        return wanted

    def pieces(self, lines: Numbered, columns: TextColumns, head: FileHead) -> Iterator[str | Row]:
        """Yields a row for each object."""
        for number, line in lines:
            yield line if _is_blank(line) else _build_row(number, line, columns)

    def joined(self, cells: Mapping[str, str]) -> str:
        """Joins fields to an object on one line."""
        return "{" + ", ".join(f"{_spell(name)}: {value}" for name, value in cells.items()) + "}\n"

    def records(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        """Yields the objects."""
        for number, line in lines(file)[1]:
            if not _is_blank(line):
                yield _read_object(line, number)


def _is_blank(line: str) -> bool:
    return not line.strip(" \t\r\n")


def _read_object(line: str, number: int) -> dict[str, Any]:
    try:
        result = json.loads(line)
    except (ValueError, RecursionError):
        result = None
    if not isinstance(result, dict):
        raise InputError(f"line {number} must be a JSON object")
    return result


def _build_row(number: int, line: str, columns: TextColumns) -> Row:
    members = _read_members(line, number)
    asked = {*columns.texts, *columns.labels}
    others = [each for each in members if each[0] not in asked]
    _confirm(number, line, columns, others)
    cells = {name: _build_cell(number, line, columns, members, name) for name in asked}
    rest = [value if isinstance(value, str) else line[start:end] for _, value, start, end in others]
    return Row(line, cells, tuple(str(name) for name, *_ in others), rest)


def _confirm(number: int, line: str, columns: TextColumns, others: Sequence[Member]) -> None:
    """Refuses a row where the guessed text field is ambiguous.

    Another field could have the texts as well.
    """
    more = [
        name
        for name, _, at, _ in others
        if name == USUAL or _classify(line[at]) is not Holds.OTHERS
    ]
    if columns.guessed and more:
        both = listed([*columns.texts, *more])
        raise ConfigError(
            f"--field is needed: in line {number} another field has strings too: {both}"
        )


def _build_cell(
    number: int, line: str, columns: TextColumns, members: Sequence[Member], name: str
) -> FieldCell:
    found = [each for each in members if each[0] == name]
    if len(found) != 1:
        raise UnknownField(name, [str(each) for each, *_ in members], len(found), number)
    _, value, start, end = found[0]
    if name in columns.labels and _WHOLE.fullmatch(line, start, end):
        value = line[start:end]
    if not _is_valid(value):
        text = name in columns.texts
        kinds = "a string of valid Unicode" if text else "a string, a whole number"
        raise InputError(f"the field {quote(name)} in line {number} must be {kinds}, or null")
    return FieldCell(start, end, value, _spell)


def _is_valid(value: object) -> bool:
    return value is None or (isinstance(value, str) and not _SURROGATE.search(value))


def _spell(text: str) -> str:
    return json_line(text).removesuffix("\n")


_WHOLE = re.compile(r"-?[0-9]+")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _classify(mark: str) -> Holds:
    """Returns the kind of a value, by its first character."""
    return Holds.STRINGS if mark == '"' else Holds.DOUBT if mark in "[{" else Holds.OTHERS


# ---- objects on one line -------------------------------------------------------------------------

# Values of other fields are walked over, not kept; numbers stay strings, so that none is too long.
_DECODER = json.JSONDecoder(
    object_pairs_hook=bool, parse_int=bool, parse_float=bool, parse_constant=bool
)
_MARKS = {mark: re.compile(rf"[ \t\r\n]*{re.escape(mark)}[ \t\r\n]*") for mark in "{:,}"}


def _read_members(line: str, number: int) -> list[Member]:
    """Reads the fields of an object on one line.

    And where each value begins and ends.
    """
    try:
        return list(_walk(line))
    except (ValueError, RecursionError):
        pass
    # out here, because the other error holds the line
    raise InputError(f"line {number} must be a JSON object")


def _walk(line: str) -> Iterator[Member]:
    at = _skip_mark("{", line, 0)
    more = line.startswith('"', at)
    while more:
        name, end = _DECODER.raw_decode(line, at)
        if not isinstance(name, str):
            raise ValueError
        start = _skip_mark(":", line, end)
        value, at = _DECODER.raw_decode(line, start)
        yield name, value, start, at
        more = _MARKS[","].match(line, at) is not None
        if more:
            at = _skip_mark(",", line, at)
    if _skip_mark("}", line, at) != len(line):
        raise ValueError


def _skip_mark(mark: str, line: str, at: int) -> int:
    """Returns the place after a mark and the spaces around it."""
    found = _MARKS[mark].match(line, at)
    if found is None:
        raise ValueError
    return found.end()
