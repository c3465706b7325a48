"""Judges by name: each is one, what they refuse, and names and options that are none."""

import subprocess
import sys
from typing import get_args

import pytest

from textveil.errors import ConfigError, UnknownName
from textveil.models.endpoint import Endpoint
from textveil_bench.examples import DataSet, ExampleKind
from textveil_bench.tasks import TASKS, build_judge, get_default, prepare
from textveil_bench.tasks.head import Head
from textveil_bench.tasks.task_contract import Judge

NEEDED = {"classifier": {"model": "owner/model"}}


def never() -> DataSet:
    raise AssertionError("a judge must not load its training rows before it judges")


@pytest.mark.parametrize("name", TASKS)
def test_every_name_is_a_task_and_loads_nothing_before_it_judges(name, judged):
    task = build_judge(name, NEEDED.get(name), train=never)
    assert isinstance(task, Judge)
    assert task.name.startswith(f"{name}")
    assert isinstance(task.explain_refusal(judged), str)


@pytest.mark.parametrize("kind", get_args(ExampleKind))
def test_every_kind_has_a_usual_judge_that_takes_it_where_it_has_an_endpoint(
    kind, judged, pairs, questions, stories
):
    data = {"classification": judged, "pairs": pairs, "reading": questions, "text": stories}.get(
        kind
    )
    task = build_judge(
        get_default(kind), train=never, endpoint=Endpoint(url="http://127.0.0.1:9/v1", model="m")
    )
    if data is not None:
        assert task.explain_refusal(data) == ""
    if kind in ("choice", "text"):
        assert (
            build_judge(get_default(kind), train=never).explain_refusal(stories)
            == "it needs an LLM: give an endpoint"
        )


def test_options_and_what_the_bench_gives_reach_the_judge(tmp_path, learned):
    told = []
    task = build_judge(
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
    prepare(build_judge("reader", train=never))
    prepare(build_judge("head", train=lambda: learned, cache=tmp_path))
    assert sorted(path.name.partition("-")[0] for path in tmp_path.iterdir()) == [
        "features",
        "head",
    ]


def test_wrong_names_and_options_are_said():
    with pytest.raises(UnknownName, match="no task is named 'raeder'; did you mean 'reader'"):
        build_judge("raeder", train=never)
    with pytest.raises(
        UnknownName, match="no option of the task head is named 'row'; did you mean 'rows'"
    ):
        build_judge("head", {"row": 3}, train=never)
    for own in ("train", "folder", "report"):
        with pytest.raises(UnknownName, match=f"'{own}'"):
            build_judge("head", {own: None}, train=never)
    with pytest.raises(ConfigError, match="rows"):
        build_judge("head", {"rows": 1}, train=never)


def test_names_are_known_without_torch_and_scikit_learn():
    loaded = "bool({'torch', 'sklearn'} & set(sys.modules))"
    code = (
        f"import sys, textveil_bench.tasks as tasks; tasks.get_default('pairs'); sys.exit({loaded})"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
