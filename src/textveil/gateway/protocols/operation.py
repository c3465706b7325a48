"""The contract of an API: routes, tables of leaves, and streams.

In: nothing. Out: the interface that `api_routes` and `request_flow` need of every API.
Not here: any API.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import quote

from textveil.errors import MissingExtra
from textveil.gateway.errors import RequestError
from textveil.gateway.protocols.field_rules import EMPTY_RULE, LeafRule, Path
from textveil.gateway.protocols.partial_answers import PieceRestorer
from textveil.gateway.protocols.restoring import AnswerRestorer

JsonObject = dict[str, Any]
JsonPair = tuple[JsonObject, JsonObject]
"""JSON before and after its texts were changed."""

EVENT_STREAM = "text/event-stream"
"""Media type of a stream of server-sent events."""

REFERENCE = "reference "
"""Role prefix of a message that only names something the upstream remembers."""

_VERSIONS = re.compile(r"[A-Za-z0-9._=/-]+(?:, ?[A-Za-z0-9._=/-]+){0,30}")
OPENAI_HEADERS = {
    "openai-beta": _VERSIONS,
    "openai-organization": re.compile(r"org-[A-Za-z0-9]{1,64}"),
    "openai-project": re.compile(r"proj_[A-Za-z0-9]{1,64}"),
}
ANTHROPIC_HEADERS = {
    "anthropic-beta": _VERSIONS,
    "anthropic-version": re.compile(r"[0-9-]{1,20}"),
    "anthropic-workspace-id": re.compile(r"wrkspc_[A-Za-z0-9]{1,64}"),
}
"""Forwarded headers other than the key, with their patterns."""


def get_items(body: JsonObject, name: str) -> list[Any]:
    """Returns the items of a field; none if it is no list."""
    value = body.get(name)
    return value if isinstance(value, list) else []


def list_messages(body: JsonObject, name: str, other: str = "") -> Iterator[tuple[str, Path]]:
    """Yields the roles and places of the messages in a field.

    See `Operation.find_messages`.
    """
    for i, message in enumerate(get_items(body, name)):
        role = message.get("role") if isinstance(message, dict) else None
        yield (role if isinstance(role, str) else other), (name, i)


class Event(NamedTuple):
    """Event of a stream. Secret.

    Args:
        name: its name; "" for none.
        data: its data; a string is written unchanged.
    """

    name: str
    data: Any

    def __repr__(self) -> str:
        return f"Event({self.name})"

    def render(self) -> str:
        """Formats the event as lines of server-sent events."""
        data = self.data
        content = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        return f"event: {self.name}\ndata: {content}\n\n" if self.name else f"data: {content}\n\n"


class Stream(Protocol):
    """Restorer of the events of one answer."""

    @property
    def upstream_names(self) -> Sequence[str]:
        """Upstream's names for what it remembers of this answer, once known."""

    @property
    def is_complete(self) -> bool:
        """True once the whole answer has come."""

    @property
    def messages(self) -> list[JsonPair]:
        """Messages of the answer, as received and as restored.

        They are those of `Operation.list_answer_messages`, once the stream has ended.
        """

    def feed(self, event: Event) -> Iterable[Event]:
        """Restores an event as far as it is certain."""

    def close(self) -> Iterable[Event]:
        """Yields the held-back text when no more events come.

        The last event is added if the upstream left it out.
        """

    def build_error_event(self, refused: RequestError) -> Event:
        """Writes an error as the last event of the stream."""


class Framing(Protocol):
    """Form in which events are written, where they are no server-sent events."""

    @property
    def media_types(self) -> tuple[str, ...]:
        """Media types of a stream; clients get the first one."""

    def create_reader(self) -> Callable[[bytes], Iterable[Event]]:
        """Creates the reader of one stream: it returns the events that end in a piece.

        The last piece is empty.

        Raises:
            MissingExtra: a library is not installed.
        """

    def write(self, event: Event) -> bytes:
        """Writes an event."""


@dataclass(frozen=True, kw_only=True)
class Guardrail:
    """Functions of a route that is answered without an upstream.

    Another program asks the model, and shows the gateway its requests and answers.

    Attributes:
        read: converts a request to the form of the route's table, given its JSON and its headers.
        get_client: names the asker's client that the request is about; clients share nothing.
        has_answer: true if the request has an answer to restore, false if it has texts to release.
        build_request_reply: builds the reply to a request, given the request as received and its
            release.
        build_answer_reply: builds the reply about an answer, given the answer as received and its
            restorer.
        returned: lists whose items the asker takes, released, from the reply;
            it sends all other fields as they are.
        convert_status: maps the status of an error to that of the response.
    """

    read: Callable[[JsonObject, Mapping[str, str]], JsonObject]
    has_answer: Callable[[JsonObject], bool]
    build_request_reply: Callable[[JsonObject, JsonObject], JsonObject]
    build_answer_reply: Callable[[JsonObject, PieceRestorer], JsonObject]
    get_client: Callable[[JsonObject], str] = lambda _: ""
    returned: tuple[str, ...]
    convert_status: Callable[[int], int] = lambda status: status


@dataclass(frozen=True, kw_only=True)
class Operation:
    """Route of an API.

    Attributes:
        name: its name in metrics and policies.
        purpose: what it asks a model for, as OpenTelemetry names it: "chat", "text_completion",
            "embeddings" or "generate_content"; "" if it asks none.
        path: its path below the base URL; `{name}` is a part that the client fills in.
        bases: paths of the gateway's own base URLs; if that is "" alone, the path is below the
            host of the upstream, too.
        prefix: stands before the path, at the gateway and at the upstream; see `PathPrefix`.
        method: its HTTP method.
        has_body: whether requests have a body; else a request consists of its path parameters and
            its query.
        query: fields of a request with a body that are sent in the query; other fields of the query
            are not read.
        normalize: brings a request to the form of its table.
        request: table of the leaves of a request: its body, its path parameters and its query.
        answer: table of the leaves of an answer.
        needs: fields without which a request is refused.
        message: table of one message of a request, such as an answer that a client sends back.
        find_messages: yields the roles and places of the messages of a request, in order. Texts
            outside of messages are released after them.
        list_answer_messages: returns the messages of an answer as clients send them back, in each
            form in which they do; none if they never do.
        get_reference: returns the role of a message that a client may name instead of sending it
            back; None if it cannot.
        holds_conversation: whether clients send the whole conversation with each request.
        is_sequential: whether these messages follow each other; else the client goes on with one of
            them.
        find_predecessor: returns the upstream's name of the remembered conversation or answer that
            a request continues; None for none.
        get_conversation: returns the upstream's name of the conversation that it adds a request to;
            None for none.
        list_upstream_names: returns the names under which the upstream remembers an answer.
        correct_offsets: corrects what depends on texts after they were changed, such as character
            offsets into the request's documents; given a request or an answer, and the request,
            each before and after.
        stream: creates the restorer of an answer's events; None if there are none.
        framing: how the events are written; None for server-sent events.
        is_stream_default: whether a request that does not say so asks for a stream.
        has_comments: whether clients of its streams know comments of server-sent events.
        is_json_requested: true if a request asks for an answer in JSON.
        build_error: converts an error to the form of the API.
        build_error_headers: returns what the API says of an error in headers.
        keys: request headers for the client's key, which are sent on.
        query_key: field of the query in which the client's key may be, too; "" for none. It counts
            as the first header of `keys`, and is sent as that.
        forwards: other headers, sent on if they match their pattern: versions, and names that the
            upstream gave.
        guardrail: answers the route without an upstream; None if the upstream is asked. With a
            guardrail, `get_conversation` names the session of the hidden values.
    """

    name: str
    purpose: Literal["chat", "text_completion", "embeddings", "generate_content", ""] = ""
    path: str
    bases: tuple[str, ...] = ("/v1", "")
    prefix: str = ""
    method: Literal["GET", "POST", "DELETE"] = "POST"
    has_body: bool = True
    query: tuple[str, ...] = ()
    normalize: Callable[[JsonObject], JsonObject] = lambda body: body
    request: LeafRule
    answer: LeafRule
    build_error: Callable[[RequestError], JsonObject]
    needs: tuple[str, ...] = ()
    message: LeafRule = EMPTY_RULE
    find_messages: Callable[[JsonObject], Iterator[tuple[str, Path]]] = lambda _: iter(())
    list_answer_messages: Callable[[JsonObject], Sequence[JsonObject]] = lambda _: ()
    get_reference: Callable[[JsonObject], str | None] = lambda _: None
    holds_conversation: bool = False
    is_sequential: bool = False
    find_predecessor: Callable[[JsonObject], str | None] = lambda _: None
    get_conversation: Callable[[JsonObject], str | None] = lambda _: None
    list_upstream_names: Callable[[JsonObject], Sequence[str]] = lambda _: ()
    correct_offsets: Callable[[JsonPair, JsonPair], JsonObject] = lambda said, _: said[1]
    stream: Callable[[AnswerRestorer], Stream] | None = None
    framing: Framing | None = None
    is_stream_default: bool = False
    has_comments: bool = True
    is_json_requested: Callable[[JsonObject], bool] = lambda _: False
    build_error_headers: Callable[[RequestError], dict[str, str]] = lambda _: {}
    keys: tuple[str, ...] = ("authorization",)
    query_key: str = ""
    forwards: Mapping[str, re.Pattern[str]] = field(default_factory=lambda: OPENAI_HEADERS)
    guardrail: Guardrail | None = None

    @property
    def route(self) -> str:
        """Name of the route in policy rules: its path, without the slash."""
        return self.path.removeprefix("/").replace(":path", "")

    @property
    def full_path(self) -> str:
        """Path below the base URL, with the prefix."""
        return self.prefix + self.path

    @property
    def stream_types(self) -> tuple[str, ...]:
        """Media types of its streams; clients get the first one."""
        return (EVENT_STREAM,) if self.framing is None else self.framing.media_types

    def choose_stream(self, request: JsonObject) -> Callable[[AnswerRestorer], Stream] | None:
        """Returns the stream restorer's factory; None if no stream is requested.

        Raises:
            RequestError: a library that reads such streams is not installed.
        """
        # Where the table has no such field, it is not that of the API.
        given = request.get("stream") if "stream" in (self.request.fields or {}) else None
        is_wanted = self.is_stream_default if given is None else given in (True, "true")
        if not is_wanted or self.framing is None:
            return self.stream if is_wanted else None
        try:
            self.framing.create_reader()
            return self.stream
        except MissingExtra as error:
            refusal = RequestError(501, f"{error}, or ask without a stream. Nothing was sent")
        raise refusal

    def choose_base(self, upstream: str) -> str:
        """Returns the URL of the upstream that the path stands below."""
        base = upstream.rstrip("/")
        if any(self.bases):
            return base
        # So that one upstream serves the routes of both kinds.
        return base.removesuffix("/v1").removesuffix("/openai")

    def split_request(self, request: JsonObject) -> tuple[str, JsonObject, JsonObject | None]:
        """Splits a request into path, query and body for the upstream."""
        remaining = dict(request)
        names = re.findall(r"{(\w+)", self.full_path)
        if not remaining.keys() >= set(names):
            raise RequestError(400, "a name in the path is not valid")
        # Names of models may have slashes, which stay only at the end of a path.
        path = re.sub(
            r"{(\w+)(?::path)?}(/?)",
            lambda part: quote(str(remaining.pop(part[1])), "" if part[2] else "/") + part[2],
            self.full_path,
        )
        if not self.has_body:
            return path, remaining, None
        return (
            path,
            {name: remaining.pop(name) for name in self.query if name in remaining},
            remaining,
        )


@dataclass(frozen=True, kw_only=True)
class PathPrefix:
    """Place where routes are served once more, and which the upstream has, too.

    Attributes:
        path: stands before the path of each route. `{name}` is a part that the client fills in; it
            takes the place of the field of this name, as in a request without it.
        names: patterns of the names of the routes.
        fields: rules of the parts of the path, and of the fields of the query.
        query: fields that are sent in the query.
        keys: request headers for the client's key.
    """

    path: str
    names: tuple[str, ...]
    fields: Mapping[str, LeafRule]
    query: tuple[str, ...]
    keys: tuple[str, ...]

    def place(self, operations: Iterable[Operation]) -> Iterator[Operation]:
        """Yields those of the routes that are served here, too."""
        for operation in operations:
            if any(fnmatchcase(operation.name, name) for name in self.names):
                rules = {**(operation.request.fields or {}), **self.fields}
                yield replace(
                    operation,
                    prefix=self.path,
                    bases=("",),
                    query=(*operation.query, *self.query),
                    keys=self.keys,
                    request=replace(operation.request, fields=rules),
                )
