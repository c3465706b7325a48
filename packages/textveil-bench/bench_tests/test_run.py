"""Runs: rows are complete, a run goes on where it was, and nothing is computed twice."""

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_tests.conftest import opinions
from textveil.errors import ConfigError, EndpointError, InputError, OutputError, UnknownName
from textveil_bench import cells, compare, headlines, rows, run
from textveil_bench.run import Folders, load
from textveil_bench.spec import Sweep, SweepData

CANARY = "zanzibarquux"


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    """A small sweep over a file of one's own, in which a word stands that may be nowhere else."""
    for split in ("train", "test"):  # the files are called as a public data set is
        lines = [
            "text,label",
            *(f"{text} {CANARY},{('bad', 'good')[label]}" for text, label in opinions()),
        ]
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
    (found,) = (
        each for each in row["scores"] if (each["source"], each["metric"]) == (source, metric)
    )
    return found


@pytest.mark.slow
def test_rows_are_complete_and_a_run_goes_on(sweep, tmp_path, monkeypatch):
    folder, places = tmp_path / "rows", run.Folders(cache=tmp_path / "cache")
    done = []
    found = run.run(sweep, folder, places=places, report=lambda *told: done.append(told))
    assert len(found) == 2 * (3 + 2 + 1)
    assert done[-1] == ("cells", 12, 12)
    assert json.loads(json.dumps(found)) == rows.read([folder])
    assert len({row["key"] for row in found}) == 12

    by_name = {
        (row["series"], (row["budget"] or {}).get("value"), row["seed"]): row for row in found
    }
    clean = by_name["identity", None, 1]
    assert score(clean, "bayes", "exposed")["value"] == 1
    assert clean["configuration"] is None
    assert score(clean, "meaning", "cosine of texts")["value"] == pytest.approx(1)
    row = by_name["krr", 12, 2]
    accuracy = next(
        each for each in row["scores"] if each["headline"] and each["metric"] == "accuracy"
    )
    assert len(accuracy["values"]) == row["data"]["examples"] == 20
    assert accuracy["value"] == pytest.approx(np.mean(accuracy["values"]), abs=1e-4)
    top = score(row, "bayes", "top-1")
    assert sum(top["weights"]) == top["n"] < sum(row["protected"]), (
        "whole texts until there are 30 private words"
    )
    assert 30 <= top["n"] < 40
    expected = np.average([value or 0 for value in top["values"]], weights=top["weights"])
    assert top["value"] == pytest.approx(expected, abs=1e-4)
    assert 0 < top["value"] < by_name["krr", 12, 1]["epsilon"]["ldp"] == pytest.approx(12)
    assert row["epsilon"]["kind"] == "ldp"
    kept = math.exp(12) / (math.exp(12) + 21_718)
    assert score(row, "retention", "retention")["value"] == pytest.approx(
        kept, abs=5 * math.sqrt(0.2 / 60)
    )
    assert score(by_name["uniform", None, 1], "bayes", "exposed")["value"] < 0.1
    train = run.load(replace(sweep.data[0], split="train", limit=None), None, places)
    of_judges = {"source": train.source, "digest": train.digest, "examples": 48}
    assert all(
        (row["data"]["training"], row["data"]["learned"]) == (of_judges, None) for row in found
    )
    assert by_name["stencil", None, 1]["epsilon"]["ldp"] == "infinite"

    assert CANARY not in (folder / rows.ROWS_FILE).read_text(encoding="utf-8")
    assert not (folder / rows.GALLERY_FILE).exists(), "texts of one's own are shown nowhere"
    assert CANARY not in "".join(headlines.format_headlines(found))

    monkeypatch.setattr(cells, "compute", lambda *_: pytest.fail("nothing is computed twice"))
    assert run.run(sweep, folder, places=places) == found
    other = run.run(Sweep(**{**vars(sweep), "name": "another"}), folder, places=places)
    assert {row["sweep"] for row in other} == {"another"}
    assert len(rows.read([folder])) == 24, "under both names"


@pytest.mark.parametrize(
    "error", [EndpointError, pytest.param(ConfigError, marks=pytest.mark.slow)]
)
def test_what_fails_on_one_cell_is_told_and_the_sweep_goes_on(sweep, tmp_path, monkeypatch, error):
    from textveil_bench.attack.neighbour import Neighbour
    from textveil_bench.measure import words as measures
    from textveil_bench.tasks.meaning import Meaning

    attack, judged = Neighbour.run, Meaning.score
    subject = "the endpoint" if error is EndpointError else "the file"

    def fails(self, case, **how):
        yield from attack(self, case, **how)
        raise error(f"{subject} h.example\ngave no answer")

    def silent(self, data, trials):
        if trials[0].texts != trials[0].example.texts:
            raise error("there is no judgement")
        return judged(self, data, trials)

    def unmeasured(case):
        raise error("there is no measure")
        yield

    monkeypatch.setattr(Neighbour, "run", fails)
    monkeypatch.setattr(Meaning, "score", silent)
    monkeypatch.setattr(measures, "retention", unmeasured)
    part = sweep.select_part(seeds=(1,), only=["stencil"])
    found = {
        row["series"]: row
        for row in run.run(part, tmp_path / "rows", places=run.Folders(cache=tmp_path / "c"))
    }
    assert set(found) == {"identity", "mask", "uniform", "stencil"}
    row = found["stencil"]
    assert row["not_run"]["neighbour"] == f"{subject} h.example gave no answer"
    assert row["not_run"]["retention"] == "there is no measure"
    (name,) = (name for name in row["not_run"] if name.startswith("meaning"))
    assert row["not_run"][name] == "there is no judgement"
    assert {"neighbour", "retention"}.isdisjoint(each["source"] for each in row["scores"]), (
        "half of it is none"
    )
    assert {"bayes", "cosine"} <= {each["source"] for each in row["scores"]}, "the others are there"
    assert score(found["identity"], "meaning", "cosine of texts")["value"] == pytest.approx(1)
    kept = [
        each
        for each in compare.build_series(rows.read([tmp_path / "rows"]))
        if each.name == "stencil"
    ]
    assert bool(kept) == (error is ConfigError), "an endpoint is asked again the next time"


def test_wrong_options_of_judges_fail_before_anything_is_run(sweep, tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "compute", lambda *_: pytest.fail("nothing may be computed"))
    source = SweepData(**{**vars(sweep.data[0]), "task": [{"name": "head", "rowz": 5}]})
    with pytest.raises(UnknownName, match="rowz"):
        run.run(Sweep(**{**vars(sweep), "data": (source,)}), tmp_path / "rows")


@pytest.mark.parametrize("dry", [True, False])
def test_judges_that_cannot_be_asked_are_told_before_anything_is_run(tmp_path, dry):
    path = tmp_path / "mine.csv"
    path.write_text("text,label\nOne is kind.,a\nOne is not.,b\n", encoding="utf-8")
    source: dict[str, Any] = {"name": str(path), "columns": {"label": "label"}}
    for task, says in (
        (
            [],
            "mine: head .* learns from a training split: name files with {split} in place of the split",
        ),
        (["haed"], "did you mean 'head'"),
    ):
        entry = {
            "name": "noise",
            "set": {"mechanism.name": "noise"},
            "budget": {"mechanism.eta": [40]},
        }
        asked = Sweep.read(
            {"name": "s", "data": [{**source, "task": task}], "entries": [entry], "baselines": []}
        )
        with pytest.raises((ConfigError, UnknownName), match=says):
            run.format_preview(asked, tmp_path / "rows", Folders()) if dry else run.run(
                asked, tmp_path / "rows"
            )
    assert not (tmp_path / "rows").exists()


def test_a_judge_that_is_a_measure_too_is_asked_once(tmp_path):
    asked = {
        "name": "s",
        "data": [{"name": "opinions", "task": "meaning", "limit": 3}],
        "measures": ["meaning"],
    }
    entry = {"name": "noise", "set": {"mechanism.name": "noise"}, "budget": {"mechanism.eta": [40]}}
    sweep = Sweep.read({**asked, "entries": [entry], "baselines": []})
    assert [judge.name for judge in run.load_judges(sweep.data[0], sweep, run.Folders())] == [
        "meaning"
    ]


def test_a_folder_without_rows_yet_and_a_file_in_its_place(sweep, tmp_path):
    (tmp_path / "rows.jsonl").touch()
    assert run.format_preview(sweep, tmp_path, run.Folders())[0].endswith("0 already computed")
    with (
        pytest.raises(OutputError, match="must be a folder"),
        rows.open_store(tmp_path / "rows.jsonl"),
    ):
        pytest.fail("a file is no folder")


@pytest.mark.slow
def test_what_was_cut_short_is_computed_again(sweep, tmp_path):
    folder, places = tmp_path / "rows", run.Folders(cache=tmp_path / "cache")
    part = sweep.select_part(seeds=(1,), only=["stencil"])
    before = run.run(part, folder, places=places)
    path = folder / rows.ROWS_FILE
    path.write_bytes(path.read_bytes()[:-40])
    after = run.run(part, folder, places=places)
    assert [strip(row) for row in sorted(after, key=key)] == [
        strip(row) for row in sorted(before, key=key)
    ]
    assert len(path.read_bytes().splitlines()) == len(before)


@pytest.mark.slow
def test_rows_tell_what_important_words_were_learned_from(sweep, tmp_path):
    entry = {"name": "taught", "set": {"mechanism.name": "krr", "groups.budgets": [1, 1, 2, 1]}}
    entry |= {"budget": {"groups.base": 9}, "grid": {"learned": [1, 2]}}
    bare = {"entries": [entry], "baselines": [], "seeds": [1], "attacks": [], "measures": []}
    source = SweepData(**{**vars(sweep.data[0]), "task": [{"name": "meaning"}], "limit": 3})
    taught = Sweep.read({**vars(sweep), **bare, "data": [source]})
    places = run.Folders(cache=tmp_path / "cache")
    one, two = run.run(taught, tmp_path / "rows", places=places)
    train = run.load(replace(source, split="train", limit=run.MAX_TEACHING_TEXTS), None, places)
    told = {"source": train.source, "digest": train.digest, "examples": 48}
    assert one["data"]["learned"] == {
        **told,
        "words": run._hash_words(run.learn_task_words(taught.series[0], places)),
    }
    assert one["data"]["learned"]["words"] != two["data"]["learned"]["words"]
    assert one["data"]["training"] is None, "no judge learns"


def key(row):
    return row["key"]


def strip(row):
    return {name: value for name, value in row.items() if name not in ("seconds", "circumstances")}


@pytest.mark.slow
def test_two_processes_give_what_one_gives(sweep, tmp_path):
    places = run.Folders(cache=tmp_path / "cache")
    part = sweep.select_part(only=["krr"], limit=4)
    one = run.run(part, tmp_path / "one", places=places)
    with run.open_processes(2) as executor:
        several = [
            run.run(part, tmp_path / name, places=places, executor=executor)
            for name in ("two", "again")
        ]
    for two in several:
        assert sorted(map(repr, map(strip, one))) == sorted(map(repr, map(strip, two)))
        assert {row["circumstances"]["threads"] for row in two} == {1}
    with pytest.raises(RuntimeError, match="shutdown"):
        run.run(part, tmp_path / "closed", places=places, executor=executor)


def test_rows_tell_of_the_process_that_computed_them(sweep, tmp_path, monkeypatch):
    told = iter(range(100))
    monkeypatch.setattr(
        run, "read_circumstances", lambda: {"commit": "", "time": "", "threads": next(told)}
    )
    part = sweep.select_part(seeds=(1,), only=["krr"], limit=4)
    part = Sweep(**{**vars(part), "baselines": (), "attacks": (), "measures": ()})
    found = run.run(part, tmp_path / "rows", places=run.Folders(cache=tmp_path / "cache"))
    assert [row["circumstances"]["threads"] for row in found] == [0, 1], "looked at for each job"


def test_no_two_runs_at_once(sweep, tmp_path):
    with (
        rows.open_store(tmp_path / "rows"),
        pytest.raises(ConfigError, match="another run is at work"),
    ):
        run.run(sweep, tmp_path / "rows")


def test_what_a_run_would_do_is_told_without_computing(sweep, tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "compute", lambda *_: pytest.fail("a preview computes nothing"))
    lines = run.format_preview(sweep, tmp_path / "none", run.Folders())
    assert lines[0] == "sweep small: 12 cells, 0 already computed"
    assert CANARY not in "".join(lines)
    assert not (tmp_path / "none").exists()


def test_a_sweep_searches_no_budgets(sweep, tmp_path):
    entry = {"name": "krr", "set": {"mechanism.name": "krr"}, "budget": {"epsilon": "risk"}}
    with pytest.raises(ConfigError, match="textveil bench choose"):
        run.run(Sweep.read({**vars(sweep), "entries": [entry]}), tmp_path / "rows")


@pytest.mark.slow
def test_rows_as_tables(sweep, tmp_path):
    import pyarrow.parquet as pq

    found = run.run(
        sweep.select_part(only=["stencil"], seeds=(1,)),
        tmp_path / "r",
        places=run.Folders(cache=tmp_path),
    )
    lines = list(rows.build_score_rows(found))
    assert len(lines) == sum(len(row["scores"]) for row in found)
    for suffix in (".parquet", ".csv", ".jsonl"):
        assert rows.write_table(found, tmp_path / f"scores{suffix}") == len(lines)
    table = pq.read_table(tmp_path / "scores.parquet").to_pylist()
    assert table[-1]["metric"] == lines[-1]["metric"]
    assert table[0]["epsilon_ldp"] == math.inf
    written = (tmp_path / "scores.jsonl").read_text(encoding="utf-8").splitlines()
    strict = [
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        for line in written
    ]
    assert strict[0]["epsilon_ldp"] == "infinite"
    assert [line["value"] for line in strict] == [line["value"] for line in lines]
    with pytest.raises(ConfigError, match="must end in"):
        rows.write_table(found, tmp_path / "scores.xlsx")


@pytest.mark.parametrize(
    "content", [b"", b"{}\n{}\n", b"not json\n{}\n", b'{"key": "a"}\n\n', b"\xff\xfe\n\n"]
)
def test_files_without_rows(tmp_path, content):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError):
        rows.read([path])


def test_compressed_rows_are_read_as_plain_ones(tmp_path):
    line = json.dumps({"version": rows.VERSION, "key": "1", "scores": []}).encode() + b"\n"
    packed = tmp_path / "rows.jsonl.gz"
    packed.write_bytes(gzip.compress(line * 3))
    assert len(rows.read([tmp_path])) == len(rows.read([packed])) == 3
    packed.write_bytes(packed.read_bytes()[:-12])
    with pytest.raises(InputError, match="truncated"):
        rows.read([packed])
    packed.write_bytes(b"not a gzip file")
    with pytest.raises(InputError, match="not a gzip file"):
        rows.read([packed])
    with pytest.raises(ConfigError, match="gunzip"), rows.open_store(tmp_path):
        pass
    assert not (tmp_path / rows.ROWS_FILE).exists()
    (tmp_path / rows.ROWS_FILE).write_bytes(line)
    assert len(rows.read([tmp_path])) == 1  # the plain file is the newer one: a run goes on there


def test_rows_of_another_version(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"key": "a", "scores": [], "version": 0}\n')
    with pytest.raises(ConfigError, match="version"):
        rows.read([path])


def test_examples_beside_others_share_no_text_with_them():
    taken = load(SweepData(name="opinions"), 10, Folders())
    other = load(SweepData(name="opinions", limit=5, beside=10), 7, Folders())
    assert len(other) == 5
    everything = len(load(SweepData(name="opinions"), None, Folders()))
    assert len(load(SweepData(name="opinions", beside=10), None, Folders())) <= everything - 10
    assert {each.texts for each in other.examples}.isdisjoint(
        {each.texts for each in taken.examples}
    )
    with pytest.raises(ConfigError, match=r"has only the .* examples already taken"):
        load(SweepData(name="opinions", beside=everything), 5, Folders())
