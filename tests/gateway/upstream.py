"""An upstream in this process that answers as a test says, and keeps what it was asked.

In: `serving_upstream(answer)`. Out: an `Upstream`, with its base URL and what it was asked.
Not here: the server of scripted models (`tests.openai_server`).
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Answer = Callable[["Asked"], Any]
"""JSON; or bytes of a stream, piece by piece, each sent by itself; or a status and JSON."""


class Asked(NamedTuple):
    """A request: its method, its path with the query, its headers in lower case, and its JSON."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Upstream(ThreadingHTTPServer):
    """The server; `answer` may be set to another at any time."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[Asked] = []

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def seen(self) -> str:
        """All that it was asked, as one text."""
        return json.dumps([[each.path, each.body] for each in self.asked], ensure_ascii=False)


class _Handler(BaseHTTPRequestHandler):
    server: Upstream
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _serve(self) -> None:
        read = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, json.loads(read) if read else None)
        self.server.asked.append(asked)
        answer = self.server.answer(asked)
        status, answer = answer if isinstance(answer, tuple) else (200, answer)
        self.send_response(status)
        if isinstance(answer, dict):
            content = json.dumps(answer).encode()
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            return
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in answer:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()


@contextmanager
def serving_upstream(answer: Answer) -> Iterator[Upstream]:
    """An upstream that serves until the block ends."""
    with Upstream(answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(10)
