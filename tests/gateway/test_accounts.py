"""Who may use a gateway: keys of its own, rules, limits and budgets; a policy that is read again while it serves."""

import dataclasses
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from tests.fixtures import NOUNS
from tests.gateway import test_messages as claude
from tests.gateway.servers import serving, serving_upstream
from tests.gateway.test_gateway import client_of as openai_client

from textveil import Privatizer, cli
from textveil.errors import ConfigError
from textveil.gateway import (
    Gateway,
    GatewayKeys,
    Policy,
    ServingOptions,
    build_tls_context,
    check_exposure,
    read_policy,
    reload_on_signal,
)
from textveil.gateway.gateway import ReleasedMessage
from textveil.gateway.policy.active_policy import KEY_HEADERS, ActivePolicy
from textveil.gateway.policy.client_keys import Caller, KeyRecord
from textveil.gateway.policy.policy import Credential, PolicyRule, TlsFiles, Upstream
from textveil.gateway.request.protect_message import MessageReleaser
from textveil.session import SessionStore, conversations

CANARY = "Blorvequine"
OTHER = "Quillimar"
CREDENTIAL = "sk-of-the-upstream-0123456789"


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith(("TEXTVEIL_", "OPENAI_", "ANTHROPIC_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("FAR_KEY", CREDENTIAL)
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))


@pytest.fixture(scope="module")
def privatizer(small_table):
    return Privatizer("placeholder", table=small_table)


@pytest.fixture(scope="module")
def noisy(small_table):
    return Privatizer("krr", table=small_table, epsilon=3)


def echo(asked):
    """The last message back, as either API says it; streams piece by piece."""
    body = asked.body or {}
    if asked.path.endswith("/models"):
        return {"object": "list", "data": []}
    said = body["messages"][-1]["content"]
    if (model := body.get("model", "")).startswith("refuses-"):
        return int(model[-3:]), {
            "error": {"message": f"wrong key {asked.headers['authorization']}", "type": "auth"}
        }
    if asked.path.endswith("/messages"):
        return claude.message({"type": "text", "text": said})
    if body.get("stream"):
        return pieces(said)
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": said},
        "finish_reason": "stop",
    }
    return {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def pieces(said):
    for each in [*said, ""]:
        choice = {"index": 0, "delta": {"content": each}, "finish_reason": None if each else "stop"}
        yield f"data: {json.dumps({'choices': [choice]})}\n\n".encode()
    yield b"data: [DONE]\n\n"


@pytest.fixture
def upstream():
    with serving_upstream(echo) as made:
        yield made


@pytest.fixture
def keys(tmp_path):
    return GatewayKeys(str(tmp_path / "gateway.keys"), new=True)


@pytest.fixture
def policy(upstream, tmp_path):
    """Makes a policy with keys, whose upstream has a credential."""

    def made(**more):
        upstreams = {"far": {"url": upstream.url, "credential": {"env": "FAR_KEY"}}}
        given = {"upstreams": upstreams, "upstream": "far", "keys": str(tmp_path / "gateway.keys")}
        return Policy(**{**given, **more})

    return made


def user(text):
    return [{"role": "user", "content": text}]


def asked(url, key, text=CANARY, **more):
    """The answer to a prompt, and the headers that came with it."""
    with openai_client(url).with_options(api_key=key) as client:
        raw = client.chat.completions.with_raw_response.create(
            **{"model": "m", "messages": user(text), **more}
        )
        return raw.parse().choices[0].message.content, raw.headers


def sent(upstream):
    """All that the upstream ever got."""
    return json.dumps([[each.path, each.headers, each.body] for each in upstream.asked])


# ---- keys ------------------------------------------------------------------------------------------------------------


def by_both_clients(url, key):
    """What clients of both APIs get for a text."""
    with openai_client(url).with_options(api_key=key) as client:
        client.models.list()
        whole = (
            client.chat.completions.create(model="m", messages=user(CANARY))
            .choices[0]
            .message.content
        )
        stream = client.chat.completions.create(model="m", messages=user(CANARY), stream=True)
        streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    with claude.client_of(url, key) as other:
        said = other.messages.create(model="m", max_tokens=9, messages=user(CANARY)).content[0].text
    return whole, streamed, said


def test_a_key_of_the_gateway_never_goes_upstream(upstream, policy, keys, privatizer):
    key = keys.create("anna")
    with serving(Gateway(privatizer=privatizer, policy=policy())) as url:
        assert by_both_clients(url, key) == (CANARY, CANARY, CANARY)
        body = {"model": "m", "max_tokens": 9, "messages": user(CANARY)}
        with httpx2.Client(trust_env=False) as http:
            assert (
                http.post(f"{url}/messages", json=body, headers={"x-api-key": key}).status_code
                == 200
            )
    found = [
        {name: each.headers[name] for name in KEY_HEADERS if name in each.headers}
        for each in upstream.asked
    ]
    assert found == [{"authorization": f"Bearer {CREDENTIAL}"}] * 4 + [{"x-api-key": CREDENTIAL}]
    assert key not in sent(upstream)


def test_a_gateway_that_forwards_keys_is_noticed(upstream, policy, keys, privatizer, monkeypatch):
    """The broken twin."""
    key = keys.create("anna")

    def forwarding(_, headers, __, names):
        return {name: headers[name] for name in names if name in headers}

    monkeypatch.setattr(ActivePolicy, "build_key_headers", forwarding)
    with serving(Gateway(privatizer=privatizer, policy=policy())) as url:
        by_both_clients(url, key)
    assert key in sent(upstream)


@pytest.mark.parametrize(
    ("header", "expected"),
    [("x-api-key", CREDENTIAL), ("api-key", CREDENTIAL), ("authorization", f"Bearer {CREDENTIAL}")],
)
def test_an_upstream_may_want_its_key_elsewhere(
    upstream, policy, keys, privatizer, header, expected
):
    key = keys.create("anna")
    to = {"far": Upstream(url=upstream.url, credential=Credential(env="FAR_KEY"), header=header)}
    with serving(Gateway(privatizer=privatizer, policy=policy(upstreams=to))) as url:
        assert asked(url, key)[0] == CANARY
    found = {
        name: value
        for name, value in upstream.asked[0].headers.items()
        if "key" in name or "auth" in name
    }
    assert found == {header: expected}


def test_without_a_credential_the_upstream_gets_no_key(upstream, policy, keys, privatizer):
    key = keys.create("anna")
    with serving(
        Gateway(privatizer=privatizer, policy=policy(upstream=upstream.url, upstreams={}))
    ) as url:
        assert asked(url, key)[0] == CANARY
    assert not {"authorization", "x-api-key"} & upstream.asked[0].headers.keys()


def test_a_client_has_no_key_but_the_upstream_may(upstream, privatizer):
    passing, dropping = Upstream(url=upstream.url), Upstream(url=upstream.url, client_key="drop")
    for to, expected in ((passing, "Bearer sk-of-the-client"), (dropping, None)):
        given = Policy(upstreams={"a": to}, upstream="a")
        with serving(Gateway(privatizer=privatizer, policy=given)) as url:
            assert asked(url, "sk-of-the-client")[0] == CANARY
        assert upstream.asked[-1].headers.get("authorization") == expected


def test_who_sends_another_key_beside_one_is_another_client(upstream, privatizer):
    gateway = Gateway(privatizer=privatizer, upstream=upstream.url)
    one, other = {"authorization": "Bearer k"}, {"x-api-key": "a"}
    asking = [
        {},
        one,
        other,
        one | other,
        one | {"x-api-key": "b"},
        {"authorization": "a", "x-api-key": "Bearer k"},
    ]
    accounts = [gateway.identify_caller(headers).account for headers in asking]
    assert len(set(accounts)) == len(asking)
    assert (
        gateway.identify_caller(dict(reversed((one | other).items()))).account
        == gateway.identify_caller(one | other).account
    )


def test_a_key_that_stands_in_a_request_stops_it(upstream, policy, keys, privatizer):
    """Where texts are protected it is hidden; names of models are not."""
    key = keys.create("anna")
    with serving(Gateway(privatizer=privatizer, policy=policy())) as url:
        asked(url, key, f"my key is {key}")
        with pytest.raises(
            openai.BadRequestError, match="contains the key of the gateway, which must not be sent"
        ):
            asked(url, key, model=key)
    assert key not in sent(upstream)


@pytest.mark.parametrize("key", ["tv-unknown", "", "sk-ant-other", "tv-" + "A" * 43])
def test_a_key_that_nobody_gave_is_refused_as_the_api_does(upstream, policy, keys, privatizer, key):
    keys.create("anna")
    with serving(Gateway(privatizer=privatizer, policy=policy())) as url:
        with pytest.raises(openai.AuthenticationError) as caught:
            asked(url, key or "none")
        assert (caught.value.status_code, caught.value.code) == (401, "invalid_api_key")
        with (
            claude.client_of(url, key or "none") as client,
            pytest.raises(anthropic.AuthenticationError) as other,
        ):
            client.messages.create(model="m", max_tokens=9, messages=user(CANARY))
        assert json.loads(other.value.response.text)["error"]["type"] == "authentication_error"
        with httpx2.Client(trust_env=False) as http:
            bare = http.post(f"{url}/chat/completions", content=b"not even JSON")
            assert (bare.status_code, bare.headers["www-authenticate"]) == (401, "Bearer")
            assert http.get(f"{url}/models").status_code == 401
            assert http.get(f"{url.removesuffix('/v1')}/health").status_code == 200
    assert upstream.asked == []


def test_a_revoked_key_is_refused_at_once_and_its_stream_ends(upstream, policy, keys, privatizer):
    key, more = keys.create("anna"), threading.Event()

    def slow(request):
        if not request.body.get("stream"):
            return echo(request)

        def said():
            yield from list(pieces("a "))[:-2]
            more.wait(20)
            yield from pieces("b")

        return said()

    upstream.answer = slow
    with (
        serving(Gateway(privatizer=privatizer, policy=policy())) as url,
        openai_client(url).with_options(api_key=key) as client,
    ):
        stream = client.chat.completions.create(model="m", messages=user(CANARY), stream=True)
        assert next(iter(stream)).choices[0].delta.content == "a"
        keys.revoke("anna")
        with pytest.raises(openai.AuthenticationError):
            asked(url, key)
        more.set()
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream).strip() == "b"
    assert len(upstream.asked) == 1


def test_an_error_that_repeats_the_credential_is_replaced(policy, keys, privatizer):
    key = keys.create("anna")
    with (
        serving(Gateway(privatizer=privatizer, policy=policy())) as url,
        pytest.raises(openai.PermissionDeniedError) as caught,
    ):
        asked(url, key, model="refuses-403")
    assert CREDENTIAL not in str(caught.value)
    assert "the upstream refused with status 403" in str(caught.value)


def test_a_credential_that_is_wrong_is_no_fault_of_the_client(policy, keys, privatizer, upstream):
    """It would think that its own key is wrong, and be shown a part of the other one."""
    with serving(Gateway(privatizer=privatizer, policy=policy())) as url:
        with pytest.raises(
            openai.InternalServerError, match="rejects the key that the policy names"
        ) as caught:
            asked(url, keys.create("anna"), model="refuses-401")
        assert caught.value.status_code == 502
    passed = Gateway(privatizer=privatizer, upstream=upstream.url)
    with serving(passed) as url, pytest.raises(openai.AuthenticationError):
        asked(url, "sk-of-the-client", model="refuses-401")


def test_rules_do_not_change_a_privatizer_that_is_given(policy, keys, privatizer):
    for rule in (
        {"level": "names"},
        {"always": [CANARY]},
        {"profile": "strict"},
        {"options": {"epsilon": 3}},
    ):
        with pytest.raises(ConfigError, match="give no privatizer"):
            Gateway(privatizer=privatizer, policy=policy(rules=[{"models": ["a"], **rule}]))


def test_nothing_shows_a_credential(policy, privatizer, keys):
    made = Gateway(privatizer=privatizer, policy=policy())
    assert CREDENTIAL not in repr(made) + str(vars(made)) + repr(
        vars(made.active_policy).get("policy")
    )


# ---- conversations ---------------------------------------------------------------------------------------------------


def shared(gateway, keys):
    """How much two keys have in common: repeated messages of the second one, and its first placeholder."""
    first, second = keys.create("anna"), keys.create("berta")
    with serving(gateway) as url:
        history = [
            *user(f"{CANARY} met {OTHER}"),
            {"role": "assistant", "content": "x"},
            *user(OTHER),
        ]
        asked(url, first, messages=history)
        _, headers = asked(url, second, messages=history)
        again = asked(url, first, messages=history)[1]
    assert json.loads(again["textveil-statement"])["repeated"] == 3
    return json.loads(headers["textveil-statement"])["repeated"]


def test_no_two_keys_share_a_conversation(policy, keys, privatizer):
    assert shared(Gateway(privatizer=privatizer, policy=policy()), keys) == 0


def test_keys_of_one_account_would_share_one(policy, keys, privatizer, monkeypatch):
    """The broken twin."""
    monkeypatch.setattr(KeyRecord, "account", property(lambda _: "everybody"))
    assert shared(Gateway(privatizer=privatizer, policy=policy()), keys) == 3


# ---- rules -----------------------------------------------------------------------------------------------------------


def test_rules_choose_upstream_and_protection(upstream, policy, keys):
    """By the model, the key and the route; with privatizers that the policy describes."""
    anna, berta = keys.create("team-a/anna"), keys.create("berta")
    with serving_upstream(echo) as other:
        made = policy(
            level="identifiers",
            upstreams={
                "near": {"url": upstream.url},
                "far": {"url": other.url, "credential": {"env": "FAR_KEY"}},
            },
            upstream="near",
            rules=[
                {"models": ["far-*"], "upstream": "far"},
                {"keys": ["team-a/*"], "always": ["lantern"]},
                {"routes": ["messages"], "always": ["kettle"]},
            ],
        )
        text = "a lantern and a kettle"
        with serving(Gateway(policy=made)) as url:
            for key, model in ((berta, "m"), (anna, "m"), (berta, "far-1")):
                assert asked(url, key, text, model=model)[0] == text
            with claude.client_of(url, anna) as client:
                client.messages.create(model="m", max_tokens=9, messages=user(text))
        seen = [each.body["messages"][0]["content"] for each in upstream.asked]
        assert seen[0] == text
        assert (CANARY, "lantern" in seen[1], "kettle" in seen[1]) == (CANARY, False, True)
        assert ("lantern" in seen[2], "kettle" in seen[2]) == (False, False)
        assert [each.body["model"] for each in other.asked] == ["far-1"]
        assert other.asked[0].headers["authorization"] == f"Bearer {CREDENTIAL}"
        assert all("authorization" not in each.headers for each in upstream.asked)


@pytest.mark.parametrize(
    "more", [{"models": ["far-1"]}, {"models": ["m", "far-1"]}, {"fallbacks": [{"model": "far-1"}]}]
)
def test_models_that_take_the_place_of_another_are_under_its_rules(
    upstream, policy, privatizer, more
):
    made = Gateway(
        privatizer=privatizer,
        policy=policy(rules=[{"models": ["far-*"], "unknown": "drop"}], keys=None),
    )
    with serving(made) as url:
        answer = httpx2.post(
            f"{url}/chat/completions", json={"model": "m", "messages": user("x"), **more}
        )
    assert (answer.status_code, upstream.asked) == (400, [])
    assert "different rules" in answer.json()["error"]["message"]


def test_combinations_of_rules_are_bounded_and_built_beside_the_lock(
    upstream, privatizer, monkeypatch
):
    monkeypatch.setattr("textveil.gateway.gateway.MAX_COMBINATIONS", 2)
    rules = tuple(PolicyRule(models=(f"{name}*",), media="pass") for name in "abcd")
    gateway = Gateway(privatizer=privatizer, upstream=upstream.url, policy=Policy(rules=rules))
    lock, made = gateway._variants
    building = dataclasses.replace

    def noticed(*given, **changes):
        assert not lock.locked()
        return building(*given, **changes)

    monkeypatch.setattr("textveil.gateway.gateway.replace", noticed)
    for i in range(3):
        assert gateway.apply_rules((i, i + 1)) is gateway.apply_rules((i, i + 1))
    assert sorted(made) == [(0,), (1,), (1, 2), (2,), (2, 3), (3,)]


def test_what_a_rule_names_must_be_there_at_the_start(policy, keys, privatizer, monkeypatch):
    monkeypatch.delenv("FAR_KEY")
    with pytest.raises(ConfigError, match="FAR_KEY, which is not set"):
        Gateway(privatizer=privatizer, policy=policy())
    near = policy(upstream="http://127.0.0.1:9/v1", rules=[{"models": ["a"], "upstream": "far"}])
    with pytest.raises(ConfigError, match="FAR_KEY, which is not set"):
        Gateway(privatizer=privatizer, policy=near)


def test_what_was_released_before_goes_where_the_policy_says(policy, keys, privatizer, upstream):
    gateway = Gateway(
        privatizer=privatizer, policy=policy(rules=[{"models": ["a"], "unknown": "drop"}])
    )
    made = gateway.build_sender(
        ReleasedMessage(privatizer, gateway.release_message, SessionStore())
    )
    key = keys.find(keys.create("anna"))
    assert made.upstream == upstream.url
    assert made.active_policy.build_key_headers(
        {}, Caller(account="a", key=key), ["authorization"]
    ) == {"authorization": f"Bearer {CREDENTIAL}"}


def test_a_gateway_needs_an_upstream_and_one(privatizer):
    with pytest.raises(ConfigError, match="a gateway needs an upstream"):
        Gateway(privatizer=privatizer)
    with pytest.raises(ConfigError, match="the policy names a different upstream"):
        Gateway(
            privatizer=privatizer, upstream="http://a/v1", policy=Policy(upstream="http://b/v1")
        )


# ---- limits ----------------------------------------------------------------------------------------------------------


def test_a_key_may_send_so_many_requests_a_minute(upstream, policy, keys, privatizer):
    key, other = keys.create("anna"), keys.create("berta")
    with (
        serving(Gateway(privatizer=privatizer, policy=policy(requests=5))) as url,
        ThreadPoolExecutor(8) as pool,
    ):

        def ask(_):
            try:
                return asked(url, key)[0]
            except openai.RateLimitError as error:
                return error

        found = list(pool.map(ask, range(16)))
        assert found.count(CANARY) == 5
        refused = [each for each in found if each != CANARY]
        assert {each.code for each in refused} == {"rate_limit_exceeded"}
        assert all(1 <= int(each.response.headers["retry-after"]) <= 12 for each in refused)
        assert asked(url, other)[0] == CANARY
        with (
            claude.client_of(url, key) as client,
            pytest.raises(anthropic.RateLimitError) as caught,
        ):
            client.messages.create(model="m", max_tokens=9, messages=user(CANARY))
        assert json.loads(caught.value.response.text)["error"]["type"] == "rate_limit_error"
    assert len(upstream.asked) == 6


def test_a_request_may_be_so_large(policy, keys, privatizer):
    key = keys.create("anna")
    with serving(Gateway(privatizer=privatizer, policy=policy(limit=2_000))) as url:
        assert asked(url, key)[0] == CANARY
        with pytest.raises(openai.APIStatusError, match="at most 2,000 bytes"):
            asked(url, key, "x" * 2_000)


@contextmanager
def counted(policy, noisy, tmp_path, **more):
    """A gateway whose words are drawn with an epsilon of 3 each, and counted."""
    with (
        SessionStore(f"sqlite:///{tmp_path / 'veil.db'}") as store,
        serving(Gateway(privatizer=noisy, policy=policy(**more), store=store)) as url,
    ):
        yield url, store


def test_a_budget_is_kept_and_told(policy, keys, noisy, tmp_path):
    key, other = keys.create("anna"), keys.create("berta")
    with counted(policy, noisy, tmp_path, budget={"epsilon": 10, "days": 30}) as (url, store):
        assert (
            asked(url, key, "lantern kettle")[1]["textveil-spent"] == "epsilon=6, limit=10, days=30"
        )
        assert (
            asked(url, key, "lantern kettle")[1]["textveil-spent"] == "epsilon=6, limit=10, days=30"
        )  # it is known
        with pytest.raises(
            openai.RateLimitError,
            match=r"would spend an epsilon of 6, but only 4 of 10 is left until .* UTC;",
        ) as caught:
            asked(url, key, "mirror marble")
        says = caught.value.response.json()["error"]["message"]
        assert (
            "release less, or ask the operator of the gateway to raise `budget` in its policy."
            in says
        )
        assert "ledger" not in says
        assert (caught.value.code, caught.value.response.headers["x-should-retry"]) == (
            "limit",
            "false",
        )
        assert asked(url, key, "mirror")[1]["textveil-spent"] == "epsilon=9, limit=10, days=30"
        assert (
            asked(url, other, "mirror marble")[1]["textveil-spent"]
            == "epsilon=6, limit=10, days=30"
        )
        sums = {
            each.subject.split("-")[1]: each.ldp
            for each in store.ledger.accounts()
            if each.table == "all tables"
        }
        assert sums == {"anna": 9.0, "berta": 6.0}
    with counted(policy, noisy, tmp_path, budget={"epsilon": 10, "days": 30}) as (
        url,
        _,
    ):  # it started again
        assert asked(url, key, "mirror")[1]["textveil-spent"] == "epsilon=9, limit=10, days=30"
    with counted(policy, noisy, tmp_path, budget={"epsilon": 20}) as (
        url,
        store,
    ):  # another limit, and no period
        assert asked(url, key, "marble")[1]["textveil-spent"] == "epsilon=12, limit=20"
    with counted(policy, noisy, tmp_path) as (url, _):
        assert "textveil-spent" not in asked(url, key, "marble")[1]


def spent_at_once(policy, keys, noisy, tmp_path):
    """What a key spends under a budget of 20, with requests at once, of an epsilon of 3 each."""
    key = keys.create("anna")
    words = NOUNS[:12]
    with (
        counted(policy, noisy, tmp_path, budget={"epsilon": 20}) as (url, store),
        ThreadPoolExecutor(6) as pool,
    ):

        def ask(word):
            try:
                asked(url, key, word)
            except openai.RateLimitError:
                return 0
            return 1

        passed = sum(pool.map(ask, words))
        return passed, sum(
            each.ldp for each in store.ledger.accounts() if each.table != "all tables"
        )


def test_a_budget_holds_for_requests_at_once(policy, keys, noisy, tmp_path):
    assert spent_at_once(policy, keys, noisy, tmp_path) == (6, 18.0)


def test_a_sum_that_nobody_counts_limits_nothing(policy, keys, noisy, tmp_path, monkeypatch):
    """The broken twin."""
    monkeypatch.setattr(
        conversations, "sum_spends", lambda spends: replace(spends[0], table="elsewhere")
    )
    assert spent_at_once(policy, keys, noisy, tmp_path) == (12, 72.0)


def test_a_budget_needs_a_store_that_counts(policy, keys, privatizer):
    with pytest.raises(ConfigError, match="only a store in a database keeps a ledger"):
        Gateway(privatizer=privatizer, policy=policy(budget={"epsilon": 1}))


def test_the_budget_is_that_of_the_policy_also_beside_a_worker_with_another(
    policy, keys, noisy, tmp_path
):
    """A worker that has not read the policy again limits a key once more; the next request is under the new limit."""
    key = keys.create("anna")
    with SessionStore(f"sqlite:///{tmp_path / 'veil.db'}") as store:

        def spent(made, word):
            with serving(made) as url:
                return asked(url, key, word)[1].get("textveil-spent")

        def limits():
            return [limit.most for each in store.ledger.accounts() for limit in each.limits]

        small, large, none = (
            Gateway(privatizer=noisy, policy=policy(budget=budget), store=store)
            for budget in ({"epsilon": 10}, {"epsilon": 20}, None)
        )
        assert spent(large, "lantern") == "epsilon=3, limit=20"
        assert spent(small, "kettle") == "epsilon=6, limit=10"
        assert spent(large, "mirror") == "epsilon=9, limit=20"
        assert limits() == [20]
        assert spent(none, "marble garden") is None
        assert limits() == []


def test_what_was_spent_before_a_refusal_is_on_record(policy, keys, noisy, tmp_path):
    key = keys.create("anna")
    with SessionStore(f"sqlite:///{tmp_path / 'veil.db'}") as store:
        log = tmp_path / "audit.jsonl"
        made = Gateway(
            privatizer=noisy,
            policy=policy(budget={"epsilon": 7}),
            store=store,
            running=ServingOptions(audit_log=str(log)),
        )
        with serving(made) as url, pytest.raises(openai.RateLimitError):
            asked(url, key, messages=[*user("lantern"), *user("kettle"), *user("mirror")])
        (line,) = [
            each
            for each in map(json.loads, log.read_text().splitlines())
            if each["event"] == "request"
        ]
    assert line["drawn"] == 2
    assert sum(each["epsilon"] for each in line["spent"]) == 6


def test_what_a_client_spends_that_has_left_is_on_record(
    policy, keys, noisy, tmp_path, monkeypatch
):
    key, release, inside, further = (
        keys.create("anna"),
        MessageReleaser.__call__,
        threading.Event(),
        threading.Event(),
    )

    def slow(self, message, session, **named):
        if session.owner:  # not when models are loaded
            inside.set()
            further.wait(20)
        return release(self, message, session, **named)

    monkeypatch.setattr(MessageReleaser, "__call__", slow)
    log = tmp_path / "audit.jsonl"
    with SessionStore(f"sqlite:///{tmp_path / 'veil.db'}") as store:
        made = Gateway(
            privatizer=noisy,
            policy=policy(),
            store=store,
            running=ServingOptions(audit_log=str(log)),
        )
        with serving(made) as url:
            leaving = openai_client(url).with_options(api_key=key, timeout=2.0, max_retries=0)
            with leaving as client, pytest.raises(openai.APITimeoutError):
                client.chat.completions.create(model="m", messages=user("lantern"))
            assert inside.is_set()
            time.sleep(0.3)  # the server has noticed
            further.set()
        (line,) = [
            each
            for each in map(json.loads, log.read_text().splitlines())
            if each["event"] == "request"
        ]
    assert line["status"] == 499
    assert sum(each["epsilon"] for each in line["spent"]) == 3


# ---- a policy that is read again -------------------------------------------------------------------------------------


def test_a_request_keeps_the_policy_that_it_began_with(upstream, policy, keys, privatizer):
    key, more = keys.create("anna"), threading.Event()

    def slow(request):
        def said():
            yield from list(pieces("<WORD_1"))[:-2]
            more.wait(20)
            yield from pieces("> came")

        return said() if request.body.get("stream") else echo(request)

    upstream.answer = slow
    with serving_upstream(echo) as other:
        gateway = Gateway(privatizer=privatizer, policy=policy(unknown="drop"))
        with serving(gateway) as url, openai_client(url).with_options(api_key=key) as client:
            stream = client.chat.completions.create(model="m", messages=user(CANARY), stream=True)
            wait_for(lambda: upstream.asked)
            gateway.reload(policy(upstream=other.url, upstreams={}, unknown="refuse"))
            assert asked(url, key)[0] == CANARY
            with pytest.raises(openai.BadRequestError, match="mystery is not known"):
                asked(url, key, extra_body={"mystery": "x"})
            wrong = {"far": {"url": other.url, "credential": {"env": "NO_KEY"}}}
            with pytest.raises(ConfigError, match="NO_KEY, which is not set"):
                gateway.reload(policy(upstreams=wrong))
            assert asked(url, key)[0] == CANARY
            more.set()
            assert (
                "".join(chunk.choices[0].delta.content or "" for chunk in stream)
                == f"{CANARY} came"
            )
        assert (len(upstream.asked), len(other.asked)) == (1, 2)


class Told:
    """Takes policies, and keeps them."""

    def __init__(self):
        self.policies: list[Policy] = []

    def reload(self, policy):
        self.policies.append(policy)


def reads(given):
    """Reads what was put there last."""
    policy = given.pop()
    if isinstance(policy, Exception):
        raise policy
    return policy


def hang_up(said, given=None, policy=None):
    """One SIGHUP, and the line that is said then."""
    if given is not None:
        given.append(policy)
    count = len(said)
    os.kill(os.getpid(), signal.SIGHUP)
    wait_for(lambda: len(said) > count)


@pytest.mark.posix
def test_what_is_wrong_with_a_policy_is_told_and_changes_nothing(certificate):
    """Whatever it is that fails, and without the words of what is not textveil's own."""
    given, said = list[Policy | Exception](), list[str]()
    gateway: Any = Told()
    before = signal.getsignal(signal.SIGHUP)
    with reload_on_signal(Policy(), lambda: reads(given), said.append) as begin:
        begin(gateway, None)
        for each in (ConfigError("wrong"), RuntimeError(CANARY), Policy(tls=certificate), Policy()):
            hang_up(said, given, each)
    assert signal.getsignal(signal.SIGHUP) == before
    assert said == [
        "the policy was not changed: wrong",
        "the policy was not changed: RuntimeError",
        "the policy was not changed: TLS can be switched on or off only when the gateway starts",
        "the policy was read again",
    ]
    assert gateway.policies == [Policy()]
    broken = TlsFiles(certificate=certificate.certificate, key=certificate.certificate)
    with reload_on_signal(Policy(tls=certificate), lambda: reads(given), said.append) as begin:
        begin(gateway, build_tls_context(certificate))
        for files in (broken, certificate):
            hang_up(said, given, Policy(tls=files))
    assert "the policy was not changed: tls needs PEM files" in said[-2]
    assert gateway.policies == [Policy(), Policy(tls=certificate)]


@pytest.mark.posix
def test_a_policy_that_was_changed_is_not_said_to_be_as_before(certificate):
    """Its certificate is gone between the two times that it is read."""
    said = list[str]()

    class Slow(Told):
        def reload(self, policy):
            super().reload(policy)
            os.unlink(certificate.key)

    gateway: Any = Slow()
    with reload_on_signal(
        Policy(tls=certificate), lambda: Policy(tls=certificate), said.append
    ) as begin:
        begin(gateway, build_tls_context(certificate))
        hang_up(said)
    assert len(gateway.policies) == 1
    assert said[0].startswith(
        "the policy was read again, but the certificate was not changed: tls needs PEM files"
    )


@pytest.mark.posix
def test_a_policy_that_changes_while_the_gateway_loads_is_read_then():
    said, gateway = list[str](), Told()
    taking: Any = gateway
    with reload_on_signal(Policy(), lambda: Policy(limit=5), said.append) as begin:
        os.kill(os.getpid(), signal.SIGHUP)
        assert (said, gateway.policies) == ([], [])
        begin(taking, None)
        wait_for(lambda: said)
    assert gateway.policies == [Policy(limit=5)]


def test_an_upstream_that_vanishes_from_a_policy_is_not_asked_without_its_credential(
    upstream, policy, keys, privatizer
):
    key = keys.create("anna")
    gateway = Gateway(privatizer=privatizer, policy=policy())
    with serving(gateway) as url:
        with pytest.raises(
            ConfigError,
            match="the policy must name its upstream, as it did when the gateway started",
        ):
            gateway.reload(policy(upstream=None))
        assert asked(url, key)[0] == CANARY
    gateway = Gateway(privatizer=privatizer, upstream=upstream.url)
    gateway.reload(Policy(media="pass"))
    assert gateway.current.upstream == upstream.url


def wait_for(what, seconds=20):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


@contextmanager
def process(path, *arguments):
    """The command line's gateway as a process, and lines that it says."""
    command = [
        sys.executable,
        "-m",
        "textveil",
        "gateway",
        "--policy",
        path,
        "--port",
        "0",
        *arguments,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        try:
            yield running, iter(running.stderr.readline, "")
        finally:
            running.kill()


@pytest.mark.slow
def test_sighup_reads_the_policy_again_during_a_stream(upstream, tmp_path, keys):
    key, more = keys.create("anna"), threading.Event()

    def slow(request):
        def said():
            yield from list(pieces("before "))[:-2]
            more.wait(30)
            yield from pieces("after")

        return said() if request.body.get("stream") else echo(request)

    upstream.answer = slow
    path = tmp_path / "gateway.yaml"
    said = f"upstream: {upstream.url}\nkeys: gateway.keys\noptions: {{mechanism: placeholder}}\nplayground: never\n"
    path.write_text(said)
    with process(str(path)) as (running, lines):
        url = next(lines).split()[-1]
        with openai_client(url).with_options(api_key=key) as client:
            stream = iter(
                client.chat.completions.create(model="m", messages=user(CANARY), stream=True)
            )
            got = next(stream).choices[0].delta.content
            path.write_text(f"{said}level: some\n")
            running.send_signal(signal.SIGHUP)
            line = next(lines)
            assert line.startswith("textveil: the policy was not changed: ")
            assert "level must be 'identifiers', 'personal' or 'names'" in line
            assert asked(url, key)[0] == CANARY
            path.write_text(f"{said}unknown: drop\nlimit: 1000\n")
            running.send_signal(signal.SIGHUP)
            assert next(lines) == "textveil: the policy was read again\n"
            with pytest.raises(openai.APIStatusError, match="at most 1,000 bytes"):
                asked(url, key, "x" * 1_000)
            keys.revoke("anna")
            with pytest.raises(openai.AuthenticationError):
                asked(url, key)
            more.set()
            got += "".join(chunk.choices[0].delta.content or "" for chunk in stream)
            assert got == "before after"
        running.send_signal(signal.SIGTERM)
        assert running.wait(20) == 0


# ---- other machines --------------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path):
    """A certificate for 127.0.0.1 that nobody signed."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes certificates, and is not installed")
    for name in ("a", "b"):
        subject = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
        files = ["-keyout", str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.pem")]
        command = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ]
        subprocess.run([*command, "-days", "1", *subject, *files], check=True, capture_output=True)
    return TlsFiles(certificate=str(tmp_path / "a.pem"), key=str(tmp_path / "a.key"))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org", "127.example.org"])
def test_other_machines_need_keys_and_encryption(policy, host, certificate):
    for given, missing in (
        (
            Policy(),
            r"it needs keys \(`keys: FILE` in the policy\) and TLS \(--tls-cert and --tls-key\)",
        ),
        (policy(), r"it needs TLS"),
        (Policy(tls=certificate), r"it needs keys"),
    ):
        with pytest.raises(
            ConfigError,
            match=f"other machines can reach the gateway at {re.escape(host)}: {missing}",
        ):
            check_exposure(host, given)
        check_exposure("127.0.0.1", given)
    check_exposure(host, policy(tls=certificate))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.0.1", "::1"])
def test_this_machine_needs_neither(host):
    check_exposure(host, Policy())


def test_tls_is_served_and_its_certificate_renewed(upstream, privatizer, certificate, tmp_path):
    context = build_tls_context(certificate)
    with serving(
        Gateway(privatizer=privatizer, upstream=upstream.url), "/health", tls=context
    ) as url:
        trusted = {
            name: ssl.create_default_context(cafile=str(tmp_path / f"{name}.pem")) for name in "ab"
        }

        def reached(name):
            try:
                with httpx2.Client(trust_env=False, verify=trusted[name]) as http:
                    return http.get(url).status_code == 200
            except httpx2.ConnectError:
                return False

        wait_for(lambda: reached("a"))
        assert not reached("b")
        build_tls_context(
            TlsFiles(certificate=str(tmp_path / "b.pem"), key=str(tmp_path / "b.key")), context
        )
        assert (reached("a"), reached("b")) == (False, True)
        with pytest.raises(httpx2.HTTPError):
            httpx2.get(url.replace("https", "http"), trust_env=False)


def test_files_for_tls_that_are_none(certificate, tmp_path):
    with pytest.raises(ConfigError, match=r"tls needs PEM files that go together.*: No such file"):
        build_tls_context(TlsFiles(certificate=str(tmp_path / "none"), key=certificate.key))
    for key in (certificate.certificate, str(tmp_path / "b.key")):
        with pytest.raises(
            ConfigError, match=r"tls needs PEM files that go together, the key without a password$"
        ):
            build_tls_context(TlsFiles(certificate=certificate.certificate, key=key))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--tls-cert", "a.pem"), "--tls-cert goes with --tls-key: give both or neither"),
        (
            ("--level", "names"),
            "--policy says how to privatize: leave out --profile, --level, -o and the like",
        ),
        (("--config", "x.yaml"), "--policy says how to privatize"),
        (
            ("--upstream", "http://127.0.0.1:9/v1"),
            "upstream is set here and by an option: leave one of the two out",
        ),
        (("--host", "0.0.0.0"), "other machines can reach the gateway at 0.0.0.0: it needs keys"),
    ],
)
def test_options_that_do_not_go_with_a_policy(tmp_path, capsys, monkeypatch, arguments, says):
    monkeypatch.setattr(
        "textveil.pipeline.privatizer.Privatizer.from_config",
        lambda config: Privatizer("placeholder"),
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gateway.yaml").write_text("upstream: http://127.0.0.1:9/v1\n")
    (tmp_path / "x.yaml").write_text("profile: prompt\n")
    assert cli.main(["gateway", "--policy", "gateway.yaml", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err


def test_a_policy_without_an_upstream_takes_the_option(tmp_path):
    (tmp_path / "gateway.yaml").write_text("media: pass\n")
    assert (
        read_policy(str(tmp_path / "gateway.yaml"), upstream="http://a/v1").upstream
        == "http://a/v1"
    )
