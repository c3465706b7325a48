"""Reproductions that ask language models: what is sent and to whom, what it costs, and where it goes on."""

import json
import re
import sys
import urllib.request
from types import SimpleNamespace

import pytest

from bench_tests.reproduce.corpora import write_corpora
from textveil import cli
from textveil.models import Prompts
from textveil_bench import rows
from textveil_bench.prompts import OURS
from textveil_bench.reproduce import targets

TARGET = """
title: "Made up, figure 1: answers"
paper: "Nobody"
shows: "What anything costs."
sweep:
  name: made-up
  seeds: [1, 2]
  limit: 4
  common: {table.name: minilm-s, words.stopwords: protect}
  data: [{name: opinions, task: meaning}]
  attacks: []
  baselines: [identity]
  gallery: 0
  entries:
    - {name: noise, set: {mechanism.name: noise}, budget: {mechanism.eta: [1, 2]}}
panels:
  - {name: opinions}
  - name: labels by a model
    needs: llm
    changes:
      data: [{name: opinions, task: {name: asked, temperature: 0.2, max_tokens: 5}, as_name: "opinions, asked"}]
  - name: continued by a model
    needs: llm
    changes:
      data: [{name: STORIES, task: {name: generation, expected: model, prefix: 6}, as_name: "stories"}]
differs: ["Everything differs."]
"""
STORIES = (
    "The keeper of the lighthouse counts ships at dusk and writes their names into a book.",
    "Two sisters bake bread for the whole valley, and their oven is older than the church.",
)
CELLS = 2 * (1 + 2)
"""Two seeds of the original and two budgets."""

RELEASES = 1 + 2 * 2
"""Different ones: both seeds have the same original."""


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.delenv("TEXTVEIL_CORPORA", raising=False)
    monkeypatch.delenv("TEXTVEIL_LLM_KEY", raising=False)


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    conf = tmp_path / "conf"
    conf.mkdir()
    path = tmp_path / "stories.txt"
    path.write_text("".join(f"{text}\n" for text in STORIES), encoding="utf-8")
    (conf / "made-up.yaml").write_text(TARGET.replace("STORIES", str(path)), encoding="utf-8")
    monkeypatch.setattr(targets, "CONF", conf)


@pytest.fixture
def journal(openai_server):
    def read():
        with urllib.request.urlopen(openai_server.replace("/v1", "/journal")) as answer:
            return [entry["body"] for entry in json.load(answer)]

    before = len(read())
    return lambda: read()[before:]


@pytest.fixture
def run(capsys, openai_server, tmp_path):
    """Runs the verb with both models, and returns its status and what it wrote."""

    def reproduce(*more, name="made-up", output="out"):
        arguments = [
            *("reproduce", name, "--upstream", openai_server, "--model", "echo"),
            *("--local-url", openai_server, "--local-model", "draft", "--processes", "1"),
            *("--output", tmp_path / output, *more),
        ]
        code = cli.main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return reproduce


def planned(line: str) -> list[int]:
    """Numbers of a line of a dry run: asked, sent at most, tokens, and those to the local model."""
    return [int(number.replace(",", "")) for number in re.findall(r"\b\d[\d,]*", line)]


def test_a_dry_run_counts_what_a_run_sends_and_a_second_one_sends_nothing(
    made_up, run, journal, tmp_path
):
    code, out, _ = run("--dry-run")
    assert code == 0
    assert journal() == []
    assert not (tmp_path / "out").exists()
    labels, stories = [planned(line) for line in out.splitlines() if "requests to" in line]
    assert labels[:2] == [CELLS * 4, RELEASES * 4]
    # the original's continuation is asked in each cell, and sent once a text
    assert (stories[0], stories[1], stories[3]) == (CELLS * 2 * 3, RELEASES * 2, RELEASES * 2)

    code, out, err = run()
    assert code == 0, err
    sent = journal()
    remote = [body for body in sent if body["model"] == "echo"]
    assert len(remote) == labels[1] + stories[1]
    assert len(sent) - len(remote) == stories[3]
    assert len({json.dumps(body) for body in sent}) == len(sent), "nothing is sent twice"
    kept = labels[0] + stories[0] - len(sent)
    assert f"{len(remote)} requests were sent, {stories[3]} to the local model; {kept} ans" in err
    assert {body["temperature"] for body in remote if body.get("max_tokens") == 5} == {0.2}
    for body in sent:
        whole = body["messages"][-1]["content"]
        if body["model"] == "draft":
            assert any(" ".join(text.split()[:6]) in whole for text in STORIES), "as in Cape"
    scores = {
        (row["data"]["name"], score["metric"])
        for row in rows.read([tmp_path / "out"])
        for score in row["scores"]
    }
    assert {("stories", "coherence"), ("stories", "alignment")} <= scores
    assert ("opinions, asked", "accuracy") in scores

    (tmp_path / "out" / "rows.jsonl").unlink()
    assert run()[0] == 0
    assert len(journal()) == len(sent), "all is taken from the answers"
    assert run("--prompts", "ours")[0] == 0
    assert len(journal()) == len(sent)


def test_after_as_many_requests_as_it_may_a_run_stops_and_goes_on(made_up, run, journal, tmp_path):
    code, out, err = run("--most-requests", 7)
    assert code == 0, err
    assert len([body for body in journal() if body["model"] == "echo"]) == 7
    assert "labels by a model: not run: the run has sent as many requests as it may" in out
    assert "opinions: 4 examples" in out, "what needs no model is run"
    assert "7 requests were sent" in err
    assert len([row for row in rows.read([tmp_path / "out"]) if row["sweep"] == "made-up"]) > CELLS
    code, out, err = run()
    assert code == 0
    assert "as many requests as it may" not in out
    sent = [json.dumps(body) for body in journal()]
    assert len(set(sent)) == len(sent), "none was sent again"


def test_a_part_of_a_target_has_a_page_of_its_own(made_up, run, journal, tmp_path):
    code, out, _ = run("--panel", "LABELS", "--limit", 2, "--seeds", "5")
    assert code == 0
    assert "opinions, asked: 2 examples, seeds 5" in out
    assert "stories" not in out
    assert len(journal()) == 3 * 2
    assert (tmp_path / "out" / "made-up-part.json").exists()
    code, _, err = run("--panel", "pictures")
    assert code == 2
    assert "--panel must be part of a panel's name: opinions; labels by a model; cont" in err


def test_a_file_has_other_wordings(made_up, run, journal, tmp_path, capsys):
    assert cli.main(["reproduce", "--prompts", "template"]) == 0
    path = tmp_path / "mine.yaml"
    template = capsys.readouterr().out
    path.write_text(template, encoding="utf-8")
    read = Prompts.read(path)
    assert {role: read.find(role) for role in OURS} == dict(OURS), "ours, to fill in"

    path.write_text("classification: {user: 'Hm: {text}', max_tokens: 3}", encoding="utf-8")
    run("--panel", "labels")
    before = len(journal())
    assert run("--panel", "labels", "--prompts", path)[0] == 0
    sent = journal()[before:]
    assert len(sent) == RELEASES * 4, "other prompts are other rows"
    assert all(body["messages"][0]["content"].startswith("Hm: ") for body in sent)
    assert {(body["temperature"], body["max_tokens"]) for body in sent} == {(0.2, 3)}
    path.write_text("answering: {}", encoding="utf-8")
    code, _, err = run("--prompts", path)
    assert (code, "no role of prompts is named 'answering'" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--model", "m"], "both --upstream and --model"),
        (["--upstream", "http://h/v1"], "both --upstream and --model"),
        (["--local-url", "http://h/v1", "--local-model", "m"], "name the other one, too"),
        (
            ["--upstream", "http://h/v1", "--model", "m", "--local-model", "m"],
            "must be a file FILE.gguf, or --local-url",
        ),
        (
            ["--upstream", "http://h/v1", "--model", "m", "--local-url", "http://h:1/v1"],
            "needs the model's name there",
        ),
        (
            [
                *("--upstream", "https://h/v1", "--model", "m"),
                *("--local-url", "http://h:1/v1", "--local-model", "m"),
            ],
            "a local model sees original texts",
        ),
        (["--upstream", "missing.gguf"], "file of the language model cannot be read"),
    ],
)
def test_models_that_are_named_by_half_are_refused(capsys, made_up, tmp_path, arguments, says):
    code = cli.main(["reproduce", "made-up", *arguments, "--output", str(tmp_path / "out")])
    out, err = capsys.readouterr()
    assert (code, out, says in err) == (2, "", True)


def test_a_file_of_a_model_is_served_meanwhile(
    capsys, made_up, openai_server, tmp_path, monkeypatch, journal
):
    """The server has another port each time, and its rows and answers are the same."""
    served = []

    def build_server(parameters):
        served.append(parameters)
        return SimpleNamespace(listening_address=openai_server.removesuffix("/v1"))

    parts = lambda: SimpleNamespace(  # noqa: E731
        model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
    )
    library = SimpleNamespace(CommonParams=parts, Server=build_server)
    monkeypatch.setitem(sys.modules, "xllamacpp", library)
    path = tmp_path / "echo.gguf"
    path.write_bytes(b"GGUF and more")
    arguments = ["reproduce", "made-up", "--upstream", str(path), "--panel", "labels"]
    arguments += ["--processes", "1", "--most-requests", "0", "--output", str(tmp_path / "out")]
    assert cli.main([*arguments, "--dry-run"]) == 0
    assert served == []
    assert cli.main(arguments) == 0
    assert "0 requests were sent, 20 to the local model" in capsys.readouterr().err
    assert served[0].hostnames == ["127.0.0.1"]
    assert served[0].model.path == str(path)
    monkeypatch.setattr(
        library, "Server", lambda _: SimpleNamespace(listening_address="http://127.0.0.1:9")
    )
    assert cli.main(arguments) == 0
    assert len(journal()) == RELEASES * 4
    path.write_bytes(b"a page")
    assert cli.main(arguments) == 2
    assert "not in the format GGUF" in capsys.readouterr().err


def list_asking() -> list[str]:
    return [
        name
        for name in targets.list_names()
        if any("llm" in panel.needs for panel in targets.load_target(name).panels)
    ]


QUICK_PARTS = {"stamp-table1": "answered by a language model"}
"""Parts of targets that are tried in any run of the tests: a target, and a panel of it."""


@pytest.mark.parametrize(("name", "panel"), QUICK_PARTS.items())
def test_a_panel_with_a_language_model_is_tried_in_a_quick_run(name, panel, try_target):
    try_target(name, "--panel", panel, "--limit", 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", list_asking())
def test_every_panel_with_a_language_model_is_tried_in_a_quick_run(name, try_target):
    try_target(name)


@pytest.fixture
def try_target(run, journal, tmp_path_factory, tmp_path, monkeypatch):
    """Runs a target, counts what is sent, and checks what stands in its document."""

    def check(name, *more):
        corpora = tmp_path_factory.getbasetemp() / "asked-corpora"
        write_corpora(corpora)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "asked-cache"))
        arguments = ("--quick", "--folder", corpora, *more)
        code, out, err = run(*arguments, "--dry-run", name=name)
        assert code == 0, err
        plans = [planned(line) for line in out.splitlines() if "requests to" in line]
        assert plans
        assert run(*arguments, name=name)[0] == 0
        sent = journal()
        remote = [json.dumps(body) for body in sent if body["model"] == "echo"]
        assert len(set(remote)) == len(remote), "nothing is sent twice"
        most = sum(plan[1] for plan in plans)
        assert 0.5 * most <= len(remote) <= most, "releases that come out equal are sent once"
        (path,) = (tmp_path / "out").glob(f"{name}-*.json")
        check_document(targets.load_target(name), json.loads(path.read_text(encoding="utf-8")))
        assert run(*arguments, name=name)[0] == 0
        assert len(journal()) == len(sent)

    return check


def check_document(target, document):
    """Checks that what language models answered is scored, beside the published values of its data."""
    names = {
        name
        for panel in target.panels
        if "llm" in panel.needs
        for name in panel.list_data(target.sweep)
    }
    asked = [cell for cell in document["cells"] if cell["data"] in names]
    tables = [table for table in document["tables"] if table["name"].startswith("stamp-repaired")]
    assert asked or tables
    for cell in asked:
        metrics = {figure["metric"].partition(" (")[0] for figure in cell["figures"]}
        assert metrics & {"accuracy", "cosine", "coherence"}, (cell["data"], cell["series"])
    assert all(table["rows"] for table in tables)
    published = {
        row
        for value in target.published
        if "data" in value.where
        for row in target.list_rows(value.where["data"])
    }
    beside = [value for value in document["published"] if value["where"].get("data") in names]
    if published & {cell["data"] for cell in asked}:
        assert any(value["value"] is not None for value in beside)
