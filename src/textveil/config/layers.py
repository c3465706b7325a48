"""Merges layers of options into one configuration.

Defaults, profile, file, environment, and what a caller sets.

In: layers of values by dotted path. Out: a resolved `Config`.
Not here: which options exist (`sections`), and how each source is read (`option_sources`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from textveil.config import option_sources, registry
from textveil.config.option_sources import Layer, collect_values, convert_value
from textveil.config.sections import _OPTIONAL, Config, MechanismOptions, TableOptions, WordsOptions
from textveil.errors import MIN_SIMILARITY, BudgetError, ConfigError, UnknownName, list_names

_PATHS = (
    "mechanism.name",
    *(f"words.{field.name}" for field in fields(WordsOptions)),
    *(f"table.{field.name}" for field in fields(TableOptions)),
    *(f"{name}.{field.name}" for name, section in _OPTIONAL.items() for field in fields(section)),
    "epsilon",
    "risk",
    "prior",
    "seed",
    "profile",
)
"""All option paths except a mechanism's own."""

_WHOLE_TEXT_PATHS = ("texts.", "epsilon", "seed", "profile")
"""The beginnings of the paths that go with whole texts."""

CALLER_SOURCE = "the options"
"""The source of options that a caller sets.

On a command line, or as keywords.
"""


def convert_keywords(**values: Any) -> dict[str, Any]:
    """Converts Python keywords to dotted paths.

    `epsilon`, `risk`, `prior`, `seed`, `profile`, `table`, `mechanism` and the sections `words`,
    `rerank`, `protect`, `groups`, `names`, `figures` and `texts` keep their names; all others are the mechanism's
    options. A section given as mapping changes only its keys.

    >>> keywords(epsilon=80, L=4, table="minilm-s")
    {'epsilon': 80, 'mechanism.L': 4, 'table.name': 'minilm-s'}
    """
    paths: dict[str, Any] = {}
    for name, value in values.items():
        if name == "words" or name in _OPTIONAL:
            section = {"words": WordsOptions, **_OPTIONAL}[name]
            section_options = vars(value) if isinstance(value, section) else {**value}
            paths |= {
                f"{name}.{option}": option_value for option, option_value in section_options.items()
            }
        elif name in ("table", "mechanism"):
            paths[f"{name}.name"] = value
        else:
            paths[name if name in _PATHS else f"mechanism.{name}"] = value
    return paths


def resolve(
    *,
    profile: str | None = None,
    file: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    default: str | None = None,
    complete: bool = True,
) -> Config:
    """Merges the layers: defaults < profile < file < environment < overrides.

    A budget in an upper layer (`epsilon` or the mechanism's own parameter) replaces one in a lower
    layer. When a layer names another mechanism, the options that lower layers set for their
    mechanism are dropped.

    Args:
        profile: a packaged profile, see `sources.describe_profiles`. It takes precedence over a
            profile that a layer names.
        file: a YAML file in the layout of `Config.to_dict`.
        environ: environment variables such as TEXTVEIL_MECHANISM__K=20; those without the prefix
            are ignored.
        overrides: values by dotted path ("mechanism.L": 5); strings are read as YAML scalars.
        default: the profile used if no layer names a profile or a mechanism.
        complete: whether a mechanism that needs a budget must have one.

    Raises:
        UnknownName: no mechanism, table, profile or option has that name; the nearest one is
            suggested.
        BudgetError: a budget is missing, set twice, not a number or negative.
        ConfigError: a file cannot be read, or a value has the wrong type.
    """
    layers = []
    if file is not None:
        layers.append(option_sources.read_file(Path(file)))
    if environ is not None:
        layers.append(option_sources.read_environment(environ, _PATHS))
    if overrides is not None:
        layers.append(
            Layer(source=CALLER_SOURCE, values=collect_values(overrides.items(), CALLER_SOURCE))
        )
    profile = profile or _find_last(layers, "profile")
    has_whole_texts = _find_last(layers, "texts.unit") not in (None, "word")
    if profile is None and _find_last(layers, "mechanism.name") is None and not has_whole_texts:
        profile = default
    if profile is not None:
        layers.insert(0, option_sources.read_profile(profile))
    if _find_last(layers, "texts.unit") not in (None, "word"):
        _refuse_word_options(layers)
    return _build_config(layers, profile, complete)


def _refuse_word_options(layers: Iterable[Layer]) -> None:
    """Refuses options of words beside whole texts."""
    for layer in layers:
        if paths := [path for path in layer.values if not path.startswith(_WHOLE_TEXT_PATHS)]:
            raise ConfigError(
                "texts.unit=document or sentence (--unit) replaces whole texts, by texts.library "
                "(--library) and epsilon (--epsilon) alone, and has no options of words: leave out "
                f"{list_names(paths)} (set by {layer.source})"
            )


def _build_config(layers: list[Layer], profile: str | None, complete: bool) -> Config:
    name = _find_last(layers, "mechanism.name") or MechanismOptions().name
    parameter, needed = registry.find_budget_parameter(name)
    own_paths = [f"mechanism.{parameter}"] if parameter else []
    budgets = ["epsilon", *own_paths, "groups.base", "risk"]
    merged = _merge(
        # Dropped first: options of another mechanism would be refused as unknown.
        [_correct_paths(layer, name) for layer in _drop_foreign_options(layers, name)],
        budgets,
    )
    mechanism_options = _select_below("mechanism.", merged)
    mechanism_options.pop("name", None)
    result = Config(
        words=WordsOptions(**_convert_section(WordsOptions, "words", merged)),
        table=TableOptions(**_convert_section(TableOptions, "table", merged)),
        mechanism=MechanismOptions(name=name, options=_convert_options(name, mechanism_options)),
        **{
            name: section(**_convert_section(section, name, merged))
            for name, section in _OPTIONAL.items()
        },
        epsilon=convert_value("epsilon", merged.get("epsilon"), float | None),
        risk=convert_value("risk", merged.get("risk"), float | None),
        prior=convert_value("prior", merged.get("prior"), str | None),
        seed=convert_value("seed", merged.get("seed"), int | None),
        profile=profile,
    )
    registry.find_entry("table", result.table.name)
    if result.texts.unit != "word":
        if complete and result.epsilon is None:
            raise BudgetError(
                f"texts.unit={result.texts.unit} needs a budget: set epsilon (--epsilon), for each "
                f"{result.texts.unit}"
            )
    elif complete and needed and not _has_budget(result, parameter):
        or_parameter = f", or {own_paths[0]} (-o {own_paths[0]}=...)" if own_paths else ""
        raise BudgetError(
            f"the mechanism {name!r} needs a budget: set epsilon (--epsilon){or_parameter}"
        )
    return result


def _select_below(prefix: str, merged: Mapping[str, Any]) -> dict[str, Any]:
    paths = [path for path in merged if path.startswith(prefix)]
    return {path.removeprefix(prefix): merged[path] for path in paths}


def _has_budget(config: Config, parameter: str | None) -> bool:
    """Says whether a word's budget is set anywhere.

    By groups, an epsilon, a risk, or the mechanism's own parameter.
    """
    budgets = (config.groups.base, config.epsilon, config.risk)
    parameter_value = config.mechanism.options.get(parameter or "")
    return bool(config.groups.has_fixed_budgets) or any(
        budget is not None for budget in (*budgets, parameter_value)
    )


def _merge(layers: Iterable[Layer], budgets: list[str]) -> dict[str, Any]:
    """Merges upper layers over lower ones.

    A budget replaces the one below, even under the other of the two paths.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        budget_paths = [path for path in budgets if layer.values.get(path) is not None]
        if len(budget_paths) > 1:
            raise BudgetError(
                f"{layer.source} must set {' or '.join(budget_paths)}, not both: each follows "
                "from the other"
            )
        # A prior goes with a risk only, so another budget removes it, too.
        replaced = budgets if "risk" in budget_paths else [*budgets, "prior"]
        lower = {
            path: value
            for path, value in merged.items()
            if not budget_paths or path not in replaced
        }
        merged = {**lower, **layer.values}
    return merged


def _drop_foreign_options(layers: list[Layer], name: str) -> list[Layer]:
    """Drops options that were set for another mechanism than `name`.

    Options belong to the mechanism named by their layer, or by the nearest layer below; otherwise
    to `name`.
    """
    result: list[Layer] = []
    mechanism: str | None = None
    for layer in layers:
        mechanism = layer.values.get("mechanism.name") or mechanism
        if mechanism is not None and mechanism != name:
            remaining = {
                path: value
                for path, value in layer.values.items()
                if not path.startswith("mechanism.")
            }
            result.append(replace(layer, values=remaining))
        else:
            result.append(layer)
    return result


def _correct_paths(layer: Layer, mechanism: str) -> Layer:
    """Checks every path of a layer, and corrects its case.

    Paths from the environment get the case of the options they stand for.
    """
    pairs = [(_resolve_path(path, layer, mechanism), value) for path, value in layer.values.items()]
    return replace(layer, values=collect_values(pairs, layer.source))


def _resolve_path(path: str, layer: Layer, mechanism: str) -> str:
    matches = _match_paths(path, _PATHS, layer.fold)
    if not matches and path.startswith("mechanism."):
        options = _read_options(mechanism)
        matches = (
            _match_paths(path, options.keywords, layer.fold, "mechanism.")
            or [path] * options.is_open
        )
    if not matches:
        raise _build_unknown(layer.source, path, mechanism)
    if len(matches) > 1:
        raise ConfigError(
            f"{layer.source} cannot distinguish {' and '.join(matches)}; set them in a file or "
            "with -o, which are case-sensitive"
        )
    return matches[0]


def _match_paths(path: str, candidates: Iterable[str], fold: bool, prefix: str = "") -> list[str]:
    """Returns the known paths that match a path.

    Itself, or with `fold` all that differ only in case.
    """
    paths = [prefix + candidate for candidate in candidates]
    if path in paths and not fold:
        return [path]
    return [candidate for candidate in paths if fold and candidate.lower() == path.lower()]


def _find_similar(path: str, paths: Sequence[str]) -> list[str]:
    """Returns the paths with the same last part, or a similar one."""
    ends = {candidate: candidate.rpartition(".")[2].lower() for candidate in paths}
    last = path.rpartition(".")[2].lower()
    similar = [last]
    if last not in ends.values():
        similar = get_close_matches(last, {*ends.values()}, n=len(ends), cutoff=MIN_SIMILARITY)
    return [candidate for candidate in paths if ends[candidate] in similar]


def _build_unknown(source: str, path: str, mechanism: str) -> UnknownName:
    """Builds the error for an unknown path.

    It suggests paths with the same or a similar last part.
    """
    paths = [*_PATHS, *(f"mechanism.{option}" for option in _read_options(mechanism).keywords)]
    suggestions = _find_similar(path, paths)
    if "." in path:
        section = path.partition(".")[0] + "."
        paths = [candidate for candidate in paths if candidate.startswith(section)] or paths
    return UnknownName(
        "option" if source == CALLER_SOURCE else f"option in {source}", path, suggestions or paths
    )


def _read_options(mechanism: str) -> registry.Options:
    """Returns a mechanism's options by name.

    Without those that are set by another path.
    """
    options = registry.read_options(registry.load("mechanism", mechanism))
    own_options = {
        name: option for name, option in options.keywords.items() if name not in ("name", "epsilon")
    }
    return registry.Options(keywords=own_options, is_open=options.is_open)


def _find_last(layers: Iterable[Layer], path: str) -> str | None:
    """Returns a name's value in the topmost layer that has it."""
    result = None
    for layer in layers:
        value = layer.values.get(path)
        if value is not None and not isinstance(value, str):
            raise ConfigError(
                f"{path} in {layer.source} must be a name, got {type(value).__name__}"
            )
        result = value or result
    return result


def _convert_section(section: type, name: str, merged: Mapping[str, Any]) -> dict[str, Any]:
    """Converts the options of one section to their fields' types."""
    return {
        field.name: convert_value(
            f"{name}.{field.name}",
            merged[f"{name}.{field.name}"],
            field.type,
            show_value=field.repr,
        )
        for field in fields(section)
        if f"{name}.{field.name}" in merged
    }


def _convert_options(mechanism: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Converts the mechanism's options to their types in the signature."""
    if not options:  # nothing to import the mechanism for
        return {}
    parameters = _read_options(mechanism).keywords
    return {
        name: convert_value(
            f"mechanism.{name}", value, parameters[name].annotation if name in parameters else None
        )
        for name, value in options.items()
    }
