"""A small server that speaks the chat completions of OpenAI, in one piece or as a stream, as the model's name says.

In: `python -m tests.openai_server` prints a port of 127.0.0.1 and serves until its standard input ends.
Out: scripted answers; GET /journal lists the requests so far. Errors repeat the prompt and the key, as some servers do.
Not here: the process that runs it (the fixture `openai_server` of conftest) and what its answers must become.
"""

import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODELS = {
    "echo": "answers with the last message",
    "upper": "the same in capitals",
    "drops": "the last message without its placeholders",
    "drops-once": "the same the first time that it sees a message, then echoes",
    "adds": "the last message, and a placeholder that is not in it",
    "draft": "what stands behind DRAFT in the last message, with its full stops as exclamation marks",
    "last-word": "the last word of the last message",
    "slow": "echoes after as many seconds as the last message's first word says, or one",
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
    "talkative": "echoes in all fields that OpenAI's reference names and in some that it does not, with a cookie",
    "halves": "echoes; a stream comes in two pieces, cut in the middle",
    "characters": "echoes; a stream comes character by character",
    "bytes": "echoes; a stream comes character by character, and each byte of it in a chunk of its own",
    "no-done": "echoes; a stream ends without [DONE]",
    "no-finish": "echoes; a stream has no finish_reason and ends with [DONE]",
    "stops": "echoes; a stream ends without finish_reason and [DONE], as if it were whole",
    "breaks-off": "echoes; a stream breaks off in the middle",
    "reports": "echoes; a stream has an event with an error in the middle",
    "silent": "echoes; a stream is silent for two seconds in the middle",
    "not-json": "echoes; a stream has an event in the middle that is no JSON",
    "endless": "echoes; a stream echoes again and again until the client leaves",
    "plain": "echoes; a stream is none, but the answer in one piece",
}
PIECES: dict[str, Callable[[str], list[str]]] = {
    "halves": lambda text: [text[: len(text) // 2], text[len(text) // 2 :]],
    "characters": list,
    "bytes": list,
}
"""How a text is cut for a stream; else into words."""
STATUS = {
    "fail-500": 500,
    "rate-limit": 429,
    "bad-request": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "missing": 404,
}
FIRST = {"fail-once": 500, "rate-limit-once": 429, "hang-up-once": None}
REWRITES: dict[str, Callable[[str, bool], str]] = {
    "drops": lambda message, seen: re.sub(r"<[A-Z_]+(_\d+)?>", "", message),
    "drops-once": lambda message, seen: (
        message if seen else re.sub(r"<[A-Z_]+(_\d+)?>", "", message)
    ),
    "adds": lambda message, seen: message + " <PERSON_99>",
    "last-word": lambda message, seen: message.split()[-1],
    "draft": lambda message, seen: message.partition("DRAFT:\n")[2].replace(".", "!"),
}


class Server(ThreadingHTTPServer):
    """Remembers what it was asked."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.journal: list[dict[str, Any]] = []
        self.under_way = Counter[
            str
        ]()  # by message: what a client gave up on is still under way here
        self.associations = threading.Barrier(4)


class Handler(BaseHTTPRequestHandler):
    """One request after the other of one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/journal":
            with self.server.lock:
                self.reply(200, self.server.journal)
        elif self.path == "/v1/models":
            self.reply(
                200,
                {"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]},
            )
        else:
            self.complain(404, "")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model, content = body["model"], body["messages"][-1]["content"]
        message = content if isinstance(content, str) else "".join(part["text"] for part in content)
        with self.server.lock:
            seen = any(entry["body"] == body for entry in self.server.journal)
            self.server.under_way[message] += 1
            entry = {
                "path": self.path,
                "headers": {name.lower(): value for name, value in self.headers.items()},
                "body": body,
                "under_way": self.server.under_way[message],
                "left": False,
            }
            self.server.journal.append(entry)
        try:
            if self.path.endswith("/chat/completions"):
                self.behave(model, message, seen, body)
            else:
                self.complain(404, message)
        except (BrokenPipeError, ConnectionResetError):
            entry["left"] = True
            self.close_connection = True
        finally:
            with self.server.lock:
                self.server.under_way[message] -= 1

    def behave(self, model: str, message: str, seen: bool, body: dict[str, Any]) -> None:
        if model == "slow":
            first = message.split()[0]
            time.sleep(float(first) if re.fullmatch(r"[\d.]+", first) else 1)
        if model == "together":
            try:
                self.server.associations.wait(timeout=5)
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
        texts: dict[str, object] = {
            "upper": message.upper(),
            "empty": "",
            "null": None,
            "number": 7,
        }
        text = texts.get(model, message)
        if body.get("stream") and model != "plain":
            return self.stream(model, text, body)
        answer = completion(text, body.get("n") or 1)
        if model == "talkative":
            return self.reply(
                200,
                {**talkative(answer, message)},
                **{"Set-Cookie": "visited=yes", "X-Said": "yes"},
            )
        return self.reply(200, answer)

    def stream(self, model: str, text: object, body: dict[str, Any]) -> None:
        """Answers with server-sent events, in chunks of HTTP."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events(model, text, body):
            if event is None:
                self.close_connection = True  # in the middle of the chunks
                return
            for piece in [bytes([byte]) for byte in event] if model == "bytes" else [event]:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def complain(self, status: int, message: str, **headers: str) -> None:
        said = f"cannot do {message!r} for {self.headers['Authorization']}"
        self.reply(status, {"error": {"message": said, "type": said, "code": said}}, **headers)

    def reply(self, status: int, content: object, **headers: str) -> None:
        self.send(status, json.dumps(content).encode(), **headers)

    def send(
        self, status: int, content: bytes, kind: str = "application/json", **headers: str
    ) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def completion(text: object, n: int = 1) -> dict[str, Any]:
    """An answer of n equal choices, with the fields that OpenAI's reference names."""
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": i, "message": message, "finish_reason": "stop"} for i in range(n)],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def talkative(answer: dict[str, Any], message: str) -> dict[str, Any]:
    """The same with the message wherever a field could hold it."""
    for choice in answer["choices"]:
        choice["logprobs"] = {
            "content": [{"token": message, "logprob": -1.0, "bytes": None, "top_logprobs": []}]
        }
        choice["said"] = message
        said = choice["message" if "message" in choice else "delta"]
        said |= {
            "refusal": said["content"],
            "reasoning_content": message,
            "annotations": [{"said": message}],
        }
    return {**answer, "said": message, "service_tier": message}


def events(model: str, text: object, body: dict[str, Any]) -> Iterator[bytes | None]:
    """A stream event by event; None where it breaks off."""
    head = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
    }
    n = body.get("n") or 1
    usage = bool((body.get("stream_options") or {}).get("include_usage"))

    def event(deltas: list[dict[str, object]], finish: str | None = None) -> bytes:
        choices = [
            {"index": i, "delta": delta, "finish_reason": finish} for i, delta in enumerate(deltas)
        ]
        chunk: dict[str, Any] = {**head, "choices": choices, **({"usage": None} if usage else {})}
        if model == "talkative" and finish is None:
            chunk = talkative(chunk, str(text))
        return data(json.dumps(chunk, ensure_ascii=False))

    yield b": a comment\n\n"
    yield event([{"role": "assistant", "content": ""} for _ in range(n)])
    pieces: list[Any] = [text]
    if isinstance(text, str) and text:
        pieces = PIECES.get(model, lambda whole: re.findall(r"\s*\S+\s*", whole))(text)
    middle = len(pieces) // 2
    for i, piece in enumerate(pieces):
        if i == middle and model == "breaks-off":
            yield None
        if i == middle and model == "reports":
            yield data(
                json.dumps(
                    {
                        "error": {
                            "message": f"cannot go on with {text!r}",
                            "type": "x",
                            "code": str(text),
                        }
                    }
                )
            )
        if i == middle and model == "silent":
            time.sleep(2)
        if i == middle and model == "not-json":
            yield data(f"not JSON: {text}")
        yield event([{"content": piece} for _ in range(n)])
    while model == "endless":
        time.sleep(0.01)
        yield event([{"content": f" {text}"}] * n)
    if model in ("no-finish", "stops"):
        if model == "no-finish":
            yield data("[DONE]")
        return
    yield event([{}] * n, "stop")
    if usage:
        yield data(json.dumps({**head, "choices": [], "usage": completion("")["usage"]}))
    if model != "no-done":
        yield data("[DONE]")


def data(line: str) -> bytes:
    """One event."""
    return f"data: {line}\n\n".encode()


def main() -> None:
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_port, flush=True)
        sys.stdin.read()  # ends with whoever started it, however that one ends
        server.shutdown()


if __name__ == "__main__":
    main()
