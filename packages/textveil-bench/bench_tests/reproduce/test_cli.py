"""The verb reproduce, on a target of its own over invented sentences."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from textveil import cli
from textveil_bench import rows
from textveil_bench.reproduce import targets
from textveil_bench.reproduce.document import build_document, list_metrics
from textveil_bench.reproduce.run import ReproductionOptions, reproduce
from textveil_bench.tasks import small_model

TARGET = """
title: "Made up, figure 1: likeness against reconstruction"
paper: "Nobody"
shows: "What anything costs."
sweep:
  name: made-up
  seeds: [1]
  limit: 8
  common: {table.name: minilm-s}
  data: [{name: opinions, task: meaning}]
  attacks: [neighbour]
  baselines: [identity]
  entries:
    - {name: noise, set: {mechanism.name: noise}, budget: {mechanism.eta: [30, 400]}}
panels:
  - {name: opinions, quick: {limit: 4}}
  - {name: asked, needs: llm}
over: [cosine of texts, {metric: nothing, source: nobody}]
published:
  - {where: {entry: identity}, metric: cosine of texts, value: 1.0, source: table 1}
  - {where: {entry: santext}, metric: cosine of texts, value: 0.5, source: table 1}
expect:
  - claim: "more budget keeps more"
    source: section 2
    series: [{entry: noise, budget: last}, {entry: noise, budget: first}]
    metric: cosine of texts
  - claim: "more budget hides more"
    source: section 2
    series: [{entry: noise, budget: first}, {entry: noise, budget: last}]
    metric: {metric: Pr@5, setting: {distance: cosine}}
    is: above
differs: ["Everything differs."]
contradicts: ["Nothing holds."]
"""


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "made-up-fig1.yaml").write_text(TARGET, encoding="utf-8")
    (conf / "stamp-alone.yaml").write_text(
        "{title: 'A table', paper: p, shows: s, computed: stamp-budgets, differs: [d]}",
        encoding="utf-8",
    )
    (conf / "cape-drawn.yaml").write_text(
        "{title: 'A histogram', paper: p, shows: s, computed: cape-distances, differs: [d]}",
        encoding="utf-8",
    )
    monkeypatch.setattr(targets, "CONF", conf)
    monkeypatch.delenv("TEXTVEIL_CORPORA", raising=False)


def run(capsys, *arguments):
    code = cli.main(["reproduce", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_targets_are_listed(capsys):
    code, out, _ = run(capsys)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == targets.list_names()
    assert "d-chi-STENCIL, figure 4: accuracy" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["made-up-fig2"], "did you mean 'made-up-fig1'"),
        (["made-up-fig1", "--quick", "--full"], "--quick or --full"),
        (["made-up-fig1", "--upstream", "http://localhost:1/v1"], "both --upstream and --model"),
        (["made-up-fig1", "--folder", "/nowhere/at/all"], "folder of corpora"),
    ],
)
def test_wrong_usage_is_one_line(capsys, made_up, tmp_path, arguments, says):
    code, out, err = run(capsys, *arguments, "--output", tmp_path / "out", "--processes", 1)
    assert code == 2
    assert out == ""
    assert says in err
    assert len(err.splitlines()) == 1


def test_a_dry_run_says_what_there_is_to_do(capsys, made_up, tmp_path):
    code, out, _ = run(capsys, "all", "--dry-run", "--output", tmp_path / "out")
    assert code == 0
    assert "made-up-fig1: opinions\n  sweep made-up: 3 cells, 0 already computed" in out
    assert "made-up-fig1: asked: not run: needs an LLM" in out
    assert "stamp-alone: the table stamp-budgets" in out
    assert not (tmp_path / "out").exists()


def test_figures_are_files_on_request(capsys, made_up, tmp_path):
    for target in ("made-up-fig1", "cape-drawn"):
        code, _, err = run(
            capsys, target, "--output", tmp_path / "out", "--figures", tmp_path / "figures"
        )
        assert code == 0, err
        names = [path.name for path in sorted((tmp_path / "figures" / target).iterdir())]
        assert {name.rpartition(".")[2] for name in names} == {"csv", "png", "svg"}
        assert len(names) == 3 * len({name.rpartition(".")[0] for name in names})
    code, _, err = run(capsys, "cape-drawn", "--dry-run", "--figures", tmp_path / "figures")
    assert (code, "leave out --figures" in err) == (2, True)


def test_a_target_is_run_and_goes_on_where_it_was(capsys, made_up, tmp_path):
    folder = tmp_path / "out"
    code, out, _ = run(capsys, "made-up-fig1", "--output", folder, "--processes", 1)
    assert code == 0
    assert "opinions: 8 examples, seeds 1" in out
    holds, fails = (
        next(line for line in out.splitlines() if f"more budget {what}" in line)
        for what in ("keeps", "hides")
    )
    assert holds.strip().startswith("holds")
    assert fails.strip().startswith("does not hold")
    assert "our interval holds the paper's value" in out
    assert "1 of 2 published values have no value of ours beside them." in out
    assert "asked: not run: needs an LLM" in out
    assert "- Everything differs." in out
    assert "- Nothing holds." in out
    found = json.loads((folder / "made-up-fig1.json").read_text(encoding="utf-8"))
    assert [cell["series"] for cell in found["cells"]] == ["identity", "noise", "noise"]
    assert [claim["answer"] for claim in found["claims"]] == ["holds", "does not hold"]
    page = (folder / "made-up-fig1.html").read_text(encoding="utf-8")
    assert page.startswith("<!")
    for claim in found["claims"]:
        row = next(
            line for line in page.splitlines() if f'<th scope="row">{claim["claim"]}</th>' in line
        )
        assert f"<td>{claim['answer']}</td>" in row
    assert "our interval holds the paper&#x27;s value" in page
    for title, sentence in (
        ("Panels that were not run", "asked: needs an LLM"),
        ("Differences from the paper", "Everything differs."),
        ("Errors of the paper", "Nothing holds."),
    ):
        assert f">{title}</a>" in page, "in the contents"
        assert f"<li>{sentence}</li>" in page.partition(f">{title}</h2>")[2].partition("<h2")[0]
    assert (
        "meaning cosine of texts over the budget"
        in page.partition(">The paper&#x27;s claims in our rows</h2>")[0]
    )
    before = rows.read([folder])

    code, out, _ = run(capsys, "made-up-fig1", "--output", folder, "--processes", 1, "--json")
    assert code == 0
    again = json.loads(out)
    assert again == found
    assert rows.read([folder]) == before


@pytest.mark.slow
def test_a_small_language_model_is_asked_if_wanted_and_shown_if_stored(
    capsys, made_up, tmp_path, monkeypatch
):
    judged = "{name: opinions, task: {name: continued, shots: 1}, as_name: 'opinions, small'}"
    panel = f"  - {{name: small, needs: small, changes: {{data: [{judged}], baselines: [], attacks: []}}}}\n"
    path = Path(str(targets.CONF / "made-up-fig1.yaml"))
    path.write_text(TARGET.replace("over:", panel + "over:"), encoding="utf-8")
    likely = SimpleNamespace(
        predict_tokens=lambda prompt: {" positive": -1.0, " negative": -1.0 - len(prompt) % 3}
    )
    monkeypatch.setattr(small_model, "get_model", lambda: likely)
    given = ("made-up-fig1", "--output", tmp_path / "out", "--processes", 1)
    assert "small: not run: needs --generative" in run(capsys, *given)[1]
    code, out, _ = run(capsys, *given, "--generative")
    assert code == 0
    assert "opinions, small: 8 examples" in out
    assert "small: not run" not in out
    code, out, _ = run(
        capsys, "made-up-fig1", "--rows", tmp_path / "out", "--output", tmp_path / "pages"
    )
    assert "opinions, small: 8 examples" in out
    assert "asked: not run: needs an LLM" in out


def test_a_quick_run_says_that_it_says_nothing(capsys, made_up, tmp_path):
    code, out, _ = run(
        capsys, "made-up-fig1", "--quick", "--output", tmp_path / "out", "--processes", 1
    )
    assert code == 0
    assert "it cannot compare mechanisms" in out
    assert "opinions: 4 examples" in out
    assert (tmp_path / "out" / "made-up-fig1-quick.json").exists()
    assert "it cannot compare mechanisms" in (
        tmp_path / "out" / "made-up-fig1-quick.html"
    ).read_text("utf-8")


def test_a_target_may_be_a_table_alone(capsys, made_up, tmp_path):
    code, out, _ = run(capsys, "stamp-alone", "--output", tmp_path / "out")
    assert code == 0
    assert "Local DP of a word of groups 1, 2, 3, 4" in out
    assert "150, 50, 450, 350" in out
    page = (tmp_path / "out" / "stamp-alone.html").read_text(encoding="utf-8")
    assert "Local DP of a word of groups 1, 2, 3, 4" in page
    assert "150, 50, 450, 350" in page


@pytest.mark.slow
def test_stored_rows_are_shown_without_data_and_without_a_run(
    capsys, made_up, tmp_path, monkeypatch
):
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    run(capsys, "all", "--output", first, "--processes", 1)
    run(
        capsys, "made-up-fig1", "--quick", "--output", first, "--processes", 1
    )  # with less data, and not asked for
    monkeypatch.setattr("textveil_bench.reproduce.run.compute", None)
    monkeypatch.setattr("textveil_bench.run.load", None)
    (first / "rows.jsonl.gz").write_bytes(gzip.compress((first / "rows.jsonl").read_bytes()))
    (first / "rows.jsonl").unlink()

    with monkeypatch.context() as patched:
        patched.setattr(
            "textveil_bench.reproduce.run.read_circumstances", None
        )  # those of what computed the tables stay
        code, out, _ = run(capsys, "all", "--rows", first, "--output", second)
    assert code == 0
    assert "opinions: 8 examples, seeds 1" in out
    for name in ("made-up-fig1", "stamp-alone", "cape-drawn"):
        one, other = (
            json.loads((folder / f"{name}.json").read_text("utf-8")) for folder in (first, second)
        )
        assert one == other
    pages = [path.name for path in sorted(second.glob("*.html"))]
    assert pages == ["cape-drawn.html", "index.html", "made-up-fig1.html", "stamp-alone.html"]
    assert (second / "cape-drawn.html").read_text("utf-8").count("<figure>") == 1

    for broken in ("[", '{"tables": [{"title": "a"}]}'):
        (first / "stamp-alone.json").write_text(broken, encoding="utf-8")
        code, _, err = run(capsys, "stamp-alone", "--rows", first, "--output", third)
        assert (code, "stamp-alone.json is not a document of an earlier run" in err) == (2, True)
    (first / "stamp-alone.json").unlink()
    code, out, _ = run(capsys, "stamp-alone", "--rows", first, "--output", third)
    assert (code, "the table stamp-budgets: not run: no rows of it are stored" in out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--rows", "nowhere"], "--rows must be the folder of an earlier run"),
        (["--rows", ".", "--dry-run"], "leave out --dry-run"),
    ],
)
def test_rows_are_a_folder_and_nothing_else_is_asked(capsys, made_up, arguments, says):
    code, _, err = run(capsys, "all", *arguments)
    assert (code, says in err) == (2, True)


def test_several_targets_have_a_page_that_leads_to_theirs(capsys, made_up, tmp_path):
    run(capsys, "all", "--quick", "--output", tmp_path / "out", "--processes", 1)
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert 'href="made-up-fig1-quick.html"' in page
    assert "it cannot compare mechanisms" in page
    assert page.count("<figure>") >= 1
    assert "more budget keeps more" in page
    assert "Local DP of a word of groups 1, 2, 3, 4" in page, "a table stands there as it is"
    assert "asked: not run: needs an LLM" in page


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A folder for the rows and judges of several targets: what one has computed, no other computes again."""
    return tmp_path_factory.mktemp("shared")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["stencil-fig2", "stencil-fig4", "stamp-table1", "stamp-fig5", "stamp-fig6", "stamp-fig7-10"],
)
def test_what_targets_look_at_is_in_their_rows(name, shared, monkeypatch):
    """One value of every grid and budget is enough to see that."""
    monkeypatch.delenv("TEXTVEIL_CORPORA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared))
    target = targets.load_target(name)
    made = reproduce(
        replace(target, quick={**target.quick, "thin": 1}),
        shared / "rows",
        ReproductionOptions(scale="quick"),
    )
    found = {
        figure["metric"] for cell in build_document(made)["cells"] for figure in cell["figures"]
    }
    wanted = {metric.title for metric in list_metrics(target)}
    assert wanted - found <= {"exposed (unigram)"}, "of a panel that quick runs leave out"
    assert made.verdicts or not target.expect
