"""LangChain: a protected chat model, and middleware for agents.

The model sees released text only; the middleware puts it into agents.

In: messages, tool results, settings. Out: answers and tool calls with the originals, whole or
streamed.
Not here: how a request is released (`gateway.inprocess`), and what becomes of its leaves
(`gateway.leaves`).
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from textveil.config.extras import needed
from textveil.errors import InputError
from textveil.gateway import ChatGuard, GuardedRequest
from textveil.gateway.inprocess import host, plain
from textveil.gateway.leaves import (
    ID,
    NAME,
    NUMBER,
    Act,
    LeafRule,
    Path,
    each,
    either,
    one_of,
    record,
    text,
    whole,
)
from textveil.gateway.protocols.chat import EXTRA, KEPT_UNTIL_HERE, SEALED, TOOL_CALL, branch
from textveil.integrations import current

with needed():
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

Body = dict[str, Any]

# ---- messages ------------------------------------------------------------------------------------

PROTECTED, ARGUMENTS, OBJECT = text(), whole(Act.ARGUMENTS), whole(Act.OBJECT)
MEDIA, DROPPED, PASSED = whole(Act.MEDIA), whole(Act.DROP), whole(Act.PASS)
NUMBERED = {"id": either(ID, NUMBER), "index": either(NUMBER, ID)}
SEALED_EXTRAS = LeafRule(fields={"signature": SEALED, "thought_signature": SEALED}, others=DROPPED)
BESIDE = {**NUMBERED, **KEPT_UNTIL_HERE, "annotations": DROPPED, "extras": SEALED_EXTRAS}
SUMMARY = each(record(type=one_of("summary_text", "reasoning_text"), text=PROTECTED, index=NUMBER))
MEDIA_FIELDS = (
    "base64 data detail file file_id format image_url input_audio "
    "media mime_type source source_type url video_url"
)


def _build_rule(**kinds: dict[str, LeafRule]) -> LeafRule:
    """Builds a rule for blocks, by their type."""
    return LeafRule(
        tag="type",
        kinds={kind: LeafRule(fields={"type": one_of(kind), **own}) for kind, own in kinds.items()},
    )


TEXT_BLOCK = {"text": PROTECTED, **BESIDE}
SAID_TEXTS: dict[str, dict[str, LeafRule]] = {
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
    "tool_call": {"name": NAME, "args": OBJECT},
    "tool_use": {"name": NAME, "input": ARGUMENTS, "partial_json": ARGUMENTS},
    "function_call": {"name": NAME, "arguments": ARGUMENTS, "call_id": ID, "status": ID},
    "invalid_tool_call": {"name": NAME, "args": ARGUMENTS, "error": PROTECTED},
    "server_tool_call": {"name": NAME, "args": OBJECT},
    "server_tool_result": {"tool_call_id": ID, "status": ID, "output": OBJECT},
}
"""Rules for the blocks of a model's answer.

As LangChain and the packages of providers write them.
"""

_PLAIN_FILE = dict.fromkeys(("text", "title", "context"), PROTECTED) | dict.fromkeys(
    ("base64", "url", "file_id"), MEDIA
)
BLOCK = _build_rule(
    **{kind: {**own, **BESIDE} for kind, own in SAID_TEXTS.items()},
    tool_result={
        "tool_use_id": ID,
        "is_error": NUMBER,
        "content": either(PROTECTED, each(_build_rule(text=TEXT_BLOCK))),
    },
    **{"text-plain": {**_PLAIN_FILE, "mime_type": NAME, **BESIDE}},
    **{
        kind: {**dict.fromkeys(MEDIA_FIELDS.split(), MEDIA), **BESIDE}
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
CONTENT = either(PROTECTED, each(either(PROTECTED, BLOCK)))
CALL = record(name=NAME, args=OBJECT, id=ID, type=one_of("tool_call"))
BAD_CALL = record(
    name=NAME, args=ARGUMENTS, id=ID, error=PROTECTED, type=one_of("invalid_tool_call")
)
MORE = LeafRule(
    fields={
        "tool_calls": each(TOOL_CALL),
        "function_call": record(name=NAME, arguments=ARGUMENTS),
        "refusal": PROTECTED,
        "reasoning_content": PROTECTED,
        "extra_content": EXTRA,
        "__gemini_function_call_thought_signatures__": LeafRule(fields={}, others=SEALED),
    },
    others=DROPPED,
)
"""The rule for extra data of packages beside a message.

Those of its fields that they send.
"""
ABOUT = LeafRule(fields={"model_provider": NAME, "output_version": NAME}, others=DROPPED)


def _build_message_rule(**own: LeafRule) -> LeafRule:
    fields = {
        "content": CONTENT,
        "additional_kwargs": MORE,
        "response_metadata": ABOUT,
        "name": text(Act.LABEL),
    }
    return LeafRule(fields={**fields, **own}, others=DROPPED)


KINDS = {
    "human": _build_message_rule(),
    "system": _build_message_rule(),
    "chat": _build_message_rule(role=ID),
    "ai": _build_message_rule(name=NAME, tool_calls=each(CALL), invalid_tool_calls=each(BAD_CALL)),
    "tool": _build_message_rule(name=NAME, tool_call_id=ID, status=ID),
    "function": _build_message_rule(name=NAME),
}
MESSAGE = LeafRule(
    tag="type",
    kinds={
        kind: LeafRule(fields={"type": one_of(kind), **(rule.fields or {})}, others=DROPPED)
        for kind, rule in KINDS.items()
    },
)
"""The rule for a message, as LangChain writes it.

LangChain's own fields are dropped: ids, usage, artifacts of tools.
"""

REQUEST = record(messages=each(MESSAGE), stop=each(PROTECTED), settings=whole(Act.SCHEMA))

# What an answer holds besides is restored as text (`Act.UNKNOWN`).
_SAID_KINDS = {
    **SAID_TEXTS,
    "tool_call_chunk": {"args": ARGUMENTS},
    "server_tool_call_chunk": {"args": ARGUMENTS},
}
SAID_BLOCK = _build_rule(
    **_SAID_KINDS, input_json_delta={"partial_json": ARGUMENTS}, **{"": {"text": PROTECTED}}
)
SAID = record(
    content=either(PROTECTED, each(either(PROTECTED, SAID_BLOCK))),
    additional_kwargs=LeafRule(fields=MORE.fields, others=OBJECT),
    response_metadata=PASSED,
    usage_metadata=PASSED,
    type=PASSED,
    id=PASSED,
    name=PASSED,
    chunk_position=PASSED,
    tool_calls=each(record(name=PASSED, args=OBJECT, id=PASSED, type=PASSED)),
    invalid_tool_calls=each(
        record(name=PASSED, args=ARGUMENTS, id=PASSED, error=PROTECTED, type=PASSED)
    ),
    tool_call_chunks=each(
        record(name=PASSED, args=ARGUMENTS, id=PASSED, index=PASSED, type=PASSED)
    ),
)
"""The rule for an answer, whole or a piece."""


LANGCHAIN = host("langchain", request=REQUEST, answer=SAID, message=MESSAGE, role="type")


def _to_json(message: BaseMessage) -> Body:
    """Converts a message to JSON data."""
    if not isinstance(message, BaseMessage):
        raise InputError(f"messages must be LangChain's, got {type(message).__name__}")
    result = message.model_dump()
    if message.type.endswith("MessageChunk"):
        result["type"] = message_chunk_to_message(message).type
    return result


def _replace_contents(message: BaseMessage, plain: Body) -> BaseMessage:
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
        begun, sent, options = self._begun(messages, stop, kwargs, run_manager)(self.guard.begin)
        came = self.inner.invoke(sent, _ALONE, **options)
        made, pair = _restore(begun, came)
        begun.answered([pair])
        return ChatResult(generations=[ChatGeneration(message=made)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        begin = self._begun(messages, stop, kwargs, run_manager)
        begun, sent, options = await _begin_in_thread(begin, self.guard.begin)
        came = await self.inner.ainvoke(sent, _ALONE, **options)
        made, pair = _restore(begun, came)
        await begun.aanswered([pair])
        return ChatResult(generations=[ChatGeneration(message=made)])

    # ---- streamed --------------------------------------------------------------------------------

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        begun, sent, options = self._begun(messages, stop, kwargs, run_manager)(self.guard.begin)
        pieces = _Pieces(begun)
        for came in self.inner.stream(sent, _ALONE, **options):
            yield from (ChatGenerationChunk(message=made) for made in pieces.feed(came))
        yield from (ChatGenerationChunk(message=made) for made in pieces.close())
        begun.answered(pieces.pairs())

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        begin = self._begun(messages, stop, kwargs, run_manager)
        begun, sent, options = await _begin_in_thread(begin, self.guard.begin)
        pieces = _Pieces(begun)
        async for came in self.inner.astream(sent, _ALONE, **options):
            for made in pieces.feed(came):
                yield ChatGenerationChunk(message=made)
        for made in pieces.close():
            yield ChatGenerationChunk(message=made)
        await begun.aanswered(pieces.pairs())

    # ---- requests --------------------------------------------------------------------------------

    def _begun(
        self,
        messages: Sequence[BaseMessage],
        stop: list[str] | None,
        kwargs: Body,
        run_manager: Any,
    ) -> Callable[[Callable[..., GuardedRequest]], tuple[GuardedRequest, list[BaseMessage], Body]]:
        """Returns a function that begins a request.

        It gives the request, the released messages and settings.
        """
        metadata = getattr(run_manager, "metadata", None) or {}
        name = self.conversation or current() or metadata.get("thread_id")
        settings, passed = plain(kwargs)
        body = {"messages": list(map(_to_json, messages)), "stop": stop, "settings": settings}

        def begin(
            guard: Callable[..., GuardedRequest],
        ) -> tuple[GuardedRequest, list[BaseMessage], Body]:
            begun = guard(LANGCHAIN, body, None if name is None else str(name))
            sent = [
                _replace_contents(*both)
                for both in zip(messages, begun.sent["messages"], strict=True)
            ]
            options = {**passed, **(begun.sent.get("settings") or {})}
            return (
                begun,
                sent,
                options | ({} if stop is None else {"stop": begun.sent.get("stop", stop)}),
            )

        return begin


_ALONE: RunnableConfig = {"callbacks": []}
"""The configuration of inner calls, without callbacks.

Whoever listens to the protected model hears the restored answer alone, and not that of the inner
one.
"""


async def _begin_in_thread(begin: Callable[..., Any], guard: Callable[..., GuardedRequest]) -> Any:
    import asyncio

    return await asyncio.to_thread(begin, guard)


def _restore(begun: GuardedRequest, came: BaseMessage) -> tuple[BaseMessage, tuple[Body, Body]]:
    own = _to_json(came)
    made = begun.restored(own)
    return _replace_contents(came, made), (own, made)


class _Pieces:
    """A streamed answer, piece by piece."""

    def __init__(self, begun: GuardedRequest) -> None:
        self._begun = begun
        self._last: dict[Any, tuple[Body, Path]] = {}
        self._came: AIMessageChunk | None = None
        self._made: AIMessageChunk | None = None
        self._id: str | None = None

    def feed(self, came: BaseMessage) -> Iterator[AIMessageChunk]:
        """Yields the restored text that is certain after a piece."""
        if not isinstance(came, AIMessageChunk):
            came = _to_chunk(came)
        self._came = came if self._came is None else self._came + came
        self._id = came.id or self._id
        plain = came.model_dump(exclude={"tool_calls", "invalid_tool_calls", "chunk_position"})
        made, places = self._begun.piece(plain, SAID, partial(_find_place, plain))
        self._last |= {key: (plain, path) for key, path in places.items()}
        yield from self._yield_chunk(made)

    def close(self) -> Iterator[AIMessageChunk]:
        """Yields the text that was held back."""
        for key, (piece, path) in self._last.items():
            if rest := self._begun.rest(key):
                yield from self._yield_chunk(branch(piece, path, rest))

    def pairs(self) -> list[tuple[Body, Body]]:
        """Returns the answer as received and as restored."""
        if self._came is None or self._made is None:
            return []
        came, made = (_to_json(message_chunk_to_message(each)) for each in (self._came, self._made))
        return [(came, made)]

    def _yield_chunk(self, plain: Body) -> Iterator[AIMessageChunk]:
        own = {
            name: plain[name] for name in AIMessageChunk.model_fields if plain.get(name) is not None
        }
        own.setdefault(
            "content", [] if self._made is not None and isinstance(self._made.content, list) else ""
        )
        calls = own.get("tool_call_chunks") or []
        own["tool_call_chunks"] = [
            {"name": None, "id": None, "index": None, **call} for call in calls
        ]
        own["type"], own["id"] = "AIMessageChunk", self._id
        made = AIMessageChunk(**own)
        self._made = made if self._made is None else self._made + made
        yield made


def _to_chunk(message: BaseMessage) -> AIMessageChunk:
    """Converts a whole answer to a single piece.

    Of a model that does not stream.
    """
    own = _to_json(message)
    calls: list[Any] = [
        {"name": each["name"], "args": json.dumps(each["args"]), "id": each["id"], "index": i}
        for i, each in enumerate(own.get("tool_calls") or ())
    ]
    kept = ("content", "additional_kwargs", "response_metadata", "usage_metadata", "id", "name")
    chunk: Any = {name: own[name] for name in kept if own.get(name) is not None}
    return AIMessageChunk(**chunk, tool_call_chunks=calls)


def _find_place(piece: Body, path: Path) -> Path:
    """Returns the place in the answer that a piece's text continues."""
    if len(path) < 2 or not isinstance(path[1], int):
        return path
    item = piece[str(path[0])][path[1]]
    number = item.get("index") if isinstance(item, dict) else None
    return (path[0], path[1] if number is None else number, *path[2:])


# ---- agents --------------------------------------------------------------------------------------

with needed():
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
        return handler(self._guard_request(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Calls the model with protection, asynchronously; see the class."""
        return await handler(self._guard_request(request))

    def _guard_request(self, request: Any) -> Any:
        """Returns the request with a protected model.

        It stays protected where somebody else overrides it later.
        """
        name = current() or (get_config().get("configurable") or {}).get("thread_id")
        conversation = None if name is None else str(name)

        def guarded(model: Any) -> Any:
            if isinstance(model, ProtectedChatModel):
                return model
            if not isinstance(model, BaseChatModel):
                raise InputError("the model of an agent that is protected must be a chat model")
            return ProtectedChatModel(model, guard=self._guard, conversation=conversation)

        class GuardedModelRequest(ModelRequest):
            """A request whose model is always a protected one."""

            def __setattr__(self, name: str, value: Any) -> None:
                super().__setattr__(name, guarded(value) if name == "model" else value)

        own = {name: getattr(request, name) for name in ModelRequest.__dataclass_fields__}
        return GuardedModelRequest(**own)
