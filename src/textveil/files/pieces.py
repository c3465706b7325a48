"""The common part of line formats: a head, and then pieces.

Pieces are rows, and what is copied between them.

In: a file in pieces. Out: its rows in batches, and the same rows with other texts.
Not here: how a format cuts a file into pieces (`text`, `jsonl`, `delimited`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import BinaryIO, ClassVar, NamedTuple

from textveil.files.format_contract import (
    BATCH_CHARACTERS,
    BATCH_ROWS,
    BatchReplacements,
    TextColumns,
)
from textveil.files.text_streams import BYTE_ORDER_MARK, decode


class FieldCell(NamedTuple):
    """A field of a row.

    Attributes:
        start: where it begins in the row.
        end: where it ends.
        value: None where the row has none.
        spell: how another text is written there, in the manner of the old one.
        spell_anew: how a text is written that says nothing of the old one; None for the same way.
    """

    start: int
    end: int
    value: str | None
    spell: Callable[[str], str] = str
    spell_anew: Callable[[str], str] | None = None

    def __repr__(self) -> str:
        return "FieldCell()"


class FileRow(NamedTuple):
    """One row of a file.

    Attributes:
        line: as it is in the file, with its end; it may be several lines.
        cells: the fields that were asked for, by name.
        other_names: the names of the other fields.
        other_values: their values; what is no string as it is written.
    """

    line: str
    cells: Mapping[str, FieldCell]
    other_names: tuple[str, ...] = ()
    other_values: Sequence[str] = ()

    def __repr__(self) -> str:
        return "FileRow()"

    def spell_fields(self, texts: Mapping[str, str | None]) -> dict[str, str]:
        """Returns the spelling of each field, with new texts.

        New ones take the place of those that are there.
        """
        spellings = {}
        for name, cell in self.cells.items():
            text = texts.get(name)
            is_unchanged = text is None or cell.value is None
            spellings[name] = (
                self.line[cell.start : cell.end] if is_unchanged else cell.spell(str(text))
            )
        return spellings

    def spell_anew(self) -> "FileRow":
        """Returns the row, whose new texts will be written in no manner of the old ones."""
        return self._replace(
            cells={
                name: cell._replace(spell=cell.spell_anew or cell.spell)
                for name, cell in self.cells.items()
            }
        )

    def replace_texts(self, texts: Mapping[str, str | None]) -> str:
        """Returns the row with other texts, and all else unchanged."""
        spellings, parts, at = self.spell_fields(texts), [], 0
        for name, cell in sorted(self.cells.items(), key=lambda item: item[1].start):
            parts += [self.line[at : cell.start], spellings[name]]
            at = cell.end
        return "".join([*parts, self.line[at:]])


@dataclass(frozen=True, kw_only=True)
class LineBatch:
    """Rows of a file of lines, with what is copied between them.

    Attributes:
        pieces: rows, and strings between.
        end: the number of bytes of the file until there.
    """

    pieces: Sequence[str | FileRow] = field(repr=False)
    end: int

    @property
    def rows(self) -> list[FileRow]:
        """The rows among the pieces."""
        return [piece for piece in self.pieces if isinstance(piece, FileRow)]

    @property
    def other_fields(self) -> frozenset[str]:
        """The fields that were not asked for."""
        return frozenset(chain.from_iterable(row.other_names for row in self.rows))

    def spell_anew(self) -> "LineBatch":
        """Returns the batch, whose new texts will be written in no manner of the old ones."""
        return replace(
            self,
            pieces=[
                piece if isinstance(piece, str) else piece.spell_anew() for piece in self.pieces
            ],
        )

    def __len__(self) -> int:
        return len(self.rows)

    def get_values(self, name: str) -> list[str | None]:
        """Returns the values of a field."""
        cells = (row.cells.get(name) for row in self.rows)
        return [None if cell is None else cell.value for cell in cells]

    def yield_others(self) -> Iterator[str]:
        """Returns the values of all other fields.

        Any that is no string comes as it is written.
        """
        return chain.from_iterable(row.other_values for row in self.rows)


@dataclass(frozen=True, kw_only=True)
class FileHead:
    """The part of a file before its first row.

    Attributes:
        text: as it is in the file, without the byte order mark.
        mark: the byte order mark, or nothing.
        names: of the columns, where the head says them; repeated ones too.
        cells: the spelling of each name in the text.
    """

    text: str = ""
    mark: str = ""
    names: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()


class NumberedLines:
    """The numbered lines of a file, with their ends.

    Numbers begin at 1; `end` counts the bytes of the file that have been read.
    """

    def __init__(
        self, file: BinaryIO, first: bytes = b"", *, number: int = 1, end: int = 0
    ) -> None:
        self._lines = chain([first] if first else [], file)
        self.number, self.end, self._first = number, end, len(first)

    @property
    def byte_count(self) -> int:
        """The number of bytes taken from the file."""
        return max(self.end, self._first)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self

    def __next__(self) -> tuple[int, str]:
        while True:
            line = next(self._lines)
            text = decode(line, self.end)
            self.end += len(line)
            number, self.number = self.number, self.number + 1
            text = text.removeprefix(BYTE_ORDER_MARK.decode()) if number == 1 else text
            # Empty only where the whole file is a byte order mark.
            if text:
                return number, text


class LineFormat(ABC):
    """A format that is read from front to back.

    Its classes define `field`, `split_pieces` and `records`.
    """

    is_packable: ClassVar[bool] = True

    @abstractmethod
    def split_pieces(
        self, lines: NumberedLines, columns: TextColumns, head: FileHead
    ) -> Iterator[str | FileRow]:
        """Yields the rest of a file as rows and copied strings.

        The strings between rows are copied as they are; nothing is left out.
        """

    @abstractmethod
    def join_row(self, cells: Mapping[str, str]) -> str:
        """Joins fields to a row, with its end.

        For the head, names as they are written there.
        """

    def read_start(self, file: BinaryIO) -> tuple[FileHead, NumberedLines]:
        """Reads the head, and returns it with the following lines."""
        mark, file_lines = open_lines(file)
        return FileHead(mark=mark), file_lines

    def read_head(self, file: BinaryIO) -> FileHead:
        """Reads the part of a file before its first row."""
        return self.read_start(file)[0]

    def read_texts(self, file: BinaryIO) -> Iterator[str | None]:
        """Yields the texts of a format without fields."""
        (name,) = TextColumns().texts
        for batch in self.read_batches(file, TextColumns()):
            yield from batch.get_values(name)

    def read_batches(
        self,
        file: BinaryIO,
        columns: TextColumns,
        *,
        start: int = 0,
        stop: int | None = None,
        rows: int = BATCH_ROWS,
        characters: int = BATCH_CHARACTERS,
        keep_others: bool = True,
    ) -> Iterator[LineBatch]:
        """Yields the rows in batches."""
        head, file_lines = self.read_start(file)
        if start:
            skip_bytes(file, start, file_lines.byte_count)
            # Not 1: no byte order mark is here, and a text of a whole file has been read.
            file_lines = NumberedLines(file, number=2, end=start)
        end = math.inf if stop is None else stop
        pieces: list[str | FileRow] = []
        row_count = size = 0
        for piece in self.split_pieces(file_lines, columns, head):
            pieces.append(piece)
            row_count += isinstance(piece, FileRow)
            size += len(getattr(piece, "line", piece))
            if row_count >= rows or (row_count and size >= characters) or file_lines.end >= end:
                yield LineBatch(pieces=pieces, end=file_lines.end)
                pieces, row_count, size = [], 0, 0
            if file_lines.end >= end:
                return
        if pieces:
            yield LineBatch(pieces=pieces, end=file_lines.end)

    def write(
        self,
        head: FileHead,
        replacements: BatchReplacements,
        target: BinaryIO,
        only: Sequence[str] | None = None,
    ) -> None:
        """Writes rows with other texts.

        Line by line, so that little is held at once.
        """
        if only is None:
            target.write((head.mark + head.text).encode())
        elif head.names:
            cells = dict(zip(head.names, head.cells, strict=True))
            target.write(self.join_row({name: cells[name] for name in only}).encode())
        for batch, texts in replacements:
            assert isinstance(batch, LineBatch), "it comes from this format"
            row = 0
            for piece in batch.pieces:
                if isinstance(piece, FileRow):
                    row_texts = {name: values[row] for name, values in texts.items()}
                    target.write(self._spell_row(piece, row_texts, only).encode())
                    row += 1
                elif only is None:
                    target.write(piece.encode())

    def _spell_row(
        self, row: FileRow, texts: Mapping[str, str | None], only: Sequence[str] | None
    ) -> str:
        if only is None:
            return row.replace_texts(texts)
        spellings = row.spell_fields(texts)
        return self.join_row({name: spellings[name] for name in only if name in spellings})


def skip_bytes(file: BinaryIO, start: int, read: int = 0) -> None:
    """Skips to a byte of a file.

    One that cannot seek, being compressed, is read until there.

    Args:
        file: it.
        start: the byte.
        read: how many bytes were read of a file that cannot go back.
    """
    if file.seekable():
        file.seek(start)
        return
    while read < start and (block := file.read(min(1 << 20, start - read))):
        read += len(block)


def open_lines(file: BinaryIO) -> tuple[str, NumberedLines]:
    """Returns the byte order mark and the lines of a file.

    The mark is "" where it has none; the lines have their ends, are numbered from 1, and lack the
    mark.

    Raises:
        InputError: a line is not UTF-8 (while they are read).
    """
    first = file.readline()
    return BYTE_ORDER_MARK.decode() if first.startswith(BYTE_ORDER_MARK) else "", NumberedLines(
        file, first
    )


def split_end(line: str) -> tuple[str, str]:
    r"""Splits a line into its text and its end.

    The end is "\n", "\r\n", or nothing.
    """
    body = line.removesuffix("\n").removesuffix("\r") if line.endswith("\n") else line
    return body, line[len(body) :]
