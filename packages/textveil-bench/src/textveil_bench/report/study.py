"""What a report compares: data sets, attacks and figures, series and their looks.

In: series. Out: `Study`.
Not here: the figures (`curves`, `options`) and tables (`tables`) made of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import inf

from textveil_bench.compare import Cell, Data, MetricKey, SeedScores, Series, chance
from textveil_bench.estimates import Estimate
from textveil_bench.pictures import COLOURS, DASHES, MARKERS, MOST, Look

LEVELS = (0.05, 0.1, 0.2)
"""Risks at which everything is compared."""

REFERENCE = 0.1
"""The risk at which the best is chosen."""

MARGIN = 0.15
"""Least distance from chance that originals must reach for a task to tell mechanisms apart."""

BASELINE, PAPER = "baseline", "paper"

_USUAL = ("exposed", "top-1")
"""Metrics that measure risk, in order of preference."""

_NEAR = ("meaning", "cosine", "rouge-l")
"""Measures used instead of a task, for data without one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """Series of one or more data sets, organized.

    Attributes:
        series: all of them, including baselines.
        by: the attack at whose success mechanisms are compared; None: the strongest of the usual ones.
    """

    series: tuple[Series, ...] = field(repr=False)
    by: MetricKey | None = None

    @cached_property
    def data(self) -> tuple[Data, ...]:
        """The data sets, in order."""
        return tuple(dict.fromkeys(each.data for each in self.series))

    def title(self, data: Data) -> str:
        """A data set's name; with its fingerprint if another of that name has different texts."""
        twice = sum(other.name == data.name for other in self.data) > 1
        return f"{data.name} ({data.digest[:6]})" if twice else data.name

    def of(self, data: Data) -> list[Series]:
        """The series of a data set, without baselines."""
        return [each for each in self.series if each.data == data and each.whose != BASELINE]

    def baselines(self, data: Data) -> list[Series]:
        """Its baselines."""
        return [each for each in self.series if each.data == data and each.whose == BASELINE]

    def named(self, name: str, data: Data) -> Series | None:
        """The series of a name; None if it was not run on these data."""
        return next((each for each in self.of(data) if each.name == name), None)

    @cached_property
    def metrics(self) -> tuple[MetricKey, ...]:
        """All metrics of all cells, headlines first."""
        found: dict[MetricKey, bool] = {}
        for cell in self._cells(self.series):
            for metric, score in cell.scores.items():
                found[metric] = found.get(metric, False) or score.headline
        return tuple(sorted(found, key=lambda metric: not found[metric]))

    @cached_property
    def headlines(self) -> tuple[MetricKey, ...]:
        """Metrics that are shown first."""
        cells = list(self._cells(self.series))
        return tuple(
            metric
            for metric in self.metrics
            if any(c.scores[metric].headline for c in cells if metric in c.scores)
        )

    @cached_property
    def risks(self) -> tuple[MetricKey, ...]:
        """Attackers' success rates, the one by which mechanisms are compared first."""
        found = [metric for metric in self.headlines if metric.role == "attack"]
        return tuple(sorted(found, key=lambda metric: (metric != self.by, *_usual(metric))))

    @property
    def risk(self) -> MetricKey | None:
        """The attack at whose success mechanisms are compared; None if none was run."""
        return self.risks[0] if self.risks else None

    def figures(self, data: Data) -> tuple[MetricKey, ...]:
        """Utility metrics for these data: the headlines of tasks, otherwise similarity in meaning."""
        here = {metric for cell in self._cells(self.series, data) for metric in cell.scores}
        tasks = [metric for metric in self.headlines if metric.role == "task" and metric in here]
        near = [
            metric
            for source in _NEAR
            for metric in self.metrics
            if metric.source == source and metric in here
        ]
        return tuple(tasks or near[:1])

    def notes(self, metric: MetricKey) -> tuple[str, ...]:
        """What readers of a metric need to know, with the entries it applies to if not all."""
        found: dict[str, dict[str, None]] = {}
        entries: dict[str, None] = {}
        for entry, score in self._scores(metric):
            entries[entry] = None
            for note in score.notes:
                found.setdefault(note, {})[entry] = None
        return tuple(
            note if len(names) == len(entries) else f"{note} ({', '.join(names)})"
            for note, names in found.items()
        )

    def unit(self, metric: MetricKey) -> str:
        """What is counted in a metric."""
        return next(score.unit for _, score in self._scores(metric))

    def _scores(self, metric: MetricKey) -> Iterator[tuple[str, SeedScores]]:
        """A metric in all cells, with their entries; in those of baselines if no others have it."""
        for baseline in (False, True):
            own = [series for series in self.series if (series.whose == BASELINE) == baseline]
            found = [
                (series.entry, cell.scores[metric])
                for series in own
                for cell in series.cells
                if metric in cell.scores
            ]
            if found:
                yield from found
                return

    def chance(self, data: Data, figure: MetricKey) -> float | None:
        """What a figure reaches without the texts."""
        return chance(figure, self._cells(self.series, data))

    def clean(self, data: Data, figure: MetricKey) -> Estimate | None:
        """What the originals reach; None if the baseline `identity` was not run."""
        identity = next((each for each in self.baselines(data) if each.name == "identity"), None)
        return None if identity is None else identity.cells[0].estimates.get(figure)

    def _cells(self, series: Iterable[Series], data: Data | None = None) -> Iterable[Cell]:
        return (cell for each in series if data in (None, each.data) for cell in each.cells)

    # ---- which series represent their entries, and how they look

    @cached_property
    def best(self) -> dict[str, str]:
        """For each entry, the series that keeps most at the reference risk, over all data sets."""
        entries: dict[str, dict[str, None]] = {}
        for data in self.data:
            for each in self.of(data):
                entries.setdefault(each.entry, {})[each.name] = None
        return {entry: max(names, key=self._merit) for entry, names in entries.items()}

    def chosen(self, data: Data) -> dict[str, Series]:
        """The best series of each entry run on these data, and the baselines, by name."""
        own = [*self.baselines(data), *(self.named(name, data) for name in self.best.values())]
        return {each.name: each for each in own if each is not None}

    def nearest(self, series: Series) -> Cell:
        """The cell of a series nearest to the reference risk."""
        risk = self.risk
        if risk is None:
            return series.cells[len(series.cells) // 2]
        apart = [
            abs(cell.estimates[risk].value - REFERENCE) if risk in cell.estimates else inf
            for cell in series.cells
        ]
        return series.cells[apart.index(min(apart))]

    @cached_property
    def reference(self) -> str | None:
        """The best series from a paper, with which others are compared; None if there is none."""
        papers = {each.name for data in self.data for each in self.of(data) if each.whose == PAPER}
        found = [name for name in self.best.values() if name in papers]
        return max(found, key=self._merit) if found else None

    def best_paper(
        self, data: Data, figure: MetricKey, level: float
    ) -> tuple[Series, Estimate] | None:
        """On one data set, the series from a paper that keeps most at a risk."""
        if self.risk is None:
            return None
        found = [
            (each, value)
            for each in self.of(data)
            if each.whose == PAPER and (value := each.at_risk(self.risk, figure, level)) is not None
        ]
        return max(found, key=lambda pair: pair[1].value) if found else None

    @cached_property
    def overview(self) -> list[list[str]]:
        """The best series of each entry, in groups for one panel; each has the best one from a paper."""
        names = list(self.best.values())
        if len(names) <= MOST:
            return [names]
        kept = [] if self.reference is None else [self.reference]
        return [
            [*kept, *part]
            for part in _parts([name for name in names if name not in kept], MOST - len(kept))
        ]

    @cached_property
    def inside(self) -> dict[str, dict[str, list[str]]]:
        """For each entry with several series, all of them in groups for one panel, by what a group shares."""
        found: dict[str, dict[str, Series]] = {}
        for each in (series for data in self.data for series in self.of(data)):
            found.setdefault(each.entry, {}).setdefault(each.name, each)
        return {entry: _split(list(own.values())) for entry, own in found.items() if len(own) > 1}

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Each series has one look on all pages, different from all others in its panels."""
        looks: dict[str, Look] = {}
        for shift, group in enumerate(self.overview):
            _dress(looks, group, shift)
        for group in (part for parts in self.inside.values() for part in parts.values()):
            _dress(looks, group, 0)
        return looks

    @cached_property
    def dashes(self) -> dict[str, str]:
        """Each baseline has one dash pattern on all data sets, whatever their order."""
        names = dict.fromkeys(each.name for data in self.data for each in self.baselines(data))
        return {name: DASHES[i % len(DASHES)] for i, name in enumerate(names)}

    def _merit(self, name: str) -> tuple[int, float]:
        risk, own = self.risk, [(data, self.named(name, data)) for data in self.data]
        values = [
            series.at_risk(risk, figure, REFERENCE)
            for data, series in own
            if series is not None and risk is not None
            for figure in self.figures(data)[:1]
        ]
        reached = [value.value for value in values if value is not None]
        return len(reached), sum(reached)


def _usual(metric: MetricKey) -> tuple[bool, ...]:
    """Sorts the usual attacks first."""
    prior = dict(metric.setting).get("prior")
    return *(metric.metric != name for name in _USUAL), metric.source != "bayes", prior != "unigram"


def _dress(looks: dict[str, Look], group: Sequence[str], shift: int) -> None:
    """Gives those of a group without a look colours that the group does not use yet."""
    taken = {looks[name].colour for name in group if name in looks}
    free = [i for i, colour in enumerate(COLOURS) if colour not in taken]
    for name, i in zip([name for name in group if name not in looks], free, strict=False):
        looks[name] = Look(colour=COLOURS[i], marker=MARKERS[(i + shift) % len(MARKERS)])


def _split(series: Sequence[Series]) -> dict[str, list[str]]:
    """Series of one entry in groups for one panel, by the values of the option that keeps most of them together."""
    names = [each.name for each in series]
    if len(names) <= MOST:
        return {"": names}
    ways: list[dict[str, list[str]]] = []
    for path in series[0].settings:
        groups: dict[str, list[str]] = {}
        for each in series:
            groups.setdefault(f"{path} {each.settings.get(path)}", []).append(each.name)
        if max(map(len, groups.values())) <= MOST:
            ways.append(groups)
    parts = _parts(names, MOST)
    return (
        min(ways, key=len)
        if ways
        else {f"part {i} of {len(parts)}": part for i, part in enumerate(parts, 1)}
    )


def _parts(names: Sequence[str], size: int) -> list[list[str]]:
    """Names in as few groups as possible, of similar size."""
    count = -(-len(names) // size)
    ends = [round(i * len(names) / count) for i in range(count + 1)]
    return [list(names[start:end]) for start, end in pairwise(ends)]
