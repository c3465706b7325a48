"""What a format of files is.

In: nothing. Out: the protocol `Format`, and `Place`, where the texts of a file stand.
Not here: the formats (a module each), how one is found by a file's name (`formats`), and what formats of lines share
(`pieces`).

A format is registered by the end of a file's name without its dot, `csv`. What stands behind the name is called without
arguments, or with the options of the format that a user set and that its signature names (`whole`).
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple, Protocol, runtime_checkable

from textveil.errors import InputError

USUAL = "text"
"""The field that is taken when none is named."""


class Place(NamedTuple):
    """Where the texts of a file stand.

    Attributes:
        field: the field or column; None in a format without fields, and where a file has no rows to tell.
        guessed: whether the field was taken because no other has strings; every row must then confirm it.
    """

    field: str | None = None
    guessed: bool = False


@runtime_checkable
class Format(Protocol):
    """A format of files: where their texts stand, and the same file with other texts in their places.

    Files come open and unpacked, to be read from where they are, which is the start. A row has one text or none.
    Errors name the row, and show nothing of what is in it.
    """

    @property
    def fields(self) -> bool:
        """Whether rows have fields with names; a file without is nothing but texts."""
        ...

    @property
    def packable(self) -> bool:
        """Whether it is read from front to back, so that it may be packed in a .gz."""
        ...

    def field(self, file: BinaryIO, wanted: str | None) -> str | None:
        """The field that has the texts: the wanted one, else `text`, else the only one that can have some.

        Raises:
            ConfigError: it is not there or not clear, or the format has no fields and one is wanted.
        """
        ...

    def texts(self, file: BinaryIO, place: Place) -> Iterator[str | None]:
        """The texts in order, one per row, None where a row has none.

        Raises:
            InputError: a row is not what the format wants.
        """
        ...

    def rewrite(self, file: BinaryIO, place: Place, released: Iterator[str | None], target: BinaryIO) -> None:
        """Write the file again with other texts (`taken` gives the next one), and all else as it was.

        Raises:
            InputError: as `texts`, or the file has other rows than were released.
        """
        ...

    def same_around(self, one: BinaryIO, other: BinaryIO, place: Place) -> bool:
        """Whether two files have the same rows, and the same everywhere but in their texts."""
        ...

    def records(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        """The rows as they stand there, by the names of their fields; `text` in a format without fields.

        Raises:
            InputError: as `texts`.
        """
        ...


def taken(released: Iterator[str | None], *, there: bool) -> str | None:
    """The next text that was released; None where the row has none, and only there.

    Args:
        released: a text for each row.
        there: whether the row has a text.

    Raises:
        InputError: the file has other rows than were released.
    """
    for text in released:
        if (text is not None) == there:
            return text
        raise InputError("the input changed during the run: its rows are different")
    raise InputError("the input changed during the run: it has more rows")
