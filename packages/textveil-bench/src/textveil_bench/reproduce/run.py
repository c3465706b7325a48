"""Runs a target's sweeps, and compares the results with the paper.

In: a target, a folder for its rows. Out: `ReproductionResult`.
Not here: targets (`targets`), how a sweep is run (`run` of the bench), how results are shown
(`document`, `page`).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from textveil.corpus import Executor
from textveil.errors import InputError
from textveil.files import text_streams
from textveil_bench import compare
from textveil_bench import run as runs
from textveil_bench.circumstances import read_circumstances
from textveil_bench.compare import Series
from textveil_bench.reproduce.clipping_bounds import measure_bounds
from textveil_bench.reproduce.computed import ComputeOptions, Table, compute
from textveil_bench.reproduce.targets import Plans, Scale, Target, build_plans
from textveil_bench.reproduce.verdict import (
    ComparedValue,
    Verdict,
    check_claims,
    compare_published,
    format_contradictions,
)
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
        generative: whether to run panels of the small language model; stored results are shown in
            any case.
        places: folders of data and fitted judges.
        executor: computes the cells, for all targets; None for this process.
        stored: results of earlier runs: nothing is run, and no data is read; None to run.
    """

    scale: Scale = "usual"
    hub: bool = False
    endpoint: Mapping[str, Any] | None = None
    generative: bool = False
    places: Folders = field(default_factory=Folders)
    executor: Executor | None = None
    stored: "StoredResults | None" = None

    def build_plans(self, target: Target) -> Plans:
        """Builds the plans of a target, to run or to show."""
        runs_generative = self.generative or self.stored is not None
        return build_plans(
            target, self.scale, hub=self.hub, endpoint=self.endpoint, generative=runs_generative
        )


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


NOT_STORED_REASON = "no rows of it are stored"


def build_file_stem(target: Target, how: ReproductionOptions) -> str:
    """Builds the file name of a run, without suffix."""
    scale = [] if how.scale == "usual" else [how.scale]
    return "-".join([target.name, *scale, *["hub"] * how.hub])


def format_preview(target: Target, folder: Path, how: ReproductionOptions) -> Iterator[str]:
    """Yields lines that describe what `reproduce` would do.

    Raises:
        ConfigError: a sweep is wrong.
        InputError: data cannot be read.
    """
    plans = how.build_plans(target)
    for panel, plain in plans.sweeps.items():
        yield f"{target.name}: {panel}"
        sweep = Sweep.read(measure_bounds(plain, how.scale, how.places))
        yield from ("  " + line for line in runs.format_preview(sweep, folder, how.places))
    yield from (f"{target.name}: the table {name}" for name in plans.tables)
    yield from (
        f"{target.name}: {panel}: not run: {reason}" for panel, reason in plans.not_run.items()
    )
    if how.hub:
        yield from (f"first: {sentence}" for sentence in target.hub_first)


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
        not_run={**plans.not_run, **dict.fromkeys(outcome.missing, NOT_STORED_REASON)},
        circumstances=outcome.rows[0]["circumstances"]
        if outcome.rows
        else outcome.circumstances or read_circumstances(),
    )


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    """Rows, tables by name, missing parts, and circumstances of stored tables."""

    rows: list[BenchRow]
    tables: dict[str, Table]
    missing: Sequence[str] = ()
    circumstances: Mapping[str, Any] | None = None


def _run(
    plans: Plans, folder: Path, how: ReproductionOptions, report: ProgressCallback
) -> _Outcome:
    plain = [measure_bounds(values, how.scale, how.places) for values in plans.sweeps.values()]
    sweeps = [Sweep.read(values) for values in plain]  # checks all before running any
    rows: list[BenchRow] = []
    for sweep in sweeps:
        rows += runs.run(sweep, folder, places=how.places, executor=how.executor, report=report)
    options = ComputeOptions(
        scale=how.scale, places=how.places, endpoint=how.endpoint, report=report
    )
    return _Outcome(rows=rows, tables={name: compute(name, options) for name in plans.tables})


def _read(target: Target, plans: Plans, how: ReproductionOptions) -> _Outcome:
    """Reads a target's stored rows, and the tables of its document."""
    assert how.stored is not None
    rows_by_panel = {
        panel: runs.select_rows(Sweep.read(plain), how.stored.rows)
        for panel, plain in plans.sweeps.items()
    }
    stored_tables, computed = how.stored.read_tables(build_file_stem(target, how))
    tables = {name: stored_tables[name] for name in plans.tables if name in stored_tables}
    missing = [panel for panel, rows in rows_by_panel.items() if not rows]
    missing += [f"the table {name}" for name in plans.tables if name not in tables]
    rows = [row for panel_rows in rows_by_panel.values() for row in panel_rows]
    return _Outcome(rows=rows, tables=tables, missing=missing, circumstances=computed)
