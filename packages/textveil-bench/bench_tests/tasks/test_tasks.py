"""Judges by name: each is one, what they refuse, and names and options that are none."""

import subprocess
import sys
from typing import get_args

import pytest

from textveil.errors import ConfigError, UnknownName
from textveil.models.endpoint import Endpoint
from textveil_bench.examples import DataSet, Kind
from textveil_bench.tasks import TASKS, make, prepare, usual
from textveil_bench.tasks.contract import Judge
from textveil_bench.tasks.head import Head

NEEDED = {"classifier": {"model": "owner/model"}}


def never() -> DataSet:
    raise AssertionError("a judge must not load its training rows before it judges")


@pytest.mark.parametrize("name", TASKS)
def test_every_name_is_a_task_and_loads_nothing_before_it_judges(name, judged):
    task = make(name, NEEDED.get(name), train=never)
    assert isinstance(task, Judge)
    assert task.name.startswith(f"{name}")
    assert isinstance(task.refusal(judged), str)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_has_a_usual_judge_that_takes_it_where_it_has_an_endpoint(
    kind, judged, pairs, questions, stories
):
    data = {"classification": judged, "pairs": pairs, "reading": questions, "text": stories}.get(
        kind
    )
    task = make(usual(kind), train=never, endpoint=Endpoint(url="http://127.0.0.1:9/v1", model="m"))
    if data is not None:
        assert task.refusal(data) == ""
    if kind in ("choice", "text"):
        assert (
            make(usual(kind), train=never).refusal(stories) == "it needs an LLM: give an endpoint"
        )


def test_options_and_what_the_bench_gives_reach_the_judge(tmp_path, learned):
    told = []
    task = make(
        "head",
        {"rows": 7},
        train=lambda: learned,
        cache=tmp_path,
        report=lambda *given: told.append(given),
    )
    assert isinstance(task, Head)
    assert (task.rows, task.folder, task.train()) == (7, tmp_path, learned)
    task.report("a", 1, 2)
    assert told == [("a", 1, 2)]


def test_a_judge_that_learns_can_do_so_before_it_judges(learned, judged, tmp_path):
    prepare(make("reader", train=never))
    prepare(make("head", train=lambda: learned, cache=tmp_path))
    assert sorted(path.name.partition("-")[0] for path in tmp_path.iterdir()) == [
        "features",
        "head",
    ]


def test_wrong_names_and_options_are_said():
    with pytest.raises(UnknownName, match="no task is named 'raeder'; did you mean 'reader'"):
        make("raeder", train=never)
    with pytest.raises(
        UnknownName, match="no option of the task head is named 'row'; did you mean 'rows'"
    ):
        make("head", {"row": 3}, train=never)
    for own in ("train", "folder", "report"):
        with pytest.raises(UnknownName, match=f"'{own}'"):
            make("head", {own: None}, train=never)
    with pytest.raises(ConfigError, match="rows"):
        make("head", {"rows": 1}, train=never)


def test_names_are_known_without_torch_and_scikit_learn():
    loaded = "bool({'torch', 'sklearn'} & set(sys.modules))"
    code = f"import sys, textveil_bench.tasks as tasks; tasks.usual('pairs'); sys.exit({loaded})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
