"""The scripted model of `make agents`: it works, and catches what goes out without a gateway; counts are right."""

import base64
import json
import os
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tests.gateway.servers import commanded, serving_upstream

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
agents = import_module("agents")
report = import_module("report")
script = import_module("agent_script")
upstream = import_module("agent_upstream")
ROOT = BENCHMARKS.parents[2]


def load_tools():
    sys.path.insert(0, str(BENCHMARKS / "agents"))
    try:
        return import_module("tools")
    finally:
        sys.path.remove(str(BENCHMARKS / "agents"))


def work(url):
    """A small agent that finishes the project in the folder of the process."""
    openai = pytest.importorskip("openai")
    tools = load_tools()
    offered = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in ("read_file", "write_file", "edit_file", "run_command")
    ]
    said = [{"role": "user", "content": script.TASK}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        for turn in range(2 * len(script.STEPS)):
            stream = client.chat.completions.stream(model="m", messages=said, tools=offered)
            with stream if turn % 2 else no_stream(client, said, offered) as answer:
                message = answer.get_final_completion().choices[0].message
            calls = message.tool_calls or ()
            said.append(
                {
                    "role": "assistant",
                    "content": message.content,
                    **(
                        {"tool_calls": [call.model_dump(include=KEPT) for call in calls]}
                        if calls
                        else {}
                    ),
                }
            )
            if not calls:
                return message.content
            for call in calls:
                result = getattr(tools, call.function.name)(**json.loads(call.function.arguments))
                said.append({"role": "tool", "tool_call_id": call.id, "content": result})
    raise AssertionError("it does not end")


KEPT = {"id": True, "type": True, "function": {"name", "arguments"}}


class no_stream:  # noqa: N801 - it stands in for a function
    def __init__(self, client, said, offered):
        self.asked = client, said, offered

    def __enter__(self):
        client, said, offered = self.asked
        self.answer = client.chat.completions.create(model="m", messages=said, tools=offered)
        return self

    def __exit__(self, *_):
        pass

    def get_final_completion(self):
        return self.answer


def play(folder, monkeypatch, gateway):
    """A run of the small agent."""
    project, log = folder / "project", folder / "log"
    script.write_project(project)
    monkeypatch.chdir(project)
    monkeypatch.setitem(os.environ, "PYTHONDONTWRITEBYTECODE", "1")
    with serving_upstream(upstream.Model("plain", log)) as model:
        if gateway:
            with commanded(model.url, folder / "said") as url:
                end = work(url)
        else:
            end = work(model.url.removesuffix("/v1"))
    reached = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for each in reached:
        each["raw"] = base64.b64decode(each["raw"])
    return end, agents.Run(0, script.read_project(project), [], reached, 0.0)


def test_the_model_is_shown_what_is_planted_without_a_gateway_and_nothing_of_it_behind_one(
    tmp_path, monkeypatch
):
    end, direct = play(tmp_path / "direct", monkeypatch, gateway=False)
    assert agents.count_canaries(direct) > 100
    assert [each["step"] for each in direct.reached] == list(range(len(script.STEPS)))
    assert not any(each["lost"] for each in direct.reached)
    assert script.OWNER in end
    assert b"the same key" in direct.files["check.py"]
    assert "archive/Zeugnis_Anna_Kowalska.txt" in direct.files
    assert b"waiting" in direct.files["customers.csv"]
    again, through = play(tmp_path / "through", monkeypatch, gateway=True)
    assert agents.count_canaries(through) == 0
    assert not any(each["lost"] for each in through.reached)
    assert (again, through.files) == (end, direct.files)


def ask(kind, stream):
    """What the model answers first to a client of a provider's, as the name of a tool and its arguments."""
    with serving_upstream(upstream.Model("plain", Path(os.devnull))) as model:
        if kind == "messages":
            anthropic = pytest.importorskip("anthropic")
            client = anthropic.Anthropic(base_url=model.url.removesuffix("/v1"), api_key="none")
            tool = {"name": "run_command", "input_schema": {"type": "object"}}
            said = [{"role": "user", "content": script.TASK}]
            asked = {"model": "m", "max_tokens": 9, "messages": said, "tools": [tool]}
            if not stream:
                return client.messages.create(**asked).content[-1].input
            with client.messages.stream(**asked) as answer:
                return answer.get_final_message().content[-1].input
        openai = pytest.importorskip("openai")
        client = openai.OpenAI(base_url=model.url, api_key="none")
        tool = {"type": "function", "name": "run_command", "parameters": {"type": "object"}}
        asked = {"model": "m", "input": script.TASK, "tools": [tool]}
        if not stream:
            return json.loads(client.responses.create(**asked).output[-1].arguments)
        with client.responses.stream(**asked) as answer:
            return json.loads(answer.get_final_response().output[-1].arguments)


@pytest.mark.parametrize("kind", ["messages", "responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_the_model_answers_in_the_other_interfaces(kind, stream):
    assert ask(kind, stream) == {"command": script.STEPS[0](None).new}


def test_what_stood_in_the_place_of_a_placeholder():
    found = agents.list_hidden("Ask Anna Holm, not Claude.", "Ask <PERSON_1>, not <PERSON_2>.")
    assert [*found] == [("<PERSON_1>", "Anna Holm"), ("<PERSON_2>", "Claude")]
    assert [*agents.list_hidden("by Holm", "by <PERSON_1>")] == [("<PERSON_1>", "Holm")]
    assert [*agents.list_hidden("otherwise", "by <PERSON_1>")] == [("<PERSON_1>", None)]


def test_what_is_planted_is_due():
    assert agents.is_due("Kowalska")
    assert agents.is_due("MIRIAM ODUYA")
    assert agents.is_due(script.KEY)
    assert agents.is_due("Kowalska_Anna")
    assert not agents.is_due("Zeugnis_Anna_Kowalska")
    assert not agents.is_due("Claude")
    assert not agents.is_due(None)


def test_changed_bytes_are_the_gateways_or_the_agents():
    def body(*said):
        return {"messages": [{"role": "user", "content": each} for each in said]}

    kept = (body("a"), body("A"), 0), (body("a", "b"), body("A", "B"), 1)
    assert agents.count_changed(kept)[:2] == (0, 0)
    one = len(json.dumps(body("A")["messages"][0]))
    drawn_anew = (body("a"), body("A"), 0), (body("a", "b"), body("X", "B"), 1)
    assert agents.count_changed(drawn_anew)[:2] == (one, 0)
    rewritten = (body("a"), body("A"), 0), (body("c", "b"), body("C", "B"), 1)
    assert agents.count_changed(rewritten)[:2] == (0, one)


def test_the_page_is_the_stored_rows():
    page = ROOT / "docs" / "do" / "gateway-agents.md"
    text = page.read_text(encoding="utf-8")
    assert report.compared(text) == text
    assert text.count("<!-- agents -->") == 1
