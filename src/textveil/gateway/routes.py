"""Routes: answering a request of a client, with a record of what happens.

In: a request, for a `Gateway` that serves. Out: a response, restored; or an error in the form of
its API.
Not here: the list of routes (`app`), the release of texts (`exchange`), and the upstream's
responses (`upstream`).
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from textveil.gateway.answers import Restoring
from textveil.gateway.errors import RequestError
from textveil.gateway.exchange import Exchange
from textveil.gateway.gateway import Gateway, Prepared
from textveil.gateway.incoming import asked_for, models_of
from textveil.gateway.keeping import kept_open
from textveil.gateway.keys import Caller
from textveil.gateway.process import ServingProcess, unless_left
from textveil.gateway.protocols import Operation
from textveil.gateway.record import RequestRecord
from textveil.gateway.streaming import UNRESOLVED, events, restored
from textveil.gateway.upstream import headers_of, json_of, send, stream_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

DRY_RUN = "textveil-dry-run"
"""Request header: 1 answers with the body that would be sent.

Then no upstream is asked; 0 is the default.
"""

FIELD = "textveil-field"
"""Response header with the path of a refused field."""

REQUEST_ID = "textveil-request-id"
"""Response header with the request's id, as in log and traces."""

RETRY = "idempotency-key"
"""Request header with the client's name of a request.

The same name goes with the same request only.
"""


class Served:
    """ASGI application of one operation, with records of its requests.

    Args:
        name: the name of the operation.
        answer: answers a request; it is called with the request and, by name, its `record`.
    """

    def __init__(self, name: str, answer: "Callable[..., Awaitable[Response]]") -> None:
        self._name, self._answer = name, answer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request, and closes its resources when the answer is sent."""
        from starlette.requests import Request

        request, record = Request(scope, receive), RequestRecord(self._name)
        async with AsyncExitStack() as until:
            request.state.until = until
            until.enter_context(
                request.state.process.recorded(record, request.headers.get("traceparent"))
            )
            response = await self._answer(request, record=record)
            response.headers[REQUEST_ID] = record.id
            await response(scope, receive, await until.enter_async_context(kept_open(send)))


async def answer(
    gateway: Gateway,
    operation: Operation,
    request: "Request",
    record: RequestRecord,
    prepared: Prepared | None = None,
) -> "Response":
    """Answers one request, and notes what happens in its record.

    Args:
        gateway: the gateway whose policy holds.
        operation: the route of the request.
        request: the client's request.
        record: the request's record.
        prepared: its only message, if that was already released.
    """
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse, Response

    process: ServingProcess = request.state.process
    try:
        process.admit(record)
        admitted = await _admit(gateway, operation, request, record, prepared)
        answered = _respond(operation, request, record, *admitted)
        return await unless_left(request, process.unless_stopped(answered))
    except RequestError as error:
        failure = error
    except ClientDisconnect:
        record.left()
        return Response(status_code=400)  # nobody will read it
    except Exception as error:  # caught here: the server would log its message, which may hold text
        failure = RequestError(500, f"the gateway failed with {type(error).__name__}")
    record.failed(failure)
    of = operation.guardrail
    status = failure.status if of is None else of.status(failure.status)
    where = {FIELD: failure.param} if failure.own and failure.param else {}
    return JSONResponse(operation.error(failure), status, headers=failure.headers | where)


async def _admit(
    gateway: Gateway,
    operation: Operation,
    request: "Request",
    record: RequestRecord,
    prepared: Prepared | None,
) -> tuple[Gateway, dict[str, Any], Caller]:
    """Returns the gateway under the rules, the body, and the caller.

    See `answer`.
    """
    from starlette.concurrency import run_in_threadpool

    if foreign := gateway.foreign(request.headers):
        raise foreign
    admitted = partial(gateway.caller, request.headers, counts=True)
    caller = admitted() if gateway.policy.keys is None else await run_in_threadpool(admitted)
    body = await asked_for(request, operation, gateway.policy.limit)
    rules = gateway.policy.rules
    record.asks_for(body.get("model"), [name for rule in rules for name in rule.models])
    if rules:
        asked = operation.route, models_of(body), caller.name
        gateway = await run_in_threadpool(gateway.chosen, *asked)
    if prepared is not None:
        gateway = await run_in_threadpool(gateway.sending, prepared)
    return gateway, body, caller


async def _respond(
    operation: Operation,
    request: "Request",
    record: RequestRecord,
    gateway: Gateway,
    body: dict[str, Any],
    caller: Caller,
) -> "Response":
    from starlette.responses import JSONResponse, StreamingResponse

    process: ServingProcess = request.state.process
    shown, guardrail = body, operation.guardrail
    record.dry = _is_dry(request) and guardrail is None  # a guardrail asks nobody, either way
    if guardrail is not None:
        body = guardrail.read(body, request.headers)
    exchange = Exchange(gateway, operation, body, caller.account, record)
    if guardrail is not None and guardrail.restores(body):
        with record.step("restore"):
            content, left = await process.answers.run(exchange.restored, guardrail)
        record.answered(left)
        return JSONResponse(content, headers={UNRESOLVED: str(left)})
    with record.step("protect"):
        # A request must see the messages that the one before it added.
        async with process.turns.of(caller.account, operation.grows(body)):
            begun = await process.short.run(exchange.begun, request.headers.get(RETRY))
            lane = process.lane(begun.news)
            released, headers = await lane.run(exchange.released, begun)
    if guardrail is not None or record.dry:
        record.answered(0)
        reply = released if guardrail is None else guardrail.released(shown, released)
        return JSONResponse(reply, headers=headers)
    chain = begun.chain
    options = gateway.policy.restore
    restoring = Restoring(
        chain.session, as_json=operation.as_json(body), asked=(released, body), options=options
    )
    streamed = operation.streamed(released)
    process.check()
    with record.step("upstream"):
        response = await send(gateway, operation, request, released, restoring, caller)
        record.got(body.get("model"), caller.secret)
        received = await json_of(response) if streamed is None else {}
    headers |= headers_of(response)
    if streamed is not None:
        stream = await stream_of(response)
        pieces = events(stream, operation, streamed(restoring), restoring, chain, record, process)
        sent = process.streaming(pieces)
        return StreamingResponse(sent, headers=headers, media_type="text/event-stream")
    with record.step("restore"):
        whole = await process.answers.run(restored, received, operation, restoring, chain)
    record.answered(restoring.unresolved)
    return JSONResponse(whole, headers=headers | {UNRESOLVED: str(restoring.unresolved)})


def _is_dry(request: "Request") -> bool:
    """True if a client asks for a dry run."""
    if (dry := request.headers.get(DRY_RUN, "0")) not in ("0", "1"):
        raise RequestError(400, f"{DRY_RUN} must be 1 or 0; nothing was sent")
    return dry == "1"
