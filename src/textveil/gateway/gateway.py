"""The gateway: its parts, and its variants under the rules of its policy.

In: a policy and what it names, a store. Out: a `Gateway`, and the variant that holds for a request.
Not here: the application (`app`), the handling of a request (`routes`, `exchange`), and the process
that serves (`process`).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, WrapValidator

from textveil.config import options
from textveil.errors import ConfigError
from textveil.gateway.errors import RequestError
from textveil.gateway.guarding import Guarding
from textveil.gateway.keys import Caller
from textveil.gateway.policy import Policy
from textveil.gateway.releasing import Release, Releasing, basis_of
from textveil.gateway.sites import check_program
from textveil.gateway.standing import StandingPolicy
from textveil.models import Address
from textveil.pipeline import Privatizer
from textveil.randomness import os_entropy
from textveil.session import Heads, Session, SessionStore, Utterance

COMBINED = 64
"""Maximal number of rule combinations kept loaded, beyond the single rules."""

_SAYS = "Maria Silva moved to 12 Oak Road, Lisbon, on 3 May 2024: anna@example.org, 212-555-0148."
EXAMPLE = Utterance("user", (_SAYS,))
"""Example with a finding for each detector, to load all detectors."""


@options("running.")
class Running:
    """Options for running a gateway.

    Attributes:
        audit_log: a file that gets a line of JSON for each request, with counts and no content; ""
            for none.
        metrics: clients that may read /metrics: programs of this machine ("local"), "all", or
            nobody ("off").
        grace: seconds that open requests have to end when the gateway stops; then streams end with
            an error.
        long: characters of new text from which a request waits in a separate lane.
        queue: how many requests may wait in a lane; others are refused.
        nobody: secret that names the account of conversations without a key; workers that share a
            store must share it, too.
    """

    audit_log: str = ""
    metrics: Literal["local", "all", "off"] = "local"
    grace: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 20.0
    long: Annotated[int, Field(ge=1)] = 20_000
    queue: Annotated[int, Field(ge=1)] = 200
    nobody: bytes = Field(default_factory=lambda: os_entropy(32), repr=False)


def _check_set(value: Any, check: Callable[[Any], Any]) -> Any:
    return value if value is None else check(value)


@options("gateway.")
class Gateway:
    """Gateway for one upstream.

    It forwards the client's key and no other header but those that say the version of an API,
    follows no redirects and keeps no cookies. Proxies from the environment are used for https only,
    where they cannot read the traffic. It fails closed: a request that cannot be protected or
    privatized is refused, and nothing is sent.



    A client's conversations are those of its key: no two keys share any. Clients without a key
    share those of this gateway, until it ends.

    Attributes:
        privatizer: protects every message of a request, in any role; None for the one that the
            policy describes, where its rules may say otherwise.
        upstream: base URL of the API, such as https://HOST/v1; None for that of the policy.
        policy: its rules for requests.
        store: stores released messages; in memory by default.
        running: options for running it.

    Raises:
        ConfigError: options are wrong, or something that the policy names is missing.
    """

    privatizer: Annotated[Privatizer, WrapValidator(_check_set)] = None  # type: ignore[assignment]
    upstream: Annotated[Address, WrapValidator(_check_set)] = None  # type: ignore[assignment]
    policy: Policy = Field(default_factory=Policy)
    store: SessionStore = Field(default_factory=SessionStore)
    running: Running = Field(default_factory=Running)

    def __post_init__(self) -> None:
        self.standing  # noqa: B018 - what it names is there now, or never
        if self.privatizer.words.lasting:
            raise ConfigError(
                "words.lasting is for sessions that are named, and a gateway has conversations: "
                "leave it out"
            )
        if not self.standing.built and any(rule.protects for rule in self.policy.rules):
            raise ConfigError(
                "rules of a policy change how texts are protected only where the policy says it: "
                "give no privatizer"
            )
        for i in range(len(self.policy.rules)):
            self.under((i,))
        self.store.pseudonym(b"")  # raises an error if the store cannot keep conversations
        if self.policy.budgets:
            self.store.ledger  # noqa: B018 - counts what is spent, or does not exist

    @cached_property
    def standing(self) -> StandingPolicy:
        """Policy in force, with everything that it names read and built.

        It also fills in the privatizer and the upstream if they were not passed.
        """
        state, standing = vars(self), StandingPolicy(self.policy, self.privatizer, self.upstream)
        state["privatizer"], state["upstream"] = standing.privatizer, standing.upstream.url
        return standing

    @cached_property
    def _variants(self) -> tuple[Lock, dict[tuple[int, ...], "Gateway"]]:
        return Lock(), {}

    def under(self, rules: tuple[int, ...]) -> "Gateway":
        """Returns this gateway as some rules of its policy change it; cached.

        Args:
            rules: the numbers of the rules.
        """
        if not rules:
            return self
        lock, variants = self._variants
        with lock:
            if (variant := variants.get(rules)) is not None:
                return variant
        policy = self.policy.under(rules)  # built without the lock: other requests must not wait
        same = self._given is None and policy.config() == self.policy.config()
        to: Any = self.upstream if policy.upstream is None else None
        built = replace(
            self, privatizer=self.privatizer if same else self._given, upstream=to, policy=policy
        )
        with lock:
            combined = [each for each in variants if len(each) > 1]
            if len(rules) > 1 and len(combined) >= COMBINED:
                del variants[combined[0]]
            return variants.setdefault(rules, built)

    def chosen(self, route: str, models: Collection[str | None], name: str | None) -> "Gateway":
        """Returns the gateway under the rules that hold for a request.

        Args:
            route: the route of the request.
            models: the models that may answer it.
            name: the name of the gateway key that asks; None for no key.

        Raises:
            RequestError: its models have different rules, or its rules contradict each other.
        """
        choices = {self.policy.rules_for(route, model, name) for model in models}
        if len(choices) > 1:
            says = (
                "the policy has different rules for the models of this request: ask for one model"
            )
            raise RequestError(400, says)
        rules = choices.pop()
        try:
            return self.under(rules)
        except ConfigError as error:  # its message names options only
            message = (
                f"rules {', '.join(map(str, rules))} of the policy hold for this request, and "
                f"contradict: {error}"
            )
        raise RequestError(500, message, code="policy")

    def reload(self, policy: Policy) -> None:
        """Takes another policy for new requests; running ones keep theirs.

        Raises:
            ConfigError: something that the policy names is wrong or missing; then nothing changes.
        """
        # Without the policy's upstream, its credential would be missing.
        if policy.upstream is None and self.policy.upstream is not None:
            raise ConfigError(
                "the policy must name its upstream, as it did when the gateway started"
            )
        to: Any = self.upstream if policy.upstream is None else None
        successor = replace(self, privatizer=self._given, upstream=to, policy=policy)
        successor.load()  # so that no request waits for it
        vars(successor)["_nobody"] = self._nobody
        vars(self)["current"] = successor

    @cached_property
    def current(self) -> "Gateway":
        """Gateway for the next request: this one, until its policy is reloaded."""
        return self

    @cached_property
    def _given(self) -> Any:
        """Privatizer passed by the caller; None if the policy describes it."""
        return None if self.standing.built else self.privatizer

    @cached_property
    def _nobody(self) -> str:
        return f"no-key-{self.store.pseudonym(self.running.nobody)}"

    @cached_property
    def heads(self) -> Heads:
        """Prefix cache of conversations that were read."""
        return Heads()

    @cached_property
    def guarding(self) -> Guarding:
        """State of requests that other programs send themselves."""
        return Guarding(self.basis)

    @cached_property
    def releasing(self) -> Release:
        """Release function for messages."""
        return Releasing.of(self.privatizer)

    @cached_property
    def basis(self) -> str:
        """Fingerprint of all that a release depends on, except messages."""
        return basis_of(self.privatizer, self.store)

    def sending(self, prepared: "Prepared") -> "Gateway":
        """Returns this gateway for a message that was already released.

        It has a separate store and charges the same ledger.
        """
        policy = replace(self.policy, rules=())
        variant = replace(self, privatizer=prepared.privatizer, policy=policy, store=prepared.store)
        vars(variant)["releasing"] = prepared.release
        return variant

    def caller(self, headers: Mapping[str, str], *, counts: bool = False) -> Caller:
        """Identifies the caller of a request; see `StandingPolicy.admit`."""
        return self.standing.admit(headers, self._name_account, counts=counts)

    def load(self) -> None:
        """Loads the models by releasing an example text in a throwaway session."""
        for gateway in [self.current, *self.current._variants[1].values()]:
            gateway.releasing(EXAMPLE, Session())

    def foreign(self, headers: Mapping[str, str]) -> RequestError | None:
        """Returns the refusal of a request that another web site makes.

        None if the request is admitted. Without gateway keys, a page of any site could ask through
        a visitor's browser.
        """
        policy = self.current.policy
        try:
            if policy.keys is None:
                check_program(headers, policy.hosts)
            return None
        except RequestError as error:
            return error

    def _name_account(self, key: str | None) -> str:
        """Returns the account for a key of the upstream, or for none."""
        return self._nobody if key is None else f"client-{self.store.pseudonym(key.encode())}"


class Prepared(NamedTuple):
    """Message that was already released. Secret.

    Args:
        privatizer: the privatizer that released the message.
        release: returns its release, as `Releasing` would make it, and charges it.
        store: stores the sent message, and charges accounts of the same ledger.
    """

    privatizer: Privatizer
    release: Release
    store: SessionStore

    def __repr__(self) -> str:
        return "Prepared()"
