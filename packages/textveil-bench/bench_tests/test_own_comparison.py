"""`bench compare`: what is planned, how attacks and detectors are judged, and a page."""

import json

import pytest

from textveil.cli import main
from textveil.errors import ConfigError, UnknownName
from textveil_bench import detector_comparison as detectors
from textveil_bench import own_comparison as own
from textveil_bench.audit.finding import AuditFinding


def test_names_are_of_one_kind():
    assert own.find_kind(["krr", "noise"]) == "mechanism"
    assert own.find_kind(["patterns"]) == "detector"
    with pytest.raises(ConfigError, match="one kind"):
        own.find_kind(["krr", "bayes"])
    with pytest.raises(UnknownName, match="no mechanism"):
        own.find_kind(["nothing-of-the-kind"])
    with pytest.raises(UnknownName, match="kind"):
        own.find_kind(["krr"], "sampler")


def test_budgets_follow_from_the_claim():
    plan = own.ComparisonPlan(kind="mechanism", names=("krr",), quick=True)
    assert own.choose_budgets("krr", plan) == (3, 6, 9, 12)
    by_distance = own.choose_budgets("noise", plan)
    assert by_distance[3] == pytest.approx(8 * by_distance[0], rel=0.01)
    assert by_distance[0] >= 6


def test_a_mechanism_stands_beside_others_under_all_attacks():
    plan = own.ComparisonPlan(kind="mechanism", names=("krr",), quick=True, budgets=(4.0,))
    attacks, not_run = own._list_attacks(plan, ("a public text",))
    names = {attack["name"] for attack in attacks} | set(not_run)
    assert {"bayes", "learned", "neighbour", "membership", "semantic", "linkage"} <= names
    sweep = own.build_sweep(plan, attacks)
    assert {"krr", "noise", "rankcape", "mask", "uniform"} <= {s.entry for s in sweep.series}
    assert [s.budgets for s in sweep.series if s.entry == "krr"] == [(4.0,)] * 2


@pytest.mark.parametrize(
    ("case", "value", "verdict"),
    [
        (own.SURE_CASE, 0.99, "as it must be"),
        (own.SURE_CASE, 0.5, "WRONG"),
        (own.HOPELESS_CASE, 0.51, "as it must be"),
        (own.HOPELESS_CASE, 0.9, "WRONG"),
    ],
)
def test_an_attack_is_judged_by_cases_whose_answer_is_known(case, value, verdict):
    score = {"metric": "AUC", "unit": "word", "value": value, "baseline": 0.5}
    assert own._judge_attack(case, [score]).startswith(verdict)
    assert "WRONG" not in own._judge_attack(case, [score | {"unit": "text"}])


def test_detectors_are_scored_against_marks():
    prompts = [
        detectors.parse_prompt("Ask [[PERSON|Maria Silva]] now"),
        detectors.parse_prompt("Bread dough"),
    ]
    assert prompts[0] == ("Ask Maria Silva now", (("PERSON", (4, 15)),))
    score = detectors.score_ranges("mine", prompts, [[(4, 9), (10, 15)], [(0, 5)]])
    assert (score.found, score.values, score.touching, score.spans) == (1, 1, 2, 3)
    assert (score.disturbed, score.harmless) == (1, 1)
    half = detectors.score_ranges("half", prompts, [[(4, 9)], []])
    assert (half.found, half.touching, half.disturbed) == (0, 1, 0)


def test_a_detector_gets_a_page_without_a_sweep(tmp_path, capsys):
    assert main(["bench", "compare", "patterns", "--quick", "--output", str(tmp_path / "d")]) == 0
    found = json.loads((tmp_path / "d" / "comparison.json").read_text())
    scores = {score["name"]: score for score in found["scores"]}
    assert scores["all of textveil"]["found"] >= scores["patterns"]["found"] > 0
    page = (tmp_path / "d" / "index.html").read_text()
    assert "By type" in page
    assert "patterns" in capsys.readouterr().out


def test_a_refuted_claim_fails_the_comparison():
    broken = AuditFinding(check="sampled", evidence="proved", verdict="violated", why="")
    plan = own.ComparisonPlan(kind="mechanism", names=("krr",))
    assert own.OwnComparison(plan=plan, rows=[], findings=[broken], page="").has_failed
    assert not own.OwnComparison(plan=plan, rows=[], page="").has_failed


@pytest.mark.slow
def test_a_data_set_is_loaded_and_judged(tmp_path):
    out = tmp_path / "s"
    assert (
        main(["bench", "compare", "opinions", "--quick", "--output", str(out), "--processes", "1"])
        == 0
    )
    found = json.loads((out / "comparison.json").read_text())
    assert ["opinions", "both", "they share no text"] in found["facts"]
    assert found["scores"]
    assert "What is in it" in (out / "index.html").read_text()
