"""The ASGI application of a gateway: API routes, probes, the page, and 404 answers.

In: a `Gateway`. Out: an ASGI application.
Not here: how requests are answered (`routes`, `process`, `playground`), and the server (`serving`).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from textveil.config.extras import needed
from textveil.gateway.errors import RequestError
from textveil.gateway.gateway import Gateway
from textveil.gateway.playground import Playground
from textveil.gateway.process import ServingProcess
from textveil.gateway.protocols import Operation, operations
from textveil.gateway.record import RequestRecord
from textveil.gateway.routes import Served, answer
from textveil.gateway.upstream import upstream_client

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

UNKNOWN_ROUTE = "unknown"
"""Operation name in records of requests without a route."""


def application(gateway: Gateway, playground: Playground | None = None) -> "Starlette":
    """Builds the ASGI application: all API routes and the probes.

    Each API route is served with the prefix /v1 and without; the probes are /health, /ready and
    /metrics.

    Args:
        gateway: answers the requests.
        playground: the page at /; None for no page.
    """
    with needed():
        from starlette.applications import Starlette
        from starlette.responses import JSONResponse, PlainTextResponse, Response
        from starlette.routing import Match, Route

    served = operations()
    shown = ", ".join(f"{each.method} /v1{each.path.replace(':path', '')}" for each in served)

    async def unknown(request: "Request", _: Exception) -> "Response":
        upgrade = request.headers.get("upgrade", "").lower()
        websocket = "websockets are not served"
        asked = websocket if upgrade == "websocket" else "there is no such route here"
        here = [] if upgrade == "websocket" else routes
        matching = [each for each in here if each.matches(request.scope)[0] is Match.PARTIAL]
        allowed = sorted({name for each in matching for name in each.methods or ()})
        methods = {"Allow": ", ".join(allowed)}
        says, status = f"{asked}; served are {shown}", 405 if matching else 404
        refused = gateway.foreign(request.headers) or RequestError(
            status, says, headers=methods if matching else None
        )
        record = RequestRecord(UNKNOWN_ROUTE)
        with request.state.process.recorded(record, None):
            record.failed(refused)
            return JSONResponse(served[0].error(refused), refused.status, headers=refused.headers)

    async def metrics(request: "Request") -> "Response":
        if gateway.foreign(request.headers) or not request.state.process.shows_metrics(request):
            return await unknown(request, Exception())
        content, kind = request.state.process.metrics.page()
        return Response(content, media_type=kind)

    async def ready(request: "Request") -> "Response":
        if gateway.foreign(request.headers):
            return await unknown(request, Exception())
        process: ServingProcess = request.state.process
        return await process.ready(request)

    def route(operation: Operation, prefix: str) -> "Route":
        async def answered(request: "Request", record: RequestRecord) -> "Response":
            return await answer(gateway.current, operation, request, record)

        served = Served(operation.name, answered)
        return Route(f"{prefix}{operation.path}", served, methods=[operation.method])

    @asynccontextmanager
    async def connected(_: "Starlette") -> AsyncIterator[dict[str, object]]:
        async with upstream_client() as client, ServingProcess.serving(gateway, client) as process:
            yield {"client": client, "process": process}

    routes = [route(each, prefix) for each in served for prefix in ("/v1", "")]
    probes = {"/health": lambda _: PlainTextResponse("ok"), "/ready": ready, "/metrics": metrics}
    routes += [Route(path, each, methods=["GET"]) for path, each in probes.items()]
    routes += [] if playground is None else playground.routes()
    app = Starlette(
        routes=routes, lifespan=connected, exception_handlers={404: unknown, 405: unknown}
    )
    app.router.redirect_slashes = False  # a redirect would repeat the address that was asked for
    return app
