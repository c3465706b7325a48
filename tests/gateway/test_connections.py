"""Connections to the upstream: they are kept for a while, and what was sent into one that had ended is sent again."""

import json
import socket
import time
from collections.abc import Callable
from contextlib import contextmanager
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any

import httpx2
import pytest
from tests.gateway.servers import serving
from tests.gateway.test_gateway import environment as environment
from tests.gateway.test_gateway import user

from textveil import Privatizer
from textveil.gateway import Gateway, Policy
from textveil.gateway.answer import upstream
from textveil.session import SessionStore


class Closing(ThreadingTCPServer):
    """An upstream that answers as many requests of each connection as `answers` says, in order, and then `ends` it."""

    daemon_threads = True

    def __init__(self, answers: list[int], ends: "Callable[[_Connection], Any]") -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.answers, self.ends = answers, ends
        self.received: list[list[Any]] = []


class _Connection(StreamRequestHandler):
    server: Closing

    def handle(self) -> None:
        self.server.received.append(came := [])
        for _ in range(self.server.answers[len(self.server.received) - 1]):
            if (body := self.body()) is None:
                return
            came.append(body)
            said = {"role": "assistant", "content": "yes"}
            content = json.dumps(
                {
                    "id": "conv_1",
                    "object": "conversation",
                    "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
                }
            ).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
            self.wfile.write(head.encode() + content)
        self.server.ends(self)

    def body(self) -> Any:
        """A request; None where no more come."""
        if not self.rfile.readline():
            return None
        lines = list(iter(self.rfile.readline, b"\r\n"))
        sizes = [
            int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length")
        ]
        return json.loads(self.rfile.read(*sizes))


def reset(connection: _Connection) -> None:
    """End it when another request comes, which is not read: the other side is told that the connection was reset."""
    connection.request.recv(1, socket.MSG_PEEK)


def late(connection: _Connection) -> None:
    """The same, a while after."""
    connection.body()
    time.sleep(0.5)


def finished(connection: _Connection) -> None:
    """End it when another request has come, which is read."""
    connection.body()


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A machine that is busy with something else may need long for what is done at once."""
    monkeypatch.setattr(upstream, "CLOSED_SECONDS", 60)


@contextmanager
def closing(answers, ends=finished, **options):
    """The upstream, and what asks it through a gateway."""
    with Closing(answers, ends) as made, httpx2.Client(trust_env=False, timeout=60) as http:
        Thread(target=made.serve_forever, daemon=True).start()
        with serving(
            Gateway(upstream=f"http://127.0.0.1:{made.server_address[1]}/v1", **options)
        ) as url:
            try:

                def ask(text, path="chat/completions", **body):
                    return http.post(
                        f"{url}/{path}", json=body or {"model": "m", "messages": user(text)}
                    )

                yield made, ask
            finally:
                made.shutdown()


@pytest.mark.parametrize("ends", [reset, finished])
def test_what_was_sent_into_a_connection_that_ends_is_sent_again_and_charged_once(
    ends, small_table, tmp_path
):
    noisy = Privatizer("noise", table=small_table, epsilon=20)
    words = " ".join(small_table.words[:2])
    with (
        SessionStore(f"sqlite:///{tmp_path / 'veil.db'}") as store,
        closing([1, 1], ends, privatizer=noisy, store=store) as (made, ask),
    ):
        assert [ask(words).status_code, ask(f"{words} {words}").status_code] == [200, 200]
        assert [len(each) for each in made.received] == [1, 1]
        charged = sum(each.epsilon for each in store.ledger.accounts())
    once = [
        float(noisy.privatize(text).guarantee.epsilon_per_word.sum())
        for text in (words, f"{words} {words}")
    ]
    assert charged == pytest.approx(sum(once), rel=1e-6)


def test_it_is_sent_again_once(small_table):
    with closing([1, 0, 1], privatizer=Privatizer("placeholder", table=small_table)) as (made, ask):
        assert [ask("x").status_code for _ in range(2)] == [200, 502]
        assert [len(each) for each in made.received] == [1, 0]


def test_what_fails_on_a_new_connection_is_not_sent_again(small_table):
    with closing([0, 1], privatizer=Privatizer("placeholder", table=small_table)) as (made, ask):
        assert ask("x").status_code == 502
        assert len(made.received) == 1


def test_what_fails_later_is_not_sent_again(small_table, monkeypatch):
    """The upstream has worked on it."""
    monkeypatch.setattr(upstream, "CLOSED_SECONDS", 0.1)
    privatizer = Privatizer("placeholder", table=small_table)
    with closing([1, 1], late, privatizer=privatizer) as (made, ask):
        assert [ask("x").status_code for _ in range(2)] == [200, 502]
        assert len(made.received) == 1


def test_what_is_answered_by_no_response_is_not_sent_again(small_table):
    def nonsense(connection: _Connection) -> None:
        connection.body()
        connection.wfile.write(b"nonsense\r\n\r\n")

    with closing([1, 1], nonsense, privatizer=Privatizer("placeholder", table=small_table)) as (
        made,
        ask,
    ):
        assert [ask("x").status_code for _ in range(2)] == [200, 502]
        assert len(made.received) == 1


def test_what_adds_to_a_conversation_of_the_upstream_is_not_sent_again(small_table):
    with closing([1, 1], finished, privatizer=Privatizer("placeholder", table=small_table)) as (
        made,
        ask,
    ):
        assert ask("", "conversations", items=[]).status_code == 200
        assert ask("", "responses", model="m", input="x", conversation="conv_1").status_code == 502
        assert len(made.received) == 1


def test_an_upstream_that_times_out_is_not_asked_again(small_table):
    privatizer, policy = Privatizer("placeholder", table=small_table), Policy(timeout=0.2)
    with closing([1, 1], late, privatizer=privatizer, policy=policy) as (
        made,
        ask,
    ):
        assert [ask("x").status_code for _ in range(2)] == [200, 504]
        assert len(made.received) == 1


@pytest.mark.parametrize(("kept", "connections"), [(60, 1), (0.1, 2)])
def test_connections_are_kept_for_a_while(small_table, monkeypatch, kept, connections):
    monkeypatch.setattr(upstream, "KEEPALIVE_SECONDS", kept)
    with closing([2, 2], privatizer=Privatizer("placeholder", table=small_table)) as (made, ask):
        assert ask("x").status_code == 200
        time.sleep(0.3)
        assert ask("x").status_code == 200
        assert len(made.received) == connections
