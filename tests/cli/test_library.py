"""Libraries on the command line: made of files in any format, described, and refused in one line."""

import gzip
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from training.notes import CLASSES, write_notes

from textveil import cli
from textveil.library import Library

NOTES = write_notes(6, 4000)
TEXTS = [note["text"] for note in NOTES]
SAID = ("--licence", "CC0", "--levels", "3")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a verb in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(["library", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def write(folder, name, rows):
    """A file of rows, by the ending of its name."""
    path = folder / name
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path)
        return
    if ".jsonl" in name:
        content = "".join(json.dumps(row) + "\n" for row in rows)
    elif ".txt" in name:
        content = "".join(row["body"] + "\n" for row in rows)
    else:
        mark = "\t" if ".tsv" in name else ","
        content = mark.join(rows[0]) + "\n"
        content += "".join(mark.join(f'"{value}"' for value in row.values()) + "\n" for row in rows)
    encoded = content.encode()
    path.write_bytes(gzip.compress(encoded) if name.endswith(".gz") else encoded)


ROWS = [{"key": f"k{i}", "body": note["text"]} for i, note in enumerate(NOTES)]


@pytest.mark.parametrize(
    "name", ["a.txt", "a.jsonl", "a.csv", "a.tsv", "a.parquet", "a.csv.gz", "a.jsonl.gz"]
)
def test_every_format_makes_the_same_library(run, tmp_path, name):
    write(tmp_path, name, ROWS)
    field = () if ".txt" in name else ("--field", "body")
    code, out, err = run("make", name, *field, *SAID, "--source", "x", "-o", "a.library")
    assert (code, err) == (0, "")
    made = Library.read("a.library")
    assert list(made.texts) == TEXTS
    assert list(made.ids) == [str(i) for i in range(1, 25)]
    assert (made.name, made.source, made.licence, made.kind) == ("a", "x", "CC0", "domain")
    assert out.startswith("a: 24 public texts (x; CC0)\nLabels: none.\nLevel 3: 3 cells of ")
    assert "At epsilon 0, without any private text: it does not know your labels." in out
    assert run("info", "a.library") == (0, out, "")


def test_several_files_with_ids(run, tmp_path):
    write(tmp_path, "a.jsonl", ROWS[:10])
    write(tmp_path, "b.csv", ROWS[10:])
    made = ("make", "a.jsonl", "b.csv", "--field", "body", "--id", "key", *SAID)
    assert run(*made, "--name", "both", "-o", "a.library")[0] == 0
    found = Library.read("a.library")
    assert list(found.ids) == [row["key"] for row in ROWS]
    assert (found.name, found.source) == ("both", "a.jsonl, b.csv")
    assert run(*made, "--name", "both", "-o", "b.library")[0] == 0
    assert Library.read("b.library").digest == found.digest


def test_the_demo_has_labels_and_classes(run):
    code, out, err = run("make", "--demo", "-o", "demo.library")
    assert (code, err) == (0, "")
    demo = Library.read("demo.library")
    assert (len(demo), demo.licence) == (200, "Apache-2.0")
    assert demo.level_names == ("labels", "classes", "6", "16")
    assert "the 4 sentences of its classes alone are right on" in out
    facts = json.loads(run("info", "demo.library", "--json")[1])
    assert facts["digest"] == demo.digest
    assert facts["labels"] == dict.fromkeys(sorted(CLASSES), 50)
    assert facts["epsilon_0"] == demo.facts
    code, out, _ = run("info", "demo.library", "--cells", "classes")
    assert code == 0
    lines = out.splitlines()[-4:]
    assert [line.partition(":")[0] for line in lines] == list(CLASSES)
    assert all(" texts, such as: " in line for line in lines)


def test_labels_and_classes_from_files(run, tmp_path):
    rows = [{"body": note["text"], "kind": note["kind"]} for note in write_notes(10, 4100)]
    write(tmp_path, "a.jsonl", rows)
    (tmp_path / "classes.csv").write_text(
        "name,sentence\n" + "".join(f'{name},"{text}"\n' for name, text in CLASSES.items())
    )
    code, out, err = run(
        *("make", "a.jsonl", "--field", "body", "--label", "kind", "--classes", "classes.csv"),
        *("--cells", "both", *SAID, "--seed", "3", "-o", "a.library"),
    )
    assert (code, err) == (0, "")
    found = Library.read("a.library")
    assert found.level_names == ("labels", "classes", "3")
    assert found.options == {"cells": "both", "seed": 3, "classes": CLASSES}
    assert "Cells by sentence vectors and words; encoder all-MiniLM-L6-v2; digest " in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("make", "missing.txt", *SAID), "there is no file 'missing.txt'"),
        (("make", *SAID), "no public texts: give files of them, or --demo"),
        (("make", "a.jsonl", "--field", "body"), "--licence must say under which terms"),
        (("make", "a.jsonl", "--field", "text", *SAID), "no field 'text'"),
        (
            ("make", "a.jsonl", "--field", "body", "--label", "kin", *SAID),
            "no column 'kin' (--label)",
        ),
        (("make", "a.jsonl", "--field", "body", "--id", "kin", *SAID), "no column 'kin' (--id)"),
        (
            ("make", "gaps.jsonl", "--field", "body", "--label", "kind", *SAID),
            "2 of 24 texts have no label",
        ),
        (("make", "a.jsonl", "--field", "body", "--label", "key", *SAID), "needs 10 texts or more"),
        (("make", "empty.txt", *SAID), "at least 16 different texts, got 0"),
        (("make", "one.txt", *SAID), "at least 16 different texts, got 1"),
        (("make", "huge.txt", *SAID), "at most 100,000 characters, and text 0 has 200,000"),
        (("make", "binary.txt", *SAID), "UTF-8"),
        (("make", "a.doc", *SAID), "must end in"),
        (
            ("make", "a.jsonl", "--field", "body", "--classes", "twice.txt", *SAID),
            "describes the class 'one' again",
        ),
        (("make", "a.jsonl", "--field", "body", "--classes", "no.txt", *SAID), "no file 'no.txt'"),
        (
            ("make", "a.jsonl", "--field", "body", "--cells", "letters", *SAID),
            "vectors, words or both",
        ),
        (
            ("make", "a.jsonl", "--field", "body", "--licence", "x", "--levels", "6,x"),
            "--levels must be",
        ),
        (
            ("make", "a.jsonl", "--field", "body", "--licence", "x", "--source", "a\nb"),
            "needs a source",
        ),
        (("make", "a.jsonl", "--demo"), "give it alone"),
        (("make", "--demo", "-o", "no/such/folder.library"), "an existing folder"),
        (("make", "--demo", "-o", "."), "an existing folder"),
        (("make", "--demo", "-o", os.devnull), "an existing folder"),
        (("info", "missing.library"), "cannot read a library"),
        (("info", "a.jsonl"), "not a library, or damaged"),
    ],
)
def test_each_mistake_is_said_in_one_line(run, tmp_path, arguments, says):
    write(tmp_path, "a.jsonl", ROWS)
    gaps = [{**row, "kind": None if i < 2 else "x"} for i, row in enumerate(ROWS)]
    write(tmp_path, "gaps.jsonl", gaps)
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "one.txt").write_text("One text.\n" * 30)
    (tmp_path / "huge.txt").write_text("x" * 200_000 + "\n" + "\n".join(TEXTS))
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "a.doc").write_text("A text.\n")
    (tmp_path / "twice.txt").write_text("one: A.\none: B.\n")
    (tmp_path / "old.library").write_text("kept")
    output = () if "-o" in arguments or arguments[0] == "info" else ("-o", "old.library")
    code, out, err = run(*arguments, *output)
    assert (code, out) == (2, "")
    assert says in " ".join(err.split())
    assert err.startswith("textveil: error: ")
    assert (tmp_path / "old.library").read_text() == "kept"
    assert TEXTS[0] not in err


def test_missing_labels_of_parquet(run, tmp_path):
    """A number that is none is no label either."""
    rows = [
        {"body": text, "stars": float("nan") if i == 3 else 1.0} for i, text in enumerate(TEXTS)
    ]
    write(tmp_path, "a.parquet", rows)
    code, _, err = run("make", "a.parquet", "--field", "body", "--label", "stars", *SAID, "-o", "x")
    assert code == 2
    assert "1 of 24 texts have no label" in err
