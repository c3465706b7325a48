"""`restore` in a policy: tools whose arguments are restored everywhere, and hosts into whose addresses originals go.

Not here: what an address is (`tests/session/test_targets.py`).
"""

import json
from typing import Any

import pytest

from textveil.gateway.policy.policy import Policy
from textveil.gateway.policy.policy_file import explain_policy
from textveil.gateway.protocols import Event, Operation
from textveil.gateway.protocols.chat import CHAT
from textveil.gateway.protocols.messages import MESSAGES
from textveil.gateway.protocols.responses import RESPONSES
from textveil.gateway.protocols.restoring import AnswerRestorer, RestoreOptions
from textveil.gateway.request.parsed_request import build_utterance
from textveil.session import Session, Utterance

MAIL = "b.jarndyce@example.net"
ARGUMENTS = '{"text": "see https://wiki.example/?q=<EMAIL_1>"}'

Data = dict[str, Any]


@pytest.fixture(scope="module")
def session() -> Session:
    made = Session()
    with made.noting() as notes:
        notes.assign_placeholder("EMAIL", MAIL)
    return made


def whole(name: str) -> list[tuple[Operation, Data]]:
    """Whole answers of all APIs that call a tool."""
    call = {"id": "a", "type": "function", "function": {"name": name, "arguments": ARGUMENTS}}
    return [
        (CHAT, {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]}),
        (
            MESSAGES,
            {
                "content": [
                    {"type": "tool_use", "id": "a", "name": name, "input": json.loads(ARGUMENTS)}
                ]
            },
        ),
        (
            RESPONSES,
            {
                "output": [
                    {"type": "function_call", "call_id": "a", "name": name, "arguments": ARGUMENTS}
                ]
            },
        ),
    ]


def streamed(name: str) -> list[tuple[Operation, list[Data]]]:
    """The same as events, the arguments cut in three."""
    pieces = [ARGUMENTS[:20], ARGUMENTS[20:45], ARGUMENTS[45:]]
    first = {"index": 0, "id": "a", "type": "function", "function": {"name": name, "arguments": ""}}
    calls = [first, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)]
    item = {"type": "function_call", "id": "i", "call_id": "a", "name": name, "arguments": ""}
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "i"}
    done = {
        "type": "response.function_call_arguments.done",
        "output_index": 0,
        "item_id": "i",
        "arguments": ARGUMENTS,
    }
    return [
        (
            CHAT,
            [
                *({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls),
                {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
            ],
        ),
        (
            MESSAGES,
            [
                {
                    "type": "content_block_start",
                    "index": 0,
                    "content_block": {"type": "tool_use", "id": "a", "name": name, "input": {}},
                },
                *(
                    {
                        "type": "content_block_delta",
                        "index": 0,
                        "delta": {"type": "input_json_delta", "partial_json": piece},
                    }
                    for piece in pieces
                ),
                {"type": "content_block_stop", "index": 0},
            ],
        ),
        (
            RESPONSES,
            [
                {"type": "response.output_item.added", "output_index": 0, "item": item},
                *({**delta, "delta": piece} for piece in pieces),
                done,
            ],
        ),
    ]


def said(data: Any) -> str:
    """All that JSON says of arguments, as one text."""
    if isinstance(data, dict):
        return "".join(
            said(value)
            for key, value in data.items()
            if key not in ("name", "id", "type", "call_id")
        )
    return (
        "".join(map(said, data))
        if isinstance(data, list)
        else data
        if isinstance(data, str)
        else ""
    )


@pytest.mark.parametrize(
    ("options", "put"),
    [
        (RestoreOptions(), ()),
        (RestoreOptions(tools=("write_*",)), ("write_file",)),
        (RestoreOptions(hosts=("wiki.example",)), ("write_file", "fetch")),
        (RestoreOptions(hosts=("*.example",)), ("write_file", "fetch")),
        (RestoreOptions(hosts=("evil.example",)), ()),
    ],
)
@pytest.mark.parametrize("name", ["write_file", "fetch"])
def test_tools_and_hosts_that_the_policy_names(
    session: Session, options: RestoreOptions, put: Any, name: str
) -> None:
    for operation, answer in whole(name):
        made = said(AnswerRestorer(session, options=options).restore_json(answer, operation.answer))
        assert (MAIL in made) is (name in put), operation.name
    for operation, events in streamed(name):
        assert operation.stream is not None
        stream = operation.stream(AnswerRestorer(session, options=options))
        made = "".join(
            said(out.data)
            for data in events
            for out in stream.feed(Event(str(data.get("type", "")), data))
        )
        assert (MAIL in made, "<EMAIL_1>" in made) == (name in put, name not in put), operation.name


def test_the_policy_says_it() -> None:
    policy = Policy(
        upstream="https://HOST/v1", restore=RestoreOptions(hosts=("a.example",), tools=("write_*",))
    )
    lines = "\n".join(explain_policy(policy))
    assert "into addresses of a.example" in lines
    assert "arguments of these tools: write_*" in lines


def test_results_of_tools_are_tools_whatever_the_role() -> None:
    body: Data = {
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "a",
                        "content": [{"type": "text", "text": "http://10.0.0.9/"}],
                    },
                    {"type": "text", "text": "and http://10.0.0.8/"},
                ],
            },
        ]
    }
    from textveil.gateway.protocols.field_rules import RELEASE_ACTS, find_leaves

    own = [leaf for leaf in find_leaves(body, MESSAGES.request) if leaf.act in RELEASE_ACTS]
    message = build_utterance("user", own, body)
    assert [(text, message.get_source(i)) for i, text in enumerate(message.texts)] == [
        ("http://10.0.0.9/", "tool"),
        ("and http://10.0.0.8/", "user"),
    ]
    sources = {
        role: Utterance(role, ("x",)).get_source(0)
        for role in ("system", "developer", "assistant", "tool", "", "odd")
    }
    assert sources == {
        "system": "user",
        "developer": "user",
        "assistant": "answer",
        "tool": "tool",
        "": "tool",
        "odd": "tool",
    }
