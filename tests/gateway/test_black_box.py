"""The gateway as a black box: its command, a base URL, and an upstream that keeps every byte; nothing is imported.

No policy, no keys, no options: `textveil gateway --upstream URL --port 0`. Whatever a client plants must not reach the
upstream, nor what the process prints, in any writing; and it must come back where the upstream says it again.
"""

import base64
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx2
import pytest
from tests.gateway.capturing import Captured, Taken, capturing, events, response

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
    upstream: Captured
    said: Path


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Running]:
    said = tmp_path_factory.mktemp("gateway") / "said"
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("TEXTVEIL_", "OPENAI_"))}
    with capturing() as upstream, said.open("wb") as stream:
        command = [sys.executable, "-m", "textveil", "gateway", "--upstream", upstream.url, "--port", "0"]
        with subprocess.Popen(command, stdout=stream, stderr=stream, env=environ) as process:
            try:
                yield Running(_served(process, said), upstream, said)
            finally:
                process.terminate()
                process.wait(20)
    printed = said.read_text(encoding="utf-8")
    assert [name for name, value in CANARIES.items() if value in printed] == []
    assert len(printed.splitlines()) == 1  # the line that says where it serves


def _served(process: "subprocess.Popen[bytes]", said: Path) -> str:
    for _ in range(600):
        if found := re.search(r"http://[0-9.]+:\d+", said.read_text(encoding="utf-8")):
            return found[0]
        assert process.poll() is None
        time.sleep(0.1)
    raise AssertionError("the command does not serve")


@pytest.fixture
def upstream(running) -> Iterator[Captured]:
    """What stands behind the gateway; at the end nothing has reached it."""
    running.upstream.taken.clear()
    running.upstream.answer = lambda taken: [response(b"{}")]
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


def echo(taken: Taken) -> str:
    """What the last message says."""
    content = taken.json["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def echoing(taken: Taken) -> list[bytes]:
    return [response(json.dumps(said(echo(taken))).encode())]


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
    assert (answer.status_code, len(upstream.taken)) == (200, 1)
    sent = upstream.taken[0].body.decode()
    assert len(set(PLACEHOLDER.findall(sent))) == len(CANARIES)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"])
def test_answers_say_what_was_asked(client, upstream, path, stream):
    """The texts of the request come back in the answer's own form."""

    def answer(taken: Taken) -> list[bytes]:
        text = json.dumps(taken.json)
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
            "/v1/responses": [{"type": "response.output_text.delta", "delta": char, **at} for char in text],
            "/v1/messages": [
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": char}}
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
        read = [json.loads(line[6:]) for line in came.text.splitlines() if line.startswith("data: {")]
        text = "".join(_texts(each) for each in read if not each.get("error"))
    assert [value for value in CANARIES.values() if value not in text] == []


def _texts(event: dict[str, Any]) -> str:
    """The text of an event of any API."""
    if "choices" in event:
        return "".join(each.get("text") or (each.get("delta") or {}).get("content") or "" for each in event["choices"])
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
    "Base64 of a sentence": lambda text: base64.b64encode(f"Please answer {text} today.".encode()).decode(),
    "Base64 for addresses": lambda text: base64.urlsafe_b64encode(f"ask?{text}>".encode()).decode().rstrip("="),
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
