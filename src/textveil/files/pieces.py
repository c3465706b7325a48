"""What formats of lines share: a file is pieces, rows with a text and what is copied between them.

In: a file in pieces. Out: its texts, the file with other texts, whether two files differ only in their texts.
Not here: how a format cuts a file into pieces (`text`, `jsonl`, `delimited`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import chain, zip_longest
from typing import BinaryIO, ClassVar, NamedTuple

from textveil.files.contract import Place, taken
from textveil.files.streams import MARK, decode


class Row(NamedTuple):
    """One row of a file: its text, and what stands before and behind it.

    Attributes:
        before: copied as it is.
        text: None where the row has none; it stays without.
        after: copied as it is.
        spell: how a text is written there.
    """

    before: str
    text: str | None
    after: str
    spell: Callable[[str], str] = str

    def __repr__(self) -> str:
        return "Row()"


class Pieces(ABC):
    """A format that is read from front to back; `field`, `pieces` and `records` are its own."""

    packable: ClassVar[bool] = True

    @abstractmethod
    def pieces(self, file: BinaryIO, place: Place) -> Iterator[str | Row]:
        """A file as rows, and strings between them that are copied as they are; nothing of the file is left out."""

    def texts(self, file: BinaryIO, place: Place) -> Iterator[str | None]:
        """The texts in order, one per row, None where a row has none."""
        return (piece.text for piece in self.pieces(file, place) if isinstance(piece, Row))

    def rewrite(self, file: BinaryIO, place: Place, released: Iterator[str | None], target: BinaryIO) -> None:
        """Write the file again with other texts, and all else as it was."""
        for piece in self.pieces(file, place):
            if isinstance(piece, Row):
                text = taken(released, there=piece.text is not None)
                piece = piece.before + ("" if text is None else piece.spell(text)) + piece.after
            target.write(piece.encode())

    def same_around(self, one: BinaryIO, other: BinaryIO, place: Place) -> bool:
        """Whether two files have the same rows, and the same everywhere but in their texts."""
        pairs = zip_longest(self.pieces(one, place), self.pieces(other, place))
        return all(_around(one) == _around(other) for one, other in pairs)


def _around(piece: str | Row | None) -> object:
    return (piece.before, piece.text is None, piece.after) if isinstance(piece, Row) else piece


def lines(file: BinaryIO) -> tuple[str, Iterator[tuple[int, str]]]:
    """The byte order mark of a file, "" where it has none; and its lines with their ends, numbered from 1, without it.

    Raises:
        InputError: a line is not UTF-8 (while they are read).
    """
    first = file.readline()
    mark = MARK.decode() if first.startswith(MARK) else ""
    return mark, _numbered(first, mark, file)


def _numbered(first: bytes, mark: str, file: BinaryIO) -> Iterator[tuple[int, str]]:
    offset = 0
    for number, line in enumerate(chain([first], file), 1):
        text = decode(line, offset)
        if number == 1:
            text = text.removeprefix(mark)
        if text:
            yield number, text
        offset += len(line)


def ended(line: str) -> tuple[str, str]:
    r"""A line without its end, and its end: "\n", "\r\n", or nothing."""
    body = line.removesuffix("\n").removesuffix("\r") if line.endswith("\n") else line
    return body, line[len(body) :]
