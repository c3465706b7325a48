"""What a process of the gateway holds while it serves: its models, metrics and log, and whether it is ready.

In: a `Gateway`. Out: `ServingProcess`, and what /ready and /metrics say.
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
"""Seconds for what open requests say at last, when their time is over."""

SHORT, STORED = 2, 4
"""Threads for requests: as many as keep Python and the networks busy; and more where they also wait for a database."""

GIVE_WAY = 10
"""How nice the threads for long texts are to the others."""

RECENT = 50
"""Requests of which it is remembered what happened."""

ASKED_AGAIN = 5.0
"""Seconds after which the upstream is asked again whether it is there, and for which it is waited for."""


class ServingProcess:
    """The state of a process that serves.

    Args:
        gateway: what it serves.
        client: asks the upstream.

    Attributes:
        metrics: of this process; of all workers where there are several.
        audit: its log; None without one.
        short: threads for requests.
        long: threads for requests with much new text.
        answers: threads for answers, of which none is refused: the upstream has given them.
        turns: of requests that go on from each other.
        recent: what happened to the last requests, the newest first.
        loading: ends when the models are loaded, or cannot be.
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
        """A process whose models are being loaded; at the end its log is closed."""
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
            said = str(error) if isinstance(error, TextveilError) else type(error).__name__
            self._models = f"failed ({type(error).__name__})"
            logging.getLogger("textveil").error("the models cannot be loaded: %s", said)

    @contextmanager
    def recorded(self, record: RequestRecord, parent: str | None) -> Iterator[None]:
        """What happens in the block is traced, counted and logged at its end.

        Args:
            record: of the request.
            parent: its header `traceparent`.
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
                    self.audit.add(record)  # first, whatever becomes of the others
                self.metrics.count(record)
                self.recent.appendleft(record)

    def lane(self, news: int) -> Lane:
        """Gives the threads for a request with so many characters of new text."""
        return self.long if news > self._gateway.running.long else self.short

    def admit(self, record: RequestRecord) -> None:
        """Call it when a request comes, which is noted in its record.

        Raises:
            RequestError: the gateway stops, or could not log it.
        """
        if self.stopping:
            raise self.stops()
        self.check()
        record.admitted = True

    def stops(self) -> RequestError:
        """What a client is told that must ask again."""
        return RequestError(
            503, STOPS, code="stopping", headers={"Retry-After": "1", "Connection": "close"}
        )

    @property
    def stopping(self) -> bool:
        """Whether no more requests are admitted."""
        return self._ends < math.inf

    @property
    def over(self) -> bool:
        """Whether the time of open requests is over."""
        return time.monotonic() >= self._ends

    def stop(self, *, now: bool = False) -> bool:
        """Admit no more requests, and give those that are open some time; call it again and again.

        Args:
            now: whether they get none.

        Returns:
            Whether all is over.
        """
        here = time.monotonic()
        self._ends = min(self._ends, here + (0 if now else self._gateway.running.grace))
        if self.over:
            for each in self._stoppable:
                if each.when() is None:
                    each.reschedule(0)
        return not self._open or here >= self._ends + LAST_WORDS

    async def unless_stopped(self, work: Awaitable[T]) -> T:
        """What some work gives, for which is waited until the time of open requests is over.

        Raises:
            RequestError: it is.
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
        """Call it before a request is sent.

        Raises:
            RequestError: it must not be, since it could not be logged.
        """
        if self.audit is not None:
            self.audit.check()

    async def streaming(self, pieces: AsyncGenerator[str]) -> AsyncGenerator[str]:
        """The same pieces; while they come, a stream is open."""
        with self.metrics.streams.track_inprogress():
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece

    async def ready(self, request: "Request") -> "Response":
        """Whether requests can be answered, and what is missing: 200 or 503, and JSON."""
        from starlette.responses import JSONResponse

        said = {"models": self._models, "store": await asyncio.to_thread(self._store)}
        if self.audit is not None:
            said["audit log"] = READY if self.audit.works() else "cannot be written"
        if request.query_params.get("upstream") == "1":
            said["upstream"] = await self._reached()
        if self.stopping:
            said["process"] = "stopping"
        ready = all(each == READY for each in said.values())
        return JSONResponse({"ready": ready, **said}, 200 if ready else 503)

    def _store(self) -> str:
        try:
            self._gateway.store.ping()
        except TextveilError:
            return "cannot be reached"
        return READY

    async def _reached(self) -> str:
        """Whether the upstream answers anything at all; it is asked without a key, and not for each of many probes."""
        async with self._asking:
            asked, said = self._upstream
            if time.monotonic() < asked + ASKED_AGAIN:
                return said
            said, url = "cannot be reached", f"{self._gateway.current.upstream.rstrip('/')}/models"
            with suppress(Exception):  # which may hold the address
                answer = await self._client.get(url, timeout=ASKED_AGAIN)
                said = (
                    READY if answer.status_code < 500 else f"fails with status {answer.status_code}"
                )
            self._upstream = time.monotonic(), said
            return said

    def shows_metrics(self, request: "Request") -> bool:
        """Whether a client may read the metrics."""
        who = self._gateway.running.metrics
        if who != "local":
            return who == "all"
        with suppress(ValueError):
            return (
                request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
            )
        return False


async def unless_left(request: "Request", work: Coroutine[Any, Any, T]) -> T:
    """What some work for a request gives, unless its client leaves; then the work is cancelled.

    Raises:
        ClientDisconnect: the client left.
    """
    from starlette.requests import ClientDisconnect

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(request))
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


async def _left(request: "Request") -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
