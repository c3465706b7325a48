"""A Redis server, from the program of the system, for tests of stores.

In: an empty folder. Out: the server's URL, until the end of the block.
Not here: what is stored (`textveil.session`).
"""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.postgres import MissingServerError


@contextmanager
def redis(folder: Path, *settings: str) -> Iterator[str]:
    """A server on a free port of this machine, which writes each change to a file in a folder."""
    program = shutil.which("redis-server")
    if program is None:
        raise MissingServerError("redis-server is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = start(folder, port, *settings)
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(30)


def start(folder: Path, port: int, *settings: str) -> "subprocess.Popen[bytes]":
    """Starts a server, and waits until it answers."""
    program = shutil.which("redis-server") or "redis-server"
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    command += ["--save", "", "--appendonly", "yes", "--appendfsync", "always", *settings]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as asked:
                asked.sendall(b"PING\r\n")
                if asked.recv(5) == b"+PONG":
                    return server
        except OSError:
            pass
        time.sleep(0.02)
    server.terminate()
    raise MissingServerError("redis-server does not start")


def emptied(url: str) -> str:
    """The URL of a server, which holds nothing now."""
    with connected(url) as client:
        client.flushall()
    return url


def connected(url: str) -> Any:
    """A client of a server."""
    import redis as library

    return library.Redis.from_url(url)


def dumped(url: str) -> bytes:
    """Everything that a server holds: its keys, and what it writes of each."""
    with connected(url) as client:
        keys = client.keys("*")
        kinds = {b"string": client.get, b"hash": client.hgetall}
        contents = [
            kinds.get(client.type(key), lambda key: client.zrange(key, 0, -1))(key) for key in keys
        ]
    parts: list[bytes] = list(keys)
    for content in contents:
        if isinstance(content, dict):
            parts += [part for pair in content.items() for part in pair]
        else:
            parts += [content] if isinstance(content, bytes) else content
    return b"\n".join(parts)
