"""LlamaIndex: a protected language model, and a postprocessor of nodes.

The model sees released text only; the nodes are retrieved ones.

In: messages, prompts, tools, nodes. Out: answers and tool calls with the originals, whole or
streamed; released nodes.
Not here: how a request is released (`gateway.inprocess`), and what becomes of its leaves
(`gateway.protocols.field_rules`).
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator, Sequence
from typing import Any

from textveil.config.extras import explain_missing
from textveil.errors import ConfigError, InputError
from textveil.gateway import ChatGuard, GuardedRequest
from textveil.gateway.inprocess import build_operation, split_settings
from textveil.gateway.protocols.chat import TOOL_CALL
from textveil.gateway.protocols.field_rules import (
    API_NAME,
    ID,
    NUMBER,
    PASSED,
    Act,
    LeafRule,
    any_value,
    array,
    record,
    text,
    variants_by_tag,
)
from textveil.gateway.protocols.leaf_tables import SEALED
from textveil.integrations import get_conversation
from textveil.integrations.releases import check_metadata, normalize_names, resolve_privatizer
from textveil.pipeline import Privatizer, Protector
from textveil.session import Session, SessionStore

with explain_missing():
    from llama_index.core.base.llms.types import (
        ChatMessage,
        ChatResponse,
        CompletionResponse,
        LLMMetadata,
        TextBlock,
    )
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.llms.function_calling import FunctionCallingLLM
    from llama_index.core.llms.llm import LLM
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

__all__ = ["NodeProtector", "ProtectedLLM"]

JsonObject = dict[str, Any]

# ---- messages ------------------------------------------------------------------------------------

PROTECTED = text()
ARGUMENTS = any_value(Act.ARGUMENTS)
MEDIA = any_value(Act.MEDIA)
DROPPED = any_value(Act.DROP)
OBJECT = any_value(Act.OBJECT)
_FILE = dict.fromkeys(("path", "url", "image", "audio", "video", "data"), MEDIA)
_FILE_METADATA = dict.fromkeys(
    ("image_mimetype", "video_mimetype", "document_mimetype", "format", "detail", "fps", "title"),
    MEDIA,
)
SIGNATURE = LeafRule(fields={"signature": SEALED}, other_fields=DROPPED)
BLOCK = variants_by_tag(
    "block_type",
    text=record(text=PROTECTED),
    thinking=record(content=PROTECTED, num_tokens=NUMBER, additional_information=SIGNATURE),
    tool_call=record(tool_call_id=ID, tool_name=API_NAME, tool_kwargs=ARGUMENTS),
    cache=record(cache_control=record(type=API_NAME, ttl=API_NAME)),
    **{kind: record(**_FILE, **_FILE_METADATA) for kind in ("image", "audio", "video", "document")},
)
EXTRA_FIELDS = LeafRule(
    fields={
        "tool_calls": array(TOOL_CALL),
        "function_call": record(name=API_NAME, arguments=ARGUMENTS),
        "tool_call_id": ID,
        "name": text(Act.LABEL),
        "refusal": PROTECTED,
        "reasoning_content": PROTECTED,
    },
    other_fields=DROPPED,
)
"""The rule for extra data of packages beside a message.

Those of its fields that they send.
"""
MESSAGE = record(role=ID, additional_kwargs=EXTRA_FIELDS, blocks=array(BLOCK))
ANSWER_BLOCK = variants_by_tag(
    "block_type",
    text=record(text=PROTECTED),
    thinking=record(content=PROTECTED, num_tokens=PASSED, additional_information=PASSED),
    tool_call=record(tool_call_id=PASSED, tool_name=PASSED, tool_kwargs=ARGUMENTS),
)
ANSWER_MESSAGE = record(
    role=PASSED,
    additional_kwargs=LeafRule(fields=EXTRA_FIELDS.fields, other_fields=OBJECT),
    blocks=array(ANSWER_BLOCK),
)
"""The rule for a message of an answer.

Any other field is restored as text (`Act.UNKNOWN`).
"""


LLAMAINDEX = build_operation(
    "llamaindex",
    request=record(messages=array(MESSAGE), settings=any_value(Act.SCHEMA)),
    answer=ANSWER_MESSAGE,
    message=MESSAGE,
)


def _dump_message(message: ChatMessage) -> JsonObject:
    """Converts a message to JSON data."""
    return message.model_dump(mode="json")


def _replace_contents(message: ChatMessage, plain: JsonObject) -> ChatMessage:
    """Builds a message with other contents.

    Blocks that did not change are the same objects.
    """
    old_blocks, new_blocks = _dump_message(message)["blocks"], plain["blocks"]
    blocks = ChatMessage.model_validate({"role": plain["role"], "blocks": new_blocks}).blocks
    if len(old_blocks) == len(new_blocks):
        rows = zip(message.blocks, old_blocks, blocks, new_blocks, strict=True)
        blocks = [block if before == after else new for block, before, new, after in rows]
    return ChatMessage(
        role=message.role, blocks=blocks, additional_kwargs=plain.get("additional_kwargs") or {}
    )


# ---- the model -----------------------------------------------------------------------------------


class ProtectedLLM(FunctionCallingLLM):
    """A language model that sees released text only.

    Its answers come back with the originals.

    Attributes:
        inner: the model that is asked.
        conversation: the name of the conversation; else that of
            `textveil.integrations.conversation`, or none.
    """

    inner: LLM = Field(exclude=True)
    conversation: str | None = Field(default=None, exclude=True, repr=False)
    _guard: ChatGuard = PrivateAttr()

    def __init__(
        self, inner: LLM, guard: ChatGuard | None = None, *, conversation: str | None = None
    ) -> None:
        super().__init__(inner=inner, conversation=conversation)
        self._guard = guard or ChatGuard()

    @classmethod
    def class_name(cls) -> str:
        """Returns the name of the class for LlamaIndex."""
        return "textveil"

    @property
    def metadata(self) -> LLMMetadata:
        """The metadata of the inner model."""
        return self.inner.metadata

    # ---- chats -----------------------------------------------------------------------------------

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Returns the restored answer to messages."""
        request, model_messages, options = self._protect_request(messages, kwargs)
        return _restore_whole(request, self.inner.chat(model_messages, **options))

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Returns the restored answer to messages, asynchronously."""
        request, model_messages, options = await asyncio.to_thread(
            self._protect_request, messages, kwargs
        )
        answer = await self.inner.achat(model_messages, **options)
        return await asyncio.to_thread(_restore_whole, request, answer)

    def stream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> Generator[ChatResponse]:
        """Streams the restored answer to messages."""
        request, model_messages, options = self._protect_request(messages, kwargs)

        def restore_pieces() -> Generator[ChatResponse]:
            stream = _StreamRestorer(request)
            for piece in self.inner.stream_chat(model_messages, **options):
                yield stream.feed(piece)
            yield from stream.close()
            request.remember_answer(stream.list_pairs())

        return restore_pieces()

    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> AsyncGenerator[ChatResponse]:
        """Streams the restored answer to messages, asynchronously."""
        request, model_messages, options = await asyncio.to_thread(
            self._protect_request, messages, kwargs
        )

        async def restore_pieces() -> AsyncGenerator[ChatResponse]:
            stream = _StreamRestorer(request)
            async for piece in await self.inner.astream_chat(model_messages, **options):
                yield stream.feed(piece)
            for ending in stream.close():
                yield ending
            await request.aremember_answer(stream.list_pairs())

        return restore_pieces()

    # ---- completions -----------------------------------------------------------------------------

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Returns the restored answer to a prompt."""
        request, model_messages, options = self._protect_request(
            [ChatMessage(content=prompt)], kwargs
        )
        answer = self.inner.complete(_get_prompt(model_messages), formatted=formatted, **options)
        return _build_completion(answer, request.restorer.restore_text(answer.text))

    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        """Returns the restored answer to a prompt, asynchronously."""
        request, model_messages, options = await asyncio.to_thread(
            self._protect_request, [ChatMessage(content=prompt)], kwargs
        )
        answer = await self.inner.acomplete(
            _get_prompt(model_messages), formatted=formatted, **options
        )
        return _build_completion(answer, request.restorer.restore_text(answer.text))

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> Generator[CompletionResponse]:
        """Streams the restored answer to a prompt."""
        request, model_messages, options = self._protect_request(
            [ChatMessage(content=prompt)], kwargs
        )

        def restore_pieces() -> Generator[CompletionResponse]:
            restorer = _TextRestorer(request)
            for piece in self.inner.stream_complete(
                _get_prompt(model_messages), formatted=formatted, **options
            ):
                yield _build_completion(piece, restorer.text, restorer.feed(piece.delta or ""))
            if tail := restorer.close():
                yield CompletionResponse(text=restorer.text, delta=tail)

        return restore_pieces()

    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> AsyncGenerator[CompletionResponse]:
        """Streams the restored answer to a prompt, asynchronously."""
        request, model_messages, options = await asyncio.to_thread(
            self._protect_request, [ChatMessage(content=prompt)], kwargs
        )

        async def restore_pieces() -> AsyncGenerator[CompletionResponse]:
            restorer = _TextRestorer(request)
            async for piece in await self.inner.astream_complete(
                _get_prompt(model_messages), formatted=formatted, **options
            ):
                yield _build_completion(piece, restorer.text, restorer.feed(piece.delta or ""))
            if tail := restorer.close():
                yield CompletionResponse(text=restorer.text, delta=tail)

        return restore_pieces()

    # ---- tools -----------------------------------------------------------------------------------

    def _prepare_chat_with_tools(
        self, tools: Sequence[Any], *args: Any, **kwargs: Any
    ) -> JsonObject:
        return self._calling._prepare_chat_with_tools(tools, *args, **kwargs)

    def get_tool_calls_from_response(
        self, response: ChatResponse, *args: Any, **kwargs: Any
    ) -> list[Any]:
        """Returns the tool calls in a restored answer."""
        return self._calling.get_tool_calls_from_response(response, *args, **kwargs)

    @property
    def _calling(self) -> FunctionCallingLLM:
        if not isinstance(self.inner, FunctionCallingLLM):
            raise ConfigError("the inner model does not support function calls")
        return self.inner

    # ---- requests --------------------------------------------------------------------------------

    def _protect_request(
        self, messages: Sequence[ChatMessage], kwargs: JsonObject
    ) -> tuple[GuardedRequest, list[ChatMessage], JsonObject]:
        """Begins a request, and returns it with released messages and settings."""
        settings, passed = split_settings(kwargs)
        body = {"messages": list(map(_dump_message, messages)), "settings": settings}
        request = self._guard.protect(LLAMAINDEX, body, self.conversation or get_conversation())
        model_messages = [
            _replace_contents(*pair)
            for pair in zip(messages, request.released_body["messages"], strict=True)
        ]
        return request, model_messages, {**passed, **(request.released_body.get("settings") or {})}


def _get_prompt(messages: Sequence[ChatMessage]) -> str:
    return messages[0].content or ""


def _build_completion(
    answer: CompletionResponse, text: str, delta: str | None = None
) -> CompletionResponse:
    return answer.model_copy(
        update={"text": text + (delta or ""), "delta": delta, "logprobs": None}
    )


def _restore_whole(request: GuardedRequest, answer: ChatResponse) -> ChatResponse:
    data = _dump_message(answer.message)
    restored = request.restore(data)
    request.remember_answer([(data, restored)])
    return answer.model_copy(
        update={"message": _replace_contents(answer.message, restored), "logprobs": None}
    )


class _TextRestorer:
    """A streamed text, restored piece by piece."""

    def __init__(self, request: GuardedRequest) -> None:
        self._restorer, self.text = request.restorer, ""

    def feed(self, delta: str) -> str:
        restored = self._restorer.restore_piece("text", delta)
        self.text += restored
        return restored

    def close(self) -> str:
        restored = self._restorer.close_text("text")
        self.text += restored
        return restored


class _StreamRestorer:
    """A streamed answer, in which each piece repeats the text before it."""

    def __init__(self, request: GuardedRequest) -> None:
        self._request, self._text = request, _TextRestorer(request)
        self._last: ChatResponse | None = None

    def feed(self, piece: ChatResponse) -> ChatResponse:
        """Restores a piece as far as it is certain."""
        self._last = piece
        before = self._text.text
        delta = self._text.feed(piece.delta or "")
        return self._build_response(piece, before + delta, delta)

    def close(self) -> Iterator[ChatResponse]:
        """Yields the text that was held back."""
        if self._last is not None and (tail := self._text.close()):
            yield self._build_response(self._last, self._text.text, tail)

    def list_pairs(self) -> list[tuple[JsonObject, JsonObject]]:
        """Returns the answer as received and as restored."""
        if self._last is None:
            return []
        return [
            (
                _dump_message(self._last.message),
                _dump_message(self._build_response(self._last, self._text.text, "").message),
            )
        ]

    def _build_response(self, piece: ChatResponse, text: str, delta: str) -> ChatResponse:
        message = _replace_contents(
            piece.message, self._request.restore(_dump_message(piece.message))
        )
        other_blocks = [block for block in message.blocks if not isinstance(block, TextBlock)]
        message.blocks = [
            *([TextBlock(text=text)] if text or not other_blocks else []),
            *other_blocks,
        ]
        return piece.model_copy(update={"message": message, "delta": delta, "logprobs": None})


# ---- nodes ---------------------------------------------------------------------------------------


class NodeProtector(BaseNodePostprocessor):
    """Releases the texts of retrieved nodes.

    Copies go on without metadata that holds text, embeddings, relations and templates; the nodes of
    the index stay as they are. What was hidden is in a session, and nowhere in the nodes: `restore`
    puts it back into answers of the same conversation.

    Args:
        privatizer: a `Privatizer`, a `Protector`, or the name of a profile.
        keep: fields of the metadata with text that go along as they are; others with text are left
            out.
        store: where sessions are kept; None for one in memory.
    """

    _privatizer: Privatizer = PrivateAttr()
    _keep: tuple[str, ...] = PrivateAttr()
    _store: SessionStore = PrivateAttr()

    def __init__(
        self,
        privatizer: Privatizer | Protector | str = "prompt",
        *,
        keep: str | Iterable[str] = (),
        store: SessionStore | None = None,
    ) -> None:
        super().__init__()
        self._keep = normalize_names(keep)
        self._privatizer, self._store = resolve_privatizer(privatizer), store or SessionStore()

    @classmethod
    def class_name(cls) -> str:
        """Returns the name of the class for LlamaIndex."""
        return "textveil nodes"

    def __getstate__(self) -> dict[str, Any]:
        raise ConfigError(
            "a NodeProtector holds hidden values, so it cannot be pickled or saved: make another "
            "one"
        )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "NodeProtector":
        return self

    def restore(self, answer: str) -> str:
        """Restores the hidden values of this conversation in an answer.

        Raises:
            ConfigError: the caller is in none (`textveil.integrations.conversation`).
        """
        if get_conversation() is None:
            raise ConfigError(
                "answers can be restored only in a conversation: with "
                "textveil.integrations.conversation(NAME)"
            )
        return self._open_session().restore(answer)

    def _open_session(self) -> Session:
        name = get_conversation()
        return Session() if name is None else self._store.open("llamaindex", name)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        session = self._open_session()
        return [
            NodeWithScore(node=self._release_node(node.node, session), score=node.score)
            for node in nodes
        ]

    def _release_node(self, node: Any, session: Session) -> TextNode:
        if type(node).__name__ not in ("TextNode", "Document", "IndexNode"):
            raise InputError(
                f"only text nodes can be protected, not {type(node).__name__}: leave the others out"
            )
        metadata = {
            name: value
            for name, value in node.metadata.items()
            if name in self._keep or _can_pass(name, value)
        }
        return TextNode(
            id_=node.node_id,
            # Without its metadata, which LlamaIndex would write into the text.
            text=self._privatizer.with_parts(source="tool")
            .privatize(node.get_content(metadata_mode=MetadataMode.NONE), session)
            .text,
            metadata=metadata,
            excluded_embed_metadata_keys=[
                key for key in node.excluded_embed_metadata_keys if key in metadata
            ],
            excluded_llm_metadata_keys=[
                key for key in node.excluded_llm_metadata_keys if key in metadata
            ],
        )


def _can_pass(name: Any, value: Any) -> bool:
    """Says whether a field of metadata holds no text."""
    try:
        check_metadata({name: value}, ())
    except InputError:
        return False
    return True
