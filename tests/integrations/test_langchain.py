"""LangChain: no model sees an original, every answer has them, and no middleware, retry or cache lets one through."""

import asyncio
import copy
import json
import pickle
from typing import Any

import pytest

pytest.importorskip("langchain", reason="the extra `langchain` is not installed")
from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware, ModelRetryMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, Field

from textveil import Privatizer, Protector
from textveil.errors import DetectorError, InputError
from textveil.gateway import ChatGuard
from textveil.integrations import conversation
from textveil.integrations.langchain import ProtectedChatModel, TextveilMiddleware

CANARY = "zyxqorvian@example.org"
NAME = 'Zyxqor "Zed" Vian'
SEEN: list[Any] = []


class Scripted(BaseChatModel):
    """Says what it is told to, in pieces of some characters, and keeps what it was sent."""

    said: list[AIMessage]
    cut: int = 1
    turn: list[int] = Field(default_factory=lambda: [0])
    seen: list[Any] = Field(default_factory=list)

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self.bind(
            tools=[{"type": "function", "function": {"name": "t", "description": str(tools)}}]
        )

    def _next(self, messages, kwargs):
        self.seen.append((copy.deepcopy(messages), kwargs))
        SEEN.append(str(messages))
        self.turn[0] += 1
        return self.said[min(self.turn[0], len(self.said)) - 1].model_copy()

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(
            generations=[ChatGeneration(message=self._next(messages, {**kwargs, "stop": stop}))]
        )

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        said = self._next(messages, {**kwargs, "stop": stop})
        for at in range(0, len(said.content), self.cut):
            part = said.content[at : at + self.cut]
            yield ChatGenerationChunk(message=AIMessageChunk(content=part))
        for i, call in enumerate(said.tool_calls):
            begin: Any = {"name": call["name"], "args": "", "id": call["id"], "index": i}
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[begin]))
            written = json.dumps(call["args"])
            for at in range(0, len(written), self.cut):
                piece: Any = {
                    "name": None,
                    "args": written[at : at + self.cut],
                    "id": None,
                    "index": i,
                }
                yield ChatGenerationChunk(
                    message=AIMessageChunk(content="", tool_call_chunks=[piece])
                )

    @property
    def sent(self):
        return str(self.seen)


def scripted(*said, cut=1):
    return Scripted(
        said=[each if isinstance(each, AIMessage) else AIMessage(each) for each in said], cut=cut
    )


@pytest.fixture(scope="module")
def guard():
    return ChatGuard(Protector(protect={"always": [NAME]}))


def calls(**args):
    return AIMessage("", tool_calls=[{"name": "write", "args": args, "id": "call_1"}])


ASKED = [SystemMessage(f"You work for {CANARY}"), HumanMessage(f"Write to {NAME}")]


def test_no_model_sees_an_original_and_the_answer_has_them(guard):
    inner = scripted("I wrote to <LISTED_1> for <EMAIL_1>, and not to <PERSON_9>")
    answer = ProtectedChatModel(inner, guard=guard).invoke(ASKED, stop=[CANARY])
    assert answer.content == f"I wrote to {NAME} for {CANARY}, and not to <PERSON_9>"
    assert CANARY not in inner.sent
    assert "Zyxqor" not in inner.sent
    ((messages, kwargs),) = inner.seen
    assert [type(each) for each in messages] == [SystemMessage, HumanMessage]
    assert messages[1].content == "Write to <LISTED_1>"
    assert kwargs["stop"] == ["<EMAIL_1>"]


@pytest.mark.parametrize("cut", [1, 3, 7, 100])
@pytest.mark.parametrize("waits", [False, True])
def test_streams_cut_anywhere(guard, cut, waits):
    model = ProtectedChatModel(scripted("I wrote to <LISTED_1>. <EMAIL_", cut=cut), guard=guard)

    async def heard():
        return [each async for each in model.astream(ASKED)]

    pieces = asyncio.run(heard()) if waits else list(model.stream(ASKED))
    assert "".join(str(each.content) for each in pieces) == f"I wrote to {NAME}. <EMAIL_"
    assert pieces[-1].chunk_position == "last"


@pytest.mark.parametrize("streamed", [False, True])
def test_arguments_of_tools_come_back_as_json(guard, streamed):
    model = ProtectedChatModel(
        scripted(calls(to="<LISTED_1>", more=["<EMAIL_1>", 3]), cut=2), guard=guard
    )
    if streamed:
        whole: Any = None
        for piece in model.stream(ASKED):
            whole = piece if whole is None else whole + piece
    else:
        whole = model.invoke(ASKED)
    assert whole is not None
    assert whole.tool_calls[0]["args"] == {"to": NAME, "more": [CANARY, 3]}
    assert whole.invalid_tool_calls == []


@pytest.mark.parametrize("streamed", [False, True])
def test_the_second_turn_sends_what_was_sent_before(streamed):
    """By a mechanism that draws: nothing is drawn again, by a retry, a second turn, or a branch."""
    guard = ChatGuard(Privatizer("rankcape", epsilon=3))
    inner = scripted("So be it, said the lawyer")
    model = ProtectedChatModel(inner, guard=guard, conversation="one")

    def ask(messages):
        if not streamed:
            return model.invoke(messages)
        whole: Any = None
        for piece in model.stream(messages):
            whole = piece if whole is None else whole + piece
        return AIMessage(whole.content, id="another id", name="agent")

    first = [HumanMessage("Ingrid hid the money in Antwerp and in Bruges")]
    answer = ask(first)
    ask(first)
    ask([*first, answer, HumanMessage("And Bernard?")])
    sent = [[each.content for each in messages] for messages, _ in inner.seen]
    assert sent[0] == sent[1] == sent[2][:1]
    assert sent[2][1] == "So be it, said the lawyer", "answers are sent on as they came"
    ProtectedChatModel(inner, guard=guard, conversation="another").invoke(first)
    assert [each.content for each in inner.seen[-1][0]] != sent[0], (
        "another conversation draws its own"
    )


def test_two_conversations_share_nothing():
    guard, inner = ChatGuard(), scripted("<PERSON_1> and <PERSON_2>")
    model = ProtectedChatModel(inner, guard=guard)
    with conversation("a"):
        assert model.invoke("Ask Maria Silva").content == "Maria Silva and <PERSON_2>"
    with conversation("b"):
        assert model.invoke("Ask Paul Smith").content == "Paul Smith and <PERSON_2>"
    assert (
        model.invoke("Ask Anna Berg", {"metadata": {"thread_id": "c"}}).content
        == "Anna Berg and <PERSON_2>"
    )


def test_many_at_once(guard):
    model = ProtectedChatModel(scripted("<EMAIL_1>"), guard=guard)

    async def several():
        return await asyncio.gather(*(model.ainvoke(f"Ask x{i}@example.org") for i in range(12)))

    assert [each.content for each in asyncio.run(several())] == [
        f"x{i}@example.org" for i in range(12)
    ]
    batch = model.batch([f"Ask x{i}@example.org" for i in range(12)])
    assert [each.content for each in batch] == [f"x{i}@example.org" for i in range(12)]


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage([{"type": "text", "text": CANARY}]),
        HumanMessage(
            CANARY, additional_kwargs={"note": CANARY}, response_metadata={"note": CANARY}
        ),
        HumanMessage("Hello", name=CANARY),
        ToolMessage(CANARY, tool_call_id="call_1", artifact={"of": CANARY}),
        ToolMessage(json.dumps({"to": CANARY}), tool_call_id="call_1"),
        AIMessage([{"type": "tool_use", "id": "x", "name": "t", "input": {"to": CANARY}}]),
        AIMessage("", tool_calls=[{"name": "t", "args": {"to": [CANARY]}, "id": "call_1"}]),
        AIMessage(
            "", invalid_tool_calls=[{"name": "t", "args": CANARY, "id": "x", "error": CANARY}]
        ),
        AIMessage("", additional_kwargs={"reasoning_content": CANARY, "secret": CANARY}),
        AIMessage(
            [
                {"type": "reasoning", "reasoning": CANARY},
                {"type": "thinking", "thinking": CANARY, "signature": "a"},
            ]
        ),
        AIMessageChunk(content=CANARY),
    ],
)
def test_wherever_an_original_stands_it_does_not_leave(guard, message):
    inner = scripted("yes")
    ProtectedChatModel(inner, guard=guard).invoke([HumanMessage("Hello"), message])
    assert CANARY not in inner.sent


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "image_url", "image_url": {"url": f"data:{CANARY}"}}],
        [{"type": "image", "base64": CANARY, "mime_type": "image/png"}],
    ],
)
def test_what_nobody_can_protect_is_refused(guard, content):
    inner = scripted("yes")
    with pytest.raises(InputError) as refused:
        ProtectedChatModel(inner, guard=guard).invoke([HumanMessage(content)])
    assert CANARY not in str(refused.value)
    assert inner.seen == []


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "no such block", "text": CANARY}],
        [{"type": "text", "text": "a", "no such field": CANARY}],
        [{"text": CANARY}],
    ],
)
def test_what_no_table_names_is_read_like_text(guard, content):
    inner = scripted("yes")
    ProtectedChatModel(inner, guard=guard).invoke([HumanMessage(content)])
    assert inner.seen
    assert CANARY not in inner.sent


def test_settings_that_are_no_plain_data_are_refused(guard):
    inner = scripted("yes")
    for setting in (
        [HumanMessage(CANARY)],
        {CANARY},
        CANARY.encode(),
        {"note": CANARY, "x": object()},
    ):
        with pytest.raises(InputError, match="the setting") as refused:
            ProtectedChatModel(inner, guard=guard).invoke("a", more=setting)
        assert CANARY not in str(refused.value)
    assert inner.seen == []


def test_unless_the_guard_lets_it():
    inner = scripted("yes")
    loose = ChatGuard(media="pass", unknown="drop")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    content: Any = [{"type": "text", "text": "see"}, image, {"type": "x", "y": CANARY}]
    ProtectedChatModel(inner, guard=loose).invoke([HumanMessage(content)])
    assert inner.seen[0][0][0].content == content[:2]


class Breaks:
    name = "breaks"

    def find(self, texts):
        raise RuntimeError(CANARY)


# ---- agents ----------------------------------------------------------------------------------------------------------


def agent_of(model, *more, guard, **options):
    written: list[dict[str, str]] = []

    @tool(description=f"Writes to somebody, or to {CANARY}.")
    def write(to: str) -> str:
        written.append({"to": to})
        return f"wrote to {to}, call {CANARY}"

    made = create_agent(model, [write], middleware=[TextveilMiddleware(guard), *more], **options)
    return made, written


def asks(text=f"Write to {NAME}"):
    return {"messages": [HumanMessage(text)]}


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_an_agent_with_tools(guard, way):
    inner = scripted(calls(to="<LISTED_1>"), "I wrote to <LISTED_1>; <EMAIL_1> knows", cut=3)
    agent, written = agent_of(inner, guard=guard, system_prompt=f"You are the agent of {NAME}")
    if way == "invoke":
        state = agent.invoke(asks())
    elif way == "ainvoke":
        state = asyncio.run(agent.ainvoke(asks()))
    else:
        pieces: list[Any] = []

        async def heard():
            async for each in agent.astream(asks(), stream_mode=["messages", "values"]):
                pieces.append(each)

        if way == "stream":
            pieces += agent.stream(asks(), stream_mode=["messages", "values"])
        else:
            asyncio.run(heard())
        state = [value for kind, value in pieces if kind == "values"][-1]
        tokens = [
            value[0]
            for kind, value in pieces
            if kind == "messages" and isinstance(value[0], AIMessageChunk)
        ]
        text = "".join(str(each.content) for each in tokens)
        assert text == f"I wrote to {NAME}; {CANARY} knows", "each piece is heard once, restored"
        assert "<LISTED" not in str(pieces)
    assert written == [{"to": NAME}]
    assert state["messages"][-1].content == f"I wrote to {NAME}; {CANARY} knows"
    assert CANARY not in inner.sent
    assert "Zyxqor" not in inner.sent


def test_threads_share_one_agent(guard):
    inner = scripted("I know <PERSON_1>, and not <PERSON_2>")
    agent, _ = agent_of(inner, guard=ChatGuard(), checkpointer=InMemorySaver())
    for thread, person in (("1", "Maria Silva"), ("2", "Paul Smith"), ("1", "Anna Berg")):
        state = agent.invoke(asks(f"Ask {person}"), {"configurable": {"thread_id": thread}})
        known = {
            "Maria Silva": "I know Maria Silva, and not <PERSON_2>",
            "Paul Smith": "I know Paul Smith, and not <PERSON_2>",
        }
        assert state["messages"][-1].content == known.get(
            person, "I know Maria Silva, and not Anna Berg"
        )


def test_structured_answers_are_restored(guard):
    class Found(BaseModel):
        who: str

    said = AIMessage(
        "", tool_calls=[{"name": "Found", "args": {"who": "<LISTED_1>"}, "id": "call_1"}]
    )
    agent, _ = agent_of(scripted(said), guard=guard, response_format=ToolStrategy(Found))
    assert agent.invoke(asks())["structured_response"].who == NAME


def test_a_model_that_takes_its_place_is_protected_too(guard):
    class Fails(Scripted):
        def _generate(self, *args, **kwargs):
            raise ValueError("overloaded")

    other = scripted("I know <LISTED_1>")
    agent, _ = agent_of(Fails(said=[]), ModelFallbackMiddleware(other), guard=guard)
    assert agent.invoke(asks())["messages"][-1].content == f"I know {NAME}"
    assert "Zyxqor" not in other.sent


def test_middleware_that_swallows_errors_sends_nothing():
    inner, broken = scripted("yes"), ChatGuard(Protector(protect={"detectors": [Breaks()]}))
    agent, _ = agent_of(
        inner,
        ModelRetryMiddleware(max_retries=1, initial_delay=0, on_failure="continue"),
        guard=broken,
    )
    state = agent.invoke(asks(CANARY))
    assert inner.seen == []
    assert CANARY not in state["messages"][-1].content
    other = create_agent(
        inner,
        middleware=[
            ModelRetryMiddleware(max_retries=1, initial_delay=0, on_failure="continue"),
            TextveilMiddleware(broken),
        ],
    )
    other.invoke(asks(CANARY))
    assert inner.seen == []
    agent, _ = agent_of(inner, guard=broken)
    with pytest.raises(DetectorError):
        agent.invoke(asks(CANARY))
    with pytest.raises(DetectorError):
        ProtectedChatModel(inner, guard=broken).with_fallbacks(
            [ProtectedChatModel(inner, guard=broken)]
        ).invoke(CANARY)
    assert inner.seen == []


# ---- what hosts keep -------------------------------------------------------------------------------------------------


def test_what_is_kept_shows_nothing(guard):
    model = ProtectedChatModel(scripted("<LISTED_1>"), guard=ChatGuard())
    model.invoke(CANARY)
    for each in (
        repr(model),
        str(model),
        pickle.dumps(model.guard).decode("latin1"),
        str(model.model_dump()),
    ):
        assert CANARY not in each
    assert CANARY.encode() not in pickle.dumps(model.guard)
    assert copy.deepcopy(model).guard is model.guard, "a copy knows what was hidden"
    from langchain_core.load import dumps

    assert CANARY not in dumps(model)
    assert CANARY not in repr(TextveilMiddleware(model.guard))


def test_the_cache_holds_released_text_only(guard):
    cache = InMemoryCache()
    set_llm_cache(cache)
    try:
        inner = scripted("I know <LISTED_1>")
        model = ProtectedChatModel(inner, guard=guard)
        for _ in range(2):
            assert model.invoke(f"Ask {NAME}").content == f"I know {NAME}"
        assert len(inner.seen) == 1
        assert "Zyxqor" not in str(cache._cache)
    finally:
        set_llm_cache(None)


class Blocks(Scripted):
    """Streams blocks as the packages of providers write them: thinking, text and arguments, by index."""

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        self._next(messages, kwargs)
        texts = {
            0: ("thinking", "thinking", "It is <LISTED_1>."),
            1: ("text", "text", "I wrote to <EMAIL_1>"),
            2: ("input_json_delta", "partial_json", '{"to": "<LISTED_1>"}'),
        }
        for index, (kind, field, said) in texts.items():
            for letter in said:
                block = {"type": kind, field: letter, "index": index}
                yield ChatGenerationChunk(message=AIMessageChunk(content=[block]))
        more = {"reasoning_content": "about <EMAIL_"}, {"reasoning_content": "1>"}
        for each in more:
            yield ChatGenerationChunk(message=AIMessageChunk(content=[], additional_kwargs=each))


def test_streams_of_blocks(guard):
    whole: Any = None
    for piece in ProtectedChatModel(Blocks(said=[AIMessage("")]), guard=guard).stream(ASKED):
        whole = piece if whole is None else whole + piece
    thinking, said, arguments = whole.content
    assert thinking["thinking"] == f"It is {NAME}."
    assert said["text"] == f"I wrote to {CANARY}"
    assert json.loads(arguments["partial_json"]) == {"to": NAME}
    assert whole.additional_kwargs["reasoning_content"] == f"about {CANARY}"
