"""The gateway: the upstream sees released text, the client restored answers.

In: requests of any client of the APIs in `protocols`, with the gateway as base URL. Out: the upstream's answers.
Not here: which values are text (`protocols`), how texts are released (`releasing`) and answers restored (`answers`),
and the process that serves (`serving`).

Clients send the whole conversation with every request. Each message is released once, and sent again as it was
(`session.chains`); so what a conversation tells and spends does not grow with the number of its requests.
"""

import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import cached_property, partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field

from textveil.config import options
from textveil.config.extras import needed
from textveil.errors import ConfigError, InputError, LimitReached, StoreError, TextveilError
from textveil.gateway.answers import Restoring
from textveil.gateway.errors import RequestError
from textveil.gateway.guarding import Guarding
from textveil.gateway.policy import Policy
from textveil.gateway.process import Running, ServingProcess, unless_left
from textveil.gateway.protocols import REFERENCE, Event, Guardrail, Operation, Stream, operations
from textveil.gateway.record import RequestRecord
from textveil.gateway.releasing import Releasing, largest, told
from textveil.gateway.requests import Asked, all_signed, message_of
from textveil.gateway.upstream import failing, headers_of, json_of, refusal_of, stream_of, worded
from textveil.models import Address
from textveil.pipeline import Privatizer
from textveil.session import Heads, MessageChain, Session, SessionStore, Utterance

if TYPE_CHECKING:
    import httpx2
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

STATEMENT = "textveil-statement"
"""Response header with the guarantee of the request, as JSON: the largest bound per word, over all messages; besides,
how many messages were drawn and repeated."""

PROTECTED = "textveil-protected"
"""Response header that says how much of each type was hidden: PERSON=2, EMAIL=1."""

UNRESOLVED = "textveil-unresolved"
"""Response header of a whole answer: how many placeholders in it were not restored."""

DRY_RUN = "textveil-dry-run"
"""Request header: with 1, what would be sent is answered, and nobody is asked."""

REQUEST_ID = "textveil-request-id"
"""Response header with the name of the request, which the audit log and traces have too."""

RETRY = "idempotency-key"
"""Request header with the client's name of a request: the same name goes with the same request only."""

LONGEST = 255
"""Characters of the longest name of a request."""

OTHER = (
    "this Idempotency-Key was used for another request, or under other options of the gateway: give it to the same "
    "request only, and a new key to a new request. Nothing was sent"
)

UNPROTECTED = "textveil-unprotected"
"""Response header that says how many values were sent as they are, because the policy lets media pass."""

LEFT_OUT = "textveil-left-out"
"""Response header that says how many values were not sent: what the policy drops because nobody knows it, and what the
upstream signed where that is not known here."""

DEEPEST = 100
"""Levels of objects and lists in a request."""

UNKNOWN_ROUTE = "unknown"
"""What records call the operation of a request that no API has."""

EXAMPLE = Utterance(
    "user", ("Maria Silva moved to 12 Oak Road, Lisbon, on 3 May 2024: anna@example.org, 212-555-0148.",)
)
"""Has something to find for each detector, so that all are loaded."""

UNKNOWN = (
    "what the upstream would remember here is not known: it was not asked here with this key, or too long ago. "
    "Send the whole conversation instead. Nothing was sent"
)


@options("gateway.")
class Gateway:
    """A gateway for one upstream.

    It forwards the client's key and no other header but those that say the version of an API, follows no redirects and
    keeps no cookies. Proxies from the environment are used for https only, where they cannot read the traffic. It fails
    closed: what cannot be protected or privatized is refused, and nothing is sent.

    A client's conversations are those of its key: no two keys share any. Clients without a key share those of this
    gateway, until it ends.

    Attributes:
        privatizer: protects every message of a request, in any role.
        upstream: base URL of the API, such as https://HOST/v1.
        policy: what becomes of what cannot be protected.
        timeout: seconds to wait for data from the upstream, above 0.
        limit: largest request, in bytes.
        store: keeps what became of messages; in memory, where none is given.
        running: how it is run.
    """

    privatizer: Privatizer
    upstream: Address
    policy: Policy = Field(default_factory=Policy)
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    limit: Annotated[int, Field(ge=1)] = 4_000_000
    store: SessionStore = Field(default_factory=SessionStore)
    running: Running = Field(default_factory=Running)

    def __post_init__(self) -> None:
        if self.privatizer.words.lasting:
            raise ConfigError(
                "words.lasting is for sessions that are named, and a gateway has conversations: leave it out"
            )

    @cached_property
    def _nobody(self) -> str:
        return f"no-key-{self.store.pseudonym(self.running.nobody)}"

    @cached_property
    def _heads(self) -> Heads:
        return Heads()

    @cached_property
    def _guarding(self) -> Guarding:
        return Guarding(self._basis)

    @cached_property
    def _releasing(self) -> Releasing:
        found = ("patterns", "structure")
        schemas = Privatizer.from_profile("prompt", protect={"level": "identifiers", "detectors": found})
        return Releasing(self.privatizer, schemas)

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
        protect = parts.grouping and parts.grouping.options
        secret = ("always", "always_matching", "never", "never_matching", "important", "task")  # counted in the claim
        lists = self.store.pseudonym(repr([getattr(protect, name, None) for name in secret]).encode())
        return json.dumps([said, list(map(repr, options)), lists], default=repr, sort_keys=True)

    def application(self) -> "Starlette":
        """The ASGI application: the routes of all APIs, with /v1 before them or without, and GET /health."""
        with needed():
            from starlette.applications import Starlette
            from starlette.responses import JSONResponse, PlainTextResponse, Response
            from starlette.routing import Route

        served = operations()
        shown = ", ".join(f"{each.method} /v1{each.path.replace(':path', '')}" for each in served)

        async def unknown(request: "Request", _: Exception) -> "Response":
            asked = "websockets are not served" if "upgrade" in request.headers else "there is no such route here"
            refused = RequestError(404, f"{asked}; served are {shown}")
            record = RequestRecord(UNKNOWN_ROUTE)
            with request.state.process.recorded(record, None):
                record.failed(refused)
                return JSONResponse(served[0].error(refused), 404)

        async def metrics(request: "Request") -> "Response":
            if not request.state.process.shows_metrics(request):
                return await unknown(request, Exception())
            content, kind = request.state.process.metrics.page()
            return Response(content, media_type=kind)

        async def ready(request: "Request") -> "Response":
            process: ServingProcess = request.state.process
            return await process.ready(request)

        routes = [
            Route(f"{prefix}{each.path}", _Served(self, each), methods=[each.method])
            for each in served
            for prefix in ("/v1", "")
        ]
        probes = {"/health": lambda _: PlainTextResponse("ok"), "/ready": ready, "/metrics": metrics}
        routes += [Route(path, answer, methods=["GET"]) for path, answer in probes.items()]
        return Starlette(routes=routes, lifespan=self._connected, exception_handlers={404: unknown, 405: unknown})

    def load(self) -> None:
        """Load what releases need: a text that everybody knows is released for nobody."""
        self._releasing(EXAMPLE, Session())

    @asynccontextmanager
    async def _connected(self, _: "Starlette") -> AsyncIterator[dict[str, object]]:
        with needed():
            import httpx2

        async with (
            httpx2.AsyncClient(
                headers={"User-Agent": "textveil", "Accept-Encoding": "identity"},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                timeout=self.timeout,
                follow_redirects=False,
                trust_env=self.upstream.lower().startswith("https:"),
            ) as client,
            ServingProcess.serving(self, client) as process,
        ):
            yield {"client": client, "process": process}

    async def answer(self, request: "Request", operation: Operation, record: RequestRecord) -> "Response":
        """The answer to one request; what happens to it is noted in its record."""
        from starlette.requests import ClientDisconnect
        from starlette.responses import JSONResponse, Response

        process: ServingProcess = request.state.process
        try:
            process.admit()
            body = _query(request, operation)
            if operation.has_body:
                body = await self._body(request) | body
            record.asks_for(body.get("model"))
            return await unless_left(request, process.unless_stopped(self._answered(request, operation, body, record)))
        except RequestError as error:
            failure = error
        except ClientDisconnect:
            record.left()
            return Response(status_code=400)  # nobody will read it
        except Exception as error:  # caught here: the server would log its message, which may hold text
            failure = RequestError(500, f"the gateway failed with {type(error).__name__}")
        record.failed(failure)
        status = failure.status if operation.guardrail is None else operation.guardrail.status(failure.status)
        return JSONResponse(operation.error(failure), status, headers=failure.headers)

    async def _answered(
        self, request: "Request", operation: Operation, body: dict[str, Any], record: RequestRecord
    ) -> "Response":
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse, StreamingResponse

        process: ServingProcess = request.state.process
        key, retry = _key(request), request.headers.get(RETRY)
        shown, guardrail = body, operation.guardrail
        if guardrail is not None:
            body = guardrail.read(body, request.headers)
            if guardrail.restores(body):
                with record.step("restore"):
                    content, left = await process.short.run(self._restored, operation, guardrail, body, key, record)
                record.answered(left)
                return JSONResponse(content, headers={UNRESOLVED: str(left)})
        with record.step("protect"):
            begun = await process.short.run(self._begun, operation, body, key, retry, record)
            lane = process.long if begun.news > self.running.long else process.short
            released, chain, said = await lane.run(self._privatized, operation, body, begun, record)
        if guardrail is not None:
            record.answered(0)
            return JSONResponse(guardrail.released(shown, released), headers=said)
        if request.headers.get(DRY_RUN) == "1":
            record.answered(0)
            return JSONResponse(released, headers=said)
        restoring = Restoring(chain.session, as_json=operation.as_json(body), asked=(released, body))
        streamed = operation.stream if released.get("stream") in (True, "true") else None
        process.check()
        with record.step("upstream"):
            answer = await self._send(request, operation, released, restoring)
            came = await json_of(answer) if streamed is None else {}
        said |= headers_of(answer)
        if streamed is not None:
            events = _events(await stream_of(answer), operation, streamed(restoring), restoring, chain, record, process)
            return StreamingResponse(process.streaming(events), headers=said, media_type="text/event-stream")
        with record.step("restore"):
            restored = await run_in_threadpool(restoring.whole, came, operation.answer)
            whole = await run_in_threadpool(operation.placed, (came, restored), restoring.asked)
            pairs = zip(operation.said(came), operation.said(whole), strict=True)
            await run_in_threadpool(_remember, chain, operation, pairs, operation.remembered(came))
        record.answered(restoring.unresolved)
        return JSONResponse(whole, headers=said | {UNRESOLVED: str(restoring.unresolved)})

    async def _body(self, request: "Request") -> dict[str, Any]:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RequestError(
                415, "a request must have the type application/json"
            )  # which web pages cannot send cross-site
        read = bytearray()
        async for piece in request.stream():
            read += piece
            if len(read) > self.limit:
                raise RequestError(413, f"a request must have at most {self.limit:,} bytes")
        with suppress(ValueError, RecursionError):
            body = json.loads(read.decode())
            json.dumps(body, allow_nan=False, ensure_ascii=False).encode()  # no half characters, and no NaN
            if isinstance(body, dict) and not _nests(body, DEEPEST):
                return body
        raise RequestError(400, f"the body must be a JSON object in UTF-8, at most {DEEPEST} levels deep")

    def _begun(
        self, operation: Operation, body: dict[str, Any], key: str | None, retry: str | None, record: RequestRecord
    ) -> "Begun":
        """A request whose texts are known, and what of them was released before.

        Args:
            operation: its route.
            body: the request.
            key: the client's key; None without one.
            retry: the client's name of the request; None without one.
            record: of the request.
        """
        if retry is not None and not (0 < len(retry) <= LONGEST and retry.isprintable()):
            raise RequestError(400, f"Idempotency-Key must have 1 to {LONGEST} printable characters")
        with _refusing():
            account = record.key = self._account(key)
            asked = Asked(operation, body, self.policy, lambda name: self._user(account, name))
            links = self.store.links(account)
            if retry is not None and not MessageChain.is_retry(links, retry, self._asked(operation, body)):
                raise RequestError(422, OTHER, code="idempotency")
            made, said = partial(MessageChain, links, account, heads=self._heads), (asked.messages, asked.besides)
            if operation.guardrail is None:
                chain, named = made(self._basis, *said, after=operation.after(body)), operation.grows(body)
            else:
                chain, named = self._guarding.begun(made, operation, body, *said)
            news = asked.messages[len(chain.links) :]
            if not chain.continues or any(each.role.startswith(REFERENCE) for each in news):
                raise RequestError(
                    404 if operation.method != "POST" else 400, UNKNOWN, code="previous_response_not_found"
                )
            return Begun(asked, chain, named)

    def _privatized(
        self, operation: Operation, body: dict[str, Any], begun: "Begun", record: RequestRecord
    ) -> tuple[dict[str, Any], MessageChain, dict[str, str]]:
        """The released request, its chain, and the headers that say what was promised and hidden."""
        asked, chain, named = begun
        with _refusing():
            chain.release(self._releasing)
            if named is not None:
                chain.remember(named)  # before it is sent: the upstream remembers what it got, also where it fails then
            released = asked.released([link.released for link in chain.links], chain.as_came(asked.signed))
            released = operation.placed((body, released), (body, released))
            promise = largest([link.promise for link in chain.links if link.promise is not None])
            known = chain.session.snapshot().losses
            counts = {"drawn": chain.drawn, "repeated": len(chain.links) - chain.drawn}
            more = {"per_person": [known[of].to_json() for of in sorted(known)], "said": told(**counts)}
            record.drawn, record.protected, record.spent = chain.drawn, _hidden(chain), chain.session.spent
            hidden = ", ".join(f"{type_}={count}" for type_, count in sorted(record.protected.items()))
            headers = {STATEMENT: json.dumps(promise | counts | more), PROTECTED: hidden}
            counted = {UNPROTECTED: asked.passed, LEFT_OUT: asked.left_out}
            return released, chain, headers | {name: str(count) for name, count in counted.items() if count}

    def _restored(
        self,
        operation: Operation,
        guardrail: Guardrail,
        body: dict[str, Any],
        key: str | None,
        record: RequestRecord,
    ) -> tuple[dict[str, Any], int]:
        """The reply about an answer that somebody else got, and how many placeholders were not restored."""
        with _refusing():
            account = record.key = self._account(key)
            chain = partial(MessageChain, self.store.links(account), account)
            return self._guarding.restored(chain, operation, guardrail, body, account)

    def _account(self, key: str | None) -> str:
        return self._nobody if key is None else f"client-{self.store.pseudonym(key.encode())}"

    def _user(self, account: str, name: str) -> str:
        return f"user-{self.store.pseudonym(json.dumps([account, name]).encode())}"

    def _asked(self, operation: Operation, body: dict[str, Any]) -> bytes:
        """All that what is sent upstream depends on."""
        return json.dumps([self._basis, repr(self.policy), operation.name, body], sort_keys=True).encode()

    async def _send(
        self, request: "Request", operation: Operation, released: dict[str, Any], restoring: Restoring
    ) -> "httpx2.Response":
        """The upstream's response to a released request; only its headers are read.

        Raises:
            RequestError: it refused; what it says about that is restored.
        """
        client: httpx2.AsyncClient = request.state.client
        headers = {name: request.headers[name] for name in operation.keys if name in request.headers}
        for name, shape in operation.forwards.items():
            if shape.fullmatch(value := request.headers.get(name, "")):
                headers[name] = value
        path, query, body = operation.target(released)
        url = f"{self.upstream.rstrip('/')}{path}"
        to_send = client.build_request(operation.method, url, json=body, params=query, headers=headers)
        with failing():
            answer = await client.send(to_send, stream=True)
        request.state.until.push_async_callback(answer.aclose)
        if answer.status_code == 200:
            return answer
        raise await refusal_of(answer, restoring, _keys(answer, operation))


class _Served:
    """One route as an ASGI application."""

    def __init__(self, gateway: Gateway, operation: Operation) -> None:
        self._gateway, self._operation = gateway, operation

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import Request

        request, record = Request(scope, receive), RequestRecord(self._operation.name)
        async with AsyncExitStack() as until:
            request.state.until = until
            until.enter_context(request.state.process.recorded(record, request.headers.get("traceparent")))
            response = await self._gateway.answer(request, self._operation, record)
            response.headers[REQUEST_ID] = record.id
            await response(scope, receive, send)


class Begun(NamedTuple):
    """A request whose texts are known. Secret.

    Args:
        asked: the request.
        chain: its messages, those that were released before and those that are new.
        named: the name under which what the chain knows is kept, since somebody else remembers it; None for none.
    """

    asked: Asked
    chain: MessageChain
    named: str | None

    def __repr__(self) -> str:
        return "Begun()"

    @property
    def news(self) -> int:
        """Characters of what is new."""
        new = [*self.asked.messages, *self.asked.besides][len(self.chain.links) :]
        return sum(len(text) for message in new for text in message.texts)


@contextmanager
def _refusing() -> Iterator[None]:
    """Turns failures to privatize into errors for the client, which quote no text."""
    try:
        yield
        return
    except RequestError:
        raise
    except RecursionError:
        failure = RequestError(400, "JSON in the request is nested too deeply")
    except InputError as error:  # which quotes no text
        failure = RequestError(400, str(error))
    except (LimitReached, StoreError) as error:
        refused = isinstance(error, LimitReached)
        failure = RequestError(403 if refused else 500, str(error), code="limit" if refused else "store")
    except Exception as error:
        kind = type(error).__name__
        failure = RequestError(500, f"the messages could not be privatized ({kind}); nothing was sent")
    raise failure from None  # or it would be chained where `with` ends


def _nests(value: Any, levels: int) -> bool:
    """Whether JSON has more than some levels of objects and lists."""
    if not isinstance(value, dict | list):
        return False
    return levels == 0 or any(
        _nests(each, levels - 1) for each in (value.values() if isinstance(value, dict) else value)
    )


def _key(request: "Request") -> str | None:
    """What tells clients apart: their key."""
    key: str | None = request.headers.get("authorization") or request.headers.get("x-api-key")
    return key


def _query(request: "Request", operation: Operation) -> dict[str, Any]:
    """What a request says in its path and its query; lists have names that end with brackets."""
    said: dict[str, Any] = {}
    for name in request.query_params:
        if operation.has_body and name not in operation.query:
            continue
        several = request.query_params.getlist(name)
        said[name] = several if name.endswith("[]") else several[-1]
    return said | request.path_params


def _hidden(chain: MessageChain) -> Counter[str]:
    """How many values of each type the request hides."""
    sent = "\n".join(text for link in chain.links for text in link.released)
    spelled = {piece.partition(">")[0] for piece in sent.split("<")}
    given = chain.session.snapshot().placeholders.values()
    return Counter(each.type for each in given if each.inner in spelled and each.shown in sent)


def _keys(answer: "httpx2.Response", operation: Operation) -> list[str]:
    """The client's key, as it was sent."""
    return [answer.request.headers[name] for name in operation.keys if name in answer.request.headers]


def _remember(
    chain: MessageChain,
    operation: Operation,
    pairs: Iterable[tuple[dict[str, Any], dict[str, Any]]],
    names: Iterable[str] = (),
) -> None:
    """Keep what the model said; the answer is there in any case, and else only the next request will not know it.

    Args:
        chain: of the request.
        operation: its route.
        pairs: messages of the answer, each as it came and as it was restored.
        names: the upstream's, for what it remembers.
    """
    with suppress(TextveilError):
        for name in names:
            chain.remember(name)
        said = list(pairs)
        signed = [both for pair in said for both in zip(*(all_signed(operation, each) for each in pair), strict=True)]
        heard = [(message_of(operation, came), message_of(operation, made)) for came, made in said]
        chain.answered(heard, signed, in_turn=operation.in_turn)
        named = [Utterance(role, ()) for came, _ in said if (role := operation.reference(came)) is not None]
        if len(named) == len(said):
            chain.answered([(each, each) for each in named], in_turn=operation.in_turn)


async def _events(
    response: "httpx2.Response",
    operation: Operation,
    stream: Stream,
    restoring: Restoring,
    chain: MessageChain,
    record: RequestRecord,
    process: ServingProcess,
) -> AsyncGenerator[str]:
    """A restored stream. If it breaks off, or the upstream says that it failed, it ends with an error."""
    import httpx2
    from starlette.concurrency import run_in_threadpool

    failure = RequestError(502, "the answer broke off", code="upstream")
    kept: list[tuple[dict[str, Any], dict[str, Any]]] = []
    keys = _keys(response, operation)
    names: list[str] = []
    try:
        with suppress(Exception), record.span("textveil.restore"):  # the exception may hold text
            came = aiter(httpx2.EventSource(response))
            while (event := await record.during("upstream", process.unless_stopped(anext(came, None)))) is not None:
                data = event.data if event.data == "[DONE]" else json.loads(event.data)
                if event.event == "error" or (isinstance(data, dict) and data.get("error")):
                    failure = worded(failure, data, restoring, keys)
                    break
                with record.timed("restore"):
                    pieces = list(stream.feed(Event("" if event.event == "message" else event.event, data)))
                if news := [each for each in stream.remembered if each not in names]:
                    await run_in_threadpool(_remember, chain, operation, (), news)  # before anybody can refer to it
                    names += news
                if stream.ended and not kept:  # before the client knows the end, and asks on
                    kept = stream.messages
                    await run_in_threadpool(_remember, chain, operation, kept)
                for piece in pieces:
                    yield piece.written()
                if event.data == "[DONE]":
                    break
        if process.over and not stream.ended:
            failure = process.stops()
        pieces = list(stream.close())
        if stream.ended and kept != stream.messages:
            await run_in_threadpool(_remember, chain, operation, stream.messages)
        for piece in pieces:
            yield piece.written()
    finally:
        await response.aclose()
    record.answered(restoring.unresolved)
    if not stream.ended:
        record.failed(failure)
        yield stream.failed(failure).written()
    if restoring.unresolved:
        yield f": {UNRESOLVED}: {restoring.unresolved}\n\n"  # headers are out already
