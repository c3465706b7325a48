"""Signs of progress: keep a working detector from timing out.

In: signs of progress. Out: calls of the listener that waits for a detector.
Not here: the time limit (`detectors`), and how progress is shown to people
(`textveil.cli.progress`).
"""

from collections.abc import Callable
from contextvars import ContextVar

DETECTION_LISTENER: ContextVar[Callable[[], None] | None] = ContextVar("hears", default=None)
"""The listener that is called on each sign of progress; None if nothing listens."""


def signal_progress() -> None:
    """Signals that the running detector makes progress, so `protect.timeout` starts anew."""
    if (listener := DETECTION_LISTENER.get()) is not None:
        listener()
