"""*From the papers to commands*: the page is that of its file, and every command of it works."""

import contextlib
import io
import re
import shlex
import sys
from importlib import import_module

import pytest
from tests.lanes import first_of_each
from tests.test_docs import ROOT

from textveil import cli

sys.path.insert(0, str(ROOT / "packages" / "textveil-bench" / "benchmarks"))
papers_page = import_module("papers_page")

PAGE = ROOT / "docs" / "understand" / "bench" / "commands.md"
THINGS = list(papers_page.list_things())
RUN = [thing["command"] for _, thing in THINGS if thing.get("try", "dry") == "dry"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    for name, content in papers_page.read()["files"].items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def arguments(command):
    program, *words = shlex.split(command)
    assert program == "textveil"
    dry = any(thing["command"] == command and thing.get("try") == "dry" for _, thing in THINGS)
    return [*words, "--dry-run"] if dry else words


@pytest.mark.slow
@pytest.mark.parametrize("command", RUN)
def test_a_command_of_the_page_works(command, files, capsys):
    assert cli.main(arguments(command)) == 0, capsys.readouterr().err
    assert capsys.readouterr().out or "--output" in command


@pytest.mark.parametrize("command", first_of_each([each for each in RUN if "privatize" in each]))
def test_a_command_of_each_kind_works(command, files, capsys):
    assert cli.main(arguments(command)) == 0, capsys.readouterr().err


@pytest.mark.parametrize("command", dict.fromkeys(thing["command"] for _, thing in THINGS))
def test_every_option_of_a_command_exists(command):
    """Also where the command needs a model: its verb has the options."""
    words = shlex.split(command)[1:]
    verb = words[:2] if words[0] in ("bench", "table") else words[:1]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert cli.main([*verb, "--help-all"]) == 0
    for option in (word for word in words if re.match(r"--?[a-zA-Z]", word)):
        assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", out.getvalue()), option


def test_the_page_is_that_of_the_file():
    page = PAGE.read_text(encoding="utf-8")
    assert papers_page.render("things") in page
    assert all(thing["command"] in page for _, thing in THINGS)
    assert len(THINGS) > 50
