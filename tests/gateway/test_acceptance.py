"""What the gateway promises, as one: the command alone serves the SDKs unchanged, and many clients do not mix.

`textveil gateway --upstream URL --port 0`, no policy, no keys. The details of each API are tested by its own module.
"""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from tests.gateway.servers import Asked, commanded, serving, serving_upstream
from tests.gateway.specimens import specimens
from tests.gateway.test_gateway import client_of
from tests.gateway.test_gateway import environment as environment
from tests.gateway.test_responses import answer, call, events, message, written

from textveil import Privatizer
from textveil.gateway import Gateway
from textveil.gateway.protocols import Operation, load_operations
from textveil.gateway.protocols.field_rules import Act

MAIL, CARD = "zoe.quillimar@blorvequine.org", "4111 1111 1111 1111"
CANARY = "blorvequine"
ASKED = f"mail {MAIL} about {CARD}"
SAID = "to <EMAIL_1>, with <CARD_1>"
WANTED = f"to {MAIL}, with {CARD}"
FUNCTION = {
    "name": "send",
    "parameters": {"type": "object", "properties": {"to": {"type": "string"}}},
}
INPUT = {"to": "<EMAIL_1>", "n": [1, {"of": "<CARD_1>"}]}
CALLED = {"to": MAIL, "n": [1, {"of": CARD}]}
MODELS = {"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "x"}]}


# ---- an upstream for all APIs ----------------------------------------------------------------------------------------


def chat_answer(body: Any) -> Any:
    """A call where there are tools and no result; else a text."""
    calls = body.get("tools") and body["messages"][-1]["role"] == "user"
    function = {"name": "send", "arguments": json.dumps(INPUT)}
    tool = {"id": "c1", "type": "function", "function": function}
    made = {
        "role": "assistant",
        **({"content": None, "tool_calls": [tool]} if calls else {"content": SAID}),
    }
    head: dict[str, Any] = {"id": "a1", "created": 1, "model": "m"}
    if not body.get("stream"):
        choice = {"index": 0, "message": made, "finish_reason": "tool_calls" if calls else "stop"}
        return {**head, "object": "chat.completion", "choices": [choice]}
    deltas: list[Any] = [{"role": "assistant", "content": ""}]
    if calls:
        deltas.append(
            {"tool_calls": [{"index": 0, **tool, "function": {"name": "send", "arguments": ""}}]}
        )
        deltas += [
            {"tool_calls": [{"index": 0, "function": {"arguments": char}}]}
            for char in function["arguments"]
        ]
    else:
        deltas += [{"content": char} for char in SAID]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"})
    chunks = [
        {**head, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices
    ]
    return [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]


def anthropic_answer(body: Any) -> Any:
    """Thinking, a text and a call."""
    blocks: list[Any] = [{"type": "thinking", "thinking": "hm, *<EMAIL_1>*", "signature": "c2ln"}]
    blocks.append({"type": "text", "text": SAID})
    blocks += (
        [{"type": "tool_use", "id": "toolu_1", "name": "send", "input": INPUT}]
        if body.get("tools")
        else []
    )
    usage = {"input_tokens": 1, "output_tokens": 1}
    made: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": blocks,
    }
    made |= {"usage": usage, "stop_reason": "end_turn", "stop_sequence": None}
    if not body.get("stream"):
        return made
    told: list[Any] = [
        {"type": "message_start", "message": {**made, "content": [], "stop_reason": None}}
    ]
    for i, block in enumerate(blocks):
        field = {"thinking": "thinking", "text": "text", "tool_use": "input"}[block["type"]]
        kind = {"thinking": "thinking_delta", "text": "text_delta", "tool_use": "input_json_delta"}[
            block["type"]
        ]
        own = {"input": "partial_json"}.get(field, field)
        said = json.dumps(block["input"]) if field == "input" else block[field]
        begun = {**block, field: {} if field == "input" else ""} | (
            {"signature": ""} if field == "thinking" else {}
        )
        told.append({"type": "content_block_start", "index": i, "content_block": begun})
        told += [
            {"type": "content_block_delta", "index": i, "delta": {"type": kind, own: char}}
            for char in said
        ]
        if field == "thinking":
            delta = {"type": "signature_delta", "signature": "c2ln"}
            told.append({"type": "content_block_delta", "index": i, "delta": delta})
        told.append({"type": "content_block_stop", "index": i})
    told.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": usage,
        }
    )
    return [
        f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode()
        for e in [*told, {"type": "message_stop"}]
    ]


def said(asked: Asked) -> Any:
    """What the upstream answers, by the path."""
    path, body = asked.path.partition("?")[0].removeprefix("/v1"), asked.body
    if path == "/models":
        return MODELS
    if path.startswith("/models/"):
        return MODELS["data"][0]
    if path == "/messages/count_tokens":
        return {"input_tokens": 7}
    if path == "/messages":
        return anthropic_answer(body)
    if path == "/embeddings":
        vector = {"object": "embedding", "index": 0, "embedding": [0.5]}
        return {
            "object": "list",
            "data": [vector],
            "model": "m",
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }
    if path == "/moderations":
        return {"id": "modr-1", "model": "m", "results": [{"flagged": False}]}
    if path == "/completions":
        return {
            "id": "c",
            "object": "text_completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "text": SAID}],
        }
    if path == "/responses":
        known = body.get("previous_response_id")
        items = [call(json.dumps(INPUT))] if body.get("tools") and not known else [message(SAID)]
        made = answer(asked, *items, id=f"resp_{2 if known else 1}")
        return [written(each) for each in events(made)] if body.get("stream") else made
    return chat_answer(body)


@pytest.fixture(scope="module")
def upstream() -> Iterator[Any]:
    with serving_upstream(said) as server:
        yield server


@pytest.fixture(scope="module")
def command(upstream, tmp_path_factory) -> Iterator[str]:
    """Where the command serves."""
    with commanded(upstream.url, tmp_path_factory.mktemp("gateway") / "said") as url:
        yield url


@pytest.fixture
def clean(upstream) -> Iterator[None]:
    """At the end nothing of what was planted has reached the upstream."""
    upstream.asked.clear()
    upstream.answer = said
    yield
    assert upstream.asked
    assert CANARY not in upstream.seen
    assert "4111" not in upstream.seen


@pytest.fixture
def client(command, clean) -> Iterator[openai.OpenAI]:
    with client_of(f"{command}/v1") as made:
        yield made


@pytest.fixture
def claude(command, clean) -> Iterator[anthropic.Anthropic]:
    http = httpx2.Client(trust_env=False)
    with anthropic.Anthropic(
        base_url=command, api_key="sk-ant", max_retries=0, http_client=http
    ) as made:
        yield made


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


# ---- the SDKs, unchanged but for the base URL ------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_two_turns_with_a_tool(client, upstream, stream):
    tools: list[Any] = [{"type": "function", "function": FUNCTION}]
    messages: list[Any] = [{"role": "system", "content": f"You answer {MAIL}."}, user(ASKED)]

    def ask() -> Any:
        if not stream:
            return (
                client.chat.completions.create(model="m", messages=messages, tools=tools)
                .choices[0]
                .message
            )
        with client.chat.completions.stream(model="m", messages=messages, tools=tools) as came:
            return came.get_final_completion().choices[0].message

    first = ask()
    (called,) = first.tool_calls
    assert json.loads(called.function.arguments) == CALLED
    messages += [
        first,
        {"role": "tool", "tool_call_id": called.id, "content": json.dumps({"sent": [MAIL]})},
    ]
    second = ask()
    assert second.content == WANTED
    messages += [second, user(f"and again to {MAIL}")]
    ask()
    sent = upstream.asked[-1].body["messages"]
    assert sent[: len(sent) - 2] == upstream.asked[-2].body["messages"]
    assert sent[-2]["content"] == SAID
    assert json.loads(sent[2]["tool_calls"][0]["function"]["arguments"]) == INPUT


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_responses_that_go_on(client, upstream, stream):
    tools: list[Any] = [{"type": "function", "strict": False, **FUNCTION}]

    def ask(**more: Any) -> Any:
        if not stream:
            return client.responses.create(model="m", tools=tools, **more)
        with client.responses.stream(model="m", tools=tools, **more) as came:
            for _ in came:
                pass
            return came.get_final_response()

    first = ask(input=ASKED, instructions=f"You answer {MAIL}.")
    assert json.loads(first.output[0].arguments) == CALLED
    result = {
        "type": "function_call_output",
        "call_id": first.output[0].call_id,
        "output": f"sent to {MAIL}",
    }
    second = ask(input=[result], previous_response_id=first.id)
    assert second.output_text == WANTED
    assert upstream.asked[-1].body["input"][0]["output"] == "sent to <EMAIL_1>"
    assert upstream.asked[-1].body["previous_response_id"] == "resp_1"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_anthropic_s_tools_and_thinking(claude, upstream, stream):
    tools: list[Any] = [{"name": "send", "input_schema": FUNCTION["parameters"]}]
    messages: list[Any] = [user(ASKED)]
    request: dict[str, Any] = {
        "model": "m",
        "max_tokens": 2048,
        "tools": tools,
        "system": f"You answer {MAIL}.",
    }
    request["thinking"] = {"type": "enabled", "budget_tokens": 1024}

    def ask() -> Any:
        if not stream:
            return claude.messages.create(messages=messages, **request)
        with claude.messages.stream(messages=messages, **request) as came:
            return came.get_final_message()

    made = ask()
    thinking, text, called = made.content
    assert (thinking.thinking, text.text, called.input) == (f"hm, *{MAIL}*", WANTED, CALLED)
    messages += [{"role": "assistant", "content": made.content}]
    messages += [
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": called.id, "content": f"ok {MAIL}"}],
        }
    ]
    ask()
    sent = upstream.asked[-1].body["messages"]
    assert sent[1]["content"][0] == {
        "type": "thinking",
        "thinking": "hm, *<EMAIL_1>*",
        "signature": "c2ln",
    }
    assert sent[1]["content"][2]["input"] == INPUT
    assert sent[2]["content"][0]["content"] == "ok <EMAIL_1>"
    assert claude.messages.count_tokens(model="m", messages=messages).input_tokens == 7


def test_the_rest_of_the_apis(client, upstream):
    assert [each.id for each in client.models.list()] == ["m"]
    assert client.models.retrieve("m").id == "m"
    assert client.embeddings.create(model="m", input=ASKED, encoding_format="float").data[
        0
    ].embedding == [0.5]
    assert client.moderations.create(model="m", input=ASKED).results[0].flagged is False
    assert client.completions.create(model="m", prompt=ASKED).choices[0].text == WANTED
    assert [each.path for each in upstream.asked][-1] == "/v1/completions"


def test_the_first_calls_of_open_webui(command, upstream, clean):
    """It asks for the models, with and without /v1, and then for a stream, a title and tags, without an SDK."""
    headers = {
        "Authorization": "Bearer sk-1",
        "X-OpenWebUI-User-Name": "Zoe",
        "X-OpenWebUI-User-Email": MAIL,
    }
    with httpx2.Client(trust_env=False, headers=headers, timeout=60) as http:
        for prefix in ("", "/v1"):
            assert http.get(f"{command}{prefix}/models").json() == MODELS
            body = {
                "model": "m",
                "stream": True,
                "stream_options": {"include_usage": True},
                "messages": [user(ASKED)],
            }
            came = http.post(f"{command}{prefix}/chat/completions", json=body)
            assert came.headers["content-type"].startswith("text/event-stream")
            lines = [
                json.loads(line[6:])
                for line in came.text.splitlines()
                if line.startswith("data: {")
            ]
            assert (
                "".join(each["choices"][0]["delta"].get("content") or "" for each in lines)
                == WANTED
            )
            task = {
                "model": "m",
                "stream": False,
                "max_completion_tokens": 1000,
                "messages": [user(f"A title for: {ASKED}")],
            }
            made = http.post(f"{command}{prefix}/chat/completions", json=task)
            assert made.json()["choices"][0]["message"]["content"] == WANTED
    told = [{**each.headers} for each in upstream.asked]
    assert not any(name.startswith("x-openwebui") for each in told for name in each)
    assert {each["authorization"] for each in told} == {"Bearer sk-1"}


# ---- many clients, every leaf ----------------------------------------------------------------------------------------

RELEASED = (Act.PROTECT, Act.LABEL, Act.ARGUMENTS, Act.OBJECT, Act.SCHEMA)
"""What is hidden and comes back. What is dropped or named by a pseudonym must not reach the upstream, and does not come
back; the rest is not text."""

REMEMBERED = ("previous_response_id", "conversation", "compaction", "item_reference")
"""What only an upstream that was asked before knows."""

MODEL = re.compile(r"{model(?::path)?}")
STREAMS = ("gemini.stream", "bedrock.converse_stream")
ROUTES = {
    each.name: each
    for each in load_operations()
    if each.has_body
    and "{" not in MODEL.sub("", each.path)
    and not each.name.startswith("litellm")
    and each.name not in STREAMS
}
"""All that is posted to an upstream, but for what adds to something that it remembers: the tables are the same."""

SOME = (
    "openai.chat",
    "openai.responses",
    "openai.completions",
    "openai.embeddings",
    "openai.moderations",
)
"""Routes of the quick test: the tests of each API plant something in all leaves, too."""


def requests(operation: Operation, client: int) -> Iterator[tuple[Any, set[str]]]:
    """Requests that together have every leaf of a table, each text with an address of its own; and these addresses.

    What an upstream signed is left out: its block is, where the signature is not known (`test_messages`).

    Args:
        operation: its table.
        client: whose addresses.
    """
    numbers = count()
    released: list[str] = []

    def text(act: Act) -> str | None:
        if act in (Act.MEDIA, Act.REFUSE, Act.PASS, Act.SIGNED):
            return None
        mine = f"c{client}x{next(numbers)}@{CANARY}.org"
        released.extend([mine] if act in RELEASED else [])
        return mine

    for body in specimens(operation.request, text):
        body |= {"stream": False} if "stream" in body or operation.is_stream_default else {}
        for name in REMEMBERED:
            body.pop(name, None)
        for inner in (body.get("generateContentRequest"), *(body.get("requests") or [])):
            if isinstance(inner, dict):
                inner["model"] = "m"  # as in the path
        for name in ("input", "items"):
            if isinstance(body.get(name), list):
                body[name] = [
                    each
                    for each in body[name]
                    if not (isinstance(each, dict) and each.get("type") in REMEMBERED)
                ]
        written_out = json.dumps(body)
        yield body, {each for each in released if each in written_out}


def echo(asked: Asked) -> Any:
    """Every leaf of an answer, with the first placeholder of the request; and all its placeholders."""
    sent = json.dumps(asked.body)
    # EMAIL-1 is how Bedrock's documents are named.
    names = list(dict.fromkeys(f"EMAIL_{n}" for n in re.findall(r"EMAIL[_-](\d+)", sent)))
    path = asked.path.removeprefix("/v1")
    (operation,) = [each for each in ROUTES.values() if MODEL.sub("m", each.path) == path]
    kept = (Act.MEDIA, Act.REFUSE, Act.PASS, Act.DROP, Act.USER, Act.LABEL)
    texts = specimens(
        operation.answer,
        lambda act: None if act in kept else 0 if act is Act.OFFSET else f"<{names[0]}>",
    )
    made = texts[0] if texts and isinstance(texts[0], dict) else {}
    return {**made, "all_of_them": [f"<{name}>" for name in names]}


@pytest.mark.slow
@pytest.mark.parametrize("clients", [8, pytest.param(50, marks=pytest.mark.slow)])
def test_many_clients_at_once_with_something_private_in_every_leaf(upstream, clients):
    """Nothing reaches the upstream, nobody gets what is another's, and all comes back that the tables restore."""
    hiding = Privatizer.from_profile("prompt", protect={"detectors": ["patterns", "structure"]})
    upstream.asked.clear()
    upstream.answer = echo
    bodies = {name: [len(planted) for _, planted in requests(ROUTES[name], 0)] for name in ROUTES}
    work = [(name, number) for name, own in bodies.items() for number in range(len(own))]
    if clients < 50:  # the largest of each
        work = [(name, bodies[name].index(max(bodies[name]))) for name in SOME]
    tasks = [
        (number % clients, *work[number % len(work)]) for number in range(max(clients, len(work)))
    ]

    def ask(task: tuple[int, str, int]) -> tuple[int, str, set[str], Any]:
        client, name, number = task
        body, planted = list(requests(ROUTES[name], client))[number]
        headers = {"Authorization": f"Bearer {client}"}
        base = url.removesuffix("/v1") + ROUTES[name].bases[0]
        path = MODEL.sub("m", ROUTES[name].path)
        came = http.post(f"{base}{path}", json=body, headers=headers)
        assert came.status_code == 200, (name, number, came.text[:300])
        return client, name, planted, came.json()

    with (
        serving(Gateway(privatizer=hiding, upstream=upstream.url)) as url,
        httpx2.Client(
            trust_env=False, timeout=600, limits=httpx2.Limits(max_connections=clients)
        ) as http,
        ThreadPoolExecutor(clients) as pool,
    ):
        done = list(pool.map(ask, tasks))
    assert len(upstream.asked) == len(tasks)
    assert CANARY not in upstream.seen.lower()
    for client, name, planted, made in done:
        named = made.pop("all_of_them")
        assert len(named) == len(planted), name
        if ROUTES[name].answer.any_value is None:  # else an answer has no texts
            assert set(named) == planted
        assert "EMAIL_" not in json.dumps(made)
        mine = set(re.findall(rf"c(\d+)x\d+@{CANARY}", json.dumps(made)))
        assert mine <= {str(client)}
    assert sum(len(planted) for _, _, planted, _ in done) > (500 if clients < 50 else 5_000)
    assert {name for _, name, _, made in done if CANARY in json.dumps(made)} >= {
        "openai.chat",
        "openai.responses",
    }
