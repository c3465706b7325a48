"""Completions, embeddings, moderations and models through the gateway, with the SDK of OpenAI."""

import json

import openai
import pytest
from tests.gateway.servers import serving, serving_upstream
from tests.gateway.specimens import specimens
from tests.gateway.test_field_rules import classified
from tests.gateway.test_gateway import client_of
from tests.gateway.test_gateway import environment as environment

from textveil import Privatizer
from textveil.gateway import Gateway
from textveil.gateway.policy.policy import Policy
from textveil.gateway.protocols import completions, embeddings, moderations
from textveil.gateway.protocols.field_rules import Act, find_leaves

CANARY, MAIL = "Blorvequine", "b.jarndyce@example.net"
MODEL_LIST = {
    "object": "list",
    "data": [{"id": "meta/llama-9", "object": "model", "created": 1, "owned_by": "x"}],
}


def sse(*events):
    """The bytes of a stream."""
    return "".join(
        f"data: {each if isinstance(each, str) else json.dumps(each)}\n\n" for each in events
    ).encode()


def completion(**choice):
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "logprobs": None, "finish_reason": None, **choice}],
    }


def said(asked):
    """What the scripted upstream answers."""
    path, body = asked.path.partition("?")[0], asked.body
    if path == "/v1/models":
        return MODEL_LIST
    if path.startswith("/v1/models/"):
        return MODEL_LIST["data"][0]
    if path == "/v1/embeddings":
        count = len(body["input"]) if isinstance(body["input"], list) else 1
        vectors = [
            {"object": "embedding", "index": i, "embedding": [0.5, float(i)]} for i in range(count)
        ]
        return {
            "object": "list",
            "data": vectors,
            "model": "m",
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }
    if path == "/v1/moderations":
        return {
            "id": "modr-1",
            "model": "m",
            "results": [{"flagged": False, "categories": {"hate": False}}],
        }
    prompt = body["prompt"] if isinstance(body["prompt"], str) else "|".join(body["prompt"])
    probable = {
        "tokens": [prompt],
        "token_logprobs": [-1.0],
        "text_offset": [0],
        "top_logprobs": None,
    }
    if not body.get("stream"):
        text = f"{prompt} and {prompt.split()[0]}" if body.get("echo") else prompt.split()[0]
        return completion(text=text, finish_reason="stop", logprobs=probable)
    pieces = [completion(text=letter, logprobs=probable) for letter in prompt]
    return [sse(each) for each in [*pieces, completion(text="", finish_reason="stop"), "[DONE]"]]


@pytest.fixture
def upstream():
    with serving_upstream(said) as server:
        yield server


@pytest.fixture
def privatizer(small_table):
    return Privatizer("placeholder", table=small_table)


@pytest.fixture
def client(upstream, privatizer):
    with (
        serving(Gateway(privatizer=privatizer, upstream=upstream.url)) as url,
        client_of(url) as made,
    ):
        yield made


def test_a_completion_is_restored_and_its_prompt_too(client, upstream):
    answer = client.completions.create(
        model="m", prompt=f"{CANARY} is", suffix=CANARY, stop=["is"], logprobs=3
    )
    assert answer.choices[0].text == CANARY
    assert answer.choices[0].logprobs is None
    sent = upstream.asked[-1].body
    assert sent == {
        "model": "m",
        "prompt": "<WORD_1> is",
        "suffix": "<WORD_1>",
        "stop": ["is"],
        "logprobs": 3,
    }
    answer = client.completions.create(model="m", prompt=[f"{CANARY} is"], echo=True)
    assert answer.choices[0].text == f"{CANARY} is and {CANARY}"
    assert CANARY not in upstream.seen


def test_a_completion_streams(client, upstream):
    chunks = list(client.completions.create(model="m", prompt=f"is {CANARY} <", stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == f"is {CANARY} <"
    assert [chunk.choices[0].finish_reason for chunk in chunks][-1] == "stop"
    assert all(chunk.choices[0].logprobs is None for chunk in chunks)
    assert CANARY not in upstream.seen


def test_a_completion_that_breaks_off_ends_with_an_error(client, upstream):
    upstream.answer = lambda _: [sse(completion(text="is <WORD_1"))]
    with pytest.raises(openai.APIError, match="broke off"):
        list(client.completions.create(model="m", prompt=f"is {CANARY}", stream=True))


@pytest.mark.parametrize("tokens", [[1, 2], [[1, 2], [3]]])
def test_tokens_are_refused_unless_the_policy_lets_them_pass(client, upstream, privatizer, tokens):
    for ask in (
        lambda: client.completions.create(model="m", prompt=tokens),
        lambda: client.embeddings.create(model="m", input=tokens),
    ):
        with pytest.raises(openai.BadRequestError, match="cannot be protected"):
            ask()
    assert upstream.asked == []
    passing = Gateway(privatizer=privatizer, upstream=upstream.url, policy=Policy(media="pass"))
    with serving(passing) as url, client_of(url) as other:
        other.embeddings.create(model="m", input=tokens)
    assert upstream.asked[-1].body["input"] == tokens


def test_embeddings_are_those_of_the_release(client, upstream):
    answer = client.embeddings.create(
        model="m",
        input=[f"is {CANARY}", CANARY],
        user=CANARY,
        dimensions=2,
        encoding_format="float",
    )
    assert [each.embedding for each in answer.data] == [[0.5, 0.0], [0.5, 1.0]]
    sent = upstream.asked[-1].body
    assert sent["input"] == ["is <WORD_1>", "<WORD_1>"]
    assert sent["user"].startswith("user-")
    assert (
        client.embeddings.create(model="m", input="is").data[0].embedding
    )  # as base64, which the SDK asks for


def test_moderations(client, upstream):
    assert client.moderations.create(model="m", input=f"is {CANARY}").results[0].flagged is False
    assert upstream.asked[-1].body == {"model": "m", "input": "is <WORD_1>"}
    client.moderations.create(input=[{"type": "text", "text": CANARY}])
    assert upstream.asked[-1].body == {"input": [{"type": "text", "text": "<WORD_1>"}]}
    with pytest.raises(openai.BadRequestError, match="image_url"):
        client.moderations.create(input=[{"type": "image_url", "image_url": {"url": "data:"}}])


def test_models_are_those_of_the_upstream(client, upstream):
    assert [each.id for each in client.models.list()] == ["meta/llama-9"]
    assert upstream.asked[-1].headers["authorization"] == "Bearer sk-of-the-client"
    assert client.models.retrieve("meta/llama-9").owned_by == "x"
    assert [each.path for each in upstream.asked] == ["/v1/models", "/v1/models/meta/llama-9"]
    client.models.list(extra_query={"limit": 3})
    assert upstream.asked[-1].path == "/v1/models?limit=3"


@pytest.mark.parametrize("path", ["/models/..%2Ffiles", "/models/a/../../files", "/models/%3Fa"])
def test_nothing_else_is_asked_in_the_name_of_models(client, upstream, path):
    with pytest.raises((openai.BadRequestError, openai.NotFoundError)):
        client.get(path, cast_to=object)
    assert upstream.asked == []


def test_what_is_asked_besides_is_read(client, upstream):
    client.get(f"/models?q={CANARY}", cast_to=object)
    assert CANARY not in upstream.asked[-1].path


def test_a_name_in_an_address_is_never_dropped(upstream, privatizer):
    made = Gateway(privatizer=privatizer, upstream=upstream.url, policy=Policy(unknown="drop"))
    with serving(made) as address, client_of(address) as client:
        with pytest.raises(openai.BadRequestError, match="wrong type"):
            client.get("/models/a%20b", cast_to=object)
        client.get(f"/models?q={CANARY}", cast_to=object)
    assert [each.path for each in upstream.asked] == ["/v1/models"]


def test_an_error_of_the_upstream_keeps_its_status(client, upstream):
    upstream.answer = lambda _: (
        404,
        {"error": {"message": "no such model", "code": "model_not_found"}},
    )
    with pytest.raises(openai.NotFoundError, match="no such model") as error:
        client.models.retrieve("x")
    assert error.value.code == "model_not_found"


@pytest.mark.parametrize(
    "operation", [completions.COMPLETIONS, embeddings.EMBEDDINGS, moderations.MODERATIONS]
)
def test_no_canary_leaves(client, upstream, operation):
    def text(act):
        return (
            None
            if act in (Act.MEDIA, Act.REFUSE, Act.PASS)
            else MAIL
            if act is Act.SCHEMA
            else CANARY
        )

    upstream.answer = lambda _: {"choices": []}
    bodies = specimens(operation.request, text)
    assert len(bodies) > 1
    for body in bodies:
        client.post(
            operation.path,
            body=body | {"stream": False} if "stream" in body else body,
            cast_to=object,
        )
    assert CANARY not in upstream.seen
    assert MAIL not in upstream.seen
    assert upstream.seen.count("<WORD") >= len(bodies)


REQUEST_LEAVES = [
    (
        completions.COMPLETION_REQUEST,
        "model prompt prompt[] logit_bias{key} stop stop[] suffix user",
    ),
    (embeddings.EMBEDDING_REQUEST, "input input[] model user"),
    (
        moderations.MODERATION_REQUEST,
        "input input[] input[]<image_url>.image_url.url input[]<text>.text model",
    ),
]


@pytest.mark.parametrize(("rule", "paths"), REQUEST_LEAVES)
def test_each_leaf_has_an_act(rule, paths):
    assert [path for path in paths.split() if not classified(rule, path)] == []


def test_numbers_among_texts_are_media():
    found = find_leaves({"prompt": ["a", 1, [2]]}, completions.COMPLETION_REQUEST)
    assert [leaf.act for leaf in found] == [Act.PROTECT, Act.MEDIA, Act.MEDIA]


def test_an_address_is_no_name_of_a_model(client, upstream):
    with pytest.raises(openai.BadRequestError, match="model"):
        client.models.retrieve(MAIL)
    assert upstream.asked == []
