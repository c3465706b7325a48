"""Bedrock's Converse through the gateway, with AWS's own client: only the address is another."""

import itertools
import json
import random
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import httpx2
import pytest
from tests.gateway.sdk_samples import samples, without_repeats
from tests.gateway.servers import serving, serving_upstream
from tests.gateway.test_gateway import environment  # noqa: F401
from training.leaves import load_shape

from textveil import Privatizer, Session
from textveil.config.extras import explain_missing
from textveil.gateway import Gateway
from textveil.gateway.policy.client_keys import GatewayKeys
from textveil.gateway.policy.policy import Credential, Policy, Upstream
from textveil.gateway.protocols import Event, bedrock, registry
from textveil.gateway.protocols.event_stream import AwsFraming
from textveil.gateway.protocols.field_rules import (
    Act,
    LeafRule,
    any_value,
    find_leaves,
    replace_leaves,
)
from textveil.gateway.protocols.restoring import AnswerRestorer

boto3 = pytest.importorskip("boto3")

from botocore.config import Config  # noqa: E402
from botocore.eventstream import EventStreamBuffer  # noqa: E402
from botocore.exceptions import ClientError, EventStreamError  # noqa: E402

CANARY = "Blorvequine"
ASKED = f"{CANARY} met Quillimar"
MODEL = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-opus-5-v1:0"
IN_PATH = MODEL.replace(":", "%3A").replace("/", "%2F")
TOOL = {
    "toolSpec": {
        "name": "find_person",
        "description": "Finds people. Ask ops@example.org for access.",
        "inputSchema": {
            "json": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    }
}
PATH = f'C:\\{CANARY}\\"new"'
"""What has to be escaped in JSON."""


# ---- a server that speaks as Bedrock does ----------------------------------------------------------------------------


def message(*content, stop="end_turn"):
    return {
        "output": {"message": {"role": "assistant", "content": list(content)}},
        "stopReason": stop,
        "usage": {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13},
        "metrics": {"latencyMs": 5},
    }


def call(**given):
    return {"toolUse": {"toolUseId": "tooluse_1", "name": "find_person", "input": given}}


def thought(text):
    return {"reasoningContent": {"reasoningText": {"text": text, "signature": "c2lnbg=="}}}


def events(whole, cut=list):
    """The events of a stream of an answer, its texts cut into pieces."""
    yield Event("messageStart", {"role": "assistant", "p": "abc"})
    for i, block in enumerate(whole["output"]["message"]["content"]):
        deltas: list[dict[str, Any]] = []
        if "toolUse" in block:
            start = {name: block["toolUse"][name] for name in ("toolUseId", "name")}
            yield Event("contentBlockStart", {"start": {"toolUse": start}, "contentBlockIndex": i})
            pieces = cut(json.dumps(block["toolUse"]["input"]))
            deltas = [{"toolUse": {"input": piece}} for piece in pieces]
        elif "reasoningContent" in block:
            reasoning = block["reasoningContent"]["reasoningText"]
            deltas = [{"reasoningContent": {"text": piece}} for piece in cut(reasoning["text"])]
            deltas.append({"reasoningContent": {"signature": reasoning["signature"]}})
        else:
            deltas = [{"text": piece} for piece in cut(block["text"])]
        for delta in deltas:
            yield Event("contentBlockDelta", {"delta": delta, "contentBlockIndex": i, "p": "abcd"})
        yield Event("contentBlockStop", {"contentBlockIndex": i})
    yield Event("messageStop", {"stopReason": whole["stopReason"]})
    yield Event("metadata", {"usage": whole["usage"], "metrics": whole["metrics"]})


def stream_of(said):
    return (
        200,
        {"Content-Type": AwsFraming.media_types[0]},
        [AwsFraming().write(each) for each in said],
    )


def claude(*turns, cut=list):
    """An upstream that gives these answers, and then repeats the last text."""
    following = iter(turns)

    def answer(asked):
        texts = [
            block.get("text", "")
            for block in asked.body["messages"][-1].get("content", ())
            if isinstance(block, dict)
        ]
        whole = next(following, None) or message({"text": "".join(texts) or "none"})
        return stream_of(events(whole, cut)) if asked.path.endswith("-stream") else whole

    return answer


@pytest.fixture(scope="module")
def privatizer(small_table):
    return Privatizer("placeholder", table=small_table)


KEY = "bedrock-api-key-of-the-operator"


def policy_of(upstream, **more):
    """A policy in which the gateway has the key, as clients must have TLS to send one."""
    made = Upstream(
        url=upstream.url.removesuffix("/v1"), credential=Credential(env="KEY_OF_BEDROCK")
    )
    return Policy(timeout=5, upstream="aws", upstreams={"aws": made}, **more)


@pytest.fixture
def running(privatizer, environment, key):  # noqa: F811
    with (
        serving_upstream(claude()) as server,
        serving(Gateway(privatizer=privatizer, policy=policy_of(server)), path="") as url,
    ):
        yield server, url


@pytest.fixture
def upstream(running):
    running[0].asked.clear()
    running[0].answer = claude()
    return running[0]


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("KEY_OF_BEDROCK", KEY)
    for name in ("AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@cache
def load_session():
    return boto3.Session(region_name="eu-west-1")  # it reads its models once


@contextmanager
def client_of(url, access_key="AKIA0000000000000000"):
    made = load_session().client(
        "bedrock-runtime",
        endpoint_url=url,
        aws_access_key_id=access_key,
        aws_secret_access_key="x" * 40,
        config=Config(retries={"total_max_attempts": 1}, proxies={}),
    )
    with closing(made):
        yield made


@pytest.fixture
def client(running):
    with client_of(running[1]) as made:
        yield made


def read(client):
    """Reads a whole stream."""
    with closing(client.converse_stream(modelId=MODEL, messages=[user(CANARY)])["stream"]) as came:
        return list(came)


def collect(stream):
    """The answer that a client puts together of a stream."""
    blocks: dict[int, dict[str, Any]] = {}
    whole: dict[str, Any] = {}
    for event in stream:
        ((name, data),) = event.items()
        if name == "contentBlockStart":
            tool = data["start"]["toolUse"]
            blocks[data["contentBlockIndex"]] = {"toolUse": {**tool, "input": ""}}
        elif name == "contentBlockDelta":
            delta = data["delta"]
            block = blocks.setdefault(data["contentBlockIndex"], {})
            if "toolUse" in delta:
                block["toolUse"]["input"] += delta["toolUse"]["input"]
            elif "reasoningContent" in delta:
                inner = block.setdefault("reasoningContent", {"reasoningText": {"text": ""}})
                for field, piece in delta["reasoningContent"].items():
                    reasoning = inner["reasoningText"]
                    assert not (field == "text" and "signature" in reasoning)
                    reasoning[field] = reasoning.get(field, "") + piece
            else:
                block["text"] = block.get("text", "") + delta["text"]
        elif name in ("messageStop", "metadata"):
            whole |= data
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
    content = [blocks[i] for i in sorted(blocks)]
    return whole | {"output": {"message": {"role": "assistant", "content": content}}}


@pytest.fixture(params=["whole", "streamed"])
def ask(request, client):
    """Asks for a message, whole or as a stream."""

    def asked(**body):
        if request.param == "whole":
            return client.converse(modelId=MODEL, **body)
        return collect(client.converse_stream(modelId=MODEL, **body)["stream"])

    return asked


def user(*content):
    blocks = [{"text": each} if isinstance(each, str) else each for each in content]
    return {"role": "user", "content": blocks}


def said(answer):
    return answer["output"]["message"]


def last(upstream):
    return upstream.asked[-1].body


# ---- conversations ---------------------------------------------------------------------------------------------------


def test_two_turns(upstream, ask):
    turns = [user(ASKED)]
    system = [{"text": f"You help {CANARY}."}, {"cachePoint": {"type": "default"}}]
    config = {"maxTokens": 5, "temperature": 0.5, "stopSequences": [CANARY]}
    answer = ask(system=system, messages=turns, inferenceConfig=config)
    assert said(answer)["content"] == [{"text": ASKED}]
    assert answer["stopReason"] == "end_turn"
    assert answer["usage"]["outputTokens"] == 4
    first = last(upstream)
    assert first["inferenceConfig"]["maxTokens"] == 5
    assert first["system"][1] == {"cachePoint": {"type": "default"}}
    turns += [said(answer), user(CANARY)]
    assert said(ask(system=system, messages=turns))["content"] == [{"text": CANARY}]
    second = last(upstream)
    assert second["system"] == first["system"]
    assert second["messages"][:2] == [
        first["messages"][0],
        {"role": "assistant", "content": first["messages"][0]["content"]},
    ]
    assert not upstream.shows(CANARY)
    assert {each.path.partition("/converse")[0] for each in upstream.asked} == {f"/model/{IN_PATH}"}
    assert upstream.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert not any(name.startswith("x-amz") for name in upstream.asked[0].headers)


def test_tools_there_and_back(upstream, ask):
    upstream.answer = claude(
        message(
            {"text": "I look for <WORD_1>."},
            call(name="<WORD_1>", also=["<WORD_3>", 7, None]),
            stop="tool_use",
        )
    )
    turns, tools = [user(ASKED)], {"tools": [TOOL], "toolChoice": {"tool": {"name": "find_person"}}}
    answer = ask(messages=turns, toolConfig=tools)
    assert answer["stopReason"] == "tool_use"
    assert said(answer)["content"] == [
        {"text": f"I look for {CANARY}."},
        call(name=CANARY, also=["Quillimar", 7, None]),
    ]
    spec = last(upstream)["toolConfig"]["tools"][0]["toolSpec"]
    assert spec["name"] == "find_person"
    assert spec["inputSchema"] == TOOL["toolSpec"]["inputSchema"]
    assert spec["description"] == "Finds people. Ask <EMAIL_1> for access."
    result = {
        "toolUseId": "tooluse_1",
        "content": [{"text": f"Nobody is {CANARY} Jarndyce"}, {"json": {"near": ["Jarndyce"]}}],
        "status": "success",
    }
    turns += [said(answer), user({"toolResult": result})]
    ask(messages=turns, toolConfig=tools)
    _, came, back = last(upstream)["messages"]
    assert came["content"] == [
        {"text": "I look for <WORD_1>."},
        call(name="<WORD_1>", also=["<WORD_3>", 7, None]),
    ]
    assert back["content"][0]["toolResult"]["toolUseId"] == "tooluse_1"
    assert not any(map(upstream.shows, (CANARY, "Quillimar", "Jarndyce", "ops@example.org")))


def test_a_tool_whose_name_is_private_is_refused(upstream, client):
    tool = {"toolSpec": {"name": "ada-4111111111111111", "inputSchema": {"json": {}}}}
    with pytest.raises(ClientError, match=r"toolConfig\.tools\[0\]\.toolSpec\.name") as error:
        client.converse(
            modelId=MODEL,
            messages=[user("write to ada@example.org")],
            toolConfig={"tools": [tool]},
        )
    assert "4111" not in str(error.value)


def test_the_input_of_a_tool_is_json_whatever_is_put_in_it(upstream, ask):
    assert said(ask(messages=[user(PATH)]))["content"][0]["text"] == PATH
    released = last(upstream)["messages"][0]["content"][0]["text"]
    upstream.answer = claude(message(call(path=released), stop="tool_use"))
    assert said(ask(messages=[user(PATH)]))["content"] == [call(path=PATH)]


def test_reasoning_goes_back_as_it_came(upstream, ask):
    thinking = "<WORD_1> is asked about. \\n <WORD_3> may know."
    upstream.answer = claude(message(thought(thinking), {"text": "About <WORD_1>:"}))
    turns = [user(ASKED)]
    fields = {
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "top_k": 5,
        "of": {"note": CANARY},
    }
    answer = ask(messages=turns, additionalModelRequestFields=fields)
    sent = last(upstream)["additionalModelRequestFields"]
    assert sent["thinking"] == fields["thinking"]
    assert sent["top_k"] == 5
    assert "<WORD_1>" in str(sent)
    restored = f"{CANARY} is asked about. \\n Quillimar may know."
    assert said(answer)["content"][0] == thought(restored)
    turns += [said(answer), user("and")]
    ask(messages=turns)
    assert last(upstream)["messages"][1]["content"][0] == thought(thinking)
    # What was not signed here is left out with the block around it.
    turns[1] = {"role": "assistant", "content": [thought(f"{CANARY} it is"), {"text": "yes"}]}
    ask(messages=turns)
    assert len(last(upstream)["messages"][1]["content"]) == 1
    assert not upstream.shows(CANARY)


def test_documents(upstream, client):
    document = {
        "format": "txt",
        "name": f"{CANARY} 2026",
        "source": {"text": f"{CANARY} owes 4111 1111 1111 1111"},
        "context": f"of {CANARY}",
    }
    client.converse(modelId=MODEL, messages=[user({"document": document}, "what is it")])
    sent = last(upstream)["messages"][0]["content"][0]["document"]
    assert sent["name"] == "WORD-1 WORD-2"  # the API refuses a placeholder there
    assert not upstream.shows(CANARY)
    seen = len(upstream.asked)
    media: list[dict[str, Any]] = [
        {"document": {**document, "source": {"bytes": b"text"}}},
        {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}},
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://of-us/a.png"}}}},
    ]
    for block in media:
        with pytest.raises(ClientError, match="cannot be protected") as error:
            client.converse(modelId=MODEL, messages=[user(block)])
        assert error.value.response["Error"]["Code"] == "ValidationException"
    assert len(upstream.asked) == seen


def test_variables_and_metadata(upstream, client):
    client.converse(
        modelId="arn:aws:bedrock:eu-west-1:123456789012:prompt/ABCDEFGHIJ:1",
        messages=[user("x")],
        promptVariables={"who": {"text": f"for {CANARY}"}},
        requestMetadata={"user": CANARY},
        guardrailConfig={"guardrailIdentifier": "abc1", "guardrailVersion": "1"},
        outputConfig={
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"name": "a", "schema": '{"type": "object"}'}},
            }
        },
    )
    sent = last(upstream)
    assert set(sent["promptVariables"]) == {"who"}
    assert sent["requestMetadata"]["user"].startswith("user-")
    assert sent["guardrailConfig"] == {"guardrailIdentifier": "abc1", "guardrailVersion": "1"}
    form = sent["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    assert form == {"name": "a", "schema": '{"type": "object"}'}
    assert not upstream.shows(CANARY)


# ---- keys and errors -------------------------------------------------------------------------------------------------


def test_a_signature_is_never_sent_on(upstream, privatizer):
    root = upstream.url.removesuffix("/v1")
    with serving(Gateway(privatizer=privatizer, upstream=root), path="") as url:
        with client_of(url) as client, pytest.raises(ClientError, match="AWS_BEARER") as error:
            client.converse(modelId=MODEL, messages=[user(ASKED)])
        assert error.value.response["Error"]["Code"] == "AccessDeniedException"
        assert upstream.asked == []
        with httpx2.Client(trust_env=False) as http:  # as the client sends it over TLS
            headers = {"authorization": "Bearer bedrock-api-key-of-the-client"}
            body = {"messages": [user(ASKED)]}
            answer = http.post(f"{url}/model/{IN_PATH}/converse", json=body, headers=headers)
    assert said(answer.json())["content"] == [{"text": ASKED}]
    assert upstream.asked[-1].headers["authorization"] == headers["authorization"]


def test_the_key_of_the_client_may_be_one_of_the_gateway(upstream, privatizer, tmp_path):
    path = str(tmp_path / "keys.json")
    secret = GatewayKeys(path, new=True).create("ada")
    policy = policy_of(upstream, keys=path)
    with serving(Gateway(privatizer=privatizer, policy=policy), path="") as url:
        with client_of(url) as client, pytest.raises(ClientError, match="not know the key"):
            client.converse(modelId=MODEL, messages=[user(ASKED)])
        with client_of(url, secret) as client:
            answer = client.converse(modelId=MODEL, messages=[user(ASKED)])
    assert said(answer)["content"] == [{"text": ASKED}]
    assert not upstream.shows(secret)


def test_errors_of_the_upstream_keep_their_type(upstream, ask):
    upstream.answer = lambda asked: (
        429,
        {"x-amzn-ErrorType": "ThrottlingException", "x-amzn-RequestId": "r-1"},
        {"message": "<WORD_1> asks too much"},
    )
    with pytest.raises(ClientError) as error:
        ask(messages=[user(CANARY)])
    assert error.value.response["Error"] == {
        "Message": f"{CANARY} asks too much",
        "Code": "ThrottlingException",
    }
    assert error.value.response["ResponseMetadata"]["RequestId"] == "r-1"


def test_errors_of_the_gateway_have_the_form_of_aws(running, upstream, client):
    with pytest.raises(ClientError) as error:
        client.converse(modelId=f"{CANARY}@x y", messages=[user("x")])
    assert error.value.response["Error"]["Code"] == "ValidationException"
    assert CANARY not in str(error.value.response)
    with httpx2.Client(trust_env=False) as http:
        broken = http.post(f"{running[1]}/model/a.b/converse", content=b"{}")
    assert broken.status_code == 415
    assert broken.headers["x-amzn-errortype"] == "ValidationException"
    assert upstream.asked == []


def test_an_error_within_a_stream(upstream, client):
    begun = itertools.islice(events(message({"text": "It is <WORD_1> who"})), 12)
    error = Event("throttlingException", {"message": "<WORD_1> asks too much"})
    upstream.answer = lambda asked: stream_of([*begun, error])
    with pytest.raises(EventStreamError) as raised:
        read(client)
    assert raised.value.response["Error"] == {
        "Code": "throttlingException",
        "Message": f"{CANARY} asks too much",
    }


@pytest.mark.parametrize("broken", ["end", "bytes"])
def test_a_stream_that_breaks_off_ends_with_an_error(upstream, client, broken):
    status, headers, pieces = stream_of(events(message({"text": "It is <WORD_1>"})))
    bad = pieces[8][:-1] + bytes([pieces[8][-1] ^ 1])  # its sum is wrong
    cut = pieces[:8] + ([bad, *pieces[9:]] if broken == "bytes" else [])
    upstream.answer = lambda asked: (status, headers, cut)
    with pytest.raises(EventStreamError, match="broke off"):
        read(client)


def test_without_its_reader_a_stream_is_refused(upstream, client, monkeypatch):
    def create_reader(_):
        with explain_missing():
            raise ModuleNotFoundError(name="botocore.eventstream")

    monkeypatch.setattr(AwsFraming, "create_reader", create_reader)
    with pytest.raises(ClientError, match=r"textveil\[bedrock\].*without a stream"):
        client.converse_stream(modelId=MODEL, messages=[user(CANARY)])
    assert upstream.asked == []


# ---- pieces ----------------------------------------------------------------------------------------------------------

ANSWER = message(
    thought("Hm, <WORD_1>, <WORD_1_X> < <WORD_2>"),
    {"text": "See <WORD_1> < <WORD_2>, <WORD_9>"},
    call(path="<WORD_2>", more=[{"of": "<WORD_1> é"}]),
    {"text": "and <WORD_2>"},
)


def restoring():
    session = Session()
    with session.noting() as notes:
        notes.assign_placeholder("WORD", CANARY)
        notes.assign_placeholder("WORD", PATH)
    return AnswerRestorer(session)


def cuts(text):
    rng = random.Random(7)
    yield list
    yield lambda whole: [whole]
    yield from (lambda whole, at=at: [whole[:at], whole[at:]] for at in range(1, len(text)))
    for _ in range(30):
        places = sorted(rng.sample(range(len(text)), 5))
        yield lambda whole, places=places: [
            whole[i:j] for i, j in itertools.pairwise([0, *places, len(whole)])
        ]


def test_every_cut_gives_the_answer_that_comes_whole():
    whole = restoring().restore_json(ANSWER, bedrock.CONVERSE_ANSWER)
    for cut in cuts("See <WORD_1> < <WORD_2>, <WORD_9>" * 2):
        stream = bedrock.ConverseEvents(restoring())
        made = [each for event in events(ANSWER, cut) for each in stream.feed(event)]
        assert stream.is_complete
        assert list(stream.close()) == []
        assert not any("p" in each.data for each in made)
        came = collect({each.name: each.data} for each in made)
        assert said(came) == said(whole)
        assert stream.messages == [(said(ANSWER), said(whole))]


def test_bytes_may_be_cut_anywhere(upstream, client):
    def answer(asked):
        status, headers, pieces = stream_of(events(message({"text": "It is <WORD_1>."}, call(a=1))))
        raw = b"".join(pieces)
        return status, headers, [raw[i : i + 7] for i in range(0, len(raw), 7)]

    upstream.answer = answer
    assert said(collect(read(client)))["content"] == [{"text": f"It is {CANARY}."}, call(a=1)]


def test_a_message_is_written_as_the_client_reads_it():
    buffer = EventStreamBuffer()
    buffer.add_data(AwsFraming().write(Event("contentBlockDelta", {"delta": {"text": "é🙂"}})))
    (came,) = buffer
    assert json.loads(came.payload) == {"delta": {"text": "é🙂"}}
    assert came.headers == {
        ":event-type": "contentBlockDelta",
        ":content-type": "application/json",
        ":message-type": "event",
    }


# ---- leaves ----------------------------------------------------------------------------------------------------------


def planted(body):
    """A request with something private wherever its table protects it, and how often."""
    changed: dict[Any, Any] = {}
    for count, (path, act, value) in enumerate(find_leaves(body, bedrock.CONVERSE_REQUEST)):
        secret = f"{CANARY}{count}@example.org"
        if act in (Act.PROTECT, Act.SIGNED):
            changed[path] = f"Write to {secret} now"
        elif act in (Act.OBJECT, Act.UNKNOWN):
            changed[path] = {"to": [secret, {"of": {"them": secret}}]}
        elif act is Act.SCHEMA:
            changed[path] = (
                f"of {secret}" if isinstance(value, str) else {"description": f"of {secret}"}
            )
        elif act is Act.USER:
            changed[path] = secret
    return replace_leaves(body, changed), len(changed)


def leak(running, privatizer):
    upstream, _ = running
    upstream.asked.clear()
    upstream.answer = claude(message({"text": "yes"}))
    body = without_repeats(next(samples(load_shape("ConverseStreamRequest"))), 3)
    sent, count = planted(body)
    made = Gateway(privatizer=privatizer, policy=policy_of(upstream, media="pass"))
    with serving(made, path="") as url, httpx2.Client(trust_env=False) as http:
        assert http.post(f"{url}/model/a.b/converse", json=sent).status_code == 200
    assert count > 35
    assert len(upstream.asked) == 1
    return upstream.shows(CANARY)


def test_nothing_private_leaves_in_any_leaf(running, privatizer):
    """Of a request with all that one can have."""
    assert not leak(running, privatizer)


def test_a_table_that_passes_a_leaf_is_caught(running, privatizer, monkeypatch):
    fields = {**(bedrock.CONVERSE_REQUEST.fields or {}), "promptVariables": any_value(Act.PASS)}
    broken = replace(bedrock.CONVERSE, request=LeafRule(fields=fields))
    monkeypatch.setattr(registry, "CONVERSE", broken)
    assert leak(running, privatizer)


def test_everything_is_restored_in_any_leaf_of_an_answer():
    answer = next(samples(load_shape("ConverseResponse")))
    found = list(find_leaves(answer, bedrock.CONVERSE_ANSWER))
    texts = [leaf.path for leaf in found if leaf.act in (Act.PROTECT, Act.SIGNED)]
    inputs = [leaf.path for leaf in found if leaf.act is Act.OBJECT]
    assert len(texts) > 10
    assert len(inputs) > 2
    came = replace_leaves(
        answer,
        {path: "<WORD_1>" if path in texts else {"of": ["<WORD_1>"]} for path in texts + inputs},
    )
    made = json.dumps(restoring().restore_json(came, bedrock.CONVERSE_ANSWER))
    assert made.count(CANARY) == len(texts) + len(inputs)
    assert "<WORD_1>" not in made
