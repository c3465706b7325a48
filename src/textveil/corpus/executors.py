"""Executors: this process, or several that it starts, draw items.

In: what is to be done to each item, and the items. Out: each item with what came of it.
Not here: what an item is, such as a part of a file (`part_worker`), what a process needs to draw
one,
and the engines of clusters (`ray`, `spark`).
"""

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection, get_context, parent_process
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from textveil.corpus.release_key import KeyHandle
from textveil.corpus.row_progress import forward_rows, share_counter
from textveil.errors import ConfigError, TextveilError
from textveil.runtime import limit_threads

Item = TypeVar("Item")
Result = TypeVar("Result")

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Environment variables that linear algebra libraries read when they are loaded."""


COUNT_SECONDS = 0.5
"""Seconds between looks at the rows that workers have counted."""

MAX_RETRIES = 3
"""The most consecutive deaths of processes in a corpus run."""


class Executor(Protocol):
    """Runs a function on many items, in this process or elsewhere."""

    def map(
        self, draw: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Yields each item with its result, as they finish.

        Args:
            draw: the function. It is pickled for other processes, and makes what cannot be pickled
                itself, once in each process.
            items: read only a few ahead of the results, so that memory stays bounded.

        Raises:
            TextveilError: processes died again and again.
        """
        ...

    def share_key(self, secret: KeyHandle) -> KeyHandle:
        """Returns a handle that carries a secret to workers.

        In no argument, plan or log is the secret itself.

        Args:
            secret: the release key, where it is kept on this machine, or the address of a store.
        """
        ...


class LocalExecutor:
    """Runs work in this process, or in several of this machine.

    A `with` block ends the processes.

    A process keeps what it has loaded from one `map` to the next. Ctrl-c reaches this process only;
    the others end when it does, however it ends.

    Args:
        workers: how many processes; 1 is this one.
        threads: of each process, for linear algebra; None shares the cores among them.
        advice: what an error says to do where a process died.
        retries: how many times in a row processes are started anew after one died, before anything
            else is done.

    Raises:
        ConfigError: there would be less than one process.
    """

    def __init__(
        self, workers: int = 1, *, threads: int | None = None, advice: str = "", retries: int = 0
    ) -> None:
        if workers < 1:
            raise ConfigError(f"the number of processes must be 1 or more, got {workers}")
        self.workers, self.advice, self.retries = workers, advice, retries
        self._threads = max(1, count_cores() // workers) if threads is None else threads
        self._pool: ProcessPoolExecutor | None = None
        if workers > 1:
            self._counter = get_context("spawn").Value("q", 0)
            self._pipe_reader, self._pipe_writer = get_context("spawn").Pipe(duplex=False)
            self._start()

    def _start(self) -> None:
        context = get_context("spawn")  # a fork would carry torch's threads and locks along
        self._pool = ProcessPoolExecutor(
            self.workers,
            mp_context=context,
            initializer=_start_worker,
            initargs=(self._threads, self._pipe_reader, self._counter),
        )

    def map(
        self, draw: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Yields each item with its result; see `Executor.map`."""
        if self._pool is None:
            for item in items:
                yield item, draw(item)
            return
        waiting: dict[Future[Result], Item] = {}
        unfinished: list[Item] = []
        retries_left, remaining_items = self.retries, iter(items)
        while True:
            try:
                for pair in self._draw_items(draw, unfinished, remaining_items, waiting):
                    # A result shows that the work goes on: only deaths in a row count.
                    retries_left = self.retries
                    yield pair
                return
            except BrokenProcessPool:
                if not retries_left:
                    raise TextveilError(
                        f"A worker process died (out of memory?). {self.advice}".rstrip()
                    ) from None
            retries_left -= 1
            unfinished += waiting.values()
            waiting.clear()
            self._pool.shutdown()
            self._start()

    def _draw_items(
        self,
        draw: Callable[[Item], Result],
        unfinished: list[Item],
        remaining: Iterator[Item],
        waiting: dict[Future[Result], Item],
    ) -> Iterator[tuple[Item, Result]]:
        """Yields drawn items: first the unfinished, then the remaining.

        If a process dies, `unfinished` and `waiting` have the items that were not drawn.
        """
        assert self._pool is not None
        for item in _take_items(unfinished, remaining):
            # Kept while it is submitted: a broken pool raises there, and the item would be lost.
            unfinished.append(item)
            # The pool starts its processes in `submit`.
            with self._prepare_start():
                future = self._pool.submit(draw, item)
            waiting[future] = unfinished.pop()
            # One item waits behind each that is drawn, so that no process is idle between two.
            if len(waiting) >= 2 * self.workers:
                yield from self._yield_done(waiting)
        while waiting:
            yield from self._yield_done(waiting)

    def _yield_done(self, waiting: dict[Future[Result], Item]) -> Iterator[tuple[Item, Result]]:
        """Yields the results that are ready, at least one.

        They are removed from `waiting`. Meanwhile the rows that workers count are passed on.
        """
        done: set[Future[Result]] = set()
        while not done:
            done = wait(waiting, timeout=COUNT_SECONDS, return_when=FIRST_COMPLETED).done
            forward_rows(self._counter)
        for future in done:
            # Before the item is removed: where its process died, it must be drawn again.
            result = future.result()
            yield waiting.pop(future), result

    def share_key(self, secret: KeyHandle) -> KeyHandle:
        """Returns the secret's handle itself.

        Such as the place of its file: all processes are of this machine and user.
        """
        return secret

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is None:
            return
        if kind is not None:
            self._pipe_writer.close()  # what they are at is dropped
        self._pool.shutdown(cancel_futures=True)
        self._pipe_writer.close()

    @contextmanager
    def _prepare_start(self) -> Iterator[None]:
        """Sets up signals and threads while workers start.

        They inherit the number of threads, and no ctrl-c until they ignore it themselves.
        """
        previous = {name: os.environ.get(name) for name in THREAD_VARIABLES}
        masks = hasattr(signal, "pthread_sigmask")  # not on Windows
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else set()
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(self._threads)))
        try:
            yield
        finally:
            for name, value in previous.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
            if masks:
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def count_cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _take_items(unfinished: list[Item], remaining: Iterator[Item]) -> Iterator[Item]:
    """Yields the unfinished items, which it removes, and then the remaining ones."""
    while unfinished:
        yield unfinished.pop()
    yield from remaining


def _start_worker(threads: int, pipe: connection.Connection, counter: Any) -> None:
    """Sets up a worker process.

    It leaves ctrl-c to its parent, and ends when its parent does.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    pipes: list[Any] = [pipe] if parent is None else [pipe, parent.sentinel]
    threading.Thread(target=_exit_with_parent, args=(pipes,), daemon=True).start()
    warnings.simplefilter("ignore")  # the parent has said them
    limit_threads(threads)
    share_counter(counter)


def _exit_with_parent(pipes: list[Any]) -> None:
    connection.wait(pipes)
    # `sys.exit` would end this thread only.
    os._exit(1)
