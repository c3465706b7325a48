"""Runs a target's sweeps, and compares the results with the paper.

In: a target, a folder for its rows. Out: `ReproductionResult`.
Not here: targets (`targets`), how a sweep is run (`run` of the bench), how results are shown
(`document`, `page`).
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from textveil.corpus import Executor
from textveil.errors import (
    ConfigError,
    InputError,
    ModelError,
    RequestLimitReached,
    TableError,
)
from textveil.files import text_streams
from textveil.models import Prompts, RequestEstimate, RequestRecorder
from textveil_bench import compare, rows
from textveil_bench import run as runs
from textveil_bench.circumstances import read_circumstances
from textveil_bench.compare import Series
from textveil_bench.reproduce.clipping_bounds import measure_bounds
from textveil_bench.reproduce.computed import ComputeOptions, Table, compute
from textveil_bench.reproduce.targets import Plain, Plans, Scale, Target, TargetPanel, build_plans
from textveil_bench.reproduce.verdict import (
    ComparedValue,
    Verdict,
    check_claims,
    compare_published,
    format_contradictions,
)
from textveil_bench.requests import count_requests
from textveil_bench.rows import BenchRow, yield_rows
from textveil_bench.run import Folders
from textveil_bench.spec import Sweep

ProgressCallback = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReproductionResult:
    """Result for a target.

    Attributes:
        target: the target.
        scale: usual, quick or full.
        options: options of the reproduction.
        rows: rows of all panels that were run.
        series: the rows as series, for comparison.
        tables: computed tables, by name.
        compared_values: the published values with ours.
        verdicts: the claims.
        contradictions: where the paper is wrong, with figures of these rows.
        not_run: panels that were not run, and why.
        circumstances: circumstances of the first row, or of the tables if there are no rows.
    """

    target: Target
    scale: Scale
    options: "ReproductionOptions" = field(repr=False)
    rows: tuple[BenchRow, ...] = field(repr=False)
    series: tuple[Series, ...] = field(repr=False)
    tables: Mapping[str, Table]
    compared_values: tuple[ComparedValue, ...]
    verdicts: tuple[Verdict, ...]
    contradictions: tuple[str, ...]
    not_run: Mapping[str, str]
    circumstances: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ReproductionOptions:
    """Options of a reproduction.

    Attributes:
        scale: usual, quick or full.
        hub: whether to use the paper's own models and tables instead of ours.
        endpoint: options of `Endpoint`; without it, panels that need a language model are not run.
        local: options of `Endpoint` for a model on this machine, which may see original texts, as in
            Cape; None for no such model: the other one revises, and sees releases.
        prompts: wordings of what language models are asked; None for ours.
        generative: whether to run panels of the small language model; stored results are shown in
            any case.
        panels: parts of the names of the panels to run; empty for all.
        limit: largest number of examples of each data set; None for that of the target.
        seeds: in place of the target's; empty for its own.
        places: folders of data and fitted judges, and what keeps the answers of language models.
        executor: computes the cells, for all targets; None for this process.
        stored: results of earlier runs: nothing is run, and no data is read; None to run.
    """

    scale: Scale = "usual"
    hub: bool = False
    endpoint: Mapping[str, Any] | None = None
    local: Mapping[str, Any] | None = None
    prompts: Prompts | None = None
    generative: bool = False
    panels: tuple[str, ...] = ()
    limit: int | None = None
    seeds: tuple[int, ...] = ()
    places: Folders = field(default_factory=Folders)
    executor: Executor | None = None
    stored: "StoredResults | None" = None

    def build_plans(self, target: Target) -> Plans:
        """Builds the plans of a target, to run or to show."""
        if self.panels:
            panels = tuple(panel for panel in list_panels(target) if self.selects(panel.name))
            if not panels:
                return Plans(sweeps={}, tables=(), not_run={})
            target = replace(target, panels=panels, computed=())
        return build_plans(
            target,
            self.scale,
            hub=self.hub,
            endpoint=self.endpoint,
            generative=self.generative or self.stored is not None,
            local=self.local,
            prompts=None if self.prompts is None else self.prompts.plain,
        )

    def selects(self, panel: str) -> bool:
        """True if a panel of this name is to be run."""
        return not self.panels or any(part.casefold() in panel.casefold() for part in self.panels)

    def read_sweep(self, plain: Mapping[str, Any]) -> Sweep:
        """Reads a panel's sweep, with the limit and seeds of the run.

        Raises:
            ConfigError: it is wrong.
        """
        sweep = Sweep.read(measure_bounds(plain, self.scale, self.places))
        return sweep.select_part(limit=self.limit, seeds=self.seeds or None)


@dataclass(frozen=True, kw_only=True)
class StoredResults:
    """Results of earlier runs.

    Attributes:
        folder: folder of the targets' documents.
        rows: all rows in it.
    """

    folder: Path
    rows: tuple[BenchRow, ...] = field(repr=False)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Reads the rows of a folder.

        Raises:
            InputError: there are none, or they cannot be read.
        """
        return cls(folder=folder, rows=tuple(yield_rows([folder])))

    def read_tables(self, name: str) -> tuple[dict[str, Table], Mapping[str, Any] | None]:
        """Reads a target's tables, and their circumstances; empty without a document.

        Raises:
            InputError: its document is damaged.
        """
        path = self.folder / f"{name}.json"
        if not path.exists():
            return {}, None
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            return {table["name"]: Table.read(table) for table in document["tables"]}, document[
                "circumstances"
            ]
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(
                f"{path.name} is not a document of an earlier run; delete it and run again"
            ) from None


LIMIT_REASON = (
    "the run has sent as many requests as it may; what is there is shown, and the same command "
    "continues"
)
NOT_STORED_REASON = "no rows of it are stored"


def list_panels(target: Target) -> tuple[TargetPanel, ...]:
    """Lists a target's panels; without any, its sweep is one."""
    sweep = (TargetPanel(name=target.title, quick={}),) if target.sweep else ()
    return target.panels or sweep


def build_file_stem(target: Target, how: ReproductionOptions) -> str:
    """Builds the file name of a run, without suffix."""
    scale = [] if how.scale == "usual" else [how.scale]
    is_part = bool(how.panels or how.limit is not None or how.seeds)
    return "-".join([target.name, *scale, *["hub"] * how.hub, *["part"] * is_part])


def format_preview(
    target: Target, folder: Path, how: ReproductionOptions, recorder: RequestRecorder | None = None
) -> Iterator[str]:
    """Yields lines that describe what `reproduce` would do.

    Args:
        target: the target.
        folder: of the rows.
        how: options of the reproduction.
        recorder: counts the requests to language models; equal ones of several targets are sent
            once.

    Raises:
        ConfigError: a sweep is wrong.
        InputError: data cannot be read.
    """
    plans = how.build_plans(target)
    recorder = recorder or RequestRecorder()
    if how.hub:
        yield from (f"first: {sentence}" for sentence in target.hub_first)
    for panel, plain in plans.sweeps.items():
        yield f"{target.name}: {panel}"
        try:
            yield from ("  " + line for line in _format_sweep(panel, plain, folder, how, recorder))
        except (TableError, ModelError) as error:  # which a run with --hub needs first
            if not how.hub:
                raise
            yield f"  not counted: {error}"
    asking = {panel.computed for panel in target.panels if "llm" in panel.needs}
    for name in plans.tables:
        yield f"{target.name}: the table {name}"
        if name in asking and how.endpoint is not None:
            earlier = recorder.estimate
            options = build_compute_options(how, lambda step, done, total: None)
            asked = {**how.endpoint, "answers": recorder}
            compute(name, replace(options, endpoint=asked, is_preview=True))
            yield "  " + format_estimate(recorder.estimate.subtract(earlier))
    yield from (
        f"{target.name}: {panel}: not run: {reason}" for panel, reason in plans.not_run.items()
    )


def _format_sweep(
    panel: str, plain: Plain, folder: Path, how: ReproductionOptions, recorder: RequestRecorder
) -> Iterator[str]:
    sweep, missing = _drop_missing_data(panel, how.read_sweep(plain), how)
    yield from (f"{name}: not run: {reason}" for name, reason in missing.items())
    if sweep is None:
        return
    yield from runs.format_preview(sweep, folder, how.places)
    if sweep.endpoint is not None:
        earlier = recorder.estimate
        count_requests(sweep, rows.read_existing(folder), how.places, recorder)
        yield format_estimate(recorder.estimate.subtract(earlier))


def format_estimate(estimate: RequestEstimate) -> str:
    """Formats the number of requests of a run."""
    local = f"; {estimate.local:,} to the local model" if estimate.local else ""
    return (
        f"{estimate.asked:,} requests to language models: at most {estimate.distinct:,} are sent, "
        f"with about {estimate.tokens:,} tokens{local}. The others have been answered by then"
    )


def reproduce(
    target: Target,
    folder: Path,
    how: ReproductionOptions,
    *,
    report: ProgressCallback = lambda step, done, total: None,
) -> ReproductionResult:
    """Runs or resumes a target, and judges the results.

    Args:
        target: the target.
        folder: for the rows. Targets may share one: cells computed for another target are reused.
        how: options of the reproduction.
        report: called with progress.

    Raises:
        ConfigError: a sweep is wrong; another run has locked the folder.
        InputError: data cannot be read.
    """
    plans = how.build_plans(target)
    outcome = _run(plans, folder, how, report) if how.stored is None else _read(target, plans, how)
    with text_streams.convert_write_errors():
        text_streams.make_folder(folder)
    series = compare.build_series(outcome.rows)
    return ReproductionResult(
        target=target,
        scale=how.scale,
        options=how,
        rows=tuple(outcome.rows),
        series=tuple(series),
        tables=outcome.tables,
        compared_values=tuple(compare_published(target, series, outcome.tables)),
        verdicts=tuple(check_claims(target, series, anywhere=how.scale == "quick")),
        contradictions=tuple(format_contradictions(target, series)),
        not_run={**plans.not_run, **outcome.missing},
        circumstances=outcome.rows[0]["circumstances"]
        if outcome.rows
        else outcome.circumstances or read_circumstances(),
    )


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    """Rows, tables by name, missing parts with reasons, and circumstances of stored tables."""

    rows: list[BenchRow]
    tables: dict[str, Table]
    missing: Mapping[str, str] = field(default_factory=dict)
    circumstances: Mapping[str, Any] | None = None


def _run(
    plans: Plans, folder: Path, how: ReproductionOptions, report: ProgressCallback
) -> _Outcome:
    # checks all before running any
    sweeps = {panel: how.read_sweep(plain) for panel, plain in plans.sweeps.items()}
    results: list[BenchRow] = []
    missing: dict[str, str] = {}
    for panel, wanted in sweeps.items():
        sweep, reasons = _drop_missing_data(panel, wanted, how)
        missing |= reasons
        if sweep is None:
            continue
        try:
            results += runs.run(
                sweep, folder, places=how.places, executor=how.executor, report=report
            )
        except RequestLimitReached:
            missing[panel] = LIMIT_REASON
            results += runs.select_rows(sweep, rows.read_existing(folder))
    options, tables = build_compute_options(how, report), {}
    for name in plans.tables:
        try:
            tables[name] = compute(name, options)
        except RequestLimitReached:
            missing[f"the table {name}"] = LIMIT_REASON
    return _Outcome(rows=results, tables=tables, missing=missing)


def build_compute_options(how: ReproductionOptions, report: ProgressCallback) -> ComputeOptions:
    """Builds the options of a reproduction's computed tables."""
    endpoint = how.endpoint
    if endpoint is not None:
        endpoint = {**endpoint, "answers": how.places.answers}
    return ComputeOptions(
        scale=how.scale,
        places=how.places,
        hub=how.hub,
        endpoint=endpoint,
        prompts=how.prompts,
        report=report,
    )


def _drop_missing_data(
    panel: str, sweep: Sweep, how: ReproductionOptions
) -> tuple[Sweep | None, dict[str, str]]:
    """Drops data that a quick run of a panel with a language model does not have.

    Returns:
        the sweep, None if nothing is left; and the reasons by panel and data set.
    """
    if how.scale != "quick" or sweep.endpoint is None:
        return sweep, {}
    reasons: dict[str, str] = {}
    for source in sweep.data:
        try:
            runs.load(source, sweep.limit, how.places)
        except (ConfigError, InputError) as error:
            reasons[f"{panel}: {source.row_name}"] = str(error)
    names = [source.row_name for source in sweep.data]
    left = [name for name in names if f"{panel}: {name}" not in reasons]
    if not left:
        return None, reasons
    return (sweep if left == names else sweep.select_part(only=left)), reasons


def _read(target: Target, plans: Plans, how: ReproductionOptions) -> _Outcome:
    """Reads a target's stored rows, and the tables of its document."""
    assert how.stored is not None
    rows_by_panel = {
        panel: runs.select_rows(Sweep.read(plain), how.stored.rows)
        for panel, plain in plans.sweeps.items()
    }
    stored_tables, computed = how.stored.read_tables(build_file_stem(target, how))
    tables = {name: stored_tables[name] for name in plans.tables if name in stored_tables}
    missing = [panel for panel, panel_rows in rows_by_panel.items() if not panel_rows]
    missing += [f"the table {name}" for name in plans.tables if name not in tables]
    return _Outcome(
        rows=[row for panel_rows in rows_by_panel.values() for row in panel_rows],
        tables=tables,
        missing=dict.fromkeys(missing, NOT_STORED_REASON),
        circumstances=computed,
    )
