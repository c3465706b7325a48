"""The plan of a run: every file is read and checked before anything is drawn.

In: files, a folder, resolved options. Out: for each file what is to be done, or what an earlier run has finished.
Not here: the formats (`files`), the chunks of an interrupted run (`store`), and the drawing (`runs`).
"""

import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import Any

from textveil import __version__
from textveil.config import Config
from textveil.corpus import chunks
from textveil.errors import ConfigError, InputError, MissingExtra, TextveilError, UnknownName
from textveil.files import formats, streams, work
from textveil.guarantee import Guarantee

VERSION = 1
"""Version of the statement's file; it changes when a field changes its meaning."""

MANIFEST = "manifest.json"
"""What the chunks in a work folder depend on."""

KEY = "release.key"
"""What the draws of an unseeded run depend on besides; destroyed when all chunks are there."""

NAME_BYTES = 255
"""How long a file's name can be on usual file systems."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One file of a run.

    Attributes:
        source: the file.
        folder: where the output goes.
        rows: how many it has.
        state: the file's identity, size and time when it was read; none may change.
        pins: what must be the same when the run is resumed. Holds a seed and a digest of private text, so it stays in
            the work folder.
        public: what of it stands in the statement's file.
        seeded: whether draws follow from a seed, and not from a key of the run.
    """

    source: formats.Source
    folder: Path
    rows: int
    state: tuple[int, ...]
    pins: dict[str, Any] = field(repr=False)
    public: dict[str, Any]
    seeded: bool

    @property
    def places(self) -> "Places":
        """The files that it makes."""
        return Places.of(self.source.path.name, self.folder)


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where the output, its statement and the chunks of one file are."""

    output: Path
    statement: Path
    work: Path

    @classmethod
    def of(cls, name: str, folder: Path) -> "Places":
        """All are in one folder, under names that follow from the file's own."""
        return cls(output=folder / name, statement=folder / f"{name}.guarantee.json", work=folder / f".{name}.textveil")


@dataclass(frozen=True, kw_only=True)
class Done:
    """One finished file.

    Attributes:
        document: what its statement's file holds.
        guarantee: the statement; None where there is no text, and where an earlier run finished it.
        before: whether an earlier run finished it.
    """

    document: dict[str, Any]
    guarantee: Guarantee | None = None
    before: bool = False


def plan(
    paths: Sequence[str | Path],
    folder: Path,
    config: Config,
    *,
    field: str | None,
    query: str | None,
    whole: bool,
    resume: bool,
) -> list[Task | Done]:
    """What is to be done for each file, or was done by an earlier run; arguments and errors as `privatize_files`."""
    _require_apart([Path(path) for path in paths], folder)
    sources = []
    for path in paths:
        with _about(Path(path)):
            sources.append(formats.source(Path(path), field=field, query=query, whole=whole))
    finished = [_finished(each, folder, config, resume) for each in sources]
    return [done or _task(each, folder, config) for each, done in zip(sources, finished, strict=True)]


def _require_apart(paths: list[Path], folder: Path) -> None:
    """Every input is a file, and no output takes the place of an input or of another output."""
    with streams.writing():
        if folder.exists() and not folder.is_dir():
            raise ConfigError("--output must be a folder, but a file has that name")
    for number, path in enumerate(paths, 1):
        with _about(path):
            if not path.is_file():
                what = "is a folder" if path.is_dir() else "is no regular file" if path.exists() else "does not exist"
                raise InputError(f"every input must be a file, and number {number} of {len(paths)} {what}")
            if folder.exists() and folder.samefile(path.parent):
                raise ConfigError("--output must not be the folder of the input files")
            if len(os.fsencode(Places.of(path.name, folder).statement.name)) > NAME_BYTES:
                raise ConfigError("the file name is too long for the name of its statement; rename the file")
    if len({path.name.casefold() for path in paths}) < len(paths):
        raise ConfigError("input files must have different names: each output is named like its input")


def _task(source: formats.Source, folder: Path, config: Config) -> Task:
    with _about(source.path):
        state = _state(source.path)
        rows = sum(1 for _ in formats.texts(source))
        with source.path.open("rb") as stream:
            digest = file_digest(stream, "sha256").hexdigest()
    public = _public(source, config)
    pins = {
        **{name: value for name, value in public.items() if name != "configuration"},
        **_flat(config.to_dict()),
        "input": digest,
        "rows per chunk": [chunks.CHUNK_ROWS, chunks.CHUNK_CHARACTERS],
    }
    return Task(
        source=source, folder=folder, rows=rows, state=state, pins=pins, public=public, seeded=config.seed is not None
    )


def _state(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def require_unchanged(task: Task) -> None:
    """Raise `InputError` if the file changed since it was read before the run."""
    try:
        same = _state(task.source.path) == task.state
    except OSError:
        same = False
    if not same:
        raise InputError("the input changed during the run; restore it and use --resume")


def _public(source: formats.Source, config: Config) -> dict[str, Any]:
    """What a statement's file says about the way it was made. A seed stays secret, as does all of the input."""
    configuration = config.public()
    if config.seed is not None:
        configuration["seed"] = "not shown"
    return {
        "version": VERSION,
        "textveil": __version__,
        "file": source.path.name,
        "format": source.ending,
        "gzip": source.packed,
        "field": source.field,
        "query": source.query,
        "whole": source.whole,
        "configuration": _finite(configuration),
    }


def _finished(source: formats.Source, folder: Path, config: Config, resume: bool) -> Done | None:
    """What an earlier run finished; None where there is something left to do."""
    name = source.path.name
    places = Places.of(name, folder)
    with streams.writing():
        there = [each for each in (places.output, places.statement, places.work) if os.path.lexists(each)]
    if there and not resume:
        if places.work not in there:
            raise ConfigError(
                f"{name}: the output folder already holds {there[0].name}; delete it or use another folder"
            )
        if work.is_held(places.work):
            raise ConfigError(f"{name}: {work.BUSY}")
        raise ConfigError(
            f"{name}: a run into this folder was interrupted; continue it with --resume, or to start over "
            f"delete {places.work.name} in the output folder"
        )
    if places.output not in there and (places.statement not in there or places.work in there):
        return None  # the statement takes its place before the output does
    if places.output not in there or places.statement not in there:
        raise ConfigError(
            f"{name}: the output folder has a file or statement of that name that is not from a finished run; "
            f"delete {there[0].name}"
        )
    with _about(source.path):
        document = _document(places, source, config)
    with suppress(TextveilError):  # the run may have ended just before it did this
        if places.work in there:
            with work.held(places.work) as left:
                left.remove(first=MANIFEST)
    return Done(document=document, before=True)


def _document(places: Places, source: formats.Source, config: Config) -> dict[str, Any]:
    """The content of a finished output's statement file, checked against the output, the input and the options."""
    public = _public(source, config)
    try:
        document = dict(json.loads(places.statement.read_bytes()))
        with places.output.open("rb") as stream:
            fits = document["sha256"] == file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError, KeyError, TypeError):
        fits, document = False, {}
    if not fits or document.keys() != {*public, *_COUNTED}:
        raise ConfigError("the output and its statement do not match; delete both")
    differing = [key for key, value in public.items() if document.get(key) != value]
    if differing:
        raise ConfigError(
            f"--resume needs the options of the finished run; these differ: {', '.join(differing)}; use another folder"
        )
    if source.path.stat().st_mtime_ns > places.statement.stat().st_mtime_ns:
        raise ConfigError("the input is newer than its output; use another folder")
    if not formats.same_around(source, places.output):
        raise ConfigError("the output was made from another input; use another folder")
    return document


_COUNTED = ("rows", "texts", "words", "sha256", "guarantee")
"""What a statement's file says besides the way it was made."""


# ---- small things ----------------------------------------------------------------------------------------------------


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Put the file's name before the message of an error about it."""
    try:
        yield
    except MissingExtra:  # of no file in particular
        raise
    except (ConfigError, InputError) as error:
        kind = ConfigError if isinstance(error, UnknownName) else type(error)
        raise kind(f"{path.name or path}: {error}") from None


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """The same, for errors of reading it too."""
    with named(path):
        try:
            yield
        except OSError as error:
            if isinstance(error, TextveilError):
                raise
            raise InputError(f"the input file cannot be read: {error.strerror}") from None


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested options by dotted path."""
    found: dict[str, Any] = {}
    for name, each in value.items():
        found |= _flat(each, f"{prefix}{name}.") if isinstance(each, dict) else {prefix + name: each}
    return found


def _finite(value: Any) -> Any:
    """Plain data without the infinite numbers that JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return "infinite" if isinstance(value, float) and math.isinf(value) else value
