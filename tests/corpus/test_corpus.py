"""Runs over files: every row once, the same for any number of processes, and nothing drawn twice after a kill."""

import errno
import gzip
import json
import os
import pickle
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.resources import files as packaged
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import referencing

from textveil.config import layers, sections
from textveil.corpus import Done, Local, executors, runs
from textveil.corpus import chunks as chunking
from textveil.corpus import plan as planning
from textveil.corpus.chunks import Chunk
from textveil.corpus.store import ChunkStore
from textveil.errors import ConfigError, InputError, OutputError, TextveilError
from textveil.files import streams, work
from textveil.guarantee import Guarantee
from textveil.pipeline import privatizer
from textveil.pipeline.results import Result
from textveil.randomness import KeyedRandomness
from textveil.table.embedding import EmbeddingTable

CANARY = "Zyxqorvian"
LETTER = "anna owes bank nine hundred pounds letter doctor clinic pain knee tablets monday rest weeks"
WORDS = LETTER.split()


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> EmbeddingTable:
    """A small table in place of the default one, and small chunks."""
    vectors = np.random.default_rng(5).normal(size=(len(WORDS), 8))
    small = EmbeddingTable.build(name="small", words=WORDS, vectors=vectors)
    monkeypatch.setattr(privatizer, "load_table", lambda *_, **__: small)
    monkeypatch.setattr(chunking, "CHUNK_ROWS", 10)
    return small


def resolved(**options: Any) -> sections.Config:
    return layers.resolve(overrides=layers.keywords(**{"epsilon": 5, **options}))


def run(*paths: Path, to: Path, field: str | None = None, whole: bool = False, **more: Any) -> list[Done]:
    own = {name: more.pop(name) for name in ("jobs", "resume", "report", "query", "executor") if name in more}
    return runs.privatize_files(paths, to, resolved(**more), field=field, whole=whole, **own)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """37 rows with a number that stays."""
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"n": n, "text": f"the {WORDS[n % 15]} and {WORDS[n % 7]} {n}"}) for n in range(37)]
    path.write_text("\n".join(lines) + "\n")
    return path


SELECTIVE: dict[str, Any] = {
    "mechanism": "krr",
    "epsilon": None,
    "protect": {"importance": "cosine", "tau": 0.99},
    "groups": {"budgets": (40, 40, 40, 1e-6)},
    "seed": 3,
}


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_each_row_has_its_query(tmp_path, suffix):
    """Words of the query have the large budget and stay; others hardly do: the release shows which it was."""
    path, out = tmp_path / f"a.{suffix}", tmp_path / "out"
    asked = ["anna", "doctor", "clinic"] * 9
    texts = ["anna doctor clinic"] * len(asked)
    if suffix == "jsonl":
        path.write_text("".join(json.dumps({"q": q, "text": t}) + "\n" for q, t in zip(asked, texts, strict=True)))
    elif suffix == "csv":
        path.write_text("q,text\n" + "".join(f"{q},{t}\n" for q, t in zip(asked, texts, strict=True)))
    else:
        pq.write_table(pa.table({"q": asked, "text": texts}), path)
    (done,) = run(path, to=out, query="q", **SELECTIVE)
    assert done.document["query"] == "q"
    if suffix == "parquet":
        released = pq.read_table(out / path.name)["text"].to_pylist()
    elif suffix == "csv":
        released = [line.split(",")[1] for line in (out / path.name).read_text().splitlines()[1:]]
    else:
        released = [json.loads(line)["text"] for line in (out / path.name).read_text().splitlines()]
    kept = [[word for word in text.split() if word == query] for text, query in zip(released, asked, strict=True)]
    assert all(kept)
    others = sum(
        text.split().count(word) for text, query in zip(released, asked, strict=True) for word in {*asked} - {query}
    )
    assert others < len(asked)  # of 54 about 4 stay by chance


def test_a_query_needs_a_field_of_its_own(tmp_path, rows):
    with pytest.raises(ConfigError, match="must not name the field of the texts"):
        run(rows, to=tmp_path / "out", field="text", query="text", **SELECTIVE)
    asked = tmp_path / "b.jsonl"
    asked.write_text('{"q": "anna", "text": "anna owes"}\n')
    with pytest.raises(InputError, match="importance"):
        run(asked, to=tmp_path / "out", query="q")
    note = tmp_path / "a.txt"
    note.write_text("anna\n")
    with pytest.raises(ConfigError, match="no fields"):
        run(note, to=tmp_path / "out", query="q", **SELECTIVE)


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["n"] for line in path.read_text().splitlines()]


def chunks(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / ".a.jsonl.textveil").glob("*.chunk"))}


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.exists() else []


FINISHED = ["a.jsonl", "a.jsonl.guarantee.json"]


# ---- what comes out ------------------------------------------------------------------------------


def test_every_format(tmp_path):
    out = tmp_path / "out"
    (tmp_path / "a.txt").write_text("the anna\nthe bank\n")
    (tmp_path / "b.tsv").write_text("n\tbody\n1\tthe anna\n")
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"body\nthe anna\n"))
    pq.write_table(pa.table({"n": [1, 2], "body": ["the anna", None]}), tmp_path / "d.parquet")
    paths = [tmp_path / name for name in ("b.tsv", "c.csv.gz", "d.parquet")]
    done = run(*paths, to=out, field="body", mechanism="placeholder", epsilon=None)
    done += run(tmp_path / "a.txt", to=out, mechanism="placeholder", epsilon=None)
    assert [each.document["rows"] for each in done] == [1, 1, 2, 2]
    assert [each.document["texts"] for each in done] == [1, 1, 1, 2]
    assert (out / "a.txt").read_text() == "the <WORD>\nthe <WORD>\n"
    assert (out / "b.tsv").read_text() == "n\tbody\n1\tthe <WORD>\n"
    assert gzip.decompress((out / "c.csv.gz").read_bytes()) == b"body\nthe <WORD>\n"
    assert pq.read_table(out / "d.parquet").to_pydict() == {"n": [1, 2], "body": ["the <WORD>", None]}
    assert len(names(out)) == 8


def test_a_whole_file_as_one_text(tmp_path):
    (tmp_path / "a.txt").write_text("the anna\n\nthe bank\n")
    (done,) = run(tmp_path / "a.txt", to=tmp_path / "out", whole=True)
    assert done.document["texts"] == done.document["rows"] == 1
    assert (tmp_path / "out" / "a.txt").read_text().count("\n") == 3


def test_rows_keep_their_order_over_chunks(rows, tmp_path):
    told: list[tuple[str, int, int]] = []
    (done,) = run(rows, to=tmp_path / "out", report=lambda *each: told.append(each))
    assert numbers(tmp_path / "out" / rows.name) == list(range(37))
    assert told == [("a.jsonl", n, 37) for n in (0, 10, 20, 30, 37)]
    assert done.document["rows"] == 37
    assert names(tmp_path / "out") == FINISHED


def test_a_file_without_texts(tmp_path):
    for name, content in [("a.txt", ""), ("b.jsonl", '{"text": null}\n'), ("c.csv", "text\n")]:
        (tmp_path / name).write_text(content)
        (done,) = run(tmp_path / name, to=tmp_path / "out", field=None if name == "a.txt" else "text")
        assert (done.document["guarantee"], done.document["texts"], done.document["words"]) == (None, 0, 0)
        assert (tmp_path / "out" / name).read_text() == content


# ---- statements ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    own, inner = (
        json.loads((packaged("textveil") / "data" / f"{name}.schema.json").read_text(encoding="utf-8"))
        for name in ("file", "guarantee")
    )
    jsonschema.Draft202012Validator.check_schema(own)
    assert sorted(own["required"]) == sorted(own["properties"])
    assert all(each.get("description") for each in own["properties"].values())
    registry = referencing.Registry().with_resource(inner["$id"], referencing.Resource.from_contents(inner))
    return jsonschema.Draft202012Validator(own, registry=registry)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mechanism": "d-chi-stencil", "L": 4, "eta": 9, "epsilon": None},
        {"mechanism": "placeholder", "epsilon": None},
        {"mechanism": "exponential", "seed": 4_000_000_007},
        {"words": {"oov": "keep"}},
        {"epsilon": float("inf")},
    ],
)
def test_the_statement_over_chunks_is_that_of_all_texts(rows, tmp_path, validator, options):
    run(rows, to=tmp_path / "out", **options)
    found = json.loads((tmp_path / "out" / "a.jsonl.guarantee.json").read_text())
    validator.validate(found)
    texts = [json.loads(line)["text"] for line in rows.read_text().splitlines()]
    made = privatizer.Privatizer.from_config(resolved(**options))
    expected = pipeline_summary(list(made.privatize_many(texts)))
    counted = expected.pop("epsilon_per_word")
    inside = found["guarantee"]
    listed = [each["epsilon"] for each in inside.pop("epsilon_per_word") for _ in range(each["words"])]
    assert sorted(map(str, listed)) == sorted(map(str, counted))
    assert inside.pop("oov_share") == pytest.approx(expected.pop("oov_share"))
    assert inside == expected
    assert found["words"] == inside["words"]
    assert "4000000007" not in json.dumps(found)
    validator.validate(found | {"guarantee": None})
    wrong: list[dict[str, Any]] = [{"rows": -1}, {"format": "doc"}, {"secret": 1}, {"guarantee": {}}]
    for broken in wrong:
        assert not validator.is_valid(found | broken)


def pipeline_summary(results: list[Result]) -> dict[str, Any]:
    from textveil.guarantee import summarize

    return summarize([each.guarantee for each in results]).to_json()


def test_packed_statements_are_the_same(rows, tmp_path):
    for options in ({}, {"mechanism": "d-chi-stencil", "L": 3}, {"epsilon": float("inf")}):
        made = privatizer.Privatizer.from_config(resolved(**options)).privatize("anna met the 日本 bank").guarantee
        again = Guarantee.unpack(json.loads(json.dumps(made.pack())))
        assert again.to_json() == json.loads(json.dumps(made.to_json()))
        assert json.dumps(again.pack()) == json.dumps(made.pack())
        assert again.explain() == made.explain()


def test_nothing_private_is_left_beside_the_output(rows, tmp_path):
    """A digest of the input, or its size, would let anyone check a guess of it."""
    from hashlib import sha256

    run(rows, to=tmp_path / "out")
    found = (tmp_path / "out" / "a.jsonl.guarantee.json").read_text()
    assert sha256(rows.read_bytes()).hexdigest() not in found
    assert json.loads(found)["sha256"] == sha256((tmp_path / "out" / "a.jsonl").read_bytes()).hexdigest()


# ---- seeds and processes -------------------------------------------------------------------------


def test_a_seed_repeats_and_every_part_has_its_own_draws(rows, tmp_path, monkeypatch):
    other = tmp_path / "b.jsonl"
    other.write_bytes(rows.read_bytes())
    for out in ("one", "two"):
        run(rows, other, to=tmp_path / out, seed=1)
    one = (tmp_path / "one" / "a.jsonl").read_text()
    assert one == (tmp_path / "two" / "a.jsonl").read_text()
    assert one != (tmp_path / "one" / "b.jsonl").read_text()
    rows.write_text('{"n": 0, "text": "anna owes bank nine hundred"}\n' * 40)
    run(rows, to=tmp_path / "three", seed=1)
    lines = (tmp_path / "three" / "a.jsonl").read_text().splitlines()
    assert len({tuple(lines[n : n + 10]) for n in range(0, 40, 10)}) == 4
    run(rows, to=tmp_path / "four")
    assert (tmp_path / "four" / "a.jsonl").read_text().splitlines() != lines


def test_a_seed_gives_files_their_own_draws_whichever_are_in_the_run(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("anna owes bank nine hundred pounds\n" * 5)
    run(tmp_path / "a.txt", tmp_path / "b.txt", to=tmp_path / "both", seed=1)
    run(tmp_path / "b.txt", to=tmp_path / "alone", seed=1)
    a, b = ((tmp_path / "both" / f"{name}.txt").read_text() for name in "ab")
    assert b == (tmp_path / "alone" / "b.txt").read_text()
    assert a != b


def test_parts_of_a_run_from_python(table):
    def part(seed: int | None, first: int | None) -> list[str]:
        made = privatizer.Privatizer("noise", epsilon=5, table=table, seed=seed)
        made.privatize("anna")
        return [each.text for each in made.privatize_many([" ".join(WORDS)] * 3, first=first)]

    assert part(1, 6) == part(1, 6)
    assert part(1, 6) != part(1, 9)
    assert part(1, 0) != part(1, None)
    assert part(None, 6) != part(None, 6)


@pytest.mark.slow
def test_several_processes_draw_the_same(tmp_path, monkeypatch):
    """With a real table, because a spawned process knows nothing of a test's small one."""
    monkeypatch.undo()
    monkeypatch.setattr(chunking, "CHUNK_ROWS", 10)
    path = tmp_path / "a.txt"
    path.write_text("".join(f"the doctor owes {n} pounds\n" for n in range(45)))
    with_one_key(monkeypatch)
    for seed in (1, None):
        for jobs in (1, 2):
            run(path, to=tmp_path / f"{seed} {jobs}", jobs=jobs, seed=seed, table="minilm-s")
        for name in ("a.txt", "a.txt.guarantee.json"):
            one, two = ((tmp_path / f"{seed} {jobs}" / name).read_text() for jobs in "12")
            assert one == two


def blocked(_: object) -> set[Any]:
    return {*signal.pthread_sigmask(signal.SIG_BLOCK, ())}


def test_a_process_that_draws_begins_without_interrupts():
    before = blocked(None)
    with Local(2) as executor:
        ((_, there),) = executor.map(blocked, [None])
    assert signal.SIGINT in there
    assert blocked(None) == before


def test_a_process_that_ends_is_one_clear_error(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "_begin", os.abort)  # travels as its name: the worker ends before it has begun
    with pytest.raises(
        TextveilError, match=r"^A worker process died \(out of memory\?\)\. Retry with fewer --jobs and --resume\.$"
    ):
        run(rows, to=tmp_path / "out", jobs=2)
    assert names(tmp_path / "out") == []
    with pytest.raises(ConfigError, match="--jobs must be 0"):
        run(rows, to=tmp_path / "out", jobs=-1)


def test_another_executor_may_draw_in_any_order(rows, tmp_path):
    class Backwards:
        def map(self, draw, items):
            for item in reversed(list(items)):
                yield item, draw(item)

    run(rows, to=tmp_path / "one", seed=1)
    run(rows, to=tmp_path / "two", seed=1, executor=Backwards())
    for name in FINISHED:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


# ---- interruptions -------------------------------------------------------------------------------


def in_a_child(work: Callable[[], object]) -> int:
    """Run something in a copy of this process; the signal that ended it, or 0."""
    child = os.fork()
    if child == 0:
        os.closerange(0, 3)
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


STEPS = ("mkdir", "open", "fsync", "replace", "unlink", "rmdir")


def killed_at(step: int, work: Callable[[], object]) -> Callable[[], None]:
    """The same work, which kills itself before its n-th step on the disk."""
    left = step

    def stepping(call: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **more)

        return made

    def run() -> None:
        for name in STEPS:
            setattr(os, name, stepping(getattr(os, name)))
        work()

    return run


def check_resumed(rows: Path, out: Path, before: dict[str, bytes]) -> None:
    """What was finished before stays as it is."""
    now = chunks(out)
    assert {name: now.get(name) for name in before} == before or names(out) == FINISHED
    if (out / "a.jsonl").exists():
        assert numbers(out / "a.jsonl") == list(range(37))


@pytest.mark.slow
def test_killed_before_each_of_its_steps(rows, tmp_path):
    """One run for every step at which it can be killed, each resumed: nothing is drawn again."""
    for step in range(1000):
        out = tmp_path / f"out{step}"
        ended = in_a_child(killed_at(step, partial(run, rows, to=out, resume=True)))
        before = chunks(out)
        assert not (before and not (out / ".a.jsonl.textveil" / "manifest.json").exists()) or (out / "a.jsonl").exists()
        drawn = {int(name[:8]): json.loads(each.split(b"\n")[1])["texts"] for name, each in before.items()}
        assert not (out / "a.jsonl").exists() or (out / "a.jsonl.guarantee.json").exists()
        if (out / "a.jsonl").exists():
            assert numbers(out / "a.jsonl") == list(range(37))
        run(rows, to=out, resume=True)
        assert names(out) == FINISHED
        found = [json.loads(line) for line in (out / "a.jsonl").read_text().splitlines()]
        assert [each["n"] for each in found] == list(range(37))
        for number, texts in drawn.items():
            assert [each["text"] for each in found[number * 10 : number * 10 + 10]] == texts
        if ended == 0:
            assert step > 20
            return
    pytest.fail("the run has more steps than it was killed at")


def with_one_key(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """All runs of the test have the same release key."""
    key = bytes(range(32))
    monkeypatch.setattr(KeyedRandomness, "new_key", staticmethod(lambda: key))
    return key


def require_same(one: Path, other: Path) -> None:
    for name in FINISHED:
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_killed_at_random_points(rows, tmp_path, monkeypatch):
    with_one_key(monkeypatch)
    run(rows, to=tmp_path / "undisturbed")
    out = tmp_path / "out"
    picks = random.Random(7)
    before: dict[str, bytes] = {}
    met = 0
    for _ in range(8):
        child = os.fork()
        if child == 0:
            os.closerange(0, 3)
            try:
                run(rows, to=out, resume=True, report=lambda *_: time.sleep(0.02))
            finally:
                os._exit(0)
        for _ in range(5000):
            if chunks(out) or (out / "a.jsonl").exists():
                break
            time.sleep(0.001)
        time.sleep(picks.uniform(0, 0.08))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        check_resumed(rows, out, before)
        before = chunks(out)
        met += 0 < len(before) < 4
    assert met >= 1
    run(rows, to=out, resume=True)
    assert names(out) == FINISHED
    assert numbers(out / "a.jsonl") == list(range(37))
    require_same(out, tmp_path / "undisturbed")


def test_a_chunk_that_is_drawn_again_is_the_same_chunk(rows, tmp_path):
    """With a key of the run's own, which nobody else has."""
    out = tmp_path / "out"
    interrupted(rows, out)
    before = chunks(out)
    for name in before:
        (work_of(out) / name).unlink()
    interrupted(rows, out, resume=True)
    assert chunks(out) == before
    run(rows, to=out, resume=True)
    run(rows, to=tmp_path / "another")
    assert numbers(tmp_path / "another" / "a.jsonl") == numbers(out / "a.jsonl")
    assert (tmp_path / "another" / "a.jsonl").read_text() != (out / "a.jsonl").read_text()


def test_a_changed_row_has_draws_of_its_own(tmp_path, monkeypatch):
    """Rows draw by key, file, row and text: none of them may change, and all that stay keep their draws."""
    with_one_key(monkeypatch)
    long = " ".join(WORDS * 3)

    def released(name: str, texts: list[str], **options: Any) -> list[str]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / name).write_text("".join(f"{text}\n" for text in texts))
        run(folder / name, to=folder / "out", **options)
        return (folder / "out" / name).read_text().splitlines()

    whole = released("a.txt", [long] * 12)
    assert len(set(whole)) == 12  # equal texts, in two chunks
    assert released("a.txt", [long] * 12) == whole
    changed = released("a.txt", [*[long] * 3, f"{long} anna", *[long] * 8])
    assert [one == two for one, two in zip(whole, changed, strict=True)] == [number != 3 for number in range(12)]
    for other in (changed[3:4], released("b.txt", [long] * 12), released("a.txt", [long] * 12, epsilon=5.5)):
        for one in other:
            for two in whole:
                same = [a == b for a, b in zip(one.split(), two.split(), strict=False)]
                assert sum(same) < 30  # of 42 or more; a word stays in about one case of six


def test_the_key_lies_beside_the_manifest_and_nowhere_else(rows, tmp_path, monkeypatch):
    key, out, sent = with_one_key(monkeypatch), tmp_path / "out", list[bytes]()

    class Sending:
        """Draws here what it would send."""

        def map(self, draw, items):
            for item in items:
                sent.append(pickle.dumps((draw, item)))
                yield item, draw(item)

    interrupted(rows, out, executor=Sending())
    assert len(sent) == 2
    held = work_of(out) / "release.key"
    assert held.read_bytes() == key
    assert stat.S_IMODE(held.stat().st_mode) == 0o600
    for content in (*sent, *chunks(out).values(), (work_of(out) / "manifest.json").read_bytes()):
        assert key not in content
        assert key.hex().encode() not in content


def test_the_key_is_gone_before_the_output_is_there(rows, tmp_path, monkeypatch):
    wiped: list[Path] = []
    real = work.Work.publish

    def publish(self: work.Work, name: str, path: Path) -> None:
        wiped.append(path)
        assert "manifest.json" in self.names()
        assert "release.key" not in self.names()
        real(self, name, path)

    monkeypatch.setattr(work.Work, "publish", publish)
    run(rows, to=tmp_path / "out")
    assert len(wiped) == 2
    assert names(tmp_path / "out") == FINISHED
    interrupted(rows, tmp_path / "seeded", seed=3)
    assert "release.key" not in names(work_of(tmp_path / "seeded"))


def test_without_its_key_a_run_draws_no_more(rows, tmp_path):
    out = tmp_path / "out"
    interrupted(rows, out)
    before = chunks(out)
    (work_of(out) / "release.key").unlink()
    with pytest.raises(ConfigError, match=r"^a\.jsonl: \.a\.jsonl\.textveil no longer has the release\.key that"):
        run(rows, to=out, resume=True)
    assert chunks(out) == before
    for other in (b"", b"short", bytes(32), KeyedRandomness.new_key()):
        (work_of(out) / "release.key").write_bytes(other)
        with pytest.raises(ConfigError, match=r"no longer has the release\.key that the run began with"):
            run(rows, to=out, resume=True)
    assert chunks(out) == before
    interrupted(rows, tmp_path / "all", after=37)  # every chunk is there: it is no longer needed
    (work_of(tmp_path / "all") / "release.key").unlink()
    run(rows, to=tmp_path / "all", resume=True)
    assert names(tmp_path / "all") == FINISHED


@pytest.mark.slow
def test_killed_while_two_processes_draw(tmp_path, monkeypatch):
    """The command itself, killed after its first chunk; a run that was not killed gives the same."""
    monkeypatch.undo()
    path, out, work = tmp_path / "a.jsonl", tmp_path / "out", tmp_path / "out" / ".a.jsonl.textveil"
    path.write_text("".join(json.dumps({"n": n, "text": f"the {WORDS[n % 15]} {n}"}) + "\n" for n in range(8000)))
    line = [sys.executable, "-m", "textveil", "privatize-files", str(path), "--output", f"{out}/"]
    line += ["--mechanism", "noise", "--epsilon", "5", "--table", "minilm-s", "--seed", "1", "--jobs", "2"]
    with subprocess.Popen(line, stderr=subprocess.PIPE) as process:
        while not chunks(out) and process.poll() is None:
            time.sleep(0.002)
        process.kill()
    before = chunks(out)
    assert 0 < len(before) < 16
    assert "a.jsonl" not in names(out)
    for to, jobs in ((out, 2), (tmp_path / "at once", 1)):
        options: dict[str, Any] = {"mechanism": "noise", "epsilon": 5, "table": "minilm-s", "seed": 1}
        run(path, to=to, resume=True, jobs=jobs, report=check_kept(work, before), **options)
    for name in FINISHED:
        assert (out / name).read_bytes() == (tmp_path / "at once" / name).read_bytes()


def check_kept(work: Path, before: dict[str, bytes]) -> Callable[..., None]:
    def report(*_: Any) -> None:
        for name, content in before.items():
            assert not work.exists() or (work / name).read_bytes() == content

    return report


class StopError(Exception):
    """Ends a run in its middle."""


def interrupted(rows: Path, to: Path, after: int = 20, **more: Any) -> None:
    def report(_: str, done: int, __: int) -> None:
        if done >= after:
            raise StopError

    with pytest.raises(StopError):
        run(rows, to=to, report=report, **more)


def test_an_interrupted_run_goes_on(rows, tmp_path):
    out = tmp_path / "out"
    interrupted(rows, out, seed=3)
    assert names(out) == [".a.jsonl.textveil"]
    assert stat.S_IMODE((out / ".a.jsonl.textveil").stat().st_mode) == 0o700
    assert len(chunks(out)) == 2
    with pytest.raises(ConfigError, match=r"was interrupted; continue it with --resume.* delete \.a\.jsonl\.textveil"):
        run(rows, to=out, seed=3)
    run(rows, to=out, seed=3, resume=True)
    run(rows, to=tmp_path / "at once", seed=3)
    for name in FINISHED:
        assert (out / name).read_bytes() == (tmp_path / "at once" / name).read_bytes()


def test_an_interruption_before_the_first_chunk_leaves_nothing(rows, tmp_path):
    interrupted(rows, tmp_path / "out", after=0)
    assert names(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seed": 4}, "these differ: seed;"),
        ({"epsilon": 6}, "these differ: epsilon;"),
        ({"mechanism": "polar"}, r"these differ: mechanism\.name;"),
        ({"field": "n2"}, "these differ: field;"),
    ],
)
def test_resuming_needs_the_same_options(rows, tmp_path, change, says):
    rows.write_text(rows.read_text().replace('"n"', '"n2": "x", "n"'))
    interrupted(rows, tmp_path / "out", seed=3)
    before = chunks(tmp_path / "out")
    with pytest.raises(ConfigError, match=says):
        run(rows, to=tmp_path / "out", resume=True, **{"seed": 3, **change})
    assert chunks(tmp_path / "out") == before


def test_resuming_needs_the_same_input(rows, tmp_path, monkeypatch):
    interrupted(rows, tmp_path / "out")
    content = rows.read_bytes()
    rows.write_bytes(content.replace(b"anna", b"ruth"))
    with pytest.raises(ConfigError, match="these differ: input;"):
        run(rows, to=tmp_path / "out", resume=True)
    rows.write_bytes(content)
    chunk = next((tmp_path / "out" / ".a.jsonl.textveil").glob("*.chunk"))
    chunk.write_bytes(chunk.read_bytes().replace(b"the", b"our", 1))
    with pytest.raises(InputError, match="is damaged"):
        run(rows, to=tmp_path / "out", resume=True)


def work_of(out: Path) -> Path:
    return out / ".a.jsonl.textveil"


@pytest.mark.parametrize("other", ["another run", "another place"])
def test_a_chunk_that_is_not_of_this_run_is_refused(rows, tmp_path, other):
    out = tmp_path / "out"
    interrupted(rows, out, seed=3)
    interrupted(rows, tmp_path / "beside", seed=3)
    from_there = work_of(tmp_path / "beside") / "00000001.chunk"
    taken = from_there if other == "another run" else work_of(out) / "00000000.chunk"
    taken.replace(work_of(out) / "00000001.chunk")
    if other == "another place":
        (work_of(out) / "00000000.chunk").write_bytes((work_of(out) / "00000001.chunk").read_bytes())
    with pytest.raises(
        InputError, match=r"^a\.jsonl: the finished chunk 00000001\.chunk .* belongs to another run, place or input"
    ):
        run(rows, to=out, seed=3, resume=True)
    assert names(out) == [".a.jsonl.textveil"]


def test_a_label_has_the_digest_of_the_texts():
    """The run's own name would not tell of an input that changed while it was read, and was put back later."""
    label = ChunkStore(folder=None, run="r", key=None)._label  # type: ignore[arg-type]
    first, second, third = (
        Chunk(number=0, first=0, part=0, file="a", texts=(text, None)) for text in ("anna", "bank", CANARY)
    )
    assert label(first) != label(second)
    assert CANARY not in json.dumps(label(third))


def test_chunks_without_a_manifest_are_refused(rows, tmp_path):
    out = tmp_path / "out"
    interrupted(rows, out)
    (work_of(out) / "manifest.json").write_text('{"x')
    with pytest.raises(ConfigError, match=r"^a\.jsonl: manifest\.json of the interrupted run is damaged; .* delete "):
        run(rows, to=out, resume=True)
    (work_of(out) / "manifest.json").unlink()
    with pytest.raises(ConfigError, match="no manifest; delete that folder"):
        run(rows, to=out, resume=True, epsilon=1)
    assert len(chunks(out)) == 2


def test_a_manifest_goes_before_the_chunks(rows, tmp_path, monkeypatch):
    """What a kill leaves of a folder that is being removed is never gone on with."""
    out, real = tmp_path / "out", os.unlink
    gone: list[str] = []

    def unlink(name: Any, **more: Any) -> None:
        real(name, **more)
        gone.append(name)

    monkeypatch.setattr(os, "unlink", unlink)
    run(rows, to=out)
    assert gone[:2] == ["release.key", "manifest.json"]
    assert len(gone) == 6


def test_resuming_needs_the_same_table(rows, tmp_path, monkeypatch):
    interrupted(rows, tmp_path / "out")
    vectors = np.random.default_rng(6).normal(size=(len(WORDS), 8))
    other = EmbeddingTable.build(name="small", words=WORDS, vectors=vectors)
    monkeypatch.setattr(privatizer, "load_table", lambda *_, **__: other)
    with pytest.raises(ConfigError, match="these differ: contents of the table;"):
        run(rows, to=tmp_path / "out", resume=True)


def test_files_that_do_not_fit_are_refused_before_others_are_drawn(rows, tmp_path):
    later = tmp_path / "b.jsonl"
    later.write_bytes(rows.read_bytes())
    interrupted(later, tmp_path / "out")
    with pytest.raises(ConfigError, match=r"^b\.jsonl: .*these differ: epsilon;"):
        run(rows, later, to=tmp_path / "out", resume=True, epsilon=6)
    assert names(tmp_path / "out") == [".b.jsonl.textveil"]


@pytest.mark.parametrize(
    ("seed", "error"), [(1, (OutputError, "No such file")), (None, (ConfigError, "no longer has the release.key"))]
)
def test_a_deleted_work_folder_ends_its_run_and_no_other(rows, tmp_path, seed, error):
    """The first run stands still, its folder is deleted, and a second run begins: the first cannot reach its folder."""
    out = tmp_path / "out"
    seen: dict[str, bytes] = {}

    def report(_: str, done: int, __: int) -> None:
        if done == 10:
            shutil.rmtree(work_of(out))
            interrupted(rows, out, seed=seed)
            seen.update(chunks(out))

    with pytest.raises(error[0], match=error[1]):
        run(rows, to=out, seed=seed, report=report)
    assert len(seen) == 2
    assert chunks(out) == seen
    assert names(out) == [".a.jsonl.textveil"]
    run(rows, to=out, seed=seed, resume=True)
    assert names(out) == FINISHED


def test_a_later_run_of_a_finished_file_keeps_its_work_folder(rows, tmp_path):
    """While a run is at its second file, another one begins the first anew in the same folder."""
    later, out = tmp_path / "b.jsonl", tmp_path / "out"
    later.write_bytes(rows.read_bytes())

    def report(name: str, done: int, __: int) -> None:
        if (name, done) == ("b.jsonl", 0):
            for each in FINISHED:
                (out / each).rename(tmp_path / f"kept-{each}")
            interrupted(rows, out)

    run(rows, later, to=out, report=report)
    assert len(chunks(out)) == 2


def test_a_work_folder_is_for_its_owner_only(rows, tmp_path, monkeypatch):
    out = tmp_path / "out"
    work_of(out).mkdir(parents=True)
    work_of(out).chmod(0o777)
    interrupted(rows, out, resume=True)
    assert {stat.S_IMODE(each.stat().st_mode) for each in work_of(out).iterdir()} == {0o600}
    assert stat.S_IMODE(work_of(out).stat().st_mode) == 0o700
    with monkeypatch.context() as other:
        other.setattr(os, "geteuid", lambda: 12345)
        with pytest.raises(ConfigError, match="belongs to another user"):
            run(rows, to=out, resume=True)
    work_of(out).rename(tmp_path / "elsewhere")
    for make in (lambda: work_of(out).symlink_to(tmp_path / "elsewhere"), lambda: work_of(out).write_text("x")):
        make()
        with pytest.raises(ConfigError, match=r"^a\.jsonl: \.a\.jsonl\.textveil .* is not a work folder of yours"):
            run(rows, to=out, resume=True)
        work_of(out).unlink()
    monkeypatch.setattr(work, "fcntl", None)
    with pytest.raises(ConfigError, match="a system that can lock folders"):
        run(rows, to=out)


def test_an_output_is_as_private_as_its_input(rows, tmp_path):
    rows.chmod(0o600)
    run(rows, to=tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out" / "a.jsonl").stat().st_mode) == 0o600


def test_many_files_need_few_descriptors(tmp_path):
    paths = [tmp_path / f"{number}.txt" for number in range(80)]
    for path in paths:
        path.write_text("the anna\n")
    run(paths[0], to=tmp_path / "first")  # what is opened once
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/dev/fd")))  # of those that other tests left open, with gaps below
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 40, before[1]))
    try:
        run(*paths, to=tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(names(tmp_path / "out")) == 160


@pytest.mark.parametrize("name", ["out", "a/new/one"])
def test_every_new_name_is_brought_to_the_disk(rows, tmp_path, monkeypatch, name):
    """Also that of a folder, and where the output is in the folder that one is in."""
    (inside := tmp_path / "inside").mkdir()
    monkeypatch.chdir(inside)
    synced, real = [], os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    run(rows, to=Path(name))
    folders = [Path(name), *Path(name).parents]
    assert {each.stat().st_ino for each in folders} <= set(synced)
    synced.clear()
    run(rows, to=Path())
    assert synced.count(inside.stat().st_ino) >= 3  # the work folder, the statement, the output


def test_a_finished_run_is_not_drawn_again(rows, tmp_path, monkeypatch):
    out = tmp_path / "out"
    run(rows, to=out, seed=1)
    before = {name: (out / name).read_bytes() for name in FINISHED}
    (out / ".a.jsonl.textveil").mkdir()  # killed just before its last step
    monkeypatch.setattr(chunking, "Privatizer", None)
    (done,) = run(rows, to=out, seed=1, resume=True)
    assert (done.guarantee, done.before, done.document["rows"]) == (None, True, 37)
    assert {name: (out / name).read_bytes() for name in FINISHED} == before
    assert names(out) == FINISHED
    with pytest.raises(ConfigError, match=r"already holds a\.jsonl; delete it"):
        run(rows, to=out, seed=1)
    with pytest.raises(ConfigError, match="these differ: configuration;"):
        run(rows, to=out, resume=True)
    later = (out / FINISHED[1]).stat().st_mtime_ns + 10**9
    os.utime(rows, ns=(later, later))
    with pytest.raises(ConfigError, match="input is newer"):
        run(rows, to=out, seed=1, resume=True)
    content = rows.read_text()
    for other in (content + '{"n": 1, "text": "a"}\n', content.replace('"n": 1', '"n": 0'), '{"n": 0, "text": "x"}\n'):
        rows.write_text(other)
        os.utime(rows, ns=(1, 1))
        with pytest.raises(ConfigError, match=r"^a\.jsonl: the output was made from another input"):
            run(rows, to=out, seed=1, resume=True)
    rows.write_text(content)
    os.utime(rows, ns=(1, 1))
    for broken in ({"texts": None}, {"more": 1}):
        document = json.loads(before[FINISHED[1]]) | broken
        (out / FINISHED[1]).write_text(json.dumps({key: each for key, each in document.items() if each is not None}))
        with pytest.raises(ConfigError, match="do not match"):
            run(rows, to=out, seed=1, resume=True)
    (out / "a.jsonl").write_text("x")
    with pytest.raises(ConfigError, match="do not match"):
        run(rows, to=out, seed=1, resume=True)
    (out / FINISHED[1]).unlink()
    with pytest.raises(ConfigError, match=r"not from a finished run; delete a\.jsonl$"):
        run(rows, to=out, seed=1, resume=True)
    (out / "a.jsonl").rename(out / FINISHED[1])
    with pytest.raises(ConfigError, match=r"not from a finished run; delete a\.jsonl\.guarantee\.json$"):
        run(rows, to=out, seed=1, resume=True)


def test_what_another_process_finished_meanwhile_is_kept(rows, tmp_path, monkeypatch):
    out, plan = tmp_path / "out", planning.plan

    def slow(*arguments: Any, **more: Any) -> Any:
        planned = plan(*arguments, **more)
        monkeypatch.setattr(runs, "plan", plan)
        run(rows, to=out)
        return planned

    monkeypatch.setattr(runs, "plan", slow)
    with pytest.raises(ConfigError, match="another process finished this file"):
        run(rows, to=out, resume=True)
    assert names(out) == FINISHED


def test_one_process_at_a_time(rows, tmp_path):
    def second(_: str, done: int, __: int) -> None:
        if done:
            run(rows, to=tmp_path / "out", resume=True)

    with pytest.raises(ConfigError, match="another process is at work"):
        run(rows, to=tmp_path / "out", report=second)
    assert len(chunks(tmp_path / "out")) == 1


@pytest.mark.parametrize("options", [{}, {"resume": True}, {"resume": True, "epsilon": 6}])
def test_nothing_tells_to_delete_the_folder_of_a_run_that_is_alive(rows, tmp_path, options):
    def beside(_: str, done: int, __: int) -> None:
        if done:
            run(rows, to=tmp_path / "out2", **options)

    with pytest.raises(
        ConfigError, match=r"^(a\.jsonl: ){2}another process is at work on it; wait until it has ended$"
    ):
        run(rows, to=tmp_path / "out2", report=beside)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_the_finished_chunks(rows, tmp_path, number):
    def report(_: str, done: int, __: int) -> None:
        if done >= 20:
            signal.raise_signal(number)

    handler = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    outside = signal.signal(number, handler)  # a shell has what it runs in the background ignore SIGINT
    try:
        with pytest.raises(SystemExit if number == signal.SIGTERM else KeyboardInterrupt):
            run(rows, to=tmp_path / "out", report=report)
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, outside)
    assert names(tmp_path / "out") == [".a.jsonl.textveil"]
    assert sorted(names(tmp_path / "out" / ".a.jsonl.textveil")) == [
        "00000000.chunk",
        "00000001.chunk",
        "manifest.json",
        "release.key",
    ]


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "after"),
    [("fsync", 1), ("fsync", 2), ("fsync", 4), ("fsync", 8), *[("replace", after) for after in (1, 2, 4, 6, 7, 8, 9)]],
)
def test_a_full_disk_leaves_the_finished_chunks(rows, tmp_path, monkeypatch, call, after):
    """At every step no output is without its statement: key, manifest, four chunks, both files, both names."""
    out, calls, real = tmp_path / "out", 0, getattr(os, call)
    said = "finished rows are kept; go on with --resume$" if after > 2 else "nothing was finished$"

    def full(target: Any, *arguments: Any, **more: Any) -> Any:
        nonlocal calls
        calls += call == "replace" or not stat.S_ISDIR(os.fstat(target).st_mode)
        if calls > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(target, *arguments, **more)

    with monkeypatch.context() as disk:
        disk.setattr(streams, "sync_folder", lambda _: None)
        disk.setattr(os, call, full)
        with pytest.raises(
            OutputError, match=r"^a.jsonl: the output cannot be written: No space left on device; " + said
        ):
            run(rows, to=out)
    assert not [name for name in names(out / ".a.jsonl.textveil") if name.endswith(".part")]
    before = chunks(out)
    assert len(before) == max(0, min(after - 2, 4))
    assert names(out) == [".a.jsonl.textveil"] * bool(before) + ["a.jsonl.guarantee.json"] * (after == 9)
    run(rows, to=out, resume=bool(before))
    assert names(out) == FINISHED


def test_what_does_not_go_together_is_refused_before_anything_is_written(rows, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "A.JSONL").write_bytes(rows.read_bytes())
    (folder / "b.txt").write_text(CANARY)
    out = tmp_path / "out"

    def refused(says: str, *paths: Path, to: Path = out, error: type[Exception] = ConfigError, **more: Any) -> None:
        with pytest.raises(error, match=says) as caught:
            run(*paths, to=to, **more)
        assert CANARY not in str(caught.value)
        assert not out.exists()

    refused("must have different names", rows, folder / "A.JSONL")
    refused("must not be the folder of the input", rows, to=tmp_path)
    refused("must be a folder, but a file", rows, to=folder / "b.txt")
    refused("number 2 of 2 does not exist", rows, tmp_path / "no.txt", error=InputError)
    refused("number 1 of 1 is a folder", folder, error=InputError)
    os.mkfifo(tmp_path / "pipe.txt")
    refused("number 1 of 1 is no regular file", tmp_path / "pipe.txt", error=InputError)
    refused("^b.txt: a .txt file has no fields", rows, folder / "b.txt", field="text")
    (folder / "b.txt").write_bytes(CANARY.encode() + b"\xff")
    refused("^b.txt: the input must be UTF-8; byte 10", rows, folder / "b.txt", error=InputError)
    (folder / "c.csv").write_text(f"text,n\n{CANARY}\n")
    refused("^c.csv: line 2 must have 2 columns", rows, folder / "c.csv", error=InputError)


@pytest.mark.parametrize("when", [10, 37])
def test_an_input_that_changes_meanwhile(rows, tmp_path, when):
    """Nothing that was drawn from what it became is kept: put back as it was, the run goes on."""
    content = rows.read_bytes()

    def report(_: str, done: int, __: int) -> None:
        if done == when:
            rows.write_bytes(content.replace(b"anna", b"RUTH"))
            os.utime(rows, ns=(1, 1))

    with pytest.raises(InputError, match="the input changed during the run"):
        run(rows, to=tmp_path / "out", report=report)
    assert names(tmp_path / "out") == [".a.jsonl.textveil"]
    assert len(chunks(tmp_path / "out")) == (1 if when == 10 else 4)
    rows.write_bytes(content)
    run(rows, to=tmp_path / "out", resume=True)
    assert numbers(tmp_path / "out" / "a.jsonl") == list(range(37))


def test_an_input_that_changes_unnoticed(rows, tmp_path, monkeypatch):
    """With the same size and time; the digests of the chunks tell."""
    monkeypatch.setattr(planning, "_state", lambda _: (0,))

    def report(_: str, done: int, total: int) -> None:
        if done == total:
            rows.write_bytes(rows.read_bytes().replace(b"anna", b"RUTH"))

    with pytest.raises(InputError, match="another run, place or input"):
        run(rows, to=tmp_path / "out", report=report)
    assert names(tmp_path / "out") == [".a.jsonl.textveil"]


def test_names_that_are_not_utf_8(tmp_path, validator):
    path = tmp_path / os.fsdecode(b"\xe9t\xe9.txt")
    path.write_text("the anna\n")
    run(path, to=tmp_path / "out")
    assert len(names(tmp_path / "out")) == 2
    found = json.loads((tmp_path / "out" / f"{path.name}.guarantee.json").read_bytes())
    assert found["file"] == path.name
    validator.validate(found)
    assert run(path, to=tmp_path / "out", resume=True)[0].before


def test_names_that_are_too_long_for_a_statement(tmp_path):
    path = tmp_path / f"{'x' * 238}.txt"
    path.write_text("the anna\n")
    with pytest.raises(ConfigError, match="file name is too long"):
        run(path, to=tmp_path / "out")
    path = path.rename(tmp_path / f"{'x' * 236}.txt")
    run(path, to=tmp_path / "out")
    assert len(names(tmp_path / "out")) == 2


def test_what_the_system_does_not_let_look_at(rows, tmp_path, monkeypatch):
    def fails(*_: Any) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied")

    for name, error, says in [
        ("is_file", InputError, r"^a\.jsonl: the input file cannot be read: Permission denied$"),
        ("exists", OutputError, r"cannot be written: Permission denied$"),
    ]:
        with monkeypatch.context() as system:
            system.setattr(Path, name, fails)
            with pytest.raises(error, match=says):
                run(rows, to=tmp_path / "out")


def test_an_unknown_word_as_an_error_leaves_no_output(rows, tmp_path):
    with pytest.raises(InputError, match="outside the table"):
        run(rows, to=tmp_path / "out", words={"oov": "error"})
    assert names(tmp_path / "out") == []
