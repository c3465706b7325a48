"""Compares rows: cells and series with intervals, slices, figures at equal risk.

In: rows. Out: `Series` of `Cell`s, with an `Estimate` for each metric.
Not here: the bootstrap (`estimates`), the making of rows (`cells`), and pages (`report`).
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
from textveil_bench.estimates import Estimate, Sample, compute_estimates, interpolate
from textveil_bench.spec import MEASURES

SeedRow = Mapping[str, Any]

Role = Literal["task", "attack", "measure"]

MAX_RISK_DISTANCE = 0.12
"""Largest relative distance between a level and a risk used for it."""

QUARTERS = ("shortest quarter", "second quarter", "third quarter", "longest quarter")


class MetricKey(NamedTuple):
    """The key of a figure: source, metric, and distinguishing settings."""

    source: str
    metric: str
    setting: tuple[tuple[str, str | int | float], ...] = ()

    @property
    def role(self) -> Role:
        """The role: utility task, attack, or similarity measure."""
        if self.source in MEASURES:
            return "measure"
        return "attack" if self.source in _list_attacks() else "task"

    @property
    def title(self) -> str:
        """The name for people."""
        is_repeated = self.source.casefold() == self.metric.casefold()
        setting = ", ".join(
            value if isinstance(value, str) else f"{name} {value}" for name, value in self.setting
        )
        return (self.metric if is_repeated else f"{self.source} {self.metric}") + (
            f" ({setting})" if setting else ""
        )


@cache
def _list_attacks() -> frozenset[str]:
    return frozenset(
        registry.list_names("attack")
    )  # slow: reads the metadata of all installed packages


class DataSetKey(NamedTuple):
    """The key of a data set; rows with equal keys share texts."""

    name: str
    digest: str


@dataclass(frozen=True, kw_only=True, eq=False)
class SeedScores:
    """One metric of a cell, over its seeds.

    Attributes:
        unit: the unit of counts: "word", "text".
        headline: whether it is shown first.
        baseline: the value without the released words; None if unknown.
        notes: remarks for readers.
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

    rows: tuple[SeedRow, ...] = field(repr=False)
    scores: Mapping[MetricKey, SeedScores] = field(repr=False)
    not_run: Mapping[str, str] = field(repr=False)
    seconds: Mapping[str, float] = field(repr=False)

    @property
    def row(self) -> SeedRow:
        """The first row, for fields that are equal for all seeds."""
        return self.rows[0]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds with a row."""
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
        values = compute_estimates([score.sample for score in self.scores.values()])
        return dict(zip(self.scores, values, strict=True))

    @cached_property
    def slices(self) -> Mapping[MetricKey, Sequence[tuple[str, Estimate]]]:
        """Each metric by quarter of the texts' number of words.

        Quarters without a value are left out. Texts of equal length stay together, so quarters may
        differ in size.
        """
        lengths = np.asarray(self.row["lengths"])
        quarters = np.searchsorted(np.quantile(lengths, (0.25, 0.5, 0.75)), lengths)
        parts = [
            (f"{name} ({_format_range(lengths[quarters == i])})", quarters == i)
            for i, name in enumerate(QUARTERS)
            if (quarters == i).any()
        ]
        by_metric: dict[MetricKey, Sequence[tuple[str, Estimate]]] = {}
        for metric, score in self.scores.items():
            named_samples = [
                (name, score.sample.select_texts(part))
                for name, part in parts
                if score.sample.sizes[part].any()
            ]
            values = compute_estimates([sample for _, sample in named_samples])
            by_metric[metric] = [
                (name, value) for (name, _), value in zip(named_samples, values, strict=True)
            ]
        return by_metric


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
    data: DataSetKey
    cells: tuple[Cell, ...] = field(repr=False)

    @property
    def path(self) -> str | None:
        """The option that is the budget; None if there is none."""
        return (self.cells[0].row["budget"] or {}).get("path")

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The options by dotted path that all budgets and seeds share."""
        first_options, *other_options = (
            {path: repr(value) for path, value in _list_options(cell.row)} for cell in self.cells
        )
        common_paths = {
            path
            for path, value in first_options.items()
            if all(other.get(path) == value for other in other_options)
        }
        return {
            path: value for path, value in _list_options(self.cells[0].row) if path in common_paths
        }

    def list_points(self, *metrics: MetricKey) -> list[tuple[Cell, tuple[Estimate, ...]]]:
        """Lists the cells that have all of these metrics, with their values."""
        return [
            (cell, tuple(cell.estimates[metric] for metric in metrics))
            for cell in self.cells
            if all(metric in cell.estimates for metric in metrics)
        ]

    def estimate_at_risk(self, risk: MetricKey, figure: MetricKey, level: float) -> Estimate | None:
        """Estimates a figure at a level of risk, by interpolation between budgets.

        If the curve ends before the level, but a budget was chosen for this level and its risk is
        within `MAX_RISK_DISTANCE` of it, that cell's measured figure is used.

        Returns:
            None if neither is possible.
        """
        points = self.list_points(risk, figure)
        estimate = interpolate(
            [values[0] for _, values in points], [values[1] for _, values in points], level
        )
        if estimate is None:
            nearby = [
                (values[1], abs(values[0].value - level))
                for cell, values in points
                if cell.level == level
            ]
            estimate = next(
                (figure for figure, distance in nearby if distance <= MAX_RISK_DISTANCE * level),
                None,
            )
        return estimate

    def estimate_at_most(self, risk: MetricKey, figure: MetricKey, level: float) -> Estimate | None:
        """Estimates a figure at a risk of at most a level.

        A curve that ends below the level is read at its end; else as `estimate_at_risk`.

        Returns:
            None if the risk is larger everywhere.
        """
        estimate = self.estimate_at_risk(risk, figure, level)
        points = self.list_points(risk, figure)
        if estimate is None and points:
            largest, value = max(
                (values for _, values in points), key=lambda values: values[0].value
            )
            estimate = value if largest.value <= level else None
        return estimate


def build_series(rows: Iterable[SeedRow]) -> list[Series]:
    """Builds all series in rows, in order of first appearance.

    Of rows with the same key, the last one counts.

    Raises:
        InputError: a row lacks a field, or has more than one value per text.
        ConfigError: rows of one series differ in more than budget and seed.
    """
    cells: dict[tuple[DataSetKey, str], dict[str, dict[int, _ParsedRow]]] = {}
    for row in rows:
        try:
            parsed_row = _ParsedRow.parse(row)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError(
                "a row lacks a field that rows of the bench have, or its values do not fit; run "
                "the sweep again"
            ) from None
        budgets = cells.setdefault(
            (DataSetKey(row["data"]["name"], row["data"]["digest"]), row["series"]), {}
        )
        budgets.setdefault(json.dumps([row["level"], row["budget"]]), {})[row["seed"]] = parsed_row
    return [_assemble_series(data, name, by_budget) for (data, name), by_budget in cells.items()]


def find_chance(figure: MetricKey, cells: Iterable[Cell]) -> float | None:
    """Finds a metric's value without the released words; None if unknown."""
    baselines = [cell.scores[figure].baseline for cell in cells if figure in cell.scores]
    return next((value for value in baselines if value is not None), None)


def _format_range(lengths: Ints) -> str:
    low, high = int(lengths.min()), int(lengths.max())
    return f"{low:,} words" if low == high else f"{low:,} to {high:,} words"


# ---- from rows -----------------------------------------------------------------------------------------


_ROW_FIELDS = (
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
_SCORE_FIELDS = ("unit", "low", "high", "baseline", "note", "headline", "geometric")
"""Fields of scores that are read in addition to the values."""


class _ParsedRow(NamedTuple):
    """A row without its scores, and the scores as compact arrays.

    Lists of numbers are ten times as large.
    """

    row: SeedRow
    scores: Mapping[MetricKey, tuple[Mapping[str, Any], Values, Values]]

    @classmethod
    def parse(cls, row: SeedRow) -> "_ParsedRow":
        texts = len(row["lengths"])
        scores = {
            MetricKey(score["source"], score["metric"], tuple(score["setting"].items())): (
                {name: score[name] for name in _SCORE_FIELDS},
                *_weigh_values(score, texts),
            )
            for score in row["scores"]
        }
        return cls({name: row[name] for name in _ROW_FIELDS}, scores)


def _weigh_values(score: Mapping[str, Any], texts: int) -> tuple[Values, Values]:
    """Computes the sum and weight of each text; 0 without a value."""
    values, weights = np.zeros(texts), np.zeros(texts)
    raw_values = np.array(score["values"], dtype=np.float64)
    if raw_values.ndim != 1 or len(raw_values) > texts:
        raise ValueError
    sizes = (
        np.ones(len(raw_values))
        if score["weights"] is None
        else np.array(score["weights"], dtype=np.float64)
    )
    valid = ~np.isnan(raw_values) & (sizes > 0)
    values[: len(raw_values)] = np.where(valid, raw_values, 0) * sizes
    weights[: len(raw_values)] = np.where(valid, sizes, 0)
    return values, weights


def _assemble_series(
    data: DataSetKey, name: str, by_budget: Mapping[str, Mapping[int, _ParsedRow]]
) -> Series:
    rows = [parsed_row.row for by_seed in by_budget.values() for parsed_row in by_seed.values()]
    for by_seed in by_budget.values():
        if len({repr(dict(_list_options(parsed_row.row))) for parsed_row in by_seed.values()}) > 1:
            raise ConfigError(
                f"the rows of {name!r} on {data.name} may differ only in budget and seed, but "
                "differ in other options; report their files separately"
            )
    cells = [_build_cell(by_seed, data) for by_seed in by_budget.values()]
    return Series(
        name=name,
        **{part: rows[0][part] for part in ("entry", "family", "whose")},
        data=data,
        cells=tuple(sorted(cells, key=_rank_budget)),
    )


def _rank_budget(cell: Cell) -> tuple[bool, float]:
    """Returns a sort key: numeric budgets first, others in their order."""
    number = isinstance(cell.budget, int | float)
    return not number, float(cell.budget) if number else 0.0


def _build_cell(by_seed: Mapping[int, _ParsedRow], data: DataSetKey) -> Cell:
    parsed_rows = list(by_seed.values())
    metrics = dict.fromkeys(metric for parsed_row in parsed_rows for metric in parsed_row.scores)
    scores = {
        metric: _merge_scores(
            [
                parsed_row.scores[metric]
                for parsed_row in parsed_rows
                if metric in parsed_row.scores
            ],
            data,
        )
        for metric in metrics
    }
    steps = dict.fromkeys(step for parsed_row in parsed_rows for step in parsed_row.row["seconds"])
    return Cell(
        rows=tuple(parsed_row.row for parsed_row in parsed_rows),
        scores={metric: score for metric, score in scores.items() if score.sample.sizes.any()},
        not_run={
            name: reason
            for parsed_row in parsed_rows
            for name, reason in parsed_row.row["not_run"].items()
        },
        seconds={
            step: float(
                np.mean([parsed_row.row["seconds"].get(step) or 0.0 for parsed_row in parsed_rows])
            )
            for step in steps
        },
    )


def _merge_scores(
    seed_scores: Sequence[tuple[Mapping[str, Any], Values, Values]], data: DataSetKey
) -> SeedScores:
    """Merges the scores of all seeds into each text's mean."""
    facts = [fact for fact, _, _ in seed_scores]
    lows, highs = ([fact[end] for fact in facts] for end in ("low", "high"))
    fallback_interval = None if None in lows or None in highs else (min(lows), max(highs))
    baselines = [fact["baseline"] for fact in facts if fact["baseline"] is not None]
    return SeedScores(
        unit=facts[0]["unit"],
        headline=facts[0]["headline"],
        baseline=float(np.mean(baselines)) if baselines else None,
        notes=tuple(dict.fromkeys(fact["note"] for fact in facts if fact["note"])),
        sample=Sample(
            texts=data.digest,
            sums=np.mean([sums for _, sums, _ in seed_scores], axis=0),
            sizes=np.mean([sizes for _, _, sizes in seed_scores], axis=0),
            fallback_interval=fallback_interval,
            geometric=facts[0]["geometric"],
        ),
    )


def _list_options(row: SeedRow) -> Iterator[tuple[str, Any]]:
    return ((path, value) for path, value in _flatten(row["configuration"] or {}) if path != "seed")


def _flatten(options: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
