"""The folder of a synthesized corpus: votes, public texts, statement, manifest; and its check.

In: votes, a library. Out: the files; findings about such a folder.
Not here: how votes come about (`synthesis`, `pipeline.synthesis`).

Everything in it follows from the votes, which are public, and from public options. A check draws
all of it again.
"""

import json
import platform
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Any

from textveil import __version__
from textveil.corpus.part_worker import RUN_FILE, WORK_FOLDER
from textveil.corpus.plan import MANIFEST_FILE, lock_output
from textveil.corpus.release import (
    MARKDOWN_FILE,
    PAGE_FILE,
    PART_FILE,
    compute_digest,
    read_manifest,
)
from textveil.errors import ConfigError, InputError, TextveilError, quote_file
from textveil.files import text_streams
from textveil.files.storage import Storage
from textveil.guarantee import TextGuarantee, format_count
from textveil.library import Library, describe_baseline
from textveil.pipeline import DrawOptions, Synthesis, Votes
from textveil.render import Sheet, SheetSection, SheetTable, clean_name

VERSION = 1
"""Version of the manifest."""

KIND = "synthesis"
"""What a manifest and the record of a run say that they are."""

VOTES_FILE = "votes.json"

PART_ROWS = 20_000
"""Rows of a part."""

MAX_TABLE_ROWS = 200
"""The most cells whose counts a statement shows."""

TITLE = "A corpus of public texts"


@dataclass(frozen=True, kw_only=True)
class Check:
    """Findings about a folder.

    Attributes:
        differences: a line for each; empty where all agrees.
        notes: what could not be checked.
    """

    differences: tuple[str, ...]
    notes: tuple[str, ...] = ()


# ---- votes ---------------------------------------------------------------------------------------


def dump_votes(votes: Votes) -> bytes:
    """Returns the bytes of votes, the same for equal ones."""
    return json.dumps(votes.dump(), ensure_ascii=False, indent=1).encode() + b"\n"


def read_votes(folder: Storage | str | Path) -> Votes:
    """Reads the votes of a folder, or of a file.

    Raises:
        InputError: they cannot be read, or are none.
    """
    if isinstance(folder, Storage):
        content, name = folder.read(VOTES_FILE), f"{VOTES_FILE} in {quote_file(folder.uri)}"
    else:
        head, _, tail = str(folder).rpartition("/")
        content, name = Storage(head or ".").read(tail), quote_file(folder)
    document: Any = None
    with suppress(ValueError, RecursionError):
        document = json.loads(content)
    if not isinstance(document, dict):
        raise InputError(f"{name} is not JSON with votes; corpus synthesize writes it")
    return Votes.parse(document)


# ---- publishing ----------------------------------------------------------------------------------


def collect_pins(guarantee: TextGuarantee, drawing: DrawOptions) -> dict[str, Any]:
    """Collects the options on which the folder depends: all of them are public."""
    return {
        "way": guarantee.way,
        "library": guarantee.library.digest,
        "cells": guarantee.library.level,
        "labels": list(guarantee.labels),
        "epsilon": guarantee.epsilon,
        "unit": guarantee.unit,
        "per_subject": guarantee.per_subject,
        "noun": guarantee.subject,
        **asdict(drawing),
    }


def publish(
    output: Storage,
    votes: Votes,
    library: Library,
    drawing: DrawOptions,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Writes texts, statement and manifest beside votes that are there.

    Args:
        output: the folder.
        votes: those in it.
        library: the one that was voted on.
        drawing: how texts are drawn.
        options: all that the folder depends on, which the manifest shows.

    Returns:
        The manifest, which is written last: with it the folder is finished.
    """
    corpus = votes.corpus(library, **asdict(drawing))
    parts = []
    rows_left = corpus.yield_rows()
    for number, size in enumerate(_divide(len(corpus))):
        name, rows = _name_part(number), [*islice(rows_left, size)]
        content = b"".join(text_streams.format_json_line(row).encode() for row in rows)
        output.write(name, content, subfolder=WORK_FOLDER)
        parts.append({"name": name, "rows": size, "bytes": len(content), **_sign(content)})
    manifest = {
        "textveil": __version__,
        "date": get_date(),
        "versions": _collect_versions(),
        **_describe_corpus(corpus),
        "options": dict(options),
        "parts": parts,
    }
    sheets = render_statement(votes, library, manifest)
    for name, content in sheets.items():
        output.write(name, content, subfolder=WORK_FOLDER)
    manifest["statement_sha256"] = {
        name: _sign(content)["sha256"] for name, content in sheets.items()
    }
    manifest["sha256"] = compute_digest(manifest)
    document = json.dumps(manifest, ensure_ascii=False, allow_nan=False, indent=1)
    output.write(MANIFEST_FILE, document.encode() + b"\n", subfolder=WORK_FOLDER)
    return manifest


def _describe_corpus(corpus: Synthesis) -> dict[str, Any]:
    """Returns what a manifest says that follows from votes and library alone."""
    votes, library = corpus.votes, corpus.library
    return {
        "version": VERSION,
        "kind": KIND,
        "library": {**vars(votes.library)},
        "library_alone": dict(library.facts),
        "licence": library.licence,
        "texts": len(corpus),
        "statement": corpus.guarantee.to_json(),
        "votes_sha256": _sign(dump_votes(votes))["sha256"],
    }


def get_date() -> str:
    """Returns the day of the release."""
    return datetime.now(UTC).date().isoformat()


def _divide(rows: int) -> list[int]:
    """Divides rows among parts, and returns the size of each."""
    return [min(PART_ROWS, rows - start) for start in range(0, rows, PART_ROWS)]


def _name_part(number: int) -> str:
    return f"part-{number:08}.jsonl"


def _sign(content: bytes) -> dict[str, str]:
    return {"sha256": sha256(content).hexdigest()}


def _collect_versions() -> dict[str, str]:
    """Returns the versions on which smoothed labels depend."""
    versions = {"python": platform.python_version()}
    with suppress(PackageNotFoundError):
        versions["numpy"] = version("numpy")
    return versions


# ---- the statement -------------------------------------------------------------------------------


def render_statement(
    votes: Votes, library: Library, manifest: Mapping[str, Any]
) -> dict[str, bytes]:
    """Returns the files of the statement, by name."""
    sheet = _build_sheet(votes, library, manifest)
    return {
        MARKDOWN_FILE: sheet.render_markdown().encode(),
        PAGE_FILE: sheet.render_html().encode(),
    }


def _build_sheet(votes: Votes, library: Library, manifest: Mapping[str, Any]) -> Sheet:
    guarantee = votes.build_guarantee(manifest["texts"])
    facts, parts = votes.library, manifest["parts"]
    names = parts[0]["name"] if len(parts) == 1 else f"{parts[0]['name']} to {parts[-1]['name']}"
    labels = ", ".join(map(clean_name, votes.label_names)) or "none"
    return Sheet(
        title=TITLE,
        facts=[
            ("date", manifest["date"]),
            ("version", f"textveil {manifest['textveil']}"),
            ("texts", f"{format_count(manifest['texts'], 'public text')} in {names}"),
            ("labels", labels),
            ("library", f"{facts.name}: {format_count(facts.texts, 'text')}; {facts.source}"),
            ("licence", facts.licence),
            ("digest", f"of the library: {facts.digest}"),
        ],
        sections=[
            SheetSection(heading="In plain words", paragraphs=[guarantee.explain_plainly()]),
            SheetSection(heading="The statement", paragraphs=guarantee.headline().split("\n")),
            SheetSection(
                heading="What it does not say",
                paragraphs=[
                    "Which kinds of texts there are, how often, and with which labels: that is "
                    "kept. No fact, name, number or order of the private texts, no link between "
                    "them, nothing about a single one, nothing finer than a cell, and no topic "
                    "that the library lacks.",
                    "Every text here was public before and is passed on word for word, under the "
                    f"licence {facts.licence}. Names and facts in it are those of the library: "
                    "each row says that it is public, and where in the source it stands.",
                ],
            ),
            SheetSection(
                heading="What the library does alone",
                paragraphs=[describe_baseline(library, votes.label_names), _WHY_ALONE],
            ),
            SheetSection(
                heading="How to check it",
                paragraphs=[
                    f"All files follow from {VOTES_FILE}, the library and public options. "
                    "The command textveil corpus verify FOLDER --library FILE draws them again and "
                    "names what differs."
                ],
            ),
            SheetSection(heading="The statement in full", exact=guarantee.explain()),
            _build_counts(votes),  # long, and so the last
        ],
    )


_WHY_ALONE = (
    "What is trained on these texts may be as good without any private text: compare it with what "
    "the library alone gives, before its merit is ascribed to the private texts."
)


def _build_counts(votes: Votes) -> SheetSection:
    """Builds the table of the votes, which are public."""
    is_count = votes.way == "counts"
    numbers = votes.counts if is_count else votes.estimate().round(1)
    labels = [clean_name(name) for name in votes.label_names] or ["documents"]
    rows = [
        [str(cell), *(f"{number:,}" for number in column.tolist())]
        for cell, column in enumerate(numbers.T)
    ]
    total = ["sum", *(f"{number:,}" for number in numbers.sum(axis=1).round(1).tolist())]
    shown = rows if len(rows) <= MAX_TABLE_ROWS else []
    paragraph = (
        "Noise stands in every number, also where no document is: numbers below 0 and sums that "
        "do not fit are its traces."
        if is_count
        else "How many documents each cell has, estimated from the reports: numbers below 0 are "
        "traces of the noise."
    )
    if not shown:
        paragraph += f" {VOTES_FILE} has all of them."
    return SheetSection(
        heading="The noisy counts" if is_count else "What follows from the reports",
        paragraphs=[paragraph],
        tables=[SheetTable(head=("cell", *labels), rows=[*shown, total])],
    )


# ---- reading and checking ------------------------------------------------------------------------


def is_synthesis(folder: str | Path) -> bool:
    """Says whether a folder holds a synthesized corpus, finished or interrupted."""
    storage = Storage(str(folder))
    return _has_kind(storage) or _has_run(storage)


def _has_kind(storage: Storage) -> bool:
    with suppress(ValueError, KeyError, TypeError, InputError):
        return bool(json.loads(storage.read(MANIFEST_FILE))["kind"] == KIND)
    return False


def _has_run(storage: Storage) -> bool:
    with suppress(ValueError, TypeError, InputError):
        return KIND in json.loads(storage.get_folder(WORK_FOLDER).read(RUN_FILE))
    return False


def verify_synthesis(folder: str | Path, library: Library) -> Check:
    """Checks that a folder follows from its votes and the library, and lists what does not.

    Args:
        folder: the folder, or its URI.
        library: the one that was voted on.

    Raises:
        InputError: there is no manifest, or it was changed; or no votes.
        ConfigError: the library is another one.
    """
    output = Storage(str(folder))
    manifest = read_manifest(output, versions=(VERSION,), kind=KIND)
    try:
        return _verify_manifest(output, manifest, library)
    except TextveilError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        problem = f"the {MANIFEST_FILE} in {quote_file(output.uri)} is not what textveil writes"
    raise InputError(problem)


def _verify_manifest(output: Storage, manifest: dict[str, Any], library: Library) -> Check:
    differences = list(_find_strangers(output, manifest))
    if any(line.startswith(VOTES_FILE) for line in differences):
        return Check(differences=tuple(differences))
    votes = read_votes(output)
    drawing = DrawOptions(**{name: manifest["options"][name] for name in vars(DrawOptions())})
    notes = []
    now, then = (each.get("numpy") for each in (_collect_versions(), manifest["versions"]))
    is_smoothed = bool(votes.label_names) and drawing.smooth != "none"
    if is_smoothed and now != then:
        notes.append(
            f"labels were smoothed with numpy {then}, and here is another version: texts and cells "
            "were checked, labels only for being listed"
        )
    corpus = votes.corpus(library, **asdict(drawing))
    differences += _compare_rows(output, manifest, corpus, with_labels=not notes)
    differences += _compare_manifest(manifest, corpus)
    if manifest["textveil"] == __version__:
        for name, content in render_statement(votes, library, manifest).items():
            if output.has_file(name) and output.read(name) != content:
                differences.append(f"{name} does not follow from {VOTES_FILE} and the library")
    return Check(differences=tuple(dict.fromkeys(differences)), notes=tuple(notes))


def _compare_manifest(manifest: Mapping[str, Any], corpus: Synthesis) -> Iterator[str]:
    """Yields a line for each entry of the manifest that says something else, or is none."""
    expected = json.loads(json.dumps(_describe_corpus(corpus)))
    for name, value in expected.items():
        if manifest.get(name) != value:
            yield f"the {name} in {MANIFEST_FILE} does not follow from {VOTES_FILE} and the library"
    others = {"textveil", "date", "versions", "options", "parts", "statement_sha256", "sha256"}
    if manifest.keys() != expected.keys() | others:
        yield f"{MANIFEST_FILE} has other entries than every release has"
    drawing = DrawOptions(**{name: manifest["options"][name] for name in vars(DrawOptions())})
    pins = json.loads(json.dumps(collect_pins(corpus.votes.guarantee, drawing)))
    if "votes" in manifest["options"]:  # drawn from votes that were there
        pins["votes"] = expected["votes_sha256"]
    else:
        pins["charged"] = (
            manifest["options"].get("charged") is True
        )  # in a ledger, which is elsewhere
    if manifest["options"] != pins:
        yield f"the options in {MANIFEST_FILE} do not follow from {VOTES_FILE}"


def _find_strangers(output: Storage, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yields what is missing, changed, or does not belong there."""
    expected = {part["name"]: part["sha256"] for part in manifest["parts"]}
    expected |= manifest["statement_sha256"]
    expected[VOTES_FILE] = manifest["votes_sha256"]
    present = {*output.list_tree()} - {MANIFEST_FILE}
    for name, digest in expected.items():
        if name not in present:
            yield f"{name} is missing"
        elif output.hash_file(name) != digest:
            yield f"{name} was changed"
    for name in sorted(present - expected.keys()):
        yield f"{name} does not belong to the release"


def _compare_rows(
    output: Storage, manifest: Mapping[str, Any], corpus: Synthesis, *, with_labels: bool
) -> Iterator[str]:
    """Yields a line for each part whose rows are not those that the votes give."""
    pairs = {*zip(corpus.library.ids, corpus.library.texts, strict=True)}
    expected, sizes = corpus.yield_rows(), _divide(len(corpus))
    names = [part["name"] for part in manifest["parts"]]
    if names != [_name_part(number) for number in range(len(sizes))]:
        yield "the parts are not as many as the texts need"
    for name, size in zip(names, sizes, strict=False):
        wanted = [*islice(expected, size)]
        if not output.has_file(name):
            continue
        rows = _parse_rows(output.read(name))
        if rows is None or len(rows) != size:
            yield f"{name} must have {format_count(size, 'row')} of JSON, and has not"
            continue
        for what, numbers in _find_wrong_rows(
            rows, wanted, pairs, corpus.votes, with_labels
        ).items():
            if numbers:
                yield (
                    f"{name}: {format_count(len(numbers), 'row')} {what}, first row {numbers[0] + 1}"
                )


def _parse_rows(content: bytes) -> list[Mapping[str, Any]] | None:
    with suppress(ValueError, RecursionError):
        rows = [json.loads(line) for line in content.decode().splitlines()]
        return rows if all(isinstance(row, dict) for row in rows) else None
    return None


def _find_wrong_rows(
    rows: Sequence[Mapping[str, Any]],
    wanted: Sequence[Mapping[str, Any]],
    pairs: Set[tuple[str, str]],
    votes: Votes,
    with_labels: bool,
) -> dict[str, list[int]]:
    """Finds the rows that are wrong, by what is wrong."""
    wrong: dict[str, list[int]] = {
        "without a text of the library under its id": [],
        "with another text, cell or field than the votes give": [],
        "with a label that does not follow from the votes": [],
    }
    strange, other, mislabelled = wrong.values()
    for number, (row, expected) in enumerate(zip(rows, wanted, strict=True)):
        label = row.get("label")
        if (str(row.get("source")), str(row.get("text"))) not in pairs:
            strange.append(number)
        elif {**row, "label": None} != {**expected, "label": None}:
            other.append(number)
        elif (with_labels and label != expected.get("label")) or (
            votes.label_names and label not in votes.label_names
        ):
            mislabelled.append(number)
    return wrong


# ---- ending --------------------------------------------------------------------------------------


def finish_synthesis(folder: str | Path, *, give_up: bool = False) -> str:
    """Ends a run: deletes what an interrupted one left. There is no key to destroy.

    Args:
        folder: the folder, or its URI.
        give_up: of an interrupted run, delete all that is there.

    Returns:
        A sentence on what was done.

    Raises:
        ConfigError: the run was interrupted and could go on, or another process is at work on it.
    """
    output = Storage(str(folder))
    with lock_output(output):
        work = output.get_folder(WORK_FOLDER)
        if output.has_file(MANIFEST_FILE):
            work.remove()
            return (
                "There is nothing to destroy: the noise was never kept, and all else follows from "
                f"{VOTES_FILE}."
            )
        if not give_up:
            raise ConfigError(
                "the run was interrupted: continue it with `textveil corpus synthesize --resume`, "
                "or delete its files with --give-up"
            )
        was_drawn = output.has_file(VOTES_FILE)
        for name in output.list_files():
            if name in (VOTES_FILE, MARKDOWN_FILE, PAGE_FILE) or PART_FILE.fullmatch(name):
                output.delete(name)
        work.remove()  # last, because its file is what allows another try
        return (
            "The noisy counts were deleted. Whoever saw them keeps what they say: another run is "
            "another release, and its epsilon adds to theirs."
            if was_drawn
            else "Nothing had been drawn."
        )
