"""The contract of file formats.

In: nothing. Out: the protocols `Format` and `Batch`, and `TextColumns`, which fields of a file are
asked for.
Not here: the formats (a module each), how one is found by a file's name (`formats`), and what
formats of lines share (`pieces`).

A format is registered by the end of a file's name without its dot, `csv`. What stands behind the
name is called without arguments, or with the options of the format that a user set and that its
signature names (`whole`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple, Protocol, runtime_checkable

DEFAULT_FIELD = "text"
"""The default name of the field with texts.

It is taken when no field is named, and is also the name of the texts in a format without fields.
"""

BATCH_ROWS = 512
"""The default number of rows of a batch."""

BATCH_CHARACTERS = 1 << 18
"""The number of characters after which a batch of lines ends."""


class TextColumns(NamedTuple):
    """The fields that are read from a file.

    Attributes:
        texts: those that have texts: strings or null.
        labels: others that are read: strings, whole numbers or null.
        guessed: whether the field of the texts was taken because no other has strings; every row
            must then confirm it.
        copies: others that are copied, of any type; rows may lack them where rows may differ.
    """

    texts: tuple[str, ...] = (DEFAULT_FIELD,)
    labels: tuple[str, ...] = ()
    guessed: bool = False
    copies: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """All fields that are asked for, each once."""
        return tuple(dict.fromkeys((*self.texts, *self.labels, *self.copies)))


class Batch(Protocol):
    """Consecutive rows of a file, in their order.

    Their contents are secret, and in no repr.
    """

    @property
    def end(self) -> int:
        """The start of the rest of the file, as `Format.read_batches` takes it."""
        ...

    @property
    def other_fields(self) -> frozenset[str]:
        """The fields of these rows that were not asked for."""
        ...

    def __len__(self) -> int:
        """Returns the number of rows."""
        ...

    def get_values(self, name: str) -> list[str | None]:
        """Returns the values of a requested field, one per row.

        Numbers as they are written; None where a row lacks a kept field.
        """
        ...

    def yield_others(self) -> Iterator[str]:
        """Yields the values of all other fields, where they were read.

        Any that is no string comes as it is written.
        """
        ...


BatchReplacements = Iterable[tuple[Batch, Mapping[str, Sequence[str | None]]]]
"""Batches with the replacements of their texts, by field.

None where a row has no text.
"""


@runtime_checkable
class Format(Protocol):
    """A format of files, which reads texts and writes replacements.

    All else in a row stays as it was.

    Files come open and unpacked, to be read from where they are, which is the start. Errors name
    the row, and show nothing of what is in it.
    """

    @property
    def has_fields(self) -> bool:
        """A flag: rows have fields with names.

        A file without fields is nothing but texts.
        """
        ...

    @property
    def is_packable(self) -> bool:
        """A flag: files are read from front to back.

        They may then be compressed as a whole.
        """
        ...

    def find_field(self, file: BinaryIO, wanted: str | None) -> str | None:
        """Returns the field with the texts.

        The wanted one, else `text`, else the only one that can have texts.

        Raises:
            ConfigError: it is not there or not clear, or the format has no fields and one is
                wanted.
        """
        ...

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
    ) -> Iterator[Batch]:
        """Yields the rows in order, in batches.

        Args:
            file: the file.
            columns: the fields to read.
            start: 0 for the first row, or the `end` of a batch.
            stop: the `end` of the last batch; None for that of the file.
            rows: of a batch at most.
            characters: after which a batch ends early, where rows are read one by one.
            keep_others: whether the other fields are read too, so that the rows can be written.

        Raises:
            ConfigError: a field is not there.
            InputError: a row is not what the format wants.
        """
        ...

    def read_head(self, file: BinaryIO) -> Any:
        """Reads a file's header for `write`.

        Such as names of columns or a schema.
        """
        ...

    def write(
        self,
        head: Any,
        replacements: BatchReplacements,
        target: BinaryIO,
        only: Sequence[str] | None = None,
    ) -> None:
        """Writes rows with other texts.

        Args:
            head: of the file that the rows come from.
            replacements: rows and their new texts.
            target: where they go.
            only: the fields that are written, where a row has them; None for all, which are as they
                were in all but their texts.
        """
        ...

    def read_records(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        """Yields the rows as mappings from field names to values.

        `text` in a format without fields.

        Raises:
            InputError: a row is not what the format wants.
        """
        ...
