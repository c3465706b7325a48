"""Corpora of public texts over files: counted once, and nothing private in the folder but the noisy counts."""

import csv
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fixtures import full_disk

from textveil.corpus import synthesis, synthesis_folder
from textveil.corpus.release import compute_digest
from textveil.corpus.reports import read_reports, write_reports
from textveil.corpus.synthesis import VoteFields, publish_votes, synthesize_files
from textveil.corpus.synthesis_folder import (
    finish_synthesis,
    is_synthesis,
    read_votes,
    verify_synthesis,
)
from textveil.errors import ConfigError, InputError, LimitReached, OutputError, TextveilError
from textveil.files import work
from textveil.library import Library, make_library
from textveil.pipeline import DrawOptions, report_texts, synthesize, tally
from textveil.pipeline import synthesis as drawing_room
from textveil.randomness import SeededRandomness

NOUNS = ["parcel", "lamp", "kettle", "desk", "chair", "tent", "scarf", "radio"]
KINDS = {
    "delivery": "The {} has not come yet, and nobody says when it will be delivered, case {}.",
    "billing": "The invoice for the {} is wrong, and the bank paid it twice in month {}.",
    "praise": "I love the {} and use it every day, thank you for the good work, says number {}.",
}
LABELS = tuple(KINDS)
CANARIES = {
    "text": "Zyxqorvian",
    "label": "Brobdingnagish",
    "subject": "Quetzlcoatlus",
    "id": "X77gamma",
    "file": "Wolpertinger",
    "folder": "Elwetritsch",
    "column": "Ridgeback",
}
OPTIONS: dict[str, Any] = {
    "epsilon": 1.0,
    "label_names": LABELS,
    "level": "6",
    "noun": "customer",
    "drawing": DrawOptions(count=60),
}
FIELDS = VoteFields(text="comment", label="kind", subject="customer")
FINISHED = [
    "manifest.json",
    "part-00000000.jsonl",
    "statement.html",
    "statement.md",
    "votes.json",
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library of 72 invented texts."""
    texts = [form.format(noun, n) for form in KINDS.values() for noun in NOUNS for n in range(3)]
    made = make_library(
        texts, source="invented", licence="CC0 of the tests", name="notes", levels=(6,)
    )
    path = tmp_path_factory.mktemp("library") / "notes.library"
    made.save(path)
    return Library.read(path)


def rows_of(n: int = 40, first: int = 0) -> list[dict[str, str]]:
    """Private rows, of which each customer has two."""
    return [
        {
            "id": f"{CANARIES['id']}{i}",
            "customer": f"{CANARIES['subject']} {i // 2}",
            "kind": LABELS[i % 3],
            "comment": f"{CANARIES['text']}: " + KINDS[LABELS[i % 3]].format(NOUNS[i % 8], i),
        }
        for i in range(first, first + n)
    ]


def write_csv(path: Path, rows: list[dict[str, str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def comments(tmp_path: Path) -> Path:
    """A CSV of comments with a canary in every place that has one."""
    rows = rows_of()
    rows[3]["kind"] = CANARIES["label"]
    rows[5]["comment"] = ""
    rows[8]["customer"] = " "
    rows = [{**row, CANARIES["column"]: CANARIES["column"]} for row in rows]
    return write_csv(tmp_path / CANARIES["folder"] / f"{CANARIES['file']}.csv", rows)


def run(inputs: Any, out: Path, library: Library, **more: Any) -> synthesis.FinishedSynthesis:
    return synthesize_files(inputs, out, library=library, fields=FIELDS, **{**OPTIONS, **more})


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names(folder)}


# ---- what is in the folder -----------------------------------------------------------------------


def test_a_csv_of_comments(comments, tmp_path, library):
    done = run(comments, tmp_path / "out", library)
    assert names(tmp_path / "out") == FINISHED
    rows = [json.loads(line) for line in (tmp_path / "out" / FINISHED[1]).read_text().splitlines()]
    assert len(rows) == done.texts == 60
    assert all({*row} == {"text", "label", "cell", "source", "public"} for row in rows)
    assert all(library.texts[library.ids.index(row["source"])] == row["text"] for row in rows)
    check = verify_synthesis(tmp_path / "out", library)
    assert (check.differences, check.notes) == ((), ())
    assert done.counted == 20
    assert done.left_out["label not listed"] == 1
    assert done.left_out["empty"] == 1
    assert done.left_out["without a subject"] == 1
    statement = (tmp_path / "out" / "statement.md").read_text()
    for part in (
        "Epsilon 1 for one customer, of whom 1 document is counted, added or removed; 2 if it is "
        "replaced by another; delta 0.",
        "CC0 of the tests",
        "epsilon 0",
        library.digest,
        "factor of at most 2.72",
    ):
        assert part in statement
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["licence"] == "CC0 of the tests"
    assert manifest["statement"]["kind"] == "central"
    assert finish_synthesis(tmp_path / "out").startswith("There is nothing to destroy")
    assert names(tmp_path / "out") == FINISHED


def test_nothing_private_is_in_the_folder(comments, tmp_path, library):
    run(comments, tmp_path / "out", library)
    everything = b"".join(contents(tmp_path / "out").values()).lower()
    for place, canary in CANARIES.items():
        assert canary.lower().encode() not in everything, place
    for name in ("comment", "kind"):  # a field is named nowhere, either
        assert f'"{name}"'.encode() not in everything.replace(b'"kind": "central"', b"").replace(
            b'"kind": "synthesis"', b""
        )


def fixed_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same noise in every run, which no statement knows."""

    class Fixed(SeededRandomness):
        is_seeded = False

    monkeypatch.setattr(drawing_room, "SystemRandomness", lambda: Fixed(5))


def make_pair(tmp_path: Path) -> tuple[list[Path], list[Path]]:
    """Two inputs with equal votes, unlike in texts, left-out rows, sizes and numbers of files."""
    rows = rows_of(24)
    for row in rows:
        row["customer"] += row["id"]  # all are counted
    more = [{**row, "kind": "unlisted " * 9} for row in rows_of(400)] + rows
    long = [{**row, "comment": row["comment"] + " "} for row in more]
    return [write_csv(tmp_path / "a.csv", rows)], [
        write_csv(tmp_path / "long" / f"{i}.csv", long[i::3]) for i in range(3)
    ]


def test_equal_votes_give_equal_folders(tmp_path, library, monkeypatch):
    fixed_noise(monkeypatch)
    monkeypatch.setattr(synthesis_folder, "get_date", lambda: "2026-01-02")
    few, many = make_pair(tmp_path)
    run(few, tmp_path / "1", library)
    run(many, tmp_path / "2", library)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_a_folder_that_counts_rows_is_noticed(tmp_path, library, monkeypatch):
    """The broken twin of the test above: the number of rows stands in the manifest."""
    fixed_noise(monkeypatch)
    few, many = make_pair(tmp_path)
    for number, inputs in enumerate((few, many)):
        rows = sum(len(path.read_text().splitlines()) for path in inputs)
        with monkeypatch.context() as twin:
            twin.setattr(synthesis_folder, "_collect_versions", partial(dict, rows=str(rows)))
            run(inputs, tmp_path / f"{number}", library)
    assert contents(tmp_path / "0") != contents(tmp_path / "1")


# ---- the same numbers ----------------------------------------------------------------------------


def test_files_and_python_have_the_same_numbers(comments, tmp_path, library):
    run(comments, tmp_path / "out", library, noise_seed=7)
    with comments.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    made = synthesize(
        [row["comment"] for row in rows],
        [row["kind"] for row in rows],
        subjects=[row["customer"] for row in rows],
        library=library,
        epsilon=1,
        label_names=LABELS,
        subject="customer",
        level="6",
        count=60,
        noise_seed=7,
    )
    votes = read_votes(tmp_path / "out" / "votes.json")
    assert np.array_equal(votes.counts, made.votes.counts)
    assert votes.seeded
    lines = (tmp_path / "out" / FINISHED[1]).read_text().splitlines()
    assert [json.loads(line) for line in lines] == [*made.yield_rows()]
    assert "Repeatable" in (tmp_path / "out" / "statement.md").read_text()


@pytest.mark.parametrize(
    "ending", ["jsonl", "tsv", "csv.gz", "parquet", "folder", "pattern", "uri"]
)
def test_formats(tmp_path, library, ending):
    """Whatever holds the rows, and however they are divided, the counts are the same."""
    rows = rows_of()
    expected = run(write_csv(tmp_path / "a.csv", rows), tmp_path / "1", library, noise_seed=3)
    folder = tmp_path / "in"
    folder.mkdir()
    inputs: Any = folder / f"b.{ending}"
    if ending == "jsonl":
        inputs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif ending == "tsv":
        lines = ["\t".join(values) for values in [list(rows[0]), *map(dict.values, rows)]]
        inputs.write_text("\n".join(lines) + "\n")
    elif ending == "csv.gz":
        inputs.write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    elif ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), inputs)
    else:
        for number in range(2):
            write_csv(folder / f"{number}.csv", rows[number * 20 :][:20])
        inputs = {
            "folder": folder,
            "pattern": f"{folder}/[01].csv",
            "uri": f"file://{folder}/*.csv",
        }[ending]
    run(inputs, tmp_path / "2", library, noise_seed=3)
    assert (tmp_path / "1" / "votes.json").read_bytes() == (
        tmp_path / "2" / "votes.json"
    ).read_bytes()
    assert expected.left_out["beyond what is counted of a subject"] == 20


def test_lines_without_labels(tmp_path, library):
    (tmp_path / "a.txt").write_text("".join(row["comment"] + "\n" for row in rows_of()))
    done = synthesize_files(
        tmp_path / "a.txt", tmp_path / "out", library=library, epsilon=0.5, level="6"
    )
    assert done.guarantee.unit == "document"
    rows = (tmp_path / "out" / FINISHED[1]).read_text().splitlines()
    assert len(rows) == 3000
    assert "label" not in json.loads(rows[0])
    assert verify_synthesis(tmp_path / "out", library).differences == ()


# ---- once ----------------------------------------------------------------------------------------

CHILD = """
import os, signal, sys
from pathlib import Path
from tests.corpus import test_synthesis as t
from textveil.corpus import synthesis, synthesis_folder
from textveil.files.storage import Storage
from textveil.library import Library

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

where = sys.argv[1]
if where == "noise and texts":
    synthesis_folder.publish = die
elif where == "texts and statement":
    synthesis_folder.render_statement = die
elif where == "counting":
    synthesis.BallotBox.draw = die
elif where == "half of the votes":
    replace = os.replace
    os.replace = lambda old, new: die() if str(new).endswith("votes.json") else replace(old, new)
elif where == "manifest and end":
    Storage.remove = die
t.run(Path(sys.argv[2]), Path(sys.argv[3]), Library.read(sys.argv[4]))
"""


def test_votes_that_were_deleted_are_not_drawn_again(comments, tmp_path, library, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as broken:
        broken.setattr(synthesis_folder, "publish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(comments, out, library)
    votes = (out / "votes.json").read_bytes()
    (out / "votes.json").unlink()
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"votes.json is gone: put it back.*--give-up"):
            run(comments, out, library, resume=True)
    (out / "votes.json").write_bytes(votes)
    run(comments, out, library, resume=True)
    assert names(out) == FINISHED
    assert (out / "votes.json").read_bytes() == votes


@pytest.mark.parametrize(
    ("where", "is_drawn"),
    [
        ("counting", False),
        ("half of the votes", False),
        ("noise and texts", True),
        ("texts and statement", True),
        ("manifest and end", True),
    ],
)
def test_a_killed_run_never_draws_again(comments, tmp_path, library, where, is_drawn):
    out, path = tmp_path / "out", tmp_path / "notes.library"
    library.save(path)
    child = subprocess.run(
        [sys.executable, "-c", CHILD, where, str(comments), str(out), str(path)],
        cwd=Path(__file__).parents[2],
        timeout=120,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL
    assert (out / "votes.json").exists() == is_drawn
    before = (out / "votes.json").read_bytes() if is_drawn else b""
    if where != "manifest and end":
        with pytest.raises(ConfigError, match="--resume"):
            run(comments, out, library)
        with pytest.raises(ConfigError, match="these differ: epsilon"):
            run(comments, out, library, epsilon=2.0, resume=True)
    pins = (out / "_textveil" / "run.json").read_text()
    assert not any(canary.lower() in pins.lower() for canary in CANARIES.values())
    if is_drawn:
        comments.write_text("gone")  # nothing is read any more
    assert run(comments, out, library, resume=True).left_out == {} or not is_drawn
    assert names(out) == FINISHED
    assert not is_drawn or (out / "votes.json").read_bytes() == before
    assert verify_synthesis(out, library).differences == ()


def test_a_second_run_into_the_folder(comments, tmp_path, library):
    out = tmp_path / "out"
    run(comments, out, library)
    before = contents(out)
    with pytest.raises(ConfigError, match="holds a finished release"):
        run(comments, out, library)
    assert run(comments, out, library, resume=True).is_earlier
    with pytest.raises(ConfigError, match="these differ: count"):
        run(comments, out, library, drawing=DrawOptions(count=61), resume=True)
    assert contents(out) == before


def test_two_processes_at_once(comments, tmp_path, library):
    out = tmp_path / "out"
    with work.lock_folder(out / "_textveil"), pytest.raises(ConfigError, match="another process"):
        run(comments, out, library)
    assert names(out / "_textveil") == []


def test_other_kinds_of_runs_do_not_mix(comments, tmp_path, library):
    out = tmp_path / "out"
    (out / "_textveil").mkdir(parents=True)
    (out / "_textveil").chmod(0o700)
    (out / "_textveil" / "run.json").write_text('{"run": "other", "key": "", "pins": {}}')
    assert not is_synthesis(out)
    with pytest.raises(ConfigError, match="of another kind of run"):
        run(comments, out, library, resume=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="must be empty or new"):
        run(comments, tmp_path / "full", library)


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("after", [0, 1, 2, 4])
def test_a_full_disk_leaves_one_draw(comments, tmp_path, library, monkeypatch, call, after):
    out = tmp_path / "out"
    with (
        full_disk(monkeypatch, call, after),
        pytest.raises(OutputError, match=r"No space left on device$"),
    ):
        run(comments, out, library)
    assert not list(out.rglob("*.part"))
    votes = out / "votes.json"
    before = votes.read_bytes() if votes.exists() else None
    run(comments, out, library, resume=after > 0)  # 0: not even the run was there
    assert before in (None, votes.read_bytes())
    assert names(out) == FINISHED


def test_giving_up(comments, tmp_path, library, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as broken:
        broken.setattr(synthesis_folder, "publish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(comments, out, library)
    assert is_synthesis(out)
    with pytest.raises(ConfigError, match="--resume"):
        finish_synthesis(out)
    assert "another release" in finish_synthesis(out, give_up=True)
    assert not out.exists() or names(out) == []


# ---- further corpora -----------------------------------------------------------------------------


def test_votes_give_further_corpora(comments, tmp_path, library):
    run(comments, tmp_path / "out", library)
    votes = read_votes(tmp_path / "out" / "votes.json")
    comments.unlink()
    done = publish_votes(
        votes,
        tmp_path / "more",
        library=library,
        drawing=DrawOptions(count=90, smooth="none", seed=3),
    )
    assert done.texts == 90
    assert (tmp_path / "more" / "votes.json").read_bytes() == (
        tmp_path / "out" / "votes.json"
    ).read_bytes()
    assert verify_synthesis(tmp_path / "more", library).differences == ()


def change(folder: Path, name: str, old: str, new: str) -> None:
    content = (folder / name).read_text()
    assert old in content
    (folder / name).write_text(content.replace(old, new, 1))


def resign(folder: Path) -> None:
    """Signs a manifest anew, as one who cheats would."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for part in manifest["parts"]:
        part |= synthesis_folder._sign((folder / part["name"]).read_bytes())
    manifest["votes_sha256"] = synthesis_folder._sign((folder / "votes.json").read_bytes())[
        "sha256"
    ]
    for name in manifest["statement_sha256"]:
        manifest["statement_sha256"][name] = synthesis_folder._sign((folder / name).read_bytes())[
            "sha256"
        ]
    manifest["sha256"] = compute_digest(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        (FINISHED[1], "The ", "A ", "without a text of the library under its id, first row"),
        (FINISHED[1], '"cell": ', '"cell": 1', "another text, cell or field than the votes give"),
        (FINISHED[1], "true}", 'true, "note": 1}', "another text, cell or field"),
        (FINISHED[1], '"label": "', '"label": "un', "a label that does not follow"),
        ("statement.md", "Epsilon 1 ", "Epsilon 0.1 ", "statement.md does not follow"),
        ("statement.html", "Epsilon 1 ", "Epsilon 0.1 ", "statement.html does not follow"),
        ("votes.json", '"epsilon": 1.0', '"epsilon": 0.1', "the statement in manifest.json"),
    ],
)
def test_a_change_is_named(comments, tmp_path, library, name, old, new, says):
    out = tmp_path / "out"
    run(comments, out, library)
    change(out, name, old, new)
    assert f"{name} was changed" in "; ".join(verify_synthesis(out, library).differences)
    resign(out)
    assert says in "; ".join(verify_synthesis(out, library).differences)


def test_other_votes_are_named(comments, tmp_path, library):
    out = tmp_path / "out"
    run(comments, out, library)
    document = json.loads((out / "votes.json").read_text())
    document["counts"][0][0] += 40
    (out / "votes.json").write_bytes(json.dumps(document, indent=1).encode() + b"\n")
    resign(out)
    differences = "; ".join(verify_synthesis(out, library).differences)
    assert "than the votes give" in differences
    assert "statement.md does not follow" in differences


def test_files_too_few_and_too_many(comments, tmp_path, library):
    out = tmp_path / "out"
    run(comments, out, library)
    (out / FINISHED[1]).unlink()
    (out / "extra.txt").write_text("extra")
    differences = verify_synthesis(out, library).differences
    assert f"{FINISHED[1]} is missing" in differences
    assert "extra.txt does not belong to the release" in differences
    (out / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match="damaged, was changed"):
        verify_synthesis(out, library)
    (out / "manifest.json").unlink()
    with pytest.raises(InputError, match="no finished release"):
        verify_synthesis(out, library)


def test_labels_of_another_smoother_version(comments, tmp_path, library):
    """Texts and cells are compared all the same, and the versions are named."""
    out = tmp_path / "out"
    run(comments, out, library)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["versions"]["numpy"] = "1.0"
    manifest["sha256"] = compute_digest(manifest)
    (out / "manifest.json").write_text(json.dumps(manifest))
    check = verify_synthesis(out, library)
    assert check.differences == ()
    assert "numpy 1.0" in check.notes[0]
    change(out, FINISHED[1], '"label": "', '"label": "un')
    resign(out)
    assert "a label that does not follow" in "; ".join(verify_synthesis(out, library).differences)


def test_another_library_is_refused(comments, tmp_path, library):
    run(comments, tmp_path / "out", library)
    texts = [text + " Indeed." for text in library.texts]
    other = make_library(texts, source="invented", licence="CC0", levels=(6,))
    with pytest.raises(ConfigError, match="give that library"):
        verify_synthesis(tmp_path / "out", other)
    votes = read_votes(tmp_path / "out" / "votes.json")
    with pytest.raises(ConfigError, match="give that library"):
        publish_votes(votes, tmp_path / "more", library=other)
    assert not (tmp_path / "more").exists()


# ---- the ledger ----------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    pytest.importorskip("sqlalchemy", reason="the extra `store` is not installed")
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    return f"sqlite:///{tmp_path / 'veil.db'}"


def accounts(store: str) -> dict[tuple[str, str], float]:
    from textveil.session import SessionStore

    with SessionStore(store) as opened:
        return {
            (each.subject, each.metric): each.epsilon for each in opened.ledger.accounts(whole=True)
        }


def test_every_subject_is_charged_once(comments, tmp_path, library, store, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as broken:  # charged and drawn, but not written
        broken.setattr(synthesis, "_write_votes", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(comments, out, library, store=store)
    assert len({subject for subject, _ in accounts(store)}) == 20
    with pytest.raises(ConfigError):  # without the ledger, nobody would be charged
        run(comments, out, library, resume=True)
    assert not (out / "votes.json").exists()
    run(comments, out, library, store=store, resume=True)
    spent = accounts(store)
    assert {spent[key] for key in spent if key[1] == "central"} == {1.0}
    assert {spent[key] for key in spent if key[1] == "ldp"} == {2.0}


def test_a_copied_folder_pays_anew(comments, tmp_path, library, store, monkeypatch):
    """Two folders of one run draw twice: whoever is in both loses twice, and is charged so."""
    out, copy = tmp_path / "out", tmp_path / "copy"
    with monkeypatch.context() as broken:
        broken.setattr(synthesis, "_write_votes", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(comments, out, library, store=store)
    shutil.copytree(out, copy)
    run(comments, out, library, store=store, resume=True)
    run(comments, copy, library, store=store, resume=True)
    assert (out / "votes.json").read_bytes() != (copy / "votes.json").read_bytes()
    spent = accounts(store)
    assert {spent[key] for key in spent if key[1] == "central"} == {2.0}


def test_a_limit_stops_all(comments, tmp_path, library, store):
    from textveil.session import SessionStore

    run(comments, tmp_path / "1", library, store=store)
    table = f"library {library.digest[:16]}"
    with SessionStore(store) as opened:
        opened.ledger.limit(f"{CANARIES['subject']} 7", "central", table, 1.5)
    before = accounts(store)
    with pytest.raises(LimitReached, match="at least one subject") as refused:
        run(comments, tmp_path / "2", library, store=store)
    assert not any(canary in str(refused.value) for canary in CANARIES.values())
    assert accounts(store) == before
    assert not (tmp_path / "2" / "votes.json").exists()
    assert run(comments, tmp_path / "2", library, store=store, epsilon=0.5).texts == 60


def test_a_ledger_needs_subjects(comments, tmp_path, library, store):
    with pytest.raises(ConfigError, match="--subject"):
        synthesize_files(
            comments,
            tmp_path / "out",
            library=library,
            fields=VoteFields(text="comment"),
            epsilon=1,
            level="6",
            store=store,
        )
    with pytest.raises(ConfigError, match="keeps a ledger"):
        run(comments, tmp_path / "out", library, store="memory:")
    assert not (tmp_path / "out").exists()


# ---- bad input -----------------------------------------------------------------------------------

UNREADABLE = {
    "binary.csv": (bytes(range(256)) * 9, "input file 1"),
    "binary.parquet": (bytes(range(256)) * 9, "input file 1"),
    "cut.csv.gz": (gzip.compress(b"comment,kind,customer\n" * 999)[:-9], "damaged or cut off"),
    "latin.jsonl": ('{"comment": "Zyxqorvian ü"}'.encode("latin-1"), "UTF-8"),
    "broken.jsonl": (b'{"comment": "Zyxqorvian', "input file 1"),
    "numbers.jsonl": (b'{"comment": {"Zyxqorvian": 1}, "kind": "a", "customer": "b"}\n', "input"),
    "columns.csv": (b"Zyxqorviana,comment\nx,Zyxqorvian\n", r"'kind' \(--label\)"),
    "surrogate.jsonl": (
        b'{"comment": "Zyxqorvian \\ud800", "kind": "billing", "customer": "b"}\n',
        "Unicode|surrogate|valid",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_files(tmp_path, library, name):
    content, says = UNREADABLE[name]
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / f"{CANARIES['file']}-{name}").write_bytes(content)
    with pytest.raises(TextveilError, match=says) as refused:
        run(folder, tmp_path / "out", library)
    message = str(refused.value).replace("Zyxqorviana", "")  # the name of a column is the schema
    assert not any(canary.lower() in message.lower() for canary in CANARIES.values())
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"epsilon": float("nan")}, "epsilon must be a number"),
        ({"epsilon": 0.0}, "epsilon must be a number"),
        ({"epsilon": float("inf")}, "epsilon must be a number"),
        ({"epsilon": -1.0}, "epsilon must be a number"),
        ({"level": "7"}, "no level '7'"),
        ({"label_names": ("a", "a")}, "different ones"),
        ({"label_names": ("a", " ")}, "none empty"),
        ({"label_names": ()}, "go together"),
        ({"per_subject": 0}, "whole number from 1"),
    ],
)
def test_bad_options(comments, tmp_path, library, options, says):
    with pytest.raises(ConfigError, match=says):
        run(comments, tmp_path / "out", library, **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options", [{"count": 0}, {"count": 10**9}, {"smooth": "more"}, {"seed": -1}]
)
def test_bad_drawings(options):
    with pytest.raises(ConfigError, match=f"^{next(iter(options))} must be"):
        DrawOptions(**options)


def test_a_corpus_that_cannot_be_is_refused_before_the_noise(comments, tmp_path, library):
    drawing = DrawOptions(count="all", smooth="none")
    with pytest.raises(ConfigError, match="count can be all"):
        run(comments, tmp_path / "out", library, drawing=drawing)
    assert not (tmp_path / "out").exists()


def test_the_whole_library_with_labels(comments, tmp_path, library):
    done = run(comments, tmp_path / "out", library, drawing=DrawOptions(count="all"))
    assert done.texts == len(library)
    lines = (tmp_path / "out" / FINISHED[1]).read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == list(library.texts)
    assert verify_synthesis(tmp_path / "out", library).differences == ()


def test_an_empty_file_gives_noise(tmp_path, library):
    """That nobody was counted is private, too: only the curator hears of it."""
    (tmp_path / "a.csv").write_bytes(b"")
    done = run(tmp_path / "a.csv", tmp_path / "out", library)
    assert done.counted == 0
    assert names(tmp_path / "out") == FINISHED


def test_a_huge_field(tmp_path, library):
    rows = rows_of(6)
    rows[0]["comment"] += " lamp" * 20_000
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(path, tmp_path / "out", library).texts == 60


# ---- reports -------------------------------------------------------------------------------------


def report(path: Path, library: Library, text: str = "a lamp", **more: Any) -> int:
    options = {"library": library, "level": "6", "epsilon": 2.0, "label_names": LABELS, **more}
    return write_reports(path, lambda: report_texts([text], ["praise"], **options))


@pytest.fixture
def reports(tmp_path: Path, library: Library) -> Path:
    folder = tmp_path / "reports"
    folder.mkdir()
    for number in range(5):
        report(folder / f"{number}.json", library)
    return folder


def test_there_is_no_run_to_go_on_with(comments, tmp_path, library):
    with pytest.raises(ConfigError, match="no run to go on with"):
        run(comments, tmp_path / "out", library, resume=True)
    assert not (tmp_path / "out" / "votes.json").exists()
    run(comments, tmp_path / "out", library)


def test_one_label_is_enough(comments, tmp_path, library):
    """Nothing is left to estimate, and noise that was drawn must not be lost by that."""
    run(comments, tmp_path / "out", library, label_names=LABELS[:1])
    rows = (tmp_path / "out" / "part-00000000.jsonl").read_text().splitlines()
    assert {json.loads(row)["label"] for row in rows} == {LABELS[0]}
    assert verify_synthesis(tmp_path / "out", library).differences == ()


def test_unlike_reports_say_how(reports, library):
    report(reports / "9.json", library, epsilon=3.0)
    with pytest.raises(InputError, match=r"report 6, .* has another epsilon than the first"):
        tally(read_reports([reports]), library)


def test_a_tally(reports, tmp_path, library):
    votes = tally(read_reports([reports, reports / "1.json"]), library)
    assert votes.reports == 5
    publish_votes(votes, tmp_path / "out", library=library, drawing=DrawOptions(count=30))
    assert names(tmp_path / "out") == FINISHED
    assert verify_synthesis(tmp_path / "out", library).differences == ()
    lines = "".join((reports / f"{i}.json").read_text() for i in range(5))
    (tmp_path / "all.jsonl").write_text(lines)
    together = tally(read_reports([tmp_path / "all.jsonl"]), library)
    assert np.array_equal(together.counts, votes.counts)
    assert "Each of 5 documents reported" in (tmp_path / "out" / "statement.md").read_text()


def test_a_document_is_not_reported_twice(reports, library):
    before = (reports / "1.json").read_bytes()
    with pytest.raises(OutputError, match="not reported again"):
        write_reports(reports / "1.json", lambda: pytest.fail("drawn"))
    assert (reports / "1.json").read_bytes() == before
    with pytest.raises(ConfigError, match="has no level"):
        report(reports / "new.json", library, level="99")
    assert not (reports / "new.json").exists()


@pytest.mark.parametrize(
    ("change_it", "says"),
    [
        (lambda _: "Zyxqorvian", "file 1 of reports"),
        (lambda _: "[]", "not a report"),
        (lambda text: text.replace('"epsilon": 2.0', '"epsilon": 2.01'), "must be alike"),
        (lambda text: text.replace('"codes": [', '"codes": [99, '), "different codes"),
        (lambda text: text.replace('"codes": [', '"codes": [-1, '), "different codes"),
        (lambda text: text.replace('"codes": [', '"codes": [true, '), "whole numbers"),
        (lambda text: text.replace('"level": "6"', '"level": "7"'), "level|alike"),
    ],
)
def test_damaged_reports(reports, library, change_it, says):
    path = reports / "0.json"
    path.write_text(change_it(path.read_text()))
    with pytest.raises((InputError, ConfigError), match=says) as refused:
        tally(read_reports([reports]), library)
    assert "Zyxqorvian" not in str(refused.value)


def test_no_reports(tmp_path, library):
    with pytest.raises(InputError, match="no file of reports"):
        tally(read_reports([tmp_path]), library)
    (tmp_path / "a.jsonl").write_text("\n")
    with pytest.raises(InputError, match="there is no report"):
        tally(read_reports([tmp_path]), library)


def test_damaged_votes(comments, tmp_path, library):
    run(comments, tmp_path / "out", library)
    votes = tmp_path / "out" / "votes.json"
    document = json.loads(votes.read_text())
    for broken in (
        "",
        "[]",
        "{}",
        json.dumps({**document, "counts": [[1, 2]]}),
        json.dumps({**document, "epsilon": "NaN"}),
        json.dumps({**document, "way": "other"}),
        json.dumps({**document, "reports": 3}),
    ):
        votes.write_text(broken)
        with pytest.raises((InputError, ConfigError)):
            publish_votes(read_votes(votes), tmp_path / "more", library=library)
    assert not (tmp_path / "more" / "manifest.json").exists()


# ---- votes from strangers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"seeded": 0},
        {"epsilon": True},
        {"epsilon": "1"},
        {"subject": "\x1b[2J"},
        {"subject": ["customer"]},
        {"label_names": ["a", "a", "b"]},
        {"label_names": ["a", "b", "\x1b[2J"]},
        {"counts": [[1.7] * 6] * 3},
        {"counts": [[True] * 6] * 3},
        {"library": {"licence": "free"}},
        {"library": {"source": "\x1b[2J"}},
        {"library": {"digest": None}},
        {"library": {"level": None}},
        {"library": {"texts": "many"}},
    ],
)
def test_votes_that_were_changed_are_refused(comments, tmp_path, library, change):
    """What statements say of the library is what it says itself; nothing is printed that is no line."""
    run(comments, tmp_path / "out", library)
    document = json.loads((tmp_path / "out" / "votes.json").read_text())
    if "library" in change:
        change = {"library": document["library"] | change["library"]}
    (tmp_path / "votes.json").write_text(json.dumps(document | change))
    with pytest.raises(InputError, match=r"not votes of version 1|they were changed"):
        publish_votes(read_votes(tmp_path / "votes.json"), tmp_path / "more", library=library)
    assert not (tmp_path / "more" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: m | {"licence": "free"}, "the licence in"),
        (lambda m: m | {"library": m["library"] | {"licence": "free"}}, "the library in"),
        (lambda m: m | {"library_alone": {"labels": {"accuracy": 0.1}}}, "the library_alone in"),
        (lambda m: m | {"options": m["options"] | {"epsilon": 0.1}}, "the options in"),
        (lambda m: m | {"options": m["options"] | {"inputs": 3}}, "the options in"),
        (lambda m: m | {"rows": 21}, "other entries"),
        (lambda m: {name: m[name] for name in m if name != "versions"}, "not what textveil writes"),
        (lambda m: m | {"parts": None}, "not what textveil writes"),
        (lambda m: m | {"texts": "many"}, "not what textveil writes"),
    ],
)
def test_a_manifest_that_says_something_else_does_not_pass(
    comments, tmp_path, library, change, says
):
    run(comments, tmp_path / "out", library)
    path = tmp_path / "out" / "manifest.json"
    manifest = change(json.loads(path.read_text()))
    path.write_text(json.dumps({**manifest, "sha256": compute_digest(manifest)}))
    try:
        found = " ".join(verify_synthesis(tmp_path / "out", library).differences)
    except InputError as error:
        found = str(error)
    assert says in found
