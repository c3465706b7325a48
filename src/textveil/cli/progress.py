"""Progress of long work, on standard error.

Bars on a terminal, elsewhere a line every few seconds.

In: results as they come, or counts of what is done. Out: the same results; how far the work is, and
the time left. Nothing is shown of work that takes less than two seconds, or where TEXTVEIL_PROGRESS
is 0.
Not here: the work, and who asks for it (`cli`).
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

ProgressCallback = Callable[[str, int, int], None]
"""Callback for progress: the step's name, the amount done, the total.

The total is 0 where it is not known.
"""

AmountFormatter = Callable[[str, int], str]
"""Formatter for an amount of a step ("3,000", "2.1 MB")."""

SHOW_AFTER_SECONDS = 2.0
"""Seconds of work before anything is shown."""

LINE_INTERVAL_SECONDS = 5.0
"""Seconds between two lines.

Of work that goes on for longer a tenth of its time, but no more than `MAX_INTERVAL_SECONDS`.
"""

MAX_INTERVAL_SECONDS = 60.0

POLL_SECONDS = 0.5
"""Seconds between checks for due output.

Also while the work reports nothing.
"""

Item = TypeVar("Item")


def is_terminal() -> bool:
    """Says whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def format_thousands(_: str, amount: int) -> str:
    """Formats an amount of any step: "3,000"."""
    return f"{amount:,}"


@contextmanager
def show_bars(
    spell: AmountFormatter = format_thousands, unit: str = ""
) -> Iterator[ProgressCallback]:
    """Shows every step that is reported within.

    A step that goes back to its start has begun anew.

    Args:
        spell: how an amount of a step is written.
        unit: the unit behind the amounts (" texts").
    """
    if sys.stderr is None or os.environ.get("TEXTVEIL_PROGRESS") == "0":
        yield lambda *_: None
        return
    display: _Display = (
        _BarDisplay(spell=spell, unit=unit)
        if is_terminal()
        else _LineDisplay(spell=spell, unit=unit)
    )
    watch = DisplaySchedule(display=display)
    is_over = threading.Event()

    def poll() -> None:
        while not is_over.wait(POLL_SECONDS):
            watch.update()

    thread = threading.Thread(target=poll, name="textveil progress", daemon=True)
    thread.start()
    try:
        yield watch.report
    finally:
        is_over.set()
        thread.join()
        watch.close()


def count_results(results: Iterable[Item], noun: str = "texts") -> Iterator[Item]:
    """Yields results while counting them, without a known total.

    Args:
        results: any number.
        noun: they are ("texts").
    """
    with show_bars() as report:
        for done, result in enumerate(results, 1):
            report(noun, done, 0)
            yield result


def collect_with_progress(results: Iterable[Item]) -> list[Item]:
    """Lists the results of one text, and shows reading progress.

    The text may be long; the progress is how much of it models have read.
    """
    from textveil.models.ragged import PROGRESS_LISTENER

    with show_bars(unit=" pieces of words") as report:
        token = PROGRESS_LISTENER.set(lambda done, total: report("reading", done, total))
        try:
            return list(results)
        finally:
            PROGRESS_LISTENER.reset(token)


# ---- when ----------------------------------------------------------------------------------------


class _Display(Protocol):
    """A display of progress, empty until it is opened."""

    def open(self) -> None: ...

    def step(self, name: str, done: int, total: int) -> None:
        """Records a step, also before the display is opened."""
        ...

    def draw(self, seconds: float, seconds_left: float | None) -> None:
        """Shows the last step.

        Args:
            seconds: since the work began.
            seconds_left: seconds until the step is done; None where that is not known.
        """
        ...

    def close(self) -> None: ...


@dataclass
class DisplaySchedule:
    """The schedule of the display.

    First after `SHOW_AFTER_SECONDS`, then every `LINE_INTERVAL_SECONDS` seconds.

    Attributes:
        display: what shows it.
        clock: seconds, from anywhere.
    """

    display: _Display
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._start = self.clock()
        self._due = self._start + SHOW_AFTER_SECONDS
        self._is_open = self._is_over = False
        self._name, self._first, self._since, self._done, self._total = "", 0, self._start, 0, 0
        self._advance: tuple[int, float] | None = None

    def report(self, name: str, done: int, total: int) -> None:
        """Records progress; see `ProgressCallback`."""
        with self._lock:
            if self._is_over:
                return
            if name != self._name or done < self._done:
                self._name, self._first, self._since = name, done, self.clock()
                self._advance = None
            elif done > self._done and self._advance is None:
                self._advance = done, self.clock()
            self._done, self._total = done, total
            self.display.step(name, done, total)
        # Outside of the lock, which `update` takes, too.
        self.update()

    def close(self) -> None:
        """Ends the display.

        Later reports are ignored, as by a detector that ran out of time.
        """
        with self._lock:
            self._is_over = True
            self.display.close()

    def update(self) -> None:
        """Shows progress if it is due."""
        with self._lock:
            now = self.clock()
            if now < self._due or self._is_over:
                return
            if not self._is_open:
                self.display.open()
                self._is_open = True
            self.display.draw(now - self._start, self._estimate_remaining(now))
            self._due = now + min(
                max(LINE_INTERVAL_SECONDS, (now - self._start) / 10), MAX_INTERVAL_SECONDS
            )

    def _estimate_remaining(self, now: float) -> float | None:
        amount, spent = self._done - self._first, now - self._since
        if self._advance is not None and self._done > self._advance[0]:
            # From the first progress on: before that, models and tables were loaded.
            amount, spent = self._done - self._advance[0], now - self._advance[1]
        if amount <= 0 or spent < 1 or self._done >= self._total:
            return None
        return (self._total - self._done) * spent / amount


# ---- how -----------------------------------------------------------------------------------------


@dataclass
class _LineDisplay:
    """A display of lines on standard error."""

    spell: AmountFormatter
    unit: str
    last: tuple[str, int, int] | None = None

    def open(self) -> None:
        """Opens nothing."""

    def step(self, name: str, done: int, total: int) -> None:
        self.last = name, done, total

    def draw(self, seconds: float, seconds_left: float | None) -> None:
        with suppress(OSError, ValueError):  # nobody may listen any more
            print(
                format_line(self.last, seconds, seconds_left, self.spell, self.unit),
                file=sys.stderr,
                flush=True,
            )

    def close(self) -> None:
        """Closes nothing."""


def format_line(
    last: tuple[str, int, int] | None,
    seconds: float,
    seconds_left: float | None,
    spell: AmountFormatter,
    unit: str = "",
) -> str:
    """Formats progress on one line.

    "bayes: 120 of 400 texts, 8 a second, 35 s left".
    """
    time_text = (
        f"{format_duration(seconds)} so far"
        if seconds_left is None
        else f"{format_duration(seconds_left)} left"
    )
    if last is None:
        return f"working: {time_text}"
    name, done, total = last
    rate = 0 if not seconds_left else int((total - done) / seconds_left)
    rate_text = f", {spell(name, rate)} a second" if rate else ""
    if not done and not total:
        return f"{name}: {time_text}"
    return f"{name}: {spell(name, done)}{f' of {spell(name, total)}' if total else ''}{unit}{rate_text}, {time_text}"


def format_duration(seconds: float) -> str:
    """Formats a time as people say it: "35 s", "4 min".

    "1 h 20 min".
    """
    total = max(1, round(seconds))
    if total < 100:
        return f"{total} s"
    hours, minutes = divmod(round(total / 60), 60)
    return f"{minutes} min" if not hours else f"{hours} h" + (f" {minutes} min" if minutes else "")


@dataclass
class _BarDisplay:
    """A display of bars on a terminal, one per step.

    It is gone when the work is over.
    """

    spell: AmountFormatter
    unit: str
    _tasks: "dict[str, TaskID]" = field(default_factory=dict)
    _progress: "Progress | None" = None
    _pending_steps: list[tuple[str, int, int]] = field(default_factory=list)

    def open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[amount]}", markup=False),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._tasks[""] = self._progress.add_task(
            "working", total=None, amount="", visible=not self._pending_steps
        )
        for pending in self._pending_steps:
            self.step(*pending)
        self._progress.start()

    def step(self, name: str, done: int, total: int) -> None:
        if self._progress is None:
            self._pending_steps = [entry for entry in self._pending_steps if entry[0] != name] + [
                (name, done, total)
            ]
            return
        progress = self._progress
        if name not in self._tasks:
            self._tasks[name] = progress.add_task(name, total=total or None, amount="")
            progress.update(self._tasks[""], visible=False)
        task = next(entry for entry in progress.tasks if entry.id == self._tasks[name])
        if done < task.completed:
            progress.reset(task.id, total=total or None)
        amount = self._format_amount(name, done, total, task.speed)
        progress.update(task.id, completed=done, amount=amount)

    def _format_amount(self, name: str, done: int, total: int, speed: float | None) -> str:
        """Formats the amount done, the total and the speed."""
        if not done and not total:
            return ""
        total_text = f" of {self.spell(name, total)}" if total else ""
        rate_text = f", {self.spell(name, int(speed))} a second" if speed else ""
        return f"{self.spell(name, done)}{total_text}{self.unit}{rate_text}"

    def draw(self, seconds: float, seconds_left: float | None) -> None:
        """Draws nothing: the bars are drawn as they change."""

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
