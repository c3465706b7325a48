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

COMMENT_SECONDS = 15.0
"""Seconds of silence after which a comment is sent."""


@asynccontextmanager
async def keep_open(send: Send, comment: bytes) -> AsyncIterator[Send]:
    """Wraps a send function so that silent event streams get comments.

    Each message must be a whole event, or a comment could come inside of one.
    """
    last_sent, reminder = time.monotonic(), None

    async def send_comments() -> None:
        while True:
            wait = last_sent + COMMENT_SECONDS - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            else:
                await send_message(
                    {"type": "http.response.body", "body": comment, "more_body": True}
                )

    async def send_message(message: MutableMapping[str, Any]) -> None:
        nonlocal last_sent, reminder
        last_sent = time.monotonic()
        if message["type"] == "http.response.start":
            if dict(message["headers"]).get(b"content-type", b"").startswith(b"text/event-stream"):
                reminder = asyncio.create_task(send_comments())
        elif reminder is not None and not message.get("more_body"):
            # Before the last message is sent, because no comment may follow it.
            reminder.cancel()
        await send(message)

    try:
        yield send_message
    finally:
        if reminder is not None:
            reminder.cancel()
