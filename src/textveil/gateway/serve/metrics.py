"""Metrics: counts and times of a gateway, in the format of Prometheus.

In: records of requests. Out: the page /metrics.
Not here: the fields of a record (`request_record`), and the log of single requests (`audit_log`).

Calls of models are counted under OpenTelemetry's names for generative AI, with their dots as
underscores. Labels are operations, providers, upstreams, models, statuses, reasons, types and
lanes: few, and never text. Multiple workers write to files in the folder PROMETHEUS_MULTIPROC_DIR,
and each of them shows the sums.
"""

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import regex

from textveil.config.extras import explain_missing
from textveil.gateway.request.request_record import OTHER, RequestRecord
from textveil.guarantee import MICRO

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

MULTIPROC_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with the folder that workers share."""

ADDED_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
CALL_BUCKETS = tuple(0.01 * 2**i for i in range(14))
TOKEN_BUCKETS = tuple(4**i for i in range(14))
"""Bucket limits of the histograms, in seconds and tokens; for calls those of OpenTelemetry."""

TYPE_PATTERN = regex.compile(r"[A-Z][A-Z0-9_]{0,39}")

MAX_NAMES = 100
"""Maximal number of entity types, and of models, counted separately.

Detectors of other packages add types, and upstreams say which model answered.
"""

CALL_LABELS = (
    *("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model"),
    *("server_address", "server_port"),
)
"""Labels of the metrics about calls of models."""


class Metrics:
    """Metrics of one process."""

    def __init__(self) -> None:
        with explain_missing():
            from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._registry = registry = CollectorRegistry()
        self._types: set[str] = set()
        self._models: set[str] = set()
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, labelnames=("operation",), registry=registry)
        self._requests = counter("textveil_requests", "Requests.", ("operation", "status"))
        self._refusals = counter(
            "textveil_refusals", "Requests that got no answer, or only a part of it.", ("reason",)
        )
        self._protected = counter(
            "textveil_protected", "Hidden values, counted in each request.", ("type",)
        )
        self._unknown = counter("textveil_unknown_fields", "Fields that no table names.")
        self._unresolved = counter("textveil_unresolved", "Placeholders that were not restored.")
        self._epsilon = counter(
            "textveil_epsilon_spent", "Epsilon spent, summed over words.", ("metric",)
        )
        self._unbounded = counter("textveil_unbounded", "Releases without a finite bound.")
        self._added = histogram(
            "textveil_added_seconds", "Seconds that the gateway itself adds.", buckets=ADDED_BUCKETS
        )
        self._calls = Histogram(
            "gen_ai_client_operation_duration_seconds",
            "Seconds of waiting for the upstream.",
            (*CALL_LABELS, "error_type"),
            registry=registry,
            buckets=CALL_BUCKETS,
        )
        self._tokens = Histogram(
            "gen_ai_client_token_usage",
            "Tokens that the upstream counted.",
            (*CALL_LABELS, "gen_ai_token_type"),
            registry=registry,
            buckets=TOKEN_BUCKETS,
        )
        summed: Any = {"multiprocess_mode": "livesum"}
        self.streams = gauge("textveil_streams_open", "Open streams.", **summed)
        self.waiting = gauge("textveil_waiting", "Requests in the queue.", ("lane",), **summed)

    def count(self, record: RequestRecord) -> None:
        """Counts a finished request."""
        self._requests.labels(record.operation, str(record.status)).inc()
        if record.reason:
            self._refusals.labels(record.reason).inc()
        for type_, number in record.protected.items():
            self._protected.labels(self._limit_type(type_)).inc(number)
        self._unknown.inc(record.unknown.total())
        self._unresolved.inc(record.unresolved)
        for spend in record.spent:
            if spend.infinite:
                self._unbounded.inc()
            else:
                self._epsilon.labels(spend.metric).inc(spend.epsilon / MICRO)
        if record.seconds["protect"]:
            self._added.labels(record.operation).observe(record.gateway_seconds)
        if record.purpose and record.seconds["upstream"]:
            self._count_call(record)

    def _count_call(self, record: RequestRecord) -> None:
        if record.model not in self._models and len(self._models) >= MAX_NAMES:
            model = OTHER
        else:
            self._models.add(model := record.model)
        server, port = record.server
        labels = record.purpose, record.provider, model, server, str(port)
        self._calls.labels(*labels, record.reason).observe(record.seconds["upstream"])
        for kind, number in record.tokens.items():
            self._tokens.labels(*labels, kind).observe(number)

    def _limit_type(self, name: str) -> str:
        if name not in self._types and (
            len(self._types) >= MAX_NAMES or TYPE_PATTERN.fullmatch(name) is None
        ):
            return OTHER
        self._types.add(name)
        return name

    def render_page(self) -> tuple[bytes, str]:
        """Returns the metrics page and its content type."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self._build_registry()), CONTENT_TYPE_LATEST

    def _build_registry(self) -> "CollectorRegistry":
        from prometheus_client import CollectorRegistry
        from prometheus_client.multiprocess import MultiProcessCollector

        if MULTIPROC_VARIABLE not in os.environ:
            return self._registry
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return registry
