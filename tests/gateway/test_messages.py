"""Anthropic messages through the gateway, with the SDK of Anthropic: only the base URL is another."""

import base64
import copy
import hashlib
import itertools
import json
import random
from typing import Any

import httpx2
import pytest
from tests.gateway.sdk_samples import samples, without_repeats
from tests.gateway.servers import serving, serving_upstream
from tests.gateway.test_field_rules import unclassified
from tests.gateway.test_gateway import environment  # noqa: F401

from textveil import Privatizer, Session
from textveil.gateway import Gateway
from textveil.gateway.policy.policy import Policy
from textveil.gateway.protocols import messages as protocol
from textveil.gateway.protocols.field_rules import Act, Path, find_leaves, replace_leaves
from textveil.gateway.protocols.operation import Event
from textveil.gateway.protocols.restoring import AnswerRestorer
from textveil.session import SessionStore

anthropic = pytest.importorskip("anthropic")

from anthropic import types  # noqa: E402
from anthropic.types import beta, message_count_tokens_params, message_create_params  # noqa: E402
from anthropic.types.beta import message_create_params as beta_params  # noqa: E402

CANARY = "Blorvequine"
ASKED = f"{CANARY} met Quillimar"
MODEL = {"model": "claude-opus-5", "max_tokens": 1000}
TOOL = {
    "name": "find_person",
    "description": "Finds people. Ask ops@example.org for access.",
    "input_schema": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    },
}
PATH = f'C:\\{CANARY}\\"new"'
"""What has to be escaped in JSON."""


# ---- a server that speaks as Anthropic's does ------------------------------------------------------------------------


def signature(thinking):
    return base64.b64encode(hashlib.sha256(thinking.encode()).digest()).decode()


def thought(thinking):
    return {"type": "thinking", "thinking": thinking, "signature": signature(thinking)}


def said(text, citations=None):
    return {"type": "text", "text": text, "citations": citations}


def call(**given):
    return {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "find_person",
        "input": given,
        "caller": {"type": "direct"},
    }


def message(*content, stop_reason="end_turn", stop_sequence=None):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": stop_sequence,
        "stop_details": None,
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }


def events(whole, cut):
    """The events of an answer, its texts cut into pieces."""
    ends = {name: whole[name] for name in ("stop_reason", "stop_sequence")}
    yield {"type": "message_start", "message": {**whole, "content": [], **dict.fromkeys(ends)}}
    yield {"type": "ping"}
    for index, block in enumerate(whole["content"]):
        kind = block["type"]
        empty: dict[str, dict[str, Any]] = {
            "text": {"text": "", "citations": None},
            "thinking": {"thinking": "", "signature": ""},
        }
        begun = {**block, **empty.get(kind, {}), **({"input": {}} if "input" in block else {})}
        yield {"type": "content_block_start", "index": index, "content_block": begun}

        def delta(kind, index=index, **more):
            return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}

        if kind == "text":
            yield from (delta("text_delta", text=piece) for piece in cut(block["text"]))
            yield from (
                delta("citations_delta", citation=each) for each in block["citations"] or ()
            )
        if kind == "thinking":
            yield from (delta("thinking_delta", thinking=piece) for piece in cut(block["thinking"]))
            yield delta("signature_delta", signature=block["signature"])
        if "input" in block:
            yield delta("input_json_delta", partial_json="")
            pieces = cut(json.dumps(block["input"]))
            yield from (delta("input_json_delta", partial_json=piece) for piece in pieces)
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": ends, "usage": {"output_tokens": 4}}
    yield {"type": "message_stop"}


def sse(event):
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def refusal(status, kind, says):
    return status, {
        "type": "error",
        "error": {"type": kind, "message": says},
        "request_id": "req_1",
    }


def text_of(block_or_text):
    if isinstance(block_or_text, str):
        return block_or_text
    return "\n".join(block.get("text", "") for block in block_or_text)


def claude(*turns, cut=list):
    """Answers with contents in turn, or else with the last message; it checks signatures, as the real one does."""
    following = iter(turns)

    def answer(asked):
        for own in asked.body["messages"]:
            for block in own["content"] if isinstance(own["content"], list) else ():
                if block["type"] == "thinking" and block["signature"] != signature(
                    block["thinking"]
                ):
                    return refusal(
                        400, "invalid_request_error", "Invalid `signature` in `thinking` block"
                    )
        if asked.path.endswith("/count_tokens"):
            return {"input_tokens": len(json.dumps(asked.body))}
        echo = said(text_of(asked.body["messages"][-1]["content"]))
        whole = next(following, None) or message(echo)
        return (sse(event) for event in events(whole, cut)) if asked.body.get("stream") else whole

    return answer


@pytest.fixture(scope="module")
def privatizer(small_table):
    return Privatizer("placeholder", table=small_table)


@pytest.fixture(scope="module")
def running(privatizer):
    with (
        serving_upstream(claude()) as server,
        serving(
            Gateway(privatizer=privatizer, upstream=server.url, policy=Policy(timeout=5))
        ) as url,
    ):
        yield server, url


@pytest.fixture
def upstream(running):
    running[0].asked.clear()
    running[0].answer = claude()
    return running[0]


@pytest.fixture
def client(running):
    with client_of(running[1], "sk-ant-of-the-client") as made:
        yield made


def client_of(url, key):
    http = httpx2.Client(trust_env=False)
    return anthropic.Anthropic(
        base_url=url.removesuffix("/v1"), api_key=key, max_retries=0, http_client=http
    )


@pytest.fixture(params=["whole", "streamed"])
def ask(request, client):
    """Asks for a message, whole or as a stream."""

    def asked(**body):
        if request.param == "whole":
            return client.messages.create(**MODEL, **body)
        with client.messages.stream(**MODEL, **body) as stream:
            return stream.get_final_message()

    return asked


def user(content):
    return {"role": "user", "content": content}


def back(answer):
    """An answer as the SDK sends it back."""
    return {"role": "assistant", "content": answer.content}


def last(upstream):
    return upstream.asked[-1].body


# ---- conversations ---------------------------------------------------------------------------------------------------


def test_two_turns(upstream, ask):
    turns = [user(ASKED)]
    answer = ask(system=f"You help {CANARY}.", messages=turns)
    assert answer.content[0].text == ASKED
    assert answer.stop_reason == "end_turn"
    assert answer.usage.output_tokens == 4
    first = last(upstream)
    assert CANARY not in json.dumps(first)
    turns += [
        back(answer),
        user([{"type": "text", "text": CANARY, "cache_control": {"type": "ephemeral"}}]),
    ]
    assert ask(system=f"You help {CANARY}.", messages=turns).content[0].text == CANARY
    second = last(upstream)
    assert second["system"] == first["system"]
    assert second["messages"][0] == first["messages"][0]
    assert second["messages"][1]["content"] == [
        {"type": "text", "text": first["messages"][0]["content"]}
    ]
    assert second["messages"][2]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert CANARY not in upstream.seen


def test_the_system_prompt_is_text_or_blocks_and_the_conversation_is_the_same(upstream, client):
    said, blocks = f"For {CANARY}", [{"type": "text", "text": f"For {CANARY}"}]
    client.messages.create(**MODEL, system=said, messages=[user("x")])
    raw = client.messages.with_raw_response.create(**MODEL, system=blocks, messages=[user("x")])
    assert json.loads(raw.headers["textveil-statement"])["new"] == 0
    assert upstream.asked[0].body["system"] == last(upstream)["system"][0]["text"]


def test_a_client_that_names_itself_anew_goes_on_with_its_conversation(upstream, client):
    turns, statements = [user(f"{ASKED} of one who names itself")], []
    for number in range(3):
        names = {
            "type": "text",
            "text": f"x-anthropic-billing-header: cc_version=2.1; cch={number}f{number};",
        }
        system = [names, {"type": "text", "text": f"You follow {CANARY}."}]
        raw = client.messages.with_raw_response.create(**MODEL, system=system, messages=turns)
        turns += [back(raw.parse()), user(f"And {CANARY}?")]
        statements.append(json.loads(raw.headers["textveil-statement"]))
    assert [each["new"] for each in statements] == [
        3,
        2,
        1,
    ]  # what names it, and a question that was not asked before
    assert [each["repeated"] for each in statements] == [0, 3, 6]
    assert CANARY not in upstream.seen


def test_tools_there_and_back(upstream, ask):
    upstream.answer = claude(
        message(
            said("I look for <WORD_1>."),
            call(name="<WORD_1>", also=["<WORD_3>", 7, None]),
            stop_reason="tool_use",
        )
    )
    turns = [user(ASKED)]
    answer = ask(messages=turns, tools=[TOOL], tool_choice={"type": "tool", "name": "find_person"})
    assert answer.stop_reason == "tool_use"
    assert answer.content[0].text == f"I look for {CANARY}."
    assert answer.content[1].input == {"name": CANARY, "also": ["Quillimar", 7, None]}
    sent = last(upstream)
    assert sent["tools"][0]["name"] == "find_person"
    assert sent["tools"][0]["input_schema"] == TOOL["input_schema"]
    assert sent["tools"][0]["description"] == "Finds people. Ask <EMAIL_1> for access."
    found = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": f"Nobody is called {CANARY} Jarndyce",
    }
    turns += [back(answer), user([found])]
    answer = ask(messages=turns, tools=[TOOL])
    assert answer.content[0].text == ""
    _, came, result = last(upstream)["messages"]
    assert came["content"][0] == {"type": "text", "text": "I look for <WORD_1>."}
    assert came["content"][1] == call(name="<WORD_1>", also=["<WORD_3>", 7]) | {
        "input": came["content"][1]["input"]
    }
    assert came["content"][1]["input"] == {"name": "<WORD_1>", "also": ["<WORD_3>", 7, None]}
    assert result["content"][0]["tool_use_id"] == "toolu_1"
    assert "<WORD_1>" in result["content"][0]["content"]
    assert not any(word in upstream.seen for word in (CANARY, "Quillimar", "Jarndyce", "ops@"))


def test_the_input_of_a_tool_is_json_whatever_is_put_in_it(upstream, ask):
    asked = ask(messages=[user(PATH)])
    assert asked.content[0].text == PATH
    released = last(upstream)["messages"][0]["content"]
    upstream.answer = claude(message(call(path=released), stop_reason="tool_use"))
    assert ask(messages=[user(PATH)]).content[0].input == {"path": PATH}


def test_thinking_goes_back_as_it_came(upstream, ask):
    thinking = "<WORD_1> is asked about. \\n <WORD_3> may know."
    upstream.answer = claude(
        message(thought(thinking), said("About <WORD_1>:"), call(name="<WORD_3>"))
    )
    turns = [user(ASKED)]
    answer = ask(messages=turns, thinking={"type": "enabled", "budget_tokens": 1024})
    assert answer.content[0].thinking == f"{CANARY} is asked about. \\n Quillimar may know."
    turns += [
        back(answer),
        user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "none"}]),
    ]
    ask(messages=turns)
    assert last(upstream)["messages"][1]["content"][0] == thought(thinking)
    ask(
        messages=turns, system="it is so"
    )  # another conversation, where nothing is known but the thinking
    assert last(upstream)["messages"][1]["content"][0] == thought(thinking)
    assert CANARY not in upstream.seen


def test_thinking_that_is_not_known_is_left_out(running, upstream, ask):
    upstream.answer = claude(message(thought("It is <WORD_1>."), said("About <WORD_1>:")))
    answer = ask(messages=[user(ASKED)])
    edited = copy.deepcopy(back(answer))
    edited["content"][0].thinking += f" Or {CANARY}."
    ask(messages=[user(ASKED), edited, user("And?")])
    assert last(upstream)["messages"][1]["content"] == [{"type": "text", "text": "About <WORD_1>:"}]
    with client_of(running[1], "sk-ant-of-another") as other:
        other.messages.create(**MODEL, messages=[user(ASKED), back(answer), user("And?")])
    assert [block["type"] for block in last(upstream)["messages"][1]["content"]] == ["text"]
    hidden = {"type": "redacted_thinking", "data": "c2VhbGVk"}
    empty = {
        "type": "thinking",
        "thinking": "",
        "signature": signature(""),
    }  # what the upstream shows nobody
    ask(
        messages=[
            user(ASKED),
            {"role": "assistant", "content": [hidden, empty, said("x")]},
            user("And?"),
        ]
    )
    assert last(upstream)["messages"][1]["content"][:2] == [hidden, empty]
    assert CANARY not in upstream.seen


def test_thinking_outlives_the_gateway(upstream, privatizer, tmp_path, monkeypatch):
    pytest.importorskip("sqlalchemy", reason="the extra `store` is not installed")
    pytest.importorskip("cryptography", reason="the extra `store` is not installed")
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    upstream.answer = claude(message(thought("It is <WORD_1>."), said("yes")))
    turns = [user(CANARY)]
    for _ in range(2):
        with (
            SessionStore(f"sqlite:///{tmp_path / 'veil.db'}") as store,
            serving(Gateway(privatizer=privatizer, upstream=upstream.url, store=store)) as url,
            client_of(url, "sk-ant-1") as client,
        ):
            turns += [back(client.messages.create(**MODEL, messages=turns)), user("And?")]
    assert turns[1]["content"][0].thinking == f"It is {CANARY}."
    assert last(upstream)["messages"][1]["content"][0] == thought("It is <WORD_1>.")


def test_thinking_that_would_mean_somebody_else_is_left_out(upstream, client):
    upstream.answer = claude(message(thought("It is <WORD_1>."), said("yes")))
    answer = client.messages.create(**MODEL, messages=[user(CANARY)])
    upstream.answer = claude()
    client.messages.create(
        **MODEL, messages=[user("Jarndyce"), user(CANARY), back(answer), user("And?")]
    )
    assert [block["type"] for block in last(upstream)["messages"][2]["content"]] == ["text"]


def test_an_answer_without_its_thinking_is_known(upstream, ask):
    upstream.answer = claude(message(thought("It is <WORD_1>."), said("About <WORD_1>, shortly:")))
    answer = ask(messages=[user(ASKED)])
    ask(
        messages=[
            user(ASKED),
            {"role": "assistant", "content": answer.content[1].text},
            user("And?"),
        ]
    )
    assert last(upstream)["messages"][1]["content"] == "About <WORD_1>, shortly:"


def test_documents_and_citations(upstream, ask):
    texts = {"title": f"on {CANARY}", "context": f"by {CANARY}"}
    text = f"{ASKED} ; {CANARY} left Quillimar"
    document = {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": text},
        **texts,
    }
    parts = {
        "type": "document",
        "source": {"type": "content", "content": [{"type": "text", "text": ASKED}]},
    }
    found = {
        "type": "search_result",
        "source": CANARY,
        "title": CANARY,
        "content": [{"type": "text", "text": ASKED}],
    }
    asked = user([document, parts, found, {"type": "text", "text": "Who?"}])
    ask(messages=[asked])
    sent = last(upstream)["messages"][0]["content"]
    title, data = sent[0]["title"], sent[0]["source"]["data"]
    begin = data.rindex("<WORD_3>")
    cited = [
        {"type": "char_location", "cited_text": data, "document_title": title, "document_index": 0}
        | {"start_char_index": 0, "end_char_index": len(data)},
        {
            "type": "char_location",
            "cited_text": data[begin:],
            "document_title": None,
            "document_index": 0,
        }
        | {"start_char_index": begin, "end_char_index": len(data)},
        {
            "type": "char_location",
            "cited_text": "<WORD_3>",
            "document_title": None,
            "document_index": 7,
        }
        | {"start_char_index": 3, "end_char_index": 11},  # where nobody can tell
    ]
    upstream.answer = claude(message(said(f"See {data}", cited)))
    answer = ask(messages=[asked])
    assert answer.content[0].text == f"See {text}"
    first, second, third = answer.content[0].citations
    assert (first.cited_text, first.document_title) == (text, texts["title"])
    assert (first.start_char_index, first.end_char_index) == (0, len(text))
    assert text[second.start_char_index : second.end_char_index] == second.cited_text == "Quillimar"
    assert second.start_char_index > text.index("Quillimar")
    assert (third.cited_text, third.start_char_index) == ("Quillimar", 3)
    ask(messages=[asked, back(answer), user("And?")])
    returned = last(upstream)["messages"][1]["content"][0]["citations"]
    assert returned == [
        {name: value for name, value in each.items() if value is not None} for each in cited
    ]
    assert CANARY not in upstream.seen


def test_words_to_stop_at(upstream, ask):
    upstream.answer = claude(
        message(said("x"), stop_reason="stop_sequence", stop_sequence="<WORD_1>")
    )
    answer = ask(messages=[user(ASKED)], stop_sequences=[CANARY])
    assert last(upstream)["stop_sequences"] == ["<WORD_1>"]
    assert answer.stop_sequence == CANARY


def test_an_answer_in_json(upstream, ask):
    ask(messages=[user(PATH)])
    released = last(upstream)["messages"][0]["content"]
    upstream.answer = claude(
        message(thought(f"So {released}"), said(json.dumps({"path": released})))
    )
    schema = {
        "type": "json_schema",
        "schema": {"type": "object", "description": "of ops@example.org"},
    }
    answer = ask(messages=[user(PATH)], output_config={"format": schema})
    assert json.loads(answer.content[1].text) == {"path": PATH}
    assert answer.content[0].thinking == f"So {PATH}"
    assert "ops@" not in upstream.seen


def test_counting_tokens_draws_nothing_twice(upstream, small_table):
    noise = Privatizer("noise", epsilon=5.0, table=small_table)
    with (
        serving(Gateway(privatizer=noise, upstream=upstream.url)) as url,
        client_of(url, "sk-ant-1") as client,
    ):
        asked = {
            "model": MODEL["model"],
            "system": "garden",
            "messages": [user("house"), user("river")],
        }
        counted = client.messages.with_raw_response.count_tokens(**asked)
        sent = last(upstream)
        assert counted.parse().input_tokens == len(json.dumps(sent))
        assert json.loads(counted.headers["textveil-statement"])["drawn"] == 3
        raw = client.messages.with_raw_response.create(**asked, max_tokens=10)
    assert json.loads(raw.headers["textveil-statement"])["drawn"] == 0
    assert last(upstream) == {**sent, "max_tokens": 10}


def test_only_what_the_api_needs_is_forwarded(upstream, client):
    client.messages.create(
        **MODEL,
        messages=[user("x")],
        metadata={"user_id": CANARY},
        extra_headers={
            "x-api-key": "sk-ant-2",
            "anthropic-beta": "context-1m-2025-08-07, files-api-2025-04-14",
            "anthropic-workspace-id": "wrkspc_01A",
            "X-Who": CANARY,
            "Cookie": CANARY,
        },
    )
    asked = upstream.asked[-1]
    assert asked.headers["x-api-key"] == "sk-ant-2"
    assert asked.headers["authorization"] == "Bearer sk-ant-of-the-client"
    assert asked.headers["anthropic-version"] > "2023-06-01"
    assert asked.headers["anthropic-beta"] == "context-1m-2025-08-07, files-api-2025-04-14"
    assert asked.headers["anthropic-workspace-id"] == "wrkspc_01A"
    assert CANARY not in json.dumps(asked.headers)
    assert asked.body["metadata"]["user_id"].startswith("user-")
    assert CANARY not in upstream.seen
    more = {"anthropic-workspace-id": CANARY, "anthropic-beta": f"to {CANARY}"}
    client.messages.create(**MODEL, messages=[user("x")], extra_headers=more)
    assert CANARY not in json.dumps(upstream.asked[-1].headers)


def test_models(upstream, client):
    upstream.answer = lambda _: {
        "data": [{"type": "model", "id": "claude-opus-5"}],
        "has_more": False,
    }
    assert [model.id for model in client.models.list(limit=5)] == ["claude-opus-5"]
    assert upstream.asked[-1].headers["anthropic-version"]


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "name"),
    [
        (
            {"mcp_servers": [{"type": "url", "url": "https://example.org", "name": CANARY}]},
            "mcp_servers",
        ),
        (
            {"messages": [user([{"type": "image", "source": {"type": "url", "url": CANARY}}])]},
            "url",
        ),
        (
            {
                "messages": [
                    user([{"type": "document", "source": {"type": "file", "file_id": CANARY}}])
                ]
            },
            "file_id",
        ),
        (
            {"messages": [user([{"type": "text", "text": "x", "kind": CANARY}])]},
            "messages[0].content[0].kind",
        ),
        ({"messages": [user([{"type": CANARY, "text": "x"}])]}, "messages[0].content[0]"),
        ({"service_tier": CANARY}, "service_tier"),
    ],
)
def test_what_cannot_be_protected_is_refused_in_the_form_of_the_api(
    upstream, privatizer, more, name
):
    strict = Gateway(privatizer=privatizer, upstream=upstream.url, policy=Policy(unknown="refuse"))
    with (
        serving(strict) as url,
        client_of(url, "sk-ant-1") as client,
        pytest.raises(anthropic.BadRequestError) as error,
    ):
        client.messages.create(**{**MODEL, "messages": [user("x")], "extra_body": more})
    body = error.value.body
    assert (body["type"], body["error"]["type"]) == ("error", "invalid_request_error")
    assert name in body["error"]["message"]
    assert CANARY not in json.dumps(body)
    assert upstream.asked == []


def test_media_pass_by_policy(upstream, privatizer):
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    with (
        serving(
            Gateway(privatizer=privatizer, upstream=upstream.url, policy=Policy(media="pass"))
        ) as url,
        client_of(url, "sk-ant-1") as client,
    ):
        client.messages.create(**MODEL, messages=[user([{"type": "image", "source": source}])])
    assert last(upstream)["messages"][0]["content"][0]["source"] == source


def test_errors_of_the_upstream_keep_their_type(upstream, client):
    upstream.answer = lambda _: refusal(529, "overloaded_error", "Overloaded by <WORD_1>")
    with pytest.raises(anthropic.OverloadedError) as error:
        client.messages.create(**MODEL, messages=[user(CANARY)])
    assert error.value.body["error"] == {
        "type": "overloaded_error",
        "message": f"Overloaded by {CANARY}",
    }


def test_a_stream_that_breaks_off_ends_with_an_error(upstream, client):
    whole = list(events(message(said("<WORD_1> is <WORD_1>")), list))
    upstream.answer = lambda _: (sse(event) for event in whole[:-1])
    with (
        pytest.raises(anthropic.APIStatusError, match="broke off"),
        client.messages.stream(**MODEL, messages=[user(CANARY)]) as stream,
    ):
        stream.until_done()
    reported = refusal(529, "overloaded_error", "Overloaded")[1]
    upstream.answer = lambda _: (sse(event) for event in [*whole[:9], reported])
    pieces: list[str] = []
    stream = client.messages.create(**MODEL, messages=[user(CANARY)], stream=True)
    with pytest.raises(anthropic.APIStatusError, match="Overloaded") as error:
        pieces.extend(event.delta.text for event in stream if event.type == "content_block_delta")
    assert error.value.body["error"]["type"] == "overloaded_error"
    assert "".join(pieces) == "<WORD_"  # what was held back


# ---- streams ---------------------------------------------------------------------------------------------------------

ANSWER = message(
    thought("Is it <WORD_1>? Or <WORD_2>?"),
    said(
        "See <WORD_1> < <WORD_2>, <WORD_9>",
        [{"type": "search_result_location", "cited_text": "<WORD_1>"}],
    ),
    call(path="<WORD_2>", more=[{"of": "<WORD_1> é"}]),
    said("and <WORD_2>"),
    stop_reason="stop_sequence",
    stop_sequence="<WORD_1>",
)


def restoring():
    session = Session()
    with session.noting() as notes:
        notes.assign_placeholder("WORD", CANARY)
        notes.assign_placeholder("WORD", PATH)
    return AnswerRestorer(session)


def fed(came):
    """The answer that a client puts together, and what is remembered of it."""
    stream = protocol.MessageEvents(restoring())
    blocks: list[dict[str, Any]] = []
    started: dict[str, Any] = {}
    for event in [
        *itertools.chain.from_iterable(stream.feed(Event(each["type"], each)) for each in came)
    ]:
        data = event.data
        assert event.name == data["type"]
        if event.name == "message_start":
            started = data["message"]
        elif event.name == "content_block_start":
            blocks.append({**data["content_block"], "json": ""})
        elif event.name == "content_block_delta":
            block, delta = blocks[data["index"]], data["delta"]
            match delta["type"]:
                case "input_json_delta":
                    block["json"] += delta["partial_json"]
                case "citations_delta":
                    block["citations"] = [*(block["citations"] or ()), delta["citation"]]
                case kind:
                    field = kind.removesuffix("_delta")
                    assert not (field == "thinking" and block["signature"])
                    block[field] += delta[field]
        elif event.name == "message_delta":
            started |= data["delta"]
    assert stream.is_complete
    assert list(stream.close()) == []
    for block in blocks:
        if text := block.pop("json"):
            block["input"] = json.loads(text)
    return started | {"content": blocks}, stream.messages


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
    whole = restoring().restore_json(ANSWER, protocol.MESSAGES_ANSWER)
    assert whole["content"][1]["text"] == f"See {CANARY} < {PATH}, <WORD_9>"
    longest = max((json.dumps(block.get("input")) or "" for block in ANSWER["content"]), key=len)
    for cut in cuts(longest):
        made, pairs = fed(events(ANSWER, cut))
        assert made == whole
        assert pairs == [
            (
                {"role": "assistant", "content": ANSWER["content"]},
                {"role": "assistant", "content": whole["content"]},
            )
        ]


def test_events_may_be_cut_anywhere(upstream, client):
    """In lines, in characters, in JSON."""
    whole = message(said("é <WORD_1> 🙂"), call(name="🙂 <WORD_1>"))
    read = "".join(
        f"event: {each['type']}\ndata: {json.dumps(each, ensure_ascii=False)}\n\n"
        for each in events(whole, list)
    )
    upstream.answer = lambda _: (bytes([byte]) for byte in read.encode())
    with client.messages.stream(**MODEL, messages=[user(CANARY)]) as stream:
        answer = stream.get_final_message()
    assert answer.content[0].text == f"é {CANARY} 🙂"
    assert answer.content[1].input == {"name": f"🙂 {CANARY}"}


def test_servers_that_leave_things_out():
    """Texts at the beginning of a block, a whole input at once, no index, and no input at all."""
    begun = [said("It is <WO"), {**call(), "input": {"path": "<WORD_2>"}}, {**call(), "input": {}}]
    came = [{"type": "message_start", "message": message()}]
    for block in begun:
        came.append({"type": "content_block_start", "content_block": block})
        if block["type"] == "text":
            came.append(
                {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "RD_1>"}}
            )
        came.append({"type": "content_block_stop"})
    for i, event in enumerate(each for each in came if each["type"] == "content_block_start"):
        event["index"] = i
    stream = protocol.MessageEvents(restoring())
    shown = [
        event.data
        for each in [*came, {"type": "message_stop"}]
        for event in stream.feed(Event("", each))
    ]
    texts = [each["delta"]["text"] for each in shown if each["type"] == "content_block_delta"]
    starts = [each["content_block"] for each in shown if each["type"] == "content_block_start"]
    assert starts[0]["text"] + "".join(texts) == f"It is {CANARY}"
    assert [start["input"] for start in starts[1:]] == [{"path": PATH}, {}]
    ((before, after),) = stream.messages
    assert before["content"] == [said("It is <WORD_1>"), *begun[1:]]
    assert after["content"][0]["text"] == f"It is {CANARY}"


def test_an_input_that_breaks_off_is_not_remembered():
    came = [
        event
        for event in events(message(call(name="<WORD_1>")), list)
        if event["type"] != "content_block_stop"
    ]
    deltas = [i for i, event in enumerate(came) if event["type"] == "content_block_delta"]
    stream = protocol.MessageEvents(restoring())
    for event in [*came[: deltas[-3]], *came[deltas[-1] + 1 :]]:
        list(stream.feed(Event(event["type"], event)))
    assert stream.is_complete
    assert stream.messages == []


# ---- leaves ----------------------------------------------------------------------------------------------------------

TABLES = [
    (message_create_params.MessageCreateParamsBase, protocol.MESSAGES_REQUEST),
    (message_count_tokens_params.MessageCountTokensParams, protocol.COUNT_REQUEST),
    (types.Message, protocol.MESSAGES_ANSWER),
    (types.MessageTokensCount, protocol.COUNT.answer),
    (types.RawMessageStreamEvent, protocol.EVENT),
    (beta_params.MessageCreateParamsBase, protocol.MESSAGES_REQUEST),
    (beta.BetaMessage, protocol.MESSAGES_ANSWER),
    (beta.BetaRawMessageStreamEvent, protocol.EVENT),
]
HEADERS = {"betas"}
"""Fields of the SDK that are headers."""


@pytest.mark.parametrize(("kind", "rule"), TABLES, ids=[str(i) for i in range(len(TABLES))])
def test_every_leaf_of_the_sdk_has_an_act(kind, rule):
    found = [leaf for value in samples(kind) for leaf in find_leaves(value, rule)]
    assert {
        leaf.path for leaf in found if leaf.act is Act.UNKNOWN and leaf.path[0] not in HEADERS
    } == set()
    assert any(leaf.act is Act.PASS for leaf in found)
    assert [
        path for path in unclassified(kind, rule) if path.partition("[")[0] not in HEADERS
    ] == []


def planted(body):
    """A request with something private wherever its table protects it, and how often."""
    changed: dict[Path, Any] = {}
    count = 0
    for path, act, value in find_leaves(body, protocol.MESSAGES_REQUEST):
        secret = f"{CANARY}{count}@example.org"
        if act in (Act.PROTECT, Act.SIGNED):
            changed[path] = f"Write to {secret} now"
        elif act is Act.OBJECT:
            changed[path] = {"to": [secret, {"of": {"them": secret}}]}
        elif act is Act.SCHEMA:
            changed[path] = (
                f"of {secret}" if isinstance(value, str) else {"description": f"of {secret}"}
            )
        elif act is Act.USER:
            changed[path] = secret
        elif act in (Act.UNKNOWN, Act.REFUSE):
            changed[path] = None
        count += path in changed
    return replace_leaves(body, changed), count


@pytest.mark.parametrize("records", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_nothing_private_leaves_in_any_leaf(records, upstream, privatizer):
    """Of a request with all that one can have; `records` around a leaf tell it from others."""
    upstream.answer = lambda asked: message(said("yes"))
    body = without_repeats(next(samples(beta_params.MessageCreateParamsBase)), records)
    with (
        serving(
            Gateway(privatizer=privatizer, upstream=upstream.url, policy=Policy(media="pass"))
        ) as url,
        client_of(url, "sk-ant-1") as client,
    ):
        sent, count = planted({"model": "m", "messages": [user("x")], **body, "stream": False})
        client.post("/v1/messages", cast_to=object, body=sent)
    assert count > 200
    assert len(upstream.asked) == 1
    assert CANARY.lower() not in upstream.seen.lower()


def test_everything_is_restored_in_any_leaf_of_an_answer():
    answer = next(samples(beta.BetaMessage))
    found = list(find_leaves(answer, protocol.MESSAGES_ANSWER))
    texts = [leaf.path for leaf in found if leaf.act in (Act.PROTECT, Act.SIGNED)]
    inputs = [leaf.path for leaf in found if leaf.act is Act.OBJECT]
    assert len(texts) > 30
    assert len(inputs) > 2
    came = replace_leaves(
        answer,
        {path: "<WORD_1>" if path in texts else {"of": ["<WORD_1>"]} for path in texts + inputs},
    )
    made = json.dumps(restoring().restore_json(came, protocol.MESSAGES_ANSWER))
    assert made.count(CANARY) == len(texts) + len(inputs)
    assert "<WORD_1>" not in made
