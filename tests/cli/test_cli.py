"""The command line: streams and exit codes; no text in an error; files whole or untouched."""

import errno
import io
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import typer
import yaml
from tests.lanes import first_of_each
from tests.tiny_library import make_tiny_library

import textveil
from textveil import cli
from textveil.cli import app, demo, progress, texts
from textveil.config import registry
from textveil.corpus import runs
from textveil.errors import TextveilWarning
from textveil.files import text_streams
from textveil.pipeline import privatizer
from textveil.table.embedding import EmbeddingTable

CANARY = "Zyxqorvian"
LETTER = """
anna owes bank nine hundred pounds letter doctor clinic pain knee tablets monday rest weeks office salary rent
flat piano neighbour daughter bakery money home debt heart weak spring trains love one two another text ill
"""
WORDS = LETTER.split()


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> EmbeddingTable:
    """A small table in place of the default one, so that a command takes no time."""
    vectors = np.random.default_rng(5).normal(size=(len(WORDS), 8))
    small = EmbeddingTable.build(name="small", words=WORDS, vectors=vectors)
    for module in (privatizer, demo):
        monkeypatch.setattr(module, "load_table", lambda *_, **__: small)
    return small


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No options from outside, and no progress of what takes long on a slow machine."""
    for name in list(os.environ):
        if name.startswith("TEXTVEIL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TEXTVEIL_PROGRESS", "0")


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process: exit code, standard output, standard error."""

    def run(*arguments: str, stdin: bytes | None = None) -> tuple[int, str, str]:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = cli.main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def process(
    *arguments: str, stdin: bytes = b"", **environ: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line as a process of its own."""
    command = [sys.executable, "-m", "textveil", *arguments]
    return subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        env={**os.environ, **environ},
        timeout=120,
        check=False,
    )


def refused(outcome: tuple[int, str, str], says: str, code: int = 2) -> None:
    """The exit code, one line on standard error, nothing on standard output, and no canary anywhere."""
    assert outcome[0] == code
    assert outcome[1] == ""
    assert outcome[2].startswith("textveil: error: ")
    assert outcome[2].count("\n") == 1
    assert outcome[2].endswith("\n")
    assert CANARY.lower() not in outcome[2].lower()
    assert re.search(says, outcome[2]), outcome[2]


NOISE = ("--mechanism", "noise", "--epsilon", "5")

# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("verb", ["protect", "privatize", "groups", "risk"])
def test_empty_input_is_told_and_is_no_error(run, verb):
    for more in ((), ("--json",)):
        code, out, err = run(
            verb, "-", *NOISE, "-o", "protect.detectors=patterns", *more, stdin=b""
        )
        assert (code, out) == (0, "")
        assert err == "textveil: warning: the input is empty, so there is nothing to release\n"


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("protect", CANARY, "--epsilon", "3"),
            "epsilon has nothing to set, because groups.budgets fixes",
        ),
        (
            ("protect", CANARY, "-o", "mechanism.zyx=1"),
            "no option is named 'mechanism.zyx'; known: mechanism.name$",
        ),
        (
            ("privatize", CANARY, *("--output", "none/here")),
            "--output must name a file in an existing folder; create",
        ),
        (
            ("protect", CANARY, "--output", "."),
            "for whole files and folders use `textveil corpus run --profile prompt`",
        ),
        (
            ("restore", CANARY, "--session", "a.session"),
            "not a textveil session file .* give one that --session wrote",
        ),
    ],
)
def test_what_is_wrong_and_what_to_do(run, arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.session").write_text(CANARY)
    refused(run(*arguments), says)


# ---- privatize -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("table")
def test_text_goes_out_and_the_statement_beside_it(run):
    code, out, err = run("privatize", f"Anna owes the bank {CANARY}.", *NOISE)
    assert code == 0
    words = out.split()
    assert out.endswith(".\n")
    assert words[2] == "the"
    assert set(words[:2]) <= set(WORDS)
    assert CANARY not in out + err
    lines = err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("4 words drawn at epsilon 5 per unit of chord distance")
    assert lines[0].endswith("; 1 common word and 1 punctuation mark passed.")


@pytest.mark.usefixtures("table")
def test_json_holds_everything_and_the_other_stream_nothing(run):
    code, out, err = run("privatize", f"Anna met {CANARY} 日本 at 12:30 😀", *NOISE, "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    found = json.loads(out)
    assert found.keys() == {
        *("text", "items", "hidden", "guarantee", "oov_share", "seconds"),
        *("sent_earlier", "unmeasured"),
    }
    assert [item["kind"] for item in found["items"]].count("verbatim") == 1
    protected = [item for item in found["items"] if item["kind"] != "verbatim"]
    assert len(found["guarantee"]["epsilon_per_word"]) == len(protected) == 7
    assert CANARY.lower() not in out.lower()
    assert found["oov_share"] == pytest.approx(6 / 7)


@pytest.mark.usefixtures("table")
def test_json_is_not_escaped_and_has_the_original_only_when_asked(run):
    arguments = ("privatize", "Köln 日本", "--mechanism", "noise", "--epsilon", "inf", "--json")
    _, out, err = run(*arguments)
    assert "日本" in out
    assert "original" not in json.loads(out)
    assert all(line.startswith("textveil: warning: ") for line in err.splitlines())
    _, out, _ = run(*arguments, "--with-original")
    assert json.loads(out)["original"]["text"] == "Köln 日本"


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    "mechanism",
    ["noise", "stencil", "d-chi-stencil", "polar", "laplace", "exponential", "placeholder"],
)
def test_no_mechanism_shows_unknown_words(run, mechanism):
    code, out, err = run(
        "privatize", "Zyxqorvian Blorfnax quuxly", "--mechanism", mechanism, "--epsilon", "8"
    )
    assert code == 0
    for word in ("zyxqorvian", "blorfnax", "quuxly"):
        assert word not in (out + err).lower()


@pytest.mark.usefixtures("table")
def test_one_text_per_line(run):
    code, out, err = run(
        "privatize", "-", *NOISE, "--lines", stdin=b"\xef\xbb\xbfAnna\r\n\nthe bank\nthe"
    )
    assert code == 0
    lines = out.split("\n")
    assert len(lines) == 5
    assert lines[1] == ""
    assert lines[2].startswith("the ")
    assert lines[3:] == ["the", ""]
    assert lines[0].startswith("\ufeff")  # as it stood in front of the text
    assert lines[0].removeprefix("\ufeff") in WORDS
    assert err.startswith("In 4 texts: 2 words drawn at epsilon 5 ")
    assert len(err.splitlines()) == 1


@pytest.mark.usefixtures("table")
def test_all_as_one_text(run):
    text = b"the Anna\n\n  the\n"
    _, out, _ = run("privatize", *NOISE, stdin=text)
    assert re.fullmatch(r"the \w+\n\n  the\n", out)
    _, out, _ = run("privatize", *NOISE, "--json", stdin=text)
    assert json.loads(out)["text"].endswith("  the\n")


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(("stdin", "lines"), [(b"", 0), (b"\n", 1), (b"the", 1), (b"the\n\n", 2)])
def test_how_many_texts_an_input_holds(run, stdin, lines):
    code, out, _ = run("privatize", "-", *NOISE, "--json", "--lines", stdin=stdin)
    assert code == 0
    assert len(out.splitlines()) == lines
    assert len(run("privatize", "-", *NOISE, "--json", stdin=stdin)[1].splitlines()) == bool(stdin)


@pytest.mark.usefixtures("table")
def test_a_file_is_read(run, tmp_path):
    path = tmp_path / "letter"
    path.write_bytes(b"the Anna\nthe")
    _, out, _ = run("privatize", str(path), *NOISE)
    assert re.fullmatch(r"the \w+\nthe", out)
    _, out, _ = run("privatize", str(path), *NOISE, "--lines")
    assert re.fullmatch(r"the \w+\nthe\n", out)


@pytest.mark.usefixtures("table")
def test_other_line_separators_do_not_divide_texts(run):
    _, out, _ = run(
        "privatize", *NOISE, "--json", "--lines", stdin="the\u2028the\x0bthe\x85the\rthe\n".encode()
    )
    assert len(out.splitlines()) == 1
    assert json.loads(out)["text"] == "the\u2028the\x0bthe\x85the\rthe"


@pytest.mark.usefixtures("table")
def test_originals_beside_releases(run):
    code, out, _ = run(
        "privatize",
        "--lines",
        "--mechanism",
        "placeholder",
        "--with-original",
        stdin=b"the\tAnna\nthe\n",
    )
    assert code == 0
    first, second = out.splitlines()
    original, released = first.split("\t")
    assert original == "the Anna"
    assert released.startswith("the ")
    assert "Anna" not in released
    assert second == "the\tthe"


@pytest.mark.usefixtures("table")
def test_a_warning_names_the_originals_on_the_output(run):
    arguments = ("privatize", CANARY, "--mechanism", "placeholder")
    warned = "textveil: warning: the output holds the private originals"
    _, _, err = run(*arguments, "--with-original")
    assert err.splitlines()[0].startswith(warned)
    assert CANARY not in err
    assert warned not in run(*arguments)[2]


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("table")
def test_the_statement_is_wrapped_for_a_terminal_only(run, monkeypatch):
    arguments = ("privatize", "Anna owes the bank", *NOISE, "--seed", "1", "--explain")
    plain = run(*arguments)[2]
    assert max(map(len, plain.splitlines())) > 100
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "60")
    assert run(*arguments)[2] == plain
    monkeypatch.setattr(sys, "stderr", terminal)
    run(*arguments)
    wrapped = terminal.getvalue()
    assert max(map(len, wrapped.splitlines())) <= 60
    assert wrapped.split() == plain.split()


@pytest.mark.usefixtures("table")
def test_a_missing_text_is_named_before_a_missing_budget(run, monkeypatch):
    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Keyboard())
    refused(run("privatize"), "a text is needed")


@pytest.mark.usefixtures("table")
def test_the_whole_statement(run):
    plain, short, long, none = (
        run("privatize", "Anna owes", *NOISE, *how)[2]
        for how in ((), ("--statement",), ("--explain",), ("--quiet",))
    )
    assert (len(plain.splitlines()), len(short.splitlines()), none) == (1, 3, "")
    assert short.endswith("Unknown words: 0.0% of those not on the public list.\n")
    assert len(long.splitlines()) > 3
    assert "for every output y" in " ".join(long.split()).replace(
        "every output y,", "for every output y"
    )
    _, out, err = run("privatize", "Anna owes", *NOISE, "--explain", "--json")
    assert json.loads(out)
    assert err == long


@pytest.mark.usefixtures("table")
def test_a_seed_repeats_and_is_said(run):
    _, first, err = run("privatize", "Anna owes the bank", *NOISE, "--seed", "7")
    _, second, _ = run("privatize", "Anna owes the bank", *NOISE, "--seed", "7")
    assert first == second
    assert "no protection against anyone who knows the seed" in err


@pytest.mark.usefixtures("table")
def test_warnings_are_one_line_each_and_said_once(run, monkeypatch):
    batch = privatizer.Privatizer._release_batch

    def warned(self: Any, *arguments: Any, **more: Any) -> Any:
        warnings.warn("two\nlines", TextveilWarning, stacklevel=2)
        warnings.warn(f"a library repeats {CANARY}", UserWarning, stacklevel=2)
        return batch(self, *arguments, **more)

    monkeypatch.setattr(privatizer.Privatizer, "_release_batch", warned)
    monkeypatch.setattr(privatizer, "BATCH_TEXTS", 1)
    _, _, err = run("privatize", *NOISE, "--lines", stdin=b"Anna\nAnna\nAnna\n")
    lines = err.splitlines()
    assert lines[0] == "textveil: warning: two lines"
    assert len(lines) == 2
    assert CANARY not in err


@pytest.mark.usefixtures("table")
def test_options_from_every_place(run, tmp_path, monkeypatch):
    (tmp_path / "o.yaml").write_text(
        "mechanism: {name: d-chi-stencil, L: 3}\nwords: {casing: copy}\n"
    )
    monkeypatch.setenv("TEXTVEIL_MECHANISM__ETA", "9")
    code, out, _ = run(
        "privatize",
        "ANNA OWES",
        "--config",
        str(tmp_path / "o.yaml"),
        "-o",
        "mechanism.sigma=1e0",
        "--json",
    )
    assert code == 0
    found = json.loads(out)
    assert found["text"] == found["text"].upper()
    assert found["guarantee"]["mechanism"] == "d-chi-stencil"
    assert found["guarantee"]["parameter"] == {"name": "eta", "min": 9.0, "max": 9.0}


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("privatize", "x", "--mechanism", "noise", "--epsilon", "nan"),
            "epsilon must be a number >= 0, got nan$",
        ),
        (("privatize", "x", "--epsilon", "-1"), "epsilon must be a number >= 0, got -1"),
        (("privatize", "x", "--epsilon", "lots"), "epsilon must be a valid number, got 'lots'"),
        (("privatize", CANARY, "--mechanism", "noise"), "needs a budget"),
        (("privatize", CANARY, *NOISE, "-o", "mechanism.eta=5"), "not both"),
        (("privatize", CANARY, "--mechanism", "nois", "--epsilon", "5"), "did you mean 'noise'"),
        (("privatize", CANARY, "--profile", "paper-nois"), "did you mean 'paper-noise'"),
        (("privatize", CANARY, "--epsilon", "5", "--table", "minilm-z"), "did you mean 'minilm"),
        (
            ("privatize", CANARY, "--epsilon", "5", "-o", "words.oow=keep"),
            r"did you mean 'words\.oov'",
        ),
        (
            ("privatize", CANARY, "--epsilon", "5", "-o", f"{CANARY} met"),
            "a setting has the form path=value, such as -o mechanism.L=5$",
        ),
        (
            ("privatize", CANARY, "--epsilon", "5", "-o", "words.oov"),
            r"such as -o mechanism\.L=5, but 'words\.oov' has no value$",
        ),
        (("privatize", CANARY, *NOISE, "-o", "mechanism.etta=5"), r"did you mean 'mechanism\.eta'"),
        (
            ("privatize", CANARY, "--epsilon", "5", "--config", "/nowhere.yaml"),
            "cannot read the configuration file .*: No such file",
        ),
        (("privatize", CANARY, "--epsilon", "5", "--seed", "x"), "seed must be a valid integer"),
        (("privatize", CANARY, "--epsilon"), "--epsilon needs a value"),
        (("privatize", CANARY, "--json=5"), "--json takes no value"),
        (
            ("privatize", CANARY, CANARY, "--epsilon", "5"),
            "takes one argument; put a text of several words in quotes",
        ),
        (("privatize", f"-{CANARY} met Anna"), "no such option.*goes after --"),
        (("privatize", f"--{CANARY} met Anna"), "no such option.*goes after --"),
        (
            ("privatize", CANARY, "--epsilom", "5"),
            "has no option '--epsilom'; did you mean --epsilon",
        ),
        (
            ("privatize", "--", f"-{CANARY} degrees", "--epsilon", "5"),
            "options first, then -- and the text$",
        ),
        (("privatize", "letter.txt", "--epsilon", "5"), "no such file, 'letter.txt'"),
        (("privatize", "./letter", "--epsilon", "5"), "no such file, './letter'"),
        (("privatize", "/no/letter", "--epsilon", "5"), "no such file, '/no/letter'"),
        (("privatize", f"{CANARY}@example.md", "--epsilon", "5"), "no such file, like that"),
        (("privatize", "/", "--epsilon", "5"), "'/' is a folder"),
        (
            (f"{CANARY} met Anna",),
            "no such command.*a text goes after `textveil protect` or `textveil privatize`",
        ),
        (("privatise", CANARY), "no command 'privatise'; did you mean privatize"),
        (("show", f"{CANARY} met"), "no such command; commands are config"),
        (("show", "nothing"), "no command 'nothing'; commands are config"),
        (("explain",), "needs NAME"),
        (("list", "mechanism"), "did you mean 'mechanisms'"),
        (("explain", "nois"), "did you mean 'noise'"),
        (("--no-such",), "no option '--no-such'"),
        (("demo", "--seed", "x"), "seed must be a valid integer"),
    ],
)
def test_wrong_usage_is_one_line_without_the_text(run, arguments, says):
    refused(run(*arguments), says)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("value", ["-1", "0", "nan", "inf", "true", "sixty", "null"])
@pytest.mark.parametrize("option", ["noise.eta", "polar.kappa", "laplace.nominal", "exponential.c"])
def test_a_mechanism_refuses_a_wrong_parameter_of_its_own(run, option, value):
    mechanism, parameter = option.split(".")
    outcome = run(
        "privatize", CANARY, "--mechanism", mechanism, "-o", f"mechanism.{parameter}={value}"
    )
    refused(outcome, rf"{parameter} must be|needs a budget.*mechanism\.{parameter}=")


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("stdin", "position"),
    [
        (b"\xff" + CANARY.encode(), 0),
        (b"Anna\n" + CANARY.encode() + b"\xe2\x82", 15),
        (b"\xef\xbb\xbf\n\n\x80", 5),
        (CANARY.encode("utf-16"), 0),
    ],
)
@pytest.mark.parametrize("lines", [False, True])
def test_bytes_that_are_not_utf_8_are_placed_and_not_shown(run, tmp_path, stdin, position, lines):
    says = rf"must be UTF-8; byte {position} \(counted from 0\) is not"
    refused(run("privatize", "-", *NOISE, *["--lines"] * lines, stdin=stdin), says)
    (tmp_path / "letter").write_bytes(stdin)
    refused(run("privatize", str(tmp_path / "letter"), *NOISE, *["--lines"] * lines), says)


@pytest.mark.usefixtures("table")
def test_an_argument_that_is_not_utf_8(run):
    refused(run("privatize", CANARY + "\udcff", *NOISE), "must be UTF-8; byte 10")


@pytest.mark.usefixtures("table")
def test_unknown_words_as_an_error_are_not_shown(run):
    refused(
        run("privatize", f"Anna met {CANARY}", *NOISE, "-o", "words.oov=error"), "outside the table"
    )


def test_a_terminal_without_a_text(run, monkeypatch):
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(b"")))
    refused(run("privatize", *NOISE), "a text is needed")


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    "text", ["https://a.org/x.txt", "and/or", "e.g.", "1.txt or 2", "12:30", "x" * 5000, "."[:0]]
)
def test_texts_that_are_no_paths(run, text):
    assert run("privatize", text, *NOISE)[0] == 0


def test_the_message_of_an_unforeseen_error_is_not_shown(run, monkeypatch):
    def broken(_: Any) -> Any:
        secret = CANARY
        try:
            raise KeyError(secret)
        except KeyError as error:
            raise ValueError(f"{secret} is wrong") from error

    monkeypatch.setattr(privatizer.Privatizer, "from_config", broken)
    refused(run("privatize", CANARY, *NOISE), "unexpected ValueError", code=1)
    monkeypatch.setenv("TEXTVEIL_DEBUG", "1")
    code, _, err = run("privatize", CANARY, *NOISE)
    assert code == 1
    assert CANARY not in err
    assert "in broken" in err
    assert "ValueError" in err
    assert "KeyError" in err


@pytest.mark.parametrize(
    ("raised", "code"), [(KeyboardInterrupt, 130), (typer.Abort, 130), (BrokenPipeError, 141)]
)
def test_ends_without_a_word(run, monkeypatch, raised, code):
    def ended(_: Any) -> Any:
        raise raised

    monkeypatch.setattr(privatizer.Privatizer, "from_config", ended)
    assert run("privatize", CANARY, *NOISE) == (code, "", "")


# ---- --output ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("table")
def test_output_to_a_file(run, tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    path.chmod(0o640)
    code, out, err = run("privatize", "the Anna", *NOISE, "--output", str(path))
    assert (code, out) == (0, "")
    assert len(err.splitlines()) == 1
    assert re.fullmatch(r"the \w+\n", path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.usefixtures("table")
def test_originals_in_a_new_file_are_for_their_owner_only(run, tmp_path):
    run("privatize", "the Anna", *NOISE, "--output", str(tmp_path / "a"), "--with-original")
    run("privatize", "the Anna", *NOISE, "--output", str(tmp_path / "b"))
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) & 0o400


@pytest.mark.usefixtures("table")
def test_a_link_stays_a_link(run, tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    run("privatize", "the", *NOISE, "--output", str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "the\n"


class Full(io.StringIO):
    """A file on a full disk: the second write fails, as does what closing would still write."""

    writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        if self.writes > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)

    def close(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def fill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put every file that is opened for the output on a full disk."""

    def opened(descriptor: int, *_: Any, **__: Any) -> Full:
        os.close(descriptor)
        return Full()

    monkeypatch.setattr(text_streams, "open", opened, raising=False)


@pytest.mark.usefixtures("table", "fill")
def test_a_full_disk_leaves_the_old_file(run, tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    refused(
        run(
            "privatize", *NOISE, "--lines", "--output", str(path), stdin=f"{CANARY}\n".encode() * 3
        ),
        "No space left",
    )
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_at_the_end_leaves_the_old_file(run, tmp_path, monkeypatch, call):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fails(*_: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, call, fails)
    refused(run("privatize", CANARY, *NOISE, "--output", str(path)), "Input/output error")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("stdin", "more", "says"),
    [
        (f"the\n{CANARY}\xff\n".encode("latin-1"), (), "must be UTF-8"),
        (f"the\n{CANARY}\n".encode(), ("-o", "words.oov=error"), "outside the table"),
    ],
)
def test_a_bad_text_leaves_the_old_file(run, tmp_path, monkeypatch, stdin, more, says):
    monkeypatch.setattr(privatizer, "BATCH_TEXTS", 1)
    path = tmp_path / "out.txt"
    path.write_text("old")
    refused(run("privatize", *NOISE, *more, "--lines", "--output", str(path), stdin=stdin), says)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(getattr(signal, "SIGHUP", 0), marks=pytest.mark.posix)]
)
def test_a_signal_leaves_the_old_file(tmp_path, monkeypatch, number):
    path = tmp_path / "out.txt"
    path.write_text("old")
    before = signal.getsignal(number)

    def ended(self: Any, texts: Any) -> Any:
        yield from ()
        assert len(os.listdir(tmp_path)) == 2
        signal.raise_signal(number)

    monkeypatch.setattr(privatizer.Privatizer, "privatize_many", ended)
    with pytest.raises(SystemExit) as caught:
        cli.main(["privatize", "the", *NOISE, "--output", str(path)])
    assert caught.value.code == 128 + number
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]
    assert signal.getsignal(number) is before


@pytest.mark.usefixtures("table")
def test_outputs_that_are_refused(run, tmp_path):
    path = tmp_path / "letter"
    path.write_text(f"{CANARY}\n")
    (tmp_path / "link").symlink_to(path)
    for output in (path, tmp_path / "link"):
        refused(
            run("privatize", str(path), *NOISE, "--output", str(output)),
            "must not be the input file",
        )
    refused(run("privatize", CANARY, *NOISE, "--output", str(tmp_path)), "is a folder")
    refused(
        run("privatize", CANARY, *NOISE, "--output", str(tmp_path / "no" / "out")),
        "in an existing folder",
    )
    assert path.read_text() == f"{CANARY}\n"
    assert sorted(os.listdir(tmp_path)) == ["letter", "link"]


@pytest.mark.usefixtures("table")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_device_is_written_as_it_is(run):
    refused(run("privatize", CANARY, *NOISE, "--output", "/dev/full"), "No space left on device")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
    assert run("privatize", "the", *NOISE, "--output", "/dev/null")[:2] == (0, "")


# ---- corpora -------------------------------------------------------------------------------------


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "a.csv"
    path.write_text("id,text\n1,Anna owes\n2,the\n")
    return path


@pytest.mark.usefixtures("table")
def test_a_corpus(run, rows, tmp_path):
    out = tmp_path / "out"
    arguments = ("corpus", "run", str(rows), "--id", "id", *NOISE, "--output", str(out))
    code, said, err = run(*arguments)
    assert (code, said) == (0, "")
    lines = err.splitlines()
    assert lines[0] == "2 rows in 1 part, fields text: 2 texts, 3 words."
    assert lines[1].startswith("In 2 texts: 2 words drawn at epsilon 5 per unit")
    assert "The field id is copied unchanged: 2 words, and nothing is claimed for them." in err
    assert re.fullmatch(r"id,text\n1,\w+ \w+\n2,the\n", (out / "part-00000000.csv").read_text())
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["statement"]["guarantee"]["epsilon_per_word"] == [{"epsilon": 5.0, "words": 2}]
    again = run(*arguments, "--resume")
    assert again[2].splitlines() == [
        lines[0],
        "The release was already finished; nothing was read or drawn now.",
    ]
    refused(run(*arguments), "holds a finished release")
    assert run("corpus", "verify", str(out)) == (0, "The release matches its manifest.\n", "")
    (out / "part-00000000.csv").write_text("id,text\n")
    refused(run("corpus", "verify", str(out)), "part-00000000.csv was changed")
    assert run("corpus", "finish", str(out))[0] == 0


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("a.csv", "--id", "id"),
            r"Missing for a\.csv: a folder for the release \(--output FOLDER\)\. Columns: id, text",
        ),
        (("a.csv", "--output", "out/"), "give --id NAME, the column with an id"),
        (
            ("a.csv", "--id", "id", "--id-from-row", "--output", "out/"),
            "give one of --id, --id-from-row",
        ),
        (("a.csv", "--id", "id", "--output", "c.csv"), "must be a folder"),
        (
            ("b.txt", "b.tx", "--id-from-row", "--output", "out/"),
            r"input 2 of 2, 'b\.tx', names no file: .*; did you mean 'b\.txt'\?",
        ),
        (("--output", "out/"), r"needs INPUT;"),
        (("a.csv", "--output", "out/", "--json"), "no option '--json'"),
        (
            ("a.csv", "--id", "id", "--output", "out/", "--column", "body"),
            r"a\.csv has no column 'body' \(--field\)",
        ),
        (
            ("b.txt", "--id-from-row", "--output", "out/", "--field", "body"),
            r"a \.txt file has no fields",
        ),
        (("b.txt", "--id", "x", "--output", "out/"), r"a \.txt file has no fields"),
        (("a.csv", "--id-from-row", "--output", "out/"), "--others copy"),
        (
            ("a.csv", "--id-from-row", "--others", "all", "--output", "out/"),
            r"--others needs copy\|drop",
        ),
        (("a.csv", "--id", "id", "--output", "out/", "--jobs", "-1"), "--jobs must be 0"),
        (("a.csv", "--id", "id", "--output", "out/", "--jobs", "x"), "--jobs needs N"),
        (
            ("a.csv", "--id", "id", "--output", "out/", "--executor", "dask"),
            "--executor must be local, ray or spark",
        ),
        (
            ("a.csv", "--id", "id", "--output", "out/", "--cluster", "x"),
            "--cluster is for the executors",
        ),
        (
            ("a.csv", "--id", "id", "--output", "out/", "--task", "x", "--query", "q"),
            "--task for all texts, or --query",
        ),
        (
            ("broken.csv", "--id-from-row", "--output", "out/"),
            r"broken\.csv: line 2 must have 1 columns",
        ),
        (("broken.jsonl", "--id-from-row", "--output", "out/"), "line 1 must be a JSON object"),
        (("broken.parquet", "--id-from-row", "--output", "out/"), "file is incomplete or damaged"),
        (("broken.txt.gz", "--id-from-row", "--output", "out/"), "damaged or cut off"),
        (
            ("b.txt", "--id-from-row", "--output", "out/", "--resume", "-o", "words.oov=error"),
            "outside the table",
        ),
    ],
)
def test_corpora_that_are_refused(run, rows, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.txt").write_text(f"{CANARY}\n")
    (tmp_path / "c.csv").write_text("x")
    (tmp_path / "broken.csv").write_text(f"text\n{CANARY},{CANARY}\n")
    for name in ("broken.jsonl", "broken.parquet", "broken.txt.gz"):
        (tmp_path / name).write_text(f"{CANARY}\n")
    refused(run("corpus", "run", *arguments, *NOISE), says)
    assert not list(tmp_path.rglob("part-*"))
    assert not (tmp_path / "out").exists() or {*os.listdir(tmp_path / "out")} <= {"_textveil"}


@pytest.mark.usefixtures("table")
def test_an_interrupted_run_says_what_is_kept(run, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "_draw_parts", Mock(side_effect=KeyboardInterrupt))
    code, _, err = run(
        "corpus", "run", str(rows), "--id", "id", *NOISE, "--output", str(tmp_path / "out")
    )
    assert code != 0
    assert err == "textveil: interrupted; finished parts are kept; continue with --resume\n"


@pytest.mark.usefixtures("table")
def test_progress_is_drawn_on_a_terminal(run, rows, tmp_path, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("TEXTVEIL_PROGRESS", "1")
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 0.0)
    assert (
        run("corpus", "run", str(rows), "--id", "id", *NOISE, "--output", str(tmp_path / "out"))[0]
        == 0
    )
    assert "2 of 2" in terminal.getvalue()


# ---- the other verbs -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "first", "count"),
    [("mechanisms", "noise", 22), ("tables", "minilm", 3), ("profiles", "data", 14)],
)
def test_lists(run, what, first, count):
    code, out, err = run("list", what)
    assert (code, err) == (0, "")
    rows = [line.split(None, 1) for line in out.splitlines()]
    assert len(rows) == count
    assert rows[0][0] == first
    assert all(len(row) == 2 for row in rows)
    _, out, _ = run("list", what, "--json")
    assert [[entry["name"], entry["summary"]] for entry in json.loads(out)] == rows


@pytest.mark.slow
def test_every_kind_of_names_is_listed_and_every_name_explained(run):
    kinds = dict(line.split(None, 1) for line in run("list")[1].splitlines())
    assert [*kinds] == [*(f"{kind}s" for kind in registry.REGISTRY_KINDS), "profiles"]
    for kind, listed in kinds.items():
        assert [line.split()[0] for line in run("list", kind)[1].splitlines()] == listed.split()
        for name in listed.split():
            code, out, _ = run("explain", name)
            assert code == 0
            assert re.search(rf"^{re.escape(name)}( \(\w+\))?$", out, re.M)
            assert len(out.splitlines()) >= 3
    assert "words.casing = copy" in run("explain", "document")[1]


def test_the_shown_configuration_is_read_back(run, tmp_path):
    arguments = (
        "show",
        "config",
        "--profile",
        "paper-stencil",
        "--epsilon",
        "1e2",
        "-o",
        "words.casing=copy",
    )
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    (tmp_path / "c.yaml").write_text(out)
    assert run("show", "config", "--config", str(tmp_path / "c.yaml")) == (0, out, "")
    assert (
        yaml.safe_load(run("show", "config")[1])["profile"] == "document"
    )  # as `textveil privatize` without options


@pytest.mark.parametrize(
    "name", ["noise", "stencil", "d-chi-stencil", "polar", "laplace", "exponential", "placeholder"]
)
def test_every_mechanism_is_explained(run, name):
    code, out, err = run("explain", name)
    assert (code, err) == (0, "")
    assert out.startswith(f"{name}\n")
    for part in ("Guarantee:", "Caveats:", "Source:", "Options"):
        assert part in out
    if name == "d-chi-stencil":
        assert re.search(r"eta +number or none +default none; in place of --epsilon", out)


@pytest.mark.usefixtures("table")
def test_marks_say_what_happened(table):
    from rich.console import Console

    text = "Anna owes the bank"
    result = privatizer.Privatizer("noise", epsilon=1000, table=table, seed=1).privatize(text)
    assert demo.classify_items(result) == ["kept", "kept", "public", "kept"]
    assert demo.count_unchanged(result) == (3, 3)
    masked = privatizer.Privatizer("placeholder", table=table).privatize(text)
    assert demo.classify_items(masked) == ["placeholder", "placeholder", "public", "placeholder"]
    assert demo.count_unchanged(masked) == (0, 3)

    def printed(terminal: bool) -> str:
        console = Console(
            file=io.StringIO(),
            width=80,
            force_terminal=terminal,
            color_system="standard" if terminal else None,
        )
        console.print(demo.build_comparison(result, marked=terminal))
        return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]

    assert "=anna= =owes= the =bank=" in printed(False)
    assert "\x1b[" not in printed(False)
    assert "\x1b[4;33manna" in printed(True)  # the released column
    assert "\x1b[4;33mAnna" not in printed(True)  # the original is plain
    assert "=" not in printed(True)


def test_no_styles_where_none_are_wanted(monkeypatch):
    from rich.console import Console

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert demo.has_styles(Console(force_terminal=True))
    assert not demo.has_styles(Console(file=io.StringIO(), force_terminal=False))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not demo.has_styles(Console(force_terminal=True, _environ=os.environ))


def test_the_letter_is_a_letter():
    text = demo.read_letter()
    assert 110 <= len(text.split()) <= 150
    assert 2 <= len(re.findall(r"\d+", text)) <= 3


def test_help_and_version(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out == run("--help")[1]
    for command in COMMANDS:
        assert run(*command, "-h") == run(*command, "--help")
    assert run("show") == run("show", "--help")
    assert run("--version") == (0, f"textveil {textveil.__version__}\n", "")


COMMANDS = [
    (),
    ("protect",),
    ("privatize",),
    ("corpus", "run"),
    ("groups",),
    ("risk",),
    ("list",),
    ("show",),
    ("show", "config"),
    ("explain",),
]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("command", "by_risk"),
    [
        *((command, False) for command in COMMANDS),
        pytest.param(("privatize",), True, marks=pytest.mark.slow),
    ],
)
def test_every_example_works(run, command, by_risk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters.jsonl").write_text('{"id": 1, "body": "Anna owes the bank"}\n')
    (tmp_path / "tickets.jsonl").write_text(
        '{"id": 1, "client": "anna", "body": "Anna owes the bank"}\n'
    )
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    (tmp_path / "notes.csv").write_text("id,body\n1,Anna owes the bank\n")
    (tmp_path / "comments.csv").write_text("id,comment,stars\n1,Anna owes the bank,5\n")
    (tmp_path / "customers.csv").write_text("id,name\n1,Anna\n")
    (tmp_path / "prompts.txt").write_text("Anna owes the bank\n")
    (tmp_path / "letter.txt").write_text("Anna owes the bank\n")
    (tmp_path / "news.txt").write_text(
        "".join(f"the bank owes {word} and the river {i}\n" for i, word in enumerate(WORDS))
    )
    make_tiny_library().save(tmp_path / "news.library")
    code, out, _ = run(*command, "--help")
    assert code == 0
    examples = [
        line.strip() for line in out.split("Examples:\n", 1)[1].split("\n\n")[0].splitlines()
    ]
    examples = [each for each in examples if ("--risk" in each) == by_risk]
    assert examples
    for example in examples:
        source, _, line = example.rpartition(" | ")
        stdin = shlex.split(source)[1].replace("\\n", "\n").encode() if source else b""
        name, *arguments = shlex.split(line)
        assert name == "textveil"
        if {"protect", "privatize", "run", "groups", "risk"} & set(arguments) and not (
            {"--mechanism", "--unit"} & set(arguments)
        ):
            arguments += LEAN  # the small table has no lists of names
        code, _, said = run(*arguments, stdin=stdin)
        assert code == 0, said


LEAN = ("-o", "protect.detectors=[patterns]", "-o", "names.types=[]")


@pytest.mark.slow
def test_the_examples_of_the_first_page_work_as_they_are_typed():
    shown = (r"Ask <PERSON_1> \(<EMAIL_1>\) about the lease\n", r"\w+ \w+ the \w+ \w+ \w+ \w+\n")
    said = (
        r"1 person and 1 e-mail address replaced; .*\n",
        r".* drawn at epsilon .*\n",
    )
    for example, out, err in zip(app.EXAMPLES, shown, said, strict=True):
        found = process(*shlex.split(example)[1:])
        assert found.returncode == 0
        assert re.fullmatch(out, found.stdout.decode())
        assert re.fullmatch(err, found.stderr.decode())


# ---- as a process --------------------------------------------------------------------------------


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from textveil.cli import main; main(['--help']); main(['list', 'mechanisms']);"
        "sys.exit(len({'torch', 'numpy', 'tokenizers'} & set(sys.modules)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode
        == 0
    )


def test_exit_codes_of_a_process():
    found = process("privatize", "x", "--mechanism", "noise", "--epsilon", "nan")
    assert (found.returncode, found.stdout) == (2, b"")
    assert found.stderr == b"textveil: error: epsilon must be a number >= 0, got nan\n"
    assert process("--version").returncode == 0


def test_a_text_through_a_process_with_the_default_table(tmp_path):
    arguments = ("privatize", "-", "--mechanism", "placeholder", "--json")
    found = process(
        *arguments, stdin=f"{CANARY} met 日本 at 12:30 😀\n".encode(), LC_ALL="C", PYTHONUTF8="0"
    )
    assert (found.returncode, found.stderr) == (0, b"")
    assert json.loads(found.stdout)["guarantee"]["table"] == "minilm"
    assert CANARY.encode() not in found.stdout
    broken = process(*arguments, stdin=f"{CANARY}\n".encode() + b"\xff")
    assert broken.returncode == 2
    assert (
        broken.stderr
        == b"textveil: error: the input must be UTF-8; byte 11 (counted from 0) is not; convert it first, such as "
        b"by iconv -f LATIN1 -t UTF-8 FILE > NEW\n"
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_standard_output_on_a_full_disk():
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "textveil", "list", "mechanisms"]
        found = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert found.returncode == 2
    assert (
        found.stderr == b"textveil: error: the output cannot be written: No space left on device\n"
    )


def test_a_reader_that_has_gone():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "textveil", "list", "mechanisms"]
    with open(writer, "wb") as gone:
        found = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, check=False)
    assert (found.returncode, found.stderr) == (141, b"")


@pytest.mark.slow
@pytest.mark.parametrize("verb", first_of_each(["groups", "risk"]))
def test_a_page_is_there_though_the_reader_of_the_text_has_gone(tmp_path, verb):
    """As in `textveil risk ... --html page.html | head -0`."""
    reader, writer = os.pipe()
    os.close(reader)
    how = (
        "--mechanism",
        "placeholder",
        "-o",
        "protect.detectors=patterns",
        "-o",
        "table.name=minilm-s",
    )
    page = tmp_path / "page.html"
    command = [
        sys.executable,
        "-m",
        "textveil",
        verb,
        "Anna owes the bank",
        *how,
        "--html",
        str(page),
    ]
    with open(writer, "wb") as gone:
        found = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, check=False)
    assert found.returncode == 141
    assert b"error" not in found.stderr
    assert page.read_text(encoding="utf-8").rstrip().endswith("</html>")


# ---- the package ---------------------------------------------------------------------------------


def test_public_names_are_lazy_and_all_there():
    code = "import sys, textveil; textveil.TextveilError;sys.exit('torch' in sys.modules or 'pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    for name in textveil.__all__:
        assert getattr(textveil, name) is not None
        assert name in dir(textveil)
        assert not name.endswith("Options"), "options have their place in textveil.config"
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        textveil.Nothing  # noqa: B018


def test_every_error_is_public():
    from textveil import errors

    classes = {
        name
        for name, each in vars(errors).items()
        if isinstance(each, type) and each.__module__ == errors.__name__
    }
    assert classes <= set(textveil.__all__)


def test_the_source_tree_is_not_in_the_way(tmp_path: Path):
    """The packaged files are found from any folder."""
    found = subprocess.run(
        [sys.executable, "-m", "textveil", "list", "profiles"],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(textveil.__file__).parents[1])},
        check=False,
    )
    assert found.returncode == 0
    assert b"paper-polar" in found.stdout


@pytest.mark.usefixtures("table")
def test_statements_of_many_texts_are_summed_up_on_the_way(run, monkeypatch):
    lines = b"Anna owes the bank\n" * 25
    whole = run("privatize", *NOISE, "--lines", stdin=lines)[2]
    monkeypatch.setattr(texts, "MAX_STATEMENTS", 4)
    assert run("privatize", *NOISE, "--lines", stdin=lines)[2] == whole
    assert "In 25 texts" in whole


HANGS = """
import atexit, sys, time
from textveil.cli import main
from textveil.config import registry

class Slow:
    name = "slow"
    def find(self, texts):
        time.sleep(60)

atexit.register(print, "taken down under a detector that still runs")
registry.DETECTORS["slow"] = registry.Entry(target="__main__:Slow", summary="never answers")
sys.argv[1:] = ["protect", "Zyxqorvian", "-o", "protect.detectors=slow", "-o", "protect.timeout=0.1"]
sys.exit(main())
"""


@pytest.mark.slow
def test_a_detector_that_hangs_does_not_keep_the_program_from_its_exit_code():
    found = subprocess.run(
        [sys.executable, "-c", HANGS], capture_output=True, timeout=120, check=False
    )
    assert (found.returncode, found.stdout) == (2, b"")
    assert b"the detector slow did not answer within 0.1 s" in found.stderr
