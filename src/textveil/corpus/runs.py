"""Runs over files: chunks of rows, several processes, and going on after an interruption.

In: files, a folder, resolved options. Out: the same files privatized, each with a statement about it.
Not here: the formats (`formats`), the files of a work folder (`work`), what is done to a text (`pipeline`), and what a
user sees of it (`cli`).

A run draws chunk by chunk. A finished chunk is a file in a work folder of its owner's, `.NAME.textveil` beside the
output, and is never drawn again: a second draw would be a second release. When all chunks are there, they are joined to
the output, in the work folder too. When that and the statement about it are whole, first the statement and then the
output takes its place, and the work folder is removed.

A chunk tells which run it is of, where its rows stand and what digest their texts have; whoever reads it checks that
against the input at hand.
"""

import json
import math
import multiprocessing
import os
import signal
import stat
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import file_digest, sha256
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from textveil import __version__
from textveil.config import Config
from textveil.errors import ConfigError, InputError, OutputError, TextveilError
from textveil.files import formats, streams, work
from textveil.guarantee import Guarantee, condense, summarize
from textveil.pipeline import BATCH_CHARACTERS, BATCH_TEXTS, Privatizer
from textveil.randomness import fresh_name

VERSION = 1
"""Version of the statement's file; it changes when a field changes its meaning."""

CHUNK_ROWS = BATCH_TEXTS
CHUNK_CHARACTERS = BATCH_CHARACTERS
MANIFEST = "manifest.json"
CHUNK = "{:08}.chunk"
OUTPUT, STATEMENT = "output", "statement"
"""What a work folder has in it: what the chunks depend on, chunks, and at the end what leaves it for its place."""

NAME_BYTES = 255
"""How long a file's name can be on usual file systems."""

Report = Callable[[str, int, int], None]
"""Told the name of a file, how many of its rows are done, and how many it has."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One file of a run.

    Attributes:
        source: the file.
        folder: where the output goes.
        rows: how many it has.
        state: which file it was when it was read, its size and time; none may change.
        pins: what must be the same when the run is resumed. Holds a seed and a digest of private text, so it stays in
            the work folder.
        public: what of it stands in the statement's file.
    """

    source: formats.Source
    folder: Path
    rows: int
    state: tuple[int, ...]
    pins: dict[str, Any] = field(repr=False)
    public: dict[str, Any]

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
class Chunk:
    """Consecutive rows that are drawn together.

    Attributes:
        number: of the chunk.
        first: of its rows, counted in the file.
        part: the number that its draws have where there is a seed.
        texts: None for a row without one.
        queries: what each of them is for; None where nothing asks for that.
    """

    number: int
    first: int
    part: int
    texts: tuple[str | None, ...] = field(repr=False)
    queries: tuple[str, ...] | None = field(default=None, repr=False)


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


Draw = Callable[[Iterable[Chunk]], Iterator[tuple[Chunk, dict[str, Any]]]]


def privatize_files(
    paths: Sequence[str | Path],
    folder: str | Path,
    config: Config,
    *,
    field: str | None = None,
    query: str | None = None,
    whole: bool = False,
    jobs: int = 1,
    resume: bool = False,
    report: Report = lambda *_: None,
) -> list[Done]:
    """Privatizes files into a folder, each under its own name with a statement beside it.

    All files are read and checked before anything is drawn.

    Args:
        paths: .txt, .jsonl, .csv, .tsv and .parquet files, all but the last also as .gz.
        folder: where the outputs go; made if it is not there.
        config: resolved options.
        field: the field or column with the texts.
        query: the field or column with what each text is for, where `protect.importance` is cosine and no task is
            set. It is copied as all others are, and taken as public.
        whole: take a .txt as one text.
        jobs: how many processes draw; 0 is one per usable core. The output of a seeded run is the same for any number.
        resume: go on with a run that was interrupted, and keep files that are finished.
        report: is told of progress.

    Raises:
        ConfigError: the files, the folder and the options do not go together, or an earlier run is in the way.
        InputError: a file cannot be read, or a row is not what its format wants.
        OutputError: something cannot be written. Finished chunks stay, and nothing has the output's name.
    """
    workers = _workers(jobs)
    planned = _plan(paths, Path(folder), config, field=field, query=query, whole=whole, resume=resume)
    if all(isinstance(each, Done) for each in planned):
        return [each for each in planned if isinstance(each, Done)]
    # made here also for others to draw: what is wrong with the options is then said by this process, and once
    privatizer = Privatizer.from_config(config)
    pins = {"contents of the table": privatizer.table.digest}
    tasks = [each if isinstance(each, Done) else replace(each, pins=each.pins | pins) for each in planned]
    for task in tasks:
        if isinstance(task, Task):
            _require_resumable(task)
    with streams.signals_as_exits(), _drawing(config, privatizer, workers) as draw:
        with streams.writing():
            streams.make_folder(Path(folder))
        return [task if isinstance(task, Done) else _run(task, draw, resume, report) for task in tasks]


def _workers(jobs: int) -> int:
    if jobs < 0:
        raise ConfigError(f"--jobs must be 0 (a process per core) or a number of processes, got {jobs}")
    return jobs or _cores()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---- before anything is drawn ----------------------------------------------------------------------------------------


def _plan(
    paths: Sequence[str | Path],
    folder: Path,
    config: Config,
    *,
    field: str | None,
    query: str | None,
    whole: bool,
    resume: bool,
) -> list[Task | Done]:
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
            raise ConfigError("--output must be a folder, and a file of that name is there")
    for number, path in enumerate(paths, 1):
        with _about(path):
            if not path.is_file():
                what = "is a folder" if path.is_dir() else "is no regular file" if path.exists() else "is not there"
                raise InputError(f"every input must be a file, and number {number} of {len(paths)} {what}")
            if folder.exists() and folder.samefile(path.parent):
                raise ConfigError("--output must be another folder than that of the input files")
            if len(os.fsencode(Places.of(path.name, folder).statement.name)) > NAME_BYTES:
                raise ConfigError("the name must be shorter: the statement is named after it")
    if len({path.name.casefold() for path in paths}) < len(paths):
        raise ConfigError("input files must have different names, because each output has the name of its input")


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
        "rows per chunk": [CHUNK_ROWS, CHUNK_CHARACTERS],
    }
    return Task(source=source, folder=folder, rows=rows, state=state, pins=pins, public=public)


def _state(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _require_unchanged(task: Task) -> None:
    try:
        same = _state(task.source.path) == task.state
    except OSError:
        same = False
    if not same:
        raise InputError("the input must not change during a run; with --resume it goes on once it is as it was")


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
                f"{name}: the output folder must not hold {there[0].name}; delete it, or take another folder"
            )
        if work.is_held(places.work):
            raise ConfigError(f"{name}: {work.BUSY}")
        raise ConfigError(
            f"{name}: a run into this folder was interrupted; --resume goes on with it, and to start over "
            f"delete {places.work.name} in the output folder"
        )
    if places.output not in there and (places.statement not in there or places.work in there):
        return None  # the statement takes its place before the output does
    if places.output not in there or places.statement not in there:
        raise ConfigError(
            f"{name}: the output folder has a file or a statement of that name that no finished run made; "
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
    """The statement's file of a finished output, when it is of this output, and this of the input and the options."""
    public = _public(source, config)
    try:
        document = dict(json.loads(places.statement.read_bytes()))
        with places.output.open("rb") as stream:
            fits = document["sha256"] == file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError, KeyError, TypeError):
        fits, document = False, {}
    if not fits or document.keys() != {*public, *_COUNTED}:
        raise ConfigError("the output and its statement do not belong together; delete both")
    differing = [key for key, value in public.items() if document.get(key) != value]
    if differing:
        raise ConfigError(
            "--resume must have the options of the finished run; "
            f"these differ: {', '.join(differing)}; take another folder"
        )
    if source.path.stat().st_mtime_ns > places.statement.stat().st_mtime_ns:
        raise ConfigError("the input must be older than what was made of it; take another folder")
    if not formats.same_around(source, places.output):
        raise ConfigError("the output was made of another input, with other rows; take another folder")
    return document


_COUNTED = ("rows", "texts", "words", "sha256", "guarantee")
"""What a statement's file says besides the way it was made."""


# ---- the work folder -------------------------------------------------------------------------------------------------


@contextmanager
def _claimed(task: Task, resume: bool) -> Iterator[tuple[work.Work, str]]:
    """The task's work folder for this process alone, with the run's digest; without a chunk in it, it does not stay."""
    with work.held(task.places.work, new=not resume) as ours:
        try:
            if os.path.lexists(task.places.output):
                raise ConfigError("another process has finished it meanwhile; --resume keeps what it made")
            yield ours, _pinned(task, ours)
        finally:
            with suppress(OSError):
                if not _chunks_in(ours):
                    ours.remove(first=MANIFEST)


def _chunks_in(ours: work.Work) -> set[str]:
    return {name for name in ours.names() if name.endswith(CHUNK.format(0)[8:])}


def _pinned(task: Task, ours: work.Work) -> str:
    """Write down what the chunks depend on, or compare with what is written there; the run's digest."""
    names, chunks = ours.names(), _chunks_in(ours)
    for name in names - chunks - {MANIFEST}:
        ours.delete(name)  # left by a run that was killed while it wrote or joined
    if MANIFEST not in names:
        if chunks:
            raise ConfigError(f"{ours.path.name} has chunks and nothing that says of which run; delete that folder")
        with ours.writing(MANIFEST) as stream:
            stream.write(json.dumps({"run": fresh_name(), "pins": task.pins}).encode())
    content = ours.read(MANIFEST)
    _require_same(task, content)
    return sha256(content).hexdigest()


def _require_resumable(task: Task) -> None:
    """Refuse before anything is drawn what would be refused when the file's turn comes."""
    try:
        manifest = (task.places.work / MANIFEST).read_bytes()
    except OSError:
        return
    with _named(task.source.path):
        if work.is_held(task.places.work):  # before anything that says to delete the folder
            raise ConfigError(work.BUSY)
        _require_same(task, manifest)


def _require_same(task: Task, manifest: bytes) -> None:
    delete = f"to start over delete {task.places.work.name} in the output folder"
    try:
        found = dict(json.loads(manifest)["pins"])
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{MANIFEST} of the interrupted run is damaged; {delete}") from None
    wanted = json.loads(json.dumps(task.pins))
    differing = [key for key in {**wanted, **found} if found.get(key) != wanted.get(key)]
    if differing:
        raise ConfigError(
            "--resume must have the input and the options that the run began with; "
            f"these differ: {', '.join(differing)}; {delete}"
        )


def _label(run: str, chunk: Chunk) -> dict[str, Any]:
    """What a chunk on the disk must say of itself."""
    digest = sha256(json.dumps(chunk.texts).encode()).hexdigest()
    return {"run": run, "number": chunk.number, "first": chunk.first, "rows": len(chunk.texts), "input": digest}


def _save(ours: work.Work, run: str, chunk: Chunk, record: dict[str, Any]) -> None:
    content = json.dumps(_label(run, chunk) | record).encode()
    with ours.writing(CHUNK.format(chunk.number)) as stream:
        stream.write(sha256(content).hexdigest().encode() + b"\n" + content)


def _load(ours: work.Work, run: str, chunk: Chunk) -> dict[str, Any]:
    """What was drawn from the texts of a chunk, and from no others."""
    name = CHUNK.format(chunk.number)
    digest, _, content = ours.read(name).partition(b"\n")
    advice = "delete the folder to start over"
    if sha256(content).hexdigest().encode() != digest:
        raise InputError(f"the finished chunk {name} in {ours.path.name} is damaged; {advice}")
    record = dict(json.loads(content))
    label = _label(run, chunk)
    if {key: record.get(key) for key in label} != label or len(record["texts"]) != len(chunk.texts):
        raise InputError(
            f"the finished chunk {name} in {ours.path.name} is of another run, another place or another input; {advice}"
        )
    return record


# ---- the run ---------------------------------------------------------------------------------------------------------


def _run(task: Task, draw: Draw, resume: bool, report: Report) -> Done:
    name = task.source.path.name
    try:
        with _named(task.source.path), _claimed(task, resume) as (ours, run):
            _draw_missing(task, ours, run, draw, report)
            done = _join(task, ours, run)
            ours.remove(first=MANIFEST)
            return done
    except OutputError as error:
        raise OutputError(f"{name}: {error}; what is finished is kept, and --resume goes on with it") from None


def _draw_missing(task: Task, ours: work.Work, run: str, draw: Draw, report: Report) -> None:
    name, saved = task.source.path.name, _chunks_in(ours)
    rows = 0
    report(name, rows, task.rows)

    def missing() -> Iterator[Chunk]:
        nonlocal rows
        for chunk in _chunks(task):
            if CHUNK.format(chunk.number) not in saved:
                yield chunk
            else:
                _load(ours, run, chunk)
                rows += len(chunk.texts)
                report(name, rows, task.rows)

    for chunk, record in draw(missing()):
        _require_unchanged(task)
        _save(ours, run, chunk, record)
        rows += len(chunk.texts)
        report(name, rows, task.rows)


def _chunks(task: Task) -> Iterator[Chunk]:
    """The rows in pieces whose limits depend on the file alone."""
    texts: list[str | None] = []
    queries: list[str] = []
    number = characters = done = 0
    # by the file's name, so that files of one seed differ in their draws whichever of them are in a run
    of_file = int.from_bytes(sha256(os.fsencode(task.source.path.name)).digest()[:8], "big") << 64

    def made() -> Chunk:
        asked = None if task.source.query is None else tuple(queries)
        return Chunk(number=number, first=done, part=of_file + done, texts=tuple(texts), queries=asked)

    for text, query in zip(formats.texts(task.source), formats.queries(task.source), strict=False):
        texts.append(text)
        queries.append(query)
        characters += len(text or "")
        if len(texts) >= CHUNK_ROWS or characters >= CHUNK_CHARACTERS:
            yield made()
            number, done = number + 1, done + len(texts)
            texts, queries, characters = [], [], 0
    if texts:
        yield made()


def _join(task: Task, ours: work.Work, run: str) -> Done:
    """Put the chunks together, and give the statement and the output their places when both are on the disk."""
    source, guarantee = task.source, None

    def released() -> Iterator[str | None]:
        nonlocal guarantee
        for chunk in _chunks(task):
            record = _load(ours, run, chunk)
            if record["statement"]:
                more = Guarantee.unpack(record["statement"])
                guarantee = condense(summarize([guarantee, more])) if guarantee else more
            yield from record["texts"]

    # what is copied beside the texts stays as private as it was
    mode = stat.S_IMODE(source.path.stat().st_mode) & 0o666 | 0o600
    _require_unchanged(task)
    with ours.writing(OUTPUT, mode) as stream:
        formats.rewrite(source, released(), stream)
        _require_unchanged(task)
    document = {
        **task.public,
        "rows": task.rows,
        "texts": guarantee.texts if guarantee else 0,
        "words": guarantee.words if guarantee else 0,
        "sha256": ours.digest(OUTPUT),
        "guarantee": guarantee.to_json() if guarantee else None,
    }
    with ours.writing(STATEMENT, 0o666) as stream:
        content = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
        stream.write(content.encode(errors="backslashreplace") + b"\n")  # a name that is not UTF-8, as JSON escapes it
    ours.publish(STATEMENT, task.places.statement)
    ours.publish(OUTPUT, task.places.output)
    return Done(document=document, guarantee=guarantee)


# ---- who draws -------------------------------------------------------------------------------------------------------


def _record(privatizer: Privatizer, chunk: Chunk) -> dict[str, Any]:
    """Privatize a chunk: what is kept of it."""
    texts = [text for text in chunk.texts if text is not None]
    queries = None
    if chunk.queries is not None:
        queries = [query for text, query in zip(chunk.texts, chunk.queries, strict=True) if text is not None]
    results = list(privatizer.privatize_many(texts, first=chunk.part, queries=queries))
    released = iter(results)
    return {
        "texts": [None if text is None else next(released).text for text in chunk.texts],
        "statement": condense(summarize([each.guarantee for each in results])).pack() if results else None,
    }


@contextmanager
def _drawing(config: Config, privatizer: Privatizer, workers: int) -> Iterator[Draw]:
    if workers == 1:
        yield lambda chunks: ((chunk, _record(privatizer, chunk)) for chunk in chunks)
        return
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),  # a fork would carry torch's threads and locks along
        initializer=_begin,
        initargs=(config, max(1, _cores() // workers)),
    )
    try:
        yield partial(_spread, pool, 2 * workers)
    finally:
        pool.shutdown(cancel_futures=True)


def _spread(pool: ProcessPoolExecutor, ahead: int, chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, dict[str, Any]]]:
    """Chunks drawn by other processes, in order; few are on the way at a time, so that memory stays bounded."""
    waiting: deque[tuple[Chunk, Future[dict[str, Any]]]] = deque()
    try:
        for chunk in chunks:
            with _interrupts_later():  # a process that begins inherits this, and says nothing when it is interrupted
                waiting.append((chunk, pool.submit(_record_there, chunk)))
            if len(waiting) >= ahead:
                first, future = waiting.popleft()
                yield first, future.result()
        for chunk, future in waiting:
            yield chunk, future.result()
    except BrokenProcessPool:
        raise TextveilError(
            "every process must live until its work is done, and one has ended (out of memory?); "
            "with fewer --jobs and --resume the run goes on"
        ) from None


@contextmanager
def _interrupts_later() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_there: Privatizer | None = None
"""The privatizer of a worker process."""


def _begin(config: Config, threads: int) -> None:
    """Set up a worker: it leaves signals from the keyboard to its parent, and ends when that has ended."""
    global _there
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    warnings.simplefilter("ignore")  # the parent has said them
    torch.set_num_threads(threads)
    _there = Privatizer.from_config(config)


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _record_there(chunk: Chunk) -> dict[str, Any]:
    if _there is None:
        raise RuntimeError
    return _record(_there, chunk)


# ---- small things ----------------------------------------------------------------------------------------------------


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in what is wrong with it."""
    try:
        yield
    except (ConfigError, InputError) as error:
        raise type(error)(f"{path.name or path}: {error}") from None


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Name the file in what is wrong with it, and with reading it."""
    with _named(path):
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
