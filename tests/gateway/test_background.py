"""Responses in the background: asked for, fetched later by their names, each with its own conversation."""

import openai
import pytest
from tests.gateway.servers import serving, serving_upstream
from tests.gateway.test_chains import url as url
from tests.gateway.test_gateway import client_of, environment  # noqa: F401
from tests.gateway.test_responses import CANARY, OTHER, answer, call, events, message, written

from textveil import Privatizer
from textveil.gateway import Gateway
from textveil.session import MessageChain, SessionStore


class Jobs:
    """An upstream that works in the background: each answer is done when it was asked for twice."""

    def __init__(self):
        self.jobs = {}

    def __call__(self, asked):
        name = asked.path.partition("/responses")[2].partition("?")[0].strip("/")
        if asked.method == "POST" and not name:
            name = f"resp_{len(self.jobs) + 1}"
            self.jobs[name] = [asked, "queued"]
            return self.write(name)
        name, _, verb = name.partition("/")
        job = self.jobs[name]
        if verb == "cancel":
            job[1] = "cancelled"
        elif job[1] != "cancelled":
            job[1] = "in_progress" if job[1] == "queued" else "completed"
        if "stream=true" in asked.path:
            return [written(each) for each in events(self.write(name, "completed"))]
        return self.write(name)

    def write(self, name, status=""):
        asked, now = self.jobs[name]
        said = asked.body["input"]
        items = [message(f"is {said}?"), call('{"of": "<WORD_1>"}')]
        done = (status or now) == "completed"
        more = {"status": status or now, "background": True, "store": asked.body.get("store", True)}
        return answer(asked, *(items if done else ()), id=name, **more)


@pytest.fixture
def jobs():
    with serving_upstream(Jobs()) as server:
        yield server


@pytest.fixture(scope="module")
def privatizer(small_table):
    return Privatizer("placeholder", table=small_table)


@pytest.fixture
def gateway(jobs, privatizer):
    with serving(Gateway(privatizer=privatizer, upstream=jobs.url)) as address:
        yield address


@pytest.fixture
def client(gateway):
    with client_of(gateway) as made:
        yield made


def begin(client, text, **more):
    made = client.responses.create(model="m", input=text, background=True, **more)
    assert made.status == "queued"
    assert made.output == []
    return made.id


def fetch(client, name):
    while (made := client.responses.retrieve(name)).status in ("queued", "in_progress"):
        assert made.output == []
    return made


def test_an_answer_is_fetched_with_the_conversation_that_asked_for_it(client, jobs):
    first = begin(client, f"{CANARY} asks", instructions=f"for {CANARY}")
    second = begin(client, f"{OTHER} asks")  # it has the same placeholder, for somebody else
    made = {name: fetch(client, name) for name in (second, first)}
    assert made[first].output_text == f"is {CANARY} asks?"
    assert made[first].instructions == f"for {CANARY}"
    assert made[first].output[1].arguments == f'{{"of": "{CANARY}"}}'
    assert made[second].output_text == f"is {OTHER} asks?"
    # It is fetched as often as a client likes, and the conversation goes on.
    assert fetch(client, first).output_text == f"is {CANARY} asks?"
    third = begin(client, f"{OTHER} and {CANARY}", previous_response_id=first)
    assert fetch(client, third).output_text == f"is {OTHER} and {CANARY}?"
    assert "<WORD_1>" in jobs.bodies[-1]["input"]
    assert not jobs.shows(CANARY)
    assert not jobs.shows(OTHER)


def test_its_items_may_be_sent_back(client, jobs):
    turns = [{"role": "user", "content": f"is {CANARY}"}]
    jobs.answer.write = lambda name, status="": answer(
        jobs.answer.jobs[name][0],
        *([message("is <WORD_1>?")] if jobs.answer.jobs[name][1] == "completed" else ()),
        id=name,
        status=jobs.answer.jobs[name][1],
        background=True,
    )
    made = fetch(client, begin(client, turns))
    assert made.output_text == f"is {CANARY}?"
    turns += [each.model_dump(exclude_none=True) for each in made.output]
    begin(client, [*turns, {"role": "user", "content": f"is {CANARY}"}])
    sent = jobs.bodies[-1]["input"]
    assert [each["content"] for each in (sent[0], sent[2])] == ["is <WORD_1>", "is <WORD_1>"]
    assert sent[1]["content"][0]["text"] == "is <WORD_1>?"
    assert not jobs.shows(CANARY)


def test_a_cancelled_one(client, jobs):
    name = begin(client, f"{CANARY} asks", instructions=f"for {CANARY}")
    made = client.responses.cancel(name)
    assert (made.status, made.instructions) == ("cancelled", f"for {CANARY}")
    assert fetch(client, name).status == "cancelled"
    client.responses.delete(name)
    assert [each.method for each in jobs.asked][-1] == "DELETE"


def test_a_stream_is_taken_up_where_it_broke(client, jobs):
    name = begin(client, f"{CANARY} asks")
    whole = list(client.responses.retrieve(name, stream=True))
    assert whole[-1].response.output_text == f"is {CANARY} asks?"
    for at in range(0, len(whole), 5):
        after = whole[at].sequence_number
        rest = list(client.responses.retrieve(name, stream=True, starting_after=after))
        assert [each.model_dump() for each in rest] == [
            each.model_dump() for each in whole[at + 1 :]
        ]


def test_one_that_is_not_stored_is_fetched_all_the_same(client):
    assert fetch(client, begin(client, CANARY, store=False)).output_text == f"is {CANARY}?"


def test_nobody_fetches_what_others_asked_for(gateway, client, jobs):
    name = begin(client, f"{CANARY} asks")
    count = len(jobs.asked)
    with client_of(gateway).with_options(api_key="sk-of-another") as other:
        for ask in (
            lambda: other.responses.retrieve(name),
            lambda: list(other.responses.retrieve(name, stream=True)),
            lambda: other.responses.cancel(name),
            lambda: client.responses.retrieve("resp_of_nobody"),
        ):
            with pytest.raises(openai.NotFoundError, match="not asked for here") as error:
                ask()
            assert CANARY not in str(error.value)
    assert len(jobs.asked) == count


@pytest.mark.parametrize("kept", [True, False])
def test_a_restart(jobs, privatizer, url, kept):
    def serve(store):
        return serving(Gateway(privatizer=privatizer, upstream=jobs.url, store=store))

    place = url if kept else "memory:"
    with SessionStore(place) as store, serve(store) as address, client_of(address) as client:
        name = begin(client, f"{CANARY} asks")
    with SessionStore(place) as store, serve(store) as address, client_of(address) as client:
        if kept:
            assert fetch(client, name).output_text == f"is {CANARY} asks?"
        else:
            with pytest.raises(openai.NotFoundError, match="before a restart without a store"):
                client.responses.retrieve(name)


def test_a_gateway_that_mixes_conversations_is_caught(client, monkeypatch):
    """The broken twin: all that is kept has one name."""
    derive = MessageChain._derive_state_name
    monkeypatch.setattr(MessageChain, "_derive_state_name", lambda chain, _: derive(chain, "x"))
    first = begin(client, f"is {CANARY}")
    begin(client, f"is {OTHER}")
    with pytest.raises(AssertionError, match=OTHER):
        assert fetch(client, first).output_text == f"is is {CANARY}?"
