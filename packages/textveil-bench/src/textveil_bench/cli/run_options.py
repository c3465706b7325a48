"""Options that runs of the bench share, and what they say when they are interrupted.

In: nothing. Out: annotations of options, and helpers of the commands.
Not here: the commands (`bench`, `compare`).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from textveil.cli import console

Folder = Annotated[
    str | None,
    typer.Option(
        "--folder", metavar="DIR", help="The folder of the data sets; else $TEXTVEIL_CORPORA."
    ),
]
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes", metavar="N", help="Worker processes, of one thread each; else one per core."
    ),
]


@contextmanager
def note_interrupt(folder: str) -> Iterator[None]:
    """Prints after an interrupt that finished rows are kept."""
    try:
        yield
    except KeyboardInterrupt:
        console.note(
            f"Interrupted. Finished rows are in {Path(folder).name}; the same command continues "
            "from there."
        )
        raise


def count_processes(count: int | None) -> int:
    """Returns the number of processes asked for; else one per core."""
    return (os.cpu_count() or 1) if count is None else count
