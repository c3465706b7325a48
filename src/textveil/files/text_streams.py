"""Texts in, results out: standard streams and files, lines and bytes.

In: what a user gave as input and output. Out: decoded texts; a place to write that appears only
when it is whole.
Not here: what is done to the texts (`pipeline`), the commands (`cli`), and errors as a user sees
them (`shell`).
"""

import json
import os
import re
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import count
from pathlib import Path
from types import FrameType
from typing import IO, BinaryIO

from textveil.errors import (
    ConfigError,
    InputError,
    OutputError,
    TextveilError,
    quote_file,
    quote_short,
)

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""The byte order mark with which some programs begin a file."""

PIECE_BYTES = 1 << 16
"""The most bytes that are read at once."""

OUTPUT_LABEL = "the output"
"""The name of the output in messages."""

_PATH_LIKE = re.compile(
    r"(\.{0,2}|~[^/\s]*)/\S*|\S*[^\s/.]\.(txt|text|jsonl?|csv|tsv|md|rst|html?|xml|ya?ml|log|parquet|gz|zip|pdf|docx?|tex|py)",
    re.IGNORECASE,
)

# ---- texts in ------------------------------------------------------------------------------------


@contextmanager
def open_texts(
    argument: str | None, *, whole: bool = False, output: str | None = None
) -> Iterator["InputTexts"]:
    """Opens the texts behind an argument.

    Each line of a file or of standard input, or the argument itself as one text.

    What was given is named in an error where it looks like a path; else it is the text itself.

    Args:
        argument: a text or an existing file; None or "-" is standard input.
        whole: take the whole input as one text; an empty one is none.
        output: where the results go, which must not be the input.

    Raises:
        InputError: there is no input, or it cannot be read, or is not UTF-8 (then while the texts
            are read).
        ConfigError: the output is the input file.
    """
    if argument is not None and is_text(argument):
        # Python hides bytes of an argument that are no UTF-8 in surrogates; they are refused here.
        yield InputTexts([decode(os.fsencode(argument))])
        return
    with open_input(argument) as stream:
        _refuse_same(stream, output)
        result = InputTexts(())
        result.texts = (
            filter(None, [read_whole(stream, result)]) if whole else read_lines(stream, result)
        )
        yield result


class InputTexts:
    """The texts of one input, which are read once.

    Attributes:
        texts: as they are read.
        mark: the byte order mark at the start of the input, "" without one; known when the first
            text was read.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = texts
        self.mark = ""

    def __iter__(self) -> Iterator[str]:
        """Yields the texts, without the mark."""
        return iter(self.texts)


def is_text(argument: str | None) -> bool:
    """Says whether an argument is a text.

    And not the name of a file, of a folder, or of one that is missing.
    """
    if argument is None or argument == "-":
        return False
    looks_like_path = _PATH_LIKE.fullmatch(argument) is not None and "://" not in argument
    looks_like_path |= (
        re.fullmatch(r"[^\s@]+\.\w{1,8}", argument) is not None and suggest_file(argument) != ""
    )
    return not looks_like_path and not os.path.exists(argument)


def require_input(argument: str | None) -> None:
    """Refuses to wait for input that nobody sends.

    That is where no text is given, and standard input is a terminal or closed: `InputError`.
    """
    waits = argument is None or argument == "-"
    if waits and (sys.stdin is None or (argument is None and sys.stdin.isatty())):
        raise InputError(
            "a text is needed: give one in quotes, a file, or - to read standard input"
        )


@contextmanager
def open_input(argument: str | None, *, may_be_text: bool = True) -> Iterator[BinaryIO]:
    """Opens a file, or standard input for None and "-".

    As bytes.

    Args:
        argument: the name of the file.
        may_be_text: whether a text could have been given in its place.

    Raises:
        InputError: standard input is a terminal or closed, or no file of that name can be read.
    """
    if argument is None or argument == "-":
        require_input(argument)
        yield sys.stdin.buffer
        return
    if os.path.isdir(argument):
        raise InputError(f"the input {quote_file(argument)} is a folder; give a text or a file")
    if not os.path.exists(argument):
        advice = (
            ": the argument looks like a path; if it is the text itself, pass it on standard input"
            if may_be_text
            else ""
        )
        raise InputError(f"no such file, {quote_short(argument)}{advice}{suggest_file(argument)}")
    try:
        stream = open(argument, "rb")  # noqa: SIM115 - closed below; only opening is under this try
    except OSError as error:
        raise InputError(
            f"the input file {quote_file(argument)} cannot be read: {error.strerror}"
        ) from None
    with stream:
        yield stream


def suggest_file(path: str) -> str:
    """Suggests the file with the name nearest to a missing one.

    Nothing where none in its folder is near.
    """
    folder, name = os.path.split(path)
    with suppress(OSError, ValueError):  # ValueError: a null character
        if near := get_close_matches(name, os.listdir(folder or "."), n=1, cutoff=0.75):
            return f"; did you mean {quote_file(os.path.join(folder, near[0]))}?"
    return ""


def read_lines(stream: BinaryIO, target: InputTexts | None = None) -> Iterator[str]:
    r"""Yields one text per line, without its line end.

    That is \n or \r\n; memory holds one line. `target` learns the mark.
    """
    offset = 0
    while line := _read_stream(stream.readline):
        body, start = _strip_mark(line, offset, target)
        yield decode(body.removesuffix(b"\n").removesuffix(b"\r"), start)
        offset += len(line)


def read_whole(stream: BinaryIO, target: InputTexts | None = None) -> str:
    """Reads all of a stream as one text.

    `target` learns the mark.
    """
    return decode(*_strip_mark(_read_stream(stream.read), 0, target))


def read_pieces(stream: BinaryIO) -> Iterator[bytes]:
    """Yields the bytes of a stream as they come."""
    read = getattr(stream, "read1", stream.read)  # waits for the first bytes, and not for all
    while piece := _read_stream(lambda: read(PIECE_BYTES)):
        yield piece


def decode(content: bytes, offset: int = 0) -> str:
    """Decodes UTF-8 bytes.

    Args:
        content: the bytes.
        offset: where in the input they stand, for the error.

    Raises:
        InputError: they are not UTF-8; it says at which byte of the input.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        position = offset + error.start
    # Raised out here, because the other error holds the bytes.
    raise InputError(
        f"the input must be UTF-8; byte {position} (counted from 0) is not; convert it first, "
        "such as by iconv -f LATIN1 -t UTF-8 FILE > NEW"
    )


def _read_stream(read: Callable[[], bytes]) -> bytes:
    try:
        return read()
    except OSError as error:
        raise InputError(f"the input cannot be read: {error.strerror}") from None


def _strip_mark(content: bytes, offset: int, target: InputTexts | None) -> tuple[bytes, int]:
    """Strips a byte order mark at the start of the input.

    Returns also where the content then starts.
    """
    if offset or not content.startswith(BYTE_ORDER_MARK):
        return content, offset
    if target is not None:
        target.mark = BYTE_ORDER_MARK.decode()
    return content[len(BYTE_ORDER_MARK) :], len(BYTE_ORDER_MARK)


def _refuse_same(stream: BinaryIO, output: str | None) -> None:
    """Refuses to overwrite the input."""
    is_same = False
    if output is not None and os.path.isfile(output):
        with suppress(OSError, ValueError):  # a stream without a file behind it is no file
            # By the files themselves, so that links and other spellings of the path count, too.
            is_same = os.path.samestat(os.fstat(stream.fileno()), os.stat(output))
    if is_same:
        raise ConfigError(f"--output must not be the input file, {quote_file(output)}")


# ---- results out ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Output:
    """The destination of results.

    Attributes:
        stream: what is written to.
        standard: whether it is standard output, which is flushed after every piece, so that no text
            waits there.
        label: what messages call it.
    """

    stream: IO[str]
    standard: bool = False
    label: str = OUTPUT_LABEL

    @property
    def terminal(self) -> bool:
        """A flag: a person reads the output as it comes."""
        return self.standard and self.stream.isatty()

    def write(self, text: str) -> None:
        """Writes a piece of the output.

        `OutputError` where that fails.
        """
        with convert_write_errors(self.label):
            self.stream.write(text)
            if self.standard:
                self.stream.flush()


@contextmanager
def open_output(
    path: str | None, *, private: bool = False, option: str = "--output"
) -> Iterator[Output]:
    """Opens standard output, or a file that appears when complete.

    The file appears when the body has ended well, and only then.

    A file is written under another name in the same folder, brought to the disk and renamed, so
    that at every moment the old file or the whole new one is there; this includes the end by a
    signal. A device is written as it is.

    Args:
        path: a file; None or "-" is standard output.
        private: whether something private is written: the file is then for its owner only.
        option: what messages call the file.

    Raises:
        OutputError: it cannot be written. The file is then as it was.
    """
    if path is None or path == "-":
        if sys.stdout is None:
            raise OutputError("standard output is closed; open it, or use --output")
        yield Output(stream=sys.stdout, standard=True)
        return
    # A symbolic link stays a link: the file behind it is replaced.
    given_path, path = path, os.path.realpath(path)
    if os.path.isdir(path):
        raise OutputError(f"{option} must be a file, but {quote_file(given_path)} is a folder")
    if not os.path.isdir(os.path.dirname(path)):
        raise OutputError(
            f"{option} must name a file in an existing folder; create the folder of "
            f"{quote_file(given_path)} first"
        )
    device = os.path.exists(path) and not os.path.isfile(path)
    label = OUTPUT_LABEL if option == "--output" else option
    with (
        _open_device(path, label)
        if device
        else _open_replacement(path, private, option, label) as stream
    ):
        yield Output(stream=stream, label=label)


@contextmanager
def open_append(path: str) -> Iterator[Output]:
    """Opens a file for appending, for its owner only.

    Each piece is written at once, and stays whatever follows.

    Raises:
        OutputError: it cannot be written.
    """
    with convert_write_errors():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(descriptor, "w", encoding="utf-8", newline="\n", buffering=1) as stream:
            # The mode above is only that of a new file; a device keeps its own.
            if os.name == "posix" and stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.fchmod(descriptor, 0o600)
            yield Output(stream=stream)


@contextmanager
def convert_write_errors(label: str = OUTPUT_LABEL) -> Iterator[None]:
    """Turns a failed write into one line.

    A closed pipe stays what it is: nobody is left to read a message.

    Args:
        label: what the line calls the file.
    """
    try:
        yield
    except (BrokenPipeError, TextveilError):
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(f"{label} cannot be written: {reason}") from None


def format_json_line(value: object) -> str:
    """Returns JSON on one line.

    Also for readers that take U+0085, U+2028 and U+2029 for line ends.
    """
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return re.sub("[\x85\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", line) + "\n"


def format_tab_line(*texts: str) -> str:
    """Joins texts on one line with tabs between.

    Tabs and line ends inside become spaces.
    """
    return "\t".join(re.sub(r"[\t\r\n]+", " ", text) for text in texts) + "\n"


@contextmanager
def _open_device(path: str, label: str) -> Iterator[IO[str]]:
    with convert_write_errors(label):
        stream = open(path, "w", encoding="utf-8", newline="\n")  # noqa: SIM115 - closed below
    try:
        yield stream
        with convert_write_errors(label):
            stream.flush()
    finally:
        with suppress(OSError):  # closing flushes, and a full disk then complains a second time
            stream.close()


@contextmanager
def _open_replacement(path: str, private: bool, option: str, label: str) -> Iterator[IO[str]]:
    """Opens a temporary file that replaces `path` when complete.

    When the body has ended well.
    """
    is_present = os.path.exists(path)
    # A rename would replace a read-only file, too.
    if is_present and not os.access(path, os.W_OK):
        raise OutputError(f"{option} must be a writable file; {quote_file(path)} is read-only")
    with convert_signals():
        with convert_write_errors(label):
            # Private from the beginning, or others could open it before its mode is changed.
            name, descriptor = _create_file(os.path.dirname(path), 0o600 if private else 0o666)
            stream = open(descriptor, "w", encoding="utf-8", newline="\n")  # noqa: SIM115 - closed below
        try:
            if is_present:
                with convert_write_errors(label):
                    os.chmod(
                        name, stat.S_IMODE(os.stat(path).st_mode) & (0o600 if private else 0o7777)
                    )
            yield stream
            with convert_write_errors(label):
                stream.flush()
                os.fsync(stream.fileno())
                stream.close()
                replace_file(name, path)
            sync_folder(path)
        # Also SystemExit, which a signal becomes (`convert_signals`).
        except BaseException:
            with suppress(OSError):  # closing flushes, and a full disk then complains a second time
                stream.close()
            with suppress(OSError):
                os.unlink(name)
            raise


_NUMBERS = count()

REPLACE_SECONDS = 5.0
"""Seconds for which Windows is asked again to rename a file that somebody else has open."""


def _create_file(folder: str, mode: int) -> tuple[str, int]:
    """Creates a file under a new name in a folder.

    Returns its name and descriptor.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    while True:
        name = os.path.join(folder, f".textveil-{os.getpid()}-{next(_NUMBERS)}.part")
        with suppress(FileExistsError):  # left by a process of the same number that was killed
            return name, os.open(name, flags, mode)


def replace_file(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Renames a file, in place of one of that name, if there is one.

    Windows refuses that while another process has either open, such as a virus scanner; it then
    waits up to `REPLACE_SECONDS`.

    Raises:
        OSError: it cannot be renamed; both files are as they were.
    """
    until = time.monotonic() + REPLACE_SECONDS
    while True:
        try:
            os.replace(source, target)
            return
        except PermissionError:
            if os.name != "nt" or time.monotonic() > until:
                raise
        time.sleep(0.01)


def sync_folder(path: str) -> None:
    """Brings a folder's entries to the disk.

    Such as the new name of a file; where folders can be opened.
    """
    with suppress(OSError):
        descriptor = os.open(os.path.dirname(path) or os.curdir, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(path: Path) -> None:
    """Makes a folder and its missing parents, on the disk, too."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync_folder(str(path))


SIGNAL_DELAY_SECONDS = 0.01
"""The delay in seconds before a signal is sent again.

For one that came while an object was deleted.
"""


@contextmanager
def convert_signals() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP clean up before the process ends.

    Only the main thread can set that.
    """
    main = threading.current_thread() is threading.main_thread()
    numbers = [
        getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if main and hasattr(signal, name)
    ]
    previous = {number: signal.signal(number, _raise_exit) for number in numbers}
    try:
        yield
    finally:
        for number, action in previous.items():
            signal.signal(number, action)


def _raise_exit(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        # Python ignores what is raised there, so the signal comes again
        if frame.f_code.co_name == "__del__":
            threading.Timer(SIGNAL_DELAY_SECONDS, os.kill, (os.getpid(), number)).start()
            return
        frame = frame.f_back
    # The status by which shells report a process that a signal ended.
    raise SystemExit(128 + number)
