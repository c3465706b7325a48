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

from textveil.errors import ConfigError, InputError, list_names, quote
from textveil.files.fields import FieldContents, UnknownField, find_only
from textveil.files.format_contract import DEFAULT_FIELD, TextColumns
from textveil.files.pieces import (
    FieldCell,
    FileHead,
    FileRow,
    LineFormat,
    NumberedLines,
    open_lines,
)
from textveil.files.text_streams import format_json_line

JsonMember = tuple[Any, Any, int, int]
"""A field: its name, its value, and the value's bounds."""


class JsonLines(LineFormat):
    """JSON lines; blank lines are copied, and rows may differ in their fields."""

    has_fields: ClassVar[bool] = True

    def find_field(self, file: BinaryIO, wanted: str | None) -> str | None:
        """Returns the wanted field, or the first row's text field.

        That is `text`, or the only one with strings.
        """
        for number, line in open_lines(file)[1]:
            if wanted is None and not _is_blank(line):
                members = _read_members(line, number)  # each row is checked when it is read
                kinds = [(str(name), _classify(line[start])) for name, _, start, _ in members]
                return DEFAULT_FIELD if DEFAULT_FIELD in dict(kinds) else find_only(kinds)
        return wanted

    def split_pieces(
        self, lines: NumberedLines, columns: TextColumns, head: FileHead
    ) -> Iterator[str | FileRow]:
        """Yields a row for each object."""
        for number, line in lines:
            yield line if _is_blank(line) else _build_row(number, line, columns)

    def join_row(self, cells: Mapping[str, str]) -> str:
        """Joins fields to an object on one line."""
        return "{" + ", ".join(f"{_spell(name)}: {value}" for name, value in cells.items()) + "}\n"

    def read_records(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        """Yields the objects."""
        for number, line in open_lines(file)[1]:
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


def _build_row(number: int, line: str, columns: TextColumns) -> FileRow:
    members = _read_members(line, number)
    names = columns.all
    other_members = [member for member in members if member[0] not in names]
    _confirm_field(number, line, columns, other_members)
    present = {str(name) for name, *_ in members} | {*columns.texts, *columns.labels}
    cells = {
        name: _build_cell(number, line, columns, members, name) for name in names if name in present
    }
    other_values = [
        value if isinstance(value, str) else line[start:end]
        for _, value, start, end in other_members
    ]
    return FileRow(line, cells, tuple(str(name) for name, *_ in other_members), other_values)


def _confirm_field(
    number: int, line: str, columns: TextColumns, other_members: Sequence[JsonMember]
) -> None:
    """Refuses a row where the guessed text field is ambiguous.

    Another field could have the texts as well.
    """
    candidates = [
        name
        for name, _, at, _ in other_members
        if name == DEFAULT_FIELD or _classify(line[at]) is not FieldContents.OTHERS
    ]
    if columns.guessed and candidates:
        names = list_names([*columns.texts, *candidates])
        raise ConfigError(
            f"--field is needed: in line {number} another field has strings too: {names}"
        )


def _build_cell(
    number: int, line: str, columns: TextColumns, members: Sequence[JsonMember], name: str
) -> FieldCell:
    matches = [item for item in members if item[0] == name]
    if len(matches) != 1:
        raise UnknownField(name, [str(item) for item, *_ in members], len(matches), number)
    _, value, start, end = matches[0]
    # The decoder kept nothing of a number (`_DECODER`), so its digits come from the line.
    is_copied = name not in columns.texts and name not in columns.labels
    is_spelled = is_copied and not (value is None or isinstance(value, str))
    if is_spelled or (name in columns.labels and _WHOLE.fullmatch(line, start, end)):
        value = line[start:end]
    if not is_copied and not _is_valid(value):
        text = name in columns.texts
        kinds = "a string of valid Unicode" if text else "a string, a whole number"
        raise InputError(f"the field {quote(name)} in line {number} must be {kinds}, or null")
    return FieldCell(start, end, value, _spell)


def _is_valid(value: object) -> bool:
    return value is None or (isinstance(value, str) and not _SURROGATE.search(value))


def _spell(text: str) -> str:
    return format_json_line(text).removesuffix("\n")


_WHOLE = re.compile(r"-?[0-9]+")
# JSON can escape half of a surrogate pair, which UTF-8 cannot write.
_SURROGATE = re.compile("[\ud800-\udfff]")


def _classify(mark: str) -> FieldContents:
    """Returns the kind of a value, by its first character."""
    return (
        FieldContents.STRINGS
        if mark == '"'
        else FieldContents.DOUBT
        if mark in "[{"
        else FieldContents.OTHERS
    )


# ---- objects on one line -------------------------------------------------------------------------

# Values of other fields are walked over, not kept; numbers stay strings, so that none is too long.
_DECODER = json.JSONDecoder(
    object_pairs_hook=bool, parse_int=bool, parse_float=bool, parse_constant=bool
)
_MARKS = {mark: re.compile(rf"[ \t\r\n]*{re.escape(mark)}[ \t\r\n]*") for mark in "{:,}"}


def _read_members(line: str, number: int) -> list[JsonMember]:
    """Reads the fields of an object on one line.

    And where each value begins and ends.
    """
    try:
        return list(_parse_members(line))
    # A line of many opening brackets passes Python's limit of recursion.
    except (ValueError, RecursionError):
        pass
    # out here, because the other error holds the line
    raise InputError(f"line {number} must be a JSON object")


def _parse_members(line: str) -> Iterator[JsonMember]:
    at = _skip_mark("{", line, 0)
    has_more = line.startswith('"', at)
    while has_more:
        name, end = _DECODER.raw_decode(line, at)
        if not isinstance(name, str):
            raise ValueError
        start = _skip_mark(":", line, end)
        value, at = _DECODER.raw_decode(line, start)
        yield name, value, start, at
        has_more = _MARKS[","].match(line, at) is not None
        if has_more:
            at = _skip_mark(",", line, at)
    if _skip_mark("}", line, at) != len(line):
        raise ValueError


def _skip_mark(mark: str, line: str, at: int) -> int:
    """Returns the place after a mark and the spaces around it."""
    match = _MARKS[mark].match(line, at)
    if match is None:
        raise ValueError
    return match.end()
