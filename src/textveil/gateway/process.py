"""What a process of the gateway holds while it serves: its models, metrics and log, and whether it is ready.

In: a `Gateway`, and `Running`: how it is run. Out: `ServingProcess`, and the routes /health, /ready and /metrics.
Not here: requests (`app`), sockets and signals (`serving`).
"""

import asyncio
import ipaddress
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Literal

from textveil.config import options
from textveil.errors import TextveilError
from textveil.gateway.record import RequestRecord
from textveil.gateway.tracing import Tracing

if TYPE_CHECKING:
    import httpx2
    from starlette.requests import Request
    from starlette.responses import Response

    from textveil.gateway.app import Gateway

READY = "ready"

ASKED_AGAIN = 5.0
"""Seconds after which the upstream is asked again whether it is there, and for which it is waited for."""


@options("running.")
class Running:
    """How a gateway is run.

    Attributes:
        audit_log: a file that gets a line of JSON for each request, with counts and no content; "" for none.
        metrics: who may read /metrics: programs of this machine ("local"), "all", or nobody ("off").
    """

    audit_log: str = ""
    metrics: Literal["local", "all", "off"] = "local"


class ServingProcess:
    """The state of a process that serves.

    Args:
        gateway: what it serves.
        client: asks the upstream.

    Attributes:
        metrics: of this process; of all workers where there are several.
        audit: its log; None without one.
    """

    def __init__(self, gateway: "Gateway", client: "httpx2.AsyncClient") -> None:
        from textveil.gateway.metrics import Metrics

        self._gateway, self._client = gateway, client
        self.metrics, self.audit, self._tracing = Metrics(), None, Tracing()
        if gateway.running.audit_log:
            from textveil.gateway.auditing import AuditLog

            self.audit = AuditLog(gateway.running.audit_log)
        self._models = "loading"
        self._upstream = -ASKED_AGAIN, ""

    @classmethod
    @asynccontextmanager
    async def serving(cls, gateway: "Gateway", client: "httpx2.AsyncClient") -> "AsyncIterator[ServingProcess]":
        """A process whose models are being loaded; at the end its log is closed."""
        process = cls(gateway, client)
        loading = asyncio.create_task(process._load())
        try:
            yield process
        finally:
            loading.cancel()
            if process.audit is not None and (lost := process.audit.close()):
                logging.getLogger("textveil").warning("%d lines of the audit log could not be written", lost)

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
        with self._tracing.request(record, parent):
            try:
                yield
            finally:
                if not record.status:
                    record.left()
                self.metrics.count(record)
                if self.audit is not None:
                    self.audit.add(record)

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
        asked, said = self._upstream
        if time.monotonic() < asked + ASKED_AGAIN:
            return said
        said = "cannot be reached"
        with suppress(Exception):  # which may hold the address
            answer = await self._client.get(f"{self._gateway.upstream.rstrip('/')}/models", timeout=ASKED_AGAIN)
            said = READY if answer.status_code < 500 else f"fails with status {answer.status_code}"
        self._upstream = time.monotonic(), said
        return said

    def shows_metrics(self, request: "Request") -> bool:
        """Whether a client may read the metrics."""
        who = self._gateway.running.metrics
        if who != "local":
            return who == "all"
        with suppress(ValueError):
            return request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
        return False
