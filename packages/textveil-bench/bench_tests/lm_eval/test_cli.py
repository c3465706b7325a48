import json
import subprocess
import sys

import pytest

from bench_tests.lm_eval.conftest import CANARY, ROWS
from textveil.cli import main

BUDGET = ("--mechanism", "rankcape", "--epsilon", "4")


@pytest.fixture
def run(capsys, tasks):
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["lm-eval", "--include_path", tasks, "--model", "dummy", *arguments])
        return code, *capsys.readouterr()

    return run


def test_results_as_a_table_and_the_statement_beside_it(run):
    code, out, err = run("--tasks", "sst2,swag", *BUDGET, "--num_fewshot", "1", "--limit", "3")
    assert code == 0
    header, _, *rows = [line.split() for line in out.splitlines() if line.strip()]
    assert header == ["task", "metric", "value", "stderr", "n"]
    assert [(*row[:2], row[-1]) for row in rows] == [
        ("sst2", "acc", "3"),
        ("swag", "acc", "3"),
        ("swag", "acc_norm", "3"),
    ]
    assert err.startswith("rankcape: each of ")
    assert CANARY not in out + err


def test_results_as_json(run, tmp_path):
    file = tmp_path / "found.json"
    code, out, err = run("--tasks", "sst2", *BUDGET, "--seed", "5", "--json", "--output", str(file))
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found == json.loads(file.read_text())
    assert found["results"][0]["n"] == ROWS
    assert found["guarantee"]["epsilon"] == 4.0
    assert found["circumstances"]["versions"].keys() >= {"textveil", "lm-eval", "datasets"}
    assert found["seeded"]
    assert CANARY not in out


def test_originals_beside_releases_and_a_warning(run):
    code, out, err = run("--tasks", "sst2", *BUDGET, "--baseline")
    assert code == 0
    assert "originals" in out
    assert err.startswith("textveil: warning: the baseline shows the model all documents unchanged")


def test_a_dry_run(run, tmp_path):
    arguments = ("--tasks", "mmlu_anatomy", *BUDGET, "--keep-choices", "--cache", str(tmp_path))
    code, out, err = run(*arguments, "--dry-run")
    assert (code, err) == (
        0,
        f"{ROWS} releases would be drawn.\nmmlu_anatomy: not privatized: choices.\n",
    )
    assert [line.split()[:4] for line in out.splitlines() if "mmlu" in line] == [
        ["mmlu_anatomy", "question", "choices", str(ROWS)]
    ]
    assert run(*arguments)[0] == 0
    assert run(*arguments, "--dry-run")[2].startswith("0 releases")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--tasks", "sst2", "--mechanism", "noise"), "needs a budget"),
        (("--tasks", ",", *BUDGET), "tasks"),
        (("--tasks", "dated", *BUDGET), "--keep shows it unchanged"),
        (("--tasks", "coded", *BUDGET), "--fields coded=FIELD,FIELD"),
        (("--tasks", "coded", *BUDGET, "--fields", "coded"), "--fields must be TASK=FIELD,FIELD"),
        (("--tasks", "sst2", *BUDGET, "--fields", "sst3=sentence"), "did you mean 'sst2'"),
        (("--tasks", "sst2", *BUDGET, "--limit", "0"), "limit must be greater than or equal to 1"),
        (
            ("--tasks", "sst2", *BUDGET, "--baseline", "--model", "local-completions"),
            "leave it out",
        ),
        (("--tasks", "sst2", *BUDGET, "--model", "hf"), "pretrained="),
    ],
)
def test_what_is_refused(run, arguments, says):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert says in line
    assert line.startswith("textveil: error: ")


def test_help_needs_no_library():
    script = "import sys\nfrom textveil.cli import main\nmain(['lm-eval', '--help'])\n"
    script += "sys.exit(len({'lm_eval', 'torch', 'datasets'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0
