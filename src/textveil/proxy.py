"""A local proxy before an API that speaks the chat completions of OpenAI: it sees released text, the client the restored.

In: requests of any OpenAI client whose base URL is the proxy's. Out: the upstream's answers, whole or as streams.
Not here: what is protected (`pipeline`), the way back (`session`). State: one session per request, and nothing after it.

What it does not know it does not pass on, in both directions: requests and answers are rebuilt from lists of fields.
A conversation is sent whole with every request, so its earlier messages are drawn anew and spend anew each time.
"""

import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Annotated, Any, Literal

import httpx2
import uvicorn
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from textveil.endpoint import Address
from textveil.errors import ConfigError
from textveil.guarantee import Guarantee, summarize
from textveil.options import options
from textveil.pipeline import Privatizer
from textveil.restore import Restorer
from textveil.session import Session

STATEMENT = "textveil-statement"
"""The header of an answer that tells the promise for its request."""

# ---- what may go up --------------------------------------------------------------------------------------------------

REFUSED = frozenset(
    "audio file file_id function_call functions image_url input_audio logit_bias logprobs metadata modalities name "
    "parallel_tool_calls prediction prompt_cache_key refusal response_format safety_identifier service_tier stop store "
    "tool_call_id tool_calls tool_choice tools top_logprobs user verbosity web_search_options".split()
)
"""Fields of OpenAI's reference that hold text, or make an answer that does: refused by name. Other names are text."""


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Part(_Sent):
    """A part of a message."""

    type: Literal["text"]
    text: str


class Message(_Sent):
    """A message of a request; what it says is privatized."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Part]

    def texts(self) -> list[str]:
        """What it says, part by part."""
        return [self.content] if isinstance(self.content, str) else [part.text for part in self.content]

    def released(self, texts: Iterator[str]) -> dict[str, object]:
        """The message with the next of these texts in the place of its own."""
        if isinstance(self.content, str):
            return {"role": self.role, "content": next(texts)}
        return {"role": self.role, "content": [{"type": "text", "text": next(texts)} for _ in self.content]}


class ResponseFormat(_Sent):
    """Text or any JSON; a schema would hold text."""

    type: Literal["text", "json_object"]


class StreamOptions(_Sent):
    """Options of a stream."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


Number = Annotated[float, Field(ge=-2, le=2)]
Count = Annotated[int, Field(ge=1, le=1 << 24)]


class Asked(_Sent):
    """A request: messages, which are privatized, and fields that hold no text."""

    model: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:/-]{1,200}$")]
    messages: Annotated[list[Message], Field(min_length=1)]
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
    presence_penalty: Number | None = None
    frequency_penalty: Number | None = None


# ---- what may come back ----------------------------------------------------------------------------------------------


class Said(BaseModel):
    """A message of an answer, or what a stream adds to one."""

    role: str | None = None
    content: str | None = None
    refusal: str | None = None


class Choice(BaseModel):
    """One of the answers to a request."""

    index: int
    message: Said | None = None
    delta: Said | None = None
    finish_reason: str | None = None


class Usage(BaseModel):
    """How many tokens an answer took."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Answer(BaseModel):
    """An answer, or a piece of a stream; unknown fields are dropped."""

    id: str
    object: str
    created: int
    model: str
    system_fingerprint: str | None = None
    choices: list[Choice]
    usage: Usage | None = None


class Restoring:
    """The way back for the answers to one request, whole or piece by piece."""

    def __init__(self, session: Session, escape: Literal["none", "json"]) -> None:
        self._session, self._escape = session, escape
        self._restorers: dict[tuple[int, str], Restorer] = {}
        self._ended = False

    @property
    def finished(self) -> bool:
        """Whether every choice that has begun is at its end."""
        return self._ended and not self._restorers

    def whole(self, answer: Answer) -> Answer:
        """A whole answer, restored."""
        for choice in answer.choices:
            for field, text in _texts(choice.message):
                setattr(choice.message, field, self._session.restore(text, escape=self._escape))
        return answer

    def pieces(self, answer: Answer) -> Iterator[Answer]:
        """A piece of a stream, restored; before the piece that ends a choice, what was held back of it."""
        for choice in answer.choices:
            for field, text in _texts(choice.delta):
                key = choice.index, field
                if key not in self._restorers:
                    self._restorers[key] = self._session.restorer(escape=self._escape)
                setattr(choice.delta, field, self._restorers[key].feed(text))
            if choice.finish_reason is not None:
                self._ended = True
                yield from self._rest(answer, choice)
        yield answer

    def _rest(self, answer: Answer, choice: Choice) -> Iterator[Answer]:
        """The end of a choice: all that was said goes before the piece that says so."""
        said = choice.delta or Said()
        choice.delta = Said()
        for field in ("content", "refusal"):
            restorer = self._restorers.pop((choice.index, field), None)
            if restorer is not None:
                setattr(said, field, (getattr(said, field) or "") + restorer.close())
        if said.content or said.refusal:
            before = Choice(index=choice.index, delta=said, finish_reason=None)
            yield answer.model_copy(update={"choices": [before]})


def _texts(said: Said | None) -> Iterator[tuple[str, str]]:
    for field in ("content", "refusal"):
        text = getattr(said, field, None)
        if text is not None:
            yield field, text


# ---- the proxy -------------------------------------------------------------------------------------------------------


class Refused(Exception):
    """A request that gets no answer. The message is one line without text of requests or answers."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.body = {"error": {"message": f"textveil: {message}", "type": kind, "param": param, "code": code}}


@options("proxy.")
class Proxy:
    """A proxy for one upstream.

    It forwards the key that a client sends and nothing else of its headers, follows no redirects, and keeps no cookies.
    Proxies of the environment are used under https only, where they cannot read along.

    Attributes:
        privatizer: protects every message of a request, whatever its role.
        upstream: where the API begins, such as https://HOST/v1.
        timeout: seconds that the upstream may be silent, above 0.
        limit: bytes that a request may have.
    """

    privatizer: Privatizer
    upstream: Address
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    limit: Annotated[int, Field(ge=1)] = 4_000_000

    def application(self) -> Starlette:
        """What a server of ASGI serves: POST /v1/chat/completions, and GET /health."""
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/health", lambda _: PlainTextResponse("ok"), methods=["GET"]),
            ],
            lifespan=self._connected,
        )

    @asynccontextmanager
    async def _connected(self, _: Starlette) -> AsyncIterator[dict[str, object]]:
        async with httpx2.AsyncClient(
            headers={"User-Agent": "textveil", "Accept-Encoding": "identity"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            timeout=self.timeout,
            follow_redirects=False,
            trust_env=self.upstream.lower().startswith("https:"),
        ) as client:
            yield {"client": client}

    async def _complete(self, request: Request) -> Response:
        try:
            asked = _checked(await self._body(request))
            session = Session()
            messages, statement = await run_in_threadpool(self._privatize, asked.messages, session)
            upstream = await self._send(request, asked, messages)
            json_only = asked.response_format is not None and asked.response_format.type == "json_object"
            restoring = Restoring(session, "json" if json_only else "none")
            if asked.stream:
                return StreamingResponse(
                    _events(upstream, restoring), media_type="text/event-stream", headers={STATEMENT: statement}
                )
            answer = await run_in_threadpool(restoring.whole, await _answer(upstream))
            return JSONResponse(answer.model_dump(exclude_unset=True), headers={STATEMENT: statement})
        except Refused as refused:
            return JSONResponse(refused.body, refused.status)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except Exception as error:  # its message may hold text, and a server would log it
            return JSONResponse(Refused(500, f"the proxy failed with {type(error).__name__}").body, 500)

    async def _body(self, request: Request) -> bytes:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, "a request must be application/json")  # so that no page of the web can send one
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > self.limit:
                raise Refused(413, f"a request must have at most {self.limit:,} bytes")
        return bytes(body)

    def _privatize(self, messages: list[Message], session: Session) -> tuple[list[dict[str, object]], str]:
        """The messages as they are released, and what is promised of them."""
        texts = [text for message in messages for text in message.texts()]
        try:
            results = list(self.privatizer.privatize_many(texts, session))
            statement = _statement([result.guarantee for result in results])
        except Exception as error:
            failure = type(error).__name__
        else:
            if len(results) == len(texts):
                released = iter([result.text for result in results])
                return [message.released(released) for message in messages], statement
            failure = "another number of texts"
        raise Refused(500, f"the messages could not be privatized ({failure}), and nothing was sent")

    async def _send(self, request: Request, asked: Asked, messages: list[dict[str, object]]) -> httpx2.Response:
        """The upstream's answer, of which the head is there."""
        client: httpx2.AsyncClient = request.state.client
        key = request.headers.get("authorization")
        to_send = client.build_request(
            "POST",
            self.upstream.rstrip("/") + "/chat/completions",
            json={**asked.model_dump(exclude_none=True), "messages": messages},
            headers={} if key is None else {"Authorization": key},
        )
        with _upstream_failures():
            response = await client.send(to_send, stream=True)
        if response.status_code != 200:
            await response.aclose()  # what it says may repeat what it was asked
            status = response.status_code if response.status_code >= 400 else 502
            raise Refused(status, f"the upstream refused with status {response.status_code}", code="upstream")
        return response


def _checked(body: bytes) -> Asked:
    try:
        return Asked.model_validate_json(body)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
    raise _refusal([(each["type"], each["loc"]) for each in found])


def _refusal(found: list[tuple[str, tuple[int | str, ...]]]) -> Refused:
    """Why a request is refused. Names that are not OpenAI's are not repeated: they are text."""
    extra = [loc for kind, loc in found if kind == "extra_forbidden"]
    if extra:
        name = next((loc[-1] for loc in extra if loc[-1] in REFUSED), None)
        if name is None:
            return Refused(400, "the request has a field that is not known, so it is not protected", code="unknown")
        return Refused(400, f"the field {name} is not protected", param=str(name), code="unprotected")
    kind, loc = found[0]
    if kind == "json_invalid" or not loc:
        return Refused(400, "the body must be a JSON object")
    names = {*Asked.model_fields, *Message.model_fields, *Part.model_fields, *StreamOptions.model_fields}
    name = ".".join(str(part) for part in loc if isinstance(part, int) or part in names)
    if str(loc[0]) in REFUSED:
        return Refused(400, f"the field {loc[0]} is not protected with this value", param=name, code="unprotected")
    return Refused(
        400, f"{name} {'is missing' if kind == 'missing' else 'is of another type or out of range'}", param=name
    )


def _statement(guarantees: list[Guarantee]) -> str:
    """The promise for all messages of a request, as JSON for a header."""
    document = summarize(guarantees).to_json()
    shown = ("mechanism", "kind", "metric", "epsilon", "epsilon_ldp", "unit", "words", "protected")
    return json.dumps({name: document[name] for name in shown})


@contextmanager
def _upstream_failures() -> Iterator[None]:
    try:
        yield
        return
    except httpx2.TimeoutException:
        refused = Refused(504, "the upstream must answer in time, and did not", code="upstream")
    except (httpx2.HTTPError, httpx2.StreamError):
        refused = Refused(502, "the upstream must be reachable and answer to the end", code="upstream")
    raise refused


async def _answer(response: httpx2.Response) -> Answer:
    """A whole answer of the upstream."""
    try:
        with _upstream_failures():
            body = await response.aread()
        answer = Answer.model_validate_json(body)
        if answer.choices and all(choice.message is not None for choice in answer.choices):
            return answer
    except ValidationError:
        pass
    finally:
        await response.aclose()
    raise Refused(502, "the upstream must answer with a completion, and did not", code="upstream")


async def _events(response: httpx2.Response, restoring: Restoring) -> AsyncIterator[str]:
    """A stream of the upstream, restored. One that breaks off ends with an error, and without [DONE]."""
    done = False
    try:
        async for event in httpx2.EventSource(response):
            done = event.data == "[DONE]"
            if done:
                break
            for piece in restoring.pieces(Answer.model_validate_json(event.data)):
                yield _event(piece.model_dump_json(exclude_unset=True))
    except Exception:  # noqa: S110 - what it says may hold text
        pass
    finally:
        await response.aclose()
    if done or restoring.finished:
        yield _event("[DONE]")
    else:
        yield _event(json.dumps(Refused(502, "the answer of the upstream broke off", code="upstream").body))


def _event(data: str) -> str:
    return f"data: {data}\n\n"


# ---- the server ------------------------------------------------------------------------------------------------------

GRACE = 5
"""Seconds that answers under way have when the server stops."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound; port 0 takes any that is free.

    Raises:
        ConfigError: the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        reason = error.strerror or type(error).__name__
    raise ConfigError(f"proxy.host and proxy.port must be an address of this machine that is free: {reason}")


def server(proxy: Proxy) -> uvicorn.Server:
    """A server that logs no requests; `run(sockets=[listen(...)])` serves until SIGINT or SIGTERM."""
    return uvicorn.Server(
        uvicorn.Config(
            proxy.application(),
            lifespan="on",
            http="h11",
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
    )
