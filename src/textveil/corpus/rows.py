"""What the rows of a corpus are: which fields are texts, which is the id, and what becomes of the others.

In: names of fields. Out: `RowOptions`; what is read of a batch of rows.
Not here: the formats (`files`), and what is drawn (`drawing`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from textveil.errors import ConfigError, InputError
from textveil.files import Batch, TextColumns
from textveil.files.formats import Source, source

Ids = Literal["column", "content", "row"]
"""What tells texts apart: a column of the rows, the text itself, or the file and the number of the row in it."""


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Which fields of a row are what.

    Attributes:
        fields: those with texts; none for the field `text`, or the only one that can have some.
        id: the one that tells rows apart; None where `ids` is not "column".
        ids: what tells texts apart.
        subject: the one that says whom a text is about; None without one.
        query: the one that says what a text is for; None without one.
        others: what becomes of the others: "copy", "drop", or "" where there must be none.
        whole: whether a .txt is one text.
    """

    fields: tuple[str, ...] = ()
    id: str | None = None
    ids: Ids = "column"
    subject: str | None = None
    query: str | None = None
    others: Literal["", "copy", "drop"] = ""
    whole: bool = False

    def __post_init__(self) -> None:
        if (self.ids == "column") != (self.id is not None):
            raise ConfigError(
                "a corpus needs what tells its rows apart, so that a part that is drawn again is the same release: "
                "give --id NAME, the column with an id for each row, or --id-from-row, or --id-from-content"
            )
        named = [*self.fields, *(each for each in (self.id, self.subject, self.query) if each is not None)]
        if len(set(self.fields)) < len(self.fields) or {*self.fields} & {*named[len(self.fields) :]}:
            raise ConfigError("--field, --id, --subject and --query must name different fields")

    @property
    def labels(self) -> tuple[str, ...]:
        """The fields besides the texts that are read."""
        return tuple(dict.fromkeys(each for each in (self.id, self.subject, self.query) if each is not None))

    def source(self, path: str) -> Source:
        """A file, with its fields.

        Raises:
            ConfigError: a field is not there or not clear.
        """
        found = source(path, field=self.fields[0] if self.fields else None, whole=self.whole)
        if self.labels and not found.format.fields:
            raise ConfigError("a .txt file has no fields; leave out --id, --subject and --query")
        if {*found.columns.texts} & {*self.labels}:
            raise ConfigError("--id, --subject and --query must not name the field of the texts")
        texts = self.fields if found.format.fields and self.fields else found.columns.texts
        columns = TextColumns(texts=texts, labels=self.labels, guessed=found.columns.guessed)
        return Source(path=path, ending=found.ending, format=found.format, packing=found.packing, columns=columns)

    def written(self, columns: TextColumns) -> tuple[str, ...] | None:
        """The fields that stand in the output; None for all."""
        if self.others != "drop":
            return None
        return (*(() if self.id is None else (self.id,)), *columns.texts)


@dataclass(frozen=True, kw_only=True)
class Labels:
    """What the rows of a batch say besides their texts. Secret.

    Attributes:
        ids: what tells them apart.
        subjects: whom they are about; None without such a field.
        queries: what they are for; None without such a field.
    """

    ids: Sequence[str] = field(repr=False)
    subjects: Sequence[str] | None = field(repr=False)
    queries: Sequence[str] | None = field(repr=False)

    @classmethod
    def of(cls, batch: Batch, options: RowOptions, *, file: int, first: int) -> "Labels":
        """Those of a batch.

        Args:
            batch: the rows.
            options: which fields they are.
            file: the number of the file.
            first: the number of the first row in it.

        Raises:
            InputError: a row has no id, or no subject.
        """

        def every(name: str, option: str) -> list[str]:
            found = batch.values(name)
            for number, each in enumerate(found, first + 1):
                if not each:
                    raise InputError(f"row {number} must have a value in the field that --{option} names, and has none")
            return [str(each) for each in found]

        return cls(
            ids=every(options.id, "id")
            if options.id is not None
            else [f"{file}\0{number}" if options.ids == "row" else "" for number in range(first, first + len(batch))],
            subjects=None if options.subject is None else every(options.subject, "subject"),
            queries=None if options.query is None else [each or "" for each in batch.values(options.query)],
        )
