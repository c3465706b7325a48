"""Grids: a row holds the model's score and the attack's success on the same releases."""

import json
from pathlib import Path

import pytest
import yaml

from bench_tests.lm_eval.conftest import CANARY, ROWS
from textveil import cli
from textveil.errors import ConfigError, UnknownName
from textveil_bench import run
from textveil_bench.data import load
from textveil_bench.lm_eval import EvaluationOptions, build_grid
from textveil_bench.lm_eval.documents import HarnessJudge
from textveil_bench.trials import ReleasedExample

GRID = {
    "name": "grid",
    "seeds": [1],
    "common": {"table.name": "minilm-s"},
    "attacks": ["neighbour"],
    "entries": [
        {
            "name": "noise",
            "set": {"mechanism.name": "noise"},
            "budget": {"mechanism.eta": [20, 500]},
        },
        {"name": "krr", "set": {"mechanism.name": "krr"}, "budget": {"epsilon": [0.01]}},
    ],
}


@pytest.fixture
def grid(tmp_path: Path) -> str:
    path = tmp_path / "grid.yaml"
    path.write_text(yaml.safe_dump(GRID | {"data": ["sst2"]}))
    return str(path)


def options(tasks, *names, **more):
    return EvaluationOptions(tasks=names, include_path=tasks, **{"model": "dummy", **more})


def test_a_row_has_the_score_and_the_risk_of_the_same_releases(tasks, model, grid, tmp_path, heard):
    sweep = build_grid(
        grid, options(tasks, "sst2", "swag", model="hf", model_args=model, baseline=True)
    )
    rows = run.run(sweep, tmp_path / "rows")
    assert len(rows) == 2 * (1 + 3)
    for row in rows:
        scores = {(score["source"].split()[0], score["metric"]) for score in row["scores"]}
        assert ("lm-eval", "acc") in scores
        assert row["entry"] == "identity" or ("neighbour", "Pr@5") in scores
        assert len(row["scores"][0]["values"]) == ROWS
    asked_for_originals = [text for text in heard if CANARY in text]
    heard.clear()
    assert asked_for_originals  # by the baseline alone
    assert len(run.run(sweep, tmp_path / "rows")) == len(rows)
    assert heard == []  # the rows are there


def test_no_original_reaches_the_model_without_a_baseline(tasks, grid, tmp_path, heard):
    run.run(build_grid(grid, options(tasks, "mmlu_anatomy", "story")), tmp_path / "rows")
    assert heard
    assert not [text for text in heard if CANARY in text.lower()]


def test_unchanged_documents_score_as_the_library_scores_them(tasks, model):
    data = load("lm-eval:sst2", limit=4, include_path=tasks)
    assert len(data) == 4
    judge = HarnessJudge(model_args=model, options={"include_path": tasks})
    trials = [ReleasedExample.build_unchanged(example) for example in data.examples]
    (score,) = judge.score(data, trials)
    from textveil_bench.lm_eval import harness

    loaded = harness.load_tasks(["sst2"], tasks)
    rows = harness.evaluate(harness.load_model("hf", model), loaded, seed=1234, limit=4)
    assert score.values.mean() == rows[0]["value"]
    assert score.headline
    with pytest.raises(ConfigError, match="must be those of the data set"):
        list(judge.score(data, trials[::-1]))


def test_a_figure_of_a_paper_is_a_grid(tasks):
    sweep = build_grid("stencil-fig2", options(tasks, "sst2"))
    assert {entry.name for entry in sweep.entries} == {
        "noise",
        "stencil",
        "custext+",
        "d-chi-stencil",
    }
    assert [source.row_name for source in sweep.data] == ["sst2"]
    with pytest.raises(UnknownName):
        build_grid("nonsense", options(tasks, "sst2"))
    with pytest.raises(ConfigError, match="no sweep"):
        build_grid("efficiency", options(tasks, "sst2"))
    with pytest.raises(ConfigError, match="num_fewshot"):
        build_grid("stencil-fig2", options(tasks, "sst2", num_fewshot=2))


def test_the_command(tasks, grid, tmp_path, capsys):
    arguments = ["lm-eval", "--tasks", "sst2", "--include_path", tasks, "--model", "dummy"]
    arguments += ["--grid", grid, "--output", str(tmp_path / "rows")]
    assert cli.main([*arguments, "--dry-run"]) == 0
    assert "3 cells" in capsys.readouterr().out
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    assert "lm-eval (dummy) acc" in out
    assert "neighbour Pr@5 cosine" in out
    assert cli.main([*arguments, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["metric"] for line in lines} >= {"acc", "Pr@5"}
    for wrong, says in (
        (["--epsilon", "3"], "--grid has its own"),
        (["--only", "nonsense"], "nonsense"),
        (["--seeds", "x"], "--seeds"),
    ):
        assert cli.main([*arguments, *wrong]) == 2
        assert says in capsys.readouterr().err
    assert cli.main([*arguments[:-4], "--seeds", "1"]) == 2
    assert "for --grid" in capsys.readouterr().err


def test_a_key_among_the_arguments_of_a_model_is_shown_nowhere():
    judge = HarnessJudge(model="local-completions", model_args="model=m,api_key=zxkey")
    assert "zxkey" not in repr(judge)
    assert judge.name == "lm-eval (m)"
