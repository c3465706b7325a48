"""The search for budgets looks at what is run: with the questions of the examples, and detectors that remember."""

import json
from pathlib import Path

import pytest

from textveil.errors import ConfigError, InputError
from textveil_bench import calibrate, run
from textveil_bench.detections import Remembered
from textveil_bench.spec import PlannedSeries, Sweep

QUESTIONS = [
    ("where is the harbour", "the harbour is in the south", "south"),
    ("who sold bread", "the old baker sold bread", "the old baker"),
]

KRR = {"mechanism.name": "krr"}
BY_QUESTION = {**KRR, "protect.importance": "cosine", "groups.budgets": [1, 1, 2, 1]}


def searched(data: dict, options: dict, path: str) -> tuple[Sweep, PlannedSeries]:
    entry = {"name": "krr", "set": options, "budget": {path: "risk"}}
    common = {"table.name": "minilm-s"}
    sweep = Sweep.read(
        {"name": "small", "common": common, "data": [data], "entries": [entry], "baselines": [], "risk": {"words": 50}}
    )
    return sweep, sweep.series[0]


@pytest.fixture
def reading(tmp_path: Path) -> dict:
    names = ("question", "context", "answer")
    lines = [json.dumps(dict(zip(names, each, strict=True))) for each in QUESTIONS]
    (tmp_path / "asked-train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = {"fields": ["question", "context"], "answers": "answer"}
    return {"name": str(tmp_path / "asked-{split}.jsonl"), "columns": columns}


@pytest.fixture
def plain(tmp_path: Path) -> dict:
    (tmp_path / "plain-train.csv").write_text("text\nthe quiet harbour\nan old baker sold bread\n", encoding="utf-8")
    return {"name": str(tmp_path / "plain-{split}.csv"), "columns": {"fields": ["text"]}}


def find(sweep: Sweep, series: PlannedSeries, monkeypatch) -> dict:
    """What a search is given."""
    found: dict = {}
    monkeypatch.setattr(run, "budgets", lambda make, texts, *_, **named: found.update(named, make=make, texts=texts))
    data = run.calibration_data(run.calibrating(sweep, series), sweep.risk.words, run.Folders())
    run._find(("", series, sweep, data))
    return found


def test_a_search_asks_the_questions_of_the_examples(reading, monkeypatch):
    sweep, series = searched(reading, BY_QUESTION, "groups.base")
    asked = find(sweep, series, monkeypatch)
    assert asked["queries"] == ("where is the harbour", "who sold bread")
    assert calibrate.share(asked["make"], asked["texts"], "unigram", 60, asked["queries"]) == 1
    with pytest.raises(InputError, match="one query per text"):
        calibrate.share(asked["make"], asked["texts"], "unigram", 60)


def test_a_search_looks_at_each_text_once(plain, monkeypatch):
    sweep, series = searched(plain, {**KRR, "protect.detectors": ["patterns"]}, "epsilon")
    asked = find(sweep, series, monkeypatch)
    assert asked["queries"] is None
    made = [asked["make"](budget) for budget in (1, 2)]
    assert all(isinstance(each, Remembered) for one in made for each in one.grouping.options.detectors)
    assert made[0].grouping.options.detectors == made[1].grouping.options.detectors


def test_questions_are_a_part_of_the_key_only_where_they_are_asked(reading, plain, monkeypatch):
    places = run.Folders()
    key = run.search_key(*searched(plain, {**KRR, "protect.detectors": ["patterns"]}, "epsilon"), places)
    assert key == "3777ebc7c868213d65ccffbf", "budgets that were found are found again"
    sweep, series = searched(reading, BY_QUESTION, "groups.base")
    before = run.search_key(sweep, series, places)
    _, unasked = searched(reading, {**BY_QUESTION, "protect.task": "bread"}, "groups.base")
    assert run._queries(unasked, run.calibration_data(run.calibrating(sweep, unasked), 50, places)) is None
    monkeypatch.setattr(run, "_queries", lambda *_: ("another question", "one more"))
    assert run.search_key(sweep, series, places) != before


def test_data_without_questions_cannot_be_searched(plain):
    sweep, series = searched(plain, BY_QUESTION, "groups.base")
    with pytest.raises(ConfigError, match="has no questions"):
        run.search_key(sweep, series, run.Folders())
