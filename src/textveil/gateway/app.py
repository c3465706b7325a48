"""The ASGI application of a gateway: API routes, probes, the page, and 404 answers.

In: a `Gateway`. Out: an ASGI application.
Not here: how requests are answered (`api_routes`, `process`, `playground`), and the server
(`server`).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from textveil.config.extras import explain_missing
from textveil.gateway.answer.upstream import build_client
from textveil.gateway.api_routes import RouteEndpoint, answer
from textveil.gateway.errors import RequestError
from textveil.gateway.gateway import Gateway
from textveil.gateway.playground import Playground
from textveil.gateway.protocols import Operation, load_operations, place_operations
from textveil.gateway.protocols.refused_routes import find_refused
from textveil.gateway.request.origin_check import build_cors_middleware
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

    API routes are served below each of their bases (`Operation.bases`), and below prefixes
    (`place_operations`); the probes are /health, /ready and /metrics.

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
        f"{item.method} {item.bases[0]}{item.path.replace(':path', '')}" for item in all_operations
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
        refused_route = find_refused(request.url.path)
        refused = gateway.check_origin(request.headers) or (
            refused_route.build_refusal()
            if refused_route is not None and refused_route.instead
            else RequestError(status, message, headers=methods if matching else None)
        )
        form, headers = all_operations[0].build_error, refused.headers
        if refused_route is not None:
            form, headers = (
                refused_route.build_error,
                refused_route.build_headers(refused) | headers,
            )
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

    def build_route(operation: Operation, base: str) -> "Route":
        async def answer_request(request: "Request", record: RequestRecord) -> "Response":
            return await answer(gateway.current, operation, request, record)

        # Where clients know no comments, an empty line keeps a stream open.
        comment = b":\n\n" if operation.has_comments else b"\n"
        endpoint = RouteEndpoint(operation.name, answer_request, comment)
        return Route(f"{base}{operation.full_path}", endpoint, methods=[operation.method])

    @asynccontextmanager
    async def connect(_: "Starlette") -> AsyncIterator[dict[str, object]]:
        async with build_client() as client, ServerProcess.start(gateway, client) as process:
            yield {"client": client, "process": process}

    def is_api_route(scope: Any) -> bool:
        return any(route.matches(scope)[0] is not Match.NONE for route in api_routes)

    placed = place_operations(all_operations)
    api_routes = [build_route(item, base) for item in placed for base in item.bases]
    probes = {
        "/health": lambda _: PlainTextResponse("ok"),
        "/ready": serve_readiness,
        "/metrics": serve_metrics,
    }
    routes = [
        *api_routes,
        *(Route(path, item, methods=["GET"]) for path, item in probes.items()),
        *([] if playground is None else playground.build_routes()),
    ]
    app = Starlette(
        routes=routes,
        lifespan=connect,
        middleware=[build_cors_middleware(gateway.is_page_allowed, is_api_route)],
        exception_handlers={404: answer_unknown, 405: answer_unknown},
    )
    app.router.redirect_slashes = False  # a redirect would repeat the address that was asked for
    return app
