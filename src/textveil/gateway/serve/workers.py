"""Workers: processes that answer on one socket, and a supervisor.

In: a socket that is bound. Out: a return in each worker, which then loads and serves as a single
process does.
Not here: the gateway (`gateway`), and the shared conversations and spending (`session.sql`).

Workers are forked before anything is loaded, so the supervisor stays small. The second worker is
started when the first one serves, so that a fault in the options is reported once. A worker that
dies is replaced. Signals go to all; if the supervisor is killed, the workers stop, too.
"""

import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from glob import escape, glob
from threading import Thread
from types import FrameType
from typing import Any

from textveil.errors import ConfigError
from textveil.gateway.serve.metrics import MULTIPROC_VARIABLE
from textveil.runtime import count_threads, limit_threads

TICK = 0.1
"""Seconds between two checks of the workers."""

FIRST_PAUSE, MAX_PAUSE = 1.0, 60.0
"""Seconds before a worker that never served is replaced.

The pause doubles after each, up to the longest.
"""

KILL_SECONDS = 10.0
"""Seconds after the grace until remaining workers are killed."""


class WorkerSupervisor:
    """Supervisor of the processes of one gateway.

    Args:
        count: the number of workers.
        listening: the socket.
        grace: seconds that open requests have to end when the gateway stops.
        report: is called with a line about each event.
        on_first_ready: is called when the first one serves.
        reload: whether workers take SIGHUP. They ignore it until they set a handler, and must read
            only after that the files that SIGHUP reloads.

    Raises:
        ConfigError: this system has no fork.
    """

    def __init__(
        self,
        count: int,
        listening: socket.socket,
        *,
        grace: float,
        report: Callable[[str], None],
        on_first_ready: Callable[[], None],
        reload: bool = False,
    ) -> None:
        if not hasattr(os, "fork"):
            raise ConfigError("several workers need a system with fork, such as Linux")
        self._count, self._listening, self._grace = count, listening, grace
        self._report, self._on_first_ready = report, on_first_ready
        self._signals = [signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if reload else [])]
        self._before: dict[signal.Signals, Any] = {}
        self._threads = max(1, count_threads() // count)
        self._alive: dict[int, int] = {}
        self._serving: set[int] = set()
        self._served = False
        self._pause, self._next = FIRST_PAUSE, 0.0
        self._code: int | None = None
        self._until = 0.0

    def run(self) -> Callable[[], None] | int:
        """Starts workers and looks after them until they end.

        Returns:
            In each worker the function that it must call when it serves; in the supervisor, at the
            end, its exit status.
        """
        supervisor, metrics_folder = os.getpid(), None
        if MULTIPROC_VARIABLE not in os.environ:
            os.environ[MULTIPROC_VARIABLE] = metrics_folder = tempfile.mkdtemp(
                prefix="textveil-metrics-"
            )
        self._before = {
            number: signal.signal(number, self._handle_signal) for number in self._signals
        }
        # Nobody writes into it: a read ends when the supervisor, the only writer, is gone.
        life = os.pipe()
        try:
            while self._code is None or self._alive:
                if self._is_worker_missing() and (on_ready := self._fork(life)) is not None:
                    return on_ready
                time.sleep(TICK)
                self._check_workers()
            return self._code
        finally:
            if os.getpid() == supervisor:
                self._give_back(life, metrics_folder)

    def _give_back(self, life: tuple[int, int], shared: str | None) -> None:
        """Restores signal handlers, and closes the supervisor's resources."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        for end in life:
            os.close(end)
        if shared is not None:
            del os.environ[MULTIPROC_VARIABLE]
            shutil.rmtree(shared, ignore_errors=True)

    def _is_worker_missing(self) -> bool:
        """True if it is time to start another worker.

        The first is started at once, the others after one has served.
        """
        missing = len(self._alive) < (self._count if self._served else 1)
        return self._code is None and missing and time.monotonic() >= self._next

    def _fork(self, life: tuple[int, int]) -> Callable[[], None] | None:
        """Forks a worker; returns there the function to call when serving."""
        reader, writer = os.pipe()
        # Signals are blocked until each process has its handlers.
        signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        if pid := os.fork():
            os.close(writer)
            os.set_blocking(reader, False)
            self._alive[pid] = reader
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._signals)
            return None
        # The worker reads its policy later, so SIGHUP means nothing before.
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if number == signal.SIGHUP else handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self._signals)
        # A copy of life[1] that stayed open would hide the supervisor's end.
        for descriptor in (reader, life[1], *self._alive.values()):
            os.close(descriptor)
        with suppress(OSError):
            os.setpgid(0, 0)  # else Ctrl-C in a terminal would interrupt it, too
        limit_threads(self._threads)
        Thread(
            target=_stop_with_supervisor, args=(life[0],), name="textveil-life", daemon=True
        ).start()

        def report_ready() -> None:
            os.write(writer, b".")
            os.close(writer)

        return report_ready

    def _check_workers(self) -> None:
        """Checks which workers serve and which have ended."""
        for pid, reader in list(self._alive.items()):
            with suppress(BlockingIOError):
                if pid not in self._serving and os.read(reader, 1):
                    self._serving.add(pid)
                    if not self._served:
                        self._on_first_ready()
                    self._served, self._pause = True, FIRST_PAUSE
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._note_end(pid, os.waitstatus_to_exitcode(status))
        if self._code is not None and self._alive and time.monotonic() > self._until:
            self._until += 1
            for pid in self._alive:
                os.kill(pid, signal.SIGKILL)

    def _note_end(self, pid: int, code: int) -> None:
        os.close(self._alive.pop(pid))
        for file in glob(
            os.path.join(escape(os.environ[MULTIPROC_VARIABLE]), f"gauge_live*_{pid}.db")
        ):
            os.unlink(file)  # counters of a dead worker stay, its gauges go
        if self._code is not None:
            return
        how = f"ended with status {code}"
        how = how if code >= 0 else f"was killed ({signal.Signals(-code).name})"
        if not self._served:
            if code <= 0:  # with a positive status it has printed the reason
                self._report(f"the first worker {how} before it served; the gateway ends")
            self._stop(code if code > 0 else 1)
            return
        self._report(f"a worker {how}; another one takes its place")
        if pid in self._serving:
            self._serving.discard(pid)
        else:
            self._next = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, MAX_PAUSE)

    def _handle_signal(self, number: int, _: FrameType | None) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self._stop(0 if number == signal.SIGTERM else 128 + number)
        else:
            self._send_signal(signal.Signals(number))

    def _stop(self, code: int) -> None:
        """Tells all workers to stop; the second time, at once."""
        if self._code is None:
            self._code, self._until = code, time.monotonic() + self._grace + KILL_SECONDS
            self._listening.close()  # else late clients would wait for an answer
        self._send_signal(signal.SIGTERM)

    def _send_signal(self, number: signal.Signals) -> None:
        for pid in list(self._alive):
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _stop_with_supervisor(life: int) -> None:
    """Stops this process when the supervisor's pipe closes."""
    os.read(life, 1)
    os.kill(os.getpid(), signal.SIGTERM)
