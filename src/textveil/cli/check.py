"""Reports of `textveil protect --check`: places of private values in files, never the values.

In: files and folders; a baseline. Out: a line, annotation or result of SARIF for each place; exit
status 1 if there is one.
Not here: the verb (`protect`), and how places are found and accepted (`corpus.check`).
"""

import os
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import typer

from textveil.cli import console, progress
from textveil.cli.statement_options import say_unmeasured
from textveil.errors import ConfigError, InputError, TextveilError
from textveil.files import text_streams

if TYPE_CHECKING:
    from textveil.config import Config
    from textveil.corpus.check import FilePlace


class PlaceReport(StrEnum):
    """The form in which places are reported."""

    lines = "lines"
    json = "json"
    github = "github"
    sarif = "sarif"


def run_check(
    config: "Config",
    paths: Sequence[str],
    report: PlaceReport,
    *,
    output: str | None,
    baseline: str | None,
    accept: bool,
) -> None:
    """Reports the places of private values in files.

    Args:
        config: says what is private.
        paths: files and folders.
        report: the form.
        output: a file for the report; None for standard output.
        baseline: a file of accepted places.
        accept: whether to write the places there, in place of reporting them.

    Raises:
        typer.Exit: with status 1, there are places that are not accepted.
        ConfigError, InputError: no files, no baseline, or a file cannot be read or checked.
    """
    if not paths or "-" in paths:
        raise ConfigError("--check needs files or folders")
    if accept and baseline is None:
        raise ConfigError("--accept needs --baseline, the file to write")
    from textveil.corpus.check import Baseline, find_places, list_files
    from textveil.pipeline import Protector

    accepted = None if baseline is None else Baseline(baseline, is_new=accept)
    protector, unmeasured = Protector.from_config(config), set[str]()
    skipped, hidden = list[str](), list[str]()
    files = list(dict.fromkeys(list_files(paths, hidden.append)))
    results = find_places(
        protector,
        files,
        skip=skipped.append,
        read=lambda text: unmeasured.update(protector.unmeasured(text)),
    )
    places_by_file: dict[str, list[FilePlace]] = {}
    try:
        with progress.show_bars(unit=" files") as report_progress:
            for number, (file, places) in enumerate(results, 1):
                places_by_file[file] = places
                report_progress("checked", number, len(files))
    except TextveilError:
        raise
    except Exception as error:  # status 1 would say that something private was found
        raise InputError(f"the check failed: unexpected {type(error).__name__}") from error
    if accept and accepted is not None:
        for file, places in places_by_file.items():
            accepted.accept(file, places)
        accepted.write()
        total = sum(map(len, places_by_file.values()))
        console.note(f"{_count(total, 'place')} accepted in {_count(len(places_by_file), 'file')}.")
        return
    new_places = [
        place
        for places in places_by_file.values()
        for place in (places if accepted is None else accepted.drop_accepted(places))
    ]
    with text_streams.open_output(output) as sink:
        sink.write(FORMATS[report](new_places))
    for name in skipped:
        console.note(f"textveil: warning: {_spell(name)} is binary or compressed, and not checked")
    if unmeasured:
        say_unmeasured(unmeasured, strict=config.protect.unmeasured == "strict")
    # Others may run in the same hook, each with some of the files.
    start = f"{_count(len(places_by_file), 'file')} checked"
    if hidden:
        start += f", {_count(len(hidden), 'hidden file or folder', 'hidden files or folders')} not"
    accepted_count = sum(map(len, places_by_file.values())) - len(new_places)
    more = f", and {_count(accepted_count, 'place')} accepted" if accepted_count else ""
    if not new_places:
        what = f"nothing new{more}" if accepted_count else "nothing was found"
        console.note(f"{start}: {what}; there may still be something private there.")
        return
    where = _count(len({place.file for place in new_places}), "file")
    console.note(
        f"{start}: {_count(len(new_places), 'private value')} in {where}{more}. `textveil find "
        "FILE` shows values and reasons; --baseline FILE --accept accepts them."
    )
    raise typer.Exit(1)


def _count(number: int, noun: str, nouns: str = "") -> str:
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def _spell(path: str) -> str:
    """Writes the name of a file on one line, in valid UTF-8."""
    name = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in name)


def _format_lines(places: Sequence["FilePlace"]) -> str:
    return "".join(f"{_spell(p.file)}:{p.line}:{p.column}: {p.type}\n" for p in places)


def _format_json(places: Sequence["FilePlace"]) -> str:
    return "".join(
        text_streams.format_json_line(place.to_json() | {"file": _spell(place.file)})
        for place in places
    )


def _format_github(places: Sequence["FilePlace"]) -> str:
    """Writes a command of a GitHub workflow for each place, which the change then shows."""
    lines = []
    for place in places:
        name = _spell(place.file).replace(os.sep, "/").replace("%", "%25")
        name = name.replace(",", "%2C").replace(":", "%3A")
        where = f"file={name},line={place.line},col={place.column}"
        if place.line == place.end_line:  # columns of several lines are refused
            where += f",endColumn={place.end_column}"
        lines.append(
            f"::error {where},title=textveil::{place.type}: private, as far as textveil sees\n"
        )
    return "".join(lines)


def _format_sarif(places: Sequence["FilePlace"]) -> str:
    """Writes SARIF 2.1.0, which code scanning reads."""
    from urllib.parse import quote

    from textveil import __version__

    types = sorted({place.type for place in places})
    rules = [{"id": name, "shortDescription": {"text": f"private: {name}"}} for name in types]
    results = [
        {
            "ruleId": place.type,
            "level": "error",
            "message": {"text": f"{place.type}: private, as far as textveil sees"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {
                            "uri": quote(os.fsencode(place.file.replace(os.sep, "/")))
                        },
                        "region": {
                            "startLine": place.line,
                            "startColumn": place.column,
                            "endLine": place.end_line,
                            "endColumn": place.end_column,
                        },
                    }
                }
            ],
        }
        for place in places
    ]
    driver = {"name": "textveil", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return text_streams.format_json_line({"version": "2.1.0", "runs": [run]})


FORMATS: dict[PlaceReport, Callable[[Sequence["FilePlace"]], str]] = {
    PlaceReport.lines: _format_lines,
    PlaceReport.json: _format_json,
    PlaceReport.github: _format_github,
    PlaceReport.sarif: _format_sarif,
}
