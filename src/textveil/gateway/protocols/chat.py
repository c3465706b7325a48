"""OpenAI chat completions, as OpenAI, vLLM, llama.cpp and similar servers speak them.

In: JSON of requests, answers and chunks. Out: the tables of their leaves; restored chunks.
Not here: other routes of OpenAI (`completions`, `responses`, `small`).
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
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
    text,
    union,
    variants,
    variants_by_tag,
)
from textveil.gateway.protocols.openai import build_error
from textveil.gateway.protocols.operation import (
    Event,
    JsonObject,
    Operation,
    get_items,
    list_messages,
)
from textveil.gateway.protocols.restoring import AnswerRestorer

PROTECTED, LABEL, ARGUMENTS = text(), text(Act.LABEL), any_value(Act.ARGUMENTS)
MEDIA, SCHEMA, USER, ANY = (
    any_value(Act.MEDIA),
    any_value(Act.SCHEMA),
    any_value(Act.USER),
    any_value(Act.OBJECT),
)
DROPPED, REFUSED, OFFSET = any_value(Act.DROP), any_value(Act.REFUSE), any_value(Act.OFFSET)

# ---- requests ------------------------------------------------------------------------------------

CACHE_OPTIONS = record(mode=choice("implicit", "explicit"), ttl=pattern(r"[0-9]{1,6}[smhd]?"))
CACHE_BREAKPOINT = {
    "prompt_cache_breakpoint": CACHE_OPTIONS,
    # OpenRouter and LiteLLM take it.
    "cache_control": variants(ephemeral=record(ttl=choice("5m", "1h"))),
}
CONTENT_PART = variants(
    text=record(text=PROTECTED, **CACHE_BREAKPOINT),
    refusal=record(refusal=PROTECTED),
    image_url=record(image_url=MEDIA, **CACHE_BREAKPOINT),
    input_audio=record(input_audio=MEDIA, **CACHE_BREAKPOINT),
    file=record(file=MEDIA, **CACHE_BREAKPOINT),
)
CONTENT = union(PROTECTED, array(CONTENT_PART))
THOUGHT = record(
    thinking=union(PROTECTED, array(variants(text=record(text=PROTECTED)))), closed=NUMBER
)
ASSISTANT_CONTENT = union(
    PROTECTED,
    array(replace(CONTENT_PART, kinds={**CONTENT_PART.kinds, **variants(thinking=THOUGHT).kinds})),
)
"""Content of an assistant message; Mistral's models add thinking parts."""
SIGNED, SEALED = text(Act.SIGNED), pattern(r"[A-Za-z0-9+/=_\-]*")
_DETAIL = {"id": ID, "format": API_NAME, "index": NUMBER}
REASONING_DETAILS = LeafRule(
    tag="type",
    kinds={
        f"reasoning.{kind}": record(type=choice(f"reasoning.{kind}"), **fields, **_DETAIL)
        for kind, fields in {
            "text": {"text": SIGNED, "signature": SEALED},
            "summary": {"summary": PROTECTED},
            "encrypted": {"data": SEALED},
        }.items()
    },
)
"""Reasoning in OpenRouter's form, partly signed and partly sealed."""
THINKING = variants(
    thinking=record(
        thinking=SIGNED, signature=SEALED, cache_control=CACHE_BREAKPOINT["cache_control"]
    ),
    redacted_thinking=record(data=SEALED),
)
"""Reasoning in LiteLLM's form."""
EXTRA = record(google=record(thought_signature=SEALED, thought=NUMBER))
FUNCTION_CALL = record(
    id=ID,
    index=NUMBER,
    # OpenAI's SDK adds what it has read of the arguments.
    function=record(name=API_NAME, arguments=ARGUMENTS, parsed_arguments=DROPPED),
    extra_content=EXTRA,
)
TOOL_CALL = variants(
    FUNCTION_CALL,
    function=FUNCTION_CALL,
    custom=record(id=ID, index=NUMBER, custom=record(name=API_NAME, input=PROTECTED)),
)
ASSISTANT = record(
    reasoning_content=PROTECTED,
    reasoning=PROTECTED,
    reasoning_details=array(REASONING_DETAILS),
    thinking_blocks=array(THINKING),
    provider_specific_fields=ANY,
    extra_content=EXTRA,
    content=ASSISTANT_CONTENT,
    refusal=PROTECTED,
    name=LABEL,
    tool_calls=array(TOOL_CALL),
    function_call=record(name=API_NAME, arguments=ARGUMENTS),
    audio=record(id=ID),
    annotations=DROPPED,
    parsed=DROPPED,  # OpenAI's SDK adds what it has read of the content
    prefix=NUMBER,
)
MESSAGE = variants_by_tag(
    "role",
    ASSISTANT,  # without a role: some servers leave it out, and clients send it back
    developer=record(content=CONTENT, name=LABEL),
    system=record(content=CONTENT, name=LABEL),
    user=record(content=CONTENT, name=LABEL),
    assistant=ASSISTANT,
    tool=record(content=CONTENT, tool_call_id=ID, name=API_NAME),
    function=record(content=PROTECTED, name=API_NAME),
)
EFFORT = choice("none", "default", "minimal", "low", "medium", "high", "xhigh", "max")
TOOL = variants(
    function=record(
        function=record(name=API_NAME, description=SCHEMA, parameters=SCHEMA, strict=NUMBER)
    ),
    custom=record(custom=record(name=API_NAME, description=SCHEMA, format=SCHEMA)),
)
SETTINGS = """
    add_generation_prompt add_special_tokens best_of cache_prompt continue_final_message dry_allowed_length dry_base
    dry_multiplier dry_penalty_last_n dynatemp_exponent dynatemp_range echo enable_thinking id_slot ignore_eos
    include_reasoning include_stop_str_in_output length_penalty min_keep min_p min_tokens mirostat
    mirostat_eta mirostat_tau n_keep n_predict num_ctx priority random_seed repeat_last_n repeat_penalty
    repetition_penalty return_progress safe_prompt skip_special_tokens spaces_between_special_tokens thinking_budget
    timings_per_token top_a top_k top_n_sigma truncate_prompt_tokens typical_p use_beam_search xtc_probability
    xtc_threshold
"""
"""Numbers and switches of other servers: vLLM, llama.cpp, Ollama, Mistral, OpenRouter."""
CREDENTIALS = map_fields(
    REFUSED, "api_key aws_access_key_id aws_secret_access_key azure_ad_token vertex_credentials"
)
"""Keys, which a placeholder cannot stand for: LiteLLM takes them in requests."""
AUTHENTICATION = record(
    type=ID, **map_fields(REFUSED, "access_token connection_string encoded_api_key key password")
)
OTHER_SERVER_FIELDS = {
    **dict.fromkeys(SETTINGS.split(), NUMBER),
    **CREDENTIALS,
    "cache_salt": USER,
    # Azure searches there.
    "data_sources": array(
        record(
            type=API_NAME,
            parameters=record(
                authentication=AUTHENTICATION,
                embedding_dependency=record(authentication=AUTHENTICATION),
            ),
        )
    ),
    "fallbacks": array(union(API_NAME, record(model=API_NAME, **CREDENTIALS))),
    "chat_template_kwargs": record(enable_thinking=NUMBER, thinking=NUMBER),
    "grammar": SCHEMA,
    "guided_choice": SCHEMA,
    "guided_grammar": SCHEMA,
    "guided_json": SCHEMA,
    "guided_regex": SCHEMA,
    "keep_alive": union(NUMBER, pattern("-?[0-9]{1,6}[a-z]{0,2}")),
    "models": array(API_NAME),
    "provider": record(
        data_collection=choice("allow", "deny"),
        ignore=array(API_NAME),
        only=array(API_NAME),
        order=array(API_NAME),
        quantizations=array(ID),
        sort=choice("price", "throughput", "latency"),
        **map_fields(NUMBER, "allow_fallbacks require_parameters zdr"),
    ),
    "route": choice("fallback"),
    "transforms": array(choice("middle-out")),
    "prompt_mode": choice("reasoning"),
    "reasoning_format": choice(
        "auto", "none", "deepseek", "deepseek-legacy", "parsed", "raw", "hidden"
    ),
    "reasoning": record(effort=EFFORT, max_tokens=NUMBER, exclude=NUMBER, enabled=NUMBER),
    "session_id": USER,
    "stop_token_ids": MEDIA,
    "think": union(NUMBER, EFFORT),
    "structured_outputs": SCHEMA,
    "thinking": record(type=choice("enabled", "disabled", "auto"), budget_tokens=NUMBER),
    "usage": record(include=NUMBER),
}
"""Fields of requests to other servers, beyond those of OpenAI."""
CHAT_REQUEST = record(
    **OTHER_SERVER_FIELDS,
    model=API_NAME,
    messages=array(MESSAGE),
    function_call=union(choice("none", "auto"), record(name=API_NAME)),
    functions=array(record(name=API_NAME, description=SCHEMA, parameters=SCHEMA)),
    modalities=array(choice("text", "audio")),
    prediction=variants(content=record(content=CONTENT)),
    prompt_cache_options=CACHE_OPTIONS,
    prompt_cache_retention=choice("in-memory", "in_memory", "24h"),
    reasoning_effort=EFFORT,
    response_format=variants(
        text=record(),
        json_object=record(schema=SCHEMA),
        json_schema=record(
            json_schema=record(name=API_NAME, description=SCHEMA, schema=SCHEMA, strict=NUMBER)
        ),
    ),
    service_tier=choice(
        "auto", "default", "flex", "scale", "priority", "fast", "on_demand", "performance"
    ),
    stop=union(PROTECTED, array(PROTECTED)),
    stream_options=record(
        include_usage=NUMBER, include_obfuscation=NUMBER, continuous_usage_stats=NUMBER
    ),
    tool_choice=union(
        choice("none", "auto", "required", "any"),
        variants(
            function=record(function=record(name=API_NAME)),
            custom=record(custom=record(name=API_NAME)),
            allowed_tools=record(
                allowed_tools=record(
                    mode=choice("auto", "required"), tools=array(any_value(Act.SCHEMA))
                )
            ),
        ),
    ),
    tools=array(TOOL),
    verbosity=choice("low", "medium", "high"),
    web_search_options=record(
        search_context_size=choice("low", "medium", "high"),
        user_location=variants(
            approximate=record(
                approximate=record(
                    city=PROTECTED,
                    region=PROTECTED,
                    country=pattern("[A-Za-z]{2}"),
                    timezone=any_value(Act.DROP),
                )
            )
        ),
    ),
    **map_fields(
        NUMBER, "frequency_penalty max_completion_tokens max_tokens n parallel_tool_calls"
    ),
    **map_fields(NUMBER, "presence_penalty seed store stream temperature top_p"),
    **map_fields(REFUSED, "logprobs moderation top_logprobs"),
    **map_fields(USER, "metadata prompt_cache_key safety_identifier user"),
    **map_fields(MEDIA, "audio logit_bias"),
)

# ---- answers -------------------------------------------------------------------------------------

ANSWER_CALL = record(
    id=ID,
    index=NUMBER,
    type=choice("function", "custom"),
    function=record(name=API_NAME, arguments=ARGUMENTS),
    custom=record(name=API_NAME, input=PROTECTED),
    extra_content=EXTRA,
)
CITATION = record(title=PROTECTED, url=PROTECTED, start_index=OFFSET, end_index=OFFSET)
ANSWER_MESSAGE = record(
    role=ID,
    reasoning_content=PROTECTED,
    reasoning=PROTECTED,
    reasoning_details=array(REASONING_DETAILS),
    thinking_blocks=array(THINKING),
    content=ASSISTANT_CONTENT,
    refusal=PROTECTED,
    tool_calls=array(ANSWER_CALL),
    function_call=record(name=API_NAME, arguments=ARGUMENTS),
    audio=record(id=ID, data=any_value(Act.PASS), transcript=PROTECTED, expires_at=NUMBER),
    annotations=array(variants(url_citation=record(url_citation=CITATION))),
)
CHOICE = record(
    index=NUMBER, message=ANSWER_MESSAGE, delta=ANSWER_MESSAGE, logprobs=DROPPED, finish_reason=ID
)
CHAT_ANSWER = record(
    created=NUMBER,
    model=any_value(Act.PASS),
    choices=array(CHOICE),
    system_fingerprint=any_value(Act.PASS),
    usage=any_value(Act.PASS),
    **map_fields(ID, "id object service_tier"),
    **map_fields(DROPPED, "metadata moderation obfuscation"),
)
"""Leaves of an answer, and of a chunk."""


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
    def messages(self) -> list[tuple[JsonObject, JsonObject]]:
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
