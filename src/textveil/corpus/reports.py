"""Files of reports: each is written once, and all are read for a tally.

In: reports. Out: a file that was not there before; reports out of files and folders.
Not here: how a report is drawn, and what follows from many (`pipeline.synthesis`).
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from textveil.errors import InputError, OutputError, quote_file
from textveil.files import text_streams
from textveil.pipeline import Report

ENDINGS = (".json", ".jsonl")
"""Endings of files with a report, or one on each line."""


def write_reports(path: str | Path, draw: Callable[[], Sequence[Report]]) -> int:
    """Draws reports, and writes them to a new file, one on each line.

    The file is made before anything is drawn: where there is one, a report of the document may
    have been drawn already, and a second one would be a second release.

    Args:
        path: the file.
        draw: draws the reports.

    Returns:
        How many they are.

    Raises:
        OutputError: there is such a file, or it cannot be written.
    """
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise OutputError(
            f"--output must name a file in an existing folder, got {quote_file(path)}"
        )
    with text_streams.convert_write_errors():
        try:
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            is_new = True
        except FileExistsError:
            is_new = False
    if not is_new:
        raise OutputError(
            f"--output must name a new file, and {quote_file(path)} exists: a document that was "
            "reported is not reported again, as both reports together say more of it"
        )
    try:
        reports = draw()
        with text_streams.open_output(str(target), private=True) as output:
            for report in reports:
                output.write(text_streams.format_json_line(report.dump()))
    except BaseException:
        with suppress(OSError):
            if target.stat().st_size == 0:
                target.unlink()
        raise
    return len(reports)


def read_reports(inputs: Sequence[str | Path]) -> Iterator[Any]:
    """Yields the reports in files and folders, as plain data, each file once.

    Raises:
        InputError: a file cannot be read, or holds no JSON; it is named by its number.
    """
    files = sorted({file for path in inputs for file in _find_files(Path(path))})
    for number, file in enumerate(files, 1):
        with text_streams.open_input(str(file), may_be_text=False) as stream:
            for line in text_streams.read_lines(stream):
                if line.strip():
                    yield _parse_report(line, number)


def _find_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path.resolve()]
    files = [file.resolve() for file in path.rglob("*") if file.suffix in ENDINGS]
    if not files:
        raise InputError(
            f"the folder {quote_file(path)} has no file of reports (.json, or .jsonl with one "
            "on each line)"
        )
    return files


def _parse_report(line: str, number: int) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(line)
    raise InputError(
        f"file {number} of reports, in the order of their names, must hold a report on each line, "
        "as JSON"
    )
