"""Runs over corpora: every row once, the same whoever draws and however often, and nothing said that is not so."""

import json
import os
import random
import shutil
import signal
import stat
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files as packaged
from pathlib import Path
from typing import Any

import fsspec
import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import referencing
from tests.fixtures import full_disk

from textveil.config import layers, sections
from textveil.corpus import (
    FinishedRelease,
    RowOptions,
    finish,
    loss_histogram,
    part_worker,
    runs,
    survey,
    verify,
)
from textveil.corpus.rows import Labels
from textveil.errors import ConfigError, InputError, OutputError, TextveilError
from textveil.files import formats, storage, work
from textveil.files.pieces import LineBatch
from textveil.guarantee import Guarantee, summarize
from textveil.pipeline import privatizer
from textveil.randomness import KeyedRandomness
from textveil.table.embedding import EmbeddingTable

pytestmark = pytest.mark.filterwarnings(
    "ignore:a person may be found:textveil.errors.TextveilWarning"
)

CANARY = "Zyxqorvian"
LETTER = (
    "anna owes bank nine hundred pounds letter doctor clinic pain knee tablets monday rest weeks"
)
WORDS = LETTER.split()


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> EmbeddingTable:
    """A small table in place of the default one."""
    vectors = np.random.default_rng(5).normal(size=(len(WORDS), 8))
    small = EmbeddingTable.build(name="small", words=WORDS, vectors=vectors)
    monkeypatch.setattr(privatizer, "load_table", lambda *_, **__: small)
    part_worker._PRIVATIZERS.clear()
    return small


def resolved(**options: Any) -> sections.Config:
    return layers.resolve(overrides=layers.convert_keywords(**{"epsilon": 5, **options}))


OWN = ("jobs", "resume", "report", "executor", "key_file", "keep_key", "part_rows")
ROWS = ("fields", "id", "ids", "subject", "query", "others", "whole")


def run(*inputs: Path | str, to: Path | str, **more: Any) -> FinishedRelease:
    """Over parts of ten rows."""
    own = {name: more.pop(name) for name in OWN if name in more}
    rows = {name: more.pop(name) for name in ROWS if name in more}
    if "id" not in rows and "ids" not in rows:
        rows["id"] = "n"
    return runs.run(
        list(inputs), to, resolved(**more), RowOptions(**rows), **{"part_rows": 10, **own}
    )


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """37 rows with an id."""
    path = tmp_path / "a.jsonl"
    lines = [
        json.dumps({"n": n, "text": f"the {WORDS[n % 15]} and {WORDS[n % 7]} {n}"})
        for n in range(37)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


PARTS = [f"part-{number:08}.jsonl" for number in range(4)]
FINISHED = ["manifest.json", *PARTS, "statement.html", "statement.md"]


def released(out: Path) -> list[dict[str, Any]]:
    """All rows of a release of JSON lines."""
    parts = sorted(out.glob("part-*.jsonl"))
    return [json.loads(line) for part in parts for line in part.read_text().splitlines()]


def content(out: Path) -> dict[str, bytes]:
    """What a release says, but for its random name."""
    return {name: (out / name).read_bytes() for name in names(out) if name != "manifest.json"}


def with_one_key(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """All runs of the test have the same release key."""
    key = bytes(range(32))
    monkeypatch.setattr(KeyedRandomness, "make_key", staticmethod(lambda: key))
    return key


# ---- rows ----------------------------------------------------------------------------------------


def test_a_run(rows, tmp_path):
    done = run(rows, to=tmp_path / "out")
    assert names(tmp_path / "out") == FINISHED
    found = released(tmp_path / "out")
    assert [each["n"] for each in found] == list(range(37))
    assert all(each["text"].split()[0] == "the" for each in found)
    assert done.manifest["rows"] == done.manifest["texts"]["text"] == 37
    assert [part["rows"] for part in done.manifest["parts"]] == [10, 10, 10, 7]
    assert verify(tmp_path / "out") == []


@pytest.mark.parametrize("packing", ["", ".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv", "txt"])
def test_formats_of_lines(tmp_path, ending, packing):
    """A part in the middle of a file, and of a compressed one, is found by where it begins."""
    texts = [f"the {WORDS[n % 15]} and" for n in range(25)]
    lines = {
        "jsonl": [
            json.dumps({"n": n, "other": 1.0e5, "text": text}) for n, text in enumerate(texts)
        ],
        "csv": ["n,other,text", *(f'{n},"x, y","{text}"' for n, text in enumerate(texts))],
        "tsv": ["n\tother\ttext", *(f"{n}\tx\t{text}" for n, text in enumerate(texts))],
        "txt": texts,
    }[ending]
    path, plain = tmp_path / f"a.{ending}{packing}", tmp_path / f"plain.{ending}"
    plain.write_text("\n".join(lines) + "\n")
    with (
        path.open("wb") as file,
        formats.open_compressor(file, packing.removeprefix(".")) as packed,
    ):
        packed.write(plain.read_bytes())
    labels: dict[str, Any] = {"ids": "row"} if ending == "txt" else {"id": "n", "others": "copy"}
    run(path, to=tmp_path / "out", seed=1, **labels)
    made = sorted((tmp_path / "out").glob("part-*"))
    assert [each.name for each in made] == [f"part-{n:08}.{ending}{packing}" for n in range(3)]
    found = []
    for each in made:
        with formats.open_file(each, packing=packing.removeprefix(".")) as file:
            found.append(file.read().decode().splitlines())
    head = 1 if ending in ("csv", "tsv") else 0
    assert all(each[:head] == lines[:head] for each in found)
    rows = [line for each in found for line in each[head:]]
    assert len(rows) == 25
    for row, line, text in zip(rows, lines[head:], texts, strict=True):
        before, after = line.split(text)
        assert row.startswith(before + "the ")
        assert row.endswith(" and" + after)
    assert verify(tmp_path / "out") == []


def test_parquet(tmp_path):
    texts = [f"the {WORDS[n % 15]}" if n % 3 else None for n in range(25)]
    data = pa.table({"n": range(25), "text": texts, "deep": [[{"x": n}] for n in range(25)]})
    pq.write_table(
        data.replace_schema_metadata({"who": "me"}), tmp_path / "a.parquet", row_group_size=12
    )
    run(tmp_path / "a.parquet", to=tmp_path / "out", others="copy")
    parts = [pq.read_table(each) for each in sorted((tmp_path / "out").glob("part-*"))]
    assert [len(each) for each in parts] == [12, 12, 1] or sum(map(len, parts)) == 25
    made = pa.concat_tables(parts)
    assert made.drop_columns("text").equals(data.drop_columns("text"))
    assert [each is None for each in made["text"].to_pylist()] == [each is None for each in texts]
    assert made.schema.metadata is None
    run(tmp_path / "a.parquet", to=tmp_path / "less", others="drop")
    assert pq.read_table(tmp_path / "less" / "part-00000000.parquet").column_names == ["n", "text"]


def test_a_whole_file_as_one_text(tmp_path):
    (tmp_path / "a.txt").write_text("the anna\nowes the bank\n")
    done = run(tmp_path / "a.txt", to=tmp_path / "out", whole=True, ids="row")
    assert done.manifest["rows"] == 1
    assert len((tmp_path / "out" / "part-00000000.txt").read_text().splitlines()) == 2


def test_folders_patterns_and_storages(rows, tmp_path):
    files = fsspec.filesystem("memory")
    for name in ("b/a.jsonl", "b/deep/b.jsonl", "b/_hidden/c.jsonl", "b/notes.md"):
        files.pipe(f"/{name}", rows.read_bytes().replace(b'"n": ', b'"n": %d' % (1 + len(name))))
        here = tmp_path / name
        here.parent.mkdir(parents=True, exist_ok=True)
        here.write_bytes(files.cat(f"/{name}"))
    key, found = str(tmp_path / "key"), list[list[str]]()
    try:
        for number, inputs in enumerate(
            (["memory://b"], ["memory://b/*.jsonl", "memory://b/deep/b.jsonl"])
        ):
            done = run(*inputs, to=f"memory://out{number}", seed=3, key_file=key)
            assert done.manifest["inputs"] == 2
            assert not os.path.exists(key)
            assert verify(f"memory://out{number}") == []
            assert not files.exists(f"/out{number}/_textveil")
            found.append([each["sha256"] for each in done.manifest["parts"]])
        local = run(tmp_path / "b", to=tmp_path / "out", seed=3)
        assert found == [[each["sha256"] for each in local.manifest["parts"]]] * 2
        files.pipe("/out1/part-00000000.jsonl", b"x")
        assert verify("memory://out1") == ["part-00000000.jsonl was changed"]
        with pytest.raises(ConfigError, match="--key-file"):
            run("memory://b", to="memory://out2")
        with pytest.raises(ConfigError, match="without any of the input"):
            run("memory://b", to="memory://b", key_file=key)
    finally:
        for name in ("/b", "/out0", "/out1"):
            files.rm(name, recursive=True)
    with pytest.raises(ConfigError, match="fsspec has no storage named 'nowhere://'"):
        run("nowhere://b", to=tmp_path / "out2")


def test_a_folder_by_its_uri_is_a_folder_of_this_machine(rows, tmp_path):
    """Its key lies in it, and it is held by one process."""
    out = tmp_path / "out"
    with (
        work.lock_folder(out / "_textveil"),
        pytest.raises(ConfigError, match="another process is working on it"),
    ):
        run(rows, to=f"file://{out}")
    done = run(rows, to=f"file://{out}", keep_key=True)
    assert (out / "_textveil" / "release.key").stat().st_mode & 0o777 == 0o600
    finish(f"file://{out}")
    assert verify(out) == verify(f"file://{out}") == []
    assert done.manifest["rows"] == 37


@pytest.fixture
def bucket():
    """An object store that several runs can reach."""
    files = fsspec.filesystem("memory")
    yield files
    files.rm("/bucket", recursive=True)


def test_of_two_runs_into_an_object_store_one_begins(rows, tmp_path, bucket, monkeypatch):
    """The other one says so, and leaves neither its key nor a trace of itself."""
    done: list[FinishedRelease] = []
    names = storage.Storage.list_files

    def meanwhile(self: Any) -> list[str]:
        """The other run begins when this one has seen that there is nothing."""
        found = names(self)
        if self.uri == "memory://bucket/out":
            monkeypatch.setattr(storage.Storage, "list_files", names)
            with pytest.raises(InterruptedError):
                run(
                    rows,
                    to="memory://bucket/out",
                    key_file=str(tmp_path / "first"),
                    report=interrupt,
                )
        return found

    def interrupt(name: str, made: int, total: int) -> None:
        if name == "rows" and made:
            raise InterruptedError

    monkeypatch.setattr(storage.Storage, "list_files", meanwhile)
    with pytest.raises(ConfigError, match="began at the same moment"):
        run(rows, to="memory://bucket/out", key_file=str(tmp_path / "second"))
    assert sorted(os.listdir(tmp_path)) == ["a.jsonl", "first"]
    done.append(run(rows, to="memory://bucket/out", key_file=str(tmp_path / "first"), resume=True))
    assert done[0].manifest["rows"] == 37
    assert verify("memory://bucket/out") == []


def test_a_run_that_has_ended_meanwhile_is_not_written_over(rows, tmp_path, bucket, monkeypatch):
    names = storage.Storage.list_files

    def meanwhile(self: Any) -> list[str]:
        found = names(self)
        if self.uri == "memory://bucket/out":
            monkeypatch.setattr(storage.Storage, "list_files", names)
            run(rows, to="memory://bucket/out", key_file=str(tmp_path / "first"))
        return found

    monkeypatch.setattr(storage.Storage, "list_files", meanwhile)
    with pytest.raises(ConfigError, match="wrote into this folder at the same moment"):
        run(rows, to="memory://bucket/out", key_file=str(tmp_path / "second"))
    assert sorted(os.listdir(tmp_path)) == ["a.jsonl"]
    assert verify("memory://bucket/out") == []


@pytest.mark.parametrize("how", ["taken", "taken at the end", "given up", "finished"])
def test_a_run_whose_folder_is_taken_adds_nothing(rows, tmp_path, bucket, how):
    """Where a store cannot tell who was first, the run that finds another one's name stops, before a part and at the
    end."""
    out = "memory://bucket/out"

    def meanwhile(name: str, made: int, total: int) -> None:
        if name == "rows" and made == (37 if how == "taken at the end" else 20):
            if how.startswith("taken"):
                bucket.pipe("/bucket/out/_textveil/run.json", b'{"run": "another"}')
            elif how == "given up":
                finish(out, key_file=str(tmp_path / "key"), give_up=True)
            else:
                run(rows, to=out, key_file=str(tmp_path / "key"), resume=True)

    with pytest.raises(ConfigError, match=r"no longer belongs to this run|is no longer there"):
        run(rows, to=out, key_file=str(tmp_path / "key"), report=meanwhile)
    ended = [name for name in FINISHED if name != "manifest.json"]
    found = [name for name in storage.Storage(out).list_tree() if not name.startswith("_textveil")]
    assert (
        found
        == {"taken": PARTS[:2], "taken at the end": ended, "given up": [], "finished": FINISHED}[
            how
        ]
    )
    if how == "finished":
        assert verify(out) == []


def test_two_that_resume_a_run_make_one_release(rows, tmp_path, bucket):
    """They have one key, so it does not matter who puts a part in its place."""
    out, key = "memory://bucket/out", str(tmp_path / "key")
    here: list[FinishedRelease] = []

    def again(name: str, made: int, total: int) -> None:
        if name == "rows" and made == 20 and not here:
            here.append(run(rows, to=out, key_file=key, resume=True, keep_key=True))

    done = run(rows, to=out, key_file=key, keep_key=True, report=again)
    assert {**done.manifest} == {**here[0].manifest}
    finish(out, key_file=key)
    assert verify(out) == []


def test_stores_that_cannot_create_files_exclusively(rows, tmp_path, bucket, monkeypatch):
    def pipe_file(self: Any, path: str, value: bytes, mode: str = "overwrite", **more: Any) -> None:
        if mode == "create":
            raise NotImplementedError
        return original(self, path, value, **more)

    original = type(bucket).pipe_file
    monkeypatch.setattr(type(bucket), "pipe_file", pipe_file)
    run(rows, to="memory://bucket/out", key_file=str(tmp_path / "key"))
    assert verify("memory://bucket/out") == []


def test_several_fields(tmp_path):
    """Each field of a row has draws of its own, also where the texts are equal."""
    lines = [{"n": n, "text": LETTER, "body": LETTER, "note": None, "x": 1} for n in range(12)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    for others in ("copy", "drop"):
        done = run(
            tmp_path / "a.jsonl",
            to=tmp_path / others,
            fields=("text", "body", "note"),
            others=others,
            epsilon=1e-6,
        )
        assert done.manifest["texts"] == {"text": 12, "body": 12, "note": 0}
        found = released(tmp_path / others)
        assert len({each[name] for each in found for name in ("text", "body")}) == 24
        assert {*found[0]} == {"n", "text", "body", "note", *(["x"] if others == "copy" else [])}
    with pytest.raises(
        ConfigError, match=r"1 field that no option names .*--others copy.*--others drop"
    ):
        run(tmp_path / "a.jsonl", to=tmp_path / "out", fields=("text", "body", "note"))
    assert not (tmp_path / "out").exists() or names(tmp_path / "out") == []


SELECTIVE: dict[str, Any] = {
    "mechanism": "krr",
    "epsilon": None,
    "protect": {"importance": "cosine", "tau": 0.99},
    "groups": {"budgets": (40, 40, 40, 1e-6)},
    "seed": 3,
}


def test_each_row_has_its_query(tmp_path):
    """Words of the query have the large budget and stay; others hardly do: the release shows which it was."""
    path, out = tmp_path / "a.jsonl", tmp_path / "out"
    asked = ["anna", "doctor", "clinic"] * 9
    path.write_text(
        "".join(
            json.dumps({"n": n, "q": q, "text": "anna doctor clinic"}) + "\n"
            for n, q in enumerate(asked)
        )
    )
    for ids in ({"id": "n"}, {"ids": "content", "others": "drop"}):
        shutil.rmtree(out, ignore_errors=True)
        done = run(path, to=out, query="q", **ids, **SELECTIVE)
        assert done.manifest["query"] == "q"
        found = [each["text"] for each in released(out)]
        assert all(query in text.split() for text, query in zip(found, asked, strict=True))
        others = sum(
            text.split().count(word)
            for text, query in zip(found, asked, strict=True)
            for word in {*asked} - {query}
        )
        assert others < len(asked)  # of 54 about 4 stay by chance


# ---- ids -----------------------------------------------------------------------------------------


def test_rows_need_ids(rows, tmp_path):
    with pytest.raises(ConfigError, match=r"--id NAME.*--id-from-row.*--id-from-content"):
        run(rows, to=tmp_path / "out", id=None)
    path = tmp_path / "b.jsonl"
    for bad, says in (
        (
            '{"n": 36, "text": "anna"}',
            "an id occurs twice: in row 37 of input file 1 and row 38 of .* --id-from-row",
        ),
        ('{"n": null, "text": "a"}', "row 38 must"),
    ):
        path.write_text(rows.read_text() + bad + "\n")
        with pytest.raises(InputError, match=says):
            run(path, to=tmp_path / "out")
        assert not (tmp_path / "out").exists() or names(tmp_path / "out") == []
    path.write_text('{"n": 5, "text": "anna"}\n')
    with pytest.raises(InputError, match="in row 6 of input file 1 and row 1 of input file 2"):
        run(rows, path, to=tmp_path / "out")


def test_ids_are_compared_a_slice_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(survey, "MARKS_PER_SLICE", 7)
    marks = storage.Storage(str(tmp_path))
    many = np.random.default_rng(1).integers(0, 1 << 63, (50, 3), np.uint64)
    for number, some in enumerate((many[:20], many[20:])):
        marks.write(f"{number}.npy", survey.pack_marks(some.astype("<u8").tobytes()))
    survey.require_unique(marks)
    again = np.array([[*many[7, :2], 9]], np.uint64)
    marks.write("2.npy", survey.pack_marks(again.astype("<u8").tobytes()))
    with pytest.raises(InputError, match=f"in row {many[7, 2]} of .* 1 and row 9 of input file 3"):
        survey.require_unique(marks)


def test_equal_texts_without_ids(tmp_path):
    (tmp_path / "a.txt").write_text(f"{LETTER}\n" * 30)
    run(tmp_path / "a.txt", to=tmp_path / "row", ids="row", epsilon=1e-6)
    assert (
        len({*"".join(each.read_text() for each in (tmp_path / "row").glob("part*")).splitlines()})
        == 30
    )
    done = run(tmp_path / "a.txt", to=tmp_path / "content", ids="content", epsilon=1e-6)
    assert (
        len(
            {
                *"".join(
                    each.read_text() for each in (tmp_path / "content").glob("part*")
                ).splitlines()
            }
        )
        == 1
    )
    assert done.manifest["statement"]["equal_texts_are_alike"]
    assert "which texts are equal" in (tmp_path / "content" / "statement.md").read_text()


# ---- exactly once --------------------------------------------------------------------------------


def test_a_seed_gives_the_same_release(rows, tmp_path):
    """However large parts are, and in which files rows stand."""
    halves = rows.read_text().splitlines(keepends=True)
    for name, lines in (("x.jsonl", halves[:11]), ("y.jsonl", halves[11:])):
        (tmp_path / name).write_text("".join(lines))
    run(rows, to=tmp_path / "1", seed=8)
    run(tmp_path / "x.jsonl", tmp_path / "y.jsonl", to=tmp_path / "2", seed=8, part_rows=3)
    run(rows, to=tmp_path / "3", seed=9)
    assert released(tmp_path / "1") == released(tmp_path / "2") != released(tmp_path / "3")
    assert (
        "protection against anyone who knows the seed"
        in (tmp_path / "1" / "statement.md").read_text()
    )
    assert '"seed": "not shown"' in (tmp_path / "1" / "manifest.json").read_text()


def test_a_changed_row_has_draws_of_its_own(tmp_path, monkeypatch):
    """Under one key: another id, field, text or budget never meets the same noise."""
    with_one_key(monkeypatch)

    def made(name: str, lines: Sequence[Any], **options: Any) -> list[str]:
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in lines))
        run(path, to=tmp_path / name, **{"epsilon": 1e-6, **options})
        return [
            next(each[field] for field in ("text", "body") if field in each)
            for each in released(tmp_path / name)
        ]

    base = made("base", [{"n": n, "text": LETTER} for n in range(12)])
    assert made("same", [{"n": n, "text": LETTER} for n in range(12)]) == base
    for name, lines, options in (
        ("ids", [{"n": 100 + n, "text": LETTER} for n in range(12)], {}),
        ("field", [{"n": n, "body": LETTER} for n in range(12)], {}),
        ("text", [{"n": n, "text": LETTER + " "} for n in range(12)], {}),
        ("budget", [{"n": n, "text": LETTER} for n in range(12)], {"epsilon": 2e-6}),
    ):
        assert not {*base} & {each.strip() for each in made(name, lines, **options)}


def test_two_releases_share_no_key(rows, tmp_path):
    for name in "ab":
        run(rows, to=tmp_path / name)
    assert released(tmp_path / "a") != released(tmp_path / "b")


def test_a_part_that_is_drawn_twice_is_the_same(rows, tmp_path):
    """An executor that draws every part twice, at last the other way round, as engines do that guess who is dead."""

    class Twice:
        def map(self, draw, items):
            listed = list(items)
            made = [draw(item) for item in listed]
            for item, before in zip(reversed(listed), reversed(made), strict=True):
                assert draw(item) == before
                yield item, before

        def share_key(self, key):
            return key

    run(rows, to=tmp_path / "1", seed=1)
    run(rows, to=tmp_path / "2", seed=1, executor=Twice())
    assert content(tmp_path / "1") == content(tmp_path / "2")


def test_the_key_lies_in_its_file_and_nowhere_else(rows, tmp_path, monkeypatch):
    key = with_one_key(monkeypatch)
    out, seen = tmp_path / "out", 0

    def report(name: str, done: int, _: int) -> None:
        nonlocal seen
        if name != "rows" or not done:
            return
        seen += 1
        assert stat.S_IMODE((out / "_textveil").stat().st_mode) == 0o700
        for path in out.rglob("*"):
            if path.is_file():
                said = path.read_bytes()
                assert (key in said or key.hex().encode() in said) == (path.name == "release.key")
                assert path.name != "release.key" or stat.S_IMODE(path.stat().st_mode) == 0o600
                assert path.name.startswith("part-") or CANARY.encode() not in said

    rows.write_text(rows.read_text() + json.dumps({"n": 99, "text": f"the {CANARY} and"}) + "\n")
    run(rows, to=out, report=report)
    assert seen == 4
    assert names(out) == FINISHED
    assert CANARY not in "".join((out / name).read_text() for name in FINISHED)


def test_a_key_can_be_kept_until_finish(rows, tmp_path):
    out = tmp_path / "out"
    run(rows, to=out, keep_key=True)
    assert (out / "_textveil" / "release.key").exists()
    assert verify(out) == [
        "the key of the release and the work files of its run are still there; "
        "delete them with `textveil corpus finish FOLDER`"
    ]
    finish(out)
    assert names(out) == FINISHED
    assert verify(out) == []
    key = tmp_path / "here" / "own.key"
    run(rows, to=tmp_path / "out2", keep_key=True, key_file=str(key))
    assert len(key.read_bytes()) == 32
    other = tmp_path / "thesis.txt"
    other.write_text("years of work")
    for wrong in (
        lambda: finish(tmp_path / "out2", key_file=str(other)),
        lambda: run(rows, to=tmp_path / "out2", resume=True, key_file=str(other)),
    ):
        with pytest.raises(ConfigError, match="not the key of this release"):
            wrong()
    assert other.read_text() == "years of work"
    with pytest.raises(ConfigError, match="must name a new file"):
        run(rows, to=tmp_path / "out3", key_file=str(other))
    finish(tmp_path / "out2", key_file=str(key))
    assert not key.exists()
    finish(tmp_path / "out2", key_file=str(other))  # nothing is left to destroy
    assert other.read_text() == "years of work"


def test_a_finished_release_is_not_taken_for_another_one(rows, tmp_path):
    out = tmp_path / "out"
    run(rows, to=out)
    assert run(rows, to=out, resume=True).is_earlier
    others: list[dict[str, Any]] = [
        {"epsilon": 3.0},
        {"id": None, "ids": "row"},
        {"fields": ("x",)},
        {"others": "drop"},
    ]
    for options in others:
        with pytest.raises(ConfigError, match="with other options"):
            run(rows, to=out, resume=True, **options)
    rows.with_name("b.jsonl").write_bytes(rows.read_bytes())
    with pytest.raises(ConfigError, match="inputs"):
        run(rows, rows.with_name("b.jsonl"), to=out, resume=True)


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


STEPS = ("mkdir", "open", "fsync", "replace", "unlink", "rmdir", "write")


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

    def steps() -> None:
        for name in STEPS:
            setattr(os, name, stepping(getattr(os, name)))
        work()

    return steps


@pytest.mark.slow
def test_killed_before_each_of_its_steps(rows, tmp_path, monkeypatch):
    """One run for every step at which it can be killed, each resumed: what was released is never drawn otherwise."""
    with_one_key(monkeypatch)
    run(rows, to=tmp_path / "undisturbed")
    expected = content(tmp_path / "undisturbed")
    for step in range(1000):
        out = tmp_path / f"out{step}"
        ended = in_a_child(killed_at(step, partial(run, rows, to=out, resume=True)))
        there = {each.name: each.read_bytes() for each in out.glob("part-*")}
        assert there.items() <= expected.items()
        if (out / "manifest.json").exists():
            assert there.keys() == {*PARTS}
        if out.exists() and not (out / "manifest.json").exists() and there:
            with pytest.raises(ConfigError, match="continue with --resume"):
                run(rows, to=out)
        run(rows, to=out, resume=True)
        assert content(out) == expected
        if ended == 0:
            assert step > 40
            return
        shutil.rmtree(out)
    pytest.fail("the run has more steps than it was killed at")


@pytest.mark.slow
def test_killed_at_random_moments(rows, tmp_path, monkeypatch):
    with_one_key(monkeypatch)
    run(rows, to=tmp_path / "undisturbed")
    out, picks, met = tmp_path / "out", random.Random(7), 0
    for _ in range(8):
        child = os.fork()
        if child == 0:
            os.closerange(0, 3)
            try:
                run(rows, to=out, resume=True, report=lambda *_: time.sleep(0.02))
            finally:
                os._exit(0)
        before = len(list(out.glob("part-*")))
        for _ in range(2000):
            if len(list(out.glob("part-*"))) > before or (out / "manifest.json").exists():
                break
            time.sleep(0.001)
        time.sleep(picks.uniform(0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        met += 0 < len(list(out.glob("part-*"))) < 4
    assert met >= 1
    run(rows, to=out, resume=True)
    assert content(out) == content(tmp_path / "undisturbed")


class StopError(Exception):
    pass


def interrupted(rows: Path, to: Path, after: int = 20, **more: Any) -> None:
    def report(name: str, done: int, __: int) -> None:
        if name == "rows" and done >= after:
            raise StopError

    with pytest.raises(StopError):
        run(rows, to=to, report=report, **more)


def test_an_interrupted_run_goes_on(rows, tmp_path, monkeypatch):
    """Only what is missing is drawn, and what was lost comes as it was."""
    out = tmp_path / "out"
    interrupted(rows, out)
    assert names(out) == ["_textveil", *PARTS[:2]]
    before = {name: (out / name).read_bytes() for name in PARTS[:2]}
    with pytest.raises(ConfigError, match="continue with --resume"):
        run(rows, to=out)
    with pytest.raises(InputError, match="no finished release"):
        verify(out)
    os.unlink(out / PARTS[0])
    drawn, real = list[int](), part_worker.PartWorker.__call__

    def noted(self: part_worker.PartWorker, part: part_worker.Part) -> dict[str, Any]:
        drawn.append(part.number)
        return real(self, part)

    monkeypatch.setattr(part_worker.PartWorker, "__call__", noted)
    run(rows, to=out, resume=True)
    assert drawn == [0, 2, 3]
    assert before.items() <= content(out).items()
    assert run(rows, to=out, resume=True).is_earlier
    with pytest.raises(ConfigError, match="finished release; use another"):
        run(rows, to=out)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epsilon": 6}, "epsilon"),
        ({"mechanism": "krr"}, "mechanism.name"),
        ({"part_rows": 9}, "rows of a part"),
        ({"seed": 2}, "seed"),
        ({"subject": "n"}, "rows.subject"),
    ],
)
def test_resuming_needs_the_same_options(rows, tmp_path, change, says):
    interrupted(rows, tmp_path / "out")
    with pytest.raises(ConfigError, match=f"these differ: [^:;]*{says}"):
        run(rows, to=tmp_path / "out", resume=True, **change)


def test_a_part_that_was_cut_off_is_drawn_again(rows, tmp_path, monkeypatch):
    with_one_key(monkeypatch)
    run(rows, to=tmp_path / "undisturbed")

    def report(name: str, done: int, total: int) -> None:
        if name == "rows" and done == 30:
            raise InterruptedError

    out = tmp_path / "out"
    with pytest.raises(InterruptedError):
        run(rows, to=out, report=report)
    (out / PARTS[1]).write_bytes((out / PARTS[1]).read_bytes()[:-5])
    (out / PARTS[2]).write_bytes(b"")
    run(rows, to=out, resume=True)
    assert content(out) == content(tmp_path / "undisturbed")
    assert verify(out) == []


def test_resuming_needs_the_same_table(rows, tmp_path, monkeypatch):
    interrupted(rows, tmp_path / "out")
    other = EmbeddingTable.build(
        name="small", words=WORDS, vectors=np.random.default_rng(6).normal(size=(15, 8))
    )
    monkeypatch.setattr(privatizer, "load_table", lambda *_, **__: other)
    with pytest.raises(ConfigError, match="contents of the table"):
        run(rows, to=tmp_path / "out", resume=True)


def test_resuming_needs_the_same_input(rows, tmp_path):
    interrupted(rows, tmp_path / "out")
    before = rows.read_bytes()
    for changed in (
        before.replace(b"owes", b"bank", 1),
        before + b'{"n": 37, "text": "a"}\n',
        before[: len(before) // 2],
    ):
        rows.write_bytes(changed[: changed.rindex(b"\n") + 1])
        with pytest.raises(ConfigError, match="--resume needs the input"):
            run(rows, to=tmp_path / "out", resume=True)
    rows.write_bytes(before)
    run(rows, to=tmp_path / "out", resume=True)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "parquet"])
def test_copied_fields_may_not_change(tmp_path, kind):
    """Neither before a resume nor during the run, also where the length stays the same."""
    path, out = tmp_path / f"a.{kind}", tmp_path / "out"

    def put(city: str) -> None:
        table = [
            {"n": n, "text": f"the {WORDS[n % 15]}", "city": city if n > 30 else "Rome"}
            for n in range(37)
        ]
        if kind == "parquet":
            pq.write_table(pa.Table.from_pylist(table), path)
        elif kind == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in table))
        else:
            lines = ["n,text,city", *(",".join(map(str, row.values())) for row in table)]
            with (
                path.open("wb") as file,
                formats.open_compressor(file, "gz" if kind == "csv.gz" else "") as packed,
            ):
                packed.write("\n".join(lines).encode())

    def report(name: str, done: int, _: int) -> None:
        if name == "rows" and done == 20:
            put("Oslo")
            os.utime(path, (1, 1))  # also on a disk that counts time in steps

    put("Bern")
    with pytest.raises(InputError, match="changed during the run"):
        run(path, to=out, others="copy", report=report)
    with pytest.raises(ConfigError, match="--resume needs the input"):
        run(path, to=out, others="copy", resume=True)
    put("Bern")
    done = run(path, to=out, others="copy", resume=True)
    assert done.manifest["rows"] == 37


def test_an_input_that_changes_meanwhile(rows, tmp_path):
    def report(name: str, done: int, _: int) -> None:
        if name == "rows" and done == 20:
            rows.write_text(rows.read_text().replace("weeks", "monday"))

    before = rows.read_bytes()
    with pytest.raises(InputError, match="changed during the run"):
        run(rows, to=tmp_path / "out", report=report)
    assert names(tmp_path / "out") == ["_textveil", *PARTS[:2]]
    rows.write_bytes(before)
    run(rows, to=tmp_path / "out", resume=True)


def test_without_its_key_a_run_draws_no_more(rows, tmp_path):
    out = tmp_path / "out"
    interrupted(rows, out)
    (out / "_textveil" / "release.key").write_bytes(bytes(32))
    for _ in range(2):
        with pytest.raises(ConfigError, match="no longer there"):
            run(rows, to=out, resume=True)
        (out / "_textveil" / "release.key").unlink(missing_ok=True)


@pytest.mark.parametrize("damage", [b"{}", b"", b'{"run": 1}'])
def test_a_record_that_is_not_of_this_run_is_refused(rows, tmp_path, damage):
    out = tmp_path / "out"
    interrupted(rows, out)
    (out / "_textveil" / "done" / "00000001.json").write_bytes(damage)
    with pytest.raises(InputError, match="damaged or of another run"):
        run(rows, to=out, resume=True)


def test_a_run_can_be_given_up(rows, tmp_path):
    out = tmp_path / "out"
    interrupted(rows, out)
    with pytest.raises(ConfigError, match=r"--resume.*--give-up"):
        finish(out)
    own = ["notes.txt", "part-of-mine.jsonl", "run.py"]
    for name in own:
        (out / name).write_text("mine")
    (out / "statement.md").write_text("of a run that was killed before its manifest")
    finish(out, give_up=True)
    assert names(out) == own
    for name in own:
        (out / name).unlink()
    with pytest.raises(ConfigError, match="no release and no interrupted run"):
        finish(out)
    run(rows, to=out)


def test_one_process_at_a_time(rows, tmp_path):
    out = tmp_path / "out"

    def beside(name: str, done: int, _: int) -> None:
        if name == "rows" and done == 20:
            for resume in (True, False):
                with pytest.raises(ConfigError, match="another process is working"):
                    run(rows, to=out, resume=resume)
            with pytest.raises(ConfigError, match="another process is working"):
                finish(out, give_up=True)

    run(rows, to=out, report=beside)
    assert names(out) == FINISHED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_the_finished_parts(rows, tmp_path, number):
    def report(name: str, done: int, __: int) -> None:
        if name == "rows" and done >= 20:
            signal.raise_signal(number)

    handler = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    outside = signal.signal(
        number, handler
    )  # a shell has what it runs in the background ignore SIGINT
    try:
        with pytest.raises(SystemExit if number == signal.SIGTERM else KeyboardInterrupt):
            run(rows, to=tmp_path / "out", report=report)
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, outside)
    assert names(tmp_path / "out") == ["_textveil", *PARTS[:2]]


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("after", [1, 3, 5, 6, 9, 12])
def test_a_full_disk_leaves_the_finished_parts(rows, tmp_path, monkeypatch, call, after):
    out = tmp_path / "out"
    with (
        full_disk(monkeypatch, call, after),
        pytest.raises(OutputError, match=r"cannot be written: No space left on device$"),
    ):
        run(rows, to=out)
    assert not list(out.rglob("*.part"))
    before = {each.name: each.read_bytes() for each in out.glob("part-*")}
    run(rows, to=out, resume=True)
    assert before.items() <= content(out).items()
    assert names(out) == FINISHED


@pytest.mark.slow
def test_several_processes_draw_the_same_also_where_they_die(tmp_path, monkeypatch):
    """With a real table, because a spawned process knows nothing of a test's small one."""
    from textveil.corpus import LocalExecutor

    monkeypatch.undo()
    path = tmp_path / "a.txt"
    path.write_text("".join(f"the doctor owes {n} pounds\n" for n in range(45)))
    with_one_key(monkeypatch)
    options: dict[str, Any] = {"table": "minilm-s", "ids": "row"}
    run(path, to=tmp_path / "1", **options)
    run(path, to=tmp_path / "2", jobs=2, **options)
    with LocalExecutor(2, retries=3) as local:

        def report(name: str, done: int, _: int) -> None:
            if name == "rows" and done == 10:
                assert local._pool is not None
                os.kill(next(iter(local._pool._processes)), signal.SIGKILL)

        run(path, to=tmp_path / "3", executor=local, report=report, **options)
    assert content(tmp_path / "1") == content(tmp_path / "2") == content(tmp_path / "3")


# ---- verify --------------------------------------------------------------------------------------


def test_what_was_changed_in_a_release_is_found(rows, tmp_path):
    out = tmp_path / "out"
    run(rows, to=out)
    for name in FINISHED:
        before = (out / name).read_bytes()
        for place in (0, len(before) // 2, len(before) - 2):
            changed = bytearray(before)
            changed[place] ^= 1
            (out / name).write_bytes(changed)
            if name == "manifest.json":
                with pytest.raises(InputError, match="was changed"):
                    verify(out)
            else:
                assert verify(out) == [f"{name} was changed"]
        (out / name).unlink()
        if name != "manifest.json":
            assert verify(out) == [f"{name} is missing"]
        (out / name).write_bytes(before)
    (out / "part-00000004.jsonl").write_text("{}\n")
    (out / "more" / "deep").mkdir(parents=True)
    (out / "more" / "deep" / "originals.jsonl").write_text("{}\n")
    (out / "_textveil" / "ids").mkdir(parents=True)
    (out / "_textveil" / "ids" / "left").write_text("")
    assert verify(out) == [
        "more/deep/originals.jsonl does not belong to the release",
        "part-00000004.jsonl does not belong to the release",
        "the key of the release and the work files of its run are still there; "
        "delete them with `textveil corpus finish FOLDER`",
    ]
    with pytest.raises(InputError, match="no finished release"):
        verify(tmp_path)


# ---- statements ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    own, inner = (
        json.loads(
            (packaged("textveil") / "data" / f"{name}.schema.json").read_text(encoding="utf-8")
        )
        for name in ("release", "guarantee")
    )
    jsonschema.Draft202012Validator.check_schema(own)
    assert sorted(own["required"]) == sorted(own["properties"])
    assert all(each.get("description") for each in own["properties"].values())
    registry = referencing.Registry().with_resource(
        inner["$id"], referencing.Resource.from_contents(inner)
    )
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
def test_the_statement_over_parts_is_that_of_all_texts(rows, tmp_path, validator, options):
    done = run(rows, to=tmp_path / "out", **options)
    found = json.loads((tmp_path / "out" / "manifest.json").read_text())
    validator.validate(found)
    texts = [json.loads(line)["text"] for line in rows.read_text().splitlines()]
    results = list(privatizer.Privatizer.from_config(resolved(**options)).privatize_many(texts))
    expected: dict[str, Any] = json.loads(
        json.dumps(summarize([each.guarantee for each in results]).to_json())
    )
    counted = expected.pop("epsilon_per_word")
    inside = found["statement"]["guarantee"]
    listed = [
        each["epsilon"] for each in inside.pop("epsilon_per_word") for _ in range(each["words"])
    ]
    assert sorted(map(str, listed)) == sorted(map(str, counted))
    assert inside.pop("oov_share") == pytest.approx(expected.pop("oov_share"))
    assert inside == expected
    words = found["statement"]["words"]
    assert words["all"] == inside["words"] == words["public"] + words["protected"]
    kinds = ("drawn", "names", "figures", "placeholders", "left_out", "replaced", "passed")
    assert words["protected"] == sum(words[name] for name in kinds)
    assert (
        words["distinct"] == inside["protected"] == found["statement"]["losses"]["word"]["number"]
    )
    assert words["unknown"] == sum(
        round(each.guarantee.oov_share * each.guarantee.protected) for each in results
    )
    assert "4000000007" not in json.dumps(found)
    wrong: list[dict[str, Any]] = [{"rows": -1}, {"secret": 1}, {"statement": {}}, {"sha256": "x"}]
    for broken in wrong:
        assert not validator.is_valid(found | broken)
    assert done.guarantee is not None


def test_losses_are_sums_over_documents_and_subjects(tmp_path, monkeypatch):
    """Of 12 documents of 1, 2 and 3 drawn words, by two subjects; slices of few subjects change nothing."""
    from textveil.corpus import statement

    lines = [
        {"n": n, "who": "ab"[n // 6], "text": " ".join(["the", *WORDS[: 1 + n % 3]])}
        for n in range(12)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    options: dict[str, Any] = {"mechanism": "krr", "epsilon": 2, "subject": "who", "part_rows": 5}
    done = run(tmp_path / "a.jsonl", to=tmp_path / "1", **options)
    monkeypatch.setattr(statement, "SUBJECTS_PER_SLICE", 1)
    again = run(tmp_path / "a.jsonl", to=tmp_path / "2", **options)
    for each in (done, again):
        found = each.manifest["statement"]["losses"]
        assert {
            name: (x["number"], x["largest_epsilon_ldp"], x["median_epsilon_ldp"])
            for name, x in found.items()
        } == {
            "word": (24, pytest.approx(2), pytest.approx(2)),
            "document": (12, pytest.approx(6), pytest.approx(4)),
            "subject": (2, pytest.approx(24), pytest.approx(24)),
        }
    said = (tmp_path / "1" / "statement.md").read_text()
    assert (
        "Added up over all texts of one who the bound is 24 (median 24). That is too large to protect a who as a "
        "whole; what is proved is about single words." in said
    )
    assert "| document | 12 | 6 | 4 | 0 |" in said
    assert "a" not in [each["name"] for each in done.manifest["parts"]]


def test_amounts():
    made = loss_histogram.LossHistogram()
    assert (made.number, made.median) == (0, 0)
    made.add([(1_234_567, 0), (5, 2), (2_000_000, 0)])
    other = loss_histogram.LossHistogram.unpack(json.loads(json.dumps(made.pack())))
    other.merge(made)
    assert (other.number, other.largest, other.median, other.unbounded) == (
        6,
        2_000_000,
        1_240_000,
        2,
    )
    passes = privatizer.Privatizer("krr", epsilon=float("inf")).privatize("anna owes").guarantee
    assert loss_histogram.compute_loss(passes) == (0, 2)
    assert loss_histogram.count_word_losses(passes).unbounded == 2


def test_a_prompt_corpus_says_what_passed(rows, tmp_path, validator):
    """Nothing is claimed of words that pass, and what a document loses by them is in no sum."""
    rows.write_text(
        '{"n": 1, "text": "mail anna at anna@example.org"}\n{"n": 2, "text": "the bank"}\n'
    )
    done = run(
        rows,
        to=tmp_path / "out",
        epsilon=None,
        mechanism="placeholder",
        protect={"detectors": ["patterns"]},
        groups={"budgets": (0, 0, float("inf"), float("inf"))},
    )
    found = [each["text"] for each in released(tmp_path / "out")]
    assert found == ["mail anna at <EMAIL>", "the bank"]
    losses = done.manifest["statement"]["losses"]
    assert losses["document"]["without_bound"] == 2
    assert done.manifest["statement"]["words"]["passed"] == losses["word"]["without_bound"] > 0
    for each in losses.values():
        assert each["largest_epsilon_ldp"] is each["median_epsilon_ldp"] is None
    validator.validate(json.loads((tmp_path / "out" / "manifest.json").read_text()))
    assert done.statement is not None
    said = done.statement.build_sentences()["document"]
    assert (
        said
        == "Nothing bounds what 2 of the 2 documents lose: some of their words pass, or have no bound."
    )
    for name in ("statement.md", "statement.html"):
        assert "loses epsilon 0" not in (tmp_path / "out" / name).read_text()
    assert (
        "| document | 2 | no bound | no bound | 2 |"
        in (tmp_path / "out" / "statement.md").read_text()
    )


def test_the_bound_of_some_words_is_not_told_as_that_of_all(rows, tmp_path):
    rows.write_text('{"n": 1, "text": "anna zzyzx"}\n{"n": 2, "text": "the bank"}\n')
    done = run(rows, to=tmp_path / "out", mechanism="krr", epsilon=2, words={"oov": "keep"})
    assert done.statement is not None
    said = done.statement.build_sentences()["document"]
    assert said.startswith("Nothing bounds what 1 of the 2 documents lose")
    assert "By its other words alone a document loses epsilon 2 at most" in said
    assert done.manifest["statement"]["losses"]["document"]["largest_epsilon_ldp"] is None


# ---- refusals ------------------------------------------------------------------------------------


def test_what_does_not_go_together_is_refused_before_anything_is_written(rows, tmp_path):
    out = tmp_path / "out"
    (tmp_path / "b.csv").write_text(f"n,text\n1,{CANARY},{CANARY}\n")
    (tmp_path / "c.txt").write_text(f"{CANARY}\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    cases: list[tuple[str, list[Any], dict[str, Any]]] = [
        ("input 2 of 2, '.*/nothing', names no file", [rows, tmp_path / "nothing"], {}),
        ("input file 2, b.csv: line 2 must have 2 columns", [rows, tmp_path / "b.csv"], {}),
        (r"a \.txt file has no fields", [tmp_path / "c.txt"], {}),
        (
            r"a.jsonl has no column 'no' \(--id\), did you mean 'n'\? Columns: n, text. For example: ",
            [rows],
            {"id": "no"},
        ),
        (r"a.jsonl has no column 'no' \(--field\)", [rows], {"fields": ("text", "no")}),
        ("must name different fields; two name 'text'", [rows], {"fields": ("text", "text")}),
        ("must name different fields; two name 'n'", [rows], {"fields": ("n",)}),
        ("must not name the field of the texts, and --id names 'text'", [rows], {"id": "text"}),
        (
            "--output must be a folder without .*, and '.*' has '.*a.jsonl'",
            [rows],
            {"to": tmp_path},
        ),
        ("--output must be a folder, but '.*a.jsonl' is a file", [rows], {"to": rows}),
        ("the output folder '.*/full' must be empty", [rows], {"to": tmp_path / "full"}),
        ("--executor must be local, ray or spark", [rows], {"executor": "dask"}),
        ("--jobs must be 0", [rows], {"jobs": -1}),
        ("must be 1 or more, got 0", [rows], {"part_rows": 0}),
        ("outside the table", [tmp_path / "c.txt"], {"ids": "row", "words": {"oov": "error"}}),
    ]
    for says, inputs, more in cases:
        with pytest.raises(TextveilError, match=says) as caught:
            run(*inputs, **{"to": out, **more})
        shown: BaseException | None = caught.value
        while shown is not None:
            assert CANARY not in str(shown)
            shown = shown.__context__
        assert not list(out.rglob("part-*"))
        if (out / "_textveil").exists():
            finish(out, give_up=True)


def test_a_file_without_rows(tmp_path):
    (tmp_path / "a.csv").write_text("n,text\n")
    (tmp_path / "b.csv").write_text("")
    for path in ("a.csv", "b.csv"):
        with pytest.raises(TextveilError, match=r"the input has no rows|--field is needed"):
            run(tmp_path / path, to=tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_nothing_of_a_run_shows_texts(rows, tmp_path):
    options = RowOptions(id="n")
    source = options.describe_source(str(rows))
    with formats.open_file(source.path) as file:
        (batch, *_) = source.format.read_batches(file, source.columns)
        labels = Labels.read(batch, options, file=0, first=0)
        assert isinstance(batch, LineBatch)
        for each in (batch, labels, batch.rows[0], batch.rows[0].cells["text"]):
            assert "owes" not in repr(each)
            assert "36" not in repr(each)


def test_packed_statements_are_the_same(rows, tmp_path):
    done = run(rows, to=tmp_path / "out")
    assert done.guarantee is not None
    assert (
        Guarantee.unpack(json.loads(json.dumps(done.guarantee.pack()))).to_json()
        == done.guarantee.to_json()
    )
