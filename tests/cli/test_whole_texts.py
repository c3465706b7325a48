"""`--unit document` and `--unit sentence`: what is printed, and which options go together."""

import json
from pathlib import Path

import pytest
from tests.cli.test_cli import Run, environment, run
from tests.tiny_library import CANARY, PRIVATE, make_tiny_library

__all__ = ["environment", "run"]

TEXT = PRIVATE["pets"]
BASE = ("--unit", "document", "--library", "tiny.library", "--epsilon", "4")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_tiny_library().save(tmp_path / "tiny.library")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_document_becomes_a_public_text(run: Run) -> None:
    code, out, err = run("privatize", TEXT, *BASE)
    assert code == 0
    assert out.removesuffix("\n") in make_tiny_library().texts
    assert err.startswith(
        "A public text of tiny in place of 1 document, by its cell among 3: local DP 4 for a whole"
    )
    assert CANARY not in out + err


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ("--statement", "Library tiny: 108 texts (nobody wrote it; CC0 1.0)"),
        ("--explain", "For every two documents x, x' and every public text t:"),
    ],
)
def test_longer_statements(run: Run, form: str, says: str) -> None:
    code, _, err = run("privatize", TEXT, *BASE, form)
    assert code == 0
    assert says in err
    assert "Unknown words" not in err
    assert run("privatize", TEXT, *BASE, "--quiet")[2] == ""


def test_json_has_the_sources_and_the_statement(run: Run) -> None:
    code, out, err = run(
        "privatize", TEXT, *BASE, "--json", "--seed", "7", "--cells", "6", "--sure", "0.5"
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["public"] is True
    assert found["guarantee"]["libraries"][0]["level"] == "6"
    assert found["guarantee"]["seeded"] is True
    again = json.loads(
        run("privatize", TEXT, *BASE, "--json", "--seed", "7", "--cells", "6", "--sure", "0.5")[1]
    )
    assert again["sources"] == found["sources"]
    with_original = json.loads(run("privatize", TEXT, *BASE, "--json", "--with-original")[1])
    assert with_original["original"] == {"text": TEXT}
    assert TEXT in run("privatize", TEXT, *BASE, "--with-original")[1]


def test_lines_and_sentences_and_files(run: Run, folder: Path) -> None:
    lines = "\n".join([*PRIVATE.values(), ""]).encode()
    code, out, err = run("privatize", "--lines", *BASE, stdin=lines)
    assert code == 0
    assert {*out.splitlines()} <= {*make_tiny_library().texts}
    assert len(out.splitlines()) == 3
    assert "in place of each of 3 documents" in err
    (folder / "letter.txt").write_text("\n".join(PRIVATE.values()))
    code, out, err = run("privatize", "letter.txt", *BASE, "--output", "out.txt")
    assert (code, out) == (0, "")
    assert (folder / "out.txt").read_text().strip() in make_tiny_library().texts
    (folder / "letter.txt").write_text(" ".join(PRIVATE.values()))
    code, out, err = run("privatize", "letter.txt", "--unit", "sentence", *BASE[2:])
    assert code == 0
    assert "each of 3 sentences in 1 document" in err


def test_a_line_that_is_released_is_one_line(run: Run, folder: Path) -> None:
    public = make_tiny_library()
    values = {name: getattr(public, name) for name in public.__dataclass_fields__}
    split = tuple(text.replace(" ", "\n") for text in public.texts)
    type(public)(**{**values, "texts": split}).save(folder / "tiny.library")
    code, out, _ = run("privatize", "--lines", *BASE, stdin="\n".join(PRIVATE.values()).encode())
    assert code == 0
    assert {*out.splitlines()} <= {*public.texts}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((*BASE, "--mechanism", "noise", "--rerank", "3"), "leave out mechanism.name, rerank.m"),
        ((*BASE, "--profile", "document"), "set by the profile 'document'"),
        ((*BASE, "-o", "words.oov=keep"), "leave out words.oov"),
        ((*BASE, "--risk", "0.1"), "leave out risk"),
        ((*BASE, "--session", "letter.session"), "leave out --session"),
        (BASE[:4], "needs a budget: set epsilon (--epsilon)"),
        (BASE[:2] + BASE[4:], "set texts.library (--library)"),
        (BASE[2:], "texts.library must go with whole texts"),
        ((*BASE, "--cells", "9"), "has no level '9': it has labels, 6"),
        ((*BASE, "--sure", "2"), "texts.sure must be"),
        (("--mechanism", "cells", "--epsilon", "4"), "--unit document"),
        ((*BASE[:4], "--epsilon", "inf"), "epsilon must be a number from"),
    ],
)
def test_options_that_do_not_go_together(run: Run, arguments: tuple[str, ...], says: str) -> None:
    code, out, err = run("privatize", TEXT, *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert CANARY not in err


def test_a_text_of_the_library_is_refused(run: Run) -> None:
    code, out, err = run("privatize", "The  dog runs in the GARDEN.", *BASE)
    assert (code, out) == (2, "")
    assert "stand in it" in err
    assert "garden" not in err.lower()


def test_a_file_of_options_is_read_back(run: Run, folder: Path) -> None:
    code, out, _ = run(
        "show",
        "config",
        "-o",
        "texts.unit=document",
        "-o",
        "texts.library=tiny.library",
        "--epsilon",
        "4",
    )
    assert code == 0
    (folder / "options.yaml").write_text(out)
    assert run("privatize", TEXT, "--config", "options.yaml")[0] == 0
    code, _, err = run("find", TEXT, "--config", "options.yaml")
    assert code == 2
    assert CANARY not in err


def test_a_corpus_of_documents(run: Run, folder: Path) -> None:
    rows = [
        {"id": i, "topic": kind, "body": text} for i, (kind, text) in enumerate(PRIVATE.items())
    ]
    (folder / "letters.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = (
        "corpus",
        "run",
        "letters.jsonl",
        "--field",
        "body",
        "--id",
        "id",
        *BASE,
        "--output",
        "out",
    )
    code, _, err = run(*command)
    assert code == 2
    assert "--others copy" in err
    code, out, err = run(*command, "--others", "drop")
    assert (code, out) == (0, "")
    assert "3 rows in 1 part, fields body: 3 texts.\n" in err
    assert "in place of each of 3 documents" in err
    assert "under its licence: CC0 1.0" in err
    assert run("corpus", "verify", "out")[0] == 0
    code, _, err = run(*command, "--others", "drop", "--resume")
    assert code == 0
    assert "already finished" in err
    code, _, err = run(*command[:-1], "more", "--others", "drop", "--query", "topic")
    assert code == 2
    assert "leave out --query" in err
    assert not any(CANARY.encode() in path.read_bytes() for path in (folder / "out").iterdir())
