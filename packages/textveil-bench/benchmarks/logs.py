"""Measures harm in machine text: what is hidden of logs and of files of packages. Part of `make bench`.

In: the folder of corpora that $TEXTVEIL_CORPORA names (`loghub`); the packages installed beside this one. Out: one
rate at a time.
Not here: prompts with labels (`prompts`), and which text is a machine's (`textveil.detect.regions`).

Logs are protected 20 lines at a time. Rules were chosen on their even lines, and on half of the packages; rows report
the odd lines and the other half. A line of a log is harmed if anything in it is hidden but addresses and names of
users and hosts: these are known by their column, or by what stands before them (`NAMED`), or have a place in
log_labels.csv: log, line from 1, start, end, kind of 100 users, hosts and addresses, chosen evenly. The logs may not be
redistributed, so that file has none of their text. A line of a package is harmed if anything in it is hidden but
addresses, or if it does not say who wrote it.
"""

import argparse
import ast
import bisect
import csv
import gzip
import json
import os
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, NamedTuple

import rowfiles
from prompts import Change, Protect, protector

from textveil_bench.circumstances import read_circumstances

HERE = Path(__file__).resolve().parent
LABELS, ROWS = HERE / "log_labels.csv", HERE / "rows" / "logs.jsonl"
LINES, CHUNK, PACKAGES, HEAD, LONGEST = 300, 20, 200, 60, 20_000
"""Lines of a log and of a chunk of it, packages, lines of a module, and characters of a file that is read."""
ADDRESSES = frozenset(("IP", "MAC", "EMAIL", "URL"))
NAMED = re.compile(
    r"""(?x) ^\w{3}[ ]+\d+[ ][\d:]{8}[ ](?P<column>\S+)
    | ^-[ ]\d{10}[ ][\d.]{10}[ ](?P<node>\S+)[ ]\w{3}[ ]\d+[ ][\d:]{8}[ ](?P<local>[\w\-]+)[/@](?P<at>[\w\-]+)
    | \b(?:[iI]nvalid[ ]user|[pP]assword[ ]for|for[ ]user|[lr]?user(?:name)?[ =]|acls[ ]to:[ ]yarn,)[ ]?
      (?P<user>[\w.\-]+)
    | (?:\\Users\\|/staging/|/(?:home|Users)/)(?P<home>[\w.\-]+)
    | (?:rhost=|://)(?P<remote>[\w\-.]+) | \((?P<lookup>[\w\-]+(?:\.[\w\-]+)+)\)
    | (?<![\w.\-])(?P<full>[\w\-]+(?:\.[\w\-]+)+\.(?:com|edu|hk|net|org|us|br|local))(?![\w.\-])
    """
)
"""Where users and hosts stand in a line of a log."""
WRITERS = re.compile(
    r"(?i)author|copyright|\(c\)|©|maintain|contribut|licen[sc]e|thanks|credit|\bby\b"
)
"""A line of a package that may say who wrote it."""


class Harm(NamedTuple):
    """A change that nobody needs: the line in its file, and what was hidden there."""

    line: int
    type: str
    value: str


def change_type(change: Change) -> str:
    """The type that a placeholder shows: `<PERSON_1>`."""
    return re.split(r"_\d|>", change.shown.lstrip("<"))[0]


def read_log(path: Path) -> list[str]:
    """The first lines of a log."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return file.read().split("\n")[:LINES]


def protect_log(protect: Protect, lines: list[str]) -> Iterator[tuple[int, int, int, str]]:
    """What is hidden in a log: line from 1, start and end in it, type."""
    for first in range(0, len(lines), CHUNK):
        chunk = lines[first : first + CHUNK]
        starts = [0]
        for line in chunk:
            starts.append(starts[-1] + len(line) + 1)
        for change in protect("\n".join(chunk)).changes:
            at = bisect.bisect_right(starts, change.start) - 1
            yield (
                first + at + 1,
                change.start - starts[at],
                change.end - starts[at],
                change_type(change),
            )


def harm_log(lines: list[str], hidden: list[tuple[int, int, int, str]]) -> list[Harm]:
    """What was hidden in a log without need."""
    places = [
        {m.span(group) for m in NAMED.finditer(line) for group in m.groupdict() if m[group]}
        for line in lines
    ]
    names = {line[a:b] for line, spots in zip(lines, places, strict=True) for a, b in spots}
    return [
        Harm(number, type_, value)
        for number, start, end, type_ in hidden
        for value in [lines[number - 1][start:end]]
        if type_ not in ADDRESSES
        and value not in names
        and not any(a < end and start < b for a, b in places[number - 1])
    ]


def labels() -> dict[str, list[tuple[int, int, int]]]:
    """The labelled places of each log: line from 1, start, end."""
    found = defaultdict(list)
    with LABELS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[row["log"]].append((int(row["line"]), int(row["start"]), int(row["end"])))
    return found


# ---- files of packages -----------------------------------------------------------------------------------------------


class File(NamedTuple):
    """A file of a package: its text, and what reads it."""

    name: str
    text: str
    parse: Callable[[str], object] | None


def _cut_module(text: str) -> str:
    """The first lines of a module, as many as parse alone."""
    lines = text.splitlines(keepends=True)[:HEAD]
    while lines:
        try:
            ast.parse("".join(lines))
            return "".join(lines)
        except (SyntaxError, ValueError):
            lines.pop()
    return ""


PARSERS: dict[str, Callable[[str], object]] = {
    ".py": ast.parse,
    ".json": json.loads,
    ".toml": tomllib.loads,
}


def files_of(package: Any) -> Iterator[File]:
    """Up to three modules of a package, its METADATA, and up to three of its settings and data."""
    counts = Counter[str]()
    for entry in sorted(package.files or (), key=str):
        suffix = entry.suffix if entry.name != "METADATA" else "METADATA"
        path = Path(str(entry.locate()))
        if suffix not in (*PARSERS, "METADATA", ".cfg") or counts[suffix] == 3:
            continue
        try:
            text = path.read_text("utf-8")
            text = _cut_module(text) if suffix == ".py" else text
            text = "".join(text.splitlines(keepends=True)[:HEAD]) if suffix == "METADATA" else text
            if not text.strip() or len(text) > LONGEST:
                continue
            PARSERS.get(suffix, str)(text)
        except (OSError, ValueError, SyntaxError):
            continue
        counts[suffix] += 1
        yield File(str(entry), text, PARSERS.get(suffix))


def digest(name: str) -> int:
    """A number that a name alone decides: it chooses packages, and halves them."""
    return int.from_bytes(sha256(name.lower().encode()).digest()[:4], "big")


def packages(half: int) -> Iterator[Any]:
    """The chosen packages of a half."""
    named = {each.metadata["Name"]: each for each in distributions() if each.metadata["Name"]}
    for name in sorted(named, key=digest)[:PACKAGES]:
        if digest(name) % 2 == half and not name.startswith("textveil"):
            yield named[name]


def harm_file(file: File, changes: list[Change]) -> list[Harm]:
    """What was hidden in a file without need."""
    lines = file.text.split("\n")
    found = []
    for change in changes:
        number = file.text.count("\n", 0, change.start)
        type_ = change_type(change)
        if type_ not in ADDRESSES and not WRITERS.search(lines[number]):
            found.append(Harm(number + 1, type_, file.text[change.start : change.end]))
    return found


def parses(file: File, release: str) -> bool:
    """Whether a release reads as its file does."""
    try:
        (file.parse or str)(release)
    except (ValueError, SyntaxError):
        return False
    return True


# ---- rates -----------------------------------------------------------------------------------------------------------


def measurements(parity: int = 1, show: int = 0) -> Iterator[dict[str, Any]]:
    """Lines harmed in each log, places hidden, lines harmed and files broken in packages.

    Args:
        parity: 1 for the lines and packages that did not choose, 0 for those that did.
        show: so many of the values that were hidden without need are printed, of what chose only.
    """
    protect = protector("prompt")
    if "TEXTVEIL_CORPORA" in os.environ:
        yield from _measure_logs(
            protect, Path(os.environ["TEXTVEIL_CORPORA"]) / "loghub", parity, show
        )
    yield from _measure_packages(protect, parity, show)


def _measure_logs(
    protect: Protect, folder: Path, parity: int, show: int
) -> Iterator[dict[str, Any]]:
    known, gone, labelled = labels(), 0, 0
    for path in sorted(folder.glob("*.log.gz")):
        name, lines = path.name.partition("_")[0], read_log(path)
        hidden = [*protect_log(protect, lines)]
        harm = [each for each in harm_log(lines, hidden) if each.line % 2 == parity]
        _show(name, harm, show * (1 - parity))
        yield _row(f"{name}: lines harmed", len({each.line for each in harm}), len(lines) // 2)
        for line, start, end in known[name]:
            covered = {i for n, a, b, _ in hidden if n == line for i in range(a, b)}
            labelled += 1
            gone += covered.issuperset(range(start, end))
            if show and not parity and not covered.issuperset(range(start, end)):
                print(f"  left: {name} {line} {lines[line - 1][start:end]}")
    yield _row("users, hosts and addresses hidden", gone, labelled)


def _measure_packages(protect: Protect, parity: int, show: int) -> Iterator[dict[str, Any]]:
    harmed, lines, broken, count = 0, 0, 0, 0
    for package in packages(parity):
        for file in files_of(package):
            outcome = protect(file.text)
            harm = harm_file(file, outcome.changes)
            _show(file.name, harm, show * (1 - parity))
            harmed += len({each.line for each in harm})
            lines += file.text.count("\n") + 1
            count += file.parse is not None
            if not parses(file, outcome.text):
                broken += 1
                print(f"  does not parse: {file.name}")
    yield _row("packages: lines harmed", harmed, lines)
    yield _row("packages: files that no longer parse", broken, count)


def _row(metric: str, hits: int, count: int) -> dict[str, Any]:
    return {
        "what": f"logs, {metric}",
        "unit": "share",
        "metric": metric,
        "value": hits / count,
        "hits": hits,
        "n": count,
    }


def _show(name: str, harm: list[Harm], count: int) -> None:
    values = Counter((each.type, each.value) for each in harm)
    for (type_, value), times in values.most_common(count):
        print(f"  {name}: {type_} {value!r} {times}")


def main() -> None:
    """Measures, prints, and stores if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--chose", action="store_true", help="the lines and packages that chose rules"
    )
    parser.add_argument(
        "--show", type=int, default=0, help="print so many values of each file that chose"
    )
    parser.add_argument("--store", action="store_true", help="store the rows in rows/logs.jsonl")
    options = parser.parse_args()
    rows = []
    for row in measurements(0 if options.chose else 1, options.show):
        rows.append(row)
        print(f"{row['metric']}: {row['hits']} of {row['n']} ({row['value']:.4f})", flush=True)
    if options.store:
        shared = {**read_circumstances("presidio-analyzer"), "config": {"profile": "prompt"}}
        rowfiles.keep(ROWS, ({**row, **shared} for row in rows))


if __name__ == "__main__":
    main()
