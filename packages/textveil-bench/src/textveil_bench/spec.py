"""Sweep specifications: mechanisms, budgets, seeds, data sets and evaluations.

In: YAML. Out: `Sweep`, its `PlannedSeries` and their `PlannedCell`s.
Not here: how a cell is computed (`cells`), and in which process (`run`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field

from textveil.config import Config, make_options, option_sources, resolve
from textveil.errors import ConfigError, UnknownName, quote_short
from textveil.models import Prompts
from textveil_bench.data import get_data_name, is_file

CONF_FOLDER = Path(__file__).resolve().parent / "conf"
"""The packaged sweeps."""

BASELINES: Mapping[str, Mapping[str, Any]] = {
    "identity": {},
    "mask": {"mechanism.name": "placeholder", "words.consistent": False},
    "uniform": {"mechanism.name": "krr", "epsilon": 1e-6, "words.consistent": False},
    "equality": {"mechanism.name": "krr", "epsilon": 1e-6, "words.consistent": True},
}
"""Reference mechanisms, by name.

- identity: nothing is changed.
- mask: each private word becomes a placeholder.
- uniform: each private word is drawn uniformly from the table.
- equality: as uniform, but equal words of a text get the same draw, so the release shows only which
  words are equal.

mask and uniform never show which words are equal, whatever a sweep sets for its mechanisms: a lower
bound on utility must not leak equality.
"""

LEARNED_PATH = "learned"
"""Pseudo-option: how many important words are learned from training texts."""

EXPOSURE_PRIOR = "unigram"
"""Prior of the attacker that decides which words are exposed."""

RISK_BUDGET = "risk"
"""Placeholder for budgets: a comparison searches for them at given attack success."""

MEASURES = ("retention", "cosine", "oov", "rouge-l", "bleu", "mapping", "perplexity", "meaning")

Point = Mapping[str, Any]
"""Values by dotted path."""


def _parse_parts(value: object) -> object:
    """Converts bare names to {"name": ...}, and single parts to tuples."""
    parts = tuple({"name": part} if isinstance(part, str) else part for part in _wrap_single(value))
    if not all(isinstance(part, Mapping) and isinstance(part.get("name"), str) for part in parts):
        raise ConfigError(
            "attacks, tasks and data sets must be names, or mappings with a name and options"
        )
    return parts


def _wrap_single(value: object) -> list[Any] | tuple[Any, ...]:
    return value if isinstance(value, list | tuple) else (value,)


Part = Mapping[str, Any]
"""A name with options: {"name": "bayes", "priors": ["unigram"]}."""

Parts = Annotated[tuple[Part, ...], BeforeValidator(_parse_parts)]


@make_options("data.")
class SweepData:
    """One data set of a sweep.

    Attributes:
        name: name of a data set, or a file of your own.
        split: "test" or "train".
        limit: number of examples; None for the sweep's.
        beside: leaves out the examples that a run with this limit takes; 0 for none.
        subset: a part of the data set ("medical"), see `data`.
        task: judges by name, with options; empty for the default ones of the kind.
        columns: for a file of your own: options of `data.Columns`.
        as_name: its name in rows; None for `name`, without the folder of a file.
    """

    name: str
    split: str = "test"
    limit: Annotated[int, Field(ge=1)] | None = None
    beside: Annotated[int, Field(ge=0)] = 0
    subset: str | None = None
    task: Parts = ()
    columns: Mapping[str, Any] = Field(default_factory=dict)
    as_name: str | None = None

    @property
    def row_name(self) -> str:
        """Its name in rows."""
        if self.as_name is not None:
            return self.as_name
        name = get_data_name(self.name) if is_file(self.name) else self.name
        return f"{name}, {self.subset}" if self.subset else name

    def get_training_split(self, limit: int | None = None) -> Self:
        """Returns the training split of the same data set, whole or limited."""
        return replace(self, split="train", limit=limit, beside=0)


@make_options("entries.")
class SweepEntry:
    """One mechanism of a sweep, with the options that vary.

    Attributes:
        name: its name in figures.
        family: shared by entries that are one mechanism with other options; None for its own name.
        whose: "paper" for mechanisms as in their papers, "ours" for others.
        set: options by dotted path. `learned` is not an option of a privatizer: it is the number of
            words that are learned from training texts because they distinguish the data set's
            labels, and used as important words (`protect.importance=list`).
        grid: options with several values; each combination is a series.
        budget: one path with its values, each a cell; empty if the mechanism needs no budget. In a
            comparison it is "risk".
        start: in a comparison, the budget at which the search starts.
        most: the largest budget of that search; None for no limit.
        for_data: options by data set; an entry with any runs only on these data sets.
    """

    name: str
    family: str | None = None
    whose: Literal["paper", "ours"] = "paper"
    set: Mapping[str, Any] = Field(default_factory=dict)
    grid: Mapping[str, Annotated[tuple[Any, ...], BeforeValidator(_wrap_single)]] = Field(
        default_factory=dict
    )
    budget: Mapping[str, Annotated[tuple[Any, ...], BeforeValidator(_wrap_single)]] = Field(
        default_factory=dict
    )
    start: Annotated[float, Field(gt=0)] = 10.0
    most: Annotated[float, Field(gt=0)] | None = None
    for_data: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.budget) > 1:
            raise ConfigError(
                f"the entry {self.name!r} must have one budget, got {', '.join(self.budget)}"
            )
        for path, values in (*self.budget.items(), *self.grid.items()):
            if not values:
                raise ConfigError(
                    f"{path} of the entry {self.name!r} has no values; give at least one"
                )


@make_options("sweep.")
class Sweep:
    """Complete description of a run of the bench.

    Attributes:
        name: name of the sweep.
        seeds: each is a separate run with its own draws.
        limit: examples per data set; None for all.
        common: options of every entry, by dotted path.
        data: the data sets.
        attacks: attacks by name, with options.
        attacked: number of private words for attacks and word measures, taken in whole texts from
            the first text on; None for all.
        measures: names from `MEASURES`.
        baselines: any of identity, mask, uniform, equality.
        entries: the mechanisms.
        gallery: number of texts per series stored before and after, for the page; 0 for none.
        endpoint: options of a language model, for judges that need one; its key comes from the
            environment.
        local: options of a language model on this machine, which may see originals: see
            `tasks.generation`.
        prompts: wordings of what models are asked: a file, or its content; None for ours.
    """

    name: str
    seeds: Annotated[tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(_wrap_single)] = (
        1,
        2,
        3,
    )
    limit: Annotated[int, Field(ge=1)] | None = 500
    common: Mapping[str, Any] = Field(default_factory=dict)
    data: Annotated[tuple[SweepData, ...], Field(min_length=1)]
    attacks: Parts = ()
    attacked: Annotated[int, Field(ge=1)] | None = 1000
    measures: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ("identity", "mask", "uniform")
    entries: tuple[SweepEntry, ...] = ()
    gallery: Annotated[int, Field(ge=0)] = 2
    endpoint: Mapping[str, Any] | None = None
    local: Mapping[str, Any] | None = None
    prompts: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.prompts is not None:
            Prompts.parse(self.prompts)
        for kind, names, choices in (
            ("baseline", self.baselines, BASELINES),
            ("measure", self.measures, MEASURES),
        ):
            for name in names:
                if name not in choices:
                    raise UnknownName(kind, name, list(choices))
        if len(set(self.seeds)) < len(self.seeds) or not self.seeds:
            raise ConfigError("sweep.seeds must be one or more different numbers")
        row_names = [source.row_name for source in self.data]
        for entry in self.entries:
            for name in entry.for_data:
                if name not in row_names:
                    raise UnknownName(f"data set in for_data of {entry.name!r}", name, row_names)
        if len(set(row_names)) < len(row_names):
            raise ConfigError(
                "two data sets of a sweep have the same name; give one of them as_name"
            )

    @classmethod
    def read(cls, source: str | Path | Mapping[str, Any]) -> Self:
        """Reads a sweep from YAML, a packaged name ("sweep"), or a mapping.

        Raises:
            ConfigError: the file cannot be read, or is not a sweep.
            UnknownName: there is no such option, measure or baseline.
        """
        values = (
            dict(source)
            if isinstance(source, Mapping)
            else dict(option_sources.read_mapping(find_packaged_file(source)))
        )
        values.pop("description", None)
        if isinstance(values.get("prompts"), str):
            values["prompts"] = Prompts.read(Path(values["prompts"])).plain
        for name, section in (("data", SweepData), ("entries", SweepEntry)):
            if name in values:
                values[name] = tuple(
                    build_section(section, item, name) for item in _wrap_single(values[name])
                )
        return cls(**values)

    def select_part(
        self,
        *,
        limit: int | None = None,
        seeds: tuple[int, ...] | None = None,
        only: Sequence[str] = (),
    ) -> Self:
        """Returns a part of the sweep.

        Args:
            limit: largest number of examples per data set; smaller limits of the sweep stay.
            seeds: replace the sweep's own.
            only: names of data sets and entries; if one of a kind is named, others of that kind are
                left out.

        Raises:
            UnknownName: neither a data set nor an entry has this name.
            ConfigError: a named entry applies to none of the data sets, or nothing is left.
        """
        choices = {
            "data": [source.row_name for source in self.data],
            "entries": [entry.name for entry in self.entries],
        }
        for name in only:
            if name not in choices["data"] and name not in choices["entries"]:
                raise UnknownName(
                    "data set or entry", name, [*choices["data"], *choices["entries"]]
                )
        data = tuple(source for source in self.data if source.row_name in only) or self.data
        selected_entries = (
            tuple(entry for entry in self.entries if entry.name in only) or self.entries
        )
        data_names = {source.row_name for source in data}
        candidates = [
            replace(item, for_data={k: v for k, v in item.for_data.items() if k in data_names})
            for item in selected_entries
        ]
        entries = tuple(
            candidate
            for candidate, item in zip(candidates, selected_entries, strict=True)
            if candidate.for_data or not item.for_data
        )
        for entry in selected_entries:
            if entry.name in only and entry.name not in {item.name for item in entries}:
                raise ConfigError(
                    f"the entry {entry.name!r} is only for {', '.join(entry.for_data)}, and the "
                    f"data sets left are {', '.join(sorted(data_names))}; name a matching pair"
                )
        if limit is not None:
            data = tuple(
                replace(source, limit=_pick_lower_limit(limit, source.limit or self.limit))
                for source in data
            )
            limit = _pick_lower_limit(limit, self.limit)
        sweep = replace(
            self, data=data, entries=entries, seeds=seeds or self.seeds, limit=limit or self.limit
        )
        if only and not sweep.series:
            listing = "; ".join(
                f"{kind}: {', '.join(names) or 'none'}" for kind, names in choices.items()
            )
            raise ConfigError(
                f"this selection leaves no part of the sweep to run; it has {listing}"
            )
        return sweep

    @property
    def series(self) -> "list[PlannedSeries]":
        """All series, baselines first, series of an entry together."""
        planned_series = [
            PlannedSeries(
                entry=name,
                name=name,
                family=name,
                whose="baseline",
                source=source,
                settings=self._merge_settings(point),
            )
            for source in self.data
            for name, point in BASELINES.items()
            if name in self.baselines
        ]
        for entry in self.entries:
            path, budgets = next(iter(entry.budget.items()), (None, (None,)))
            for values in product(*entry.grid.values()):
                point = dict(zip(entry.grid, values, strict=True))
                planned_series += [
                    PlannedSeries(
                        entry=entry.name,
                        name=_format_title(entry.name, point),
                        family=entry.family or entry.name,
                        whose=entry.whose,
                        source=source,
                        settings=self._merge_settings(
                            {**entry.set, **entry.for_data.get(source.row_name, {}), **point}
                        ),
                        point=point,
                        path=path,
                        budgets=tuple(budgets),
                        start=entry.start,
                        max_budget=entry.most,
                    )
                    for source in self.data
                    if not entry.for_data or source.row_name in entry.for_data
                ]
        names = [(series.name, series.source.row_name) for series in planned_series]
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise ConfigError(
                f"two series of a sweep have the same name, {twice[0]!r}; rename one entry"
            )
        return planned_series

    def _merge_settings(self, settings: Point) -> Point:
        return {
            **{path: value for path, value in self.common.items() if path not in settings},
            **settings,
        }


def _pick_lower_limit(limit: int, current_limit: int | None) -> int:
    return limit if current_limit is None else min(limit, current_limit)


def find_packaged_file(name: str | Path, folder: Path = CONF_FOLDER, kind: str = "sweep") -> Path:
    """Returns the path of a file, or of a packaged file."""
    path = Path(name)
    if path.exists() or path.suffix != "" or path.name != str(name):
        return path
    file = folder / f"{name}.yaml"
    if not file.exists():
        names = sorted(item.stem for item in folder.glob("*.yaml"))
        raise UnknownName(f"{kind}, as a file or in the package,", str(name), names)
    return file


def build_section(section: Any, source: Any, name: str) -> Any:
    """Builds a section of a sweep from options or a bare name."""
    if isinstance(source, section):
        return source
    values = {"name": source} if isinstance(source, str) else source
    if not isinstance(values, Mapping):
        raise ConfigError(f"{name} of a sweep must be a mapping of options, or a list of them")
    return section(**values)


def _format_title(name: str, point: Point) -> str:
    """Formats a series' name with the options that distinguish it."""
    return ", ".join(
        [
            name,
            *(f"{path.rpartition('.')[2]} {_format_value(value)}" for path, value in point.items()),
        ]
    )


def _format_value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, kw_only=True)
class PlannedCell:
    """One budget with one seed; it becomes a row.

    Attributes:
        budget: the value; None if there is none.
        seed: one of the sweep's.
        config: options with their own seed, derived from data, options and `seed`; None if nothing
            is privatized.
        key: the fingerprint of everything that determines the row.
    """

    budget: Any
    seed: int
    config: Config | None
    key: str


@dataclass(frozen=True, kw_only=True)
class PlannedSeries:
    """One mechanism with its options on one data set, at several budgets.

    Attributes:
        entry: the name of its entry.
        name: the entry's name with the options of the grid.
        family: the name under which it is compared.
        whose: paper, ours or baseline.
        source: the data set.
        settings: options by dotted path, without budget and seed.
        point: the options of the grid.
        path: the budget's path; None if there is none.
        budgets: values; ("risk",) if they are searched for; (None,) if there is none.
        start: the budget at which the search starts.
        max_budget: the largest budget of the search; None for no limit.
    """

    entry: str
    name: str
    family: str
    whose: str
    source: SweepData
    settings: Point = field(repr=False)
    point: Point = field(default_factory=dict)
    path: str | None = None
    budgets: tuple[Any, ...] = (None,)
    start: float = 10.0
    max_budget: float | None = None

    @property
    def is_searched(self) -> bool:
        """True if its budgets are searched for at a given risk."""
        return self.budgets == (RISK_BUDGET,)

    def build_config(self, budget: Any, seed: int | None = None) -> Config | None:
        """Builds the options at a budget; None for the baseline `identity`.

        Raises:
            ConfigError: an option is wrong.
            BudgetError: the budget is wrong.
            UnknownName: there is no such option.
        """
        if self.whose == "baseline" and self.name == "identity":
            return None
        settings = {**self.settings, **({} if self.path is None else {self.path: budget})}
        return resolve(overrides={**settings, **({} if seed is None else {"seed": seed})})

    @property
    def task_word_count(self) -> int:
        """Number of important words learned from training texts; 0 for none.

        Raises:
            ConfigError: it is negative or not a whole number.
        """
        count = self.settings.get(LEARNED_PATH, 0)
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            description = (
                quote_short(count) if isinstance(count, str) else f"a {type(count).__name__}"
            )
            raise ConfigError(
                f"learned of {self.name!r} must be a whole number of 0 or more, got {description}"
            )
        return count

    @property
    def has_task_words(self) -> bool:
        """True if it uses important words, learned or listed."""
        return bool(self.task_word_count) or "protect.important" in self.settings

    def add_task_words(self, words: tuple[str, ...]) -> Self:
        """Returns the series with the learned words as its important words."""
        settings = {path: value for path, value in self.settings.items() if path != LEARNED_PATH}
        return replace(
            self, settings={**settings, "protect.importance": "list", "protect.important": words}
        )

    def build_cells(self, sweep: Sweep, digest: str) -> Iterator[PlannedCell]:
        """Yields a cell for each budget and seed.

        Args:
            sweep: the sweep, with its seeds and evaluations.
            digest: digest of the data set.
        """
        evaluation = {
            "rows": VERSION,
            "data": digest,
            "task": self.source.task,
            "source": [self.source.name, self.source.subset, self.source.columns],
            "attacks": sweep.attacks,
            "attacked": sweep.attacked,
            "measures": sweep.measures,
            "prior": EXPOSURE_PRIOR,
            "endpoint": _identify_endpoint(sweep.endpoint),
            **({"local": _identify_endpoint(sweep.local)} if sweep.local else {}),
            **({"prompts": sweep.prompts} if sweep.prompts else {}),
        }
        for budget, seed in product(self.budgets, sweep.seeds):
            config = self.build_config(budget)
            draw_key = _hash_values(
                {"data": digest, "config": config and find_non_defaults(config), "seed": seed}
            )
            key = _hash_values({**evaluation, "drawn": draw_key})
            seeded_config = self.build_config(budget, int(draw_key, 16))
            yield PlannedCell(budget=budget, seed=seed, config=seeded_config, key=key)


def _identify_endpoint(endpoint: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Returns what the answers of an endpoint depend on: not the port of a model of a file."""
    if endpoint is None or not endpoint.get("identity"):
        return endpoint
    return {name: value for name, value in endpoint.items() if name != "url"}


VERSION = 1
"""Version of cells; raised when the same options give other figures."""


def find_non_defaults(config: Config) -> dict[str, Any]:
    """Returns the options that differ from their defaults, and the mechanism.

    Thus a new option leaves fingerprints unchanged where it is not set. If you change a default,
    raise `VERSION`.
    """

    def find_differences(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
        differences: dict[str, Any] = {}
        for name, value in values.items():
            difference = (
                find_differences(value, defaults.get(name) or {})
                if isinstance(value, Mapping)
                else value
            )
            if difference != defaults.get(name) and (difference or not isinstance(value, Mapping)):
                differences[name] = difference
        return differences

    return find_differences(config.to_dict(), {**Config().to_dict(), "mechanism": {}})


def _hash_values(value: Mapping[str, Any]) -> str:
    content = json.dumps(value, sort_keys=True, default=_convert_value)
    return blake2b(content.encode(), digest_size=12).hexdigest()


def _convert_value(value: Any) -> Any:
    return asdict(value) if hasattr(value, "__dataclass_fields__") else str(value)
