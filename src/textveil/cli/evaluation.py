"""Common parts of verbs that read a file of texts.

Reading its texts, the randomness of simulations, and writing figures.

In: a file's name, plain data. Out: texts; JSON.
Not here: formats of files (`files`), and what is made of the texts (`evaluate`, `models`).
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textveil.errors import ConfigError, InputError, quote_file
from textveil.files import formats, text_streams
from textveil.files.fields import UnknownField

if TYPE_CHECKING:
    from textveil.config import Config
    from textveil.randomness import Randomness

Limit = Annotated[
    int | None, typer.Option("--limit", metavar="N", help="Take only the first N texts.")
]
Public = Annotated[
    str | None,
    typer.Option(
        "--public",
        metavar="FILE",
        help="Public texts of the same kind, from which the attacker `learned` learns. They must "
        "not be private.",
    ),
]

SIMULATION_STREAM = 2**120
"""The random stream of simulations, apart from the mechanism's.

Under one seed; no text has such a number.
"""


def read_texts(path: str, field: str | None = None, limit: int | None = None) -> list[str]:
    """Returns the texts of a file, without empty rows.

    Args:
        path: a .txt (a text per line), .jsonl, .csv, .tsv or .parquet, also in .gz but the last; -
            is standard input.
        field: which of its fields has the texts.
        limit: the most texts to take.

    Raises:
        InputError: there is no such file, it cannot be read, or holds no text.
        ConfigError: the field is not there or not clear, or the limit is below 1.
    """
    check_limit(limit)
    if path == "-":
        with text_streams.open_texts(None) as lines:
            return _take_some(lines, limit)
    return _take_some(read_rows(path, field), limit)


def refuse_same_file(path: str, output: str | None) -> None:
    """Refuses to overwrite the input.

    Raises:
        ConfigError: both are one file.
    """
    if (
        output is not None
        and os.path.isfile(path)
        and os.path.isfile(output)
        and os.path.samefile(path, output)
    ):
        raise ConfigError(f"--output must not be the input file, {quote_file(path)}")


def read_rows(path: str, field: str | None, option: str = "--field") -> Iterator[str | None]:
    """Yields the texts of a file, None for rows without one.

    Args:
        path: as for `read_texts`, but standard input.
        field: which of its fields has the texts.
        option: what it was named with.

    Raises:
        InputError, ConfigError: as for `read_texts`.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(
            f"the input must be a file of texts; {quote_file(path)} is a folder or device"
        )
    if not os.path.isfile(path):
        raise InputError(
            f"no such file, {quote_file(path)}; give a file of texts, or - for standard input"
            f"{text_streams.suggest_file(path)}"
        )
    try:
        return formats.read_texts(formats.find_source(Path(path), field=field))
    except UnknownField as error:
        missing = error.add_file(path, option)
    raise missing


def check_limit(limit: int | None) -> None:
    """Refuses a limit that leaves nothing."""
    if limit is not None and limit < 1:
        raise ConfigError(f"--limit must be 1 or more, got {limit}")


def _take_some(rows: Iterable[str | None], limit: int | None) -> list[str]:
    result = list(islice((text for text in rows if text and text.strip()), limit))
    if not result:
        raise InputError("the file has no text")
    return result


def build_simulation_rng(config: "Config") -> "Randomness":
    """Returns the randomness for simulating a mechanism.

    Apart from the mechanism's randomness under one seed.
    """
    from textveil.randomness import SeededRandomness, SystemRandomness

    if config.seed is None:
        return SystemRandomness()
    return SeededRandomness(config.seed).derive_part(SIMULATION_STREAM)


def write_json(document: Mapping[str, Any], path: str | None) -> None:
    """Writes one JSON object to a file or standard output.

    Standard output for None.
    """
    with text_streams.open_output(path) as sink:
        sink.write(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")
