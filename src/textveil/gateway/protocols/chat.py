"""OpenAI chat completions, as OpenAI, vLLM, llama.cpp and similar servers speak them.

In: JSON of requests, answers and chunks. Out: their messages; restored chunks.
Not here: the tables of their leaves (`leaf_tables`); other routes of OpenAI (`completions`,
`responses`).
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from textveil.gateway.errors import RequestError
from textveil.gateway.protocols.field_rules import Act, Path
from textveil.gateway.protocols.leaf_tables import load_rules
from textveil.gateway.protocols.openai import build_error
from textveil.gateway.protocols.operation import (
    Event,
    JsonObject,
    JsonPair,
    Operation,
    get_items,
    list_messages,
)
from textveil.gateway.protocols.restoring import AnswerRestorer

RULES = load_rules("chat")
CHAT_REQUEST, MESSAGE, TOOL, TOOL_CALL = map(
    RULES.__getitem__, ("request", "message", "tool", "tool_call")
)
CHAT_ANSWER, CHOICE, ANSWER_MESSAGE = map(
    RULES.__getitem__, ("answer", "answer_choice", "answer_message")
)
"""Leaves of an answer and of a chunk, of a choice, and of its message or delta."""
EXTRA = RULES["extra"]
CACHE_BREAKPOINT = {
    "prompt_cache_breakpoint": RULES["cache_breakpoint"],
    "cache_control": RULES["cache_control"],
}


def find_messages(body: JsonObject) -> Iterator[tuple[str, Path]]:
    """Yields the roles and places of a conversation's messages."""
    return list_messages(body, "messages", "assistant")


def list_answer_messages(answer: JsonObject) -> list[JsonObject]:
    """Lists the messages of all choices, with and without reasoning.

    Many clients leave the reasoning out.
    """
    choices = (item for item in get_items(answer, "choices") if isinstance(item, dict))
    contents = [item.get("message") for item in choices]
    answer_messages = [
        {"role": "assistant", **message} for message in contents if isinstance(message, dict)
    ]
    return _add_without_reasoning(answer_messages)


REASONING_FIELDS = (
    "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks",
    "provider_specific_fields"
)  # fmt: skip
"""Fields of a message with the model's reasoning."""


def _add_without_reasoning(messages: list[JsonObject]) -> list[JsonObject]:
    reasoning = set(REASONING_FIELDS)
    thought = [message for message in messages if message.keys() & reasoning]
    return messages + [
        {k: v for k, v in message.items() if k not in reasoning} for message in thought
    ]


NUMBERED_LISTS = ("tool_calls", "reasoning_details", "thinking_blocks")
"""Lists of a message that come in pieces, numbered by an index."""


class ChatChunks:
    """Stream of the chunks of an answer; see `Stream`."""

    upstream_names = ()

    def __init__(self, restorer: AnswerRestorer) -> None:
        self._restorer = restorer
        # By choice: texts, each with its last delta and path; other strings of numbered items.
        self._texts: dict[int, dict[Path, tuple[JsonObject, Path]]] = {}
        self._items: dict[int, dict[Path, JsonObject]] = {}
        self._ids: dict[int, list[str]] = {}  # by choice: ids of tool calls without an index
        self._tools: dict[tuple[int, Any], str] = {}  # names of called tools, by choice and number
        self._open: set[int] = set()
        self._last: JsonObject = {}
        self._done = False

    @property
    def is_complete(self) -> bool:
        """True once the whole answer has come."""
        # Some upstreams leave [DONE] out: then it is enough that all choices have ended.
        return self._done or (bool(self._texts) and not self._open)

    @property
    def messages(self) -> list[JsonPair]:
        """Messages of the answer, as received and as restored."""
        received, restored = list[JsonObject](), list[JsonObject]()
        for index, places in self._texts.items():
            for messages, side in ((received, 0), (restored, 1)):
                messages.append({"role": "assistant"})
                for place, strings in self._items[index].items():
                    _find_owner(messages[-1], (*place, "")).update(strings)
                for place in places:
                    content = self._restorer.get_text_pair((index, place))[side]
                    _find_owner(messages[-1], place)[str(place[-1])] = content
        return list(
            zip(_add_without_reasoning(received), _add_without_reasoning(restored), strict=True)
        )

    def feed(self, event: Event) -> Iterator[Event]:
        """Restores a chunk, with the held-back text where a choice ends."""
        if event.data == "[DONE]":
            self._done = True
            return
        chunk = self._restorer.restore_json({**event.data, "choices": None}, CHAT_ANSWER)
        self._last = {name: value for name, value in chunk.items() if name in CHUNK_FIELDS}
        chunk["choices"] = []
        for i, answer_choice in enumerate(get_items(event.data, "choices")):
            index = answer_choice.get("index", i)
            restored = self._restore_choice(index, answer_choice)
            if answer_choice.get("finish_reason") is not None:
                # Held-back text must come before the chunk that ends its choice.
                if restored["delta"]:
                    yield self._build_chunk(index, restored["delta"])
                yield from self._flush(index)
                self._open.discard(index)
                restored["delta"] = {}
            chunk["choices"].append(restored)
        yield Event(event.name, chunk)

    def _restore_choice(self, index: int, choice: JsonObject) -> JsonObject:
        """Restores the certain part of a chunk's choice."""
        if index not in self._texts:
            self._texts[index], self._items[index], self._ids[index] = {}, {}, []
            self._open.add(index)
        delta = choice.get("delta") or {}
        restored: JsonObject = self._restorer.restore_json({**choice, "delta": None}, CHOICE)
        restored["delta"] = self._restorer.restore_json(
            delta, ANSWER_MESSAGE, partial(self._restore_piece, index, delta)
        )
        self._note(index, delta)
        if delta.get("annotations"):
            restored["delta"]["annotations"] = self._restore_annotations(
                index, delta["annotations"]
            )
        return restored

    def close(self) -> Iterator[Event]:
        """Yields the held-back text of open choices, and the last event."""
        for index in sorted(self._open):
            yield from self._flush(index)
        if self.is_complete:
            yield Event("", "[DONE]")

    def build_error_event(self, refused: RequestError) -> Event:
        """Writes an error as the last event of the stream."""
        return Event("", build_error(refused))

    def _restore_annotations(self, index: int, annotations: Any) -> Any:
        """Restores annotations, whose offsets count characters of the text so far."""
        place = ("content",)
        content = (
            self._restorer.get_text_pair((index, place))[0] if place in self._texts[index] else ""
        )
        return self._restorer.restore_json(
            {"content": content, "annotations": annotations}, ANSWER_MESSAGE
        )["annotations"]

    def _restore_piece(
        self, index: int, delta: JsonObject, path: Path, piece: str, act: Act
    ) -> str:
        if path[0] == "annotations":
            return piece  # annotations are restored as a whole
        place = self._find_path(index, delta, path)
        self._texts[index][place] = delta, path
        called = delta[path[0]][path[1]].get("function") if path[0] == "tool_calls" else None
        if isinstance(called, dict) and called.get("name"):
            self._tools[index, place[1]] = str(called["name"])
        tool = self._tools.get((index, place[1]), "") if called else ""
        return self._restorer.restore_piece((index, place), piece, act, tool)

    def _find_path(self, index: int, delta: JsonObject, path: Path) -> Path:
        """Returns the path of a chunk's text in the whole message."""
        if path[0] not in NUMBERED_LISTS:
            return path
        item = delta[path[0]][path[1]]
        number, id_ = item.get("index"), item.get("id")
        # Without an index, ids tell calls apart; a piece without an id goes on with the last.
        if number is None and path[0] == "tool_calls":
            ids = self._ids[index]
            if id_ and id_ not in ids:
                ids.append(id_)
            number = ids.index(id_) if id_ else max(len(ids) - 1, path[1])
        return path[0], path[1] if number is None else number, *path[2:]

    def _note(self, index: int, delta: JsonObject) -> None:
        """Stores the strings of a chunk's numbered items."""
        for name in NUMBERED_LISTS:
            for i, item in enumerate(get_items(delta, name)):
                place = self._find_path(index, delta, (name, i))
                strings = self._items[index].setdefault(place, {"index": place[1]})
                fields_of_item = item.items()
                strings |= {
                    name: value
                    for name, value in fields_of_item
                    if isinstance(value, str) and value
                }

    def _flush(self, index: int) -> Iterator[Event]:
        """Yields the held-back text of a choice."""
        for place, (delta, path) in self._texts[index].items():
            if tail := self._restorer.close_text((index, place)):
                yield self._build_chunk(index, build_delta(delta, path, tail))

    def _build_chunk(self, index: int, delta: JsonObject) -> Event:
        choice = {"index": index, "delta": delta, "finish_reason": None}
        return Event("", {**self._last, "choices": [choice]})


CHUNK_FIELDS = ("id", "object", "created", "model", "system_fingerprint", "service_tier")
"""Fields that all chunks of an answer share."""


def build_delta(value: Any, path: Path, text: str) -> Any:
    """Builds a delta with one text only."""
    if not path:
        return text
    inner = build_delta(value[path[0]], path[1:], text)
    if isinstance(value, list):
        return [inner]
    return {**{name: value[name] for name in ("index", "type") if name in value}, path[0]: inner}


def _find_owner(message: JsonObject, place: Path) -> JsonObject:
    """Returns the object of a message around a text; creates missing ones."""
    if place[0] in NUMBERED_LISTS:
        items = message.setdefault(str(place[0]), [])
        item = next((entry for entry in items if entry["index"] == place[1]), None)
        if item is None:
            item = {"index": place[1]}
            items.append(item)
        message, place = item, place[2:]
    for step in place[:-1]:
        message = message.setdefault(str(step), {})
    return message


def _is_json_requested(body: JsonObject) -> bool:
    response_format = body.get("response_format")
    return isinstance(response_format, dict) and response_format.get("type") in (
        "json_object",
        "json_schema",
    )


CHAT = Operation(
    name="openai.chat",
    purpose="chat",
    holds_conversation=True,
    path="/chat/completions",
    request=CHAT_REQUEST,
    answer=CHAT_ANSWER,
    needs=("model", "messages"),
    message=MESSAGE,
    find_messages=find_messages,
    list_answer_messages=list_answer_messages,
    stream=ChatChunks,
    is_json_requested=_is_json_requested,
    build_error=build_error,
)
