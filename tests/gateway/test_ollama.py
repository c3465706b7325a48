"""Ollama's own API through the gateway, with its SDK: only the host is another."""

import json
import random
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from tests.gateway.servers import Asked, run_example, serving, serving_upstream
from tests.gateway.specimens import specimens
from tests.gateway.test_field_rules import unclassified, without
from tests.gateway.test_gateway import environment as environment

from textveil import Privatizer, Session
from textveil.gateway import Gateway, GatewayKeys, Policy
from textveil.gateway.policy.policy import PolicyRule
from textveil.gateway.protocols import Event
from textveil.gateway.protocols import ollama as protocol
from textveil.gateway.protocols.field_rules import Act, text
from textveil.gateway.protocols.restoring import AnswerRestorer

ollama = pytest.importorskip("ollama")

MAIL, OTHER, THIRD = "zoë.quillimar@example.org", "b.jarndyce@example.net", "c@third.example"
CARD = "4111 1111 1111 1111"
ENDS = {"done": True, "done_reason": "stop", "total_duration": 5043500667, "eval_count": 290}
TOOL = {
    "type": "function",
    "function": {
        "name": "send_mail",
        "description": f"Sends a mail; ask {OTHER} if it fails.",
        "parameters": {"type": "object", "properties": {"to": {"type": "string"}}},
    },
}


# ---- a server that speaks as Ollama does ---------------------------------------------------------------------------


def lines(*said: Any) -> tuple[int, dict[str, str], list[bytes]]:
    """A stream."""
    made = [
        json.dumps({"model": "m", "created_at": "2026-11-23T00:00:00.5Z", **each}) for each in said
    ]
    return 200, {"Content-Type": "application/x-ndjson"}, [f"{each}\n".encode() for each in made]


def chat(content: str = "", **more: Any) -> Any:
    """Answers with a message, whole or in pieces of one character."""

    def answer(asked: Asked) -> Any:
        said = {"role": "assistant", "content": content, **more}
        if asked.body.get("stream", True) is False:
            return {"model": "m", "created_at": "2026-11-23T00:00:00.5Z", "message": said, **ENDS}
        thinking = [
            {"role": "assistant", "content": "", "thinking": each}
            for each in more.get("thinking", "")
        ]
        texts = [{"role": "assistant", "content": each} for each in content]
        calls = {"role": "assistant", "content": "", "tool_calls": more.get("tool_calls")}
        messages = [*thinking, *texts, *([calls] if calls["tool_calls"] else [])]
        last = {"message": {"role": "assistant", "content": ""}, **ENDS}
        return lines(*({"message": each, "done": False} for each in messages), last)

    return answer


def call(**arguments: Any) -> dict[str, Any]:
    return {"function": {"name": "send_mail", "arguments": arguments}}


@pytest.fixture(scope="module")
def hiding():
    return Privatizer.from_profile("prompt", protect={"detectors": ["patterns", "structure"]})


@pytest.fixture(scope="module")
def upstream():
    with serving_upstream() as made:
        yield made


@pytest.fixture(scope="module")
def served(hiding, upstream):
    with serving(Gateway(privatizer=hiding, upstream=upstream.url.removesuffix("/v1")), "") as url:
        yield url


@pytest.fixture
def client(served, upstream, monkeypatch):
    monkeypatch.delenv("OLLAMA_API_KEY", raising=False)
    upstream.asked.clear()
    with ollama.Client(host=served, trust_env=False) as made:
        yield made


@pytest.fixture
def http():
    with httpx2.Client(trust_env=False, timeout=60) as made:
        yield made


def user(content: str) -> dict[str, Any]:
    return {"role": "user", "content": content}


def whole(answer: Any) -> dict[str, Any]:
    """The message of an answer, put together as clients do."""
    parts = [answer] if isinstance(answer, ollama.ChatResponse) else list(answer)
    assert [each.done for each in parts] == [False] * (len(parts) - 1) + [True]
    message: dict[str, Any] = {"role": "assistant"}
    for each in parts:
        for name, value in each.message.model_dump(exclude_none=True).items():
            if name != "role":
                message[name] = message[name] + value if name in message else value
    return message


STREAM = pytest.mark.parametrize("stream", [False, True])


# ---- conversations -------------------------------------------------------------------------------------------------


@STREAM
def test_two_turns(client, upstream, stream):
    upstream.answer = chat("# To: <EMAIL_1>\n\n**done** <", thinking="that is <EMAIL_1>")
    messages: list[Any] = [{"role": "system", "content": "be short"}, user(f"write to {MAIL}")]
    message = whole(client.chat("m", messages, think=True, stream=stream))
    assert message == {
        "role": "assistant",
        "content": f"# To: {MAIL}\n\n**done** <",
        "thinking": f"that is {MAIL}",
    }
    messages += [message, user(f"and to {OTHER}, and {MAIL} again")]
    client.chat("m", messages)
    del message["thinking"]  # as many clients do
    client.chat("m", messages)
    first, second, third = (each["messages"] for each in upstream.bodies)
    assert second == [
        *first,
        {
            "role": "assistant",
            "content": "# To: <EMAIL_1>\n\n**done** <",
            "thinking": "that is <EMAIL_1>",
        },
        user("and to <EMAIL_2>, and <EMAIL_1> again"),
    ]
    del second[2]["thinking"]
    assert third == second
    assert [each.path for each in upstream.asked] == ["/api/chat"] * 3


@STREAM
def test_a_round_trip_of_a_tool(client, upstream, stream):
    said = {"to": "<EMAIL_1>", "cards": ["<CARD_1>"], "<EMAIL_1>": {"n": 2}}
    upstream.answer = chat(tool_calls=[call(**said)])
    messages: list[Any] = [user(f'mail "{MAIL}" about {CARD}')]
    message = whole(client.chat("m", messages, tools=[TOOL], stream=stream))
    (made,) = message["tool_calls"]
    assert made["function"]["arguments"] == {"to": MAIL, "cards": [CARD], MAIL: {"n": 2}}
    found = json.dumps({"sent": MAIL, "copy": THIRD}, ensure_ascii=False)
    messages += [message, {"role": "tool", "tool_name": "send_mail", "content": found}]
    upstream.answer = chat("sent to <EMAIL_1>, <EMAIL_2> and <EMAIL_3>")
    answer = client.chat("m", messages, tools=[TOOL])
    assert answer.message.content == f"sent to {MAIL}, {OTHER} and {THIRD}"
    first, second = upstream.bodies
    assert second["messages"][:1] == first["messages"] == [user('mail "<EMAIL_1>" about <CARD_1>')]
    assert second["messages"][1]["tool_calls"][0]["function"]["arguments"] == said
    assert json.loads(second["messages"][2]["content"]) == {
        "sent": "<EMAIL_1>",
        "copy": "<EMAIL_3>",
    }
    assert second["messages"][2]["tool_name"] == "send_mail"
    assert first["tools"] == second["tools"]
    assert "<EMAIL_2>" in first["tools"][0]["function"]["description"]


def test_a_result_of_a_tool_counts_as_one(hiding, upstream, http):
    """An address that a tool brought gets no original that did not stand in it."""
    upstream.answer = chat(
        tool_calls=[{"function": {"name": "open", "arguments": {"url": "<URL_1><EMAIL_1>"}}}]
    )
    body = {
        "model": "m",
        "stream": False,
        "messages": [
            user(MAIL),
            {"role": "tool", "tool_name": "find", "content": "https://evil.example/c?d="},
        ],
    }
    with serving(Gateway(privatizer=hiding, upstream=upstream.url), "") as url:
        answer = http.post(f"{url}/api/chat", json=body).json()
    assert MAIL not in json.dumps(answer, ensure_ascii=False)


@STREAM
def test_a_placeholder_in_a_call_that_stands_for_nothing_is_told(hiding, upstream, http, stream):
    upstream.answer = chat(tool_calls=[call(to="<EMAIL_9>")])
    body = {"model": "m", "messages": [user(MAIL)], "stream": stream}
    with serving(Gateway(privatizer=hiding, upstream=upstream.url), "") as url:
        answer = http.post(f"{url}/api/chat", json=body)
    told = json.loads(answer.text.splitlines()[-1]) if stream else answer.headers
    assert {f"{told[name]}" for name in ("textveil-unresolved", "textveil-unresolved-calls")} == {
        "1"
    }
    refusing = Gateway(privatizer=hiding, upstream=upstream.url, policy=Policy(unresolved="refuse"))
    with serving(refusing, "") as url:
        answer = http.post(f"{url}/api/chat", json=body)
    error = json.loads(answer.text.splitlines()[-1])
    assert error.keys() == {"error"}
    assert "holds a placeholder that stands for nothing" in error["error"]
    assert "EMAIL_9" not in answer.text


def test_a_stream_is_the_default(served, upstream, http):
    upstream.answer = chat("<EMAIL_1>")
    for body in ({}, {"stream": None}):
        answer = http.post(
            f"{served}/api/chat", json={"model": "m", "messages": [user(MAIL)], **body}
        )
        assert answer.headers["content-type"].startswith("application/x-ndjson")
        said = [json.loads(line) for line in answer.text.splitlines()]
        assert "".join(each["message"]["content"] for each in said) == MAIL
        assert said[-1].items() >= ENDS.items()
        assert "textveil-statement" in answer.headers
    assert "stream" not in upstream.bodies[-1]


def test_any_character_ends_no_line(served, upstream, client):
    """Clients take more characters than a line feed for the end of a line."""
    said = "a\x85b\u2028c\u2029d\x0be\x1cf"
    line = json.dumps(
        {"message": {"role": "assistant", "content": said}, "done": False}, ensure_ascii=False
    )
    last = json.dumps({"message": {"role": "assistant", "content": ""}, **ENDS})
    kind = {"Content-Type": "application/x-ndjson"}
    upstream.answer = lambda _: (200, kind, [f"{line}\n{last}".encode()])  # without an end
    assert whole(client.chat("m", [user("x")], stream=True))["content"] == said


def test_a_model_that_is_only_loaded(client, upstream):
    """Ollama answers with one line of JSON, even where a stream is asked for."""
    upstream.answer = lambda _: {"model": "m", "response": "", "done": True, "done_reason": "load"}
    (part,) = client.generate("m", stream=True)
    assert part.done_reason == "load"
    assert upstream.bodies[-1]["model"] == "m"


def test_what_a_line_has_at_the_end_comes_before_its_end():
    session = Session()
    with session.noting() as notes:
        notes.assign_placeholder("EMAIL", MAIL)
    stream = protocol.AnswerLines(protocol.RULES["answer_generate"], AnswerRestorer(session))
    made = [*stream.feed(Event("", {"response": "<EMA", "thinking": "<", "done": False}))]
    made += stream.feed(Event("", {"response": "IL_1> <", "done": True, "context": [1, 2]}))
    assert [each.data.get("response") for each in made] == ["", "", f"{MAIL} <", ""]
    assert [each.data["done"] for each in made] == [False, False, False, True]
    assert made[1].data["thinking"] == "<"
    assert made[-1].data == {"response": "", "done": True}
    assert stream.is_complete
    assert [*stream.close()] == []


def test_a_stream_that_holds_nothing_back_is_noticed(client, upstream, monkeypatch):
    upstream.answer = chat("<EMAIL_1>")
    monkeypatch.setattr(
        protocol.AnswerLines,
        "_restore_piece",
        lambda self, path, piece, act: self._restorer.restore_text(piece, act),
    )
    parts = client.chat("m", [user(MAIL)], stream=True)
    assert "".join(each.message.content for each in parts) == "<EMAIL_1>"


# ---- completions, vectors, models ----------------------------------------------------------------------------------


@STREAM
def test_a_completion(client, upstream, stream):
    def answer(asked):
        if not asked.body["stream"]:
            return {"model": "m", "response": "<EMAIL_2> <", "context": [1, 2], **ENDS}
        pieces = [{"response": each, "done": False} for each in "<EMAIL_2> <"]
        return lines(*pieces, {"response": "", "context": [1, 2], **ENDS})

    upstream.answer = answer
    made = client.generate(
        "m",
        f"write to {MAIL}",
        system=f"{OTHER} asks",
        suffix=MAIL,
        template="{{ .Prompt }}",
        options={"temperature": 0.5, "stop": [OTHER]},
        keep_alive="5m",
        stream=stream,
    )
    parts = list(made) if stream else [made]
    assert "".join(each.response for each in parts) == f"{MAIL} <"
    assert parts[-1].eval_count == 290
    assert all(each.context is None for each in parts)
    (sent,) = upstream.bodies
    assert sent == {
        "model": "m",
        "stream": stream,
        "prompt": "write to <EMAIL_2>",
        "system": "<EMAIL_1> asks",
        "suffix": "<EMAIL_2>",
        "template": "{{ .Prompt }}",
        "options": {"temperature": 0.5, "stop": ["<EMAIL_1>"]},
        "keep_alive": "5m",
    }


def test_a_completion_as_json_is_json(client, upstream):
    upstream.answer = lambda _: {"response": '{"to": "<SECRET_1>"}', **ENDS}
    secret = 'password: a"b\\c9!Xy'
    made = client.generate("m", secret, format="json")
    (sent,) = upstream.bodies
    assert sent["format"] == "json"
    assert 'a"b' not in sent["prompt"]
    assert json.loads(made.response)["to"] in secret


def test_token_ids_are_media(client, upstream, hiding):
    """They may hold what was never released."""
    with pytest.raises(
        ollama.ResponseError, match="textveil: context cannot be protected"
    ) as error:
        client.generate("m", "x", context=[1, 2])
    assert error.value.status_code == 400
    with pytest.raises(ollama.ResponseError, match=r"messages\[0\].images cannot be protected"):
        client.chat("m", [{**user("x"), "images": [b"png"]}])
    with pytest.raises(ollama.ResponseError, match="logprobs cannot be protected"):
        client.chat("m", [user("x")], logprobs=True)
    assert upstream.asked == []
    upstream.answer = lambda _: {"response": "x", **ENDS}
    passing = Gateway(privatizer=hiding, upstream=upstream.url, policy=Policy(media="pass"))
    with serving(passing, "") as url, ollama.Client(host=url, trust_env=False) as other:
        other.generate("m", "x", context=[1, 2])
    assert upstream.bodies[-1]["context"] == [1, 2]


def test_vectors(client, upstream):
    upstream.answer = lambda asked: (
        {"embedding": [0.5]} if "prompt" in asked.body else {"embeddings": [[0.5], [1]]}
    )
    assert client.embed("m", [f"is {MAIL}", MAIL], dimensions=2).embeddings == [[0.5], [1.0]]
    assert client.embeddings("m", MAIL).embedding == [0.5]
    assert [each["path"] for each in map(Asked._asdict, upstream.asked)] == [
        "/api/embed",
        "/api/embeddings",
    ]
    first, second = upstream.bodies
    assert first["input"] == ["is <EMAIL_1>", "<EMAIL_1>"]
    assert second["prompt"] == "<EMAIL_1>"


def test_models(client, upstream, http, served):
    listed = {"models": [{"name": "llama3.2:latest", "model": "llama3.2:latest", "size": 2}]}
    shown = {
        "model_info": {"general.architecture": "llama"},
        "details": {"family": "llama"},
        "capabilities": ["tools"],
    }
    upstream.answer = lambda asked: (
        listed
        if asked.path in ("/api/tags", "/api/ps")
        else shown
        if asked.raw
        else {"version": "0.12.6"}
    )
    assert client.list().models[0].model == client.ps().models[0].model == "llama3.2:latest"
    assert client.show("hf.co/bartowski/Llama-3.2-3B:Q4_K_M").capabilities == ["tools"]
    assert http.get(f"{served}/api/version").json() == {"version": "0.12.6"}
    said = [(each.method, each.path, each.body) for each in upstream.asked]
    assert said == [
        ("GET", "/api/tags", None),
        ("GET", "/api/ps", None),
        ("POST", "/api/show", {"model": "hf.co/bartowski/Llama-3.2-3B:Q4_K_M"}),
        ("GET", "/api/version", None),
    ]


# ---- errors --------------------------------------------------------------------------------------------------------


def test_routes_that_manage_models_are_refused(client, upstream, http, served):
    for ask in (
        lambda: client.pull("m"),
        lambda: next(client.push("m", stream=True)),
        lambda: client.create("m", from_="n"),
        lambda: client.copy("m", "n"),
        lambda: client.delete("m"),
    ):
        with pytest.raises(ollama.ResponseError, match="ask Ollama directly") as error:
            ask()
        assert error.value.status_code == 404
    assert http.head(f"{served}/api/blobs/sha256:1").status_code == 404
    for method, path, status in (
        ("POST", "/api/new", 404),
        ("GET", "/api/chat", 405),
        ("POST", "/v1/systemone", 404),
    ):
        answer = http.request(method, f"{served}{path}")
        assert answer.status_code == status
        assert "POST /api/chat" in answer.json()["error"]
    assert http.post(f"{served}/v1/api/chat", json={}).status_code == 404
    assert upstream.asked == []


def test_an_error_of_the_upstream_is_kept(client, upstream):
    upstream.answer = lambda _: (404, {"error": "model 'm' not found, <EMAIL_1>"})
    for stream in (False, True):
        with pytest.raises(ollama.ResponseError) as error:
            list(client.chat("m", [user(MAIL)], stream=stream))
        assert (error.value.status_code, error.value.error) == (404, f"model 'm' not found, {MAIL}")


def test_an_error_in_a_stream_is_kept(client, upstream):
    upstream.answer = lambda _: lines(
        {"message": {"role": "assistant", "content": "x <EMAIL_"}, "done": False},
        {"error": "out of memory with <EMAIL_1>"},
    )
    said = []
    with pytest.raises(ollama.ResponseError, match=f"out of memory with {MAIL}"):
        said += client.chat("m", [user(MAIL)], stream=True)
    upstream.answer = lambda _: lines(
        {"message": {"role": "assistant", "content": "x <EMAIL_"}, "done": False}
    )
    with pytest.raises(ollama.ResponseError, match="textveil: the answer broke off"):
        list(client.chat("m", [user(MAIL)], stream=True))
    upstream.answer = lambda _: [b"data: {}\n\n"]
    with pytest.raises(ollama.ResponseError, match="did not answer with a stream"):
        list(client.chat("m", [user(MAIL)], stream=True))


def test_a_request_without_a_model(served, http, upstream):
    answer = http.post(f"{served}/api/chat", json={"messages": [user(MAIL)]})
    assert (answer.status_code, answer.json()) == (400, {"error": "textveil: model is missing"})


def test_the_lines_of_the_page_work_as_pasted(served, upstream):
    upstream.asked.clear()
    upstream.answer = chat("Hello <EMAIL_1>")
    assert run_example("## Ollama", {"OLLAMA_HOST": served}) == "Hello anna@example.org\n"
    assert upstream.bodies[-1]["messages"] == [user("Write to <EMAIL_1>")]


# ---- policies and keys ---------------------------------------------------------------------------------------------


def test_keys_and_rules(hiding, upstream, tmp_path):
    path = str(tmp_path / "gateway.keys")
    key = GatewayKeys(path, new=True).create("anna")
    rules = (
        PolicyRule(models=("open*",), media="pass"),
        PolicyRule(routes=("api/generate",), unknown="refuse"),
    )
    upstream.asked.clear()
    upstream.answer = lambda _: {
        "message": {"role": "assistant", "content": "<EMAIL_1>"},
        "response": "x",
        **ENDS,
    }
    made = Gateway(privatizer=hiding, upstream=upstream.url, policy=Policy(keys=path, rules=rules))
    with serving(made, "") as url:
        with (
            pytest.raises(ollama.ResponseError, match="needs a key"),
            ollama.Client(host=url, trust_env=False) as client,
        ):
            client.chat("m", [user(MAIL)])
        headers = {"Authorization": f"Bearer {key}"}
        with ollama.Client(host=url, headers=headers, trust_env=False) as client:
            assert client.chat("m", [user(MAIL)]).message.content == MAIL
            client.chat("open-1", [{**user("x"), "images": [b"png"]}])
            with pytest.raises(ollama.ResponseError, match="images cannot be protected"):
                client.chat("m", [{**user("x"), "images": [b"png"]}])
        with httpx2.Client(trust_env=False, headers=headers, timeout=60) as http:
            for route, status in (("chat", 200), ("generate", 400)):
                body = {
                    "model": "m",
                    "stream": False,
                    "prompt": "x",
                    "messages": [user("x")],
                    "mood": "x",
                }
                del body["messages" if route == "generate" else "prompt"]
                assert http.post(f"{url}/api/{route}", json=body).status_code == status
    assert all("authorization" not in each.headers for each in upstream.asked)


def test_a_key_of_the_client_is_sent_on(served, upstream):
    upstream.answer = chat("x")
    with ollama.Client(
        host=served, headers={"Authorization": "Bearer sk-1"}, trust_env=False
    ) as client:
        client.chat("m", [user("x")])
    assert upstream.asked[-1].headers["authorization"] == "Bearer sk-1"


@pytest.mark.parametrize("base", ["", "/v1", "/"])
def test_one_upstream_serves_both_apis(hiding, upstream, base):
    upstream.answer = chat("x")
    made = Gateway(privatizer=hiding, upstream=upstream.url.removesuffix("/v1") + base)
    with serving(made, "") as url, ollama.Client(host=url, trust_env=False) as client:
        client.chat("m", [user("x")])
    assert upstream.asked[-1].path == "/api/chat"


def test_a_dry_run(served, upstream, http):
    upstream.asked.clear()
    body = {
        "model": "m",
        "messages": [user(MAIL)],
        "mood": f"of {OTHER}",
        "options": {"new": [OTHER]},
    }
    answer = http.post(f"{served}/api/chat", json=body, headers={"textveil-dry-run": "1"})
    assert answer.json() == {
        "model": "m",
        "messages": [user("<EMAIL_1>")],
        "mood": "of <EMAIL_2>",
        "options": {"new": ["<EMAIL_2>"]},
    }
    assert answer.headers["textveil-unknown"] == "options.new=1, mood=1"
    assert upstream.asked == []


# ---- every leaf ----------------------------------------------------------------------------------------------------

POSTED = [each for each in protocol.ROUTES if each.has_body]


def plant(operation: Any, upstream: Any, client: Any) -> str:
    """What reaches the upstream of requests that have an address in every leaf."""
    upstream.asked.clear()
    upstream.answer = lambda _: {"message": {"role": "assistant"}, **ENDS}
    kept = (Act.MEDIA, Act.REFUSE, Act.PASS)
    bodies = specimens(operation.request, lambda act: None if act in kept else MAIL)
    assert bodies
    for body in bodies:
        for name in ("logprobs", "top_logprobs"):
            body.pop(name, None)
        client._request_raw("POST", operation.path, json={**body, "stream": False})
    return str(upstream.seen)


@pytest.mark.parametrize("operation", POSTED, ids=lambda each: each.name)
def test_no_canary_leaves(client, upstream, operation):
    seen = plant(operation, upstream, client)
    assert MAIL not in seen
    assert seen.count("<EMAIL_1>") >= (0 if operation is protocol.SHOW else 1)


def test_a_leaf_that_passes_is_noticed(hiding, upstream, monkeypatch):
    message = protocol.RULES["message"]
    assert message.fields is not None
    leaking = replace(message, fields={**message.fields, "content": text(Act.PASS)})
    request = protocol.CHAT.request
    assert request.fields is not None
    broken = replace(
        request,
        fields={**request.fields, "messages": replace(request.fields["messages"], items=leaking)},
    )
    chats = replace(protocol.CHAT, request=broken)
    monkeypatch.setattr("textveil.gateway.app.load_operations", lambda: (chats,))
    with (
        serving(Gateway(privatizer=hiding, upstream=upstream.url), "") as url,
        ollama.Client(host=url, trust_env=False) as client,
    ):
        assert MAIL in plant(protocol.CHAT, upstream, client)


FREE = ["options{*} :any", "options{key}"]
"""Where the SDK allows any name beside its own: such fields are unknown, and read."""


@pytest.mark.parametrize(
    ("kind", "rule", "free"),
    [
        ("ChatRequest", "chat", ["messages[]{*} :any", "messages[]{key}", *FREE]),
        ("GenerateRequest", "generate", FREE),
        ("EmbedRequest", "embed", FREE),
        ("EmbeddingsRequest", "embeddings", FREE),
        ("ShowRequest", "show", []),
        ("ChatResponse", "answer_chat", []),
        ("GenerateResponse", "answer_generate", []),
    ],
)
def test_every_leaf_of_the_sdk_has_an_act(kind, rule, free):
    types, table = getattr(ollama._types, kind), protocol.RULES[rule]
    assert unclassified(types, table) == free
    if "Chat" in kind:
        name = "messages" if kind == "ChatRequest" else "message"
        assert len(unclassified(types, without(table, (name,)))) > len(free)


def test_random_pieces_of_both_texts_come_back(client, upstream):
    rng = random.Random(7)
    content, thinking = f"<EMAIL_1>, {'x' * 9} <EMAIL_2> <", "<EMAIL_2>"
    for _ in range(5):
        parts = []
        for name, said in (("thinking", thinking), ("content", content)):
            while said:
                cut = rng.randint(1, len(said))
                parts.append({"role": "assistant", "content": "", name: said[:cut]})
                said = said[cut:]
        last = {"message": parts.pop(), **ENDS}  # it may have a text, too
        upstream.answer = lambda _, parts=parts, last=last: lines(
            *({"message": each, "done": False} for each in parts), last
        )
        message = whole(client.chat("m", [user(f"{MAIL} {OTHER}")], stream=True))
        assert message["content"] == f"{MAIL}, {'x' * 9} {OTHER} <"
        assert message["thinking"] == OTHER
