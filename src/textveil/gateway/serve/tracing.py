"""Traces: duration of a request and its steps, for OpenTelemetry, if installed.

In: records of requests. Out: spans `textveil.request`, `.protect`, `.upstream` and
`.restore`, with counts.
Not here: the destination of spans, which the program that sets up OpenTelemetry names
(`opentelemetry-instrument`).

No content: no texts, no messages of exceptions. From the client only the ids of `traceparent` get
into a trace.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

from textveil.gateway.request.request_record import RequestRecord


class Tracer:
    """Factory of spans; makes none where opentelemetry-api is not installed."""

    def __init__(self) -> None:
        try:
            from opentelemetry import trace
        except ModuleNotFoundError:
            self._tracer = None
        else:
            self._tracer = trace.get_tracer("textveil", version("textveil"))

    @contextmanager
    def trace_request(self, record: RequestRecord, parent: str | None) -> Iterator[None]:
        """Opens the span of a request, around those of its steps.

        Args:
            record: the request's record.
            parent: the header `traceparent`, where the client sent one.
        """
        if self._tracer is None:
            yield
            return
        from opentelemetry.trace import set_span_in_context
        from opentelemetry.trace.propagation import tracecontext

        carrier = {} if parent is None else {"traceparent": parent}
        context = tracecontext.TraceContextTextMapPropagator().extract(carrier)
        with self._start_span("textveil.request", context) as span:
            record.span = partial(self._start_span, context=set_span_in_context(span, context))
            try:
                yield
            finally:
                for name, value in build_attributes(record).items():
                    span.set_attribute(name, value)

    def _start_span(self, name: str, context: Any) -> AbstractContextManager[Any]:
        assert self._tracer is not None, "or there are no spans"
        # Messages of exceptions may hold text.
        return self._tracer.start_span(
            name, context, record_exception=False, set_status_on_exception=False
        )


def build_attributes(record: RequestRecord) -> dict[str, str | int | float]:
    """Returns the attributes of a request's span."""
    values: dict[str, str | int | float] = {
        "textveil.operation": record.operation,
        "textveil.request_id": record.id,
        "textveil.drawn": record.drawn,
        "textveil.unresolved": record.unresolved,
        "textveil.protected": record.protected.total(),
        "http.response.status_code": record.status,
    }
    for type_, number in sorted(record.protected.items()):
        values[f"textveil.protected.{type_.lower()}"] = number
    values |= {
        f"textveil.{step}.seconds": seconds for step, seconds in record.seconds.items() if seconds
    }
    if record.model:
        values["gen_ai.request.model"] = record.model
    if record.reason:
        values["error.type"] = record.reason
    return values
