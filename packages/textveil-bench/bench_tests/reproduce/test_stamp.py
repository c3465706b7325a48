import math
from dataclasses import replace
from typing import Any

import pytest

from textveil.errors import UnknownName
from textveil.models import Prompts, RequestRecorder
from textveil.table.embedding import load_table
from textveil_bench import run as runs
from textveil_bench.reproduce import stamp
from textveil_bench.reproduce.computed import ComputeOptions, compute
from textveil_bench.reproduce.run import ReproductionOptions, build_compute_options


def test_what_the_vectors_promise_in_local_dp():
    found = compute("stamp-budgets", ComputeOptions())
    table = load_table("minilm-s")
    vector, paper, code, laplace = map(str, found.rows[0])
    assert vector == "150, 50, 450, 350"
    assert numbers(paper) == pytest.approx(
        [each * table.diameter for each in (150, 50, 450, 350)], rel=1e-3
    )
    assert numbers(code) == pytest.approx([each / math.pi for each in numbers(paper)], rel=1e-3)
    share = table.l1_diameter / table.coordinate_range
    assert numbers(laplace) == pytest.approx(
        [each * share for each in (150, 50, 450, 350)], rel=1e-3
    )
    assert len(found.rows) == 5
    assert "3.09 times" in found.notes[1]


def numbers(spelled):
    return [float(each) for each in spelled.split(", ")]


def test_repaired_releases_are_judged_beside_the_others(openai_server, monkeypatch, tmp_path):
    monkeypatch.delenv("TEXTVEIL_CORPORA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked = ComputeOptions(scale="quick", endpoint={"url": openai_server, "model": "echo"})
    found = compute("stamp-repaired", asked)
    assert [row[:4] for row in found.rows] == [
        ("opinions", name, 4, "accuracy")
        for name in ("STAMP with polar", "uniform laplace", "uniform laplace, local DP of polar")
    ]
    figures: list[Any] = [row[4:] for row in found.rows]
    for released, repaired, low, high in figures:  # the model gives back what it was sent
        assert released == repaired
        assert low <= 0 <= high


@pytest.mark.parametrize("name", ["stamp-repaired", "stamp-repaired-answers"])
def test_a_preview_of_repair_counts_requests_and_draws_nothing(monkeypatch, tmp_path, name):
    """The addressee does not exist, either."""
    monkeypatch.delenv("TEXTVEIL_CORPORA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(stamp, "_release", None)
    monkeypatch.setattr(runs, "load_judges", None)
    recorder = RequestRecorder()
    endpoint = {"url": "http://127.0.0.1:9/v1", "model": "toy", "answers": recorder}
    compute(name, ComputeOptions(scale="quick", endpoint=endpoint, is_preview=True))
    repaired = 3 * 4
    assert recorder.estimate.asked == repaired * (3 if name.endswith("answers") else 1)


def test_repair_is_asked_for_in_the_words_of_a_file(openai_server, monkeypatch, tmp_path):
    monkeypatch.delenv("TEXTVEIL_CORPORA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sent = []

    class Recorder(RequestRecorder):
        def fetch(self, question, send):
            sent.append(question.system)
            return super().fetch(question, send)

    endpoint = {"url": openai_server, "model": "echo", "answers": Recorder()}
    prompts = Prompts.parse({"repair": {"system": "Tidy up.", "user": "{text}"}})
    how = ReproductionOptions(scale="quick", endpoint=endpoint, prompts=prompts)
    options = build_compute_options(how, lambda *_: None)
    compute("stamp-repaired", replace(options, endpoint=endpoint, is_preview=True))
    assert set(sent) == {"Tidy up."}


def test_mean_budgets_are_those_of_the_words_released(monkeypatch, tmp_path):
    monkeypatch.delenv("TEXTVEIL_CORPORA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = compute("stamp-means", ComputeOptions(scale="quick"))
    rows: list[dict[str, Any]] = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    assert {row["data"] for row in rows} == {"fantasy-generated", "opinions"}
    for row in rows:
        counts = [row[f"words of group {group}"] for group in (1, 2, 3, 4)]
        spent = sum(count * part for count, part in zip(counts, (2, 1, 4, 3), strict=True))
        assert row["mean epsilon"] == pytest.approx(row["base"] * spent / sum(counts))
    assert any(row["words of group 3"] for row in rows), "its mean is not that of one group alone"


def test_a_table_of_no_name_is_refused():
    with pytest.raises(UnknownName, match="did you mean 'stamp-budgets'"):
        compute("stamp-budget", ComputeOptions())
