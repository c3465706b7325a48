"""OpenAI's SDK, unchanged: conversations with tools, streams cut anywhere, errors, and what leaves the machine."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from tests.gateway.sdk_samples import samples
from tests.gateway.servers import answer_of, serving, serving_upstream, stream_of
from tests.gateway.specimens import specimens
from tests.gateway.test_gateway import client_of, post

from textveil import Privatizer
from textveil.config import registry
from textveil.gateway import Gateway, Policy
from textveil.gateway.protocols import Event, Operation
from textveil.gateway.protocols.chat import CHAT, ChatChunks
from textveil.gateway.protocols.field_rules import Act, find_leaves, format_path, record, text
from textveil.gateway.protocols.restoring import AnswerRestorer
from textveil.session import MessageChain, Session, SessionStore

MAIL, OTHER = "zoë.quillimar@example.org", "b.jarndyce@example.net"
CARD = "4111 1111 1111 1111"
TOOL = {
    "type": "function",
    "function": {
        "name": "send_mail",
        "description": f"Sends a mail; ask {OTHER} if it fails.",
        "parameters": {
            "type": "object",
            "properties": {"to": {"type": "string", "default": OTHER}},
        },
    },
}


@pytest.fixture(scope="module")
def hiding():
    """Hides identifiers, as the profile does, without the tagger."""
    return Privatizer.from_profile("prompt", protect={"detectors": ["patterns", "structure"]})


@pytest.fixture(scope="module")
def upstream():
    with serving_upstream() as made:
        yield made


@pytest.fixture
def client(hiding, upstream):
    upstream.asked.clear()
    with serving(Gateway(privatizer=hiding, upstream=upstream.url)) as url, client_of(url) as made:
        yield made


def user(text):
    return {"role": "user", "content": text}


def call(arguments, id="call_1"):
    return {"id": id, "type": "function", "function": {"name": "send_mail", "arguments": arguments}}


def accumulated(chunks):
    """A stream as clients put it together."""
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            message["content"] += choice.delta.content or ""
            for each in choice.delta.tool_calls or ():
                own = calls.setdefault(each.index, call("", ""))
                own["id"] += each.id or ""
                own["function"]["arguments"] += each.function.arguments or ""
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return message


# ---- conversations ---------------------------------------------------------------------------------------------------


def test_the_message_of_an_answer_goes_back_as_it_came(client, upstream):
    upstream.answer = lambda asked: answer_of(
        {"content": "# To: <EMAIL_1>\n\n**done**", "refusal": None}
    )
    messages: list[Any] = [{"role": "system", "content": "be short"}, user(f"write to {MAIL}")]
    first = client.chat.completions.create(model="m", messages=messages)
    assert first.choices[0].message.content == f"# To: {MAIL}\n\n**done**"
    messages += [first.choices[0].message, user(f"and to {OTHER}, and {MAIL} again")]
    raw = client.chat.completions.with_raw_response.create(model="m", messages=messages)
    sent = upstream.bodies[-1]["messages"]
    assert sent[:2] == upstream.bodies[0]["messages"]
    assert sent[2:] == [
        {"role": "assistant", "content": "# To: <EMAIL_1>\n\n**done**"},
        user("and to <EMAIL_2>, and <EMAIL_1> again"),
    ]
    promise = json.loads(raw.headers["textveil-statement"])
    assert (promise["new"], promise["drawn"], promise["repeated"]) == (1, 0, 3)
    assert raw.headers["textveil-protected"] == "EMAIL=2"
    assert raw.headers["textveil-unresolved"] == "0"


@pytest.mark.parametrize("stream", [False, True])
def test_a_round_trip_of_a_tool(client, upstream, stream):
    said = json.dumps({"to": "<EMAIL_1>", "card": "<CARD_1>", "n": 2})
    pieces = [call(""), *({"function": {"arguments": char}} for char in said)]
    deltas = [{"tool_calls": [{"index": 0, **piece}]} for piece in pieces]
    upstream.answer = lambda asked: (
        stream_of(deltas, "tool_calls")
        if asked.body.get("stream")
        else answer_of({"content": None, "tool_calls": [call(said)]})
    )
    messages: list[Any] = [user(f'mail "{MAIL}" about {CARD}')]
    answer = client.chat.completions.create(
        model="m", messages=messages, tools=[TOOL], stream=stream
    )
    message = accumulated(answer) if stream else answer.choices[0].message.model_dump()
    (made,) = message["tool_calls"]
    assert json.loads(made["function"]["arguments"]) == {"to": MAIL, "card": CARD, "n": 2}
    found = json.dumps({"sent": MAIL, "copy": "c@third.example"}, ensure_ascii=False)
    messages += [message, {"role": "tool", "tool_call_id": "call_1", "content": found}]
    upstream.answer = lambda asked: answer_of(
        {"content": "sent to <EMAIL_1>, <EMAIL_2> and <EMAIL_3>"}
    )
    answer = client.chat.completions.create(model="m", messages=messages, tools=[TOOL])
    assert answer.choices[0].message.content == f"sent to {MAIL}, {OTHER} and c@third.example"
    first, second = upstream.bodies
    assert second["messages"][0] == first["messages"][0] == user('mail "<EMAIL_1>" about <CARD_1>')
    assert (
        second["messages"][1]["tool_calls"][0]["function"]["arguments"] == said
    )  # as the model gave it
    assert json.loads(second["messages"][2]["content"]) == {
        "sent": "<EMAIL_1>",
        "copy": "<EMAIL_3>",
    }
    assert second["tools"] == first["tools"]
    assert first["tools"][0]["function"]["parameters"]["properties"]["to"]["default"] == "<EMAIL_2>"


def test_each_message_is_released_once_with_tools_too(hiding, upstream):
    gateway = Gateway(privatizer=hiding, upstream=upstream.url)
    messages: list[Any] = [user(f"mail {MAIL}")]
    upstream.asked.clear()
    upstream.answer = lambda asked: answer_of(
        {"content": None, "tool_calls": [call('{"to": "<EMAIL_1>"}')]}
    )
    with serving(gateway) as url, client_of(url) as client:
        for turn in range(4):
            raw = client.chat.completions.with_raw_response.create(
                model="m", messages=messages, tools=[TOOL]
            )
            promise = json.loads(raw.headers["textveil-statement"])
            assert (promise["new"], promise["repeated"]) == (
                2,
                3 * turn,
            )  # at first a message and the tools
            assert promise["drawn"] == 0
            result = {
                "role": "tool",
                "tool_call_id": "call_1",
                "content": f"sent {turn} to {OTHER}",
            }
            messages += [raw.parse().choices[0].message, result, user(f"again {turn} {MAIL}")]
    for before, after in zip(upstream.bodies, upstream.bodies[1:], strict=False):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert after["tools"] == before["tools"]
    assert MAIL not in json.dumps(upstream.bodies, ensure_ascii=False)


def test_arguments_that_the_program_makes_up_are_protected(client, upstream):
    """Values, also numbers, and names of fields only where something private stands in them."""
    upstream.answer = lambda asked: answer_of({"content": "ok"})
    said = {
        "to": MAIL,
        "card": int(CARD.replace(" ", "")),
        "n": 1.5,
        "ok": True,
        MAIL: [None, {"password": "hunter2Xy9kq"}],
    }
    calls = [call(json.dumps(said)), call(f"no JSON, {OTHER}", "call_2")]
    client.chat.completions.create(
        model="m", messages=[{"role": "assistant", "tool_calls": calls}, user("x")]
    )
    sent = [
        each["function"]["arguments"] for each in upstream.bodies[-1]["messages"][0]["tool_calls"]
    ]
    assert json.loads(sent[0]) == {
        "to": "<EMAIL_1>",
        "card": "<CARD_1>",
        "n": 1.5,
        "ok": True,
        "<EMAIL_1>": [None, {"password": "<SECRET_1>"}],
    }
    assert sent[1] == "no JSON, <EMAIL_2>"


def test_the_input_of_a_custom_tool_is_text(client, upstream):
    made = {"id": "c", "type": "custom", "custom": {"name": "shell", "input": 'mail "<EMAIL_1>"'}}
    upstream.answer = lambda asked: answer_of({"content": None, "tool_calls": [made]})
    tools: list[Any] = [
        {"type": "custom", "custom": {"name": "shell", "description": f"of {OTHER}"}}
    ]
    messages: list[Any] = [user(f"mail {MAIL}")]
    message = (
        client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
    )
    assert message.tool_calls[0].custom.input == f'mail "{MAIL}"'
    client.chat.completions.create(model="m", messages=[*messages, message, user("x")], tools=tools)
    assert upstream.bodies[-1]["messages"][1]["tool_calls"] == [made]
    assert upstream.bodies[-1]["tools"][0]["custom"]["description"] == "of <EMAIL_2>"


def test_an_answer_is_known_without_its_reasoning(client, upstream):
    """Many clients leave it out when they send the answer back."""
    upstream.answer = lambda asked: answer_of(
        {"content": "*to* <EMAIL_1>", "reasoning_content": "hm, <EMAIL_1>"}
    )
    messages: list[Any] = [user(f"mail {MAIL}")]
    message = client.chat.completions.create(model="m", messages=messages).choices[0].message
    assert message.reasoning_content == f"hm, {MAIL}"
    for back in (message, {"role": "assistant", "content": message.content}):
        raw = client.chat.completions.with_raw_response.create(
            model="m", messages=[*messages, back, user("x")]
        )
        assert json.loads(raw.headers["textveil-statement"])["repeated"] >= 2
        assert upstream.bodies[-1]["messages"][1]["content"] == "*to* <EMAIL_1>"


def test_what_other_servers_say_besides_goes_back_as_it_came(client, upstream):
    parts = [
        {
            "type": "thinking",
            "thinking": [{"type": "text", "text": "*hm*, <EMAIL_1>"}],
            "closed": True,
        },
        {"type": "text", "text": "**to** <EMAIL_1>"},
    ]
    more = {
        "thinking_blocks": [{"type": "thinking", "thinking": "so: <EMAIL_1>", "signature": "c2ln"}]
    }
    details = {"reasoning_details": [{"type": "reasoning.text", "text": "- <EMAIL_1>", "index": 0}]}
    upstream.answer = lambda asked: answer_of({"content": parts, **more, **details})
    url, asked = (
        str(client.base_url).rstrip("/"),
        {"model": "m", "messages": [user(f"mail {MAIL}")]},
    )
    message = post(url, asked)[1]["choices"][0]["message"]
    assert message["content"][1]["text"] == f"**to** {MAIL}"
    assert message["thinking_blocks"][0]["thinking"] == f"so: {MAIL}"
    assert post(url, {**asked, "messages": [*asked["messages"], message, user("x")]})[0] == 200
    assert upstream.bodies[-1]["messages"][1] == {
        "role": "assistant",
        "content": parts,
        **more,
        **details,
    }


def test_reasoning_goes_back_as_it_came_and_what_is_not_known_of_it_is_said_to_be_left_out(
    client, upstream
):
    """Signed or sealed, as OpenRouter and LiteLLM stream it."""
    details: list[dict[str, Any]] = [
        {"type": "reasoning.text", "text": "hm, <EMAIL_1> or", "signature": "c2ln", "index": 0},
        {"type": "reasoning.encrypted", "data": "c2VhbGVk", "index": 1, "id": "rs_1"},
    ]
    blocks = [{"type": "thinking", "thinking": "so <EMAIL_1>", "signature": "c2ln"}]
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    deltas += [
        {"reasoning_details": [{**details[0], "text": each, "signature": None}]}
        for each in details[0]["text"]
    ]
    deltas += [{"reasoning_details": [{**details[0], "text": "", "signature": "c2ln"}, details[1]]}]
    deltas += [
        {"thinking_blocks": [{"type": "thinking", "thinking": each}]}
        for each in blocks[0]["thinking"]
    ]
    deltas += [
        {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "c2ln"}]},
        {"content": "*yes*"},
    ]
    upstream.answer = lambda asked: stream_of(deltas)
    asked: list[Any] = [user(f"mail {MAIL}")]
    made: dict[str, list[Any]] = {"reasoning_details": [{}, {}], "thinking_blocks": [{}]}
    for chunk in client.chat.completions.create(model="m", messages=asked, stream=True):
        for name, items in made.items():
            for i, part in enumerate(
                (getattr(chunk.choices[0].delta, name, None) or ()) if chunk.choices else ()
            ):
                own = items[part.get("index", i)]
                for key, value in part.items():
                    joined = key in ("text", "thinking") and key in own
                    own[key] = (
                        own[key] + value if joined else own.get(key) if value is None else value
                    )
    assert made["reasoning_details"] == [{**details[0], "text": f"hm, {MAIL} or"}, details[1]]
    assert made["thinking_blocks"] == [{**blocks[0], "thinking": f"so {MAIL}"}]
    upstream.answer = lambda asked: answer_of({"content": "x"})
    back = {"role": "assistant", "content": "*yes*", **made}
    raw = client.chat.completions.with_raw_response.create(
        model="m", messages=[*asked, back, user("x")]
    )
    sent = {
        "role": "assistant",
        "content": "*yes*",
        "reasoning_details": details,
        "thinking_blocks": blocks,
    }
    assert upstream.bodies[-1]["messages"][1] == sent
    assert "textveil-left-out" not in raw.headers
    made["reasoning_details"][0]["text"] += "!"
    raw = client.chat.completions.with_raw_response.create(
        model="m", messages=[*asked, back, user("x")]
    )
    assert upstream.bodies[-1]["messages"][1] == {**sent, "reasoning_details": details[1:]}
    assert raw.headers["textveil-left-out"] == "1"


def test_a_thinking_part_may_come_in_pieces(session):
    """As Mistral streams it, up to a part that breaks off."""
    restoring = AnswerRestorer(session)
    chunks = ChatChunks(restoring)
    deltas = [
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": each}]}]}
        for each in "<EMAIL_1>"
    ]
    made = [
        each for delta in deltas for each in chunks.feed(Event("", {"choices": [{"delta": delta}]}))
    ]
    made += chunks.feed(
        Event("", {"choices": [{"delta": {"content": "<EMAIL_"}, "finish_reason": "length"}]})
    )
    parts = [choice["delta"].get("content") for each in made for choice in each.data["choices"]]
    thought = "".join(
        part["thinking"][0]["text"] for each in parts if isinstance(each, list) for part in each
    )
    assert (thought, "".join(each for each in parts if isinstance(each, str))) == (MAIL, "<EMAIL_")
    assert restoring.unresolved == 1
    assert AnswerRestorer(session).restore_text("<b>&lt;EMAIL_1&gt;</b>") == f"<b>{MAIL}</b>"
    for left, count in (
        ("&lt;EMAIL_7&gt; <EMAIL_7>", 2),
        ("a &lt;EMAIL_", 1),
        ("a &lt;EMAIL_7&g", 1),
    ):
        restoring = AnswerRestorer(session)
        assert (restoring.restore_text(left), restoring.unresolved) == (left, count)


def test_calls_without_an_index_do_not_mix(session):
    chunks = ChatChunks(AnswerRestorer(session))
    pieces = [
        call('{"a": "<EMA', "a"),
        call('IL_1>"}', ""),
        call('{"b": "<EMAIL', "b"),
        call('_2>"}', "b"),
    ]
    for piece in pieces:
        list(chunks.feed(Event("", {"choices": [{"delta": {"tool_calls": [piece]}}]})))
    list(chunks.feed(Event("", {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})))
    ((_, message),) = chunks.messages
    assert [
        (each["id"], json.loads(each["function"]["arguments"])) for each in message["tool_calls"]
    ] == [
        ("a", {"a": MAIL}),
        ("b", {"b": OTHER}),
    ]


# ---- streams ---------------------------------------------------------------------------------------------------------

SAID = "see <EMAIL_1>, <EMAIL_2> and <EMAIL_9>; ü🙂 <EMAIL_"
WANTED = f"see {MAIL}, {OTHER} and <EMAIL_9>; ü🙂 <EMAIL_"


@pytest.fixture
def session(hiding):
    made = Session()
    hiding.privatize(f"{MAIL} {OTHER}", made)
    return made


def fed(session, deltas):
    """The deltas of one choice, put together, and what was not resolved."""
    restoring = AnswerRestorer(session)
    chunks = ChatChunks(restoring)
    events = [{"choices": [{"delta": delta}]} for delta in deltas] + [
        {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    ]
    made = [piece for event in events for piece in chunks.feed(Event("", event))] + list(
        chunks.close()
    )
    content, arguments = "", ""
    for event in made[:-1] if made[-1].data == "[DONE]" else made:
        for choice in event.data["choices"]:
            content += choice["delta"].get("content") or ""
            for each in choice["delta"].get("tool_calls") or ():
                arguments += each["function"]["arguments"]
    return content, arguments, restoring.unresolved


def test_every_cut_of_a_text_gives_the_same(session):
    for i in range(len(SAID)):
        assert fed(session, [{"content": SAID[:i]}, {"content": SAID[i:]}])[::2] == (WANTED, 2)
    assert fed(session, [{"content": char} for char in SAID])[0] == WANTED


def test_every_cut_of_arguments_gives_the_same(session):
    said = r'{"a": "\u003cEMAIL_1> \"x\" <EMAIL_2>"}'
    for i in range(len(said)):
        deltas = [
            {"tool_calls": [{"index": 0, "function": {"arguments": each}}]}
            for each in (said[:i], said[i:])
        ]
        assert json.loads(fed(session, deltas)[1]) == {"a": f'{MAIL} "x" {OTHER}'}


def test_a_stream_is_the_same_however_its_bytes_are_cut(client, upstream):
    whole = b"".join(stream_of([{"role": "assistant"}, *({"content": char} for char in SAID)]))
    rng = random.Random(7)
    for _ in range(8):
        cuts = sorted(rng.sample(range(1, len(whole)), 40))
        pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        upstream.answer = lambda asked, pieces=pieces: pieces
        chunks = client.chat.completions.create(
            model="m", messages=[user(f"{MAIL} {OTHER}")], stream=True
        )
        assert accumulated(chunks)["content"] == WANTED


def test_several_choices_and_calls_do_not_mix(session):
    restoring = AnswerRestorer(session)
    chunks = ChatChunks(restoring)
    texts = {(0, 0): '{"a": "<EMAIL_1>"}', (0, 1): '{"b": "<EMAIL_2>"}', (1, 0): '["<EMAIL_2>"]'}
    made: dict[tuple[int, int], str] = dict.fromkeys(texts, "")
    events = []
    for i in range(max(map(len, texts.values()))):
        for (choice, index), said in texts.items():
            delta = {"tool_calls": [{"index": index, "function": {"arguments": said[i : i + 1]}}]}
            events.append({"choices": [{"index": choice, "delta": delta}]})
    events += [
        {"choices": [{"index": choice, "delta": {}, "finish_reason": "tool_calls"}]}
        for choice in (0, 1)
    ]
    for event in events:
        for piece in chunks.feed(Event("", event)):
            for choice in piece.data["choices"]:
                for each in choice["delta"].get("tool_calls") or ():
                    made[choice["index"], each["index"]] += each["function"]["arguments"]
    assert [json.loads(each) for each in made.values()] == [{"a": MAIL}, {"b": OTHER}, [OTHER]]
    assert chunks.is_complete
    assert len(chunks.messages) == 2


def test_what_was_not_resolved_is_said_at_the_end_of_a_stream(hiding, upstream):
    upstream.answer = lambda asked: stream_of([{"content": SAID}])
    with (
        serving(Gateway(privatizer=hiding, upstream=upstream.url)) as url,
        httpx2.Client(trust_env=False) as http,
    ):
        body = {"model": "m", "messages": [user(f"{MAIL} {OTHER}")], "stream": True}
        said = http.post(f"{url}/chat/completions", json=body).text
    assert said.endswith("data: [DONE]\n\n: textveil-unresolved: 2\n\n")


def test_a_stream_is_remembered_before_its_end_is_told(hiding, upstream, monkeypatch):
    """Else the next request of a quick client would not know the answer."""
    told: list[str] = []
    answered, written = MessageChain.save_answers, Event.render

    def noted(self, *args, **given):
        told.append("kept")
        answered(self, *args, **given)

    def noted_too(self, *args):
        told.append(json.dumps(self.data))
        return written(self, *args)

    monkeypatch.setattr(MessageChain, "save_answers", noted)
    monkeypatch.setattr(Event, "render", noted_too)
    upstream.answer = lambda asked: stream_of([{"content": "a"}, {"content": "b"}])
    with (
        serving(Gateway(privatizer=hiding, upstream=upstream.url)) as url,
        client_of(url) as client,
    ):
        list(client.chat.completions.create(model="m", messages=[user("x")], stream=True))
    assert told.count("kept") == 1
    assert told.index("kept") < next(
        i for i, each in enumerate(told) if 'finish_reason": "stop' in each
    )


@pytest.mark.parametrize("stream", [False, True])
def test_what_an_answer_cites_stands_where_it_stands_in_the_restored_text(client, upstream, stream):
    said = "write to <EMAIL_1>, as <EMAIL_2> says"
    start = said.index("<EMAIL_2>")
    cited = {
        "title": "of <EMAIL_2>",
        "url": "https://example.org/a",
        "start_index": start,
        "end_index": start + 9,
    }
    noted: dict[str, Any] = {"annotations": [{"type": "url_citation", "url_citation": cited}]}
    deltas: list[dict[str, Any]] = [*({"content": char} for char in said), noted]
    upstream.answer = lambda asked: (
        stream_of(deltas) if stream else answer_of({"content": said, **noted})
    )
    answer = client.chat.completions.create(
        model="m", messages=[user(f"{MAIL} {OTHER}")], stream=stream
    )
    if stream:
        chunks = list(answer)
        text = accumulated(chunks)["content"]
        (found,) = [
            each.choices[0].delta.annotations[0] for each in chunks if "annotations" in str(each)
        ]
        found = found["url_citation"]
    else:
        text = answer.choices[0].message.content
        found = answer.choices[0].message.annotations[0].url_citation.model_dump()
    assert found["title"] == f"of {OTHER}"
    assert text[found["start_index"] : found["end_index"]] == OTHER


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_errors_of_the_upstream_keep_what_they_say(client, upstream):
    error = {
        "message": "too long: <EMAIL_1>",
        "type": "tokens",
        "param": "messages",
        "code": "context_length_exceeded",
    }
    headers = {
        "Retry-After": "7",
        "x-ratelimit-remaining-tokens": "5",
        "x-request-id": "r1",
        "x-secret": "no",
    }
    upstream.answer = lambda asked: (429, headers, {"error": error})
    with pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(model="m", messages=[user(f"write to {MAIL}")])
    assert caught.value.body == {**error, "message": f"too long: {MAIL}"}
    kept = caught.value.response.headers
    assert [kept.get(name) for name in headers] == ["7", "5", "r1", None]


def test_an_error_that_repeats_the_key_is_replaced(client, upstream):
    upstream.answer = lambda asked: (
        401,
        {},
        {"error": {"message": "wrong key", "type": "sk-of-the-client", "code": 7}},
    )
    with pytest.raises(openai.AuthenticationError) as caught:
        client.chat.completions.create(model="m", messages=[user("x")])
    assert "sk-of" not in json.dumps(caught.value.body)
    assert "the upstream refused with status 401" in str(caught.value)


# ---- other APIs ------------------------------------------------------------------------------------------------------


def plain():
    """An API that takes one text."""
    taken = record(text=text())
    return (
        Operation(
            name="plain", path="/plain", request=taken, answer=taken, build_error=lambda refused: {}
        ),
    )


def test_an_api_of_another_package_is_served(hiding, upstream, monkeypatch):
    monkeypatch.setitem(
        registry.PROTOCOLS, "plain", registry.Entry(target=f"{__name__}:plain", summary="one text")
    )
    upstream.asked.clear()
    upstream.answer = lambda asked: {"text": f"said {asked.body['text']}", "more": ["<EMAIL_1>"]}
    with (
        serving(Gateway(privatizer=hiding, upstream=upstream.url)) as url,
        httpx2.Client(trust_env=False) as http,
    ):
        answer = http.post(f"{url}/plain", json={"text": MAIL})
    assert answer.json() == {"text": f"said {MAIL}", "more": [MAIL]}
    assert upstream.bodies == [{"text": "<EMAIL_1>"}]


# ---- what reaches the upstream ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("clients", [4, pytest.param(50, marks=pytest.mark.slow)])
def test_no_client_s_texts_reach_the_upstream_or_another_client(hiding, upstream, clients):
    """All at once, with their addresses in every leaf that is not refused and does not pass."""
    passing = {Act.MEDIA, Act.REFUSE, Act.PASS}
    upstream.asked.clear()
    upstream.answer = lambda asked: answer_of(
        {"content": "to <EMAIL_1>", "extra": [{"to": "<EMAIL_1>"}]}
    )

    def ask(number):
        mine = f"client{number}@blorvequine.example"
        bodies = specimens(CHAT.request, lambda act: None if act in passing else mine)
        body = {**bodies[number % len(bodies)], "stream": False}
        body["messages"] = [user(mine), *body["messages"]]
        answer = http.post(
            f"{url}/chat/completions", json=body, headers={"Authorization": f"Bearer {number}"}
        )
        said = answer.json()["choices"][0]["message"] if answer.status_code == 200 else answer.text
        return json.dumps(body).count("blorvequine"), answer.status_code, mine, said

    with (
        serving(Gateway(privatizer=hiding, upstream=upstream.url)) as url,
        httpx2.Client(
            trust_env=False, timeout=300, limits=httpx2.Limits(max_connections=clients)
        ) as http,
        ThreadPoolExecutor(clients) as pool,
    ):
        asked = list(pool.map(ask, range(clients)))
    assert {status for _, status, *_ in asked} == {200}
    assert all(planted > 25 for planted, *_ in asked)
    for *_, mine, message in asked:
        assert message == {"role": "assistant", "content": f"to {mine}", "extra": [{"to": mine}]}
    assert len(upstream.bodies) == clients
    assert "blorvequine" not in json.dumps(upstream.bodies).lower()


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (CompletionCreateParamsBase, CHAT.request),
        (ChatCompletion, CHAT.answer),
        (ChatCompletionChunk, CHAT.answer),
    ],
)
def test_nothing_that_the_sdk_allows_is_unknown(kind, rule):
    """Each field, each member of a union, and each of the words that a field may be."""
    allowed = list(samples(kind))
    assert len(allowed) > 5
    for each in allowed:
        assert [
            format_path(leaf.path, each)
            for leaf in find_leaves(each, rule)
            if leaf.act is Act.UNKNOWN
        ] == []


def test_settings_of_other_servers_pass(hiding, upstream):
    body = {
        "top_k": 40,
        "min_p": 0.1,
        "chat_template_kwargs": {"enable_thinking": False},
        "keep_alive": "5m",
        "provider": {"order": ["deepinfra/turbo"], "data_collection": "deny"},
        "reasoning_format": "parsed",
        "think": True,
        "tool_choice": "any",
        "guided_json": {"const": MAIL},
    }
    _, (sent,) = asked(hiding, upstream, Policy(), body)
    assert sent == {
        "model": "m",
        "messages": [user("x")],
        **body,
        "guided_json": {"const": "<EMAIL_1>"},
    }


# ---- policy ----------------------------------------------------------------------------------------------------------


def asked(hiding, upstream, policy, body, **headers):
    """The answer's status, body and headers, and what was sent."""
    upstream.asked.clear()
    upstream.answer = lambda asked: answer_of({"content": "ok"})
    with (
        serving(Gateway(privatizer=hiding, upstream=upstream.url, policy=policy)) as url,
        httpx2.Client() as http,
    ):
        answer = http.post(
            f"{url}/chat/completions",
            json={"model": "m", "messages": [user("x")], **body},
            headers=headers,
        )
    return answer, upstream.bodies


def test_users_are_pseudonyms_of_their_client(hiding, upstream):
    body = dict.fromkeys(("user", "safety_identifier", "prompt_cache_key"), MAIL) | {
        "metadata": {MAIL: MAIL}
    }
    store = SessionStore()
    upstream.asked.clear()
    upstream.answer = lambda asked: answer_of({"content": "ok"})
    with serving(Gateway(privatizer=hiding, upstream=upstream.url, store=store)) as url:
        for key in ("Bearer one", "Bearer one", "Bearer two"):
            post(url, {"model": "m", "messages": [user("x")], **body}, Authorization=key)
    one, again, two = upstream.bodies
    assert one == again
    assert "metadata" not in one
    assert one["user"] == one["safety_identifier"] == one["prompt_cache_key"] != two["user"]
    assert MAIL not in json.dumps(upstream.bodies, ensure_ascii=False)
    _, (sent,) = asked(hiding, upstream, Policy(users="drop"), body)
    assert sent.keys() == {"model", "messages"}


def test_media_may_pass(hiding, upstream):
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": MAIL}, part]}]}
    answer, (sent,) = asked(hiding, upstream, Policy(media="pass"), body)
    assert answer.headers["textveil-unprotected"] == "1"
    assert sent["messages"][0]["content"] == [{"type": "text", "text": "<EMAIL_1>"}, part]
    answer, sent = asked(hiding, upstream, Policy(), body)
    assert (answer.status_code, sent) == (400, [])


def test_what_is_unknown_may_be_dropped(hiding, upstream):
    body = {
        MAIL: 1,
        "new_field": MAIL,
        "messages": [{"role": "user", "content": "x", "mood": MAIL}],
        "temperature": 1,
    }
    _, (sent,) = asked(hiding, upstream, Policy(unknown="drop"), body)
    assert sent == {"model": "m", "messages": [user("x")], "temperature": 1}


def test_what_the_policy_drops_is_counted(hiding, upstream):
    gateway = Gateway(privatizer=hiding, upstream=upstream.url, policy=Policy(unknown="drop"))
    with serving(gateway) as url, httpx2.Client(trust_env=False) as http:
        body = {"model": "m", "messages": [user("x")], "new": MAIL, "newer": 1}
        assert http.post(f"{url}/chat/completions", json=body).headers["textveil-left-out"] == "2"
    assert upstream.bodies[-1] == {"model": "m", "messages": [user("x")]}


def test_names_of_fields_in_schemas_hide_identifiers(hiding, upstream):
    schema = {
        "type": "object",
        "$defs": {MAIL: {"type": "string"}},
        "properties": {
            MAIL: {"$ref": f"#/$defs/{MAIL}"},
            CARD: {"type": "string"},
            "<EMAIL_9>": {"type": "null"},
        },
        "required": [CARD, MAIL, "<EMAIL_9>"],
    }
    tool = {"type": "function", "function": {"name": "send_mail", "parameters": schema}}
    _, (sent,) = asked(hiding, upstream, Policy(), {"tools": [tool]})
    made = sent["tools"][0]["function"]["parameters"]
    assert MAIL not in json.dumps(made, ensure_ascii=False)
    assert CARD not in json.dumps(made)
    assert len(made["properties"]) == 3
    assert set(made["required"]) == set(made["properties"])
    (defined,) = made["$defs"]
    assert defined in made["required"]
    assert made["properties"][defined] == {"$ref": f"#/$defs/{defined}"}


@pytest.mark.parametrize(("rest", "parts"), [("", 1), (" ", 1), (" now", 2)])
def test_a_part_of_which_nothing_is_left_is_not_sent(hiding, upstream, rest, parts):
    said = [{"type": "text", "text": text} for text in (f"mail {MAIL[:9]}", f"{MAIL[9:]}{rest}")]
    answer, (sent,) = asked(
        hiding, upstream, Policy(), {"messages": [{"role": "user", "content": said}]}
    )
    made = [{"type": "text", "text": text} for text in ("mail <EMAIL_1>", rest)]
    assert sent["messages"][0]["content"] == made[:parts]
    statement = json.loads(answer.headers["textveil-statement"])
    assert statement["kind"] == "none"
    assert statement["said"] == "1 new message was released without a draw. There is no promise."


def test_schemas_may_pass(hiding, upstream):
    _, (sent,) = asked(hiding, upstream, Policy(schemas="pass"), {"tools": [TOOL]})
    assert sent["tools"] == [TOOL]
    names = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"enum": [MAIL, "a"]}}}
    _, (sent,) = asked(hiding, upstream, Policy(), {"response_format": names})
    assert sent["response_format"]["json_schema"]["schema"] == {"enum": ["<EMAIL_1>", "a"]}


@pytest.mark.parametrize("said", ["true", "yes", "", "01", "1, 1"])
def test_a_dry_run_that_is_said_in_another_way_is_refused(hiding, upstream, said):
    answer, sent = asked(
        hiding, upstream, Policy(), {"messages": [user("x")]}, **{"textveil-dry-run": said}
    )
    assert (answer.status_code, sent) == (400, [])
    assert "textveil-dry-run must be 1 or 0" in answer.json()["error"]["message"]


def test_a_dry_run_that_is_none_is_sent(hiding, upstream):
    _, sent = asked(
        hiding, upstream, Policy(), {"messages": [user("x")]}, **{"textveil-dry-run": "0"}
    )
    assert len(sent) == 1


def test_a_dry_run_asks_nobody(hiding, upstream):
    body = {"messages": [user(f"mail {MAIL}")], "user": None, "stop": [OTHER], "stream": True}
    answer, sent = asked(hiding, upstream, Policy(), body, **{"textveil-dry-run": "1"})
    assert sent == []
    assert answer.headers["textveil-protected"] == "EMAIL=2"
    released = answer.json()
    assert released == {
        "model": "m",
        "messages": [user("mail <EMAIL_1>")],
        "stop": ["<EMAIL_2>"],
        "stream": True,
    }


def test_the_name_of_a_participant_is_one_word(hiding, upstream):
    _, (sent,) = asked(hiding, upstream, Policy(), {"messages": [{**user("x"), "name": MAIL}]})
    assert sent["messages"] == [{**user("x"), "name": "EMAIL_1"}]
