"""Routes: answering a request of a client, with a record of what happens.

In: a request, for a `Gateway` that serves. Out: a response, restored; or an error in the form of
its API.
Not here: the list of routes (`app`), the release of texts (`request_flow`), and the upstream's
responses (`upstream`).
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from textveil.gateway.answer.keepalive import keep_open
from textveil.gateway.answer.streaming import restore_answer, restore_stream
from textveil.gateway.answer.upstream import check_stream, read_json, select_headers, send
from textveil.gateway.errors import RequestError
from textveil.gateway.gateway import Gateway, ReleasedMessage
from textveil.gateway.policy.client_keys import Caller
from textveil.gateway.protocols import Operation
from textveil.gateway.protocols.restoring import (
    UNRESOLVED_CALLS_HEADER,
    UNRESOLVED_HEADER,
    AnswerRestorer,
)
from textveil.gateway.request.parsing import list_models, move_key, read_request
from textveil.gateway.request.request_record import RequestRecord
from textveil.gateway.request_flow import FORGET_HEADER, RequestFlow
from textveil.gateway.serve.process import ServerProcess, run_while_connected

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

DRY_RUN_HEADER = "textveil-dry-run"
"""Request header: 1 answers with the body that would be sent.

Then no upstream is asked; 0 is the default.
"""

FORGETS_REALLY = (
    f"{DRY_RUN_HEADER} cannot be combined with {FORGET_HEADER}, which forgets for good: send one of "
    "them. Nothing was forgotten or sent"
)

FIELD_HEADER = "textveil-field"
"""Response header with the path of a refused field."""

REQUEST_ID_HEADER = "textveil-request-id"
"""Response header with the request's id, as in log and traces."""

RETRY_HEADER = "idempotency-key"
"""Request header with the client's name of a request.

The same name goes with the same request only.
"""


class RouteEndpoint:
    """ASGI application of one operation, with records of its requests.

    Args:
        name: the name of the operation.
        answer: answers a request; it is called with the request and, by name, its `record`.
        comment: keeps a stream open in which nothing comes for long.
    """

    def __init__(
        self, name: str, answer: "Callable[..., Awaitable[Response]]", comment: bytes = b":\n\n"
    ) -> None:
        self._name, self._answer, self._comment = name, answer, comment

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request, and closes its resources when the answer is sent."""
        from starlette.requests import Request

        request, record = Request(scope, receive), RequestRecord(self._name)
        async with AsyncExitStack() as exit_stack:
            request.state.until = exit_stack
            exit_stack.enter_context(
                request.state.process.record_request(record, request.headers.get("traceparent"))
            )
            response = await self._answer(request, record=record)
            response.headers[REQUEST_ID_HEADER] = record.id
            sending = await exit_stack.enter_async_context(keep_open(send, self._comment))
            await response(scope, receive, sending)


async def answer(
    gateway: Gateway,
    operation: Operation,
    request: "Request",
    record: RequestRecord,
    prepared: ReleasedMessage | None = None,
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

    process: ServerProcess = request.state.process
    try:
        process.admit(record)
        request = move_key(request, operation)
        admitted = await _admit(gateway, operation, request, record, prepared)
        response = _respond(operation, request, record, *admitted)
        return await run_while_connected(request, process.run_until_stopped(response))
    except RequestError as error:
        failure = error
    except ClientDisconnect:
        record.note_disconnect()
        return Response(status_code=400)  # nobody will read it
    except Exception as error:  # caught here: the server would log its message, which may hold text
        failure = RequestError(500, f"the gateway failed with {type(error).__name__}")
    record.note_failure(failure)
    guardrail = operation.guardrail
    status = failure.status if guardrail is None else guardrail.convert_status(failure.status)
    field_headers = (
        {FIELD_HEADER: failure.param} if failure.is_gateway_error and failure.param else {}
    )
    return JSONResponse(
        operation.build_error(failure),
        status,
        headers=operation.build_error_headers(failure) | failure.headers | field_headers,
    )


async def _admit(
    gateway: Gateway,
    operation: Operation,
    request: "Request",
    record: RequestRecord,
    prepared: ReleasedMessage | None,
) -> tuple[Gateway, dict[str, Any], Caller]:
    """Returns the gateway under the rules, the body, and the caller.

    See `answer`.
    """
    from starlette.concurrency import run_in_threadpool

    if refusal := gateway.check_origin(request.headers):
        raise refusal
    identify = partial(gateway.identify_caller, request.headers, counts=True)
    # Keys are looked up in a file, for which the event loop must not wait.
    caller = identify() if gateway.policy.keys is None else await run_in_threadpool(identify)
    limits = gateway.policy.limit, gateway.running.body_timeout
    body = await read_request(request, operation, *limits)
    rules = gateway.policy.rules
    record.note_request_model(body.get("model"), [name for rule in rules for name in rule.models])
    if rules:
        selection = operation.route, list_models(body), caller.name
        gateway = await run_in_threadpool(gateway.select_variant, *selection)
    if prepared is not None:
        gateway = await run_in_threadpool(gateway.build_sender, prepared)
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

    process: ServerProcess = request.state.process
    original, guardrail = body, operation.guardrail
    record.dry = _is_dry(request) and guardrail is None  # a guardrail asks nobody, either way
    forget = request.headers.get(FORGET_HEADER)
    if record.dry and forget is not None:
        raise RequestError(400, FORGETS_REALLY)
    if guardrail is not None:
        body = guardrail.read(body, request.headers)
    flow = RequestFlow(gateway, operation, body, caller.account, record)
    if guardrail is not None and guardrail.has_answer(body):
        with record.trace_step("restore"):
            content, unresolved = await process.answer_pool.run(flow.restore, guardrail)
        record.note_answer(unresolved)
        return JSONResponse(content, headers={UNRESOLVED_HEADER: str(unresolved)})
    with record.trace_step("protect"):
        # A request must see the messages that the one before it added.
        async with process.conversation_locks.hold(
            caller.account, operation.get_conversation(body)
        ):
            prepared = await process.short_pool.run(flow.prepare, request.headers.get(RETRY_HEADER))
            pool = process.choose_pool(prepared.new_characters)
            released, headers = await pool.run(flow.release, prepared, forget)
    if guardrail is not None or record.dry:
        record.note_answer(0)
        reply = released if guardrail is None else guardrail.build_request_reply(original, released)
        return JSONResponse(reply, headers=headers)
    chain = prepared.chain
    options = gateway.policy.restore
    restorer = AnswerRestorer(
        chain.session,
        as_json=operation.is_json_requested(body),
        request_pair=(released, body),
        options=options,
        calls=gateway.policy.unresolved,
    )
    create_stream = operation.choose_stream(released)
    # Once more: the log may have failed while the texts were released.
    process.check()
    record.note_call(operation.name, operation.purpose, gateway.upstream)
    call = request.state.until.enter_context(ExitStack())
    call.enter_context(record.call_span())
    with record.measure_step("upstream"):
        response = await send(gateway, operation, request, released, restorer, caller)
        record.note_answer_model(body.get("model"), caller.secret)
        received = await read_json(response) if create_stream is None else {}
    if create_stream is None:
        record.note_usage(received)
        call.close()
    headers |= select_headers(response)
    if create_stream is not None:
        media_types = operation.stream_types
        stream = await check_stream(response, media_types)
        pieces = restore_stream(
            stream, operation, create_stream(restorer), restorer, chain, record, process
        )
        counted_pieces = process.count_stream(pieces)
        return StreamingResponse(counted_pieces, headers=headers, media_type=media_types[0])
    with record.trace_step("restore"):
        answer_json = await process.answer_pool.run(
            restore_answer, received, operation, restorer, chain
        )
    record.note_answer(restorer.unresolved)
    headers |= {UNRESOLVED_HEADER: str(restorer.unresolved)}
    if restorer.unresolved_calls:
        headers |= {UNRESOLVED_CALLS_HEADER: str(restorer.unresolved_calls)}
    return JSONResponse(answer_json, headers=headers)


def _is_dry(request: "Request") -> bool:
    """True if a client asks for a dry run."""
    if (dry := request.headers.get(DRY_RUN_HEADER, "0")) not in ("0", "1"):
        raise RequestError(400, f"{DRY_RUN_HEADER} must be 1 or 0; nothing was sent")
    return dry == "1"
