"""Restoring answers, whole or streamed, and remembering their messages.

In: a response of the upstream, the chain of its request. Out: the answer for the client.
Not here: the events of an API (`protocols`), and requests (`exchange`).
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from textveil.errors import TextveilError
from textveil.gateway.answers import Restoring
from textveil.gateway.errors import RequestError
from textveil.gateway.process import ServingProcess
from textveil.gateway.protocols import Event, Operation, Stream
from textveil.gateway.record import RequestRecord
from textveil.gateway.requests import all_signed, message_of
from textveil.gateway.upstream import keys_of, worded
from textveil.session import MessageChain, Utterance

if TYPE_CHECKING:
    import httpx2

DONE = "[DONE]"
"""Data of the last event of some streams."""

UNRESOLVED = "textveil-unresolved"
"""Response header with the number of unresolved placeholders in a whole answer."""


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
            chain.remember(name)
        messages = list(pairs)
        signed = [
            both
            for pair in messages
            for both in zip(*(all_signed(operation, each) for each in pair), strict=True)
        ]
        heard = [
            (message_of(operation, received), message_of(operation, restored_one))
            for received, restored_one in messages
        ]
        chain.answered(heard, signed, in_turn=operation.in_turn)
        roles = filter(None, (operation.reference(received) for received, _ in messages))
        named = [Utterance(role, ()) for role in roles]
        if len(named) == len(messages):
            chain.answered([(each, each) for each in named], in_turn=operation.in_turn)


def restored(
    came: dict[str, Any], operation: Operation, restoring: Restoring, chain: MessageChain
) -> dict[str, Any]:
    """Restores a whole answer and stores its messages."""
    whole = operation.placed((came, restoring.whole(came, operation.answer)), restoring.asked)
    pairs = zip(operation.said(came), operation.said(whole), strict=True)
    remember(chain, operation, pairs, operation.remembered(came))
    return whole


class _Memory:
    """Store of a stream's messages.

    It stores them before the client sees them and asks on.
    """

    def __init__(
        self, chain: MessageChain, operation: Operation, stream: Stream, process: ServingProcess
    ) -> None:
        self._chain, self._operation = chain, operation
        self._stream, self._process = stream, process
        self._names: list[str] = []
        self._said: list[tuple[dict[str, Any], dict[str, Any]]] = []

    async def keep(self) -> None:
        """Stores new messages and names."""
        new_names = [each for each in self._stream.remembered if each not in self._names]
        messages = self._stream.messages if self._stream.ended else self._said
        if new_names or messages != self._said:
            self._names += new_names
            new_messages = [] if messages == self._said else messages
            self._said = messages
            run = self._process.answers.run
            await run(remember, self._chain, self._operation, new_messages, new_names)


async def _read_event(
    source: "AsyncIterator[Any]", record: RequestRecord, process: ServingProcess
) -> Event | None:
    """Returns the next event with data; None at the end."""
    while True:
        each = await record.during("upstream", process.unless_stopped(anext(source, None)))
        if each is None:
            return None
        if each.data.strip():  # an event without data only keeps the connection open
            data = each.data if each.data == DONE else json.loads(each.data)
            return Event("" if each.event == "message" else each.event, data)


def _is_error(event: Event) -> bool:
    """True if an event is an error of the upstream."""
    return event.name == "error" or (isinstance(event.data, dict) and bool(event.data.get("error")))


async def events(
    response: "httpx2.Response",
    operation: Operation,
    stream: Stream,
    restoring: Restoring,
    chain: MessageChain,
    record: RequestRecord,
    process: ServingProcess,
) -> AsyncGenerator[str]:
    """Yields a restored stream as server-sent events.

    If it breaks off, or the upstream reports an error, it ends with an error.
    """
    import httpx2

    failure = RequestError(502, "the answer broke off", code="upstream")
    memory, whole = _Memory(chain, operation, stream, process), False
    try:
        with suppress(Exception), record.span("textveil.restore"):  # the exception may hold text
            source = aiter(httpx2.EventSource(response))
            while (event := await _read_event(source, record, process)) is not None:
                if _is_error(event):
                    failure = worded(failure, event.data, restoring, keys_of(response))
                    break
                with record.timed("restore"):
                    pieces = list(stream.feed(event))
                await memory.keep()
                for piece in pieces:
                    yield piece.written()
                if event.data == DONE:
                    break
        if process.over and not stream.ended:
            failure = process.stops()
        with suppress(Exception):  # as above
            pieces = list(stream.close())
            await memory.keep()
            for piece in pieces:
                yield piece.written()
            whole = stream.ended
    finally:
        await response.aclose()
    record.answered(restoring.unresolved)
    if not whole:
        record.failed(failure)
        yield stream.failed(failure).written()
    if restoring.unresolved:
        yield f": {UNRESOLVED}: {restoring.unresolved}\n\n"  # the headers were sent before
