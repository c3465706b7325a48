"""Row options: the roles of a corpus's fields, and shared placeholders.

In: names of fields. Out: `RowOptions`; what is read of a batch of rows.
Not here: the formats (`files`), and what is drawn (`part_worker`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from textveil.config import Config
from textveil.errors import ConfigError, InputError, quote
from textveil.files import Batch, TextColumns
from textveil.files.formats import TextSource, find_source
from textveil.session.state import MAX_NAME_CHARACTERS, check_names
from textveil.session.stores import DEFAULT_SESSION

IdSource = Literal["column", "content", "row"]
"""The source of a text's identity.

A column of the rows, the text itself, or the file and the number of the row in it.
"""


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """The roles of a row's fields, and the scope of placeholders.

    Attributes:
        fields: those with texts; none for the field `text`, or the only one that can have some.
        id: the one that tells rows apart; None where `ids` is not "column".
        ids: what tells texts apart.
        subject: the one that says whom a text is about; None without one.
        query: the one that says what a text is for; None without one.
        others: what becomes of the others: "copy", "drop", or "" where there must be none.
        whole: whether a .txt is one text.
        placeholders: "document" counts them in each text; "subject" gives a value of a subject the
            same one in all texts about it, which shows that they name the same. For configurations
            with `words.consistent`.
        session: the name of a session of each subject, in a store, in which is kept what
            placeholders stand for; None where that is thrown away.
    """

    fields: tuple[str, ...] = ()
    id: str | None = None
    ids: IdSource = "column"
    subject: str | None = None
    query: str | None = None
    others: Literal["", "copy", "drop"] = ""
    whole: bool = False
    placeholders: Literal["document", "subject"] = "document"
    session: str | None = None

    def __post_init__(self) -> None:
        if (self.ids == "column") != (self.id is not None):
            raise ConfigError(
                "a corpus needs an id for each row, so that a part that is drawn again is the "
                "same release: give --id NAME, the column with an id for each row, or "
                "--id-from-row, or --id-from-content"
            )
        names = [*self.fields, *self.labels]
        if len({*names}) < len(names):
            duplicate = next(name for i, name in enumerate(names) if name in names[:i])
            raise ConfigError(
                "--field, --id, --subject and --query must name different fields; two name "
                f"{quote(duplicate)}"
            )
        if self.placeholders == "subject" and (self.subject is None or self.ids == "content"):
            raise ConfigError(
                "--placeholders subject needs --subject NAME, the field that names the person a "
                "row is about, and --id NAME or --id-from-row"
            )
        if self.session is not None:
            if self.placeholders != "subject":
                raise ConfigError(
                    "--session keeps the originals of placeholders, one value for each, and "
                    "needs --placeholders subject"
                )
            check_names("subject", self.session)

    def require_consistency(self, config: Config) -> None:
        """Refuses configurations that cannot give equal placeholders, or have none.

        Raises:
            ConfigError: they have no numbers, or other names take their place; or whole texts are
                replaced.
        """
        if config.texts.unit != "word":
            given = {
                "--query": self.query is not None,
                "--placeholders subject": self.placeholders == "subject",
                "--session": self.session is not None,
                "--id-from-content": self.ids == "content",
            }
            if options := [name for name, is_given in given.items() if is_given]:
                raise ConfigError(
                    f"texts.unit={config.texts.unit} (--unit) replaces whole texts, which have no "
                    "placeholders and no task, and of which equal ones are drawn anew: leave out "
                    f"{', '.join(options)}"
                )
        if self.placeholders != "subject":
            return
        if not config.words.consistent:
            raise ConfigError(
                "--placeholders subject needs words.consistent=true, as the profile `prompt` has it"
            )
        if config.names.types or config.identifiers.types:
            raise ConfigError(
                "--placeholders subject needs names.types=none and identifiers.types=none: "
                "surrogates are drawn anew for each row"
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """The fields that are read besides the texts."""
        return tuple(
            dict.fromkeys(name for name in (self.id, self.subject, self.query) if name is not None)
        )

    @property
    def labels_to_copy(self) -> tuple[str, ...]:
        """The read fields, apart from texts, that are copied unchanged."""
        return tuple(name for name in self.labels if self.others != "drop" or name == self.id)

    def find_option(self, field: str) -> str:
        """Returns the option that names a field."""
        options = {"--id": self.id, "--subject": self.subject, "--query": self.query}
        return next((option for option, name in options.items() if name == field), "--field")

    def describe_source(self, path: str) -> TextSource:
        """Opens a file's description, with its fields.

        Raises:
            ConfigError: a field is not there or not clear.
        """
        description = find_source(
            path, field=self.fields[0] if self.fields else None, whole=self.whole
        )
        if self.labels and not description.format.has_fields:
            raise ConfigError(
                f"a .txt file has no fields, such as {quote(self.labels[0])}; leave out --id, "
                "--subject and --query"
            )
        if conflicts := [name for name in self.labels if name in description.columns.texts]:
            raise ConfigError(
                "--id, --subject and --query must not name the field of the texts, and "
                f"{self.find_option(conflicts[0])} names {quote(conflicts[0])}, too"
            )
        texts = (
            self.fields
            if description.format.has_fields and self.fields
            else description.columns.texts
        )
        columns = TextColumns(texts=texts, labels=self.labels, guessed=description.columns.guessed)
        return TextSource(
            path=path,
            ending=description.ending,
            format=description.format,
            packing=description.packing,
            columns=columns,
        )

    def select_fields(self, columns: TextColumns, *, anew: bool = False) -> tuple[str, ...] | None:
        """Returns the fields to write; None for all, in rows as they stand in the file.

        Args:
            columns: of the file.
            anew: write rows anew where all fields are known, because spaces and ends of lines
                around a text are a part of it.
        """
        if self.others == "copy" or (not self.others and not anew):
            return None
        if not self.others:
            return (*self.labels, *columns.texts)
        return (*(() if self.id is None else (self.id,)), *columns.texts)


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The ids, subjects and queries of a batch. Secret.

    Attributes:
        ids: what tells them apart.
        subjects: whom they are about; None without such a field.
        queries: what they are for; None without such a field.
    """

    ids: Sequence[str] = field(repr=False)
    subjects: Sequence[str] | None = field(repr=False)
    queries: Sequence[str] | None = field(repr=False)

    @classmethod
    def read(cls, batch: Batch, options: RowOptions, *, file: int, first: int) -> "Labels":
        """Reads the labels of a batch.

        Args:
            batch: the rows.
            options: which fields they are.
            file: the number of the file.
            first: the number of the first row in it.

        Raises:
            InputError: a row has no id, or no subject.
        """

        def read_required(name: str, option: str) -> list[str]:
            values = batch.get_values(name)
            for number, value in enumerate(values, first + 1):
                if not value:
                    raise InputError(
                        f"row {number} must have a value in the field {quote(name)} "
                        f"(--{option}), but that field is empty"
                    )
            return [str(value) for value in values]

        subjects = None if options.subject is None else read_required(options.subject, "subject")
        if options.session is not None:
            _require_names(subjects or (), options.subject, first)
        return cls(
            ids=read_required(options.id, "id")
            if options.id is not None
            else [
                f"{file}\0{number}" if options.ids == "row" else ""
                for number in range(first, first + len(batch))
            ],
            subjects=subjects,
            queries=None
            if options.query is None
            else [value or "" for value in batch.get_values(options.query)],
        )


def _require_names(subjects: Sequence[str], field: str | None, first: int) -> None:
    """Refuses subjects that a store cannot use as names."""
    for number, subject in enumerate(subjects, first + 1):
        try:
            check_names(subject, DEFAULT_SESSION)
            is_valid = "/" not in subject  # behind it stands the name of a session
        except ConfigError:
            is_valid = False
        if not is_valid:
            raise InputError(
                f"row {number} must have a subject in the field {quote(field)} that can be a "
                f"name in a store: 1 to {MAX_NAME_CHARACTERS} printable characters and no slash"
            )
