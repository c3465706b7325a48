"""Servers of language models as they are: a round trip of a tool with OpenAI's SDK, whatever each of them leaves out.

OpenAI, vLLM, llama.cpp, Ollama and Mistral differ in what a call of a tool and a stream look like; each is played here
by a script. The client gives each answer back as it got it, and the server must find in it what it said itself.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from tests.gateway.servers import Asked
from tests.gateway.test_gateway import environment as environment
from tests.gateway.test_tools import client as client
from tests.gateway.test_tools import hiding as hiding
from tests.gateway.test_tools import upstream as upstream

MAIL, CARD = "zoë.quillimar@example.org", "4111 1111 1111 1111"
ARGUMENTS = {"to": "<EMAIL_1>", "note": 'card "<CARD_1>" – ü', "n": 2}
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {"name": "send_mail", "parameters": {"type": "object", "properties": {}}},
    }
]
FINAL = "Sent to <EMAIL_1>, with <CARD_1>."

Message = dict[str, Any]


class Server(NamedTuple):
    """How a server answers.

    Args:
        whole: an answer with one message, and why it ended.
        split_rows: the lines of a stream of the same.
    """

    whole: Callable[[Message, str], Any]
    split_rows: Callable[[Message, str], list[bytes]]


def _sse(*events: Any, end: str = "\n\n", done: bool = True) -> list[bytes]:
    lines = [each if isinstance(each, str) else f"data: {json.dumps(each)}" for each in events]
    return [f"{line}{end}".encode() for line in [*lines, *(["data: [DONE]"] if done else [])]]


def _pieces(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


# ---- OpenAI ----------------------------------------------------------------------------------------------------------

HEAD = {"id": "chatcmpl-B1", "created": 1_764_000_000, "model": "gpt-9", "service_tier": "default"}
USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 5,
    "total_tokens": 14,
    "prompt_tokens_details": {"cached_tokens": 0},
}


def openai_whole(message: Message, finish: str) -> Any:
    own = {"refusal": None, "annotations": [], **message}
    choice = {"index": 0, "message": own, "logprobs": None, "finish_reason": finish}
    return {
        **HEAD,
        "object": "chat.completion",
        "choices": [choice],
        "usage": USAGE,
        "system_fingerprint": "fp_1",
    }


def openai_chunks(message: Message, finish: str) -> list[bytes]:
    """The role in the first chunk only, names in the first piece of a call only; usage in a chunk without choices."""

    def chunk(delta: Any, finish: str | None = None) -> Any:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {
            **HEAD,
            "object": "chat.completion.chunk",
            "choices": [choice],
            "usage": None,
            "obfuscation": "aB3",
        }

    made = [chunk({"role": "assistant", "content": message["content"] and "", "refusal": None})]
    made += [chunk({"content": piece}) for piece in _pieces(message["content"] or "", 3)]
    for i, call in enumerate(message.get("tool_calls", ())):
        function = {**call["function"], "arguments": ""}
        made.append(chunk({"tool_calls": [{"index": i, **call, "function": function}]}))
        for piece in _pieces(call["function"]["arguments"], 4):
            made.append(chunk({"tool_calls": [{"index": i, "function": {"arguments": piece}}]}))
    made.append(chunk({}, finish))
    return _sse(
        *made,
        {
            **HEAD,
            "object": "chat.completion.chunk",
            "choices": [],
            "usage": USAGE,
            "obfuscation": "",
        },
    )


# ---- vLLM ------------------------------------------------------------------------------------------------------------


def vllm_whole(message: Message, finish: str) -> Any:
    own: Message = {
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
        "tool_calls": [],
    } | message
    own |= {"reasoning": None, "reasoning_content": None}
    choice = {
        "index": 0,
        "message": own,
        "logprobs": None,
        "finish_reason": finish,
        "stop_reason": None,
        "token_ids": None,
    }
    more = {
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "kv_transfer_params": None,
        "system_fingerprint": None,
    }
    return {**HEAD, "object": "chat.completion", "choices": [choice], "usage": USAGE, **more}


def vllm_chunks(message: Message, finish: str) -> list[bytes]:
    """A call's id and type come with each piece of its arguments or with the first; usage with each chunk."""

    def chunk(delta: Any, finish: str | None = None) -> Any:
        choice = {
            "index": 0,
            "delta": delta,
            "logprobs": None,
            "finish_reason": finish,
            "token_ids": None,
        }
        return {
            "id": "chatcmpl-7",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": USAGE,
        }

    made = [chunk({"role": "assistant", "content": ""})]
    made += [chunk({"reasoning_content": piece}) for piece in _pieces("They want <EMAIL_1>.", 5)]
    made += [chunk({"content": piece}) for piece in _pieces(message["content"] or "", 5)]
    for i, call in enumerate(message.get("tool_calls", ())):
        for k, piece in enumerate(_pieces(call["function"]["arguments"], 7)):
            function = {"name": call["function"]["name"] if k == 0 else None, "arguments": piece}
            made.append(
                chunk(
                    {
                        "tool_calls": [
                            {"id": call["id"], "type": "function", "index": i, "function": function}
                        ]
                    }
                )
            )
    made.append(
        chunk({"content": ""}, finish)
        | {
            "choices": [
                {"index": 0, "delta": {"content": ""}, "finish_reason": finish, "stop_reason": None}
            ]
        }
    )
    return _sse(
        *made,
        {
            "id": "chatcmpl-7",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [],
            "usage": USAGE,
        },
    )


# ---- llama.cpp -------------------------------------------------------------------------------------------------------

TIMINGS = {"prompt_n": 9, "prompt_ms": 1.5, "predicted_per_second": 80.5}


def llama_whole(message: Message, finish: str) -> Any:
    choice = {"finish_reason": finish, "index": 0, "message": {"role": "assistant", **message}}
    return {
        "choices": [choice],
        "created": 1,
        "model": "gguf",
        "system_fingerprint": "b1",
        "object": "chat.completion",
        "id": "chatcmpl-x",
        "timings": TIMINGS,
        "__verbose": {"content": FINAL},
    }


def llama_chunks(message: Message, finish: str) -> list[bytes]:
    """Comments that keep the connection open; the last chunk with timings."""

    def chunk(delta: Any, finish: str | None = None, **more: Any) -> Any:
        return {
            "choices": [{"finish_reason": finish, "index": 0, "delta": delta}],
            "object": "chat.completion.chunk",
            **more,
        }

    made: list[Any] = [":", chunk({"role": "assistant", "content": None}), ": ping"]
    made += [chunk({"content": piece}) for piece in _pieces(message["content"] or "", 2)]
    for i, call in enumerate(message.get("tool_calls", ())):
        made.append(
            chunk(
                {
                    "tool_calls": [
                        {
                            "index": i,
                            "id": call["id"],
                            "type": "function",
                            "function": {"name": call["function"]["name"], "arguments": "{"},
                        }
                    ]
                }
            )
        )
        made += [
            chunk({"tool_calls": [{"index": i, "function": {"arguments": piece}}]})
            for piece in _pieces(call["function"]["arguments"][1:], 1)
        ]
    made += [":", chunk({}, finish, timings=TIMINGS)]
    return _sse(*made)


# ---- Ollama, Mistral, and one that says next to nothing --------------------------------------------------------------


def ollama_chunks(message: Message, finish: str) -> list[bytes]:
    """Every call whole in one chunk, all with the same index; the reason to end is stop."""
    made = [
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "model": "q",
            "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
        }
        for delta in [
            *(
                {"role": "assistant", "content": piece}
                for piece in _pieces(message["content"] or "", 6)
            ),
            *(
                {"role": "assistant", "content": "", "tool_calls": [{"index": i, **call}]}
                for i, call in enumerate(message.get("tool_calls", ()))
            ),
        ]
    ]
    end = {
        "choices": [
            {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "stop"}
        ]
    }
    return _sse(*made, end)


def mistral_whole(message: Message, finish: str) -> Any:
    """Calls without a type."""
    calls = [
        {"id": call["id"], "function": call["function"]} for call in message.get("tool_calls", ())
    ]
    own = {
        "role": "assistant",
        "content": message["content"] or "",
        "tool_calls": calls or None,
        "prefix": False,
    }
    return {
        "id": "x",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": own, "finish_reason": finish}],
    }


def mistral_chunks(message: Message, finish: str) -> list[bytes]:
    """The reason to end comes with the last piece of the text, or with the calls, which are whole."""
    texts = _pieces(message["content"] or "", 4)
    deltas: list[Any] = [{"content": piece} for piece in texts]
    if calls := message.get("tool_calls"):
        deltas.append(
            {
                "content": "",
                "tool_calls": [
                    {"index": i, "id": c["id"], "function": c["function"]}
                    for i, c in enumerate(calls)
                ],
            }
        )
    deltas[0] = {"role": "assistant", **deltas[0]}
    made: list[Any] = [
        {"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    made[-1]["choices"][0]["finish_reason"] = finish
    return _sse(*made)


def bare_whole(message: Message, finish: str) -> Any:
    """No id, object, time, model, index, role, reason to end or usage."""
    return {
        "choices": [{"message": {name: value for name, value in message.items() if name != "role"}}]
    }


def bare_chunks(message: Message, finish: str) -> list[bytes]:
    """The same; lines as other systems end them, without a blank behind the colon, and nothing that says the end."""
    deltas: list[Any] = [{"content": piece} for piece in _pieces(message["content"] or "", 3)]
    for i, call in enumerate(message.get("tool_calls", ())):
        text = call["function"]["arguments"]
        first = {
            "index": i,
            "id": call["id"],
            "function": {"name": call["function"]["name"], "arguments": text[:11]},
        }
        deltas += [
            {"tool_calls": [first]},
            {"tool_calls": [{"index": i, "function": {"arguments": text[11:]}}]},
        ]
    lines = [f"data:{json.dumps({'choices': [{'delta': delta}]})}" for delta in deltas]
    return _sse(*lines, "event: ping\r\ndata: {}", end="\r\n\r\n")


SERVERS = {
    "OpenAI": Server(openai_whole, openai_chunks),
    "vLLM": Server(vllm_whole, vllm_chunks),
    "llama.cpp": Server(llama_whole, llama_chunks),
    "Ollama": Server(lambda message, finish: openai_whole(message, "stop"), ollama_chunks),
    "Mistral": Server(mistral_whole, mistral_chunks),
    "a bare one": Server(bare_whole, bare_chunks),
}


def call(number: int, **arguments: Any) -> Message:
    function = {"name": "send_mail", "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": f"call_{number}", "type": "function", "function": function}


def gathered(chunks: Iterator[Any]) -> Message:
    """A stream as clients put it together: calls by their index."""
    content, calls = "", dict[int, Message]()
    for chunk in chunks:
        for choice in chunk.choices or ():
            content += choice.delta.content or ""
            for each in choice.delta.tool_calls or ():
                own = calls.setdefault(
                    each.index,
                    {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
                )
                own["id"] = each.id or own["id"]
                own["function"]["name"] = (each.function.name or "") or own["function"]["name"]
                own["function"]["arguments"] += each.function.arguments or ""
    return {"role": "assistant", "content": content or None} | (
        {"tool_calls": list(calls.values())} if calls else {}
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", SERVERS)
def test_a_round_trip_of_two_calls(client, upstream, name, stream):
    server = SERVERS[name]
    calls = [call(1, **ARGUMENTS), call(2, to="b@example.net", of=["<EMAIL_1>"])]
    answers: Iterator[tuple[Message, str]] = iter(
        [({"content": None, "tool_calls": calls}, "tool_calls"), ({"content": FINAL}, "stop")]
    )

    def script(asked: Asked) -> Any:
        message, finish = next(answers)
        return (
            server.split_rows(message, finish)
            if asked.body.get("stream")
            else server.whole({"role": "assistant", **message}, finish)
        )

    def ask(messages: list[Any]) -> Any:
        asked = {"model": "m", "messages": messages, "tools": TOOLS, "stream": stream}
        answer = client.chat.completions.create(
            **asked, **({"stream_options": {"include_usage": True}} if stream else {})
        )
        return gathered(answer) if stream else answer.choices[0].message

    upstream.answer = script
    messages: list[Any] = [{"role": "user", "content": f'mail "{MAIL}" about {CARD}'}]
    first = ask(messages)
    called = first["tool_calls"] if stream else first.model_dump()["tool_calls"]
    assert [each["id"] for each in called] == ["call_1", "call_2"]
    arguments = [json.loads(each["function"]["arguments"]) for each in called]
    assert arguments[0] == {"to": MAIL, "note": f'card "{CARD}" – ü', "n": 2}
    assert arguments[1] == {"to": "b@example.net", "of": [MAIL]}
    results = [
        {"role": "tool", "tool_call_id": each["id"], "content": f"sent to {MAIL}"}
        for each in called
    ]
    last = ask([*messages, first, *results])
    assert (last["content"] if stream else last.content) == f"Sent to {MAIL}, with {CARD}."
    came, again = upstream.bodies
    assert (
        again["messages"][0]
        == came["messages"][0]
        == {"role": "user", "content": 'mail "<EMAIL_1>" about <CARD_1>'}
    )
    assert [each["function"]["arguments"] for each in again["messages"][1]["tool_calls"]] == [
        each["function"]["arguments"] for each in calls
    ]
    assert [each["content"] for each in again["messages"][2:]] == ["sent to <EMAIL_1>"] * 2
    assert "quillimar" not in json.dumps(upstream.bodies)


@pytest.mark.parametrize("name", ["OpenAI", "vLLM", "llama.cpp"])
def test_the_sdk_s_own_stream_puts_it_together(client, upstream, name):
    """Its helper wants the fields that these servers send."""
    calls = [call(1, **ARGUMENTS)]
    upstream.answer = lambda asked: SERVERS[name].split_rows(
        {"content": None, "tool_calls": calls}, "tool_calls"
    )
    messages: list[Any] = [{"role": "user", "content": f'mail "{MAIL}" about {CARD}'}]
    with client.chat.completions.stream(model="m", messages=messages, tools=TOOLS) as stream:
        for _ in stream:
            pass
        message = stream.get_final_completion().choices[0].message
    assert json.loads(message.tool_calls[0].function.arguments)["to"] == MAIL
    upstream.answer = lambda asked: SERVERS[name].split_rows({"content": FINAL}, "stop")
    with client.chat.completions.stream(
        model="m", messages=[*messages, message], tools=TOOLS
    ) as stream:
        assert (
            stream.get_final_completion().choices[0].message.content
            == f"Sent to {MAIL}, with {CARD}."
        )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_arguments_that_are_an_object(client, upstream, stream):
    """Some servers give JSON instead of a string that holds it, and want it back so."""
    made = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "send_mail", "arguments": ARGUMENTS},
    }
    delta = {"role": "assistant", "content": "", "tool_calls": [{"index": 0, **made}]}
    upstream.answer = lambda asked: (
        _sse({"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]})
        if stream
        else bare_whole({"content": None, "tool_calls": [made]}, "tool_calls")
    )
    messages: list[Any] = [{"role": "user", "content": f'mail "{MAIL}" about {CARD}'}]
    answer = client.chat.completions.create(
        model="m", messages=messages, tools=TOOLS, stream=stream
    )
    calls = (
        [choice.delta.tool_calls for chunk in answer for choice in chunk.choices] if stream else []
    )
    (found,) = (
        [each for some in calls for each in some or ()]
        if stream
        else answer.choices[0].message.tool_calls
    )
    assert found.function.arguments == {"to": MAIL, "note": f'card "{CARD}" – ü', "n": 2}
    upstream.answer = lambda asked: bare_whole({"content": "ok"}, "stop")
    back = {
        "role": "assistant",
        "tool_calls": [
            {**made, "function": {"name": "send_mail", "arguments": found.function.arguments}}
        ],
    }
    result = {"role": "tool", "tool_call_id": "call_1", "content": "sent"}
    client.post(
        "/chat/completions",
        body={"model": "m", "messages": [*messages, back, result]},
        cast_to=object,
    )
    assert upstream.bodies[-1]["messages"][1]["tool_calls"] == [made]


def test_pings_and_comments_and_blank_lines_are_no_answer(client, upstream):
    delta = {"choices": [{"delta": {"content": "to <EMAIL_1>"}}]}
    noise = [":", "", ": keep-alive", "event: ping", "data:", "retry: 3000", "id: 7"]
    for before, behind in itertools.product(noise, repeat=2):
        upstream.answer = lambda asked, pair=(before, behind): _sse(pair[0], delta, pair[1])
        answer = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": MAIL}], stream=True
        )
        assert gathered(answer)["content"] == f"to {MAIL}", (before, behind)
