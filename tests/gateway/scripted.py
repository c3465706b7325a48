"""An upstream that answers what a test says, in a thread.

In: `script`, which makes the answer to a request. Out: `bodies`, the requests so far.
Not here: the models of `tests.openai_server`, which behave in fixed ways.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Script = Callable[[dict[str, Any]], Any]
"""Makes JSON, or the pieces of a stream as they are written; a status and headers go before JSON in a tuple."""


class Upstream:
    """What was asked, and what is answered.

    Attributes:
        url: the base URL.
        script: makes answers.
        bodies: requests, as they came.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.script: Script = lambda body: {}
        self.bodies: list[dict[str, Any]] = []


@contextmanager
def scripted() -> Iterator[Upstream]:
    """A server of this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            upstream.bodies.append(body)
            said = upstream.script(body)
            status, headers = 200, {}
            if isinstance(said, tuple):
                status, headers, said = said
            if isinstance(said, list):
                self._stream(said)
                return
            content = json.dumps(said).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": len(content), **headers}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(content)

        def _stream(self, pieces: Sequence[bytes]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()
            self.close_connection = True

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        upstream = Upstream(f"http://127.0.0.1:{server.server_port}/v1")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield upstream
        finally:
            server.shutdown()


def answer_of(message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    """A whole answer with one choice."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def stream_of(deltas: Sequence[dict[str, Any]], finish: str = "stop") -> list[bytes]:
    """A stream with one choice, as events with as little as servers send."""
    chunks = [{"choices": [{"delta": delta}]} for delta in deltas]
    end = {"choices": [{"delta": {}, "finish_reason": finish}]}
    lines = [json.dumps(chunk, ensure_ascii=False) for chunk in [*chunks, end]] + ["[DONE]"]
    return [f"data: {line}\n\n".encode() for line in lines]
