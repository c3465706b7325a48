"""Where options come from: packaged profiles, YAML files, the environment, settings typed on a command line.

In: a name, a path, variables, texts. Out: of each source a `Layer`, values by dotted path; a typed text as a value.
Not here: which options there are, which type each has, and which layer wins (`config`).
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from textveil.config.options import complaint
from textveil.errors import ConfigError, UnknownName

PROFILES = files("textveil") / "data" / "profiles"
PREFIX = "TEXTVEIL_"
RESERVED = frozenset({"TEXTVEIL_CORPORA", "TEXTVEIL_DEBUG", "TEXTVEIL_LLM_KEY", "TEXTVEIL_PROGRESS"})
"""Environment variables with the prefix that are no options."""

LONGEST = 1 << 20
"""Bytes that a configuration file may have."""

SECTIONS = ("words", "table", "mechanism", "rerank", "protect", "groups", "names")
_SHORT = {"mechanism": "mechanism.name", "table": "table.name"}


@dataclass(frozen=True, kw_only=True)
class Layer:
    """What one source sets.

    Attributes:
        source: how errors name it ("the environment").
        values: by dotted path.
        fold: whether its names do not tell upper from lower case.
    """

    source: str
    values: Mapping[str, Any]
    fold: bool = False


def collect(pairs: Iterable[tuple[str, Any]], source: str) -> dict[str, Any]:
    """Values by path: short paths are written out ("table" is "table.name"), and a path has one value.

    Raises:
        ConfigError: a path has two values.
    """
    values: dict[str, Any] = {}
    for path, value in pairs:
        path = _SHORT.get(path, path)
        if path in values and values[path] != value:
            raise ConfigError(f"{source} must set {path} once, and sets it to two values")
        values[path] = value
    return values


def assignments(pairs: Iterable[str], flags: Mapping[str, str | None] | None = None) -> dict[str, Any]:
    """Command-line settings, "mechanism.L=5", as values by dotted path, together with those that have a flag.

    Raises:
        ConfigError: a setting has no "=", or one path is set to two values. What was typed is not repeated.
    """
    typed = [(path, value) for path, value in (flags or {}).items() if value is not None]
    for pair in pairs:
        path, equals, text = pair.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][\w-]*(\.[\w-]+)*", path.strip()):
            raise ConfigError("a setting must read path=value, such as -o mechanism.L=5")
        typed.append((path.strip(), text))
    return collect(typed, "the command line")


def read_environment(environ: Mapping[str, str], known: Collection[str]) -> Layer:
    """The options among environment variables, such as TEXTVEIL_MECHANISM__K=20.

    Args:
        environ: variables; those without the prefix are not looked at.
        known: paths that stand in lower case, whatever case a variable has; others keep the case of their last part.
    """
    pairs = []
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in RESERVED:
            path = name.removeprefix(PREFIX).replace("__", ".")
            section, dot, option = path.partition(".")
            pairs.append((path.lower() if path.lower() in known else section.lower() + dot + option, environ[name]))
    return Layer(source="the environment", values=collect(pairs, "the environment"), fold=True)


# ---- YAML ------------------------------------------------------------------------------------------------------------


def profiles() -> dict[str, str]:
    """The packaged profiles and their one-line descriptions."""
    return {name: str(_parse_profile(name).get("description", "")) for name in _profile_names()}


def read_profile(name: str) -> Layer:
    """A packaged profile; `UnknownName` if there is none of that name."""
    source = f"the profile {name!r}"
    return Layer(source=source, values=collect(_flatten(_parse_profile(name)), source))


def read_file(path: Path) -> Layer:
    """A YAML file in the layout that `Config.to_dict` gives; `ConfigError` if it cannot be read, or is no mapping."""
    source = f"the file {str(path)!r}"
    return Layer(source=source, values=collect(_flatten(read_mapping(path)), source))


def read_mapping(path: Path) -> dict[Any, Any]:
    """What a YAML file holds, a mapping; `ConfigError` if it cannot be read, or is none."""
    source = f"the file {str(path)!r}"
    try:
        with path.open("rb") as stream:
            content = stream.read(LONGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise ConfigError(f"the configuration file {str(path)!r} cannot be read: {reason}") from None
    if len(content) > LONGEST:
        raise ConfigError(f"{source} must have at most {LONGEST:,} bytes")
    return _parse(content, source)


def _profile_names() -> list[str]:
    return sorted(each.name.removesuffix(".yaml") for each in PROFILES.iterdir() if each.name.endswith(".yaml"))


def _parse_profile(name: str) -> dict[Any, Any]:
    if name not in _profile_names():
        raise UnknownName("profile", name, _profile_names())
    return _parse((PROFILES / f"{name}.yaml").read_bytes(), f"the profile {name!r}")


def _parse(content: bytes, source: str) -> dict[Any, Any]:
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


def _flatten(values: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """{"mechanism": {"L": 5}} as ("mechanism.L", 5)."""
    for name, value in values.items():
        if name in SECTIONS and isinstance(value, Mapping):
            yield from ((f"{name}.{option}", each) for option, each in value.items())
        elif name != "description" and not (name in SECTIONS and value is None):
            yield str(name), value


# ---- values typed as text --------------------------------------------------------------------------------------------

_FLOAT = re.compile(r"[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|\.?inf|infinity|infinite|\.?nan)", re.IGNORECASE)


def scalar(text: str) -> Any:
    """A value typed as text: YAML, but with the numbers that people type and without its surprises.

    1e2, nan and inf are numbers; no, on, off, 12:30 and 2024-01-01 stay texts (an option that is true or
    false reads the first three itself); 010 is ten.
    """
    bare = text.strip()
    if re.fullmatch(r"[-+]?[0-9]+", bare):
        return int(bare) if len(bare) <= 300 else _finite(bare)
    if _FLOAT.fullmatch(bare):
        named = bare.lower().replace(".inf", "inf").replace(".nan", "nan").replace("infinite", "inf")
        return float(named) if named.endswith(("inf", "infinity", "nan")) else _finite(named)
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


def _finite(text: str) -> float:
    """The number; infinity only where it was spelled out, because an infinite budget lets words pass."""
    number = float(text)
    if math.isinf(number):
        raise ConfigError(f"a number must be at most 1.8e308 in size, got {text[:20]!r}; infinity is spelled inf")
    return number


def typed(path: str, value: Any, annotation: Any, *, shown: bool = True) -> Any:
    """A value as the type it must have. A text is read as a scalar first, then taken as it stands.

    Args:
        path: the option, for the error.
        value: what a source gave for it.
        annotation: the type; None or Any takes everything.
        shown: whether the error may show the value.

    Raises:
        ConfigError: the value is of another type.
    """
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
        raise complaint(first, path=path, secret=() if shown else (path,))
    raise ConfigError(f"{path} must be a number" + (f", got {readings[0]!r}" if shown else ""))
