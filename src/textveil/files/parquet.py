"""The format .parquet: a table by columns, of which one has the texts. It needs pyarrow, the extra `files`.

In: a file and which column of it. Out: its texts; a file with others, and the same schema, groups and compression.
Not here: how files are opened and found (`formats`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

from textveil.config.extras import needed
from textveil.errors import ConfigError, InputError, TextveilError
from textveil.files.contract import USUAL, Place, taken
from textveil.files.fields import Holds, only

if TYPE_CHECKING:
    import pyarrow.parquet as pq

ROWS = 4096
"""Rows that are read at once."""


class Parquet:
    """Parquet."""

    fields: ClassVar[bool] = True
    packable: ClassVar[bool] = False

    def field(self, file: BinaryIO, wanted: str | None) -> str | None:
        """The wanted column, else `text`, else the only one with strings."""
        with _opened(file) as table:
            fields = [(each.name, _holds(each.type)) for each in table.schema_arrow]
        chosen = USUAL if wanted is None else wanted
        named = [holds for name, holds in fields if name == chosen]
        if wanted is None and not named:
            return only(fields)
        if len(named) != 1:
            raise ConfigError(f"--field must name one column of strings; {len(named)} have that name")
        if named[0] is not Holds.STRINGS:
            raise ConfigError(
                "--field must name a column of strings; this one has another type (numbers, "
                "encoded as a dictionary, nested, ...)"
            )
        return chosen

    def texts(self, file: BinaryIO, place: Place) -> Iterator[str | None]:
        """The column with the texts."""
        with _opened(file) as table, _reading():
            for batch in table.iter_batches(batch_size=ROWS, columns=[place.field]):
                # by its name, because the field b of a struct a is called a.b too
                yield from batch.column(batch.schema.get_field_index(place.field)).to_pylist()

    def rewrite(self, file: BinaryIO, place: Place, released: Iterator[str | None], target: BinaryIO) -> None:
        """One row group at a time."""
        with needed():
            import pyarrow as pa
            import pyarrow.parquet as pq

        with _opened(file) as table:
            schema = table.schema_arrow
            column = schema.get_field_index(place.field)
            with pq.ParquetWriter(target, schema, compression=_codecs(table)) as writer:
                for number in range(table.num_row_groups):
                    with _reading():
                        group = table.read_row_group(number)
                    texts = [taken(released, there=there) for there in group.column(column).is_valid().to_pylist()]
                    made = pa.array(texts, schema.field(column).type)
                    writer.write_table(
                        group.set_column(column, schema.field(column), made), row_group_size=max(1, group.num_rows)
                    )

    def same_around(self, one: BinaryIO, other: BinaryIO, place: Place) -> bool:
        """Whether two files have the same schema, the same groups, and the same in all columns but one."""
        with _opened(one) as first, _opened(other) as second, _reading():
            if first.num_row_groups != second.num_row_groups or not first.schema_arrow.equals(second.schema_arrow):
                return False
            return all(
                _same(*columns, is_text=field.name == place.field)
                for number in range(first.num_row_groups)
                for field, *columns in zip(
                    first.schema_arrow,
                    first.read_row_group(number).columns,
                    second.read_row_group(number).columns,
                    strict=True,
                )
            )

    def records(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        """The rows by the names of their columns."""
        with _opened(file) as table, _reading():
            for batch in table.iter_batches(batch_size=ROWS):
                yield from batch.to_pylist()


@contextmanager
def _reading() -> Iterator[None]:
    """Turn what pyarrow says of a damaged file into one line."""
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
def _opened(file: BinaryIO) -> "Iterator[pq.ParquetFile]":
    with needed():
        import pyarrow.parquet as pq

    with _reading():
        table = pq.ParquetFile(file)
    with table:
        yield table


def _holds(kind: Any) -> Holds:
    import pyarrow as pa

    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Holds.STRINGS
    if pa.types.is_nested(kind) and kind.num_fields:
        inner = {_holds(kind.field(i).type) for i in range(kind.num_fields)}
        return Holds.OTHERS if inner == {Holds.OTHERS} else Holds.DOUBT
    plain = ("null", "boolean", "integer", "floating", "decimal", "temporal")
    return Holds.OTHERS if any(getattr(pa.types, f"is_{each}")(kind) for each in plain) else Holds.DOUBT


def _same(one: Any, two: Any, *, is_text: bool) -> bool:
    if is_text:
        one, two = one.is_null(), two.is_null()
    return bool(one.equals(two) or repr(one.to_pylist()) == repr(two.to_pylist()))  # to equals() no NaN is like another


def _codecs(table: "pq.ParquetFile") -> dict[str, str] | str:
    """The compression of each column, by its path."""
    if not table.num_row_groups:
        return "snappy"
    group = table.metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    return {each.path_in_schema: each.compression.replace("UNCOMPRESSED", "NONE") for each in columns}
