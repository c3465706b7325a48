"""Answers on their way: restored, whole or event by event, and what the model said, kept for the next request.

In: a response of the upstream, the chain of its request. Out: what the client gets.
Not here: the events of an API (`protocols`), and what is asked (`exchange`).
"""

import json
from collections.abc import AsyncGenerator, Iterable
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

UNRESOLVED = "textveil-unresolved"
"""Response header of a whole answer: how many placeholders in it were not restored."""


def remember(
    chain: MessageChain,
    operation: Operation,
    pairs: Iterable[tuple[dict[str, Any], dict[str, Any]]],
    names: Iterable[str] = (),
) -> None:
    """Keep what the model said; the answer is there in any case, and else only the next request will not know it.

    Args:
        chain: of the request.
        operation: its route.
        pairs: messages of the answer, each as it came and as it was restored.
        names: the upstream's, for what it remembers.
    """
    with suppress(TextveilError):
        for name in names:
            chain.remember(name)
        said = list(pairs)
        signed = [
            both
            for pair in said
            for both in zip(*(all_signed(operation, each) for each in pair), strict=True)
        ]
        heard = [(message_of(operation, came), message_of(operation, made)) for came, made in said]
        chain.answered(heard, signed, in_turn=operation.in_turn)
        named = [
            Utterance(role, ())
            for came, _ in said
            if (role := operation.reference(came)) is not None
        ]
        if len(named) == len(said):
            chain.answered([(each, each) for each in named], in_turn=operation.in_turn)


def restored(
    came: dict[str, Any], operation: Operation, restoring: Restoring, chain: MessageChain
) -> dict[str, Any]:
    """A whole answer with the originals put back, which is kept."""
    whole = operation.placed((came, restoring.whole(came, operation.answer)), restoring.asked)
    pairs = zip(operation.said(came), operation.said(whole), strict=True)
    remember(chain, operation, pairs, operation.remembered(came))
    return whole


async def events(
    response: "httpx2.Response",
    operation: Operation,
    stream: Stream,
    restoring: Restoring,
    chain: MessageChain,
    record: RequestRecord,
    process: ServingProcess,
) -> AsyncGenerator[str]:
    """A restored stream. If it breaks off, or the upstream says that it failed, it ends with an error."""
    import httpx2

    failure = RequestError(502, "the answer broke off", code="upstream")
    kept: list[tuple[dict[str, Any], dict[str, Any]]] = []
    keys = keys_of(response)
    names: list[str] = []
    whole = False
    try:
        with suppress(Exception), record.span("textveil.restore"):  # the exception may hold text
            came = aiter(httpx2.EventSource(response))
            while (
                event := await record.during("upstream", process.unless_stopped(anext(came, None)))
            ) is not None:
                if not event.data.strip():  # it only keeps the connection open
                    continue
                data = event.data if event.data == "[DONE]" else json.loads(event.data)
                if event.event == "error" or (isinstance(data, dict) and data.get("error")):
                    failure = worded(failure, data, restoring, keys)
                    break
                with record.timed("restore"):
                    pieces = list(
                        stream.feed(Event("" if event.event == "message" else event.event, data))
                    )
                if news := [each for each in stream.remembered if each not in names]:
                    await process.answers.run(
                        remember, chain, operation, (), news
                    )  # before anybody can refer to it
                    names += news
                if stream.ended and not kept:  # before the client knows the end, and asks on
                    kept = stream.messages
                    await process.answers.run(remember, chain, operation, kept)
                for piece in pieces:
                    yield piece.written()
                if event.data == "[DONE]":
                    break
        if process.over and not stream.ended:
            failure = process.stops()
        with suppress(Exception):  # as above
            pieces = list(stream.close())
            if stream.ended and kept != stream.messages:
                await process.answers.run(remember, chain, operation, stream.messages)
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
        yield f": {UNRESOLVED}: {restoring.unresolved}\n\n"  # headers are out already
