"""Calls of tools that hold a placeholder which stands for nothing: passed, counted or refused."""

import json

import httpx2
import pytest
from tests.gateway.servers import answer_of, lines, serving, serving_upstream, stream_of

from textveil import Privatizer
from textveil.gateway import Gateway, Policy

MAIL = "zoe.quillimar@example.org"
KNOWN, UNKNOWN = '{"to": "<EMAIL_1>"}', '{"to": "<EMAIL_1>, <PERSON_9>"}'
COUNT = "textveil-unresolved-calls"
FUNCTION = {"name": "send", "arguments": ""}


@pytest.fixture(scope="module")
def hiding():
    return Privatizer.from_profile("prompt", protect={"detectors": ["patterns", "structure"]})


@pytest.fixture(scope="module")
def upstream():
    with serving_upstream() as made:
        yield made


def chat_whole(arguments):
    call = {"id": "c1", "type": "function", "function": {"name": "send", "arguments": arguments}}
    return answer_of({"content": None, "tool_calls": [call]}, "tool_calls")


def chat_stream(arguments):
    first = {"index": 0, "id": "c1", "type": "function", "function": FUNCTION}
    pieces = [{"index": 0, "function": {"arguments": char}} for char in arguments]
    return stream_of([{"tool_calls": [piece]} for piece in (first, *pieces)], "tool_calls")


def messages_whole(arguments):
    block = {"type": "tool_use", "id": "t1", "name": "send", "input": json.loads(arguments)}
    return {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block]}


def messages_stream(arguments):
    block = {"type": "tool_use", "id": "t1", "name": "send", "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": char} for char in arguments]
    return lines(
        {"type": "message_start", "message": {"id": "m", "type": "message", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    )


def build_item(arguments, **more):
    return {
        "type": "function_call", "id": "f", "call_id": "c", "name": "send",
        "arguments": arguments, **more,
    }  # fmt: skip


def responses_whole(arguments):
    return {"id": "r", "object": "response", "model": "m", "output": [build_item(arguments)]}


def responses_stream(arguments):
    place = {"output_index": 0, "item_id": "f"}
    kind = "response.function_call_arguments"
    deltas = [{"type": f"{kind}.delta", "delta": char, **place} for char in arguments]
    return lines(
        {"type": "response.output_item.added", "output_index": 0, "item": build_item("")},
        *deltas,
        {"type": f"{kind}.done", "arguments": arguments, **place},
        {"type": "response.output_item.done", "output_index": 0, "item": build_item(arguments)},
        {"type": "response.completed", "response": responses_whole(arguments)},
    )


ROUTES = {
    "chat/completions": (
        chat_whole,
        chat_stream,
        {"messages": [{"role": "user", "content": MAIL}]},
    ),
    "messages": (
        messages_whole,
        messages_stream,
        {"messages": [{"role": "user", "content": MAIL}], "max_tokens": 9},
    ),
    "responses": (responses_whole, responses_stream, {"input": MAIL}),
}


def ask(hiding, upstream, route, unresolved, arguments, *, stream, text=MAIL):
    whole, streamed, body = ROUTES[route]
    upstream.answer = lambda _: (streamed if stream else whole)(arguments)
    policy = Policy(unresolved=unresolved)
    body = json.loads(json.dumps(body).replace(MAIL, text))
    with serving(Gateway(privatizer=hiding, upstream=upstream.url, policy=policy)) as url:
        return httpx2.post(f"{url}/{route}", json={"model": "m", "stream": stream, **body})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_a_call_with_an_unknown_placeholder_is_counted(hiding, upstream, route, stream):
    answer = ask(hiding, upstream, route, "flag", UNKNOWN, stream=stream)
    assert answer.status_code == 200
    assert answer.headers.get(COUNT) == (None if stream else "1")
    assert (f": {COUNT}: 1\n" in answer.text) is stream


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("unresolved", ["flag", "refuse"])
def test_a_call_that_is_restored_whole_is_delivered(hiding, upstream, route, unresolved, stream):
    answer = ask(hiding, upstream, route, unresolved, KNOWN, stream=stream)
    assert answer.status_code == 200
    assert COUNT not in answer.headers
    assert COUNT not in answer.text
    assert '"error": {' not in answer.text
    assert stream or MAIL in answer.text


@pytest.mark.parametrize("route", ROUTES)
def test_a_whole_call_with_an_unknown_placeholder_is_refused(hiding, upstream, route):
    answer = ask(hiding, upstream, route, "refuse", UNKNOWN, stream=False)
    assert answer.status_code == 502
    assert "unresolved: refuse" in answer.json()["error"]["message"]
    assert "PERSON_9" not in answer.text
    assert MAIL not in answer.text


ENDS = ("content_block_stop", "message_stop", "[DONE]", "finish_reason\": \"", "arguments.done",
        "output_item.done", "response.completed")  # fmt: skip


@pytest.mark.parametrize("route", ROUTES)
def test_a_streamed_call_with_an_unknown_placeholder_never_ends(hiding, upstream, route):
    answer = ask(hiding, upstream, route, "refuse", UNKNOWN, stream=True)
    assert answer.status_code == 200
    assert "unresolved: refuse" in answer.text
    assert not [end for end in ENDS if end in answer.text]


@pytest.mark.parametrize("stream", [False, True])
def test_passing_says_nothing_of_calls(hiding, upstream, stream):
    answer = ask(hiding, upstream, "chat/completions", "pass", UNKNOWN, stream=stream)
    assert COUNT not in answer.headers
    assert COUNT not in answer.text


def test_what_a_user_wrote_like_a_placeholder_is_no_mistake(hiding, upstream):
    """Who works on programs with such names has them in files."""
    text = f"{MAIL} stands before <PERSON_9> in the template"
    answer = ask(hiding, upstream, "messages", "refuse", UNKNOWN, stream=False, text=text)
    assert answer.status_code == 200
    assert COUNT not in answer.headers


def test_prose_with_an_unknown_placeholder_is_delivered(hiding, upstream):
    upstream.answer = lambda _: answer_of({"content": "Dear <PERSON_9>"})
    policy = Policy(unresolved="refuse")
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    with serving(Gateway(privatizer=hiding, upstream=upstream.url, policy=policy)) as url:
        answer = httpx2.post(f"{url}/chat/completions", json=body)
    assert answer.status_code == 200
    assert answer.headers["textveil-unresolved"] == "1"
