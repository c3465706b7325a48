"""Session files: one session on the disk, for its owner only.

In: a session, or the name of its file. Out: the file, whole or as it was before; the session.
Not here: what a session holds (`session`), and how files are written (`files`).

The file holds the originals in clear, and is as private as they are.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from textveil.errors import InputError, OutputError, quote_file
from textveil.files import locks, text_streams
from textveil.session.state import Session

FILE_LABEL = "the session file"
"""Name of the file in messages."""


def save(session: Session, path: str | os.PathLike[str]) -> None:
    """Writes a session to a file that only its owner can read.

    It replaces what was there. The originals are in it in clear. Delete it when no answer is
    expected any more.

    Raises:
        OutputError: it cannot be written; the file is then as it was.
    """
    with text_streams.open_output(os.fspath(path), private=True, option=FILE_LABEL) as sink:
        sink.write(session.to_json() + "\n")


def load(path: str | os.PathLike[str]) -> Session:
    """Reads the session from a file that `save` wrote.

    Raises:
        InputError: the file is missing, damaged, or something else.
    """
    return Session.from_json(read_content(path))


@contextmanager
def open_session(path: str | os.PathLike[str]) -> Iterator[Session]:
    """Yields the session of a file, or a new one; saves it.

    It is saved after a failure too, if it remembers more than before: what is released may have
    gone out.

    Raises:
        InputError: the file is damaged, or no session file.
        OutputError: it cannot be written, or another process wrote it meanwhile, whose changes
            would be lost.
    """
    if os.path.isdir(path) or not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise OutputError(
            f"--session must name a file in an existing folder, but {quote_file(path)} does not"
        )
    old_content = read_content(path) if os.path.lexists(path) else None
    session = Session() if old_content is None else Session.from_json(old_content)
    old_json = session.to_json()
    with text_streams.convert_signals():
        try:
            yield session
        except BaseException:
            if session.to_json() != old_json:
                _replace_file(path, old_content, session)
            raise
        _replace_file(path, old_content, session)


def _replace_file(
    path: str | os.PathLike[str], old_content: bytes | None, session: Session
) -> None:
    if old_content != (read_content(path) if os.path.lexists(path) else None):
        raise OutputError(
            "another process changed the session file meanwhile; use it from one process at a time"
        )
    save(session, path)


@contextmanager
def lock_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Holds an exclusive lock against other processes, by a file beside it.

    The lock file stays: to remove it would let two processes hold different files.
    """
    # By its real path, so that links to one file share one lock.
    folder, name = os.path.split(os.path.realpath(path))
    with text_streams.convert_write_errors(FILE_LABEL):
        stream = open(os.path.join(folder, f".{name}.lock"), "ab")  # noqa: SIM115 - closed below
    with stream:
        locks.lock_file(stream.fileno())
        yield


def read_content(path: str | os.PathLike[str]) -> bytes:
    """Reads the bytes of a session file; raises `InputError` where it cannot."""
    try:
        if os.path.exists(path) and not os.path.isfile(
            path
        ):  # reading a device or pipe may never end
            raise InputError(
                f"the session file cannot be read: {quote_file(path)} is not a regular file"
            )
        with open(path, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise InputError(
            f"the session file cannot be read: {quote_file(path)}: {error.strerror}"
        ) from None
