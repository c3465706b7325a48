"""Runs over files: chunks of rows, several processes, and going on after an interruption.

In: files, a folder, resolved options. Out: the same files privatized, each with a statement about it.
Not here: what is checked before (`plan`), chunks (`chunks`, `store`), processes (`executors`), and what a user sees of
it (`cli`).

A run draws chunk by chunk. A finished chunk is a file in a work folder of its owner's, `.NAME.textveil` beside the
output, and is never drawn again: a second draw would be a second release. One that is lost on its way to the folder is
drawn again as it was, from a key that lies there too. When all chunks are there, the key is destroyed, and they are
joined to the output, in the work folder too. When that and the statement about it are whole, first the statement and
then the output takes its place, and the work folder is removed.
"""

import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from textveil.config import Config
from textveil.corpus.chunks import Chunk, Draw, cut
from textveil.corpus.executors import Executor, Local, cores
from textveil.corpus.plan import MANIFEST, Done, Places, Task, named, plan, require_unchanged
from textveil.corpus.store import ChunkStore, claimed, destroy_key, require_resumable
from textveil.errors import ConfigError, OutputError
from textveil.files import formats, streams
from textveil.guarantee import Guarantee, condense, summarize
from textveil.pipeline import with_budget

OUTPUT, STATEMENT = "output", "statement"
"""What a work folder has in it beside chunks, at the end: what leaves it for its place."""

Report = Callable[[str, int, int], None]
"""Told the name of a file, how many of its rows are done, and how many it has."""


def privatize_files(
    paths: Sequence[str | Path],
    folder: str | Path,
    config: Config,
    *,
    field: str | None = None,
    query: str | None = None,
    whole: bool = False,
    jobs: int = 1,
    executor: Executor | None = None,
    resume: bool = False,
    report: Report = lambda *_: None,
) -> list[Done]:
    """Privatizes files into a folder, each under its own name with a statement beside it.

    All files are read and checked before anything is drawn.

    Args:
        paths: files of the registered formats: .txt, .jsonl, .csv, .tsv and .parquet, all but the last also as .gz.
        folder: where the outputs go; made if it is not there.
        config: resolved options.
        field: the field or column with the texts.
        query: the field or column with what each text is for, where `protect.importance` is cosine and no task is
            set. It is copied as all others are, and taken as public.
        whole: take a .txt as one text.
        jobs: how many processes of this machine draw; 0 is one per usable core. The output of a seeded run is the same
            for any number.
        executor: what draws in place of these.
        resume: go on with a run that was interrupted, and keep files that are finished.
        report: is told of progress.

    Raises:
        ConfigError: the files, the folder and the options do not go together, or an earlier run is in the way.
        InputError: a file cannot be read, or a row is not what its format wants.
        OutputError: something cannot be written. Finished chunks stay, and nothing has the output's name.
        TextveilError: a process that draws died. Finished chunks stay.
    """
    if jobs < 0:
        raise ConfigError(f"--jobs must be 0 (a process per core) or a number of processes, got {jobs}")
    config = with_budget(config)  # once, so that all processes draw under one epsilon
    planned = plan(paths, Path(folder), config, field=field, query=query, whole=whole, resume=resume)
    if all(isinstance(each, Done) for each in planned):
        return [each for each in planned if isinstance(each, Done)]
    draw = Draw(config)
    # made here also for others to draw: what is wrong with the options is then said by this process, and once
    pins = {"contents of the table": draw.privatizer.table.digest}
    tasks = [each if isinstance(each, Done) else replace(each, pins=each.pins | pins) for each in planned]
    for task in tasks:
        if isinstance(task, Task):
            require_resumable(task)
    own: AbstractContextManager[Executor] = (
        Local(jobs or cores(), advice="Retry with fewer --jobs and --resume.")
        if executor is None
        else nullcontext(executor)
    )
    with streams.signals_as_exits(), own as drawing:
        with streams.writing():
            streams.make_folder(Path(folder))
        try:
            return [task if isinstance(task, Done) else _run(task, drawing, draw, resume, report) for task in tasks]
        except OutputError as error:
            failure = str(error)
    advice = "finished rows are kept; go on with --resume" if begun(paths, folder) else "nothing was finished"
    raise OutputError(f"{failure}; {advice}")


def begun(paths: Sequence[str | Path], folder: str | Path) -> bool:
    """Whether a run over these files into a folder has left something for --resume to continue."""
    places = [Places.of(Path(path).name, Path(folder)) for path in paths]
    return any(os.path.lexists(path) for each in places for path in (each.output, each.work))


def _run(task: Task, executor: Executor, draw: Draw, resume: bool, report: Report) -> Done:
    try:
        with named(task.source.path), claimed(task, resume) as store:
            _draw_missing(task, store, executor, draw, report)
            destroy_key(store.folder)
            done = _join(task, store)
            store.folder.remove(first=MANIFEST)
            return done
    except OutputError as error:
        failure = str(error)
    raise OutputError(f"{task.source.path.name}: {failure}")


def _draw_missing(task: Task, store: ChunkStore, executor: Executor, draw: Draw, report: Report) -> None:
    name, saved = task.source.path.name, store.numbers()
    rows = 0
    report(name, rows, task.rows)

    def missing() -> Iterator[Chunk]:
        nonlocal rows
        for chunk in cut(task.source):
            if chunk.number not in saved:
                yield replace(chunk, key=store.key)
            else:
                store.load(chunk)
                rows += len(chunk.texts)
                report(name, rows, task.rows)

    for chunk, record in executor.map(draw, missing()):
        require_unchanged(task)
        store.save(chunk, record)
        rows += len(chunk.texts)
        report(name, rows, task.rows)


def _join(task: Task, store: ChunkStore) -> Done:
    """Put the chunks together, and give the statement and the output their places when both are on the disk."""
    source, folder, guarantee = task.source, store.folder, None

    def released() -> Iterator[str | None]:
        nonlocal guarantee
        for chunk in cut(task.source):
            record = store.load(chunk)
            if record["statement"]:
                more = Guarantee.unpack(record["statement"])
                guarantee = condense(summarize([guarantee, more])) if guarantee else more
            yield from record["texts"]

    # what is copied beside the texts stays as private as it was
    mode = stat.S_IMODE(source.path.stat().st_mode) & 0o666 | 0o600
    require_unchanged(task)
    with folder.writing(OUTPUT, mode) as stream:
        formats.rewrite(source, released(), stream)
        require_unchanged(task)
    document = {
        **task.public,
        "rows": task.rows,
        "texts": guarantee.texts if guarantee else 0,
        "words": guarantee.words if guarantee else 0,
        "sha256": folder.digest(OUTPUT),
        "guarantee": guarantee.to_json() if guarantee else None,
    }
    with folder.writing(STATEMENT, 0o666) as stream:
        content = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
        stream.write(content.encode(errors="backslashreplace") + b"\n")  # a name that is not UTF-8, as JSON escapes it
    folder.publish(STATEMENT, task.places.statement)
    folder.publish(OUTPUT, task.places.output)
    return Done(document=document, guarantee=guarantee)
