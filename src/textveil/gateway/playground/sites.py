"""Which requests come from the playground's own page: no other web site may read it or drive it.

In: the headers of a request. Out: nothing, or `RequestError`.
Not here: what is answered (`routes`).

A browser says in `Host` which name it looked up. A site that lets its own name point to this machine (DNS rebinding) is
known by that name, so only addresses and the names that are allowed are answered. `Origin` and `Sec-Fetch-Site` say
which page asks; scripts cannot set either.
"""

import ipaddress
from collections.abc import Collection, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from textveil.gateway.errors import RequestError

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer of the playground: nothing from elsewhere, no frame, no trace in a cache."""


def check_reader(headers: Mapping[str, str], names: Collection[str]) -> None:
    """Refuses to hand out the page or its parts under another name, or to another site.

    Args:
        headers: of the request, names in lower case.
        names: names of this machine that are allowed besides its addresses and localhost.

    Raises:
        RequestError: with status 403.
    """
    if not _is_allowed(headers.get("host", ""), names):
        raise RequestError(
            403,
            "the playground answers under an address of this machine, such as http://127.0.0.1, and under names that "
            "its policy allows",
            code="host",
        )
    asked_by = headers.get("sec-fetch-site", "none")
    if asked_by not in ("none", "same-origin") and headers.get("sec-fetch-mode") != "navigate":
        raise RequestError(403, "the playground is not for other web sites", code="origin")


def check_page(headers: Mapping[str, str], names: Collection[str]) -> None:
    """Refuses whatever the playground's own page did not ask; see `check_reader`."""
    check_reader(headers, names)
    with suppress(ValueError):
        origin = urlsplit(headers.get("origin", ""))
        same = origin.scheme in ("http", "https") and origin.netloc.lower() == headers.get("host", "").lower()
        if same and headers.get("sec-fetch-site", "same-origin") == "same-origin":
            return
    raise RequestError(403, "the playground answers its own page only", code="origin")


def _is_allowed(host: str, names: Collection[str]) -> bool:
    with suppress(ValueError):
        name = urlsplit(f"//{host}").hostname or ""
        if name == "localhost" or name in {each.lower() for each in names}:
            return True
        return bool(ipaddress.ip_address(name))
    return False
