"""What is counted of agents before a real model: words of every interface, placeholders, and what leaks."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
agents = import_module("agents")
real_agents = import_module("real_agents")
script = import_module("agent_script")
upstream = import_module("agent_upstream")

CALL = upstream.Call("write_file", {"path": "a.md", "content": "of <PERSON_1> and <EMAIL_7>"})


@pytest.mark.parametrize("answer", upstream.INTERFACES.values(), ids=lambda each: each.__name__)
def test_words_and_calls_are_read_whole_and_streamed(answer):
    whole = json.dumps(answer("I ask <PERSON_2>.", CALL, "x", False)).encode()
    streamed = b"".join(answer("I ask <PERSON_2>.", CALL, "x", True))
    for said in (whole, streamed):
        found = real_agents.find_placeholders(real_agents.read_words(said))
        assert found == ["<PERSON_2>", "<PERSON_1>", "<EMAIL_7>"]


def run(sent: str, got: str, written: str, answer_of: Any = upstream.answer_chat) -> object:
    """A run of one turn, whose answer comes by this interface."""
    body = json.dumps({"messages": [{"role": "user", "content": sent}]}).encode()
    said = json.dumps(answer_of("To <PERSON_1> and <EMAIL_7>.", None, "x", False)).encode()
    answer = json.dumps(answer_of(got, None, "x", False)).encode()
    line = {"step": 0, "path": "/v1/chat/completions", "headers": {}, "raw": body, "said": said}
    head = b"HTTP/1.1 200 -\r\ntextveil-unresolved: 1\r\n\r\n"
    exchange = agents.Exchange("/v1/chat/completions", body, 200, 0.0, head + answer)
    return agents.Run(0, {"note.md": written.encode()}, [exchange], [line], 0.0)


def test_placeholders_are_known_invented_or_left():
    restored = f"To {script.OWNER} and <EMAIL_7>."
    found = real_agents.count(run("I am <PERSON_1>.", restored, restored))
    assert found["planted values upstream"] == 0
    assert (found["placeholders said"], found["placeholders left"]) == (1, 0)
    assert (found["placeholders invented"], found["textveil-unresolved"]) == (1, 1)
    assert found["files written with a placeholder"] == 1
    assert found["files written with an original"] == 1


@pytest.mark.parametrize("answer", upstream.INTERFACES.values(), ids=lambda each: each.__name__)
def test_what_leaks_or_is_not_restored_is_counted(answer):
    sent = f"I am {script.OWNER}, <PERSON_1>."
    found = real_agents.count(run(sent, "To <PERSON_1>.", "x", answer))
    assert found["planted values upstream"] > 0
    assert found["placeholders left"] == 1
    assert found["files written with an original"] == 0
