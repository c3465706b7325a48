"""LangChain: a protected chat model, and middleware for agents.

The model sees released text only; the middleware puts it into agents.

In: messages, tool results, settings. Out: answers and tool calls with the originals, whole or
streamed.
Not here: how a request is released (`gateway.inprocess`), and what becomes of its leaves
(`gateway.protocols.field_rules`).
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from textveil.config.extras import explain_missing
from textveil.errors import InputError
from textveil.gateway import ChatGuard, GuardedRequest
from textveil.gateway.inprocess import build_operation, split_settings
from textveil.gateway.protocols.chat import CACHE_BREAKPOINT, EXTRA, TOOL_CALL, build_delta
from textveil.gateway.protocols.field_rules import (
    API_NAME,
    ID,
    NUMBER,
    PASSED,
    Act,
    LeafRule,
    Path,
    any_value,
    array,
    choice,
    record,
    text,
    union,
)
from textveil.gateway.protocols.leaf_tables import SEALED
from textveil.integrations import get_conversation

with explain_missing():
    from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import (
        AIMessage,
        AIMessageChunk,
        BaseMessage,
        message_chunk_to_message,
    )
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
    from langchain_core.runnables import Runnable, RunnableConfig
    from pydantic import ConfigDict, Field

__all__ = ["ProtectedChatModel", "TextveilMiddleware"]

JsonObject = dict[str, Any]

# ---- messages ------------------------------------------------------------------------------------

PROTECTED, ARGUMENTS, OBJECT = text(), any_value(Act.ARGUMENTS), any_value(Act.OBJECT)
MEDIA, DROPPED = any_value(Act.MEDIA), any_value(Act.DROP)
INDEX_FIELDS = {"id": union(ID, NUMBER), "index": union(NUMBER, ID)}
SEALED_EXTRAS = LeafRule(
    fields={"signature": SEALED, "thought_signature": SEALED}, other_fields=DROPPED
)
BLOCK_FIELDS = {**INDEX_FIELDS, **CACHE_BREAKPOINT, "annotations": DROPPED, "extras": SEALED_EXTRAS}
SUMMARY = array(record(type=choice("summary_text", "reasoning_text"), text=PROTECTED, index=NUMBER))
MEDIA_FIELDS = (
    "base64 data detail file file_id format image_url input_audio media mime_type source "
    "source_type url video_url"
)


def _build_rule(**kinds: dict[str, LeafRule]) -> LeafRule:
    """Builds a rule for blocks, by their type."""
    return LeafRule(
        tag="type",
        kinds={
            kind: LeafRule(fields={"type": choice(kind), **rules}) for kind, rules in kinds.items()
        },
    )


TEXT_BLOCK = {"text": PROTECTED, **BLOCK_FIELDS}
ANSWER_BLOCKS: dict[str, dict[str, LeafRule]] = {
    "text": {"text": PROTECTED},
    "refusal": {"refusal": PROTECTED},
    "reasoning": {
        "reasoning": PROTECTED,
        "summary": SUMMARY,
        "content": SUMMARY,
        "encrypted_content": SEALED,
    },
    "thinking": {"thinking": text(Act.SIGNED), "signature": SEALED},
    "redacted_thinking": {"data": SEALED},
    "tool_call": {"name": API_NAME, "args": OBJECT},
    "tool_use": {"name": API_NAME, "input": ARGUMENTS, "partial_json": ARGUMENTS},
    "function_call": {"name": API_NAME, "arguments": ARGUMENTS, "call_id": ID, "status": ID},
    "invalid_tool_call": {"name": API_NAME, "args": ARGUMENTS, "error": PROTECTED},
    "server_tool_call": {"name": API_NAME, "args": OBJECT},
    "server_tool_result": {"tool_call_id": ID, "status": ID, "output": OBJECT},
}
"""Rules for the blocks of a model's answer.

As LangChain and the packages of providers write them.
"""

_PLAIN_FILE = dict.fromkeys(("text", "title", "context"), PROTECTED) | dict.fromkeys(
    ("base64", "url", "file_id"), MEDIA
)
BLOCK = _build_rule(
    **{kind: {**own, **BLOCK_FIELDS} for kind, own in ANSWER_BLOCKS.items()},
    tool_result={
        "tool_use_id": ID,
        "is_error": NUMBER,
        "content": union(PROTECTED, array(_build_rule(text=TEXT_BLOCK))),
    },
    **{"text-plain": {**_PLAIN_FILE, "mime_type": API_NAME, **BLOCK_FIELDS}},
    **{
        kind: {**dict.fromkeys(MEDIA_FIELDS.split(), MEDIA), **BLOCK_FIELDS}
        for kind in (
            "image",
            "image_url",
            "audio",
            "input_audio",
            "video",
            "file",
            "media",
            "document",
        )
    },
)
CONTENT = union(PROTECTED, array(union(PROTECTED, BLOCK)))
CALL = record(name=API_NAME, args=OBJECT, id=ID, type=choice("tool_call"))
INVALID_CALL = record(
    name=API_NAME, args=ARGUMENTS, id=ID, error=PROTECTED, type=choice("invalid_tool_call")
)
EXTRA_FIELDS = LeafRule(
    fields={
        "tool_calls": array(TOOL_CALL),
        "function_call": record(name=API_NAME, arguments=ARGUMENTS),
        "refusal": PROTECTED,
        "reasoning_content": PROTECTED,
        "extra_content": EXTRA,
        "__gemini_function_call_thought_signatures__": LeafRule(fields={}, other_fields=SEALED),
    },
    other_fields=DROPPED,
)
"""The rule for extra data of packages beside a message.

Those of its fields that they send.
"""
METADATA_FIELDS = LeafRule(
    fields={"model_provider": API_NAME, "output_version": API_NAME}, other_fields=DROPPED
)


def _build_message_rule(**extra: LeafRule) -> LeafRule:
    fields = {
        "content": CONTENT,
        "additional_kwargs": EXTRA_FIELDS,
        "response_metadata": METADATA_FIELDS,
        "name": text(Act.LABEL),
    }
    return LeafRule(fields={**fields, **extra}, other_fields=DROPPED)


MESSAGE_KINDS = {
    "human": _build_message_rule(),
    "system": _build_message_rule(),
    "chat": _build_message_rule(role=ID),
    "ai": _build_message_rule(
        name=API_NAME, tool_calls=array(CALL), invalid_tool_calls=array(INVALID_CALL)
    ),
    "tool": _build_message_rule(name=API_NAME, tool_call_id=ID, status=ID),
    "function": _build_message_rule(name=API_NAME),
}
MESSAGE = LeafRule(
    tag="type",
    kinds={
        kind: LeafRule(fields={"type": choice(kind), **(rule.fields or {})}, other_fields=DROPPED)
        for kind, rule in MESSAGE_KINDS.items()
    },
)
"""The rule for a message, as LangChain writes it.

LangChain's own fields are dropped: ids, usage, artifacts of tools.
"""

LANGCHAIN_REQUEST = record(
    messages=array(MESSAGE), stop=array(PROTECTED), settings=any_value(Act.SCHEMA)
)

# What an answer holds besides is restored as text (`Act.UNKNOWN`).
_ANSWER_KINDS = {
    **ANSWER_BLOCKS,
    "tool_call_chunk": {"args": ARGUMENTS},
    "server_tool_call_chunk": {"args": ARGUMENTS},
}
ANSWER_BLOCK = _build_rule(
    **_ANSWER_KINDS, input_json_delta={"partial_json": ARGUMENTS}, **{"": {"text": PROTECTED}}
)
ANSWER_MESSAGE = record(
    content=union(PROTECTED, array(union(PROTECTED, ANSWER_BLOCK))),
    additional_kwargs=LeafRule(fields=EXTRA_FIELDS.fields, other_fields=OBJECT),
    response_metadata=PASSED,
    usage_metadata=PASSED,
    type=PASSED,
    id=PASSED,
    name=PASSED,
    chunk_position=PASSED,
    tool_calls=array(record(name=PASSED, args=OBJECT, id=PASSED, type=PASSED)),
    invalid_tool_calls=array(
        record(name=PASSED, args=ARGUMENTS, id=PASSED, error=PROTECTED, type=PASSED)
    ),
    tool_call_chunks=array(
        record(name=PASSED, args=ARGUMENTS, id=PASSED, index=PASSED, type=PASSED)
    ),
)
"""The rule for an answer, whole or a piece."""


LANGCHAIN = build_operation(
    "langchain", request=LANGCHAIN_REQUEST, answer=ANSWER_MESSAGE, message=MESSAGE, role="type"
)


def _dump_message(message: BaseMessage) -> JsonObject:
    """Converts a message to JSON data."""
    if not isinstance(message, BaseMessage):
        raise InputError(f"messages must be LangChain's, got {type(message).__name__}")
    result = message.model_dump()
    if message.type.endswith("MessageChunk"):
        result["type"] = message_chunk_to_message(message).type
    return result


def _replace_contents(message: BaseMessage, plain: JsonObject) -> BaseMessage:
    """Copies a message with other contents.

    Dropped fields have their defaults.
    """
    if message.type.endswith("MessageChunk"):
        message = message_chunk_to_message(message)
    fields = type(message).model_fields
    empty = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    result = message.model_copy(
        update={name: plain.get(name, empty[name]) for name in fields if name != "type"}
    )
    # A copy keeps the extra fields of the original, which the rules drop.
    result.__pydantic_extra__ = {}
    return result


# ---- the model -----------------------------------------------------------------------------------


class ProtectedChatModel(BaseChatModel):
    """A chat model that sees released text only.

    Its answers come back with the originals.

    Attributes:
        inner: the model that is asked.
        guard: protects what it is asked, and restores what it says.
        conversation: its name; else that of `textveil.integrations.conversation`, or the
            `thread_id` of the metadata of the call, or none.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    inner: BaseChatModel = Field(exclude=True)
    guard: ChatGuard = Field(default_factory=ChatGuard, exclude=True, repr=False)
    conversation: str | None = Field(default=None, exclude=True, repr=False)
    cache: bool | None = Field(default=False, exclude=True)
    """LangChain's own cache, which is off.

    It would hold the originals; that of the inner model holds released text.
    """

    def __init__(self, inner: BaseChatModel, /, **options: Any) -> None:
        shared = {"profile": inner.profile, "disable_streaming": inner.disable_streaming}
        super().__init__(**{"inner": inner, **shared, **options})

    @property
    def _llm_type(self) -> str:
        return "textveil"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {"inner": self.inner._llm_type}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return self.inner._get_ls_params(stop=stop, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Returns the inner model's name where hosts ask for it."""
        if name in ("model", "model_name", "model_id"):
            return getattr(self.inner, name)
        return super().__getattr__(name)  # type: ignore[misc]

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """Binds tools; identifiers in their descriptions are hidden."""
        bound: Any = self.inner.bind_tools(tools, **kwargs)
        return self.bind(**getattr(bound, "kwargs", {}))

    # ---- whole -----------------------------------------------------------------------------------

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        request, model_messages, options = self._prepare_request(
            messages, stop, kwargs, run_manager
        )(self.guard.protect)
        answer = self.inner.invoke(model_messages, _NO_CALLBACKS, **options)
        message, pair = _restore(request, answer)
        request.remember_answer([pair])
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        protect = self._prepare_request(messages, stop, kwargs, run_manager)
        request, model_messages, options = await _protect_in_thread(protect, self.guard.protect)
        answer = await self.inner.ainvoke(model_messages, _NO_CALLBACKS, **options)
        message, pair = _restore(request, answer)
        await request.aremember_answer([pair])
        return ChatResult(generations=[ChatGeneration(message=message)])

    # ---- streamed --------------------------------------------------------------------------------

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        request, model_messages, options = self._prepare_request(
            messages, stop, kwargs, run_manager
        )(self.guard.protect)
        pieces = _PieceRestorer(request)
        for piece in self.inner.stream(model_messages, _NO_CALLBACKS, **options):
            yield from (ChatGenerationChunk(message=chunk) for chunk in pieces.feed(piece))
        yield from (ChatGenerationChunk(message=chunk) for chunk in pieces.close())
        request.remember_answer(pieces.list_pairs())

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        protect = self._prepare_request(messages, stop, kwargs, run_manager)
        request, model_messages, options = await _protect_in_thread(protect, self.guard.protect)
        pieces = _PieceRestorer(request)
        async for piece in self.inner.astream(model_messages, _NO_CALLBACKS, **options):
            for chunk in pieces.feed(piece):
                yield ChatGenerationChunk(message=chunk)
        for chunk in pieces.close():
            yield ChatGenerationChunk(message=chunk)
        await request.aremember_answer(pieces.list_pairs())

    # ---- requests --------------------------------------------------------------------------------

    def _prepare_request(
        self,
        messages: Sequence[BaseMessage],
        stop: list[str] | None,
        kwargs: JsonObject,
        run_manager: Any,
    ) -> Callable[
        [Callable[..., GuardedRequest]], tuple[GuardedRequest, list[BaseMessage], JsonObject]
    ]:
        """Returns a function that begins a request.

        It gives the request, the released messages and settings.
        """
        metadata = getattr(run_manager, "metadata", None) or {}
        name = self.conversation or get_conversation() or metadata.get("thread_id")
        settings, passed = split_settings(kwargs)
        body = {"messages": list(map(_dump_message, messages)), "stop": stop, "settings": settings}

        def protect(
            guard: Callable[..., GuardedRequest],
        ) -> tuple[GuardedRequest, list[BaseMessage], JsonObject]:
            request = guard(LANGCHAIN, body, None if name is None else str(name))
            model_messages = [
                _replace_contents(*pair)
                for pair in zip(messages, request.released_body["messages"], strict=True)
            ]
            options = {**passed, **(request.released_body.get("settings") or {})}
            return (
                request,
                model_messages,
                options
                | ({} if stop is None else {"stop": request.released_body.get("stop", stop)}),
            )

        return protect


_NO_CALLBACKS: RunnableConfig = {"callbacks": []}
"""The configuration of inner calls, without callbacks.

Whoever listens to the protected model hears the restored answer alone, and not that of the inner
one.
"""


async def _protect_in_thread(
    protect: Callable[..., Any], guard: Callable[..., GuardedRequest]
) -> Any:
    import asyncio

    return await asyncio.to_thread(protect, guard)


def _restore(
    request: GuardedRequest, answer: BaseMessage
) -> tuple[BaseMessage, tuple[JsonObject, JsonObject]]:
    data = _dump_message(answer)
    restored = request.restore(data)
    return _replace_contents(answer, restored), (data, restored)


class _PieceRestorer:
    """A streamed answer, piece by piece."""

    def __init__(self, request: GuardedRequest) -> None:
        self._request = request
        self._last: dict[Any, tuple[JsonObject, Path]] = {}
        self._received: AIMessageChunk | None = None
        self._restored: AIMessageChunk | None = None
        self._id: str | None = None

    def feed(self, piece: BaseMessage) -> Iterator[AIMessageChunk]:
        """Yields the restored text that is certain after a piece."""
        if not isinstance(piece, AIMessageChunk):
            piece = _build_chunk(piece)
        self._received = piece if self._received is None else self._received + piece
        self._id = piece.id or self._id
        # LangChain computes the calls of a piece from its `tool_call_chunks`.
        plain = piece.model_dump(exclude={"tool_calls", "invalid_tool_calls", "chunk_position"})
        restored, paths = self._request.restore_piece(
            plain, ANSWER_MESSAGE, partial(_find_place, plain)
        )
        self._last |= {key: (plain, path) for key, path in paths.items()}
        yield from self._yield_chunk(restored)

    def close(self) -> Iterator[AIMessageChunk]:
        """Yields the text that was held back."""
        for key, (piece, path) in self._last.items():
            if tail := self._request.close_text(key):
                yield from self._yield_chunk(build_delta(piece, path, tail))

    def list_pairs(self) -> list[tuple[JsonObject, JsonObject]]:
        """Returns the answer as received and as restored."""
        if self._received is None or self._restored is None:
            return []
        received, restored = (
            _dump_message(message_chunk_to_message(message))
            for message in (self._received, self._restored)
        )
        return [(received, restored)]

    def _yield_chunk(self, plain: JsonObject) -> Iterator[AIMessageChunk]:
        values = {
            name: plain[name] for name in AIMessageChunk.model_fields if plain.get(name) is not None
        }
        values.setdefault(
            "content",
            [] if self._restored is not None and isinstance(self._restored.content, list) else "",
        )
        calls = values.get("tool_call_chunks") or []
        values["tool_call_chunks"] = [
            {"name": None, "id": None, "index": None, **call} for call in calls
        ]
        values["type"], values["id"] = "AIMessageChunk", self._id
        chunk = AIMessageChunk(**values)
        self._restored = chunk if self._restored is None else self._restored + chunk
        yield chunk


def _build_chunk(message: BaseMessage) -> AIMessageChunk:
    """Converts a whole answer to a single piece.

    Of a model that does not stream.
    """
    data = _dump_message(message)
    calls: list[Any] = [
        {"name": call["name"], "args": json.dumps(call["args"]), "id": call["id"], "index": i}
        for i, call in enumerate(data.get("tool_calls") or ())
    ]
    names = ("content", "additional_kwargs", "response_metadata", "usage_metadata", "id", "name")
    chunk: Any = {name: data[name] for name in names if data.get(name) is not None}
    return AIMessageChunk(**chunk, tool_call_chunks=calls)


def _find_place(piece: JsonObject, path: Path) -> Path:
    """Returns the place in the answer that a piece's text continues."""
    if len(path) < 2 or not isinstance(path[1], int):
        return path
    item = piece[str(path[0])][path[1]]
    number = item.get("index") if isinstance(item, dict) else None
    return (path[0], path[1] if number is None else number, *path[2:])


# ---- agents --------------------------------------------------------------------------------------

with explain_missing():
    from langchain.agents.middleware import AgentMiddleware, ModelRequest
    from langgraph.config import get_config


class TextveilMiddleware(AgentMiddleware):
    """Puts a `ProtectedChatModel` in place of an agent's model.

    Whatever model other middleware chooses.

    Tools get arguments with the originals, and the state has originals throughout: each message is
    released when it is sent to the model for the first time.

    Args:
        guard: protects and restores; None for the profile "prompt". Conversations are named by the
            `thread_id` of the agent's configuration, where it has one.
    """

    def __init__(self, guard: ChatGuard | None = None) -> None:
        super().__init__()
        self._guard = guard or ChatGuard()

    def __repr__(self) -> str:
        return f"TextveilMiddleware({self._guard!r})"

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Calls the model with protection; see the class."""
        return handler(self._protect_request(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Calls the model with protection, asynchronously; see the class."""
        return await handler(self._protect_request(request))

    def _protect_request(self, request: Any) -> Any:
        """Returns the request with a protected model.

        It stays protected where somebody else overrides it later.
        """
        name = get_conversation() or (get_config().get("configurable") or {}).get("thread_id")
        conversation = None if name is None else str(name)

        def protect_model(model: Any) -> Any:
            if isinstance(model, ProtectedChatModel):
                return model
            if not isinstance(model, BaseChatModel):
                raise InputError("the model of a protected agent must be a chat model")
            return ProtectedChatModel(model, guard=self._guard, conversation=conversation)

        class GuardedModelRequest(ModelRequest):
            """A request whose model is always a protected one."""

            def __setattr__(self, name: str, value: Any) -> None:
                super().__setattr__(name, protect_model(value) if name == "model" else value)

        values = {name: getattr(request, name) for name in ModelRequest.__dataclass_fields__}
        return GuardedModelRequest(**values)
