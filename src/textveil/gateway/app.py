"""The ASGI application of a gateway: API routes, probes, the page, and 404 answers.

In: a `Gateway`. Out: an ASGI application.
Not here: how requests are answered (`api_routes`, `process`, `playground`), and the server
(`server`).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from textveil.config.extras import explain_missing
from textveil.gateway.answer.upstream import build_client
from textveil.gateway.api_routes import RouteEndpoint, answer
from textveil.gateway.errors import RequestError
from textveil.gateway.gateway import Gateway
from textveil.gateway.playground import Playground
from textveil.gateway.protocols import Operation, load_operations
from textveil.gateway.protocols.refused_routes import find_refused
from textveil.gateway.request.request_record import RequestRecord
from textveil.gateway.serve.process import ServerProcess

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

UNKNOWN_ROUTE = "unknown"
"""Operation name in records of requests without a route."""


def build_application(gateway: Gateway, playground: Playground | None = None) -> "Starlette":
    """Builds the ASGI application: all API routes and the probes.

    Each API route is served with the prefix /v1 and without; the probes are /health, /ready and
    /metrics.

    Args:
        gateway: answers the requests.
        playground: the page at /; None for no page.
    """
    with explain_missing():
        from starlette.applications import Starlette
        from starlette.responses import JSONResponse, PlainTextResponse, Response
        from starlette.routing import Match, Route

    all_operations = load_operations()
    route_list = ", ".join(
        f"{item.method} /v1{item.path.replace(':path', '')}" for item in all_operations
    )

    async def answer_unknown(request: "Request", _: Exception) -> "Response":
        upgrade = request.headers.get("upgrade", "").lower()
        websocket = "the gateway does not serve websockets"
        problem = websocket if upgrade == "websocket" else "the gateway has no such route"
        candidates = [] if upgrade == "websocket" else routes
        matching = [item for item in candidates if item.matches(request.scope)[0] is Match.PARTIAL]
        allowed = sorted({name for item in matching for name in item.methods or ()})
        methods = {"Allow": ", ".join(allowed)}
        message, status = f"{problem}; it serves {route_list}", 405 if matching else 404
        known = None if matching else find_refused(request.url.path)
        refused = gateway.check_origin(request.headers) or (
            RequestError(status, message, headers=methods if matching else None)
            if known is None
            else known.build_refusal()
        )
        form, headers = all_operations[0].build_error, refused.headers
        if known is not None:
            form, headers = known.build_error, known.build_headers(refused) | headers
        record = RequestRecord(UNKNOWN_ROUTE)
        with request.state.process.record_request(record, None):
            record.note_failure(refused)
            return JSONResponse(form(refused), refused.status, headers=headers)

    async def serve_metrics(request: "Request") -> "Response":
        if gateway.check_origin(request.headers) or not request.state.process.can_read_metrics(
            request
        ):
            return await answer_unknown(request, Exception())
        content, kind = request.state.process.metrics.render_page()
        return Response(content, media_type=kind)

    async def serve_readiness(request: "Request") -> "Response":
        if gateway.check_origin(request.headers):
            return await answer_unknown(request, Exception())
        process: ServerProcess = request.state.process
        return await process.answer_readiness(request)

    def build_route(operation: Operation, prefix: str) -> "Route":
        async def answer_request(request: "Request", record: RequestRecord) -> "Response":
            return await answer(gateway.current, operation, request, record)

        endpoint = RouteEndpoint(operation.name, answer_request)
        return Route(f"{prefix}{operation.path}", endpoint, methods=[operation.method])

    @asynccontextmanager
    async def connect(_: "Starlette") -> AsyncIterator[dict[str, object]]:
        async with build_client() as client, ServerProcess.start(gateway, client) as process:
            yield {"client": client, "process": process}

    routes = [build_route(item, prefix) for item in all_operations for prefix in ("/v1", "")]
    probes = {
        "/health": lambda _: PlainTextResponse("ok"),
        "/ready": serve_readiness,
        "/metrics": serve_metrics,
    }
    routes += [Route(path, item, methods=["GET"]) for path, item in probes.items()]
    routes += [] if playground is None else playground.build_routes()
    app = Starlette(
        routes=routes,
        lifespan=connect,
        exception_handlers={404: answer_unknown, 405: answer_unknown},
    )
    app.router.redirect_slashes = False  # a redirect would repeat the address that was asked for
    return app
