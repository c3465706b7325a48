"""Result rows of a sweep: appended to JSON files, exported as tables.

In: plain data. Out: a file with one row per cell, intact up to its last line; a table with one line
per score.
Not here: how a cell is computed (`cells`), and how rows are evaluated (`compare`, `report`).

A row, as JSON (version 1):

- `key`: the fingerprint of everything that determines the cell; a run skips cells whose key exists
  already.
- `sweep`, `entry`, `series`, `family`, `whose` ("paper", "ours", "baseline"), `seed`, `level` (in
  rows of older runs the attack success for which the budget was chosen; otherwise null).
- `data`: name, split, kind, source, digest, examples, remarks; `training` {"source", "digest",
  "examples"}, the texts that judges are trained on, null if none is trained; `learned` {"source",
  "digest", "examples", "words"}, the texts from which the important words were learned, and the
  fingerprint of the list, null if there was none. Rows of older runs have neither.
- `mechanism`, `table`, `configuration` (as `Config.to_dict`; null if nothing is privatized),
  `budget` {"path", "value"}, null if there is none.
- `epsilon`: {"kind", "metric", "per_word" (largest), "ldp"} of the statements; "infinite" if there
  is no bound.
- `lengths`, `protected`: words and protected words of each text.
- `scores`: a list of {"source", "metric", "setting", "unit", "value", "low", "high", "n",
  "baseline", "note", "headline", "geometric", "values", "weights"}. `values` has one number per
  text (for the first texts, if a score was not computed for all), null for texts without one;
  `weights` is the number of words behind each, null if each text counts once. `value` is their
  weighted mean, exp of it if `geometric`.
- `not_run`: judges and attacks that do not apply or failed (an endpoint that gave no answer), with
  the reason, by name.
- `seconds`: {"draw", "attack", "task"}.
- `circumstances`: the environment of the process that computed the cell: time, commit, python,
  versions, machine, cores, threads, device, and `judges`, the precision in which the networks of
  judges and of the attack `masked` multiply ("bfloat16" or "float32").
"""

import gzip
import json
import math
import os
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from textveil.config.extras import explain_missing
from textveil.errors import ConfigError, InputError, OutputError, TextveilWarning
from textveil.files import text_streams
from textveil.files.locks import lock_file

VERSION = 1
"""Version of the row format; raised when a field changes its meaning."""

ROWS_FILE, GALLERY_FILE = "rows.jsonl", "gallery.jsonl"
"""Files in a run's folder: the rows, and texts before and after."""

BenchRow = dict[str, Any]


def read(paths: Iterable[Path]) -> list[BenchRow]:
    """Reads the rows of files or run folders, plain or compressed (rows.jsonl.gz).

    A truncated last line, from an interrupted run, is skipped; resuming computes it again.

    Raises:
        InputError: a file cannot be read, a line is not a row, or there are no rows.
        ConfigError: a row has another version.
    """
    return list(yield_rows(paths))


def yield_rows(paths: Iterable[Path]) -> Iterator[BenchRow]:
    """Yields rows one by one, as `read`, and warns about skipped lines."""
    empty = True
    for path in paths:
        for row in _read_rows(_find_file(path), warn=True):
            empty = False
            yield row
    if empty:
        raise InputError("the files hold no rows; give at least one row")


def read_existing(folder: Path) -> list[BenchRow]:
    """Reads a folder's rows, as `read`; returns none if there are none."""
    path = _find_file(folder)
    return list(_read_rows(path)) if path.exists() else []


def _find_file(path: Path) -> Path:
    """Returns a folder's row file: the plain one unless only gzip exists."""
    if not path.is_dir():
        return path
    plain = path / ROWS_FILE
    compressed = plain.with_name(f"{ROWS_FILE}.gz")
    return compressed if compressed.exists() and not plain.exists() else plain


def read_gallery(paths: Iterable[Path]) -> Iterator[BenchRow]:
    """Yields the texts before and after that are stored next to rows.

    Raises:
        InputError: a file cannot be read, or a line has another form.
    """
    for path in dict.fromkeys(
        (path if path.is_dir() else path.parent) / GALLERY_FILE for path in paths
    ):
        for number, line in _read_lines(path, warn=True) if path.exists() else ():
            texts = [line.get(name) for name in ("data", "entry", "series", "original", "released")]
            if not all(isinstance(text, str) for text in texts):
                raise InputError(f"line {number} of {path.name!r} is not a text before and after")
            yield line


def _read_rows(path: Path, *, warn: bool = False) -> Iterator[BenchRow]:
    for number, row in _read_lines(path, warn=warn):
        if not ("key" in row and "scores" in row):
            raise InputError(f"line {number} of {path.name!r} is not a row of a bench run")
        if row.get("version") != VERSION:
            raise ConfigError(
                f"{path.name!r} must have rows of version {VERSION}; line {number} has another"
            )
        yield row


def _read_lines(path: Path, *, warn: bool) -> Iterator[tuple[int, BenchRow]]:
    """Yields a file's JSON objects with line numbers; skips truncated last lines.

    Args:
        path: path of the file.
        warn: whether to warn about a skipped line.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    value = json.loads(line)
                except ValueError:
                    value = None
                if isinstance(value, dict):
                    yield number, value
                elif line.endswith(b"\n"):
                    raise InputError(f"line {number} of {path.name!r} is not a JSON object")
                elif warn:
                    message = (
                        f"the last line of {path.name!r} is truncated and skipped; resuming the "
                        "run adds it"
                    )
                    warnings.warn(message, TextveilWarning, stacklevel=2)
    except OSError as error:
        raise InputError(
            f"cannot read the rows {path.name!r}: {error.strerror or 'it is not a gzip file'}"
        ) from None
    except (EOFError, zlib.error):
        raise InputError(
            f"cannot read the rows {path.name!r}: the gzip file is damaged or truncated"
        ) from None


@dataclass(frozen=True, kw_only=True, eq=False)
class RowStore:
    """The rows of a run's folder, locked by this process.

    Attributes:
        folder: the run's folder.
        rows: the rows that existed when it was opened.
    """

    folder: Path
    rows: Sequence[BenchRow] = field(repr=False)
    _file: BinaryIO = field(repr=False)

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Appends a row; it is on disk when this returns."""
        with text_streams.convert_write_errors():
            self._file.write(json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())


@contextmanager
def open_store(folder: Path) -> Iterator[RowStore]:
    """Opens and locks a folder of rows, creating it if needed.

    Raises:
        ConfigError: another process has locked the folder, or its rows are compressed.
        OutputError: the path is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise OutputError("the output must be a folder, and it is a file; choose another path")
    if not (folder / ROWS_FILE).exists() and _find_file(folder).exists():
        raise ConfigError(
            f"a run cannot resume from compressed rows: unpack {ROWS_FILE}.gz with gunzip first"
        )
    with text_streams.convert_write_errors():
        text_streams.make_folder(folder)
        file = open(folder / ROWS_FILE, "a+b")  # noqa: SIM115 - closed below
    with file:
        if not lock_file(file.fileno(), wait=False):
            raise ConfigError(f"another run is at work in {folder.name}; wait until it has ended")
        for name in (ROWS_FILE, GALLERY_FILE):
            _remove_unfinished_line(folder / name)
        file.seek(0, os.SEEK_END)
        rows = list(_read_rows(folder / ROWS_FILE))
        yield RowStore(folder=folder, rows=rows, _file=file)


def _remove_unfinished_line(path: Path) -> None:
    """Truncates an unfinished last line of a file."""
    if path.exists():
        with text_streams.convert_write_errors(), open(path, "r+b") as file:
            file.truncate(file.read().rfind(b"\n") + 1)


# ---- tables --------------------------------------------------------------------------------------------


def build_score_rows(rows: Iterable[BenchRow]) -> Iterator[BenchRow]:
    """Yields a flat row per score, with nested fields as JSON.

    Per-text values are left out.
    """
    for row in rows:
        shared = {
            **{
                name: row[name]
                for name in ("key", "sweep", "entry", "series", "family", "whose", "seed", "level")
            },
            "data": row["data"]["name"],
            "split": row["data"]["split"],
            "examples": row["data"]["examples"],
            "mechanism": row["mechanism"],
            "table": row["table"],
            "budget_path": (row["budget"] or {}).get("path"),
            "budget": (row["budget"] or {}).get("value"),
            "epsilon": _read_epsilon(row, "per_word"),
            "epsilon_ldp": _read_epsilon(row, "ldp"),
            "configuration": json.dumps(row["configuration"], sort_keys=True),
            "commit": row["circumstances"]["commit"],
            "time": row["circumstances"]["time"],
            "circumstances": json.dumps(row["circumstances"], sort_keys=True),
        }
        for score in row["scores"]:
            columns = (
                "source",
                "metric",
                "unit",
                "value",
                "low",
                "high",
                "n",
                "baseline",
                "note",
                "headline",
            )
            yield {
                **shared,
                "setting": json.dumps(score["setting"]),
                **{name: score[name] for name in columns},
            }


def convert_infinity(line: BenchRow) -> BenchRow:
    """Replaces infinite values by "infinite", for JSON."""
    return {name: "infinite" if value == math.inf else value for name, value in line.items()}


def _read_epsilon(row: BenchRow, name: str) -> float | None:
    value = (row["epsilon"] or {}).get(name)
    return math.inf if value == "infinite" else value


def write_table(rows: Iterable[BenchRow], path: Path, suffix: str | None = None) -> int:
    """Writes score rows as .parquet, .csv or .jsonl; returns their number.

    Args:
        rows: the rows.
        path: the file.
        suffix: the format; None for that of the file's name.

    Raises:
        ConfigError: the name has another suffix.
    """
    writers: dict[str, Callable[[list[BenchRow], BinaryIO], None]] = {
        ".parquet": _write_parquet,
        ".csv": _write_csv,
        ".jsonl": lambda lines, stream: stream.writelines(
            text_streams.format_json_line(convert_infinity(line)).encode() for line in lines
        ),
    }
    suffix = path.suffix if suffix is None else suffix
    if suffix not in writers:
        names = ", ".join([*writers, ".tex"])
        raise ConfigError(f"a table's name must end in {names}, or have --format; got {suffix!r}")
    lines = list(build_score_rows(rows))
    part = path.with_name(path.name + ".part")
    with text_streams.convert_write_errors():
        with open(part, "wb") as stream:
            writers[suffix](lines, stream)
        os.replace(part, path)
    return len(lines)


def _write_parquet(lines: list[BenchRow], stream: BinaryIO) -> None:
    with explain_missing():
        import pyarrow as pa
        import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(lines), stream)


def _write_csv(lines: list[BenchRow], stream: BinaryIO) -> None:
    import csv
    import io

    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    writer = csv.DictWriter(text, fieldnames=list(lines[0]))
    writer.writeheader()
    writer.writerows(lines)
    text.flush()
    text.detach()
