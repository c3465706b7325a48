"""A process that serves a gateway: models, metrics, log and readiness.

In: a `Gateway`. Out: `ServingProcess`, and the answers to /ready and /metrics.
Not here: requests (`routes`), sockets and signals (`serving`).
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
from textveil.gateway.lanes import Lane
from textveil.gateway.record import RequestRecord
from textveil.gateway.tracing import Tracing
from textveil.gateway.turns import Turns
from textveil.session import MemoryStore

if TYPE_CHECKING:
    import httpx2
    from starlette.requests import Request
    from starlette.responses import Response

T = TypeVar("T")

READY = "ready"

STOPS = "the gateway stops; ask again"

LAST_WORDS = 2.0
"""Seconds for the final errors of open requests after the grace."""

SHORT, STORED = 2, 4
"""Numbers of threads for requests: without and with a database.

Two keep Python and the networks busy; more are needed where threads also wait for a database.
"""

GIVE_WAY = 10
"""Niceness of the threads for long texts."""

RECENT = 50
"""Number of recent requests whose records are kept."""

ASKED_AGAIN = 5.0
"""Seconds between probes of the upstream, and timeout of a probe."""


class ServingProcess:
    """State of a process that serves.

    Args:
        gateway: the gateway that it serves.
        client: asks the upstream.

    Attributes:
        metrics: metrics of this process, or of all workers together.
        audit: the audit log; None without one.
        short: threads for requests.
        long: threads for requests with much new text.
        answers: threads for answers; none is refused, since the upstream has given them already.
        turns: locks of named conversations.
        recent: records of the last requests, the newest first.
        loading: the task that loads the models; it ends when they are loaded, or cannot be.
    """

    loading: "asyncio.Task[None]"

    def __init__(self, gateway: Gateway, client: "httpx2.AsyncClient") -> None:
        from textveil.gateway.metrics import Metrics

        self._gateway, self._client = gateway, client
        self.metrics, self.audit, self._tracing = Metrics(), None, Tracing()
        self.recent: deque[RequestRecord] = deque(maxlen=RECENT)
        if gateway.running.audit_log:
            from textveil.gateway.auditing import AuditLog

            self.audit = AuditLog(gateway.running.audit_log)
        threads = SHORT if isinstance(gateway.store, MemoryStore) else STORED
        self.short = Lane("short", threads, gateway.running.queue, self.metrics.waiting)
        self.long = Lane("long", 1, gateway.running.queue, self.metrics.waiting, nice=GIVE_WAY)
        self.answers = Lane("answers", threads, None, self.metrics.waiting)
        self.turns = Turns(gateway.running.queue)
        self._open, self._ends = 0, math.inf
        self._stoppable: set[asyncio.Timeout] = set()
        self._models = "loading"
        self._upstream, self._asking = (-ASKED_AGAIN, ""), asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def serving(
        cls, gateway: Gateway, client: "httpx2.AsyncClient"
    ) -> "AsyncIterator[ServingProcess]":
        """Creates a process and starts loading its models.

        Its log is closed at the end.
        """
        process = cls(gateway, client)
        process.loading = asyncio.create_task(process._load())
        try:
            yield process
        finally:
            process.loading.cancel()
            for lane in (process.short, process.long, process.answers):
                lane.close()
            if process.audit is not None and (lost := process.audit.close()):
                logging.getLogger("textveil").warning(
                    "%d lines of the audit log could not be written", lost
                )

    async def _load(self) -> None:
        try:
            await asyncio.to_thread(self._gateway.load)
            self._models = READY
        except Exception as error:
            message = str(error) if isinstance(error, TextveilError) else type(error).__name__
            self._models = f"failed ({type(error).__name__})"
            logging.getLogger("textveil").error("the models cannot be loaded: %s", message)

    @contextmanager
    def recorded(self, record: RequestRecord, parent: str | None) -> Iterator[None]:
        """Records a request: traces, counts and logs it after the block.

        Args:
            record: the request's record.
            parent: the header `traceparent` of the request.
        """
        from starlette.requests import ClientDisconnect

        self._open += 1
        with self._tracing.request(record, parent):
            try:
                yield
            except Exception as error:
                if not isinstance(error, ClientDisconnect):
                    record.failed(RequestError(500, "the answer could not be sent"))
                raise
            finally:
                self._open -= 1
                if not record.status:
                    record.left()
                if self.audit is not None:
                    self.audit.add(record)  # first, even if the next lines fail
                self.metrics.count(record)
                self.recent.appendleft(record)

    def lane(self, news: int) -> Lane:
        """Returns the lane for a request with `news` characters of new text."""
        return self.long if news > self._gateway.running.long else self.short

    def admit(self, record: RequestRecord) -> None:
        """Admits a request and notes it in its record.

        Raises:
            RequestError: the gateway stops, or could not log the request.
        """
        if self.stopping:
            raise self.stops()
        self.check()
        record.admitted = True

    def stops(self) -> RequestError:
        """Returns the error for clients that must ask again after a restart."""
        return RequestError(
            503, STOPS, code="stopping", headers={"Retry-After": "1", "Connection": "close"}
        )

    @property
    def stopping(self) -> bool:
        """True if no more requests are admitted."""
        return self._ends < math.inf

    @property
    def over(self) -> bool:
        """True if the grace of open requests is over."""
        return time.monotonic() >= self._ends

    def stop(self, *, now: bool = False) -> bool:
        """Stops admitting requests; call it again until it returns true.

        Open requests have the grace to end.

        Args:
            now: whether to skip the grace.

        Returns:
            True if no request is open, or their time is over.
        """
        here = time.monotonic()
        self._ends = min(self._ends, here + (0 if now else self._gateway.running.grace))
        if self.over:
            for each in self._stoppable:
                if each.when() is None:
                    each.reschedule(0)
        return not self._open or here >= self._ends + LAST_WORDS

    async def unless_stopped(self, work: Awaitable[T]) -> T:
        """Awaits work until the grace of open requests is over.

        Raises:
            RequestError: the grace is over.
        """
        waiting = asyncio.timeout(None)
        try:
            async with waiting:
                self._stoppable.add(waiting)
                try:
                    return await work
                finally:
                    self._stoppable.discard(waiting)
        except TimeoutError:
            if not waiting.expired():
                raise
        raise self.stops()

    def check(self) -> None:
        """Refuses a request that could not be logged; call before sending.

        Raises:
            RequestError: the audit log cannot be written.
        """
        if self.audit is not None:
            self.audit.check()

    async def streaming(self, pieces: AsyncGenerator[str]) -> AsyncGenerator[str]:
        """Yields the pieces of a stream and counts it as open."""
        with self.metrics.streams.track_inprogress():
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece

    async def ready(self, request: "Request") -> "Response":
        """Answers a readiness probe: 200 or 503, and JSON with each part."""
        from starlette.responses import JSONResponse

        states = {"models": self._models, "store": await asyncio.to_thread(self._check_store)}
        if self.audit is not None:
            states["audit log"] = READY if self.audit.works() else "cannot be written"
        if request.query_params.get("upstream") == "1":
            states["upstream"] = await self._probe_upstream()
        if self.stopping:
            states["process"] = "stopping"
        ready = all(each == READY for each in states.values())
        return JSONResponse({"ready": ready, **states}, 200 if ready else 503)

    def _check_store(self) -> str:
        try:
            self._gateway.store.ping()
        except TextveilError:
            return "cannot be reached"
        return READY

    async def _probe_upstream(self) -> str:
        """Probes the upstream and returns its state; cached for some seconds.

        Any answer below 500 counts. The probe sends no key.
        """
        async with self._asking:
            asked, state = self._upstream
            if time.monotonic() < asked + ASKED_AGAIN:
                return state
            state, url = "cannot be reached", f"{self._gateway.current.upstream.rstrip('/')}/models"
            with suppress(Exception):  # its message may hold the address
                answer = await self._client.get(url, timeout=ASKED_AGAIN)
                state = (
                    READY if answer.status_code < 500 else f"fails with status {answer.status_code}"
                )
            self._upstream = time.monotonic(), state
            return state

    def shows_metrics(self, request: "Request") -> bool:
        """True if a client may read the metrics."""
        who = self._gateway.running.metrics
        if who != "local":
            return who == "all"
        with suppress(ValueError):
            return (
                request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
            )
        return False


async def unless_left(request: "Request", work: Coroutine[Any, Any, T]) -> T:
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
            await asyncio.wait({working})
    raise ClientDisconnect()


async def _wait_for_disconnect(request: "Request") -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
