"""The format .txt: a text per line, or per file.

In: a file. Out: its texts; the file with others.
Not here: how files are opened and found (`formats`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar

from textveil.errors import ConfigError, quote
from textveil.files.format_contract import DEFAULT_FIELD, TextColumns
from textveil.files.pieces import FieldCell, FileHead, FileRow, LineFormat, NumberedLines, split_end


@dataclass(frozen=True, kw_only=True)
class Text(LineFormat):
    """Plain text.

    Attributes:
        whole: whether a file is one text, and not one per line.
    """

    whole: bool = False
    has_fields: ClassVar[bool] = False

    def find_field(self, file: BinaryIO, wanted: str | None) -> str | None:
        """Returns None, as there are no fields."""
        if wanted is not None:
            raise ConfigError(
                f"a .txt file has no fields, such as {quote(wanted)}; leave out --field"
            )
        return None

    def split_pieces(
        self, lines: NumberedLines, columns: TextColumns, head: FileHead
    ) -> Iterator[str | FileRow]:
        """Yields the lines, or all of them as one row."""
        if self.whole:
            if lines.number > 1:  # behind the only row
                return
            yield _build_row("".join(line for _, line in lines), "")
            return
        for _, line in lines:
            yield _build_row(*split_end(line))

    def join_row(self, cells: Mapping[str, str]) -> str:
        """Returns a line."""
        return f"{cells[DEFAULT_FIELD]}\n"

    def read_records(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        """Yields a row with the one field `text` for each text."""
        return ({DEFAULT_FIELD: text} for text in self.read_texts(file))


def _build_row(text: str, end: str) -> FileRow:
    return FileRow(text + end, {DEFAULT_FIELD: FieldCell(0, len(text), text)})
