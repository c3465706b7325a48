"""OpenAI chat completions as the proxy passes them on: only fields that are protected or hold no text.

In: a request's body and released texts; answers, whole or streamed. Out: what is sent up, what is sent back.
Not here: HTTP (`app`), what is protected (`pipeline`), how a text is restored (`session`).
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from textveil.session import Restorer, Session

# ---- requests --------------------------------------------------------------------------------------------------------

UNPROTECTED = frozenset(
    {
        *("audio", "file", "file_id", "function_call", "functions", "image_url", "input_audio", "logit_bias"),
        *("logprobs", "metadata", "modalities", "moderation", "name", "parallel_tool_calls", "prediction"),
        *("prompt_cache_key", "prompt_cache_retention", "refusal", "response_format", "safety_identifier"),
        *("service_tier", "stop", "store", "tool_call_id", "tool_calls", "tool_choice", "tools", "top_logprobs"),
        *("user", "verbosity", "web_search_options"),
    }
)
"""Documented fields that are refused by name: most hold text, or cause answers that do."""


class RequestError(Exception):
    """An HTTP error returned to the client. The message is one line and quotes neither request nor answer.

    Args:
        status: the HTTP status.
        message: what is wrong, or what must hold.
        param: the field at fault, if its name is known.
        code: a machine-readable reason.
    """

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code

    def to_json(self) -> dict[str, object]:
        """The body of an error in OpenAI's format."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": f"textveil: {self.message}", "type": kind, "param": self.param, "code": self.code}}


class _Field(BaseModel, extra="forbid", strict=True, allow_inf_nan=False):
    pass


class Part(_Field):
    """A part of a message."""

    type: Literal["text"]
    text: str = Field(repr=False)


class Message(_Field):
    """A message, whose content is private."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Part] = Field(repr=False)

    @property
    def texts(self) -> list[str]:
        """Its text, part by part."""
        return [self.content] if isinstance(self.content, str) else [part.text for part in self.content]

    def saying(self, texts: Iterator[str]) -> dict[str, object]:
        """The message with its texts replaced by the next ones of `texts`."""
        if isinstance(self.content, str):
            return {"role": self.role, "content": next(texts)}
        return {"role": self.role, "content": [{"type": "text", "text": next(texts)} for _ in self.content]}


class ResponseFormat(_Field):
    """Text or free-form JSON; schemas are refused because they hold text."""

    type: Literal["text", "json_object"]


class StreamOptions(_Field):
    """Stream options."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


Penalty = Annotated[float, Field(ge=-2, le=2)]
Count = Annotated[int, Field(ge=1, le=1 << 24)]


class Asked(_Field):
    """A request: messages, and fields that hold no text."""

    model: str = Field(pattern=r"^[A-Za-z0-9_.:/-]{1,200}$")
    messages: list[Message] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    logprobs: Literal[False] | None = None
    n: Annotated[int, Field(ge=1, le=128)] | None = None
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None

    @classmethod
    def parse(cls, body: bytes) -> "Asked":
        """The request in a body; `RequestError` if it has any field or value that is not declared here."""
        try:
            return cls.model_validate_json(body)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
        raise _refusal(
            [(each["type"], each["loc"]) for each in found]
        )  # raised out here: the caught error holds the body

    @property
    def texts(self) -> list[str]:
        """The texts of all messages, part by part."""
        return [text for message in self.messages for text in message.texts]

    def saying(self, texts: Iterable[str]) -> dict[str, object]:
        """The request with its texts replaced by `texts`, of the same number and order."""
        following = iter(texts)
        messages = [message.saying(following) for message in self.messages]
        return {**self.model_dump(exclude_none=True, exclude={"messages"}), "messages": messages}


_NAMES = frozenset().union(*(model.model_fields for model in (Asked, Message, Part, ResponseFormat, StreamOptions)))


def _refusal(found: list[tuple[str, tuple[int | str, ...]]]) -> RequestError:
    """Why a request is refused. Names other than OpenAI's are not repeated, as they may hold text."""
    extra = [loc[-1] for kind, loc in found if kind == "extra_forbidden"]
    if extra:
        name = next((str(name) for name in extra if name in UNPROTECTED), None)
        if name is None:
            return RequestError(
                400, "a field with an unknown name cannot be protected; leave it out", code="unprotected"
            )
        return RequestError(400, f"{name} cannot be protected", param=name, code="unprotected")
    kind, loc = found[0]
    name = ".".join(str(part) for part in loc if isinstance(part, int) or part in _NAMES)
    if kind == "json_invalid" or not name:
        return RequestError(400, "the body must be a JSON object")
    if loc[0] in UNPROTECTED:
        return RequestError(400, f"{loc[0]} cannot be protected with this value", param=name, code="unprotected")
    return RequestError(
        400, f"{name} is missing" if kind == "missing" else f"{name} has the wrong type or is out of range", param=name
    )


# ---- answers ---------------------------------------------------------------------------------------------------------

SAID = ("content", "refusal")
"""The text fields of a message."""


class Said(BaseModel):
    """A message of an answer, or what a stream chunk adds to one."""

    role: str | None = None
    content: str | None = Field(default=None, repr=False)
    refusal: str | None = Field(default=None, repr=False)


class Choice(BaseModel):
    """One of the choices of an answer."""

    index: int
    message: Said | None = None
    delta: Said | None = None
    finish_reason: str | None = None


class Usage(BaseModel):
    """Token counts of an answer."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Answer(BaseModel):
    """An answer, or a chunk of a stream. Fields not declared here are dropped."""

    id: str
    object: str
    created: int
    model: str
    system_fingerprint: str | None = None
    choices: list[Choice]
    usage: Usage | None = None


class AnswerRestorer:
    """Restores the answer to one request, all its choices, whole or chunk by chunk.

    Args:
        session: the session in which the request was privatized.
        json: whether the answer is JSON, so that originals must be escaped.
    """

    def __init__(self, session: Session, *, json: bool) -> None:
        self._session = session
        self._escape: Literal["none", "json"] = "json" if json else "none"
        self._restorers: dict[tuple[int, str], Restorer] = {}
        self._last: Answer | None = None
        self._ended = False
        self._said: dict[int, tuple[list[str], list[str]]] = {}

    @property
    def answers(self) -> list[tuple[str, str]]:
        """What each choice says, as it came and as it was restored."""
        return [("".join(came), "".join(restored)) for came, restored in self._said.values()]

    def _note(self, index: int, field: str, came: str, restored: str) -> None:
        if field == "content":
            both = self._said.setdefault(index, ([], []))
            both[0].append(came)
            both[1].append(restored)

    @property
    def ended(self) -> bool:
        """Whether every choice that started has finished."""
        return self._ended and not self._restorers

    def whole(self, answer: Answer) -> Answer:
        """A complete answer, restored."""
        for choice in answer.choices:
            for field, text in _texts(choice.message):
                restored = self._session.restore(text, escape=self._escape)
                setattr(choice.message, field, restored)
                self._note(choice.index, field, text, restored)
        return answer

    def feed(self, piece: Answer) -> Iterator[Answer]:
        """A chunk of a stream, restored; the held-back rest of a choice comes before the chunk that ends it."""
        self._last = piece
        for choice in piece.choices:
            for field, text in _texts(choice.delta):
                key = choice.index, field
                if key not in self._restorers:
                    self._restorers[key] = self._session.restorer(escape=self._escape)
                restored = self._restorers[key].feed(text)
                setattr(choice.delta, field, restored)
                self._note(choice.index, field, text, restored)
            if choice.finish_reason is not None:
                self._ended = True
                said, choice.delta = choice.delta or Said(), Said()
                yield from self._rest(piece, choice.index, said)
        yield piece

    def close(self) -> Iterator[Answer]:
        """What was held back of choices that the stream left unfinished."""
        if self._last is not None:
            for index in sorted({index for index, _ in self._restorers}):
                yield from self._rest(self._last, index, Said())

    def _rest(self, piece: Answer, index: int, said: Said) -> Iterator[Answer]:
        for field in SAID:
            restorer = self._restorers.pop((index, field), None)
            if restorer is not None:
                rest = restorer.close()
                setattr(said, field, (getattr(said, field) or "") + rest)
                self._note(index, field, "", rest)
        if said.content or said.refusal:
            choice = Choice(index=index, delta=said, finish_reason=None)
            yield piece.model_copy(update={"choices": [choice], "usage": None})


def _texts(said: Said | None) -> list[tuple[str, str]]:
    found = [(field, getattr(said, field)) for field in SAID] if said is not None else []
    return [(field, text) for field, text in found if text is not None]
