"""Several processes behind one address: conversations go on in any of them, and one that dies is replaced."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest
from tests.gateway.servers import answer_of, serving_upstream
from tests.gateway.test_operations import CANARY, KEY, lines, samples, until
from tests.lanes import first_of_each

from textveil import cli
from textveil.gateway import ServingOptions
from textveil.gateway.serve.process import FINAL_SECONDS
from textveil.gateway.serve.workers import KILL_SECONDS

ROOT = Path(__file__).parents[2]

WORDS = [
    "garden",
    "house",
    "river",
    "mountain",
    "bread",
    "window",
    "letter",
    "summer",
    "winter",
    "doctor",
]
NOISE = ("--mechanism", "noise", "--epsilon", "20", "--table", "minilm-s")


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Keys of a store for this test only."""
    for name in list(os.environ):
        if name.startswith("TEXTVEIL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))


@contextmanager
def workers(upstream, tmp_path, *arguments):
    """A gateway of two workers as a process, its address without /v1, and its audit log."""
    log = tmp_path / "audit.jsonl"
    command = [
        sys.executable,
        "-m",
        "textveil",
        "gateway",
        "--upstream",
        upstream,
        "--port",
        "0",
        "--workers",
        "2",
    ]
    command += ["--store", f"sqlite:///{tmp_path}/veil.db", "--audit-log", str(log), *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        said = running.stderr.readline()
        assert said.startswith("textveil: serving clients"), said
        try:
            until(lambda: log.exists() and len(begun(log)) == 2)
            yield running, said.split()[-1].removesuffix("/v1"), log
        finally:
            running.kill()
            until(lambda: not any(map(alive, begun(log))))  # they stop, too


def begun(log):
    """The workers that began, by their ids."""
    return [each["process"] for each in lines(log) if each["event"] == "start"]


def answered(log, number):
    """What the log says of that many requests; their lines may come after their answers."""

    def said():
        return [each for each in lines(log) if each["event"] == "request"]

    until(lambda: len(said()) >= number)
    return said()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ask(url, messages, key=KEY):
    """One request on a connection of its own, so that any worker may take it."""
    with httpx2.Client(trust_env=False, timeout=60) as http:
        return http.post(
            f"{url}/v1/chat/completions", json={"model": "m", "messages": messages}, headers=key
        )


def user(text):
    return {"role": "user", "content": text}


@pytest.mark.posix
@pytest.mark.parametrize("key", first_of_each([KEY, {}]))
def test_a_conversation_goes_on_in_any_worker(tmp_path, key):
    """Byte for byte, with words that are drawn: each is drawn once, whichever worker gets the next turn."""
    with (
        serving_upstream() as upstream,
        workers(upstream.url, tmp_path, *NOISE) as (running, url, log),
    ):
        upstream.answer = lambda asked: answer_of(
            {"content": f"so {asked.body['messages'][-1]['content']}"}
        )
        messages, served = [], Counter[int]()
        for turn in range(40):
            messages.append(user(" ".join(WORDS[(turn + i) % 10] for i in range(5))))
            answer = ask(url, messages, key)
            assert answer.status_code == 200, answer.text
            messages.append(answer.json()["choices"][0]["message"])
            served = Counter(each["process"] for each in answered(log, turn + 1))
            if turn > 10 and min(served[pid] for pid in begun(log)) > 3:
                break
        assert min(served[pid] for pid in begun(log)) > 3, served
        sent = [body["messages"] for body in upstream.bodies]
        for before, after in pairwise(sent):
            assert json.dumps(after[: len(before)]) == json.dumps(before)
        assert sent[-1][0]["content"] != messages[0]["content"]
        requests = answered(log, len(sent))
        again = len(requests) - len(WORDS)  # these texts were released before
        assert [each["drawn"] for each in requests] == [1] * len(WORDS) + [0] * again
        assert len({each["key"] for each in requests}) == 1
        with httpx2.Client(trust_env=False) as http:  # one worker shows what all have counted
            counted = samples(http, url)
        assert counted['textveil_requests_total{operation="openai.chat",status="200"}'] == len(
            requests
        )
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
        assert running.stderr is not None
        assert running.stderr.read() == ""


@pytest.mark.slow
def test_workers_share_conversations_in_redis(tmp_path, redis):
    """Two processes at once never give one placeholder to two values, nor one value two."""
    with (
        serving_upstream() as upstream,
        workers(upstream.url, tmp_path, "--store", redis) as (_, url, log),
    ):
        upstream.answer = lambda asked: answer_of(
            {"content": asked.body["messages"][-1]["content"]}
        )
        begins = [user(f"write to a{i}@b.example") for i in range(4)]
        with ThreadPoolExecutor(8) as pool:
            talks = [begins[: i % 4 + 1] for i in range(24)]
            answers = list(pool.map(ask, [url] * 24, talks))
        for talk, answer in zip(talks, answers, strict=True):
            assert answer.json()["choices"][0]["message"]["content"] == talk[-1]["content"]
        for body in upstream.bodies:
            sent = [message["content"] for message in body["messages"]]
            assert sent == [f"write to <EMAIL_{i + 1}>" for i in range(len(sent))]
        assert {each["process"] for each in answered(log, 24)} == set(begun(log))


@pytest.mark.slow
def test_two_turns_at_once_are_drawn_once(tmp_path):
    with serving_upstream() as upstream, workers(upstream.url, tmp_path, *NOISE) as (_, url, log):
        upstream.answer = lambda asked: answer_of({"content": "x"})
        with ThreadPoolExecutor(8) as pool:
            for turn in range(8):
                messages = [user(f"{WORDS[turn]} {' '.join(WORDS)}")]
                assert {each.status_code for each in pool.map(ask, [url] * 8, [messages] * 8)} == {
                    200
                }
        assert set(Counter(json.dumps(body) for body in upstream.bodies).values()) == {8}
        requests = answered(log, 64)
        assert {each["process"] for each in requests} == set(begun(log))
        spent = sum(each["words"] for request in requests for each in request["spent"])
    command = ["ledger", "show", "--json", "--store", f"sqlite:///{tmp_path}/veil.db"]
    (account,) = json.loads(
        subprocess.run([sys.executable, "-m", "textveil", *command], capture_output=True).stdout
    )
    assert account["releases"] == 8
    assert spent == 8 * 11


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(tmp_path):
    with (
        serving_upstream() as upstream,
        workers(upstream.url, tmp_path, "--mechanism", "placeholder") as (running, url, log),
    ):
        upstream.answer = lambda asked: answer_of({"content": "<WORD_1>"})
        first = begun(log)
        os.kill(first[0], signal.SIGKILL)
        until(lambda: len(begun(log)) == 3)
        assert running.stderr is not None
        assert running.stderr.readline() == (
            "textveil: a worker was killed (SIGKILL); another one takes its place\n"
        )
        assert alive(first[1])
        for _ in range(10):
            assert ask(url, [user(CANARY)]).json()["choices"][0]["message"]["content"] == CANARY
        assert CANARY not in json.dumps(upstream.bodies)
        events = Counter(each["event"] for each in lines(log))
        assert (events["start"], events["stop"]) == (3, 0)
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
        assert Counter(each["event"] for each in lines(log))["stop"] == 2


@pytest.mark.slow
def test_streams_of_a_worker_that_died_are_open_no_more(tmp_path):
    more = threading.Event()

    def pieces():
        yield b'data: {"choices": [{"delta": {"content": "x"}}]}\n\n'
        assert more.wait(60)

    def counted(http, url):
        return samples(http, url).get("textveil_streams_open")

    with (
        serving_upstream(lambda _: pieces()) as upstream,
        workers(upstream.url, tmp_path, "--mechanism", "placeholder") as (_, url, log),
        httpx2.Client(trust_env=False, timeout=60) as http,
    ):
        body = {"model": "m", "messages": [user(CANARY)], "stream": True}
        with http.stream("POST", f"{url}/v1/chat/completions", json=body, headers=KEY) as answer:
            coming = answer.iter_lines()
            next(coming)
            with httpx2.Client(trust_env=False, timeout=60) as other:
                until(lambda: counted(other, url) == 1)
            for pid in begun(log):
                os.kill(pid, signal.SIGKILL)
            more.set()
            with pytest.raises(httpx2.HTTPError):
                list(coming)
        until(lambda: len(begun(log)) == 4)
        with httpx2.Client(trust_env=False, timeout=60) as other:
            until(lambda: counted(other, url) is None)


POLICY = "upstreams: {here: {url: 'http://127.0.0.1:9/v1'}}\nupstream: here\nprofile: prompt\nlimit: 1000\n"


@contextmanager
def under(tmp_path, said=POLICY):
    """A gateway of two workers as a process, and the file with its policy."""
    policy = tmp_path / "gateway.yaml"
    policy.write_text(said)
    command = [
        sys.executable,
        "-m",
        "textveil",
        "gateway",
        "--policy",
        str(policy),
        "--port",
        "0",
        "--workers",
        "2",
    ]
    command += [
        "--store",
        f"sqlite:///{tmp_path}/veil.db",
        "--audit-log",
        str(tmp_path / "audit.jsonl"),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield running, policy
        finally:
            running.kill()


@pytest.mark.slow
def test_all_workers_read_a_policy_again_and_so_do_those_that_come_later(tmp_path):
    log = tmp_path / "audit.jsonl"
    with under(tmp_path) as (running, policy):
        assert running.stderr is not None
        url = running.stderr.readline().split()[-1].removesuffix("/v1")
        until(lambda: log.exists() and len(begun(log)) == 2)
        assert ask(url, [user("x" * 2_000)]).status_code == 413
        policy.write_text(POLICY.replace("1000", "9000"))
        running.send_signal(signal.SIGHUP)
        assert sorted(running.stderr.readline() for _ in range(2)) == sorted(
            f"textveil: worker {pid}: the policy was read again\n" for pid in begun(log)
        )
        assert {ask(url, [user("x" * 2_000)]).status_code for _ in range(6)} == {502}
        assert len(begun(log)) == 2
        for pid in begun(log):
            os.kill(pid, signal.SIGKILL)
        until(lambda: len(begun(log)) == 4)
        assert {ask(url, [user("x" * 2_000)]).status_code for _ in range(6)} == {502}
        for _ in range(2):
            assert "a worker was killed" in running.stderr.readline()
        policy.write_text(f"{POLICY}level: some\n")
        os.kill(begun(log)[-1], signal.SIGKILL)
        assert "a worker was killed" in running.stderr.readline()
        assert "level must be" in running.stderr.readline()
        assert (
            "a worker ended with status 2; another one takes its place" in running.stderr.readline()
        )
        assert len(begun(log)) == 4
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0


@pytest.mark.slow
def test_workers_that_load_take_the_policy_that_came_meanwhile(tmp_path):
    """The first one is asked to read again before it serves, and goes on."""
    with under(tmp_path) as (running, policy):
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        until(lambda: children.read_text().split())
        policy.write_text(POLICY.replace("1000", "9000"))
        for _ in range(10):
            running.send_signal(signal.SIGHUP)
            time.sleep(0.05)
        assert running.stderr is not None
        said = running.stderr.readline()
        while "the policy was read again" in said:
            said = running.stderr.readline()
        assert said.startswith("textveil: serving clients"), said
        url = said.split()[-1].removesuffix("/v1")
        until(lambda: ask(url, [user("x" * 2_000)]).status_code == 502)
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0


@pytest.mark.slow
def test_a_first_worker_that_is_killed_is_told(tmp_path):
    with under(tmp_path) as (running, _):
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        until(lambda: children.read_text().split())
        os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
        assert running.stderr is not None
        says = (
            "textveil: the first worker was killed (SIGKILL) before it served; the gateway ends\n"
        )
        assert running.stderr.readline() == says
        assert running.wait(60) == 1


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            "rules: [{models: ['a*'], options: {seed: 1}}]\n",
            "several workers with one seed would make the same draws",
        ),
        ("playground: everywhere\n", "the playground needs one process"),
    ],
)
def test_a_policy_that_workers_cannot_have_is_refused(tmp_path, capsys, more, says):
    (tmp_path / "gateway.yaml").write_text(POLICY + more)
    asked = ["gateway", "--policy", str(tmp_path / "gateway.yaml"), "--port", "0", "--workers", "2"]
    assert cli.main([*asked, "--store", f"sqlite:///{tmp_path}/x.db"]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.slow
def test_they_stop_together_and_streams_end(tmp_path):
    more, begun_ = threading.Event(), threading.Semaphore(0)

    def pieces():
        yield b'data: {"choices": [{"delta": {"content": "<WORD_1> "}}]}\n\n'
        begun_.release()
        assert more.wait(30)
        yield b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'

    def streamed(url):
        body = {"model": "m", "messages": [user(CANARY)], "stream": True}
        with httpx2.Client(trust_env=False, timeout=60) as http:
            return http.post(f"{url}/v1/chat/completions", json=body, headers=KEY).text

    with (
        serving_upstream(lambda _: pieces()) as upstream,
        workers(upstream.url, tmp_path, "--mechanism", "placeholder") as (running, url, _),
        ThreadPoolExecutor(6) as pool,
    ):
        open_ = [pool.submit(streamed, url) for _ in range(6)]
        for _ in open_:
            assert begun_.acquire(timeout=30)
        running.send_signal(signal.SIGTERM)
        time.sleep(1)
        assert running.poll() is None
        more.set()
        for each in open_:
            assert CANARY in each.result(30)
            assert each.result().endswith("data: [DONE]\n\n")
        assert running.wait(30) == 0


@pytest.mark.slow
def test_they_stop_when_nobody_looks_after_them(tmp_path):
    with (
        serving_upstream() as upstream,
        workers(upstream.url, tmp_path, "--mechanism", "placeholder") as (running, _, log),
    ):
        running.kill()
        until(lambda: not any(map(alive, begun(log))))
        assert Counter(each["event"] for each in lines(log))["stop"] == 2


def test_what_is_wrong_is_said_once(tmp_path):
    command = [
        sys.executable,
        "-m",
        "textveil",
        "gateway",
        "--upstream",
        "http://127.0.0.1:9/v1",
        "--port",
        "0",
    ]
    command += [
        "--workers",
        "2",
        "--store",
        f"sqlite:///{tmp_path}/veil.db",
        "--mechanism",
        "no-such",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2
    assert len(re.findall("textveil: error: ", ran.stderr)) == 1


@pytest.mark.slow
def test_the_unit_starts_reads_its_policy_again_and_stops(tmp_path):
    """The command and the environment of `deploy/textveil.service`, in other folders and on another port."""
    unit = ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(ROOT / "deploy" / "textveil.service")
    service = unit["Service"]
    program, *arguments = service["ExecStart"].replace("/etc/textveil", str(tmp_path)).split()
    name, _, value = service["Environment"].partition("=")
    environ = {**os.environ, name: value.replace(service["WorkingDirectory"], str(tmp_path))}
    (tmp_path / "gateway.yaml").write_text(
        "gateway: {workers: 2, store: 'sqlite:///veil.db', audit-log: audit.jsonl}\n"
        "policy: {upstream: 'http://127.0.0.1:9/v1'}\n"
    )
    command = [sys.executable, "-m", os.path.basename(program), *arguments, "--port", "0"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environ
    ) as running:
        try:
            assert running.stderr is not None
            address = running.stderr.readline().split()[-1].removesuffix("/v1")
            with httpx2.Client(trust_env=False, timeout=60) as http:
                until(lambda: http.get(f"{address}/ready").status_code == 200)
            assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
            running.send_signal(signal.SIGHUP)
            assert "the policy was read again" in running.stderr.readline()
            running.send_signal(signal.SIGTERM)
            assert running.wait(float(service["TimeoutStopSec"])) == 0
        finally:
            running.kill()
    # Options of the server are the file's: on the command line they would win.
    assert arguments == ["gateway", "--config", f"{tmp_path}/gateway.yaml"]
    assert float(service["TimeoutStopSec"]) > ServingOptions().grace + KILL_SECONDS + FINAL_SECONDS
    assert {each.name for each in tmp_path.iterdir()} >= {"audit.jsonl", "keys", "veil.db"}


NO_STORE = (
    r"several workers share conversations through a database: add --store sqlite:///NAME\.db, "
)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), NO_STORE),
        (("--store", "file:x.session"), NO_STORE),
        (("--store", "memory:"), NO_STORE),
        (
            ("--store", "sqlite:///x.db", "--seed", "1"),
            r"several workers with one seed would make the same draws: leave out ",
        ),
    ],
)
def test_what_workers_need(capsys, monkeypatch, tmp_path, arguments, says):
    monkeypatch.chdir(tmp_path)
    asked = [
        "gateway",
        "--upstream",
        "http://127.0.0.1:9/v1",
        "--port",
        "0",
        "--workers",
        "2",
        *arguments,
    ]
    assert cli.main(asked) == 2
    assert re.fullmatch(f"textveil: error: {says}.*\n", capsys.readouterr().err)
