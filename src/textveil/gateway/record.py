"""Records: what happened to a request, in counts and times.

In: what is noted while a request is answered. Out: a `RequestRecord`, for metrics, traces and the audit log.
Not here: what becomes of it (`metrics`, `tracing`, `auditing`).

No text gets into a record: names are of fixed sets, pseudonyms, or lead to a field that was refused. The name of a
model, which the client sends, is
"other" unless the policy names it, or the upstream answered for it and it looks like nothing else.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import lru_cache
from typing import Any, Literal, TypeVar

import regex

from textveil.detect import detector
from textveil.gateway.errors import RequestError
from textveil.randomness import os_entropy
from textveil.session import Spend

T = TypeVar("T")

Step = Literal["protect", "upstream", "restore"]
"""What takes time: what is done before anything is sent, waiting for the upstream, and what is done with its answer."""

LEFT = 499
"""The status of a request whose client left before the answer was there."""

OTHER = "other"

MODEL = regex.compile(r"(?!.*tv-[\w\-]{43})[A-Za-z0-9][A-Za-z0-9._:/\-]{0,99}")
"""Names of models as they are, without keys of gateways; whatever else a client sends in their place is `OTHER`."""

_CODES = ("audit", "busy", "idempotency", "limit", "missing", "overlap", "stopping", "store")
REASONS = {code: code for code in (*_CODES, "unprotected", "upstream")} | {
    "invalid_api_key": "key",
    "previous_response_not_found": "unknown",
    "rate_limit_exceeded": "rate",
}
"""Why a request was refused, by the code of the error."""

_UNKNOWN = dict.fromkeys((404, 405), "unknown")
BY_STATUS = {400: "invalid", **_UNKNOWN, 413: "size", 415: "type", 500: "failed"}
"""The same where no code says it."""


@lru_cache(1000)
def _is_model(name: str) -> bool:
    """Whether a name could be one of a model, and no identifier is found in it."""
    with suppress(Exception):  # it may hold text
        return MODEL.fullmatch(name) is not None and not detector("patterns").find([name])
    return False


class RequestRecord:
    """What happened to a request.

    Args:
        operation: its route, as `Operation.name`.

    Attributes:
        id: names the request, in the log and to the client.
        began: when it came, in seconds since 1970.
        key: whose it is: a name or a pseudonym, never a key.
        admitted: whether it was, or else it was refused at once.
        model: which model was asked for; "" for none.
        dry: whether it was answered with what would be sent.
        status: of the answer; 0 before there is one.
        reason: why it was refused or failed; "" where it was not.
        field: where the field stands that was refused, as errors name it; "" for none.
        protected: how many values of each type were hidden.
        drawn: in how many messages something was drawn.
        spent: what they spend.
        unresolved: placeholders of the answer that were not restored.
        seconds: how long the steps took.
        span: opens a span of a trace, by its name.
    """

    def __init__(self, operation: str) -> None:
        self.operation, self.id, self.began = operation, os_entropy(8).hex(), time.time()
        self.key, self.model, self.reason, self.field, self.status = "", "", "", "", 0
        self.protected: Counter[str] = Counter()
        self.spent: list[Spend] = []
        self.drawn, self.unresolved, self.admitted, self.dry = 0, 0, False, False
        self.span: Callable[[str], AbstractContextManager[Any]] = nullcontext
        self.seconds: dict[Step, float] = {"protect": 0.0, "upstream": 0.0, "restore": 0.0}

    def asks_for(self, model: object, named: Collection[str]) -> None:
        """Note the model that a client asks for, by name where the policy has it."""
        if model is not None:
            self.model = model if isinstance(model, str) and model in named else OTHER

    def got(self, model: object, secret: str) -> None:
        """Note a model for which the upstream answered; by name, unless that is the client's secret or identifies."""
        key = secret.rpartition(" ")[2]  # behind "Bearer"
        if isinstance(model, str) and not (key and key in model) and _is_model(model):
            self.model = model

    def answered(self, unresolved: int, status: int = 200) -> None:
        """Note that there is an answer."""
        self.status, self.unresolved = self.status or status, unresolved

    def failed(self, error: RequestError) -> None:
        """Note why there is no answer, or not all of it."""
        code = (error.code if error.own else "upstream") or ""
        self.status = error.status
        self.reason = REASONS.get(code) or BY_STATUS.get(error.status, OTHER)
        self.field = (error.param if error.own else None) or ""

    def left(self) -> None:
        """Note that the client left before the end."""
        self.status, self.reason = LEFT, "left"

    def spends(self, spends: Iterable[Spend]) -> None:
        """Note what was spent."""
        self.spent += spends

    @property
    def added(self) -> float:
        """Seconds that the gateway itself took."""
        return self.seconds["protect"] + self.seconds["restore"]

    @contextmanager
    def step(self, step: Step) -> Iterator[None]:
        """Counts the time of a block, which has a span of its own."""
        with self.span(f"textveil.{step}"), self.timed(step):
            yield

    @contextmanager
    def timed(self, step: Step) -> Iterator[None]:
        """Counts the time of a block."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] += time.perf_counter() - start

    async def during(self, step: Step, work: Awaitable[T]) -> T:
        """What a piece of work gives, whose time is counted."""
        with self.timed(step):
            return await work
