"""LiteLLM's guardrails: releases its requests to a model, and restores the answers.

In: JSON of its generic guardrail API, and of the three routes by which it redacts and rehydrates
texts. Out: the tables of their leaves, and the replies.
Not here: which fields of a request LiteLLM shows to a guardrail, and which other fields it sends
on; how texts are released.
"""

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from textveil.gateway.errors import RequestError
from textveil.gateway.protocols import openai
from textveil.gateway.protocols.chat import MESSAGE, TOOL, TOOL_CALL
from textveil.gateway.protocols.field_rules import (
    PASSED,
    Act,
    Path,
    any_value,
    array,
    choice,
    map_fields,
    pattern,
    record,
    replace_leaves,
    text,
    union,
    variants,
)
from textveil.gateway.protocols.leaf_tables import SEALED
from textveil.gateway.protocols.operation import (
    Guardrail,
    JsonObject,
    Operation,
    get_items,
    list_messages,
)
from textveil.gateway.protocols.partial_answers import PieceRestorer, is_json

CALL_NAME = pattern(r"[ -~]{1,255}", is_name=False)
"""Rule for LiteLLM's name of a call, or that of its client. It goes nowhere, so it may be anything."""
MEDIA, IGNORED = any_value(Act.MEDIA), any_value(Act.DROP)

# ---- the generic guardrail API -------------------------------------------------------------------

_ASSISTANT = MESSAGE.kinds["assistant"]
_KINDS = {
    "thinking": record(thinking=text(), signature=SEALED),
    "redacted_thinking": record(data=SEALED),
}
GUARDRAIL_MESSAGE = replace(
    MESSAGE,
    kinds={
        **MESSAGE.kinds,
        "assistant": replace(
            _ASSISTANT,
            fields={**(_ASSISTANT.fields or {}), "thinking_blocks": array(variants(**_KINDS))},
        ),
    },
)
"""Rule for a message.

LiteLLM shows no thinking of an answer, so a thinking text of the model is not known here: it goes
on if nothing in it is private, and else it is left out, since its signer would refuse a changed
one.
"""

GUARDRAIL_REQUEST = record(
    input_type=choice("request", "response"),
    litellm_call_id=CALL_NAME,
    structured_messages=array(GUARDRAIL_MESSAGE),
    texts=array(text()),
    tool_calls=array(TOOL_CALL),
    tools=array(TOOL),
    images=array(MEDIA),
    **map_fields(IGNORED, "litellm_trace_id litellm_version model request_data request_headers"),
    **map_fields(IGNORED, "additional_provider_specific_params"),
)
"""Rule for a guardrail request.

Ignored fields are for the guardrail only, which does not pass them on.
"""


def _build_error(refused: RequestError) -> JsonObject:
    return {"action": "BLOCKED", "blocked_reason": refused.full_message}


def _find_texts(body: JsonObject) -> Iterator[tuple[Path, str]]:
    """Yields the texts of messages, with their paths.

    LiteLLM shows them a second time as `texts`.
    """
    for i, row in enumerate(get_items(body, "structured_messages")):
        content = row.get("content") if isinstance(row, dict) else None
        if isinstance(content, str):
            yield (i, "content"), content
        for j, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                yield (i, "content", j, "text"), part["text"]


def _find_paths(body: JsonObject) -> list[Path | None]:
    """Finds the path in the messages for each of `texts`.

    None for a text that is in no message.
    """
    unused: dict[str, deque[Path]] = defaultdict(deque)
    for path, string in _find_texts(body):
        unused[string].append(path)
    texts = get_items(body, "texts")
    queues = [unused.get(string) if isinstance(string, str) else None for string in texts]
    return [places.popleft() if places else None for places in queues]


def _remove_duplicates(body: JsonObject, _: Mapping[str, str]) -> JsonObject:
    """Removes the texts and calls that a request has twice.

    So no text is drawn twice.
    """
    request, calls_in_messages = dict(body), _list_calls(body)
    if isinstance(texts := body.get("texts"), list):
        pairs = zip(texts, _find_paths(body), strict=True)
        request["texts"] = [string for string, place in pairs if place is None]
    if isinstance(calls := body.get("tool_calls"), list):
        request["tool_calls"] = [
            call for call in calls if _dump_call(call) not in calls_in_messages
        ]
    return request


def _list_calls(body: JsonObject) -> set[str]:
    """Returns the tool calls in messages, as JSON."""
    rows = get_items(body, "structured_messages")
    lists = [row.get("tool_calls") for row in rows if isinstance(row, dict)]
    return {_dump_call(call) for calls in lists if isinstance(calls, list) for call in calls}


def _dump_call(call: Any) -> str:
    """Serializes a tool call without the fields that LiteLLM adds."""
    names = ("id", "function", "custom")
    bare = {name: call[name] for name in names if name in call} if isinstance(call, dict) else call
    return json.dumps(bare, sort_keys=True)


def _find_messages(body: JsonObject) -> Iterator[tuple[str, Path]]:
    yield from list_messages(body, "structured_messages")
    for i, _ in enumerate(get_items(body, "texts")):
        yield "text", ("texts", i)


def _build_request_reply(body: JsonObject, released: JsonObject) -> JsonObject:
    """Builds the reply to a request with its released texts.

    It has messages and tools, too, where they changed otherwise.

    Raises:
        RequestError: a tool call would have to change, and LiteLLM takes such a change from no
            reply.
    """
    messages = _get_list(body, "structured_messages")
    rows = _check_rows(messages, _get_list(released, "structured_messages"))
    if _get_list(released, "tool_calls") != _drop_nulls(
        _get_list(_remove_duplicates(body, {}), "tool_calls")
    ):
        raise RequestError(
            400,
            "tool_calls hold private values, and LiteLLM takes changes to them only in messages",
        )
    remaining, places = iter(_get_list(released, "texts")), _find_paths(body)
    texts = [next(remaining) if place is None else _get_at(rows, place) for place in places]
    reply: JsonObject = {"texts": texts}
    replacements: dict[Any, str] = dict(zip(places, texts, strict=True))
    if _drop_nulls(replace_leaves(messages, replacements)) != rows:
        pairs = zip(messages, rows, strict=True)
        reply["structured_messages"] = [
            old if _drop_nulls(old) == new else new for old, new in pairs
        ]
    if _drop_nulls(_get_list(body, "tools")) != _get_list(released, "tools"):
        reply["tools"] = _get_list(released, "tools")
    changed = len(reply) > 1 or texts != _get_list(body, "texts")
    return {"action": "GUARDRAIL_INTERVENED" if changed else "NONE", **reply}


def _check_rows(received: list[Any], released: list[Any]) -> list[Any]:
    """Returns released messages with their unchanged thinking only.

    It raises `RequestError` if a message lacks something.
    """
    bare = _drop_nulls(received)
    rows = (
        list(map(_drop_changed_thoughts, bare, released))
        if len(received) == len(released)
        else released
    )
    if not _has_same_lists(bare, rows):
        raise RequestError(
            400,
            "structured_messages hold parts that the gateway does not know, and LiteLLM would "
            "send them anyway",
        )
    return rows


def _get_list(body: JsonObject, name: str) -> list[Any]:
    """Returns a list of a request; empty if it has none."""
    items: list[Any] = body.get(name) or []
    return items


def _drop_changed_thoughts(received: JsonObject, released: JsonObject) -> JsonObject:
    """Removes the changed thinking blocks of a released message."""
    if "thinking_blocks" not in released:
        return released
    pairs = zip(received["thinking_blocks"], released["thinking_blocks"], strict=True)
    thoughts = [new for old, new in pairs if old == new]
    remaining = {name: value for name, value in released.items() if name != "thinking_blocks"}
    return remaining | ({"thinking_blocks": thoughts} if thoughts else {})


def _has_same_lists(received: Any, released: Any) -> bool:
    """True if nothing was left out of the lists in some JSON."""
    if isinstance(received, list):
        return (
            isinstance(released, list)
            and len(received) == len(released)
            and all(map(_has_same_lists, received, released))
        )
    if isinstance(received, dict) and isinstance(released, dict):
        return all(
            _has_same_lists(received.get(name), released[name])
            for name in released
            if name != "thinking_blocks"
        )
    return True


def _get_at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _drop_nulls(value: Any) -> Any:
    """Removes nulls from JSON, where they count as absent."""
    if isinstance(value, dict):
        return {name: _drop_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_drop_nulls(inner) for inner in value] if isinstance(value, list) else value


def _get_client(body: JsonObject) -> str:
    """Names LiteLLM's client, by its key and its end user."""
    data = body.get("request_data")
    data = data if isinstance(data, dict) else {}
    return json.dumps([data.get("user_api_key_hash"), data.get("user_api_key_end_user_id")])


def _read_texts(body: JsonObject) -> list[str]:
    """Returns the texts of an answer.

    Raises:
        RequestError: they are no list of strings.
    """
    texts = body.get("texts") or []
    if isinstance(texts, list) and all(isinstance(string, str) for string in texts):
        return texts
    raise RequestError(400, "texts must be a list of strings", param="texts")


def _build_answer_reply(body: JsonObject, pieces: PieceRestorer) -> JsonObject:
    """Builds the reply about an answer, with lengths to hold back.

    Of a stream LiteLLM shows more each time; it must withhold the end that may yet change.
    """
    texts = _read_texts(body)
    parts = [pieces.restore_parts(string) for string in texts]
    restored = [certain + tail for certain, tail in parts]
    tail_lengths = [len(tail) for _, tail in parts]
    changed = restored != texts or any(tail_lengths)
    action = "GUARDRAIL_INTERVENED" if changed else "NONE"
    return {"action": action, "texts": restored, "stream_holdback_chars": tail_lengths}


GENERIC = Operation(
    name="litellm.guardrail",
    path="/beta/litellm_basic_guardrail_api",
    request=GUARDRAIL_REQUEST,
    answer=PASSED,
    needs=("input_type",),
    find_messages=_find_messages,
    get_conversation=lambda body: body.get("litellm_call_id") or None,
    build_error=_build_error,
    guardrail=Guardrail(
        read=_remove_duplicates,
        get_client=_get_client,
        has_answer=lambda body: body.get("input_type") == "response",
        build_request_reply=_build_request_reply,
        build_answer_reply=_build_answer_reply,
        returned=("structured_messages", "texts", "tools"),
        # With an error status, LiteLLM may be configured to send the request unprotected.
        convert_status=lambda _: 200,
    ),
)

# ---- redact and rehydrate ------------------------------------------------------------------------

SESSION_FIELD = "session"
REDACT_REQUEST = record(
    texts=array(union(text(), record(json=text(Act.ARGUMENTS)))), session=CALL_NAME
)
PIECE_FIELDS = {"text": str, "carry": str, "final": bool}


def _add_session(body: JsonObject, headers: Mapping[str, str]) -> JsonObject:
    """Adds the session's name, which is in a header, to the request."""
    name = headers.get("x-session-id", "")
    if not name:
        raise RequestError(
            400,
            "X-Session-ID must name a session: without it nothing can be restored",
            code="missing",
        )
    return {**body, SESSION_FIELD: name}


def _read_redact(body: JsonObject, headers: Mapping[str, str]) -> JsonObject:
    """Reads a redact request; texts that are JSON stay JSON.

    Such texts are arguments of tools.
    """
    texts = [{"json": string} if is_json(string) else string for string in _read_texts(body)]
    return _add_session(body, headers) | {"texts": texts}


def _build_redacted(_: JsonObject, released: JsonObject) -> JsonObject:
    texts = released.get("texts") or ()
    return {"texts": [string["json"] if isinstance(string, dict) else string for string in texts]}


def _build_rehydrated(body: JsonObject, pieces: PieceRestorer) -> JsonObject:
    return {"texts": [pieces.restore_text(string) for string in _read_texts(body)]}


def _restore_piece(body: JsonObject, pieces: PieceRestorer) -> JsonObject:
    """Restores a piece of a stream as far as it is certain.

    LiteLLM carries all the text before it to the next request.
    """
    if not all(isinstance(body.get(name), kind) for name, kind in PIECE_FIELDS.items()):
        raise RequestError(400, "text and carry must be strings, and final true or false")
    before, piece, final = body["carry"], body["text"], body["final"]
    certain = pieces.restore_piece(before, piece, final=final)
    return {"text": certain, "carry": "" if final else before + piece}


def _build_route(
    path: str, build_answer_reply: Callable[[JsonObject, PieceRestorer], JsonObject] | None = None
) -> Operation:
    redacts = build_answer_reply is None
    return Operation(
        name="litellm." + path.strip("/").replace("/", "."),
        path=path,
        request=REDACT_REQUEST,
        answer=PASSED,
        find_messages=lambda body: (("text", ("texts", i)) for i, _ in enumerate(body["texts"])),
        get_conversation=lambda body: body[SESSION_FIELD],
        build_error=openai.build_error,
        guardrail=Guardrail(
            read=_read_redact if redacts else _add_session,
            has_answer=lambda _: not redacts,
            build_request_reply=_build_redacted,
            build_answer_reply=build_answer_reply or (lambda body, _: body),
            returned=("texts",),
        ),
    )


REDACT = _build_route("/guard/redact")
REHYDRATE = _build_route("/guard/rehydrate", _build_rehydrated)
REHYDRATE_PIECE = _build_route("/guard/rehydrate/stream", _restore_piece)
