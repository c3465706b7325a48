"""Runs over files: chunks of rows, several processes, and going on after an interruption.

In: files, a folder, resolved options. Out: the same files privatized, each with a statement about it.
Not here: the formats (`formats`), what is done to a text (`pipeline`), and what a user sees of it (`cli`).

A run draws chunk by chunk. A finished chunk is a file in a work folder of its owner's, `.NAME.textveil` beside the
output, and is never drawn again: a second draw would be a second release. When all chunks are there, they are joined to
the output, which gets its name when it is whole; then the statement gets its own, and the work folder is removed.
"""

import json
import math
import multiprocessing
import os
import shutil
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import file_digest, sha256
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, BinaryIO

from textveil import __version__, files, formats
from textveil.config import Config
from textveil.errors import ConfigError, InputError, OutputError, TextveilError
from textveil.guarantee import Guarantee, condense, summarize
from textveil.pipeline import BATCH_CHARACTERS, BATCH_TEXTS, Privatizer

try:
    import fcntl
except ImportError:  # not on Windows: two runs at once are then not noticed
    fcntl = None  # type: ignore[assignment]

VERSION = 1
"""Version of the statement's file; it changes when a field changes its meaning."""

CHUNK_ROWS = BATCH_TEXTS
CHUNK_CHARACTERS = BATCH_CHARACTERS
MANIFEST = "manifest.json"
CHUNK = "{:08}.chunk"
CHUNKS = "*.chunk"

Report = Callable[[str, int, int], None]
"""Told the name of a file, how many of its rows are done, and how many it has."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One file of a run.

    Attributes:
        source: the file.
        folder: where the output goes.
        first: the number of its first row, counted over all files of the run.
        rows: how many it has.
        state: size and time of the file when it was read; neither may change.
        pins: what must be the same when the run is resumed. Holds a seed and a digest of private text, so it stays in
            the work folder.
        public: what of it stands in the statement's file.
    """

    source: formats.Source
    folder: Path
    first: int
    rows: int
    state: tuple[int, int]
    pins: dict[str, Any] = field(repr=False)
    public: dict[str, Any]

    @property
    def places(self) -> "Places":
        """The files that it makes."""
        return Places.of(self.source, self.folder)


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where the output, its statement and the chunks of one file are."""

    output: Path
    statement: Path
    work: Path

    @classmethod
    def of(cls, source: formats.Source, folder: Path) -> "Places":
        """All are in one folder, under names that follow from the file's own."""
        name = source.path.name
        return cls(output=folder / name, statement=folder / f"{name}.guarantee.json", work=folder / f".{name}.textveil")


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Consecutive rows that are drawn together; a row without a text is None."""

    number: int
    first: int
    texts: tuple[str | None, ...] = field(repr=False)


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
    tasks = _plan(paths, Path(folder), config, field=field, whole=whole, resume=resume)
    done = [task for task in tasks if isinstance(task, Done)]
    if len(done) == len(tasks):
        return done
    with files.signals_as_exits(), ExitStack() as held:
        for task in tasks:
            if isinstance(task, Task):
                held.enter_context(_claimed(task, resume))
        draw = held.enter_context(_drawing(config, workers))
        return [task if isinstance(task, Done) else _run(task, draw, report) for task in tasks]


def _workers(jobs: int) -> int:
    if jobs < 0:
        raise ConfigError(f"--jobs must be 0 (a process per core) or a number of processes, got {jobs}")
    return jobs or _cores()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---- before anything is drawn ----------------------------------------------------------------------------------------


def _plan(
    paths: Sequence[str | Path], folder: Path, config: Config, *, field: str | None, whole: bool, resume: bool
) -> list[Task | Done]:
    _require_apart([Path(path) for path in paths], folder)
    sources = []
    for path in paths:
        with _about(Path(path)):
            sources.append(formats.source(Path(path), field=field, whole=whole))
    finished = [_finished(each, folder, config, resume) for each in sources]
    tasks: list[Task | Done] = []
    first = 0
    for each, done in zip(sources, finished, strict=True):
        task = done or _task(each, folder, config, first)
        first += task.document["rows"] if isinstance(task, Done) else task.rows
        tasks.append(task)
    return tasks


def _require_apart(paths: list[Path], folder: Path) -> None:
    """Every input is a file, and no output takes the place of an input or of another output."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError("--output must be a folder, and a file of that name is there")
    for number, path in enumerate(paths, 1):
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "is not there"
            raise InputError(f"every input must be a file, and number {number} of {len(paths)} {what}")
        if folder.exists() and folder.samefile(path.parent):
            raise ConfigError("--output must be another folder than that of the input files")
    if len({path.name.casefold() for path in paths}) < len(paths):
        raise ConfigError("input files must have different names, because each output has the name of its input")


def _task(source: formats.Source, folder: Path, config: Config, first: int) -> Task:
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
        "place among the files": first,
        "rows per chunk": [CHUNK_ROWS, CHUNK_CHARACTERS],
    }
    return Task(source=source, folder=folder, first=first, rows=rows, state=state, pins=pins, public=public)


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _public(source: formats.Source, config: Config) -> dict[str, Any]:
    """What a statement's file says about the way it was made. A seed stays secret, as does all of the input."""
    configuration = config.to_dict()
    if config.seed is not None:
        configuration["seed"] = "not shown"
    return {
        "version": VERSION,
        "textveil": __version__,
        "file": source.path.name,
        "format": source.format,
        "gzip": source.packed,
        "field": source.field,
        "whole": source.whole,
        "configuration": _finite(configuration),
    }


def _finished(source: formats.Source, folder: Path, config: Config, resume: bool) -> Done | None:
    """What an earlier run finished; None where there is something left to do."""
    places = Places.of(source, folder)
    there = [each for each in (places.output, places.statement, places.work) if each.exists()]
    name = source.path.name
    if there and not resume:
        if places.work in there:
            raise ConfigError(
                f"{name}: a run into this folder was interrupted; --resume goes on with it, and to start over "
                f"delete {places.work.name} in the output folder"
            )
        raise ConfigError(f"{name}: the output folder must not hold {there[0].name}; delete it, or take another folder")
    if not places.statement.exists() or not places.output.exists():
        if places.output.exists() and not places.work.exists():
            raise ConfigError(f"{name}: the output folder has a file of that name that no finished run made; delete it")
        return None
    document = _document(places)
    differing = [key for key, value in _public(source, config).items() if document.get(key) != value]
    if differing:
        raise ConfigError(
            f"{name}: --resume must have the options of the finished run; {', '.join(differing)} differ; "
            "take another folder"
        )
    if source.path.stat().st_mtime_ns > places.statement.stat().st_mtime_ns:
        raise ConfigError(f"{name}: the input has changed since the run was finished; take another folder")
    shutil.rmtree(places.work, ignore_errors=True)  # the run may have ended just before it did this
    return Done(document=document, before=True)


def _document(places: Places) -> dict[str, Any]:
    """The statement's file of a finished output."""
    try:
        document = json.loads(places.statement.read_bytes())
        with places.output.open("rb") as stream:
            if document["sha256"] == file_digest(stream, "sha256").hexdigest():
                return dict(document)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise ConfigError(f"{places.output.name}: the output and its statement do not belong together; delete both")


# ---- the work folder -------------------------------------------------------------------------------------------------


@contextmanager
def _claimed(task: Task, resume: bool) -> Iterator[None]:
    """The task's work folder for this process alone, made or found again; without a chunk in it, it does not stay."""
    work, name = task.places.work, task.source.path.name
    with files.writing():
        task.folder.mkdir(parents=True, exist_ok=True)
        work.mkdir(mode=0o700, exist_ok=resume)
    with _lock(work, name):
        try:
            if task.places.output.exists() and not (work / MANIFEST).exists():
                raise ConfigError(f"{name}: another process has finished it meanwhile; --resume keeps what it made")
            _pin(task, work / MANIFEST)
            yield
        finally:
            if not any(work.glob(CHUNKS)):
                shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _lock(work: Path, name: str) -> Iterator[None]:
    """The work folder for one process at a time; the lock goes when the process ends, however it ends."""
    if fcntl is None:
        yield
        return
    with files.writing():
        descriptor = os.open(work, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = os.path.samestat(os.fstat(descriptor), os.stat(work))
        except OSError:  # locked, or removed by the process that had it
            ours = False
        if not ours:
            raise ConfigError(f"{name}: another process is at work on it; wait until it has ended")
        yield
    finally:
        os.close(descriptor)


def _pin(task: Task, manifest: Path) -> None:
    """Write down what the chunks depend on, or compare with what is written there."""
    if not manifest.exists():
        with _appearing(manifest, manifest.parent) as stream:
            stream.write(json.dumps(task.pins).encode())
        return
    found, wanted = json.loads(manifest.read_bytes()), json.loads(json.dumps(task.pins))
    differing = [key for key in {**wanted, **found} if found.get(key) != wanted.get(key)]
    if differing:
        raise ConfigError(
            f"{task.source.path.name}: --resume must have the input and the options that the run began with; "
            f"{', '.join(differing)} differ; to start over delete {manifest.parent.name} in the output folder"
        )


@contextmanager
def _appearing(path: Path, work: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when it is whole and on the disk; until then it is in the work folder."""
    part = work / "part"
    try:
        with files.writing():
            with part.open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(part, path)
            files.sync_folder(str(path))
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _save(path: Path, record: dict[str, Any]) -> None:
    content = json.dumps(record).encode()
    with _appearing(path, path.parent) as stream:
        stream.write(sha256(content).hexdigest().encode() + b"\n" + content)


def _load(path: Path) -> dict[str, Any]:
    with files.writing():
        digest, _, content = path.read_bytes().partition(b"\n")
    if sha256(content).hexdigest().encode() != digest:
        raise InputError(
            f"the finished chunk {path.name} in {path.parent.name} is damaged; delete the folder to start over"
        )
    return dict(json.loads(content))


# ---- the run ---------------------------------------------------------------------------------------------------------


def _run(task: Task, draw: Draw, report: Report) -> Done:
    places, name = task.places, task.source.path.name
    saved = {path.name for path in places.work.glob(CHUNKS)}
    rows = 0
    report(name, rows, task.rows)

    def missing() -> Iterator[Chunk]:
        nonlocal rows
        for chunk in _chunks(task):
            if CHUNK.format(chunk.number) not in saved:
                yield chunk
            else:
                rows += len(chunk.texts)
                report(name, rows, task.rows)

    try:
        for chunk, record in draw(missing()):
            _save(places.work / CHUNK.format(chunk.number), record)
            rows += len(chunk.texts)
            report(name, rows, task.rows)
        done = _join(task)
        with files.writing():
            shutil.rmtree(places.work)
        return done
    except OutputError as error:
        raise OutputError(f"{name}: {error}; what is finished is kept, and --resume goes on with it") from None


def _chunks(task: Task) -> Iterator[Chunk]:
    """The rows in pieces whose limits depend on the file alone."""
    texts: list[str | None] = []
    number = characters = done = 0
    with _about(task.source.path):
        for text in formats.texts(task.source):
            texts.append(text)
            characters += len(text or "")
            if len(texts) >= CHUNK_ROWS or characters >= CHUNK_CHARACTERS:
                yield Chunk(number=number, first=task.first + done, texts=tuple(texts))
                number, done = number + 1, done + len(texts)
                texts, characters = [], 0
    if texts:
        yield Chunk(number=number, first=task.first + done, texts=tuple(texts))


def _join(task: Task) -> Done:
    """Put the chunks together: the output, and then the statement about it."""
    places, source = task.places, task.source
    paths = sorted(places.work.glob(CHUNKS))
    with _about(source.path), _appearing(places.output, places.work) as stream:
        formats.rewrite(source, (text for path in paths for text in _load(path)["texts"]), stream)
        if _state(source.path) != task.state:
            raise InputError("the input must not change during a run; start over")
    with places.output.open("rb") as written:
        digest = file_digest(written, "sha256").hexdigest()
    guarantee: Guarantee | None = None
    for path in paths:
        if packed := _load(path)["statement"]:
            more = Guarantee.unpack(packed)
            guarantee = condense(summarize([guarantee, more])) if guarantee else more
    document = {
        **task.public,
        "rows": task.rows,
        "texts": guarantee.texts if guarantee else 0,
        "words": guarantee.words if guarantee else 0,
        "sha256": digest,
        "guarantee": guarantee.to_json() if guarantee else None,
    }
    with _appearing(places.statement, places.work) as stream:
        stream.write(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1).encode() + b"\n")
    return Done(document=document, guarantee=guarantee)


# ---- who draws -------------------------------------------------------------------------------------------------------


def _record(privatizer: Privatizer, chunk: Chunk) -> dict[str, Any]:
    """Privatize a chunk: what is kept of it."""
    texts = [text for text in chunk.texts if text is not None]
    results = list(privatizer.privatize_many(texts, first=chunk.first))
    released = iter(results)
    return {
        "texts": [None if text is None else next(released).text for text in chunk.texts],
        "statement": condense(summarize([each.guarantee for each in results])).pack() if results else None,
    }


@contextmanager
def _drawing(config: Config, workers: int) -> Iterator[Draw]:
    # built here also for others to draw: what is wrong with the options is then said by this process, and once
    privatizer = Privatizer.from_config(config)
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
def _about(path: Path) -> Iterator[None]:
    """Name the file in what is wrong with it."""
    try:
        yield
    except (ConfigError, InputError) as error:
        raise type(error)(f"{path.name}: {error}") from None
    except OSError as error:
        if isinstance(error, TextveilError):
            raise
        raise InputError(f"{path.name}: the input file cannot be read: {error.strerror}") from None


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
