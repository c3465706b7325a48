"""What a run left behind: rows, and texts before and after.

In: files of rows, or the folders that they are in. Out: rows one by one; the gallery beside them.
Not here: what is made of rows (`compare`), and how they are written (`rows`).
"""

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textveil.errors import ConfigError, InputError, TextveilWarning

VERSION = 1
"""Of rows; those of another one are refused."""

ROWS, GALLERY = "rows.jsonl", "gallery.jsonl"


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A text of a public data set and what was released of it."""

    data: str
    entry: str
    series: str
    budget: Any
    original: str
    released: str


def rows(paths: Iterable[Path]) -> Iterator[Mapping[str, Any]]:
    """The rows of files, one at a time. A last line that was cut short is left out, with a warning.

    Args:
        paths: files, or folders with a file of the name `ROWS`.

    Raises:
        InputError: a file cannot be read, or another line than the last is no row.
        ConfigError: a row is of another version.
    """
    for path in map(_file, paths):
        for number, row in _lines(path):
            if row.get("version") != VERSION:
                raise ConfigError(
                    f"{path.name} must have rows of version {VERSION}, and line {number} is of version "
                    f"{row.get('version')!r}; run the sweep again, or report it with the textveil that wrote it"
                )
            yield row


def gallery(paths: Iterable[Path]) -> list[Shown]:
    """The texts that stand beside these rows; none where no run kept any.

    Raises:
        InputError: a line is none of a gallery.
    """
    found: list[Shown] = []
    for folder in dict.fromkeys(_file(path).parent for path in paths):
        if not (folder / GALLERY).is_file():
            continue
        for number, line in _lines(folder / GALLERY):
            try:
                shown = Shown(**{name: line[name] for name in Shown.__dataclass_fields__})
                if not all(
                    isinstance(text, str) for text in (shown.data, shown.series, shown.original, shown.released)
                ):
                    raise TypeError
            except (KeyError, TypeError):
                raise InputError(f"line {number} of {GALLERY} must be a text before and after, and is not") from None
            found.append(shown)
    return found


def _file(path: Path) -> Path:
    return path / ROWS if path.is_dir() else path


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with a JSON object on each line, and their numbers from 1 on."""
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                try:
                    value = json.loads(line) if line.strip() else {}
                except ValueError:
                    value = None
                if value == {}:
                    continue
                if not isinstance(value, dict):
                    if not line.endswith(b"\n"):
                        note = f"the last line of {path.name} was cut short and is left out; a run that goes on adds it"
                        warnings.warn(note, TextveilWarning, stacklevel=2)
                        return
                    raise InputError(f"line {number} of {path.name} must be a JSON object, and is not")
                yield number, value
    except OSError as error:
        raise InputError(f"the rows {path.name} cannot be read: {error.strerror}") from None
