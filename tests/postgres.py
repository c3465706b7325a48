"""A server of PostgreSQL, from the programs of the system, for tests and benchmarks of stores.

In: an empty folder, whose parents others can enter. Out: the server's URL, until the end of the block.
Not here: what is stored (`textveil.session`).
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

KEYS = "&session_keys=database"
"""Where the keys of sessions lie, as a URL of a store says it."""


class MissingServerError(Exception):
    """Why there is no server."""


def emptied(url: str) -> str:
    """The URL of a server, whose database is empty now."""
    import psycopg

    with psycopg.connect(url.removesuffix(KEYS), autocommit=True) as connection:
        connection.execute("drop schema public cascade")
        connection.execute("create schema public")
    return url


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A server that listens on a socket in a folder, and keeps its data there."""
    installed = Path("/usr/lib/postgresql")
    programs = (
        sorted(str(each / "bin") for each in installed.iterdir()) if installed.is_dir() else []
    )
    programs += [os.path.dirname(found) for found in [shutil.which("initdb")] if found]
    if not programs:
        raise MissingServerError("PostgreSQL is not installed")
    user: list[str] = []
    if os.getuid() == 0:  # which PostgreSQL refuses to run as
        if shutil.which("setpriv") is None:
            raise MissingServerError("PostgreSQL does not run as root, and setpriv is missing")
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        folder.chmod(0o777)
    data, at = str(folder / "data"), programs[0]
    run: dict[str, Any] = {
        "check": True,
        "capture_output": True,
        "env": {**os.environ, "LC_ALL": "C"},
        "cwd": "/",
    }
    subprocess.run(
        [*user, f"{at}/initdb", "-D", data, "-U", "veil", "-A", "trust", "-E", "UTF8"], **run
    )
    server = subprocess.Popen(
        [*user, f"{at}/postgres", "-D", data, "-k", folder, "-c", "listen_addresses="],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
    )
    try:
        for _ in range(300):
            made = subprocess.run(
                [f"{at}/createdb", "-h", folder, "-U", "veil", "veil"], capture_output=True
            )
            if made.returncode == 0:
                break
            time.sleep(0.2)
        yield f"postgresql://veil@/veil?host={folder}{KEYS}"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)
