"""The formats .csv and .tsv: tables with a line of column names.

One of the columns has the texts.

In: a file and which column of it. Out: its texts; the file with others, byte for byte the same
around them.
Not here: how files are opened and found (`formats`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO, ClassVar, cast

from textveil.errors import ConfigError, InputError, list_names
from textveil.files.fields import UnknownField, list_titles
from textveil.files.format_contract import DEFAULT_FIELD, TextColumns
from textveil.files.pieces import (
    FieldCell,
    FileHead,
    FileRow,
    LineFormat,
    NumberedLines,
    open_lines,
    split_end,
)


class Delimited(LineFormat):
    """A table with a delimiter between its columns.

    A field with quotes may go on over several lines.
    """

    delimiter: ClassVar[str]
    has_fields: ClassVar[bool] = True

    def read_start(self, file: BinaryIO) -> tuple[FileHead, NumberedLines]:
        """Reads the line of column names, and blank lines before it."""
        mark, file_lines = open_lines(file)
        before = ""
        for number, line in file_lines:
            if not _is_blank(line):
                record, spans = self._read_record(number, line, file_lines)
                self._check_record(number, record, spans)
                return FileHead(
                    mark=mark,
                    text=before + record,
                    names=tuple(_read_value(record, *span) for span in spans),
                    cells=tuple(record[start:end] for start, end in spans),
                ), file_lines
            before += line
        return FileHead(mark=mark, text=before), file_lines

    def find_field(self, file: BinaryIO, wanted: str | None) -> str | None:
        """Returns the wanted column, or `text`, if it is there once.

        The first line must have its name.
        """
        names = self.read_head(file).names
        if not names:
            return wanted
        count = names.count(name := DEFAULT_FIELD if wanted is None else wanted)
        if count == 1:
            return name
        # of a file without a first line of names the only name is a text
        if wanted is None and not count:
            hint = f". Columns: {list_names(columns)}" if (columns := list_titles(names)) else ""
            raise ConfigError(
                f"--field is needed: the first line has no column {DEFAULT_FIELD}; a .csv has "
                f"commas, a .tsv has tabs, and the first line of both must name the columns{hint}"
            )
        raise UnknownField(name, list_titles(names), count)

    def split_pieces(
        self, lines: NumberedLines, columns: TextColumns, head: FileHead
    ) -> Iterator[str | FileRow]:
        """Yields a row for each record after the first."""
        if not head.names:
            return
        places = {name: _find_column(head.names, name) for name in columns.all}
        texts = {places[name] for name in columns.texts}
        other_places = [i for i, name in enumerate(head.names) if name not in places]
        other_names = tuple(head.names[i] for i in other_places)
        width = len(head.names)
        for number, line in lines:
            if _is_blank(line):
                yield line
                continue
            record, spans = self._read_record(number, line, lines)
            if len(spans) != width:
                raise InputError(
                    f"line {number} must have {width} columns like the first line, got {len(spans)}"
                )
            # Columns of texts are written anew; only copied ones can be misread.
            self._check_record(
                number, record, [span for i, span in enumerate(spans) if i not in texts]
            )
            cells = {
                name: self._build_cell(record, *spans[i], head.cells[i], width)
                for name, i in places.items()
            }
            yield FileRow(
                record, cells, other_names, [_read_value(record, *spans[i]) for i in other_places]
            )

    def join_row(self, cells: Mapping[str, str]) -> str:
        """Joins cells to a record.

        A single empty field has quotes, because an empty line is no row.
        """
        return (self.delimiter.join(cells.values()) or '""') + "\n"

    def _build_cell(self, record: str, start: int, end: int, title: str, width: int) -> FieldCell:
        if_needed = partial(_quote_if_needed, delimiter=self.delimiter, alone=width == 1)
        # Quotes of the old text may say that it has a comma; those of the title say nothing of it.
        spell, spell_anew = (
            _quote_text if is_quoted else if_needed
            for is_quoted in (record.startswith('"', start), title.startswith('"'))
        )
        return FieldCell(start, end, _read_value(record, start, end), spell, spell_anew)

    def read_records(
        self, file: BinaryIO, *, names: Sequence[str] = (), quoted: bool = True
    ) -> Iterator[dict[str, Any]]:
        """Yields the rows by the names of their columns.

        Args:
            file: the table.
            names: the columns where the first line is a row.
            quoted: whether a quote means something; else every delimiter parts two fields.
        """
        file_lines = open_lines(file)[1]
        for number, line in file_lines:
            if _is_blank(line):
                continue
            if quoted:
                record, spans = self._read_record(number, line, file_lines)
                values = [_read_value(record, *span) for span in spans]
            else:
                values = split_end(line)[0].split(self.delimiter)
            if not names:
                names = values
            elif len(values) != len(names):
                raise InputError(
                    f"line {number} must have {len(names)} columns like the others, got "
                    f"{len(values)}"
                )
            else:
                yield dict(zip(names, values, strict=True))

    def _check_record(self, number: int, record: str, spans: Sequence[tuple[int, int]]) -> None:
        """Checks the columns that are copied."""

    def _read_record(
        self, number: int, line: str, following: Iterator[tuple[int, str]]
    ) -> tuple[str, list[tuple[int, int]]]:
        """Reads one record, and the places of its fields.

        It may go on over several lines.
        """
        record, spans, at = line, [], 0
        pattern = _BARE_FIELDS[self.delimiter]
        while True:
            if record.startswith('"', at):
                end = at + 1
                while not record.startswith('"', end) or record.startswith('""', end):
                    if record.startswith('""', end):
                        end += 2
                    elif (quote := record.find('"', end)) >= 0:
                        end = quote
                    else:
                        end = len(record)
                        record += next(following, (0, ""))[1]
                        # No line was added: the file ends inside the quotes.
                        if end == len(record):
                            raise InputError(
                                "a field that begins with a quote must end with one; see line "
                                f"{number}"
                            )
                end += 1
            else:
                end = cast(re.Match[str], pattern.match(record, at)).end()
            spans.append((at, end))
            if not record.startswith(self.delimiter, end):
                break
            at = end + 1
        if record[end:] not in ("", "\n", "\r\n"):
            raise InputError(
                f"line {number} must have a delimiter or a line end (\\n or \\r\\n) after every "
                "field; "
                "a quote at the start of a field ends with its closing quote"
            )
        return record, spans


class Csv(Delimited):
    """Columns with commas between."""

    delimiter = ","


class Tsv(Delimited):
    """Columns with tabs between. To most writers of .tsv a quote means nothing."""

    delimiter = "\t"

    def _check_record(self, number: int, record: str, spans: Sequence[tuple[int, int]]) -> None:
        if any(
            record.startswith('"', start) and re.search(r"[\t\r\n]", record[start:end])
            for start, end in spans
        ):
            raise InputError(
                f"line {number} must have no tab and no line end inside the quotes of a copied "
                "column: in most .tsv files a quote is an ordinary character, so a text could be "
                "mistaken for a part of that column"
            )


_BARE_FIELDS = {each.delimiter: re.compile(rf"[^{each.delimiter}\r\n]*") for each in (Csv, Tsv)}


def _find_column(names: Sequence[str], name: str) -> int:
    if (count := names.count(name)) != 1:
        raise UnknownField(name, list_titles(names), count)
    return names.index(name)


def _is_blank(line: str) -> bool:
    """Says whether a line is empty, and so is no row.

    A line of spaces is a row, as it is to csv.DictReader.
    """
    return not line.strip("\r\n")


def _read_value(record: str, start: int, end: int) -> str:
    if record.startswith('"', start):
        return record[start + 1 : end - 1].replace('""', '"')
    return record[start:end]


def _quote_text(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _quote_if_needed(text: str, *, delimiter: str, alone: bool) -> str:
    """Quotes a field where it has to be.

    The only field of a record is quoted when it is empty, because an empty line is no row.
    """
    return (
        _quote_text(text)
        if re.search(rf'["\r\n{delimiter}]', text) or (alone and not text)
        else text
    )
