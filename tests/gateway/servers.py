"""Servers of tests: upstreams that answer as a test says, and gateways, in a thread or as a process.

In: what is answered; a gateway, or what its command is given. Out: addresses, and what upstreams were asked.
Not here: the models of `tests.openai_server`, which behave in fixed ways; whether bytes show a secret (`written`).
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import httpcore2
from tests.gateway.written import shows

from textveil.gateway import Gateway, create_server, listen

# A client reads whom the machine trusts, which takes longer than a request to a server without TLS.
httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)


class Asked(NamedTuple):
    """A request: its method, its path with the query, its headers in lower case, and the bytes of its body."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        """What the body says; None where there is none."""
        return json.loads(self.raw) if self.raw else None

    @property
    def whole(self) -> bytes:
        """All of it."""
        head = [
            f"{self.method} {self.path}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        return "\n".join([*head, ""]).encode() + self.raw


Answer = Callable[[Asked], Any]
"""JSON; or bytes of a stream, piece by piece, each sent by itself. A status may go before it, and headers behind that.

Where the upstream is raw: the bytes of the whole response, its status line included; then the connection is closed.
"""


class Upstream(ThreadingHTTPServer):
    """An upstream.

    Args:
        answer: makes answers.
        raw: whether they are whole responses.

    Attributes:
        answer: may be set to another at any time.
        asked: what it was asked.
    """

    daemon_threads = True

    def __init__(self, answer: Answer, *, raw: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.raw = answer, raw
        self.asked: list[Asked] = []

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def bodies(self) -> list[Any]:
        """The bodies of what it was asked."""
        return [each.body for each in self.asked if each.raw]

    @property
    def seen(self) -> str:
        """All that it was asked, as one text."""
        return json.dumps([[each.path, each.body] for each in self.asked], ensure_ascii=False)

    def shows(self, secret: str) -> bool:
        """Whether a secret is in anything that reached it, in any of the ways to write it that `readings` knows."""
        return any(shows(each.whole, secret) for each in self.asked)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: the gateway may leave."""


class _Handler(BaseHTTPRequestHandler):
    server: Upstream
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, raw)
        self.server.asked.append(asked)
        answer = self.server.answer(asked)
        if self.server.raw:
            self.close_connection = True
            self._write(answer)
            return
        *before, answer = answer if isinstance(answer, tuple) else (answer,)
        status, more = (*before, {})[:2] if before else (200, {})
        whole = None if isinstance(answer, Iterator | list) else json.dumps(answer).encode()
        own = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
        if whole is not None:
            own = {"Content-Type": "application/json", "Content-Length": str(len(whole))}
        self.send_response(status)
        for name, value in {**own, **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self._write(
            [whole]
            if whole is not None
            else (b"%x\r\n%s\r\n" % (len(each), each) for each in answer if each)
        )
        if whole is None:
            self._write([b"0\r\n\r\n"])

    def _write(self, pieces: Any) -> None:
        with suppress(OSError):  # the gateway may leave
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()


@contextmanager
def serving_upstream(answer: Answer = lambda _: {}, *, raw: bool = False) -> Iterator[Upstream]:
    """An upstream that serves until the block ends."""
    with Upstream(answer, raw=raw) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield made
        finally:
            made.shutdown()
            thread.join(10)


# ---- answers ---------------------------------------------------------------------------------------------------------


def answer_of(message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    """A whole answer with one choice."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def stream_of(deltas: Sequence[dict[str, Any]], finish: str = "stop") -> list[bytes]:
    """A stream with one choice, as events with as little as servers send."""
    chunks = [{"choices": [{"delta": delta}]} for delta in deltas]
    end = {"choices": [{"delta": {}, "finish_reason": finish}]}
    return lines(*chunks, end, "[DONE]")


def lines(*said: Any) -> list[bytes]:
    """Events; what is a string is written as it is."""
    made = [
        each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in said
    ]
    return [f"data: {each}\n\n".encode() for each in made]


def response(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """A whole response."""
    named = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
    }
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([*head, "", ""]).encode() + body


def events(*said: Any, kind: str = "text/event-stream") -> list[bytes]:
    """A whole response with events, piece by piece."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n".encode()
    return [head, *lines(*said)]


# ---- gateways --------------------------------------------------------------------------------------------------------


@contextmanager
def serving(gateway: Gateway, path: str = "/v1", **more: Any) -> Iterator[str]:
    """The address of a server of this gateway, in a thread.

    Args:
        gateway: what it serves.
        path: the end of the address.
        more: see `textveil.gateway.create_server`.
    """
    made = create_server(gateway, **more)
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=made.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"{'https' if more.get('tls') else 'http'}://127.0.0.1:{listening.getsockname()[1]}{path}"
        finally:
            made.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


@contextmanager
def process(upstream: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command line's gateway as a process, which finds words and hides them, and its address without /v1."""
    command = [sys.executable, "-m", "textveil", "gateway", "--upstream", upstream, "--port", "0"]
    command += ["--mechanism", "placeholder", "--playground", "never", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        try:
            yield running, running.stderr.readline().split()[-1].removesuffix("/v1")
        finally:
            running.kill()


@contextmanager
def commanded(upstream: str, said: Path) -> Iterator[str]:
    """Where `textveil gateway` serves, a process of its own without options, policy or keys; without /v1.

    Args:
        upstream: its upstream.
        said: the file for all that it prints.
    """
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TEXTVEIL_", "OPENAI_"))
    }
    command = [sys.executable, "-m", "textveil", "gateway", "--upstream", upstream, "--port", "0"]
    with (
        said.open("wb") as stream,
        subprocess.Popen(command, stdout=stream, stderr=stream, env=environ) as running,
    ):
        try:
            end = time.monotonic() + 60
            while not (found := re.search(r"http://[0-9.]+:\d+", said.read_text(encoding="utf-8"))):
                assert running.poll() is None, "the command does not serve"
                assert time.monotonic() < end, "the command does not serve"
                time.sleep(0.1)
            yield found[0]
        finally:
            running.terminate()
            running.wait(20)


APIS_PAGE = Path(__file__).resolve().parents[2] / "docs" / "do" / "gateway-apis.md"


def run_example(heading: str, environ: dict[str, str]) -> str:
    """What the client prints that a section of the page on other APIs shows.

    Args:
        heading: the section.
        environ: the settings that its second line makes, with the address of a gateway.
    """
    section = APIS_PAGE.read_text(encoding="utf-8").partition(f"{heading}\n")[2]
    start, export, line = section.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert start.startswith("textveil gateway --upstream ")
    assert all(f"{name}=" in export for name in environ)
    code = line.removeprefix('python -c "').removesuffix('"')
    kept = {
        name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
