"""The guardrail in a real LiteLLM proxy (`make litellm`): the upstream sees no canary, and what it cannot protect."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.gateway.litellm_cases import CANARIES, CASES, MAIL, answer
from tests.gateway.servers import Upstream, serving_upstream
from tests.gateway.test_litellm_proxy import LITELLM, ask, proxying

pytestmark = pytest.mark.skipif(not LITELLM, reason="make litellm runs it")

OFF = {"disable_global_guardrails": True, "opted_out_global_guardrails": ["textveil"]}

CHATS = ("chat", "chat streamed")
PAGE = Path(__file__).parents[2] / "docs" / "do" / "integrations" / "litellm.md"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Upstream, Any]]:
    folder = tmp_path_factory.mktemp("litellm")
    (written,) = re.findall(r"```yaml[^\n]*\n(.*?)```", PAGE.read_text(), re.DOTALL)
    guardrails = yaml.safe_load(written)["guardrails"]
    assert guardrails[0]["litellm_params"].pop("default_on")  # the tests name it in each request
    with serving_upstream(answer) as upstream, proxying(folder, upstream.url, guardrails) as proxy:
        yield proxy, upstream, folder


@pytest.mark.parametrize("name", CHATS)
def test_the_upstream_sees_no_canary_and_the_client_gets_it_back(stage, name) -> None:
    proxy, upstream, folder = stage
    case = CASES[name]
    for turn in range(2):
        upstream.asked.clear()
        status, came = ask(proxy, case.path, {**case.body, "guardrails": ["textveil"]})
        assert status == 200, came
        assert upstream.asked
        assert not [canary for canary in CANARIES if canary in upstream.seen]
        text, arguments = case.read(came)
        assert MAIL in text, turn
        assert arguments is not None
        assert MAIL in arguments
    log = (folder / "log.txt").read_text()
    assert not [canary for canary in CANARIES if canary in log]


@pytest.mark.parametrize("name", sorted(CASES.keys() - {*CHATS}))
def test_what_it_cannot_protect_is_not_sent(stage, name) -> None:
    proxy, upstream, _ = stage
    upstream.asked.clear()
    status, came = ask(proxy, CASES[name].path, {**CASES[name].body, "guardrails": ["textveil"]})
    assert status >= 400
    assert "only chat completions" in came
    assert not upstream.asked


@pytest.mark.parametrize(
    "more",
    [
        {"logprobs": True},
        {"fallbacks": [{"model": "gpt", "messages": [{"content": MAIL}]}]},
    ],
)
def test_fields_that_cannot_be_protected_are_refused(stage, more) -> None:
    proxy, upstream, _ = stage
    upstream.asked.clear()
    status, came = ask(
        proxy, "/v1/chat/completions", {**CASES["chat"].body, **more, "guardrails": ["textveil"]}
    )
    assert status >= 400
    assert "textveil" in came
    assert MAIL not in came
    assert not upstream.asked


def test_fields_that_nobody_knows_are_protected(stage) -> None:
    proxy, upstream, _ = stage
    upstream.asked.clear()
    more = {"no_such_field": f"of {MAIL}", "guardrails": ["textveil"]}
    status, came = ask(proxy, "/v1/chat/completions", {**CASES["chat"].body, **more})
    assert status == 200, came
    assert "no_such_field" in upstream.seen
    assert not [canary for canary in CANARIES if canary in upstream.seen]


def test_two_clients_restore_nothing_of_each_other(stage) -> None:
    proxy, upstream, _ = stage
    for who, text in (("anna", f"Write to {MAIL}"), ("bea", "Write to bea@example.net")):
        body = {"model": "gpt", "messages": [{"role": "user", "content": text}], "user": who}
        status, came = ask(
            proxy,
            "/v1/chat/completions",
            {**body, "guardrails": ["textveil"]},
            **{"x-litellm-call-id": "the-same"},
        )
        assert status == 200, came
        assert (MAIL in came) == (who == "anna")
        assert who not in upstream.seen, "the name of a user is not sent"


def test_no_request_switches_off_what_is_on_by_default(tmp_path) -> None:
    own = {
        "guardrail": "textveil.integrations.litellm.TextveilGuardrail",
        "mode": ["pre_call", "post_call"],
    }
    guardrails = [{"guardrail_name": "textveil", "litellm_params": {**own, "default_on": True}}]
    asks: list[dict[str, Any]] = [
        {"disable_global_guardrail": True, "metadata": {"disable_global_guardrail": True, **OFF}},
        {
            "metadata": {"user_api_key_metadata": OFF},
            "litellm_metadata": {"user_api_key_team_metadata": OFF},
        },
        {"guardrails": [], "metadata": {"guardrails": []}},
        {"guardrails": {"textveil": {"default_on": False}}},
    ]
    with (
        serving_upstream(answer) as upstream,
        proxying(tmp_path, upstream.url, guardrails) as proxy,
    ):
        for more in asks:
            for name in CHATS:
                ask(proxy, "/v1/chat/completions", {**CASES[name].body, **more})
        assert not [canary for canary in CANARIES if canary in upstream.seen]
        status, came = ask(proxy, "/v1/chat/completions", {**CASES["chat"].body, **asks[0]})
        assert status != 200 or MAIL in came


@pytest.mark.parametrize(
    "wrong",
    [
        {"scan_raw_request": True},
        {"profile": "no-such"},
        {"mode": ["post_call"]},
        {"mode": "during_call"},
    ],
)
def test_litellm_does_not_start_without_its_guardrail(tmp_path, wrong) -> None:
    own = {
        "guardrail": "textveil.integrations.litellm.TextveilGuardrail",
        "mode": ["pre_call", "post_call"],
    }
    guardrails = [
        {"guardrail_name": "textveil", "litellm_params": {**own, "default_on": True, **wrong}}
    ]
    stage = proxying(tmp_path, "http://127.0.0.1:9/v1", guardrails)
    with pytest.raises(AssertionError):  # it ended
        stage.__enter__()
