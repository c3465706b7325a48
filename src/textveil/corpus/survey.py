"""The survey: checks every file and cuts it into parts.

Before anything is drawn.

In: a file, and which of its fields are what. Out: its parts; marks of its ids, in the work folder.
Not here: which parts are missing (`plan`), and the drawing (`part_worker`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textveil.corpus.release_key import KeyHandle, compute_mark
from textveil.corpus.row_progress import count_rows
from textveil.corpus.rows import Labels, RowOptions
from textveil.errors import ConfigError, InputError, MissingExtra, TextveilError, UnknownName
from textveil.files import Batch, formats
from textveil.files.fields import UnknownField
from textveil.files.format_contract import BATCH_CHARACTERS, BATCH_ROWS
from textveil.files.formats import TextSource
from textveil.files.storage import Storage
from textveil.guarantee import join_parts

Marks = NDArray[np.uint64]
"""An array [n, 3]: keyed digests of 16 bytes, and the rows that they are of."""

MARKS_PER_SLICE = 1 << 22
"""Marks that are compared at once.

So that memory does not grow with the rows.
"""

MAX_PART_CHARACTERS = 1 << 25
"""The number of characters after which a part ends.

However few rows it has.
"""

MAX_SHOWN_ROWS = 20
"""The most rows that an error lists."""

UNBOUNDED = 1 << 62
"""The characters of a part or batch of whole texts: its rows must not follow from their lengths."""


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """One file of a corpus.

    Attributes:
        number: counted from 0, in the order of their names.
        path: the file, or its URI.
        state: before it was read, as `storage.state` tells it.
    """

    number: int
    path: str
    state: str


@dataclass(frozen=True, kw_only=True)
class PartCut:
    """A part of a file: consecutive rows.

    Attributes:
        start: where it begins, as `Format.batches` takes it.
        stop: where it ends.
        first: the number of its first row in the file.
        rows: how many it has.
        digest: of what is read of them; only whoever has the key can check a guess with it.
    """

    start: int
    stop: int
    first: int
    rows: int
    digest: str


@dataclass(frozen=True, kw_only=True)
class FileSurvey:
    """The result of a file's survey.

    Attributes:
        parts: its parts, in order.
        ending: its format.
        packing: how it is compressed.
        texts: the fields with texts.
        others: fields that nothing names.
        absent: fields to keep of which no row has a value.
        digest: of all bytes of the file; only whoever has the key can check a guess with it.
    """

    parts: tuple[PartCut, ...]
    ending: str
    packing: str
    texts: tuple[str, ...]
    others: tuple[str, ...]
    absent: tuple[str, ...]
    digest: str


@dataclass(frozen=True, kw_only=True)
class FileSurveyor:
    """Surveys a file, here or on another machine.

    It is read from its beginning to its end.

    Attributes:
        options: which fields are what.
        rows: of a part.
        key: of the release.
        marks: the folder for marks of ids.
        check: finds texts that may not be released, by their places; None for none.
    """

    options: RowOptions
    rows: int
    key: KeyHandle
    marks: Storage
    check: Callable[[Sequence[str]], Sequence[int]] | None = None

    def __call__(self, file: InputFile) -> FileSurvey:
        """Surveys a file, and returns its parts.

        Raises:
            ConfigError: a field is not there or not clear.
            InputError: it cannot be read, or a row is not what its format wants.
        """
        try:
            return self._survey_file(file)
        except MissingExtra:
            raise
        except UnknownField as error:
            failure: TextveilError = error.add_file(
                file.path.rpartition("/")[2], self.options.find_option(error.name)
            )
        except TextveilError as error:
            kind = ConfigError if isinstance(error, UnknownName) else type(error)
            failure = kind(f"input file {file.number + 1}, {file.path.rpartition('/')[2]}: {error}")
        raise failure  # out here, because the other error may have the row in its frames

    def _survey_file(self, file: InputFile) -> FileSurvey:
        key = self.key.read()
        source = self.options.describe_source(file.path)
        parts, other_fields, marks = list[PartCut](), set[str](), bytearray()
        start = first = rows = characters = 0
        content = build_row_hash(key)

        def end_part(at: int) -> None:
            nonlocal start, first, rows, characters, content
            parts.append(
                PartCut(start=start, stop=at, first=first, rows=rows, digest=content.hexdigest())
            )
            start, first, rows, characters, content = at, first + rows, 0, 0, build_row_hash(key)

        is_whole = self.check is not None
        limit = UNBOUNDED if is_whole else MAX_PART_CHARACTERS
        at, file_hash = 0, build_row_hash(key)
        absent, known_rows = {*source.columns.copies}, list[int]()
        ordered = source.format.is_packable  # read from front to back, all of it
        with formats.open_file(
            source.path,
            packing=source.packing,
            **({"observer": file_hash.update} if ordered else {}),
        ) as stream:
            for batch in source.format.read_batches(
                stream,
                source.columns,
                rows=min(BATCH_ROWS, self.rows),
                characters=UNBOUNDED if is_whole else BATCH_CHARACTERS,
                keep_others=False,
            ):
                labels = Labels.read(batch, self.options, file=file.number, first=first + rows)
                if self.check is not None:
                    known_rows += _find_known_rows(self.check, batch, source, first + rows)
                if self.options.id is not None:
                    marks += b"".join(
                        compute_mark(key, "id", row_id) + row.to_bytes(8, "little")
                        for row, row_id in enumerate(labels.ids, first + rows + 1)
                    )
                characters += update_hash(
                    content, batch, (*source.columns.texts, *source.columns.labels)
                )
                other_fields |= batch.other_fields
                absent -= {name for name in absent if any(batch.get_values(name))}
                count_rows(len(batch))
                rows, at = rows + len(batch), batch.end
                if rows >= self.rows or characters >= limit:
                    end_part(at)
        if rows or (at > start and not parts):
            end_part(at)
        if known_rows:
            raise InputError(_describe_known(known_rows))
        if not ordered:  # of the columns only some were read
            _hash_file(source.path, file_hash)
        if self.options.id is not None:
            self.marks.write(f"{file.number:06}.npy", pack_marks(marks))
        return FileSurvey(
            parts=tuple(parts),
            ending=source.ending,
            packing=source.packing,
            texts=source.columns.texts,
            others=tuple(sorted(other_fields)),
            absent=tuple(name for name in source.columns.copies if name in absent and parts),
            digest=file_hash.hexdigest(),
        )


def _find_known_rows(
    check: Callable[[Sequence[str]], Sequence[int]], batch: Batch, source: TextSource, first: int
) -> Iterator[int]:
    """Yields the numbers of rows with a text that may not be released, counted from 1."""
    values = {name: batch.get_values(name) for name in source.columns.texts}
    texts = [(row, text) for v in values.values() for row, text in enumerate(v) if text is not None]
    found = {texts[place][0] for place in check([text for _, text in texts])}
    yield from (first + row + 1 for row in sorted(found))


def _describe_known(rows: Sequence[int]) -> str:
    shown = ", ".join(f"{row:,}" for row in rows[:MAX_SHOWN_ROWS])
    more = f" and {len(rows) - MAX_SHOWN_ROWS:,} more" if len(rows) > MAX_SHOWN_ROWS else ""
    has, them = ("1 row has", "it") if len(rows) == 1 else (f"{len(rows):,} rows have", "them")
    return (
        "a library must be made without the texts that are released, and "
        f"{has} a text that stands in it (row {shown}{more}): leave {them} out, or make a library "
        "from public texts alone"
    )


def _hash_file(path: str | Path, hasher: Any) -> None:
    """Digests all bytes of a file."""
    with formats.open_file(path) as stream:
        while block := stream.read(1 << 20):
            hasher.update(block)


def build_row_hash(key: bytes) -> Any:
    """Returns a keyed hash object for rows; see `update_hash`.

    Only whoever has the key can check a guess with it.
    """
    return blake2b(key=key, digest_size=16, person=b"tv/rows")


def update_hash(hasher: Any, batch: Batch, names: Iterable[str]) -> int:
    """Adds the values of rows to a hash, and counts characters."""
    characters = 0
    for name in names:
        for value in batch.get_values(name):
            content = b"" if value is None else value.encode(errors="surrogatepass")
            hasher.update(
                (0 if value is None else len(content) + 1).to_bytes(8, "little") + content
            )
            characters += len(content)
    return characters


def pack_marks(marks: bytes | bytearray) -> bytes:
    """Packs marks as a .npy, sorted by their first halves."""
    array = np.frombuffer(marks, "<u8").reshape(-1, 3)
    target = BytesIO()
    np.save(target, array[np.argsort(array[:, 0], kind="stable")], allow_pickle=False)
    return target.getvalue()


def require_unique(marks: Storage) -> None:
    """Refuses repeated ids.

    A slice of all marks is compared at a time; those in an object store are brought here first.

    Raises:
        InputError: one does. It is not shown.
    """
    with TemporaryDirectory() as folder:
        paths: list[Path] = []
        for name in marks.list_files():
            if not name.endswith(".npy"):  # a piece of one that was being written
                continue
            if marks.local is None:
                (Path(folder) / name).write_bytes(marks.read(name))
            paths.append((marks.local or Path(folder)) / name)
        arrays: list[Marks] = [np.load(path, mmap_mode="r", allow_pickle=False) for path in paths]
        repeat = _find_repeat(arrays)
        del arrays
    if repeat:
        places = [f"row {row} of input file {int(paths[i].stem) + 1}" for i, row in repeat]
        raise InputError(
            f"every row must have a different id (--id), and an id occurs twice: in "
            f"{join_parts(places)}. Make them differ, or give --id-from-row in place of --id"
        )


def _find_repeat(marks: Sequence[Marks]) -> list[tuple[int, int]]:
    """Returns two places of a mark that occurs twice: the array, and the row; none for none.

    Each array is sorted by its first halves.
    """
    slices = max(1, -(-sum(map(len, marks)) // MARKS_PER_SLICE))
    # Marks are uniform, so equal ranges of their first halves hold about as many each.
    bounds = [(1 << 64) * i // slices for i in range(slices)]
    for low, high in zip(bounds, [*bounds[1:], None], strict=True):
        pieces, owners = [np.empty((0, 3), np.uint64)], list[int]()
        for i, array in enumerate(marks):
            # The last bound would be 2**64, which uint64 does not have.
            end = len(array) if high is None else int(np.searchsorted(array[:, 0], np.uint64(high)))
            pieces.append(np.array(array[int(np.searchsorted(array[:, 0], np.uint64(low))) : end]))
            owners += [i] * len(pieces[-1])
        merged = np.concatenate(pieces)
        order = np.lexsort(merged[:, :2].T)
        equal = (merged[order[1:], :2] == merged[order[:-1], :2]).all(axis=1)
        if equal.any():
            first = int(equal.argmax())
            return sorted((owners[i], int(merged[i, 2])) for i in order[first : first + 2].tolist())
    return []
