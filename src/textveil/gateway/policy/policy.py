"""Policy: the rules of a gateway, from a file or from options.

In: options. Out: a frozen `Policy`, and its variants under its rules.
Not here: its file (`policy_file`), the values of a request that it concerns (`protocols`), keys
(`client_keys`), and the objects that are built from it (`active_policy`).
"""

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field

from textveil.config import Config, make_options, resolve
from textveil.config.option_sources import YamlPath
from textveil.config.secret_files import read_secret_file
from textveil.detect import TYPES
from textveil.errors import ConfigError, UnknownName
from textveil.gateway.protocols import load_operations
from textveil.gateway.protocols.restoring import RestoreOptions
from textveil.models import Address


def _check_origin(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^\s/?#@*,]+", value.lower()):
        raise ConfigError(
            "must be scheme://host or scheme://host:port, without a path or a / at its end, such as "
            "app://obsidian.md"
        )
    return value.lower()


Unknown = Literal["protect", "refuse", "drop"]
Texts = tuple[Annotated[str, Field(min_length=1)], ...]
Origins = tuple[Annotated[str, AfterValidator(_check_origin)], ...]
Days = Annotated[float, Field(gt=0, le=36_500, allow_inf_nan=False)]


class PolicyError(ConfigError):
    """Error in a policy, with all its faults.

    Args:
        faults: the place and the message of each fault.
        lines: the line of the file for each place, if there is a file.
        name: the name of the file.
    """

    def __init__(
        self,
        faults: Sequence[tuple[YamlPath, str]],
        lines: dict[YamlPath, int] | None = None,
        name: str = "",
    ) -> None:
        self.faults = sorted(
            faults, key=lambda fault: _find_line(fault[0], lines or {}) or math.inf
        )
        self.messages = [
            f"{_format_place(place, lines or {}, name)}{message}" for place, message in self.faults
        ]
        suffix = (
            f" ({len(faults) - 1:,} more: see `textveil gateway check`)" if len(faults) > 1 else ""
        )
        super().__init__(self.messages[0] + suffix)


def _format_place(place: YamlPath, lines: dict[YamlPath, int], name: str) -> str:
    """Formats the file and the line of a fault.

    It is the line of the innermost place around the fault that has one.
    """
    line = _find_line(place, lines)
    return (f"{name}:{line}: " if line is not None else f"{name}: ") if name else ""


def _find_line(place: YamlPath, lines: dict[YamlPath, int]) -> int | None:
    return next((lines[place[:n]] for n in range(len(place), 0, -1) if place[:n] in lines), None)


def _refuse_plain_key(value: object) -> object:
    if isinstance(value, str):
        raise ConfigError("must be {env: NAME} or {file: PATH}, and never the key itself")
    return value


@make_options("credential.")
class Credential:
    """Place of an upstream's key. It is read when the gateway starts, or reads its policy again.

    Attributes:
        env: an environment variable that holds the key.
        file: a file that holds only the key.
    """

    env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    file: str | None = None

    def __post_init__(self) -> None:
        if (self.env is None) == (self.file is None):
            raise ConfigError("must be {env: NAME} or {file: PATH}")

    def __str__(self) -> str:
        return f"the environment variable {self.env}" if self.env else f"the file {self.file}"

    def read(self) -> str:
        """Reads the key from its variable or file.

        Raises:
            ConfigError: there is no key, or it does not fit in a header.
        """
        if self.env is not None:
            key = os.environ.get(self.env)
            if key is None:
                raise ConfigError(f"the upstream's key must be in {self}, which is not set")
        else:
            key = read_secret_file(str(self.file), "the upstream's key")
        if not re.fullmatch(r"[!-~]+", key.strip()):
            raise ConfigError(
                f"the upstream's key in {self} must be one line of ASCII without spaces"
            )
        return key.strip()


@make_options("upstream.")
class Upstream:
    """An API to which requests are sent.

    Attributes:
        url: its base URL, such as https://HOST/v1.
        credential: the key for the upstream; without it, the upstream gets the client's own key or
            none.
        header: the header that carries the credential; by default the header in which the client
            sent its key.
        client_key: "pass" sends the client's key to the upstream if the upstream has no credential
            and the gateway has no keys of its own; "drop" sends none.
    """

    url: Address
    credential: Annotated[Credential | None, BeforeValidator(_refuse_plain_key)] = None
    header: Literal["authorization", "x-api-key", "x-goog-api-key", "api-key"] | None = None
    client_key: Literal["pass", "drop"] = "pass"

    def __post_init__(self) -> None:
        for route in {operation.route for operation in load_operations()}:
            base = self.url.rstrip("/").removesuffix(f"/{route}")
            # A single word, such as models, may end a base URL, unless /v1 stands before it.
            if base != self.url.rstrip("/") and ("/" in route or base.endswith("/v1")):
                raise ConfigError(
                    f"ends in the route {route}, which the gateway adds: give the base URL, {base}"
                )


@make_options("budget.")
class KeyBudget:
    """Budget of all texts of a key together, as the ledger counts it in local DP.

    Attributes:
        epsilon: the largest epsilon that the texts may spend.
        days: the period after which counting starts again; None for never.
    """

    epsilon: Annotated[float, Field(ge=0, lt=1e9, allow_inf_nan=False)]
    days: Days | None = None

    def __str__(self) -> str:
        return f"{self.epsilon:g}" + ("" if self.days is None else f" in {self.days:g} days")


@make_options("tls.")
class TlsFiles:
    """Files for TLS, in PEM.

    Attributes:
        certificate: the server's certificate, with the chain of certificates to its root.
        key: the key of the certificate, without a password.
    """

    certificate: str
    key: str


@make_options("rule.")
class PolicyRule:
    """Changes of the policy for some requests. `*` in a name stands for anything.

    Attributes:
        routes: routes of the requests, such as chat/completions or responses*; none for all.
        models: models that the requests name.
        keys: names of the gateway keys that send the requests.
        upstream: as in the policy, like all fields after it. `always`, `never` and `block` are
            added to the policy's.
        profile: as in the policy.
        level: as in the policy.
        dates: as in the policy.
        always: as in the policy.
        never: as in the policy.
        options: as in the policy.
        media: as in the policy.
        schemas: as in the policy.
        unknown: as in the policy.
        unknown_fields: as in the policy; added to the policy's.
        users: as in the policy.
        unresolved: as in the policy.
        block: as in the policy; added to the policy's.
        requests: as in the policy; not with routes or models, since it counts all requests of a
            key.
        budget: as in the policy; not with routes or models.
    """

    routes: Texts = ()
    models: Texts = ()
    keys: Texts = ()
    upstream: str | None = None
    profile: str | None = None
    level: Literal["identifiers", "personal", "names"] | None = None
    dates: Literal["personal", "all", "none"] | None = None
    always: Texts = Field(default=(), repr=False)
    never: Texts = Field(default=(), repr=False)
    options: dict[str, Any] = Field(default_factory=dict, repr=False)
    media: Literal["refuse", "pass"] | None = None
    schemas: Literal["identifiers", "pass"] | None = None
    unknown: Unknown | None = None
    unknown_fields: dict[str, Unknown] = Field(default_factory=dict)
    users: Literal["pseudonym", "drop"] | None = None
    unresolved: Literal["pass", "flag", "refuse"] | None = None
    block: Texts = ()
    requests: Annotated[int, Field(ge=1)] | None = None
    budget: KeyBudget | None = None

    def is_applicable(self, route: str, model: str | None, key: str | None) -> bool:
        """True if the rule holds for a request."""
        conditions = ((self.routes, route), (self.models, model), (self.keys, key))
        return all(not names or _is_match(names, name) for names, name in conditions)

    @property
    def changes(self) -> dict[str, Any]:
        """Fields that the rule changes, with their values."""
        names = [field.name for field in fields(self) if field.name not in SELECTOR_FIELDS]
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value not in (None, (), {})}

    def find_faults(self) -> Iterator[str]:
        """Yields the contradictions in the rule."""
        if not (self.routes or self.models or self.keys):
            yield (
                " selects all requests: give it routes, models or keys, or set its fields outside "
                "of the rules"
            )
        if not self.changes:
            yield " changes nothing"
        counts = self.requests is not None or self.budget is not None
        if counts and (self.routes or self.models):
            yield (
                ": requests and budget apply to all requests of a key: leave routes and models out"
            )

    @property
    def has_protection_changes(self) -> bool:
        """True if the rule changes how texts are protected."""
        names = {"profile", "level", "dates", "always", "never", "options"}
        return bool(names & self.changes.keys())


SELECTOR_FIELDS = ("routes", "models", "keys")
"""Fields of a rule that select its requests."""


def _is_match(names: Sequence[str], name: str | None) -> bool:
    return name is not None and any(fnmatchcase(name, pattern) for pattern in names)


@make_options("policy.")
class Policy:
    """Rules of a gateway.

    If a detector fails, nothing is sent; no option changes that.

    Attributes:
        upstream: destination of requests: a URL, or a name from `upstreams`.
        upstreams: APIs by name.
        profile: profile that protects texts, see `textveil list profiles`; `prompt` if no other is
            set.
        level: level of private values that are hidden, see `protect.level`.
        dates: which dates are hidden, see `protect.dates`.
        always: words that are always hidden.
        never: words that are never hidden.
        options: any other option by its path, as after -o.
        media: images, audio, files and token ids: "refuse" the request, or "pass" them unchanged.
        schemas: descriptions of tools: "identifiers" hides identifiers in them, found with
            certainty, "pass" sends them unchanged.
        unknown: fields and values that the gateway does not know: "protect" reads names and values
            like texts, and sends them protected; "refuse" refuses the request; "drop" leaves fields
            out, and refuses an unknown message, tool, name or id.
        unknown_fields: the same for fields by name, such as provider.trace; `*` stands for
            anything, and the last one that matches wins.
        users: names of a program's users: "pseudonym", which is the same for the same user, or
            "drop".
        unresolved: calls of tools, in answers, that hold a placeholder which stands for nothing:
            "flag" counts them in a header or at the end of the stream, "refuse" gives an error in
            place of the call, "pass" does neither.
        block: types of private values, such as SECRET and CARD: a request in which one is found is
            refused, and nothing of it is sent.
        restore: further places in answers where originals are put back, although they could be
            sent away from there.
        rules: changes for some routes, models and keys. All rules that match a request apply, and
            a later rule overrides an earlier one.
        keys: the file of the gateway's own keys, which `textveil gateway keys` writes; with it,
            clients need a key.
        requests: requests that a key may send in a minute.
        budget: budget of all texts of a key.
        limit: the largest request, in bytes.
        timeout: seconds to wait for data from an upstream.
        memory: megabytes for released messages in this process; those least recently used are
            forgotten, and released anew when they come again.
        tls: files for TLS.
        playground: the page at /: "local" where only this machine can reach the gateway,
            "everywhere", or "never".
        hosts: host names under which the playground opens and, without keys, the gateway answers,
            in addition to IP addresses and localhost.
        origins: pages of browsers and desktop programs that may ask, such as http://localhost:3000
            or app://obsidian.md. With keys, pages of this machine and `app://` may ask, too.
        tools: names of the tools that `textveil gateway mcp` serves, protected; `*` in a name
            stands for anything.
        other_tools: all other tools: "refuse" them, or "pass" them with nothing hidden or restored.
    """

    upstream: str | None = None
    upstreams: dict[str, Upstream] = Field(default_factory=dict)
    profile: str | None = None
    level: Literal["identifiers", "personal", "names"] | None = None
    dates: Literal["personal", "all", "none"] | None = None
    always: Texts = Field(default=(), repr=False)
    never: Texts = Field(default=(), repr=False)
    options: dict[str, Any] = Field(default_factory=dict, repr=False)
    media: Literal["refuse", "pass"] = "refuse"
    schemas: Literal["identifiers", "pass"] = "identifiers"
    unknown: Unknown = "protect"
    unknown_fields: dict[str, Unknown] = Field(default_factory=dict)
    users: Literal["pseudonym", "drop"] = "pseudonym"
    unresolved: Literal["pass", "flag", "refuse"] = "flag"
    block: Texts = ()
    restore: RestoreOptions = Field(default_factory=RestoreOptions)
    rules: tuple[PolicyRule, ...] = ()
    keys: str | None = None
    requests: Annotated[int, Field(ge=1)] | None = None
    budget: KeyBudget | None = None
    limit: Annotated[int, Field(ge=1)] = 4_000_000
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    memory: Annotated[int, Field(ge=1)] = 256
    tls: TlsFiles | None = None
    playground: Literal["local", "everywhere", "never"] = "local"
    hosts: Texts = ()
    origins: Origins = ()
    tools: Texts = ()
    other_tools: Literal["refuse", "pass"] = "refuse"

    def __post_init__(self) -> None:
        if faults := list(self._find_faults()):
            raise PolicyError(faults)

    def _find_faults(self) -> Iterator[tuple[YamlPath, str]]:
        """Yields the contradictions in the policy, with their places."""
        for i, rule in enumerate(self.rules):
            for message in rule.find_faults():
                yield ("rules", i), f"rules.{i}{message}"
        for place, names, needs in self._find_key_settings():
            if needs and self.keys is None:
                message = "needs the gateway's own keys: name their file with `keys: FILE`"
                yield place, f"{names} {message}"
        yield from self._find_unknown_types()
        for place, name in self._find_upstreams():
            try:
                self.resolve_upstream(name)
            except ConfigError as error:
                yield place, f"{join_place(place)}: {reword_error(error)}"

    def _find_key_settings(self) -> Iterator[tuple[YamlPath, str, bool]]:
        """Yields the settings that need gateway keys: place, name, whether set."""
        rules: list[tuple[YamlPath, PolicyRule]] = [
            (("rules", i), rule) for i, rule in enumerate(self.rules)
        ]
        for place, part in [((), self), *rules]:
            for name in ("requests", "budget"):
                yield (*place, name), join_place((*place, name)), getattr(part, name) is not None
            if isinstance(part, PolicyRule):
                yield (*place, "keys"), join_place((*place, "keys")), bool(part.keys)

    def _find_unknown_types(self) -> Iterator[tuple[YamlPath, str]]:
        lists: list[tuple[YamlPath, Texts]] = [
            (("rules", i, "block"), rule.block) for i, rule in enumerate(self.rules)
        ]
        for place, names in [(("block",), self.block), *lists]:
            for j, name in enumerate(names):
                if name not in TYPES:
                    item: YamlPath = (*place, j)
                    yield item, f"{join_place(item)}: {UnknownName('type', name, TYPES)}"

    def _find_upstreams(self) -> Iterator[tuple[YamlPath, str]]:
        if self.upstream is not None:
            yield ("upstream",), self.upstream
        for i, rule in enumerate(self.rules):
            if rule.upstream is not None:
                yield ("rules", i, "upstream"), rule.upstream

    def resolve_upstream(self, upstream: str) -> Upstream:
        """Returns the upstream of a name or URL.

        Raises:
            ConfigError: it is neither a URL nor a known name.
        """
        if "://" in upstream:
            return Upstream(url=upstream)
        if upstream not in self.upstreams and ":" in upstream:
            raise ConfigError(
                "an upstream is a URL, such as http://HOST:PORT/v1: write http:// first"
            )
        if upstream not in self.upstreams:
            raise UnknownName("upstream", upstream, self.upstreams)
        return self.upstreams[upstream]

    def find_rules(self, route: str, model: str | None, key: str | None) -> tuple[int, ...]:
        """Returns the numbers of the rules that hold for a request.

        Args:
            route: the address of the request, without /v1.
            model: the model that it asks for.
            key: the name of the gateway key that asks.
        """
        return tuple(
            i for i, rule in enumerate(self.rules) if rule.is_applicable(route, model, key)
        )

    def decide_unknown(self, path: Sequence[str | int]) -> Unknown:
        """Decides about an unknown field by its path; numbers of items do not count.

        A field is treated as the one around it, unless it is named itself.
        """
        word, names = self.unknown, [step for step in path if isinstance(step, str)]
        for n in range(1, len(names) + 1) if self.unknown_fields else ():
            field = ".".join(names[:n])
            words = [w for pattern, w in self.unknown_fields.items() if fnmatchcase(field, pattern)]
            word = words[-1] if words else word
        return word

    def find_blocked(self, counts: Mapping[str, int]) -> str:
        """Returns the blocked types among hidden values, in words; "" for none.

        Args:
            counts: the number of hidden values by type.
        """
        return " and ".join(type_ for type_ in dict.fromkeys(self.block) if counts.get(type_))

    def is_tool_served(self, name: str) -> bool:
        """True if a tool of a tool server is served, protected."""
        return _is_match(self.tools, name)

    def get_request_limit(self, key: str) -> int | None:
        """Returns a key's limit of requests a minute; None for no limit."""
        rules = [rule for rule in self.rules if rule.requests is not None]
        limits = [rule.requests for rule in rules if _is_match(rule.keys, key)]
        return limits[-1] if limits else self.requests

    @property
    def has_budgets(self) -> bool:
        """True if any key has a budget."""
        return self.budget is not None or any(rule.budget is not None for rule in self.rules)

    def apply_rules(self, rules: Sequence[int]) -> Self:
        """Returns this policy as some of its rules change it.

        The returned policy has no rules.

        Args:
            rules: the numbers of the rules.
        """
        merged: dict[str, Any] = {
            "always": self.always,
            "never": self.never,
            "block": self.block,
            "options": self.options,
            "unknown_fields": self.unknown_fields,
        }
        for i in rules:
            changes = self.rules[i].changes
            for name in ("always", "never", "block"):
                merged[name] += changes.pop(name, ())
            for name in ("options", "unknown_fields"):
                merged[name] = {**merged[name], **changes.pop(name, {})}
            merged |= changes
        return replace(self, rules=(), **merged)

    def resolve_config(self) -> Config:
        """Resolves the options that protect texts where no rule applies.

        The environment counts, too.

        Raises:
            ConfigError: an option is wrong.
        """
        values: dict[str, Any] = {
            "profile": self.profile,
            "protect.level": self.level,
            "protect.dates": self.dates,
        }
        for name in ("always", "never"):
            values[f"protect.{name}"] = list(getattr(self, name)) or None
        overrides = {path: value for path, value in values.items() if value is not None}
        if repeated := sorted(overrides.keys() & self.options.keys()):
            raise ConfigError(
                f"options: {repeated[0]} is set twice: set it only outside of options"
            )
        return resolve(
            environ=os.environ, overrides={**self.options, **overrides}, default="prompt"
        )


def join_place(place: YamlPath) -> str:
    """Formats a place in a policy, with dots."""
    return ".".join(map(str, place))


def reword_error(error: ConfigError) -> str:
    """Rewords an error about an endpoint as one about a policy.

    The name of the option is left out, and the hint about the key names the policy's field.
    """
    message = str(error).removeprefix("endpoint.url ")
    return message.replace(
        "put the key in TEXTVEIL_LLM_KEY", "name the key in a policy, as credential: {env: NAME}"
    )
