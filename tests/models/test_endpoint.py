"""Asking language models over HTTP: order, retries, failures in one line, and what must never get out."""

import json
import logging
import os
import pickle
import re
import socket
import subprocess
import sys
import time
import traceback
import urllib.request

import openai
import pytest

from textveil.config import option_sources
from textveil.errors import ConfigError, EndpointError, UnknownName
from textveil.models.endpoint import Endpoint

CANARY = "zyxqorvian"
KEY = "sk-hidden-" + CANARY
AMBIENT = "sk-ambient"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """No key of whoever runs the tests, and every variable of the openai package set to what must not be used."""
    monkeypatch.delenv("TEXTVEIL_LLM_KEY", raising=False)
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, AMBIENT)
    monkeypatch.setenv(
        "OPENAI_CUSTOM_HEADERS", f"Authorization: Bearer {AMBIENT}\nApi-Key: {AMBIENT}"
    )
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/ambient")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def endpoint(openai_server):
    return lambda model, **options: Endpoint(
        url=openai_server, model=model, **{"retries": 0, **options}
    )


@pytest.fixture
def journal(openai_server):
    """The requests so far whose user says this."""

    def read(user):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(openai_server.removesuffix("/v1") + "/journal") as answer:
            return [
                each
                for each in json.load(answer)
                if each["body"]["messages"][-1]["content"] == user
            ]

    return read


# ---- answers -------------------------------------------------------------------------------------------------------


def test_answers_come_in_order(endpoint):
    prompts = [("", f"{0.2 - 0.05 * i:.2f} {i}") for i in range(4)]  # the first is answered last
    assert endpoint("slow").ask(prompts) == [user for _, user in prompts]
    assert endpoint("upper").ask([("be loud", "straße 🙂"), ("be loud", "b")]) == [
        "STRASSE 🙂",
        "B",
    ]
    assert endpoint("echo").ask([]) == []


def test_the_request(endpoint, journal):
    endpoint("echo", temperature=0.5).ask([("the system", "request 1")], max_tokens=7)
    endpoint("echo").ask([("the system", "request 2")])
    (first,), (second,) = journal("request 1"), journal("request 2")
    messages = [
        {"role": "system", "content": "the system"},
        {"role": "user", "content": "request 1"},
    ]
    assert first["path"] == "/v1/chat/completions"
    assert first["body"] == {
        "model": "echo",
        "messages": messages,
        "temperature": 0.5,
        "max_tokens": 7,
    }
    assert second["body"] == {
        "model": "echo",
        "messages": [messages[0], {"role": "user", "content": "request 2"}],
        "temperature": 0.0,
    }


def test_several_are_under_way_at_once(endpoint):
    prompts = [("", f"{i}") for i in range(8)]
    assert endpoint("together", workers=4).ask(prompts) == [
        user for _, user in prompts
    ]  # the server waits for four


def test_no_more_are_under_way_than_workers(endpoint, journal):
    user = "0.05 workers"
    endpoint("slow", workers=2).ask([("", user)] * 6)
    assert [entry["under_way"] for entry in journal(user)].count(1) < 6
    assert max(entry["under_way"] for entry in journal(user)) == 2


def test_progress(endpoint):
    told = []
    endpoint("echo").ask([("", "a"), ("", "b"), ("", "c")], report=lambda *step: told.append(step))
    assert told == [("asking", 1, 3), ("asking", 2, 3), ("asking", 3, 3)]


# ---- retries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["fail-once", "hang-up-once"])
def test_what_fails_once_is_asked_again(endpoint, journal, model):
    user = f"again {model}"
    assert endpoint(model, retries=1).ask([("", user)]) == [user]
    assert len(journal(user)) == 2


def test_a_rate_limit_is_waited_for(endpoint, journal):
    start = time.monotonic()
    assert endpoint("rate-limit-once", retries=1).ask([("", "wait")]) == ["wait"]
    assert time.monotonic() - start >= 1.0  # Retry-After; without it the client waits half a second
    assert len(journal("wait")) == 2


def test_retries_end(endpoint, journal):
    with pytest.raises(EndpointError, match="status 500"):
        endpoint("fail-500", retries=1).ask([("", "ends")])
    assert len(journal("ends")) == 2


@pytest.mark.parametrize(
    "model", ["unauthorized", "forbidden", "missing", "bad-request", "garbage", "empty"]
)
def test_what_another_try_does_not_mend_is_asked_once(endpoint, journal, model):
    with pytest.raises(EndpointError):
        endpoint(model, retries=2).ask([("", f"once {model}")])
    assert len(journal(f"once {model}")) == 1


def test_after_a_failure_the_rest_is_not_sent(endpoint, journal):
    with pytest.raises(EndpointError):
        endpoint("unauthorized", workers=1).ask([("", "rest")] * 200)
    assert len(journal("rest")) < 100


# ---- failures ------------------------------------------------------------------------------------------------------

FAILURES = {
    "fail-500": "answered with status 500 instead of a completion",
    "rate-limit": "got too many requests (status 429); use fewer workers, or try later",
    "bad-request": "answered with status 400 instead of a completion",
    "redirect": "answered with status 307 instead of a completion",
    "unauthorized": "refused the key (status 401); put the right one in TEXTVEIL_LLM_KEY",
    "forbidden": "refused the key (status 403); put the right one in TEXTVEIL_LLM_KEY",
    "missing": "has no model 'missing' (status 404); check the model's name and the url",
    "unheard-of": "has no model 'unheard-of' (status 404); check the model's name and the url",
    "slow": "timed out after 0.3 s",
    "hang-up-once": "cannot be reached; check the url and that the server runs",
    "empty": "answered without text",
    "null": "answered without text",
    "no-choices": "answered without text",
    "odd": "answered without text",
    "number": "answered without text",
    "list": "did not answer with a chat completion in JSON; check the url",
    "garbage": "did not answer with a chat completion in JSON; check the url",
    "cut": "did not answer with a chat completion in JSON; check the url",
    "latin": "did not answer with a chat completion in JSON; check the url",
}


def everything_about(error):
    """What the error, its chain and their fields say."""
    said = [
        *traceback.format_exception(error),
        repr(error),
        str(error),
        repr(error.args),
        repr(vars(error)),
    ]
    assert error.__cause__ is None
    assert error.__context__ is None
    return "\n".join(said)


@pytest.mark.parametrize("model", FAILURES)
def test_failures_say_one_line_and_no_secret(endpoint, openai_server, caplog, capfd, model):
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "openai._base_client"):
        caplog.set_level(logging.DEBUG, logger=name)
    with pytest.raises(EndpointError) as caught:
        endpoint(model, key=KEY, timeout=0.3 if model == "slow" else 20).ask(
            [(CANARY, f"2 {CANARY} of {model}")]
        )
    host = openai_server.removeprefix("http://").removesuffix("/v1")
    assert str(caught.value) == f"the endpoint {host} {FAILURES[model]}"
    assert CANARY not in everything_about(caught.value)
    assert CANARY not in repr(pickle.loads(pickle.dumps(caught.value)))
    assert CANARY not in caplog.text + "".join(capfd.readouterr())


def test_the_server_repeats_the_secrets(openai_server):
    """Or the tests here could not fail: a client as it comes tells what was asked, and sends the environment's key."""
    with (
        openai.DefaultHttpxClient(trust_env=False) as http,
        openai.OpenAI(
            base_url=openai_server, api_key=KEY, max_retries=0, http_client=http
        ) as client,
        pytest.raises(openai.BadRequestError, match=f"{CANARY}.*{AMBIENT}"),
    ):
        client.chat.completions.create(
            model="bad-request", messages=[{"role": "user", "content": CANARY}]
        )


def test_nobody_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        port = taken.getsockname()[1]
        with pytest.raises(
            EndpointError,
            match=f"^the endpoint 127.0.0.1:{port} cannot be reached; check the url and that the server runs$",
        ) as error:
            Endpoint(url=f"http://127.0.0.1:{port}/v1", model="echo", retries=0).ask([("", CANARY)])
    assert CANARY not in everything_about(error.value)


def test_text_that_cannot_be_sent(endpoint):
    with pytest.raises(
        EndpointError, match=r"could not be called \(UnicodeEncodeError\)$"
    ) as error:
        endpoint("echo").ask([("", f"{CANARY} \ud800")])
    assert CANARY not in everything_about(error.value)


def test_a_long_model_name_is_not_repeated(endpoint):
    with pytest.raises(EndpointError, match=r"has no model like that \("):
        endpoint("a text in the place of a model").ask([("", "x")])


# ---- streams -------------------------------------------------------------------------------------------------------

SAID = "Grüße 🙂 an <PERSON_12>, <EMAIL_2>!\n\nBis bald"


@pytest.mark.parametrize(
    ("model", "pieces"),
    [
        ("echo", 7),
        ("halves", 2),
        ("characters", len(SAID)),
        ("bytes", len(SAID)),
        ("no-done", 7),
        ("talkative", 7),
    ],
)
def test_an_answer_comes_in_pieces(endpoint, model, pieces):
    found = list(endpoint(model).stream([("user", SAID)]))
    assert "".join(found) == SAID
    assert len(found) == pieces


def test_a_conversation_is_sent_as_it_is(endpoint, journal):
    said = [
        ("system", "briefly"),
        ("user", "one"),
        ("assistant", "two"),
        ("user", "a conversation"),
    ]
    assert "".join(endpoint("echo", temperature=0.5).stream(said)) == "a conversation"
    (entry,) = journal("a conversation")
    assert entry["body"] == {
        "model": "echo",
        "messages": [{"role": role, "content": content} for role, content in said],
        "temperature": 0.5,
        "stream": True,
    }
    assert entry["headers"].pop("authorization") == "Bearer none"
    assert AMBIENT not in str(entry)


def test_the_first_piece_is_there_before_the_last(endpoint):
    pieces = endpoint("silent").stream([("user", "one two three four")])
    start = time.monotonic()
    assert next(pieces) == "one "
    assert time.monotonic() - start < 1.5  # two seconds of silence are to come
    assert "".join(pieces) == "two three four"


@pytest.mark.parametrize("model", ["fail-once", "hang-up-once"])
def test_a_stream_that_has_not_begun_is_asked_for_again(endpoint, journal, model):
    user = f"stream {model}"
    assert "".join(endpoint(model, retries=1).stream([("user", user)])) == user
    assert len(journal(user)) == 2


BROKEN_OFF = "broke off in the middle of its answer"
BREAKS = dict.fromkeys(
    ("stops", "no-finish", "breaks-off", "reports", "silent", "not-json"), BROKEN_OFF
)


@pytest.mark.parametrize("model", BREAKS)
def test_an_answer_that_breaks_off_is_an_error_after_its_pieces(endpoint, journal, model):
    user = f"{model} two three four"
    pieces = endpoint(model, retries=2, timeout=0.5).stream([("user", user)])
    found = [next(pieces)]
    with pytest.raises(EndpointError, match=BROKEN_OFF):
        found.extend(pieces)
    assert "".join(found) == (user if model in ("stops", "no-finish") else f"{model} two ")
    assert len(journal(user)) == 1


STREAMLESS = ("empty", "null", "no-choices", "odd", "number", "list", "garbage", "cut")
"""Under `stream` they answer with one event without text, or with none."""


@pytest.mark.parametrize("model", [*FAILURES, *BREAKS, "plain"])
def test_failures_of_a_stream_say_one_line_and_no_secret(
    endpoint, openai_server, caplog, capfd, model
):
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "openai._base_client"):
        caplog.set_level(logging.DEBUG, logger=name)
    timeout = 0.3 if model in ("slow", "silent") else 20
    with pytest.raises(EndpointError) as caught:
        list(
            endpoint(model, key=KEY, timeout=timeout).stream(
                [("system", CANARY), ("user", f"2 {CANARY} {model} x")]
            )
        )
    host = openai_server.removeprefix("http://").removesuffix("/v1")
    says = "answered without text" if model in STREAMLESS else {**FAILURES, **BREAKS}.get(model)
    assert str(caught.value) == f"the endpoint {host} {says or 'answered without text'}"
    assert CANARY not in everything_about(caught.value)
    assert CANARY not in caplog.text + "".join(capfd.readouterr())


def test_an_error_in_the_place_of_the_first_piece(endpoint):
    with pytest.raises(EndpointError, match=r"reported an error instead of a completion$") as error:
        list(endpoint("reports").stream([("user", CANARY)]))
    assert CANARY not in everything_about(error.value)


def test_who_leaves_a_stream_closes_the_connection(endpoint, journal):
    pieces = endpoint("endless").stream([("user", "left early")])
    next(pieces)
    pieces.close()
    for _ in range(100):
        (entry,) = journal("left early")
        if entry["left"]:
            return
        time.sleep(0.05)
    pytest.fail("the server still sends")


# ---- what goes out -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "environment_key", "sent"),
    [
        (None, None, "none"),
        (None, "", "none"),
        (None, "sk-own", "sk-own"),
        ("sk-given", "sk-own", "sk-given"),
    ],
)
def test_which_key_is_sent(endpoint, journal, monkeypatch, key, environment_key, sent):
    if environment_key is not None:
        monkeypatch.setenv("TEXTVEIL_LLM_KEY", environment_key)
    user = f"key {key} {environment_key}"
    endpoint("echo", key=key).ask([("", user)])
    (entry,) = journal(user)
    assert entry["headers"].pop("authorization") == f"Bearer {sent}"
    assert entry["headers"].pop("user-agent") == "textveil"
    assert entry["headers"].keys() <= {
        "host",
        "connection",
        "accept",
        "accept-encoding",
        "content-type",
        "content-length",
    }
    assert AMBIENT not in str(entry)


def test_redirects_are_not_followed(endpoint, journal):
    with pytest.raises(EndpointError):
        endpoint("redirect").ask([("", "redirected")])
    assert [entry["path"] for entry in journal("redirected")] == ["/v1/chat/completions"]


def test_the_key_is_no_option_of_the_environment():
    assert option_sources.read_environment({"TEXTVEIL_LLM_KEY": KEY}, ()).values == {}


# ---- logs ----------------------------------------------------------------------------------------------------------


def of_libraries(caplog):
    """What the client's libraries logged while they asked; that a connection was closed comes after."""
    said = (each for each in caplog.records if re.match("openai|httpx|httpcore", each.name))
    return [each for each in said if not each.getMessage().startswith("close.")]


def test_the_libraries_log_nothing_of_our_requests_and_all_of_others(
    endpoint, openai_server, caplog
):
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "openai._base_client"):
        caplog.set_level(logging.DEBUG, logger=name)
    endpoint("fail-once", retries=1).ask([("", f"logged {CANARY}")])
    assert of_libraries(caplog) == []
    with (
        openai.DefaultHttpxClient(trust_env=False) as http,
        openai.OpenAI(base_url=openai_server, api_key="none", http_client=http) as client,
    ):
        client.chat.completions.create(model="echo", messages=[{"role": "user", "content": "x"}])
    assert len(of_libraries(caplog)) > 5


def test_openai_log_does_not_print_the_prompt(openai_server):
    """The package sets up logging to standard error when it is imported; a new process imports it anew."""
    code = f"""if True:
        import logging
        from textveil.models import Endpoint
        from textveil.errors import EndpointError
        logging.basicConfig(level=logging.DEBUG)
        ask = lambda model: Endpoint(url={openai_server!r}, model=model, key={KEY!r}, retries=0).ask([("", {CANARY!r})])
        assert ask("echo") == [{CANARY!r}]
        try:
            ask("bad-request")
        except EndpointError as error:
            print(error)
        logging.getLogger("openai._base_client").debug("log is on")
    """
    environ = {**os.environ, "OPENAI_LOG": "debug"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert "status 400" in found.stdout
    assert "log is on" in found.stderr
    assert CANARY not in found.stdout + found.stderr


# ---- options -------------------------------------------------------------------------------------------------------


def test_the_key_is_in_no_repr():
    endpoint = Endpoint(url="http://localhost:1/v1", model="m", key=KEY)
    assert KEY not in repr(endpoint)
    assert "localhost" in repr(endpoint)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.org/v1",
        "http://127.0.0.1:8080",
        "http://[::1]:8080/v1/",
        "HTTPS://example.org/a@b/v1",
    ],
)
def test_urls(url):
    assert Endpoint(url=url, model="m").url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8080",
        "ftp://host/v1",
        "file:///etc/passwd",
        "http://",
        "http:///v1",
        "http://host:port/v1",
        "http://host:99999/v1",
        "http://[::1/v1",
        "http://host/v1?key=" + CANARY,
        "http://host/v1#" + CANARY,
        "http://host /v1",
        "http://host/v1\n",
        "http://host\\v1",
        "http://hóst/v1",
    ],
)
def test_urls_that_are_none(url):
    with pytest.raises(ConfigError, match=r"^endpoint.url must have the form http") as error:
        Endpoint(url=url, model="m")
    assert CANARY not in everything_about(error.value)


@pytest.mark.parametrize(
    "url", [f"http://me:{CANARY}@host/v1", f"https://{CANARY}@host/v1", "http://@host/v1"]
)
def test_credentials_in_the_url(url):
    with pytest.raises(
        ConfigError, match=r"^endpoint.url must not hold a name or password"
    ) as error:
        Endpoint(url=url, model="m")
    assert CANARY not in everything_about(error.value)


@pytest.mark.parametrize(
    "key", [f"{CANARY} x", f"{CANARY}\n", f"ß{CANARY}", CANARY.encode(), [CANARY], ""]
)
def test_keys_that_are_none(key):
    with pytest.raises(
        ConfigError,
        match=r"^the key \(endpoint.key or TEXTVEIL_LLM_KEY\) must be ASCII without spaces$",
    ) as error:
        Endpoint(url="http://localhost/v1", model="m", key=key)
    assert CANARY not in everything_about(error.value)


def test_a_key_of_the_environment_that_is_none(endpoint, monkeypatch):
    monkeypatch.setenv("TEXTVEIL_LLM_KEY", f"{CANARY} x")
    with pytest.raises(ConfigError, match=r"must be ASCII without spaces$") as error:
        endpoint("echo").ask([("", "x")])
    assert CANARY not in everything_about(error.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"model": ""}, "endpoint.model must have at least 1 character"),
        ({"timeout": 0}, "endpoint.timeout must be greater than 0"),
        ({"timeout": float("inf")}, "endpoint.timeout must be a finite number"),
        ({"retries": -1}, "endpoint.retries must be greater than or equal to 0"),
        ({"temperature": 2.5}, "endpoint.temperature must be less than or equal to 2"),
        ({"workers": 0}, "endpoint.workers must be greater than or equal to 1"),
    ],
)
def test_options_that_are_out_of_range(options, says):
    with pytest.raises(ConfigError, match=re.escape(says)):
        Endpoint(**{"url": "http://localhost/v1", "model": "m", **options})


def test_unknown_options():
    with pytest.raises(UnknownName, match="did you mean 'workers'"):
        Endpoint(url="http://localhost/v1", model="m", worker=1)  # type: ignore[call-arg]


def test_openai_is_imported_when_it_is_asked():
    code = "import sys, textveil.models.endpoint; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
