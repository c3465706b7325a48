"""How a gateway ends, what clients that leave end, and what waits in its lanes."""

import asyncio
import gc
import json
import os
import re
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager

import httpx2
import pytest
from tests.gateway.servers import answer_of, process, serving_upstream
from tests.gateway.test_operations import ASKED, CANARY, KEY, ask, samples, serving, until

from textveil import Privatizer
from textveil.gateway import Gateway, ServingOptions, build_application
from textveil.gateway.errors import RequestError
from textveil.gateway.serve.metrics import Metrics
from textveil.gateway.serve.thread_pools import ThreadPool


@pytest.fixture(scope="module")
def privatizer(small_table):
    return Privatizer("placeholder", table=small_table)


@pytest.fixture
def http():
    with httpx2.Client(trust_env=False, timeout=20) as made:
        yield made


class Slow:
    """An upstream's answer in pieces, one each time that `more` is set."""

    def __init__(self):
        self.begun, self.more, self.left = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, asked):
        if not asked.body.get("stream"):
            return answer_of({"content": "<WORD_1>"})
        return self._pieces()

    def _pieces(self):
        try:
            yield b'data: {"choices": [{"delta": {"content": "<WORD_1> "}}]}\n\n'
            self.begun.set()
            assert self.more.wait(20)
            yield b'data: {"choices": [{"delta": {"content": "<WORD_2>"}, "finish_reason": "stop"}]}\n\n'
            yield b"data: [DONE]\n\n"
        finally:
            self.left.set()


def streamed(url):
    """A stream as lines, until its end."""
    body = {"model": "m", "messages": ASKED, "stream": True}
    with httpx2.Client(trust_env=False, timeout=30) as http:
        return http.post(f"{url}/v1/chat/completions", json=body, headers=KEY).text


@contextmanager
def stopping(grace):
    """A stream that has begun when the gateway is told to stop.

    Its answer, the process of the gateway, and what comes of it; the upstream, and the address of the gateway.
    """
    answer = Slow()
    with (
        serving_upstream(answer) as upstream,
        process(upstream.url, "--grace", grace) as (running, url),
        ThreadPoolExecutor(1) as pool,
    ):
        open_ = pool.submit(streamed, url)
        assert answer.begun.wait(30)
        running.send_signal(signal.SIGTERM)
        yield answer, running, open_, upstream, url


# ---- the end ---------------------------------------------------------------------------------------------------------


def test_open_streams_end_and_new_requests_are_refused(http):
    with stopping("15") as (answer, running, open_, upstream, url):
        until(lambda: http.get(f"{url}/ready").json().get("process") == "stopping")
        assert http.get(f"{url}/ready").status_code == 503
        assert http.get(f"{url}/health").status_code == 200
        for path, shape in (("chat/completions", "error"), ("messages", "type")):
            refused = http.post(
                f"{url}/v1/{path}", json={"model": "m", "messages": ASKED, "max_tokens": 5}
            )
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert shape in refused.json()
        assert len(upstream.asked) == 1
        answer.more.set()
        whole = open_.result(30)
        assert "".join(re.findall(r'"content": "([^"]*)"', whole)) == f"{CANARY} met"
        assert whole.endswith("data: [DONE]\n\n")
        assert running.wait(30) == 0


def test_a_stream_that_takes_longer_than_the_grace_ends_with_an_error():
    with stopping("0.5") as (answer, running, open_, *_):
        *_, last = [line for line in open_.result(30).splitlines() if line.startswith("data: ")]
        answer.more.set()
        error = json.loads(last.removeprefix("data: "))["error"]
        assert (error["code"], error["message"]) == (
            "stopping",
            "textveil: the gateway is stopping; send the request again",
        )
        assert running.wait(30) == 0
        assert running.stderr is not None
        assert running.stderr.read() == ""


@pytest.mark.slow
def test_a_whole_answer_that_takes_longer_than_the_grace_is_an_error(http):
    hold = threading.Event()
    with (
        serving_upstream() as upstream,
        process(upstream.url, "--grace", "0.5") as (running, url),
        ThreadPoolExecutor(1) as pool,
    ):
        upstream.answer = lambda _: answer_of({"content": "x"}) if hold.wait(20) else None
        open_ = pool.submit(ask, http, url)
        until(lambda: upstream.bodies)
        running.send_signal(signal.SIGTERM)
        answer = open_.result(30)
        hold.set()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "stopping")
        assert running.wait(30) == 0


@pytest.mark.slow
def test_a_second_signal_gives_no_more_time():
    with stopping("600") as (answer, running, open_, *_):
        time.sleep(0.5)
        assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
        answer.more.set()
        assert '"stopping"' in open_.result(30)


# ---- clients that leave ----------------------------------------------------------------------------------------------


def test_a_client_that_leaves_ends_the_request_to_the_upstream(privatizer, http):
    """Before a whole answer, where the upstream is still thinking."""
    gone = threading.Event()

    def wait(body):
        assert gone.wait(20)
        return answer_of({"content": "x"})

    with (
        serving_upstream() as upstream,
        serving(Gateway(privatizer=privatizer, upstream=upstream.url)) as url,
    ):
        upstream.answer = wait
        content = json.dumps({"model": "m", "messages": ASKED})
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as client:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}\r\n"
            client.sendall(f"{head}Content-Type: application/json\r\n\r\n{content}".encode())
            until(lambda: upstream.bodies)
            assert connections(upstream) == 1
        until(lambda: connections(upstream) == 0)
        until(lambda: 'textveil_refusals_total{reason="left"}' in samples(http, url))
        gone.set()
        assert (
            samples(http, url)['textveil_requests_total{operation="openai.chat",status="499"}'] == 1
        )


def connections(upstream):
    """How many connections to an upstream stand, as the system counts them."""
    port = int(upstream.url.rpartition(":")[2].partition("/")[0])
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


def test_what_nobody_waits_for_is_not_begun(small_table, http):
    """With one thread, which is busy: the second request leaves the queue before its turn."""
    seen, go = [], threading.Event()

    class Held(Privatizer):
        def privatize_many(self, texts, *arguments, **options):
            seen.extend(texts := list(texts))
            assert go.wait(20)
            return super().privatize_many(texts, *arguments, **options)

    with (
        serving_upstream() as upstream,
        pytest.MonkeyPatch.context() as patch,
        ThreadPoolExecutor(1) as pool,
    ):
        upstream.answer = lambda _: answer_of({"content": "x"})
        patch.setattr("textveil.gateway.serve.process.MEMORY_THREADS", 1)
        patch.setattr(Gateway, "load", lambda _: None)
        with serving(
            Gateway(privatizer=Held("placeholder", table=small_table), upstream=upstream.url)
        ) as url:
            first = pool.submit(ask, http, url, messages=[{"role": "user", "content": "one"}])
            until(lambda: seen == ["one"])
            with (
                httpx2.Client(trust_env=False, timeout=0.5) as impatient,
                pytest.raises(httpx2.TimeoutException),
            ):
                ask(impatient, url, messages=[{"role": "user", "content": "two"}])
            until(lambda: 'textveil_refusals_total{reason="left"}' in samples(http, url))
            go.set()
            assert first.result(20).status_code == 200
            ask(http, url, messages=[{"role": "user", "content": "three"}])
    assert seen == ["one", "three"]
    assert len(upstream.bodies) == 2


# ---- many, and streams that make no sense ----------------------------------------------------------------------------


def test_more_streams_are_open_than_a_client_of_http_has_connections_by_default(privatizer):
    more = threading.Event()

    def answer(_):
        yield b"data: {}\n\n"
        assert more.wait(60)

    async def open_all(application, url):
        async with (
            application.router.lifespan_context(application) as state,
            AsyncExitStack() as until_end,
        ):
            try:
                for _ in range(102):
                    asking = state["client"].stream(
                        "POST", f"{url}/chat/completions", json={}, timeout=5
                    )
                    await until_end.enter_async_context(asking)
            finally:
                more.set()

    with serving_upstream(answer) as upstream:
        served = build_application(Gateway(privatizer=privatizer, upstream=upstream.url))
        asyncio.run(open_all(served, upstream.url))
        assert len(upstream.asked) == 102


def test_a_stream_that_cannot_be_closed_ends_with_an_error(privatizer, http, caplog):
    """As choices with numbers and texts for numbers cannot be put in order."""
    with (
        serving_upstream() as upstream,
        serving(Gateway(privatizer=privatizer, upstream=upstream.url)) as url,
    ):
        choices = [{"index": index, "delta": {"content": "<WORD_1>"}} for index in ("0", 1)]
        upstream.answer = lambda _: [f"data: {json.dumps({'choices': choices})}\n\n".encode()]
        *_, last = [line for line in streamed(url).splitlines() if line.startswith("data: ")]
        assert json.loads(last.removeprefix("data: "))["error"]["code"] == "upstream"
        assert (
            samples(http, url)['textveil_requests_total{operation="openai.chat",status="502"}'] == 1
        )
    assert caplog.text == ""


# ---- lanes -----------------------------------------------------------------------------------------------------------


def test_a_full_queue_refuses_and_says_when_to_ask_again():
    async def fill():
        lane, go = ThreadPool("short", 1, 2, Metrics().waiting), threading.Event()
        await lane.run(time.sleep, 1.2)
        waiting = [asyncio.ensure_future(lane.run(go.wait)) for _ in range(3)]
        await asyncio.sleep(0.05)
        with pytest.raises(RequestError) as error:
            await lane.run(go.wait)
        waiting[1].cancel()
        await asyncio.sleep(0.05)
        waiting.append(asyncio.ensure_future(lane.run(go.wait)))  # there is room again
        await asyncio.sleep(0.05)
        go.set()
        done = await asyncio.gather(*waiting, return_exceptions=True)
        lane.close()
        return error.value, done

    error, done = asyncio.run(fill())
    assert (error.status, error.code, error.headers) == (503, "busy", {"Retry-After": "4"})
    assert [each if isinstance(each, bool) else type(each) for each in done] == [
        True,
        asyncio.CancelledError,
        True,
        True,
    ]


def test_what_fails_when_nobody_waits_any_more_is_not_logged(caplog):
    """As asyncio logs an exception that nobody asks for, with its message, which may hold text."""

    async def leave():
        lane, go = ThreadPool("answers", 1, None, Metrics().waiting), threading.Event()

        def fail():
            assert go.wait(20)
            raise KeyError(CANARY)

        waiting = asyncio.ensure_future(lane.run(fail))
        await asyncio.sleep(0.05)
        waiting.cancel()
        go.set()
        await asyncio.wait({waiting})
        await lane.run(int)  # its turn comes when the thread is free
        lane.close()

    asyncio.run(leave())
    gc.collect()
    assert caplog.text == ""


def test_a_full_queue_answers_as_the_api_does(small_table, http):
    go = threading.Event()

    class Held(Privatizer):
        begun = threading.Event()

        def privatize_many(self, texts, *arguments, **options):
            self.begun.set()
            assert go.wait(20)
            return super().privatize_many(texts, *arguments, **options)

    with (
        serving_upstream() as upstream,
        pytest.MonkeyPatch.context() as patch,
        ThreadPoolExecutor(3) as pool,
    ):
        upstream.answer = lambda _: answer_of({"content": "x"})
        patch.setattr("textveil.gateway.serve.process.MEMORY_THREADS", 1)
        patch.setattr(Gateway, "load", lambda _: None)
        held = Held("placeholder", table=small_table)
        with serving(
            Gateway(privatizer=held, upstream=upstream.url, running=ServingOptions(queue=1))
        ) as url:
            asked = [pool.submit(ask, http, url)]
            assert held.begun.wait(20)
            asked.append(pool.submit(ask, http, url))
            until(lambda: samples(http, url).get('textveil_waiting{lane="short"}') == 1)
            full = ask(http, url)
            anthropic = http.post(
                f"{url}/v1/messages", json={"model": "m", "messages": ASKED, "max_tokens": 5}
            )
            named = KEY | {"X-Session-ID": "s"}  # an answer that is there already is not refused
            restored = http.post(
                f"{url}/v1/guard/rehydrate", json={"texts": ["an answer"]}, headers=named
            )
            go.set()
            assert [each.result(20).status_code for each in asked] == [200, 200]
    assert (full.status_code, full.json()["error"]["code"], full.headers["retry-after"]) == (
        503,
        "busy",
        "1",
    )
    assert (restored.status_code, restored.json()["texts"]) == (200, ["an answer"])
    assert anthropic.status_code == 503
    assert anthropic.json()["type"] == "error"
    assert len(upstream.bodies) == 2


@pytest.mark.posix
def test_long_texts_have_a_lane_of_their_own(small_table, http):
    """A long text that takes for ever keeps no short one waiting, and no long conversation of which all is known."""
    go = threading.Event()
    threads = {}

    class Held(Privatizer):
        def privatize_many(self, texts, *arguments, **options):
            texts = list(texts)
            threads[sum(map(len, texts))] = (
                threading.current_thread().name,
                os.getpriority(os.PRIO_PROCESS, threading.get_native_id()),
            )
            assert sum(map(len, texts)) < 500 or go.is_set() or go.wait(20)
            return super().privatize_many(texts, *arguments, **options)

    def user(text):
        return {"role": "user", "content": text}

    with (
        serving_upstream() as upstream,
        pytest.MonkeyPatch.context() as patch,
        ThreadPoolExecutor(3) as pool,
    ):
        upstream.answer = lambda _: answer_of({"content": "x"})
        patch.setattr("textveil.gateway.serve.process.MEMORY_THREADS", 1)
        patch.setattr(Gateway, "load", lambda _: None)
        held = Held("placeholder", table=small_table)
        with serving(
            Gateway(privatizer=held, upstream=upstream.url, running=ServingOptions(long=400))
        ) as url:
            go.set()
            known = [user("word " * 79), user("word " * 78)]
            for some in (known[:1], known):
                assert ask(http, url, messages=some).status_code == 200
            go.clear()
            long = pool.submit(ask, http, url, messages=[user("x" * 900)])
            until(lambda: 900 in threads)
            assert ask(http, url, messages=[user("short")]).status_code == 200
            assert ask(http, url, messages=[*known, user("and more")]).status_code == 200
            assert not long.done()
            go.set()
            assert long.result(20).status_code == 200
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    assert threads[900] == ("textveil-long_0", min(nice + 10, 19))
    assert threads[5] == ("textveil-short_0", nice)
