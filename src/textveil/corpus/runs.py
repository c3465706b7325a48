"""A run over a corpus: survey, drawing, and the manifest.

All files are surveyed before their parts are drawn, and a complete release gets its manifest.

In: files, an output folder, resolved options. Out: parts, a statement and a manifest in the folder.
Not here: what a part is (`survey`), how it is drawn (`part_worker`), who draws it (`executors`),
the
manifest (`release`).

Two draws of a text would be two releases. Draws follow from the key of the run, which its owner
keeps until the end: what is drawn again, because a worker died or the run was killed, is what it
was.
"""

import json
import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from textveil.config import Config
from textveil.corpus import release
from textveil.corpus.columns import HOLDS, find_identifiers
from textveil.corpus.executors import MAX_RETRIES, Executor, LocalExecutor, count_cores
from textveil.corpus.mapping import SQLITE_SCHEME, MappingStore, StoreAddress
from textveil.corpus.part_worker import LibraryCheck, Part, PartWorker
from textveil.corpus.plan import (
    INPUT_FILE,
    MANIFEST_FILE,
    CorpusRun,
    collect_pins,
    find_key_path,
    lock_output,
    start_run,
)
from textveil.corpus.release import FinishedRelease
from textveil.corpus.roles import describe_others, require_roles
from textveil.corpus.row_progress import listen_to_rows
from textveil.corpus.rows import RowOptions
from textveil.corpus.survey import FileSurvey, FileSurveyor, InputFile, require_unique
from textveil.errors import (
    ConfigError,
    InputError,
    TextveilWarning,
    list_names,
    quote,
    quote_file,
    quote_short,
)
from textveil.files import storage, text_streams
from textveil.files.fields import list_titles
from textveil.guarantee import join_parts
from textveil.pipeline import Privatizer, TextPrivatizer, load_privatizer, resolve_budget
from textveil.render import clean_name

PART_ROWS = 20_000
"""The default number of rows of a part."""

LOADING = "loading models"
"""The step before the first rows are drawn."""

ProgressCallback = Callable[[str, int, int], None]
"""Callback for progress: a step's name, the amount done, the total.

`rows` are those of finished parts, `rows drawn` also those of parts that are being drawn.
"""


def run(  # noqa: PLR0913 - most are options, given by keyword
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
    report: ProgressCallback = lambda *_: None,
) -> FinishedRelease:
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
    options.require_consistency(config)
    if (options.session is None) != (store is None):
        raise ConfigError(
            "the originals of placeholders are kept in sessions of a store: give both --store "
            "and --session, or neither"
        )
    config = resolve_budget(config)  # once, so that all processes draw under one epsilon
    output_storage = storage.Storage(str(output))
    paths = _find_inputs(inputs, output_storage)
    if not output_storage.has_file(MANIFEST_FILE):
        names = [inputs] if isinstance(inputs, str | Path) else inputs
        require_roles([*map(str, names)], paths[0], options, str(output))
        _refuse_identifiers(paths, options)
    key = find_key_path(output_storage, key_file)
    # made here although others draw: what is wrong with the options is then said by this process,
    # and once
    source = _describe_source(load_privatizer(config))
    mapping = _build_mapping(options, store, cluster)
    identity = None if mapping is None else mapping.compute_identity()
    pins = collect_pins(config, options, source=source, rows=part_rows, store=identity)
    with text_streams.convert_signals(), lock_output(output_storage), ExitStack() as stack:
        if output_storage.has_file(MANIFEST_FILE):
            finished = _reuse_release(
                output_storage, config, options, len(paths), resume, source=source
            )
            if not keep_key:
                release.end_run(output_storage, key)
            return finished
        corpus_run = start_run(output_storage, config, pins, key, resume=resume, mapping=mapping)
        engine = get_executor(executor, jobs, cluster, stack)
        handle = engine.share_key(corpus_run.key)
        if mapping is not None:
            mapping = replace(mapping, address=engine.share_key(mapping.address))
        files = _describe_files(paths)
        try:
            check = (
                None
                if config.texts.unit == "word"
                else LibraryCheck(config=config, run=corpus_run.name)
            )
            surveyor = FileSurveyor(
                options=options,
                rows=part_rows,
                key=handle,
                marks=corpus_run.work.get_folder("ids"),
                check=check,
            )
            surveys = _survey_files(corpus_run, surveyor, files, engine, report)
        except (ConfigError, InputError):
            if INPUT_FILE not in corpus_run.work.list_files():  # nothing was drawn
                if mapping is not None:
                    mapping.forget(corpus_run.name)
                release.end_run(output_storage, key)
            raise
        parts, other_fields = _build_parts(files, surveys), _list_other_fields(surveys)
        copied = find_identifiers(
            paths,
            (*options.labels_to_copy, *(other_fields if options.others == "copy" else ())),
            exempt=options.id,
        )
        _warn_of_identifiers(copied, options)
        part_worker = PartWorker(
            config=config,
            options=options,
            output=output_storage,
            key=handle,
            run=corpus_run.name,
            mapping=mapping,
        )
        _draw_parts(corpus_run, parts, part_worker, engine, report)
        finished = release.publish(
            corpus_run,
            parts,
            config,
            options,
            source=source,
            texts=tuple(
                dict.fromkeys(name for survey in surveys.values() for name in survey.texts)
            ),
            copied=copied,
            inputs=len(files),
        )
        # Only now: until the manifest is written, the run may need its key to go on.
        if not keep_key:
            release.end_run(output_storage, key)
        return finished


def _describe_source(privatizer: Privatizer | TextPrivatizer) -> dict[str, Any]:
    """Returns the digest of the table that is drawn from, or what is said of the library."""
    if isinstance(privatizer, Privatizer):
        return {"table_sha256": privatizer.table.digest, "library": None}
    facts = privatizer.library.get_facts(privatizer.level)
    return {"table_sha256": None, "library": asdict(facts)}


def _build_mapping(
    options: RowOptions, store: str | None, cluster: str | None
) -> MappingStore | None:
    """Returns the store for placeholder values, if they are kept."""
    if store is None or options.session is None:
        return None
    if cluster is not None and store.startswith(SQLITE_SCHEME):
        raise ConfigError(
            "a sqlite:/// store is for one machine; with --cluster, keep the mapping in "
            "postgresql://"
        )
    return MappingStore(address=StoreAddress.build(store), session=options.session)


def get_executor(
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
            f"--jobs must be 0 (a process per core) or the number of processes, got {jobs}"
        )
    if executor == "local":
        if cluster is not None:
            raise ConfigError("--cluster is for the executors ray and spark")
        return stack.enter_context(
            LocalExecutor(
                jobs or count_cores(),
                advice="Retry with fewer --jobs and --resume.",
                retries=MAX_RETRIES,
            )
        )
    if executor == "ray":
        from textveil.corpus.ray import RayExecutor

        return stack.enter_context(RayExecutor(jobs, cluster=cluster))
    if executor == "spark":
        from textveil.corpus.spark import SparkExecutor

        return stack.enter_context(SparkExecutor(jobs, cluster=cluster))
    raise ConfigError(f"--executor must be local, ray or spark, got {quote_short(executor)}")


def _find_inputs(inputs: str | Path | Sequence[str | Path], output: storage.Storage) -> list[str]:
    """Returns the input files; none may be in the output folder."""
    paths = storage.find_files([inputs] if isinstance(inputs, str | Path) else inputs)
    if not paths:
        raise InputError("there is no input file")
    if (folder := output.local) is not None and folder.exists() and not folder.is_dir():
        raise ConfigError(f"--output must be a folder, but {quote_file(output.uri)} is a file")
    if conflicts := [path for path in paths if output.has_path(path)]:
        raise ConfigError(
            "--output must be a folder without any of the input files, and "
            f"{quote_file(output.uri)} has {quote_file(conflicts[0])}"
        )
    return paths


def _describe_files(paths: Sequence[str]) -> list[InputFile]:
    return [
        InputFile(number=number, path=path, state=storage.read_fingerprint(path))
        for number, path in enumerate(paths)
    ]


def _survey_files(
    corpus_run: CorpusRun,
    surveyor: FileSurveyor,
    files: Sequence[InputFile],
    executor: Executor,
    report: ProgressCallback,
) -> dict[int, FileSurvey]:
    """Surveys the files, and returns the findings by number.

    Raises:
        ConfigError: nothing says what becomes of a field, or the input is not that of the run that
            goes on.
        InputError: an id occurs twice.
    """
    options = surveyor.options
    result: dict[int, FileSurvey] = {}
    read_rows = 0

    def report_rows(rows: int) -> None:
        nonlocal read_rows
        read_rows += rows
        if len(files) == 1:  # of more, the files are counted
            report("rows read", read_rows, 0)

    report("files read", 0, len(files))
    with listen_to_rows(report_rows):
        for file, file_survey in executor.map(surveyor, files):
            result[file.number] = file_survey
            report("files read", len(result), len(files))
    if not any(cut.rows for survey in result.values() for cut in survey.parts):
        raise InputError("the input has no rows, so there is nothing to release")
    if options.id is not None:
        require_unique(surveyor.marks)
    other_fields = _list_other_fields(result)
    if other_fields and not (options.others or options.keep):
        say = describe_others(list_titles(other_fields), len(other_fields))
        raise ConfigError(f"the rows need {say}")
    absent = [name for name in options.keep if all(name in s.absent for s in result.values())]
    if absent:
        raise ConfigError(
            f"no row has a value in the field {quote(absent[0])} (--keep): leave it out, or name "
            f"another. Other fields: {list_names(list_titles(other_fields))}"
        )
    corpus_run.require_same_input(files, result)
    return result


def _list_other_fields(surveys: Mapping[int, FileSurvey]) -> list[str]:
    """Returns the fields that no option names, sorted."""
    return sorted({name for survey in surveys.values() for name in survey.others})


def _build_parts(files: Sequence[InputFile], surveys: Mapping[int, FileSurvey]) -> list[Part]:
    """Numbers all parts, in the order of the files."""
    file_cuts = [(file, cut) for file in files for cut in surveys[file.number].parts]
    suffixes = {number: (survey.ending, survey.packing) for number, survey in surveys.items()}
    return [
        Part(
            number=number,
            name=".".join(filter(None, (f"part-{number:08}", *suffixes[file.number]))),
            file=file.number,
            path=file.path,
            state=file.state,
            cut=cut,
        )
        for number, (file, cut) in enumerate(file_cuts)
    ]


def _draw_parts(
    corpus_run: CorpusRun,
    parts: Sequence[Part],
    part_worker: PartWorker,
    executor: Executor,
    report: ProgressCallback,
) -> None:
    """Draws the parts that are missing, or of another size."""
    records, sizes = corpus_run.read_records(parts), corpus_run.output.read_sizes()
    missing = [
        part
        for part in parts
        if part.number not in records or sizes.get(part.name) != records[part.number]["bytes"]
    ]
    total = sum(part.cut.rows for part in parts)
    done = counted = done_before = total - sum(part.cut.rows for part in missing)

    def report_rows(rows: int) -> None:
        nonlocal counted
        if rows and counted == done_before:
            report(LOADING, 1, 1)
        # A part that is drawn again, because its process died, counts twice.
        counted = min(counted + rows, total)
        report("rows drawn", max(done, counted), total)

    report("rows", done, total)
    with listen_to_rows(report_rows):
        report_rows(0)
        report(LOADING, 0, 0)  # by who draws, which takes a while
        for part, _ in executor.map(part_worker, missing):
            done += part.cut.rows
            report("rows", done, total)
            report_rows(0)


def _refuse_identifiers(paths: Sequence[str], options: RowOptions) -> None:
    """Refuses kept columns that hold texts or identifiers, unless they are to be kept anyway."""
    names = [name for name in options.keep if name not in options.keep_anyway]
    reasons = find_identifiers(paths, names, exempt=options.id)
    refused = {name: why for name, why in reasons.items() if why.startswith(HOLDS)}
    if not refused:
        return
    flags = shlex.join([w for name in refused for w in ("--keep-anyway", name)])
    fields = join_parts([f"{clean_name(name)} ({why})" for name, why in refused.items()])
    raise ConfigError(
        f"--keep would release {fields} as it stands in the input: leave it out, name it with "
        f"--field if it holds texts to protect, or copy it all the same with {flags}"
    )


def _warn_of_identifiers(copied: Mapping[str, str], options: RowOptions) -> None:
    """Warns of copied fields by which somebody may be found."""
    fields = join_parts([f"{clean_name(name)} ({why})" for name, why in copied.items() if why])
    if not fields:
        return
    advice = "leave them out"
    if options.others == "copy":
        advice = "to copy only some, name those with --keep in place of --others copy"
    warnings.warn(
        f"a person may be found by fields that are copied unchanged: {fields}. No statement covers "
        f"them; {advice}",
        TextveilWarning,
        stacklevel=3,
    )


def _reuse_release(
    output: storage.Storage,
    config: Config,
    options: RowOptions,
    files: int,
    resume: bool,
    *,
    source: Mapping[str, Any],
) -> FinishedRelease:
    """Returns an already finished release, after comparing its options.

    Its input is not known any more, and is not compared but for the number of files.
    """
    if not resume:
        raise ConfigError(
            f"the output folder {quote_file(output.uri)} holds a finished release; use another one"
        )
    document = release.read_manifest(output)
    expected = {
        "configuration": release.dump_configuration(config),
        "inputs": files,
        "library": source["library"],
    } | release.describe_options(options)
    differing = [
        name
        for name, value in expected.items()
        if document.get(name) != json.loads(json.dumps(value))
    ]
    if options.fields and list(options.fields) != document["fields"]:
        differing.append("fields")
    if options.drops_others and list(options.labels_to_copy) != document["copied_fields"]:
        differing.append("copied_fields")
    if differing:
        raise ConfigError(
            f"the output folder {quote_file(output.uri)} holds a finished release with other "
            f"options ({', '.join(differing)}); use another one"
        )
    return FinishedRelease(manifest=document, is_earlier=True)
