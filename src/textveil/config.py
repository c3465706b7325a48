"""The options of a run: from profiles, files, the environment and the command line to one frozen `Config`.

In: dotted paths and their values, in layers. Out: `Config` with its sections for words, table and mechanism.
Not here: what a mechanism's options mean (its own parts check them), and which names exist (`registry`).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass as plain_dataclass
from dataclasses import fields
from difflib import get_close_matches
from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from textveil import registry
from textveil.errors import BudgetError, ConfigError, UnknownName
from textveil.options import complaint, options

PREFIX = "TEXTVEIL_"
RESERVED = frozenset({"TEXTVEIL_DEBUG"})
"""Environment variables with the prefix that are no options."""


@options("words.")
class WordsOptions:
    """How text becomes words, and what is done with words that no table row stands for.

    Attributes:
        unit: "word", or "wordpiece" for the pieces of a Hugging Face tokenizer.
        casing: "lower" releases lower-cased words; "copy" copies each word's casing, and the mask records it.
        stopwords: "pass" releases the words of a public list as they are; "protect" privatizes them too.
        oov: a word outside the table becomes a public "surrogate" row or a "placeholder", raises an "error",
            or is kept ("keep": the statement is then infinite).
        tokenizer: a folder, tokenizer.json file or hub id; for the unit "wordpiece" only.
    """

    unit: Literal["word", "wordpiece"] = "word"
    casing: Literal["lower", "copy"] = "lower"
    stopwords: Literal["pass", "protect"] = "pass"
    oov: Literal["surrogate", "placeholder", "error", "keep"] = "surrogate"
    tokenizer: str | None = None


@options("table.")
class TableOptions:
    """Which embedding table, on which device; "chord" normalises its rows, "euclidean" takes them raw."""

    name: str = "minilm"
    metric: Literal["chord", "euclidean"] = "chord"
    device: str = "cpu"


@options("mechanism.")
class MechanismOptions:
    """A mechanism's name and its options, which the mechanism's own parts check."""

    name: str = "noise"
    options: dict[str, Any] = Field(default_factory=dict)


@options()
class Config:
    """Everything that decides a run.

    Attributes:
        epsilon: the promised bound per word, at least 0; infinity passes words through, and is recorded; None
            where the mechanism's own parameter is set instead, or where it needs no budget.
        seed: None for system randomness; a number gives repeatable draws, and no privacy against those who
            know it.
        profile: the profile that the options started from.
    """

    words: WordsOptions = Field(default_factory=WordsOptions)
    table: TableOptions = Field(default_factory=TableOptions)
    mechanism: MechanismOptions = Field(default_factory=MechanismOptions)
    epsilon: float | None = None
    seed: int | None = Field(default=None, ge=0)
    profile: str | None = None

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            require_budget(self.epsilon, "epsilon")

    def to_dict(self) -> dict[str, Any]:
        """Plain values in the layout of a configuration file, from which `resolve` makes the same."""
        return {
            "profile": self.profile,
            "words": {field.name: getattr(self.words, field.name) for field in fields(self.words)},
            "table": {field.name: getattr(self.table, field.name) for field in fields(self.table)},
            "mechanism": {"name": self.mechanism.name, **_plain(self.mechanism.options)},
            "epsilon": self.epsilon,
            "seed": self.seed,
        }

    def to_yaml(self) -> str:
        """`to_dict` as YAML."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)


def require_budget(value: object, name: str) -> None:
    """Refuse a budget that is not a number of at least 0 (`BudgetError`). Infinity is allowed."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BudgetError(f"{name} must be a number >= 0, got a {type(value).__name__}")
    if not value >= 0:  # NaN is not >= 0
        raise BudgetError(f"{name} must be a number >= 0, got {value!r}")


# ---- from layers to a Config -------------------------------------------------------------------------------


@plain_dataclass(frozen=True, kw_only=True)
class _Layer:
    """Dotted paths and values from one source; `fold` where its names do not tell upper from lower case."""

    source: str
    values: Mapping[str, Any]
    fold: bool = False


def resolve(
    *,
    profile: str | None = None,
    file: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    complete: bool = True,
) -> Config:
    """Put the layers together: defaults < profile < file < environment < overrides.

    A budget in an upper layer (`epsilon` or the mechanism's own parameter) replaces one in a lower layer, and
    a layer that names another mechanism leaves behind the options that a lower layer set for its own.

    Args:
        profile: a packaged profile, see `profiles()`. It goes before a profile that a layer names.
        file: a YAML file in the layout that `Config.to_dict` gives.
        environ: environment variables such as TEXTVEIL_MECHANISM__K=20; others are not looked at.
        overrides: values by dotted path ("mechanism.L": 5); texts are read as YAML scalars.
        complete: whether a mechanism that needs a budget must have one.

    Raises:
        UnknownName: no mechanism, table, profile or option has that name; the nearest one is proposed.
        BudgetError: a budget is missing, set twice, not a number or below 0.
        ConfigError: a file cannot be read, or a value is of the wrong type.
    """
    layers = []
    if file is not None:
        layers.append(_Layer(source=f"the file {str(file)!r}", values=_flatten(_read(Path(file)))))
    if environ is not None:
        layers.append(_Layer(source="the environment", values=_from_environment(environ), fold=True))
    if overrides is not None:
        layers.append(_Layer(source="the options", values=_shorthand(overrides)))
    profile = profile or _last(layers, "profile")
    if profile is not None:
        layers.insert(0, _Layer(source=f"the profile {profile!r}", values=_flatten(_read_profile(profile))))
    return _compose(layers, profile, complete)


def _compose(layers: list[_Layer], profile: str | None, complete: bool) -> Config:
    name = _last(layers, "mechanism.name") or MechanismOptions().name
    parameter, budget = registry.budget_parameter(name)
    layers = [_canonical(layer, name) for layer in _leave_behind(layers, name)]
    own = f"mechanism.{parameter}" if parameter else None
    merged: dict[str, Any] = {}
    for layer in layers:
        given = [path for path in ("epsilon", own) if path and layer.values.get(path) is not None]
        if len(given) > 1:
            raise BudgetError(f"{layer.source} must set epsilon or {own}, not both: one follows from the other")
        for path in given:  # a budget replaces the budget of the layers below, whichever of the two it was
            merged.pop("epsilon", None)
            merged.pop(own or path, None)
        merged.update(layer.values)
    for budget_path in filter(None, ("epsilon", own)):
        if merged.get(budget_path) is not None:
            merged[budget_path] = _validate(budget_path, merged[budget_path], float)
            require_budget(merged[budget_path], budget_path)
    if complete and budget and merged.get("epsilon") is None and (own is None or merged.get(own) is None):
        or_own = f", or {own} (-o {own}=...)" if own else ""
        raise BudgetError(f"the mechanism {name!r} needs a budget: set epsilon (--epsilon){or_own}")
    table = merged.get("table.name")
    if isinstance(table, str):
        registry.entry("table", table)
    prefix = "mechanism."
    options = {path.removeprefix(prefix): value for path, value in merged.items() if path.startswith(prefix)}
    options.pop("name", None)
    if parameter is not None and options.get(parameter, 0) is None:
        del options[parameter]
    return Config(
        words=WordsOptions(**_section(WordsOptions, "words", merged)),
        table=TableOptions(**_section(TableOptions, "table", merged)),
        mechanism=MechanismOptions(name=name, options=_typed(name, options)),
        epsilon=merged.get("epsilon"),
        seed=_validate("seed", merged.get("seed"), int | None),
        profile=profile,
    )


def _leave_behind(layers: list[_Layer], name: str) -> list[_Layer]:
    """Drop the mechanism options that were set for another mechanism than `name`.

    Options belong to the mechanism that their layer, or the nearest one below, names; else to `name`.
    """
    kept: list[_Layer] = []
    named: str | None = None
    for layer in layers:
        named = layer.values.get("mechanism.name") or named
        if named is not None and named != name:
            others = {path: each for path, each in layer.values.items() if not path.startswith("mechanism.")}
            kept.append(_Layer(source=layer.source, values=others, fold=layer.fold))
        else:
            kept.append(layer)
    return kept


def _canonical(layer: _Layer, mechanism: str) -> _Layer:
    """Check every path of a layer, and give paths from the environment the case of the options they mean."""
    values: dict[str, Any] = {}
    for path, value in layer.values.items():
        found = _match(path, _paths(), layer.fold)
        if not found and path.startswith("mechanism."):
            options = _options(mechanism)
            found = _match(path, options.known, layer.fold, "mechanism.") or [path] * options.open
        if not found:
            raise _unknown(layer.source, path, mechanism)
        if len(found) > 1:
            raise ConfigError(
                f"{layer.source} cannot tell {' from '.join(found)}; set them in a file or with -o, "
                "where upper and lower case differ"
            )
        if found[0] in values and values[found[0]] != value:
            raise ConfigError(f"{layer.source} must set {found[0]} once, and sets it to two values")
        values[found[0]] = value
    return _Layer(source=layer.source, values=values, fold=layer.fold)


def _match(path: str, known: Iterable[str], fold: bool, prefix: str = "") -> list[str]:
    """The known paths that a path means: itself, or with `fold` all that differ from it in case only."""
    every = [prefix + each for each in known]
    if path in every and not fold:
        return [path]
    return [each for each in every if fold and each.lower() == path.lower()]


def _unknown(source: str, path: str, mechanism: str) -> UnknownName:
    """The complaint about a path, which proposes paths with the same or a near last part first."""
    known = [*_paths(), *(f"mechanism.{option}" for option in _options(mechanism).known)]
    ends = {each: each.rpartition(".")[2].lower() for each in known}
    last = path.rpartition(".")[2].lower()
    near = [each for each in known if ends[each] == last]
    near = near or [each for each in known if get_close_matches(last, [ends[each]], cutoff=0.6)]
    if "." in path:
        section = path.partition(".")[0] + "."
        known = [each for each in known if each.startswith(section)] or known
    return UnknownName(f"option in {source}", path, near or known)


def _options(mechanism: str) -> registry.Options:
    """The options of a mechanism by name, without those that have a path of their own."""
    found = registry.signature(registry.load("mechanism", mechanism))
    known = {name: option for name, option in found.known.items() if name not in ("name", "epsilon")}
    return registry.Options(known=known, open=found.open)


def _paths() -> list[str]:
    words = [f"words.{field.name}" for field in fields(WordsOptions)]
    table = [f"table.{field.name}" for field in fields(TableOptions)]
    return ["mechanism.name", *words, *table, "epsilon", "seed", "profile"]


def _last(layers: Iterable[_Layer], path: str) -> str | None:
    """The value of a name in the uppermost layer that has one."""
    found = None
    for layer in layers:
        value = layer.values.get(path)
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"{path} in {layer.source} must be a name, got a {type(value).__name__}")
        found = value or found
    return found


# ---- sources -----------------------------------------------------------------------------------------------


def profiles() -> dict[str, str]:
    """The packaged profiles and their one-line descriptions."""
    return {name: str(_read_profile(name).get("description", "")) for name in _profile_names()}


def keywords(**values: Any) -> dict[str, Any]:
    """Python keywords as dotted paths.

    `epsilon`, `seed`, `profile`, `table`, `mechanism` and `words` mean themselves; others are the
    mechanism's options.

    >>> keywords(epsilon=80, L=4, table="minilm-s")
    {'epsilon': 80, 'mechanism.L': 4, 'table.name': 'minilm-s'}
    """
    paths: dict[str, Any] = {}
    for name, value in values.items():
        if name == "words":
            options = value if isinstance(value, WordsOptions) else WordsOptions(**value)
            paths |= {f"words.{field.name}": getattr(options, field.name) for field in fields(options)}
        elif name in ("table", "mechanism"):
            paths[f"{name}.name"] = value
        elif name in ("epsilon", "seed", "profile"):
            paths[name] = value
        else:
            paths[f"mechanism.{name}"] = value
    return paths


def assignments(pairs: Iterable[str], flags: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Command-line settings, "mechanism.L=5", as values by dotted path, together with those that have a flag.

    Raises:
        ConfigError: a setting has no "=", or one path is set to two values. What was typed is not repeated.
    """
    values: dict[str, Any] = {path: value for path, value in (flags or {}).items() if value is not None}
    for pair in pairs:
        path, equals, text = pair.partition("=")
        path = path.strip()
        if not equals or not re.fullmatch(r"[A-Za-z_][\w-]*(\.[\w-]+)*", path):
            raise ConfigError("a setting must read path=value, such as -o mechanism.L=5")
        path = _SHORT.get(path, path)
        if path in values and str(values[path]) != text:
            raise ConfigError(f"{path} must be set once, and is set to two values on the command line")
        values.setdefault(path, text)
    return values


_SHORT = {"mechanism": "mechanism.name", "table": "table.name"}


def _shorthand(values: Mapping[str, Any]) -> dict[str, Any]:
    return {_SHORT.get(path, path): value for path, value in values.items()}


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in RESERVED:
            path = name.removeprefix(PREFIX).replace("__", ".")
            section, dot, option = path.partition(".")
            path = path.lower() if path.lower() in _paths() else section.lower() + dot + option
            path = _SHORT.get(path, path)
            if values.setdefault(path, environ[name]) != environ[name]:
                raise ConfigError(f"the environment must set {path} once, and sets it to two values")
    return values


def _profile_names() -> list[str]:
    folder = files("textveil") / "data" / "profiles"
    return sorted(each.name.removesuffix(".yaml") for each in folder.iterdir() if each.name.endswith(".yaml"))


def _read_profile(name: str) -> dict[str, Any]:
    if name not in _profile_names():
        raise UnknownName("profile", name, _profile_names())
    file = files("textveil") / "data" / "profiles" / f"{name}.yaml"
    return _parse(file.read_bytes(), f"the profile {name!r}")


def _read(path: Path) -> dict[str, Any]:
    try:
        return _parse(path.read_bytes(), f"the file {str(path)!r}")
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        if isinstance(error, ConfigError):
            raise
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise ConfigError(f"the configuration file {str(path)!r} cannot be read: {reason}") from None


def _parse(content: bytes, source: str) -> dict[str, Any]:
    try:
        values = yaml.safe_load(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source} must be UTF-8, and is not at byte {error.start}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # ValueError: an impossible date, for one
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise ConfigError(f"{source} must be YAML, and is not{where}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"{source} must be a mapping of options, and is a {type(values).__name__}")
    return values


def _flatten(values: Mapping[Any, Any]) -> dict[str, Any]:
    """{"mechanism": {"L": 5}} as {"mechanism.L": 5}."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if name == "description":
            continue
        if name in ("words", "table", "mechanism") and isinstance(value, Mapping):
            flat |= {f"{name}.{option}": each for option, each in value.items()}
        elif name in ("words", "table", "mechanism") and value is None:
            continue
        else:
            flat[_SHORT.get(str(name), str(name))] = value
    return flat


# ---- values ------------------------------------------------------------------------------------------------


_FLOAT = re.compile(r"[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|\.?inf|infinity|\.?nan)", re.IGNORECASE)


def scalar(text: str) -> Any:
    """A value typed as text: YAML, but with the numbers that people type and without its surprises.

    1e2, nan and inf are numbers; no, on, off, 12:30 and 2024-01-01 stay texts (an option that is true or
    false reads the first three itself); 010 is ten.
    """
    bare = text.strip()
    if re.fullmatch(r"[-+]?[0-9]+", bare):
        return int(bare) if len(bare) <= 300 else float(bare)
    if _FLOAT.fullmatch(bare):
        return float(bare.lower().replace(".inf", "inf").replace(".nan", "nan"))
    if bare.lower() in ("true", "false"):
        return bare.lower() == "true"
    if bare.lower() in ("null", "none", "~", ""):
        return None
    if bare[0] in "[{\"'":
        try:
            return yaml.safe_load(bare)
        except (yaml.YAMLError, RecursionError, ValueError):
            return text
    return text


def _section(section: type, name: str, merged: Mapping[str, Any]) -> dict[str, Any]:
    """The options of one section, each read with the type of its field."""
    return {
        field.name: _validate(f"{name}.{field.name}", merged[f"{name}.{field.name}"], field.type)
        for field in fields(section)
        if f"{name}.{field.name}" in merged
    }


def _typed(mechanism: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The mechanism's options, each read with the type in its signature."""
    if not options:  # then there is no need to import the mechanism
        return {}
    known = _options(mechanism).known
    return {
        name: _validate(f"mechanism.{name}", value, known[name].annotation if name in known else None)
        for name, value in options.items()
    }


def _validate(path: str, value: Any, annotation: Any) -> Any:
    """A value as the type it must have. A text is read as a scalar first, then taken as it stands."""
    readings = [scalar(value), value] if isinstance(value, str) else [value]
    if annotation is None or annotation is Any:
        return readings[0]
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))
    except Exception:  # a type that pydantic does not know: the mechanism checks the value itself
        return readings[0]
    first: ValidationError | None = None
    for reading in readings:
        try:
            found = adapter.validate_python(reading)
        except ValidationError as error:
            first = first or error
            continue
        if not (isinstance(reading, bool) and not isinstance(found, bool)):  # true is not the number 1
            return found
    if first is not None:
        raise complaint(first, path=path)
    raise ConfigError(f"{path} must be a number, got {readings[0]!r}")


def _plain(value: Any) -> Any:
    """Options as YAML and JSON can write them."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
