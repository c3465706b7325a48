from pathlib import Path

import pytest

from bench_tests.lm_eval.conftest import TASKS
from textveil.errors import ConfigError, UnknownName
from textveil_bench.lm_eval import harness
from textveil_bench.lm_eval.extra import load_library
from textveil_bench.lm_eval.fields import (
    TASKS_WITH_CHOICES,
    FieldOptions,
    _find_used_fields,
    find_fields,
    has_text,
    parse_fields,
)

OWN = {
    "sst2": "glue/sst2/*.yaml",
    "qnli": "glue/qnli/*.yaml",
    "swag": "swag/swag.yaml",
    "mmlu_*": "mmlu/default/mmlu_*.yaml",
}
"""Where the library defines the tasks that are known."""

COLUMNS = [
    "sentence",
    "question",
    "startphrase",
    "ending0",
    "ending1",
    "ending2",
    "ending3",
    "choices",
    "label",
    "answer",
]


@pytest.mark.parametrize("pattern", OWN)
def test_what_is_known_is_what_the_librarys_own_templates_show(pattern):
    found = list((Path(load_library("lm_eval.tasks").__file__).parent).glob(OWN[pattern]))
    assert len(found) == (57 if pattern == "mmlu_*" else 1)
    for path in found:
        config = load_library("lm_eval.tasks._yaml_loader").load_yaml(path)
        assert pattern in (config["task"], "mmlu_*")
        row = dict.fromkeys(COLUMNS, "")
        shown = _find_used_fields(
            row, config["doc_to_text"], config["doc_to_choice"], config.get("description")
        )
        assert shown == TASKS_WITH_CHOICES[pattern].texts + TASKS_WITH_CHOICES[pattern].choices
        assert _find_used_fields(row, config["doc_to_target"]) in (("label",), ("answer",))
        assert config["output_type"] == "multiple_choice"


def fields(tasks, name, *, given=(), keep=(), keep_choices=False):
    task = harness.load_tasks([name], tasks)["tasks"][name]
    said = FieldOptions(
        fields={name: given} if given else {},
        keep={name: keep} if keep else {},
        keep_choices=keep_choices,
    )
    return find_fields(task, task.eval_docs[0], said)


@pytest.mark.parametrize(
    ("name", "texts", "kept", "label"),
    [
        ("sst2", ("sentence",), (), True),
        ("swag", ("startphrase", "ending0", "ending1", "ending2", "ending3"), (), True),
        ("mmlu_anatomy", ("question", "choices"), (), True),
        ("nested", ("question", "choices"), (), True),
        ("story", ("title", "body", "answer"), (), False),
        ("word", ("body",), (), False),
    ],
)
def test_fields_are_found_in_templates(tasks, name, texts, kept, label):
    found = fields(tasks, name)
    assert (found.texts, found.verbatim, found.has_label) == (texts, kept, label)


def test_choices_are_told_from_the_rest(tasks):
    assert fields(tasks, "mmlu_anatomy", keep_choices=True).verbatim == ("choices",)
    assert fields(tasks, "swag", keep_choices=True).texts == ("startphrase",)
    assert fields(tasks, "nested", keep_choices=True).verbatim == ("choices",)
    assert fields(tasks, "sst2", keep_choices=True).verbatim == ()


def test_a_task_of_a_known_name_with_other_fields_is_another_task(tasks, monkeypatch):
    task = harness.load_tasks(["nested"], tasks)["tasks"]["nested"]
    task.config.task, row = "mmlu_other", dict(task.eval_docs[0], context="")
    task.config.doc_to_text = task.fewshot_cfg.doc_to_text = "{{context}} {{question}}"
    found = find_fields(task, row, FieldOptions(fields={}, keep={}, keep_choices=True))
    assert (found.texts, found.verbatim) == (("context", "question"), ("choices",))


def test_numbers_that_answers_are_made_of_stay(tasks):
    task = harness.load_tasks(["story"], tasks)["tasks"]["story"]
    task.config.doc_to_target = task.fewshot_cfg.doc_to_target = "{{[title, body][year]}}"
    found = find_fields(task, task.eval_docs[0], FieldOptions(fields={}, keep={}))
    assert (found.texts, found.verbatim) == (("title", "body"), ("year",))


def test_what_cannot_be_known_is_refused(tasks):
    with pytest.raises(ConfigError, match="--fields coded=FIELD,FIELD"):
        fields(tasks, "coded")
    assert fields(tasks, "coded", given=("headline", "body", "answer")).texts == (
        "headline",
        "body",
        "answer",
    )
    with pytest.raises(ConfigError, match="also show title, answer"):
        fields(tasks, "story", given=("body",))
    with pytest.raises(UnknownName, match="did you mean 'body'"):
        fields(tasks, "story", given=("title", "bodi", "answer"))


@pytest.mark.parametrize("change", ["doc_to_image", "use_prompt", "multiple_input", "class"])
def test_tasks_of_other_kinds_are_refused(tasks, change):
    task = harness.load_tasks(["sst2"], tasks)["tasks"]["sst2"]
    if change == "class":
        task.__class__ = type("Own", (type(task),), {})
    elif change == "multiple_input":
        task.multiple_input = 2
    else:
        setattr(task.config, change, "sentence")
    with pytest.raises(ConfigError, match="cannot be guarded"):
        find_fields(task, task.eval_docs[0], FieldOptions(fields={}, keep={}))


def test_variables_of_templates():
    row = {"a": "", "b": ""}
    assert _find_used_fields(row, "a") == ("a",)
    assert _find_used_fields(row, "just words") == ()
    assert _find_used_fields(row, "{% for c in b %}{{ c }}{{ a }}{% endfor %}") == ("b", "a")
    assert _find_used_fields(row, "{% set d = a.x %}{{ d }}", None, ["a"], 3) == ("a",)
    assert _find_used_fields(row, "a", lambda row: row["b"]) is None


def test_strings_in_fields():
    assert has_text({"label": [1, 2], "text": ["a"]})
    assert not has_text({"label": [1, 2], "none": None})


def test_fields_as_they_are_typed():
    assert parse_fields("--fields", ["a=b, c", "d*=e"]) == {"a": ("b", "c"), "d*": ("e",)}
    for wrong in ("a", "=b", "a=", "a=,"):
        with pytest.raises(ConfigError, match="--fields must be TASK=FIELD,FIELD"):
            parse_fields("--fields", [wrong])


def test_patterns_must_name_a_task():
    said = FieldOptions(fields={"mmlu_*": ("question",)}, keep={"none": ("year",)})
    with pytest.raises(UnknownName, match="'none'"):
        said.check(["mmlu_anatomy"])
    assert said.select_fields("mmlu_anatomy") == (("question",), ())
    assert {*TASKS} >= {"sst2", "swag", "mmlu_anatomy"}
