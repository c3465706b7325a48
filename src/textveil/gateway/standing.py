"""Standing: a policy that is in force, with what it names: privatizer, upstream and its credential, keys.

In: a policy; the headers of a request. Out: who asks, and the headers that are sent on.
Not here: what a policy says (`policy`), the keys (`keys`), what becomes of a request (`routes`).
"""

import math
from collections.abc import Callable, Mapping, Sequence

from textveil.errors import ConfigError
from textveil.gateway.errors import RequestError
from textveil.gateway.keys import Caller, GatewayKeys, OwnKey
from textveil.gateway.policy import Policy, Upstream
from textveil.pipeline import Privatizer

KEY_HEADERS = ("authorization", "x-api-key", "api-key")
"""Headers in which keys are sent; the last one to upstreams only."""


class StandingPolicy:
    """A policy that is in force.

    Args:
        policy: what is said.
        privatizer: takes the place of the one that the policy describes; None for that one.
        upstream: where requests go, if the policy does not say it; None if it does.

    Attributes:
        privatizer: protects messages.
        built: whether the privatizer is the one that the policy describes.
        upstream: where requests go.
        keys: the gateway's own; None where clients send those of the upstream.

    Raises:
        ConfigError: something that the policy names is missing, or it names no upstream.
    """

    def __init__(
        self, policy: Policy, privatizer: Privatizer | None = None, upstream: str | None = None
    ) -> None:
        if policy.upstream is not None:
            self.upstream = policy.to(policy.upstream)
            if upstream not in (None, self.upstream.url):
                raise ConfigError("the policy names another upstream; give one of them")
        elif upstream is not None:
            self.upstream = Upstream(url=upstream)
        else:
            raise ConfigError(
                "a gateway needs an upstream, the base URL of a model's API: --upstream URL, or `upstream` in a policy"
            )
        self._policy = policy
        self.keys = None if policy.keys is None else GatewayKeys(policy.keys)
        credential = self.upstream.credential
        self._credential = credential and credential.read()
        self.built = privatizer is None
        self.privatizer = privatizer or Privatizer.from_config(policy.config())

    @property
    def has_credential(self) -> bool:
        """Whether the upstream gets a key of the operator's; what it says about that is no business of clients."""
        return self._credential is not None

    def admit(
        self,
        headers: Mapping[str, str],
        account: Callable[[str | None], str],
        *,
        counts: bool = True,
    ) -> Caller:
        """Who asks.

        Args:
            headers: of the request.
            account: to whom conversations belong that come with these keys of the upstream, or with none.
            counts: whether it counts as a request of the key.

        Raises:
            RequestError: the gateway has keys, and this is none of them, or must wait.
        """
        sent = {name: headers[name] for name in KEY_HEADERS[:2] if headers.get(name)}
        if self.keys is None:
            header, secret = next(iter(sent.items()), ("", ""))
            # The upstream may take either; no header holds a NUL.
            all_of_them = "\0".join(sent.values()) or None
            return Caller(account=account(all_of_them), header=header, secret=secret)
        for header, value in sent.items():
            secret = _bearer(value) if header == "authorization" else value
            if (key := self.keys.find(secret)) is not None:
                if counts:
                    self._count(self.keys, key)
                return Caller(account=key.account, key=key, header=header, secret=secret)
        wants = "this gateway wants a key"
        raise RequestError(
            401,
            f"{wants} of its own, and does not know this one" if sent else wants,
            code="invalid_api_key",
            headers={"WWW-Authenticate": "Bearer"},
        )

    def _count(self, keys: GatewayKeys, key: OwnKey) -> None:
        """Count a request, and refuse it where there were too many in the last minute."""
        requests = self._policy.requests_of(key.name)
        if requests is not None and (wait := keys.take(key, requests)):
            seconds = math.ceil(wait)
            raise RequestError(
                429,
                f"this key may send {requests:,} requests a minute; try again in {seconds:,} "
                f"{'second' if seconds == 1 else 'seconds'}",
                code="rate_limit_exceeded",
                headers={"Retry-After": str(seconds)},
            )

    def keys_sent(
        self, headers: Mapping[str, str], caller: Caller, names: Sequence[str]
    ) -> dict[str, str]:
        """The headers with a key that the upstream gets: its credential, or the client's key, or none.

        Args:
            headers: of the request.
            caller: who asks.
            names: the headers in which its API takes a key.
        """
        if self._credential is not None:
            header = self.upstream.header or (caller.header if caller.header in names else names[0])
            bearer = "Bearer " if header == "authorization" else ""
            return {header: f"{bearer}{self._credential}"}
        if caller.key is not None or self.upstream.client_key == "drop":
            return {}
        return {name: headers[name] for name in names if name in headers}


def _bearer(value: str) -> str:
    """Gives the key in a header `Authorization`, which older clients send as it is."""
    scheme, _, rest = value.partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else value
