"""Checks that a wheel says of all that is in it where it comes from, under which licence, and with which notice.

In: a built wheel, and the table `licences.toml` in it. Out: what is wrong, a line each.
Not here: what the table says (`src/textveil/data/licences/licences.toml`), and components of it (`sbom`).
"""

import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from email.parser import HeaderParser
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

from packaging.licenses import canonicalize_license_expression

TABLES = {
    "textveil": "data/licences/licences.toml",
    "textveil_bench": "licences.toml",
}
"""The place of the table in each package."""

LARGEST = 100_000_000
"""Bytes of a file that the package index takes."""

Table = Mapping[str, Any]


class Wheel(NamedTuple):
    """What a wheel says and holds.

    Args:
        package: its import name.
        files: sizes of its files by path below the package.
        expression: the licence of its metadata.
        licence_files: paths of its metadata.
        table: its sources and files.
        size: of the whole wheel, in bytes.
    """

    package: str
    files: Mapping[str, int]
    expression: str
    licence_files: tuple[str, ...]
    table: Table
    size: int


def read_wheel(path: Path) -> Wheel:
    """Reads what is checked of a wheel."""
    package = path.name.partition("-")[0]
    with ZipFile(path) as opened:
        files = {
            each.filename.removeprefix(f"{package}/"): each.file_size
            for each in opened.infolist()
            if each.filename.startswith(f"{package}/") and not each.is_dir()
        }
        (about,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(opened.read(about).decode())
        table = tomllib.loads(opened.read(f"{package}/{TABLES[package]}").decode())
    return Wheel(
        package=package,
        files=files,
        expression=metadata["License-Expression"] or "",
        licence_files=tuple(metadata.get_all("License-File", [])),
        table=table,
        size=path.stat().st_size,
    )


def is_notice(path: str) -> bool:
    """Says whether a file is the notice of a source."""
    return path.rpartition("/")[2].startswith("LICENSE-")


def find_lines(path: str, table: Table) -> list[Mapping[str, Any]]:
    """Finds the lines of the table that name a file."""
    return [
        line
        for line in table["files"]
        if any(_is_match(path, pattern) for pattern in line["files"])
    ]


def _is_match(path: str, pattern: str) -> bool:
    return path.count("/") == pattern.count("/") and fnmatchcase(path, pattern)


def join_licences(expressions: Iterable[str]) -> str:
    """Joins licences by AND, each once: those of SPDX by the alphabet, and others behind them."""
    parts = {part for each in expressions for part in each.split(" AND ")}
    return " AND ".join(sorted(parts, key=lambda part: (part.startswith("LicenseRef-"), part)))


def find_faults(wheel: Wheel) -> Iterator[str]:
    """Finds what a wheel leaves unsaid, or says and does not hold."""
    sources = wheel.table["sources"]
    for path in wheel.files:
        if path.endswith(".py") or is_notice(path):
            continue
        if (count := len(find_lines(path, wheel.table))) != 1:
            yield f"{path} must stand on one line of {TABLES[wheel.package]}, and stands on {count}"
    for line in wheel.table["files"]:
        for pattern in line["files"]:
            if not any(_is_match(path, pattern) for path in wheel.files):
                yield f"{pattern} names no file of the wheel"
    used = {name for line in wheel.table["files"] for name in line["from"]}
    for name in used ^ sources.keys():
        yield f"{name} must be a source that is described, and used"
    yield from _find_unsaid(wheel, [sources[name] for name in used & sources.keys()])
    if wheel.size >= LARGEST:
        yield f"a wheel must have less than {LARGEST:,} bytes, and has {wheel.size:,}"


def _find_unsaid(wheel: Wheel, sources: list[Table]) -> Iterator[str]:
    """Finds licences and notices of sources that are not in the wheel and its metadata."""
    notices = {notice for source in sources for notice in source.get("notices", ())}
    for notice in notices | {path for path in wheel.files if is_notice(path)}:
        if not wheel.files.get(notice):
            yield f"{notice} must be in the wheel, and not empty"
        if notice not in notices:
            yield f"{notice} must be the notice of a source"
        if not any(path.endswith(f"{wheel.package}/{notice}") for path in wheel.licence_files):
            yield f"{notice} must be among the licence files of the metadata"
    for name in ("LICENSE", "NOTICE") if notices else ("LICENSE",):
        if name not in wheel.licence_files:
            yield f"{name} must be among the licence files of the metadata"
    expected = join_licences(source["licence"] for source in sources)
    if wheel.expression != expected or canonicalize_license_expression(expected) != expected:
        yield f"the licence of the metadata must be: {expected}"


def main() -> None:
    """Checks the wheels that are named; the exit status is 1 if something is wrong."""
    faults = [
        f"{path}: {fault}"
        for path in sys.argv[1:]
        for fault in sorted(find_faults(read_wheel(Path(path))))
    ]
    for fault in faults:
        print(fault)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
