"""Study: data sets, metrics and series of a report, and their looks.

In: series. Out: `Study`.
Not here: the figures (`curves`, `options`) and tables (`tables`) made of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import inf

from textveil_bench.compare import Cell, DataSetKey, MetricKey, SeedScores, Series, find_chance
from textveil_bench.estimates import Estimate
from textveil_bench.pictures import COLOURS, DASHES, MARKERS, MAX_CURVES, Look

RISK_LEVELS = (0.05, 0.1, 0.2)
"""Risks (attack success) at which everything is compared."""

REFERENCE_RISK = 0.1
"""The risk at which the best series is chosen."""

MIN_CHANCE_MARGIN = 0.15
"""Smallest distance of originals from chance at which a task is informative."""

BASELINE, PAPER = "baseline", "paper"

_USUAL_METRICS = ("exposed", "top-1")
"""Metrics that measure risk, in order of preference."""

_SIMILARITY_METRICS = ("meaning", "cosine", "rouge-l")
"""Measures used instead of a task, for data without one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """Series of one or more data sets, organized for a report.

    Attributes:
        series: all of them, including baselines.
        preferred_risk: the attack at whose success mechanisms are compared; None for the strongest
            of the usual ones.
    """

    series: tuple[Series, ...] = field(repr=False)
    preferred_risk: MetricKey | None = None

    @cached_property
    def data(self) -> tuple[DataSetKey, ...]:
        """The data sets, in order."""
        return tuple(dict.fromkeys(series.data for series in self.series))

    def format_title(self, data: DataSetKey) -> str:
        """Returns a data set's name, with its fingerprint if it is ambiguous."""
        twice = sum(other.name == data.name for other in self.data) > 1
        return f"{data.name} ({data.digest[:6]})" if twice else data.name

    def select_series(self, data: DataSetKey) -> list[Series]:
        """Selects a data set's series, without baselines."""
        return [
            series for series in self.series if series.data == data and series.whose != BASELINE
        ]

    def select_baselines(self, data: DataSetKey) -> list[Series]:
        """Selects a data set's baselines."""
        return [
            series for series in self.series if series.data == data and series.whose == BASELINE
        ]

    def find_series(self, name: str, data: DataSetKey) -> Series | None:
        """Finds a data set's series by name; None if there is none."""
        return next((series for series in self.select_series(data) if series.name == name), None)

    @cached_property
    def metrics(self) -> tuple[MetricKey, ...]:
        """All metrics of all cells, headlines first."""
        headline_flags: dict[MetricKey, bool] = {}
        for cell in self._yield_cells(self.series):
            for metric, score in cell.scores.items():
                headline_flags[metric] = headline_flags.get(metric, False) or score.headline
        return tuple(sorted(headline_flags, key=lambda metric: not headline_flags[metric]))

    @cached_property
    def headlines(self) -> tuple[MetricKey, ...]:
        """Metrics that are headlines of any cell."""
        cells = list(self._yield_cells(self.series))
        return tuple(
            metric
            for metric in self.metrics
            if any(c.scores[metric].headline for c in cells if metric in c.scores)
        )

    @cached_property
    def risks(self) -> tuple[MetricKey, ...]:
        """Attackers' success rates; mechanisms are compared by the first."""
        attacks = [metric for metric in self.headlines if metric.role == "attack"]
        return tuple(
            sorted(
                attacks, key=lambda metric: (metric != self.preferred_risk, *_rank_attack(metric))
            )
        )

    @property
    def risk(self) -> MetricKey | None:
        """Attack at whose success mechanisms are compared; None if none was run."""
        return self.risks[0] if self.risks else None

    def list_utility_metrics(self, data: DataSetKey) -> tuple[MetricKey, ...]:
        """Lists a data set's utility metrics: task headlines, otherwise similarity in meaning."""
        measured = {
            metric for cell in self._yield_cells(self.series, data) for metric in cell.scores
        }
        tasks = [
            metric for metric in self.headlines if metric.role == "task" and metric in measured
        ]
        similarities = [
            metric
            for source in _SIMILARITY_METRICS
            for metric in self.metrics
            if metric.source == source and metric in measured
        ]
        return tuple(tasks or similarities[:1])

    def list_notes(self, metric: MetricKey) -> tuple[str, ...]:
        """Lists a metric's notes, with their entries unless they apply to all."""
        entries_by_note: dict[str, dict[str, None]] = {}
        entries: dict[str, None] = {}
        for entry, score in self._yield_scores(metric):
            entries[entry] = None
            for note in score.notes:
                entries_by_note.setdefault(note, {})[entry] = None
        return tuple(
            note if len(names) == len(entries) else f"{note} ({', '.join(names)})"
            for note, names in entries_by_note.items()
        )

    def find_unit(self, metric: MetricKey) -> str:
        """Returns the unit that a metric counts."""
        return next(score.unit for _, score in self._yield_scores(metric))

    def _yield_scores(self, metric: MetricKey) -> Iterator[tuple[str, SeedScores]]:
        """Yields a metric's scores with their entries; baselines only if alone."""
        for baseline in (False, True):
            candidates = [
                series for series in self.series if (series.whose == BASELINE) == baseline
            ]
            scores = [
                (series.entry, cell.scores[metric])
                for series in candidates
                for cell in series.cells
                if metric in cell.scores
            ]
            if scores:
                yield from scores
                return

    def compute_chance(self, data: DataSetKey, figure: MetricKey) -> float | None:
        """Computes a metric's value when guessing without the texts."""
        return find_chance(figure, self._yield_cells(self.series, data))

    def find_original_score(self, data: DataSetKey, figure: MetricKey) -> Estimate | None:
        """Returns the originals' score; None if the baseline `identity` was not run."""
        identity = next(
            (series for series in self.select_baselines(data) if series.name == "identity"), None
        )
        return None if identity is None else identity.cells[0].estimates.get(figure)

    def _yield_cells(
        self, series: Iterable[Series], data: DataSetKey | None = None
    ) -> Iterable[Cell]:
        return (cell for member in series if data in (None, member.data) for cell in member.cells)

    # ---- which series represent their entries, and how they look

    @cached_property
    def best(self) -> dict[str, str]:
        """For each entry, the series with most utility at the reference risk.

        Over all data sets.
        """
        entries: dict[str, dict[str, None]] = {}
        for data in self.data:
            for series in self.select_series(data):
                entries.setdefault(series.entry, {})[series.name] = None
        return {entry: max(names, key=self._score_series) for entry, names in entries.items()}

    def select_best_series(self, data: DataSetKey) -> dict[str, Series]:
        """Selects a data set's baselines and best series per entry, by name."""
        candidates = [
            *self.select_baselines(data),
            *(self.find_series(name, data) for name in self.best.values()),
        ]
        return {series.name: series for series in candidates if series is not None}

    def find_nearest_cell(self, series: Series) -> Cell:
        """Finds the cell of a series nearest to the reference risk."""
        risk = self.risk
        if risk is None:
            return series.cells[len(series.cells) // 2]
        distances = [
            abs(cell.estimates[risk].value - REFERENCE_RISK) if risk in cell.estimates else inf
            for cell in series.cells
        ]
        return series.cells[distances.index(min(distances))]

    @cached_property
    def reference(self) -> str | None:
        """The best series from a paper, for comparison; None without any."""
        papers = {
            series.name
            for data in self.data
            for series in self.select_series(data)
            if series.whose == PAPER
        }
        candidates = [name for name in self.best.values() if name in papers]
        return max(candidates, key=self._score_series) if candidates else None

    def find_best_published(
        self, data: DataSetKey, figure: MetricKey, level: float
    ) -> tuple[Series, Estimate] | None:
        """Finds a data set's series from papers with most utility at risk."""
        if self.risk is None:
            return None
        candidates = [
            (series, value)
            for series in self.select_series(data)
            if series.whose == PAPER
            and (value := series.estimate_at_risk(self.risk, figure, level)) is not None
        ]
        return max(candidates, key=lambda pair: pair[1].value) if candidates else None

    @cached_property
    def overview(self) -> list[list[str]]:
        """The best series of each entry, in groups for one panel.

        Each group includes the best one from a paper.
        """
        names = list(self.best.values())
        if len(names) <= MAX_CURVES:
            return [names]
        shared = [] if self.reference is None else [self.reference]
        return [
            [*shared, *part]
            for part in _partition_names(
                [name for name in names if name not in shared], MAX_CURVES - len(shared)
            )
        ]

    @cached_property
    def entry_groups(self) -> dict[str, dict[str, list[str]]]:
        """All series of entries with several, in groups for one panel.

        By entry, then by the setting that a group shares.
        """
        series_by_entry: dict[str, dict[str, Series]] = {}
        for member in (series for data in self.data for series in self.select_series(data)):
            series_by_entry.setdefault(member.entry, {}).setdefault(member.name, member)
        return {
            entry: _split(list(group.values()))
            for entry, group in series_by_entry.items()
            if len(group) > 1
        }

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Look of each series on all pages, unique within its panels."""
        looks: dict[str, Look] = {}
        for shift, group in enumerate(self.overview):
            _assign_looks(looks, group, shift)
        for group in (part for parts in self.entry_groups.values() for part in parts.values()):
            _assign_looks(looks, group, 0)
        return looks

    @cached_property
    def dashes(self) -> dict[str, str]:
        """Dash pattern of each baseline on all data sets, in any order."""
        names = dict.fromkeys(
            series.name for data in self.data for series in self.select_baselines(data)
        )
        return {name: DASHES[i % len(DASHES)] for i, name in enumerate(names)}

    def _score_series(self, name: str) -> tuple[int, float]:
        risk, pairs = self.risk, [(data, self.find_series(name, data)) for data in self.data]
        values = [
            series.estimate_at_risk(risk, figure, REFERENCE_RISK)
            for data, series in pairs
            if series is not None and risk is not None
            for figure in self.list_utility_metrics(data)[:1]
        ]
        utilities = [value.value for value in values if value is not None]
        return len(utilities), sum(utilities)


def _rank_attack(metric: MetricKey) -> tuple[bool, ...]:
    """Returns a sort key that puts the usual attacks first."""
    prior = dict(metric.setting).get("prior")
    return (
        *(metric.metric != name for name in _USUAL_METRICS),
        metric.source != "bayes",
        prior != "unigram",
    )


def _assign_looks(looks: dict[str, Look], group: Sequence[str], shift: int) -> None:
    """Gives series without a look colours that their group does not use."""
    used_colours = {looks[name].colour for name in group if name in looks}
    free = [i for i, colour in enumerate(COLOURS) if colour not in used_colours]
    for name, i in zip([name for name in group if name not in looks], free, strict=False):
        looks[name] = Look(colour=COLOURS[i], marker=MARKERS[(i + shift) % len(MARKERS)])


def _split(series: Sequence[Series]) -> dict[str, list[str]]:
    """Splits an entry's series into groups for one panel.

    By the values of the option that gives the fewest groups.
    """
    names = [member.name for member in series]
    if len(names) <= MAX_CURVES:
        return {"": names}
    groupings: list[dict[str, list[str]]] = []
    for path in series[0].settings:
        groups: dict[str, list[str]] = {}
        for member in series:
            groups.setdefault(f"{path} {member.settings.get(path)}", []).append(member.name)
        if max(map(len, groups.values())) <= MAX_CURVES:
            groupings.append(groups)
    parts = _partition_names(names, MAX_CURVES)
    return (
        min(groupings, key=len)
        if groupings
        else {f"part {i} of {len(parts)}": part for i, part in enumerate(parts, 1)}
    )


def _partition_names(names: Sequence[str], size: int) -> list[list[str]]:
    """Partitions names into as few groups as possible, of similar size."""
    count = -(-len(names) // size)
    ends = [round(i * len(names) / count) for i in range(count + 1)]
    return [list(names[start:end]) for start, end in pairwise(ends)]
