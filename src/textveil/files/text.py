"""The format .txt: a text per line, or the whole file as one text.

In: a file. Out: its texts; the file with others.
Not here: how files are opened and found (`formats`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar

from textveil.errors import ConfigError
from textveil.files.contract import USUAL, Place
from textveil.files.pieces import Pieces, Row, ended, lines
from textveil.files.streams import MARK, decode


@dataclass(frozen=True, kw_only=True)
class Text(Pieces):
    """Plain text.

    Attributes:
        whole: whether a file is one text, and not one per line.
    """

    whole: bool = False
    fields: ClassVar[bool] = False

    def field(self, file: BinaryIO, wanted: str | None) -> str | None:
        """None, as there are no fields."""
        if wanted is not None:
            raise ConfigError("a .txt file has no fields; leave out --field and --query")
        return None

    def pieces(self, file: BinaryIO, place: Place) -> Iterator[str | Row]:
        """The lines, or all of them as one row."""
        if self.whole:
            content = decode(file.read())
            yield (mark := MARK.decode() if content.startswith(MARK.decode()) else "")
            yield Row("", content.removeprefix(mark), "")
            return
        mark, numbered = lines(file)
        yield mark
        for _, line in numbered:
            yield Row("", *ended(line))

    def records(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        """A row with the one field `text` for each text."""
        return ({USUAL: text} for text in self.texts(file, Place()))
