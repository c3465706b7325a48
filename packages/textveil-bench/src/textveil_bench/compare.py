"""Compares rows: cells and series with intervals over texts, slices by text length, figures at equal risk.

In: rows. Out: `Series` of `Cell`s, with an `Estimate` for each metric.
Not here: the bootstrap (`estimates`), how rows are made (`cells`), and pages (`report`).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from textveil.config import registry
from textveil.errors import ConfigError, InputError
from textveil.randomness import Ints, Values
from textveil_bench.estimates import Estimate, Sample, at, estimates
from textveil_bench.spec import MEASURES

Row = Mapping[str, Any]

Role = Literal["task", "attack", "measure"]

NEAR = 0.12
"""Largest relative distance of a risk from a level that it may stand for."""

QUARTERS = ("shortest quarter", "second quarter", "third quarter", "longest quarter")


class MetricKey(NamedTuple):
    """Identifies a figure: its source, metric, and what distinguishes it from others of the same name."""

    source: str
    metric: str
    setting: tuple[tuple[str, str | int | float], ...] = ()

    @property
    def role(self) -> Role:
        """Whether it measures utility, an attacker's success, or similarity."""
        if self.source in MEASURES:
            return "measure"
        return "attack" if self.source in _attacks() else "task"

    @property
    def title(self) -> str:
        """Its name for people."""
        twice = self.source.casefold() == self.metric.casefold()
        setting = ", ".join(
            value if isinstance(value, str) else f"{name} {value}" for name, value in self.setting
        )
        return (self.metric if twice else f"{self.source} {self.metric}") + (
            f" ({setting})" if setting else ""
        )


@cache
def _attacks() -> frozenset[str]:
    return frozenset(registry.names("attack"))  # slow: reads the metadata of all installed packages


class Data(NamedTuple):
    """Identifies a data set: its rows are about the same texts."""

    name: str
    digest: str


@dataclass(frozen=True, kw_only=True, eq=False)
class SeedScores:
    """One metric of a cell, over its seeds.

    Attributes:
        unit: what is counted: "word", "text".
        headline: whether it is shown first.
        baseline: what is reached without the released words; None if unknown.
        notes: what readers need to know.
        sample: its values.
    """

    unit: str
    headline: bool
    baseline: float | None
    notes: tuple[str, ...]
    sample: Sample = field(repr=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cell:
    """One budget of a series on one data set.

    Attributes:
        rows: one per seed, without scores.
        scores: by metric; those with a value for some text.
        not_run: judges and attacks that do not apply to such releases, and why.
        seconds: by step, the mean over seeds.
    """

    rows: tuple[Row, ...] = field(repr=False)
    scores: Mapping[MetricKey, SeedScores] = field(repr=False)
    not_run: Mapping[str, str] = field(repr=False)
    seconds: Mapping[str, float] = field(repr=False)

    @property
    def row(self) -> Row:
        """The first row, for what is the same for all seeds."""
        return self.rows[0]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that were run."""
        return tuple(sorted(row["seed"] for row in self.rows))

    @property
    def budget(self) -> Any:
        """The budget's value; None if there is none."""
        return (self.row["budget"] or {}).get("value")

    @property
    def level(self) -> float | None:
        """The risk for which the budget was chosen; None if it was not."""
        level: float | None = self.row["level"]
        return level

    @cached_property
    def estimates(self) -> Mapping[MetricKey, Estimate]:
        """Each metric with its interval."""
        found = estimates([score.sample for score in self.scores.values()])
        return dict(zip(self.scores, found, strict=True))

    @cached_property
    def slices(self) -> Mapping[MetricKey, Sequence[tuple[str, Estimate]]]:
        """Each metric in each quarter of the texts by number of words, leaving out quarters without a value.

        Texts of equal length stay together, so quarters may differ in size.
        """
        lengths = np.asarray(self.row["lengths"])
        which = np.searchsorted(np.quantile(lengths, (0.25, 0.5, 0.75)), lengths)
        parts = [
            (f"{name} ({_range(lengths[which == i])})", which == i)
            for i, name in enumerate(QUARTERS)
            if (which == i).any()
        ]
        found: dict[MetricKey, Sequence[tuple[str, Estimate]]] = {}
        for metric, score in self.scores.items():
            some = [
                (name, score.sample.where(part))
                for name, part in parts
                if score.sample.sizes[part].any()
            ]
            values = estimates([sample for _, sample in some])
            found[metric] = [(name, value) for (name, _), value in zip(some, values, strict=True)]
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """One mechanism with its options on one data set, at several budgets.

    Attributes:
        name: with the options that distinguish it from its neighbours.
        entry: the name of its entry in the sweep.
        family: the name it is compared under.
        whose: "paper", "ours" or "baseline".
        data: the data set.
        cells: by increasing budget.
    """

    name: str
    entry: str
    family: str
    whose: str
    data: Data
    cells: tuple[Cell, ...] = field(repr=False)

    @property
    def path(self) -> str | None:
        """The option that is the budget; None if there is none."""
        return (self.cells[0].row["budget"] or {}).get("path")

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """Its options by dotted path, where they are the same for all budgets and seeds."""
        first, *others = (
            {path: repr(value) for path, value in _options(cell.row)} for cell in self.cells
        )
        same = {
            path
            for path, value in first.items()
            if all(other.get(path) == value for other in others)
        }
        return {path: value for path, value in _options(self.cells[0].row) if path in same}

    def curve(self, *metrics: MetricKey) -> list[tuple[Cell, tuple[Estimate, ...]]]:
        """The cells that have all of these metrics, and their values."""
        return [
            (cell, tuple(cell.estimates[metric] for metric in metrics))
            for cell in self.cells
            if all(metric in cell.estimates for metric in metrics)
        ]

    def at_risk(self, risk: MetricKey, figure: MetricKey, level: float) -> Estimate | None:
        """The figure where a risk is at a level, interpolated between the two neighbouring budgets.

        If the curve ends before the level, but a budget was chosen for this level and its risk is within `NEAR` of
        it, that cell's measured figure is used.

        Returns:
            None if neither is possible.
        """
        points = self.curve(risk, figure)
        found = at([values[0] for _, values in points], [values[1] for _, values in points], level)
        if found is None:
            near = [
                (values[1], abs(values[0].value - level))
                for cell, values in points
                if cell.level == level
            ]
            found = next((figure for figure, off in near if off <= NEAR * level), None)
        return found

    def at_most(self, risk: MetricKey, figure: MetricKey, level: float) -> Estimate | None:
        """The same for a risk of at most a level: a curve that ends below it is read at its end.

        Returns:
            None if the risk is larger everywhere.
        """
        found = self.at_risk(risk, figure, level)
        points = self.curve(risk, figure)
        if found is None and points:
            most, value = max((values for _, values in points), key=lambda values: values[0].value)
            found = value if most.value <= level else None
        return found


def series(rows: Iterable[Row]) -> list[Series]:
    """All series in rows, in order of first appearance. Of rows with the same key, the last one counts.

    Raises:
        InputError: a row lacks a field, or has more than one value per text.
        ConfigError: rows of one series differ in more than budget and seed.
    """
    cells: dict[tuple[Data, str], dict[str, dict[int, _Read]]] = {}
    for row in rows:
        try:
            read = _Read.of(row)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError(
                "a row lacks a field that rows of the bench have, or its values do not fit; run the sweep again"
            ) from None
        own = cells.setdefault(
            (Data(row["data"]["name"], row["data"]["digest"]), row["series"]), {}
        )
        own.setdefault(json.dumps([row["level"], row["budget"]]), {})[row["seed"]] = read
    return [_series(data, name, by_budget) for (data, name), by_budget in cells.items()]


def chance(figure: MetricKey, cells: Iterable[Cell]) -> float | None:
    """What a metric reaches without the released words; None if no cell says so."""
    found = [cell.scores[figure].baseline for cell in cells if figure in cell.scores]
    return next((value for value in found if value is not None), None)


def _range(lengths: Ints) -> str:
    low, high = int(lengths.min()), int(lengths.max())
    return f"{low:,} words" if low == high else f"{low:,} to {high:,} words"


# ---- from rows -----------------------------------------------------------------------------------------


_OF_ROWS = (
    *(
        "sweep",
        "entry",
        "series",
        "family",
        "whose",
        "seed",
        "level",
        "data",
        "configuration",
        "budget",
        "epsilon",
    ),
    *("lengths", "not_run", "seconds", "circumstances"),
)
_OF_SCORES = ("unit", "low", "high", "baseline", "note", "headline", "geometric")
"""Fields of scores that are read besides the values."""


class _Read(NamedTuple):
    """A row without its scores, and the scores as arrays: lists of numbers are ten times as large."""

    row: Row
    scores: Mapping[MetricKey, tuple[Mapping[str, Any], Values, Values]]

    @classmethod
    def of(cls, row: Row) -> "_Read":
        texts = len(row["lengths"])
        scores = {
            MetricKey(score["source"], score["metric"], tuple(score["setting"].items())): (
                {name: score[name] for name in _OF_SCORES},
                *_weighted(score, texts),
            )
            for score in row["scores"]
        }
        return cls({name: row[name] for name in _OF_ROWS}, scores)


def _weighted(score: Mapping[str, Any], texts: int) -> tuple[Values, Values]:
    """The sum and the weight of each text; 0 for texts without a value and for those not looked at."""
    values, weights = np.zeros(texts), np.zeros(texts)
    given = np.array(score["values"], dtype=np.float64)
    if given.ndim != 1 or len(given) > texts:
        raise ValueError
    sizes = (
        np.ones(len(given))
        if score["weights"] is None
        else np.array(score["weights"], dtype=np.float64)
    )
    known = ~np.isnan(given) & (sizes > 0)
    values[: len(given)] = np.where(known, given, 0) * sizes
    weights[: len(given)] = np.where(known, sizes, 0)
    return values, weights


def _series(data: Data, name: str, by_budget: Mapping[str, Mapping[int, _Read]]) -> Series:
    rows = [read.row for by_seed in by_budget.values() for read in by_seed.values()]
    for by_seed in by_budget.values():
        if len({repr(dict(_options(read.row))) for read in by_seed.values()}) > 1:
            raise ConfigError(
                f"the rows of {name!r} on {data.name} may differ only in budget and seed, and differ in other "
                "options; report their files separately"
            )
    cells = [_cell(by_seed, data) for by_seed in by_budget.values()]
    return Series(
        name=name,
        **{part: rows[0][part] for part in ("entry", "family", "whose")},
        data=data,
        cells=tuple(sorted(cells, key=_place)),
    )


def _place(cell: Cell) -> tuple[bool, float]:
    """Non-numeric budgets keep their order, after the numeric ones."""
    number = isinstance(cell.budget, int | float)
    return not number, float(cell.budget) if number else 0.0


def _cell(by_seed: Mapping[int, _Read], data: Data) -> Cell:
    reads = list(by_seed.values())
    metrics = dict.fromkeys(metric for read in reads for metric in read.scores)
    scores = {
        metric: _score([read.scores[metric] for read in reads if metric in read.scores], data)
        for metric in metrics
    }
    steps = dict.fromkeys(step for read in reads for step in read.row["seconds"])
    return Cell(
        rows=tuple(read.row for read in reads),
        scores={metric: score for metric, score in scores.items() if score.sample.sizes.any()},
        not_run={name: reason for read in reads for name, reason in read.row["not_run"].items()},
        seconds={
            step: float(np.mean([read.row["seconds"].get(step) or 0.0 for read in reads]))
            for step in steps
        },
    )


def _score(found: Sequence[tuple[Mapping[str, Any], Values, Values]], data: Data) -> SeedScores:
    """The scores of all seeds as one: each text's mean over them."""
    facts = [each for each, _, _ in found]
    lows, highs = ([each[end] for each in facts] for end in ("low", "high"))
    known = None if None in lows or None in highs else (min(lows), max(highs))
    baselines = [each["baseline"] for each in facts if each["baseline"] is not None]
    return SeedScores(
        unit=facts[0]["unit"],
        headline=facts[0]["headline"],
        baseline=float(np.mean(baselines)) if baselines else None,
        notes=tuple(dict.fromkeys(each["note"] for each in facts if each["note"])),
        sample=Sample(
            texts=data.digest,
            sums=np.mean([sums for _, sums, _ in found], axis=0),
            sizes=np.mean([sizes for _, _, sizes in found], axis=0),
            known=known,
            geometric=facts[0]["geometric"],
        ),
    )


def _options(row: Row) -> Iterator[tuple[str, Any]]:
    return ((path, value) for path, value in _flat(row["configuration"] or {}) if path != "seed")


def _flat(options: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
