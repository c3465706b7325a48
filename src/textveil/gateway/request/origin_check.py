"""Origin check: no other web site may read or drive a gateway.

In: the headers of a request. Out: nothing, or `RequestError`; the middleware that tells browsers
which pages may ask.
Not here: the answers (`api_routes`, `playground`).

A browser says in `Host` which name it looked up. A site that lets a name of its domain point to
this machine (DNS rebinding) is known by that name, so only addresses and allowed names are
answered. `Origin` and `Sec-Fetch-Site` say which page asks; scripts cannot set either, and programs
send neither.
"""

import ipaddress
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from textveil.gateway.errors import RequestError

if TYPE_CHECKING:
    from starlette.middleware import Middleware

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
    "'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer of the playground.

They allow nothing from elsewhere, no frame, and no trace in a cache.
"""


FOREIGN_PAGE = (
    "this gateway answers no other web sites: allow the page with --allow-origin ORIGIN, or "
    "`origins` in its policy"
)


def check_reader(headers: Mapping[str, str], names: Collection[str]) -> None:
    """Refuses requests under a foreign host name, or by another site.

    Another site may still link to a page.

    Args:
        headers: headers of the request, names in lower case.
        names: allowed names of this machine, in addition to its addresses and localhost.

    Raises:
        RequestError: with status 403.
    """
    _check_host(headers, names)
    fetch_site = headers.get("sec-fetch-site", "none")
    if fetch_site not in ("none", "same-origin") and headers.get("sec-fetch-mode") != "navigate":
        raise RequestError(403, FOREIGN_PAGE, code="origin")


def check_page(headers: Mapping[str, str], names: Collection[str]) -> None:
    """Refuses requests that the playground's page did not make.

    See `check_reader`.
    """
    check_reader(headers, names)
    if not (_is_own(headers) and headers.get("sec-fetch-site", "same-origin") == "same-origin"):
        raise RequestError(
            403, "the playground answers only requests from its own page", code="origin"
        )


def check_program(
    headers: Mapping[str, str],
    names: Collection[str],
    is_page_allowed: Callable[[str], bool] = lambda _: False,
) -> None:
    """Refuses requests that a page of another site made.

    See `check_reader`. Programs send no `Origin`.

    Args:
        headers: headers of the request, names in lower case.
        names: allowed names of this machine.
        is_page_allowed: true for the origin of a page that may ask.
    """
    if is_page_allowed(headers.get("origin", "")):
        _check_host(headers, names)
        return
    check_reader(headers, names)
    check_origin(headers, is_page_allowed)


def check_origin(headers: Mapping[str, str], is_page_allowed: Callable[[str], bool]) -> None:
    """Refuses requests of a page that is neither allowed nor this gateway's own.

    See `check_program`.
    """
    if "origin" in headers and not (is_page_allowed(headers["origin"]) or _is_own(headers)):
        raise RequestError(403, FOREIGN_PAGE, code="origin")


def is_desktop_page(origin: str) -> bool:
    """True for pages of this machine: of a server on it, or of a desktop program (`app://`)."""
    with suppress(ValueError):
        parts = urlsplit(origin)
        host = parts.hostname or ""
        if parts.scheme in ("http", "https"):
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        return parts.scheme == "app" and bool(host)
    return False


def build_cors_middleware(
    is_page_allowed: Callable[[str], bool], is_served: Callable[[Any], bool]
) -> "Middleware":
    """Builds the middleware that tells browsers which pages may ask (CORS).

    Args:
        is_page_allowed: true for the origin of a page that may ask.
        is_served: true for the scope of a request that pages may make.
    """
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware

    class PageAccess(CORSMiddleware):
        """CORS under a policy, which may be read again at any time."""

        def is_allowed_origin(self, origin: str) -> bool:
            return is_page_allowed(origin)

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            is_page = any(name == b"origin" for name, _ in scope.get("headers", ()))
            answer = super().__call__ if is_page and is_served(scope) else self.app
            await answer(scope, receive, send)

    return Middleware(
        PageAccess,
        allow_methods=("DELETE", "GET", "POST"),
        allow_headers=("*",),
        expose_headers=("*",),
        allow_private_network=True,
    )


def _check_host(headers: Mapping[str, str], names: Collection[str]) -> None:
    if not _is_allowed(headers.get("host", ""), names):
        raise RequestError(
            403,
            "this gateway answers only under IP addresses such as 127.0.0.1, under localhost, and "
            "under its host names: add a name with --allow-host NAME, or `hosts` in its policy",
            code="host",
        )


def _is_own(headers: Mapping[str, str]) -> bool:
    """True if the `Origin` is a page of this gateway."""
    with suppress(ValueError):
        origin = urlsplit(headers.get("origin", ""))
        same = origin.netloc.lower() == headers.get("host", "").lower()
        return same and origin.scheme in ("http", "https")
    return False


def _is_allowed(host: str, names: Collection[str]) -> bool:
    with suppress(ValueError):
        name = urlsplit(f"//{host}").hostname or ""
        if name == "localhost" or name in {allowed.lower() for allowed in names}:
            return True
        return bool(ipaddress.ip_address(name))
    return False
