"""Verdicts: our values next to a paper's, and whether its claims hold in our rows.

In: a target, series of rows. Out: `Beside` for each published value, `Judged` for each claim on each data set.
Not here: intervals and figures at equal risk (`compare`, `estimates`), and how verdicts are shown (`document`,
`page`).

A claim says that one series is above the next, below it or near it. Both are read at the same places (budgets, or
values of a risk) on the same texts; the difference at each place, and the mean over all places, have 95% intervals from
the paired bootstrap. With D the difference minus the margin of the claim:

    holds            the interval of the mean of D is above 0, and D is significantly below 0 at no place
    does not hold    the interval of the mean of D is below 0, or D is significantly so at some place
    cannot be told   anything else that was compared
    not tested       nothing was: a series or a metric is missing, the two have no place in common, or they are to be
                     compared at equal numbers of two kinds of budget

"near" holds if the interval is within the margin at every place, and does not hold if the difference is significantly
outside at some place. Significantly: with k places, at level 0.05 / k each.

What holds is a mean: places where D is below 0, though not significantly, are told with it. Two claims are of one
comparison if they ask the same of the same cells (`Judged.comparison`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from hashlib import blake2b
from itertools import compress, pairwise, product
from math import isclose
from typing import Any, Literal

import numpy as np

from textveil.errors import ConfigError
from textveil_bench import compare
from textveil_bench.compare import Cell, Series
from textveil_bench.estimates import Estimate, at, best, difference
from textveil_bench.intervals import LEVEL, Interval
from textveil_bench.report.markup import budget
from textveil_bench.reproduce.computed import Table
from textveil_bench.reproduce.targets import (
    AtRisk,
    Expectation,
    PublishedValue,
    ShownValue,
    Target,
    WantedMetric,
)

Answer = Literal["holds", "does not hold", "cannot be told", "not tested"]

LEVELS = 5
"""Number of values of a risk at which series are compared if a target gives none."""

SECONDS = "seconds"
"""The source of times: seconds per example for a step."""

STATEMENT = {"epsilon": "per_word", "local DP": "ldp"}
"""Metrics of a sentence that come from the statement."""

OWN = ("entry", "series", "family", "whose")
"""Keys of a selector besides data, budget, level and option paths."""

ENDS = {"first": 0, "last": -1}


TRIFLE = 0.005
"""A difference at one place that is no larger refutes nothing."""


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A published value and ours.

    Attributes:
        published: the paper's.
        name: our series, with data set and budget; or what was looked for if there is none.
        ours: with its interval; None if there is none.
        why: why there is none.
    """

    published: PublishedValue
    name: str
    ours: Interval | None
    why: str = ""

    @property
    def says(self) -> str:
        """The relation of the two, in words."""
        if self.ours is None:
            return f"not measured: {self.why}"
        gap = self.ours.value - self.published.value
        if self.ours.low <= self.published.value <= self.ours.high:
            return "our interval holds the paper's value"
        if isclose(gap, 0, abs_tol=1e-9):
            return "ours is the paper's value"
        return f"ours is {abs(gap):.3g} {'higher' if gap > 0 else 'lower'}"


@dataclass(frozen=True, kw_only=True)
class ComparedPlace:
    """Where two series were compared.

    Attributes:
        name: a budget, or a value of the risk.
        one: the first series' value.
        other: the second's.
        gap: one minus other, with its interval.
    """

    name: str
    one: float
    other: float
    gap: Interval


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A claim on one data set.

    Attributes:
        expectation: the claim.
        data: the data set.
        answer: the verdict.
        gaps: for each pair of neighbours, the mean difference with its interval.
        places: of all pairs.
        against: those significantly on the other side.
        why: why nothing was compared.
        comparison: a digest of what is asked of which cells: A below B is B above A.
    """

    expectation: Expectation
    data: str
    answer: Answer
    gaps: tuple[Interval, ...] = ()
    places: tuple[ComparedPlace, ...] = field(default=(), repr=False)
    against: tuple[ComparedPlace, ...] = field(default=(), repr=False)
    why: str = ""
    comparison: str = ""

    @property
    def says(self) -> str:
        """The difference, and where it is on the other side; or why there is none."""
        if not self.gaps:
            return self.why
        said = f"{'; '.join(map(_signed, self.gaps))}, {len(self.places)} place{'s' * (len(self.places) != 1)}"
        if 0 < len(self.against) < len(self.places):
            worst = max(self.against, key=self._apart)
            said += f"; surely on the other side at {worst.name}: {_signed(worst.gap)}"
        elif self.answer == "holds" and (other := self._other):
            worst = max(other, key=self._apart)
            where = (
                worst.name if len(other) == 1 else f"{len(other)} of them, least at {worst.name}"
            )
            said += f"; not so at {where}: {_signed(worst.gap)}"
        elif (
            self.expectation.direction == "near"
            and self.answer == "cannot be told"
            and len(self.places) > 1
        ):
            widest = max(self.places, key=self._apart)
            said += f"; farthest at {widest.name}: {_signed(widest.gap)}"
        return said

    @property
    def _other(self) -> list[ComparedPlace]:
        """The places where the difference itself, surely or not, does not reach the claim's margin."""
        near = self.expectation.direction == "near"
        return (
            []
            if near
            else [each for each in self.places if -self._apart(each) < self.expectation.by]
        )

    def _apart(self, place: ComparedPlace) -> float:
        """How far a place is from the claim, in units of the metric."""
        value = place.gap.value
        return {"above": -value, "below": value, "near": abs(value)}[self.expectation.direction]


def _signed(gap: Interval) -> str:
    return f"{gap.value:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"


def beside(
    target: Target, series: Sequence[Series], tables: Mapping[str, Table] | None = None
) -> list[Beside]:
    """All published values of a target with ours."""
    return [
        _of_table(each, tables or {}) if "table" in each.where else _beside(each, series)
        for each in target.published
    ]


def risk(target: Target, series: Sequence[Series]) -> compare.MetricKey | None:
    """The attack at whose success a target's first claim compares; None if none does, or no row has it."""
    asked = [each.at.risk for each in target.expect if isinstance(each.at, AtRisk)]
    there = (own for each in series for cell in each.cells for own in cell.scores)
    return next((own for own in there if asked and _is(asked[0], own)), None)


def over(target: Target, series: Sequence[Series]) -> tuple[compare.MetricKey, ...]:
    """The metrics that a target draws over the budget, as in rows; without those that no row has."""
    there = list(
        dict.fromkeys(own for each in series for cell in each.cells for own in cell.scores)
    )
    return tuple(own for metric in target.over for own in there if _is(metric, own))


def contradicted(target: Target, series: Sequence[Series]) -> Iterator[str]:
    """The sentences of a target's contradictions with their figures, or "not run" for missing ones."""
    for each in target.contradicts:
        yield each.says.format(**{name: _told(shown, series) for name, shown in each.shows.items()})


def judged(target: Target, series: Sequence[Series], *, anywhere: bool = False) -> list[Judged]:
    """Every claim of a target on every data set it applies to.

    Args:
        target: with claims.
        series: of all data sets.
        anywhere: whether to judge claims on all data sets with the figures they need, whatever data sets they name.
    """
    return [
        judge(expectation, [each for each in series if each.data.name == data], data)
        for expectation in target.expect
        for data in _about(expectation, series, anywhere)
    ]


def _about(expectation: Expectation, series: Sequence[Series], anywhere: bool) -> Sequence[str]:
    """The data sets of a claim: those it names that were run, or all it names if none was."""
    if anywhere or not expectation.data:
        return _having(expectation, series)
    run = {each.data.name for each in series}
    return [data for data in expectation.data if data in run] or expectation.data


def _having(expectation: Expectation, series: Sequence[Series]) -> list[str]:
    """The data sets whose rows have the claim's figures; all if none has, so that each gets a verdict."""
    own = [
        data
        for data in dict.fromkeys(each.data.name for each in series)
        if all(_has(metric, data, series) for metric in _needed(expectation))
    ]
    return own or list(dict.fromkeys(each.data.name for each in series))


def _needed(expectation: Expectation) -> list[WantedMetric]:
    """The metrics that a claim uses."""
    return [
        expectation.metric,
        *([expectation.at.risk] if isinstance(expectation.at, AtRisk) else []),
    ]


def _has(metric: WantedMetric, data: str, series: Sequence[Series]) -> bool:
    cells = (cell for each in series if each.data.name == data for cell in each.cells)
    return any(_is(metric, own) for cell in cells for own in cell.scores)


# ---- which rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SelectedCells:
    """The cells of one series that a selector chose."""

    series: Series
    cells: tuple[Cell, ...]


def chosen(where: Mapping[str, Any], series: Sequence[Series]) -> list[SelectedCells]:
    """The cells that a selector names, by series; see the package docstring for its keys."""
    curves = []
    for each in series:
        if all(
            _fits(each, name, value)
            for name, value in where.items()
            if name not in ("budget", "level")
        ):
            cells = each.cells
            if "level" in where:
                cells = tuple(cell for cell in cells if _any(cell.level, where["level"]))
            if "budget" in where:
                cells = _at_budget(cells, where["budget"])
            if cells:
                curves.append(SelectedCells(series=each, cells=cells))
    return curves


def _fits(series: Series, name: str, value: Any) -> bool:
    if name == "data":
        return _any(series.data.name, value)
    return _any(getattr(series, name) if name in OWN else series.settings.get(name), value)


def _any(own: Any, wanted: Any) -> bool:
    return own == wanted or (isinstance(wanted, list | tuple) and own in wanted)


def _at_budget(cells: Sequence[Cell], wanted: Any) -> tuple[Cell, ...]:
    if isinstance(wanted, str) and wanted in ENDS:
        return (cells[ENDS[wanted]],)
    return tuple(cell for cell in cells if _any(cell.budget, wanted))


def figure(metric: WantedMetric, cell: Cell) -> Estimate | None:
    """A cell's value of a metric; None if it has none.

    Raises:
        ConfigError: it has several.
    """
    found = [own for own in cell.scores if _is(metric, own)]
    if len(found) > 1:
        told = ", ".join(own.title for own in found)
        raise ConfigError(
            f"the metric {metric.title} is ambiguous; choose with source and setting: {told}"
        )
    return cell.estimates[found[0]] if found else None


def _is(metric: WantedMetric, own: compare.MetricKey) -> bool:
    setting = dict(own.setting)
    return (
        own.metric == metric.metric
        and own.source.startswith(metric.source)
        and all(setting.get(name) == value for name, value in metric.setting.items())
    )


# ---- values --------------------------------------------------------------------------------------------


def _beside(published: PublishedValue, series: Sequence[Series]) -> Beside:
    curves = chosen(published.where, series)
    cells = [(curve.series, cell) for curve in curves for cell in curve.cells]
    name = ", ".join(str(value) for value in published.where.values())
    if len(cells) != 1:
        why = "no row of ours is meant" if not cells else f"{len(cells)} rows of ours are meant"
        return Beside(published=published, name=name, ours=None, why=why)
    own, cell = cells[0]
    name = ", ".join(
        [own.data.name, own.name, *([] if cell.budget is None else [str(cell.budget)])]
    )
    if published.metric.source == SECONDS:
        value = cell.seconds.get(published.metric.metric, np.nan) / cell.row["data"]["examples"]
        return Beside(
            published=published, name=name, ours=Interval(value=value, low=value, high=value)
        )
    found = figure(published.metric, cell)
    if found is None:
        return Beside(
            published=published,
            name=name,
            ours=None,
            why=f"no {published.metric.title} in its rows",
        )
    return Beside(published=published, name=name, ours=found.interval)


def _of_table(published: PublishedValue, tables: Mapping[str, Table]) -> Beside:
    """A published value with ours from a computed table."""
    where, column = published.where, published.metric.metric
    name = f"{where['table']}, {where.get('row')}"
    table = tables.get(where["table"])
    if table is None or column not in table.columns:
        return Beside(published=published, name=name, ours=None, why="no table of ours has it")
    values = [row[table.columns.index(column)] for row in table.rows if row[0] == where.get("row")]
    if len(values) != 1 or not isinstance(values[0], int | float):
        return Beside(published=published, name=name, ours=None, why="no row of ours has it")
    value = float(values[0])
    return Beside(published=published, name=name, ours=Interval(value=value, low=value, high=value))


def _told(shown: ShownValue, series: Sequence[Series]) -> str:
    """A figure for a sentence, with its interval if it has one."""
    cells = [cell for curve in chosen(shown.where, series) for cell in curve.cells]
    if len(cells) != 1:
        return "(not run)"
    if shown.metric.metric in STATEMENT:
        value = cells[0].row["epsilon"][STATEMENT[shown.metric.metric]]
        return value if isinstance(value, str) else f"{value:.3g}"
    found = figure(shown.metric, cells[0])
    if found is None:
        return "(not run)"
    return f"{found.interval.value:.3g} ({found.interval.low:.3g} to {found.interval.high:.3g})"


# ---- claims --------------------------------------------------------------------------------------------


def judge(expectation: Expectation, series: Sequence[Series], data: str) -> Judged:
    """A claim on one data set.

    Args:
        expectation: the claim.
        series: those of the data set.
        data: its name.
    """
    sides: list[Side] = [
        float(where) if isinstance(where, int | float) else chosen(where, series)
        for where in expectation.series
    ]
    comparison = _comparison(expectation, data, sides)
    try:
        found = list(_compared(expectation, sides))
    except (
        ConfigError
    ) as error:  # nothing to compare, or rows that do not fit: the other claims are still judged
        return Judged(
            expectation=expectation,
            data=data,
            answer="not tested",
            why=str(error),
            comparison=comparison,
        )
    return Judged(
        expectation=expectation,
        data=data,
        answer=reduce(_worse, (each.answer for each in found)),
        gaps=tuple(each.gap for each in found),
        places=tuple(place for each in found for place in each.places),
        against=tuple(place for each in found for place in each.against),
        comparison=comparison,
    )


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """Two neighbouring series, compared."""

    answer: Answer
    gap: Interval
    places: Sequence[ComparedPlace]
    against: Sequence[ComparedPlace]


def _compared(expectation: Expectation, sides: Sequence["Side"]) -> Iterator[_Pair]:
    """Each series with the next.

    Raises:
        ConfigError: nothing can be compared.
    """
    met = _at_risk if isinstance(expectation.at, AtRisk) else _at_budgets
    for one, other in pairwise(sides):
        own = list(met(expectation, one, other))
        if not own:
            raise ConfigError(_missing(expectation, one, other))
        differences = [difference(a, b) for _, a, b in own]
        places = [
            ComparedPlace(name=name, one=a.value, other=b.value, gap=gap.interval)
            for (name, a, b), gap in zip(own, differences, strict=True)
        ]
        yield _Pair(
            answer=_answer(expectation, differences),
            gap=_mean(differences).interval,
            places=places,
            against=list(
                compress(places, (_against(expectation, gap, len(own)) for gap in differences))
            ),
        )


def _comparison(expectation: Expectation, data: str, sides: Sequence["Side"]) -> str:
    """A digest of what is asked of which releases; of a series without rows, of its selector."""
    members: list[Any] = [
        sorted(str(_releases(row)) for curve in side for cell in curve.cells for row in cell.rows)
        if isinstance(side, list) and side
        else (data, where)
        for side, where in zip(sides, expectation.series, strict=True)
    ]
    direction = expectation.direction
    if direction == "below":  # A below B is B above A
        members.reverse()
        direction = "above"
    asked = (members, expectation.metric, direction, expectation.by, expectation.at)
    return blake2b(repr(asked).encode(), digest_size=8).hexdigest()


def _releases(row: compare.Row) -> tuple[Any, ...]:
    """What the releases of a row follow from; baselines are told by their names."""
    return row["data"]["digest"], row["configuration"] or row["entry"], row["seed"]


Side = list[SelectedCells] | float
"""What is compared: cells of series, or a number."""


def _missing(expectation: Expectation, one: Side, other: Side) -> str:
    if [] in (one, other):
        return "no rows of ours for " + ("either" if one == other else "one") + " of the series"
    for metric in _needed(expectation):
        for side in (one, other):
            cells = (
                [] if isinstance(side, float) else [cell for curve in side for cell in curve.cells]
            )
            if not any(_is(metric, own) for cell in cells for own in cell.scores) and cells:
                return f"no {metric.title} in rows of ours"
    return "the two series have no place in common"


def _worse(one: Answer, other: Answer) -> Answer:
    order = ("does not hold", "cannot be told", "holds")
    return min(one, other, key=order.index)


def _answer(expectation: Expectation, gaps: Sequence[Estimate]) -> Answer:
    by, against = expectation.by, any(_against(expectation, gap, len(gaps)) for gap in gaps)
    if expectation.direction == "near":
        if all(-by <= gap.interval.low and gap.interval.high <= by for gap in gaps):
            return "holds"
        return "does not hold" if against else "cannot be told"
    mean = _mean(
        [_turned(gap) for gap in gaps] if expectation.direction == "below" else gaps
    ).interval
    if mean.high < by or against:
        return "does not hold"
    return "holds" if mean.low > by else "cannot be told"


def _against(expectation: Expectation, gap: Estimate, places: int) -> bool:
    """Whether the difference at one place is significantly on the other side."""
    if expectation.direction == "near":
        return any(_surely_below(each, -expectation.by, places) for each in (gap, _turned(gap)))
    return _surely_below(
        _turned(gap) if expectation.direction == "below" else gap, expectation.by, places
    )


def _surely_below(gap: Estimate, limit: float, places: int) -> bool:
    """Whether a difference is below a limit by more than a trifle, at a level adjusted for the number of places.

    Where two curves end in one point, the rest of the difference has no spread and means nothing.
    """
    found = gap.draws[~np.isnan(gap.draws)]
    return (
        gap.value < limit - TRIFLE
        and bool(len(found))
        and float((found >= limit).mean()) <= (1 - LEVEL) / 2 / places
    )


def _turned(gap: Estimate) -> Estimate:
    """The other minus this one."""
    return Estimate(texts=gap.texts, value=-gap.value, draws=-gap.draws)


def _mean(each: Sequence[Estimate]) -> Estimate:
    """The mean of several estimates over the same texts."""
    return Estimate(
        texts=each[0].texts,
        value=float(np.mean([one.value for one in each])),
        draws=np.mean([one.draws for one in each], axis=0),
    )


Met = tuple[str, Estimate, Estimate]
"""A place by name, and the two values there."""


def _at_budgets(expectation: Expectation, one: Side, other: Side) -> Iterator[Met]:
    """The two at equal budgets, or in order; a single cell is compared with all of the other's.

    Raises:
        ConfigError: equal budgets are asked for, and the two have budgets of different kinds.
    """
    mine, theirs = _single(one), _single(other)
    kinds = {
        (each.row["budget"] or {}).get("path")
        for each in (*mine, *theirs)
        if not isinstance(each, float)
    }
    if expectation.at == "budget" and len(named := sorted(filter(None, kinds))) > 1:
        names = " and ".join(each.rpartition(".")[2] for each in named)
        raise ConfigError(f"{names} are budgets of two kinds: equal numbers of them are not equal")
    pairs: Iterable[tuple[Cell | float, Cell | float]]
    if min(len(mine), len(theirs)) == 1:
        pairs = product(mine, theirs)
    elif expectation.at == "order":
        pairs = zip(mine, theirs, strict=False)
    else:
        pairs = ((a, b) for a in mine for b in theirs if _budget(a) == _budget(b))
    for a, b in pairs:
        values = [
            each if isinstance(each, float) else figure(expectation.metric, each) for each in (a, b)
        ]
        if None not in values:
            told = dict.fromkeys(
                budget(each.row["budget"]) for each in (a, b) if not isinstance(each, float)
            )
            yield ", ".join(filter(None, told)), *_estimates(*values)


def _single(side: Side) -> Sequence[Cell | float]:
    """The cells of the one series that a selector matches, or just the number."""
    if isinstance(side, float):
        return [side]
    if len(side) > 1:
        raise ConfigError(
            "a selector must match one series to compare budgets, and matches several; make it narrower"
        )
    return side[0].cells if side else ()


def _budget(each: Cell | float) -> Any:
    return None if isinstance(each, float) else each.budget


def _estimates(
    one: Estimate | float | None, other: Estimate | float | None
) -> tuple[Estimate, Estimate]:
    """Both as estimates over the same texts; at least one already is."""
    known = next(each for each in (one, other) if isinstance(each, Estimate))
    a, b = (
        each
        if isinstance(each, Estimate)
        else Estimate(
            texts=known.texts, value=float(each or 0), draws=np.full_like(known.draws, each)
        )
        for each in (one, other)
    )
    return a, b


def _at_risk(expectation: Expectation, one: Side, other: Side) -> Iterator[Met]:
    """The two at equal risk; if a selector matches several series, the best of them at each level.

    The bias of taking the best of several is subtracted.
    """
    assert isinstance(expectation.at, AtRisk), "checked by the caller"
    if isinstance(one, float) or isinstance(other, float):
        raise ConfigError("a number is compared at budgets, not at a risk")
    risk = expectation.at.risk
    ends = [_ends_of(curves, risk) for curves in (one, other)]
    if ends[0] is None or ends[1] is None:
        return
    low, high = max(ends[0][0], ends[1][0]), min(ends[0][1], ends[1][1])
    if low > high:
        return
    for level in expectation.at.levels or dict.fromkeys(np.linspace(low, high, LEVELS).tolist()):
        a, b = (_best(expectation, curves, risk, level) for curves in (one, other))
        if a is not None and b is not None:
            yield f"{risk.title} {level:.3g}", a, b


def _ends_of(curves: Sequence[SelectedCells], risk: WantedMetric) -> tuple[float, float] | None:
    """The smallest and the largest risk that any of the curves reach."""
    values = [
        found.value
        for curve in curves
        for cell in curve.cells
        if (found := figure(risk, cell)) is not None
    ]
    return (min(values), max(values)) if values else None


def _best(
    expectation: Expectation, curves: Sequence[SelectedCells], risk: WantedMetric, level: float
) -> Estimate | None:
    found = []
    for curve in curves:
        points = [(figure(risk, cell), figure(expectation.metric, cell)) for cell in curve.cells]
        both = [(a, b) for a, b in points if a is not None and b is not None]
        value = at([a for a, _ in both], [b for _, b in both], level)
        if value is not None:
            found.append(value)
    return best(found)
