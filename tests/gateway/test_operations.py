"""What a gateway says about itself: whether it is ready, metrics, traces, the audit log; and never a text."""

import gc
import json
import os
import re
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx2
import pytest
from tests.gateway import servers
from tests.gateway.servers import answer_of, serving_upstream, stream_of
from tests.gateway.servers import lines as lines_of
from tests.session.test_ledger_attacks import deleted_file, replaced_file, truncated_file

from textveil import Privatizer, cli
from textveil.errors import ConfigError, ModelError, StoreError
from textveil.gateway import Gateway, Policy, ServingOptions
from textveil.gateway.errors import RequestError
from textveil.gateway.policy.policy import PolicyRule
from textveil.gateway.request.request_record import OTHER, RequestRecord, read_usage
from textveil.gateway.serve.audit_log import AuditLog
from textveil.gateway.serve.metrics import Metrics
from textveil.gateway.serve.process import ServerProcess
from textveil.session import SessionStore, Spend
from textveil.session.sql.database import GONE_MESSAGE

CANARY = "Blorvequine"
KEY = {"Authorization": "Bearer sk-of-the-client"}
ASKED = [{"role": "user", "content": f"{CANARY} met Quillimar"}]


serving = partial(servers.serving, path="")
"""The address of a server of a gateway, without /v1."""


@pytest.fixture(scope="module")
def privatizer(small_table):
    return Privatizer("placeholder", table=small_table)


@pytest.fixture
def upstream():
    with serving_upstream() as made:
        made.answer = lambda asked: (
            stream_of([{"content": text} for text in ("<WO", "RD_1> and <WORD_9", "9>")])
            if asked.body.get("stream")
            else answer_of({"content": "<WORD_1> and <WORD_99>"})
        )
        yield made


@pytest.fixture
def http():
    with httpx2.Client(trust_env=False, timeout=20) as made:
        yield made


def ask(http, url, **changed):
    return http.post(
        f"{url}/v1/chat/completions", json={"model": "m", "messages": ASKED, **changed}, headers=KEY
    )


def samples(http, url):
    """The metrics that are not 0, by name and labels; without when they began."""
    page = http.get(f"{url}/metrics")
    assert page.status_code == 200
    lines = [line.rsplit(" ", 1) for line in page.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines if "_created" not in name and float(value)}


def until(condition):
    """Waits until something holds."""
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it never held")


# ---- ready -----------------------------------------------------------------------------------------------------------


def test_ready_once_the_models_are_loaded(privatizer, upstream, http, monkeypatch):
    go = threading.Event()
    monkeypatch.setattr(Gateway, "load", lambda _: go.wait(20))
    with serving(Gateway(privatizer=privatizer, upstream=upstream.url)) as url:
        assert http.get(f"{url}/health").status_code == 200
        answer = http.get(f"{url}/ready")
        assert (answer.status_code, answer.json()) == (
            503,
            {"ready": False, "models": "loading", "store": "ready"},
        )
        go.set()
        until(lambda: http.get(f"{url}/ready").status_code == 200)
        assert http.get(f"{url}/ready").json() == {
            "ready": True,
            "models": "ready",
            "store": "ready",
        }


@pytest.mark.slow
def test_a_program_that_goes_on_does_not_keep_the_gateway(privatizer, upstream, http):
    gateway, kept = Gateway(privatizer=privatizer, upstream=upstream.url), gc.get_freeze_count()
    left = weakref.ref(gateway)
    with serving(gateway) as url:
        until(lambda: http.get(f"{url}/ready").status_code == 200)
    del gateway
    gc.collect()
    assert gc.get_freeze_count() <= kept
    assert left() is None


def test_models_that_cannot_be_loaded(privatizer, upstream, http, monkeypatch, caplog):
    def fail(_):
        raise ModelError("the folder of the model is empty")

    monkeypatch.setattr(Gateway, "load", fail)
    with serving(Gateway(privatizer=privatizer, upstream=upstream.url)) as url:
        until(lambda: http.get(f"{url}/ready").json()["models"] == "failed (ModelError)")
        assert http.get(f"{url}/ready").status_code == 503
    assert "the models cannot be loaded: the folder of the model is empty" in caplog.text


def test_loading_loads_what_releases_need_and_tells_nobody(
    small_table, upstream, tmp_path, monkeypatch
):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    with SessionStore(f"sqlite:///{tmp_path}/veil.db") as store:
        gateway = Gateway(
            privatizer=Privatizer("placeholder", table=small_table),
            upstream=upstream.url,
            store=store,
        )
        gateway.load()
        assert store.sessions() == []
    assert upstream.bodies == []


def test_a_store_that_cannot_be_reached(privatizer, upstream, http, tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))

    def fail():
        raise StoreError(f"nobody must read {CANARY}")

    store = SessionStore(f"sqlite:///{tmp_path}/veil.db")
    with store, serving(Gateway(privatizer=privatizer, upstream=upstream.url, store=store)) as url:
        until(lambda: http.get(f"{url}/ready").status_code == 200)
        monkeypatch.setattr(store, "ping", fail)
        answer = http.get(f"{url}/ready")
        assert (answer.status_code, answer.json()["store"]) == (503, "cannot be reached")
        assert CANARY not in answer.text


@pytest.mark.parametrize("going", [deleted_file, replaced_file, truncated_file])
def test_a_store_whose_file_is_gone_is_not_ready_and_nothing_is_sent(
    privatizer, upstream, http, tmp_path, monkeypatch, going
):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    path, other = tmp_path / "veil.db", tmp_path / "other.db"
    SessionStore(f"sqlite:///{other}").close()
    store = SessionStore(f"sqlite:///{path}")
    with store, serving(Gateway(privatizer=privatizer, upstream=upstream.url, store=store)) as url:
        until(lambda: http.get(f"{url}/ready").status_code == 200)
        assert ask(http, url).status_code == 200
        going(path, other)
        answer = http.get(f"{url}/ready")
        assert (answer.status_code, answer.json()["store"]) == (503, "cannot be reached")
        sent = len(upstream.asked)
        for stream in (False, True):
            answer = ask(http, url, stream=stream)
            assert (answer.status_code, answer.json()["error"]["message"]) == (
                500,
                f"textveil: {GONE_MESSAGE}",
            )
        assert len(upstream.asked) == sent
    assert path.exists() == (going is not deleted_file)


def test_the_upstream_is_asked_only_when_that_is_wanted(privatizer, openai_server, http):
    with serving(Gateway(privatizer=privatizer, upstream=openai_server)) as url:
        until(lambda: http.get(f"{url}/ready").status_code == 200)
        assert http.get(f"{url}/ready?upstream=1").json()["upstream"] == "ready"
    with serving(Gateway(privatizer=privatizer, upstream="http://127.0.0.1:9/v1")) as url:
        until(lambda: http.get(f"{url}/ready").status_code == 200)
        answer = http.get(f"{url}/ready?upstream=1")
        assert (answer.status_code, answer.json()["upstream"]) == (503, "cannot be reached")


def test_probes_at_the_same_time_ask_the_upstream_once(privatizer, http):
    def answer(_):
        time.sleep(0.5)
        return {}

    with serving_upstream(answer) as upstream, ThreadPoolExecutor(4) as pool:
        with serving(Gateway(privatizer=privatizer, upstream=upstream.url)) as url:
            said = list(pool.map(http.get, [f"{url}/ready?upstream=1"] * 4))
        assert {each.json()["upstream"] for each in said} == {"ready"}
        assert len(upstream.asked) == 1


# ---- metrics ---------------------------------------------------------------------------------------------------------


def test_metrics_count_requests_and_what_they_hide(privatizer, upstream, http):
    with serving(Gateway(privatizer=privatizer, upstream=upstream.url)) as url:
        assert ask(http, url).status_code == 200
        assert ask(http, url, stream=True).status_code == 200
        assert ask(http, url, logprobs=True).status_code == 400
        assert http.post(f"{url}/v1/{CANARY}", json={}).status_code == 404
        found = samples(http, url)
    expected = {
        'textveil_requests_total{operation="openai.chat",status="200"}': 2,
        'textveil_requests_total{operation="openai.chat",status="400"}': 1,
        'textveil_requests_total{operation="unknown",status="404"}': 1,
        'textveil_refusals_total{reason="unprotected"}': 1,
        'textveil_refusals_total{reason="unknown"}': 1,
        'textveil_protected_total{type="WORD"}': 6,
        "textveil_unresolved_total": 2,
        'textveil_added_seconds_count{operation="openai.chat"}': 3,
    }
    assert {name: value for name, value in found.items() if name in expected} == expected
    assert found['textveil_added_seconds_sum{operation="openai.chat"}'] > 0


USAGES = {
    "openai.chat": ({"usage": {"prompt_tokens": 7, "completion_tokens": 3}}, (7, 3)),
    "anthropic.messages": ({"usage": {"input_tokens": 7, "output_tokens": 3}}, (7, 3)),
    "openai.responses": ({"response": {"usage": {"input_tokens": 7, "output_tokens": 3}}}, (7, 3)),
    "gemini": ({"usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3}}, (7, 3)),
    "bedrock": ({"usage": {"inputTokens": 7, "outputTokens": 3}}, (7, 3)),
    "begin": ({"message": {"usage": {"input_tokens": 7}}}, (7, None)),
    "end": ({"usage": {"output_tokens": 3}}, (None, 3)),
    "wrong": ({"usage": {"input_tokens": CANARY, "output_tokens": -1}}, (None, None)),
    "none": ("[DONE]", (None, None)),
}


@pytest.mark.parametrize("name", USAGES)
def test_tokens_are_read_from_answers_and_events(name):
    answer, expected = USAGES[name]
    usage = read_usage(answer)
    assert (usage.get("input"), usage.get("output")) == expected


@pytest.mark.parametrize("stream", [False, True])
def test_calls_of_models_are_counted_as_opentelemetry_names_them(
    privatizer, upstream, http, stream
):
    from opentelemetry.semconv._incubating.metrics import gen_ai_metrics as names

    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    pieces = [*stream_of([{"content": "a"}])[:-1], *lines_of({"choices": [], "usage": usage})]
    upstream.answer = lambda _: (
        [*pieces, b"data: [DONE]\n\n"] if stream else answer_of({"content": "a"}) | {"usage": usage}
    )
    with serving(Gateway(privatizer=privatizer, upstream=upstream.url)) as url:
        assert ask(http, url, stream=stream).status_code == 200
        found = samples(http, url)
    duration, tokens = (
        name.replace(".", "_")
        for name in (names.GEN_AI_CLIENT_OPERATION_DURATION, names.GEN_AI_CLIENT_TOKEN_USAGE)
    )
    labels = {
        "gen_ai_operation_name": "chat",
        "gen_ai_provider_name": "openai",
        "gen_ai_request_model": "m",
        "server_address": "127.0.0.1",
        "server_port": str(upstream.server_port),
    }

    def find(name, **more):
        wanted = {f'{key}="{value}"' for key, value in (labels | more).items()}
        return [
            value
            for key, value in found.items()
            if key.startswith(f"{name}{{")
            and set(key.rstrip("}").split("{")[1].split(",")) == wanted
        ]

    assert find(f"{duration}_seconds_count", error_type="") == [1]
    assert find(f"{tokens}_sum", gen_ai_token_type="input") == [7]
    assert find(f"{tokens}_sum", gen_ai_token_type="output") == [3]


def test_metrics_count_what_is_spent_and_what_has_no_bound(small_table, upstream, http):
    noise = Privatizer("noise", epsilon=5.0, table=small_table)
    with serving(Gateway(privatizer=noise, upstream=upstream.url)) as url:
        for _ in range(2):  # the same message again spends nothing
            assert (
                ask(http, url, messages=[{"role": "user", "content": "garden"}]).status_code == 200
            )
        assert samples(http, url)['textveil_epsilon_spent_total{metric="chord"}'] == pytest.approx(
            5, rel=1e-3
        )
    metrics, record = Metrics(), RequestRecord("openai.chat")
    record.note_spends(
        [Spend(metric="chord", table="t", epsilon=0, ldp=0, words=1, infinite="no bound")]
    )
    metrics.count(record)
    assert b"\ntextveil_unbounded_total 1.0\n" in metrics.render_page()[0]


def test_open_streams_are_counted(privatizer, openai_server, http):
    with serving(Gateway(privatizer=privatizer, upstream=openai_server)) as url:
        body = {"model": "endless", "messages": ASKED, "stream": True}
        with http.stream("POST", f"{url}/v1/chat/completions", json=body) as answer:
            coming = answer.iter_lines()
            next(coming)
            assert samples(http, url)["textveil_streams_open"] == 1
        until(lambda: "textveil_streams_open" not in samples(http, url))
        assert (
            samples(http, url)['textveil_requests_total{operation="openai.chat",status="499"}'] == 1
        )


@pytest.mark.parametrize(("metrics", "status"), [("local", 200), ("all", 200), ("off", 404)])
def test_who_may_read_metrics(privatizer, upstream, http, metrics, status):
    with serving(
        Gateway(
            privatizer=privatizer, upstream=upstream.url, running=ServingOptions(metrics=metrics)
        )
    ) as url:
        assert http.get(f"{url}/metrics").status_code == status


def test_types_that_are_no_types_are_not_told_apart():
    metrics = Metrics()
    record = RequestRecord("openai.chat")
    record.protected.update({f"TYPE_{i}": 1 for i in range(150)} | {CANARY: 1, "A" * 41: 1})
    metrics.count(record)
    page = metrics.render_page()[0].decode()
    assert CANARY not in page
    assert len(re.findall(r"^textveil_protected_total{", page, re.MULTILINE)) == 101
    assert f'textveil_protected_total{{type="{OTHER}"}} 52.0' in page


# ---- the audit log ---------------------------------------------------------------------------------------------------


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_audit_log_has_a_line_for_each_request(privatizer, upstream, http, tmp_path):
    path = tmp_path / "audit.jsonl"
    gateway = Gateway(
        privatizer=privatizer, upstream=upstream.url, running=ServingOptions(audit_log=str(path))
    )
    with serving(gateway) as url:
        answers = [
            ask(http, url),
            ask(http, url, stream=True),
            ask(http, url, model=f"x{'y' * 150}", logprobs=True),
        ]
        assert http.get(f"{url}/ready").json()["audit log"] == "ready"
    first, *requests, last = lines(path)
    assert (first["event"], last["event"]) == ("start", "stop")
    assert first["process"] == last["process"] == os.getpid()
    assert [each["request"] for each in requests] == [
        each.headers["textveil-request-id"] for each in answers
    ]
    whole, streamed, refused = requests
    milliseconds = whole.pop("milliseconds")
    assert milliseconds["gateway"] > 0
    assert milliseconds["upstream"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", whole.pop("time"))
    key = whole.pop("key")
    assert re.fullmatch("client-[0-9a-f]{16}", key)
    assert whole == {
        "event": "request",
        "process": os.getpid(),
        "request": answers[0].headers["textveil-request-id"],
        "operation": "openai.chat",
        "model": "m",
        "dry": False,
        "forgotten": 0,
        "protected": {"WORD": 3},
        "unknown": {},
        "drawn": 0,
        "spent": [],
        "status": 200,
        "reason": "",
        "field": "",
        "unresolved": 1,
    }
    assert (streamed["key"], streamed["drawn"], streamed["unresolved"]) == (key, 0, 1)
    assert (refused["status"], refused["reason"], refused["model"]) == (400, "unprotected", OTHER)
    assert (
        refused["field"]
        == answers[2].headers["textveil-field"]
        == answers[2].json()["error"]["param"]
        == "logprobs"
    )
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_audit_log_marks_dry_runs(privatizer, upstream, http, tmp_path):
    path = tmp_path / "audit.jsonl"
    with serving(
        Gateway(
            privatizer=privatizer,
            upstream=upstream.url,
            running=ServingOptions(audit_log=str(path)),
        )
    ) as url:
        for dry, more in (("1", {}), ("1", {"logprobs": True}), ("0", {})):
            http.post(
                f"{url}/v1/chat/completions",
                json={"model": "m", "messages": ASKED, **more},
                headers={**KEY, "textveil-dry-run": dry},
            )
    assert [(each["dry"], each["status"]) for each in lines(path)[1:-1]] == [
        (True, 200),
        (True, 400),
        (False, 200),
    ]
    assert len(upstream.bodies) == 1


@pytest.mark.parametrize(
    "model",
    [
        "anna.kowalski@example.org",
        "212-555-0148",
        "GB82WEST12345698765432",
        f"tv-{'aB3' * 14}x",
        "sk-of-the-client",
    ],
)
def test_what_looks_like_no_model_is_not_logged(privatizer, upstream, http, tmp_path, model):
    """In requests that are refused, and in those for which there is an answer."""
    path = tmp_path / "audit.jsonl"
    gateway = Gateway(
        privatizer=privatizer, upstream=upstream.url, running=ServingOptions(audit_log=str(path))
    )
    with serving(gateway) as url:
        answers = [ask(http, url, model=model, logprobs=refused) for refused in (None, True)]
    assert [each.status_code for each in answers] == [400 if "@" in model or "GB82" in model else 200, 400]
    assert [each["model"] for each in lines(path)[1:-1]] == [OTHER, OTHER]


def test_models_are_logged_that_the_policy_names_or_the_upstream_knows(
    privatizer, upstream, http, tmp_path
):
    path = tmp_path / "audit.jsonl"
    policy = Policy(rules=(PolicyRule(models=("named-1", "any-*"), media="pass"),))
    running = ServingOptions(audit_log=str(path))
    known = ["gpt-4o-2024-08-06", "meta-llama/Llama-3.1-8B-Instruct", "any-1"]
    with serving(
        Gateway(privatizer=privatizer, upstream=upstream.url, policy=policy, running=running)
    ) as url:
        for model in known:
            assert ask(http, url, model=model).status_code == 200
        upstream.answer = lambda _: (404, {}, {"error": {"message": "no such model"}})
        for model in ("named-1", "any-2"):
            assert ask(http, url, model=model).status_code == 404
    assert [each["model"] for each in lines(path)[1:-1]] == [*known, "named-1", OTHER]


def test_a_log_that_was_moved_away_is_begun_anew(tmp_path):
    path = tmp_path / "audit.jsonl"
    log = AuditLog(str(path))
    for name in ("first", "second"):
        log.add(RequestRecord("openai.chat"))
        path.rename(tmp_path / name)
    log.check()
    log.add(RequestRecord("openai.chat"))
    assert log.close() == 0
    counted = [len(lines(tmp_path / name)) for name in ("first", "second", "audit.jsonl")]
    assert counted == [2, 1, 2]


WRITER = """
import sys
from textveil.gateway.serve.audit_log import AuditLog
from textveil.gateway.request.request_record import RequestRecord
log = AuditLog(sys.argv[1])
for i in range(300):
    record = RequestRecord("openai.chat")
    record.protected.update({f"TYPE_{j}": i for j in range(300)})
    log.add(record)
log.close()
"""


@pytest.mark.slow
def test_several_processes_write_one_log(tmp_path):
    path = tmp_path / "audit.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path)]) for _ in range(2)]
    assert [each.wait(60) for each in writers] == [0, 0]
    assert (
        sorted(each["event"] for each in lines(path))
        == ["request"] * 600 + ["start"] * 2 + ["stop"] * 2
    )


LIMITED = """
import resource, sys
from textveil.gateway.serve.audit_log import AuditLog
from textveil.gateway.errors import RequestError
from textveil.gateway.request.request_record import RequestRecord
log = AuditLog(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
added = 0
admitted = RequestRecord("openai.chat")
admitted.admitted = True
while log.flush():
    log.add(admitted)
    added += 1
log.add(admitted)
try:
    log.check()
    print("checked")
except RequestError as error:
    print(error.status, error.code, error.headers["Retry-After"], added)
for _ in range(1000):
    log.add(RequestRecord("unknown"))
print(len(log._waiting))
whole = open(sys.argv[1]).read()
print(whole.count("\\n"), whole[-1:] == "\\n")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.check()
print(log.close(), open(sys.argv[1]).read().count("\\n"))
"""


def test_a_full_disk_stops_requests_and_loses_no_line(tmp_path):
    path = tmp_path / "audit.jsonl"
    command = [sys.executable, "-c", LIMITED, str(path)]
    refused, waiting, full, after = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    status, code, again, added = refused.split()
    assert (status, code, again) == ("503", "audit", "10")
    assert full == f"{added} True"  # what did not fit left nothing, and one of them is `start`
    assert waiting == "2"
    assert after == f"0 {int(added) + 4}"  # the two that waited, `dropped` and `stop`
    assert [each.get("requests") for each in lines(path) if each["event"] == "dropped"] == [1000]


def test_what_cannot_be_logged_is_not_sent(privatizer, upstream, http, tmp_path, monkeypatch):
    path = tmp_path / "audit.jsonl"
    gateway = Gateway(
        privatizer=privatizer, upstream=upstream.url, running=ServingOptions(audit_log=str(path))
    )
    with serving(gateway) as url:
        monkeypatch.setattr(
            "textveil.gateway.serve.audit_log.MIN_FREE_BYTES", 1 << 62
        )  # more than any disk has
        answer = ask(http, url)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        assert answer.json()["error"]["code"] == "audit"
        until(lambda: http.get(f"{url}/ready").json()["models"] == "ready")
        ready = http.get(f"{url}/ready")
        assert (ready.status_code, ready.json()["audit log"]) == (503, "cannot be written")
        assert upstream.bodies == []
        monkeypatch.undo()
        assert ask(http, url).status_code == 200


@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_a_log_that_cannot_be_opened_is_said_before_the_address(tmp_path, capsys, workers):
    asked = [
        "gateway",
        "--upstream",
        "http://127.0.0.1:9/v1",
        "--port",
        "0",
        "--audit-log",
        str(tmp_path / "no" / "a"),
    ]
    assert cli.main([*asked, "--store", f"sqlite:///{tmp_path}/veil.db", *workers]) == 2
    said = "textveil: error: --audit-log must be a file that can be written: No such file or directory\n"
    assert capsys.readouterr() == ("", said)


def test_a_log_that_cannot_be_opened(tmp_path):
    for path in (tmp_path, tmp_path / "none" / "audit.jsonl", "/dev/full"):
        with pytest.raises(ConfigError, match="the audit log must be a file that can be written: "):
            AuditLog(str(path))


def test_what_breaks_off_is_logged_as_failed_and_before_it_is_counted(
    privatizer, tmp_path, monkeypatch
):
    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(Metrics, "count", fail)
    path, record = tmp_path / "audit.jsonl", RequestRecord("openai.chat")
    running = ServingOptions(audit_log=str(path))
    gateway = Gateway(privatizer=privatizer, upstream="http://127.0.0.1:9/v1", running=running)
    process = ServerProcess(gateway, httpx2.AsyncClient())
    with pytest.raises(OSError, match="no space left"), process.record_request(record, None):
        raise KeyError(CANARY)
    assert [(each["status"], each["reason"]) for each in lines(path)[1:]] == [(500, "failed")]


# ---- traces ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def spans(monkeypatch):
    """Spans that have ended, as OpenTelemetry's own exporter in memory has them."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter.get_finished_spans


@pytest.mark.parametrize("stream", [False, True])
def test_spans_of_a_request(privatizer, upstream, http, spans, stream):
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as attributes
    from opentelemetry.trace import SpanKind

    trace_id, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    headers = {
        "traceparent": f"00-{trace_id}-{parent}-01",
        "tracestate": f"who={CANARY}",
        "baggage": f"who={CANARY}",
    }
    with serving(Gateway(privatizer=privatizer, upstream=upstream.url)) as url:
        body = {"model": "m", "messages": ASKED, "stream": stream}
        assert (
            http.post(f"{url}/v1/chat/completions", json=body, headers=headers).status_code == 200
        )
    found = {each.name: each for each in spans()}
    request = found["textveil.request"]
    assert found.keys() == {
        *(f"textveil.{name}" for name in ("request", "protect", "restore")),
        "chat m",
    }
    assert f"{request.context.trace_id:032x}" == trace_id
    assert f"{request.parent.span_id:016x}" == parent
    steps = [each for each in found.values() if each is not request]
    assert {each.parent.span_id for each in steps} == {request.context.span_id}
    assert request.attributes["textveil.protected.word"] == 3
    assert request.attributes["textveil.unresolved"] == 1
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["gen_ai.request.model"] == "m"
    assert all(
        request.attributes[f"textveil.{step}.seconds"] > 0
        for step in ("protect", "upstream", "restore")
    )
    call = found["chat m"]
    assert (request.kind, call.kind) == (SpanKind.SERVER, SpanKind.CLIENT)
    assert dict(call.attributes) == {
        attributes.GEN_AI_OPERATION_NAME: "chat",
        attributes.GEN_AI_PROVIDER_NAME: attributes.GenAiProviderNameValues.OPENAI.value,
        attributes.GEN_AI_REQUEST_MODEL: "m",
        "server.address": "127.0.0.1",
        "server.port": upstream.server_port,
    }
    assert CANARY not in "".join(each.to_json() for each in spans())


def test_a_call_that_fails_is_named_as_such(privatizer, http, spans):
    with serving(Gateway(privatizer=privatizer, upstream="http://127.0.0.1:9/v1")) as url:
        assert ask(http, url).status_code == 502
    call = next(each for each in spans() if each.kind.name == "CLIENT")
    assert (call.name, call.attributes["error.type"]) == ("chat", "upstream")


# ---- no text ---------------------------------------------------------------------------------------------------------


class Failing(Privatizer):
    """Its message holds the text, as those of other libraries may."""

    def privatize_many(self, texts, *arguments, **options):
        raise ValueError(f"cannot do {list(texts)}")


def everything(privatizer, upstream, http, spans, path):
    """All that a gateway says about requests that hold the canary wherever they can."""
    gateway = Gateway(
        privatizer=privatizer, upstream=upstream.url, running=ServingOptions(audit_log=str(path))
    )
    with serving(gateway) as url:
        for body in (
            {},
            {"stream": True},
            {"logprobs": CANARY},
            {"no_such_field": CANARY},
            {"no_such_field": {CANARY: CANARY}},
            {"model": f"{CANARY} is ill"},
            {"user": CANARY, "metadata": {CANARY: CANARY}},
        ):
            headers = {"X-Request-Id": CANARY, "Idempotency-Key": CANARY, "traceparent": CANARY}
            asked = {"model": "m", "messages": ASKED, **body}
            http.post(
                f"{url}/v1/chat/completions?{CANARY}={CANARY}", json=asked, headers=KEY | headers
            )
        http.post(f"{url}/v1/{CANARY}", json=ASKED)
        said = http.get(f"{url}/metrics").text + http.get(f"{url}/ready").text
    return said + path.read_text() + "".join(each.to_json() for each in spans())


@pytest.mark.parametrize("kind", [Privatizer, Failing])
def test_no_text_is_told(small_table, upstream, http, spans, tmp_path, capfd, caplog, kind):
    upstream.answer = lambda asked: (
        500,
        {},
        {"error": {"message": CANARY, "code": CANARY, "type": CANARY}},
    )
    said = everything(
        kind("placeholder", table=small_table), upstream, http, spans, tmp_path / "audit.jsonl"
    )
    assert "openai.chat" in said
    assert '"field": "logprobs"' in said
    for secret in (CANARY, KEY["Authorization"].split()[1], "Quillimar"):
        assert secret.lower() not in (said + caplog.text + "".join(capfd.readouterr())).lower()


@pytest.mark.parametrize("leak", ["key", "model", "reason", "operation", "field"])
def test_the_test_above_would_notice(
    privatizer, upstream, http, spans, tmp_path, monkeypatch, leak
):
    add = AuditLog.add

    def leaking(log, record):
        setattr(record, leak, CANARY)
        add(log, record)

    monkeypatch.setattr(AuditLog, "add", leaking)
    assert CANARY in everything(privatizer, upstream, http, spans, tmp_path / "audit.jsonl")


def test_an_error_of_the_log_says_what_to_do(tmp_path):
    log = AuditLog(str(tmp_path / "audit.jsonl"))
    log._path = str(tmp_path / "gone" / "audit.jsonl")
    with pytest.raises(RequestError, match="the audit log cannot be written, so nothing is sent"):
        log.check()
    log.add(RequestRecord("openai.chat"))
    assert log.close() == 2
