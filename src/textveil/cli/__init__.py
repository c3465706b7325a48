"""The command line: verbs only.

In: arguments. Out: text or JSON on standard output, statements on standard error.
Not here: reading and writing (`files`), errors and exit codes (`shell`), options (`config`).
"""

import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points

from textveil.cli import (  # each adds its verbs to the application
    attack,
    audit,
    calibrate,
    chat,
    measure,
    names,
    privatize,
    proxy,
    restore,
    shell,
    tables,
)
from textveil.cli.app import (
    ConfigFile,
    Epsilon,
    Mechanism,
    Profile,
    Rerank,
    Seed,
    Setting,
    TableName,
    Task,
    app,
    examples,
    resolve,
)
from textveil.cli.shell import note, say

__all__ = [
    "ConfigFile",
    "Epsilon",
    "Mechanism",
    "Profile",
    "Rerank",
    "Seed",
    "Setting",
    "TableName",
    "Task",
    "app",
    "attack",
    "audit",
    "calibrate",
    "chat",
    "examples",
    "main",
    "measure",
    "names",
    "note",
    "privatize",
    "proxy",
    "resolve",
    "restore",
    "say",
    "tables",
]


@cache
def _join() -> None:
    """Let other packages add their verbs."""
    for point in entry_points(group="textveil.commands"):
        point.load()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code, see `shell.run`."""
    _join()
    return shell.run(app, "textveil", sys.argv[1:] if arguments is None else arguments)
