"""Types that a policy blocks: such a request is refused, nothing of it is sent, and it is counted."""

import json

import httpx2
import pytest
from tests.gateway.servers import answer_of, serving, serving_upstream

from textveil import Privatizer
from textveil.errors import ConfigError
from textveil.gateway import Gateway, Policy, ServingOptions
from textveil.gateway.policy.policy import PolicyError, PolicyRule
from textveil.gateway.protocols.mcp import CALL_TOOL
from textveil.gateway.toolserver import ToolServer

CARD, MAIL = "4111 1111 1111 1111", "zoe.quillimar@example.org"
DETECTORS = ["patterns", "structure"]


@pytest.fixture(scope="module")
def hiding():
    return Privatizer.from_profile("prompt", protect={"detectors": DETECTORS})


@pytest.fixture
def upstream():
    with serving_upstream(lambda _: answer_of({"content": "ok"})) as made:
        yield made


def ask(url, text, path="chat/completions", model="m", **more):
    messages = [{"role": "user", "content": text}]
    body = {"model": model, "messages": messages, "max_tokens": 9, **more}
    with httpx2.Client(trust_env=False, timeout=60) as http:
        return http.post(f"{url}/{path}", json=body)


@pytest.mark.parametrize("path", ["chat/completions", "messages"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_blocked_type_is_an_error_of_the_protocol(hiding, upstream, path, stream, tmp_path):
    log = tmp_path / "audit.jsonl"
    policy, running = Policy(block=("SECRET", "CARD")), ServingOptions(audit_log=str(log))
    gateway = Gateway(privatizer=hiding, upstream=upstream.url, policy=policy, running=running)
    with serving(gateway) as url:
        refused = ask(url, f"Pay with {CARD}, says {MAIL}.", path, stream=stream)
        with httpx2.Client(trust_env=False) as http:
            metrics = http.get(f"{url.removesuffix('/v1')}/metrics").text
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert "blocks requests with CARD" in error["message"]
    assert "SECRET" not in error["message"]
    assert CARD not in refused.text
    assert MAIL not in refused.text
    assert upstream.asked == []
    assert 'textveil_refusals_total{reason="blocked"} 1.0' in metrics
    assert 'textveil_protected_total{type="CARD"} 1.0' in metrics
    line = next(
        each for each in map(json.loads, log.read_text().splitlines()) if each["event"] == "request"
    )
    assert (line["reason"], line["protected"]) == ("blocked", {"CARD": 1, "EMAIL": 1})


def test_only_what_is_blocked_is_refused(hiding, upstream):
    gateway = Gateway(privatizer=hiding, upstream=upstream.url, policy=Policy(block=("CARD",)))
    with serving(gateway) as url:
        assert ask(url, f"Write to {MAIL}.").status_code == 200
    assert upstream.shows("EMAIL_1")
    assert not upstream.shows(MAIL)


def test_a_conversation_stays_blocked_until_the_value_is_gone(hiding, upstream):
    """The second request has it in an earlier message, which is released already."""
    gateway = Gateway(privatizer=hiding, upstream=upstream.url, policy=Policy(block=("CARD",)))
    first, more = {"role": "user", "content": f"My card: {CARD}"}, {"role": "user", "content": "?"}
    with serving(gateway) as url:
        statuses = [
            ask(url, "", messages=messages).status_code
            for messages in ([first], [first], [first, more], [more])
        ]
    assert statuses == [400, 400, 400, 200]
    assert len(upstream.asked) == 1


def test_rules_block_by_route_and_model(hiding, upstream):
    rules = (
        PolicyRule(models=("cloud-*",), block=("CARD",)),
        PolicyRule(routes=("messages",), block=("EMAIL",)),
    )
    gateway = Gateway(privatizer=hiding, upstream=upstream.url, policy=Policy(rules=rules))
    with serving(gateway) as url:
        card, mail = f"Pay with {CARD}.", f"Write to {MAIL}."
        found = {
            (path, model, text): ask(url, text, path, model).status_code
            for path in ("chat/completions", "messages")
            for model in ("cloud-1", "local")
            for text in (card, mail)
        }
    assert found == {
        (path, model, text): 400
        if (model == "cloud-1" and text == card) or (path == "messages" and text == mail)
        else 200
        for path, model, text in found
    }


def test_a_gateway_that_forgets_to_block_is_caught(hiding, upstream, monkeypatch):
    """A broken twin: what the tests above look for is there without the check."""
    monkeypatch.setattr(Policy, "find_blocked", lambda *_: "")
    gateway = Gateway(privatizer=hiding, upstream=upstream.url, policy=Policy(block=("CARD",)))
    with serving(gateway) as url:
        assert ask(url, f"Pay with {CARD}.").status_code == 200
    assert upstream.shows("CARD_1")


@pytest.mark.parametrize(
    ("block", "options", "error", "said"),
    [
        (("CARD",), {"level": "identifiers", "types": ["names"]}, ConfigError, "block names CARD"),
        (("PERSON",), {"level": "identifiers"}, ConfigError, "block names PERSON"),
        (("CARD",), {"types": ["names"]}, ConfigError, "block names CARD"),
        (("CARD",), {"detectors": [], "always": ["x"]}, ConfigError, "block names CARD"),
    ],
)
def test_a_block_that_could_not_hold_is_refused(upstream, block, options, error, said):
    privatizer = Privatizer.from_profile("prompt", protect={"detectors": DETECTORS} | options)
    with pytest.raises(error, match=said):
        Gateway(privatizer=privatizer, upstream=upstream.url, policy=Policy(block=block))


def test_names_that_become_other_names_cannot_be_blocked(upstream):
    privatizer = Privatizer.from_profile("prompt", names={"types": ["PERSON"]})
    with pytest.raises(ConfigError, match="block names PERSON"):
        Gateway(privatizer=privatizer, upstream=upstream.url, policy=Policy(block=("PERSON",)))


def test_answers_of_tools_are_blocked(hiding):
    tools = ToolServer(
        privatizer=hiding, command=("x",), policy=Policy(tools=("*",), block=("CARD",))
    )
    answer = {"content": [{"type": "text", "text": f"Paid with {CARD}."}]}
    with pytest.raises(Exception, match="blocks answers of tools with CARD") as caught:
        tools.protect_answer(CALL_TOOL, answer)
    assert CARD not in str(caught.value)


@pytest.mark.parametrize("name", ["SECRT", "card", "Credit"])
def test_a_policy_names_an_unknown_type(name):
    with pytest.raises(PolicyError, match=f"^block.0: no type is named '{name}'"):
        Policy(block=(name,))
    with pytest.raises(PolicyError, match=r"^rules.0.block.0: no type"):
        Policy(rules=(PolicyRule(models=("m",), block=(name,)),))
