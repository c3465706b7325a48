"""OpenAI chat completions, as OpenAI, vLLM, llama.cpp and similar servers speak them.

In: JSON of requests, answers and chunks. Out: the tables of their leaves; restored chunks.
Not here: other routes of OpenAI (`completions`, `responses`, `small`).
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
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
    record,
    shaped,
    tagged,
    text,
    typed,
    whole,
)
from textveil.gateway.protocols.contract import Body, Event, Operation, listed, messages_in
from textveil.gateway.protocols.openai import error

PROTECTED, LABEL, ARGUMENTS = text(), text(Act.LABEL), whole(Act.ARGUMENTS)
MEDIA, SCHEMA, USER, ANY = whole(Act.MEDIA), whole(Act.SCHEMA), whole(Act.USER), whole(Act.OBJECT)
DROPPED, REFUSED, OFFSET = whole(Act.DROP), whole(Act.REFUSE), whole(Act.OFFSET)

# ---- requests ------------------------------------------------------------------------------------

CACHED = record(mode=one_of("implicit", "explicit"), ttl=shaped(r"[0-9]{1,6}[smhd]?"))
KEPT_UNTIL_HERE = {
    "prompt_cache_breakpoint": CACHED,
    # OpenRouter and LiteLLM take it.
    "cache_control": typed(ephemeral=record(ttl=one_of("5m", "1h"))),
}
PART = typed(
    text=record(text=PROTECTED, **KEPT_UNTIL_HERE),
    refusal=record(refusal=PROTECTED),
    image_url=record(image_url=MEDIA, **KEPT_UNTIL_HERE),
    input_audio=record(input_audio=MEDIA, **KEPT_UNTIL_HERE),
    file=record(file=MEDIA, **KEPT_UNTIL_HERE),
)
CONTENT = either(PROTECTED, each(PART))
THOUGHT = record(
    thinking=either(PROTECTED, each(typed(text=record(text=PROTECTED)))), closed=NUMBER
)
SPOKEN = either(
    PROTECTED, each(replace(PART, kinds={**PART.kinds, **typed(thinking=THOUGHT).kinds}))
)
"""Content of an assistant message; Mistral's models add thinking parts."""
SIGNED, SEALED = text(Act.SIGNED), shaped(r"[A-Za-z0-9+/=_\-]*")
_DETAIL = {"id": ID, "format": NAME, "index": NUMBER}
DETAILS = LeafRule(
    tag="type",
    kinds={
        f"reasoning.{kind}": record(type=one_of(f"reasoning.{kind}"), **fields, **_DETAIL)
        for kind, fields in {
            "text": {"text": SIGNED, "signature": SEALED},
            "summary": {"summary": PROTECTED},
            "encrypted": {"data": SEALED},
        }.items()
    },
)
"""Reasoning in OpenRouter's form, partly signed and partly sealed."""
THINKING = typed(
    thinking=record(
        thinking=SIGNED, signature=SEALED, cache_control=KEPT_UNTIL_HERE["cache_control"]
    ),
    redacted_thinking=record(data=SEALED),
)
"""Reasoning in LiteLLM's form."""
EXTRA = record(google=record(thought_signature=SEALED, thought=NUMBER))
FUNCTION_CALL = record(
    id=ID, index=NUMBER, function=record(name=NAME, arguments=ARGUMENTS), extra_content=EXTRA
)
TOOL_CALL = typed(
    FUNCTION_CALL,
    function=FUNCTION_CALL,
    custom=record(id=ID, index=NUMBER, custom=record(name=NAME, input=PROTECTED)),
)
ASSISTANT = record(
    reasoning_content=PROTECTED,
    reasoning=PROTECTED,
    reasoning_details=each(DETAILS),
    thinking_blocks=each(THINKING),
    provider_specific_fields=ANY,
    extra_content=EXTRA,
    content=SPOKEN,
    refusal=PROTECTED,
    name=LABEL,
    tool_calls=each(TOOL_CALL),
    function_call=record(name=NAME, arguments=ARGUMENTS),
    audio=record(id=ID),
    annotations=DROPPED,
    prefix=NUMBER,
)
MESSAGE = tagged(
    "role",
    ASSISTANT,  # without a role: some servers leave it out, and clients send it back
    developer=record(content=CONTENT, name=LABEL),
    system=record(content=CONTENT, name=LABEL),
    user=record(content=CONTENT, name=LABEL),
    assistant=ASSISTANT,
    tool=record(content=CONTENT, tool_call_id=ID, name=NAME),
    function=record(content=PROTECTED, name=NAME),
)
EFFORT = one_of("none", "default", "minimal", "low", "medium", "high", "xhigh", "max")
TOOL = typed(
    function=record(
        function=record(name=NAME, description=SCHEMA, parameters=SCHEMA, strict=NUMBER)
    ),
    custom=record(custom=record(name=NAME, description=SCHEMA, format=SCHEMA)),
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
OTHERS = {
    **dict.fromkeys(SETTINGS.split(), NUMBER),
    "cache_salt": USER,
    "chat_template_kwargs": record(enable_thinking=NUMBER, thinking=NUMBER),
    "grammar": SCHEMA,
    "guided_choice": SCHEMA,
    "guided_grammar": SCHEMA,
    "guided_json": SCHEMA,
    "guided_regex": SCHEMA,
    "keep_alive": either(NUMBER, shaped("-?[0-9]{1,6}[a-z]{0,2}")),
    "models": each(NAME),
    "provider": record(
        data_collection=one_of("allow", "deny"),
        ignore=each(NAME),
        only=each(NAME),
        order=each(NAME),
        quantizations=each(ID),
        sort=one_of("price", "throughput", "latency"),
        **fields(NUMBER, "allow_fallbacks require_parameters zdr"),
    ),
    "route": one_of("fallback"),
    "transforms": each(one_of("middle-out")),
    "prompt_mode": one_of("reasoning"),
    "reasoning_format": one_of(
        "auto", "none", "deepseek", "deepseek-legacy", "parsed", "raw", "hidden"
    ),
    "reasoning": record(effort=EFFORT, max_tokens=NUMBER, exclude=NUMBER, enabled=NUMBER),
    "session_id": USER,
    "stop_token_ids": MEDIA,
    "think": either(NUMBER, EFFORT),
    "structured_outputs": SCHEMA,
    "thinking": record(type=one_of("enabled", "disabled", "auto"), budget_tokens=NUMBER),
    "usage": record(include=NUMBER),
}
"""Fields of requests to other servers, beyond those of OpenAI."""
REQUEST = record(
    **OTHERS,
    model=NAME,
    messages=each(MESSAGE),
    function_call=either(one_of("none", "auto"), record(name=NAME)),
    functions=each(record(name=NAME, description=SCHEMA, parameters=SCHEMA)),
    modalities=each(one_of("text", "audio")),
    prediction=typed(content=record(content=CONTENT)),
    prompt_cache_options=CACHED,
    prompt_cache_retention=one_of("in-memory", "in_memory", "24h"),
    reasoning_effort=EFFORT,
    response_format=typed(
        text=record(),
        json_object=record(schema=SCHEMA),
        json_schema=record(
            json_schema=record(name=NAME, description=SCHEMA, schema=SCHEMA, strict=NUMBER)
        ),
    ),
    service_tier=one_of(
        "auto", "default", "flex", "scale", "priority", "fast", "on_demand", "performance"
    ),
    stop=either(PROTECTED, each(PROTECTED)),
    stream_options=record(
        include_usage=NUMBER, include_obfuscation=NUMBER, continuous_usage_stats=NUMBER
    ),
    tool_choice=either(
        one_of("none", "auto", "required", "any"),
        typed(
            function=record(function=record(name=NAME)),
            custom=record(custom=record(name=NAME)),
            allowed_tools=record(
                allowed_tools=record(mode=one_of("auto", "required"), tools=each(whole(Act.SCHEMA)))
            ),
        ),
    ),
    tools=each(TOOL),
    verbosity=one_of("low", "medium", "high"),
    web_search_options=record(
        search_context_size=one_of("low", "medium", "high"),
        user_location=typed(
            approximate=record(
                approximate=record(
                    city=PROTECTED,
                    region=PROTECTED,
                    country=shaped("[A-Za-z]{2}"),
                    timezone=whole(Act.DROP),
                )
            )
        ),
    ),
    **fields(NUMBER, "frequency_penalty max_completion_tokens max_tokens n parallel_tool_calls"),
    **fields(NUMBER, "presence_penalty seed store stream temperature top_p"),
    **fields(REFUSED, "logprobs moderation top_logprobs"),
    **fields(USER, "metadata prompt_cache_key safety_identifier user"),
    **fields(MEDIA, "audio logit_bias"),
)

# ---- answers -------------------------------------------------------------------------------------

SAID_CALL = record(
    id=ID,
    index=NUMBER,
    type=one_of("function", "custom"),
    function=record(name=NAME, arguments=ARGUMENTS),
    custom=record(name=NAME, input=PROTECTED),
    extra_content=EXTRA,
)
CITED = record(title=PROTECTED, url=PROTECTED, start_index=OFFSET, end_index=OFFSET)
SAID = record(
    role=ID,
    reasoning_content=PROTECTED,
    reasoning=PROTECTED,
    reasoning_details=each(DETAILS),
    thinking_blocks=each(THINKING),
    content=SPOKEN,
    refusal=PROTECTED,
    tool_calls=each(SAID_CALL),
    function_call=record(name=NAME, arguments=ARGUMENTS),
    audio=record(id=ID, data=whole(Act.PASS), transcript=PROTECTED, expires_at=NUMBER),
    annotations=each(typed(url_citation=record(url_citation=CITED))),
)
CHOICE = record(index=NUMBER, message=SAID, delta=SAID, logprobs=DROPPED, finish_reason=ID)
ANSWER = record(
    created=NUMBER,
    model=whole(Act.PASS),
    choices=each(CHOICE),
    system_fingerprint=whole(Act.PASS),
    usage=whole(Act.PASS),
    **fields(ID, "id object service_tier"),
    **fields(DROPPED, "metadata moderation obfuscation"),
)
"""Leaves of an answer, and of a chunk."""


def messages(body: Body) -> Iterator[tuple[str, Path]]:
    """Yields the roles and places of a conversation's messages."""
    return messages_in(body, "messages", "assistant")


def said(answer: Body) -> list[Body]:
    """Lists the messages of all choices, with and without reasoning.

    Many clients leave the reasoning out.
    """
    choices = (each for each in listed(answer, "choices") if isinstance(each, dict))
    contents = [each.get("message") for each in choices]
    whole = [{"role": "assistant", **message} for message in contents if isinstance(message, dict)]
    return _add_without_reasoning(whole)


REASONING = (
    "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks",
    "provider_specific_fields"
)  # fmt: skip
"""Fields of a message with the model's reasoning."""


def _add_without_reasoning(messages: list[Body]) -> list[Body]:
    reasoning = set(REASONING)
    thought = [each for each in messages if each.keys() & reasoning]
    return messages + [{k: v for k, v in each.items() if k not in reasoning} for each in thought]


NUMBERED = ("tool_calls", "reasoning_details", "thinking_blocks")
"""Lists of a message that come in pieces, numbered by an index."""


class ChatChunks:
    """Stream of the chunks of an answer; see `Stream`."""

    remembered = ()

    def __init__(self, restoring: Restoring) -> None:
        self._restoring = restoring
        # By choice: texts, each with its last delta and path; other strings of numbered items.
        self._texts: dict[int, dict[Path, tuple[Body, Path]]] = {}
        self._items: dict[int, dict[Path, Body]] = {}
        self._ids: dict[int, list[str]] = {}  # by choice: ids of tool calls without an index
        self._tools: dict[tuple[int, Any], str] = {}  # names of called tools, by choice and number
        self._open: set[int] = set()
        self._last: Body = {}
        self._done = False

    @property
    def ended(self) -> bool:
        """True once the whole answer has come."""
        return self._done or (bool(self._texts) and not self._open)

    @property
    def messages(self) -> list[tuple[Body, Body]]:
        """Messages of the answer, as received and as restored."""
        received, restored = list[Body](), list[Body]()
        for index, places in self._texts.items():
            for messages, which in ((received, 0), (restored, 1)):
                messages.append({"role": "assistant"})
                for place, strings in self._items[index].items():
                    _find_owner(messages[-1], (*place, "")).update(strings)
                for place in places:
                    whole = self._restoring.both((index, place))[which]
                    _find_owner(messages[-1], place)[str(place[-1])] = whole
        return list(
            zip(_add_without_reasoning(received), _add_without_reasoning(restored), strict=True)
        )

    def feed(self, event: Event) -> Iterator[Event]:
        """Restores a chunk, with the held-back text where a choice ends."""
        if event.data == "[DONE]":
            self._done = True
            return
        chunk = self._restoring.whole({**event.data, "choices": None}, ANSWER)
        self._last = {name: value for name, value in chunk.items() if name in HEAD}
        chunk["choices"] = []
        for i, choice in enumerate(listed(event.data, "choices")):
            index = choice.get("index", i)
            restored = self._restore_choice(index, choice)
            if choice.get("finish_reason") is not None:
                if restored["delta"]:
                    yield self._build_chunk(index, restored["delta"])
                yield from self._flush(index)
                self._open.discard(index)
                restored["delta"] = {}
            chunk["choices"].append(restored)
        yield Event(event.name, chunk)

    def _restore_choice(self, index: int, choice: Body) -> Body:
        """Restores the certain part of a chunk's choice."""
        if index not in self._texts:
            self._texts[index], self._items[index], self._ids[index] = {}, {}, []
            self._open.add(index)
        delta = choice.get("delta") or {}
        restored: Body = self._restoring.whole({**choice, "delta": None}, CHOICE)
        restored["delta"] = self._restoring.whole(
            delta, SAID, partial(self._restore_piece, index, delta)
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
        if self.ended:
            yield Event("", "[DONE]")

    def failed(self, refused: RequestError) -> Event:
        """Writes an error as the last event of the stream."""
        return Event("", error(refused))

    def _restore_annotations(self, index: int, annotations: Any) -> Any:
        """Restores annotations, whose offsets count characters of the text so far."""
        place = ("content",)
        content = self._restoring.both((index, place))[0] if place in self._texts[index] else ""
        return self._restoring.whole({"content": content, "annotations": annotations}, SAID)[
            "annotations"
        ]

    def _restore_piece(self, index: int, delta: Body, path: Path, piece: str, act: Act) -> str:
        if path[0] == "annotations":
            return piece  # annotations are restored as a whole
        place = self._locate(index, delta, path)
        self._texts[index][place] = delta, path
        called = delta[path[0]][path[1]].get("function") if path[0] == "tool_calls" else None
        if isinstance(called, dict) and called.get("name"):
            self._tools[index, place[1]] = str(called["name"])
        tool = self._tools.get((index, place[1]), "") if called else ""
        return self._restoring.piece((index, place), piece, act, tool)

    def _locate(self, index: int, delta: Body, path: Path) -> Path:
        """Returns the path of a chunk's text in the whole message."""
        if path[0] not in NUMBERED:
            return path
        item = delta[path[0]][path[1]]
        number, id_ = item.get("index"), item.get("id")
        if number is None and path[0] == "tool_calls":
            ids = self._ids[index]
            if id_ and id_ not in ids:
                ids.append(id_)
            number = ids.index(id_) if id_ else max(len(ids) - 1, path[1])
        return path[0], path[1] if number is None else number, *path[2:]

    def _note(self, index: int, delta: Body) -> None:
        """Stores the strings of a chunk's numbered items."""
        for name in NUMBERED:
            for i, item in enumerate(listed(delta, name)):
                place = self._locate(index, delta, (name, i))
                strings = self._items[index].setdefault(place, {"index": place[1]})
                fields_of_item = item.items()
                strings |= {
                    name: each for name, each in fields_of_item if isinstance(each, str) and each
                }

    def _flush(self, index: int) -> Iterator[Event]:
        """Yields the held-back text of a choice."""
        for place, (delta, path) in self._texts[index].items():
            if rest := self._restoring.rest((index, place)):
                yield self._build_chunk(index, branch(delta, path, rest))

    def _build_chunk(self, index: int, delta: Body) -> Event:
        choice = {"index": index, "delta": delta, "finish_reason": None}
        return Event("", {**self._last, "choices": [choice]})


HEAD = ("id", "object", "created", "model", "system_fingerprint", "service_tier")
"""Fields that all chunks of an answer share."""


def branch(value: Any, path: Path, text: str) -> Any:
    """Builds a delta with one text only."""
    if not path:
        return text
    inner = branch(value[path[0]], path[1:], text)
    if isinstance(value, list):
        return [inner]
    return {**{name: value[name] for name in ("index", "type") if name in value}, path[0]: inner}


def _find_owner(message: Body, place: Path) -> Body:
    """Returns the object of a message around a text; creates missing ones."""
    if place[0] in NUMBERED:
        items = message.setdefault(str(place[0]), [])
        item = next((each for each in items if each["index"] == place[1]), None)
        if item is None:
            item = {"index": place[1]}
            items.append(item)
        message, place = item, place[2:]
    for step in place[:-1]:
        message = message.setdefault(str(step), {})
    return message


def _is_json_requested(body: Body) -> bool:
    wanted = body.get("response_format")
    return isinstance(wanted, dict) and wanted.get("type") in ("json_object", "json_schema")


CHAT = Operation(
    name="openai.chat",
    path="/chat/completions",
    request=REQUEST,
    answer=ANSWER,
    needs=("model", "messages"),
    message=MESSAGE,
    messages=messages,
    said=said,
    stream=ChatChunks,
    as_json=_is_json_requested,
    error=error,
)
