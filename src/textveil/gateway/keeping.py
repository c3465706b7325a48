"""Keep-alive of event streams: comments in silence, so that no proxy closes them.

In: the send function of an ASGI application. Out: a send function that adds comments.
Not here: events (`streaming`); comments of the upstream, which may be text and are left out.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

SILENCE = 15.0
"""Seconds of silence after which a comment is sent."""


@asynccontextmanager
async def kept_open(send: Send) -> AsyncIterator[Send]:
    """Wraps a send function so that silent event streams get comments.

    Each message must be a whole event, or a comment could come inside of one.
    """
    spoke, reminding = time.monotonic(), None

    async def remind() -> None:
        while True:
            left = spoke + SILENCE - time.monotonic()
            if left > 0:
                await asyncio.sleep(left)
            else:
                await spoken({"type": "http.response.body", "body": b":\n\n", "more_body": True})

    async def spoken(message: MutableMapping[str, Any]) -> None:
        nonlocal spoke, reminding
        spoke = time.monotonic()
        if message["type"] == "http.response.start":
            if dict(message["headers"]).get(b"content-type", b"").startswith(b"text/event-stream"):
                reminding = asyncio.create_task(remind())
        elif reminding is not None and not message.get("more_body"):
            reminding.cancel()
        await send(message)

    try:
        yield spoken
    finally:
        if reminding is not None:
            reminding.cancel()
