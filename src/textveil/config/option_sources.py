"""Sources of options: profiles, YAML files, the environment, the command line.

In: a name, a path, variables, strings. Out: a `Layer` per source, values by dotted path; a string
as a typed value.
Not here: which options exist and their types (`sections`), and which layer wins (`layers`).
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

from textveil.config.frozen import convert_error
from textveil.errors import ConfigError, UnknownName, quote, quote_short

PROFILES = files("textveil") / "data" / "profiles"
ENVIRONMENT_PREFIX = "TEXTVEIL_"
RESERVED_VARIABLES = frozenset(
    f"TEXTVEIL_{name}"
    for name in (
        *("CORPORA", "DEBUG", "KEYS", "LLM_KEY", "MCP_KEY", "PROGRESS"),
        *("STORE", "STORE_FILE", "STORE_KEY", "STORE_KEY_FILE"),
    )
)
"""Environment variables with the prefix that are not options."""

MAX_CONFIG_BYTES = 1 << 20
"""The size limit of a configuration file, in bytes."""

_PATH = re.compile(r"[A-Za-z_][\w-]*(\.[\w-]+)*")

YamlPath = tuple[str | int, ...]
"""The location of a value in a YAML file.

The names and numbers that lead to it.
"""

SECTIONS = (
    "words",
    "table",
    "mechanism",
    "rerank",
    "protect",
    "groups",
    "names",
    "figures",
    "identifiers",
    "texts",
)
IGNORED_SECTIONS = ("description", "gateway")
"""Sections of a file that are no options of texts: what a profile is, and options of a server."""

_SHORT_PATHS = {"mechanism": "mechanism.name", "table": "table.name"}


@dataclass(frozen=True, kw_only=True)
class Layer:
    """The settings of one source.

    Attributes:
        source: its name in errors ("the environment").
        values: by dotted path.
        fold: whether its names ignore case.
    """

    source: str
    values: Mapping[str, Any]
    fold: bool = False


def collect_values(pairs: Iterable[tuple[str, Any]], source: str) -> dict[str, Any]:
    """Collects values by path, with short paths expanded.

    "table" is "table.name"; each path has one value.

    Raises:
        ConfigError: a path has two values.
    """
    values: dict[str, Any] = {}
    for path, value in pairs:
        path = _SHORT_PATHS.get(path, path)
        if path in values and values[path] != value:
            raise ConfigError(f"{source} sets {path} to two different values; set it once")
        values[path] = value
    return values


def parse_assignments(
    pairs: Iterable[str], flags: Mapping[str, str | None] | None = None
) -> dict[str, Any]:
    """Collects command-line settings and flags by dotted path.

    A setting is such as "mechanism.L=5".

    Raises:
        ConfigError: a setting has no "=", or a path is set to two values. The input is not
            repeated.
    """
    typed = [(path, value) for path, value in (flags or {}).items() if value is not None]
    for pair in pairs:
        path, equals, text = pair.partition("=")
        if not equals or not _PATH.fullmatch(path.strip()):
            name = (
                f", but {quote(path.strip())} has no value" if _PATH.fullmatch(path.strip()) else ""
            )
            raise ConfigError(f"a setting has the form path=value, such as -o mechanism.L=5{name}")
        typed.append((path.strip(), text))
    return collect_values(typed, "the command line")


def read_environment(environ: Mapping[str, str], option_paths: Collection[str]) -> Layer:
    """Reads the options among environment variables.

    Such as TEXTVEIL_MECHANISM__K=20.

    Args:
        environ: variables; those without the prefix are ignored.
        option_paths: paths in lower case, which variables may write in any case; others keep the
            case of their last part.
    """
    pairs = []
    for name in sorted(environ):
        if name.startswith(ENVIRONMENT_PREFIX) and name not in RESERVED_VARIABLES:
            path = name.removeprefix(ENVIRONMENT_PREFIX).replace("__", ".")
            section, dot, option = path.partition(".")
            pairs.append(
                (
                    path.lower()
                    if path.lower() in option_paths
                    else section.lower() + dot + option,
                    environ[name],
                )
            )
    return Layer(
        source="the environment", values=collect_values(pairs, "the environment"), fold=True
    )


# ---- YAML ----------------------------------------------------------------------------------------


def describe_profiles() -> dict[str, str]:
    """Returns the packaged profiles and their one-line descriptions."""
    return {name: str(_parse_profile(name).get("description", "")) for name in _list_profiles()}


def read_profile(name: str) -> Layer:
    """Reads a packaged profile.

    `UnknownName` if there is no such profile.
    """
    source = f"the profile {name!r}"
    return Layer(source=source, values=collect_values(_flatten(_parse_profile(name)), source))


def read_file(path: Path) -> Layer:
    """Reads a YAML file in the layout of `Config.to_dict`.

    `ConfigError` if it cannot be read or is not a mapping.
    """
    source = f"the file {str(path)!r}"
    return Layer(source=source, values=collect_values(_flatten(read_mapping(path)), source))


def read_mapping(path: Path) -> dict[Any, Any]:
    """Reads a mapping from a YAML file.

    `ConfigError` if it cannot be read, is not a mapping, or has a name twice.
    """
    return read_marked(path)[0]


def read_marked(path: Path) -> tuple[dict[Any, Any], dict[YamlPath, int]]:
    """Reads a mapping from a YAML file, with line numbers.

    The line of each of its values.

    Raises:
        ConfigError: it cannot be read or is not a mapping, or has a name twice.
    """
    return _parse(_read_content(path), _describe_file(path))


def _yield_marks(
    node: yaml.Node | None, place: YamlPath, node_ids: set[int]
) -> Iterator[tuple[YamlPath, int]]:
    """Yields the lines of the values in a node.

    A node that occurs in several places is visited once.
    """
    # Aliases of aliases would else be visited exponentially often.
    if id(node) in node_ids:
        return
    node_ids.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            yield (
                (*place, name.value if isinstance(name, yaml.ScalarNode) else ""),
                name.start_mark.line + 1,
            )
            yield from _yield_marks(
                value, (*place, name.value if isinstance(name, yaml.ScalarNode) else ""), node_ids
            )
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            yield (*place, i), value.start_mark.line + 1
            yield from _yield_marks(value, (*place, i), node_ids)


def _describe_file(path: Path) -> str:
    return f"the file {str(path)!r}"


def _read_content(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_CONFIG_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise ConfigError(f"cannot read the configuration file {str(path)!r}: {reason}") from None
    if len(content) > MAX_CONFIG_BYTES:
        raise ConfigError(
            f"{_describe_file(path)} is too large; a configuration file has at most "
            f"{MAX_CONFIG_BYTES:,} bytes"
        )
    return content


def _list_profiles() -> list[str]:
    return sorted(
        file.name.removesuffix(".yaml")
        for file in PROFILES.iterdir()
        if file.name.endswith(".yaml")
    )


def _parse_profile(name: str) -> dict[Any, Any]:
    if name not in _list_profiles():
        raise UnknownName("profile", name, _list_profiles())
    return _parse((PROFILES / f"{name}.yaml").read_bytes(), f"the profile {name!r}")[0]


def _parse(content: bytes, source: str) -> tuple[dict[Any, Any], dict[YamlPath, int]]:
    """Reads a mapping from YAML, with the line of each of its values."""
    lines: dict[YamlPath, int] = {}
    try:
        loader = yaml.SafeLoader(content.decode("utf-8-sig"))
        node = loader.get_single_node()
        for place, line in _yield_marks(node, (), set()):
            # YAML takes the last of two equal names without a word.
            if place in lines:
                raise ConfigError(
                    f"{source} has {quote_short(str(place[-1]))} twice, in lines "
                    f"{lines[place]} and {line}"
                )
            lines[place] = line
        values = None if node is None else loader.construct_document(node)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source} must be UTF-8; byte {error.start} is not") from None
    except ConfigError:
        raise
    except (
        yaml.YAMLError,
        RecursionError,
        ValueError,
    ) as error:  # ValueError: an impossible date, for example
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise ConfigError(f"{source} is not valid YAML{where}") from None
    if values is None:
        return {}, lines
    if not isinstance(values, dict):
        raise ConfigError(f"{source} must be a mapping of options, got {type(values).__name__}")
    return values, lines


def _flatten(values: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Flattens {"mechanism": {"L": 5}} to ("mechanism.L", 5)."""
    for name, value in values.items():
        if name in SECTIONS and isinstance(value, Mapping):
            yield from (
                (f"{name}.{option}", option_value) for option, option_value in value.items()
            )
        elif name not in IGNORED_SECTIONS and not (name in SECTIONS and value is None):
            yield str(name), value


# ---- values typed as text ------------------------------------------------------------------------

_FLOAT = re.compile(
    r"[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|\.?inf|infinity|infinite|\.?nan)",
    re.IGNORECASE,
)


def parse_scalar(text: str) -> Any:
    """Reads a value given as text, by YAML with changes.

    It reads the numbers people type, and has none of YAML's surprises.

    1e2, nan and inf are numbers; no, on, off, 12:30 and 2024-01-01 stay strings (a boolean option
    converts the first three itself); 010 is ten.
    """
    stripped = text.strip()
    if re.fullmatch(r"[-+]?[0-9]+", stripped):
        # Floats end at 309 digits, and `int` refuses some thousands with an error of its own.
        return int(stripped) if len(stripped) <= 300 else _parse_finite(stripped)
    if _FLOAT.fullmatch(stripped):
        number_text = (
            stripped.lower()
            .replace(".inf", "inf")
            .replace(".nan", "nan")
            .replace("infinite", "inf")
        )
        return (
            float(number_text)
            if number_text.endswith(("inf", "infinity", "nan"))
            else _parse_finite(number_text)
        )
    if stripped.lower() in ("true", "false"):
        return stripped.lower() == "true"
    if stripped.lower() in ("null", "none", "~", ""):
        return None
    if stripped[0] in "[{\"'":
        try:
            return yaml.safe_load(stripped)
        except (yaml.YAMLError, RecursionError, ValueError):
            return text
    return text


def _parse_finite(text: str) -> float:
    """Converts text to a finite number.

    An infinite one must be written so, because an infinite budget lets words pass.
    """
    number = float(text)
    if math.isinf(number):
        raise ConfigError(
            f"a number must be at most 1.8e308 in magnitude, got {text[:20]!r}; write inf for "
            "infinity"
        )
    return number


def _build_adapter(annotation: Any) -> TypeAdapter[Any] | None:
    """Returns a pydantic adapter for a type.

    None where the type accepts everything, or is none that pydantic knows.
    """
    if annotation is None or annotation is Any:
        return None
    try:
        return TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))
    except Exception:  # the mechanism checks the value itself
        return None


def convert_value(path: str, value: Any, annotation: Any, *, show_value: bool = True) -> Any:
    """Converts a value to its type.

    A string is first read as a scalar, then taken as it is.

    Args:
        path: the option, for the error.
        value: what a source gave for it.
        annotation: the type; None or Any accepts everything.
        show_value: whether the error may show the value.

    Raises:
        ConfigError: the value has another type.
    """
    readings = [parse_scalar(value), value] if isinstance(value, str) else [value]
    adapter = _build_adapter(annotation)
    if adapter is None:
        return readings[0]
    errors: list[ValidationError] = []
    for reading in readings:
        try:
            result = adapter.validate_python(reading)
        except ValidationError as error:
            errors.append(error)
            continue
        if isinstance(result, bool) or not isinstance(reading, bool):  # true is not the number 1
            return result
    if errors:
        raise convert_error(errors[0], path=path, secret=() if show_value else (path,))
    raise ConfigError(f"{path} must be a number" + (f", got {readings[0]!r}" if show_value else ""))
