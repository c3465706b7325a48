"""Records: counts and times of a request.

In: notes taken while a request is answered. Out: a `RequestRecord`, for metrics, traces and the
audit log.
Not here: its uses (`metrics`, `tracing`, `audit_log`).

No text gets into a record: names are of fixed sets, pseudonyms, or paths of fields. The
name of a model, which the client sends, is "other" unless the policy names it, or the upstream
answered for it and it looks like nothing else.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import lru_cache
from typing import Any, Literal, TypeGuard, TypeVar
from urllib.parse import urlsplit

import regex

from textveil.detect import load_detector
from textveil.gateway.errors import RequestError
from textveil.randomness import read_entropy
from textveil.session import Spend

T = TypeVar("T")

Tokens = Literal["input", "output"]
"""Tokens that an upstream counts: of a request, and of its answer."""

Step = Literal["protect", "upstream", "restore"]
"""Timed steps: before sending, waiting for the upstream, after its answer."""

CLIENT_LEFT = 499
"""Status of a request whose client left before the answer."""

OTHER = "other"

MODEL_PATTERN = regex.compile(r"(?!.*tv-[\w\-]{43})[A-Za-z0-9][A-Za-z0-9._:/\-]{0,99}")
"""Pattern of plausible model names, without keys of gateways.

A client may send anything in their place, which is recorded as `OTHER`.
"""

_CODES = (
    "audit",
    "blocked",
    "busy",
    "idempotency",
    "limit",
    "missing",
    "overlap",
    "stopping",
    "store",
)
CODE_REASONS = {code: code for code in (*_CODES, "unprotected", "upstream")} | {
    "invalid_api_key": "key",
    "previous_response_not_found": "unknown",
    "rate_limit_exceeded": "rate",
}
"""Reasons for a refusal, by the code of the error."""

_UNKNOWN = dict.fromkeys((404, 405), "unknown")
STATUS_REASONS = {400: "invalid", **_UNKNOWN, 408: "slow", 413: "size"} | {
    415: "type",
    500: "failed",
}
"""Reasons for a refusal by status, where no code gives one."""


PROVIDERS = {"bedrock": "aws.bedrock", "gemini": "gcp.gemini"}
"""OpenTelemetry's names of providers, by the first part of an operation's name, where it differs."""

USAGE_FIELDS: dict[Tokens, tuple[str, ...]] = {
    "input": (
        "input_tokens",
        "prompt_tokens",
        "inputTokens",
        "promptTokenCount",
        "prompt_eval_count",
    ),
    "output": (
        "output_tokens",
        "completion_tokens",
        "outputTokens",
        "candidatesTokenCount",
        "eval_count",
    ),
}
USAGE_PLACES = ("usage", "usageMetadata")
ANSWER_PLACES = ("response", "message")
"""Fields with the numbers of tokens, the fields that hold these, and those around them."""


def read_usage(answer: Any) -> dict[Tokens, int]:
    """Reads the numbers of tokens from an answer or an event of a stream; {} for none."""
    if not isinstance(answer, dict):
        return {}
    for part in (answer, *(answer.get(name) for name in ANSWER_PLACES)):
        places = (part, *map(part.get, USAGE_PLACES)) if isinstance(part, dict) else ()
        for usage in filter(_is_object, places):
            counts = {
                kind: usage[name]
                for kind, names in USAGE_FIELDS.items()
                for name in names
                if type(usage.get(name)) is int and usage[name] >= 0
            }
            if counts:
                return counts
    return {}


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


@lru_cache(1000)
def _is_model(name: str) -> bool:
    """True if a name looks like a model's and contains no identifier."""
    with suppress(Exception):  # its message may hold text
        return MODEL_PATTERN.fullmatch(name) is not None and not load_detector("patterns").find(
            [name]
        )
    return False


class RequestRecord:
    """Counts and times of a request.

    Args:
        operation: the name of its route, as in `Operation.name`.

    Attributes:
        id: names the request, in the log and to the client.
        began: time of arrival, in seconds since 1970.
        key: the account: a name or a pseudonym, never a key.
        admitted: whether it was admitted; else it was refused at once.
        model: the model that was asked for; "" for none.
        dry: whether the answer was the body that would be sent.
        status: status of the answer; 0 before there is one.
        reason: reason for a refusal or failure; "" for none.
        field: path of the refused field, as in errors; "" for none.
        protected: the number of hidden values of each type.
        drawn: the number of messages in which something was drawn.
        spent: the spending of these draws.
        unknown: the unknown fields that were protected or left out, by their paths.
        unresolved: the number of placeholders in the answer that were not restored.
        forgotten: the number of values whose originals were forgotten.
        seconds: duration of each step.
        purpose: what the model is asked for, as in `Operation.purpose`; "" before it is asked.
        provider: whose API it is, as OpenTelemetry names it; "" before it is asked.
        server: host and port of the upstream; "" and 0 before it is asked.
        tokens: the numbers of tokens that the upstream counted.
        span: opens a span of a trace, given its name.
        call_span: opens the span around the call of the upstream.
    """

    def __init__(self, operation: str) -> None:
        self.operation, self.id, self.began = operation, read_entropy(8).hex(), time.time()
        self.purpose, self.provider, self.server = "", "", ("", 0)
        self.tokens: dict[Tokens, int] = {}
        self.key, self.model, self.reason, self.field, self.status = "", "", "", "", 0
        self.protected: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.spent: list[Spend] = []
        self.drawn, self.unresolved, self.admitted, self.dry = 0, 0, False, False
        self.forgotten = 0
        self.span: Callable[[str], AbstractContextManager[Any]] = nullcontext
        self.call_span: Callable[[], AbstractContextManager[Any]] = nullcontext
        self.seconds: dict[Step, float] = {"protect": 0.0, "upstream": 0.0, "restore": 0.0}

    def note_request_model(self, model: object, models: Collection[str]) -> None:
        """Notes the requested model, by name if the policy has it."""
        if model is not None:
            self.model = model if isinstance(model, str) and model in models else OTHER

    def note_answer_model(self, model: object, secret: str) -> None:
        """Notes the model for which the upstream answered.

        The name is not noted if it has the client's secret or looks like an identifier.
        """
        key = secret.rpartition(" ")[2]  # the part after "Bearer"
        if isinstance(model, str) and not (key and key in model) and _is_model(model):
            self.model = model

    def note_call(self, name: str, purpose: str, url: str) -> None:
        """Notes which operation asks which upstream, and for what."""
        parts, api = urlsplit(url), name.partition(".")[0]
        self.purpose, self.provider = purpose, PROVIDERS.get(api, api)
        self.server = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)

    def note_usage(self, answer: Any) -> None:
        """Notes the numbers of tokens that an answer, or an event of a stream, holds."""
        self.tokens |= read_usage(answer)

    def note_answer(self, unresolved: int, status: int = 200) -> None:
        """Notes that there is an answer."""
        self.status, self.unresolved = self.status or status, unresolved

    def note_failure(self, error: RequestError) -> None:
        """Notes why there is no answer, or only part of one."""
        code = (error.code if error.is_gateway_error else "upstream") or ""
        self.status = error.status
        self.reason = CODE_REASONS.get(code) or STATUS_REASONS.get(error.status, OTHER)
        self.field = (error.param if error.is_gateway_error else None) or ""

    def note_disconnect(self) -> None:
        """Notes that the client left before the end."""
        self.status, self.reason = CLIENT_LEFT, "left"

    def note_spends(self, spends: Iterable[Spend]) -> None:
        """Notes spending."""
        self.spent += spends

    @property
    def gateway_seconds(self) -> float:
        """Seconds that the gateway itself took."""
        return self.seconds["protect"] + self.seconds["restore"]

    @contextmanager
    def trace_step(self, step: Step) -> Iterator[None]:
        """Times a block and opens a trace span for it."""
        with self.span(f"textveil.{step}"), self.measure_step(step):
            yield

    @contextmanager
    def measure_step(self, step: Step) -> Iterator[None]:
        """Times a block."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] += time.perf_counter() - start

    async def measure_work(self, step: Step, work: Awaitable[T]) -> T:
        """Awaits work and counts its time."""
        with self.measure_step(step):
            return await work
