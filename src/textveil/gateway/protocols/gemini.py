"""Gemini: content, whole or streamed, the count of its tokens, embeddings and models.

In: JSON of requests, answers and chunks. Out: requests in one form; their messages; restored
chunks.
Not here: the tables of their leaves (`leaf_tables`).

The API takes names of fields as `systemInstruction` and as `system_instruction`, and one object in
place of a list of one. Clients send the chunks of a streamed answer back as a message each. So a
request is brought to one form before it is read.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from textveil.gateway.errors import RequestError
from textveil.gateway.protocols.field_rules import (
    DROPPED,
    ID,
    PASSED,
    Act,
    LeafRule,
    Path,
    any_value,
    choice,
    pattern,
    record,
    replace_leaves,
)
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

RULES = load_rules("gemini")
CONTENT, ANSWER, CANDIDATE, ANSWER_CONTENT, PART = map(
    RULES.__getitem__,
    ("message", "answer", "answer_candidate", "answer_content", "answer_part"),
)
"""Leaves of a message; of an answer or a chunk, of a candidate, of its content, of a part."""

NESTED = "generateContentRequest"
"""Field of a count with a whole request in it."""


# ---- requests in one form ------------------------------------------------------------------------

LISTS = ("contents", "parts", "tools", "functionDeclarations", "safetySettings", "requests")
"""Lists in whose place the API takes one object."""

PLAIN_FIELDS = frozenset(("text", "thought"))
"""Fields of a part that goes on with the text of the part before it."""

_NEXT_WORD = re.compile("_([a-z0-9])")


@cache
def _to_camel(name: str) -> str:
    return _NEXT_WORD.sub(lambda match: match[1].upper(), name)


def _rename_fields(value: Any, rule: LeafRule) -> Any:
    """Writes the names of fields as the table does, and lists as lists.

    Names that the table does not know stay, and all names within free JSON, such as arguments.
    """
    if isinstance(value, list) and rule.items is not None:
        return [_rename_fields(item, rule.items) for item in value]
    if not isinstance(value, dict) or not rule.fields:
        return value
    renamed: JsonObject = {}
    for name, item in value.items():
        field = _to_camel(name)
        if field not in rule.fields or (field != name and (field in value or field in renamed)):
            renamed[name] = item
            continue
        single = field in LISTS and isinstance(item, dict)
        renamed[field] = _rename_fields([item] if single else item, rule.fields[field])
    return renamed


def _is_plain(part: Any) -> bool:
    """True if a part is text alone."""
    return (
        isinstance(part, dict)
        and part.keys() <= PLAIN_FIELDS
        and isinstance(part.get("text"), str)
        and bool(part["text"])
    )


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and part.get("thought") is True


def merge_parts(parts: list[Any]) -> list[Any]:
    """Merges plain texts that follow each other; parts with a signature stay as they are."""
    merged: list[Any] = []
    for part in parts:
        _add_part(merged, part)
    return merged


def _add_part(parts: list[Any], part: Any) -> None:
    last: Any = parts[-1] if parts else None
    if _is_plain(part) and _is_plain(last) and _is_thought(part) == _is_thought(last):
        parts[-1] = {**last, "text": last["text"] + part["text"]}
    else:
        parts.append(part)


def _is_of_model(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and content.keys() <= {"role", "parts"}
        and content.get("role") == "model"
        and isinstance(content.get("parts"), list)
    )


def _merge_contents(contents: list[Any]) -> list[Any]:
    """Merges messages of the model that follow each other.

    A name may be cut between two of them, where nobody would find it.
    """
    merged: list[Any] = []
    for content in contents:
        if not _is_of_model(content):
            merged.append(content)
            continue
        before = merged.pop()["parts"] if merged and _is_of_model(merged[-1]) else []
        merged.append({**content, "parts": merge_parts([*before, *content["parts"]])})
    return merged


def _build_normalizer(rule: LeafRule) -> Callable[[JsonObject], JsonObject]:
    def normalize(body: JsonObject) -> JsonObject:
        """Brings a request to one form."""
        renamed: JsonObject = _rename_fields(body, rule)
        inner = renamed.get(NESTED)
        nested: list[tuple[Path, Any]] = [((NESTED,), inner)]
        nested += [(("requests", i), item) for i, item in enumerate(get_items(renamed, "requests"))]
        for path, request in nested:
            _check_model(path, request, renamed.get("model"))
        if isinstance(inner, dict):
            renamed[NESTED] = _merge_messages(inner)
        return _merge_messages(renamed)

    return normalize


def _merge_messages(body: JsonObject) -> JsonObject:
    contents = body.get("contents")
    if not isinstance(contents, list):
        return body
    return {**body, "contents": _merge_contents(contents)}


def _check_model(path: Path, request: Any, model: Any) -> None:
    """Refuses a model within a request that is not the one of the path.

    The policy decides by the model of the path.
    """
    inner = request.get("model") if isinstance(request, dict) else None
    if inner is not None and str(inner).removeprefix("models/") != model:
        place = "".join(f"[{step}]" if isinstance(step, int) else step for step in path) + ".model"
        raise RequestError(400, f"{place} must be the model in the path", param=place)


# ---- messages ------------------------------------------------------------------------------------


def find_messages(body: JsonObject) -> Iterator[tuple[str, Path]]:
    """Yields the system prompt and the messages, also of a request within a count."""
    inner = body.get(NESTED)
    for request, before in ((body, ()), (inner, (NESTED,))):
        if not isinstance(request, dict):
            continue
        if request.get("systemInstruction"):
            yield "system", (*before, "systemInstruction")
        for role, path in list_messages(request, "contents", "user"):
            yield role, (*before, *path)


def list_answer_messages(answer: JsonObject) -> list[JsonObject]:
    """Lists the messages of all candidates, with and without thoughts.

    Many clients leave the thoughts out.
    """
    candidates = (item for item in get_items(answer, "candidates") if isinstance(item, dict))
    contents = (item.get("content") for item in candidates)
    messages = [
        {"role": "model", **content, "parts": merge_parts(get_items(content, "parts"))}
        for content in contents
        if isinstance(content, dict)
    ]
    return _add_without_thoughts(messages)


def _add_without_thoughts(messages: list[JsonObject]) -> list[JsonObject]:
    thought = [message for message in messages if any(map(_is_thought, message["parts"]))]
    return messages + [
        {**message, "parts": [part for part in message["parts"] if not _is_thought(part)]}
        for message in thought
    ]


# ---- places in texts -----------------------------------------------------------------------------


def correct_offsets(changed: JsonPair, _: JsonPair) -> JsonObject:
    """Corrects places in the texts of an answer, which count bytes.

    See `Operation`.
    """
    places: dict[Path, Any] = {}
    pairs = zip(*(get_items(body, "candidates") for body in changed), strict=False)
    for i, (received, restored) in enumerate(pairs):
        if isinstance(received, dict) and isinstance(restored, dict):
            parts = [
                get_items(candidate.get("content") or {}, "parts")
                for candidate in (received, restored)
            ]
            ranges = _find_places(received, restored, *map(_list_texts, parts))
            places |= {("candidates", i, *path): place for path, place in ranges.items()}
    body: JsonObject = replace_leaves(changed[1], places) if places else changed[1]
    return body


def _list_texts(parts: list[Any]) -> list[str]:
    texts = (part.get("text") if isinstance(part, dict) else None for part in parts)
    return [text if isinstance(text, str) else "" for text in texts]


def _find_places(
    received: JsonObject, restored: JsonObject, before: list[str], after: list[str]
) -> dict[Path, Any]:
    """Finds the new places of segments and citations; one that cannot be found is left out.

    Args:
        received: a candidate as the model wrote it.
        restored: the candidate, restored.
        before: the texts of its parts as the model wrote them.
        after: the texts of its parts, restored.
    """
    places: dict[Path, Any] = {}
    for path, old, new in _list_ranges(received, restored):
        index = old.get("partIndex", 0)
        is_known = isinstance(index, int) and 0 <= index < min(len(before), len(after))
        range_ = _convert_range(old, new, before[index], after[index]) if is_known else None
        for name, place in zip(("startIndex", "endIndex"), range_ or (DROPPED,) * 2, strict=True):
            if name in old:
                places[*path, name] = place
    return places


def _list_ranges(
    received: JsonObject, restored: JsonObject
) -> Iterator[tuple[Path, JsonObject, JsonObject]]:
    for field, items, inner in (
        ("groundingMetadata", "groundingSupports", "segment"),
        ("citationMetadata", "citations", ""),
    ):
        pair = [side.get(field) for side in (received, restored)]
        lists = [get_items(side, items) if isinstance(side, dict) else [] for side in pair]
        for i, (old, new) in enumerate(zip(*lists, strict=False)):
            path: Path = (field, items, i, inner) if inner else (field, items, i)
            if inner and isinstance(old, dict) and isinstance(new, dict):
                old, new = old.get(inner), new.get(inner)
            if isinstance(old, dict) and isinstance(new, dict):
                yield path, old, new


def _convert_range(
    old: JsonObject, new: JsonObject, before: str, after: str
) -> tuple[int, int] | None:
    """Converts a range of bytes in a received text to one in the restored text.

    What the range quotes is looked for: it is the occurrence with as many others before it.
    """
    start, end = old.get("startIndex", 0), old.get("endIndex")
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end):
        return None
    if before == after:
        return start, end
    data = before.encode()
    quoted = data[start:end].decode(errors="ignore")
    shown = new.get("text", quoted)
    if old.get("text", quoted) != quoted or not isinstance(shown, str) or not shown:
        return None
    place = -len(shown)
    for _ in range(before.count(quoted, 0, len(data[:start].decode(errors="ignore"))) + 1):
        place = after.find(shown, place + len(shown))
        if place < 0:
            return None
    first = len(after[:place].encode())
    return first, first + len(shown.encode())


# ---- streams -------------------------------------------------------------------------------------

NEWS = frozenset(("finishReason", "groundingMetadata", "citationMetadata", "urlContextMetadata"))
"""Fields of a candidate that are news even where all of its text is held back."""


class _OpenCandidate:
    """Candidate of a streamed answer.

    Attributes:
        received: its parts as received, plain texts merged.
        restored: its parts as restored, likewise.
        texts: the number of its texts so far; each is restored as one.
        part: the last part of the text that is open; None where none is.
        is_shown: whether the client has seen some of that text since its last signature.
        is_complete: whether it has ended.
    """

    def __init__(self) -> None:
        self.received, self.restored = list[Any](), list[Any]()
        self.texts, self.is_complete, self.is_shown = 0, False, False
        self.part: JsonObject | None = None


class GeminiChunks:
    """Stream of the chunks of an answer; see `Stream`."""

    upstream_names = ()

    def __init__(self, restorer: AnswerRestorer) -> None:
        self._restorer = restorer
        self._candidates: dict[int, _OpenCandidate] = {}
        self._is_blocked = False

    @property
    def is_complete(self) -> bool:
        """True once the whole answer has come."""
        open_candidates = self._candidates.values()
        return self._is_blocked or (
            bool(open_candidates) and all(candidate.is_complete for candidate in open_candidates)
        )

    @property
    def messages(self) -> list[JsonPair]:
        """Messages of the answer, as received and as restored."""
        received, restored = (
            [
                {"role": "model", "parts": getattr(state, side)}
                for state in self._candidates.values()
            ]
            for side in ("received", "restored")
        )
        return list(
            zip(_add_without_thoughts(received), _add_without_thoughts(restored), strict=True)
        )

    def feed(self, event: Event) -> Iterator[Event]:
        """Restores a chunk as far as it is certain."""
        data = event.data
        if not isinstance(data, dict):
            return
        chunk = self._restorer.restore_json({**data, "candidates": None}, ANSWER)
        feedback = data.get("promptFeedback")
        self._is_blocked |= isinstance(feedback, dict) and bool(feedback.get("blockReason"))
        candidates = [item for item in get_items(data, "candidates") if isinstance(item, dict)]
        shown = [self._restore_candidate(i, item) for i, item in enumerate(candidates)]
        chunk["candidates"] = [item for item in shown if item is not None]
        if not candidates:
            del chunk["candidates"]
        elif not chunk["candidates"]:
            return  # all of it is held back, and clients take a message without text for a mistake
        yield Event(event.name, chunk)

    def _restore_candidate(self, i: int, candidate: JsonObject) -> JsonObject | None:
        """Restores the certain part of a chunk's candidate; None if nothing is."""
        index = candidate.get("index", i)
        state = self._candidates.setdefault(index, _OpenCandidate())
        content = candidate.get("content")
        parts = get_items(content, "parts") if isinstance(content, dict) else []
        shown = [new for part in parts for new in self._restore_part(index, state, part)]
        if candidate.get("finishReason") is not None:
            shown += self._flush(index, state)
            state.is_complete = True
        if parts and not shown and state.is_complete:
            shown = [{"text": ""}]  # as it came: clients take a message without parts for a mistake
        others = {name: value for name, value in candidate.items() if name != "content"}
        restored: JsonObject = self._restorer.restore_json(others, CANDIDATE)
        texts = _list_texts(state.received), _list_texts(state.restored)
        restored = replace_leaves(restored, _find_places(candidate, restored, *texts))
        if isinstance(content, dict) and (shown or not parts):
            around = {name: value for name, value in content.items() if name != "parts"}
            restored["content"] = self._restorer.restore_json(around, ANSWER_CONTENT)
        if shown:
            restored["content"] = {"role": "model", **restored.get("content", {}), "parts": shown}
        return restored if "content" in restored or NEWS & restored.keys() else None

    def _restore_part(self, index: int, state: _OpenCandidate, part: Any) -> Iterator[Any]:
        """Restores a part, behind the held-back text that it ends."""
        text = part.get("text") if isinstance(part, dict) else None
        if not isinstance(text, str):
            yield from self._flush(index, state)
            state.received.append(part)
            state.restored.append(self._restorer.restore_json(part, PART))
            yield state.restored[-1]
            return
        if state.part is not None and _is_thought(state.part) != _is_thought(part):
            yield from self._flush(index, state)
        if _is_plain(part):
            state.texts += state.part is None
            state.part = {name: value for name, value in part.items() if name != "text"}
            _add_part(state.received, part)
            yield from self._show(state, self._restorer.restore_piece((index, state.texts), text))
            return
        if part.keys() <= PLAIN_FIELDS:
            return  # it is empty
        if not text:
            yield from self._flush(index, state)
        elif state.part is None:
            state.texts += 1
        elif not state.is_shown:
            # Else the client would send fewer texts back than came.
            text_before = state.received.pop()["text"]
            part = {**part, "text": text_before + text}
        restored = self._restorer.restore_json({**part, "text": ""}, PART)
        if text:
            key = index, state.texts
            piece = self._restorer.restore_piece(key, text)
            restored["text"] = piece + self._restorer.close_text(key)
        state.part, state.is_shown = None, False
        state.received.append(part)
        state.restored.append(restored)
        yield restored

    def _show(self, state: _OpenCandidate, piece: str) -> Iterator[Any]:
        """Yields a part of the open text, if there is text for it."""
        if piece:
            part = {**(state.part or {}), "text": piece}
            _add_part(state.restored, part)
            state.is_shown = True
            yield part

    def _flush(self, index: int, state: _OpenCandidate) -> Iterator[Any]:
        """Yields the held-back end of the open text."""
        if state.part is not None:
            yield from self._show(state, self._restorer.close_text((index, state.texts)))
        state.part, state.is_shown = None, False

    def close(self) -> Iterator[Event]:
        """Yields the held-back text of all candidates."""
        for index, state in self._candidates.items():
            if parts := [*self._flush(index, state)]:
                content = {"role": "model", "parts": parts}
                yield Event("", {"candidates": [{"index": index, "content": content}]})

    def build_error_event(self, refused: RequestError) -> Event:
        """Writes an error as the last event of the stream."""
        return Event("", build_error(refused))


# ---- the routes ----------------------------------------------------------------------------------

ERROR_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""Names of errors by their status."""


def build_error(refused: RequestError) -> JsonObject:
    """Converts an error to Google's form.

    Its number and name are those of the upstream's error, if there is one.
    """
    usual = "INVALID_ARGUMENT" if refused.status < 500 else "UNAVAILABLE"
    name = refused.kind or ERROR_STATUSES.get(refused.status, usual)
    code = refused.code or ""
    number = int(code) if not refused.is_gateway_error and code.isdecimal() else refused.status
    return {"error": {"code": number, "message": refused.full_message, "status": name}}


def _is_json_requested(body: JsonObject) -> bool:
    config = body.get("generationConfig")
    fields = ("responseSchema", "responseJsonSchema", "responseFormat")
    return isinstance(config, dict) and (
        config.get("responseMimeType") == "application/json" or any(map(config.get, fields))
    )


def _read_streamed(body: JsonObject) -> JsonObject:
    """Reads a request for a stream, which must be one of events."""
    if body.get("alt") != "sse":
        raise RequestError(
            400,
            "the gateway streams events only: add ?alt=sse to the address, as the SDKs do. Nothing "
            "was sent",
            param="alt",
        )
    return _build_normalizer(STREAM_REQUEST)(body)


def _build_request(name: str, **more: LeafRule) -> LeafRule:
    """Builds the table of a request, whose model is in the path."""
    return LeafRule(fields={**(RULES[name].fields or {}), "model": MODEL_ID, **more})


KEY_HEADERS = ("x-goog-api-key", "authorization")
GOOGLE_HEADERS = {"x-goog-user-project": re.compile(r"[a-z0-9:.\-]{1,64}")}
BASES = ("/v1beta", "/v1", "")
GENERATE_REQUEST = _build_request("request")
STREAM_REQUEST = _build_request("request", alt=choice("sse"))
COUNT_REQUEST = _build_request("count")
EMBED_REQUEST = _build_request("embed")
BATCH_REQUEST = _build_request("embed_batch")

GENERATE = Operation(
    name="gemini.generate",
    purpose="generate_content",
    holds_conversation=True,
    path="/models/{model}:generateContent",
    bases=BASES,
    request=GENERATE_REQUEST,
    normalize=_build_normalizer(GENERATE_REQUEST),
    needs=("contents",),
    answer=ANSWER,
    message=CONTENT,
    find_messages=find_messages,
    list_answer_messages=list_answer_messages,
    correct_offsets=correct_offsets,
    is_json_requested=_is_json_requested,
    build_error=build_error,
    keys=KEY_HEADERS,
    query_key="key",
    forwards=GOOGLE_HEADERS,
)
STREAM = replace(
    GENERATE,
    name="gemini.stream",
    path="/models/{model}:streamGenerateContent",
    query=("alt",),
    request=STREAM_REQUEST,
    normalize=_read_streamed,
    stream=GeminiChunks,
    is_stream_default=True,
    # Google's SDKs read every line as JSON.
    has_comments=False,
)
COUNT = replace(
    GENERATE,
    name="gemini.count",
    purpose="",
    path="/models/{model}:countTokens",
    request=COUNT_REQUEST,
    normalize=_build_normalizer(COUNT_REQUEST),
    needs=(),
    answer=PASSED,
    list_answer_messages=lambda _: (),
    correct_offsets=lambda said, _: said[1],
)
EMBED = Operation(
    name="gemini.embed",
    purpose="embeddings",
    path="/models/{model}:embedContent",
    bases=BASES,
    request=EMBED_REQUEST,
    normalize=_build_normalizer(EMBED_REQUEST),
    needs=("content",),
    answer=PASSED,
    build_error=build_error,
    keys=KEY_HEADERS,
    query_key="key",
    forwards=GOOGLE_HEADERS,
)
EMBED_BATCH = replace(
    EMBED,
    name="gemini.embed.batch",
    path="/models/{model}:batchEmbedContents",
    request=BATCH_REQUEST,
    normalize=_build_normalizer(BATCH_REQUEST),
    needs=("requests",),
)
# With other prefixes, the same paths are those of OpenAI and Anthropic.
MODELS = replace(
    EMBED,
    name="gemini.models",
    purpose="",
    method="GET",
    has_body=False,
    path="/models",
    bases=("/v1beta",),
    request=record(
        pageSize=pattern("[0-9]{1,6}"),
        pageToken=ID,
        alt=any_value(Act.DROP),
        prettyPrint=any_value(Act.DROP),
    ),
    normalize=lambda body: body,
    needs=(),
    answer=PASSED,
)
ONE_MODEL = replace(
    MODELS,
    name="gemini.models.one",
    path="/models/{model}",
    request=record(model=MODEL_ID, alt=any_value(Act.DROP), prettyPrint=any_value(Act.DROP)),
)
GEMINI = (GENERATE, STREAM, COUNT, EMBED, EMBED_BATCH, MODELS, ONE_MODEL)
