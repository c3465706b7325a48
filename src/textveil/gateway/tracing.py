"""Traces: how long a request takes and where, for OpenTelemetry; only where that is installed.

In: records of requests. Out: spans `textveil.request`, `.protect`, `.upstream` and `.restore`, with counts.
Not here: where spans go, which the program that sets up OpenTelemetry says (`opentelemetry-instrument`).

No content: no texts, no messages of exceptions. Of what a client sends only the ids of `traceparent` get into a trace.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

from textveil.gateway.record import RequestRecord


class Tracing:
    """Makes spans; none where opentelemetry-api is not installed."""

    def __init__(self) -> None:
        try:
            from opentelemetry import trace
        except ModuleNotFoundError:
            self._tracer = None
        else:
            self._tracer = trace.get_tracer("textveil", version("textveil"))

    @contextmanager
    def request(self, record: RequestRecord, parent: str | None) -> Iterator[None]:
        """The span of a request; those of its steps are inside.

        Args:
            record: of the request.
            parent: the header `traceparent`, where the client sent one.
        """
        if self._tracer is None:
            yield
            return
        from opentelemetry.trace import set_span_in_context
        from opentelemetry.trace.propagation import tracecontext

        carrier = {} if parent is None else {"traceparent": parent}
        context = tracecontext.TraceContextTextMapPropagator().extract(carrier)
        with self._span("textveil.request", context) as span:
            record.span = partial(self._span, context=set_span_in_context(span, context))
            try:
                yield
            finally:
                for name, value in attributes(record).items():
                    span.set_attribute(name, value)

    def _span(self, name: str, context: Any) -> AbstractContextManager[Any]:
        assert self._tracer is not None, "or there are no spans"
        # Messages of exceptions may hold text.
        return self._tracer.start_span(
            name, context, record_exception=False, set_status_on_exception=False
        )


def attributes(record: RequestRecord) -> dict[str, str | int | float]:
    """What a span says about a request."""
    said: dict[str, str | int | float] = {
        "textveil.operation": record.operation,
        "textveil.request_id": record.id,
        "textveil.drawn": record.drawn,
        "textveil.unresolved": record.unresolved,
        "textveil.protected": record.protected.total(),
        "http.response.status_code": record.status,
    }
    for type_, number in sorted(record.protected.items()):
        said[f"textveil.protected.{type_.lower()}"] = number
    said |= {
        f"textveil.{step}.seconds": seconds for step, seconds in record.seconds.items() if seconds
    }
    if record.model:
        said["gen_ai.request.model"] = record.model
    if record.reason:
        said["error.type"] = record.reason
    return said
