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
from textveil.gateway.leaves import (
    Act,
    Path,
    each,
    either,
    fields,
    one_of,
    rebuilt,
    record,
    shaped,
    text,
    typed,
    whole,
)
from textveil.gateway.pieces import AnswerPieces, is_json
from textveil.gateway.protocols import openai
from textveil.gateway.protocols.chat import MESSAGE, SEALED, TOOL, TOOL_CALL
from textveil.gateway.protocols.contract import Body, Guardrail, Operation, listed, messages_in

LABELLED = shaped(r"[ -~]{1,255}")
"""Rule for LiteLLM's name of a call, or that of its client."""
MEDIA, IGNORED = whole(Act.MEDIA), whole(Act.DROP)

# ---- the generic guardrail API -------------------------------------------------------------------

_ASSISTANT = MESSAGE.kinds["assistant"]
_KINDS = {
    "thinking": record(thinking=text(), signature=SEALED),
    "redacted_thinking": record(data=SEALED),
}
ROW = replace(
    MESSAGE,
    kinds={
        **MESSAGE.kinds,
        "assistant": replace(
            _ASSISTANT,
            fields={**(_ASSISTANT.fields or {}), "thinking_blocks": each(typed(**_KINDS))},
        ),
    },
)
"""Rule for a message.

LiteLLM shows no thinking of an answer, so a thinking text of the model is not known here: it goes
on if nothing in it is private, and else it is left out, since its signer would refuse a changed
one.
"""

REQUEST = record(
    input_type=one_of("request", "response"),
    litellm_call_id=LABELLED,
    structured_messages=each(ROW),
    texts=each(text()),
    tool_calls=each(TOOL_CALL),
    tools=each(TOOL),
    images=each(MEDIA),
    **fields(IGNORED, "litellm_trace_id litellm_version model request_data request_headers"),
    **fields(IGNORED, "additional_provider_specific_params"),
)
"""Rule for a guardrail request.

Ignored fields are for the guardrail only, which does not pass them on.
"""


def _build_error(refused: RequestError) -> Body:
    return {"action": "BLOCKED", "blocked_reason": refused.said}


def _find_texts(body: Body) -> Iterator[tuple[Path, str]]:
    """Yields the texts of messages, with their paths.

    LiteLLM shows them a second time as `texts`.
    """
    for i, row in enumerate(listed(body, "structured_messages")):
        content = row.get("content") if isinstance(row, dict) else None
        if isinstance(content, str):
            yield (i, "content"), content
        for j, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                yield (i, "content", j, "text"), part["text"]


def _locate_texts(body: Body) -> list[Path | None]:
    """Finds the path in the messages for each of `texts`.

    None for a text that is in no message.
    """
    unused: dict[str, deque[Path]] = defaultdict(deque)
    for path, string in _find_texts(body):
        unused[string].append(path)
    texts = listed(body, "texts")
    queues = [unused.get(string) if isinstance(string, str) else None for string in texts]
    return [places.popleft() if places else None for places in queues]


def _deduplicate(body: Body, _: Mapping[str, str]) -> Body:
    """Removes the texts and calls that a request has twice.

    So no text is drawn twice.
    """
    request, calls_in_messages = dict(body), _collect_calls(body)
    if isinstance(texts := body.get("texts"), list):
        pairs = zip(texts, _locate_texts(body), strict=True)
        request["texts"] = [string for string, place in pairs if place is None]
    if isinstance(calls := body.get("tool_calls"), list):
        request["tool_calls"] = [
            each for each in calls if _serialize_call(each) not in calls_in_messages
        ]
    return request


def _collect_calls(body: Body) -> set[str]:
    """Returns the tool calls in messages, as JSON."""
    several = listed(body, "structured_messages")
    lists = [row.get("tool_calls") for row in several if isinstance(row, dict)]
    return {_serialize_call(each) for calls in lists if isinstance(calls, list) for each in calls}


def _serialize_call(call: Any) -> str:
    """Serializes a tool call without the fields that LiteLLM adds."""
    names = ("id", "function", "custom")
    bare = {name: call[name] for name in names if name in call} if isinstance(call, dict) else call
    return json.dumps(bare, sort_keys=True)


def _find_messages(body: Body) -> Iterator[tuple[str, Path]]:
    yield from messages_in(body, "structured_messages")
    for i, _ in enumerate(listed(body, "texts")):
        yield "text", ("texts", i)


def _build_release(body: Body, released: Body) -> Body:
    """Builds the reply to a request with its released texts.

    It has messages and tools, too, where they changed otherwise.

    Raises:
        RequestError: a tool call would have to change, and LiteLLM takes such a change from no
            reply.
    """
    messages = _get_list(body, "structured_messages")
    rows = _check_rows(messages, _get_list(released, "structured_messages"))
    if _get_list(released, "tool_calls") != _drop_nulls(
        _get_list(_deduplicate(body, {}), "tool_calls")
    ):
        raise RequestError(
            400, "tool_calls hold what is private, and LiteLLM changes them in messages only"
        )
    rest, places = iter(_get_list(released, "texts")), _locate_texts(body)
    texts = [next(rest) if place is None else _get_at(rows, place) for place in places]
    reply: Body = {"texts": texts}
    alike: dict[Any, str] = dict(zip(places, texts, strict=True))
    if _drop_nulls(rebuilt(messages, alike)) != rows:
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
            400, "structured_messages hold what is not known here, and LiteLLM would send it again"
        )
    return rows


def _get_list(body: Body, name: str) -> list[Any]:
    """Returns a list of a request; empty if it has none."""
    items: list[Any] = body.get(name) or []
    return items


def _drop_changed_thoughts(received: Body, released: Body) -> Body:
    """Removes the changed thinking blocks of a released message."""
    if "thinking_blocks" not in released:
        return released
    pairs = zip(received["thinking_blocks"], released["thinking_blocks"], strict=True)
    thoughts = [new for old, new in pairs if old == new]
    rest = {name: value for name, value in released.items() if name != "thinking_blocks"}
    return rest | ({"thinking_blocks": thoughts} if thoughts else {})


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
            _has_same_lists(received[name], released[name])
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


def _name_client(body: Body) -> str:
    """Names LiteLLM's client, by its key and its end user."""
    data = body.get("request_data")
    data = data if isinstance(data, dict) else {}
    return json.dumps([data.get("user_api_key_hash"), data.get("user_api_key_end_user_id")])


def _read_texts(body: Body) -> list[str]:
    """Returns the texts of an answer.

    Raises:
        RequestError: they are no list of strings.
    """
    texts = body.get("texts") or []
    if isinstance(texts, list) and all(isinstance(string, str) for string in texts):
        return texts
    raise RequestError(400, "texts must be a list of strings", param="texts")


def _build_restored(body: Body, pieces: AnswerPieces) -> Body:
    """Builds the reply about an answer, with lengths to hold back.

    Of a stream LiteLLM shows more each time; it must withhold the end that may yet change.
    """
    texts = _read_texts(body)
    both = [pieces.both(string) for string in texts]
    restored = [certain + rest for certain, rest in both]
    held = [len(rest) for _, rest in both]
    changed = restored != texts or any(held)
    action = "GUARDRAIL_INTERVENED" if changed else "NONE"
    return {"action": action, "texts": restored, "stream_holdback_chars": held}


GENERIC = Operation(
    name="litellm.guardrail",
    path="/beta/litellm_basic_guardrail_api",
    request=REQUEST,
    answer=whole(Act.PASS),
    needs=("input_type",),
    messages=_find_messages,
    grows=lambda body: body.get("litellm_call_id") or None,
    error=_build_error,
    guardrail=Guardrail(
        read=_deduplicate,
        whose=_name_client,
        restores=lambda body: body.get("input_type") == "response",
        released=_build_release,
        restored=_build_restored,
        # With an error status, LiteLLM may be configured to send the request unprotected.
        status=lambda _: 200,
    ),
)

# ---- redact and rehydrate ------------------------------------------------------------------------

SESSION = "session"
REDACTED = record(texts=each(either(text(), record(json=text(Act.ARGUMENTS)))), session=LABELLED)
PIECE = {"text": str, "carry": str, "final": bool}


def _add_session(body: Body, headers: Mapping[str, str]) -> Body:
    """Adds the session's name, which is in a header, to the request."""
    name = headers.get("x-session-id", "")
    if not name:
        raise RequestError(
            400, "X-Session-ID must name a session, or nothing could be restored", code="missing"
        )
    return {**body, SESSION: name}


def _read_redact(body: Body, headers: Mapping[str, str]) -> Body:
    """Reads a redact request; texts that are JSON stay JSON.

    Such texts are arguments of tools.
    """
    texts = [{"json": string} if is_json(string) else string for string in _read_texts(body)]
    return _add_session(body, headers) | {"texts": texts}


def _build_redacted(_: Body, released: Body) -> Body:
    texts = released.get("texts") or ()
    return {"texts": [string["json"] if isinstance(string, dict) else string for string in texts]}


def _build_rehydrated(body: Body, pieces: AnswerPieces) -> Body:
    return {"texts": [pieces.whole(string) for string in _read_texts(body)]}


def _restore_piece(body: Body, pieces: AnswerPieces) -> Body:
    """Restores a piece of a stream as far as it is certain.

    LiteLLM carries all the text before it to the next request.
    """
    if not all(isinstance(body.get(name), kind) for name, kind in PIECE.items()):
        raise RequestError(400, "text and carry must be strings, and final true or false")
    before, piece, final = body["carry"], body["text"], body["final"]
    certain = pieces.piece(before, piece, final=final)
    return {"text": certain, "carry": "" if final else before + piece}


def _build_route(
    path: str, restored: Callable[[Body, AnswerPieces], Body] | None = None
) -> Operation:
    redacts = restored is None
    return Operation(
        name="litellm." + path.strip("/").replace("/", "."),
        path=path,
        request=REDACTED,
        answer=whole(Act.PASS),
        messages=lambda body: (("text", ("texts", i)) for i, _ in enumerate(body["texts"])),
        grows=lambda body: body[SESSION],
        error=openai.error,
        guardrail=Guardrail(
            read=_read_redact if redacts else _add_session,
            restores=lambda _: not redacts,
            released=_build_redacted,
            restored=restored or (lambda body, _: body),
        ),
    )


REDACT = _build_route("/guard/redact")
REHYDRATE = _build_route("/guard/rehydrate", _build_rehydrated)
REHYDRATE_PIECE = _build_route("/guard/rehydrate/stream", _restore_piece)
