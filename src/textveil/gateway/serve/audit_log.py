"""The audit log: a JSON line for each request, with counts only.

In: records of requests, the name of a file. Out: lines appended to the file.
Not here: the fields of a record (`request_record`), and sums over requests (`metrics`).

Any number of processes may write to one file: each line is one write at the end of the file, under
a lock, whole or not at all. The file may be moved away at any time (logrotate); the next line then
begins a new file. A line is written when its request is over. If it cannot be written, the line
waits in memory, and no other request is admitted before it is written. Requests that come meanwhile
are refused, and a line `dropped` later says how many. So the log lacks the line of an admitted
request only where a process is killed, or ends before it can write again, or the machine fails:
lines are not forced to the disk. Then a line `start` follows without a line `stop` before it.
"""

import errno
import json
import os
import shutil
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from textveil.errors import ConfigError
from textveil.files.locks import lock_file, unlock_file
from textveil.gateway.errors import RequestError
from textveil.gateway.request.request_record import RequestRecord
from textveil.guarantee import MICRO
from textveil.session import Spend

MIN_FREE_BYTES = 1 << 20
"""Free bytes that the disk must have before a request is sent."""

OPEN_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)

NOT_LOGGED = "the audit log cannot be written, so nothing is sent; its disk may be full"


class AuditLog:
    """Audit log file that only its owner can read.

    Args:
        path: the file, which is created if it does not exist.

    Raises:
        ConfigError: the file cannot be written.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        self._waiting: deque[bytes] = deque()
        self._dropped = 0
        try:
            self._write(_format_line("start", version=version("textveil")))
            return
        except OSError as error:
            reason = error.strerror or type(error).__name__
        raise ConfigError(f"the audit log must be a file that can be written: {reason}")

    def check(self) -> None:
        """Refuses a request that could not be logged; call before sending.

        Raises:
            RequestError: lines cannot be written.
        """
        if not self.flush():
            raise RequestError(503, NOT_LOGGED, code="audit", headers={"Retry-After": "10"})

    def flush(self) -> bool:
        """Writes the waiting lines; true if new lines can be written."""
        with suppress(OSError):
            while self._waiting:
                self._write(self._waiting[0])
                self._waiting.popleft()
            self._open_log()
            disk = shutil.disk_usage(self._path)
            # A file system of 0 bytes is no disk, such as a device.
            if disk.total and disk.free < MIN_FREE_BYTES:
                return False
            if self._dropped:
                self._write(_format_line("dropped", requests=self._dropped))
                self._dropped = 0
            return True
        return False

    def add(self, record: RequestRecord) -> None:
        """Adds the line of a finished request.

        If the line cannot be written, it waits in memory if the request was admitted; the request
        is only counted if it was refused.
        """
        if record.admitted or self.flush():
            self._waiting.append(format_record(record))
            self.flush()
        else:
            self._dropped += 1  # else the queue would grow with each refused request

    def close(self) -> int:
        """Writes the waiting lines and the line `stop`, and closes the file.

        Returns:
            The number of lines that could not be written.
        """
        self.flush()
        self._waiting.append(_format_line("stop"))
        self.flush()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        return len(self._waiting) + self._dropped

    def _write(self, line: bytes) -> None:
        """Writes a line whole, or nothing.

        Raises:
            OSError: it was not written.
        """
        fd = self._open_log()
        lock_file(fd)
        try:
            before = os.fstat(fd).st_size
            if os.write(fd, line) < len(line):  # the disk is full
                # Under the lock no other process has added a line, so only this one is cut off.
                os.ftruncate(fd, before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            unlock_file(fd)

    def _open_log(self) -> int:
        """Returns the log's file descriptor, reopened if the file was moved."""
        path_stat = None
        with suppress(FileNotFoundError):
            path_stat = os.stat(self._path)
        if self._fd >= 0:
            open_stat = os.fstat(self._fd)
            if path_stat is not None and (path_stat.st_dev, path_stat.st_ino) == (
                open_stat.st_dev,
                open_stat.st_ino,
            ):
                return self._fd
            os.close(self._fd)
            self._fd = -1
        self._fd = os.open(self._path, OPEN_FLAGS, 0o600)
        return self._fd


def check_log(path: str) -> None:
    """Checks that the audit log can be written, before the gateway starts.

    Args:
        path: the audit log, which is created if it does not exist.

    Raises:
        ConfigError: the file cannot be written.
    """
    try:
        os.close(os.open(path, OPEN_FLAGS, 0o600))
        return
    except OSError as error:
        reason = error.strerror or type(error).__name__
    raise ConfigError(f"--audit-log must be a file that can be written: {reason}")


def format_record(record: RequestRecord) -> bytes:
    """Formats the log line of a request as JSON."""
    milliseconds = {"gateway": record.gateway_seconds, "upstream": record.seconds["upstream"]}
    return _format_line(
        "request",
        record.began,
        request=record.id,
        key=record.key,
        operation=record.operation,
        model=record.model,
        dry=record.dry,
        protected=dict(sorted(record.protected.items())),
        unknown=dict(sorted(record.unknown.items())),
        drawn=record.drawn,
        spent=[_format_spend(spend) for spend in record.spent],
        status=record.status,
        reason=record.reason,
        field=record.field,
        unresolved=record.unresolved,
        forgotten=record.forgotten,
        milliseconds={name: round(1000 * seconds, 1) for name, seconds in milliseconds.items()},
    )


def _format_line(event: str, at: float | None = None, **fields: Any) -> bytes:
    when = datetime.now(UTC) if at is None else datetime.fromtimestamp(at, UTC)
    time = when.isoformat(timespec="milliseconds")
    common = {"time": time, "event": event, "process": os.getpid()}
    return json.dumps(common | fields).encode() + b"\n"


def _format_spend(spend: Spend) -> dict[str, Any]:
    bound = {"epsilon": spend.epsilon / MICRO, "ldp": spend.ldp / MICRO}
    bound = {"unbounded": True} if spend.infinite else bound
    return {"metric": spend.metric, "table": spend.table, "words": spend.words, **bound}
