"""Runs a sweep in several processes, saves rows as they come, and resumes interrupted runs.

In: a sweep, a folder for its rows. Out: the rows of all its cells.
Not here: which cells exist (`spec`), and how one is computed (`cells`).
"""

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from textveil.corpus import Executor, Local
from textveil.errors import ConfigError
from textveil.files import streams
from textveil.models import Endpoint
from textveil.text import tokenize
from textveil_bench import cells as computed
from textveil_bench import data as loaders
from textveil_bench import rows, tasks
from textveil_bench.circumstances import circumstances
from textveil_bench.examples import DataSet
from textveil_bench.spec import PlannedCell, PlannedSeries, Sweep, SweepData
from textveil_bench.task_words import learn
from textveil_bench.tasks import models
from textveil_bench.tasks.contract import Judge
from textveil_bench.trials import joined

Report = Callable[[str, int, int], None]

PACE = 10_000
"""Words the finished cells must have before a duration is estimated: few texts say little about many."""

TAUGHT = 20_000
"""Most training texts that important words are learned from."""


@dataclass(frozen=True, kw_only=True)
class Folders:
    """Where a run finds things.

    Attributes:
        corpora: the folder of corpora; None for that of the environment, or a hub.
        cache: where fitted judges are kept; None for the default place.
    """

    corpora: Path | None = None
    cache: Path | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """The work of one process at a time: cells of a series that share computation.

    Attributes:
        sweep: with attacks and measures.
        series: with its data set.
        cells: of the series.
        learned: what rows record about the series' list of important words; None without one.
    """

    sweep: Sweep
    series: PlannedSeries
    cells: tuple[PlannedCell, ...]
    learned: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class RunPlan:
    """The remaining work of a run.

    Attributes:
        jobs: what is left to compute.
        there: rows of finished cells.
    """

    jobs: tuple[Job, ...]
    there: tuple[rows.Row, ...] = field(repr=False)

    @property
    def cells(self) -> int:
        """Number of cells that are left."""
        return sum(len(job.cells) for job in self.jobs)


def plan(sweep: Sweep, found: Sequence[rows.Row], places: Folders) -> RunPlan:
    """The remaining work of a sweep.

    Args:
        sweep: what is wanted.
        found: existing rows.
        places: where the data is.
    """
    by_key = {_place(row): row for row in found}
    any_key = {row["key"]: row for row in found}
    jobs, there = [], []
    for series in sweep.series:
        learned = None
        if series.learned:
            words = task_words(series, places)
            learned = {**_told(taught_by(series.source, places)), "words": _digest(words)}
            series = series.taught(words)
        left = []
        for cell in series.cells(sweep, load(series.source, sweep.limit, places).digest):
            own = (cell.key, sweep.name, series.name, series.source.called)
            if own in by_key:
                there.append(by_key[own])
            elif cell.key in any_key:
                there.append(_renamed(any_key[cell.key], sweep, series, cell))
            else:
                left.append(cell)
        jobs += [
            Job(sweep=sweep, series=series, cells=part, learned=learned) for part in _parts(left)
        ]
    return RunPlan(jobs=tuple(jobs), there=tuple(there))


def _place(row: rows.Row) -> tuple[Any, ...]:
    """Identifies a row: two sweeps may share a cell."""
    return row["key"], row["sweep"], row["series"], row["data"]["name"]


def _renamed(row: rows.Row, sweep: Sweep, series: PlannedSeries, cell: PlannedCell) -> rows.Row:
    """The row of a cell that another sweep computed, under this sweep's names."""
    own = {
        "sweep": sweep.name,
        "entry": series.entry,
        "series": series.name,
        "family": series.family,
    }
    data = {**row["data"], "name": series.source.called}
    return {**row, **own, "whose": series.whose, "point": dict(series.point), "data": data}


def _parts(left: Sequence[PlannedCell]) -> Iterator[tuple[PlannedCell, ...]]:
    """Cells computed together: all of them if a language model is used, otherwise those of one budget."""
    if (
        left
        and left[0].config is not None
        and left[0].config.mechanism.options.get("context", "none") != "none"
    ):
        yield tuple(left)
        return
    for budget in dict.fromkeys(repr(cell.budget) for cell in left):
        yield tuple(cell for cell in left if repr(cell.budget) == budget)


def run(
    sweep: Sweep,
    folder: Path,
    *,
    places: Folders | None = None,
    executor: Executor | None = None,
    report: Report = lambda step, done, total: None,
) -> list[rows.Row]:
    """Computes what is missing, and returns all rows of the sweep.

    Args:
        sweep: what is wanted.
        folder: for the rows; created if needed. Existing rows are reused.
        places: where data and fitted judges are.
        executor: computes the cells, as made by `processes`; it stays open, so that several runs load models once;
            None for this process.
        report: called with "cells".

    Raises:
        ConfigError: the sweep or one of its options is wrong; another run is at work in the folder.
        InputError: data cannot be read.
    """
    places, executor = places or Folders(), executor or Local()
    computed.check(sweep)
    for source in sweep.data:
        _ready(source, sweep, places)
    with rows.opened(folder) as store:
        made = plan(sweep, store.rows, places)
        own = set(map(_place, store.rows))
        for row in made.there:
            if _place(row) not in own:
                store.append(row)
        if made.jobs:
            for source in {
                job.series.source.called: job.series.source for job in made.jobs
            }.values():
                for judge in judges(source, sweep, places):
                    tasks.prepare(judge)  # fitted here once; the processes load it
        found = list(made.there)
        report("cells", 0, made.cells)
        for (job, _), done in executor.map(_job, [(job, places) for job in made.jobs]):
            for row in done:
                texts = row.pop("texts")
                store.append(row)
                _keep_texts(folder, job, texts, row)
                found.append(row)
            report("cells", len(found) - len(made.there), made.cells)
        return found


def there(sweep: Sweep, found: Sequence[rows.Row]) -> list[rows.Row]:
    """The rows of a sweep among others: those with its names, budgets and seeds. Reads no data.

    If a series was run several times, the run with the most examples counts, up to the number the sweep asks for.

    Args:
        sweep: what is wanted.
        found: rows of any sweeps.
    """
    named: dict[tuple[str, str], list[rows.Row]] = {}
    for row in found:
        if row["sweep"] == sweep.name:
            named.setdefault((row["series"], row["data"]["name"]), []).append(row)
    kept: list[rows.Row] = []
    for series in sweep.series:
        limit = series.source.limit or sweep.limit
        budgets = {json.dumps(budget) for budget in series.budgets}
        own = [
            row
            for row in named.get((series.name, series.source.called), ())
            if row["seed"] in sweep.seeds
            and json.dumps(row["budget"] and row["budget"]["value"]) in budgets
            and (limit is None or row["data"]["examples"] <= limit)
        ]
        most = max((row["data"]["examples"] for row in own), default=0)
        kept += [row for row in own if row["data"]["examples"] == most]
    return kept


def preview(sweep: Sweep, folder: Path | None, places: Folders) -> list[str]:
    """What a run would do, as lines for people; computes nothing.

    Args:
        sweep: what is wanted.
        folder: of the run, which may have rows already; None for none.
        places: where the data is.
    """
    computed.check(sweep)
    for source in sweep.data:
        _ready(source, sweep, places)
    found = [] if folder is None else rows.found(folder)
    made = plan(sweep, found, places)
    lines = [
        f"sweep {sweep.name}: {made.cells + len(made.there):,} cells, {len(made.there):,} of them are there"
    ]
    words = 0
    for source in sweep.data:
        data = load(source, sweep.limit, places)
        own = sum(len(job.cells) for job in made.jobs if job.series.source.called == source.called)
        words += own * len(tokenize([joined(example) for example in data.examples]).words)
        lines.append(
            f"  {source.called}: {len(data):,} examples from {data.source}, {own:,} cells left"
        )
        lines += [f"    {remark}" for remark in data.remarks]
    known = made.there or found
    if made.cells and sum(sum(row["lengths"]) for row in known) >= PACE:
        pace = sum(sum(row["seconds"].values()) for row in known) / sum(
            sum(row["lengths"]) for row in known
        )
        minutes = max(1, round(words * pace / 60))
        told = f"{minutes} minute{'s' * (minutes != 1)} of one core, at the pace of the cells that are there"
        lines.append(f"about {told}")
    elif made.cells:
        lines.append("how long that takes is told once some cells are there")
    return lines


def _job(given: tuple[Job, Folders]) -> list[rows.Row]:
    job, places = given
    data = load(job.series.source, job.sweep.limit, places)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows record where epsilon bounds nothing
        asked = judges(job.series.source, job.sweep, places)
        training = {
            "training": trained(job.series.source, data, asked, places),
            "learned": job.learned,
        }
        around = {**circumstances(), "judges": models.precision()}
        return list(
            computed.compute(job.series, job.cells, data, asked, job.sweep, around, training)
        )


# ---- data and judges ---------------------------------------------------------------------------------------


_HELD: dict[str, Any] = {}
"""This process's data sets and judges."""


def load(source: SweepData, limit: int | None, places: Folders) -> DataSet:
    """The examples of a data set of a sweep."""
    limit = source.limit or limit
    key = _key(
        "data",
        source.name,
        source.split,
        source.subset,
        source.columns,
        limit,
        source.beside,
        places.corpora,
    )
    if key not in _HELD:
        named: dict[str, Any] = {
            "split": source.split,
            "folder": places.corpora,
            "subset": source.subset,
        }
        if source.beside:
            whole = loaders.load(source.name, limit=None, **named, **source.columns)
            _HELD[key] = _beside(
                whole, load(replace(source, limit=source.beside, beside=0), None, places), limit
            )
        else:
            _HELD[key] = loaders.load(source.name, limit=limit, **named, **source.columns)
    found: DataSet = _HELD[key]
    return found


def _beside(whole: DataSet, taken: DataSet, limit: int | None) -> DataSet:
    """Evenly spaced examples of a data set that share no text with the ones taken.

    Raises:
        ConfigError: none are left.
    """
    known = {text for example in taken.examples for text in example.texts}
    left = [example for example in whole.examples if known.isdisjoint(example.texts)]
    if not left:
        raise ConfigError(
            f"{whole.name} has no examples besides the {len(taken):,} taken; lower the limit"
        )
    count = min(len(left), limit or len(left))
    chosen = tuple(left[i * len(left) // count] for i in range(count))
    return replace(
        whole,
        examples=chosen,
        remarks=(*whole.remarks, f"beside {len(taken):,} that are not among them"),
    )


def judges(source: SweepData, sweep: Sweep, places: Folders) -> tuple[Judge, ...]:
    """The judges of a data set of a sweep, fitted."""
    asked = (
        source.name,
        source.subset,
        source.columns,
        source.task,
        sweep.endpoint,
        "meaning" in sweep.measures,
    )
    key = _key("judges", *asked, places.corpora, places.cache)
    if key not in _HELD:
        data = load(source, sweep.limit, places)
        endpoint = None if sweep.endpoint is None else Endpoint(**sweep.endpoint)

        def train() -> DataSet:
            return training_texts(source, places)

        wanted = [*(source.task or ({"name": tasks.usual(data.kind)},))]
        if "meaning" in sweep.measures and "meaning" not in {each["name"] for each in wanted}:
            wanted.append({"name": "meaning"})
        _HELD[key] = tuple(
            tasks.make(
                each["name"],
                {name: value for name, value in each.items() if name != "name"},
                train=train,
                cache=places.cache,
                endpoint=endpoint,
            )
            for each in wanted
        )
    found: tuple[Judge, ...] = _HELD[key]
    return found


def _ready(source: SweepData, sweep: Sweep, places: Folders) -> None:
    """Builds the judges of a data set without fitting them, so that errors surface before anything runs.

    Raises:
        ConfigError: an option is wrong, or a judge needs a training split that is not named. UnknownName: there is no
            such judge.
    """
    asked = judges(source, sweep, places)
    if not loaders.is_file(source.name) or loaders.SPLIT in source.name:
        return
    data = load(source, sweep.limit, places)
    if learning := [
        judge.name for judge in asked if hasattr(judge, "train") and not judge.refusal(data)
    ]:
        raise ConfigError(
            f"{source.called}: {learning[0]} learns from a training split: name files with {loaders.SPLIT} in place of "
            "the split, one for train and one for test, or use another judge, such as task: meaning"
        )


def task_words(series: PlannedSeries, places: Folders) -> tuple[str, ...]:
    """The important words of a series that learns them."""
    source = series.source
    key = _key("words", source.name, source.subset, source.columns, series.learned, places.corpora)
    if key not in _HELD:
        _HELD[key] = learn(taught_by(source, places), series.learned)
    found: tuple[str, ...] = _HELD[key]
    return found


def taught_by(source: SweepData, places: Folders) -> DataSet:
    """The training texts from which important words are learned."""
    return load(source.training(TAUGHT), None, places)


def training_texts(source: SweepData, places: Folders) -> DataSet:
    """The training texts given to judges."""
    return load(source.training(), None, places)


def trained(
    source: SweepData, data: DataSet, asked: Sequence[Judge], places: Folders
) -> Mapping[str, Any] | None:
    """What rows record about the texts that judges learn from; None if none of them learns.

    Args:
        source: of the data set.
        data: its examples.
        asked: its judges.
        places: where the data is.
    """
    if not any(hasattr(judge, "train") and not judge.refusal(data) for judge in asked):
        return None
    key = _key("training", source.name, source.subset, source.columns, places.corpora)
    if key not in _HELD:
        _HELD[key] = _told(training_texts(source, places))
    found: Mapping[str, Any] = _HELD[key]
    return found


def _told(train: DataSet) -> Mapping[str, Any]:
    return {"source": train.source, "digest": train.digest, "examples": len(train)}


def _digest(words: Sequence[str]) -> str:
    return blake2b(json.dumps(words).encode(), digest_size=12).hexdigest()


def _key(*parts: object) -> str:
    return json.dumps(parts, sort_keys=True, default=str)


# ---- the gallery -------------------------------------------------------------------------------------------


def _keep_texts(folder: Path, job: Job, texts: Sequence[rows.Row], row: rows.Row) -> None:
    """Keeps texts before and after, of the first seed and of public data sets only."""
    if not texts or loaders.is_file(job.series.source.name) or row["seed"] != job.sweep.seeds[0]:
        return
    shared = {
        "data": row["data"]["name"],
        **{name: row[name] for name in ("sweep", "entry", "series", "budget", "key")},
    }
    with streams.writing(), open(folder / rows.GALLERY, "a", encoding="utf-8") as file:
        for each in texts:
            file.write(json.dumps({**shared, **each}, ensure_ascii=False) + "\n")


# ---- processes ---------------------------------------------------------------------------------------------


def processes(count: int) -> Local:
    """Several single-threaded processes that keep what they have loaded, or just this one.

    Raises:
        ConfigError: the number of processes is below 1.
    """
    return Local(count, threads=1, advice="Retry with fewer --processes; finished rows are kept.")
