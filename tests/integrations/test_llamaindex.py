"""LlamaIndex: no model sees an original, every answer has them, and no node carries what was hidden."""

import asyncio
import copy
import pickle
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="the extra `llamaindex` is not installed")
from llama_index.core import PromptTemplate, get_response_synthesizer
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    ToolCallBlock,
)
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.schema import (
    ImageNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.tools import FunctionTool

from textveil import Privatizer, Protector
from textveil.errors import ConfigError, DetectorError, InputError
from textveil.gateway import ChatGuard
from textveil.integrations import conversation
from textveil.integrations.llamaindex import NodeProtector, ProtectedLLM

CANARY = "zyxqorvian@example.org"
NAME = 'Zyxqor "Zed" Vian'


class Scripted(FunctionCallingLLM):
    """Says what it is told to, a character at a time, and keeps what it was sent."""

    chats: bool = True
    _said: Any = PrivateAttr()
    _seen: list[Any] = PrivateAttr(default_factory=list)

    def __init__(self, said, chats=True):
        super().__init__(chats=chats)
        self._said = said

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=self.chats, is_function_calling_model=self.chats)

    def _message(self, messages, kwargs):
        self._seen.append((messages, kwargs))
        blocks = self._said if isinstance(self._said, list) else None
        return (
            ChatMessage(role="assistant", blocks=blocks)
            if blocks
            else ChatMessage(role="assistant", content=self._said)
        )

    def chat(self, messages, **kwargs):
        return ChatResponse(message=self._message(messages, kwargs))

    async def achat(self, messages, **kwargs):
        return self.chat(messages, **kwargs)

    def stream_chat(self, messages, **kwargs):
        whole = self._message(messages, kwargs).content or ""
        for i in range(len(whole)):
            message = ChatMessage(role="assistant", content=whole[: i + 1])
            yield ChatResponse(message=message, delta=whole[i])

    async def astream_chat(self, messages, **kwargs):
        async def told():
            for each in self.stream_chat(messages, **kwargs):
                yield each

        return told()

    def complete(self, prompt, formatted=False, **kwargs):
        self._seen.append((prompt, kwargs))
        return CompletionResponse(text=self._said)

    async def acomplete(self, prompt, formatted=False, **kwargs):
        return self.complete(prompt)

    def stream_complete(self, prompt, formatted=False, **kwargs):
        whole = self.complete(prompt).text
        for i in range(len(whole)):
            yield CompletionResponse(text=whole[: i + 1], delta=whole[i])

    async def astream_complete(self, prompt, formatted=False, **kwargs):
        async def told():
            for each in self.stream_complete(prompt):
                yield each

        return told()

    def _prepare_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, *more: Any, **kwargs: Any
    ):
        described = [tool.metadata.to_openai_tool() for tool in tools]
        return {
            "messages": [*(chat_history or []), ChatMessage(content=str(user_msg))],
            "tools": described,
        }

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **kwargs):
        calls: Any = [
            block for block in response.message.blocks if isinstance(block, ToolCallBlock)
        ]
        return [
            ToolSelection(tool_id="1", tool_name=each.tool_name, tool_kwargs=each.tool_kwargs)
            for each in calls
        ]

    @property
    def sent(self):
        return str(self._seen)


@pytest.fixture(scope="module")
def guard():
    return ChatGuard(Protector(protect={"always": [NAME]}))


ASKED = [
    ChatMessage(role="system", content=f"You work for {CANARY}"),
    ChatMessage(content=f"Write to {NAME}"),
]
SAID = "I wrote to <LISTED_1> for <EMAIL_1>, not to <EMAIL_"
MADE = f"I wrote to {NAME} for {CANARY}, not to <EMAIL_"


async def collected(stream):
    return [each async for each in await stream]


@pytest.mark.parametrize("way", ["chat", "achat", "stream_chat", "astream_chat"])
def test_chats(guard, way):
    inner = Scripted(SAID)
    llm = ProtectedLLM(inner, guard)
    if way == "chat":
        assert llm.chat(ASKED).message.content == MADE
    elif way == "achat":
        assert asyncio.run(llm.achat(ASKED)).message.content == MADE
    else:
        pieces = (
            list(llm.stream_chat(ASKED))
            if way == "stream_chat"
            else asyncio.run(collected(llm.astream_chat(ASKED)))
        )
        assert "".join(str(each.delta) for each in pieces) == MADE
        assert pieces[-1].message.content == MADE
        assert all(MADE.startswith(each.message.content or "") for each in pieces)
    assert CANARY not in inner.sent
    assert "Zyxqor" not in inner.sent


@pytest.mark.parametrize("way", ["complete", "acomplete", "stream_complete", "astream_complete"])
def test_completions(guard, way):
    inner = Scripted("I wrote to <EMAIL_1>", chats=False)
    llm, prompt, made = ProtectedLLM(inner, guard), f"Write to {CANARY}", f"I wrote to {CANARY}"
    if way == "complete":
        assert llm.complete(prompt).text == made
    elif way == "acomplete":
        assert asyncio.run(llm.acomplete(prompt)).text == made
    else:
        stream = way == "stream_complete"
        pieces = (
            list(llm.stream_complete(prompt))
            if stream
            else asyncio.run(collected(llm.astream_complete(prompt)))
        )
        assert "".join(str(each.delta) for each in pieces) == pieces[-1].text == made
    assert CANARY not in inner.sent


def test_tools_get_originals_and_say_nothing_private(guard):
    written = []

    def write(to: str) -> str:
        written.append(to)
        return f"wrote to {to}"

    inner = Scripted(
        [ToolCallBlock(tool_call_id="1", tool_name="write", tool_kwargs={"to": "<LISTED_1>"})]
    )
    described = FunctionTool.from_defaults(write, description=f"Ask {CANARY}")
    answer = ProtectedLLM(inner, guard).predict_and_call([described], user_msg=f"Write to {NAME}")
    assert written == [NAME]
    assert str(answer) == f"wrote to {NAME}"
    assert CANARY not in inner.sent
    assert "Zyxqor" not in inner.sent


@pytest.mark.parametrize("streamed", [False, True])
def test_the_second_turn_sends_what_was_sent_before(streamed):
    inner = Scripted("So be it, said the lawyer")
    llm = ProtectedLLM(inner, ChatGuard(Privatizer("rankcape", epsilon=3)))
    first = [ChatMessage(content="Ingrid hid the money in Antwerp and in Bruges")]
    answer = (list(llm.stream_chat(first))[-1] if streamed else llm.chat(first)).message
    llm.chat(first)
    llm.chat([*first, answer, ChatMessage(content="And Bernard?")])
    sent = [[each.content for each in messages] for messages, _ in inner._seen]
    assert sent[0] == sent[1] == sent[2][:1]
    assert sent[2][1] == "So be it, said the lawyer"
    with conversation("another"):
        llm.chat(first)
    assert [each.content for each in inner._seen[-1][0]] != sent[0]


def test_a_query_over_documents(guard):
    inner = Scripted("<LISTED_1> is at <EMAIL_1>")
    synthesizer = get_response_synthesizer(
        ProtectedLLM(inner, guard), text_qa_template=PromptTemplate("{context_str} {query_str}")
    )
    node = NodeWithScore(
        node=TextNode(text=f"Mail of {NAME}: {CANARY}", metadata={"by": CANARY}), score=1.0
    )
    assert str(synthesizer.synthesize(f"Where is {NAME}?", [node])) == f"{NAME} is at {CANARY}"
    assert CANARY not in inner.sent


class Breaks:
    name = "breaks"

    def find(self, texts):
        raise RuntimeError(CANARY)


def test_it_fails_closed(guard):
    inner = Scripted("yes")
    broken = ProtectedLLM(inner, ChatGuard(Protector(protect={"detectors": [Breaks()]})))
    for ask in (broken.chat, broken.stream_chat):
        with pytest.raises(DetectorError):
            ask(ASKED)
    with pytest.raises(DetectorError):
        broken.complete(CANARY)
    with pytest.raises(InputError) as refused:
        ProtectedLLM(inner, guard).chat(
            [ChatMessage(blocks=[{"block_type": "image", "url": f"https://{CANARY}"}])]
        )
    assert CANARY not in str(refused.value)
    ProtectedLLM(inner, guard).chat(
        [ChatMessage(content="a", additional_kwargs={"note": CANARY, "tool_call_id": "x"})]
    )
    assert CANARY not in inner.sent
    for setting in (
        [TextNode(text=CANARY)],
        {CANARY},
        CANARY.encode(),
        {"note": CANARY, "x": object()},
    ):
        with pytest.raises(InputError, match="the setting"):
            ProtectedLLM(inner, guard).chat(ASKED, more=setting)
    assert len(inner._seen) == 1


def test_what_is_kept_shows_nothing(guard):
    llm = ProtectedLLM(Scripted("<EMAIL_1>"), ChatGuard())
    llm.complete(CANARY)
    for each in (repr(llm), str(llm), str(llm.to_dict()), llm.to_json()):
        assert CANARY not in each
    assert copy.deepcopy(llm)._guard is llm._guard


# ---- nodes -----------------------------------------------------------------------------------------------------------


def nodes():
    one = TextNode(
        text=f"Mail of {NAME}: {CANARY}",
        metadata={"by": ["Maria Silva"], "page": 3, "kind": "mail", CANARY: 1, "Silva": 1},
        embedding=[0.5],
    )
    one.excluded_llm_metadata_keys = ["page", CANARY]
    one.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(
        node_id="1", metadata={"of": CANARY}
    )
    return [
        NodeWithScore(node=one, score=0.5),
        NodeWithScore(node=TextNode(text=f"Or ask {CANARY}"), score=0.1),
    ]


def test_nodes_are_released_and_carry_no_mapping():
    veil, given = NodeProtector(Protector(protect={"always": [NAME]}), keep="kind"), nodes()
    with conversation("one"):
        made = veil.postprocess_nodes(given, query_str="where?")
        assert veil.restore("Ask <EMAIL_1> for <LISTED_1>") == f"Ask {CANARY} for {NAME}"
    assert [each.score for each in made] == [0.5, 0.1]
    assert (
        made[0].node.get_content(MetadataMode.EMBED)
        == "page: 3\nkind: mail\n\nMail of <LISTED_1>: <EMAIL_1>"
    )
    assert made[1].node.get_content() == "Or ask <EMAIL_1>"
    for each in made:
        assert CANARY not in each.to_json()
        assert "Zyxqor" not in each.to_json()
        assert "Maria" not in each.to_json()
    assert CANARY in given[0].node.get_content(), "the nodes of the index stay as they are"
    with conversation("two"):
        assert veil.restore("Ask <EMAIL_1>") == "Ask <EMAIL_1>"
    with pytest.raises(ConfigError, match="conversation"):
        veil.restore("Ask <EMAIL_1>")
    assert CANARY not in repr(veil) + str(veil.model_dump())
    with pytest.raises(ConfigError):
        pickle.dumps(veil)
    assert copy.deepcopy(veil) is veil


def test_nodes_that_cannot_be_protected_are_refused():
    veil = NodeProtector()
    with pytest.raises(InputError, match="ImageNode"):
        veil.postprocess_nodes([NodeWithScore(node=ImageNode(text=CANARY))])
    broken = NodeProtector(Protector(protect={"detectors": [Breaks()]}))
    with pytest.raises(DetectorError):
        asyncio.run(broken.apostprocess_nodes(nodes()))
