"""Parsed requests: their texts by message, and the body with releases.

In: JSON, the table of its API, a policy. Out: `ParsedRequest`: utterances to release, and the body
with their releases.
Not here: the tables (`protocols`), how texts are released (`protect_message`).
"""

import json
from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from typing import Any

from textveil.errors import MIN_SIMILARITY, find_nearest, quote
from textveil.gateway.errors import RequestError
from textveil.gateway.policy.policy import Policy
from textveil.gateway.protocols import Operation
from textveil.gateway.protocols.field_rules import (
    DROPPED,
    RELEASE_ACTS,
    Act,
    Leaf,
    Path,
    find_leaves,
    format_path,
    list_known_fields,
    replace_leaves,
)
from textveil.gateway.request.application import read_application
from textveil.session import SignedText, Utterance

CONTEXT_ROLE = "besides"
"""Role of texts outside of messages: instructions, tools, stop words."""

TEXT_FORM, LABEL_FORM, JSON_FORM, SCHEMA_FORM = "", "label", "json", "schema"
"""Forms of a text: plain, one word, JSON, or schema.

A schema is JSON, or a text about a tool.
"""


class ParsedRequest:
    """Parsed request, ready to be released.

    Args:
        operation: the route of the request.
        body: its JSON.
        policy: decides about values that cannot be protected.
        pseudonym: makes a pseudonym from the name of a program's user.

    Attributes:
        messages: its messages, in order.
        context: utterances with the texts outside of messages, such as one for each tool.
        signed: the texts that the upstream signed.
        application: what the application brings along itself: its words, its own texts.
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
        self._body, self._changes, self.passed, self.left_out = body, dict[Path, Any](), 0, 0
        self._operation, self._policy, self._pseudonym = operation, policy, pseudonym
        roles = {path: role for role, path in operation.find_messages(body)}
        self._signed: list[Leaf] = []
        self._context_leaves: list[Leaf] = []
        self._message_leaves: dict[Path, list[Leaf]] = {path: [] for path in roles}
        leaves = list(find_leaves(body, operation.request))
        self.application = read_application(leaves, roles, body.get("model"))
        for leaf in leaves:
            self._assign_leaf(leaf)
        context_groups = [
            (CONTEXT_ROLE, list(group))
            for _, group in groupby(self._context_leaves, lambda leaf: _get_item(leaf.path))
        ]
        self.messages = [
            build_utterance(roles[path], leaves_of_message, body)
            for path, leaves_of_message in self._message_leaves.items()
        ]
        self.context = [
            build_utterance(role, leaves_of_message, body)
            for role, leaves_of_message in context_groups
        ]
        self.signed = [get_signed(body, leaf.path) for leaf in self._signed]
        self._texts = [
            *self._message_leaves.values(),
            *(leaves_of_message for _, leaves_of_message in context_groups),
        ]

    def _assign_leaf(self, leaf: Leaf) -> None:
        """Assigns a text to its message, and settles any other leaf."""
        if leaf.act is Act.SCHEMA and self._policy.schemas == "pass":
            return
        if leaf.act is not Act.SIGNED and leaf.act not in RELEASE_ACTS:
            self._decide_leaf(leaf)
        elif not _is_empty(leaf):
            paths = (leaf.path[:n] for n in range(len(leaf.path), 0, -1))
            target = next(
                (self._message_leaves[path] for path in paths if path in self._message_leaves),
                self._context_leaves,
            )
            (self._signed if leaf.act is Act.SIGNED else target).append(leaf)

    def _decide_leaf(self, leaf: Leaf) -> None:
        """Decides about a leaf that is no text.

        It is changed, dropped, passed or refused.
        """
        policy = self._policy
        if leaf.act is Act.DROP:
            self._changes[leaf.path] = DROPPED
        elif leaf.act is Act.USER:
            is_replaced = policy.users == "pseudonym" and isinstance(leaf.value, str)
            self._changes[leaf.path] = self._pseudonym(leaf.value) if is_replaced else DROPPED
        elif leaf.act is Act.UNKNOWN and policy.unknown == "drop":
            self._changes[leaf.path] = DROPPED
            self.left_out += 1
        elif leaf.act is Act.MEDIA and policy.media == "pass":
            self.passed += 1
        elif leaf.act is not Act.PASS:
            raise self._build_refusal(leaf)

    def _build_refusal(self, leaf: Leaf) -> RequestError:
        name = format_path(leaf.path, self._body)
        instead = list_known_fields(leaf.path, self._operation.request)
        if leaf.act is not Act.UNKNOWN:
            message = f"{name} cannot be protected: leave it out"
            if leaf.act is Act.MEDIA:
                message += ", or let the policy pass media (--media pass)"
        elif instead is not None:
            near = find_nearest(str(leaf.path[-1]), instead, MIN_SIMILARITY)
            message = (
                f"{name} is not known, so it cannot be protected: leave it out, or let the policy "
                f"drop unknown fields (--unknown drop){f'; did you mean {near}?' if near else ''}"
            )
        else:
            message = f"{name} has the wrong type or an unknown value, so it cannot be protected"
        return RequestError(400, message, param=name, code="unprotected")

    def build_body(
        self, texts: Sequence[Sequence[str]], signed: Sequence[str | None] = ()
    ) -> dict[str, Any]:
        """Returns the body with its texts replaced.

        Args:
            texts: the released texts of the messages, in order, and then of `context`.
            signed: the texts that the upstream signed, as received; None for an unknown one.
        """
        changed = dict(self._changes)
        for leaves_of_message, released in zip(self._texts, texts, strict=True):
            for leaf, text in zip(leaves_of_message, released, strict=True):
                changed[leaf.path] = text if isinstance(leaf.value, str) else json.loads(text)
                if not text.strip() and _is_part(leaf):
                    changed[leaf.path[:-1]] = DROPPED
        for leaf, original in zip(self._signed, signed, strict=True):
            is_known = original is not None
            changed[leaf.path if is_known else leaf.path[:-1]] = original if is_known else DROPPED
            self.left_out += original is None
        body: dict[str, Any] = replace_leaves(self._body, changed)
        return body


def _require(operation: Operation, body: dict[str, Any]) -> None:
    """Refuses a request that lacks a needed field."""
    for name in operation.needs:
        if body.get(name) in (None, "", [], {}):
            near = find_nearest(name, body.keys() - {name}, MIN_SIMILARITY)
            message = f"{name} is missing{f'; is it {quote(near)}?' if near else ''}"
            raise RequestError(400, message, param=name, code="missing")


def build_utterance(role: str, message_leaves: Sequence[Leaf], body: Any = None) -> Utterance:
    """Builds the utterance of a message from its leaves.

    Values that are no strings become JSON texts.

    Args:
        role: the role of the message.
        message_leaves: the leaves of the message.
        body: the JSON around the leaves, if results of tools may be among them.
    """
    texts = tuple(
        leaf.value if isinstance(leaf.value, str) else json.dumps(leaf.value)
        for leaf in message_leaves
    )
    utterance = Utterance(role, texts, tuple(_get_form(leaf) for leaf in message_leaves))
    results = [_is_result(body, leaf.path) for leaf in message_leaves]
    sources = (
        "tool" if is_result else utterance.get_source(i) for i, is_result in enumerate(results)
    )
    return utterance._replace(sources=tuple(sources)) if any(results) else utterance


def build_answer_utterance(operation: Operation, message: dict[str, Any]) -> Utterance:
    """Builds the utterance of an answer's message, as clients send it back."""
    texts = _select_leaves(operation, message, RELEASE_ACTS)
    return build_utterance(str(message.get("role") or message.get("type") or "assistant"), texts)


def list_signed(operation: Operation, message: dict[str, Any]) -> list[SignedText]:
    """Lists the texts that the upstream signed in an answer's message."""
    texts = _select_leaves(operation, message, {Act.SIGNED})
    return [get_signed(message, leaf.path) for leaf in texts]


def _select_leaves(
    operation: Operation, message: dict[str, Any], acts: Collection[Act]
) -> list[Leaf]:
    all_leaves = find_leaves(message, operation.message)
    return [leaf for leaf in all_leaves if leaf.act in acts and not _is_empty(leaf)]


def get_signed(value: Any, path: Path) -> SignedText:
    """Returns a signed text with the signature beside it."""
    for step in path[:-1]:
        value = value[step]
    return SignedText(str(value.get("signature") or ""), value[path[-1]])


def _is_result(body: Any, path: Path) -> bool:
    """True if a leaf is in a tool's or search's result.

    The role of the message does not matter.
    """
    for step in path:
        # Such as tool_result, web_search_tool_result and function_call_output.
        if isinstance(body, dict) and str(body.get("type")).endswith(("result", "output")):
            return True
        try:
            body = body[step]
        except (TypeError, LookupError):
            return False
    return False


def _get_item(path: Path) -> Path:
    """Returns the path of a field, or of the item of a list in it: ("tools", 3)."""
    return path[:2] if len(path) > 1 and isinstance(path[1], int) else path[:1]


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
