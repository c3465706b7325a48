"""Turns: requests that go on from each other, one after the other.

In: the name of what they have in common. Out: a lock that its requests take.
Not here: requests of other processes, of which one is refused (`exchange`); and what a thread does (`lanes`).

Whoever waits holds no thread, and takes one lock only: nothing that has it waits for another request.
"""

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from weakref import WeakValueDictionary


class Turns:
    """The turns of a process; for one event loop."""

    def __init__(self) -> None:
        self._locks = WeakValueDictionary[tuple[str, str], asyncio.Lock]()  # one is gone when nobody has or awaits it

    def of(self, account: str, name: object) -> AbstractAsyncContextManager[None]:
        """The turn of a request, which lasts as long as the block.

        Args:
            account: whose request it is.
            name: what it adds to, in the account; what is no text is no name, and waits for nobody.
        """
        return self._locks.setdefault((account, name), asyncio.Lock()) if isinstance(name, str) else nullcontext()
