"""Tables as folders: converted once, verified by checksum, memory-mapped.

In: vectors from a source, or such a folder. Out: the folder; an `EmbeddingTable`; a description of
one.
Not here: the formats of published vectors (`vectors`), what a table can do (`embedding`), its
constants (`constants`).

A folder holds `table.json`, `words.json` (an array of strings), `rows.npy` [V, d] and, if they were
computed, `neighbours.npy` and `distances.npy` [V, k]. One of a model's pieces also holds their
`tokenizer.json`, and is of version 2. It gets its name only when it is complete.
"""

import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self, cast, get_args

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from textveil.config import registry
from textveil.errors import ConfigError, OutputError, TableError, TextveilError
from textveil.guarantee import format_number
from textveil.randomness import Floats, Values
from textveil.table import constants
from textveil.table.constants import TableConstants
from textveil.table.embedding import UNFIT_CHARACTERS, EmbeddingTable, Metric, load_table, take_rows
from textveil.table.pairwise import find_largest
from textveil.table.vectors import Unit, Vectors

DType = Literal["float16", "float32"]
Progress = Callable[[str, int, int], None]
"""Function called with a step's name, the amount done and the total."""

VERSIONS: dict[int, Unit] = {1: "word", 2: "wordpiece"}
"""The unit of the tables of each version."""
MANIFEST, WORDS, ROWS, NEIGHBOURS, DISTANCES, TOKENIZER = FILES = (
    "table.json",
    "words.json",
    "rows.npy",
    "neighbours.npy",
    "distances.npy",
    "tokenizer.json",
)
UNFINISHED_SUFFIX = ".part"
"""Suffix of an unfinished folder, which never loads."""

MAX_PAIRS_WORDS = 50_000
"""Largest number of words whose pairs of rows are compared by default."""
MIN_FLOAT16_NUMBERS = 1 << 26
"""Number of values from which rows are stored in float16 by default.

256 MiB in float32.
"""
MAX_PART_NUMBERS = 1 << 20
"""Numbers processed at once: 8 MiB in float64."""

_HEADER = 128
"""Bytes before the rows.

NumPy pads headers to a multiple of 64, and ours always fit into 128.
"""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The content of `table.json`.

    Attributes:
        name: the table's name in statements.
        source: the file or model it was made from.
        format: the format of the source, see `vectors.opened`.
        metric: "chord" (the rows were normalized before they were stored) or "euclidean".
        dtype: of the stored rows.
        words: V.
        dimension: d.
        repeated: words of the source that were left out as repeated.
        broken: words of the source that were left out as broken.
        neighbours: k, the number of nearest words listed for each word; 0 for none.
        constants: conservative for the rows as the table returns them.
        files: size and SHA-256 of each other file.
        unit: "wordpiece" where the words are pieces of the tokenizer that is stored with them.
    """

    name: str
    source: str
    format: str
    metric: Metric
    dtype: DType
    words: int
    dimension: int
    repeated: int
    broken: int
    neighbours: int
    constants: TableConstants = field(repr=False)
    files: dict[str, dict[str, Any]] = field(repr=False)
    unit: Unit = "word"

    def to_json(self) -> dict[str, object]:
        """Returns plain values."""
        # A table of words is written as version 1 had it, which knew no others.
        left_out = {"constants", *(["unit"] if self.unit == "word" else [])}
        return {
            "textveil table": next(number for number, of in VERSIONS.items() if of == self.unit),
            **{name: value for name, value in self.__dict__.items() if name not in left_out},
            "constants": self.constants.to_json(),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Reads a manifest from the values of `to_json`."""
        fields = {name: value for name, value in values.items() if name != "textveil table"}
        manifest = cls(**{**fields, "constants": TableConstants.from_json(fields["constants"])})
        counts = (
            manifest.words,
            manifest.dimension,
            manifest.repeated,
            manifest.broken,
            manifest.neighbours,
        )
        texts = (manifest.name, manifest.source, manifest.format)
        listed = {NEIGHBOURS, DISTANCES} if manifest.neighbours else set()
        listed |= {TOKENIZER} if manifest.unit == "wordpiece" else set()
        shape = (manifest.words, manifest.dimension, manifest.metric)
        constants_shape = (
            manifest.constants.words,
            manifest.constants.dimension,
            manifest.constants.metric,
        )
        sound = (
            # the exact type: true and false of JSON are instances of int
            {*map(type, counts)} == {int},
            min(counts) >= 0,
            not any(map(UNFIT_CHARACTERS.search, texts)),
            manifest.metric in get_args(Metric),
            manifest.dtype in get_args(DType),
            manifest.unit in get_args(Unit),
            manifest.files.keys() == {WORDS, ROWS} | listed,
            all({*map(type, stamp.values())} == {int, str} for stamp in manifest.files.values()),
            shape == constants_shape,
        )
        if not all(sound):
            raise ValueError
        return manifest


# ---- building ------------------------------------------------------------------------------------


def build(  # noqa: PLR0913 - most are options, given by keyword
    vectors: Vectors,
    folder: str | Path,
    *,
    name: str | None = None,
    metric: Metric = "chord",
    dtype: DType | None = None,
    neighbours: int = 10,
    pairs: bool | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Manifest:
    """Converts vectors into a table's folder.

    The folder appears only when it is complete.

    Args:
        vectors: opened with `zero_rows` only for metric euclidean.
        folder: must not exist, unless `force` is set.
        name: the table's name in statements; None for the name of the source.
        metric: of the table's statements.
        dtype: of the stored rows; None for float16 in large tables, otherwise float32.
        neighbours: how many nearest words to list for each word, if pairs are computed; 0 for none.
        pairs: whether to go through all pairs of rows, for exact constants, the exponential
            mechanism's curve and the nearest words. None does so up to 50,000 words.
        force: replace the folder of a table, or an empty one.
        progress: see `Progress`; the first step counts bytes of the source.

    Raises:
        ConfigError: an option is wrong, or no table could be loaded under the folder's name.
        TableError: the source is malformed.
        OutputError: the folder exists, or cannot be written.
    """
    _check_options(folder, name, metric, dtype, neighbours)
    report = progress or (lambda step, done, total: None)
    with _replace_folder(Path(os.path.realpath(folder)), force) as part:
        words, rows = _write_rows(vectors, part / ROWS, metric, dtype, report)
        (part / WORDS).write_text(
            json.dumps(words, ensure_ascii=False, separators=(",\n", ":")), "utf-8", newline="\n"
        )
        if pairs or (pairs is None and len(words) <= MAX_PAIRS_WORDS):
            table_constants, neighbour_count = _compute_from_pairs(
                part, words, rows, metric, neighbours, report
            )
        else:
            table_constants, neighbour_count = (
                constants.compute_bounds(lambda: _report_parts(rows, metric, report), metric),
                0,
            )
        if vectors.tokenizer is not None:
            (part / TOKENIZER).write_text(vectors.tokenizer.to_str(), "utf-8", newline="\n")
        files = {name: _compute_stamp(part / name) for name in FILES if (part / name).exists()}
        manifest = Manifest(
            name=name or vectors.name,
            source=vectors.file,
            format=vectors.format,
            metric=metric,
            dtype=cast("DType", rows.dtype.name),
            words=len(words),
            dimension=rows.shape[1],
            repeated=vectors.left_out.duplicates,
            broken=vectors.left_out.broken,
            neighbours=neighbour_count,
            constants=table_constants,
            files=files,
            unit="word" if vectors.tokenizer is None else "wordpiece",
        )
        # The manifest comes last: it holds the checksums of all other files.
        (part / MANIFEST).write_text(_spell(manifest), encoding="utf-8", newline="\n")
    return manifest


def _check_options(
    folder: str | Path, name: str | None, metric: str, dtype: str | None, neighbours: int
) -> None:
    if str(folder) in registry.list_names("table"):
        raise ConfigError(
            f"{folder} is the name of a registered table; for a folder of that name write "
            f"./{folder}"
        )
    # `read` takes such a folder for one left from an unfinished build.
    if os.path.realpath(folder).endswith(UNFINISHED_SUFFIX):
        raise ConfigError(
            f"the name of a table's folder must not end with {UNFINISHED_SUFFIX}, got {folder}"
        )
    if name is not None and UNFIT_CHARACTERS.search(name):
        raise ConfigError("the name of a table must not contain line breaks or control characters")
    if metric not in get_args(Metric):
        raise ConfigError(f"the metric of a table must be chord or euclidean, got {metric!r}")
    if dtype not in (None, *get_args(DType)):
        raise ConfigError(f"the dtype of a table must be float16 or float32, got {dtype!r}")
    if neighbours < 0:
        raise ConfigError(f"the number of neighbours must be at least 0, got {neighbours}")


def _write_rows(
    vectors: Vectors, path: Path, metric: Metric, dtype: DType | None, report: Progress
) -> tuple[list[str], NDArray[Any]]:
    """Writes the rows; returns the words, and the rows memory-mapped."""
    words: list[str] = []
    kind, width = np.dtype(dtype or "float32").newbyteorder("<"), 0
    with path.open("w+b") as file:
        # Room for the header: the number of words and the type are known only at the end.
        file.write(bytes(_HEADER))
        for block in vectors.blocks:
            words += block.words
            width = block.rows.shape[1]
            # A source need not tell its size in advance, so rows already written are converted.
            if dtype is None and kind.itemsize == 4 and len(words) * width > MIN_FLOAT16_NUMBERS:
                kind = np.dtype("<f2")
                _halve(file, vectors)
            file.write(
                _cast(
                    _normalize(block.rows) if metric == "chord" else block.rows, kind, vectors
                ).tobytes()
            )
            report("reading", block.read, vectors.total)
        header = io.BytesIO()
        shape = {"descr": kind.str, "fortran_order": False, "shape": (len(words), width)}
        np.lib.format.write_array_header_1_0(header, shape)
        assert header.tell() == _HEADER
        file.seek(0)
        file.write(header.getvalue())
    report("reading", vectors.total, vectors.total)
    return words, np.load(path, mmap_mode="c", allow_pickle=False)


def _normalize(rows: Floats) -> Values:
    double = rows.astype(np.float64)
    norms = np.linalg.norm(double, axis=1, keepdims=True)
    if not norms.all():
        raise TableError(
            "metric chord does not allow zero rows; drop those words or use metric euclidean"
        )
    unit: Values = double / norms
    return unit


def _cast(rows: NDArray[Any], kind: np.dtype[Any], vectors: Vectors) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        cast_rows = rows.astype(kind)
    if not np.isfinite(cast_rows).all():
        raise vectors.left_out.build_error(
            "it holds a number too large for float16; use --dtype float32"
        )
    return cast_rows


def _halve(file: io.BufferedRandom, vectors: Vectors) -> None:
    """Converts the float32 rows written so far to float16, in place."""
    end = file.tell()
    # Writing never overtakes reading, because float16 takes half the bytes.
    read = write = _HEADER
    while read < end:
        file.seek(read)
        content = file.read(min(4 * MAX_PART_NUMBERS, end - read))
        read += len(content)
        file.seek(write)
        write += file.write(
            _cast(np.frombuffer(content, "<f4"), np.dtype("<f2"), vectors).tobytes()
        )
    file.seek(write)
    file.truncate()


def _iterate_parts(rows: NDArray[Any], metric: Metric) -> Iterator[Floats]:
    """Yields stored rows as the table returns them."""
    step = max(1, MAX_PART_NUMBERS // rows.shape[1])
    return (
        take_rows(rows[start : start + step], metric == "chord")
        for start in range(0, len(rows), step)
    )


def _report_parts(rows: NDArray[Any], metric: Metric, report: Progress) -> Iterator[Floats]:
    done = 0
    for part in _iterate_parts(rows, metric):
        yield part
        report("constants", done := done + len(part), len(rows))


def _compute_from_pairs(
    part: Path,
    words: list[str],
    stored: NDArray[Any],
    metric: Metric,
    neighbours: int,
    report: Progress,
) -> tuple[TableConstants, int]:
    """Computes the constants from all pairs of rows, and writes the neighbours.

    Returns the constants, and the number of neighbours per word.
    """
    # Constants must hold for the rows as the table returns them, after rounding to the stored type.
    rows = np.concatenate(list(_iterate_parts(stored, metric)))
    computed = constants.compute(
        rows, metric, progress=lambda done, total: report("constants", done, total)
    )
    listed = min(neighbours, len(words) - 1)
    if listed:
        table = EmbeddingTable.build(name="", words=words, vectors=rows, metric=metric)
        lists = [*_find_nearest(table, listed, report)]
        np.save(part / NEIGHBOURS, np.concatenate([near for near, _ in lists]))
        np.save(part / DISTANCES, np.concatenate([away for _, away in lists]))
    return computed, listed


def _find_nearest(
    table: EmbeddingTable, count: int, report: Progress
) -> Iterator[tuple[NDArray[np.int32], Floats]]:
    """Finds the nearest other words of each word, and their distances."""
    step = max(1, MAX_PART_NUMBERS // len(table))
    for start in range(0, len(table), step):
        block = np.arange(start, min(len(table), start + step))
        distances = table.distances(block)
        distances[np.arange(len(block)), block] = np.inf
        near = find_largest(-distances, count)
        yield near.astype("<i4"), np.take_along_axis(distances, near, axis=1).astype("<f4")
        report("neighbours", int(block[-1]) + 1, len(table))


# ---- a folder that appears when it is complete ---------------------------------------------------


@contextmanager
def _replace_folder(folder: Path, force: bool) -> Iterator[Path]:
    """Yields a folder to write into, which appears when the body succeeds.

    Otherwise it is removed.
    """
    # Beside the target, because a rename does not cross file systems.
    part = folder.with_name(f".{folder.name}.{os.getpid()}-{time.time_ns()}{UNFINISHED_SUFFIX}")
    missing = [parent for parent in part.parents if not parent.exists()]
    try:
        _refuse_existing(folder, force)
        part.mkdir(parents=True)
        yield part
        # Flushed before the rename: after a crash the name must not stand for missing data.
        for file in part.iterdir():
            _sync(file)
        _sync(part)
        _refuse_existing(folder, force)  # it may have appeared meanwhile
        _swap(part, folder)
        _sync(folder.parent)
    # An OutputError is an OSError as well, and has its message already.
    except TextveilError:
        raise
    except OSError as error:
        raise OutputError(
            f"cannot write {folder}: {error.strerror or type(error).__name__}"
        ) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
        for parent in missing:
            with suppress(OSError):  # still holds the table
                parent.rmdir()


def _swap(part: Path, folder: Path) -> None:
    """Gives a folder its name, in place of a former table.

    The former table is deleted when the new one is in place, and restored if not.
    """
    former = part.with_suffix(".former")  # loads under this name if the process is killed here
    try:
        if folder.exists():
            folder.rename(former)
        part.rename(folder)
    finally:
        # Also after a failed rename or a signal one of the two tables has the name.
        if former.exists() and not folder.exists():
            former.rename(folder)
        with suppress(OSError):  # only files of a table are deleted
            for name in FILES:
                (former / name).unlink(missing_ok=True)
            former.rmdir()


def _refuse_existing(folder: Path, force: bool) -> None:
    """Raises if something exists at the path.

    With `force`, only for anything but a table, even a damaged one.
    """
    if not os.path.lexists(folder):
        return
    if not force:
        raise OutputError(f"{folder} exists; --force replaces the folder of a table")
    entries = {path.name: path for path in folder.iterdir()} if folder.is_dir() else {"": folder}
    if entries and MANIFEST not in entries:
        raise OutputError(
            f"{folder} is not the folder of a table, and is not replaced; choose another path"
        )
    for name, path in sorted(entries.items()):
        if not _is_part(name, path):
            raise OutputError(
                f"{folder} is not replaced: it holds {name!r}, which is not part of a table"
            )
    if entries and not {WORDS, ROWS} <= entries.keys():
        read(folder)  # a table.json alone must be valid


def _is_part(name: str, path: Path) -> bool:
    return name in FILES and path.is_file() and not path.is_symlink()


def _sync(path: Path) -> None:
    """Flushes a file or folder to disk, where folders can be opened."""
    with suppress(PermissionError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# ---- loading -------------------------------------------------------------------------------------


def load(folder: str | Path, *, metric: Metric = "chord", device: str = "cpu") -> EmbeddingTable:
    """The table in a folder, after verifying all of it; its rows are memory-mapped.

    Raises:
        ConfigError: it was built for the other metric.
        TableError: it is missing, damaged or something else.
    """
    manifest = verify(folder)
    if metric != manifest.metric:
        raise ConfigError(
            f"the table {folder} was built for table.metric={manifest.metric}, got {metric!r}"
        )
    path = Path(folder) / WORDS
    try:
        words = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        words = None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise _build_error(path, "it must be an array of strings")
    rows = _map_array(Path(folder) / ROWS, manifest.dtype, (manifest.words, manifest.dimension))
    table = EmbeddingTable.build(
        name=manifest.name,
        words=words,
        vectors=rows,
        metric=manifest.metric,
        device=device,
        tokenizer=_read_tokenizer(Path(folder) / TOKENIZER)
        if manifest.unit == "wordpiece"
        else None,
    )
    return replace(table, stored=manifest.constants)  # the checksums tie them to the rows


def _read_tokenizer(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_file(str(path))
    except Exception:  # the Rust side raises bare Exception
        raise _build_error(path, "it is not a tokenizer; build the table again") from None


def verify(folder: str | Path) -> Manifest:
    """Returns a folder's manifest, after verifying the checksums of all files.

    Raises:
        TableError: the table is missing, damaged or something else.
    """
    manifest = read(folder)
    for name, stamp in manifest.files.items():
        path = Path(folder) / name
        try:
            size = path.stat().st_size
            # The size first: it is cheap, and finds a file that was cut short without reading it.
            actual = _compute_stamp(path) if size == stamp.get("bytes") else None
        except OSError as error:
            raise _build_error(path, error.strerror or "it cannot be read") from None
        if actual is None:
            raise _build_error(
                path, f"it must have {stamp.get('bytes')} bytes, got {size}; build the table again"
            )
        if actual != stamp:
            raise _build_error(
                path, "its SHA-256 differs from the one in table.json; build the table again"
            )
    return manifest


def read(folder: str | Path) -> Manifest:
    """Reads a folder's manifest, and no other file.

    Raises:
        TableError: it is not the folder of a table, or its table.json is damaged.
    """
    path = Path(folder) / MANIFEST
    if Path(os.path.realpath(folder)).name.endswith(UNFINISHED_SUFFIX):
        raise _build_error(folder, "it is left from an unfinished build; delete it")
    try:
        content = path.read_bytes()
    except OSError as error:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise _build_error(path, error.strerror or "it cannot be read") from None
        raise _build_error(
            folder,
            "it is not the folder of a table (no table.json); `textveil table build` makes one",
        ) from None
    try:
        text = content.decode()
        values = json.loads(text)
        version = values.get("textveil table")
    except (ValueError, AttributeError, RecursionError):
        raise _build_error(
            path, "it is damaged, or not from textveil; build the table again"
        ) from None
    if version not in [*VERSIONS]:  # a list: the value may be of any type
        raise _build_error(
            path,
            f"it must be of version {' or '.join(map(str, VERSIONS))}, got {version}; build the "
            "table again",
        )
    try:
        values.pop("sha256")
        manifest = Manifest.from_json(values)
        # Spelling it again checks the checksum and the form of every value at once.
        if _spell(manifest) == text:
            return manifest
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, TextveilError):
        pass
    raise _build_error(path, "it is damaged, or not from textveil; build the table again")


def read_neighbours(folder: str | Path) -> tuple[NDArray[np.int32], Floats]:
    """Reads the nearest other words of each word, nearest first.

    Returns rows [V, k], and their distances.

    Raises:
        TableError: the folder is damaged, or has no neighbours.
    """
    manifest = verify(folder)
    if not manifest.neighbours:
        raise _build_error(
            folder, "it has no list of nearest words; build it with --pairs and --neighbours"
        )
    shape = manifest.words, manifest.neighbours
    near = _map_array(Path(folder) / NEIGHBOURS, "int32", shape)
    away = _map_array(Path(folder) / DISTANCES, "float32", shape)
    # Whoever edits a folder can make its checksums fit, and a wrong row would be out of range.
    if near.min() < 0 or near.max() >= manifest.words:
        raise _build_error(
            Path(folder) / NEIGHBOURS, "it must hold row numbers; build the table again"
        )
    return near, away


def _map_array(path: Path, dtype: str, shape: tuple[int, int]) -> NDArray[Any]:
    """Maps an array of a table into memory.

    Writes to it stay in this process.
    """
    try:
        # It refuses arrays of objects, whose pickles could run code.
        array = np.lib.format.open_memmap(path, mode="c")
    except Exception:  # NumPy raises many kinds for a foreign header
        raise _build_error(path, "it is not an array of a table; build the table again") from None
    if (array.dtype, array.shape) != (np.dtype(dtype).newbyteorder("<"), shape):
        raise _build_error(
            path, f"it must hold {shape[0]} x {shape[1]} numbers in {dtype}; build the table again"
        )
    return cast("NDArray[Any]", array)


def _compute_stamp(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {
            "bytes": path.stat().st_size,
            "sha256": hashlib.file_digest(file, "sha256").hexdigest(),
        }


def _spell(manifest: Manifest) -> str:
    """Writes the text of table.json.

    It ends with the checksum of all before it.
    """
    values = manifest.to_json()
    digest = hashlib.sha256(json.dumps(values, ensure_ascii=False).encode()).hexdigest()
    lines = [
        f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in values.items()
    ]
    return "{\n" + ",\n".join([*lines, f' "sha256": "{digest}"']) + "\n}\n"


def _build_error(path: str | Path, reason: str) -> TableError:
    return TableError(f"{path}: {reason}")


# ---- describing a table --------------------------------------------------------------------------


def describe(name: str) -> dict[str, Any]:
    """Describes a table as plain values.

    The content of its folder, or the constants of a registered one.
    """
    if registry.is_folder(name):
        return {"table": name, **verify(name).to_json()}
    table = load_table(name)
    shape = {"words": len(table), "dimension": table.dimension}
    constants_json = table.stored and table.stored.to_json()
    return {
        "table": name,
        "name": table.name,
        "metric": table.metric,
        **shape,
        "constants": constants_json,
    }


def list_folders(folder: str | Path) -> Iterator[tuple[str, str]]:
    """Finds the tables among the subfolders of a folder.

    Each comes with a line about it.
    """
    if not Path(folder).is_dir():
        raise TableError(f"{folder}: no such folder")
    for path in sorted(Path(folder).iterdir()):
        if (path / MANIFEST).is_file() and not path.name.endswith(UNFINISHED_SUFFIX):
            try:
                manifest = read(path)
                yield (
                    str(path),
                    (
                        f"{manifest.words:,} x {manifest.dimension}, {manifest.metric}, "
                        f"{manifest.dtype}, {manifest.source}"
                    ),
                )
            except TableError as error:
                yield str(path), str(error)


def find_nearest_words(
    name: str, word: str, count: int
) -> tuple[bool, str, list[tuple[str, float]]]:
    """Finds a word's nearest words in a table.

    Returns whether the table has the word, the word of its row (another if it does not), and the
    nearest words with their distances.
    """
    table = load_table(name, metric=read(name).metric if registry.is_folder(name) else "chord")
    rows, in_table = table.lookup([word])
    word_row = int(rows[0])
    centre = table.take(slice(word_row, word_row + 1)).astype(np.float64)
    distances = np.concatenate(
        [np.linalg.norm(part - centre, axis=1) for part in table.yield_slabs()]
    )
    distances[word_row] = np.inf
    near = find_largest(-distances[None], min(count, len(table) - 1))[0].tolist()
    return (
        bool(in_table[0]),
        table.words[word_row],
        [(table.words[row], float(distances[row])) for row in near],
    )


def format_summary(name: str) -> str:
    """Formats `describe` as lines for people.

    Bounds are rounded up.
    """
    description = describe(name)
    constants_json = description["constants"]
    lines = {"table": description["table"]}
    if "files" in description:
        left_out = (
            f"{description['repeated']:,} repeated and {description['broken']:,} broken words "
            "left out"
        )
        size = sum(stamp["bytes"] for stamp in description["files"].values())
        lines |= {
            "name": description["name"],
            "made from": f"{description['source']} ({description['format']}); {left_out}",
        }
        lines["files"] = f"{size:,} bytes in {description['dtype']}, checksums verified"
    noun = "pieces" if description.get("unit") == "wordpiece" else "words"
    lines |= {
        noun: f"{description['words']:,} of {description['dimension']} numbers",
        "metric": description["metric"],
    }
    lines |= _format_constants(constants_json) if constants_json else {}
    if "neighbours" in description:
        lines["nearest words"] = (
            f"{description['neighbours']} of each word"
            if description["neighbours"]
            else "not listed"
        )
    width = max(map(len, lines))
    return "\n".join(f"{name:{width}}  {value}" for name, value in lines.items())


def _format_constants(constants_json: Mapping[str, Any]) -> dict[str, str]:
    searched = constants_json["minimum_distance"] is not None
    bound = "" if searched else " (a bound)"
    knots = (
        f"{len(constants_json['curve']['knots'])} knots"
        if constants_json["curve"]
        else "not computed"
    )
    return {
        "diameter": format_number(constants_json["diameter"], 5) + bound,
        "l1 diameter": format_number(constants_json["l1_diameter"], 5) + bound,
        "coordinate range": format_number(constants_json["coordinate_range"], 5),
        "minimum distance": f"{constants_json['minimum_distance']:.4f}"
        if searched
        else "not computed",
        "equal rows": f"{constants_json['duplicates']:,}" if searched else "not counted",
        "calibration curve": knots,
    }
