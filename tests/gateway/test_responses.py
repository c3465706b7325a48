"""Responses through the gateway, with the SDK of OpenAI: what the upstream sees and remembers, and what comes back."""

import itertools
import json
import random
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from pydantic import BaseModel
from tests.gateway.servers import serving, serving_upstream
from tests.gateway.specimens import specimens
from tests.gateway.test_chains import url as url
from tests.gateway.test_gateway import client_of
from tests.gateway.test_gateway import environment as environment

from textveil import Privatizer
from textveil.gateway import Gateway
from textveil.gateway.policy.policy import Policy
from textveil.gateway.protocols import Event, responses
from textveil.gateway.protocols.field_rules import Act
from textveil.gateway.protocols.restoring import AnswerRestorer
from textveil.session import Session, SessionStore

CANARY = "Blorvequine"
OTHER = "Quillimar"


# ---- the scripted upstream -------------------------------------------------------------------------------------------


def message(text, *annotations, id="msg_1"):
    part = {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []}
    return {
        "type": "message",
        "id": id,
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }


def call(arguments, id="fc_1"):
    return {
        "type": "function_call",
        "id": id,
        "call_id": "call_1",
        "name": "find",
        "arguments": arguments,
        "status": "completed",
    }


def reasoning(text):
    return {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": text}],
        "encrypted_content": "gAAAA+/=",
    }


def answer(asked, *items, id="resp_1", **more):
    body = asked.body
    return {
        "id": id,
        "object": "response",
        "created_at": 1,
        "model": body.get("model", "m"),
        "status": "completed",
        "output": list(items),
        "instructions": body.get("instructions"),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "metadata": {},
        **more,
    }


def events(whole, cut=list):
    """The events of a stream of an answer, its texts cut into pieces."""
    number = itertools.count()

    def event(kind, **more):
        return {"type": kind, "sequence_number": next(number), **more}

    def pieces(kind, text, **places):
        for piece in cut(text):
            extra = (
                {"logprobs": [{"token": piece, "logprob": -1.0}]} if "output_text" in kind else {}
            )
            yield event(f"{kind}.delta", delta=piece, obfuscation="xyz", **places, **extra)

    begun = {**whole, "status": "in_progress", "output": []}
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for i, item in enumerate(whole["output"]):
        at = {"output_index": i, "item_id": item["id"]}
        yield event(
            "response.output_item.added", output_index=i, item={**item, "status": "in_progress"}
        )
        if item["type"] == "message":
            for k, part in enumerate(item["content"]):
                places = {**at, "content_index": k}
                yield event("response.content_part.added", part={**part, "text": ""}, **places)
                yield from pieces("response.output_text", part["text"], **places)
                for n, annotation in enumerate(part["annotations"]):
                    yield event(
                        "response.output_text.annotation.added",
                        annotation_index=n,
                        annotation=annotation,
                        **places,
                    )
                yield event("response.output_text.done", text=part["text"], logprobs=[], **places)
                yield event("response.content_part.done", part=part, **places)
        elif item["type"] == "reasoning":
            for k, part in enumerate(item["summary"]):
                places = {**at, "summary_index": k}
                yield from pieces("response.reasoning_summary_text", part["text"], **places)
                yield event("response.reasoning_summary_text.done", text=part["text"], **places)
        elif item["type"] == "function_call":
            yield from pieces("response.function_call_arguments", item["arguments"], **at)
            yield event(
                "response.function_call_arguments.done",
                arguments=item["arguments"],
                name="find",
                **at,
            )
        yield event("response.output_item.done", output_index=i, item=item)
    yield event("response.completed", response=whole)


def written(event):
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def last_text(asked):
    came = asked.body["input"]
    return came if isinstance(came, str) else came[-1].get("content") or came[-1].get("output")


def echo(asked):
    """Says the last text again, and what its instructions are."""
    made = answer(
        asked, message(f"is {last_text(asked)}?"), id=f"resp_{last_text(asked).count('WORD')}"
    )
    return [written(each) for each in events(made)] if asked.body.get("stream") else made


@pytest.fixture
def upstream():
    with serving_upstream(echo) as server:
        yield server


@pytest.fixture(scope="module")
def privatizer(small_table):
    return Privatizer("placeholder", table=small_table)


@pytest.fixture
def gateway(upstream, privatizer):
    with serving(Gateway(privatizer=privatizer, upstream=upstream.url)) as address:
        yield address


@pytest.fixture
def client(gateway):
    with client_of(gateway) as made:
        yield made


# ---- whole answers ---------------------------------------------------------------------------------------------------


def test_the_upstream_sees_the_release_and_the_client_the_originals(client, upstream):
    made = client.responses.create(
        model="m",
        instructions=f"{CANARY} speaks",
        input=f"where is {CANARY}",
        metadata={"name": CANARY},
        user=CANARY,
        temperature=0.5,
    )
    assert made.output_text == f"is where is {CANARY}?"
    assert made.instructions == f"{CANARY} speaks"
    sent = upstream.asked[-1].body
    assert sent.pop("user").startswith("user-")
    assert sent == {
        "model": "m",
        "instructions": "<WORD_1> <WORD_2>",
        "input": "where is <WORD_1>",
        "temperature": 0.5,
    }


def test_what_cannot_be_protected_is_refused(client, upstream, privatizer):
    image = [
        {
            "role": "user",
            "content": [{"type": "input_image", "image_url": "data:", "detail": "auto"}],
        }
    ]
    secret = [{"type": "mcp", "server_label": "x", "authorization": CANARY}]
    for more in (
        {"input": image},
        {"input": "is", "tools": secret},
    ):
        with pytest.raises(openai.BadRequestError, match="protected") as error:
            client.responses.create(model="m", **more)
        assert CANARY not in str(error.value)
    assert upstream.asked == []
    strict = Gateway(privatizer=privatizer, upstream=upstream.url, policy=Policy(unknown="refuse"))
    fields = {"window": {"id": CANARY}}
    with serving(strict) as address, client_of(address) as other:
        with pytest.raises(openai.BadRequestError, match="window is not known") as error:
            other.responses.create(model="m", input="is", extra_body=fields)
        assert error.value.param == "window"
    passing = Gateway(privatizer=privatizer, upstream=upstream.url, policy=Policy(media="pass"))
    upstream.answer = lambda asked: answer(asked, message("seen"))
    with serving(passing) as address, client_of(address) as other:
        assert other.responses.create(model="m", input=image).output_text == "seen"


def test_citations_point_into_the_restored_text(client, upstream):
    shown = "see <WORD_1> here"
    begin, end = shown.index("here"), len(shown)
    citation = {
        "type": "url_citation",
        "title": "<WORD_1>",
        "url": "https://a.example",
        "start_index": begin,
        "end_index": end,
    }
    upstream.answer = lambda asked: answer(asked, message(shown, citation))
    whole = client.responses.create(model="m", input=CANARY)
    upstream.answer = lambda asked: [
        written(each) for each in events(answer(asked, message(shown, citation)))
    ]
    came = list(client.responses.create(model="m", input=CANARY, stream=True))
    (added,) = [
        each.annotation for each in came if each.type == "response.output_text.annotation.added"
    ]
    for final in (whole, came[-1].response):
        (part,) = final.output[0].content
        assert [each.model_dump() for each in part.annotations] == [added.model_dump()]
        assert part.text == f"see {CANARY} here"
        assert part.text[added.start_index : added.end_index] == "here"
    assert added.title == CANARY


# ---- what the upstream remembers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_second_turn_knows_what_the_upstream_remembers(client, upstream, stream):
    def ask(text, **more):
        came = client.responses.create(model="m", input=text, stream=stream, **more)
        return list(came)[-1].response if stream else came

    first = ask(f"{CANARY} is {OTHER}")
    second = ask(f"Jarndyce and {OTHER}", previous_response_id=first.id)
    assert second.output_text == f"is Jarndyce and {OTHER}?"
    assert [each.body["input"] for each in upstream.asked] == [
        "<WORD_1> is <WORD_2>",
        "<WORD_3> and <WORD_2>",
    ]
    upstream.answer = lambda asked: answer(asked, message("<WORD_1> and <WORD_3>"), id="resp_z")
    third = client.responses.create(model="m", input="who", previous_response_id=second.id)
    assert third.output_text == f"{CANARY} and Jarndyce"


def test_another_process_goes_on_from_what_the_upstream_remembers(upstream, privatizer, url):
    with SessionStore(url) as store:
        made = Gateway(privatizer=privatizer, upstream=upstream.url, store=store)
        with serving(made) as address, client_of(address) as client:
            first = client.responses.create(model="m", input=f"is {CANARY}")
    with SessionStore(url) as store:
        made = Gateway(privatizer=privatizer, upstream=upstream.url, store=store)
        with serving(made) as address, client_of(address) as client:
            second = client.responses.create(
                model="m", input=f"{OTHER} is", previous_response_id=first.id
            )
            assert upstream.asked[-1].body["input"] == "<WORD_2> is"
            assert second.output_text == f"is {OTHER} is?"


def test_what_was_drawn_once_is_not_drawn_for_the_next_turn(upstream, small_table, url):
    noisy = Privatizer("noise", table=small_table, eta=1.0)
    text = " ".join(small_table.words[:8])
    upstream.answer = lambda asked: answer(asked, message("is"), id=f"resp_{len(upstream.asked)}")
    with SessionStore(url) as store:
        made = Gateway(privatizer=noisy, upstream=upstream.url, store=store)
        with serving(made) as address, client_of(address) as client:
            asked = {"model": "m", "instructions": text, "input": text}
            first = client.responses.create(**asked)
            (spent,) = store.ledger.accounts()
            client.responses.create(**asked)  # a retry
            client.responses.create(**asked, previous_response_id=first.id)
            client.responses.create(model="m", input=[{"role": "user", "content": text}])
            assert [each.body["instructions"] for each in upstream.asked[:3]] == [
                upstream.asked[0].body["instructions"]
            ] * 3
            assert store.ledger.accounts() == [spent]
    assert len({each.body["instructions"] for each in upstream.asked[:3]}) == 1
    said = [each.body["input"] for each in upstream.asked]
    assert said == [said[0]] * 3 + [[{"role": "user", "content": said[0]}]]
    assert said[0] != text


def test_a_turn_may_go_on_from_an_answer_that_the_client_left(client, upstream):
    stream = client.responses.create(model="m", input=f"is {CANARY}", stream=True)
    created = next(iter(stream))
    stream.close()
    client.responses.create(model="m", input=OTHER, previous_response_id=created.response.id)
    assert upstream.asked[-1].body["input"] == "<WORD_2>"


def test_nobody_goes_on_from_what_is_not_known(gateway, client, upstream):
    first = client.responses.create(model="m", input=CANARY)
    count = len(upstream.asked)
    with client_of(gateway).with_options(api_key="sk-of-another") as other:
        with pytest.raises(openai.BadRequestError, match="does not know the conversation") as error:
            other.responses.create(model="m", input="is", previous_response_id=first.id)
        assert error.value.code == "previous_response_not_found"
        for ask in (
            lambda: other.responses.retrieve(first.id),
            lambda: other.responses.delete(first.id),
            lambda: other.responses.input_items.list(first.id),
            lambda: client.responses.retrieve("resp_unknown"),
        ):
            with pytest.raises(openai.NotFoundError):
                ask()
    for more in (
        {"previous_response_id": "resp_unknown"},
        {"conversation": "conv_unknown"},
        {"conversation": {"id": "conv_unknown"}},
    ):
        with pytest.raises(openai.BadRequestError, match="does not know the conversation"):
            client.responses.create(model="m", input="is", **more)
    sealed = [{"type": "compaction", "encrypted_content": "gAAAA"}]
    with pytest.raises(openai.BadRequestError, match="does not know the conversation"):
        client.responses.create(model="m", input=sealed)
    assert len(upstream.asked) == count


def test_clients_with_the_same_names_of_answers_are_not_mixed(gateway, upstream):
    """Small servers number their answers, so that two clients are given the same name."""

    def one(number):
        own = f"Blorvequine{'abcdefghijkl'[number]}"
        with client_of(gateway).with_options(api_key=f"sk-of-client-{number}") as client:
            first = client.responses.create(model="m", input=own)
            came = list(
                client.responses.create(
                    model="m", input="is", previous_response_id=first.id, stream=True
                )
            )
        return first.output_text == f"is {own}?" and came[-1].response.output_text == own

    upstream.answer = lambda asked: (
        [written(each) for each in events(answer(asked, message("<WORD_1>")))]
        if asked.body.get("stream")
        else echo(asked)
    )
    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(one, range(12)))
    assert len(upstream.asked) == 24
    assert {each.body["input"] for each in upstream.asked} == {"<WORD_1>", "is"}


def test_what_a_server_must_not_store_is_not_remembered_here(client, upstream):
    upstream.answer = lambda asked: answer(asked, message("is"), store=False)
    first = client.responses.create(model="m", input=CANARY, store=False)
    with pytest.raises(openai.BadRequestError, match="does not know the conversation"):
        client.responses.create(model="m", input="is", previous_response_id=first.id)


def test_a_conversation(client, upstream):
    upstream.answer = lambda asked: {
        "id": "conv_1",
        "object": "conversation",
        "created_at": 1,
        "metadata": {},
    }
    made = client.conversations.create(
        items=[{"type": "message", "role": "user", "content": f"is {CANARY}"}]
    )
    assert upstream.asked[-1].body == {
        "items": [{"type": "message", "role": "user", "content": "is <WORD_1>"}]
    }
    upstream.answer = lambda asked: answer(
        asked, message("<WORD_1> <WORD_2>"), conversation={"id": "conv_1"}
    )
    said = client.responses.create(model="m", input=OTHER, conversation=made.id)
    assert said.output_text == f"{CANARY} {OTHER}"
    upstream.answer = lambda _: (500, {"error": {"message": "later"}})
    with pytest.raises(openai.InternalServerError):
        client.responses.create(model="m", input="Jarndyce", conversation={"id": made.id})
    upstream.answer = lambda asked: answer(asked, message("<WORD_3> <WORD_4>"))
    said = client.responses.create(model="m", input="Snagsby", conversation={"id": made.id})
    assert upstream.asked[-1].body["input"] == "<WORD_4>"
    assert said.output_text == "Jarndyce Snagsby"
    page = {
        "object": "list",
        "data": [message("<WORD_3>")],
        "first_id": "a",
        "last_id": "a",
        "has_more": False,
    }
    upstream.answer = lambda asked: page
    assert [each.content[0].text for each in client.conversations.items.list(made.id)] == [
        "Jarndyce"
    ]


def test_items_may_be_added_to_a_conversation(client, upstream):
    upstream.answer = lambda asked: {
        "id": "conv_1",
        "object": "conversation",
        "created_at": 1,
        "metadata": {},
    }
    made = client.conversations.create(
        items=[{"type": "message", "role": "user", "content": f"is {CANARY}"}]
    )
    said = {"type": "message", "id": "m", "role": "user", "status": "completed"}
    added = {**said, "content": [{"type": "input_text", "text": "<WORD_2> is <WORD_1>"}]}
    upstream.answer = lambda asked: {"object": "list", "data": [added], "has_more": False}
    item = {"type": "message", "role": "user", "content": f"{OTHER} is {CANARY}"}
    page = client.conversations.items.create(
        made.id, items=[item], include=["reasoning.encrypted_content"]
    )
    assert page.data[0].content[0].text == f"{OTHER} is {CANARY}"
    assert upstream.asked[-1].body == {"items": [{**item, "content": "<WORD_2> is <WORD_1>"}]}
    assert (
        upstream.asked[-1].path
        == "/v1/conversations/conv_1/items?include%5B%5D=reasoning.encrypted_content"
    )
    upstream.answer = lambda asked: added
    assert (
        client.conversations.items.retrieve("m", conversation_id=made.id).content[0].text
        == f"{OTHER} is {CANARY}"
    )
    assert upstream.asked[-1].path == "/v1/conversations/conv_1/items/m"
    upstream.answer = lambda asked: {
        "id": "conv_1",
        "object": "conversation",
        "created_at": 1,
        "metadata": {},
    }
    client.conversations.items.delete("m", conversation_id=made.id)
    assert (upstream.asked[-1].method, upstream.asked[-1].path) == (
        "DELETE",
        "/v1/conversations/conv_1/items/m",
    )
    upstream.answer = echo
    assert (
        OTHER in client.responses.create(model="m", input=OTHER, conversation=made.id).output_text
    )
    assert upstream.asked[-1].body["input"] == "<WORD_2>"
    asked = len(upstream.asked)
    with pytest.raises(openai.BadRequestError, match="does not know the conversation"):
        client.conversations.items.create("conv_2", items=[item])
    assert len(upstream.asked) == asked
    assert CANARY not in upstream.seen


def test_a_stream_goes_on_where_the_client_left_it(client, upstream):
    """Its events are counted as the client got them, which are not those of the upstream."""
    whole = list(client.responses.create(model="m", input=f"is {CANARY}", stream=True))
    said = message("is is <WORD_1>?")
    upstream.answer = lambda asked: [
        written(each) for each in events(answer(asked._replace(raw=b"{}"), said))
    ]
    for after in (0, 3, len(whole) - 2):
        more = client.responses.retrieve("resp_1", stream=True, starting_after=after)
        rest = [(each.sequence_number, each.type, getattr(each, "delta", None)) for each in more]
        wanted = [
            (each.sequence_number, each.type, getattr(each, "delta", None))
            for each in whole[after + 1 :]
        ]
        assert rest == wanted
        assert upstream.asked[-1].path == "/v1/responses/resp_1?stream=true"
    assert CANARY in whole[-1].response.output_text


def test_what_is_stored_is_restored(client, upstream):
    first = client.responses.create(model="m", input=f"is {CANARY}")
    upstream.answer = lambda asked: {**answer(asked._replace(raw=b"{}"), message("<WORD_1>"))}
    assert (
        client.responses.retrieve(first.id, include=["reasoning.encrypted_content"]).output_text
        == CANARY
    )
    assert (
        upstream.asked[-1].path
        == f"/v1/responses/{first.id}?include%5B%5D=reasoning.encrypted_content"
    )
    assert client.responses.cancel(first.id).output_text == CANARY
    assert (upstream.asked[-1].method, upstream.asked[-1].path) == (
        "POST",
        f"/v1/responses/{first.id}/cancel",
    )
    item = {
        "type": "message",
        "id": "m",
        "role": "user",
        "content": [{"type": "input_text", "text": "<WORD_1>"}],
    }
    upstream.answer = lambda asked: {"object": "list", "data": [item], "has_more": False}
    assert [
        each.content[0].text for each in client.responses.input_items.list(first.id, limit=3)
    ] == [CANARY]
    with pytest.raises(openai.BadRequestError):
        client.responses.input_items.list(first.id, after=f"{CANARY}?")
    upstream.answer = lambda asked: {"id": first.id, "object": "response", "deleted": True}
    client.responses.delete(first.id)
    assert upstream.asked[-1].method == "DELETE"


def test_what_is_counted_or_summed_up_is_released_alike(client, upstream):
    upstream.answer = lambda asked: {"object": "response.input_tokens", "input_tokens": 3}
    assert client.responses.input_tokens.count(model="m", input=f"is {CANARY}").input_tokens == 3
    assert upstream.asked[-1].body["input"] == "is <WORD_1>"
    summary = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}
    upstream.answer = lambda asked: answer(
        asked, message("<WORD_1>"), summary, object="response.compaction"
    )
    made = client.responses.compact(model="gpt-5.5", input=f"is {CANARY}")
    assert made.output[0].content[0].text == CANARY
    kept = [made.output[1].model_dump(exclude_none=True), {"role": "user", "content": OTHER}]
    upstream.answer = lambda asked: answer(asked, message("<WORD_1> <WORD_2>"))
    assert client.responses.create(model="m", input=kept).output_text == f"{CANARY} {OTHER}"


# ---- what comes back in the next request -----------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_items_that_come_back_are_sent_as_they_came(client, upstream, stream):
    """The model spells a placeholder otherwise; it gets its own words again."""
    items = [
        reasoning("on < word_1 >"),
        call('{"whom": "\\u003cWORD_1>", "what": "x"}'),
        message("let me see: WORD_1"),
    ]

    def ask(history):
        came = client.responses.create(model="m", input=history, store=False, stream=stream)
        return list(came)[-1].response if stream else came

    def script(asked):
        made = answer(asked, *items)
        return [written(each) for each in events(made)] if stream else made

    upstream.answer = script
    history = [{"role": "user", "content": f"is {CANARY}"}]
    first = ask(history)
    kinds = [each.type for each in first.output]
    assert kinds == ["reasoning", "function_call", "message"]
    assert first.output[0].summary[0].text == f"on {CANARY}"
    assert json.loads(first.output[1].arguments) == {"whom": CANARY, "what": "x"}
    assert first.output_text == f"let me see: {CANARY}"
    history += [each.model_dump(exclude_none=True) for each in first.output]
    history += [
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": f'{{"place": "{OTHER}, {CANARY}"}}',
        }
    ]
    ask(history)
    sent = upstream.asked[-1].body["input"]
    assert sent[1]["summary"] == items[0]["summary"]
    assert sent[1]["encrypted_content"] == "gAAAA+/="
    assert sent[2]["arguments"] == items[1]["arguments"]
    assert sent[3]["content"][0] == {
        "type": "output_text",
        "text": "let me see: WORD_1",
        "annotations": [],
        "logprobs": [],
    }
    assert sent[4]["output"].endswith('<WORD_1>"}')
    history += [each.model_dump(exclude_none=True) for each in ask(history).output]
    assert CANARY not in upstream.seen
    assert OTHER not in upstream.seen


@pytest.mark.parametrize("stream", [False, True])
def test_items_may_come_back_by_their_names(gateway, client, upstream, stream):
    items = [reasoning("on <WORD_1>"), message("see <WORD_1>")]
    upstream.answer = lambda asked: (
        [written(each) for each in events(answer(asked, *items))]
        if asked.body.get("stream")
        else answer(asked, *items)
    )
    history: list[object] = [{"role": "user", "content": f"is {CANARY}"}]
    for _ in range(2):
        came = client.responses.create(model="m", input=history, stream=stream)
        said = list(came)[-1].response if stream else came
        assert said.output_text == f"see {CANARY}"
        history += [{"type": "item_reference", "id": each.id} for each in said.output]
        history += [{"role": "user", "content": f"{OTHER} and {CANARY}"}]
    assert upstream.asked[-1].body["input"][-1]["content"] == "<WORD_2> and <WORD_1>"
    assert upstream.asked[-1].body["input"][1] == {"type": "item_reference", "id": "rs_1"}
    count = len(upstream.asked)
    with client_of(gateway).with_options(api_key="sk-of-another") as other:
        for asking, asked in (
            (other, history),
            (client, history[1:]),
            (client, [*history, history[1]]),
        ):
            with pytest.raises(openai.BadRequestError, match="does not know the conversation"):
                asking.responses.create(model="m", input=asked)
    assert len(upstream.asked) == count


def test_an_answer_may_come_back_as_a_plain_message(client, upstream):
    upstream.answer = lambda asked: answer(asked, message("let me see: WORD_1"))
    first = client.responses.create(model="m", input=f"is {CANARY}")
    history = [
        {"role": "user", "content": f"is {CANARY}"},
        {"role": "assistant", "content": first.output_text},
        {"role": "user", "content": "is"},
    ]
    client.responses.create(model="m", input=history)
    assert upstream.asked[-1].body["input"][1] == {
        "role": "assistant",
        "content": "let me see: WORD_1",
    }


class Found(BaseModel):
    """What a program wants an answer to be."""

    name: str
    is_known: bool


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_in_json_is_parsed(client, upstream, stream):
    upstream.answer = lambda asked: (
        [
            written(each)
            for each in events(
                answer(asked, message('{"name": "<WORD_1>\\u0022", "is_known": true}'))
            )
        ]
        if asked.body.get("stream")
        else answer(asked, message('{"name": "<WORD_1>\\u0022", "is_known": true}'))
    )
    asked = {"model": "m", "input": f"is {CANARY}", "text_format": Found}
    if stream:
        with client.responses.stream(**asked) as came:
            found = came.get_final_response().output_parsed
    else:
        found = client.responses.parse(**asked).output_parsed
    assert found == Found(name=f'{CANARY}"', is_known=True)
    sent = upstream.asked[-1].body["text"]["format"]
    assert (sent["type"], sent["name"], sorted(sent["schema"]["properties"])) == (
        "json_schema",
        "Found",
        ["is_known", "name"],
    )


# ---- streams ---------------------------------------------------------------------------------------------------------

SPOKEN = "so 🙂 <WORD_1> is <WORD_2>, not <WORD_9"


def session():
    made = Session()
    with made.noting() as notes:
        notes.assign_placeholder("WORD", CANARY)
        notes.assign_placeholder("WORD", f'{OTHER} "the" \\ old')
    return made


def restored(came):
    """The events of a stream, restored."""
    stream = responses.ResponseEvents(AnswerRestorer(session()))
    made = [each.data for event in came for each in stream.feed(Event(event["type"], event))]
    made += [each.data for each in stream.close()]
    assert stream.is_complete
    return made, stream


def everything():
    arguments = json.dumps({"a": "<WORD_2>", "b": ["<WORD_1>"]})
    class_ = type("Asked", (), {"body": {"instructions": "<WORD_1>"}})
    return answer(
        class_, reasoning(SPOKEN), message(SPOKEN), call(arguments), message("<WORD_2>", id="msg_2")
    )


def summed(made):
    """The texts of a stream, by the item and the part."""
    texts: dict[tuple[int, int | None], str] = {}
    for each in made:
        if each["type"].endswith(".delta"):
            key = each["output_index"], each.get("content_index", each.get("summary_index"))
            texts[key] = texts.get(key, "") + each["delta"]
    return texts


def parts(text, rng):
    cuts = sorted(rng.sample(range(len(text) + 1), min(3, len(text))))
    return [text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])]


@pytest.mark.parametrize(
    "cut",
    [list, lambda text: [text], *([lambda text, i=i: [text[:i], text[i:]] for i in range(40)])],
)
def test_pieces_and_whole_texts_agree_at_every_cut(cut):
    whole = everything()
    made, stream = restored(events(whole, cut))
    name = f'{OTHER} "the" \\ old'
    spoken = f"so 🙂 {CANARY} is {name}, not <WORD_9"
    said = {
        (0, 0): spoken,
        (1, 0): spoken,
        (2, None): json.dumps({"a": name, "b": [CANARY]}),
        (3, 0): name,
    }
    assert summed(made) == said
    final = made[-1]["response"]
    assert final["output"][1]["content"][0]["text"] == spoken
    assert final["output"][2]["arguments"] == said[2, None]
    assert final["instructions"] == CANARY
    done = [each for each in made if each["type"].endswith("_text.done")]
    assert [each["text"] for each in done] == [spoken, spoken, name]
    items = [each["item"] for each in made if each["type"] == "response.output_item.done"]
    assert items == final["output"]
    assert [made for _, made in stream.messages] == items
    assert [came for came, _ in stream.messages] == whole["output"]
    assert [each["sequence_number"] for each in made] == list(range(len(made)))
    assert not any("obfuscation" in each for each in made)
    assert not any(each.get("logprobs") for each in made)


def test_pieces_and_whole_texts_agree_at_random_cuts():
    rng = random.Random(7)
    for _ in range(50):
        made, _ = restored(events(everything(), lambda text: parts(text, rng)))
        texts = summed(made)
        assert texts[1, 0] == made[-1]["response"]["output"][1]["content"][0]["text"]
        assert texts[2, None] == made[-1]["response"]["output"][2]["arguments"]


@pytest.mark.parametrize("size", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_bytes_may_come_in_any_pieces(client, upstream, size):
    def said(asked):
        made = answer(asked, message(f"🙂 {last_text(asked)} <WORD"))
        return b"".join(map(written, events(made)))

    upstream.answer = lambda asked: (
        said(asked)[i : i + size] for i in range(0, len(said(asked)), size)
    )
    with client.responses.stream(model="m", input=f"is {CANARY}") as stream:
        deltas = [each.delta for each in stream if each.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert final.output_text == "".join(deltas) == f"🙂 is {CANARY} <WORD"
    assert CANARY not in upstream.seen


def test_a_stream_that_breaks_off_ends_with_an_error(client, upstream):
    upstream.answer = lambda asked: [
        written(each) for each in events(answer(asked, message("is <WORD_1>")))
    ][:9]
    with pytest.raises(openai.APIError, match="broke off"):
        list(client.responses.create(model="m", input=CANARY, stream=True))


def test_events_that_lack_what_servers_forget():
    came = [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.output_text.delta", "delta": "<WO"},
        {"type": "response.output_text.delta", "delta": "RD_1>"},
        {
            "type": "response.completed",
            "response": {"id": "resp_1", "output": [message("<WORD_1>")]},
        },
    ]
    made, stream = restored(came)
    assert [each.get("delta") for each in made] == [None, CANARY, None]
    assert stream.upstream_names == ["resp_1"]
    assert stream.messages[0][1]["content"][0]["text"] == CANARY


def test_a_text_without_a_place_ends_no_other():
    came = [
        {
            "type": "response.output_text.delta",
            "output_index": 0,
            "content_index": 0,
            "delta": "see <WO",
        },
        {"type": "response.audio.transcript.delta", "delta": "said <WORD_"},
        {"type": "response.audio.delta", "delta": "AAAA"},
        {"type": "response.audio.transcript.done"},
        {
            "type": "response.output_text.delta",
            "output_index": 0,
            "content_index": 0,
            "delta": "RD_1>",
        },
        {"type": "response.completed", "response": {"id": "r", "output": []}},
    ]
    made, _ = restored(came)
    assert [each.get("delta") for each in made] == [
        "see ",
        "said ",
        "AAAA",
        "<WORD_",
        None,
        CANARY,
        None,
    ]


def test_both_outputs_of_a_shell_are_texts_of_their_own():
    kind, at = (
        "response.shell_call_output_content.delta",
        {"output_index": 0, "command_index": 0, "item_id": "x"},
    )
    came = [
        {"type": kind, "delta": {"stdout": "<WOR", "stderr": "<WORD"}, **at},
        {"type": kind, "delta": {"stdout": "D_1>", "stderr": "_1"}, **at},
        {
            "type": kind.replace("delta", "done"),
            "output": [{"stdout": "<WORD_1>", "stderr": "<WORD_1"}],
            **at,
        },
        {"type": "response.completed", "response": {"id": "r", "output": []}},
    ]
    made, _ = restored(came)
    said = [each["delta"] for each in made if "delta" in each]
    assert (
        "".join(each.get("stdout", "") for each in said)
        == CANARY
        == made[-2]["output"][0]["stdout"]
    )
    assert "".join(each.get("stderr", "") for each in said) == made[-2]["output"][0]["stderr"]


# ---- every leaf ------------------------------------------------------------------------------------------------------


def test_no_canary_leaves(client, upstream):
    count = itertools.count()

    def text(act):
        if act in (Act.MEDIA, Act.REFUSE, Act.PASS):
            return None
        return f"zq{next(count)}@blorvequine.org"

    upstream.answer = lambda asked: answer(asked._replace(raw=b"{}"), message("is"))
    planted = 0
    with client.with_options(timeout=120):
        for body in specimens(responses.RESPONSES_REQUEST, text):
            for name in ("previous_response_id", "conversation", "stream", "store"):
                body.pop(name, None)
            if isinstance(body["input"], list):
                body["input"] = [
                    each
                    for each in body["input"]
                    if each.get("type") not in ("compaction", "item_reference")
                ]
            client.post("/responses", body=body, cast_to=object)
            planted += json.dumps(body).count("blorvequine")
    assert planted > 200
    assert "blorvequine" not in upstream.seen
    assert "<EMAIL" in upstream.seen or "<WORD" in upstream.seen


def test_each_text_of_an_answer_is_restored():
    restoring = AnswerRestorer(session())
    kept = (Act.SCHEMA, Act.MEDIA, Act.PASS, Act.REFUSE)
    for rule in (responses.RESPONSES_ANSWER, responses.ITEM_LIST, responses.EVENT):
        for whole in specimens(
            rule, lambda act: None if act in kept else 7 if act is Act.OFFSET else "<WORD_1>"
        ):
            made = json.dumps(restoring.restore_json(whole, rule))
            assert "WORD" not in made
            assert CANARY in made
