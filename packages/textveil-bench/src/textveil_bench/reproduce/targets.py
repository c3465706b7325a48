"""Targets: what is reproduced of a figure or table of a paper, read from packaged YAML and checked.

In: a name, the changes of a run. Out: `Target`, and the sweeps of its panels as plain mappings.
Not here: what a sweep may say (`bench.spec`), how it is run (`run`), and how claims are judged (`verdict`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from string import Formatter
from typing import Annotated, Any, Literal

import numpy as np
import yaml
from pydantic import BeforeValidator, Field

from textveil.config import options
from textveil.errors import ConfigError, UnknownName

CONF = files("textveil_bench") / "conf" / "reproduce"

NEEDS = {"llm": "needs an LLM", "hub": "needs models from a hub, which --hub fetches"}
"""What is said of a panel that was not run for want of something."""

LIKE = "like"
"""Of a file: the target whose sweep, with changes, and whose panels and scales it has."""

MERGED = ("common", "only", "set", "thin")
"""Changes that do not take the place of what the sweep has under their name."""

NOT_QUICK = "left out of a quick run"

Scale = Literal["usual", "quick", "full"]
Plain = Mapping[str, Any]
Sentences = tuple[str, ...]


@options("metric.")
class WantedMetric:
    """A figure of a row.

    Attributes:
        metric: its name, "accuracy".
        source: the attack, measure or judge, or how its name begins; empty where only one has such a metric.
        setting: what tells it from others of the same source and name; what is not named here may be anything.
    """

    metric: str
    source: str = ""
    setting: Plain = Field(default_factory=dict)

    @property
    def title(self) -> str:
        """As people read it."""
        rest = ", ".join(str(value) for value in self.setting.values())
        return self.metric + (f" ({rest})" if rest else "")


def _metric(value: object) -> object:
    return WantedMetric(metric=value) if isinstance(value, str) else _made(WantedMetric, value)


def _metrics(value: object) -> object:
    return tuple(map(_metric, value)) if isinstance(value, list | tuple) else value


def _made(kind: type, value: object) -> object:
    """A mapping as one of our options, so that wrong names in it are complained about as everywhere."""
    return kind(**value) if isinstance(value, Mapping) else value


def _list_of(kind: type) -> BeforeValidator:
    return BeforeValidator(
        lambda value: tuple(_made(kind, each) for each in value) if isinstance(value, list | tuple) else value
    )


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _published(value: object) -> object:
    """An item with `values` by budget is as many items."""
    if not isinstance(value, list | tuple):
        return value
    made: list[object] = []
    for each in value:
        if not (isinstance(each, Mapping) and isinstance(each.get("values"), Mapping)):
            made.append(_made(PublishedValue, each))
            continue
        shared = {key: given for key, given in each.items() if key not in ("where", "values")}
        made += [
            PublishedValue(where={**each["where"], "budget": budget}, value=own, **shared)
            for budget, own in each["values"].items()
        ]
    return tuple(made)


MetricField = Annotated[WantedMetric, BeforeValidator(_metric)]


@options("published.")
class PublishedValue:
    """A value that a paper's text gives.

    Attributes:
        where: which rows are ours; {table: NAME, row: FIRST VALUE} is a row of a computed table.
        metric: which figure of theirs; of a table, the heading of a column.
        value: the paper's, in the unit of our figure: shares from 0 to 1.
        source: where it stands ("table 1").
    """

    where: Plain
    metric: MetricField
    value: float
    source: Annotated[str, Field(min_length=1)]


@options("expect.at.")
class AtRisk:
    """Where two series are compared: at equal values of another metric.

    Attributes:
        risk: that metric.
        levels: its values; empty: five, spread evenly over what both series reach.
    """

    risk: MetricField
    levels: tuple[float, ...] = ()


@options("expect.")
class Expectation:
    """A claim of a paper's text, as a check of our rows.

    Attributes:
        claim: in our words.
        source: where it stands ("section 4.3").
        series: which rows; each member is compared with the next. A number stands for itself.
        metric: in what.
        direction: `is` in a file: whether a member is above the next, below it, or near it.
        by: for near, how far they may be apart; else by how much a member is above or below; less than 0: how much it
            may be on the wrong side.
        at: where they are compared: at equal budgets, the first budget of each and so on, or at equal risk.
        data: the data sets that are judged one by one, if they are run; empty: those whose rows have the metric.
    """

    claim: str
    source: Annotated[str, Field(min_length=1)]
    series: Annotated[tuple[Plain | float, ...], Field(min_length=2)]
    metric: MetricField
    direction: Literal["above", "below", "near"] = "above"
    by: float = 0.0
    at: Annotated[Literal["budget", "order"] | AtRisk, BeforeValidator(lambda value: _made(AtRisk, value))] = "budget"
    data: Sentences = ()

    def __post_init__(self) -> None:
        if self.direction == "near" and self.by <= 0:
            raise ConfigError(f"expect.by must say how far apart is still near, more than 0, and is {self.by:g}")


def _expectations(value: object) -> object:
    """`is`, as files have it, is a word of Python's."""
    if not isinstance(value, list | tuple):
        return value
    return tuple(
        Expectation(**{"direction" if name == "is" else name: given for name, given in each.items()})
        if isinstance(each, Mapping)
        else each
        for each in value
    )


@options("contradicts.")
class ShownValue:
    """A figure of our rows that a sentence shows.

    Attributes:
        where: which rows, of one cell.
        metric: which figure; `epsilon` is the largest of the statement, `local DP` what it comes to as local DP.
    """

    where: Plain
    metric: MetricField


@options("contradicts.")
class Contradiction:
    """Where a paper is wrong, or cannot be right as it stands, and why.

    Attributes:
        says: one or several sentences; "{name}" is where a figure of our rows stands.
        shows: those figures by name.
    """

    says: str
    shows: Mapping[str, Annotated[ShownValue, BeforeValidator(lambda value: _made(ShownValue, value))]] = Field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        named = {name for _, name, _, _ in Formatter().parse(self.says) if name is not None}
        if named != set(self.shows):
            missing = ", ".join(sorted(named ^ set(self.shows)))
            raise ConfigError(f"contradicts.shows must have the names in braces and no others; see {missing}")


def _contradictions(value: object) -> object:
    """Plain sentences are contradictions that show nothing."""
    if not isinstance(value, list | tuple):
        return value
    return tuple(Contradiction(says=each) if isinstance(each, str) else _made(Contradiction, each) for each in value)


@options("panels.")
class TargetPanel:
    """A part of a figure.

    Attributes:
        name: what it is called.
        needs: "llm" where a language model has to answer; "hub" where only a hub has what it takes; "llm, hub" both.
        changes: what differs from the target's sweep.
        quick: what differs besides in a quick run, which leaves out panels that do not say it.
        computed: a table in place of the sweep, see `computed.COMPUTED`.
    """

    name: str
    needs: Literal["", "llm", "hub", "llm, hub"] = ""
    changes: Plain = Field(default_factory=dict)
    quick: Plain | None = None
    computed: str = ""


@options("target.")
class Target:
    """A figure or table of a paper; see the package for what each part is in a file."""

    name: str
    title: str
    paper: str
    shows: str
    sweep: Plain = Field(default_factory=dict)
    computed: Annotated[tuple[str, ...], BeforeValidator(_several)] = ()
    panels: Annotated[tuple[TargetPanel, ...], _list_of(TargetPanel)] = ()
    quick: Plain = Field(default_factory=dict)
    full: Plain = Field(default_factory=dict)
    hub: Plain = Field(default_factory=dict)
    hub_first: Sentences = ()
    over: Annotated[tuple[WantedMetric, ...], BeforeValidator(_metrics)] = ()
    published: Annotated[tuple[PublishedValue, ...], BeforeValidator(_published)] = ()
    expect: Annotated[tuple[Expectation, ...], BeforeValidator(_expectations)] = ()
    differs: Sentences = ()
    contradicts: Annotated[tuple[Contradiction, ...], BeforeValidator(_contradictions)] = ()

    def __post_init__(self) -> None:
        if not (self.sweep or self.computed):
            raise ConfigError(f"the target {self.name} must have a sweep, or tables that are computed")
        if not self.sweep and (self.panels or self.quick or self.full or self.hub or self.expect):
            raise ConfigError(f"the target {self.name} has no sweep: panels, changes and claims have no place")


def names() -> list[str]:
    """All targets, in order."""
    found = [each.name.removesuffix(".yaml") for each in CONF.iterdir() if each.name.endswith(".yaml")]
    return sorted(found, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)])


def load(name: str) -> Target:
    """The target of a name.

    Raises:
        UnknownName: there is none, or its file has a key that targets do not have.
        ConfigError: its file is wrong.
    """
    if name not in names():
        raise UnknownName("figure or table", name, names())
    return read(name, yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8")))


def read(name: str, values: Plain) -> Target:
    """A target from a file's content."""
    for key in values:
        if key not in (known := [LIKE, *(each.name for each in fields(Target) if each.name != "name")]):
            raise UnknownName(f"key of the target {name}", str(key), known)
    own = {key: each for key, each in values.items() if key != LIKE}
    if LIKE in values:
        other = load(values[LIKE])
        same = {key: getattr(other, key) for key in ("panels", "quick", "full", "hub")}
        own = {**same, **own, "sweep": changed(other.sweep, own.get("sweep", {}))}
    return Target(name=name, **own)


@dataclass(frozen=True, kw_only=True)
class Plans:
    """What is run of a target.

    Attributes:
        sweeps: of each panel, by its name, as a plain mapping.
        tables: that are computed, by name.
        not_run: panels, and why not.
    """

    sweeps: Mapping[str, Plain]
    tables: tuple[str, ...]
    not_run: Mapping[str, str]


def planned(target: Target, scale: Scale = "usual", *, hub: bool = False, endpoint: Plain | None = None) -> Plans:
    """What is run of a target.

    Args:
        target: what is asked for.
        scale: `quick` for the changes of that name, `full` for those.
        hub: whether the paper's own models and tables take the place of ours.
        endpoint: options of `Endpoint`; without it, panels that need a language model are not run.
    """
    quick = scale == "quick"
    sweeps: dict[str, Plain] = {}
    tables, not_run = list(target.computed), {}
    for panel in target.panels or ((TargetPanel(name=target.title, quick={}),) if target.sweep else ()):
        missing = [need for need, there in (("llm", endpoint is not None), ("hub", hub)) if not there]
        if lacks := [NEEDS[need] for need in missing if need in panel.needs]:
            not_run[panel.name] = lacks[0]
        elif quick and panel.quick is None:
            not_run[panel.name] = NOT_QUICK
        elif panel.computed:
            tables.append(panel.computed)
        else:
            runs = [target.hub] * hub + ([] if scale == "usual" else [getattr(target, scale)])
            sweep = dict(target.sweep)
            for changes in (panel.changes, *runs, (panel.quick or {}) if quick else {}):
                sweep = changed(sweep, changes)
            asks = "llm" in panel.needs
            sweeps[panel.name] = sweep | ({"endpoint": dict(endpoint or {})} if asks else {})
    return Plans(sweeps=sweeps, tables=tuple(tables), not_run=not_run)


def changed(sweep: Plain, changes: Plain) -> dict[str, Any]:
    """A sweep with changes; see the package.

    Raises:
        UnknownName: `only` names an entry that the sweep does not have.
    """
    made = {**sweep, **{name: value for name, value in changes.items() if name not in MERGED}}
    if "common" in changes:
        made["common"] = {**sweep.get("common", {}), **changes["common"]}
    if "only" in changes:
        entries = {entry["name"]: entry for entry in made["entries"]}
        for name in changes["only"]:
            if name not in entries:
                raise UnknownName("entry of the sweep", name, entries)
        made["entries"] = [entries[name] for name in changes["only"]]
    if "set" in changes:
        made["entries"] = [
            {**entry, "set": {**entry.get("set", {}), **changes["set"].get(entry["name"], {})}}
            for entry in made["entries"]
        ]
    if "thin" in changes:
        made["entries"] = [_thinned(entry, changes["thin"]) for entry in made["entries"]]
    return made


def _thinned(entry: Plain, count: int) -> dict[str, Any]:
    made = dict(entry)
    for part in ("grid", "budget"):
        if isinstance(entry.get(part), Mapping):
            made[part] = {
                path: _spread(values, count) if isinstance(values, list) else values
                for path, values in entry[part].items()
            }
    return made


def _spread(values: Sequence[Any], count: int) -> list[Any]:
    """So many of the values, from the first to the last."""
    if len(values) <= count:
        return list(values)
    return [values[place] for place in np.linspace(0, len(values) - 1, count).round().astype(int)]
