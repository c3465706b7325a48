"""Routes of the playground: the page, and its JSON requests.

In: a gateway and its options. Out: routes, for the application (`app`).
Not here: origin checks (`sites`), stored pages (`pages`), and the texts of the page (`shown`).

Typed text is sent nowhere before the page says "ask", and then only the shown release. Texts are in
memory alone, apart from the conversations of clients.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from textveil.config import Config
from textveil.errors import InputError, LimitReached, StoreError, TextveilError, quote_path
from textveil.evaluate.attack import Case
from textveil.evaluate.risk import assess, beside, check
from textveil.gateway.errors import RequestError
from textveil.gateway.gateway import Gateway, Prepared
from textveil.gateway.incoming import body_of
from textveil.gateway.keys import Caller
from textveil.gateway.playground import shown as read
from textveil.gateway.playground.offers import LEVELS, Level, Offers
from textveil.gateway.playground.pages import Pages, PreviewSession, Shown, ledger_of
from textveil.gateway.protocols.chat import CHAT
from textveil.gateway.record import RequestRecord
from textveil.gateway.releasing import promised
from textveil.gateway.routes import Served, answer
from textveil.gateway.sites import HEADERS, check_page, check_reader
from textveil.session import Session, Utterance

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route


LONGEST = 20_000
"""Maximal number of characters in a prompt or an answer."""

ACCOUNTS = 100
"""Maximal number of ledger accounts that are shown."""

FILES = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


class _Body(BaseModel, strict=True, extra="forbid", frozen=True):
    def __repr_args__(self) -> list[tuple[str | None, object]]:
        return []  # the fields are private


class _Opened(_Body):
    token: str = Field(min_length=64, max_length=64)


class _Typed(_Opened):
    number: int = Field(ge=1, le=1 << 52)
    text: str = Field(max_length=LONGEST)
    profile: str = Field(max_length=100)
    level: Level


class _OfShown(_Opened):
    number: int = Field(ge=1, le=1 << 52)


class _Answered(_OfShown):
    answer: str = Field(max_length=LONGEST)


class _Assessed(_OfShown):
    prior: Literal["uniform", "unigram"]


class _Asks(_OfShown):
    model: Annotated[str, Field(min_length=1, max_length=200)]


Handler = Callable[["Request", Any], Awaitable[Any]]


class Playground:
    """Playground of a gateway.

    Args:
        gateway: the gateway, which asks the model.
        config: the options of the gateway's privatizer; None for those of its policy.
        local: whether only this machine can reach the gateway.
    """

    def __init__(
        self, gateway: Gateway, config: Config | None = None, *, local: bool = True
    ) -> None:
        self._gateway, self._config, self._local = gateway, config, local
        self._offered: tuple[Gateway, Offers] | None = None
        self._pages = Pages()
        self._lane = asyncio.Semaphore(1)  # typing must not slow programs down

    # ---- routes ----------------------------------------------------------------------------------

    def routes(self) -> "list[Route]":
        """Returns the routes of the page, its files and its requests."""
        from starlette.routing import Route

        posts: dict[str, tuple[type[_Body], Handler]] = {
            "open": (_Body, self._open),
            "protect": (_Typed, self._protect),
            "risk": (_Assessed, self._assess_risk),
            "restore": (_Answered, self._restore),
            "activity": (_Opened, self._list_activity),
            "close": (_Opened, self._close),
        }
        served: dict[str, Any] = {name: self._build_handler(*each) for name, each in posts.items()}
        served["ask"] = Served("playground", self._serve_ask)
        return [
            Route("/", self._serve_page, methods=["GET"]),
            *(
                Route(f"/playground/{name}", self._build_file_handler(name), methods=["GET"])
                for name in FILES
            ),
            *(
                Route(f"/playground/{name}", each, methods=["POST"])
                for name, each in served.items()
            ),
        ]

    def _serve_page(self, request: "Request") -> "Response":
        return self._serve_file(request, "page.html", "text/html")

    def _build_file_handler(self, name: str) -> "Callable[[Request], Response]":
        return lambda request: self._serve_file(request, name, FILES[name])

    def _serve_file(self, request: "Request", name: str, kind: str) -> "Response":
        from starlette.responses import Response

        try:
            check_reader(request.headers, self._get_names())
        except RequestError as error:
            return Response(error.said, error.status, media_type="text/plain", headers=HEADERS)
        return Response(_read_content(name), media_type=kind, headers=HEADERS)

    def _get_names(self) -> Collection[str]:
        """Returns the allowed host names of the page.

        It raises `RequestError` where the policy, read again, has no page.
        """
        policy = self._gateway.current.policy
        if policy.playground == "never":
            raise RequestError(404, "the policy of this gateway has no playground", code="never")
        if policy.playground == "local" and not self._local:
            raise RequestError(
                404,
                "the policy has the playground only where other machines cannot reach the gateway",
                code="never",
            )
        return policy.hosts

    async def _answer(
        self,
        request: "Request",
        body: type[_Body],
        handler: Handler,
        record: RequestRecord | None = None,
    ) -> "Response":
        """Answers a request of the playground's page.

        With a record, a failure is noted in it.
        """
        from starlette.responses import JSONResponse, Response

        try:
            check_page(request.headers, self._get_names())
            if (
                handler != self._close
            ):  # the browser sends it, without headers, when the page closes
                # Only with a key, if the gateway has keys.
                await _run_in_thread(self._gateway.current.caller, request.headers)
            asked = await body_of(request, self._gateway.current.policy.limit)
            result = await handler(request, _parse(body, asked))
            response: Response = result if isinstance(result, Response) else JSONResponse(result)
        # All are caught here: the server would log a message, which may hold text.
        except Exception as error:
            refused = _convert_error(error)
            if record is not None:
                record.failed(refused)
            content = {"message": refused.said, "code": refused.code}
            response = JSONResponse({"error": content}, refused.status)
        response.headers.update(HEADERS)
        return response

    def _build_handler(
        self, body: type[_Body], handler: Handler
    ) -> "Callable[[Request], Awaitable[Response]]":
        async def answered(request: "Request") -> "Response":
            return await self._answer(request, body, handler)

        return answered

    async def _serve_ask(self, request: "Request", *, record: RequestRecord) -> "Response":
        return await self._answer(request, _Asks, partial(self._ask, record), record)

    # ---- what the page asks ----------------------------------------------------------------------

    async def _open(self, _: "Request", __: _Body) -> dict[str, Any]:
        page = self._pages.open()
        return {
            "token": page.token,
            "profiles": (await _run_in_thread(lambda: self._offers)).to_json(),
            "levels": LEVELS,
            "longest": LONGEST,
            "keys": self._gateway.current.policy.keys is not None,
        }

    async def _protect(self, _: "Request", typed: _Typed) -> dict[str, Any]:
        page = self._pages.page(typed.token)
        page.newest = max(page.newest, typed.number)
        async with self._lane:
            if typed.number < page.newest:
                return {"number": typed.number}  # a newer request replaces it
            shown = await _run_in_thread(self._shown, typed)
        page.show(shown)
        return read.release(shown)

    async def _assess_risk(self, _: "Request", asked: _Assessed) -> dict[str, Any]:
        shown = self._pages.page(asked.token).shows(asked.number)
        if not read.draws(shown.result):
            return {"sentence": read.UNDRAWN}
        async with self._lane:
            view: dict[str, Any] = await _run_in_thread(_assess, shown, asked.prior)
        return view

    async def _restore(self, _: "Request", answered: _Answered) -> dict[str, Any]:
        shown = self._pages.page(answered.token).shows(answered.number)
        restored: dict[str, Any] = await _run_in_thread(read.restored, shown, answered.answer)
        return restored

    async def _ask(self, record: RequestRecord, request: "Request", asks: _Asks) -> "Response":
        from starlette.requests import Request

        shown = self._pages.page(asks.token).shows(asks.number)
        if not shown.text.strip():
            raise RequestError(400, "there is nothing to ask: the prompt is empty")
        messages = [{"role": "user", "content": shown.text}]
        body = {"model": asks.model, "messages": messages, "stream": True}
        content = json.dumps(body).encode()
        incoming = iter([{"type": "http.request", "body": content, "more_body": False}])

        async def receive() -> Any:
            return next(incoming, None) or await request.receive()

        gateway = self._gateway.current
        if shown.gateway is not gateway:
            says = "the policy has changed since this was shown: look again, then ask"
            raise RequestError(409, says, code="changed")
        self._check_own(shown, asks.model, await _run_in_thread(gateway.caller, request.headers))
        prepared = Prepared(shown.privatizer, _Released(shown), shown.store(gateway.store))
        return await answer(gateway, CHAT, Request(request.scope, receive), record, prepared)

    async def _list_activity(self, request: "Request", opened: _Opened) -> dict[str, Any]:
        self._pages.page(opened.token)
        caller = await _run_in_thread(self._gateway.current.caller, request.headers)
        account, recent = caller.account, request.state.process.recent
        seen = [each for each in recent if caller.key is None or each.key == account]
        return {
            "requests": [read.happened(each) for each in seen],
            "budgets": await _run_in_thread(self._list_budgets, caller),
        }

    async def _close(self, _: "Request", opened: _Opened) -> dict[str, Any]:
        self._pages.close(opened.token)
        return {}

    # ---- how -------------------------------------------------------------------------------------

    @property
    def _offers(self) -> Offers:
        """Profiles to choose, rebuilt when the gateway has reloaded its policy."""
        gateway = self._gateway.current
        if self._offered is None or self._offered[0] is not gateway:
            self._offered = gateway, Offers(gateway, self._config or gateway.policy.config())
        return self._offered[1]

    def _shown(self, typed: _Typed) -> Shown:
        offers, session = self._offers, PreviewSession()
        config, privatizer = offers.using(typed.profile, typed.level)
        return Shown(
            gateway=offers.gateway,
            number=typed.number,
            text=typed.text,
            config=config,
            privatizer=privatizer,
            rehearsal=privatizer.rehearse([typed.text], session),
            session=session,
        )

    def _check_own(self, shown: Shown, model: str, caller: Caller) -> None:
        """Refuses to send a release under other options than the gateway's."""
        policy = shown.gateway.policy
        rules = policy.rules_for(CHAT.route, model, caller.name)
        if shown.config != (self._config or policy.under(rules).config()):
            raise RequestError(
                403,
                "this is shown only to look at: the playground sends what is protected by the "
                "options that the gateway "
                "has for you and this model; choose those to ask",
                code="options",
            )

    def _list_budgets(self, caller: Caller) -> list[dict[str, object]] | None:
        """Lists the ledger accounts that the caller may see.

        They are all accounts where the gateway has no keys, else those of the caller's key. None if
        there is no ledger.
        """
        if (ledger := ledger_of(self._gateway.current.store)) is None:
            return None
        accounts = ledger.accounts() if caller.key is None else ledger.accounts(caller.account)
        return [each.to_json() for each in accounts[:ACCOUNTS]]


class _Released:
    """Release function for one text only: as a page shows it.

    Args:
        shown: the release that a page shows.
    """

    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    def __call__(
        self, message: Utterance, session: Session
    ) -> tuple[Sequence[str], dict[str, Any]]:
        """Returns the shown release and charges its spending; see `Releasing`."""
        if message.texts != (self._shown.text,):
            raise InputError("only what the page shows is sent from the playground")
        session.reserve(self._shown.session.spends)
        session.adopt(self._shown.session.snapshot())
        return [self._shown.result.text], promised([self._shown.result])


def _assess(shown: Shown, prior: str) -> dict[str, Any]:
    name = check(shown.config, prior)
    (risk,) = assess(Case.after(shown.privatizer, shown.rehearsal, names=True), prior=name)
    return read.at_risk(risk, beside(shown.config, [risk]))


def _parse(body: type[_Body], content: dict[str, Any]) -> _Body:
    try:
        return body.model_validate(content)
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_context=False, include_url=False)[0]
    field = quote_path(wrong["loc"], content)
    if wrong["type"] == "string_too_long" and field in ("text", "answer"):
        raise RequestError(
            413, f"a text in the playground may have {LONGEST:,} characters", param=field
        )
    says = f"the request is not one of this page{f' ({field})' * bool(field)}: reload it"
    raise RequestError(400, says, param=field)


def _convert_error(error: Exception) -> RequestError:
    if isinstance(error, RequestError):
        return error
    if isinstance(error, LimitReached):
        return RequestError(403, str(error), code="limit")
    if isinstance(error, StoreError):
        return RequestError(500, str(error), code="store")
    if isinstance(error, TextveilError):  # their messages quote no text
        return RequestError(400, str(error))
    return RequestError(500, f"the playground failed with {type(error).__name__}", code="failed")


def _read_content(name: str) -> str:
    """Reads a file of the page; its CSS gets the styles."""
    content = (files("textveil.gateway.playground") / name).read_text(encoding="utf-8")
    if name != "page.css":
        return content
    dark = f"@media (prefers-color-scheme: dark) {{\n{read.styles(dark=True)}\n}}"
    return f"{content}\n{read.styles(dark=False)}\n{dark}\n"


async def _run_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    from starlette.concurrency import run_in_threadpool

    return await run_in_threadpool(function, *arguments)
