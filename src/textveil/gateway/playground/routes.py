"""Routes of the playground: the page, and its JSON requests.

In: a gateway and its options. Out: routes, for the application (`app`).
Not here: origin checks (`origin_check`), stored pages (`pages`), and the texts of the page
(`view`).

Typed text is sent nowhere before the page says "ask", and then only the shown release. Texts are in
memory alone, apart from the conversations of clients.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import BaseModel, Field, ValidationError

from textveil.config import Config
from textveil.errors import InputError, LimitReached, StoreError, TextveilError, quote_path
from textveil.evaluate.attack import Case, ProgressCallback
from textveil.evaluate.curve import SHORT_FACTORS, compute_curve
from textveil.evaluate.risk import assess, check_risk_options, describe_public_attackers
from textveil.gateway.api_routes import RouteEndpoint, answer
from textveil.gateway.errors import RequestError
from textveil.gateway.gateway import Gateway, ReleasedMessage
from textveil.gateway.playground import view as read
from textveil.gateway.playground.pages import (
    CHANGED_MESSAGE,
    PageRelease,
    Pages,
    PreviewSession,
    get_ledger,
)
from textveil.gateway.playground.profiles import LEVEL_MEANINGS, Level, ProfileChoices
from textveil.gateway.playground.whole_texts import STEPS, Letters
from textveil.gateway.policy.client_keys import Caller
from textveil.gateway.protocols.chat import CHAT
from textveil.gateway.request.application import NO_APPLICATION, Application
from textveil.gateway.request.origin_check import PAGE_HEADERS, check_page, check_reader
from textveil.gateway.request.parsing import read_body
from textveil.gateway.request.protect_message import build_promise
from textveil.gateway.request.request_record import RequestRecord
from textveil.library import Library
from textveil.render.curve import dump_curve
from textveil.session import Session, Utterance
from textveil.session.conversations import build_delta
from textveil.session.snapshot import FACT_KINDS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route


MAX_TEXT_CHARACTERS = 20_000
"""Maximal number of characters in a prompt or an answer."""

MAX_ACCOUNTS = 100
"""Maximal number of ledger accounts that are shown."""

MAX_CURVE_WORDS = 400
"""Maximal number of words of a prompt for which the risk at other budgets is computed."""

PAGE_FILES = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


class _RequestBody(BaseModel, strict=True, extra="forbid", frozen=True):
    def __repr_args__(self) -> list[tuple[str | None, object]]:
        return []  # the fields are private


class _TokenRequest(_RequestBody):
    token: str = Field(min_length=64, max_length=64)


class _ProtectRequest(_TokenRequest):
    number: int = Field(ge=1, le=1 << 52)
    text: str = Field(max_length=MAX_TEXT_CHARACTERS)
    profile: str = Field(max_length=100)
    level: Level


class _ReleaseRequest(_TokenRequest):
    number: int = Field(ge=1, le=1 << 52)


class _RestoreRequest(_ReleaseRequest):
    answer: str = Field(max_length=MAX_TEXT_CHARACTERS)


class _LetterRequest(_TokenRequest):
    text: str = Field(max_length=MAX_TEXT_CHARACTERS)
    step: int = Field(ge=0, lt=len(STEPS))


class _RiskRequest(_ReleaseRequest):
    prior: Literal["uniform", "unigram"]


class _AskRequest(_ReleaseRequest):
    model: Annotated[str, Field(min_length=1, max_length=200)]


Handler = Callable[["Request", Any], Awaitable[Any]]


class Playground:
    """Playground of a gateway.

    Args:
        gateway: the gateway, which asks the model.
        config: the options of the gateway's privatizer; None for those of its policy.
        local: whether only this machine can reach the gateway.
        library: public texts for whole letters; None for the invented notes of the package.
    """

    def __init__(
        self,
        gateway: Gateway,
        config: Config | None = None,
        *,
        local: bool = True,
        library: Library | None = None,
    ) -> None:
        self._gateway, self._config, self._local = gateway, config, local
        self._whole_texts = Letters(library)
        self._cached_choices: tuple[Gateway, ProfileChoices] | None = None
        self._pages = Pages()
        self._semaphore = asyncio.Semaphore(1)  # typing must not slow programs down
        self._curve_semaphore = asyncio.Semaphore(1)  # and curves, which take longer, not typing

    # ---- routes ----------------------------------------------------------------------------------

    def build_routes(self) -> "list[Route]":
        """Returns the routes of the page, its files and its requests."""
        from starlette.routing import Route

        posts: dict[str, tuple[type[_RequestBody], Handler]] = {
            "open": (_RequestBody, self._open),
            "protect": (_ProtectRequest, self._protect),
            "risk": (_RiskRequest, self._assess_risk),
            "curve": (_RiskRequest, self._compute_curve),
            "restore": (_RestoreRequest, self._restore),
            "library": (_TokenRequest, self._describe_library),
            "letter": (_LetterRequest, self._release_letter),
            "activity": (_TokenRequest, self._list_activity),
            "close": (_TokenRequest, self._close),
        }
        handlers: dict[str, Any] = {
            name: self._build_handler(*item) for name, item in posts.items()
        }
        handlers["ask"] = RouteEndpoint("playground", self._serve_ask)
        return [
            Route("/", self._serve_page, methods=["GET"]),
            *(
                Route(f"/playground/{name}", self._build_file_handler(name), methods=["GET"])
                for name in PAGE_FILES
            ),
            *(
                Route(f"/playground/{name}", item, methods=["POST"])
                for name, item in handlers.items()
            ),
        ]

    def _serve_page(self, request: "Request") -> "Response":
        return self._serve_file(request, "page.html", "text/html")

    def _build_file_handler(self, name: str) -> "Callable[[Request], Response]":
        return lambda request: self._serve_file(request, name, PAGE_FILES[name])

    def _serve_file(self, request: "Request", name: str, kind: str) -> "Response":
        from starlette.responses import Response

        try:
            check_reader(request.headers, self._get_names())
        except RequestError as error:
            return Response(
                error.full_message, error.status, media_type="text/plain", headers=PAGE_HEADERS
            )
        return Response(_read_content(name), media_type=kind, headers=PAGE_HEADERS)

    def _get_names(self) -> Collection[str]:
        """Returns the allowed host names of the page.

        It raises `RequestError` where the policy, read again, has no page.
        """
        policy = self._gateway.current.policy
        if policy.playground == "never":
            raise RequestError(
                404, "the policy of this gateway switches the playground off", code="never"
            )
        if policy.playground == "local" and not self._local:
            raise RequestError(
                404,
                "the policy serves the playground only if other machines cannot reach the gateway",
                code="never",
            )
        return policy.hosts

    async def _answer(
        self,
        request: "Request",
        body: type[_RequestBody],
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
                await _run_in_thread(self._gateway.current.identify_caller, request.headers)
            gateway = self._gateway.current
            limits = gateway.policy.limit, gateway.running.body_timeout
            data = await read_body(request, *limits)
            result = await handler(request, _parse(body, data))
            response: Response = result if isinstance(result, Response) else JSONResponse(result)
        # All are caught here: the server would log a message, which may hold text.
        except Exception as error:
            refused = _convert_error(error)
            if record is not None:
                record.note_failure(refused)
            content = {"message": refused.full_message, "code": refused.code}
            response = JSONResponse({"error": content}, refused.status, headers=refused.headers)
        response.headers.update(PAGE_HEADERS)
        return response

    def _build_handler(
        self, body: type[_RequestBody], handler: Handler
    ) -> "Callable[[Request], Awaitable[Response]]":
        async def answer_request(request: "Request") -> "Response":
            return await self._answer(request, body, handler)

        return answer_request

    async def _serve_ask(self, request: "Request", *, record: RequestRecord) -> "Response":
        return await self._answer(request, _AskRequest, partial(self._ask, record), record)

    # ---- what the page asks ----------------------------------------------------------------------

    async def _open(self, _: "Request", __: _RequestBody) -> dict[str, Any]:
        page = self._pages.open()
        return {
            "token": page.token,
            "profiles": (await _run_in_thread(lambda: self._choices)).list_profiles(),
            "levels": LEVEL_MEANINGS,
            "longest": MAX_TEXT_CHARACTERS,
            "keys": self._gateway.current.policy.keys is not None,
        }

    async def _protect(self, _: "Request", page_request: _ProtectRequest) -> dict[str, Any]:
        page = self._pages.get_page(page_request.token)
        page.newest = max(page.newest, page_request.number)
        async with self._semaphore:
            if page_request.number < page.newest:
                return {"number": page_request.number}  # a newer request replaces it
            release = await _run_in_thread(self._build_release, page_request)
        page.show(release)
        return read.render_release(release)

    async def _assess_risk(self, _: "Request", page_request: _RiskRequest) -> dict[str, Any]:
        release = self._pages.get_page(page_request.token).get_release(page_request.number)
        if not read.has_draws(release.result):
            return {"sentence": read.UNDRAWN_TEXT}
        async with self._semaphore:
            reply: dict[str, Any] = await _run_in_thread(
                _assess_release, release, page_request.prior
            )
        return reply

    async def _compute_curve(self, _: "Request", page_request: _RiskRequest) -> dict[str, Any]:
        page = self._pages.get_page(page_request.token)
        release = page.get_release(page_request.number)

        def report(step: str, done: int, total: int) -> None:
            if page.newest > page_request.number:  # nobody waits for it any more
                raise RequestError(409, CHANGED_MESSAGE, code="changed")

        async with self._curve_semaphore:
            curve = await _run_in_thread(
                _compute_release_curve, release, page_request.prior, report
            )
        return {"curve": curve, "note": "" if curve else read.NO_CURVE_TEXT}

    async def _restore(self, _: "Request", page_request: _RestoreRequest) -> dict[str, Any]:
        release = self._pages.get_page(page_request.token).get_release(page_request.number)
        restored: dict[str, Any] = await _run_in_thread(
            read.restore_answer, release, page_request.answer
        )
        return restored

    async def _ask(
        self, record: RequestRecord, request: "Request", page_request: _AskRequest
    ) -> "Response":
        from starlette.requests import Request

        release = self._pages.get_page(page_request.token).get_release(page_request.number)
        if not release.text.strip():
            raise RequestError(400, "there is nothing to ask: the prompt is empty")
        messages = [{"role": "user", "content": release.text}]
        body = {"model": page_request.model, "messages": messages, "stream": True}
        content = json.dumps(body).encode()
        incoming = iter([{"type": "http.request", "body": content, "more_body": False}])

        async def receive() -> Any:
            # Behind the new body come the messages of the page: if it leaves, the request ends.
            return next(incoming, None) or await request.receive()

        gateway = self._gateway.current
        if release.gateway is not gateway:
            problem = (
                "the policy has changed since this prompt was shown: check the new result, then "
                "ask again"
            )
            raise RequestError(409, problem, code="changed")
        self._check_options(
            release,
            page_request.model,
            await _run_in_thread(gateway.identify_caller, request.headers),
        )
        prepared = ReleasedMessage(
            release.privatizer, _PageReleaser(release), release.open_store(gateway.store)
        )
        return await answer(gateway, CHAT, Request(request.scope, receive), record, prepared)

    async def _describe_library(self, _: "Request", page_request: _TokenRequest) -> dict[str, Any]:
        self._pages.get_page(page_request.token)
        async with self._semaphore:
            return cast(dict[str, Any], await _run_in_thread(self._whole_texts.describe))

    async def _release_letter(self, _: "Request", page_request: _LetterRequest) -> dict[str, Any]:
        self._pages.get_page(page_request.token)
        async with self._semaphore:
            letter = page_request.text, page_request.step
            return cast(dict[str, Any], await _run_in_thread(self._whole_texts.release, *letter))

    async def _list_activity(
        self, request: "Request", page_request: _TokenRequest
    ) -> dict[str, Any]:
        self._pages.get_page(page_request.token)
        caller = await _run_in_thread(self._gateway.current.identify_caller, request.headers)
        account, recent = caller.account, request.state.process.recent
        records = [record for record in recent if caller.key is None or record.key == account]
        return {
            "requests": [read.summarize_record(record) for record in records],
            "budgets": await _run_in_thread(self._list_budgets, caller),
        }

    async def _close(self, _: "Request", page_request: _TokenRequest) -> dict[str, Any]:
        self._pages.close(page_request.token)
        return {}

    # ---- how -------------------------------------------------------------------------------------

    @property
    def _choices(self) -> ProfileChoices:
        """Profiles to choose, rebuilt when the gateway has reloaded its policy."""
        gateway = self._gateway.current
        if self._cached_choices is None or self._cached_choices[0] is not gateway:
            self._cached_choices = (
                gateway,
                ProfileChoices(gateway, self._config or gateway.policy.resolve_config()),
            )
        return self._cached_choices[1]

    def _build_release(self, page_request: _ProtectRequest) -> PageRelease:
        choices, session = self._choices, PreviewSession()
        config, privatizer = choices.load(page_request.profile, page_request.level)
        return PageRelease(
            gateway=choices.gateway,
            number=page_request.number,
            text=page_request.text,
            config=config,
            privatizer=privatizer,
            rehearsal=privatizer.rehearse([page_request.text], session),
            session=session,
        )

    def _check_options(self, release: PageRelease, model: str, caller: Caller) -> None:
        """Refuses to send a release under other options than the gateway's."""
        policy = release.gateway.policy
        rules = policy.find_rules(CHAT.route, model, caller.name)
        if release.config != (self._config or policy.apply_rules(rules).resolve_config()):
            raise RequestError(
                403,
                "this is a preview under other options, and nothing was sent: to ask, choose the "
                "options that the gateway has for you and this model",
                code="options",
            )

    def _list_budgets(self, caller: Caller) -> list[dict[str, object]] | None:
        """Lists the ledger accounts that the caller may see.

        They are all accounts where the gateway has no keys, else those of the caller's key. None if
        there is no ledger.
        """
        if (ledger := get_ledger(self._gateway.current.store)) is None:
            return None
        accounts = ledger.accounts() if caller.key is None else ledger.accounts(caller.account)
        return [account.to_json() for account in accounts[:MAX_ACCOUNTS]]


class _PageReleaser:
    """Release function for one text only: as a page shows it.

    Args:
        release: the release that a page shows.
    """

    def __init__(self, release: PageRelease) -> None:
        self._release = release

    def __call__(
        self, message: Utterance, session: Session, application: Application = NO_APPLICATION
    ) -> tuple[Sequence[str], dict[str, Any]]:
        """Returns the shown release and charges its spending; see `MessageReleaser`."""
        if message.texts != (self._release.text,):
            raise InputError("the playground sends only the prompt that its page shows")
        session.reserve(self._release.session.spends)
        # Committed, so that the stored message has them: the page may ask again.
        snapshot = self._release.session.snapshot()
        facts = {kind: dict(getattr(snapshot, kind)) for kind in FACT_KINDS}
        session.commit(build_delta(facts, session.snapshot().version))
        return [self._release.result.text], build_promise([self._release.result])


def _assess_release(release: PageRelease, prior: str) -> dict[str, Any]:
    name = check_risk_options(release.config, prior)
    (risk,) = assess(Case.build(release.privatizer, release.rehearsal, names=True), prior=name)
    comparison = describe_public_attackers(release.config, [risk])
    return read.render_risk(risk, release.result.private, comparison)


def _compute_release_curve(
    release: PageRelease, prior: str, report: ProgressCallback
) -> dict[str, Any] | None:
    """Computes the risk of a shown text at other budgets; None for long texts, and without draws."""
    name = check_risk_options(release.config, prior)
    if not read.has_draws(release.result) or len(release.rehearsal.words) > MAX_CURVE_WORDS:
        return None
    risks = assess(Case.build(release.privatizer, release.rehearsal, names=True), prior=name)
    points = compute_curve(
        release.config,
        [release.text],
        risks,
        release.result.guarantee,
        prior=name,
        factors=SHORT_FACTORS,
        report=report,
    )
    return dump_curve(points)


def _parse(body: type[_RequestBody], content: dict[str, Any]) -> _RequestBody:
    try:
        return body.model_validate(content)
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_context=False, include_url=False)[0]
    field = quote_path(wrong["loc"], content)
    if wrong["type"] == "string_too_long" and field in ("text", "answer"):
        raise RequestError(
            413,
            f"a text in the playground may have at most {MAX_TEXT_CHARACTERS:,} characters",
            param=field,
        )
    problem = (
        f"the request does not have the form that this page sends{f' ({field})' * bool(field)}: "
        "reload the page"
    )
    raise RequestError(400, problem, param=field)


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
    dark = f"@media (prefers-color-scheme: dark) {{\n{read.render_styles(dark=True)}\n}}"
    return f"{content}\n{read.render_styles(dark=False)}\n{dark}\n"


async def _run_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    from starlette.concurrency import run_in_threadpool

    return await run_in_threadpool(function, *arguments)
