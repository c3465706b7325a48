"""OpenAI responses and conversations, which the upstream remembers as released.

In: JSON of requests, answers and events. Out: the tables of their leaves; restored events.
Not here: the leaves of items and tools (`items`), and the memory for the next request
(`session.chains`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
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
    mapping,
    one_of,
    record,
    shaped,
    text,
    whole,
)
from textveil.gateway.protocols.contract import REFERENCE, Body, Event, Operation, listed
from textveil.gateway.protocols.items import (
    ANNOTATION,
    ANY,
    DROPPED,
    FORMAT,
    ITEM,
    PART,
    PASSED,
    PROTECTED,
    REASONING,
    SAID_ITEM,
    SAID_PART,
    TOOL,
    TOOL_CHOICE,
    VERBOSITY,
)
from textveil.gateway.protocols.openai import error

USER = whole(Act.USER)
REFUSED = whole(Act.REFUSE)
NAMED = shaped(r"[A-Za-z0-9_:\-]{1,256}")
"""Rule for the upstream's name of a response or conversation.

It is safe as a part of a path.
"""

# ---- requests ------------------------------------------------------------------------------------

INCLUDED = one_of(
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)
INPUT = either(PROTECTED, each(ITEM))
CACHING = record(
    mode=one_of("implicit", "explicit"),
    prewarm=NUMBER,
    ttl=one_of("30m", "12h"),
    comparison_response_id=NAMED,
)
REQUEST = record(
    model=NAME,
    instructions=PROTECTED,
    input=INPUT,
    access_programs=record(cyber=one_of("standard", "daybreak_blue", "daybreak_red")),
    background_options=record(
        completion_window=one_of("soonest", "2h", "8h"), continuation_id=REFUSED
    ),
    context_management=each(record(type=one_of("compaction"), compact_threshold=NUMBER)),
    conversation=either(NAMED, record(id=NAMED)),
    image=record(context_compression=one_of("auto", "enabled", "disabled")),
    include=each(INCLUDED),
    moderation=REFUSED,
    personality=one_of("friendly", "pragmatic"),
    previous_response_id=NAMED,
    prompt=record(
        id=NAMED,
        version=shaped(r"[A-Za-z0-9_.\-]{1,64}"),
        variables=mapping(either(PROTECTED, PART)),
    ),
    prompt_cache_options=CACHING,
    prompt_cache_retention=one_of("in-memory", "in_memory", "24h"),
    reasoning=REASONING,
    service_tier=one_of("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"),
    stream_options=record(include_obfuscation=NUMBER),
    text=record(format=FORMAT, verbosity=VERBOSITY),
    tool_choice=TOOL_CHOICE,
    tools=each(TOOL),
    truncation=one_of("auto", "disabled"),
    **fields(NUMBER, "background frequency_penalty max_output_tokens max_tool_calls min_p"),
    **fields(NUMBER, "parallel_tool_calls presence_penalty repetition_penalty seed store"),
    **fields(NUMBER, "stream temperature top_k top_logprobs top_p"),
    **fields(USER, "cache_salt metadata prompt_cache_key safety_identifier user"),
)

# ---- answers -------------------------------------------------------------------------------------

ANSWER = record(
    id=ID,
    output=each(SAID_ITEM),
    instructions=either(PROTECTED, each(SAID_ITEM)),
    error=ANY,
    input_transformations=ANY,
    prompt=ANY,
    text=ANY,
    tools=ANY,
    **fields(PASSED, "access_programs conversation image incomplete_details metadata model"),
    **fields(PASSED, "object previous_response_id prompt_cache_diagnostics"),
    **fields(PASSED, "prompt_cache_options prompt_cache_retention reasoning service_tier"),
    **fields(PASSED, "status tool_choice tool_usage truncation usage"),
    **fields(DROPPED, "moderation prompt_cache_key safety_identifier user"),
)
LIST = record(object=PASSED, data=each(SAID_ITEM), first_id=PASSED, last_id=PASSED, has_more=NUMBER)
EVENT = record(
    annotation=ANNOTATION,
    arguments=text(Act.ARGUMENTS),
    code=PROTECTED,
    command=PROTECTED,
    delta=either(PROTECTED, record(stdout=PROTECTED, stderr=PROTECTED)),
    input=PROTECTED,
    item=SAID_ITEM,
    logprobs=each(DROPPED),
    message=PROTECTED,
    obfuscation=DROPPED,
    output=each(record(stdout=PROTECTED, stderr=PROTECTED, created_by=PASSED)),
    part=SAID_PART,
    refusal=PROTECTED,
    response=ANSWER,
    text=PROTECTED,
    **fields(PASSED, "type item_id background output_format param partial_image_b64 quality"),
    **fields(PASSED, "size"),
)
"""Leaves of any event.

`ResponseEvents` restores the texts that come in pieces.
"""


def messages(body: Body) -> Iterator[tuple[str, Path]]:
    """Yields the items of a request, as messages."""
    for field in ("input", "items"):
        value = body.get(field)
        if isinstance(value, str):
            yield "user", (field,)
        for i, item in enumerate(listed(body, field)):
            role = None
            if isinstance(item, dict):
                named = reference(item) if item.get("type") == "item_reference" else None
                role = named or item.get("role") or item.get("type")
            yield (role if isinstance(role, str) else ""), (field, i)


def after(body: Body) -> str | None:
    """Returns the remembered name that a request continues.

    It names an answer, a conversation, or a summary of one.
    """
    summaries = map(_get_summary, reversed(listed(body, "input")))
    names = [body.get("previous_response_id"), grows(body), *summaries]
    return next((each for each in names if isinstance(each, str)), None)


def grows(body: Body) -> str | None:
    """Returns the conversation that the upstream adds a request to.

    The upstream does so whether its answer arrives or not.
    """
    conversation = body.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    return conversation if isinstance(conversation, str) else None


def _get_summary(item: Any) -> Any:
    summed_up = isinstance(item, dict) and item.get("type") == "compaction"
    return item.get("encrypted_content") if summed_up else None


def remembered(answer: Body) -> list[str]:
    """Lists the names under which the upstream remembers an answer."""
    id_ = None if answer.get("store") is False else answer.get("id")
    names = [id_, *map(_get_summary, said(answer))]
    return [each for each in names if isinstance(each, str)]


def reference(item: Body) -> str | None:
    """Returns the role for an item that a client sends by name."""
    return f"{REFERENCE}{item['id']}" if isinstance(item.get("id"), str) else None


def said(answer: Body) -> list[Body]:
    """Lists the items of an answer, in order."""
    return [item for item in listed(answer, "output") if isinstance(item, dict)]


PLACES = ("output_index", "content_index", "summary_index", "command_index")
"""Fields of an event that identify its text in the answer."""
_OVER = ("completed", "incomplete", "failed", "cancelled")
ENDS = (*(f"response.{how}" for how in _OVER), "error")
"""Types of the last event of a stream."""
BINARY = "response.audio.delta"

Places = tuple[tuple[str, Any], ...]


class ResponseEvents:
    """Stream of the events of an answer; see `Stream`."""

    def __init__(self, restoring: Restoring) -> None:
        self._restoring = restoring
        # Open texts, each with its last event.
        self._open: dict[tuple[str, Places, str], Event] = {}
        self._items: list[tuple[Body, Body]] = []
        self._tools: dict[Any, str] = {}  # names of called tools, by the item's number
        self._next: int | None = None
        number = str(restoring.asked[1].get("starting_after"))
        # The client already has the events up to this number.
        self._known = int(number) if number.isdecimal() else -1
        self.remembered: list[str] = []
        self.ended = False

    @property
    def messages(self) -> list[tuple[Body, Body]]:
        """Items of the answer, as received and as restored."""
        return [*self._items]

    def feed(self, event: Event) -> Iterator[Event]:
        """Restores an event as far as it is certain.

        A client that resumes a stream counts these events, so all of them are made again, and the
        known ones are left out.
        """
        for restored in self._restore_event(event):
            if restored.data.get("sequence_number", self._known + 1) > self._known:
                yield restored

    def _restore_event(self, event: Event) -> Iterator[Event]:
        if event.data == "[DONE]":
            return
        kind = str(event.data.get("type") or event.name)
        if kind.endswith(".delta") and kind != BINARY:
            yield from self._restore_piece(kind, event)
            return
        if kind in ENDS:
            yield from self.close()
            self.ended = True
        elif kind.endswith(".done"):
            yield from self._flush(_identify_text(event.data), kind)
        restored = self._restore_whole(event.data)
        self._note(kind, event.data, restored)
        yield self._renumber(Event(event.name, restored))

    def _note(self, kind: str, received: Body, restored: Body) -> None:
        """Stores an event's tool names, items, and remembered names."""
        item, answer = received.get("item"), received.get("response")
        if kind == "response.output_item.added" and isinstance(item, dict):
            self._tools[received.get("output_index")] = str(item.get("name") or "")
        if kind == "response.output_item.done" and isinstance(item, dict):
            self._items.append((item, restored["item"]))
        if isinstance(answer, dict):
            self.remembered = remembered(answer)
            if kind in ENDS and not self._items:
                self._items = list(zip(said(answer), said(restored["response"]), strict=True))

    def close(self) -> Iterator[Event]:
        """Yields the held-back text of all open texts."""
        yield from self._flush(())

    def failed(self, refused: RequestError) -> Event:
        """Writes an error as the last event of the stream.

        It also has the error where clients of all routes look for it.
        """
        content = error(refused)
        more = {name: content["error"][name] for name in ("code", "message", "param")}
        return Event(
            "error", {"type": "error", **more, "sequence_number": self._next or 0, **content}
        )

    def _restore_piece(self, kind: str, event: Event) -> Iterator[Event]:
        """Restores the texts of a delta as far as they are certain.

        The output of a shell has two texts.
        """
        delta, is_json = event.data.get("delta"), kind.endswith("_arguments.delta")
        act = Act.ARGUMENTS if is_json else Act.PROTECT
        pieces = {}
        for field, piece in delta.items() if isinstance(delta, dict) else [("", delta)]:
            if isinstance(piece, str):
                key = kind, _identify_text(event.data), field
                tool = self._tools.get(event.data.get("output_index"), "")
                pieces[field] = self._restoring.piece(key, piece, act, tool)
                self._open[key] = event
        if any(pieces.values()) or not pieces or delta == "":
            whole = isinstance(delta, dict)
            restored = {**delta, **pieces} if whole else pieces.get("", delta)
            yield self._renumber(_replace_delta(event, restored))

    def _flush(self, places: Places, kind: str = "") -> Iterator[Event]:
        """Yields the held-back text at some places.

        Without places, only texts of the kind that the event ends are meant; without kind, all.
        """
        only = kind.replace(".done", ".delta") if not places else ""
        keys = [key for key in self._open if set(places) <= set(key[1]) and only in ("", key[0])]
        for key in keys:
            event, field = self._open.pop(key), key[2]
            if rest := self._restoring.rest(key):
                yield self._renumber(_replace_delta(event, {field: rest} if field else rest))

    def _restore_whole(self, data: Body) -> Body:
        """Restores an event with whole texts.

        Unresolved placeholders were counted when the texts came in pieces.
        """
        counted = self._restoring.unresolved
        tool = self._tools.get(data.get("output_index"), "")
        arguments = data.get("arguments")
        if isinstance(arguments, str) and "name" not in data:
            # The event does not say whose arguments they are.
            data = {**data, "arguments": self._restoring.text(arguments, Act.ARGUMENTS, tool)}
        restored: Body = self._restoring.whole(data, EVENT)
        annotation, key = (
            data.get("annotation"),
            ("response.output_text.delta", _identify_text(data), ""),
        )
        if annotation is not None and key in self._open:
            part = {"text": self._restoring.both(key)[0], "annotations": [annotation]}
            restored["annotation"] = self._restoring.whole(part, CITING)["annotations"][0]
        self._restoring.unresolved = counted
        return restored

    def _renumber(self, event: Event) -> Event:
        """Numbers an event anew, since events are added and left out."""
        number = event.data.get("sequence_number")
        if not isinstance(number, int):
            return event
        number = number if self._next is None else self._next
        self._next = number + 1
        return Event(event.name, {**event.data, "sequence_number": number})


CITING = record(text=PROTECTED, annotations=each(ANNOTATION))


def _identify_text(data: Body) -> Places:
    """Identifies the text that an event is about, as a key.

    The item's id counts only if the item has no number.
    """
    names = PLACES if data.get("output_index") is not None else ("item_id", *PLACES)
    return tuple((name, data[name]) for name in names if data.get(name) is not None)


def _replace_delta(event: Event, delta: Any) -> Event:
    """Copies an event with another delta, without data about the old one."""
    fields_of_event = {name: value for name, value in event.data.items() if name != "obfuscation"}
    if "logprobs" in fields_of_event:
        fields_of_event["logprobs"] = []
    return Event(event.name, {**fields_of_event, "delta": delta})


def _is_json_requested(body: Body) -> bool:
    wanted = body.get("text")
    form = wanted.get("format") if isinstance(wanted, dict) else None
    return isinstance(form, dict) and form.get("type") in ("json_object", "json_schema")


# ---- routes --------------------------------------------------------------------------------------


def _get_id(body: Body) -> str | None:
    """Returns the id that a route is about."""
    name = body.get("id")
    return name if isinstance(name, str) else None


def _list_ids(answer: Body) -> Sequence[str]:
    return [answer["id"]] if isinstance(answer.get("id"), str) else []


ALSO = {"include": INCLUDED, "include[]": each(INCLUDED)}
PAGE = {"after": NAMED, "limit": shaped("[0-9]{1,6}"), "order": one_of("asc", "desc"), **ALSO}

RESPONSES = Operation(
    name="openai.responses",
    path="/responses",
    request=REQUEST,
    answer=ANSWER,
    message=ITEM,
    messages=messages,
    said=said,
    reference=reference,
    in_turn=True,
    after=after,
    grows=grows,
    remembered=remembered,
    stream=ResponseEvents,
    as_json=_is_json_requested,
    error=error,
)
COUNTED = Operation(
    name="openai.responses.count",
    path="/responses/input_tokens",
    request=REQUEST,
    answer=whole(Act.PASS),
    messages=messages,
    after=after,
    error=error,
)
COMPACTED = Operation(
    name="openai.responses.compact",
    path="/responses/compact",
    request=REQUEST,
    answer=ANSWER,
    message=ITEM,
    messages=messages,
    after=after,
    remembered=remembered,
    error=error,
)
CONVERSATION = Operation(
    name="openai.conversations",
    path="/conversations",
    request=record(items=each(ITEM), metadata=USER),
    answer=whole(Act.PASS),
    messages=messages,
    remembered=_list_ids,
    error=error,
)


def _build_route(
    name: str, path: str, answer: LeafRule, method: Any = "GET", **query: LeafRule
) -> Operation:
    """Builds a route about something that the upstream remembers."""
    return Operation(
        name=name,
        path=path,
        method=method,
        has_body=False,
        request=record(id=NAMED, **query),
        answer=answer,
        after=_get_id,
        error=error,
    )


RESUMED = {
    "stream": one_of("true", "false"),
    "starting_after": whole(Act.DROP),  # it counts events of this gateway, not of the upstream
    "include_obfuscation": one_of("true", "false"),
}
ADDED = Operation(
    name="openai.conversations.add",
    path="/conversations/{id}/items",
    query=tuple(ALSO),
    request=record(id=NAMED, items=each(ITEM), **ALSO),
    needs=("items",),
    answer=LIST,
    messages=messages,
    after=_get_id,
    grows=_get_id,
    error=error,
)


ROUTES = (
    RESPONSES,
    COUNTED,
    COMPACTED,
    replace(
        _build_route("openai.responses.get", "/responses/{id}", ANSWER, **RESUMED, **ALSO),
        stream=ResponseEvents,
        message=ITEM,
        reference=reference,
        in_turn=True,
    ),
    _build_route("openai.responses.delete", "/responses/{id}", PASSED, "DELETE"),
    _build_route("openai.responses.cancel", "/responses/{id}/cancel", ANSWER, "POST"),
    _build_route("openai.responses.items", "/responses/{id}/input_items", LIST, **PAGE),
    CONVERSATION,
    _build_route("openai.conversations.get", "/conversations/{id}", PASSED),
    _build_route("openai.conversations.delete", "/conversations/{id}", PASSED, "DELETE"),
    _build_route("openai.conversations.items", "/conversations/{id}/items", LIST, **PAGE),
    ADDED,
    _build_route(
        "openai.conversations.item",
        "/conversations/{id}/items/{item}",
        SAID_ITEM,
        item=NAMED,
        **ALSO,
    ),
    _build_route(
        "openai.conversations.item.delete",
        "/conversations/{id}/items/{item}",
        PASSED,
        "DELETE",
        item=NAMED,
    ),
)
