"""Azure's paths through the gateway, with its client of OpenAI's SDK: only the endpoint is another."""

import json
from typing import Any

import httpx2
import openai
import pytest
from tests.gateway.servers import (
    Asked,
    answer_of,
    lines,
    run_example,
    serving,
    serving_upstream,
)
from tests.gateway.test_gateway import environment as environment

from textveil import Privatizer
from textveil.gateway import Gateway, GatewayKeys, Policy
from textveil.gateway.policy.policy import PolicyRule
from textveil.gateway.protocols import azure, load_operations, place_operations

MAIL, OTHER = "zoë.quillimar@example.org", "b.jarndyce@example.net"
VERSION, KEY = "2024-10-21", "0123456789abcdef"
FILTERED = {"hate": {"filtered": False, "severity": "safe"}, "jailbreak": {"detected": False}}
PROMPTS = [{"prompt_index": 0, "content_filter_results": FILTERED}]


def said(asked: Asked) -> Any:
    """What the scripted upstream answers."""
    body = asked.body
    path = asked.path.partition("?")[0]
    if path.endswith("/embeddings"):
        vectors = [{"object": "embedding", "index": 0, "embedding": [0.5]}]
        return {"object": "list", "model": "m", "data": vectors}
    if path.endswith("/responses"):
        part = {"type": "output_text", "text": "<EMAIL_1>", "annotations": []}
        item = {"type": "message", "id": "i", "role": "assistant", "status": "completed"}
        return {"id": "r", "object": "response", "output": [{**item, "content": [part]}]}
    if path.endswith("/models"):
        return {"object": "list", "data": [{"id": "gpt", "object": "model"}]}
    if path.endswith("/chat/completions") and not body.get("stream"):
        answer = answer_of({"content": "to <EMAIL_1>"})
        answer["choices"][0]["content_filter_results"] = FILTERED
        return answer | {"prompt_filter_results": PROMPTS}
    if path.endswith("/chat/completions"):
        first = {"choices": [], "prompt_filter_results": PROMPTS, "model": "", "object": ""}
        pieces = [
            {"choices": [{"index": 0, "delta": {"content": each}, "content_filter_results": {}}]}
            for each in "to <EMAIL_1>"
        ]
        offsets = {"check_offset": 3, "start_offset": 3, "end_offset": 9}
        late = {"index": 0, "delta": {}, "content_filter_offsets": offsets}
        late["content_filter_results"] = FILTERED
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        return lines(first, *pieces, {"choices": [late]}, end, "[DONE]")
    choice = {"index": 0, "text": "to <EMAIL_1>", "finish_reason": "stop"}
    choice["content_filter_results"] = FILTERED
    return {"id": "c", "object": "text_completion", "choices": [choice]}


@pytest.fixture(scope="module")
def hiding():
    return Privatizer.from_profile("prompt", protect={"detectors": ["patterns", "structure"]})


@pytest.fixture(scope="module")
def upstream():
    with serving_upstream(said) as made:
        yield made


@pytest.fixture(scope="module")
def served(hiding, upstream):
    with serving(Gateway(privatizer=hiding, upstream=upstream.url.removesuffix("/v1")), "") as url:
        yield url


def client_of(url: str, key: str = KEY, **more: Any) -> openai.AzureOpenAI:
    http = openai.DefaultHttpxClient(trust_env=False)
    return openai.AzureOpenAI(
        azure_endpoint=url,
        api_key=key,
        api_version=VERSION,
        max_retries=0,
        http_client=http,
        **more,
    )


@pytest.fixture
def client(served, upstream):
    upstream.asked.clear()
    upstream.answer = said
    with client_of(served) as made:
        yield made


def user(content: str) -> Any:
    return {"role": "user", "content": content}


def test_a_chat_by_its_deployment(client, upstream):
    messages = [user(f"write to {MAIL}")]
    answer = client.chat.completions.create(model="our-gpt", messages=messages)
    assert answer.choices[0].message.content == f"to {MAIL}"
    assert answer.model_extra["prompt_filter_results"] == PROMPTS
    assert answer.choices[0].model_extra["content_filter_results"] == FILTERED
    messages += [answer.choices[0].message, user(OTHER)]
    client.chat.completions.create(model="our-gpt", messages=messages)
    first, second = upstream.asked
    path = f"/openai/deployments/our-gpt/chat/completions?api-version={VERSION}"
    assert first.path == second.path == path
    assert first.headers["api-key"] == KEY
    assert "authorization" not in first.headers
    assert first.body == {"messages": [user("write to <EMAIL_1>")]}
    assert second.body["messages"] == [
        *first.body["messages"],
        {"role": "assistant", "content": "to <EMAIL_1>"},
        user("<EMAIL_2>"),
    ]


def test_a_chat_streams(client, upstream):
    chunks = list(
        client.chat.completions.create(model="our-gpt", messages=[user(MAIL)], stream=True)
    )
    assert chunks[0].model_extra["prompt_filter_results"] == PROMPTS
    choices = [each.choices[0] for each in chunks if each.choices]
    assert "".join(each.delta.content or "" for each in choices) == f"to {MAIL}"
    extra = [each.model_extra or {} for each in choices]
    assert {"content_filter_results": FILTERED} in extra
    assert not any("content_filter_offsets" in each for each in extra)
    assert MAIL not in upstream.seen


def test_completions_and_vectors(client, upstream):
    made = client.completions.create(model="our-gpt", prompt=MAIL)
    assert made.choices[0].text == f"to {MAIL}"
    assert client.embeddings.create(
        model="our-vectors", input=[MAIL], encoding_format="float"
    ).data[0].embedding == [0.5]
    assert [each.path.partition("?")[0] for each in upstream.asked] == [
        "/openai/deployments/our-gpt/completions",
        "/openai/deployments/our-vectors/embeddings",
    ]
    assert upstream.bodies == [
        {"prompt": "<EMAIL_1>"},
        {"input": ["<EMAIL_1>"], "encoding_format": "float"},
    ]


def test_routes_without_a_deployment(client, upstream, served):
    assert client.responses.create(model="our-gpt", input=MAIL).output_text == MAIL
    assert [each.id for each in client.models.list()] == ["gpt"]
    http = openai.DefaultHttpxClient(trust_env=False)
    with openai.OpenAI(base_url=f"{served}/openai/v1", api_key=KEY, http_client=http) as other:
        assert other.responses.create(model="our-gpt", input=MAIL).output_text == MAIL
        answer = other.chat.completions.create(model="our-gpt", messages=[user(MAIL)])
        assert answer.choices[0].message.content == f"to {MAIL}"
        other.embeddings.create(model="v", input=MAIL, encoding_format="float")
    version = f"?api-version={VERSION}"
    assert [each.path for each in upstream.asked] == [
        f"/openai/responses{version}",
        f"/openai/models{version}",
        "/openai/v1/responses",
        "/openai/v1/chat/completions",
        "/openai/v1/embeddings",
    ]
    assert upstream.bodies[0]["model"] == "our-gpt"
    assert upstream.asked[-1].headers["authorization"] == f"Bearer {KEY}"
    assert MAIL not in upstream.seen


@pytest.mark.parametrize("base", ["/openai/v1", "/openai/v1/", "/v1", ""])
def test_an_upstream_with_a_version_serves_these_paths_too(hiding, upstream, base):
    upstream.answer = said
    made = Gateway(privatizer=hiding, upstream=upstream.url.removesuffix("/v1") + base)
    with serving(made, "") as url, client_of(url) as client:
        client.chat.completions.create(model="our-gpt", messages=[user(MAIL)])
    assert upstream.asked[-1].path.startswith("/openai/deployments/our-gpt/chat/completions?")


def test_rules_go_by_the_deployment(hiding, upstream, tmp_path):
    """Not by the model that the body names, which Azure does not read."""
    path = str(tmp_path / "gateway.keys")
    key = GatewayKeys(path, new=True).create("anna")
    rules = (
        PolicyRule(models=("strict",), unknown="refuse"),
        PolicyRule(routes=("embeddings",), media="pass"),
    )
    upstream.asked.clear()
    upstream.answer = said
    made = Gateway(privatizer=hiding, upstream=upstream.url, policy=Policy(keys=path, rules=rules))
    asked: Any = {"messages": [user(MAIL)], "extra_body": {"mood": "x"}}
    with serving(made, "") as url:
        with client_of(url) as client, pytest.raises(openai.AuthenticationError):
            client.chat.completions.create(model="m", **asked)
        with client_of(url, key, azure_deployment="strict") as client:
            with pytest.raises(openai.BadRequestError, match="mood is not known"):
                client.chat.completions.create(model="lax", **asked)
            del asked["extra_body"]
            client.chat.completions.create(model="lax", **asked)
        with client_of(url, key, azure_deployment="lax") as client:
            client.chat.completions.create(model="strict", **asked, extra_body={"mood": "x"})
        with client_of(url, key) as client:
            client.embeddings.create(model="v", input=[1, 2])
    assert [each.path.split("/")[3] for each in upstream.asked] == ["strict", "lax", "v"]
    assert not any({"api-key", "authorization"} & each.headers.keys() for each in upstream.asked)


def test_clients_are_told_apart_by_their_keys(hiding, upstream):
    made = Gateway(privatizer=hiding, upstream=upstream.url)
    accounts = {made.identify_caller({"api-key": key}).account for key in ("a", "b")}
    assert len(accounts | {made.identify_caller({}).account}) == 3


def test_an_error_of_the_filter_is_kept(client, upstream):
    error = {"message": "filtered: <EMAIL_1>", "param": "prompt", "code": "content_filter"}
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": FILTERED}
    upstream.answer = lambda _: (400, {"error": {**error, "innererror": inner}})
    with pytest.raises(openai.BadRequestError, match=f"filtered: {MAIL}") as caught:
        client.chat.completions.create(model="our-gpt", messages=[user(MAIL)])
    assert (caught.value.code, caught.value.param) == ("content_filter", "prompt")


@pytest.mark.parametrize(
    "path",
    [
        "/openai/deployments/..%2Ffiles/chat/completions",
        "/openai/deployments/a%3Fb/chat/completions",
        f"/openai/deployments/{MAIL}/chat/completions",
        f"/openai/deployments/m/chat/completions?api-version={MAIL}",
        "/openai/deployments/m/responses",
        "/openai/deployments/m/messages",
        "/openai/files",
    ],
)
def test_nothing_else_is_asked(served, upstream, path):
    upstream.asked.clear()
    with httpx2.Client(trust_env=False) as http:
        body = {"messages": [user("x")], "input": "x", "model": "m"}
        answer = http.post(f"{served}{path}", json=body)
    assert answer.status_code in (400, 404)
    assert MAIL not in json.dumps(answer.json(), ensure_ascii=False)
    assert upstream.asked == []


def test_each_place_has_the_tables_of_its_route():
    operations = load_operations()
    placed = place_operations(operations)[len(operations) :]
    by_name = {each.name: each for each in operations}
    assert {each.prefix for each in placed} == {each.path for each in azure.PREFIXES}
    for each in placed:
        own = by_name[each.name]
        assert (each.route, each.answer, each.message) == (own.route, own.answer, own.message)
        assert own.request.fields is not None
        assert each.request.fields is not None
        changed = {
            name
            for name, rule in each.request.fields.items()
            if own.request.fields.get(name) is not rule
        }
        assert changed <= {"model", "api-version"}


def test_the_lines_of_the_page_work_as_pasted(served, upstream):
    upstream.asked.clear()
    upstream.answer = said
    own = {"AZURE_OPENAI_ENDPOINT": served, "AZURE_OPENAI_API_KEY": KEY}
    own["OPENAI_API_VERSION"] = VERSION
    assert run_example("## Azure OpenAI", own) == "to anna@example.org\n"
    assert upstream.bodies[-1]["messages"] == [user("Write to <EMAIL_1>")]
