"""Texts in, results out: what an argument means, lines and bytes, files that appear only when they are whole."""

import io
import json
import os
import signal
import sys
import threading
import time

import pytest

from textveil.errors import ConfigError, InputError, OutputError
from textveil.files import text_streams

MARK = b"\xef\xbb\xbf"

# ---- texts in ------------------------------------------------------------------------------------


def test_what_an_argument_means(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letter").write_bytes(b"one\ntwo")
    for text in ("a letter", "", "and/or", "https://a.org/x.txt", "x" * 5000, "one\ntwo"):
        assert text_streams.is_text(text)
        with text_streams.open_texts(text) as found:
            assert list(found) == [text]
    for name in ("letter", ".", "-", "no.txt", "./no", "/no/letter"):
        assert not text_streams.is_text(name)
    with text_streams.open_texts("letter") as found:
        assert list(found) == ["one", "two"]
    with text_streams.open_texts("letter", whole=True) as found:
        assert list(found) == ["one\ntwo"]


@pytest.mark.parametrize("argument", ["no.txt", "/", "-", None])
def test_inputs_that_are_not_there(monkeypatch, argument):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError), text_streams.open_texts(argument):
        pass


def test_lines_are_read_one_by_one():
    class Counted(io.BytesIO):
        lines = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            self.lines += 1
            return super().readline(size)

    stream = Counted(MARK + b"a\r\n\nb\rc\nd")
    found = text_streams.read_lines(stream)
    assert (next(found), stream.lines) == ("a", 1)
    assert list(found) == ["", "b\rc", "d"]
    assert text_streams.read_whole(io.BytesIO(MARK + b"a\r\n")) == "a\r\n"


@pytest.mark.parametrize(
    ("content", "position"), [(b"\xff", 0), (b"ab\nc\xff", 4), (MARK + b"\n\x80", 4)]
)
def test_bytes_that_are_no_text_are_placed_and_not_held(content, position):
    for read in (
        lambda: list(text_streams.read_lines(io.BytesIO(content))),
        lambda: text_streams.read_whole(io.BytesIO(content)),
    ):
        with pytest.raises(InputError, match=rf"byte {position} ") as caught:
            read()
        assert caught.value.__context__ is None


def test_the_input_is_not_written_over(tmp_path):
    path = tmp_path / "letter"
    path.write_text("one")
    with (
        pytest.raises(ConfigError, match="must not be the input"),
        text_streams.open_texts(str(path), output=str(path)),
    ):
        pass
    with text_streams.open_texts(str(path), output=str(tmp_path / "other")) as found:
        assert list(found) == ["one"]


# ---- results out ---------------------------------------------------------------------------------


def test_a_file_appears_when_the_body_has_ended(tmp_path):
    path = tmp_path / "out"
    with text_streams.open_output(str(path)) as sink:
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
        with text_streams.open_output(str(path)) as sink:
            sink.write("new")
            raise raised

    with pytest.raises(raised):
        fail()
    assert os.listdir(tmp_path) == ([] if old is None else ["out"])
    assert old is None or path.read_text() == old


def test_signals_have_their_old_meaning_afterwards(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with text_streams.open_output(str(tmp_path / "out")):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(OutputError), text_streams.open_output(str(tmp_path / "no" / "out")):
        pass
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_thread_that_is_not_the_main_one_can_write(tmp_path):
    def write() -> None:
        with text_streams.open_output(str(tmp_path / "out")) as sink:
            sink.write("a")

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert (tmp_path / "out").read_text() == "a"


def test_standard_output(capsys, monkeypatch):
    for path in (None, "-"):
        with text_streams.open_output(path) as sink:
            sink.write("a")
    assert capsys.readouterr().out == "aa"
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OutputError, match="is closed"), text_streams.open_output(None):
        pass


def test_a_read_only_file_is_left_alone(tmp_path, monkeypatch):
    path = tmp_path / "out"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(OutputError, match="read-only"), text_streams.open_output(str(path)):
        pass
    assert path.read_text() == "old"


def test_json_stays_on_one_line():
    value = {"a": "x\x85y\u2028z\u2029\n é"}
    line = text_streams.format_json_line(value)
    assert len(line.splitlines()) == 1
    assert json.loads(line) == value
    assert "é" in line
    assert text_streams.format_tab_line("a\tb\r\nc", "d") == "a b c\td\n"


def test_two_files_are_written_in_one_folder_at_once(tmp_path):
    """As a session and an output beside it; and what a killed process left is in nobody's way."""
    (tmp_path / f".textveil-{os.getpid()}-{next(text_streams._NUMBERS) + 1}.part").write_text(
        "left"
    )
    with (
        text_streams.open_output(str(tmp_path / "a")) as one,
        text_streams.open_output(str(tmp_path / "b")) as other,
    ):
        one.write("1")
        other.write("2")
    assert (tmp_path / "a").read_text() + (tmp_path / "b").read_text() == "12"
    assert len(os.listdir(tmp_path)) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_a_signal_while_an_object_is_deleted_still_ends_the_process():
    class Last:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGTERM)
            sum(range(1000))  # the handler runs here

    def work():
        with text_streams.convert_signals():
            Last()
            for _ in range(1000):
                time.sleep(0.01)

    with pytest.raises(SystemExit) as ended:
        work()
    assert ended.value.code == 128 + signal.SIGTERM
