"""The tables of the documents are the stored rows."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
report = import_module("report")


@pytest.mark.parametrize("document", report.DOCUMENTS, ids=lambda path: path.name)
def test_tables_are_the_newest_rows(document):
    text = document.read_text(encoding="utf-8")
    assert report.fill(text, report.stored()) == text
    assert text.count("<!-- bench ") + text.count("<!-- rates ") == text.count("<!-- end of bench -->")


def test_the_newest_row_of_a_measurement_counts():
    rows = [
        {"what": what, "value": value, "unit": "us", "threads": 2, "commit": "0123456789"}
        for what, value in (("decode, a", 3.0), ("decode, b", 2000.4), ("other, a", 9.0), ("decode, a", 1.25))
    ]
    text = report.fill("x\n<!-- bench decode -->\nold\n<!-- end of bench -->\ny", rows)
    assert "| a | 1.25 | us | 2 | 0123456 |\n| b | 2,000 | us | 2 | 0123456 |" in text
    assert "old" not in text
    assert "9" not in text.replace("0123456789", "")


def test_rates_stand_by_release_and_metric_with_their_intervals():
    rows = [
        {"what": f"attacks, a, {release}, {metric}", "release": release, "metric": metric, **numbers}
        for release, metric, numbers in (
            ("noise", "cosine >= 0.6", {"value": 0.5, "low": 0.4, "high": 0.6}),
            ("noise", "left", {"value": 12.34, "low": None, "high": None}),
            ("polar", "cosine >= 0.6", {"value": 0.25, "low": 0.2, "high": 0.3}),
        )
    ]
    text = report.fill("<!-- rates attacks, a | cosine >= 0.6 | left -->\nold\n<!-- end of bench -->", rows)
    assert "| release | cosine >= 0.6 | left |\n|---|---|---|\n" in text
    assert "| noise | 0.500 (0.400 to 0.600) | 12.3 |\n| polar | 0.250 (0.200 to 0.300) |  |\n" in text
    assert "old" not in text
