"""Haystack: a protected chat generator, and a component that releases documents.

The generator sees released text only.

In: chat messages, tools, documents. Out: replies and tool calls with the originals; released
documents.
Not here: how a request is released (`gateway.inprocess`), and what becomes of its leaves
(`gateway.leaves`).
"""

import asyncio
import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from textveil.config.extras import needed
from textveil.errors import ConfigError, InputError
from textveil.gateway import ChatGuard, GuardedRequest
from textveil.gateway.inprocess import host, plain
from textveil.gateway.leaves import ID, NAME, NUMBER, Act, each, either, record, text, whole
from textveil.integrations import current
from textveil.integrations.releases import check_metadata, listed, privatizer_of
from textveil.pipeline import Privatizer

with needed():
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.core.serialization import component_to_dict
    from haystack.dataclasses import ChatMessage, StreamingChunk
    from haystack.tools import flatten_tools_or_toolsets
    from haystack.utils.deserialization import deserialize_component_inplace

__all__ = ["DocumentPrivatizer", "ProtectedChatGenerator"]

Body = dict[str, Any]

PROTECTED = text()
OBJECT = whole(Act.OBJECT)
MEDIA = whole(Act.MEDIA)
DROPPED = whole(Act.DROP)
PASSED = whole(Act.PASS)
CALL = record(tool_name=NAME, arguments=OBJECT, id=ID, extra=DROPPED)
RESULT = either(PROTECTED, each(record(text=PROTECTED, image=MEDIA, file=MEDIA)))
PART = record(
    text=PROTECTED,
    tool_call=CALL,
    tool_call_result=record(result=RESULT, origin=CALL, error=NUMBER),
    reasoning=record(reasoning_text=PROTECTED, extra=DROPPED),
    image=MEDIA,
    file=MEDIA,
)
MESSAGE = record(role=ID, meta=DROPPED, name=text(Act.LABEL), content=each(PART))
"""The rule for a message, as Haystack writes it.

Its metadata is for the program, and is not sent.
"""
SAID_CALL = record(tool_name=PASSED, arguments=OBJECT, id=PASSED, extra=PASSED)
SAID = record(
    role=PASSED,
    meta=PASSED,
    name=PASSED,
    content=each(
        record(
            text=PROTECTED,
            tool_call=SAID_CALL,
            reasoning=record(reasoning_text=PROTECTED, extra=PASSED),
        )
    ),
)
"""The rule for a reply.

Any other field is restored as text (`Act.UNKNOWN`).
"""
SETTINGS = record(generation=whole(Act.SCHEMA), tools=whole(Act.SCHEMA))
HAYSTACK = host(
    "haystack",
    request=record(messages=each(MESSAGE), settings=SETTINGS),
    answer=SAID,
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

    def to_dict(self) -> Body:
        """Returns the component as data for a pipeline's file.

        Hidden values are not in it.
        """
        inner = component_to_dict(self.generator, name="generator")
        made: Body = default_to_dict(self, generator=inner, guard=self._guard.options())
        return made

    @classmethod
    def from_dict(cls, data: Body) -> "ProtectedChatGenerator":
        """Reads the component from a pipeline's file."""
        given = data["init_parameters"]
        deserialize_component_inplace(given, key="generator")
        given["guard"] = ChatGuard(**given["guard"])
        made: ProtectedChatGenerator = default_from_dict(cls, data)
        return made

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
        begun, given = self._begun(messages, generation_kwargs, tools, conversation)
        callback: Any = streaming_callback or getattr(self.generator, "streaming_callback", None)
        pieces = _Chunks(begun)

        def restored(chunk: StreamingChunk) -> None:
            for made in pieces.feed(chunk):
                callback(made)

        if callback is not None:
            given["streaming_callback"] = restored
        replies = self.generator.run(**given)["replies"]
        for made in [] if callback is None else pieces.close():
            callback(made)
        return {"replies": _restore(begun, replies)}

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
        begun, given = await asyncio.to_thread(
            self._begun, messages, generation_kwargs, tools, conversation
        )
        callback: Any = streaming_callback or getattr(self.generator, "streaming_callback", None)
        pieces = _Chunks(begun)

        async def restored(chunk: StreamingChunk) -> None:
            for made in pieces.feed(chunk):
                await callback(made)

        if callback is not None:
            given["streaming_callback"] = restored
        if hasattr(self.generator, "run_async"):
            came = await self.generator.run_async(**given)
        else:
            came = await asyncio.to_thread(self.generator.run, **given)
        for made in [] if callback is None else pieces.close():
            await callback(made)
        return {"replies": await asyncio.to_thread(_restore, begun, came["replies"])}

    def _begun(
        self,
        messages: list[ChatMessage] | str,
        settings: Body | None,
        tools: Any,
        conversation: str | None,
    ) -> tuple[GuardedRequest, Body]:
        """Begins a request, and returns it with the inner generator's arguments."""
        if isinstance(messages, str):
            messages = [ChatMessage.from_user(messages)]
        own = list(flatten_tools_or_toolsets(tools or getattr(self.generator, "tools", None)))
        described = [
            {"description": each.description, "parameters": each.parameters} for each in own
        ]
        data, passed = plain(settings or {})
        body = {
            "messages": [each.to_dict() for each in messages],
            "settings": {"generation": data, "tools": described or None},
        }
        begun = self._guard.begin(HAYSTACK, body, conversation or current())
        made = begun.sent.get("settings") or {}
        given: Body = {"messages": [_build_message(each) for each in begun.sent["messages"]]}
        if settings is not None:
            given["generation_kwargs"] = {**passed, **(made.get("generation") or {})}
        if own:
            given["tools"] = [
                _describe_tool(*both) for both in zip(own, made["tools"], strict=True)
            ]
        return begun, given


def _build_message(own: Body) -> ChatMessage:
    result: ChatMessage = ChatMessage.from_dict({"meta": {}, "name": None, **own})
    return result


def _describe_tool(tool: Any, said: Body) -> Any:
    """Copies a tool with its released description."""
    result = copy.copy(tool)
    result.description, result.parameters = said["description"], said["parameters"]
    return result


def _restore(begun: GuardedRequest, replies: list[ChatMessage]) -> list[ChatMessage]:
    pairs = [(own, begun.restored(own)) for own in (each.to_dict() for each in replies)]
    begun.answered(pairs)
    return [_build_message(made) for _, made in pairs]


class _Chunks:
    """A streamed reply, restored piece by piece."""

    def __init__(self, begun: GuardedRequest) -> None:
        self._restoring = begun.restoring
        self._last: dict[Any, StreamingChunk] = {}

    def feed(self, chunk: StreamingChunk) -> Iterator[StreamingChunk]:
        """Yields the restored text that is certain after a piece.

        Before the last piece, all that was held back.
        """
        made = chunk
        if chunk.content:
            made = replace(made, content=self._restore_piece("text", chunk, chunk.content))
        if chunk.reasoning is not None:
            said = self._restore_piece("reasoning", chunk, chunk.reasoning.reasoning_text)
            made = replace(made, reasoning=replace(chunk.reasoning, reasoning_text=said))
        if chunk.tool_calls:
            calls = [
                replace(
                    each,
                    arguments=self._restore_piece(each.index, chunk, each.arguments, Act.ARGUMENTS),
                )
                if each.arguments
                else each
                for each in chunk.tool_calls
            ]
            made = replace(made, tool_calls=calls)
        if chunk.finish_reason is not None:
            yield replace(made, finish_reason=None)
            yield from self.close()
            made = replace(made, content="", tool_calls=None, reasoning=None)
        yield made

    def close(self) -> Iterator[StreamingChunk]:
        """Yields the text that was held back."""
        for key, chunk in self._last.items():
            rest = self._restoring.rest(key)
            if not rest:
                continue
            made = replace(
                chunk, content="", tool_calls=None, reasoning=None, start=False, finish_reason=None
            )
            if key == "text":
                yield replace(made, content=rest)
            elif key == "reasoning" and chunk.reasoning is not None:
                yield replace(made, reasoning=replace(chunk.reasoning, reasoning_text=rest))
            else:
                calls = [
                    replace(each, arguments=rest, tool_name=None) for each in chunk.tool_calls or ()
                ]
                yield replace(made, tool_calls=[each for each in calls if each.index == key])
        self._last.clear()

    def _restore_piece(
        self, key: Any, chunk: StreamingChunk, came: str, act: Act = Act.PROTECT
    ) -> str:
        self._last[key] = chunk
        return self._restoring.piece(key, came, act)


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
        self._privatizer = privatizer_of(Privatizer.from_profile(profile, **(options or {})))

    def to_dict(self) -> Body:
        """Returns the component as data for a pipeline's file.

        Raises:
            ConfigError: an option is a list that may be private, such as protect.always.
        """
        if self._has_private():
            raise ConfigError(
                "lists of words or expressions of protect may be private, and are not written into a pipeline's file: "
                "add this component to the pipeline in Python"
            )
        made: Body = default_to_dict(
            self, profile=self.profile, options=self.options, keep=self.keep
        )
        return made

    def __repr__(self) -> str:
        return f"DocumentPrivatizer({self._privatizer!r})"

    def _has_private(self) -> bool:
        """Says whether an option is a private list."""
        protect = (self.options or {}).get("protect")
        own = protect if isinstance(protect, dict) else vars(protect) if protect is not None else {}
        return any(
            own.get(name) for name in ("always", "always_matching", "never", "never_matching")
        )

    @classmethod
    def from_dict(cls, data: Body) -> "DocumentPrivatizer":
        """Reads the component from a pipeline's file."""
        made: DocumentPrivatizer = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Releases documents, with new ids and without embeddings.

        Raises:
            InputError: a document is no text, or has text in its metadata that nobody named.
        """
        for document in documents:
            if document.content is None or document.blob is not None:
                raise InputError("only documents with text can be released: leave the others out")
            check_metadata(document.meta, listed(self.keep or ()))
        results = self._privatizer.privatize_many([str(each.content) for each in documents])
        made = [
            Document(content=result.text, meta={**each.meta}, score=each.score)
            for each, result in zip(documents, results, strict=True)
        ]
        return {"documents": made}
