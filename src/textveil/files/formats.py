"""Files of texts by name: format, compression and text field.

In: a file, by its path or by a URI that fsspec knows, and which field of it. Out: its texts in
order; rows, and the same rows with other texts; whole rows.
Not here: the formats (`text`, `jsonl`, `delimited`, `parquet`, and those of other packages, by the
registry), what is done to the texts (`pipeline`), and the run over many files and processes
(`corpus`).
"""

import bz2
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from textveil.config import registry
from textveil.config.extras import explain_missing
from textveil.errors import ConfigError, InputError, TextveilError, UnknownName, quote_file
from textveil.files.fields import UnknownField
from textveil.files.format_contract import DEFAULT_FIELD, Format, TextColumns


@dataclass(frozen=True, kw_only=True)
class TextSource:
    """A file of texts.

    Attributes:
        path: the file, or its URI.
        ending: the name of its format, "csv".
        format: what reads it.
        packing: how it is compressed, as its name ends, "gz"; "" where it is not.
        columns: where its texts stand.
    """

    path: str | Path
    ending: str
    format: Format
    packing: str
    columns: TextColumns


def parse_suffix(path: str | Path) -> tuple[str, str] | None:
    """Returns the format and compression that a name ends in.

    ("csv", "gz") for a.csv.gz; None for other names.
    """
    name = PurePosixPath(str(path))
    packing = name.suffix.lower().removeprefix(".")
    packing = packing if packing in COMPRESSORS else ""
    ending = (PurePosixPath(name.stem) if packing else name).suffix.lower().removeprefix(".")
    try:
        registry.find_entry("format", ending)
    except UnknownName:
        return None
    return ending, packing


def load_format(ending: str, **options: Any) -> Format:
    """Loads the format of a name.

    Args:
        ending: as files of it end, without the dot.
        options: of the format.

    Raises:
        UnknownName: there is no such format.
        ConfigError: it has no such option, or what another package offers is no format.
    """
    target = registry.load("format", ending)
    signature = registry.read_options(target)
    for option in options:
        if option not in signature.keywords and not signature.is_open:
            raise ConfigError(f"--{option} does not apply to .{ending}, where each row is a text")
    reader = target(**options)
    if not isinstance(reader, Format):
        raise ConfigError(
            f"the format {ending!r} must be a textveil.files.Format, but the "
            f"{type(reader).__name__} of the package "
            f"{registry.find_entry('format', ending).package} is not; repair or uninstall that "
            "package"
        )
    return reader


def has_rows(path: str) -> bool:
    """Says whether the rows of a file have fields.

    Else it is plain lines, each a text.
    """
    suffix = parse_suffix(path)
    return suffix is not None and load_format(suffix[0]).has_fields


def is_packed(path: str) -> bool:
    """Says whether a file is compressed, itself or by its format.

    It then cannot be read as it is.
    """
    suffix = parse_suffix(path)
    return suffix is not None and (suffix[1] != "" or not load_format(suffix[0]).is_packable)


def find_source(path: str | Path, *, field: str | None = None, whole: bool = False) -> TextSource:
    """Describes a file by its name: its format and text field.

    The field is the named one, `text`, or the only one.

    A field `text` is taken or refused, whatever it holds. Where there is none, a field is taken if
    no other can have strings and its name looks like one: without a header, the first line may hold
    a text.

    Raises:
        ConfigError: the name ends in no known format, or the field is not there or not clear.
        InputError: the file cannot be read.
    """
    suffix = parse_suffix(path)
    if suffix is None:
        raise ConfigError(
            f"an input file must end in {_list_endings()}, or in one of them followed by "
            f"{_list_packings()}; {quote_file(path)} does not"
        )
    ending, packing = suffix
    reader = load_format(ending, **({"whole": True} if whole else {}))
    if packing and not reader.is_packable:
        raise ConfigError(
            f"a .{ending} file cannot be read compressed as .{packing}; unpack "
            f"{quote_file(path)} first"
        )
    name: str | None = None
    missing: UnknownField | None = None
    with open_file(path, packing=packing) as file:
        try:
            name = reader.find_field(file, field)
        except UnknownField as error:
            missing = error.add_file(path, "--field")
    # out here, because the other error may have what is in the file in its frames
    if missing is not None:
        raise missing
    columns = TextColumns(
        texts=(name or DEFAULT_FIELD,), guessed=name not in (field, DEFAULT_FIELD)
    )
    return TextSource(path=path, ending=ending, format=reader, packing=packing, columns=columns)


def read_texts(source: TextSource) -> Iterator[str | None]:
    """Yields the texts in order, one per row.

    None where a row has none.

    Raises:
        InputError: a row is not what the format wants; it says which one, and nothing of what is in
            it.
    """
    (name,) = source.columns.texts
    with open_file(source.path, packing=source.packing) as file:
        for batch in source.format.read_batches(file, source.columns, keep_others=False):
            yield from batch.get_values(name)


def read_records(
    path: Path, *, ending: str | None = None, **options: Any
) -> Iterator[dict[str, Any]]:
    """Yields the rows of a file as mappings.

    By the names of their fields; a line of a .txt has the one field `text`.

    Args:
        path: the file; .gz at its end says that it is packed.
        ending: the name of its format, where that of the file does not end in it.
        options: how rows of the format are read, as its `read_records` says.

    Raises:
        ConfigError: the name ends in no known format.
        InputError: as `read_texts`.
    """
    suffix = parse_suffix(path)
    if ending is None:
        if suffix is None:
            raise ConfigError(
                f"a file of rows must end in {_list_endings()}, or in one of them followed by "
                f"{_list_packings()}; {quote_file(path)} does not"
            )
        ending = suffix[0]
    packing = path.suffix.lower().removeprefix(".")
    with open_file(path, packing=packing if packing in COMPRESSORS else "") as file:
        yield from load_format(ending).read_records(file, **options)


def is_plain(name: str) -> bool:
    """Says whether a field's name looks like a name.

    And not like a text.
    """
    return re.fullmatch(r"[\w.:/-]{1,60}", name) is not None


def _list_endings() -> str:
    return ", ".join(f".{name}" for name in registry.list_names("format"))


def _list_packings() -> str:
    *first, last = (f".{name}" for name in COMPRESSORS)
    return f"{', '.join(first)} or {last}"


# ---- bytes ---------------------------------------------------------------------------------------


def _open_zstd(file: BinaryIO, mode: str) -> Any:
    with explain_missing():
        import pyarrow as pa
    if mode == "rb":
        return pa.CompressedInputStream(file, "zstd")
    return pa.CompressedOutputStream(file, "zstd")


COMPRESSORS: dict[str, Callable[[BinaryIO, str], Any]] = {
    "gz": lambda file, mode: gzip.GzipFile(
        filename="", mode=mode, fileobj=file, mtime=0
    ),  # no name and no time in it
    "bz2": lambda file, mode: bz2.BZ2File(file, mode),  # type: ignore[call-overload]
    "xz": lambda file, mode: lzma.LZMAFile(file, mode),  # noqa: SIM115 - closed by who asks
    "zst": _open_zstd,
}
"""Compressors, by the ending of a file's name.

The same bytes are always compressed to the same.
"""


@contextmanager
def open_file(
    path: str | Path,
    *,
    packing: str = "",
    observer: Callable[[memoryview], object] = lambda _: None,
) -> Iterator[BinaryIO]:
    """Opens a file, and yields its unpacked bytes.

    Args:
        path: the file, or its URI.
        packing: how it is compressed; "" where it is not.
        observer: is given all bytes that are read, unpacked, in the order of reading.

    Raises:
        InputError: it cannot be opened or read.
    """
    with _convert_errors(packing):
        local = isinstance(path, Path) or "://" not in path
        # Unbuffered, because the reader below is the buffer.
        raw = open(path, "rb", buffering=0) if local else _open_remote(str(path))  # noqa: SIM115 - closed below
    with raw:
        with _convert_errors(packing):
            inner = COMPRESSORS[packing](raw, "rb") if packing else raw
        with io.BufferedReader(_InputFile(inner, packing, observer), 1 << 16) as file:
            yield cast(BinaryIO, file)


@contextmanager
def open_compressor(target: BinaryIO, packing: str) -> Iterator[BinaryIO]:
    """Opens a compressor on a file.

    With "" the file itself.
    """
    if not packing:
        yield target
        return
    with COMPRESSORS[packing](target, "wb") as file:
        yield file


def _open_remote(uri: str) -> Any:
    import fsspec

    return fsspec.open(uri, "rb").open()


class _InputFile(io.RawIOBase):
    """The bytes of a file, whose reading errors become one line."""

    def __init__(self, raw: Any, packing: str, observer: Callable[[memoryview], object]) -> None:
        self._raw, self._packing, self._observer = raw, packing, observer

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._raw.seekable())

    def readinto(self, buffer: Any) -> int | None:
        with _convert_errors(self._packing):
            count: int | None = self._raw.readinto(buffer)
        self._observer(memoryview(buffer)[: count or 0])
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with _convert_errors(self._packing):
            return int(self._raw.seek(offset, whence))

    def close(self) -> None:
        self._raw.close()
        super().close()


@contextmanager
def _convert_errors(packing: str) -> Iterator[None]:
    try:
        yield
    # Before OSError, because BadGzipFile is one.
    except (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError):
        raise InputError(f"the .{packing} file is damaged or cut off") from None
    except OSError as error:
        if isinstance(error, TextveilError):
            raise
        reason = error.strerror or (
            f"the .{packing} is damaged or cut off" if packing else type(error).__name__
        )
        raise InputError(f"the input file cannot be read: {reason}") from None
