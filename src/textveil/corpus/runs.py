"""A run over a corpus: survey, drawing, and the manifest.

All files are surveyed before their parts are drawn, and a complete release gets its manifest.

In: files, an output folder, resolved options. Out: parts, a statement and a manifest in the folder.
Not here: what a part is (`survey`), how it is drawn (`drawing`), who draws it (`executors`), the
manifest (`release`).

Two draws of a text would be two releases. Draws follow from the key of the run, which its owner
keeps until the end: what is drawn again, because a worker died or the run was killed, is what it
was.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from textveil.config import Config
from textveil.corpus import release
from textveil.corpus.drawing import Part, PartDrawing
from textveil.corpus.executors import RETRIES, Executor, Local, cores
from textveil.corpus.keys import KeyHandle
from textveil.corpus.mapping import SQLITE, MappingStore, StoreAddress
from textveil.corpus.plan import INPUT, MANIFEST, BegunRun, begin, claimed, key_path, pins_of
from textveil.corpus.release import Done
from textveil.corpus.rows import RowOptions
from textveil.corpus.survey import InputFile, Survey, Surveyed, require_unique
from textveil.errors import ConfigError, InputError, listed, quote_file, shown
from textveil.files import storage, streams
from textveil.files.fields import titles
from textveil.pipeline import Privatizer, with_budget

PART_ROWS = 20_000
"""The default number of rows of a part."""

Report = Callable[[str, int, int], None]
"""Callback for progress: a step's name, the amount done, the total."""


def run(
    inputs: str | Path | Sequence[str | Path],
    output: str | Path,
    config: Config,
    options: RowOptions,
    *,
    executor: str | Executor = "local",
    jobs: int = 1,
    cluster: str | None = None,
    part_rows: int = PART_ROWS,
    resume: bool = False,
    key_file: str | None = None,
    keep_key: bool = False,
    store: str | None = None,
    report: Report = lambda *_: None,
) -> Done:
    """Privatizes a corpus into a folder.

    It gets parts, a statement about all of them, and a manifest when it is whole.

    All files are read and checked before anything is drawn.

    Args:
        inputs: files, folders, patterns and URIs that fsspec knows, of the registered formats,
            compressed too.
        output: the folder of the release, empty or new, or its URI.
        config: resolved options.
        options: which fields of a row are what.
        executor: "local", "ray" or "spark", or one of these made by the caller.
        jobs: how many processes draw; 0 is one per usable core.
        cluster: the address of a cluster of Ray or Spark; None starts one on this machine.
        part_rows: rows of a part, which is what is drawn again where something was lost.
        resume: go on with a run that was interrupted; keep one that is finished.
        key_file: where the key of the release is kept until it is whole; else in the output folder,
            on this machine.
        keep_key: leave the key there at the end, until `finish`.
        store: the URL of the store in which `options.session` keeps what placeholders stand for.
            Workers open it by the same URL, and look for its keys where TEXTVEIL_KEYS says here.
        report: callback for progress.

    Raises:
        ConfigError: the files, the folder and the options do not go together, or an earlier run is
            in the way.
        InputError: a file cannot be read, a row is not what its format wants, or an id occurs
            twice.
        OutputError, StoreError: something cannot be written. Finished parts stay.
        TextveilError: processes that draw died again and again. Finished parts stay.
    """
    if part_rows < 1:
        raise ConfigError(f"the rows of a part must be 1 or more, got {part_rows}")
    options.require_named(config)
    if (options.session is None) != (store is None):
        raise ConfigError(
            "what placeholders stand for is kept in a store, in sessions: give --store and --session, or none"
        )
    config = with_budget(config)  # once, so that all processes draw under one epsilon
    place = storage.Storage(str(output))
    paths = _find_inputs(inputs, place)
    key = key_path(place, key_file)
    # made here although others draw: what is wrong with the options is then said by this process,
    # and once
    table = Privatizer.from_config(config).table.digest
    kept = _build_mapping(options, store, cluster)
    identity = None if kept is None else kept.identity()
    pins = pins_of(config, options, table=table, rows=part_rows, store=identity)
    with streams.signals_as_exits(), claimed(place), ExitStack() as stack:
        if place.exists(MANIFEST):
            done = _reuse_finished(place, config, options, len(paths), resume)
            if not keep_key:
                release.end(place, key)
            return done
        begun = begin(place, config, pins, key, resume=resume, mapping=kept)
        drawing = executor_of(executor, jobs, cluster, stack)
        handle = drawing.lend(begun.key)
        if kept is not None:
            kept = replace(kept, address=drawing.lend(kept.address))
        files = _describe_files(paths)
        try:
            found = _survey(begun, options, files, part_rows, drawing, handle, report)
        except (ConfigError, InputError):
            if INPUT not in begun.work.names():  # nothing was drawn
                if kept is not None:
                    kept.forget(begun.name)
                release.end(place, key)
            raise
        parts = _number_parts(files, found)
        part_drawing = PartDrawing(
            config=config,
            options=options,
            output=place,
            key=handle,
            run=begun.name,
            mapping=kept,
        )
        _draw(begun, parts, part_drawing, drawing, report)
        done = release.publish(
            begun,
            parts,
            config,
            options,
            table=table,
            texts=tuple(dict.fromkeys(name for each in found.values() for name in each.texts)),
            others=_list_others(found),
            inputs=len(files),
        )
        if not keep_key:
            release.end(place, key)
        return done


def _build_mapping(
    options: RowOptions, store: str | None, cluster: str | None
) -> MappingStore | None:
    """Returns the store for placeholder values, if they are kept."""
    if store is None or options.session is None:
        return None
    if cluster is not None and store.startswith(SQLITE):
        raise ConfigError(
            "a sqlite:/// store is for one machine; with --cluster, keep the mapping in postgresql://"
        )
    return MappingStore(address=StoreAddress.of(store), session=options.session)


def executor_of(
    executor: str | Executor, jobs: int, cluster: str | None, stack: ExitStack
) -> Executor:
    """Returns the executor of a name, or the given one.

    Args:
        executor: "local", "ray" or "spark", or an executor.
        jobs: how many processes draw; 0 is one per usable core.
        cluster: the address of a cluster; None starts one on this machine.
        stack: ends what is started.

    Raises:
        ConfigError: there is no such name, or what it needs is not there.
    """
    if not isinstance(executor, str):
        return executor
    if jobs < 0:
        raise ConfigError(
            f"--jobs must be 0 (a process per core) or a number of processes, got {jobs}"
        )
    if executor == "local":
        if cluster is not None:
            raise ConfigError("--cluster is for the executors ray and spark")
        return stack.enter_context(
            Local(jobs or cores(), advice="Retry with fewer --jobs and --resume.", retries=RETRIES)
        )
    if executor == "ray":
        from textveil.corpus.ray import Ray

        return stack.enter_context(Ray(jobs, cluster=cluster))
    if executor == "spark":
        from textveil.corpus.spark import Spark

        return stack.enter_context(Spark(jobs, cluster=cluster))
    raise ConfigError(f"--executor must be local, ray or spark, got {shown(executor)}")


def _find_inputs(inputs: str | Path | Sequence[str | Path], output: storage.Storage) -> list[str]:
    """Returns the input files; none may be in the output folder."""
    paths = storage.found([inputs] if isinstance(inputs, str | Path) else inputs)
    if not paths:
        raise InputError("there is no input file")
    if (folder := output.local) is not None and folder.exists() and not folder.is_dir():
        raise ConfigError(f"--output must be a folder, but {quote_file(output.uri)} is a file")
    if held := [path for path in paths if output.holds(path)]:
        raise ConfigError(
            f"--output must be a folder without any of the input files, and {quote_file(output.uri)} has "
            f"{quote_file(held[0])}"
        )
    return paths


def _describe_files(paths: Sequence[str]) -> list[InputFile]:
    return [
        InputFile(number=number, path=path, state=storage.state(path))
        for number, path in enumerate(paths)
    ]


def _survey(
    begun: BegunRun,
    options: RowOptions,
    files: Sequence[InputFile],
    rows: int,
    executor: Executor,
    key: KeyHandle,
    report: Report,
) -> dict[int, Surveyed]:
    """Surveys the files, and returns the findings by number.

    Raises:
        ConfigError: nothing says what becomes of a field, or the input is not that of the run that
            goes on.
        InputError: an id occurs twice.
    """
    marks = begun.work.inside("ids")
    survey = Survey(options=options, rows=rows, key=key, marks=marks)
    result: dict[int, Surveyed] = {}
    report("files read", 0, len(files))
    for file, made in executor.map(survey, files):
        result[file.number] = made
        report("files read", len(result), len(files))
    if options.id is not None:
        require_unique(marks)
    others = _list_others(result)
    if others and not options.others:
        raise ConfigError(
            f"the rows have {len(others)} fields that nothing names ({listed(titles(others))}): say whether "
            "they are copied as they are, which no statement covers (--others copy), or left out (--others drop)"
        )
    begun.require_same_input(files, result)
    return result


def _list_others(found: Mapping[int, Surveyed]) -> list[str]:
    """Returns the fields that no option names, sorted."""
    return sorted({name for each in found.values() for name in each.others})


def _number_parts(files: Sequence[InputFile], found: Mapping[int, Surveyed]) -> list[Part]:
    """Numbers all parts, in the order of the files."""
    listed = [(file, cut) for file in files for cut in found[file.number].parts]
    return [
        Part(
            number=number,
            name=f"part-{number:08}.{'.'.join(filter(None, (found[file.number].ending, found[file.number].packing)))}",
            file=file.number,
            path=file.path,
            state=file.state,
            cut=cut,
        )
        for number, (file, cut) in enumerate(listed)
    ]


def _draw(
    begun: BegunRun, parts: Sequence[Part], drawing: PartDrawing, executor: Executor, report: Report
) -> None:
    """Draws the parts that are missing, or of another size."""
    done, there = begun.done(parts), begun.output.sizes()
    missing = [
        part
        for part in parts
        if part.number not in done or there.get(part.name) != done[part.number]["bytes"]
    ]
    total = sum(part.cut.rows for part in parts)
    rows = total - sum(part.cut.rows for part in missing)
    report("rows", rows, total)
    for part, _ in executor.map(drawing, missing):
        rows += part.cut.rows
        report("rows", rows, total)


def _reuse_finished(
    place: storage.Storage, config: Config, options: RowOptions, files: int, resume: bool
) -> Done:
    """Returns an already finished release, after comparing its options.

    Its input is not known any more, and is not compared but for the number of files.
    """
    if not resume:
        raise ConfigError(
            f"the output folder {quote_file(place.uri)} holds a finished release; use another one"
        )
    document = release.read(place)
    wanted = {"configuration": release.configuration(config), "inputs": files} | release.asked(
        options
    )
    differing = [
        name
        for name, value in wanted.items()
        if document.get(name) != json.loads(json.dumps(value))
    ]
    if options.fields and list(options.fields) != document["fields"]:
        differing.append("fields")
    if differing:
        raise ConfigError(
            f"the output folder {quote_file(place.uri)} holds a finished release with other options "
            f"({', '.join(differing)}); use another one"
        )
    return Done(document=document, before=True)
