"""What no table names is read like text and sent protected; by policy it is refused or left out, but no names."""

import json
from typing import Any

import httpx2
import pytest
from tests.gateway.servers import serving, serving_upstream

from textveil.gateway import Gateway, Policy, ServingOptions
from textveil.gateway.errors import RequestError
from textveil.gateway.protocols import field_rules, load_operations
from textveil.gateway.protocols.field_rules import Path
from textveil.gateway.request.parsed_request import ParsedRequest
from textveil.gateway.request.protect_message import MessageReleaser
from textveil.pipeline import Privatizer
from textveil.session import Session

OPERATIONS = {operation.name: operation for operation in load_operations()}
MAIL, CARD = "zoe.quillimar@blorvequine.org", 4111_1111_1111_1111
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.fixture(scope="module")
def releaser() -> MessageReleaser:
    return MessageReleaser.build(Privatizer.from_profile("prompt"))


class Sent:
    """What is sent of a request, and what is told of it."""

    def __init__(self, releaser: MessageReleaser, body: Any, operation: str, policy: Policy):
        self.request = ParsedRequest(OPERATIONS[operation], body, policy, str)
        self.session = Session()
        utterances = [*self.request.messages, *self.request.context]
        texts = [releaser(utterance, self.session)[0] for utterance in utterances]
        self.body = self.request.build_body(texts)
        self.utterances = utterances


@pytest.fixture
def send(releaser):
    def run(more: dict[str, Any], operation: str = "openai.chat", **policy: Any) -> Sent:
        first: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}]}
        first = {"input": "x"} if operation == "openai.responses" else first
        return Sent(releaser, {"model": "m", **first, **more}, operation, Policy(**policy))

    return run


ACCEPTED: list[dict[str, Any]] = [
    {"plugins": [{"id": "web", "max_results": 3, "engine": "exa"}]},
    {"provider": {"max_price": {"prompt": 1, "completion": 2.5}, "sort": {"by": "price"}}},
    {"reasoning": {"effort": "ultra", "summary": "auto"}, "preset": "coder"},
    {"chat_template_kwargs": {"preserve_thinking": True}, "bad_words": ["darn"]},
    {"documents": [{"title": "about rivers", "text": "They flow."}], "ttl": 300},
    {"mm_processor_kwargs": {"num_crops": 4}, "search_settings": {"country": "switzerland"}},
    {"search_parameters": {"mode": "auto", "sources": [{"type": "web"}]}, "enable_search": True},
    {"extra_body": {"google": {"thinking_config": {"thinking_budget": 1024}}}},
    {"tags": ["prod"], "guardrails": ["pii-mask"], "fallbacks": ["gpt-4o"]},
    {"model": "@cf/meta/llama-3.1-8b-instruct"},
    {"model": "~vendor/model"},
    {"model": "gpt-4o@2024"},
    {"tools": [{**CALL, "function": {"name": "f"}, "cache_control": {"type": "ephemeral"}}]},
    {"messages": [{"role": "tool", "tool_call_id": "call_1|fc_2", "content": "x"}]},
    {"messages": [{"role": "tool", "tool_call_id": "call_x__thought__Ab3+/w==", "content": "x"}]},
    {"messages": [{"role": "critic", "content": "x"}]},
    {"data_sources": [{"type": "azure_search", "parameters": {"index_name": "rivers"}}]},
]


@pytest.mark.parametrize("more", ACCEPTED, ids=lambda more: next(iter(more)))
def test_fields_of_other_servers_are_sent_as_they_are(send, more):
    sent = send(more)
    assert {name: sent.body[name] for name in more} == more


def test_codex_and_the_sdk_are_understood(send):
    more = {"client_metadata": {"x-codex-installation-id": MAIL}}
    assert "client_metadata" not in send(more, "openai.responses").body
    function = {"name": "f", "arguments": "{}", "parsed_arguments": {"to": MAIL}}
    message = {"role": "assistant", "tool_calls": [{**CALL, "function": function}], "parsed": 1}
    sent = send({"messages": [message]})
    assert sent.body["messages"] == [{"role": "assistant", "tool_calls": [CALL]}]


def test_texts_and_names_are_protected_and_named(send):
    row = {"role": "user", "content": "x", "mood": {MAIL: [MAIL, 5, True, None]}}
    sent = send({MAIL: {"a": 1}, "messages": [row, {**row, "content": f"to {MAIL}"}]})
    mood = {"<EMAIL_1>": ["<EMAIL_1>", 5, True, None]}
    assert sent.body["messages"][1] == {"role": "user", "content": "to <EMAIL_1>", "mood": mood}
    assert sent.body["<EMAIL_1>"] == {"a": 1}
    assert sent.request.unknown == {"messages[].mood": 2, '["<EMAIL_1>"]': 1}
    assert sent.session.restore("<EMAIL_1>") == MAIL


def test_what_is_unknown_counts_as_written_by_a_tool(send):
    part = {"type": "new_part", "text": "a"}
    rows = [
        {"role": "user", "content": ["b", part], "mood": "c"},
        {"role": "critic", "content": "d"},
    ]
    sent = send({"messages": rows})
    assert {source for each in sent.utterances for source in each.sources} == {"tool"}
    assert sent.utterances[1].get_source(0) == "tool"


NUMBERS: list[tuple[Any, str]] = [
    (CARD, "new"),
    (float(CARD), "new"),
    (4111.111111111111, "new"),
    ({"a": {"n": CARD}}, "new.a.n"),
    ([1, CARD], "new[1]"),
    ([4111, 1111, 1111, 1111], "new"),
    ({"a": [[4111, 1111], [1111, 1111]]}, "new.a"),
    ([*map(ord, MAIL)], "new"),
]


@pytest.mark.parametrize(("value", "path"), NUMBERS, ids=[str(i) for i in range(len(NUMBERS))])
def test_a_private_number_is_refused_by_its_path(send, value, path):
    with pytest.raises(RequestError) as refused:
        send({"new": value})
    assert refused.value.param == path
    assert refused.value.code == "unprotected"


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"model": f"{MAIL}/m"}, "model"),
        ({"model": "https://x.example/?key=sk-proj-Zq8Xv2LrT5nBc7Wd1Yf4Kj9Hm3Gs6Pa0"}, "model"),
        ({"messages": [{"role": MAIL, "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "tool", "tool_call_id": MAIL}]}, "messages[0].tool_call_id"),
        ({"new": "iVBORw0KGgo7" * 40}, "new"),
        ({"new": ["iVBORw0KGgo7" * 15, "iVBORw0KGgo7" * 15]}, "new[0]"),
        ({"new": {"of": "see data:image/png;base64,iVBORw0KGgo="}}, "new.of"),
        ({"new": [*range(40)]}, "new[0]"),
        ({"new": float("nan")}, "new"),
        ({"api_key": "k"}, "api_key"),
        (
            {"data_sources": [{"parameters": {"authentication": {"type": "api_key", "key": "k"}}}]},
            "data_sources[0].parameters.authentication.key",
        ),
    ],
)
def test_what_nothing_can_stand_for_is_refused_by_its_path(send, more, param):
    with pytest.raises(RequestError) as refused:
        send(more)
    assert refused.value.param == param
    assert MAIL not in refused.value.message


PRIVATE_IDS = (
    "4111111111111111",
    "4111-1111-1111-1111",
    "DE89370400440532013000",
    "sk-proj-Zq8Xv2LrT5nBc7Wd1Yf4Kj9Hm3Gs6Pa0",
)
ORDINARY_IDS = (
    "call_iK2ZWeqhFWCEPyYngFb51yBM",
    "toolu_01E21cMFjWsYCQBK02SGSYFY",
    "00e88faf-696e-42d0-9109-ba7282c05860",
    "call_1764515467123",
    "functions.read_file:12",
    "123-45-6789",
)


@pytest.mark.parametrize("name", PRIVATE_IDS)
def test_an_id_that_is_surely_private_is_refused_by_its_path(send, name):
    row = {"role": "tool", "tool_call_id": name, "content": "x"}
    for more, param in (
        ({"messages": [row]}, "messages[0].tool_call_id"),
        ({"model": name}, "model"),
    ):
        with pytest.raises(RequestError) as refused:
            send(more)
        assert refused.value.param == param
        assert "names and ids are sent unchanged" in refused.value.message
        assert name not in refused.value.message
    sent = send({"provider": {name: "x"}})
    assert name not in str(sent.body)


@pytest.mark.parametrize("name", ORDINARY_IDS)
def test_other_ids_pass(send, name):
    row = {"role": "tool", "tool_call_id": name, "content": "x"}
    assert send({"messages": [row]}).body["messages"] == [row]


def test_ids_that_nobody_reads_are_caught(send, monkeypatch):
    monkeypatch.setattr(field_rules, "may_be_private", lambda name: False)
    row = {"role": "tool", "tool_call_id": PRIVATE_IDS[0], "content": "x"}
    assert send({"messages": [row]}).body["messages"] == [row]


def test_unknown_fields_of_a_tool_belong_to_its_utterance(send):
    """So a tool is released once, and another one's fields change nothing."""
    known = {**CALL, "function": {"name": "f", "description": "Finds."}, "hint": f"ask {MAIL}"}
    newer = {"type": "newer", "function": {"name": "read_zebra"}, "hint": f"of {MAIL}"}
    sent = send({"tools": [known, newer], "new": MAIL})
    first, second, third = sent.request.context
    assert [len(each.texts) for each in (first, second, third)] == [3, 2, 1]
    assert [tool["hint"] for tool in sent.body["tools"]] == ["ask <EMAIL_1>", "of <EMAIL_1>"]
    assert {"f", "read_zebra"} <= {name for _, name in sent.request.application.tool_names}


def test_what_an_unknown_part_says_is_not_the_application_s(send):
    parts = [{"type": "text", "text": "Be brief."}, {"type": "newer", "text": "Ask Zebra."}]
    sent = send({"messages": [{"role": "system", "content": parts}]})
    assert sent.request.application.texts == {"Be brief."}
    assert sent.request.messages[0].sources == ("user", "tool", "tool")


def test_names_of_fields_stay_different(send):
    names = {MAIL: 1, MAIL.upper(): 2, "field_1": 3}
    for sent in (send({"new": names}).body["new"], send(names).body):
        assert [sent[name] for name in ("<EMAIL_1>", "<EMAIL_1_B>", "field_1")] == [1, 2, 3]
        assert MAIL not in json.dumps(sent).lower()
    with pytest.raises(RequestError, match="two fields would get one name") as refused:
        send({"new": {**names, "<EMAIL_1>": 4}})
    assert refused.value.param == "new"


def test_media_may_pass_and_are_counted(send):
    image = "data:image/png;base64,iVBORw0KGgo="
    sent = send({"new": {MAIL: [image, MAIL]}}, media="pass")
    assert sent.body["new"] == {"<EMAIL_1>": [image, "<EMAIL_1>"]}
    assert sent.request.passed == 1


def test_arguments_that_say_more_than_their_json_are_read_whole(send):
    for arguments in (f'{{"to": "{MAIL}", "to": "x"}}', '{"n": 1.0000411111111111111100}'):
        function = {"name": "f", "arguments": arguments}
        message = {"role": "assistant", "tool_calls": [{**CALL, "function": function}]}
        assert MAIL not in json.dumps(send({"messages": [message]}).body)


NEVER_DROPPED: list[tuple[dict[str, Any], str]] = [
    ({"model": "gpt-4o@2024"}, "model"),
    ({"messages": [{"role": "critic", "content": "x"}]}, "messages[0]"),
    ({"messages": ["x"]}, "messages[0]"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    ({"messages": [{"role": "tool", "tool_call_id": "a|b"}]}, "messages[0].tool_call_id"),
    ({"tools": [{"type": "newer", "name": "f"}]}, "tools[0]"),
    ({"tools": {"f": 1}}, "tools"),
    ({"tools": [{**CALL, "function": {"name": "f|g"}}]}, "tools[0].function.name"),
]


@pytest.mark.parametrize(("more", "param"), NEVER_DROPPED, ids=[str(i) for i in range(8)])
def test_models_messages_tools_and_ids_are_never_dropped(send, more, param):
    with pytest.raises(RequestError) as refused:
        send(more, unknown="drop")
    assert refused.value.param == param


def test_fields_are_dropped_or_refused_by_name(send):
    fields = {"trace": "drop", "provider.*": "refuse", "provider.max_price": "protect"}
    more = {"trace": MAIL, "provider": {"max_price": 2}, "new": {"trace": 1, "a": 2}, "drop": None}
    sent = send(more, unknown_fields={**fields, "new.trace": "drop"})
    assert {name: sent.body[name] for name in more if name in sent.body} == {
        "provider": {"max_price": 2}, "new": {"a": 2}, "drop": None
    }  # fmt: skip
    assert sent.request.left_out == 2
    with pytest.raises(RequestError, match=r"provider\.odd"):
        send({"provider": {"odd": 1}}, unknown_fields=fields)
    rule = {"models": ["m"], "unknown_fields": {"trace": "protect"}}
    merged = Policy(unknown="drop", unknown_fields=fields, rules=(rule,)).apply_rules([0])  # type: ignore[arg-type]
    path: Path = ("trace", 0, "of")
    assert merged.decide_unknown(path) == "protect"
    assert merged.decide_unknown(("other",)) == "drop"


def test_unknown_fields_are_named_in_the_header_and_in_the_log(tmp_path):
    privatizer = Privatizer.from_profile("prompt")
    log = tmp_path / "audit.jsonl"
    answered = {"role": "assistant", "content": "to <EMAIL_1>", "mood": "of <EMAIL_1>", "id": 7}
    with serving_upstream(lambda _: {"choices": [{"index": 0, "message": answered}]}) as upstream:
        running = ServingOptions(audit_log=str(log))
        gateway = Gateway(privatizer=privatizer, upstream=upstream.url, running=running)
        rows: list[Any] = [{"role": "user", "content": f"to {MAIL}", "mood": MAIL}]
        body = {"model": "m", "messages": rows, "client_metadata": {"a": 1}}
        with serving(gateway) as url, httpx2.Client(trust_env=False, timeout=60) as http:
            came = http.post(f"{url}/chat/completions", json=body)
            assert came.headers["textveil-unknown"] == "messages[].mood=1, client_metadata=1"
            message = came.json()["choices"][0]["message"]
            assert message == {**answered, "content": f"to {MAIL}", "mood": f"of {MAIL}"}
            rows += [message, {"role": "user", "content": "go on"}]
            came = http.post(f"{url}/chat/completions", json=body)
            statement = json.loads(came.headers["textveil-statement"])
            metrics = http.get(f"{url.removesuffix('/v1')}/metrics").text
    assert upstream.bodies[1]["messages"][1] == answered, "as the model wrote it"
    assert (statement["new"], statement["repeated"]) == (1, 3)
    assert "textveil_unknown_fields_total 6.0" in metrics
    first = json.loads(log.read_text().splitlines()[1])
    assert first["unknown"] == {"client_metadata": 1, "messages[].mood": 1}
    assert MAIL not in log.read_text()
