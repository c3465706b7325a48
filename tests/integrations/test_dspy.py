"""DSPy: no model sees an original, every output has them, and neither history nor cache holds one."""

import asyncio
import copy
from typing import Any

import pytest

pytest.importorskip("dspy", reason="the extra `dspy` is not installed")
import dspy
from dspy.utils.dummies import DummyLM

from textveil import Privatizer, Protector
from textveil.errors import ConfigError, DetectorError, InputError
from textveil.gateway import ChatGuard
from textveil.integrations import conversation
from textveil.integrations.dspy import ProtectedLM, TextveilAdapter

CANARY = "zyxqorvian@example.org"
NAME = 'Zyxqor "Zed" Vian'

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # of DSPy's own stand-in for a model


class Scripted(dspy.BaseLM):  # type: ignore[misc]
    """Gives the outputs that it is told to, and keeps what it was sent."""

    def __init__(self, *outputs):
        super().__init__("scripted")
        self.outputs, self.seen = outputs, list[Any]()

    def __call__(self, prompt=None, *, messages=None, **kwargs):
        self.seen.append((messages, kwargs))
        return [self.outputs[min(len(self.seen), len(self.outputs)) - 1]]

    async def acall(self, prompt=None, *, messages=None, **kwargs):
        return self(prompt, messages=messages, **kwargs)


@pytest.fixture(scope="module")
def guard():
    return ChatGuard(Protector(protect={"always": [NAME]}))


ANSWER = "[[ ## answer ## ]]\n<LISTED_1> is at <EMAIL_1>\n\n[[ ## completed ## ]]"


@pytest.mark.parametrize("by_adapter", [False, True])
@pytest.mark.parametrize("waits", [False, True])
def test_a_program(guard, by_adapter, waits):
    inner = Scripted(ANSWER)
    settings = (
        {"lm": inner, "adapter": TextveilAdapter(guard=guard)}
        if by_adapter
        else {"lm": ProtectedLM(inner, guard)}
    )
    program = dspy.Predict("question -> answer")
    program.demos = [dspy.Example(question=f"Who is {CANARY}?", answer=NAME)]
    with dspy.context(**settings):
        asked = {"question": f"Where is {NAME}, {CANARY}?"}
        made = asyncio.run(program.acall(**asked)) if waits else program(**asked)
    assert made.answer == f"{NAME} is at {CANARY}"
    assert CANARY not in str(inner.seen)
    assert "Zyxqor" not in str(inner.seen)


def test_json_stays_json(guard):
    inner = Scripted('{"answer": "<LISTED_1>"}')
    with dspy.context(lm=ProtectedLM(inner, guard), adapter=dspy.JSONAdapter()):
        assert dspy.Predict("question -> answer")(question=f"Who is {NAME}?").answer == NAME


def test_arguments_of_tools_come_back(guard):
    call = {
        "type": "function",
        "id": "1",
        "function": {"name": "write", "arguments": '{"to": "<LISTED_1>"}'},
    }
    inner = Scripted({"text": "I write to <LISTED_1>", "tool_calls": [call], "logprobs": [CANARY]})
    (made,) = ProtectedLM(inner, guard)(
        f"Write to {NAME}", tools=[{"type": "function", "description": CANARY}]
    )
    assert made["tool_calls"][0]["function"]["arguments"] == '{"to": "Zyxqor \\"Zed\\" Vian"}'
    assert made["text"] == f"I write to {NAME}"
    assert CANARY not in str(inner.seen)


def test_history_and_cache_hold_released_text(guard):
    inner = DummyLM([{"answer": "it is <EMAIL_1>"}] * 3)
    with dspy.context(lm=ProtectedLM(inner, guard)):
        assert (
            dspy.Predict("question -> answer")(question=f"Where is {CANARY}?").answer
            == f"it is {CANARY}"
        )
    assert inner.history
    assert CANARY not in str(inner.history)


def test_a_retry_and_the_next_turn_draw_nothing():
    inner = Scripted("So be it")
    lm = ProtectedLM(inner, ChatGuard(Privatizer("rankcape", epsilon=3)))
    first = {"role": "user", "content": "Ingrid hid the money in Antwerp and in Bruges"}
    lm(messages=[first])
    lm(messages=[first])
    lm(
        messages=[
            first,
            {"role": "assistant", "content": "So be it"},
            {"role": "user", "content": "And Bernard?"},
        ]
    )
    sent = [[each["content"] for each in messages] for messages, _ in inner.seen]
    assert sent[0] == sent[1] == sent[2][:1]
    assert sent[2][1] == "So be it"
    with conversation("another"):
        lm(messages=[first])
    assert [each["content"] for each in inner.seen[-1][0]] != sent[0]


class Breaks:
    name = "breaks"

    def find(self, texts):
        raise RuntimeError(CANARY)


def test_it_fails_closed(guard):
    inner, broken = Scripted(ANSWER), ChatGuard(Protector(protect={"detectors": [Breaks()]}))
    program = dspy.Predict("question -> answer")
    with dspy.context(lm=ProtectedLM(inner, broken)), pytest.raises(DetectorError):
        program(question=CANARY)  # ChatAdapter tries JSONAdapter after any error
    rows = [dspy.Example(question=CANARY, answer="a").with_inputs("question")] * 2
    with dspy.context(lm=ProtectedLM(inner, broken), adapter=TextveilAdapter(guard=broken)):
        dspy.Evaluate(
            devset=rows, metric=lambda *_: 1, max_errors=9, num_threads=1, display_progress=False
        )(program)
    with pytest.raises(InputError):
        ProtectedLM(inner, guard)(
            messages=[{"role": "user", "content": [{"type": "image_url", "image_url": CANARY}]}]
        )
    with pytest.raises(InputError, match="prompt as text"):
        ProtectedLM(inner, guard)(3)
    with pytest.raises(InputError, match="a role"):
        ProtectedLM(inner, guard)(messages=[CANARY])
    with pytest.raises(ConfigError, match="DSPy"):
        ProtectedLM("gpt")
    with pytest.raises(InputError, match="the setting"):
        ProtectedLM(inner, guard)("a", extra_body={"note": CANARY, "x": object()})
    with pytest.raises(ConfigError, match="holds a model"):
        TextveilAdapter(dspy.TwoStepAdapter(inner), guard)
    TextveilAdapter(dspy.TwoStepAdapter(ProtectedLM(inner, guard)), guard)
    assert inner.seen == []


def test_copies_and_files(guard, tmp_path):
    lm = ProtectedLM(Scripted("<EMAIL_1>"), ChatGuard())
    lm(CANARY)
    assert CANARY not in repr(lm)
    again = lm.copy(temperature=0.5)
    assert again._guard is lm._guard
    assert again.inner.kwargs["temperature"] == 0.5
    assert copy.deepcopy(lm)._guard is lm._guard
    program = dspy.Predict("question -> answer")
    program.save(tmp_path / "program.json")
    program.lm = lm
    with pytest.raises(ConfigError, match="saved without"):
        program.save(tmp_path / "program.json")
