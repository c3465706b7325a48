"""The tables of the documents are the stored rows."""

import gzip
import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bench_tests import synthetic

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
rowfiles = import_module("rowfiles")
report = import_module("report")


@pytest.mark.parametrize("document", report.DOCUMENTS, ids=lambda path: path.name)
def test_tables_are_the_newest_rows(document):
    text = document.read_text(encoding="utf-8")
    assert report.fill(text, report.stored()) == text
    assert sum(text.count(f"<!-- {mark} ") for mark in ("bench", "rates", "equal")) == text.count(
        "<!-- end of bench -->"
    )


@pytest.mark.parametrize(
    "document", ["which.md", "papers.md", "domains.md", "prompts.md", "scoreboard.md"]
)
def test_what_long_runs_found_is_the_stored_rows(document):
    (path,) = (path for path in report.DOCUMENTS if path.name == document)
    text = path.read_text(encoding="utf-8")
    assert report.compared(text) == text


def test_what_risk_says_beside_is_the_stored_rows():
    assert report.NAMED.read_text(encoding="utf-8") == report.named()


@pytest.mark.parametrize(
    ("draw", "stored"),
    [(report.draw, report.PICTURE), (report.draw_domains, report.DOMAINS_PICTURE)],
)
def test_pictures_are_the_stored_rows(draw, stored, tmp_path):
    """Their lines are where the rows are; letters are left out, for fonts differ by machine."""
    draw(tmp_path / "drawn.svg")
    drawn, kept = (
        _lines(path.read_text(encoding="utf-8")) for path in (tmp_path / "drawn.svg", stored)
    )
    assert len(kept) > 8
    assert len(drawn) == len(kept)
    for one, other in zip(drawn, kept, strict=True):
        assert one == pytest.approx(other, abs=0.5)


def test_a_metric_that_no_domain_has_is_an_error():
    with pytest.raises(ValueError, match="no row of a domain has the metric 'nothing'"):
        report.domains("nothing")


def _lines(svg):
    """Coordinates of the curves of a picture."""
    paths = re.findall(
        r'<path d="([^"]+)" clip-path="[^"]+" style="fill: none; stroke: #(?!ddd)', svg
    )
    return [[float(number) for number in re.findall(r"-?[0-9.]+", path)] for path in paths]


def test_the_claims_of_a_paper_stand_with_what_became_of_them(tmp_path):
    gap = {"value": -0.1, "low": -0.2, "high": -0.05}
    says = "-0.100 (-0.200 to -0.050), 2 places; surely so"
    claim: dict[str, Any] = {
        "claim": "a|b",
        "source": "figure 2",
        "data": "sst2",
        "metric": "accuracy",
    }
    claim |= {"answer": "does not hold", "says": says, "gaps": [gap], "comparison": "0123"}
    held = {**claim, "data": "qnli, Gemma 3 270M", "answer": "holds", "comparison": "89ab"}
    held |= {"gaps": [gap, {**gap, "value": 0.02}]}
    found = {"target": "fig-1", "paper": "P (2025)", "claims": [claim, held]}
    (tmp_path / "fig-1.json").write_text(json.dumps(found), encoding="utf-8")
    with gzip.open(tmp_path / "rows.jsonl.gz", "wt", encoding="utf-8") as stored:
        stored.writelines(json.dumps(row) + "\n" for row in synthetic.rows(data=("sst2",), texts=2))
    cost, empty, *lines = report.reproduced(tmp_path).splitlines()
    assert re.fullmatch(r"The \d+ cells took \d+ minutes, one after the other\.", cost)
    assert not empty
    assert lines == [
        "| paper | comparisons | holds | cannot be told | does not hold | not tested |",
        "|---|---|---|---|---|---|",
        "| P (2025) | of the paper | 1 | 0 | 1 | 0 |",
        "",
        "### P (2025)",
        "",
        "| target | claim | what we found |",
        "|---|---|---|",
        "| `fig-1` | a\\|b | **holds**: qnli by Gemma -0.100 / +0.020; **does not hold**: sst2 "
        "-0.100 (-0.200 to -0.050), 2 places, surely so |",
    ]
    other = {**claim, "comparison": "4567", "answer": "not tested", "claim": "ours: b", "gaps": []}
    (tmp_path / "fig-2.json").write_text(
        json.dumps({**found, "target": "fig-2", "claims": [claim, other]}), "utf-8"
    )
    (tmp_path / "fig-3.json").write_text(
        json.dumps({**found, "target": "fig-3", "paper": "Q (2026)", "claims": []}), "utf-8"
    )
    lines = report.reproduced(tmp_path).splitlines()
    assert "| P (2025) | of the paper | 1 | 0 | 1 | 0 |" in lines, "one comparison counts once"
    assert "| P (2025) | ours, beside them | 0 | 0 | 0 | 1 |" in lines
    assert [line for line in lines if line.startswith("| `fig-2`")] == [
        "| `fig-2` | ours: b | **not tested**: sst2 |"
    ]
    assert not any("Q (2026)" in line for line in lines), "it claims nothing"


def test_the_newest_row_of_a_measurement_counts():
    rows = [
        {"what": what, "value": value, "unit": "us", "threads": 2, "commit": "0123456789"}
        for what, value in (
            ("decode, a", 3.0),
            ("decode, b", 2000.4),
            ("other, a", 9.0),
            ("decode, a", 1.25),
        )
    ]
    text = report.fill("x\n<!-- bench decode -->\nold\n<!-- end of bench -->\ny", rows)
    assert "| a | 1.25 | us | 2 | 0123456 |\n| b | 2,000 | us | 2 | 0123456 |" in text
    assert "old" not in text
    assert "9" not in text.replace("0123456789", "")


def test_rates_stand_by_release_and_metric_with_their_intervals():
    rows = [
        {
            "what": f"attacks, a, {release}, {metric}",
            "release": release,
            "metric": metric,
            **numbers,
        }
        for release, metric, numbers in (
            ("noise", "cosine >= 0.6", {"value": 0.5, "low": 0.4, "high": 0.6}),
            ("noise", "left", {"value": 12.34, "low": None, "high": None}),
            ("polar", "cosine >= 0.6", {"value": 0.25, "low": 0.2, "high": 0.3}),
        )
    ]
    text = report.fill(
        "<!-- rates attacks, a | cosine >= 0.6 | left -->\nold\n<!-- end of bench -->", rows
    )
    assert "| release | cosine >= 0.6 | left |\n|---|---|---|\n" in text
    assert (
        "| noise | 0.500 (0.400 to 0.600) | 12.3 |\n| polar | 0.250 (0.200 to 0.300) |  |\n" in text
    )
    assert "old" not in text


def evidence(series, budget, **metrics):
    """Rows of one budget of a series."""
    release = f"{series}, epsilon {budget:g}"
    shared = {"series": series, "release": release, "low": None, "high": None}
    return [
        {"what": f"evidence, a, {release}: {metric}", "metric": metric, "value": value, **shared}
        for metric, value in metrics.items()
    ]


def test_a_metric_at_equal_risk_lies_between_the_budgets_about_it():
    rows = [
        *evidence("krr", 9, MAP=0.3, cosine=0.5),
        *evidence("krr", 7, MAP=0.1, cosine=0.2),
        *evidence("noise", 40, MAP=0.05, cosine=0.1),
        *evidence("noise", 60, MAP=0.15, cosine=0.4),
        *evidence("other", 1, MAP=0.9, cosine=0.9),
    ]
    text = report.fill(
        "<!-- equal evidence, a | MAP | .10 .15 .30 .5 | cosine -->\nold\n<!-- end of bench -->",
        rows,
    )
    assert "| cosine at MAP of | .10 | .15 | .30 | .5 |\n|---|---|---|---|---|\n" in text
    assert "| krr | 0.200 | 0.275 | 0.500 |  |\n| noise | 0.250 | 0.400 |  |  |\n\n<!-- end" in text
    assert "old" not in text
    assert "other" not in text


def test_of_a_series_only_the_last_run_counts(tmp_path, monkeypatch):
    lines = [
        {"series": "krr", "run": 1, "value": 1},
        {"series": "noise", "run": 1, "value": 2},
        {"series": "krr", "run": 2, "value": 3},
    ]
    (tmp_path / "evidence.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    monkeypatch.setattr(report, "EVIDENCE", tmp_path / "evidence.jsonl")
    for name in ("ROWS", "RATES", "STORES", "E2E", "ENGINES", "CODEBOOKS"):
        monkeypatch.setattr(report, name, tmp_path / "none")
    assert [row["value"] for row in report.stored()] == [2, 3]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_a_row_takes_the_place_of_the_older_one(tmp_path, name):
    path = tmp_path / "rows" / name
    rowfiles.keep(path, [{"what": "a", "value": 1}, {"what": "b", "value": 2}])
    rowfiles.keep(path, [{"what": "a", "value": 3, "note": "ü"}])
    assert rowfiles.read(path) == [
        {"what": "a", "value": 3, "note": "ü"},
        {"what": "b", "value": 2},
    ]
    assert [each.name for each in path.parent.iterdir()] == [name]
    before = path.read_bytes()
    rowfiles.keep(path, rowfiles.read(path))
    assert path.read_bytes() == before


def test_the_readme_says_what_it_costs_as_the_rows_do():
    rows = {row["what"]: row["value"] for row in report.stored() if row["what"].startswith("s")}
    one = "startup, protect, one sentence"
    assert (
        f"{rows[f'{one}, time']:.1f} s of processor time, {rows[f'{one}, memory']:.0f} MB of memory"
        f" · wheel {rows['size, wheel']:.0f} MB, "
        f"installed {rows['size, core installed, pip included']:.0f} MB"
    ) in (report.ROOT / "README.md").read_text(encoding="utf-8")
