"""The upstream: sends released requests and reads its headers, answers and errors.

In: a released request; a response of the upstream. Out: its response, and the JSON of that; or an
error for the client with the reason, with the originals put back.
Not here: the release of requests (`request_flow`), how answers are restored (`restoring`), and how
streams are (`protocols`).
"""

import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy
from time import monotonic
from typing import TYPE_CHECKING, Any

from textveil.config.extras import explain_missing
from textveil.gateway.errors import RequestError
from textveil.gateway.gateway import Gateway
from textveil.gateway.policy.active_policy import KEY_HEADERS
from textveil.gateway.policy.client_keys import Caller
from textveil.gateway.protocols import Operation
from textveil.gateway.protocols.restoring import AnswerRestorer
from textveil.gateway.request.parsing import get_media_type

if TYPE_CHECKING:
    import httpx2
    from starlette.requests import Request

PASSED_HEADERS = (
    "retry-after",
    "retry-after-ms",
    "request-id",
    "x-amzn-errortype",
    "x-amzn-requestid",
    "x-request-id",
    "x-should-retry",
)
"""Headers of the upstream that are passed on.

Headers that begin with `RATE_LIMIT_PREFIXES` are passed on, too.
"""

RATE_LIMIT_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")

ERROR_FIELDS = ("message", "type", "param", "code")
"""Fields of an upstream's error that are passed on."""

MAX_ERROR_BYTES = 65_536
"""Bytes of an upstream's error that are read."""

KEEPALIVE_SECONDS = 4.0
"""Seconds that an idle connection is kept.

Many servers close theirs after 5 seconds.
"""

CLOSED_SECONDS = 1.0
"""Seconds within which a kept connection's end means it was already closed."""

NO_RESPONSE = "without sending a response"
"""Error text for a connection that ended before a response.

Other error texts mean that a malformed response came.
"""


def build_client() -> "httpx2.AsyncClient":
    """Creates the HTTP client for the upstream.

    It follows no redirects, keeps no cookies, and takes proxies from the environment for https
    only.
    """
    with explain_missing():
        import httpx2

    # no limit: requests already wait in lanes
    limits = httpx2.Limits(max_connections=None, keepalive_expiry=KEEPALIVE_SECONDS)
    trusted = httpx2.create_ssl_context()
    return httpx2.AsyncClient(
        limits=limits,
        verify=trusted,
        headers={"User-Agent": "textveil", "Accept-Encoding": "identity"},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        # Without a proxy of the environment: it could read the traffic.
        mounts={"http://": httpx2.AsyncHTTPTransport(limits=limits, verify=trusted)},
        follow_redirects=False,
    )


async def send(
    gateway: Gateway,
    operation: Operation,
    request: "Request",
    released: dict[str, Any],
    restorer: AnswerRestorer,
    caller: Caller,
) -> "httpx2.Response":
    """Sends a released request and returns the response, with headers read.

    Args:
        gateway: the gateway of the upstream.
        operation: the route of the request.
        request: the client's request; the end of its response closes this one.
        released: the body that is sent.
        restorer: puts the originals back where the upstream refuses.
        caller: the caller of the request.

    Raises:
        RequestError: the upstream refused; its message is restored.
    """
    client: httpx2.AsyncClient = request.state.client
    headers = gateway.active_policy.build_key_headers(request.headers, caller, operation.keys)
    for name, shape in operation.forwards.items():
        if shape.fullmatch(value := request.headers.get(name, "")):
            headers[name] = value
    path, query, body = operation.split_request(released)
    url, timeout = f"{operation.choose_base(gateway.upstream)}{path}", gateway.policy.timeout
    outgoing = client.build_request(
        operation.method, url, json=body, params=query, headers=headers, timeout=timeout
    )
    if (
        caller.key is not None
        and caller.secret.encode() in outgoing.content + outgoing.url.raw_path
    ):
        raise RequestError(
            400,
            "the request contains the key of the gateway, which must not be sent to the upstream: "
            "remove it",
        )
    # If sent twice, a conversation that the upstream keeps would hold it twice.
    is_sent_once = operation.get_conversation(released) is not None
    with convert_failures():
        exit_stack = request.state.until
        response_work = (
            client.send(outgoing, stream=True)
            if is_sent_once
            else _send_with_retry(client, outgoing, exit_stack)
        )
        answer = await response_work
    request.state.until.push_async_callback(answer.aclose)
    if answer.status_code == 200:
        return answer
    if answer.status_code == 401 and gateway.active_policy.has_credential:
        raise RequestError(
            502, "the upstream rejects the key that the policy names for it", code="upstream"
        )
    raise await read_refusal(answer, restorer, list_keys(answer))


async def _send_with_retry(
    client: "httpx2.AsyncClient", request: "httpx2.Request", exit_stack: AsyncExitStack
) -> "httpx2.Response":
    """Sends a request, once more if its kept connection was already closed.

    The upstream may close a kept connection while the request is on its way. Then nobody has read
    the request, and it is sent again, once and on a new connection. From here that looks like an
    upstream that breaks down over the request: so it is done only if the connection ends at once,
    before the head of a response is there. At worst the upstream gets the same release twice, as
    from clients that ask again after an error.

    Args:
        client: keeps connections.
        request: the request that is sent.
        exit_stack: closes the new connection.
    """
    import httpx2

    start, is_kept = monotonic(), True

    async def note_event(event: str, _: object) -> None:
        nonlocal is_kept
        is_kept = is_kept and not event.endswith("connect_tcp.started")

    request.extensions["trace"] = note_event
    try:
        return await client.send(request, stream=True)
    except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError) as error:
        has_response = isinstance(error, httpx2.RemoteProtocolError) and NO_RESPONSE not in str(
            error
        )
        if has_response or not is_kept or monotonic() > start + CLOSED_SECONDS:
            raise
    new_client = await exit_stack.enter_async_context(build_client())
    return await new_client.send(request, stream=True)


def list_keys(answer: "httpx2.Response") -> list[str]:
    """Returns the values of the key headers that the upstream got."""
    return [answer.request.headers[name] for name in KEY_HEADERS if name in answer.request.headers]


def select_headers(answer: "httpx2.Response") -> dict[str, str]:
    """Returns the upstream's headers that are passed on."""
    headers = answer.headers.items()
    return {
        name: value
        for name, value in headers
        if name in PASSED_HEADERS or name.startswith(RATE_LIMIT_PREFIXES)
    }


@contextmanager
def convert_failures() -> Iterator[None]:
    """Turns failures of the upstream into errors for the client."""
    import httpx2

    try:
        yield
        return
    except httpx2.TimeoutException:
        failure = RequestError(504, "the upstream timed out", code="upstream")
    except httpx2.HTTPError:
        failure = RequestError(502, "the upstream cannot be reached, or broke off", code="upstream")
    # Out here, because a chained error of the HTTP client would hold the request.
    raise failure


async def read_refusal(
    answer: "httpx2.Response", restorer: AnswerRestorer, keys: Iterable[str]
) -> RequestError:
    """Reads the upstream's error and turns it into one for the client."""
    data = bytearray()
    with suppress(Exception):
        async for piece in answer.aiter_bytes():
            data += piece
            if len(data) > MAX_ERROR_BYTES:
                break
    status = answer.status_code if answer.status_code >= 400 else 502
    message = f"the upstream refused with status {answer.status_code}"
    content = None
    with suppress(ValueError, RecursionError):
        content = json.loads(data) if answer.status_code >= 400 else None
    refused = RequestError(status, message, code="upstream", headers=select_headers(answer))
    return build_refusal(refused, content, restorer, keys)


def build_refusal(
    refused: RequestError, content: Any, restorer: AnswerRestorer, keys: Iterable[str]
) -> RequestError:
    """Builds an error with the upstream's message, restored.

    The gateway's error is returned if there is no message, or if it repeats the key.
    """
    fields = _extract_error(content)
    texts = {
        name: restorer.restore_text(fields[name])
        for name in ERROR_FIELDS
        if isinstance(fields.get(name), str)
    }
    # Shorter words, such as Bearer, may stand in any message.
    secrets = [word for key in keys for word in key.split() if len(word) > 7]
    joined = "\n".join(texts.values())
    if "message" not in texts or any(word in joined for word in secrets):
        return refused
    return RequestError(
        refused.status,
        texts["message"],
        param=texts.get("param"),
        code=texts.get("code") or None,
        kind=texts.get("type"),
        headers=refused.headers,
        is_gateway_error=False,
    )


def _extract_error(content: Any) -> dict[str, Any]:
    """Extracts the fields of an upstream's error.

    An error may be its message alone.
    """
    error = content.get("error", content) if isinstance(content, dict) else None
    if not isinstance(error, dict):
        return {"message": error}
    code, status = error.get("code"), error.get("status")
    if isinstance(status, str):  # Google's name for the type
        error = {"type": status, **error}
    return error | {"code": str(code)} if isinstance(code, int) else error


async def check_stream(
    answer: "httpx2.Response", media_types: Collection[str]
) -> "httpx2.Response":
    """Checks that an answer is a stream of these types, and returns it.

    Raises:
        RequestError: the answer is no stream.
    """
    if get_media_type(answer.headers) in media_types:
        return answer
    await answer.aclose()
    raise RequestError(502, "the upstream did not answer with a stream", code="upstream")


async def read_json(response: "httpx2.Response") -> dict[str, Any]:
    """Reads a complete JSON answer."""
    with convert_failures():
        body = await response.aread()
    with suppress(ValueError, RecursionError):
        answer = json.loads(body)
        if isinstance(answer, dict):
            return answer
    raise RequestError(502, "the upstream did not answer with JSON", code="upstream")
