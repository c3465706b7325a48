"""Lanes: thread pools with a bounded queue, one of them for long work.

In: work. Out: its result, or a refusal where the queue is full.
Not here: the work (`api_routes`), and clients that left (`process`).

Work that nobody waits for any more is not begun.
"""

import asyncio
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from textveil.gateway.errors import RequestError

if TYPE_CHECKING:
    from prometheus_client import Gauge

T = TypeVar("T")
P = ParamSpec("P")

MAX_WAIT = 60
"""Maximal number of seconds in a Retry-After header."""

FULL_MESSAGE = "too many requests are waiting; nothing was sent. Try again later"


def build_busy_error(wait: int = 1) -> RequestError:
    """Returns the error for a client where too many requests wait.

    Args:
        wait: seconds after which the client may ask again.
    """
    return RequestError(503, FULL_MESSAGE, code="busy", headers={"Retry-After": str(wait)})


class ThreadPool:
    """Thread pool with a queue, for one event loop.

    Args:
        name: the name of the lane in metrics.
        threads: the number of threads.
        max_waiting: the maximal number of waiting requests; None for any number.
        waiting: metric that counts the waiting requests.
        nice: niceness that is added to the threads (Linux only).
    """

    def __init__(
        self, name: str, threads: int, max_waiting: int | None, waiting: "Gauge", nice: int = 0
    ) -> None:
        self._pool = ThreadPoolExecutor(threads, f"textveil-{name}", _lower_priority, (nice,))
        self._free, self._threads, self._max_waiting = (
            asyncio.Semaphore(threads),
            threads,
            max_waiting,
        )
        self._queued, self._mean_seconds, self._gauge = 0, 0.0, waiting.labels(name)

    async def run(self, work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Runs work in a thread and returns its result.

        It ends only when the work has ended, even if nobody waits for the result any more.

        Raises:
            RequestError: too many are waiting.
        """
        if (
            self._max_waiting is not None
            and self._free.locked()
            and self._queued >= self._max_waiting
        ):
            wait = min(
                max(math.ceil(self._mean_seconds * (self._queued + 1) / self._threads), 1), MAX_WAIT
            )
            raise build_busy_error(wait)
        self._queued += 1
        with self._gauge.track_inprogress():
            try:
                await self._free.acquire()
            finally:
                self._queued -= 1
        start = time.monotonic()
        future = asyncio.get_running_loop().run_in_executor(
            self._pool, lambda: work(*arguments, **options)
        )
        future.add_done_callback(lambda done: self._release_thread(done, time.monotonic() - start))
        try:
            # A thread cannot be stopped, and is not free before it has ended.
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait({future})  # so that the record has the spending of the work
            raise

    def _release_thread(self, done: "asyncio.Future[Any]", seconds: float) -> None:
        if not done.cancelled():
            done.exception()  # else asyncio logs it, and it may hold text
        self._mean_seconds = (
            seconds if not self._mean_seconds else 0.9 * self._mean_seconds + 0.1 * seconds
        )
        self._free.release()

    def close(self) -> None:
        """Shuts the thread pool down without waiting."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _lower_priority(nice: int) -> None:
    if nice and sys.platform == "linux":  # only Linux has a priority for each thread
        thread = threading.get_native_id()
        # The system caps it at the lowest priority.
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + nice)
