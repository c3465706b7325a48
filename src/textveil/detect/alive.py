"""Signs of progress: a detector that is at work shows that it goes on, so that it is not taken for one that hangs.

In: signs. Out: who waits for a detector hears them.
Not here: how long anybody waits (`detectors`), and how progress is shown to people (`textveil.cli.progress`).
"""

from collections.abc import Callable
from contextvars import ContextVar

HEARS: ContextVar[Callable[[], None] | None] = ContextVar("hears", default=None)
"""Who is told that a detector goes on."""


def show_progress() -> None:
    """Shows that a detector goes on, so that it is not taken for one that hangs: `protect.timeout` begins anew."""
    if (hears := HEARS.get()) is not None:
        hears()
