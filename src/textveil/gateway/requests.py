"""Requests: what of a body is text and in which message it stands, and the body as it is sent.

In: JSON, the table of its API, a policy. Out: `Asked`: utterances to release, and the body with their releases.
Not here: the tables (`protocols`), how texts are released (`releasing`).
"""

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any

from textveil.errors import LIKE, nearest, quote
from textveil.gateway.errors import RequestError
from textveil.gateway.leaves import (
    DROPPED,
    TEXT,
    Act,
    Leaf,
    Path,
    known_instead,
    leaves,
    located,
    rebuilt,
)
from textveil.gateway.policy import Policy
from textveil.gateway.protocols import Operation
from textveil.session import Signed, Utterance

BESIDES = "besides"
"""The role of what is in no message: instructions, tools, words to stop at."""

TEXT_FORM, LABEL_FORM, JSON_FORM, SCHEMA_FORM = "", "label", "json", "schema"
"""How a text is written: as it is read, as one word, as JSON; a schema is JSON, or a text about a tool."""


class Asked:
    """A request, ready to be released.

    Args:
        operation: its route.
        body: its JSON.
        policy: what becomes of what cannot be protected.
        pseudonym: makes one of the name of a program's user.

    Attributes:
        messages: its messages, in order.
        besides: the texts that are in no message, if there are any.
        signed: what the upstream signed.
        passed: how many values are sent though they cannot be protected.
        left_out: how many values are not sent, because nobody knows what they are, or what was signed in them.

    Raises:
        RequestError: it holds what cannot be protected, or lacks what it needs.
    """

    def __init__(
        self,
        operation: Operation,
        body: dict[str, Any],
        policy: Policy,
        pseudonym: Callable[[str], str],
    ) -> None:
        _require(operation, body)
        self._body, self._changed, self.passed, self.left_out = body, dict[Path, Any](), 0, 0
        self._operation, self._policy, self._pseudonym = operation, policy, pseudonym
        roles = {path: role for role, path in operation.messages(body)}
        self._signed: list[Leaf] = []
        self._besides: list[Leaf] = []
        self._found: dict[Path, list[Leaf]] = {path: [] for path in roles}
        for leaf in leaves(body, operation.request):
            self._sort(leaf)
        several = [(BESIDES, self._besides)] if self._besides else []
        self.messages = [uttered(roles[path], own, body) for path, own in self._found.items()]
        self.besides = [uttered(role, own, body) for role, own in several]
        self.signed = [signed_in(body, leaf.path) for leaf in self._signed]
        self._texts = [*self._found.values(), *(own for _, own in several)]

    def _sort(self, leaf: Leaf) -> None:
        """Notes in which message a text stands, and decide what becomes of any other leaf."""
        if leaf.act is Act.SCHEMA and self._policy.schemas == "pass":
            return
        if leaf.act is not Act.SIGNED and leaf.act not in TEXT:
            self._settle(leaf)
        elif not _is_empty(leaf):
            around = (leaf.path[:n] for n in range(len(leaf.path), 0, -1))
            own = next((self._found[each] for each in around if each in self._found), self._besides)
            (self._signed if leaf.act is Act.SIGNED else own).append(leaf)

    def _settle(self, leaf: Leaf) -> None:
        """Decide what becomes of a leaf that is no text."""
        policy = self._policy
        if leaf.act is Act.DROP:
            self._changed[leaf.path] = DROPPED
        elif leaf.act is Act.USER:
            known = policy.users == "pseudonym" and isinstance(leaf.value, str)
            self._changed[leaf.path] = self._pseudonym(leaf.value) if known else DROPPED
        elif leaf.act is Act.UNKNOWN and policy.unknown == "drop":
            self._changed[leaf.path] = DROPPED
            self.left_out += 1
        elif leaf.act is Act.MEDIA and policy.media == "pass":
            self.passed += 1
        elif leaf.act is not Act.PASS:
            raise self._refused(leaf)

    def _refused(self, leaf: Leaf) -> RequestError:
        name = located(leaf.path, self._body)
        instead = known_instead(leaf.path, self._operation.request)
        if leaf.act is not Act.UNKNOWN:
            says = f"{name} cannot be protected: leave it out"
            if leaf.act is Act.MEDIA:
                says += ", or let the policy pass media (--media pass)"
        elif instead is not None:
            near = nearest(str(leaf.path[-1]), instead, LIKE)
            says = (
                f"{name} is not known here, so that it cannot be protected: leave it out, or let the policy drop what "
                f"is unknown (--unknown drop){f'; did you mean {near}?' if near else ''}"
            )
        else:
            says = f"{name} has the wrong type, or a value that is not known here, so that it cannot be protected"
        return RequestError(400, says, param=name, code="unprotected")

    def released(
        self, texts: Sequence[Sequence[str]], signed: Sequence[str | None] = ()
    ) -> dict[str, Any]:
        """The body with its texts replaced.

        Args:
            texts: of the messages, in order, and of what is beside them, if there is any.
            signed: what the upstream signed, as it came; None where that is not known.
        """
        changed = dict(self._changed)
        for own, made in zip(self._texts, texts, strict=True):
            for leaf, text in zip(own, made, strict=True):
                changed[leaf.path] = text if isinstance(leaf.value, str) else json.loads(text)
                if not text.strip() and _is_part(leaf):
                    changed[leaf.path[:-1]] = DROPPED
        for leaf, came in zip(self._signed, signed, strict=True):
            known = came is not None
            changed[leaf.path if known else leaf.path[:-1]] = came if known else DROPPED
            self.left_out += came is None
        body: dict[str, Any] = rebuilt(self._body, changed)
        return body


def _require(operation: Operation, body: dict[str, Any]) -> None:
    """Refuses a request that lacks what it needs."""
    for name in operation.needs:
        if body.get(name) in (None, "", [], {}):
            near = nearest(name, body.keys() - {name}, LIKE)
            says = f"{name} is missing{f'; is it {quote(near)}?' if near else ''}"
            raise RequestError(400, says, param=name, code="missing")


def uttered(role: str, own: Sequence[Leaf], body: Any = None) -> Utterance:
    """The texts of a message, JSON among them as it is written.

    Args:
        role: of the message.
        own: its leaves.
        body: where they stand, if results of tools may be among them.
    """
    texts = tuple(
        leaf.value if isinstance(leaf.value, str) else json.dumps(leaf.value) for leaf in own
    )
    said = Utterance(role, texts, tuple(_form(leaf) for leaf in own))
    results = [_is_result(body, leaf.path) for leaf in own]
    sources = ("tool" if is_result else said.source(i) for i, is_result in enumerate(results))
    return said._replace(sources=tuple(sources)) if any(results) else said


def message_of(operation: Operation, message: dict[str, Any]) -> Utterance:
    """A message of an answer, as it will be read when the client sends it back."""
    found = _said(operation, message, TEXT)
    return uttered(str(message.get("role") or message.get("type") or "assistant"), found)


def all_signed(operation: Operation, message: dict[str, Any]) -> list[Signed]:
    """What the upstream signed in a message of an answer."""
    found = _said(operation, message, {Act.SIGNED})
    return [signed_in(message, leaf.path) for leaf in found]


def _said(operation: Operation, message: dict[str, Any], acts: Collection[Act]) -> list[Leaf]:
    found = leaves(message, operation.message)
    return [leaf for leaf in found if leaf.act in acts and not _is_empty(leaf)]


def signed_in(value: Any, path: Path) -> Signed:
    """A text that the upstream signed, with its signature, which stands beside it."""
    for step in path[:-1]:
        value = value[step]
    return Signed(str(value.get("signature") or ""), value[path[-1]])


def _is_result(body: Any, path: Path) -> bool:
    """Whether a leaf stands in the result of a tool or a search, whatever the role of the message."""
    for step in path:
        if isinstance(body, dict) and str(body.get("type")).endswith(("result", "output")):
            return True
        try:
            body = body[step]
        except (TypeError, LookupError):
            return False
    return False


def _is_empty(leaf: Leaf) -> bool:
    return leaf.value in ("", [], {})


def _is_part(leaf: Leaf) -> bool:
    """Whether it is a text in a list of parts: APIs refuse one that is empty since the part before has all of it."""
    return (
        leaf.path[-1] == "text" and isinstance(leaf.path[-2:][0], int) and bool(leaf.value.strip())
    )


def _form(leaf: Leaf) -> str:
    if leaf.act is Act.SCHEMA:
        return SCHEMA_FORM
    if leaf.act is Act.ARGUMENTS or not isinstance(leaf.value, str):
        return JSON_FORM
    return LABEL_FORM if leaf.act is Act.LABEL else TEXT_FORM
