"""One reproduction: the sweeps of a target are run, and what came out is put beside the paper.

In: a target, a folder for its rows. Out: `Reproduced`.
Not here: targets (`targets`), how a sweep is run (`bench.run`), and how what came out is shown (`document`, `page`).
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
    """What came of a target.

    Attributes:
        target: what was asked for.
        scale: usual, quick or full.
        rows: of all panels that were run.
        series: the same, read for comparison.
        tables: what was computed besides, by name.
        beside: the published values with ours.
        judged: the claims.
        contradicts: where the paper is wrong, with figures of these rows.
        not_run: panels, and why they were not run.
        circumstances: of the process that computed the first row, or the tables where there are no rows.
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
    """How a target is run.

    Attributes:
        scale: usual, quick or full.
        hub: whether the paper's own models and tables take the place of ours.
        endpoint: options of `Endpoint`; without it, panels that need a language model are not run.
        places: where data and fitted judges are.
        executor: what computes the cells, for all targets; None is this process.
        stored: what earlier runs have found: nothing is run, and no data is looked at; None to run.
    """

    scale: Scale = "usual"
    hub: bool = False
    endpoint: Mapping[str, Any] | None = None
    places: Folders = field(default_factory=Folders)
    executor: Executor | None = None
    stored: "Stored | None" = None


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What earlier runs have found.

    Attributes:
        folder: with the documents of their targets.
        rows: all rows that it holds.
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
        """The tables of a target, by name, and what computed them; none where it has no document.

        Raises:
            InputError: its document is none.
        """
        path = self.folder / f"{name}.json"
        if not path.exists():
            return {}, None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return {each["name"]: Table.read(each) for each in found["tables"]}, found["circumstances"]
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{path.name} must be what an earlier run has written, and is not") from None


NOT_STORED = "nothing of it is stored"


def named(target: Target, how: How) -> str:
    """What files of such a run are called."""
    scale = [] if how.scale == "usual" else [how.scale]
    return "-".join([target.name, *scale, *["hub"] * how.hub])


def preview(target: Target, folder: Path, how: How) -> Iterator[str]:
    """What `reproduce` would do, in lines for people.

    Raises:
        ConfigError: a sweep is wrong. InputError: data cannot be read.
    """
    plans = planned(target, how.scale, hub=how.hub, endpoint=how.endpoint)
    for panel, plain in plans.sweeps.items():
        yield f"{target.name}: {panel}"
        sweep = Sweep.read(bounded(plain, how.scale, how.places))
        yield from ("  " + line for line in runs.preview(sweep, folder, how.places))
    yield from (f"{target.name}: the table {name}" for name in plans.tables)
    yield from (f"{target.name}: {panel}: not run: {why}" for panel, why in plans.not_run.items())
    if how.hub:
        yield from (f"first: {each}" for each in target.hub_first)


def reproduce(target: Target, folder: Path, how: How, *, report: Report = lambda step, done, total: None) -> Reproduced:
    """Runs a target, going on where an earlier run stopped, and judges what came out.

    Args:
        target: what is asked for.
        folder: where rows are kept. Targets may share one: a cell that another has computed is not computed again.
        how: how much of it, and with what.
        report: told of progress.

    Raises:
        ConfigError: a sweep is wrong; another run is at work in the folder.
        InputError: data cannot be read.
    """
    plans = planned(target, how.scale, hub=how.hub, endpoint=how.endpoint)
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
        circumstances=made.rows[0]["circumstances"] if made.rows else made.circumstances or circumstances(),
    )


@dataclass(frozen=True, kw_only=True)
class _Made:
    """Rows, tables by name, what is not there, and what computed the tables where that was an earlier run."""

    rows: list[Row]
    tables: dict[str, Table]
    missing: Sequence[str] = ()
    circumstances: Mapping[str, Any] | None = None


def _run(plans: Plans, folder: Path, how: How, report: Report) -> _Made:
    plain = [bounded(each, how.scale, how.places) for each in plans.sweeps.values()]
    wanted = [Sweep.read(each) for each in plain]  # all are checked before the first is run
    found: list[Row] = []
    for sweep in wanted:
        found += runs.run(sweep, folder, places=how.places, executor=how.executor, report=report)
    asked = ComputeOptions(scale=how.scale, places=how.places, endpoint=how.endpoint, report=report)
    return _Made(rows=found, tables={name: compute(name, asked) for name in plans.tables})


def _read(target: Target, plans: Plans, how: How) -> _Made:
    """What is stored of a target: its rows, and the tables of its document."""
    assert how.stored is not None
    own = {panel: runs.there(Sweep.read(plain), how.stored.rows) for panel, plain in plans.sweeps.items()}
    kept, computed = how.stored.tables(named(target, how))
    tables = {name: kept[name] for name in plans.tables if name in kept}
    missing = [panel for panel, found in own.items() if not found]
    missing += [f"the table {name}" for name in plans.tables if name not in tables]
    found = [row for each in own.values() for row in each]
    return _Made(rows=found, tables=tables, missing=missing, circumstances=computed)
