"""Verdicts: our values next to a paper's, and whether its claims hold.

In: a target, series of rows. Out: `ComparedValue` for each published value, `Verdict` for each
claim on each data set.
Not here: intervals and figures at equal risk (`compare`, `estimates`), and how verdicts are shown
(`document`, `page`).

A claim says that one series is above the next, below it or near it. Both are read at the same
places (budgets, or values of a risk) on the same texts; the difference at each place, and the mean
over all places, have 95% intervals from the paired bootstrap. With D the difference minus the
margin of the claim:

    holds            the interval of the mean of D is above 0, and D is significantly below 0 at
                     no place
    does not hold    the interval of the mean of D is below 0, or D is significantly below 0 at
                     some place
    cannot be told   any other result of a comparison
    not tested       no comparison: a series or a metric is missing, the two have no place in
                     common, or they are to be compared at equal numbers of two kinds of budget

"near" holds if the interval is within the margin at every place, and does not hold if the
difference is significantly outside at some place. With k places, significance is at level 0.05 / k
each.

A claim that holds, holds for the mean: places where D is below 0, though not significantly, are
reported with it. Two claims make the same comparison if they ask the same of the same cells
(`Verdict.comparison`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from hashlib import blake2b
from itertools import compress, pairwise, product
from math import isclose
from typing import Any, Literal

import numpy as np

from textveil.errors import ConfigError
from textveil_bench import compare
from textveil_bench.compare import Cell, Series
from textveil_bench.estimates import Estimate, difference, estimate_best, interpolate
from textveil_bench.intervals import CONFIDENCE_LEVEL, Interval
from textveil_bench.report.html import format_budget
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

RISK_LEVEL_COUNT = 5
"""Number of compared values of a risk if a target gives none."""

TIME_SOURCE = "seconds"
"""Source of times: seconds per example for a step."""

STATEMENT_FIELDS = {"epsilon": "per_word", "local DP": "ldp"}
"""Metrics that a sentence takes from the statement."""

SELECTOR_FIELDS = ("entry", "series", "family", "whose")
"""Selector keys except data, budget, level and option paths."""

BUDGET_ENDS = {"first": 0, "last": -1}


NEGLIGIBLE_GAP = 0.005
"""Largest difference at one place that refutes nothing."""


@dataclass(frozen=True, kw_only=True)
class ComparedValue:
    """A published value and ours.

    Attributes:
        published: the paper's.
        name: our series, with data set and budget; or the selector if there is none.
        ours: with its interval; None if there is none.
        reason: why there is none.
    """

    published: PublishedValue
    name: str
    ours: Interval | None
    reason: str = ""

    @property
    def summary(self) -> str:
        """Relation of the two values, in words."""
        if self.ours is None:
            return f"not measured: {self.reason}"
        gap = self.ours.value - self.published.value
        if self.ours.low <= self.published.value <= self.ours.high:
            return "our interval holds the paper's value"
        if isclose(gap, 0, abs_tol=1e-9):
            return "ours is the paper's value"
        return f"ours is {abs(gap):.3g} {'higher' if gap > 0 else 'lower'}"


@dataclass(frozen=True, kw_only=True)
class ComparedPlace:
    """A place where two series were compared.

    Attributes:
        name: a budget, or a value of the risk.
        first: the first series' value.
        second: the second's.
        gap: first minus second, with its interval.
    """

    name: str
    first: float
    second: float
    gap: Interval


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Verdict on a claim for one data set.

    Attributes:
        expectation: the claim.
        data: the data set.
        answer: the verdict.
        gaps: for each pair of neighbours, the mean difference with its interval.
        places: places of all pairs.
        contrary_places: places significantly on the other side.
        reason: why nothing was compared.
        comparison: a digest of the question and its cells: A below B is B above A.
    """

    expectation: Expectation
    data: str
    answer: Answer
    gaps: tuple[Interval, ...] = ()
    places: tuple[ComparedPlace, ...] = field(default=(), repr=False)
    contrary_places: tuple[ComparedPlace, ...] = field(default=(), repr=False)
    reason: str = ""
    comparison: str = ""

    @property
    def summary(self) -> str:
        """Difference, with places on the other side; or why there is none."""
        if not self.gaps:
            return self.reason
        text = (
            f"{'; '.join(map(_format_gap, self.gaps))}, {len(self.places)} "
            f"place{'s' * (len(self.places) != 1)}"
        )
        if 0 < len(self.contrary_places) < len(self.places):
            worst = max(self.contrary_places, key=self._measure_distance)
            text += f"; surely on the other side at {worst.name}: {_format_gap(worst.gap)}"
        elif self.answer == "holds" and (shortfalls := self._shortfalls):
            worst = max(shortfalls, key=self._measure_distance)
            where = (
                worst.name
                if len(shortfalls) == 1
                else f"{len(shortfalls)} of them, least at {worst.name}"
            )
            text += f"; not so at {where}: {_format_gap(worst.gap)}"
        elif (
            self.expectation.direction == "near"
            and self.answer == "cannot be told"
            and len(self.places) > 1
        ):
            widest = max(self.places, key=self._measure_distance)
            text += f"; farthest at {widest.name}: {_format_gap(widest.gap)}"
        return text

    @property
    def _shortfalls(self) -> list[ComparedPlace]:
        """Places where the difference, significant or not, misses the claim's margin."""
        is_near = self.expectation.direction == "near"
        return (
            []
            if is_near
            else [
                place
                for place in self.places
                if -self._measure_distance(place) < self.expectation.by
            ]
        )

    def _measure_distance(self, place: ComparedPlace) -> float:
        """Returns a place's distance from the claim, in units of the metric."""
        value = place.gap.value
        return {"above": -value, "below": value, "near": abs(value)}[self.expectation.direction]


def _format_gap(gap: Interval) -> str:
    return f"{gap.value:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"


def compare_published(
    target: Target, series: Sequence[Series], tables: Mapping[str, Table] | None = None
) -> list[ComparedValue]:
    """Compares all published values of a target with ours.

    A value of a data set is compared in each panel that is judged as in the paper.
    """
    return [
        compared
        for value in target.published
        for compared in (
            [_compare_table_value(value, tables or {})]
            if "table" in value.where
            else _compare_data_value(value, target, series)
        )
    ]


def find_risk(target: Target, series: Sequence[Series]) -> compare.MetricKey | None:
    """Finds the attack of a target's first comparison at risk.

    None if no claim compares at risk, or no row has the attack.
    """
    risks = [item.at.risk for item in target.expect if isinstance(item.at, AtRisk)]
    keys = (key for item in series for cell in item.cells for key in cell.scores)
    return next((key for key in keys if risks and _is_metric(risks[0], key)), None)


def find_budget_metrics(target: Target, series: Sequence[Series]) -> tuple[compare.MetricKey, ...]:
    """Finds the metrics in rows that a target draws over the budget."""
    keys = list(
        dict.fromkeys(key for member in series for cell in member.cells for key in cell.scores)
    )
    return tuple(key for metric in target.over for key in keys if _is_metric(metric, key))


def format_contradictions(target: Target, series: Sequence[Series]) -> Iterator[str]:
    """Yields a target's contradictions with figures, "(not run)" for missing ones."""
    for contradiction in target.contradicts:
        yield contradiction.says.format(
            **{
                name: _format_shown_value(value, series)
                for name, value in contradiction.shows.items()
            }
        )


def check_claims(
    target: Target, series: Sequence[Series], *, anywhere: bool = False
) -> list[Verdict]:
    """Checks every claim of a target on its data sets.

    Args:
        target: with claims.
        series: series of all data sets.
        anywhere: whether to judge claims on all data sets with the necessary figures, not only on
            those that they name.
    """
    return [
        check_claim(expectation, [member for member in series if member.data.name == data], data)
        for expectation in target.expect
        for data in _select_data_sets(target, expectation, series, anywhere)
    ]


def _select_data_sets(
    target: Target, expectation: Expectation, series: Sequence[Series], anywhere: bool
) -> Sequence[str]:
    """Selects a claim's data sets that were run; all if none was."""
    is_special = bool(expectation.data) and target.list_special_rows().issuperset(expectation.data)
    if (anywhere and not is_special) or not expectation.data:  # no other judge can stand for that
        return _find_measured_data(expectation, series)
    names = {member.data.name for member in series}
    wanted = [
        row
        for data in expectation.data
        for row in target.list_rows(data)
        if row == data
        or all(_has_metric(metric, row, series) for metric in _list_metrics(expectation))
    ]
    return [data for data in wanted if data in names] or expectation.data


def _find_measured_data(expectation: Expectation, series: Sequence[Series]) -> list[str]:
    """Finds the data sets whose rows have the claim's figures.

    If none has, returns all, so that each gets a verdict.
    """
    names = [
        data
        for data in dict.fromkeys(member.data.name for member in series)
        if all(_has_metric(metric, data, series) for metric in _list_metrics(expectation))
    ]
    return names or list(dict.fromkeys(member.data.name for member in series))


def _list_metrics(expectation: Expectation) -> list[WantedMetric]:
    """Lists the metrics that a claim uses."""
    return [
        expectation.metric,
        *([expectation.at.risk] if isinstance(expectation.at, AtRisk) else []),
    ]


def _has_metric(metric: WantedMetric, data: str, series: Sequence[Series]) -> bool:
    cells = (cell for member in series if member.data.name == data for cell in member.cells)
    return any(_is_metric(metric, key) for cell in cells for key in cell.scores)


# ---- selection of rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SelectedCells:
    """Cells of one series that a selector matches."""

    series: Series
    cells: tuple[Cell, ...]


def select_cells(where: Mapping[str, Any], series: Sequence[Series]) -> list[SelectedCells]:
    """Selects cells, by series; see the package docstring for selector keys."""
    curves = []
    for member in series:
        if all(
            _is_selected(member, name, value)
            for name, value in where.items()
            if name not in ("budget", "level")
        ):
            cells = member.cells
            if "level" in where:
                cells = tuple(cell for cell in cells if _is_wanted(cell.level, where["level"]))
            if "budget" in where:
                cells = _select_budget(cells, where["budget"])
            if cells:
                curves.append(SelectedCells(series=member, cells=cells))
    return curves


def _is_selected(series: Series, name: str, value: Any) -> bool:
    if name == "data":
        return _is_wanted(series.data.name, value)
    return _is_wanted(
        getattr(series, name) if name in SELECTOR_FIELDS else series.settings.get(name), value
    )


def _is_wanted(value: Any, wanted: Any) -> bool:
    return value == wanted or (isinstance(wanted, list | tuple) and value in wanted)


def _select_budget(cells: Sequence[Cell], wanted: Any) -> tuple[Cell, ...]:
    if isinstance(wanted, str) and wanted in BUDGET_ENDS:
        return (cells[BUDGET_ENDS[wanted]],)
    return tuple(cell for cell in cells if _is_wanted(cell.budget, wanted))


def find_key(metric: WantedMetric, cell: Cell) -> compare.MetricKey | None:
    """Finds the key of a metric in a cell; None if it has none.

    Raises:
        ConfigError: it has several.
    """
    keys = [key for key in cell.scores if _is_metric(metric, key)]
    if len(keys) > 1:
        titles = ", ".join(key.title for key in keys)
        raise ConfigError(
            f"the metric {metric.title} is ambiguous; choose with source and setting: {titles}"
        )
    return keys[0] if keys else None


def find_estimate(metric: WantedMetric, cell: Cell) -> Estimate | None:
    """Finds a cell's value of a metric; None if it has none.

    Raises:
        ConfigError: it has several.
    """
    key = find_key(metric, cell)
    return None if key is None else cell.estimates[key]


def _is_metric(metric: WantedMetric, key: compare.MetricKey) -> bool:
    setting = dict(key.setting)
    return (
        key.metric == metric.metric
        and key.source.startswith(metric.source)
        and all(setting.get(name) == value for name, value in metric.setting.items())
    )


# ---- values --------------------------------------------------------------------------------------------


def _compare_data_value(
    published: PublishedValue, target: Target, series: Sequence[Series]
) -> list[ComparedValue]:
    """Compares a value in all rows of its data set that have one; else says why none has."""
    data = published.where.get("data")
    names = target.list_rows(data) if isinstance(data, str) else [data]
    where = [published.where if data is None else {**published.where, "data": n} for n in names]
    values = [_compare_row_value(replace(published, where=item), series) for item in where]
    return [value for value in values if value.ours is not None] or values[:1]


def _compare_row_value(published: PublishedValue, series: Sequence[Series]) -> ComparedValue:
    curves = select_cells(published.where, series)
    cells = [(curve.series, cell) for curve in curves for cell in curve.cells]
    name = ", ".join(str(value) for value in published.where.values())
    if len(cells) != 1:
        reason = "no row of ours is meant" if not cells else f"{len(cells)} rows of ours are meant"
        return ComparedValue(published=published, name=name, ours=None, reason=reason)
    match, cell = cells[0]
    name = ", ".join(
        [match.data.name, match.name, *([] if cell.budget is None else [str(cell.budget)])]
    )
    if published.metric.source == TIME_SOURCE:
        value = cell.seconds.get(published.metric.metric, np.nan) / cell.row["data"]["examples"]
        return ComparedValue(
            published=published, name=name, ours=Interval(value=value, low=value, high=value)
        )
    estimate = find_estimate(published.metric, cell)
    if estimate is None:
        return ComparedValue(
            published=published,
            name=name,
            ours=None,
            reason=f"no {published.metric.title} in its rows",
        )
    return ComparedValue(published=published, name=name, ours=estimate.interval)


def _compare_table_value(published: PublishedValue, tables: Mapping[str, Table]) -> ComparedValue:
    """Compares a published value with ours from a computed table."""
    where, column = published.where, published.metric.metric
    name = f"{where['table']}, {where.get('row')}"
    table = tables.get(where["table"])
    if table is None or column not in table.columns:
        return ComparedValue(
            published=published, name=name, ours=None, reason="no table of ours has it"
        )
    values = [row[table.columns.index(column)] for row in table.rows if row[0] == where.get("row")]
    if len(values) != 1 or not isinstance(values[0], int | float):
        return ComparedValue(
            published=published, name=name, ours=None, reason="no row of ours has it"
        )
    value = float(values[0])
    return ComparedValue(
        published=published, name=name, ours=Interval(value=value, low=value, high=value)
    )


def _format_shown_value(shown_value: ShownValue, series: Sequence[Series]) -> str:
    """Formats a figure for a sentence, with any interval it has."""
    cells = [cell for curve in select_cells(shown_value.where, series) for cell in curve.cells]
    if len(cells) != 1:
        return "(not run)"
    if shown_value.metric.metric in STATEMENT_FIELDS:
        value = cells[0].row["epsilon"][STATEMENT_FIELDS[shown_value.metric.metric]]
        return value if isinstance(value, str) else f"{value:.3g}"
    estimate = find_estimate(shown_value.metric, cells[0])
    if estimate is None:
        return "(not run)"
    return (
        f"{estimate.interval.value:.3g} ({estimate.interval.low:.3g} to "
        f"{estimate.interval.high:.3g})"
    )


# ---- claims --------------------------------------------------------------------------------------------


def check_claim(expectation: Expectation, series: Sequence[Series], data: str) -> Verdict:
    """Checks a claim on one data set.

    Args:
        expectation: the claim.
        series: series of the data set.
        data: its name.
    """
    sides: list[Side] = [
        float(where) if isinstance(where, int | float) else select_cells(where, series)
        for where in expectation.series
    ]
    comparison = _hash_comparison(expectation, data, sides)
    try:
        pairs = list(_compare_sides(expectation, sides))
    except (
        ConfigError
    ) as error:  # nothing to compare, or rows that do not match: other claims are still judged
        return Verdict(
            expectation=expectation,
            data=data,
            answer="not tested",
            reason=str(error),
            comparison=comparison,
        )
    return Verdict(
        expectation=expectation,
        data=data,
        answer=reduce(_pick_worse, (pair.answer for pair in pairs)),
        gaps=tuple(pair.gap for pair in pairs),
        places=tuple(place for pair in pairs for place in pair.places),
        contrary_places=tuple(place for pair in pairs for place in pair.contrary_places),
        comparison=comparison,
    )


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """Comparison of two neighbouring series."""

    answer: Answer
    gap: Interval
    places: Sequence[ComparedPlace]
    contrary_places: Sequence[ComparedPlace]


def _compare_sides(expectation: Expectation, sides: Sequence["Side"]) -> Iterator[_Pair]:
    """Compares each series with the next.

    Raises:
        ConfigError: nothing can be compared.
    """
    match_places = _match_risks if isinstance(expectation.at, AtRisk) else _match_budgets
    for first, second in pairwise(sides):
        matches = list(match_places(expectation, first, second))
        if not matches:
            raise ConfigError(_explain_missing(expectation, first, second))
        differences = [difference(a, b) for _, a, b in matches]
        places = [
            ComparedPlace(name=name, first=a.value, second=b.value, gap=gap.interval)
            for (name, a, b), gap in zip(matches, differences, strict=True)
        ]
        yield _Pair(
            answer=_find_answer(expectation, differences),
            gap=_compute_mean(differences).interval,
            places=places,
            contrary_places=list(
                compress(
                    places, (_is_contrary(expectation, gap, len(matches)) for gap in differences)
                )
            ),
        )


def _hash_comparison(expectation: Expectation, data: str, sides: Sequence["Side"]) -> str:
    """Computes a digest of a claim's question and its releases.

    A series without rows is represented by its selector.
    """
    members: list[Any] = [
        sorted(
            str(_identify_releases(row))
            for curve in side
            for cell in curve.cells
            for row in cell.rows
        )
        if isinstance(side, list) and side
        else (data, where)
        for side, where in zip(sides, expectation.series, strict=True)
    ]
    direction = expectation.direction
    if direction == "below":  # A below B is B above A
        members.reverse()
        direction = "above"
    content = (members, expectation.metric, direction, expectation.by, expectation.at)
    return blake2b(repr(content).encode(), digest_size=8).hexdigest()


def _identify_releases(row: compare.SeedRow) -> tuple[Any, ...]:
    """Returns the values that determine a row's releases; baselines by name."""
    return row["data"]["digest"], row["configuration"] or row["entry"], row["seed"]


Side = list[SelectedCells] | float
"""One side of a comparison: cells of series, or a number."""


def _explain_missing(expectation: Expectation, first: Side, second: Side) -> str:
    if [] in (first, second):
        return "no rows of ours for " + ("either" if first == second else "one") + " of the series"
    for metric in _list_metrics(expectation):
        for side in (first, second):
            cells = (
                [] if isinstance(side, float) else [cell for curve in side for cell in curve.cells]
            )
            if not any(_is_metric(metric, key) for cell in cells for key in cell.scores) and cells:
                return f"no {metric.title} in rows of ours"
    return "the two series have no place in common"


def _pick_worse(first: Answer, second: Answer) -> Answer:
    order = ("does not hold", "cannot be told", "holds")
    return min(first, second, key=order.index)


def _find_answer(expectation: Expectation, gaps: Sequence[Estimate]) -> Answer:
    by, is_contrary = expectation.by, any(_is_contrary(expectation, gap, len(gaps)) for gap in gaps)
    if expectation.direction == "near":
        if all(-by <= gap.interval.low and gap.interval.high <= by for gap in gaps):
            return "holds"
        return "does not hold" if is_contrary else "cannot be told"
    mean = _compute_mean(
        [_negate(gap) for gap in gaps] if expectation.direction == "below" else gaps
    ).interval
    if mean.high < by or is_contrary:
        return "does not hold"
    return "holds" if mean.low > by else "cannot be told"


def _is_contrary(expectation: Expectation, gap: Estimate, places: int) -> bool:
    """True if a place's difference is significantly on the other side."""
    if expectation.direction == "near":
        return any(_is_surely_below(side, -expectation.by, places) for side in (gap, _negate(gap)))
    return _is_surely_below(
        _negate(gap) if expectation.direction == "below" else gap, expectation.by, places
    )


def _is_surely_below(gap: Estimate, limit: float, places: int) -> bool:
    """True if a difference is below a limit significantly and not negligibly.

    The level is adjusted for the number of places. If two curves end in one point, the remaining
    difference has no variance and is ignored.
    """
    draws = gap.draws[~np.isnan(gap.draws)]
    return (
        gap.value < limit - NEGLIGIBLE_GAP
        and bool(len(draws))
        and float((draws >= limit).mean()) <= (1 - CONFIDENCE_LEVEL) / 2 / places
    )


def _negate(gap: Estimate) -> Estimate:
    """Returns the estimate with its sign reversed."""
    return Estimate(texts=gap.texts, value=-gap.value, draws=-gap.draws)


def _compute_mean(estimates: Sequence[Estimate]) -> Estimate:
    """Computes the mean of several estimates over the same texts."""
    return Estimate(
        texts=estimates[0].texts,
        value=float(np.mean([estimate.value for estimate in estimates])),
        draws=np.mean([estimate.draws for estimate in estimates], axis=0),
    )


MatchedPlace = tuple[str, Estimate, Estimate]
"""Name of a place, and the two values there."""


def _match_budgets(expectation: Expectation, first: Side, second: Side) -> Iterator[MatchedPlace]:
    """Matches two sides at equal budgets, or in order.

    A single cell is compared with all of the other side's.

    Raises:
        ConfigError: equal budgets are required, and the two have budgets of different kinds.
    """
    first_cells, second_cells = _require_single(first), _require_single(second)
    kinds = {
        (item.row["budget"] or {}).get("path")
        for item in (*first_cells, *second_cells)
        if not isinstance(item, float)
    }
    if expectation.at == "budget" and len(paths := sorted(filter(None, kinds))) > 1:
        names = " and ".join(item.rpartition(".")[2] for item in paths)
        raise ConfigError(f"{names} are budgets of two kinds: equal numbers of them are not equal")
    pairs: Iterable[tuple[Cell | float, Cell | float]]
    if min(len(first_cells), len(second_cells)) == 1:
        pairs = product(first_cells, second_cells)
    elif expectation.at == "order":
        pairs = zip(first_cells, second_cells, strict=False)
    else:
        pairs = (
            (a, b) for a in first_cells for b in second_cells if _get_budget(a) == _get_budget(b)
        )
    for a, b in pairs:
        values = [
            item if isinstance(item, float) else find_estimate(expectation.metric, item)
            for item in (a, b)
        ]
        if None not in values:
            budgets = dict.fromkeys(
                format_budget(item.row["budget"]) for item in (a, b) if not isinstance(item, float)
            )
            yield ", ".join(filter(None, budgets)), *_convert_estimates(*values)


def _require_single(side: Side) -> Sequence[Cell | float]:
    """Returns the cells of the only series that matches, or the number."""
    if isinstance(side, float):
        return [side]
    if len(side) > 1:
        raise ConfigError(
            "a selector must match one series to compare budgets, and matches several; make it "
            "narrower"
        )
    return side[0].cells if side else ()


def _get_budget(cell: Cell | float) -> Any:
    return None if isinstance(cell, float) else cell.budget


def _convert_estimates(
    first: Estimate | float | None, second: Estimate | float | None
) -> tuple[Estimate, Estimate]:
    """Converts both values to estimates over the same texts.

    At least one already is an estimate.
    """
    reference = next(value for value in (first, second) if isinstance(value, Estimate))
    a, b = (
        value
        if isinstance(value, Estimate)
        else Estimate(
            texts=reference.texts,
            value=float(value or 0),
            draws=np.full_like(reference.draws, value),
        )
        for value in (first, second)
    )
    return a, b


def _match_risks(expectation: Expectation, first: Side, second: Side) -> Iterator[MatchedPlace]:
    """Matches two sides at equal risk.

    If a selector matches several series, the best at each level is used, and the bias of choosing
    the best is subtracted.
    """
    assert isinstance(expectation.at, AtRisk), "checked by the caller"
    if isinstance(first, float) or isinstance(second, float):
        raise ConfigError("a number is compared at budgets, not at a risk")
    risk = expectation.at.risk
    ends = [_find_risk_range(curves, risk) for curves in (first, second)]
    if ends[0] is None or ends[1] is None:
        return
    low, high = max(ends[0][0], ends[1][0]), min(ends[0][1], ends[1][1])
    if low > high:
        return
    for level in expectation.at.levels or dict.fromkeys(
        np.linspace(low, high, RISK_LEVEL_COUNT).tolist()
    ):
        a, b = (_find_best(expectation, curves, risk, level) for curves in (first, second))
        if a is not None and b is not None:
            yield f"{risk.title} {level:.3g}", a, b


def _find_risk_range(
    curves: Sequence[SelectedCells], risk: WantedMetric
) -> tuple[float, float] | None:
    """Finds the smallest and largest risk that any curve reaches."""
    values = [
        estimate.value
        for curve in curves
        for cell in curve.cells
        if (estimate := find_estimate(risk, cell)) is not None
    ]
    return (min(values), max(values)) if values else None


def _find_best(
    expectation: Expectation, curves: Sequence[SelectedCells], risk: WantedMetric, level: float
) -> Estimate | None:
    estimates = []
    for curve in curves:
        points = [
            (find_estimate(risk, cell), find_estimate(expectation.metric, cell))
            for cell in curve.cells
        ]
        pairs = [(a, b) for a, b in points if a is not None and b is not None]
        value = interpolate([a for a, _ in pairs], [b for _, b in pairs], level)
        if value is not None:
            estimates.append(value)
    return estimate_best(estimates)
