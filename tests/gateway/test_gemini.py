"""Gemini through the gateway, with the SDK of Google: only the base URL is another."""

import copy
import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.gateway.servers import serving, serving_upstream
from tests.gateway.specimens import specimens
from tests.gateway.test_field_rules import unclassified, without
from tests.gateway.test_gateway import environment  # noqa: F401

from textveil import Privatizer, Session
from textveil.gateway import Gateway
from textveil.gateway.policy.client_keys import GatewayKeys
from textveil.gateway.policy.policy import Policy, PolicyRule
from textveil.gateway.protocols import gemini as protocol
from textveil.gateway.protocols.field_rules import Act, LeafRule, Path, find_leaves, replace_leaves
from textveil.gateway.protocols.operation import Event
from textveil.gateway.protocols.restoring import AnswerRestorer

genai = pytest.importorskip("google.genai")

from google.genai import errors, types  # noqa: E402

CANARY = "Blorvequine"
ASKED = f"{CANARY} met Quillimar"
MODEL = "gemini-3-flash"
KEY = "AIzaOfTheClient0123456789"
SIGNATURE = "c2lnbmVkIGJ5IHRoZSBtb2RlbA=="
TOOL = {
    "name": "find_person",
    "description": "Finds people. Ask ops@example.org for access.",
    "parameters": {"type": "OBJECT", "properties": {"name": {"type": "STRING"}}},
}
PATH = f'C:\\{CANARY}\\"new"'
"""What has to be escaped in JSON."""
USAGE = {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}


# ---- a server that speaks as Google's does ---------------------------------------------------------------------------


def part(text, **more):
    return {"text": text, **more}


def call(**given):
    return {
        "functionCall": {"name": "find_person", "args": given},
        "thoughtSignature": SIGNATURE,
    }


def answer_of(*parts, **more):
    content = {"role": "model", "parts": list(parts)}
    candidate = {"content": content, "finishReason": "STOP", "index": 0, **more}
    return {
        "candidates": [candidate],
        "usageMetadata": USAGE,
        "modelVersion": MODEL,
        "responseId": "r1",
    }


def chunks(whole, cut):
    """The chunks of an answer, its texts cut into pieces; the reason comes with the last of them."""
    (candidate,) = whole["candidates"]
    pieces = []
    for each in candidate["content"]["parts"]:
        if each.get("text"):
            *texts, last = cut(each["text"])
            said = {name: value for name, value in each.items() if name == "thought"}
            pieces += [*({**said, "text": text} for text in texts), {**each, "text": last}]
        else:
            pieces.append(each)
    for i, each in enumerate(pieces):
        content = {"content": {"role": "model", "parts": [each]}, "index": 0}
        yield {**whole, "candidates": [candidate | content if i + 1 == len(pieces) else content]}


def sse(chunk):
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\r\n\r\n".encode()


def text_of(content):
    return "".join(each.get("text", "") for each in content["parts"])


def google(*answers, cut=list):
    """Answers one after the other, whole or streamed as the address says; then what it was asked."""
    following = iter(answers)

    def answer(asked):
        path = asked.path.partition("?")[0]
        if path.endswith(":countTokens"):
            return {"totalTokens": len(json.dumps(asked.body)), "promptTokensDetails": []}
        if path.endswith(":batchEmbedContents"):
            return {"embeddings": [{"values": [0.5]} for _ in asked.body["requests"]]}
        if path.endswith(":embedContent"):
            return {"embedding": {"values": [0.5]}}
        if path.endswith("/models"):
            return {"models": [{"name": f"models/{MODEL}"}]}
        if "/models/" in path and asked.method == "GET":
            return {"name": f"models/{MODEL}", "inputTokenLimit": 9}
        whole = next(following, None) or answer_of(part(text_of(asked.body["contents"][-1])))
        if ":stream" in path:
            return (sse(each) for each in chunks(whole, cut))
        return whole

    return answer


def refusal(code, status, message):
    return code, {"error": {"code": code, "message": message, "status": status}}


@pytest.fixture(scope="module")
def privatizer(small_table):
    return Privatizer("placeholder", table=small_table)


@pytest.fixture(scope="module")
def running(privatizer):
    with (
        serving_upstream(google()) as server,
        serving(gateway_to(server, privatizer, timeout=5), path="") as url,
    ):
        yield server, url


def gateway_to(server, privatizer, **policy):
    return Gateway(
        privatizer=privatizer,
        upstream=server.url.replace("/v1", "/v1beta"),
        policy=Policy(**policy),
    )


@pytest.fixture
def upstream(running):
    running[0].asked.clear()
    running[0].answer = google()
    return running[0]


@pytest.fixture
def client(running):
    return client_of(running[1])


def client_of(url, key=KEY):
    options = types.HttpOptions(base_url=url, client_args={"trust_env": False})
    return genai.Client(api_key=key, http_options=options)


@pytest.fixture
def http(running):
    with httpx2.Client(base_url=running[1], trust_env=False) as made:
        yield made


@pytest.fixture(params=["whole", "streamed"])
def ask(request, client):
    """Asks for content, whole or as a stream; what comes is put together."""

    def asked(contents, **config):
        given: Any = {"model": MODEL, "contents": contents, "config": config or None}
        if request.param == "whole":
            return client.models.generate_content(**given).candidates[0].content.parts
        came = client.models.generate_content_stream(**given)
        return [
            each
            for chunk in came
            for candidate in chunk.candidates or ()
            for each in (candidate.content.parts if candidate.content else None) or ()
        ]

    return asked


def user(*parts):
    return {
        "role": "user",
        "parts": [part(each) if isinstance(each, str) else each for each in parts],
    }


def said(parts):
    return "".join(each.text or "" for each in parts)


def last(upstream):
    return upstream.asked[-1].body


# ---- conversations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
def test_a_chat_of_the_sdk_has_one_prefix(upstream, client, streamed):
    """The SDK sends the chunks of a stream back as a message each."""
    chat = client.chats.create(
        model=MODEL, config={"system_instruction": f"You help {CANARY}.", "temperature": 0.5}
    )

    def send(text):
        if not streamed:
            return chat.send_message(text).text
        return "".join(chunk.text or "" for chunk in chat.send_message_stream(text))

    for i, text in enumerate([ASKED, f"{CANARY} again", "and Quillimar?"]):
        assert send(text) == text
        assert len(last(upstream)["contents"]) == 2 * i + 1
    bodies = upstream.bodies
    assert all(each["systemInstruction"] == bodies[0]["systemInstruction"] for each in bodies)
    for before, after in itertools.pairwise(bodies):
        size = len(before["contents"])
        assert after["contents"][:size] == before["contents"]
        # What the model said goes back in the bytes in which it came.
        assert text_of(after["contents"][size]) == text_of(before["contents"][-1])
        assert len(after["contents"][size]["parts"]) == 1
    assert not any(upstream.shows(secret) for secret in (CANARY, "Quillimar"))


def test_two_turns_are_released_once(upstream, http):
    body = {"contents": [user(ASKED)], "tools": [{"functionDeclarations": [TOOL]}]}
    first = post(http, "generateContent", body)
    body["contents"] += [first.json()["candidates"][0]["content"], user("And Quillimar?")]
    second = post(http, "generateContent", body)
    statements = [json.loads(each.headers["textveil-statement"]) for each in (first, second)]
    assert [each["new"] for each in statements][1] == 1
    sent = upstream.bodies
    assert sent[0]["tools"] == sent[1]["tools"]
    assert sent[0]["contents"] == sent[1]["contents"][:1]


def post(http, route, body, **more):
    return http.post(f"/v1beta/models/{MODEL}:{route}", json=body, **more)


def test_tools_there_and_back(upstream, ask):
    upstream.answer = google(
        answer_of(part("I look for <WORD_1>."), call(name="<WORD_1>", also=["<WORD_3>", 7, None]))
    )
    config: Any = {
        "tools": [{"function_declarations": [TOOL]}],
        "automatic_function_calling": {"disable": True},
    }
    turns: list[Any] = [user(ASKED)]
    parts = ask(turns, **config)
    assert said(parts) == f"I look for {CANARY}."
    assert parts[-1].function_call.args == {"name": CANARY, "also": ["Quillimar", 7, None]}
    declared = last(upstream)["tools"][0]["functionDeclarations"][0]
    assert declared["name"] == "find_person"
    assert declared["description"] == "Finds people. Ask <EMAIL_1> for access."
    assert declared["parameters"] == TOOL["parameters"]
    found = {"name": "find_person", "response": {"result": f"Nobody is called {CANARY} Jarndyce"}}
    turns += [types.Content(role="model", parts=parts), user({"functionResponse": found})]
    ask(turns, **config)
    _, came, result = last(upstream)["contents"]
    assert came["parts"][0] == {"text": "I look for <WORD_1>."}
    assert came["parts"][1]["functionCall"]["args"] == {
        "name": "<WORD_1>",
        "also": ["<WORD_3>", 7, None],
    }
    assert came["parts"][1]["thoughtSignature"] == SIGNATURE
    assert "<WORD_1>" in result["parts"][0]["functionResponse"]["response"]["result"]
    assert not any(map(upstream.shows, (CANARY, "Quillimar", "Jarndyce", "ops@example.org")))


def test_thoughts_go_back_with_their_signature_or_not_at_all(upstream, ask):
    upstream.answer = google(
        answer_of(
            part("<WORD_1> is asked about.", thought=True),
            part("About <WORD_1>", thoughtSignature=SIGNATURE),
        )
    )
    turns: list[Any] = [user(ASKED)]
    parts = ask(turns, thinking_config={"include_thoughts": True})
    thoughts = [each for each in parts if each.thought]
    assert said(thoughts) == f"{CANARY} is asked about."
    assert said(each for each in parts if not each.thought) == f"About {CANARY}"
    for kept in (parts, [each for each in parts if not each.thought]):
        ask([*turns, types.Content(role="model", parts=kept), user("Go on")])
        came = last(upstream)["contents"][1]["parts"]
        assert "".join(each["text"] for each in came if not each.get("thought")) == "About <WORD_1>"
        assert came[-1]["thoughtSignature"] == SIGNATURE
        assert not upstream.shows(CANARY)


def test_results_of_tools_are_not_of_the_user():
    """So an address that one brings is not put together with what the user wrote."""
    from textveil.gateway.request.parsed_request import ParsedRequest

    contents = [
        user("hello"),
        {"role": "model", "parts": [{"text": "x"}, {"codeExecutionResult": {"output": "out"}}]},
        user({"functionResponse": {"name": "f", "response": {"a": "b"}}}, "and"),
        {"role": "function", "parts": [{"text": "x"}]},
    ]
    body = {"model": MODEL, "systemInstruction": {"parts": [{"text": "s"}]}, "contents": contents}
    request = ParsedRequest(protocol.GENERATE, body, Policy(), str)
    sources = [[each.get_source(i) for i in range(len(each.texts))] for each in request.messages]
    assert sources == [["user"], ["user"], ["answer", "tool"], ["tool", "user"], ["tool"]]


def test_a_name_that_was_cut_between_two_messages_of_the_model_is_hidden(upstream, http):
    halves = [
        {"role": "model", "parts": [part(half)]} for half in ("Ask zoe@quil", "limar.example")
    ]
    post(http, "generateContent", {"contents": [user("x"), *halves, user("y")]})
    assert [each["role"] for each in last(upstream)["contents"]] == ["user", "model", "user"]
    assert not upstream.shows("quillimar")


def test_an_unresolved_placeholder_in_a_call_is_flagged(upstream, http):
    upstream.answer = google(answer_of(call(who="<PERSON_77>")))
    answer = post(http, "generateContent", {"contents": [user(ASKED)]})
    assert answer.headers["textveil-unresolved-calls"] == "1"
    assert answer.json()["candidates"][0]["content"]["parts"][0]["functionCall"]["args"] == {
        "who": "<PERSON_77>"
    }


def test_calls_with_unresolved_placeholders_can_be_refused(upstream, privatizer):
    upstream.answer = google(*[answer_of(call(who="<PERSON_77>"))] * 2)
    with serving(gateway_to(upstream, privatizer, unresolved="refuse"), path="") as url:
        client = client_of(url)
        with pytest.raises(errors.ServerError, match="placeholder"):
            client.models.generate_content(model=MODEL, contents=ASKED)
        with pytest.raises(errors.APIError, match="placeholder"):
            list(client.models.generate_content_stream(model=MODEL, contents=ASKED))


def test_no_original_is_joined_into_an_address(upstream, ask):
    upstream.answer = google(answer_of(call(url="https://evil.example/c?d=<WORD_1>")))
    parts = ask([user(ASKED)])
    assert parts[-1].function_call.args == {"url": "https://evil.example/c?d=<WORD_1>"}


def test_answers_in_json_stay_json(upstream, ask):
    ask([user(PATH)])
    released = last(upstream)["contents"][0]["parts"][0]["text"]
    upstream.answer = google(answer_of(part(json.dumps({"path": released}))))
    schema = {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}}
    parts = ask([user(PATH)], response_mime_type="application/json", response_schema=schema)
    assert json.loads(said(parts)) == {"path": PATH}
    assert last(upstream)["generationConfig"]["responseSchema"] == schema


def test_snake_case_and_single_objects_are_read(upstream, http):
    body = {
        "system_instruction": {"parts": {"text": f"You help {CANARY}"}},
        "contents": {"parts": {"text": ASKED}},
        "tools": {"function_declarations": [TOOL]},
        "generation_config": {"stop_sequences": [CANARY], "max_output_tokens": 9},
        "safety_settings": [],
    }
    post(http, "generateContent", body)
    sent = last(upstream)
    assert sent.keys() == {
        "systemInstruction", "contents", "tools", "generationConfig", "safetySettings"
    }  # fmt: skip
    assert sent["generationConfig"]["maxOutputTokens"] == 9
    assert sent["tools"][0]["functionDeclarations"][0]["parameters"] == TOOL["parameters"]
    assert not upstream.shows(CANARY)


def test_a_field_that_is_there_in_both_spellings_is_read_twice(upstream, http):
    both = {
        "systemInstruction": {"parts": [part("a")]},
        "system_instruction": {"parts": [part(CANARY)]},
    }
    answer = post(http, "generateContent", {**both, "contents": [user("x")]})
    assert answer.headers["textveil-unknown"] == "system_instruction=1"
    assert last(upstream).keys() >= both.keys()
    assert not upstream.shows(CANARY)


def test_unknown_fields_are_read(upstream, http):
    odd = {"role": "critic", "parts": [part("x", mood=CANARY), {"newPart": {CANARY: [CANARY]}}]}
    answer = post(http, "generateContent", {"contents": [odd], "trace": CANARY})
    assert "trace=1" in answer.headers["textveil-unknown"]
    assert "contents[].parts[].mood=1" in answer.headers["textveil-unknown"]
    assert not upstream.shows(CANARY)


# ---- the other routes ------------------------------------------------------------------------------------------------


def test_tokens_are_counted_of_what_is_sent(upstream, client, http):
    assert client.models.count_tokens(model=MODEL, contents=ASKED).total_tokens
    inner = {
        "model": f"models/{MODEL}",
        "contents": [user(ASKED)],
        "tools": [{"function_declarations": [TOOL]}],
        "system_instruction": {"parts": [part(CANARY)]},
    }
    counted = post(http, "countTokens", {"generate_content_request": inner})
    assert counted.status_code == 200
    assert last(upstream)["generateContentRequest"]["contents"][0]["parts"] != [part(ASKED)]
    assert not upstream.shows(CANARY)


def test_a_tool_with_a_private_name_is_refused_in_a_count_too(upstream, http):
    tool = {"functionDeclarations": [{**TOOL, "name": "mail_zoe.quillimar@example.org"}]}
    inner = {"contents": [user("x")], "tools": [tool]}
    for route, body in (
        ("generateContent", inner),
        ("countTokens", {"generateContentRequest": {"model": MODEL, **inner}}),
    ):
        refused = post(http, route, body)
        assert refused.status_code == 400
        assert "functionDeclarations[0].name" in refused.json()["error"]["message"]
    assert upstream.asked == []


def test_embeddings_are_those_of_released_texts(upstream, client, http):
    texts = [ASKED, f"Call {CANARY}"]
    made = client.models.embed_content(
        model="gemini-embedding-001",
        contents=texts,
        config={"task_type": "RETRIEVAL_DOCUMENT", "title": f"Of {CANARY}"},
    )
    assert [each.values for each in made.embeddings] == [[0.5], [0.5]]
    assert last(upstream)["requests"][0]["model"] == "models/gemini-embedding-001"
    assert last(upstream)["requests"][0]["taskType"] == "RETRIEVAL_DOCUMENT"
    one = post(http, "embedContent", {"content": user(ASKED), "title": CANARY})
    assert one.json() == {"embedding": {"values": [0.5]}}
    assert not upstream.shows(CANARY)


def test_models_are_listed(upstream, client):
    assert [each.name for each in client.models.list()] == [f"models/{MODEL}"]
    assert upstream.asked[-1].headers["x-goog-api-key"] == KEY  # by whatever path the SDK asks
    assert client.models.get(model=MODEL).input_token_limit == 9
    assert [each.path.partition("?")[0] for each in upstream.asked] == [
        "/v1beta/models",
        f"/v1beta/models/{MODEL}",
    ]


def test_the_address_of_the_environment_is_enough(upstream, running, monkeypatch):
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", running[1])
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    client = genai.Client(api_key=KEY)
    assert client.models.generate_content(model=MODEL, contents=ASKED).text == ASKED


@pytest.mark.parametrize("prefix", ["/v1beta", "/v1", ""])
def test_the_version_of_the_address_is_that_of_the_upstream(upstream, http, prefix):
    http.post(f"{prefix}/models/{MODEL}:generateContent", json={"contents": [user("x")]})
    assert upstream.asked[0].path == f"/v1beta/models/{MODEL}:generateContent"


def test_a_dry_run_asks_nobody(upstream, http):
    shown = post(
        http, "generateContent", {"contents": [user(ASKED)]}, headers={"textveil-dry-run": "1"}
    )
    assert CANARY not in shown.text
    assert shown.json()["contents"][0]["parts"][0]["text"].startswith("<WORD_1>")
    assert upstream.asked == []


# ---- rules, keys and errors ------------------------------------------------------------------------------------------


def test_a_rule_goes_by_the_model_in_the_path(upstream, privatizer):
    rule = PolicyRule(models=("gemini-3-*",), unknown="refuse")
    with (
        serving(gateway_to(upstream, privatizer, rules=(rule,)), path="") as url,
        httpx2.Client(base_url=url, trust_env=False) as http,
    ):
        body = {"contents": [user("x")], "trace": "x", "model": "other"}
        assert post(http, "generateContent", body).status_code == 400
        other = http.post("/v1beta/models/other:generateContent", json=body)
        assert other.status_code == 200


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("countTokens", {"generateContentRequest": {"model": "models/other", "contents": []}}),
        ("batchEmbedContents", {"requests": [{"model": "models/other", "content": {}}]}),
    ],
)
def test_another_model_in_the_body_is_refused(upstream, http, route, body):
    refused = post(http, route, body)
    assert refused.status_code == 400
    assert "must be the model in the path" in refused.json()["error"]["message"]
    assert upstream.asked == []


def test_the_key_is_passed_on_as_a_header(upstream, http):
    post(http, "generateContent", {"contents": [user("x")]}, params={"key": KEY, "alt": "json"})
    post(http, "generateContent", {"contents": [user("x")]}, headers={"x-goog-api-key": KEY})
    http.get("/v1beta/models", params={"key": KEY, "pageSize": "5"})
    assert [each.headers["x-goog-api-key"] for each in upstream.asked] == [KEY] * 3
    assert not any(KEY in each.path for each in upstream.asked)
    assert upstream.asked[-1].path == "/v1beta/models?pageSize=5"


def test_keys_of_the_gateway(upstream, privatizer, tmp_path):
    path = str(tmp_path / "keys")
    secret = GatewayKeys(path, new=True).create("zoe")
    with serving(gateway_to(upstream, privatizer, keys=path), path="") as url:
        known, unknown = client_of(url, secret), client_of(url)
        assert known.models.generate_content(model=MODEL, contents="x").text == "x"
        with pytest.raises(errors.ClientError) as error:
            unknown.models.generate_content(model=MODEL, contents="x")
    assert (error.value.code, error.value.status) == (401, "UNAUTHENTICATED")
    assert len(upstream.asked) == 1
    assert "x-goog-api-key" not in upstream.asked[0].headers


def test_errors_of_the_upstream_keep_their_form(upstream, client):
    upstream.answer = lambda _: refusal(429, "RESOURCE_EXHAUSTED", "No quota for <WORD_1>")
    with pytest.raises(errors.ClientError) as error:
        client.models.generate_content(model=MODEL, contents=CANARY)
    assert (error.value.code, error.value.status) == (429, "RESOURCE_EXHAUSTED")
    assert error.value.message == f"No quota for {CANARY}"
    with pytest.raises(errors.ClientError, match=CANARY):
        list(client.models.generate_content_stream(model=MODEL, contents=CANARY))


def test_errors_within_a_stream(upstream, client):
    whole = [sse(each) for each in chunks(answer_of(part("<WORD_1> is <WORD_1>")), list)]
    reported = sse(refusal(503, "UNAVAILABLE", "Overloaded by <WORD_1>")[1])
    for came, code, message in (
        ([*whole[:3], reported], 503, f"Overloaded by {CANARY}"),
        (whole[:-1], 502, "broke off"),
    ):
        upstream.answer = lambda _, came=came: iter(came)
        with pytest.raises(errors.APIError, match=message) as error:
            list(client.models.generate_content_stream(model=MODEL, contents=CANARY))
        assert error.value.code == code
        assert error.value.status == "UNAVAILABLE"


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({}, "contents"),
        ({"contents": [user({"inlineData": {"mimeType": "image/png", "data": "AAAA"}})]}, "data"),
        ({"contents": [user({"fileData": {"fileUri": "https://a.example/x"}})]}, "fileUri"),
        ({"generationConfig": {"responseLogprobs": True}}, "generationConfig.responseLogprobs"),
        ({"toolConfig": {"retrievalConfig": {"latLng": {"latitude": 1}}}}, "latLng"),
        (
            {"toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}}},
            "stream",
        ),
        (
            {"tools": [{"mcpServers": [{"streamableHttpTransport": {"headers": {"a": "b"}}}]}]},
            "hea",
        ),
        ({"tools": [{"googleMaps": {"authConfig": {"apiKey": CANARY}}}]}, "authConfig"),
    ],
)
def test_what_cannot_be_protected_is_refused_in_the_form_of_the_api(upstream, http, body, name):
    refused = post(http, "generateContent", {"contents": [user("x")], **body} if body else {})
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (400, 400)
    assert error["status"] == "INVALID_ARGUMENT"
    assert name in error["message"]
    assert CANARY not in refused.text
    assert upstream.asked == []


def test_a_stream_that_is_no_stream_of_events_is_refused_by_name(upstream, http):
    refused = post(http, "streamGenerateContent", {"contents": [user("x")]})
    assert refused.status_code == 400
    assert "?alt=sse" in refused.json()["error"]["message"]
    assert upstream.asked == []


def test_routes_that_are_not_served_are_refused_in_the_form_of_the_api(upstream, http):
    for path, said in (
        (f"/v1beta/models/{MODEL}:batchGenerateContent", "does not serve batches"),
        ("/v1beta/cachedContents", "does not serve files and caches"),
        ("/upload/v1beta/files", "does not serve files and caches"),
        ("/v1beta/interactions", "POST /v1beta/models/{model}:generateContent"),
    ):
        refused = http.post(path, json={})
        error = refused.json()["error"]
        assert (refused.status_code, error["code"], error["status"]) == (404, 404, "NOT_FOUND")
        assert said in error["message"]


def test_media_pass_by_policy(upstream, privatizer):
    blob = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    with (
        serving(gateway_to(upstream, privatizer, media="pass"), path="") as url,
        httpx2.Client(base_url=url, trust_env=False) as http,
    ):
        assert post(http, "generateContent", {"contents": [user(blob)]}).status_code == 200
    assert last(upstream)["contents"][0]["parts"] == [blob]


def test_a_prompt_that_the_upstream_blocks(upstream, client):
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": USAGE}
    upstream.answer = lambda _: [sse(blocked)]
    (only,) = client.models.generate_content_stream(model=MODEL, contents=ASKED)
    assert only.prompt_feedback.block_reason == "SAFETY"


# ---- streams ---------------------------------------------------------------------------------------------------------

ANSWER = answer_of(
    part("Is it <WORD_1>? Or <WORD_2>?", thought=True),
    part("See é <WORD_1> < <WORD_2>, <WORD_9>"),
    call(path="<WORD_2>", more=[{"of": "<WORD_1> é"}]),
    part("and <WORD_2>"),
    part("<WORD_1>", thoughtSignature=SIGNATURE),
    part("", thoughtSignature=SIGNATURE),
)


def restoring():
    session = Session()
    with session.noting() as notes:
        notes.assign_placeholder("WORD", CANARY)
        notes.assign_placeholder("WORD", PATH)
    return AnswerRestorer(session)


def fed(came):
    """The parts that a client puts together, the chunks, and what is remembered."""
    stream = protocol.GeminiChunks(restoring())
    shown = [event.data for each in came for event in stream.feed(Event("", each))]
    assert stream.is_complete
    assert list(stream.close()) == []
    parts = [
        each
        for chunk in shown
        for candidate in chunk["candidates"]
        for each in candidate["content"]["parts"]
    ]
    return protocol.merge_parts(parts), shown, stream.messages


def cuts(text: str) -> Iterator[Any]:
    rng = random.Random(7)
    yield list
    yield lambda whole: [whole]
    yield from (
        lambda whole, at=at: [each for each in (whole[:at], whole[at:]) if each]
        for at in range(1, len(text))
    )
    for _ in range(30):
        places = sorted(rng.sample(range(len(text)), 5))
        yield lambda whole, places=places: [
            whole[i:j] for i, j in itertools.pairwise([0, *places, len(whole)]) if whole[i:j]
        ]


def texts_of(messages):
    return [[each["text"] for each in message["parts"] if each.get("text")] for message in messages]


def test_every_cut_gives_the_answer_that_comes_whole():
    whole = restoring().restore_json(ANSWER, protocol.ANSWER)["candidates"][0]["content"]["parts"]
    assert whole[1]["text"] == f"See é {CANARY} < {PATH}, <WORD_9>"
    for cut in cuts(ANSWER["candidates"][0]["content"]["parts"][1]["text"]):
        made, shown, pairs = fed(chunks(ANSWER, cut))
        joined = [[each for each in parts if not each.get("thought")] for parts in (made, whole)]
        assert said_in(made) == said_in(whole)
        assert [each for each in joined[0] if "functionCall" in each] == whole[2:3]
        assert made[-1] == whole[-1]
        # No message is empty, or the SDK would leave the turn out.
        assert all(each["candidates"][0]["content"]["parts"] for each in shown)
        for received, restored in pairs:
            assert len(*texts_of([received])) == len(*texts_of([restored]))
        assert len(pairs) == 2


def said_in(parts):
    return [
        "".join(each.get("text", "") for each in parts if bool(each.get("thought")) is thought)
        for thought in (True, False)
    ]


def test_a_restorer_that_looks_at_each_piece_alone_is_noticed(monkeypatch):
    monkeypatch.setattr(
        AnswerRestorer, "restore_piece", lambda self, key, piece: self.restore_text(piece)
    )
    monkeypatch.setattr(AnswerRestorer, "close_text", lambda self, key: "")
    with pytest.raises(AssertionError):
        test_every_cut_gives_the_answer_that_comes_whole()


def test_candidates_are_restored_apart():
    def chunk(index, text, **more):
        content = {"role": "model", "parts": [part(text)]}
        return {"candidates": [{"index": index, "content": content, **more}]}

    came = [
        chunk(0, "a <WO"),
        chunk(1, "b <WORD"),
        chunk(0, "RD_1>", finishReason="STOP"),
        chunk(1, "_1> <PERSON_", finishReason="STOP"),
    ]
    stream = protocol.GeminiChunks(restoring())
    texts: dict[int, str] = {0: "", 1: ""}
    for each in came:
        for event in stream.feed(Event("", each)):
            for candidate in event.data["candidates"]:
                texts[candidate["index"]] += text_of(candidate["content"])
    assert texts == {0: f"a {CANARY}", 1: f"b {CANARY} <PERSON_"}
    assert texts_of(received for received, _ in stream.messages) == [
        ["a <WORD_1>"],
        ["b <WORD_1> <PERSON_"],
    ]


def test_chunks_may_be_cut_anywhere(upstream, client):
    """In lines, in characters, in JSON."""
    whole = answer_of(part("é <WORD_1> 🙂"), call(name="🙂 <WORD_1>"))
    upstream.answer = lambda _: (
        bytes([byte]) for each in chunks(whole, list) for byte in sse(each)
    )
    came = [*client.models.generate_content_stream(model=MODEL, contents=CANARY)]
    assert (
        "".join(chunk.text or "" for chunk in came if not chunk.function_calls) == f"é {CANARY} 🙂"
    )
    assert came[-1].function_calls[0].args == {"name": f"🙂 {CANARY}"}
    assert came[-1].usage_metadata.total_token_count == 7


def test_a_stream_has_no_comments_which_the_sdk_takes_for_json(upstream, client):
    upstream.answer = google(answer_of(part("<PERSON_8> and <WORD_1>")))
    came = client.models.generate_content_stream(model=MODEL, contents=CANARY)
    assert "".join(chunk.text or "" for chunk in came) == f"<PERSON_8> and {CANARY}"


GROUNDED = {
    "groundingMetadata": {
        "webSearchQueries": ["who is <WORD_1>"],
        "groundingChunks": [{"web": {"uri": "https://a.example/x", "title": "<WORD_1>"}}],
        "groundingSupports": [
            {"segment": {"startIndex": 13, "endIndex": 21, "text": "<WORD_1>"}},
            {"segment": {"startIndex": 22, "endIndex": 25, "text": "né"}},
            {"segment": {"startIndex": 3, "endIndex": 99, "text": "elsewhere"}},
        ],
    }
}


@pytest.mark.parametrize("streamed", [False, True])
def test_places_in_a_text_count_bytes_of_the_restored_one(streamed):
    text = "é <WORD_1> é <WORD_1> né"
    answer = answer_of(part(text), **copy.deepcopy(GROUNDED))
    (candidate,) = answer["candidates"]
    spans = [(text.encode().find(b"<WORD_1>", 5), 8), (len(text.encode()) - 3, 3)]
    supports = candidate["groundingMetadata"]["groundingSupports"]
    for support, (start, size) in zip(supports[:2], spans, strict=True):
        support["segment"] |= {"startIndex": start, "endIndex": start + size}
    if streamed:
        _, shown, _ = fed(chunks(answer, list))
        (candidate,) = shown[-1]["candidates"]
    else:
        restored = restoring().restore_json(answer, protocol.ANSWER)
        (candidate,) = protocol.correct_offsets((answer, restored), ({}, {}))["candidates"]
    made = f"é {CANARY} é {CANARY} né".encode()
    *known, unknown = [
        each["segment"] for each in candidate["groundingMetadata"]["groundingSupports"]
    ]
    assert [made[each["startIndex"] : each["endIndex"]].decode() for each in known] == [
        CANARY,
        "né",
    ]
    assert known[0]["startIndex"] > len(CANARY)
    assert unknown == {"text": "elsewhere"}
    assert candidate["groundingMetadata"]["webSearchQueries"] == [f"who is {CANARY}"]


# ---- leaves ----------------------------------------------------------------------------------------------------------

ROOTS = protocol.RULES
TABLES: list[tuple[Any, LeafRule]] = [
    (types.Content, ROOTS["message"]),
    (types.Tool, ROOTS["tool"]),
    (types.ToolConfig, ROOTS["tool_config"]),
    (types.SafetySetting, ROOTS["safety"]),
    (types.GenerationConfig, ROOTS["config"]),
    (types.GenerateContentResponse, protocol.ANSWER),
]


@pytest.mark.parametrize(("kind", "rule"), TABLES, ids=[kind.__name__ for kind, _ in TABLES])
def test_every_leaf_of_the_sdk_has_an_act(kind, rule):
    assert unclassified(kind, rule) == []


def test_a_table_without_a_field_is_noticed():
    broken = without(ROOTS["message"], ("parts", "*", "text"))
    assert unclassified(types.Content, broken) == ["parts[].text"]


def planted(operation, body):
    """A request with something private wherever its table protects it, and how often."""
    changed: dict[Path, Any] = {}
    count = 0
    for path, act, value in find_leaves(body, operation.request):
        secret = f"{CANARY}{count}@example.org"
        if act is Act.PROTECT:
            changed[path] = f"Write to {secret} now"
        elif act is Act.OBJECT:
            changed[path] = {"to": [secret, {"of": {"them": secret}}]}
        elif act is Act.SCHEMA:
            changed[path] = (
                f"of {secret}" if isinstance(value, str) else {"description": f"of {secret}"}
            )
        elif act is Act.USER:
            changed[path] = {"of": secret}
        count += path in changed
    return replace_leaves(body, changed), count


def requests(operation):
    """Requests with every leaf of a table, in the spelling of the SDK and in that of the API's own types."""
    plain = specimens(
        operation.request, lambda act: None if act in (Act.MEDIA, Act.REFUSE) else "w"
    )
    for body in plain:
        sent, count = planted(operation, {**body, "model": MODEL})
        for name in ("generateContentRequest", "requests"):
            inner = sent.get(name)
            for each in inner if isinstance(inner, list) else [inner]:
                if isinstance(each, dict):
                    each["model"] = f"models/{MODEL}"
        yield sent, count
        yield snake(sent), count


def snake(value):
    """JSON with the names of its fields as the API's own types have them."""
    if isinstance(value, list):
        return [snake(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        "".join(f"_{char.lower()}" if char.isupper() else char for char in name): snake(each)
        for name, each in value.items()
    }


POSTED = [each for each in protocol.GEMINI if each.has_body]


@pytest.mark.parametrize("operation", POSTED, ids=[each.name for each in POSTED])
def test_nothing_private_leaves_in_any_leaf(upstream, http, operation):
    path = f"/v1beta{operation.path.replace('{model}', MODEL)}"
    counts = []
    for body, count in requests(operation):
        answer = http.post(path, params={"alt": "sse"}, json=body)
        assert answer.status_code == 200, answer.text
        counts.append(count)
    assert len(upstream.asked) == len(counts)
    assert max(counts) > (1 if "embed" in operation.name else 20)
    assert CANARY.lower() not in upstream.seen.lower()
    # Both spellings are sent alike.
    assert upstream.bodies[::2] == upstream.bodies[1::2]


def test_a_gateway_that_leaves_names_as_they_are_spelled_is_noticed():
    """Then what a message is would not be known: not its texts, but its sources and its order."""
    body = {"contents": [user("x")], "system_instruction": {"parts": [part("s")]}}
    assert [role for role, _ in protocol.find_messages(body)] == ["user"]
    made = protocol.GENERATE.normalize(body)
    assert [role for role, _ in protocol.find_messages(made)] == ["system", "user"]


def test_everything_is_restored_in_any_leaf_of_an_answer():
    answer, *_ = specimens(protocol.ANSWER, lambda act: "w")
    found = list(find_leaves(answer, protocol.ANSWER))
    texts = [leaf.path for leaf in found if leaf.act is Act.PROTECT]
    objects = [leaf.path for leaf in found if leaf.act is Act.OBJECT]
    assert len(texts) > 30
    assert len(objects) > 2
    came = replace_leaves(
        answer,
        {path: "<WORD_1>" if path in texts else {"of": ["<WORD_1>"]} for path in texts + objects},
    )
    made = json.dumps(restoring().restore_json(came, protocol.ANSWER))
    assert made.count(CANARY) == len(texts) + len(objects)
    assert "<WORD_1>" not in made
