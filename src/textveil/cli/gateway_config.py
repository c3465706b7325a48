"""The configuration of a whole gateway in one file: options of its server, its policy, options of texts.

In: the value of --config. Out: defaults of the other options, which the command line and the
environment override; the faults of the file.
Not here: the policy (`gateway.policy`), and how texts are protected (`config`).
"""

import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import typer
from pydantic import TypeAdapter

from textveil.cli.console import UsageError, describe_value
from textveil.cli.options import SHARED_OPTIONS
from textveil.config import Config
from textveil.config.option_sources import (
    IGNORED_SECTIONS,
    SECTIONS,
    YamlPath,
    read_file,
    read_mapping,
    read_marked,
)
from textveil.config.secret_files import FILE_SUFFIX, read_secret_file
from textveil.errors import ConfigError, UnknownName
from textveil.gateway import (
    GATEWAY_SECTION,
    POLICY_SECTION,
    Policy,
    PolicyError,
    build_policy_schema,
    is_gateway_config,
    place_beside,
    read_policy,
)

FILE_OPTIONS = ("tls-cert", "tls-key", "library", "audit-log")
"""Options that name a file, which is looked for beside the configuration."""

SECRET_OPTIONS = ("store", "store-key", "tls-key")
"""Options that may be a secret in a file: {file: PATH}."""

VARIABLES = {
    "store-key": (
        f"TEXTVEIL_STORE_KEY{FILE_SUFFIX}",
        "The key of the store, as 64 hexadecimal digits in a file.",
    ),
    "store-keys": ("TEXTVEIL_KEYS", "The folder of the store's keys, or keyring."),
}
"""Fields that are no options of the command: the variables that they stand for, described."""

STORE_FILE = re.compile(r"sqlite:///([^:?][^?]*)(\?.*)?", re.DOTALL)
"""URL of a store in a file; the first group is its path."""

Fault = tuple[YamlPath, str]


class GatewayConfig:
    """What a file says of a gateway's server.

    Args:
        path: the file.
        command: the command with the options.

    Attributes:
        defaults: values of options, by parameter.
        variables: values of environment variables.
        faults: what is wrong, with its places.
        lines: the line of each place.
        has_policy: whether it has a policy, or the name of one.
        has_options: whether it says how texts are protected, outside of a policy.
    """

    def __init__(self, path: str, command: Any) -> None:
        values, self.lines = read_marked(Path(path))
        self._path, self._command, self._parameters = path, command, list_parameters(command)
        self._values = values.get(GATEWAY_SECTION)
        self.defaults: dict[str, Any] = {}
        self.variables: dict[str, str] = {}
        self.has_policy = POLICY_SECTION in values
        self.faults: list[Fault] = [*self._find_misplaced(values), *self._read()]
        self._misplaced = {place[0] for place, _ in self.faults if len(place) == 1}
        self.has_options = has_text_options(values.keys() - self._misplaced)
        if self.has_policy:
            policy = values[POLICY_SECTION]
            named = isinstance(policy, str)
            self.defaults["policy"] = place_beside(path, policy) if named else path
            self.faults += self._find_repeated(policy)

    def check(self) -> None:
        """Refuses a file with faults.

        Raises:
            PolicyError: it has some.
        """
        if self.faults:
            raise PolicyError(self.faults, self.lines, self._path)

    def build_policy(self) -> Policy:
        """Builds the policy of the file, or one that says the same as its options.

        Raises:
            ConfigError: it is wrong.
        """
        names = {field.name for field in fields(Policy)} & self.defaults.keys()
        said: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name in names
            if (value := self.defaults[name]) is not None
        }
        if "tls_key" in self.defaults or "tls_cert" in self.defaults:
            said["tls"] = read_tls(self.defaults.get("tls_cert"), self.defaults.get("tls_key"))
        if self.has_policy:
            return read_policy(self.defaults["policy"], **said)
        values = read_file(Path(self._path)).values
        return Policy(
            **said, options={name: values[name] for name in values.keys() - self._misplaced}
        )

    def find_missing(self) -> Iterator[Fault]:
        """Yields the files of the server that have no folder, which nobody makes for them."""
        for name, parameter in (("store", "store"), ("audit-log", "audit_log")):
            value = self.defaults.get(parameter) or ""
            url = STORE_FILE.fullmatch(value)
            path = url[1] if url else value if name != "store" else ""
            if path and not os.path.isdir(os.path.dirname(path)):
                message = f"{GATEWAY_SECTION}.{name}: must be a file in an existing folder"
                yield (GATEWAY_SECTION, name), message

    def explain(self) -> list[str]:
        """Explains the server in plain words, one line for each thing; a secret URL is not shown."""
        host, port = (self.defaults.get(n, self._parameters[n].default) for n in ("host", "port"))
        store, log = self.defaults.get("store"), self.defaults.get("audit_log")
        where = "memory for a day"
        if store is not None:
            is_open = isinstance((self._values or {}).get("store"), str)
            url = STORE_FILE.fullmatch(store) if is_open else None
            where = url[1] if url else f"a store ({store.partition(':')[0]})"
        return [
            f"The gateway listens on {host}, port {port}.",
            f"Released messages are kept in {where}.",
            f"Requests are logged in {log}." if log else "Requests are not logged.",
        ]

    def _find_misplaced(self, values: Mapping[Any, Any]) -> Iterator[Fault]:
        """Yields names that stand beside the sections, and belong into them or nowhere."""
        top_names = [*(field.name for field in fields(Config)), *IGNORED_SECTIONS, POLICY_SECTION]
        sections = {
            GATEWAY_SECTION: {*self._parameters, *VARIABLES},
            POLICY_SECTION: {field.name for field in fields(Policy)},
        }
        for name in map(str, values):
            if name in top_names or "." in name:  # mechanism.L
                continue
            places = [f"`{section}`" for section, names in sections.items() if name in names]
            where = f"{name}: write it under {' or '.join(places)}"
            yield (name,), where if places else str(UnknownName("option", name, top_names))

    def _read(self) -> Iterator[Fault]:
        """Reads the section of the server, and yields its faults."""
        if self._values is not None and not isinstance(self._values, dict):
            yield (GATEWAY_SECTION,), f"{GATEWAY_SECTION} must be a mapping of options"
            return
        for field, value in (self._values or {}).items():
            try:
                self._take(str(field), value)
            except ConfigError as error:
                yield (GATEWAY_SECTION, field), f"{GATEWAY_SECTION}.{field}: {error}"

    def _take(self, name: str, value: Any) -> None:
        """Takes the value of one option.

        Raises:
            ConfigError: there is no such option, or it does not take the value.
        """
        if name in VARIABLES:
            self.variables[VARIABLES[name][0]] = path = self._read_file(name, value)
            if name == "store-key":
                read_secret_file(path, "the store's key")  # refused here, with its line
            return
        parameter = self._parameters.get(name)
        if parameter is None:
            raise _build_unknown(name, self._parameters)
        if isinstance(value, dict) and name in SECRET_OPTIONS:
            path = self._read_file(name, value)
            value = read_secret_file(path, "the store's URL") if name == "store" else path
        elif name in FILE_OPTIONS:
            value = self._read_file(name, value)
        if name == "store" and isinstance(value, str) and (url := STORE_FILE.fullmatch(value)):
            value = f"sqlite:///{self._place(url[1])}{url[2] or ''}"
        self.defaults[parameter.name] = _convert(self._command, name, parameter, value)

    def _read_file(self, name: str, value: Any) -> str:
        """Returns the path that a field names, as {file: PATH} or alone."""
        if isinstance(value, dict):
            if name not in SECRET_OPTIONS or list(value) != ["file"]:
                raise ConfigError(
                    f"must be {'{file: PATH}' if name in SECRET_OPTIONS else 'a PATH'}"
                )
            value = value["file"]
        elif name == "store-key":
            raise ConfigError("must be {file: PATH}, and never the key itself")
        if not isinstance(value, str) or not value:
            raise ConfigError("must name a file")
        if name == "store-keys" and value == "keyring":
            return value
        return self._place(value)

    def _place(self, name: str) -> str:
        """Returns the path of a file that is named beside the configuration."""
        return os.path.join(os.path.dirname(os.path.abspath(self._path)), name)

    def _find_repeated(self, policy: Any) -> Iterator[Fault]:
        """Yields what the file says twice."""
        for name in self.defaults if isinstance(policy, dict) else ():
            if name != POLICY_SECTION and name in policy:
                message = f"{name} is also in `{GATEWAY_SECTION}`: leave one of the two out"
                yield (POLICY_SECTION, name), f"{POLICY_SECTION}.{name}: {message}"
        if self.has_options:
            yield (
                (POLICY_SECTION,),
                f"{POLICY_SECTION}: a policy says how texts are protected, in `profile`, `level` "
                "and `options`: leave out the other sections of this file",
            )


def read_tls(certificate: str | None, key: str | None) -> dict[str, str] | None:
    """Returns the files for TLS as a policy has them; None for no TLS.

    Raises:
        ConfigError: only one of the two is given.
    """
    if (certificate is None) != (key is None):
        raise ConfigError("--tls-cert goes with --tls-key: give both or neither")
    if certificate is None or key is None:
        return None
    return {"certificate": os.path.abspath(certificate), "key": os.path.abspath(key)}


def has_text_options(names: Iterable[Any]) -> bool:
    """Says whether sections of a file say how texts are protected, outside of a policy."""
    return bool(set(names) - {*IGNORED_SECTIONS, POLICY_SECTION})


def read_server_options(path: str | None) -> dict[Any, Any]:
    """Returns the options of the server as a file has them now; none without a file."""
    options = None if path is None else read_mapping(Path(path)).get(GATEWAY_SECTION)
    return options if isinstance(options, dict) else {}


def list_parameters(command: Any) -> dict[str, Any]:
    """Returns the options of a gateway's server, by their long names.

    Those that say how texts are protected have sections of their own.
    """
    return {
        option.removeprefix("--"): parameter
        for parameter in command.params
        if parameter.name not in {*SHARED_OPTIONS, POLICY_SECTION}
        for option in parameter.opts
        if option.startswith("--") and option not in ("--help", "--install-completion")
    }


def read_defaults(context: typer.Context, value: str | None) -> str | None:
    """Makes what a file says of a server the defaults of the other options."""
    if value is None or not is_gateway_config(read_marked(Path(value))[0]):
        return value
    config = GatewayConfig(value, context.command)
    config.check()
    context.default_map = {**(context.default_map or {}), **config.defaults}
    for name, setting in config.variables.items():
        if not os.environ.get(name) and not os.environ.get(name.removesuffix(FILE_SUFFIX)):
            os.environ[name] = setting  # processes of further workers have it, too
    return value


CONFIG_OPTION = replace(
    SHARED_OPTIONS["config"],
    help="All of a gateway in one YAML file: `gateway` has the options of its server, `policy` is a "
    "policy or the name of one, and the rest is as `textveil show config` prints it. Options "
    "and the environment win.",
    callback=read_defaults,
)
"""The option --config of a gateway."""


def _convert(command: Any, name: str, parameter: Any, value: Any) -> Any:
    """Converts a value as the command line would.

    Args:
        command: the command with all options.
        name: the option.
        parameter: the same, as typer has it.
        value: its value in the file.

    Raises:
        ConfigError: it is of another kind. Its value is not shown.
    """
    takes = describe_value(parameter)
    if parameter.is_flag:
        if isinstance(value, bool):
            return value
        raise ConfigError("must be true or false")
    if parameter.multiple:
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
        raise ConfigError(f"must be a list, each {takes}")
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        with suppress(UsageError):
            arguments = [f"--{name}", str(value)]
            return command.make_context(name, arguments).params[parameter.name]
    raise ConfigError(f"needs {takes}, as after --{name}")


def _build_unknown(name: str, parameters: Mapping[str, Any]) -> ConfigError:
    """Builds the error for a field that is none."""
    shared = SHARED_OPTIONS.get(name.replace("-", "_"))
    if shared is not None and shared.path is not None:
        return ConfigError(f"write it outside of `{GATEWAY_SECTION}`, as {shared.path}")
    return UnknownName("option", name, [*parameters, *VARIABLES])


# ---- the schema ----------------------------------------------------------------------------------


def build_schema(command: Any, verb: Callable[..., Any]) -> dict[str, Any]:
    """Builds the JSON schema of policies and of a gateway's configuration.

    `textveil/data/gateway.schema.json` is the same.

    Args:
        command: the command with the options of the server.
        verb: the function that it runs, whose signature has their types.
    """
    policy = build_policy_schema()
    draft, parts = policy.pop("$schema"), policy.pop("$defs")
    kinds = inspect.signature(verb).parameters
    server = {
        name: {
            **TypeAdapter(kinds[parameter.name].annotation).json_schema(),
            "description": parameter.help,
        }
        for name, parameter in list_parameters(command).items()
    } | {name: {"type": "string", "description": text} for name, (_, text) in VARIABLES.items()}
    in_file = {
        "type": "object",
        "properties": {"file": {"type": "string", "description": "The file with the secret."}},
        "required": ["file"],
        "additionalProperties": False,
    }
    for name in SECRET_OPTIONS:
        description = server[name].pop("description")
        choices = [in_file] if name == "store-key" else [server[name], in_file]
        server[name] = {"anyOf": choices, "description": description}
    texts: dict[str, Any] = {
        name: {"description": f"See `textveil show config`: {name}."}
        for name in (*SECTIONS, "epsilon", "risk", "prior", "seed", "profile")
    }
    config = {
        "description": "A gateway: its server, its policy, and how texts are protected without one.",
        "type": "object",
        "properties": {
            GATEWAY_SECTION: {
                "description": "Options of the server, as `textveil gateway --help-all` lists them.",
                "type": "object",
                "properties": server,
                "additionalProperties": False,
            },
            POLICY_SECTION: {
                "description": "A policy, or the name or file of one.",
                "anyOf": [{"$ref": "#/$defs/Policy"}, {"type": "string"}],
            },
            "description": {"type": "string", "description": "What this file is for."},
            **texts,
        },
        "anyOf": [{"required": [GATEWAY_SECTION]}, {"required": [POLICY_SECTION]}],
        "additionalProperties": False,
    }
    return {
        "$schema": draft,
        "anyOf": [{"$ref": "#/$defs/Policy"}, {"$ref": "#/$defs/GatewayConfig"}],
        "$defs": {**parts, "Policy": policy, "GatewayConfig": config},
    }
