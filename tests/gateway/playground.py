"""A gateway with its playground, in a thread, before an upstream of this process.

In: an answer of the upstream. Out: the page's address, and what the upstream was asked.
Not here: tests (`test_playground`, `test_page`).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from tests.gateway.servers import Upstream, serving, serving_upstream, stream_of

from textveil.config import Config, resolve
from textveil.gateway import Gateway, Playground, Policy
from textveil.library import Library
from textveil.pipeline import Privatizer
from textveil.session import SessionStore

CANARY = "Blorvequine"
PROMPT = f"Write to Anna {CANARY} at anna.{CANARY.lower()}@example.org about the lease."
SAID = "Dear <PERSON_1>, I write to <EMAIL_1>. <PERSON_9> knows."


PIECES = stream_of([{"content": each} for each in (SAID[:9], SAID[9:30], SAID[30:])])
"""An answer in pieces, one of which ends within a placeholder."""


class Opened:
    """A playground that is served.

    Attributes:
        url: of the page, without the slash at its end.
        upstream: what the gateway asks.
        http: a client of it.
    """

    def __init__(self, url: str, upstream: Upstream, http: httpx2.Client) -> None:
        self.url, self.upstream, self.http = url, upstream, http

    def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        """The answer to what the page would send; headers in place of the page's."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        own = {"Content-Type": "application/json", "Origin": self.url} | headers
        return self.http.post(
            f"{self.url}{path}", content=content, headers={k: v for k, v in own.items() if v}
        )

    def asked(self, path: str, **body: Any) -> Any:
        """What the playground answers."""
        answer = self.post(f"/playground/{path}", body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def shows(
        self, text: str, number: int = 1, profile: str = "prompt", level: str = "personal"
    ) -> Any:
        """A page, and what it shows of a text."""
        token = self.asked("open")["token"]
        return token, self.asked(
            "protect", token=token, number=number, text=text, profile=profile, level=level
        )


@contextmanager
def playing(
    *,
    config: Config | None = None,
    store: SessionStore | None = None,
    policy: Policy | None = None,
    library: Library | None = None,
) -> Iterator[Opened]:
    """A playground that is served until the block ends."""
    used = config or resolve(profile="prompt")
    with serving_upstream(lambda _: PIECES) as upstream:
        gateway = Gateway(
            privatizer=Privatizer.from_config(used),
            upstream=upstream.url,
            store=store or SessionStore(),
            policy=policy or Policy(timeout=30),
        )
        with (
            serving(gateway, "", playground=Playground(gateway, used, library=library)) as url,
            httpx2.Client(trust_env=False, verify=False, timeout=60) as http,
        ):
            yield Opened(url, upstream, http)
