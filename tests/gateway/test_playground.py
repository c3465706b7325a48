"""The playground's routes: they say what would be sent, to its own page only, and keep no text."""

import json
import logging
import re
import time

import pytest
from starlette.testclient import TestClient
from tests.gateway.playground import CANARY, PROMPT, playing

from textveil.config import resolve
from textveil.gateway import Gateway, GatewayKeys, Playground, Policy, build_application
from textveil.gateway.playground import pages, routes
from textveil.gateway.playground.pages import Page, Pages
from textveil.gateway.policy.policy import KeyBudget, PolicyRule
from textveil.gateway.request.origin_check import check_page, check_reader
from textveil.pipeline import Privatizer
from textveil.session import SessionStore

SENT = "Write to <PERSON_1> at <EMAIL_1> about the lease."


@pytest.fixture(scope="module")
def opened():
    with playing() as made:
        yield made


@pytest.fixture(scope="module")
def drawing():
    with playing(config=resolve(profile="document")) as made:
        yield made


def texts(parts):
    return "".join(part[0] for part in parts)


def streamed_text(answer):
    chunks = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")]
    return "".join(json.loads(each)["choices"][0]["delta"].get("content", "") for each in chunks)


# ---- what it shows ---------------------------------------------------------------------------------------------------


def test_it_shows_what_would_be_sent_and_what_stood_there(opened):
    _, shown = opened.shows(PROMPT)
    assert texts(shown["parts"]) == SENT
    marked = {part[0]: part[1:] for part in shown["parts"] if len(part) > 1}
    assert marked["<PERSON_1>"] == [
        "type-people",
        "person (names of people and users)",
        f"Anna {CANARY}",
    ]
    assert marked["<EMAIL_1>"][0] == "type-contact"
    assert [each["says"] for each in shown["legend"]] == ["1 e-mail address", "1 person"]
    assert shown["counts"] == {"PERSON": 1, "EMAIL": 1}
    assert shown["hidden"].startswith("1 person and 1 e-mail address replaced")
    assert "2 words" in shown["statement"] or "1 person" in shown["statement"]
    assert not shown["drawn"]


def test_levels_and_profiles_are_those_of_the_privatizer(opened):
    _, shown = opened.shows(PROMPT, level="identifiers")
    assert texts(shown["parts"]) == SENT.replace("<PERSON_1>", f"Anna {CANARY}")
    _, shown = opened.shows("The president met Angela Merkel in Paris.", level="personal")
    assert shown["counts"] == {}
    _, shown = opened.shows("The president met Angela Merkel in Paris.", level="names")
    assert shown["counts"] == {"PERSON": 1, "LOCATION": 1}
    _, shown = opened.shows(PROMPT, profile="strict")
    assert shown["drawn"]
    looks = {part[1] for part in shown["parts"] if len(part) > 1}
    assert looks == {"type-people", "type-contact", "other"}


def test_the_gateways_own_options_come_first(opened):
    said = opened.asked("open")
    assert [each["name"] for each in said["profiles"]] == ["prompt", "data", "document", "strict"]
    assert "this gateway" in said["profiles"][0]["title"]
    assert list(said["levels"]) == ["identifiers", "personal", "names"]


def test_an_empty_prompt_is_shown_as_that(opened):
    token, shown = opened.shows("")
    assert shown["parts"] == []
    answer = opened.post("/playground/ask", {"token": token, "number": 1, "model": "m"})
    assert answer.status_code == 400


def test_an_older_prompt_never_takes_the_place_of_a_newer_one(opened):
    token, _ = opened.shows(PROMPT, number=5)
    assert opened.asked(
        "protect", token=token, number=3, text="old", profile="prompt", level="personal"
    ) == {"number": 3}
    answer = opened.post(
        "/playground/restore", {"token": token, "number": 3, "answer": "<PERSON_1>"}
    )
    assert answer.status_code == 409
    back = opened.asked("restore", token=token, number=5, answer="<PERSON_1>")
    assert texts(back["parts"]) == f"Anna {CANARY}"
    page = Page("t")
    assert page.release is None


# ---- the way back, and the model -------------------------------------------------------------------------------------


def test_an_answer_is_restored_and_it_says_where(opened):
    token, _ = opened.shows(PROMPT)
    back = opened.asked(
        "restore", token=token, number=1, answer="Dear <PERSON_1>, no <PERSON_7>!\n"
    )
    assert back["parts"] == [
        ["Dear "],
        [f"Anna {CANARY}", "restored", "<PERSON_1>"],
        [", no <PERSON_7>!\n"],
    ]
    assert back["unresolved"] == 1
    long = (
        " ".join(["word"] * routes.MAX_TEXT_CHARACTERS)[: routes.MAX_TEXT_CHARACTERS - 20]
        + " <PERSON_1>"
    )
    back = opened.asked("restore", token=token, number=1, answer=long)
    assert texts(back["parts"]) == long.replace("<PERSON_1>", f"Anna {CANARY}")


def test_nothing_is_sent_before_it_is_asked_and_then_what_is_shown(drawing):
    opened = drawing
    before = len(opened.upstream.asked)
    token, shown = opened.shows(PROMPT, profile="document")
    opened.asked("risk", token=token, number=1, prior="unigram")
    opened.asked("restore", token=token, number=1, answer="<EMAIL_1>")
    assert len(opened.upstream.asked) == before
    for _ in range(2):  # what was drawn is sent again as it was
        answer = opened.post(
            "/playground/ask",
            {"token": token, "number": 1, "model": "small"},
            Authorization="Bearer k",
        )
        assert answer.status_code == 200
        asked = opened.upstream.asked[-1]
        assert asked.body["messages"] == [{"role": "user", "content": texts(shown["parts"])}]
        assert asked.body["model"] == "small"
        assert asked.headers["authorization"] == "Bearer k"
        assert not {"origin", "cookie", "referer"} & asked.headers.keys()
    assert len(opened.upstream.asked) == before + 2
    assert CANARY.lower() not in opened.upstream.seen.lower()


def test_the_models_answer_is_restored_while_it_comes(opened):
    token, _ = opened.shows(PROMPT)
    answer = opened.post("/playground/ask", {"token": token, "number": 1, "model": "m"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert streamed_text(answer) == (
        f"Dear Anna {CANARY}, I write to anna.{CANARY.lower()}@example.org. <PERSON_9> knows."
    )
    assert ": textveil-unresolved: 1" in answer.text


@pytest.mark.parametrize(
    ("profile", "level"), [("prompt", "identifiers"), ("document", "personal")]
)
def test_other_options_are_only_looked_at(opened, profile, level):
    before = len(opened.upstream.asked)
    token, _ = opened.shows(PROMPT, profile=profile, level=level)
    answer = opened.post("/playground/ask", {"token": token, "number": 1, "model": "m"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "options")
    assert len(opened.upstream.asked) == before


def test_only_the_options_of_a_key_are_sent(tmp_path):
    file = str(tmp_path / "gateway.keys")
    made = {name: GatewayKeys(file, new=True).create(name) for name in ("anna", "bert")}
    with playing() as opened:
        upstream = opened.upstream.url
        policy = Policy(
            upstream=upstream, keys=file, rules=(PolicyRule(keys=("anna",), level="names"),)
        )
        gateway = Gateway(policy=policy)
        with TestClient(
            build_application(gateway, Playground(gateway)), base_url="http://127.0.0.1"
        ) as http:
            statuses = {}
            page, asks = {}, {}
            for name, key in made.items():
                page = {"Origin": "http://127.0.0.1", "Authorization": f"Bearer {key}"}
                token = http.post("/playground/open", json={}, headers=page).json()["token"]
                for number, level in enumerate(("names", "personal"), 1):
                    typed = {
                        "token": token,
                        "number": number,
                        "text": PROMPT,
                        "profile": "prompt",
                        "level": level,
                    }
                    assert (
                        http.post("/playground/protect", json=typed, headers=page).status_code
                        == 200
                    )
                    asks = {"token": token, "number": number, "model": "m"}
                    statuses[name, level] = http.post(
                        "/playground/ask", json=asks, headers=page
                    ).status_code
            asked = len(opened.upstream.asked)
            gateway.reload(policy)
            late = http.post("/playground/ask", json=asks, headers=page)
            assert (late.status_code, late.json()["error"]["code"]) == (409, "changed")
            assert len(opened.upstream.asked) == asked == 2
    allowed = {each for each, status in statuses.items() if status == 200}
    assert allowed == {("anna", "names"), ("bert", "personal")}
    assert set(statuses.values()) == {200, 403}


def test_an_upstream_that_refuses_is_said(opened):
    token, _ = opened.shows(PROMPT)
    kept, opened.upstream.answer = (
        opened.upstream.answer,
        lambda asked: (429, {"error": {"message": "slow down"}}),
    )
    try:
        answer = opened.post("/playground/ask", {"token": token, "number": 1, "model": "m"})
    finally:
        opened.upstream.answer = kept
    assert answer.status_code == 429
    assert answer.json()["error"]["message"] == "slow down"


# ---- what an attacker recovers ---------------------------------------------------------------------------------------


def test_the_risk_is_that_of_the_release_that_is_shown(opened):
    token, shown = opened.shows("Anna owes the bank nine hundred pounds", profile="document")
    found = opened.asked("risk", token=token, number=1, prior="unigram")
    assert texts(found["parts"]) == texts(shown["parts"])
    assert re.search(
        r" is expected to name \d(\.\d)? of your 6 .* public texts of the same kind",
        found["sentence"],
    )
    assert "Choosing among draws" in found["caution"]
    assert found["how"].startswith(
        (
            "The chances are computed from the distribution of the draws",
            "Chances are estimated by simulating the draws",
        )
    )
    assert all(len(part) == 1 or part[1].startswith("level") for part in found["parts"])
    token, _ = opened.shows(PROMPT)
    assert (
        "No word is drawn"
        in opened.asked("risk", token=token, number=1, prior="unigram")["sentence"]
    )


def test_the_text_stands_beside_its_release_and_the_statement_is_a_bar(opened):
    text = f"Anna {CANARY} owes the bank nine hundred pounds"
    token, shown = opened.shows(text, profile="document")
    assert shown["bar"]["picture"]["attributes"]["role"] == "img"
    assert any("drawn at epsilon 7.5" in each["says"] for each in shown["bar"]["legend"])
    found = opened.asked("risk", token=token, number=1, prior="unigram")
    assert texts(found["original"]) == text
    assert [part[1] for part in found["original"] if len(part) > 1] == [
        part[1] for part in found["parts"] if len(part) > 1
    ]
    assert opened.shows("")[1]["bar"] is None


def test_the_risk_at_other_budgets_is_that_of_the_text_and_shows_no_word(opened):
    text = f"{CANARY} owes the bank nine hundred pounds"
    token, _ = opened.shows(text, profile="document")
    said = opened.asked("curve", token=token, number=1, prior="uniform")
    assert [row[0] for row in said["curve"]["rows"]][2] == "7.5 (yours)"
    assert len(said["curve"]["rows"]) == 5
    found = opened.asked("risk", token=token, number=1, prior="uniform")
    [share] = re.findall(r"\((\d+)%\)", found["sentence"])[:1]
    assert said["curve"]["rows"][2][1] in (f"{share}%", "under 1%")
    assert CANARY not in json.dumps(said)
    token, _ = opened.shows(PROMPT)
    said = opened.asked("curve", token=token, number=1, prior="uniform")
    assert said["curve"] is None
    assert "textveil risk" in said["note"]


def test_a_curve_that_nobody_waits_for_is_given_up(opened, monkeypatch):
    token, _ = opened.shows("She owes the bank nine hundred pounds", profile="document")

    def computes(*_, report, **__):
        newer = {"token": token, "number": 2, "text": "", "profile": "prompt", "level": "personal"}
        opened.asked("protect", **newer)
        report("risk at other budgets", 1, 5)
        raise AssertionError("it went on")

    monkeypatch.setattr(routes, "compute_curve", computes)
    body = {"token": token, "number": 1, "prior": "uniform"}
    answer = opened.post("/playground/curve", body)
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "changed"


# ---- its own page only -----------------------------------------------------------------------------------------------

FOREIGN = [
    {"Origin": "https://example.org"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": "http://127.0.0.1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Host": "rebound.example.org"},
    {"Host": "rebound.example.org", "Origin": "http://rebound.example.org"},
    {"Host": "127.0.0.1.example.org", "Origin": "http://127.0.0.1.example.org"},
    {"Host": "localhost.example.org:80", "Origin": "http://localhost.example.org:80"},
    {"Host": "[::1", "Origin": "http://[::1"},
]


@pytest.mark.parametrize(
    "path", ["open", "protect", "risk", "curve", "restore", "ask", "activity", "close"]
)
def test_other_sites_are_refused(opened, path):
    for headers in FOREIGN:
        answer = opened.post(f"/playground/{path}", {}, **headers)
        assert answer.status_code == 403, headers
        assert answer.json()["error"]["code"] in ("host", "origin")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_only_json_is_read(opened, kind):
    assert opened.post("/playground/open", {}, **{"Content-Type": kind}).status_code == 415


def test_nothing_is_read_by_get(opened):
    for path in ("open", "activity", "ask"):
        assert opened.http.get(f"{opened.url}/playground/{path}").status_code == 405


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8600", "localhost", "localhost:1", "[::1]:8600", "10.0.0.7", "veil.lan"]
)
def test_addresses_and_allowed_names_are_answered(host):
    check_reader({"host": host}, ("Veil.lan",))
    check_page(
        {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}, ("veil.lan",)
    )
    check_page({"host": host, "origin": f"https://{host}"}, ("veil.lan",))


def test_the_page_may_be_linked_but_not_embedded(opened):
    get = opened.http.get
    page = get(
        f"{opened.url}/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    )
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in page.headers
    for word in ("http:", "https:", "//", "style=", "onclick", "<script>"):
        assert word not in page.text
    script = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    for path in ("/", "/playground/page.js", "/playground/page.css", "/playground/icon.svg"):
        assert get(f"{opened.url}{path}").status_code == 200
        assert get(f"{opened.url}{path}", headers=script).status_code == 403
        assert get(f"{opened.url}{path}", headers={"Host": "evil.example.org"}).status_code == 403


# ---- what it is given ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("protect", {"number": 0}),
        ("protect", {"number": True}),
        ("protect", {"number": "1"}),
        ("protect", {"level": "all"}),
        ("protect", {"profile": CANARY}),
        ("protect", {"text": ["a"]}),
        ("protect", {"more": 1}),
        ("risk", {"prior": "context"}),
        ("ask", {"model": ""}),
        ("ask", {"messages": [{"role": "user", "content": CANARY}]}),
        ("restore", {"answer": None}),
    ],
)
def test_bad_input_is_refused_and_not_repeated(opened, path, body):
    token, _ = opened.shows(PROMPT)
    good = {
        "protect": {"text": CANARY, "profile": "prompt", "level": "personal"},
        "risk": {"prior": "unigram"},
        "ask": {"model": "m"},
        "restore": {"answer": CANARY},
    }[path]
    before = len(opened.upstream.asked)
    answer = opened.post(f"/playground/{path}", {"token": token, "number": 2, **good, **body})
    assert answer.status_code == 400
    assert CANARY not in answer.text
    assert len(opened.upstream.asked) == before


def test_long_texts_are_refused(opened):
    token, _ = opened.shows(PROMPT)
    body = {
        "token": token,
        "number": 2,
        "text": "a" * (routes.MAX_TEXT_CHARACTERS + 1),
        "profile": "prompt",
        "level": "personal",
    }
    assert opened.post("/playground/protect", body).status_code == 413


def test_a_token_that_was_not_given_opens_nothing(opened):
    for path, more in (("activity", {}), ("restore", {"number": 1, "answer": "<PERSON_1>"})):
        answer = opened.post(f"/playground/{path}", {"token": "0" * 64, **more})
        assert answer.status_code == 410
        assert answer.json()["error"]["code"] == "gone"


def test_a_closed_page_is_forgotten(opened):
    token, _ = opened.shows(PROMPT)
    opened.asked("close", token=token)
    answer = opened.post(
        "/playground/restore", {"token": token, "number": 1, "answer": "<PERSON_1>"}
    )
    assert answer.status_code == 410
    assert CANARY not in answer.text


def test_pages_are_few_and_short_lived(monkeypatch):
    several = Pages()
    tokens = [several.open().token for _ in range(pages.MAX_PAGES + 1)]
    assert len(set(tokens)) == len(tokens)
    with pytest.raises(Exception, match="Reload"):
        several.get_page(tokens[0])
    later = time.monotonic() + pages.IDLE_SECONDS - 10
    monkeypatch.setattr(pages, "monotonic", lambda: later)
    several.get_page(tokens[2])
    monkeypatch.setattr(pages, "monotonic", lambda: later + 20)
    several.get_page(tokens[2])
    with pytest.raises(Exception, match="Reload"):
        several.get_page(tokens[1])


# ---- what it keeps ---------------------------------------------------------------------------------------------------


def test_recent_requests_are_counts(opened, caplog):
    caplog.set_level(logging.DEBUG)
    token, _ = opened.shows(PROMPT)
    opened.post("/playground/ask", {"token": token, "number": 1, "model": CANARY})
    body = {"model": CANARY, "messages": [{"role": "user", "content": PROMPT}], "stream": True}
    opened.post("/v1/chat/completions", body)
    opened.http.get(f"{opened.url}/v1/models/small")
    found = opened.asked("activity", token=token)
    last = found["requests"][:3]
    assert [each["operation"] for each in last] == ["models.one", "openai.chat", "playground"]
    assert last[1]["hidden"] == last[2]["hidden"] == "1 e-mail address, 1 person"
    assert last[1]["status"] == 200
    assert abs(last[1]["time"] - time.time()) < 60
    assert set(last[0]) == {"time", "operation", "hidden", "status", "reason", "milliseconds"}
    assert found["budgets"] is None
    assert CANARY.lower() not in json.dumps(found).lower()
    assert CANARY.lower() not in caplog.text.lower()


def test_texts_of_the_playground_are_in_no_store_and_what_it_asks_is_spent(tmp_path):
    with (
        SessionStore(f"sqlite:///{tmp_path / 'veil.db'}", keys=tmp_path / "keys") as store,
        playing(store=store, config=resolve(profile="document")) as opened,
    ):
        token, _ = opened.shows("Anna owes the bank nine hundred pounds", profile="document")
        assert (
            opened.asked("activity", token=token)["budgets"] == []
        )  # what is only shown spends nothing
        for _ in range(2):
            assert (
                opened.post(
                    "/playground/ask", {"token": token, "number": 1, "model": "m"}
                ).status_code
                == 200
            )
        accounts = opened.asked("activity", token=token)["budgets"]
        assert {each["releases"] for each in accounts} == {1}  # the same draw was sent twice
        account = accounts[0]
        assert account["ldp"] > 5
        assert store.sessions() == []  # no conversation of a client
        store.ledger.limit(
            account["subject"], account["metric"], account["table"], account["epsilon"] + 1
        )
        asked = len(opened.upstream.asked)
        token, _ = opened.shows("Anna owes the bank nine hundred pounds", profile="document")
        answer = opened.post("/playground/ask", {"token": token, "number": 1, "model": "m"})
        assert answer.status_code == 429
        assert len(opened.upstream.asked) == asked


def test_a_budget_holds_for_what_the_playground_asks_too(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    file = str(tmp_path / "gateway.keys")
    anna, bert = (GatewayKeys(file, new=True).create(name) for name in ("anna", "bert"))
    policy = Policy(keys=file, budget=KeyBudget(epsilon=60))
    with (
        SessionStore(f"sqlite:///{tmp_path / 'veil.db'}") as store,
        playing(store=store, policy=policy, config=resolve(profile="document")) as opened,
    ):

        def of(key):
            return {"Authorization": f"Bearer {key}"}

        def page(key):
            token = opened.post("/playground/open", {}, **of(key)).json()["token"]
            body = {"token": token, "number": 1, "text": "Anna owes the bank nine hundred pounds"}
            more = {"profile": "document", "level": "personal"}
            assert opened.post("/playground/protect", body | more, **of(key)).status_code == 200
            return {"token": token, "number": 1, "model": "m"}

        assert opened.post("/playground/open", {}).status_code == 401
        assert opened.post("/playground/open", {}, **of("tv-wrong")).status_code == 401
        first = page(anna)
        assert opened.post("/playground/ask", first).status_code == 401
        assert [
            opened.post("/playground/ask", first, **of(anna)).status_code for _ in range(2)
        ] == [200, 200]
        assert opened.post("/playground/ask", page(anna), **of(anna)).status_code == 429
        assert len(opened.upstream.asked) == 2
        assert all("authorization" not in each.headers for each in opened.upstream.asked)
        seen = opened.post("/playground/activity", {"token": first["token"]}, **of(anna)).json()
        assert {each["status"] for each in seen["requests"]} == {200, 429}
        assert any(limit["most"] == 60 for each in seen["budgets"] for limit in each["limits"])
        other = opened.post("/playground/activity", {"token": first["token"]}, **of(bert)).json()
        assert other == {"requests": [], "budgets": []}


# ---- where it is -----------------------------------------------------------------------------------------------------


def test_names_are_allowed_by_policy():
    with playing(policy=Policy(hosts=("veil.lan",))) as opened:
        assert opened.http.get(opened.url, headers={"Host": "veil.lan:8600"}).status_code == 200
        assert opened.http.get(opened.url, headers={"Host": "other.lan"}).status_code == 403


def test_a_prompt_may_be_as_large_as_the_policy_says_that_was_read_last():
    gateway = Gateway(
        privatizer=Privatizer("placeholder"),
        upstream="http://127.0.0.1:9/v1",
        policy=Policy(limit=10),
    )
    with TestClient(
        build_application(gateway, Playground(gateway)), base_url="http://127.0.0.1"
    ) as http:
        opened = [
            http.post(
                "/playground/open", json={"more": "x"}, headers={"Origin": "http://127.0.0.1"}
            )
        ]
        gateway.reload(Policy())
        opened += [http.post("/playground/open", json={}, headers={"Origin": "http://127.0.0.1"})]
        gateway.reload(Policy(limit=1))
        opened += [http.post("/playground/open", json={}, headers={"Origin": "http://127.0.0.1"})]
    assert [each.status_code for each in opened] == [413, 200, 413]


@pytest.mark.parametrize("local", [True, False])
def test_a_policy_that_is_read_again_closes_the_page_to_other_machines(local):
    everywhere = Policy(playground="everywhere")
    gateway = Gateway(
        privatizer=Privatizer("placeholder"), upstream="http://127.0.0.1:9/v1", policy=everywhere
    )
    playground = Playground(gateway, local=local)
    with TestClient(build_application(gateway, playground), base_url="http://127.0.0.1") as http:
        answers = []
        for policy in (
            everywhere,
            Policy(playground="local"),
            Policy(playground="never"),
            everywhere,
        ):
            gateway.reload(policy)
            token = http.post("/playground/open", json={}, headers={"Origin": "http://127.0.0.1"})
            answers.append((http.get("/").status_code, token.status_code))
    assert answers == [(200, 200), (200, 200) if local else (404, 404), (404, 404), (200, 200)]
