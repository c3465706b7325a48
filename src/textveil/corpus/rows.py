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
        id: the one that tells rows apart; None where `ids` is not "column". A run needs one.
        ids: what tells texts apart.
        subject: the one that says whom a text is about; None without one.
        query: the one that says what a text is for; None without one.
        others: what becomes of the others: "copy", "drop", or "" where there must be none.
        keep: others that are copied, and the rest is dropped; not with `others`. A run refuses one
            that holds texts or identifiers.
        keep_anyway: others that are copied likewise, whatever they hold.
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
    keep: tuple[str, ...] = ()
    keep_anyway: tuple[str, ...] = ()
    whole: bool = False
    placeholders: Literal["document", "subject"] = "document"
    session: str | None = None

    def __post_init__(self) -> None:
        copies = tuple(dict.fromkeys((*self.keep, *self.keep_anyway)))
        object.__setattr__(self, "keep", copies)
        if self.ids != "column" and self.id is not None:
            raise ConfigError("give one of --id, --id-from-row and --id-from-content")
        names = [*self.fields, *self.labels]
        if len({*names}) < len(names):
            duplicate = next(name for i, name in enumerate(names) if name in names[:i])
            raise ConfigError(
                "--field, --id, --subject and --query must name different fields; two name "
                f"{quote(duplicate)}"
            )
        if self.keep and self.others:
            raise ConfigError(
                "--keep copies the fields that it names and drops the rest: leave out --others"
            )
        if conflicts := [name for name in self.keep if name in self.fields]:
            raise ConfigError(
                f"--keep copies a field unprotected, and --field names {quote(conflicts[0])}, too: "
                "name it in one of the two"
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
        """The fields with a name here, apart from texts, that are copied unchanged."""
        labels = (name for name in self.labels if not self.drops_others or name == self.id)
        return tuple(dict.fromkeys((*labels, *self.keep)))

    @property
    def drops_others(self) -> bool:
        """A flag: fields without a name here are dropped."""
        return self.others == "drop" or bool(self.keep)

    def find_option(self, field: str) -> str:
        """Returns the option that names a field."""
        options = {"--id": self.id, "--subject": self.subject, "--query": self.query}
        option = next((option for option, name in options.items() if name == field), "--field")
        if option != "--field" or field not in self.keep:
            return option
        return "--keep-anyway" if field in self.keep_anyway else "--keep"

    def describe_source(self, path: str) -> TextSource:
        """Opens a file's description, with its fields.

        Raises:
            ConfigError: a field is not there or not clear.
        """
        description = find_source(
            path, field=self.fields[0] if self.fields else None, whole=self.whole
        )
        if (named := (*self.labels, *self.keep)) and not description.format.has_fields:
            raise ConfigError(
                f"a .txt file has no fields, such as {quote(named[0])}; leave out --id, "
                "--subject, --query and --keep"
            )
        self.require_other_fields(description.columns.texts)
        texts = (
            self.fields
            if description.format.has_fields and self.fields
            else description.columns.texts
        )
        columns = TextColumns(
            texts=texts,
            labels=self.labels,
            guessed=description.columns.guessed,
            copies=tuple(name for name in self.keep if name not in self.labels),
        )
        return TextSource(
            path=path,
            ending=description.ending,
            format=description.format,
            packing=description.packing,
            columns=columns,
        )

    def require_other_fields(self, texts: Sequence[str]) -> None:
        """Refuses options that name a field of the texts for something else.

        Raises:
            ConfigError: one does.
        """
        if conflicts := [name for name in (*self.labels, *self.keep) if name in texts]:
            raise ConfigError(
                "--id, --subject, --query and --keep must not name the field of the texts, and "
                f"{self.find_option(conflicts[0])} names {quote(conflicts[0])}, too"
            )

    def select_fields(self, columns: TextColumns, *, anew: bool = False) -> tuple[str, ...] | None:
        """Returns the fields to write; None for all, in rows as they stand in the file.

        Args:
            columns: of the file.
            anew: write rows anew where all fields are known, because spaces and ends of lines
                around a text are a part of it.
        """
        if not self.drops_others and (self.others or not anew):
            return None
        if not self.drops_others:
            return (*self.labels, *columns.texts)
        ids = () if self.id is None else (self.id,)
        return tuple(dict.fromkeys((*ids, *columns.texts, *self.keep)))


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
