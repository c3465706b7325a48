"""Runs: rows are complete, a run goes on where it was, and nothing is computed twice."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tests.bench.conftest import opinions
from textveil.bench import cells, headlines, rows, run
from textveil.bench.spec import Sweep
from textveil.errors import ConfigError, InputError

CANARY = "zanzibarquux"


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    """A small sweep over a file of one's own, in which a word stands that may be nowhere else."""
    for split in ("train", "test"):  # the files are called as a public data set is
        lines = ["text,label", *(f"{text} {CANARY},{('bad', 'good')[label]}" for text, label in opinions())]
        (tmp_path / f"prompts-{split}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    source = {
        "name": str(tmp_path / "prompts-{split}.csv"),
        "as_name": "opinions",
        "columns": {"fields": ["text"], "label": "label"},
        "task": [{"name": "head"}],
        "limit": 20,
    }
    return Sweep.read(
        {
            "name": "small",
            "seeds": [1, 2],
            "common": {"table.name": "minilm-s"},
            "data": [source],
            "attacks": [{"name": "bayes", "priors": ["unigram"], "k": 2}, "neighbour"],
            "attacked": 30,
            "measures": ["retention", "cosine", "meaning"],
            "entries": [
                {"name": "krr", "set": {"mechanism.name": "krr"}, "budget": {"epsilon": [9, 12]}},
                {"name": "stencil", "set": {"mechanism.name": "stencil"}},
            ],
        }
    )


def score(row, source, metric):
    (found,) = (each for each in row["scores"] if (each["source"], each["metric"]) == (source, metric))
    return found


def test_rows_are_complete_and_a_run_goes_on(sweep, tmp_path, monkeypatch):
    folder, places = tmp_path / "rows", run.Places(cache=tmp_path / "cache")
    done = []
    found = run.run(sweep, folder, places=places, report=lambda *told: done.append(told))
    assert len(found) == 2 * (3 + 2 + 1)
    assert done[-1] == ("cells", 12, 12)
    assert json.loads(json.dumps(found)) == rows.read([folder])
    assert len({row["key"] for row in found}) == 12

    by_name = {(row["series"], (row["budget"] or {}).get("value"), row["seed"]): row for row in found}
    clean = by_name["identity", None, 1]
    assert score(clean, "bayes", "exposed")["value"] == 1
    assert clean["configuration"] is None
    assert score(clean, "meaning", "cosine of texts")["value"] == pytest.approx(1)
    row = by_name["krr", 12, 2]
    accuracy = next(each for each in row["scores"] if each["headline"] and each["metric"] == "accuracy")
    assert len(accuracy["values"]) == row["data"]["examples"] == 20
    assert accuracy["value"] == pytest.approx(np.mean(accuracy["values"]), abs=1e-4)
    top = score(row, "bayes", "top-1")
    assert sum(top["weights"]) == top["n"] < sum(row["protected"]), "whole texts until there are 30 private words"
    assert 30 <= top["n"] < 40
    expected = np.average([value or 0 for value in top["values"]], weights=top["weights"])
    assert top["value"] == pytest.approx(expected, abs=1e-4)
    assert 0 < top["value"] < by_name["krr", 12, 1]["epsilon"]["ldp"] == pytest.approx(12)
    assert row["epsilon"]["kind"] == "ldp"
    kept = math.exp(12) / (math.exp(12) + 21_718)
    assert score(row, "retention", "retention")["value"] == pytest.approx(kept, abs=5 * math.sqrt(0.2 / 60))
    assert score(by_name["uniform", None, 1], "bayes", "exposed")["value"] < 0.1
    assert by_name["stencil", None, 1]["epsilon"]["ldp"] == "infinite"

    assert CANARY not in (folder / rows.FILE).read_text(encoding="utf-8")
    assert not (folder / rows.GALLERY).exists(), "texts of one's own are shown nowhere"
    assert CANARY not in "".join(headlines.headlines(found))

    monkeypatch.setattr(cells, "compute", lambda *_: pytest.fail("nothing is computed twice"))
    assert run.run(sweep, folder, places=places) == found
    other = run.run(Sweep(**{**vars(sweep), "name": "another"}), folder, places=places)
    assert {row["sweep"] for row in other} == {"another"}
    assert len(rows.read([folder])) == 24, "under both names"


def test_what_was_cut_short_is_computed_again(sweep, tmp_path):
    folder, places = tmp_path / "rows", run.Places(cache=tmp_path / "cache")
    part = sweep.narrowed(seeds=(1,), only=["stencil"])
    before = run.run(part, folder, places=places)
    path = folder / rows.FILE
    path.write_bytes(path.read_bytes()[:-40])
    after = run.run(part, folder, places=places)
    assert [strip(row) for row in sorted(after, key=key)] == [strip(row) for row in sorted(before, key=key)]
    assert len(path.read_bytes().splitlines()) == len(before)


def key(row):
    return row["key"]


def strip(row):
    return {name: value for name, value in row.items() if name not in ("seconds", "circumstances")}


@pytest.mark.slow
def test_two_processes_give_what_one_gives(sweep, tmp_path):
    places = run.Places(cache=tmp_path / "cache")
    part = sweep.narrowed(only=["krr"], limit=4)
    one = run.run(part, tmp_path / "one", places=places)
    with run.Pool(2) as pool:
        several = [run.run(part, tmp_path / name, places=places, processes=pool) for name in ("two", "again")]
    for two in several:
        assert sorted(map(repr, map(strip, one))) == sorted(map(repr, map(strip, two)))
    with pytest.raises(RuntimeError, match="shutdown"):
        run.run(part, tmp_path / "closed", places=places, processes=pool)


def test_no_two_runs_at_once(sweep, tmp_path):
    with rows.opened(tmp_path / "rows"), pytest.raises(ConfigError, match="another run is at work"):
        run.run(sweep, tmp_path / "rows")


def test_what_a_run_would_do_is_told_without_computing(sweep, tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "compute", lambda *_: pytest.fail("a preview computes nothing"))
    lines = run.preview(sweep, tmp_path / "none", run.Places())
    assert lines[0] == "sweep small: 12 cells, 0 of them are there"
    assert CANARY not in "".join(lines)
    assert not (tmp_path / "none").exists()


def test_budgets_are_found_for_a_risk_once(sweep, tmp_path, monkeypatch):
    entry = {"name": "krr", "set": {"mechanism.name": "krr"}, "budget": {"epsilon": "risk"}, "start": 10}
    risk = {"levels": [0.3], "words": 60}
    searched = Sweep.read({**vars(sweep), "entries": [entry], "risk": risk, "baselines": [], "seeds": [1]})
    folder, places = tmp_path / "rows", run.Places(cache=tmp_path / "cache")
    (row,) = run.run(searched, folder, places=places)
    assert row["level"] == 0.3
    kept = 1 / (1 + 21_718 / math.exp(row["budget"]["value"]))
    assert kept == pytest.approx(0.3, abs=5 * math.sqrt(0.21 / 60))
    assert CANARY not in (folder / rows.BUDGETS).read_text(encoding="utf-8")
    monkeypatch.setattr(run, "budgets", lambda *_, **__: pytest.fail("they are remembered"))
    assert run.run(searched, folder, places=places) == [row]


def test_rows_as_tables(sweep, tmp_path):
    import pyarrow.parquet as pq

    found = run.run(sweep.narrowed(only=["stencil"], seeds=(1,)), tmp_path / "r", places=run.Places(cache=tmp_path))
    lines = list(rows.table(found))
    assert len(lines) == sum(len(row["scores"]) for row in found)
    for suffix in (".parquet", ".csv", ".jsonl"):
        assert rows.export(found, tmp_path / f"scores{suffix}") == len(lines)
    table = pq.read_table(tmp_path / "scores.parquet").to_pylist()
    assert table[-1]["metric"] == lines[-1]["metric"]
    assert table[0]["epsilon_ldp"] == math.inf
    with pytest.raises(ConfigError, match="must end in"):
        rows.export(found, tmp_path / "scores.xlsx")


@pytest.mark.parametrize("content", [b"", b"{}\n{}\n", b"not json\n{}\n", b'{"key": "a"}\n\n', b"\xff\xfe\n\n"])
def test_files_without_rows(tmp_path, content):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError):
        rows.read([path])


def test_rows_of_another_version(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"key": "a", "scores": [], "version": 0}\n')
    with pytest.raises(ConfigError, match="version"):
        rows.read([path])
