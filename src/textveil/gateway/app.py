"""The gateway: the upstream sees released text, the client restored answers.

In: requests of any client of the APIs in `protocols`, with the gateway as base URL. Out: the upstream's answers.
Not here: which values are text (`protocols`), how texts are released (`releasing`) and answers restored (`answers`),
and the process that serves (`serving`).

Clients send the whole conversation with every request. Each message is released once, and sent again as it was
(`session.chains`); so what a conversation tells and spends does not grow with the number of its requests.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field, WrapValidator

from textveil.config import options
from textveil.config.extras import needed
from textveil.errors import ConfigError, InputError, LimitReached, StoreError
from textveil.gateway.answers import Restoring
from textveil.gateway.errors import RequestError
from textveil.gateway.guarding import Guarding
from textveil.gateway.keeping import kept_open
from textveil.gateway.keys import Caller
from textveil.gateway.policy import Policy
from textveil.gateway.process import Running, ServingProcess, unless_left
from textveil.gateway.protocols import REFERENCE, Guardrail, Operation, operations
from textveil.gateway.record import RequestRecord
from textveil.gateway.releasing import Release, Releasing, largest, told
from textveil.gateway.requests import Asked
from textveil.gateway.sites import check_program
from textveil.gateway.standing import StandingPolicy
from textveil.gateway.streaming import UNRESOLVED, events, keys_of, restored
from textveil.gateway.upstream import failing, headers_of, json_of, refusal_of, stream_of
from textveil.models import Address
from textveil.pipeline import Privatizer
from textveil.session import ALL, Heads, MessageChain, Session, SessionStore, Utterance

if TYPE_CHECKING:
    import httpx2
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from textveil.gateway.playground import Playground

STATEMENT = "textveil-statement"
"""Response header with the guarantee of the request, as JSON: the largest bound per word, over all messages; besides,
how many messages were drawn and repeated."""

PROTECTED = "textveil-protected"
"""Response header that says how much of each type was hidden: PERSON=2, EMAIL=1."""

SPENT = "textveil-spent"
"""Response header for keys with a budget: what their texts have spent, and what they may: epsilon=24, limit=40."""

DRY_RUN = "textveil-dry-run"
"""Request header: with 1, what would be sent is answered, and nobody is asked; 0 is as without it."""

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


OVERLAPS = (
    "another request of the same conversation or session came at the same time: send this one again, one after the "
    "other. Nothing was sent"
)


def _if_given(value: Any, check: Callable[[Any], Any]) -> Any:
    return value if value is None else check(value)


@options("gateway.")
class Gateway:
    """A gateway for one upstream.

    It forwards the client's key and no other header but those that say the version of an API, follows no redirects and
    keeps no cookies. Proxies from the environment are used for https only, where they cannot read the traffic. It fails
    closed: what cannot be protected or privatized is refused, and nothing is sent.

    A client's conversations are those of its key: no two keys share any. Clients without a key share those of this
    gateway, until it ends.

    Attributes:
        privatizer: protects every message of a request, in any role; None for the one that the policy describes, where
            its rules may say otherwise.
        upstream: base URL of the API, such as https://HOST/v1; None for what the policy says.
        policy: what it does for whom.
        store: keeps what became of messages; in memory, where none is given.
        running: how it is run.

    Raises:
        ConfigError: options are wrong, or what the policy names is missing.
    """

    privatizer: Annotated[Privatizer, WrapValidator(_if_given)] = None  # type: ignore[assignment]
    upstream: Annotated[Address, WrapValidator(_if_given)] = None  # type: ignore[assignment]
    policy: Policy = Field(default_factory=Policy)
    store: SessionStore = Field(default_factory=SessionStore)
    running: Running = Field(default_factory=Running)

    def __post_init__(self) -> None:
        self._standing  # noqa: B018 - what it names is there now, or never
        if self.privatizer.words.lasting:
            raise ConfigError(
                "words.lasting is for sessions that are named, and a gateway has conversations: leave it out"
            )

        if not self._standing.built and any(rule.protects for rule in self.policy.rules):
            raise ConfigError(
                "rules of a policy change how texts are protected only where the policy says it: give no privatizer"
            )
        for i in range(len(self.policy.rules)):
            self.under((i,))
        self.store.pseudonym(b"")  # or it keeps no conversations
        if self.policy.budgets:
            self.store.ledger  # noqa: B018 - counts what is spent, or does not exist

    @cached_property
    def _standing(self) -> StandingPolicy:
        """What the policy names, read and built; what nobody gave comes from there."""
        own, standing = vars(self), StandingPolicy(self.policy, self.privatizer, self.upstream)
        own["privatizer"], own["upstream"] = standing.privatizer, standing.upstream.url
        return standing

    @cached_property
    def _variants(self) -> tuple[Lock, dict[tuple[int, ...], "Gateway"]]:
        return Lock(), {}

    def under(self, rules: tuple[int, ...]) -> "Gateway":
        """This gateway as some rules of its policy change it; made once.

        Args:
            rules: their numbers.
        """
        if not rules:
            return self
        lock, made = self._variants
        with lock:
            if rules not in made:
                policy = self.policy.under(rules)
                same = self._given is None and policy.config() == self.policy.config()
                to: Any = self.upstream if policy.upstream is None else None
                made[rules] = replace(
                    self, privatizer=self.privatizer if same else self._given, upstream=to, policy=policy
                )
            return made[rules]

    def reload(self, policy: Policy) -> None:
        """Take another policy for the requests that come from now on; those that run keep the one they began with.

        Raises:
            ConfigError: something that it names is wrong or missing; then nothing changes.
        """
        if policy.upstream is None and self.policy.upstream is not None:  # its credential would be missing
            raise ConfigError("the policy must name its upstream, as it did when the gateway started")
        to: Any = self.upstream if policy.upstream is None else None
        made = replace(self, privatizer=self._given, upstream=to, policy=policy)
        made.load()  # so that no request waits for it
        vars(made)["_nobody"] = self._nobody
        vars(self)["current"] = made

    @cached_property
    def current(self) -> "Gateway":
        """The gateway for the next request: this one, until its policy is read again."""
        return self

    @cached_property
    def _given(self) -> Any:
        """The privatizer that the policy does not describe, if there is one."""
        return None if self._standing.built else self.privatizer

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
    def _releasing(self) -> Release:
        found = ("patterns", "structure")
        schemas = Privatizer.from_profile("prompt", protect={"level": "identifiers", "detectors": found})
        return Releasing(self.privatizer, schemas)

    def _spent(self, account: str) -> str:
        """What an account with a budget has spent of it, as the ledger counts it."""
        found = [each for each in self.store.ledger.accounts(account) if each.table == ALL]
        limits = [limit for each in found for limit in each.limits]
        return ", ".join(
            f"epsilon={limit.most - limit.left:g}, limit={limit.most:g}"
            + ("" if limit.days is None else f", days={limit.days:g}")
            for limit in limits
        )

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

    def sending(self, prepared: "Prepared") -> "Gateway":
        """This gateway for a message that was released already: it has a memory of its own, and charges as this one."""
        policy = replace(self.policy, rules=())
        made = replace(self, privatizer=prepared.privatizer, policy=policy, store=prepared.store)
        vars(made)["_releasing"] = prepared.release
        return made

    def caller(self, headers: Mapping[str, str]) -> Caller:
        """Who asks, for what is not counted as a request; see `StandingPolicy.admit`."""
        return self._standing.admit(headers, self._account, counts=False)

    def application(self, playground: "Playground | None" = None) -> "Starlette":
        """The ASGI application: the routes of all APIs, with /v1 before them or without, and GET /health.

        Args:
            playground: the page at /; None for no page.
        """
        with needed():
            from starlette.applications import Starlette
            from starlette.responses import JSONResponse, PlainTextResponse, Response
            from starlette.routing import Match, Route

        served = operations()
        shown = ", ".join(f"{each.method} /v1{each.path.replace(':path', '')}" for each in served)

        async def unknown(request: "Request", _: Exception) -> "Response":
            upgrade = request.headers.get("upgrade", "").lower()
            asked = "websockets are not served" if upgrade == "websocket" else "there is no such route here"
            here = [] if upgrade == "websocket" else routes
            known = [each for each in here if each.matches(request.scope)[0] is Match.PARTIAL]
            methods = {"Allow": ", ".join(sorted({name for each in known for name in each.methods or ()}))}
            refused = self._foreign(request) or RequestError(
                405 if known else 404, f"{asked}; served are {shown}", headers=methods if known else None
            )
            record = RequestRecord(UNKNOWN_ROUTE)
            with request.state.process.recorded(record, None):
                record.failed(refused)
                return JSONResponse(served[0].error(refused), refused.status, headers=refused.headers)

        async def metrics(request: "Request") -> "Response":
            if self._foreign(request) or not request.state.process.shows_metrics(request):
                return await unknown(request, Exception())
            content, kind = request.state.process.metrics.page()
            return Response(content, media_type=kind)

        async def ready(request: "Request") -> "Response":
            if self._foreign(request):
                return await unknown(request, Exception())
            process: ServingProcess = request.state.process
            return await process.ready(request)

        routes = [
            Route(f"{prefix}{each.path}", Served(each.name, answer), methods=[each.method])
            for each in served
            for answer in [partial(self._answer, each)]
            for prefix in ("/v1", "")
        ]
        probes = {"/health": lambda _: PlainTextResponse("ok"), "/ready": ready, "/metrics": metrics}
        routes += [Route(path, answer, methods=["GET"]) for path, answer in probes.items()]
        routes += [] if playground is None else playground.routes()
        made = Starlette(routes=routes, lifespan=self._connected, exception_handlers={404: unknown, 405: unknown})
        made.router.redirect_slashes = False  # a redirect would repeat the address that was asked for
        return made

    def load(self) -> None:
        """Load what releases need: a text that everybody knows is released for nobody."""
        for gateway in [self.current, *self.current._variants[1].values()]:
            gateway._releasing(EXAMPLE, Session())

    @asynccontextmanager
    async def _connected(self, _: "Starlette") -> AsyncIterator[dict[str, object]]:
        with needed():
            import httpx2

        many = httpx2.Limits(max_connections=None)  # as many as there are requests, which wait in lanes
        async with (
            httpx2.AsyncClient(
                limits=many,
                headers={"User-Agent": "textveil", "Accept-Encoding": "identity"},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                mounts={"http://": httpx2.AsyncHTTPTransport(limits=many)},  # proxies of the environment for https only
                follow_redirects=False,
            ) as client,
            ServingProcess.serving(self, client) as process,
        ):
            yield {"client": client, "process": process}

    def _foreign(self, request: "Request") -> RequestError | None:
        """Why a request is refused that another web site makes: without keys, anybody's browser could ask."""
        policy = self.current.policy
        try:
            if policy.keys is None:
                check_program(request.headers, policy.hosts)
            return None
        except RequestError as error:
            return error

    async def _answer(self, operation: Operation, request: "Request", record: RequestRecord) -> "Response":
        return await self.current.answer(request, operation, record)

    async def answer(
        self, request: "Request", operation: Operation, record: RequestRecord, prepared: "Prepared | None" = None
    ) -> "Response":
        """The answer to one request; what happens to it is noted in its record.

        Args:
            request: what is asked.
            operation: its route.
            record: of the request.
            prepared: its only message, where that was released already.
        """
        from starlette.concurrency import run_in_threadpool
        from starlette.requests import ClientDisconnect
        from starlette.responses import JSONResponse, Response

        process: ServingProcess = request.state.process
        try:
            process.admit(record)
            if foreign := self._foreign(request):
                raise foreign
            if self._standing.keys is None:
                caller = self._standing.admit(request.headers, self._account)
            else:
                caller = await run_in_threadpool(self._standing.admit, request.headers, self._account)
            body = _query(request, operation)
            if operation.has_body:
                body = await self.body(request) | body
            record.asks_for(body.get("model"), [name for rule in self.policy.rules for name in rule.models])
            own = await run_in_threadpool(self._chosen, operation, body, caller) if self.policy.rules else self
            own = own if prepared is None else await run_in_threadpool(own.sending, prepared)
            answering = own._answered(request, operation, body, record, caller)
            return await unless_left(request, process.unless_stopped(answering))
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
        self, request: "Request", operation: Operation, body: dict[str, Any], record: RequestRecord, caller: Caller
    ) -> "Response":
        from starlette.responses import JSONResponse, StreamingResponse

        process: ServingProcess = request.state.process
        if (dry := request.headers.get(DRY_RUN, "0")) not in ("0", "1"):
            raise RequestError(400, f"{DRY_RUN} must be 1 or 0; nothing was sent")
        account, retry = caller.account, request.headers.get(RETRY)
        shown, guardrail = body, operation.guardrail
        if guardrail is not None:
            body = guardrail.read(body, request.headers)
            if guardrail.restores(body):
                with record.step("restore"):
                    content, left = await process.answers.run(
                        self._restored, operation, guardrail, body, account, record
                    )
                record.answered(left)
                return JSONResponse(content, headers={UNRESOLVED: str(left)})
        with record.step("protect"):
            begun = await process.short.run(self._begun, operation, body, account, retry, record)
            lane = process.long if begun.news > self.running.long else process.short
            released, chain, said = await lane.run(self._privatized, operation, body, begun, record)
        if guardrail is not None:
            record.answered(0)
            return JSONResponse(guardrail.released(shown, released), headers=said)
        if dry == "1":
            record.answered(0)
            return JSONResponse(released, headers=said)
        restoring = Restoring(chain.session, as_json=operation.as_json(body), asked=(released, body))
        streamed = operation.stream if released.get("stream") in (True, "true") else None
        process.check()
        with record.step("upstream"):
            answer = await self._send(request, operation, released, restoring, caller)
            record.got(body.get("model"), caller.secret)
            came = await json_of(answer) if streamed is None else {}
        said |= headers_of(answer)
        if streamed is not None:
            pieces = events(await stream_of(answer), operation, streamed(restoring), restoring, chain, record, process)
            return StreamingResponse(process.streaming(pieces), headers=said, media_type="text/event-stream")
        with record.step("restore"):
            whole = await process.answers.run(restored, came, operation, restoring, chain)
        record.answered(restoring.unresolved)
        return JSONResponse(whole, headers=said | {UNRESOLVED: str(restoring.unresolved)})

    async def body(self, request: "Request") -> dict[str, Any]:
        """The JSON of a request.

        Raises:
            RequestError: it is none, too large, or nested too deeply.
        """
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RequestError(
                415, "a request must have the type application/json"
            )  # which web pages cannot send cross-site
        read = bytearray()
        async for piece in request.stream():
            read += piece
            if len(read) > self.policy.limit:
                raise RequestError(413, f"a request must have at most {self.policy.limit:,} bytes")
        with suppress(ValueError, RecursionError):
            body = json.loads(read.decode())
            json.dumps(body, allow_nan=False, ensure_ascii=False).encode()  # no half characters, and no NaN
            if isinstance(body, dict) and not _nests(body, DEEPEST):
                return body
        raise RequestError(400, f"the body must be a JSON object in UTF-8, at most {DEEPEST} levels deep")

    def _begun(
        self, operation: Operation, body: dict[str, Any], account: str, retry: str | None, record: RequestRecord
    ) -> "Begun":
        """A request whose texts are known, and what of them was released before.

        Args:
            operation: its route.
            body: the request.
            account: whose it is.
            retry: the client's name of the request; None without one.
            record: of the request.
        """
        if retry is not None and not (0 < len(retry) <= LONGEST and retry.isprintable()):
            raise RequestError(400, f"Idempotency-Key must have 1 to {LONGEST} printable characters")
        with _refusing():
            record.key = account
            asked = Asked(operation, body, self.policy, lambda name: self._user(account, name))
            links = self.store.links(account)
            if retry is not None and not MessageChain.is_retry(links, retry, self._asked(operation, body)):
                raise RequestError(422, OTHER, code="idempotency")
            if self.policy.keys is not None and links.ledger is not None:  # each time: other workers limit it, too
                budget = self.policy.budget
                most, days = (None, None) if budget is None else (budget.epsilon, budget.days)
                links.ledger.limit(account, "ldp", ALL, most, days=days, alone=True)
            made = partial(MessageChain, links, account, heads=self._heads, summed=self.policy.keys is not None)
            said = asked.messages, asked.besides
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
            try:
                chain.release(self._releasing)
            finally:  # what was drawn before one of the messages was refused is spent, too
                record.drawn, record.spent = chain.drawn, chain.session.spent
            if named is not None and not chain.grow(named):  # before it is sent: the upstream remembers what it got
                raise RequestError(409, OVERLAPS, code="overlap")
            released = asked.released([link.released for link in chain.links], chain.as_came(asked.signed))
            released = operation.placed((body, released), (body, released))
            promise = largest([link.promise for link in chain.links if link.promise is not None])
            known = chain.session.snapshot().losses
            counts = {"drawn": chain.drawn, "repeated": len(chain.links) - chain.drawn}
            more = {
                "per_person": [known[of].to_json() for of in sorted(known)],
                "said": told(**counts, kind=promise.get("kind", "")),
            }
            record.protected = _hidden(chain)
            hidden = ", ".join(f"{type_}={count}" for type_, count in sorted(record.protected.items()))
            headers = {STATEMENT: json.dumps(promise | counts | more), PROTECTED: hidden}
            headers |= {} if self.policy.budget is None else {SPENT: self._spent(chain.session.owner)}
            counted = {UNPROTECTED: asked.passed, LEFT_OUT: asked.left_out}
            return released, chain, headers | {name: str(count) for name, count in counted.items() if count}

    def _restored(
        self,
        operation: Operation,
        guardrail: Guardrail,
        body: dict[str, Any],
        account: str,
        record: RequestRecord,
    ) -> tuple[dict[str, Any], int]:
        """The reply about an answer that somebody else got, and how many placeholders were not restored."""
        with _refusing():
            record.key = account
            chain = partial(MessageChain, self.store.links(account), account)
            return self._guarding.restored(chain, operation, guardrail, body, account)

    def _account(self, key: str | None) -> str:
        """To whom conversations belong that come with a key of the upstream, or with none."""
        return self._nobody if key is None else f"client-{self.store.pseudonym(key.encode())}"

    def _chosen(self, operation: Operation, body: dict[str, Any], caller: Caller) -> "Gateway":
        """The gateway as the rules change it that hold for a request."""
        found = {self.policy.rules_for(operation.route, model, caller.name) for model in _models(body)}
        if len(found) > 1:
            raise RequestError(400, "the policy has different rules for the models of this request: ask for one model")
        return self.under(found.pop())

    def _user(self, account: str, name: str) -> str:
        return f"user-{self.store.pseudonym(json.dumps([account, name]).encode())}"

    def _asked(self, operation: Operation, body: dict[str, Any]) -> bytes:
        """All that what is sent upstream depends on."""
        return json.dumps([self._basis, repr(self.policy), operation.name, body], sort_keys=True).encode()

    async def _send(
        self, request: "Request", operation: Operation, released: dict[str, Any], restoring: Restoring, caller: Caller
    ) -> "httpx2.Response":
        """The upstream's response to a released request; only its headers are read.

        Raises:
            RequestError: it refused; what it says about that is restored.
        """
        client: httpx2.AsyncClient = request.state.client
        headers = self._standing.keys_sent(request.headers, caller, operation.keys)
        for name, shape in operation.forwards.items():
            if shape.fullmatch(value := request.headers.get(name, "")):
                headers[name] = value
        path, query, body = operation.target(released)
        url = f"{self.upstream.rstrip('/')}{path}"
        to_send = client.build_request(
            operation.method, url, json=body, params=query, headers=headers, timeout=self.policy.timeout
        )
        if caller.key is not None and caller.secret.encode() in to_send.content + to_send.url.raw_path:
            raise RequestError(400, "the request holds the key of the gateway, which must not leave it")
        with failing():
            answer = await client.send(to_send, stream=True)
        request.state.until.push_async_callback(answer.aclose)
        if answer.status_code == 200:
            return answer
        if answer.status_code == 401 and self._standing.has_credential:
            raise RequestError(502, "the upstream does not take the key that the policy names for it", code="upstream")
        raise await refusal_of(answer, restoring, keys_of(answer))


class Served:
    """What asks the upstream, as an ASGI application; its requests are on record.

    Args:
        name: of the operation.
        answer: gives the answer to a request; it is called with the request and, by name, its `record`.
    """

    def __init__(self, name: str, answer: "Callable[..., Awaitable[Response]]") -> None:
        self._name, self._answer = name, answer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers, and closes what the answer needed when it is sent."""
        from starlette.requests import Request

        request, record = Request(scope, receive), RequestRecord(self._name)
        async with AsyncExitStack() as until:
            request.state.until = until
            until.enter_context(request.state.process.recorded(record, request.headers.get("traceparent")))
            response = await self._answer(request, record=record)
            response.headers[REQUEST_ID] = record.id
            await response(scope, receive, await until.enter_async_context(kept_open(send)))


class Prepared(NamedTuple):
    """A message that was released already. Secret.

    Args:
        privatizer: released it.
        release: gives its release, as `Releasing` would make it, and charges it.
        store: keeps what becomes of it, and charges accounts of the same ledger.
    """

    privatizer: Privatizer
    release: Release
    store: SessionStore

    def __repr__(self) -> str:
        return "Prepared()"


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
        failure = RequestError(
            429 if refused else 500,
            str(error),
            code="limit" if refused else "store",
            headers={"x-should-retry": "false"} if refused else None,  # it would be refused again
        )
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


def _models(body: dict[str, Any]) -> list[str | None]:
    """The models that may answer a request: the one that it asks for, and those that take its place."""
    rest = [each for name in ("models", "fallbacks") if isinstance(body.get(name), list) for each in body[name]]
    named = [each.get("model") if isinstance(each, dict) else each for each in rest]
    asked = [each for each in (body.get("model"), *named) if isinstance(each, str)]
    return [*asked] or [None]


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
