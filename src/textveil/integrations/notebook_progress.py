"""Shows the progress of tables in notebooks: a bar, the rate, and the time left.

In: results as they come. Out: the same results; a display that is gone when the work is over.
Nothing is shown elsewhere, of work that takes less than two seconds, or where TEXTVEIL_PROGRESS is
0.
Not here: progress of the command line (`textveil.cli.progress`).
"""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, TypeVar

from textveil.models import PROGRESS_LISTENER
from textveil.pipeline import BATCH_TEXTS

SHOW_AFTER_SECONDS = 2.0
"""Seconds of work before anything is shown."""

UPDATE_SECONDS = 0.5
"""Seconds between two changes of the display."""

Item = TypeVar("Item")


def show_progress(results: Iterable[Item], total: int, noun: str) -> Iterator[Item]:
    """Yields results, and shows in a notebook how far they are.

    Args:
        results: `total` of them.
        total: their number.
        noun: what they are ("rows of comment").
    """
    display = _find_display()
    if display is None or os.environ.get("TEXTVEIL_PROGRESS") == "0":
        yield from results
        return
    bar = _Bar(display, total, noun)
    # rows come in batches: within one, models say what part of it they have read
    token = PROGRESS_LISTENER.set(bar.show_part)
    try:
        for done, result in enumerate(results, 1):
            bar.done = done
            bar.update(done)
            yield result
    finally:
        PROGRESS_LISTENER.reset(token)
        bar.close()


class _Bar:
    """A bar in a notebook, which only grows, and is not there before it is due."""

    def __init__(self, display: Any, total: int, noun: str) -> None:
        self.done = self._shown = 0
        self._display, self._total, self._noun = display, total, noun
        self._handle: Any = None
        self._start = time.monotonic()
        self._due = self._start + SHOW_AFTER_SECONDS

    def show_part(self, done: int, total: int) -> None:
        """Shows the part of the present batch that models have read."""
        batch = min(BATCH_TEXTS, self._total - self.done)
        self.update(self.done + batch * done // max(1, total))

    def update(self, done: int) -> None:
        """Shows how many rows are done, if it is due."""
        self._shown, now = max(self._shown, done), time.monotonic()
        if now < self._due or not self._shown:
            return
        page = {"text/html": format_bar(self._shown, self._total, self._noun, now - self._start)}
        if self._handle is None:
            self._handle = self._display(page, raw=True, display_id=True)
        else:
            self._handle.update(page, raw=True)
        self._due = now + UPDATE_SECONDS

    def close(self) -> None:
        """Takes the bar away."""
        if self._handle is not None:
            self._handle.update({"text/html": ""}, raw=True)


def format_bar(done: int, total: int, noun: str, seconds: float) -> str:
    """Formats a bar with its numbers: "1,200 of 20,000 rows, 240 a second, 78 s left"."""
    rate = done / seconds
    left = max(1, round((total - done) / rate))
    time_text = f"{left} s" if left < 100 else f"{round(left / 60)} min"
    numbers = f"{done:,} of {total:,} {noun}, {rate:,.0f} a second, {time_text} left"
    return f'<progress max="{total}" value="{done}"></progress> {escape(numbers)}'


def _find_display() -> Any:
    """Returns the function that shows things in this notebook; None elsewhere."""
    ipython = sys.modules.get("IPython")  # a kernel has imported it
    shell = None if ipython is None else ipython.get_ipython()
    if not hasattr(shell, "kernel"):
        return None
    return sys.modules["IPython.display"].display
