"""A small server that speaks the chat completions of OpenAI, and does what the model's name says.

In: `python -m tests.openai_server` prints a port of 127.0.0.1 and serves until its standard input ends.
Out: scripted answers; GET /journal lists the requests so far. Errors repeat the prompt and the key, as some servers do.
Not here: the process that runs it (the fixture `openai_server` of conftest) and what its answers must become.
"""

import json
import re
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODELS = {
    "echo": "answers with the last message",
    "upper": "the same in capitals",
    "drops": "the last message without its placeholders",
    "drops-once": "the same the first time that it sees a message, then echoes",
    "adds": "the last message, and a placeholder that is not in it",
    "draft": "what stands behind DRAFT in the last message, with its full stops as exclamation marks",
    "slow": "echoes after as many seconds as the last message's first word says",
    "together": "echoes once four requests are there at the same time; 500 where they do not come",
    "fail-500": "500, always",
    "fail-once": "500 the first time that it sees a message, then echoes",
    "rate-limit-once": "429 with Retry-After: 1 the first time, then echoes",
    "rate-limit": "429, always",
    "hang-up-once": "closes the connection the first time, then echoes",
    "bad-request": "400",
    "unauthorized": "401",
    "forbidden": "403",
    "missing": "404",
    "redirect": "307 to /elsewhere/chat/completions, which would echo",
    "empty": "a completion whose text is empty",
    "null": "a completion whose text is null",
    "no-choices": "a completion without choices",
    "odd": "JSON whose choices are of another type",
    "number": "a completion whose text is a number",
    "list": "JSON that is no object",
    "garbage": "a page, not JSON",
    "cut": "JSON that breaks off, under the type of JSON",
    "latin": "bytes that are not UTF-8, under the type of JSON",
}
STATUS = {"fail-500": 500, "rate-limit": 429, "bad-request": 400, "unauthorized": 401, "forbidden": 403, "missing": 404}
FIRST = {"fail-once": 500, "rate-limit-once": 429, "hang-up-once": None}
REWRITES: dict[str, Callable[[str, bool], str]] = {
    "drops": lambda message, seen: re.sub(r"<[A-Z_]+(_\d+)?>", "", message),
    "drops-once": lambda message, seen: message if seen else re.sub(r"<[A-Z_]+(_\d+)?>", "", message),
    "adds": lambda message, seen: message + " <PERSON_99>",
    "draft": lambda message, seen: message.partition("DRAFT:\n")[2].replace(".", "!"),
}


class Server(ThreadingHTTPServer):
    """Remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.journal: list[dict[str, Any]] = []
        self.under_way = 0
        self.together = threading.Barrier(4)


class Handler(BaseHTTPRequestHandler):
    """One request after the other of one connection."""

    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/journal":
            with self.server.lock:
                self.reply(200, self.server.journal)
        elif self.path == "/v1/models":
            self.reply(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]})
        else:
            self.complain(404, "")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model, message = body["model"], body["messages"][-1]["content"]
        with self.server.lock:
            seen = any(entry["body"] == body for entry in self.server.journal)
            self.server.under_way += 1
            self.server.journal.append(
                {
                    "path": self.path,
                    "headers": {name.lower(): value for name, value in self.headers.items()},
                    "body": body,
                    "under_way": self.server.under_way,
                }
            )
        try:
            if self.path.endswith("/chat/completions"):
                self.behave(model, message, seen)
            else:
                self.complain(404, message)
        finally:
            with self.server.lock:
                self.server.under_way -= 1

    def behave(self, model: str, message: str, seen: bool) -> None:
        if model == "slow":
            time.sleep(float(message.split()[0]))
        if model == "together":
            try:
                self.server.together.wait(timeout=5)
            except threading.BrokenBarrierError:
                return self.complain(500, message)
        if model in REWRITES:
            message = REWRITES[model](message, seen)
        if model in FIRST and not seen:
            status = FIRST[model]
            if status is None:
                self.close_connection = True
                return None
            return self.complain(status, message, **({"Retry-After": "1"} if status == 429 else {}))
        if model in STATUS or model not in MODELS:
            return self.complain(STATUS.get(model, 404), message)
        match model:
            case "redirect" if not self.path.startswith("/elsewhere"):
                return self.complain(307, message, Location="/elsewhere/chat/completions")
            case "no-choices":
                return self.reply(200, {**completion(message), "choices": []})
            case "odd":
                return self.reply(200, {**completion(message), "choices": {"text": message}})
            case "list":
                return self.reply(200, [message])
            case "garbage":
                return self.send(200, f"<html>{message}</html>".encode(), "text/html")
            case "cut":
                return self.send(200, json.dumps(completion(message)).encode()[:-1])
            case "latin":
                return self.send(200, json.dumps(completion(message)).encode()[:-2] + b'\xff"}')
        texts: dict[str, object] = {"upper": message.upper(), "empty": "", "null": None, "number": 7}
        return self.reply(200, completion(texts.get(model, message)))

    def complain(self, status: int, message: str, **headers: str) -> None:
        said = f"cannot do {message!r} for {self.headers['Authorization']}"
        self.reply(status, {"error": {"message": said, "type": said, "code": said}}, **headers)

    def reply(self, status: int, content: object, **headers: str) -> None:
        self.send(status, json.dumps(content).encode(), **headers)

    def send(self, status: int, content: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def completion(text: object) -> dict[str, object]:
    """An answer of one choice, with the fields that OpenAI's reference names."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def main() -> None:
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_port, flush=True)
        sys.stdin.read()  # ends with whoever started it, however that one ends
        server.shutdown()


if __name__ == "__main__":
    main()
