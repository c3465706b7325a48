"""Parsed requests: their texts by message, and the body with releases.

In: JSON, the table of its API, a policy. Out: `ParsedRequest`: utterances to release, and the body
with their releases.
Not here: the tables (`protocols`), how texts are released (`protect_message`).
"""

import json
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import regex

from textveil.errors import MIN_SIMILARITY, find_nearest, quote
from textveil.gateway.errors import RequestError
from textveil.gateway.policy.policy import Policy, Unknown
from textveil.gateway.protocols import Operation
from textveil.gateway.protocols.field_rules import (
    DROPPED,
    EMPTY_RULE,
    RELEASE_ACTS,
    Act,
    Leaf,
    LeafRule,
    Path,
    RenamedField,
    find_leaves,
    find_ruled_leaves,
    format_path,
    list_known_fields,
    may_be_private,
    replace_leaves,
)
from textveil.gateway.request.application import Application, is_of_definition, read_application
from textveil.gateway.request.unknown_values import (
    MEDIA_FAULT,
    NAMES_FAULT,
    UnknownValue,
    build_refusal,
)
from textveil.session import SignedText, Utterance

CONTEXT_ROLE = "besides"
"""Role of texts outside of messages: instructions, tools, stop words."""

TEXT_FORM, LABEL_FORM, JSON_FORM, SCHEMA_FORM = "", "label", "json", "schema"
NAME_FORM, UNKNOWN_FORM = "name", "unknown"
"""Forms of a text: plain, one word, JSON, or schema; name or id; JSON that no table names.

A schema is JSON, or a text about a tool. The release of a name is the name, or another text where
it must not be sent.
"""

ACT_FORMS = {
    Act.SCHEMA: SCHEMA_FORM,
    Act.ARGUMENTS: JSON_FORM,
    Act.LABEL: LABEL_FORM,
    Act.NAME: NAME_FORM,
    Act.UNKNOWN: UNKNOWN_FORM,
}

NAME_FAULT = (
    "has something private in it, and names and ids are sent unchanged or not at all: rename it"
)

TEXT_ACTS = RELEASE_ACTS | {Act.SIGNED, Act.NAME}

READ_ALL = Policy(media="pass")
"""Policy under which all that is unknown in an answer is read."""

RESULT_FIELDS = ("functionResponse", "toolResponse")
"""Fields with the result of a tool, where no type says it."""

_INDEX = regex.compile(r"\[\d+\]")


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
        unknown: the unknown fields by their paths, with their numbers; those that are sent are
            added by `build_body`.

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
        self.unknown: Counter[str] = Counter()
        self._unknown_values: dict[Path, UnknownValue] = {}
        self._strange: set[Path] = set()  # leaves that are unknown, or in something unknown
        roles = {path: role for role, path in operation.find_messages(body)}
        self._signed: list[Leaf] = []
        self._context_leaves: list[Leaf] = []
        self._message_leaves: dict[Path, list[Leaf]] = {path: [] for path in roles}
        self._known_leaves: list[Leaf] = []  # also the known ones in something unknown
        for leaf, rule in find_ruled_leaves(body, operation.request):
            self._assign_leaf(leaf, rule)
        self.application = self._read_application(roles)
        context_groups = _group_by_item(self._context_leaves)
        self.messages = [
            build_utterance(roles[path], leaves_of_message, body, self._strange)
            for path, leaves_of_message in self._message_leaves.items()
        ]
        self.context = [
            build_utterance(CONTEXT_ROLE, leaves_of_item, body, self._strange)
            for leaves_of_item in context_groups
        ]
        self.signed = [get_signed(body, leaf.path) for leaf in self._signed]
        self._texts = [*self._message_leaves.values(), *context_groups]

    def _read_application(self, roles: Mapping[Path, str]) -> Application:
        """Reads what the application brings along.

        Of what is unknown only definitions of tools are surely its own.
        """
        surely_own = [
            leaf
            for leaf in self._known_leaves
            if leaf.path not in self._strange or is_of_definition(leaf.path)
        ]
        return read_application(surely_own, roles, self._body.get("model"))

    def _assign_leaf(self, leaf: Leaf, rule: LeafRule) -> None:
        """Assigns a text to its message, and settles any other leaf."""
        if leaf.act is not Act.UNKNOWN:
            self._known_leaves.append(leaf)
        if leaf.act is Act.SCHEMA and self._policy.schemas == "pass":
            return
        if leaf.act is Act.UNKNOWN:
            self._decide_unknown(leaf, rule)
        elif leaf.act is Act.NAME and self._must_match(leaf):
            raise self._build_refusal(leaf, rule)
        elif leaf.act not in TEXT_ACTS:
            self._decide_leaf(leaf, rule)
        elif not _is_empty(leaf):
            self._add_text(leaf)

    def _add_text(self, leaf: Leaf) -> None:
        paths = (leaf.path[:n] for n in range(len(leaf.path), 0, -1))
        target = next(
            (self._message_leaves[path] for path in paths if path in self._message_leaves),
            self._context_leaves,
        )
        (self._signed if leaf.act is Act.SIGNED else target).append(leaf)

    def _must_match(self, leaf: Leaf) -> bool:
        """True if a name must have the form of its table: by policy, or as a part of the URL."""
        operation = self._operation
        is_in_url = not operation.has_body or f"{{{leaf.path[0]}" in operation.full_path
        return is_in_url or self._choose_word(leaf) != "protect"

    def _choose_word(self, leaf: Leaf, rule: LeafRule = EMPTY_RULE) -> Unknown:
        """Returns what the policy says about an unknown value.

        The program before a guardrail takes releases of items of some lists only, and sends the
        rest itself.
        """
        guardrail = self._operation.guardrail
        if guardrail is None or _is_unknown_kind(leaf, rule):
            return self._policy.decide_unknown(leaf.path)
        is_returned = leaf.path[0] in guardrail.returned and len(leaf.path) > 2
        return self._policy.decide_unknown(leaf.path) if is_returned else "refuse"

    def _decide_unknown(self, leaf: Leaf, rule: LeafRule) -> None:
        """Decides about an unknown value: it is read, dropped or refused.

        An unknown kind of object is read by the fields that it shares with the known ones.
        """
        word = self._choose_word(leaf, rule)
        if word != "protect" and leaf.value is None:
            self._changes[leaf.path] = DROPPED  # as if it were absent
        elif word == "drop" and _can_be_left_out(leaf, rule):
            self._changes[leaf.path] = DROPPED
            self.left_out += 1
            self._note_unknown(format_path(leaf.path, self._body))
        elif word != "protect":
            raise self._build_refusal(leaf, rule)
        elif _is_unknown_kind(leaf, rule):
            self._note_unknown(format_path(leaf.path, self._body))
            for inner, inner_rule in find_ruled_leaves(leaf.value, rule.unknown_kind, leaf.path):
                self._strange.add(inner.path)
                self._assign_leaf(inner, inner_rule)
        else:
            value = UnknownValue(leaf.path, leaf.value, self._policy, self._body)
            self._unknown_values[leaf.path] = value
            self._strange.add(leaf.path)
            self.passed += value.passed
            self.left_out += value.left_out
            self._add_text(leaf._replace(value=value.text))

    def _note_unknown(self, name: str) -> None:
        self.unknown[_INDEX.sub("[]", name)] += 1

    def _decide_leaf(self, leaf: Leaf, rule: LeafRule) -> None:
        """Decides about a leaf that is no text.

        It is changed, dropped, passed or refused.
        """
        policy = self._policy
        if leaf.act is Act.DROP:
            self._changes[leaf.path] = DROPPED
        elif leaf.act is Act.USER:
            is_replaced = policy.users == "pseudonym" and isinstance(leaf.value, str)
            self._changes[leaf.path] = self._pseudonym(leaf.value) if is_replaced else DROPPED
        elif leaf.act is Act.MEDIA and policy.media == "pass":
            self.passed += 1
        elif leaf.act is not Act.PASS:
            raise self._build_refusal(leaf, rule)

    def _build_refusal(self, leaf: Leaf, rule: LeafRule) -> RequestError:
        instead = list_known_fields(leaf.path, self._operation.request)
        if leaf.act is Act.MEDIA:
            fault = MEDIA_FAULT
        elif leaf.act is Act.NAME and may_be_private(leaf.value):
            fault = NAME_FAULT
        elif leaf.act not in (Act.UNKNOWN, Act.NAME):
            fault = "cannot be protected: leave it out"
        elif rule == EMPTY_RULE and instead is not None:
            near = find_nearest(str(leaf.path[-1]), instead, MIN_SIMILARITY)
            fault = (
                "is not known, and the policy refuses it: leave it out, or let the policy protect "
                f"unknown fields (--unknown protect){f'; did you mean {near}?' if near else ''}"
            )
        else:
            fault = "has the wrong type or an unknown value"
            if self._choose_word(leaf, rule) != "protect":
                fault += ", and the policy does not let it be protected (--unknown protect)"
        return build_refusal(leaf.path, self._body, fault)

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
                if leaf.act is Act.NAME and text != leaf.value:
                    raise build_refusal(leaf.path, self._body, NAME_FAULT)
                if leaf.act is Act.UNKNOWN:
                    changed[leaf.path] = self._rebuild_unknown(leaf.path, text, changed)
                    continue
                changed[leaf.path] = text if isinstance(leaf.value, str) else json.loads(text)
                if not text.strip() and _is_part(leaf):
                    changed[leaf.path[:-1]] = DROPPED
        for leaf, original in zip(self._signed, signed, strict=True):
            is_known = original is not None
            changed[leaf.path if is_known else _get_part(leaf.path)] = (
                original if is_known else DROPPED
            )
            self.left_out += original is None
        body: dict[str, Any] = replace_leaves(self._body, changed)
        return body

    def _rebuild_unknown(self, path: Path, text: str, changed: Mapping[Path, Any]) -> Any:
        """Returns an unknown value with its release, under a new name if its own is private."""
        name, value, shown = self._unknown_values[path].rebuild(text)
        self._note_unknown(shown)
        if name == path[-1] or isinstance(name, int):
            return value
        around: Any = self._body
        for step in path[:-1]:
            around = around[step]
        siblings = (changed.get((*path[:-1], sibling)) for sibling in around)
        taken = {new.name for new in siblings if isinstance(new, RenamedField)}
        if name in taken or name in around:
            raise build_refusal(path, self._body, NAMES_FAULT)
        return RenamedField(name, value)


def _require(operation: Operation, body: dict[str, Any]) -> None:
    """Refuses a request that lacks a needed field."""
    for name in operation.needs:
        if body.get(name) in (None, "", [], {}):
            near = find_nearest(name, body.keys() - {name}, MIN_SIMILARITY)
            message = f"{name} is missing{f'; is it {quote(near)}?' if near else ''}"
            raise RequestError(400, message, param=name, code="missing")


def build_utterance(
    role: str,
    message_leaves: Sequence[Leaf],
    body: Any = None,
    strange: Container[Path] = (),
) -> Utterance:
    """Builds the utterance of a message from its leaves.

    Values that are no strings become JSON texts.

    Args:
        role: the role of the message.
        message_leaves: the leaves of the message.
        body: the JSON around the leaves, if results of tools may be among them.
        strange: the paths of leaves of whose writer nothing is known; they count as a tool's.
    """
    texts = tuple(
        leaf.value if isinstance(leaf.value, str) else json.dumps(leaf.value)
        for leaf in message_leaves
    )
    utterance = Utterance(role, texts, tuple(_get_form(leaf) for leaf in message_leaves))
    results = [leaf.path in strange or _is_result(body, leaf.path) for leaf in message_leaves]
    sources = (
        "tool" if is_result else utterance.get_source(i) for i, is_result in enumerate(results)
    )
    return utterance._replace(sources=tuple(sources)) if any(results) else utterance


def build_answer_utterance(
    operation: Operation, message: dict[str, Any], *, with_unknown: bool
) -> Utterance:
    """Builds the utterance of an answer's message, as clients send it back.

    Args:
        operation: the route.
        message: the message.
        with_unknown: whether the client sends unknown fields back, too.
    """
    texts = [*_find_answer_texts(message, operation.message, with_unknown)]
    return build_utterance(str(message.get("role") or message.get("type") or "assistant"), texts)


def _find_answer_texts(
    value: dict[str, Any], rule: LeafRule, with_unknown: bool, path: Path = ()
) -> Iterator[Leaf]:
    for leaf, leaf_rule in find_ruled_leaves(value, rule, path):
        if _is_unknown_kind(leaf, leaf_rule):
            kind = leaf_rule.unknown_kind
            yield from _find_answer_texts(leaf.value, kind, with_unknown, leaf.path)
        elif leaf.act is Act.UNKNOWN and with_unknown:
            with suppress(RequestError):  # what is no JSON does not come back
                text = UnknownValue(leaf.path, leaf.value, READ_ALL, value).text
                yield leaf._replace(value=text)
        elif leaf.act in RELEASE_ACTS | {Act.NAME} and not _is_empty(leaf):
            yield leaf


def _can_be_left_out(leaf: Leaf, rule: LeafRule) -> bool:
    """True for settings and parts of a content: without them a request still makes sense."""
    is_part = leaf.path[-2:-1] == ("content",) and isinstance(leaf.path[-1], int)
    return is_part or (isinstance(leaf.path[-1], str) and rule.is_setting)


def _is_unknown_kind(leaf: Leaf, rule: LeafRule) -> bool:
    return leaf.act is Act.UNKNOWN and isinstance(leaf.value, dict) and bool(rule.kinds)


def list_signed(operation: Operation, message: dict[str, Any]) -> list[SignedText]:
    """Lists the texts that the upstream signed in an answer's message."""
    leaves = find_leaves(message, operation.message)
    return [
        get_signed(message, leaf.path)
        for leaf in leaves
        if leaf.act is Act.SIGNED and not _is_empty(leaf)
    ]


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
        # Bedrock's toolResult, searchResult, Gemini's functionResponse.
        if str(step).endswith("Result") or step in RESULT_FIELDS:
            return True
        try:
            body = body[step]
        except (TypeError, LookupError):
            return False
    return False


def _get_item(path: Path) -> Path:
    """Returns the path of a field, or of the item of a list in it: ("tools", 3)."""
    return path[:2] if len(path) > 1 and isinstance(path[1], int) else path[:1]


def _group_by_item(leaves: Sequence[Leaf]) -> list[list[Leaf]]:
    """Groups leaves outside of messages by their item, in order."""
    groups: dict[Path, list[Leaf]] = {}
    for leaf in leaves:
        groups.setdefault(_get_item(leaf.path), []).append(leaf)
    return [*groups.values()]


def _get_part(path: Path) -> Path:
    """Returns the path of the innermost item of a list around a leaf."""
    return path[: 1 + max(i for i, step in enumerate(path) if isinstance(step, int))]


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
    if form := ACT_FORMS.get(leaf.act):
        return form
    return TEXT_FORM if isinstance(leaf.value, str) else JSON_FORM
