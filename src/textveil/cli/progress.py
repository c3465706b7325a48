"""Progress of long work on standard error, drawn only where a person sees it.

In: results as they come, or counts of what is done. Out: the same results; bars with rate and time left.
Not here: the work, and who asks for it (`cli`).
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import TaskID

Report = Callable[[str, int, int], None]
"""Told a step's name, how much of it is done, and how much there is."""

COUNTED_FROM = 2_000
"""Results after which they are counted aloud."""

Item = TypeVar("Item")


def seen() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def counted(results: Iterable[Item]) -> Iterator[Item]:
    """The results, with a counter for long runs."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} texts"), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task("", total=None)
    with ExitStack() as stack:
        for count, result in enumerate(results, 1):
            if count == COUNTED_FROM:
                stack.enter_context(progress)
            if count >= COUNTED_FROM:
                progress.update(task, completed=count)
            yield result


@contextmanager
def bars(spell: Callable[[str, int], str], unit: str = "") -> Iterator[Report]:
    """A bar for every step that is reported; a step that goes back to its start has begun anew.

    Args:
        spell: an amount of a step ("3,000", "2.1 MB").
        unit: what stands behind the amounts.
    """
    if not seen():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[amount]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def report(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=total, amount="")
            task = next(each for each in progress.tasks if each.id == tasks[name])
            if done < task.completed:
                progress.reset(task.id, total=total)
            rate = f", {spell(name, int(task.speed))} a second" if task.speed else ""
            amount = f"{spell(name, done)} of {spell(name, total)}{unit}{rate}"
            progress.update(task.id, completed=done, amount=amount)

        yield report
