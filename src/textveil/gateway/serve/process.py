"""A process that serves a gateway: models, metrics, log and readiness.

In: a `Gateway`. Out: `ServerProcess`, and the answers to /ready and /metrics.
Not here: requests (`api_routes`), sockets and signals (`server`).
"""

import asyncio
import ipaddress
import logging
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Coroutine, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from textveil.errors import TextveilError
from textveil.gateway.errors import RequestError
from textveil.gateway.gateway import Gateway
from textveil.gateway.request.request_record import RequestRecord
from textveil.gateway.serve.conversation_lock import ConversationLocks
from textveil.gateway.serve.thread_pools import ThreadPool
from textveil.gateway.serve.tracing import Tracer
from textveil.session import MemoryStore

if TYPE_CHECKING:
    import httpx2
    from starlette.requests import Request
    from starlette.responses import Response

T = TypeVar("T")

READY = "ready"

STOPPING_MESSAGE = "the gateway is stopping; send the request again"

FINAL_SECONDS = 2.0
"""Seconds for the final errors of open requests after the grace."""

MEMORY_THREADS, DATABASE_THREADS = 2, 4
"""Numbers of threads for requests: without and with a database.

Two keep Python and the networks busy; more are needed where threads also wait for a database.
"""

LONG_TEXT_NICENESS = 10
"""Niceness of the threads for long texts."""

MAX_RECENT = 50
"""Number of recent requests whose records are kept."""

PROBE_SECONDS = 5.0
"""Seconds between probes of the upstream, and timeout of a probe."""


class ServerProcess:
    """State of a process that serves.

    Args:
        gateway: the gateway that it serves.
        client: asks the upstream.

    Attributes:
        metrics: metrics of this process, or of all workers together.
        audit: the audit log; None without one.
        short_pool: threads for requests.
        long_pool: threads for requests with much new text.
        answer_pool: threads for answers; none is refused, since the upstream has given them
            already.
        conversation_locks: locks of named conversations.
        recent: records of the last requests, the newest first.
        loading: the task that loads the models; it ends when they are loaded, or cannot be.
    """

    loading: "asyncio.Task[None]"

    def __init__(self, gateway: Gateway, client: "httpx2.AsyncClient") -> None:
        from textveil.gateway.serve.metrics import Metrics

        self._gateway, self._client = gateway, client
        self.metrics, self.audit, self._tracer = Metrics(), None, Tracer()
        self.recent: deque[RequestRecord] = deque(maxlen=MAX_RECENT)
        if gateway.running.audit_log:
            from textveil.gateway.serve.audit_log import AuditLog

            self.audit = AuditLog(gateway.running.audit_log)
        threads = MEMORY_THREADS if isinstance(gateway.store, MemoryStore) else DATABASE_THREADS
        self.short_pool = ThreadPool("short", threads, gateway.running.queue, self.metrics.waiting)
        self.long_pool = ThreadPool(
            "long", 1, gateway.running.queue, self.metrics.waiting, nice=LONG_TEXT_NICENESS
        )
        self.answer_pool = ThreadPool("answers", threads, None, self.metrics.waiting)
        self.conversation_locks = ConversationLocks(gateway.running.queue)
        self._open_requests, self._end_time = 0, math.inf
        self._timeouts: set[asyncio.Timeout] = set()
        self._model_state = "loading"
        self._upstream_state, self._upstream_lock = (-PROBE_SECONDS, ""), asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def start(
        cls, gateway: Gateway, client: "httpx2.AsyncClient"
    ) -> "AsyncIterator[ServerProcess]":
        """Creates a process and starts loading its models.

        Its log is closed at the end.
        """
        process = cls(gateway, client)
        process.loading = asyncio.create_task(process._load())
        try:
            yield process
        finally:
            process.loading.cancel()
            for pool in (process.short_pool, process.long_pool, process.answer_pool):
                pool.close()
            if process.audit is not None and (lost_lines := process.audit.close()):
                logging.getLogger("textveil").warning(
                    "%d lines of the audit log could not be written", lost_lines
                )

    async def _load(self) -> None:
        try:
            await asyncio.to_thread(self._gateway.load)
            self._model_state = READY
        except Exception as error:
            message = str(error) if isinstance(error, TextveilError) else type(error).__name__
            self._model_state = f"failed ({type(error).__name__})"
            logging.getLogger("textveil").error("the models cannot be loaded: %s", message)

    @contextmanager
    def record_request(self, record: RequestRecord, parent: str | None) -> Iterator[None]:
        """Records a request: traces, counts and logs it after the block.

        Args:
            record: the request's record.
            parent: the header `traceparent` of the request.
        """
        from starlette.requests import ClientDisconnect

        self._open_requests += 1
        with self._tracer.trace_request(record, parent):
            try:
                yield
            except Exception as error:
                if not isinstance(error, ClientDisconnect):
                    record.note_failure(RequestError(500, "the answer could not be sent"))
                raise
            finally:
                self._open_requests -= 1
                if not record.status:
                    record.note_disconnect()
                if self.audit is not None:
                    self.audit.add(record)  # first, even if the next lines fail
                self.metrics.count(record)
                self.recent.appendleft(record)

    def choose_pool(self, new_characters: int) -> ThreadPool:
        """Returns the lane for a request with `new_characters` characters of new text."""
        return self.long_pool if new_characters > self._gateway.running.long else self.short_pool

    def admit(self, record: RequestRecord) -> None:
        """Admits a request and notes it in its record.

        Raises:
            RequestError: the gateway stops, or could not log the request.
        """
        if self.is_stopping:
            raise self.build_stop_error()
        self.check()
        record.admitted = True

    def build_stop_error(self) -> RequestError:
        """Returns the error for clients that must ask again after a restart."""
        return RequestError(
            503,
            STOPPING_MESSAGE,
            code="stopping",
            headers={"Retry-After": "1", "Connection": "close"},
        )

    @property
    def is_stopping(self) -> bool:
        """True if no more requests are admitted."""
        return self._end_time < math.inf

    @property
    def is_grace_over(self) -> bool:
        """True if the grace of open requests is over."""
        return time.monotonic() >= self._end_time

    def stop(self, *, now: bool = False) -> bool:
        """Stops admitting requests; call it again until it returns true.

        Open requests have the grace to end.

        Args:
            now: whether to skip the grace.

        Returns:
            True if no request is open, or their time is over.
        """
        current_time = time.monotonic()
        self._end_time = min(
            self._end_time, current_time + (0 if now else self._gateway.running.grace)
        )
        if self.is_grace_over:
            for timeout in self._timeouts:
                if timeout.when() is None:
                    # 0 is past on the loop's clock, so it expires at once.
                    timeout.reschedule(0)
        return not self._open_requests or current_time >= self._end_time + FINAL_SECONDS

    async def run_until_stopped(self, work: Awaitable[T]) -> T:
        """Awaits work until the grace of open requests is over.

        Raises:
            RequestError: the grace is over.
        """
        timeout = asyncio.timeout(None)
        try:
            async with timeout:
                self._timeouts.add(timeout)
                try:
                    return await work
                finally:
                    self._timeouts.discard(timeout)
        except TimeoutError:
            # Not that of the grace, but a timeout of the work itself.
            if not timeout.expired():
                raise
        raise self.build_stop_error()

    def check(self) -> None:
        """Refuses a request that could not be logged; call before sending.

        Raises:
            RequestError: the audit log cannot be written.
        """
        if self.audit is not None:
            self.audit.check()

    async def count_stream(
        self, pieces: AsyncGenerator[str | bytes]
    ) -> AsyncGenerator[str | bytes]:
        """Yields the pieces of a stream and counts it as open."""
        with self.metrics.streams.track_inprogress():
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece

    async def answer_readiness(self, request: "Request") -> "Response":
        """Answers a readiness probe: 200 or 503, and JSON with each part."""
        from starlette.responses import JSONResponse

        states = {"models": self._model_state, "store": await asyncio.to_thread(self._check_store)}
        if self.audit is not None:
            states["audit log"] = READY if self.audit.flush() else "cannot be written"
        if request.query_params.get("upstream") == "1":
            states["upstream"] = await self._check_upstream()
        if self.is_stopping:
            states["process"] = "stopping"
        ready = all(state == READY for state in states.values())
        return JSONResponse({"ready": ready, **states}, 200 if ready else 503)

    def _check_store(self) -> str:
        try:
            self._gateway.store.ping()
        except TextveilError:
            return "cannot be reached"
        return READY

    async def _check_upstream(self) -> str:
        """Probes the upstream and returns its state; cached for some seconds.

        Any answer below 500 counts. The probe sends no key.
        """
        async with self._upstream_lock:
            checked_at, state = self._upstream_state
            if time.monotonic() < checked_at + PROBE_SECONDS:
                return state
            state, url = "cannot be reached", f"{self._gateway.current.upstream.rstrip('/')}/models"
            with suppress(Exception):  # its message may hold the address
                answer = await self._client.get(url, timeout=PROBE_SECONDS)
                state = (
                    READY if answer.status_code < 500 else f"fails with status {answer.status_code}"
                )
            self._upstream_state = time.monotonic(), state
            return state

    def can_read_metrics(self, request: "Request") -> bool:
        """True if a client may read the metrics."""
        readers = self._gateway.running.metrics
        if readers != "local":
            return readers == "all"
        with suppress(ValueError):
            return (
                request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
            )
        return False


async def run_while_connected(request: "Request", work: Coroutine[Any, Any, T]) -> T:
    """Awaits work for a request; cancels it if the client leaves.

    Raises:
        ClientDisconnect: the client left.
    """
    from starlette.requests import ClientDisconnect

    working, leaving = (
        asyncio.ensure_future(work),
        asyncio.ensure_future(_wait_for_disconnect(request)),
    )
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
            # It may be in a thread, and only when that ends is it known what was spent.
            await asyncio.wait({working})
    raise ClientDisconnect()


async def _wait_for_disconnect(request: "Request") -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
