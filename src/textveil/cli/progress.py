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

Report = Callable[[str, int, int], None]
"""Callback for progress: the step's name, the amount done, the total.

The total is 0 where it is not known.
"""

Spell = Callable[[str, int], str]
"""Formatter for an amount of a step ("3,000", "2.1 MB")."""

AFTER = 2.0
"""Seconds of work before anything is shown."""

EVERY = 5.0
"""Seconds between two lines.

Of work that goes on for longer a tenth of its time, but no more than `RARELY`.
"""

RARELY = 60.0

TICK = 0.5
"""Seconds between checks for due output.

Also while the work reports nothing.
"""

Item = TypeVar("Item")


def seen() -> bool:
    """Says whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def thousands(_: str, amount: int) -> str:
    """Formats an amount of any step: "3,000"."""
    return f"{amount:,}"


@contextmanager
def bars(spell: Spell = thousands, unit: str = "") -> Iterator[Report]:
    """Shows every step that is reported within.

    A step that goes back to its start has begun anew.

    Args:
        spell: how an amount of a step is written.
        unit: the unit behind the amounts (" texts").
    """
    if sys.stderr is None or os.environ.get("TEXTVEIL_PROGRESS") == "0":
        yield lambda *_: None
        return
    shown: _Shown = _Bars(spell=spell, unit=unit) if seen() else _Lines(spell=spell, unit=unit)
    watch = Watch(shown=shown)
    over = threading.Event()

    def look() -> None:
        while not over.wait(TICK):
            watch.look()

    thread = threading.Thread(target=look, name="textveil progress", daemon=True)
    thread.start()
    try:
        yield watch.report
    finally:
        over.set()
        thread.join()
        watch.close()


def counted(results: Iterable[Item], what: str = "texts") -> Iterator[Item]:
    """Yields results while counting them, without a known total.

    Args:
        results: any number.
        what: they are ("texts").
    """
    with bars() as report:
        for done, result in enumerate(results, 1):
            report(what, done, 0)
            yield result


def read(results: Iterable[Item]) -> list[Item]:
    """Lists the results of one text, and shows reading progress.

    The text may be long; the progress is how much of it models have read.
    """
    from textveil.models.ragged import LISTENER

    with bars(unit=" pieces of words") as report:
        token = LISTENER.set(lambda done, total: report("reading", done, total))
        try:
            return list(results)
        finally:
            LISTENER.reset(token)


# ---- when ----------------------------------------------------------------------------------------


class _Shown(Protocol):
    """A display of progress, empty until it is opened."""

    def open(self) -> None: ...

    def step(self, name: str, done: int, total: int) -> None:
        """Records a step, also before the display is opened."""
        ...

    def draw(self, seconds: float, left: float | None) -> None:
        """Shows the last step.

        Args:
            seconds: since the work began.
            left: seconds until the step is done; None where that is not known.
        """
        ...

    def close(self) -> None: ...


@dataclass
class Watch:
    """The schedule of the display.

    First after `AFTER`, then every `EVERY` seconds.

    Attributes:
        shown: what shows it.
        clock: seconds, from anywhere.
    """

    shown: _Shown
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._due = self._began + AFTER
        self._open = self._over = False
        self._name, self._first, self._since, self._done, self._total = "", 0, self._began, 0, 0

    def report(self, name: str, done: int, total: int) -> None:
        """Records progress; see `Report`."""
        with self._lock:
            if self._over:
                return
            if name != self._name or done < self._done:
                self._name, self._first, self._since = name, done, self.clock()
            self._done, self._total = done, total
            self.shown.step(name, done, total)
        self.look()

    def close(self) -> None:
        """Ends the display.

        Later reports are ignored, as by a detector that ran out of time.
        """
        with self._lock:
            self._over = True
            self.shown.close()

    def look(self) -> None:
        """Shows progress if it is due."""
        with self._lock:
            now = self.clock()
            if now < self._due or self._over:
                return
            if not self._open:
                self.shown.open()
                self._open = True
            self.shown.draw(now - self._began, self._estimate_left(now))
            self._due = now + min(max(EVERY, (now - self._began) / 10), RARELY)

    def _estimate_left(self, now: float) -> float | None:
        made, spent = self._done - self._first, now - self._since
        if made <= 0 or spent < 1 or self._done >= self._total:
            return None
        return (self._total - self._done) * spent / made


# ---- how -----------------------------------------------------------------------------------------


@dataclass
class _Lines:
    """A display of lines on standard error."""

    spell: Spell
    unit: str
    last: tuple[str, int, int] | None = None

    def open(self) -> None:
        """Opens nothing."""

    def step(self, name: str, done: int, total: int) -> None:
        self.last = name, done, total

    def draw(self, seconds: float, left: float | None) -> None:
        with suppress(OSError, ValueError):  # nobody may listen any more
            print(
                line(self.last, seconds, left, self.spell, self.unit), file=sys.stderr, flush=True
            )

    def close(self) -> None:
        """Closes nothing."""


def line(
    last: tuple[str, int, int] | None,
    seconds: float,
    left: float | None,
    spell: Spell,
    unit: str = "",
) -> str:
    """Formats progress on one line.

    "bayes: 120 of 400 texts, 8 a second, 35 s left".
    """
    when = f"{duration(seconds)} so far" if left is None else f"{duration(left)} left"
    if last is None:
        return f"working: {when}"
    name, done, total = last
    rate = 0 if not left else int((total - done) / left)
    fast = f", {spell(name, rate)} a second" if rate else ""
    return f"{name}: {spell(name, done)}{f' of {spell(name, total)}' if total else ''}{unit}{fast}, {when}"


def duration(seconds: float) -> str:
    """Formats a time as people say it: "35 s", "4 min".

    "1 h 20 min".
    """
    whole = max(1, round(seconds))
    if whole < 100:
        return f"{whole} s"
    hours, minutes = divmod(round(whole / 60), 60)
    return f"{minutes} min" if not hours else f"{hours} h" + (f" {minutes} min" if minutes else "")


@dataclass
class _Bars:
    """A display of bars on a terminal, one per step.

    It is gone when the work is over.
    """

    spell: Spell
    unit: str
    _tasks: "dict[str, TaskID]" = field(default_factory=dict)
    _progress: "Progress | None" = None
    _kept: list[tuple[str, int, int]] = field(default_factory=list)

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
            "working", total=None, amount="", visible=not self._kept
        )
        for each in self._kept:
            self.step(*each)
        self._progress.start()

    def step(self, name: str, done: int, total: int) -> None:
        if self._progress is None:
            self._kept = [each for each in self._kept if each[0] != name] + [(name, done, total)]
            return
        progress = self._progress
        if name not in self._tasks:
            self._tasks[name] = progress.add_task(name, total=total or None, amount="")
            progress.update(self._tasks[""], visible=False)
        task = next(each for each in progress.tasks if each.id == self._tasks[name])
        if done < task.completed:
            progress.reset(task.id, total=total or None)
        amount = self._format_amount(name, done, total, task.speed)
        progress.update(task.id, completed=done, amount=amount)

    def _format_amount(self, name: str, done: int, total: int, speed: float | None) -> str:
        """Formats the amount done, the total and the speed."""
        of = f" of {self.spell(name, total)}" if total else ""
        rate = f", {self.spell(name, int(speed))} a second" if speed else ""
        return f"{self.spell(name, done)}{of}{self.unit}{rate}"

    def draw(self, seconds: float, left: float | None) -> None:
        """Draws nothing: the bars are drawn as they change."""

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
