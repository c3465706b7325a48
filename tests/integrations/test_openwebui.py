"""The pipe function in a real Open WebUI (`make check-engines`): the upstream sees no canary, whatever it is asked."""

import json
import os
import re
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.servers import Asked, Upstream, serving_upstream

import textveil

OPENWEBUI = os.environ.get("TEXTVEIL_OPENWEBUI", "")
"""The command `open-webui`, in an environment of its own."""

pytestmark = pytest.mark.skipif(not OPENWEBUI, reason="make check-engines runs it")

PAGE = Path(__file__).parents[2] / "docs" / "do" / "integrations" / "openwebui.md"
MAIL = "dora.braga@example.org"
SYSTEM = "rui.system@example.org"
TOOL = "eva.tool@example.org"
CANARIES = (MAIL, SYSTEM, TOOL, "dora.braga", "rui.system", "eva.tool")

FILTER = """
class Filter:
    def inlet(self, body: dict) -> dict:
        for message in body["messages"]:
            message["content"] = message["content"].replace("dora.braga@example.org", "<EMAIL_ADDRESS_1>")
        return body
"""
"""A filter function that hides all that it sees."""


def said(asked: Asked) -> Any:
    """An answer with all placeholders of the question, whole or streamed in pieces of three characters."""
    if asked.path.endswith("/models"):
        return {
            "object": "list",
            "data": [{"id": "gpt", "object": "model"}, {"id": "gone", "object": "model"}],
        }
    if asked.body["model"] == "gone":
        return 500, {"error": {"message": f"no answer to {json.dumps(asked.body['messages'])}"}}
    found = re.findall(r"<[A-Z_]+_\d+>", json.dumps(asked.body, ensure_ascii=False))
    text = json.dumps({"title": " ".join(dict.fromkeys(found))})
    if not asked.body.get("stream"):
        message = {"role": "assistant", "content": text}
        return {
            "id": "1",
            "model": "gpt",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        }
    pieces: list[dict[str, Any]] = [
        {"index": 0, "delta": {"content": text[i : i + 3]}, "finish_reason": None}
        for i in range(0, len(text), 3)
    ]
    pieces.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    chunks = [
        {"id": "1", "object": "chat.completion.chunk", "model": "gpt", "choices": [each]}
        for each in pieces
    ]
    return [*(f"data: {json.dumps(each)}\n\n".encode() for each in chunks), b"data: [DONE]\n\n"]


class WebUI:
    """Open WebUI, as its administrator asks it."""

    def __init__(self, url: str) -> None:
        self.url, self.token = url, ""
        status, came = self.ask(
            "/api/v1/auths/signup",
            {"name": "A", "email": "a@example.net", "password": "Long-pass-1"},
        )
        assert status == 200, came
        self.token = json.loads(came)["token"]

    def ask(self, path: str, body: Any = None) -> tuple[int, str]:
        """The status and the text of an answer."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        sent = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(
                urllib.request.Request(self.url + path, sent, headers), timeout=120
            ) as came:
                return came.status, came.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def add(self, name: str, content: str, **valves: Any) -> None:
        """Add a function, and switch it on."""
        given = {"id": name, "name": name, "content": content, "meta": {"description": name}}
        status, came = self.ask("/api/v1/functions/create", given)
        assert status == 200, came
        if valves:
            self.set(name, **valves)
        assert self.ask(f"/api/v1/functions/id/{name}/toggle", {})[0] == 200
        assert self.ask("/api/models?refresh=true")[0] == 200

    def set(self, name: str, **valves: Any) -> None:
        """Set the valves of a function."""
        status, came = self.ask(f"/api/v1/functions/id/{name}/valves/update", valves)
        assert status == 200, came

    def tasks(self, **changes: Any) -> None:
        """Change the settings of tasks."""
        own = json.loads(self.ask("/api/v1/tasks/config")[1])
        status, came = self.ask("/api/v1/tasks/config/update", {**own, **changes})
        assert status == 200, came

    def chat(
        self, text: str = f"Write to {MAIL}.", model: str = "textveil.gpt", **more: Any
    ) -> tuple[int, str]:
        """Ask a model."""
        messages = [
            {"role": "system", "content": f"You are of {SYSTEM}."},
            {"role": "user", "content": text},
        ]
        return self.ask("/api/chat/completions", {"model": model, "messages": messages, **more})


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WebUI, Upstream, Path]]:
    folder = tmp_path_factory.mktemp("openwebui")
    (content,) = re.findall(r"```python title=\"textveil\"\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = int(listening.getsockname()[1])
    with serving_upstream(said) as upstream, open(folder / "log.txt", "w") as log:
        own = {
            "DATA_DIR": str(folder),
            "STATIC_DIR": str(folder / "static"),
            "WEBUI_SECRET_KEY": secrets.token_hex(32),
            "OFFLINE_MODE": "true",
            "ENABLE_OLLAMA_API": "false",
            "OPENAI_API_BASE_URLS": upstream.url,
            "OPENAI_API_KEYS": "sk-of-the-upstream",
            "RAG_EMBEDDING_ENGINE": "openai",
            "HTTP_PROXY": "http://127.0.0.1:9",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
            "PYTHONPATH": str(Path(textveil.__file__).parents[1]),
        }
        command = [OPENWEBUI, "serve", "--host", "127.0.0.1", "--port", str(port)]
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, env={**os.environ, **own}
        )
        try:
            for _ in range(600):
                assert process.poll() is None, (folder / "log.txt").read_text()[-3_000:]
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.2)
            webui = WebUI(f"http://127.0.0.1:{port}")
            webui.add("textveil", content.replace("textveil[openwebui]", ""), models="gpt, gone")
            yield webui, upstream, folder
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture(autouse=True)
def _nothing_asked(stage) -> None:
    stage[1].asked.clear()


def spoken(came: str) -> str:
    """The text of an answer, whole or streamed."""
    if not came.startswith("data:"):
        return str(json.loads(came)["choices"][0]["message"]["content"])
    lines = [
        line.removeprefix("data:").strip() for line in came.split("\n") if line.startswith("data:")
    ]
    chunks = [json.loads(line) for line in lines if line != "[DONE]"]
    return "".join(
        choice["delta"].get("content") or ""
        for each in chunks
        for choice in each.get("choices", ())
    )


def hidden(upstream: Upstream) -> None:
    assert [each for each in upstream.asked if each.raw]
    assert not [canary for canary in CANARIES if upstream.shows(canary)]


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_is_protected_and_its_answer_restored(stage, stream) -> None:
    webui, upstream, _ = stage
    for _ in range(2):
        status, came = webui.chat(stream=stream, chat_id="local:1", temperature=0.5)
        assert status == 200, came
        assert json.loads(spoken(came))["title"].split() == [SYSTEM, MAIL]
    hidden(upstream)
    first, second = (body["messages"] for body in upstream.bodies)
    assert first == second, "a message that comes again is released as it was"
    assert {body["model"] for body in upstream.bodies} == {"gpt"}


@pytest.mark.parametrize(
    "task", ["title", "tags", "follow_up", "queries", "auto", "emoji", "image_prompt", "moa"]
)
def test_what_open_webui_asks_by_itself_is_protected_too(stage, task) -> None:
    webui, upstream, _ = stage
    webui.tasks(ENABLE_AUTOCOMPLETE_GENERATION=True)
    messages = [
        {"role": "user", "content": f"Write to {MAIL}."},
        {"role": "assistant", "content": f"To {MAIL}?"},
    ]
    body = {
        "model": "textveil.gpt",
        "messages": messages,
        "prompt": f"Write to {MAIL}",
        "chat_id": "chat-2",
    }
    more = {"type": "web_search", "responses": [MAIL]}
    status, came = webui.ask(f"/api/v1/tasks/{task}/completions", {**body, **more})
    assert status == 200, came
    hidden(upstream)
    assert MAIL in came


def test_tools_are_protected_and_their_arguments_restored(stage) -> None:
    webui, upstream, _ = stage
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "find", "arguments": json.dumps({"who": MAIL})},
    }
    tool = {
        "type": "function",
        "function": {"name": "find", "description": f"of {TOOL}", "parameters": {"type": "object"}},
    }
    messages = [
        {"role": "user", "content": f"Find {MAIL}."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": f"It is {TOOL}."},
    ]
    body = {"model": "textveil.gpt", "messages": messages, "tools": [tool], "stream": False}
    status, came = webui.ask("/api/chat/completions", body)
    assert status == 200, came
    hidden(upstream)
    assert TOOL in spoken(came)


def test_what_cannot_be_protected_is_not_sent(stage) -> None:
    webui, upstream, folder = stage
    image = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        {"type": "text", "text": MAIL},
    ]
    for more in (
        {"messages": [{"role": "user", "content": image}]},
        {"no_such_field": MAIL},
        {"logprobs": True},
    ):
        for stream in (False, True):
            status, came = webui.chat(**{"stream": stream, **more})
            assert status >= 400 or "error" in came, came
    assert not upstream.bodies
    assert MAIL not in (folder / "log.txt").read_text()


def test_a_model_that_gives_no_answer_is_an_error(stage) -> None:
    webui, upstream, folder = stage
    for stream in (False, True):
        _, came = webui.chat(model="textveil.gone", stream=stream)
        assert "gave no answer" in came
    hidden(upstream)
    assert not [canary for canary in CANARIES if canary in (folder / "log.txt").read_text()]


def test_a_task_model_that_is_not_protected_is_refused(stage) -> None:
    webui, upstream, _ = stage
    webui.tasks(TASK_MODEL_EXTERNAL="gpt")
    try:
        assert "unprotected model" in webui.chat(stream=False)[1]
        assert not upstream.bodies
        webui.set("textveil", models="gpt, gone", task_model="pass")
        assert MAIL in webui.chat(stream=False)[1]
        webui.set("textveil", models="gpt, gone")
        webui.tasks(TASK_MODEL_EXTERNAL="textveil.gpt")
        assert MAIL in webui.chat(stream=False)[1]
        hidden(upstream)
    finally:
        webui.set("textveil", models="gpt, gone")
        webui.tasks(TASK_MODEL_EXTERNAL="")


def test_models_that_are_told_more_are_refused(stage) -> None:
    webui = stage[0]
    webui.add(
        "echo",
        "class Pipe:\n    def pipe(self, body: dict) -> str:\n        return 'heard ' + str(body)\n",
    )
    webui.set("textveil", models="gpt, gone, echo")
    try:
        assert webui.ask("/api/models?refresh=true")[0] == 200
        _, came = webui.chat(model="textveil.echo", stream=False)
        assert "heard" not in came
        assert "receive more" in came
    finally:
        webui.set("textveil", models="gpt, gone")


def test_a_filter_function_sees_chats_and_not_what_open_webui_asks_by_itself(stage) -> None:
    """Why textveil is no filter function. If this fails, it could be one."""
    webui, upstream, _ = stage
    webui.add("hiding", FILTER)
    assert webui.ask("/api/v1/functions/id/hiding/toggle/global", {})[0] == 200
    try:
        assert webui.chat(model="gpt", stream=False)[0] == 200
        assert not upstream.shows(MAIL)
        body = {
            "model": "gpt",
            "messages": [{"role": "user", "content": f"Write to {MAIL}."}],
            "chat_id": "chat-3",
        }
        assert webui.ask("/api/v1/tasks/title/completions", body)[0] == 200
        assert upstream.shows(MAIL)
    finally:
        assert webui.ask("/api/v1/functions/id/hiding/toggle", {})[0] == 200
