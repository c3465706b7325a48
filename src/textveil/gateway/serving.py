"""The gateway's server: a socket and the process that answers on it.

In: a `Gateway` and an address. Out: a server of uvicorn that logs no requests.
Not here: what is answered (`app`).
"""

import socket
from typing import TYPE_CHECKING

from textveil.config.extras import needed
from textveil.errors import ConfigError
from textveil.gateway.app import Gateway

if TYPE_CHECKING:
    import uvicorn

GRACE = 5
"""Seconds for open responses to finish when the server stops."""


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to an address of this machine; port 0 picks a free one.

    Raises:
        ConfigError: the address is not available.
    """
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        # Inherited by connections. Without it, each answer waits 40 ms for the client to acknowledge its headers.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        reason = error.strerror or type(error).__name__
    raise ConfigError(f"host and port must be a free address of this machine: {reason}")


def server(gateway: Gateway) -> "uvicorn.Server":
    """A server that does not log requests.

    `server(gateway).run(sockets=[listen(host, port)])` serves until a signal.
    """
    with needed():
        import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            gateway.application(),
            http="h11",
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
    )
