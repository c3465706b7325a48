"""Haystack: a protected chat generator, and a component that releases documents.

The generator sees released text only.

In: chat messages, tools, documents. Out: replies and tool calls with the originals; released
documents.
Not here: how a request is released (`gateway.inprocess`), and what becomes of its leaves
(`gateway.protocols.field_rules`).
"""

import asyncio
import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from textveil.config.extras import explain_missing
from textveil.errors import ConfigError, InputError
from textveil.gateway import ChatGuard, GuardedRequest
from textveil.gateway.inprocess import build_operation, split_settings
from textveil.gateway.protocols.field_rules import (
    API_NAME,
    ID,
    NUMBER,
    PASSED,
    Act,
    any_value,
    array,
    record,
    text,
    union,
)
from textveil.integrations import get_conversation
from textveil.integrations.releases import check_metadata, normalize_names, resolve_privatizer
from textveil.pipeline import Privatizer

with explain_missing():
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.core.serialization import component_to_dict
    from haystack.dataclasses import ChatMessage, StreamingChunk
    from haystack.tools import flatten_tools_or_toolsets
    from haystack.utils.deserialization import deserialize_component_inplace

__all__ = ["DocumentPrivatizer", "ProtectedChatGenerator"]

JsonObject = dict[str, Any]

PROTECTED = text()
OBJECT = any_value(Act.OBJECT)
MEDIA = any_value(Act.MEDIA)
DROPPED = any_value(Act.DROP)
CALL = record(tool_name=API_NAME, arguments=OBJECT, id=ID, extra=DROPPED)
RESULT = union(PROTECTED, array(record(text=PROTECTED, image=MEDIA, file=MEDIA)))
PART = record(
    text=PROTECTED,
    tool_call=CALL,
    tool_call_result=record(result=RESULT, origin=CALL, error=NUMBER),
    reasoning=record(reasoning_text=PROTECTED, extra=DROPPED),
    image=MEDIA,
    file=MEDIA,
)
MESSAGE = record(role=ID, meta=DROPPED, name=text(Act.LABEL), content=array(PART))
"""The rule for a message, as Haystack writes it.

Its metadata is for the program, and is not sent.
"""
REPLY_CALL = record(tool_name=PASSED, arguments=OBJECT, id=PASSED, extra=PASSED)
REPLY = record(
    role=PASSED,
    meta=PASSED,
    name=PASSED,
    content=array(
        record(
            text=PROTECTED,
            tool_call=REPLY_CALL,
            reasoning=record(reasoning_text=PROTECTED, extra=PASSED),
        )
    ),
)
"""The rule for a reply.

Any other field is restored as text (`Act.UNKNOWN`).
"""
SETTINGS = record(generation=any_value(Act.SCHEMA), tools=any_value(Act.SCHEMA))
HAYSTACK = build_operation(
    "haystack",
    request=record(messages=array(MESSAGE), settings=SETTINGS),
    answer=REPLY,
    message=MESSAGE,
)


@component
class ProtectedChatGenerator:
    """A chat generator that sees released text only.

    Its replies have the originals.

    Args:
        generator: the chat generator that is asked.
        guard: protects and restores; None for the profile "prompt". Only one that is made of a
            profile and the URL of a store can be written into a pipeline's file.
    """

    def __init__(self, generator: Any, guard: ChatGuard | None = None) -> None:
        self.generator = generator
        self._guard = guard or ChatGuard()

    def to_dict(self) -> JsonObject:
        """Returns the component as data for a pipeline's file.

        Hidden values are not in it.
        """
        inner = component_to_dict(self.generator, name="generator")
        data: JsonObject = default_to_dict(self, generator=inner, guard=self._guard.dump_options())
        return data

    @classmethod
    def from_dict(cls, data: JsonObject) -> "ProtectedChatGenerator":
        """Reads the component from a pipeline's file."""
        parameters = data["init_parameters"]
        deserialize_component_inplace(parameters, key="generator")
        parameters["guard"] = ChatGuard(**parameters["guard"])
        result: ProtectedChatGenerator = default_from_dict(cls, data)
        return result

    def warm_up(self) -> None:
        """Warms up the inner generator."""
        if hasattr(self.generator, "warm_up"):
            self.generator.warm_up()

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage] | str,
        streaming_callback: Any = None,
        generation_kwargs: dict[str, Any] | None = None,
        *,
        tools: Any = None,
        conversation: str | None = None,
    ) -> dict[str, list[ChatMessage]]:
        """Returns the restored replies.

        Args:
            messages: of the conversation.
            streaming_callback: gets the pieces of a reply, restored.
            generation_kwargs: of the inner generator.
            tools: that may be called.
            conversation: its name; else that of `textveil.integrations.conversation`, or none.
        """
        request, arguments = self._protect_request(messages, generation_kwargs, tools, conversation)
        callback: Any = streaming_callback or getattr(self.generator, "streaming_callback", None)
        pieces = _ChunkRestorer(request)

        def send_piece(chunk: StreamingChunk) -> None:
            for piece in pieces.feed(chunk):
                callback(piece)

        if callback is not None:
            arguments["streaming_callback"] = send_piece
        replies = self.generator.run(**arguments)["replies"]
        for piece in [] if callback is None else pieces.close():
            callback(piece)
        return {"replies": _restore(request, replies)}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self,
        messages: list[ChatMessage] | str,
        streaming_callback: Any = None,
        generation_kwargs: dict[str, Any] | None = None,
        *,
        tools: Any = None,
        conversation: str | None = None,
    ) -> dict[str, list[ChatMessage]]:
        """Returns the restored replies, in an event loop."""
        request, arguments = await asyncio.to_thread(
            self._protect_request, messages, generation_kwargs, tools, conversation
        )
        callback: Any = streaming_callback or getattr(self.generator, "streaming_callback", None)
        pieces = _ChunkRestorer(request)

        async def send_piece(chunk: StreamingChunk) -> None:
            for piece in pieces.feed(chunk):
                await callback(piece)

        if callback is not None:
            arguments["streaming_callback"] = send_piece
        if hasattr(self.generator, "run_async"):
            output = await self.generator.run_async(**arguments)
        else:
            output = await asyncio.to_thread(self.generator.run, **arguments)
        for piece in [] if callback is None else pieces.close():
            await callback(piece)
        return {"replies": await asyncio.to_thread(_restore, request, output["replies"])}

    def _protect_request(
        self,
        messages: list[ChatMessage] | str,
        settings: JsonObject | None,
        tools: Any,
        conversation: str | None,
    ) -> tuple[GuardedRequest, JsonObject]:
        """Begins a request, and returns it with the inner generator's arguments."""
        if isinstance(messages, str):
            messages = [ChatMessage.from_user(messages)]
        all_tools = list(flatten_tools_or_toolsets(tools or getattr(self.generator, "tools", None)))
        described = [
            {"description": item.description, "parameters": item.parameters} for item in all_tools
        ]
        data, passed = split_settings(settings or {})
        body = {
            "messages": [item.to_dict() for item in messages],
            "settings": {"generation": data, "tools": described or None},
        }
        request = self._guard.protect(HAYSTACK, body, conversation or get_conversation())
        new_settings = request.released_body.get("settings") or {}
        arguments: JsonObject = {
            "messages": [_build_message(item) for item in request.released_body["messages"]]
        }
        if settings is not None:
            arguments["generation_kwargs"] = {**passed, **(new_settings.get("generation") or {})}
        if all_tools:
            arguments["tools"] = [
                _describe_tool(*pair) for pair in zip(all_tools, new_settings["tools"], strict=True)
            ]
        return request, arguments


def _build_message(data: JsonObject) -> ChatMessage:
    result: ChatMessage = ChatMessage.from_dict({"meta": {}, "name": None, **data})
    return result


def _describe_tool(tool: Any, description: JsonObject) -> Any:
    """Copies a tool with its released description."""
    result = copy.copy(tool)
    result.description, result.parameters = description["description"], description["parameters"]
    return result


def _restore(request: GuardedRequest, replies: list[ChatMessage]) -> list[ChatMessage]:
    pairs = [(data, request.restore(data)) for data in (reply.to_dict() for reply in replies)]
    request.remember_answer(pairs)
    return [_build_message(restored) for _, restored in pairs]


class _ChunkRestorer:
    """A streamed reply, restored piece by piece."""

    def __init__(self, request: GuardedRequest) -> None:
        self._restorer = request.restorer
        self._last: dict[Any, StreamingChunk] = {}

    def feed(self, chunk: StreamingChunk) -> Iterator[StreamingChunk]:
        """Yields the restored text that is certain after a piece.

        Before the last piece, all that was held back.
        """
        result = chunk
        if chunk.content:
            result = replace(result, content=self._restore_piece("text", chunk, chunk.content))
        if chunk.reasoning is not None:
            reasoning = self._restore_piece("reasoning", chunk, chunk.reasoning.reasoning_text)
            result = replace(result, reasoning=replace(chunk.reasoning, reasoning_text=reasoning))
        if chunk.tool_calls:
            calls = [
                replace(
                    call,
                    arguments=self._restore_piece(call.index, chunk, call.arguments, Act.ARGUMENTS),
                )
                if call.arguments
                else call
                for call in chunk.tool_calls
            ]
            result = replace(result, tool_calls=calls)
        if chunk.finish_reason is not None:
            yield replace(result, finish_reason=None)
            yield from self.close()
            result = replace(result, content="", tool_calls=None, reasoning=None)
        yield result

    def close(self) -> Iterator[StreamingChunk]:
        """Yields the text that was held back."""
        for key, chunk in self._last.items():
            tail = self._restorer.close_text(key)
            if not tail:
                continue
            result = replace(
                chunk, content="", tool_calls=None, reasoning=None, start=False, finish_reason=None
            )
            if key == "text":
                yield replace(result, content=tail)
            elif key == "reasoning" and chunk.reasoning is not None:
                yield replace(result, reasoning=replace(chunk.reasoning, reasoning_text=tail))
            else:
                calls = [
                    replace(call, arguments=tail, tool_name=None) for call in chunk.tool_calls or ()
                ]
                yield replace(result, tool_calls=[call for call in calls if call.index == key])
        self._last.clear()

    def _restore_piece(
        self, key: Any, chunk: StreamingChunk, text: str, act: Act = Act.PROTECT
    ) -> str:
        self._last[key] = chunk
        return self._restorer.restore_piece(key, text, act)


@component
class DocumentPrivatizer:
    """Releases the texts of documents; each run draws anew.

    Such as before they are indexed elsewhere.

    Args:
        profile: a packaged profile, "document" or "prompt".
        options: what differs from it.
        keep: fields of the metadata with text that stay as they are; documents with others are
            refused.
    """

    def __init__(
        self,
        profile: str = "document",
        options: dict[str, Any] | None = None,
        keep: list[str] | None = None,
    ) -> None:
        self.profile, self.options, self.keep = profile, options, keep
        self._privatizer = resolve_privatizer(Privatizer.from_profile(profile, **(options or {})))

    def to_dict(self) -> JsonObject:
        """Returns the component as data for a pipeline's file.

        Raises:
            ConfigError: an option is a list that may be private, such as protect.always.
        """
        if self._has_private():
            raise ConfigError(
                "lists of words or expressions in protect may be private, so they are not written "
                "into a pipeline file: add this component to the pipeline in Python"
            )
        data: JsonObject = default_to_dict(
            self, profile=self.profile, options=self.options, keep=self.keep
        )
        return data

    def __repr__(self) -> str:
        return f"DocumentPrivatizer({self._privatizer!r})"

    def _has_private(self) -> bool:
        """Says whether an option is a private list."""
        protect = (self.options or {}).get("protect")
        options = (
            protect if isinstance(protect, dict) else vars(protect) if protect is not None else {}
        )
        return any(
            options.get(name) for name in ("always", "always_matching", "never", "never_matching")
        )

    @classmethod
    def from_dict(cls, data: JsonObject) -> "DocumentPrivatizer":
        """Reads the component from a pipeline's file."""
        result: DocumentPrivatizer = default_from_dict(cls, data)
        return result

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Releases documents, with new ids and without embeddings.

        Raises:
            InputError: a document is no text, or has text in its metadata that nobody named.
        """
        for document in documents:
            if document.content is None or document.blob is not None:
                raise InputError("only documents with text can be released: leave the others out")
            check_metadata(document.meta, normalize_names(self.keep or ()))
        results = self._privatizer.privatize_many([str(item.content) for item in documents])
        new_documents = [
            Document(content=result.text, meta={**item.meta}, score=item.score)
            for item, result in zip(documents, results, strict=True)
        ]
        return {"documents": new_documents}
