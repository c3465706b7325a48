"""Rows done inside a part or file, counted while it is read or drawn.

In: rows, from whoever reads or draws them, in this process or in others of this machine. Out: calls
of the listener in the process that runs the corpus.
Not here: how progress is shown (`cli.progress`), and whole parts (`runs`).

On other machines nothing is counted: their progress is that of whole parts.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

RowListener = Callable[[int], None]
"""Listener for further rows."""

_listeners: list[RowListener] = []
_shared: list[Any] = []
"""A worker's counter, which it shares with the process that started it."""


def count_rows(rows: int) -> None:
    """Counts further rows, for the listener of this process or of that which started it."""
    for counter in _shared:
        with counter.get_lock():
            counter.value += rows
    for listener in _listeners:
        listener(rows)


def share_counter(counter: Any) -> None:
    """Counts the rows of this worker in a counter of the process that started it."""
    _shared[:] = [counter]


def forward_rows(counter: Any) -> None:
    """Tells the listener what workers have counted since, and begins anew."""
    with counter.get_lock():
        rows, counter.value = counter.value, 0
    if rows:
        count_rows(rows)


@contextmanager
def listen_to_rows(listener: RowListener) -> Iterator[None]:
    """Calls a listener with the rows that are counted within."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
