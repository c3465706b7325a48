"""Anthropic messages, and the count of their tokens.

In: JSON of requests, answers and events. Out: the tables of their leaves; restored events.
Not here: recognizing signed text (`session.conversations`).

Thinking is signed: the upstream takes it back only byte for byte. The client sees it restored, and
the thinking that the client sends back is replaced by the text as received. Unknown thinking cannot
be protected without breaking its signature, so its block is left out.
"""

import json
from collections.abc import Iterator
from typing import Any

from textveil.gateway.errors import RequestError
from textveil.gateway.protocols.field_rules import (
    API_NAME,
    ID,
    NUMBER,
    Act,
    LeafRule,
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
    variants_by_tag,
)
from textveil.gateway.protocols.operation import (
    ANTHROPIC_HEADERS,
    Event,
    JsonObject,
    JsonPair,
    Operation,
    list_messages,
)
from textveil.gateway.protocols.restoring import AnswerRestorer

PROTECTED, ARGUMENTS, SIGNED = text(), text(Act.ARGUMENTS), text(Act.SIGNED)
MEDIA, SCHEMA, DROPPED, ANY, PASSED = map(
    any_value, (Act.MEDIA, Act.SCHEMA, Act.DROP, Act.OBJECT, Act.PASS)
)
SEALED = pattern(r"[A-Za-z0-9+/=_\-]*")
"""Rule for values only the upstream can read: signatures, encrypted content."""
DATE = pattern(r"[0-9A-Za-z:.+\-]{1,40}")

# ---- blocks --------------------------------------------------------------------------------------

CACHE_CONTROL = variants(ephemeral=record(ttl=choice("5m", "1h")))
_DOCUMENT_FIELDS: dict[str, LeafRule] = {
    "cited_text": PROTECTED, "document_title": PROTECTED, "document_index": NUMBER, "file_id": ID
}  # fmt: skip
CITATION = variants(
    char_location=record(
        **_DOCUMENT_FIELDS, **map_fields(NUMBER, "start_char_index end_char_index")
    ),
    page_location=record(
        **_DOCUMENT_FIELDS, **map_fields(NUMBER, "start_page_number end_page_number")
    ),
    content_block_location=record(
        **_DOCUMENT_FIELDS, **map_fields(NUMBER, "start_block_index end_block_index")
    ),
    web_search_result_location=record(
        cited_text=PROTECTED, title=PROTECTED, url=PROTECTED, encrypted_index=SEALED
    ),
    search_result_location=record(
        cited_text=PROTECTED,
        title=PROTECTED,
        source=PROTECTED,
        **map_fields(NUMBER, "search_result_index start_block_index end_block_index"),
    ),
)
CITATION_OPTION = record(enabled=NUMBER)


def build_block(**fields: LeafRule) -> LeafRule:
    """Builds the rule for a part of a message.

    Any part may end the prefix that the upstream caches.
    """
    return record(**fields, cache_control=CACHE_CONTROL)


TEXT = build_block(text=PROTECTED, citations=array(CITATION))
IMAGE = build_block(
    source=variants(
        base64=record(media_type=API_NAME, data=MEDIA),
        url=record(url=MEDIA),
        file=record(file_id=MEDIA),
    ),
    transformations=record(oversized_image=choice("downsize", "error")),
)
_MEDIA_TYPE = choice("text/plain", "application/pdf")
DOCUMENT = build_block(
    title=PROTECTED,
    context=PROTECTED,
    source=variants(
        text=record(data=PROTECTED, media_type=_MEDIA_TYPE),
        content=record(content=union(PROTECTED, array(variants(text=TEXT, image=IMAGE)))),
        base64=record(data=MEDIA, media_type=_MEDIA_TYPE),
        url=record(url=MEDIA),
        file=record(file_id=MEDIA),
    ),
    citations=CITATION_OPTION,
)
SEARCH_RESULT = build_block(
    title=PROTECTED, source=PROTECTED, content=array(variants(text=TEXT)), citations=CITATION_OPTION
)
TOOL_REFERENCE = build_block(tool_name=API_NAME)
BROWSER = build_block(
    tabs=array(record(tab_id=ID, title=PROTECTED, url=PROTECTED, active=NUMBER)),
    state_changes=array(
        variants(
            tab_opened=record(tab_id=ID),
            download_started=record(download_id=ID, url=PROTECTED),
            download_completed=record(
                download_id=ID, url=PROTECTED, path=PROTECTED, size_bytes=NUMBER
            ),
            download_failed=record(download_id=ID, url=PROTECTED, error=PROTECTED),
        )
    ),
)
CALLER = variants(
    direct=record(),
    **{f"code_execution_{date}": record(tool_id=ID) for date in (20250825, 20260120, 20260521)},
)
TOOL_ERROR = record(error_code=ID, error_message=PROTECTED)
OUTPUTS = array(record(type=ID, file_id=ID))
RUN_RESULT = record(stdout=PROTECTED, stderr=PROTECTED, return_code=NUMBER, content=OUTPUTS)
TOOL_CHANGE = record(
    tool=variants(
        tool_reference=record(name=API_NAME),
        mcp_tool_reference=record(name=API_NAME, server_name=API_NAME),
        mcp_toolset_reference=record(server_name=API_NAME),
        tool_definition=record(definition=SCHEMA),
    ),
    cache_control=CACHE_CONTROL,
)


def build_result(**kinds: LeafRule) -> LeafRule:
    """Builds the rule for the answer of an upstream's tool."""
    return build_block(tool_use_id=ID, caller=CALLER, content=variants(**kinds))


BLOCK = variants(
    text=TEXT,
    image=IMAGE,
    document=DOCUMENT,
    search_result=SEARCH_RESULT,
    thinking=build_block(thinking=SIGNED, signature=SEALED),
    redacted_thinking=build_block(data=SEALED),
    compaction=build_block(
        content=SIGNED,
        tool_changes=array(variants(tool_addition=TOOL_CHANGE, tool_removal=TOOL_CHANGE)),
        **map_fields(SEALED, "signature encrypted_content"),
    ),
    tool_use=build_block(id=ID, name=API_NAME, input=ANY, caller=CALLER, toolset_name=API_NAME),
    tool_result=build_block(
        tool_use_id=ID,
        toolset_name=API_NAME,
        is_error=NUMBER,
        content=union(
            PROTECTED,
            array(
                variants(
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
    server_tool_use=build_block(id=ID, name=API_NAME, input=ANY, caller=CALLER),
    web_search_tool_result=build_block(
        tool_use_id=ID,
        caller=CALLER,
        content=union(
            array(
                variants(
                    web_search_result=record(
                        title=PROTECTED, url=PROTECTED, encrypted_content=SEALED, page_age=PROTECTED
                    )
                )
            ),
            variants(web_search_tool_result_error=TOOL_ERROR),
        ),
    ),
    web_fetch_tool_result=build_result(
        web_fetch_result=record(
            url=PROTECTED, retrieved_at=DATE, content=variants(document=DOCUMENT)
        ),
        web_fetch_tool_result_error=TOOL_ERROR,
    ),
    code_execution_tool_result=build_result(
        code_execution_result=RUN_RESULT,
        encrypted_code_execution_result=record(
            encrypted_stdout=SEALED, stderr=PROTECTED, return_code=NUMBER, content=OUTPUTS
        ),
        code_execution_tool_result_error=TOOL_ERROR,
    ),
    bash_code_execution_tool_result=build_result(
        bash_code_execution_result=RUN_RESULT, bash_code_execution_tool_result_error=TOOL_ERROR
    ),
    text_editor_code_execution_tool_result=build_result(
        text_editor_code_execution_view_result=record(
            content=PROTECTED,
            file_type=choice("text", "image", "pdf"),
            **map_fields(NUMBER, "num_lines start_line total_lines"),
        ),
        text_editor_code_execution_create_result=record(is_file_update=NUMBER),
        text_editor_code_execution_str_replace_result=record(
            lines=array(PROTECTED), **map_fields(NUMBER, "new_lines new_start old_lines old_start")
        ),
        text_editor_code_execution_tool_result_error=TOOL_ERROR,
    ),
    tool_search_tool_result=build_result(
        tool_search_tool_search_result=record(
            tool_references=array(variants(tool_reference=TOOL_REFERENCE))
        ),
        tool_search_tool_result_error=TOOL_ERROR,
    ),
    advisor_tool_result=build_result(
        advisor_result=record(text=PROTECTED, stop_reason=ID),
        advisor_redacted_result=record(encrypted_content=SEALED, stop_reason=ID),
        advisor_tool_result_error=TOOL_ERROR,
    ),
    mcp_tool_use=build_block(id=ID, name=API_NAME, server_name=API_NAME, input=ANY),
    mcp_tool_result=build_block(
        tool_use_id=ID, is_error=NUMBER, content=union(PROTECTED, array(variants(text=TEXT)))
    ),
    mcp_tool_listing=build_block(
        mcp_server_name=API_NAME,
        tools=array(record(name=API_NAME, description=SCHEMA, input_schema=SCHEMA)),
    ),
    container_upload=build_block(file_id=MEDIA),
    tool_addition=TOOL_CHANGE,
    tool_removal=TOOL_CHANGE,
    fallback=build_block(
        **{"from": record(model=API_NAME), "to": record(model=API_NAME), "trigger": DROPPED}
    ),
)

# ---- requests ------------------------------------------------------------------------------------

CONTENT = union(PROTECTED, array(BLOCK))
MESSAGE = variants_by_tag(
    "role",
    system=record(
        content=CONTENT,
        clear_at=choice("next_user_message", "never"),
        output_config=record(effort=choice("low", "medium", "high", "xhigh", "max")),
    ),
    user=record(content=CONTENT),
    assistant=record(content=CONTENT),
)
_SHARED: dict[str, LeafRule] = {
    "name": API_NAME,
    "cache_control": CACHE_CONTROL,
    "allowed_callers": array(ID),
    "defer_loading": NUMBER,
    "strict": NUMBER,
}
CUSTOM_TOOL = record(
    **_SHARED,
    eager_input_streaming=NUMBER,
    **map_fields(SCHEMA, "description input_schema input_examples"),
)
BUILT_IN = record(**_SHARED, input_examples=SCHEMA, configs=SCHEMA, max_characters=NUMBER)
COMPUTER_TOOL = record(
    **_SHARED,
    input_examples=SCHEMA,
    **map_fields(NUMBER, "display_height_px display_width_px display_number enable_zoom"),
)
SITES = array(pattern(r"[A-Za-z0-9*._:/\-]{1,256}"))
_SOURCES = variants(
    **map_fields(
        record(tools=array(variants(tool_reference=record(name=API_NAME)))), "only except"
    ),
    **map_fields(record(), "all none"),
)
WEB_TOOL = record(
    **_SHARED,
    allowed_domains=SITES,
    blocked_domains=SITES,
    citations=CITATION_OPTION,
    response_inclusion=choice("full", "excluded"),
    url_sources=record(
        client_tool_results=_SOURCES, server_tool_results=_SOURCES, user_input=_SOURCES
    ),
    user_location=variants(
        approximate=record(
            city=PROTECTED, region=PROTECTED, country=pattern("[A-Za-z]{2}"), timezone=DROPPED
        )
    ),
    **map_fields(NUMBER, "max_content_tokens max_uses use_cache"),
)
TOOL = variants(
    **{"": CUSTOM_TOOL, "custom": CUSTOM_TOOL},
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
    **{f"computer_{date}": COMPUTER_TOOL for date in (20241022, 20250124, 20251124)},
    **{f"web_search_{date}": WEB_TOOL for date in (20250305, 20260209, 20260318)},
    **{f"web_fetch_{date}": WEB_TOOL for date in (20250910, 20260209, 20260309, 20260318)},
    advisor_20260301=record(
        **_SHARED, model=API_NAME, caching=CACHE_CONTROL, max_tokens=NUMBER, max_uses=NUMBER
    ),
    mcp_toolset=record(
        mcp_server_name=API_NAME,
        cache_control=CACHE_CONTROL,
        **map_fields(SCHEMA, "configs default_config tools"),
    ),
)
_EFFORT = choice("low", "medium", "high", "xhigh", "max")
OUTPUT = record(
    effort=_EFFORT,
    format=variants(json_schema=record(schema=SCHEMA)),
    task_budget=record(type=ID, total=NUMBER, remaining=NUMBER),
)
_BLOCK_BINDING = record(prefix_mismatch_behavior=choice("error", "drop_block"))
_DISPLAY = choice("summarized", "omitted", "updates")
THINKING = variants(
    enabled=record(budget_tokens=NUMBER, display=_DISPLAY, block_binding=_BLOCK_BINDING),
    adaptive=record(display=_DISPLAY, block_binding=_BLOCK_BINDING),
    disabled=record(),
    between_tools=record(),
)
_COUNT = record(type=choice("input_tokens", "tool_uses", "thinking_turns", "all"), value=NUMBER)
_ONE_AT_A_TIME = record(disable_parallel_tool_use=NUMBER)

COUNT_FIELDS: dict[str, LeafRule] = {
    "system": union(PROTECTED, array(variants(text=TEXT))),
    "messages": array(MESSAGE),
    "model": API_NAME,
    "cache_control": CACHE_CONTROL,
    "context_management": record(
        edits=array(
            variants(
                clear_tool_uses_20250919=record(
                    clear_at_least=_COUNT,
                    clear_tool_inputs=union(NUMBER, array(API_NAME)),
                    exclude_tools=array(API_NAME),
                    keep=_COUNT,
                    trigger=_COUNT,
                ),
                clear_thinking_20251015=record(keep=union(choice("all"), _COUNT)),
                compact_20260112=record(
                    instructions=PROTECTED, pause_after_compaction=NUMBER, trigger=_COUNT
                ),
            )
        )
    ),
    "mcp_servers": any_value(Act.REFUSE),
    "output_config": OUTPUT,
    "output_format": variants(json_schema=record(schema=SCHEMA)),
    "speed": choice("fast", "standard"),
    "thinking": THINKING,
    "thread": any_value(Act.REFUSE),  # it names a conversation that the upstream keeps
    "tool_choice": variants(
        auto=_ONE_AT_A_TIME,
        any=_ONE_AT_A_TIME,
        tool=record(name=API_NAME, **(_ONE_AT_A_TIME.fields or {})),
        none=record(),
    ),
    "tools": array(TOOL),
    "user_profile_id": ID,
    "workspace_id": ID,
}
COUNT_REQUEST = record(**COUNT_FIELDS)
MESSAGES_REQUEST = record(
    **COUNT_FIELDS,
    billing_policy=record(type=ID, bill_to=choice("self", "user_profile")),
    compaction=record(type=ID, instructions=PROTECTED),
    container=union(
        ID,
        record(
            id=ID, skills=array(record(type=choice("anthropic", "custom"), skill_id=ID, version=ID))
        ),
    ),
    diagnostics=record(previous_message_id=ID),
    fallback_credit_token=union(SEALED, record(token=SEALED, mode=choice("strict", "best_effort"))),
    fallbacks=union(
        choice("default"),
        array(
            record(
                model=API_NAME,
                max_tokens=NUMBER,
                output_config=OUTPUT,
                speed=choice("fast", "standard"),
                thinking=THINKING,
            )
        ),
    ),
    inference_geo=pattern("[a-z_]{1,20}"),
    metadata=record(user_id=any_value(Act.USER)),
    service_tier=choice("auto", "standard_only"),
    stop_sequences=array(PROTECTED),
    **map_fields(NUMBER, "max_tokens stream temperature top_k top_p"),
)

# ---- answers -------------------------------------------------------------------------------------

_END_FIELDS: dict[str, LeafRule] = {
    "stop_reason": ID,
    "stop_sequence": PROTECTED,
    "stop_details": record(
        explanation=PROTECTED,
        fallback_has_prefill_claim=NUMBER,
        **map_fields(ID, "type category"),
        **map_fields(PASSED, "recommended_model fallback_credit_token"),
    ),
    "container": PASSED,
}
_REPORT_FIELDS = dict.fromkeys(
    ("usage", "context_management", "diagnostics", "input_transformations"), PASSED
)
MESSAGES_ANSWER = record(
    id=ID, type=ID, role=ID, model=PASSED, content=array(BLOCK), **_END_FIELDS, **_REPORT_FIELDS
)
FAILURE = record(type=ID, error=record(type=ID, message=PROTECTED), request_id=PASSED)
DELTA = variants(
    text_delta=record(text=PROTECTED),
    input_json_delta=record(partial_json=ARGUMENTS),
    thinking_delta=record(thinking=SIGNED, estimated_tokens=NUMBER),
    signature_delta=record(signature=PASSED),
    citations_delta=record(citation=CITATION),
    compaction_delta=record(
        content=SIGNED, encrypted_content=PASSED, signature=PASSED, tool_changes=PASSED
    ),
)
EVENT = variants(
    message_start=record(message=MESSAGES_ANSWER),
    content_block_start=record(index=NUMBER, content_block=BLOCK),
    content_block_delta=record(index=NUMBER, delta=DELTA),
    content_block_stop=record(index=NUMBER),
    message_delta=record(delta=record(**_END_FIELDS), **_REPORT_FIELDS),
    message_stop=record(),
    ping=record(),
    error=FAILURE,
)
"""Leaves of an event."""


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
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        """True once the whole answer has come."""
        return self._is_complete

    @property
    def messages(self) -> list[tuple[JsonObject, JsonObject]]:
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
                self._is_complete = True
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

    def _build_block(self, index: int) -> tuple[JsonObject, JsonObject]:
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
    answer=record(input_tokens=NUMBER, context_management=PASSED),
    message=MESSAGE,
    find_messages=find_messages,
    correct_offsets=correct_offsets,
    build_error=build_error,
    keys=KEY_HEADERS,
    forwards=ANTHROPIC_HEADERS,
)
