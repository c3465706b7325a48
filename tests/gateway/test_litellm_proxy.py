"""The guardrails behind a real LiteLLM proxy (`make litellm`): the upstream sees no canary, the client gets it back.

What LiteLLM asks the gateway is compared with `litellm.jsonl`, which `test_litellm` replays without LiteLLM. After a
change of LiteLLM, TEXTVEIL_LITELLM_RECORD=1 writes it anew.
"""

import json
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.gateway.litellm_cases import (
    CANARIES,
    CASES,
    GUARDRAILS,
    MAIL,
    RECORDED,
    answer,
    guarding,
)
from tests.gateway.servers import Asked, Upstream, serving, serving_upstream

import textveil

LITELLM = os.environ.get("TEXTVEIL_LITELLM", "")
"""The command `litellm`, in an environment of its own."""

pytestmark = pytest.mark.skipif(not LITELLM, reason="make litellm runs it")

LOCAL = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "LITELLM_MODE": "PRODUCTION",
    "DISABLE_ADMIN_UI": "True",
    "NO_DOCS": "True",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
    "PYTHONPATH": str(Path(textveil.__file__).parents[1]),  # for the guardrail in its own process
}
"""LiteLLM asks nobody but this machine."""

KEPT = ("content-type", "x-api-key", "authorization", "x-session-id")
"""Headers that are recorded."""


@contextmanager
def tapping(gateway: str) -> Iterator[Upstream]:
    """Stands between LiteLLM and the gateway, and keeps what is said."""

    def passed(asked: Asked) -> tuple[int, Any]:
        try:
            with urllib.request.urlopen(
                urllib.request.Request(gateway + asked.path, asked.raw, kept(asked))
            ) as came:
                return came.status, json.load(came)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    with serving_upstream(passed) as tap:
        yield tap


def kept(asked: Asked) -> dict[str, str]:
    """The headers that are recorded."""
    return {name: value for name, value in asked.headers.items() if name in KEPT}


def free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def proxying(folder: Path, upstream: str, guardrails: list[dict[str, Any]]) -> Iterator[str]:
    """The address of a LiteLLM proxy with these guardrails."""
    models = {
        "gpt": "openai/gpt",
        "claude": "anthropic/claude",
        "emb": "openai/emb",
        "old": "text-completion-openai/old",
    }
    listed = [
        {
            "model_name": name,
            "litellm_params": {
                "model": model,
                "api_base": upstream.removesuffix("/v1") if name == "claude" else upstream,
                "api_key": "sk-of-the-upstream",
            },
        }
        for name, model in models.items()
    ]
    config = {
        "model_list": listed,
        "guardrails": guardrails,
        "general_settings": {"master_key": "sk-of-litellm"},
        "litellm_settings": {"telemetry": False},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    port = free()
    command = [
        LITELLM,
        "--config",
        "config.yaml",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--telemetry",
        "False",
    ]
    with open(folder / "log.txt", "w") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, env={**os.environ, **LOCAL}
        )
    try:
        for _ in range(3_000):
            assert process.poll() is None, (folder / "log.txt").read_text()[-2_000:]
            try:
                urllib.request.urlopen(
                    f"http://127.0.0.1:{port}/health/liveliness", timeout=1
                ).close()
                break
            except OSError:
                time.sleep(0.2)
        else:
            raise TimeoutError("LiteLLM neither serves nor ends")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Any, Upstream]]:
    """LiteLLM before the gateway before an upstream."""
    with (
        serving_upstream(answer) as upstream,
        serving(guarding(upstream.url)) as url,
        tapping(url.removesuffix("/v1")) as tap,
    ):
        base = f"http://127.0.0.1:{tap.server_port}"
        gone = {"api_base": f"http://127.0.0.1:{free()}", "mode": ["pre_call", "post_call"]}
        guardrails = [
            {"guardrail_name": name, "litellm_params": {**params, "api_base": base}}
            for name, params in GUARDRAILS.items()
        ]
        guardrails += [
            {"guardrail_name": f"gone-{name}", "litellm_params": {**params, **gone}}
            for name, params in GUARDRAILS.items()
        ]
        open_ = {"fail_on_error": False, "unreachable_fallback": "fail_open", "api_base": base}
        guardrails.append(
            {"guardrail_name": "open", "litellm_params": {**GUARDRAILS["generic"], **open_}}
        )
        with proxying(tmp_path_factory.mktemp("litellm"), upstream.url, guardrails) as proxy:
            yield proxy, upstream, tap


def ask(proxy: str, path: str, body: dict[str, Any], **headers: str) -> tuple[int, str]:
    sent = {"Content-Type": "application/json", "Authorization": "Bearer sk-of-litellm", **headers}
    asked = urllib.request.Request(proxy + path, json.dumps(body).encode(), sent)
    try:
        with urllib.request.urlopen(asked, timeout=60) as came:
            return came.status, came.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize("guardrail", GUARDRAILS)
@pytest.mark.parametrize("name", CASES)
def test_the_upstream_sees_no_canary_and_the_client_gets_it_back(stage, guardrail, name) -> None:
    proxy, upstream, tap = stage
    case = CASES[name]
    upstream.asked.clear()
    tap.asked.clear()
    status, came = ask(proxy, case.path, {**case.body, "guardrails": [guardrail]})
    assert status == 200, came
    assert upstream.asked
    assert not [canary for canary in CANARIES if canary in upstream.seen]
    text, arguments = case.read(came)
    if guardrail in case.has_answer:
        assert MAIL in text
    if arguments is not None and guardrail in case.restores_arguments:
        assert MAIL in arguments
    elif arguments is not None:
        assert "<EMAIL_" in arguments, (
            "LiteLLM takes these from the reply by now: say so in the documents"
        )
    recorded(
        f"{guardrail} {name}",
        [{"path": each.path, "headers": kept(each), "body": each.body} for each in tap.asked],
    )


def recorded(name: str, said: list[dict[str, Any]]) -> None:
    """Compare what LiteLLM asked with what it asked when it was recorded, but for its own names and times."""
    known = {
        each["name"]: each["said"] for each in map(json.loads, RECORDED.read_text().splitlines())
    }
    if os.environ.get("TEXTVEIL_LITELLM_RECORD"):
        known[name] = said
        RECORDED.write_text(
            "".join(json.dumps({"name": key, "said": own}) + "\n" for key, own in known.items())
        )
    assert [bare(each) for each in said] == [bare(each) for each in known[name]]


def bare(said: dict[str, Any]) -> Any:
    body = {
        key: value
        for key, value in said["body"].items()
        if key not in ("litellm_call_id", "litellm_trace_id", "litellm_version", "request_headers")
    }
    return (
        said["path"],
        sorted(said["headers"]),
        re.sub(r"resp_[\w=-]+", "", json.dumps(body, sort_keys=True)),
    )


@pytest.mark.parametrize("guardrail", [f"gone-{name}" for name in GUARDRAILS])
def test_nothing_is_sent_where_the_gateway_cannot_be_reached(stage, guardrail) -> None:
    proxy, upstream, _ = stage
    upstream.asked.clear()
    case = CASES["chat"]
    status, _ = ask(proxy, case.path, {**case.body, "guardrails": [guardrail]})
    assert status >= 400
    assert not upstream.asked


def test_what_the_gateway_refuses_is_not_sent_where_litellm_is_told_to_go_on(stage) -> None:
    proxy, upstream, _ = stage
    upstream.asked.clear()
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    body = {
        "model": "gpt",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "see"}, part]}],
    }
    status, came = ask(proxy, "/v1/chat/completions", {**body, "guardrails": ["open"]})
    assert status == 400
    assert "cannot be protected" in came
    assert not upstream.asked


def test_one_call_id_given_by_two_clients_restores_nothing_of_the_other(stage) -> None:
    proxy, upstream, _ = stage
    upstream.asked.clear()
    for who, text in (("anna", f"Write to {MAIL}"), ("bea", "Write to bea@example.net")):
        body = {
            "model": "gpt",
            "messages": [{"role": "user", "content": text}],
            "user": who,
            "guardrails": ["generic"],
        }
        status, came = ask(proxy, "/v1/chat/completions", body, **{"x-litellm-call-id": "the-same"})
        assert status == 200
        assert (MAIL in came) == (who == "anna")
