"""Any cut of a stream gives the same text: texts cut into events anywhere, and the bytes of events cut anywhere.

Not here: what the events of an API are (`test_tools`, `test_messages`, `test_responses`, `test_small_routes`).
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import httpx2
import pytest
from chunk_invariance import ChunkInvarianceError, assert_chunk_invariant, two_part_splits

from textveil.gateway.answer.streaming import restore_stream
from textveil.gateway.protocols import EVENT_STREAM, Event, Operation, ollama
from textveil.gateway.protocols.chat import CHAT
from textveil.gateway.protocols.completions import COMPLETIONS
from textveil.gateway.protocols.gemini import STREAM as GEMINI
from textveil.gateway.protocols.messages import MESSAGES
from textveil.gateway.protocols.responses import RESPONSES
from textveil.gateway.protocols.restoring import AnswerRestorer
from textveil.gateway.request.request_record import RequestRecord
from textveil.session import MessageChain, Session, SessionStore, Utterance

NAME, MAIL = 'Zoë "Z" Quillimar', "b.jarndyce@example.net"
TEXT = "ü <PERSON_1>🙂 &lt;EMAIL_1>, **<EMAIL_1>** < <PERSON_9>, <EMAIL_"
WRITTEN = r'{"to": "\u003cPERSON_1> 🙂", "of": ["<EMAIL_1>", "\\<EMAIL_1\u003e", "<PERSON_"]}'

Data = dict[str, Any]


@pytest.fixture(scope="module")
def session() -> Session:
    made = Session()
    with made.noting() as notes:
        notes.assign_placeholder("PERSON", NAME)
        notes.assign_placeholder("EMAIL", MAIL)
    return made


# ---- one text of each kind, as pieces of events ----------------------------------------------------------------------


class Kind(NamedTuple):
    """One kind of text.

    Args:
        operation: its route.
        text: what the upstream says.
        before: events that come first.
        event: the event with a piece.
        find_original: events that come last.
        said: the piece in the data of an event; None where there is none.
    """

    operation: Operation
    text: str
    before: list[Data]
    event: Callable[[str], Data]
    find_original: list[Data]
    said: Callable[[Data], str | None]


def of_chat(text: str, delta: Callable[[str], Data], said: Callable[[Data], str | None]) -> Kind:
    def read(data: Data) -> str | None:
        return "".join(said(choice["delta"]) or "" for choice in data["choices"])

    end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    return Kind(CHAT, text, [], lambda piece: {"choices": [{"delta": delta(piece)}]}, [end], read)


def of_response(text: str, kind: str, **more: Any) -> Kind:
    at = {"output_index": 0, "content_index": 0, "item_id": "a", **more}
    return Kind(
        RESPONSES,
        text,
        [{"type": "response.created", "response": {"id": "r", "output": []}}],
        lambda piece: {"type": f"{kind}.delta", "delta": piece, **at},
        [
            {"type": f"{kind}.done", "arguments" if "arguments" in kind else "text": text, **at},
            {"type": "response.completed", "response": {"id": "r", "output": []}},
        ],
        lambda data: data["delta"] if data["type"].endswith(".delta") else None,
    )


def of_message(text: str, kind: str, field: str, block: Data) -> Kind:
    return Kind(
        MESSAGES,
        text,
        [
            {
                "type": "message_start",
                "message": {"type": "message", "role": "assistant", "content": []},
            },
            {"type": "content_block_start", "index": 0, "content_block": block},
        ],
        lambda piece: {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": kind, field: piece},
        },
        [{"type": "content_block_stop", "index": 0}, {"type": "message_stop"}],
        lambda data: data["delta"][field] if data["type"] == "content_block_delta" else None,
    )


def of_gemini(text: str, **more: Any) -> Kind:
    def say(piece: str, **end: str) -> Data:
        parts = [{"text": piece, **more}] if piece else []
        content = {"content": {"role": "model", "parts": parts}} if parts else {}
        return {"candidates": [{"index": 0, **content, **end}]}

    def read(data: Data) -> str | None:
        contents = [each.get("content", {}) for each in data["candidates"]]
        return "".join(part["text"] for each in contents for part in each.get("parts", ()))

    return Kind(GEMINI, text, [], say, [say("", finishReason="STOP")], read)


def of_ollama(operation: Operation, text: str, *places: str) -> Kind:
    """A text at a place in lines of Ollama's."""

    def line(piece: str, *, done: bool = False) -> Data:
        data: Data = {places[-1]: piece}
        for name in places[-2::-1]:
            data = {name: {"role": "assistant", **data}}
        return {"model": "m", **data, "done": done}

    def said(data: Data) -> str | None:
        for name in places:
            data = data.get(name) or {}
        return data or None  # type: ignore[return-value]

    return Kind(operation, text, [], line, [line("", done=True)], said)


KINDS = {
    "chat": of_chat(TEXT, lambda piece: {"content": piece}, lambda delta: delta.get("content")),
    "chat reasoning": of_chat(
        TEXT, lambda piece: {"reasoning": piece}, lambda delta: delta.get("reasoning")
    ),
    "chat transcript": of_chat(
        TEXT,
        lambda piece: {"audio": {"transcript": piece}},
        lambda delta: delta.get("audio", {}).get("transcript"),
    ),
    "chat details": of_chat(
        TEXT,
        lambda piece: {
            "reasoning_details": [{"type": "reasoning.text", "text": piece, "index": 0}]
        },
        lambda delta: "".join(each["text"] for each in delta.get("reasoning_details", ())),
    ),
    "chat call": of_chat(
        WRITTEN,
        lambda piece: {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]},
        lambda delta: "".join(
            each["function"]["arguments"] for each in delta.get("tool_calls", ())
        ),
    ),
    "completions": Kind(
        COMPLETIONS,
        TEXT,
        [],
        lambda piece: {"choices": [{"index": 0, "text": piece}]},
        [{"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]}],
        lambda data: "".join(choice["text"] for choice in data["choices"]),
    ),
    "gemini": of_gemini(TEXT),
    "gemini thought": of_gemini(TEXT, thought=True),
    "ollama": of_ollama(ollama.CHAT, TEXT, "message", "content"),
    "ollama thinking": of_ollama(ollama.CHAT, TEXT, "message", "thinking"),
    "ollama completions": of_ollama(ollama.GENERATE, TEXT, "response"),
    "ollama completions thinking": of_ollama(ollama.GENERATE, TEXT, "thinking"),
    "responses": of_response(TEXT, "response.output_text"),
    "responses reasoning": of_response(TEXT, "response.reasoning_text"),
    "responses call": of_response(WRITTEN, "response.function_call_arguments"),
    "messages": of_message(TEXT, "text_delta", "text", {"type": "text", "text": ""}),
    "messages thinking": of_message(
        TEXT, "thinking_delta", "thinking", {"type": "thinking", "thinking": ""}
    ),
    "messages call": of_message(
        WRITTEN,
        "input_json_delta",
        "partial_json",
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ),
}


def restored(kind: Kind, session: Session, pieces: Iterable[str]) -> Iterator[str]:
    """What a client reads of a text that comes in pieces."""
    assert kind.operation.stream is not None
    stream = kind.operation.stream(AnswerRestorer(session))
    for data in [*kind.before, *map(kind.event, pieces), *kind.find_original]:
        yield from (
            kind.said(made.data) or "" for made in stream.feed(Event(data.get("type", ""), data))
        )
    yield from (kind.said(made.data) or "" for made in stream.close() if made.data != "[DONE]")


def whole(kind: Kind, session: Session, text: str) -> str:
    return session.restore(text, escape="json" if text == WRITTEN else "none")


def random_splits(text: Any, count: int) -> Iterator[list[Any]]:
    """The text cut at several places."""
    rng = random.Random(7)
    for _ in range(count):
        places = sorted(rng.sample(range(1, len(text)), min(len(text) - 1, rng.randint(2, 12))))
        yield [text[start:end] for start, end in pairwise([0, *places, len(text)])]


@pytest.mark.parametrize("name", KINDS)
def test_a_text_may_be_cut_anywhere(session, name):
    kind = KINDS[name]
    made = whole(kind, session, kind.text)
    assert NAME in (json.loads(made)["to"] if kind.text == WRITTEN else made)
    assert made.count(MAIL) == 2
    filters = partial(restored, kind, session), partial(whole, kind, session)
    assert assert_chunk_invariant(*filters, kind.text) == len(kind.text)
    assert_chunk_invariant(*filters, kind.text, splits=random_splits(kind.text, 20))
    assert_chunk_invariant(*filters, kind.text, splits=[list(kind.text)])


def test_a_restorer_that_looks_at_each_piece_alone_is_noticed(session):
    def alone(pieces: Iterable[str]) -> Iterator[str]:
        return map(session.restore, pieces)

    with pytest.raises(ChunkInvarianceError):
        assert_chunk_invariant(alone, session.restore, TEXT)


# ---- the bytes of events ---------------------------------------------------------------------------------------------


class AtOnce:
    """A lane in which nothing waits."""

    async def run(self, work: Callable[..., None], *arguments: Any) -> None:
        work(*arguments)


class Calm:
    """A process that does not stop."""

    is_grace_over = False
    answer_pool = AtOnce()

    async def run_until_stopped(self, work: Any) -> Any:
        return await work


def answered(operation: Operation, session: Session, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """What the gateway sends for a stream whose bytes come in pieces."""

    async def came() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def sent() -> list[bytes]:
        asked = httpx2.Request("POST", "http://127.0.0.1/v1")
        kind = {"Content-Type": operation.stream_types[0]}
        response = httpx2.Response(200, headers=kind, content=came(), request=asked)
        chain = MessageChain(SessionStore().links("a"), "a", "", [Utterance("user", ("x",))])
        restoring, process = AnswerRestorer(session), Calm()
        assert operation.stream is not None
        stream = operation.stream(restoring)
        record = RequestRecord(operation.name)
        made = restore_stream(response, operation, stream, restoring, chain, record, process)  # type: ignore[arg-type]
        return [piece if isinstance(piece, bytes) else piece.encode() async for piece in made]

    yield from asyncio.run(sent())


def sent(kind: Kind, *, ends: str = "\n", ascii: bool = False) -> bytes:
    """The bytes of a stream, with a comment where it may have one, as servers write it."""
    all_data = [
        *kind.before,
        *map(kind.event, [kind.text[:9], kind.text[9:]]),
        *kind.find_original,
    ]
    if kind.operation.stream_types[0] != EVENT_STREAM:
        return "".join(json.dumps(each, ensure_ascii=ascii) + ends for each in all_data).encode()
    lines = [": a ping", ""]
    for data in all_data:
        named = [f"event: {data['type']}"] if "type" in data else []
        lines += [*named, f"data: {json.dumps(data, ensure_ascii=ascii)}", ""]
    done = ["data: [DONE]", ""] if kind.operation in (CHAT, COMPLETIONS) else []
    return (ends.join([*lines, *done]) + ends).encode()


STREAMS = {
    "chat": sent(KINDS["chat"]),
    "chat call": sent(KINDS["chat call"], ends="\r\n", ascii=True),
    "completions": sent(KINDS["completions"], ends="\r\n"),
    "ollama": sent(KINDS["ollama"]),
    "ollama completions": sent(KINDS["ollama completions"], ends="\r\n", ascii=True),
    "responses": sent(KINDS["responses"]),
    "gemini": sent(KINDS["gemini"], ends="\r\n"),
    "messages": sent(KINDS["messages"], ascii=True),
    "messages call": sent(KINDS["messages call"], ends="\r\n"),
}


def check(session: Session, name: str, splits: Iterable[Any]) -> int:
    filtered = partial(answered, KINDS[name].operation, session)

    def uncut(came: bytes) -> bytes:
        return b"".join(filtered([came]))

    made = uncut(STREAMS[name])
    assert MAIL.encode() in made
    assert b'"error"' not in made
    return assert_chunk_invariant(filtered, uncut, STREAMS[name], splits=splits)


@pytest.mark.parametrize("name", STREAMS)
def test_the_bytes_of_a_stream_may_be_cut_anywhere(session, name):
    """In lines, in characters, in escapes: at some of all places, and everywhere at once."""
    some = list(two_part_splits(STREAMS[name]))[::17]
    each = [bytes([byte]) for byte in STREAMS[name]]
    assert check(session, name, [*some, *random_splits(STREAMS[name], 10), each]) > 20


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_the_bytes_of_a_stream_may_be_cut_at_every_place(session, name):
    check(session, name, two_part_splits(STREAMS[name]))
    check(session, name, random_splits(STREAMS[name], 300))
