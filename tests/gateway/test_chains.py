"""A conversation that is sent again with every request: each message is released once.

Not here: what an attacker gets of it otherwise (`tests.contract.test_over_time`).
"""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from itertools import pairwise
from threading import Barrier, BrokenBarrierError

import pytest
from tests.gateway.servers import serving
from tests.gateway.test_gateway import client_of, post

from textveil import Privatizer
from textveil.errors import ConfigError, StoreError
from textveil.gateway import Gateway
from textveil.gateway.errors import RequestError
from textveil.gateway.protocols.chat import CHAT
from textveil.gateway.request.protect_message import MessageReleaser
from textveil.gateway.request.request_record import RequestRecord
from textveil.gateway.request_flow import RequestFlow
from textveil.pipeline.consistent import Replay
from textveil.session import MessageChain, SessionStore, Utterance
from textveil.session.conversations import Link, PrefixCache
from textveil.session.memory_links import MemoryLinkStore
from textveil.session.sql.ledger import Ledger

KEY, OTHER = "Bearer one", "Bearer other"
SECRET = "hunter2Xy9kq"


@pytest.fixture
def store():
    return SessionStore()


@pytest.fixture
def url(tmp_path, monkeypatch):
    pytest.importorskip("sqlalchemy", reason="the extra `store` is not installed")
    pytest.importorskip("cryptography", reason="the extra `store` is not installed")
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    return f"sqlite:///{tmp_path / 'veil.db'}"


@pytest.fixture(scope="module")
def noisy(small_table):
    """Draws so wide that the same word is hardly drawn twice alike."""
    return Privatizer("noise", table=small_table, eta=1.0)


@pytest.fixture(scope="module")
def hiding(small_table):
    """Hides identifiers only; a password without its key is none."""
    words = {"casing": "copy", "consistent": True}
    detectors, budgets = {"detectors": ["patterns"]}, {"budgets": [0, 0, math.inf, math.inf]}
    return Privatizer(
        "placeholder", table=small_table, words=words, protect=detectors, groups=budgets
    )


def gateway(privatizer, store):
    return Gateway(privatizer=privatizer, upstream="http://127.0.0.1:9/v1", store=store)


def privatized(served, body, key=KEY):
    """What would be sent, the chain, and headers."""
    account = served.identify_caller({"authorization": key}).account
    exchange = RequestFlow(served, CHAT, body, account, RequestRecord("openai.chat"))
    begun = exchange.prepare(None)
    released, headers = exchange.release(begun)
    return released, begun.chain, headers


def ask(served, messages, key=KEY):
    """What would be sent, the chain, and the header's promise."""
    body = {"model": "m", "messages": [{"role": role, "content": text} for role, text in messages]}
    released, chain, headers = privatized(served, body, key)
    promise = json.loads(headers["textveil-statement"])
    return [message["content"] for message in released["messages"]], chain, promise


def assistant(text):
    return Utterance("assistant", (text,))


def talk(served, turns, words):
    """What is sent in each turn of a conversation in which the model says what the user said last."""
    messages, sent = [("system", " ".join(words[:8]))], []
    for turn in range(turns):
        messages.append(("user", " ".join(words[turn : turn + 8])))
        shown, chain, promise = ask(served, messages)
        restored = chain.session.restore(shown[-1])
        chain.save_answers([(assistant(shown[-1]), assistant(restored))])
        messages.append(("assistant", restored))
        sent.append((shown, promise))
    return sent


def repeated(sent):
    """Whether every request begins with what the one before it sent."""
    return all(after[: len(before)] == before for (before, _), (after, _) in pairwise(sent))


def test_every_message_is_drawn_once(noisy, store, small_table):
    sent = talk(gateway(noisy, store), 12, small_table.words)
    assert repeated(sent)
    counts = [(promise["drawn"], promise["repeated"]) for _, promise in sent]
    assert counts == [(2, 0)] + [(1, 2 * turn + 1) for turn in range(1, 12)]
    for (before, _), (after, _) in pairwise(sent):
        assert after[len(before)] == before[-1]  # the answer, as the model gave it


def test_a_memory_that_forgets_would_draw_anew(noisy, store, small_table, monkeypatch):
    monkeypatch.setattr(MemoryLinkStore, "get", lambda self, names: {})
    assert not repeated(talk(gateway(noisy, store), 3, small_table.words))


def clock(served, words):
    """What is sent for one message behind a first message that is another one each time."""
    text = " ".join(words[:12])
    return [ask(served, [("system", f"it is 10:0{i}"), ("user", text)])[0][1] for i in range(3)]


def test_a_clock_in_the_first_message_leads_to_no_new_draws(noisy, store, small_table):
    assert len(set(clock(gateway(noisy, store), small_table.words))) == 1


def test_the_header_counts_a_value_however_its_placeholder_is_written(hiding, store):
    document = "<r><a>r.taylor@example.org</a></r>"
    for texts in (
        [document],
        [document.replace("</r>", "<![CDATA[r.taylor@example.org]]></r>"), "r.taylor@example.org"],
    ):
        body = {"model": "m", "messages": [{"role": "user", "content": text} for text in texts]}
        released, _, headers = privatized(gateway(hiding, store), body)
        assert released["messages"][0]["content"].startswith("<r><a>&lt;EMAIL_1&gt;</a>")
        assert headers["textveil-protected"] == "EMAIL=1"


def test_counts_follow_from_what_was_drawn(noisy, hiding, small_table):
    """New messages, those in which something was drawn, and those that are sent again."""
    word, mail = small_table.words[40], "mail a@first.example"
    hidden, first = [("user", mail)], [("user", word)]
    talks = [  # what is asked one after the other of a new gateway, and the counts
        (noisy, [first, first, [*first, ("user", "the")]], [(1, 1, 0), (0, 0, 1), (1, 0, 1)]),
        (
            noisy,
            [[("system", f"10:0{i}"), *first] for i in range(3)],
            [(2, 2, 0), (1, 1, 1), (1, 1, 1)],
        ),
        (noisy, [[("system", "the"), *first], [("system", "of"), *first]], [(2, 1, 0), (1, 0, 1)]),
        (noisy, [[("user", "")], [("user", "!")]], [(1, 0, 0), (1, 0, 0)]),
        (hiding, [hidden, hidden, [("system", mail), *hidden]], [(1, 0, 0), (0, 0, 1), (1, 0, 1)]),
        (hiding, [[("tool", mail)], [("tool", mail), ("tool", "done")]], [(1, 0, 0), (1, 0, 1)]),
    ]
    for privatizer, asked, expected in talks:
        served = gateway(privatizer, SessionStore())
        made = [ask(served, messages)[2] for messages in asked]
        assert [(each["new"], each["drawn"], each["repeated"]) for each in made] == expected
        for (_, drawn, _), each in zip(expected, made, strict=True):
            assert ("drawn for this request" in each["said"]) == (drawn > 0)


TOOLS = [
    {"type": "function", "function": {"name": name, "description": described}}
    for name, described in [
        ("Edit", "Edits a file of maria@example.org."),
        ("Read", "Reads a file; call 212-555-0148 about hunter2Xy9kq."),
    ]
]


def ask_with_tools(served, messages, tools=TOOLS):
    """What would be sent: the messages and tools as text; and the chain."""
    said = [{"role": role, "content": text} for role, text in messages]
    released, chain, _ = privatized(served, {"model": "m", "messages": said, "tools": tools})
    return [json.dumps(released[name]) for name in ("messages", "tools")], chain


@pytest.fixture
def scans(monkeypatch):
    """Schemas that were searched for values, one by one."""
    found = []
    release = MessageReleaser._release_schema

    def counted(self, text, session, words):
        found.append(text)
        return release(self, text, session, words)

    monkeypatch.setattr(MessageReleaser, "_release_schema", counted)
    return found


def test_tools_are_released_once(hiding, store, scans):
    served = gateway(hiding, store)
    said = [("user", "Greet anna@example.org.")]
    (_, first), chain = ask_with_tools(served, said)
    assert len(scans) == 2
    assert "maria@example.org" not in first
    chain.save_answers([(assistant("Done."), assistant("Done."))])
    said += [("assistant", "Done."), ("user", "And ben@example.org.")]
    (_, second), chain = ask_with_tools(served, said)
    assert second == first
    assert len(scans) == 2
    assert chain.counts == {"new": 1, "drawn": 0, "repeated": 3}
    changed = [
        TOOLS[0],
        {"type": "function", "function": {"name": "Find", "description": "Finds."}},
    ]
    (_, third), _ = ask_with_tools(served, said, changed)
    assert len(scans) == 3  # one tool is new, the other is not
    assert json.loads(third)[0] == json.loads(first)[0]


def learned_later(served):
    """The tools before and after a message that shows a word of theirs to be private."""
    said = [("user", "Hello.")]
    (_, before), chain = ask_with_tools(served, said)
    chain.save_answers([(assistant("Hi."), assistant("Hi."))])
    said += [("assistant", "Hi."), ("user", "My password: hunter2Xy9kq")]
    (_, after), _ = ask_with_tools(served, said)
    return before, after


def test_tools_hide_what_a_later_message_shows_to_be_private(hiding, store):
    before, after = learned_later(gateway(hiding, store))
    assert SECRET in before
    assert SECRET not in after
    assert json.loads(before)[0] == json.loads(after)[0]


def test_a_memory_that_asks_for_no_new_values_would_show_them(hiding, store, monkeypatch):
    monkeypatch.setattr("textveil.session.conversations.may_hold", lambda text, values: False)
    assert SECRET in learned_later(gateway(hiding, store))[1]


def test_tools_are_released_anew_behind_other_rows(hiding, store, scans, monkeypatch):
    served = gateway(hiding, store)
    said = [("user", "Greet anna@example.org.")]
    ask_with_tools(served, said)
    # As if the first message had been forgotten, and were released differently.
    monkeypatch.setattr(MessageChain, "_digest_rows", lambda self, count: b"other")
    ask_with_tools(served, [*said, ("assistant", "Done."), ("user", "Thanks.")])
    assert len(scans) == 4


def test_tools_are_released_anew_where_the_answer_is_not_the_same(hiding, store):
    served = gateway(hiding, store)
    said = [("user", "Hello.")]
    (_, first), chain = ask_with_tools(served, said)
    chain.save_answers([(assistant("Hi."), assistant("Hi."))])
    # Nothing that is sent back says what the tools' placeholders stand for, and a new value comes.
    said += [("assistant", "Edited."), ("user", "Write to ben@example.org.")]
    (messages, second), chain = ask_with_tools(served, said)
    assert chain.session.restore(second) == json.dumps(TOOLS)
    assert "<EMAIL_1>" in messages
    assert first != second


def test_without_memory_of_messages_a_clock_would(noisy, store, small_table, monkeypatch):
    monkeypatch.setattr(Replay, "apply", lambda _, release: release)
    assert len(set(clock(gateway(noisy, store), small_table.words))) == 3


def test_a_branch_knows_nothing_of_the_other(hiding, store):
    served = gateway(hiding, store)
    start = [("user", "write to a@first.example"), ("assistant", "done")]
    one, first, _ = ask(served, [*start, ("user", "and to b@second.example")])
    two, second, promise = ask(served, [*start, ("user", "and to c@third.example")])
    assert one == ["write to <EMAIL_1>", "done", "and to <EMAIL_2>"] == two
    assert first.session.restore("<EMAIL_1> <EMAIL_2>") == "a@first.example b@second.example"
    assert second.session.restore("<EMAIL_1> <EMAIL_2>") == "a@first.example c@third.example"
    assert (promise["new"], promise["drawn"], promise["repeated"]) == (1, 0, 2)
    assert (
        ask(served, [*start, ("user", "and to b@second.example")])[1]
        .session.restore("<EMAIL_2>")
        .startswith("b@")
    )


def talk_of_many(served):
    """What is sent and known in a conversation in which every turn names somebody else, with branches on the way."""
    messages, seen = [], []
    for turn in range(12):
        messages.append(("user", f"write to p{turn}@example.org and to p{turn // 2}@example.org"))
        other = [*messages[:-1], ("user", f"no, to q{turn}@example.org"), ("user", "again")]
        for asked in (messages, other):
            shown, chain, _ = ask(served, asked)
            seen.append(
                (shown, chain.session.restore(" ".join(f"<EMAIL_{i}>" for i in range(1, 30))))
            )
        shown, chain, _ = ask(served, messages)
        chain.save_answers([(assistant(shown[-1]), assistant(chain.session.restore(shown[-1])))])
        messages.append(("assistant", chain.session.restore(shown[-1])))
    return seen


def test_a_turn_reads_only_what_is_new(hiding, monkeypatch):
    """And knows the same as if it had read all of it."""
    reads: list[bytes] = []
    read = Link.read

    def counted(row: bytes) -> Link:
        reads.append(row)
        return read(row)

    monkeypatch.setattr(Link, "read", counted)
    seen = talk_of_many(gateway(hiding, SessionStore()))
    few = len(reads)
    reads.clear()
    monkeypatch.setattr(PrefixCache, "keep", lambda *_: None)
    assert talk_of_many(gateway(hiding, SessionStore())) == seen
    assert few < 12 * 3 * 4 < len(reads)


def test_what_a_store_forgets_is_not_known_from_memory(hiding, url):
    with SessionStore(url) as store:
        served = gateway(hiding, store)
        messages = [
            ("user", "write to a@first.example"),
            ("assistant", "done"),
            ("user", "to b@second.example"),
        ]
        first = ask(served, messages)
        assert ask(served, messages)[2]["new"] == 0
        (account,) = store.sessions()
        assert store.forget(account.subject) == 1
        promise = ask(served, messages)[2]
        assert promise["new"] == 3
        assert first[0] == ask(served, messages)[0]


def test_two_accounts_share_nothing(noisy, hiding, store, small_table):
    messages = [("user", " ".join(small_table.words[:20]))]
    served = gateway(noisy, store)
    assert ask(served, messages)[0] == ask(served, messages)[0] != ask(served, messages, OTHER)[0]
    assert (
        ask(served, messages, None)[0] == ask(served, messages, None)[0] != ask(served, messages)[0]
    )
    assert ask(served, messages, None)[0] != ask(gateway(noisy, store), messages, None)[0]
    guarded = gateway(hiding, store)
    assert ask(guarded, [("user", "a@b.example")])[1].session.restore("<EMAIL_1>") == "a@b.example"
    assert (
        ask(guarded, [("user", "who is it?")], OTHER)[1].session.restore("<EMAIL_1>") == "<EMAIL_1>"
    )


def test_another_configuration_is_another_conversation(noisy, store, small_table):
    messages = [("user", " ".join(small_table.words[:20]))]
    wider = Privatizer("noise", table=small_table, eta=1.5)
    assert ask(gateway(wider, store), messages)[2]["drawn"] == 1
    assert ask(gateway(noisy, store), messages)[2]["drawn"] == 1
    assert ask(gateway(wider, store), messages)[2]["drawn"] == 0
    for epsilon in (20, 30):
        spending = Privatizer("noise", table=small_table, epsilon=epsilon)
        assert ask(gateway(spending, store), messages)[2]["drawn"] == 1


def test_requests_at_the_same_time_send_the_same(noisy, store, small_table, url):
    messages = [("user", " ".join(small_table.words[:20]))]
    for kept in (store, SessionStore(url)):
        served = gateway(noisy, kept)
        with ThreadPoolExecutor(4) as pool:
            sent = list(pool.map(partial(ask, served), [messages] * 8))
        assert len({shown[0] for shown, *_ in sent}) == 1
        kept.close()


def at_once(noisy, small_table, url):
    """How often a message is charged that four threads send at the same time, and how it is sent then and later."""
    messages = [("user", " ".join(small_table.words[:20]))]
    with SessionStore(url) as store, ThreadPoolExecutor(4) as pool:
        together, release = Barrier(4), MessageReleaser.__call__

        def waiting(self, message, session, **named):
            with suppress(BrokenBarrierError):
                together.wait(0.5)
            return release(self, message, session, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(MessageReleaser, "__call__", waiting)
            sent = list(pool.map(partial(ask, gateway(noisy, store)), [messages] * 4))
        assert len({shown[0] for shown, *_ in sent}) == 1
        charged = store.ledger.accounts()[0].epsilon
        later = ask(gateway(noisy, store), [("system", "it is 10:01"), *messages])[0][1]
        return (
            charged / noisy.privatize(messages[0][1]).guarantee.epsilon_per_word.sum(),
            sent[0][0][0],
            later,
        )


def test_requests_at_the_same_time_are_charged_once(noisy, small_table, url):
    charged, then, later = at_once(noisy, small_table, url)
    assert charged == pytest.approx(1)
    assert then == later  # and none of the draws that were thrown away


def test_without_a_name_for_the_charge_each_would_be_charged(noisy, small_table, url, monkeypatch):
    reserve = Ledger.reserve_all
    monkeypatch.setattr(
        Ledger, "reserve_all", lambda *args, **given: reserve(*args, **given | {"key": None})
    )
    assert at_once(noisy, small_table, url)[0] > 1.5


def test_a_request_that_is_sent_again_under_its_key_is_the_same(
    openai_server, noisy, url, small_table
):
    """The upstream fails, until it sees the same body a second time."""
    words = " ".join(small_table.words[:8])
    body = {
        "model": "fail-once",
        "messages": [{"role": "user", "content": words}],
        "temperature": 0.5,
    }
    other = {**body, "model": "echo", "temperature": 0.7}
    with (
        SessionStore(url) as store,
        serving(Gateway(privatizer=noisy, upstream=openai_server, store=store)) as address,
    ):
        headers = {"Authorization": KEY, "Idempotency-Key": "order 66"}
        assert [post(address, body, **headers)[0] for _ in range(3)] == [500, 200, 200]
        status, refused = post(address, other, **headers)
        assert (status, refused["error"]["code"]) == (422, "idempotency")
        assert small_table.words[0] not in json.dumps(refused)
        assert post(address, other, **{**headers, "Authorization": OTHER})[0] == 200
        assert post(address, other, **{**headers, "Idempotency-Key": "order 67"})[0] == 200
        assert post(address, body, **{**headers, "Idempotency-Key": "x" * 256})[0] == 400
        first, second = [account.releases for account in store.ledger.accounts()]
        assert first == second == 1
    wider = Privatizer("noise", table=small_table, eta=1.5)
    with (
        SessionStore(url) as store,
        serving(Gateway(privatizer=wider, upstream=openai_server, store=store)) as address,
    ):
        assert post(address, body, **headers)[0] == 422  # its draws would be others


def test_a_store_continues_a_conversation_and_counts_what_it_spent(noisy, small_table, url):
    with SessionStore(url) as store:
        sent = talk(gateway(noisy, store), 4, small_table.words)
        (account,) = store.ledger.accounts()
        assert repeated(sent)
        assert account.subject.startswith("client-")
        assert account.releases == 5  # the first message and four of the user
        assert [each["what"] for each in store.ledger.entries()] == ["reserve", "confirm"] * 5
        alone = sum(
            float(noisy.privatize(text).guarantee.epsilon_per_word.sum())
            for text in said(small_table, 4)
        )
        assert account.epsilon == pytest.approx(alone, rel=1e-6)
    with SessionStore(url) as store:
        messages = [
            ("system", " ".join(small_table.words[:8])),
            ("user", " ".join(small_table.words[:8])),
        ]
        assert ask(gateway(noisy, store), messages)[0] == sent[0][0]
        assert store.ledger.accounts() == [account]
        clocked = [("system", "10:01"), messages[1]]
        ask(gateway(noisy, store), clocked)
        clock = float(noisy.privatize("10:01").guarantee.epsilon_per_word.sum())
        assert store.ledger.accounts()[0].epsilon == pytest.approx(
            account.epsilon + clock
        )  # and no word of the rest
        assert store.forget(account.subject) == 1
        assert ask(gateway(noisy, store), messages)[0] != sent[0][0]


def said(table, turns):
    return [
        " ".join(table.words[:8]),
        *(" ".join(table.words[turn : turn + 8]) for turn in range(turns)),
    ]


def test_arguments_of_tools_are_drawn_value_by_value_and_once(noisy, small_table, url):
    first, second, third = small_table.words[:3]
    given = {first: [f"{first} {second}", {"n": 5, "ok": None}], "to": third}
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "f", "arguments": json.dumps(given)},
    }
    body = {"model": "m", "messages": [{"role": "assistant", "tool_calls": [call]}]}
    with SessionStore(url) as store:
        served = gateway(noisy, store)
        sent = [privatized(served, body)[0] for _ in range(3)]
        texts = [f"{first} {second}", "5", third]
        once = sum(float(noisy.privatize(text).guarantee.epsilon_per_word.sum()) for text in texts)
        assert store.ledger.accounts()[0].epsilon == pytest.approx(once, rel=1e-6)
    assert sent[0] == sent[1] == sent[2]
    made = json.loads(sent[0]["messages"][0]["tool_calls"][0]["function"]["arguments"])
    assert made.keys() == given.keys()
    assert made[first][1].keys() == {"n", "ok"}
    assert made[first][1]["ok"] is None
    assert made != given


def test_parts_of_a_message_that_spend_alike_are_all_charged(small_table, url):
    """Each value of a call is charged on its own, though all spend the same."""
    even = Privatizer("krr", table=small_table, epsilon=3)
    calls = [
        {
            "id": str(i),
            "type": "function",
            "function": {"name": "f", "arguments": json.dumps({"q": word})},
        }
        for i, word in enumerate(small_table.words[:4])
    ]
    body = {"model": "m", "messages": [{"role": "assistant", "tool_calls": calls}]}
    with SessionStore(url) as store:
        for _ in range(2):  # sent again, nothing is drawn
            privatized(gateway(even, store), body)
            (account,) = store.ledger.accounts()
            assert (account.epsilon, account.releases) == (12, 4)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("kind", ["memory", "sqlite", "redis"])
def test_of_two_requests_of_one_conversation_at_once_one_is_sent(hiding, request, kind, first):
    """And the other one, sent again, has placeholders of its own."""
    url = request.getfixturevalue("url")  # which says where keys lie
    kinds = {"memory": "memory:", "sqlite": url}
    with SessionStore(kinds.get(kind) or request.getfixturevalue(kind)) as kept:
        links = kept.links("anna")

        def begun(text, *, new=False):
            after = None if new else "conversation"
            return MessageChain(
                links, "anna", "basis", [Utterance("user", (text,))], upstream_name=after
            )

        def released(chain):
            chain.release(MessageReleaser(hiding, hiding))
            return chain.links[-1].texts[0]

        if not first:
            chain = begun("hello", new=True)
            released(chain)
            assert chain.swap_state("conversation")
        anna, bob = begun("a@first.example", new=first), begun("b@second.example", new=first)
        assert released(anna) == released(bob) == "<EMAIL_1>"
        assert anna.swap_state("conversation")
        assert not bob.swap_state("conversation")
        assert anna.swap_state("conversation")  # what is there already is no other
        again = begun("b@second.example")
        assert released(again) == "<EMAIL_2>"
        assert again.swap_state("conversation")
        known = begun("bye").session
        assert known.restore("<EMAIL_1> <EMAIL_2>") == "a@first.example b@second.example"


def test_a_limit_refuses_before_anything_is_drawn_or_sent(noisy, small_table, url):
    with SessionStore(url) as store:
        served = gateway(noisy, store)
        ask(served, [("user", small_table.words[0])])
        (account,) = store.ledger.accounts()
        store.ledger.limit(account.subject, account.metric, account.table, account.epsilon * 1.5)
        with pytest.raises(RequestError, match="Nothing was drawn") as error:
            ask(served, [("user", small_table.words[1])])
        assert (error.value.status, error.value.code) == (429, "limit")
        assert (
            ask(served, [("user", small_table.words[0])])[2]["drawn"] == 0
        )  # a message that was drawn may go again


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_comes_back_is_sent_as_the_model_gave_it(openai_server, hiding, url, stream):
    with ExitStack() as stack:
        store = stack.enter_context(SessionStore(url))
        served = Gateway(privatizer=hiding, upstream=openai_server, store=store)
        client = stack.enter_context(client_of(stack.enter_context(serving(served))))
        messages = [{"role": "user", "content": f"the password: {SECRET}"}]
        answer = client.chat.completions.create(model="echo", messages=messages, stream=stream)
        said = [each.choices[0].delta for each in answer] if stream else [answer.choices[0].message]
        text = "".join(each.content or "" for each in said)
        assert text == f"the password: {SECRET}"
        messages += [
            {"role": "assistant", "content": text},
            {"role": "user", "content": "and now?"},
        ]
        raw = client.chat.completions.with_raw_response.create(model="echo", messages=messages)
        promise = json.loads(raw.headers["textveil-statement"])
        assert (promise["new"], promise["drawn"], promise["repeated"]) == (1, 0, 2)
        assert promise["said"] == (
            "1 new message was released without a draw; 2 are sent again as released before: "
            "spent once. There is no promise."
        )
        assert [each.subject.startswith("client-") for each in store.sessions()] == [True]


def test_an_answer_arrives_though_the_store_fails_behind_it(
    openai_server, hiding, store, monkeypatch
):
    def fail(*_, **__):
        raise StoreError("the store cannot be changed")

    monkeypatch.setattr(MessageChain, "save_answers", fail)
    served = Gateway(privatizer=hiding, upstream=openai_server, store=store)
    with serving(served) as address, client_of(address) as client:
        answer = client.chat.completions.create(
            model="echo", messages=[{"role": "user", "content": "hello"}]
        )
    assert answer.choices[0].message.content == "hello"


def test_a_conversation_in_postgresql(noisy, small_table, url, postgres):
    with SessionStore(postgres) as store:
        sent = talk(gateway(noisy, store), 3, small_table.words)
        assert repeated(sent)
        assert store.ledger.accounts()[0].releases == 4
        with ThreadPoolExecutor(4) as pool:
            messages = [("user", " ".join(small_table.words[30:50]))]
            same = list(pool.map(partial(ask, gateway(noisy, store)), [messages] * 4))
        assert len({shown[0] for shown, *_ in same}) == 1


def test_a_conversation_in_redis(hiding, noisy, small_table, url, redis):
    with SessionStore(redis) as store:
        messages = [("user", f"write to a{i}@b.example") for i in range(6)]
        sent = [ask(gateway(hiding, store), messages[: i + 1])[0] for i in range(6)]
        assert sent[-1] == [f"write to <EMAIL_{i + 1}>" for i in range(6)]
        assert all(after[:-1] == before for before, after in pairwise(sent))
        with ThreadPoolExecutor(4) as pool:
            same = list(pool.map(partial(ask, gateway(hiding, store)), [messages[::-1]] * 4))
        assert len({tuple(shown) for shown, *_ in same}) == 1
        with pytest.raises(ConfigError, match=r"are drawn, and a store in Redis keeps no ledger"):
            gateway(noisy, store)


def test_a_file_keeps_no_conversations(hiding, tmp_path):
    with pytest.raises(ConfigError, match="conversations need"):
        gateway(hiding, SessionStore(f"file:{tmp_path / 'a.session'}"))
    with pytest.raises(ConfigError, match="conversations need"):
        SessionStore(f"file:{tmp_path / 'a.session'}").links("anna")


def test_other_lists_make_another_release(store):
    """Also where they are as long: the name that is hidden now was sent before."""
    sent = []
    for name in ("acorn", "beech"):
        protect = {"detectors": ["patterns"], "always": [name]}
        served = gateway(Privatizer.from_profile("prompt", protect=protect), store)
        sent += ask(served, [("user", "acorn and beech")])[0]
    assert sent == ["<LISTED_1> and beech", "acorn and <LISTED_1>"]
