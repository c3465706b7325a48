"""Parsed requests: their texts by message, and the body with releases.

In: JSON, the table of its API, a policy. Out: `Asked`: utterances to release, and the body with
their releases.
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
"""Role of texts outside of messages: instructions, tools, stop words."""

TEXT_FORM, LABEL_FORM, JSON_FORM, SCHEMA_FORM = "", "label", "json", "schema"
"""Forms of a text: plain, one word, JSON, or schema.

A schema is JSON, or a text about a tool.
"""


class Asked:
    """Parsed request, ready to be released.

    Args:
        operation: the route of the request.
        body: its JSON.
        policy: decides about values that cannot be protected.
        pseudonym: makes a pseudonym from the name of a program's user.

    Attributes:
        messages: its messages, in order.
        besides: one utterance with the texts outside of messages, if there are any.
        signed: the texts that the upstream signed.
        passed: the number of values that are sent although they cannot be protected.
        left_out: the number of values that are not sent, since they, or the signed texts in them,
            are unknown.

    Raises:
        RequestError: the request has a value that cannot be protected, or lacks a field that it
            needs.
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
        self.messages = [
            uttered(roles[path], leaves_of_message, body)
            for path, leaves_of_message in self._found.items()
        ]
        self.besides = [
            uttered(role, leaves_of_message, body) for role, leaves_of_message in several
        ]
        self.signed = [signed_in(body, leaf.path) for leaf in self._signed]
        self._texts = [
            *self._found.values(),
            *(leaves_of_message for _, leaves_of_message in several),
        ]

    def _sort(self, leaf: Leaf) -> None:
        """Assigns a text to its message, and settles any other leaf."""
        if leaf.act is Act.SCHEMA and self._policy.schemas == "pass":
            return
        if leaf.act is not Act.SIGNED and leaf.act not in TEXT:
            self._settle(leaf)
        elif not _is_empty(leaf):
            around = (leaf.path[:n] for n in range(len(leaf.path), 0, -1))
            target = next(
                (self._found[each] for each in around if each in self._found), self._besides
            )
            (self._signed if leaf.act is Act.SIGNED else target).append(leaf)

    def _settle(self, leaf: Leaf) -> None:
        """Decides about a leaf that is no text.

        It is changed, dropped, passed or refused.
        """
        policy = self._policy
        if leaf.act is Act.DROP:
            self._changed[leaf.path] = DROPPED
        elif leaf.act is Act.USER:
            is_replaced = policy.users == "pseudonym" and isinstance(leaf.value, str)
            self._changed[leaf.path] = self._pseudonym(leaf.value) if is_replaced else DROPPED
        elif leaf.act is Act.UNKNOWN and policy.unknown == "drop":
            self._changed[leaf.path] = DROPPED
            self.left_out += 1
        elif leaf.act is Act.MEDIA and policy.media == "pass":
            self.passed += 1
        elif leaf.act is not Act.PASS:
            raise self._build_refusal(leaf)

    def _build_refusal(self, leaf: Leaf) -> RequestError:
        name = located(leaf.path, self._body)
        instead = known_instead(leaf.path, self._operation.request)
        if leaf.act is not Act.UNKNOWN:
            says = f"{name} cannot be protected: leave it out"
            if leaf.act is Act.MEDIA:
                says += ", or let the policy pass media (--media pass)"
        elif instead is not None:
            near = nearest(str(leaf.path[-1]), instead, LIKE)
            says = (
                f"{name} is not known here, so that it cannot be protected: leave it out, or let "
                "the policy drop what "
                f"is unknown (--unknown drop){f'; did you mean {near}?' if near else ''}"
            )
        else:
            says = (
                f"{name} has the wrong type, or a value that is not known here, so that it cannot "
                "be protected"
            )
        return RequestError(400, says, param=name, code="unprotected")

    def released(
        self, texts: Sequence[Sequence[str]], signed: Sequence[str | None] = ()
    ) -> dict[str, Any]:
        """Returns the body with its texts replaced.

        Args:
            texts: the released texts of the messages, in order, and then of `besides`, if there is
                any.
            signed: the texts that the upstream signed, as received; None for an unknown one.
        """
        changed = dict(self._changed)
        for leaves_of_message, released in zip(self._texts, texts, strict=True):
            for leaf, text in zip(leaves_of_message, released, strict=True):
                changed[leaf.path] = text if isinstance(leaf.value, str) else json.loads(text)
                if not text.strip() and _is_part(leaf):
                    changed[leaf.path[:-1]] = DROPPED
        for leaf, original in zip(self._signed, signed, strict=True):
            is_known = original is not None
            changed[leaf.path if is_known else leaf.path[:-1]] = original if is_known else DROPPED
            self.left_out += original is None
        body: dict[str, Any] = rebuilt(self._body, changed)
        return body


def _require(operation: Operation, body: dict[str, Any]) -> None:
    """Refuses a request that lacks a needed field."""
    for name in operation.needs:
        if body.get(name) in (None, "", [], {}):
            near = nearest(name, body.keys() - {name}, LIKE)
            says = f"{name} is missing{f'; is it {quote(near)}?' if near else ''}"
            raise RequestError(400, says, param=name, code="missing")


def uttered(role: str, own: Sequence[Leaf], body: Any = None) -> Utterance:
    """Builds the utterance of a message from its leaves.

    Values that are no strings become JSON texts.

    Args:
        role: the role of the message.
        own: the leaves of the message.
        body: the JSON around the leaves, if results of tools may be among them.
    """
    texts = tuple(
        leaf.value if isinstance(leaf.value, str) else json.dumps(leaf.value) for leaf in own
    )
    utterance = Utterance(role, texts, tuple(_get_form(leaf) for leaf in own))
    results = [_is_result(body, leaf.path) for leaf in own]
    sources = ("tool" if is_result else utterance.source(i) for i, is_result in enumerate(results))
    return utterance._replace(sources=tuple(sources)) if any(results) else utterance


def message_of(operation: Operation, message: dict[str, Any]) -> Utterance:
    """Builds the utterance of an answer's message, as clients send it back."""
    texts = _find_leaves(operation, message, TEXT)
    return uttered(str(message.get("role") or message.get("type") or "assistant"), texts)


def all_signed(operation: Operation, message: dict[str, Any]) -> list[Signed]:
    """Lists the texts that the upstream signed in an answer's message."""
    texts = _find_leaves(operation, message, {Act.SIGNED})
    return [signed_in(message, leaf.path) for leaf in texts]


def _find_leaves(
    operation: Operation, message: dict[str, Any], acts: Collection[Act]
) -> list[Leaf]:
    all_leaves = leaves(message, operation.message)
    return [leaf for leaf in all_leaves if leaf.act in acts and not _is_empty(leaf)]


def signed_in(value: Any, path: Path) -> Signed:
    """Returns a signed text with the signature beside it."""
    for step in path[:-1]:
        value = value[step]
    return Signed(str(value.get("signature") or ""), value[path[-1]])


def _is_result(body: Any, path: Path) -> bool:
    """True if a leaf is in a tool's or search's result.

    The role of the message does not matter.
    """
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
    """True if a leaf is a nonempty text part of a list.

    APIs refuse an empty one, which arises when the part before it took all its text.
    """
    return (
        leaf.path[-1] == "text" and isinstance(leaf.path[-2:][0], int) and bool(leaf.value.strip())
    )


def _get_form(leaf: Leaf) -> str:
    if leaf.act is Act.SCHEMA:
        return SCHEMA_FORM
    if leaf.act is Act.ARGUMENTS or not isinstance(leaf.value, str):
        return JSON_FORM
    return LABEL_FORM if leaf.act is Act.LABEL else TEXT_FORM
