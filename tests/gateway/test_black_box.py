"""The gateway as a black box: its command, a base URL, and an upstream that keeps every byte; nothing is imported.

No policy, no keys, no options: `textveil gateway --upstream URL --port 0`. Whatever a client plants must not reach the
upstream, nor what the process prints, in any writing; and it must come back where the upstream says it again.
"""

import base64
import gzip
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx2
import pytest
from tests.gateway.servers import Asked, Upstream, commanded, events, response, serving_upstream
from tests.gateway.written import shows

CANARIES = {
    "mail": "zoe.quillimar@blorvequine.org",
    "phone": "+49 30 90182047",
    "iban": "DE89 3704 0044 0532 0130 00",
    "card": "4111 1111 1111 1111",
    "address": "85.214.132.117",
    "long address": "2a01:4f8:c17:b0f::2",
    "key": "sk-proj-Zq8Xv2LrT5nBc7Wd1Yf4Kj9Hm3Gs6Pa0",
    "token": "ghp_a8Fk2LmQ9xZ4vB7nC1dE5gH3jK6pR0sT2uWy",
    "social security": "536-22-8745",
}
"""Identifiers with a form."""

MAIL, CARD = CANARIES["mail"], CANARIES["card"]
ALL = "; ".join(f"{name} {value}" for name, value in CANARIES.items())
PLACEHOLDER = re.compile(r"<[A-Z_]+_\d+>")


class Running(NamedTuple):
    """The command as a process.

    Args:
        url: where it serves, without `/v1`.
        upstream: what stands behind it.
        said: the file with all that it prints.
    """

    url: str
    upstream: Upstream
    said: Path


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Running]:
    said = tmp_path_factory.mktemp("gateway") / "said"
    with serving_upstream(raw=True) as upstream, commanded(upstream.url, said) as url:
        yield Running(url, upstream, said)
    printed = said.read_text(encoding="utf-8")
    assert [name for name, value in CANARIES.items() if shows(printed.encode(), value)] == []
    assert [line for line in printed.splitlines() if not line.startswith("textveil: ")] == []


@pytest.fixture
def upstream(running) -> Iterator[Upstream]:
    """What stands behind the gateway; at the end nothing has reached it."""
    running.upstream.asked.clear()
    running.upstream.answer = lambda asked: [response(b"{}")]
    yield running.upstream
    assert [name for name, value in CANARIES.items() if running.upstream.shows(value)] == []


@pytest.fixture
def client(running) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=running.url, trust_env=False, timeout=60) as made:
        yield made


def user(content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


def chat(content: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": user(content), **more}


def said(text: str, **more: Any) -> dict[str, Any]:
    """A whole answer."""
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text, **more}}]}


def echo(asked: Asked) -> str:
    """What the last message says."""
    content = asked.body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def echoing(asked: Asked) -> list[bytes]:
    return [response(json.dumps(said(echo(asked))).encode())]


# ---- all APIs --------------------------------------------------------------------------------------------------------

ANTHROPIC = {"model": "m", "max_tokens": 9, "messages": user(ALL)}
REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": chat(ALL),
    "/chat/completions": chat([{"type": "text", "text": ALL}]),
    "/v1/completions": {"model": "m", "prompt": [ALL, "is"], "suffix": ALL},
    "/v1/responses": {"model": "m", "input": user(ALL), "instructions": ALL},
    "/v1/responses/input_tokens": {"model": "m", "input": ALL},
    "/v1/embeddings": {"model": "m", "input": [ALL]},
    "/v1/moderations": {"model": "m", "input": ALL},
    "/v1/messages": {**ANTHROPIC, "system": [{"type": "text", "text": ALL}]},
    "/v1/messages/count_tokens": {"model": "m", "messages": user(ALL)},
}


@pytest.mark.parametrize("path", REQUESTS)
def test_no_request_shows_what_is_in_it(client, upstream, path):
    answer = client.post(path, json=REQUESTS[path])
    assert (answer.status_code, len(upstream.asked)) == (200, 1)
    sent = upstream.asked[0].raw.decode()
    assert len(set(PLACEHOLDER.findall(sent))) == len(CANARIES)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"]
)
def test_answers_say_what_was_asked(client, upstream, path, stream):
    """The texts of the request come back in the answer's own form."""

    def answer(asked: Asked) -> list[bytes]:
        text = json.dumps(asked.body)
        text = " ".join(sorted(set(PLACEHOLDER.findall(text)), key=text.index))
        message = {
            "type": "message",
            "id": "m1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": text}],
        }
        whole = {
            "/v1/chat/completions": said(text),
            "/v1/completions": {"choices": [{"index": 0, "text": text}]},
            "/v1/responses": {"id": "r1", "output": [message]},
            "/v1/messages": {
                "id": "a1",
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": text}],
            },
        }[path]
        if not stream:
            return [response(json.dumps(whole).encode())]
        at = {"output_index": 0, "content_index": 0, "item_id": "m1"}
        pieces: dict[str, list[Any]] = {
            "/v1/chat/completions": [{"choices": [{"delta": {"content": char}}]} for char in text],
            "/v1/completions": [{"choices": [{"text": char}]} for char in text],
            "/v1/responses": [
                {"type": "response.output_text.delta", "delta": char, **at} for char in text
            ],
            "/v1/messages": [
                {
                    "type": "content_block_delta",
                    "index": 0,
                    "delta": {"type": "text_delta", "text": char},
                }
                for char in text
            ],
        }
        return events(*pieces[path], "[DONE]")

    upstream.answer = answer
    came = client.post(path, json={**REQUESTS[path], "stream": stream})
    assert came.status_code == 200
    if not stream:
        text = came.text
    else:
        read = [
            json.loads(line[6:]) for line in came.text.splitlines() if line.startswith("data: {")
        ]
        text = "".join(_texts(each) for each in read if not each.get("error"))
    assert [value for value in CANARIES.values() if value not in text] == []


def _texts(event: dict[str, Any]) -> str:
    """The text of an event of any API."""
    if "choices" in event:
        return "".join(
            each.get("text") or (each.get("delta") or {}).get("content") or ""
            for each in event["choices"]
        )
    delta = event.get("delta", "")
    return delta.get("text", "") if isinstance(delta, dict) else delta


# ---- in any writing --------------------------------------------------------------------------------------------------


def _wide(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in text)


WRITINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in capitals": str.upper,
    "percent": lambda text: quote(text, safe=""),
    "percent, all of it": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "percent, twice": lambda text: quote(quote(text, safe=""), safe=""),
    "an address of the web": lambda text: f"https://example.com/find?q={quote(text)}&page=2",
    "Base64": lambda text: base64.b64encode(text.encode()).decode(),
    "Base64 of a sentence": lambda text: base64.b64encode(
        f"Please answer {text} today.".encode()
    ).decode(),
    "Base64 for addresses": lambda text: (
        base64.urlsafe_b64encode(f"ask?{text}>".encode()).decode().rstrip("=")
    ),
    "hexadecimal": lambda text: text.encode().hex(),
    "escapes of JSON": _escaped,
    "escapes of JSON, twice": lambda text: _escaped(text).replace("\\", "\\\\"),
    "JSON in JSON": lambda text: json.dumps(json.dumps({"to": text, "of": [text]})),
    "entities": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "entities, hexadecimal": lambda text: "".join(f"&#x{ord(char):x};" for char in text),
    "entities of signs": lambda text: re.sub(r"[^\w ]", lambda match: f"&#{ord(match[0])};", text),
    "wide letters": _wide,
    "zero width": "\u200b".join,
    "a joiner": lambda text: f"{text[:5]}\u2060{text[5:]}",
    "a soft hyphen": lambda text: f"{text[:4]}\u00ad{text[4:]}",
    "blanks that do not break": lambda text: text.replace(" ", "\u00a0").replace("-", "\u2011"),
    "the name of a file": lambda text: f"see /home/me/{text.replace(' ', '_')}.pdf",
    "a link": lambda text: f"[write]({text}) or <a href='mailto:{text}'>{text}</a>",
    "a table": lambda text: f"| to | n |\n|---|---|\n| {text} | 1 |",
    "CSV": lambda text: f'id,to\n1,"{text}"\n2,x',
    "XML": lambda text: f"<row><to>{text}</to><n>1</n></row>",
    "code": lambda text: f'```python\nto = "{text}"  # {text}\n```',
    "YAML": lambda text: f"to:\n  - {text}\nn: 1",
}
"""Ways to write an identifier that a model reads."""


@pytest.mark.parametrize("writing", WRITINGS)
def test_identifiers_are_hidden_however_they_are_written(client, upstream, writing):
    upstream.answer = echoing
    for name, value in CANARIES.items():
        text = f"Look at {WRITINGS[writing](value)} and answer."
        answer = client.post("/v1/chat/completions", json=chat(text))
        assert answer.status_code == 200
        assert answer.json()["choices"][0]["message"]["content"] == text, name
        assert not upstream.shows(value), name


# ---- wherever they stand ---------------------------------------------------------------------------------------------


def _call(arguments: Any, **more: Any) -> list[dict[str, Any]]:
    """A conversation in which a tool was called."""
    function = {
        "name": "send",
        "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
    }
    called = {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        **more,
    }
    return [*user("go on"), called, {"role": "tool", "tool_call_id": "c1", "content": "done"}]


def _parts(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text} for text in texts]


PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "a system prompt": lambda value: chat(
        "x", messages=[{"role": "system", "content": value}, *user("x")]
    ),
    "an answer that comes back": lambda value: chat(
        "x",
        messages=[
            *user("x"),
            {"role": "assistant", "content": f"as you said, {value}"},
            *user("and now?"),
        ],
    ),
    "a refusal": lambda value: chat(
        "x", messages=[{"role": "assistant", "refusal": value}, *user("x")]
    ),
    "a part": lambda value: chat(_parts("write to", value, "please")),
    "two parts, in the middle": lambda value: chat(
        _parts(f"write to {value[:7]}", f"{value[7:]} please")
    ),
    "three parts": lambda value: chat(_parts(value[:5], value[5:11], value[11:])),
    "arguments": lambda value: chat("x", messages=_call({"to": value, "n": 1})),
    "arguments, deep": lambda value: chat("x", messages=_call({"a": [{"b": {"c": [1, value]}}]})),
    "the name of an argument": lambda value: chat("x", messages=_call({value: {"n": 1}})),
    "arguments in arguments": lambda value: chat(
        "x", messages=_call({"body": json.dumps({"to": json.dumps([value])})})
    ),
    "arguments in letters of ASCII": lambda value: chat(
        "x", messages=_call(f'{{"to": "{_escaped(value)}"}}')
    ),
    "arguments that are no JSON": lambda value: chat("x", messages=_call(f'{{"to": "{value}", ')),
    "a result": lambda value: chat(
        "x",
        messages=[
            *_call({}),
            {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"found": [value]})},
        ],
    ),
    "what a tool is for": lambda value: chat(
        "x",
        tools=[{"type": "function", "function": {"name": "send", "description": f"asks {value}"}}],
    ),
    "a schema": lambda value: chat(
        "x",
        tools=[
            {
                "type": "function",
                "function": {
                    "name": "n",
                    "parameters": {"properties": {"to": {"enum": [value], "default": value}}},
                },
            }
        ],
    ),
    "a form of answers": lambda value: chat(
        "x",
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"const": value}},
        },
    ),
    "words to stop at": lambda value: chat("x", stop=[value]),
    "a prediction": lambda value: chat("x", prediction={"type": "content", "content": value}),
    "the name of a user": lambda value: chat(
        "x", user=value, safety_identifier=value, prompt_cache_key=value
    ),
    "metadata": lambda value: chat("x", metadata={"of": value}),
    "the name of a participant": lambda value: chat(
        "x", messages=[{"role": "user", "name": value, "content": "x"}]
    ),
    "a place": lambda value: chat(
        "x",
        web_search_options={
            "user_location": {"type": "approximate", "approximate": {"city": value}}
        },
    ),
    "a field that nobody knows": lambda value: chat("x", wish=value),
    "the name of a field": lambda value: chat("x", **{value: 1}),
    "a model": lambda value: chat("x", model=value),
    "the name of a tool": lambda value: chat("x", messages=_call({}, name=value)),
    "a picture": lambda value: chat(
        [{"type": "image_url", "image_url": {"url": f"https://example.com/{value}"}}]
    ),
    "a file": lambda value: chat(
        [{"type": "file", "file": {"filename": f"{value}.pdf", "file_data": "AAAA"}}]
    ),
    "an id": lambda value: chat(
        "x", messages=[{"role": "tool", "tool_call_id": value, "content": "x"}]
    ),
    "a key of the client's headers": lambda value: chat("x"),
}
"""Where an identifier may stand in a request; it goes on hidden, or the request is refused."""

PASSING = {"a model", "an id"}
"""Places whose values go on where they look like a name: the client's own words for its models and calls."""


@pytest.mark.parametrize("place", PLACES)
def test_identifiers_are_hidden_wherever_they_stand(client, upstream, place):
    upstream.answer = lambda asked: [response(json.dumps(said("ok")).encode())]
    for name, value in CANARIES.items():
        if place in PASSING and re.fullmatch(r"[A-Za-z0-9_.:/\-]+", value):
            continue
        headers = {
            "X-User": value,
            "Cookie": f"me={value}",
            "Referer": value,
            "textveil-note": value,
        }
        answer = client.post("/v1/chat/completions", json=PLACES[place](value), headers=headers)
        assert answer.status_code in (200, 400), name
        assert value not in answer.text or answer.status_code == 200
        assert not upstream.shows(value), name


@pytest.mark.parametrize("name", CANARIES)
def test_a_value_that_parts_divide_between_them_is_hidden_as_one(client, upstream, name):
    upstream.answer = echoing
    text = f"to {CANARIES[name]}, at once"
    cuts = [(at, at) for at in range(4, len(text) - 10, 2)] + [
        (at, at + 5) for at in range(4, len(text) - 15, 5)
    ]
    for first, last in cuts:
        parts = _parts(text[:first], text[first:last], text[last:])
        answer = client.post(
            "/v1/chat/completions", json=chat([part for part in parts if part["text"]])
        )
        assert answer.json()["choices"][0]["message"]["content"] == text, (first, last)
        assert not shows(echo(upstream.asked[-1]).encode(), CANARIES[name]), (first, last)


def test_what_the_query_says_goes_nowhere(client, upstream):
    client.post("/v1/chat/completions", params={"of": MAIL}, json=chat("x"))
    client.get("/v1/models", params={"of": MAIL})
    client.post(f"/v1/{MAIL}", json=chat(MAIL))
    client.get(f"/v1/responses/{MAIL}")
    assert not upstream.shows(MAIL)


def test_a_value_that_was_seen_stays_hidden(client, upstream):
    """Also where no pattern would find it: later in the conversation, in capitals, in a link, in the name of a file."""
    upstream.answer = lambda asked: [response(json.dumps(said("ok")).encode())]
    messages = user(f"my password: {(secret := 'correcthorsebattery77')} and my card is {CARD}")
    client.post("/v1/chat/completions", json={"model": "m", "messages": messages})
    for text in (
        f"so {secret}?",
        f"SO {secret.upper()}",
        f"[{secret}]({CARD.replace(' ', '')})",
        f"a_{secret}.txt",
    ):
        messages += [{"role": "assistant", "content": "ok"}, *user(text)]
        client.post("/v1/chat/completions", json={"model": "m", "messages": messages})
        assert not upstream.shows(secret)


# ---- every cut -------------------------------------------------------------------------------------------------------

CUT = f'é {MAIL} 🙂 "{CARD}" <EMAIL_77> <b'


@pytest.fixture(scope="module")
def shown(running) -> str:
    """How the upstream sees `CUT`."""
    seen: list[str] = []

    def answer(asked: Asked) -> list[bytes]:
        seen.append(echo(asked))
        return echoing(asked)

    running.upstream.answer = answer
    httpx2.post(f"{running.url}/v1/chat/completions", json=chat(CUT), trust_env=False, timeout=60)
    return seen[0]


def _streamed(client: httpx2.Client) -> str:
    came = client.post("/v1/chat/completions", json=chat(CUT, stream=True))
    lines = [line[6:] for line in came.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return "".join(_texts(json.loads(line)) for line in lines[:-1])


def test_every_cut_of_a_text_comes_out_the_same(client, upstream, shown):
    for at in range(len(shown) + 1):
        pieces = [
            {"choices": [{"delta": {"content": piece}}]} for piece in (shown[:at], shown[at:])
        ]
        upstream.answer = lambda asked, pieces=pieces: events(*pieces, "[DONE]")
        assert _streamed(client) == CUT, at


def test_every_cut_of_the_bytes_comes_out_the_same(client, upstream, shown):
    pieces = [{"choices": [{"delta": {"content": piece}}]} for piece in (shown[:9], shown[9:])]
    head, *rest = events(*pieces, "[DONE]")
    whole = b"".join(rest)
    for at in range(0, len(whole), 3):
        upstream.answer = lambda asked, at=at: [head, whole[:at], whole[at:]]
        assert _streamed(client) == CUT, at
    upstream.answer = lambda asked: [head, *(bytes([byte]) for byte in whole)]
    assert _streamed(client) == CUT


# ---- upstreams that misbehave ----------------------------------------------------------------------------------------


def _asked(asked: Asked) -> bytes:
    """All of a request, as an error of a careless server repeats it."""
    return f"cannot read {asked.whole.decode()}".encode()


def _gzipped(asked: Asked) -> list[bytes]:
    return [
        response(gzip.compress(json.dumps(said(echo(asked))).encode()), Content_Encoding="gzip")
    ]


def _chunked(body: bytes) -> bytes:
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def _error(asked: Asked) -> bytes:
    return json.dumps(
        {"error": {"message": _asked(asked).decode(), "type": "bad", "code": echo(asked)}}
    ).encode()


MISBEHAVING: dict[str, tuple[Callable[[Asked], Any], int]] = {
    "an error that repeats the request": (
        lambda asked: [response(_error(asked), "400 Bad Request")],
        400,
    ),
    "an error in plain text": (
        lambda asked: [response(_asked(asked), "500 No", Content_Type="text/plain")],
        500,
    ),
    "an error as a page": (
        lambda asked: [response(b"<html>" + _asked(asked), "502 No", Content_Type="text/html")],
        502,
    ),
    "too many requests": (
        lambda asked: [
            response(_error(asked), "429 Slow", Retry_After="7", x_ratelimit_remaining_requests="0")
        ],
        429,
    ),
    "a redirect": (
        lambda asked: [response(b"", "307 Go", Location=f"/v1/elsewhere?q={quote(echo(asked))}")],
        502,
    ),
    "a redirect elsewhere": (
        lambda asked: [response(b"", "302 Go", Location="http://127.0.0.1:9/")],
        502,
    ),
    "gzip that was not asked for": (_gzipped, 200),
    "gzip that is none": (lambda asked: [response(_asked(asked), Content_Encoding="gzip")], 502),
    "chunks": (lambda asked: [_chunked(json.dumps(said(echo(asked))).encode())], 200),
    "another type": (
        lambda asked: [response(json.dumps(said(echo(asked))).encode(), Content_Type="text/plain")],
        200,
    ),
    "a page": (lambda asked: [response(b"<html>" + _asked(asked), Content_Type="text/html")], 502),
    "nothing": (lambda asked: [response(b"")], 502),
    "no response": (lambda asked: [], 502),
    "no HTTP": (lambda asked: [b"220 mail.example ready\r\n"], 502),
    "a list": (lambda asked: [response(json.dumps([echo(asked)]).encode())], 502),
    "half an answer": (
        lambda asked: [response(json.dumps(said(echo(asked))).encode())[:-9]],
        502,
    ),
    "text in wrong places": (
        lambda asked: [
            response(
                json.dumps(
                    {"id": echo(asked), "choices": echo(asked), "usage": [echo(asked)]}
                ).encode()
            )
        ],
        200,
    ),
    "much": (
        lambda asked: [response(json.dumps(said(echo(asked) + " is" * 300_000)).encode())],
        200,
    ),
    "headers that repeat the request": (
        lambda asked: [
            response(json.dumps(said("ok")).encode(), X_Echo=quote(echo(asked)), Set_Cookie="me=1")
        ],
        200,
    ),
    "no success that counts": (
        lambda asked: [response(json.dumps(said(echo(asked))).encode(), "203 Maybe")],
        502,
    ),
}
"""What an upstream may do, and the status that the client sees."""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.slow) if case == "much" else case
        for case in MISBEHAVING
    ],
)
def test_an_upstream_that_misbehaves_learns_nothing_more(client, upstream, running, case):
    upstream.answer, status = MISBEHAVING[case]
    answer = client.post(
        "/v1/chat/completions", json=chat(ALL), headers={"Authorization": "Bearer sk-of-the-client"}
    )
    assert answer.status_code == status
    assert len(upstream.asked) == 1
    assert "sk-of-the-client" not in answer.text
    assert not {"set-cookie", "x-echo", "location"} & {*answer.headers}
    if case == "too many requests":
        assert (
            answer.headers["retry-after"],
            answer.headers["x-ratelimit-remaining-requests"],
        ) == ("7", "0")
    if status == 200 and "headers" not in case:
        assert CANARIES["iban"] in answer.text
    if status != 200:
        assert answer.json()["error"]["message"]


def _until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens soon."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


STREAMS: dict[str, Callable[[Asked], Any]] = {
    "breaks off": lambda asked: events(
        {"choices": [{"delta": {"content": f"to {echo(asked)[:25]}"}}]}
    ),
    "breaks off in an event": lambda asked: [
        *events(),
        b'data: {"choices": [{"delta": {"content": "to <EM',
    ],
    "breaks off in a chunk": lambda asked: [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n40\r\ndata: {"
    ],
    "says no JSON": lambda asked: events(_asked(asked).decode().replace("\n", " ")),
    "says an error": lambda asked: events(
        {"error": {"message": _asked(asked).decode(), "code": 500}}
    ),
    "is no stream": lambda asked: [response(json.dumps(said(echo(asked))).encode())],
    "is an error": lambda asked: [response(_error(asked), "503 No")],
}


@pytest.mark.parametrize("case", STREAMS)
def test_a_stream_that_ends_badly_ends_with_an_error(client, upstream, case):
    upstream.answer = STREAMS[case]
    answer = client.post("/v1/chat/completions", json=chat(ALL, stream=True))
    assert answer.status_code == {"is no stream": 502, "is an error": 503}.get(case, 200)
    assert "[DONE]" not in answer.text
    assert '"error"' in answer.text


def test_a_stream_without_end_stops_when_the_client_leaves(client, upstream):
    left: list[bool] = []

    def endless(asked: Asked) -> Iterator[bytes]:
        yield from events()
        try:
            for _ in range(2_000):
                yield f"data: {json.dumps({'choices': [{'delta': {'content': echo(asked)}}]})}\n\n".encode()
                time.sleep(0.01)
        finally:
            left.append(True)

    upstream.answer = endless
    with client.stream("POST", "/v1/chat/completions", json=chat(ALL, stream=True)) as answer:
        assert MAIL in next(line for line in answer.iter_lines() if line)
    _until(lambda: bool(left))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (json.dumps(chat(ALL)).encode(), "text/plain"),
        (json.dumps(chat(ALL)).encode()[:-3], "application/json"),
        (json.dumps([chat(ALL)]).encode(), "application/json"),
        (json.dumps(chat(ALL)).encode("utf-16"), "application/json"),
        (json.dumps(chat(ALL)).encode() + b"\xff", "application/json"),
        (f"model=m&messages={quote(ALL)}".encode(), "application/x-www-form-urlencoded"),
        (json.dumps(chat(ALL + " is" * 2_000_000)).encode(), "application/json"),
        (gzip.compress(json.dumps(chat(ALL)).encode()), "application/json"),
    ],
    ids=[
        "another type",
        "cut short",
        "a list",
        "UTF-16",
        "no UTF-8",
        "a form",
        "too large",
        "gzip",
    ],
)
def test_what_cannot_be_read_goes_nowhere(client, upstream, content, kind):
    answer = client.post("/v1/chat/completions", content=content, headers={"Content-Type": kind})
    assert answer.status_code in (400, 413, 415)
    assert upstream.asked == []
    assert not [value for value in CANARIES.values() if value in answer.text]
