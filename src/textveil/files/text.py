"""The format .txt: a text per line, or per file.

In: a file. Out: its texts; the file with others.
Not here: how files are opened and found (`formats`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar

from textveil.errors import ConfigError, quote
from textveil.files.contract import USUAL, TextColumns
from textveil.files.pieces import FieldCell, FileHead, Numbered, Pieces, Row, ended


@dataclass(frozen=True, kw_only=True)
class Text(Pieces):
    """Plain text.

    Attributes:
        whole: whether a file is one text, and not one per line.
    """

    whole: bool = False
    fields: ClassVar[bool] = False

    def field(self, file: BinaryIO, wanted: str | None) -> str | None:
        """Returns None, as there are no fields."""
        if wanted is not None:
            raise ConfigError(
                f"a .txt file has no fields, such as {quote(wanted)}; leave out --field"
            )
        return None

    def pieces(self, lines: Numbered, columns: TextColumns, head: FileHead) -> Iterator[str | Row]:
        """Yields the lines, or all of them as one row."""
        if self.whole:
            if lines.number > 1:  # behind the only row
                return
            yield _build_row("".join(line for _, line in lines), "")
            return
        for _, line in lines:
            yield _build_row(*ended(line))

    def joined(self, cells: Mapping[str, str]) -> str:
        """Returns a line."""
        return f"{cells[USUAL]}\n"

    def records(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        """Yields a row with the one field `text` for each text."""
        return ({USUAL: text} for text in self.texts(file))


def _build_row(text: str, end: str) -> Row:
    return Row(text + end, {USUAL: FieldCell(0, len(text), text)})
