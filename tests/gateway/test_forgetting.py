"""The header `textveil-forget`: originals are gone from the answers on, and from all that the gateway keeps."""

import json
from typing import Any

import httpx2
import pytest
from tests.gateway.servers import answer_of, serving, serving_upstream, stream_of

from textveil import Privatizer
from textveil.gateway import Gateway, ServingOptions
from textveil.gateway.request_flow import RequestFlow
from textveil.session import MessageChain, SessionStore
from textveil.session.stores import CONVERSATIONS_SESSION

MAIL, OTHER = "zoe.quillimar@example.org", "ana.other@example.net"
HEADER = "textveil-forget"


@pytest.fixture(scope="module")
def hiding():
    return Privatizer.from_profile("prompt", protect={"detectors": ["patterns", "structure"]})


@pytest.fixture(params=["memory", "sqlite", "redis"])
def store(request, tmp_path, monkeypatch):
    if request.param == "memory":
        yield SessionStore()
        return
    pytest.importorskip("sqlalchemy")
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/veil.db" if sqlite else request.getfixturevalue("redis")
    with SessionStore(url) as opened:
        yield opened


def read_rows(gateway):
    """All that the gateway keeps of conversations, opened."""
    store, rows = gateway.store, []
    if hasattr(store, "_links"):
        rows += [content for _, content in store._links._rows.values()]
    else:
        for info in store.sessions():
            if info.session == CONVERSATIONS_SESSION:
                session = store.open(info.subject, info.session)
                reader = store.build_reader(session.number)
                rows += [
                    session.cipher.open(row.kind, row.name, row.content)
                    for row in reader.read_all()
                ]
    for prefix in gateway.prefix_cache._prefixes.values():
        rows += [*prefix.rows, repr([vars(link) for link in prefix.links]).encode()]
    assert rows
    return b"\n".join(rows).decode()


def repeat(asked):
    """An answer with each placeholder of the last message, and one of an earlier one."""
    text = f"noted <EMAIL_1> and {asked.body['messages'][-1]['content']}"
    if asked.body.get("stream"):
        return stream_of([{"content": piece} for piece in text])
    if "max_tokens" in asked.body:
        block = {"type": "text", "text": text}
        return {
            "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block],
            "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
    return answer_of({"content": text})


class Conversation:
    """A client that sends all messages with each request."""

    def __init__(self, address, route, *, stream=False):
        self.url, self.route, self.messages = f"{address}/{route}", route, []
        self.more: dict[str, Any] = {"max_tokens": 9} if route == "messages" else {}
        self.more |= {"stream": True} if stream else {}

    def ask(self, text, **headers):
        self.messages.append({"role": "user", "content": text})
        body = {"model": "m", "messages": self.messages, **self.more}
        with httpx2.Client(trust_env=False, timeout=None) as http:
            response = http.post(self.url, json=body, headers=headers)
        if response.status_code != 200:
            self.messages.pop()
            return response, response.text
        if self.more.get("stream"):
            events = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
            deltas = [json.loads(event)["choices"][0]["delta"] for event in events]
            answer = "".join(delta.get("content") or "" for delta in deltas)
        elif self.route == "messages":
            answer = response.json()["content"][0]["text"]
        else:
            answer = response.json()["choices"][0]["message"]["content"]
        self.messages.append({"role": "assistant", "content": answer})
        return response, answer


def hold_conversation(hiding, store, route, stream=False):
    """Asks, forgets and asks on; returns what was kept when it was forgotten."""
    with serving_upstream(repeat) as upstream:
        gateway = Gateway(privatizer=hiding, upstream=upstream.url, store=store)
        with serving(gateway) as address:
            client = Conversation(address, route, stream=stream)
            _, answer = client.ask(f"write to {MAIL} and {OTHER}")
            assert answer == f"noted {MAIL} and write to {MAIL} and {OTHER}"
            assert MAIL in read_rows(gateway)
            response, answer = client.ask("go on", **{HEADER: "<EMAIL_1>"})
            assert response.headers[HEADER] == "1"
            assert answer == "noted <EMAIL_1> and go on"
            kept = read_rows(gateway)
            response, answer = client.ask(f"{OTHER}?")
            assert HEADER not in response.headers
            assert answer == f"noted <EMAIL_1> and {OTHER}?"
            assert "write to <EMAIL_1> and <EMAIL_2>" in upstream.asked[-1].whole.decode()
            _, answer = client.ask(f"{MAIL}?")
            assert upstream.asked[-1].body["messages"][-1]["content"] == "<EMAIL_3>?"
            assert answer == f"noted <EMAIL_1> and {MAIL}?", "found anew"
        assert not upstream.shows(MAIL)
        assert HEADER not in str([asked.headers for asked in upstream.asked]).lower()
    assert OTHER in kept
    return kept


@pytest.mark.parametrize(
    ("route", "stream"),
    [("chat/completions", False), ("chat/completions", True), ("messages", False)],
)
def test_an_original_is_gone(hiding, store, route, stream) -> None:
    assert MAIL not in hold_conversation(hiding, store, route, stream)


TOOLS = [
    {"type": "function", "function": {"name": "find", "description": f"Finds people. Ask {MAIL}."}}
]


def post(url, body, **headers):
    with httpx2.Client(trust_env=False, timeout=None) as http:
        return http.post(url, json=body, headers=headers)


def say_mail(asked):
    return answer_of({"content": "ask <EMAIL_1>"})


def forget_tools(hiding, store, later_tools, first="Hello."):
    """Forgets what a tool's description holds; returns what was kept, and both first turns with all that was sent."""
    with serving_upstream(say_mail) as upstream:
        gateway = Gateway(privatizer=hiding, upstream=upstream.url, store=store)
        with serving(gateway) as address:
            url = f"{address}/chat/completions"
            start = {"role": "user", "content": first}
            turn = {"model": "m", "messages": [start], "tools": TOOLS}
            answer = post(url, turn).json()["choices"][0]["message"]
            assert answer["content"] == f"ask {MAIL}"
            assert MAIL in read_rows(gateway)
            more = [start, answer, {"role": "user", "content": "go on"}]
            response = post(
                url, {"model": "m", "messages": more, "tools": later_tools}, **{HEADER: "EMAIL"}
            )
            assert response.headers[HEADER] == "1"
            assert response.json()["choices"][0]["message"]["content"] == "ask <EMAIL_1>"
            kept = read_rows(gateway)
            again = post(url, turn).json()["choices"][0]["message"]["content"]
            edited = [start, {**answer, "content": "no"}, {"role": "user", "content": OTHER}]
            post(url, {"model": "m", "messages": edited, "tools": TOOLS})
        assert not upstream.shows(MAIL)
        return kept, again, upstream.bodies


CHANGED_TOOLS = [{"type": "function", "function": {"name": "find", "description": "Finds."}}]


@pytest.mark.parametrize("tools", [TOOLS, CHANGED_TOOLS], ids=["same", "changed"])
def test_what_stood_beside_an_earlier_message_is_gone(hiding, store, tools) -> None:
    kept, again, sent = forget_tools(hiding, store, tools)
    assert MAIL not in kept
    assert again == "ask <EMAIL_1>"
    assert sent[2]["tools"] == sent[0]["tools"]


def test_a_forgotten_placeholder_does_not_get_another_value_in_a_branch(hiding, store) -> None:
    """The branch does not know that the name is taken, so its tools are released anew."""
    _, _, sent = forget_tools(hiding, store, TOOLS)
    assert sent[3]["messages"][-1]["content"] not in json.dumps(sent[3]["tools"])


def test_a_gateway_that_rewrites_only_the_chain_is_caught(hiding, store, monkeypatch) -> None:
    monkeypatch.setattr(type(store.links("anna")), "find_beside", lambda *_: {})
    kept, again, _ = forget_tools(hiding, store, TOOLS)
    assert MAIL in kept
    assert again == f"ask {MAIL}"


def forget_thoughts(hiding, store, tools):
    """Forgets in a conversation whose answers return without their thoughts; returns what was kept, and the answer to
    those that return with them."""

    def think(_):
        parts = [{"text": "Is it <EMAIL_1>?", "thought": True}, {"text": "It is <EMAIL_1>."}]
        content = {"role": "model", "parts": parts}
        return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}

    with serving_upstream(think) as upstream:
        gateway = Gateway(privatizer=hiding, upstream=upstream.url, store=store)
        with serving(gateway, "/v1beta/models/gemini-3-flash:generateContent") as url:
            start = {"role": "user", "parts": [{"text": "Who?" if tools else f"Who is {MAIL}?"}]}
            declared = [{"name": "find", "description": f"Finds people. Ask {MAIL}."}]
            more = {"tools": [{"functionDeclarations": declared}]} if tools else {}
            full = post(url, {"contents": [start], **more}).json()["candidates"][0]["content"]
            assert [part["text"] for part in full["parts"]] == [f"Is it {MAIL}?", f"It is {MAIL}."]
            bare, on = (
                {**full, "parts": full["parts"][1:]},
                {"role": "user", "parts": [{"text": "go on"}]},
            )
            response = post(url, {"contents": [start, bare, on], **more}, **{HEADER: "<EMAIL_1>"})
            assert response.headers[HEADER] == "1"
            kept = read_rows(gateway)
            again = post(url, {"contents": [start, full, on]})
        assert not upstream.shows(MAIL)
        return kept, again.json()["candidates"][0]["content"]["parts"][1]["text"]


@pytest.mark.parametrize("tools", [True, False])
def test_answers_that_were_stored_in_other_forms_forget_it_too(hiding, store, tools) -> None:
    kept, again = forget_thoughts(hiding, store, tools)
    assert MAIL not in kept
    assert again == "It is <EMAIL_1>."


@pytest.mark.parametrize("tools", [True, False])
def test_a_gateway_that_rewrites_only_the_form_that_came_back_is_caught(
    hiding, store, monkeypatch, tools
) -> None:
    monkeypatch.setattr(type(store.links("anna")), "find_beside", lambda *_: {})
    kept, again = forget_thoughts(hiding, store, tools)
    assert MAIL in kept
    assert again == ("It is " + (MAIL if tools else "<EMAIL_1>") + ".")


def forget_dry(hiding, store):
    """The status and the text of a dry run that is to forget, and the answer to the request after it."""
    with serving_upstream(repeat) as upstream:
        gateway = Gateway(privatizer=hiding, upstream=upstream.url, store=store)
        with serving(gateway) as address:
            client = Conversation(address, "chat/completions")
            client.ask(f"write to {MAIL}")
            body = {"model": "m", "messages": [*client.messages, {"role": "user", "content": "?"}]}
            response = post(
                f"{address}/chat/completions", body, **{"textveil-dry-run": "1", HEADER: "EMAIL"}
            )
            assert len(upstream.asked) == 1
            return response.status_code, response.text, client.ask("go on")[1]


def test_a_dry_run_forgets_nothing(hiding, store) -> None:
    status, said, answer = forget_dry(hiding, store)
    assert (status, answer) == (400, f"noted {MAIL} and go on")
    assert HEADER in said
    assert "textveil-dry-run" in said
    assert MAIL not in said


def test_a_dry_run_that_forgets_is_caught(hiding, store, monkeypatch) -> None:
    release = RequestFlow.release

    def forget_in_dry_runs(self, prepared, _):
        return release(self, prepared, "EMAIL" if self._record.dry else None)

    monkeypatch.setattr(RequestFlow, "release", forget_in_dry_runs)
    monkeypatch.setattr("textveil.gateway.api_routes.FORGET_HEADER", "another")
    status, _, answer = forget_dry(hiding, store)
    assert status == 200
    assert answer != f"noted {MAIL} and go on"


def test_another_conversation_with_one_system_prompt_keeps_its_own(hiding, store) -> None:
    """Even the same value, and another under the same placeholder."""
    with serving_upstream(repeat) as upstream:
        gateway = Gateway(privatizer=hiding, upstream=upstream.url, store=store)
        with serving(gateway) as address:
            clients = [Conversation(address, "chat/completions") for _ in range(3)]
            texts = [f"write to {MAIL}", f"to {MAIL}, please", f"write to {OTHER}"]
            for client, text in zip(clients, texts, strict=True):
                client.messages.append({"role": "system", "content": "Be kind."})
                client.ask(text)
            _, answer = clients[0].ask("go on", **{HEADER: "<EMAIL_1>"})
            assert answer == "noted <EMAIL_1> and go on"
            said = [client.ask("go on")[1] for client in clients[1:]]
            assert said == [f"noted {MAIL} and go on", f"noted {OTHER} and go on"]


def test_a_second_time_forgets_what_came_since(hiding, store) -> None:
    with serving_upstream(repeat) as upstream:
        gateway = Gateway(privatizer=hiding, upstream=upstream.url, store=store)
        with serving(gateway) as address:
            client = Conversation(address, "chat/completions")
            client.more = {"tools": TOOLS}
            client.ask("Hello.")
            client.ask("go on", **{HEADER: "EMAIL"})
            client.ask(f"write to {MAIL}")
            assert MAIL in read_rows(gateway)
            response, _ = client.ask("and on", **{HEADER: "EMAIL"})
            assert response.status_code == 200
            assert MAIL not in read_rows(gateway)


@pytest.mark.parametrize("part", ["_filter_repeats", "links"])
def test_a_gateway_that_keeps_some_rows_is_caught(hiding, store, monkeypatch, part) -> None:
    if part == "links":
        forget = MessageChain.forget

        def forget_state(self, names):
            links, rows = [*self.links], [*self._rows]
            self.links, self._rows = [], []
            count = forget(self, names)
            self.links, self._rows = links, rows
            return count

        monkeypatch.setattr(MessageChain, "forget", forget_state)
        with pytest.raises(AssertionError):  # the next request restores it again
            hold_conversation(hiding, store, "chat/completions")
        return
    monkeypatch.setattr(MessageChain, part, lambda *_: {})
    assert MAIL in hold_conversation(hiding, store, "chat/completions")


def test_what_cannot_be_forgotten_is_refused_and_nothing_is_sent(hiding, store, tmp_path) -> None:
    log = tmp_path / "audit.log"
    with serving_upstream(repeat) as upstream:
        gateway = Gateway(
            privatizer=hiding,
            upstream=upstream.url,
            store=store,
            running=ServingOptions(audit_log=str(log)),
        )
        with serving(gateway) as address:
            client = Conversation(address, "chat/completions")
            client.ask(f"write to {MAIL}")
            for names in ("<EMAIL_7>", "<EMAIL_1>, DATE", MAIL, "", "<EMAIL_1>,"):
                response, said = client.ask("go on", **{HEADER: names})
                assert response.status_code == 400
                assert "nothing was forgotten" in said
                assert MAIL not in said
            assert len(upstream.asked) == 1
            with httpx2.Client(trust_env=False, timeout=None) as http:
                refused = http.post(
                    f"{address}/responses",
                    json={"model": "m", "input": MAIL},
                    headers={HEADER: "<EMAIL_1>"},
                )
            assert refused.status_code == 400
            assert "whole conversation" in refused.text
            assert len(upstream.asked) == 1
            _, answer = client.ask("go on")
            assert answer == f"noted {MAIL} and go on"
            response, answer = client.ask("and on", **{HEADER: "EMAIL"})
            assert (response.headers[HEADER], answer) == ("1", "noted <EMAIL_1> and and on")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    counts = [line["forgotten"] for line in lines if line["event"] == "request"]
    assert counts == [0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert MAIL not in log.read_text()
