"""Work folders: locked by one process, for their owner only.

In: the folder's path. Out: a lock that goes when the process ends, however it ends; a file that is
overwritten.
Not here: what is in the folder, and what a run does with it (`corpus`).
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from textveil.errors import ConfigError, quote_file
from textveil.files import locks, text_streams

BUSY_MESSAGE = "another process is working on it; wait until that has ended"


@contextmanager
def lock_folder(path: Path) -> Iterator[None]:
    """Locks a work folder for this process, and makes it if needed.

    Args:
        path: where it is.

    Raises:
        ConfigError: another process holds it, or it is not a folder of this user's.
    """
    with text_streams.convert_write_errors():
        text_streams.make_folder(path.parent)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
            text_streams.sync_folder(str(path))
    if not hasattr(os, "O_DIRECTORY"):
        with _lock_beside(path):
            yield
        return
    descriptor = _open(path)
    try:
        # The folder may be deleted and made anew between opening and locking it.
        if not (locks.lock_file(descriptor, wait=False) and _is_same_folder(descriptor, path)):
            raise ConfigError(BUSY_MESSAGE)
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid():
            raise ConfigError(
                f"the work folder {quote_file(path)} belongs to another user; use another folder"
            )
        if stat.S_IMODE(status.st_mode) != 0o700:
            with text_streams.convert_write_errors():
                os.fchmod(descriptor, 0o700)
        yield
    finally:
        os.close(descriptor)


def wipe(path: Path) -> None:
    """Overwrites a file with zeros, and deletes it.

    Copies that the disk or its backups kept are out of reach.
    """
    with suppress(OSError):  # it is deleted in any case
        descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0))
        try:
            os.write(descriptor, bytes(os.fstat(descriptor).st_size))
            # Before the name goes, or the zeros might never be written.
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    with text_streams.convert_write_errors(), suppress(FileNotFoundError):
        os.unlink(path)
        text_streams.sync_folder(str(path))


def _open(path: Path) -> int:
    try:
        # A symbolic link is refused: it may lead into another folder.
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:  # it was there a moment ago
        raise ConfigError(BUSY_MESSAGE) from None
    except OSError:
        raise ConfigError(
            f"{path.name} in the output folder is not a work folder of yours; delete it"
        ) from None


@contextmanager
def _lock_beside(path: Path) -> Iterator[None]:
    """Locks a folder by a file beside the one that it is in, where folders cannot be opened (Windows)."""
    folder = path.absolute().parent
    lock = folder.parent / f".{folder.name}.lock"
    with text_streams.convert_write_errors():
        stream = open(lock, "ab")  # noqa: SIM115 - closed below
    with stream:
        if not locks.lock_file(stream.fileno(), wait=False):
            raise ConfigError(BUSY_MESSAGE)
        yield
    with suppress(OSError):  # another process has opened it, and will remove it
        lock.unlink()


def _is_same_folder(descriptor: int, path: Path) -> bool:
    """Says whether the path still means this folder."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False
