"""Turns: requests that go on from each other, one after the other.

In: the name of what they have in common. Out: a turn that lasts as long as a block, or a refusal where too many wait.
Not here: requests of other processes, of which one is refused (`exchange`); and what a thread does (`lanes`).

Whoever waits holds no thread, and takes one lock only: nothing that has it waits for another request.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from textveil.gateway.lanes import busy


class Turns:
    """The turns of a process; for one event loop.

    Args:
        most: how many requests may wait for theirs; None for any number.
    """

    def __init__(self, most: int | None) -> None:
        # One is gone when nobody has or awaits it.
        self._locks = WeakValueDictionary[tuple[str, str], asyncio.Lock]()
        self._most, self._waiting = most, 0

    @asynccontextmanager
    async def of(self, account: str, name: object) -> AsyncIterator[None]:
        """The turn of a request, which lasts as long as the block.

        Args:
            account: whose request it is.
            name: what it adds to, in the account; what is no text is no name, and waits for nobody.

        Raises:
            RequestError: too many are waiting.
        """
        if not isinstance(name, str):
            yield
            return
        lock = self._locks.setdefault((account, name), asyncio.Lock())
        if lock.locked() and self._most is not None and self._waiting >= self._most:
            raise busy()
        self._waiting += 1
        try:
            await lock.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            lock.release()
