"""The contract of an API: its routes, the tables of its leaves, and its streams.

In: nothing. Out: what `routes` and `exchange` ask of every API.
Not here: any API.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import quote

from textveil.gateway.answers import Restoring
from textveil.gateway.errors import RequestError
from textveil.gateway.leaves import NOTHING, LeafRule, Path
from textveil.gateway.pieces import AnswerPieces

Body = dict[str, Any]
Pair = tuple[Body, Body]
"""The same before and after its texts were changed."""

REFERENCE = "reference "
"""How the role of a message begins that only names what the upstream remembers."""


_VERSIONS = re.compile(r"[A-Za-z0-9._=/-]+(?:, ?[A-Za-z0-9._=/-]+){0,30}")
OPENAI = {
    "openai-beta": _VERSIONS,
    "openai-organization": re.compile(r"org-[A-Za-z0-9]{1,64}"),
    "openai-project": re.compile(r"proj_[A-Za-z0-9]{1,64}"),
}
ANTHROPIC = {
    "anthropic-beta": _VERSIONS,
    "anthropic-version": re.compile(r"[0-9-]{1,20}"),
    "anthropic-workspace-id": re.compile(r"wrkspc_[A-Za-z0-9]{1,64}"),
}
"""Headers besides the key that are sent on, and their shapes."""


def listed(body: Body, name: str) -> list[Any]:
    """Gives the items of a field; none where it is no list."""
    value = body.get(name)
    return value if isinstance(value, list) else []


def messages_in(body: Body, name: str, other: str = "") -> Iterator[tuple[str, Path]]:
    """Gives the roles and places of the messages in a field; see `Operation.messages`."""
    for i, message in enumerate(listed(body, name)):
        role = message.get("role") if isinstance(message, dict) else None
        yield (role if isinstance(role, str) else other), (name, i)


class Event(NamedTuple):
    """An event of a stream. Secret.

    Args:
        name: its name, "" for none.
        data: what it says; a string is written as it is.
    """

    name: str
    data: Any

    def __repr__(self) -> str:
        return f"Event({self.name})"

    def written(self) -> str:
        """As the lines of server-sent events."""
        data = self.data
        said = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        return f"event: {self.name}\ndata: {said}\n\n" if self.name else f"data: {said}\n\n"


class Stream(Protocol):
    """A stream of one answer."""

    @property
    def remembered(self) -> Sequence[str]:
        """The upstream's names for what it remembers of this answer, as soon as they are known."""

    @property
    def ended(self) -> bool:
        """Whether all of the answer has come."""

    @property
    def messages(self) -> list[tuple[Body, Body]]:
        """As `Operation.said`, each as it came and as it was restored; once the stream has ended."""

    def feed(self, event: Event) -> Iterable[Event]:
        """The restored events that are certain after this one."""

    def close(self) -> Iterable[Event]:
        """What was held back, when no more events come; with the last event where the upstream left it out."""

    def failed(self, refused: RequestError) -> Event:
        """The last event of a stream that did not end well."""


@dataclass(frozen=True, kw_only=True)
class Guardrail:
    """How a route is answered without an upstream: somebody else asks the model, and shows what goes there and back.

    Attributes:
        read: a request in the form of the table of its route, given its JSON and its headers.
        whose: which of the asker's own clients it is about; those share nothing.
        restores: whether it shows an answer, whose originals are put back; else texts are to be released.
        released: the reply to a request, given it as it came and its release.
        restored: the reply about an answer, given it as it came and what restores it.
        status: the status of an error, given the error's own.
    """

    read: Callable[[Body, Mapping[str, str]], Body]
    restores: Callable[[Body], bool]
    released: Callable[[Body, Body], Body]
    restored: Callable[[Body, AnswerPieces], Body]
    whose: Callable[[Body], str] = lambda _: ""
    status: Callable[[int], int] = lambda status: status


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One route of an API.

    Attributes:
        name: as metrics and policies call it.
        path: below the base URL; `{name}` is a part of it that the client gives.
        method: of HTTP. Only what is posted has a body.
        has_body: whether it has one; else a request is the parts of its path that are the client's, and its query.
        query: fields of a request with a body that are sent in the query; no other field of the query is read.
        request: what becomes of the leaves of a request: of its body, of the parts of its path and of its query.
        answer: what becomes of the leaves of an answer.
        needs: fields without which a request is refused.
        message: of one message of a request, such as an answer that a client sends back.
        messages: the roles and places of the messages of a request, in order. What is in none is released after them.
        said: the messages of an answer as clients send them back, in each form in which they do; none where they never
            do.
        reference: as which role a client may name one of these instead of sending it back; None where it cannot.
        in_turn: whether these are said one after the other; else the client goes on with one of them.
        after: the upstream's name of what it remembers, and this request is about; None where there is none.
        grows: the same, where the upstream adds this request to it.
        remembered: the upstream's names for what it remembers of an answer.
        placed: a request or an answer after its texts were changed, where it says at which character of the request's
            documents something stands; given it, and the request, each before and after.
        stream: restores the events of an answer; None where there are none.
        as_json: whether a request asks for an answer in JSON.
        error: an error in the form of the API.
        keys: headers of a request with the client's key, which are sent on.
        forwards: other headers that are sent on where they have a shape: versions, and names that the upstream gave.
        guardrail: how it is answered here; None where the upstream is asked. `grows` then names what was hidden.
    """

    name: str
    path: str
    method: Literal["GET", "POST", "DELETE"] = "POST"
    has_body: bool = True
    query: tuple[str, ...] = ()
    request: LeafRule
    answer: LeafRule
    error: Callable[[RequestError], Body]
    needs: tuple[str, ...] = ()
    message: LeafRule = NOTHING
    messages: Callable[[Body], Iterator[tuple[str, Path]]] = lambda _: iter(())
    said: Callable[[Body], Sequence[Body]] = lambda _: ()
    reference: Callable[[Body], str | None] = lambda _: None
    in_turn: bool = False
    after: Callable[[Body], str | None] = lambda _: None
    grows: Callable[[Body], str | None] = lambda _: None
    remembered: Callable[[Body], Sequence[str]] = lambda _: ()
    placed: Callable[[Pair, Pair], Body] = lambda said, _: said[1]
    stream: Callable[[Restoring], Stream] | None = None
    as_json: Callable[[Body], bool] = lambda _: False
    keys: tuple[str, ...] = ("authorization",)
    forwards: Mapping[str, re.Pattern[str]] = field(default_factory=lambda: OPENAI)
    guardrail: Guardrail | None = None

    @property
    def route(self) -> str:
        """What rules of a policy call it: its path, without the slash."""
        return self.path.removeprefix("/").replace(":path", "")

    def streamed(self, sent: Body) -> Callable[[Restoring], Stream] | None:
        """Gives what restores the events of the answer to a request; None where it asks for none."""
        return self.stream if sent.get("stream") in (True, "true") else None

    def target(self, sent: Body) -> tuple[str, Body, Body | None]:
        """The path of a request below the upstream's base URL, its query, and its body."""
        rest = dict(sent)
        names = re.findall(r"{(\w+)", self.path)
        if not rest.keys() >= set(names):
            raise RequestError(
                400, "the name at the end of the path is not one that an upstream gives"
            )
        path = re.sub(r"{(\w+)(?::path)?}", lambda part: quote(str(rest.pop(part[1]))), self.path)
        if not self.has_body:
            return path, rest, None
        return path, {name: rest.pop(name) for name in self.query if name in rest}, rest
