"""The command line's verbs for tables: what they print, and errors of one line."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from textveil import cli
from textveil.cli import progress
from textveil.table import store

NOISE = ("--mechanism", "noise", "--epsilon", "5")
WORDS = ["anna", "owes", "the", "bank", "nine", "hundred", "pounds"]
ROWS = np.random.default_rng(2).normal(size=(len(WORDS), 5)).round(4)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command line in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(["table", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    lines = [f"{word} {' '.join(map(str, row))}\n" for word, row in zip(WORDS, ROWS, strict=True)]
    (tmp_path / "some.txt").write_text("".join([*lines, lines[0]]))
    return run


def refused(outcome, says):
    code, out, err = outcome
    assert (code, out) == (2, "")
    assert err.startswith("textveil: error: ")
    assert err.count("\n") == 1
    assert says in err


def test_build_and_info(run):
    code, built, err = run("build", "some.txt", "-o", "here")
    assert (code, err) == (0, "")
    lines = dict(line.split("  ", 1) for line in built.splitlines())
    assert lines["made from"].strip() == "some.txt (glove); 1 repeated and 0 broken words left out"
    assert lines["words"].strip() == "7 of 5 numbers"
    assert run("info", "here") == (0, built, "")
    values = json.loads(run("info", "here", "--json")[1])
    manifest = store.read("here")
    assert values == {"table": "here", **json.loads(json.dumps(manifest.to_json()))}
    refused(
        run("build", "some.txt", "-o", "here"),
        "here exists; --force replaces the folder of a table",
    )
    options = (
        "--force",
        "--name",
        "mine",
        "--metric",
        "euclidean",
        "--dtype",
        "float16",
        "--no-pairs",
        "--limit",
        "3",
    )
    assert run("build", "some.txt", "-o", "here", *options)[0] == 0
    found = store.read("here")
    assert (found.name, found.metric, found.dtype, found.words) == (
        "mine",
        "euclidean",
        "float16",
        3,
    )
    assert "(a bound)" in run("info", "here")[1]


def test_a_built_table_is_used(run, capsys):
    run("build", "some.txt", "-o", "here")
    for name in ("here", "./here", os.path.abspath("here")):
        assert (
            cli.main(["privatize", "Anna owes the bank", "--table", name, *NOISE, "--seed", "1"])
            == 0
        )
        out, err = capsys.readouterr()
        assert set(out.split()) <= set(WORDS)
        assert "at most" in err
    run("build", "some.txt", "-o", "raw", "--metric", "euclidean")
    assert cli.main(["privatize", "Anna owes", "--table", "raw", *NOISE]) == 2
    assert "was built for table.metric=euclidean" in capsys.readouterr().err
    raw = ["privatize", "Anna owes", "--table", "raw", *NOISE, "-o", "table.metric=euclidean"]
    assert cli.main(raw) == 0


def test_registered_tables(run):
    out = run("info", "minilm")[1]
    assert "22,580 of 384 numbers" in out
    assert "1.6511" in out
    assert json.loads(run("info", "minilm", "--json")[1])["constants"]["words"] == 22580
    refused(run("info", "minilmm"), "no table is named 'minilmm'; did you mean 'minilm'?")


def test_list(run, tmp_path):
    run("build", "some.txt", "-o", "one")
    run("build", "some.txt", "-o", "two")
    (tmp_path / "two" / "table.json").write_text("{")
    (tmp_path / "three").mkdir()
    code, out, _ = run("list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [
        "minilm",
        "minilm-s",
        "minilm-wordpiece",
        "one",
        "two",
    ]
    assert "7 x 5, chord, float32, some.txt" in out
    assert "two/table.json: it is damaged, or not from textveil" in out
    assert "three" not in out
    refused(run("list", "nowhere"), "nowhere: no such folder")


def test_neighbours(run):
    run("build", "some.txt", "-o", "here")
    code, out, err = run("neighbours", "here", "bank", "-k", "3")
    assert (code, err) == (0, "")
    unit = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    distances = np.linalg.norm(unit - unit[3], axis=1)
    order = [i for i in np.argsort(distances) if i != 3][:3]
    assert out.splitlines() == [f"{distances[i]:.4f}  {WORDS[i]}" for i in order]
    code, out, err = run("neighbours", "here", "banker", "--json")
    assert "not in the table; these are the neighbours of 'bank', which stands in for it" in err
    found = json.loads(out)
    assert (found["row"], found["known"], len(found["neighbours"])) == ("bank", False, 6)


def test_errors_are_one_line(run, tmp_path):
    refused(run("build", "nothing.txt", "-o", "x"), "nothing.txt: no such file")
    (tmp_path / "bad.txt").write_text("a 1 2\nb 1\n")
    refused(
        run("build", "bad.txt", "-o", "x"),
        "bad.txt: line 2 must hold a word and 2 numbers, got 1; --skip",
    )
    refused(
        run("build", "some.txt", "-o", "x", "--format", "csv"),
        "--format must be one of glove, vec, word2vec",
    )
    refused(
        run("build", "some.txt", "-o", "x", "--metric", "cosine"),
        "must be chord or euclidean, got 'cosine'",
    )
    refused(run("build", "some.txt"), "-o (--output) must name the folder to create")
    refused(run("info", "./some.txt"), "it is not a book of codes, or damaged")
    refused(run("info", "./"), "it is not the folder of a table")
    refused(run("neighbours", "minilm"), "needs WORD")
    refused(run("infoo"), "did you mean info?")
    assert sorted(os.listdir(tmp_path)) == ["bad.txt", "some.txt"]


def test_force_keeps_what_is_no_table(run, tmp_path):
    (tmp_path / "proj" / "sub").mkdir(parents=True)
    (tmp_path / "proj" / "thesis.tex").touch()
    (tmp_path / "proj" / "table.json").write_text("{}")
    refused(
        run("build", "some.txt", "-o", "proj", "--force"), "proj is not replaced: it holds 'sub'"
    )
    assert (tmp_path / "proj" / "thesis.tex").exists()
    (tmp_path / "proj" / "sub").rmdir()
    refused(
        run("build", "some.txt", "-o", "proj", "--force"),
        "proj is not replaced: it holds 'thesis.tex'",
    )
    refused(run("build", "some.txt", "-o", "minilm"), "minilm is the name of a registered table")
    refused(run("build", "some.txt", "-o", "x.part"), "must not end with .part")
    assert sorted(os.listdir(tmp_path)) == ["proj", "some.txt"]
    assert "7 of 5 numbers" in run("build", "some.txt", "-o", "./minilm")[1]


def test_words_with_line_ends(run, capsys, tmp_path):
    """A release has as many lines as its input."""
    words = [
        "anna",
        "foo\nbar",
        "cr\rx",
        "next\x85",
        "page\x0c",
        "sep\u2028",
        "escape\x1b[1m",
        "bank",
    ]
    rows = np.random.default_rng(1).normal(size=(len(words), 5)).astype("<f4")
    records = b"".join(
        word.encode() + b" " + row.tobytes() for word, row in zip(words, rows, strict=True)
    )
    (tmp_path / "ctl.bin").write_bytes(b"8 5\n" + records)
    refused(
        run("build", "ctl.bin", "-o", "ctl"),
        "has a word with a line break or another control character",
    )
    assert (
        "0 repeated and 6 broken words left out"
        in run("build", "ctl.bin", "-o", "ctl", "--skip-broken")[1]
    )
    assert (
        cli.main(["privatize", "Anna\nanna anna\nx y z", "--table", "ctl", *NOISE, "--seed", "1"])
        == 0
    )
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("verb", ["build", "info", "list", "neighbours"])
def test_help(run, verb):
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert "Examples:" in out
    assert f"textveil table {verb}" in out
    assert "textveil table build" in run()[1]


def test_progress_only_on_a_terminal(run, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TEXTVEIL_PROGRESS", "1")
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 0.0)
    assert run("build", "some.txt", "-o", "x")[0] == 0
    assert "neighbours" in terminal.getvalue()


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(signal, "SIGTERM") or sys.platform == "win32", reason="needs signals"
)
def test_a_terminated_build_cleans_up(run, tmp_path):
    rows = "".join(f"w{i} {' '.join(['1.5', '2.5', str(i)] * 40)}\n" for i in range(60_000))
    (tmp_path / "big.txt").write_text(rows)
    with subprocess.Popen(
        [sys.executable, "-m", "textveil", "table", "build", "big.txt", "-o", "x"]
    ) as process:
        began = time.monotonic()
        while not list(tmp_path.glob(".x.*")) and time.monotonic() - began < 60:
            time.sleep(0.01)
        process.terminate()
    assert process.returncode == 128 + signal.SIGTERM
    assert sorted(os.listdir(tmp_path)) == ["big.txt", "some.txt"]
