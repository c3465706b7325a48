"""Files of texts by their names: how each is opened, which of its fields has the texts, and what is done by its format.

In: a file and which field of it. Out: its texts in order, the same file with other texts in their places; whole rows.
Not here: the formats (`text`, `jsonl`, `delimited`, `parquet`, and those of other packages, by the registry), what is
done to the texts (`pipeline`), and the run over many files and processes (`corpus`).
"""

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any, BinaryIO, cast

from textveil.config import registry
from textveil.errors import ConfigError, InputError, UnknownName
from textveil.files.contract import USUAL, Format, Place


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file of texts.

    Attributes:
        path: the file.
        ending: the name of its format, "csv".
        format: what reads it.
        packed: whether it is compressed by gzip.
        place: where its texts stand.
        query: which field or column says what each text is for; None where nothing does.
        whole: whether it is one text, and not one per line.
    """

    path: Path
    ending: str
    format: Format
    packed: bool
    place: Place
    query: str | None = None
    whole: bool = False

    @property
    def field(self) -> str | None:
        """Which field or column has the texts; None where there are no fields or no rows."""
        return self.place.field


def suffix(path: str | Path) -> tuple[str, bool] | None:
    """The format that a name ends in and whether it is packed, ("csv", True) for a.csv.gz; None for other names."""
    name = Path(path)
    packed = name.suffix.lower() == ".gz"
    ending = (Path(name.stem) if packed else name).suffix.lower().removeprefix(".")
    try:
        registry.entry("format", ending)
    except UnknownName:
        return None
    return ending, packed


def load(ending: str, **options: Any) -> Format:
    """The format of a name.

    Args:
        ending: as files of it end, without the dot.
        options: of the format.

    Raises:
        UnknownName: there is no such format.
        ConfigError: it has no such option, or what another package offers is no format.
    """
    target = registry.load("format", ending)
    known = registry.signature(target)
    for option in options:
        if option not in known.known and not known.open:
            raise ConfigError(f"--{option} does not apply to .{ending}, where each row is a text")
    made = target(**options)
    if not isinstance(made, Format):
        raise ConfigError(
            f"the format {ending!r} must be a textveil.files.Format, but the {type(made).__name__} of the "
            f"package {registry.entry('format', ending).package} is not; repair or uninstall that package"
        )
    return made


def has_rows(path: str) -> bool:
    """Whether a file is more than plain lines, each a text: its rows have fields, or it is packed."""
    found = suffix(path)
    return found is not None and (found[1] or load(found[0]).fields)


def source(path: Path, *, field: str | None = None, query: str | None = None, whole: bool = False) -> Source:
    """A file in the format that its name says, and its field with the texts: the named one, `text`, or the only one.

    `query` names the field that says what each text is for.

    A field `text` is taken or refused, whatever it holds. Where there is none, a field is taken if no other can have
    strings and its name looks like one: without a header, the first line may hold a text.

    Raises:
        ConfigError: the name ends in no known format, or the field is not there or not clear.
        InputError: the file cannot be read.
    """
    found = suffix(path)
    if found is None:
        raise ConfigError(f"an input file must end in {_endings()}, or in one of them followed by .gz")
    ending, packed = found
    made = load(ending, **({"whole": True} if whole else {}))
    if packed and not made.packable:
        raise ConfigError(f"a .{ending} cannot be read from a .gz; unpack it first")
    with opened(path, packed=packed) as file:
        chosen = made.field(file, field)
    asked = None
    if query is not None:
        with opened(path, packed=packed) as file:
            asked = made.field(file, query)
        if asked == chosen:
            raise ConfigError("--query must not name the field of the texts")
    place = Place(chosen, guessed=chosen not in (field, USUAL))
    return Source(path=path, ending=ending, format=made, packed=packed, place=place, query=asked, whole=whole)


def texts(of: Source) -> Iterator[str | None]:
    """The texts in order, one per row, None where a row has none.

    Raises:
        InputError: a row is not what the format wants; it says which one, and nothing of what is in it.
    """
    with opened(of.path, packed=of.packed) as file:
        yield from of.format.texts(file, of.place)


def queries(of: Source) -> Iterator[str]:
    """What each text is for, one per row, in the order of `texts`; "" where a row does not say it, or none does.

    Raises:
        InputError: as `texts`.
    """
    if of.query is None:
        yield from repeat("")
    else:
        yield from (query or "" for query in texts(replace(of, place=Place(of.query))))


def rewrite(of: Source, released: Iterable[str | None], target: BinaryIO) -> None:
    """Write the file again with other texts in the places of its own, and all else as it was.

    Args:
        of: the file.
        released: what `texts` gave, row by row, with other texts.
        target: where the new file goes.

    Raises:
        InputError: the file has other rows than were released.
    """
    replacements = iter(released)
    with opened(of.path, packed=of.packed) as file:
        if of.packed:
            with gzip.GzipFile(filename="", mode="wb", fileobj=target, mtime=0) as packed:  # no name and no time in it
                of.format.rewrite(file, of.place, replacements, cast(BinaryIO, packed))
        else:
            of.format.rewrite(file, of.place, replacements, target)
    if next(replacements, replacements) is not replacements:
        raise InputError("the input changed during the run: it has fewer rows")


def same_around(of: Source, other: Path) -> bool:
    """Whether another file has the same rows, and the same everywhere but in its texts."""
    with opened(of.path, packed=of.packed) as one, opened(other, packed=of.packed) as two:
        return of.format.same_around(one, two, of.place)


def records(path: Path, *, ending: str | None = None, **options: Any) -> Iterator[dict[str, Any]]:
    """The rows of a file as they stand there, by the names of their fields; a line of a .txt has the one field `text`.

    Args:
        path: the file; .gz at its end says that it is packed.
        ending: the name of its format, where that of the file does not end in it.
        options: how rows of the format are read, as its `records` says.

    Raises:
        ConfigError: the name ends in no known format.
        InputError: as `texts`.
    """
    found = suffix(path)
    if ending is None:
        if found is None:
            raise ConfigError(f"a file of rows must end in {_endings()}, or in one of them followed by .gz")
        ending = found[0]
    with opened(path, packed=path.suffix.lower() == ".gz") as file:
        yield from load(ending).records(file, **options)


def is_plain(name: str) -> bool:
    """Whether a field's name looks like one, and not like a text."""
    return re.fullmatch(r"[\w.:/-]{1,60}", name) is not None


def _endings() -> str:
    return ", ".join(f".{name}" for name in registry.names("format"))


# ---- bytes -----------------------------------------------------------------------------------------------------------


@contextmanager
def opened(path: Path, *, packed: bool = False) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked.

    Args:
        path: the file.
        packed: whether it is compressed by gzip.

    Raises:
        InputError: it cannot be opened or read.
    """
    with _reading():
        raw = gzip.open(path, "rb") if packed else open(path, "rb", buffering=0)  # noqa: SIM115 - closed below
    with io.BufferedReader(_Told(cast(io.RawIOBase, raw)), 1 << 16) as file:
        yield cast(BinaryIO, file)


class _Told(io.RawIOBase):
    """The bytes of a file; errors of reading become one line."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._raw.seekable()

    def readinto(self, buffer: Any) -> int | None:
        with _reading():
            return self._raw.readinto(buffer)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with _reading():
            return self._raw.seek(offset, whence)

    def close(self) -> None:
        self._raw.close()
        super().close()


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError("the .gz file is damaged or cut off") from None
    except OSError as error:
        raise InputError(f"the input file cannot be read: {error.strerror}") from None
