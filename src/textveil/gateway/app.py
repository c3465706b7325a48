"""A local proxy for a chat completions API: the upstream sees released text, the client restored answers.

In: requests of any OpenAI client with the proxy as base URL. Out: the upstream's answers, whole or streamed.
Not here: which fields pass (`completions`), what is protected (`pipeline`), how answers are restored (`session`).

Clients send the whole conversation with every request. Each message is released once, and sent again as it was
(`session.chains`); so what a conversation tells and spends does not grow with the number of its requests.
"""

import json
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError

from textveil.config import options
from textveil.config.extras import needed
from textveil.errors import ConfigError, LimitReached, StoreError, TextveilError
from textveil.gateway.completions import Answer, AnswerRestorer, Asked, RequestError
from textveil.guarantee import summarize
from textveil.models import Address
from textveil.pipeline import Privatizer
from textveil.randomness import os_entropy
from textveil.session import MessageChain, Session, SessionStore, Utterance

if TYPE_CHECKING:
    import httpx2
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

STATEMENT = "textveil-statement"
"""Response header with the guarantee of the request, as JSON."""

RETRY = "idempotency-key"
"""Request header with the client's name of a request: the same name goes with the same request only."""

PROMISE = ("mechanism", "kind", "metric", "epsilon", "epsilon_ldp", "unit", "words", "protected")
"""Its fields: the largest bound per word, over all messages; besides, how many messages were drawn and repeated."""

LONGEST = 255
"""Characters of the longest name of a request."""

OTHER = (
    "this Idempotency-Key was used for another request, or under other options of the proxy: give it to the same "
    "request only, and a new key to a new request. Nothing was sent"
)

GRACE = 5
"""Seconds for open responses to finish when the server stops."""


@options("proxy.")
class Proxy:
    """A proxy for one upstream.

    It forwards the client's key and no other header, follows no redirects and keeps no cookies. Proxies from the
    environment are used for https only, where they cannot read the traffic. It fails closed: what cannot be
    protected or privatized is refused, and nothing is sent.

    A client's conversations are those of its key: no two keys share any. Clients without a key share those of this
    proxy, until it ends.

    Attributes:
        privatizer: protects every message of a request, in any role.
        upstream: base URL of the API, such as https://HOST/v1.
        timeout: seconds to wait for data from the upstream, above 0.
        limit: largest request, in bytes.
        store: keeps what became of messages; in memory, where none is given.
    """

    privatizer: Privatizer
    upstream: Address
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    limit: Annotated[int, Field(ge=1)] = 4_000_000
    store: SessionStore = Field(default_factory=SessionStore)

    def __post_init__(self) -> None:
        if self.privatizer.words.lasting:
            raise ConfigError(
                "words.lasting is for sessions that are named, and a proxy has conversations: leave it out"
            )

    @cached_property
    def _nobody(self) -> str:
        return f"no-key-{self.store.pseudonym(os_entropy(32))}"

    @cached_property
    def _basis(self) -> str:
        """All that a release depends on besides messages."""
        parts, claim, table = self.privatizer, self.privatizer.claim, self.privatizer.table
        options = [
            parts.words,
            parts.budget,
            parts.names and parts.names.options,
            parts.figures and parts.figures.options,
        ]
        said = [claim.mechanism, claim.options, claim.table, table.metric, table.digest, parts.randomness.seeded]
        return json.dumps([said, list(map(repr, options))], default=repr, sort_keys=True)

    def application(self) -> "Starlette":
        """The ASGI application: POST /v1/chat/completions and GET /health."""
        with needed():
            from starlette.applications import Starlette
            from starlette.responses import PlainTextResponse
            from starlette.routing import Route

        routes = [
            Route("/v1/chat/completions", self._complete, methods=["POST"]),
            Route("/health", lambda _: PlainTextResponse("ok"), methods=["GET"]),
        ]
        return Starlette(routes=routes, lifespan=self._connected)

    @asynccontextmanager
    async def _connected(self, _: "Starlette") -> AsyncIterator[dict[str, object]]:
        with needed():
            import httpx2

        async with httpx2.AsyncClient(
            headers={"User-Agent": "textveil", "Accept-Encoding": "identity"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            timeout=self.timeout,
            follow_redirects=False,
            trust_env=self.upstream.lower().startswith("https:"),
        ) as client:
            yield {"client": client}

    async def _complete(self, request: "Request") -> "Response":
        from starlette.concurrency import run_in_threadpool
        from starlette.requests import ClientDisconnect
        from starlette.responses import JSONResponse, Response, StreamingResponse

        try:
            asked = Asked.parse(await self._body(request))
            key, retry = request.headers.get("authorization"), request.headers.get(RETRY)
            released, chain, promise = await run_in_threadpool(self._privatize, asked, key, retry)
            answer = await self._send(request, released)
            as_json = asked.response_format is not None and asked.response_format.type == "json_object"
            restorer, said = AnswerRestorer(chain.session, json=as_json), {STATEMENT: promise}
            if asked.stream:
                events = _events(answer, restorer, chain)
                return StreamingResponse(events, headers=said, media_type="text/event-stream")
            whole = await run_in_threadpool(restorer.whole, await _read(answer))
            with suppress(TextveilError):  # the answer is there; only the next request will not know it
                await run_in_threadpool(chain.answered, restorer.answers)
            return JSONResponse(whole.model_dump(exclude_unset=True), headers=said)
        except RequestError as error:
            return JSONResponse(error.to_json(), error.status)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody will read it
        except Exception as error:  # caught here: the server would log its message, which may hold text
            failure = RequestError(500, f"the proxy failed with {type(error).__name__}")
            return JSONResponse(failure.to_json(), failure.status)

    async def _body(self, request: "Request") -> bytes:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RequestError(
                415, "a request must have the type application/json"
            )  # which web pages cannot send cross-site
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > self.limit:
                raise RequestError(413, f"a request must have at most {self.limit:,} bytes")
        return bytes(body)

    def _privatize(
        self, asked: Asked, key: str | None, retry: str | None = None
    ) -> tuple[dict[str, object], MessageChain, str]:
        """The released request, its chain, and its guarantee.

        Args:
            asked: the request.
            key: the client's key; None without one.
            retry: the client's name of the request; None without one.
        """
        if retry is not None and not (0 < len(retry) <= LONGEST and retry.isprintable()):
            raise RequestError(400, f"Idempotency-Key must have 1 to {LONGEST} printable characters")
        try:
            account = self._nobody if key is None else f"client-{self.store.pseudonym(key.encode())}"
            messages = [Utterance(message.role, tuple(message.texts)) for message in asked.messages]
            links = self.store.links(account)
            if retry is not None and not MessageChain.is_retry(links, retry, self._asked(asked)):
                raise RequestError(422, OTHER, code="idempotency")
            chain = MessageChain(links, account, self._basis, messages)
            chain.release(self._released)
            released = asked.saying([text for link in chain.links for text in link.released])
            promise = largest([link.promise for link in chain.links if link.promise is not None])
            known = chain.session.snapshot().losses
            counts = {"drawn": chain.drawn, "repeated": len(chain.links) - chain.drawn}
            more = {"per_person": [known[of].to_json() for of in sorted(known)], "said": said(**counts)}
            return released, chain, json.dumps(promise | counts | more)
        except RequestError:
            raise
        except (LimitReached, StoreError) as error:
            refused = isinstance(error, LimitReached)
            failure = RequestError(403 if refused else 500, str(error), code="limit" if refused else "store")
        except Exception as error:
            kind = type(error).__name__
            failure = RequestError(500, f"the messages could not be privatized ({kind}); nothing was sent")
        raise failure

    def _asked(self, asked: Asked) -> bytes:
        """All that what is sent upstream depends on."""
        return json.dumps([self._basis, asked.model_dump()], sort_keys=True).encode()

    def _released(self, message: Utterance, session: Session) -> tuple[list[str], dict[str, object]]:
        """The texts of a message, and what is promised about them."""
        results = list(self.privatizer.privatize_many(message.texts, session))
        texts = [result.text for result, _ in zip(results, message.texts, strict=True)]
        if not results:
            return texts, {}
        promise = summarize([result.guarantee for result in results]).to_json()
        return texts, {name: promise[name] for name in PROMISE}

    async def _send(self, request: "Request", released: dict[str, object]) -> "httpx2.Response":
        """The upstream's response to a released request; only its headers are read."""
        client: httpx2.AsyncClient = request.state.client
        key = request.headers.get("authorization")
        url = f"{self.upstream.rstrip('/')}/chat/completions"
        to_send = client.build_request("POST", url, json=released, headers={"Authorization": key} if key else None)
        with _failures():
            answer = await client.send(to_send, stream=True)
        if answer.status_code == 200:
            return answer
        await answer.aclose()  # unread, as it may repeat the request
        status = answer.status_code if answer.status_code >= 400 else 502
        raise RequestError(status, f"the upstream refused with status {answer.status_code}", code="upstream")


@contextmanager
def _failures() -> Iterator[None]:
    """Turns failures of the upstream into errors for the client."""
    import httpx2

    try:
        yield
        return
    except httpx2.TimeoutException:
        failure = RequestError(504, "the upstream timed out", code="upstream")
    except httpx2.HTTPError:
        failure = RequestError(502, "the upstream cannot be reached, or broke off", code="upstream")
    raise failure


async def _read(response: "httpx2.Response") -> Answer:
    """A complete answer."""
    with _failures():
        body = await response.aread()
    with suppress(ValidationError):
        answer = Answer.model_validate_json(body)
        if answer.choices and all(choice.message is not None for choice in answer.choices):
            return answer
    raise RequestError(502, "the upstream did not answer with a chat completion", code="upstream")


def largest(promises: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The promise about several messages of one configuration: the largest bound per word of any, and all words."""
    said = [each for each in promises if each]
    if not said:
        return {}
    made = {name: said[0][name] for name in PROMISE}
    for name in ("epsilon", "epsilon_ldp"):
        values = [each[name] for each in said]
        made[name] = next((each for each in values if not isinstance(each, int | float)), None) or max(values)
    for name in ("words", "protected"):
        made[name] = sum(each[name] for each in said)
    if any(each["kind"] == "none" for each in said):
        made["kind"] = "none"
    return made


def said(drawn: int, repeated: int) -> str:
    """How often the messages of a request were drawn, and what that means for the promise."""
    now = f"{drawn:,} {'message was' if drawn == 1 else 'messages were'} drawn for this request"
    are, they = ("is", "it was") if repeated == 1 else ("are", "they were")
    again = f"; {repeated:,} {are} sent again as {they}: drawn once, released again, spent once" if repeated else ""
    return f"{now}{again}. The promise is for one release; repeated releases add up."


async def _events(response: "httpx2.Response", restorer: AnswerRestorer, chain: MessageChain) -> AsyncIterator[str]:
    """A restored stream. If it breaks off, it ends with an error and without [DONE]."""
    import httpx2
    from starlette.concurrency import run_in_threadpool

    whole = False
    try:
        with suppress(Exception):  # the exception may hold text
            async for event in httpx2.EventSource(response):
                whole = event.data == "[DONE]"
                for piece in restorer.close() if whole else restorer.feed(Answer.model_validate_json(event.data)):
                    yield _event(piece.model_dump_json(exclude_unset=True))
                if whole:
                    break
    finally:
        await response.aclose()
    if whole or restorer.ended:
        with suppress(TextveilError):  # as above
            await run_in_threadpool(chain.answered, restorer.answers)
        yield _event("[DONE]")
    else:
        yield _event(json.dumps(RequestError(502, "the answer broke off", code="upstream").to_json()))


def _event(data: str) -> str:
    return f"data: {data}\n\n"


# ---- the server ------------------------------------------------------------------------------------------------------


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to an address of this machine; port 0 picks a free one.

    Raises:
        ConfigError: the address is not available.
    """
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        # Inherited by connections. Without it, each answer waits 40 ms for the client to acknowledge its headers.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        reason = error.strerror or type(error).__name__
    raise ConfigError(f"host and port must be a free address of this machine: {reason}")


def server(proxy: Proxy) -> "uvicorn.Server":
    """A server that does not log requests: `server(proxy).run(sockets=[listen(host, port)])` serves until a signal."""
    with needed():
        import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            proxy.application(),
            http="h11",
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
    )
