"""Ollama's own API: chats, completions, embeddings, and its models.

In: JSON of requests, answers and lines of streams. Out: their messages; restored lines.
Not here: the tables of their leaves (`leaf_tables`); what Ollama has of OpenAI's API (`chat`).

Streams are lines of JSON, and the default. The token ids in `context`, by which a completion goes
on with another, are text that nobody can read here: they may have been made without the gateway, so
they count as media, and answers lack them. Clients send whole conversations to /api/chat instead.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial

from textveil.gateway.errors import RequestError
from textveil.gateway.protocols.chat import find_messages
from textveil.gateway.protocols.field_rules import PASSED, Act, LeafRule, Path, record
from textveil.gateway.protocols.leaf_tables import load_rules
from textveil.gateway.protocols.operation import (
    Event,
    JsonObject,
    JsonPair,
    Operation,
    get_items,
)
from textveil.gateway.protocols.restoring import AnswerRestorer

RULES = load_rules("ollama")
TEXT_PATHS = (("message", "thinking"), ("message", "content"), ("thinking",), ("response",))
"""Paths of the texts that come in pieces; thinking comes first."""

LINE_FIELDS = ("model", "created_at")
"""Fields that all lines of an answer share."""


class LineFraming:
    """Framing of events as lines of JSON; see `Framing`."""

    media_types = ("application/x-ndjson", "application/json")
    # Where a model is only loaded, Ollama sends one line as JSON.

    def create_reader(self) -> Callable[[bytes], Iterator[Event]]:
        """Creates the reader of a stream; only a line feed ends a line."""
        begun = b""

        def read(piece: bytes) -> Iterator[Event]:
            nonlocal begun
            *lines, begun = (begun + (piece or b"\n")).split(b"\n")
            for line in filter(bytes.strip, lines):
                yield Event("", json.loads(line))

        return read

    def write(self, event: Event) -> bytes:
        """Writes an event as a line; in ASCII, as many clients take other ends of lines, too."""
        return json.dumps(event.data).encode() + b"\n"


def build_error(refused: RequestError) -> JsonObject:
    """Converts an error to Ollama's form."""
    return {"error": refused.full_message}


def find_prompts(body: JsonObject) -> Iterator[tuple[str, Path]]:
    """Yields the system prompt and the prompt of a completion."""
    roles = {"system": "system", "prompt": "user"}
    return ((role, (name,)) for name, role in roles.items() if body.get(name))


def list_answer_messages(answer: JsonObject) -> list[JsonObject]:
    """Returns the message of an answer, with and without its thinking.

    Many clients leave the thinking out.
    """
    message = answer.get("message")
    if not isinstance(message, dict):
        return []
    message = {"role": "assistant", **message}
    bare = {name: value for name, value in message.items() if name != "thinking"}
    return [message] if bare == message else [message, bare]


class AnswerLines:
    """Stream of the lines of an answer; see `Stream`.

    Args:
        rule: table of a line.
        restorer: restores its texts.
    """

    upstream_names = ()

    def __init__(self, rule: LeafRule, restorer: AnswerRestorer) -> None:
        self._rule, self._restorer = rule, restorer
        self._open: list[Path] = []  # texts of which something may be held back
        self._texts: list[Path] = []
        self._calls: tuple[list[JsonObject], list[JsonObject]] = [], []
        self._last: JsonObject = {}
        self.is_complete = False

    @property
    def messages(self) -> list[JsonPair]:
        """Messages of the answer, as received and as restored."""
        pair: list[list[JsonObject]] = []
        for side, calls in enumerate(self._calls):
            texts = {
                str(path[-1]): self._restorer.get_text_pair(path)[side]
                for path in self._texts
                if path[0] == "message"
            }
            called = {"tool_calls": calls} if calls else {}
            message = {"message": {**texts, **called}} if texts or called else {}
            pair.append(list_answer_messages(message))
        return list(zip(*pair, strict=True))

    def feed(self, event: Event) -> Iterator[Event]:
        """Restores a line; what is held back comes before the last one."""
        line = event.data
        if not isinstance(line, dict):
            return
        restored: JsonObject = self._restorer.restore_json(line, self._rule, self._restore_piece)
        self._last = {name: value for name, value in restored.items() if name in LINE_FIELDS}
        for calls, of in zip(self._calls, (line, restored), strict=True):
            message = of.get("message")
            calls += get_items(message, "tool_calls") if isinstance(message, dict) else []
        if line.get("done"):
            yield from self._flush(restored)
            self.is_complete = True
            restored |= self._restorer.counts  # such a stream has no comments
        yield Event("", restored)

    def close(self) -> Iterator[Event]:
        """Yields the held-back text of an answer that broke off."""
        return self._flush({})

    def build_error_event(self, refused: RequestError) -> Event:
        """Writes an error as the last line of the stream."""
        return Event("", build_error(refused))

    def _restore_piece(self, path: Path, piece: str, act: Act) -> str:
        if path not in TEXT_PATHS:
            return self._restorer.restore_text(piece, act)
        for paths in (self._open, self._texts):
            if path not in paths:
                paths.append(path)
        return self._restorer.restore_piece(path, piece, act)

    def _flush(self, last: JsonObject) -> Iterator[Event]:
        """Yields the held-back text, after what the last line has of it."""
        for path in sorted(self._open, key=TEXT_PATHS.index):
            around, name = path[:-1], str(path[-1])
            owner = (last.get("message") or {}) if around else last
            text = (owner.pop(name, None) or "") + self._restorer.close_text(path)
            if name in ("content", "response"):
                owner[name] = ""
            if text:
                said = {"role": "assistant", "content": "", name: text} if around else {}
                line = {"message": said} if around else {"response": "", name: text}
                yield Event("", {**self._last, **line, "done": False})
        self._open = []


# ---- the routes ----------------------------------------------------------------------------------


def _is_json_requested(body: JsonObject) -> bool:
    return bool(body.get("format"))


# Below the host: Ollama's base URL has no version.
_BUILD = partial(Operation, bases=("",), build_error=build_error, forwards={})
_BUILD_MODEL_ROUTE = partial(_BUILD, needs=("model",))
_BUILD_LISTING = partial(_BUILD, method="GET", has_body=False, request=record(), answer=PASSED)

CHAT = _BUILD_MODEL_ROUTE(
    name="ollama.chat",
    purpose="chat",
    holds_conversation=True,
    path="/api/chat",
    request=RULES["chat"],
    answer=RULES["answer_chat"],
    message=RULES["message"],
    find_messages=find_messages,
    list_answer_messages=list_answer_messages,
    stream=partial(AnswerLines, RULES["answer_chat"]),
    framing=LineFraming(),
    is_stream_default=True,
    is_json_requested=_is_json_requested,
)
GENERATE = _BUILD_MODEL_ROUTE(
    name="ollama.generate",
    purpose="text_completion",
    path="/api/generate",
    request=RULES["generate"],
    answer=RULES["answer_generate"],
    find_messages=find_prompts,
    stream=partial(AnswerLines, RULES["answer_generate"]),
    framing=LineFraming(),
    is_stream_default=True,
    is_json_requested=_is_json_requested,
)
EMBED = _BUILD_MODEL_ROUTE(
    name="ollama.embed",
    purpose="embeddings",
    path="/api/embed",
    request=RULES["embed"],
    answer=PASSED,
)
EMBEDDINGS = _BUILD_MODEL_ROUTE(
    name="ollama.embeddings",
    purpose="embeddings",
    path="/api/embeddings",
    request=RULES["embeddings"],
    answer=PASSED,
)
SHOW = _BUILD(name="ollama.show", path="/api/show", request=RULES["show"], answer=PASSED)
TAGS = _BUILD_LISTING(name="ollama.tags", path="/api/tags")
RUNNING = _BUILD_LISTING(name="ollama.ps", path="/api/ps")
VERSION = _BUILD_LISTING(name="ollama.version", path="/api/version")

ROUTES = (CHAT, GENERATE, EMBED, EMBEDDINGS, TAGS, SHOW, RUNNING, VERSION)
