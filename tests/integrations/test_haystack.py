"""Haystack: no generator sees an original, every reply has them, and the file of a pipeline holds none."""

import asyncio
import copy
import json
from typing import Any

import pytest

pytest.importorskip("haystack", reason="the extra `haystack` is not installed")
from haystack import Document, Pipeline
from haystack.components.generators.chat import FallbackChatGenerator
from haystack.components.generators.chat.mock import MockChatGenerator
from haystack.dataclasses import (
    ChatMessage,
    FileContent,
    ImageContent,
    StreamingChunk,
    ToolCall,
    ToolCallDelta,
)
from haystack.tools.tool import Tool

from textveil import Privatizer, Protector
from textveil.errors import ConfigError, DetectorError, InputError
from textveil.gateway import ChatGuard
from textveil.integrations import conversation
from textveil.integrations.haystack import DocumentPrivatizer, ProtectedChatGenerator

ALLOWED = ["textveil.integrations.haystack"]
"""Haystack reads classes of others only where it is told to trust them."""

CANARY = "zyxqorvian@example.org"
NAME = 'Zyxqor "Zed" Vian'


class Scripted:
    """Says what it is told to, a character at a time, and keeps what it was sent."""

    def __init__(self, said, calls=()):
        self.said, self.calls, self.seen = said, calls, []

    def split_rows(self):
        for each in self.said:
            yield StreamingChunk(content=each)
        for i, (name, arguments) in enumerate(self.calls):
            yield StreamingChunk(
                content="",
                index=i,
                tool_calls=[ToolCallDelta(index=i, tool_name=name, id="x")],
                start=True,
            )
            for each in json.dumps(arguments):
                yield StreamingChunk(
                    content="", index=i, tool_calls=[ToolCallDelta(index=i, arguments=each)]
                )
        yield StreamingChunk(content="", finish_reason="stop")

    def reply(self):
        calls = [
            ToolCall(tool_name=name, arguments=arguments, id="x") for name, arguments in self.calls
        ]
        return {
            "replies": [
                ChatMessage.from_assistant(
                    self.said, tool_calls=calls, meta={"usage": {"tokens": 3}}
                )
            ]
        }

    def run(self, messages, streaming_callback=None, generation_kwargs=None, tools=None):
        self.seen.append(
            (
                messages,
                generation_kwargs,
                [(each.description, each.parameters) for each in tools or ()],
            )
        )
        for chunk in self.split_rows() if streaming_callback else ():
            streaming_callback(chunk)
        return self.reply()


class Waits(Scripted):
    async def run_async(
        self, messages, streaming_callback=None, generation_kwargs=None, tools=None
    ):
        self.seen.append((messages, generation_kwargs, tools))
        for chunk in self.split_rows() if streaming_callback else ():
            await streaming_callback(chunk)
        return self.reply()


@pytest.fixture(scope="module")
def guard():
    return ChatGuard(Protector(protect={"always": [NAME]}))


ASKED = [
    ChatMessage.from_system(f"You work for {CANARY}"),
    ChatMessage.from_user(f"Write to {NAME}"),
]
SAID, MADE = (
    "I wrote to <LISTED_1> for <EMAIL_1>, <EMAIL_",
    f"I wrote to {NAME} for {CANARY}, <EMAIL_",
)
CALLS = [("write", {"to": "<LISTED_1>", "more": ["<EMAIL_1>", 3]})]


def test_replies_have_originals_and_the_generator_none(guard):
    inner = Scripted(SAID, CALLS)
    tool = Tool(
        name="write", description=f"Or ask {CANARY}", parameters={"type": "object"}, function=print
    )
    (reply,) = ProtectedChatGenerator(inner, guard).run(
        ASKED, generation_kwargs={"user": CANARY}, tools=[tool]
    )["replies"]
    assert reply.text == MADE
    assert reply.tool_call is not None
    assert reply.tool_call.arguments == {"to": NAME, "more": [CANARY, 3]}
    assert reply.meta == {"usage": {"tokens": 3}}
    assert CANARY not in str(inner.seen)
    assert "Zyxqor" not in str(inner.seen)
    assert tool.description == f"Or ask {CANARY}"


@pytest.mark.parametrize("waits", [False, True])
def test_streams(guard, waits):
    heard: list[StreamingChunk] = []

    async def callback(chunk):
        heard.append(chunk)

    if waits:
        model = ProtectedChatGenerator(Waits(SAID, CALLS), guard)
        (reply,) = asyncio.run(model.run_async(ASKED, streaming_callback=callback))["replies"]
    else:
        (reply,) = ProtectedChatGenerator(Scripted(SAID, CALLS), guard).run(ASKED, heard.append)[
            "replies"
        ]
    assert reply.text == MADE
    assert "".join(each.content for each in heard) == MADE
    written = "".join(call.arguments or "" for each in heard for call in each.tool_calls or ())
    assert json.loads(written) == {"to": NAME, "more": [CANARY, 3]}
    assert heard[-1].finish_reason == "stop"


def test_a_generator_that_cannot_wait(guard):
    model = ProtectedChatGenerator(Scripted("<EMAIL_1>"), guard)
    assert asyncio.run(model.run_async(CANARY))["replies"][0].text == CANARY


def test_the_second_turn_sends_what_was_sent_before():
    inner = Scripted("So be it, said the lawyer")
    model = ProtectedChatGenerator(inner, ChatGuard(Privatizer("rankcape", epsilon=3)))
    first = [ChatMessage.from_user("Ingrid hid the money in Antwerp and in Bruges")]
    (answer,) = model.run(first)["replies"]
    model.run(first)
    model.run([*first, answer, ChatMessage.from_user("And Bernard?")])
    sent = [[each.text for each in messages] for messages, *_ in inner.seen]
    assert sent[0] == sent[1] == sent[2][:1]
    assert sent[2][1] == "So be it, said the lawyer"
    model.run(first, conversation="another")
    assert [each.text for each in inner.seen[-1][0]] != sent[0]
    with conversation("another"):
        model.run(first)
    assert [each.text for each in inner.seen[-1][0]] == [each.text for each in inner.seen[-2][0]]


CALL = ToolCall(tool_name="write", arguments={"to": [CANARY]}, id="x")


@pytest.mark.parametrize(
    "message",
    [
        ChatMessage.from_user("Hello", meta={"note": CANARY}),
        ChatMessage.from_user("Hello", name=CANARY),
        ChatMessage.from_assistant(CANARY, reasoning=CANARY),
        ChatMessage.from_assistant(tool_calls=[CALL]),
        ChatMessage.from_tool(f"wrote to {CANARY}", origin=CALL),
    ],
)
def test_wherever_an_original_stands_it_does_not_leave(guard, message):
    inner = Scripted("yes")
    ProtectedChatGenerator(inner, guard).run([ChatMessage.from_user("Hello"), message])
    assert CANARY not in str(inner.seen)


class Breaks:
    name = "breaks"

    def find(self, texts):
        raise RuntimeError(CANARY)


def test_it_fails_closed(guard):
    inner, broken = Scripted("yes"), ChatGuard(Protector(protect={"detectors": [Breaks()]}))
    with pytest.raises(DetectorError):
        ProtectedChatGenerator(inner, broken).run(CANARY)
    with pytest.raises(
        Exception, match=r"."
    ) as failed:  # it goes on to the next one after any error
        FallbackChatGenerator([ProtectedChatGenerator(inner, broken)] * 2).run(
            [ChatMessage.from_user(CANARY)]
        )
    assert CANARY not in str(failed.value)
    files: list[Any] = [
        ImageContent(base64_image="AA==", mime_type="image/png"),
        FileContent("AA==", "text/plain"),
    ]
    for each in files:
        with pytest.raises(InputError):
            ProtectedChatGenerator(inner, guard).run(
                [ChatMessage.from_user(content_parts=["see", each])]
            )
    with pytest.raises(InputError, match="the setting"):
        ProtectedChatGenerator(inner, guard).run(
            "a", generation_kwargs={"note": CANARY, "x": {CANARY}}
        )
    assert inner.seen == []


def test_a_pipeline_is_written_and_read(tmp_path):
    pipeline = Pipeline()
    pipeline.add_component(
        "model", ProtectedChatGenerator(MockChatGenerator(responses=["Ask <EMAIL_1>"]))
    )
    asked = {"model": {"messages": [ChatMessage.from_user(f"Where is {CANARY}?")]}}
    assert pipeline.run(asked)["model"]["replies"][0].text == f"Ask {CANARY}"
    written = pipeline.dumps()
    assert CANARY not in written
    assert (
        Pipeline.loads(written, allowed_modules=ALLOWED).run(asked)["model"]["replies"][0].text
        == f"Ask {CANARY}"
    )
    with pytest.raises(ConfigError, match="profile"):
        ProtectedChatGenerator(MockChatGenerator(), ChatGuard(Protector())).to_dict()
    copied = copy.deepcopy(pipeline.get_component("model"))
    assert CANARY not in repr(copied)


# ---- documents -------------------------------------------------------------------------------------------------------


def test_documents_are_released():
    given = [
        Document(
            content=f"Ask {CANARY}", meta={"page": 3, "topic": "mail"}, embedding=[0.5], score=0.2
        )
    ]
    veil = DocumentPrivatizer("prompt", keep=["topic"])
    (made,) = veil.run(given)["documents"]
    assert (made.content, made.meta, made.score, made.embedding) == (
        "Ask <EMAIL_1>",
        {"page": 3, "topic": "mail"},
        0.2,
        None,
    )
    assert made.id != given[0].id, "an id is a digest of the text"
    assert given[0].content == f"Ask {CANARY}"
    with pytest.raises(InputError, match="'topic'") as refused:
        DocumentPrivatizer("prompt").run([Document(content="a", meta={"topic": CANARY})])
    assert CANARY not in str(refused.value)
    with pytest.raises(InputError, match="with text"):
        veil.run([Document(content=None)])
    assert (
        DocumentPrivatizer.from_dict(veil.to_dict()).run(given)["documents"][0].content
        == "Ask <EMAIL_1>"
    )
    assert veil.run([]) == {"documents": []}


@pytest.mark.parametrize("name", ["always", "always_matching", "never", "never_matching"])
def test_private_lists_are_not_written_into_a_pipeline(name):
    own = DocumentPrivatizer("prompt", options={"protect": {name: ["zyxqorvian"]}})
    pipeline = Pipeline()
    pipeline.add_component("veil", own)
    with pytest.raises(ConfigError, match="may be private") as failed:
        pipeline.dumps()
    assert "zyxqorvian" not in f"{failed.value} {own!r} {pipeline!r}"
    assert DocumentPrivatizer("prompt", options={"protect": {"level": "names"}}).to_dict()
