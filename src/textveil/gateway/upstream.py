"""What comes from the upstream, read: headers, whole answers, errors with the originals put back.

In: a response of the upstream. Out: its JSON, or an error for the client that says why there is none.
Not here: what is asked (`app`), how answers are restored (`answers`), and how streams are (`protocols`).
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from textveil.gateway.answers import Restoring
from textveil.gateway.errors import RequestError

if TYPE_CHECKING:
    import httpx2

KEPT = ("retry-after", "retry-after-ms", "request-id", "x-request-id", "x-should-retry")
"""Headers of the upstream that are passed on; so are those that begin with `LIMITS`."""

LIMITS = ("x-ratelimit-", "anthropic-ratelimit-")

ERROR = ("message", "type", "param", "code")
"""Fields of an error that are passed on."""

LARGEST_ERROR = 65_536
"""Bytes of an upstream's error that are read."""


def headers_of(answer: "httpx2.Response") -> dict[str, str]:
    """Headers of the upstream that are passed on."""
    return {name: value for name, value in answer.headers.items() if name in KEPT or name.startswith(LIMITS)}


@contextmanager
def failing() -> Iterator[None]:
    """Turns failures of the upstream into errors for the client."""
    import httpx2

    try:
        yield
        return
    except httpx2.TimeoutException:
        failure = RequestError(504, "the upstream timed out", code="upstream")
    except httpx2.HTTPError:
        failure = RequestError(502, "the upstream cannot be reached, or broke off", code="upstream")
    raise failure


async def refusal_of(answer: "httpx2.Response", restoring: Restoring, keys: Iterable[str]) -> RequestError:
    """What the upstream says about a request that it refused."""
    read = bytearray()
    with suppress(Exception):
        async for piece in answer.aiter_bytes():
            read += piece
            if len(read) > LARGEST_ERROR:
                break
    status = answer.status_code if answer.status_code >= 400 else 502
    says = f"the upstream refused with status {answer.status_code}"
    found = None
    with suppress(ValueError, RecursionError):
        found = json.loads(read) if answer.status_code >= 400 else None
    return worded(RequestError(status, says, code="upstream", headers=headers_of(answer)), found, restoring, keys)


def worded(refused: RequestError, found: Any, restoring: Restoring, keys: Iterable[str]) -> RequestError:
    """An error as the upstream words it, with the originals put back; the gateway's own where that repeats the key."""
    error = found.get("error", found) if isinstance(found, dict) else None
    said = {"message": error} if isinstance(error, str) else error if isinstance(error, dict) else {}
    texts = {name: restoring.text(said[name]) for name in ERROR if isinstance(said.get(name), str)}
    secrets = [word for key in keys for word in key.split() if len(word) > 7]
    if "message" not in texts or any(word in text for word in secrets for text in texts.values()):
        return refused
    code = said.get("code")
    return RequestError(
        refused.status,
        texts["message"],
        param=texts.get("param"),
        code=texts.get("code") or (str(code) if isinstance(code, int) else None),
        kind=texts.get("type"),
        headers=refused.headers,
        own=False,
    )


async def stream_of(answer: "httpx2.Response") -> "httpx2.Response":
    """An answer that is a stream.

    Raises:
        RequestError: it is none.
    """
    if answer.headers.get("content-type", "").partition(";")[0].strip().lower() == "text/event-stream":
        return answer
    await answer.aclose()
    raise RequestError(502, "the upstream did not answer with a stream", code="upstream")


async def json_of(response: "httpx2.Response") -> dict[str, Any]:
    """A complete answer."""
    with failing():
        body = await response.aread()
    with suppress(ValueError, RecursionError):
        answer = json.loads(body)
        if isinstance(answer, dict):
            return answer
    raise RequestError(502, "the upstream did not answer with JSON", code="upstream")
