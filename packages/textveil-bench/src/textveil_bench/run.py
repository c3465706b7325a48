"""Runs a sweep in several processes, and resumes interrupted runs.

In: a sweep, a folder for its rows. Out: the rows of all its cells, saved as they are computed.
Not here: the list of cells (`spec`), and how one is computed (`cells`).
"""

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from textveil.corpus import Executor, LocalExecutor
from textveil.errors import ConfigError
from textveil.files import text_streams
from textveil.models import NO_KEY, AnswerSource, AnswerStore, Endpoint, Prompts
from textveil.text import tokenize
from textveil_bench import cells as computed
from textveil_bench import data as loaders
from textveil_bench import rows, tasks
from textveil_bench.circumstances import read_circumstances
from textveil_bench.examples import DataSet
from textveil_bench.spec import PlannedCell, PlannedSeries, Sweep, SweepData
from textveil_bench.task_words import learn
from textveil_bench.tasks import judge_models
from textveil_bench.tasks.task_contract import Judge
from textveil_bench.trials import join_fields

ProgressCallback = Callable[[str, int, int], None]

MIN_PACE_WORDS = 10_000
"""Smallest number of finished words from which a run's duration is estimated."""

ANSWERS_FILE = "answers.sqlite"
"""The file of language models' answers, beside the rows."""

ENDPOINT_FAILURE = "the endpoint "
"""Beginning of the reason where an endpoint gave no answer."""

MAX_TEACHING_TEXTS = 20_000
"""Largest number of training texts from which important words are learned."""


@dataclass(frozen=True, kw_only=True)
class Folders:
    """Folders that a run reads and writes.

    Attributes:
        corpora: the folder of corpora; None for the one in the environment, or a hub.
        cache: the folder of fitted judges; None for the default.
        answers: keeps the answers of language models; None for a file beside the rows.
    """

    corpora: Path | None = None
    cache: Path | None = None
    answers: AnswerSource | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """Cells of a series that share computation, run by one process.

    Attributes:
        sweep: the sweep, with attacks and measures.
        series: the series, with its data set.
        cells: cells of the series.
        word_record: what rows record about the series' list of important words; None without one.
    """

    sweep: Sweep
    series: PlannedSeries
    cells: tuple[PlannedCell, ...]
    word_record: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class RunPlan:
    """The remaining work of a run.

    Attributes:
        jobs: the cells still to compute.
        finished_rows: rows of finished cells.
    """

    jobs: tuple[Job, ...]
    finished_rows: tuple[rows.BenchRow, ...] = field(repr=False)

    @property
    def cell_count(self) -> int:
        """Number of cells still to compute."""
        return sum(len(job.cells) for job in self.jobs)


def build_plan(sweep: Sweep, existing_rows: Sequence[rows.BenchRow], places: Folders) -> RunPlan:
    """Plans the remaining work of a sweep.

    Args:
        sweep: the sweep.
        existing_rows: rows computed so far.
        places: folders of the data.
    """
    by_key = {_identify_row(row): row for row in existing_rows}
    any_key = {row["key"]: row for row in existing_rows}
    jobs, finished_rows = [], []
    for series in sweep.series:
        word_record = None
        if series.task_word_count:
            words = learn_task_words(series, places)
            word_record = {
                **_build_text_record(load_teaching_texts(series.source, places)),
                "words": _hash_words(words),
            }
            series = series.add_task_words(words)
        remaining = []
        for cell in series.build_cells(sweep, load(series.source, sweep.limit, places).digest):
            key = (cell.key, sweep.name, series.name, series.source.row_name)
            if key in by_key:
                finished_rows.append(by_key[key])
            elif cell.key in any_key:
                finished_rows.append(_rename_row(any_key[cell.key], sweep, series, cell))
            else:
                remaining.append(cell)
        jobs += [
            Job(sweep=sweep, series=series, cells=part, word_record=word_record)
            for part in _split_cells(remaining)
        ]
    return RunPlan(jobs=tuple(jobs), finished_rows=tuple(finished_rows))


def _identify_row(row: rows.BenchRow) -> tuple[Any, ...]:
    """Returns a row's identity; the key alone is ambiguous across sweeps."""
    return row["key"], row["sweep"], row["series"], row["data"]["name"]


def _rename_row(
    row: rows.BenchRow, sweep: Sweep, series: PlannedSeries, cell: PlannedCell
) -> rows.BenchRow:
    """Returns a row that another sweep computed, under this sweep's names."""
    names = {
        "sweep": sweep.name,
        "entry": series.entry,
        "series": series.name,
        "family": series.family,
    }
    data = {**row["data"], "name": series.source.row_name}
    return {**row, **names, "whose": series.whose, "point": dict(series.point), "data": data}


def _split_cells(cells: Sequence[PlannedCell]) -> Iterator[tuple[PlannedCell, ...]]:
    """Splits cells into jobs: one with a language model, otherwise by budget."""
    if (
        cells
        and cells[0].config is not None
        and cells[0].config.mechanism.options.get("context", "none") != "none"
    ):
        yield tuple(cells)
        return
    for budget in dict.fromkeys(repr(cell.budget) for cell in cells):
        yield tuple(cell for cell in cells if repr(cell.budget) == budget)


def run(
    sweep: Sweep,
    folder: Path,
    *,
    places: Folders | None = None,
    executor: Executor | None = None,
    report: ProgressCallback = lambda step, done, total: None,
) -> list[rows.BenchRow]:
    """Computes the missing cells of a sweep and returns all its rows.

    Args:
        sweep: the sweep.
        folder: folder for the rows; created if needed. Existing rows are reused. Rows with an
            endpoint that gave no answer are returned, and not kept.
        places: folders of data and fitted judges.
        executor: computes the cells, as made by `open_processes`; it stays open, so that several
            runs load models once; None for this process.
        report: called with "cells".

    Raises:
        ConfigError: the sweep or one of its options is wrong; another run has locked the folder.
        InputError: data cannot be read.
        RequestLimitReached: `places.answers` counts no more requests; finished rows are kept.
    """
    places, executor = places or Folders(), executor or LocalExecutor()
    if sweep.endpoint is not None and places.answers is None:
        places = replace(places, answers=AnswerStore.open(folder / ANSWERS_FILE))
    computed.check_sweep(sweep)
    for source in sweep.data:
        _check_judges(source, sweep, places)
    with rows.open_store(folder) as store:
        run_plan = build_plan(sweep, store.rows, places)
        stored_keys = set(map(_identify_row, store.rows))
        for row in run_plan.finished_rows:
            if _identify_row(row) not in stored_keys:
                store.add_row(row)
        if run_plan.jobs:
            for source in {
                job.series.source.row_name: job.series.source for job in run_plan.jobs
            }.values():
                for judge in load_judges(source, sweep, places):
                    tasks.prepare(judge)  # fitted here once; the processes load it
        results = list(run_plan.finished_rows)
        report("cells", 0, run_plan.cell_count)
        for (job, _), done in executor.map(_run_job, [(job, places) for job in run_plan.jobs]):
            for row in done:
                texts = row.pop("texts")
                if not _has_endpoint_failure(row):  # else the next run asks again
                    store.add_row(row)
                    _keep_texts(folder, job, texts, row)
                results.append(row)
            report("cells", len(results) - len(run_plan.finished_rows), run_plan.cell_count)
        return results


def _has_endpoint_failure(row: rows.BenchRow) -> bool:
    """True if an endpoint gave no answer: that may be otherwise the next time."""
    return any(reason.startswith(ENDPOINT_FAILURE) for reason in row["not_run"].values())


def select_rows(sweep: Sweep, existing_rows: Sequence[rows.BenchRow]) -> list[rows.BenchRow]:
    """Selects a sweep's rows by name, budget and seed, without reading data.

    If a series was run several times, the run with the most examples counts, up to the number the
    sweep asks for.

    Args:
        sweep: the sweep.
        existing_rows: rows of any sweeps.
    """
    rows_by_series: dict[tuple[str, str], list[rows.BenchRow]] = {}
    for row in existing_rows:
        if row["sweep"] == sweep.name:
            rows_by_series.setdefault((row["series"], row["data"]["name"]), []).append(row)
    selection: list[rows.BenchRow] = []
    for series in sweep.series:
        limit = series.source.limit or sweep.limit
        budgets = {json.dumps(budget) for budget in series.budgets}
        matches = [
            row
            for row in rows_by_series.get((series.name, series.source.row_name), ())
            if row["seed"] in sweep.seeds
            and json.dumps(row["budget"] and row["budget"]["value"]) in budgets
            and (limit is None or row["data"]["examples"] <= limit)
        ]
        max_examples = max((row["data"]["examples"] for row in matches), default=0)
        selection += [row for row in matches if row["data"]["examples"] == max_examples]
    return selection


def format_preview(sweep: Sweep, folder: Path | None, places: Folders) -> list[str]:
    """Formats a run's remaining work as text, without computing anything.

    Args:
        sweep: the sweep.
        folder: the run's folder, which may have rows already; None for no folder.
        places: folders of the data.
    """
    computed.check_sweep(sweep)
    for source in sweep.data:
        _check_judges(source, sweep, places)
    existing_rows = [] if folder is None else rows.read_existing(folder)
    run_plan = build_plan(sweep, existing_rows, places)
    lines = [
        f"sweep {sweep.name}: {run_plan.cell_count + len(run_plan.finished_rows):,} cells, "
        f"{len(run_plan.finished_rows):,} already computed"
    ]
    words = 0
    for source in sweep.data:
        data = load(source, sweep.limit, places)
        cell_count = sum(
            len(job.cells) for job in run_plan.jobs if job.series.source.row_name == source.row_name
        )
        words += cell_count * len(
            tokenize([join_fields(example) for example in data.examples]).words
        )
        lines.append(
            f"  {source.row_name}: {len(data):,} examples from {data.source}, {cell_count:,} "
            "cells left"
        )
        lines += [f"    {remark}" for remark in data.remarks]
    timed_rows = run_plan.finished_rows or existing_rows
    if run_plan.cell_count and sum(sum(row["lengths"]) for row in timed_rows) >= MIN_PACE_WORDS:
        pace = sum(sum(row["seconds"].values()) for row in timed_rows) / sum(
            sum(row["lengths"]) for row in timed_rows
        )
        minutes = max(1, round(words * pace / 60))
        duration = (
            f"{minutes} minute{'s' * (minutes != 1)} of one core, at the pace of the finished cells"
        )
        lines.append(f"about {duration}")
    elif run_plan.cell_count:
        lines.append("the duration can be estimated once some cells are finished")
    return lines


def _run_job(task: tuple[Job, Folders]) -> list[rows.BenchRow]:
    job, places = task
    data = load(job.series.source, job.sweep.limit, places)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows record statements without a bound
        data_judges = load_judges(job.series.source, job.sweep, places)
        training = {
            "training": build_training_record(job.series.source, data, data_judges, places),
            "learned": job.word_record,
        }
        environment = {**read_circumstances(), "judges": judge_models.choose_precision()}
        return list(
            computed.compute(
                job.series, job.cells, data, data_judges, job.sweep, environment, training
            )
        )


# ---- data and judges ---------------------------------------------------------------------------------------


_CACHE: dict[str, Any] = {}
"""Data sets and judges loaded by this process."""


def load(source: SweepData, limit: int | None, places: Folders) -> DataSet:
    """Loads the examples of a sweep's data set."""
    limit = source.limit or limit
    key = _build_key(
        "data",
        source.name,
        source.split,
        source.subset,
        source.columns,
        limit,
        source.beside,
        places.corpora,
    )
    if key not in _CACHE:
        options: dict[str, Any] = {
            "split": source.split,
            "folder": places.corpora,
            "subset": source.subset,
        }
        if source.beside:
            full_set = loaders.load(source.name, limit=None, **options, **source.columns)
            _CACHE[key] = _sample_unused(
                full_set, load(replace(source, limit=source.beside, beside=0), None, places), limit
            )
        else:
            _CACHE[key] = loaders.load(source.name, limit=limit, **options, **source.columns)
    data_set: DataSet = _CACHE[key]
    return data_set


def _sample_unused(whole: DataSet, used_data: DataSet, limit: int | None) -> DataSet:
    """Samples evenly spaced examples that share no text with the used ones.

    Raises:
        ConfigError: none are left.
    """
    used_texts = {text for example in used_data.examples for text in example.texts}
    unused = [example for example in whole.examples if used_texts.isdisjoint(example.texts)]
    if not unused:
        raise ConfigError(
            f"{whole.name} has only the {len(used_data):,} examples already taken; lower the limit"
        )
    count = min(len(unused), limit or len(unused))
    examples = tuple(unused[i * len(unused) // count] for i in range(count))
    return replace(
        whole,
        examples=examples,
        remarks=(*whole.remarks, f"without {len(used_data):,} examples used elsewhere"),
    )


def load_judges(source: SweepData, sweep: Sweep, places: Folders) -> tuple[Judge, ...]:
    """Returns the judges of a sweep's data set."""
    settings = (
        source.name,
        source.subset,
        source.columns,
        source.task,
        sweep.endpoint,
        sweep.local,
        sweep.prompts,
        "meaning" in sweep.measures,
    )
    key = _build_key("judges", *settings, places.corpora, places.cache, repr(places.answers))
    if key not in _CACHE:
        data = load(source, sweep.limit, places)
        endpoint, local = (
            None if options is None else Endpoint(**options, answers=places.answers)
            for options in (
                sweep.endpoint,
                # the key is for the remote one only
                None if sweep.local is None else {**sweep.local, "key": NO_KEY, "local": True},
            )
        )
        prompts = None if sweep.prompts is None else Prompts.parse(sweep.prompts)

        def train() -> DataSet:
            return load_training_texts(source, places)

        wanted = [*(source.task or ({"name": tasks.get_default(data.kind)},))]
        if "meaning" in sweep.measures and "meaning" not in {task["name"] for task in wanted}:
            wanted.append({"name": "meaning"})
        _CACHE[key] = tuple(
            tasks.build_judge(
                task["name"],
                {name: value for name, value in task.items() if name != "name"},
                train=train,
                cache=places.cache,
                endpoint=endpoint,
                local=local,
                prompts=prompts,
            )
            for task in wanted
        )
    fitted_judges: tuple[Judge, ...] = _CACHE[key]
    return fitted_judges


def _check_judges(source: SweepData, sweep: Sweep, places: Folders) -> None:
    """Checks the judges of a data set without fitting them.

    Raises:
        ConfigError: an option is wrong, or a judge needs a training split that is not named.
        UnknownName: there is no such judge.
    """
    data_judges = load_judges(source, sweep, places)
    if not loaders.is_file(source.name) or loaders.SPLIT in source.name:
        return
    data = load(source, sweep.limit, places)
    if learning := [
        judge.name
        for judge in data_judges
        if hasattr(judge, "train") and not judge.explain_refusal(data)
    ]:
        raise ConfigError(
            f"{source.row_name}: {learning[0]} learns from a training split: name files with "
            f"{loaders.SPLIT} in place of the split, one for train and one for test, or use "
            "another judge, such as task: meaning"
        )


def learn_task_words(series: PlannedSeries, places: Folders) -> tuple[str, ...]:
    """Learns the important words of a series; cached."""
    source = series.source
    key = _build_key(
        "words", source.name, source.subset, source.columns, series.task_word_count, places.corpora
    )
    if key not in _CACHE:
        _CACHE[key] = learn(load_teaching_texts(source, places), series.task_word_count)
    words: tuple[str, ...] = _CACHE[key]
    return words


def load_teaching_texts(source: SweepData, places: Folders) -> DataSet:
    """Loads the training texts from which important words are learned."""
    return load(source.get_training_split(MAX_TEACHING_TEXTS), None, places)


def load_training_texts(source: SweepData, places: Folders) -> DataSet:
    """Loads the training texts of judges."""
    return load(source.get_training_split(), None, places)


def build_training_record(
    source: SweepData, data: DataSet, data_judges: Sequence[Judge], places: Folders
) -> Mapping[str, Any] | None:
    """Builds the row field about the judges' training texts.

    None if no judge is trained.

    Args:
        source: the data set in the sweep.
        data: its examples.
        data_judges: its judges.
        places: folders of the data.
    """
    if not any(
        hasattr(judge, "train") and not judge.explain_refusal(data) for judge in data_judges
    ):
        return None
    key = _build_key("training", source.name, source.subset, source.columns, places.corpora)
    if key not in _CACHE:
        _CACHE[key] = _build_text_record(load_training_texts(source, places))
    record: Mapping[str, Any] = _CACHE[key]
    return record


def _build_text_record(train: DataSet) -> Mapping[str, Any]:
    return {"source": train.source, "digest": train.digest, "examples": len(train)}


def _hash_words(words: Sequence[str]) -> str:
    return blake2b(json.dumps(words).encode(), digest_size=12).hexdigest()


def _build_key(*parts: object) -> str:
    return json.dumps(parts, sort_keys=True, default=str)


# ---- the gallery -------------------------------------------------------------------------------------------


def _keep_texts(folder: Path, job: Job, texts: Sequence[rows.BenchRow], row: rows.BenchRow) -> None:
    """Stores texts before and after: first seed and public data sets only."""
    if not texts or loaders.is_file(job.series.source.name) or row["seed"] != job.sweep.seeds[0]:
        return
    shared = {
        "data": row["data"]["name"],
        **{name: row[name] for name in ("sweep", "entry", "series", "budget", "key")},
    }
    with (
        text_streams.convert_write_errors(),
        open(folder / rows.GALLERY_FILE, "a", encoding="utf-8") as file,
    ):
        for text in texts:
            file.write(json.dumps({**shared, **text}, ensure_ascii=False) + "\n")


# ---- processes ---------------------------------------------------------------------------------------------


def open_processes(count: int) -> LocalExecutor:
    """Opens single-threaded worker processes; a count of 1 uses this process.

    Raises:
        ConfigError: the number of processes is below 1.
    """
    return LocalExecutor(
        count, threads=1, advice="Retry with fewer --processes; finished rows are kept."
    )
