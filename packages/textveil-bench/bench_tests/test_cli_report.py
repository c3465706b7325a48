"""The verb: a page from files and folders, and one line for whatever is wrong."""

import csv
import html
import json

import pytest

from bench_tests import synthetic
from textveil.cli import main
from textveil.library import make_demo_library
from textveil.pipeline import synthesize

SHOWN = {
    "data": "sst2",
    "entry": "noise",
    "series": "noise",
    "budget": {"path": "mechanism.eta", "value": 80},
    "original": "The bridge was closed.",
    "released": "The tower was closed.",
}


@pytest.fixture(scope="module")
def lines():
    rows = synthetic.rows(
        entries=synthetic.ENTRIES[:1], data=("sst2", "squad"), texts=20, seeds=(1,)
    )
    return [json.dumps(row) + "\n" for row in rows]


@pytest.fixture
def folder(lines, tmp_path):
    made = tmp_path / "run"
    made.mkdir()
    (made / "rows.jsonl").write_text("".join(lines))
    (made / "gallery.jsonl").write_text(json.dumps(SHOWN) + "\n")
    return made


def refused(capsys, *arguments):
    assert main(["report", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("textveil: error: ")
    assert err.count("\n") == 1
    return err


def test_a_page_of_a_folder(capsys, folder, tmp_path):
    page, figures = tmp_path / "a.html", tmp_path / "figures"
    arguments = [
        "--output",
        str(page),
        "--title",
        "Two & more",
        "--only",
        "sst2",
        "--figures",
        str(figures),
    ]
    assert main(["report", str(folder), *arguments]) == 0
    content = page.read_text()
    assert "<h1>Two &amp; more</h1>" in content
    assert "sst2" in content
    assert "squad" not in content
    assert "The <mark>tower</mark> was closed." in content
    assert {path.suffix for path in figures.iterdir()} == {".png", ".svg", ".csv"}
    for path in figures.glob("*.csv"):
        head, *lines = csv.reader(path.read_text(encoding="utf-8").splitlines())
        assert lines
        assert {len(line) for line in lines} == {len(head)}
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "Written to a.html: a page of 8 cells.\n"


def test_a_page_on_standard_output(capsys, folder):
    assert main(["report", str(folder / "rows.jsonl"), "--only", "squad", "--output", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")


def test_a_last_line_that_was_cut_short_is_left_out_with_a_warning(capsys, folder, lines, tmp_path):
    (folder / "rows.jsonl").write_text("".join(lines[:4]) + lines[4][:100])
    page = tmp_path / "a.html"
    assert main(["report", str(folder), "--output", str(page)]) == 0
    err = capsys.readouterr().err
    assert "textveil: warning: the last line of 'rows.jsonl' is truncated and skipped" in err
    assert "a page of 4 cells" in err


def test_what_is_refused(capsys, folder, lines, tmp_path):
    assert "cannot read" in refused(capsys, tmp_path / "nothing")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert "at least one row" in refused(capsys, empty)
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({**json.loads(lines[0]), "version": 2}) + "\n")
    assert "rows of version 1; line 1 has another" in refused(capsys, other)
    broken = tmp_path / "broken.jsonl"
    broken.write_text(lines[0] + lines[1][:50] + "\n" + lines[2])
    assert "line 2 of 'broken.jsonl' is not a JSON object" in refused(capsys, broken)
    assert "did you mean 'sst2'" in refused(capsys, folder, "--only", "sst")
    assert "--output must not be the input file" in refused(
        capsys, folder, "--output", folder / "rows.jsonl"
    )
    assert "--figures must be a folder" in refused(capsys, folder, "--figures", empty)
    assert "needs ROWS" in refused(capsys)
    (folder / "gallery.jsonl").write_text('{"data": "sst2", "original": "a private text"}\n')
    said = refused(capsys, folder, "--output", tmp_path / "b.html")
    assert "line 1 of 'gallery.jsonl' is not a text before and after" in said
    assert "private" not in said
    assert not (tmp_path / "b.html").exists()


def test_whole_texts_stand_beside_releases_of_words(capsys, folder, tmp_path):
    library = make_demo_library()
    library.save(tmp_path / "demo.library")
    votes = synthesize(
        ["A parcel is late."], ["yes"], library=library, epsilon=1, level="6", label_names=["yes"]
    ).votes
    (tmp_path / "votes.json").write_text(json.dumps(votes.dump()))
    known = {**SHOWN, "original": library.texts[0]}
    (folder / "gallery.jsonl").write_text(
        "".join(json.dumps(each) + "\n" for each in (SHOWN, known))
    )
    options = ["--library", tmp_path / "demo.library", "--votes", tmp_path / "votes.json"]
    page = tmp_path / "a.html"
    command = ["report", folder, *options, "--epsilon", 2, "--output", page]
    assert main(list(map(str, command))) == 0
    content = page.read_text()
    section = content[content.index('id="whole-texts-before-and-after"') :]
    plain = html.unescape(section)
    first, second = plain.split('class="text original"')[1:3]
    assert "The bridge was closed." in first
    assert "word by word, epsilon 2 for the document: 1 for each of 2 words" in first
    assert "local DP 2 for a whole document" in first
    assert any(text in first for text in library.texts)
    assert "stands in the library itself" in second
    assert "local DP" not in second.partition("a public text in its place")[2].partition("<h3>")[0]
    assert plain.count("<li>yes: ") == 12
    assert "One noisy count of 6 bins; 12 public texts drawn from it" in plain
    assert "At epsilon 0, without any private text" in plain
    capsys.readouterr()
    assert "--votes needs --library" in refused(capsys, folder, *options[2:])
    (tmp_path / "votes.json").write_text("[")
    assert "is not JSON with votes" in refused(capsys, folder, *options)


def test_help_has_examples(capsys):
    assert main(["report", "--help"]) == 0
    assert "textveil report runs/sweep --only sst2 --figures figures" in capsys.readouterr().out
