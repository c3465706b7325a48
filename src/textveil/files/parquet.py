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

from textveil.config.extras import needed
from textveil.errors import ConfigError, InputError, TextveilError, listed, quote
from textveil.files.contract import CHARACTERS, ROWS, USUAL, Released, TextColumns
from textveil.files.fields import Holds, UnknownField, only

if TYPE_CHECKING:
    import pyarrow.parquet as pq

READ = 4096
"""The rows that are read at once, where all columns are."""

GROUP = 1 << 16
"""The most rows of a written row group."""


@dataclass(frozen=True, kw_only=True)
class ArrowBatch:
    """Rows by columns.

    Attributes:
        table: the columns.
        others: those of the file that were not asked for.
        end: the number of rows of the file until there.
    """

    table: Any = field(repr=False)
    others: frozenset[str]
    end: int

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def values(self, name: str) -> list[str | None]:
        """Returns a column's values; numbers as strings."""
        # by its number, because the field b of a struct a is called a.b too
        with _convert_errors():
            found = self.table.column(self.table.schema.get_field_index(name)).to_pylist()
        return [each if each is None else str(each) for each in found]

    def copied(self) -> Iterator[str]:
        """Yields the values of all other columns that were read."""
        with _convert_errors():
            for name, column in zip(self.table.schema.names, self.table.columns, strict=True):
                if name in self.others:
                    yield from (str(each) for each in column.to_pylist() if each is not None)


class Parquet:
    """Parquet."""

    fields: ClassVar[bool] = True
    packable: ClassVar[bool] = False

    def field(self, file: BinaryIO, wanted: str | None) -> str | None:
        """Returns the wanted column, else `text` or the only string column."""
        with _open(file) as table:
            fields = [(each.name, _classify(each.type)) for each in table.schema_arrow]
        chosen = USUAL if wanted is None else wanted
        names = [name for name, _ in fields]
        if wanted is None and chosen not in names:
            return only(fields)
        if (found := names.count(chosen)) != 1:
            raise UnknownField(chosen, names, found)
        strings = [name for name, holds in fields if holds is Holds.STRINGS]
        if chosen not in strings:
            raise ConfigError(
                f"--field must name a column of strings; {quote(chosen)} has another type (numbers, encoded as a "
                f"dictionary, nested, ...). Columns of strings: {listed(strings)}"
            )
        return chosen

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
    ) -> Iterator[ArrowBatch]:
        """Yields rows of each row group, in batches."""
        with _open(file) as table, _convert_errors():
            asked, names = (*columns.texts, *columns.labels), table.schema_arrow.names
            self._check(table.schema_arrow, columns)
            others = frozenset(names) - {*asked}
            end = 0
            for number in range(table.num_row_groups):
                size = table.metadata.row_group(number).num_rows
                if end + size <= start:
                    end += size
                    continue
                wanted = None if copied else list(asked)
                for batch in table.iter_batches(
                    batch_size=rows, row_groups=[number], columns=wanted
                ):
                    first, end = end, end + batch.num_rows
                    if end > start:
                        last = end if stop is None else min(end, stop)
                        here = batch.slice(max(first, start) - first, last - max(first, start))
                        yield ArrowBatch(table=here, others=others, end=last)
                    if stop is not None and end >= stop:
                        return

    def head(self, file: BinaryIO) -> tuple[Any, dict[str, str] | str]:
        """Reads the schema, and the compression of the columns."""
        with _open(file) as table:
            return table.schema_arrow, _read_codecs(table)

    def write(
        self,
        head: tuple[Any, dict[str, str] | str],
        released: Released,
        target: BinaryIO,
        only: Sequence[str] | None = None,
    ) -> None:
        """Writes one row group at a time."""
        with needed():
            import pyarrow as pa
            import pyarrow.parquet as pq

        schema, codecs = head
        if only is not None:
            schema = pa.schema([schema.field(schema.get_field_index(name)) for name in only])
        schema = pa.schema([_strip_field(each) for each in schema])
        waiting: list[Any] = []
        with pq.ParquetWriter(target, schema, compression=codecs) as writer:
            for batch, texts in released:
                assert isinstance(batch, ArrowBatch), "it comes from this format"
                made = _replace_texts(batch.table, texts, only)
                waiting.append(made.cast(schema))
                if sum(each.num_rows for each in waiting) >= GROUP:
                    writer.write_table(pa.Table.from_batches(waiting, schema), row_group_size=GROUP)
                    waiting = []
            if waiting:
                writer.write_table(pa.Table.from_batches(waiting, schema), row_group_size=GROUP)

    def _check(self, schema: Any, columns: TextColumns) -> None:
        """Checks that each requested column is there once and readable."""
        import pyarrow as pa

        for name in (*columns.texts, *columns.labels):
            found = [each for each in schema if each.name == name]
            if len(found) != 1:
                raise UnknownField(name, schema.names, len(found))
            strings = _classify(found[0].type) is Holds.STRINGS
            if not strings and (name in columns.texts or not pa.types.is_integer(found[0].type)):
                raise ConfigError(
                    f"a field that is named must be a column of strings, or of whole numbers where it has no texts; "
                    f"{quote(name)} has another type"
                )

    def records(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        """Yields the rows by the names of their columns."""
        with _open(file) as table, _convert_errors():
            for batch in table.iter_batches(batch_size=READ):
                yield from batch.to_pylist()


def _replace_texts(
    table: Any, texts: Mapping[str, Sequence[str | None]], only: Sequence[str] | None
) -> Any:
    """Replaces the texts of rows, and drops other columns if asked."""
    import pyarrow as pa

    for name, found in texts.items():
        place = table.schema.get_field_index(name)
        column = table.schema.field(place)
        table = table.set_column(place, column, pa.array(found, column.type))
    if only is None:
        return table
    return table.select([table.schema.get_field_index(name) for name in only])


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Turns pyarrow's errors on a damaged file into one line."""
    with needed():
        import pyarrow as pa

    try:
        yield
        return
    except TextveilError:
        raise
    except (pa.ArrowException, OSError):
        failure = "a .parquet must be a whole parquet file, and this one is not, or is damaged"
    except UnicodeDecodeError:
        failure = "the strings of a .parquet must be UTF-8, and these are not"
    raise InputError(failure)  # out here, because the other errors may hold what is in the file


@contextmanager
def _open(file: BinaryIO) -> "Iterator[pq.ParquetFile]":
    with needed():
        import pyarrow.parquet as pq

    with _convert_errors():
        table = pq.ParquetFile(file)
    with table:
        yield table


def _classify(kind: Any) -> Holds:
    import pyarrow as pa

    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Holds.STRINGS
    if pa.types.is_nested(kind) and kind.num_fields:
        inner = {_classify(kind.field(i).type) for i in range(kind.num_fields)}
        return Holds.OTHERS if inner == {Holds.OTHERS} else Holds.DOUBT
    plain = ("null", "boolean", "integer", "floating", "decimal", "temporal")
    if any(getattr(pa.types, f"is_{each}")(kind) for each in plain):
        return Holds.OTHERS
    return Holds.DOUBT


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
        return pa.struct([_strip_field(each) for each in kind])
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
        each.path_in_schema: each.compression.replace("UNCOMPRESSED", "NONE") for each in columns
    }
