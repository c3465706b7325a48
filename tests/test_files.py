"""Texts in, results out: what an argument means, lines and bytes, files that appear only when they are whole."""

import io
import json
import os
import signal
import sys
import threading

import pytest

from textveil import files
from textveil.errors import ConfigError, InputError, OutputError

MARK = b"\xef\xbb\xbf"

# ---- texts in ------------------------------------------------------------------------------------


def test_what_an_argument_means(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letter").write_bytes(b"one\ntwo")
    for text in ("a letter", "", "and/or", "https://a.org/x.txt", "x" * 5000, "one\ntwo"):
        assert files.is_text(text)
        with files.texts(text) as found:
            assert list(found) == [text]
    for name in ("letter", ".", "-", "no.txt", "./no", "/no/letter"):
        assert not files.is_text(name)
    with files.texts("letter") as found:
        assert list(found) == ["one", "two"]
    with files.texts("letter", whole=True) as found:
        assert list(found) == ["one\ntwo"]


@pytest.mark.parametrize("argument", ["no.txt", "/", "-", None])
def test_inputs_that_are_not_there(monkeypatch, argument):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError), files.texts(argument):
        pass


def test_lines_are_read_one_by_one():
    class Counted(io.BytesIO):
        lines = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            self.lines += 1
            return super().readline(size)

    stream = Counted(MARK + b"a\r\n\nb\rc\nd")
    found = files.read_lines(stream)
    assert (next(found), stream.lines) == ("a", 1)
    assert list(found) == ["", "b\rc", "d"]
    assert files.read_whole(io.BytesIO(MARK + b"a\r\n")) == "a\r\n"


@pytest.mark.parametrize(("content", "position"), [(b"\xff", 0), (b"ab\nc\xff", 4), (MARK + b"\n\x80", 4)])
def test_bytes_that_are_no_text_are_placed_and_not_held(content, position):
    for read in (lambda: list(files.read_lines(io.BytesIO(content))), lambda: files.read_whole(io.BytesIO(content))):
        with pytest.raises(InputError, match=rf"not at byte {position} ") as caught:
            read()
        assert caught.value.__context__ is None


def test_the_input_is_not_written_over(tmp_path):
    path = tmp_path / "letter"
    path.write_text("one")
    with pytest.raises(ConfigError, match="must not be the input"), files.texts(str(path), output=str(path)):
        pass
    with files.texts(str(path), output=str(tmp_path / "other")) as found:
        assert list(found) == ["one"]


# ---- results out ---------------------------------------------------------------------------------


def test_a_file_appears_when_the_body_has_ended(tmp_path):
    path = tmp_path / "out"
    with files.output(str(path)) as sink:
        sink.write("a\n")
        assert not path.exists()
        assert not sink.terminal
    assert path.read_text() == "a\n"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("raised", [ValueError, KeyboardInterrupt, SystemExit, BrokenPipeError])
@pytest.mark.parametrize("old", [None, "old"])
def test_a_body_that_fails_leaves_what_was_there(tmp_path, raised, old):
    path = tmp_path / "out"
    if old is not None:
        path.write_text(old)

    def fail() -> None:
        with files.output(str(path)) as sink:
            sink.write("new")
            raise raised

    with pytest.raises(raised):
        fail()
    assert os.listdir(tmp_path) == ([] if old is None else ["out"])
    assert old is None or path.read_text() == old


def test_signals_have_their_old_meaning_afterwards(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with files.output(str(tmp_path / "out")):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(OutputError), files.output(str(tmp_path / "no" / "out")):
        pass
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_thread_that_is_not_the_main_one_can_write(tmp_path):
    def write() -> None:
        with files.output(str(tmp_path / "out")) as sink:
            sink.write("a")

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert (tmp_path / "out").read_text() == "a"


def test_standard_output(capsys, monkeypatch):
    for path in (None, "-"):
        with files.output(path) as sink:
            sink.write("a")
    assert capsys.readouterr().out == "aa"
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OutputError, match="is closed"), files.output(None):
        pass


def test_a_read_only_file_is_left_alone(tmp_path, monkeypatch):
    path = tmp_path / "out"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(OutputError, match="read-only"), files.output(str(path)):
        pass
    assert path.read_text() == "old"


def test_json_stays_on_one_line():
    value = {"a": "x\x85y\u2028z\u2029\n é"}
    line = files.json_line(value)
    assert len(line.splitlines()) == 1
    assert json.loads(line) == value
    assert "é" in line
    assert files.tab_line("a\tb\r\nc", "d") == "a b c\td\n"
