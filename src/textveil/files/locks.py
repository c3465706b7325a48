"""Locks of open files, between processes: one that ends in whatever way gives its locks back.

In: the descriptor of an open file. Out: a lock that goes when the file is closed.
Not here: locks of folders (`work`), and between threads.
"""

import os
import time
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl: Any = None  # type: ignore[no-redef]
    import msvcrt

    windows: Any = msvcrt

LOCKED_BYTE = 2**40
"""Place of the byte that Windows locks: far behind the content, because others may not even read a locked byte."""

POLL_SECONDS = 0.01
"""Seconds between two tries for a lock on Windows, which can only wait for ten seconds by itself."""


def lock_file(descriptor: int, *, share: bool = False, wait: bool = True) -> bool:
    """Locks an open file until it is closed or unlocked.

    Args:
        descriptor: the file.
        share: whether others may share the lock who ask for that, too. Windows has no such locks,
            and takes an exclusive one.
        wait: whether to wait for other processes; False to return at once.

    Returns:
        Whether the lock is held: False if somebody else holds it, and `wait` is false.

    Raises:
        OSError: files cannot be locked there.
    """
    if fcntl is not None:
        try:
            way = fcntl.LOCK_SH if share else fcntl.LOCK_EX
            fcntl.flock(descriptor, way if wait else way | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
    while not _change_lock(descriptor, windows.LK_NBLCK):
        if not wait:
            return False
        time.sleep(POLL_SECONDS)
    return True


def unlock_file(descriptor: int) -> None:
    """Gives a lock back before the file is closed."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    else:
        _change_lock(descriptor, windows.LK_UNLCK)


def _change_lock(descriptor: int, way: int) -> bool:
    """Asks Windows, which locks at the place where the file is; returns whether it did."""
    place = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
    try:
        windows.locking(descriptor, way, 1)
    except PermissionError:
        return False
    finally:
        os.lseek(descriptor, place, os.SEEK_SET)
    return True
