"""The header `textveil-forget`: originals are gone from the answers on, and from all that the gateway keeps."""

import json

import httpx2
import pytest
from tests.gateway.servers import answer_of, serving, serving_upstream, stream_of

from textveil import Privatizer
from textveil.gateway import Gateway, ServingOptions
from textveil.session import MessageChain, SessionStore
from textveil.session.database_store import CONVERSATIONS_SESSION

MAIL, OTHER = "zoe.quillimar@example.org", "ana.other@example.net"
HEADER = "textveil-forget"


@pytest.fixture(scope="module")
def hiding():
    return Privatizer.from_profile("prompt", protect={"detectors": ["patterns", "structure"]})


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path, monkeypatch):
    if request.param == "memory":
        yield SessionStore()
        return
    pytest.importorskip("sqlalchemy")
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    with SessionStore(f"sqlite:///{tmp_path}/veil.db") as opened:
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
        self.more = {"max_tokens": 9} if route == "messages" else {}
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
