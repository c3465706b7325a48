"""Targets: figures and tables of papers to reproduce, read from packaged YAML.

In: a name, the changes of a run. Out: `Target`, and the sweeps of its panels as plain mappings.
Not here: the contents of a sweep (`spec`), how it is run (`run`), and how claims are judged
(`verdict`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from string import Formatter
from typing import Annotated, Any, Literal

import numpy as np
import yaml
from pydantic import BeforeValidator, Field

from textveil.config import make_options
from textveil.errors import ConfigError, UnknownName
from textveil_bench.spec import SweepData

CONF = files("textveil_bench") / "conf" / "reproduce"

NEED_REASONS = {
    "llm": "needs an LLM",
    "hub": "needs models from a hub, which --hub fetches",
    "small": "needs --generative and the extra of that name",
}
"""Reasons why a panel was not run."""

LIKE_KEY = "like"
"""Key for another target whose sweep, panels and scales a file uses."""

MERGED_KEYS = ("common", "only", "set", "thin")
"""Changes that are merged into the sweep; others replace its value."""

QUICK_ASKED_CHANGES: Mapping[str, Any] = {"limit": 3}
"""Changes of a quick run to panels that ask a language model: a handful of texts."""

NOT_QUICK_REASON = "left out of a quick run"

Scale = Literal["usual", "quick", "full"]
Plain = Mapping[str, Any]
Sentences = tuple[str, ...]


@make_options("metric.")
class WantedMetric:
    """Selector of a metric in rows.

    Attributes:
        metric: its name, "accuracy".
        source: the attack, measure or judge, or a prefix of its name; empty if only one has such a
            metric.
        setting: settings that distinguish it from others of the same source and name; keys not
            given here may have any value.
    """

    metric: str
    source: str = ""
    setting: Plain = Field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its name for display, with its settings."""
        settings = ", ".join(str(value) for value in self.setting.values())
        return self.metric + (f" ({settings})" if settings else "")


def _parse_metric(value: object) -> object:
    return (
        WantedMetric(metric=value) if isinstance(value, str) else _build_option(WantedMetric, value)
    )


def _parse_metrics(value: object) -> object:
    return tuple(map(_parse_metric, value)) if isinstance(value, list | tuple) else value


def _build_option(kind: type, value: object) -> object:
    """Builds an option class from a mapping; wrong names raise errors."""
    return kind(**value) if isinstance(value, Mapping) else value


def _build_list_validator(kind: type) -> BeforeValidator:
    return BeforeValidator(
        lambda value: (
            tuple(_build_option(kind, each) for each in value)
            if isinstance(value, list | tuple)
            else value
        )
    )


def _wrap_single(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _parse_published(value: object) -> object:
    """Expands an item with `values` by budget into several items."""
    if not isinstance(value, list | tuple):
        return value
    items: list[object] = []
    for item in value:
        if not (isinstance(item, Mapping) and isinstance(item.get("values"), Mapping)):
            items.append(_build_option(PublishedValue, item))
            continue
        shared = {key: setting for key, setting in item.items() if key not in ("where", "values")}
        items += [
            PublishedValue(where={**item["where"], "budget": budget}, value=number, **shared)
            for budget, number in item["values"].items()
        ]
    return tuple(items)


MetricField = Annotated[WantedMetric, BeforeValidator(_parse_metric)]


@make_options("published.")
class PublishedValue:
    """A value that a paper's text gives.

    Attributes:
        where: selects our rows; {table: NAME, row: FIRST VALUE} is a row of a computed table.
        metric: their metric; for a table, the heading of a column.
        value: the paper's, in the unit of our figure: shares from 0 to 1.
        source: where it is given ("table 1").
    """

    where: Plain
    metric: MetricField
    value: float
    source: Annotated[str, Field(min_length=1)]


@make_options("expect.at.")
class AtRisk:
    """Comparison of two series at equal values of another metric.

    Attributes:
        risk: that metric.
        levels: its values; empty for five, evenly spaced over the range that both series reach.
    """

    risk: MetricField
    levels: tuple[float, ...] = ()


@make_options("expect.")
class Expectation:
    """A claim of a paper's text, as a check of our rows.

    Attributes:
        claim: in our words.
        source: where it is made ("section 4.3").
        series: selectors of rows, or numbers; each member is compared with the next.
        metric: the metric compared.
        direction: `is` in a file: whether a member is above the next, below it, or near it.
        by: for near, the largest difference; otherwise the smallest difference; if negative, the
            largest one to the wrong side.
        at: points of comparison: equal budgets, the first budget of each and so on, or equal risk.
        data: the data sets that are judged one by one, if they are run; empty for those whose rows
            have the metric.
    """

    claim: str
    source: Annotated[str, Field(min_length=1)]
    series: Annotated[tuple[Plain | float, ...], Field(min_length=2)]
    metric: MetricField
    direction: Literal["above", "below", "near"] = "above"
    by: float = 0.0
    at: Annotated[
        Literal["budget", "order"] | AtRisk,
        BeforeValidator(lambda value: _build_option(AtRisk, value)),
    ] = "budget"
    data: Sentences = ()

    def __post_init__(self) -> None:
        if self.direction == "near" and self.by <= 0:
            raise ConfigError(
                f"expect.by must be above 0 for near (the largest difference), got {self.by:g}"
            )


def _parse_expectations(value: object) -> object:
    """Parses claims; renames `is`, a keyword in Python."""
    if not isinstance(value, list | tuple):
        return value
    return tuple(
        Expectation(
            **{"direction" if name == "is" else name: setting for name, setting in item.items()}
        )
        if isinstance(item, Mapping)
        else item
        for item in value
    )


@make_options("contradicts.")
class ShownValue:
    """A figure of our rows within a sentence.

    Attributes:
        where: selects rows, all of one cell.
        metric: their metric; `epsilon` is the largest in the statement, `local DP` its value as
            local DP.
    """

    where: Plain
    metric: MetricField


@make_options("contradicts.")
class Contradiction:
    """A statement of a paper that is wrong, or cannot be right.

    Attributes:
        says: one or more sentences with reasons; "{name}" is replaced by a figure of our rows.
        shows: those figures by name.
    """

    says: str
    shows: Mapping[
        str, Annotated[ShownValue, BeforeValidator(lambda value: _build_option(ShownValue, value))]
    ] = Field(default_factory=dict)

    def __post_init__(self) -> None:
        placeholders = {name for _, name, _, _ in Formatter().parse(self.says) if name is not None}
        if placeholders != set(self.shows):
            missing = ", ".join(sorted(placeholders ^ set(self.shows)))
            raise ConfigError(
                f"contradicts.shows must have exactly the names in braces; see {missing}"
            )


def _parse_contradictions(value: object) -> object:
    """Parses contradictions; plain sentences have no figures."""
    if not isinstance(value, list | tuple):
        return value
    return tuple(
        Contradiction(says=item) if isinstance(item, str) else _build_option(Contradiction, item)
        for item in value
    )


FACTS = ("hub", "llm", "local", "small", "table", "context", "judge", "model", "shown")
"""What is known of a run, for sentences about it; see `differs`."""


def _convert_values(value: object) -> object:
    """Wraps single values in tuples, by name."""
    if not isinstance(value, Mapping):
        return value
    return {
        name: tuple(item) if isinstance(item, list | tuple) else (item,)
        for name, item in value.items()
    }


@make_options("differs.")
class Difference:
    """A difference of our setting from a paper's, if the run has it.

    Attributes:
        says: one or more sentences; "{table}" is replaced by what the run has of this fact.
        when: by fact, the values of which the run has one; empty for any run.
    """

    says: str
    when: Annotated[Mapping[str, tuple[bool | str, ...]], BeforeValidator(_convert_values)] = Field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        for name in (*self.when, *self.placeholders):
            if name not in FACTS:
                raise UnknownName("fact of a run in differs", name, FACTS)

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The facts in braces."""
        return tuple(name for _, name, _, _ in Formatter().parse(self.says) if name is not None)


def _parse_differences(value: object) -> object:
    """Parses differences; plain sentences hold for any run."""
    if not isinstance(value, list | tuple):
        return value
    return tuple(
        Difference(says=item) if isinstance(item, str) else _build_option(Difference, item)
        for item in value
    )


@make_options("panels.")
class TargetPanel:
    """A part of a figure.

    Attributes:
        name: its name.
        needs: "llm" for a language model at an endpoint; "hub" for something from a hub; "llm, hub"
            for both; "small" for the small language model of an extra.
        changes: changes to the target's sweep.
        quick: further changes in a quick run, which leaves out panels without them.
        usual: further changes where neither --quick nor --full is asked for.
        hub: further changes with --hub.
        computed: a table instead of the sweep, see `computed.COMPUTED_TABLES`.
        paper: whether it is judged as in the paper: the published values and claims of a data set
            are also for its rows, under whatever name.
    """

    name: str
    needs: Literal["", "llm", "hub", "llm, hub", "small"] = ""
    changes: Plain = Field(default_factory=dict)
    quick: Plain | None = None
    usual: Plain = Field(default_factory=dict)
    hub: Plain = Field(default_factory=dict)
    computed: str = ""
    paper: bool = False

    def list_data(self, sweep: Plain) -> dict[str, str]:
        """Lists its data sets by their names in rows.

        Args:
            sweep: the target's.
        """
        variants = (self.changes, self.hub, self.quick or {})
        sources = [item["data"] for item in variants if "data" in item] or [sweep.get("data", ())]
        return {
            SweepData(**item).row_name: item["name"]
            for source in sources
            for item in ({"name": name} if isinstance(name, str) else name for name in source)
        }


@make_options("target.")
class Target:
    """A paper's figure or table.

    The package docstring describes the keys of a file.
    """

    name: str
    title: str
    paper: str
    shows: str
    sweep: Plain = Field(default_factory=dict)
    computed: Annotated[tuple[str, ...], BeforeValidator(_wrap_single)] = ()
    panels: Annotated[tuple[TargetPanel, ...], _build_list_validator(TargetPanel)] = ()
    quick: Plain = Field(default_factory=dict)
    full: Plain = Field(default_factory=dict)
    hub: Plain = Field(default_factory=dict)
    hub_first: Sentences = ()
    over: Annotated[tuple[WantedMetric, ...], BeforeValidator(_parse_metrics)] = ()
    published: Annotated[tuple[PublishedValue, ...], BeforeValidator(_parse_published)] = ()
    expect: Annotated[tuple[Expectation, ...], BeforeValidator(_parse_expectations)] = ()
    differs: Annotated[tuple[Difference, ...], BeforeValidator(_parse_differences)] = ()
    contradicts: Annotated[tuple[Contradiction, ...], BeforeValidator(_parse_contradictions)] = ()

    def __post_init__(self) -> None:
        if not (self.sweep or self.computed):
            raise ConfigError(f"the target {self.name} must have a sweep or computed tables")
        if not self.sweep and (self.panels or self.quick or self.full or self.hub or self.expect):
            raise ConfigError(
                f"the target {self.name} has no sweep, so it cannot have panels, changes or claims"
            )

    def list_rows(self, data: str) -> list[str]:
        """Lists the names in rows of a paper's data set, its own name first."""
        others = [
            row
            for panel in self.panels
            if panel.paper
            for row, name in panel.list_data(self.sweep).items()
            if name == data
        ]
        return list(dict.fromkeys([data, *others]))

    def list_special_rows(self) -> set[str]:
        """Lists the names in rows of data that only panels with needs of their own have."""
        special, common = set[str](), set[str]()
        for panel in self.panels:
            usual = replace(panel, hub={}, quick=None)
            rows = {**panel.list_data(self.sweep), **usual.list_data(self.sweep)}
            (special if panel.needs else common).update(rows)
        return special - common


def list_names() -> list[str]:
    """Lists all targets, in order."""
    stems = [
        path.name.removesuffix(".yaml") for path in CONF.iterdir() if path.name.endswith(".yaml")
    ]
    return sorted(
        stems,
        key=lambda name: [
            int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)
        ],
    )


def load_target(name: str) -> Target:
    """Loads a target by name.

    Raises:
        UnknownName: there is no such target, or its file has an unknown key.
        ConfigError: its file is wrong.
    """
    if name not in list_names():
        raise UnknownName("figure or table", name, list_names())
    return parse_target(name, yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8")))


def parse_target(name: str, values: Plain) -> Target:
    """Parses a target from a file's content."""
    for key in values:
        if key not in (
            keys := [LIKE_KEY, *(item.name for item in fields(Target) if item.name != "name")]
        ):
            raise UnknownName(f"key of the target {name}", str(key), keys)
    settings = {key: item for key, item in values.items() if key != LIKE_KEY}
    if LIKE_KEY in values:
        other = load_target(values[LIKE_KEY])
        defaults = {
            key: getattr(other, key) for key in ("panels", "quick", "full", "hub", "hub_first")
        }
        settings = {
            **defaults,
            **settings,
            "sweep": apply_changes(other.sweep, settings.get("sweep", {})),
        }
    return Target(name=name, **settings)


@dataclass(frozen=True, kw_only=True)
class Plans:
    """Sweeps and tables to compute for a target.

    Attributes:
        sweeps: sweep of each panel, by name, as a plain mapping.
        tables: names of computed tables.
        not_run: panels that are not run, and why.
    """

    sweeps: Mapping[str, Plain]
    tables: tuple[str, ...]
    not_run: Mapping[str, str]


def build_plans(
    target: Target,
    scale: Scale = "usual",
    *,
    hub: bool = False,
    endpoint: Plain | None = None,
    generative: bool = False,
    local: Plain | None = None,
    prompts: Plain | None = None,
) -> Plans:
    """Builds the sweeps and tables of a target.

    Args:
        target: the target.
        scale: `quick` or `full` for the changes of that name.
        hub: whether to use the paper's own models and tables instead of ours.
        endpoint: options of `Endpoint`; without it, panels that need a language model are not run.
        generative: whether to run panels of the small language model.
        local: options of `Endpoint` for a model on this machine, which may see originals.
        prompts: wordings of what language models are asked; None for ours.
    """
    quick = scale == "quick"
    sweeps: dict[str, Plain] = {}
    tables, not_run = list(target.computed), {}
    for panel in target.panels or (
        (TargetPanel(name=target.title, quick={}),) if target.sweep else ()
    ):
        resources = {"llm": endpoint is not None, "hub": hub, "small": generative}
        missing = [need for need, is_available in resources.items() if not is_available]
        if reasons := [NEED_REASONS[need] for need in missing if need in panel.needs]:
            not_run[panel.name] = reasons[0]
        elif quick and panel.quick is None and "llm" not in panel.needs:
            not_run[panel.name] = NOT_QUICK_REASON
        elif panel.computed:
            tables.append(panel.computed)
        else:
            runs = [target.hub, panel.hub] * hub
            scaled = panel.usual if scale == "usual" else getattr(target, scale)
            if scale != "usual" and "entries" in panel.changes:  # of which `only` names none
                scaled = {name: value for name, value in scaled.items() if name != "only"}
            runs.append(scaled)
            sweep = dict(target.sweep)
            needs_llm = "llm" in panel.needs
            default = QUICK_ASKED_CHANGES if needs_llm else {}
            quick_changes = default if panel.quick is None else panel.quick
            for changes in (panel.changes, *runs, quick_changes if quick else {}):
                sweep = apply_changes(sweep, changes)
            if needs_llm:
                sweep["endpoint"] = dict(endpoint or {})
                sweep |= {"local": dict(local)} if local else {}
                sweep |= {"prompts": dict(prompts)} if prompts else {}
            sweeps[panel.name] = sweep
    return Plans(sweeps=sweeps, tables=tuple(tables), not_run=not_run)


def apply_changes(sweep: Plain, changes: Plain) -> dict[str, Any]:
    """Applies changes to a sweep; see the package docstring.

    Raises:
        UnknownName: `only` names an entry that the sweep does not have.
    """
    result = {
        **sweep,
        **{name: value for name, value in changes.items() if name not in MERGED_KEYS},
    }
    if "common" in changes:
        result["common"] = {**sweep.get("common", {}), **changes["common"]}
    if "only" in changes:
        entries = {entry["name"]: entry for entry in result["entries"]}
        for name in changes["only"]:
            if name not in entries:
                raise UnknownName("entry of the sweep", name, entries)
        result["entries"] = [entries[name] for name in changes["only"]]
    if "set" in changes:
        result["entries"] = [
            {**entry, "set": {**entry.get("set", {}), **changes["set"].get(entry["name"], {})}}
            for entry in result["entries"]
        ]
    if "thin" in changes:
        result["entries"] = [_reduce_entry(entry, changes["thin"]) for entry in result["entries"]]
    return result


def _reduce_entry(entry: Plain, count: int) -> dict[str, Any]:
    result = dict(entry)
    for part in ("grid", "budget"):
        if isinstance(entry.get(part), Mapping):
            result[part] = {
                path: _sample_values(values, count) if isinstance(values, list) else values
                for path, values in entry[part].items()
            }
    return result


def _sample_values(values: Sequence[Any], count: int) -> list[Any]:
    """Samples `count` of the values, spread from the first to the last."""
    if len(values) <= count:
        return list(values)
    return [values[place] for place in np.linspace(0, len(values) - 1, count).round().astype(int)]
