"""Every leaf that the types of an SDK can hold has an act of its own in the table of its API: new fields are noticed.

The types of requests are typed dictionaries, those of answers models of pydantic. A leaf is a string, or anything that
may hold one: `messages[]<user>.content[]<text>.text`, where `[]` is an item of a list, `<kind>` a member of a union,
`{key}` and `{*}` a name and a value of an object with any names.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

import pytest
from openai.types import (
    Completion,
    CreateEmbeddingResponse,
    EmbeddingCreateParams,
    Model,
    ModerationCreateParams,
    ModerationCreateResponse,
)
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.completion_create_params import (
    CompletionCreateParamsBase as PromptCompletionCreateParamsBase,
)
from openai.types.conversations import ConversationCreateParams, ConversationItemList
from openai.types.responses import (
    CompactedResponse,
    InputTokenCountParams,
    Response,
    ResponseCompactParams,
    ResponseItemList,
    ResponseStreamEvent,
)
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from pydantic import BaseModel
from training.leaves import load_shape
from typing_extensions import get_type_hints, is_typeddict

from textveil.gateway.protocols import (
    bedrock,
    completions,
    embeddings,
    models,
    moderations,
    responses,
)
from textveil.gateway.protocols.chat import CHAT_ANSWER, CHAT_REQUEST
from textveil.gateway.protocols.field_rules import LeafRule

TABLES: dict[str, tuple[Any, LeafRule]] = {
    "chat request": (CompletionCreateParamsBase, CHAT_REQUEST),
    "chat answer": (ChatCompletion, CHAT_ANSWER),
    "chat chunk": (ChatCompletionChunk, CHAT_ANSWER),
    "completions request": (PromptCompletionCreateParamsBase, completions.COMPLETION_REQUEST),
    "completions answer": (Completion, completions.COMPLETION_ANSWER),
    "embeddings request": (EmbeddingCreateParams, embeddings.EMBEDDING_REQUEST),
    "embeddings answer": (CreateEmbeddingResponse, embeddings.EMBEDDINGS.answer),
    "moderations request": (ModerationCreateParams, moderations.MODERATION_REQUEST),
    "moderations answer": (ModerationCreateResponse, moderations.MODERATIONS.answer),
    "models answer": (Model, models.MODELS.answer),
    "responses request": (ResponseCreateParamsBase, responses.RESPONSES_REQUEST),
    "responses counted": (InputTokenCountParams, responses.RESPONSES_REQUEST),
    "responses summed up": (ResponseCompactParams, responses.RESPONSES_REQUEST),
    "responses answer": (Response, responses.RESPONSES_ANSWER),
    "responses summary": (CompactedResponse, responses.RESPONSES_ANSWER),
    "responses event": (ResponseStreamEvent, responses.EVENT),
    "responses items": (ResponseItemList, responses.ITEM_LIST),
    "conversations request": (ConversationCreateParams, responses.CREATE_CONVERSATION.request),
    "conversations items": (ConversationItemList, responses.ITEM_LIST),
    "bedrock request": (load_shape("ConverseStreamRequest"), bedrock.CONVERSE_REQUEST),
    "bedrock answer": (load_shape("ConverseResponse"), bedrock.CONVERSE_ANSWER),
    "bedrock event": (load_shape("ConverseStreamOutput"), LeafRule(fields=bedrock.EVENTS)),
}
"""The types of each API, and its tables."""

SPECIFIC = ("type", "role")
"""Fields that say which member of a union an object is."""


def of_fields(kind: Any) -> dict[str, Any]:
    if is_typeddict(kind):
        return get_type_hints(kind, include_extras=True)
    return {field.alias or name: field.annotation for name, field in kind.model_fields.items()}


def is_object(kind: Any) -> bool:
    return is_typeddict(kind) or (inspect.isclass(kind) and issubclass(kind, BaseModel))


def bare(kind: Any) -> Any:
    """A type without what is said about it, and without its alias."""
    while get_origin(kind) in (Annotated, Required, NotRequired) or hasattr(kind, "__value__"):
        kind = kind.__value__ if hasattr(kind, "__value__") else get_args(kind)[0]
    return kind


def named(kind: Any) -> str:
    """Which member of a union an object is: `<user>`; "" where nothing says it."""
    for name in SPECIFIC if is_object(kind) else ():
        said = bare(of_fields(kind).get(name))
        if get_origin(said) is Literal and len(get_args(said)) == 1:
            return f"<{get_args(said)[0]}>"
    return ""


def walked(kind: Any, path: str = "", seen: tuple[Any, ...] = ()) -> Iterator[str]:
    """The leaves of a type that may hold text."""
    kind = bare(kind)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        for each in get_args(kind):
            yield from walked(each, path + named(bare(each)), seen)
    elif origin is Literal or kind in (int, float, bool, NoneType):
        return
    elif is_object(kind):
        for name, each in of_fields(kind).items() if kind not in seen else ():
            yield from walked(each, f"{path}.{name}" if path else name, (*seen, kind))
    elif inspect.isclass(origin) and issubclass(origin, Mapping):
        yield path + "{key}"
        yield from walked(get_args(kind)[1], path + "{*}", seen)
    elif origin is not None:
        yield from walked(get_args(kind)[0], path + "[]", seen)
    elif "SequenceNotStr" in str(kind):
        yield path + "[]"
    else:
        yield path + (" :any" if kind in (object, Any) else "")


def classified(rule: LeafRule, path: str) -> bool:
    """Whether a leaf of an SDK's types has an act of its own.

    Args:
        rule: the table of the API.
        path: `messages[]<user>.content[]<text>.text`: `[]` is an item, `<kind>` a member of a union, `{key}` and `{*}`
            a key and a value of an object whose names are free; ` :any` behind it is a value without a type.
    """
    own = [rule]
    for step in re.findall(r"\[\]|<[^>]*>|\{[^}]*\}|[^.\[\]<>{}]+", path.partition(" :")[0]):
        if any(each.any_value is not None for each in own):
            return True
        if step == "[]":
            own = [each.items for each in own if each.items is not None]
        elif step[0] == "<":
            kinds = [each.kinds[step[1:-1]] for each in own if step[1:-1] in each.kinds]
            own = kinds or [each for each in own if not each.tag]
        elif step == "{key}":
            return any(each.other_fields is not None for each in own)
        elif step == "{*}":
            own = [each.other_fields for each in own if each.other_fields is not None]
        else:
            every = [kind for each in own for kind in (each.kinds.values() if each.tag else [each])]
            own = [kind.fields[step] for kind in every if kind.fields and step in kind.fields]
        if not own:
            return False
    untyped = path.endswith(":any")
    return any(
        each.any_value is not None or each.text is not None or (untyped and bool(each.fields))
        for each in own
    )


def unclassified(kind: Any, rule: LeafRule) -> list[str]:
    return sorted({leaf for leaf in walked(kind) if not classified(rule, leaf)})


@pytest.mark.parametrize("table", TABLES)
def test_every_leaf_of_the_sdk_has_an_act(table):
    kind, rule = TABLES[table]
    assert set(walked(kind))
    assert unclassified(kind, rule) == []


def without(rule: LeafRule, path: tuple[str, ...]) -> LeafRule:
    """A table with one field taken out; `*` is an item, a kind comes before the fields that it has."""
    first, *rest = path
    if first == "*":
        assert rule.items is not None
        return replace(rule, items=without(rule.items, tuple(rest)))
    if first in rule.kinds:
        return replace(rule, kinds={**rule.kinds, first: without(rule.kinds[first], tuple(rest))})
    assert rule.fields is not None
    fields = dict(rule.fields)
    own = fields.pop(first)
    return replace(rule, fields={**fields, first: without(own, tuple(rest))} if rest else fields)


@pytest.mark.parametrize(
    ("table", "path", "found"),
    [
        ("chat request", ("stop",), ["stop", "stop[]"]),
        ("chat request", ("messages", "*", "user", "name"), ["messages[]<user>.name"]),
        ("chat request", ("tools", "*", "custom", "custom", "format"), None),
        ("chat answer", ("choices", "*", "message", "refusal"), ["choices[].message.refusal"]),
        ("chat chunk", ("choices", "*", "delta", "tool_calls", "*", "function"), None),
        ("responses request", ("instructions",), ["instructions"]),
        (
            "responses request",
            ("input", "*", "custom_tool_call", "input"),
            ["input[]<custom_tool_call>.input"],
        ),
        (
            "responses answer",
            ("output", "*", "program_output", "result"),
            ["output[]<program_output>.result"],
        ),
        ("responses event", ("item", "mcp_call", "output"), None),
    ],
)
def test_a_table_without_a_field_is_noticed(table, path, found):
    kind, rule = TABLES[table]
    missing = unclassified(kind, without(rule, path))
    assert missing
    assert found is None or missing == found
