"""Traces: duration of a request and its steps, for OpenTelemetry, if installed.

In: records of requests. Out: spans `textveil.request`, `.protect` and `.restore`, and a span of
the call of the upstream, with counts.
Not here: the destination of spans, which the program that sets up OpenTelemetry names
(`opentelemetry-instrument`).

Names are OpenTelemetry's own where it has some, for generative AI and for HTTP
(https://opentelemetry.io/docs/specs/semconv/gen-ai/). No content, whatever the environment says: no
texts, no messages of exceptions. From the client only the ids of `traceparent` get into a trace.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

from textveil.gateway.request.request_record import OTHER, RequestRecord


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
        from opentelemetry.trace import SpanKind

        with self._start_span("textveil.request", context, SpanKind.SERVER) as span:
            inside = set_span_in_context(span, context)
            record.span = partial(self._start_span, context=inside)
            record.call_span = partial(self._trace_call, record, inside)
            try:
                yield
            finally:
                for name, value in build_attributes(record).items():
                    span.set_attribute(name, value)

    @contextmanager
    def _trace_call(self, record: RequestRecord, context: Any) -> Iterator[None]:
        """Opens the span of a call of the upstream; its name gets the model, once known."""
        from opentelemetry.trace import SpanKind

        name = record.purpose or "textveil.upstream"
        with self._start_span(name, context, SpanKind.CLIENT) as span:
            try:
                yield
            finally:
                if record.purpose and record.model not in ("", OTHER):
                    span.update_name(f"{record.purpose} {record.model}")
                for key, value in build_call_attributes(record).items():
                    span.set_attribute(key, value)

    def _start_span(self, name: str, context: Any, kind: Any = None) -> AbstractContextManager[Any]:
        assert self._tracer is not None, "or there are no spans"
        kinds = {} if kind is None else {"kind": kind}
        # Messages of exceptions may hold text.
        return self._tracer.start_span(
            name, context, **kinds, record_exception=False, set_status_on_exception=False
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
    return values | _build_shared_attributes(record)


def build_call_attributes(record: RequestRecord) -> dict[str, str | int | float]:
    """Returns the attributes of the span of a call of the upstream."""
    server, port = record.server
    values: dict[str, str | int | float] = {"server.address": server, "server.port": port}
    if record.purpose:
        values["gen_ai.operation.name"] = record.purpose
        values["gen_ai.provider.name"] = record.provider
    values |= {f"gen_ai.usage.{kind}_tokens": number for kind, number in record.tokens.items()}
    return values | _build_shared_attributes(record)


def _build_shared_attributes(record: RequestRecord) -> dict[str, str]:
    values = {"gen_ai.request.model": record.model, "error.type": record.reason}
    return {name: value for name, value in values.items() if value}
