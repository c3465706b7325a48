"""The verb find: places, types, words and reasons for the owner of a prompt; lines, JSON and a page."""

import inspect
import io
import json
import stat
import sys

import pytest

from textveil import cli
from textveil.cli.find import find
from textveil.pipeline import privatizer

CANARY = "zyxqorvian@example.org"
PROMPT = f"Write to {CANARY} <soon>"
LEAN = ("-o", "protect.detectors=patterns")
LINE = f"9-31\tEMAIL\t{CANARY}\thidden: found by patterns\n"


@pytest.fixture(autouse=True)
def environment(monkeypatch, small_table):
    monkeypatch.setattr(privatizer, "load_table", lambda *_, **__: small_table)


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*arguments, stdin=None):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = cli.main(["find", *map(str, arguments)])
        return code, *capsys.readouterr()

    return run


def test_a_line_tells_place_type_words_and_reason(run):
    code, out, err = run(PROMPT, *LEAN)
    assert (code, out) == (0, LINE)
    assert err.startswith("1 part is hidden by `textveil protect`; ")
    assert "keep" in err.lower()
    assert run("where is it", *LEAN) == (
        0,
        "",
        "Nothing was found, and nothing is claimed about the words.\n",
    )


def test_a_file_is_one_prompt_and_with_lines_each_line(run, tmp_path):
    file = tmp_path / "a.txt"
    file.write_text(f"one\n{PROMPT}\n")
    assert run(file, *LEAN)[1] == LINE.replace("9-31", "13-35")
    assert run(file, *LEAN, "--lines")[1] == f"2:{LINE}"
    assert run("-", *LEAN, stdin=f"{PROMPT}\n".encode())[1] == LINE


def test_json_has_places_and_no_word(run):
    code, out, err = run("-", *LEAN, "--lines", "--json", stdin=f"{PROMPT}\nnow\n".encode())
    assert (code, err) == (0, "")
    first, second = map(json.loads, out.splitlines())
    assert first["findings"] == [
        {
            "type": "EMAIL",
            "start": 9,
            "end": 31,
            "score": first["findings"][0]["score"],
            "private": 1.0,
            "source": "patterns",
            "hidden": True,
            "reason": "hidden: found by patterns",
        }
    ]
    assert second == {"findings": []}
    assert CANARY not in out


def test_a_page_for_the_owner_only(run, tmp_path):
    page = tmp_path / "a.html"
    code, out, _ = run(PROMPT, *LEAN, "--html", page)
    assert (code, out) == (0, LINE)
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    told = page.read_text()
    assert f'title="hidden: found by patterns" tabindex="0">{CANARY}<span' in told
    assert "&lt;soon&gt;" in told
    assert "Keep this page to yourself" in told
    assert run(PROMPT, *LEAN, "--html", tmp_path / "none" / "a.html")[0] == 2


def test_what_stays_is_counted_and_on_the_page(run, tmp_path):
    level = ("-o", "protect.detectors=tagger", "--level", "identifiers")
    code, out, err = run("Ask Maria Silva", *level)
    assert code == 0
    assert out == "4-15\tPERSON\tMaria Silva\tstays: protect.level=identifiers hides no names\n"
    assert err.startswith("0 parts are hidden by `textveil protect`, 1 more finding stays; ")
    run("Ask Maria Silva", *level, "--html", tmp_path / "a.html")
    assert (
        '<span class="word stays" title="stays: protect.level=' in (tmp_path / "a.html").read_text()
    )


def test_errors_are_one_line_without_the_text(run, tmp_path):
    empty, binary, packed = (tmp_path / name for name in ("a.txt", "b.txt", "c.gz"))
    empty.write_bytes(b"")
    binary.write_bytes(CANARY.encode() + b"\xff\xfe\x00")
    packed.write_bytes(b"\x1f\x8b")
    assert run(empty, *LEAN) == (
        0,
        "",
        "textveil: warning: the input is empty, so there is nothing to find\n",
    )
    for wrong in (
        (binary, *LEAN),
        (packed, *LEAN),
        (tmp_path / "missing.txt", *LEAN),
        (PROMPT, "--profile", "document"),
        (PROMPT, "--level", "everything"),
        (PROMPT, "-o", "protect.detectors=nobody"),
    ):
        code, out, err = run(*wrong)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert CANARY not in err


def test_it_has_few_options():
    assert len(inspect.signature(find).parameters) <= 12


def test_a_page_is_a_file_of_its_own(run, tmp_path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text(PROMPT)
    for page in (prompt, "-"):
        code, out, err = run(prompt, "--html", page, *LEAN)
        assert code != 0
        assert "--html must be a separate file" in err
        assert out == ""
    assert prompt.read_text() == PROMPT


def test_what_was_not_measured_is_said_once(run):
    said = "Recall was not measured for Khmer text; names in it may pass.\n"
    code, out, err = run("--lines", *LEAN, stdin="សួស្តី\nសួស្តី\n".encode())
    assert (code, out, err.count(said)) == (0, "", 1)
    assert said not in run("--lines", "--json", *LEAN, stdin="សួស្តី\n".encode())[2]
    assert said not in run(PROMPT, *LEAN)[2]
