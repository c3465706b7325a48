"""The gateway: any client of OpenAI gets restored answers, and its upstream never sees what is private."""

import asyncio
import json
import logging
import os
import re
import signal
import socket
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai
import pytest
import uvicorn
from starlette.testclient import TestClient
from tests.gateway.servers import process, serving
from tests.lanes import first_of_each

from textveil import Privatizer, cli
from textveil.errors import ConfigError
from textveil.gateway import Gateway, GatewayKeys, Policy
from textveil.gateway.answer import keepalive
from textveil.gateway.server import create_server, listen
from textveil.pipeline import privatizer as privatizer_module

CANARY = "Blorvequine"
KEY = "sk-of-the-client"
ASKED = f"{CANARY} met Quillimar ; {CANARY} left"
SEEN = "<WORD_1> <WORD_2> <WORD_3> ; <WORD_1> <WORD_4>"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """No settings of whoever runs the tests; a proxy that would read along must not be used."""
    for name in list(os.environ):
        if name.startswith(("TEXTVEIL_", "OPENAI_")):
            monkeypatch.delenv(name)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def privatizer(small_table):
    return Privatizer("placeholder", table=small_table)


@pytest.fixture(scope="module")
def served(openai_server, privatizer):
    """The address of a gateway before the scripted server."""
    with serving(
        Gateway(
            privatizer=privatizer, upstream=openai_server, policy=Policy(timeout=0.5, limit=10_000)
        )
    ) as url:
        yield url


@pytest.fixture(scope="module")
def strict(openai_server, privatizer):
    """The address of a gateway that refuses what is unknown."""
    policy = Policy(unknown="refuse")
    with serving(Gateway(privatizer=privatizer, upstream=openai_server, policy=policy)) as url:
        yield url


@pytest.fixture
def client(served):
    with client_of(served) as made:
        yield made


def client_of(url):
    http = openai.DefaultHttpxClient(trust_env=False)
    return openai.OpenAI(base_url=url, api_key=KEY, max_retries=0, http_client=http)


@pytest.fixture
def journal(openai_server):
    """The upstream's requests so far, those of one model."""

    def read(model):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(openai_server.removesuffix("/v1") + "/journal") as answer:
            return [entry for entry in json.load(answer) if entry["body"]["model"] == model]

    return read


def user(text):
    return [{"role": "user", "content": text}]


def post(url, body, **headers):
    """The status and body of an answer to raw bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with httpx2.Client(trust_env=False) as http:
        answer = http.post(
            f"{url}/chat/completions",
            content=content,
            headers={"Content-Type": "application/json", **headers},
        )
    return answer.status_code, answer.json()


# ---- answers ---------------------------------------------------------------------------------------------------------


def test_the_upstream_sees_the_release_and_the_client_the_originals(client, journal):
    answer = client.chat.completions.create(model="echo", messages=user(ASKED))
    assert answer.choices[0].message.content == ASKED
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 2
    entry = journal("echo")[-1]
    assert entry["body"] == {"model": "echo", "messages": user(SEEN)}
    assert CANARY.lower() not in json.dumps(journal("echo")).lower()


@pytest.mark.parametrize("model", ["echo", "halves", "characters", "bytes", "no-done", "no-finish"])
def test_streams_are_restored_wherever_they_are_cut(client, model):
    chunks = list(
        client.chat.completions.create(model=model, messages=user(f"🙂 {ASKED}"), stream=True)
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == f"🙂 {ASKED}"
    assert next(chunk.choices[0].delta.role for chunk in chunks) == "assistant"
    if model != "no-finish":
        assert [chunk.choices[0].finish_reason for chunk in chunks][-1] == "stop"
        assert (
            chunks[-1].choices[0].delta.content is None
        )  # all text is there before the end is told
    assert len(chunks) >= 3


def test_a_stream_comes_as_it_is_said(client):
    start = time.monotonic()
    chunks = client.chat.completions.create(model="endless", messages=user(ASKED), stream=True)
    for chunk in chunks:
        if (chunk.choices[0].delta.content or "").strip():
            break
    assert time.monotonic() - start < 5
    chunks.close()


def test_several_choices_are_restored_each(client):
    answer = client.chat.completions.create(model="echo", messages=user(ASKED), n=3)
    assert [choice.message.content for choice in answer.choices] == [ASKED] * 3
    said = ["", "", ""]
    for chunk in client.chat.completions.create(
        model="characters", messages=user(ASKED), n=3, stream=True
    ):
        for choice in chunk.choices:
            said[choice.index] += choice.delta.content or ""
    assert said == [ASKED] * 3


def test_equal_values_are_equal_in_all_messages_and_parts(client, journal):
    messages = [
        {"role": "system", "content": f"{CANARY} speaks"},
        {"role": "developer", "content": ""},
        {"role": "assistant", "content": f"Quillimar and {CANARY}"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Quillimar"},
                {"type": "text", "text": f" {CANARY}"},
            ],
        },
    ]
    answer = client.chat.completions.create(model="upper", messages=messages)
    assert answer.choices[0].message.content == f"Quillimar {CANARY}"
    assert journal("upper")[-1]["body"]["messages"] == [
        {"role": "system", "content": "<WORD_1> <WORD_2>"},
        {"role": "developer", "content": ""},
        {"role": "assistant", "content": "<WORD_3> and <WORD_1>"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<WORD_3>"},
                {"type": "text", "text": " <WORD_1>"},
            ],
        },
    ]


def test_fields_without_text_are_passed_on(client, journal):
    fields: dict[str, Any] = {
        "temperature": 1,
        "top_p": 0.5,
        "n": 2,
        "max_tokens": 7,
        "max_completion_tokens": 8,
        "seed": -3,
    }
    fields |= {"presence_penalty": -2.0, "frequency_penalty": 1.5, "reasoning_effort": "low"}
    client.chat.completions.create(
        model="echo", messages=user("fields"), response_format={"type": "text"}, **fields
    )
    sent = journal("echo")[-1]["body"]
    assert sent == {
        "model": "echo",
        "messages": user("<WORD_1>"),
        "response_format": {"type": "text"},
        **fields,
    }
    options = {"include_usage": True}
    *_, last = client.chat.completions.create(
        model="echo",
        messages=user("usage"),
        stream=True,
        stream_options=options,
        logprobs=False,
        stop=openai.omit,
    )
    assert last.usage is not None
    assert last.choices == []
    assert journal("echo")[-1]["body"]["stream_options"] == options


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_in_json_stays_json(client, journal, stream):
    said = '{"is": "http://example.org/a\\q"}'  # no JSON yet: what stands for the address has to be escaped
    asked = {
        "model": "characters",
        "messages": user(said),
        "response_format": {"type": "json_object"},
    }
    if stream:
        chunks = client.chat.completions.create(**asked, stream=True)
        answer = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    else:
        answer = client.chat.completions.create(**asked).choices[0].message.content
    assert json.loads(answer) == {"is": "http://example.org/a\\q"}
    assert journal("characters")[-1]["body"]["messages"] == user('{"is": "<WORD_1>"}')


def test_all_texts_of_an_answer_are_restored(served):
    status, answer = post(served, {"model": "talkative", "messages": user(ASKED)})
    message = {"role": "assistant", "content": ASKED, "refusal": ASKED, "reasoning_content": ASKED}
    assert status == 200
    assert answer == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "said": ASKED,
        "service_tier": ASKED,
        "choices": [
            {
                "index": 0,
                "said": ASKED,
                "message": {**message, "annotations": [{"said": ASKED}]},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def test_all_texts_of_a_stream_are_restored(client):
    chunks = list(
        client.chat.completions.create(model="talkative", messages=user(ASKED), stream=True)
    )
    for field in ("content", "refusal"):
        assert "".join(getattr(chunk.choices[0].delta, field) or "" for chunk in chunks) == ASKED
    deltas = [chunk.choices[0].delta.model_extra or {} for chunk in chunks]
    assert [each["annotations"] for each in deltas if "annotations" in each][-1] == [
        {"said": ASKED}
    ]
    assert {(chunk.model_extra or {}).get("said") for chunk in chunks} == {ASKED, None}
    assert all(chunk.choices[0].logprobs is None for chunk in chunks)


def test_the_statement_of_a_request(small_table, openai_server, client):
    answer = client.chat.completions.with_raw_response.create(model="echo", messages=user(ASKED))
    promise = json.loads(answer.headers["textveil-statement"])
    assert (promise["mechanism"], promise["epsilon"], promise["protected"]) == (
        "placeholder",
        0.0,
        5,
    )
    noise = Privatizer("noise", epsilon=5.0, table=small_table)
    with serving(Gateway(privatizer=noise, upstream=openai_server)) as url, client_of(url) as other:
        raw = other.chat.completions.with_raw_response.create(
            model="echo", messages=user("garden"), stream=True
        )
        promise = json.loads(raw.headers["textveil-statement"])
        list(raw.parse())
    assert (promise["kind"], promise["metric"]) == ("metric", "chord")
    assert promise["epsilon"] == pytest.approx(5.0)


# ---- what goes up, and where -----------------------------------------------------------------------------------------


def test_only_the_key_is_forwarded(served, journal):
    headers = {
        "Cookie": f"who={CANARY}",
        "X-Who": CANARY,
        "OpenAI-Organization": CANARY,
        "User-Agent": CANARY,
    }
    for _ in range(2):  # the first answer sets a cookie
        status, _ = post(
            served,
            {"model": "talkative", "messages": user("x")},
            Authorization="Bearer sk-1",
            **headers,
        )
        assert status == 200
    sent = journal("talkative")[-1]["headers"]
    assert sent.pop("authorization") == "Bearer sk-1"
    assert sent.pop("user-agent") == "textveil"
    assert sent.keys() == {
        "host",
        "connection",
        "accept",
        "accept-encoding",
        "content-type",
        "content-length",
    }
    post(served, {"model": "talkative", "messages": user("x")})
    assert "authorization" not in journal("talkative")[-1]["headers"]


def test_redirects_are_not_followed(served, journal):
    before = len(journal("redirect"))
    status, answer = post(served, {"model": "redirect", "messages": user("x")})
    assert (status, answer["error"]["code"]) == (502, "upstream")
    assert [entry["path"] for entry in journal("redirect")[before:]] == ["/v1/chat/completions"]


# ---- refusals --------------------------------------------------------------------------------------------------------


def refused(outcome, journal, says, param=None, status=400):
    found, answer = outcome
    assert found == status
    error = answer["error"]
    assert answer.keys() == {"error"}
    assert error.keys() == {"message", "type", "param", "code"}
    assert re.fullmatch(f"textveil: {says}", error["message"]), error["message"]
    assert error["param"] == param
    assert CANARY.lower() not in json.dumps(answer).lower()
    assert journal("refused") == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("audio", {"voice": CANARY, "format": "wav"}),
        ("logit_bias", {CANARY: 1}),
        ("logprobs", True),
        ("top_logprobs", 2),
        ("moderation", {"model": CANARY}),
    ],
)
def test_fields_that_cannot_be_protected_are_refused_by_name(served, journal, field, value):
    body = {"model": "refused", "messages": user("x"), field: value}
    refused(
        post(served, body), journal, f"{field} cannot be protected: leave it out.*", param=field
    )


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ({"type": "image_url", "image_url": {"url": f"https://example.org/{CANARY}"}}, "image_url"),
        ({"type": "input_audio", "input_audio": {"data": CANARY, "format": "wav"}}, "input_audio"),
        ({"type": "file", "file": {"file_data": CANARY}}, "file"),
    ],
)
def test_media_is_refused(served, journal, part, name):
    body = {"model": "refused", "messages": [{"role": "user", "content": [part]}]}
    where = f"messages[0].content[0].{name}"
    says = f"{re.escape(where)} cannot be protected: leave it out, or let the policy pass media.*"
    refused(post(served, body), journal, says, param=where)


NAMED = [
    ({"messages": user("x"), "temprature": CANARY}, "temprature", "; did you mean temperature?"),
    ({"messages": [{"role": "user", "content": "x", "foo": CANARY}]}, "messages[0].foo", ""),
    (
        {
            "messages": [
                {"role": "user", "content": ["y", {"type": "text", "text": "x", "foo": CANARY}]}
            ]
        },
        "messages[0].content[1].foo",
        "",
    ),
    ({"messages": user("x"), "stream_options": {"foo": {CANARY: True}}}, "stream_options.foo", ""),
    ({"messages": user("x"), "a b\n\u202e": CANARY}, '["a b\\n\\u202e"]', ""),
    ({"messages": user("x"), "x" * 99: CANARY}, f'["{"x" * 77}..."]', ""),
    ({"messages": user("x"), "maria@example.org": CANARY}, "[field 3]", ""),
    (
        {"messages": user("x"), "stream_options": {"foo": 1, "4111 1111 1111 1111": CANARY}},
        "stream_options.foo",
        "",
    ),
    (
        {"messages": user("x"), "stream_options": {"4111 1111 1111 1111": CANARY}},
        "stream_options[field 1]",
        "",
    ),
    ({"messages": user("x"), "sk-proj-Ab3dEf6hIj9lMn2pQr5t": CANARY}, "[field 3]", ""),
]


@pytest.mark.parametrize(("body", "where", "near"), NAMED)
def test_a_field_that_is_not_known_is_named_by_its_path_and_its_value_is_not(
    strict, journal, body, where, near
):
    """A name that looks like somebody's is counted and not told."""
    body = {"model": "refused", **body}
    if isinstance(body["messages"][0]["content"], list):
        body["messages"][0]["content"][0] = {"type": "text", "text": "y"}
    says = f"{re.escape(where)} is not known, and the policy refuses it: leave it out, .*{re.escape(near)}"
    refused(post(strict, body), journal, says, param=where)


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": f"{CANARY} is ill"}, "model"),
        ({"model": "x" * 201}, "model"),
        ({"model": "gpt\n"}, "model"),
        ({"messages": CANARY}, "messages"),
        ({"messages": [CANARY]}, "messages[0]"),
        ({"messages": [{"role": CANARY, "content": CANARY}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [CANARY]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": {CANARY: CANARY}}]}, "messages[0].content"),
        (
            {"messages": [{"role": "tool", "content": "x", "tool_call_id": f"{CANARY}!"}]},
            "messages[0].tool_call_id",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": f"{CANARY} !"}]}]},
            "messages[0].tool_calls[0].id",
        ),
        ({"temperature": CANARY}, "temperature"),
        ({"temperature": "1"}, "temperature"),
        ({"frequency_penalty": [CANARY]}, "frequency_penalty"),
        ({"stream": CANARY}, "stream"),
        ({"stream_options": CANARY}, "stream_options"),
        ({"reasoning_effort": CANARY}, "reasoning_effort"),
        ({"service_tier": CANARY}, "service_tier"),
        ({"tool_choice": CANARY}, "tool_choice"),
        (
            {"tools": [{"type": "function", "function": {"name": f"{CANARY} !"}}]},
            "tools[0].function.name",
        ),
        ({"response_format": {"type": CANARY}}, "response_format"),
    ],
)
def test_wrong_values_are_refused_by_the_name_of_their_field(strict, journal, change, param):
    body = {"model": "refused", "messages": user("x"), **change}
    says = f"{re.escape(param)} has the wrong type or an unknown value, and the policy .*"
    refused(post(strict, body), journal, says, param=param)


@pytest.mark.parametrize("field", ["model", "messages"])
@pytest.mark.parametrize("value", ["left out", None, "", []])
def test_what_a_request_needs(served, journal, field, value):
    body = {"model": "refused", "messages": user("x"), field: value}
    if value == "left out":
        del body[field]
    refused(post(served, body), journal, f"{field} is missing", param=field)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        CANARY.encode(),
        json.dumps([CANARY]).encode(),
        json.dumps({"model": "refused", "messages": user(CANARY)}).encode()[:-1],
        json.dumps({"model": "refused", "messages": user(CANARY)}).encode("utf-16"),
        b'{"model": "refused", "messages": [{"role": "user", "content": "\xff"}]}',
        b'{"model": "refused", "messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"model": "refused", "messages": [{"role": "user", "content": "x"}], "temperature": NaN}',
        b'{"model": "refused", "messages": [{"role": "user", "content": "x"}], "temperature": -Infinity}',
        b'{"model": "refused", "messages": [{"role": "user", "content": "x"}], "temperature": 1e999}',
        b"[" * 5_000,
    ],
)
def test_what_is_no_json_object_is_refused(served, journal, body):
    refused(
        post(served, body),
        journal,
        "the body must be a JSON object in UTF-8, at most 100 levels deep",
    )


@pytest.mark.parametrize("depth", [100, 900])
def test_what_is_nested_too_deeply_is_refused(served, journal, depth):
    schema = f'{{"a": {"[" * depth}"{CANARY}"{"]" * depth}}}'
    tool = f'{{"type": "function", "function": {{"name": "f", "parameters": {schema}}}}}'
    body = f'{{"model": "refused", "messages": [{{"role": "user", "content": "x"}}], "tools": [{tool}]}}'
    where = "tools[0].function.parameters.a[0][0][0]"
    says = f"{re.escape(where)} is nested too deeply: a request may have 100 levels"
    refused(post(served, body.encode()), journal, says, param=where)


def test_arguments_with_half_a_character_are_refused(served, journal):
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "f", "arguments": json.dumps({"a": "\ud800"})},
    }
    body = {
        "model": "refused",
        "messages": [{"role": "assistant", "tool_calls": [call]}, *user("x")],
    }
    refused(post(served, body), journal, ".*surrogate.*")


def test_a_large_request_is_refused(served, journal):
    body = {"model": "refused", "messages": user(f"{CANARY} " * 1_000)}
    refused(post(served, body), journal, "a request must have at most 10,000 bytes", status=413)


def test_a_request_as_pages_of_the_web_send_it_is_refused(served, journal):
    outcome = post(
        served, {"model": "refused", "messages": user("x")}, **{"Content-Type": "text/plain"}
    )
    refused(outcome, journal, "a request must have the content type application/json", status=415)


def test_other_paths(served):
    with httpx2.Client(trust_env=False) as http:
        assert http.get(served.removesuffix("/v1") + "/health").status_code == 200
        wrong = http.get(f"{served}/chat/completions")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
        known = http.put(f"{served}/responses/resp_1").headers["allow"].split(", ")
        assert {"GET", "DELETE"} <= set(known)
        nowhere = [
            http.post(f"{served}/{path}", json={})
            for path in (f"cats/{CANARY}", "chat/completions/")
        ]
        assert [(each.status_code, "allow" in each.headers) for each in nowhere] == [
            (404, False)
        ] * 2
        for answer in (wrong, *nowhere):
            error = answer.json()["error"]
            assert "POST /v1/chat/completions" in error["message"]
            assert CANARY not in answer.text
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        refused = http.get(f"{served}/responses", headers={**upgrade, "Sec-WebSocket-Key": "eA=="})
        assert refused.status_code == 404
        assert "does not serve websockets" in refused.json()["error"]["message"]
        for prefix in (served, served.removesuffix("/v1")):
            answer = http.post(
                f"{prefix}/chat/completions", json={"model": "echo", "messages": user(ASKED)}
            )
            assert answer.json()["choices"][0]["message"]["content"] == ASKED


# ---- failures --------------------------------------------------------------------------------------------------------


class Failing(Privatizer):
    """Its message holds the text, as those of other libraries may."""

    def privatize_many(self, texts, *arguments, **options):
        raise ValueError(f"cannot do {list(texts)}")


class Losing(Privatizer):
    """Forgets the last text."""

    def privatize_many(self, texts, *arguments, **options):
        yield from list(super().privatize_many(texts, *arguments, **options))[:-1]


@pytest.mark.parametrize("kind", [Failing, Losing])
def test_what_cannot_be_privatized_is_not_sent(
    small_table, openai_server, journal, caplog, capfd, kind
):
    caplog.set_level(logging.DEBUG)
    gateway = Gateway(privatizer=kind("placeholder", table=small_table), upstream=openai_server)
    with serving(gateway) as url:
        outcome = post(url, {"model": "refused", "messages": [*user("x"), *user(CANARY)]})
    refused(
        outcome,
        journal,
        r"the messages could not be privatized \(ValueError\); nothing was sent",
        status=500,
    )
    assert CANARY not in caplog.text + "".join(capfd.readouterr())


FAILURES = {
    "fail-500": 500,
    "rate-limit": 429,
    "bad-request": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "missing": 404,
    "unheard-of": 404,
    "redirect": 502,
    "hang-up-once": 502,
    "slow": 504,
    "null": 200,
    "empty": 200,
    "no-choices": 200,
    "odd": 200,
    "number": 200,
    "list": 502,
    "garbage": 502,
    "cut": 502,
    "latin": 502,
}


@pytest.mark.parametrize("model", FAILURES)
def test_failures_of_the_upstream(small_table, openai_server, caplog, capfd, model):
    """With a mechanism that changes nothing, so that the upstream has something to repeat."""
    caplog.set_level(logging.DEBUG)
    open_ = Privatizer("noise", epsilon=float("inf"), table=small_table)
    with serving(
        Gateway(privatizer=open_, upstream=openai_server, policy=Policy(timeout=0.5))
    ) as url:
        status, answer = post(
            url, {"model": model, "messages": user(f"2 {CANARY}")}, Authorization=f"Bearer {KEY}"
        )
    assert status == FAILURES[model]
    said = caplog.text + "".join(capfd.readouterr())
    assert CANARY.lower() not in said.lower()
    assert KEY not in said + json.dumps(answer)
    if status != 200:  # the upstream's own words have the key in them
        assert answer["error"]["code"] == "upstream"
        assert CANARY.lower() not in json.dumps(answer).lower()


STREAMED = {**{model: status for model, status in FAILURES.items() if status != 200}, "plain": 502}


@pytest.mark.parametrize("model", STREAMED)
def test_failures_of_the_upstream_before_a_stream(openai_server, privatizer, model):
    """On a new connection: one that was kept and ends is another case."""
    gateway = Gateway(privatizer=privatizer, upstream=openai_server, policy=Policy(timeout=0.5))
    body = {
        "model": model,
        "messages": user(f"stream 2 {CANARY}" if model != "slow" else "2 x"),
        "stream": True,
    }
    with serving(gateway) as url:
        status, answer = post_stream(url, body, Authorization=f"Bearer {KEY}")
    assert CANARY.lower() not in answer.lower()
    if status == 200:  # the upstream's head was that of a stream
        assert "broke off" in answer
    else:
        assert status == STREAMED[model]
        assert json.loads(answer)["error"]["code"] == "upstream"


def post_stream(url, body, **headers):
    with httpx2.Client(trust_env=False) as http:
        answer = http.post(f"{url}/chat/completions", json=body, headers=headers)
    return answer.status_code, answer.text


@pytest.mark.parametrize("model", ["breaks-off", "reports", "silent", "not-json", "stops"])
def test_a_stream_that_breaks_off_ends_with_an_error(client, served, caplog, capfd, model):
    caplog.set_level(logging.DEBUG, logger="uvicorn")
    says = (
        f"cannot go on with '{ASKED}'" if model == "reports" else "textveil: the answer broke off"
    )
    with pytest.raises(openai.APIError, match=f"^{re.escape(says)}$"):
        list(client.chat.completions.create(model=model, messages=user(ASKED), stream=True))
    assert CANARY not in caplog.text + "".join(capfd.readouterr())
    status, whole = post_stream(served, {"model": model, "messages": user(ASKED), "stream": True})
    assert status == 200
    assert CANARY in whole  # what came before
    assert "[DONE]" not in whole


def test_a_silent_stream_is_kept_open_by_comments(privatizer, openai_server, monkeypatch):
    asked = {"messages": user(ASKED), "stream": True}
    with serving(Gateway(privatizer=privatizer, upstream=openai_server)) as url:
        assert "\n:\n" not in post_stream(url, {"model": "silent", **asked})[1]
        monkeypatch.setattr(keepalive, "COMMENT_SECONDS", 0.3)
        said = post_stream(url, {"model": "silent", **asked})[1]
        with client_of(url) as client:
            chunks = list(client.chat.completions.create(model="silent", **asked))
    assert 3 <= said.count("\n\n:\n\n") <= 7
    assert said.endswith("data: [DONE]\n\n")
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == ASKED


def test_nobody_listens(privatizer):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        upstream = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with serving(Gateway(privatizer=privatizer, upstream=upstream)) as url:
            for stream in (False, True):
                status, answer = post(
                    url, {"model": "echo", "messages": user(CANARY), "stream": stream}
                )
                assert (status, answer["error"]["type"]) == (502, "server_error")


def test_a_client_that_leaves_closes_the_stream_of_the_upstream(client, journal):
    chunks = client.chat.completions.create(model="endless", messages=user(ASKED), stream=True)
    for _ in range(5):
        next(iter(chunks))
    chunks.close()
    for _ in range(100):
        if all(entry["left"] for entry in journal("endless")):
            return
        time.sleep(0.05)
    pytest.fail("the upstream still sends")


def test_requests_at_the_same_time_do_not_mix(served, journal):
    async def ask(client, number):
        said = " ".join(f"Name{number}x{i}" for i in range(20))
        if number % 2:
            answer = await client.chat.completions.create(model="echo", messages=user(said))
            return said, answer.choices[0].message.content
        pieces = await client.chat.completions.create(
            model="characters", messages=user(said), stream=True
        )
        return said, "".join([piece.choices[0].delta.content or "" async for piece in pieces])

    async def ask_all():
        http = openai.DefaultAsyncHttpxClient(trust_env=False)
        async with openai.AsyncOpenAI(base_url=served, api_key=KEY, http_client=http) as client:
            return await asyncio.gather(*(ask(client, number) for number in range(20)))

    for said, answer in asyncio.run(ask_all()):
        assert answer == said
    seen = " ".join(f"<WORD_{i}>" for i in range(1, 21))
    assert [entry["body"]["messages"][0]["content"] for entry in journal("characters")][-10:] == [
        seen
    ] * 10


# ---- the server ------------------------------------------------------------------------------------------------------


def test_an_address_that_is_taken():
    with (
        listen("127.0.0.1", 0) as taken,
        pytest.raises(ConfigError, match="must be a free address of this machine: "),
    ):
        listen("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ConfigError, match="must be a free address of this machine"):
        listen("no-such-host.invalid", 0)


@pytest.mark.parametrize(
    "change", [{"upstream": f"http://me:{CANARY}@host/v1"}, {"timeout": 0}, {"limit": 0}]
)
def test_options_that_are_wrong(privatizer, change):
    with pytest.raises(ConfigError) as error:
        Gateway(**{"privatizer": privatizer, "upstream": "http://127.0.0.1:1/v1", **change})
    assert CANARY not in str(error.value)


SERVES = r"textveil: serving clients of most APIs at (?P<at>{0}:\d+) and of OpenAI at (?P=at)/v1\n"


@pytest.mark.parametrize("number", first_of_each([signal.SIGTERM, signal.SIGINT]))
def test_the_process_logs_nothing_and_finishes_its_answers(openai_server, number):
    with process(openai_server) as (running, url), ThreadPoolExecutor(1) as pool:
        with client_of(f"{url}/v1") as client:
            answer = client.chat.completions.create(model="echo", messages=user(f"{CANARY} is ill"))
            assert answer.choices[0].message.content == f"{CANARY} is ill"
            with pytest.raises(openai.InternalServerError):
                client.chat.completions.create(model="fail-500", messages=user(CANARY))
            with pytest.raises(openai.BadRequestError):
                client.chat.completions.create(model="echo", messages=user(CANARY), logprobs=True)
            waiting = pool.submit(
                client.chat.completions.create, model="slow", messages=user(CANARY)
            )
            time.sleep(0.5)
            running.send_signal(number)
            assert waiting.result(timeout=20).choices[0].message.content == CANARY
        assert running.communicate(timeout=20) == ("", "")
    assert running.returncode == {signal.SIGTERM: 0, signal.SIGINT: 130}[number]


@pytest.fixture
def command(small_table, monkeypatch, capsys):
    """The verb in this process, with a server that does not serve."""
    monkeypatch.setattr(privatizer_module, "load_table", lambda *_, **__: small_table)
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: None)

    def run(*arguments):
        code = cli.main(["gateway", "--port", "0", *arguments])
        return code, capsys.readouterr().err

    return run


@pytest.fixture
def applications(monkeypatch):
    """What the verb would serve."""
    made: list[Any] = []

    def noted(*given, **more):
        serves = create_server(*given, **more)
        made.append(serves.config.app)
        return serves

    monkeypatch.setattr("textveil.gateway.create_server", noted)
    return made


UPSTREAM = ("--upstream", "http://127.0.0.1:1/v1", "--mechanism", "placeholder")


@pytest.mark.parametrize(
    ("host", "warned"), [("127.0.0.1", 0), ("::1", 0), ("localhost", 0), ("0.0.0.0", 1)]
)
def test_an_open_address_is_warned_of(command, host, warned):
    code, err = command(*UPSTREAM, "--host", host)
    assert code == 2 * warned
    if warned:
        assert (
            "it needs keys (`keys: FILE` in the policy) and TLS (--tls-cert and --tls-key); or give --exposed"
            in err
        )
        code, err = command(*UPSTREAM, "--host", host, "--exposed")
        assert code == 0
    assert err.count("textveil: warning: other machines can reach the gateway") == warned
    shown = re.escape(f"[{host}]" if ":" in host else host)
    page = rf"textveil: the playground is at http://{shown}:\d+/\n" if not warned else ""
    assert re.fullmatch(rf"(.*\n)?{SERVES.format(f'http://{shown}')}{page}", err)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ((), True),
        (("--playground", "never"), False),
        (("--host", "0.0.0.0", "--exposed"), False),
        (("--host", "0.0.0.0", "--exposed", "--playground", "everywhere"), True),
    ],
)
def test_the_playground_is_there_where_the_policy_says_so(command, applications, arguments, shown):
    code, err = command(*UPSTREAM, *arguments)
    assert code == 0
    assert ("the playground is at" in err) == shown
    paths = {route.path for route in applications[0].routes}
    assert ("/" in paths) == ("/playground/ask" in paths) == shown


@pytest.mark.parametrize(
    ("host", "arguments", "allowed"),
    [
        ("127.0.0.1", (), False),
        ("127.0.0.1", ("--allow-host", "other.lan", "--allow-host", "mybox.local"), True),
        ("mybox.local", ("--exposed",), True),
        ("mybox.local", ("--exposed", "--allow-host", "other.lan"), True),
        ("0.0.0.0", ("--exposed",), False),
    ],
)
def test_a_host_that_is_named_is_allowed(
    command, applications, monkeypatch, host, arguments, allowed
):
    """As --allow-host, or as the address that is bound."""
    monkeypatch.setattr("textveil.gateway.listen", lambda _, port: listen("127.0.0.1", port))
    assert command(*UPSTREAM, "--host", host, *arguments)[0] == 0
    with TestClient(applications[0], base_url="http://127.0.0.1") as client:
        hosts = {
            "MyBox.local:8600": allowed,
            "other.lan": "other.lan" in arguments,
            "10.0.0.7": True,
            "evil.example": False,
        }
        answers = {
            name: client.get("/v1/nowhere", headers={"Host": name}).status_code for name in hosts
        }
    assert answers == {name: 404 if known else 403 for name, known in hosts.items()}


def test_the_policy_of_a_command(command, monkeypatch):
    made: list[Gateway] = []

    def noted(gateway, *rest, **more):
        made.append(gateway)
        return create_server(gateway, *rest, **more)

    monkeypatch.setattr("textveil.gateway.create_server", noted)
    code, _ = command(
        *UPSTREAM, "--media", "pass", "--schemas", "pass", "--unknown", "drop", "--users", "drop"
    )
    assert code == 0
    expected = Policy(
        upstream=UPSTREAM[1], media="pass", schemas="pass", unknown="drop", users="drop"
    )
    assert made[0].policy == expected


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--mechanism", "no-such"), "no mechanism"),
        (("--timeout", "0"), "timeout must be greater than 0"),
        (("--limit", "0"), "--limit needs BYTES"),
        (("--media", "maybe"), "--media"),
        (("--port", "65536"), "--port needs N from 0 to 65535;"),
        (("--host", "no-such-host.invalid", "--exposed"), "must be a free address of this machine"),
        (("-o", "words.oov=no"), "words.oov"),
        (("--upstream", f"http://{CANARY}@host/v1"), "must not hold a name or password"),
    ],
)
def test_wrong_options_are_one_line(command, arguments, says):
    code, err = command(*UPSTREAM, *arguments)
    assert code == 2
    assert re.fullmatch(rf"textveil: error: .*{says}.*\n", err), err
    assert CANARY not in err


# ---- web sites -------------------------------------------------------------------------------------------------------

SITES = [
    ({"Host": "evil.example"}, "host"),
    ({"Host": "127.0.0.1.evil.example"}, "host"),
    ({"Host": "evil.example", "Origin": "http://evil.example"}, "host"),
    ({"Origin": "https://evil.example"}, "origin"),
    ({"Origin": "null"}, "origin"),
    ({"Sec-Fetch-Site": "cross-site"}, "origin"),
    ({"Sec-Fetch-Site": "same-site"}, "origin"),
]


def test_without_keys_no_web_site_drives_a_gateway(served, journal):
    body = {"model": "foreign", "messages": user(ASKED)}
    asked = (
        ("GET", "/v1/models"),
        ("GET", "/metrics"),
        ("GET", "/ready"),
        ("GET", "/nowhere"),
        ("POST", "/v1/messages"),
    )
    with httpx2.Client(trust_env=False, base_url=served.removesuffix("/v1")) as http:
        for headers, code in SITES:
            for method, path in (*asked, ("POST", "/v1/chat/completions")):
                answer = http.request(
                    method, path, json=body if method == "POST" else None, headers=headers
                )
                assert answer.status_code == 403, (headers, path)
                assert answer.json()["error"]["message"].startswith(
                    "textveil: this gateway answers"
                )
                assert path == "/v1/messages" or answer.json()["error"]["code"] == code
            assert http.get("/health", headers=headers).status_code == 200
        assert http.get("/ready", headers={"Host": "localhost:1"}).status_code in (200, 503)
        assert http.get("/metrics", headers={"Host": "[::1]"}).status_code == 200
    assert journal("foreign") == []


def test_names_are_allowed_and_keys_keep_web_sites_out(openai_server, privatizer, tmp_path):
    host = {"Host": "veil.lan:8600"}
    named = Gateway(
        privatizer=privatizer, upstream=openai_server, policy=Policy(hosts=("veil.lan",))
    )
    with serving(named) as url:
        body = {"model": "echo", "messages": user(ASKED)}
        assert post(url, body, **host)[0] == 200
        assert post(url, body, **host, Origin="http://veil.lan:8600")[0] == 200
        assert post(url, body, Host="other.lan")[0] == 403
    keys = GatewayKeys(str(tmp_path / "gateway.keys"), new=True)
    key = keys.create("anna")
    policy = Policy(keys=str(tmp_path / "gateway.keys"))
    with serving(Gateway(privatizer=privatizer, upstream=openai_server, policy=policy)) as url:
        assert post(url, body, Host="other.lan")[0] == 401
        assert post(url, body, Host="other.lan", Authorization=f"Bearer {key}")[0] == 200
