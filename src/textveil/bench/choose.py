"""Which mechanism: all of them at equal risk, each at its own best options.

In: a sweep whose budgets are found by risk. Out: a `Choice` for each data set and risk; lines of a table.
Not here: how budgets are found (`calibrate`), how cells are run (`run`), and estimates (`compare`).

Options are chosen on other examples than those they are judged on, for the best of many tries looks better than it is.
Neither are training texts, which judges have learned. Budgets come from training texts; what an attacker really gets of
the judged texts is measured, and figures are read where that risk is at the level.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from textveil.attack.prior import PRIORS
from textveil.bench import run as runs
from textveil.bench.compare import Metric, Row, Series, chance, series
from textveil.bench.estimates import Estimate, ratio
from textveil.bench.exposure import METRIC
from textveil.bench.spec import Source, Sweep
from textveil.errors import ConfigError

OPTIONS = "options"
"""Of the name of the sweep that options are chosen by."""

ABOVE = 0.15
"""How far above chance the score on originals must be, or the task says nothing of mechanisms."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """How options are chosen.

    Attributes:
        limit: examples of each data set, besides those that mechanisms are judged on.
        seeds: of the draws.
    """

    limit: int = 150
    seeds: tuple[int, ...] = (1,)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one family keeps of a task at a risk.

    Attributes:
        family: its name; whose is "paper" or "ours".
        whose: see `family`.
        name: of the series with the options that were chosen.
        above: the score above chance, with its interval; None where the risk is not reached.
    """

    family: str
    whose: str
    name: str
    above: Estimate | None


@dataclass(frozen=True, kw_only=True)
class Choice:
    """All families on one data set at one risk.

    Attributes:
        data: its name.
        level: the risk.
        metric: what is judged.
        baselines: what identity, mask and uniform keep above chance, whatever the risk.
        chance: what is reached without a text.
        found: one for each family, the best first.
        best: the family of each side ("paper", "ours") that was best when options were chosen.
    """

    data: str
    level: float
    metric: str
    baselines: Mapping[str, Estimate]
    chance: float
    found: tuple[Found, ...]
    best: Mapping[str, str]

    @property
    def clean(self) -> float:
        """Of the originals, above chance."""
        return self.baselines["identity"].value

    @property
    def counts(self) -> bool:
        """Whether the task tells mechanisms apart at all."""
        return self.clean >= ABOVE

    @property
    def gain(self) -> Estimate | None:
        """How many times the above-chance score of the papers' best one ours keeps; None where one is missing."""
        sides = [self._of(side) for side in ("ours", "paper")]
        if any(side is None or side.above is None for side in sides):
            return None
        ours, paper = (side.above for side in sides if side is not None and side.above is not None)
        return ratio(ours, paper)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data; None for what is not reached, and for ends of intervals that are not there."""
        return {
            "data": self.data,
            "level": self.level,
            "metric": self.metric,
            "baselines": {name: _ends(found) for name, found in self.baselines.items()},
            "chance": self.chance,
            "counts": self.counts,
            "families": [
                {"family": each.family, "whose": each.whose, "series": each.name, "above_chance": _ends(each.above)}
                for each in self.found
            ],
            "best": dict(self.best),
            "gain": _ends(self.gain),
        }

    def _of(self, side: str) -> Found | None:
        return next((found for found in self.found if found.family == self.best.get(side)), None)


def trial(sweep: Sweep, how: Trial) -> Sweep:
    """The sweep by which options are chosen: on other examples, judged but not attacked.

    Raises:
        ConfigError: an entry has other budgets than those of a risk.
    """
    if "identity" not in sweep.baselines:
        raise ConfigError("what is kept is told beside what the originals have: name the baseline identity")
    if not any(each["name"] == "bayes" and sweep.risk.prior in each.get("priors", PRIORS) for each in sweep.attacks):
        raise ConfigError(f"the risk is that of the attack bayes with the prior {sweep.risk.prior}: name it in attacks")
    if any(not one.searched for one in sweep.series if one.whose != "baseline"):
        raise ConfigError("mechanisms are compared at equal risk: every entry must have a budget that is `risk`")
    data = tuple(replace(one, limit=how.limit, beside=_limit(one, sweep)) for one in sweep.data)
    name = f"{sweep.name}, {OPTIONS}"
    return replace(sweep, name=name, data=data, seeds=how.seeds, attacks=(), measures=(), baselines=(), gallery=0)


def _limit(source: Source, sweep: Sweep) -> int:
    limit = source.limit or sweep.limit
    if limit is None:
        raise ConfigError("options are chosen on examples that are not judged: set a limit that leaves some")
    return limit


def kept(rows: Iterable[Row], levels: Sequence[float]) -> dict[str, tuple[str, ...]]:
    """By data set the names of series that are best of their family at some level, on the rows of a trial."""
    found: dict[str, dict[str, None]] = {}
    for names in best(rows, levels).values():
        for (data, _), name in names.items():
            found.setdefault(data, {})[name] = None
    return {data: tuple(names) for data, names in found.items()}


def best(rows: Iterable[Row], levels: Sequence[float]) -> dict[float, dict[tuple[str, str], str]]:
    """By level, data set and family the name of the best series, on the rows of a trial."""
    scores = tuned(rows)
    found: dict[float, dict[tuple[str, str], str]] = {}
    for level in levels:
        chosen: dict[tuple[str, str], tuple[float, str]] = {}
        for one, points in scores:
            value = _read(points, level)
            key = (one.data.name, one.family)
            if value is not None and value > chosen.get(key, (-np.inf, ""))[0]:
                chosen[key] = (value, one.name)
        found[level] = {key: name for key, (_, name) in chosen.items()}
    return found


def tuned(rows: Iterable[Row]) -> list[tuple[Series, list[tuple[float, float]]]]:
    """Each series with its headline score at each level of risk."""
    found = []
    for one in series(rows):
        figure = headline(one)
        points = [(cell.level, cell.estimates[figure].value) for cell in one.cells if cell.level is not None]
        found.append((one, sorted(points)))
    return found


def headline(one: Series) -> Metric:
    """What a data set is judged by.

    Raises:
        ConfigError: no judge says a headline.
    """
    for cell in one.cells:
        for metric, score in cell.scores.items():
            if metric.role == "task" and score.headline:
                return metric
    raise ConfigError(f"{one.name} on {one.data.name} must have a judge's headline, and has none")


def choices(rows: Sequence[Row], tried: Sequence[Row], levels: Sequence[float], prior: str) -> list[Choice]:
    """All families at equal risk.

    Args:
        rows: on test texts.
        tried: on other examples, by which options are chosen.
        levels: of the risk.
        prior: of the attacker.
    """
    chosen, everything = best(tried, levels), series(rows)
    values = {(one.data.name, one.name): points for one, points in tuned(tried)}
    risk = Metric("bayes", METRIC, (("prior", prior),))
    by_data: dict[str, list[Series]] = {}
    for one in everything:
        by_data.setdefault(one.data.name, []).append(one)
    return [_choice(data, own, level, chosen[level], values, risk) for data, own in by_data.items() for level in levels]


def _choice(
    data: str,
    own: Sequence[Series],
    level: float,
    chosen: Mapping[tuple[str, str], str],
    values: Mapping[tuple[str, str], Sequence[tuple[float, float]]],
    risk: Metric,
) -> Choice:
    figure = headline(own[0])
    nothing = chance(figure, (cell for one in own for cell in one.cells)) or 0.0
    baselines = {one.name: one.cells[0].estimates[figure].minus(nothing) for one in own if one.whose == "baseline"}
    found, scored = [], dict[str, tuple[float, str]]()
    for one in own:
        if chosen.get((data, one.family)) != one.name:
            continue
        value = one.at_risk(risk, figure, level)
        above = None if value is None else value.minus(nothing)
        found.append(Found(family=one.family, whose=one.whose, name=one.name, above=above))
        tune = _read(values[data, one.name], level)
        if tune is not None and tune > scored.get(one.whose, (-np.inf, ""))[0]:
            scored[one.whose] = (tune, one.family)
    return Choice(
        data=data,
        level=level,
        metric=figure.title,
        baselines=baselines,
        chance=nothing,
        found=tuple(sorted(found, key=_order)),
        best={side: family for side, (_, family) in scored.items()},
    )


def _order(found: Found) -> tuple[bool, float]:
    return found.above is None, 0.0 if found.above is None else -found.above.value


def _read(points: Sequence[tuple[float, float]], level: float) -> float | None:
    """The score at a level, between the two that were run about it."""
    if not points or not points[0][0] <= level <= points[-1][0]:
        return None
    risks, scores = zip(*points, strict=True)
    return float(np.interp(level, np.array(risks), np.array(scores)))


def run(
    sweep: Sweep, folder: Path, how: Trial, *, levels: Sequence[float], **options: Any
) -> tuple[Sequence[Row], Sequence[Row]]:
    """Runs the trial, and then what was best in it, on test texts.

    Args:
        sweep: with entries whose budgets are "risk".
        folder: of the rows.
        how: options are chosen.
        levels: at which mechanisms are compared.
        options: of `bench.run.run`.

    Returns:
        the rows on test texts, and those of the trial.
    """
    reach = min(sweep.risk.levels), max(sweep.risk.levels)
    if not all(reach[0] <= level <= reach[1] for level in levels):
        raise ConfigError(f"levels must be from {reach[0]:g} to {reach[1]:g}, between those of the sweep's risk")
    tried = runs.run(trial(sweep, how), folder, **options)
    return runs.run(replace(sweep, kept=kept(tried, levels)), folder, **options), tried


def _ends(found: Estimate | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    ends = found.interval
    return {
        name: value if np.isfinite(value) else None
        for name, value in (("value", ends.value), ("low", ends.low), ("high", ends.high))
    }


# ---- as Markdown ---------------------------------------------------------------------------------------


def markdown(found: Sequence[Choice]) -> Iterator[str]:
    """A table for each data set: families, and what they keep at each level."""
    for data in dict.fromkeys(choice.data for choice in found):
        own = [choice for choice in found if choice.data == data]
        first = own[0]
        yield f"**{data}**: {first.metric}, originals {first.clean + first.chance:.3f}, chance {first.chance:.3f}"
        yield "" if first.counts else "\nThe originals are too near to chance: this task does not count.\n"
        yield f"| above chance at attack success | {' | '.join(f'{choice.level:g}' for choice in own)} |"
        yield "|---" * (1 + len(own)) + "|"
        for name, kept_by in first.baselines.items():
            yield f"| *{name}* | {' | '.join(_spelled(kept_by) for _ in own)} |"
        for family in dict.fromkeys(each.family for choice in own for each in choice.found):
            yield f"| {family} | {' | '.join(_cell(choice, family) for choice in own)} |"
        yield f"| ours over the best of the papers | {' | '.join(_gain(choice.gain) for choice in own)} |"
        yield ""


def _cell(choice: Choice, family: str) -> str:
    found = next((each for each in choice.found if each.family == family), None)
    if found is None or found.above is None:
        return "not reached"
    options = found.name.removeprefix(family).strip(", ")
    bold = family in choice.best.values()
    return _spelled(found.above, bold=bold) + (f" {options}" if options else "")


def _spelled(found: Estimate, *, bold: bool = False) -> str:
    ends = found.interval
    value = f"**{ends.value:.3f}**" if bold else f"{ends.value:.3f}"
    return f"{value} ({ends.low:.3f} to {ends.high:.3f})"


def _gain(found: Estimate | None) -> str:
    if found is None:
        return ""
    ends = found.interval
    return " to ".join("no end" if not np.isfinite(end) else f"{end:.2f}" for end in (ends.low, ends.high)).join(
        (f"{ends.value:.2f} (", ")")
    )
