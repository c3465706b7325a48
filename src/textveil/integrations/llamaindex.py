"""LlamaIndex: a protected language model, and a postprocessor of nodes.

The model sees released text only; the nodes are retrieved ones.

In: messages, prompts, tools, nodes. Out: answers and tool calls with the originals, whole or
streamed; released nodes.
Not here: how a request is released (`gateway.inprocess`), and what becomes of its leaves
(`gateway.leaves`).
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator, Sequence
from typing import Any

from textveil.config.extras import needed
from textveil.errors import ConfigError, InputError
from textveil.gateway import ChatGuard, GuardedRequest
from textveil.gateway.inprocess import host, plain
from textveil.gateway.leaves import (
    ID,
    NAME,
    NUMBER,
    Act,
    LeafRule,
    each,
    record,
    tagged,
    text,
    whole,
)
from textveil.gateway.protocols.chat import SEALED, TOOL_CALL
from textveil.integrations import current
from textveil.integrations.releases import check_metadata, listed, privatizer_of
from textveil.pipeline import Privatizer, Protector
from textveil.session import Session, SessionStore

with needed():
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

Body = dict[str, Any]

# ---- messages ------------------------------------------------------------------------------------

PROTECTED = text()
ARGUMENTS = whole(Act.ARGUMENTS)
MEDIA = whole(Act.MEDIA)
DROPPED = whole(Act.DROP)
PASSED, OBJECT = whole(Act.PASS), whole(Act.OBJECT)
_FILE = dict.fromkeys(("path", "url", "image", "audio", "video", "data"), MEDIA)
_ABOUT = dict.fromkeys(
    ("image_mimetype", "video_mimetype", "document_mimetype", "format", "detail", "fps", "title"),
    MEDIA,
)
SIGNATURE = LeafRule(fields={"signature": SEALED}, others=DROPPED)
BLOCK = tagged(
    "block_type",
    text=record(text=PROTECTED),
    thinking=record(content=PROTECTED, num_tokens=NUMBER, additional_information=SIGNATURE),
    tool_call=record(tool_call_id=ID, tool_name=NAME, tool_kwargs=ARGUMENTS),
    cache=record(cache_control=record(type=NAME, ttl=NAME)),
    **{kind: record(**_FILE, **_ABOUT) for kind in ("image", "audio", "video", "document")},
)
MORE = LeafRule(
    fields={
        "tool_calls": each(TOOL_CALL),
        "function_call": record(name=NAME, arguments=ARGUMENTS),
        "tool_call_id": ID,
        "name": text(Act.LABEL),
        "refusal": PROTECTED,
        "reasoning_content": PROTECTED,
    },
    others=DROPPED,
)
"""The rule for extra data of packages beside a message.

Those of its fields that they send.
"""
MESSAGE = record(role=ID, additional_kwargs=MORE, blocks=each(BLOCK))
SAID_BLOCK = tagged(
    "block_type",
    text=record(text=PROTECTED),
    thinking=record(content=PROTECTED, num_tokens=PASSED, additional_information=PASSED),
    tool_call=record(tool_call_id=PASSED, tool_name=PASSED, tool_kwargs=ARGUMENTS),
)
SAID = record(
    role=PASSED,
    additional_kwargs=LeafRule(fields=MORE.fields, others=OBJECT),
    blocks=each(SAID_BLOCK),
)
"""The rule for a message of an answer.

Any other field is restored as text (`Act.UNKNOWN`).
"""


LLAMAINDEX = host(
    "llamaindex",
    request=record(messages=each(MESSAGE), settings=whole(Act.SCHEMA)),
    answer=SAID,
    message=MESSAGE,
)


def _to_json(message: ChatMessage) -> Body:
    """Converts a message to JSON data."""
    return message.model_dump(mode="json")


def _replace_contents(message: ChatMessage, plain: Body) -> ChatMessage:
    """Builds a message with other contents.

    Blocks that did not change are the same objects.
    """
    came, made = _to_json(message)["blocks"], plain["blocks"]
    read = ChatMessage.model_validate({"role": plain["role"], "blocks": made}).blocks
    if len(came) == len(made):
        same = zip(message.blocks, came, read, made, strict=True)
        read = [own if before == after else new for own, before, new, after in same]
    return ChatMessage(
        role=message.role, blocks=read, additional_kwargs=plain.get("additional_kwargs") or {}
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
        begun, sent, options = self._begun(messages, kwargs)
        return _restore_whole(begun, self.inner.chat(sent, **options))

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Returns the restored answer to messages, asynchronously."""
        begun, sent, options = await asyncio.to_thread(self._begun, messages, kwargs)
        came = await self.inner.achat(sent, **options)
        return await asyncio.to_thread(_restore_whole, begun, came)

    def stream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> Generator[ChatResponse]:
        """Streams the restored answer to messages."""
        begun, sent, options = self._begun(messages, kwargs)

        def told() -> Generator[ChatResponse]:
            stream = _Stream(begun)
            for came in self.inner.stream_chat(sent, **options):
                yield stream.feed(came)
            yield from stream.close()
            begun.answered(stream.pairs())

        return told()

    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> AsyncGenerator[ChatResponse]:
        """Streams the restored answer to messages, asynchronously."""
        begun, sent, options = await asyncio.to_thread(self._begun, messages, kwargs)

        async def told() -> AsyncGenerator[ChatResponse]:
            stream = _Stream(begun)
            async for came in await self.inner.astream_chat(sent, **options):
                yield stream.feed(came)
            for made in stream.close():
                yield made
            await begun.aanswered(stream.pairs())

        return told()

    # ---- completions -----------------------------------------------------------------------------

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Returns the restored answer to a prompt."""
        begun, sent, options = self._begun([ChatMessage(content=prompt)], kwargs)
        came = self.inner.complete(_get_prompt(sent), formatted=formatted, **options)
        return _complete(came, begun.restoring.text(came.text))

    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        """Returns the restored answer to a prompt, asynchronously."""
        begun, sent, options = await asyncio.to_thread(
            self._begun, [ChatMessage(content=prompt)], kwargs
        )
        came = await self.inner.acomplete(_get_prompt(sent), formatted=formatted, **options)
        return _complete(came, begun.restoring.text(came.text))

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> Generator[CompletionResponse]:
        """Streams the restored answer to a prompt."""
        begun, sent, options = self._begun([ChatMessage(content=prompt)], kwargs)

        def told() -> Generator[CompletionResponse]:
            pieces = _Text(begun)
            for came in self.inner.stream_complete(
                _get_prompt(sent), formatted=formatted, **options
            ):
                yield _complete(came, pieces.text, pieces.feed(came.delta or ""))
            if rest := pieces.close():
                yield CompletionResponse(text=pieces.text, delta=rest)

        return told()

    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> AsyncGenerator[CompletionResponse]:
        """Streams the restored answer to a prompt, asynchronously."""
        begun, sent, options = await asyncio.to_thread(
            self._begun, [ChatMessage(content=prompt)], kwargs
        )

        async def told() -> AsyncGenerator[CompletionResponse]:
            pieces = _Text(begun)
            async for came in await self.inner.astream_complete(
                _get_prompt(sent), formatted=formatted, **options
            ):
                yield _complete(came, pieces.text, pieces.feed(came.delta or ""))
            if rest := pieces.close():
                yield CompletionResponse(text=pieces.text, delta=rest)

        return told()

    # ---- tools -----------------------------------------------------------------------------------

    def _prepare_chat_with_tools(self, tools: Sequence[Any], *args: Any, **kwargs: Any) -> Body:
        return self._calling._prepare_chat_with_tools(tools, *args, **kwargs)

    def get_tool_calls_from_response(
        self, response: ChatResponse, *args: Any, **kwargs: Any
    ) -> list[Any]:
        """Returns the tool calls in a restored answer."""
        return self._calling.get_tool_calls_from_response(response, *args, **kwargs)

    @property
    def _calling(self) -> FunctionCallingLLM:
        if not isinstance(self.inner, FunctionCallingLLM):
            raise ConfigError("the inner model calls no functions")
        return self.inner

    # ---- requests --------------------------------------------------------------------------------

    def _begun(
        self, messages: Sequence[ChatMessage], kwargs: Body
    ) -> tuple[GuardedRequest, list[ChatMessage], Body]:
        """Begins a request, and returns it with released messages and settings."""
        settings, passed = plain(kwargs)
        body = {"messages": list(map(_to_json, messages)), "settings": settings}
        begun = self._guard.begin(LLAMAINDEX, body, self.conversation or current())
        sent = [
            _replace_contents(*both) for both in zip(messages, begun.sent["messages"], strict=True)
        ]
        return begun, sent, {**passed, **(begun.sent.get("settings") or {})}


def _get_prompt(sent: Sequence[ChatMessage]) -> str:
    return sent[0].content or ""


def _complete(came: CompletionResponse, text: str, delta: str | None = None) -> CompletionResponse:
    return came.model_copy(update={"text": text + (delta or ""), "delta": delta, "logprobs": None})


def _restore_whole(begun: GuardedRequest, came: ChatResponse) -> ChatResponse:
    own = _to_json(came.message)
    made = begun.restored(own)
    begun.answered([(own, made)])
    return came.model_copy(
        update={"message": _replace_contents(came.message, made), "logprobs": None}
    )


class _Text:
    """A streamed text, restored piece by piece."""

    def __init__(self, begun: GuardedRequest) -> None:
        self._restoring, self.text = begun.restoring, ""

    def feed(self, delta: str) -> str:
        made = self._restoring.piece("text", delta)
        self.text += made
        return made

    def close(self) -> str:
        made = self._restoring.rest("text")
        self.text += made
        return made


class _Stream:
    """A streamed answer, in which each piece repeats the text before it."""

    def __init__(self, begun: GuardedRequest) -> None:
        self._begun, self._text = begun, _Text(begun)
        self._last: ChatResponse | None = None

    def feed(self, came: ChatResponse) -> ChatResponse:
        """Restores a piece as far as it is certain."""
        self._last = came
        before = self._text.text
        delta = self._text.feed(came.delta or "")
        return self._build_response(came, before + delta, delta)

    def close(self) -> Iterator[ChatResponse]:
        """Yields the text that was held back."""
        if self._last is not None and (rest := self._text.close()):
            yield self._build_response(self._last, self._text.text, rest)

    def pairs(self) -> list[tuple[Body, Body]]:
        """Returns the answer as received and as restored."""
        if self._last is None:
            return []
        return [
            (
                _to_json(self._last.message),
                _to_json(self._build_response(self._last, self._text.text, "").message),
            )
        ]

    def _build_response(self, came: ChatResponse, said: str, delta: str) -> ChatResponse:
        own = _replace_contents(came.message, self._begun.restored(_to_json(came.message)))
        others = [block for block in own.blocks if not isinstance(block, TextBlock)]
        own.blocks = [*([TextBlock(text=said)] if said or not others else []), *others]
        return came.model_copy(update={"message": own, "delta": delta, "logprobs": None})


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
        self._keep = listed(keep)
        self._privatizer, self._store = privatizer_of(privatizer), store or SessionStore()

    @classmethod
    def class_name(cls) -> str:
        """Returns the name of the class for LlamaIndex."""
        return "textveil nodes"

    def __getstate__(self) -> dict[str, Any]:
        raise ConfigError(
            "a NodeProtector holds what it hid, and goes to no file or other process: make another one"
        )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "NodeProtector":
        return self

    def restore(self, answer: str) -> str:
        """Restores the hidden values of this conversation in an answer.

        Raises:
            ConfigError: the caller is in none (`textveil.integrations.conversation`).
        """
        if current() is None:
            raise ConfigError(
                "answers are restored in a conversation: with textveil.integrations.conversation(NAME)"
            )
        return self._open_session().restore(answer)

    def _open_session(self) -> Session:
        name = current()
        return Session() if name is None else self._store.open("llamaindex", name)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        session = self._open_session()
        return [
            NodeWithScore(node=self._release_node(each.node, session), score=each.score)
            for each in nodes
        ]

    def _release_node(self, node: Any, session: Session) -> TextNode:
        if type(node).__name__ not in ("TextNode", "Document", "IndexNode"):
            raise InputError(
                f"only nodes of text can be protected, not {type(node).__name__}: leave them out"
            )
        metadata = {
            name: value
            for name, value in node.metadata.items()
            if name in self._keep or _can_pass(name, value)
        }
        return TextNode(
            id_=node.node_id,
            text=self._privatizer.with_parts(source="tool")
            .privatize(node.get_content(metadata_mode=MetadataMode.NONE), session)
            .text,
            metadata=metadata,
            excluded_embed_metadata_keys=[
                each for each in node.excluded_embed_metadata_keys if each in metadata
            ],
            excluded_llm_metadata_keys=[
                each for each in node.excluded_llm_metadata_keys if each in metadata
            ],
        )


def _can_pass(name: Any, value: Any) -> bool:
    """Says whether a field of metadata holds no text."""
    try:
        check_metadata({name: value}, ())
    except InputError:
        return False
    return True
