"""Restoring answers, whole or streamed, and remembering their messages.

In: a response of the upstream, the chain of its request. Out: the answer for the client.
Not here: the events of an API (`protocols`), and requests (`request_flow`).
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from textveil.errors import TextveilError
from textveil.gateway.answer.upstream import build_refusal, list_keys
from textveil.gateway.errors import RequestError
from textveil.gateway.protocols import Event, Framing, Operation, Stream
from textveil.gateway.protocols.restoring import AnswerRestorer
from textveil.gateway.request.parsed_request import build_answer_utterance, list_signed
from textveil.gateway.request.request_record import RequestRecord
from textveil.gateway.serve.process import ServerProcess
from textveil.session import MessageChain, Utterance

if TYPE_CHECKING:
    import httpx2

DONE = "[DONE]"
"""Data of the last event of some streams."""


def remember(
    chain: MessageChain,
    operation: Operation,
    pairs: Iterable[tuple[dict[str, Any], dict[str, Any]]],
    names: Iterable[str] = (),
) -> None:
    """Stores the messages of an answer in the chain.

    A failure is ignored: the client has the answer in any case, and only the next request will not
    know it.

    Args:
        chain: the chain of the request.
        operation: the route of the request.
        pairs: messages of the answer, each as received and as restored.
        names: the upstream's names for the answer that it remembers.
    """
    with suppress(TextveilError):
        for name in names:
            chain.save_state(name)
        messages = list(pairs)
        signed = [
            signed_pair
            for pair in messages
            for signed_pair in zip(
                *(list_signed(operation, message) for message in pair), strict=True
            )
        ]
        # Some clients send unknown fields back, and others leave them out.
        bare, full = (
            [(build(received), build(restored)) for received, restored in messages]
            for build in (
                partial(build_answer_utterance, operation, with_unknown=some)
                for some in (False, True)
            )
        )
        chain.save_answers(bare, signed, consecutive=operation.is_sequential)
        if full != bare:
            chain.save_answers(full, consecutive=operation.is_sequential)
        roles = filter(None, (operation.get_reference(received) for received, _ in messages))
        references = [Utterance(role, ()) for role in roles]
        if len(references) == len(messages):
            chain.save_answers(
                [(message, message) for message in references], consecutive=operation.is_sequential
            )


def restore_answer(
    answer: dict[str, Any], operation: Operation, restorer: AnswerRestorer, chain: MessageChain
) -> dict[str, Any]:
    """Restores a whole answer and stores its messages."""
    result = operation.correct_offsets(
        (answer, restorer.restore_json(answer, operation.answer)), restorer.request_pair
    )
    pairs = zip(
        operation.list_answer_messages(answer), operation.list_answer_messages(result), strict=True
    )
    remember(chain, operation, pairs, operation.list_upstream_names(answer))
    return result


class _StreamMemory:
    """Store of a stream's messages.

    It stores them before the client sees them and asks on.
    """

    def __init__(
        self, chain: MessageChain, operation: Operation, stream: Stream, process: ServerProcess
    ) -> None:
        self._chain, self._operation = chain, operation
        self._stream, self._process = stream, process
        self._names: list[str] = []
        self._saved_messages: list[tuple[dict[str, Any], dict[str, Any]]] = []

    async def save(self) -> None:
        """Stores new messages and names."""
        new_names = [name for name in self._stream.upstream_names if name not in self._names]
        messages = self._stream.messages if self._stream.is_complete else self._saved_messages
        if new_names or messages != self._saved_messages:
            self._names += new_names
            new_messages = [] if messages == self._saved_messages else messages
            self._saved_messages = messages
            run = self._process.answer_pool.run
            await run(remember, self._chain, self._operation, new_messages, new_names)


async def _read_events(
    response: "httpx2.Response", framing: Framing | None
) -> AsyncIterator[Event]:
    """Reads the events of a response, in its framing."""
    import httpx2

    if framing is not None:
        read = framing.create_reader()
        async for piece in response.aiter_bytes():
            for event in read(piece):
                yield event
        for event in read(b""):
            yield event
        return
    async for sent in httpx2.EventSource(response):
        if sent.data.strip():  # an event without data only keeps the connection open
            data = sent.data if sent.data == DONE else json.loads(sent.data)
            yield Event("" if sent.event == "message" else sent.event, data)


def _is_error(event: Event) -> bool:
    """True if an event is an error of the upstream."""
    return event.name == "error" or (isinstance(event.data, dict) and bool(event.data.get("error")))


def _collect(events: Iterable[Event]) -> tuple[list[Event], RequestError | None]:
    """Returns restored events; or the error if a call of a tool is refused."""
    try:
        return list(events), None
    except RequestError as error:
        return [], error


def _build_comments(operation: Operation, restorer: AnswerRestorer) -> Iterator[str]:
    """Yields comments with the numbers of unresolved placeholders, where a stream may have any."""
    if operation.has_comments and operation.framing is None:
        yield from (f": {name}: {count}\n\n" for name, count in restorer.counts.items())


async def restore_stream(
    response: "httpx2.Response",
    operation: Operation,
    stream: Stream,
    restorer: AnswerRestorer,
    chain: MessageChain,
    record: RequestRecord,
    process: ServerProcess,
) -> AsyncGenerator[str | bytes]:
    """Yields a restored stream, in the form in which it came.

    If it breaks off, or the upstream reports an error, or a call is refused, it ends with an error.
    """
    render = Event.render if operation.framing is None else operation.framing.write
    failure = RequestError(502, "the answer broke off", code="upstream")
    refused: RequestError | None = None
    memory, is_complete = _StreamMemory(chain, operation, stream, process), False
    try:
        with suppress(Exception), record.span("textveil.restore"):  # the exception may hold text
            source = _read_events(response, operation.framing)
            while event := await record.measure_work(
                "upstream", process.run_until_stopped(anext(source, None))
            ):
                record.note_usage(event.data)
                if _is_error(event):
                    failure = build_refusal(failure, event.data, restorer, list_keys(response))
                    break
                with record.measure_step("restore"):
                    pieces, refused = _collect(stream.feed(event))
                if refused is not None:  # nothing of this event is sent: it may end the call
                    break
                await memory.save()
                for piece in pieces:
                    yield render(piece)
                if event.data == DONE:
                    break
        if process.is_grace_over and not stream.is_complete:
            failure = process.build_stop_error()
        with suppress(Exception):  # as above
            pieces, refused = ([], refused) if refused else _collect(stream.close())
            await memory.save()
            for piece in pieces:
                yield render(piece)
            is_complete = stream.is_complete and refused is None
    finally:
        await response.aclose()
    record.note_answer(restorer.unresolved)
    if not is_complete:
        failure = refused or failure
        record.note_failure(failure)
        yield render(stream.build_error_event(failure))
    # Comments, since the headers were sent before.
    for comment in _build_comments(operation, restorer):
        yield comment
