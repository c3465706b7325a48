"""Serving the Model Context Protocol: over standard input and output, or over HTTP.

In: an object that offers a server. Out: answers to its clients, until they leave or a signal comes.
Not here: what is served (`toolserver`, `assistant_tools`).

No request is logged. Over HTTP no page of another site is answered, and nobody without the key, if
there is one.
"""

import logging
import os
import socket
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from textveil.config.extras import explain_missing
from textveil.errors import ConfigError, TextveilError
from textveil.gateway.errors import RequestError
from textveil.gateway.request.origin_check import check_program

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

T = TypeVar("T")

KEY_VARIABLE = "TEXTVEIL_MCP_KEY"
"""Environment variable with the key between a client and a tool server over HTTP.

`textveil mcp` asks its clients for it, and `textveil gateway mcp` sends it to its upstream.
"""


class McpOffer(Protocol):
    """Something that offers a server to clients while it is open."""

    def connect(self) -> AbstractAsyncContextManager["Server[Any]"]:
        """Opens what the server needs, and yields the server."""


def serve_stdio(offer: McpOffer) -> None:
    """Serves one client over standard input and output, until it leaves."""
    with explain_missing():
        import anyio
        from mcp.server.stdio import stdio_server

    async def serve() -> None:
        async with offer.connect() as server, stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    _run(anyio.run, serve)


def serve_http(
    offer: McpOffer, listening: socket.socket, hosts: Collection[str] = (), key: str = ""
) -> None:
    """Serves clients over streamable HTTP at /mcp, until a signal.

    Args:
        offer: offers the server.
        listening: the socket.
        hosts: names of this machine under which it answers, in addition to its addresses.
        key: the bearer key that each request needs; "" for none.
    """
    with explain_missing():
        import anyio
        import uvicorn
        from mcp.server.transport_security import TransportSecuritySettings

    async def serve() -> None:
        async with offer.connect() as server:
            application = server.streamable_http_app(
                transport_security=TransportSecuritySettings(
                    enable_dns_rebinding_protection=False  # `RequestGuard` does it
                )
            )
            config = uvicorn.Config(
                RequestGuard(application, hosts, key),
                http="h11",
                ws="none",
                log_level="critical",  # other lines may quote what failed
                access_log=False,
                server_header=False,
            )
            await uvicorn.Server(config).serve(sockets=[listening])

    _run(anyio.run, serve)


NO_PAGES = (
    "this server answers no web pages, and only under IP addresses, localhost and the names that "
    "--allow-host gives"
)


class RequestGuard:
    """Refuses requests of foreign pages, under foreign names, and without the key.

    Args:
        app: answers the others.
        hosts: see `serve_http`.
        key: see `serve_http`.
    """

    def __init__(self, app: "ASGIApp", hosts: Collection[str], key: str) -> None:
        self._app, self._hosts = app, hosts
        self._digest = sha256(f"Bearer {key}".encode()).digest() if key else None

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answers a request, or refuses it."""
        from starlette.datastructures import Headers
        from starlette.responses import JSONResponse

        if scope["type"] == "http":
            headers = Headers(scope=scope)
            try:
                check_program(headers, self._hosts)
                self._check_key(headers.get("authorization", ""))
            except RequestError as error:
                said = NO_PAGES if error.code in ("origin", "host") else str(error)
                answer = JSONResponse({"error": said}, error.status)
                if error.status == 401:
                    answer.headers["WWW-Authenticate"] = "Bearer"
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check_key(self, authorization: str) -> None:
        if self._digest is None:
            return
        digest = sha256(authorization.encode("latin-1", "replace")).digest()
        if not compare_digest(digest, self._digest):  # digests, so that lengths do not show
            raise RequestError(
                401, f"send the key of this server ({KEY_VARIABLE}) as a bearer key", code="key"
            )


def read_mcp_key() -> str:
    """Reads the key of `KEY_VARIABLE`; "" where it is not set."""
    return os.environ.get(KEY_VARIABLE, "")


async def run_in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """Runs work that takes long in a thread."""
    import anyio.to_thread

    return await anyio.to_thread.run_sync(work, *arguments)


def silence_logger(name: str) -> None:
    """Silences the log of a package, which may contain texts."""
    logger = logging.getLogger(name)
    logger.addHandler(logging.NullHandler())
    logger.propagate = False


def _run(
    run: Callable[[Callable[[], Awaitable[None]]], None], serve: Callable[[], Awaitable[None]]
) -> None:
    """Runs a server.

    Raises:
        TextveilError: it could not be started, or broke off; the text of the error is not shown.
    """
    try:
        run(serve)
        return
    except Exception as error:
        failure = _unwrap_error(error)
    if isinstance(failure, TextveilError):
        raise failure
    kind = type(failure).__name__
    raise ConfigError(f"the tool server could not be started or reached, or broke off ({kind})")


def _unwrap_error(error: Exception) -> Exception:
    """Returns the first error of a group, or the error itself."""
    return _unwrap_error(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error
