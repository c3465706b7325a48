"""Conversation locks: requests that extend the same conversation run one by one.

In: the name of the conversation. Out: a lock for the length of a block, or a refusal where too many
wait.
Not here: requests of other processes, of which one is refused (`request_flow`); and threads
(`thread_pools`).

A waiting request holds no thread, and takes one lock only: a request with the lock never waits for
another request.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from textveil.gateway.serve.thread_pools import build_busy_error


class ConversationLocks:
    """Conversation locks of a process, for one event loop.

    Args:
        max_waiting: the maximal number of waiting requests; None for any number.
    """

    def __init__(self, max_waiting: int | None) -> None:
        # A lock vanishes when no request holds or awaits it.
        self._locks = WeakValueDictionary[tuple[str, str], asyncio.Lock]()
        self._max_waiting, self._waiting = max_waiting, 0

    @asynccontextmanager
    async def hold(self, account: str, name: object) -> AsyncIterator[None]:
        """Holds the lock of a conversation for the length of a block.

        Args:
            account: the account of the request.
            name: the conversation that the request adds to, within the account; any other type than
                str is no name, and does not wait.

        Raises:
            RequestError: too many are waiting.
        """
        if not isinstance(name, str):
            yield
            return
        lock = self._locks.setdefault((account, name), asyncio.Lock())
        if lock.locked() and self._max_waiting is not None and self._waiting >= self._max_waiting:
            raise build_busy_error()
        self._waiting += 1
        try:
            await lock.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            lock.release()
