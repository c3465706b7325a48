"""Anthropic messages, and the count of their tokens.

In: JSON of requests, answers and events. Out: their messages; restored events.
Not here: the tables of their leaves (`leaf_tables`), recognizing signed text (`session.conversations`).

Thinking is signed: the upstream takes it back only byte for byte. The client sees it restored, and
the thinking that the client sends back is replaced by the text as received. Unknown thinking cannot
be protected without breaking its signature, so its block is left out.
"""

import json
from collections.abc import Iterator
from typing import Any

from textveil.gateway.errors import RequestError
from textveil.gateway.protocols.field_rules import Act, Path, replace_leaves
from textveil.gateway.protocols.leaf_tables import load_rules
from textveil.gateway.protocols.operation import (
    ANTHROPIC_HEADERS,
    Event,
    JsonObject,
    JsonPair,
    Operation,
    list_messages,
)
from textveil.gateway.protocols.restoring import AnswerRestorer

RULES = load_rules("messages")
MESSAGES_REQUEST, COUNT_REQUEST, MESSAGE = map(RULES.__getitem__, ("request", "count", "message"))
MESSAGES_ANSWER, BLOCK, EVENT, DELTA = map(
    RULES.__getitem__, ("answer", "answer_block", "answer_event", "answer_delta")
)
"""Leaves of an answer, of a block of one, of an event, and of what is added to a block."""

ATTRIBUTION = "x-anthropic-billing-header:"
"""Prefix of the system block in which a client names itself.

It changes with every request: if it were a message, all messages after it would be new, too.
"""


def find_messages(body: JsonObject) -> Iterator[tuple[str, Path]]:
    """Yields the parts of the system prompt, and the messages."""
    system = body.get("system")
    if isinstance(system, list):
        for i, block in enumerate(system):
            if not (isinstance(block, dict) and str(block.get("text")).startswith(ATTRIBUTION)):
                yield "system", ("system", i)
    elif system:
        yield "system", ("system",)
    yield from list_messages(body, "messages")


def list_answer_messages(answer: JsonObject) -> list[JsonObject]:
    """Returns the message of an answer."""
    content = answer.get("content")
    return [{"role": "assistant", "content": content}] if isinstance(content, list) else []


def _find_objects(kind: str, value: Any, path: Path = ()) -> Iterator[tuple[Path, JsonObject]]:
    """Yields the objects of a type in a body.

    What a tool gets as its input is left out.
    """
    if isinstance(value, dict):
        if value.get("type") == kind:
            yield path, value
        for name, item in value.items():
            if name != "input":
                yield from _find_objects(kind, item, (*path, name))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _find_objects(kind, item, (*path, i))


def _list_documents(request: JsonObject) -> list[str]:
    """Lists the documents of a request; "" for those without text."""
    sources = (
        document.get("source") for _, document in _find_objects("document", request.get("messages"))
    )
    return [_get_document_text(source) for source in sources]


def _get_document_text(source: Any) -> str:
    plain = isinstance(source, dict) and source.get("type") == "text"
    text = source.get("data") if plain else ""
    return text if isinstance(text, str) else ""


def correct_offsets(changed: JsonPair, request_pair: JsonPair) -> JsonObject:
    """Corrects the character offsets of citations, since documents changed.

    See `Operation`.
    """
    old, new = ([*_find_objects("char_location", version)] for version in changed)
    before, after = map(_list_documents, request_pair) if old else ([], [])
    if len(old) != len(new) or len(before) != len(after):
        return changed[1]
    places: dict[Path, Any] = {}
    for (_, received), (path, restored) in zip(old, new, strict=True):
        place = _find_quotation(received, restored, before, after)
        if place >= 0:
            end = place + len(restored["cited_text"])
            ends = ("start_char_index", place), ("end_char_index", end)
            places |= {(*path, name): at for name, at in ends}
    body: JsonObject = replace_leaves(changed[1], places)
    return body


def _find_quotation(
    received: JsonObject, restored: JsonObject, before: list[str], after: list[str]
) -> int:
    """Finds a citation's new start in the released document; -1 if unknown.

    It is the occurrence with as many others before it as in the old document.
    """
    match received, restored:
        case (
            {"document_index": int(index), "start_char_index": int(start), "cited_text": str(old)},
            {"cited_text": str(new)},
        ) if old and new and start >= 0 and 0 <= index < len(before):
            pass
        case _:
            return -1
    if not before[index].startswith(old, start):
        return -1  # the upstream counts offsets in another way
    # The first search begins at 0. Each goes on behind the last hit: `count` counts no overlaps.
    place = -len(new)
    for _ in range(before[index].count(old, 0, start) + 1):
        place = after[index].find(new, place + len(new))
        if place < 0:
            break
    return place


DELTA_TEXTS: dict[str, tuple[str, Act]] = {
    "text_delta": ("text", Act.PROTECT),
    "thinking_delta": ("thinking", Act.SIGNED),
    "input_json_delta": ("partial_json", Act.ARGUMENTS),
    "compaction_delta": ("content", Act.SIGNED),
}
"""Field and act of the text of a delta, by its type."""

BLOCK_DELTAS = {
    "text": "text_delta",
    "thinking": "thinking_delta",
    "compaction": "compaction_delta",
}
"""Type of the deltas that continue a block, by the block's type."""


class _OpenBlock:
    """Block of an answer, as received and as restored.

    Attributes:
        received: the received block without its streamed texts.
        restored: the restored block without its streamed texts.
        open_kinds: types of deltas that may have held-back text.
        kinds: types of deltas that have come.
    """

    def __init__(self, received: JsonObject, restored: JsonObject) -> None:
        self.received, self.restored = received, restored
        self.open_kinds: list[str] = []
        self.kinds: list[str] = []

    def add(self, kind: str, received: JsonObject, restored: JsonObject) -> None:
        """Adds a delta that is no text: a citation or a signature."""
        for block, delta in ((self.received, received), (self.restored, restored)):
            if kind == "citations_delta":
                block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
            elif kind == "signature_delta":
                block["signature"] = block.get("signature", "") + received["signature"]


class MessageEvents:
    """Stream of the events of an answer; see `Stream`."""

    upstream_names = ()

    def __init__(self, restorer: AnswerRestorer) -> None:
        self._restorer = restorer
        self._blocks: dict[int, _OpenBlock] = {}
        self._at = 0
        self.is_complete = False

    @property
    def messages(self) -> list[JsonPair]:
        """Messages of the answer, as received and as restored."""
        try:
            blocks = [self._build_block(index) for index in sorted(self._blocks)]
        except ValueError:  # the input of a tool that breaks off: the client cannot send it back
            return []
        received, restored = [[block[i] for block in blocks] for i in (0, 1)]
        return [
            ({"role": "assistant", "content": received}, {"role": "assistant", "content": restored})
        ]

    def feed(self, event: Event) -> Iterator[Event]:
        """Restores an event as far as it is certain."""
        data = event.data
        if not isinstance(data, dict):
            return
        kind = data.get("type", event.name)
        index = data.get("index", self._at)
        if kind == "content_block_start":
            self._at = index
            yield Event(
                kind, {**data, "content_block": self._start_block(index, data["content_block"])}
            )
        elif kind == "content_block_delta":
            yield from self._restore_delta(index, data)
        elif kind == "content_block_stop":
            yield from self._flush(index)
            yield Event(kind, data)
        else:
            if kind == "message_stop":
                yield from self.close()
                self.is_complete = True
            yield Event(kind, self._restorer.restore_json(data, EVENT))

    def close(self) -> Iterator[Event]:
        """Yields the held-back text of all blocks."""
        for index in sorted(self._blocks):
            yield from self._flush(index)

    def build_error_event(self, refused: RequestError) -> Event:
        """Writes an error as the last event of the stream."""
        return Event("error", build_error(refused))

    def _start_block(self, index: int, block: JsonObject) -> JsonObject:
        """Opens a block and restores its beginning."""
        kind = BLOCK_DELTAS.get(block.get("type", ""))
        field = DELTA_TEXTS[kind][0] if kind else ""
        first = block.get(field)
        opening = {**block, field: ""} if isinstance(first, str) else block
        open_block = self._blocks[index] = _OpenBlock(
            dict(opening), self._restorer.restore_json(opening, BLOCK)
        )
        if not (kind and isinstance(first, str)):
            return open_block.restored
        return {**open_block.restored, field: self._restore_piece(index, kind, first)}

    def _restore_delta(self, index: int, data: JsonObject) -> Iterator[Event]:
        """Restores a delta as far as it is certain."""
        delta = data["delta"]
        open_block = self._blocks.setdefault(index, _OpenBlock({}, {}))
        kind = delta.get("type", "")
        field = DELTA_TEXTS[kind][0] if kind in DELTA_TEXTS else ""
        if isinstance(delta.get(field), str):
            bare = {name: value for name, value in delta.items() if name != field}
            remaining = self._restorer.restore_json(bare, DELTA)
            piece = self._restore_piece(index, kind, delta[field])
            # A delta that is held back as a whole is left out; one that came empty passes.
            if piece or not delta[field]:
                yield Event("content_block_delta", {**data, "delta": {**remaining, field: piece}})
            return
        restored = correct_offsets(
            (delta, self._restorer.restore_json(delta, DELTA)), self._restorer.request_pair
        )
        if kind == "signature_delta":
            yield from self._flush(index)  # a signed text must be whole before its signature
        open_block.add(kind, delta, restored)
        yield Event("content_block_delta", {**data, "delta": restored})

    def _restore_piece(self, index: int, kind: str, piece: str) -> str:
        open_block = self._blocks[index]
        for types in (open_block.open_kinds, open_block.kinds):
            if kind not in types:
                types.append(kind)
        tool = str(open_block.received.get("name") or "")
        return self._restorer.restore_piece((index, kind), piece, DELTA_TEXTS[kind][1], tool)

    def _flush(self, index: int) -> Iterator[Event]:
        """Yields the held-back text of a block."""
        open_block = self._blocks.get(index)
        while open_block is not None and open_block.open_kinds:
            kind = open_block.open_kinds.pop()
            if tail := self._restorer.close_text((index, kind)):
                delta = {"type": kind, DELTA_TEXTS[kind][0]: tail}
                event = {"type": "content_block_delta", "index": index, "delta": delta}
                yield Event("content_block_delta", event)

    def _build_block(self, index: int) -> JsonPair:
        """Returns a whole block, as received and as restored."""
        open_block = self._blocks[index]
        pair = dict(open_block.received), dict(open_block.restored)
        for kind in open_block.kinds:
            for block, value in zip(pair, self._restorer.get_text_pair((index, kind)), strict=True):
                if kind == "input_json_delta":
                    block["input"] = json.loads(value) if value else block.get("input", {})
                else:
                    block[DELTA_TEXTS[kind][0]] = value
        return pair


# ---- the routes ----------------------------------------------------------------------------------

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Types of errors by their status."""


def build_error(refused: RequestError) -> JsonObject:
    """Converts an error to Anthropic's form.

    Its type is that of the upstream's error, if there is one.
    """
    usual = ERROR_TYPES[400 if refused.status < 500 else 500]
    kind = refused.kind or ERROR_TYPES.get(refused.status, usual)
    return {"type": "error", "error": {"type": kind, "message": refused.full_message}}


def _is_json_requested(body: JsonObject) -> bool:
    output_config = body.get("output_config")
    return bool(
        body.get("output_format")
        or (isinstance(output_config, dict) and output_config.get("format"))
    )


KEY_HEADERS = ("x-api-key", "authorization")

MESSAGES = Operation(
    name="anthropic.messages",
    purpose="chat",
    holds_conversation=True,
    path="/messages",
    request=MESSAGES_REQUEST,
    needs=("model", "messages"),
    answer=MESSAGES_ANSWER,
    message=MESSAGE,
    find_messages=find_messages,
    list_answer_messages=list_answer_messages,
    correct_offsets=correct_offsets,
    stream=MessageEvents,
    is_json_requested=_is_json_requested,
    build_error=build_error,
    keys=KEY_HEADERS,
    forwards=ANTHROPIC_HEADERS,
)
COUNT = Operation(
    name="anthropic.count",
    path="/messages/count_tokens",
    request=COUNT_REQUEST,
    needs=("model", "messages"),
    answer=RULES["answer_count"],
    message=MESSAGE,
    find_messages=find_messages,
    correct_offsets=correct_offsets,
    build_error=build_error,
    keys=KEY_HEADERS,
    forwards=ANTHROPIC_HEADERS,
)
