"""The format .parquet: a table by columns, one with the texts.

It needs pyarrow, the extra `files`.

In: a file and which column of it. Out: its texts; a file with others, of the same columns, without
metadata.
Not here: how files are opened and found (`formats`).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

from textveil.config.extras import explain_missing
from textveil.errors import ConfigError, InputError, TextveilError, list_names, quote
from textveil.files.fields import FieldContents, UnknownField, find_only
from textveil.files.format_contract import (
    BATCH_CHARACTERS,
    BATCH_ROWS,
    DEFAULT_FIELD,
    BatchReplacements,
    TextColumns,
)

if TYPE_CHECKING:
    import pyarrow.parquet as pq

READ_ROWS = 4096
"""The rows that are read at once, where all columns are."""

MAX_GROUP_ROWS = 1 << 16
"""The most rows of a written row group."""


@dataclass(frozen=True, kw_only=True)
class ArrowBatch:
    """Rows by columns.

    Attributes:
        table: the columns.
        other_fields: those of the file that were not asked for.
        end: the number of rows of the file until there.
    """

    table: Any = field(repr=False)
    other_fields: frozenset[str]
    end: int

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def get_values(self, name: str) -> list[str | None]:
        """Returns a column's values; numbers as strings."""
        # by its number, because the field b of a struct a is called a.b too
        with _convert_errors():
            values = self.table.column(self.table.schema.get_field_index(name)).to_pylist()
        return [value if value is None else str(value) for value in values]

    def yield_others(self) -> Iterator[str]:
        """Yields the values of all other columns that were read."""
        with _convert_errors():
            for name, column in zip(self.table.schema.names, self.table.columns, strict=True):
                if name in self.other_fields:
                    yield from (str(value) for value in column.to_pylist() if value is not None)


class Parquet:
    """Parquet."""

    has_fields: ClassVar[bool] = True
    is_packable: ClassVar[bool] = False

    def find_field(self, file: BinaryIO, wanted: str | None) -> str | None:
        """Returns the wanted column, else `text` or the only string column."""
        with _open(file) as table:
            fields = [(column.name, _classify(column.type)) for column in table.schema_arrow]
        field_name = DEFAULT_FIELD if wanted is None else wanted
        names = [name for name, _ in fields]
        if wanted is None and field_name not in names:
            return find_only(fields)
        if (count := names.count(field_name)) != 1:
            raise UnknownField(field_name, names, count)
        strings = [name for name, holds in fields if holds is FieldContents.STRINGS]
        if field_name not in strings:
            raise ConfigError(
                f"--field must name a column of strings; {quote(field_name)} has another type "
                "(numbers, encoded as a dictionary, nested, ...). Columns of strings: "
                f"{list_names(strings)}"
            )
        return field_name

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
    ) -> Iterator[ArrowBatch]:
        """Yields rows of each row group, in batches."""
        with _open(file) as table, _convert_errors():
            column_names, names = columns.all, table.schema_arrow.names
            self._check_columns(table.schema_arrow, columns)
            other_fields = frozenset(names) - {*column_names}
            end = 0
            for number in range(table.num_row_groups):
                size = table.metadata.row_group(number).num_rows
                # Their sizes are in the metadata, so groups before the start are not read.
                if end + size <= start:
                    end += size
                    continue
                wanted = None if keep_others else list(column_names)
                for batch in table.iter_batches(
                    batch_size=rows, row_groups=[number], columns=wanted
                ):
                    first, end = end, end + batch.num_rows
                    if end > start:
                        last = end if stop is None else min(end, stop)
                        part = batch.slice(max(first, start) - first, last - max(first, start))
                        yield ArrowBatch(table=part, other_fields=other_fields, end=last)
                    if stop is not None and end >= stop:
                        return

    def read_head(self, file: BinaryIO) -> tuple[Any, dict[str, str] | str]:
        """Reads the schema, and the compression of the columns."""
        with _open(file) as table:
            return table.schema_arrow, _read_codecs(table)

    def write(
        self,
        head: tuple[Any, dict[str, str] | str],
        replacements: BatchReplacements,
        target: BinaryIO,
        only: Sequence[str] | None = None,
    ) -> None:
        """Writes one row group at a time."""
        with explain_missing():
            import pyarrow as pa
            import pyarrow.parquet as pq

        schema, codecs = head
        if only is not None:
            schema = pa.schema([schema.field(schema.get_field_index(name)) for name in only])
        schema = pa.schema([_strip_field(item) for item in schema])
        queue: list[Any] = []
        with pq.ParquetWriter(target, schema, compression=codecs) as writer:
            for batch, texts in replacements:
                assert isinstance(batch, ArrowBatch), "it comes from this format"
                rows = _replace_texts(batch.table, texts, only)
                queue.append(rows.cast(schema))
                # Each write makes a row group, so small batches are gathered first.
                if sum(item.num_rows for item in queue) >= MAX_GROUP_ROWS:
                    writer.write_table(
                        pa.Table.from_batches(queue, schema), row_group_size=MAX_GROUP_ROWS
                    )
                    queue = []
            if queue:
                writer.write_table(
                    pa.Table.from_batches(queue, schema), row_group_size=MAX_GROUP_ROWS
                )

    def _check_columns(self, schema: Any, columns: TextColumns) -> None:
        """Checks that each requested column is there once and readable."""
        import pyarrow as pa

        for name in columns.all:
            matches = [column for column in schema if column.name == name]
            if len(matches) != 1:
                raise UnknownField(name, schema.names, len(matches))
            if name not in columns.texts and name not in columns.labels:
                continue
            strings = _classify(matches[0].type) is FieldContents.STRINGS
            if not strings and (name in columns.texts or not pa.types.is_integer(matches[0].type)):
                raise ConfigError(
                    "a field must be a column of strings (or of whole numbers for --id, "
                    f"--subject and --query); {quote(name)} has another type"
                )

    def read_records(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        """Yields the rows by the names of their columns."""
        with _open(file) as table, _convert_errors():
            for batch in table.iter_batches(batch_size=READ_ROWS):
                yield from batch.to_pylist()


def _replace_texts(
    table: Any, texts: Mapping[str, Sequence[str | None]], only: Sequence[str] | None
) -> Any:
    """Replaces the texts of rows, and drops other columns if asked."""
    import pyarrow as pa

    for name, values in texts.items():
        place = table.schema.get_field_index(name)
        column = table.schema.field(place)
        table = table.set_column(place, column, pa.array(values, column.type))
    if only is None:
        return table
    return table.select([table.schema.get_field_index(name) for name in only])


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Turns pyarrow's errors on a damaged file into one line."""
    with explain_missing():
        import pyarrow as pa

    try:
        yield
        return
    except TextveilError:
        raise
    except (pa.ArrowException, OSError):
        failure = "the .parquet file is incomplete or damaged"
    except UnicodeDecodeError:
        failure = "the strings of a .parquet file must be UTF-8; those of this file are not"
    raise InputError(failure)  # out here, because the other errors may hold what is in the file


@contextmanager
def _open(file: BinaryIO) -> "Iterator[pq.ParquetFile]":
    with explain_missing():
        import pyarrow.parquet as pq

    with _convert_errors():
        table = pq.ParquetFile(file)
    with table:
        yield table


def _classify(kind: Any) -> FieldContents:
    import pyarrow as pa

    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return FieldContents.STRINGS
    if pa.types.is_nested(kind) and kind.num_fields:
        inner = {_classify(kind.field(i).type) for i in range(kind.num_fields)}
        return FieldContents.OTHERS if inner == {FieldContents.OTHERS} else FieldContents.DOUBT
    type_names = ("null", "boolean", "integer", "floating", "decimal", "temporal")
    if any(getattr(pa.types, f"is_{type_name}")(kind) for type_name in type_names):
        return FieldContents.OTHERS
    return FieldContents.DOUBT


def _strip_field(column: Any) -> Any:
    """Strips a field's metadata and extension types.

    Metadata may tell which columns were dropped; extension types become their storage.
    """
    return column.with_type(_strip_type(column.type)).remove_metadata()


def _strip_type(kind: Any) -> Any:
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return _strip_type(kind.storage_type)
    if pa.types.is_struct(kind):
        return pa.struct([_strip_field(column) for column in kind])
    if pa.types.is_map(kind):
        return pa.map_(
            _strip_field(kind.key_field),
            _strip_field(kind.item_field),
            keys_sorted=kind.keys_sorted,
        )
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_strip_field(kind.value_field), kind.list_size)
    for name in ("list_", "large_list", "list_view", "large_list_view"):
        if getattr(pa.types, f"is_{name.rstrip('_')}")(kind):
            return getattr(pa, name)(_strip_field(kind.value_field))
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _strip_type(kind.value_type), kind.ordered)
    return kind


def _read_codecs(table: "pq.ParquetFile") -> dict[str, str] | str:
    """Returns the compression of each column, by its path."""
    if not table.num_row_groups:
        return "snappy"
    group = table.metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    return {
        # pyarrow reports UNCOMPRESSED, but its writer wants NONE.
        column.path_in_schema: column.compression.replace("UNCOMPRESSED", "NONE")
        for column in columns
    }
