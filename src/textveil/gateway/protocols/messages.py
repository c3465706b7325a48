"""Anthropic messages, and the count of their tokens.

In: JSON of requests, answers and events. Out: the tables of their leaves; restored events.
Not here: recognizing signed text (`session.chains`).

Thinking is signed: the upstream takes it back only byte for byte. The client sees it restored, and
the thinking that the client sends back is replaced by the text as received. Unknown thinking cannot
be protected without breaking its signature, so its block is left out.
"""

import json
from collections.abc import Iterator
from typing import Any

from textveil.gateway.answers import Restoring
from textveil.gateway.errors import RequestError
from textveil.gateway.leaves import (
    ID,
    NAME,
    NUMBER,
    Act,
    LeafRule,
    Path,
    each,
    either,
    fields,
    one_of,
    rebuilt,
    record,
    shaped,
    tagged,
    text,
    typed,
    whole,
)
from textveil.gateway.protocols.contract import ANTHROPIC, Body, Event, Operation, Pair, messages_in

PROTECTED, ARGUMENTS, SIGNED = text(), text(Act.ARGUMENTS), text(Act.SIGNED)
MEDIA, SCHEMA, DROPPED, ANY, PASSED = map(
    whole, (Act.MEDIA, Act.SCHEMA, Act.DROP, Act.OBJECT, Act.PASS)
)
SEALED = shaped(r"[A-Za-z0-9+/=_\-]*")
"""Rule for values only the upstream can read: signatures, encrypted content."""
DATE = shaped(r"[0-9A-Za-z:.+\-]{1,40}")

# ---- blocks --------------------------------------------------------------------------------------

CACHED = typed(ephemeral=record(ttl=one_of("5m", "1h")))
_OF_DOCUMENT: dict[str, LeafRule] = {
    "cited_text": PROTECTED, "document_title": PROTECTED, "document_index": NUMBER, "file_id": ID
}  # fmt: skip
CITATION = typed(
    char_location=record(**_OF_DOCUMENT, **fields(NUMBER, "start_char_index end_char_index")),
    page_location=record(**_OF_DOCUMENT, **fields(NUMBER, "start_page_number end_page_number")),
    content_block_location=record(
        **_OF_DOCUMENT, **fields(NUMBER, "start_block_index end_block_index")
    ),
    web_search_result_location=record(
        cited_text=PROTECTED, title=PROTECTED, url=PROTECTED, encrypted_index=SEALED
    ),
    search_result_location=record(
        cited_text=PROTECTED,
        title=PROTECTED,
        source=PROTECTED,
        **fields(NUMBER, "search_result_index start_block_index end_block_index"),
    ),
)
CITED = record(enabled=NUMBER)


def block(**fields: LeafRule) -> LeafRule:
    """Builds the rule for a part of a message.

    Any part may end the prefix that the upstream caches.
    """
    return record(**fields, cache_control=CACHED)


TEXT = block(text=PROTECTED, citations=each(CITATION))
IMAGE = block(
    source=typed(
        base64=record(media_type=NAME, data=MEDIA),
        url=record(url=MEDIA),
        file=record(file_id=MEDIA),
    ),
    transformations=record(oversized_image=one_of("downsize", "error")),
)
_MEDIA_TYPE = one_of("text/plain", "application/pdf")
DOCUMENT = block(
    title=PROTECTED,
    context=PROTECTED,
    source=typed(
        text=record(data=PROTECTED, media_type=_MEDIA_TYPE),
        content=record(content=either(PROTECTED, each(typed(text=TEXT, image=IMAGE)))),
        base64=record(data=MEDIA, media_type=_MEDIA_TYPE),
        url=record(url=MEDIA),
        file=record(file_id=MEDIA),
    ),
    citations=CITED,
)
SEARCH_RESULT = block(
    title=PROTECTED, source=PROTECTED, content=each(typed(text=TEXT)), citations=CITED
)
TOOL_REFERENCE = block(tool_name=NAME)
BROWSER = block(
    tabs=each(record(tab_id=ID, title=PROTECTED, url=PROTECTED, active=NUMBER)),
    state_changes=each(
        typed(
            tab_opened=record(tab_id=ID),
            download_started=record(download_id=ID, url=PROTECTED),
            download_completed=record(
                download_id=ID, url=PROTECTED, path=PROTECTED, size_bytes=NUMBER
            ),
            download_failed=record(download_id=ID, url=PROTECTED, error=PROTECTED),
        )
    ),
)
CALLER = typed(
    direct=record(),
    **{f"code_execution_{date}": record(tool_id=ID) for date in (20250825, 20260120, 20260521)},
)
FAILED = record(error_code=ID, error_message=PROTECTED)
OUTPUTS = each(record(type=ID, file_id=ID))
RAN = record(stdout=PROTECTED, stderr=PROTECTED, return_code=NUMBER, content=OUTPUTS)
REFERENCED = record(
    tool=typed(
        tool_reference=record(name=NAME),
        mcp_tool_reference=record(name=NAME, server_name=NAME),
        mcp_toolset_reference=record(server_name=NAME),
        tool_definition=record(definition=SCHEMA),
    ),
    cache_control=CACHED,
)


def result(**kinds: LeafRule) -> LeafRule:
    """Builds the rule for the answer of an upstream's tool."""
    return block(tool_use_id=ID, caller=CALLER, content=typed(**kinds))


BLOCK = typed(
    text=TEXT,
    image=IMAGE,
    document=DOCUMENT,
    search_result=SEARCH_RESULT,
    thinking=block(thinking=SIGNED, signature=SEALED),
    redacted_thinking=block(data=SEALED),
    compaction=block(
        content=SIGNED,
        tool_changes=each(typed(tool_addition=REFERENCED, tool_removal=REFERENCED)),
        **fields(SEALED, "signature encrypted_content"),
    ),
    tool_use=block(id=ID, name=NAME, input=ANY, caller=CALLER, toolset_name=NAME),
    tool_result=block(
        tool_use_id=ID,
        toolset_name=NAME,
        is_error=NUMBER,
        content=either(
            PROTECTED,
            each(
                typed(
                    text=TEXT,
                    image=IMAGE,
                    search_result=SEARCH_RESULT,
                    document=DOCUMENT,
                    tool_reference=TOOL_REFERENCE,
                    browser_state=BROWSER,
                )
            ),
        ),
    ),
    server_tool_use=block(id=ID, name=NAME, input=ANY, caller=CALLER),
    web_search_tool_result=block(
        tool_use_id=ID,
        caller=CALLER,
        content=either(
            each(
                typed(
                    web_search_result=record(
                        title=PROTECTED, url=PROTECTED, encrypted_content=SEALED, page_age=PROTECTED
                    )
                )
            ),
            typed(web_search_tool_result_error=FAILED),
        ),
    ),
    web_fetch_tool_result=result(
        web_fetch_result=record(url=PROTECTED, retrieved_at=DATE, content=typed(document=DOCUMENT)),
        web_fetch_tool_result_error=FAILED,
    ),
    code_execution_tool_result=result(
        code_execution_result=RAN,
        encrypted_code_execution_result=record(
            encrypted_stdout=SEALED, stderr=PROTECTED, return_code=NUMBER, content=OUTPUTS
        ),
        code_execution_tool_result_error=FAILED,
    ),
    bash_code_execution_tool_result=result(
        bash_code_execution_result=RAN, bash_code_execution_tool_result_error=FAILED
    ),
    text_editor_code_execution_tool_result=result(
        text_editor_code_execution_view_result=record(
            content=PROTECTED,
            file_type=one_of("text", "image", "pdf"),
            **fields(NUMBER, "num_lines start_line total_lines"),
        ),
        text_editor_code_execution_create_result=record(is_file_update=NUMBER),
        text_editor_code_execution_str_replace_result=record(
            lines=each(PROTECTED), **fields(NUMBER, "new_lines new_start old_lines old_start")
        ),
        text_editor_code_execution_tool_result_error=FAILED,
    ),
    tool_search_tool_result=result(
        tool_search_tool_search_result=record(
            tool_references=each(typed(tool_reference=TOOL_REFERENCE))
        ),
        tool_search_tool_result_error=FAILED,
    ),
    advisor_tool_result=result(
        advisor_result=record(text=PROTECTED, stop_reason=ID),
        advisor_redacted_result=record(encrypted_content=SEALED, stop_reason=ID),
        advisor_tool_result_error=FAILED,
    ),
    mcp_tool_use=block(id=ID, name=NAME, server_name=NAME, input=ANY),
    mcp_tool_result=block(
        tool_use_id=ID, is_error=NUMBER, content=either(PROTECTED, each(typed(text=TEXT)))
    ),
    mcp_tool_listing=block(
        mcp_server_name=NAME, tools=each(record(name=NAME, description=SCHEMA, input_schema=SCHEMA))
    ),
    container_upload=block(file_id=MEDIA),
    tool_addition=REFERENCED,
    tool_removal=REFERENCED,
    fallback=block(**{"from": record(model=NAME), "to": record(model=NAME), "trigger": DROPPED}),
)

# ---- requests ------------------------------------------------------------------------------------

CONTENT = either(PROTECTED, each(BLOCK))
MESSAGE = tagged(
    "role",
    system=record(
        content=CONTENT,
        clear_at=one_of("next_user_message", "never"),
        output_config=record(effort=one_of("low", "medium", "high", "xhigh", "max")),
    ),
    user=record(content=CONTENT),
    assistant=record(content=CONTENT),
)
_SHARED: dict[str, LeafRule] = {
    "name": NAME,
    "cache_control": CACHED,
    "allowed_callers": each(ID),
    "defer_loading": NUMBER,
    "strict": NUMBER,
}
TOLD = record(
    **_SHARED,
    eager_input_streaming=NUMBER,
    **fields(SCHEMA, "description input_schema input_examples"),
)
BUILT_IN = record(**_SHARED, input_examples=SCHEMA, configs=SCHEMA, max_characters=NUMBER)
COMPUTER = record(
    **_SHARED,
    input_examples=SCHEMA,
    **fields(NUMBER, "display_height_px display_width_px display_number enable_zoom"),
)
SITES = each(shaped(r"[A-Za-z0-9*._:/\-]{1,256}"))
_SOURCES = typed(
    **fields(record(tools=each(typed(tool_reference=record(name=NAME)))), "only except"),
    **fields(record(), "all none"),
)
WEB = record(
    **_SHARED,
    allowed_domains=SITES,
    blocked_domains=SITES,
    citations=CITED,
    response_inclusion=one_of("full", "excluded"),
    url_sources=record(
        client_tool_results=_SOURCES, server_tool_results=_SOURCES, user_input=_SOURCES
    ),
    user_location=typed(
        approximate=record(
            city=PROTECTED, region=PROTECTED, country=shaped("[A-Za-z]{2}"), timezone=DROPPED
        )
    ),
    **fields(NUMBER, "max_content_tokens max_uses use_cache"),
)
TOOL = typed(
    **{"": TOLD, "custom": TOLD},
    **{f"bash_{date}": BUILT_IN for date in (20241022, 20250124)},
    **{f"code_execution_{date}": BUILT_IN for date in (20250522, 20250825, 20260120, 20260521)},
    **{f"text_editor_{date}": BUILT_IN for date in (20241022, 20250124, 20250429, 20250728)},
    **{
        f"tool_search_tool_{way}": BUILT_IN
        for way in ("bm25", "regex", "bm25_20251119", "regex_20251119")
    },
    memory_20250818=BUILT_IN,
    browser_toolset_20260801=BUILT_IN,
    computer_toolset_20260801=BUILT_IN,
    **{f"computer_{date}": COMPUTER for date in (20241022, 20250124, 20251124)},
    **{f"web_search_{date}": WEB for date in (20250305, 20260209, 20260318)},
    **{f"web_fetch_{date}": WEB for date in (20250910, 20260209, 20260309, 20260318)},
    advisor_20260301=record(
        **_SHARED, model=NAME, caching=CACHED, max_tokens=NUMBER, max_uses=NUMBER
    ),
    mcp_toolset=record(
        mcp_server_name=NAME, cache_control=CACHED, **fields(SCHEMA, "configs default_config tools")
    ),
)
_EFFORT = one_of("low", "medium", "high", "xhigh", "max")
OUTPUT = record(
    effort=_EFFORT,
    format=typed(json_schema=record(schema=SCHEMA)),
    task_budget=record(type=ID, total=NUMBER, remaining=NUMBER),
)
_BOUND = record(prefix_mismatch_behavior=one_of("error", "drop_block"))
_SHOWN = one_of("summarized", "omitted", "updates")
THINKING = typed(
    enabled=record(budget_tokens=NUMBER, display=_SHOWN, block_binding=_BOUND),
    adaptive=record(display=_SHOWN, block_binding=_BOUND),
    disabled=record(),
    between_tools=record(),
)
_COUNT = record(type=one_of("input_tokens", "tool_uses", "thinking_turns", "all"), value=NUMBER)
_ONE_AT_A_TIME = record(disable_parallel_tool_use=NUMBER)

COUNTED: dict[str, LeafRule] = {
    "system": either(PROTECTED, each(typed(text=TEXT))),
    "messages": each(MESSAGE),
    "model": NAME,
    "cache_control": CACHED,
    "context_management": record(
        edits=each(
            typed(
                clear_tool_uses_20250919=record(
                    clear_at_least=_COUNT,
                    clear_tool_inputs=either(NUMBER, each(NAME)),
                    exclude_tools=each(NAME),
                    keep=_COUNT,
                    trigger=_COUNT,
                ),
                clear_thinking_20251015=record(keep=either(one_of("all"), _COUNT)),
                compact_20260112=record(
                    instructions=PROTECTED, pause_after_compaction=NUMBER, trigger=_COUNT
                ),
            )
        )
    ),
    "mcp_servers": whole(Act.REFUSE),
    "output_config": OUTPUT,
    "output_format": typed(json_schema=record(schema=SCHEMA)),
    "speed": one_of("fast", "standard"),
    "thinking": THINKING,
    "thread": whole(Act.REFUSE),  # it names a conversation that the upstream keeps
    "tool_choice": typed(
        auto=_ONE_AT_A_TIME,
        any=_ONE_AT_A_TIME,
        tool=record(name=NAME, **(_ONE_AT_A_TIME.fields or {})),
        none=record(),
    ),
    "tools": each(TOOL),
    "user_profile_id": ID,
    "workspace_id": ID,
}
COUNT_REQUEST = record(**COUNTED)
REQUEST = record(
    **COUNTED,
    billing_policy=record(type=ID, bill_to=one_of("self", "user_profile")),
    compaction=record(type=ID, instructions=PROTECTED),
    container=either(
        ID,
        record(
            id=ID, skills=each(record(type=one_of("anthropic", "custom"), skill_id=ID, version=ID))
        ),
    ),
    diagnostics=record(previous_message_id=ID),
    fallback_credit_token=either(
        SEALED, record(token=SEALED, mode=one_of("strict", "best_effort"))
    ),
    fallbacks=either(
        one_of("default"),
        each(
            record(
                model=NAME,
                max_tokens=NUMBER,
                output_config=OUTPUT,
                speed=one_of("fast", "standard"),
                thinking=THINKING,
            )
        ),
    ),
    inference_geo=shaped("[a-z_]{1,20}"),
    metadata=record(user_id=whole(Act.USER)),
    service_tier=one_of("auto", "standard_only"),
    stop_sequences=each(PROTECTED),
    **fields(NUMBER, "max_tokens stream temperature top_k top_p"),
)

# ---- answers -------------------------------------------------------------------------------------

_ENDED: dict[str, LeafRule] = {
    "stop_reason": ID,
    "stop_sequence": PROTECTED,
    "stop_details": record(
        explanation=PROTECTED,
        fallback_has_prefill_claim=NUMBER,
        **fields(ID, "type category"),
        **fields(PASSED, "recommended_model fallback_credit_token"),
    ),
    "container": PASSED,
}
_REPORTED = dict.fromkeys(
    ("usage", "context_management", "diagnostics", "input_transformations"), PASSED
)
ANSWER = record(id=ID, type=ID, role=ID, model=PASSED, content=each(BLOCK), **_ENDED, **_REPORTED)
FAILURE = record(type=ID, error=record(type=ID, message=PROTECTED), request_id=PASSED)
DELTA = typed(
    text_delta=record(text=PROTECTED),
    input_json_delta=record(partial_json=ARGUMENTS),
    thinking_delta=record(thinking=SIGNED, estimated_tokens=NUMBER),
    signature_delta=record(signature=PASSED),
    citations_delta=record(citation=CITATION),
    compaction_delta=record(
        content=SIGNED, encrypted_content=PASSED, signature=PASSED, tool_changes=PASSED
    ),
)
EVENT = typed(
    message_start=record(message=ANSWER),
    content_block_start=record(index=NUMBER, content_block=BLOCK),
    content_block_delta=record(index=NUMBER, delta=DELTA),
    content_block_stop=record(index=NUMBER),
    message_delta=record(delta=record(**_ENDED), **_REPORTED),
    message_stop=record(),
    ping=record(),
    error=FAILURE,
)
"""Leaves of an event."""


ATTRIBUTION = "x-anthropic-billing-header:"
"""Prefix of the system block in which a client names itself.

It changes with every request: if it were a message, all messages after it would be new, too.
"""


def messages(body: Body) -> Iterator[tuple[str, Path]]:
    """Yields the parts of the system prompt, and the messages."""
    system = body.get("system")
    if isinstance(system, list):
        for i, block in enumerate(system):
            if not (isinstance(block, dict) and str(block.get("text")).startswith(ATTRIBUTION)):
                yield "system", ("system", i)
    elif system:
        yield "system", ("system",)
    yield from messages_in(body, "messages")


def said(answer: Body) -> list[Body]:
    """Returns the message of an answer."""
    content = answer.get("content")
    return [{"role": "assistant", "content": content}] if isinstance(content, list) else []


def _find_objects(kind: str, value: Any, path: Path = ()) -> Iterator[tuple[Path, Body]]:
    """Yields the objects of a type in a body.

    What a tool gets as its input is left out.
    """
    if isinstance(value, dict):
        if value.get("type") == kind:
            yield path, value
        for name, each in value.items():
            if name != "input":
                yield from _find_objects(kind, each, (*path, name))
    elif isinstance(value, list):
        for i, each in enumerate(value):
            yield from _find_objects(kind, each, (*path, i))


def _list_documents(asked: Body) -> list[str]:
    """Lists the documents of a request; "" for those without text."""
    sources = (
        document.get("source") for _, document in _find_objects("document", asked.get("messages"))
    )
    return [_get_document_text(source) for source in sources]


def _get_document_text(source: Any) -> str:
    plain = isinstance(source, dict) and source.get("type") == "text"
    text = source.get("data") if plain else ""
    return text if isinstance(text, str) else ""


def placed(changed: Pair, asked: Pair) -> Body:
    """Corrects the character offsets of citations, since documents changed.

    See `Operation`.
    """
    old, new = ([*_find_objects("char_location", each)] for each in changed)
    before, after = map(_list_documents, asked) if old else ([], [])
    if len(old) != len(new) or len(before) != len(after):
        return changed[1]
    places: dict[Path, Any] = {}
    for (_, received), (path, restored) in zip(old, new, strict=True):
        place = _find_quotation(received, restored, before, after)
        if place >= 0:
            end = place + len(restored["cited_text"])
            ends = ("start_char_index", place), ("end_char_index", end)
            places |= {(*path, name): at for name, at in ends}
    body: Body = rebuilt(changed[1], places)
    return body


def _find_quotation(received: Body, restored: Body, before: list[str], after: list[str]) -> int:
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
    place = -len(new)
    for _ in range(before[index].count(old, 0, start) + 1):
        place = after[index].find(new, place + len(new))
        if place < 0:
            break
    return place


PIECES: dict[str, tuple[str, Act]] = {
    "text_delta": ("text", Act.PROTECT),
    "thinking_delta": ("thinking", Act.SIGNED),
    "input_json_delta": ("partial_json", Act.ARGUMENTS),
    "compaction_delta": ("content", Act.SIGNED),
}
"""Field and act of the text of a delta, by its type."""

BEGUN = {"text": "text_delta", "thinking": "thinking_delta", "compaction": "compaction_delta"}
"""Type of the deltas that continue a block, by the block's type."""


class _OpenBlock:
    """Block of an answer, as received and as restored.

    Attributes:
        came: the received block without its streamed texts.
        made: the restored block without its streamed texts.
        open: types of deltas that may have held-back text.
        seen: types of deltas that have come.
    """

    def __init__(self, received: Body, restored: Body) -> None:
        self.came, self.made = received, restored
        self.open: list[str] = []
        self.seen: list[str] = []

    def add(self, kind: str, received: Body, restored: Body) -> None:
        """Adds a delta that is no text: a citation or a signature."""
        for block, delta in ((self.came, received), (self.made, restored)):
            if kind == "citations_delta":
                block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
            elif kind == "signature_delta":
                block["signature"] = block.get("signature", "") + received["signature"]


class MessageEvents:
    """Stream of the events of an answer; see `Stream`."""

    remembered = ()

    def __init__(self, restoring: Restoring) -> None:
        self._restoring = restoring
        self._blocks: dict[int, _OpenBlock] = {}
        self._at = 0
        self._ended = False

    @property
    def ended(self) -> bool:
        """True once the whole answer has come."""
        return self._ended

    @property
    def messages(self) -> list[tuple[Body, Body]]:
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
            yield Event(kind, {**data, "content_block": self._begin(index, data["content_block"])})
        elif kind == "content_block_delta":
            yield from self._restore_delta(index, data)
        elif kind == "content_block_stop":
            yield from self._flush(index)
            yield Event(kind, data)
        else:
            if kind == "message_stop":
                yield from self.close()
                self._ended = True
            yield Event(kind, self._restoring.whole(data, EVENT))

    def close(self) -> Iterator[Event]:
        """Yields the held-back text of all blocks."""
        for index in sorted(self._blocks):
            yield from self._flush(index)

    def failed(self, refused: RequestError) -> Event:
        """Writes an error as the last event of the stream."""
        return Event("error", error(refused))

    def _begin(self, index: int, block: Body) -> Body:
        """Opens a block and restores its beginning."""
        kind = BEGUN.get(block.get("type", ""))
        field = PIECES[kind][0] if kind else ""
        first = block.get(field)
        begun = {**block, field: ""} if isinstance(first, str) else block
        open_block = self._blocks[index] = _OpenBlock(
            dict(begun), self._restoring.whole(begun, BLOCK)
        )
        if not (kind and isinstance(first, str)):
            return open_block.made
        return {**open_block.made, field: self._restore_piece(index, kind, first)}

    def _restore_delta(self, index: int, data: Body) -> Iterator[Event]:
        """Restores a delta as far as it is certain."""
        delta = data["delta"]
        open_block = self._blocks.setdefault(index, _OpenBlock({}, {}))
        kind = delta.get("type", "")
        field = PIECES[kind][0] if kind in PIECES else ""
        if isinstance(delta.get(field), str):
            bare = {name: value for name, value in delta.items() if name != field}
            rest = self._restoring.whole(bare, DELTA)
            piece = self._restore_piece(index, kind, delta[field])
            if piece or not delta[field]:
                yield Event("content_block_delta", {**data, "delta": {**rest, field: piece}})
            return
        restored = placed((delta, self._restoring.whole(delta, DELTA)), self._restoring.asked)
        if kind == "signature_delta":
            yield from self._flush(index)  # a signed text must be whole before its signature
        open_block.add(kind, delta, restored)
        yield Event("content_block_delta", {**data, "delta": restored})

    def _restore_piece(self, index: int, kind: str, piece: str) -> str:
        open_block = self._blocks[index]
        for types in (open_block.open, open_block.seen):
            if kind not in types:
                types.append(kind)
        tool = str(open_block.came.get("name") or "")
        return self._restoring.piece((index, kind), piece, PIECES[kind][1], tool)

    def _flush(self, index: int) -> Iterator[Event]:
        """Yields the held-back text of a block."""
        open_block = self._blocks.get(index)
        while open_block is not None and open_block.open:
            kind = open_block.open.pop()
            if rest := self._restoring.rest((index, kind)):
                delta = {"type": kind, PIECES[kind][0]: rest}
                event = {"type": "content_block_delta", "index": index, "delta": delta}
                yield Event("content_block_delta", event)

    def _build_block(self, index: int) -> tuple[Body, Body]:
        """Returns a whole block, as received and as restored."""
        open_block = self._blocks[index]
        both = dict(open_block.came), dict(open_block.made)
        for kind in open_block.seen:
            for block, value in zip(both, self._restoring.both((index, kind)), strict=True):
                if kind == "input_json_delta":
                    block["input"] = json.loads(value) if value else block.get("input", {})
                else:
                    block[PIECES[kind][0]] = value
        return both


# ---- the routes ----------------------------------------------------------------------------------

ERRORS = {
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


def error(refused: RequestError) -> Body:
    """Converts an error to Anthropic's form.

    Its type is that of the upstream's error, if there is one.
    """
    usual = ERRORS[400 if refused.status < 500 else 500]
    kind = refused.kind or ERRORS.get(refused.status, usual)
    return {"type": "error", "error": {"type": kind, "message": refused.said}}


def _is_json_requested(body: Body) -> bool:
    wanted = body.get("output_config")
    return bool(body.get("output_format") or (isinstance(wanted, dict) and wanted.get("format")))


KEYS = ("x-api-key", "authorization")

MESSAGES = Operation(
    name="anthropic.messages",
    path="/messages",
    request=REQUEST,
    needs=("model", "messages"),
    answer=ANSWER,
    message=MESSAGE,
    messages=messages,
    said=said,
    placed=placed,
    stream=MessageEvents,
    as_json=_is_json_requested,
    error=error,
    keys=KEYS,
    forwards=ANTHROPIC,
)
COUNT = Operation(
    name="anthropic.count",
    path="/messages/count_tokens",
    request=COUNT_REQUEST,
    needs=("model", "messages"),
    answer=record(input_tokens=NUMBER, context_management=PASSED),
    message=MESSAGE,
    messages=messages,
    placed=placed,
    error=error,
    keys=KEYS,
    forwards=ANTHROPIC,
)
