"""The gateway: its parts, and its variants under the rules of its policy.

In: a policy and what it names, a store. Out: a `Gateway`, and the variant that holds for a request.
Not here: the application (`app`), the handling of a request (`api_routes`, `request_flow`), and the
process
that serves (`process`).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, WrapValidator

from textveil.config import make_options
from textveil.errors import ConfigError
from textveil.gateway.errors import RequestError
from textveil.gateway.policy.active_policy import ActivePolicy, check_spending
from textveil.gateway.policy.client_keys import Caller
from textveil.gateway.policy.policy import Policy
from textveil.gateway.request.guardrail import GuardrailSessions
from textveil.gateway.request.origin_check import check_origin, check_program, is_desktop_page
from textveil.gateway.request.protect_message import (
    MessageReleaser,
    ReleaseFunction,
    build_config_digest,
)
from textveil.models import Address
from textveil.pipeline import Privatizer
from textveil.randomness import read_entropy
from textveil.session import PrefixCache, Session, SessionStore, Utterance

MEGABYTE = 1_000_000
"""Bytes of a megabyte."""

MAX_COMBINATIONS = 64
"""Maximal number of rule combinations kept loaded, beyond the single rules."""

_EXAMPLE_TEXT = (
    "Maria Silva moved to 12 Oak Road, Lisbon, on 3 May 2024: anna@example.org, 212-555-0148."
)
EXAMPLE_MESSAGE = Utterance("user", (_EXAMPLE_TEXT,))
"""Example with a finding for each detector, to load all detectors."""


@make_options("running.")
class ServingOptions:
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
        body_timeout: seconds in which a client may send nothing of its request's body, and in which
            the head of a request must be there.
        keepalive: seconds that a connection without a request stays open.
        nobody: secret that names the account of conversations without a key; workers that share a
            store must share it, too.
    """

    audit_log: str = ""
    metrics: Literal["local", "all", "off"] = "local"
    grace: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 20.0
    long: Annotated[int, Field(ge=1)] = 20_000
    queue: Annotated[int, Field(ge=1)] = 200
    body_timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0
    keepalive: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0
    nobody: bytes = Field(default_factory=lambda: read_entropy(32), repr=False)


def _check_set(value: Any, check: Callable[[Any], Any]) -> Any:
    return value if value is None else check(value)


@make_options("gateway.")
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
    running: ServingOptions = Field(default_factory=ServingOptions)

    def __post_init__(self) -> None:
        self.active_policy  # noqa: B018 - what it names is there now, or never
        if self.privatizer.words.lasting:
            raise ConfigError(
                "words.lasting works with named sessions only, and a gateway keeps conversations: "
                "leave it out"
            )
        if not self.active_policy.is_privatizer_built and any(
            rule.has_protection_changes for rule in self.policy.rules
        ):
            raise ConfigError(
                "the policy has rules that change how texts are protected, and they cannot change "
                "a privatizer that is given: set its options in the policy and give no privatizer"
            )
        for i in range(len(self.policy.rules)):
            self.apply_rules((i,))
        self.store.pseudonym(b"")  # raises an error if the store cannot keep conversations
        check_spending(self.privatizer, self.store.refuses_spending)
        if self.policy.has_budgets:
            self.store.ledger  # noqa: B018 - counts what is spent, or does not exist

    @cached_property
    def active_policy(self) -> ActivePolicy:
        """Policy in force, with everything that it names read and built.

        It also fills in the privatizer and the upstream if they were not passed.
        """
        state, active = vars(self), ActivePolicy(self.policy, self.privatizer, self.upstream)
        state["privatizer"], state["upstream"] = active.privatizer, active.upstream.url
        return active

    @cached_property
    def _variants(self) -> tuple[Lock, dict[tuple[int, ...], "Gateway"]]:
        return Lock(), {}

    def apply_rules(self, rules: tuple[int, ...]) -> "Gateway":
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
        policy = self.policy.apply_rules(
            rules
        )  # built without the lock: other requests must not wait
        same = (
            self._explicit_privatizer is None
            and policy.resolve_config() == self.policy.resolve_config()
        )
        upstream: Any = self.upstream if policy.upstream is None else None
        built = replace(
            self,
            privatizer=self.privatizer if same else self._explicit_privatizer,
            upstream=upstream,
            policy=policy,
        )
        # All variants together have one memory; names of links differ where the options do.
        vars(built)["prefix_cache"] = self.prefix_cache
        with lock:
            combined = [combination for combination in variants if len(combination) > 1]
            # Requests choose the combinations, so their number must be bounded.
            if len(rules) > 1 and len(combined) >= MAX_COMBINATIONS:
                del variants[combined[0]]
            # Another thread may have built it meanwhile: then that one stays, and all share it.
            return variants.setdefault(rules, built)

    def select_variant(
        self, route: str, models: Collection[str | None], name: str | None
    ) -> "Gateway":
        """Returns the gateway under the rules that hold for a request.

        Args:
            route: the route of the request.
            models: the models that may answer it.
            name: the name of the gateway key that asks; None for no key.

        Raises:
            RequestError: its models have different rules, or its rules contradict each other.
        """
        choices = {self.policy.find_rules(route, model, name) for model in models}
        if len(choices) > 1:
            problem = (
                "the policy has different rules for the models of this request: ask for one model"
            )
            raise RequestError(400, problem)
        rules = choices.pop()
        try:
            return self.apply_rules(rules)
        except ConfigError as error:  # its message names options only
            message = (
                f"rules {', '.join(map(str, rules))} of the policy apply to this request and "
                f"contradict each other: {error}"
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
        upstream: Any = self.upstream if policy.upstream is None else None
        successor = replace(
            self, privatizer=self._explicit_privatizer, upstream=upstream, policy=policy
        )
        successor.load()  # so that no request waits for it
        # Clients without a key go on with their conversations.
        vars(successor)["_keyless_account"] = self._keyless_account
        # The class is frozen. One assignment, so that a request never sees half of a policy.
        vars(self)["current"] = successor

    @cached_property
    def current(self) -> "Gateway":
        """Gateway for the next request: this one, until its policy is reloaded."""
        return self

    @cached_property
    def _explicit_privatizer(self) -> Any:
        """Privatizer passed by the caller; None if the policy describes it."""
        return None if self.active_policy.is_privatizer_built else self.privatizer

    @cached_property
    def _keyless_account(self) -> str:
        return f"no-key-{self.store.pseudonym(self.running.nobody)}"

    @property
    def _memory(self) -> int:
        """Bytes for conversations: a quarter for those that were read, the rest for rows."""
        return self.policy.memory * MEGABYTE

    @cached_property
    def prefix_cache(self) -> PrefixCache:
        """Prefix cache of conversations that were read."""
        return PrefixCache(max_bytes=self._memory // 4)

    @cached_property
    def guardrail_sessions(self) -> GuardrailSessions:
        """State of requests that other programs send themselves."""
        return GuardrailSessions(self.config_digest)

    @cached_property
    def release_message(self) -> ReleaseFunction:
        """Release function for messages."""
        return MessageReleaser.build(self.privatizer)

    @cached_property
    def config_digest(self) -> str:
        """Fingerprint of all that a release depends on, except messages."""
        return build_config_digest(self.privatizer, self.store)

    def build_sender(self, prepared: "ReleasedMessage") -> "Gateway":
        """Returns this gateway for a message that was already released.

        It has a separate store and charges the same ledger.
        """
        policy = replace(self.policy, rules=())
        variant = replace(self, privatizer=prepared.privatizer, policy=policy, store=prepared.store)
        vars(variant)["release_message"] = prepared.release
        return variant

    def identify_caller(self, headers: Mapping[str, str], *, counts: bool = False) -> Caller:
        """Identifies the caller of a request; see `ActivePolicy.admit`."""
        return self.active_policy.admit(headers, self._resolve_account, counts=counts)

    def load(self) -> None:
        """Loads the models by releasing an example text in a throwaway session."""
        for gateway in [self.current, *self.current._variants[1].values()]:
            gateway.release_message(EXAMPLE_MESSAGE, Session())
        self.current.store.set_memory(self._memory - self._memory // 4)

    def check_origin(self, headers: Mapping[str, str]) -> RequestError | None:
        """Returns the refusal of a request that another web site makes.

        None if the request is admitted. Without gateway keys, a page of any site could ask through
        a visitor's browser.
        """
        policy = self.current.policy
        try:
            if policy.keys is None:
                check_program(headers, policy.hosts, self.is_page_allowed)
            else:
                check_origin(headers, self.is_page_allowed)
            return None
        except RequestError as error:
            return error

    def is_page_allowed(self, origin: str) -> bool:
        """True if a page of this origin may ask: the policy lists it, or it needs a key.

        Without keys any page of this machine could ask, such as one in a notebook.
        """
        policy = self.current.policy
        is_listed = origin.lower() in policy.origins
        return is_listed or (policy.keys is not None and is_desktop_page(origin))

    def _resolve_account(self, key: str | None) -> str:
        """Returns the account for a key of the upstream, or for none."""
        return (
            self._keyless_account if key is None else f"client-{self.store.pseudonym(key.encode())}"
        )


class ReleasedMessage(NamedTuple):
    """Message that was already released. Secret.

    Args:
        privatizer: the privatizer that released the message.
        release: returns its release, as `MessageReleaser` would make it, and charges it.
        store: stores the sent message, and charges accounts of the same ledger.
    """

    privatizer: Privatizer
    release: ReleaseFunction
    store: SessionStore

    def __repr__(self) -> str:
        return "ReleasedMessage()"
