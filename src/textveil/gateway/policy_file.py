"""The file of a policy: reading it, explaining it, and its schema.

In: a YAML file. Out: a `Policy`; the faults of the file, one line each; an explanation in words.
Not here: the fields of a policy (`policy`).
"""

import inspect
import os
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from textveil.config import Config
from textveil.config.sources import Place, read_marked
from textveil.errors import ConfigError, TextveilError, UnknownName
from textveil.gateway.answers import RestoreOptions
from textveil.gateway.policy import (
    WHOSE,
    Credential,
    KeyBudget,
    Policy,
    PolicyError,
    PolicyRule,
    TlsFiles,
    Upstream,
    dotted,
    own_words,
)
from textveil.gateway.protocols import operations

MOST = 20
"""Maximal number of faults in an error."""

EMPTY = (
    "the file says nothing: write what the gateway does, such as `upstream: URL`; what it does by "
    "default it does "
    "without a policy, too"
)

PARTS: dict[str, Any] = {
    "rules": PolicyRule,
    "upstreams": Upstream,
    "budget": KeyBudget,
    "restore": RestoreOptions,
    "tls": TlsFiles,
    "credential": Credential,
}
"""Classes of the parts of a policy, by their field name."""


PLAYGROUND = {
    "local": (
        "There is a page at / where only this machine can reach the gateway, and one process "
        "answers."
    ),
    "everywhere": "There is a page at /, which needs that one process answers.",
    "never": "There is no page at /.",
}
"""Explanations of the field `playground`, by its value."""


def read_policy(path: str, **typed: Any) -> Policy:
    """Reads the policy of a file.

    The files that it names are looked for beside it.

    Args:
        path: the file.
        typed: fields that are set elsewhere, such as by options; None for unset.

    Raises:
        PolicyError: something in the file is wrong. ConfigError: it cannot be read.
    """
    values, lines = read_marked(Path(path))
    if not values:  # an empty file, half written, would lift all restrictions
        raise PolicyError([((), EMPTY)], lines, path)
    options = {name: value for name, value in typed.items() if value is not None}
    faults: list[tuple[Place, str]] = [
        ((name,), f"{name} is said here, and by an option: leave one of them out")
        for name in sorted(options.keys() & values.keys())
    ]
    policy = None
    try:
        policy = TypeAdapter(Policy).validate_python({**values, **options})
        faults += [*_find_wrong_options(policy), *_find_unserved_routes(policy)]
    except ValidationError as error:
        faults += _convert_errors(error)
    if faults or policy is None:
        raise PolicyError(faults[:MOST], lines, path)
    return _resolve_files(policy, os.path.dirname(os.path.abspath(path)))


def _resolve_files(policy: Policy, folder: str) -> Policy:
    """Resolves a policy's file names against the folder of its file."""

    def whole(name: str) -> str:
        return os.path.join(folder, name)

    upstreams = dict(policy.upstreams)
    for name, each in upstreams.items():
        if each.credential is not None and each.credential.file is not None:
            upstreams[name] = replace(each, credential=Credential(file=whole(each.credential.file)))
    tls = policy.tls and TlsFiles(
        certificate=whole(policy.tls.certificate), key=whole(policy.tls.key)
    )
    return replace(policy, keys=policy.keys and whole(policy.keys), upstreams=upstreams, tls=tls)


# ---- what is wrong -------------------------------------------------------------------------------


def _find_unserved_routes(policy: Policy) -> Iterator[tuple[Place, str]]:
    """Yields the routes of rules that do not exist.

    Such rules would never hold.
    """
    served = [each.route for each in operations()] if policy.rules else []
    for i, rule in enumerate(policy.rules):
        for j, name in enumerate(rule.routes):
            place: Place = ("rules", i, "routes", j)
            if not any(fnmatchcase(route, name) for route in served):
                yield place, f"{dotted(place)}: {UnknownName('route', name, served)}"


def _find_wrong_options(policy: Policy) -> Iterator[tuple[Place, str]]:
    """Yields the faults in the options that protect texts."""
    for i in (None, *range(len(policy.rules))):
        place: Place = () if i is None else ("rules", i)
        try:
            policy.under(() if i is None else (i,)).config()
        except TextveilError as error:
            yield place, f"{dotted(place)}: {error}" if place else str(error)
            if i is None:
                return  # the rules would repeat the fault


def _convert_errors(error: ValidationError) -> Iterator[tuple[Place, str]]:
    """Converts a validation error to faults in words.

    Values are not shown, since they may be keys or names of people.
    """
    for each in error.errors(include_url=False, include_input=False):
        place: Place = tuple(part for part in each["loc"] if part != "[key]")
        cause = each.get("ctx", {}).get("error")
        if isinstance(cause, PolicyError):
            yield from cause.faults
        elif isinstance(cause, ConfigError):
            yield place, f"{dotted(place)}: {own_words(cause)}"
        else:
            yield place, _word_fault(place, each["type"], each["msg"])


def _word_fault(place: Place, kind: str, says: str) -> str:
    """Words a fault that pydantic finds."""
    if kind == "unexpected_keyword_argument":
        *inside, name = place
        part = next((PARTS[str(part)] for part in reversed(inside) if part in PARTS), Policy)
        unknown = UnknownName("option", str(name), [field.name for field in fields(part)])
        return f"{dotted(tuple(inside))}: {unknown}" if inside else str(unknown)
    return f"{dotted(place)} {'is missing' if kind.startswith('missing') else _reword(says, kind)}"


def _reword(says: str, kind: str) -> str:
    """Rewords a message of pydantic for people who write YAML."""
    says = re.sub(r"^(Input|Value|String|Number|Tuple|Dictionary) should ", "must ", says)
    says = re.sub(r" or an instance of \w+|, unable to parse.*", "", says)
    says = re.sub(r"a (valid )?dictionary", "a mapping", says).replace("a valid tuple", "a list")
    return f"{says}; put it in quotes" if kind == "string_type" else says


# ---- what it says --------------------------------------------------------------------------------


def explained(policy: Policy) -> list[str]:
    """Explains a policy in plain words, one line for each thing."""
    to = None if policy.upstream is None else policy.to(policy.upstream)
    where = "the upstream that --upstream names" if to is None else to.url
    lines = [
        f"Requests go to {where}.",
        _explain_keys(to, policy.keys),
        _explain_protection(policy.config(), policy),
        f"Images, audio, files and token ids are {'sent as they are' if policy.media == 'pass' else 'refused'}.",
        f"{'Nothing is' if policy.schemas == 'pass' else 'Identifiers are'} hidden in descriptions of tools.",
        f"Fields that are not known are {'left out' if policy.unknown == 'drop' else 'refused'}.",
        f"Names of users are {'left out' if policy.users == 'drop' else 'replaced by pseudonyms'}.",
        f"A request has at most {policy.limit:,} bytes, and the upstream {policy.timeout:g} seconds to answer.",
    ]
    lines += _explain_more(policy)
    for i, rule in enumerate(policy.rules):
        whose = [f"{name} {', '.join(names)}" for name in WHOSE if (names := getattr(rule, name))]
        changes = ", ".join(map(_explain_change, rule.changes.items()))
        lines.append(f"Rule {i}, for {' and '.join(whose)}: {changes}.")
    return [*lines, "If a detector fails, nothing is sent."]


def _explain_more(policy: Policy) -> Iterator[str]:
    """Yields the explanations of optional fields."""
    restore, tools = policy.restore, ", ".join(policy.tools)
    if policy.keys is not None:
        yield f"A key may {_explain_limits(policy.requests, policy.budget)}."
    if policy.tls is not None:
        yield f"Connections are encrypted with the certificate in {policy.tls.certificate}."
    yield PLAYGROUND[policy.playground]
    if restore.hosts:
        yield f"Originals are put back into addresses of {', '.join(restore.hosts)}, too."
    if restore.tools:
        yield (
            "Originals are put back everywhere in arguments of these tools: "
            f"{', '.join(restore.tools)}."
        )
    if tools:
        others = "refused" if policy.other_tools == "refuse" else "served as they are"
        yield f"Of tool servers these tools are served, protected: {tools}; others are {others}."


def _explain_keys(to: Upstream | None, keys: str | None) -> str:
    needed = f"a key from the file {keys}" if keys else "no key of the gateway's own"
    needs = f"Clients need {needed}"
    if to is not None and to.credential is not None:
        return f"{needs}; the upstream gets the key in {to.credential}."
    passed = keys is None and (to is None or to.client_key == "pass")
    what = "the key that they send is passed on" if passed else "the upstream gets no key"
    return f"{needs}; {what}."


def _explain_protection(config: Config, policy: Policy) -> str:
    name, mechanism = config.profile, config.mechanism.name
    how = f"the profile {name}" if name else f"the mechanism {mechanism}"
    lists = {"always": len(policy.always), "never": len(policy.never)}
    words = " and ".join(_explain_words(count, name) for name, count in lists.items() if count)
    return f"Texts are protected by {how}, level {config.protect.level}{words and f'; {words}'}."


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
    return f"{len(value):,} other options" if name == "options" else f"{name} {value}"


# ---- the schema ----------------------------------------------------------------------------------


def policy_schema() -> dict[str, Any]:
    """Builds the JSON schema of a policy file.

    `textveil/data/gateway.schema.json` is the same.
    """
    schema: dict[str, Any] = TypeAdapter(Policy).json_schema()
    parts = {each.__name__: each for each in PARTS.values()}
    for name, part in [("Policy", schema), *schema["$defs"].items()]:
        about, _, attributes = (inspect.getdoc(parts.get(name, Policy)) or "").partition(
            "Attributes:\n"
        )
        part["description"] = " ".join(about.split())
        for field, says in re.findall(r"^    (\w+): (.+(?:\n {8,}.+)*)", attributes, re.MULTILINE):
            part["properties"][field]["description"] = " ".join(says.split())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
