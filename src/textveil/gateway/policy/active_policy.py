"""The policy in force: its privatizer, its upstream with the credential, its keys.

In: a policy; the headers of a request. Out: the caller, and the key headers that are sent on.
Not here: the fields of a policy (`policy`), the keys (`client_keys`), the handling of a request
(`api_routes`).
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import regex

from textveil.errors import ConfigError
from textveil.gateway.errors import RequestError
from textveil.gateway.policy.client_keys import Caller, GatewayKeys, KeyRecord
from textveil.gateway.policy.policy import Policy, Upstream
from textveil.pipeline import Privatizer, list_drawn_types

KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
"""Headers for keys: of OpenAI, Anthropic, Google and Azure."""

SIGNATURE = regex.compile(r"AWS4-[A-Z0-9-]+ Credential=([^/,\s]+)/")
"""Beginning of a header with which AWS's clients sign a request (SigV4); the group names the key."""

SIGNED_REQUEST = (
    "the client signed its request (SigV4), but the released text is sent, for which its signature "
    "does not hold: use an API key of Bedrock, in the policy as the credential of the upstream, or "
    "in the client (AWS_BEARER_TOKEN_BEDROCK, over TLS). Nothing was sent"
)


class ActivePolicy:
    """Policy in force, with the objects that it names.

    Args:
        policy: the policy.
        privatizer: replaces the privatizer that the policy describes; None for that one.
        upstream: the URL of the upstream, if the policy does not name it; None if it does.

    Attributes:
        privatizer: protects messages.
        is_privatizer_built: whether the privatizer was built from the policy.
        upstream: the upstream of the requests.
        keys: the gateway keys; None where clients send keys of the upstream.

    Raises:
        ConfigError: something that the policy names is missing, or there is no upstream.
    """

    def __init__(
        self, policy: Policy, privatizer: Privatizer | None = None, upstream: str | None = None
    ) -> None:
        if policy.upstream is not None:
            self.upstream = policy.resolve_upstream(policy.upstream)
            if upstream not in (None, self.upstream.url):
                raise ConfigError("the policy names a different upstream: give the upstream once")
        elif upstream is not None:
            self.upstream = Upstream(url=upstream)
        else:
            raise ConfigError(
                "a gateway needs an upstream, the base URL of a model's API: --upstream URL, or "
                "`upstream` in a policy"
            )
        self._policy = policy
        self.keys = None if policy.keys is None else GatewayKeys(policy.keys)
        credential = self.upstream.credential
        self._credential = credential and credential.read()
        self.is_privatizer_built = privatizer is None
        self.privatizer = privatizer or Privatizer.from_config(policy.resolve_config())
        check_blocked_types(policy.block, self.privatizer)

    @property
    def has_credential(self) -> bool:
        """True if the upstream gets a key of the operator.

        Messages of the upstream about that key are not for clients.
        """
        return self._credential is not None

    def admit(
        self,
        headers: Mapping[str, str],
        account: Callable[[str | None], str],
        *,
        counts: bool = True,
    ) -> Caller:
        """Identifies the caller of a request and counts the request.

        Args:
            headers: headers of the request.
            account: returns the account for a key of the upstream, or for None.
            counts: whether it counts against the rate limit of the key.

        Raises:
            RequestError: the gateway has keys, and the request has none of them, or its key must
                wait.
        """
        sent = {name: headers[name] for name in KEY_HEADERS if headers.get(name)}
        key_headers = {name: _name_signer(value) for name, value in sent.items()}
        if self.keys is None:
            header, secret = next(iter(key_headers.items()), ("", ""))
            # The upstream may take either key, so both name the account; no header holds a NUL.
            # Nobody checks a signature here, and the name of its key is no secret.
            secrets = [value for value in sent.values() if not SIGNATURE.match(value)]
            return Caller(account=account("\0".join(secrets) or None), header=header, secret=secret)
        for header, value in key_headers.items():
            secret = _extract_bearer(value) if header == "authorization" else value
            if (key := self.keys.find(secret)) is not None:
                if counts:
                    self._count(self.keys, key)
                return Caller(account=key.account, key=key, header=header, secret=secret)
        wants = "this gateway needs a key"
        raise RequestError(
            401,
            f"{wants} of its own and does not know the key of this request"
            if key_headers
            else wants,
            code="invalid_api_key",
            headers={"WWW-Authenticate": "Bearer"},
        )

    def _count(self, keys: GatewayKeys, key: KeyRecord) -> None:
        """Counts a request of a key; refuses it above the rate limit."""
        requests = self._policy.get_request_limit(key.name)
        if requests is not None and (wait := keys.count_request(key, requests)):
            seconds = math.ceil(wait)
            raise RequestError(
                429,
                f"this key may send {requests:,} requests a minute; try again in {seconds:,} "
                f"{'second' if seconds == 1 else 'seconds'}",
                code="rate_limit_exceeded",
                headers={"Retry-After": str(seconds)},
            )

    def build_key_headers(
        self, headers: Mapping[str, str], caller: Caller, names: Sequence[str]
    ) -> dict[str, str]:
        """Returns the key headers for the upstream.

        They have its credential, or the client's key, or nothing.

        Args:
            headers: headers of the request.
            caller: the caller of the request.
            names: the headers in which the API takes a key.

        Raises:
            RequestError: the client's signature would be sent, which holds for another text.
        """
        if self._credential is not None:
            header = self.upstream.header or (caller.header if caller.header in names else names[0])
            bearer = "Bearer " if header == "authorization" else ""
            return {header: f"{bearer}{self._credential}"}
        if caller.key is not None or self.upstream.client_key == "drop":
            return {}
        passed = {name: headers[name] for name in names if name in headers}
        if passed.get("authorization", "").startswith("AWS4-"):
            raise RequestError(401, SIGNED_REQUEST, code="invalid_api_key")
        return passed


def check_blocked_types(types: Collection[str], privatizer: Privatizer) -> None:
    """Checks that a privatizer finds these types, so that blocking them does something.

    Raises:
        ConfigError: one is not looked for, or not always hidden.
    """
    if left := list_drawn_types(privatizer, types):
        raise ConfigError(
            f"block names {', '.join(left)}, and with these options such values are not always "
            "replaced by placeholders: leave it out, or change protect.detectors, protect.level, "
            "protect.types, protect.placeholders, names.types or identifiers.types"
        )


def check_spending(privatizer: Privatizer, refusal: str) -> None:
    """Checks that a privatizer spends nothing where a store refuses that.

    Args:
        privatizer: the privatizer.
        refusal: `SessionStore.refuses_spending`.

    Raises:
        ConfigError: each request with a private word would be refused.
    """
    if refusal and privatizer.can_spend:
        raise ConfigError(f"with these options words, names or figures are drawn, and {refusal}")


def _extract_bearer(value: str) -> str:
    """Extracts the key from an `Authorization` header.

    Older clients send it without "Bearer".
    """
    scheme, _, token = value.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else value


def _name_signer(value: str) -> str:
    """Returns the name of the key of a signed request, since each signature is another."""
    signature = SIGNATURE.match(value)
    return signature[1] if signature else value
