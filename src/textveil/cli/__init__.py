"""The command line: verbs only.

In: arguments. Out: text or JSON on standard output, statements on standard error.
Not here: reading and writing (`files`), errors and exit codes (`shell`), options (`config`).
"""

import sys
from collections.abc import Sequence

from textveil import shell
from textveil.cli import (  # each adds its verbs to the application
    attack,
    audit,
    bench,
    calibrate,
    chat,
    lm_eval,
    measure,
    names,
    privatize,
    proxy,
    report,
    reproduce,
    restore,
    sweep,
    tables,
)
from textveil.cli.app import app

__all__ = [
    "attack",
    "audit",
    "bench",
    "calibrate",
    "chat",
    "lm_eval",
    "main",
    "measure",
    "names",
    "privatize",
    "proxy",
    "report",
    "reproduce",
    "restore",
    "sweep",
    "tables",
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code, see `shell.run`."""
    return shell.run(app, "textveil", sys.argv[1:] if arguments is None else arguments)
