"""What a format of files is.

In: nothing. Out: the protocols `Format` and `Batch`, and `TextColumns`, which fields of a file are asked for.
Not here: the formats (a module each), how one is found by a file's name (`formats`), and what formats of lines share
(`pieces`).

A format is registered by the end of a file's name without its dot, `csv`. What stands behind the name is called without
arguments, or with the options of the format that a user set and that its signature names (`whole`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple, Protocol, runtime_checkable

USUAL = "text"
"""The field that is taken when none is named; also what the texts of a format without fields are called."""

ROWS = 512
"""Rows of a batch, where nothing else is asked for."""

CHARACTERS = 1 << 18
"""Characters after which a batch of lines ends."""


class TextColumns(NamedTuple):
    """Which fields of a file are asked for.

    Attributes:
        texts: those that have texts: strings or null.
        labels: others that are read: strings, whole numbers or null.
        guessed: whether the field of the texts was taken because no other has strings; every row must then confirm it.
    """

    texts: tuple[str, ...] = (USUAL,)
    labels: tuple[str, ...] = ()
    guessed: bool = False


class Batch(Protocol):
    """Some rows of a file, in their order. What is in them is secret, and in no repr."""

    @property
    def end(self) -> int:
        """Where the rest of the file begins, as `Format.batches` takes it."""
        ...

    @property
    def others(self) -> frozenset[str]:
        """Fields of these rows that were not asked for."""
        ...

    def __len__(self) -> int:
        """How many rows they are."""
        ...

    def values(self, name: str) -> list[str | None]:
        """The values of a field that was asked for, one per row; numbers as they are written."""
        ...

    def copied(self) -> Iterator[str]:
        """The values of all other fields, where they were read, too; what is no string as it is written."""
        ...


Released = Iterable[tuple[Batch, Mapping[str, Sequence[str | None]]]]
"""Batches with what stands in the place of their texts, by field; None where a row has no text."""


@runtime_checkable
class Format(Protocol):
    """A format of files: where their texts stand, and the same rows with other texts in their places.

    Files come open and unpacked, to be read from where they are, which is the start. Errors name the row, and show
    nothing of what is in it.
    """

    @property
    def fields(self) -> bool:
        """Whether rows have fields with names; a file without is nothing but texts."""
        ...

    @property
    def packable(self) -> bool:
        """Whether it is read from front to back, so that it may be compressed as a whole."""
        ...

    def field(self, file: BinaryIO, wanted: str | None) -> str | None:
        """The field that has the texts: the wanted one, else `text`, else the only one that can have some.

        Raises:
            ConfigError: it is not there or not clear, or the format has no fields and one is wanted.
        """
        ...

    def batches(
        self,
        file: BinaryIO,
        columns: TextColumns,
        *,
        start: int = 0,
        stop: int | None = None,
        rows: int = ROWS,
        characters: int = CHARACTERS,
        copied: bool = True,
    ) -> Iterator[Batch]:
        """The rows in order, some at a time.

        Args:
            file: the file.
            columns: the fields to read.
            start: 0 for the first row, or the `end` of a batch.
            stop: the `end` of the last batch; None for that of the file.
            rows: of a batch at most.
            characters: after which a batch ends early, where rows are read one by one.
            copied: whether the other fields are read too, so that the rows can be written.

        Raises:
            ConfigError: a field is not there.
            InputError: a row is not what the format wants.
        """
        ...

    def head(self, file: BinaryIO) -> Any:
        """What a file says of all its rows, such as names of columns or a schema, for `write`."""
        ...

    def write(
        self, head: Any, released: Released, target: BinaryIO, only: Sequence[str] | None = None
    ) -> None:
        """Write rows with other texts.

        Args:
            head: of the file that the rows come from.
            released: rows and their new texts.
            target: where they go.
            only: the fields that are written; None for all, which are as they were in all but their texts.
        """
        ...

    def records(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        """The rows as they stand there, by the names of their fields; `text` in a format without fields.

        Raises:
            InputError: a row is not what the format wants.
        """
        ...
