import json
import subprocess
import sys

import numpy as np
import pytest
from tests.fixtures import NOUNS, gaussian_rows

from textveil.errors import ConfigError, MechanismError
from textveil.table import store, vectors
from textveil.text.frequency import load_counts
from textveil_bench.efficiency import MeasuredSetup, Workload, draw_texts, measure
from textveil_bench.process_usage import measure_best_run, measure_best_seconds, measure_run

LOAD = Workload(words=5, texts=2, batch=3)
METRICS = [
    *("setup", "setup: packages", "setup: table", "setup: mechanism"),
    *("one text", "a text of two", "a word of many"),
    *("memory: packages", "memory: setup", "memory"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("tables")
    lines = [
        f"{word} {' '.join(map(str, row))}"
        for word, row in zip(NOUNS, gaussian_rows(60, 8, 1), strict=True)
    ]
    (where / "tiny.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with vectors.open_vectors(str(where / "tiny.txt")) as found:
        store.build(found, where / "tiny")
    return str(where / "tiny")


def subject(folder, **options):
    return MeasuredSetup(
        name="placeholder", set={"table.name": folder, "mechanism.name": "placeholder", **options}
    )


@pytest.mark.slow
def test_every_figure_of_a_mechanism_is_measured_in_a_process_of_its_own(folder):
    told = []
    found = list(measure([subject(folder)], LOAD, report=lambda *step: told.append(step)))
    assert [row["metric"] for row in found] == METRICS
    value = {row["metric"]: row["value"] for row in found}
    assert all(each > 0 for each in value.values())
    parts = sum(value[f"setup: {part}"] for part in ("packages", "table", "mechanism"))
    assert value["setup"] == pytest.approx(parts)
    assert value["memory: packages"] <= value["memory: setup"] <= value["memory"]
    assert {row["entry"] for row in found} == {"placeholder"}
    (many,) = (row for row in found if row["metric"] == "a word of many")
    assert many["texts"] == 3
    assert 0 < many["protected"] <= 15
    for row in found:
        assert (row["low"] is None) == (row["n"] == 1)
        assert row["low"] is None or row["low"] <= row["value"] <= row["high"]
    assert told == [("mechanisms", 0, 1), ("mechanisms", 1, 1)]


def test_what_cannot_be_measured_says_what_its_process_said(folder):
    wrong = subject(folder, **{"mechanism.name": "noise", "mechanism.eta": -1.0})
    with pytest.raises(MechanismError, match=r"placeholder could not be measured.*eta"):
        list(measure([wrong], LOAD))


def test_texts_are_those_of_public_frequency_and_always_the_same():
    texts = draw_texts(words=40, texts=50)
    assert texts == draw_texts(words=40, texts=50)
    assert {len(text.split(" ")) for text in texts} == {40}
    words = " ".join(texts).split(" ")
    assert set(words) <= set(load_counts())
    most = max(load_counts(), key=lambda word: load_counts()[word])
    expected = load_counts()[most] / sum(load_counts().values())
    spread = np.sqrt(expected * (1 - expected) / len(words))
    assert (
        abs(words.count(most) / len(words) - expected) < 5 * spread
    )  # 6e-7 of false alarms, were it not always the same


def test_no_text_is_measured_twice(monkeypatch, folder):
    asked = {}

    def ran(line, input, **_):
        asked.update(json.loads(input))
        return type("Done", (), {"returncode": 0, "stdout": "[]\n", "stderr": ""})

    monkeypatch.setattr(subprocess, "run", ran)
    assert list(measure([subject(folder)], Workload(words=9, texts=4, batch=5))) == []
    assert len(asked["texts"]) == len(set(asked["texts"])) == 1 + 4 + 2 * 4 + 5
    assert asked["singles"] == 4


def test_a_load_has_a_text_at_least():
    with pytest.raises(ConfigError, match="texts"):
        Workload(texts=0)


# ---- the clock -------------------------------------------------------------------------------------------------------


def test_the_first_run_does_not_count():
    runs = []
    measure_best_run(lambda: runs.append(len(runs)), 3)
    assert runs == [0, 1, 2, 3]
    assert measure_best_seconds(lambda: None, 1) >= 0
    wall, processors = measure_run(lambda: sum(range(1000)))
    assert wall > 0
    assert processors >= 0


HELD = """
from textveil_bench.process_usage import read_peak_memory

before = read_peak_memory()
held = b"x" * (1 << 27)
after = read_peak_memory()
del held
print(before, after, read_peak_memory())
"""


def test_peak_memory_has_what_was_held_and_keeps_it():
    ran = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, check=True)
    before, after, later = map(int, ran.stdout.split())
    assert after - before > 1 << 26
    assert later > after - (1 << 20)  # the kernel counts pages of a thread in lots
