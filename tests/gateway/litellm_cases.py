"""Requests to a LiteLLM proxy with private values in every leaf that it shows to its guardrails, and what comes back.

In: nothing. Out: cases, the guardrails of the proxy, and the script of an upstream.
Not here: the proxy (`test_litellm_proxy`), and what is asserted.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.gateway.servers import Asked

from textveil import Privatizer
from textveil.gateway import Gateway

RECORDED = Path(__file__).parent / "litellm.jsonl"
"""What LiteLLM asked the gateway, case by case."""

MAIL = "dora.braga@example.org"
CANARIES = {
    MAIL,
    "rui.system@example.org",
    "+351 912 345 678",
    "eva.tool@example.org",
    "leo.schema@example.org",
    "PT50 0002 0123 1234 5678 9015 4",
}
GUARDRAILS: dict[str, dict[str, Any]] = {
    "generic": {
        "guardrail": "generic_guardrail_api",
        "mode": ["pre_call", "post_call"],
        "api_key": "sk-of-the-gateway",
        "forward_messages_as_sent": True,
        "streaming_transform_mode": "incremental_diff",
        "streaming_sampling_rate": 1,
    },
    "redacting": {
        "guardrail": "llm_shield_proxy",
        "mode": ["pre_call", "post_call"],
        "api_key": "sk-of-the-gateway",
    },
}


def guarding(upstream: str, **options: Any) -> Gateway:
    """A gateway that finds identifiers only, and quickly; with other options, too."""
    given: dict[str, Any] = {"privatizer": _identifiers(), "upstream": upstream, **options}
    return Gateway(**given)


@cache
def _identifiers() -> Privatizer:
    protect = {"level": "identifiers", "detectors": ("patterns", "structure")}
    return Privatizer.from_profile("prompt", protect=protect)


class Case(NamedTuple):
    """A request to LiteLLM.

    Args:
        path: where.
        body: its JSON.
        read: the text of an answer and the arguments of its tool, if it has any.
        has_answer: guardrails that restore the text.
        restores_arguments: guardrails that restore the arguments.
    """

    path: str
    body: dict[str, Any]
    read: Callable[[str], tuple[str, str | None]]
    has_answer: tuple[str, ...] = ("generic", "redacting")
    restores_arguments: tuple[str, ...] = ()


# ---- answers of the upstream -----------------------------------------------------------------------------------------


def answer(asked: Asked) -> Any:
    """Says to whom it was told to write, in text and to a tool; in a stream, letter by letter."""
    if asked.body is None:
        return {"object": "list", "data": []}
    found = re.search(r"Write to (<EMAIL_[0-9]+>)", json.dumps(asked.body))
    name = found[1] if found else "nobody"
    text, arguments = f"Written to {name}, gladly.", json.dumps({"to": name, "note": 'a "b"'})
    streamed = bool(asked.body.get("stream"))
    if asked.path.endswith("/messages"):
        return _messages_stream(text, arguments) if streamed else _message(text, arguments)
    if asked.path.endswith("/responses"):
        return _responses_stream(text) if streamed else _response(text, arguments)
    if asked.path.endswith("/embeddings"):
        return {
            "object": "list",
            "model": "m",
            "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
        }
    if asked.path.endswith("/chat/completions"):
        return _chat_stream(text, arguments) if streamed else _chat(text, arguments)
    return {
        "id": "c",
        "object": "text_completion",
        "created": 1,
        "model": "m",
        "choices": [_choice(text=text)],
    }


def _choice(finish: str | None = "stop", **fields: Any) -> dict[str, Any]:
    return {"index": 0, "finish_reason": finish, **fields}


def _chat(text: str, arguments: str) -> dict[str, Any]:
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "mail", "arguments": arguments},
    }
    message = {"role": "assistant", "content": text, "tool_calls": [call]}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [_choice(message=message)],
    }


def _sse(data: Any, name: str = "") -> bytes:
    said = data if isinstance(data, str) else json.dumps(data)
    return ((f"event: {name}\n" if name else "") + f"data: {said}\n\n").encode()


def _chat_stream(text: str, arguments: str) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choices = [_choice(finish, delta=delta)]
        return _sse(
            {
                "id": "c",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "choices": choices,
            }
        )

    yield chunk({"role": "assistant", "content": ""})
    yield from (chunk({"content": letter}) for letter in text)
    function = {"name": "mail", "arguments": ""}
    yield chunk(
        {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}
    )
    yield from (
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": letter}}]})
        for letter in arguments
    )
    yield chunk({}, "tool_calls")
    yield _sse("[DONE]")


def _message(text: str, arguments: str) -> dict[str, Any]:
    use = {"type": "tool_use", "id": "toolu_1", "name": "mail", "input": json.loads(arguments)}
    usage = {"input_tokens": 1, "output_tokens": 1}
    content = [{"type": "text", "text": text}, use]
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": content,
        "usage": usage,
    }


def _messages_stream(text: str, arguments: str) -> Iterator[bytes]:
    def event(name: str, **fields: Any) -> bytes:
        return _sse({"type": name, **fields}, name)

    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": [],
        "usage": usage,
    }
    yield event("message_start", message=message)
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for letter in text:
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": letter})
    yield event("content_block_stop", index=0)
    use = {"type": "tool_use", "id": "toolu_1", "name": "mail", "input": {}}
    yield event("content_block_start", index=1, content_block=use)
    for letter in arguments:
        yield event(
            "content_block_delta",
            index=1,
            delta={"type": "input_json_delta", "partial_json": letter},
        )
    yield event("content_block_stop", index=1)
    yield event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 2})
    yield event("message_stop")


def _response(text: str, arguments: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    said = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "mail",
        "arguments": arguments,
    }
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    made = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
    }
    return {**made, "output": [said, {**call, "status": "completed"}], "usage": usage}


def _responses_stream(text: str) -> Iterator[bytes]:
    whole = _response(text, "{}")
    item, part = whole["output"][0], whole["output"][0]["content"][0]
    numbers = iter(range(1_000))

    def event(name: str, **fields: Any) -> bytes:
        return _sse({"type": name, "sequence_number": next(numbers), **fields}, name)

    place: dict[str, Any] = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    yield event("response.created", response={**whole, "status": "in_progress", "output": []})
    yield event(
        "response.output_item.added",
        output_index=0,
        item={**item, "status": "in_progress", "content": []},
    )
    yield event("response.content_part.added", **place, part={**part, "text": ""})
    for letter in text:
        yield event("response.output_text.delta", **place, delta=letter, logprobs=[])
    yield event("response.output_text.done", **place, text=text, logprobs=[])
    yield event("response.content_part.done", **place, part=part)
    yield event("response.output_item.done", output_index=0, item=item)
    yield event("response.completed", response={**whole, "output": [item]})


# ---- what comes to the client ----------------------------------------------------------------------------------------


def events(came: str) -> list[Any]:
    found = [
        line.removeprefix("data:").strip() for line in came.splitlines() if line.startswith("data:")
    ]
    return [json.loads(each) for each in found if each != "[DONE]"]


def of_chat(came: str) -> tuple[str, str | None]:
    message = json.loads(came)["choices"][0]["message"]
    return message["content"], message["tool_calls"][0]["function"]["arguments"]


def of_chat_stream(came: str) -> tuple[str, str | None]:
    deltas = [choice["delta"] for each in events(came) for choice in each["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls") or ()]
    text = "".join(delta.get("content") or "" for delta in deltas)
    return text, "".join(call["function"].get("arguments") or "" for call in calls)


def of_messages(came: str) -> tuple[str, str | None]:
    content = json.loads(came)["content"]
    return content[0]["text"], json.dumps(content[1]["input"])


def of_messages_stream(came: str) -> tuple[str, str | None]:
    deltas = [each["delta"] for each in events(came) if each["type"] == "content_block_delta"]
    return "".join(each.get("text", "") for each in deltas), "".join(
        each.get("partial_json", "") for each in deltas
    )


def of_responses(came: str) -> tuple[str, str | None]:
    output = json.loads(came)["output"]
    return output[0]["content"][0]["text"], output[1]["arguments"]


def of_responses_stream(came: str) -> tuple[str, str | None]:
    said = events(came)
    text = "".join(each["delta"] for each in said if each["type"] == "response.output_text.delta")
    whole = [each["text"] for each in said if each["type"] == "response.output_text.done"]
    return (text if whole == [text] else ""), None


def of_completions(came: str) -> tuple[str, str | None]:
    return json.loads(came)["choices"][0]["text"], None


# ---- requests --------------------------------------------------------------------------------------------------------

ARGUMENTS = json.dumps({"to": MAIL, "phone": "+351 912 345 678"})
RESULT = "sent, copy to eva.tool@example.org"
SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string", "description": "as leo.schema@example.org"}},
}
ASKED = f"Write to {MAIL} about PT50 0002 0123 1234 5678 9015 4"
SYSTEM = "You work for rui.system@example.org"
CALL = {"id": "call_1", "type": "function", "function": {"name": "mail", "arguments": ARGUMENTS}}
CHAT = {
    "model": "gpt",
    "messages": [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": [{"type": "text", "text": ASKED}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": RESULT},
        {"role": "user", "content": "And again"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "mail", "description": "Mails", "parameters": SCHEMA},
        }
    ],
}
MESSAGES = {
    "model": "claude",
    "max_tokens": 100,
    "system": SYSTEM,
    "messages": [
        {"role": "user", "content": ASKED},
        {
            "role": "assistant",
            "content": [
                {
                    "type": "tool_use",
                    "id": "toolu_1",
                    "name": "mail",
                    "input": json.loads(ARGUMENTS),
                }
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": RESULT}],
        },
    ],
    "tools": [{"name": "mail", "description": "Mails", "input_schema": SCHEMA}],
}
RESPONSES = {
    "model": "gpt",
    "instructions": SYSTEM,
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": ASKED}]},
        {"type": "function_call", "call_id": "call_1", "name": "mail", "arguments": ARGUMENTS},
        {"type": "function_call_output", "call_id": "call_1", "output": RESULT},
    ],
    "tools": [{"type": "function", "name": "mail", "description": "Mails", "parameters": SCHEMA}],
}
ONLY = ("redacting",)
CASES = {
    "chat": Case("/v1/chat/completions", CHAT, of_chat, restores_arguments=ONLY),
    "chat streamed": Case(
        "/v1/chat/completions", {**CHAT, "stream": True}, of_chat_stream, restores_arguments=ONLY
    ),
    "messages": Case("/v1/messages", MESSAGES, of_messages, restores_arguments=ONLY),
    "messages streamed": Case(
        "/v1/messages",
        {**MESSAGES, "stream": True},
        of_messages_stream,
        has_answer=ONLY,
        restores_arguments=ONLY,
    ),
    "responses": Case("/v1/responses", RESPONSES, of_responses, restores_arguments=ONLY),
    "responses streamed": Case(
        "/v1/responses", {**RESPONSES, "stream": True}, of_responses_stream, has_answer=ONLY
    ),
    "completions": Case("/v1/completions", {"model": "old", "prompt": ASKED}, of_completions),
    "embeddings": Case(
        "/v1/embeddings",
        {"model": "emb", "input": [ASKED, RESULT]},
        lambda _: ("", None),
        has_answer=(),
    ),
}
