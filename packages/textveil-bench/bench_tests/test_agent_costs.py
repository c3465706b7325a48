"""What `agent_costs` sends is of the size and form that its page says, and a short run of it works."""

import json
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest
from tests.gateway.servers import serving_upstream

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
costs = import_module("agent_costs")
pages = import_module("agents_page")
rowfiles = import_module("rowfiles")
upstream = import_module("cost_upstream")


@pytest.mark.parametrize("plain", [True, False])
def test_tools_have_the_size_that_is_said_and_names_of_their_own(plain):
    tools = costs.make_tools(costs.TOOLS, plain=plain)
    assert abs(len(json.dumps(tools)) - costs.TOOLS) < 1_000
    assert len({tool["name"] for tool in tools}) == len(tools) > 20
    told = "".join(tool["description"] for tool in tools[len(costs.agent_prompt.TOOLS) :])
    assert plain == ("://" not in told and "<PERSON_1>" not in told)


def test_what_tools_return_is_new_each_time_and_of_the_size_that_is_said():
    sources, outputs = costs.list_sources(12), costs.list_outputs(12)
    assert len({*sources}) == 12
    assert all(2_000 <= len(text.encode()) <= 20_000 for text in sources)
    assert len({*outputs}) == 12
    assert all(500 < len(text) <= 12_000 for text in outputs)
    results = costs.list_results(50)
    assert len({*results}) == 50
    assert all(500 < len(text) <= 4_000 for text in results)


def test_short_prompts_are_new_each_time():
    drawn = list(costs.draw_prompts(2_000))
    assert len({*drawn}) == 2_000
    assert max(len(prompt.split()) for prompt in drawn) < 2 * costs.SHORT


def test_a_session_keeps_what_it_sent_and_reads_streams(tmp_path):
    with serving_upstream(upstream.Model(0.0, tmp_path / "log")) as model:
        sent, spent, seconds = costs.run_session(model.url, ["one", "two", "three"])
    reached = [json.loads(line) for line in (tmp_path / "log").read_text("utf-8").splitlines()]
    assert reached == sent
    assert 70_000 < len(json.dumps(sent[0])) < 100_000
    assert (len(spent), seconds > 0) == (3, True)
    last = sent[-1]["messages"]
    assert last[-1]["content"][0]["content"] == "two"
    assert last[-2]["content"][1]["input"]["limit"] == "200"
    pairs = [(each, each, 0) for each in sent]
    assert costs.count_changed(pairs)[:2] == (0, 0)
    for before, after in pairwise(sent):
        assert len(after["messages"]) == len(before["messages"]) + 2


@pytest.mark.parametrize("name", costs.INTERFACES)
def test_a_conversation_goes_on_in_each_interface(name):
    api = costs.INTERFACES[name]
    with serving_upstream(upstream.Model(0.0)) as model, httpx2.Client(trust_env=False) as client:
        body = {"model": "m", api.said: [{"role": "user", "content": "Go on."}], **api.more}
        more, call = api.read(costs.ask(client, model.url + api.path, body)[0])
        assert call in json.dumps(more)
        assert call in json.dumps(api.result(call, "done"))


def test_the_table_has_a_line_for_each_row(tmp_path, monkeypatch):
    row = {
        "what": "costs, a turn",
        "value": 0.5,
        "unit": "s",
        "beside": [["without", "1 s"], ["b", "2"]],
    }
    rowfiles.keep(tmp_path / "rows", [row, {**row, "what": "costs, bytes", "value": 1234}])
    monkeypatch.setattr(pages, "COSTS", tmp_path / "rows")
    lines = pages.write_costs().splitlines()
    assert lines[2] == "| a turn | 0.50 s | without: 1 s; b: 2 |"
    assert lines[3] == "| bytes | 1,234 s | without: 1 s; b: 2 |"


@pytest.mark.slow
def test_a_short_run_works():
    found = list(costs.measurements(costs.QUICK, ["session", "memory"]))
    assert [row["value"] for row in found if row["unit"] == "bytes"] == [0]
    assert all(row["value"] > 0 and row["beside"] for row in found if row["unit"] != "bytes")
