"""Bedrock's Converse, whole and streamed.

In: JSON of requests, answers and events. Out: their messages; restored events.
Not here: the tables of their leaves (`leaf_tables`), the bytes of a stream (`event_stream`).

The model stands in the path. A client that signs its requests (SigV4) signs the text that it
wrote, so its signature is never sent on (`active_policy`): an API key of Bedrock is.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import regex

from textveil.gateway.errors import RequestError
from textveil.gateway.protocols.event_stream import AwsFraming
from textveil.gateway.protocols.field_rules import Act, LeafRule, Path, any_value, replace_leaves
from textveil.gateway.protocols.leaf_tables import load_rules
from textveil.gateway.protocols.models import MODEL_ID
from textveil.gateway.protocols.operation import (
    Event,
    JsonObject,
    JsonPair,
    Operation,
    get_items,
    list_messages,
)
from textveil.gateway.protocols.restoring import AnswerRestorer

RULES = load_rules("bedrock")
CONVERSE_REQUEST = LeafRule(fields={**(RULES["request"].fields or {}), "model": MODEL_ID})
CONVERSE_ANSWER, MESSAGE = RULES["answer"], RULES["message"]
EVENTS = RULES["answer_event"].fields or {}
"""Leaves of each event, by its name."""


def find_messages(body: JsonObject) -> Iterator[tuple[str, Path]]:
    """Yields the parts of the system prompt, and the messages."""
    for i, _ in enumerate(get_items(body, "system")):
        yield "system", ("system", i)
    yield from list_messages(body, "messages")


def list_answer_messages(answer: JsonObject) -> list[JsonObject]:
    """Returns the message of an answer."""
    output = answer.get("output")
    message = output.get("message") if isinstance(output, dict) else None
    return [message] if isinstance(message, dict) else []


_PLACEHOLDER = regex.compile(r"<([A-Z][A-Z0-9_]*)>")


def name_documents(changed: JsonPair, _: JsonPair) -> JsonObject:
    """Spells placeholders in the names of documents as the API allows it there: PERSON-1.

    See `Operation.correct_offsets`. Nothing else is changed, as it would not have been read so.
    """
    found = _find_names(changed[1].get("messages"), ("messages",))
    names = {
        path: _PLACEHOLDER.sub(lambda match: match[1].replace("_", "-"), name)
        for path, name in found
    }
    body: JsonObject = replace_leaves(changed[1], names)
    return body


def _find_names(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yields the names of documents, with their paths."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from _find_names(item, (*path, i))
    elif isinstance(value, dict):
        for name in value.keys() & {"content", "toolResult", "document"}:
            yield from _find_names(value[name], (*path, name))
        if path[-1] == "document" and isinstance(value.get("name"), str):
            yield (*path, "name"), value["name"]


def _is_json_requested(body: JsonObject) -> bool:
    config = body.get("outputConfig")
    return bool(isinstance(config, dict) and config.get("textFormat"))


# ---- streams -------------------------------------------------------------------------------------

PIECES = ("text", "input")
"""Last steps of the paths of texts that come in pieces."""


class _ContentBlock:
    """Block of an answer, whose texts come in pieces.

    Attributes:
        start: its start, such as the name of a called tool.
        sealed: what only the upstream can read, such as a signature.
        open_paths: paths of texts that may be held back.
        paths: paths of all texts.
        is_whole: false if more than `build` knows was in it.
    """

    def __init__(self, start: JsonObject) -> None:
        self.start, self.sealed = start, JsonObject()
        self.open_paths: list[Path] = []
        self.paths: list[Path] = []
        self.is_whole = set(start) <= {"toolUse"}

    @property
    def tool(self) -> str:
        """Name of the called tool; "" for none."""
        call = self.start.get("toolUse")
        return str(call.get("name") or "") if isinstance(call, dict) else ""

    def build(self, texts: list[str]) -> JsonObject:
        """Builds the block as clients send it back, with its texts.

        Raises:
            ValueError: it breaks off, or has parts of other kinds.
        """
        if not self.is_whole or len(texts) > 1:
            raise ValueError
        text = "".join(texts)
        if "toolUse" in self.start:
            return {"toolUse": {**self.start["toolUse"], "input": json.loads(text or "{}")}}
        if "redactedContent" in self.sealed:
            return {"reasoningContent": self.sealed}
        if self.sealed or "reasoningContent" in self.paths[0]:
            return {"reasoningContent": {"reasoningText": {"text": text, **self.sealed}}}
        return {"text": text}


class ConverseEvents:
    """Stream of the events of an answer; see `Stream`."""

    upstream_names = ()

    def __init__(self, restorer: AnswerRestorer) -> None:
        self._restorer = restorer
        self._blocks: dict[int, _ContentBlock] = {}
        self.is_complete = False

    @property
    def messages(self) -> list[JsonPair]:
        """Messages of the answer, as received and as restored."""
        try:
            blocks = [self._build_block(index) for index in sorted(self._blocks)]
        except ValueError:  # the client does not send it back like this
            return []
        received, restored = [[block[i] for block in blocks] for i in (0, 1)]
        return [
            ({"role": "assistant", "content": received}, {"role": "assistant", "content": restored})
        ]

    def _build_block(self, index: int) -> JsonPair:
        block = self._blocks[index]
        pairs = [self._restorer.get_text_pair((index, path)) for path in block.paths]
        received, restored = [[pair[i] for pair in pairs] for i in (0, 1)]
        return block.build(received), block.build(restored)

    def feed(self, event: Event) -> Iterator[Event]:
        """Restores an event as far as it is certain."""
        data = event.data
        if not isinstance(data, dict):
            return
        index = data.get("contentBlockIndex", 0)
        if event.name == "contentBlockDelta":
            yield from self._restore_delta(index, data)
            return
        if event.name == "contentBlockStart":
            start = data.get("start")
            self._blocks[index] = _ContentBlock(start if isinstance(start, dict) else {})
        elif event.name == "contentBlockStop":
            yield from self._flush(index)
        elif event.name == "messageStop":
            yield from self.close()
            self.is_complete = True
        rule = EVENTS.get(event.name, any_value(Act.OBJECT))
        yield Event(event.name, self._restorer.restore_json(data, rule))

    def close(self) -> Iterator[Event]:
        """Yields the held-back text of all blocks."""
        for index in sorted(self._blocks):
            yield from self._flush(index)

    def build_error_event(self, refused: RequestError) -> Event:
        """Writes an error as the last event of the stream."""
        kind = get_error_type(refused)
        return Event(kind[0].lower() + kind[1:], build_error(refused))

    def _restore_delta(self, index: int, data: JsonObject) -> Iterator[Event]:
        """Restores a delta; one whose text is held back as a whole is left out."""
        block = self._blocks.setdefault(index, _ContentBlock({}))
        pieces: list[tuple[str, str]] = []

        def restore(path: Path, text: str, act: Act) -> str:
            if "citation" in path or path[-1] not in PIECES:
                return self._restorer.restore_text(text, act)
            for paths in (block.paths, block.open_paths):
                if path not in paths:
                    paths.append(path)
            piece = self._restorer.restore_piece((index, path), text, act, block.tool)
            pieces.append((text, piece))
            return piece

        restored = self._restorer.restore_json(data, EVENTS["contentBlockDelta"], restore)
        reasoning = data["delta"].get("reasoningContent") or {}
        sealed = {name: value for name, value in reasoning.items() if name != "text"}
        if not pieces:
            block.sealed |= sealed
            block.is_whole = block.is_whole and bool(sealed)
            yield from self._flush(index)  # a signed text must be whole before its signature
        is_held = bool(pieces) and not any(piece for _, piece in pieces)
        if not is_held or not any(text for text, _ in pieces) or "toolResult" in data["delta"]:
            yield Event("contentBlockDelta", restored)

    def _flush(self, index: int) -> Iterator[Event]:
        """Yields the held-back text of a block."""
        block = self._blocks.get(index)
        while block is not None and block.open_paths:
            path = block.open_paths.pop(0)
            value: Any = self._restorer.close_text((index, path))
            if value:
                for step in reversed(path):
                    value = [value] if isinstance(step, int) else {step: value}
                yield Event("contentBlockDelta", {"contentBlockIndex": index, **value})


# ---- routes --------------------------------------------------------------------------------------

ERROR_HEADER = "x-amzn-errortype"
ERROR_TYPES = {
    401: "AccessDeniedException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
}
ERROR_NAMES = frozenset(ERROR_TYPES.values()) | {
    *("ModelNotReadyException", "ModelStreamErrorException", "ServiceQuotaExceededException"),
    *("ServiceUnavailableException", "ValidationException"),
}
"""Types of errors, by their status where one is usual."""


def get_error_type(refused: RequestError) -> str:
    """Returns the type of an error; that of the upstream's error, if AWS has one of that name."""
    usual = "ValidationException" if refused.status < 500 else "ServiceUnavailableException"
    kind = refused.kind or ""
    kind = kind[:1].upper() + kind[1:]  # in a stream its first letter is small
    return kind if kind in ERROR_NAMES else ERROR_TYPES.get(refused.status, usual)


def build_error(refused: RequestError) -> JsonObject:
    """Converts an error to the form of AWS, whose type stands in a header."""
    return {"message": refused.full_message}


def build_error_headers(refused: RequestError) -> dict[str, str]:
    """Returns the type of an error as AWS's header."""
    return {ERROR_HEADER: get_error_type(refused)}


CONVERSE = Operation(
    name="bedrock.converse",
    purpose="chat",
    path="/model/{model:path}/converse",
    request=CONVERSE_REQUEST,
    answer=CONVERSE_ANSWER,
    message=MESSAGE,
    find_messages=find_messages,
    list_answer_messages=list_answer_messages,
    correct_offsets=name_documents,
    is_json_requested=_is_json_requested,
    build_error=build_error,
    build_error_headers=build_error_headers,
    forwards={},
    holds_conversation=True,
)
CONVERSE_STREAM = replace(
    CONVERSE,
    name="bedrock.converse_stream",
    path="/model/{model:path}/converse-stream",
    stream=ConverseEvents,
    is_stream_default=True,
    framing=AwsFraming(),
)
