"""The file of a policy: reading it, explaining it, and its schema.

In: a YAML file. Out: a `Policy`; the faults of the file, one line each; an explanation in words.
Not here: the fields of a policy (`policy`).
"""

import inspect
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from textveil.config import Config
from textveil.config.option_sources import YamlPath, read_marked
from textveil.errors import (
    MIN_SIMILARITY,
    ConfigError,
    TextveilError,
    UnknownName,
    find_nearest,
    quote,
    quote_file,
)
from textveil.gateway.policy.policy import (
    SELECTOR_FIELDS,
    Credential,
    KeyBudget,
    Policy,
    PolicyError,
    PolicyRule,
    TlsFiles,
    Upstream,
    join_place,
    reword_error,
)
from textveil.gateway.protocols import load_operations
from textveil.gateway.protocols.restoring import RestoreOptions

SHIPPED_FOLDER = "data/policies"
"""Folder of the package with a policy for each known agent."""

GATEWAY_SECTION, POLICY_SECTION = GATEWAY_SECTIONS = ("gateway", "policy")
"""Sections of a gateway's configuration: options of its server, and its policy."""

MAX_FAULTS = 20
"""Maximal number of faults in an error."""

EMPTY_POLICY = (
    "the file sets nothing: write what the gateway does, such as `upstream: URL`, or start the "
    "gateway without a policy for its defaults"
)

PART_CLASSES: dict[str, Any] = {
    "rules": PolicyRule,
    "upstreams": Upstream,
    "budget": KeyBudget,
    "restore": RestoreOptions,
    "tls": TlsFiles,
    "credential": Credential,
}
"""Classes of the parts of a policy, by their field name."""


UNKNOWN_TEXTS = {"protect": "protected like texts", "refuse": "refused", "drop": "left out"}
"""Explanations of the field `unknown`, by its value."""

UNRESOLVED_TEXTS = {
    "pass": "Calls of tools with a placeholder that stands for nothing are delivered.",
    "flag": "Calls of tools with a placeholder that stands for nothing are delivered and counted.",
    "refuse": "Calls of tools with a placeholder that stands for nothing are refused.",
}
"""Explanations of the field `unresolved`, by its value."""

PLAYGROUND_TEXTS = {
    "local": (
        "The playground is at / if only this machine can reach the gateway and one process answers."
    ),
    "everywhere": "The playground is at / if one process answers.",
    "never": "There is no playground at /.",
}
"""Explanations of the field `playground`, by its value."""


def list_policies() -> list[str]:
    """Lists the names of the policies in the package, each for an agent."""
    folder = resources.files("textveil") / SHIPPED_FOLDER
    names = (item.name for item in folder.iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def find_policy(name: str) -> str:
    """Returns the path of a policy: a file, or the name of one in the package.

    A file goes before a name.

    Raises:
        ConfigError: there is no such file, and it looks like a name.
    """
    names = list_policies()
    if not os.path.lexists(name) and name in names:
        return str(resources.files("textveil") / SHIPPED_FOLDER / f"{name}.yaml")
    if not os.path.lexists(name) and name.isidentifier():
        near = find_nearest(name, names, MIN_SIMILARITY)
        raise ConfigError(
            f"there is no policy file {quote(name)}, and textveil's own policies are "
            f"{', '.join(names)}{f'; did you mean {near}?' if near else ''}"
        )
    return name


class PolicySource(NamedTuple):
    """A policy as it is written.

    Args:
        path: its file.
        values: its fields.
        lines: the line of each place in it.
        is_section: whether it is the section `policy` of a gateway's configuration.
    """

    path: str
    values: dict[Any, Any]
    lines: dict[YamlPath, int]
    is_section: bool = False


def is_gateway_config(values: Mapping[Any, Any]) -> bool:
    """Says whether a file is the configuration of a whole gateway, and not a policy alone."""
    return bool(values.keys() & set(GATEWAY_SECTIONS))


def place_beside(path: str, name: str) -> str:
    """Returns where a file lies that another names: beside it; a policy's name stays."""
    other = os.path.join(os.path.dirname(os.path.abspath(path)), name)
    return name if name in list_policies() and not os.path.lexists(other) else other


def read_policy_source(path: str, *, is_named: bool = False) -> PolicySource:
    """Reads a policy without checking it: a file, a name, or the section `policy` of a file.

    Args:
        path: the file, or the name.
        is_named: whether another file names it, and so it must name no further one.

    Raises:
        ConfigError: it cannot be read, or the configuration of a gateway has no policy.
    """
    path = find_policy(path)
    values, lines = read_marked(Path(path))
    if not is_gateway_config(values):
        return PolicySource(path, values, lines)
    section = values.get(POLICY_SECTION)
    if isinstance(section, str) and not is_named:
        return read_policy_source(place_beside(path, section), is_named=True)
    if not isinstance(section, dict):
        raise ConfigError(
            f"{quote_file(path)} has no policy: write `policy:`, with its fields or the name of its "
            "file"
        )
    inside = {place[1:]: line for place, line in lines.items() if place[:1] == (POLICY_SECTION,)}
    return PolicySource(path, section, inside, is_section=True)


def read_policy(path: str, **typed: Any) -> Policy:
    """Reads the policy of a file, or one of the package by its name.

    The files that it names are looked for beside it.

    Args:
        path: the file, which may be the configuration of a gateway, or the name.
        typed: fields that are set elsewhere, such as by options; None for unset. A policy in a file
            of its own must not set them, too; in a configuration they win.

    Raises:
        PolicyError: something in the file is wrong. ConfigError: it cannot be read.
    """
    path, values, lines, is_section = read_policy_source(path)
    if not values:  # an empty file, half written, would lift all restrictions
        raise PolicyError([((), EMPTY_POLICY)], lines, path)
    options = {name: value for name, value in typed.items() if value is not None}
    faults: list[tuple[YamlPath, str]] = [
        ((name,), f"{name} is set here and by an option: leave one of the two out")
        for name in sorted(options.keys() & values.keys())
        if not is_section
    ]
    policy = None
    try:
        policy = TypeAdapter(Policy).validate_python({**values, **options})
        faults += [*_find_wrong_options(policy), *_find_unserved_routes(policy)]
    except ValidationError as error:
        faults += _convert_errors(error)
    if faults or policy is None:
        raise PolicyError(faults[:MAX_FAULTS], lines, path)
    return _resolve_files(policy, os.path.dirname(os.path.abspath(path)))


def _resolve_files(policy: Policy, folder: str) -> Policy:
    """Resolves a policy's file names against the folder of its file."""

    def resolve(name: str) -> str:
        return os.path.join(folder, name)

    upstreams = dict(policy.upstreams)
    for name, upstream in upstreams.items():
        if upstream.credential is not None and upstream.credential.file is not None:
            upstreams[name] = replace(
                upstream, credential=Credential(file=resolve(upstream.credential.file))
            )
    tls = policy.tls and TlsFiles(
        certificate=resolve(policy.tls.certificate), key=resolve(policy.tls.key)
    )
    return replace(policy, keys=policy.keys and resolve(policy.keys), upstreams=upstreams, tls=tls)


# ---- what is wrong -------------------------------------------------------------------------------


def _find_unserved_routes(policy: Policy) -> Iterator[tuple[YamlPath, str]]:
    """Yields the routes of rules that do not exist.

    Such rules would never hold.
    """
    routes = [operation.route for operation in load_operations()] if policy.rules else []
    for i, rule in enumerate(policy.rules):
        for j, name in enumerate(rule.routes):
            place: YamlPath = ("rules", i, "routes", j)
            if not any(fnmatchcase(route, name) for route in routes):
                yield place, f"{join_place(place)}: {UnknownName('route', name, routes)}"


def _find_wrong_options(policy: Policy) -> Iterator[tuple[YamlPath, str]]:
    """Yields the faults in the options that protect texts."""
    for i in (None, *range(len(policy.rules))):
        place: YamlPath = () if i is None else ("rules", i)
        try:
            policy.apply_rules(() if i is None else (i,)).resolve_config()
        except TextveilError as error:
            yield place, f"{join_place(place)}: {error}" if place else str(error)
            if i is None:
                return  # the rules would repeat the fault


def _convert_errors(error: ValidationError) -> Iterator[tuple[YamlPath, str]]:
    """Converts a validation error to faults in words.

    Values are not shown, since they may be keys or names of people.
    """
    for detail in error.errors(include_url=False, include_input=False):
        place: YamlPath = tuple(part for part in detail["loc"] if part != "[key]")
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, PolicyError):
            yield from cause.faults
        elif isinstance(cause, ConfigError):
            yield place, f"{join_place(place)}: {reword_error(cause)}"
        else:
            yield place, _format_fault(place, detail["type"], detail["msg"])


def _format_fault(place: YamlPath, kind: str, message: str) -> str:
    """Words a fault that pydantic finds."""
    if kind == "unexpected_keyword_argument":
        *inside, name = place
        part = next(
            (PART_CLASSES[str(part)] for part in reversed(inside) if part in PART_CLASSES), Policy
        )
        unknown = UnknownName("option", str(name), [field.name for field in fields(part)])
        return f"{join_place(tuple(inside))}: {unknown}" if inside else str(unknown)
    return (
        f"{join_place(place)} "
        f"{'is missing' if kind.startswith('missing') else _reword_message(message, kind)}"
    )


def _reword_message(message: str, kind: str) -> str:
    """Rewords a message of pydantic for people who write YAML."""
    message = re.sub(r"^(Input|Value|String|Number|Tuple|Dictionary) should ", "must ", message)
    message = re.sub(r" or an instance of \w+|, unable to parse.*", "", message)
    message = re.sub(r"a (valid )?dictionary", "a mapping", message).replace(
        "a valid tuple", "a list"
    )
    return f"{message}; put it in quotes" if kind == "string_type" else message


# ---- what it says --------------------------------------------------------------------------------


def explain_policy(policy: Policy) -> list[str]:
    """Explains a policy in plain words, one line for each thing."""
    upstream = None if policy.upstream is None else policy.resolve_upstream(policy.upstream)
    where = "the upstream that --upstream names" if upstream is None else upstream.url
    lines = [
        f"Requests go to {where}.",
        _explain_keys(upstream, policy.keys),
        _explain_protection(policy.resolve_config(), policy),
        (
            "Images, audio, files and token ids are "
            f"{'sent unchanged' if policy.media == 'pass' else 'refused'}."
        ),
        (
            f"{'Nothing is' if policy.schemas == 'pass' else 'Identifiers are'} hidden in "
            "descriptions of tools."
        ),
        f"Unknown fields are {UNKNOWN_TEXTS[policy.unknown]}{_explain_fields(policy)}.",
        f"Names of users are {'left out' if policy.users == 'drop' else 'replaced by pseudonyms'}.",
        UNRESOLVED_TEXTS[policy.unresolved],
        *([f"Requests with {', '.join(policy.block)} are refused."] if policy.block else []),
        (
            f"A request may have at most {policy.limit:,} bytes, and the upstream has "
            f"{policy.timeout:g} seconds to answer. Released messages take at most "
            f"{policy.memory:,} MB of memory."
        ),
    ]
    lines += _explain_options(policy)
    for i, rule in enumerate(policy.rules):
        selectors = [
            f"{name} {', '.join(names)}"
            for name in SELECTOR_FIELDS
            if (names := getattr(rule, name))
        ]
        changes = ", ".join(map(_explain_change, rule.changes.items()))
        lines.append(f"Rule {i}, for {' and '.join(selectors)}: {changes}.")
    return [*lines, "If a detector fails, nothing is sent."]


def _explain_fields(policy: Policy) -> str:
    """Explains what differs for unknown fields by name."""
    differing = [f"{name} {UNKNOWN_TEXTS[word]}" for name, word in policy.unknown_fields.items()]
    return f"; {', '.join(differing)}" if differing else ""


def _explain_options(policy: Policy) -> Iterator[str]:
    """Yields the explanations of optional fields."""
    restore, tools = policy.restore, ", ".join(policy.tools)
    if policy.keys is not None:
        yield f"A key may {_explain_limits(policy.requests, policy.budget)}."
    if policy.tls is not None:
        yield f"Connections are encrypted with the certificate in {policy.tls.certificate}."
    yield PLAYGROUND_TEXTS[policy.playground]
    if restore.hosts:
        yield f"Originals are put back into addresses of {', '.join(restore.hosts)}, too."
    if restore.tools:
        yield (
            "Originals are put back everywhere in arguments of these tools: "
            f"{', '.join(restore.tools)}."
        )
    if tools:
        other_tools = "refused" if policy.other_tools == "refuse" else "served unprotected"
        yield (
            f"These tools of tool servers are served, protected: {tools}; other tools are "
            f"{other_tools}."
        )


def _explain_keys(upstream: Upstream | None, keys: str | None) -> str:
    needed = f"a key from the file {keys}" if keys else "no key of the gateway"
    needs = f"Clients need {needed}"
    if upstream is not None and upstream.credential is not None:
        return f"{needs}; the upstream gets the key in {upstream.credential}."
    passed = keys is None and (upstream is None or upstream.client_key == "pass")
    consequence = "the key that they send is passed on" if passed else "the upstream gets no key"
    return f"{needs}; {consequence}."


def _explain_protection(config: Config, policy: Policy) -> str:
    name, mechanism = config.profile, config.mechanism.name
    how = f"the profile {name}" if name else f"the mechanism {mechanism}"
    lists = {"always": len(policy.always), "never": len(policy.never)}
    words = " and ".join(_explain_words(count, name) for name, count in lists.items() if count)
    level, dates = config.protect.level, config.protect.dates
    extent = f"level {level}" if dates == "personal" else f"level {level}, dates {dates}"
    return f"Texts are protected by {how}, {extent}{words and f'; {words}'}."


def _explain_words(count: int, name: str) -> str:
    return f"{count:,} {'word is' if count == 1 else 'words are'} {name} hidden"


def _explain_limits(requests: int | None, budget: KeyBudget | None) -> str:
    number = "any number of requests" if requests is None else f"{requests:,} requests a minute"
    epsilon = "any epsilon" if budget is None else f"an epsilon of {budget}"
    return f"send {number} and spend {epsilon}"


def _explain_change(change: tuple[str, Any]) -> str:
    name, value = change
    if name in ("always", "never"):
        return _explain_words(len(value), name)
    if name == "block":
        return f"{', '.join(value)} blocked"
    if name == "unknown_fields":
        return f"unknown {', '.join(f'{field} {word}' for field, word in value.items())}"
    return f"{len(value):,} other options" if name == "options" else f"{name} {value}"


# ---- the schema ----------------------------------------------------------------------------------


def build_policy_schema() -> dict[str, Any]:
    """Builds the JSON schema of a policy."""
    schema: dict[str, Any] = TypeAdapter(Policy).json_schema()
    parts = {part_class.__name__: part_class for part_class in PART_CLASSES.values()}
    for name, part in [("Policy", schema), *schema["$defs"].items()]:
        about, _, attributes = (inspect.getdoc(parts.get(name, Policy)) or "").partition(
            "Attributes:\n"
        )
        part["description"] = " ".join(about.split())
        for field, description in re.findall(
            r"^    (\w+): (.+(?:\n {8,}.+)*)", attributes, re.MULTILINE
        ):
            part["properties"][field]["description"] = " ".join(description.split())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
