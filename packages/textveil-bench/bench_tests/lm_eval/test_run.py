import json
import math
import sys
import urllib.request
from logging import getLogger

import pytest
from tests.lanes import first_of_each

from bench_tests.lm_eval.conftest import CANARY, ROWS, TASKS
from textveil.config.sections import Config, MechanismOptions, WordsOptions
from textveil.errors import ConfigError, InputError, ModelError, TextveilWarning
from textveil.pipeline.privatizer import Privatizer
from textveil_bench.lm_eval import harness
from textveil_bench.lm_eval.extra import load_library, suppress_output
from textveil_bench.lm_eval.guarded import FEW_SHOT_SEED
from textveil_bench.lm_eval.run import EvaluationOptions, evaluate, preview

CONFIG = Config(mechanism=MechanismOptions(name="rankcape"), epsilon=4.0, seed=3)
OPEN = Config(
    mechanism=MechanismOptions(name="noise"), words=WordsOptions(casing="copy"), epsilon=math.inf
)
"""Everything passes as it is."""

FIELDS = {"coded": ("headline", "body", "answer")}
GUARDED = [name for name in TASKS if name != "dated"]


def asked(tasks, *names, **options):
    fields = {name: FIELDS[name] for name in names if name in FIELDS}
    return EvaluationOptions(
        tasks=names, include_path=tasks, **{"model": "dummy", "fields": fields, **options}
    )


# ---- what the model sees -----------------------------------------------------------------------------------


@pytest.mark.parametrize("few", first_of_each([2, 0]))
def test_no_model_sees_a_word_that_was_not_released(tasks, heard, few):
    found = evaluate(CONFIG, asked(tasks, *GUARDED, num_fewshot=few))
    assert {row["task"] for row in found["results"]} == {*GUARDED}
    assert len(heard) > 10 * ROWS
    assert not [text for text in heard if CANARY in text.lower()]


@pytest.mark.parametrize("name", GUARDED)
def test_the_same_check_finds_a_word_that_passes(tasks, heard, name):
    evaluate(OPEN, asked(tasks, name, num_fewshot=2))
    contexts = [text for text in heard if CANARY in text]
    assert len(contexts) >= ROWS
    if name != "rolling":  # which has no prompts
        assert max(text.count(CANARY) for text in contexts) >= 3  # two examples and the document


@pytest.mark.slow
@pytest.mark.parametrize("few", first_of_each([2, 0]))
def test_where_all_words_pass_prompts_and_scores_are_those_of_the_library(tasks, heard, model, few):
    found = evaluate(OPEN, asked(tasks, *GUARDED, num_fewshot=few, model="hf", model_args=model))
    guarded, heard[:] = heard[:], []
    loaded = harness.load_tasks(GUARDED, tasks)
    for task in loaded["tasks"].values():
        task.set_config("num_fewshot", few)
    rows = harness.evaluate(harness.load_model("hf", model), loaded, seed=FEW_SHOT_SEED)
    assert guarded == heard
    assert found["results"] == rows


def test_scores_of_a_model(tasks, model):
    found = evaluate(
        CONFIG, asked(tasks, "both", model="hf", model_args=model, num_fewshot=1, batch_size="4")
    )
    rows = {(row["task"], row["metric"]): row for row in found["results"]}
    assert {*rows} == {("sst2", "acc"), ("swag", "acc"), ("swag", "acc_norm"), ("both", "acc")}
    assert all(0 <= row["value"] <= 1 for row in rows.values())
    assert rows["sst2", "acc"]["n"] == ROWS
    assert rows["both", "acc"]["value"] == pytest.approx(
        (rows["sst2", "acc"]["value"] + rows["swag", "acc"]["value"]) / 2
    )


def test_labels_stay(tasks, heard):
    evaluate(CONFIG, asked(tasks, "sst2", num_fewshot=2))
    answers = [line for text in heard for line in text.splitlines() if line.startswith("Answer: ")]
    assert {*answers} == {"Answer: negative", "Answer: positive"}


def test_choices_are_kept_only_when_asked(tasks, heard):
    evaluate(CONFIG, asked(tasks, "mmlu_anatomy", "swag", keep_choices=True, limit=2))
    contexts = [text for text in heard if "Answer:" in text]
    assert contexts
    for text in contexts:
        question, *choices = text.splitlines()[2:-1]
        assert CANARY not in question
        assert all(CANARY in choice for choice in choices)
    assert sum(CANARY in text for text in heard if text.startswith(" sees")) == 2 * 4


def test_fields_that_are_kept(tasks, heard):
    found = evaluate(CONFIG, asked(tasks, "dated", keep={"dat*": ("year",)}))
    assert [text.partition(":")[0] for text in heard] == [str(1900 + i) for i in range(ROWS)]
    assert found["tasks"][0]["kept"] == ["year"]
    assert not [text for text in heard if CANARY in text]


def test_answers_in_words_are_private_in_examples_and_scored_against_originals(
    tasks, heard, monkeypatch
):
    model = load_library("lm_eval.models.dummy").DummyLM
    first = TASKS["story"][0](0)["answer"]
    monkeypatch.setattr(model, "generate_until", lambda self, requests: [first] * len(requests))
    found = evaluate(CONFIG, asked(tasks, "story", num_fewshot=2))
    assert found["results"][0]["value"] == pytest.approx(1 / ROWS)
    assert heard
    assert not [text for text in heard if CANARY in text]


def test_a_model_behind_an_endpoint(tasks, openai_server):
    arguments = f"model=echo,base_url={openai_server}/chat/completions"
    options = {
        "model": "local-chat-completions",
        "model_args": arguments,
        "chat": True,
        "num_fewshot": 1,
    }
    found = evaluate(CONFIG, asked(tasks, "story", **options))
    assert found["model"] == {"kind": "local-chat-completions", "model": "echo"}
    with urllib.request.urlopen(openai_server.removesuffix("/v1") + "/journal") as answer:
        journal = json.loads(answer.read())
    mine = [text for text in map(json.dumps, journal) if "Who?" in text]
    assert len(mine) >= ROWS
    assert not [text for text in mine if CANARY in text]


# ---- originals ---------------------------------------------------------------------------------------------


def test_the_baseline_asks_about_originals_after_the_releases(tasks, heard):
    with pytest.warns(TextveilWarning, match="unchanged"):
        found = evaluate(CONFIG, asked(tasks, "sst2", baseline=True))
    half = len(heard) // 2
    assert not [text for text in heard[:half] if CANARY in text]
    assert (
        sum(CANARY in text for text in heard[half:]) == half // 2
    )  # answers stand beside contexts
    assert found["results"][0].keys() >= {"baseline", "baseline_stderr"}


def test_originals_are_shown_to_no_model_elsewhere(tasks):
    with pytest.raises(ConfigError, match="only for models in this process"):
        evaluate(
            CONFIG,
            asked(
                tasks,
                "sst2",
                baseline=True,
                model="local-completions",
                model_args="base_url=http://x",
            ),
        )


# ---- releases ----------------------------------------------------------------------------------------------


def test_several_models_are_judged_on_the_same_releases(tasks, heard, tmp_path):
    unseeded = Config(mechanism=MechanismOptions(name="noise"), epsilon=30.0)
    first = evaluate(unseeded, asked(tasks, "sst2", num_fewshot=2), tmp_path)
    once, heard[:] = heard[:], []
    second = evaluate(unseeded, asked(tasks, "sst2", num_fewshot=2), tmp_path)
    assert once == heard
    assert (
        first["releases"]["drawn"] == first["releases"]["documents"] == second["releases"]["cached"]
    )
    heard.clear()
    evaluate(unseeded, asked(tasks, "sst2", num_fewshot=2))
    assert once != heard


def test_a_run_that_was_interrupted_goes_on(tasks, heard, tmp_path, monkeypatch):
    evaluate(CONFIG, asked(tasks, "sst2", "swag"))
    whole, heard[:] = heard[:], []
    draws, draw = [], Privatizer.privatize_many

    def stop(*arguments, **options):
        draws.append(1)
        if len(draws) == ROWS + 2:
            raise KeyboardInterrupt
        return draw(*arguments, **options)

    monkeypatch.setattr("textveil_bench.lm_eval.releases.BATCH", 2)
    monkeypatch.setattr(Privatizer, "privatize_many", stop)
    with pytest.raises(KeyboardInterrupt):
        evaluate(CONFIG, asked(tasks, "sst2", "swag"), tmp_path)
    assert not heard
    found = evaluate(CONFIG, asked(tasks, "sst2", "swag"), tmp_path)
    assert found["releases"] == {"documents": 2 * ROWS, "drawn": ROWS, "cached": ROWS}
    assert heard == whole


def test_a_seed_draws_a_document_alike_whatever_is_drawn_beside_it(tasks, heard):
    evaluate(CONFIG, asked(tasks, "sst2"))
    whole, heard[:] = heard[:], []
    evaluate(CONFIG, asked(tasks, "sst2", limit=2))
    assert heard == whole[: len(heard)]
    assert heard
    other, heard[:] = heard[:], []
    evaluate(Config(mechanism=CONFIG.mechanism, epsilon=4.0, seed=4), asked(tasks, "sst2", limit=2))
    assert heard != other


def test_the_statement_covers_all_that_was_shown(tasks):
    found = evaluate(CONFIG, asked(tasks, "sst2", "swag", num_fewshot=1))
    guarantee = found["guarantee"]
    assert (guarantee["mechanism"], guarantee["kind"], guarantee["epsilon"]) == (
        "rankcape",
        "ldp",
        4.0,
    )
    assert guarantee["seeded"]
    assert (
        guarantee["texts"]
        == found["releases"]["documents"]
        == sum(t["documents"] + t["examples"] for t in found["tasks"])
    )
    assert guarantee["words"] == pytest.approx(
        sum(task["words"] for task in found["tasks"]), rel=0.01
    )


def test_what_would_be_privatized_is_said_and_nothing_drawn(tasks, tmp_path, monkeypatch):
    monkeypatch.setattr(Privatizer, "privatize_many", None)
    monkeypatch.setattr(harness, "load_model", None)
    found = preview(CONFIG, asked(tasks, "swag", "mmlu_anatomy", num_fewshot=1, limit=3), tmp_path)
    swag, mmlu = found["tasks"]
    assert swag["privatized"] == ["startphrase", "ending0", "ending1", "ending2", "ending3"]
    assert mmlu["privatized"] == ["question", "choices"]
    assert [(task["documents"], task["num_fewshot"]) for task in (swag, mmlu)] == [(3, 1), (3, 1)]
    assert mmlu["examples"] == 1
    assert found["to_draw"] == 6 + swag["examples"] + 1


def test_a_document_is_plain_data(tasks):
    config = Config(mechanism=CONFIG.mechanism, epsilon=math.inf)
    found = json.loads(json.dumps(evaluate(config, asked(tasks, "sst2")), allow_nan=False))
    assert found["configuration"]["epsilon"] == found["guarantee"]["epsilon"] == "infinite"
    assert "seed" not in found["configuration"]
    assert CANARY not in json.dumps(found)


# ---- refusals ----------------------------------------------------------------------------------------------


def test_a_field_that_was_not_named_is_not_there(tasks, heard):
    with pytest.raises(ModelError, match=r"KeyError.*--fields"):
        evaluate(CONFIG, asked(tasks, "coded", fields={"coded": ("body", "answer")}))
    assert not heard


def test_a_number_that_a_prompt_shows_is_refused(tasks):
    with pytest.raises(InputError, match=r"year must be text.*--keep"):
        evaluate(CONFIG, asked(tasks, "dated"))


def test_documents_that_stay_in_a_task_are_noticed(tasks, monkeypatch):
    monkeypatch.setattr(
        load_library("lm_eval.api.samplers").ContextSampler, "replace_df", lambda self, rows: None
    )
    with pytest.raises(ConfigError, match="keeps its documents elsewhere"):
        preview(CONFIG, asked(tasks, "sst2"))


def test_more_examples_than_there_are(tasks):
    with pytest.raises(ConfigError, match="cannot draw 60 of 6 examples"):
        evaluate(CONFIG, asked(tasks, "sst2", num_fewshot=60))


def test_the_library_is_kept_quiet(capfd, caplog):
    with suppress_output():
        print(CANARY)
        print(CANARY, file=sys.stderr)
        getLogger("lm_eval").warning(CANARY)
    assert capfd.readouterr() == ("", "")
    getLogger("lm_eval").warning("heard")
    assert [record.getMessage() for record in caplog.records] == ["heard"]
