"""What a client asks, read: the JSON of its body, its path and its query, and the models that may answer.

In: a request, as it came. Out: JSON, or `RequestError`.
Not here: what of it is text (`requests`), and who asks (`standing`).
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from textveil.gateway.errors import RequestError
from textveil.gateway.protocols import Operation

if TYPE_CHECKING:
    from starlette.requests import Request

DEEPEST = 100
"""Levels of objects and lists in a request."""


async def asked_for(request: "Request", operation: Operation, most: int) -> dict[str, Any]:
    """What a request says in its body, its path and its query.

    Args:
        request: of the client.
        operation: its route.
        most: bytes of the largest body.

    Raises:
        RequestError: see `body_of`.
    """
    said: dict[str, Any] = {}
    for name in request.query_params:
        if operation.has_body and name not in operation.query:
            continue
        several = request.query_params.getlist(name)
        said[name] = several if name.endswith("[]") else several[-1]
    return (await body_of(request, most) if operation.has_body else {}) | said | request.path_params


async def body_of(request: "Request", most: int) -> dict[str, Any]:
    """The JSON of a request.

    Args:
        request: of the client.
        most: bytes of the largest body.

    Raises:
        RequestError: it is none, too large, or nested too deeply.
    """
    if type_of(request.headers) != "application/json":  # which pages cannot send cross-site
        raise RequestError(415, "a request must have the type application/json")
    read = bytearray()
    async for piece in request.stream():
        read += piece
        if len(read) > most:
            raise RequestError(413, f"a request must have at most {most:,} bytes")
    with suppress(ValueError, RecursionError):
        body = json.loads(read.decode())
        # No half characters, and no NaN.
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
        if isinstance(body, dict) and not _nests(body, DEEPEST):
            return body
    raise RequestError(
        400, f"the body must be a JSON object in UTF-8, at most {DEEPEST} levels deep"
    )


def type_of(headers: Mapping[str, str]) -> str:
    """Gives the media type of a request or an answer, without what is said about it."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def models_of(body: dict[str, Any]) -> list[str | None]:
    """The models that may answer a request: the one that it asks for, and those that take its place."""
    lists = [body[name] for name in ("models", "fallbacks") if isinstance(body.get(name), list)]
    rest = [each for several in lists for each in several]
    named = [each.get("model") if isinstance(each, dict) else each for each in rest]
    asked = [each for each in (body.get("model"), *named) if isinstance(each, str)]
    return [*asked] or [None]


def _nests(value: Any, levels: int) -> bool:
    """Whether JSON has more than some levels of objects and lists."""
    if not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_nests(each, levels - 1) for each in inside)
