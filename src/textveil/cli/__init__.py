"""The command line: verbs only.

In: arguments. Out: text or JSON on standard output, statements on standard error.
Not here: reading and writing (`files`), errors and exit codes (`console`), options (`config`).
"""

import gc
import sys
from collections.abc import Sequence

from textveil.cli.console import exit_if_busy, note, run, say, wrap
from textveil.cli.decorators import group, verb
from textveil.cli.options import PRIVACY_OPTIONS, SHARED_OPTIONS, TypedOptions

__all__ = [
    "PRIVACY_OPTIONS",
    "SHARED_OPTIONS",
    "TypedOptions",
    "group",
    "main",
    "note",
    "say",
    "verb",
    "wrap",
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line, and returns the exit code.

    See `console.run`.

    Args:
        arguments: what was typed after the program's name; None: this is the program, and ends when
            this returns.
    """
    from textveil.cli.app import build_root_command

    if arguments is not None:
        return run(build_root_command(), "textveil", arguments)
    # What is loaded stays: looking through it for garbage again and again took a tenth of a short
    # run.
    gc.set_threshold(200_000, 20, 100)
    return exit_if_busy(run(build_root_command(), "textveil", sys.argv[1:]))
