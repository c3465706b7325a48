"""An upstream that keeps every byte that reaches it, and answers with any bytes at all.

In: `capturing()`, and what it shall answer. Out: `Captured`: its address, what reached it, whether that shows a secret;
the command in front of it.
Not here: upstreams that answer with JSON and have read it (`upstream`, `scripted`).
"""

import base64
import binascii
import html
import json
import os
import re
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote


class Taken(NamedTuple):
    """A request as it came: its line and headers, and its body."""

    head: str
    body: bytes

    @property
    def json(self) -> Any:
        """What the body says."""
        return json.loads(self.body)


Answer = Callable[[Taken], Iterable[bytes]]
"""Bytes of the whole response, its status line included, each written by itself; then the connection is closed."""


class Captured(ThreadingHTTPServer):
    """The upstream.

    Attributes:
        taken: what reached it.
        answer: makes answers; may be set to another at any time.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.taken: list[Taken] = []
        self.answer: Answer = lambda taken: [response(b"{}")]

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def shows(self, secret: str) -> bool:
        """Whether a secret is in anything that reached it, in any of the ways to write it that `readings` knows."""
        return any(shows(taken.head.encode() + taken.body, secret) for taken in self.taken)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: the gateway may leave."""


class _Handler(BaseHTTPRequestHandler):
    server: Captured

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        taken = Taken(f"{self.requestline}\n{self.headers}", body)
        self.server.taken.append(taken)
        with suppress(OSError):
            for piece in self.server.answer(taken):
                self.wfile.write(piece)
                self.wfile.flush()
        self.close_connection = True

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()


@contextmanager
def capturing() -> Iterator[Captured]:
    """An upstream that serves until the block ends."""
    with Captured() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()


@contextmanager
def commanded(upstream: str, said: Path) -> Iterator[str]:
    """Where `textveil gateway` serves, a process of its own without options, policy or keys; without /v1.

    Args:
        upstream: its upstream.
        said: the file for all that it prints.
    """
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("TEXTVEIL_", "OPENAI_"))}
    command = [sys.executable, "-m", "textveil", "gateway", "--upstream", upstream, "--port", "0"]
    with said.open("wb") as stream, subprocess.Popen(command, stdout=stream, stderr=stream, env=environ) as process:
        try:
            end = time.monotonic() + 60
            while not (found := re.search(r"http://[0-9.]+:\d+", said.read_text(encoding="utf-8"))):
                assert process.poll() is None, "the command does not serve"
                assert time.monotonic() < end, "the command does not serve"
                time.sleep(0.1)
            yield found[0]
        finally:
            process.terminate()
            process.wait(20)


def response(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """A whole response."""
    named = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def events(*said: Any, kind: str = "text/event-stream") -> list[bytes]:
    """A response with events, piece by piece; what is a string is written as it is."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n".encode()
    return [head, *(f"data: {each if isinstance(each, str) else json.dumps(each)}\n\n".encode() for each in said)]


# ---- secrets in any writing ------------------------------------------------------------------------------------------

_RUN = re.compile(r"[A-Za-z0-9+/_\-]{8,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){6,}")
_ESCAPED = re.compile(r"\\+u([0-9a-fA-F]{4})")


def shows(raw: bytes, secret: str) -> bool:
    """Whether bytes show a secret: its letters and figures in their order, in any of the readings of the bytes."""
    sought = _bare(secret)
    return any(sought in _bare(reading) for reading in readings(raw.decode("utf-8", "replace")))


def readings(text: str) -> set[str]:
    """A text, and what it says where it is escaped or encoded, one time or two."""
    found = {text}
    for _ in range(2):
        found |= {made for each in found for made in _decoded(each)}
    return found


def _decoded(text: str) -> Iterator[str]:
    yield unquote(text)
    yield html.unescape(text)
    yield _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    for run in _RUN.findall(text):
        with suppress(binascii.Error, UnicodeDecodeError):
            plain = run.rstrip("=").replace("-", "+").replace("_", "/")
            yield base64.b64decode(plain + "=" * (-len(plain) % 4)).decode()
    for run in _HEX.findall(text):
        with suppress(UnicodeDecodeError):
            yield bytes.fromhex(run).decode()


def _bare(text: str) -> str:
    """Letters and figures as Unicode folds them, without what stands between them."""
    return "".join(char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum())
