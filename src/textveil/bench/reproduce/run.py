"""One reproduction: the sweeps of a target are run, and what came out is put beside the paper.

In: a target, a folder for its rows. Out: `Reproduced`.
Not here: targets (`targets`), how a sweep is run (`bench.run`), and how what came out is shown (`show`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textveil.bench import compare
from textveil.bench import run as runs
from textveil.bench.compare import Series
from textveil.bench.reproduce.computed import Asked, Table, compute
from textveil.bench.reproduce.targets import NEEDS, Scale, Target, planned
from textveil.bench.reproduce.verdict import Beside, Judged, beside, contradicted, judged
from textveil.bench.rows import FILE, Row, read
from textveil.bench.run import Places
from textveil.bench.spec import Sweep

Report = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduced:
    """What came of a target.

    Attributes:
        target: what was asked for.
        scale: usual, quick or full.
        rows: of all panels that were run.
        series: the same, read for comparison.
        tables: what was computed besides.
        beside: the published values with ours.
        judged: the claims.
        contradicts: where the paper is wrong, with figures of these rows.
        not_run: panels, and why they were not run.
    """

    target: Target
    scale: Scale
    rows: tuple[Row, ...] = field(repr=False)
    series: tuple[Series, ...] = field(repr=False)
    tables: tuple[Table, ...]
    beside: tuple[Beside, ...]
    judged: tuple[Judged, ...]
    contradicts: tuple[str, ...]
    not_run: Mapping[str, str]


def sweeps(
    target: Target, scale: Scale = "usual", *, hub: bool = False, endpoint: Mapping[str, Any] | None = None
) -> tuple[dict[str, Sweep], dict[str, str]]:
    """The sweeps of a target by panel, and the panels that are not run, with the reason.

    Args:
        target: what is asked for.
        scale: with the target's changes for it.
        hub: whether the paper's own models and tables take the place of ours.
        endpoint: options of `Endpoint`; without it, panels that need a language model are not run.

    Raises:
        ConfigError: a sweep is wrong.
    """
    found, missing = {}, {}
    for panel, plain in planned(target, scale, hub=hub):
        if {"": False, "llm": endpoint is None, "hub": not hub}[panel.needs]:
            missing[panel.name] = NEEDS[panel.needs]
            continue
        if panel.needs == "llm" and endpoint is not None:
            plain["endpoint"] = dict(endpoint)
        found[panel.name] = Sweep.read(plain)
    return found, missing


def preview(
    target: Target,
    folder: Path,
    *,
    scale: Scale = "usual",
    hub: bool = False,
    endpoint: Mapping[str, Any] | None = None,
    places: Places | None = None,
) -> Iterator[str]:
    """What `reproduce` would do with the same arguments, in lines for people.

    Raises:
        ConfigError: a sweep is wrong. InputError: data cannot be read.
    """
    wanted, missing = sweeps(target, scale, hub=hub, endpoint=endpoint)
    found = read([folder]) if (folder / FILE).exists() else []
    for panel, sweep in wanted.items():
        plan = runs.plan(sweep, found, {}, places or Places())
        yield f"{target.name}, {panel}: {plan.cells:,} cells to run, {len(plan.there):,} there"
    for panel, why in missing.items():
        yield f"{target.name}, {panel}: not run: {why}"
    for name in target.computed:
        yield f"{target.name}: the table {name}"


def reproduce(
    target: Target,
    folder: Path,
    *,
    scale: Scale = "usual",
    hub: bool = False,
    endpoint: Mapping[str, Any] | None = None,
    places: Places | None = None,
    processes: int = 1,
    report: Report = lambda step, done, total: None,
) -> Reproduced:
    """Runs a target, going on where an earlier run stopped, and judges what came out.

    Args:
        target: what is asked for.
        folder: where rows are kept. Targets may share one: a cell that another has computed is not computed again.
        scale: how much of it; see `sweeps` for the others.
        hub: see there.
        endpoint: see there.
        places: where data and fitted judges are.
        processes: how many at once.
        report: told of progress.

    Raises:
        ConfigError: a sweep is wrong; another run is at work in the folder.
        InputError: data cannot be read.
    """
    places = places or Places()
    wanted, missing = sweeps(target, scale, hub=hub, endpoint=endpoint)
    found: list[Row] = []
    for sweep in wanted.values():
        found += runs.run(sweep, folder, places=places, processes=processes, report=report)
    asked = Asked(scale=scale, places=places, report=report)
    tables = {name: compute(name, asked) for name in target.computed}
    series = compare.series(found)
    return Reproduced(
        target=target,
        scale=scale,
        rows=tuple(found),
        series=tuple(series),
        tables=tuple(tables.values()),
        beside=tuple(beside(target, series, tables)),
        judged=tuple(judged(target, series)),
        contradicts=tuple(contradicted(target, series)),
        not_run=missing,
    )
