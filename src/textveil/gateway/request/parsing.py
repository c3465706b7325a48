"""Reading requests of clients: body, path, query, and the models that may answer.

In: an HTTP request. Out: JSON, or `RequestError`.
Not here: which values are text (`parsed_request`), and callers (`active_policy`).
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import regex

from textveil.gateway.errors import RequestError
from textveil.gateway.protocols import Operation
from textveil.gateway.protocols.field_rules import Path, format_path

if TYPE_CHECKING:
    from starlette.requests import Request

MAX_DEPTH = 100
"""Maximal nesting of objects and lists in a request."""

MAX_STEPS = 8
"""Steps of a path that say where a request is nested too deeply."""


MODEL_FIELD = regex.compile(r"(?:\w*_)?models?|modelName|fallbacks|preset")
CONTENT_FIELDS = ("messages", "input", "contents", "prompt", "system", "tools", "metadata")
"""Pattern of the fields that name models; fields of a request that do not."""


async def read_request(
    request: "Request", operation: Operation, max_bytes: int, seconds: float
) -> dict[str, Any]:
    """Reads the body, the path parameters and the query of a request.

    Args:
        request: the client's request.
        operation: the route of the request.
        max_bytes: the maximal size of the body, in bytes.
        seconds: the longest wait for the next bytes of the body.

    Raises:
        RequestError: see `read_body`.
    """
    parameters: dict[str, Any] = {}
    for name in request.query_params:
        if operation.has_body and name not in operation.query:
            continue
        values = request.query_params.getlist(name)
        parameters[name] = values if name.endswith("[]") else values[-1]
    body = await read_body(request, max_bytes, seconds) if operation.has_body else {}
    return operation.normalize(body | parameters | request.path_params)


def move_key(request: "Request", operation: Operation) -> "Request":
    """Moves a client's key from the query of a request into the header for it.

    There it is a key like any other: it is in no request of the upstream's address.
    """
    from starlette.requests import Request

    if not operation.query_key or operation.query_key not in request.query_params:
        return request
    name, key = operation.keys[0].encode(), request.query_params[operation.query_key]
    pairs = request.query_params.multi_items()
    query = urlencode([pair for pair in pairs if pair[0] != operation.query_key])
    headers = [pair for pair in request.scope["headers"] if pair[0] != name]
    new = {"query_string": query.encode(), "headers": [*headers, (name, key.encode())]}
    return Request({**request.scope, **new}, request.receive)


async def read_body(request: "Request", max_bytes: int, seconds: float) -> dict[str, Any]:
    """Reads and checks the JSON body of a request.

    Args:
        request: the client's request.
        max_bytes: the maximal size of the body, in bytes.
        seconds: the longest wait for the next bytes.

    Raises:
        RequestError: the body is no JSON object, too large, too slow, or nested too deeply.
    """
    if (
        get_media_type(request.headers) != "application/json"
    ):  # web pages cannot send it to other sites
        raise RequestError(415, "a request must have the content type application/json")
    content = await _receive(request, max_bytes, seconds)
    with suppress(ValueError, RecursionError):
        body = json.loads(content.decode())
        # Refuses lone surrogates and NaN.
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
        if isinstance(body, dict):
            return _check_depth(body)
    raise RequestError(
        400, f"the body must be a JSON object in UTF-8, at most {MAX_DEPTH} levels deep"
    )


async def _receive(request: "Request", max_bytes: int, seconds: float) -> bytearray:
    """Receives a body, up to a size and while it comes."""
    # The rest of a body that is refused would go on coming.
    close = {"Connection": "close"}
    too_large = RequestError(413, f"a request must have at most {max_bytes:,} bytes", headers=close)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > max_bytes:
        raise too_large  # before the first byte, so that no 100 Continue asks for it
    content, clock = bytearray(), asyncio.get_running_loop()
    try:
        async with asyncio.timeout(seconds) as timeout:
            async for piece in request.stream():
                content += piece
                if len(content) > max_bytes:
                    raise too_large
                timeout.reschedule(clock.time() + seconds)
            return content
    except TimeoutError:
        problem = (
            f"the client sent no part of the body for {seconds:g} seconds; the request was not sent"
        )
    raise RequestError(408, problem, headers=close)


def get_media_type(headers: Mapping[str, str]) -> str:
    """Returns the media type of a message in lower case, without parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def list_models(body: dict[str, Any]) -> list[str | None]:
    """Lists the models that may answer a request, with those that it names beside `model`.

    Such as fallbacks, or a model for drafts. It is [None] where the request names none.
    """
    settings = {name: value for name, value in body.items() if name not in CONTENT_FIELDS}
    return [*_find_models(settings)] or [None]


def _find_models(value: Any, is_model: bool = False) -> Iterator[str]:
    if isinstance(value, str) and is_model:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _find_models(item, is_model)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _find_models(item, MODEL_FIELD.fullmatch(name) is not None)


def _check_depth(body: dict[str, Any]) -> dict[str, Any]:
    """Returns a request; refuses one with a value that is nested too deeply."""
    path = _find_nested(body, MAX_DEPTH)
    if path is None:
        return body
    name = format_path(path[:MAX_STEPS], body)
    message = f"{name} is nested too deeply: a request may have {MAX_DEPTH} levels"
    raise RequestError(400, message, param=name)


def _find_nested(value: Any, levels: int, path: Path = ()) -> Path | None:
    """Returns the path of a value that is nested deeper than `levels`."""
    if not isinstance(value, dict | list):
        return None
    if levels == 0:
        return path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    inner = (_find_nested(item, levels - 1, (*path, step)) for step, item in items)
    return next((found for found in inner if found is not None), None)
