"""Runs a reproduction: the sweeps of a target, and the comparison of the results with the paper.

In: a target, a folder for its rows. Out: `Reproduced`.
Not here: targets (`targets`), how a sweep is run (`run` of the bench), how results are shown (`document`, `page`).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from textveil.corpus import Executor
from textveil.errors import InputError
from textveil.files import streams
from textveil_bench import compare
from textveil_bench import run as runs
from textveil_bench.circumstances import circumstances
from textveil_bench.compare import Series
from textveil_bench.reproduce.bounds import bounded
from textveil_bench.reproduce.computed import ComputeOptions, Table, compute
from textveil_bench.reproduce.targets import Plans, Scale, Target, planned
from textveil_bench.reproduce.verdict import Beside, Judged, beside, contradicted, judged
from textveil_bench.rows import Row, stream
from textveil_bench.run import Folders
from textveil_bench.spec import Sweep

Report = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduced:
    """The result for a target.

    Attributes:
        target: the target.
        scale: usual, quick or full.
        rows: of all panels that were run.
        series: the same, for comparison.
        tables: computed tables, by name.
        beside: the published values with ours.
        judged: the claims.
        contradicts: where the paper is wrong, with figures of these rows.
        not_run: panels that were not run, and why.
        circumstances: of the process that computed the first row, or the tables if there are no rows.
    """

    target: Target
    scale: Scale
    rows: tuple[Row, ...] = field(repr=False)
    series: tuple[Series, ...] = field(repr=False)
    tables: Mapping[str, Table]
    beside: tuple[Beside, ...]
    judged: tuple[Judged, ...]
    contradicts: tuple[str, ...]
    not_run: Mapping[str, str]
    circumstances: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class How:
    """How to run a target.

    Attributes:
        scale: usual, quick or full.
        hub: whether to use the paper's own models and tables instead of ours.
        endpoint: options of `Endpoint`; without it, panels that need a language model are not run.
        generative: whether to run panels of the small language model; of stored results they are shown anyway.
        places: where data and fitted judges are.
        executor: computes the cells, for all targets; None for this process.
        stored: results of earlier runs: nothing is run, and no data is read; None to run.
    """

    scale: Scale = "usual"
    hub: bool = False
    endpoint: Mapping[str, Any] | None = None
    generative: bool = False
    places: Folders = field(default_factory=Folders)
    executor: Executor | None = None
    stored: "Stored | None" = None

    def plans(self, target: Target) -> Plans:
        """What to run for a target, or to show of it."""
        shown = self.generative or self.stored is not None
        return planned(target, self.scale, hub=self.hub, endpoint=self.endpoint, generative=shown)


@dataclass(frozen=True, kw_only=True)
class Stored:
    """Results of earlier runs.

    Attributes:
        folder: with the documents of their targets.
        rows: all rows in it.
    """

    folder: Path
    rows: tuple[Row, ...] = field(repr=False)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The rows of a folder.

        Raises:
            InputError: there are none, or they cannot be read.
        """
        return cls(folder=folder, rows=tuple(stream([folder])))

    def tables(self, name: str) -> tuple[dict[str, Table], Mapping[str, Any] | None]:
        """A target's tables, by name, and what computed them; none if it has no document.

        Raises:
            InputError: its document is damaged.
        """
        path = self.folder / f"{name}.json"
        if not path.exists():
            return {}, None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return {each["name"]: Table.read(each) for each in found["tables"]}, found[
                "circumstances"
            ]
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(
                f"{path.name} is not a document of an earlier run; delete it and run again"
            ) from None


NOT_STORED = "nothing of it is stored"


def named(target: Target, how: How) -> str:
    """The name of the files of such a run."""
    scale = [] if how.scale == "usual" else [how.scale]
    return "-".join([target.name, *scale, *["hub"] * how.hub])


def preview(target: Target, folder: Path, how: How) -> Iterator[str]:
    """What `reproduce` would do, as lines for people.

    Raises:
        ConfigError: a sweep is wrong. InputError: data cannot be read.
    """
    plans = how.plans(target)
    for panel, plain in plans.sweeps.items():
        yield f"{target.name}: {panel}"
        sweep = Sweep.read(bounded(plain, how.scale, how.places))
        yield from ("  " + line for line in runs.preview(sweep, folder, how.places))
    yield from (f"{target.name}: the table {name}" for name in plans.tables)
    yield from (f"{target.name}: {panel}: not run: {why}" for panel, why in plans.not_run.items())
    if how.hub:
        yield from (f"first: {each}" for each in target.hub_first)


def reproduce(
    target: Target, folder: Path, how: How, *, report: Report = lambda step, done, total: None
) -> Reproduced:
    """Runs a target, resuming where an earlier run stopped, and judges the results.

    Args:
        target: the target.
        folder: for the rows. Targets may share one: cells computed for another target are reused.
        how: how to run it.
        report: called with progress.

    Raises:
        ConfigError: a sweep is wrong; another run is at work in the folder.
        InputError: data cannot be read.
    """
    plans = how.plans(target)
    made = _run(plans, folder, how, report) if how.stored is None else _read(target, plans, how)
    with streams.writing():
        streams.make_folder(folder)
    series = compare.series(made.rows)
    return Reproduced(
        target=target,
        scale=how.scale,
        rows=tuple(made.rows),
        series=tuple(series),
        tables=made.tables,
        beside=tuple(beside(target, series, made.tables)),
        judged=tuple(judged(target, series, anywhere=how.scale == "quick")),
        contradicts=tuple(contradicted(target, series)),
        not_run={**plans.not_run, **dict.fromkeys(made.missing, NOT_STORED)},
        circumstances=made.rows[0]["circumstances"]
        if made.rows
        else made.circumstances or circumstances(),
    )


@dataclass(frozen=True, kw_only=True)
class _Made:
    """Rows, tables by name, what is missing, and what computed the tables if that was an earlier run."""

    rows: list[Row]
    tables: dict[str, Table]
    missing: Sequence[str] = ()
    circumstances: Mapping[str, Any] | None = None


def _run(plans: Plans, folder: Path, how: How, report: Report) -> _Made:
    plain = [bounded(each, how.scale, how.places) for each in plans.sweeps.values()]
    wanted = [Sweep.read(each) for each in plain]  # checks all before running any
    found: list[Row] = []
    for sweep in wanted:
        found += runs.run(sweep, folder, places=how.places, executor=how.executor, report=report)
    asked = ComputeOptions(scale=how.scale, places=how.places, endpoint=how.endpoint, report=report)
    return _Made(rows=found, tables={name: compute(name, asked) for name in plans.tables})


def _read(target: Target, plans: Plans, how: How) -> _Made:
    """What is stored for a target: its rows, and the tables of its document."""
    assert how.stored is not None
    own = {
        panel: runs.there(Sweep.read(plain), how.stored.rows)
        for panel, plain in plans.sweeps.items()
    }
    kept, computed = how.stored.tables(named(target, how))
    tables = {name: kept[name] for name in plans.tables if name in kept}
    missing = [panel for panel, found in own.items() if not found]
    missing += [f"the table {name}" for name in plans.tables if name not in tables]
    found = [row for each in own.values() for row in each]
    return _Made(rows=found, tables=tables, missing=missing, circumstances=computed)
