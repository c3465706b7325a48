"""Reading requests of clients: body, path, query, and the models that may answer.

In: an HTTP request. Out: JSON, or `RequestError`.
Not here: which values are text (`requests`), and callers (`standing`).
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
"""Maximal nesting of objects and lists in a request."""


async def asked_for(request: "Request", operation: Operation, most: int) -> dict[str, Any]:
    """Reads the body, the path parameters and the query of a request.

    Args:
        request: the client's request.
        operation: the route of the request.
        most: the maximal size of the body, in bytes.

    Raises:
        RequestError: see `body_of`.
    """
    parameters: dict[str, Any] = {}
    for name in request.query_params:
        if operation.has_body and name not in operation.query:
            continue
        several = request.query_params.getlist(name)
        parameters[name] = several if name.endswith("[]") else several[-1]
    return (
        (await body_of(request, most) if operation.has_body else {})
        | parameters
        | request.path_params
    )


async def body_of(request: "Request", most: int) -> dict[str, Any]:
    """Reads and checks the JSON body of a request.

    Args:
        request: the client's request.
        most: the maximal size of the body, in bytes.

    Raises:
        RequestError: the body is no JSON object, too large, or nested too deeply.
    """
    if type_of(request.headers) != "application/json":  # web pages cannot send it to other sites
        raise RequestError(415, "a request must have the type application/json")
    read = bytearray()
    async for piece in request.stream():
        read += piece
        if len(read) > most:
            raise RequestError(413, f"a request must have at most {most:,} bytes")
    with suppress(ValueError, RecursionError):
        body = json.loads(read.decode())
        # Refuses lone surrogates and NaN.
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
        if isinstance(body, dict) and not _is_nested(body, DEEPEST):
            return body
    raise RequestError(
        400, f"the body must be a JSON object in UTF-8, at most {DEEPEST} levels deep"
    )


def type_of(headers: Mapping[str, str]) -> str:
    """Returns the media type of a message in lower case, without parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def models_of(body: dict[str, Any]) -> list[str | None]:
    """Lists the models that may answer a request, with its fallbacks.

    It is [None] where the request names none.
    """
    lists = [body[name] for name in ("models", "fallbacks") if isinstance(body.get(name), list)]
    rest = [each for several in lists for each in several]
    named = [each.get("model") if isinstance(each, dict) else each for each in rest]
    asked = [each for each in (body.get("model"), *named) if isinstance(each, str)]
    return [*asked] or [None]


def _is_nested(value: Any, levels: int) -> bool:
    """True if a JSON value is nested deeper than `levels`."""
    if not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_nested(each, levels - 1) for each in inside)
