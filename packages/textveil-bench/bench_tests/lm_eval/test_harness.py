import math
import sys

import pytest

from textveil.errors import ConfigError, InputError, ModelError, UnknownName
from textveil_bench.lm_eval import harness
from textveil_bench.lm_eval.extra import load_library


class Entry:
    def __init__(self, members):
        self.cfg = {"task": members}


def test_tasks_are_found_by_name_group_and_pattern(tasks):
    assert [*harness.load_tasks(["sst2", "story"], tasks)["tasks"]] == ["sst2", "story"]
    names = harness._build_manager(["sst2"], tasks)
    assert harness._match_tasks("s*", names) == ["samples", "sst2", "story", "swag"]
    assert harness._match_tasks("both", names) == ["both"]
    with pytest.raises(UnknownName, match="did you mean 'sst2'"):
        harness._match_tasks("sst3", names)
    with pytest.raises(UnknownName):
        harness._match_tasks("q*", names)


def test_the_index_of_all_tasks_is_made_only_where_it_is_needed(tasks, monkeypatch):
    made = []
    monkeypatch.setattr(
        load_library("lm_eval.tasks").TaskManager,
        "__init__",
        lambda self, **options: made.append(options),
    )
    index = {
        "both": Entry(["sst2", "swag"]),
        "mixed": Entry(["sst2", "mmlu"]),
        "changed": Entry([{"task": "sst2"}]),
    }
    own = {"all_groups": [*index], "all_subtasks": ["sst2", "swag"], "task_index": index}
    for name, value in own.items():
        monkeypatch.setattr(load_library("lm_eval.tasks").TaskManager, name, value)
    for names, wanted in (
        (["sst2", "both"], 1),
        (["sst2", "glue"], 2),
        (["mixed"], 2),
        (["changed"], 2),
        (["s*"], 2),
    ):
        made.clear()
        harness._build_manager(names, tasks)
        assert len(made) == wanted, names
        assert ("include_defaults" in made[-1]) == (wanted == 1)


def test_tasks_that_cannot_be_had(tasks, tmp_path):
    with pytest.raises(ConfigError, match="--include_path must be a folder"):
        harness.load_tasks(["sst2"], str(tmp_path / "none"))
    (tmp_path / "gone.yaml").write_text(
        "task: gone\ndataset_path: json\ndataset_kwargs: {data_files: gone.jsonl}\n"
    )
    with pytest.raises(InputError, match=r"could not load the tasks gone \(FileNotFoundError\)"):
        harness.load_tasks(["gone"], str(tmp_path))


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "says"),
    [
        ("hg", "", UnknownName, "did you mean 'hf'"),
        ("hf", "", ConfigError, "needs --model_args pretrained="),
        ("hf", "pretrained=/nowhere/model", ModelError, "no such folder exists"),
        pytest.param(
            "hf",
            "pretrained=nobody/nothing",
            ModelError,
            "could not load the model hf 'nobody/nothing'",
            marks=pytest.mark.slow,
        ),
        ("vllm", "pretrained=nobody/nothing", ModelError, "and its library installed"),
    ],
)
def test_models_that_cannot_be_had(name, arguments, kind, says):
    with pytest.raises(kind, match=says):
        harness.load_model(name, arguments)


@pytest.mark.slow
def test_a_model_of_chats_has_no_probabilities(tasks):
    model = harness.load_model(
        "local-chat-completions", "model=echo,base_url=http://127.0.0.1:9/v1"
    )
    with pytest.raises(ModelError, match="need a model that gives probabilities"):
        harness.evaluate(model, harness.load_tasks(["sst2"], tasks), seed=0, chat=True)
    with pytest.raises(ModelError, match="--apply_chat_template"):
        harness.evaluate(model, harness.load_tasks(["story"], tasks), seed=0)


def test_keys_in_arguments_are_not_repeated():
    arguments = "pretrained=gpt2,dtype=float32,auth_token=secret,base_url=http://user:secret@host"
    assert harness.get_reported_arguments(arguments) == {"pretrained": "gpt2", "dtype": "float32"}


def test_numbers_that_are_none():
    scores = {
        "a": {"alias": "a", "sample_len": 3, "m,none": math.nan, "m_stderr,none": "N/A", "k,f": 1}
    }
    rows = list(
        harness._build_rows(
            {"results": scores, "higher_is_better": {"a": {"k": True}}, "versions": {"a": 2}}
        )
    )
    assert [(row["metric"], row["filter"], row["value"], row["stderr"]) for row in rows] == [
        ("m", "none", None, None),
        ("k", "f", 1.0, None),
    ]
    assert [row["higher_is_better"] for row in rows] == [None, True]


def test_the_library_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    monkeypatch.delitem(sys.modules, "lm_eval.tasks", raising=False)
    with pytest.raises(ConfigError, match=r"pip install 'textveil-bench\[lm-eval\]'"):
        load_library("lm_eval.tasks")
