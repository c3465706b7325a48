"""Makes this system look like Windows to textveil: Python imports this file where its folder is in PYTHONPATH.

In: nothing. Out: modules of textveil find no `fcntl`, no `os.fork` and no SIGHUP; `msvcrt` locks files; a file that is
open cannot be renamed or deleted, and a folder cannot be opened. Other packages see the system as it is.
Not here: what only Windows itself shows, such as paths with drives, code pages, and rights of files.
"""

import builtins
import errno
import fcntl
import os
import signal
import struct
import sys
from types import ModuleType
from typing import Any

PACKAGES = {"textveil", "textveil_bench"}
MISSING = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
HIDDEN = {
    "os": """
        O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK PRIO_PROCESS WNOHANG chown fchmod fchown fork fstatvfs getegid
        geteuid getgid getloadavg getpgid getpriority getuid killpg mkfifo nice pread pwrite register_at_fork
        sched_getaffinity sched_setaffinity setpgid setpriority setsid statvfs sync sysconf uname
    """,
    "signal": "SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGUSR1 SIGUSR2 pthread_sigmask setitimer",
}
OFFSET_LOCK = "hhlli4x"
"""`struct flock` of Linux: type, whence, start, length, process."""


class Shown(ModuleType):
    """A module without some names, and with others in place of its own."""

    def __init__(self, module: ModuleType, **others: Any) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(others)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name in HIDDEN.get(self.__name__, "").split():
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self._module, name)


def refuse_open_files(*paths: Any) -> None:
    """Raises PermissionError, as Windows does, if this process has one of these files open."""
    names = {os.path.realpath(os.fsdecode(path)) for path in paths}
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            held = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:  # closed by now
            continue
        if held in names:
            raise PermissionError(errno.EACCES, "another process has the file open")


def replace(source: Any, target: Any) -> None:
    """Renames a file that nobody has open."""
    refuse_open_files(source, target)
    os.replace(source, target)


def unlink(path: Any) -> None:
    """Deletes a file that nobody has open."""
    refuse_open_files(path)
    os.unlink(path)


def open_file(path: Any, flags: int, mode: int = 0o777) -> int:
    """Opens a file, and no folder."""
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "a folder cannot be opened")
    return os.open(path, flags, mode)


def locking(descriptor: int, way: int, count: int) -> None:
    """Locks bytes from where the file is, for whoever opened it."""
    start = os.lseek(descriptor, 0, os.SEEK_CUR)
    # Linux locks what is open for reading only for others who read, Windows for nobody else.
    writes = fcntl.fcntl(descriptor, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR)
    kind = fcntl.F_UNLCK if way == 0 else fcntl.F_WRLCK if writes else fcntl.F_RDLCK
    asked = struct.pack(OFFSET_LOCK, kind, os.SEEK_SET, start, count, 0)
    try:
        fcntl.fcntl(descriptor, 37, asked)  # F_OFD_SETLK
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "the bytes are locked") from None


MODULES = {
    "os": Shown(
        os, name="nt", O_BINARY=0, open=open_file, replace=replace, rename=replace, unlink=unlink
    ),
    "signal": Shown(signal),
    "sys": Shown(sys, platform="win32"),
    "msvcrt": Shown(ModuleType("msvcrt"), locking=locking, LK_UNLCK=0, LK_NBLCK=2),
}
original_import = builtins.__import__


def import_shown(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> Any:
    """Imports a module, as it would be on Windows if a module of textveil asks."""
    if level == 0 and str((globals or {}).get("__name__")).partition(".")[0] in PACKAGES:
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name in MODULES:
            return MODULES[name]
    return original_import(name, globals, locals, fromlist, level)


builtins.__import__ = import_shown
