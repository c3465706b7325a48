"""Which mechanism to use: all of them at equal risk, each with its own best options.

In: a sweep whose budgets are found by risk. Out: a `FamilyChoice` for each data set and risk; lines of a table.
Not here: how budgets are found (`calibrate`), how cells are run (`run`), and estimates (`compare`).

Options are chosen on other examples than those used for judging, because the best of many tries looks better than it
is, and not on training texts, which judges have learned. Budgets come from training texts; the attacker's actual
success is measured both when options are chosen and when they are judged, and figures are read at that value.

The papers' best mechanism is the best on the judged examples, which favours the papers. Ours is the one that was best
when options were chosen.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from textveil.errors import ConfigError
from textveil.evaluate.attack import PRIORS
from textveil_bench import run as runs
from textveil_bench.compare import Cell, MetricKey, Row, Series, chance, series
from textveil_bench.estimates import Estimate, difference, ratio
from textveil_bench.exposure import METRIC
from textveil_bench.spec import Sweep, SweepData

OPTIONS = "options"
"""Suffix of the name of the sweep that chooses options."""

ABOVE = 0.15
"""How far above the floor the score on originals must be for a task to tell mechanisms apart."""

FLOORS = ("mask", "uniform")
"""Baselines that reveal nothing of any private word: what they keep is the floor of a task without a chance level."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """How options are chosen.

    Attributes:
        limit: examples of each data set, besides those used for judging.
        seeds: of the draws.
    """

    limit: int = 150
    seeds: tuple[int, ...] = (1,)


@dataclass(frozen=True, kw_only=True)
class FamilyScore:
    """What one family keeps of a task at a risk.

    Attributes:
        family: its name.
        whose: "paper" or "ours".
        name: the series with the chosen options.
        above: the score above the floor, with its interval; None if the risk is not reached.
        bound: whether the attacker's success is a lower bound.
    """

    family: str
    whose: str
    name: str
    above: Estimate | None
    bound: bool


@dataclass(frozen=True, kw_only=True)
class FamilyChoice:
    """All families on one data set at one risk.

    Attributes:
        data: its name.
        level: the risk, as an upper limit.
        metric: what is judged.
        baselines: what each keeps above the floor, at any risk.
        floor: the chance level; if the judge has none above 0, the larger of what mask and uniform keep.
        originals: the score on originals.
        attacked: number of texts on which the risk was measured.
        found: one for each family, the best first.
        best: a family of each side: for "paper" the best here, for "ours" the best when options were chosen.
    """

    data: str
    level: float
    metric: str
    baselines: Mapping[str, Estimate]
    floor: float
    originals: float
    attacked: int
    found: tuple[FamilyScore, ...]
    best: Mapping[str, str]

    @property
    def counts(self) -> bool:
        """Whether the task tells mechanisms apart at all."""
        return self.originals - self.floor >= ABOVE

    @property
    def lead(self) -> Estimate | None:
        """How much more ours keeps than the papers' best; None if either is missing."""
        pair = self._pair
        return None if pair is None else difference(*pair)

    @property
    def gain(self) -> Estimate | None:
        """The ratio of what both keep above the floor; None if the papers' best is not significantly above it."""
        pair = self._pair
        return None if pair is None or pair[1].interval.low <= 0 else ratio(*pair)

    def to_json(self) -> dict[str, Any]:
        """All fields as plain data; None for what is not reached and for open ends of intervals."""
        return {
            "data": self.data,
            "level": self.level,
            "metric": self.metric,
            "baselines": {name: _ends(found) for name, found in self.baselines.items()},
            "floor": self.floor,
            "originals": self.originals,
            "attacked_texts": self.attacked,
            "counts": self.counts,
            "families": [
                {
                    "family": each.family,
                    "whose": each.whose,
                    "series": each.name,
                    "above_floor": _ends(each.above),
                    "risk_is_a_lower_bound": each.bound,
                }
                for each in self.found
            ],
            "best": dict(self.best),
            "lead": _ends(self.lead),
            "gain": _ends(self.gain),
        }

    @property
    def _pair(self) -> tuple[Estimate, Estimate] | None:
        ours, paper = (
            next((found.above for found in self.found if found.family == self.best.get(side)), None)
            for side in ("ours", "paper")
        )
        return None if ours is None or paper is None else (ours, paper)


def trial(sweep: Sweep, how: Tuning) -> Sweep:
    """The sweep for choosing options: on other examples, with the attack that measures risk.

    Raises:
        ConfigError: an entry has budgets other than those of a risk.
    """
    if "identity" not in sweep.baselines:
        raise ConfigError("results are compared with the originals: add identity to sweep.baselines")
    attacks = tuple(
        each for each in sweep.attacks if each["name"] == "bayes" and sweep.risk.prior in each.get("priors", PRIORS)
    )
    if not attacks:
        raise ConfigError(f"risk is measured by the attack bayes with the prior {sweep.risk.prior}: add it to attacks")
    if any(not one.searched for one in sweep.series if one.whose != "baseline"):
        raise ConfigError("mechanisms are compared at equal risk: set the budget of every entry to `risk`")
    data = tuple(replace(one, limit=how.limit, beside=_limit(one, sweep)) for one in sweep.data)
    name = f"{sweep.name}, {OPTIONS}"
    return replace(sweep, name=name, data=data, seeds=how.seeds, attacks=attacks, measures=(), baselines=(), gallery=0)


def _limit(source: SweepData, sweep: Sweep) -> int:
    limit = source.limit or sweep.limit
    if limit is None:
        raise ConfigError("options are chosen on examples that are not judged: set a limit that leaves some over")
    return limit


def kept(rows: Iterable[Row], levels: Sequence[float], prior: str) -> dict[str, tuple[str, ...]]:
    """By data set, the names of series that are best of their family at some level, from the rows of a trial."""
    found: dict[str, dict[str, None]] = {}
    for values in tuned(rows, levels, prior).values():
        for (data, _), (name, _) in values.items():
            found.setdefault(data, {})[name] = None
    return {data: tuple(names) for data, names in found.items()}


Tuned = Mapping[tuple[str, str], tuple[str, float]]
"""By data set and family, the name of a series and its score."""


def tuned(rows: Iterable[Row], levels: Sequence[float], prior: str) -> dict[float, Tuned]:
    """By level, the best series of each family on each data set, from the rows of a trial.

    Families whose series do not get down to the level are left out.
    """
    risk = _risk(prior)
    found: dict[float, dict[tuple[str, str], tuple[str, float]]] = {level: {} for level in levels}
    for one in series(rows):
        figure = headline(one)
        for level, best in found.items():
            value = None if figure is None else one.at_most(risk, figure, level)
            key = (one.data.name, one.family)
            if value is not None and (key not in best or value.value > best[key][1]):
                best[key] = (one.name, value.value)
    return dict(found)


def _risk(prior: str) -> MetricKey:
    return MetricKey("bayes", METRIC, (("prior", prior),))


def headline(one: Series) -> MetricKey | None:
    """The figure a data set is judged by; None if no cell of the series was judged."""
    for cell in one.cells:
        for metric, score in cell.scores.items():
            if metric.role == "task" and score.headline:
                return metric
    return None


def choices(rows: Sequence[Row], tried: Sequence[Row], levels: Sequence[float], prior: str) -> list[FamilyChoice]:
    """All families at equal risk.

    Args:
        rows: of the judged examples.
        tried: of the other examples, for choosing options.
        levels: of the risk.
        prior: the attacker's.

    Raises:
        ConfigError: the originals were not judged.
    """
    chosen = tuned(tried, levels, prior)
    by_data: dict[str, list[Series]] = {}
    for one in series(rows):
        by_data.setdefault(one.data.name, []).append(one)
    return [_choice(data, own, level, chosen[level], _risk(prior)) for data, own in by_data.items() for level in levels]


def _choice(data: str, own: Sequence[Series], level: float, chosen: Tuned, risk: MetricKey) -> FamilyChoice:
    baselines = {one.name: one.cells[0] for one in own if one.whose == "baseline"}
    figure = next((headline(one) for one in own if one.name == "identity"), None)
    if figure is None:
        raise ConfigError(f"the originals of {data} have no judge's headline: see `not_run` in their rows")
    known = {name: cell.estimates[figure] for name, cell in baselines.items() if figure in cell.estimates}
    floor = _floor(figure, known, [cell for one in own for cell in one.cells])

    def above(value: Estimate) -> Estimate:
        return value.minus(floor) if isinstance(floor, float) else difference(value, floor)

    found = []
    for one in own:
        if chosen.get((data, one.family), ("", 0.0))[0] == one.name:
            value = one.at_most(risk, figure, level)
            own_above = None if value is None else above(value)
            bound = any("lower bound" in note for cell in one.cells for note in _notes(cell, risk))
            found.append(FamilyScore(family=one.family, whose=one.whose, name=one.name, above=own_above, bound=bound))
    there = sorted(found, key=lambda each: (each.above is None, 0.0 if each.above is None else -each.above.value))
    best = {each.whose: each.family for each in reversed(there) if each.above is not None}
    ours = [each.family for each in there if each.whose == "ours" and each.above is not None]
    if ours:
        best["ours"] = max(ours, key=lambda family: chosen[data, family][1])
    cells = (cell for one in own if one.whose != "baseline" for cell in one.cells if risk in cell.scores)
    return FamilyChoice(
        data=data,
        level=level,
        metric=figure.title,
        baselines={name: above(value) for name, value in known.items()},
        floor=floor if isinstance(floor, float) else floor.value,
        originals=known["identity"].value,
        attacked=next((int((cell.scores[risk].sample.sizes > 0).sum()) for cell in cells), 0),
        found=tuple(there),
        best=best,
    )


def _floor(figure: MetricKey, known: Mapping[str, Estimate], cells: Iterable[Cell]) -> Estimate | float:
    """See `FamilyChoice.floor`."""
    if nothing := chance(figure, cells):
        return nothing
    return max((known[name] for name in FLOORS if name in known), key=lambda found: found.value, default=0.0)


def _notes(cell: Cell, risk: MetricKey) -> tuple[str, ...]:
    return cell.scores[risk].notes if risk in cell.scores else ()


def run(
    sweep: Sweep, folder: Path, how: Tuning, *, levels: Sequence[float], **options: Any
) -> tuple[Sequence[Row], Sequence[Row]]:
    """Runs the trial, then its best series on the judged examples.

    Args:
        sweep: with entries whose budgets are "risk".
        folder: for the rows.
        how: how options are chosen.
        levels: risks at which mechanisms are compared.
        options: of `run.run`.

    Returns:
        the rows of the judged examples, and those of the trial.
    """
    reach = min(sweep.risk.levels), max(sweep.risk.levels)
    if not all(reach[0] <= level <= reach[1] for level in levels):
        raise ConfigError(f"levels must be from {reach[0]:g} to {reach[1]:g}, the range of the sweep's risk")
    tried = runs.run(trial(sweep, how), folder, **options)
    chosen = kept(tried, levels, sweep.risk.prior)
    return runs.run(replace(sweep, kept=chosen), folder, **options), tried


def _ends(found: Estimate | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    ends = found.interval
    return {
        name: value if np.isfinite(value) else None
        for name, value in (("value", ends.value), ("low", ends.low), ("high", ends.high))
    }


# ---- as Markdown ---------------------------------------------------------------------------------------

ESTIMATED = "*"
"""Marks figures where the attacker may succeed more often than measured."""


def summary(found: Sequence[FamilyChoice]) -> Iterator[str]:
    """A table of all data sets: ours next to the papers' best, at each level."""
    levels = dict.fromkeys(choice.level for choice in found)
    yield f"| ours beside the best of the papers, at most | {' | '.join(f'{level:g}' for level in levels)} |"
    yield "|---" * (1 + len(levels)) + "|"
    for data in dict.fromkeys(choice.data for choice in found):
        cells = (_pair(choice) for choice in found if choice.data == data)
        yield f"| {data} | {' | '.join(cells)} |"
    yield ""


def markdown(found: Sequence[FamilyChoice]) -> Iterator[str]:
    """A table for each data set: what each family keeps at each level."""
    for data in dict.fromkeys(choice.data for choice in found):
        own = [choice for choice in found if choice.data == data]
        first = own[0]
        yield (
            f"**{data}**: {first.metric}, originals {first.originals:.3f}, floor {first.floor:.3f}; risk measured on "
            f"{first.attacked} texts"
        )
        yield "" if first.counts else "\nThe originals are too near to the floor: this task does not count.\n"
        yield f"| above the floor, at attack success of at most | {' | '.join(f'{choice.level:g}' for choice in own)} |"
        yield "|---" * (1 + len(own)) + "|"
        for name, kept_by in first.baselines.items():
            yield f"| *{name}* | {' | '.join(_spelled(kept_by) for _ in own)} |"
        for family in dict.fromkeys(each.family for choice in own for each in choice.found):
            yield f"| {family} | {' | '.join(_cell(choice, family) for choice in own)} |"
        yield f"| ours less the best of the papers | {' | '.join(_signed(choice.lead) for choice in own)} |"
        yield f"| ours over the best of the papers | {' | '.join(_times(choice) for choice in own)} |"
        yield ""


def _pair(choice: FamilyChoice) -> str:
    if not choice.counts:
        return "does not count"
    named = {each.family: each for each in choice.found if each.above is not None}
    sides = []
    for side in ("ours", "paper"):
        best = named.get(choice.best.get(side, ""))
        sides.append("none" if best is None or best.above is None else f"{best.above.interval.value:.3f} {best.name}")
    times = _times(choice)
    return "; ".join((f"{sides[0]} beside {sides[1]}", *([times] if times else ())))


def _cell(choice: FamilyChoice, family: str) -> str:
    found = next((each for each in choice.found if each.family == family), None)
    if found is None or found.above is None:
        return "not reached"
    options = found.name.removeprefix(family).strip(", ")
    bold = family in choice.best.values()
    return _spelled(found.above, bold=bold) + ESTIMATED * found.bound + (f" {options}" if options else "")


def _spelled(found: Estimate, *, bold: bool = False) -> str:
    ends = found.interval
    value = f"**{ends.value:.3f}**" if bold else f"{ends.value:.3f}"
    return f"{value} ({ends.low:.3f} to {ends.high:.3f})"


def _signed(found: Estimate | None) -> str:
    if found is None:
        return ""
    ends = found.interval
    return f"{ends.value:+.3f} ({ends.low:+.3f} to {ends.high:+.3f})"


def _times(choice: FamilyChoice) -> str:
    if choice.lead is None:
        return ""
    if choice.gain is None:
        return "theirs is not above the floor for certain"
    ends = choice.gain.interval
    low, high = ("no end" if not np.isfinite(end) else f"{end:.2f}" for end in (ends.low, ends.high))
    return f"{ends.value:.2f} times ({low} to {high})"
