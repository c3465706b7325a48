"""OpenAI responses and conversations, which the upstream remembers as released.

In: JSON of requests, answers and events. Out: their messages and names; restored events.
Not here: the tables of their leaves (`leaf_tables`), and the memory for the next request
(`session.conversations`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from textveil.gateway.errors import RequestError
from textveil.gateway.protocols.field_rules import (
    PASSED,
    Act,
    LeafRule,
    Path,
    any_value,
    array,
    choice,
    pattern,
    record,
)
from textveil.gateway.protocols.leaf_tables import UPSTREAM_NAME, load_rules
from textveil.gateway.protocols.openai import build_error
from textveil.gateway.protocols.operation import (
    REFERENCE,
    Event,
    JsonObject,
    JsonPair,
    Operation,
    get_items,
)
from textveil.gateway.protocols.restoring import AnswerRestorer, get_tool_name

RULES = load_rules("responses")
RESPONSES_REQUEST, ITEM, INCLUDE_OPTION = map(RULES.__getitem__, ("request", "item", "include"))
RESPONSES_ANSWER, ANSWER_ITEM, ITEM_LIST = map(
    RULES.__getitem__, ("answer", "answer_item", "answer_items")
)
CITED_PART, EVENT = RULES["answer_text"], RULES["answer_event"]
"""Leaves of a text with annotations, and of any event.

`ResponseEvents` restores the texts that come in pieces.
"""


def find_messages(body: JsonObject) -> Iterator[tuple[str, Path]]:
    """Yields the items of a request, as messages."""
    for field in ("input", "items"):
        value = body.get(field)
        if isinstance(value, str):
            yield "user", (field,)
        for i, item in enumerate(get_items(body, field)):
            role = None
            if isinstance(item, dict):
                reference_role = (
                    get_reference(item) if item.get("type") == "item_reference" else None
                )
                role = reference_role or item.get("role") or item.get("type")
            yield (role if isinstance(role, str) else ""), (field, i)


def find_predecessor(body: JsonObject) -> str | None:
    """Returns the remembered name that a request continues.

    It names an answer, a conversation, or a summary of one.
    """
    summaries = map(_get_summary, reversed(get_items(body, "input")))
    names = [body.get("previous_response_id"), get_conversation(body), *summaries]
    return next((name for name in names if isinstance(name, str)), None)


def get_conversation(body: JsonObject) -> str | None:
    """Returns the conversation that the upstream adds a request to.

    The upstream does so whether its answer arrives or not.
    """
    conversation = body.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    return conversation if isinstance(conversation, str) else None


def _get_summary(item: Any) -> Any:
    is_summary = isinstance(item, dict) and item.get("type") == "compaction"
    return item.get("encrypted_content") if is_summary else None


def list_upstream_names(answer: JsonObject) -> list[str]:
    """Lists the names under which the upstream remembers an answer."""
    # An answer in the background is fetched by its name, even if nothing is kept after that.
    is_kept = answer.get("store") is not False or answer.get("background") is True
    id_ = answer.get("id") if is_kept else None
    names = [id_, *map(_get_summary, list_answer_messages(answer))]
    return [name for name in names if isinstance(name, str)]


def get_reference(item: JsonObject) -> str | None:
    """Returns the role for an item that a client sends by name."""
    return f"{REFERENCE}{item['id']}" if isinstance(item.get("id"), str) else None


def list_answer_messages(answer: JsonObject) -> list[JsonObject]:
    """Lists the items of an answer, in order."""
    return [item for item in get_items(answer, "output") if isinstance(item, dict)]


PLACE_FIELDS = ("output_index", "content_index", "summary_index", "command_index")
"""Fields of an event that identify its text in the answer."""
_END_STATES = ("completed", "incomplete", "failed", "cancelled")
END_EVENTS = (*(f"response.{how}" for how in _END_STATES), "error")
"""Types of the last event of a stream."""
AUDIO_DELTA = "response.audio.delta"

Places = tuple[tuple[str, Any], ...]


class ResponseEvents:
    """Stream of the events of an answer; see `Stream`."""

    def __init__(self, restorer: AnswerRestorer) -> None:
        self._restorer = restorer
        # Open texts, each with its last event.
        self._open: dict[tuple[str, Places, str], Event] = {}
        self._items: list[JsonPair] = []
        self._tools: dict[Any, str] = {}  # names of called tools, by the item's number
        self._next: int | None = None
        number = str(restorer.request_pair[1].get("starting_after"))
        # The client already has the events up to this number.
        self._last_known = int(number) if number.isdecimal() else -1
        self.upstream_names: list[str] = []
        self.is_complete = False

    @property
    def messages(self) -> list[JsonPair]:
        """Items of the answer, as received and as restored."""
        return [*self._items]

    def feed(self, event: Event) -> Iterator[Event]:
        """Restores an event as far as it is certain.

        A client that resumes a stream counts these events, so all of them are made again, and the
        known ones are left out.
        """
        for restored in self._restore_event(event):
            if restored.data.get("sequence_number", self._last_known + 1) > self._last_known:
                yield restored

    def _restore_event(self, event: Event) -> Iterator[Event]:
        if event.data == "[DONE]":
            return
        kind = str(event.data.get("type") or event.name)
        if kind.endswith(".delta") and kind != AUDIO_DELTA:
            yield from self._restore_piece(kind, event)
            return
        if kind in END_EVENTS:
            yield from self.close()
            self.is_complete = True
        elif kind.endswith(".done"):
            yield from self._flush(_get_text_key(event.data), kind)
        restored = self._restore_whole(event.data)
        self._note(kind, event.data, restored)
        yield self._number_event(Event(event.name, restored))

    def _note(self, kind: str, received: JsonObject, restored: JsonObject) -> None:
        """Stores an event's tool names, items, and remembered names."""
        item, answer = received.get("item"), received.get("response")
        if kind == "response.output_item.added" and isinstance(item, dict):
            self._tools[received.get("output_index")] = get_tool_name(item)
        if kind == "response.output_item.done" and isinstance(item, dict):
            self._items.append((item, restored["item"]))
        if isinstance(answer, dict):
            self.upstream_names = list_upstream_names(answer)
            if kind in END_EVENTS and not self._items:
                self._items = list(
                    zip(
                        list_answer_messages(answer),
                        list_answer_messages(restored["response"]),
                        strict=True,
                    )
                )

    def close(self) -> Iterator[Event]:
        """Yields the held-back text of all open texts."""
        yield from self._flush(())

    def build_error_event(self, refused: RequestError) -> Event:
        """Writes an error as the last event of the stream.

        It also has the error where clients of all routes look for it.
        """
        content = build_error(refused)
        details = {name: content["error"][name] for name in ("code", "message", "param")}
        return Event(
            "error", {"type": "error", **details, "sequence_number": self._next or 0, **content}
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
                key = kind, _get_text_key(event.data), field
                tool = self._tools.get(event.data.get("output_index"), "")
                pieces[field] = self._restorer.restore_piece(key, piece, act, tool)
                self._open[key] = event
        if any(pieces.values()) or not pieces or delta == "":
            is_object = isinstance(delta, dict)
            restored = {**delta, **pieces} if is_object else pieces.get("", delta)
            yield self._number_event(_replace_delta(event, restored))

    def _flush(self, places: Places, kind: str = "") -> Iterator[Event]:
        """Yields the held-back text at some places.

        Without places, only texts of the kind that the event ends are meant; without kind, all.
        """
        delta_kind = kind.replace(".done", ".delta") if not places else ""
        # The end of an item names fewer places than its texts do, so it closes all of them.
        keys = [
            key for key in self._open if set(places) <= set(key[1]) and delta_kind in ("", key[0])
        ]
        for key in keys:
            event, field = self._open.pop(key), key[2]
            if tail := self._restorer.close_text(key):
                yield self._number_event(_replace_delta(event, {field: tail} if field else tail))

    def _restore_whole(self, data: JsonObject) -> JsonObject:
        """Restores an event with whole texts.

        Unresolved placeholders were counted when the texts came in pieces.
        """
        counted = self._restorer.unresolved, self._restorer.unresolved_calls
        tool = self._tools.get(data.get("output_index"), "")
        arguments = data.get("arguments")
        if isinstance(arguments, str) and "name" not in data:
            # The event does not say whose arguments they are.
            data = {
                **data,
                "arguments": self._restorer.restore_text(arguments, Act.ARGUMENTS, tool),
            }
        restored: JsonObject = self._restorer.restore_json(data, EVENT)
        annotation, key = (
            data.get("annotation"),
            ("response.output_text.delta", _get_text_key(data), ""),
        )
        if annotation is not None and key in self._open:
            part = {"text": self._restorer.get_text_pair(key)[0], "annotations": [annotation]}
            restored["annotation"] = self._restorer.restore_json(part, CITED_PART)["annotations"][0]
        self._restorer.unresolved, self._restorer.unresolved_calls = counted
        return restored

    def _number_event(self, event: Event) -> Event:
        """Numbers an event anew, since events are added and left out."""
        number = event.data.get("sequence_number")
        if not isinstance(number, int):
            return event
        number = number if self._next is None else self._next
        self._next = number + 1
        return Event(event.name, {**event.data, "sequence_number": number})


def _get_text_key(data: JsonObject) -> Places:
    """Identifies the text that an event is about, as a key.

    The item's id counts only if the item has no number.
    """
    names = PLACE_FIELDS if data.get("output_index") is not None else ("item_id", *PLACE_FIELDS)
    return tuple((name, data[name]) for name in names if data.get(name) is not None)


def _replace_delta(event: Event, delta: Any) -> Event:
    """Copies an event with another delta, without data about the old one."""
    fields_of_event = {name: value for name, value in event.data.items() if name != "obfuscation"}
    if "logprobs" in fields_of_event:
        fields_of_event["logprobs"] = []
    return Event(event.name, {**fields_of_event, "delta": delta})


def _is_json_requested(body: JsonObject) -> bool:
    text_config = body.get("text")
    form = text_config.get("format") if isinstance(text_config, dict) else None
    return isinstance(form, dict) and form.get("type") in ("json_object", "json_schema")


# ---- routes --------------------------------------------------------------------------------------


def _get_id(body: JsonObject) -> str | None:
    """Returns the id that a route is about."""
    name = body.get("id")
    return name if isinstance(name, str) else None


def _list_ids(answer: JsonObject) -> Sequence[str]:
    return [answer["id"]] if isinstance(answer.get("id"), str) else []


INCLUDE_QUERY = {"include": INCLUDE_OPTION, "include[]": array(INCLUDE_OPTION)}
PAGE_QUERY = {
    "after": UPSTREAM_NAME,
    "limit": pattern("[0-9]{1,6}"),
    "order": choice("asc", "desc"),
    **INCLUDE_QUERY,
}

RESPONSES = Operation(
    name="openai.responses",
    purpose="chat",
    path="/responses",
    request=RESPONSES_REQUEST,
    answer=RESPONSES_ANSWER,
    message=ITEM,
    find_messages=find_messages,
    list_answer_messages=list_answer_messages,
    get_reference=get_reference,
    is_sequential=True,
    find_predecessor=find_predecessor,
    get_conversation=get_conversation,
    list_upstream_names=list_upstream_names,
    stream=ResponseEvents,
    is_json_requested=_is_json_requested,
    build_error=build_error,
)
COUNT_TOKENS = Operation(
    name="openai.responses.count",
    path="/responses/input_tokens",
    request=RESPONSES_REQUEST,
    answer=PASSED,
    find_messages=find_messages,
    find_predecessor=find_predecessor,
    build_error=build_error,
)
COMPACT = Operation(
    name="openai.responses.compact",
    path="/responses/compact",
    request=RESPONSES_REQUEST,
    answer=RESPONSES_ANSWER,
    message=ITEM,
    find_messages=find_messages,
    find_predecessor=find_predecessor,
    list_upstream_names=list_upstream_names,
    build_error=build_error,
)
CREATE_CONVERSATION = Operation(
    name="openai.conversations",
    path="/conversations",
    request=RULES["conversation"],
    answer=PASSED,
    find_messages=find_messages,
    list_upstream_names=_list_ids,
    build_error=build_error,
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
        request=record(id=UPSTREAM_NAME, **query),
        answer=answer,
        find_predecessor=_get_id,
        build_error=build_error,
    )


RESUME_QUERY = {
    "stream": choice("true", "false"),
    "starting_after": any_value(Act.DROP),  # it counts events of this gateway, not of the upstream
    "include_obfuscation": choice("true", "false"),
}
ADD_ITEMS = Operation(
    name="openai.conversations.add",
    path="/conversations/{id}/items",
    query=tuple(INCLUDE_QUERY),
    request=record(id=UPSTREAM_NAME, items=array(ITEM), **INCLUDE_QUERY),
    needs=("items",),
    answer=ITEM_LIST,
    find_messages=find_messages,
    find_predecessor=_get_id,
    get_conversation=_get_id,
    build_error=build_error,
)


ROUTES = (
    RESPONSES,
    COUNT_TOKENS,
    COMPACT,
    replace(
        _build_route(
            "openai.responses.get",
            "/responses/{id}",
            RESPONSES_ANSWER,
            **RESUME_QUERY,
            **INCLUDE_QUERY,
        ),
        stream=ResponseEvents,
        message=ITEM,
        get_reference=get_reference,
        is_sequential=True,
    ),
    _build_route("openai.responses.delete", "/responses/{id}", PASSED, "DELETE"),
    _build_route("openai.responses.cancel", "/responses/{id}/cancel", RESPONSES_ANSWER, "POST"),
    _build_route("openai.responses.items", "/responses/{id}/input_items", ITEM_LIST, **PAGE_QUERY),
    CREATE_CONVERSATION,
    _build_route("openai.conversations.get", "/conversations/{id}", PASSED),
    _build_route("openai.conversations.delete", "/conversations/{id}", PASSED, "DELETE"),
    _build_route(
        "openai.conversations.items", "/conversations/{id}/items", ITEM_LIST, **PAGE_QUERY
    ),
    ADD_ITEMS,
    _build_route(
        "openai.conversations.item",
        "/conversations/{id}/items/{item}",
        ANSWER_ITEM,
        item=UPSTREAM_NAME,
        **INCLUDE_QUERY,
    ),
    _build_route(
        "openai.conversations.item.delete",
        "/conversations/{id}/items/{item}",
        PASSED,
        "DELETE",
        item=UPSTREAM_NAME,
    ),
)
